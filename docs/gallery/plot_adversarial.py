"""
On which instance does my policy lose most?
===========================================

Gradient ascent on the expected regret, over the arms' mean rewards and mean costs, from several
random starts. Whatever it finds was simulated again on fresh randomness, because the largest of
many noisy numbers is always too large.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb
from jaxbandits.gradients import adversarial

plt.style.use("jaxbandits.pictures")
policy, budget = jb.policies.OmegaUCB(rho=0.25), jb.TotalBudget(30.0, last_pull="counts")
worst = adversarial.search(
    policy, budget, arms=2, key=jax.random.key(0), restarts=6, steps=30, replicates=128, check=2000
)
for reward, cost in zip(worst.mean_reward[:2], worst.mean_cost[:2], strict=True):
    print(
        "mean rewards",
        reward.round(2),
        "mean costs",
        cost.round(2),
        "ratios",
        (reward / cost).round(2),
    )

# %%
# The ascent's own noisy estimates of all starts, and what fresh runs say of where they began and
# ended.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2))
steps = np.arange(1, len(worst.path) + 1)
left.plot(steps, worst.path, color="C5", linestyle="-", linewidth=0.8)
left.plot(steps, worst.path.mean(axis=1), color="C0", label="mean of six starts")
left.set(xlabel="step of the ascent", ylabel="regret, estimated on the way (reward)", ylim=0)
order = np.arange(1, worst.objective.size + 1)
right.plot(
    order,
    np.sort(worst.start)[::-1],
    "s",
    color="C1",
    linestyle="none",
    label="six random instances",
)
right.errorbar(
    order,
    worst.objective,
    yerr=1.96 * worst.standard_error,
    fmt="o",
    color="C0",
    label="six found ones, 95 %",
)
right.set(xlabel="rank", ylabel="regret on 2,000 fresh runs (reward)", ylim=0, xticks=order)
left.legend()
right.legend()
plt.show()

# %%
# Fresh runs confirm the climb: most of what is found costs several times as much as the worst of
# the random instances. They have cheap arms, of which a budget buys so many pulls that the search
# for the better one is long.
