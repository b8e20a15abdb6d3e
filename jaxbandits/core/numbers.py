"""Numbers as users give them: what is none is refused by name, and what is checked is what will be played.

Parameters are float32 or int32 in a compiled program. A number that would become another one there (∞, 0, the bound of
its own range) is refused here, before anything runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import machine
from jaxbandits.core.errors import InputError, bad

LARGEST = float(np.finfo(np.float32).max)
SMALLEST = float(np.finfo(np.float32).tiny)  # below it float32 is denormal, which compiled programs take for 0
MOST_INT = 2**31 - 1
_KEPT_FREE = 1 << 27  # bytes: less than this is never refused, however little is free


def numbers(argument: str, value: Any, may_be: str = "numeric") -> np.ndarray:
    """``value`` as float64, if it is a number or an array of numbers: of Python, NumPy, JAX or in lists.

    Text, booleans, dates, None, complex numbers, other objects, ragged lists, masked and traced values are none.

    Raises:
        InputError: naming ``argument``; ``may_be`` says what it may be.
    """
    refuse_traced(argument, value)
    if not _may_be_numeric(value):
        raise bad(argument, value, may_be)
    try:
        if isinstance(value, int):
            return np.asarray(float(value))  # NumPy makes an object of one beyond 64 bits
        array = np.asarray(value)
        numeric = jnp.issubdtype(array.dtype, jnp.integer) or jnp.issubdtype(array.dtype, jnp.floating)
        if not numeric and (array.size or array.dtype != object):
            raise bad(argument, value, may_be)
        with np.errstate(all="ignore"):
            return array.astype(np.float64, copy=False)
    except InputError:
        raise
    except Exception:  # ragged, beyond float64, or whatever a stranger's __array__ raises
        raise bad(argument, value, may_be) from None


def refuse_traced(argument: str, tree: Any) -> None:
    """Raise :class:`InputError` if a value in ``tree`` is traced: there is no number to check."""
    refuse_cycles(argument, tree)
    if any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(tree)):
        raise InputError(
            f"{argument}: a traced value given; it must be concrete (call this outside of jit, vmap, grad)"
        )


def refuse_cycles(argument: str, tree: Any, inside: tuple[int, ...] = ()) -> None:
    """Raise :class:`InputError` if a list, tuple, dict or dataclass holds itself, or lists lie absurdly deep."""
    if id(tree) in inside or len(inside) > 64:
        raise InputError(f"{argument}: a {type(tree).__name__} that holds itself given; it must hold numbers")
    parts: Any = ()
    if isinstance(tree, (list, tuple)):
        parts = tree
    elif isinstance(tree, dict):
        parts = tree.values()
    elif dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        parts = (getattr(tree, field.name, None) for field in dataclasses.fields(tree))
    for part in parts:
        if isinstance(part, Iterator):
            raise InputError(f"{argument}: a {type(part).__name__} given; it must be numbers, such as a list of them")
        if isinstance(part, (list, tuple, dict)) or dataclasses.is_dataclass(part):
            refuse_cycles(argument, part, (*inside, id(tree)))


def _may_be_numeric(value: Any) -> bool:
    """False for what NumPy would turn into a number although it is none, alone or in a list."""
    if value is None or isinstance(value, (bool, np.bool_, str, bytes, bytearray, memoryview, complex, dict, set)):
        return False
    if isinstance(value, (list, tuple)):
        return all(_may_be_numeric(x) for x in value)
    if isinstance(value, np.ma.MaskedArray) and np.ma.getmaskarray(value).any():
        return False
    dtype = getattr(value, "dtype", None)
    return dtype is None or getattr(dtype, "kind", "") not in "bSUMmcO"


def number(argument: str, value: Any, may_be: str = "a number") -> float:
    """One of :func:`numbers`."""
    array = numbers(argument, value, may_be)
    if array.ndim:
        raise bad(argument, value, may_be)
    return float(array)


def float32(argument: str, value: Any) -> np.ndarray:
    """One of :func:`in_float32`, ``f32[]``."""
    return in_float32(argument, number(argument, value))


def booleans(argument: str, value: Any) -> np.ndarray:
    """``value`` as booleans: True and False, or 0 and 1."""
    given = value
    if isinstance(value, (bool, list, tuple)) or hasattr(value, "dtype"):
        with contextlib.suppress(ValueError, TypeError):
            given = np.asarray(value)
    if getattr(given, "dtype", None) == np.bool_ and not np.ma.is_masked(value):
        return given
    array = numbers(argument, value, "booleans")
    if not ((array == 0) | (array == 1)).all():
        raise bad(argument, value, "booleans")
    return array == 1


def in_float32(argument: str, value: Any, may_be: str = "numeric") -> np.ndarray:
    """``value`` as float32, if no finite number becomes infinite there, and none but 0 becomes 0.

    Raises:
        InputError: as :func:`numbers`, and for numbers beyond float32's range.
    """
    array = numbers(argument, value, may_be)
    with np.errstate(over="ignore", under="ignore"):
        cast = array.astype(np.float32)
    for wrong, range_ in (
        (np.isfinite(array) & ~np.isfinite(cast), f"at most {LARGEST:.7g} in size (float32)"),
        ((array != 0) & (np.abs(cast) < np.float32(SMALLEST)), f"0, or at least {SMALLEST:.7g} in size (float32)"),
    ):
        if wrong.any():
            raise bad(argument, float(array[wrong].flat[0]), range_)
    return cast


def as_played(name: str, value: Any, meta: Mapping[str, Any]) -> np.ndarray:
    """A leaf's value as the float32 or int32 that will be played, checked against the range that the leaf declares.

    Args:
        name: of the leaf.
        value: as given.
        meta: see :func:`jaxbandits.leaf`.

    Raises:
        InputError: naming the leaf, its value and what it may be.
    """
    array = numbers(name, value)
    if array.size == 0:
        raise bad(name, value, "at least one number")
    whole = bool(meta.get("integer"))
    bounds = {word: meta[word] for word in ("above", "at_least", "at_most") if meta.get(word) is not None}
    limits = [f"{word.replace('_', ' ')} {bound:g}" for word, bound in bounds.items()]
    may_be = " ".join(["a finite whole number" if whole else "a finite number", " and ".join(limits)]).strip()
    wrong = ~np.isfinite(array) | ((array != np.rint(array)) if whole else False)
    for word, bound in bounds.items():
        wrong = wrong | _outside(array, word, bound)
    if wrong.any():
        raise bad(name, float(array[wrong].flat[0]), may_be)
    if not whole:
        cast = in_float32(name, array)
    elif (large := np.abs(array) > MOST_INT).any():
        raise bad(name, float(array[large].flat[0]), f"{may_be}, and at most {MOST_INT} in size (int32)")
    else:
        return array.astype(np.int32)
    for word, bound in bounds.items():
        if (wrong := _outside(cast, word, np.float32(bound))).any():
            raise bad(name, float(array[wrong].flat[0]), f"{may_be} in float32, where it is {cast[wrong].flat[0]:g}")
    return cast


def _outside(x: np.ndarray, word: str, bound: Any) -> np.ndarray:
    return {"above": np.less_equal, "at_least": np.less, "at_most": np.greater}[word](x, bound)


# --- memory ----------------------------------------------------------------------------------------------------


def refuse_beyond_memory(argument: str, value: Any, wanted: float, free: int | None = None) -> None:
    """Raise :class:`InputError` if ``wanted`` bytes are more than what is free (default: of this machine's memory)."""
    if wanted <= _KEPT_FREE:
        return
    free = machine.available_memory() if free is None else free
    if free is not None and wanted > free:
        raise bad(argument, value, f"less: it would take {_shown(wanted)} of memory, and {_shown(free)} are free")


def _shown(size: float) -> str:
    return f"{size / 2**30:.3g} GiB"


def positive_number(argument: str, value: object) -> float:
    """`value` as a float, if it is one finite number above 0.

    Python numbers and zero-dimensional arrays are accepted, booleans and text are not.

    Raises:
        InputError: for anything else.
    """

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

    if getattr(value, "shape", None) == () and getattr(getattr(value, "dtype", None), "kind", None) in ("i", "u"):
        refuse_traced(argument, value)
        value = int(value)  # type: ignore[call-overload]
    fits = isinstance(value, int) and not isinstance(value, bool)
    if not fits or value < least or (most is not None and value > most):  # type: ignore[operator]
        upper = f"of at least {least}" if most is None else f"from {least} to {most_as or most}"
        raise bad(argument, value, f"a whole number {upper}{may_also}")
    return int(value)  # type: ignore[call-overload]
