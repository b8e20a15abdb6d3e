"""The arms of a file, as everything but the reader sees them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from jaxbandits.comparison.evidence import Evidence, NumberStyle

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Instance:
    """One bandit problem with K >= 2 arms, in the order of the file.

    Attributes:
        name: the `instance` cell; the file's name without suffix where there is no such column;
            "campaign_id/age/gender" for Facebook ads.
        arms: names of the K arms, all different.
        mean_reward: float64 [K], reward per pull in the user's unit, >= 0.
        mean_cost: float64 [K], cost per pull in the user's unit, > 0.
        reward_bound: no reward (log) or mean reward (other formats) is above it; user's unit per pull.
        cost_bound: the same for costs.
        log: for each arm its (rewards, costs), one entry per logged pull in file order, so that the two may
            be resampled jointly; user's unit. None unless the file is a log.
        evidence: what the means were made of: clicks, totals, days, pulls in time order; None for an instance that was
            not read from a file.
    """

    name: str
    arms: tuple[str, ...]
    mean_reward: FloatArray
    mean_cost: FloatArray
    reward_bound: float
    cost_bound: float
    log: tuple[tuple[FloatArray, FloatArray], ...] | None
    evidence: Evidence | None = None

    @property
    def scaled_mean_reward(self) -> FloatArray:
        """mean_reward / reward_bound, float64 [K] in [0, 1]."""
        return self.mean_reward / self.reward_bound

    @property
    def scaled_mean_cost(self) -> FloatArray:
        """mean_cost / cost_bound, float64 [K] in (0, 1]."""
        return self.mean_cost / self.cost_bound


@dataclass(frozen=True)
class KeptOut:
    """An arm that is not played, and why.

    Attributes:
        instance: its instance's name.
        arm: its name.
        line: where it stands in the file, at first.
        reason: such as "no clicks".
    """

    instance: str
    arm: str
    line: int
    reason: str


@dataclass(frozen=True)
class ArmsTable:
    """All problems of one file.

    Attributes:
        kind: "means", "counts", "log" or "facebook".
        instances: in the order in which they first appear in the file; at least one.
        notes: lines to show to the user: rows dropped and repaired, columns ignored. May be empty.
        reward_unit: what rewards are counted in, "reward" or "conversions".
        cost_unit: what costs are counted in, "cost" or "spent".
        sha256: of the bytes that were read; None for a table that is not from a file.
        pull_unit: what a pull is, in the singular: "click", "session", "impression", "row" (of a log), "pull" (means).
        style: how the file writes money and numbers.
        kept_out: arms that the file names and that cannot be played, in file order.

    Example:
        >>> import numpy as np
        >>> from jaxbandits.comparison import ArmsTable, Instance
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
