"""
Is my own policy better than ω-UCB?
===================================

A policy is a frozen dataclass; an index policy is one formula. Initial pulls, statistics, ties,
batching and both engines are inherited, and fields made with ``jb.leaf`` may be arrays. Both
policies play the same fifty random instances.
"""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb


@jb.pytree
class RatioUCB(jb.policies.IndexPolicy):
    """(mean reward + radius) / max(mean cost − radius, floor), radius = √(width · ln t / n)."""

    width: Any = jb.leaf(default=0.5, above=0)
    floor: Any = jb.leaf(default=0.01, above=0)
    rests: ClassVar[bool] = (
        True  # reads its own arm and t, and never falls while the arm rests: it may leap
    )

    def score(self, arms):
        radius = jnp.sqrt(self.width * jnp.log(arms.t) / arms.n)
        return (arms.mean_reward + radius) / jnp.maximum(arms.mean_cost - radius, self.floor)


plt.style.use("jaxbandits.pictures")
arms = jb.environments.random_bernoulli(jax.random.key(0), instances=50, arms=10)
budget = jb.TotalBudget(400.0, last_pull="counts")
policies = [RatioUCB(width=[0.05, 0.5]), jb.policies.OmegaUCB(rho=0.25)]
result = jb.simulate(
    policies, arms, budget, key=jax.random.key(1), replicates=10, marks=np.linspace(0.05, 1, 20)
)

# %%
# What was sampled are the instances: a band holds its whole curve at 95 %.

money = 400.0 * result.regret.mark
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2))
omega = result.regret.sel(setting=result.settings[-1])
for setting in result.settings:
    for axes, against in ((left, 0.0), (right, omega)):
        band = jb.statistics.simultaneous_band(
            result.regret.sel(setting=setting) - against, over="instance"
        )
        axes.plot(money, band.value, label=setting)
        axes.fill_between(money, band.low, band.high, alpha=0.2)
left.set(xlabel="money spent", ylabel="regret (reward)", ylim=0)
right.set(xlabel="money spent", ylabel="more regret than ω-UCB (reward), paired")
left.legend()
plt.show()

# %%
# The wide radius (width 0.5) loses clearly more than ω-UCB, as its whole band lies above; the
# narrow one stays close to it.
