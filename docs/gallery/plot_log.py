"""
What would five policies have earned on a log?
==============================================

A shop has shown four offers at random for a while, and logged the reward and cost of each row. A
policy that learns walks through these rows: one counts where the policy takes the logged arm. Here
the log comes from a known world, so the truth is there to compare.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb
from jaxbandits import policies as p

plt.style.use("jaxbandits.pictures")
reward, cost = np.array([0.7, 0.5, 0.35, 0.2]), np.array([0.8, 0.3, 0.5, 0.4])
rng = np.random.default_rng(0)
arm = rng.integers(0, 4, 100_000)
coins = [(rng.random(arm.size) < mean[arm]).astype(float) for mean in (reward, cost)]
log = jb.Log.of(arm, *coins, propensity="uniform")

learners = [p.OmegaUCB(rho=0.25), p.MUCB(), p.BudgetedThompson(), p.UCB1(), p.EpsilonFirst(0.1)]
budget = jb.TotalBudget(60.0, last_pull="counts")
found = jb.replay(learners, log, budget, key=jax.random.key(1), marks=1)
world = jb.environments.FiniteArms.bernoulli(reward, cost)
truth = jb.simulate(learners, world, budget, key=jax.random.key(2), replicates=4000, marks=1)

# %%
# 95 % intervals over parts of the log, each part a run of its own.

earned = jb.statistics.mean(found.reward.isel(mark=-1, instance=0), over="replicate")
value, low, high = (np.asarray(x) for x in (earned.value, earned.low, earned.high))
rows = np.arange(value.size)
figure, axes = plt.subplots(figsize=(7, 3.6))
axes.errorbar(value, rows, xerr=[value - low, high - value], fmt="o", label="from the log, 95 %")
means = truth.reward.values[:, 0, :, -1].mean(axis=1)
axes.plot(
    means, rows[:-1], "x", color="C1", markersize=9, label="simulated in the true environment"
)
axes.set(
    yticks=rows,
    yticklabels=["as logged" if s == "AsLogged" else s for s in found.settings],
    xlabel="reward of a run with a budget of 60",
)
axes.invert_yaxis()
axes.legend()
plt.show()

# %%
# The intervals hold the truth, and every learner earns more than the shop's coin did. UCB1 looks at
# rewards alone, and pays too much for them.
