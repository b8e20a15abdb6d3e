"""How sensitive are ω-UCB and ω*-UCB to ρ? About a minute on two cores.

    jaxbandits sweep docs/examples/sweep_rho.py --out sweep-rho

The instances are those of the ω-UCB paper (10 arms, generalised Bernoulli and Beta), drawn at random; the budget is a
seventh of the paper's.
"""

import jax
import numpy as np

import jaxbandits as jb

RHO = np.geomspace(2.0**-6, 2.0, 16)


def budget(arms, multiple):
    """``multiple`` times the mean cost of each instance's cheapest arm, as in the paper."""
    return jb.TotalBudget(multiple * np.nanmin(arms.values()[1], axis=1), last_pull="counts")


sweep = jb.Sweep(
    title="Sensitivity of ω-UCB and ω*-UCB to ρ",
    policies=[jb.policies.OmegaUCB(rho=RHO), jb.policies.OmegaStarUCB(rho=RHO)],
    environments={
        "generalised Bernoulli": jb.environments.random_generalised_bernoulli(
            jax.random.key(1), instances=100, arms=10
        ),
        "Beta": jb.environments.random_beta(jax.random.key(2), instances=100, arms=10),
    },
    budgets=[20_000],
    constraint=budget,
    over="instance",
    block_seconds=1.0,
)
