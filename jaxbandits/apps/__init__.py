"""Applications of the simulator, imported by nothing else: comparison, live agent, command."""

from jaxbandits._names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
