"""Digests of traced code, which identify programs and sweeps.

jit keeps a program by its function, by shapes and by the structure of its arguments. A method of
the user's reads more: globals, closures, attributes, files. It reads all of that while it is
traced, and none of it is part of that key. So whatever plays code of the user's is traced anew at
the beginning of a call, one lane of it, and the digest of its equations, constants included, is a
key more (:data:`PROGRAM`). Nobody has to know what the code reads. A sweep writes the same digest
out, to tell whether it is the one that began: it is equal in every process.

Objects whose code is all this package's need none of it (:func:`is_users`). What even a new trace
does not see: a function that the user jitted with ``inline=True``, or handed to one of jax.numpy's
that jits it (``piecewise``), and that reads a global: jax keeps it and leaves no mark of it.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import itertools
import os
import reprlib
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import jax
import numpy as np

_PACKAGE = Path(__file__).parents[1]
_PLAIN = (bool, int, float, complex, str, bytes, np.generic, type(None))

PROGRAM = jax.make_user_context()
"""Inside ``with PROGRAM(digest):`` jax keys programs and jitted functions by digest too."""


def hashable(value: Any) -> bool:
    """Whether it, with all that it contains, can be part of a key."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def exactly(value: Any) -> Hashable:
    """A key equal only for the same value and type: 1, 1.0 and True differ, also 0.0 and -0.0."""
    if isinstance(value, tuple):
        return type(value), *map(exactly, value)
    if isinstance(value, (float, np.generic)):
        return type(value), value.hex() if isinstance(value, float) else value.tobytes()
    return type(value), value


# --- whose code it is


# What Python itself adds to a class later (pickle does)
_PYTHONS = ("__annot", "__slotnames__", "_abc_")
# A dataclass gets methods made as text and, since Python 3.13, one of that module itself
# (``__replace__``) and one of ``reprlib`` (``__repr__``).
_WRITTEN_HERE = "<string>", dataclasses.__file__, reprlib.__file__, f"{_PACKAGE}{os.sep}"
# By class of this package: what it held when it was first met.
_first_contents: dict[type, tuple[tuple[int, ...], list[Any]]] = {}


def is_users(owner: Any) -> bool:
    """Whether an object or its fields contain code that is not this package's, or was patched."""
    # Objects may hold each other in a circle; those visited are kept, so that ids stay theirs.
    waiting, visited = [owner], dict[int, Any]()
    while waiting:
        item = waiting.pop()
        if isinstance(item, _PLAIN) or hasattr(item, "dtype") or id(item) in visited:
            continue
        visited[id(item)] = item
        if isinstance(item, (tuple, list)):
            if type(item).__module__.split(".")[0] not in ("builtins", "jaxbandits"):
                return True
            waiting += item
        elif isinstance(item, functools.partial):
            waiting += (item.func, *item.args, *item.keywords.values())
        elif isinstance(item, FunctionType):  # a closure of ours may hold a function of the user's
            if not _is_ours(item):
                return True
            waiting += (cell.cell_contents for cell in item.__closure__ or ())
        else:
            kind = item if isinstance(item, type) else type(item)
            if not all(map(_is_as_written, kind.__mro__)):
                return True
            if kind is not item:  # what a class holds was asked for above
                waiting += getattr(item, "__dict__", {}).values()
    return False


def _is_as_written(cls: type) -> bool:
    """Is a class this package's (or what every class derives from), and nothing in it patched?"""
    if cls.__module__ in ("builtins", "abc", "typing", "enum"):
        return True
    if not cls.__module__.startswith("jaxbandits."):
        return False
    held = [value for name, value in vars(cls).items() if not name.startswith(_PYTHONS)]
    ids, first = tuple(map(id, held)), _first_contents.get(cls)
    if first is not None:
        return ids == first[0]
    if not all(map(_is_ours, held)):
        return False  # and not remembered: it may be put back
    _first_contents[cls] = ids, held
    return True


def _is_ours(value: Any) -> bool:
    """True unless a function from elsewhere; what a dataclass generates counts as ours."""
    function = getattr(value, "fget", None) or getattr(value, "func", None)
    function = function or getattr(value, "__func__", value)
    code = getattr(function, "__code__", None)
    return code is None or code.co_filename.startswith(_WRITTEN_HERE)


# --- what was traced


_JAX = str(Path(jax.__file__).parent)
_traces = itertools.count(1)
_MOST_TRACES = 256  # each leaves traces of jax's own functions, half a megabyte, which only `clear_caches` takes away


def traced(function: Callable[..., Any], *shapes: Any) -> str:
    """The digest of what ``function`` does with arguments of these shapes: equal in every process."""

    def trace() -> tuple[Any, Any]:
        return jax.make_jaxpr(lambda *x: function(*x), return_shape=True)(*shapes)  # type: ignore[return-value]

    closed, result = trace()
    parts: dict[int, tuple[Any, bytes]] = {}
    digest = _of_jaxpr(closed, parts)
    if any(_is_foreign(part) for part, _ in parts.values()):
        # jax keeps the traces of jitted functions and of bodies of loops, whatever they read: here
        # it has none yet.
        if (number := next(_traces)) % _MOST_TRACES == 0:
            jax.clear_caches()
        with PROGRAM(number):
            closed, result = trace()
        digest = _of_jaxpr(closed, {})
    hasher = hashlib.blake2b(digest, digest_size=20)
    for path, leaf in jax.tree_util.tree_leaves_with_path(result):
        hasher.update(f"{jax.tree_util.keystr(path)}{leaf.dtype}{leaf.shape}".encode())
    return hasher.hexdigest()


def _is_foreign(part: Any) -> bool:
    """Was a jaxpr made from a function that is neither jax's nor this package's?"""
    file = getattr(part, "jaxpr", part).debug_info.func_filename
    return file is not None and not file.startswith((_JAX, str(_PACKAGE)))


def bring_up_to_date(*owners: Any) -> None:
    """Copy edits of 64-bit NumPy arrays that the code reads into jax's copies of them."""
    # jax keeps the copy of 32 bits for as long as any trace holds it, by the array's identity, and
    # each new trace would read the old numbers in it.
    for array in _arrays_read_by(owners):
        for kept in jax.make_jaxpr(lambda x=array: jax.numpy.asarray(x))().consts:
            if isinstance(kept, np.ndarray) and kept.shape == array.shape:
                with np.errstate(all="ignore"):
                    now = array.astype(kept.dtype)
                if now.tobytes() != kept.tobytes():
                    np.copyto(kept.view(np.ndarray), now)


_OTHERS = ("jax", "jaxlib", "numpy", "builtins", "typing", "abc", "dataclasses", "functools")


def _is_elsewhere(owner: Any) -> bool:
    """Is a class or a module one whose arrays nobody edits?"""
    # Code that was run from text may have no module.
    module = getattr(owner, "__module__", owner.__name__) or ""
    return module.partition(".")[0] in _OTHERS


def _arrays_read_by(owners: Iterable[Any]) -> Iterator[np.ndarray]:
    """The arrays that jax converts, of all that code of the user's reaches by name."""
    waiting, visited = list(owners), dict[int, Any]()
    while waiting:
        item = waiting.pop()
        if id(item) in visited or isinstance(item, (*_PLAIN, jax.Array)):
            continue
        visited[id(item)] = item
        item = getattr(item, "fget", None) or getattr(item, "__func__", item)
        if isinstance(item, np.ndarray):
            kind = item.dtype
            if kind.kind in "iufc" and jax.dtypes.canonicalize_dtype(kind) != kind:
                yield item
        elif isinstance(item, Mapping):
            waiting += item.values()
        elif isinstance(item, (tuple, list, set, frozenset)):
            waiting += item
        elif isinstance(item, functools.partial):
            waiting += (item.func, item.args, item.keywords)
        elif isinstance(function := inspect.unwrap(item) if callable(item) else item, FunctionType):
            if not _is_elsewhere(function) and not _is_ours(function):
                waiting += (cell.cell_contents for cell in function.__closure__ or ())
                waiting += (function.__defaults__, function.__kwdefaults__)
                waiting += _globals_read(function)
        elif isinstance(item, type):
            written = (x for x in item.__mro__ if not _is_elsewhere(x) and not _is_as_written(x))
            waiting += (vars(kind) for kind in written)
        elif not isinstance(item, ModuleType) and not _is_elsewhere(type(item)):
            waiting += (type(item), getattr(item, "__dict__", {}))


def _globals_read(function: FunctionType) -> Iterator[Any]:
    """What a function, or one inside it, may read of its module and of those that it names."""
    codes = [function.__code__]
    for code in codes:
        codes += (x for x in code.co_consts if isinstance(x, CodeType))
        known = [function.__globals__[x] for x in code.co_names if x in function.__globals__]
        yield from known
        for module in (x for x in known if isinstance(x, ModuleType) and not _is_elsewhere(x)):
            yield from (vars(module)[x] for x in code.co_names if x in vars(module))


_aval = functools.lru_cache(4096)(str)  # type and shape of a variable


def _of_jaxpr(closed: Any, done: dict[int, tuple[Any, bytes]]) -> bytes:
    """A digest with variables numbered in order; ``done`` holds earlier ones by jaxpr id."""
    if id(closed) in done:
        return done[id(closed)][1]
    jaxpr = getattr(closed, "jaxpr", closed)
    numbers = itertools.count()
    hasher = hashlib.blake2b(digest_size=20)
    names: dict[Any, str] = {}

    def variables(binders: Iterable[Any]) -> str:
        for x in binders:
            names[x] = f"{next(numbers)}:{_aval(x.aval)}"
        return ",".join(names[x] for x in binders)

    def atom(x: Any) -> str:
        return f"{_aval(x.aval)}={_text(x.val, done)}" if hasattr(x, "val") else names[x]

    hasher.update(variables([*jaxpr.constvars, *jaxpr.invars]).encode())
    hasher.update("".join(_text(x, done) for x in getattr(closed, "consts", ())).encode())
    for equation in jaxpr.eqns:
        line = [equation.primitive.name, *map(atom, equation.invars), variables(equation.outvars)]
        line += (f"{name}={_text(value, done)}" for name, value in sorted(equation.params.items()))
        hasher.update("\n".join(line).encode())
    hasher.update(",".join(map(atom, jaxpr.outvars)).encode())
    done[id(closed)] = closed, hasher.digest()
    return done[id(closed)][1]


def _text(value: Any, done: dict[int, tuple[Any, bytes]]) -> str:
    """A constant, or a parameter of an equation, as text that is the same in every process."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and not value.ndim):
        return f"{value.dtype}{value.tobytes().hex()}"
    if isinstance(value, _PLAIN):
        return repr(value)
    if hasattr(value, "eqns") or hasattr(value, "jaxpr"):
        return _of_jaxpr(value, done).hex()
    if isinstance(value, jax.core.Tracer):
        return str(value.aval)
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        return f"{value.dtype}{_text(jax.random.key_data(value), done)}"
    if isinstance(value, (np.ndarray, np.generic, jax.Array)):
        return digest_of_arrays([("", value)])
    if isinstance(value, Mapping):
        return f"{{{','.join(sorted(f'{_text(k, done)}:{_text(x, done)}' for k, x in value.items()))}}}"
    if isinstance(value, (set, frozenset)):
        return f"{{{','.join(sorted(_text(x, done) for x in value))}}}"
    if isinstance(value, (tuple, list)):
        return f"({','.join(_text(x, done) for x in value)})"
    if isinstance(value, CodeType):
        return _text((value.co_code, value.co_names, value.co_consts), done)
    if isinstance(value, functools.partial):
        return _text((value.func, value.args, value.keywords), done)
    # Called by the program
    if isinstance(value, FunctionType) and not value.__code__.co_filename.startswith(_JAX):
        closure = [cell.cell_contents for cell in value.__closure__ or ()]
        return _text((value.__code__, closure), done)
    if (called := getattr(value, "callback_func", None)) is not None:
        return _text(called, done)
    kind = value if hasattr(value, "__qualname__") else type(value)
    text = repr(value)
    return f"{kind.__module__}.{kind.__qualname__}" if " at 0x" in text or callable(value) else text


# --- jit for what else calls methods of policies and environments


_looks: dict[int, dict[Any, Any]] = {}  # what was learnt of an object, by its id


def _look(owner: Any) -> dict[Any, Any]:
    if id(owner) not in _looks:
        weakref.finalize(owner, _looks.pop, id(owner), None)
        _looks[id(owner)] = {"is_users": is_users(owner)}
    return _looks[id(owner)]


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """``jax.jit`` that keys programs by the trace of the user's code; keywords are static."""
    # That is looked at once for each such object: who wants to know of later changes gives a copy.

    @functools.partial(jax.jit, static_argnums=0)
    def compiled(static: tuple[tuple[str, Any], ...], *args: Any) -> Any:
        return function(*args, **dict(static))

    @functools.wraps(function)
    def play(*args: Any, **static: Any) -> Any:
        fixed = tuple(static.items())
        nouns = [x for x in args if hasattr(x, "__dataclass_fields__")]
        look: Any = next((x for x in map(_look, nouns) if x["is_users"]), None)
        if look is None or PROGRAM.value is not None:
            return compiled(fixed, *args)
        leaves, structure = jax.tree.flatten(args)
        shapes = tuple(jax.ShapeDtypeStruct(np.shape(x), jax.dtypes.result_type(x)) for x in leaves)
        signature = function, fixed, structure, shapes
        if signature not in look:
            played = functools.partial(function, **static)
            look[signature] = traced(played, *jax.tree.unflatten(structure, shapes))
        with PROGRAM(look[signature]):
            return compiled(fixed, *args)

    return play


# --- digests


def digest(content: bytes) -> str:
    """The digest of bytes, as text."""
    return hashlib.sha256(content).hexdigest()


def digest_of_arrays(arrays: Iterable[tuple[str, Any]]) -> str:
    """The digest of named arrays: names, types, shapes and all numbers."""
    hasher = hashlib.blake2b(digest_size=16)
    for name, array in arrays:
        x = np.ascontiguousarray(array)
        hasher.update(f"{name}{x.dtype.str}{np.shape(array)}".encode() + x.tobytes())
    return hasher.hexdigest()


def digest_now() -> str:
    """The digest of all source files of this package, as they are now."""
    paths = {path.relative_to(_PACKAGE).as_posix(): path for path in _PACKAGE.rglob("*.py")}
    files = [(name, digest(path.read_bytes())) for name, path in sorted(paths.items())]
    return digest(repr(files).encode())


package_digest = functools.cache(digest_now)
"""The same, computed once: two checkouts may have the same version number."""
