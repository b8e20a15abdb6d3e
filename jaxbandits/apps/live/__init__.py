"""A live agent: a policy that serves requests and keeps its state in a file."""

from jaxbandits.apps.live.agent import Agent, Ticket
from jaxbandits.apps.live.auditing import audit, events, propensities
from jaxbandits.apps.live.errors import Broken, Misuse, Settled
from jaxbandits.apps.live.terms import Breaker, Budget

__all__ = [
    "Agent",
    "Breaker",
    "Broken",
    "Budget",
    "Misuse",
    "Settled",
    "Ticket",
    "audit",
    "events",
    "propensities",
]
