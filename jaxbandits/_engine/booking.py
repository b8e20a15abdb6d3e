"""The exact account of a lane: opened, booked round by round, and read on the host."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import ticks
from jaxbandits.core.ledger import Ledger, Outcome, post
from jaxbandits.core.protocol import Constraint


def ledger_of(rows: Any, constraint: Constraint) -> dict[str, np.ndarray]:
    """The exact accounts by name, int64 ``[lane, mark(, resource)]``, from ledgers ``[lane, mark]``."""
    ledger = {"rounds": np.asarray(rows.rounds, np.int64)}
    for name in ("reward", "spent", "expected_reward", "expected_spent"):
        ledger[name] = ticks.join(getattr(rows, name))
    ledger |= {f"event:{name}": np.asarray(x, np.int64) for name, x in rows.events.items()}
    ledger |= {f"audit:{name}": ticks.join(x) for name, x in rows.audit.items()}
    ledger["clock"] = ticks.join(constraint.clock(rows))
    ledger["expected_clock"] = constraint.expected_clock(ledger)
    return ledger


def open_ledger(constraint: Constraint, outcome: Outcome) -> Ledger:
    """The account before round 1; ``outcome`` gives shapes and event names only (``jax.eval_shape`` of a pull does)."""
    return Ledger(
        rounds=jnp.int32(0),
        reward=ticks.zero(),
        spent=ticks.zero(outcome.cost.shape),
        expected_reward=ticks.zero(),
        expected_spent=ticks.zero(outcome.expected_cost.shape),
        events={name: jnp.int32(0) for name in outcome.events},
        audit=constraint.audit(),
    )


def book(constraint: Constraint, ledger: Ledger, outcome: Outcome) -> Ledger:
    """One round, charged by the constraint and counted by us: a lane's rounds go on whatever a constraint forgets."""
    return constraint.charge(ledger, outcome)._replace(rounds=ledger.rounds + 1)


def book_many(ledger: Ledger, sums: Outcome, rounds: jax.Array) -> Ledger:
    """Several rounds below the end of an *additive* constraint: what :func:`book` gives, one by one.

    Args:
        ledger: the account before them.
        sums: their outcomes, summed (ticks that fit an int32: of 64 rounds at most); arrays give several accounts.
        rounds: how many they are, of the shape of ``sums``.
    """
    return post(ledger, sums)._replace(rounds=ledger.rounds + rounds)
