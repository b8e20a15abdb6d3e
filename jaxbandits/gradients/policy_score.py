"""The score function of a randomised policy: how its regret depends on its own parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import streams
from jaxbandits.core.checks import bad, whole_number
from jaxbandits.core.protocol import Chosen, Constraint, Environment, Policy, View
from jaxbandits.core.pytrees import Pytree, leaf, pytree, static
from jaxbandits.core.settings import Settings, names_of, real_parameters
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.gradients import estimates
from jaxbandits.gradients.estimates import FloatSum, GradientEstimate, Watching
from jaxbandits.policies.base import chooses_by_logits

_RUN = 33  # the role that tells apart independent runs of one policy in one world


class Watched(NamedTuple):
    """A policy's state, and the score of its actions."""

    policy: Pytree
    score: FloatSum  # [P], by a share of each parameter


@pytree
class ScoredPolicy(Watching):
    """Chooses as ``policy``, with separate draws, and sums ∂ ln p(action) by its parameters."""

    policy: Policy = leaf()
    run: Any = leaf(integer=True)
    wrt: tuple[str, ...] = static()

    def init(self, spec: FiniteSpec) -> Watched:
        return Watched(self.policy.init(spec), estimates.no_floats((len(self.wrt),)))

    def own_key(self, key: jax.Array) -> jax.Array:
        return streams.at(key, self.run, jnp.uint32(_RUN << 24))

    def select(self, state: Watched, key: jax.Array, view: View) -> Chosen:
        inner, action = self.policy.select(state.policy, self.own_key(key), view)
        score = slopes(self.policy, self.wrt, state.policy, view, action)
        return Watched(inner, estimates.add_floats(state.score, score)), action

    def summary(self, state: Watched) -> dict[str, jax.Array]:
        return self.policy.summary(state.policy) | estimates.reported("score", state.score)


def slopes(
    policy: Policy, paths: Sequence[str], state: Pytree, view: View, action: jax.Array
) -> jax.Array:
    """∂ ln p(action) by a share of each parameter, ``f32[P]``."""

    def log_probability(shares: jax.Array) -> jax.Array:
        there: Any = estimates.moved(policy, paths, shares)
        return there.log_probabilities(state, view).at[action].get(mode="clip")

    return jax.jacfwd(log_probability)(jnp.zeros(len(paths), jnp.float32))


@estimates.of_numbers
def estimate(
    policy: Policy,
    environment: Environment,
    constraint: Constraint,
    *,
    wrt: str | Sequence[str],
    key: Any,
    replicates: int = 1000,
    baseline: str = "self_play",
    runs: int = 2,
    **options: Any,
) -> GradientEstimate:
    """Unbiased gradient of a randomised policy's regret with respect to its parameters (REINFORCE).

    .. math:: \\nabla_\\theta E[f] = E\\Big[(f - b) \\sum_{t \\le T} \\nabla_\\theta \\ln p_\\theta(a_t | h_t)\\Big],

    f the pseudo-regret, T the last round (under a budget a stopping time, so the sum ends with the
    run), b a baseline.

    Args:
        policy: a randomised policy such as ``SoftElim`` or ``SoftIndex(OmegaUCB(),
            temperature=0.1)``; leaves scalar or ``[setting]``.
        environment: any that the policy supports.
        constraint: any.
        wrt: names of parameters; of a nested policy ``policy.rho``, or ``rho`` where that is
            unambiguous.
        key: as in :func:`~jaxbandits.simulate`, which gets the further ``options``.
        replicates: worlds R ≥ 2 on every instance.
        baseline: ``"self_play"``: in every world the policy plays ``runs`` times with draws of its
            own, and a run's baseline is the mean regret of the others there (as in Boutilier et
            al.); ``"leave_one_out"``: the mean regret of the other worlds; ``"none"``.
        runs: independent runs of the policy in each world, at least 2 for ``"self_play"``.

    Returns:
        A :class:`GradientEstimate`; gradients ``[setting, instance]``. The standard error counts
        worlds.

    Raises:
        InputError: an argmax policy, whose choices have no density in its parameters.

    Source: Williams (1992); Boutilier, Hsu, Kveton, Mladenov, Szepesvari, Zaheer, NeurIPS 2020.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.6, 0.4], [0.5, 0.5])
        >>> estimate = jb.gradients.policy_score.estimate(
        ...     jb.policies.SoftElim(theta=0.5), arms, jb.Horizon(20), wrt="theta", key=jax.random.key(0), replicates=9)
        >>> estimate.gradient["theta"].shape
        (1, 1)
    """
    names = names_of(wrt)
    if not chooses_by_logits(policy):
        must = "a randomised policy, such as SoftElim or SoftIndex(policy, temperature)"
        raise bad("policy", type(policy).__name__, must)
    estimates.check_replicates(replicates, baseline)
    whole_number("runs", runs, 2 if baseline == "self_play" else 1)
    paths = real_parameters(policy, names)
    regret, score, rounds = play_runs(
        policy, environment, constraint, paths, key, replicates, runs, **options
    )
    if baseline == "self_play":  # the other runs in the same world
        advantage = estimates.centred(regret, "leave_one_out")
    else:
        advantage = estimates.centred(regret, baseline, axis=2)
    samples = (advantage[..., None] * score).mean(axis=3)  # [setting, instance, replicate, P]
    about: dict[str, Any] = {"estimator": "policy_score", "unbiased_for": "expected regret"}
    about |= {"replicates": replicates, "baseline": baseline, "runs": runs, "rounds": rounds}
    return estimates.estimated(regret.mean(axis=3), names, samples, **about)


def play_runs(
    policy: Policy,
    environment: Environment,
    constraint: Constraint,
    paths: Sequence[str],
    key: Any,
    replicates: int,
    runs: int,
    **options: Any,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Regret ``[setting, instance, replicate, run]``, score ``[…, run, parameter]``, and rounds.

    Raises:
        InputError: a score that is not finite.
    """
    settings = Settings.of(policy, environment.instances, environment.spec)
    copies = jax.tree.map(lambda x: np.repeat(x, runs, axis=0), settings.policy)
    scored = ScoredPolicy(copies, run=np.tile(np.arange(runs), settings.count), wrt=tuple(paths))
    result, regret, rounds = estimates.play_copies(
        scored, environment, constraint, key=key, replicates=replicates, **options
    )

    def by_run(x: np.ndarray) -> np.ndarray:
        return np.moveaxis(x.reshape(settings.count, runs, *x.shape[1:]), 1, 3)

    score = by_run(estimates.read(result, "score"))
    return by_run(regret), estimates.by_parameter(settings.policy, paths, score), rounds
