"""The usual words for the columns of an arms file, and titles made comparable."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

CODES = (
    "AED|ARS|AUD|BGN|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EGP|EUR|GBP|HKD|HUF|IDR|ILS|INR|ISK|JPY|KES|KRW|MXN|MYR|NGN|NOK|"
    "NZD|PEN|PHP|PKR|PLN|RON|RSD|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|UYU|VND|ZAR"
)
SIGNS = "$¢£¤¥֏฿₠-⃀＄￡￥￦"  # of a character class
_UNIT = re.compile(rf"[{SIGNS}]|R\$|%|micros?|cents?|UTC|GMT|{CODES}", re.IGNORECASE)
_ACCOUNT = re.compile(r"[\s(]+(?:in )?(?:account|local|campaign|advertiser|your) currency\)?\s*$", re.IGNORECASE)
_BEFORE = re.compile(
    r"^\s*(?:\d+[ -]?days?\b|#|(?:sum|total|count|number|no\.|anzahl|summe|somme|nombre|suma|n[uú]mero|soma|somma"
    r"|aantal)(?=[\s_-])(?:[\s_-]+(?:of|von|de|di|der)\b)?)[\s_-]*",
    re.IGNORECASE,
)
_BEHIND = re.compile(r"[\s_-]+(?:total|gesamt|insgesamt|count|sum|#)\s*$", re.IGNORECASE)
_OF_ONE = re.compile(
    r"^\s*(?:(?:average|avg\.?|mean|unit|ø|durchschn\w*\.?|mittlere[rs]?)\s+)?"
    r"(?:price|cost|fee|preis|kosten|prix|co[uû]t|precio|coste|costo|pre[cç]o|custo|prezzo|prijs)s?"
    r"\s*(?:per|pro|par|por|for each|a|je|/)\s*(?:one\s+|each\s+)?"
    r"(?:link\s+)?(?:click|klick|clic|clique|klik|visit|besuch|session|sitzung|view|aufruf|user|visitor|nutzer|pull|trial"
    r"|play|impression|send)s?\s*$",
    re.IGNORECASE,
)
_OTHER_MEANING = re.compile(  # in brackets or behind a colon: a price, a mean, a rate, a share or thousands, no total
    r"\b(?:per|pro|par|por|je|each)\b|[€$£]\s*/|/\s*(?:day|week|month|year|hour|click|klick|clic|user|order|session|visit"
    r"|conv|tag|woche|monat|jahr|jour|mois|d[ií]a|mes|giorno|mese)"
    r"|ø|\brates?\b|\bshare\b|^%$|%\s*(?:of|der|des|du|de|von|del)\b|\bthousands?\b|\bmillions?\b|\bm(?:io|rd)\b"
    r"|^\D*000s?$|^mm?$|[€$£]\s?mm?\b|\bmm?\s?[€$£]"
    rf"|\bmm?\s?(?:{CODES})\b|\b(?:{CODES})\s?mm?\b",
    re.IGNORECASE,
)
_MONEY = rf"(?:[{SIGNS}]|{CODES})"
_THOUSANDS = re.compile(
    rf"{_MONEY}\s?(?:k|'?000s?|thousands?)|(?:[kt]|tsd\.?|thousands?)\s?{_MONEY}|(?P<bare>k|'?000s?|thousands?|tsd\.?)",
    re.IGNORECASE,
)
_MEAN = re.compile(r"mean|avg\.?|average|mittelwert|moyenne|média", re.IGNORECASE)
_VALUE = re.compile(r"(?<!high[ -])(?<!low[ -])\bvalue|(?<!\bvon )wert\b|\bvaleur|\bvalor", re.IGNORECASE)
_LONGEST = 200
_AMOUNTS = ("clicks", "spent", "conversions", "value", "reward", "cost")
_BRACKETED = re.compile(r"[\(\[]\s*(?:in\s+)?([^()\[\]]*?)\s*[\)\]]")


@dataclass(frozen=True)
class Title:
    """A column's title, taken apart.

    Attributes:
        key: letters and digits in lower case without accents: "Amount spent (USD)" and "amount_spent" agree.
        unit: currency, "%", "micros", "cents" or "thousand" that the title ends in; empty if none.
        others: keys of what is left without brackets, "7 Day", "Sum of", or what stands behind a colon.
        last: key of the last word of several.

    Example:
        >>> title("Amount spent (USD)"), title("Coût").key, title("cost_micros").unit, title("Clicks (all)").key
        (Title(key='amountspent', unit='USD', others=(), last='spent'), 'cout', 'micros', 'clicksall')
        >>> title("7 Day Total Orders (#)").others, title("Sum of Clicks").others
        (('totalorders', 'orders'), ('clicks',))
    """

    key: str
    unit: str
    others: tuple[str, ...] = ()
    last: str = ""


def key(text: str) -> str:
    """Letters and digits in lower case, without accents."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(x for x in plain if x.isalnum())


@functools.lru_cache(maxsize=4096)
def title(text: str) -> Title:
    """The title's key, the unit that it ends in, and what else it may be called."""
    text, unit = text[:_LONGEST], ""
    if (bracketed := _BRACKETED.search(text)) and (of := _unit(bracketed[1])):
        unit, text = of, text[: bracketed.start()] + " " + text[bracketed.end() :]
    text = _ACCOUNT.sub("", text)
    text = re.sub(r"^(?:metrics|segments|stats)[._]", "", text.strip(), flags=re.IGNORECASE)
    words = re.split(r"[\s_.,/\-]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).strip(" _.,/-"))
    if not unit and len(words) > 1 and (of := _unit(words[-1], words[-2].lower() == "in")):
        unit, words = of, words[:-2] if words[-2].lower() == "in" else words[:-1]
        text = " ".join(words)
    found, others = key(text), list[str]()
    last = key(words[-1]) if len(words) > 1 else ""
    removed = [*_BRACKETED.findall(text), *text.split(":")[1:]]
    other_meaning = any(_OTHER_MEANING.search(part.strip()) or _MEAN.fullmatch(part.strip()) for part in removed)
    changed = {
        *(_AMOUNTS if other_meaning else ()),
        *(("clicks", "conversions") if any(_VALUE.search(part) for part in removed) else ()),
    }
    for part in (_BRACKETED.sub(" ", text), text.split(":")[0], _BRACKETED.sub(" ", text.split(":")[0])):
        for bare in (part, _BEHIND.sub("", part), _BEFORE.sub("", part), _BEFORE.sub("", _BEFORE.sub("", part))):
            others += [other] if (other := key(bare)) and other not in (found, *others) else []
    others = [other for other in others if not any(other in rank_of()[role] for role in changed)]
    if (behind := _BRACKETED.search(text)) and _MEAN.fullmatch(behind[1]):  # "score (mean)" is a mean score
        others.append(key(f"mean {_BRACKETED.sub(' ', text)}"))
    whole = re.sub(r"[\[\]():]", " ", text)
    if found not in rank_of()["price"] and any(_OF_ONE.match(x) for x in (whole, _BRACKETED.sub(" ", text))):
        others.append("costperclick")  # the price of one pull, whatever a pull is called
    return Title(found, unit.upper() if unit.upper() in CODES.split("|") else unit.lower(), tuple(others), last)


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
def ranks() -> dict[str, tuple[tuple[str, ...], ...]]:
    """Of each role its ranks of words, as keys; the likeliest rank first."""
    found: dict[str, tuple[tuple[str, ...], ...]] = {}
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
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


def best_match(keyed: Sequence[Title], roles: Sequence[str], taken: Iterable[int]) -> int | None:
    """The column with the likeliest word of these roles; the first of several that are equally likely."""
    taken = set(taken)
    return next((i for i in matches(keyed, roles) if i not in taken), None)


def matches(keyed: Sequence[Title], roles: Sequence[str]) -> list[int]:
    """All columns with a word of these roles, the likeliest first."""
    found = []
    for i, one in enumerate(keyed):
        for less, word in enumerate((one.key, *one.others)):
            ranks = [(order, rank_of()[role][word]) for order, role in enumerate(roles) if word in rank_of()[role]]
            if ranks:
                found.append((*min(ranks), less, i))
                break
    return [found_at for *_, found_at in sorted(found)]
