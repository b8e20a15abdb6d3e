"""Methods that users wrote, called so that a mistake in them is one clear line."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

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
        raise InputError(f"{type(owner).__name__}.{method}: fails: {in_a_line(problem)}") from problem


def in_a_line(problem: BaseException) -> str:
    """What went wrong, in a user's words where jax has only its own, and where."""
    name, text = type(problem).__name__, said(problem, 300)
    if isinstance(problem, (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError)):
        text = (
            "it uses a value that is not known while it is traced as a Python number, in an `if` or in NumPy "
            "(use jax.numpy, and jnp.where instead of `if`)"
        )
    here = [frame for frame in traceback.extract_tb(problem.__traceback__) if _is_user_code(frame.filename)]
    at = f" ({Path(here[-1].filename).name}, line {here[-1].lineno})" if here else ""
    return f"{name}: {text}{at}"


def _is_user_code(file: str) -> bool:
    return not any(Path(file).is_relative_to(folder) for folder in _FOLDERS) and not file.startswith("<")
