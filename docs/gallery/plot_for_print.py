"""
How does one figure of each paper look in a paper?
==================================================

With the style ``jaxbandits.column`` a figure is ready to include: 3.25 inches wide, letters of 7
and 8 points, fonts embedded. Here one of each of the five papers, small enough for half a minute.
"""

import tempfile
from typing import Any

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb
from jaxbandits import environments as worlds
from jaxbandits import policies

plt.style.use(["jaxbandits.pictures", "jaxbandits.column"])
random, valley = (
    worlds.random_bernoulli(jax.random.key(0), 60, 5),
    worlds.cost_valley(np.linspace(0.03, 0.97, 30), 0.1),
)
beta = worlds.FiniteArms.beta([4.5, 7.0, 8.0], [5.5, 3.0, 2.0], [3.0, 7.5, 8.0], [7.0, 2.5, 2.0])
reservoir = worlds.Reservoir.ratio(
    jax.random.key(1), instances=60, capacity=policies.room_needed(1000.0, 1.0)
)
folder = tempfile.mkdtemp()
slope = valley.slopes(lambda reward, cost: reward / cost)[None]
zoom = policies.SinglePhaseBZoom(budget=200.0, lam=0.1, lipschitz=slope)
points = policies.OnPoints(policies.OmegaUCB(), np.linspace(0.05, 0.95, 10))
papers: dict[str, Any] = {  # policies by the names in the key, world, what ends a run, what intervals are about
    "omega_ucb": (
        {"ω-UCB, ρ = ¼": policies.OmegaUCB(rho=0.25), "ω-UCB, ρ = 1": policies.OmegaUCB(rho=1.0)},
        random, jb.TotalBudget(200.0, last_pull="counts"), "instance",
    ),
    "rcucb": (
        {"RCUCB": policies.RCUCB("legal"), "UCB, width 1 + λ": policies.UCBReduction("lambda")},
        worlds.g1(["PosCorr", "NegCorr"]), jb.Horizon(2000), "replicate",
    ),
    "b_zoom": (
        {"B-Zoom": zoom, "ω-UCB, ten points": points},
        valley, jb.TotalBudget(200.0, last_pull="forfeits"), "instance",
    ),
    "suak": (
        {"SUAK": policies.SUAK(c=0.5), "OPS": policies.Guarded(policies.OnePhase(c=0.5, horizon=5000))},
        worlds.WithNullArm(beta), jb.AverageCost(c=0.5, rounds=5000), "replicate",
    ),
    "rcb": (
        {"RCB-AIR": policies.rcb_air(1.0), "RCB-I": policies.rcb_i(100.0, 1.0)},
        reservoir, jb.TotalBudget(100.0, last_pull="forfeits"), "instance",
    ),
}  # fmt: skip
for paper, (players, world, limit, over) in papers.items():
    runs = 10 if over == "replicate" else 2
    result = jb.simulate(
        list(players.values()),
        world,
        limit,
        key=jax.random.key(2),
        replicates=runs,
        marks=20,
        engine="scan",
    )
    figure, axes = plt.subplots()
    result.plot.regret(over, settings=dict(zip(result.settings, players, strict=True)), ax=axes)
    axes.set_ylabel("regret (reward)")
    figure.savefig(f"{folder}/{paper}.pdf")
    plt.show()

# %%
# Each file fits one column as it is, in colour and in grey. Without pyplot the same is one line for
# each result: ``result.plot.regret(over="instance", path="omega_ucb.pdf", width="column")``.
