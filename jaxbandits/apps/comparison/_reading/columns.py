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
    line = re.search(rf"^{name} = (.*)$", _words_file(), re.MULTILINE)
    assert line is not None, name
    return f"(?:{line[1]})"


MONEY = rf"(?:[{SIGNS}]|R\$|{pattern('codes')})"
_UNIT = re.compile(rf"{MONEY}|¢|%|percent|micros?|cents?|UTC|GMT", re.IGNORECASE)
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
def role_words() -> dict[str, dict[str, tuple[int, str]]]:
    """Of each role its words, as keys: the rank of each (the likeliest is 0), and its name."""
    roles: dict[str, dict[str, tuple[int, str]]] = {}
    ranks = Counter[str]()
    lines = re.findall(r"^(\w+)(?: \[(\w+)\])?: ?(.*)$", _words_file(), re.MULTILINE)
    for role, name, words in lines:
        for word in words.split(","):
            roles.setdefault(role, {}).setdefault(word_key(word), (ranks[role], name))
        ranks[role] += 1
    return roles


def word_key(text: str) -> str:
    """Letters and digits in lower case, without accents."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(x for x in plain if x.isalnum())


class Question(InputError):
    """What the file does not say, and options of `read_arms` that would, each with its effect."""

    def __init__(self, text: str, *ways: tuple[Mapping[str, Any], str]) -> None:
        super().__init__(text)
        self.ways = ways


class Title(NamedTuple):
    """A column's title, taken apart: "Amount spent (USD)" and "amount_spent" have one key."""

    # Of the whole, then without brackets, "7 Day", "Sum of", or what follows a colon
    keys: tuple[str, ...]
    unit: str  # currency, "%", "micros" or "cents" that it ends in; empty if none
    bracket: str  # what stands in brackets and is no unit that is known

    def word(self, role: str) -> tuple[int, str]:
        """Its rank among the words of a role, and the name of that rank; −1 and nothing if it is
        none.
        """
        words = role_words()[role]
        return next((words[key] for key in self.keys if key in words), (-1, ""))

    def is_any(self, *roles: str) -> bool:
        """Whether it is a word of one of these roles."""
        return any(self.word(role)[0] >= 0 for role in roles)


@functools.lru_cache(maxsize=4096)
def title(text: str) -> Title:
    """The title's keys and the unit that it ends in."""
    text, unit, bracket = text[:200], "", ""
    if inside := _BRACKETED.search(text):
        if unit := _unit(inside[1]):
            text = text[: inside.start()] + " " + text[inside.end() :]
        elif not _NO_UNIT.fullmatch(inside[1]):
            bracket = inside[1]
    text = re.sub(r"^(?:metrics|segments)[._]", "", text.strip(), flags=re.IGNORECASE)
    if text.startswith("%") and not _OF_ONE.match(text):
        text, unit = text[1:], "%"
    words = re.split(r"[\s_.,/\-]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).strip(" _.,/-"))
    if not unit and len(words) > 1 and (unit := _unit(words[-1])):
        text = " ".join(words[: -1 - (words[-2].lower() == "in")])
    keys, stem = {word_key(text): None}, text.split(":")[0]
    for part in (_BRACKETED.sub(" ", text), stem, _BRACKETED.sub(" ", stem)):
        once = _BEFORE.sub("", part)
        for bare in (part, _BEHIND.sub("", part), once, _BEFORE.sub("", once)):
            keys[word_key(bare)] = None
    # Beside the name a mean, a price, a value or a share is said: then it is not what it is called.
    beside, roles = [*_BRACKETED.findall(text), *text.split(":")[1:]], list[str]()
    if any(map(_NO_TOTAL.search, beside)):
        roles = ["clicks", "spent", "conversions", "value", "reward", "cost"]
    elif any(map(_VALUE.search, beside)):
        roles = ["clicks", "conversions"]
    whole, *parts = keys
    usable = [x for x in parts if x and not any(x in role_words()[role] for role in roles)]
    unit = unit.upper() if unit.upper() in pattern("codes")[3:-1].split("|") else unit.lower()
    return Title((whole, *usable), "%" if unit == "percent" else unit, bracket)


def _unit(text: str) -> str:
    usual = text in (text.upper(), text.lower(), text.capitalize())  # GBp are pence
    return text if usual and _UNIT.fullmatch(text) else ""


def matches(
    keyed: Sequence[Title], roles: Sequence[str], used_columns: Iterable[int] = ()
) -> list[tuple[tuple[int, ...], int]]:
    """Columns with a word of these roles, the likeliest first: how likely (0 best); position."""
    used, likely = set(used_columns), []
    for position, column in enumerate(keyed):
        ranks = [
            (part, order, role_words()[role][word][0])  # the whole title before a part of it
            for part, word in enumerate(column.keys)
            for order, role in enumerate(roles)
            if word in role_words()[role]
        ]
        if ranks and position not in used:
            part, order, rank = min(ranks)
            likely.append(((order, rank, part), position))
    return sorted(likely)


def best_match(
    keyed: Sequence[Title], roles: Sequence[str], used_columns: Iterable[int] = ()
) -> int | None:
    """The column with the likeliest word of these roles; the first of several."""
    likely = matches(keyed, roles, used_columns)
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
# In a file of counts, where it is multiplied with the pulls
_OF_ONE_PULL = ("price", "reward_rate")
PLAIN = {
    "means": ("name", "mean_reward", "mean_cost"),
    "counts": ("name", "clicks", "spent", "conversions"),
    "log": ("name", "reward", "cost"),
    "facebook": ("campaign_id", "age", "gender", "clicks", "spent", "total_conversion"),
}
_FORMATS = "; ".join(f"{kind}: {', '.join(columns)}" for kind, columns in PLAIN.items())
REWARD_OF = {"means": "mean_reward", "counts": "conversions", "log": "reward"}
COST_OF = {"means": "mean_cost", "counts": "spent", "log": "cost"}
COSTS = (*COST_OF.values(), "cost2")  # for them a number may be given instead of a title
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
_LEVELS = ("model", "ad", "source")  # names of ranks; later ranks are coarser (ad set, campaign)
_NUMBER = re.compile(r"\d+\.?\d*|\.\d+", re.ASCII)
_COST_PER = re.compile(r"(?:e|v)?(?:cp[a-z]|rpm|epc)", re.IGNORECASE)
_OF_THOUSAND = re.compile(pattern("of_thousand"), re.IGNORECASE)
_AMOUNT = re.compile(r"\W*[A-Z]{0,3}\s*\d[\d.,'’\s]*\W*[A-Z]{0,3}")

Choices = Mapping[str, str]  # what the user says: titles by role; under REWARD what is the reward
REWARD = "--reward"


@dataclass(frozen=True)
class Columns:
    """Which columns are used."""

    kind: str  # "means", "counts", "log" or "facebook"
    at: Mapping[str, int]  # of each role the position; "conversions" is the reward of counts
    keyed: Sequence[Title] = ()  # all titles
    plain: bool = False  # the header is in plain form (PLAIN)
    constant: Mapping[str, float] = field(default_factory=dict)  # what every pull costs
    # Roles whose column is one pull's: the total is that times the pulls
    rates: frozenset[str] = frozenset()
    is_value: bool = False  # the reward of counts is an amount or a score, no number of conversions
    pull_unit: str = "pull"
    levels: tuple[int, ...] = ()  # positions of coarser names (ad set, campaign), the coarsest last
    rival: int | None = None  # another column that may count as reward
    named: Mapping[str, str] = field(default_factory=dict)  # the roles of the user's options
    is_log: bool = False  # the user said that every row is one pull (``clicks=1``)
    unknown: str | None = None  # an option of the user whose title is not there

    @property
    def lacks(self) -> list[str]:
        """Roles without a column."""
        return [x for x in PLAIN[self.kind] if x not in self.at and x not in self.constant]

    def numeric(self) -> dict[str, int]:
        """Positions of the columns of numbers by role."""
        roles = dict.fromkeys(["clicks", *PLAIN[self.kind][1:], "cost2"])
        return {role: self.at[role] for role in roles if role in self.at}

    def unit(self, role: str) -> str:
        """The unit in a role's title."""
        return self.keyed[self.at[role]].unit if self.keyed and role in self.at else ""

    def used(self) -> set[int]:
        """Positions of all columns that are read."""
        return {*self.at.values(), *self.levels}


def find_columns(titles: Sequence[str], choices: Choices, source: str) -> Columns | None:
    """Those of a header, by the usual words or as the user says; None if something is missing."""
    plain = dict[str, dict[str, int]]()
    for kind, names in PLAIN.items() if not choices else ():
        spellings = {name: (name, *_ALIASES.get(name, ())) for name in names}
        at = {
            name: next((i for i, text in enumerate(titles) if text.lower() in spellings[name]), -1)
            for name in names
        }
        plain |= {kind: at} if min(at.values()) >= 0 else {}
    if len(plain) > 1:
        only = f"it must have the columns of only one of {_FORMATS} (or give --columns)"
        raise InputError(f"{source}: the header fits {' and '.join(plain)}; {only}")
    if at := plain.get("facebook", {}):
        at |= {"ad_id": i} if (i := _position("ad_id", titles)) is not None else {}
        return Columns("facebook", at, plain=True, pull_unit="click")
    for columns in _fits(titles, choices):
        if columns.unknown is None and not columns.lacks:
            _check(columns, titles, source)
            return replace(_with_others(columns, choices), plain=columns.kind in plain)
    return None


def _position(text: str, titles: Sequence[str]) -> int | None:
    """Of the column meant by this title: spelt exactly so, or but for case, accents and signs."""
    for same in (str, str.casefold, word_key):
        for position, header in enumerate(titles):
            if same(text) and same(header) == same(text):
                return position
    return None


def _fits(titles: Sequence[str], choices: Choices) -> list[Columns]:
    """How the header fits all kinds of files that have the roles which the user named."""
    keyed, fits = [title(text) for text in titles], list[Columns]()
    is_log = choices.get("clicks") == "1" and _position("1", titles) is None
    amounts = {
        role: float(text)
        for role, text in choices.items()
        if role in COSTS and _NUMBER.fullmatch(text) and _position(text, titles) is None
    }
    positions = {x: _position(text, titles) for x, text in choices.items() if x not in amounts}
    if is_log:
        del positions["clicks"]
    unknown = next((option for option, position in positions.items() if position is None), None)
    for kind in ("log",) if is_log else ("counts", "means", "log"):
        named = {x: REWARD_OF[kind] if x == REWARD else ROLES[x].get(kind, x) for x in positions}
        if not {*named.values()} <= {"instance", "time", "cost2", *PLAIN[kind]}:
            continue
        constant = {
            "cost2" if x == "cost2" else COST_OF[kind]: value for x, value in amounts.items()
        }
        at = {named[x]: position for x, position in positions.items() if position is not None}
        for role in PLAIN[kind]:
            match = best_match(keyed, _WORDS.get(role, (role,)), at.values())
            if role not in at and role not in constant and match is not None:
                at[role] = match
        rate, price = (at.get(role, -1) for role in ("mean_reward", "mean_cost"))
        by_rate = kind == "means" and not named and min(rate, price) >= 0
        by_rate = by_rate and (keyed[rate].is_any("rate") or keyed[price].is_any("price"))
        if by_rate and best_match(keyed, ("clicks",), at.values()) is not None:
            continue  # clicks tell how sure a rate is: with reward-rate and price they are counts
        rates = {named[x] for x in _OF_ONE_PULL if x in named and kind == "counts"}
        fit = Columns(kind, at, keyed, constant=constant, rates=frozenset(rates))
        fits.append(replace(fit, named=named, is_log=is_log, unknown=unknown))
    return fits


def _with_others(columns: Columns, choices: Choices) -> Columns:
    """With the columns that are no numbers, and those that may be meant as well."""
    kind, keyed, at = columns.kind, columns.keyed, dict(columns.at)
    reward, rival = REWARD_OF[kind], None
    beside = ["time", "end", "currency", "instance", *["clicks"] * (kind == "log")]
    if reward not in columns.named.values():
        rival = best_match(keyed, _WORDS.get(reward, (reward,)), at.values())
        beside += ["result_kind"] * (kind == "counts")
    for role in beside:
        if role not in at and (position := best_match(keyed, (role,), at.values())) is not None:
            at[role] = position
    if kind != "log" and "time" not in choices and "time" in at:
        # The day of a report; when something was made or exported is another matter.
        days = [
            i for i, x in enumerate(keyed) if i not in at.values() and x.word("time")[1] == "day"
        ]
        if days and keyed[at["time"]].word("time")[1] != "day":
            at["time"] = days[0]
    (finest, level), levels = keyed[at["name"]].word("name"), dict[int, int]()
    for i, column in enumerate(keyed) if level in _LEVELS and "name" not in choices else ():
        rank, name = column.word("name")
        if name == level and rank > finest and i not in at.values():
            levels.setdefault(rank, i)
    unit = {"means": "pull", "log": "row"}.get(kind) or keyed[at["clicks"]].word("clicks")[1]
    is_count = "conversions" in choices or keyed[at[reward]].is_any("conversions", "solved", "rate")
    return replace(
        columns,
        at=at,
        is_value=kind == "counts" and not is_count,
        pull_unit=unit or "click",
        levels=tuple(levels[rank] for rank in sorted(levels)),
        rival=rival,
    )


def _check(columns: Columns, titles: Sequence[str], source: str) -> None:
    """A price named as a total would be divided by the pulls again, and of columns that are equally
    likely, such as clicks of two devices, none is taken."""
    instead = {
        "cost": "price",
        "spent": "price",
        "conversions": "reward-rate",
        "reward": "reward-rate",
    }
    for option, role in columns.named.items() if columns.kind == "counts" else ():
        column, text = columns.keyed[columns.at[role]], titles[columns.at[role]]
        is_rate = (
            column.is_any("price", "rate") or _OF_ONE.search(text) or _COST_PER.fullmatch(text)
        )
        if option in (*instead, *_OF_ONE_PULL) and _OF_THOUSAND.search(text):
            raise bad(
                "columns", f"{option}={text}", "of one pull, or a total, not of a thousand pulls"
            )
        if option in instead and is_rate:
            say = shlex.quote(f"{instead[option]}={text}")
            must = f"a total; if it is one pull's, say --columns {say}"
            raise bad("columns", f"{option}={text}", must)
    is_log = columns.kind == "log"  # its columns may be one of each arm
    for role in PLAIN[columns.kind][1:]:
        if role in columns.constant or role in columns.named.values():
            continue
        used_columns = [position for x, position in columns.at.items() if x != role]
        (best, _), *rest = matches(columns.keyed, _WORDS.get(role, (role,)), used_columns)
        is_sure = role != "reward" or best[:2] == (0, 0)  # of a log's, only "reward" is likelier
        if equal := [titles[i] for rank, i in rest if rank == best or not is_sure]:
            either = " or ".join(map(quoted, [titles[columns.at[role]], *equal]))
            say = f"Say --columns {role}=… (one of them, or a column that sums them)"
            raise Question(f"{source}: is {either} the {role}? {say}", *[_AS_REQUESTS] * is_log)


# --- A header that lacks columns.

_MOST_WITH_CELLS = 24
_AS_REQUESTS = {"wide": "offered"}, "takes it as a table of requests that all arms were tried on"


def samples(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """All columns in which something stands, with their first cells if they are few enough."""
    cells = {x: [row[i] for row in rows if i < len(row) and row[i]] for i, x in enumerate(titles)}
    firsts = {
        quoted(brief(x, 40)): brief(", ".join(texts[:2]), 30)
        for x, texts in cells.items()
        if x and texts
    }
    if len(firsts) > _MOST_WITH_CELLS:
        return brief("; ".join(firsts), 4000)
    return brief("; ".join(f"{text} ({texts})" for text, texts in firsts.items()), 4000)


def missing_columns(
    heads: Sequence[Sequence[Sequence[str]]], source: str, choices: Choices
) -> InputError:
    """The error of a file without a header: the row that lacks least, and a command for it."""
    tries = list[tuple[Any, ...]]()
    for head in heads:
        for n, cells in enumerate(head):
            words = sum(not _AMOUNT.fullmatch(text) for text in cells if text)
            for fit in _fits(cells, choices):
                usable = {
                    role: cells[position]
                    for role, position in fit.at.items()
                    if role not in fit.named.values() and _may_be(role, position, head[n + 1 :])
                }
                columns = {*usable, *fit.named.values(), *fit.constant}
                lacks = [role for role in PLAIN[fit.kind] if role not in columns]
                likely = (len(lacks) / len(PLAIN[fit.kind]), -min(words, 3))
                tries.append((likely, cells, head[n + 1 :], usable, lacks, fit))
    if not tries:
        raise bad("columns", ", ".join(choices), f"roles of one kind of file: {_FORMATS}")
    _, header, below, usable, lacks, fit = min(tries, key=lambda attempt: attempt[0])
    if fit.unknown is not None:
        text, must = (
            choices[fit.unknown],
            f"a title of the file: {brief(', '.join(filter(None, header)))}",
        )
        if fit.unknown == REWARD:
            return bad("reward", text, must)
        return bad("columns", f"{fit.unknown}={text}", must)
    say = usable | {x: text for x, text in choices.items() if x != REWARD}
    places = dict.fromkeys(lacks, "…")
    is_click = "clicks" in fit.at and fit.keyed[fit.at["clicks"]].word("clicks")[1] == "click"
    # The price of a click is not that of an impression.
    for role, rate, word in (("spent", "price", "price"), ("conversions", "reward-rate", "rate")):
        position = best_match(fit.keyed, (word,), fit.at.values())
        if role in places and is_click and position is not None:
            del places[role]
            say[rate] = header[position]
    say |= places
    option = shlex.quote(",".join(f"{role}={text}" for role, text in say.items()))
    text = (
        f"{source}: no column is known to be {' or '.join(lacks)}. The columns are "
        f"{samples(header, below)}. Say which is which: --columns {option} (a number as cost: what "
        "every pull costs; price=… and reward-rate=… in place of totals: what one pull costs and "
        f"brings), or use the titles of one of {_FORMATS}"
    )
    if (len(usable) < 2 or lacks == ["name"]) and not choices:
        text += ". A column for each arm, and a row for each request, is read with --wide"
        return Question(text, _AS_REQUESTS)
    return InputError(text)


def _may_be(role: str, position: int, rows: Sequence[Sequence[str]]) -> bool:
    """Whether a column may be suggested: rewards are not all alike, as a pay is."""
    cells = [row[position] for row in rows if position < len(row) and row[position]]
    is_reward = role in ("reward", "conversions")
    return bool(cells) and (not is_reward or len(cells) < 2 or len(set(cells)) > 1)
