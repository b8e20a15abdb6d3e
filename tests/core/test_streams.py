"""The address of every draw: pinned bits, distinct addresses, fair ties."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats as laws

from jaxbandits.core import streams
from jaxbandits.core.checks import InputError
from jaxbandits.core.protocol import View
from jaxbandits.core.streams import Domain, Role
from jaxbandits.policies.base import ABSENT, largest, sortable
from tests.contract import threefry as plain
from tests.core.test_ticks import examples

word = st.integers(0, 2**32 - 1)
some_words = jax.jit(streams.words)


def key_of(*words: int) -> jax.Array:
    return jax.random.wrap_key_data(jnp.array(words, jnp.uint32), impl="threefry2x32")


@pytest.mark.parametrize(
    ("key", "counter", "out"),
    [  # known answers of Random123 for threefry2x32 with 20 rounds
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_known_answers(
    key: tuple[int, int], counter: tuple[int, int], out: tuple[int, int]
) -> None:
    place = jnp.array(counter, jnp.uint32)
    assert tuple(streams.words(key_of(*key), place[0], place[1]).tolist()) == out
    assert plain.threefry(key, counter) == out


@given(word, word, word, word)
def test_words_are_threefry(k0: int, k1: int, first: int, second: int) -> None:
    place = np.array([first, second], np.uint32)
    got = some_words(key_of(k0, k1), place[0], place[1])
    assert got.dtype == jnp.uint32
    assert tuple(got.tolist()) == plain.threefry((k0, k1), (first, second))


def test_every_address_is_what_the_table_says() -> None:
    root, (instance, replicate, round, arm, n) = (11, 22), (3, 4, 5, 6, 7)
    lane = streams.lane_key(key_of(*root), instance, replicate)
    policy, world = (streams.domain_key(lane, domain) for domain in (Domain.POLICY, Domain.WORLD))
    for role in Role:
        got = streams.policy_words(policy, jnp.int32(round), role, arm).tolist()
        assert tuple(got) == plain.policy_words(root, instance, replicate, round, int(role), arm)
    assert tuple(streams.words(world, n, arm).tolist()) == plain.world_words(
        root, instance, replicate, arm, n
    )


def test_distinct_addresses_give_distinct_bits() -> None:
    """All draws of a small experiment: 2¹³ 64-bit values repeat with probability 2⁻³⁹."""
    root, draws = (0, 7), []
    for instance, replicate in itertools.product(range(4), range(4)):
        for round, arm in itertools.product(range(8), range(8)):
            draws.append(plain.world_words(root, instance, replicate, arm, round))
            for role in Role:
                draws.append(plain.policy_words(root, instance, replicate, round, int(role), arm))
    assert len(set(draws)) == len(draws)


@given(word, st.integers(1, 2**31 - 1))
@examples(
    (2**32 - 1, 2**31 - 1),
    (2**32 - 1, 1),
    (0, 2**31 - 1),
    (0xFFFF0000, 0x7FFFFFFF),
    (0x0000FFFF, 0x0001FFFF),
)
def test_below_is_exact(word: int, n: int) -> None:
    got = _below(np.uint32(word), np.int32(n))
    assert got.dtype == jnp.int32
    assert int(got) == (word * n) >> 32


_below = jax.jit(streams.below)


@given(word)
@example(0)
@example(2**32 - 1)
def test_uniforms(word: int) -> None:
    w = jnp.uint32(word)
    assert int(streams.uniform_ticks(w)) == word >> 8
    assert float(streams.uniform(w)) == (word >> 8) / 2**24


@jax.jit
def _choices(rounds: jax.Array, scores: jax.Array, available: jax.Array) -> jax.Array:
    return jax.vmap(lambda t: largest(scores, key_of(5, 6), View(t, None, available)))(rounds)


@pytest.mark.parametrize("tied", [(0, 1), (1, 4), (0, 2, 3), (0, 1, 2, 3, 4)])
def test_ties_are_broken_uniformly(tied: tuple[int, ...]) -> None:
    rounds = jnp.arange(1, 40_001, dtype=jnp.int32)
    scores = jnp.where(jnp.isin(jnp.arange(5), jnp.array(tied)), 2.0, 1.0).astype(jnp.float32)
    counts = np.bincount(np.asarray(_choices(rounds, scores, jnp.ones(5, bool))), minlength=5)
    assert counts.sum() == counts[list(tied)].sum() == rounds.size
    assert (
        laws.chisquare(counts[list(tied)]).pvalue > 0.01 / 4
    )  # four such tests: Bonferroni at 1 %


def test_an_absent_arm_changes_no_tie() -> None:
    rounds, scores = jnp.arange(1, 2001, dtype=jnp.int32), jnp.ones(5, jnp.float32)
    five = np.asarray(_choices(rounds, scores, jnp.ones(5, bool)))
    wider = np.asarray(_choices(rounds, jnp.ones(8, jnp.float32), jnp.arange(8) < 5))
    assert np.array_equal(five, wider)
    fewer = np.asarray(_choices(rounds, scores, jnp.array([True, True, False, True, True])))
    assert np.array_equal(fewer[five != 2], five[five != 2]), (
        "arms that are there keep their order without the third"
    )
    assert not (fewer == 2).any()


def test_ties_of_different_rounds_are_independent() -> None:
    choices = np.asarray(
        _choices(
            jnp.arange(1, 40_001, dtype=jnp.int32), jnp.ones(3, jnp.float32), jnp.ones(3, bool)
        )
    )
    table = np.zeros((3, 3))
    np.add.at(table, (choices[:-1:2], choices[1::2]), 1)
    assert laws.chi2_contingency(table).pvalue > 0.01


def test_fresh_arms_come_first_in_index_order_and_infinite_scores_tie() -> None:
    view = View(jnp.int32(3), None, jnp.array([False, True, True, True]))
    scores = jnp.array([jnp.inf, jnp.inf, jnp.nan, 5.0], jnp.float32)
    fresh = jnp.array([True, False, True, True])
    assert int(largest(scores, key_of(0, 1), view, fresh=fresh)) == 2
    arms = {
        int(
            largest(
                jnp.array([1.0, jnp.inf, jnp.inf]), key_of(0, 1), View(jnp.int32(t), None, None)
            )
        )
        for t in range(1, 30)
    }
    assert arms == {1, 2}


def test_a_nan_score_chooses_no_arm() -> None:
    view = View(jnp.int32(3), None, jnp.array([True, True, False]))
    assert int(largest(jnp.array([1.0, jnp.nan, 0.0]), key_of(0, 1), view)) == 3
    assert int(largest(jnp.array([1.0, 0.5, jnp.nan]), key_of(0, 1), view)) == 0, (
        "a NaN of an absent arm is no matter"
    )


def test_which_keys_are_taken() -> None:
    good = jax.random.key(3)
    assert streams.root_key(good) is good
    with pytest.warns(UserWarning, match="raw uint32 key"):
        converted = streams.root_key(jax.random.PRNGKey(3))
    assert jnp.array_equal(jax.random.key_data(converted), jax.random.key_data(good))
    for bad in (
        jax.random.key(0, impl="rbg"),
        jax.random.split(good, 2),
        0,
        None,
        "key",
        np.zeros(2, np.int64),
        np.zeros(3, np.uint32),
    ):
        with pytest.raises(InputError, match=r"^key: "):
            streams.root_key(bad)


def test_keys_sort_as_scores_do() -> None:
    scores = np.array(
        [-np.inf, -3e38, -1.5, -2e-38, 0.0, 2e-38, 0.25, 1.0, 3e38, np.inf], np.float32
    )
    compiled = jax.jit(sortable)
    keys = np.asarray(compiled(jnp.asarray(scores)))
    assert (np.diff(keys.astype(np.int64)) > 0).all()
    assert keys.min() > ABSENT
    zeros = np.asarray(compiled(jnp.asarray([0.0, -0.0], jnp.float32)))
    assert zeros.tolist() == [0, 0]
    for nan in (np.nan, -np.nan):  # the sign of a NaN means nothing
        assert int(compiled(jnp.float32(nan))) == 2**31 - 1 > keys.max()


def test_where_no_arm_is_available_none_is_chosen() -> None:
    none = View(jnp.int32(3), None, jnp.zeros(3, bool))
    assert int(largest(jnp.asarray([1.0, 2.0, 3.0]), key_of(0, 1), none)) == 3
    lowest = View(jnp.int32(3), None, jnp.asarray([False, True, False]))
    assert int(largest(jnp.asarray([1.0, -jnp.inf, jnp.nan]), key_of(0, 1), lowest)) == 1


@given(word, st.integers(0, 2**32 - 1))
def test_an_arm_is_found_again_from_its_priority(bits: int, arm: int) -> None:
    place = streams.priority(jnp.uint32(bits), jnp.uint32(arm))
    assert int(streams.arm_at(jnp.uint32(bits), place)) == arm


def test_one_draw_among_the_arms_that_exist_is_uniform_and_ignores_absent_ones() -> None:
    words = jax.random.bits(jax.random.key(20261122), (30_000,), "uint32")
    draw = jax.jit(jax.vmap(streams.available_arm, in_axes=(0, None)))
    arms = np.asarray(draw(words, jnp.array([True, False, True, True, False])))
    counts = np.bincount(arms, minlength=5)
    assert counts[[1, 4]].sum() == 0
    assert (np.abs(counts[[0, 2, 3]] - 10_000) < 4 * np.sqrt(30_000 * 2 / 9)).all(), (
        "4 standard errors"
    )
    assert (
        arms == np.asarray(draw(words, jnp.array([True, False, True, True, False, False, False])))
    ).all()
    assert int(streams.available_arm(words[0], jnp.zeros(5, bool))) == 5, "none exists"


def test_words_of_many_lanes_are_those_of_their_keys() -> None:
    root, instance, replicate = jax.random.key(7), np.array([3, 0]), np.array([5, 2])
    words = np.asarray(jax.random.key_data(root))
    for domain in streams.Domain:
        got = streams.lane_words(words, instance, replicate, domain)
        for lane in range(2):
            key = streams.lane_key(root, instance[lane], replicate[lane])
            assert (
                got[lane].tolist() == jax.random.key_data(streams.domain_key(key, domain)).tolist()
            )
