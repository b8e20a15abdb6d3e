"""Worlds: what a pull brings and costs."""

from jaxbandits._names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
