"""Checks of arguments with one-line errors, and this machine's cores and memory.

What is checked is what will be played: parameters are float32 or int32 in a compiled program, and a
number that would become another one there (∞, 0, the bound of its own range) is refused by name
before anything runs.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
import os
import platform
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from jaxbandits._tables import NARROW, line

# jax is imported where it is needed: the command's help, and its errors, come without it.

T = TypeVar("T")

# Below it float32 is denormal, which compiled programs take for 0
SMALLEST = float(np.finfo(np.float32).tiny)
MOST_INT = 2**31 - 1
_LARGEST = float(np.finfo(np.float32).max)
_NEVER_REFUSED = 1 << 27  # bytes


class InputError(ValueError):
    """Invalid input: an argument, a file or a cell of a file.

    The message is one line that names the argument, the value given and what it may be. Numbers
    and shapes that a docstring leaves out are one before anything is compiled; where nothing but
    that can go wrong, the docstring has no section *Raises*.
    """


def bad(argument: str, value: object, may_be: str) -> InputError:
    """An error "ARGUMENT: VALUE given; it must be MAY_BE" to raise; ``value`` is shown as `repr`.

    Example:
        >>> from jaxbandits.core import bad
        >>> str(bad("rho", -1.0, "above 0"))
        'rho: -1.0 given; it must be above 0'
    """
    return InputError(f"{argument}: {quoted(value)} given; it must be {may_be}")


def refuse(argument: str, values: Any, wrong: Any, may_be: str) -> None:
    """Raise :func:`bad` if ``wrong``; for an array, about the first wrong one of the ``values``."""
    if np.any(wrong):
        if np.ndim(wrong) or getattr(values, "shape", None) == ():
            values = np.asarray(values)[wrong].flat[0].item()
        raise bad(argument, values, may_be)


def quoted(value: object, limit: int = 80) -> str:
    """``repr(value)`` on one line, cut in the middle to at most ``limit`` characters."""
    text = " ".join(repr(value.translate(NARROW) if isinstance(value, str) else value).split())
    half = (limit - 3) // 2
    return text if len(text) <= limit else f"{text[:half]}...{text[-half:]}"


def brief(text: object, limit: int = 200) -> str:
    """A message or exception on one line of at most ``limit`` characters."""
    text = line(" ".join(str(text).split()))
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


class CallError(InputError, TypeError):
    """A call with a missing argument, or with one that the function does not accept."""


F = TypeVar("F", bound=Callable[..., Any])


def door(function: F, name: str = "") -> F:
    """``function`` with one-line errors for wrong arguments, which report what it accepts."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError:  # perhaps another one's
            refuse_misfit(function, args, options, name)
            raise

    return call  # type: ignore[return-value]


def refuse_misfit(
    function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any], name: str = ""
) -> None:
    """Raise :class:`CallError` if ``function``, called ``name``, rejects these arguments."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **options)
    except TypeError as problem:
        takes = ", ".join(x for x in signature.parameters if x != "self")
        raise CallError(f"{name or function.__name__}: {problem}; it takes {takes}") from None


# --- Numbers as users give them.


def numbers(argument: str, value: Any, may_be: str = "numeric") -> np.ndarray:
    """``value`` as float64, if it is a number, an array or lists; no booleans or masked arrays."""
    import jax.numpy as jnp

    refuse_traced(argument, value)
    try:
        # NumPy makes an object of a whole number beyond 64 bits.
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        array = np.asarray(float(value) if is_whole else value)
    except (ValueError, TypeError, OverflowError):  # ragged, or of no NumPy type
        raise bad(argument, value, may_be) from None
    # bfloat16, say, has a kind of its own
    numeric = array.dtype.kind in "iuf" or jnp.issubdtype(array.dtype, jnp.floating)
    if not numeric or _holds_booleans(value) or np.ma.is_masked(value):
        raise bad(argument, value, may_be)
    with np.errstate(all="ignore"):
        return array.astype(np.float64, copy=False)


def _holds_booleans(value: Any) -> bool:
    """Does a list hold True or False? NumPy would make 1 and 0 of them beside numbers."""
    if isinstance(value, (list, tuple)):
        return any(map(_holds_booleans, value))
    return isinstance(value, (bool, np.bool_))


def refuse_traced(argument: str, tree: Any) -> None:
    """Raise :class:`InputError` if a value in ``tree`` is traced: there is no number to check."""
    import jax

    if any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(tree)):
        must = "it must be concrete (call it outside of jit, vmap, grad)"
        raise InputError(f"{argument}: a traced value given; {must}")


def number(argument: str, value: Any, may_be: str = "a number") -> float:
    """``value`` as a float, if it is a single number that :func:`numbers` accepts."""
    array = numbers(argument, value, may_be)
    if array.ndim:
        raise bad(argument, value, may_be)
    return float(array)


def positive_number(argument: str, value: object) -> float:
    """``value`` as a float, if it is one finite number above 0."""
    may_be = "a finite number above 0"
    as_float = number(argument, value, may_be)
    if not (math.isfinite(as_float) and as_float > 0):
        raise bad(argument, value, may_be)
    return as_float


def whole_number(
    argument: str,
    value: object,
    minimum: int,
    maximum: int | None = None,
    maximum_text: str = "",
    may_also: str = "",
) -> int:
    """``value`` as an int, if it is an integer, not a boolean, from ``minimum`` to ``maximum``.

    The message writes ``maximum_text`` for ``maximum``, and says what the argument ``may_also`` be.
    """
    whole, kind = value, getattr(getattr(value, "dtype", None), "kind", "")
    if getattr(whole, "shape", None) == () and kind in ("i", "u"):
        refuse_traced(argument, whole)
        whole = int(whole)  # type: ignore[call-overload]
    is_whole = isinstance(whole, int) and not isinstance(whole, bool)
    if not is_whole or whole < minimum or (maximum is not None and whole > maximum):  # type: ignore[operator]
        range_ = f"from {minimum} to {maximum_text or maximum}"
        range_ = f"of at least {minimum}" if maximum is None else range_
        raise bad(argument, value, f"a whole number {range_}{may_also}")
    return whole  # type: ignore[return-value]


def booleans(argument: str, value: Any) -> np.ndarray:
    """``value`` as booleans: True and False, or 0 and 1."""
    array = np.asarray(value)
    if array.dtype != np.bool_:
        array = numbers(argument, value, "booleans")
    if np.ma.is_masked(value) or not ((array == 0) | (array == 1)).all():
        raise bad(argument, value, "booleans")
    return array == 1


def in_float32(argument: str, value: Any, may_be: str = "numeric") -> np.ndarray:
    """``value`` as float32, if no finite number becomes infinite, and only 0 becomes 0."""
    array = numbers(argument, value, may_be)
    with np.errstate(over="ignore", under="ignore"):
        cast = array.astype(np.float32)
    large, small = np.isfinite(array) & ~np.isfinite(cast), np.abs(cast) < np.float32(SMALLEST)
    refuse(argument, array, large, f"at most {_LARGEST:.7g} in size (float32)")
    may_be = f"0, or at least {SMALLEST:.7g} in size (float32)"
    refuse(argument, array, small & (array != 0), may_be)
    return cast


_OUTSIDE = {"above": np.less_equal, "at_least": np.less, "at_most": np.greater}


def as_played(name: str, value: Any, meta: Mapping[str, Any]) -> np.ndarray:
    """A leaf's value as float32 or int32; InputError if outside its range (:func:`leaf`)."""
    array = numbers(name, value)
    if array.size == 0:
        raise bad(name, value, "at least one number")
    whole = bool(meta.get("integer"))
    bounds = {word: meta[word] for word in _OUTSIDE if meta.get(word) is not None}
    limits = " and ".join(f"{word.replace('_', ' ')} {bound:g}" for word, bound in bounds.items())
    may_be = f"a finite {'whole ' if whole else ''}number {limits}".strip()
    wrong = ~np.isfinite(array) | ((array != np.rint(array)) if whole else False)
    for word, bound in bounds.items():
        wrong = wrong | _OUTSIDE[word](array, bound)
    refuse(name, array, wrong, may_be)
    if whole:
        large = np.abs(array) > MOST_INT
        refuse(name, array, large, f"{may_be}, and at most {MOST_INT} in size (int32)")
        return array.astype(np.int32)
    cast = in_float32(name, array)
    for word, bound in bounds.items():  # a range holds after the cast, too
        if (wrong := _OUTSIDE[word](cast, np.float32(bound))).any():
            refuse(name, array, wrong, f"{may_be} in float32, where it is {cast[wrong].flat[0]:g}")
    return cast


# --- Methods that users wrote, called so that a mistake in them is one clear line.


@functools.cache
def _libraries() -> tuple[Path, ...]:
    import jax

    return Path(__file__).parents[1], *(Path(str(module.__file__)).parent for module in (jax, np))


def called(owner: object, method: str, call: Callable[[], T]) -> T:
    """``call()``; an exception becomes an InputError that names the class, method and line."""
    try:
        return call()
    except InputError:
        raise
    except (Exception, SystemExit) as problem:
        name = user_method(owner, method, problem)
        raise InputError(f"{name}: fails: {in_a_line(problem)}") from problem


def in_a_line(problem: BaseException) -> str:
    """What went wrong and where, with jax's messages put into a user's terms."""
    import jax

    text = brief(problem, 300)
    of_many = isinstance(problem, ValueError) and text.startswith("The truth value of an array")
    of_jax = jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError
    if of_many or isinstance(problem, of_jax):
        text = (
            "it uses a traced value, which has no number yet, as a Python number, in an `if` or in NumPy "
            "(use jax.numpy, and jnp.where instead of `if`)"
        )
    frames = traceback.extract_tb(problem.__traceback__)
    users = [frame for frame in frames if _is_user_code(frame.filename)]
    at = _place(users[-1].filename, users[-1].lineno) if users else ""
    return f"{type(problem).__name__}: {text}{at}"


def user_method(owner: object, method: str, problem: BaseException) -> str:
    """The user's method that failed, as ``Class.name``; ``score``, say, inside ``select``."""
    for frame, _ in traceback.walk_tb(problem.__traceback__):
        if _is_user_code(frame.f_code.co_filename):
            within, _, name = frame.f_code.co_qualname.rpartition(".")
            if name.isidentifier() and (kind := within.rpartition(".")[2]).isidentifier():
                return f"{kind}.{name}"
            break
    return f"{type(owner).__name__}.{method}"


def one_for_each_arm(owner: object, method: str, values: Any, shape: tuple[int, ...]) -> Any:
    """``values``, if it is one number for each arm, which ``owner.method`` must return."""
    if getattr(values, "shape", None) == shape:
        return values
    kind = f"a {type(values).__name__}"
    kind = f"{values.dtype}{list(values.shape)}" if hasattr(values, "dtype") else kind
    code = getattr(getattr(type(owner), method), "__code__", None)
    at = _place(code.co_filename, code.co_firstlineno) if code else ""
    name = f"{type(owner).__name__}.{method}"
    raise InputError(f"{name}: {kind} given; it must be one number for each arm, {list(shape)}{at}")


def _place(file: str, line_number: int | None) -> str:
    return f" ({Path(file).name}, line {line_number})"


def _is_user_code(file: str) -> bool:
    """Is a file neither this package's, nor jax's or NumPy's, nor text that was run?"""
    ours = any(Path(file).is_relative_to(folder) for folder in _libraries())
    return not (ours or file.startswith("<"))


# --- What this machine has.


def cores() -> int:
    """How many cores this process may use, at least 1."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def part_of_cores(index: int, count: int) -> list[int]:
    """The cores for one of ``count`` processes that share this process's; empty if unknown."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    usable = sorted(os.sched_getaffinity(0))
    return usable[index::count] or [usable[index % len(usable)]]


def cpu_line(*starts: str) -> str:
    """The first line of /proc/cpuinfo that starts so; elsewhere than on Linux empty."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            return next((line for line in lines if line.startswith(starts)), "")
    except OSError:
        return ""


@functools.cache
def processor() -> str:
    """A hash of the processor's kind: code compiled for one kind may not run on another."""
    features = platform.machine(), platform.processor(), cpu_line("flags", "Features")
    return hashlib.sha256("".join(features).encode()).hexdigest()[:12]


def available_memory() -> int:
    """Bytes of free memory, including caches that the system would drop."""
    import psutil

    return psutil.virtual_memory().available


def refuse_beyond_memory(argument: str, value: Any, size: float, free: int | None = None) -> None:
    """Raise :class:`InputError` if a job needs more bytes than are free (default: in memory)."""
    free = available_memory() if free is None else free
    if size > max(free, _NEVER_REFUSED):
        must = f"less: it would take {size / 2**30:.3g} GiB of memory, and {free / 2**30:.3g} GiB are free"
        raise bad(argument, value, must)


def peak_memory() -> int:
    """The largest resident memory of this process so far, in bytes."""
    import psutil

    try:
        import resource
    except ImportError:  # Windows
        memory = psutil.Process().memory_info()
        return getattr(memory, "peak_wset", memory.rss)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # bytes there, KiB on other systems
