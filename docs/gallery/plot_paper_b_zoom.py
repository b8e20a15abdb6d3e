"""
What does Figure 1 of the B-Zoom paper look like in seconds?
============================================================

Trovò, Paladino, Restelli and Gatti (ECAI 2016): pulls that a budget buys when arms are points of
[0, 1] and cheap ones lie in a narrow valley (λ = 0.1). Smaller here: a budget of 2,000 instead of
500,000. Like the paper's table it counts pulls.
"""

import warnings

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb
from jaxbandits.policies import UCB1, UCBBV1, SinglePhaseBZoom, SinglePhaseZooming

plt.style.use("jaxbandits.pictures")
money, lam, instances = 2_000.0, 0.1, 100
rng = np.random.default_rng(1)
world = jb.environments.cost_valley(rng.random(instances), lam)
points = rng.random((instances, 10))  # ten random points for the policies of finitely many arms
# Of the ratio, one for each instance
slope = world.slopes(lambda reward, cost: reward / cost)[None]
zooming = {
    "B-Zoom": SinglePhaseBZoom(budget=money, lam=lam, lipschitz=slope),
    "Zooming": SinglePhaseZooming(budget=money, lam=lam, lipschitz=0.05),
}
finite = {"UCB-BV1, 10 points": UCBBV1(min_cost=lam), "UCB1, 10 points": UCB1()}
budget, key = jb.TotalBudget(money, last_pull="forfeits"), jax.random.key(16)
# Zooming's L is the reward's, as in the paper
warnings.filterwarnings("ignore", message=".*lipschitz:.*")
pulls = {}
for name, policy in zooming.items():
    pulls[name] = jb.simulate(
        policy, world, budget, key=key, marks=1, engine="scan"
    ).rounds.values.ravel()
for name, index in finite.items():
    pulls[name] = jb.simulate(
        index, world.at(points), budget, key=key, marks=1, engine="scan"
    ).rounds.values.ravel()

# %%
# Boxes: quartiles over a hundred instances, whiskers to the ends; triangles with bars: means with
# 95 % intervals.

figure, axes = plt.subplots()
axes.boxplot([x / 1000 for x in pulls.values()], whis=(0, 100), tick_labels=list(pulls))
for place, x in enumerate(pulls.values(), start=1):
    mean = jb.statistics.mean(x / 1000, over="instance")
    axes.errorbar(
        place + 0.3,
        mean.value,
        yerr=[[mean.value - mean.low], [mean.high - mean.value]],
        fmt="^",
        color="C1",
    )
axes.set(ylabel="pulls paid from the budget (thousand)")
plt.show()

# %%
# Three of the means are alike; Zooming's is carried by a few instances. From its poorest instance
# to the luckiest one each policy buys some three tenths more, Zooming three times as much. The
# paper's lead of B-Zoom takes larger budgets.
