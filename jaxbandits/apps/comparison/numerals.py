"""How numbers are read from a file, and written for a reader."""

from __future__ import annotations

import math
import re

SIGN = (  # of a currency
    r"(?:[A-Z]{0,3}[$£¥₠-⃀]|kr\.?|zł|Kč|Ft|Rs\.?|AED|ARS|AUD|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EUR|GBP|HKD|HUF"
    r"|IDR|ILS|INR|JPY|KRW|MXN|MYR|NOK|NZD|PEN|PHP|PLN|RON|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|VND|ZAR)"
)
NOTHING, UNKNOWN = ("", "-", "--", "–", "—"), ("na", "n/a", "#n/a", "nan", "null", "none")
YES = {"true": "1", "yes": "1", "false": "0", "no": "0"}
_BLANK = r"\s\u00a0\u2009\u202f"
_CELLS = {  # by the decimal sign: currency, sign, whole part with its thousands, rest, power, unit
    decimal: re.compile(
        rf"({SIGN})?\s*([+-]?)([1-9]\d{{0,2}}([{other}'’{_BLANK}])\d{{3}}(?:\4\d{{3}})*"
        rf"|[1-9]\d?(?:{other}\d\d)+{other}\d{{3}}|\d*)(?:[{decimal}](\d*))?(e[+-]?\d+)?[{_BLANK}]*({SIGN}|%)?",
        re.ASCII | re.IGNORECASE,
    )
    for decimal, other in ((".", ","), (",", r"\."))
}


def parsed(text: str, decimal: str) -> tuple[float, str]:
    """A cell as it reads with this decimal sign, and its currency or %; NaN if it does not."""
    found = _CELLS[decimal].fullmatch(text)
    if found is None or not (found[3] or found[5]) or (found[1] and found[7]):
        return math.nan, ""
    whole = re.sub(r"\D", "", found[3])
    number = float(f"{found[2]}{whole or 0}.{found[5] or 0}{found[6] or ''}")
    return number, (found[1] or found[7] or "").upper()


def is_number(text: str) -> bool:
    """Whether a cell is a number of at least 0, in one of the decimal signs."""
    return any(parsed(text, sign)[0] >= 0 for sign in ".,")


def amount(value: float) -> str:
    """A mean number of results or pulls, with three significant digits."""
    size = abs(value)
    return f"{value:,.{0 if size >= 100 or size == 0 else 1 if size >= 1 else 2}f}"


def count(value: float) -> str:
    """A number of clicks or conversions: an integer, or with two decimals."""
    return f"{value:,.{0 if float(value).is_integer() else 2}f}"


def money(value: float, unit: str = "", cents: bool = True) -> str:
    """``$12.50``, ``12.50 €``: two decimals (``cents``: if whole too), three digits below 0.1."""
    small = 0 < abs(value) < 0.1
    decimals = min(2 - math.floor(math.log10(abs(value))), 12) if small else 2
    text = f"{value:,.{decimals if cents or value % 1 else 0}f}"
    if unit in ("", "spent", "cost"):  # the file names no currency
        return text
    return f"{unit}{text}" if unit in "$£¥" else f"{text} {unit}"


def plus_minus(value: float, half: float) -> str:
    """``12.34 ± 0.56``, with two digits of the half width; without a half width only the value."""
    if math.isnan(half):
        return f"{value:,.5g}"
    return f"{value:,.{_digits(half)}f} ± {half:,.{_digits(half)}f}"


def interval(value: float, low: float, high: float) -> str:
    """``+12.3 (−0.4 to +25.1)``, with enough decimals for two digits of half the width."""
    if math.isnan(low):
        return f"{value:+,.{_digits(abs(value) / 10)}f}".replace("-", "−")
    form = f"+,.{_digits((high - low) / 2)}f"
    return f"{value:{form}} ({low:{form}} to {high:{form}})".replace("-", "−")


def _digits(half: float) -> int:
    """Decimals that show two digits of a half width."""
    return 2 if half == 0 else min(max(1 - math.floor(math.log10(half)), 0), 9)
