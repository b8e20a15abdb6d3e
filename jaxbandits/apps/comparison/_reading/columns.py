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
SIGNS = "$£¤¥֏฿₠-⃀＄￡￥￦"  # of a character class
_MONEY = rf"(?:[{SIGNS}]|R\$|{CODES})"
_UNIT = re.compile(rf"{_MONEY}|¢|%|percent|micros?|cents?|UTC|GMT", re.IGNORECASE)
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
    rf"\b(?:per|pro|par|por|je|each|apiece|unit|avg|average|mean|rate|taux|tasa|taxa|tasso|ø)\b|% (?:of|von|de)\b|"
    rf"(?:[^\W\d]|[{SIGNS}])\s?/\s?[^\W\d]|durchschn|mittlere|stück|unitair|unitari|moyen|m[eé]dio\b|\wquote\b",
    re.IGNORECASE,
)
_NO_TOTAL = re.compile(  # nor is a part, or what was or may be
    rf"{OF_ONE.pattern}|%|share|million|mio|compar|prev|prior|change|target|goal|plan|vorjahr|vorperiode", re.IGNORECASE
)


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

    def rank_name(self, role: str) -> str:
        """What words.txt calls its rank; empty if nothing, or if it is no word of the role."""
        rank = self.rank(role)
        return "" if rank < 0 else _ranks()[role][rank][0]


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
    if text.startswith("%") and not OF_ONE.match(text):
        text, unit = text[1:], "%"
    words = re.split(r"[\s_.,/\-]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).strip(" _.,/-"))
    if not unit and len(words) > 1:
        behind = words[-2].lower() == "in"
        if unit := _unit(words[-1], alone=behind):
            text = " ".join(words[: -1 - behind])
    own, others, colon = key(text), dict[str, None](), text.split(":")
    for part in (_BRACKETED.sub(" ", text), colon[0], _BRACKETED.sub(" ", colon[0])):
        for bare in (part, _BEHIND.sub("", part), _BEFORE.sub("", part), _BEFORE.sub("", _BEFORE.sub("", part))):
            others[key(bare)] = None
    # Beside the name a mean, a price, a value or a share is said: then the name alone is not what it is.
    beside, roles = [*_BRACKETED.findall(text), *colon[1:]], list[str]()
    if any(map(_NO_TOTAL.search, beside)):
        roles = ["clicks", "spent", "conversions", "value", "reward", "cost"]
    elif any(map(_VALUE.search, beside)):
        roles = ["clicks", "conversions"]
    known = [x for x in others if x not in ("", own) and not any(x in rank_of()[role] for role in roles)]
    unit = unit.upper() if unit.upper() in CODES.split("|") else unit.lower()
    return Title(own, "%" if unit == "percent" else unit, tuple(known), bracket)


def _unit(text: str, alone: bool = True) -> str:
    """The text if it is a unit, "thousand" if it is one of thousands (``alone`` also without a currency), or empty."""
    thousands = _THOUSANDS.fullmatch(text)
    if thousands and (alone or not thousands["bare"]):
        return "thousand"
    usual = text in (text.upper(), text.lower(), text.capitalize())  # GBp are pence
    return text if usual and _UNIT.fullmatch(text) else ""


def titles_of(texts: Sequence[str]) -> list[Title]:
    """All titles, without a first word that all of them share, such as the name of a view."""
    words = [re.split(r"[\s_.]+", text.strip()) for text in texts if text.strip()]
    if len(words) > 2 and len({own[0].casefold() for own in words}) == 1 and all(len(own) > 1 for own in words):
        texts = [re.sub(r"^\s*[^\s_.]+[\s_.]+", "", text) for text in texts]
    return [title(text) for text in texts]


@functools.cache
def _ranks() -> dict[str, list[tuple[str, list[str]]]]:
    """Of each role its ranks, the likeliest first: the name of each, mostly empty, and its words as keys."""
    ranks: dict[str, list[tuple[str, list[str]]]] = {}
    for line in Path(__file__).with_name("words.txt").read_text(encoding="utf-8").splitlines():
        if rank := re.fullmatch(r"(\w+)(?: \[(\w+)\])?: ?(.*)", line):
            role, name, words = rank.groups(default="")
            ranks.setdefault(role, []).append((name, [key(word) for word in words.split(",")]))
    return ranks


@functools.cache
def rank_of() -> dict[str, dict[str, int]]:
    """Of each role its words, as keys, and the rank of each: the likeliest is 0."""
    numbered: dict[str, dict[str, int]] = {}
    for role, ranks in _ranks().items():
        for number, (_, words) in enumerate(ranks):
            for word in words:
                numbered.setdefault(role, {}).setdefault(word, number)
    return numbered


def matches(keyed: Sequence[Title], roles: Sequence[str], taken: Iterable[int] = ()) -> list[tuple[tuple, int]]:
    """The columns with a word of these roles, the likeliest first: how likely (0 is more than 1), and the position."""
    taken, found = set(taken), []
    for i, one in enumerate(keyed):
        ranks = (
            (order, rank_of()[role][word], less)
            for less, word in enumerate((one.key, *one.others))
            for order, role in enumerate(roles)
            if word in rank_of()[role]
        )
        first = min(ranks, key=lambda rank: (rank[2], rank), default=None)  # what is said first counts
        found += [(first, i)] if first is not None and i not in taken else []
    return sorted(found)


def best_match(keyed: Sequence[Title], roles: Sequence[str], taken: Iterable[int] = ()) -> int | None:
    """The column with the likeliest word of these roles; the first of several that are equally likely."""
    found = matches(keyed, roles, taken)
    return found[0][1] if found else None


# --- Columns.

# What ``columns`` may name, one a line, and which role that is in files of some kinds (else its own).
ROLES: dict[str, dict[str, str]] = {
    "instance": {},
    "name": {},
    "time": {},
    "reward": {"counts": "conversions"},
    "reward_rate": {"counts": "conversions", "means": "mean_reward"},
    "cost": {"counts": "spent"},
    "price": {"counts": "spent", "means": "mean_cost", "log": "cost"},
    "clicks": {},
    "spent": {"log": "cost"},
    "conversions": {"log": "reward"},
    "mean_reward": {},
    "mean_cost": {},
    "cost2": {},  # only the user says that there is one
}
_OF_ONE_PULL = ("price", "reward_rate")  # in a file of counts, where it is multiplied with the pulls
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
# The words of a role are those of the role's name, if no others stand here.
_WORDS = {
    "name": ("name", "label"),
    "conversions": ("conversions", "value", "solved"),
    "reward": ("reward", "conversions", "value"),
    "cost": ("cost", "spent"),
}
_RATES = {  # a total that is missing, from one beside it: words of the rate, what it is divided into or multiplied with
    "clicks": (("price", "/", "spent"),),
    "spent": (("price", "*", "clicks"),),
    "conversions": (("rate", "*", "clicks"), ("per_result", "/", "spent"), ("roas", "*", "spent")),
}
_LEVELS = ("model", "ad", "source")  # ranks of names of which each line is the parent of those before it
_SEEN = {"view": ("view", "cpv", "aufruf"), "impression": ("impression",)}  # in titles of what one of these costs
_NUMBER = re.compile(r"\d+\.?\d*|\.\d+", re.ASCII)
_COST_PER = re.compile(r"(?:e|v)?(?:cp[a-z]|rpm|epc)", re.IGNORECASE)
_OF_THOUSAND = re.compile(r"\b(?:e|v)?(?:cpm|rpm|tkp)\b|\b(?:1[.,]?000|1k|mille|thousand|tausend)\b", re.IGNORECASE)
_AMOUNT = re.compile(r"\W*[A-Z]{0,3}\s*\d[\d.,'’\s]*\W*[A-Z]{0,3}")

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
    constant: Mapping[str, float] = field(default_factory=dict)  # what every pull costs, where the user gave a number
    terms: Mapping[str, Terms] = field(default_factory=dict)  # what is joined to a role's column
    # Of a role whose column is a rate: "*" and the role that it is multiplied with, or "/" and that which it divides.
    rates: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    is_value: bool = False  # the reward of a file of counts is an amount or a score, not a number of conversions
    pull_unit: str = "pull"
    levels: tuple[int, ...] = ()  # positions of coarser names (ad set, campaign), the coarsest last
    other: int | None = None  # another column that may count as reward
    given: frozenset[str] = frozenset()  # roles that the user named
    given_log: bool = False  # the user said that every row is one pull (``clicks=1``)

    def numeric(self) -> dict[str, int]:
        """Positions of the columns of numbers by role."""
        roles = dict.fromkeys(["clicks", *PLAIN[self.kind][1:], "cost2"])
        return {role: self.at[role] for role in roles if role in self.at}

    def unit(self, role: str) -> str:
        """The unit in a role's title."""
        return self.title[role].unit if role in self.title else ""

    def used(self) -> set[int]:
        """Positions of all columns that are read."""
        more = {at for terms in self.terms.values() for _, at in terms if isinstance(at, int)}
        return {*self.at.values(), *self.levels, *more}


def find_columns(titles: Sequence[str], asked: Asked, source: str) -> Columns | None:
    """Those of a header, by the usual words or as the user says; None if something is missing."""
    plain = [kind for kind in PLAIN if not asked and _is_plain(kind, titles)]
    if len(plain) > 1:
        only = f"it must have the columns of only one of {_FORMATS} (or give --columns)"
        raise InputError(f"{source}: the header fits {' and '.join(plain)}; {only}")
    if plain == ["facebook"]:
        own = [*PLAIN["facebook"], *(x for x in titles if x.lower() == "ad_id")]
        at = {x.lower(): next(i for i, text in enumerate(titles) if text.lower() in _plain_words(x)) for x in own}
        return Columns("facebook", at, plain=True, pull_unit="click")
    given, unknown = _resolved(titles, asked)
    kinds = _kinds(titles, asked) if unknown is None else []
    return next((found for kind in kinds if (found := _of_kind(kind, titles, given, asked, source))), None)


def _is_plain(kind: str, titles: Sequence[str]) -> bool:
    return all(any(text.lower() in _plain_words(column) for text in titles) for column in PLAIN[kind])


def _plain_words(column: str) -> tuple[str, ...]:
    return (column.lower(), *_ALIASES.get(column, ()))


def _kinds(titles: Sequence[str], asked: Asked) -> list[str]:
    """The kinds of files that have all roles which the user named."""
    one_pull = asked.get("clicks") == "1" and _position("1", titles) is None
    options = asked.keys() - {"clicks" if one_pull else ""}
    known = {kind: {"instance", "time", "cost2", *PLAIN[kind]} for kind in ("counts", "means", "log")}
    fits = [kind for kind, roles in known.items() if {_role(kind, option) for option in options} <= roles]
    return [kind for kind in fits if kind == "log" or not one_pull]


def _role(kind: str, option: str) -> str:
    """What the user's option names in a file of this kind."""
    return _REWARD_OF[kind] if option == REWARD else ROLES[option].get(kind, option)


def _position(text: str, titles: Sequence[str]) -> int | None:
    """Of the column that is meant by this title: spelt exactly so, or but for case, accents and signs."""
    for same in (str, str.casefold, key):
        if found := [i for i, other in enumerate(titles) if same(other) == same(text) and same(text)]:
            return found[0]
    return None


def _found(text: str, titles: Sequence[str]) -> tuple[int, Terms] | None:
    """The column that is meant, or several joined by " + ", " * " or " / " from the left, perhaps with a number."""
    if (at := _position(text, titles)) is not None:
        return at, ()
    own = "|".join(re.escape(one) for one in sorted(titles, key=len, reverse=True) if one)  # a title may hold a sign
    first, *rest = re.split(rf"\s([+*/])\s({own}|{_NUMBER.pattern})(?=\s|$)", text, flags=re.IGNORECASE)
    if not rest or "".join(rest[2::3]).strip() or (at := _position(first, titles)) is None:
        return None
    terms = list[tuple[str, int | float]]()
    for sign, part in zip(rest[::3], rest[1::3], strict=True):
        value = _position(part, titles)
        terms.append((sign, float(part) if value is None else value))
    return at, tuple(terms)


def _resolved(titles: Sequence[str], asked: Asked) -> tuple[Given, str | None]:
    """The columns that the user named; and the first role whose title is not there, and which is no number of costs."""
    found = {role: _found(text, titles) for role, text in asked.items()}
    numbers = {role for role, text in asked.items() if role in (*COSTS, "cost2", "clicks") and _NUMBER.fullmatch(text)}
    unknown = next((role for role, at in found.items() if at is None and role not in numbers), None)
    return {role: at for role, at in found.items() if at is not None}, unknown


def _fit(
    kind: str, keyed: Sequence[Title], given: Given, asked: Asked
) -> tuple[Given, dict[str, tuple[str, str]], dict[str, float], list[str]]:
    """How a header fits a kind: of each role its column, its rates and constants as `Columns` has them, what lacks."""
    found = {_role(kind, option): of for option, of in given.items()}
    rates = {_role(kind, option): ("*", "clicks") for option in given if kind == "counts" and option in _OF_ONE_PULL}

    def best(*words: str) -> int | None:
        return best_match(keyed, words, (at for at, _ in found.values()))

    for role in PLAIN[kind]:
        if role not in found and (i := best(*_WORDS.get(role, (role,)))) is not None:
            found[role] = i, ()
    numbers = [float(asked[role]) for role in COSTS if role not in given and _NUMBER.fullmatch(asked.get(role, ""))]
    constant = {role: numbers[0] for role in PLAIN[kind] if role in COSTS and role not in found and numbers}
    if "cost2" not in given and _NUMBER.fullmatch(asked.get("cost2", "")):
        constant["cost2"] = float(asked["cost2"])
    for role in _RATES if kind == "counts" else ():
        for words, sign, beside in _RATES[role]:
            if role in found | constant or beside not in found or beside in rates or (i := best(words)) is None:
                continue
            if beside != "clicks" or _of_pulls(keyed[i], keyed[found["clicks"][0]]):
                found[role], rates[role] = (i, ()), (sign, beside)
    return found, rates, constant, [role for role in PLAIN[kind] if role not in found | constant]


def _of_kind(kind: str, titles: Sequence[str], given: Given, asked: Asked, source: str) -> Columns | None:
    keyed, reward = titles_of(titles), _REWARD_OF[kind]
    found, rates, constant, missing = _fit(kind, keyed, given, asked)
    if missing:
        return None
    at, named = {role: position for role, (position, _) in found.items()}, {_role(kind, option) for option in given}
    if kind == "counts":
        _check_totals(titles, keyed, given)
    for role in (role for role in PLAIN[kind][1:] if role in at and role not in named | rates.keys()):
        _check_equal(role, titles, keyed, at, source)
    chosen = reward in named or reward in rates
    other = None if chosen else best_match(keyed, _WORDS.get(reward, (reward,)), at.values())
    _add_beside(kind, keyed, at, "time" in given)
    if kind == "counts" and not chosen and (i := best_match(keyed, ("result_kind",), at.values())) is not None:
        at["result_kind"] = i
    titled = {role: keyed[i] for role, i in at.items()}
    of_results = (word for role in ("conversions", "rate", "per_result", "solved") for word in rank_of()[role])
    return Columns(
        kind=kind,
        at=at,
        plain=not asked and _is_plain(kind, titles),
        title=titled,
        rates=rates,
        constant=constant,
        terms={role: terms for role, (_, terms) in found.items() if terms},
        is_value=kind == "counts" and "conversions" not in asked and not titled["conversions"].is_any(of_results),
        pull_unit={"means": "pull", "log": "row"}.get(kind) or pull_unit(titled["clicks"]),
        levels=() if "name" in given else _levels(keyed, at),
        other=other,
        given=frozenset(named),
        given_log=kind == "log" and asked.get("clicks") == "1",
    )


def _add_beside(kind: str, keyed: Sequence[Title], at: dict[str, int], time_given: bool) -> None:
    """Columns that are no numbers, and what may count the pulls of a log."""
    for role in ("time", "end", "currency", "instance", *(("clicks",) if kind == "log" else ())):
        if role not in at and (i := best_match(keyed, (role,), at.values())) is not None:
            at[role] = i
    days = [i for i, one in enumerate(keyed) if one.rank_name("time") == "day" and i not in at.values()]
    if kind != "log" and days and "time" in at and not time_given and keyed[at["time"]].rank_name("time") != "day":
        at["time"] = days[0]  # of a report; when something was made or exported is another matter
    tests = best_match(keyed, ("test",), at.values())
    if kind != "log" and tests is not None and keyed[at["name"]].rank_name("name") == "variant":
        at.setdefault("instance", tests)


def _check_totals(titles: Sequence[str], keyed: Sequence[Title], given: Given) -> None:
    """A price per pull that is named as a total would be divided by the pulls again; one per thousand is another."""
    rates = rank_of()["price"].keys() | rank_of()["per_result"].keys() | rank_of()["rate"].keys()
    instead = {"cost": "price", "spent": "price", "conversions": "reward-rate", "reward": "reward-rate"}
    for role, (at, terms) in given.items():
        is_rate = keyed[at].is_any(rates) or OF_ONE.search(titles[at]) or _COST_PER.fullmatch(titles[at])
        multiplied = any(sign == "*" and isinstance(of, int) for sign, of in terms)
        thousand = bool(_OF_THOUSAND.search(titles[at]))
        say = shlex.quote(f"{instead.get(role, role.replace('_', '-'))}={titles[at]}{' / 1000' * thousand}")
        if role in instead and is_rate and not multiplied:
            raise bad("columns", f"{role}={titles[at]}", f"a total; if it is one pull's, say --columns {say}")
        if role in _OF_ONE_PULL and thousand and not terms:
            raise bad("columns", f"{role}={titles[at]}", f"of one pull, not of a thousand: say --columns {say}")


def _check_equal(role: str, titles: Sequence[str], keyed: Sequence[Title], at: Mapping[str, int], source: str) -> None:
    """Of columns that are equally likely, such as "Clicks (mobile)" and "Clicks (desktop)", none is taken."""
    others = [i for other, i in at.items() if other != role]
    (best, _), *more = matches(keyed, _WORDS.get(role, (role,)), others)
    is_sure = role != "reward" or best[:2] == (0, 0)  # of a pull's rewards only one that is called so is likelier
    if equal := [titles[i] for rank, i in more if rank == best or not is_sure]:
        columns = " or ".join(map(shown, [titles[at[role]], *equal]))
        raise InputError(f"{source}: is {columns} the {role}? Say --columns {role}=… (one of them, or a sum: 'A + B')")


def _of_pulls(rate: Title, pulls: Title) -> bool:
    """Whether a price or rate is one of what the pulls are: the price of a click is not that of an impression."""
    of = next((unit for unit, parts in _SEEN.items() if any(part in rate.key for part in parts)), "click")
    unit = pull_unit(pulls)
    return of == unit or {of, unit}.isdisjoint(_SEEN)


def pull_unit(clicks: Title) -> str:
    """What a pull is, by the title of the column that counts them."""
    return clicks.rank_name("clicks") or "click"


def _levels(keyed: Sequence[Title], at: Mapping[str, int]) -> tuple[int, ...]:
    """Positions of coarser names than the arms', the coarsest last."""
    own = keyed[at["name"]]
    level, rank = own.rank_name("name"), own.rank("name")
    others = [(i, x) for i, x in enumerate(keyed) if i not in at.values()]
    ranked = {x.rank("name"): i for i, x in reversed(others) if x.rank_name("name") == level}
    return tuple(ranked[r] for r in sorted(ranked) if r > rank) if level in _LEVELS else ()


# --- A header that lacks columns.

_MOST_WITH_CELLS = 24


def samples(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """All columns in which something stands, with their first cells if they are few enough, for messages."""
    seen = {title: [row[i] for row in rows if i < len(row) and row[i]] for i, title in enumerate(titles) if title}
    told = [f"{shown(brief(title, 40))} ({brief(', '.join(of[:2]), 30)})" for title, of in seen.items() if of]
    if len(told) > _MOST_WITH_CELLS:
        told = [shown(brief(title, 40)) for title, of in seen.items() if of]
    return brief("; ".join(told), 4000)


def missing_columns(heads: Sequence[Sequence[Sequence[str]]], source: str, asked: Asked) -> InputError:
    """The error of a file in whose first rows (of each separator) no header was found: the row that lacks least, and a
    command in which what is not known stands open."""
    tried = []
    for rows in heads:
        for at, cells in enumerate(rows):
            given, unknown = _resolved(cells, asked)
            below = rows[at + 1 :]
            words = sum(not _AMOUNT.fullmatch(cell) for cell in cells if cell)
            for kind in _kinds(cells, asked):
                found, rates, _, lacks = _fit(kind, titles_of(cells), given, asked)
                named = {_role(kind, option) for option in given} | rates.keys()  # rates are found beside the others
                own = {
                    role: cells[i] for role, (i, _) in found.items() if role not in named and _may_be(role, i, below)
                }
                lacks = [role for role in PLAIN[kind] if role in lacks or (role in found.keys() - named - own.keys())]
                rank = len(lacks) / len(PLAIN[kind]), -min(words, 3)
                tried.append((rank, cells, below, own, lacks, unknown))
    if not tried:
        raise bad("columns", ", ".join(asked), f"roles of one kind of file: {_FORMATS}")
    _, header, below, own, missing, role = min(tried, key=lambda each: each[0])
    if role is not None:
        must = f"a title of the file: {brief(', '.join(filter(None, header)))}"
        return bad("reward", asked[role], must) if role == REWARD else bad("columns", f"{role}={asked[role]}", must)
    if not own and not asked and _is_wide(header, below):
        raise InputError(
            f"{source}: each column seems to be an arm, and each row a request that all were tried on: "
            f"{samples(header, below)}. This is a table of requests, which `jb.environments.RequestTable.of(rewards, "
            f"costs)` plays; here each row must be an arm ({','.join(PLAIN['counts'])}) or a pull (name,reward,cost)"
        )
    say = own | {x: text for x, text in asked.items() if x != REWARD} | dict.fromkeys(missing, "…")
    option = shlex.quote(",".join(f"{role}={text}" for role, text in say.items()))
    return InputError(
        f"{source}: no column is known to be {' or '.join(missing)}. The columns are {samples(header, below)}. Say "
        f"which is which: --columns {option} (a number as cost: what every pull costs), or use the titles of one of "
        f"{_FORMATS}"
    )


def _may_be(role: str, i: int, rows: Sequence[Sequence[str]]) -> bool:
    """Whether a column may be suggested: something stands there, and rewards are not all alike, as a pay is."""
    cells = [row[i] for row in rows if i < len(row) and row[i]]
    return bool(cells) and (role not in ("reward", "conversions") or len(cells) < 2 or len(set(cells)) > 1)


def _is_wide(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether all columns, two at least, hold nothing but numbers."""
    cells = [cell for row in rows for cell in row]
    return len(header) > 1 and len(rows) > 2 and all(header) and all(_NUMBER.fullmatch(cell) for cell in cells)
