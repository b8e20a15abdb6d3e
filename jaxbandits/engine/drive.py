"""The driver: chunks of an engine, marks between them, on the device until enough lanes have ended."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import ticks
from jaxbandits.engine.scan import Carry, Lane, Memory, record, start
from jaxbandits.protocol import Environment, Status, at_instance, select_tree


class Plan(NamedTuple):
    """How far one call runs; numbers only, so that none of them recompiles. No result depends on any."""

    chunk: jax.Array  # i32[]: rounds between two looks at the marks
    chunks: jax.Array  # i32[]: most chunks in this call
    quota: jax.Array  # i32[]: return once more slots than this are idle


def advance(
    engine: ModuleType,
    environment: Environment,
    lanes: Lane,
    root: jax.Array,
    carry: Carry,
    gauge: Any,
    fresh: jax.Array,
    idle: jax.Array,
    plan: Plan,
) -> tuple[Carry, Any, jax.Array]:
    """Run a pool of slots for a while.

    Args:
        engine: :mod:`~jaxbandits.engine.scan` or :mod:`~jaxbandits.engine.leap`: what a chunk is.
        environment: tables ``[instance, …]``, shared by all slots.
        lanes: constants, ``[slot]``.
        root: words of the root key.
        carry: state, ``[slot]``.
        gauge: what the engine has learnt about its pace.
        fresh: ``bool[slot]``: slots that begin a new lane.
        idle: ``bool[slot]``: slots without a lane.
        plan: when to return.

    Returns:
        The new state, the new gauge, and each slot's share of its clock, ``f32[slot]``, for the progress display.
    """
    begun = jax.vmap(partial(start, environment), in_axes=(0, None))(lanes, root)
    carry = jax.vmap(select_tree)(fresh, begun, carry)
    status = jnp.where(idle, jnp.int32(Status.HORIZON), carry.memory.status)
    carry = carry._replace(memory=carry.memory._replace(status=status))

    write = jax.vmap(record)

    def chunk(state: tuple) -> tuple:
        now, gauge, done = state
        now, gauge = engine.chunk(environment, lanes, now, gauge, plan.chunk)
        return write(lanes, now), gauge, done + 1

    def more(state: tuple) -> jax.Array:
        now, _, done = state
        ended = jnp.sum(now.memory.status != Status.RUNNING, dtype=jnp.int32)
        return (done < plan.chunks) & (ended <= plan.quota)

    carry, gauge, _ = jax.lax.while_loop(more, chunk, (carry, gauge, jnp.int32(0)))
    return carry, gauge, jax.vmap(_share)(lanes, carry)


# Hashing is most of the work and profits from the widest vectors; on CPU, XLA takes half of them unless told (machines
# without such vectors ignore it). Medians of three, one core: leap 1.15 times as fast, scan 1.1 to 1.2.
_OPTIONS = {"cpu": {"xla_cpu_prefer_vector_width": 512}}


@cache
def compiled(platform: str) -> Callable[..., tuple[Carry, Any, jax.Array]]:
    """:func:`advance` for the devices of a platform. The old state's memory is taken for the new one."""
    return jax.jit(
        advance,
        static_argnames=("engine",),
        donate_argnames=("carry",),
        compiler_options=_OPTIONS.get(platform),
    )


def _share(lane: Lane, carry: Carry) -> jax.Array:
    clock = ticks.to_float(lane.constraint.clock(carry.memory.ledger))
    return jnp.clip(clock / ticks.to_float(lane.constraint.end()), 0, 1)


@jax.jit
def summarise(environment: Environment, lanes: Lane, carry: Carry) -> dict[str, jax.Array]:
    """The final values of the environment and of the policy, ``[slot, …]``."""

    def one(lane: Lane, memory: Memory) -> dict[str, jax.Array]:
        world = at_instance(environment, lane.row)
        return world.summary(memory.environment) | lane.policy.summary(memory.policy)

    return jax.vmap(one)(lanes, carry.memory)
