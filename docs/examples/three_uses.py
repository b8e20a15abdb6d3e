"""The three pictures of the home page and of README: `python docs/examples/three_uses.py` draws
them again.
"""

from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb
from jaxbandits.gradients import exact, policy_score

IMAGES = Path(__file__).resolve().parents[1] / "images"

# 1. Which policy loses least?
arms = jb.environments.random_bernoulli(jax.random.key(0), instances=200, arms=10)
budget = jb.TotalBudget(300.0, last_pull="counts")
policies = [
    jb.policies.OmegaUCB(rho=[0.0625, 0.25, 1.0]),
    jb.policies.BudgetedThompson(),
    jb.policies.MUCB(),
]
result = jb.simulate(policies, arms, budget, key=jax.random.key(1), replicates=4, engine="scan")
result.plot.regret(over="instance", path=IMAGES / "use_regret.png", width="column")

# 2. Which value of its parameter?
sweep = jb.Sweep(
    policies=jb.policies.OmegaUCB(rho=np.geomspace(1 / 64, 4, 9)), environments={"ten arms": arms},
    constraint=budget, over="instance", replicates=4, marks=1,
)  # fmt: skip
jb.sweep(sweep).plot.sensitivity(path=IMAGES / "use_sensitivity.png", width="column")

# 3. Which way does the regret fall?
two, rounds = jb.environments.FiniteArms.bernoulli([0.6, 0.4], [0.5, 0.5]), jb.Horizon(25)
fine, theta = np.geomspace(0.15, 3.0, 25), np.geomspace(0.2, 2.5, 7)
truth = [
    exact.estimate(jb.policies.SoftElim(theta=x), two, rounds, wrt="theta") for x in fine.tolist()
]
slope = policy_score.estimate(
    jb.policies.SoftElim(theta=theta),
    two,
    rounds,
    wrt="theta",
    key=jax.random.key(0),
    replicates=3000,
)
plt.style.use(["jaxbandits.pictures", "jaxbandits.column"])
figure, axes = plt.subplots()
axes.plot(fine, [one.gradient["theta"].item() for one in truth], label="exact")
bars = 1.96 * slope.standard_error["theta"][:, 0]
axes.errorbar(
    theta, slope.gradient["theta"][:, 0], yerr=bars, fmt="o", color="C1", label="estimated, 95 %"
)
axes.axhline(0, color="black", linewidth=0.8)
axes.set(
    xlabel="θ of SoftElim, log scale", ylabel="slope of the regret in θ (reward)", xscale="log"
)
axes.set_xticks([0.2, 0.5, 1, 2], ["0.2", "0.5", "1", "2"])
axes.minorticks_off()
axes.legend()
figure.savefig(IMAGES / "use_gradient.png")
