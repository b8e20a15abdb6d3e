"""
How do I let a policy decide on real requests?
==============================================

``jb.live.Agent`` gives a ticket for a request and is told later what it brought and cost. Until
then the money is held, so that a day's budget is never overspent. Two made-up back ends, a day of
400 requests, ten days for each of two policies.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits as jb

BACK_ENDS = {"small": (0.001, 0.70), "large": (0.010, 0.95)}  # mean price in dollars, quality
DAY, BUDGET, REQUESTS = 86_400.0, 1.2, 400


def serve(policy, seed):
    """One day: dollars and quality so far, after each request."""
    rng, now = np.random.default_rng(seed), [0.0]
    agent = jb.live.Agent(
        policy,
        arms={name: 4 * price for name, (price, _) in BACK_ENDS.items()},
        reward_bound=1.0,
        budgets=[jb.live.Budget(BUDGET, every=DAY)],
        key=jax.random.key(seed),
        clock=lambda: now[0],
    )
    told = np.zeros((REQUESTS, 2))
    for request in range(REQUESTS):
        now[0] = DAY * request / REQUESTS
        if ticket := agent.choose():  # None: turned away
            price, quality = BACK_ENDS[ticket.arm]
            told[request] = (
                min(ticket.reserved, price * rng.gamma(2.0, 0.5)),
                rng.random() < quality,
            )
            agent.learn(ticket, reward=told[request, 1], cost=told[request, 0])
    return told.cumsum(axis=0)


plt.style.use("jaxbandits.pictures")
policies = {
    "PricePacer": jb.policies.PricePacer(),
    "spends until it is gone": jb.policies.PricePacer(start=0.0),
}
days = {
    name: np.stack([serve(policy, seed) for seed in range(10)]) for name, policy in policies.items()
}

figure, panels = plt.subplots(1, 2, figsize=(9, 4.2))
for name, day in days.items():
    for axes, values in zip(panels, (day[..., 0], day[..., 1]), strict=True):
        # T, 9 degrees
        middle, error = (
            values.mean(axis=0),
            2.26 * values.std(axis=0, ddof=1) / np.sqrt(len(values)),
        )
        axes.plot(middle, label=name)
        axes.fill_between(np.arange(REQUESTS), middle - error, middle + error, alpha=0.2)
panels[0].axhline(BUDGET, color="black", linewidth=0.8, label="granted for the day")
panels[0].set(xlabel="request of the day", ylabel="dollars spent, mean of ten days, 95 %")
panels[1].set(xlabel="request of the day", ylabel="good answers so far, mean of ten days, 95 %")
panels[0].legend()
plt.show()

# %%
# Without pacing the day's money is gone long before the day is over, and nobody is served after
# that; the pacer spends evenly, never more than was granted, and has far more good answers at the
# end.
