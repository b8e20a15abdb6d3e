"""The columns of a header in the usual words, or as the user says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from jaxbandits.comparison._reading.columns import COSTS, PLAIN, Asked, Columns
from jaxbandits.comparison._reading.words import Title, best_match, key, matches, rank_of, titles_of

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
_MOST_TITLES = 1000  # that usual words are looked for in
_LEVELS = (  # ranks of names, each the parent of those before it
    range(2, 4),  # model, provider
    range(4, 11),  # ad, creative, keyword, ad set, insertion order, campaign, campaign group
    range(12, 14),  # source, medium
)
_DAY, _WEEK, _MONTH, _QUARTER, _CLOCK = 1, 3, 4, 5, 6  # ranks of times
_VARIANTS = (0, 1)  # ranks of names that mean something only within their test
_CONSTANT = re.compile(r"\d+\.?\d*|\.\d+", re.ASCII)


def usual_columns(titles: Sequence[str], asked: Asked) -> Columns | None:
    """Those of a header in the usual words, with what the user says of them; None if something is missing."""
    titles = titles[:_MOST_TITLES]
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
    titles = titles[:_MOST_TITLES]
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
            return best_match(keyed, (role,), ())
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
        if role not in at and (found := best_match(keyed, words, (*at.values(), *given.values()))) is not None:
            at[role] = found
    taken = at.values()
    for look in (_last_word_names, lambda keyed, taken: best_match(keyed, ("label",), taken)):
        if "name" not in at and (found := look(keyed, taken)) is not None:
            at["name"] = found
    return at, [role for role in PLAIN[kind] if role not in at]


def _last_word_names(keyed: Sequence[Title], taken: Iterable[int]) -> int | None:
    """The first title that ends in a word for names, such as "Traffic source"."""
    words = {word for word in rank_of()["name"] if len(word) > 4}
    ends = [any(one.last == word for word in words) for one in keyed]
    return next((i for i, is_one in enumerate(ends) if is_one and i not in set(taken)), None)


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
            others[role] = tuple(i for i in matches(keyed, words) if i not in at.values())
    for role in ("time", "currency", "instance", *(("clicks",) if kind == "log" else ())):
        found = given.get(role, best_match(keyed, (role,), at.values()))
        if found is not None:
            at[role] = found
    days = [i for i, one in enumerate(keyed) if _rank(one, "time", -1) == _DAY and i not in at.values()]
    if kind != "log" and "time" in at and "time" not in given and days and _rank(keyed[at["time"]], "time", -1) != _DAY:
        at["time"] = days[0]  # of a report; when something was made or exported is another matter
    if kind == "log" and "clicks" not in at and keyed[at["reward"]].key in rank_of()["solved"]:
        at |= {"clicks": found} if (found := best_match(keyed, ("asked",), at.values())) is not None else {}
    tests = best_match(keyed, ("test",), at.values()) if kind != "log" and "instance" not in at else None
    by_test = tests is not None and _rank(keyed[at["name"]], "name", -1) in _VARIANTS
    at |= {"instance": tests} if tests is not None and by_test else {}
    if kind == "counts" and "conversions" in at and at["conversions"] not in given.values():
        of_results = keyed[at["conversions"]].key in rank_of()["results"]
        found = best_match(keyed, ("result_kind",), at.values()) if of_results else None
        at |= {"result_kind": found} if found is not None else {}
    whens = _whens(keyed, at)
    at |= whens
    unit = {"means": "pull", "log": "row"}.get(kind) or pull_unit(keyed[at["clicks"]] if "clicks" in at else None)
    known = rank_of()["conversions"] | rank_of()["rate"] | rank_of()["per_result"]
    reward = (
        keyed[rates["conversions"][0] if "conversions" in rates else at["conversions"]] if kind == "counts" else None
    )
    counted = reward is not None and any(word in known for word in (reward.key, *reward.others))
    is_value = kind == "counts" and not counted and "conversions" not in asked.columns
    titles = {role: keyed[i] for role, i in at.items()} | {f"{x} rate": keyed[i] for x, (i, _, _) in rates.items()}
    titles |= {"test": titles["instance"]} if by_test else {}
    return Columns(
        kind, at, False, titles, rates, constant, is_value, unit, _levels(keyed, at, given), tuple(whens), others
    )


def _whens(keyed: Sequence[Title], at: Mapping[str, int]) -> dict[str, int]:
    """The columns that may complete the time: a day's clock, the month of a day, the year of what may have none."""
    rank, found = _rank(keyed[at["time"]], "time", -1) if "time" in at else -1, dict[str, int]()
    for role, words, of in (("clock", ("time", _CLOCK), (_DAY,)), ("month", ("time", _MONTH), (_DAY,)),
                            ("year", ("year", 0), (_DAY, _WEEK, _MONTH, _QUARTER))):  # fmt: skip
        fits = [i for i, one in enumerate(keyed) if _rank(one, words[0], -1) == words[1] and i not in at.values()]
        if fits and rank in of:
            found[role] = fits[0]
    return found


def _rates(keyed: Sequence[Title], at: Mapping[str, int], missing: Iterable[str]) -> dict[str, tuple[int, str, str]]:
    found = {}
    for role in missing:
        for words, beside, how in RATES.get(role, ()):
            if beside not in at or role in found or (i := best_match(keyed, (words,), at.values())) is None:
                continue
            if beside != "clicks" or words not in ("price", "rate") or _of_pulls(keyed[i], keyed[at["clicks"]]):
                found[role] = (i, beside, how)
    return found


_SEEN = {"view": ("view", "cpv", "aufruf"), "impression": ("impression",)}  # in titles of what one of these costs


def _of_pulls(rate: Title, pulls: Title) -> bool:
    """Whether a price or rate is one of what the pulls are: the price of a click is not that of an impression."""
    of = next((unit for unit, parts in _SEEN.items() if any(part in rate.key for part in parts)), "click")
    unit = pull_unit(pulls)
    return of == unit or {of, unit}.isdisjoint(_SEEN)


def pull_unit(clicks: Title | None) -> str:
    """What a pull is, by the title of the column that counts them."""
    units = ("click", "click", "pull", "session", "click", "view", "impression")
    if clicks is not None and clicks.key in rank_of()["asked"]:
        return "pull"
    return units[0 if clicks is None else _rank(clicks, "clicks", 0)]


def _rank(one: Title, role: str, otherwise: int) -> int:
    return next((rank_of()[role][word] for word in (one.key, *one.others) if word in rank_of()[role]), otherwise)


def _levels(keyed: Sequence[Title], at: Mapping[str, int], given: Mapping[str, int]) -> tuple[int, ...]:
    rank = _rank(keyed[at["name"]], "name", -1)
    above = next((range(rank + 1, levels.stop) for levels in _LEVELS if rank in levels), range(0))
    if "name" in given:
        return ()
    ranked = {_rank(x, "name", -1): i for i, x in reversed(list(enumerate(keyed)))}
    return tuple(ranked[r] for r in above if r in ranked)
