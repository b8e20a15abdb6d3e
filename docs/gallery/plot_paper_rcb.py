"""
How does the regret of RCB-I and RCB-AIR grow with the budget?
==============================================================

Li and Xia (AAAI 2017) prove bounds and have no experiments, so there is no figure to repeat; this
is a small one of ours. Regret of RCB-I, which knows the budget, and of RCB-AIR, which does not, and
the growth that the bounds speak of, up to budgets of 1,000.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb
from jaxbandits.policies import rcb_air, rcb_i, room_needed

plt.style.use("jaxbandits.pictures")
budgets, beta, key = np.array([100.0, 316.0, 1000.0]), 1.0, jax.random.key(16)
room = room_needed(9 * budgets[-1], beta)
arms = jb.environments.Reservoir.ratio(jax.random.key(15), instances=100, capacity=room, beta=beta)
most = jb.TotalBudget(budgets[-1], last_pull="forfeits")
# Smaller budgets are prefixes
growing = jb.simulate(rcb_air(beta), arms, most, key=key, marks=budgets / budgets[-1])
known = [
    jb.simulate(
        rcb_i(budget, beta), arms, jb.TotalBudget(budget, last_pull="forfeits"), key=key, marks=1
    )
    for budget in budgets.tolist()
]
regret = {
    "RCB-AIR": growing.regret.values[0, :, 0],
    "RCB-I": np.stack([x.regret.values.ravel() for x in known], 1),
}

# %%
# Each reservoir is one observation; bars are 95 % intervals. The thin lines grow as √B and as B,
# whatever their height.

figure, axes = plt.subplots()
for name, values in regret.items():
    ends = [jb.statistics.mean(x, over="instance") for x in values.T]
    mean, low, high = (
        np.array([getattr(x, part) for x in ends]) for part in ("value", "low", "high")
    )
    axes.errorbar(budgets, mean, yerr=[mean - low, high - mean], marker="o", label=name)
axes.plot(
    budgets,
    mean[0] * np.sqrt(budgets / budgets[0]),
    color="black",
    linewidth=0.8,
    linestyle=":",
    label="∝ √B",
)
axes.plot(
    budgets,
    mean[0] * budgets / budgets[0],
    color="black",
    linewidth=0.8,
    linestyle="-",
    label="∝ B",
)
axes.set(xscale="log", yscale="log", xlabel="budget B (cost)", ylabel="regret (reward), β = 1")
axes.legend()
plt.show()

# %%
# Up to these budgets both regrets grow almost as fast as B itself, far from √B: most arms' indices
# are still infinite. RCB-I, which knows the budget, ends below RCB-AIR.
