"""How sure are we? Intervals, paired differences, bands for whole curves, who beats whom, how many more runs.

First decide what was sampled, that is what a standard error counts:

* ``over="replicate"``: the instances are given (the campaigns of one's own file), only the runs on them are random.
  The spread between instances does not enter; averages weigh every instance the same.
* ``over="instance"``: the instances were drawn at random and stand for all that might have been drawn (the random
  instances of a paper). Each instance, averaged over its runs, is one observation.

Any other axis may be what was sampled too: ``over="seed"``. All other axes stay.

All policies meet the same world (common random numbers), so differences are taken run by run: their intervals are
mostly far narrower than those of the means.

======================================  =================================================================
:func:`mean`, :func:`median`            an :class:`Estimate`: value, low, high, and warnings
:func:`quantile`                        the same of a quantile, from order statistics
:func:`cvar`, :func:`tail_share`        mean of the worst, and what part of the sum they carry
:func:`mean_interval`                   mean and interval, as a dataset
:func:`paired_difference`               the same for x − y
:func:`bootstrap_interval`              mean and studentised bootstrap interval
:func:`bootstrap_difference`            the same for x − y
:func:`simultaneous_band`               a band that holds a whole curve
:func:`dominance`                       every setting against every other, Holm's p-values
:func:`holm`                            Holm's step-down adjustment of p-values
:func:`clear_pairs`                     who beats whom, in most runs and on average, looked at again and again
:func:`runs_needed`                     how many runs until a difference is clear
======================================  =================================================================

Warnings begin with a name: *few units* (10 or fewer), *heavy tail* (the top 2 % of the units carry more than half of
the mean), *one unit decides* (without it the mean moves by more than the width of the interval), *skewed*, *no end* (a
quantile beyond what the sample can bound), *few in the tail*. No sample shows a tail that is rarer than it is large:
:func:`invisible` says so in a line.

    from jaxbandits.statistics import dominance, mean_interval, paired_difference
    mean_interval(result.regret, average_instances=True)
    paired_difference(result.reward.sel(setting=a), result.reward.sel(setting=b))
    dominance(result.regret.isel(mark=-1), over="instance")
"""

from jaxbandits.statistics.bootstrap import bootstrap_difference, bootstrap_interval, simultaneous_band
from jaxbandits.statistics.doubts import invisible
from jaxbandits.statistics.intervals import mean_interval, paired_difference
from jaxbandits.statistics.pairs import dominance, holm
from jaxbandits.statistics.planning import runs_needed
from jaxbandits.statistics.sequential import ClearPairs, clear_pairs
from jaxbandits.statistics.summaries import Estimate, cvar, mean, median, quantile, tail_share

__all__ = [
    "ClearPairs",
    "Estimate",
    "bootstrap_difference",
    "bootstrap_interval",
    "clear_pairs",
    "cvar",
    "dominance",
    "holm",
    "invisible",
    "mean",
    "mean_interval",
    "median",
    "paired_difference",
    "quantile",
    "runs_needed",
    "simultaneous_band",
    "tail_share",
]
