"""No policy and no environment uses one key twice, by jax's own checker, on a traced round.

Not switched on for all tests (``jax_debug_key_reuse``): every call of a compiled function would
then go through Python, which made the tests a quarter slower.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax.errors import KeyReuseError
from jax.experimental.key_reuse._core import check_key_reuse_jaxpr

import jaxbandits as jb
from jaxbandits.core import streams
from jaxbandits.core.protocol import Constraint, Environment, Policy
from jaxbandits.core.pytrees import pytree
from jaxbandits.testing import episode, lanes

from .test_policies import EVERY, policy_name
from .worlds import KEY, WORLDS, world


def check(policy: Policy, environment: Environment, constraint: Constraint) -> None:
    """Two rounds of the plain loop, traced."""
    prepared = jax.tree.map(lambda x: jax.numpy.asarray(x[0]), constraint.prepare(environment))
    lane = np.zeros(2, np.uint32)

    def play(lane: Any) -> Any:
        return lanes.play_lane(
            lanes.one_setting(policy, environment), environment, prepared, lane, np.int32(0), 2
        )

    environment = jax.tree.map(jax.numpy.asarray, environment)
    check_key_reuse_jaxpr(jax.make_jaxpr(play)(lane).jaxpr)


@pytest.mark.parametrize(
    ("policy", "name", "constraint"),
    EVERY,
    ids=[f"{policy_name(p)}-{name}" for p, name, _ in EVERY],
)
def test_no_policy_uses_a_key_twice(policy: Policy, name: str, constraint: Constraint) -> None:
    check(policy, world(name), constraint)


@pytest.mark.parametrize("name", [name for name in WORLDS if hasattr(world(name), "means")])
def test_no_environment_uses_a_key_twice(name: str) -> None:
    check(jb.policies.FixedSplit(np.ones(world(name).spec.arms)), world(name), jb.Horizon(5))


def test_who_does_is_caught() -> None:
    @pytree
    class Twice(jb.policies.CUCB):
        def select(self, state: Any, key: jax.Array, view: Any) -> tuple[Any, jax.Array]:
            round_key = streams.at(key, view.round, 0)
            return state, (jax.random.bits(round_key) + jax.random.bits(round_key)).astype(
                np.int32
            ) % 2

    with pytest.raises(KeyReuseError):
        check(Twice(), world("bernoulli"), jb.Horizon(5))
    # It plays, though
    assert episode(Twice(), world("bernoulli"), jb.Horizon(5), KEY, rounds=2).action.shape == (1, 2)
