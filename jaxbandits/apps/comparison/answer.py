"""What the best setting would earn with the budget, beside fixed splits, with intervals.

An answer is a labelled Dataset; :mod:`~jaxbandits.apps.comparison.report` writes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandits.apps.comparison import plan as plans
from jaxbandits.apps.comparison.arms_table import FloatArray
from jaxbandits.apps.comparison.comparison import Comparison, run_plan
from jaxbandits.apps.comparison.intervals import estimates
from jaxbandits.apps.comparison.plan import ComparisonPlan
from jaxbandits.statistics import dominance

if TYPE_CHECKING:
    import xarray

FEWEST = 20  # runs that say where a further one lies: fewer cover less than 9 in 10
_DRAWS, _MOST_DRAWN, _DRAWN_AT_ONCE = 1000, 1 << 26, 1 << 22
_FEW_PULLS, _FEW_ROWS, _OVERSHOOT, _FEW_CLICKS, _MUCH = 10, 5, 0.05, 30, 0.2


class Spread(NamedTuple):
    """A quantity of a run: its mean over n runs, and an interval for one more run.

    With x₍₁₎ ≤ … ≤ x₍ₙ₎ it is from x₍ᵣ₎ to x₍ₙ₊₁₋ᵣ₎, r = max(1, ⌊(n + 1) / 40⌋). Runs are drawn
    alike, so a further one is in any gap between them with the same probability, whatever its law:

    .. math:: P(x_{(r)} \\le X \\le x_{(n+1-r)}) \\ge 1 - \\frac{2 r}{n + 1},

    which is 95 to 97.5 % from 39 runs on, and 90 to 95 % with 20 to 38. Quantiles of the sample
    itself would cover less.

    Source: Wilks (1941), Determination of sample sizes for setting tolerance limits.
    """

    mean: Any
    low: Any  # this, high and coverage are NaN below 20 runs
    high: Any
    coverage: float  # the probability above

    @staticmethod
    def of(values: FloatArray, axis: int = -1) -> Spread:
        """Compute from the values of runs along an axis."""
        count, mean = values.shape[axis], values.mean(axis)
        if count < FEWEST:
            return Spread(mean, mean * np.nan, mean * np.nan, np.nan)
        r, ordered = max(1, (count + 1) // 40), np.sort(values, axis)
        low, high = (ordered.take(i, axis) for i in (r - 1, count - r))
        return Spread(mean, low, high, 1 - 2 * r / (count + 1))


@dataclass(frozen=True, eq=False)
class Answer:
    """What the best setting earns with the budget.

    Attributes:
        comparison: that it is about.
        baselines: the splits without a learner that it is held against.
        setting: the best.
        data: by ``row`` (the setting, then the splits) what is ``earned`` over all instances and
            what the setting earns more (``gain``, with an interval; ``share``, of what the split
            earns; in which share of the runs, ``better``); by ``row`` and ``instance`` the same of
            each; by ``instance`` and ``arm`` the setting's ``money_share``, ``pulls``, ``money``,
            ``results``, all with intervals for one further run, the arm's means, how probably it is
            the ``best`` by ratio, the shares of money of the file's best ``mixture``, and in which
            share of the runs the arm is ``sold_out``.
        warnings: numbers that the reader should know of.
    """

    comparison: Comparison
    baselines: Comparison
    setting: str
    data: xarray.Dataset
    warnings: tuple[str, ...]


def answer_of(comparison: Comparison, *, progress: bool | str = False) -> Answer:
    """Simulate the fixed splits, and compare the best setting with them.

    Args:
        comparison: of :func:`~jaxbandits.apps.comparison.run_plan`.
        progress: show bars on stderr.

    Example:
        >>> import numpy as np
        >>> import jaxbandits as jb
        >>> from jaxbandits.apps.comparison import ArmsTable, Instance, answer_of, compare
        >>> ads = Instance("ads", ("a", "b"), np.array([0.2, 0.1]), np.array([0.5, 0.9]), 1.0, 1.0, None)
        >>> table = ArmsTable("means", (ads,), (), "reward", "cost")
        >>> answer = answer_of(compare(table, 20.0, jb.policies.OmegaUCB(), runs=8))
        >>> answer.data["row"].values.tolist(), answer.data["mixture"].dims
        (['omega_ucb(rho=0.25)', 'an even split', "all on the file's best"], ('instance', 'arm'))
    """
    import xarray

    plan, name = comparison.plan, comparison.ranking()[0]["setting"]
    at = list(plan.played.labels).index(name)
    baselines = run_plan(plans.with_splits(plan), progress=progress)
    own = comparison.data["reward"].values[[at]]
    reward = np.concatenate([own, baselines.data["reward"].values])
    columns: dict[str, tuple[tuple[str, ...], Any]] = {}
    for spread, end in ((Spread.of(reward.sum(axis=1)), ()), (Spread.of(reward), ("instance",))):
        title = "earned_in" if end else "earned"
        columns |= _with_ends(title, ("row", *end), spread)
    columns |= _gains(reward)
    columns |= _of_arms(comparison, at)
    data = xarray.Dataset(
        columns,
        coords={
            "row": [name, *baselines.plan.played.labels],
            "instance": [instance.name for instance in plan.table.instances],
        },
        attrs={
            "setting": name,
            "settings": len(plan.played.labels),
            "coverage": Spread.of(reward[0, 0]).coverage,
            "reward_unit": plan.table.reward_unit,
            "cost_unit": plan.table.cost_unit,
        },
    )
    return Answer(comparison, baselines, name, data, tuple(warnings_of(comparison, at, data)))


def _with_ends(title: str, dims: tuple[str, ...], spread: Spread) -> dict[str, Any]:
    ends = zip(("", "_low", "_high"), spread[:3], strict=True)
    return {f"{title}{end}": (dims, values) for end, values in ends}


def _gains(reward: FloatArray) -> dict[str, Any]:
    """What the first row of ``[row, instance, run]`` earns more than each: in all, and in each."""
    import xarray

    def of(part: FloatArray) -> np.ndarray:
        table = xarray.DataArray(part, dims=("setting", "instance", "replicate"))
        pairs, total = dominance(table, over="replicate").isel(setting=0), part.sum(axis=1)
        ends = [part.shape[1] * pairs[x].values for x in ("difference", "low", "high")]
        mean = total.mean(axis=1)
        share = np.divide(ends[0], mean, out=np.full_like(mean, np.nan), where=mean > 0)
        better = ((total[0] > total) + (total[0] == total) / 2).mean(axis=1)
        return np.stack([*ends, share, better])

    names = ("gain", "gain_low", "gain_high", "share", "better")
    each = np.stack([of(reward[:, [i]]) for i in range(reward.shape[1])], axis=-1)
    columns: dict[str, Any] = {x: (("row",), y) for x, y in zip(names, of(reward), strict=True)}
    return columns | {f"{x}_in": (("row", "instance"), y) for x, y in zip(names, each, strict=True)}


def _of_arms(comparison: Comparison, setting: int) -> dict[str, Any]:
    """Where the money of a setting goes, and what the file says of each arm; NaN for no arm."""
    plan, accounts, dims = comparison.plan, comparison.accounts, ("instance", "arm")
    instances, paid = plan.table.instances, comparison.accounts.money(setting)
    share = paid / np.maximum(paid.sum(axis=-1, keepdims=True), 1e-300)
    spreads = {"money_share": share, "pulls": accounts.pulls[setting].astype(float), "money": paid}
    spreads["results"] = accounts.results(setting)
    stock = plan.spending.supply.stock
    columns: dict[str, Any] = {}
    for name, values in spreads.items():
        columns |= _with_ends(name, dims, Spread.of(values, axis=1))
    width, best = paid.shape[-1], probability_best(plan)
    names = ["reward", "cost", "reward_in_file", "cost_in_file", "best", "pulls_in_file"]
    names += ["mixture", "sold_out"]
    facts = {name: np.full((len(instances), width), np.nan) for name in names}
    title = np.full((len(instances), width), "", object)
    pairs = zip(instances, plans.file_means(plan.table, plan.worlds), strict=True)
    for row, (instance, (reward, cost)) in enumerate(pairs):
        count, clicks = len(instance.arms), instance.evidence.clicks
        rate, price = np.array([[x.value for x in arm[:2]] for arm in estimates(instance)]).T
        mixture = plan.spending.best_split(reward, cost, row) * cost
        known = np.nan if clicks is None or plan.table.kind == "log" else clicks
        mixture = mixture / max(mixture.sum(), 1e-300)
        sold = accounts.pulls[setting, row, :, :count]
        closed = (sold >= stock[row]).mean(axis=0) if stock else np.nan
        of = (reward, cost, rate, price, best[row], known, mixture, closed)
        title[row, :count] = instance.arms
        for name, values in zip(names, of, strict=True):
            facts[name][row, :count] = values
    return columns | {x: (dims, y) for x, y in facts.items()} | {"name": (dims, title)}


def probability_best(plan: ComparisonPlan) -> list[FloatArray]:
    """The probability that each arm has the best ratio of its instance, ``[K]`` each.

    From the draws of at least 1000 runs (fewer for a log of very many rows); where means are given,
    1 for the best. How many requests there are is no part of a ratio.
    """
    worlds, probabilities = plan.worlds, list[FloatArray]()
    if worlds.posterior is None:
        means = plans.file_means(plan.table, worlds)
        return [np.eye(len(reward))[np.argmax(reward / cost)] for reward, cost in means]
    posteriors = zip(plan.table.instances, worlds.posterior.instances, strict=True)
    for number, (instance, posterior) in enumerate(posteriors):
        size = sum(x.size for x, _ in instance.log) if instance.log else len(instance.arms)
        runs = max(1, min(max(plan.runs, _DRAWS), _MOST_DRAWN // size))
        wins, at_once = np.zeros(len(instance.arms)), max(1, _DRAWN_AT_ONCE // size)
        for first in range(0, runs, at_once):
            draws = posterior.draw(worlds.seed, number, range(first, min(first + at_once, runs)))
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = draws.reward / draws.cost
                best = np.argmax(np.nan_to_num(ratio, nan=0.0), axis=-1)
            wins += np.bincount(best, minlength=wins.size)
        probabilities.append(wins / runs)
    return probabilities


# --- What the reader should be warned of


def warnings_of(comparison: Comparison, setting: int, data: xarray.Dataset) -> list[str]:
    """Warnings: too few pulls, spending beyond the budget, means estimated from few clicks."""
    plan, texts, unit = comparison.plan, list[str](), comparison.plan.table.pull_unit
    budget, instances = plan.spending.budget, plan.table.instances
    pulls = [plan.spending.pulls(instance, row) for row, instance in enumerate(instances)]
    if min(pulls) < _FEW_PULLS:
        about = f"about {min(pulls):.2g} {unit}s in {instances[int(np.argmin(pulls))].name!r}"
        texts.append(f"the budget of {budget:g} is {about}: too few to learn anything")
    rows = [x.size for instance in instances for x, _ in instance.log or ()]
    if thin := sum(n < _FEW_ROWS for n in rows):
        texts.append(f"{thin} of {len(rows)} arms have fewer than {_FEW_ROWS} rows in the log")
    over = float(comparison.data["spent"].values[setting].mean()) / budget - 1
    if over > _OVERSHOOT:
        more = f"{over:.0%} more than {budget:g} is spent on average"
        texts.append(f"the last {unit} exceeds the budget: {more}")
    few = np.where(data["pulls_in_file"].values < _FEW_CLICKS, data["money_share"].values, 0)
    if plan.worlds.posterior is None and few.max() > _MUCH:  # means are taken as the truth
        at = np.unravel_index(few.argmax(), few.shape)
        name, clicks = data["name"].values[at], data["pulls_in_file"].values[at]
        gets = f"{name!r} gets {few[at]:.0%} of the money and has {clicks:,.0f} {unit}s in the file"
        texts.append(f"{gets}: its mean, taken as exact, is uncertain")
    return texts
