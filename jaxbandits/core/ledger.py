"""What an accountant sees of a round (:class:`Outcome`), and what it keeps of a lane (:class:`Ledger`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.core import ticks
from jaxbandits.core.ticks import Total


class Outcome(NamedTuple):
    """What the accountant sees of a round, in ticks. Policies never see it."""

    reward: jax.Array  # i32[]
    cost: jax.Array  # i32[], or i32[d] for d resources
    expected_reward: jax.Array  # i32[]: mean of `reward` given the action
    expected_cost: jax.Array  # as cost
    events: Mapping[str, jax.Array]  # named 0/1 counts of this round (i32[]), summed and reported
    valid: jax.Array  # bool[]: the action was one that the environment has


class Ledger(NamedTuple):
    """The exact account of one lane. Written to the result at every mark."""

    rounds: jax.Array  # i32[]
    reward: Total
    spent: Total
    expected_reward: Total
    expected_spent: Total
    events: Mapping[str, jax.Array]  # i32[]
    audit: Mapping[str, Total]  # what the constraint itself keeps (see AverageCost)


def post(ledger: Ledger, outcome: Outcome, earns: jax.Array | bool = True) -> Ledger:
    """Add ``outcome`` (of one round, or the sum over several) to the totals; the runner counts rounds.

    A pull that does not ``earn`` brings no reward (nor expected reward), but is paid for in full: a constraint that
    never pays more than is left must cap ``spent`` itself, as ``TotalBudget`` does.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxbandits.core import Ledger, Outcome, post, ticks
        >>> half, none = jnp.int32(ticks.ONE // 2), ticks.zero()
        >>> before = Ledger(jnp.int32(0), none, none, none, none, events={}, audit={})
        >>> round = Outcome(half, half, half, half, events={}, valid=jnp.bool_(True))
        >>> after = post(before, round, earns=False)
        >>> float(ticks.to_float(after.reward)), float(ticks.to_float(after.spent))
        (0.0, 0.5)
    """

    def earned(x: jax.Array) -> jax.Array:
        return jnp.where(earns, x, 0)

    return ledger._replace(
        reward=ticks.add(ledger.reward, earned(outcome.reward)),
        spent=ticks.add(ledger.spent, outcome.cost),
        expected_reward=ticks.add(ledger.expected_reward, earned(outcome.expected_reward)),
        expected_spent=ticks.add(ledger.expected_spent, outcome.expected_cost),
        events=dict(ledger.events) | {name: ledger.events[name] + n for name, n in outcome.events.items()},
    )
