"""Pacers for renewing budgets: by an even line, or by a price of money."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import constraints
from jaxbandits._numerics.arrays import ArrayLike
from jaxbandits.constraints import Allowance
from jaxbandits.core import arm_statistics, ticks
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.core.checks import InputError, refuse, whole_number
from jaxbandits.core.protocol import Chosen, Policy, View
from jaxbandits.core.pytrees import Pytree, leaf, pytree, select_tree, static
from jaxbandits.core.specs import SKIP, FiniteSpec
from jaxbandits.core.ticks import Total
from jaxbandits.policies.base import ArmTotals, largest
from jaxbandits.policies.ucb import lower_bound, upper_bound
from jaxbandits.policies.wrappers import AroundChoice, Choice

# --- An even pace: at any moment no more may be spent than the share of the period's requests that have come


@pytree
class EvenPace(AroundChoice):
    """Spends evenly: the inner policy chooses among arms whose cost bounds fit under the line.

    If none fits, the request is skipped.

    Held back is amount · (requests still expected − 1) / (requests expected in the period), of each
    budget.

    Args:
        policy: any policy for finitely many arms.
        share: how much of the even line is held back, from 0 (nothing) to 1; default 1.

    Raises:
        InputError: before anything runs, under a constraint other than
            :class:`~jaxbandits.Renewing`.

    Source: throttling, as ad servers do it.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.EvenPace(jb.policies.UCB1()).share
        1.0
    """

    policy: Policy = leaf()
    share: ArrayLike = leaf(default=1.0, at_least=0, at_most=1)

    def decide(self, state: Pytree, key: jax.Array, view: View, choose: Choice) -> Chosen:
        money = allowance_of(view)
        reserve = self.share * ticks.to_float(money.amount) * ((money.requests - 1) / money.total)
        whole = jnp.floor(reserve)
        part = jnp.floor((reserve - whole) * np.float32(ticks.ONE))
        back = Total(whole.astype(jnp.int32), part.astype(jnp.int32))
        rest = ticks.minus(Total(money.whole, money.part), back)
        now = money._replace(whole=rest.whole, part=rest.part)
        available = view.available & constraints.affordable(now, money.bound, money.scope)  # type: ignore[arg-type]
        none = ~jnp.any(available)
        acted, arm = choose(state, key, view._replace(available=available))
        return select_tree(none, state, acted), jnp.where(none, jnp.int32(SKIP), arm)


# --- A price on the money of every budget that renews, moved by mirror descent

# Of the first price: so deep may a price fall, or it would not come back in time
_LEAST = np.float32(2.0**-10)


class PricePacerState(NamedTuple):
    """Statistics, and the price of each budget's money; below 0: not yet set."""

    learnt: ArmStatistics
    price: jax.Array  # f32[d]: reward for a unit of cost


def allowance_of(view: View) -> Allowance:
    """What the view reports about renewing budgets."""
    if not isinstance(view.left, Allowance) or view.left.scope is None:
        must = "it must be Renewing, with the policy inside InFlight"
        raise InputError(f"constraint: one without renewing budgets given; {must}")
    return view.left


@pytree
class PricePacer(ArmTotals):
    """Pull the arm with the largest optimistic reward minus optimistic cost at the current prices:

    .. math:: \\arg\\max_k \\ \\omega^+(\\bar r_k) - \\sum_{j \\text{ pays for } k} \\lambda_j\\, \\omega^-(\\bar c_k),

    or skip the request if none is above 0; ω± are the bounds of ω-UCB, z² = 2ρ ln t. After each
    decision every price follows what its budget is about to pay, by mirror descent with the
    entropy:

    .. math:: \\lambda_j \\leftarrow \\lambda_j \\exp(\\eta\\, (\\bar c_{kj} / \\tau_j - 1)), \\qquad
        \\tau_j = \\frac{\\text{money left of budget } j}{\\text{requests expected until it
        renews}}.

    Of what is held for open requests, all but their arms' mean costs counts as left: it will come
    back.

    c̄ is the mean known now (the bound of an arm of which nothing is known), so late costs disturb
    nothing, and what it gets wrong returns through the money that is left. One step is at most a
    factor e; λτ stays at most 1, where its optimum lies; prices live on over renewals. With
    ``start=0`` money is free: spend until it is gone.

    In a world of several costs (money and tokens, say) budget j pays cost j, and every c̄ and ω⁻
    above is of that cost.

    Args:
        eta: η > 0, default 0.02.
        start: the first price, as λτ, at least 0; default 0.1.
        rho: ρ > 0, default ¼.
        budgets: how many there are.

    Raises:
        InputError: before anything runs, under a constraint other than
            :class:`~jaxbandits.Renewing`.

    Source: dual mirror descent (Balseiro, Lu, Mirrokni, Operations Research 2023) with the bounds
    of ω-UCB; no paper of this project states it in this form.
    """

    eta: ArrayLike = leaf(default=0.02, above=0)
    start: ArrayLike = leaf(default=0.1, at_least=0)
    rho: ArrayLike = leaf(default=0.25, above=0)
    budgets: int = static(default=1)

    def check(self, spec: FiniteSpec) -> None:
        whole_number("PricePacer.budgets", self.budgets, 1, 64)
        must, other = f"{spec.resources}, one for each cost", spec.resources != self.budgets
        refuse("PricePacer.budgets", self.budgets, spec.resources is not None and other, must)

    def init(self, spec: FiniteSpec) -> PricePacerState:
        return PricePacerState(super().init(spec), jnp.full((self.budgets,), -1, jnp.float32))

    def select(self, state: PricePacerState, key: jax.Array, view: View) -> Chosen:
        return self.select_while_open(state, key, view, jnp.zeros_like(state.learnt.pulls))

    def select_while_open(
        self, state: PricePacerState, key: jax.Array, view: View, open: jax.Array
    ) -> Chosen:
        money, learnt = allowance_of(view), arm_statistics.counted(state.learnt, open)
        arms = arm_statistics.as_floats(learnt, view.round)
        scope, n = money.scope.astype(jnp.float32), jnp.maximum(arms.n, 1)  # type: ignore[union-attr]
        bound = ticks.ticks_to_float(money.bound)  # type: ignore[arg-type]
        # [1 or d, K]
        cost, rest = (x[None, :] if x.ndim == 1 else x.T for x in (arms.cost, arms.cost_rest))
        mean = jnp.where((arms.n > 0)[None, :], cost / n[None, :], bound[None, :])
        target = renewing_pace(self, view, mean, open, self.budgets)
        price = price_now(state.price, target, self.start)

        k = 2 * self.rho * jnp.log(arms.t)
        prices = scope * price[:, None]
        high = upper_bound(arms.reward, arms.reward_rest, n, k)
        low = lower_bound(cost, rest, n[None, :], k[None, :])
        one = arms.cost.ndim == 1
        dear = jnp.sum(prices, axis=0) * low[0] if one else jnp.sum(prices * low, axis=0)
        net = jnp.where(arms.n > 0, high - dear, jnp.inf)
        best = largest(net, key, view, fresh=learnt.pulls == 0)
        is_best = jax.lax.iota(jnp.int32, net.shape[0]) == best
        rests = ~jnp.any(is_best & (net > 0))

        paid = jnp.sum(jnp.where(money.scope & (is_best & ~rests)[None, :], mean, 0), axis=1)  # type: ignore[operator]
        price = next_price(price, paid, target, self.eta, self.start)
        return state._replace(price=price), jnp.where(rests, jnp.int32(SKIP), best)


# --- The best arm at prices, or rest


def net_of(gain: jax.Array, price: jax.Array, cost: jax.Array) -> jax.Array:
    """What is left of ``gain`` ``[K]`` after ``cost`` ``[K, J]`` at these prices ``[J]``."""
    # One resource after the other: a reduction may add in another order in another program.
    for j in range(cost.shape[1]):
        gain = gain - price[j] * cost[:, j]
    return gain


def best_or_rest(
    net: jax.Array, key: jax.Array, view: View, may_rest: Any, fresh: Any = None
) -> tuple[jax.Array, jax.Array]:
    """(the arm with the largest net gain, or K to rest if none is positive; whether it rests).

    Arms that are ``fresh`` come first, whatever they gain.
    """
    arm, ids = largest(net, key, view, fresh=fresh), jax.lax.iota(jnp.int32, net.shape[0])
    rests = may_rest & jnp.any((ids == arm) & (net <= 0))
    rests = rests if fresh is None else rests & ~jnp.any(fresh)
    return jnp.where(rests, jnp.int32(net.shape[0]), arm), rests


# --- The descent that all pacers share: prices λ with the entropy as their distance, and the pace τ that they keep

_TICK = np.float32(1 / ticks.ONE)


def pace_of_rounds(left: jax.Array) -> jax.Array:
    """τ: what is left of each resource per remaining round; ``left`` ends with the rounds."""
    return jnp.maximum(left[:-1] / jnp.maximum(left[-1], 1), _TICK)


def renewing_pace(
    owner: Policy, view: View, mean: jax.Array, open: jax.Array, budgets: int
) -> jax.Array:
    """τ of renewing budgets: what is left per expected request.

    Open requests count at the mean costs of their arms, ``mean`` ``[1 or budget, K]``.
    """
    money = allowance_of(view)
    number = money.whole.shape[0]
    refuse(f"{type(owner).__name__}.budgets", budgets, number != budgets, f"{number}")
    bound = ticks.ticks_to_float(money.bound)[None, :]  # type: ignore[arg-type]
    scope = money.scope.astype(jnp.float32)  # type: ignore[union-attr]
    returns = jnp.sum(scope * (open[None, :] * jnp.maximum(bound - mean, 0)), axis=1)
    have = jnp.maximum(ticks.to_float(Total(money.whole, money.part)) + returns, 0)
    return jnp.maximum(have / money.requests, _TICK)  # type: ignore[operator]


def price_now(price: jax.Array, target: jax.Array, start: ArrayLike) -> jax.Array:
    """λ at pace τ: ``start``/τ if not yet set (below 0), and at most 1/τ."""
    return jnp.where(price < 0, start / target, jnp.minimum(price, 1 / target))


def next_price(
    price: jax.Array, paid: jax.Array, target: jax.Array, eta: ArrayLike, start: ArrayLike
) -> jax.Array:
    """λ exp(min(η (paid/τ − 1), 1)), with λτ kept in [``start``/2¹⁰, 1]; for each budget."""
    price = price * jnp.exp(jnp.minimum(eta * (paid / target - 1), 1))
    return jnp.clip(price, jnp.minimum(start * _LEAST, 1) / target, 1 / target)
