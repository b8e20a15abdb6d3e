"""Policies without the simulator: one round at a time, or many requests at once."""

from jaxbandits.live.agent import Agent, Ticket
from jaxbandits.live.auditing import audit, propensities
from jaxbandits.live.budgets import Budget, Traffic
from jaxbandits.live.errors import Broken, Misuse, Settled, Unpayable
from jaxbandits.live.log import events, load, save
from jaxbandits.live.serving import connect, prometheus, serve
from jaxbandits.live.step import observe, start, widen

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
