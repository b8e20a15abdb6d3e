"""Sweeps over policies, settings, environments and budgets in saved blocks; curves, best values."""

from jaxbandits._names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
