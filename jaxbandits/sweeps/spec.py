"""The spec of a sweep: its declaration, file, identity as plain JSON, and blocks."""

from __future__ import annotations

import dataclasses
import enum
import itertools
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._engine import driver, scan
from jaxbandits._engine.pool import usual_slots, usual_workers
from jaxbandits._engine.setup import Layout, lay_out, mark_shares
from jaxbandits._files import path_of, reason_of
from jaxbandits._numerics.arrays import one_of
from jaxbandits._provenance import versions
from jaxbandits.core import checks, ticks
from jaxbandits.core.checks import (
    InputError,
    bad,
    brief,
    called,
    door,
    numbers,
    positive_number,
    quoted,
    whole_number,
)
from jaxbandits.core.fingerprint import digest, digest_of_arrays, is_users
from jaxbandits.core.protocol import Constraint, Environment, Policy
from jaxbandits.core.settings import Settings, label


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sweep:
    """The product of policies × their settings × environments × budgets × instances × replicates.

    All of them face the same world: the outcomes of an instance depend only on the seed, the index
    of the instance in its environment, and the replicate. So differences between settings, policies
    and budgets are paired.

    Args:
        policies: one or more; arrays in their fields are the grids (``OmegaUCB(rho=[0.1, 0.2])``,
            or :func:`~jaxbandits.grid` for all combinations of several fields). A mapping gives
            them names of your own.
        environments: one environment, or several by name. Instances are numbered from 0 in each.
        constraint: what ends a run. With ``budgets`` a function ``(environment, budget) ->
            Constraint``.
        budgets: the values of the axis ``budget``, increasing; None for the one ``constraint``.
        replicates: independent runs of each setting on each instance.
        seed: 0 … 2³² − 1.
        marks: at how many points of the clock to record, or the shares (see
            :func:`~jaxbandits.simulate`). The default 1 records the end only.
        over: what was sampled, ``"replicate"`` or ``"instance"``, see :mod:`jaxbandits.statistics`.
        engine, max_rounds: as in :func:`~jaxbandits.simulate`.
        block_seconds: about how many seconds of one core's work make a block, the unit in which
            work is saved.
        title: what the dataset's ``about`` calls it.

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

    def named_policies(self) -> dict[str, Policy]:
        """Policies by name: the class, with its static fields if it has any."""
        policies: Any = self.policies
        if not isinstance(policies, Mapping):
            listed = list(policies) if isinstance(policies, Iterable) else [policies]
            labels = [label(x) if isinstance(x, Policy) else "" for x in listed]
            if twice := {x for x in labels if x and labels.count(x) > 1}:
                must = (
                    "put its values into one (an array, or jb.grid), or name policies in a mapping"
                )
                raise InputError(f"policies: {min(twice)} given twice; {must}")
            policies = dict(zip(labels, listed, strict=True)) or policies
        may_be = "a policy, such as OmegaUCB(rho=[0.125, 0.25])"
        return _all_of("policies", policies, Policy, may_be)


Sweep.__init__ = door(Sweep.__init__, "Sweep")  # type: ignore[method-assign]


def _all_of(argument: str, mapping: Any, kind: type, may_be: str) -> dict[str, Any]:
    """``mapping``, if it is one of names to objects of that kind."""
    if not isinstance(mapping, Mapping) or not mapping:
        raise bad(argument, mapping, may_be)
    for name, value in mapping.items():
        if not isinstance(value, kind):
            raise bad(f"{argument}: {name}".rstrip(": "), value, may_be)
        _check_line(f"{argument}: name", name)
    return dict(mapping)


def _check_line(argument: str, text: Any) -> None:
    if not isinstance(text, str) or not text or not text.isprintable():
        raise bad(argument, text, "one line of text")


# --- a spec is a Python file ------------------------------------------------------------------------------------

_MODULE = "jaxbandits_spec_"
SPEC_TEXT = "__spec_text__"  # under this name a spec's module holds what was executed


def load_spec(path: str) -> Sweep:
    """Load the :class:`~jaxbandits.Sweep` in a file, which is executed: load only trusted files."""
    file = path_of("SPEC.py", path)
    if file.suffix != ".py":
        raise bad("SPEC.py", path, "a Python file (its name must end in .py)")
    try:
        content = file.read_bytes()
    except OSError as problem:
        raise bad("SPEC.py", path, f"a Python file ({reason_of(problem)})") from None
    return run_spec(path, content)


def run_spec(path: str, content: bytes) -> Sweep:
    """The value of `sweep` after executing a spec's text; see :func:`load_spec`."""
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
        frames = traceback.extract_tb(problem.__traceback__)
        at = getattr(problem, "lineno", 0)  # of a SyntaxError
        at = next((x.lineno for x in reversed(frames) if x.filename == str(file)), at)
        kind = "" if isinstance(problem, InputError) else f"{type(problem).__name__}: "
        text = f"{path}: line {at}: {kind}{brief(problem, 400)}"
        raise InputError(text.rstrip(": ")) from problem
    sweep = vars(module).get("sweep")
    if not isinstance(sweep, Sweep):
        raise bad(f"{path}: sweep", sweep, "a jaxbandits.Sweep")
    return sweep


def source_of(spec: Sweep) -> tuple[str, bytes] | None:
    """Path and text of the file of a spec, or None if it was not made from one."""
    for name, module in list(sys.modules.items()):
        if name.startswith(_MODULE) and vars(module).get("sweep") is spec:
            return str(module.__file__), vars(module)[SPEC_TEXT]
    return None


# --- identity: what a folder, or a worker, compares -------------------------------------------------------------

_LIBRARIES = ("builtins", "jaxbandits", "numpy", "jax", "jaxlib", "scipy")
_SHOWN = 16  # arrays of at most so many numbers are written out, longer ones as their digest


def describe(value: Any, place: str = "spec") -> Any:
    """A value as JSON, equal if and only if the values are; InputError if that is impossible."""
    # Of the user's functions and classes the name: what they do is in the digests of what was
    # traced.
    plain = isinstance(value, (bool, int, float, str, type(None)))
    if plain and not isinstance(value, enum.Enum):
        return value
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return {"key": describe(np.asarray(jax.random.key_data(value)))}
    if isinstance(value, (np.ndarray, jax.Array, np.generic)):
        x = np.asarray(value)
        # NaN is not equal to itself
        if x.size <= _SHOWN and x.dtype.kind in "biuf" and not (x != x).any():
            return {"dtype": x.dtype.str, "values": x.tolist()}
        content = digest(np.ascontiguousarray(x).tobytes())
        return {"dtype": x.dtype.str, "shape": list(x.shape), "sha256": content}
    if isinstance(value, Mapping):
        return {str(key): describe(item, f"{place}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return describe(type(value), place) | describe(fields, place)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return describe(value._asdict(), place)
    if isinstance(value, (list, tuple)):
        return [describe(item, f"{place}[{i}]") for i, item in enumerate(value)]
    kind = value if hasattr(value, "__qualname__") else type(value)
    identity = {"is": f"{kind.__module__}.{kind.__qualname__}"}
    if callable(value) and is_users(value):
        return identity
    if kind is not value:
        if " at 0x" in (text := repr(value)):  # an address, another one in every process
            must = "it must be a number, an array, a dataclass or a function"
            unknown = f"{quoted(value)} cannot be distinguished from another such object"
            raise InputError(f"{place}: {unknown}; {must}")
        return identity | {"repr": text}
    path = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if path is None or kind.__module__.split(".")[0] in _LIBRARIES:
        return identity
    return identity | {"file_sha256": digest(Path(path).read_bytes())}  # of another package


def first_difference(now: Any, before: Any, place: str = "") -> tuple[str, Any, Any] | None:
    """The first difference of two descriptions: (where, now, before)."""
    if not (isinstance(now, dict) and isinstance(before, dict)):
        return None if now == before else (place, now, before)
    for key in {**now, **before}:
        at = f"{place}.{key}" if place else str(key)
        if difference := first_difference(now.get(key, "nothing"), before.get(key, "nothing"), at):
            return difference
    return None


# --- the plan: checked input, cut into blocks, and what it will take; nothing is compiled ------------------------

# Measured on two cores of an AMD EPYC; they cut the blocks and make the forecast, and change no
# number.
_SCAN = (100e-9, 7e-9, 2.3)  # seconds of one core: a round, each arm in it, compiling a program
_LEAP = (30e-9, 0.25e-9, 8.5)
_PROGRAM_BYTES = 192 << 20  # what compiling one program leaves behind, at most
_RESULT_BYTES = 150 << 20  # what the results import
_CARRIES = 4  # copies of the state of all slots while a program runs
_MOST_VALUES = 1 << 28  # float64 in one variable of a NetCDF-3 file

# Names of a result's own, that a parameter must not take.
_TAKEN = {
    *("setting", "environment", "budget", "instance", "replicate", "mark", "policy"),
    *("regret", "realised_regret", "reward", "spent", "rounds", "status", "skips", "violation"),
    *("low", "high", "difference", "best", "indistinguishable"),
}


class Unit(NamedTuple):
    """One policy, all its settings, on one environment with one budget: one queue of lanes."""

    name: str  # for people
    policy: str
    environment: str
    budget: int  # its number among the budgets
    constraint: Constraint  # as the spec gives it
    layout: Layout
    task: driver.Task  # what the engines run
    blocks: int  # how many it is cut into


class Block(NamedTuple):
    """Lanes that are saved together."""

    number: int
    unit: Unit
    lanes: np.ndarray  # lane numbers of the unit's task
    seconds: float  # expected work of one core
    rounds: float  # expected rounds of all its lanes


@dataclasses.dataclass(frozen=True)
class SweepPlan:
    """A checked sweep: its axes, by name, and its division into blocks."""

    spec: Sweep
    policies: dict[str, Settings]
    environments: dict[str, Environment]
    budgets: tuple[float | None, ...]  # one None where there is no list
    layouts: dict[tuple[str, int], Layout]  # by environment and number of the budget
    units: list[Unit]
    blocks: list[Block]
    platform: str  # the kind of device that it is for

    @property
    def lanes(self) -> int:
        return sum(unit.task.order.size for unit in self.units)

    @property
    def shares(self) -> np.ndarray:
        """Shares of the clock at which accounts are recorded."""
        return self.units[0].layout.shares

    @cached_property
    def parameters(self) -> dict[str, dict[str, np.ndarray]]:
        """For each policy, the scalar parameters that differ between settings."""
        swept: dict[str, dict[str, np.ndarray]] = {policy: {} for policy in self.policies}
        for policy, settings in self.policies.items():
            for name in settings.parameters[0]:
                values = [of[name] for of in settings.parameters]
                if name != "policy" and len(set(values)) > 1:
                    key = f"{type(settings.policy).__name__}.{name}" if name in _TAKEN else name
                    swept[policy][key] = np.array(values, np.float64)
        return swept

    @cached_property
    def identity(self) -> dict[str, Any]:
        """The sweep as JSON with values as in engines: 0.1 and float32(0.1) are the same."""
        spec, policies = self.spec, {name: of.policy for name, of in self.policies.items()}
        limits = {
            f"{name}, budget {self.budgets[number]}": layout.tasks[0].constraint
            for (name, number), layout in self.layouts.items()
        }
        return {
            "title": spec.title,
            "seed": int(spec.seed),
            "replicates": int(spec.replicates),
            "over": spec.over,
            "engine": spec.engine,
            "max_rounds": None if spec.max_rounds is None else int(spec.max_rounds),
            "marks": self.shares.tolist(),
            "budgets": list(self.budgets),
            "policies": {name: describe(x, name) for name, x in policies.items()},
            "environments": {name: describe(x, name) for name, x in self.environments.items()},
            "constraints": {name: describe(x, "constraint") for name, x in limits.items()},
            "code": self._code(),
            "order": [list(self.policies), list(self.environments)],  # which blocks are numbered by
            "block_seconds": float(spec.block_seconds),
            "versions": {**versions(), "platform": self.platform},
        }

    def _code(self) -> dict[str, str]:
        """For units with user code, a digest of the trace and of what host methods return."""
        digests = {}
        for unit in self.units:
            if unit.task.program is not None:
                task, layout = unit.task, unit.layout
                account = task.shapes.outcome(1).account
                sample = jax.tree.map(lambda x: np.full((1, *x.shape), 3, x.dtype), account)
                host = [("cap", task.cap), ("rate", np.stack(layout.best_rates))]
                host += scan.ledger_of(sample, task.constraint, np.zeros(1, np.int64)).items()
                clock = ticks.join(task.marks)
                row = np.arange(clock.shape[0])
                host += ((name, layout.possible(row, clock, name)) for name in layout.benchmarks)
                digests[unit.name] = digest(f"{task.program}{digest_of_arrays(host)}".encode())
        return digests


def make_plan(spec: Sweep, platform: str | None = None) -> SweepPlan:
    """Check everything and divide the work into blocks, for this kind of device (default jax's)."""
    named, environments, budgets = _checked_axes(spec)
    instances = [environment.instances for environment in environments.values()]
    policies = {name: Settings.of(policy, instances[0]) for name, policy in named.items()}
    marks, settings = mark_shares(spec.marks).size, sum(of.count for of in policies.values())
    cells = settings * len(environments) * len(budgets)
    size = cells * max(instances) * int(spec.replicates) * marks
    if size > _MOST_VALUES:  # before any array of that size is made
        has = f"with {marks} marks a variable of the result has {size:,} values"
        raise bad("replicates", spec.replicates, f"fewer: {has}, of at most {_MOST_VALUES:,}")
    platform = platform or jax.default_backend()
    options: dict[str, Any] = {"engine": spec.engine, "max_rounds": spec.max_rounds}
    options |= {"platform": platform, "replicates": int(spec.replicates), "marks": spec.marks}
    options["key"] = jax.random.key(spec.seed)
    layouts: dict[tuple[str, int], Layout] = {}
    units: list[Unit] = []
    blocks: list[Block] = []
    for world, (number, budget) in itertools.product(environments, enumerate(budgets)):
        place = f"{world}{'' if budget is None else f', budget {budget:g}'}"
        try:
            limit = cast(Any, spec.constraint)
            if spec.budgets is not None:
                limit = called(spec, "constraint", partial(limit, environments[world], budget))
            given = list(named.values())  # as the user wrote them, for messages
            layout = lay_out(given, environments[world], limit, **options)
            layouts[world, number] = layout
        except InputError as problem:
            raise InputError(f"{problem} (environment {place})") from None
        for policy, task in zip(policies, layout.tasks, strict=True):
            parts = _parts(layout, task, float(spec.block_seconds))
            name = f"{policy} on {place}"
            units.append(Unit(name, policy, world, number, limit, layout, task, len(parts)))
            for lanes, seconds, rounds in parts:
                blocks.append(Block(len(blocks), units[-1], lanes, seconds, rounds))
    return SweepPlan(spec, policies, environments, budgets, layouts, units, blocks, platform)


def _checked_axes(
    spec: Sweep,
) -> tuple[dict[str, Policy], dict[str, Environment], tuple[float | None, ...]]:
    """Policies, environments and budgets of a spec; its other fields are checked as well."""
    if not isinstance(spec, Sweep):
        raise bad("spec", spec, "a jaxbandits.Sweep")
    whole_number("seed", spec.seed, 0, 2**32 - 1, "2**32 - 1")
    whole_number("replicates", spec.replicates, 1)
    positive_number("block_seconds", spec.block_seconds)
    one_of("over", spec.over, ("replicate", "instance"))
    _check_line("title", spec.title or "Sweep")
    named, worlds = spec.named_policies(), cast(Any, spec.environments)
    worlds = {type(worlds).__name__: worlds} if isinstance(worlds, Environment) else worlds
    may_be = "an environment, or a mapping of names to them"
    environments = _all_of("environments", worlds, Environment, may_be)
    budgets: tuple[float | None, ...] = (None,)
    if spec.budgets is not None:
        values = numbers("budgets", spec.budgets, "increasing numbers above 0")
        if values.ndim != 1 or not values.size or not (np.diff(values, prepend=0) > 0).all():
            raise bad("budgets", spec.budgets, "increasing numbers above 0")
        budgets = tuple(values.tolist())
    is_fixed = isinstance(spec.constraint, Constraint)
    if is_fixed != (spec.budgets is None) or not (is_fixed or callable(spec.constraint)):
        must = "a constraint, or with budgets a function (environment, budget) -> Constraint"
        raise bad("constraint", spec.constraint, must)
    return named, environments, budgets


def _parts(
    layout: Layout, task: driver.Task, block_seconds: float
) -> list[tuple[np.ndarray, float, float]]:
    """(lanes, seconds, rounds) of each block of about as much work; long lanes come first."""
    rounds, spec = layout.expected[task.places(task.order)[1]], task.environment.spec
    a_round, an_arm, _ = _speed(task)
    # Where arms cannot be counted, as if there were 16
    seconds = rounds * (a_round + an_arm * getattr(spec, "pairs", getattr(spec, "arms", 16)))
    sums = np.cumsum(seconds)
    count = int(np.clip(np.ceil(sums[-1] / block_seconds), 1, seconds.size))
    inner = np.searchsorted(sums, sums[-1] * np.arange(1, count) / count, side="left") + 1
    ends = itertools.pairwise(np.unique([0, *inner, seconds.size]))
    slices = [slice(*pair) for pair in ends]
    return [(task.order[x], float(seconds[x].sum()), float(rounds[x].sum())) for x in slices]


# --- the forecast ----------------------------------------------------------------------------------------------


class Forecast(NamedTuple):
    """Time and memory that a sweep will take."""

    seconds: float  # expected time, compilation included
    memory: int  # bound on the largest resident memory of a process, bytes; nothing in it grows with rounds
    programs: int  # that are compiled, per device
    workers: int  # threads that run lanes


def forecast(
    plan: SweepPlan, workers: int | None = None, done: frozenset[int] = frozenset()
) -> Forecast:
    """Rough time and memory for the blocks that are not ``done``, on this machine."""
    devices = jax.local_devices()
    workers = workers or usual_workers(devices)
    compiling: dict[Any, float] = {}  # seconds, by program
    state = 0  # of one worker's lanes, and the tables that they read
    for task in (unit.task for unit in plan.units):
        slots = usual_slots(task, workers, devices)
        shapes = [np.shape(x)[1:] for x in jax.tree.leaves(task.policy)]  # of all settings
        shapes += [np.shape(x) for x in jax.tree.leaves(task.environment)]
        structure = jax.tree.structure((task.policy, task.environment, task.constraint))
        compiling[task.engine, slots, structure, *shapes] = _speed(task)[2]
        state = max(state, task.shapes.bytes(slots) + driver.tree_bytes(task.environment))
    work = sum(block.seconds for block in plan.blocks if block.number not in done) / workers
    seconds = work + (sum(compiling.values()) / min(workers, len(compiling)) if work else 0.0)
    largest = max(unit.task.order.size for unit in plan.units)
    # Open blocks; copies of the final arrays
    accounts = 8 * plan.shares.size * (10 * largest + 3 * 6 * plan.lanes)
    memory = checks.peak_memory() + _RESULT_BYTES + len(compiling) * _PROGRAM_BYTES
    memory += workers * _CARRIES * state + accounts
    return Forecast(seconds, memory, len(compiling), workers)


def _speed(task: driver.Task) -> tuple[float, float, float]:
    """Seconds of one core: for a round, for each arm in it, for compiling the program."""
    return _SCAN if task.engine is scan else _LEAP
