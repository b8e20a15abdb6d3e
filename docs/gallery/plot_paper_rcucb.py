"""
What does Figure 4 of the RCUCB paper look like in seconds?
===========================================================

Bengs and Hüllermeier (Machine Learning 112, 2023): regret of RCUCB, UCB and Thompson sampling with
censored consumption. Smaller here: 5,000 rounds instead of 100,000. The paper's instances are not
published; these are the package's stand-in G1.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb
from jaxbandits.policies import RCUCB, ThompsonReduction, UCBReduction

plt.style.use("jaxbandits.pictures")
names = ["PosCorr", "NegCorr", "Indep"]
world = jb.environments.g1(names)
policies = {
    "RCUCB": RCUCB("legal"),
    "UCB, width 1 + λ": UCBReduction("lambda"),
    "Thompson sampling": ThompsonReduction("global"),
}
result = jb.simulate(
    list(policies.values()),
    world,
    jb.Horizon(5000),
    key=jax.random.key(0),
    replicates=30,
    marks=np.linspace(0.05, 1, 20),
)

# %%
# One panel for each instance; a band holds its whole curve at 95 % over thirty runs.

figure, panels = plt.subplots(1, 3, figsize=(10, 3.8), sharey=True)
for instance, (axes, name) in enumerate(zip(panels, names, strict=True)):
    band = jb.statistics.simultaneous_band(result.regret.isel(instance=instance), over="replicate")
    for number, policy in enumerate(policies):
        axes.plot(5000 * np.asarray(result.marks), band.value[number], label=policy)
        axes.fill_between(
            5000 * np.asarray(result.marks), band.low[number], band.high[number], alpha=0.2
        )
    axes.set(xlabel="round", title=name, ylim=0)
panels[0].set_ylabel("regret (reward − cost − penalty)")
panels[0].legend()
plt.show()

# %%
# RCUCB ends below UCB in all three panels, and above Thompson sampling: so early, and on this
# stand-in, it is not the first of the three as in the paper.
