"""Worlds: what a pull brings and costs."""

from jaxbandits.core.censored_specs import CensoredSpec, RevealedSpec
from jaxbandits.core.specs import ContinuumSpec, DelayedSpec, FiniteSpec, Spec
from jaxbandits.environments.censored.arms import CensoredArms, RevealConsumption
from jaxbandits.environments.censored.charges import Constant, FastTrack, Linear
from jaxbandits.environments.censored.copula import copula_arms
from jaxbandits.environments.censored.g1_settings import g1
from jaxbandits.environments.censored.tabular import row_arms
from jaxbandits.environments.continuum.bids import LoggedAuctions
from jaxbandits.environments.continuum.families import cost_valley, reward_hill
from jaxbandits.environments.continuum.world import Continuum
from jaxbandits.environments.delay_laws import Batched, DelayLaw, FixedDelay, TableDelay
from jaxbandits.environments.delayed import Delayed
from jaxbandits.environments.finite.arms import AddressedArms, FiniteArms
from jaxbandits.environments.finite.null_arm import WithNullArm
from jaxbandits.environments.finite.random_instances import random_bernoulli, random_beta, random_generalised_bernoulli
from jaxbandits.environments.reservoir.arms import Reservoir
from jaxbandits.environments.reservoir.laws import bernoulli_outcome, uniform_outcome

__all__ = [
    "AddressedArms",
    "Batched",
    "CensoredArms",
    "CensoredSpec",
    "Constant",
    "Continuum",
    "ContinuumSpec",
    "DelayLaw",
    "Delayed",
    "DelayedSpec",
    "FastTrack",
    "FiniteArms",
    "FiniteSpec",
    "FixedDelay",
    "Linear",
    "LoggedAuctions",
    "Reservoir",
    "RevealConsumption",
    "RevealedSpec",
    "Spec",
    "TableDelay",
    "WithNullArm",
    "bernoulli_outcome",
    "copula_arms",
    "cost_valley",
    "g1",
    "random_bernoulli",
    "random_beta",
    "random_generalised_bernoulli",
    "reward_hill",
    "row_arms",
    "uniform_outcome",
]
