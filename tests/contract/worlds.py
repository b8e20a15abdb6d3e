"""The worlds that the contract is tried in: a new environment is one more entry."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits as jb
from jaxbandits.environments import FiniteArms

INSTANCES, ARMS = 3, 4


def _absent() -> np.ndarray:
    """One instance without its last arm, one without its second."""
    present = np.ones((INSTANCES, ARMS), bool)
    present[1, 3] = present[2, 1] = False
    return present


def _uniforms(kinds: int) -> np.ndarray:
    return np.random.default_rng(kinds).random((kinds, INSTANCES, ARMS))


def bernoulli() -> FiniteArms:
    reward, cost = _uniforms(2)
    return FiniteArms.bernoulli(reward, 0.05 + 0.95 * cost, _absent())


def generalised_bernoulli() -> FiniteArms:
    weights = np.moveaxis(_uniforms(10), 0, -1)
    return FiniteArms.generalised_bernoulli(weights[..., :5], weights[..., 5:], _absent())


def beta() -> FiniteArms:
    return FiniteArms.beta(*(0.2 + 4 * _uniforms(4)), _absent())


def empirical() -> FiniteArms:
    rng = np.random.default_rng(0)
    # the first instance's first log has one row; reward and cost of a row depend on each other
    sizes = [(1, 7, 3, 2), (5, 2, 4), (3, 3, 6, 9)]

    def rows(size: int) -> tuple[np.ndarray, np.ndarray]:
        cost = 0.1 + 0.9 * rng.random(size)
        return cost * rng.random(size), cost

    return FiniteArms.empirical([[rows(size) for size in arms] for arms in sizes])


def several_resources() -> FiniteArms:
    """Two resources; the first must cost something everywhere."""
    reward, *cost = _uniforms(3)
    return FiniteArms.bernoulli(reward, 0.05 + 0.95 * np.stack(cost, axis=-1), _absent())


def several_resources_and_null_arm() -> jb.environments.WithNullArm:
    return jb.environments.WithNullArm(several_resources())


def null_arm() -> jb.environments.WithNullArm:
    return jb.environments.WithNullArm(bernoulli())


def reservoir() -> jb.environments.Reservoir:
    key = jax.random.key(6)
    return jb.environments.Reservoir.ratio(
        key, instances=INSTANCES, capacity=6, beta=[0.5, 1.0, 2.0]
    )


def _means(key: jax.Array) -> tuple[jax.Array, jax.Array]:
    reward, cost = jax.random.uniform(key, (2,))
    return reward, jnp.maximum(cost, 0.25)


def reservoir_of_a_sampler() -> jb.environments.Reservoir:
    return jb.environments.Reservoir.sampled(
        _means,
        jax.random.key(7),
        instances=INSTANCES,
        capacity=12,
        best_ratio=4.0,
        least_cost=0.25,
        outcomes=jb.environments.uniform_outcome,
    )


def reservoir_of_a_table() -> jb.environments.Reservoir:
    reward, cost = _uniforms(2)[:, 0]
    return jb.environments.Reservoir.empirical(
        reward, 0.1 + 0.9 * cost, jax.random.key(8), instances=INSTANCES, capacity=8
    )


def delayed() -> jb.environments.Delayed:
    """Random delays, lost outcomes, two budgets, the second for the last two arms."""
    law = jb.environments.TableDelay.geometric(3.0, lost=0.05, instances=INSTANCES)
    return jb.environments.Delayed(
        empirical(), law, room=32, arrivals=2, patience=12, groups=(None, (2, 3))
    )


def piecewise() -> jb.environments.Piecewise:
    """Arms that change places twice, with absent ones."""
    before = bernoulli()
    after = FiniteArms.bernoulli(*_uniforms(2)[:, ::-1].clip(0.05), _absent())
    return jb.environments.Piecewise.of([before, after, before], at=[30, 55])


def requests(order: jb.environments.RowOrder | None = None) -> jb.environments.RequestTable:
    """Cells that depend on each other within a row."""
    rng = np.random.default_rng(5)
    reward = rng.random((INSTANCES, 13, 1)) * rng.random((INSTANCES, 13, ARMS))
    return jb.environments.RequestTable.of(reward, 0.05 + 0.95 * reward, order)


def requests_shuffled() -> jb.environments.RequestTable:
    return requests(jb.environments.ShuffledRows())


def _thetas() -> tuple[np.ndarray, np.ndarray]:
    """θ of rewards ``[instance, arm, 3]`` and of two costs ``[instance, arm, 2, 3]``."""
    u = np.moveaxis(_uniforms(9), 0, -1)
    reward, cost = u[..., :3] - 0.5, u[..., 3:].reshape(INSTANCES, ARMS, 2, 3) - 0.5
    reward[..., 0], cost[..., 0] = 0.3 + 0.4 * u[..., 0], 0.3 + 0.4 * u[..., 3:5]
    return 0.5 * reward + [0.2, 0, 0], 0.5 * cost + [0.2, 0, 0]


def contexts() -> jb.environments.WithNullArm:
    """Two costs, a null arm."""
    arms = jb.environments.ContextualArms.linear(
        *_thetas(), jb.environments.Gaussian(2), resources=2, present=_absent()
    )
    return jb.environments.WithNullArm(arms)


def contexts_and_money() -> jb.environments.ContextualArms:
    reward, cost = _thetas()
    law = jb.environments.UnitSphere(2)
    return jb.environments.ContextualArms.linear(
        reward, cost[:, :, 0], law, jb.environments.noise.Tent(), present=_absent()
    )


def contexts_by_row() -> jb.environments.ContextualArms:
    """A row for each arm, one θ for all."""
    reward, cost = _thetas()
    law = jb.environments.Gaussian(2, arms=ARMS)
    return jb.environments.ContextualArms.logistic(reward[:, :1], cost[:, :1, 0], law)


WORLDS = {
    "contexts": contexts,
    "contexts_and_money": contexts_and_money,
    "contexts_by_row": contexts_by_row,
    "bernoulli": bernoulli,
    "generalised_bernoulli": generalised_bernoulli,
    "beta": beta,
    "empirical": empirical,
    "null_arm": null_arm,
    "several_resources": several_resources,
    "several_resources_and_null_arm": several_resources_and_null_arm,
    "delayed": delayed,
    "piecewise": piecewise,
    "requests": requests,
    "requests_shuffled": requests_shuffled,
    "reservoir": reservoir,
    "reservoir_of_a_sampler": reservoir_of_a_sampler,
    "reservoir_of_a_table": reservoir_of_a_table,
}


@cache
def world(name: str) -> jb.Environment:
    return WORLDS[name]()


KEY = jax.random.key(20240825)


def with_its_own(base: type, name: str = "Odd", /, **brought: Any) -> Any:
    """A subclass of ``base`` with these methods and attributes."""
    return jb.pytree(type(name, (base,), {"__annotations__": {}, **brought}))


def as_a(cls: Any, source: Any) -> Any:
    """The same fields in another class."""
    return cls(**{field.name: getattr(source, field.name) for field in dataclasses.fields(source)})
