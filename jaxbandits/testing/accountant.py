"""The contract of a constraint, one function for each rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._engine.scan import book
from jaxbandits.core import capabilities, ticks
from jaxbandits.core.protocol import Constraint, Environment, Ledger, Policy, Status, post
from jaxbandits.policies.ucb import CUCB
from jaxbandits.testing.lanes import MARKS, Subject, account_of, equal, finished_lanes_are_frozen, ledger_of
from jaxbandits.testing.learner import (
    leap_equals_scan,
    order_and_chunks_change_nothing,
    what_it_is_played_with_changes_nothing,
)


def books_without_jit(subject: Subject) -> None:
    """The account is the same without jit, to the bit."""
    constraint = _one(subject)
    for i in subject.sampled(8):
        before, outcome = _before(subject, i), subject.round(i).outcome
        with jax.disable_jit():
            slow = book(constraint, before, outcome)
        equal(subject.round(i).ledger, slow, f"round {i + 1}: the ledger without jit")


def clock_runs_forward(subject: Subject) -> None:
    """The clock never goes back, and a lane that has reached the end of the clock is at its end."""
    ledgers, constraint = jax.tree.map(jnp.asarray, subject.episodes(0).ledger), _one(subject)
    clock = ticks.join(jax.vmap(jax.vmap(constraint.clock))(ledgers))
    steps = np.diff(clock, axis=-1)
    assert (steps >= 0).all(), f"the clock goes back by {-int(steps.min())} ticks in a round"
    over, reached = np.asarray(subject.episodes(0).over), clock >= ticks.join(constraint.end())
    assert (over | ~reached).all(), "`ended` is False where the clock has reached its `end`: a lane would never end"


def every_lane_has_its_own_clock(subject: Subject) -> None:
    """The clocks of a result are those of its lanes one by one: numbers of an instance reach no other lane's clock."""
    instances, like = subject.environment.instances, _before(subject, 0)
    # accounts are [instance, …, mark]: where both axes are of one length, a wrong one broadcasts without a word
    marks = instances if instances != len(MARKS) else instances - 1
    for result in (subject.base, subject.run(marks=marks)):
        for lane in np.ndindex(*result.ledger["clock"].shape[1:]):
            account = {name: x[0, *lane] for name, x in result.ledger.items()}
            clock = ticks.join(_one(subject, lane[0]).clock(ledger_of(account, like)))
            expected = _one(subject, lane[0], np.asarray).expected_clock(account)
            for name, own in (("clock", clock), ("expected_clock", expected)):
                where = f"instance {lane[0]}, replicate {lane[1]}, mark {lane[2] + 1} of {len(result.marks)}"
                told = f"{where}: {name} is {account[name]}, of the lane by itself {own}"
                assert np.array_equal(account[name], own), told


def ends_as_it_says(subject: Subject) -> None:
    """Lanes end, with the status ``ends_with``, and in the best rate's unit."""
    ended, must = subject.base.ended, subject.constraint.ends_with
    other = ended[(ended != must) & (ended != Status.ROUND_CAP)]
    assert other.size == 0, f"a lane ends as {Status(int(other[0])).name}; it must be {must.name}"
    assert (ended == must).any(), f"no lane ends as {must.name}: all of them by max_rounds"
    rate = np.asarray(subject.base.best_rate)
    assert rate.shape == (subject.environment.instances,) and np.isfinite(rate).all(), f"best_rate gives {rate}"


def expected_clock_is_the_clock_of_the_means(subject: Subject) -> None:
    """Where every outcome is its own mean, ``expected_clock`` is the clock."""
    own = _one(subject, 0, np.asarray)
    constraint, ledger = _one(subject), _before(subject, 0)
    for i in subject.sampled(8):
        outcome = subject.round(i).outcome
        plain = outcome._replace(reward=outcome.expected_reward, cost=outcome.expected_cost)
        ledger = book(constraint, ledger, plain)
        if bool(constraint.ended(ledger)):
            return
        expected = own.expected_clock({name: x.astype(np.int64) for name, x in account_of(ledger).items()})
        clock = ticks.join(constraint.clock(ledger))
        assert np.array_equal(expected, clock), f"round {i + 1}: expected_clock is {expected}, the clock {clock} ticks"


def adds_up_as_declared(subject: Subject) -> None:
    """What is *additive* ends with its clock, and books what :func:`~jaxbandits.core.protocol.post` does until then."""
    if not capabilities.has(subject.constraint, capabilities.ADDITIVE):
        return
    if subject.environment.resources is None:  # of several it ends with the first
        constraint, ledgers = _one(subject), jax.tree.map(jnp.asarray, subject.episodes(0).ledger)
        reached = ticks.join(jax.vmap(jax.vmap(constraint.clock))(ledgers)) >= ticks.join(constraint.end())
        over = np.asarray(jax.vmap(jax.vmap(constraint.ended))(ledgers))
        assert (over == reached).all(), "it is additive, and `ended` before its clock has reached its `end`"
    for i in range(subject.steps.over.shape[0]):
        before, now = _before(subject, i), subject.round(i)
        if not bool(now.over):
            posted = post(before, now.outcome)._replace(rounds=before.rounds + 1)
            equal(posted, now.ledger, f"round {i + 1}: what post books and what charge books differ: the ledger")


CONSTRAINT_CHECKS: Sequence[Callable[[Subject], None]] = (
    books_without_jit,
    clock_runs_forward,
    every_lane_has_its_own_clock,
    ends_as_it_says,
    expected_clock_is_the_clock_of_the_means,
    adds_up_as_declared,
    finished_lanes_are_frozen,
    order_and_chunks_change_nothing,
    what_it_is_played_with_changes_nothing,
    leap_equals_scan,
)
"""The contract of a constraint, one function for each rule."""


def check_constraint(
    constraint: Constraint, environment: Environment, policy: Policy | None = None, *, key: Any = None
) -> None:
    """Check that a constraint keeps every rule of the contract. Takes some ten seconds, most of them compiling.

    Args:
        constraint: one whose lanes end after some hundred rounds.
        environment: a small world; two or more instances of different kinds are best.
        policy: who plays, default :class:`~jaxbandits.policies.CUCB`, which leaps where it is allowed to.
        key: the root key, default ``jax.random.key(0)``.

    Raises:
        AssertionError: naming the rule that is broken and where.
        InputError: if the three do not fit together.

    Example:
        >>> import jaxbandits as jb
        >>> from jaxbandits.testing import check_constraint
        >>> arms = jb.environments.FiniteArms.bernoulli([[0.5, 0.4], [0.3, 0.6]], [[0.9, 0.3], [0.4, 0.5]])
        >>> check_constraint(jb.TotalBudget(30.0, last_pull="forfeits"), arms, jb.policies.BGreedy())
    """
    subject = Subject(policy or CUCB(), environment, constraint, jax.random.key(0) if key is None else key)
    subject.keeps(CONSTRAINT_CHECKS, constraint)


def _one(subject: Subject, instance: int = 0, array: Callable[..., Any] = jnp.asarray) -> Constraint:
    """The traced form for one instance."""
    return jax.tree.map(lambda x: array(x)[instance], subject.prepared)


def _before(subject: Subject, i: int) -> Ledger:
    """The ledger before the round ``i + 1`` of the first lane."""
    if i > 0:
        return subject.round(i - 1).ledger
    empty = jax.tree.map(jnp.zeros_like, subject.round(0).ledger)
    return empty._replace(audit=jax.tree.map(jnp.asarray, _one(subject).audit()))
