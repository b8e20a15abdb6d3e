"""For changing means: wrappers that forget (window, discount, restarts), an oracle's schedule."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics.arrays import ArrayLike, one_of
from jaxbandits.core import arm_statistics, streams, ticks
from jaxbandits.core.arm_statistics import beside
from jaxbandits.core.capabilities import own_method
from jaxbandits.core.checks import bad, one_for_each_arm, refuse, whole_number
from jaxbandits.core.protocol import Chosen, Feedback, Observation, Policy, View
from jaxbandits.core.pytrees import Pytree, leaf, pytree, select_tree, static
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.ticks import Total
from jaxbandits.policies.base import (
    ArmTotals,
    Plan,
    check_one_arm,
    chooses_by_logits,
    chooses_by_score,
    evaluate_arms,
    gumbel,
    largest,
)
from jaxbandits.policies.soft import BudgetedThompson, Posterior
from jaxbandits.policies.wrappers import Choice, WithState

# Roles: of a key for rounds whose number the inner policy has seen before, of exploration
_AGAIN, _FORCED = 255, 254

# --- Who knows when the world changes


@pytree
class Schedule(Plan):
    """Pulls arm :math:`a_i` from round :math:`s_i` on: an oracle that uses every round's means.

    :meth:`~jaxbandits.environments.Piecewise.best_schedule` computes one. While that arm is closed,
    the first open one is pulled.

    Args:
        at: s, increasing, ``[change]``, the first 1 (per instance ``[1, instance, change]``).
        arms: a, the same shape.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.6, 0.4], [1.0, 1.0])
        >>> plan = jb.policies.Schedule(at=[1, 31], arms=[0, 1])
        >>> jb.simulate(plan, arms, jb.Horizon(40), key=jax.random.key(0), marks=1).pulls.values.ravel().tolist()
        [30, 10]
    """

    at: ArrayLike = leaf(integer=True, core=1, at_least=1)
    arms: ArrayLike = leaf(integer=True, core=1, at_least=0)

    def select(self, state: jax.Array, key: jax.Array, view: View) -> Chosen:
        changes = jnp.sum(jnp.asarray(self.at) <= view.round, dtype=jnp.int32)
        arm = jnp.asarray(self.arms)[jnp.maximum(changes - 1, 0)]
        ids, last = jax.lax.iota(jnp.int32, view.available.shape[0]), view.available.shape[0]
        first = jnp.min(jnp.where(view.available, ids, last))
        # An arm that the world has not stays what it is, and ends the lane as invalid.
        closed = jnp.any((ids == arm) & ~view.available)
        return state, jnp.where(closed & (first < last), first, arm)


# --- What wrappers share


def _refuse_other_sums(owner: Policy, inner: Policy) -> None:
    """Refuse a policy whose learning is no sum over observations, out of which one can be taken."""
    kinds = (kind for kind in (BudgetedThompson, ArmTotals) if isinstance(inner, kind))
    by_sums = any(own_method(inner, kind, "update") is None for kind in kinds)
    must = (
        f"a policy that sums each arm's outcomes, such as OmegaUCB(), inside {type(owner).__name__}"
    )
    refuse("policy", type(inner).__name__, not by_sums, must)


def _sums(state: Pytree) -> Pytree:
    """What is learnt, of a state that may be more."""
    return getattr(state, "learnt", state)


def _with_sums(policy: Policy, state: Pytree, sums: Pytree) -> Pytree:
    return policy.with_learnt(state, sums) if isinstance(policy, ArmTotals) else sums


def _is_total(x: Any) -> bool:
    return isinstance(x, Total)


def _each_total(change: Any, *sums: Pytree) -> Pytree:
    return jax.tree.map(change, *sums, is_leaf=_is_total)


def _minus(a: Any, b: Any) -> Any:
    return ticks.minus(a, b) if _is_total(a) else a - b


def _brought(policy: Policy, state: Pytree, nothing: Pytree, key: jax.Array, seen: Any) -> Pytree:
    """What one observation adds to the sums, which are ``nothing`` before it."""
    return _sums(policy.update(_with_sums(policy, state, nothing), key, seen))


def _as_of(round: jax.Array, key: jax.Array, view: View) -> tuple[jax.Array, View]:
    """(key, view) that pose as another round to the inner policy; no draw is repeated."""
    fresh_key = jax.random.key_data(streams.typed(streams.policy_words(key, view.round, _AGAIN)))
    words = jnp.where(round == view.round, jax.random.key_data(key), fresh_key)
    return streams.typed(words), view._replace(round=round)


# --- A window


class WindowedState(NamedTuple):
    """The inner state, and the observations of the last w rounds: round s at place s mod w."""

    inner: Pytree
    first: jax.Array  # i32[]: what was seen in earlier rounds is forgotten
    round: jax.Array  # i32[w]: of which round; 0: of none
    action: Pytree  # [w]
    reward: jax.Array  # i32[w, …]
    cost: jax.Array  # i32[w, …]


@pytree
class Windowed(WithState):
    """The inner policy with observations of the last w rounds; older ones are subtracted exactly.

    For the inner policy the round is min(t, w + 1), as if it had begun w rounds ago. An arm that
    was not played for w rounds is new to it. With a window as long as the run it plays the inner
    policy's own bits.

    Args:
        policy: any policy whose statistics are sums over observations: every index, randomised and
            average-cost policy that keeps :class:`~jaxbandits.core.arm_statistics.ArmStatistics`,
            and ``BudgetedThompson``.
        window: w ≥ 1, in rounds; part of the program. Memory and time of a round grow with it.

    Raises:
        InputError: before anything runs, for a policy that learns in another way.

    Source: SW-UCB (Garivier, Moulines, ALT 2011, §3), for any index; there ln(min(t, w)). Around
    :class:`~jaxbandits.policies.UCBBwK` it is SW-UCB for knapsacks (Liu, Jiang, Li, NeurIPS 2022,
    Algorithm 1), with one window for rewards and costs and with that policy's radius.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> good, bad = (jb.environments.FiniteArms.bernoulli([0.5, mean], [0.5, 0.5]) for mean in (0.9, 0.1))
        >>> world = jb.environments.Piecewise.of([good, bad], at=[1001])
        >>> every = [jb.policies.UCB1(), jb.policies.Windowed(jb.policies.UCB1(), window=200)]
        >>> every += [jb.policies.Restarting(jb.policies.UCB1(), jb.policies.GLR())]
        >>> result = jb.simulate(every, world, jb.Horizon(2000), key=jax.random.key(0), replicates=8, marks=[0.5, 1.0])
        >>> result.regret.mean(["instance", "replicate"]).values.round().tolist()   # before the change, and after it
        [[20.0, 274.0], [50.0, 118.0], [21.0, 49.0]]
    """

    policy: Policy = leaf()
    window: int = static()

    def check(self, spec: FiniteSpec) -> None:
        _refuse_other_sums(self, self.policy)
        whole_number("Windowed.window", self.window, 1, 2**24)
        super().check(spec)

    def init(self, spec: FiniteSpec) -> WindowedState:
        shape = jnp.shape(self.policy.blank_action(spec))
        columns = (), shape, shape, shape + spec.cost_shape
        rows = (jnp.zeros((self.window, *column), jnp.int32) for column in columns)
        return WindowedState(self.policy.init(spec), jnp.int32(1), *rows)

    def update(
        self, state: WindowedState, key: jax.Array, observation: Observation
    ) -> WindowedState:
        """Learn and store; observations older than the window are not learned."""
        round, feedback = observation.view.round - 1, observation.feedback
        state = self._from(state, key, round - self.window + 1)
        row = round, observation.action, feedback.reward, feedback.cost
        put = (x.at[round % self.window].set(y) for x, y in zip(state[2:], row, strict=True))
        learnt = WindowedState(self.policy.update(state.inner, key, observation), state.first, *put)
        return select_tree(round >= state.first, learnt, state)

    def _from(self, state: WindowedState, key: jax.Array, first: jax.Array) -> WindowedState:
        """The state without what was seen before the round ``first``."""

        def forget(state: WindowedState) -> WindowedState:
            place = state.first % self.window
            action, feedback = state.action[place], Feedback(state.reward[place], state.cost[place])
            observation = Observation(View(state.first + 1), action, feedback, jnp.bool_(False))
            sums = _sums(state.inner)
            nothing = jax.tree.map(jnp.zeros_like, sums)
            forgotten = _brought(self.policy, state.inner, nothing, key, observation)
            less = _each_total(_minus, sums, forgotten)
            remaining = select_tree(state.round[place] == state.first, less, sums)
            inner = _with_sums(self.policy, state.inner, remaining)
            return state._replace(inner=inner, first=state.first + 1)

        return jax.lax.while_loop(lambda state: state.first < first, forget, state)

    def decide(self, state: WindowedState, key: jax.Array, view: View, choose: Choice) -> Chosen:
        state = self._from(state, key, view.round - self.window)
        round = jnp.minimum(view.round, self.window + 1)
        inner, action = choose(state.inner, *_as_of(round, key, view))
        return state._replace(inner=inner), action


# --- A discount


class DiscountedState(NamedTuple):
    """The inner state with every count as a total, and the weight of all earlier rounds."""

    inner: Pytree
    rounds: Total
    now: jax.Array  # i32[]: the round for which they are


def _scaled(total: Total, by: jax.Array) -> Total:
    """``total`` times ``by`` ticks, rounded down; exact at 2²⁴, and monotone in ``total``."""
    return ticks.add(ticks.times(by, total.whole), ticks.times(total.part, by).whole)


def _lifted(sums: Pytree) -> Pytree:
    return _each_total(lambda x: x if _is_total(x) else ticks.count(x), sums)


def _nothing(sums: Any) -> Pytree:
    """Empty sums as the inner policy has them, with whole counts."""
    zero = jax.tree.map(jnp.zeros_like, sums)
    if isinstance(zero, Posterior):
        return _each_total(lambda x: x.whole, zero)
    return zero._replace(pulls=zero.pulls.whole)


def _in_whole_pulls(sums: Pytree) -> Pytree:
    """Sums for policies that count pulls: n rounded to a whole number, means unchanged."""
    n = sums.pulls
    pulls = n.whole + (n.part >> (ticks.BITS - 1))

    def of_so_many(total: Total) -> Total:
        exact, times = (beside(x, total.whole.ndim - pulls.ndim) for x in (n.part == 0, pulls))
        of_mean = ticks.times(arm_statistics.mean_in_ticks(total, n), times)
        return jax.tree.map(lambda whole, scaled: jnp.where(exact, whole, scaled), total, of_mean)

    return _each_total(of_so_many, sums._replace(pulls=None))._replace(pulls=pulls)


def _holding(state: Pytree, sums: Pytree) -> Pytree:
    """A state with other sums, which the policy itself need not understand."""
    return state._replace(learnt=sums) if hasattr(state, "learnt") else sums


@pytree
class Discounted(WithState):
    """The inner policy with discounted statistics: weights fall by γ per round, or per pull.

    .. math:: n_k = \\sum_{s<t} \\gamma^{t-1-s} [a_s = k], \\qquad \\Sigma r_k, \\Sigma c_k \\text{ with the same
        weights}, \\qquad t = 1 + \\sum_{s<t} \\gamma^{t-1-s} \\text{ in the index}

    per round; per pull, with the number of later pulls of that arm as exponent, and the round
    itself for t. Per round an arm that rests is forgotten, and tried again; per pull it keeps what
    is known, however old: nothing is found out of what is not played.

    Sums are whole ticks, rounded down each round, so that γ = 1 (no tick is lost) plays the inner
    policy's own bits.

    A policy that draws from a program, or reads the number of pulls in another way than a score
    does, is shown n and t as whole numbers, n to the nearest and t rounded down, beside the same
    means. An arm that weighs less than half a pull is new to it.

    Args:
        policy: any policy whose statistics are sums over observations, as in :class:`Windowed`.
        gamma: γ in (0, 1], counted to 2⁻²⁴; :meth:`half_life` gives it from what people think in.
        per: ``"round"`` or ``"pull"``.

    Raises:
        InputError: before anything runs, for a policy that learns in another way, or another
            ``per``.

    Source: D-UCB (Kocsis, Szepesvári 2006; Garivier, Moulines, ALT 2011, §2), for any index; there
    ln Σ n_k.

    Deviations: t counts the round about to be decided, as everywhere here; a round without an
    observation ages all.

    Example:
        >>> from jaxbandits.policies import UCB1, Discounted
        >>> round(Discounted.half_life(UCB1(), 1000).gamma, 6)
        0.999307
    """

    policy: Policy = leaf()
    gamma: ArrayLike = leaf(above=0, at_most=1)
    per: str = static(default="round")

    @classmethod
    def half_life(cls, policy: Policy, rounds: Any, per: str = "round") -> Discounted:
        """γ = 2^(−1/h): a pull counts half after h rounds (or pulls); above 2·10⁷ none fades.

        Args:
            policy: the inner policy.
            rounds: h above 0, a number or several, one for each setting.
            per: ``"round"`` or ``"pull"``.
        """
        h = np.asarray(rounds, np.float64)
        refuse("rounds", h, ~(h > 0), "above 0")
        gamma = 2.0 ** (-1.0 / h)
        return cls(policy, gamma if gamma.ndim else float(gamma), per)

    def check(self, spec: FiniteSpec) -> None:
        _refuse_other_sums(self, self.policy)
        one_of("Discounted.per", self.per, ("round", "pull"))
        super().check(spec)

    def learnt(self, state: DiscountedState) -> Pytree:
        """The inner policy's state, in whole pulls if it reads no weights."""
        inner = state.inner
        if self._reads_weights():
            return inner
        return _with_sums(self.policy, inner, _in_whole_pulls(_sums(inner)))

    def _reads_weights(self) -> bool:
        """Is the formula of the inner policy known, so that n need not be whole?"""
        by_formula = chooses_by_score(self.policy) or chooses_by_logits(self.policy)
        return by_formula or isinstance(self.policy, BudgetedThompson)

    def init(self, spec: FiniteSpec) -> DiscountedState:
        inner = self.policy.init(spec)
        return DiscountedState(_holding(inner, _lifted(_sums(inner))), ticks.zero(), jnp.int32(1))

    def _factor(self) -> jax.Array:
        return jnp.rint(self.gamma * np.float32(ticks.ONE)).astype(jnp.int32)

    def _older(self, state: DiscountedState) -> DiscountedState:
        """The state one round later; unless ageing is by pulls, all sums have less weight."""
        inner, rounds = state.inner, state.rounds
        if self.per == "round":
            now, by = (_sums(inner), rounds), self._factor()
            sums, rounds = _each_total(lambda x: _scaled(x, by), now)
            inner = _holding(inner, sums)
        return DiscountedState(inner, ticks.plus(rounds, ticks.count(jnp.int32(1))), state.now + 1)

    def update(
        self, state: DiscountedState, key: jax.Array, observation: Observation
    ) -> DiscountedState:
        sums = _sums(state.inner)
        brought = _brought(self.policy, state.inner, _nothing(sums), key, observation)
        if self.per == "pull":
            is_arm = jax.lax.iota(jnp.int32, sums.pulls.whole.shape[0]) == observation.action
            by = jnp.where(is_arm, self._factor(), ticks.ONE)
            sums = _each_total(lambda x: _scaled(x, beside(by, x.whole.ndim - by.ndim)), sums)
        sums = _each_total(ticks.plus, sums, _lifted(brought))
        return state._replace(inner=_holding(state.inner, sums))

    def decide(self, state: DiscountedState, key: jax.Array, view: View, choose: Choice) -> Chosen:
        # rounds in which nobody could be asked to choose age what is known, too
        state = jax.lax.while_loop(lambda state: state.now < view.round, self._older, state)
        if self._reads_weights():
            sums = state.inner
            if choose.open is not None and not isinstance(sums, Posterior):
                sums = arm_statistics.counted(sums, choose.open)
            return self._older(state), self._arm(sums, 1 + ticks.to_float(state.rounds), key, view)
        acted, arm = choose(self.learnt(state), *_as_of(1 + state.rounds.whole, key, view))
        return self._older(state._replace(inner=_holding(acted, _sums(state.inner)))), arm

    def _arm(self, sums: Pytree, t: jax.Array, key: jax.Array, view: View) -> jax.Array:
        inner = self.policy
        if isinstance(sums, Posterior):
            return inner.select(Posterior(*map(ticks.to_float, sums)), key, view)[1]  # type: ignore[arg-type]
        arms = arm_statistics.as_floats(sums, t)
        if chooses_by_score(inner):
            return largest(evaluate_arms(inner, arms), key, view, fresh=arms.n == 0)
        policy, arms, available = jax.lax.optimization_barrier((inner, arms, view.available))
        logits = one_for_each_arm(inner, "logits", policy.logits(arms, available), arms.n.shape)
        return largest(logits + gumbel(key, view.round, arms.n.shape[0]), key, view)


# --- Restarts: when a detector says that an arm is not what it was


class Detector:
    """Detects a change in the mean of numbers in [0, 1]. Subclasses define ``init``, ``step``."""

    @abstractmethod
    def init(self) -> Pytree:
        """The state before the first number."""

    @abstractmethod
    def step(self, state: Pytree, x: jax.Array) -> tuple[Pytree, jax.Array]:
        """(state, alarm) after the number ``x`` (float32)."""


class DeviationSums(NamedTuple):
    """State of a deviation detector: count, sum, and the summed deviations up and down."""

    n: jax.Array  # i32[]
    total: jax.Array  # f32[]: of the first M numbers, or of all
    up: jax.Array  # f32[]
    down: jax.Array


class _DeviationDetector(Detector):
    """A detector with the state :class:`DeviationSums`. Write :meth:`step`."""

    slack: ArrayLike

    def init(self) -> DeviationSums:
        return DeviationSums(jnp.int32(0), *(jnp.float32(0) for _ in range(3)))

    def cumulated(
        self, state: DeviationSums, x: jax.Array, mean: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """The deviations up and down, with those of ``x`` from a mean."""
        up, down = state.up + (x - mean - self.slack), state.down + (mean - x - self.slack)
        return jnp.maximum(up, 0), jnp.maximum(down, 0)


@pytree
class CUSUM(_DeviationDetector):
    """The two-sided CUSUM around the mean of the first M numbers:

    .. math:: g^{\\pm} \\leftarrow \\max(0,\\ g^{\\pm} \\pm (x - \\hat u_0) - \\varepsilon), \\qquad
        \\text{alarm as soon as } g^+ \\ge h \\text{ or } g^- \\ge h.

    A change by Δ > ε is seen after some h/(Δ − ε) numbers. (Between false alarms: exponentially
    many in h.)

    Args:
        threshold: h > 0.
        slack: ε ≥ 0, changes up to which are not looked for; default 0.05.
        first: M ≥ 1, default 30.

    Source: CUSUM-UCB (Liu, Lee, Shroff, AAAI 2018, Alg. 1); Page, Biometrika 1954.

    Example:
        >>> from jaxbandits.policies import CUSUM, alarms
        >>> alarms(CUSUM(threshold=5.0, first=20), [0, 1] * 50 + [1] * 40)         # at the 11th number after the change
        [111]
    """

    threshold: ArrayLike = leaf(above=0)
    slack: ArrayLike = leaf(default=0.05, at_least=0)
    first: ArrayLike = leaf(default=30, at_least=1, integer=True)

    def step(self, state: DeviationSums, x: jax.Array) -> tuple[DeviationSums, jax.Array]:
        learns = state.n < self.first
        mean = state.total / jnp.maximum(state.n, 1).astype(jnp.float32)
        up, down = (jnp.where(learns, 0, g) for g in self.cumulated(state, x, mean))
        counted = state.n + learns.astype(jnp.int32)
        after = DeviationSums(counted, state.total + jnp.where(learns, x, 0), up, down)
        return after, jnp.maximum(up, down) >= self.threshold


@pytree
class PageHinkley(_DeviationDetector):
    """The two-sided Page–Hinkley test: :class:`CUSUM` around the mean of all numbers up to x.

    Args:
        threshold: λ > 0.
        slack: δ ≥ 0, default 0.05.

    Source: Hinkley, Biometrika 1971; for bandits Hartland et al. 2006.

    Example:
        >>> from jaxbandits.policies import PageHinkley, alarms
        >>> alarms(PageHinkley(threshold=5.0), [0, 1] * 50 + [1] * 40)
        [111]
    """

    threshold: ArrayLike = leaf(above=0)
    slack: ArrayLike = leaf(default=0.05, at_least=0)

    def step(self, state: DeviationSums, x: jax.Array) -> tuple[DeviationSums, jax.Array]:
        n, total = state.n + 1, state.total + x
        up, down = self.cumulated(state, x, total / n.astype(jnp.float32))
        return DeviationSums(n, total, up, down), jnp.maximum(up, down) >= self.threshold


class Splits(NamedTuple):
    """State of a :class:`GLR`: count and sum, now and at places spread evenly over the past."""

    n: jax.Array  # i32[]
    total: jax.Array  # f32[]
    spacing: jax.Array  # i32[]: places are its multiples
    totals: jax.Array  # f32[splits]


@pytree
class GLR(Detector):
    """The generalised likelihood ratio of a change in a Bernoulli mean, over some split points:

    .. math:: \\max_s\\ s\\,\\mathrm{kl}(\\hat\\mu_{1:s}, \\hat\\mu_{1:n}) + (n - s)\\,\\mathrm{kl}(\\hat\\mu_{s+1:n},
        \\hat\\mu_{1:n}) \\ge \\ln \\frac{3 n^{3/2}}{\\delta}.

    Args:
        delta: δ in (0, 1): about the chance of a false alarm, ever. Default 0.05.
        splits: how many places s are remembered, even; part of the program. Once they are full,
            every second one is given up, so there are never fewer than half as many.

    Source: GLR-klUCB (Besson, Kaufmann, Maillard, Seznec, JMLR 2022); the threshold as in their
    experiments. All s are tried there.

    Example:
        >>> from jaxbandits.policies import GLR, alarms
        >>> alarms(GLR(), [0, 1] * 50 + [1] * 40)
        [119]
    """

    delta: ArrayLike = leaf(default=0.05, above=0, at_most=1)
    splits: int = static(default=32)

    def init(self) -> Splits:
        totals = jnp.zeros((self.splits,), jnp.float32)
        return Splits(jnp.int32(0), jnp.float32(0), jnp.int32(1), totals)

    def step(self, state: Splits, x: jax.Array) -> tuple[Splits, jax.Array]:
        """Test all stored split points, then store this one."""
        n, total = state.n + 1, state.total + x
        ids = jax.lax.iota(jnp.int32, self.splits)
        s = (ids + 1) * state.spacing
        count, of_all = s.astype(jnp.float32), n.astype(jnp.float32)
        rest = jnp.maximum(of_all - count, 1)
        mean, before, after = total / of_all, state.totals / count, (total - state.totals) / rest
        ratio = count * _kl(before, mean) + rest * _kl(after, mean)
        threshold = jnp.log(3 * of_all * jnp.sqrt(of_all) / self.delta)
        alarm = jnp.max(jnp.where(s < n, ratio, 0)) >= threshold

        totals = jnp.where(s == n, total, state.totals)
        full = n == self.splits * state.spacing
        every_second = totals[jnp.minimum(2 * ids + 1, self.splits - 1)]
        halved = jnp.where(ids < self.splits // 2, every_second, 0)
        spacing = jnp.where(full, 2, 1) * state.spacing
        return Splits(n, total, spacing, jnp.where(full, halved, totals)), alarm


def _kl(p: jax.Array, q: jax.Array) -> jax.Array:
    """kl of two Bernoulli laws, 0 ln 0 = 0, for numbers a rounding away from [0, 1]."""
    p, q = jnp.clip(p, 0, 1), jnp.clip(q, 1e-6, 1 - 1e-6)
    first = jnp.where(p > 0, p * jnp.log(jnp.maximum(p, 1e-12) / q), 0)
    return first + jnp.where(p < 1, (1 - p) * jnp.log(jnp.maximum(1 - p, 1e-12) / (1 - q)), 0)


def alarms(detector: Detector, numbers: Any) -> list[int]:
    """The numbers (1, 2, …) of a stream at which a detector reports a change; it then restarts.

    To choose a threshold before anything is restarted.

    Example:
        >>> import numpy as np
        >>> from jaxbandits.policies import CUSUM, alarms
        >>> stream = np.concatenate([np.tile([0.0, 1.0], 50), np.ones(50)])  # from 100 on its mean is 1, not ½
        >>> [alarms(CUSUM(threshold=h), stream) for h in (2.0, 5.0, 10.0)]
        [[104], [111], [122]]
    """
    begin = detector.init()

    def watch(state: Pytree, x: jax.Array) -> tuple[Pytree, jax.Array]:
        after, alarm = detector.step(state, x)
        return select_tree(alarm, begin, after), alarm

    flags = jax.lax.scan(watch, begin, jnp.asarray(numbers, jnp.float32))[1]
    return (1 + np.flatnonzero(np.asarray(flags))).tolist()


class RestartingState(NamedTuple):
    """The inner state now and at the start, the detectors' states, and the last restart."""

    inner: Pytree
    blank: Pytree
    watched: Pytree  # of each arm's reward and costs, [K, 1 + d]
    since: jax.Array  # i32[]: rounds before the last restart
    restarts: jax.Array  # i32[]


@pytree
class Restarting(WithState):
    """The inner policy, restarted when a detector finds a change in some arm's reward or cost.

    A detector watches the rewards, and another one each cost, of each arm's pulls. With ``whole``
    an alarm makes the inner policy begin anew, in its round 1; without, only what it knows of that
    arm is forgotten, and its round goes on. What is not played is not watched: with probability
    ``explore`` any arm is played. Where no detector ever tells, and ``explore`` is 0, it plays the
    inner policy's own bits. ``result.final["restarts"]`` counts the alarms.

    Args:
        policy: any policy of one arm a round; without ``whole`` one whose statistics are sums.
        detector: :class:`CUSUM`, :class:`PageHinkley`, :class:`GLR`, or one of your own.
        explore: α in [0, 1], default 0.
        whole: does everything begin anew, or the arm? Part of the program; default True.
        growing: True for :math:`\\min(1, \\alpha \\sqrt{k})` after k − 1 alarms in place of α: who
            has met many changes looks out for more. With α = √(K ln T/T) nobody needs to know how
            many there are. Part of the program; default False.

    Raises:
        InputError: before anything runs, for other policies, or what is no detector.

    Source: CUSUM-UCB (AAAI 2018), which forgets the arm; GLR-klUCB (JMLR 2022) knows both, and the
    growing exploration; around any policy: detection-augmented learning (Gerogiannis, Huang, Bose,
    Veeravalli, arXiv 2501.19401).

    Deviations: exploration is drawn, as in CUSUM-UCB; GLR-klUCB's takes turns.

    :class:`Windowed` has an example.
    """

    policy: Policy = leaf()
    detector: Detector = leaf()
    explore: ArrayLike = leaf(default=0.0, at_least=0, at_most=1)
    whole: bool = static(default=True)
    growing: bool = static(default=False)

    def check(self, spec: FiniteSpec) -> None:
        if not isinstance(self.detector, Detector):
            raise bad("detector", self.detector, "a Detector, such as GLR()")
        check_one_arm(self, self.policy, spec)
        if not self.whole:
            _refuse_other_sums(self, self.policy)
        super().check(spec)

    def init(self, spec: FiniteSpec) -> RestartingState:
        inner, calm = self.policy.init(spec), self.detector.init()
        numbers = spec.arms, 1 + (spec.resources or 1)
        watched = jax.tree.map(lambda x: jnp.broadcast_to(x, (*numbers, *x.shape)), calm)
        return RestartingState(inner, inner, watched, jnp.int32(0), jnp.int32(0))

    def update(
        self, state: RestartingState, key: jax.Array, observation: Observation
    ) -> RestartingState:
        arm, feedback = observation.action, observation.feedback
        inner = self.policy.update(state.inner, key, observation)
        brought = ticks.ticks_to_float(jnp.append(feedback.reward, feedback.cost))
        of_arm = jax.tree.map(lambda x: x[arm], state.watched)
        now, alarm = jax.vmap(self.detector.step)(*jax.lax.optimization_barrier((of_arm, brought)))
        changed, calm = jnp.any(alarm), self.detector.init()
        watched = jax.tree.map(lambda all, x: all.at[arm].set(x), state.watched, now)
        is_arm = jax.lax.iota(jnp.int32, jax.tree.leaves(watched)[0].shape[0]) == arm
        anew = changed & (is_arm | self.whole)

        def begin(x: jax.Array, first: Any) -> jax.Array:
            return jnp.where(anew.reshape(-1, *(1,) * (x.ndim - 1)), first, x)

        if self.whole:
            inner = select_tree(changed, state.blank, inner)
        else:
            sums = jax.tree.map(lambda x: begin(x, 0), _sums(inner))
            inner = _with_sums(self.policy, inner, sums)
        since = jnp.where(changed & self.whole, observation.view.round - 1, state.since)
        restarts = state.restarts + changed.astype(jnp.int32)
        watched = jax.tree.map(begin, watched, calm)
        return RestartingState(inner, state.blank, watched, since, restarts)

    def decide(self, state: RestartingState, key: jax.Array, view: View, choose: Choice) -> Chosen:
        inner, action = choose(state.inner, *_as_of(view.round - state.since, key, view))
        coin, word = streams.policy_words(key, view.round, _FORCED)
        chance = self.explore
        if self.growing:
            chance = chance * jnp.sqrt((1 + state.restarts).astype(jnp.float32))
        forced = (streams.uniform(coin) < chance) & jnp.any(view.available)
        action = jnp.where(forced, streams.available_arm(word, view.available), action)
        return state._replace(inner=inner), action

    def summary(self, state: RestartingState) -> dict[str, jax.Array]:
        return self.policy.summary(state.inner) | {"restarts": state.restarts}
