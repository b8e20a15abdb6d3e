"""Play until it is clear: when to stop, and what is clear then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxbandits.comparison.earnings import most_earned
from jaxbandits.comparison.plan import ComparisonPlan
from jaxbandits.core.errors import bad
from jaxbandits.core.numbers import whole_number
from jaxbandits.statistics import ClearPairs, clear_pairs

UNTIL = ("clear", "best")
CLAIMS = ("any", "most runs", "average")
LEVEL = 0.95
_LOOKS, _LEAST, _MOST = 40, 20, 250  # looks at most, unless a batch would be smaller or larger than that


@dataclass(frozen=True)
class Until:
    """When to stop.

    Attributes:
        what: ``"clear"`` (every pair) or ``"best"`` (one setting against every other).
        claim: which must be clear: ``"any"``, ``"most runs"`` or ``"average"``.
        max_runs: how many runs are played at most.
    """

    what: str
    claim: str = "any"
    max_runs: int = 1000

    @staticmethod
    def checked(until: Any, claim: Any, max_runs: Any, runs: Any) -> Until | None:
        """From arguments; None where ``until`` is.

        Raises:
            InputError: naming the argument.
        """
        for name, value, known in (("until", until, UNTIL), ("claim", claim, CLAIMS)):
            if value not in known and not (name == "until" and value is None):
                raise bad(name, value, " or ".join(map(repr, known)))
        if until is None:
            if max_runs is not None:
                raise bad("max_runs", max_runs, "left out without until")
            if claim != "any":
                raise bad("claim", claim, "left out without until")
            return None
        if runs is not None:
            raise bad("runs", runs, "left out with until (max_runs says how many at most)")
        return Until(until, claim, 1000 if max_runs is None else whole_number("max_runs", max_runs, 2, 2**32 - 1))

    def check(self, plan: ComparisonPlan) -> None:
        """Whether there is something to compare, and a bound of what a run may earn."""
        if len(plan.settings) < 2:
            raise bad("until", self.what, "left out with one setting: there is nothing to compare it with")
        most_earned(plan)

    def batch(self, runs: int) -> int:
        """Runs between two looks."""
        return min(runs, max(_LEAST, min(_MOST, -(-runs // _LOOKS))))

    def reached(self, pairs: ClearPairs) -> bool:
        """Whether that is clear which shall be."""
        clear = ahead(pairs, self.claim)
        if self.what == "best":
            return bool((clear | np.eye(len(clear), dtype=bool)).all(axis=1).any())
        return bool((clear | clear.T | np.eye(len(clear), dtype=bool)).all())


def ahead(pairs: ClearPairs, claim: str) -> np.ndarray:
    """Whether the row is clearly ahead of the column, ``bool[setting, setting]``."""
    most, average = (part.values > 0 for part in pairs)
    return most | average if claim == "any" else most if claim == "most runs" else average


@dataclass(frozen=True, eq=False)
class Clearness:
    """What was clear when the last batch had been played.

    Attributes:
        until: when to stop.
        pairs: which setting earns clearly more than which, and after how many runs that was clear.
        bound: what a run can earn, averaged over the instances, in the file's unit.
        runs, looks: how many were played, and looked at.
        reached: whether that is clear which should be.
        beyond: runs that earned more than the bound (once in a million); what is more was not counted.
    """

    until: Until
    pairs: ClearPairs
    bound: float
    runs: int
    looks: int
    reached: bool
    beyond: int

    @property
    def saved(self) -> int:
        """Runs that were not needed."""
        return self.until.max_runs - self.runs

    def open_pairs(self, claim: str) -> int:
        """How many pairs are not clear."""
        clear = ahead(self.pairs, claim)
        return int((~(clear | clear.T))[np.triu_indices(len(clear), 1)].sum())

    def about(self) -> dict[str, Any]:
        """Numbers for ``run.json``: for each ordered pair the run after which it was clear, 0 if it is not."""
        return {
            "until": self.until.what,
            "claim": self.until.claim,
            "max_runs": self.until.max_runs,
            "runs": self.runs,
            "looks": self.looks,
            "reached": self.reached,
            "bound": self.bound,
            "clear_after": {
                name: part.values.tolist() for name, part in zip(("most_runs", "average"), self.pairs, strict=True)
            },
        }


def look(plan: ComparisonPlan, until: Until, earned: np.ndarray, looks: int) -> Clearness:
    """What is clear by now, from what each run earned on average over the instances, ``[setting, run]``."""
    import xarray

    bound = most_earned(plan)
    labels = {"setting": list(plan.settings)}
    pairs = clear_pairs(xarray.DataArray(earned, dims=("setting", "replicate"), coords=labels), bound, level=LEVEL)
    beyond = int((earned > bound).any(axis=0).sum())
    return Clearness(until, pairs, bound, earned.shape[1], looks, until.reached(pairs), beyond)
