"""What every arm showed in a run, computed again from the number of its pulls.

Outcomes are addressed: the first n outcomes of an arm in (instance, replicate) are a function of the root key. So sums
over a lane's outcomes, such as the score of its likelihood, need no trace of the run and no change of the engines; they
stop where the lane stopped, since only pulls that were played are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._engine.scan import at_instance
from jaxbandits.core import streams, ticks
from jaxbandits.core.streams import Domain
from jaxbandits.core.ticks import Total
from jaxbandits.environments.finite import FiniteArms

_BLOCK = 64  # outcomes of a pair at a time; their parts fit one int32
_PAIRS = 1 << 12

# (reward, cost) of a pull in ticks -> f32[S], numbers to be summed (below 2²⁴ in size).
Statistic = Callable[[jax.Array, jax.Array], jax.Array]


def sums(
    environment: FiniteArms,
    statistic: Statistic,
    key: jax.Array,
    instance_ids: np.ndarray,
    replicate_ids: np.ndarray,
    pulls: np.ndarray,
) -> np.ndarray:
    """Σ statistic over the first ``pulls`` outcomes of every arm, float64 ``[..., instance, replicate, arm, S]``.

    ``statistic`` is hashable, so that it is compiled once; ``key`` the root key of the run, whose ids are given.
    """
    lead = pulls.shape[:-3]
    flat = pulls.reshape(-1)
    place = np.unravel_index(np.arange(flat.size), (int(np.prod(lead)), *pulls.shape[-3:]))
    row, replicate, arm = (x.astype(np.int32) for x in place[1:])
    order = np.argsort(-flat, kind="stable")  # pairs of similar length together
    root = np.asarray(jax.random.key_data(key))
    parts = []
    for start in range(0, flat.size, _PAIRS):
        chosen = order[start : start + _PAIRS]
        padded = np.resize(chosen, _PAIRS)  # always the same width, so that it compiles once
        n = np.where(np.arange(_PAIRS) < chosen.size, flat[padded], 0).astype(np.int32)
        lane = instance_ids[row[padded]].astype(np.uint32), replicate_ids[replicate[padded]].astype(np.uint32)
        total = _sums(statistic, environment, root, row[padded], *lane, arm[padded], n)
        parts.append(ticks.to_units(ticks.join(jax.tree.map(np.asarray, total)))[: chosen.size])
    found = np.concatenate(parts)
    result = np.empty_like(found)
    result[order] = found
    return result.reshape(*pulls.shape, -1)


@partial(jax.jit, static_argnames=("statistic",))
def _sums(
    statistic: Statistic,
    environment: FiniteArms,
    root: jax.Array,
    row: jax.Array,
    instance: jax.Array,
    replicate: jax.Array,
    arm: jax.Array,
    n: jax.Array,
) -> Total:
    def words(instance: jax.Array, replicate: jax.Array) -> jax.Array:
        lane = streams.lane_key(jax.random.wrap_key_data(root, impl="threefry2x32"), instance, replicate)
        return jax.random.key_data(streams.domain_key(lane, Domain.WORLD))

    keys = jax.vmap(words)(instance, replicate)

    def outcome(row: jax.Array, key: jax.Array, arm: jax.Array, place: jax.Array) -> jax.Array:
        world = at_instance(environment, row)
        return statistic(*world.outcome(jax.random.wrap_key_data(key, impl="threefry2x32"), arm, place))

    many = jax.vmap(jax.vmap(outcome, in_axes=(None, None, None, 0)))
    first = jax.lax.iota(jnp.int32, _BLOCK)
    shape: Any = jax.eval_shape(many, row, keys, arm, first[None, :] + n[:, None]).shape

    def block(state: tuple[jax.Array, Total]) -> tuple[jax.Array, Total]:
        done, total = state
        place = jnp.broadcast_to((done + first)[None, :], (n.shape[0], _BLOCK))
        values = jnp.where((place < n[:, None])[..., None], many(row, keys, arm, place), 0)
        whole = jnp.floor(values)
        part = ((values - whole) * ticks.ONE).astype(jnp.int32)  # exact: values are float32
        more = Total(jnp.sum(whole.astype(jnp.int32), axis=1, dtype=jnp.int32), jnp.zeros_like(total.part))
        return done + _BLOCK, ticks.plus(ticks.add(total, jnp.sum(part, axis=1, dtype=jnp.int32)), more)

    most = jnp.max(n)
    return jax.lax.while_loop(lambda s: s[0] < most, block, (jnp.int32(0), ticks.zero((shape[0], shape[2]))))[1]
