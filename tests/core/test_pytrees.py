"""Two classes with the same fields are two structures: else jit may mix their programs."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import jaxbandits as jb
from jaxbandits.core.pytrees import leaf, pytree, static, walk
from jaxbandits.policies.base import IndexPolicy


@pytree
class One(IndexPolicy):
    width: Any = leaf(default=1.0)
    kind: str = static(default="a")

    def score(self, arms: Any) -> Any:
        return arms.reward


@pytree
class Other(IndexPolicy):
    width: Any = leaf(default=1.0)
    kind: str = static(default="a")

    def score(self, arms: Any) -> Any:
        return -arms.reward


def test_classes_with_the_same_fields_differ() -> None:
    first, second = (jax.tree.structure(kind(width=2.0)) for kind in (One, Other))
    assert first != second
    assert first == jax.tree.structure(One(width=3.0))
    assert first != jax.tree.structure(One(width=2.0, kind="b"))


def test_leaves_static_fields_and_paths_survive() -> None:
    instance = One(width=jnp.float32(2.0), kind="b")
    leaves, structure = jax.tree.flatten(instance)
    again = jax.tree.unflatten(structure, leaves)
    assert (type(again), float(again.width), again.kind) == (One, 2.0, "b")
    ((path, _),) = jax.tree_util.tree_leaves_with_path(instance)
    assert jax.tree_util.keystr(path) == ".width"
    assert jax.tree.map(lambda x: x + 1, instance).width == 3.0


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class Unsafe(IndexPolicy):
    def score(self, arms: Any) -> Any:
        return arms.reward


def test_another_registration_is_refused() -> None:
    arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.5, 0.4])
    with pytest.raises(jb.InputError, match=r"policies: Unsafe is not decorated with @jb\.pytree"):
        jb.simulate(Unsafe(), arms, jb.Horizon(3), key=jax.random.key(0))


@pytree
class Around(jb.Policy):
    inner: Any = leaf()
    share: Any = leaf(default=0.5, above=0)
    plays = jb.environments.FiniteSpec

    def init(self, spec: Any) -> Any:
        return self.inner.init(spec)

    def update(self, state: Any, key: Any, observation: Any) -> Any:
        return state

    def select(self, state: Any, key: Any, view: Any) -> Any:
        return state, jnp.int32(0)


def test_a_walk_meets_every_leaf_by_its_path() -> None:
    met = [(leaf.path, leaf.name, leaf.value) for leaf in walk(Around(One(width=2.0)))]
    assert met == [("inner.width", "One.width", 2.0), ("share", "Around.share", 0.5)]
