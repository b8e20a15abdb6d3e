"""Baselines of the RCUCB paper: every pair (arm, limit) as an independent virtual arm with payoff
x = (R − c(C))·1{C ≤ τ} − λ(τ)·1{C > τ} ∈ [−λ(τ), 1], played by UCB or by Thompson sampling."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics import beta_draws
from jaxbandits.core import streams, ticks
from jaxbandits.core.censored_specs import CensoredFeedback, CensoredSpec, PairAction
from jaxbandits.core.errors import bad
from jaxbandits.core.protocol import Observation, View
from jaxbandits.core.pytrees import leaf, pytree, static
from jaxbandits.core.streams import Role
from jaxbandits.core.ticks import Total
from jaxbandits.policies.base.index import evaluate
from jaxbandits.policies.censored.rcucb import PairPolicy, choose, of_limits, pair_ids

WIDTHS = ("lambda", "one")
SCALINGS = ("global", "per_arm")


class Payoffs(NamedTuple):
    """Pulls and payoffs of every pair on its own, ``[n·m]``."""

    spec: CensoredSpec
    pulls: jax.Array  # i32
    payoff: Total


class VirtualArms(NamedTuple):
    """The float32 values that the UCB score reads, ``[n·m]``."""

    log_t: jax.Array
    n: jax.Array  # T_{i,τ}
    payoff: jax.Array  # Σ x
    factor: jax.Array  # 1 + λ(τ), or 1


def played(spec: CensoredSpec, action: PairAction) -> jax.Array:
    """Which pair was played, ``bool[n·m]``."""
    arm, limit_index = pair_ids(spec)
    return (arm == action.arm) & (limit_index == action.limit)


def payoff_ticks(spec: CensoredSpec, action: PairAction, feedback: CensoredFeedback) -> jax.Array:
    """x in ticks."""
    fine = -jnp.asarray(spec.penalty_ticks)[action.limit]
    return jnp.where(feedback.exceeded, fine, spec.gain(feedback))


@pytree
class UCBReduction(PairPolicy):
    """UCB on the virtual arms: :math:`\\bar x + f(\\tau) \\sqrt{2 \\alpha \\ln t / T_{i,\\tau}}`, T its own pulls.

    Rounds 1 … n·m (m limits) play each pair once, in index order. Ties at random.

    Args:
        width: f(τ): ``"lambda"`` for 1 + λ(τ), the range of the payoff; ``"one"`` for 1. The paper does not say;
            its Theorem 1 compares with a bound in (1 + λ(τ))², hence the default.
        alpha: α > 0, default 1.

    Raises:
        InputError: before anything runs, for another ``width``.

    Source: Eq. (7) and Fig. 4 "UCB (α = 1)"; the details are in a supplement that we could not find.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.UCBReduction(width="one").width
        'one'
    """

    width: str = static(default="lambda")
    alpha: Any = leaf(default=1.0, above=0)

    def check(self, spec: CensoredSpec) -> None:
        """Checks the spec and ``width``."""
        spec.check()
        if self.width not in WIDTHS:
            raise bad("width", self.width, " or ".join(map(repr, WIDTHS)))

    def init(self, spec: CensoredSpec) -> Payoffs:
        """No pulls."""
        return Payoffs(spec, jnp.zeros((spec.pairs,), jnp.int32), ticks.zero((spec.pairs,)))

    def update(self, state: Payoffs, key: jax.Array, observation: Observation) -> Payoffs:
        """Add the payoff to its pair."""
        action = observation.action
        mine = played(state.spec, action)
        x = payoff_ticks(state.spec, action, observation.feedback)
        return Payoffs(state.spec, state.pulls + mine, ticks.add(state.payoff, jnp.where(mine, x, 0)))

    def score(self, arms: VirtualArms) -> jax.Array:
        """x̄ + f √(2α ln t / T)."""
        radius = jnp.sqrt(2 * self.alpha * arms.log_t / arms.n)
        return jnp.where(arms.n > 0, arms.payoff / arms.n + arms.factor * radius, jnp.inf)

    def scores(self, state: Payoffs, round: jax.Array) -> jax.Array:
        """The index of every pair at a round, ``f32[n·m]``."""
        spec = state.spec
        penalty = np.asarray(spec.penalties, np.float32)
        factor = {"lambda": 1 + penalty, "one": np.ones_like(penalty)}[self.width]
        log_t = jax.lax.optimization_barrier(jnp.log(round.astype(jnp.float32)))
        arms = VirtualArms(
            log_t=jnp.broadcast_to(log_t, (spec.pairs,)),
            n=state.pulls.astype(jnp.float32),
            payoff=ticks.to_float(state.payoff),
            factor=jnp.asarray(of_limits(spec, factor)),
        )
        return evaluate(self, arms)  # type: ignore[arg-type]

    def select(self, state: Payoffs, key: jax.Array, view: View) -> tuple[Payoffs, PairAction]:
        """The pair with the largest index."""
        return state, choose(self.scores(state, view.round), state.spec, key, view, fresh=state.pulls == 0)


class Trials(NamedTuple):
    """Bernoulli trials of every pair, ``i32[n·m]``."""

    spec: CensoredSpec
    pulls: jax.Array
    successes: jax.Array


@pytree
class ThompsonReduction(PairPolicy):
    """Thompson sampling on the virtual arms: θ ~ Beta(1 + successes, 1 + failures), the pair with the largest θ.

    A payoff is rescaled to y ∈ [0, 1] and turned into a Bernoulli(y) trial, exactly in ticks. No initial rounds.

    Args:
        scaling: ``"global"`` (default): y = (x + λ_max)/(1 + λ_max), λ_max the largest penalty over the limits.
            ``"per_arm"``: y = (x + λ(τ))/(1 + λ(τ)), and θ is mapped back, θ(1 + λ) − λ, before the argmax.

    Raises:
        InputError: before anything runs, for another ``scaling``.

    Source: "TS" of Fig. 4; Agrawal & Goyal (COLT 2012), which the paper lists. The scaling is not published.

    Deviations: a payoff below −λ(τ), possible where λ(τ) < c(τ), counts as −λ(τ). Draws of
    :func:`~jaxbandits._numerics.beta_draws.beta_from_words`, whose CDF error is below 4·10⁻⁵ for counts up to 3·10⁵.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.ThompsonReduction(scaling="per_arm").scaling
        'per_arm'
    """

    scaling: str = static(default="global")

    def check(self, spec: CensoredSpec) -> None:
        """Checks the spec and ``scaling``."""
        spec.check()
        if self.scaling not in SCALINGS:
            raise bad("scaling", self.scaling, " or ".join(map(repr, SCALINGS)))

    def init(self, spec: CensoredSpec) -> Trials:
        """Uniform priors."""
        none = jnp.zeros((spec.pairs,), jnp.int32)
        return Trials(spec, none, none)

    def shift_ticks(self, spec: CensoredSpec) -> np.ndarray:
        """The λ that a payoff is shifted by, in ticks, ``i32[m]``."""
        own = spec.penalty_ticks
        return {"global": np.full_like(own, own.max()), "per_arm": own}[self.scaling]

    def update(self, state: Trials, key: jax.Array, observation: Observation) -> Trials:
        """One trial: success iff u·(1 + λ) < x + λ, all in whole ticks."""
        spec, action = state.spec, observation.action
        mine = played(spec, action)
        shift = jnp.asarray(self.shift_ticks(spec))[action.limit]
        raised = payoff_ticks(spec, action, observation.feedback) + shift
        coin = streams.uniform_ticks(streams.policy_words(key, observation.view.round, Role.TRIAL)[0])
        success = ticks.times(coin, ticks.ONE + shift).whole < raised
        return Trials(spec, state.pulls + mine, state.successes + (mine & success))

    def draws(self, state: Trials, key: jax.Array, round: jax.Array) -> jax.Array:
        """θ of every pair, ``f32[n·m]``."""
        ids = jax.lax.iota(jnp.uint32, state.spec.pairs)
        words = jax.vmap(lambda pair: streams.policy_words(key, round, Role.THETA_REWARD, pair))(ids)
        return beta_draws.beta_from_words(words.T, 1 + state.successes, 1 + state.pulls - state.successes)

    def mapped(self, spec: CensoredSpec, theta: jax.Array) -> jax.Array:
        """θ as what is maximised."""
        if self.scaling == "global":
            return theta
        penalty = of_limits(spec, np.asarray(spec.penalties, np.float32))
        return theta * (1 + penalty) - penalty

    def select(self, state: Trials, key: jax.Array, view: View) -> tuple[Trials, PairAction]:
        """The pair with the largest draw."""
        theta = self.mapped(state.spec, self.draws(state, key, view.round))
        return state, choose(theta, state.spec, key, view, fresh=jnp.zeros(theta.shape, bool))
