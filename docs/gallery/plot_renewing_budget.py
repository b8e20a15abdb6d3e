"""
How do I make a daily budget last the day?
==========================================

``Renewing`` grants so much a day; the traffic says how many requests each hour has. A pacer puts a
price on money and moves it, an even pace follows the forecast, and greed spends until nothing is
left. Reservations keep all three from overspending a tick.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb
from jaxbandits.environments import Delayed, FiniteArms
from jaxbandits.policies import EvenPace, InFlight, PricePacer

plt.style.use("jaxbandits.pictures")
days, hours = 3, np.rint(20 * (1.2 + np.sin(2 * np.pi * (np.arange(24) - 9) / 24))).astype(int)
requests = np.tile(hours, days)
# Three back ends of qualities 0.70, 0.90, 0.95 at costs 0.02, 0.10, 0.40.
late = Delayed(FiniteArms.beta([7, 9, 19], [3, 1, 1], [1, 4, 16], [49, 36, 24]))
day = jb.Renewing(amount=[60.0], every=[24], requests=requests)
greedy = PricePacer(start=0.0)
policies = {
    "PricePacer": PricePacer(),
    "even pace": EvenPace(greedy),
    "spends until it is gone": greedy,
}
result = jb.simulate(
    [InFlight(policy) for policy in policies.values()],
    late,
    day,
    key=jax.random.key(0),
    replicates=40,
    marks=np.cumsum(requests) / requests.sum(),
)
print("overspent, largest of all periods and runs:", float(result.violation.max()))

# %%
# Money of the day so far at the end of each hour, and the quality of all answers so far; 95 % bands
# over forty runs.

spent = result.spent.isel(resource=0, instance=0)
before = (
    spent.shift(mark=1, fill_value=0.0).isel(mark=slice(None, None, 24)).values.repeat(24, axis=-1)
)
figure, panels = plt.subplots(1, 2, figsize=(9, 4.2))
for axes, values in zip(panels, (spent - before, result.reward.isel(instance=0)), strict=True):
    band = jb.statistics.simultaneous_band(values, over="replicate")
    for number, name in enumerate(policies):
        axes.plot(np.arange(1, 24 * days + 1), band.value[number], label=name)
        axes.fill_between(
            np.arange(1, 24 * days + 1), band.low[number], band.high[number], alpha=0.2
        )
    axes.set(xlabel="hour", xticks=range(0, 24 * days + 1, 12))
panels[0].axhline(60.0, color="black", linewidth=0.8)
panels[0].set(ylabel="spent today (cost), line: granted")
panels[1].set(ylabel="quality of all answers so far (reward)")
panels[1].legend()
plt.show()

# %%
# Greed is out of money at noon. An even pace makes it last, yet buys the dearest answers with it;
# the price buys many more that are almost as good. No budget is overspent by a tick.
