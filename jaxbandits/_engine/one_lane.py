"""One lane by itself: what ``rollout`` and episodes of other libraries play with the engine's own round."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._engine import limits, scan
from jaxbandits._engine.layout import lane_lengths, lay_out
from jaxbandits._engine.prepared import prepare
from jaxbandits.core import ticks
from jaxbandits.core.errors import InputError
from jaxbandits.core.protocol import Constraint, Environment, Policy


def prepared(
    policy: Policy, environment: Environment, constraint: Constraint, max_rounds: int | None
) -> tuple[Constraint, Policy, np.ndarray]:
    """Host: the constraint and the round caps ``[instance]``, the policy's leaves ``[1 or instance, …]``."""
    if any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(policy)):
        return _of_traced(policy, environment, constraint, max_rounds)
    (task,) = lay_out(
        policy, environment, constraint, key=jax.random.key(0), max_rounds=max_rounds, engine="scan"
    ).tasks
    if task.settings != 1:
        raise InputError(f"policy: {task.settings} settings given; it must be one (see jax.vmap for several)")
    return task.constraint, jax.tree.map(lambda x: x[0], task.policy), task.cap


def lane_of(constraint: Constraint, policy: Policy, cap: np.ndarray, instance: Any, replicate: Any) -> scan.Lane:
    """The constants of a lane; ``instance`` and ``replicate`` may be traced."""
    here = jax.tree.map(lambda x: jnp.asarray(x)[instance], constraint)
    return scan.Lane(
        row=jnp.asarray(instance, jnp.int32),
        instance=jnp.asarray(instance, jnp.uint32),
        replicate=jnp.asarray(replicate, jnp.uint32),
        policy=jax.tree.map(lambda x: jnp.asarray(x)[instance if x.shape[0] > 1 else 0], policy),
        constraint=here,
        marks=jax.tree.map(lambda x: x[None], here.end()),
        cap=jnp.asarray(cap)[instance],
    )


def _of_traced(
    policy: Policy, environment: Environment, constraint: Constraint, max_rounds: int | None
) -> tuple[Constraint, Policy, np.ndarray]:
    """What can be known of a policy whose values are not: nothing is checked but the two others."""
    ready = prepare(constraint, environment)
    end = ticks.join(jax.tree.map(np.asarray, ready.end()))
    of_shape = jax.tree.map(lambda x: np.zeros((1, 1, *jnp.shape(x)), np.float32), policy)
    most = limits.most_rounds(of_shape, environment, ready, end, max_rounds)
    leaves = jax.tree.map(lambda x: _as_played(x)[None], policy)
    _, cap = lane_lengths(environment, ready, end, max_rounds)
    return ready, leaves, np.minimum(cap, most).astype(np.int32)


def _as_played(x: Any) -> jax.Array:
    kind = jnp.float32 if jnp.issubdtype(jnp.result_type(x), jnp.floating) else jnp.int32
    return jnp.asarray(x, kind)
