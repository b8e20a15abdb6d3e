"""
Which value of ρ should I take?
===============================

An array in a policy's field is a sweep, compiled once. The curve of a sweep names the value with
the least mean regret and all values that are not clearly worse, by paired intervals that hold for
all values at once.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb

plt.style.use("jaxbandits.pictures")
spec = jb.Sweep(
    policies=jb.policies.OmegaUCB(rho=np.geomspace(1 / 64, 4, 9)),
    environments={
        "ten arms": jb.environments.random_bernoulli(jax.random.key(0), instances=300, arms=10)
    },
    constraint=jb.TotalBudget(300.0, last_pull="counts"),
    over="instance",  # the instances were drawn at random: they are what a standard error counts
)
found = jb.sweep(spec)  # jb.sweep(spec, "DIR") saves block by block and continues after a kill
curve = found.curve("OmegaUCB", "ten arms")
print(curve.recommendation())

# %%
# Bars are the paired intervals of the difference to the best value, all at once, drawn around each
# mean.

rho, mean = curve.parameters["rho"], curve.regret.value.values
middle, low, high = (curve.apart[end].values for end in ("difference", "low", "high"))
figure, axes = plt.subplots()
axes.errorbar(rho, mean, yerr=[middle - low, high - middle], fmt="-", color="C0")
alike = curve.indistinguishable
axes.plot(
    rho[~alike],
    mean[~alike],
    "o",
    color="C0",
    markerfacecolor="white",
    label="clearly worse than the best",
)
axes.plot(rho[alike], mean[alike], "o", color="C0", label="not clearly worse")
axes.plot(
    rho[curve.best],
    mean[curve.best],
    "*",
    color="C1",
    markersize=14,
    label="least mean regret: recommended",
)
axes.set(
    xscale="log",
    xlabel="ρ",
    ylabel="regret at the end (reward)",
    ylim=0,
    title=curve.recommendation(),
)
axes.set_xticks(rho, [f"{x:.3g}" for x in rho], minor=False)
axes.minorticks_off()
axes.legend()
plt.show()

# %%
# The least regret is at a middle value, and several of its neighbours cannot be told from it; far
# smaller values lose by rare disasters (their intervals reach high up), far larger ones by trying
# too much.
