"""What a sweep found: a result for each cell, regret against parameters, recommended values."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from jaxbandits.statistics import Estimate, dominance, mean
from jaxbandits.sweeps.spec import SweepPlan

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,unused-ignore]
    import xarray
    from matplotlib.figure import Figure

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


def cases_of(regrets: Sequence[xarray.DataArray], over: str) -> list[xarray.Dataset]:
    """All differences between the settings of each of several cases, ``[setting, against]``, and
    the ``regret`` of every run that they are of.

    With a confidence of at least 95 % all intervals hold at once, in all cases
    (:func:`~jaxbandits.statistics.dominance`), so the least mean may be looked for first.
    """
    level = 1 - (1 - LEVEL) / len(regrets)
    return [dominance(x, over=over, level=level).assign(regret=x) for x in regrets]


@dataclasses.dataclass(frozen=True)
class Curve:
    """Regret against the parameters of one policy.

    The settings that ``indistinguishable`` names contain the truly best one of the grid with a
    confidence of at least 95 %: a setting is left out only if it is clearly worse than the least
    mean.

    Attributes:
        parameters: values of each swept parameter, ``[setting]``.
        regret: means, each interval by itself, ``[setting]``.
        best: the setting with the least mean.
        apart: the paired ``difference`` to the best, its ``low`` and ``high``, ``[setting]``; all
            intervals of the report hold at once.
        warnings: of the regret at the best setting, as :func:`jaxbandits.statistics.mean` says
            them.
    """

    policy: str
    parameters: Mapping[str, np.ndarray]
    regret: Estimate
    best: int
    apart: xarray.Dataset
    warnings: tuple[str, ...] = ()

    @staticmethod
    def of(
        policy: str,
        case: xarray.Dataset,
        parameters: Mapping[str, np.ndarray],
        rows: Sequence[int] | None = None,
    ) -> Curve:
        """From the settings ``rows`` (all) of a case; swept ``parameters``: ``[setting]``."""
        own = case if rows is None else case.isel(setting=rows, against=rows)
        regret = mean(own["regret"], over=case.attrs["over"], level=LEVEL)
        best = int(np.argmin(regret.value.values))
        return Curve(
            policy=policy,
            parameters=parameters,
            regret=regret,
            best=best,
            apart=own.isel(against=best),
            warnings=mean(own["regret"].isel(setting=best), over=case.attrs["over"]).warnings,
        )

    def __repr__(self) -> str:
        end = str(self.regret.value.values[self.best].round(4))
        return f"Curve({self.policy}: {self.recommendation()}; regret {end})"

    @property
    def indistinguishable(self) -> np.ndarray:
        """Settings not clearly worse than the best, ``bool[setting]``; all if one run."""
        return ~self.apart["larger"].values

    @property
    def has_intervals(self) -> bool:
        """Are there several runs (or sampled instances) behind each mean?"""
        return bool(np.isfinite(self.regret.low).all())

    @property
    def all_equal(self) -> bool:
        """Does every run have the same regret with every value?"""
        ends = self.apart["low"].values, self.apart["high"].values
        return (
            self.has_intervals
            and self.indistinguishable.size > 1
            and not any(end.any() for end in ends)
        )

    @property
    def at_edge(self) -> list[str]:
        """Parameters whose best value is the smallest or largest of several that are not all equal."""
        if self.all_equal:
            return []
        best = {name: x[self.best] for name, x in self.parameters.items() if np.unique(x).size > 1}
        return [
            name
            for name, at in best.items()
            if at in (self.parameters[name].min(), self.parameters[name].max())
        ]

    def recommendation(self) -> str:
        """In words: ``rho = 0.22; not clearly worse: 0.12 to 0.31``."""
        best_value = ", ".join(
            f"{name} = {x[self.best]:.3g}" for name, x in self.parameters.items()
        )
        if not self.has_intervals:
            return (
                f"{best_value} has the least regret of one run, which says nothing about the others"
            )
        if self.all_equal:
            return f"all values of {' and '.join(self.parameters)} are equal: the same regret in every run"
        not_worse = self.indistinguishable
        if len(self.parameters) != 1:
            others = f"{not_worse.sum() - 1} of the other {not_worse.size - 1} settings"
            return f"{best_value}; not clearly worse: {others}"
        (x,) = self.parameters.values()
        if not_worse.sum() == 1:
            return f"{best_value}, clearly better than every other value"
        return f"{best_value}; not clearly worse: {_stretches(x, not_worse)}"


def _stretches(x: np.ndarray, members: np.ndarray) -> str:
    """``0.12 to 0.31``; with gaps ``0.12 to 0.18 and 0.31``."""
    order = np.argsort(x)
    x, members = x[order], members[order]
    edges = np.flatnonzero(np.diff(np.concatenate([[0], members.astype(int), [0]])))
    parts = [
        f"{x[first]:.3g}" if first + 1 == last else f"{x[first]:.3g} to {x[last - 1]:.3g}"
        for first, last in zip(edges[::2], edges[1::2], strict=True)
    ]
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + f" and {parts[-1]}"


@dataclasses.dataclass(frozen=True)
class SweepResult(Shown):
    """All accounts of a sweep.

    Attributes:
        results: for each policy, environment and number of the budget what
            :func:`~jaxbandits.simulate` would have given: ``results["OmegaUCB", "ten arms",
            0].regret``. Final values (``pulls``) are not kept.
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
        """The best value of every policy in every case."""
        budgets, rows = self.data["budget"].values, []
        for (environment, budget), policy in itertools.product(self.cells(), self.policies):
            curve = self.curve(policy, environment, budget)
            end = f"{float(curve.regret.value[curve.best]):,.5g}"
            value = curve.recommendation() if self.parameters(policy) else ""
            rows.append([environment, f"{budgets[budget]:,.6g}", policy, value, end])
        return Table(("environment", "budget", "policy", "recommended", "regret at the end"), rows)

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

    @functools.cached_property
    def data(self) -> xarray.Dataset:
        """All results in one labelled dataset.

        ``regret``, ``realised_regret``, ``reward``, ``spent``, ``rounds`` (and counts of events)
        with axes setting, environment, budget, instance, replicate, mark; ``status`` without mark
        (a :class:`~jaxbandits.Status`, −1 where an environment has fewer instances than the
        widest). The axis setting carries ``policy`` and every swept parameter as coordinates.
        """
        return _dataset(self)

    def to_pandas(self) -> pandas.DataFrame:
        """One row for each setting, environment, budget, instance, replicate and mark, with the
        variables of ``data``.

        Regret and reward are in the environment's unit of reward, money in its unit of cost:
        ``.attrs["units"]``. ``status`` is a number, see :class:`~jaxbandits.Status`.
        """
        return _files.of_dataset(self.data, [*AXES, "policy"])

    @functools.cached_property
    def cases(self) -> Mapping[tuple[str, int], xarray.Dataset]:
        """Per (environment, budget number): differences between settings, and what is clear."""
        # Settings come policy by policy.
        import xarray

        regrets = []
        for environment, budget in self.cells():
            parts = [
                self.results[policy, environment, budget].regret.values[..., -1]
                for policy in self.policies
            ]
            regrets.append(
                xarray.DataArray(np.concatenate(parts), dims=("setting", "instance", "replicate"))
            )
        return dict(zip(self.cells(), cases_of(regrets, self.plan.spec.over), strict=True))

    def curve(self, policy: str, environment: str | None = None, budget_index: int = 0) -> Curve:
        """Regret at the end against one policy's parameters, in one environment and budget.

        ``environment`` may be left out if there is only one. ``budget_index`` is the position of
        the budget in ``Sweep.budgets``, from 0.
        """
        self.parameters(policy)
        if environment is None and len({name for name, _ in self.cells()}) == 1:
            environment = self.cells()[0][0]
        if environment is None or (environment, budget_index) not in self.plan.layouts:
            given = environment, budget_index
            raise bad("environment, budget_index", given, f"one of {self.cells()}")
        return Curve.of(
            policy,
            self.cases[environment, budget_index],
            self.plan.parameters[policy],
            self.rows(policy),
        )

    def provenance(self) -> Provenance:
        """As :meth:`Result.provenance`, of all worlds and budgets: what differs between them is a list.

        ``digest`` is of the exact accounts of all of them.
        """
        records = {cell: result.provenance() for cell, result in self.results.items()}

        def together(values: Iterable[Any]) -> Any:
            apart = list({json.dumps(x): x for x in values}.values())
            return apart[0] if len(apart) == 1 else apart

        one_cell = {policy: records[policy, *self.cells()[0]] for policy in self.policies}
        joined: dict[str, Any] = {
            name: together(record[name] for record in records.values())
            for name in next(iter(records.values()))
        }
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
        """Pictures: ``plot.sensitivity()``, a matplotlib figure."""
        return SweepPlots(self)

    def difference(
        self, first: Curve, second: Curve, environment: str, budget_index: int = 0
    ) -> xarray.Dataset:
        """Regret of one policy at its best value minus that of another at its own, paired: the
        ``difference``, its ``low`` and ``high``, and whether it is ``clear``.
        """
        row, column = (self.rows(curve.policy)[curve.best] for curve in (first, second))
        return self.cases[environment, budget_index].isel(setting=row, against=column)

    def rows(self, policy: str) -> range:
        """Rows of this policy along the axis ``setting``."""
        counts = {name: settings.count for name, settings in self.plan.policies.items()}
        first = sum(counts[name] for name in self.policies[: self.policies.index(policy)])
        return range(first, first + counts[policy])


class SweepPlots:
    """Pictures of a sweep: ``result.plot``."""

    def __init__(self, result: SweepResult):
        self._result = result

    def sensitivity(
        self,
        parameter: str | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        width: float | str | None = None,
    ) -> Figure:
        """How much worse than the best each value of a parameter is, of every policy that sweeps it
        alone; a panel for each environment and budget.

        Bars are the paired intervals of the difference to the best setting of the panel, all of the
        sweep at once. A point is hollow if its whole bar lies above 0, which is clearly worse; a
        star is a policy's best value.

        Args:
            parameter: its name; None: the only one there is.
            path, width: as in ``result.plot.regret``.

        Raises:
            InputError: a parameter that no policy sweeps alone, several of them and none said,
                another ending or width.

        Example:
            >>> import jax
            >>> import jaxbandits as jb
            >>> sweep = jb.sweep(jb.Sweep(
            ...     policies=jb.policies.OmegaUCB(rho=[0.25, 1.0, 4.0]), over="instance", marks=1,
            ...     environments=jb.environments.random_bernoulli(jax.random.key(0), instances=8, arms=3),
            ...     constraint=jb.TotalBudget(20.0, last_pull="counts")))
            >>> figure = sweep.plot.sensitivity(width="column")
            >>> figure.get_size_inches()[0].item(), figure.axes[0].get_xlabel()
            (3.25, 'ρ, log scale')
        """
        from jaxbandits.sweeps.drawing import curves  # here: it imports matplotlib

        swept = {policy: self._result.parameters(policy) for policy in self._result.policies}
        alone = {policy: names[0] for policy, names in swept.items() if len(names) == 1}
        choices = list(dict.fromkeys(alone.values()))
        name = choices[0] if parameter is None and len(choices) == 1 else parameter
        if name not in choices:
            raise bad(
                "parameter",
                parameter,
                f"one of {', '.join(choices) or 'none: no policy sweeps one alone'}",
            )
        inches = _files.inches_of(width)
        figure = curves(
            self._result,
            name,
            [policy for policy, of in alone.items() if of == name],
            inches or 12.0,
        )
        return _files.finished(figure, path, width)


# --- from blocks to results, and to a dataset ------------------------------------------------------------------


def gather(plan: SweepPlan, get: Callable[[int], Mapping[str, np.ndarray]]) -> SweepResult:
    """A result for each unit of the plan; ``get(number)`` returns the accounts of a block."""
    accounts: dict[str, dict[str, np.ndarray]] = {unit.name: {} for unit in plan.units}
    for block in plan.blocks:
        arrays, lanes = accounts[block.unit.name], block.unit.task.order.size
        for name, values in get(block.number).items():
            if name not in arrays:
                arrays[name] = np.empty((lanes, *values.shape[1:]), values.dtype)
            arrays[name][block.lanes] = values
    origins = {
        name: origin_of(environment, plan.platform)
        for name, environment in plan.environments.items()
    }
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


def _dataset(sweep: SweepResult) -> xarray.Dataset:
    import xarray

    plan, shape = sweep.plan, _shape(sweep.plan)
    counts = {name: settings.count for name, settings in plan.policies.items()}
    environments, arrays = list(plan.environments), dict[str, np.ndarray]()
    for (policy, environment, budget), result in sweep.results.items():
        rows = sweep.rows(policy)
        at = (
            slice(rows.start, rows.stop),
            environments.index(environment),
            budget,
            slice(result.ended.shape[1]),
        )
        for name, values in _views(result).items():
            # Places that an environment has not, for it has fewer instances, stay NaN or −1
            if name not in arrays:
                arrays[name] = np.full(
                    shape[: values.ndim + 2], np.int8(-1) if name == "status" else np.nan
                )
            arrays[name][at] = values
    labels = []  # of every setting: its policy, and its swept values
    for policy, count in counts.items():
        swept = plan.parameters[policy].items()
        texts = [", ".join(f"{name}={x[i]:.6g}" for name, x in swept) for i in range(count)]
        labels += [f"{policy} {text}".strip() if count > 1 else policy for text in texts]
    budgets = np.array(plan.budgets, np.float64)
    if plan.spec.budgets is None:  # the one end of the clock, NaN if instances differ in it
        ends = np.unique(
            np.concatenate([ticks.join(unit.task.marks)[:, -1] for unit in plan.units])
        )
        budgets = np.array([ticks.to_units(ends[0]) if ends.size == 1 else np.nan])
    clock = plan.units[0].task.constraint.clock_name
    coords: dict[str, Any] = {
        "setting": labels,
        "policy": (
            "setting",
            np.repeat(list(counts), list(counts.values())),
            {"long_name": "policy"},
        ),
        "environment": environments,
        "budget": ("budget", budgets, {"long_name": "budget"}),
        "instance": ("instance", np.arange(shape[3], dtype=np.int32), {"long_name": "instance id"}),
        "replicate": (
            "replicate",
            np.arange(shape[4], dtype=np.int32),
            {"long_name": "replicate id"},
        ),
        "mark": ("mark", plan.shares, {"units": "1", "long_name": f"share of the clock ({clock})"}),
    }
    for name in dict.fromkeys(name for swept in plan.parameters.values() for name in swept):
        of_each = [
            plan.parameters[policy].get(name, np.full(count, np.nan))
            for policy, count in counts.items()
        ]
        coords[name] = ("setting", np.concatenate(of_each), {"long_name": f"parameter {name}"})
    data: dict[str, Any] = {}
    for name, x in arrays.items():
        unit_of, long_name = _NAMES.get(name, ("rounds", name))
        data[name] = (AXES, x, {"units": unit_of, "long_name": long_name})
    flags = {
        "flag_values": np.array(list(Status), np.int8),
        "flag_meanings": " ".join(x.name.lower() for x in Status),
    }
    data["status"] = (AXES[:5], arrays["status"], {"long_name": "how the lane ended", **flags})
    about = {"title": plan.spec.title, "seed": int(plan.spec.seed), "over": plan.spec.over}
    about |= {**versions(), "platform": plan.platform}
    return xarray.Dataset(data, coords=coords, attrs={"about": json.dumps(about)})


def _views(result: Result) -> dict[str, np.ndarray]:
    """Variables of a cell, ``[setting, instance, replicate(, mark)]``, in the world's units."""
    clock_is_money = result.about.clock == "spent"
    names = ("regret", "realised_regret", "reward", "spent", "rounds")
    views = {name: getattr(result, name).values for name in names}
    if clock_is_money:  # of several resources the one by which the clock goes
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
