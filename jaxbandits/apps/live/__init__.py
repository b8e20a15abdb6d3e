"""Policies without the simulator: one round at a time, or many requests at once."""

from jaxbandits.apps.live.agent import Agent, Ticket
from jaxbandits.apps.live.auditing import audit, propensities
from jaxbandits.apps.live.budgets import Budget, Traffic
from jaxbandits.apps.live.errors import Broken, Misuse, Settled, Unpayable
from jaxbandits.apps.live.log import events, load, save
from jaxbandits.apps.live.serving import connect, prometheus, serve
from jaxbandits.apps.live.step import observe, start, widen

__all__ = [
    "Agent",
    "Broken",
    "Budget",
    "Misuse",
    "Settled",
    "Ticket",
    "Traffic",
    "Unpayable",
    "audit",
    "connect",
    "events",
    "load",
    "observe",
    "prometheus",
    "propensities",
    "save",
    "serve",
    "start",
    "widen",
]
