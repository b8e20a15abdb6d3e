"""Two classes with the same fields are two structures: else jit may take the program of one for the
other's.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import policies
from jaxbandits.core.pytrees import leaf, pytree, static, walk
from jaxbandits.core.settings import Settings, label
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
    one, other = (jax.tree.structure(kind(width=2.0)) for kind in (One, Other))
    assert one != other
    assert one == jax.tree.structure(One(width=3.0))
    assert one != jax.tree.structure(One(width=2.0, kind="b"))


def test_the_policies_of_the_library_differ() -> None:
    kinds = [
        kind
        for _, kind in inspect.getmembers(policies, inspect.isclass)
        if dataclasses.is_dataclass(kind)
    ]
    plain = [
        kind
        for kind in kinds
        if all(f.default is not dataclasses.MISSING for f in dataclasses.fields(kind))
    ]
    structures = [jax.tree.structure(kind()) for kind in plain]
    assert len(plain) > 12
    for i, structure in enumerate(structures):
        assert structure not in structures[:i], f"{plain[i].__name__} is taken for another"


def test_leaves_static_fields_and_paths_survive() -> None:
    made = One(width=jnp.float32(2.0), kind="b")
    leaves, structure = jax.tree.flatten(made)
    again = jax.tree.unflatten(structure, leaves)
    assert (type(again), float(again.width), again.kind) == (One, 2.0, "b")
    ((path, _),) = jax.tree_util.tree_leaves_with_path(made)
    assert jax.tree_util.keystr(path) == ".width"
    assert jax.tree.map(lambda x: x + 1, made).width == 3.0


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
    met = [(found.path, found.name, found.value) for found in walk(Around(One(width=2.0)))]
    assert met == [("inner.width", "One.width", 2.0), ("share", "Around.share", 0.5)]


def test_settings_are_checked_cast_and_named_once():
    given = np.array([[0.25, 1.0], [0.5, 2.0]], np.float32)
    settings = Settings.of(Around(One(width=given)), 2)
    once = settings.policy
    assert settings.count == 2 and once.share.shape == (2, 1) and once.share.dtype == np.float32
    assert (
        settings.labels[0] == "Around(One(width=per instance, kind=a), share=0.5)"
        and len(settings.labels) == 2
    )
    assert (
        settings.parameters == [{"policy": "Around", "share": 0.5}] * 2
        and label(once) == "Around(One(kind=a))"
    )
    assert jax.tree.all(jax.tree.map(np.array_equal, Settings.of(once, 2).policy, once))
    given[:] = np.nan  # what was checked is what is played
    assert np.isfinite(once.inner.width).all()
    with pytest.raises(ValueError, match="read-only"):
        once.share[0] = -1.0
    part = settings.of_instances([1])
    assert part.policy.inner.width.tolist() == [[1.0], [2.0]] and part.count == 2
    assert part.parameters[1] == {"policy": "Around", "width": 2.0, "share": 0.5}
    changed = dataclasses.replace(once, share=np.float32(-1))
    with pytest.raises(jb.InputError, match=r"Around\.share: -1\.0 given; it must be .* above 0"):
        Settings.of(changed, 2)
    with pytest.raises(jb.InputError, match="with 3 instances"):
        Settings.of(once, 3)


def test_a_spec_that_the_policy_does_not_play_is_refused() -> None:
    class Odd(jb.environments.FiniteArms):
        spec = property(lambda self: "two arms")  # type: ignore[assignment]

    world = jb.environments.FiniteArms.bernoulli([[0.5, 0.4]], [[0.9, 0.3]])
    odd = pytree(Odd)(**{f.name: getattr(world, f.name) for f in dataclasses.fields(world)})
    with pytest.raises(
        jb.InputError, match="plays environments with a FiniteSpec, but Odd offers a str"
    ):
        jb.simulate(policies.UCB1(), odd, jb.Horizon(5), key=jax.random.key(0))


@pytest.mark.parametrize("policy", [policies.EpsilonFirst(), policies.KUBE()])
def test_what_is_left_must_be_told(policy: Any) -> None:
    world = jb.environments.FiniteArms.bernoulli([[0.5, 0.4]], [[0.9, 0.3]])
    with pytest.raises(
        jb.InputError,
        match="constraint: it tells nothing of what is left; it must be one that does",
    ):
        jb.simulate(policy, world, jb.Horizon(5), key=jax.random.key(0))


def test_settings_are_carried_and_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.of(Around(One(width=[0.25, 0.5]), share=2.0), 2)
    monkeypatch.setattr("jaxbandits.core.settings.as_played", None)
    assert Settings.of(settings, 2) is settings
    second = settings.only(1)
    assert second.labels == ("Around(One(width=0.5, kind=a), share=2)",) == settings.labels[1:]
    assert settings.record(1) == {
        "policy": "Around",
        "parameters": {"One.width": 0.5, "Around.share": 2.0},
    }
    shapes = settings.shapes
    assert type(shapes) is Around and shapes.share == jax.ShapeDtypeStruct((), np.float32)
    named = dataclasses.replace(settings, name="around", hidden=("share",))
    assert named.labels[0] == "around(One(width=0.25, kind=a))"
