"""The answer to "what if I had run this again?": where the money goes, what it brings, and against what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jaxbandits.comparison.accounts import Accounts
from jaxbandits.comparison.arms_table import Instance
from jaxbandits.comparison.cautions import cautions
from jaxbandits.comparison.comparison import Comparison
from jaxbandits.comparison.plan import ComparisonPlan
from jaxbandits.comparison.rivals import best_by_file, file_means, rivals_plan
from jaxbandits.comparison.running import run_plan
from jaxbandits.comparison.second_look import NoiseCheck, check_noise, money_over_budgets
from jaxbandits.comparison.spreads import Gain, Spread
from jaxbandits.core.errors import InputError

FloatArray = NDArray[np.float64]

_DRAWS, _MOST_DRAWN, _DRAWN_AT_ONCE = 1000, 1 << 26, 1 << 22


@dataclass(frozen=True)
class ArmAnswer:
    """What a setting makes of one arm.

    Attributes:
        instance, name: whose it is.
        reward, cost: means per pull, pooled over the file where means are drawn.
        file_reward, file_cost: the same as they stand in the file.
        best: probability that it has the best ratio of its instance; 1 or 0 where the file's means are taken as given.
        share: of the money that was spent on its instance.
        pulls, money, results: of a run.
    """

    instance: str
    name: str
    reward: float
    cost: float
    file_reward: float
    file_cost: float
    best: float
    share: Spread
    pulls: Spread
    money: Spread
    results: Spread


@dataclass(frozen=True)
class Rival:
    """A split without a learner: what it earns over all instances, and what the setting earns more."""

    name: str
    earned: Spread
    gain: Gain
    by_instance: tuple[Gain, ...]


@dataclass(frozen=True)
class SettingAnswer:
    """The answer for one setting.

    Attributes:
        setting: its label.
        rank: by mean reward.
        earned: reward over all instances.
        by_instance: the same in each instance.
        rivals: the splits that it is held against.
        arms: for each instance its arms, in the order of the file.
    """

    setting: str
    rank: int
    earned: Spread
    by_instance: tuple[Spread, ...]
    rivals: tuple[Rival, ...]
    arms: tuple[tuple[ArmAnswer, ...], ...]


@dataclass(frozen=True, eq=False)
class Answer:
    """What :func:`answer_of` found.

    Attributes:
        comparison: that it is about.
        rivals: the comparison of the fixed splits.
        settings: the best setting first (of those that kept the constraint), then those that were asked for.
        best_arms: of each instance, the position of the arm with the best ratio by the file.
        check: what another noise makes of the ranking; a line that says why none was played; None if not asked for.
        budgets, money: see :func:`~jaxbandits.comparison.second_look.money_over_budgets`, of the best setting; None if
            not asked for.
        warnings: numbers that the reader should know of.
    """

    comparison: Comparison
    rivals: Comparison
    settings: tuple[SettingAnswer, ...]
    best_arms: tuple[int, ...]
    check: NoiseCheck | str | None
    budgets: FloatArray | None
    money: FloatArray | None
    warnings: tuple[str, ...]


def answer_of(
    comparison: Comparison,
    settings: Sequence[str] = (),
    *,
    check: bool = True,
    picture: bool = True,
    progress: bool | str = False,
) -> Answer:
    """Play the rivals (and another noise, and smaller budgets), and say what the best setting makes of the money.

    Args:
        comparison: of :func:`~jaxbandits.comparison.run_plan`.
        settings: labels of further settings, or names of policies (their best setting).
        check: play another noise.
        picture: play smaller budgets, for the picture of the money.
        progress: show bars on stderr.

    Raises:
        InputError: a setting that was not played.

    Example:
        >>> import numpy as np
        >>> import jaxbandits as jb
        >>> from jaxbandits.comparison import ArmsTable, Instance, answer_of, compare
        >>> ads = Instance("ads", ("a", "b"), np.array([0.2, 0.1]), np.array([0.5, 0.9]), 1.0, 1.0, None)
        >>> table = ArmsTable("means", (ads,), (), "reward", "cost")
        >>> found = compare(table, 20.0, jb.policies.OmegaUCB(), runs=8)
        >>> answer = answer_of(found, check=False, picture=False)
        >>> [rival.name for rival in answer.settings[0].rivals], answer.best_arms
        (['an even split', "all on the file's best"], (0,))
    """
    plan, accounts = comparison.plan, comparison.accounts
    if accounts is None:
        raise InputError("comparison: without accounts given; it must be one that run_plan made")
    ranked = [row["setting"] for row in comparison.ranking()]
    kept = [name for name in ranked if name not in comparison.broken] or ranked
    chosen = list(dict.fromkeys([kept[0], *(_label(name, ranked) for name in settings)]))
    rivals = run_plan(rivals_plan(plan), progress=progress)
    best = probability_best(plan)
    labels = list(plan.settings)
    answers = tuple(
        _setting_answer(comparison, rivals, accounts, labels.index(name), ranked.index(name) + 1, best)
        for name in chosen
    )
    budgets, money = None, None
    if picture:
        budgets, money = money_over_budgets(comparison, labels.index(chosen[0]), progress=progress)
    return Answer(
        comparison=comparison,
        rivals=rivals,
        settings=answers,
        best_arms=tuple(best_by_file(plan)),
        check=check_noise(comparison, progress=progress) if check else None,
        budgets=budgets,
        money=money,
        warnings=tuple(cautions(comparison, labels.index(chosen[0]), answers[0].arms)),
    )


def probability_best(plan: ComparisonPlan) -> list[FloatArray]:
    """Probability that an arm has the best ratio of its instance, ``[K]`` each, by the posterior that runs draw from.

    From the draws of at least 1000 runs (fewer for a log of very many rows); where means are given, 1 for the best.
    """
    if plan.posterior is None:
        return [np.eye(len(reward))[int(np.argmax(reward / cost))] for reward, cost in file_means(plan)]
    found = []
    for number, (instance, posterior) in enumerate(zip(plan.table.instances, plan.posterior.instances, strict=True)):
        each = sum(rewards.size for rewards, _ in instance.log) if instance.log else len(instance.arms)
        runs, at_once = max(1, min(max(plan.runs, _DRAWS), _MOST_DRAWN // each)), max(1, _DRAWN_AT_ONCE // each)
        wins = np.zeros(len(instance.arms))
        for first in range(0, runs, at_once):
            drawn = posterior.draw(plan.seed, number, range(first, min(first + at_once, runs)))
            with np.errstate(divide="ignore", invalid="ignore"):
                best = np.argmax(np.nan_to_num(drawn.reward / drawn.cost, nan=0.0), axis=-1)
            wins += np.bincount(best, minlength=wins.size)
        found.append(wins / runs)
    return found


def _label(name: str, ranked: Sequence[str]) -> str:
    for label in ranked:
        if name in (label, label.split("(")[0]):
            return label
    raise InputError(f"policy: {name!r} given; it must be one of the settings that were played: {', '.join(ranked)}")


def in_the_file(instance: Instance) -> tuple[FloatArray, FloatArray]:
    """Reward and cost per pull as the file has them, ``[K]``: without a prior, or what stands in for no conversion."""
    evidence = instance.evidence
    if evidence is None or evidence.clicks is None or evidence.value is None or evidence.spent is None:
        return instance.mean_reward, instance.mean_cost
    seen = np.maximum(evidence.clicks, 1)
    pairs = ((evidence.value, instance.mean_reward), (evidence.spent, instance.mean_cost))
    reward, cost = (np.where(evidence.clicks > 0, total / seen, mean) for total, mean in pairs)
    return reward, cost


def _setting_answer(
    comparison: Comparison,
    rivals: Comparison,
    accounts: Accounts,
    setting: int,
    rank: int,
    best: Sequence[FloatArray],
) -> SettingAnswer:
    plan = comparison.plan
    reward = comparison.data["reward"].values[setting]  # [instance, run]
    splits = rivals.data["reward"].values  # [split, instance, run]
    pulls, money, results = accounts.pulls[setting], accounts.money(setting), accounts.results(setting)
    arms = []
    for row, (instance, (mean_reward, mean_cost)) in enumerate(
        zip(plan.table.instances, file_means(plan), strict=True)
    ):
        file_reward, file_cost = in_the_file(instance)
        share = money[row] / np.maximum(money[row].sum(axis=-1, keepdims=True), 1e-300)
        arms.append(
            tuple(
                ArmAnswer(
                    instance.name,
                    name,
                    float(mean_reward[k]),
                    float(mean_cost[k]),
                    float(file_reward[k]),
                    float(file_cost[k]),
                    float(best[row][k]),
                    *(Spread.of(x[..., k]) for x in (share, pulls[row], money[row], results[row])),
                )
                for k, name in enumerate(instance.arms)
            )
        )
    return SettingAnswer(
        setting=list(plan.settings)[setting],
        rank=rank,
        earned=Spread.of(reward.sum(axis=0)),
        by_instance=tuple(Spread.of(x) for x in reward),
        rivals=tuple(
            Rival(
                name,
                Spread.of(splits[i].sum(axis=0)),
                Gain.of(reward.sum(axis=0), splits[i].sum(axis=0)),
                tuple(Gain.of(mine, other) for mine, other in zip(reward, splits[i], strict=True)),
            )
            for i, name in enumerate(rivals.plan.settings)
        ),
        arms=tuple(arms),
    )
