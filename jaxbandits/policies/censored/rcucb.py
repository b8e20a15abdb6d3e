"""RCUCB (Bengs, Hüllermeier: Multi-armed bandits with censored consumption of resources, Machine Learning 2023)."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import ticks
from jaxbandits.core.censored_specs import CensoredFeedback, CensoredSpec, PairAction, RevealedSpec
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.protocol import Observation, Policy, View
from jaxbandits.core.pytrees import leaf, pytree, static
from jaxbandits.core.ticks import Total
from jaxbandits.policies.base.index import evaluate
from jaxbandits.policies.base.ties import largest
from jaxbandits.policies.censored.survival import SURVIVALS, Counts, Seen, Survival


class Sums(NamedTuple):
    """What RCUCB remembers; arrays over pairs, pair p = arm p // m with limit p % m. The spec rides along (no leaf)."""

    spec: CensoredSpec
    pulls: jax.Array  # i32[n·m]: N_{i,0}, the same for all limits of an arm
    reach: jax.Array  # i32[n·m]: N_{i,τ}, rounds with limit ≥ τ
    gain: Total  # [n·m]: G_{i,τ}
    survival: Counts  # what the survival estimate counts, i32[n·m] each


class Pairs(NamedTuple):
    """The float32 values that a score may read, ``[n·m]`` each."""

    log_t: jax.Array  # ln of the round being decided
    n: jax.Array  # N_{i,τ}
    gain: jax.Array  # G_{i,τ}
    penalty: jax.Array  # λ(τ)
    tail: jax.Array  # estimate of P(C > τ)
    tail_rounds: jax.Array  # rounds that the tail's width counts


class PairPolicy(Policy):
    """A policy that plays (arm, limit) pairs."""

    plays: ClassVar[type] = CensoredSpec

    def check(self, spec: CensoredSpec) -> None:
        """Checks the spec (a live user may have written it by hand)."""
        spec.check()

    def blank_action(self, spec: CensoredSpec) -> PairAction:
        """Arm 0 with the smallest limit."""
        return PairAction(jnp.int32(0), jnp.int32(0))


def pair_ids(spec: CensoredSpec) -> tuple[np.ndarray, np.ndarray]:
    """(arm, index of the limit) of every pair, ``i32[n·m]``: constants of the program."""
    width = len(spec.limits)
    pairs = np.arange(spec.pairs, dtype=np.int32)
    return pairs // width, pairs % width


def of_limits(spec: CensoredSpec, values: np.ndarray) -> np.ndarray:
    """A value per limit ``[m]`` as one per pair ``[n·m]``."""
    return np.tile(values, spec.arms)


def seen(spec: CensoredSpec, action: PairAction, feedback: CensoredFeedback) -> Seen:
    """One round as the pairs see it."""
    arm, limit_index = pair_ids(spec)
    limits = spec.limit_ticks
    mine = arm == action.arm
    at_most = feedback.consumption <= of_limits(spec, limits)
    before = feedback.consumption <= of_limits(spec, np.append(np.int32(-1), limits[:-1]))
    open_ = ~feedback.exceeded
    return Seen(
        mine=mine,
        reach=mine & (limit_index <= action.limit),
        within=mine & at_most & open_,
        before=mine & before & open_,
        revealed=at_most,
    )


def start(spec: CensoredSpec, survival: Survival) -> Sums:
    """Empty sums."""
    shape = (spec.pairs,)
    none = jnp.zeros(shape, jnp.int32)
    return Sums(spec, none, none, ticks.zero(shape), survival.start(spec))


def record(sums: Sums, survival: Survival, action: PairAction, feedback: CensoredFeedback) -> Sums:
    """Add a round: N and G of all limits up to the round's, and the survival counts."""
    round_ = seen(sums.spec, action, feedback)
    earned = jnp.where(round_.reach & round_.within, sums.spec.gain(feedback), 0)
    return Sums(
        sums.spec,
        sums.pulls + round_.mine,
        sums.reach + round_.reach,
        ticks.add(sums.gain, earned),
        survival.record(sums.survival, round_),
    )


def as_floats(sums: Sums, survival: Survival, log_t: jax.Array) -> Pairs:
    """The exact sums as the float32 vectors that scores read."""
    spec = sums.spec
    tail = survival.tail(spec, sums.survival, sums.pulls, sums.reach)
    return Pairs(
        log_t=jnp.broadcast_to(jax.lax.optimization_barrier(log_t), (spec.pairs,)),
        n=sums.reach.astype(jnp.float32),
        gain=ticks.to_float(sums.gain),
        penalty=jnp.asarray(of_limits(spec, np.asarray(spec.penalties, np.float32))),
        tail=tail.share,
        tail_rounds=tail.rounds,
    )


def survival_named(name: str) -> Survival:
    """The survival estimate of that name.

    Raises:
        InputError: for another name.
    """
    if name not in SURVIVALS:
        raise bad("survival", name, " or ".join(map(repr, SURVIVALS)))
    return SURVIVALS[name]


def check_survival(policy: Any, spec: CensoredSpec) -> None:
    """Refuse a survival estimate that needs more than the environment tells.

    Raises:
        InputError: naming the wrapper that reveals it.
    """
    if survival_named(policy.survival).needs_revealed and not isinstance(spec, RevealedSpec):
        raise InputError(
            f"policies: {type(policy).__name__}(survival={policy.survival!r}) reads the consumption of censored "
            "rounds, which this environment hides; it must be an environment wrapped as RevealConsumption(...), or "
            "another survival"
        )


def width(pairs: Pairs, alpha: Any) -> jax.Array:
    """√(2α ln t / N_{i,τ}) + λ(τ) √(2α ln t / N), N = N_{i,0} (or N_{i,τ} with ``legal``)."""
    z = 2 * alpha * pairs.log_t
    return jnp.sqrt(z / pairs.n) + pairs.penalty * jnp.sqrt(z / pairs.tail_rounds)


def estimate(pairs: Pairs) -> jax.Array:
    """v̂ = G/N_{i,τ} − λ(τ) · (estimate of P(C > τ))."""
    return pairs.gain / pairs.n - pairs.penalty * pairs.tail


def choose(scores: jax.Array, spec: CensoredSpec, key: jax.Array, view: View, fresh: jax.Array) -> PairAction:
    """The pair with the largest score, exact ties at random; fresh pairs first, in index order."""
    m = len(spec.limits)
    if view.available is not None:
        view = view._replace(available=jnp.broadcast_to(view.available[:, None], (spec.arms, m)).reshape(-1))
    pair = largest(scores, key, view, fresh)
    return PairAction(pair // m, pair % m)


@pytree
class RCUCB(PairPolicy):
    """RCUCB: an optimistic index of every pair (arm i, limit τ) that shares what limits ≥ τ have seen.

    .. math:: \\frac{G_{i,\\tau}}{N_{i,\\tau}} - \\lambda(\\tau) \\hat S_{i,\\tau}
        + \\sqrt{\\frac{2 \\alpha \\ln t}{N_{i,\\tau}}} + \\lambda(\\tau) \\sqrt{\\frac{2 \\alpha \\ln t}{N_{i,0}}}

    N_{i,τ} counts rounds of arm i with limit ≥ τ, G_{i,τ} sums (R − c(C))·1{C ≤ τ} over them, N_{i,0} counts all its
    rounds. Rounds 1 … n: every arm once, with the largest limit. Ties at random.

    Args:
        survival: the estimate Ŝ of P(C > τ). After a censored round the printed one, S/N_{i,0}, is not known for
            larger limits:

            * ``"literal"``: takes the true consumption all the same, as printed. Plays only in
              :class:`~jaxbandits.environments.RevealConsumption`.
            * ``"legal"``: counts over rounds with limit ≥ τ only, with N_{i,τ} in both widths.
            * ``"infinite"``: counts a censored round as C = ∞.
            * ``"kaplan_meier"``: the product-limit estimate from all rounds, width as literal (ours).
        alpha: α > 0, default 1 as in the paper's experiments (its theory needs α > 1).

    Raises:
        InputError: before anything runs, for another ``survival`` or for ``"literal"`` where consumption is hidden.

    Source: Eqs. (8)–(12).

    Deviations: ties, "broken arbitrarily", are broken at random; everything but ``literal`` is a legal reading of (9).

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> result = jb.simulate(jb.policies.RCUCB("legal"), jb.environments.g1(), jb.Horizon(50),
        ...                      key=jax.random.key(0), marks=1)
        >>> result.settings, result.count("censored").shape
        (('RCUCB(survival=legal, alpha=1)',), (1, 3, 1, 1))
    """

    survival: str = static()
    alpha: Any = leaf(default=1.0, above=0)

    def check(self, spec: CensoredSpec) -> None:
        """Checks the spec, the name of the estimate, and that the environment tells what it needs."""
        spec.check()
        check_survival(self, spec)

    def init(self, spec: CensoredSpec) -> Sums:
        """Empty sums."""
        check_survival(self, spec)
        return start(spec, SURVIVALS[self.survival])

    def update(self, state: Sums, key: jax.Array, observation: Observation) -> Sums:
        """Add the round to every limit that it tells of."""
        return record(state, SURVIVALS[self.survival], observation.action, observation.feedback)

    def score(self, pairs: Pairs) -> jax.Array:
        """The index; +∞ where no round had a limit ≥ τ."""
        return jnp.where(pairs.n > 0, estimate(pairs) + width(pairs, self.alpha), jnp.inf)

    def scores(self, state: Sums, round: jax.Array) -> jax.Array:
        """The index of every pair at a round, ``f32[n·m]``."""
        pairs = as_floats(state, SURVIVALS[self.survival], jnp.log(round.astype(jnp.float32)))
        return evaluate(self, pairs)  # type: ignore[arg-type]

    def select(self, state: Sums, key: jax.Array, view: View) -> tuple[Sums, PairAction]:
        """The pair with the largest index."""
        spec = state.spec
        _, limit_index = pair_ids(spec)
        fresh = (state.pulls == 0) & (limit_index == len(spec.limits) - 1)
        return state, choose(self.scores(state, view.round), spec, key, view, fresh)
