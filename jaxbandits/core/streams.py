"""Addressed randomness: every draw is a pure function of its address.

Nothing is threaded and nothing is stored: a draw is a pure function of where it stands. ``threefry2x32`` is pinned, so
the same address gives the same bits on every jax version and device.

=====================  ==========================================================  =========================
draw                   address                                                      function
=====================  ==========================================================  =========================
a lane's key           (root key, instance id, replicate id)                        :func:`lane_key`
an arm's n-th outcome  (lane key, world, n, arm): word 0 reward, word 1 cost        :func:`words`
a table's row          (lane key, world, round, 0); an order: (…, pass, 1)          :func:`words`
a run's own means      (lane key, means, draw, arm): word 0 reward, word 1 cost    :func:`words`
a policy's own draw    (lane key, policy, round, role, arm)                         :func:`policy_words`
a tie                  (lane key, policy, round, ``Role.TIE``) mixed with the arm   :func:`priorities`
=====================  ==========================================================  =========================

Not in any address: the setting of the policy, a position in a batch, an array's shape. So all policies and settings
meet the same world (common random numbers).
"""

from __future__ import annotations

import enum
import os
import warnings
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import xla_bridge  # backends_are_initialized has no public name
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

from jaxbandits.core.checks import InputError, bad, refuse_traced, whole_number

_IMPL = "threefry2x32"
_Words = TypeVar("_Words", jax.Array, np.ndarray)
_Pair = tuple[jax.Array, jax.Array]


class Role(enum.IntEnum):
    """The purpose of a policy's draw, one of at most 256; the arm id has 24 bits of the same word.

    From ``USER`` = 34 to 63 they are for policies of one's own; the package takes those below and
    those above.
    """

    TIE = 0
    THETA_REWARD = 1
    THETA_COST = 2
    TRIAL = 3
    EXPLORE = 4
    MIX = 5
    USER = 34


class Domain(enum.IntEnum):
    """The owner of a draw: the world, the policy, or the maker of a run's true means."""

    WORLD = 1
    POLICY = 2
    MEANS = 3


# Processes that were forked from one in which jax had started: its threads are not there
_FORKED: list[int] = []


def _note_fork() -> None:
    _FORKED.extend([os.getpid()] * xla_bridge.backends_are_initialized())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def root_key(key: object) -> jax.Array:
    """A user's key, checked, as a typed threefry key; converts a raw ``uint32[2]`` and warns."""
    if _FORKED:
        raise RuntimeError(
            "this process was forked after jax had started, where jax would wait forever; start processes with "
            "multiprocessing.get_context('spawn') or 'forkserver'"
        )
    refuse_traced("key", key)
    if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        if key.shape != ():
            given = f"an array of keys of shape {key.shape}"
            raise InputError(f"key: {given} given; it must be one key")
        if str(kind := jax.random.key_impl(key)) != _IMPL:
            must = f"a {_IMPL} key, as jax.random.key(seed, impl={_IMPL!r}) makes"
            raise InputError(f"key: implementation {kind} given; it must be {must}")
        return key
    words = np.asarray(key) if isinstance(key, (jax.Array, np.ndarray)) else None
    if words is not None and words.dtype == np.uint32 and words.shape == (2,):
        converted = "key: a raw uint32 key was converted to a typed one"
        warnings.warn(f"{converted}; use jax.random.key(seed)", stacklevel=3)
        return jax.random.wrap_key_data(jnp.asarray(words), impl=_IMPL)
    raise bad("key", key, "a key, as jax.random.key(seed) makes")


_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry2x32_of(
    key: tuple[_Words, _Words], place: tuple[_Words, _Words]
) -> tuple[_Words, _Words]:
    """The threefry2x32 cipher (20 rounds; Salmon et al., SC 2011), elementwise on uint32 arrays.

    Written out so that it fuses with what surrounds it: jax's own rolls its rounds into a loop on
    CPU, which costs three times as much inside a scan. Tested against the published vectors and
    against jax's.
    """
    schedule = (key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA))
    x, y = place[0] + schedule[0], place[1] + schedule[1]
    for group in range(5):
        for turn in _ROTATIONS[group % 2]:
            x = x + y
            y = ((y << np.uint32(turn)) | (y >> np.uint32(32 - turn))) ^ x
        x = x + schedule[(group + 1) % 3]
        y = y + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return x, y


threefry2x32 = jax.jit(threefry2x32_of)  # traced once, however often it is used


def words(key: jax.Array, first: jax.Array | int, second: jax.Array | int) -> jax.Array:
    """The 64 random bits, ``uint32[2]``, at ``(key, first, second)``: scalars, of one lane."""
    data = jax.random.key_data(key)
    place = jnp.asarray(first).astype(jnp.uint32), jnp.asarray(second).astype(jnp.uint32)
    return jnp.stack(once(*threefry2x32((data[0], data[1]), place)))


def once(x: jax.Array, y: jax.Array) -> _Pair:
    """``x`` and ``y`` (uint32, of one shape), on CPU computed once and together; else unchanged."""
    # XLA on CPU repeats a chain of elementwise operations in every kernel that reads its end: a
    # whole hash, for each word and for each reader. What a reduction ends with is stored instead,
    # here one over a pair whose other half is 0. On GPU such a reduction costs a warp for each
    # pair, and nothing is repeated without it.
    return tuple(_once.bind(x, y))  # type: ignore[no-untyped-call]


def _as_reduction(x: jax.Array, y: jax.Array) -> _Pair:
    first = jax.lax.iota(jnp.int32, 2) == 0
    pairs = jnp.where(first, x[..., None], 0), jnp.where(first, y[..., None], 0)
    zeros = jnp.uint32(0), jnp.uint32(0)
    return tuple(jax.lax.reduce(pairs, zeros, _either, (x.ndim,)))


def _either(a: _Pair, b: _Pair) -> _Pair:
    return a[0] | b[0], a[1] | b[1]


def _batched_once(operands: tuple, axes: tuple) -> tuple:
    size = next(x.shape[axis] for x, axis in zip(operands, axes, strict=True) if axis is not None)
    first = [
        jnp.broadcast_to(x, (size, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)
        for x, axis in zip(operands, axes, strict=True)
    ]
    return once(*first), (0, 0)


_once = Primitive("once")
_once.multiple_results = True
_once.def_impl(lambda x, y: (x, y))
_once.def_abstract_eval(lambda x, y: (x, y))
batching.primitive_batchers[_once] = _batched_once
mlir.register_lowering(_once, lambda context, x, y: (x, y))
mlir.register_lowering(_once, mlir.lower_fun(_as_reduction, multiple_results=True), platform="cpu")


def at(key: jax.Array, first: jax.Array | int, second: jax.Array | int) -> jax.Array:
    """A key at that address, for more than 64 bits or for :mod:`jax.random`."""
    return jax.random.wrap_key_data(words(key, first, second), impl=_IMPL)


def typed(words: jax.Array) -> jax.Array:
    """The key of these words, ``u32[2]``."""
    return jax.random.wrap_key_data(words, impl=_IMPL)


def lane_key(root: jax.Array, instance: jax.Array | int, replicate: jax.Array | int) -> jax.Array:
    """The key of one independent run."""
    return at(root, instance, replicate)


def domain_key(lane: jax.Array, domain: Domain) -> jax.Array:
    """The key of the world, the policy or the means in a lane."""
    return at(lane, 0, int(domain))


def lane_words(
    root: np.ndarray, instance: np.ndarray, replicate: np.ndarray, domain: Domain | np.ndarray
) -> np.ndarray:
    """Host: :func:`domain_key` of many lanes, ``u32[lane, 2]``; domains ``[domain, 1]`` add an axis."""
    ids = instance.astype(np.uint32), replicate.astype(np.uint32)
    key = threefry2x32_of((root[:1], root[1:]), ids)
    place = np.zeros(1, np.uint32), np.asarray(domain, np.uint32)
    return np.stack(threefry2x32_of(key, place), axis=-1)


def policy_words(
    key: jax.Array, round: jax.Array, role: int, arm: jax.Array | int = 0
) -> jax.Array:
    """A policy's 64 random bits ``uint32[2]`` at ``(round, role, arm)``; role: 0 to 255."""
    whole_number("role", role, 0, 255)
    return words(key, round, jnp.asarray(arm).astype(jnp.uint32) | jnp.uint32(int(role) << 24))


def priorities(word: jax.Array, arms: int) -> jax.Array:
    """A random order of the arms: ``uint32[arms]``, the smallest wins (see :func:`priority`)."""
    return priority(word, jax.lax.iota(jnp.uint32, arms))


def priority(word: jax.Array, arm: jax.Array) -> jax.Array:
    """The position of each ``arm`` (ids, any shape) in the random order given by ``word``."""
    # The finaliser of MurmurHash3: a further arm changes no other arm's value, and one hash a round
    # serves ties among any number of arms.
    x = word ^ (arm.astype(jnp.uint32) * jnp.uint32(0x9E3779B9))
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def arm_at(word: jax.Array, place: jax.Array) -> jax.Array:
    """The arm id (uint32) whose :func:`priority` under ``word`` is ``place``: the inverse."""
    x = place ^ (place >> 16)
    x = x * jnp.uint32(0x7ED1B41D)
    x = (x ^ (x >> 13) ^ (x >> 26)) * jnp.uint32(0xA5CB9243)
    return ((x ^ (x >> 16)) ^ word) * jnp.uint32(0x144CBC89)


def below(word: jax.Array, n: jax.Array | int) -> jax.Array:
    """A uniform int32 in ``0 … n − 1`` from one word; bias below n · 2⁻³²; n ≤ 2³¹ − 1."""
    n = jnp.asarray(n).astype(jnp.uint32)
    high, low = word >> 16, word & jnp.uint32(0xFFFF)
    n_high, n_low = n >> 16, n & jnp.uint32(0xFFFF)
    carry = (
        ((low * n_low) >> 16)
        + ((high * n_low) & jnp.uint32(0xFFFF))
        + ((low * n_high) & jnp.uint32(0xFFFF))
    )
    return (high * n_high + ((high * n_low) >> 16) + ((low * n_high) >> 16) + (carry >> 16)).astype(
        jnp.int32
    )


def available_arm(word: jax.Array, available: jax.Array) -> jax.Array:
    """An arm drawn uniformly among the existing ones, ``i32[]``; K if there is none.

    Args:
        word: ``u32[]``, e.g. one of :func:`policy_words`.
        available: ``bool[K]``, as in ``view.available``. Further arms that do not exist change no
            bit.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxbandits.core import streams
        >>> key, there = jax.random.key(0), jnp.array([True, False, True])
        >>> [int(streams.available_arm(streams.policy_words(key, t, streams.Role.EXPLORE)[0], there)) for t in range(6)]
        [2, 0, 0, 2, 0, 0]
    """
    ids = jax.lax.iota(jnp.int32, available.shape[0])
    rank = jnp.cumsum(available, dtype=jnp.int32) - 1
    number = below(word, jnp.sum(available, dtype=jnp.int32))
    return jnp.min(jnp.where(available & (rank == number), ids, available.shape[0]))


def uniform_ticks(word: jax.Array) -> jax.Array:
    """A uniform int32 in 0 … 2²⁴ − 1: P(``uniform_ticks(w) < p``) is exactly p · 2⁻²⁴."""
    return (word >> 8).astype(jnp.int32)


def uniform(word: jax.Array) -> jax.Array:
    """A uniform float32 in [0, 1), a multiple of 2⁻²⁴."""
    return uniform_ticks(word).astype(jnp.float32) * np.float32(2.0**-24)
