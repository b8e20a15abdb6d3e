"""Finitely many arms that cost something."""

from jaxbandits.environments.finite.arms import AddressedArms, FiniteArms
from jaxbandits.environments.finite.null_arm import WithNullArm
from jaxbandits.environments.finite.random_instances import random_bernoulli, random_beta, random_generalised_bernoulli

__all__ = [
    "AddressedArms",
    "FiniteArms",
    "WithNullArm",
    "random_bernoulli",
    "random_beta",
    "random_generalised_bernoulli",
]
