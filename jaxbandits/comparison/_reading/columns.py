"""Which column of an arms file is what: by plain names, by the usual words, or as the user says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jaxbandits.comparison._reading.words import Title, best_match, titles_of
from jaxbandits.core.errors import InputError

ROLES = ("instance", "name", "time", "reward", "cost", "clicks", "spent", "conversions", "mean_reward", "mean_cost")
"""What ``columns`` may name."""

PLAIN = {
    "means": ("name", "mean_reward", "mean_cost"),
    "counts": ("name", "clicks", "spent", "conversions"),
    "log": ("name", "reward", "cost"),
    "facebook": ("campaign_id", "age", "gender", "clicks", "spent", "total_conversion"),
}
COSTS = ("spent", "cost", "mean_cost")
"""Roles for which a number may be given instead of a title."""
_ALIASES = {
    "name": ("arm",),
    "spent": ("spend", "cost"),
    "conversions": ("conversion", "total_conversion"),
    "campaign_id": ("xyz_campaign_id",),
}


@dataclass(frozen=True)
class Columns:
    """The columns that are used.

    Attributes:
        kind: "means", "counts", "log" or "facebook".
        at: the position of each role, such as "name" or "spent"; "conversions" is the reward of a file of counts.
        plain: the header is in plain form (:data:`PLAIN`).
        title: of each role, what its title says.
        rates: of a role of RATES that has no column: (position of the rate, the role beside it, "times" or "divided").
        constant: of "spent" or "cost": what every pull costs, where the user gave a number instead of a column.
        is_value: the reward of a file of counts is an amount or a score, not a number of conversions.
        pull_unit: what a pull is.
        levels: positions of coarser names (ad set, campaign), the coarsest last.
        whens: roles in ``at`` that make the time together with "time": "clock", "month", "year".
        others: of each role further columns that could have been meant.
    """

    kind: str
    at: Mapping[str, int]
    plain: bool = False
    title: Mapping[str, Title] = field(default_factory=dict)
    rates: Mapping[str, tuple[int, str, str]] = field(default_factory=dict)
    constant: Mapping[str, float] = field(default_factory=dict)
    is_value: bool = False
    pull_unit: str = "pull"
    levels: tuple[int, ...] = ()
    whens: tuple[str, ...] = ()
    others: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def numeric(self) -> dict[str, int]:
        """Positions of the columns of numbers by role; a rate's role is such as "spent rate"."""
        roles = ["clicks", *PLAIN[self.kind][1:]]
        found = {role: self.at[role] for role in dict.fromkeys(roles) if role in self.at}
        return found | {f"{role} rate": at for role, (at, _, _) in self.rates.items()}

    @property
    def by_test(self) -> bool:
        """Whether the instances are tests of variants, which only several tests need a name for."""
        return "test" in self.title

    def unit(self, role: str) -> str:
        """The unit in a role's title."""
        return self.title[role].unit if role in self.title else ""

    def used(self) -> set[int]:
        """Positions of all columns that are read."""
        return {*self.at.values(), *self.numeric().values(), *self.levels}


@dataclass(frozen=True)
class Asked:
    """What the user says of the columns: titles (as keys of :func:`~words.key`) by role, and the value column."""

    columns: Mapping[str, str]
    reward: str | None

    @property
    def empty(self) -> bool:
        """Whether nothing was said."""
        return not self.columns and self.reward is None


def plain_columns(titles: Sequence[str], source: str) -> Columns | None:
    """Those of a header in plain form; None if it is in none.

    Raises:
        InputError: it fits several kinds, or has two columns for one purpose.
    """
    lower = [text.lower() for text in titles]

    def hits(column: str) -> list[int]:
        accepted = (column, *_ALIASES.get(column, ()))
        return [i for i, text in enumerate(lower) if text in accepted]

    fits = [kind for kind, columns in PLAIN.items() if all(hits(c) for c in columns)]
    if not fits:
        return None
    if len(fits) > 1:
        raise InputError(
            f"{source}: the header fits {' and '.join(fits)}; it must have the columns of only one of {formats()} "
            f"(or give --columns)"
        )
    kind = fits[0]
    optional = ("ad_id",) if kind == "facebook" else ("instance",)
    found = {column: hits(column) for column in (*PLAIN[kind], *optional)}
    for column, positions in found.items():
        if len(positions) > 1:
            named = " and ".join(lower[i] for i in positions)
            raise InputError(f"{source}: columns {named} all stand for {column}; only one may be there")
    at = {column: positions[0] for column, positions in found.items() if positions}
    if kind == "facebook":
        return Columns(kind, at, plain=True, pull_unit="click")
    keyed = titles_of(titles)
    more = ("time", "currency", "clicks") if kind == "log" else ("time", "currency")
    at |= {role: i for role in more if (i := best_match(keyed, (role,), at.values())) is not None}
    dated = "time" in at and keyed[at["time"]].key in ("date", "timestamp")
    at |= {"time": lower.index("time")} if "time" in at and "time" in lower and not dated else {}
    unit = {"means": "pull", "counts": "click", "log": "row"}[kind]
    return Columns(kind, at, plain=True, title={role: keyed[i] for role, i in at.items()}, pull_unit=unit)


def formats() -> str:
    """The plain forms, for messages."""
    return "; ".join(f"{kind}: {', '.join(columns)}" for kind, columns in PLAIN.items())
