"""What families of policies inherit, and policies around policies."""

from jaxbandits.policies.base.exploration import LogExploration, LogLogExploration, SlowLogExploration
from jaxbandits.policies.base.guarded import Guarded
from jaxbandits.policies.base.in_flight import InFlight
from jaxbandits.policies.base.index import IndexPolicy
from jaxbandits.policies.base.mixture import MixturePolicy
from jaxbandits.policies.base.randomised import RandomisedPolicy

__all__ = [
    "Guarded",
    "InFlight",
    "IndexPolicy",
    "LogExploration",
    "LogLogExploration",
    "MixturePolicy",
    "RandomisedPolicy",
    "SlowLogExploration",
]
