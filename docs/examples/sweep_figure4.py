"""Figure 4 of the ω-UCB paper (Heyden et al., KDD 2024, §6.2): regret at the full budget against ρ,
nine settings.

jaxbandits sweep docs/examples/sweep_figure4.py --out sweep-figure4
"""

import jax
import numpy as np

import jaxbandits as jb

RHO = np.geomspace(2.0**-6, 2.0, 16)
FAMILIES = {
    "S-Br": jb.environments.random_bernoulli,
    "S-GBr": jb.environments.random_generalised_bernoulli,
    "S-Bt": jb.environments.random_beta,
}


def budget(arms, multiple):
    """``multiple`` times the mean cost of each instance's cheapest arm, as in the paper."""
    return jb.TotalBudget(multiple * arms.values()[1].min(axis=1), last_pull="counts")


sweep = jb.Sweep(
    title="Figure 4 of the ω-UCB paper: sensitivity to ρ at the full budget, 1.5·10⁵ · c_min",
    policies=[jb.policies.OmegaUCB(rho=RHO), jb.policies.OmegaStarUCB(rho=RHO)],
    environments={
        f"{name}-{arms}": family(jax.random.key(4), instances=100, arms=arms)
        for name, family in FAMILIES.items()
        for arms in (10, 50, 100)
    },
    budgets=[150_000],
    constraint=budget,
    over="instance",
)
