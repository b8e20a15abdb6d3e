"""A policy that serves requests, and the file that it does so from."""

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
