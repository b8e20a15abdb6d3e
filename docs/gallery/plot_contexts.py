"""
What is it worth to see the request?
====================================

Two arms, a cheap one and a dear one that is better for some requests only. At each budget: what
could be had with and without the context, and what a policy makes of it that begins with nothing.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb
from jaxbandits.environments import ContextualArms, Gaussian
from jaxbandits.policies import Bonus, ContextualPacer

plt.style.use("jaxbandits.pictures")
rounds, budgets = 3000, np.linspace(0.12, 0.52, 9)
reward, cost = [[0.45, -0.1, 0.0], [0.55, 0.2, 0.1]], [[[0.1, 0.0, 0.0]], [[0.5, 0.0, 0.1]]]
one = ContextualArms.linear(reward, cost, Gaussian(2), resources=1)
# An instance for each budget
world = jax.tree.map(lambda x: np.repeat(x, budgets.size, axis=0), one)
limit = jb.TotalBudget(rounds * budgets[:, None], last_pull="counts", rounds=rounds)
worth = world.value_of_context(limit, samples=2**13)
policy = ContextualPacer(explore=Bonus(1.0))
result = jb.simulate(policy, world, limit, key=jax.random.key(0), replicates=20, marks=1)
found = jb.statistics.mean(
    result.reward.isel(mark=-1, setting=0).rename(instance="each") / rounds, over="replicate"
)

# %%
# Bars are 95 % intervals over twenty runs.

figure, axes = plt.subplots()
axes.plot(budgets, [x.contextual for x in worth], label="best rule that sees the context")
axes.plot(budgets, [x.fixed for x in worth], label="best mixture without it")
mean, low, high = found.value, found.low, found.high
axes.errorbar(
    budgets, mean, yerr=[mean - low, high - mean], fmt="o", label="ContextualPacer, without data"
)
axes.set(xlabel="budget per request (cost)", ylabel="reward per request")
axes.legend()
plt.show()

# %%
# Where the budget pays for the dear arm half of the time, to know for whom is worth most.
