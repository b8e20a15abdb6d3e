"""Blocks of runs put together: one labelled result in the file's units."""

from __future__ import annotations

import numpy as np

from jaxbandits.comparison.accounts import Accounts, kept_runs
from jaxbandits.comparison.comparison import Comparison
from jaxbandits.comparison.grouping import Group
from jaxbandits.comparison.plan import ComparisonPlan
from jaxbandits.comparison.until import Clearness
from jaxbandits.core.protocol import Status

Part = tuple[Group, range, dict[str, np.ndarray]]
"""A group of instances, the runs that were played of it, and what came out."""


def collected(plan: ComparisonPlan, parts: list[Part], clear: Clearness | None = None) -> Comparison:
    """All runs of the plan; ``clear`` is what was found of it on the way, if it was looked at on the way."""
    import xarray

    shape = (len(plan.settings), len(plan.table.instances), plan.runs)
    made: dict[str, np.ndarray] = {}
    for group, runs, values in parts:
        for name in ("reward", "regret", "pulls", "spent", "ended", "violation"):
            if (value := values.get(name)) is None:
                continue
            into = made.setdefault(name, np.zeros((*shape, *value.shape[3:]), value.dtype))
            into[:, list(group.rows), runs.start : runs.stop] = value
    axes = ("setting", "instance", "replicate", "mark")
    units = {"reward": plan.table.reward_unit, "regret": plan.table.reward_unit, "spent": plan.table.cost_unit}
    ended, violation = made.pop("ended"), made.pop("violation", None)
    data = xarray.Dataset(
        {name: (axes[: x.ndim], x, {"units": units.get(name, name)}) for name, x in made.items()},
        coords={
            "setting": list(plan.settings),
            "instance": [instance.name for instance in plan.table.instances],
            "replicate": np.arange(plan.runs),
            "mark": list(plan.shares),
        },
    )
    usual = Status.EXHAUSTED if plan.rounds is None else Status.HORIZON
    notes = tuple(
        f"{int((ended == status).sum())} of {ended.size} runs ended by {status.name.lower()}, not with the budget"
        for status in Status
        if status != usual and (ended == status).any()
    )
    broken = {} if violation is None else _broken(plan, violation)
    return Comparison(data, plan, (*notes, *broken.values()), _accounts(plan, parts), frozenset(broken), clear)


def _broken(plan: ComparisonPlan, violation: np.ndarray) -> dict[str, str]:
    """Settings that broke the average-cost bound in some round, and so had more to spend than others; in words."""
    return {
        name: f"{name} broke the bound of {plan.average_cost:g} a round on average in {int((of > 0).sum()):,} of "
        f"{of.size:,} runs, by {of.max():.4g} {plan.table.cost_unit} at most"
        for name, of in zip(plan.settings, violation, strict=True)
        if (of > 0).any()
    }


def _accounts(plan: ComparisonPlan, parts: list[Part]) -> Accounts:
    settings, instances = len(plan.settings), len(plan.table.instances)
    arms = max(len(instance.arms) for instance in plan.table.instances)
    kept = kept_runs(settings, instances, plan.runs, arms)
    of_run = kept if plan.posterior is not None else 1
    pulls = np.zeros((settings, instances, kept, arms), np.int32)
    means = np.zeros((2, instances, of_run, arms))
    by_group: dict[int, np.ndarray] = {}
    for group, runs, values in parts:
        rows, width, stop = list(group.rows), values["arm pulls"].shape[-1], min(runs.stop, kept)
        earned = by_group.setdefault(id(group), np.zeros((settings, plan.runs, len(plan.shares))))
        earned[:, runs.start : runs.stop] = values["earned"]
        if (many := stop - runs.start) > 0:
            pulls[:, rows, runs.start : stop, :width] = values["arm pulls"][:, :, :many]
            these = slice(runs.start, stop) if of_run > 1 else slice(0, 1)
            for into, name in zip(means, ("mean reward", "mean cost"), strict=True):
                into[rows, these, :width] = values[name][:, : many if of_run > 1 else 1]
    return Accounts(pulls, means[0], means[1], np.sum(list(by_group.values()), axis=0))
