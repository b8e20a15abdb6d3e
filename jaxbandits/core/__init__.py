"""What every room stands on: exact ticks, addressed draws, arm statistics, specs, and the protocol
of the three nouns.

Authors of policies, environments and constraints import from here.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
