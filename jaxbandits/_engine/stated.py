"""Checks a user's world against its stated means, from which regret is computed."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._engine.scan import at_instance
from jaxbandits.core import ticks
from jaxbandits.core.fingerprint import is_users
from jaxbandits.core.protocol import Environment
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.environments.finite import AddressedArms, AroundWorld

APART = "apart"  # the event of a round whose expected reward or cost is not the stated one


@pytree
class StatedMeans(AroundWorld):
    """The inner world with one additional event, :data:`APART`."""

    inside: Environment = leaf()
    reward: Any = leaf()  # i32[I, action]: of `values`, 0 where absent
    cost: Any = leaf()  # i32[I, action], or [I, action, d]

    @property
    def world(self) -> Environment:
        return self.inside

    @property
    def spec(self) -> Any:
        return self.inside.spec

    def pull(self, state: Any, action: Any, key: jax.Array, round: jax.Array) -> Any:
        after, outcome, feedback, empty = self.inside.pull(state, action, key, round)
        arms = jnp.atleast_1d(action)
        at = jnp.clip(arms, 0, self.reward.shape[0] - 1)

        def gap(table: Any, booked: jax.Array) -> jax.Array:
            stated = table[at]
            plays = ((arms >= 0) & (arms == at)).reshape(-1, *[1] * (stated.ndim - 1))
            sums = jnp.sum(jnp.where(plays, stated, 0), axis=0, dtype=jnp.int32)
            return jnp.max(jnp.abs(booked - sums))

        # A mean may be rounded to a tick, here and there.
        most = jnp.maximum(
            gap(self.reward, outcome.expected_reward), gap(self.cost, outcome.expected_cost)
        )
        apart = (most > arms.size).astype(jnp.int32)
        return after, outcome._replace(events={**outcome.events, APART: apart}), feedback, empty


def beside_its_means(environment: Environment, means: Any, action: Any) -> Any:
    """The world, inside :class:`StatedMeans` if it is a user's whose actions are arms or sets."""
    arms = getattr(environment.spec, "arms", None)
    columns = None if arms is None else arms + bool(getattr(environment.spec, "null_arm", False))
    by_arm = isinstance(action, jax.ShapeDtypeStruct) and action.dtype == jnp.int32
    if not by_arm or means[0].shape[1] != columns or not is_users(environment):
        return environment
    reward, cost = (ticks.from_units(np.nan_to_num(x)).astype(np.int32) for x in means)
    return StatedMeans(environment, reward, cost)


def warn_of(world: Environment, where: str, stacklevel: int) -> None:
    """Warn that a world's outcomes do not have the means that it states."""
    name = type(world).__name__
    warnings.warn(
        f"{name}.values does not give the expected rewards and costs of the pulls in {where}, so "
        f"regret means nothing; rank by result.reward, or define {name}.benchmarks if means change",
        stacklevel=stacklevel + 1,
    )


def means_are_stated(world: Environment, means: Any) -> bool:
    """Whether the means of a user's addressed arms equal those of ``values``."""
    by_arm = isinstance(world, AddressedArms) and means[0].shape[1] == world.spec.arms
    if not by_arm or not is_users(world):
        return True
    arrays = jax.tree.map(jnp.asarray, world)
    arms = jnp.arange(world.spec.arms, dtype=jnp.int32)
    rows = jnp.arange(world.instances, dtype=jnp.int32)
    said = jax.vmap(lambda row: jax.vmap(at_instance(arrays, row).means)(arms))(rows)
    exists = np.isfinite(means[0])
    return all(
        (
            np.abs(ticks.from_units(np.nan_to_num(table)) - np.asarray(x, np.int64))[exists] <= 1
        ).all()
        for table, x in zip(means, said, strict=True)
    )
