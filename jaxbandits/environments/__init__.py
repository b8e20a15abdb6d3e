"""Environments: the rewards and costs of pulls."""

from jaxbandits._names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
