"""Run a comparison: blocks through :func:`~jaxbandits.simulate`, results in the file's units."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence

import jax
import numpy as np

from jaxbandits._reports.progress import Progress, check_progress
from jaxbandits.comparison.arms_table import ArmsTable, Instance
from jaxbandits.comparison.comparison import Comparison
from jaxbandits.comparison.grouping import Group
from jaxbandits.comparison.plan import ComparisonPlan, prepare
from jaxbandits.constraints import TotalBudget
from jaxbandits.core.protocol import Policy, Status
from jaxbandits.core.settings import of_instances
from jaxbandits.result import Result
from jaxbandits.simulation import simulate

_ROWS_AT_ONCE = 1 << 21  # (lane, mark) pairs in one call of simulate, about 90 bytes each


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during :func:`~jaxbandits.comparison.compare`: ``done`` of ``runs`` runs were finished."""

    def __init__(self, done: int, runs: int):
        super().__init__(f"{done} of {runs} runs finished")
        self.done, self.runs = done, runs


def compare(
    arms: str | os.PathLike[str] | ArmsTable,
    budget: float,
    policies: Policy | Sequence[Policy],
    *,
    runs: int = 1000,
    seed: int = 0,
    noise: str | None = None,
    beta_concentration: float = 4.0,
    last_pull: str = "counts",
    marks: int | Sequence[float] = 50,
    instances: str = "published",
    reward_max: float | None = None,
    cost_max: float | None = None,
    columns: Mapping[str, str] | None = None,
    reward: str | None = None,
    prior: float | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    progress: bool = False,
) -> Comparison:
    """Spend the budget on every instance of an arms file with every policy setting, many times, and rank them.

    A pull's reward and cost are r · reward_bound and c · cost_bound with r, c in [0, 1] drawn by the chosen noise, so
    that their means are those of the file. Each run starts with the whole budget and ends when it is spent. Its regret
    is max_k (μ^r_k / μ^c_k) · Σ_t μ^c_{a_t} − Σ_t μ^r_{a_t}, in the file's unit of reward. All settings meet the same
    world; an instance's world depends on the seed, its number in the file and the run only.

    Args:
        arms: an arms file (see :mod:`jaxbandits.comparison.arms_file`), or what
            :func:`~jaxbandits.comparison.read_arms` returned.
        budget: B > 0 for each instance, in the file's unit of cost; 2⁻²⁴ to 2³⁰ times the bound of the costs.
        policies: one policy for finitely many arms or a list; a parameter that is an array makes several settings.
        runs: independent runs of each setting on each instance, 1 to 2³² − 1.
        seed: 0 to 2³² − 1; the same seed gives the same numbers.
        noise: what a pull looks like, with means as in the file. ``"bernoulli"``: the whole bound or nothing, reward
            and cost independent (default for all files but logs). ``"beta"``: Beta distributed between 0 and the bound,
            independent. ``"empirical"``: a row of the arm's log, reward and cost together (default for logs, only for
            them).
        beta_concentration: α + β > 0 of the Beta laws; larger is less noisy.
        last_pull: the pull that exceeds the budget ``"counts"`` or ``"forfeits"`` its reward.
        marks: at how many equally spaced shares of the budget to record the regret, or the shares, ending in 1.
        instances, reward_max, cost_max, columns, reward, prior, decimal, encoding: as in
            :func:`~jaxbandits.comparison.read_arms`; left out with a table.
        progress: show a bar on stderr.

    Returns:
        A :class:`Comparison`, in the file's units.

    Raises:
        InputError: naming the argument, its value and what it may be, before anything is compiled.
        Interrupted: at Ctrl-C, with the number of finished runs.

    Example:
        >>> import numpy as np
        >>> from jaxbandits.comparison import ArmsTable, Instance
        >>> from jaxbandits.policies import BudgetedThompson, OmegaUCB
        >>> ads = Instance("ads", ("a", "b"), np.array([0.2, 0.1]), np.array([0.5, 0.9]), 1.0, 1.0, None)
        >>> table = ArmsTable("means", (ads,), (), "reward", "cost")
        >>> found = compare(table, 20.0, [OmegaUCB(rho=[0.25, 1.0]), BudgetedThompson()], runs=8)
        >>> found.data["reward"].sizes["setting"], [row["rank"] for row in found.ranking()]
        (3, [1, 2, 3])
    """
    plan = prepare(
        arms,
        budget,
        policies,
        runs=runs,
        seed=seed,
        noise=noise,
        beta_concentration=beta_concentration,
        last_pull=last_pull,
        marks=marks,
        instances=instances,
        reward_max=reward_max,
        cost_max=cost_max,
        columns=columns,
        reward=reward,
        prior=prior,
        decimal=decimal,
        encoding=encoding,
    )
    return run_plan(plan, progress=progress)


def _in_user_units(result: Result, instances: Sequence[Instance]) -> dict[str, np.ndarray]:
    reward = np.array([instance.reward_bound for instance in instances])[None, :, None]
    cost = np.array([instance.cost_bound for instance in instances])[None, :, None]
    return {
        "reward": result.reward.values[..., -1] * reward,
        "regret": result.regret.values * reward[..., None],
        "pulls": result.rounds.values[..., -1],
        "spent": result.spent.values[..., -1] * cost,
        "ended": result.ended,
    }


def run_plan(plan: ComparisonPlan, *, progress: bool = False) -> Comparison:
    """Simulate everything.

    Raises:
        Interrupted: at Ctrl-C.
    """
    check_progress(progress)
    lanes = len(plan.settings) * len(plan.table.instances) * plan.runs
    blocks = [(group, runs) for group in plan.groups for runs in _blocks(plan, group)]
    with Progress(progress, len(blocks) * len(plan.policies), lanes) as shown:
        try:
            return _collect(plan, [(group, runs, _simulated(plan, group, runs, shown)) for group, runs in blocks])
        except KeyboardInterrupt:
            raise Interrupted(shown.done, shown.runs) from None


def _blocks(plan: ComparisonPlan, group: Group) -> list[range]:
    """Replicates in equal blocks, so that the exact accounts of one block fit in memory."""
    values = plan.runs * len(plan.settings) * len(group.rows) * len(plan.shares)
    size = -(-plan.runs // max(1, -(-values // _ROWS_AT_ONCE)))
    return [range(first, min(first + size, plan.runs)) for first in range(0, plan.runs, size)]


def _simulated(plan: ComparisonPlan, group: Group, runs: range, shown: Progress) -> dict[str, np.ndarray]:
    """Rewards, regret, … of one block in the file's units: ``[setting, instance, replicate(, mark)]``."""
    rows = list(group.rows)
    instances = [plan.table.instances[row] for row in rows]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\d+ of \d+ lanes ended")  # counted in the notes
        result = simulate(
            [of_instances(policy, rows) for policy in plan.policies],
            group.environment,
            TotalBudget(plan.scaled_budgets[rows], last_pull=plan.last_pull),
            key=jax.random.key(plan.seed),
            replicates=runs,
            marks=plan.shares,
            instance_ids=rows,
            instance_names=[instance.name for instance in instances],
            progress=shown,
        )
    return _in_user_units(result, instances)


def _collect(plan: ComparisonPlan, parts: list[tuple[Group, range, dict[str, np.ndarray]]]) -> Comparison:
    import xarray

    shape = (len(plan.settings), len(plan.table.instances), plan.runs)
    made: dict[str, np.ndarray] = {}
    for group, runs, values in parts:
        for name, value in values.items():
            into = made.setdefault(name, np.zeros((*shape, *value.shape[3:]), value.dtype))
            into[:, list(group.rows), runs.start : runs.stop] = value
    axes = ("setting", "instance", "replicate", "mark")
    units = {"reward": plan.table.reward_unit, "regret": plan.table.reward_unit, "spent": plan.table.cost_unit}
    ended = made.pop("ended")
    data = xarray.Dataset(
        {name: (axes[: x.ndim], x, {"units": units.get(name, name)}) for name, x in made.items()},
        coords={
            "setting": list(plan.settings),
            "instance": [instance.name for instance in plan.table.instances],
            "replicate": np.arange(plan.runs),
            "mark": list(plan.shares),
        },
    )
    notes = tuple(
        f"{int((ended == status).sum())} of {ended.size} runs ended by {status.name.lower()}, not with the budget"
        for status in Status
        if status != Status.EXHAUSTED and (ended == status).any()
    )
    return Comparison(data, plan, notes)
