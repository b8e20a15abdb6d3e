"""Laws of (reward, cost): from 64 random bits and an arm to ticks. One uniform per outcome, through an inverse CDF.

Every law's parameters are whole ticks, and the means that it states are those of the law as it is simulated.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics import beta_tables
from jaxbandits.core import streams, ticks
from jaxbandits.core.pytrees import leaf, pytree


class Law:
    """A joint law of reward and cost per arm.

    With several resources the cost is a vector ``[d]`` and so is everything that describes it, on a last axis.
    """

    @abstractmethod
    def outcome(self, arm: jax.Array, words: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(reward, cost) in ticks of one pull of ``arm``: word 0 is for the reward, the next ones for the cost."""
        raise NotImplementedError


@pytree
class BernoulliLaw(Law):
    """Reward and cost are 0 or 1, independent: r = 1 iff U < μ^r (exactly, since μ is a whole number of ticks)."""

    reward: Any = leaf()  # i32[I, K]: μ^r in ticks
    cost: Any = leaf()  # i32[I, K]

    def outcome(self, arm: jax.Array, words: jax.Array) -> tuple[jax.Array, jax.Array]:
        """See :class:`Law`."""
        mean = self.cost[arm]
        reward = streams.uniform_ticks(words[0]) < self.reward[arm]
        cost = streams.uniform_ticks(_cost_words(words, mean)) < mean
        return reward.astype(jnp.int32) * ticks.ONE, cost.astype(jnp.int32) * ticks.ONE


def _cost_words(words: jax.Array, mean: jax.Array) -> jax.Array:
    return words[1] if mean.ndim == 0 else words[1 : 1 + mean.shape[0]]


@pytree
class QuarterLaw(Law):
    """Outcomes 0, ¼, ½, ¾, 1 (generalised Bernoulli), independent; leaves are P(x ≤ j/4), j = 0 … 3, in ticks."""

    reward: Any = leaf()  # i32[I, K, 4]
    cost: Any = leaf()  # i32[I, K, 4]

    def outcome(self, arm: jax.Array, words: jax.Array) -> tuple[jax.Array, jax.Array]:
        """See :class:`Law`."""
        return _quarters(self.reward, arm, words[0]), _quarters(self.cost, arm, words[1])


def _quarters(cumulative: Any, arm: jax.Array, word: jax.Array) -> jax.Array:
    u = streams.uniform_ticks(word)
    steps = [(u >= cumulative[arm, j]).astype(jnp.int32) for j in range(4)]
    return (steps[0] + steps[1] + steps[2] + steps[3]) * (ticks.ONE // 4)


@pytree
class QuantileLaw(Law):
    """Any law on [0, 1] by a table of its quantile function (:mod:`jaxbandits._numerics.beta_tables`), independent."""

    reward: Any = leaf()  # i32[I, K, G]: knots in ticks
    cost: Any = leaf()  # i32[I, K, G]

    def outcome(self, arm: jax.Array, words: jax.Array) -> tuple[jax.Array, jax.Array]:
        """See :class:`Law`."""
        return _quantile(self.reward, arm, words[0]), _quantile(self.cost, arm, words[1])


@pytree
class BetaLaw(QuantileLaw):
    """Beta laws, drawn from their tables; the shapes are kept for those who ask how outcomes depend on them."""

    reward_alpha: Any = leaf()  # f32[I, K]
    reward_beta: Any = leaf()
    cost_alpha: Any = leaf()
    cost_beta: Any = leaf()


def _quantile(knots: Any, arm: jax.Array, word: jax.Array) -> jax.Array:
    cell, fraction = beta_tables.cell_of(word)
    return beta_tables.interpolate(knots[arm, cell], knots[arm, cell + 1], fraction)


@pytree
class RowsLaw(Law):
    """Resampled rows of a real log, reward and cost drawn together: one uniform picks the row."""

    reward: Any = leaf()  # i32[I, K, R] ticks
    cost: Any = leaf()  # i32[I, K, R]
    rows: Any = leaf()  # i32[I, K]: rows that an arm has

    def outcome(self, arm: jax.Array, words: jax.Array) -> tuple[jax.Array, jax.Array]:
        """See :class:`Law`."""
        row = streams.below(words[0], self.rows[arm])
        return self.reward[arm, row], self.cost[arm, row]


@pytree
class ClickLaw(Law):
    """A click brings a conversion or none, and costs its price: independent.

    Reward :math:`w \\cdot [U < p]`. Cost, if :math:`V < q`, a whole number of ticks drawn uniformly from
    :math:`m - h, \\dots, m + h` (mean m exactly), else 0. With q = 1 every click is paid; with h = 0 and m = 1 it is
    the coin of :class:`BernoulliLaw`. Only one of the two may vary: h = 0 or q = 1.
    """

    chance: Any = leaf()  # i32[I, K]: p in ticks
    worth: Any = leaf()  # i32[I, K]: w
    paid: Any = leaf()  # i32[I, K]: q in ticks
    price: Any = leaf()  # i32[I, K]: m
    spread: Any = leaf()  # i32[I, K]: h <= m

    def outcome(self, arm: jax.Array, words: jax.Array) -> tuple[jax.Array, jax.Array]:
        """See :class:`Law`."""
        converts = streams.uniform_ticks(words[0]) < self.chance[arm]
        spread = self.spread[arm]
        price = self.price[arm] - spread + streams.below(words[1], 2 * spread + 1)
        pays = streams.uniform_ticks(words[1]) < self.paid[arm]
        return converts.astype(jnp.int32) * self.worth[arm], pays.astype(jnp.int32) * price


@pytree
class WeightedRowsLaw(Law):
    """Rows of a real log, reward and cost together, each with a probability of its own: one uniform picks the row."""

    reward: Any = leaf()  # i32[I, K, R] ticks
    cost: Any = leaf()  # i32[I, K, R]
    reached: Any = leaf()  # i32[I, K, R]: P(row <= j) in ticks; 2**24 from the arm's last row on

    def outcome(self, arm: jax.Array, words: jax.Array) -> tuple[jax.Array, jax.Array]:
        """See :class:`Law`."""
        uniform = streams.uniform_ticks(words[0])
        low = high = jnp.int32(0)
        high = high + self.reached.shape[-1] - 1
        for _ in range(max(1, (self.reached.shape[-1] - 1).bit_length())):  # the first row that U does not reach
            middle = (low + high) // 2
            below = self.reached[arm, middle] <= uniform
            low, high = jnp.where(below, jnp.minimum(middle + 1, high), low), jnp.where(below, high, middle)
        return self.reward[arm, low], self.cost[arm, low]


def quarter_thresholds(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(P(x ≤ j/4) in ticks ``[..., 4]``, mean in ticks ``[...]``) from five weights ``[..., 5]``.

    The mean is Σ_j (1 − P(x ≤ j/4)) / 4; the last threshold moves by at most three ticks so that it is a whole tick
    (where the weight of ¾ is 0 it then lies below the third: an outcome ¾ in place of ½ and 1, the same mean).
    """
    weights = weights / weights.max(axis=-1, keepdims=True)  # no sum of huge or tiny weights over- or underflows
    share = weights / weights.sum(axis=-1, keepdims=True)
    cumulative = np.rint(np.cumsum(share, axis=-1)[..., :4] * ticks.ONE).astype(np.int64)
    cumulative = np.clip(cumulative, 4, ticks.ONE)
    cumulative[..., 3] -= cumulative.sum(axis=-1) % 4
    mean = (4 * ticks.ONE - cumulative.sum(axis=-1)) // 4
    return cumulative.astype(np.int32), mean.astype(np.int32)
