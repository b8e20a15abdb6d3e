"""How a sweep is cut into blocks, and what it will take: checked input, nothing compiled."""

from __future__ import annotations

import dataclasses
import itertools
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits._engine import driver, scan
from jaxbandits._engine.pool import usual_slots, usual_workers
from jaxbandits._engine.setup import Layout, lay_out, mark_shares
from jaxbandits.core import checks
from jaxbandits.core.checks import InputError, bad
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


class Unit(NamedTuple):
    """One policy, all its settings, on one environment with one budget: one queue of lanes."""

    name: str  # for people
    policy: str
    environment: str
    budget: int  # its number among the budgets
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
    """A checked sweep: what is along its axes, by name, and how the work is cut."""

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
    """Check everything and cut the work into blocks, for this kind of device (default: jax's own)."""
    spec.check()
    given, environments = spec.named_policies(), spec.named_environments()
    instances = [environment.instances for environment in environments.values()]
    policies = {name: Settings.of(policy, instances[0]) for name, policy in given.items()}
    budgets = (None,) if spec.budgets is None else tuple(map(float, spec.budgets))
    marks, settings = mark_shares(spec.marks).size, sum(one.count for one in policies.values())
    values = settings * len(environments) * len(budgets) * max(instances) * int(spec.replicates) * marks
    if values > _MOST_VALUES:  # before any array of that size is made
        must = f"fewer: with {marks} marks a variable of the result has {values:,} values, of at most {_MOST_VALUES:,}"
        raise bad("replicates", spec.replicates, must)
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
            # Lanes in order of their expected length, cut so that each block is about as much work.
            rounds, arms = layout.expected[task.places(task.order)[1]], task.environment.spec
            a_round, an_arm, _ = _speed(task)
            seconds = rounds * (a_round + an_arm * getattr(arms, "pairs", getattr(arms, "arms", 16)))
            sums = np.cumsum(seconds)
            count = int(np.clip(np.ceil(sums[-1] / spec.block_seconds), 1, seconds.size))
            inner = np.searchsorted(sums, sums[-1] * np.arange(1, count) / count, side="left") + 1
            parts = list(itertools.pairwise(np.unique([0, *inner, seconds.size])))
            units.append(Unit(f"{policy} on {where}{at_budget}", policy, where, number, layout, task, len(parts)))
            for part in (slice(*ends) for ends in parts):
                work = float(seconds[part].sum()), float(rounds[part].sum())
                blocks.append(Block(len(blocks), units[-1], task.order[part], *work))
    return SweepPlan(spec, policies, environments, budgets, layouts, units, blocks, platform or jax.default_backend())


# --- the forecast ----------------------------------------------------------------------------------------------


class Forecast(NamedTuple):
    """What a sweep will take."""

    seconds: float  # expected time, compilation included
    memory: int  # bound on the largest resident memory of a process, bytes; nothing in it grows with rounds
    programs: int  # that are compiled, per device
    workers: int  # threads that run lanes


def forecast(plan: SweepPlan, workers: int | None = None, done: frozenset[int] = frozenset()) -> Forecast:
    """Time and memory for the blocks that are not ``done``, on this machine; rough, and known to be so."""
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
