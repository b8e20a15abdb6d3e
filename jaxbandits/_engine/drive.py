"""The driver: chunks of an engine, marks between them, lanes handed out to slots, all on the device."""

from __future__ import annotations

import os
from functools import cache, partial
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits._engine.rows import at_instance
from jaxbandits._engine.scan import Carry, Lane, LaneState, record, start
from jaxbandits.core import ticks
from jaxbandits.core.ledger import Ledger
from jaxbandits.core.protocol import Environment, Status
from jaxbandits.core.pytrees import select_tree


class CallLimits(NamedTuple):
    """How far one call runs; numbers only, so that none of them recompiles. No result depends on any."""

    chunk: jax.Array  # i32[]: rounds between two looks at the marks
    chunks: jax.Array  # i32[]: most chunks in this call
    patience: jax.Array  # i32[]: hand out waiting lanes once more slots than this are idle
    quota: jax.Array  # i32[]: return once no lane waits and more slots than this are idle


class EndedLane(NamedTuple):
    """What stays of a lane that has ended."""

    rows: jax.Array  # i32[M, F]: see scan.Carry
    ledger: Ledger
    status: jax.Array  # i32[]
    final: dict[str, jax.Array]  # final values of the environment and of the policy


class Pool(NamedTuple):
    """A worker's state: lanes in slots, and the outcomes of those that have ended.

    A *seat* holds a lane's constants from the moment when the host hands it over, and its outcome until the host takes
    it; a *slot* holds the state of a lane that is being played.
    """

    carry: Carry  # [slot]
    seat: jax.Array  # i32[slot]: whose lane is played here, -1 for nobody's
    tuner: Any  # what the engine has learnt about its pace
    outcome: EndedLane  # [seat]


class Report(NamedTuple):
    """What the host wants to know after a call."""

    begun: jax.Array  # i32[]: how many of the waiting lanes have got a slot
    chunks: jax.Array  # i32[]: chunks played
    share: jax.Array  # f32[]: sum of the shares of the clock that the lanes in slots have behind them


def advance(
    engine: ModuleType,
    environment: Environment,
    lanes: Lane,
    root: jax.Array,
    line: jax.Array,
    waiting: jax.Array,
    pool: Pool,
    limits: CallLimits,
) -> tuple[Pool, Report]:
    """Play lanes for a while; slots whose lanes have ended take the next ones in line.

    Args:
        engine: :mod:`~jaxbandits._engine.scan` or another: what a chunk is.
        environment: tables ``[instance, …]``, shared by all slots.
        lanes: constants, ``[seat]``.
        root: words of the root key.
        line: ``i32[seat]``, the first ``waiting`` of which are the seats whose lanes wait for a slot.
        waiting: ``i32[]``.
        pool: the state.
        limits: when to return.

    Returns:
        The new state, and a report.
    """

    def turn(state: tuple) -> tuple:
        pool, begun, done, turns, _ = state
        empty = pool.seat < 0
        next_ = begun + jnp.cumsum(empty, dtype=jnp.int32) - 1
        gets = empty & (next_ < waiting)
        seat = jnp.where(gets, line[jnp.minimum(next_, line.size - 1)], pool.seat)
        begun += jnp.sum(gets, dtype=jnp.int32)

        here = jax.tree.map(lambda x: x[jnp.maximum(seat, 0)], lanes)
        first = jax.vmap(partial(start, environment), in_axes=(0, None))(here, root)
        carry = jax.vmap(select_tree)(gets, first, pool.carry)
        status = jnp.where(seat < 0, jnp.int32(Status.HORIZON), carry.state.status)
        carry = carry._replace(state=carry.state._replace(status=status))

        most_idle = jnp.where(begun < waiting, limits.patience, limits.quota)
        carry, tuner, done = _play(engine, environment, here, carry, pool.tuner, done, most_idle, limits)

        ended = (seat >= 0) & (carry.state.status != Status.RUNNING)
        to = jnp.where(ended, seat, line.size)
        found = outcomes(environment, here, carry)
        outcome = jax.tree.map(lambda kept, x: kept.at[to].set(x, mode="drop"), pool.outcome, found)
        seat = jnp.where(ended, -1, seat)
        shares = jnp.where(seat < 0, jnp.float32(0), jax.vmap(_share)(here, carry))
        return Pool(carry, seat, tuner, outcome), begun, done, turns + 1, jnp.sum(shares)

    def more(state: tuple) -> jax.Array:
        _, begun, done, turns, _ = state
        return (turns == 0) | (done < limits.chunks) & (begun < waiting)

    zero = jnp.int32(0)
    pool, begun, done, _, share = jax.lax.while_loop(more, turn, (pool, zero, zero, zero, jnp.float32(0)))
    return pool, Report(begun, done, share)


def _play(
    engine: ModuleType,
    environment: Environment,
    lanes: Lane,
    carry: Carry,
    tuner: Any,
    done: jax.Array,
    most_idle: jax.Array,
    limits: CallLimits,
) -> tuple[Carry, Any, jax.Array]:
    """Chunks until enough of them are done or too many slots are idle."""
    write = jax.vmap(record)

    def chunk(state: tuple) -> tuple:
        carry, tuner, done = state
        carry, tuner = engine.chunk(environment, lanes, carry, tuner, limits.chunk)
        return write(lanes, carry), tuner, done + 1

    def more(state: tuple) -> jax.Array:
        carry, _, done = state
        idle = jnp.sum(carry.state.status != Status.RUNNING, dtype=jnp.int32)
        return (done < limits.chunks) & (idle <= most_idle)

    return jax.lax.while_loop(more, chunk, (carry, tuner, done))


def outcomes(environment: Environment, lanes: Lane, carry: Carry) -> EndedLane:
    """What would stay of these lanes, ``[slot]``, if they ended now."""

    def final(lane: Lane, state: LaneState) -> dict[str, jax.Array]:
        world = at_instance(environment, lane.row)
        return world.summary(state.environment) | lane.policy.summary(state.policy)

    state = carry.state
    return EndedLane(carry.rows, state.ledger, state.status, jax.vmap(final)(lanes, state))


# Hashing is most of the work and profits from the widest vectors; on CPU, XLA takes half of them unless told (machines
# without such vectors ignore it). Medians of three, one core: leap 1.15 times as fast, scan 1.1 to 1.2.
_OPTIONS: dict[str, dict[str, Any]] = {"cpu": {"xla_cpu_prefer_vector_width": 512}}


# The kinds of work that may be part of one CUDA graph: loops and branches, too, which XLA leaves to the host by itself.
_CAPTURED = "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,DYNAMIC_SLICE_FUSION,CONDITIONAL,WHILE"


def options(platform: str, captured: bool | None = None) -> dict[str, Any]:
    """The compiler's options for the devices of a platform.

    Args:
        captured: CUDA: whole loops in one graph, so that the host launches nothing in between. By default what the
            environment variable JAXBANDITS_CUDA_GRAPHS says, and without it no: nobody has run it yet.
    """
    if captured is None:
        captured = os.environ.get("JAXBANDITS_CUDA_GRAPHS", "0") not in ("", "0")
    graphs = {"xla_gpu_enable_command_buffer": _CAPTURED} if captured and platform == "gpu" else {}
    return _OPTIONS.get(platform, {}) | graphs


def compiled(platform: str) -> jax.stages.Wrapped:
    """:func:`advance` for the devices of a platform. The old state's memory is taken for the new one."""
    return _compiled(tuple(sorted(options(platform).items())))


@cache
def _compiled(given: tuple[tuple[str, Any], ...]) -> jax.stages.Wrapped:
    return jax.jit(
        advance,
        static_argnames=("engine",),
        donate_argnames=("pool",),
        compiler_options=dict(given) or None,
    )


def _share(lane: Lane, carry: Carry) -> jax.Array:
    clock = ticks.to_float(lane.constraint.clock(carry.state.ledger))
    return jnp.clip(clock / ticks.to_float(lane.constraint.end()), 0, 1)
