"""The usual words for the columns of an arms file, and titles made comparable."""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

CODES = (
    "AED|ARS|AUD|BGN|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EGP|EUR|GBP|HKD|HUF|IDR|ILS|INR|ISK|JPY|KES|KRW|MXN|MYR|NGN|NOK|"
    "NZD|PEN|PHP|PKR|PLN|RON|RSD|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|UYU|VND|ZAR"
)
SIGNS = "$¢£¤¥֏฿₠-⃀＄￡￥￦"  # of a character class
_UNIT = re.compile(rf"[{SIGNS}]|R\$|%|micros?|UTC|GMT|{CODES}", re.IGNORECASE)
_BRACKETED = re.compile(r"[\(\[]\s*(?:in\s+)?([^()\[\]]*?)\s*[\)\]]")


@dataclass(frozen=True)
class Title:
    """A column's title, taken apart.

    Attributes:
        key: letters and digits in lower case without accents: "Amount spent (USD)" and "amount_spent" agree.
        unit: currency, "%" or "micros" that the title ends in; empty if none.

    Example:
        >>> title("Amount spent (USD)"), title("Coût"), title("cost_micros").unit, title("Clicks (all)").key
        (Title(key='amountspent', unit='USD'), Title(key='cout', unit=''), 'micros', 'clicksall')
    """

    key: str
    unit: str


def key(text: str) -> str:
    """Letters and digits in lower case, without accents."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(x for x in plain if x.isalnum())


def title(text: str) -> Title:
    """The title's key and the unit that it ends in."""
    unit = ""
    if (bracketed := _BRACKETED.search(text)) and _UNIT.fullmatch(bracketed[1]):
        unit, text = bracketed[1], text[: bracketed.start()] + " " + text[bracketed.end() :]
    words = re.split(r"[\s_.,/\-]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).strip(" _.,/-"))
    if not unit and len(words) > 1 and _UNIT.fullmatch(words[-1]):
        unit, text = words[-1], " ".join(words[:-2] if words[-2].lower() == "in" else words[:-1])
    found = key(text)
    for prefix in ("metrics", "segments", "stats"):  # of the tables of ads interfaces
        if found.startswith(prefix) and len(found) > len(prefix):
            found = found.removeprefix(prefix)
    return Title(found, unit.lower() if unit.lower().startswith("micro") else unit.upper())


@functools.cache
def ranks() -> dict[str, tuple[tuple[str, ...], ...]]:
    """Of each role its ranks of words, as keys; the likeliest rank first."""
    found: dict[str, tuple[tuple[str, ...], ...]] = {}
    for line in Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines():
        role, colon, words = line.partition(":")
        if colon and not line.startswith("#"):
            found[role] = (*found.get(role, ()), tuple(key(word) for word in words.split(",")))
    return found


@functools.cache
def rank_of() -> dict[str, dict[str, int]]:
    """Of each role the rank of each of its words."""
    return {
        role: {word: rank for rank, words in reversed(list(enumerate(of_role))) for word in words}
        for role, of_role in ranks().items()
    }
