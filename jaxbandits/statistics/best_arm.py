"""The value of a run that stops and recommends an arm; the cost of a cheap, good enough arm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandits._numerics.arrays import one_of
from jaxbandits.core import ticks
from jaxbandits.core.checks import bad
from jaxbandits.core.protocol import Constraint, Environment

if TYPE_CHECKING:
    import xarray

GOALS = ("reward", "ratio")


def _worth(world: Environment, goal: str) -> np.ndarray:
    """What each arm is worth, ``[instance, K]``: μ, or μ/c; NaN where there is none."""
    one_of("goal", goal, GOALS)
    reward, cost = world.values()
    if goal == "reward":
        return reward
    if cost.ndim > reward.ndim:
        raise bad("goal", goal, "'reward' in a world of several costs")
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(cost > 0, reward / cost, np.where(reward > 0, np.inf, 0.0))


def _of_recommended(result: Any, table: np.ndarray) -> xarray.DataArray:
    """Each lane's entry of a table ``[instance, K]`` at the arm that it recommends."""
    arm = result.recommended
    values = np.take_along_axis(table[None, :, None], arm.values[..., None], axis=-1)[..., 0]
    return arm.copy(data=values)


def error(
    result: Any, world: Environment, goal: str = "reward", within: float = 0.0
) -> xarray.DataArray:
    """Is the recommended arm not the best? Axes ``setting, instance, replicate``.

    Args:
        result: of policies that recommend an arm.
        world: what was played.
        goal: ``"reward"``: best is the largest mean reward μ; ``"ratio"``: the largest μ/c.
        within: an arm that is worse by no more than this counts as best.

    Raises:
        InputError: policies that recommend none; another goal.

    The mean is the error probability, :func:`~jaxbandits.statistics.mean` its interval.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.6, 0.5, 0.4, 0.3], [0.9, 0.1, 0.5, 0.5])
        >>> budget = jb.TotalBudget(100.0, last_pull="counts")
        >>> result = jb.simulate(
        ...     jb.policies.Elimination("halving"), arms, budget, key=jax.random.key(0), replicates=100, marks=1)
        >>> float(jb.statistics.error(result, arms).mean())
        0.1
    """
    return (simple_regret(result, world, goal) > within).rename("error")


def simple_regret(result: Any, world: Environment, goal: str = "reward") -> xarray.DataArray:
    """μ* − μ of the recommended arm, or of μ/c; arguments and axes as for :func:`error`.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.8, 0.5, 0.3], [0.9, 0.1, 0.5])
        >>> limit, policy = jb.Horizon(1000), jb.policies.ChernoffOverlap(delta=0.5)
        >>> result = jb.simulate(policy, arms, limit, key=jax.random.key(0), replicates=4, marks=1)
        >>> jb.statistics.simple_regret(result, arms).values.ravel().tolist()
        [0.0, 0.0, 0.0, 0.0]
        >>> jb.statistics.simple_regret(result, arms, goal="ratio").values.ravel().round(2).tolist()
        [4.11, 4.11, 4.11, 4.11]
    """
    worth = _worth(world, goal)
    best = np.nanmax(worth, axis=1)[None, :, None]
    recommended = _of_recommended(result, worth)
    with np.errstate(invalid="ignore"):
        gap = np.where(recommended.values == best, 0.0, best - recommended.values)
    return recommended.copy(data=gap).rename("simple_regret")


def saved(result: Any, world: Environment, constraint: Constraint) -> xarray.DataArray:
    """What a lane left of the clock, money or rounds, by ending before; axes ``setting, instance,
    replicate``.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.8, 0.5, 0.3], [0.9, 0.1, 0.5])
        >>> limit, policy = jb.Horizon(1000), jb.policies.ChernoffOverlap(delta=0.5)
        >>> result = jb.simulate(policy, arms, limit, key=jax.random.key(0), replicates=4, marks=1)
        >>> jb.statistics.saved(result, arms, limit).values.ravel().tolist()
        [761.0, 818.0, 843.0, 587.0]
    """
    clock = ticks.to_units(result.ledger["clock"][..., -1])
    unspent = np.maximum(_end(world, constraint)[None, :, None] - clock, 0)
    return _per_lane(result, unspent, "saved")


def committed_regret(result: Any, world: Environment, constraint: Constraint) -> xarray.DataArray:
    """Regret if what is left when the lane ends is spent on the recommended arm.

    .. math:: \\text{regret} + (\\text{end} - \\text{expected clock})(\\rho^* - \\rho_{\\text{recommended}}),

    ρ being the reward per unit of the clock. The regret of a lane that stops stands still, since
    money that is not spent costs nothing: runs that stop compare with others by this alone.

    Raises:
        InputError: policies that recommend none; a world of several costs under a budget.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.8, 0.5, 0.3], [0.9, 0.1, 0.5])
        >>> limit, policy = jb.Horizon(1000), jb.policies.ChernoffOverlap(delta=0.5)
        >>> result = jb.simulate(policy, arms, limit, key=jax.random.key(0), replicates=4, marks=1)
        >>> jb.statistics.committed_regret(result, arms, limit).values.ravel().round(1).tolist()
        [59.7, 41.8, 45.4, 96.4]
    """
    rate = _worth(world, "reward" if result.about.clock == "rounds" else "ratio")
    loss_rate = np.nanmax(rate, axis=1)[None, :, None] - _of_recommended(result, rate).values
    clock = ticks.to_units(result.ledger["expected_clock"][..., -1])
    unspent = np.maximum(_end(world, constraint)[None, :, None] - clock, 0)
    total = result.regret.values[..., -1] + unspent * loss_rate
    return _per_lane(result, total, "committed_regret")


def _end(world: Environment, constraint: Constraint) -> np.ndarray:
    """Where the clock ends, in units, ``[instance]``."""
    return ticks.to_units(ticks.join(constraint.prepare(world).end()))


def _per_lane(result: Any, values: np.ndarray, name: str) -> xarray.DataArray:
    return result.rounds[..., -1].drop_vars("mark", errors="ignore").copy(data=values).rename(name)


def quality_regret(result: Any, world: Environment, alpha: float) -> xarray.DataArray:
    """:math:`\\sum_k n_k (q - \\mu_k)^+` at every mark, :math:`q = (1-\\alpha) \\mu^*`: below the
    floor.

    Args:
        result: of ``simulate(…, record=("pulls",))``.
        world: what was played.
        alpha: α in [0, 1], the share of the best mean that may be given up.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.75, 0.9], [0.1, 0.3, 0.8])
        >>> policy = jb.policies.CSUCB(alpha=0.3, horizon=2000, costs=[0.1, 0.3, 0.8])
        >>> result = jb.simulate(
        ...     policy, arms, jb.Horizon(2000), key=jax.random.key(0), replicates=20, marks=[0.5, 1], record=("pulls",))
        >>> jb.statistics.quality_regret(result, arms, 0.3).mean("replicate").values.ravel().round(1).tolist()
        [47.6, 47.6]
        >>> jb.statistics.cost_regret(result, arms, 0.3).mean("replicate").values.ravel().round(1).tolist()
        [0.5, 0.5]
    """
    reward, _, floor = _floor(world, alpha)
    return result.linear(np.nan_to_num(np.maximum(floor - reward, 0))).rename("quality_regret")


def cost_regret(result: Any, world: Environment, alpha: float) -> xarray.DataArray:
    """:math:`\\sum_k n_k (c_k - c_{k^*})^+` at every mark, :math:`k^*` the cheapest arm with
    :math:`\\mu_k \\ge q`.

    Arguments, axes and errors as for :func:`quality_regret`; of several cheapest arms k* is the one
    with the larger μ.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.75, 0.9], [0.1, 0.3, 0.8])
        >>> options = {"key": jax.random.key(0), "replicates": 20, "marks": 1, "record": ("pulls",)}
        >>> result = jb.simulate(jb.policies.UCB1(), arms, jb.Horizon(2000), **options)
        >>> float(jb.statistics.cost_regret(result, arms, 0.3).mean().round())
        845.0
    """
    reward, cost, floor = _floor(world, alpha)
    lowest_cost = np.nanmin(np.where(reward >= floor, cost, np.nan), axis=1, keepdims=True)
    return result.linear(np.nan_to_num(np.maximum(cost - lowest_cost, 0))).rename("cost_regret")


def _floor(world: Environment, alpha: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if not 0 <= alpha <= 1:
        raise bad("alpha", alpha, "from 0 to 1")
    reward, cost = world.values()
    if cost.ndim > reward.ndim:
        raise bad("world", f"{cost.shape[-1]} costs", "of one cost")
    return reward, cost, (1 - alpha) * np.nanmax(reward, axis=1, keepdims=True)
