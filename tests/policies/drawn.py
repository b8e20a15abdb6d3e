"""What the library draws in lanes of ``KEY``: a policy's words, a world's outcomes."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._engine.scan import at_instance
from jaxbandits.core import streams, ticks
from jaxbandits.core.streams import Domain
from tests.contract.worlds import KEY


def lane_key(instance: Any, replicate: Any, domain: Domain = Domain.POLICY) -> jax.Array:
    return streams.domain_key(streams.lane_key(streams.root_key(KEY), instance, replicate), domain)


@cache
def words(role: int, lanes: int, last: int, arms: int = 1, instance: int = 0) -> np.ndarray:
    """A policy's two words of (round, role, arm), ``u32[lane, round, arm, 2]``."""
    return np.asarray(_words(role, jnp.int32(instance), lanes, last, arms))


@partial(jax.jit, static_argnums=(0, 2, 3, 4))
def _words(role: int, instance: jax.Array, lanes: int, last: int, arms: int) -> jax.Array:
    def lane(replicate: jax.Array) -> jax.Array:
        key = lane_key(instance, replicate)
        of_arms = jax.vmap(lambda t, arm: streams.policy_words(key, t, role, arm), (None, 0))
        return jax.vmap(of_arms, (0, None))(jnp.arange(1, last + 1), jnp.arange(arms))

    return jax.vmap(lane)(jnp.arange(lanes))


def uniforms(role: int, lanes: int, last: int) -> np.ndarray:
    """``[lane, round]``"""
    return (words(role, lanes, last)[:, :, 0, 0] >> 8) / 2.0**24


def outcomes(
    world: Any, lanes: int, pulls: int, instance: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Rewards ``[lane, arm, pull]`` and costs ``[…, d]`` that a world of finitely many arms gives."""
    outcome = at_instance(jax.tree.map(jnp.asarray, world), jnp.int32(instance)).outcome

    def lane(replicate: jax.Array) -> Any:
        every_pull = jax.vmap(outcome, in_axes=(None, None, 0))
        of_arms = jax.vmap(every_pull, in_axes=(None, 0, None))
        return of_arms(
            lane_key(instance, replicate, Domain.WORLD),
            jnp.arange(world.spec.arms),
            jnp.arange(pulls),
        )

    reward, cost = jax.jit(jax.vmap(lane))(jnp.arange(lanes))
    return ticks.to_units(reward), ticks.to_units(cost)
