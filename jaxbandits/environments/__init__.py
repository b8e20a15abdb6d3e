"""Worlds: what a pull brings and costs."""

from jaxbandits.environments.finite import FiniteArms as FiniteArms
from jaxbandits.environments.finite import FiniteSpec as FiniteSpec
from jaxbandits.environments.null_arm import WithNullArm as WithNullArm
from jaxbandits.environments.random_instances import random_bernoulli as random_bernoulli
from jaxbandits.environments.random_instances import random_beta as random_beta
from jaxbandits.environments.random_instances import (
    random_generalised_bernoulli as random_generalised_bernoulli,
)
