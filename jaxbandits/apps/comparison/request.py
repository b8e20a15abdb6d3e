"""What may be asked of a comparison beside arms, budget and policies; :func:`~jaxbandits.compare` says
what each means.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from jaxbandits.apps.comparison.stopping import CLAIMS, UNTIL, StoppingRule
from jaxbandits.constraints import LAST_PULLS
from jaxbandits.core import bad
from jaxbandits.tools import positive_number, whole_number

NOISES = ("bernoulli", "beta", "clicks", "empirical")
"""What a pull may look like, see :func:`~jaxbandits.compare`."""
READING = ("columns", "decimal", "encoding", "drop", "wide", "reward_max", "cost_max")
"""Arguments of :func:`~jaxbandits.apps.comparison.read_arms`."""
_WORDS: Mapping[str, Sequence[str]] = {
    "until": UNTIL,
    "claim": CLAIMS,
    "noise": NOISES,
    "uncertainty": ("means", "given"),
    "start": ("file", "nothing"),
    "last_pull": LAST_PULLS,
}
_MOST = 2**32 - 1, "2**32 - 1"
_WHOLE: Mapping[str, tuple[int, int, str]] = {
    "runs": (1, *_MOST),
    "max_runs": (2, *_MOST),
    "seed": (0, *_MOST),
    "decide": (1, 2**30, "2**30"),
    "known_after": (0, 1000, "1000"),
}
_ALSO = {"growth": ("none",), "decide": ("daily", "per-click")}  # words in place of a number


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """The options of a comparison.

    Example:
        >>> from jaxbandits.apps.comparison import Request
        >>> Request(until="best").rule
        StoppingRule(until='best', claim='any', max_runs=1000)
    """

    columns: Mapping[str, str | Sequence[str]] | None = None
    decimal: str | None = None
    encoding: str | None = None
    drop: Sequence[str] = ()
    wide: bool = False
    reward_max: float | None = None
    cost_max: float | None = None
    runs: int | None = None
    until: str | None = None
    max_runs: int | None = None
    claim: str = "any"
    seed: int = 0
    noise: str | None = None
    uncertainty: str | None = None
    cost_cv: float | None = None
    start: str = "file"
    growth: float | str | None = None
    decide: int | str | None = None
    known_after: int | None = None
    last_pull: str = "counts"
    marks: int | Sequence[float] = 50
    average_cost: float | None = None

    @property
    def rule(self) -> StoppingRule | None:
        """When to stop; None where the number of runs is fixed."""
        if self.until is None:
            return None
        return StoppingRule(self.until, self.claim, int(self.max_runs or self.runs or 1000))

    @property
    def reading(self) -> dict[str, Any]:
        """Those of :func:`~jaxbandits.apps.comparison.read_arms`, which checks them."""
        return {name: getattr(self, name) for name in READING}

    def check(self) -> None:
        """Is there a file that every value suits?

        Raises:
            InputError: there is none.
        """
        for name, value in vars(self).items():
            words = _ALSO.get(name, ())
            also = f", or {' or '.join(map(repr, words))}" if words else ""
            if value is None or (isinstance(value, str) and value in words):
                continue
            if name in _WORDS and value not in _WORDS[name]:
                raise bad(name, value, " or ".join(map(repr, _WORDS[name])))
            if name in _WHOLE:
                whole_number(name, value, *_WHOLE[name], also)
            if name in ("cost_cv", "growth", "average_cost"):
                if isinstance(value, str):
                    raise bad(name, value, f"a finite number above 0{also}")
                positive_number(name, value)
        fixed = self.until is None
        if fixed and self.max_runs is not None:
            raise bad("max_runs", self.max_runs, "left out without until")
        if fixed and self.claim != "any":
            raise bad("claim", self.claim, "left out without until")
        if self.average_cost is not None and self.last_pull != "counts":
            raise bad(
                "last_pull", self.last_pull, "left out with an average cost, which no pull exceeds"
            )
