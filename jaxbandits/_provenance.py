"""Where a result comes from: versions, machine, sources, the call that made its environment."""

from __future__ import annotations

import functools
import inspect
import itertools
import platform
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

import jax
import jaxlib
import numpy as np

from jaxbandits._tables import count_of
from jaxbandits.core.checks import cpu_line
from jaxbandits.core.fingerprint import digest, package_digest
from jaxbandits.core.protocol import Policy

_Arguments = ParamSpec("_Arguments")
_Made = TypeVar("_Made")
_LIBRARIES = ("jaxbandits", "jax", "jaxlib", "numpy")

# --- what can be known of code and machine


def versions() -> dict[str, str]:
    """Versions of everything that may change a bit of the results."""
    from jaxbandits import __version__

    libraries = {"jax": jax.__version__, "jaxlib": jaxlib.__version__, "numpy": np.__version__}
    return {"jaxbandits": __version__, "code": package_digest(), **libraries}


@functools.cache
def processor_name() -> str:
    """The name of the processor, as the system reports it."""
    name = cpu_line("model name").partition(":")[2].strip()
    return name or platform.processor() or platform.machine()


def classes_of(policy: Policy) -> list[str]:
    """This package's classes in a policy; a user's class counts as its nearest parent."""
    policies = [part for part in _parts(policy) if isinstance(part, Policy)]
    return list(dict.fromkeys(name for part in policies for name in nearest_class(type(part))))


def nearest_class(kind: type) -> list[str]:
    """The nearest policy of this package among a class's ancestors, or none."""
    return [x.__name__ for x in kind.__mro__ if x.__module__.startswith("jaxbandits.policies.")][:1]


def sources_of(owners: Sequence[Any], program: str | None) -> dict[str, str]:
    """SHA-256 of the source of the user's classes and functions, by name; of ``program`` without one."""
    digests: dict[str, str] = {}
    for part in itertools.chain.from_iterable(map(_parts, owners)):
        kind = part if isinstance(part, type) else type(part)
        for code in (part,) if isinstance(part, FunctionType) else kind.__mro__:
            root = code.__module__.split(".")[0]
            if root not in _LIBRARIES and root not in sys.stdlib_module_names:
                text = _source(code)
                source = digest(text.encode()) if text else f"jaxpr {program}"
                digests[f"{code.__module__}.{code.__qualname__}"] = source
    return dict(sorted(digests.items()))


def _parts(owner: Any) -> Iterator[Any]:
    """The objects with code in an object: itself, and those that its fields and closures hold."""
    inner: Any = ()
    if isinstance(owner, functools.partial):
        inner = owner.func, *owner.args, *owner.keywords.values()
    elif isinstance(owner, (tuple, list)):
        inner = owner
    elif isinstance(owner, FunctionType):
        yield owner
        inner = [cell.cell_contents for cell in owner.__closure__ or ()]
    elif isinstance(owner, type):
        yield owner
    elif hasattr(owner, "__dict__") and not hasattr(owner, "dtype"):
        yield owner
        inner = vars(owner).values()
    for part in inner:
        yield from _parts(part)


def _source(code: Any) -> str:
    """Source of a class or function; of a notebook's class, which has no file, its methods'."""
    try:
        text = textwrap.dedent(inspect.getsource(code))
        # by its line number Python may take a class for what stands there in another file
        if re.search(rf"(class|def) {re.escape(code.__name__)}\b|lambda", text):
            return text
    except (OSError, TypeError):
        pass
    methods = vars(code).values() if isinstance(code, type) else ()
    return "".join(
        _source(x)
        for x in methods
        if isinstance(x, FunctionType) and x.__code__.co_filename != "<string>"
    )


# --- how a world was made


def remembered(function: Callable[_Arguments, _Made]) -> Callable[_Arguments, _Made]:
    """Decorator of functions that make an environment: stores the call, see :func:`maker_of`."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def make(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Made:
        world = function(*args, **kwargs)
        words = [
            _argument_text(x) if name == "key" else f"{name}={_argument_text(x)}"
            for name, x in signature.bind(*args, **kwargs).arguments.items()
            if name != "cls"
        ]
        # no field: what is derived from it with other numbers was not made by this call
        object.__setattr__(world, "_made_by", f"{function.__qualname__}({', '.join(words)})")
        return world

    return make


def maker_of(environment: Any) -> str:
    """The call by which this package made an environment, or nothing."""
    return getattr(environment, "_made_by", "")


def _argument_text(value: Any) -> str:
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        first, second = np.asarray(jax.random.key_data(value)).tolist()
        return f"wrap_key_data([{first}, {second}])" if first else f"key({second})"
    if hasattr(value, "dtype") and np.size(value) > 8:
        return f"{value.dtype}{list(np.shape(value))}"
    text = repr(np.asarray(value).tolist() if hasattr(value, "dtype") else value)
    return getattr(value, "__qualname__", type(value).__name__) if " at 0x" in text else text


# --- for an appendix


class Provenance(dict[str, Any]):
    """Returned by :meth:`Result.provenance`: a dict of plain JSON that also prints as text."""

    def text(self) -> str:
        """The record as a paragraph for an appendix."""
        return " ".join(f"{title}: {words}." for title, words in self.rows().items())

    def rows(self) -> dict[str, str]:
        """Title and text of every row that is not empty."""
        code = f", source {self['code'][:16]}" if self["code"] else ""
        libraries = {"Python": "python", "jax": "jax", "jaxlib": "jaxlib", "NumPy": "numpy"}
        names = [f"{name} {self[field]}" for name, field in libraries.items() if self[field]]
        machine = [self["processor"], *([f"device {self['device']}"] if self["device"] else [])]
        seconds = f"{self['seconds']:.3g} s with compilation" if self["seconds"] else ""
        engines = self["engines"] or [""] * len(self["policies"])
        pairs = zip(self["policies"], engines, strict=True)
        settings = [f"{policy} ({engine})" if engine else policy for policy, engine in pairs]
        constraint = dict(self["constraint"])
        limit = f"{constraint.pop('class', '')}({', '.join(f'{name}={x}' for name, x in constraint.items())})"
        world = self["made_by"] or self["environment"]
        axes = ("setting", "instance", "replicate")
        runs = " × ".join(count_of(self["sizes"][axis], axis) for axis in axes)
        ids = _ids(self["instance_ids"])
        sources = dict(sorted(item for setting in self["sources"] for item in setting.items()))
        rows = {
            "Software": f"jaxbandits {self['jaxbandits']}{code}; {', '.join(names)}",
            "Machine": ", ".join(filter(None, [*machine, self["when"], seconds])),
            "Settings": "; ".join(settings),
            "World": f"{world}; digest of its numbers {self['instances_digest'][:16]}",
            "Constraint": limit,
            "Runs": f"{runs}; root key {list(self['key'])}; instance ids {ids}",
            "Own code": "; ".join(f"{name}, {_shortened(x)}" for name, x in sources.items()),
            "Accounts": f"digest {self['digest']}",
        }
        return {title: words for title, words in rows.items() if words}


def _shortened(text: str) -> str:
    kind, _, digits = text.rpartition(" ")
    return f"{kind or 'SHA-256'} {digits[:16]}"


def _ids(ids: Sequence[int]) -> str:
    """``0 to 99``, where they follow each other."""
    if len(ids) > 2 and list(ids) == list(range(ids[0], ids[0] + len(ids))):
        return f"{ids[0]} to {ids[-1]}"
    return ", ".join(map(str, ids))
