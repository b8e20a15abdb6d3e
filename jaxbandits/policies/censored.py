"""Policies for censored arms: RCUCB, z-RCUCB, survival estimates, reductions to ordinary arms.

Arrays are over pairs of an arm and a limit, ``[n·m]``; counts are int32 and exact.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics import beta
from jaxbandits._numerics.arrays import ArrayLike, one_of
from jaxbandits.core import streams, ticks
from jaxbandits.core.checks import InputError, bad, whole_number
from jaxbandits.core.protocol import Chosen, Observation, Policy, Status, View
from jaxbandits.core.pytrees import leaf, pytree, select_tree, static
from jaxbandits.core.specs import CensoredFeedback, CensoredSpec, PairAction, RevealedSpec
from jaxbandits.core.streams import Role
from jaxbandits.core.ticks import Total
from jaxbandits.policies.base import evaluate_arms, largest

# --- Estimates of the probability P(C > τ) that a limit is exceeded
#
# After a censored round (C > τ_t) nothing is known of C > τ for τ > τ_t, which the printed estimate
# (9) of the RCUCB paper needs. Each class here is one way out.

Counts = tuple[jax.Array, ...]


class PairRound(NamedTuple):
    """What a round says about each pair: ``bool[n·m]``."""

    pulled: jax.Array  # pairs of the arm that was pulled
    reach: jax.Array  # … whose limit τ is at most the round's
    within: jax.Array  # C ≤ τ was seen (False everywhere after a censored round)
    before: jax.Array  # C ≤ (the next smaller limit) was seen
    revealed: jax.Array  # C ≤ τ in truth; meaningful only where consumption is revealed


class Survival:
    """The estimate S/N_{i,0}, or S/N_{i,τ} with ``by_reach``; S: rounds with ``beyond``."""

    counts: ClassVar[int] = 1

    def __init__(self, beyond: Any = None, by_reach: bool = False, needs_revealed: bool = False):
        self.beyond, self.by_reach, self.needs_revealed = beyond, by_reach, needs_revealed

    def record(self, counts: Counts, round_: PairRound) -> Counts:
        """The counts after one more round."""
        return (counts[0] + self.beyond(round_),)

    def tail(self, sums: Sums) -> tuple[jax.Array, jax.Array]:
        """(estimate of P(C > τ), undefined after 0 rounds; rounds behind its width), ``f32[n·m]``."""
        n = (sums.reach if self.by_reach else sums.pulls).astype(jnp.float32)
        return sums.survival[0].astype(jnp.float32) / jnp.maximum(n, 1), n


class KaplanMeier(Survival):
    """The product-limit estimate Π (1 − events/at risk) over cells between limits (ours, legal).

    Rounds are censored exactly at limits, so counts per cell (at risk, events) give what the
    product over single consumptions gives. The width is literal's, with N_{i,0}; no theory covers
    it.
    """

    counts: ClassVar[int] = 2

    def record(self, counts: Counts, round_: PairRound) -> Counts:
        """A round is at risk in each cell up to its limit that its consumption reached."""
        # PairRound.within is False after a censored round: it counts as at risk up to its limit,
        # and as no event.
        risk = round_.reach & ~round_.before
        return (counts[0] + risk, counts[1] + (risk & round_.within))

    def tail(self, sums: Sums) -> tuple[jax.Array, jax.Array]:
        risk, events = (x.reshape(sums.spec.arms, -1) for x in sums.survival)
        # A cell that no round reached says nothing, and leaves the product as it is.
        share = (risk - events).astype(jnp.float32) / jnp.maximum(risk, 1).astype(jnp.float32)
        stays = jnp.where(risk > 0, share, 1.0)
        columns = [stays[:, 0]]
        # In this order, so that no compilation multiplies in another
        for j in range(1, stays.shape[1]):
            columns.append(columns[-1] * stays[:, j])
        return jnp.stack(columns, axis=1).reshape(-1), sums.pulls.astype(jnp.float32)


SURVIVALS: dict[str, Survival] = {
    # C > τ of every pull of the arm, censored or not, as printed: needs more than the feedback (1)
    "literal": Survival(lambda round_: round_.pulled & ~round_.revealed, needs_revealed=True),
    # over the rounds with limit ≥ τ only, in which 1{C > τ} is known; its width counts those rounds
    "legal": Survival(lambda round_: round_.reach & ~round_.within, by_reach=True),
    # as literal, a censored round counting as C = ∞: legal, slightly biased upwards
    "infinite": Survival(lambda round_: round_.pulled & ~round_.within),
    "kaplan_meier": KaplanMeier(),
}


# --- RCUCB (Bengs, Hüllermeier, Machine Learning 2023)


class Sums(NamedTuple):
    """RCUCB's state: arrays over pairs p (arm p // m, limit p % m); ``spec`` is no leaf."""

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
    cell: Any = None  # of z-RCUCB: τ − down(τ), in user units


class PairPolicy(Policy):
    """A policy that chooses (arm, limit) pairs."""

    plays: ClassVar[type] = CensoredSpec

    def check(self, spec: CensoredSpec) -> None:
        spec.check()

    def blank_action(self, spec: CensoredSpec) -> PairAction:
        return PairAction(jnp.int32(0), jnp.int32(0))


def pair_ids(spec: CensoredSpec) -> tuple[np.ndarray, np.ndarray]:
    """(arm, index of the limit) of every pair, ``i32[n·m]``: constants of the program."""
    width = len(spec.limits)
    pairs = np.arange(spec.pairs, dtype=np.int32)
    return pairs // width, pairs % width


def of_limits(spec: CensoredSpec, values: np.ndarray) -> np.ndarray:
    """A value per limit ``[m]`` as one per pair ``[n·m]``."""
    return np.tile(values, spec.arms)


def pair_round(spec: CensoredSpec, action: PairAction, feedback: CensoredFeedback) -> PairRound:
    """What the round says about each pair, see :class:`PairRound`."""
    arm, limit_index = pair_ids(spec)
    limits = spec.limit_ticks
    pulled = arm == action.arm
    at_most = feedback.consumption <= of_limits(spec, limits)
    before = feedback.consumption <= of_limits(spec, np.append(np.int32(-1), limits[:-1]))
    open_ = ~feedback.exceeded
    return PairRound(
        pulled=pulled,
        reach=pulled & (limit_index <= action.limit),
        within=pulled & at_most & open_,
        before=pulled & before & open_,
        revealed=at_most,
    )


def empty_sums(spec: CensoredSpec, survival: Survival) -> Sums:
    """The sums before the first round, all 0."""
    none = jnp.zeros((spec.pairs,), jnp.int32)
    return Sums(spec, none, none, ticks.zero(none.shape), (none,) * survival.counts)


def add_round(
    sums: Sums, survival: Survival, action: PairAction, feedback: CensoredFeedback
) -> Sums:
    """Add a round: N and G of all limits up to the round's, and the survival counts."""
    round_ = pair_round(sums.spec, action, feedback)
    earned = jnp.where(round_.reach & round_.within, sums.spec.gain(feedback), 0)
    return Sums(
        sums.spec,
        sums.pulls + round_.pulled,
        sums.reach + round_.reach,
        ticks.add(sums.gain, earned),
        survival.record(sums.survival, round_),
    )


def pairs_of(sums: Sums, survival: Survival, log_t: jax.Array) -> Pairs:
    """The exact sums as the float32 vectors that scores read."""
    spec = sums.spec
    tail, rounds = survival.tail(sums)
    return Pairs(
        log_t=jnp.broadcast_to(jax.lax.optimization_barrier(log_t), (spec.pairs,)),
        n=sums.reach.astype(jnp.float32),
        gain=ticks.to_float(sums.gain),
        penalty=jnp.asarray(of_limits(spec, np.asarray(spec.penalties, np.float32))),
        tail=tail,
        tail_rounds=rounds,
    )


def survival_of(policy: Any, spec: CensoredSpec) -> Survival:
    """The policy's survival estimate, if the environment reports what it needs."""
    one_of("survival", policy.survival, SURVIVALS)
    if SURVIVALS[policy.survival].needs_revealed and not isinstance(spec, RevealedSpec):
        reads = f"{type(policy).__name__}(survival={policy.survival!r}) reads the consumption of censored rounds"
        must = "it must be an environment wrapped as RevealConsumption(...), or another survival"
        raise InputError(f"policies: {reads}, which this environment hides; {must}")
    return SURVIVALS[policy.survival]


def pair_width(pairs: Pairs, alpha: Any) -> jax.Array:
    """√(2α ln t / N_{i,τ}) + λ(τ) √(2α ln t / N), N = N_{i,0} (or N_{i,τ} with ``legal``)."""
    z = 2 * alpha * pairs.log_t
    return jnp.sqrt(z / pairs.n) + pairs.penalty * jnp.sqrt(z / pairs.tail_rounds)


def pair_value(pairs: Pairs) -> jax.Array:
    """v̂ = G/N_{i,τ} − λ(τ) · (estimate of P(C > τ))."""
    return pairs.gain / pairs.n - pairs.penalty * pairs.tail


def choose(
    scores: jax.Array, spec: CensoredSpec, key: jax.Array, view: View, fresh: jax.Array
) -> PairAction:
    """The pair with the largest score, exact ties at random; fresh pairs first, in index order."""
    pair = largest(scores, key, view._replace(available=_exists(spec, view.available)), fresh)
    return _action(spec, pair)


def _exists(spec: CensoredSpec, available: jax.Array | None) -> jax.Array:
    """Which pairs belong to an available arm, ``bool[n·m]``; all by default."""
    present = jnp.ones((spec.arms,), bool) if available is None else available
    return jnp.broadcast_to(present[:, None], (spec.arms, len(spec.limits))).reshape(-1)


def _action(spec: CensoredSpec, pair: jax.Array) -> PairAction:
    return PairAction(pair // len(spec.limits), pair % len(spec.limits))


@pytree
class RCUCB(PairPolicy):
    """RCUCB: an optimistic index of each pair (arm i, limit τ), which uses rounds with limits ≥ τ.

    .. math:: \\frac{G_{i,\\tau}}{N_{i,\\tau}} - \\lambda(\\tau) \\hat S_{i,\\tau}
        + \\sqrt{\\frac{2 \\alpha \\ln t}{N_{i,\\tau}}} + \\lambda(\\tau) \\sqrt{\\frac{2 \\alpha
        \\ln t}{N_{i,0}}}

    N_{i,τ} counts rounds of arm i with limit ≥ τ, G_{i,τ} sums (R − c(C))·1{C ≤ τ} over them,
    N_{i,0} counts all its rounds. Rounds 1 … n: every arm once, with the largest limit. Ties at
    random.

    Args:
        survival: the estimate Ŝ of P(C > τ). After a censored round the printed one, S/N_{i,0}, is
            not known for larger limits:

            * ``"literal"``: takes the true consumption all the same, as printed. Plays only in
              :class:`~jaxbandits.environments.RevealConsumption`.
            * ``"legal"``: counts over rounds with limit ≥ τ only, with N_{i,τ} in both widths.
            * ``"infinite"``: counts a censored round as C = ∞.
            * ``"kaplan_meier"``: the product-limit estimate from all rounds, width as literal
              (ours).
        alpha: α > 0, default 1 as in the paper's experiments (its theory needs α > 1).

    Source: Eqs. (8)–(12).

    Deviations: ties, "broken arbitrarily", are broken at random; everything but ``literal`` is a
    legal reading of (9).

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> result = jb.simulate(jb.policies.RCUCB("legal"), jb.environments.g1(), jb.Horizon(50),
        ...                      key=jax.random.key(0), marks=1)
        >>> result.settings, result.count("censored").shape
        (('RCUCB(survival=legal, alpha=1)',), (1, 3, 1, 1))
    """

    survival: str = static()
    alpha: ArrayLike = leaf(default=1.0, above=0)

    def check(self, spec: CensoredSpec) -> None:
        super().check(spec)
        survival_of(self, spec)

    def init(self, spec: CensoredSpec) -> Sums:
        return empty_sums(spec, survival_of(self, spec))

    def update(self, state: Sums, key: jax.Array, observation: Observation) -> Sums:
        return add_round(state, SURVIVALS[self.survival], observation.action, observation.feedback)

    def score(self, pairs: Pairs) -> jax.Array:
        """The index; +∞ where no round had a limit ≥ τ."""
        return jnp.where(pairs.n > 0, pair_value(pairs) + pair_width(pairs, self.alpha), jnp.inf)

    def scores(self, state: Sums, round: jax.Array) -> jax.Array:
        """The index of every pair at a round, ``f32[n·m]``."""
        pairs = pairs_of(state, SURVIVALS[self.survival], jnp.log(round.astype(jnp.float32)))
        return evaluate_arms(self, pairs)  # type: ignore[arg-type]

    def select(self, state: Sums, key: jax.Array, view: View) -> Chosen:
        spec = state.spec
        _, limit_index = pair_ids(spec)
        fresh = (state.pulls == 0) & (limit_index == len(spec.limits) - 1)
        return state, choose(self.scores(state, view.round), spec, key, view, fresh)


# --- Baselines of the RCUCB paper: every pair (arm, limit) as an independent virtual arm with payoff
# x = (R − c(C))·1{C ≤ τ} − λ(τ)·1{C > τ} ∈ [−λ(τ), 1], played by UCB or by Thompson sampling


class Trials(NamedTuple):
    """Pulls and payoffs of each pair by itself, ``[n·m]``."""

    spec: CensoredSpec
    pulls: jax.Array  # i32
    brought: Any  # a Total of payoffs, or i32 successes of Bernoulli trials


class VirtualArms(NamedTuple):
    """The float32 values that the UCB score reads, ``[n·m]``."""

    log_t: jax.Array
    n: jax.Array  # T_{i,τ}
    payoff: jax.Array  # Σ x
    factor: jax.Array  # 1 + λ(τ), or 1


def pair_mask(spec: CensoredSpec, action: PairAction) -> jax.Array:
    """Which pair was chosen, ``bool[n·m]``."""
    arm, limit_index = pair_ids(spec)
    return (arm == action.arm) & (limit_index == action.limit)


def payoff_ticks(spec: CensoredSpec, action: PairAction, feedback: CensoredFeedback) -> jax.Array:
    """The payoff x of a round, in ticks."""
    fine = -jnp.asarray(spec.penalty_ticks)[action.limit]
    return jnp.where(feedback.exceeded, fine, spec.gain(feedback))


@pytree
class UCBReduction(PairPolicy):
    """UCB on virtual arms: :math:`\\bar x + f(\\tau) \\sqrt{2 \\alpha \\ln t / T_{i,\\tau}}`.

    Rounds 1 … n·m (m limits) play each pair once, in index order. Ties at random. T is the
    pair's own number of pulls.

    Args:
        width: f(τ): ``"lambda"`` for 1 + λ(τ), the range of the payoff; ``"one"`` for 1. The paper
            does not say; its Theorem 1 compares with a bound in (1 + λ(τ))², hence the default.
        alpha: α > 0, default 1.

    Source: Eq. (7) and Fig. 4 "UCB (α = 1)"; the details are in a supplement that we could not
    find.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.UCBReduction(width="one").width
        'one'
    """

    width: str = static(default="lambda")
    alpha: ArrayLike = leaf(default=1.0, above=0)

    def check(self, spec: CensoredSpec) -> None:
        super().check(spec)
        one_of("width", self.width, ("lambda", "one"))

    def init(self, spec: CensoredSpec) -> Trials:
        return Trials(spec, jnp.zeros((spec.pairs,), jnp.int32), ticks.zero((spec.pairs,)))

    def update(self, state: Trials, key: jax.Array, observation: Observation) -> Trials:
        mask = pair_mask(state.spec, observation.action)
        x = payoff_ticks(state.spec, observation.action, observation.feedback)
        payoff = ticks.add(state.brought, jnp.where(mask, x, 0))
        return Trials(state.spec, state.pulls + mask, payoff)

    def score(self, arms: VirtualArms) -> jax.Array:
        radius = jnp.sqrt(2 * self.alpha * arms.log_t / arms.n)
        return jnp.where(arms.n > 0, arms.payoff / arms.n + arms.factor * radius, jnp.inf)

    def scores(self, state: Trials, round: jax.Array) -> jax.Array:
        """The index of every pair at a round, ``f32[n·m]``."""
        spec = state.spec
        penalty = np.asarray(spec.penalties, np.float32)
        factor = {"lambda": 1 + penalty, "one": np.ones_like(penalty)}[self.width]
        log_t = jax.lax.optimization_barrier(jnp.log(round.astype(jnp.float32)))
        arms = VirtualArms(
            log_t=jnp.broadcast_to(log_t, (spec.pairs,)),
            n=state.pulls.astype(jnp.float32),
            payoff=ticks.to_float(state.brought),
            factor=jnp.asarray(of_limits(spec, factor)),
        )
        return evaluate_arms(self, arms)  # type: ignore[arg-type]

    def select(self, state: Trials, key: jax.Array, view: View) -> Chosen:
        scores = self.scores(state, view.round)
        return state, choose(scores, state.spec, key, view, fresh=state.pulls == 0)


@pytree
class ThompsonReduction(PairPolicy):
    """Thompson sampling on virtual arms: the largest θ ~ Beta(1 + successes, 1 + failures).

    A payoff is rescaled to y ∈ [0, 1] and turned into a Bernoulli(y) trial, exactly in ticks. No
    initial rounds.

    Args:
        scaling: ``"global"`` (default): y = (x + λ_max)/(1 + λ_max), λ_max the largest penalty over
            the limits. ``"per_arm"``: y = (x + λ(τ))/(1 + λ(τ)), and θ is mapped back, θ(1 + λ) −
            λ, before the argmax.

    Source: "TS" of Fig. 4; Agrawal & Goyal (COLT 2012), which the paper lists. The scaling is not
    published.

    Deviations: a payoff below −λ(τ), possible where λ(τ) < c(τ), counts as −λ(τ). Draws of
    :func:`~jaxbandits._numerics.beta.beta_from_words`, whose CDF error is below 4·10⁻⁵ for counts
    up to 3·10⁵.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.ThompsonReduction(scaling="per_arm").scaling
        'per_arm'
    """

    scaling: str = static(default="global")

    def check(self, spec: CensoredSpec) -> None:
        super().check(spec)
        one_of("scaling", self.scaling, ("global", "per_arm"))

    def init(self, spec: CensoredSpec) -> Trials:
        none = jnp.zeros((spec.pairs,), jnp.int32)
        return Trials(spec, none, none)

    def update(self, state: Trials, key: jax.Array, observation: Observation) -> Trials:
        """One trial: success iff u·(1 + λ) < x + λ, all in whole ticks."""
        spec, action = state.spec, observation.action
        mask = pair_mask(spec, action)
        penalty = spec.penalty_ticks
        all_alike = np.full_like(penalty, penalty.max())
        shift = jnp.asarray(all_alike if self.scaling == "global" else penalty)[action.limit]
        raised = payoff_ticks(spec, action, observation.feedback) + shift
        word = streams.policy_words(key, observation.view.round, Role.TRIAL)[0]
        success = ticks.times(streams.uniform_ticks(word), ticks.ONE + shift).whole < raised
        return Trials(spec, state.pulls + mask, state.brought + (mask & success))

    def draws(self, state: Trials, key: jax.Array, round: jax.Array) -> jax.Array:
        """θ of every pair, ``f32[n·m]``."""
        role, ids = Role.THETA_REWARD, jax.lax.iota(jnp.uint32, state.spec.pairs)
        words = jax.vmap(lambda pair: streams.policy_words(key, round, role, pair))(ids)
        return beta.beta_from_words(words.T, 1 + state.brought, 1 + state.pulls - state.brought)

    def select(self, state: Trials, key: jax.Array, view: View) -> Chosen:
        theta, spec = self.draws(state, key, view.round), state.spec
        if self.scaling == "per_arm":
            penalty = of_limits(spec, np.asarray(spec.penalties, np.float32))
            theta = theta * (1 + penalty) - penalty
        return state, choose(theta, spec, key, view, fresh=jnp.zeros(theta.shape, bool))


# --- z-RCUCB: RCUCB for limits anywhere in (0, τ_max], by refining a grid of limits per arm (§4 of the RCUCB paper)


class Zoom(NamedTuple):
    """z-RCUCB's state: sums at all points of the finest grid, and each arm's cell widths."""

    sums: Sums
    # i32[n·m]: width, in finest cells, of the cell of the arm's grid that the point lies in
    cell: jax.Array
    full: jax.Array  # bool[]: a cell of the finest grid should have been split


def fine_limits(depth: int, m: int = 2, tau_max: float = 1.0) -> np.ndarray:
    """The finest grid of z-RCUCB, for an environment: m^depth equally spaced limits in (0, τ_max].

    Example:
        >>> fine_limits(2).tolist()
        [0.25, 0.5, 0.75, 1.0]
    """
    cells = m**depth
    return np.arange(1, cells + 1) / cells * tau_max


@pytree
class ZRCUCB(PairPolicy):
    """z-RCUCB: each arm starts with the limit τ_max and splits well-estimated cells of its grid.

    .. math:: \\hat v_{i,\\tau} + c_{i,\\tau} + (\\tau - \\mathrm{down}_i(\\tau)), \\qquad
        c_{i,\\tau} = \\sqrt{\\frac{2 \\alpha L}{N_{i,\\tau}}} + \\lambda(\\tau) \\sqrt{\\frac{2
        \\alpha L}{N_{i,0}}}, \\quad L = \\ln \\frac{n T^2}{\\delta},

    down_i(τ) the next smaller point of arm i's grid, or 0; c = ∞ for an arm never pulled. After a
    pull of arm i every point with τ − down(τ) ≥ c gets its m − 1 points between, all at once (no
    cascade). The environment's limits are the finest grid, m^depth equally spaced ones
    (:func:`fine_limits`): N, G and the survival counts are kept at all of them, so new points have
    the arm's whole history, exactly. If a cell of the finest grid should be split the lane ends
    with status CAPACITY; with more limits it replays the same prefix.

    From round T + 1 on the recommended pair is pulled: that of the finest cell, on a tie of largest
    v̂ (lowest arm and limit if tied still). So with ``Horizon(T + 1)`` the regret of the last round
    is the simple regret.

    Args:
        survival: see :class:`~jaxbandits.policies.RCUCB`.
        horizon: T ≥ 1.
        alpha: α > 1, default 1.01 (not published).
        delta: δ in (0, 1), default 1/T.
        m: a split makes m cells, m ≥ 2, default 2 (not published).

    Source: §4, Algorithm 1, Eqs. (13)–(14).

    Deviations: down(τ) is strictly smaller (printed with ≤, which would be τ itself).

    Example:
        >>> import jaxbandits as jb
        >>> from jaxbandits.policies import ZRCUCB, fine_limits
        >>> policy = ZRCUCB("legal", horizon=1000)
        >>> state = policy.init(jb.environments.g1(limits=fine_limits(5)).spec)
        >>> state.cell.shape, int(state.cell[0])
        ((320,), 32)
    """

    survival: str = static()
    horizon: ArrayLike = leaf(at_least=1, integer=True)
    alpha: ArrayLike = leaf(default=1.01, above=1)
    delta: ArrayLike = leaf(default=None, above=0, at_most=1)
    m: int = static(default=2)

    def check(self, spec: CensoredSpec) -> None:
        super().check(spec)
        survival_of(self, spec)
        whole_number("m", self.m, 2)
        limits, cells = np.asarray(spec.limits), len(spec.limits)
        power = cells
        while power % self.m == 0:
            power //= self.m
        even = np.arange(1, cells + 1) / cells * spec.tau_max
        if power != 1 or not np.allclose(limits, even, rtol=1e-9, atol=0):
            must = f"{self.m}**depth equally spaced ones up to tau_max (fine_limits)"
            raise bad("limits", spec.limits, must)

    def init(self, spec: CensoredSpec) -> Zoom:
        cells = jnp.full((spec.pairs,), len(spec.limits), jnp.int32)
        return Zoom(empty_sums(spec, survival_of(self, spec)), cells, jnp.bool_(False))

    def pairs(self, state: Zoom, available: jax.Array | None = None) -> Pairs:
        """Values at every point of the finest grid, used or not; n: available arms."""
        spec = state.sums.spec
        arms = jnp.int32(spec.arms) if available is None else jnp.sum(available, dtype=jnp.int32)
        horizon = jnp.asarray(self.horizon, jnp.float32)
        delta = 1 / horizon if self.delta is None else self.delta
        log = jnp.log(arms.astype(jnp.float32)) + 2 * jnp.log(horizon) - jnp.log(delta)
        step = np.float32(spec.tau_max / len(spec.limits))
        pairs = pairs_of(state.sums, SURVIVALS[self.survival], log)
        return pairs._replace(cell=state.cell.astype(jnp.float32) * step)

    def update(self, state: Zoom, key: jax.Array, observation: Observation) -> Zoom:
        """Add the round, then refine the grid of its arm."""
        seen = observation.action, observation.feedback
        sums = add_round(state.sums, SURVIVALS[self.survival], *seen)
        return self.refined(state._replace(sums=sums), observation)

    def refined(self, state: Zoom, observation: Observation) -> Zoom:
        """The grid of the round's arm, refined with the current estimates."""
        action, spec, sums = observation.action, state.sums.spec, state.sums
        row = state.cell.reshape(spec.arms, -1)[action.arm]
        limit_index = jnp.arange(len(spec.limits), dtype=jnp.int32)
        points = self.pairs(state, observation.view.available)
        values = jax.tree.map(lambda x: x.reshape(spec.arms, -1)[action.arm], points)
        wide = pair_width(jax.lax.optimization_barrier(values), self.alpha)
        due = jnp.where(values.n > 0, values.cell >= wide, False)
        upper = (limit_index // row + 1) * row - 1  # the grid point that stands for the cell
        # All cells at once, by what was known before: a cell that was just made is not split again
        # (no cascade).
        split = due[upper]
        finer = jnp.where(split & (row > 1), row // self.m, row)
        arm, _ = pair_ids(spec)
        cell = jnp.where(arm == action.arm, jnp.tile(finer, spec.arms), state.cell)
        return Zoom(sums, cell, state.full | jnp.any(split & (row == 1)))

    def score(self, pairs: Pairs) -> jax.Array:
        """The index (13), +∞ for an arm never pulled."""
        index = pair_value(pairs) + pair_width(pairs, self.alpha) + pairs.cell
        return jnp.where(pairs.n > 0, index, jnp.inf)

    def scores(self, state: Zoom, available: jax.Array | None = None) -> jax.Array:
        """Index of every point, ``f32[n·m]``; −∞ off the arm's grid and for absent arms."""
        scores = evaluate_arms(self, self.pairs(state, available))  # type: ignore[arg-type]
        exists = _exists(state.sums.spec, available)
        return jnp.where(on_grid(state) & exists, scores, -jnp.inf)

    def best_pair(self, state: Zoom, available: jax.Array | None = None) -> PairAction:
        """The pair with the largest v̂, among ties that of the finest cell."""
        pairs, spec = self.pairs(state, available), state.sums.spec
        best = jnp.where(pairs.n > 0, pair_value(pairs), 0.0)
        finest = on_grid(state) & (state.cell == jnp.min(state.cell)) & _exists(spec, available)
        return _action(spec, jnp.argmax(jnp.where(finest, best, -jnp.inf)).astype(jnp.int32))

    def select(self, state: Zoom, key: jax.Array, view: View) -> Chosen:
        spec = state.sums.spec
        scores = self.scores(state, view.available)
        order = _order(spec, streams.policy_words(key, view.round, Role.TIE)[0])
        pair = largest(scores, key, View(view.round), order=order)  # absent arms are −∞ already
        final, over = self.best_pair(state, view.available), view.round > self.horizon
        return state, select_tree(over, final, _action(spec, pair))

    def status(self, state: Zoom) -> jax.Array:
        return jnp.where(state.full, jnp.int32(Status.CAPACITY), jnp.int32(Status.RUNNING))


def on_grid(state: Zoom) -> jax.Array:
    """Which points are on their arm's own grid, ``bool[n·m]``."""
    _, limit_index = pair_ids(state.sums.spec)
    return (limit_index + 1) % state.cell == 0


def _order(spec: CensoredSpec, word: jax.Array) -> jax.Array:
    # A random order of points by (arm, limit in ticks): the same whatever the number of limits.
    arm = pair_ids(spec)[0].astype(np.uint32)
    tau = of_limits(spec, spec.limit_ticks).astype(np.uint32)
    x = word ^ (tau * np.uint32(0x85EBCA77) ^ (arm * np.uint32(0x9E3779B1)))
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)
