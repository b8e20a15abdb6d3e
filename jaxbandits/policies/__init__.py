"""Learners: pure functions of (state, key, observation)."""

from jaxbandits.policies.greedy import BGreedy as BGreedy
from jaxbandits.policies.guarded import Guarded as Guarded
from jaxbandits.policies.index import IndexPolicy as IndexPolicy
from jaxbandits.policies.omega import OmegaStarUCB as OmegaStarUCB
from jaxbandits.policies.omega import OmegaUCB as OmegaUCB
from jaxbandits.policies.ratio import CUCB as CUCB
from jaxbandits.policies.ratio import IUCB as IUCB
from jaxbandits.policies.ratio import MUCB as MUCB
from jaxbandits.policies.thompson import BudgetedThompson as BudgetedThompson
