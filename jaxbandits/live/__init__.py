"""Policies without the simulator: one round at a time, or many requests at once."""

from jaxbandits.live.agent import Agent
from jaxbandits.live.budgets import Budget, Traffic
from jaxbandits.live.one_at_a_time import observe, start, widen
from jaxbandits.live.saving import load, save
from jaxbandits.live.terms import Ticket

__all__ = ["Agent", "Budget", "Ticket", "Traffic", "load", "observe", "save", "start", "widen"]
