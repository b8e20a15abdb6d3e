"""Policies that draw their arm: SoftElim, the softmax of any index, budgeted Thompson sampling."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits._numerics import beta
from jaxbandits._numerics.arrays import ArrayLike
from jaxbandits.core import arm_statistics, streams, ticks
from jaxbandits.core.arm_statistics import Arms, ArmStatistics, beside
from jaxbandits.core.protocol import Chosen, Observation, Policy, View
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.streams import Role
from jaxbandits.policies.base import RandomisedPolicy, check_score_inside, largest

# --- SoftElim (Boutilier, Hsu, Kveton, Mladenov, Szepesvari, Zaheer, NeurIPS 2020)


@pytree
class SoftElim(RandomisedPolicy):
    """SoftElim: an arm becomes less likely the more certain it is that it is not the best.

    .. math:: p_k \\propto \\exp\\Big(-\\frac{2 (\\bar r_{\\max} - \\bar r_k)^2\\, n_k}{\\theta^2}\\Big), \\qquad
        \\bar r_{\\max} = \\max_j \\bar r_j,

    with the mean of an arm without pulls taken as 1, so that such an arm has exponent 0. Costs are
    ignored: under a budget it plays for the reward of a pull.

    Args:
        theta: θ > 0: how soft. The authors tune it by gradient; the default 1 is ours.

    Source: arXiv 2002.06772 (p_k as restated there for tuning; the mean of an arm without pulls is
    our choice).

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.6, 0.4], [1.0, 1.0])
        >>> result = jb.simulate(
        ...     jb.policies.SoftElim(theta=0.5), arms, jb.Horizon(20), key=jax.random.key(0), replicates=2, marks=1)
        >>> int(result.pulls.sum())
        40
    """

    theta: ArrayLike = leaf(default=1.0, above=0)

    reads_costs: ClassVar[bool] = False

    def logits(self, arms: Arms, available: jax.Array) -> jax.Array:
        mean = jnp.where(arms.n > 0, arms.mean_reward, 1)
        gap = jnp.max(jnp.where(available, mean, -jnp.inf)) - mean
        return jnp.where(available, -2 * gap * gap * arms.n / (self.theta * self.theta), -jnp.inf)


# --- The softmax of any index


@pytree
class SoftIndex(RandomisedPolicy):
    """Draws arm k with probability ∝ exp(score_k / temperature), with an index policy's scores.

    Each arm once first, in index order; while some score is +∞, uniformly among those. As the
    temperature falls to 0 it becomes the index policy itself, and its expected regret stays smooth
    in every parameter on the way.

    Args:
        policy: an index policy, e.g. ``OmegaUCB(rho=0.25)``.
        temperature: above 0, in units of the score.

    Raises:
        InputError: before anything runs, for a policy that is no plain index policy.

    Example:
        >>> import jaxbandits as jb
        >>> soft = jb.policies.SoftIndex(jb.policies.OmegaUCB(rho=0.25), temperature=0.1)
        >>> soft.policy.rho, soft.temperature
        (0.25, 0.1)
    """

    policy: Policy = leaf()
    temperature: ArrayLike = leaf(above=0)

    def check(self, spec: FiniteSpec) -> None:
        check_score_inside(self, self.policy)
        self.policy.check(spec)

    def init(self, spec: FiniteSpec) -> ArmStatistics:
        return arm_statistics.empty(spec.arms, spreads=type(self.policy).spreads)  # type: ignore[attr-defined]

    def logits(self, arms: Arms, available: jax.Array) -> jax.Array:
        wide = jax.tree.map(lambda x: jnp.broadcast_to(x, arms.n.shape), self.policy)
        score = wide.score(arms)
        fresh, endless = (arms.n == 0) & available, jnp.isposinf(score) & available
        soft = jnp.where(jnp.any(endless), _among(endless), score / self.temperature)
        first = fresh & (jnp.cumsum(fresh) == 1)
        return jnp.where(available, jnp.where(jnp.any(fresh), _among(first), soft), -jnp.inf)


def _among(arms: jax.Array) -> jax.Array:
    return jnp.where(arms, 0.0, -jnp.inf)


# --- Budgeted Thompson sampling (Xia, Li, Qin, Yu, Liu, IJCAI 2015)


def posterior_draws(
    key: jax.Array, round: jax.Array, role: int, successes: jax.Array, pulls: jax.Array
) -> jax.Array:
    """θ ~ Beta(1 + successes, 1 + failures) of each arm, addressed by (round, arm).

    Behind them stand draws of no arm, as many as make all of them fast.
    """
    arms = pulls.shape[0]
    width = beta.fast_width(arms)
    ids = jax.lax.iota(jnp.uint32, width)
    words = jax.vmap(lambda arm: streams.policy_words(key, round, role, arm))(ids)
    pulls, successes = (jnp.pad(x, (0, width - arms)) for x in (pulls, successes))
    return beta.beta_from_words(words.T, 1 + successes, 1 + pulls - successes)


class Posterior(NamedTuple):
    """Beta posteriors of mean reward and mean cost: trials and successes per arm."""

    pulls: jax.Array  # i32[K]
    rewards: jax.Array  # i32[K]: successes of the reward trials
    costs: jax.Array  # i32[K], or [K, d] of d resources


def one_more_trial(before: Posterior, key: jax.Array, observation: Observation) -> Posterior:
    """Add a Bernoulli trial of the pulled arm's reward and of each of its costs, in whole ticks."""
    feedback, costs = observation.feedback, before.costs.size // before.pulls.size
    of_round = observation.view.round, Role.TRIAL
    words = [streams.policy_words(key, *of_round, block) for block in range(1 + costs // 2)]
    coins = streams.uniform_ticks(jnp.concatenate(words))
    paid = coins[1 : 1 + costs].reshape(before.costs.shape[1:]) < feedback.cost
    arm = jax.lax.iota(jnp.int32, before.pulls.shape[0]) == observation.action
    return Posterior(
        before.pulls + arm.astype(jnp.int32),
        before.rewards + (arm & (coins[0] < feedback.reward)).astype(jnp.int32),
        before.costs + (beside(arm, paid.ndim) & paid[None]).astype(jnp.int32),
    )


@pytree
class BudgetedThompson(Policy):
    """BTS: pull argmax θ^r_k/θ^c_k, with θ_k ~ Beta(1 + S_k, 1 + F_k) for reward and for cost.

    No initial pulls, no parameter. A reward r in (0, 1) is turned into a Bernoulli(r) trial, a cost
    likewise; values exactly 0 or 1 stay as they are.

    Source: IJCAI 2015, Algorithm 1; Heyden et al., KDD 2024, App. B and reference code.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.BudgetedThompson().init(jb.environments.FiniteSpec(arms=3)).pulls.tolist()
        [0, 0, 0]
    """

    plays: ClassVar[type] = FiniteSpec

    def init(self, spec: FiniteSpec) -> Posterior:
        return Posterior(*(jnp.zeros((spec.arms,), jnp.int32) for _ in range(3)))

    def update(self, state: Posterior, key: jax.Array, observation: Observation) -> Posterior:
        return one_more_trial(state, key, observation)

    def with_history(self, state: Posterior, totals: ArmStatistics) -> Posterior:
        """Add the trials and successes of these pulls, sums rounded to whole numbers."""
        sums = totals.reward, totals.cost
        rewards, costs = (x.whole + (2 * x.part >= ticks.ONE).astype(jnp.int32) for x in sums)
        return Posterior(state.pulls + totals.pulls, state.rewards + rewards, state.costs + costs)

    def draws(
        self, state: Posterior, key: jax.Array, round: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """(θ^r, θ^c), ``f32[K]`` each."""
        reward, cost = (x[: state.pulls.shape[0]] for x in self._wide_draws(state, key, round))
        return reward, cost

    def _wide_draws(
        self, state: Posterior, key: jax.Array, round: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """:meth:`draws`, as wide as :func:`posterior_draws` makes them."""
        reward = posterior_draws(key, round, Role.THETA_REWARD, state.rewards, state.pulls)
        return reward, posterior_draws(key, round, Role.THETA_COST, state.costs, state.pulls)

    def select(self, state: Posterior, key: jax.Array, view: View) -> Chosen:
        reward, cost = self._wide_draws(state, key, view.round)
        return state, largest(reward / cost, key, view, arms=state.pulls.shape[0])
