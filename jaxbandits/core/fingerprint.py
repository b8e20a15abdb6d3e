"""What programs and sweeps are made from: the code of classes and functions, and the exact values of static fields.

jit keeps a program by the structure of what it was given. A method that is edited in a session, patched, or reads a
global that has changed leaves the class the same object, and so would play its old program. So the structure of every
:func:`~jaxbandits.pytree` object holds what its class and its static fields were made of when a call last began
(:func:`refresh`): the code of all functions that are not a library's, their defaults and closed-over values, what they
name in the user's own modules, and what objects of the user's own classes hold. A sweep writes the same keys out, to
tell whether it is the one that began. What they cannot see: a change inside an object of a library (a table of pandas,
an array above a megabyte), which counts as the same as long as it is the very same object.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import site
import sys
import sysconfig
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

_PACKAGE = Path(__file__).parents[1]
_FOLDERS = (_PACKAGE, sysconfig.get_path("stdlib"), *site.getsitepackages(), site.getusersitepackages())
_LIBRARIES = tuple(f"{folder}{os.sep}" for folder in _FOLDERS)
_PLAIN = (bool, int, float, complex, str, bytes, np.generic, type(None))
_MOST_BYTES = 1 << 20  # of an array that is compared by value

_made_of: dict[Any, Hashable] = {}  # by class, and by value of a static field: as of the last call


class Same:
    """An object that equals itself only; it is kept, so that no other one takes its address."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


class Function(NamedTuple):
    """What a function was made from, as keys."""

    code: CodeType | None  # None of a library's, around a user's
    held: tuple  # defaults and closed-over values
    named: tuple  # what it finds in the user's modules; of a wrapper, all that it holds


def made_of(thing: Any) -> Hashable:
    """What a class, or a value of a static field, was made of when a call with such an object last began."""
    return _made_of.get(thing) if hashable(thing) else None


def refresh(*owners: Any) -> None:
    """Look again at what these objects, and those in their fields, are made of: at the beginning of every call."""
    for owner in owners:
        fields = getattr(owner, "__dataclass_fields__", {}).items()
        fixed = (getattr(owner, name) for name, field in fields if field.metadata.get("static"))
        for thing in (type(owner), *filter(hashable, _flat(fixed))):
            found = key_of(thing)
            # A value that says nothing but what it is counts as all that equal it; an equal key stays the same object.
            if not isinstance(thing, _PLAIN) and not isinstance(found, Same) and _made_of.get(thing) != found:
                _made_of[thing] = found
                _forget(found)
        refresh(*filter(_is_noun, _flat(vars(owner).values())))


def _forget(key: Hashable) -> None:
    """The user's own jitted functions have programs too, which jax keeps whatever they read."""
    if isinstance(key, Same) and hasattr(key.value, "clear_cache") and in_library(type(key.value)):
        key.value.clear_cache()
    for part in key if isinstance(key, tuple) else ():
        _forget(part)


def hashable(value: Any) -> bool:
    """Can it be part of a key, with all that it holds?"""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def exactly(value: Any) -> Hashable:
    """A key that is equal for the same value of the same type only: 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    if isinstance(value, tuple):
        return type(value), *map(exactly, value)
    if isinstance(value, (float, np.generic)):
        return type(value), value.hex() if isinstance(value, float) else value.tobytes()
    return (type(value), value) if isinstance(value, _PLAIN) else (type(value), value, made_of(value))


def is_users(owner: Any) -> bool:
    """Is any code in it, or in what its fields hold, not a library's?"""
    own = (value for base in type(owner).__mro__ for value in vars(base).values())
    held = list(_flat(vars(owner).values())) if _is_noun(owner) else []
    kind = owner if isinstance(owner, type) else type(owner)
    return not in_library(kind) or any(map(_is_users, (*own, owner))) or any(map(is_users, held))


def in_library(thing: Any) -> bool:
    """Is the module of a class, or this module, a part of this package, of Python or of another package's install?"""
    name = thing.__name__ if isinstance(thing, ModuleType) else thing.__module__
    file = str(getattr(sys.modules.get(name), "__file__", None))
    return name in sys.builtin_module_names or (name != "__main__" and file.startswith(_LIBRARIES))


def key_of(value: Any, seen: frozenset[int] = frozenset()) -> Hashable:
    """What code can see of a value; ``seen`` are the objects on the way there, by their ids."""
    if isinstance(value, _PLAIN):
        return exactly(value)
    if id(value) in seen or isinstance(value, ModuleType):
        return None
    seen |= {id(value)}

    def keys(values: Iterable[Any]) -> tuple:
        return tuple(key_of(x, seen) for x in values)

    if isinstance(value, type):
        return Same(value), _class(value, seen)
    if isinstance(value, (tuple, list)):
        return type(value), *keys(value)
    if isinstance(value, (set, frozenset)):
        return type(value), frozenset(keys(value))
    if isinstance(value, dict):
        return type(value), *zip(keys(value), keys(value.values()), strict=True)
    if isinstance(value, np.ndarray) and value.nbytes <= _MOST_BYTES and value.dtype != object:
        return value.dtype.str, value.shape, value.tobytes()
    if holds(value):
        by_identity: Any = type(value).__hash__ is object.__hash__  # type: ignore[comparison-overlap]
        one = value if by_identity else type(value)  # which counts as all that equal it
        return Same(one), _class(type(value), seen), *keys(vars(value).items())
    if isinstance(value, functools.partial):
        return functools.partial, *keys((value.func, value.args, value.keywords))
    if isinstance(value, MethodType):
        return MethodType, *keys((value.__self__, value.__func__))
    function = _function(value)
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or () if cell != CellType()]
    if isinstance(function, FunctionType) and not function.__code__.co_filename.startswith(_LIBRARIES):
        held = (function.__defaults__, function.__kwdefaults__, *cells)
        return Function(function.__code__, keys(held), keys(_named(function)))
    wrapped = [function.__wrapped__] if hasattr(function, "__wrapped__") else []  # by jax.jit, jax.vmap and the like
    return (Same(function), Function(None, (), keys((*cells, *wrapped)))) if cells or wrapped else Same(function)


def holds(value: Any) -> bool:
    """Is it an object whose attributes are looked at: a dataclass, or of a class of the user's?"""
    return _is_noun(value) or (hasattr(value, "__dict__") and not in_library(type(value)))


def _class(cls: type, seen: frozenset[int]) -> tuple:
    """The user's own methods and attributes of a class, those that it inherits included; a library's plain ones."""
    return tuple(
        (name, key_of(value, seen | {id(cls)}))
        for base in cls.__mro__
        for name, value in sorted(vars(base).items())
        if _is_users(value)
        or (not name.startswith(("__", "_abc_")) and (isinstance(value, (*_PLAIN, tuple)) or not in_library(base)))
    )


def _is_noun(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and hasattr(value, "__dict__") and not isinstance(value, type)


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        yield from _flat(value) if isinstance(value, tuple) else (value,)


def _is_users(value: Any) -> bool:
    """Is it a function, or a method of any kind, that is not a library's, or wraps one that is not?"""
    function = _function(value)
    code = getattr(function, "__code__", None)
    generated = code is not None and code.co_filename == "<string>" and code.co_name.startswith("__")
    if code is not None and not generated and not code.co_filename.startswith(_LIBRARIES):
        return True
    return hasattr(function, "__wrapped__") and _is_users(function.__wrapped__)


def _function(value: Any) -> Any:
    """The function of a method or of a property."""
    if isinstance(value, (staticmethod, classmethod, MethodType)):
        return value.__func__
    if isinstance(value, (functools.cached_property, functools.partial)):
        return value.func
    return value.fget if isinstance(value, property) else value


def _named(function: FunctionType) -> Iterator[Any]:
    """What the names in its code mean: in its own module, and in those of the user's modules that it names."""
    spaces = [function.__globals__]
    for name in dict.fromkeys(_names(function.__code__)):
        for found in (*(space[name] for space in spaces if name in space), sys.modules.get(name)):
            if not isinstance(found, ModuleType):
                yield found
            elif not in_library(found):
                spaces.append(vars(found))


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


# --- digests


def digest(content: bytes) -> str:
    """Of bytes, as text."""
    return hashlib.sha256(content).hexdigest()


def digest_of_arrays(arrays: Iterable[tuple[str, Any]]) -> str:
    """Of arrays and what they are called: names, types, shapes and all numbers."""
    made = hashlib.blake2b(digest_size=16)
    for name, array in arrays:
        x = np.ascontiguousarray(array)
        made.update(f"{name}{x.dtype.str}{np.shape(array)}".encode() + x.tobytes())
    return made.hexdigest()


def digest_now() -> str:
    """Of all source files of this package, as they are now."""
    files = {path.relative_to(_PACKAGE).as_posix(): digest(path.read_bytes()) for path in _PACKAGE.rglob("*.py")}
    return digest(repr(sorted(files.items())).encode())


package_digest = functools.cache(digest_now)
"""The same, when it was first asked for: two checkouts may bear the same version."""
