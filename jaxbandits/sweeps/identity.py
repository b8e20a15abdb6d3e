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
import jaxlib
import numpy as np

from jaxbandits.core.errors import InputError, shown

_PACKAGE = Path(__file__).parents[1]
SPEC_TEXT = "__spec_text__"  # under this name a spec's module holds what was executed
_SHOWN = 16  # arrays of at most so many numbers are written out, longer ones as their digest


def describe(value: Any, where: str = "spec") -> Any:
    """A value as JSON that is equal if and only if the value is: numbers, arrays, dataclasses, functions.

    Functions and classes from outside this package bring the digest of the file that they stand in, or of their code
    where there is none; functions also what they were made with: the object of a method, closures, defaults.

    Raises:
        InputError: an object that has no description of its own.
    """
    if value is None or (isinstance(value, (bool, int, float, str)) and not isinstance(value, enum.Enum)):
        return value
    if isinstance(value, (np.ndarray, jax.Array, np.generic)):
        return _array(np.asarray(value))
    if isinstance(value, Mapping):
        return {str(key): describe(item, f"{where}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {**_code(type(value)), **{name: describe(item, f"{where}.{name}") for name, item in fields.items()}}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: describe(getattr(value, name), f"{where}.{name}") for name in value._fields}
    if isinstance(value, (list, tuple)):
        return [describe(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, functools.partial):
        return {"partial": describe(value.func, where), "args": describe([list(value.args), value.keywords], where)}
    if isinstance(value, types.ModuleType):
        return {"module": value.__name__}
    if inspect.isroutine(value):
        return {**_code(value), **_held(value, where)}
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
    if path is not None and (_PACKAGE in Path(path).parents or module.split(".")[0] in ("numpy", "jax", "scipy")):
        return name
    if path is not None and Path(path).is_file():
        return {**name, "file_sha256": hashlib.sha256(Path(path).read_bytes()).hexdigest()}
    code = _compiled(thing)  # of a session, which has no file; what is compiled has neither
    return {**name, "file_sha256": hashlib.sha256(repr(code).encode()).hexdigest()} if code else name


def _held(function: Any, where: str) -> dict[str, Any]:
    """What a function computes with besides its arguments; nothing where there is none of it."""
    owner = getattr(function, "__self__", None)
    found = {"of": describe(owner, where)} if owner is not None and not isinstance(owner, types.ModuleType) else {}
    plain = getattr(function, "__func__", function)
    names = getattr(getattr(plain, "__code__", None), "co_freevars", ())
    cells = dict(zip(names, getattr(plain, "__closure__", None) or (), strict=False))
    inside = {name: cell.cell_contents for name, cell in cells.items() if cell != types.CellType()}
    defaults, named = getattr(plain, "__defaults__", None) or (), getattr(plain, "__kwdefaults__", None) or {}
    held = {
        "closure": {name: x for name, x in inside.items() if getattr(x, "__func__", x) is not plain},  # may call itself
        "defaults": [*defaults, *named.values()],
    }
    return found | {name: describe(x, f"{where}.{name}") for name, x in held.items() if x}


def _compiled(thing: Any) -> Any:
    """The code of a function, or of all methods of a class, without the places where it stood."""
    if isinstance(thing, type):
        methods = {name: _compiled(x) for name, x in vars(thing).items() if hasattr(x, "__code__")}
        plain = {name: repr(x) for name, x in vars(thing).items() if isinstance(x, (int, float, str, bool, tuple))}
        return [sorted(methods.items()), sorted(x for x in plain.items() if not x[0].startswith("__"))]
    code = getattr(getattr(thing, "__func__", thing), "__code__", thing if inspect.iscode(thing) else None)
    if code is None:
        return None
    consts = [_compiled(x) if inspect.iscode(x) else repr(x) for x in code.co_consts]
    return [code.co_code.hex(), consts, code.co_names, code.co_varnames, code.co_freevars]


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
