"""Numbers over runs: what one run may bring, and how much two differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jaxbandits.statistics.student import t_quantile

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """A number of a run.

    Attributes:
        mean: over the runs.
        low, high: 95 of 100 runs are between them (quantiles 2.5 % and 97.5 %).
    """

    mean: float
    low: float
    high: float

    @staticmethod
    def of(values: FloatArray) -> Spread:
        """Of values of runs, ``[run]``.

        Example:
            >>> import numpy as np
            >>> Spread.of(np.arange(41.0))
            Spread(mean=20.0, low=1.0, high=39.0)
        """
        return Spread(float(values.mean()), *map(float, np.quantile(values, [0.025, 0.975])))


@dataclass(frozen=True)
class Gain:
    """How much more one earns than another in the same worlds.

    Attributes:
        mean: of the differences, run by run.
        half: half the width of its 95 % interval (Student's t, over the runs); NaN for one run.
        share: mean / mean of the other; NaN where that is 0.
        better: in what share of the runs it is more (an equal one counts half).
    """

    mean: float
    half: float
    share: float
    better: float

    @staticmethod
    def of(mine: FloatArray, other: FloatArray) -> Gain:
        """Of paired values of runs, ``[run]`` each.

        Example:
            >>> import numpy as np
            >>> found = Gain.of(np.array([3.0, 5.0, 4.0]), np.array([2.0, 5.0, 2.0]))
            >>> found.mean, round(found.half, 2), round(found.share, 2), round(found.better, 2)
            (1.0, 2.48, 0.33, 0.83)
        """
        apart, runs = mine - other, mine.size
        half = t_quantile(0.975, runs - 1) * apart.std(ddof=1) / np.sqrt(runs) if runs > 1 else np.nan
        share = apart.mean() / other.mean() if other.mean() else np.nan
        better = (apart > 0).mean() + (apart == 0).mean() / 2
        return Gain(float(apart.mean()), float(half), float(share), float(better))

    @property
    def clear(self) -> bool:
        """Whether its interval leaves out 0."""
        return abs(self.mean) > self.half
