"""
How does the expected regret change with a parameter?
=====================================================

``jax.grad`` through a run that draws arms gives 0, or something wrong; an estimator with a name
gives a slope with a standard error. Here the score function of a randomised policy, beside the
exact slope by dynamic programming.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb
from jaxbandits.gradients import exact, policy_score

plt.style.use("jaxbandits.pictures")
arms, rounds = jb.environments.FiniteArms.bernoulli([0.6, 0.4], [0.5, 0.5]), jb.Horizon(25)
fine, theta = np.geomspace(0.15, 3.0, 25), np.geomspace(0.2, 2.5, 7)
truth = [
    exact.estimate(jb.policies.SoftElim(theta=float(x)), arms, rounds, wrt="theta") for x in fine
]
found = policy_score.estimate(
    jb.policies.SoftElim(theta=theta),
    arms,
    rounds,
    wrt="theta",
    key=jax.random.key(0),
    replicates=3000,
)

# %%
# Bars are 1.96 standard errors over 3,000 worlds. All values of θ meet the same worlds, so errors
# of neighbours go together.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2))
lines = ([one.value.item() for one in truth], [one.gradient["theta"].item() for one in truth])
points = (found.value[:, 0], found.gradient["theta"][:, 0])
errors = (found.standard_error["value"][:, 0], found.standard_error["theta"][:, 0])
labels = ("expected regret after 25 rounds (reward)", "its slope in θ (reward per unit of θ)")
for axes, line, point, error, label in zip(
    (left, right), lines, points, errors, labels, strict=True
):
    axes.plot(fine, line, label="exact")
    axes.errorbar(theta, point, yerr=1.96 * error, fmt="o", color="C1", label="estimated, 95 %")
    axes.set(xlabel="θ of SoftElim", ylabel=label, xscale="log")
    axes.set_xticks([0.2, 0.5, 1, 2], ["0.2", "0.5", "1", "2"])
    axes.minorticks_off()
right.axhline(0, color="black", linewidth=0.8)
left.legend()
plt.show()

# %%
# The estimates lie around the exact lines as wide as their bars say, the regret is least where the
# slope crosses 0, and the smaller θ, the noisier the estimated slope.
