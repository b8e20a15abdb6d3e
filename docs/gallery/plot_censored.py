"""
Which solver do I start, and when do I stop it?
===============================================

A run is bought with a time limit. If it needs longer, only that is seen, and the time is lost: the
outcome is censored. A policy chooses solver and limit together; here each of five made-up solvers
has 400 logged run times, replayed at random.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb
from jaxbandits.environments import Linear, row_arms
from jaxbandits.policies import RCUCB, ThompsonReduction, UCBReduction

plt.style.use("jaxbandits.pictures")
rng = np.random.default_rng(0)
medians, spreads = (30, 40, 60, 25, 90), (1.0, 0.6, 1.5, 2.2, 0.4)  # seconds; of ln(seconds)
seconds = [
    median * np.exp(spread * rng.normal(size=400))
    for median, spread in zip(medians, spreads, strict=True)
]
world = row_arms(
    [[(np.ones(400), times) for times in seconds]],  # a run that ends in time is worth 1
    limits=np.arange(20.0, 201.0, 20.0),
    cost=Linear(1 / 200),
    penalty=Linear(1 / 200),
)
solver, limit, value = world.best_pair()[0]
print(f"best: solver {solver}, stopped after {limit:g} s; a round is then worth {value:.3f}")
policies = {
    "RCUCB, legal": RCUCB("legal", alpha=0.25),
    "UCB on all 50 pairs": UCBReduction("one", alpha=0.25),
    "Thompson on all 50 pairs": ThompsonReduction("per_arm"),
}
result = jb.simulate(
    list(policies.values()), world, jb.Horizon(4000), key=jax.random.key(0), replicates=60, marks=30
)
rounds = 4000 * result.regret.mark

# %%
# Regret to the best solver with its best limit, and the share of runs that were stopped: 95 % bands
# over sixty runs.

figure, panels = plt.subplots(1, 2, figsize=(9, 4.2))
for axes, values in zip(
    panels, (result.regret, result.count("censored") / result.rounds), strict=True
):
    band = jb.statistics.simultaneous_band(values.squeeze("instance"), over="replicate")
    for number, name in enumerate(policies):
        axes.plot(rounds, band.value[number], label=name)
        axes.fill_between(rounds, band.low[number], band.high[number], alpha=0.2)
panels[0].set(xlabel="round", ylabel="regret (value of a run that ends at once)", ylim=0)
panels[1].set(xlabel="round", ylabel="share of runs stopped so far", ylim=0, xscale="log")
panels[0].legend()
plt.show()

# %%
# RCUCB learns from one run about all shorter limits too: it has less than half the regret of the
# two that treat every pair of solver and limit as an arm of its own, and it stops far fewer runs.
