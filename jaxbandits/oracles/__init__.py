"""Exact answers for small problems, to hold simulations and estimators against. Float64 on the
host.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
