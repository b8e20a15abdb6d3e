"""Which column of an arms file is what: by plain names, by the usual words, or as the user says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jaxbandits.comparison._reading.words import Title, key, rank_of, title, titles_of
from jaxbandits.core.errors import InputError

ROLES = ("instance", "name", "time", "reward", "cost", "clicks", "spent", "conversions", "mean_reward", "mean_cost")
"""What ``columns`` may name."""

PLAIN = {
    "means": ("name", "mean_reward", "mean_cost"),
    "counts": ("name", "clicks", "spent", "conversions"),
    "log": ("name", "reward", "cost"),
    "facebook": ("campaign_id", "age", "gender", "clicks", "spent", "total_conversion"),
}
_ALIASES = {
    "name": ("arm",),
    "spent": ("spend", "cost"),
    "conversions": ("conversion", "total_conversion"),
    "campaign_id": ("xyz_campaign_id",),
}
# Words of a role, in the order of these lists of words.
_WORDS: dict[str, dict[str, tuple[str, ...]]] = {
    "counts": {
        "name": ("name",),
        "clicks": ("clicks",),
        "spent": ("spent",),
        "conversions": ("conversions", "value"),
    },
    "means": {"name": ("name",), "mean_reward": ("mean_reward",), "mean_cost": ("mean_cost",)},
    "log": {"name": ("name",), "reward": ("reward", "conversions", "value"), "cost": ("cost", "spent")},
}
_SYNONYMS: dict[str, dict[str, tuple[str, ...]]] = {
    "counts": {"spent": ("spent", "cost"), "conversions": ("conversions", "reward")},
    "log": {"reward": ("reward", "conversions"), "cost": ("cost", "spent")},
    "means": {},
}
# A column that is missing, from one beside it: the words of the rate, what it is multiplied or divided with.
RATES = {
    "clicks": (("price", "spent", "divided"),),
    "spent": (("price", "clicks", "times"),),
    "conversions": (("rate", "clicks", "times"), ("per_result", "spent", "divided"), ("roas", "spent", "times")),
}
_LEVELS = range(3, 8)  # ranks of names: ad, creative, keyword, ad set, campaign
COSTS = ("spent", "cost", "mean_cost")
"""Roles for which a number may be given instead of a title."""
_CONSTANT = re.compile(r"\d+\.?\d*|\.\d+", re.ASCII)


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
    others: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def numeric(self) -> dict[str, int]:
        """Positions of the columns of numbers by role; a rate's role is such as "spent rate"."""
        roles = ["clicks", *PLAIN[self.kind][1:]]
        found = {role: self.at[role] for role in dict.fromkeys(roles) if role in self.at}
        return found | {f"{role} rate": at for role, (at, _, _) in self.rates.items()}

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
    keyed = [title(text) for text in titles]
    more = ("time", "currency", "clicks") if kind == "log" else ("time", "currency")
    at |= {role: i for role in more if (i := _best(keyed, (role,), at.values())) is not None}
    unit = {"means": "pull", "counts": "click", "log": "row"}[kind]
    return Columns(kind, at, plain=True, title={role: keyed[i] for role, i in at.items()}, pull_unit=unit)


def formats() -> str:
    """The plain forms, for messages."""
    return "; ".join(f"{kind}: {', '.join(columns)}" for kind, columns in PLAIN.items())


def usual_columns(titles: Sequence[str], asked: Asked) -> Columns | None:
    """Those of a header in the usual words, with what the user says of them; None if something is missing."""
    keyed = titles_of(titles)
    given = _asked_positions(titles, keyed, asked)
    if given is None:
        return None
    for kind in _kinds(asked):
        if found := _of_kind(kind, keyed, given, asked):
            return found
    return None


def _kinds(asked: Asked) -> tuple[str, ...]:
    if "mean_reward" in asked.columns or "mean_cost" in asked.columns:
        return ("means",)
    if "clicks" in asked.columns:
        return ("counts",)
    return ("counts", "means", "log")


def missing_roles(titles: Sequence[str], asked: Asked, kind: str) -> tuple[list[str], dict[str, int]]:
    """Of a kind: the roles without a column, and the positions of the others."""
    at, missing = _positions(kind, titles_of(titles), _asked_positions(titles, titles_of(titles), asked) or {})
    return missing, at


def position(text: str, titles: Sequence[str]) -> int | None:
    """Of the column that is meant by this title: spelt exactly so, or but for case, accents and signs."""
    for same in (str, str.casefold, key):
        if found := [i for i, other in enumerate(titles) if same(other) == same(text) and same(text)]:
            return found[0]
    return None


def value_position(text: str, titles: Sequence[str]) -> int | None:
    """Of the column that ``--reward`` means: a title, or any of the usual words for a column that is there."""
    if (exact := position(text, titles)) is not None:
        return exact
    keyed = titles_of(titles)
    for role in ("value", "conversions", "reward", "mean_reward", "roas"):
        if key(text) in rank_of()[role]:
            return _best(keyed, (role,), ())
    return None


def _asked_positions(titles: Sequence[str], keyed: Sequence[Title], asked: Asked) -> dict[str, int] | None:
    """None if a title is not there; a number instead of a title is no column (see Columns.constant)."""
    found: dict[str, int] = {}
    for role, text in asked.columns.items():
        at = position(text, titles)
        if at is None and not (role in COSTS and _CONSTANT.fullmatch(text)):
            return None
        if at is not None:
            found[role] = at
    if asked.reward is not None:
        at = value_position(asked.reward, titles)
        if at is None:
            return None
        found["--reward"] = at
    return found


def _positions(kind: str, keyed: Sequence[Title], given: Mapping[str, int]) -> tuple[dict[str, int], list[str]]:
    at: dict[str, int] = {}
    last = PLAIN[kind][-1] if kind == "counts" else PLAIN[kind][1]  # the reward
    for role in PLAIN[kind]:
        for name in (*_SYNONYMS[kind].get(role, (role,)), *(("--reward",) if role == last else ())):
            if name in given:
                at[role] = given[name]
    for role, words in _WORDS[kind].items():
        if role not in at and (found := _best(keyed, words, (*at.values(), *given.values()))) is not None:
            at[role] = found
    return at, [role for role in PLAIN[kind] if role not in at]


def _of_kind(kind: str, keyed: Sequence[Title], given: Mapping[str, int], asked: Asked) -> Columns | None:
    at, missing = _positions(kind, keyed, given)
    constant = {}
    for role in [x for x in missing if x in COSTS]:
        numbers = [t for r in COSTS if (t := asked.columns.get(r)) and r not in given]
        if numbers:
            constant[role] = float(numbers[0])
    rates = _rates(keyed, at, [role for role in missing if role not in constant]) if kind == "counts" else {}
    if any(role not in rates and role not in constant for role in missing):
        return None
    others = {}
    for role, words in _WORDS[kind].items():
        if role in at and role not in given:
            others[role] = tuple(i for i in _all(keyed, words) if i not in at.values())
    for role in ("time", "currency", "instance", *(("clicks",) if kind == "log" else ())):
        found = given.get(role, _best(keyed, (role,), at.values()))
        if found is not None:
            at[role] = found
    unit = {"means": "pull", "log": "row"}.get(kind) or pull_unit(keyed[at["clicks"]] if "clicks" in at else None)
    known = rank_of()["conversions"] | rank_of()["rate"] | rank_of()["per_result"]
    reward = (
        keyed[rates["conversions"][0] if "conversions" in rates else at["conversions"]] if kind == "counts" else None
    )
    counted = reward is not None and any(word in known for word in (reward.key, *reward.others))
    is_value = kind == "counts" and not counted and "conversions" not in asked.columns
    titles = {role: keyed[i] for role, i in at.items()}
    return Columns(kind, at, False, titles, rates, constant, is_value, unit, _levels(keyed, at, given), others)


def _rates(keyed: Sequence[Title], at: Mapping[str, int], missing: Iterable[str]) -> dict[str, tuple[int, str, str]]:
    found = {}
    for role in missing:
        for words, beside, how in RATES.get(role, ()):
            if beside in at and role not in found and (i := _best(keyed, (words,), at.values())) is not None:
                found[role] = (i, beside, how)
    return found


def pull_unit(clicks: Title | None) -> str:
    """What a pull is, by the title of the column that counts them."""
    units = ("click", "click", "pull", "session", "click", "view", "impression")
    return units[0 if clicks is None else _rank(clicks, "clicks", 0)]


def _rank(one: Title, role: str, otherwise: int) -> int:
    return next((rank_of()[role][word] for word in (one.key, *one.others) if word in rank_of()[role]), otherwise)


def _levels(keyed: Sequence[Title], at: Mapping[str, int], given: Mapping[str, int]) -> tuple[int, ...]:
    rank = _rank(keyed[at["name"]], "name", -1)
    if rank not in _LEVELS or "name" in given:
        return ()
    ranked = {_rank(x, "name", -1): i for i, x in reversed(list(enumerate(keyed)))}
    return tuple(ranked[r] for r in _LEVELS if r > rank and r in ranked)


def _best(keyed: Sequence[Title], roles: Sequence[str], taken: Iterable[int]) -> int | None:
    """The column with the likeliest word of these roles; the first of several that are equally likely."""
    taken = set(taken)
    return next((i for i in _all(keyed, roles) if i not in taken), None)


def _all(keyed: Sequence[Title], roles: Sequence[str]) -> list[int]:
    """All columns with a word of these roles, the likeliest first."""
    found = []
    for i, one in enumerate(keyed):
        for less, word in enumerate((one.key, *one.others)):
            ranks = [(order, rank_of()[role][word]) for order, role in enumerate(roles) if word in rank_of()[role]]
            if ranks:
                found.append((*min(ranks), less, i))
                break
    return [found_at for *_, found_at in sorted(found)]
