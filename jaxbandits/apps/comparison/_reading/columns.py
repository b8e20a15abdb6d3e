"""Which column of an arms file is what: by plain names, by the usual words, or as the user says."""

from __future__ import annotations

import functools
import re
import shlex
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from jaxbandits.core.checks import InputError, bad, brief, quoted

SIGNS = "$£¤¥֏฿₠-⃀＄￡￥￦"  # of a character class


@functools.cache
def _words_file() -> str:
    return Path(__file__).with_name("words.txt").read_text(encoding="utf-8")


def pattern(name: str) -> str:
    """A group of a regular expression that words.txt has by this name."""
    found = re.search(rf"^{name} = (.*)$", _words_file(), re.MULTILINE)
    assert found is not None, name
    return f"(?:{found[1]})"


MONEY = rf"(?:[{SIGNS}]|R\$|{pattern('codes')})"
_UNIT = re.compile(rf"{MONEY}|¢|%|percent|micros?|cents?|UTC|GMT", re.IGNORECASE)
_THOUSANDS = re.compile(
    rf"{MONEY}\s?{pattern('thousands')}|(?:t|{pattern('thousands')})\s?{MONEY}|(?P<bare>{pattern('thousands')})",
    re.IGNORECASE,
)
_NO_UNIT = re.compile(rf"(?:{pattern('no_unit')}[\s,./-]*)+", re.IGNORECASE)
_BEFORE = re.compile(
    rf"^\s*(?:\d+[ -]?days?\b|#|{pattern('before')}(?=[\s_-])(?:[\s_-]+(?:of|von|de|di|der)\b)?)[\s_-]*",
    re.IGNORECASE,
)
_BEHIND = re.compile(rf"[\s_-]+{pattern('behind')}\s*$", re.IGNORECASE)
_BRACKETED = re.compile(r"[\(\[]\s*(?:in\s+)?([^()\[\]]*?)\s*[\)\]]")
_VALUE = re.compile(pattern("value"), re.IGNORECASE)
# A title that says "per something", a mean or a rate, and so is no total; nor is a part, or a plan.
_OF_ONE = re.compile(rf"{pattern('of_one')}|(?:[^\W\d]|[{SIGNS}])\s?/\s?[^\W\d]", re.IGNORECASE)
_NO_TOTAL = re.compile(rf"{_OF_ONE.pattern}|{pattern('no_total')}", re.IGNORECASE)


@functools.cache
def words() -> dict[str, dict[str, tuple[int, str]]]:
    """Of each role its words, as keys: the rank of each (the likeliest is 0), and its name."""
    roles: dict[str, dict[str, tuple[int, str]]] = {}
    ranks = Counter[str]()
    for role, name, rank in re.findall(r"^(\w+)(?: \[(\w+)\])?: ?(.*)$", _words_file(), re.MULTILINE):
        for word in rank.split(","):
            roles.setdefault(role, {}).setdefault(key(word), (ranks[role], name))
        ranks[role] += 1
    return roles


class Title(NamedTuple):
    """A column's title, taken apart: "Amount spent (USD)" and "amount_spent" have one key."""

    key: str  # letters and digits in lower case without accents
    unit: str  # currency, "%", "micros", "cents" or "thousand" that it ends in; empty if none
    others: tuple[str, ...] = ()  # keys without brackets, "7 Day", "Sum of", or what follows a colon
    bracket: str = ""  # what stands in brackets and is no unit that is known

    def is_any(self, *roles: str) -> bool:
        """Whether it is a word of one of these roles."""
        return any(self.rank(role) >= 0 for role in roles)

    def rank(self, role: str) -> int:
        """Its rank among the words of a role; −1 if it is none."""
        own = words()[role]
        return next((own[word][0] for word in (self.key, *self.others) if word in own), -1)

    def rank_name(self, role: str) -> str:
        """What words.txt calls its rank; empty if nothing, or if it is no word of the role."""
        own = words()[role]
        return next((own[word][1] for word in (self.key, *self.others) if word in own), "")


def key(text: str) -> str:
    """Letters and digits in lower case, without accents."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(x for x in plain if x.isalnum())


@functools.lru_cache(maxsize=4096)
def title(text: str) -> Title:
    """The title's key, the unit that it ends in, and what else it may be called."""
    text, unit, bracket = text[:200], "", ""
    if inside := _BRACKETED.search(text):
        if unit := _unit(inside[1]):
            text = text[: inside.start()] + " " + text[inside.end() :]
        elif not _NO_UNIT.fullmatch(inside[1]):
            bracket = inside[1]
    text = re.sub(r"^(?:metrics|segments|stats)[._]", "", text.strip(), flags=re.IGNORECASE)
    if text.startswith("%") and not _OF_ONE.match(text):
        text, unit = text[1:], "%"
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", text)
    parts = re.split(r"[\s_.,/\-]+", spaced.strip(" _.,/-"))
    if not unit and len(parts) > 1:
        behind = parts[-2].lower() == "in"
        if unit := _unit(parts[-1], alone=behind):
            text = " ".join(parts[: -1 - behind])
    own, others, colon = key(text), dict[str, None](), text.split(":")
    for part in (_BRACKETED.sub(" ", text), colon[0], _BRACKETED.sub(" ", colon[0])):
        once = _BEFORE.sub("", part)
        for bare in (part, _BEHIND.sub("", part), once, _BEFORE.sub("", once)):
            others[key(bare)] = None
    # Beside the name a mean, a price, a value or a share is said: then it is not what it is called.
    beside, roles = [*_BRACKETED.findall(text), *colon[1:]], list[str]()
    if any(map(_NO_TOTAL.search, beside)):
        roles = ["clicks", "spent", "conversions", "value", "reward", "cost"]
    elif any(map(_VALUE.search, beside)):
        roles = ["clicks", "conversions"]
    known = [x for x in others if x not in ("", own) and not any(x in words()[of] for of in roles)]
    unit = unit.upper() if unit.upper() in pattern("codes")[3:-1].split("|") else unit.lower()
    return Title(own, "%" if unit == "percent" else unit, tuple(known), bracket)


def _unit(text: str, alone: bool = True) -> str:
    """The text if it is a unit, "thousand" if of thousands (``alone`` also without a currency)."""
    thousands = _THOUSANDS.fullmatch(text)
    if thousands and (alone or not thousands["bare"]):
        return "thousand"
    usual = text in (text.upper(), text.lower(), text.capitalize())  # GBp are pence
    return text if usual and _UNIT.fullmatch(text) else ""


def titles_of(texts: Sequence[str]) -> list[Title]:
    """All titles, without a first word that all of them share, such as the name of a view."""
    first = {re.split(r"[\s_.]+", text.strip())[0].casefold() for text in texts if text.strip()}
    shared = r"^\s*[^\s_.]+[\s_.]+(?=\S)"
    if len(first) == 1 and len(texts) > 2 and all(re.match(shared, x) for x in texts if x.strip()):
        texts = [re.sub(shared, "", text) for text in texts]
    return [title(text) for text in texts]


def matches(
    keyed: Sequence[Title], roles: Sequence[str], taken: Iterable[int] = ()
) -> list[tuple[tuple[int, ...], int]]:
    """Columns with a word of these roles, the likeliest first: how likely (0 best); position."""
    taken, likely = set(taken), []
    for i, one in enumerate(keyed):
        ranks = [
            (less, order, words()[role][word][0])  # the whole title before a part of it
            for less, word in enumerate((one.key, *one.others))
            for order, role in enumerate(roles)
            if word in words()[role]
        ]
        if ranks and i not in taken:
            less, order, rank = min(ranks)
            likely.append(((order, rank, less), i))
    return sorted(likely)


def best_match(keyed: Sequence[Title], roles: Sequence[str], taken: Iterable[int] = ()) -> int | None:
    """The column with the likeliest word of these roles; the first of several."""
    likely = matches(keyed, roles, taken)
    return likely[0][1] if likely else None


# --- Columns.

# What ``columns`` may name, one a line, and which role that is in files of some kinds.
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
REWARD_OF = {"means": "mean_reward", "counts": "conversions", "log": "reward"}
COSTS = ("spent", "cost", "mean_cost")  # for them a number may be given instead of a title
COST_OF = {"means": "mean_cost", "counts": "spent", "log": "cost"}
_ALIASES = {
    "name": ("arm",),
    "spent": ("spend", "cost"),
    "conversions": ("conversion", "total_conversion"),
    "campaign_id": ("xyz_campaign_id",),
}
# The words of a role are those of the role's name, if no others stand here.
_WORDS = {
    "name": ("name", "label"),
    "conversions": ("conversions", "value", "solved"),
    "reward": ("reward", "conversions", "value"),
    "cost": ("cost", "spent"),
}
# A missing total, from one beside it: words of the rate, and what it divides or multiplies.
_RATES = {
    "clicks": (("price", "/", "spent"),),
    "spent": (("price", "*", "clicks"),),
    "conversions": (("rate", "*", "clicks"), ("per_result", "/", "spent"), ("roas", "*", "spent")),
}
_LEVELS = ("model", "ad", "source")  # names of ranks; later ranks are coarser (ad set, campaign)
_SEEN = {"view": ("view", "cpv", "aufruf"), "impression": ("impression",)}  # in titles of prices
_NUMBER = re.compile(r"\d+\.?\d*|\.\d+", re.ASCII)
_COST_PER = re.compile(r"(?:e|v)?(?:cp[a-z]|rpm|epc)", re.IGNORECASE)
_OF_THOUSAND = re.compile(pattern("of_thousand"), re.IGNORECASE)
_AMOUNT = re.compile(r"\W*[A-Z]{0,3}\s*\d[\d.,'’\s]*\W*[A-Z]{0,3}")

Terms = tuple[tuple[str, int | float], ...]  # what is added to a column, multiplied, divided into
Asked = Mapping[str, str]  # what the user says: titles by role; under REWARD what is the reward
REWARD = "--reward"


@dataclass(frozen=True)
class Columns:
    """Which columns are used."""

    kind: str  # "means", "counts", "log" or "facebook"
    at: Mapping[str, int]  # of each role the position; "conversions" is the reward of counts
    keyed: Sequence[Title] = ()  # all titles
    plain: bool = False  # the header is in plain form (PLAIN)
    constant: Mapping[str, float] = field(default_factory=dict)  # what every pull costs, as given
    terms: Mapping[str, Terms] = field(default_factory=dict)  # what is joined to a role's column
    # Of a role whose column is a rate: "*" and the role beside it, or "/" and that which it divides.
    rates: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    is_value: bool = False  # the reward of counts is an amount or a score, no number of conversions
    pull_unit: str = "pull"
    levels: tuple[int, ...] = ()  # positions of coarser names (ad set, campaign), the coarsest last
    other: int | None = None  # another column that may count as reward
    named: Mapping[str, str] = field(default_factory=dict)  # the roles of the user's options
    given_log: bool = False  # the user said that every row is one pull (``clicks=1``)
    unknown: str | None = None  # an option of the user whose title is not there

    @property
    def lacks(self) -> list[str]:
        """Roles without a column."""
        return [x for x in PLAIN[self.kind] if x not in self.at and x not in self.constant]

    @property
    def title(self) -> dict[str, Title]:
        """Of each role, what its title says."""
        return {role: self.keyed[i] for role, i in self.at.items() if self.keyed}

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
    plain = [kind for kind in PLAIN if not asked and _plain_columns(kind, titles)]
    if len(plain) > 1:
        only = f"it must have the columns of only one of {_FORMATS} (or give --columns)"
        raise InputError(f"{source}: the header fits {' and '.join(plain)}; {only}")
    if plain == ["facebook"]:
        at = _plain_columns("facebook", titles)
        at |= {x.lower(): i for i, x in enumerate(titles) if x.lower() == "ad_id"}
        return Columns("facebook", at, plain=True, pull_unit="click")
    for columns in _fits(titles, asked):
        if columns.unknown is None and not columns.lacks:
            _check(columns, titles, source)
            return _with_others(columns, titles, asked)
    return None


def _plain_columns(kind: str, titles: Sequence[str]) -> dict[str, int]:
    """The positions of the plain columns of this kind, if all are there."""
    at = dict[str, int]()
    for column in PLAIN[kind]:
        own = (column, *_ALIASES.get(column, ()))
        if places := [i for i, text in enumerate(titles) if text.lower() in own]:
            at[column] = places[0]
    return at if len(at) == len(PLAIN[kind]) else {}


def _position(text: str, titles: Sequence[str]) -> int | None:
    """Of the column meant by this title: spelt exactly so, or but for case, accents and signs."""
    for same in (str, str.casefold, key):
        if at := [i for i, other in enumerate(titles) if same(other) == same(text) and same(text)]:
            return at[0]
    return None


def _joined(text: str, titles: Sequence[str]) -> tuple[int, Terms] | None:
    """The column that is meant, or several joined by " + ", " * " or " / ", perhaps with numbers."""
    if (at := _position(text, titles)) is not None:
        return at, ()
    longest = sorted(filter(None, titles), key=len, reverse=True)  # a title may hold a sign
    either = "|".join([*map(re.escape, longest), _NUMBER.pattern])
    first, *rest = re.split(rf"\s([+*/])\s({either})(?=\s|$)", text, flags=re.IGNORECASE)
    at = _position(first, titles)
    if at is None or not rest or "".join(rest[2::3]).strip():
        return None
    terms = list[tuple[str, int | float]]()
    for sign, part in zip(rest[::3], rest[1::3], strict=True):
        value = _position(part, titles)
        terms.append((sign, float(part) if value is None else value))
    return at, tuple(terms)


def _fits(titles: Sequence[str], asked: Asked) -> list[Columns]:
    """How the header fits all kinds of files that have the roles which the user named."""
    keyed, fits = titles_of(titles), list[Columns]()
    one_pull = asked.get("clicks") == "1" and _position("1", titles) is None
    is_number = {x for x in (*COSTS, "cost2", "clicks") if _NUMBER.fullmatch(asked.get(x, ""))}
    columns = {option: _joined(text, titles) for option, text in asked.items()}
    unknown = next((x for x, of in columns.items() if of is None and x not in is_number), None)
    given = {option: of for option, of in columns.items() if of is not None}
    for kind in ("log",) if one_pull else ("counts", "means", "log"):
        roles = {
            option: REWARD_OF[kind] if option == REWARD else ROLES[option].get(kind, option)
            for option in asked
            if option != "clicks" or not one_pull
        }
        if not {*roles.values()} <= {"instance", "time", "cost2", *PLAIN[kind]}:
            continue
        named = {option: role for option, role in roles.items() if option in given}
        at = {role: given[option][0] for option, role in named.items()}
        terms = {role: given[option][1] for option, role in named.items() if given[option][1]}
        is_rate = [x for x in _OF_ONE_PULL if x in named and kind == "counts"]
        rates = {named[option]: ("*", "clicks") for option in is_rate}
        for role in PLAIN[kind]:
            i = best_match(keyed, _WORDS.get(role, (role,)), at.values())
            if role not in at and i is not None:
                at[role] = i
        amounts = [float(asked[x]) for x in COSTS if x in is_number and x not in given]
        constant = {COST_OF[kind]: amounts[0]} if amounts and COST_OF[kind] not in at else {}
        if "cost2" in is_number and "cost2" not in given:
            constant["cost2"] = float(asked["cost2"])
        for role in _RATES if kind == "counts" and COST_OF[kind] not in constant else ():
            if role not in at and (rate := _rate(role, keyed, at, rates)) is not None:
                at[role], rates[role] = rate
        parts: dict[str, Any] = {"constant": constant, "terms": terms, "rates": rates, "named": named}
        fits.append(Columns(kind, at, keyed, given_log=one_pull, unknown=unknown, **parts))
    return fits


def _rate(
    role: str, keyed: Sequence[Title], at: Mapping[str, int], rates: Mapping[str, object]
) -> tuple[int, tuple[str, str]] | None:
    """The column of a rate that a missing total is worked out from: its position, and how."""
    for word, sign, beside in _RATES[role]:
        i = best_match(keyed, (word,), at.values())
        if i is None or beside not in at or beside in rates:
            continue
        # The price of a click is not that of an impression.
        seen = (x for x, parts in _SEEN.items() if any(part in keyed[i].key for part in parts))
        of, unit = next(seen, "click"), pull_unit(keyed[at["clicks"]]) if beside == "clicks" else ""
        if beside != "clicks" or of == unit or {of, unit}.isdisjoint(_SEEN):
            return i, (sign, beside)
    return None


def _with_others(columns: Columns, titles: Sequence[str], asked: Asked) -> Columns:
    """With the columns that are no numbers, and those that may be meant as well."""
    kind, keyed, at, named = columns.kind, columns.keyed, dict(columns.at), columns.named.values()
    reward, counts, other = REWARD_OF[kind], kind == "counts", None
    beside = ["time", "end", "currency", "instance", *["clicks"] * (kind == "log")]
    if reward not in named and reward not in columns.rates:
        other = best_match(keyed, _WORDS.get(reward, (reward,)), at.values())
        beside += ["result_kind"] * counts
    for role in beside:
        if role not in at and (i := best_match(keyed, (role,), at.values())) is not None:
            at[role] = i
    own = keyed[at["name"]]
    if kind != "log":
        # The day of a report; when something was made or exported is another matter.
        rest = [(i, x) for i, x in enumerate(keyed) if i not in at.values()]
        days = [i for i, x in rest if x.rank_name("time") == "day"]
        is_chosen = "time" in named or "time" not in at
        if days and not is_chosen and keyed[at["time"]].rank_name("time") != "day":
            at["time"] = days[0]
        test = best_match(keyed, ("test",), at.values())
        if test is not None and own.rank_name("name") == "variant":
            at.setdefault("instance", test)
    levels = dict[int, int]()
    for i, x in enumerate(keyed) if own.rank_name("name") in _LEVELS and "name" not in asked else ():
        is_coarser = x.rank("name") > own.rank("name") and x.rank_name("name") == own.rank_name("name")
        if is_coarser and i not in at.values():
            levels.setdefault(x.rank("name"), i)
    of_results = ("conversions", "rate", "per_result", "solved")
    unit = {"means": "pull", "log": "row"}.get(kind) or pull_unit(keyed[at["clicks"]])
    return replace(
        columns,
        at=at,
        plain=not asked and bool(_plain_columns(kind, titles)),
        is_value=counts and "conversions" not in asked and not keyed[at[reward]].is_any(*of_results),
        pull_unit=unit,
        levels=tuple(levels[rank] for rank in sorted(levels)),
        other=other,
    )


def _check(columns: Columns, titles: Sequence[str], source: str) -> None:
    """A price named as a total would be divided by the pulls again, and of columns that are equally
    likely, such as clicks of two devices, none is taken."""
    instead = {"cost": "price", "spent": "price", "conversions": "reward-rate", "reward": "reward-rate"}
    for option, role in columns.named.items() if columns.kind == "counts" else ():
        title, terms = columns.title[role], columns.terms.get(role, ())
        text, rates = titles[columns.at[role]], ("price", "per_result", "rate")
        is_rate = title.is_any(*rates) or _OF_ONE.search(text) or _COST_PER.fullmatch(text)
        is_multiplied = any(sign == "*" and isinstance(of, int) for sign, of in terms)
        thousand = " / 1000" if _OF_THOUSAND.search(text) else ""
        say = shlex.quote(f"{instead.get(option, option.replace('_', '-'))}={text}{thousand}")
        if option in instead and is_rate and not is_multiplied:
            must = f"a total; if it is one pull's, say --columns {say}"
            raise bad("columns", f"{option}={text}", must)
        if option in _OF_ONE_PULL and thousand and not terms:
            must = f"of one pull, not of a thousand: say --columns {say}"
            raise bad("columns", f"{option}={text}", must)
    for role in PLAIN[columns.kind][1:]:
        if role in columns.constant or role in columns.rates or role in columns.named.values():
            continue
        others = [i for other, i in columns.at.items() if other != role]
        (best, _), *more = matches(columns.keyed, _WORDS.get(role, (role,)), others)
        is_sure = role != "reward" or best[:2] == (0, 0)  # of a log's, only "reward" is likelier
        if equal := [titles[i] for rank, i in more if rank == best or not is_sure]:
            either = " or ".join(map(quoted, [titles[columns.at[role]], *equal]))
            say = f"Say --columns {role}=… (one of them, or a sum: 'A + B')"
            raise InputError(f"{source}: is {either} the {role}? {say}")


def pull_unit(clicks: Title) -> str:
    """What a pull is, by the title of the column that counts them."""
    return clicks.rank_name("clicks") or "click"


# --- A header that lacks columns.

_MOST_WITH_CELLS = 24


def samples(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """All columns in which something stands, with their first cells if they are few enough."""
    cells = {x: [row[i] for row in rows if i < len(row) and row[i]] for i, x in enumerate(titles)}
    firsts = {quoted(brief(x, 40)): brief(", ".join(of[:2]), 30) for x, of in cells.items() if x and of}
    if len(firsts) > _MOST_WITH_CELLS:
        return brief("; ".join(firsts), 4000)
    return brief("; ".join(f"{text} ({of})" for text, of in firsts.items()), 4000)


def missing_columns(heads: Sequence[Sequence[Sequence[str]]], source: str, asked: Asked) -> InputError:
    """The error of a file without a header: the row that lacks least, and a command for it."""
    tried = []
    for head in heads:
        for n, cells in enumerate(head):
            below, texts = head[n + 1 :], [cell for cell in cells if cell]
            filled = -min(sum(not _AMOUNT.fullmatch(text) for text in texts), 3)
            for fit in _fits(cells, asked):
                own = {
                    role: cells[i]
                    for role, i in fit.at.items()  # rates are found beside the others
                    if role not in fit.rates and role not in fit.named.values()
                    if _may_be(role, [row[i] for row in below if i < len(row) and row[i]])
                }
                known = {*own, *fit.rates, *fit.named.values(), *fit.constant}
                lacks = [role for role in PLAIN[fit.kind] if role not in known]
                tried.append((len(lacks) / len(PLAIN[fit.kind]), filled, n, cells, below, own, lacks, fit))
    if not tried:
        raise bad("columns", ", ".join(asked), f"roles of one kind of file: {_FORMATS}")
    *_, header, below, own, lacks, fit = min(tried, key=lambda each: each[:2])
    if fit.unknown is not None:
        text, must = asked[fit.unknown], f"a title of the file: {brief(', '.join(filter(None, header)))}"
        if fit.unknown == REWARD:
            return bad("reward", text, must)
        return bad("columns", f"{fit.unknown}={text}", must)
    if not asked and _is_wide(header, below):
        return InputError(
            f"{source}: each column seems to be an arm, and each row a request that all were tried "
            f"on: {samples(header, below)}. This is a table of requests, which "
            "`jb.environments.RequestTable.of(rewards, costs)` plays; here each row must be an arm "
            f"({','.join(PLAIN['counts'])}) or a pull (name,reward,cost)"
        )
    say = own | {x: text for x, text in asked.items() if x != REWARD} | dict.fromkeys(lacks, "…")
    option = shlex.quote(",".join(f"{role}={text}" for role, text in say.items()))
    return InputError(
        f"{source}: no column is known to be {' or '.join(lacks)}. The columns are "
        f"{samples(header, below)}. Say which is which: --columns {option} (a number as cost: what "
        f"every pull costs), or use the titles of one of {_FORMATS}"
    )


def _may_be(role: str, cells: Sequence[str]) -> bool:
    """Whether a column may be suggested: rewards are not all alike, as a pay is."""
    is_reward = role in ("reward", "conversions")
    return bool(cells) and (not is_reward or len(cells) < 2 or len(set(cells)) > 1)


def _is_wide(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the columns are arms and a row is a request: rewards and costs of two arms at least,
    or nothing known but numbers, beside an id numbers up to 1."""
    arms: dict[str, set[str]] = {"reward": set(), "cost": set()}
    for text in header:
        parts = re.split(r"__|[\s_.:/-]", text)
        for role, own in arms.items():
            known = words()[role].keys() | words()[f"mean_{role}"].keys()
            own |= {key(text[len(parts[0]) :])} if key(parts[0]) in known else set()
            own |= {key(text[: -len(parts[-1])])} if key(parts[-1]) in known and parts[-1] else set()
    if len((arms["reward"] & arms["cost"]) - {""}) > 1:
        return True
    kinds = [title(text) for text in header]
    unknown = [i for i, x in enumerate(kinds) if header[i] and not x.is_any(*words())]
    cells = [row[i] for row in rows for i in unknown if i < len(row)]
    if len(unknown) < 2 or len(rows) < 3 or not all(map(_NUMBER.fullmatch, cells)):
        return False
    is_id = all(x.is_any("name", "time") for i, x in enumerate(kinds) if i not in unknown)
    return len(unknown) == len(header) or (is_id and max(map(float, cells)) <= 1)
