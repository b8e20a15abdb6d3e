"""A comparison played in other ways: with another noise, and with smaller budgets."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import jax
import numpy as np

from jaxbandits.comparison.arms_table import ArmsTable
from jaxbandits.comparison.assumptions import Assumed, arms_of
from jaxbandits.comparison.comparison import Comparison
from jaxbandits.comparison.plan import ComparisonPlan, in_units_of
from jaxbandits.comparison.running import blocks_of, run_plan
from jaxbandits.comparison.spreads import Gain
from jaxbandits.comparison.worlds import with_bounds
from jaxbandits.core.errors import InputError
from jaxbandits.core.settings import canonicalise

_MOST_RUNS = 250


@dataclass(frozen=True)
class NoiseCheck:
    """What becomes of the ranking under another noise.

    Attributes:
        noise: the other one.
        runs: how many were played.
        ranking: the settings, best mean reward first, with that mean (averaged over the instances).
        same_best, same_order: whether the best setting, and the whole order, are those of the comparison.
        ahead: of the setting that is best there, what it earns more there than the comparison's best.
    """

    noise: str
    runs: int
    ranking: tuple[tuple[str, float], ...]
    same_best: bool
    same_order: bool
    ahead: Gain


def other_noise(plan: ComparisonPlan) -> str:
    """The noise that is played as a check: one coin for a click's cost, or Beta laws for coins."""
    if plan.noise == "bernoulli":
        return "beta" if plan.posterior is None else "clicks"
    return "bernoulli"


def second_runs(plan: ComparisonPlan) -> int:
    """How many runs a second look plays: one block at most, so that no shape is a new one."""
    if plan.posterior is None:
        return min(plan.runs, _MOST_RUNS)
    return min(len(blocks_of(plan, group)[0]) for group in plan.groups)


def check_noise(comparison: Comparison, progress: bool | str = False) -> NoiseCheck | str:
    """Play another noise in the same worlds; a line if there is none that these means can have."""
    plan = comparison.plan
    noise, runs, look = other_noise(plan), second_runs(plan), plan
    if noise == "clicks" and not all(i.evidence is not None and i.evidence.whole for i in plan.table.instances):
        return "no second noise was played: only counts of conversions say what one click may bring"
    groups = plan.groups
    if noise == "clicks":  # costs that vary go beyond the bound of coins
        try:
            look = in_units_of(plan, _wider(plan))
        except InputError as problem:
            return f"no second noise was played ({problem})"
    if plan.posterior is None:
        try:
            other = Assumed(plan.table, noise, None, None, plan.cost_cv)
            made = [arms_of(other, group.rows, plan.beta_concentration, plan.rounds is not None) for group in groups]
            groups = tuple(dataclasses.replace(group, environment=x) for group, x in zip(groups, made, strict=True))
        except InputError as problem:
            return f"no second noise was played ({problem})"
    found = run_plan(dataclasses.replace(look, noise=noise, groups=groups, runs=runs), progress=progress)
    reward = found.data["reward"].mean("instance").values
    means = reward.mean(axis=-1)
    here = comparison.data["reward"].mean(("instance", "replicate")).values
    names = list(plan.settings)
    broken = {*comparison.broken, *found.broken}  # which keep no bound are best of nothing
    kept = np.array([name not in broken for name in names])
    kept = kept if kept.any() else np.ones(len(names), bool)
    order, first_order = (order[kept[order]] for order in (np.argsort(-x, kind="stable") for x in (means, here)))
    return NoiseCheck(
        noise=noise,
        runs=runs,
        ranking=tuple((names[i], float(means[i])) for i in order),
        same_best=bool(order[0] == first_order[0]),
        same_order=bool((order == first_order).all()),
        ahead=Gain.of(reward[order[0]], reward[first_order[0]]),
    )


def _wider(plan: ComparisonPlan) -> ArmsTable:
    """The table with room for costs of clicks, and what room there was already."""
    needed = with_bounds(plan.table, "clicks", plan.posterior, plan.cost_cv, None, None)
    pairs = zip(plan.table.instances, needed.instances, strict=True)
    instances = tuple(
        dataclasses.replace(
            new,
            reward_bound=max(old.reward_bound, new.reward_bound),
            cost_bound=max(old.cost_bound, new.cost_bound),
        )
        for old, new in pairs
    )
    return dataclasses.replace(needed, instances=instances)


def money_over_budgets(
    comparison: Comparison, setting: int, points: int = 8, progress: bool | str = False
) -> tuple[np.ndarray, np.ndarray]:
    """Budgets up to the whole one, and a setting's mean money on each arm: ``[n]``, ``[n, instance, arm]``.

    Every point is a budget of its own, so it holds too for policies that know what they may spend.
    """
    plan = comparison.plan
    accounts = comparison.accounts
    if accounts is None:
        raise InputError("comparison: without accounts given; it must be one that run_plan made")
    budgets = plan.budget * np.arange(1, points + 1) / points
    runs, alone = second_runs(plan), _alone(plan, setting)
    spent = []
    for part in range(1, points):
        rounds = None if plan.rounds is None else max(1, plan.rounds * part // points)
        share = dataclasses.replace(alone, budget=float(budgets[part - 1]), rounds=rounds, runs=runs)
        smaller = in_units_of(share, plan.table)
        found = run_plan(smaller, progress=progress).accounts
        spent.append(np.zeros(accounts.mean_cost[:, 0].shape) if found is None else found.money(0).mean(axis=1))
    return budgets, np.stack([*spent, accounts.money(setting).mean(axis=1)])


def _alone(plan: ComparisonPlan, setting: int) -> ComparisonPlan:
    """The plan with one of its settings."""
    first = 0
    for policy in plan.policies:
        count = jax.tree.leaves(policy)[0].shape[0] if jax.tree.leaves(policy) else 1
        if setting < first + count:
            one = jax.tree.map(lambda leaf: leaf[setting - first : setting - first + 1], policy)  # noqa: B023
            chosen, _ = canonicalise(one, len(plan.table.instances))
            name = list(plan.settings)[setting]
            return dataclasses.replace(plan, policies=(chosen,), settings={name: plan.settings[name]})
        first += count
    raise InputError(f"setting: {setting} given; it must be below {first}")
