"""What if I had run this again: where the money goes, what it brings, against what, and how sure
that is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxbandits.apps.comparison import plan as plans
from jaxbandits.apps.comparison.arms_table import Evidence, FloatArray, money_cost
from jaxbandits.apps.comparison.comparison import Comparison, run_plan
from jaxbandits.apps.comparison.intervals import estimates
from jaxbandits.apps.comparison.plan import ComparisonPlan, block_size
from jaxbandits.apps.comparison.worlds import counts_conversions, with_bounds
from jaxbandits.core.checks import InputError, bad
from jaxbandits.statistics import dominance

if TYPE_CHECKING:
    import xarray


FEWEST = (
    20  # runs that say where a further one lies: fewer cover less than 9 in 10 from least to most
)


class Spread(NamedTuple):
    """A number of a run: its mean over n runs, and an interval for a further run.

    With x₍₁₎ ≤ … ≤ x₍ₙ₎ it is from x₍ᵣ₎ to x₍ₙ₊₁₋ᵣ₎, r = max(1, ⌊(n + 1) / 40⌋). Runs are drawn
    alike, so a further one is in any gap between them with the same probability, whatever its law:

    .. math:: P(x_{(r)} \\le X \\le x_{(n+1-r)}) \\ge 1 - \\frac{2 r}{n + 1},

    with equality where no two runs are equal. That is 95 to 97.5 % from 39 runs on; with 20 to 38
    runs it is 90 to 95 %, from the least to the most. Quantiles of the sample itself would cover
    less.

    Source: Wilks (1941), Determination of sample sizes for setting tolerance limits.
    """

    mean: float
    low: float  # this, high and coverage are NaN below 20 runs
    high: float
    coverage: float  # the probability above

    @staticmethod
    def of(values: FloatArray) -> Spread:
        """Of values of runs, ``[run]``."""
        count = len(values)
        if count < FEWEST:
            return Spread(float(values.mean()), np.nan, np.nan, np.nan)
        r = max(1, (count + 1) // 40)
        low, high = np.sort(values)[[r - 1, count - r]]
        return Spread(float(values.mean()), float(low), float(high), 1 - 2 * r / (count + 1))


class Gain(NamedTuple):
    """How much more one earns than another in the same worlds."""

    mean: float  # run by run
    low: float  # its interval, which holds with all others of its table; NaN for one run
    high: float
    share: float  # that mean / mean of the other; NaN where that is 0
    better: float  # in what share of the runs it is more (an equal one counts half)

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0

    @staticmethod
    def of(pair: xarray.Dataset, earned: FloatArray, base: FloatArray, times: int = 1) -> Gain:
        """``times`` an entry of :func:`~jaxbandits.statistics.dominance`; what each run earned."""
        value, low, high = (times * float(pair[x]) for x in ("difference", "low", "high"))
        share = value / float(base.mean()) if base.mean() else np.nan
        better = float((earned > base).mean() + (earned == base).mean() / 2)
        return Gain(value, low, high, share, better)


def gains(reward: NDArray) -> list[tuple[Gain, tuple[Gain, ...]]]:
    """How much the first of several settings, ``[setting, instance, run]``, earns more than each
    other: in all instances, and in each.
    """
    import xarray

    def of(part: NDArray) -> list[Gain]:
        table = xarray.DataArray(part, dims=("setting", "instance", "replicate"))
        pairs, totals = dominance(table, over="replicate").isel(setting=0), part.sum(axis=1)
        return [
            Gain.of(pairs.isel(against=i), totals[0], totals[i], part.shape[1])
            for i in range(1, len(part))
        ]

    by_instance = zip(*(of(reward[:, [i]]) for i in range(reward.shape[1])), strict=True)
    return list(zip(of(reward), by_instance, strict=True))


# --- Robustness checks: another noise, and smaller budgets


_MOST_RUNS = 250


class NoiseCheck(NamedTuple):
    """What becomes of the ranking under another noise."""

    noise: str  # the other one
    runs: int  # how many were played
    # The settings, best first, with their mean reward (over the instances)
    ranking: tuple[tuple[str, float], ...]
    same_best: bool  # whether the best setting, and the whole order, are those of the comparison
    same_order: bool
    ahead: (
        Gain  # what the best setting there earns more there than the comparison's best, on average
    )


def other_noise(plan: ComparisonPlan) -> str:
    """The noise that is played as a check: one coin for a click's cost, or Beta laws for coins."""
    if plan.worlds.noise == "bernoulli":
        return "beta" if plan.worlds.posterior is None else "clicks"
    return "bernoulli"


def robustness_runs(plan: ComparisonPlan) -> int:
    """How many runs a robustness check plays: one block at most, so that no shape is a new one."""
    return min(plan.runs, _MOST_RUNS) if plan.worlds.posterior is None else block_size(plan)


def check_noise(comparison: Comparison, progress: bool | str = False) -> NoiseCheck | str:
    """Play another noise in the same worlds; a line if there is none that these means can have."""
    plan = comparison.plan
    noise, runs, names = other_noise(plan), robustness_runs(plan), list(plan.played.labels)
    if noise == "clicks" and not counts_conversions(plan.table):
        return "no second noise was played: only counts of conversions say what one click may bring"
    try:
        worlds, table = dataclasses.replace(plan.worlds, noise=noise), plan.table
        if noise == "clicks":  # costs that vary go beyond the bound of coins
            table = with_bounds(
                table, noise, worlds.posterior, worlds.cost_cv, None, None, grow_only=True
            )
        if worlds.posterior is None:
            worlds = worlds.grouped(table, [group.rows for group in worlds.groups])
        variant = plan.alone(table=table, worlds=worlds, runs=runs)
    except InputError as problem:
        return f"no second noise was played ({problem})"
    outcome = run_plan(variant, progress=progress)
    reward = outcome.data["reward"]
    means, plan_means = (
        x.data["reward"].mean(("instance", "replicate")).values for x in (outcome, comparison)
    )
    eligible = np.array([name not in {*comparison.broken, *outcome.broken} for name in names])
    eligible |= not eligible.any()  # which keep no bound are best of nothing
    order, first = (
        order[eligible[order]]
        for order in (np.argsort(-x, kind="stable") for x in (means, plan_means))
    )
    average = reward.mean("instance").values
    pair = dominance(reward, over="replicate").isel(setting=order[0], against=first[0])
    ahead = Gain.of(pair, average[order[0]], average[first[0]])
    ranking = tuple((names[i], float(means[i])) for i in order)
    return NoiseCheck(
        noise, runs, ranking, bool(order[0] == first[0]), bool((order == first).all()), ahead
    )


def money_over_budgets(
    comparison: Comparison, setting: int, points: int = 4, progress: bool | str = False
) -> tuple[np.ndarray, np.ndarray]:
    """Budgets up to the whole one, and a setting's mean money on each arm: ``[n]``, ``[n, instance,
    arm]``.

    Every point is a budget of its own, so it holds too for policies that know what they may spend.
    """
    plan, spent = comparison.plan, []
    for part in range(1, points):
        spending = plan.spending.part(part / points)
        lineup = plan.played.only(setting).with_horizon(spending.rounds)
        smaller = plan.alone(played=lineup, spending=spending, runs=robustness_runs(plan))
        spent.append(run_plan(smaller, progress=progress).accounts.money(0).mean(axis=1))
    spent.append(comparison.accounts.money(setting).mean(axis=1))
    return plan.spending.budget * np.arange(1, points + 1) / points, np.stack(spent)


# --- What to do next: the split until one decides again, and what it costs to decide no more often


_FIRST = 10  # where nothing says when one decides again: a tenth of the money


class NextSplit(NamedTuple):
    """What the row that brings most would do first, as a mean over runs, and what it costs to
    decide seldom.
    """

    row: str  # a setting, or a fixed split
    fixed: bool  # the latter
    share: float  # of the budget that is spent until one decides again
    money: FloatArray  # [instance, arm]
    pulls: FloatArray  # the same
    # What the best setting would bring more; None where it is played click by click
    per_click: Gain | None


def next_split(answer: Answer, progress: bool | str = False) -> NextSplit:
    """Play the beginning, and the best setting click by click."""
    comparison, part = answer.comparison, answer.settings[0]
    plan, top = comparison.plan, leading(part)
    share = _first_share(plan)
    source = comparison if top is None else answer.baselines
    lineup = source.plan.played.only(
        list(source.plan.played.labels).index(part.setting if top is None else top.name)
    )
    spending = plan.spending.part(share)
    lineup = lineup.with_horizon(spending.rounds)
    runs = robustness_runs(plan)
    first = run_plan(
        plan.alone(played=lineup, spending=spending, runs=runs), progress=progress
    ).accounts
    per_click = None
    if plan.played.cadence.size:
        at = list(plan.played.labels).index(part.setting)
        alone = dataclasses.replace(plan.played.only(at), cadence=plans.Cadence())
        reward = run_plan(plan.alone(played=alone, runs=runs), progress=progress).data["reward"]
        as_played = comparison.data["reward"].values[at, :, :runs]
        ((per_click, _),) = gains(np.stack([reward.values[0], as_played]))
    return NextSplit(
        row=lineup.labels[0],
        fixed=top is not None and not top.name.endswith(plans.FROM_NOTHING),
        share=share,
        money=first.money(0).mean(axis=1),
        pulls=first.pulls[0].mean(axis=1),
        per_click=per_click,
    )


def _first_share(plan: ComparisonPlan) -> float:
    """The share of the budget that is spent until one decides again, as in the instance in the
    middle.
    """
    cadence, shares = plan.played.cadence, list[float]()
    for row, (instance, size) in enumerate(zip(plan.table.instances, cadence.size, strict=False)):
        totals = (instance.evidence or Evidence()).totals(slice(None))
        whole = (
            totals[0] * plan.spending.budget / totals[2]
            if totals
            else plan.spending.pulls(instance, row)
        )
        shares.append(size / whole)
    return min(float(np.median(shares)), 1.0) if shares else 1 / _FIRST


# --- What the reader should be warned of


_FEW_PULLS, _FEW_ROWS, _OVERSHOOT = 10, 5, 0.05
_FEW_CLICKS, _MUCH = 30, 0.2


def warnings_of(
    comparison: Comparison, setting: int, arms: Sequence[Sequence[ArmAnswer]]
) -> list[str]:
    """Budgets of a few pulls or of fewer pulls than arms, money spent beyond the budget, means that
    few clicks tell.

    Of the setting that the answer names, with what it makes of the arms of each instance.
    """
    plan, texts, unit = comparison.plan, list[str](), comparison.plan.table.pull_unit
    pulls = {i.name: plan.spending.pulls(i, row) for row, i in enumerate(plan.table.instances)}
    fewest = min(pulls, key=lambda name: pulls[name])
    short = [i.name for i in plan.table.instances if pulls[i.name] < len(i.arms)]
    if pulls[fewest] < _FEW_PULLS:
        about = f"about {pulls[fewest]:.2g} {unit}s in {fewest!r}"
        texts.append(
            f"the budget of {plan.spending.budget:g} is {about}: too few to learn anything"
        )
    elif short:
        place = (
            f"in {len(short)} of {len(pulls)} instances the budget of {plan.spending.budget:g} is "
        )
        place += f"fewer {unit}s than there"
        texts.append(
            f"{place} are arms ({short[0]!r}: about {pulls[short[0]]:.0f}): some are never tried"
        )
    logs = [pair for i in plan.table.instances for pair in zip(i.arms, i.log or (), strict=False)]
    rows = [(rewards.size, name) for name, (rewards, _) in logs]
    if thin := [pair for pair in rows if pair[0] < _FEW_ROWS]:
        fewer = f"fewer than {_FEW_ROWS} rows in the log ({thin[0][1]!r}: {thin[0][0]})"
        unknown = "drawing from their own rows does not know what others would bring"
        texts.append(f"{len(thin)} of {len(rows)} arms have {fewer}: {unknown}")
    over = float(comparison.data["spent"].values[setting].mean()) / plan.spending.budget - 1
    if plan.spending.rounds is None and over > _OVERSHOOT:
        more = f"{over:.0%} more than {plan.spending.budget:g} is spent on average"
        texts.append(
            f"the last {unit} exceeds the budget: {more} (--last-pull forfeits keeps to it)"
        )
    thin_arms = [
        (x.share.mean, x)
        for instance_arms in arms
        for x in instance_arms
        if x.file_pulls < _FEW_CLICKS and x.share.mean > _MUCH
    ]
    if plan.worlds.posterior is None and thin_arms:  # means are taken as the truth
        share, arm = max(thin_arms, key=lambda pair: pair[0])
        fact = f"{arm.name!r} gets {share:.0%} of the money and has {arm.file_pulls:,.0f} {unit}s in the file"
        texts.append(
            f"{fact}: its mean, taken as the truth, is hardly known, and so is this answer"
        )
    return texts


# --- The answer


_DRAWS, _MOST_DRAWN, _DRAWN_AT_ONCE = 1000, 1 << 26, 1 << 22


class ArmAnswer(NamedTuple):
    """What a setting makes of one arm."""

    instance: str
    name: str
    reward: float  # means per pull, pooled over the file where means are drawn
    cost: float
    file_reward: float  # the same as they stand in the file
    file_cost: float
    best: float  # probability that it has the best ratio of its instance; 1 or 0 where the file's means are given
    file_pulls: float  # its pulls in a file of counts; NaN elsewhere
    share: Spread  # of the money that was spent on its instance
    pulls: Spread  # of a run, as are money and results
    money: Spread
    results: Spread
    spent2: Spread | None = None  # what it took of a second budget


class Baseline(NamedTuple):
    """A split without a learner: what it earns over all instances, and what the setting earns more."""

    name: str
    earned: Spread
    gain: Gain
    by_instance: tuple[Gain, ...]


@dataclass(frozen=True)
class SettingAnswer:
    """The answer for one setting."""

    setting: str  # its label
    rank: int  # by mean reward
    earned: Spread  # over all instances
    by_instance: tuple[Spread, ...]
    spent: tuple[Spread, ...]  # of each cost, over all instances
    baselines: tuple[Baseline, ...]  # the splits that it is held against
    arms: tuple[tuple[ArmAnswer, ...], ...]  # for each instance its arms, in the order of the file


@dataclass(frozen=True, eq=False)
class Answer:
    """What :func:`answer_of` found."""

    comparison: Comparison  # that it is about
    baselines: Comparison  # of the fixed splits, and of the answered settings without the file
    # The best of those that kept the constraint, then those that were asked for
    settings: tuple[SettingAnswer, ...]
    # Of each instance, the position of the arm that alone brings most, by the file
    best_arms: tuple[int, ...]
    # What another noise makes of the ranking, or why none was played
    check: NoiseCheck | str | None
    next: NextSplit | None  # what to do until one decides again
    warnings: tuple[str, ...]  # numbers that the reader should know of


def answer_of(
    comparison: Comparison,
    settings: Sequence[str] = (),
    *,
    check: bool = True,
    progress: bool | str = False,
) -> Answer:
    """Play what the best setting is held against (and another noise), and say what it makes of the
    money.

    Args:
        comparison: of :func:`~jaxbandits.apps.comparison.run_plan`.
        settings: labels of further settings, or names of policies (their best setting).
        check: play another noise, and what comes first.
        progress: show bars on stderr.

    Raises:
        InputError: a setting that was not played.

    Example:
        >>> import numpy as np
        >>> import jaxbandits as jb
        >>> from jaxbandits.apps.comparison import ArmsTable, Instance, answer_of, compare
        >>> ads = Instance("ads", ("a", "b"), np.array([0.2, 0.1]), np.array([0.5, 0.9]), 1.0, 1.0, None)
        >>> table = ArmsTable("means", (ads,), (), "reward", "cost")
        >>> answer = answer_of(compare(table, 20.0, jb.policies.OmegaUCB(), runs=8), check=False)
        >>> [split.name for split in answer.settings[0].baselines], answer.best_arms
        (['an even split', "all on the file's best"], (0,))
    """
    plan, labels = comparison.plan, list(comparison.plan.played.labels)
    ranked = [row["setting"] for row in comparison.ranking()]
    eligible = [name for name in ranked if name not in comparison.broken] or ranked
    answered = list(
        dict.fromkeys([eligible[0], *(setting_called(name, ranked) for name in settings)])
    )
    baselines, best = comparison.baselines, probability_best(plan)
    if baselines is None:
        splits = plans.baselines_of(plan.table, plan.worlds, plan.spending)
        baselines = run_plan(plan.alone(played=splits), progress=progress)
    for name in answered:  # nobody asks what the others would have been without the file
        bare = plan.played.only(labels.index(name)).from_nothing()
        if bare.policies:
            baselines = baselines.beside(run_plan(plan.alone(played=bare), progress=progress))
    answers = tuple(
        _setting_answer(comparison, baselines, labels.index(name), ranked.index(name) + 1, best)
        for name in answered
    )
    answer = Answer(
        comparison=comparison,
        baselines=baselines,
        settings=answers,
        best_arms=tuple(plans.best_by_file(plan.table, plan.worlds, plan.spending)),
        check=check_noise(comparison, progress=progress) if check else None,
        next=None,
        warnings=tuple(warnings_of(comparison, labels.index(answered[0]), answers[0].arms)),
    )
    return dataclasses.replace(answer, next=next_split(answer, progress)) if check else answer


def leading(part: SettingAnswer) -> Baseline | None:
    """The row beside a setting that brings clearly more than it, and most of all; None if there is
    none.
    """
    top = max(part.baselines, key=lambda row: row.earned.mean)
    return top if top.earned.mean > part.earned.mean and top.gain.clear else None


def setting_called(name: str, labels: Sequence[str]) -> str:
    """The first of the labels that is this one, or of the policy with this name.

    Raises:
        InputError: there is none.
    """
    for label in labels:
        if name in (label, label.split("(")[0]):
            return label
    raise bad("policy", name, f"one of {', '.join(labels)}")


def probability_best(plan: ComparisonPlan) -> list[FloatArray]:
    """Probability that an arm has the best ratio of its instance, ``[K]`` each, by the posterior
    that runs draw from.

    From the draws of at least 1000 runs (fewer for a log of very many rows); where means are given,
    1 for the best. How many requests there are is no part of a ratio.
    """
    worlds, price, probabilities = plan.worlds, plan.spending.price, []
    if worlds.posterior is None:
        means = plans.file_means(plan.table, worlds)
        return [np.eye(len(r))[np.argmax(r / price(cost))] for r, cost in means]
    posteriors = zip(plan.table.instances, worlds.posterior.instances, strict=True)
    for number, (instance, posterior) in enumerate(posteriors):
        size = (
            sum(rewards.size for rewards, _ in instance.log) if instance.log else len(instance.arms)
        )
        runs, at_once = (
            max(1, min(max(plan.runs, _DRAWS), _MOST_DRAWN // size)),
            max(1, _DRAWN_AT_ONCE // size),
        )
        wins = np.zeros(len(instance.arms))
        for first in range(0, runs, at_once):
            draws = posterior.draw(worlds.seed, number, range(first, min(first + at_once, runs)))
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = draws.reward / price(draws.cost)
                best = np.argmax(np.nan_to_num(ratio, nan=0.0), axis=-1)
            wins += np.bincount(best, minlength=wins.size)
        probabilities.append(wins / runs)
    return probabilities


def _setting_answer(
    comparison: Comparison,
    baselines: Comparison,
    setting: int,
    rank: int,
    best: Sequence[FloatArray],
) -> SettingAnswer:
    plan, accounts, instances = (
        comparison.plan,
        comparison.accounts,
        comparison.plan.table.instances,
    )
    label, names = plan.played.labels[setting], baselines.plan.played.labels
    bare = f"{label} {plans.FROM_NOTHING}"
    positions = [
        at for at, name in enumerate(names) if name == bare or not name.endswith(plans.FROM_NOTHING)
    ]
    earned, splits = comparison.data["reward"][setting], baselines.data["reward"][positions]
    paid = accounts.money(setting)
    share = paid / np.maximum(paid.sum(axis=-1, keepdims=True), 1e-300)
    spreads = [share, accounts.pulls[setting], paid, accounts.results(setting)]
    spreads += [accounts.spent2(setting)] if plan.table.cost2_unit else []
    arms, means = [], plans.file_means(plan.table, plan.worlds)
    for row, (instance, (reward, cost)) in enumerate(zip(instances, means, strict=True)):
        in_file = np.array([(reward.value, cost.value) for reward, cost, _ in estimates(instance)])
        file_pulls = None if plan.table.kind == "log" else (instance.evidence or Evidence()).clicks
        columns = [
            reward,
            money_cost(cost),
            *in_file.T,
            best[row],
            np.full(len(in_file), np.nan) if file_pulls is None else file_pulls,
        ]
        arms.append(
            tuple(
                ArmAnswer(
                    instance.name, name, *numbers, *(Spread.of(x[row, :, k]) for x in spreads)
                )
                for k, (name, numbers) in enumerate(
                    zip(instance.arms, np.stack(columns, axis=-1).tolist(), strict=True)
                )
            )
        )
    advantages = gains(np.concatenate([earned.values[None], splits.values]))
    return SettingAnswer(
        setting=label,
        rank=rank,
        earned=Spread.of(earned.values.sum(axis=0)),
        by_instance=tuple(Spread.of(x) for x in earned.values),
        spent=tuple(
            Spread.of(comparison.data[x][setting].values.sum(axis=0))
            for x in plan.table.spent_units
        ),
        baselines=tuple(
            Baseline(name, Spread.of(split.values.sum(axis=0)), *gain)
            for name, split, gain in zip(
                [names[at] for at in positions], splits, advantages, strict=True
            )
        ),
        arms=tuple(arms),
    )
