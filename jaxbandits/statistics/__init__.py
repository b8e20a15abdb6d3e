"""Intervals, paired differences, bands, which policies are clearly better, runs needed.

First decide what was sampled, which standard errors refer to. ``over="replicate"``: the
instances are given, only the runs on them are random; averages weight every instance equally.
``over="instance"``: the instances were drawn at random; each, averaged over its runs, is one
observation. Any other axis may be what was sampled, and all others stay.

All policies face the same world (common random numbers), so differences are taken run by run
(:func:`paired`): their intervals are mostly far narrower than those of the means. Whether one is
clear is tested jointly for a whole table (:func:`dominance`, :func:`clear_pairs`): the least of
eight equal means always looks good.

Every interval is an :class:`Estimate`. Its warnings begin with a name: *few units*, *heavy tail*,
*one unit decides*, *skewed*, *no end*, *few in the tail*; see docs/statistics.md.
"""

from jaxbandits._names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
