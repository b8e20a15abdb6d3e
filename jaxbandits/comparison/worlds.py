"""The way from instances of an arms file to :class:`~jaxbandits.environments.FiniteArms`, in scaled units."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from jaxbandits.comparison.arms_table import ArmsTable, Instance
from jaxbandits.comparison.posterior import CountPosterior, Drawn, Posterior
from jaxbandits.core import ticks
from jaxbandits.core.checks import InputError, bad, shown
from jaxbandits.environments.finite import ClickLaw, FiniteArms, WeightedRowsLaw

_AT_AN_END, _TOO_SMALL = "mean {}s at 0 or at their bound", "a mean {} of {:.3g} of its bound"
_BETA_ERROR = 0.1  # of a mean: those of tables are right to 1e-5 of the bound, which is much of a small one


def scaled_means(instances: Sequence[Instance], width: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean rewards and mean costs over their bounds, and which arms there are, ``[instance, arm]`` each.

    Absent arms have means of one half. ``width`` is the number of columns, default that of the widest instance.

    Example:
        >>> from jaxbandits.comparison.arms_table import Instance
        >>> some = Instance("some", ("a", "b"), np.array([1.0, 2.0]), np.array([3.0, 4.0]), 2.0, 4.0, None)
        >>> [x.tolist() for x in scaled_means([some], width=3)]
        [[[0.5, 1.0, 0.5]], [[0.75, 1.0, 0.5]], [[True, True, False]]]
    """
    means = [(instance.mean_reward, instance.mean_cost) for instance in instances]
    return _padded(instances, means, width)


def _padded(
    instances: Sequence[Instance], means: Sequence[tuple[np.ndarray, np.ndarray]], width: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means ``[…, arm]`` of each instance over its bounds, and which arms there are, ``[instance, …, arm]``."""
    width = width or max(len(instance.arms) for instance in instances)
    reward, cost = np.full((2, len(instances), *means[0][0].shape[:-1], width), 0.5)
    present = np.zeros(reward.shape, bool)
    for row, (instance, (mean_reward, mean_cost)) in enumerate(zip(instances, means, strict=True)):
        arms = slice(len(instance.arms))
        reward[row, ..., arms] = mean_reward / instance.reward_bound
        cost[row, ..., arms] = mean_cost / instance.cost_bound
        present[row, ..., arms] = True
    return reward, cost, present


def finite_arms(instances: Sequence[Instance], noise: str, concentration: float = 4.0) -> FiniteArms:
    """The arms of some instances in scaled units, padded to the widest.

    Args:
        instances: of an :class:`~jaxbandits.comparison.ArmsTable`.
        noise: ``"bernoulli"``, ``"beta"`` or, for instances of a log, ``"empirical"``;
            see :func:`~jaxbandits.comparison.compare`.
        concentration: α + β > 0 of the Beta laws.

    Raises:
        InputError: means that this noise cannot have, or a mean cost that would never spend the budget.

    Example:
        >>> from jaxbandits.comparison.arms_table import Instance
        >>> some = Instance("some", ("a", "b"), np.array([1.0, 2.0]), np.array([3.0, 4.0]), 2.0, 4.0, None)
        >>> [x.tolist() for x in finite_arms([some], "bernoulli").values()]
        [[[0.5, 1.0]], [[0.75, 1.0]]]
    """
    if noise == "empirical":
        arms = FiniteArms.empirical(
            [[(r / i.reward_bound, c / i.cost_bound) for r, c in i.log or ()] for i in instances]
        )
    else:
        reward, cost, present = scaled_means(instances)
        _check_means(instances, reward, cost, present, noise)
        if noise == "bernoulli":
            arms = FiniteArms.bernoulli(reward, cost, present)
        else:
            ra, rb, ca, cb = (x * concentration for x in (reward, 1 - reward, cost, 1 - cost))
            arms = FiniteArms.beta(ra, rb, ca, cb, present)
            for what, given, played in zip(("reward", "cost"), (reward, cost), arms.values(), strict=True):
                missed = present & (np.abs(played - given) > _BETA_ERROR * given)
                _not_beta(instances, what, given, missed, _TOO_SMALL, "lower")
    for row, arm in np.argwhere(arms.values()[1] <= 0)[:1]:
        raise _below_a_tick(instances[row], int(arm), "cost")
    return arms


def _check_means(
    instances: Sequence[Instance], reward: np.ndarray, cost: np.ndarray, present: np.ndarray, noise: str
) -> None:
    """Means at an end have no Beta law; for a coin, means above 0 must be a tick or more."""
    for what, means in (("reward", reward), ("cost", cost)):
        if noise == "beta":
            _not_beta(instances, what, means, present & ((means <= 0) | (means >= 1)), _AT_AN_END, "raise")
        else:
            for row, arm in np.argwhere(present & (means > 0) & (ticks.from_units(means) == 0))[:1]:
                raise _below_a_tick(instances[row], int(arm), what)


def _not_beta(
    instances: Sequence[Instance], what: str, means: np.ndarray, wrong: np.ndarray, of: str, how: str
) -> None:
    """Raise an InputError for the first arm of which there is no Beta law, or whose table would have another mean."""
    for row, arm in np.argwhere(wrong)[:1]:
        where = f"arm {shown(instances[row].arms[arm])} in instance {shown(instances[row].name)}"
        raise InputError(
            f"noise: 'beta' given; it must be 'bernoulli' for {of.format(what, means[row, arm])}, as that of {where} "
            f"(or {how} --{what}-max)"
        )


def _below_a_tick(instance: Instance, arm: int, what: str) -> InputError:
    least = getattr(instance, f"{what}_bound") * 2.0**-24
    return bad(
        f"instance {shown(instance.name)}, arm {shown(instance.arms[arm])}, mean {what}",
        float(getattr(instance, f"mean_{what}")[arm]),
        f"at least {least:.3g}, a 2**24th of the bound of the {what}s (lower --{what}-max)",
    )


# --- Means that are drawn anew for every run


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
    grow_only: bool = False,
) -> ArmsTable:
    """The table with bounds that hold whatever is drawn; what the user gave stays, if it does.

    A click brings one conversion at most; a cost is bounded by the largest mean of any draw, with the noise around it.
    As in :func:`~jaxbandits.comparison.read_arms` one pair serves the file, and in the Facebook format each instance.
    With ``grow_only`` no bound becomes smaller than it is.

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
    if grow_only:
        old = [(instance.reward_bound, instance.cost_bound) for instance in table.instances]
        found = [(max(r, s), max(c, d)) for (r, c), (s, d) in zip(found, old, strict=True)]
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


def run_arms(instances: Sequence[Instance], drawn: Sequence[Drawn], noise: str, cost_cv: float) -> FiniteArms:
    """Arms whose means were drawn for each run, row by row: instance by instance, run by run.

    Args:
        instances: with their bounds.
        drawn: of each instance, the means of the same number of runs, in the user's unit.
        noise: ``"clicks"``: one conversion or none, a price spread uniformly around its mean; ``"bernoulli"``: the
            whole bound or nothing for both; ``"empirical"``: a row of the log, with the weights that were drawn.
        cost_cv: coefficient of variation of the price.
    """
    if noise == "empirical":
        return _log_arms(instances, drawn)
    reward, cost, present = _padded(instances, [(found.reward, found.cost) for found in drawn])
    worth = np.full(reward.shape, ticks.ONE, np.int32)
    if noise == "clicks":
        for i, instance in enumerate(instances):
            worth[i] = max(int(ticks.from_units(np.array(1 / instance.reward_bound))), 1)
    chance = np.minimum(reward / (worth / ticks.ONE), 1.0)
    means = [ticks.from_units(x).astype(np.int32).reshape(-1, x.shape[-1]) for x in (chance, cost)]
    for i, _, arm in np.argwhere(present & (ticks.from_units(cost) < 1))[:1]:
        where = f"instance {shown(instances[i].name)}, arm {shown(instances[i].arms[arm])}"
        raise InputError(f"{where}: a mean cost below a 2**24th of the bound of the costs was drawn; lower --cost-max")
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


def _log_arms(instances: Sequence[Instance], drawn: Sequence[Drawn]) -> FiniteArms:
    """Arms of a log whose rows have other weights in every run."""
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
