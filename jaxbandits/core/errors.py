"""The error raised for bad input, and the few checks that several modules share."""

from __future__ import annotations

_SHOWN_CHARACTERS = 80


class InputError(ValueError):
    """Input that cannot be used: an argument, a file or a cell of a file.

    The message is one line that names the argument, the value given and what it may be.
    """


def shown(value: object) -> str:
    """`repr(value)` on one line, cut in the middle to at most 80 characters."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a stranger's repr, or a whole number of thousands of digits
        text = f"a {type(value).__name__}"
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    half = (_SHOWN_CHARACTERS - 3) // 2
    return f"{text[:half]}...{text[-half:]}"


def bad(argument: str, value: object, may_be: str) -> InputError:
    """The error "ARGUMENT: VALUE given; it must be MAY_BE", for the caller to raise.

    Args:
        argument: name of the argument, or the place of a cell in a file.
        value: what was given; shown as its `repr`, shortened.
        may_be: what is accepted, to be read after "it must be".

    Example:
        >>> from jaxbandits.core import bad
        >>> str(bad("rho", -1.0, "above 0"))
        'rho: -1.0 given; it must be above 0'
    """
    return InputError(f"{argument}: {shown(value)} given; it must be {may_be}")
