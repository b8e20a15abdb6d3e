"""
How many of very many ads should I try at all?
==============================================

With more arms than can ever be tried, the first question is how many to try. A ``Reservoir`` has
infinitely many; the number that takes part is a parameter like any other, so that a sweep answers
it, beside the rule of Li and Xia (2017).
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb
from jaxbandits.policies import RCB, OmegaUCB, SampledArms, arms_to_sample

plt.style.use("jaxbandits.pictures")
budget, tried = 400.0, np.array([2, 4, 8, 16, 32, 64])
# Best ratio: 2
arms = jb.environments.Reservoir.ratio(jax.random.key(0), instances=60, capacity=64, beta=1.0)
policies = {"RCB": SampledArms(RCB(), arms=tried), "ω-UCB": SampledArms(OmegaUCB(), arms=tried)}
money = jb.TotalBudget(budget, last_pull="forfeits")
result = jb.simulate(list(policies.values()), arms, money, key=jax.random.key(1), marks=1)
# As a share of what the best ratio would have earned
lost = result.regret.isel(mark=-1) / (2.0 * budget)
found = jb.statistics.mean(lost, over="instance")

# %%
# Each of the 60 reservoirs is one observation; bars are 95 % intervals.

figure, axes = plt.subplots()
for number, name in enumerate(policies):
    rows = slice(number * tried.size, (number + 1) * tried.size)
    mean, low, high = (part[rows] for part in (found.value, found.low, found.high))
    axes.errorbar(tried, mean, yerr=[mean - low, high - mean], marker="o", label=name)
rule = arms_to_sample(budget, beta=1.0)
axes.axvline(
    rule, color="black", linewidth=0.8, linestyle=":", label=f"rule of the paper: {rule} arms"
)
axes.set(
    xscale="log",
    xlabel="number of arms used",
    ylabel="regret, share of the best possible reward",
    ylim=(0, 1),
)
axes.set_xticks(tried, tried)
axes.minorticks_off()
axes.legend()
plt.show()

# %%
# Both have their least regret with fewer arms than the rule (which leaves a constant open): a few
# good arms, known well, are worth more than the best of many. With ω-UCB inside the loss is smaller
# for every number from 8 on.
