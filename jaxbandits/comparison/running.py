"""Run a comparison: blocks through :func:`~jaxbandits.simulate`, results in the file's units."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Mapping, Sequence

import jax
import numpy as np

from jaxbandits._reports.progress import Progress, check_progress
from jaxbandits.comparison.arms_table import ArmsTable
from jaxbandits.comparison.collected import Part, collected
from jaxbandits.comparison.comparison import Comparison
from jaxbandits.comparison.grouping import Group
from jaxbandits.comparison.laid_out import constraint_of, policies_of, world_of
from jaxbandits.comparison.plan import ComparisonPlan, prepare
from jaxbandits.comparison.until import Until, look
from jaxbandits.core.protocol import Policy
from jaxbandits.simulation import simulate

_ROWS_AT_ONCE = 1 << 21  # (lane, mark) pairs in one call of simulate, about 90 bytes each
_GROWN = 1.02  # times as many runs, at least, before the next look
_TABLE_BYTES, _RUNS_AT_ONCE = 1 << 26, 250  # of a block, where every run has means of its own


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
    runs: int | None = None,
    until: str | None = None,
    max_runs: int | None = None,
    claim: str = "any",
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
    uncertainty: str | None = None,
    cost_cv: float | None = None,
    average_cost: float | None = None,
    progress: bool | str = False,
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
        runs: independent runs of each setting on each instance, 1 to 2³² − 1 (1000); left out with ``until``.
        until: ``"clear"``: play in batches until every pair of settings is clear; ``"best"``: until one setting is
            clearly ahead of every other. The chance of any false claim is at most 5 % over all looks, pairs and both
            claims (:func:`~jaxbandits.statistics.clear_pairs`); ``Comparison.clear`` has them. Runs are addressed, so
            the result is that of ``runs`` = as many as were played, bit for bit.
        max_runs: with ``until``: how many are played at most (1000).
        claim: with ``until``: which claim must be clear, that one earns more in ``"most runs"``, on ``"average"``, or
            ``"any"`` of the two.
        seed: 0 to 2³² − 1; the same seed gives the same numbers.
        noise: what a pull looks like, with means as in the file. ``"bernoulli"``: the whole bound or nothing, reward
            and cost independent (default for all files but logs). ``"beta"``: Beta distributed between 0 and the bound,
            independent. ``"empirical"``: a row of the arm's log, reward and cost together (default for logs, only for
            them). ``"clicks"``: a click brings one conversion or none, and costs its price, drawn uniformly around its
            mean (default for counts whose means are drawn, only for counts of conversions).
        beta_concentration: α + β > 0 of the Beta laws; larger is less noisy.
        last_pull: the pull that exceeds the budget ``"counts"`` or ``"forfeits"`` its reward.
        marks: at how many equally spaced shares of the budget to record the regret, or the shares, ending in 1.
        instances, reward_max, cost_max, columns, reward, prior, decimal, encoding: as in
            :func:`~jaxbandits.comparison.read_arms`; left out with a table.
        uncertainty: ``"means"``: the true means of each run are drawn from what the file's counts leave open (see
            :mod:`jaxbandits.comparison.posterior`); addressed by (instance, run, arm), the same for all policies.
            ``"given"``: they are those of the file. Default: drawn where the file has counts or is a log, unless the
            noise is ``"beta"``.
        cost_cv: coefficient of variation of one pull's cost; default what its days say, else 0.5.
        average_cost: play under an average-cost constraint (:class:`~jaxbandits.AverageCost`), in the file's unit per
            round, for budget / average_cost rounds, with a null arm; policies' ``c`` and ``horizon`` are set to it.
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
    stop = Until.checked(until, claim, max_runs, runs)
    plan = prepare(
        arms,
        budget,
        policies,
        runs=stop.max_runs if stop is not None else 1000 if runs is None else runs,
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
        uncertainty=uncertainty,
        cost_cv=cost_cv,
        average_cost=average_cost,
    )
    return run_plan(plan, progress=progress, until=stop)


def run_plan(plan: ComparisonPlan, *, progress: bool | str = False, until: Until | None = None) -> Comparison:
    """Simulate everything; with ``until``, until that is reached.

    Raises:
        InputError: ``until`` with one setting, or where there is no bound of what a run may earn.
        Interrupted: at Ctrl-C.

    Example:
        >>> import numpy as np
        >>> import jaxbandits as jb
        >>> from jaxbandits.comparison import ArmsTable, Instance, prepare, run_plan
        >>> ads = Instance("ads", ("a", "b"), np.array([0.2, 0.1]), np.array([0.5, 0.9]), 1.0, 1.0, None)
        >>> plan = prepare(ArmsTable("means", (ads,), (), "reward", "cost"), 20.0, jb.policies.OmegaUCB(), runs=8)
        >>> run_plan(plan).data["reward"].sizes["replicate"]
        8
    """
    check_progress(progress)
    if until is not None:
        until.check(plan)
    lanes = len(plan.settings) * len(plan.table.instances) * plan.runs
    blocks = [(group, runs) for group in plan.groups for runs in blocks_of(plan, group)]
    with Progress(progress, len(blocks) * len(plan.policies), lanes) as shown:
        try:
            if until is not None:
                return _until(plan, until, shown)
            return collected(plan, [(group, runs, _simulated(plan, group, runs, shown)) for group, runs in blocks])
        except KeyboardInterrupt:
            raise Interrupted(shown.done, shown.runs) from None


def _until(plan: ComparisonPlan, until: Until, shown: Progress) -> Comparison:
    """Batches of one size (so that nothing is compiled twice), and a look after each."""
    size = min([until.batch(plan.runs), *(len(blocks_of(plan, group)[0]) for group in plan.groups)])
    parts: list[Part] = []
    earned = np.zeros((len(plan.settings), len(plan.table.instances), plan.runs))
    looks, looked = 0, 0
    for first in range(0, plan.runs, size):
        runs = range(min(first, plan.runs - size), min(first + size, plan.runs))
        for group in plan.groups:
            parts.append((group, runs, _simulated(plan, group, runs, shown)))
            earned[:, list(group.rows), runs.start : runs.stop] = parts[-1][2]["reward"]
        if runs.stop < min(_GROWN * looked, plan.runs):
            continue
        looks, looked = looks + 1, runs.stop
        clear = look(plan, until, earned[..., :looked].mean(axis=1), looks)
        if clear.reached:
            break
    return collected(dataclasses.replace(plan, runs=runs.stop), parts, clear)


def blocks_of(plan: ComparisonPlan, group: Group) -> list[range]:
    """Replicates in equal blocks, so that the exact accounts of one block fit in memory.

    Where means are drawn, every run is a row of the environment's tables, whose shape is part of the compiled program:
    so all blocks have one size, and the last one plays some runs of the one before again, to the same bits.
    """
    values = plan.runs * len(plan.settings) * len(group.rows) * len(plan.shares)
    count = max(1, -(-values // _ROWS_AT_ONCE))
    if plan.posterior is not None:
        row = sum(leaf[0].nbytes for leaf in jax.tree.leaves(group.environment))
        count = max(count, -(-plan.runs * len(group.rows) * row // _TABLE_BYTES), -(-plan.runs // _RUNS_AT_ONCE))
    size = -(-plan.runs // min(count, plan.runs))
    if plan.posterior is None:
        return [range(first, min(first + size, plan.runs)) for first in range(0, plan.runs, size)]
    return [range(min(first, plan.runs - size), min(first + size, plan.runs)) for first in range(0, plan.runs, size)]


def _simulated(plan: ComparisonPlan, group: Group, runs: range, shown: Progress) -> dict[str, np.ndarray]:
    """Rewards, regret, … of one block in the file's units: ``[setting, instance, replicate(, mark or arm)]``."""
    rows = list(group.rows)
    drawn = plan.posterior is not None
    each = list(np.repeat(rows, len(runs))) if drawn else rows  # rows of the environment
    environment, policies = world_of(plan, group, runs), policies_of(plan, group, each)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\d+ of \d+ lanes ended")  # counted in the notes
        result = simulate(
            policies,
            environment,
            constraint_of(plan, each),
            key=jax.random.key(plan.seed),
            replicates=np.tile(runs, len(rows))[:, None] if drawn else runs,
            marks=plan.shares,
            instance_ids=each,
            instance_names=[plan.table.instances[row].name for row in each],
            progress=shown,
        )

    def by_run(x: np.ndarray) -> np.ndarray:
        return x.reshape(x.shape[0], len(rows), len(runs), *x.shape[3:])

    reward = np.array([plan.table.instances[row].reward_bound for row in rows])[None, :, None, None]
    cost = np.array([plan.table.instances[row].cost_bound for row in rows])[None, :, None, None]
    width = max(len(plan.table.instances[row].arms) for row in rows)
    means = [np.nan_to_num(x).reshape(len(rows), -1, x.shape[-1])[..., :width] for x in environment.values()]
    earned, pulls = by_run(result.reward.values) * reward, by_run(result.final["pulls"])[..., :width]
    violated = {} if plan.rounds is None else {"violation": by_run(result.violation.values)[..., -1] * cost[..., 0]}
    return violated | {
        "reward": earned[..., -1],
        "regret": by_run(result.regret.values) * reward,
        "pulls": pulls.sum(axis=-1),  # no rounds: a skip is none
        "spent": by_run(result.spent.values)[..., -1] * cost[..., 0],
        "ended": by_run(result.ended),
        "earned": earned.sum(axis=1),
        "arm pulls": pulls,
        "mean reward": means[0] * reward[0],
        "mean cost": means[1] * cost[0],
    }
