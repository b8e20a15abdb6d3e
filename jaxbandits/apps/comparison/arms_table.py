"""The contents of an arms file before scaling: means, counts, days, or a log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Daily:
    """One arm's rows of a file of counts; rows of one day (or week, or month) are summed."""

    clicks: FloatArray  # [N], pulls
    value: FloatArray  # [N], conversions or whatever is the reward
    spent: FloatArray  # [N]


@dataclass(frozen=True, eq=False)
class Evidence:
    """A file's data on one instance's arms: totals, not divided by a bound."""

    kind: str = "means"  # or "counts", or "log"
    clicks: FloatArray | None = None  # [K], pulls (of a log: rows); None for means, as the next two
    value: FloatArray | None = None  # [K], the total reward: conversions, revenue
    spent: FloatArray | None = None  # [K], the total cost
    # Every reward is a count of what a pull brings at most once, so that a binomial law fits
    whole: bool = False
    # Of each arm of a file of counts its rows day by day; None where no arm has several
    daily: tuple[Daily, ...] | None = None
    days: int = 0  # how many days (weeks, months) the rows tell of; 0 where they tell of none

    def totals(self, arm: int | slice) -> tuple[float, float, float] | None:
        """Clicks, value and money of an arm, or of all with ``slice(None)``; None for means."""
        if self.clicks is None or self.value is None or self.spent is None:
            return None
        every = (self.clicks, self.value, self.spent)
        clicks, value, spent = (float(np.sum(x[arm])) for x in every)
        return clicks, value, spent


@dataclass(frozen=True, eq=False)
class Instance:
    """One bandit problem with K >= 2 arms, in the order of the file."""

    name: str  # the `instance` cell; the file's name where there is no such column
    arms: tuple[str, ...]
    mean_reward: FloatArray  # [K], per pull in the user's unit, at least 0
    mean_cost: FloatArray  # [K], the same, above 0
    reward_bound: float  # no reward (of a log) or mean reward is above it
    cost_bound: float
    # Of each arm of a log its (rewards, costs), so that the two may be resampled jointly
    log: tuple[tuple[FloatArray, FloatArray], ...] | None
    evidence: Evidence = Evidence()
    currency: str = ""  # of its costs, where the file tells


@dataclass(frozen=True)
class ArmsTable:
    """All instances of one file.

    Example:
        >>> import numpy as np
        >>> from jaxbandits.apps.comparison import ArmsTable, Instance
        >>> ads = Instance("ads", ("a", "b"), np.array([0.2, 0.1]), np.array([0.5, 0.9]), 1.0, 1.0, None)
        >>> ArmsTable("means", (ads,), (), "reward", "cost").instances[0].arms
        ('a', 'b')
    """

    kind: str  # "means", "counts" or "log"
    instances: tuple[Instance, ...]  # in the order in which they first appear in the file
    notes: tuple[str, ...]  # lines to show: rows left out, arms that cannot be played
    reward_unit: str  # "conversions", or the title of the column
    cost_unit: (
        str  # the currency of the cells ("$ or €", if instances differ), else "spent" or "cost"
    )
    sha256: str | None = None  # of the bytes of the file
    pull_unit: str = "pull"  # in the singular: "click", "session", "row" (of a log)
    path: str | None = None  # of the file
    wide: bool = False  # a log in which row j of every arm is one request, that all were tried on

    @property
    def result(self) -> str:
        """One of what is the reward: "conversion", or the title of the column."""
        return "conversion" if self.reward_unit == "conversions" else self.reward_unit
