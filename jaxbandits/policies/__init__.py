"""Learners: pure functions of (state, key, observation)."""

from jaxbandits.policies.censored_reductions import ThompsonReduction as ThompsonReduction
from jaxbandits.policies.censored_reductions import UCBReduction as UCBReduction
from jaxbandits.policies.fluid import FluidOracle as FluidOracle
from jaxbandits.policies.greedy import BGreedy as BGreedy
from jaxbandits.policies.guarded import Guarded as Guarded
from jaxbandits.policies.index import IndexPolicy as IndexPolicy
from jaxbandits.policies.mixture import MixturePolicy as MixturePolicy
from jaxbandits.policies.omega import OmegaStarUCB as OmegaStarUCB
from jaxbandits.policies.omega import OmegaUCB as OmegaUCB
from jaxbandits.policies.one_phase import OnePhase as OnePhase
from jaxbandits.policies.pacer import Pacer as Pacer
from jaxbandits.policies.primal_dual import PrimalDualTwoPhase as PrimalDualTwoPhase
from jaxbandits.policies.ratio import CUCB as CUCB
from jaxbandits.policies.ratio import IUCB as IUCB
from jaxbandits.policies.ratio import MUCB as MUCB
from jaxbandits.policies.rcucb import RCUCB as RCUCB
from jaxbandits.policies.simplex import UCBSimplex as UCBSimplex
from jaxbandits.policies.suak import SUAK as SUAK
from jaxbandits.policies.thompson import BudgetedThompson as BudgetedThompson
from jaxbandits.policies.z_rcucb import ZRCUCB as ZRCUCB
from jaxbandits.policies.z_rcucb import fine_limits as fine_limits
