"""
What does it cost when outcomes come late?
==========================================

A request is decided now, and what it brought is known some requests later. ``InFlight`` plays any
policy in such a world: it learns on arrival and counts open requests in. Five delays are five
instances of one world, so that one program plays them all.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb
from jaxbandits.environments import Delayed, FiniteArms, TableDelay
from jaxbandits.policies import BudgetedThompson, InFlight, OmegaUCB

plt.style.use("jaxbandits.pictures")
delays = np.array([0, 3, 10, 30, 100])
# Of "not later than", in ticks
chances = np.where(np.arange(101) >= delays[:, None], 2**24, 0).astype(np.int32)
one = jb.environments.random_bernoulli(jax.random.key(3), instances=1, arms=5)
arms = FiniteArms.bernoulli(*(np.repeat(mean, delays.size, axis=0) for mean in one.values()))
late = Delayed(arms, TableDelay(chances), room=110)
policies = {"ω-UCB": InFlight(OmegaUCB()), "Thompson sampling": InFlight(BudgetedThompson())}
money = jb.TotalBudget([200.0], last_pull="counts")
result = jb.simulate(
    list(policies.values()), late, money, key=jax.random.key(1), replicates=20, marks=1
)
# An interval for each instance by itself
last = result.regret.isel(mark=-1).rename(instance="delay")
found = jb.statistics.mean(last, over="replicate")

# %%
# Regret against the best arm of the same world without any delay; bars are 95 % intervals over
# twenty runs.

figure, axes = plt.subplots()
for number, name in enumerate(policies):
    mean, low, high = (part[number] for part in (found.value, found.low, found.high))
    axes.errorbar(delays, mean, yerr=[mean - low, high - mean], marker="o", label=name)
axes.set(
    xscale="symlog", xlabel="delay (requests)", ylabel="regret when 200 are spent (reward)", ylim=0
)
axes.set_xticks(delays, delays)
axes.minorticks_off()
axes.legend()
plt.show()

# %%
# The later outcomes come, the dearer: a few requests cost little, since open ones are counted in, a
# hundred cost clearly more, and both policies suffer alike.
