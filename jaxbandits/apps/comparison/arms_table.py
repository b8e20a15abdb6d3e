"""What an arms file says of its arms before anything is divided: counts, days, pulls, and how it
writes numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxbandits.apps.comparison.number_style import NumberStyle

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Daily:
    """One arm's rows of a file of counts, in time order; rows of one day are summed."""

    # datetime64[D] [N], the first of a week or month; NaT where the file has no dates: every row
    # stands for itself
    day: NDArray[np.datetime64]
    clicks: FloatArray  # [N], pulls
    value: FloatArray  # [N], conversions or whatever is the reward
    spent: FloatArray  # [N], in the file's currency


@dataclass(frozen=True, eq=False)
class Pulls:
    """The rows of a log of one instance, in time order where the file has times, else in that of
    the file.
    """

    arm: NDArray[np.int64]  # [N], the position of the row's arm among the instance's arms
    reward: FloatArray  # [N]; NaN where the file has none (a gap: such a row is in no mean)
    cost: FloatArray  # [N]; NaN as above
    # [N], UTC where the file gives an offset, NaT where a row has none
    time: NDArray[np.datetime64] | None


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the file says of one instance's arms: totals, never divided by a bound and without any
    prior.

    Attributes:
        kind: ``"means"``, ``"counts"`` or ``"log"``.
        clicks: float64 [K], pulls of each arm: clicks (counts; sessions or impressions
            where :attr:`~jaxbandits.apps.comparison.ArmsTable.pull_unit` says so) or complete rows
            (log). None for means. 0 only where a prior keeps an arm that has none.
        value: float64 [K], the total reward: conversions, revenue, rewards. None for means.
        spent: float64 [K], the total cost. None for means.
        whole: every reward is a count of what a pull brings at most once: value is whole and at
            most clicks (log: all rewards are 0 or 1), so that a binomial law fits; False for means
            and for revenue.
        daily: of each arm its rows day by day; None where no arm has more than one row, and for
            logs and means.
        pulls: the log's rows in time order; None unless the file is a log.
    """

    kind: str = "means"
    clicks: FloatArray | None = None
    value: FloatArray | None = None
    spent: FloatArray | None = None
    whole: bool = False
    daily: tuple[Daily, ...] | None = None
    pulls: Pulls | None = None

    def totals(self, arm: int | slice) -> tuple[float, float, float] | None:
        """Clicks, value and money of an arm, or of all with ``slice(None)``; None where the file
        has means only.
        """
        if self.clicks is None or self.value is None or self.spent is None:
            return None
        every = (self.clicks, self.value, self.spent)
        clicks, value, spent = (float(np.sum(x[arm])) for x in every)
        return clicks, value, spent


@dataclass(frozen=True, eq=False)
class Instance:
    """One bandit problem with K >= 2 arms, in the order of the file.

    Attributes:
        name: the `instance` cell; the file's name without suffix where there is no such column.
        arms: names of the K arms, all different.
        mean_reward: float64 [K], reward per pull in the user's unit, >= 0.
        mean_cost: float64 [K], cost per pull in the user's unit, > 0. With several costs [K, d],
            here and in the log; the first is the money, which all pulls cost.
        reward_bound: no reward (log) or mean reward (other formats) is above it; user's unit per
            pull.
        cost_bound: the same for costs; d of them.
        log: for each arm its (rewards, costs), one entry per logged pull in file order, so that the
            two may be resampled jointly; user's unit. None unless the file is a log.
        evidence: what the means were made of: clicks, totals, days, pulls in time order; None for
            an instance that was not read from a file.
    """

    name: str
    arms: tuple[str, ...]
    mean_reward: FloatArray
    mean_cost: FloatArray
    reward_bound: float
    cost_bound: float | tuple[float, ...]
    log: tuple[tuple[FloatArray, FloatArray], ...] | None
    evidence: Evidence | None = None

    @property
    def scaled_mean_reward(self) -> FloatArray:
        """mean_reward / reward_bound, float64 [K] in [0, 1]."""
        return self.mean_reward / self.reward_bound

    @property
    def scaled_mean_cost(self) -> FloatArray:
        """mean_cost / cost_bound, float64 [K] (or [K, d]) in (0, 1]."""
        return self.mean_cost / np.asarray(self.cost_bound)

    @property
    def mean_money(self) -> FloatArray:
        """mean_cost of the first cost, float64 [K]."""
        return money_cost(self.mean_cost)


def money_cost(cost: Any, axes: int = 1) -> Any:
    """Of several costs, ``[…, d]`` behind so many axes, the first."""
    return cost[..., 0] if np.ndim(cost) > axes else cost


@dataclass(frozen=True)
class KeptOut:
    """An arm that is not played, and why."""

    instance: str
    arm: str
    line: int  # where it stands in the file, at first
    reason: str  # such as "no clicks"


@dataclass(frozen=True)
class ArmsTable:
    """All problems of one file.

    Attributes:
        kind: "means", "counts" or "log".
        instances: in the order in which they first appear in the file; at least one.
        notes: lines to show to the user: rows dropped and repaired, columns ignored. May be empty.
        reward_unit: what rewards are counted in, "reward" or "conversions".
        cost_unit: what costs are counted in, "cost" or "spent".
        cost2_unit: the same of a second cost, the title of its column; empty where there is none.
        sha256: of the bytes that were read; None for a table that is not from a file.
        path: of the file that a comparison was asked for by; None where it was given the table.
        wide: a log in which row j of every arm is one request, that all were tried on.
        pull_unit: what a pull is, in the singular: "click", "session", "impression", "row" (of a
            log), "pull" (means).
        style: how the file writes money and numbers.
        kept_out: arms that the file names and that cannot be played, in file order.
        changes: how many of the notes, the first ones, tell of something that changes a number.

    Example:
        >>> import numpy as np
        >>> from jaxbandits.apps.comparison import ArmsTable, Instance
        >>> ads = Instance("ads", ("a", "b"), np.array([0.2, 0.1]), np.array([0.5, 0.9]), 1.0, 1.0, None)
        >>> ArmsTable("means", (ads,), (), "reward", "cost").instances[0].arms
        ('a', 'b')
    """

    kind: str
    instances: tuple[Instance, ...]
    notes: tuple[str, ...]
    reward_unit: str
    cost_unit: str
    sha256: str | None = None
    pull_unit: str = "pull"
    style: NumberStyle = field(default_factory=NumberStyle)
    kept_out: tuple[KeptOut, ...] = ()
    changes: int = 0
    cost2_unit: str = ""
    path: str | None = None
    wide: bool = False

    @property
    def spent_units(self) -> dict[str, str]:
        """What of a run's account is spent, and in what unit: ``spent``, and ``spent2`` of a second
        cost.
        """
        return {"spent": self.cost_unit} | ({"spent2": self.cost2_unit} if self.cost2_unit else {})
