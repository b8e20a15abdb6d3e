"""Policies without the simulator: one round at a time, or many requests at once."""

from jaxbandits.live.agent import Agent, Ticket
from jaxbandits.live.budgets import Budget, Traffic
from jaxbandits.live.log import load, save
from jaxbandits.live.step import observe, start, widen

__all__ = ["Agent", "Budget", "Ticket", "Traffic", "load", "observe", "save", "start", "widen"]
