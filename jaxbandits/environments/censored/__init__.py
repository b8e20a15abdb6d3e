"""Arms that are pulled up to a limit, so that what they consume is censored."""

from jaxbandits.environments.censored.arms import CensoredArms, RevealConsumption
from jaxbandits.environments.censored.charges import Constant, FastTrack, Linear
from jaxbandits.environments.censored.copula import copula_arms
from jaxbandits.environments.censored.g1_settings import g1
from jaxbandits.environments.censored.tabular import row_arms

__all__ = [
    "CensoredArms",
    "Constant",
    "FastTrack",
    "Linear",
    "RevealConsumption",
    "copula_arms",
    "g1",
    "row_arms",
]
