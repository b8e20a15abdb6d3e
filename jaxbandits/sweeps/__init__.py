"""Sweeps of policies, settings, worlds and budgets in saved blocks; curves, the best values."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
