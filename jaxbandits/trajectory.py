"""One run, round by round, as a pure function to jit, vmap and differentiate."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits._engine import scan
from jaxbandits._engine.setup import lane_of, prepared
from jaxbandits.core import streams
from jaxbandits.core.checks import door, whole_number
from jaxbandits.core.fingerprint import PROGRAM
from jaxbandits.core.protocol import Constraint, Environment, Ledger, Outcome, Policy, Status
from jaxbandits.core.pytrees import Pytree, select_tree

__all__ = ["Trajectory", "rollout"]


class Trajectory(NamedTuple):
    """One run, every array ``[round, …]``.

    Attributes:
        action: what the policy chose.
        outcome: the outcome, in ticks of 2⁻²⁴; all zeros if there was no round.
        ledger: the account after the round; see :class:`~jaxbandits.core.protocol.Ledger`.
        status: after the round, see :class:`~jaxbandits.Status`: RUNNING until the lane has ended.
        played: whether there was a round. Once False it stays False, and everything else stays
            unchanged.
        state: the policy's state after its choice: it has learned the rounds before, but not yet
            this one's outcome.
    """

    action: Pytree
    outcome: Outcome
    ledger: Ledger
    status: jax.Array
    played: jax.Array
    state: Pytree


@door
def rollout(
    policy: Policy,
    environment: Environment,
    constraint: Constraint,
    *,
    key: Any,
    rounds: int,
    instance: Any = 0,
    replicate: Any = 0,
    max_rounds: int | None = None,
) -> Trajectory:
    """The first ``rounds`` rounds of one run, with the bits of :func:`~jaxbandits.simulate`.

    A masked ``lax.scan``: a pure function of the policy's leaves, ``key``, ``instance`` and
    ``replicate``, any of which may be traced. For thousands of lanes, or until all budgets are
    spent, ``simulate`` is faster and needs no length.

    Args:
        policy: one setting; its leaves are scalars (or ``[K]`` where a parameter is per arm).
        environment: the world; not traced.
        constraint: when the run ends; not traced.
        key: the root key, as in ``simulate``.
        rounds: the length of the scan; static.
        instance, replicate: which run of the batch that ``simulate`` would run.
        max_rounds: as in ``simulate``.

    Returns:
        A :class:`Trajectory`, every array ``[rounds, …]``.

    Raises:
        InputError: as ``simulate`` does, where leaves are not traced; several settings; an instance
            that is not there.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
        >>> limit = jb.TotalBudget(3.0, last_pull="counts")
        >>> lane = jb.rollout(jb.policies.UCB1(), arms, limit, key=jax.random.key(0), rounds=12)
        >>> int(lane.played.sum()) == int(lane.ledger.rounds[-1]), jb.Status(int(lane.status[-1])).name
        (True, 'EXHAUSTED')
        >>> many = jax.vmap(lambda r: jb.rollout(
        ...     jb.policies.UCB1(), arms, limit, key=jax.random.key(0), rounds=12, replicate=r))(jax.numpy.arange(4))
        >>> many.action.shape
        (4, 12)
    """
    whole_number("rounds", rounds, 1, 2**30, "2**30")
    # What is not traced is checked and prepared on the host, under jit too
    with jax.ensure_compile_time_eval():
        ready, leaves, cap, program = prepared(policy, environment, constraint, max_rounds)
    root = key if isinstance(key, jax.core.Tracer) else streams.root_key(key)
    ids = _id("instance", instance, environment.instances), _id("replicate", replicate, 2**32)
    lane = lane_of(ready, leaves, cap, root, *ids)
    tables = jax.tree.map(jnp.asarray, environment)
    begin = scan.start_lane(tables, lane)

    def next_round(state: scan.LaneState, _: None) -> tuple[scan.LaneState, Trajectory]:
        running = state.status == Status.RUNNING
        after, outcome = scan.play(tables, lane, begin.available, state)
        after = select_tree(running, after, state)
        has_pulled = after.ledger.rounds > state.ledger.rounds
        outcome = jax.tree.map(lambda x: jnp.where(has_pulled, x, jnp.zeros_like(x)), outcome)
        account = outcome, after.ledger, after.status
        return after, Trajectory(after.action, *account, has_pulled, after.policy)

    with PROGRAM(program):
        return jax.lax.scan(next_round, begin.state, None, length=rounds)[1]


def _id(name: str, value: Any, count: int) -> Any:
    return value if isinstance(value, jax.core.Tracer) else whole_number(name, value, 0, count - 1)
