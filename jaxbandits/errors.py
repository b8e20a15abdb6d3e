"""The error raised for bad input, and the few checks that several modules share."""

from __future__ import annotations

import math

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
    """
    return InputError(f"{argument}: {shown(value)} given; it must be {may_be}")


def positive_number(argument: str, value: object) -> float:
    """`value` as a float, if it is one finite number above 0.

    Python numbers and zero-dimensional arrays are accepted, booleans and text are not.

    Raises:
        InputError: for anything else.
    """
    from jaxbandits.numbers import number  # it raises what is defined here

    may_be = "a finite number above 0"
    given = number(argument, value, may_be)
    if not (math.isfinite(given) and given > 0):
        raise bad(argument, value, may_be)
    return given


def whole_number(
    argument: str, value: object, least: int, most: int | None = None, most_as: str = "", may_also: str = ""
) -> int:
    """`value` as an int, if it is a whole number (of Python or NumPy, no boolean) from `least` to `most`.

    Args:
        argument, value: as in :func:`bad`.
        least, most: the range; no upper end if `most` is None.
        most_as: how the message writes `most`, such as "2**30".
        may_also: what else the message says the argument may be.

    Raises:
        InputError: for anything else.
    """
    from jaxbandits.numbers import refuse_traced

    if getattr(value, "shape", None) == () and getattr(getattr(value, "dtype", None), "kind", None) in ("i", "u"):
        refuse_traced(argument, value)
        value = int(value)  # type: ignore[call-overload]
    fits = isinstance(value, int) and not isinstance(value, bool)
    if not fits or value < least or (most is not None and value > most):  # type: ignore[operator]
        upper = f"of at least {least}" if most is None else f"from {least} to {most_as or most}"
        raise bad(argument, value, f"a whole number {upper}{may_also}")
    return int(value)  # type: ignore[call-overload]
