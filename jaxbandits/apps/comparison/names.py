"""The command's names of policies and their classes, without importing jax."""

from __future__ import annotations

from collections.abc import Mapping

NAMES: Mapping[str, str] = {
    "omega_ucb": "OmegaUCB",
    "omega_star_ucb": "OmegaStarUCB",
    "bts": "BudgetedThompson",
    "m_ucb": "MUCB",
    "c_ucb": "CUCB",
    "i_ucb": "IUCB",
    "b_greedy": "BGreedy",
    "budget_ucb": "BudgetUCB",
    "estimated_budget_ucb": "EstimatedBudgetUCB",
    "ucb_sc_plus": "UCBSCPlus",
    "ucb_sc": "UCBSC",
    "kl_ucb_sc_plus": "KLUCBSCPlus",
    "kl_ucb_sc": "KLUCBSC",
    "epsilon_first": "EpsilonFirst",
    "kube": "KUBE",
    "fractional_kube": "FractionalKUBE",
    "ucb_bv1": "UCBBV1",
    "ucb_bv2": "UCBBV2",
    "pd_bwk": "PDBwK",
    "mrcb": "MRCB",
    "ucb_b2": "UCBB2",
    "ucb1": "UCB1",
}
