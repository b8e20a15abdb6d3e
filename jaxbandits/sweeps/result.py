"""What a sweep found: all accounts, labelled; regret against a policy's parameters, and the value to recommend."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandits import _files
from jaxbandits._tables import counted
from jaxbandits.core import ticks
from jaxbandits.core.checks import bad
from jaxbandits.core.protocol import Status
from jaxbandits.statistics import mean as mean_of
from jaxbandits.statistics import mean_interval, paired_difference
from jaxbandits.sweeps.spec import SweepPlan, Unit, versions

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,unused-ignore]
    import xarray

LEVEL = 0.95
AXES = ("setting", "environment", "budget", "instance", "replicate", "mark")
_NAMES = {
    "regret": ("reward", "pseudo-regret: best rate × expected clock − expected reward"),
    "realised_regret": ("reward", "best rate × clock − reward, as drawn"),
    "reward": ("reward", "reward collected"),
    "spent": ("cost", "money spent"),
    "rounds": ("rounds", "rounds played"),
    "violation": ("cost", "violation"),
}


@dataclasses.dataclass(frozen=True)
class Curve:
    """Regret against the parameters of one policy.

    The settings that ``indistinguishable`` names contain the truly best one of the grid with a confidence of at least
    95 %: a setting is left out only if its paired difference to the best mean is above 0 with an interval that holds
    for all settings at once (Bonferroni over the others).

    Attributes:
        parameters: values of each swept parameter, ``[setting]``.
        regret: (mean, low, high), each interval by itself, ``[setting]``.
        best: the setting with the least mean.
        apart: (mean, low, high) of the paired differences to the best, all intervals at once, ``[setting]``.
        units: observations (runs, or sampled instances) behind each mean.
        warnings: of the regret at the best setting, as :func:`jaxbandits.statistics.mean` says them.
    """

    policy: str
    parameters: Mapping[str, np.ndarray]
    regret: tuple[np.ndarray, ...]
    best: int
    apart: tuple[np.ndarray, ...]
    units: int
    warnings: tuple[str, ...] = ()

    @staticmethod
    def of(policy: str, x: xarray.DataArray, names: Sequence[str], *, given: bool, unit: str = "replicate") -> Curve:
        """From the regret of every run: ``[setting, replicate]``, or with ``given`` instances ``[…, instance, …]``.

        The swept parameters ``names`` are coordinates along ``setting``; ``unit`` is what the replicates are.
        """
        mean = mean_interval(x, average_instances=given, level=LEVEL)
        best = int(np.argmin(mean["mean"].values))
        against = x.isel(setting=best).reset_coords(drop=True)
        level = 1 - (1 - LEVEL) / max(x.sizes["setting"] - 1, 1)
        apart = paired_difference(x, against, average_instances=given, level=level)
        parts = ("mean", "low", "high")
        return Curve(
            policy=policy,
            parameters={name: x[name].values.astype(float) for name in names},
            regret=tuple(mean[part].values for part in parts),
            best=best,
            apart=tuple(apart[part].values for part in parts),
            units=x.sizes["replicate"],
            warnings=mean_of(against if given else against.rename(replicate=unit), over=unit).warnings,
        )

    @property
    def indistinguishable(self) -> np.ndarray:
        """Settings that are not clearly worse than the best, ``bool[setting]``; all of them if there is no interval."""
        return ~(self.apart[1] > 0)

    @property
    def all_equal(self) -> bool:
        """Does every run have the same regret with every value?"""
        return self.units > 1 and self.regret[0].size > 1 and not any(part.any() for part in self.apart)

    @property
    def at_edge(self) -> list[str]:
        """Parameters whose best value is the smallest or largest of several that are not all equal."""
        if self.all_equal:
            return []
        best = {name: x[self.best] for name, x in self.parameters.items() if np.unique(x).size > 1}
        return [name for name, at in best.items() if at in (self.parameters[name].min(), self.parameters[name].max())]

    def recommendation(self) -> str:
        """In words: ``rho = 0.22, indistinguishable from 0.12 to 0.31``."""
        chosen = ", ".join(f"{name} = {x[self.best]:.3g}" for name, x in self.parameters.items())
        if self.units < 2:
            return f"{chosen} has the least regret of one run, which says nothing about the others"
        if self.all_equal:
            return f"all values of {' and '.join(self.parameters)} are equal: the same regret in every run"
        alike = self.indistinguishable
        if len(self.parameters) != 1:
            return f"{chosen}, indistinguishable from {alike.sum() - 1} of the other {alike.size - 1} settings"
        (x,) = self.parameters.values()
        if alike.sum() == 1:
            return f"{chosen}, clearly better than every other value"
        return f"{chosen}, indistinguishable from {_stretches(x, alike)}"


def _stretches(x: np.ndarray, alike: np.ndarray) -> str:
    """``0.12 to 0.31``; with gaps ``0.12 to 0.18 and 0.31``."""
    order = np.argsort(x)
    x, alike = x[order], alike[order]
    edges = np.flatnonzero(np.diff(np.concatenate([[0], alike.astype(int), [0]])))
    parts = [
        f"{x[first]:.3g}" if first + 1 == last else f"{x[first]:.3g} to {x[last - 1]:.3g}"
        for first, last in zip(edges[::2], edges[1::2], strict=True)
    ]
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + f" and {parts[-1]}"


@dataclasses.dataclass(frozen=True)
class SweepResult:
    """All accounts of a sweep.

    Attributes:
        data: ``regret``, ``realised_regret``, ``reward``, ``spent``, ``rounds`` (and counts of events) with axes
            setting, environment, budget, instance, replicate, mark; ``status`` without mark (a
            :class:`~jaxbandits.Status`, −1 where an environment has fewer instances than the widest). The axis setting
            carries ``policy`` and every swept parameter as coordinates.
        plan: what was run.
    """

    data: xarray.Dataset
    plan: SweepPlan

    def __repr__(self) -> str:
        parts = (counted(size, str(axis)) for axis, size in self.data["regret"].sizes.items())
        return f"SweepResult: {', '.join(parts)}; .data has them, .curve(…) a recommended value"

    @property
    def policies(self) -> list[str]:
        """Names of the policies."""
        return list(self.plan.policies)

    def parameters(self, policy: str) -> list[str]:
        """The swept parameters of a policy."""
        if policy not in self.policies:
            raise bad("policy", policy, " or ".join(self.policies))
        return list(self.plan.parameters[policy])

    def cells(self) -> list[tuple[str, int]]:
        """Every (environment, number of the budget)."""
        return list(self.plan.layouts)

    def to_pandas(self) -> pandas.DataFrame:
        """One row for each setting, environment, budget, instance, replicate and mark, with the variables of ``data``.

        Regret and reward are in the environment's unit of reward, money in its unit of cost: ``.attrs["units"]``.
        ``status`` is a number, see :class:`~jaxbandits.Status`.
        """
        return _files.of_dataset(self.data, [*AXES, "policy"])

    def curve(self, policy: str, environment: str, budget: int = 0) -> Curve:
        """Regret at the end against the parameters of one policy, in one environment with one budget."""
        names = self.parameters(policy)
        if (environment, budget) not in self.plan.layouts:
            raise bad("environment, budget", (environment, budget), f"one of {self.cells()}")
        x = self._ends(environment, budget).isel(setting=np.flatnonzero(self.data["policy"].values == policy))
        over = self.plan.spec.over
        return Curve.of(policy, x, names, given=over == "replicate", unit=over)

    def _ends(self, environment: str, budget: int) -> xarray.DataArray:
        """Regret at the end, ``[setting, instance, replicate]``; ``[setting, replicate]`` over sampled instances."""
        instances = self.plan.layouts[environment, budget].tasks[0].instance_ids.size
        x = self.data["regret"].sel(environment=environment).isel(budget=budget, mark=-1, instance=slice(instances))
        if self.plan.spec.over == "instance":
            return x.mean("replicate").rename(instance="replicate")
        return x

    def difference(self, first: Curve, second: Curve, environment: str, budget: int = 0) -> xarray.Dataset:
        """Regret of one policy at its best value minus that of another at its own, paired, with a 95 % interval."""
        x, policies = self._ends(environment, budget), self.data["policy"].values
        at = (np.flatnonzero(policies == curve.policy)[curve.best] for curve in (first, second))
        ends = (x.isel(setting=i).reset_coords(drop=True) for i in at)
        return paired_difference(*ends, average_instances=self.plan.spec.over == "replicate", level=LEVEL)


# --- from blocks to the dataset --------------------------------------------------------------------------------


def gather(plan: SweepPlan, get: Callable[[int], Mapping[str, np.ndarray]]) -> SweepResult:
    """The labelled dataset from all blocks; ``get(number)`` gives the accounts of a block."""
    import xarray

    counts = {name: settings.count for name, settings in plan.policies.items()}
    first = dict(zip(counts, np.cumsum([0, *counts.values()]), strict=False))
    environments, shares = list(plan.environments), plan.shares
    widest = max(environment.instances for environment in plan.environments.values())
    shape = (sum(counts.values()), len(environments), len(plan.budgets), widest, int(plan.spec.replicates), shares.size)
    made: dict[str, np.ndarray] = {}  # places that an environment has not, for it has fewer instances, stay NaN or −1
    for block in plan.blocks:
        unit = block.unit
        setting, instance, replicate = unit.task.places(block.lanes)
        at = (first[unit.policy] + setting, environments.index(unit.environment), unit.budget, instance, replicate)
        for name, values in _views(get(block.number), unit, instance).items():
            if name not in made:
                made[name] = np.full(shape[: 4 + values.ndim], np.int8(-1) if name == "status" else np.nan)
            made[name][at] = values
    labels = []  # of every setting: its policy, and its swept values
    for policy, count in counts.items():
        swept = plan.parameters[policy].items()
        texts = [", ".join(f"{name}={x[i]:.6g}" for name, x in swept) for i in range(count)]
        labels += [f"{policy} {text}".strip() if count > 1 else policy for text in texts]
    budgets = np.array(plan.budgets, np.float64)
    if plan.spec.budgets is None:  # the one end of the clock, NaN if instances differ in it
        ends = np.unique(np.concatenate([ticks.join(unit.task.marks)[:, -1] for unit in plan.units]))
        budgets = np.array([ticks.to_units(ends[0]) if ends.size == 1 else np.nan])
    clock = plan.units[0].task.constraint.clock_name
    coords: dict[str, Any] = {
        "setting": labels,
        "policy": ("setting", np.repeat(list(counts), list(counts.values())), {"long_name": "policy"}),
        "environment": environments,
        "budget": ("budget", budgets, {"long_name": "budget"}),
        "instance": ("instance", np.arange(widest, dtype=np.int32), {"long_name": "instance id"}),
        "replicate": ("replicate", np.arange(shape[4], dtype=np.int32), {"long_name": "replicate id"}),
        "mark": ("mark", shares, {"units": "1", "long_name": f"share of the clock ({clock})"}),
    }
    for name in dict.fromkeys(name for swept in plan.parameters.values() for name in swept):
        of_each = [plan.parameters[policy].get(name, np.full(count, np.nan)) for policy, count in counts.items()]
        coords[name] = ("setting", np.concatenate(of_each), {"long_name": f"parameter {name}"})
    data: dict[str, Any] = {}
    for name, x in made.items():
        unit_of, long_name = _NAMES.get(name, ("rounds", name))
        data[name] = (AXES, x, {"units": unit_of, "long_name": long_name})
    flags = {"flag_values": np.array(list(Status), np.int8), "flag_meanings": " ".join(x.name.lower() for x in Status)}
    data["status"] = (AXES[:5], made["status"], {"long_name": "how the lane ended", **flags})
    about = {"title": plan.spec.title, "seed": int(plan.spec.seed), "over": plan.spec.over}
    about |= {**versions(), "platform": plan.platform}
    return SweepResult(xarray.Dataset(data, coords=coords, attrs={"about": json.dumps(about)}), plan)


def _views(arrays: Mapping[str, np.ndarray], unit: Unit, instance: np.ndarray) -> dict[str, np.ndarray]:
    """Float64 ``[lane, mark]`` in the environment's units."""
    clocks = ("expected_clock", "clock")
    broke = (arrays["ended"] == Status.INVALID)[:, None]  # has no regret, as in a Result
    possible = {clock: np.where(broke, np.nan, unit.layout.possible(instance, arrays[clock])) for clock in clocks}
    units = {name: ticks.to_units(x) for name, x in arrays.items() if name not in ("ended", "rounds")}
    found = {
        "regret": possible["expected_clock"] - units["expected_reward"],
        "realised_regret": possible["clock"] - units["reward"],
        "reward": units["reward"],
        "spent": units["clock"] if unit.task.constraint.clock_name == "spent" else units["spent"],
        "rounds": arrays["rounds"].astype(np.float64),
        "status": arrays["ended"],
    }
    for name, x in arrays.items():
        kind, _, rest = name.partition(":")
        if rest:
            found[rest] = x.astype(np.float64) if kind == "event" else units[name]
    return {name: x for name, x in found.items() if x.ndim <= 2}  # one of several resources: blocks keep them
