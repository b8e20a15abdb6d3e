"""How sensitive are m-UCB, c-UCB and i-UCB to α? Random instances of the ω-UCB paper, a tenth of
its budget.

jaxbandits sweep docs/examples/sweep_alpha.py --out sweep-alpha
"""

import jax
import numpy as np

import jaxbandits as jb

ALPHA = np.geomspace(2.0**-7, 2.0, 17)
FAMILIES = {
    "S-Br": jb.environments.random_bernoulli,
    "S-GBr": jb.environments.random_generalised_bernoulli,
    "S-Bt": jb.environments.random_beta,
}


def budget(arms, multiple):
    """``multiple`` times the mean cost of each instance's cheapest arm, as in the paper."""
    return jb.TotalBudget(multiple * arms.values()[1].min(axis=1), last_pull="counts")


sweep = jb.Sweep(
    title="Sensitivity of m-UCB, c-UCB and i-UCB to α",
    policies=[
        policy(alpha=ALPHA) for policy in (jb.policies.MUCB, jb.policies.CUCB, jb.policies.IUCB)
    ],
    environments={
        f"{name}-10": family(jax.random.key(4), instances=100, arms=10)
        for name, family in FAMILIES.items()
    },
    budgets=[15_000, 150_000],
    constraint=budget,
    over="instance",
)
