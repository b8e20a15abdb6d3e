"""Worlds: what a pull brings and costs."""

from jaxbandits.environments.bids import LoggedAuctions as LoggedAuctions
from jaxbandits.environments.censored import CensoredArms as CensoredArms
from jaxbandits.environments.censored import RevealConsumption as RevealConsumption
from jaxbandits.environments.censored_spec import CensoredSpec as CensoredSpec
from jaxbandits.environments.censored_spec import RevealedSpec as RevealedSpec
from jaxbandits.environments.charges import Constant as Constant
from jaxbandits.environments.charges import FastTrack as FastTrack
from jaxbandits.environments.charges import Linear as Linear
from jaxbandits.environments.continuum import Continuum as Continuum
from jaxbandits.environments.continuum import ContinuumSpec as ContinuumSpec
from jaxbandits.environments.continuum_families import cost_valley as cost_valley
from jaxbandits.environments.continuum_families import reward_hill as reward_hill
from jaxbandits.environments.copula import copula_arms as copula_arms
from jaxbandits.environments.finite import AddressedArms as AddressedArms
from jaxbandits.environments.finite import FiniteArms as FiniteArms
from jaxbandits.environments.finite import FiniteSpec as FiniteSpec
from jaxbandits.environments.g1 import g1 as g1
from jaxbandits.environments.null_arm import WithNullArm as WithNullArm
from jaxbandits.environments.random_instances import random_bernoulli as random_bernoulli
from jaxbandits.environments.random_instances import random_beta as random_beta
from jaxbandits.environments.random_instances import (
    random_generalised_bernoulli as random_generalised_bernoulli,
)
from jaxbandits.environments.reservoir import Reservoir as Reservoir
from jaxbandits.environments.reservoir_laws import bernoulli_outcome as bernoulli_outcome
from jaxbandits.environments.reservoir_laws import uniform_outcome as uniform_outcome
from jaxbandits.environments.tabular import row_arms as row_arms
