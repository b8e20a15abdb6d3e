"""Which column of an arms file is what: by plain names, by the usual words, or as the user says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jaxbandits.comparison._reading.titles import OF_ONE, Title, best_match, key, rank_of, titles_of
from jaxbandits.core.checks import InputError, bad, brief, shown

ROLES = (
    *("instance", "name", "time", "reward", "cost", "price", "reward_rate", "clicks", "spent", "conversions"),
    *("mean_reward", "mean_cost"),
)
"""What ``columns`` may name; ``price`` is a cost per pull, ``reward_rate`` a reward per pull."""

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
_WORDS: dict[str, dict[str, tuple[str, ...]]] = {  # words of a role, in the order of these lists
    "counts": {"name": ("name",), "clicks": ("clicks",), "spent": ("spent",), "conversions": ("conversions", "value")},
    "means": {"name": ("name",), "mean_reward": ("mean_reward",), "mean_cost": ("mean_cost",)},
    "log": {"name": ("name",), "reward": ("reward", "conversions", "value"), "cost": ("cost", "spent")},
}
_SYNONYMS: dict[str, dict[str, tuple[str, ...]]] = {
    "counts": {"spent": ("spent", "cost"), "conversions": ("conversions", "reward")},
    "log": {"reward": ("reward", "conversions"), "cost": ("cost", "spent", "price")},
    "means": {"mean_reward": ("mean_reward", "reward_rate"), "mean_cost": ("mean_cost", "price")},
}
_RATES = {  # a column that is missing, from one beside it: words of the rate, and what to do with it
    "clicks": (("price", "spent", "divided"),),
    "spent": (("price", "clicks", "times"),),
    "conversions": (("rate", "clicks", "times"), ("per_result", "spent", "divided"), ("roas", "spent", "times")),
}
_NAMED_RATES = {"spent": "price", "conversions": "reward_rate"}
_LEVELS = (range(2, 4), range(4, 11), range(12, 14))  # ranks of names, each the parent of those before it
_DAY = 1  # rank of times
_VARIANTS = (0, 1)  # ranks of names that mean something only within their test
_SEEN = {"view": ("view", "cpv", "aufruf"), "impression": ("impression",)}  # in titles of what one of these costs
_UNITS = ("click", "click", "pull", "session", "click", "view", "impression")  # by the rank of what counts pulls
_NUMBER = re.compile(r"\d+\.?\d*|\.\d+", re.ASCII)
_COST_PER = re.compile(r"(?:e|v)?(?:cp[a-z]|rpm|epc)", re.IGNORECASE)
_AMOUNT = re.compile(r"\W*[A-Z]{0,3}\s*\d[\d.,'’\s]*\W*[A-Z]{0,3}")
_TERM = re.compile(r"\s+([+*/])\s+")


Terms = tuple[tuple[str, int | float], ...]  # what is added to a column, multiplied with it or divided into it


@dataclass(frozen=True)
class Columns:
    """The columns that are used.

    Attributes:
        kind: "means", "counts", "log" or "facebook".
        at: the position of each role, such as "name" or "spent"; "conversions" is the reward of a file of counts.
        plain: the header is in plain form (:data:`PLAIN`).
        title: of each role, what its title says.
        rates: of a role of _RATES that has no column: (position of the rate, the role beside it, "times" or "divided").
        constant: of "spent" or "cost": what every pull costs, where the user gave a number instead of a column.
        terms: of a role what is added to, multiplied with or divided into its column: (sign, position or number).
        is_value: the reward of a file of counts is an amount or a score, not a number of conversions.
        pull_unit: what a pull is.
        levels: positions of coarser names (ad set, campaign), the coarsest last.
        other: another column that may count as reward, or None.
        by_test: the instances are tests of variants, which only several tests need a name for.
        given: roles that the user named.
        given_log: the user said that every row is one pull (``clicks=1``).
    """

    kind: str
    at: Mapping[str, int]
    plain: bool = False
    title: Mapping[str, Title] = field(default_factory=dict)
    rates: Mapping[str, tuple[int, str, str]] = field(default_factory=dict)
    constant: Mapping[str, float] = field(default_factory=dict)
    terms: Mapping[str, Terms] = field(default_factory=dict)
    is_value: bool = False
    pull_unit: str = "pull"
    levels: tuple[int, ...] = ()
    other: int | None = None
    by_test: bool = False
    given: frozenset[str] = frozenset()
    given_log: bool = False

    def numeric(self) -> dict[str, int]:
        """Positions of the columns of numbers by role; a rate's role is such as "spent rate"."""
        roles = dict.fromkeys(["clicks", *PLAIN[self.kind][1:]])
        found = {role: self.at[role] for role in roles if role in self.at}
        return found | {f"{role} rate": at for role, (at, _, _) in self.rates.items()}

    def unit(self, role: str) -> str:
        """The unit in a role's title."""
        return self.title[role].unit if role in self.title else ""

    def used(self) -> set[int]:
        """Positions of all columns that are read."""
        more = {at for terms in self.terms.values() for _, at in terms if isinstance(at, int)}
        return {*self.at.values(), *self.numeric().values(), *self.levels, *more}


Asked = Mapping[str, str]  # what the user says: titles by role, and under REWARD the column that counts as reward
REWARD = "--reward"
Formula = tuple[int, Terms]  # the position of a column, and its terms
Given = dict[str, Formula]


def find_columns(titles: Sequence[str], asked: Asked, source: str, *, plain: bool) -> Columns | None:
    """Those of a header, in plain form or in the usual words; None if something is missing.

    Raises:
        InputError: two columns for one purpose; a column that was named as a total and is a price.
    """
    if plain:
        return None if asked else _plain(titles, source)
    keyed = titles_of(titles)
    if _unknown(titles, asked) is not None:
        return None
    given = _given(titles, asked)
    kinds: tuple[str, ...] = ("counts", "means", "log")
    if {"mean_reward", "mean_cost"} & asked.keys():
        kinds = ("means",)
    elif "clicks" in asked:
        kinds = ("log",) if asked["clicks"] == "1" and _position("1", titles) is None else ("counts",)
    return next((found for kind in kinds if (found := _of_kind(kind, titles, keyed, given, asked))), None)


def formats() -> str:
    """The plain forms, for messages."""
    return "; ".join(f"{kind}: {', '.join(columns)}" for kind, columns in PLAIN.items())


def _plain(titles: Sequence[str], source: str) -> Columns | None:
    lower = [text.lower() for text in titles]

    def hits(column: str) -> list[int]:
        return [i for i, text in enumerate(lower) if text in (column, *_ALIASES.get(column, ()))]

    fits = [kind for kind, columns in PLAIN.items() if all(hits(c) for c in columns)]
    if not fits:
        return None
    if len(fits) > 1:
        only = f"it must have the columns of only one of {formats()} (or give --columns)"
        raise InputError(f"{source}: the header fits {' and '.join(fits)}; {only}")
    kind = fits[0]
    found = {column: hits(column) for column in (*PLAIN[kind], "ad_id" if kind == "facebook" else "instance")}
    for column, positions in found.items():
        if len(positions) > 1:
            named = " and ".join(lower[i] for i in positions)
            raise InputError(f"{source}: columns {named} all stand for {column}; only one may be there")
    at = {column: positions[0] for column, positions in found.items() if positions}
    if kind == "facebook":
        return Columns(kind, at, plain=True, pull_unit="click")
    keyed = titles_of(titles)
    for role in ("time", "currency", *(("clicks",) if kind == "log" else ())):
        if (i := best_match(keyed, (role,), at.values())) is not None:
            at[role] = i
    unit = {"means": "pull", "counts": "click", "log": "row"}[kind]
    return Columns(kind, at, plain=True, title={role: keyed[i] for role, i in at.items()}, pull_unit=unit)


def _position(text: str, titles: Sequence[str]) -> int | None:
    """Of the column that is meant by this title: spelt exactly so, or but for case, accents and signs."""
    for same in (str, str.casefold, key):
        if found := [i for i, other in enumerate(titles) if same(other) == same(text) and same(text)]:
            return found[0]
    return None


def _expression(text: str, titles: Sequence[str]) -> Formula | None:
    """A title, or several joined by " + ", " * " or " / ", worked out from the left; a number may stand for one."""
    if (at := _position(text, titles)) is not None:
        return at, ()
    first, *rest = _TERM.split(text)
    if not rest or (at := _position(first, titles)) is None:
        return None
    terms = []
    for sign, part in zip(rest[::2], rest[1::2], strict=True):
        value = _position(part, titles)
        if value is None and not _NUMBER.fullmatch(part):
            return None
        terms.append((sign, float(part) if value is None else value))
    return at, tuple(terms)


def _found(role: str, text: str, titles: Sequence[str]) -> Formula | None:
    """The column that is meant; as reward also by any of the usual words for a column that is there."""
    if role != REWARD or _position(text, titles) is not None:
        return _expression(text, titles)
    words = (of for of in ("value", "conversions", "reward", "mean_reward", "roas") if key(text) in rank_of()[of])
    at = best_match(titles_of(titles), tuple(words)[:1])
    return None if at is None else (at, ())


def _unknown(titles: Sequence[str], asked: Asked) -> str | None:
    """The first role whose title is not there, and which is no number of costs."""
    for role, text in asked.items():
        if _found(role, text, titles) is None and not (role in (*COSTS, "clicks") and _NUMBER.fullmatch(text)):
            return role
    return None


def _given(titles: Sequence[str], asked: Asked) -> Given:
    """A number instead of a title is no column (see Columns.constant)."""
    return {role: at for role, text in asked.items() if (at := _found(role, text, titles)) is not None}


def _positions(kind: str, keyed: Sequence[Title], given: Given) -> tuple[Given, list[str]]:
    """Of each role of a kind its column, as given or by the usual words; and the roles that are missing."""
    found: Given = {}
    last = PLAIN[kind][-1] if kind == "counts" else PLAIN[kind][1]  # the reward
    for role in PLAIN[kind]:
        for name in (*_SYNONYMS[kind].get(role, (role,)), *((REWARD,) if role == last else ())):
            if name in given:
                found[role] = given[name]
    taken = {at for at, _ in given.values()}
    # A price or a rate that was named stands for the total of its kind.
    skip = {role: kind == "counts" and name in given for role, name in _NAMED_RATES.items()}
    for role, words in _WORDS[kind].items():
        taken |= {at for at, _ in found.values()}
        if role not in found and not skip.get(role) and (i := best_match(keyed, words, taken)) is not None:
            found[role] = i, ()
    taken |= {at for at, _ in found.values()}
    if "name" not in found and (i := best_match(keyed, ("label",), taken)) is not None:
        found["name"] = i, ()
    return found, [role for role in PLAIN[kind] if role not in found]


def _of_kind(kind: str, titles: Sequence[str], keyed: Sequence[Title], given: Given, asked: Asked) -> Columns | None:
    found, missing = _positions(kind, keyed, given)
    at = {role: position for role, (position, _) in found.items()}
    numbers = [text for role in COSTS if (text := asked.get(role)) and role not in given]
    constant = {role: float(numbers[0]) for role in missing if role in COSTS and numbers}
    rates = _rates(keyed, at, given, [role for role in missing if role not in constant]) if kind == "counts" else {}
    if any(role not in rates and role not in constant for role in missing):
        return None
    if kind == "counts":
        _check_totals(titles, keyed, given)
        _check_parts(titles, keyed, {role: i for role, i in at.items() if role not in given and role != "name"})
    named = {role for role, of in _SYNONYMS[kind].items() if not given.keys().isdisjoint(of)} | given.keys()
    named |= {role for role, name in _NAMED_RATES.items() if kind == "counts" and name in given}
    reward = PLAIN[kind][-1] if kind == "counts" else PLAIN[kind][1]
    chosen = reward in named or REWARD in given or reward not in at
    other = None if chosen else best_match(keyed, _WORDS[kind][reward], at.values())
    for role in ("time", "currency", "instance", *(("clicks",) if kind == "log" else ())):
        position = given[role][0] if role in given else best_match(keyed, (role,), at.values())
        if position is not None:
            at[role] = position
    days = [i for i, one in enumerate(keyed) if _rank(one, "time") == _DAY and i not in at.values()]
    if kind != "log" and "time" in at and "time" not in given and days and _rank(keyed[at["time"]], "time") != _DAY:
        at["time"] = days[0]  # of a report; when something was made or exported is another matter
    if kind == "log" and "clicks" not in at and keyed[at["reward"]].key in rank_of()["solved"]:
        at |= {"clicks": i} if (i := best_match(keyed, ("asked",), at.values())) is not None else {}
    tests = best_match(keyed, ("test",), at.values()) if kind != "log" and "instance" not in at else None
    by_test = tests is not None and _rank(keyed[at["name"]], "name") in _VARIANTS
    at |= {"instance": tests} if tests is not None and by_test else {}
    if kind == "counts" and "conversions" in at and not chosen:
        of_results = keyed[at["conversions"]].key in rank_of()["results"]
        kind_of = best_match(keyed, ("result_kind",), at.values()) if of_results else None
        at |= {"result_kind": kind_of} if kind_of is not None else {}
    of_rates = {f"{role} rate": given[name] for role, name in _NAMED_RATES.items() if name in given and role in rates}
    terms = {role: terms for role, (_, terms) in (*found.items(), *of_rates.items()) if terms}
    titled = {role: keyed[i] for role, i in at.items()} | {f"{x} rate": keyed[i] for x, (i, _, _) in rates.items()}
    unit = {"means": "pull", "log": "row"}.get(kind) or pull_unit(titled.get("clicks"))
    return Columns(
        kind,
        at,
        title=titled,
        rates=rates,
        constant=constant,
        terms=terms,
        is_value=kind == "counts" and _is_value(titled, rates, asked, given),
        pull_unit=unit,
        levels=_levels(keyed, at, given),
        other=other,
        by_test=by_test,
        given=frozenset(named),
        given_log=kind == "log" and asked.get("clicks") == "1",
    )


def _is_value(titled: Mapping[str, Title], rates: Mapping[str, object], asked: Asked, given: Given) -> bool:
    """Is the reward of a file of counts an amount, and not a number of conversions?"""
    words = rank_of()["conversions"] | rank_of()["rate"] | rank_of()["per_result"]
    reward = titled["conversions rate" if "conversions" in rates else "conversions"]
    return not reward.is_any(words) and "conversions" not in asked


def _check_totals(titles: Sequence[str], keyed: Sequence[Title], given: Given) -> None:
    """A price per pull that is named as a total would be divided by the pulls again."""
    rates = rank_of()["price"].keys() | rank_of()["per_result"].keys() | rank_of()["rate"].keys()
    for role, instead in (("cost", "price"), ("spent", "price"), ("conversions", "reward-rate"),
                          ("reward", "reward-rate")):  # fmt: skip
        at, terms = given.get(role, (-1, ()))
        if at >= 0 and not any(sign == "*" and isinstance(of, int) for sign, of in terms):
            text = titles[at]
            if keyed[at].is_any(rates) or OF_ONE.search(text) or _COST_PER.fullmatch(text):
                option = shlex.quote(f"{instead}={text}")
                raise bad("columns", f"{role}={text}", f"a total; if it is one pull's, say --columns {option}")


def _check_parts(titles: Sequence[str], keyed: Sequence[Title], at: Mapping[str, int]) -> None:
    """Of "Clicks (mobile)" and "Clicks (desktop)" neither is all clicks."""
    for role, i in at.items():
        bare = keyed[i].others[-1:] if keyed[i].bracket else ()
        parts = [n for n, one in enumerate(keyed) if one.bracket and one.others[-1:] == bare]
        if bare and len(parts) > 1 and not any(one.key in bare for one in keyed):
            whole = shlex.quote(f"{role}={' + '.join(titles[n] for n in parts)}")
            one = shlex.quote(f"{role}={titles[i]}")
            raise bad("columns", ", ".join(titles[n] for n in parts), f"decided: --columns {whole} or --columns {one}")


def _rates(keyed: Sequence[Title], at: Mapping[str, int], given: Given, missing: Iterable[str]) -> dict:
    found: dict[str, tuple[int, str, str]] = {}
    for role, name in _NAMED_RATES.items():
        if name in given and role in missing and "clicks" in at:
            found[role] = given[name][0], "clicks", "times"
    for role in missing:
        for words, beside, how in _RATES.get(role, ()):
            if beside not in at or role in found or (i := best_match(keyed, (words,), at.values())) is None:
                continue
            if beside != "clicks" or words == "roas" or _of_pulls(keyed[i], keyed[at["clicks"]]):
                found[role] = i, beside, how
    return found


def _of_pulls(rate: Title, pulls: Title) -> bool:
    """Whether a price or rate is one of what the pulls are: the price of a click is not that of an impression."""
    of = next((unit for unit, parts in _SEEN.items() if any(part in rate.key for part in parts)), "click")
    unit = pull_unit(pulls)
    return of == unit or {of, unit}.isdisjoint(_SEEN)


def pull_unit(clicks: Title | None) -> str:
    """What a pull is, by the title of the column that counts them."""
    if clicks is not None and clicks.key in rank_of()["asked"]:
        return "pull"
    return _UNITS[0 if clicks is None else max(_rank(clicks, "clicks"), 0)]


def _rank(one: Title, role: str) -> int:
    """Of the title among the words of a role; −1 if it is none."""
    return next((rank_of()[role][word] for word in (one.key, *one.others) if word in rank_of()[role]), -1)


def _levels(keyed: Sequence[Title], at: Mapping[str, int], given: Given) -> tuple[int, ...]:
    rank = _rank(keyed[at["name"]], "name")
    above = next((range(rank + 1, levels.stop) for levels in _LEVELS if rank in levels), range(0))
    ranked = {_rank(x, "name"): i for i, x in reversed(list(enumerate(keyed))) if i not in at.values()}
    return () if "name" in given else tuple(ranked[r] for r in above if r in ranked)


# --- A header that lacks columns.


def samples(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The columns, each with its first cells, for messages."""
    return brief(
        "; ".join(
            f"{shown(brief(title, 40))} ({', '.join(row[i] for row in rows if i < len(row) and row[i]) or 'empty'})"
            for i, title in enumerate(titles)
            if title
        ),
        400,
    )


def missing_columns(heads: Sequence[Sequence[Sequence[str]]], source: str, asked: Asked) -> InputError:
    """The error of a file in whose first rows (of each separator) no header was found.

    It shows the columns with two samples each, and a command in which what is not known stands open.
    """
    best: tuple[tuple[float, ...], int, int, Given, list[str]] | None = None
    for n, rows in enumerate(heads):
        for at, cells in enumerate(rows):
            words = sum(not _AMOUNT.fullmatch(cell) for cell in cells if cell)
            for kind in ("counts", "means", "log"):
                found, missing = _positions(kind, titles_of(cells), _given(cells, asked))
                rank = len(missing) / len(PLAIN[kind]), -min(words, 3)
                if best is None or rank < best[0]:
                    best = rank, n, at, found, missing
    assert best is not None  # a file that is not empty has a row
    _, n, at, found, missing = best
    header, below = heads[n][at], heads[n][at + 1 : at + 3]
    if (role := _unknown(header, asked)) is not None:
        must = f"a title of the file: {brief(', '.join(filter(None, header)))}"
        if role == REWARD:
            return bad("reward", asked[role], must)
        return bad("columns", f"{role}={asked[role]}", must)
    say = {
        **{role: header[i] for role, (i, _) in found.items()},
        **{role: text for role, text in asked.items() if role != REWARD},
        **dict.fromkeys(missing, "…"),
    }
    option = shlex.quote(",".join(f"{role}={text}" for role, text in say.items()))
    return InputError(
        f"{source}: no column is known to be {' or '.join(missing)}. The columns are {samples(header, below)}. "
        f"Say which is which: --columns {option} (a number as cost: what every pull costs), "
        f"or use the titles of one of {formats()}"
    )
