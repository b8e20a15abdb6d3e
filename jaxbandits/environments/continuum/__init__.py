"""Continuously many arms: every point of [0, 1]."""

from jaxbandits.environments.continuum.bids import LoggedAuctions
from jaxbandits.environments.continuum.families import cost_valley, reward_hill
from jaxbandits.environments.continuum.world import Continuum

__all__ = [
    "Continuum",
    "LoggedAuctions",
    "cost_valley",
    "reward_hill",
]
