"""Exact answers for small problems, to check simulations and estimators. Float64, host."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
