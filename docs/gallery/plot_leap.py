"""
Does the fast engine change my results?
=======================================

``leap`` plays many pulls of one leader at a time. What an arm brings at its n-th pull has an
address and no order, money is counted in whole ticks, and a block counts only if its scores say so:
the accounts are those of ``scan``, to the bit.
"""

import time

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb

plt.style.use("jaxbandits.pictures")
arms = jb.environments.random_bernoulli(jax.random.key(0), instances=10, arms=10)
budgets, rounds = [50.0, 200.0, 800.0], []
seconds: dict[str, list[list[float]]] = {"scan": [], "leap": []}
for budget in [*budgets[:1], *budgets]:  # the first one twice: the first time it is compiled
    ledgers = {}
    for engine, times in seconds.items():
        took = []
        for _ in range(3):
            began = time.perf_counter()
            result = jb.simulate(
                jb.policies.OmegaUCB(),
                arms,
                jb.TotalBudget(budget, last_pull="counts"),
                key=jax.random.key(1),
                replicates=10,
                marks=4,
                engine=engine,
            )
            took.append(time.perf_counter() - began)
        times.append(took)
        ledgers[engine] = result.ledger
    rounds.append(result.ledger["rounds"][..., -1].sum())
    same = all(
        np.array_equal(ledgers["scan"][name], ledgers["leap"][name]) for name in ledgers["scan"]
    )
    print(f"budget {budget:g}: {rounds[-1]:,} rounds, every account the same: {same}")
    assert same

# %%
# Seconds of a call that is compiled already, on this machine: the middle of three, with the fastest
# and the slowest.

figure, axes = plt.subplots()
for engine, times in seconds.items():
    low, middle, high = np.sort(times[1:], axis=1).T
    axes.errorbar(rounds[1:], middle, yerr=[middle - low, high - middle], marker="o", label=engine)
axes.set(
    xscale="log",
    yscale="log",
    xlabel="total number of rounds",
    ylabel="seconds",
    title="the same bits",
)
axes.legend()
plt.show()

# %%
# No account differs by a single tick; what differs is the time, the more so the longer the runs
# are.
