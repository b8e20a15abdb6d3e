"""Exact solutions of small problems, to check simulations and estimators. Host, float64."""

from jaxbandits._names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
