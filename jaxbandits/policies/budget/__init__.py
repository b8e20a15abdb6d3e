"""Policies for a budget: reward per cost."""

from jaxbandits.policies.budget.best_ratio import BestRatioOracle
from jaxbandits.policies.budget.budget_ucb import BudgetUCB, EstimatedBudgetUCB
from jaxbandits.policies.budget.epsilon_first import EpsilonFirst
from jaxbandits.policies.budget.greedy import BGreedy
from jaxbandits.policies.budget.kube import KUBE, FractionalKUBE
from jaxbandits.policies.budget.mrcb import MRCB
from jaxbandits.policies.budget.omega import OmegaStarUCB, OmegaUCB
from jaxbandits.policies.budget.pd_bwk import PDBwK, PDBwKWithTime
from jaxbandits.policies.budget.ratio import CUCB, IUCB, MUCB
from jaxbandits.policies.budget.rcb import RCB
from jaxbandits.policies.budget.soft_elim import SoftElim
from jaxbandits.policies.budget.soft_index import SoftIndex
from jaxbandits.policies.budget.thompson import BudgetedThompson
from jaxbandits.policies.budget.ucb1 import UCB1
from jaxbandits.policies.budget.ucb_b2 import UCBB2
from jaxbandits.policies.budget.ucb_bv import UCBBV1, UCBBV2
from jaxbandits.policies.budget.ucb_sc import KLUCBSC, UCBSC, KLUCBSCPlus, UCBSCPlus
from jaxbandits.policies.budget.ucb_v import UCBVRatio, UCBVReward

__all__ = [
    "CUCB",
    "IUCB",
    "KLUCBSC",
    "KUBE",
    "MRCB",
    "MUCB",
    "RCB",
    "UCB1",
    "UCBB2",
    "UCBBV1",
    "UCBBV2",
    "UCBSC",
    "BGreedy",
    "BestRatioOracle",
    "BudgetUCB",
    "BudgetedThompson",
    "EpsilonFirst",
    "EstimatedBudgetUCB",
    "FractionalKUBE",
    "KLUCBSCPlus",
    "OmegaStarUCB",
    "OmegaUCB",
    "PDBwK",
    "PDBwKWithTime",
    "SoftElim",
    "SoftIndex",
    "UCBSCPlus",
    "UCBVRatio",
    "UCBVReward",
]
