"""The core: exact ticks, addressed draws, arm statistics, specs, and the protocol.

Authors of policies, environments and constraints import from here.
"""

from jaxbandits._names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
