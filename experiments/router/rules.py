"""Rules of thumb that routers use, each a policy of a few lines, informed as its source is."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import jaxbandits as jb
from jaxbandits import streams
from jaxbandits._numerics import beta
from jaxbandits.core import arm_statistics, select_tree, ticks
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.environments import FiniteSpec
from jaxbandits.policies.base import ArmTotals, fewest, largest, money_left


@jb.pytree
class PriceTiers(jb.policies.IndexPolicy):
    """A good answer is worth 1 from the cheap tier, 0.7 from the middle one, 0.4 from the dear one;
    UCB1 on that.

    Source: handed around as a reward table; no budget in it.
    """

    worth: Any = jb.leaf(core=1, at_least=0, at_most=1)

    def score(self, arms: Any) -> jax.Array:
        return self.worth * arms.mean_reward + jnp.sqrt(2 * jnp.log(arms.t) / arms.n)


@jb.pytree
class NetReward(jb.policies.IndexPolicy):
    """The largest r̄ − λ c̄ + √(2 ln t / n): UCB1 on quality less a price times the cost.

    Source: the static cost penalty of ParetoBandit's table of baselines, for one.
    """

    price: Any = jb.leaf(at_least=0)

    def score(self, arms: Any) -> jax.Array:
        return (
            arms.mean_reward - self.price * arms.mean_cost + jnp.sqrt(2 * jnp.log(arms.t) / arms.n)
        )


@jb.pytree
class ExploreThenCommit(ArmTotals):
    """Each arm ``pulls_per_arm`` times, then the best of mean cost at most c, or the cheapest."""

    c: Any = jb.leaf(above=0, at_most=1)
    pulls_per_arm: Any = jb.leaf(default=50, integer=True, at_least=1)

    def _tried(self, state: ArmStatistics, available: jax.Array) -> jax.Array:
        return jnp.all((state.pulls >= self.pulls_per_arm) | ~available)

    def update(
        self, state: ArmStatistics, key: jax.Array, observation: jb.Observation
    ) -> ArmStatistics:
        committed = self._tried(state, observation.view.available)
        return select_tree(committed, state, super().update(state, key, observation))

    def select(
        self, state: ArmStatistics, key: jax.Array, view: jb.View
    ) -> tuple[ArmStatistics, jax.Array]:
        arms = arm_statistics.as_floats(state, view.round)
        n = jnp.maximum(arms.n, 1)
        score = jnp.where(arms.cost / n <= self.c, arms.reward / n, -1 - arms.cost / n)
        committed = self._tried(state, view.available)
        return state, jnp.where(
            committed, largest(score, key, view), fewest(state.pulls, view.available)
        )


@jb.pytree
class Cap(jb.Policy):
    """The preferred arm while the account is not overdrawn, else the cheapest; any if that is shut.

    Source: LiteLLM's provider budgets: a provider above its budget is left out until there is money
    again.
    """

    preferred: Any = jb.leaf(integer=True, at_least=0)
    cheapest: Any = jb.leaf(integer=True, at_least=0)
    plays = FiniteSpec

    def init(self, spec: FiniteSpec) -> jax.Array:
        return jnp.zeros((), jnp.int32)

    def update(self, state: jax.Array, key: jax.Array, observation: jb.Observation) -> jax.Array:
        return state

    def select(
        self, state: jax.Array, key: jax.Array, view: jb.View
    ) -> tuple[jax.Array, jax.Array]:
        paid = ticks.exceeds(money_left(view), ticks.zero())
        ids = jax.lax.iota(jnp.int32, view.available.shape[0])
        rank = 2 * (ids == jnp.where(paid, self.preferred, self.cheapest)) + (ids == self.cheapest)
        return state, largest(rank.astype(jnp.float32), key, view)


class PseudoCounts(NamedTuple):
    """Pseudo-successes and pseudo-failures of each arm, ``i32[K]``."""

    successes: jax.Array
    failures: jax.Array


@jb.pytree
class AdaptiveRouter(jb.Policy):
    """Thompson sampling on 0.7 · quality + 0.3 · cheapness; the cheapness of list prices is 1 − (p
    − min)/(max − min).

    Prior Beta(10 m, 10 (1 − m)) with m = 0.3, 0.5, 0.7 by tier; a cell of 200 pseudo-counts learns
    nothing more.

    Source: LiteLLM, router_strategy/adaptive_router (bandit.py at a636d830, config.py at 1130107a);
    no budget in it.

    Deviations: it learns from signals of a conversation, here from the quality, by a coin of that
    probability; one type of request.
    """

    cheapness: Any = jb.leaf(core=1, at_least=0, at_most=1)
    prior: Any = jb.leaf(core=1, integer=True, at_least=1)  # 10 m
    quality_weight: Any = jb.leaf(default=0.7, at_least=0, at_most=1)
    plays = FiniteSpec

    def init(self, spec: FiniteSpec) -> PseudoCounts:
        return PseudoCounts(*(jnp.zeros((spec.arms,), jnp.int32) for _ in range(2)))

    def update(
        self, state: PseudoCounts, key: jax.Array, observation: jb.Observation
    ) -> PseudoCounts:
        coin = streams.policy_words(key, observation.view.round, streams.Role.TRIAL)[0]
        good = streams.uniform_ticks(coin) < observation.feedback.reward
        pulled = jax.lax.iota(jnp.int32, state.successes.shape[0]) == observation.action
        pulled = pulled & (10 + state.successes + state.failures < 200)
        return PseudoCounts(
            state.successes + (pulled & good).astype(jnp.int32),
            state.failures + (pulled & ~good).astype(jnp.int32),
        )

    def select(
        self, state: PseudoCounts, key: jax.Array, view: jb.View
    ) -> tuple[PseudoCounts, jax.Array]:
        ids = jax.lax.iota(jnp.uint32, state.successes.shape[0])
        role = streams.Role.THETA_REWARD
        words = jax.vmap(lambda arm: streams.policy_words(key, view.round, role, arm))(ids)
        prior = jnp.asarray(self.prior)
        quality = beta.beta_from_words(
            words.T, prior + state.successes, 10 - prior + state.failures
        )
        score = self.quality_weight * quality + (1 - self.quality_weight) * jnp.asarray(
            self.cheapness
        )
        return state, largest(score, key, view)
