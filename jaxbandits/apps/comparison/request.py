"""Options of a comparison beside arms, budget and policies, see :func:`~jaxbandits.compare`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from jaxbandits.constraints import LAST_PULLS
from jaxbandits.core import bad
from jaxbandits.tools import positive_number, whole_number

NOISES = ("bernoulli", "clicks", "empirical")
"""How the outcomes of a pull are drawn, see :func:`~jaxbandits.compare`."""
READING = ("columns", "decimal", "encoding", "drop", "wide")
"""Arguments of :func:`~jaxbandits.apps.comparison.read_arms`."""
_WORDS: Mapping[str, Sequence[str]] = {
    "noise": NOISES,
    "start": ("file", "nothing"),
    "decide": ("daily", "per-click"),
    "last_pull": LAST_PULLS,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """The options of a comparison."""

    columns: Mapping[str, str | Sequence[str]] | None = None
    decimal: str | None = None
    encoding: str | None = None
    drop: Sequence[str] = ()
    wide: bool = False
    runs: int | None = None
    seed: int = 0
    noise: str | None = None
    cost_cv: float | None = None
    start: str = "file"
    growth: float | str | None = None
    decide: str | None = None
    last_pull: str = "counts"
    marks: int | Sequence[float] = 50

    @property
    def reading(self) -> dict[str, Any]:
        """The options of :func:`~jaxbandits.apps.comparison.read_arms`, which checks them."""
        return {name: getattr(self, name) for name in READING}

    def check(self) -> None:
        """Refuse values that no file could allow.

        Raises:
            InputError: there is none.
        """
        for name, words in _WORDS.items():
            if (value := getattr(self, name)) is not None and value not in words:
                raise bad(name, value, " or ".join(map(repr, words)))
        for name, least in (("runs", 1), ("seed", 0)):
            if (value := getattr(self, name)) is not None:
                whole_number(name, value, least, 2**32 - 1, "2**32 - 1")
        if self.cost_cv is not None:
            positive_number("cost_cv", self.cost_cv)
        if isinstance(self.growth, str) and self.growth != "none":
            raise bad("growth", self.growth, "a finite number above 0, or 'none'")
        if not isinstance(self.growth, (str, type(None))):
            positive_number("growth", self.growth)
