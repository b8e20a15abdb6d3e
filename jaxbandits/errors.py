"""The error raised for bad input, and the few checks that several modules share."""

from __future__ import annotations

import math

import numpy as np

_SHOWN_CHARACTERS = 80


class InputError(ValueError):
    """Input that cannot be used: an argument, a file or a cell of a file.

    The message is one line that names the argument, the value given and what it may be.
    """


def shown(value: object) -> str:
    """`repr(value)` on one line, cut in the middle to at most 80 characters."""
    text = " ".join(repr(value).split())
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
    """
    return InputError(f"{argument}: {shown(value)} given; it must be {may_be}")


def positive_number(argument: str, value: object) -> float:
    """`value` as a float, if it is one finite number above 0.

    Python numbers and zero-dimensional arrays are accepted, booleans and text are not.

    Raises:
        InputError: for anything else.
    """
    wrong = bad(argument, value, "a finite number above 0")
    if isinstance(value, (bool, np.bool_, str, bytes)) or getattr(value, "ndim", 0) != 0:
        raise wrong
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise wrong from None
    if not (math.isfinite(number) and number > 0):
        raise wrong
    return number
