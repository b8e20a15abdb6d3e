"""From an instance's means, or from means drawn anew for every run, to the arms that are played."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from jaxbandits.comparison.arms_file import ArmsTable, Instance
from jaxbandits.comparison.posterior import CountPosterior, Drawn, Posterior
from jaxbandits.core import ticks
from jaxbandits.core.errors import InputError, bad, shown
from jaxbandits.environments.finite.arms import FiniteArms
from jaxbandits.environments.finite.laws import ClickLaw, WeightedRowsLaw

_ROOT_3 = float(np.sqrt(3))
_LARGEST_SCALED_MEAN = 0.99


def spread_of(cost_cv: float) -> float:
    """h/m of a cost drawn uniformly from m ± h with this coefficient of variation, h/(√3 m); at most 1.

    Example:
        >>> round(spread_of(0.5), 3), spread_of(2.0)
        (0.866, 1.0)
    """
    return min(_ROOT_3 * cost_cv, 1.0)


def with_bounds(
    table: ArmsTable,
    noise: str,
    posterior: Posterior | None,
    cost_cv: float,
    reward_max: float | None,
    cost_max: float | None,
) -> ArmsTable:
    """The table with bounds that hold whatever is drawn; what the user gave stays, if it does.

    A click brings one conversion at most; a cost is bounded by the largest mean of any draw, with the noise around it.
    As in :func:`~jaxbandits.comparison.read_arms` one pair serves the file, and in the Facebook format each instance.

    Raises:
        InputError: a bound of the user below what may be drawn.
    """
    if table.kind == "log":
        return table
    whole = posterior is None or all(isinstance(x, CountPosterior) and x.law == "beta" for x in posterior.instances)
    found = []
    for number, instance in enumerate(table.instances):
        if posterior is None:
            reward, cost = float(instance.mean_reward.max()), float(instance.mean_cost.max())
        else:
            reward, cost = posterior.instances[number].largest()
        most = cost * (1 + spread_of(cost_cv)) if noise == "clicks" else cost / _LARGEST_SCALED_MEAN
        found.append((1.0 if whole else reward / _LARGEST_SCALED_MEAN, most))
    if table.kind != "facebook":
        found = [(max(r for r, _ in found), max(c for _, c in found))] * len(found)
    for name, given, needed in (
        ("reward_max", reward_max, max(r for r, _ in found)),
        ("cost_max", cost_max, max(c for _, c in found)),
    ):
        if given is not None and given < needed:
            raise bad(name, given, f"at least {needed:.4g}, as much may be drawn (or uncertainty 'given')")
    instances = tuple(
        dataclasses.replace(instance, reward_bound=reward_max or reward, cost_bound=cost_max or cost)
        for instance, (reward, cost) in zip(table.instances, found, strict=True)
    )
    return dataclasses.replace(table, instances=instances)


def drawn_arms(instances: Sequence[Instance], drawn: Sequence[Drawn], noise: str, cost_cv: float) -> FiniteArms:
    """Arms whose means were drawn for each run; a row is an instance in a run, instance by instance, run by run.

    With the noise ``"empirical"`` those of :func:`log_arms`, else those of :func:`click_arms`.
    """
    return log_arms(instances, drawn) if noise == "empirical" else click_arms(instances, drawn, noise, cost_cv)


def click_arms(instances: Sequence[Instance], drawn: Sequence[Drawn], noise: str, cost_cv: float) -> FiniteArms:
    """Arms whose means are drawn, row by row: instance by instance, run by run.

    Args:
        instances: with their bounds.
        drawn: of each instance, the means of the same number of runs, in the user's unit.
        noise: ``"clicks"``: one conversion or none, a price spread uniformly around its mean; ``"bernoulli"``: the
            whole bound or nothing for both.
        cost_cv: coefficient of variation of the price.
    """
    reward, cost, present = _padded(instances, drawn)
    worth = np.full(reward.shape, ticks.ONE, np.int32)
    if noise == "clicks":
        for i, instance in enumerate(instances):
            worth[i] = max(int(ticks.from_units(np.array(1 / instance.reward_bound))), 1)
    chance = np.minimum(reward / (worth / ticks.ONE), 1.0)
    means = [ticks.from_units(x).astype(np.int32).reshape(-1, x.shape[-1]) for x in (chance, cost)]
    _refuse_below_a_tick(instances, cost, present)
    whole = np.full_like(means[1], ticks.ONE)
    if noise == "clicks":
        half = np.minimum(np.rint(means[1] * spread_of(cost_cv)), ticks.ONE - means[1]).astype(np.int32)
        paid, price = whole, means[1]
    else:
        half, paid, price = np.zeros_like(whole), means[1], whole
    worth = worth.reshape(means[0].shape)
    law = ClickLaw(means[0], worth, paid, price, half)
    expected = np.rint(means[0] / ticks.ONE * worth).astype(np.int32)
    return FiniteArms(law=law, mean_reward=expected, mean_cost=means[1], present=present.reshape(means[0].shape))


def log_arms(instances: Sequence[Instance], drawn: Sequence[Drawn]) -> FiniteArms:
    """Arms of a log whose rows have other weights in every run, row by row as in :func:`click_arms`."""
    runs, width = drawn[0].reward.shape[0], max(len(instance.arms) for instance in instances)
    depth = max(arm.shape[1] for found in drawn for arm in found.weights or ())
    shape = (len(instances), runs, width, depth)
    reward, cost = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    reached = np.full(shape, ticks.ONE, np.int32)
    present = np.zeros(shape[:3], bool)
    for i, (instance, found) in enumerate(zip(instances, drawn, strict=True)):
        for arm, (rows, weights) in enumerate(zip(instance.log or (), found.weights or (), strict=True)):
            many = weights.shape[1]
            reward[i, :, arm, :many] = ticks.from_units(rows[0] / instance.reward_bound)
            cost[i, :, arm, :many] = ticks.from_units(rows[1] / instance.cost_bound)
            reached[i, :, arm, : many - 1] = np.rint(np.cumsum(weights, axis=-1)[:, :-1] * ticks.ONE)
            present[i, :, arm] = True
    share = np.diff(reached, axis=-1, prepend=0).astype(np.float64) / ticks.ONE
    means = [np.rint((share * x).sum(-1)).astype(np.int32).reshape(-1, width) for x in (reward, cost)]
    law = WeightedRowsLaw(*(x.reshape(-1, width, depth) for x in (reward, cost, reached)))
    return FiniteArms(law=law, mean_reward=means[0], mean_cost=means[1], present=present.reshape(-1, width))


def _padded(instances: Sequence[Instance], drawn: Sequence[Drawn]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means over their bounds, and which arms there are, ``[instance, run, arm]``."""
    runs, width = drawn[0].reward.shape[0], max(len(instance.arms) for instance in instances)
    reward, cost = np.full((2, len(instances), runs, width), 0.5)
    present = np.zeros(reward.shape, bool)
    for i, (instance, found) in enumerate(zip(instances, drawn, strict=True)):
        arms = slice(len(instance.arms))
        reward[i, :, arms], cost[i, :, arms] = found.reward / instance.reward_bound, found.cost / instance.cost_bound
        present[i, :, arms] = True
    return reward, cost, present


def _refuse_below_a_tick(instances: Sequence[Instance], cost: np.ndarray, present: np.ndarray) -> None:
    small = present & (ticks.from_units(cost) < 1)
    for i, _, arm in np.argwhere(small)[:1]:
        where = f"instance {shown(instances[i].name)}, arm {shown(instances[i].arms[arm])}"
        raise InputError(f"{where}: a mean cost below a 2**24th of the bound of the costs was drawn; lower --cost-max")
