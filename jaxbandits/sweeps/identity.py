"""What a sweep is, as plain JSON: so that a folder can tell whether it was begun by this very sweep."""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import inspect
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np

from jaxbandits.core.errors import InputError, shown

_PACKAGE = Path(__file__).parents[1]
SPEC_TEXT = "__spec_text__"  # under this name a spec's module holds what was executed
_LIBRARIES = ("numpy", "jax", "jaxlib", "scipy")
_SHOWN = 16  # arrays of at most so many numbers are written out, longer ones as their digest


def describe(value: Any, where: str = "spec", seen: frozenset[int] = frozenset()) -> Any:
    """A value as JSON that is equal if and only if the value is: numbers, arrays, dataclasses, functions.

    Functions and classes from outside this package bring the digest of the file that they stand in, or of their code
    where there is none; functions also what they were made with: the object of a method, closures, defaults, what they
    wrap. ``seen`` are the functions on the way there, which may call themselves.

    Raises:
        InputError: an object that has no description of its own.
    """
    if value is None or (isinstance(value, (bool, int, float, str)) and not isinstance(value, enum.Enum)):
        return value
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return {"key": _array(np.asarray(jax.random.key_data(value)))}
    if isinstance(value, (np.ndarray, jax.Array, np.generic)):
        return _array(np.asarray(value))
    if isinstance(value, Mapping):
        return {str(key): describe(item, f"{where}.{key}", seen) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {
            **_code(type(value)),
            **{name: describe(item, f"{where}.{name}", seen) for name, item in fields.items()},
        }
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: describe(getattr(value, name), f"{where}.{name}", seen) for name in value._fields}
    if isinstance(value, (list, tuple)):
        return [describe(item, f"{where}[{i}]", seen) for i, item in enumerate(value)]
    if isinstance(value, functools.partial):
        held = describe([list(value.args), value.keywords], where, seen)
        return {"partial": describe(value.func, where, seen), "args": held}
    if isinstance(value, types.ModuleType):
        return {"module": value.__name__}
    if inspect.isroutine(value) or hasattr(value, "__wrapped__"):
        return _code(value) if id(value) in seen else {**_code(value), **_held(value, where, seen | {id(value)})}
    if isinstance(value, type):
        return _code(value)
    text = repr(value)
    if " at 0x" in text:
        raise InputError(
            f"{where}: {shown(value)} cannot be told from another such object; it must be a number, an array, a "
            "dataclass or a function, so that a continued sweep can be recognised"
        )
    return {**_code(type(value)), "repr": text}


def _array(x: np.ndarray) -> Any:
    if x.size <= _SHOWN and x.dtype.kind in "biuf" and not (x != x).any():  # NaN is not equal to itself
        return {"dtype": x.dtype.str, "values": x.tolist()}
    digest = hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()
    return {"dtype": x.dtype.str, "shape": list(x.shape), "sha256": digest}


def _code(thing: Any) -> dict[str, str]:
    """A class or function by name, with its file's digest if it is not ours."""
    module = getattr(thing, "__module__", None) or "builtins"
    name = {"is": f"{module}.{getattr(thing, '__qualname__', repr(thing))}"}
    path = getattr(sys.modules.get(module), "__file__", None)
    text = getattr(sys.modules.get(module), SPEC_TEXT, None)  # of a spec, which may have come without its file
    if isinstance(text, bytes):
        return {**name, "file_sha256": hashlib.sha256(text).hexdigest()}
    if path is not None and (_PACKAGE in Path(path).parents or module.split(".")[0] in _LIBRARIES):
        return name
    if path is not None and Path(path).is_file():
        return {**name, "file_sha256": hashlib.sha256(Path(path).read_bytes()).hexdigest()}
    code = _compiled(thing)  # of a session, which has no file; what is compiled has neither
    return {**name, "file_sha256": hashlib.sha256(repr(code).encode()).hexdigest()} if code else name


def _held(function: Any, where: str, seen: frozenset[int]) -> dict[str, Any]:
    """What a function computes with besides its arguments; nothing where there is none of it."""
    owner, wrapped = getattr(function, "__self__", None), getattr(function, "__wrapped__", None)
    found: dict[str, Any] = {}
    if owner is not None and not isinstance(owner, types.ModuleType):
        found["of"] = describe(owner, where, seen)
    if wrapped is not None:
        found["wrapped"] = describe(wrapped, where, seen)
    plain = getattr(function, "__func__", function)
    names = getattr(getattr(plain, "__code__", None), "co_freevars", ())
    cells = dict(zip(names, getattr(plain, "__closure__", None) or (), strict=False))
    defaults, named = getattr(plain, "__defaults__", None) or (), getattr(plain, "__kwdefaults__", None) or {}
    inside = {name: cell.cell_contents for name, cell in cells.items() if cell != types.CellType()}
    for name, x in (*inside.items(), *((f"default {i}", x) for i, x in enumerate([*defaults, *named.values()]))):
        if type(x) is object:
            continue  # a mark, as defaults have: there is nothing to it
        try:
            found[name] = describe(x, f"{where}.{name}", seen)
        except InputError:
            if wrapped is None:  # else it may be the machinery of a library, such as that of jax.vmap
                raise
    return found


def _compiled(thing: Any) -> Any:
    """The code of a function, or of all methods of a class and its bases, without the places where it stood."""
    if isinstance(thing, type):
        members = {name: x for base in reversed(thing.__mro__[:-1]) for name, x in vars(base).items()}
        found = {name: _member(x) for name, x in members.items() if name not in ("__module__", "__doc__", "__dict__")}
        return sorted((name, x) for name, x in found.items() if x is not None)
    code = thing if inspect.iscode(thing) else getattr(getattr(thing, "__func__", thing), "__code__", None)
    if code is None:
        return None
    return [code.co_code.hex(), _constant(code.co_consts), code.co_names, code.co_varnames, code.co_freevars]


def _member(x: Any) -> Any:
    """Of a class: a method of any kind, or a plain value."""
    for name in ("__func__", "fget", "func", "__wrapped__"):
        x = getattr(x, name, x)
    return _compiled(x) if hasattr(x, "__code__") else _constant(x)


def _constant(x: Any) -> Any:
    """The same text in every process: a set has another order in each."""
    if inspect.iscode(x):
        return _compiled(x)
    if isinstance(x, (set, frozenset)):
        return sorted(repr(_constant(item)) for item in x)
    if isinstance(x, tuple):
        return [_constant(item) for item in x]
    return repr(x) if isinstance(x, (type(None), bool, int, float, complex, str, bytes, type(...))) else None


@functools.cache
def package_digest() -> str:
    """Of all source files of this package: two checkouts may bear the same version."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(
            f"{path.relative_to(_PACKAGE).as_posix()}\0".encode() + hashlib.sha256(path.read_bytes()).digest()
        )
    return digest.hexdigest()


def versions() -> dict[str, str]:
    """Whatever may change a bit of the results."""
    from jaxbandits import __version__

    return {
        "jaxbandits": __version__,
        "code": package_digest(),
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "numpy": np.__version__,
    }


def first_difference(now: Any, before: Any, where: str = "") -> tuple[str, Any, Any] | None:
    """Where two descriptions first differ, and what each says there: (where, now, before)."""
    if isinstance(now, dict) and isinstance(before, dict):
        for key in [*now, *(key for key in before if key not in now)]:
            at = f"{where}.{key}" if where else str(key)
            if key not in now or key not in before:
                return at, now.get(key, "nothing"), before.get(key, "nothing")
            if found := first_difference(now[key], before[key], at):
                return found
        return None
    return None if now == before else (where, now, before)


def arrived(now: Any, sent: Any, by_value: bool) -> Any:
    """The description made by a worker, for :func:`first_difference` with the one that was sent to it.

    Where code came along by value, no file need be here: such a thing is given the digest that was sent.

    Args:
        now: the worker's own.
        sent: the caller's.
        by_value: whether the script of the caller came by value too; the worker's main program is another one.
    """
    if isinstance(now, list) and isinstance(sent, list) and len(now) == len(sent):
        return [arrived(*pair, by_value) for pair in zip(now, sent, strict=True)]
    if not isinstance(now, dict) or not isinstance(sent, dict):
        return now
    found = {key: arrived(value, sent.get(key), by_value) for key, value in now.items()}
    if "file_sha256" in sent and ("file_sha256" not in now or (by_value and now["is"].startswith("__main__."))):
        found["file_sha256"] = sent["file_sha256"]
    return found
