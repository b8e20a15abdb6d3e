"""Learners: pure functions of (state, key, observation)."""

from jaxbandits.policies.average_cost.fluid import FluidOracle
from jaxbandits.policies.average_cost.one_phase import OnePhase
from jaxbandits.policies.average_cost.pacer import Pacer
from jaxbandits.policies.average_cost.primal_dual import PrimalDualTwoPhase
from jaxbandits.policies.average_cost.simplex import UCBSimplex
from jaxbandits.policies.average_cost.suak import SUAK
from jaxbandits.policies.base.exploration import LogExploration, LogLogExploration, SlowLogExploration
from jaxbandits.policies.base.guarded import Guarded
from jaxbandits.policies.base.in_flight import InFlight
from jaxbandits.policies.base.index import IndexPolicy
from jaxbandits.policies.base.mixture import MixturePolicy
from jaxbandits.policies.base.randomised import RandomisedPolicy
from jaxbandits.policies.base.zooming import ZoomingPolicy
from jaxbandits.policies.budget.best_ratio import BestRatioOracle
from jaxbandits.policies.budget.budget_ucb import BudgetUCB, EstimatedBudgetUCB
from jaxbandits.policies.budget.epsilon_first import EpsilonFirst
from jaxbandits.policies.budget.fixed_split import FixedSplit
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
from jaxbandits.policies.censored.rcucb import RCUCB
from jaxbandits.policies.censored.reductions import ThompsonReduction, UCBReduction
from jaxbandits.policies.censored.z_rcucb import ZRCUCB, fine_limits
from jaxbandits.policies.continuum.b_zoom import BZoom, SinglePhaseBZoom
from jaxbandits.policies.continuum.on_points import OnPoints
from jaxbandits.policies.continuum.trees import HOO, StoOO
from jaxbandits.policies.continuum.zooming import SinglePhaseZooming, Zooming
from jaxbandits.policies.many_arms.sampling import (
    ArmIncreasing,
    SampledArms,
    arms_to_sample,
    rcb_air,
    rcb_i,
    room_needed,
)
from jaxbandits.policies.renewing.even_pace import EvenPace
from jaxbandits.policies.renewing.price_pacer import PricePacer

__all__ = [
    "CUCB",
    "HOO",
    "IUCB",
    "KLUCBSC",
    "KUBE",
    "MRCB",
    "MUCB",
    "RCB",
    "RCUCB",
    "SUAK",
    "UCB1",
    "UCBB2",
    "UCBBV1",
    "UCBBV2",
    "UCBSC",
    "ZRCUCB",
    "ArmIncreasing",
    "BGreedy",
    "BZoom",
    "BestRatioOracle",
    "BudgetUCB",
    "BudgetedThompson",
    "EpsilonFirst",
    "EstimatedBudgetUCB",
    "EvenPace",
    "FixedSplit",
    "FluidOracle",
    "FractionalKUBE",
    "Guarded",
    "InFlight",
    "IndexPolicy",
    "KLUCBSCPlus",
    "LogExploration",
    "LogLogExploration",
    "MixturePolicy",
    "OmegaStarUCB",
    "OmegaUCB",
    "OnPoints",
    "OnePhase",
    "PDBwK",
    "PDBwKWithTime",
    "Pacer",
    "PricePacer",
    "PrimalDualTwoPhase",
    "RandomisedPolicy",
    "SampledArms",
    "SinglePhaseBZoom",
    "SinglePhaseZooming",
    "SlowLogExploration",
    "SoftElim",
    "SoftIndex",
    "StoOO",
    "ThompsonReduction",
    "UCBReduction",
    "UCBSCPlus",
    "UCBSimplex",
    "UCBVRatio",
    "UCBVReward",
    "Zooming",
    "ZoomingPolicy",
    "arms_to_sample",
    "fine_limits",
    "rcb_air",
    "rcb_i",
    "room_needed",
]
