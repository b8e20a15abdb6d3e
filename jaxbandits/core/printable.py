"""Names from files and specs made fit for a terminal and for a spreadsheet; whoever wrote them, they stay mere text."""

from __future__ import annotations

import re
from typing import Any

# A spreadsheet takes what follows for a formula: at the start of a cell, or behind a semicolon, which separates cells
# in many countries. Some programs look past spaces, some take the wide forms for the ASCII ones.
_FORMULA = re.compile(r"(^|;)(\s*'*\s*)([=+\-@＝＋－＠])")


def line(text: str) -> str:
    r"""``text`` on one line without anything that a terminal obeys.

    Control characters (escape sequences, tabs, line breaks), invisible ones such as bidirectional overrides, and
    what is no character at all are written out as Python does, ``\x1b``. Equal texts stay equal, and so does all text
    that can be seen. A backslash stays as it is.

    Example:
        >>> print(line("a\x1b[2Jb\tc\u202ed é ρ"))
        a\x1b[2Jb\tc\u202ed é ρ
    """
    return "".join(x if _seen(x) else x.encode("unicode_escape").decode("ascii") for x in text)


def brief(text: str, most: int = 200) -> str:
    """:func:`line` of a message of others, cut to ``most`` characters."""
    text = line(" ".join(text[: 8 * most].split()))
    return text if len(text) <= most else f"{text[: most - 3]}..."


def said(problem: BaseException, most: int = 200) -> str:
    """What a stranger's exception says, as :func:`brief`; the empty text if it fails to say it."""
    try:
        return brief(str(problem), most)
    except (Exception, SystemExit):
        return ""


def cell(value: Any) -> Any:
    """A cell of a CSV file that no spreadsheet takes for a formula; what is no text stays as it is.

    A name that begins with ``=``, ``+``, ``-`` or ``@`` gets an apostrophe before it, which spreadsheets take for "this
    is text". Different names stay different.

    Example:
        >>> cell("=cmd()|x"), cell("-x"), cell("plain - name"), cell(-0.5)
        ("'=cmd()|x", "'-x", 'plain - name', -0.5)
    """
    return _FORMULA.sub(r"\1'\2\3", line(value)) if isinstance(value, str) else value


def _seen(character: str) -> bool:
    return character.isprintable() or character == "\u00a0"
