"""Policies: pure functions of (state, key, observation)."""

from jaxbandits._names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
