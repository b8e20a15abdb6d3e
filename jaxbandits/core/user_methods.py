"""Methods that users wrote, called so that a mistake in them is one clear line."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np

import jaxbandits
from jaxbandits.core.errors import InputError
from jaxbandits.core.printable import said

T = TypeVar("T")


# Not the user's own code, when it is said where a mistake is.
_FOLDERS = tuple(Path(str(module.__file__)).parent for module in (jaxbandits, jax, np))


def called(owner: object, method: str, call: Callable[[], T]) -> T:
    """``call()``; what it raises becomes an InputError that names the class and the method.

    Raises:
        InputError: its own, or for any other exception.
    """
    try:
        return call()
    except InputError:
        raise
    except (Exception, SystemExit) as problem:
        raise InputError(f"{written(owner, method, problem)}: fails: {in_a_line(problem)}") from problem


def in_a_line(problem: BaseException) -> str:
    """What went wrong, in a user's words where jax has only its own, and where."""
    name, text = type(problem).__name__, said(problem, 300)
    of_many = isinstance(problem, ValueError) and text.startswith("The truth value of an array")
    if of_many or isinstance(problem, (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError)):
        text = (
            "it uses a value that is not known while it is traced as a Python number, in an `if` or in NumPy "
            "(use jax.numpy, and jnp.where instead of `if`)"
        )
    here = [frame for frame in traceback.extract_tb(problem.__traceback__) if _is_user_code(frame.filename)]
    return f"{name}: {text}{_place(here[-1].filename, here[-1].lineno) if here else ''}"


def written(owner: object, method: str, problem: BaseException) -> str:
    """The method that a user wrote, as ``Class.name``: ``score``, say, where the engine called ``select``."""
    for frame, _ in traceback.walk_tb(problem.__traceback__):
        if _is_user_code(frame.f_code.co_filename):
            within, _, name = frame.f_code.co_qualname.rpartition(".")
            if name.isidentifier() and (kind := within.rpartition(".")[2]).isidentifier():
                return f"{kind}.{name}"
            break
    return f"{type(owner).__name__}.{method}"


def one_for_each_arm(owner: object, method: str, given: Any, shape: tuple[int, ...]) -> Any:
    """``given``, if it is an array with one number for each arm: what ``owner.method`` must give.

    Raises:
        InputError: anything else.
    """
    if getattr(given, "shape", None) == shape:
        return given
    what = f"{given.dtype}{list(given.shape)}" if hasattr(given, "dtype") else f"a {type(given).__name__}"
    code = getattr(getattr(type(owner), method), "__code__", None)
    at = _place(code.co_filename, code.co_firstlineno) if code else ""
    must = f"one number for each arm, {list(shape)}"
    raise InputError(f"{type(owner).__name__}.{method}: {what} given; it must be {must}{at}")


def _place(file: str, line: int | None) -> str:
    return f" ({Path(file).name}, line {line})"


def _is_user_code(file: str) -> bool:
    return not any(Path(file).is_relative_to(folder) for folder in _FOLDERS) and not file.startswith("<")
