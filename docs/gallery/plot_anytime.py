"""
Can I keep an average cost at every single round?
=================================================

Under ``AverageCost`` what was spent by round t may not exceed c·t, for every t. The constraint is
an audit in exact ticks: it alters no action and reports the largest violation. An oracle that knows
the best mixture still strays above the line; SUAK skips rounds when a pull could break it.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb
from jaxbandits.environments import FiniteArms, WithNullArm
from jaxbandits.policies import SUAK, FluidOracle, Guarded

plt.style.use("jaxbandits.pictures")
reward, cost, c, rounds = np.array([0.45, 0.70, 0.80]), np.array([0.30, 0.75, 0.80]), 0.5, 5000
world = WithNullArm(FiniteArms.beta(10 * reward, 10 * (1 - reward), 10 * cost, 10 * (1 - cost)))
oracle = FluidOracle(reward, cost, c=c)
policies = {"SUAK, learning": SUAK(c=c), "oracle": oracle, "oracle that skips": Guarded(oracle)}
result = jb.simulate(
    list(policies.values()),
    world,
    jb.AverageCost(c=c, rounds=rounds),
    key=jax.random.key(0),
    replicates=100,
    marks=np.linspace(0.02, 1, 50),
)
t = rounds * result.violation.mark

# %%
# The audit, and what keeping the promise costs: 95 % bands over a hundred runs.

figure, panels = plt.subplots(1, 2, figsize=(9, 4.2))
for axes, values in zip(panels, (result.violation, result.regret), strict=True):
    band = jb.statistics.simultaneous_band(values.squeeze("instance"), over="replicate")
    for number, name in enumerate(policies):
        axes.plot(t, band.value[number], label=name)
        axes.fill_between(t, band.low[number], band.high[number], alpha=0.2)
panels[0].set(
    xlabel="round", ylabel="largest violation so far (cost)", title="audit: spent beyond c·t"
)
panels[1].set(xlabel="round", ylabel="regret to the best mixture (reward)", title="regret")
panels[0].legend()
plt.show()
worst = result.violation.isel(mark=-1).max(["instance", "replicate"]).values
print({name: float(x) for name, x in zip(policies, worst, strict=True)})

# %%
# In every round of every run the violation of SUAK and of the oracle that skips is exactly 0, while
# that of the oracle without skips grows (the two lie on one line). What a learner pays for not
# knowing the means is the distance between the curves on the right.
