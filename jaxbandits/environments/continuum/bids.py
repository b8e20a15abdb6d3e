"""Bidding in logged second-price auctions: the arm is the bid, a continuum; the price is paid only if the bid wins."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import streams, ticks
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.ledger import Outcome
from jaxbandits.core.numbers import numbers, whole_number
from jaxbandits.core.protocol import Environment, Feedback
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.core.specs import ContinuumSpec, to_ticks
from jaxbandits.core.tables import check_unit
from jaxbandits.environments.continuum.world import is_point

_MOST_PRICES = 1 << 14


@pytree
class LoggedAuctions(Environment):
    """Each round an auction is drawn from a log; the bid wins if the market price is not above it.

    A point x of [0, 1] is the whole bid low + ⌊x (high − low + 1)⌋ (at most ``high``). A win costs the market price
    and brings the logged reward (a click, or its predicted probability); a loss costs and brings nothing. Costs are in
    units of the highest price. Round t draws the same auction whoever bids. Build one with :meth:`of`.
    """

    price: Any = leaf(integer=True)  # i32[I, R]: market prices, whole units
    reward: Any = leaf(integer=True)  # i32[I, R]: ticks
    cost: Any = leaf(integer=True)  # i32[I, P]: ticks that a price costs
    mean_reward: Any = leaf(integer=True)  # i32[I, P]: of each bid 0 … P − 1, in ticks
    mean_cost: Any = leaf(integer=True)  # i32[I, P]
    low: Any = leaf(integer=True)  # i32[I]
    high: Any = leaf(integer=True)  # i32[I]

    @staticmethod
    def of(price: Any, reward: Any, *, low: int = 0, high: int | None = None, top: int | None = None) -> LoggedAuctions:
        """One log as one instance.

        Args:
            price: market price of every auction, whole numbers ≥ 0, ``[R]``.
            reward: what winning it brings, in [0, 1], ``[R]``. (Scale a predicted probability by its largest value.)
            low, high: the range of bids, whole numbers; by default 0 and the highest price.
            top: the price that costs 1; default the highest price or bid.

        Raises:
            InputError: an empty log, prices that are not whole numbers from 0 to 16383, rewards outside [0, 1], an
                empty range of bids.

        Example:
            >>> from jaxbandits.environments import LoggedAuctions
            >>> log = LoggedAuctions.of(price=[10, 20, 40], reward=[1.0, 0.0, 1.0], low=5)
            >>> reward, cost = log.values()
            >>> log.instances, reward.shape, round(float(reward[0, -1]), 3), round(float(cost[0, -1]), 3)
            (1, (1, 36), 0.667, 0.583)
        """
        p, r = numbers("price", price), numbers("reward", reward)
        if p.ndim != 1 or p.shape != r.shape or p.size == 0:
            raise InputError(
                f"price, reward: shapes {p.shape} and {r.shape} given; both must be [auctions], at least one"
            )
        if not ((p >= 0) & (p < _MOST_PRICES) & (p == np.rint(p))).all():
            raise bad("price", float(p[~((p >= 0) & (p < _MOST_PRICES) & (p == np.rint(p)))][0]), "0, 1, … or 16383")
        if not ((r >= 0) & (r <= 1)).all():
            raise bad("reward", float(r[~((r >= 0) & (r <= 1))][0]), "in [0, 1]")
        check_unit("reward", r, rows=True)
        low = whole_number("low", low, 0, _MOST_PRICES - 1)
        highest = int(p.max()) if high is None else whole_number("high", high, 0, _MOST_PRICES - 1)
        if low > highest:
            raise bad("low, high", (low, highest), "whole numbers with 0 ≤ low ≤ high ≤ 16383")
        unit = max(int(p.max()), highest, 1) if top is None else whole_number("top", top, 1, _MOST_PRICES - 1)
        if not max(int(p.max()), highest) <= unit < _MOST_PRICES:
            raise bad("top", unit, "at least the highest price and bid, and at most 16383")
        whole, gain = p.astype(np.int32), ticks.from_units(r).astype(np.int32)
        levels = np.arange(unit + 1)
        cost = ticks.from_units(levels / unit)
        earned = np.cumsum(np.bincount(whole, weights=gain, minlength=unit + 1))
        paid = np.cumsum(np.bincount(whole, weights=cost[whole], minlength=unit + 1))
        return LoggedAuctions(
            price=whole[None],
            reward=gain[None],
            cost=cost.astype(np.int32)[None],
            mean_reward=np.rint(earned / p.size).astype(np.int32)[None],
            mean_cost=np.rint(paid / p.size).astype(np.int32)[None],
            low=np.array([low], np.int32),
            high=np.array([highest], np.int32),
        )

    @property
    def spec(self) -> ContinuumSpec:
        """Points of [0, 1]."""
        return ContinuumSpec()

    def refuses(self, action: Any) -> str | None:
        """See :meth:`Environment.refuses`: a point."""
        return None if is_point(action) else "a point of [0, 1], float32[]"

    def start(self) -> tuple[()]:
        """Nothing to remember."""
        return ()

    def bid(self, point: jax.Array) -> jax.Array:
        """The whole bid of a point of [0, 1]."""
        width = self.high[()] - self.low[()] + 1
        return jnp.minimum(self.low[()] + (((to_ticks(point) >> 8) * width) >> 16), self.high[()])

    def pull(
        self, state: tuple[()], action: jax.Array, key: jax.Array, round: jax.Array
    ) -> tuple[tuple[()], Outcome, Feedback, jax.Array]:
        """Bid in the auction of this round."""
        valid = (action >= 0) & (action <= 1)
        bid = self.bid(jnp.where(valid, action, 0.0))
        row = streams.below(streams.words(key, round, 0)[0], self.price.shape[0])
        price = self.price[row]
        won = price <= bid
        reward = jnp.where(won, self.reward[row], 0)
        cost = jnp.where(won, self.cost[price], 0)
        outcome = Outcome(
            reward=reward,
            cost=cost,
            expected_reward=self.mean_reward[bid],
            expected_cost=self.mean_cost[bid],
            events={"wins": won.astype(jnp.int32)},
            valid=valid,
        )
        return state, outcome, Feedback(reward, cost), jnp.bool_(False)

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """Means of every whole bid; NaN beyond an instance's range."""
        low, high = np.asarray(self.low), np.asarray(self.high)
        bids = np.arange(int(low.min()), int(high.max()) + 1)
        inside = (bids >= low[:, None]) & (bids <= high[:, None])
        reward, cost = (ticks.to_units(np.asarray(x))[:, bids] for x in (self.mean_reward, self.mean_cost))
        return np.where(inside, reward, np.nan), np.where(inside, cost, np.nan)
