"""Where the money went: pulls, money and results of each arm in each run, and what was earned along the way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

MOST_COUNTS = 1 << 27
"""Pull counts that are kept, 4 bytes each: of the first runs only, where there are more."""


@dataclass(frozen=True, eq=False)
class Accounts:
    """Of some settings, in the file's units.

    Attributes:
        pulls: int32 ``[setting, instance, run, arm]`` of the first runs; 0 for an arm that an instance does not have.
        mean_reward, mean_cost: true means per pull, ``[instance, run or 1, arm]``; 0 as above.
        earned: reward up to each mark, summed over the instances, ``[setting, run, mark]``.
    """

    pulls: NDArray[np.int32]
    mean_reward: FloatArray
    mean_cost: FloatArray
    earned: FloatArray

    def money(self, setting: int) -> FloatArray:
        """Expected money of each arm given how often it was pulled, ``[instance, run, arm]``.

        Its mean over runs is that of the money spent (Wald), with less noise.
        """
        return self.pulls[setting] * self.mean_cost

    def results(self, setting: int) -> FloatArray:
        """Expected reward of each arm given how often it was pulled, ``[instance, run, arm]``."""
        return self.pulls[setting] * self.mean_reward


def kept_runs(settings: int, instances: int, runs: int, arms: int) -> int:
    """Of how many runs the pulls of each arm are kept."""
    return max(1, min(runs, MOST_COUNTS // (settings * instances * arms)))
