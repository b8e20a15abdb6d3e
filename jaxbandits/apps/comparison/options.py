"""The options of a comparison, once: name, default, what each may be, and what the command says of
it.

:func:`~jaxbandits.compare` takes them as arguments, the command makes an option of each;
:func:`option_field` says how.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from jaxbandits.apps.comparison.arms_file import ROLES
from jaxbandits.apps.comparison.stopping import CLAIMS, UNTIL, StoppingRule
from jaxbandits.constraints import LAST_PULLS
from jaxbandits.core.checks import bad, positive_number, whole_number

NOISES = ("bernoulli", "beta", "clicks", "empirical")
"""What a pull may look like, see :func:`~jaxbandits.compare`."""
UNCERTAINTIES = ("means", "given")
STARTS = ("file", "nothing")
DECISIONS = ("daily", "per-click")
_SEEDS = (0, 2**32 - 1, "2**32 - 1")


def option_field(
    default: Any,
    kind: str | tuple[str, ...],
    about: str,
    *,
    metavar: str = "",
    spelt: str = "",
    whole: tuple[int, int, str] | None = None,
    words: Sequence[str] = (),
) -> Any:
    """A field that is an argument in Python and an option of the command.

    Args:
        default: the value if none is given.
        kind: the words that it may be, or how the command reads it: ``"number"``, ``"whole"``,
            ``"text"``, ``"texts"`` (repeatable), ``"columns"``, ``"marks"`` (their number),
            ``"flag"``.
        about: what ``--help`` says; empty if the command has no option of this name.
        metavar: how ``--help`` calls its value.
        spelt: the option, where it is not the field's name.
        whole: of a whole number the least, the most, and the most in words.
        words: that may stand in place of a number.
    """
    metadata = {
        "kind": kind,
        "about": about,
        "metavar": metavar,
        "spelt": spelt,
        "whole": whole,
        "words": words,
    }
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How the file is read; what each means says :func:`~jaxbandits.apps.comparison.read_arms`."""

    columns: Mapping[str, str] | None = option_field(
        None,
        "columns",
        f"which column is what: {', '.join(ROLES)}; as cost a number: what every pull costs",
        metavar="name=TITLE,…",
    )
    decimal: str | None = option_field(
        None, (".", ","), "the decimal sign (default: told from the file)"
    )
    encoding: str | None = option_field(
        None,
        "text",
        "of the file's text (default: UTF-8, UTF-16 or Latin-1, told from the file)",
        metavar="NAME",
    )
    drop: Sequence[str] = option_field(
        (), "texts", "leave out rows with this cell, such as a total (repeatable)", metavar="TEXT"
    )
    wide: bool = option_field(
        False,
        "flag",
        "a table of requests: a row is one, and each arm has a column of what it brought, perhaps one of its cost",
    )
    reward_max: float | None = option_field(
        None, "number", "bound of the reward of one pull, in the file's unit", metavar="X"
    )
    cost_max: float | None = option_field(
        None, "number", "bound of the cost of one pull, in the file's unit", metavar="X"
    )


READING = tuple(field.name for field in dataclasses.fields(ReadingOptions))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(ReadingOptions):
    """What :func:`~jaxbandits.compare` takes beside arms, budget and policies; its page says what
    each means.

    Example:
        >>> from jaxbandits.apps.comparison import Options
        >>> Options(until="best").rule
        StoppingRule(until='best', claim='any', max_runs=1000)
    """

    runs: int | None = option_field(
        None,
        "whole",
        "independent runs of each setting on each instance (1000; where days are played and take long down to 200)",
        metavar="R",
        whole=(1, *_SEEDS[1:]),
    )
    until: str | None = option_field(
        None,
        UNTIL,
        "play in batches until all pairs of settings are clear (clear), or one setting is clearly ahead of all others "
        "(best); of such tables 1 in 20 at most holds a false claim",
    )
    max_runs: int | None = option_field(
        None,
        "whole",
        "with --until: runs at most (1000)",
        metavar="R",
        whole=(2, *_SEEDS[1:]),
    )
    claim: str = option_field(
        "any",
        CLAIMS,
        "with --until: what must be clear: who earns more in most runs, on average, or either (any)",
    )
    seed: int = option_field(
        0, "whole", "the same seed gives the same table.csv (0)", metavar="S", whole=_SEEDS
    )
    noise: str | None = option_field(
        None,
        NOISES,
        "what a pull looks like (clicks for counts: a conversion or none, at a cost that varies; empirical for a log: "
        "its own rows; else bernoulli)",
    )
    uncertainty: str | None = option_field(
        None,
        UNCERTAINTIES,
        "true means of each run drawn from what the file's counts leave open, or as in the file (means, where there "
        "are counts)",
    )
    cost_cv: float | None = option_field(
        None,
        "number",
        "coefficient of variation of a click's cost (from day to day in the file, else 0.5)",
        metavar="X",
    )
    start: str = option_field(
        "file",
        STARTS,
        "policies start from what the file has counted, or from nothing (file, where it has counts and one cost)",
    )
    growth: float | str | None = option_field(
        None,
        "number",
        "an arm sells at most G times what it sold in the file, a log has G times its requests, for the same time, "
        "which goes with the money (2; of a log 1); none: as many as are bought",
        metavar="G|none",
        words=("none",),
    )
    decide: int | str | None = option_field(
        None,
        "whole",
        "how often one decides by what is known: once a day of the file, per click, or every N pulls (daily, where the "
        "file has days)",
        metavar="daily|per-click|N",
        whole=(1, 2**30, "2**30"),
        words=DECISIONS,
    )
    known_after: int | None = option_field(
        None,
        "whole",
        "days, or decisions, until results are known (0: when one decides next)",
        metavar="DAYS",
        whole=(0, 1000, "1000"),
    )
    last_pull: str = option_field(
        "counts",
        LAST_PULLS,
        "the pull that exceeds the budget counts with its reward, or forfeits it (counts)",
    )
    marks: int | Sequence[float] = option_field(
        50, "marks", "points of the curves in regret.png (50)", metavar="N"
    )
    # The command's --constraint says it
    average_cost: float | None = option_field(None, "number", "")

    @property
    def rule(self) -> StoppingRule | None:
        """When to stop; None where the number of runs is fixed."""
        if self.until is None:
            return None
        return StoppingRule(self.until, self.claim, int(self.max_runs or 1000))

    @property
    def reading(self) -> dict[str, Any]:
        """Those of :func:`~jaxbandits.apps.comparison.read_arms`."""
        return {name: getattr(self, name) for name in READING}

    def check(self) -> None:
        """Is there a file that every value suits?

        Raises:
            InputError: there is none.
        """
        values = {name: value for name, value in vars(self).items() if value is not None}
        for field in dataclasses.fields(self):
            name, kind = field.name, field.metadata["kind"]
            words = field.metadata["words"]
            if name not in values or name in READING:  # whoever reads the file checks those
                continue
            if isinstance(values[name], str) and values[name] in words:
                continue
            also = f", or {' or '.join(map(repr, words))}" if words else ""
            if field.metadata["whole"] is not None:
                lowest, highest, highest_as = field.metadata["whole"]
                whole_number(name, values[name], lowest, highest, highest_as, also)
            elif kind == "number":
                if words and isinstance(values[name], str):
                    raise bad(name, values[name], f"a finite number above 0{also}")
                positive_number(name, values[name])
            elif isinstance(kind, tuple) and values[name] not in kind:
                raise bad(name, values[name], " or ".join(map(repr, kind)))
        fixed, paced = self.until is None, self.average_cost is not None
        for name, unused, reason in (
            ("max_runs", fixed and self.max_runs is not None, " without until"),
            ("claim", fixed and self.claim != "any", " without until"),
            (
                "runs",
                not fixed and self.runs is not None,
                " with until (max_runs says how many at most)",
            ),
            (
                "last_pull",
                paced and self.last_pull != "counts",
                " with an average cost, which no pull exceeds",
            ),
        ):
            if unused:
                raise bad(name, values[name], f"left out{reason}")
