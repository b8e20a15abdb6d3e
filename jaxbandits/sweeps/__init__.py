"""Sweeps at scale: a product of policies, settings, environments and budgets, block by block, saved
so that kills lose little; curves over a parameter and the value to recommend.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
