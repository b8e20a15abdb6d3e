"""Policies without the simulator: one round at a time, or many requests at once."""

from jaxbandits.live.one_at_a_time import observe, start, widen
from jaxbandits.live.saving import load, save

__all__ = ["load", "observe", "save", "start", "widen"]
