"""How sensitive are ω-UCB and ω*-UCB to ρ? About a minute on two cores.

    jaxbandits sweep docs/examples/sweep_rho.py --out sweep-rho

The three settings with 10 arms of Figure 4 of the ω-UCB paper (Heyden et al., KDD 2024, §6.2).
"""

import jax
import numpy as np

import jaxbandits as jb

RHO = np.geomspace(2.0**-6, 2.0, 16)


def budget(arms, multiple):
    """``multiple`` times the mean cost of each instance's cheapest arm, as in the paper."""
    return jb.TotalBudget(multiple * arms.values()[1].min(axis=1), last_pull="counts")


sweep = jb.Sweep(
    title="Sensitivity of ω-UCB and ω*-UCB to ρ",
    policies=[jb.policies.OmegaUCB(rho=RHO), jb.policies.OmegaStarUCB(rho=RHO)],
    environments={
        "S-Br-10": jb.environments.random_bernoulli(jax.random.key(4), instances=100, arms=10),
        "S-GBr-10": jb.environments.random_generalised_bernoulli(
            jax.random.key(4), instances=100, arms=10
        ),
        "S-Bt-10": jb.environments.random_beta(jax.random.key(4), instances=100, arms=10),
    },
    budgets=[150_000],
    constraint=budget,
    over="instance",
    block_seconds=1.0,
)
