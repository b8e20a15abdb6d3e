"""
Is the simulation right? Exact dynamic programming beside it
============================================================

For two arms and a small budget the expected regret can be summed over all histories, in float64 and
without a random number. Every smaller budget is a prefix of the same run, so that one simulation
gives all points.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb

plt.style.use("jaxbandits.pictures")
arms = jb.environments.FiniteArms.bernoulli([0.6, 0.4], [0.8, 0.7])
policies = {
    "ω-UCB": jb.policies.OmegaUCB(rho=0.25),
    "soft elimination": jb.policies.SoftElim(theta=0.5),
}
budgets = np.arange(1, 7)
runs = 20_000
simulated = jb.simulate(
    list(policies.values()),
    arms,
    jb.TotalBudget(6.0, last_pull="counts"),
    key=jax.random.key(0),
    replicates=runs,
    marks=budgets / 6,
)
found = jb.statistics.mean(simulated.regret, over="replicate")

# %%
# The exact value for each budget, and how far the simulated mean is from it.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2))
for number, (name, policy) in enumerate(policies.items()):
    exact = [
        jb.gradients.exact.estimate(
            policy, arms, jb.TotalBudget(float(b), last_pull="counts"), wrt="mean_reward"
        )
        for b in budgets
    ]
    value = np.array([one.value.item() for one in exact])
    print(name, "histories left out, probability:", max(one.about["missing"] for one in exact))
    mean, low, high = (part[number].values for part in (found.value, found.low, found.high))
    left.plot(budgets, value, label=f"{name}, exact")
    left.plot(budgets, mean, "o", color=f"C{number}", label=f"{name}, mean of {runs:,} runs")
    right.errorbar(
        budgets + 0.1 * number, mean - value, yerr=[mean - low, high - mean], fmt="o", label=name
    )
left.set(xlabel="budget (cost)", ylabel="expected regret (reward)", ylim=0)
right.axhline(0, color="black", linewidth=0.8)
right.set(xlabel="budget (cost)", ylabel="simulated − exact (reward), 95 %")
left.legend()
right.legend()
plt.show()

# %%
# The points lie on the lines, and on the right the intervals lie around 0 (budgets are prefixes of
# the same runs, so errors go together).
