"""PD-BwK, with money alone and with time beside it (Badanidiyuru, Kleinberg, Slivkins: Bandits with knapsacks, JACM 65,
2018)."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import ticks
from jaxbandits.core.arm_statistics import Arms, ArmStatistics, counted
from jaxbandits.core.errors import bad
from jaxbandits.core.numbers import numbers
from jaxbandits.core.protocol import Observation, View
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.ticks import Total
from jaxbandits.policies.base.arm_totals import ArmTotals
from jaxbandits.policies.base.index import IndexPolicy
from jaxbandits.policies.base.ties import largest


def rad(mean: jax.Array, n: jax.Array, c_rad: jax.Array) -> jax.Array:
    """rad(ν, N) = √(C_rad ν / N) + C_rad / N."""
    return jnp.sqrt(c_rad * mean / n) + c_rad / n


@pytree
class PDBwK(IndexPolicy):
    """PD-BwK, the primal-dual policy, where money is the only resource.

    .. math:: \\frac{\\min(\\bar r_k + \\mathrm{rad}(\\bar r_k, n_k), 1)}
        {\\max(\\bar c_k - \\mathrm{rad}(\\bar c_k, n_k), 0)}, \\qquad
        \\mathrm{rad}(\\nu, N) = \\sqrt{C_{rad}\\, \\nu / N} + C_{rad} / N;

    +∞ where the denominator is 0. With one resource and no horizon the dual weights are one common factor, whose rate
    ε = √(ln d / B) is 0 besides, so nothing of them remains. Leaps: the index does not depend on t at all.

    Args:
        c_rad: C_rad > 0, a constant of order ln(dTm) that the paper leaves open. :meth:`for_budget` gives the value
            that the BTS paper's comparison used, ¼ ln(B K), which needs the budget.

    Source: §2 and §5 of the paper; its radius is rebuilt from the text and its Claim 4.6.

    Example:
        >>> import jaxbandits as jb
        >>> round(float(jb.policies.PDBwK.for_budget(1e4, arms=10).c_rad), 6)
        2.878231
    """

    c_rad: Any = leaf(above=0)

    rests: ClassVar[bool] = True

    @classmethod
    def for_budget(cls, budget: Any, arms: Any) -> PDBwK:
        """With C_rad = ¼ ln(B K), at least 0.1; arrays ``[instance]`` give one value per instance."""
        return cls(c_rad=usual_c_rad(budget, arms))

    def score(self, arms: Arms) -> jax.Array:
        """min(r̄ + rad(r̄, n), 1) / max(c̄ − rad(c̄, n), 0)."""
        upper, lower = ends(arms.mean_reward, arms.mean_cost, arms.n, self.c_rad)
        return jnp.where(lower > 0, upper / lower, jnp.inf)


def ends(reward: jax.Array, cost: jax.Array, n: jax.Array, c_rad: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(U, L): min(r̄ + rad(r̄, n), 1) and c̄ − rad(c̄, n), which may be below 0."""
    return jnp.minimum(reward + rad(reward, n, c_rad), 1), cost - rad(cost, n, c_rad)


def usual_c_rad(budget: Any, arms: Any) -> np.ndarray:
    """¼ ln(B K), at least 0.1: a number, or ``[1, instance]``.

    Raises:
        InputError: a budget or a number of arms that is not finite and above 0.
    """
    given = [numbers(name, value) for name, value in (("budget", budget), ("arms", arms))]
    for name, x in zip(("budget", "arms"), given, strict=True):
        if (wrong := ~(np.isfinite(x) & (x > 0))).any():
            raise bad(name, float(x[wrong].flat[0]), "a finite number above 0")
    c_rad = np.maximum(0.25 * np.log(np.multiply(*given)), 0.1)
    return c_rad if c_rad.ndim == 0 else np.atleast_2d(c_rad)


class TimedState(NamedTuple):
    """Statistics, and what the weights are made of."""

    learnt: ArmStatistics
    money: Total  # Σ L of the arms played by their index, each rounded down to a tick
    rounds: jax.Array  # i32[]: how many those were


@pytree
class PDBwKWithTime(ArmTotals):
    """PD-BwK with two resources, money and time: a round uses B/T of a budget of time that is as large as the money's.

    .. math:: \\arg\\max_k \\frac{U_k}{v_{money}\\, L_k + v_{time}\\, B/T}, \\qquad
        v_i \\leftarrow v_i (1 + \\varepsilon)^{L_{i}}, \\quad \\varepsilon = \\sqrt{\\ln 2 / B},

    :math:`U_k = \\min(\\bar r_k + \\mathrm{rad}(\\bar r_k, n_k), 1)` and
    :math:`L_k = \\max(\\bar c_k - \\mathrm{rad}(\\bar c_k, n_k), 0)` as in :class:`PDBwK`; :math:`L_i` is that of the
    arm just played, B/T for time, and both weights begin at 1 when each arm was pulled once. Exact ties at random.
    Where money is scarce its weight grows and this is :class:`PDBwK`; where time is, the index is the mean reward's
    bound.

    Args:
        c_rad: C_rad > 0; :meth:`for_budget` gives ¼ ln(B K).
        budget: B > 0, of money.
        horizon: T ≥ B, in rounds. It is the policy's belief: the constraint ends the run.

    Raises:
        InputError: before anything runs, for values outside their ranges, T < B, or an environment with several
            resources.

    Does not leap: the weights change every round.

    Source: §2 and §5 of the paper, Algorithm 2 with d = 2; as :class:`PDBwK`.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.PDBwKWithTime.for_budget(100.0, arms=3, horizon=400.0).horizon
        400.0
    """

    c_rad: Any = leaf(above=0)
    budget: Any = leaf(above=0)
    horizon: Any = leaf(above=0)

    @classmethod
    def for_budget(cls, budget: Any, arms: Any, horizon: Any) -> PDBwKWithTime:
        """With C_rad = ¼ ln(B K), at least 0.1; arrays ``[instance]`` give one value per instance."""
        given: list[Any] = [usual_c_rad(budget, arms), budget, horizon]
        if any(np.ndim(x) for x in given):
            given = [np.atleast_2d(x) for x in np.broadcast_arrays(*given)]  # [1, instance]
        return cls(*given)

    def check(self, spec: FiniteSpec) -> None:
        """One cost, and a round that uses no more than a unit of time."""
        super().check(spec)
        if (short := np.asarray(self.horizon) < np.asarray(self.budget)).any():
            shown = float(np.broadcast_to(self.horizon, short.shape)[short].flat[0])
            raise bad("PDBwKWithTime.horizon", shown, "at least the budget, so that a round uses one unit at most")

    def init(self, spec: FiniteSpec) -> TimedState:
        """Nothing known, nothing used."""
        return TimedState(super().init(spec), ticks.zero(), jnp.int32(0))

    def update(self, state: TimedState, key: jax.Array, observation: Observation) -> TimedState:
        """Add the observed reward and cost to the arm's totals."""
        return state._replace(learnt=super().update(state.learnt, key, observation))

    def select(self, state: TimedState, key: jax.Array, view: View) -> tuple[TimedState, jax.Array]:
        """The largest reward for what it uses, and what that is."""
        fresh = state.learnt.pulls == 0
        score, lower = self.score(state)
        arm = largest(score, key, view, fresh=fresh)
        there = fresh if view.available is None else fresh & view.available
        by_index = ~jnp.any(there)
        used = jnp.where(by_index & (jax.lax.iota(jnp.int32, fresh.shape[0]) == arm), jnp.floor(lower * ticks.ONE), 0)
        money = ticks.add(state.money, jnp.sum(used.astype(jnp.int32), dtype=jnp.int32))
        return TimedState(state.learnt, money, state.rounds + by_index.astype(jnp.int32)), arm

    def select_while_open(
        self, state: TimedState, key: jax.Array, view: View, open: jax.Array
    ) -> tuple[TimedState, jax.Array]:
        """Open pulls count at their arm's current means."""
        used, arm = self.select(state._replace(learnt=counted(state.learnt, open)), key, view)
        return used._replace(learnt=state.learnt), arm

    def score(self, state: TimedState) -> tuple[jax.Array, jax.Array]:
        """(U/(v L + v' B/T), L), ``f32[K]``; weights over the larger one, so that none overflows."""
        reward, cost, n = (ticks.to_float(state.learnt.reward), ticks.to_float(state.learnt.cost), state.learnt.pulls)
        reward, cost, n, money = jax.lax.optimization_barrier((reward, cost, n, ticks.to_float(state.money)))
        n = jnp.maximum(n, 1).astype(jnp.float32)
        upper, lower = ends(reward / n, cost / n, n, self.c_rad)
        lower, share = jnp.maximum(lower, 0), self.budget / self.horizon
        rate = jnp.log1p(jnp.sqrt(np.float32(np.log(2)) / self.budget))
        ahead = rate * (money - share * state.rounds.astype(jnp.float32))  # ln of v_money / v_time
        uses = lower * jnp.exp(jnp.minimum(ahead, 0)) + share * jnp.exp(jnp.minimum(-ahead, 0))
        return jnp.where(uses > 0, upper / uses, jnp.inf), lower
