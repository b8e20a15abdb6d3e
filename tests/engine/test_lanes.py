"""A round written anew with the lanes last: jax's own batches give the same bits."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxbandits as jb
from jaxbandits._engine import lanes, scan
from jaxbandits.core import streams
from tests.contract.worlds import with_its_own

LANES, ARMS = 5, 7
_rng = np.random.default_rng(0)
TABLE = _rng.random((3, ARMS), np.float32)
X = _rng.random((LANES, ARMS), np.float32)
AT = _rng.integers(0, ARMS, LANES).astype(np.int32)


def halved(t: Any, x: jax.Array, i: jax.Array) -> Any:
    """A loop whose end is each lane's own, and one that all share."""
    x, turns = lax.while_loop(lambda c: c[0][i] > 0.1, lambda c: (c[0] / 2, c[1] + 1), (x, 0))
    return x, turns, lax.fori_loop(0, jnp.int32(3), lambda k, y: y + x[k], jnp.float32(0))


def rolled(t: Any, x: jax.Array, i: jax.Array) -> Any:
    """A loop over rows with numbers of a lane and of all."""

    def once(carry: Any, row: Any) -> Any:
        total, count = carry
        return (total + row[0] * row[1], count + 1), row[0] + count

    return lax.scan(once, (jnp.float32(0), jnp.int32(i)), (x, t[1]), reverse=True)


def branches(t: Any, x: jax.Array, i: jax.Array) -> Any:
    ways = [jnp.sin, jnp.exp, lambda y: y + t[2]]
    every = lax.switch(jnp.int32(t[0, 0] * 3), [partial(lax.cumsum), jnp.flip, jnp.negative], x)
    return lax.switch(i % 3, ways, x), every


def keyed(t: Any, x: jax.Array, i: jax.Array) -> Any:
    key = jax.random.fold_in(jax.random.key(3), i)
    words = streams.once(
        *streams.threefry2x32((jnp.uint32(1), i.astype(jnp.uint32)), (x > 0.5, x < 0.5))
    )
    return jax.random.uniform(key, (3,)), words


CODE: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda t, x, i: (2.0 * x + t[1] / (1 + i), jnp.where(i > 2, x, t[0])),
    "clamp": lambda t, x, i: (jnp.clip(x, 0.2, t[0, 1]), lax.clamp(0.1, x, 0.5)),
    "along": lambda t, x, i: (x.sum(), jnp.argmax(x), jnp.cumsum(x), x[::-1], jnp.any(x > 0.9)),
    "shapes": lambda t, x, i: (
        jnp.pad(x[1:6:2], (2, 1), constant_values=3.0),
        jnp.concatenate([x, t[0]]).reshape(2, 7).T,
        jnp.stack([x[i], t[1, 1]]),
        jnp.pad(x, 1, constant_values=x[i]),
    ),
    "row": lambda t, x, i: t[i % 3],
    "item": lambda t, x, i: (x[i], t.at[i % 3, i].get(mode="promise_in_bounds")),
    "take": lambda t, x, i: (x[jnp.argsort(x)], jnp.take(t, jnp.stack([i, i - 1]), axis=1)),
    "of all": lambda t, x, i: (jnp.outer(x, t[0])[:, [2, 0]], lax.dynamic_slice(x, (i,), (3,))),
    "write": lambda t, x, i: (x.at[i].set(9.0), x.at[i].add(t[0, 0])),
    "dot": lambda t, x, i: t @ x,
    "sort": lambda t, x, i: (jnp.sort(x), lax.top_k(x, 3), jnp.searchsorted(t[0], x[i])),
    "while": halved,
    "scan": rolled,
    "cond": branches,
    "keys": keyed,
    "jit": lambda t, x, i: jax.nn.relu(jax.jit(lambda y: y - t[0])(x)),
    "nothing of a lane": lambda t, x, i: (t[0] + 1, jnp.arange(3)),
}


def both(code: Callable[..., Any]) -> tuple[Any, Any]:
    """Batched by jax, and by us; the lanes' axis first."""
    by_jax = jax.jit(jax.vmap(code, (None, 0, 0)))(TABLE, X, AT)

    def ours(t: Any, x: Any, i: Any) -> Any:
        played = lanes.lanes_last(code)(t, jnp.moveaxis(x, 0, -1), i)
        return jax.tree.map(lambda y: jnp.moveaxis(y, -1, 0), played)

    return by_jax, jax.jit(ours)(TABLE, X, AT)


@pytest.mark.parametrize("name", CODE)
def test_code_has_the_bits_of_jax_s_own_batches(name: str) -> None:
    by_jax, ours = both(CODE[name])
    jax.tree.map(np.testing.assert_array_equal, ours, by_jax)
    assert [x.dtype for x in jax.tree.leaves(ours)] == [x.dtype for x in jax.tree.leaves(by_jax)]


@pytest.mark.parametrize(
    "broken", [lambda at: jnp.flip(at, -1), lambda at: at ^ 1], ids=["lane", "number"]
)
def test_the_number_of_a_neighbour_is_noticed(monkeypatch: pytest.MonkeyPatch, broken: Any) -> None:
    real = lanes._Lanes.p_gather

    def swapped(self: Any, e: Any, x: Any, at: Any) -> Any:
        return real(self, e, x, at._replace(x=broken(at.x)))

    monkeypatch.setattr(lanes._Lanes, "p_gather", swapped)
    by_jax, ours = both(CODE["take"])
    with pytest.raises(AssertionError):
        jax.tree.map(np.testing.assert_array_equal, ours, by_jax)


@pytest.mark.integration
@pytest.mark.parametrize("arms", [3, 20])
def test_few_arms_have_the_lanes_last_and_no_other_bit(
    monkeypatch: pytest.MonkeyPatch, arms: int
) -> None:
    played: list[Any] = []
    real = scan.lanes_last

    def noted(function: Callable[..., Any]) -> Any:
        played.append(function)
        return real(function)

    monkeypatch.setattr(scan, "lanes_last", noted)
    world = jb.environments.random_bernoulli(jax.random.key(0), instances=4, arms=arms)
    limit = jb.TotalBudget(9.0, last_pull="counts")

    def play() -> jb.Result:
        policy, key = jb.policies.BudgetedThompson(), jax.random.key(1)
        return jb.simulate(policy, world, limit, key=key, replicates=9, marks=3, engine="scan")

    last = play()
    assert played
    monkeypatch.setattr(scan, "NATIVE_LANES", 0)
    del played[:]
    assert play().provenance()["digest"] == last.provenance()["digest"]
    assert not played
    assert (np.asarray(last.rounds)[..., -1] > 5).all()


def test_what_cannot_be_written_so_plays_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise KeyError("no such rule")

    world = jb.environments.random_bernoulli(jax.random.key(0), instances=2, arms=5)
    limit = jb.TotalBudget(3.0, last_pull="counts")

    monkeypatch.setattr(lanes._Lanes, "p_broadcast_in_dim", broken)
    policy = with_its_own(jb.policies.OmegaUCB, "Mine")(rho=0.25)
    result = jb.simulate(policy, world, limit, key=jax.random.key(1), engine="scan")
    assert str(result.about.why_plain).startswith(
        "not with the lanes last: KeyError: 'no such rule'"
    )
    assert (np.asarray(result.rounds)[..., -1] > 2).all()
