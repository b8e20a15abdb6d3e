"""The result of a sweep: a result for each cell, curves of regret, recommended values."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandits import _files
from jaxbandits._provenance import Provenance, versions
from jaxbandits._tables import Shown, Table, count_of
from jaxbandits.core import ticks
from jaxbandits.core.checks import bad
from jaxbandits.core.fingerprint import digest
from jaxbandits.core.protocol import Status
from jaxbandits.result import Result
from jaxbandits.simulation import labelled, origin_of
from jaxbandits.statistics.curves import Curve, cases_of
from jaxbandits.sweeps.spec import SweepPlan

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,unused-ignore]
    import xarray

    from jaxbandits.sweeps.drawing import SweepPlots

AXES = ("setting", "environment", "budget", "instance", "replicate", "mark")
_NAMES = {
    "regret": ("reward", "pseudo-regret: best rate × expected clock − expected reward"),
    "realised_regret": ("reward", "best rate × clock − reward, as drawn"),
    "reward": ("reward", "reward collected"),
    "spent": ("cost", "money spent"),
    "rounds": ("rounds", "rounds simulated"),
    "violation": ("cost", "violation"),
}


@dataclasses.dataclass(frozen=True)
class SweepResult(Shown):
    """All accounts of a sweep; to open a saved one, call ``jb.sweep(spec, folder)`` again.

    Attributes:
        results: for each policy, environment and index of the budget what
            :func:`~jaxbandits.simulate` would have returned: ``results["OmegaUCB", "ten arms",
            0].regret``. Final values (``pulls``) are not stored.
        plan: what was run.
    """

    results: Mapping[tuple[str, str, int], Result]
    plan: SweepPlan

    def __repr__(self) -> str:
        parts = map(count_of, _shape(self.plan), AXES)
        return f"SweepResult: {', '.join(parts)}; .curve(policy, environment) recommends a value"

    def __str__(self) -> str:
        return f"{self!r}\n{self._shown_rows().text()}"

    def _shown_rows(self) -> Table:
        return self.best_values()

    def best_values(self) -> Table:
        """The best value of every policy in every case, with its regret (low to high) and doubts."""
        budgets, rows = self.data["budget"].values, []
        for (environment, budget), policy in itertools.product(self.cells(), self.policies):
            curve = self.curve(policy, environment, budget)
            value = curve.recommendation() if self.parameters(policy) else ""
            doubts = ", ".join(warning.partition(":")[0] for warning in curve.warnings)
            parts = (curve.regret.value, curve.regret.low, curve.regret.high)
            end, low, high = (f"{float(x[curve.best]):,.5g}" for x in parts)
            end += f" ({low} to {high})" * (low != "nan")
            rows.append([environment, f"{budgets[budget]:,.6g}", policy, value, end, doubts])
        head = "environment", "budget", "policy", "recommended", "regret at the end", "in doubt"
        return Table(head, rows, left=(0, 2, 3, 5))

    def sensitivity(self) -> Table:
        """By environment, budget, policy, setting: mean regret, difference from best, intervals."""
        budgets, rows = self.data["budget"].values, []
        names = [str(name) for name in self.data.coords if name not in (*AXES, "policy")]
        ends = ("value", "low", "high"), ("difference", "low", "high")
        for (environment, budget), policy in itertools.product(self.cells(), self.policies):
            curve = self.curve(policy, environment, budget)
            numbers = [getattr(curve.regret, end).values for end in ends[0]]
            numbers += [curve.apart[end].values for end in ends[1]]
            absent = [None] * len(numbers[0])
            for i, alike in enumerate(curve.indistinguishable.tolist()):
                values = [curve.parameters.get(name, absent)[i] for name in names]
                of_setting = [*values, *(x[i] for x in numbers), i == curve.best, alike]
                rows.append([environment, budgets[budget], policy, *of_setting])
        head = ["environment", "budget", "policy", *names, "regret", "low", "high", "difference"]
        head += ["difference_low", "difference_high", "best", "indistinguishable"]
        return Table(head, rows, left=(0, 2))

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
        """Every (environment, index of the budget)."""
        return list(self.plan.layouts)

    @functools.cached_property
    def data(self) -> xarray.Dataset:
        """All results in one labelled dataset.

        ``regret``, ``realised_regret``, ``reward``, ``spent``, ``rounds`` (and counts of events)
        with axes setting, environment, budget, instance, replicate, mark; ``status`` without mark
        (a :class:`~jaxbandits.Status`, −1 where an environment has fewer instances than the
        widest). The axis setting carries ``policy`` and every swept parameter as coordinates.
        """
        import xarray

        plan, arrays, data = self.plan, _arrays(self), dict[str, Any]()
        for name, x in arrays.items():
            unit_of, long_name = _NAMES.get(name, ("rounds", name))
            data[name] = (AXES, x, {"units": unit_of, "long_name": long_name})
        flags: dict[str, Any] = {"flag_values": np.array(list(Status), np.int8)}
        flags |= {"flag_meanings": " ".join(x.name.lower() for x in Status)}
        data["status"] = (AXES[:5], arrays["status"], {"long_name": "how the lane ended", **flags})
        about = {"title": plan.spec.title, "seed": int(plan.spec.seed), "over": plan.spec.over}
        about |= {**versions(), "platform": plan.platform}
        return xarray.Dataset(data, coords=_coordinates(plan), attrs={"about": json.dumps(about)})

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each cell of ``data``, with its variables.

        Regret and reward are in the environment's unit of reward, money in its unit of cost:
        ``.attrs["units"]``. ``status`` is a number, see :class:`~jaxbandits.Status`.
        """
        return _files.of_dataset(self.data, [*AXES, "policy"])

    @functools.cached_property
    def cases(self) -> Mapping[tuple[str, int], xarray.Dataset]:
        """By (environment, budget index): differences between settings, and which are clear."""
        # Settings come policy by policy.
        import xarray

        regrets = []
        for environment, budget in self.cells():
            results = (self.results[policy, environment, budget] for policy in self.policies)
            every = np.concatenate([result.regret.values[..., -1] for result in results])
            regrets.append(xarray.DataArray(every, dims=("setting", "instance", "replicate")))
        return dict(zip(self.cells(), cases_of(regrets, self.plan.spec.over), strict=True))

    def curve(self, policy: str, environment: str | None = None, budget_index: int = 0) -> Curve:
        """Final regret by one policy's parameters, in one environment and budget.

        ``environment`` may be left out if there is only one. ``budget_index`` is the position of
        the budget in ``Sweep.budgets``, from 0.
        """
        self.parameters(policy)
        if environment is None and len({name for name, _ in self.cells()}) == 1:
            environment = self.cells()[0][0]
        if environment is None or (environment, budget_index) not in self.plan.layouts:
            given = environment, budget_index
            budgets = self.data["budget"].values.tolist()
            at = [f", {i} for {x:g}" for i, x in enumerate(budgets) if x == budget_index]
            may_be = f"one of {self.cells()} (a position in budgets{''.join(at)})"
            raise bad("environment, budget_index", given, may_be)
        case, parameters = self.cases[environment, budget_index], self.plan.parameters[policy]
        return Curve.of(policy, case, parameters, self.rows(policy))

    def provenance(self) -> Provenance:
        """As :meth:`Result.provenance`, for all environments and budgets; differences become lists.

        ``digest`` is of the exact accounts of all of them.
        """
        records = {cell: result.provenance() for cell, result in self.results.items()}

        def together(values: Iterable[Any]) -> Any:
            apart = list({json.dumps(x): x for x in values}.values())
            return apart[0] if len(apart) == 1 else apart

        one_cell = {policy: records[policy, *self.cells()[0]] for policy in self.policies}
        names = next(iter(records.values()))
        joined = {name: together(record[name] for record in records.values()) for name in names}
        for name in ("environment", "made_by", "instances_digest"):
            words = joined[name]
            joined[name] = words if isinstance(words, str) else "; ".join(words)
        for name in ("policies", "parameters", "engines", "classes", "sources"):
            joined[name] = [x for record in one_cell.values() for x in record[name]]
        constraints = [record["constraint"] for record in records.values()]
        joined["constraint"] = {k: together(x[k] for x in constraints) for k in constraints[0]}
        joined["instance_ids"] = max((x["instance_ids"] for x in records.values()), key=len)
        joined["sizes"] = dict(zip(AXES, _shape(self.plan), strict=True))
        accounts = json.dumps([record["digest"] for record in records.values()])
        return Provenance(joined | {"digest": digest(accounts.encode())})

    @property
    def plot(self) -> SweepPlots:
        """Plots: ``plot.sensitivity()``, ``plot.regret()``, matplotlib figures."""
        from jaxbandits.sweeps.drawing import SweepPlots  # here: it imports matplotlib

        return SweepPlots(self)

    def rows(self, policy: str) -> range:
        """The rows of this policy along the axis ``setting``."""
        counts = {name: settings.count for name, settings in self.plan.policies.items()}
        first = sum(counts[name] for name in self.policies[: self.policies.index(policy)])
        return range(first, first + counts[policy])


# --- from blocks to results, and to a dataset ------------------------------------------------------------------


def gather(
    plan: SweepPlan, get: Callable[[int], Mapping[str, np.ndarray]], facts: dict[str, Any]
) -> SweepResult:
    """Results by unit; ``get(number)``: a block's accounts; ``facts``: of the ``About`` of all."""
    accounts: dict[str, dict[str, np.ndarray]] = {unit.name: {} for unit in plan.units}
    for block in plan.blocks:
        arrays, lanes = accounts[block.unit.name], block.unit.task.order.size
        for name, values in get(block.number).items():
            if name not in arrays:
                arrays[name] = np.empty((lanes, *values.shape[1:]), values.dtype)
            arrays[name][block.lanes] = values
    worlds = plan.environments.items()
    origins = {name: origin_of(world, plan.platform) | facts for name, world in worlds}
    results = {}
    for unit in plan.units:
        ledger, number = accounts.pop(unit.name), list(plan.policies).index(unit.policy)
        ended, origin = ledger.pop("ended").astype(np.int32), origins[unit.environment]
        cell = unit.policy, unit.environment, unit.budget
        results[cell] = labelled(ledger, ended, {}, unit.layout, number, unit.constraint, origin)
    return SweepResult(results, plan)


def _shape(plan: SweepPlan) -> tuple[int, ...]:
    """Sizes of :data:`AXES`; the instances are those of the widest environment."""
    settings = sum(of.count for of in plan.policies.values())
    widest = max(environment.instances for environment in plan.environments.values())
    worlds = len(plan.environments), len(plan.budgets)
    return settings, *worlds, widest, int(plan.spec.replicates), plan.shares.size


def _arrays(sweep: SweepResult) -> dict[str, np.ndarray]:
    """Variables of all cells, as :func:`_views` names them, along :data:`AXES`."""
    shape, environments = _shape(sweep.plan), list(sweep.plan.environments)
    arrays: dict[str, np.ndarray] = {}
    for (policy, environment, budget), result in sweep.results.items():
        rows = sweep.rows(policy)
        world, instances = environments.index(environment), slice(result.ended.shape[1])
        for name, values in _views(result).items():
            # Places that an environment has not, for it has fewer instances, stay NaN or −1
            absent = np.int8(-1) if name == "status" else np.nan
            if name not in arrays:
                arrays[name] = np.full(shape[: values.ndim + 2], absent)
            arrays[name][rows.start : rows.stop, world, budget, instances] = values
    return arrays


def _coordinates(plan: SweepPlan) -> dict[str, Any]:
    """Labels of :data:`AXES`; the axis setting has the policy and every swept parameter as well."""
    counts = {name: settings.count for name, settings in plan.policies.items()}
    labels = []  # of every setting: its policy, and its swept values
    for policy, count in counts.items():
        swept = plan.parameters[policy].items()
        texts = [", ".join(f"{name}={x[i]:.6g}" for name, x in swept) for i in range(count)]
        labels += [f"{policy} {text}".strip() if count > 1 else policy for text in texts]
    budgets = np.array(plan.budgets, np.float64)
    if plan.spec.budgets is None:  # the one end of the clock, NaN if instances differ in it
        parts = [ticks.join(unit.task.marks)[:, -1] for unit in plan.units]
        ends = np.unique(np.concatenate(parts))
        budgets = np.array([ticks.to_units(ends[0]) if ends.size == 1 else np.nan])
    clock = plan.units[0].task.constraint.clock_name
    share = {"units": "1", "long_name": f"share of the clock ({clock})"}
    of_setting = np.repeat(list(counts), list(counts.values()))
    ids = (np.arange(size, dtype=np.int32) for size in _shape(plan)[3:5])
    coords: dict[str, Any] = {
        "setting": labels,
        "policy": ("setting", of_setting, {"long_name": "policy"}),
        "environment": list(plan.environments),
        "budget": ("budget", budgets, {"long_name": "budget"}),
        "instance": ("instance", next(ids), {"long_name": "instance id"}),
        "replicate": ("replicate", next(ids), {"long_name": "replicate id"}),
        "mark": ("mark", plan.shares, share),
    }
    for name in dict.fromkeys(name for swept in plan.parameters.values() for name in swept):
        nothing = {policy: np.full(count, np.nan) for policy, count in counts.items()}
        of_each = [plan.parameters[policy].get(name, nothing[policy]) for policy in counts]
        coords[name] = ("setting", np.concatenate(of_each), {"long_name": f"parameter {name}"})
    return coords


def _views(result: Result) -> dict[str, np.ndarray]:
    """Variables of a cell, ``[setting, instance, replicate(, mark)]``, in the world's units."""
    names = ("regret", "realised_regret", "reward", "spent", "rounds")
    views = {name: getattr(result, name).values for name in names}
    if result.about.clock == "spent" and views["spent"].ndim > 4:  # the one by which the clock goes
        views["spent"] = ticks.to_units(result.ledger["clock"])
    views["status"] = result.ended
    for name, x in result.ledger.items():
        kind, _, rest = name.partition(":")
        if kind == "event":
            views[rest] = x
        elif kind == "audit":
            views[rest] = ticks.to_units(x)
    # Of several resources: a Result has them
    return {name: x for name, x in views.items() if x.ndim <= 4}
