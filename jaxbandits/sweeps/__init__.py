"""Sweeps of policies, settings, worlds and budgets in saved blocks; curves, the best values."""

from jaxbandits._names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
