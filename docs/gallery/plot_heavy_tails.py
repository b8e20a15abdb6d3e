"""
Why does the mean of a hundred runs mislead?
============================================

A small ρ is a little better on most instances, and ruinous on a few where the run settles on a
wrong arm. So the mean is carried by those few, and how many of them a sample of a hundred has is
luck.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb

plt.style.use("jaxbandits.pictures")
arms = jb.environments.random_bernoulli(jax.random.key(0), instances=2000, arms=10)
budget = jb.TotalBudget(1000.0, last_pull="counts")
result = jb.simulate(
    jb.policies.OmegaUCB(rho=[1 / 64, 1 / 2]), arms, budget, key=jax.random.key(1), marks=1
)
last = result.regret.isel(mark=-1)
for setting in result.settings:
    one = last.sel(setting=setting)
    median, mean = (
        make(one, over="instance") for make in (jb.statistics.median, jb.statistics.mean)
    )
    print(setting, "median", median, "mean", mean)
    print(
        "   share of the sum that the worst 2 % carry:",
        jb.statistics.tail_share(one, 0.02, over="instance"),
    )

# %%
# How many runs lost at least so much; and what the mean of a hundred instances would have been,
# twenty times over.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2))
for number, setting in enumerate(result.settings):
    values = np.sort(last.sel(setting=setting).values.ravel())
    left.step(values, 1 - np.arange(values.size) / values.size, where="pre", label=setting)
    hundreds = last.sel(setting=setting).values.reshape(20, 100).mean(axis=1)
    right.plot(
        np.arange(1, 21),
        np.sort(hundreds),
        "o",
        color=f"C{number}",
        linestyle="none",
        label=setting,
    )
    whole = jb.statistics.mean(last.sel(setting=setting), over="instance")
    right.axhspan(
        whole.low, whole.high, color=f"C{number}", alpha=0.2, label="all 2,000: mean, 95 %"
    )
left.set(
    xscale="log",
    yscale="log",
    xlim=1,
    xlabel="regret at the end (reward)",
    ylabel="share of runs with at least this regret",
)
right.set(
    xticks=[1, 10, 20],
    xlabel="twenty samples of 100 instances, sorted",
    ylabel="mean regret of the sample (reward)",
    ylim=0,
)
left.legend()
right.legend()
plt.show()

# %%
# With ρ = 1/64 the typical run loses less than with ρ = 1/2 (left, above), but one in ten loses far
# more; and its twenty means of a hundred instances, all honest, differ by more than a factor of
# two.
