"""From the bytes of an arms file to its text: UTF-8, UTF-16, UTF-32 or Latin-1."""

from __future__ import annotations

import codecs
import re

from jaxbandits.core.errors import bad

_MARKS = (  # that of UTF-32 begins like that of UTF-16
    (codecs.BOM_UTF8, "utf-8-sig", ""),
    (codecs.BOM_UTF32_LE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
)
_NO_TEXT = (
    (b"PK\x03\x04", "a workbook or a zip file"),
    (b"\xd0\xcf\x11\xe0", "an old workbook (.xls)"),
    (b"\x1f\x8b", "a gzip file"),
    (b"PAR1", "a parquet file"),
    (b"%PDF", "a PDF"),
)
_LOOKED_AT = 4096
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_MAY_BE = "text in UTF-8, UTF-16 or Latin-1 (or say --encoding)"


def decoded(content: bytes, source: str, encoding: str | None = None) -> tuple[str, tuple[str, ...]]:
    """The text, and a note where it is not UTF-8. ``encoding`` is what the user says it is.

    Raises:
        InputError: it is no text in an encoding that can be told from the bytes.

    Example:
        >>> decoded("café".encode("latin-1"), "a.csv")
        ('café', ('read as Latin-1 (Windows-1252), for it is not UTF-8',))
    """
    if encoding is not None:
        try:
            return _text(content, encoding, source), (f"read as {codecs.lookup(encoding).name}",)
        except (LookupError, ValueError):
            raise bad("encoding", encoding, f"the encoding of {source}, such as utf-8, cp1251 or shift_jis") from None
    for start, what in _NO_TEXT:
        if content.startswith(start):
            raise bad("arms file", source, f"{_MAY_BE}, saved as CSV; this is {what}")
    for mark, of_mark, name in _MARKS:
        if content.startswith(mark):
            return _text(content, of_mark, source), (f"read as {name}",) if name else ()
    if found := _utf16_without_mark(content):
        return _text(content, found, source), ("read as UTF-16 (without a mark)",)
    if b"\0" in content:
        raise bad("arms file", source, f"{_MAY_BE}, and has null characters")
    try:
        return content.decode("utf-8"), ()
    except UnicodeDecodeError:
        text = _text(content, "cp1252", source)
    if _CONTROL.search(text):
        raise bad("arms file", source, f"{_MAY_BE}, and has control characters")
    letters = [x for x in text[:_LOOKED_AT] if x.isalpha()]
    odd = (
        " (if names look odd: --encoding, such as cp1251)"
        if 3 * sum(x > "\xbf" for x in letters) > len(letters)
        else ""
    )
    return text, (f"read as Latin-1 (Windows-1252), for it is not UTF-8{odd}",)


def _text(content: bytes, encoding: str, source: str) -> str:
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        raise bad("arms file", source, _MAY_BE) from None
    if "\0" in text:
        raise bad("arms file", source, f"{_MAY_BE}, and has null characters")
    return text


def _utf16_without_mark(content: bytes) -> str:
    """Every other byte of mostly Latin text is 0 in UTF-16, and never two in a row."""
    head = content[:_LOOKED_AT]
    even, odd = head[::2], head[1::2]
    if len(content) % 2 or len(head) < 4 or min(even.count(0), odd.count(0)) > 0:
        return ""
    for zeros, encoding in ((odd, "utf-16-le"), (even, "utf-16-be")):
        if zeros.count(0) > 0.7 * len(zeros):
            return encoding
    return ""
