"""How sure are we? Intervals, paired differences, bands for whole curves, who beats whom, how many more runs.

First decide what was sampled, that is what a standard error counts:

* ``over="replicate"``: the instances are given (the campaigns of one's own file), only the runs on them are random.
  The spread between instances does not enter; averages weigh every instance the same.
* ``over="instance"``: the instances were drawn at random and stand for all that might have been drawn (the random
  instances of a paper). Each instance, averaged over its runs, is one observation.

Any other axis may be what was sampled too: ``over="seed"``. All other axes stay.

All policies meet the same world (common random numbers), so differences are taken run by run: their intervals are
mostly far narrower than those of the means.

* One number, as an :class:`Estimate` (value, low, high, warnings): :func:`mean`, :func:`median`, :func:`quantile`,
  :func:`cvar` (mean of the worst), :func:`tail_share` (what part of the sum they carry).
* Intervals of many numbers, as a dataset: :func:`mean_interval`, :func:`paired_difference` (of x − y),
  :func:`bootstrap_interval`, :func:`bootstrap_difference`, :func:`simultaneous_band` (holds a whole curve).
* Who beats whom: :func:`dominance` (with :func:`holm`'s p-values), :func:`clear_pairs` (looked at again and again),
  :func:`runs_needed` (how many runs until a difference is clear).

Warnings begin with a name: *few units* (10 or fewer), *heavy tail* (the top 2 % of the units carry more than half of
the mean), *one unit decides* (without it the mean moves by more than the width of the interval), *skewed*, *no end* (a
quantile beyond what the sample can bound), *few in the tail*. A sample does not show what is too rare for its
size: :func:`invisible` says so in a line.

    from jaxbandits.statistics import dominance, mean_interval, paired_difference
    mean_interval(result.regret, average_instances=True)
    paired_difference(result.reward.sel(setting=a), result.reward.sel(setting=b))
    dominance(result.regret.isel(mark=-1), over="instance")
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
