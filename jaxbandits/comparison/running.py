"""Run a comparison: blocks of runs through :func:`~jaxbandits.simulate`, put together in the file's units."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxbandits._progress import Progress
from jaxbandits.comparison.arms_table import ArmsTable
from jaxbandits.comparison.comparison import Accounts, Comparison
from jaxbandits.comparison.plan import ComparisonPlan, Group, block_size, prepare, takes_options
from jaxbandits.comparison.until import Clearness, look
from jaxbandits.comparison.worlds import run_arms
from jaxbandits.constraints import AverageCost, TotalBudget
from jaxbandits.core import ticks
from jaxbandits.core.protocol import Constraint, Policy, Status
from jaxbandits.environments.finite import FiniteArms, WithNullArm
from jaxbandits.simulation import simulate

_GROWN = 1.02  # times as many runs, at least, before the next look
_MOST_COUNTS = 1 << 27  # pull counts that are kept, 4 bytes each: of the first runs only, where there are more


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during :func:`~jaxbandits.comparison.compare`: ``done`` of ``runs`` runs were finished."""

    def __init__(self, done: int, runs: int):
        super().__init__(f"{done} of {runs} runs finished")
        self.done, self.runs = done, runs


@takes_options
def compare(
    arms: str | os.PathLike[str] | ArmsTable,
    budget: float | Sequence[float],
    policies: Policy | Sequence[Policy],
    *,
    progress: bool | str = False,
    **options: Any,
) -> Comparison:
    """Spend the budget on every instance of an arms file with every policy setting, many times, and rank them.

    A pull's reward and cost are r · reward_bound and c · cost_bound with r, c in [0, 1] drawn by the chosen noise, so
    that their means are those of the file. Each run starts with the whole budget and ends when it is spent. Its regret
    is max_k (μ^r_k / μ^c_k) · Σ_t μ^c_{a_t} − Σ_t μ^r_{a_t}, in the file's unit of reward. All settings meet the same
    world; an instance's world depends on the seed, its number in the file and the run only.

    Args:
        arms: an arms file (see :mod:`jaxbandits.comparison.arms_file`), or what
            :func:`~jaxbandits.comparison.read_arms` returned.
        budget: B > 0 for each instance, in the file's unit of cost; 2⁻²⁴ to 2³⁰ times the bound of the costs. Of a file
            with two costs a list of two, each in its own unit: a run ends when the first of them is spent, and its
            regret is against the fluid optimum of that share of both budgets. Policies must play several resources.
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
        beta_concentration: α + β > 0 of the Beta laws (4), for them only; larger is less noisy.
        last_pull: the pull that exceeds the budget ``"counts"`` or ``"forfeits"`` its reward.
        marks: at how many equally spaced shares of the budget to record the regret, or the shares, ending in 1.
        instances, reward_max, cost_max, columns, reward, prior, decimal, encoding, drop, keep, add: as in
            :func:`~jaxbandits.comparison.read_arms`; left out with a table.
        uncertainty: ``"means"``: the true means of each run are drawn from what the file's counts leave open (see
            :mod:`jaxbandits.comparison.worlds`); addressed by (instance, run, arm), the same for all policies.
            ``"given"``: they are those of the file. Default: drawn where the file has counts or is a log, unless the
            noise is ``"beta"``.
        cost_cv: coefficient of variation of one pull's cost; default what its days say, else 0.5.
        average_cost: play under an average-cost constraint (:class:`~jaxbandits.AverageCost`), in the file's unit per
            round, for budget / average_cost rounds, with a null arm; policies' ``c`` and ``horizon`` are set to it.
        progress: show a bar on stderr.

    Returns:
        A :class:`Comparison`, in the file's units; its ``report("DIR")`` writes it all down.

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
    return run_plan(prepare(arms, budget, policies, **options), progress=progress)


def run_plan(plan: ComparisonPlan, *, progress: bool | str = False) -> Comparison:
    """Simulate everything; with a stopping rule, until that is reached.

    Raises:
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
    rule, size, parts = plan.rule, block_size(plan), list[Part]()
    if rule is not None:
        size = min(size, rule.batch(plan.runs))
    blocks = [range(first, first + size) for first in (*range(0, plan.runs - size, size), plan.runs - size)]
    lanes = sum(len(each.settings) for each in plan.together) * len(plan.table.instances) * plan.runs
    tasks = sum(len(each.policies) for each in plan.together)
    earned = np.zeros((len(plan.settings), len(plan.table.instances), plan.runs if rule else 0))
    looks, looked, clear = 0, 0, None
    with Progress(progress, len(blocks) * len(plan.groups) * tasks, lanes) as shown:
        try:
            for runs in blocks:
                for group in plan.groups:
                    parts.append((group, runs, _simulated(plan, group, runs, shown)))
                    if rule is not None:
                        earned[:, list(group.rows), runs.start : runs.stop] = parts[-1][2][0]["reward"]
                # a look takes time with all runs so far: not after every batch where there are very many
                if rule is None or runs.stop < min(_GROWN * looked, plan.runs):
                    continue
                looks, looked = looks + 1, runs.stop
                clear = look(plan, rule, earned[..., :looked].mean(axis=1), looks)
                if clear.reached:
                    break
        except KeyboardInterrupt:
            raise Interrupted(shown.done, shown.runs) from None
        return gather(dataclasses.replace(plan, runs=runs.stop), parts, clear)


def world_of(plan: ComparisonPlan, group: Group, runs: Sequence[int]) -> FiniteArms | WithNullArm:
    """The arms of a group, a row an instance; where means are drawn, a row an instance in a run."""
    if plan.posterior is None:
        return group.environment
    drawn = [plan.posterior.instances[row].draw(plan.seed, row, runs) for row in group.rows]
    made = run_arms([plan.table.instances[row] for row in group.rows], drawn, plan.noise, plan.cost_cv)
    return made if plan.rounds is None else WithNullArm(made)


def _simulated(plan: ComparisonPlan, group: Group, runs: range, shown: Progress) -> list[dict[str, np.ndarray]]:
    """Rewards, regret, … of one block in the file's units: ``[setting, instance, replicate(, mark or arm)]``.

    Of the plan, and of its baselines if it has any.
    """
    rows, drawn = list(group.rows), plan.posterior is not None
    each = list(np.repeat(rows, len(runs))) if drawn else rows  # rows of the environment
    environment = world_of(plan, group, runs)
    constraint: Constraint = TotalBudget(plan.scaled_budgets[each], last_pull=plan.last_pull)
    if plan.rounds is not None:
        constraint = AverageCost(plan.scaled_average_costs[each], plan.rounds)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\d+ of \d+ lanes ended")  # counted in the notes
        result = simulate(
            [own.policy for part in plan.together for own in part.told(each, group.environment.spec)],
            environment,
            constraint,
            key=jax.random.key(plan.seed),
            replicates=np.tile(runs, len(rows))[:, None] if drawn else runs,
            marks=plan.shares,
            instance_ids=each,
            instance_names=[plan.table.instances[row].name for row in each],
            progress=shown,
        )

    def by_run(x: np.ndarray) -> np.ndarray:
        return x.reshape(x.shape[0], len(rows), len(runs), *x.shape[3:])

    instances = [plan.table.instances[row] for row in rows]
    reward, cost = (np.array([getattr(i, name) for i in instances]) for name in ("reward_bound", "cost_bound"))
    reward, cost = reward[None, :, None, None], cost[None, :, None]  # and of each resource, where there are several
    width = max(len(instance.arms) for instance in instances)
    means = [np.nan_to_num(x).reshape(len(rows), -1, *x.shape[1:])[:, :, :width] for x in environment.values()]
    spent, regret = by_run(result.spent.values)[:, :, :, -1] * cost, result.regret.values
    if len(plan.budgets) > 1:  # a run may end with money left: against what all budgets together are worth
        fluid = (result.best_rate * plan.scaled_budgets[each][:, 0])[None, :, None, None] * np.array(plan.shares)
        regret = fluid - result.ledger["expected_reward"] / ticks.ONE
    earned, pulls = by_run(result.reward.values) * reward, by_run(result.final["pulls"])[..., :width]
    violated = {} if plan.rounds is None else {"violation": by_run(result.violation.values)[..., -1] * cost}
    accounts = zip(plan.table.spent_units, np.moveaxis(spent.reshape(*spent.shape[:3], -1), -1, 0), strict=True)
    of_settings = (violated | dict(accounts)) | {
        "reward": earned[..., -1],
        "regret": by_run(regret) * reward,
        "pulls": pulls.sum(axis=-1),  # no rounds: a skip is none
        "ended": by_run(result.ended),
        "earned": earned.sum(axis=1),
        "arm pulls": pulls,
    }
    of_arms = {"mean reward": means[0] * reward[0], "mean cost": means[1] * cost[0][:, None]}
    ends = np.cumsum([len(part.settings) for part in plan.together])[:-1]
    apart = {name: np.split(x, ends) for name, x in of_settings.items()}
    return [of_arms | {name: x[n] for name, x in apart.items()} for n in range(len(plan.together))]


# --- Blocks of runs put together: one labelled result in the file's units


Part = tuple[Group, range, list[dict[str, np.ndarray]]]
"""A group of instances, the runs that were played of it, and what came out, of each plan that was played together."""


def gather(plan: ComparisonPlan, parts: list[Part], clear: Clearness | None = None) -> Comparison:
    """All runs of the plan; ``clear`` is what was found of it on the way, if it was looked at on the way.

    Blocks may share runs, which then have the same bits: whatever is put in place twice stays what it is.
    """
    import xarray

    shape = (len(plan.settings), len(plan.table.instances), plan.runs)
    made: dict[str, np.ndarray] = {}
    for group, runs, (values, *_) in parts:
        for name in ("reward", "regret", "pulls", *plan.table.spent_units, "ended", "violation"):
            if (value := values.get(name)) is not None:
                into = made.setdefault(name, np.zeros((*shape, *value.shape[3:]), value.dtype))
                into[:, list(group.rows), runs.start : runs.stop] = value
    axes = ("setting", "instance", "replicate", "mark")
    units = {"reward": plan.table.reward_unit, "regret": plan.table.reward_unit} | plan.table.spent_units
    ended, violation = made.pop("ended"), made.pop("violation", np.zeros(shape))
    labels = {
        "setting": list(plan.settings),
        "instance": [instance.name for instance in plan.table.instances],
        "replicate": np.arange(plan.runs),
        "mark": list(plan.shares),
    }
    data = {name: (axes[: x.ndim], x, {"units": units.get(name, name)}) for name, x in made.items()}
    baselines = None
    if plan.baselines is not None:
        theirs = [(group, runs, rest) for group, runs, (_, *rest) in parts]
        baselines = gather(dataclasses.replace(plan.baselines, runs=plan.runs), theirs)
    usual = Status.EXHAUSTED if plan.rounds is None else Status.HORIZON
    notes = [
        f"{int((ended == status).sum())} of {ended.size} runs ended by {status.name.lower()}, not with the budget"
        for status in Status
        if status != usual and (ended == status).any()
    ]
    broken = {  # settings that broke the average-cost bound in some round, and so had more to spend than others
        name: f"{name} broke the bound of {plan.average_cost:g} a round on average in {int((of > 0).sum()):,} of "
        f"{of.size:,} runs, by {of.max():.4g} {plan.table.cost_unit} at most"
        for name, of in zip(plan.settings, violation, strict=True)
        if (of > 0).any()
    }
    return Comparison(
        data=xarray.Dataset(data, coords=labels),
        plan=plan,
        accounts=_accounts(plan, parts),
        play=run_plan,
        notes=(*notes, *broken.values()),
        broken=frozenset(broken),
        clear=clear,
        baselines=baselines,
    )


def _accounts(plan: ComparisonPlan, parts: list[Part]) -> Accounts:
    """Pulls and true means of each arm, of as many runs as are kept; rewards at each mark, summed over instances."""
    settings, instances = len(plan.settings), len(plan.table.instances)
    arms = max(len(instance.arms) for instance in plan.table.instances)
    kept = max(1, min(plan.runs, _MOST_COUNTS // (settings * instances * arms)))
    of_run = kept if plan.posterior is not None else 1
    pulls = np.zeros((settings, instances, kept, arms), np.int32)
    several = plan.table.instances[0].mean_cost.shape[1:]
    means = [np.zeros((instances, of_run, arms, *more)) for more in ((), several)]
    earned = np.zeros((len(plan.groups), settings, plan.runs, len(plan.shares)))
    for group, runs, (values, *_) in parts:
        rows, width, stop = list(group.rows), values["arm pulls"].shape[-1], min(runs.stop, kept)
        earned[plan.groups.index(group), :, runs.start : runs.stop] = values["earned"]
        if (many := stop - runs.start) > 0:
            pulls[:, rows, runs.start : stop, :width] = values["arm pulls"][:, :, :many]
            these = slice(runs.start, stop) if of_run > 1 else slice(0, 1)
            for into, name in zip(means, ("mean reward", "mean cost"), strict=True):
                into[rows, these, :width] = values[name][:, : many if of_run > 1 else 1]
    return Accounts(pulls, means[0], means[1], earned.sum(axis=0))
