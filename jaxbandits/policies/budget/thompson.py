"""Budgeted Thompson sampling (Xia, Li, Qin, Yu, Liu: Thompson sampling for budgeted bandits, IJCAI 2015)."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits._numerics import beta_draws
from jaxbandits.core import streams
from jaxbandits.core.protocol import Observation, Policy, View
from jaxbandits.core.pytrees import pytree
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.streams import Role
from jaxbandits.policies.base.ties import largest


class Posterior(NamedTuple):
    """Beta posteriors of mean reward and mean cost: trials and successes per arm."""

    pulls: jax.Array  # i32[K]
    rewards: jax.Array  # i32[K]: successes of the reward trials
    costs: jax.Array  # i32[K]


@pytree
class BudgetedThompson(Policy):
    """BTS: draw θ^r_k ~ Beta(1 + S^r_k, 1 + F^r_k), θ^c_k ~ Beta(1 + S^c_k, 1 + F^c_k); play argmax θ^r/θ^c.

    No initial pulls, no parameter. A reward r in (0, 1) is turned into a Bernoulli(r) trial, a cost likewise; values
    exactly 0 or 1 stay as they are.

    Source: IJCAI 2015, Algorithm 1; Heyden et al., KDD 2024, App. B and reference code.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.BudgetedThompson().init(jb.environments.FiniteSpec(arms=3)).pulls.tolist()
        [0, 0, 0]
    """

    plays: ClassVar[type] = FiniteSpec

    def init(self, spec: FiniteSpec) -> Posterior:
        """Uniform priors."""
        return Posterior(*(jnp.zeros((spec.arms,), jnp.int32) for _ in range(3)))

    def update(self, state: Posterior, key: jax.Array, observation: Observation) -> Posterior:
        """Count one reward trial and one cost trial."""
        coin = streams.policy_words(key, observation.view.round, Role.TRIAL)
        arm = jax.lax.iota(jnp.int32, state.pulls.shape[0]) == observation.action
        reward = streams.uniform_ticks(coin[0]) < observation.feedback.reward
        cost = streams.uniform_ticks(coin[1]) < observation.feedback.cost
        return Posterior(
            state.pulls + arm.astype(jnp.int32),
            state.rewards + (arm & reward).astype(jnp.int32),
            state.costs + (arm & cost).astype(jnp.int32),
        )

    def draws(self, state: Posterior, key: jax.Array, round: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(θ^r, θ^c), ``f32[K]`` each."""
        reward, cost = self._wide_draws(state, key, round)
        arms = state.pulls.shape[0]
        return reward[:arms], cost[:arms]

    def _wide_draws(self, state: Posterior, key: jax.Array, round: jax.Array) -> tuple[jax.Array, jax.Array]:
        """:meth:`draws`, and behind them draws of no arm, as many as make all of them fast."""
        arms = state.pulls.shape[0]
        width = beta_draws.fast_width(arms)
        ids = jax.lax.iota(jnp.uint32, width)
        pulls, rewards, costs = (jnp.pad(x, (0, width - arms)) for x in state)

        def theta(role: Role, successes: jax.Array) -> jax.Array:
            words = jax.vmap(lambda arm: streams.policy_words(key, round, role, arm))(ids)
            return beta_draws.beta_from_words(words.T, 1 + successes, 1 + pulls - successes)

        return theta(Role.THETA_REWARD, rewards), theta(Role.THETA_COST, costs)

    def select(self, state: Posterior, key: jax.Array, view: View) -> tuple[Posterior, jax.Array]:
        """The arm with the largest ratio of the draws."""
        reward, cost = self._wide_draws(state, key, view.round)
        return state, largest(reward / cost, key, view, arms=state.pulls.shape[0])
