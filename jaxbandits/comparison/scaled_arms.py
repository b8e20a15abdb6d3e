"""The way from instances of an arms file to :class:`~jaxbandits.environments.FiniteArms`, in scaled units."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxbandits.comparison.arms_table import Instance
from jaxbandits.core import ticks
from jaxbandits.core.errors import InputError, bad, shown
from jaxbandits.environments.finite.arms import FiniteArms

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
    width = width or max(len(instance.arms) for instance in instances)
    reward, cost = np.full((2, len(instances), width), 0.5)
    present = np.zeros(reward.shape, bool)
    for row, instance in enumerate(instances):
        arms = slice(len(instance.arms))
        reward[row, arms], cost[row, arms] = instance.scaled_mean_reward, instance.scaled_mean_cost
        present[row, arms] = True
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
            _check_tables(instances, arms, reward, cost, present)
    for row, arm in np.argwhere(arms.values()[1] <= 0)[:1]:
        raise _below_a_tick(instances[row], int(arm), "cost")
    return arms


def _check_means(
    instances: Sequence[Instance], reward: np.ndarray, cost: np.ndarray, present: np.ndarray, noise: str
) -> None:
    """Means at an end have no Beta law; for a coin, means above 0 must be a tick or more."""
    for row, instance in enumerate(instances):
        for what, means in (("reward", reward[row, present[row]]), ("cost", cost[row, present[row]])):
            if noise == "beta" and ((means <= 0) | (means >= 1)).any():
                at = int(np.flatnonzero((means <= 0) | (means >= 1))[0])
                raise InputError(
                    f"noise: 'beta' given; it must be 'bernoulli' for mean {what}s at 0 or at their bound, as that of "
                    f"arm {shown(instance.arms[at])} in instance {shown(instance.name)} (or raise --{what}-max)"
                )
            small = (means > 0) & (ticks.from_units(means) == 0)
            if noise == "bernoulli" and small.any():
                raise _below_a_tick(instance, int(np.flatnonzero(small)[0]), what)


def _check_tables(
    instances: Sequence[Instance], arms: FiniteArms, reward: np.ndarray, cost: np.ndarray, present: np.ndarray
) -> None:
    """The means that are played are those of tables, which may miss a small one."""
    for what, given, played in zip(("reward", "cost"), (reward, cost), arms.values(), strict=True):
        for row, arm in np.argwhere(present & (np.abs(played - given) > _BETA_ERROR * given))[:1]:
            where = f"arm {shown(instances[row].arms[arm])} in instance {shown(instances[row].name)}"
            raise InputError(
                f"noise: 'beta' given; it must be 'bernoulli' for a mean {what} of {given[row, arm]:.3g} of its bound, "
                f"as that of {where}, for its table would have the mean {played[row, arm]:.3g} (or lower --{what}-max)"
            )


def _below_a_tick(instance: Instance, arm: int, what: str) -> InputError:
    least = getattr(instance, f"{what}_bound") * 2.0**-24
    return bad(
        f"instance {shown(instance.name)}, arm {shown(instance.arms[arm])}, mean {what}",
        float(getattr(instance, f"mean_{what}")[arm]),
        f"at least {least:.3g}, a 2**24th of the bound of the {what}s (lower --{what}-max)",
    )
