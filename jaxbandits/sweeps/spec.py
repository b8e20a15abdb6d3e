"""What a sweep is: the declarative value, its file, and its identity as plain JSON."""

from __future__ import annotations

import dataclasses
import enum
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np

from jaxbandits._files import path_of, reason_of
from jaxbandits.core.checks import InputError, bad, brief, called, numbers, positive_number, shown, whole_number
from jaxbandits.core.fingerprint import Function, Same, digest, holds, is_users, key_of, package_digest
from jaxbandits.core.protocol import Constraint, Environment, Policy
from jaxbandits.core.settings import label


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sweep:
    """The product of policies × their settings × environments × budgets × instances × replicates.

    All of it meets the same world: the outcomes of an instance depend on the seed, the number of the instance in its
    environment and the replicate only. So differences between settings, policies and budgets are paired.

    Args:
        policies: one or more; arrays in their fields are the grids (``OmegaUCB(rho=[0.1, 0.2])``, or
            :func:`~jaxbandits.grid` for all combinations of several fields). A mapping gives them names of your own.
        environments: one environment, or several by name. Instances are numbered from 0 in each.
        constraint: what ends a run. With ``budgets`` a function ``(environment, budget) -> Constraint``.
        budgets: the values of the axis ``budget``, increasing; None for the one ``constraint``.
        replicates: independent runs of each setting on each instance.
        seed: 0 … 2³² − 1.
        marks: at how many points of the clock to record, or the shares (see :func:`~jaxbandits.simulate`). The default
            1 records the end only.
        over: what was sampled, and hence what a standard error counts. ``"replicate"``: the instances are given, the
            runs on them are random. ``"instance"``: the instances were drawn at random; each, averaged over its
            replicates, is one observation.
        engine, max_rounds: as in :func:`~jaxbandits.simulate`.
        block_seconds: about how many seconds of one core's work make a block, the unit in which work is saved.
        title: heads the report.

    Example:
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
        >>> spec = jb.Sweep(
        ...     policies=jb.policies.OmegaUCB(rho=[0.125, 0.25, 0.5]), environments=arms, budgets=[20, 40],
        ...     constraint=lambda arms, budget: jb.TotalBudget(budget, last_pull="counts"), replicates=8)
        >>> list(spec.named_policies())
        ['OmegaUCB']
    """

    policies: Policy | Sequence[Policy] | Mapping[str, Policy]
    environments: Environment | Mapping[str, Environment]
    constraint: Constraint | Callable[[Environment, float], Constraint]
    budgets: Sequence[float] | None = None
    replicates: int = 1
    seed: int = 0
    marks: int | Sequence[float] = 1
    over: str = "replicate"
    engine: str = "auto"
    max_rounds: int | None = None
    block_seconds: float = 5.0
    title: str = ""

    def check(self) -> None:
        """Raise :class:`~jaxbandits.InputError` on what no later check would find, or not by name."""
        whole_number("seed", self.seed, 0, 2**32 - 1, "2**32 - 1")
        whole_number("replicates", self.replicates, 1)
        positive_number("block_seconds", self.block_seconds)
        if self.over not in ("replicate", "instance"):
            raise bad("over", self.over, "'replicate' or 'instance'")
        for name in ([self.title] if self.title else []) + [*self.named_policies(), *self.named_environments()]:
            if not isinstance(name, str) or not name or not name.isprintable():
                raise bad("title, or a name", name, "one line of text")
        fixed = isinstance(self.constraint, Constraint)
        if self.budgets is None:
            if not fixed:
                raise bad("constraint", self.constraint, "a constraint, or budgets must be given too")
            return
        values = numbers("budgets", self.budgets, "increasing numbers above 0")
        if values.ndim != 1 or not values.size or not (np.diff(values, prepend=0) > 0).all():
            raise bad("budgets", self.budgets, "increasing numbers above 0")
        if fixed or not callable(self.constraint):
            raise bad("constraint", self.constraint, "a function (environment, budget) -> Constraint for the budgets")

    def named_policies(self) -> dict[str, Policy]:
        """Policies by name: the class, with its static fields if it has any."""
        given: Any = self.policies
        if not isinstance(given, Mapping):
            listed = list(given) if isinstance(given, Iterable) else [given]
            labels = [label(x) if isinstance(x, Policy) else "" for x in listed]
            if twice := {x for x in labels if x and labels.count(x) > 1}:
                must = "its values must be in one (an array, or jb.grid), or policies a mapping of names"
                raise InputError(f"policies: {min(twice)} given twice; {must}")
            given = dict(zip(labels, listed, strict=True)) or given
        return _all_of("policies", given, Policy, "a policy, such as OmegaUCB(rho=[0.125, 0.25])")

    def named_environments(self) -> dict[str, Environment]:
        """Environments by name; a single one has its class's name."""
        given: Any = self.environments
        if isinstance(given, Environment):
            given = {type(given).__name__: given}
        return _all_of("environments", given, Environment, "an environment, or a mapping of names to them")

    def constraint_of(self, environment: Environment, budget: float | None) -> Constraint:
        """What ends a run on this environment with this budget (None: the only one)."""
        made: Any = self.constraint
        return made if budget is None else called(self, "constraint", lambda: made(environment, budget))


def _all_of(argument: str, given: Any, kind: type, may_be: str) -> dict[str, Any]:
    """``given``, if it is a mapping of names to objects of that kind."""
    if not isinstance(given, Mapping) or not given:
        raise bad(argument, given, may_be)
    for name, value in given.items():
        if not isinstance(value, kind):
            raise bad(f"{argument}: {name}".rstrip(": "), value, may_be)
    return dict(given)


# --- a spec is a Python file ------------------------------------------------------------------------------------

_MODULE = "jaxbandits_spec_"
SPEC_TEXT = "__spec_text__"  # under this name a spec's module holds what was executed


def load_spec(path: str) -> Sweep:
    """The :class:`~jaxbandits.Sweep` in a file, which is executed: run none that you would not run yourself."""
    file = path_of("SPEC.py", path)
    if file.suffix != ".py":
        raise bad("SPEC.py", path, "a Python file (its name must end in .py)")
    try:
        content = file.read_bytes()
    except OSError as problem:
        raise bad("SPEC.py", path, f"a Python file ({reason_of(problem)})") from None
    return run_spec(path, content)


def run_spec(path: str, content: bytes) -> Sweep:
    """What a spec's text sets `sweep` to; see :func:`load_spec`."""
    file = Path(path).absolute()
    if str(file.parent) not in sys.path:  # modules beside the spec can be imported
        sys.path.insert(0, str(file.parent))
    module = types.ModuleType(f"{_MODULE}{file.stem}")
    module.__file__ = str(file)
    vars(module)[SPEC_TEXT] = content  # what it is, whatever becomes of the file
    sys.modules[module.__name__] = module  # dataclasses and the spec's identity look there
    try:
        exec(compile(content, str(file), "exec"), vars(module))
    except KeyboardInterrupt:
        raise
    except BaseException as problem:  # SystemExit too: a spec must not end us as if all were well
        del sys.modules[module.__name__]
        lines = [frame.lineno for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == str(file)]
        at = lines[-1] if lines else getattr(problem, "lineno", 0)  # of a SyntaxError
        kind = "" if isinstance(problem, InputError) else f"{type(problem).__name__}: "
        raise InputError(f"{path}: line {at}: {kind}{brief(problem, 400)}".rstrip(": ")) from problem
    found = vars(module).get("sweep")
    if not isinstance(found, Sweep):
        raise bad(f"{path}: sweep", found, "a jaxbandits.Sweep")
    return found


def source_of(spec: Sweep) -> tuple[str, bytes] | None:
    """Path and text of the file that a spec came from, or None if it was made otherwise."""
    for name, module in list(sys.modules.items()):
        if name.startswith(_MODULE) and vars(module).get("sweep") is spec:
            return str(module.__file__), vars(module)[SPEC_TEXT]
    return None


# --- identity: what a folder, or a worker, compares -------------------------------------------------------------

_LIBRARIES = ("builtins", "jaxbandits", "numpy", "jax", "jaxlib", "scipy")
_SHOWN = 16  # arrays of at most so many numbers are written out, longer ones as their digest


def describe(value: Any, where: str = "spec") -> Any:
    """A value as JSON that is equal if and only if the value is; an InputError for what cannot be told apart.

    Functions and objects of the user's own code bring a digest of what they are made of: see ``core.fingerprint``.
    """
    if value is None or (isinstance(value, (bool, int, float, str)) and not isinstance(value, enum.Enum)):
        return value
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return {"key": describe(np.asarray(jax.random.key_data(value)))}
    if isinstance(value, (np.ndarray, jax.Array, np.generic)):
        x = np.asarray(value)
        if x.size <= _SHOWN and x.dtype.kind in "biuf" and not (x != x).any():  # NaN is not equal to itself
            return {"dtype": x.dtype.str, "values": x.tolist()}
        return {"dtype": x.dtype.str, "shape": list(x.shape), "sha256": digest(np.ascontiguousarray(x).tobytes())}
    if isinstance(value, Mapping):
        return {str(key): describe(item, f"{where}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return describe(type(value), where) | describe(fields, where)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return describe(value._asdict(), where)
    if isinstance(value, (list, tuple)):
        return [describe(item, f"{where}[{i}]") for i, item in enumerate(value)]
    thing = value if hasattr(value, "__qualname__") else type(value)
    found = {"is": f"{thing.__module__}.{thing.__qualname__}"}
    if is_users(value):
        return found | {"code": digest(repr(_portable(key_of(value), where)).encode())}
    if thing is not value:
        if " at 0x" in (text := repr(value)):  # an address, another one in every process
            must = "a number, an array, a dataclass or a function"
            raise InputError(f"{where}: {shown(value)} cannot be told from another such object; it must be {must}")
        return found | {"repr": text}
    path = getattr(sys.modules.get(thing.__module__), "__file__", None)
    if path is None or thing.__module__.split(".")[0] in _LIBRARIES:
        return found
    return found | {"file_sha256": digest(Path(path).read_bytes())}  # of another package


def _portable(key: Any, where: str, strict: bool = True) -> Any:
    """A key of :func:`key_of` with the same text in every process; an InputError, if ``strict``, for what has none."""
    if isinstance(key, Same):
        thing = key.value if hasattr(key.value, "__qualname__") else type(key.value)
        name = f"{thing.__module__}.{thing.__qualname__}"
        if thing is key.value or thing is object or holds(key.value):  # a mark, as defaults have, has nothing to it
            return name
        try:
            return name, describe(key.value, where)
        except InputError:
            if strict:
                raise
            return name
    if isinstance(key, Function):
        held = [_portable(x, where, strict) for x in key.held]
        return [_portable(key.code, where), held, [_portable(x, where, strict=False) for x in key.named]]
    if isinstance(key, types.CodeType):
        return [key.co_code.hex(), _portable(key.co_consts, where), key.co_names, key.co_varnames, key.co_freevars]
    if isinstance(key, frozenset):
        return sorted(repr(_portable(x, where, strict)) for x in key)
    if isinstance(key, tuple):
        return [_portable(x, where, strict) for x in key]
    return _portable(Same(key), where) if isinstance(key, type) else repr(key)


def versions() -> dict[str, str]:
    """Whatever may change a bit of the results."""
    from jaxbandits import __version__

    libraries = {"jax": jax.__version__, "jaxlib": jaxlib.__version__, "numpy": np.__version__}
    return {"jaxbandits": __version__, "code": package_digest(), **libraries}


def first_difference(now: Any, before: Any, where: str = "") -> tuple[str, Any, Any] | None:
    """Where two descriptions first differ, and what each says there: (where, now, before)."""
    if not (isinstance(now, dict) and isinstance(before, dict)):
        return None if now == before else (where, now, before)
    for key in {**now, **before}:
        at = f"{where}.{key}" if where else str(key)
        if found := first_difference(now.get(key, "nothing"), before.get(key, "nothing"), at):
            return found
    return None
