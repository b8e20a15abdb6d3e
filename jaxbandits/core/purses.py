"""Budgets that renew, as whoever decides knows them: what is granted, what is spent or held, what is left.

An open request is charged its arm's own bound; when its cost is known, the difference is given back to the period in
which it was decided. So what is known to be left is never more than what is left, and nothing is overspent. The same
functions serve the simulator (:class:`~jaxbandits.policies.InFlight`) and the service (``jb.live.Agent``).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.core import ticks
from jaxbandits.core.ticks import Total


class Allowance(NamedTuple):
    """What a constraint tells of d budgets before a round; ``whole`` and ``part`` make it a total: what is left."""

    whole: jax.Array  # i32[d]
    part: jax.Array  # i32[d]
    granted: Total  # [d]: for this period; for all periods so far where what is left is carried over
    amount: Total  # [d]: what every period brings
    since: jax.Array  # i32[d]: first round of this period
    requests: jax.Array  # i32[d]: expected until the period ends, this one included; at least 1
    total: jax.Array  # i32[d]: expected in the whole period; at least 1
    carries: jax.Array  # bool[d]: is what is left carried over?
    bound: jax.Array | None = None  # i32[K]: ticks, the most that a pull of each arm can cost (set by who decides)
    scope: jax.Array | None = None  # bool[d, K]: which budget pays for which arm (set by who decides)


class Purse(NamedTuple):
    """The account of whoever decides."""

    charged: (
        Total  # [d]: known costs and held bounds, of this period; of all periods where what is left is carried over
    )
    since: jax.Array  # i32[d]: first round of the period that it knows of
    carries: jax.Array  # bool[d]


def empty(budgets: int) -> Purse:
    """Nothing charged."""
    return Purse(ticks.zero((budgets,)), jnp.zeros((budgets,), jnp.int32), jnp.zeros((budgets,), bool))


def renewed(purse: Purse, allowance: Allowance) -> Purse:
    """The purse in the period that the allowance speaks of."""
    keep = allowance.carries | (allowance.since == purse.since)
    charged = Total(jnp.where(keep, purse.charged.whole, 0), jnp.where(keep, purse.charged.part, 0))
    return Purse(charged, allowance.since, allowance.carries)


def left(purse: Purse, allowance: Allowance) -> Allowance:
    """The allowance with what this purse knows to be left."""
    money = ticks.minus(allowance.granted, purse.charged)
    return allowance._replace(whole=money.whole, part=money.part)


def affordable(allowance: Allowance, bound: jax.Array, scope: jax.Array) -> jax.Array:
    """Which arms every budget that pays for them can pay at their bounds: ``bool[K]``.

    Args:
        allowance: what is left, ``[d]``.
        bound: ``i32[K]``, ticks.
        scope: ``bool[d, K]``: which budget pays for which arm.
    """
    needed = ticks.add(ticks.zero((1, bound.shape[0])), bound[None, :])
    short = ticks.exceeds(needed, Total(allowance.whole[:, None], allowance.part[:, None]))
    return ~jnp.any(scope & short, axis=0)


def charge(purse: Purse, cost: jax.Array, pays: jax.Array) -> Purse:
    """Charge ``cost`` (ticks) to the budgets that pay, ``bool[d]``."""
    return purse._replace(charged=ticks.add(purse.charged, jnp.where(pays, cost, 0)))


def settle(purse: Purse, round: jax.Array, difference: jax.Array, pays: jax.Array) -> Purse:
    """Give ``difference`` (ticks: bound − cost) back to the period in which ``round`` was decided.

    A period that is over and carries nothing over keeps it.
    """
    return charge(purse, -difference, pays & (purse.carries | (round >= purse.since)))


def pays_for(scope: jax.Array, arm: jax.Array) -> jax.Array:
    """Which budgets pay for an arm, ``bool[d]``."""
    ids = jax.lax.iota(jnp.int32, scope.shape[1])
    return jnp.any(scope & (ids == arm)[None, :], axis=1)
