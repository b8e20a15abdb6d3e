"""Policies for a bound on the average cost."""

from jaxbandits.policies.average_cost.fluid import FluidOracle
from jaxbandits.policies.average_cost.one_phase import OnePhase
from jaxbandits.policies.average_cost.pacer import Pacer
from jaxbandits.policies.average_cost.primal_dual import PrimalDualTwoPhase
from jaxbandits.policies.average_cost.simplex import UCBSimplex
from jaxbandits.policies.average_cost.suak import SUAK

__all__ = [
    "SUAK",
    "FluidOracle",
    "OnePhase",
    "Pacer",
    "PrimalDualTwoPhase",
    "UCBSimplex",
]
