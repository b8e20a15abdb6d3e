"""Titles of columns made comparable, and the usual words for them (words.txt)."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
