"""Tables of requests: the cells that are played, in plain Python, and random orders."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxbandits as jb
from jaxbandits.environments import (
    Delayed,
    DrawnRows,
    FixedDelay,
    Piecewise,
    RequestTable,
    RowOrder,
    RowsInOrder,
    ShuffledRows,
    WithNullArm,
)
from jaxbandits.environments.table import permuted
from tests.contract.threefry import WORLD, threefry

KEY = jax.random.key(36)


def table(rows: int = 11, arms: int = 3, order: RowOrder | None = None) -> RequestTable:
    rng = np.random.default_rng(rows)
    return RequestTable.of(
        rng.random((2, rows, arms)), 0.1 + 0.9 * rng.random((2, rows, arms)), order
    )


# --- The twin: orders in plain Python, with Python's own whole numbers


Words = tuple[int, int]


def mixed(word: int, x: int) -> int:
    """The finaliser of MurmurHash3 of ``word`` xor x times the golden ratio."""
    x = word ^ (x * 0x9E3779B9 & 0xFFFFFFFF)
    x = (x ^ x >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    x = (x ^ x >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return x ^ x >> 16


def swap_or_not(x: int, n: int, words: Words) -> int:
    """Hoang, Morris, Rogaway (2012), Figure 1."""
    for r in range(48):
        partner = (mixed(words[0], r) - x) % n
        if mixed(words[1] ^ r * 0x61C88647 & 0xFFFFFFFF, max(x, partner)) >> 31:
            x = partner
    return x


def twin_row(order: RowOrder, world: Words, round: int, rows: int) -> int:
    if isinstance(order, RowsInOrder):
        return (round - 1) % rows
    if isinstance(order, DrawnRows):
        return threefry(world, (round, 0))[0] * rows >> 32
    assert isinstance(order, ShuffledRows)
    tour, place = divmod(round - 1, rows)
    return swap_or_not(place, rows, threefry(world, (tour, 1)))


@pytest.mark.parametrize("order", [DrawnRows(), RowsInOrder(), ShuffledRows()])
def test_every_cell_played_is_the_twins(order: RowOrder) -> None:
    """All rounds of every arm in both instances and two replicates, in exact ticks."""
    world = table(order=order)
    always = jb.policies.FixedSplit(np.eye(3))
    rounds = 30
    result = jb.simulate(
        always,
        world,
        jb.Horizon(rounds),
        key=KEY,
        replicates=2,
        marks=np.arange(1, rounds + 1) / rounds,
    )
    for instance in range(2):
        for replicate in range(2):
            root = tuple(jax.random.key_data(KEY).tolist())
            key = threefry(threefry(root, (instance, replicate)), (0, WORLD))
            met = [twin_row(order, key, t, 11) for t in range(1, rounds + 1)]
            assert met == world.rows(KEY, rounds, replicate, instance).tolist()
            for name in ("reward", "cost"):
                cells = np.asarray(getattr(world, name))[instance][met].astype(np.int64)
                got = result.ledger[{"reward": "reward", "cost": "spent"}[name]][
                    :, instance, replicate
                ]
                np.testing.assert_array_equal(got, cells.cumsum(axis=0).T)


def test_all_policies_meet_the_same_request_in_a_round_and_a_rest_lets_it_pass() -> None:
    """Two models, right on complementary requests: rewards add up to 1 in every round."""
    right = np.random.default_rng(3).integers(0, 2, 50)
    world = WithNullArm(RequestTable.of(np.stack([right, 1 - right], 1), np.full((50, 2), 0.5)))
    rests = jb.policies.FluidOracle([0.5, 0.5], [0.5, 0.5], c=0.25)  # half of the rounds go by
    policies = [jb.policies.FixedSplit([1.0, 0.0]), jb.policies.FixedSplit([0.0, 1.0]), rests]
    marks = np.arange(1, 41) / 40
    ledger = jb.simulate(policies, world, jb.Horizon(40), key=KEY, marks=marks).ledger
    reward = np.diff(ledger["reward"][:, 0, 0], prepend=0) // 2**24
    assert (reward[0] + reward[1] == 1).all() and 0 < reward[0].sum() < 40
    is_paid = np.diff(ledger["spent"][2, 0, 0], prepend=0) > 0
    assert (~is_paid).any() and (reward[2][is_paid] == reward[0][is_paid]).all()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_every_order_of_few_rows_is_equally_likely(n: int) -> None:
    """χ² over all n! orders, 200 draws of each; Bonferroni at 1 %."""
    draws = 200 * math.factorial(n)
    words = jax.random.bits(jax.random.key(n), (draws, 2), jnp.uint32)
    places = jnp.arange(n, dtype=jnp.int32)
    orders = jax.jit(jax.vmap(lambda w: jax.vmap(lambda x: permuted(x, jnp.int32(n), w))(places)))(
        words
    )
    distinct, counts = np.unique(np.asarray(orders), axis=0, return_counts=True)
    assert (np.sort(distinct, axis=1) == np.arange(n)).all() and len(distinct) == math.factorial(n)
    assert n == 1 or stats.chisquare(counts).pvalue > 0.01 / 5


def test_where_two_neighbours_go_is_independent_of_where_they_stand() -> None:
    """n = 97: the distance of the images of places 0 and 1, and the image of 0, are uniform."""
    words = jax.random.bits(jax.random.key(97), (20_000, 2), jnp.uint32)
    go = jax.jit(
        jax.vmap(lambda w: jax.vmap(lambda x: permuted(x, jnp.int32(97), w))(jnp.arange(2)))
    )
    first, second = np.asarray(go(words)).T
    assert stats.chisquare(np.bincount(first, minlength=97)).pvalue > 0.005
    assert stats.chisquare(np.bincount((second - first) % 97, minlength=97)[1:]).pvalue > 0.005


@pytest.mark.integration
def test_prices_may_change_while_the_requests_stay() -> None:
    """Segments of one table: same rows, another price; late answers come of their row."""
    usual, cheap = table(order=ShuffledRows()), table(order=ShuffledRows())
    cheap = RequestTable.of(
        *(np.asarray(x) / 2.0**24 for x in (usual.reward, usual.cost // 2)), ShuffledRows()
    )
    world = Piecewise.of([usual, cheap, usual], at=[4, 8])
    marks = np.arange(1, 12) / 11
    always = jb.policies.FixedSplit([0.0, 1.0, 0.0])
    spent = jb.simulate(always, world, jb.Horizon(11), key=KEY, marks=marks).ledger["spent"][
        0, 0, 0
    ]
    plain = np.asarray(usual.cost)[0, usual.rows(KEY, 11), 1]
    paid = np.where((np.arange(1, 12) >= 4) & (np.arange(1, 12) < 8), plain // 2, plain)
    np.testing.assert_array_equal(spent, paid.cumsum())
    late = Delayed(usual, FixedDelay(3), room=4)
    reward = jb.simulate(
        jb.policies.InFlight(always), late, jb.Horizon(11), key=KEY, marks=marks
    ).ledger["reward"]
    np.testing.assert_array_equal(
        reward[0, 0, 0], np.asarray(usual.reward)[0, usual.rows(KEY, 11), 1].cumsum()
    )
