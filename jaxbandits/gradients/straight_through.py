"""Straight-through: a biased low-variance gradient from the softened choices of one run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import arm_statistics, ticks
from jaxbandits.core.arm_statistics import Arms
from jaxbandits.core.checks import bad, positive_number
from jaxbandits.core.protocol import Chosen, Constraint, Environment, Observation, Policy, View
from jaxbandits.core.pytrees import Pytree, leaf, pytree, static
from jaxbandits.core.settings import Settings, names_of, real_parameters
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.environments.finite import FiniteArms
from jaxbandits.gradients import estimates
from jaxbandits.gradients.estimates import FloatSum, GradientEstimate, Watching
from jaxbandits.policies import RandomisedPolicy, SoftIndex
from jaxbandits.policies.base import chooses_by_logits, chooses_by_score, gumbel


class Tangents(NamedTuple):
    """A policy's state, and the derivatives of its statistics if choices were soft."""

    policy: Pytree
    choice: jax.Array  # f32[P, K]: tangents of the last soft choice
    pulls: FloatSum  # [P, K]
    reward: FloatSum  # [P, K]
    cost: FloatSum  # [P, K]


@pytree
class Softened(Watching):
    """Chooses as ``policy`` (hard choices), and also tracks the tangents of softened choices."""

    policy: Policy = leaf()
    relax: Any = leaf(above=0)
    wrt: tuple[str, ...] = static()

    def init(self, spec: FiniteSpec) -> Tangents:
        shape = (len(self.wrt), spec.arms)
        none = estimates.no_floats(shape)
        return Tangents(self.policy.init(spec), jnp.zeros(shape, jnp.float32), none, none, none)

    def update(self, state: Tangents, key: jax.Array, observation: Observation) -> Tangents:
        """The inner policy learns; softly chosen arms change by their outcome or their mean."""
        before = arm_statistics.as_floats(state.policy, observation.view.round)
        is_action = jax.lax.iota(jnp.int32, before.n.shape[0]) == observation.action

        def shown(now: jax.Array, total: jax.Array) -> jax.Array:
            mean = jnp.where(before.n > 0, total / before.n, 0.5)
            return jnp.where(is_action, ticks.ticks_to_float(now), mean)

        reward = shown(observation.feedback.reward, before.reward)
        cost = shown(observation.feedback.cost, before.cost)
        return Tangents(
            self.policy.update(state.policy, key, observation),
            state.choice,
            estimates.add_floats(state.pulls, state.choice),
            estimates.add_floats(state.reward, state.choice * reward[None]),
            estimates.add_floats(state.cost, state.choice * cost[None]),
        )

    def select(self, state: Tangents, key: jax.Array, view: View) -> Chosen:
        inner, action = self.policy.select(state.policy, key, view)
        arms, available = arm_statistics.as_floats(state.policy, view.round), view.available
        is_drawn = isinstance(self.policy, RandomisedPolicy)
        noise = gumbel(key, view.round, arms.n.shape[0]) if is_drawn else 0.0

        def soft(shares: jax.Array, arms: Arms) -> jax.Array:
            policy = estimates.moved(self.policy, self.wrt, shares)
            if isinstance(policy, RandomisedPolicy):
                return jax.nn.softmax((policy.logits(arms, available) + noise) / self.relax)
            return jax.nn.softmax(SoftIndex(policy, self.relax).logits(arms, available))

        moves = []
        for i, share in enumerate(jnp.eye(len(self.wrt), dtype=jnp.float32)):
            n, reward, cost = (x.whole[i] for x in (state.pulls, state.reward, state.cost))
            none = jnp.zeros_like(n)
            spread = None if arms.reward_spread is None else none
            tangent = Arms(none, n, reward, cost, n - reward, n - cost, spread, spread)
            moves.append(jax.jvp(soft, (0 * share, arms), (share, tangent))[1])
        return state._replace(policy=inner, choice=jnp.stack(moves)), action

    def summary(self, state: Tangents) -> dict[str, jax.Array]:
        return estimates.reported("pulls_by", estimates.add_floats(state.pulls, state.choice))


@estimates.of_numbers
def estimate(
    policy: Policy,
    environment: Environment,
    constraint: Constraint,
    *,
    wrt: str | Sequence[str],
    key: Any,
    replicates: int = 1000,
    relax: float = 1.0,
    **options: Any,
) -> GradientEstimate:
    """Straight-through gradient: **biased**, without a bound on the bias; measure it before use.

    Forward, the run is the policy's own, with hard choices. Backward, each choice is taken to be
    softmax((ℓ + G)/relax) (for an index policy softmax(score/relax)), the statistics move with the
    soft choice, and the regret moves by Σ_k ∂n_k · (loss of a pull of arm k). What is left out:
    what the other arms would have shown (their sample means stand in), and that the length of a run
    under a budget changes.

    Args:
        policy: a randomised policy, or an index policy that chooses by its score alone.
        environment: finite arms.
        constraint: a horizon or a total budget.
        wrt: names of real parameters with one value.
        key: as in :func:`~jaxbandits.simulate`, which gets the further ``options``.
        replicates: runs R ≥ 2 on every instance.
        relax: temperature of the softened choice, above 0. Small: less bias from softening, wilder
            tangents.

    Returns:
        A :class:`GradientEstimate`, gradients ``[setting, instance]``; the standard error does not
        know of the bias.

    Raises:
        InputError: another policy or environment.

    Source: Bengio, Léonard, Courville, arXiv 1308.3432; Jang, Gu, Poole, ICLR 2017.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.6, 0.4], [0.5, 0.5])
        >>> estimate = jb.gradients.straight_through.estimate(
        ...     jb.policies.SoftElim(theta=0.5), arms, jb.Horizon(20), wrt="theta", key=jax.random.key(0), replicates=9)
        >>> estimate.about["unbiased_for"]
        'nothing'
    """
    names = names_of(wrt)
    if not chooses_by_score(policy) and not chooses_by_logits(policy):
        must = "a randomised policy, or an index policy that chooses by its score alone"
        raise bad("policy", type(policy).__name__, must)
    if not isinstance(environment, FiniteArms):
        raise bad("environment", type(environment).__name__, "FiniteArms")
    estimates.check_replicates(replicates)
    relax = positive_number("relax", relax)
    paths = real_parameters(policy, names)
    settings = Settings.of(policy, environment.instances, environment.spec)
    softened = Softened(settings.policy, relax=np.full(settings.count, relax), wrt=paths)
    result, regret, rounds = estimates.play_copies(
        softened, environment, constraint, key=key, replicates=replicates, **options
    )
    mean_r, mean_c = environment.values()
    rate = np.asarray(result.best_rate)[:, None]
    # [I, K], a pull's
    loss = np.nan_to_num(rate * (mean_c if constraint.clock_name == "spent" else 1.0) - mean_r)
    moves = estimates.read(result, "pulls_by")  # [setting, instance, replicate, P, K]
    slopes = np.einsum("sirpk,ik->sirp", moves, loss)
    slopes = estimates.by_parameter(settings.policy, paths, slopes)
    about: dict[str, Any] = {"estimator": "straight_through", "unbiased_for": "nothing"}
    about |= {"relax": relax, "replicates": replicates, "rounds": rounds}
    return estimates.estimated(regret, names, slopes, **about)
