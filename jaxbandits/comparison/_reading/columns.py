"""Which column of an arms file is what: by plain names, by the usual words (words.txt), or as the user says."""

from __future__ import annotations

import functools
import re
import shlex
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxbandits.core.checks import InputError, bad, brief, shown

Texts = NDArray[np.object_]  # the cells of a column

CODES = (
    "AED|ARS|AUD|BGN|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EGP|EUR|GBP|HKD|HUF|IDR|ILS|INR|ISK|JPY|KES|KRW|MXN|MYR|NGN|NOK|"
    "NZD|PEN|PHP|PKR|PLN|RON|RSD|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|UYU|VND|ZAR"
)
SIGNS = "$¢£¤¥֏฿₠-⃀＄￡￥￦"  # of a character class
_MONEY = rf"(?:[{SIGNS}]|R\$|{CODES})"
_UNIT = re.compile(rf"{_MONEY}|%|percent|micros?|cents?|UTC|GMT", re.IGNORECASE)
_THOUSANDS = re.compile(
    rf"{_MONEY}\s?(?:k|'?000s?|thousands?)|(?:[kt]|tsd\.?|thousands?)\s?{_MONEY}|(?P<bare>k|'?000s?|thousands?|tsd\.?)",
    re.IGNORECASE,
)
# What may stand in brackets behind an amount of money and says nothing of its size.
_NO_UNIT = re.compile(
    r"(?:(?:all|total|sum|net|gross|incl?\.?|excl?\.?|including|excluding|vat|tax|taxes|fees|account|local|your|adv|"
    r"advertiser|campaign|media|ads?|lifetime|to|date|last|past|previous|the|in|currency|usd equivalent|netto|brutto|"
    r"gesamt|kontowährung|devise|moneda|\d+[- ]?(?:d|days?|day|months?)?)[\s,./-]*)+",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"^\s*(?:\d+[ -]?days?\b|#|(?:sum|total|count|number|no\.|anzahl|summe|somme|nombre|suma|n[uú]mero|soma|somma"
    r"|aantal)(?=[\s_-])(?:[\s_-]+(?:of|von|de|di|der)\b)?)[\s_-]*",
    re.IGNORECASE,
)
_BEHIND = re.compile(r"[\s_-]+(?:total|gesamt|insgesamt|count|sum|#)\s*$", re.IGNORECASE)
_BRACKETED = re.compile(r"[\(\[]\s*(?:in\s+)?([^()\[\]]*?)\s*[\)\]]")
_VALUE = re.compile(r"(?<!high[ -])(?<!low[ -])\bvalue|(?<!\bvon )wert\b|\bvaleur|\bvalor", re.IGNORECASE)
# A title that says "per something", a mean or a rate, and so is no total.
OF_ONE = re.compile(
    r"\b(?:per|pro|par|por|je|each|apiece|unit|avg|average|mean|rate|ø)\b|[^\W\d]\s?/\s?[^\W\d]|% (?:of|von|de)\b|"
    r"durchschn|mittlere",
    re.IGNORECASE,
)
_NO_TOTAL = re.compile(rf"{OF_ONE.pattern}|%|share|million|mio", re.IGNORECASE)


class Title(NamedTuple):
    """A column's title, taken apart: "Amount spent (USD)" and "amount_spent" have one key."""

    key: str  # letters and digits in lower case without accents
    unit: str  # currency, "%", "micros", "cents" or "thousand" that the title ends in; empty if none
    others: tuple[str, ...] = ()  # keys of what is left without brackets, "7 Day", "Sum of", or what follows a colon
    bracket: str = ""  # what stands in brackets and is no unit that is known

    def is_any(self, words: Iterable[str]) -> bool:
        """Whether it is one of these words."""
        return not set(words).isdisjoint((self.key, *self.others))

    def rank(self, role: str) -> int:
        """Its rank among the words of a role; −1 if it is none."""
        return next((rank_of()[role][word] for word in (self.key, *self.others) if word in rank_of()[role]), -1)


def key(text: str) -> str:
    """Letters and digits in lower case, without accents."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(x for x in plain if x.isalnum())


@functools.lru_cache(maxsize=4096)
def title(text: str) -> Title:
    """The title's key, the unit that it ends in, and what else it may be called."""
    text, unit, bracket = text[:200], "", ""
    if found := _BRACKETED.search(text):
        if unit := _unit(found[1]):
            text = text[: found.start()] + " " + text[found.end() :]
        elif not _NO_UNIT.fullmatch(found[1]):
            bracket = found[1]
    text = re.sub(r"^(?:metrics|segments|stats)[._]", "", text.strip(), flags=re.IGNORECASE)
    words = re.split(r"[\s_.,/\-]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).strip(" _.,/-"))
    if not unit and len(words) > 1 and (unit := _unit(words[-1], alone=words[-2].lower() == "in")):
        text = " ".join(words[:-2] if words[-2].lower() == "in" else words[:-1])
    own, others = key(text), list[str]()
    beside = [*_BRACKETED.findall(text), *text.split(":")[1:]]
    for part in (_BRACKETED.sub(" ", text), text.split(":")[0], _BRACKETED.sub(" ", text.split(":")[0])):
        for bare in (part, _BEHIND.sub("", part), _BEFORE.sub("", part), _BEFORE.sub("", _BEFORE.sub("", part))):
            others += [other] if (other := key(bare)) and other not in (own, *others) else []
    # Beside the name a mean, a price, a value or a share is said: then the name alone is not what it is.
    if any(map(_NO_TOTAL.search, beside)):
        roles: tuple[str, ...] = ("clicks", "spent", "conversions", "value", "reward", "cost")
    else:
        roles = ("clicks", "conversions") if any(map(_VALUE.search, beside)) else ()
    others = [other for other in others if not any(other in rank_of()[role] for role in roles)]
    unit = unit.upper() if unit.upper() in CODES.split("|") else unit.lower()
    return Title(own, "%" if unit == "percent" else unit, tuple(others), bracket)


def _unit(text: str, alone: bool = True) -> str:
    """The text if it is a unit, "thousand" if it is one of thousands (``alone`` also without a currency), or empty."""
    thousands = _THOUSANDS.fullmatch(text)
    if thousands and (alone or not thousands["bare"]):
        return "thousand"
    return text if _UNIT.fullmatch(text) else ""


def titles_of(texts: Sequence[str]) -> list[Title]:
    """All titles, without a first word that all of them share, such as the name of a view."""
    words = [re.split(r"[\s_.]+", text.strip()) for text in texts if text.strip()]
    if len(words) > 2 and len({own[0].casefold() for own in words}) == 1 and all(len(own) > 1 for own in words):
        texts = [re.sub(r"^\s*[^\s_.]+[\s_.]+", "", text) for text in texts]
    return [title(text) for text in texts]


@functools.cache
def rank_of() -> dict[str, dict[str, int]]:
    """Of each role its words, as keys, and the rank of each: the likeliest is 0."""
    found: dict[str, dict[str, int]] = {}
    ranks: dict[str, int] = {}
    for line in Path(__file__).with_name("words.txt").read_text(encoding="utf-8").splitlines():
        role, colon, words = line.partition(":")
        if colon and not line.startswith("#"):
            rank = ranks[role] = ranks.get(role, -1) + 1
            for word in words.split(","):
                found.setdefault(role, {}).setdefault(key(word), rank)
    return found


def best_match(keyed: Sequence[Title], roles: Sequence[str], taken: Iterable[int] = ()) -> int | None:
    """The column with the likeliest word of these roles; the first of several that are equally likely."""
    taken, found = set(taken), []
    for i, one in enumerate(keyed):
        for less, word in enumerate((one.key, *one.others)):
            ranks = [(order, rank_of()[role][word]) for order, role in enumerate(roles) if word in rank_of()[role]]
            if ranks:
                found += [(*min(ranks), less, i)] if i not in taken else []
                break
    return min(found)[-1] if found else None


# --- Columns.

# What ``columns`` may name; ``price`` is a cost per pull, ``reward_rate`` a reward per pull.
ROLES = (
    *("instance", "name", "time", "reward", "cost", "price", "reward_rate", "clicks", "spent", "conversions"),
    *("mean_reward", "mean_cost", "cost2"),
)
PLAIN = {
    "means": ("name", "mean_reward", "mean_cost"),
    "counts": ("name", "clicks", "spent", "conversions"),
    "log": ("name", "reward", "cost"),
    "facebook": ("campaign_id", "age", "gender", "clicks", "spent", "total_conversion"),
}
_FORMATS = "; ".join(f"{kind}: {', '.join(columns)}" for kind, columns in PLAIN.items())
_REWARD_OF = {"means": "mean_reward", "counts": "conversions", "log": "reward"}
COSTS = ("spent", "cost", "mean_cost")  # for them a number may be given instead of a title
_ALIASES = {"name": ("arm",), "spent": ("spend", "cost"), "conversions": ("conversion", "total_conversion")}
_ALIASES |= {"campaign_id": ("xyz_campaign_id",)}
# The words of a role are those of the role's name, if no others stand here; and what the user may call it.
_WORDS: dict[str, dict[str, tuple[str, ...]]] = {
    "counts": {"conversions": ("conversions", "value")},
    "log": {"reward": ("reward", "conversions", "value"), "cost": ("cost", "spent")},
    "means": {},
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
        roles = dict.fromkeys(["clicks", *PLAIN[self.kind][1:], "cost2"])
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
    given, unknown = _resolved(titles, asked)
    if unknown is not None:
        return None
    kinds: tuple[str, ...] = ("counts", "means", "log")
    if {"mean_reward", "mean_cost"} & asked.keys():
        kinds = ("means",)
    elif "clicks" in asked:
        kinds = ("log",) if asked["clicks"] == "1" and _position("1", titles) is None else ("counts",)
    keyed = titles_of(titles)
    return next((found for kind in kinds if (found := _of_kind(kind, titles, keyed, given, asked))), None)


def _plain(titles: Sequence[str], source: str) -> Columns | None:
    lower = [text.lower() for text in titles]
    names = {"instance", "ad_id"}.union(*PLAIN.values())
    known = {column: (column, *_ALIASES.get(column, ())) for column in names}
    hits = {column: [i for i, text in enumerate(lower) if text in words] for column, words in known.items()}
    fits = [kind for kind, columns in PLAIN.items() if all(hits[column] for column in columns)]
    if not fits:
        return None
    if len(fits) > 1:
        only = f"it must have the columns of only one of {_FORMATS} (or give --columns)"
        raise InputError(f"{source}: the header fits {' and '.join(fits)}; {only}")
    kind, at = fits[0], dict[str, int]()
    for column in (*PLAIN[kind], "ad_id" if kind == "facebook" else "instance"):
        if len(hits[column]) > 1:
            named = " and ".join(lower[i] for i in hits[column])
            raise InputError(f"{source}: columns {named} all stand for {column}; only one may be there")
        if hits[column]:
            at[column] = hits[column][0]
    keyed = titles_of(titles)
    if kind != "facebook":
        _add_beside(kind, keyed, at)
    unit = {"means": "pull", "log": "row"}.get(kind, "click")
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


def _resolved(titles: Sequence[str], asked: Asked) -> tuple[Given, str | None]:
    """The columns that the user named; and the first role whose title is not there, and which is no number of costs."""
    found = {role: _found(role, text, titles) for role, text in asked.items()}
    numbers = {role for role, text in asked.items() if role in (*COSTS, "clicks") and _NUMBER.fullmatch(text)}
    unknown = next((role for role, at in found.items() if at is None and role not in numbers), None)
    return {role: at for role, at in found.items() if at is not None}, unknown


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
    if "cost2" in given:  # only the user says that there is one
        found["cost2"], at["cost2"] = given["cost2"], given["cost2"][0]
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
    of_results = rank_of()["conversions"] | rank_of()["rate"] | rank_of()["per_result"]
    result = titled.get("conversions rate") or titled.get("conversions")
    is_value = kind == "counts" and "conversions" not in asked and not (result and result.is_any(of_results))
    terms = {role: terms for role, (_, terms) in (*found.items(), *of_rates.items()) if terms}
    unit = {"means": "pull", "log": "row"}.get(kind) or pull_unit(titled.get("clicks"))
    return Columns(
        kind, at, title=titled, rates=rates, constant=constant, terms=terms, is_value=is_value, pull_unit=unit,
        levels=_levels(keyed, at, given), other=other, by_test=by_test, given=frozenset(named),
        given_log=kind == "log" and asked.get("clicks") == "1",
    )  # fmt: skip


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
    """The error of a file in whose first rows (of each separator) no header was found: the row that lacks least, and a
    command in which what is not known stands open."""
    best = None
    for rows in heads:
        for at, cells in enumerate(rows):
            given, unknown = _resolved(cells, asked)
            words = sum(not _AMOUNT.fullmatch(cell) for cell in cells if cell)
            for kind in ("counts", "means", "log"):
                found, missing = _positions(kind, titles_of(cells), given)
                rank = len(missing) / len(PLAIN[kind]), -min(words, 3)
                if best is None or rank < best[0]:
                    best = rank, cells, rows[at + 1 : at + 3], found, missing, unknown
    assert best is not None  # a file that is not empty has a row
    _, header, below, found, missing, role = best
    if role is not None:
        must = f"a title of the file: {brief(', '.join(filter(None, header)))}"
        return bad(
            "reward" if role == REWARD else "columns", asked[role] if role == REWARD else f"{role}={asked[role]}", must
        )
    say = {role: header[i] for role, (i, _) in found.items()} | {x: text for x, text in asked.items() if x != REWARD}
    option = shlex.quote(",".join(f"{role}={text}" for role, text in (say | dict.fromkeys(missing, "…")).items()))
    return InputError(
        f"{source}: no column is known to be {' or '.join(missing)}. The columns are {samples(header, below)}. Say "
        f"which is which: --columns {option} (a number as cost: what every pull costs), or use the titles of one of "
        f"{_FORMATS}"
    )
