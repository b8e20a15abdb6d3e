"""How a sweep is cut into blocks, and what it will take: checked input, nothing compiled."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import jax
import numpy as np

from jaxbandits._engine import driver, scan
from jaxbandits._engine.pool import usual_slots, usual_workers
from jaxbandits._engine.setup import Layout, lay_out, mark_shares
from jaxbandits.core import checks
from jaxbandits.core.checks import InputError
from jaxbandits.core.settings import Settings
from jaxbandits.sweeps.spec import Sweep, describe, versions

# Measured on two cores of an AMD EPYC; they cut the blocks and make the forecast, and change no number.
_SCAN = (100e-9, 7e-9, 2.3)  # seconds of one core: a round, each arm in it, compiling a program
_LEAP = (30e-9, 0.25e-9, 8.5)
_PROGRAM_BYTES = 192 << 20  # what compiling one program leaves behind, at most
_REPORT_BYTES = 150 << 20  # what the report imports
_CARRIES = 4  # copies of the state of all slots while a program runs
_MOST_VALUES = 1 << 28  # float64 in one variable of a NetCDF-3 file


@dataclasses.dataclass(frozen=True)
class Unit:
    """One policy, all its settings, on one environment with one budget: one queue of lanes.

    Attributes:
        name: names it for people.
        budget: its number among the budgets.
        number: its policy's number among the layout's tasks.
        cuts: bounds of its blocks in ``task.order``, which is sorted by expected length; so the lanes of a block are
            of similar length.
        first: number of its first block.
        seconds: expected work of one core for each lane of ``task.order``.
    """

    name: str
    policy: str
    environment: str
    budget: int
    layout: Layout
    number: int
    cuts: np.ndarray
    first: int
    seconds: np.ndarray

    @property
    def task(self) -> driver.Task:
        """What the engines run."""
        return self.layout.tasks[self.number]


@dataclasses.dataclass(frozen=True)
class Block:
    """Lanes that are saved together."""

    number: int
    unit: Unit
    lanes: np.ndarray  # lane numbers of the unit's task
    seconds: float  # expected work of one core
    rounds: float  # expected rounds of all its lanes


@dataclasses.dataclass(frozen=True)
class SweepPlan:
    """A checked sweep.

    Attributes:
        identity: what it is, as JSON (see :mod:`~jaxbandits.sweeps.spec`).
        layouts: for each (environment, budget number).
    """

    spec: Sweep
    identity: dict[str, Any]
    layouts: dict[tuple[str, int], Layout]
    units: tuple[Unit, ...]
    blocks: tuple[Block, ...]

    @property
    def lanes(self) -> int:
        """Runs in all."""
        return sum(unit.task.order.size for unit in self.units)

    @property
    def shares(self) -> np.ndarray:
        """The marks."""
        return next(iter(self.layouts.values())).shares


def make_plan(spec: Sweep, platform: str | None = None) -> SweepPlan:
    """Check everything and cut the work into blocks, for this kind of device (default: jax's own).

    Raises:
        InputError: naming the field, its value and what it may be.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> spec = jb.Sweep(
        ...     policies=jb.policies.OmegaUCB(rho=[0.25, 1.0]),
        ...     environments=jb.environments.random_bernoulli(jax.random.key(0), instances=4, arms=3),
        ...     constraint=jb.TotalBudget(10.0, last_pull="counts"), engine="scan")
        >>> sum(unit.task.order.size for unit in jb.sweeps.make_plan(spec).units)  # lanes
        8
    """
    spec.check()
    policies, environments = spec.named_policies(), spec.named_environments()
    _check_size(spec)
    layouts: dict[tuple[str, int], Layout] = {}
    for name, environment in environments.items():
        for number, budget in enumerate(spec.budget_axis()):
            try:
                layouts[name, number] = lay_out(
                    list(policies.values()),
                    environment,
                    spec.constraint_of(environment, budget),
                    key=jax.random.key(spec.seed),
                    replicates=int(spec.replicates),
                    marks=spec.marks,
                    engine=spec.engine,
                    max_rounds=spec.max_rounds,
                )
            except InputError as problem:
                where = f" (environment {name}" + ("" if budget is None else f", budget {budget:g}") + ")"
                raise InputError(f"{problem}{where}") from None
    units: list[Unit] = []
    blocks: list[Block] = []
    for (name, budget), layout in layouts.items():
        for number, policy in enumerate(policies):
            unit = _unit(spec, policy, name, budget, layout, number, len(blocks))
            units.append(unit)
            blocks += _blocks(unit)
    identity = _identity(spec, layouts, platform or jax.default_backend())
    return SweepPlan(spec, identity, layouts, tuple(units), tuple(blocks))


def _unit(spec: Sweep, policy: str, name: str, budget: int, layout: Layout, number: int, first: int) -> Unit:
    task = layout.tasks[number]
    _, instance, _ = np.unravel_index(task.order, layout.lane_shape(task))
    world = task.environment.spec
    base, each, _ = _speed(task)
    seconds = layout.expected[instance] * (base + each * getattr(world, "pairs", getattr(world, "arms", 16)))
    sums = np.cumsum(seconds)
    count = int(np.clip(np.ceil(sums[-1] / spec.block_seconds), 1, seconds.size))
    cuts = np.searchsorted(sums, sums[-1] * np.arange(1, count) / count, side="left") + 1
    value = spec.budget_axis()[budget]
    title = f"{policy} on {name}" + ("" if value is None else f", budget {value:g}")
    return Unit(title, policy, name, budget, layout, number, np.unique([0, *cuts, seconds.size]), first, seconds)


def _blocks(unit: Unit) -> list[Block]:
    _, instance, _ = np.unravel_index(unit.task.order, unit.layout.lane_shape(unit.task))
    rounds = unit.layout.expected[instance]
    parts = [slice(*cut) for cut in itertools.pairwise(unit.cuts)]
    return [
        Block(unit.first + i, unit, unit.task.order[part], float(unit.seconds[part].sum()), float(rounds[part].sum()))
        for i, part in enumerate(parts)
    ]


def _identity(spec: Sweep, layouts: dict[tuple[str, int], Layout], platform: str) -> dict[str, Any]:
    """Values as the engines get them: 0.1, float32(0.1) and an array of it are one and the same."""
    first = next(iter(layouts.values()))
    policies = {
        name: describe(task.policy, name) for name, task in zip(spec.named_policies(), first.tasks, strict=True)
    }
    environments = {name: describe(environment, name) for name, environment in spec.named_environments().items()}
    constraints = {
        f"{name}, budget {spec.budget_axis()[number]}": describe(layout.tasks[0].constraint, "constraint")
        for (name, number), layout in layouts.items()
    }
    return {
        "title": spec.title,
        "seed": int(spec.seed),
        "replicates": int(spec.replicates),
        "over": spec.over,
        "engine": spec.engine,
        "max_rounds": None if spec.max_rounds is None else int(spec.max_rounds),
        "marks": first.shares.tolist(),
        "budgets": spec.budget_axis(),
        "policies": policies,
        "environments": environments,
        "constraints": constraints,
        "order": [list(policies), list(environments)],  # which blocks are numbered by
        "block_seconds": float(spec.block_seconds),
        "versions": {**versions(), "platform": platform},
    }


def _check_size(spec: Sweep) -> None:
    """Before any array of that size is made."""
    environments, marks = spec.named_environments().values(), mark_shares(spec.marks).size
    widest = max(environment.instances for environment in environments)
    first = next(iter(environments))
    settings = sum(Settings.of(x, first.instances, first.spec).count for x in spec.named_policies().values())
    values = settings * len(environments) * len(spec.budget_axis()) * widest * int(spec.replicates) * marks
    if values > _MOST_VALUES:
        raise InputError(
            f"replicates: {spec.replicates} given; with {marks} marks the result has {values:,} values in one "
            f"variable; it must be at most {_MOST_VALUES:,}, so split the sweep or take fewer marks"
        )


# --- the forecast ----------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Forecast:
    """What a sweep will take.

    Attributes:
        seconds: expected time, compilation included.
        memory: bound on the largest resident memory of a process, bytes. Nothing in it grows with rounds.
        programs: how many programs are compiled, per device.
        workers: threads that run lanes.
    """

    seconds: float
    memory: int
    programs: int
    workers: int


def forecast(plan: SweepPlan, workers: int | None = None, done: frozenset[int] = frozenset()) -> Forecast:
    """Time and memory for the blocks that are not ``done``, on this machine; rough, and known to be so.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> spec = jb.Sweep(
        ...     policies=jb.policies.OmegaUCB(rho=[0.25, 1.0]),
        ...     environments=jb.environments.random_bernoulli(jax.random.key(0), instances=4, arms=3),
        ...     constraint=jb.TotalBudget(10.0, last_pull="counts"), engine="scan")
        >>> expected = jb.sweeps.forecast(jb.sweeps.make_plan(spec), workers=1)
        >>> expected.workers, expected.seconds > 0
        (1, True)
    """
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
        state = max(state, driver.state_bytes(task, slots) + driver.tree_bytes(task.environment))
    work = sum(block.seconds for block in plan.blocks if block.number not in done) / workers
    seconds = work + (sum(compiling.values()) / min(workers, len(compiling)) if work else 0.0)
    largest = max(unit.task.order.size for unit in plan.units)
    accounts = 8 * plan.shares.size * (10 * largest + 3 * 6 * plan.lanes)  # open blocks; copies of the final arrays
    memory = checks.peak_memory() + _REPORT_BYTES + len(compiling) * _PROGRAM_BYTES
    return Forecast(seconds, memory + workers * _CARRIES * state + accounts, len(compiling), workers)


def _speed(task: driver.Task) -> tuple[float, float, float]:
    return _SCAN if task.engine is scan else _LEAP
