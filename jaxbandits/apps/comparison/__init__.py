"""Compare policies on an arms file: which spends a budget best, and how certain is that?

Like :func:`jaxbandits.simulate`, but in the units of an arms file: it divides by the bounds on the
way in, multiplies on the way out, runs instances of different K in few compiles, and ranks the
settings.
"""

from jaxbandits._names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
