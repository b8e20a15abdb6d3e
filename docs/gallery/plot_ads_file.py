"""
Which policy spends my advertising budget best?
===============================================

An export of an ads manager, a budget for each of its groups of ads, and one call. The file's means
are estimates, so every run draws its true means from what the clicks leave open; all settings meet
the same draws, so that differences are paired.
"""

from importlib.resources import files

import matplotlib.pyplot as plt

import jaxbandits as jb

plt.style.use("jaxbandits.pictures")
ads = files("jaxbandits") / "data" / "sample_ads.csv"  # your own file goes here
policies = [
    jb.policies.OmegaUCB(rho=[0.0625, 0.25, 1.0]),
    jb.policies.BudgetedThompson(),
    jb.policies.MUCB(),
]
found = jb.compare(str(ads), 300.0, policies, runs=150)
rows = found.ranking()[::-1]  # best on top
names = [row["setting"] for row in rows]
for row in rows[::-1]:
    print(
        f"{row['rank']}. {row['setting']}: {row['reward']:.1f} conversions, {row['difference']:+.1f} to the best"
    )

# %%
# What a group of ads earns for its 300, and how much less that is than the best setting's, run by
# run.

figure, (means, differences) = plt.subplots(1, 2, figsize=(9.4, 3.6), sharey=True)
for axes, what in ((means, "reward"), (differences, "difference")):
    for y, row in enumerate(rows):
        value, low, high = row[what], row[f"{what}_low"], row[f"{what}_high"]
        axes.errorbar(value, y, xerr=[[value - low], [high - value]], fmt="o", color="C0")
means.set(xlabel="conversions of a group of ads", yticks=range(len(rows)), yticklabels=names)
differences.set(xlabel="conversions minus those of the best setting")
differences.axvline(0, color="black", linewidth=0.8)
means.set_title("means, 95 %")
differences.set_title("paired differences, 95 %")
plt.show()

# %%
# ω-UCB that explores little (ρ = 1/16) and m-UCB bring the most and are close to each other; the
# three settings below, which explore more, bring clearly fewer conversions.
