"""What a program was made from: the code of classes and the exact values of static fields.

jit keeps a program by the structure of what it was given. A method that is edited in a session, patched, or reads a
global that has changed leaves the class the same object, and so would play its old program. So the structure of every
:func:`~jaxbandits.pytree` object holds what its class was made of when a call last began (:func:`refresh`): the code of
all methods that are not this package's, their defaults, closed-over values and the globals of the user's own modules
that they name. What it cannot see: objects without a value to compare, which count as the same as long as they are the
very same object.
"""

from __future__ import annotations

import dataclasses
import os
import sysconfig
from collections.abc import Hashable, Iterator
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

_PATHS = sysconfig.get_paths()
_FOLDERS = (Path(__file__).parents[1], *(Path(_PATHS[name]) for name in ("stdlib", "purelib", "platlib")))
_LIBRARIES = tuple(f"{folder}{os.sep}" for folder in _FOLDERS)
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_MOST_BYTES = 1 << 20  # of an array that is compared by value

_made_of: dict[type, Hashable] = {}  # by class, as of the last call


class Same:
    """An object that equals itself only; it is kept, so that no other one takes its address."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def made_of(cls: type) -> Hashable:
    """What a class was made of when a call with such an object last began."""
    return _made_of.get(cls)


def refresh(*owners: Any) -> None:
    """Look again at the classes of these objects and of those in their fields: at the beginning of every call."""
    for owner in owners:
        found = _class(type(owner), frozenset())
        if _made_of.get(type(owner)) != found:  # an equal one stays the same object, which compares fast
            _made_of[type(owner)] = found
        refresh(*_parts(owner))


def is_users(owner: Any) -> bool:
    """Is any code in it, or in its fields, not this package's?"""
    own = (value for base in type(owner).__mro__ for value in vars(base).values())
    return any(map(_is_users, (*own, *vars(owner).values()))) or any(map(is_users, _parts(owner)))


def _parts(owner: Any) -> Iterator[Any]:
    """The dataclasses in its fields."""
    for value in vars(owner).values():
        yield from (x for x in (value if isinstance(value, tuple) else (value,)) if dataclasses.is_dataclass(x))


def exactly(value: Any) -> Hashable:
    """A key that is equal for the same value of the same type only: 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    if isinstance(value, tuple):
        return type(value), *map(exactly, value)
    return (float, value.hex()) if isinstance(value, float) else (type(value), value)


def _class(cls: type, seen: frozenset[int]) -> Hashable:
    """The user's own methods and plain attributes of a class, those that it inherits included."""
    return tuple(
        (name, _value(value, seen | {id(cls)}))
        for base in cls.__mro__
        for name, value in vars(base).items()
        if _is_users(value) or (not name.startswith("_") and isinstance(value, (*_PLAIN, tuple)))
    )


def _is_users(value: Any) -> bool:
    function = _function(value)
    code = getattr(function, "__code__", None)
    generated = code is not None and code.co_filename == "<string>" and code.co_name.startswith("__")
    if code is not None and not generated and not code.co_filename.startswith(_LIBRARIES):
        return True
    return hasattr(function, "__wrapped__") and _is_users(function.__wrapped__)


def _function(value: Any) -> Any:
    """The function of a method or a property."""
    return getattr(value, "__func__", getattr(value, "fget", value))


def _value(value: Any, seen: frozenset[int]) -> Hashable:
    function = _function(value)
    if id(value) in seen or isinstance(value, ModuleType):
        return None
    if not isinstance(value, type) and _is_users(function):
        if isinstance(function, FunctionType) and not function.__code__.co_filename.startswith(_LIBRARIES):
            return _code(function, seen | {id(value)})
        # jax.vmap and the like: what else it was made with cannot be seen
        return Same(function), _value(function.__wrapped__, seen | {id(value)})
    if isinstance(function, FunctionType):
        return Same(function)
    if isinstance(value, (tuple, list, set, frozenset)):
        return type(value), *(_value(x, seen | {id(value)}) for x in value)
    if isinstance(value, dict):
        return dict, *((exactly(key), _value(x, seen | {id(value)})) for key, x in value.items())
    if isinstance(value, np.ndarray) and value.nbytes <= _MOST_BYTES and value.dtype != object:
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, type):
        return Same(value), _class(value, seen)
    return exactly(value) if isinstance(value, _PLAIN) else Same(value)


def _code(function: FunctionType, seen: frozenset[int]) -> Hashable:
    # One cell may hold the class itself (`super()` leaves it there), which is seen already; another may be empty yet.
    cells = (cell.cell_contents for cell in function.__closure__ or () if cell != CellType())
    named = (function.__globals__.get(name) for name in dict.fromkeys(_names(function.__code__)))
    held = (function.__defaults__, function.__kwdefaults__, *cells, *named)
    return function.__code__, *(_value(x, seen) for x in held)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
