"""Which column of an arms file is what: by plain names, by the usual words, or as the user says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jaxbandits.comparison._reading.titles import OF_ONE, Title, best_match, key, rank_of, titles_of
from jaxbandits.core.checks import InputError, bad, brief, shown

# What ``columns`` may name; ``price`` is a cost per pull, ``reward_rate`` a reward per pull.
ROLES = (
    *("instance", "name", "time", "reward", "cost", "price", "reward_rate", "clicks", "spent", "conversions"),
    *("mean_reward", "mean_cost"),
)
PLAIN = {
    "means": ("name", "mean_reward", "mean_cost"),
    "counts": ("name", "clicks", "spent", "conversions"),
    "log": ("name", "reward", "cost"),
    "facebook": ("campaign_id", "age", "gender", "clicks", "spent", "total_conversion"),
}
_REWARD_OF = {"means": "mean_reward", "counts": "conversions", "log": "reward"}
COSTS = ("spent", "cost", "mean_cost")  # for them a number may be given instead of a title
_ALIASES = {
    "name": ("arm",),
    "spent": ("spend", "cost"),
    "conversions": ("conversion", "total_conversion"),
    "campaign_id": ("xyz_campaign_id",),
}
# The words of a role are those of the role's name, if no others stand here; and what the user may call it.
_WORDS = {
    "counts": {"conversions": ("conversions", "value")},
    "log": {"reward": ("reward", "conversions", "value"), "cost": ("cost", "spent")},
    "means": dict[str, tuple[str, ...]](),
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
Asked = Mapping[str, str]  # what the user says: titles by role, and under REWARD the column that counts as reward
REWARD = "--reward"
Given = dict[str, tuple[int, Terms]]  # of a role the position of a column, and its terms


@dataclass(frozen=True)
class Columns:
    """The columns that are used."""

    kind: str  # "means", "counts", "log" or "facebook"
    at: Mapping[str, int]  # of each role, such as "name", the position; "conversions" is the reward of a file of counts
    plain: bool = False  # the header is in plain form (PLAIN)
    title: Mapping[str, Title] = field(default_factory=dict)  # of each role, what its title says
    # Of a role of _RATES that has no column: (position of the rate, the role beside it, "times" or "divided").
    rates: Mapping[str, tuple[int, str, str]] = field(default_factory=dict)
    constant: Mapping[str, float] = field(default_factory=dict)  # what every pull costs, where the user gave a number
    terms: Mapping[str, Terms] = field(default_factory=dict)
    is_value: bool = False  # the reward of a file of counts is an amount or a score, not a number of conversions
    pull_unit: str = "pull"
    levels: tuple[int, ...] = ()  # positions of coarser names (ad set, campaign), the coarsest last
    other: int | None = None  # another column that may count as reward
    by_test: bool = False  # the instances are tests of variants, which only several tests need a name for
    given: frozenset[str] = frozenset()  # roles that the user named
    given_log: bool = False  # the user said that every row is one pull (``clicks=1``)

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


def find_columns(titles: Sequence[str], asked: Asked, source: str, *, plain: bool) -> Columns | None:
    """Those of a header, in plain form or in the usual words; None if something is missing."""
    if plain:
        return None if asked else _plain(titles, source)
    if _unknown(titles, asked) is not None:
        return None
    given = _given(titles, asked)
    kinds: tuple[str, ...] = ("counts", "means", "log")
    if {"mean_reward", "mean_cost"} & asked.keys():
        kinds = ("means",)
    elif "clicks" in asked:
        kinds = ("log",) if asked["clicks"] == "1" and _position("1", titles) is None else ("counts",)
    keyed = titles_of(titles)
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
    _add_beside(kind, keyed, at)
    unit = {"means": "pull", "counts": "click", "log": "row"}[kind]
    return Columns(kind, at, plain=True, title={role: keyed[i] for role, i in at.items()}, pull_unit=unit)


def _add_beside(kind: str, keyed: Sequence[Title], at: dict[str, int], given: Given | None = None) -> None:
    """Columns that are no numbers, and what may count the pulls of a log; those of the user first."""
    named = ("instance",) if given is not None else ()  # a plain header says it by that very word
    for role in ("time", "currency", *named, *(("clicks",) if kind == "log" else ())):
        position = given[role][0] if given and role in given else best_match(keyed, (role,), at.values())
        if position is not None:
            at[role] = position


def _position(text: str, titles: Sequence[str]) -> int | None:
    """Of the column that is meant by this title: spelt exactly so, or but for case, accents and signs."""
    for same in (str, str.casefold, key):
        if found := [i for i, other in enumerate(titles) if same(other) == same(text) and same(text)]:
            return found[0]
    return None


def _found(role: str, text: str, titles: Sequence[str]) -> tuple[int, Terms] | None:
    """The column that is meant, or several joined by " + ", " * " or " / " from the left, perhaps with a number.

    As reward also any of the usual words for a column that is there.
    """
    if (at := _position(text, titles)) is not None:
        return at, ()
    if role == REWARD:
        words = [of for of in ("value", "conversions", "reward", "mean_reward", "roas") if key(text) in rank_of()[of]]
        at = best_match(titles_of(titles), words[:1])
        return None if at is None else (at, ())
    first, *rest = _TERM.split(text)
    if not rest or (at := _position(first, titles)) is None:
        return None
    terms = list[tuple[str, int | float]]()
    for sign, part in zip(rest[::2], rest[1::2], strict=True):
        value = _position(part, titles)
        if value is None and not _NUMBER.fullmatch(part):
            return None
        terms.append((sign, float(part) if value is None else value))
    return at, tuple(terms)


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
    for role in PLAIN[kind]:
        for name in (*_SYNONYMS[kind].get(role, (role,)), *((REWARD,) if role == _REWARD_OF[kind] else ())):
            if name in given:
                found[role] = given[name]
    taken = {at for at, _ in given.values()}
    for role in PLAIN[kind]:
        # A price or a rate that was named stands for the total of its kind.
        named_rate = kind == "counts" and _NAMED_RATES.get(role) in given
        words = _WORDS[kind].get(role, (role,))
        if role not in found and not named_rate and (i := best_match(keyed, words, taken)) is not None:
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
    reward = _REWARD_OF[kind]
    chosen = reward in named or REWARD in given or reward not in at
    other = None if chosen else best_match(keyed, _WORDS[kind].get(reward, (reward,)), at.values())
    _add_beside(kind, keyed, at, given)
    days = [i for i, one in enumerate(keyed) if one.rank("time") == _DAY and i not in at.values()]
    if kind != "log" and "time" in at and "time" not in given and days and keyed[at["time"]].rank("time") != _DAY:
        at["time"] = days[0]  # of a report; when something was made or exported is another matter
    if kind == "log" and "clicks" not in at and keyed[at["reward"]].key in rank_of()["solved"]:
        at |= {"clicks": i} if (i := best_match(keyed, ("asked",), at.values())) is not None else {}
    tests = best_match(keyed, ("test",), at.values()) if kind != "log" and "instance" not in at else None
    by_test = tests is not None and keyed[at["name"]].rank("name") in _VARIANTS
    at |= {"instance": tests} if tests is not None and by_test else {}
    if kind == "counts" and not chosen and keyed[at["conversions"]].key in rank_of()["results"]:
        kind_of = best_match(keyed, ("result_kind",), at.values())
        at |= {"result_kind": kind_of} if kind_of is not None else {}
    of_rates = {f"{role} rate": given[name] for role, name in _NAMED_RATES.items() if name in given and role in rates}
    titled = {role: keyed[i] for role, i in at.items()} | {f"{x} rate": keyed[i] for x, (i, _, _) in rates.items()}
    return Columns(
        kind,
        at,
        title=titled,
        rates=rates,
        constant=constant,
        terms={role: terms for role, (_, terms) in (*found.items(), *of_rates.items()) if terms},
        is_value=kind == "counts" and "conversions" not in asked and not _is_number_of(titled, rates),
        pull_unit={"means": "pull", "log": "row"}.get(kind) or pull_unit(titled.get("clicks")),
        levels=_levels(keyed, at, given),
        other=other,
        by_test=by_test,
        given=frozenset(named),
        given_log=kind == "log" and asked.get("clicks") == "1",
    )


def _is_number_of(titled: Mapping[str, Title], rates: Mapping[str, object]) -> bool:
    """Is the reward of a file of counts a number of conversions, and no amount?"""
    words = rank_of()["conversions"] | rank_of()["rate"] | rank_of()["per_result"]
    return titled["conversions rate" if "conversions" in rates else "conversions"].is_any(words)


def _check_totals(titles: Sequence[str], keyed: Sequence[Title], given: Given) -> None:
    """A price per pull that is named as a total would be divided by the pulls again."""
    rates = rank_of()["price"].keys() | rank_of()["per_result"].keys() | rank_of()["rate"].keys()
    instead = {"cost": "price", "spent": "price", "conversions": "reward-rate", "reward": "reward-rate"}
    for role in (role for role in instead if role in given):
        at, terms = given[role]
        is_rate = keyed[at].is_any(rates) or OF_ONE.search(titles[at]) or _COST_PER.fullmatch(titles[at])
        if is_rate and not any(sign == "*" and isinstance(of, int) for sign, of in terms):
            option = shlex.quote(f"{instead[role]}={titles[at]}")
            raise bad("columns", f"{role}={titles[at]}", f"a total; if it is one pull's, say --columns {option}")


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
    for role in missing:
        if (name := _NAMED_RATES.get(role)) in given and "clicks" in at:
            found[role] = given[name][0], "clicks", "times"
        for words, beside, how in _RATES.get(role, ()):
            if beside not in at or role in found or (i := best_match(keyed, (words,), at.values())) is None:
                continue
            if beside != "clicks" or _of_pulls(keyed[i], keyed[at["clicks"]]):
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
    return _UNITS[0 if clicks is None else max(clicks.rank("clicks"), 0)]


def _levels(keyed: Sequence[Title], at: Mapping[str, int], given: Given) -> tuple[int, ...]:
    rank = keyed[at["name"]].rank("name")
    above = next((range(rank + 1, levels.stop) for levels in _LEVELS if rank in levels), range(0))
    ranked = {x.rank("name"): i for i, x in reversed(list(enumerate(keyed))) if i not in at.values()}
    return () if "name" in given else tuple(ranked[r] for r in above if r in ranked)


# --- A header that lacks columns.


def samples(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The columns, each with its first cells, for messages."""
    seen = {
        title: ", ".join(row[i] for row in rows if i < len(row) and row[i]) for i, title in enumerate(titles) if title
    }
    return brief("; ".join(f"{shown(brief(title, 40))} ({of or 'empty'})" for title, of in seen.items()), 400)


def missing_columns(heads: Sequence[Sequence[Sequence[str]]], source: str, asked: Asked) -> InputError:
    """The error of a file in whose first rows (of each separator) no header was found.

    It shows the columns with two samples each, and a command in which what is not known stands open.
    """
    best = list[tuple[tuple[float, int, int], int, Sequence[Sequence[str]], Given, list[str]]]()
    for rows in heads:
        for at, cells in enumerate(rows):
            words = sum(not _AMOUNT.fullmatch(cell) for cell in cells if cell)
            for kind in ("counts", "means", "log"):
                found, missing = _positions(kind, titles_of(cells), _given(cells, asked))
                rank = len(missing) / len(PLAIN[kind]), -min(words, 3), len(best)
                best.append((rank, at, rows, found, missing))
    _, at, rows, found, missing = min(best, key=lambda one: one[0])
    header = rows[at]
    if (role := _unknown(header, asked)) is not None:
        must = f"a title of the file: {brief(', '.join(filter(None, header)))}"
        return bad(*(("reward", asked[role]) if role == REWARD else ("columns", f"{role}={asked[role]}")), must)
    say = {
        **{role: header[i] for role, (i, _) in found.items()},
        **{role: text for role, text in asked.items() if role != REWARD},
        **dict.fromkeys(missing, "…"),
    }
    option = shlex.quote(",".join(f"{role}={text}" for role, text in say.items()))
    return InputError(
        f"{source}: no column is known to be {' or '.join(missing)}. The columns are "
        f"{samples(header, rows[at + 1 : at + 3])}. Say which is which: --columns {option} (a number as cost: what "
        f"every pull costs), or use the titles of one of {formats()}"
    )
