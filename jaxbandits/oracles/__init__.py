"""Exact answers for small problems, to check simulations and estimators. Float64, host."""

from jaxbandits._names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
