"""
My bids are a continuum: how fine a grid do I need?
===================================================

A bid x in [0, 1] brings a click with a probability that rises and flattens, and costs more the
higher it is. Two functions make the world; its regret is measured against the best of all bids. A
grid of any policy's points stands beside zooming.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb
from jaxbandits.policies import OmegaUCB, OnPoints, SinglePhaseBZoom


def click(x, p):
    return 0.05 + 0.75 * (1 - jnp.exp(-p["steep"] * x))


def price(x, p):
    return 0.3 + 0.6 * x**2


plt.style.use("jaxbandits.pictures")
steep = np.linspace(2.0, 8.0, 10)  # one market each
world = jb.environments.Continuum.of(
    click, price, lipschitz_reward=0.75 * steep, lipschitz_cost=1.2, parameters={"steep": steep}
)
budget = jb.TotalBudget(1500.0, last_pull="forfeits")
zoom = SinglePhaseBZoom(budget=1500.0, lam=0.3, lipschitz=30.0)
policies = {
    f"ω-UCB on {k} bids": OnPoints(OmegaUCB(), (np.arange(k) + 0.5) / k) for k in (3, 10, 100)
} | {"B-Zoom": zoom}
results = {
    name: jb.simulate(
        policy, world, budget, key=jax.random.key(0), replicates=10, marks=np.linspace(0.05, 1, 20)
    )
    for name, policy in policies.items()
}

# %%
# 95 % bands over ten runs on each of the ten markets, which are given.

figure, axes = plt.subplots()
for name, result in results.items():
    band = jb.statistics.simultaneous_band(result.regret.squeeze("setting"), over="replicate")
    money = 1500.0 * result.regret.mark
    axes.plot(money, band.value, label=name)
    axes.fill_between(money, band.low, band.high, alpha=0.2)
axes.set(xlabel="money spent", ylabel="regret to the best bid (clicks)", ylim=0)
axes.legend()
plt.show()

# %%
# Ten bids are enough: three are too coarse, a hundred take too long to try, and at this budget
# zooming, whose intervals must hold for all points at once, still tries nearly everything.
