"""Policies by the names that a command line uses."""

from __future__ import annotations

from collections.abc import Mapping

from jaxbandits.core.protocol import Policy
from jaxbandits.policies import (
    CUCB,
    IUCB,
    KLUCBSC,
    KUBE,
    MRCB,
    MUCB,
    SUAK,
    UCB1,
    UCBB2,
    UCBBV1,
    UCBBV2,
    UCBSC,
    BGreedy,
    BudgetedThompson,
    BudgetUCB,
    EpsilonFirst,
    EstimatedBudgetUCB,
    FractionalKUBE,
    KLUCBSCPlus,
    OmegaStarUCB,
    OmegaUCB,
    OnePhase,
    Pacer,
    PDBwK,
    PrimalDualTwoPhase,
    UCBSCPlus,
    UCBSimplex,
)

POLICIES: Mapping[str, type[Policy]] = {
    "omega_ucb": OmegaUCB,
    "omega_star_ucb": OmegaStarUCB,
    "bts": BudgetedThompson,
    "m_ucb": MUCB,
    "c_ucb": CUCB,
    "i_ucb": IUCB,
    "b_greedy": BGreedy,
    "budget_ucb": BudgetUCB,
    "estimated_budget_ucb": EstimatedBudgetUCB,
    "ucb_sc_plus": UCBSCPlus,
    "ucb_sc": UCBSC,
    "kl_ucb_sc_plus": KLUCBSCPlus,
    "kl_ucb_sc": KLUCBSC,
    "epsilon_first": EpsilonFirst,
    "kube": KUBE,
    "fractional_kube": FractionalKUBE,
    "ucb_bv1": UCBBV1,
    "ucb_bv2": UCBBV2,
    "pd_bwk": PDBwK,
    "mrcb": MRCB,
    "ucb_b2": UCBB2,
    "ucb1": UCB1,
}
"""What ``compare --policies`` calls the policies for a total budget: class by name."""

AVERAGE_COST_POLICIES: Mapping[str, type[Policy]] = {
    "suak": SUAK,
    "one_phase": OnePhase,
    "primal_dual": PrimalDualTwoPhase,
    "ucb_simplex": UCBSimplex,
    "pacer": Pacer,
}
"""For an average-cost constraint; their ``c`` and ``horizon`` are those of the constraint."""
