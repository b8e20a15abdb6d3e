"""How a sweep is cut into blocks, and what it will take: checked input, nothing compiled."""

from __future__ import annotations

import dataclasses
import itertools
from functools import cached_property
from typing import Any

import jax
import numpy as np

from jaxbandits._engine import driver, scan
from jaxbandits._engine.pool import usual_slots, usual_workers
from jaxbandits._engine.setup import Layout, lay_out, mark_shares
from jaxbandits.core import checks
from jaxbandits.core.checks import InputError
from jaxbandits.core.protocol import Environment
from jaxbandits.core.settings import Settings
from jaxbandits.sweeps.spec import Sweep, describe, versions

# Measured on two cores of an AMD EPYC; they cut the blocks and make the forecast, and change no number.
_SCAN = (100e-9, 7e-9, 2.3)  # seconds of one core: a round, each arm in it, compiling a program
_LEAP = (30e-9, 0.25e-9, 8.5)
_PROGRAM_BYTES = 192 << 20  # what compiling one program leaves behind, at most
_REPORT_BYTES = 150 << 20  # what the report imports
_CARRIES = 4  # copies of the state of all slots while a program runs
_MOST_VALUES = 1 << 28  # float64 in one variable of a NetCDF-3 file

# Names of a result's own, that a parameter must not take.
_TAKEN = {
    *("setting", "environment", "budget", "instance", "replicate", "mark", "policy"),
    *("regret", "realised_regret", "reward", "spent", "rounds", "status", "skips", "violation"),
    *("low", "high", "difference", "best", "indistinguishable"),
}


@dataclasses.dataclass(frozen=True)
class Unit:
    """One policy, all its settings, on one environment with one budget: one queue of lanes."""

    name: str  # for people
    policy: str
    environment: str
    budget: int  # its number among the budgets
    layout: Layout
    task: driver.Task  # what the engines run
    blocks: int  # how many it is cut into


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
        policies, environments, budgets: what is along the axes, by name; one budget None where there is no list.
        layouts: for each (environment, budget number).
        platform: the kind of device that it is for.
    """

    spec: Sweep
    policies: dict[str, Settings]
    environments: dict[str, Environment]
    budgets: tuple[float | None, ...]
    layouts: dict[tuple[str, int], Layout]
    units: tuple[Unit, ...]
    blocks: tuple[Block, ...]
    platform: str

    @property
    def lanes(self) -> int:
        """Runs in all."""
        return sum(unit.task.order.size for unit in self.units)

    @property
    def shares(self) -> np.ndarray:
        """The marks."""
        return self.units[0].layout.shares

    @cached_property
    def parameters(self) -> dict[str, dict[str, np.ndarray]]:
        """For each policy the parameters that are one number in every setting and differ between settings."""
        found: dict[str, dict[str, np.ndarray]] = {policy: {} for policy in self.policies}
        for policy, settings in self.policies.items():
            for name in settings.parameters[0]:
                values = [of[name] for of in settings.parameters]
                if name != "policy" and len(set(values)) > 1:
                    own = f"{type(settings.policy).__name__}.{name}" if name in _TAKEN else name
                    found[policy][own] = np.array(values, np.float64)
        return found

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What it is, as JSON, of values as the engines get them: 0.1, float32(0.1) and an array of it are the same."""
        spec = self.spec
        constraints = {
            f"{name}, budget {self.budgets[number]}": describe(layout.tasks[0].constraint, "constraint")
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
            "policies": {name: describe(one.policy, name) for name, one in self.policies.items()},
            "environments": {name: describe(one, name) for name, one in self.environments.items()},
            "constraints": constraints,
            "order": [list(self.policies), list(self.environments)],  # which blocks are numbered by
            "block_seconds": float(spec.block_seconds),
            "versions": {**versions(), "platform": self.platform},
        }


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
        >>> jb.sweeps.make_plan(spec).lanes
        8
    """
    spec.check()
    given, environments = spec.named_policies(), spec.named_environments()
    instances = [environment.instances for environment in environments.values()]
    policies = {name: Settings.of(policy, instances[0]) for name, policy in given.items()}
    budgets = (None,) if spec.budgets is None else tuple(map(float, spec.budgets))
    marks, settings = mark_shares(spec.marks).size, sum(one.count for one in policies.values())
    values = settings * len(environments) * len(budgets) * max(instances) * int(spec.replicates) * marks
    if values > _MOST_VALUES:  # before any array of that size is made
        raise InputError(
            f"replicates: {spec.replicates} given; with {marks} marks the result has {values:,} values in one "
            f"variable; it must be at most {_MOST_VALUES:,}, so split the sweep or take fewer marks"
        )
    layouts: dict[tuple[str, int], Layout] = {}
    units: list[Unit] = []
    blocks: list[Block] = []
    for (where, environment), (number, budget) in itertools.product(environments.items(), enumerate(budgets)):
        at_budget = "" if budget is None else f", budget {budget:g}"
        try:
            layout = layouts[where, number] = lay_out(
                list(given.values()),  # as they were given, for messages
                environment,
                spec.constraint_of(environment, budget),
                key=jax.random.key(spec.seed),
                replicates=int(spec.replicates),
                marks=spec.marks,
                engine=spec.engine,
                max_rounds=spec.max_rounds,
            )
        except InputError as problem:
            raise InputError(f"{problem} (environment {where}{at_budget})") from None
        for policy, task in zip(policies, layout.tasks, strict=True):
            made = Unit(f"{policy} on {where}{at_budget}", policy, where, number, layout, task, 0)
            blocks += _blocks(made, spec.block_seconds, len(blocks))
            units.append(blocks[-1].unit)
    platform = platform or jax.default_backend()
    return SweepPlan(spec, policies, environments, budgets, layouts, tuple(units), tuple(blocks), platform)


def _blocks(unit: Unit, block_seconds: float, first: int) -> list[Block]:
    """The unit's lanes, cut so that each block is about as much work.

    ``task.order`` is sorted by expected length, so the lanes of a block are of similar length.
    """
    order, world = unit.task.order, unit.task.environment.spec
    a_round, an_arm, _ = _speed(unit.task)
    rounds = unit.layout.expected[unit.task.places(order)[1]]
    seconds = rounds * (a_round + an_arm * getattr(world, "pairs", getattr(world, "arms", 16)))
    sums = np.cumsum(seconds)
    count = int(np.clip(np.ceil(sums[-1] / block_seconds), 1, seconds.size))
    inner = np.searchsorted(sums, sums[-1] * np.arange(1, count) / count, side="left") + 1
    cuts = np.unique([0, *inner, seconds.size])
    unit = dataclasses.replace(unit, blocks=cuts.size - 1)
    parts = [slice(*cut) for cut in itertools.pairwise(cuts)]
    return [
        Block(first + i, unit, order[part], float(seconds[part].sum()), float(rounds[part].sum()))
        for i, part in enumerate(parts)
    ]


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
