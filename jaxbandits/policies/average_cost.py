"""Policies for a bound on the average cost: mixtures of arms and rest, up to SUAK.

Each wants a null arm (``WithNullArm(arms)``) and one cost.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits._numerics.arrays import ArrayLike
from jaxbandits._numerics.knapsack_lp import Mixture, best_mixture
from jaxbandits.core import streams, ticks
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.core.protocol import Chosen, Observation, View
from jaxbandits.core.pytrees import leaf, pytree, select_tree
from jaxbandits.core.specs import SKIP, FiniteSpec
from jaxbandits.core.streams import Role
from jaxbandits.core.ticks import Total
from jaxbandits.policies.base import ArmTotals, check_null_arm, fewest, money_left

# --- A draw from a mixture; confidence bounds, what is left to spend


class MixturePolicy(ArmTotals):
    """A policy that draws each action from at most two. Subclasses define :meth:`plan`.

    Actions are the arms 0 … K−1, the null arm K, and −1 for a skip. One uniform U a round (role
    ``MIX``) decides: the mixture's costlier member is played if and only if U < its weight.
    """

    @abstractmethod
    def plan(self, state: Any, view: View) -> tuple[Any, Mixture]:
        """(state, mixture) for the next round."""

    def check(self, spec: FiniteSpec) -> None:
        super().check(spec)
        check_null_arm(self, spec)

    def select(self, state: Any, key: jax.Array, view: View) -> Chosen:
        state, view, policy = jax.lax.optimization_barrier((state, view, self))
        state, mixture = policy.plan(state, view)
        uniform = streams.uniform(streams.policy_words(key, view.round, Role.MIX)[0])
        return state, stored(jnp.where(uniform < mixture.weight, mixture.high, mixture.low))


def stored(x: jax.Array) -> jax.Array:
    """``x`` (an int32 scalar), stored so that it is computed only once.

    XLA on CPU repeats a chain of elementwise operations in every kernel that reads its end, here a
    whole hash in some thirty kernels; the end of a reduction is stored instead.
    """
    first = jax.lax.iota(jnp.int32, 2) == 0
    return jnp.max(jnp.where(first, x, jnp.int32(-(2**31))))


class Bounds(NamedTuple):
    """Confidence bounds of mean reward and mean cost, clipped to [0, 1]; ``f32[K]`` each."""

    reward_low: jax.Array
    reward_high: jax.Array
    cost_low: jax.Array
    cost_high: jax.Array


def means(state: ArmStatistics) -> tuple[jax.Array, jax.Array]:
    """(μ̄, ρ̄), ``f32[K]``; 0 for an arm without pulls."""
    n = jnp.maximum(state.pulls, 1).astype(jnp.float32)
    return ticks.to_float(state.reward) / n, ticks.to_float(state.cost) / n


def radius(pulls: jax.Array, a: jax.Array | float, log: jax.Array) -> jax.Array:
    """√(a · log / N), ``f32[K]``; +∞ for an arm without pulls."""
    n = jnp.maximum(pulls, 1).astype(jnp.float32)
    return jnp.where(pulls > 0, jnp.sqrt(a * log / n), jnp.inf)


def bounds(state: ArmStatistics, a: jax.Array | float, log: jax.Array) -> Bounds:
    """μ̄ ± √(a log / N) and ρ̄ ± √(a log / N), clipped to [0, 1]."""
    reward, cost = means(state)
    width = radius(state.pulls, a, log)
    every = reward - width, reward + width, cost - width, cost + width
    return Bounds(*(jnp.clip(x, 0.0, 1.0) for x in every))


def log_of(rounds: jax.Array) -> jax.Array:
    """ln of a number of rounds, float32."""
    return jnp.log(rounds.astype(jnp.float32))


def alone(action: jax.Array) -> Mixture:
    """The mixture that chooses one action with probability 1."""
    certain = jnp.float32(1)
    return Mixture(certain, action, action, certain)


def and_null(mask: jax.Array) -> jax.Array:
    """A mask over the arms, extended by the null arm."""
    return jnp.concatenate([mask, jnp.ones((1,), jnp.bool_)])


def first_pulls(state: ArmStatistics, view: View, then: Mixture) -> Mixture:
    """Each arm once in index order, then the given mixture."""
    fresh = (state.pulls == 0) & view.available
    return select_tree(jnp.any(fresh), alone(fewest(state.pulls, fresh)), then)


def floor_ticks(c: jax.Array) -> jax.Array:
    """c in whole ticks, rounded down (exact: scaling a float by a power of two does not round)."""
    return jnp.floor(c * ticks.ONE).astype(jnp.int32)


def budget_rate(view: View, policy: OnePhase | PrimalDualTwoPhase) -> jax.Array:
    """What is left per round that is left, [cT − Sc(t−1)]⁺ / (T − t + 1)."""
    to_come = jnp.maximum(policy.horizon - view.round, 0)
    budget = ticks.plus(money_left(view), ticks.times(floor_ticks(policy.c), to_come))
    return jnp.maximum(ticks.to_float(budget), 0.0) / (to_come + 1).astype(jnp.float32)


# --- The best fixed mixture: what a policy that knows the true means would do


@pytree
class FluidOracle(MixturePolicy):
    """Draws each action from the fluid LP at the *true* means: max ⟨μ, π⟩ s.t. ⟨ρ, π⟩ ≤ c.

    Its mean reward a round is r* and its mean cost at most c, but its path strays above c·t:
    ``Guarded(FluidOracle(...))`` keeps the anytime constraint and shows what that costs.

    Args:
        mean_reward: μ, ``[K]`` (per instance ``[1, instance, K]``).
        mean_cost: ρ, same shape.
        c: the bound on the average cost, in (0, 1].

    Source: the LP relaxation of bandits with knapsacks; SUAK paper, Eq. (2).

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.FluidOracle([0.45, 0.7, 0.8], [0.3, 0.75, 0.8], c=0.5).c
        0.5
    """

    mean_reward: ArrayLike = leaf(at_least=0, at_most=1, core=1)
    mean_cost: ArrayLike = leaf(at_least=0, at_most=1, core=1)
    c: ArrayLike = leaf(above=0, at_most=1)

    def plan(self, state: ArmStatistics, view: View) -> tuple[ArmStatistics, Mixture]:
        reward, cost = jnp.asarray(self.mean_reward), jnp.asarray(self.mean_cost)
        return state, best_mixture(reward, cost, self.c, and_null(view.available))


# --- One-Phase: the optimistic LP on what is left of budget and time


@pytree
class OnePhase(MixturePolicy):
    """One-Phase: each arm once, then draws from the optimistic LP for the budget and time left.

    .. math:: \\max_\\pi \\langle \\mu^U, \\pi \\rangle \\ \\text{ s.t. } \\ \\langle \\rho^L, \\pi \\rangle \\le
        \\frac{cT - S_c(t-1)}{T - t + 1}, \\quad \\pi \\in \\Delta_K,

    with :math:`\\mu^U, \\rho^L = \\bar\\mu + \\epsilon, \\bar\\rho - \\epsilon` clipped to [0, 1]
    and :math:`\\epsilon = \\sqrt{a \\ln T / N}`. ``Guarded(OnePhase(...))`` is the SUAK paper's
    OPS.

    Args:
        c: the bound on the average cost, in (0, 1].
        horizon: T ≥ 1 rounds, which this policy must know.
        a: constant of the radius, above 0: 3 in the SUAK paper (Eqs. (8)–(9)), 2 in Li–Sun–Ye.

    Source: SUAK paper, Algorithm 1; Li, Sun, Ye: The symmetry between arms and knapsacks, ICML
    2021.

    Deviations: the LP printed in the SUAK paper lacks the time constraint, without which it always
    returns the one arm with the largest μ^U/ρ^L; in Li–Sun–Ye time is one of the resources, as
    here. A draw of the null arm is a play, no skip.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.Guarded(jb.policies.OnePhase(c=0.5, horizon=10_000)).policy.a
        3.0
    """

    c: ArrayLike = leaf(above=0, at_most=1)
    horizon: ArrayLike = leaf(integer=True, at_least=1)
    a: ArrayLike = leaf(default=3.0, above=0)

    def plan(self, state: ArmStatistics, view: View) -> tuple[ArmStatistics, Mixture]:
        at, rate = bounds(state, self.a, log_of(self.horizon)), budget_rate(view, self)
        best = best_mixture(at.reward_high, at.cost_low, rate, and_null(view.available))
        return state, first_pulls(state, view, best)


# --- A primal-dual pacer: a price on the resource, moved by online mirror descent

_DESCENT = 1e-3  # of the slope: so far the price moves


class PacerState(NamedTuple):
    """Statistics, the price, and when it last moved."""

    learnt: ArmStatistics
    price: jax.Array  # f32[]: λ
    money: Total  # what was left when this policy last acted
    round: jax.Array  # i32[]: when that was; 0: never


@pytree
class Pacer(MixturePolicy):
    """Pull the arm with the largest optimistic reward minus optimistic cost at the current price λ:

    .. math:: \\arg\\max_k \\ \\mu^U_k - \\lambda\\, \\rho^L_k / c \\quad \\text{(the null arm has 0)},

    and let the price follow the spending: after each of its own actions λ falls by 10⁻³ g,
    :math:`g = (c - \\text{cost}) / c`, and is clipped to [0, 1], where the optimal price of the fluid
    LP lies. The radius is :math:`\\sqrt{a \\ln t / N}`. ``Guarded(Pacer(...))`` keeps the anytime
    constraint. The guard's skips do not move the price: they save just as much as was overspent, so
    that with them no price would look too low.

    Args:
        c: the bound on the average cost, in (0, 1].
        a: constant of the radius, above 0; default 1.

    Source: dual mirror descent for online allocation (Balseiro, Lu, Mirrokni, Operations Research
    2023) with the optimistic estimates of bandits with knapsacks; no paper of this project states
    it in this form.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.Pacer(c=0.1).a
        1.0
    """

    c: ArrayLike = leaf(above=0, at_most=1)
    a: ArrayLike = leaf(default=1.0, above=0)

    def init(self, spec: FiniteSpec) -> PacerState:
        return PacerState(super().init(spec), jnp.float32(0), ticks.zero(), jnp.int32(0))

    def plan(self, state: PacerState, view: View) -> tuple[PacerState, Mixture]:
        # Since the last action it grew by c − cost, and by c for every round skipped by a guard
        now = money_left(view)
        skipped = (view.round - state.round - 1).astype(jnp.float32)
        slope = ticks.to_float(ticks.minus(now, state.money)) / self.c - skipped
        step = -_DESCENT * jnp.where(state.round > 0, slope, 0.0)
        price = jnp.clip(state.price + step, 0.0, 1.0)
        state = state._replace(price=price, money=now, round=view.round)

        at = bounds(state.learnt, self.a, log_of(view.round))
        net = jnp.where(view.available, at.reward_high - price * at.cost_low / self.c, -jnp.inf)
        net = jnp.append(net, 0.0)
        ids = jax.lax.iota(jnp.int32, net.shape[0])
        return state, alone(jnp.min(jnp.where(net == jnp.max(net), ids, net.shape[0])))


# --- Primal-Dual two-phase: identify the optimal support first, then spend on it


class TwoPhaseState(NamedTuple):
    """Statistics, and what has been identified."""

    learnt: ArmStatistics
    support: jax.Array  # bool[K + 1]: X*, the null arm last
    slack: jax.Array  # bool[]: the cost does not bind (J')

    def identified(self) -> jax.Array:
        """Whether phase 1 is over: |X*| + |J'| ≥ 2."""
        return jnp.sum(self.support, dtype=jnp.int32) + self.slack.astype(jnp.int32) >= 2


@pytree
class PrimalDualTwoPhase(MixturePolicy):
    """Sweeps over the arms until the optimal support is identified, then One-Phase's rule on it.

    Phase 1 pulls the arms in turn. After each sweep, arm x (null arm included) joins X* if
    :math:`\\mathrm{UCB}(OPT_{-x}) < \\mathrm{LCB}(OPT)`, where x is forbidden on the left; and the
    cost is found not to bind if that holds for the optimum of :math:`\\langle\\mu,\\pi\\rangle - (c
    - \\langle\\rho,\\pi\\rangle)`. It ends with two findings. UCB takes :math:`(\\mu^U, \\rho^L)`,
    LCB :math:`(\\mu^L, \\rho^U)`, radius :math:`\\sqrt{a \\ln T / N}`.
    ``Guarded(PrimalDualTwoPhase(...))`` is the SUAK paper's PDS.

    Args:
        c: the bound on the average cost, in (0, 1].
        horizon: T ≥ 1 rounds, which this policy must know.
        a: constant of the radius, above 0; default 2.

    Source: Li, Sun, Ye: The symmetry between arms and knapsacks, ICML 2021; phase 1 as in Kumar and
    Kleinberg 2022.

    Deviations: phase 2 and the constant of the radius are from memory of the original, which could
    not be opened.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.PrimalDualTwoPhase(c=0.5, horizon=1000).a
        2.0
    """

    c: ArrayLike = leaf(above=0, at_most=1)
    horizon: ArrayLike = leaf(integer=True, at_least=1)
    a: ArrayLike = leaf(default=2.0, above=0)

    def init(self, spec: FiniteSpec) -> TwoPhaseState:
        support = jnp.zeros((spec.arms + 1,), jnp.bool_)
        return TwoPhaseState(super().init(spec), support, jnp.bool_(False))

    def update(
        self, state: TwoPhaseState, key: jax.Array, observation: Observation
    ) -> TwoPhaseState:
        """Book the pull; after a complete sweep of phase 1, test what is identified."""
        learnt = super().update(state, key, observation)
        state, policy = jax.lax.optimization_barrier((learnt, self))
        available, pulls = observation.view.available, state.learnt.pulls
        swept = jnp.all(~available | (pulls == jnp.max(pulls))) & ~state.identified()
        support, slack = (swept & x for x in policy.tests(state.learnt, and_null(available)))
        return state._replace(support=state.support | support, slack=state.slack | slack)

    def tests(self, learnt: ArmStatistics, allowed: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(actions certainly in the support, whether the cost is certainly not binding)."""
        at = bounds(learnt, self.a, log_of(self.horizon))

        def optimum(reward: jax.Array, allowed: jax.Array) -> Mixture:
            return best_mixture(reward, at.cost_low, self.c, allowed)

        sure = best_mixture(at.reward_low, at.cost_high, self.c, allowed).value
        best = optimum(at.reward_high, allowed)
        # Only a member of the best pair can lower the optimum by its absence.
        without, ids = best.value, jax.lax.iota(jnp.int32, allowed.shape[0])
        for member in (best.high, best.low):
            value = optimum(at.reward_high, allowed & (ids != member)).value
            without = jnp.where(ids == member, value, without)
        unused = optimum(at.reward_high + at.cost_high, allowed).value - self.c
        return allowed & (without < sure), unused < sure

    def plan(self, state: TwoPhaseState, view: View) -> tuple[TwoPhaseState, Mixture]:
        available, rate = view.available, budget_rate(view, self)
        at = bounds(state.learnt, self.a, log_of(self.horizon))
        # While an arm of the support is closed, it is no support: all that are open may take part.
        is_open = jnp.all(~state.support[:-1] | available)
        support = and_null(jnp.where(is_open, state.support[:-1], available))
        spend = best_mixture(at.reward_high, at.cost_low, rate, support)
        in_turn = alone(fewest(state.learnt.pulls, available))
        return state, select_tree(state.identified(), spend, in_turn)


# --- UCB-Simplex: an optimistic basis of the LP, kept in balance by its own account


class SimplexState(NamedTuple):
    """Statistics, and the accounts of all pairs."""

    learnt: ArmStatistics
    balance: Total  # [K, K + 1]: c n_x − b_x of the pair x = (above c, below c or null)
    above: jax.Array  # i32[]: the pair of the last round; K: there was none
    below: jax.Array  # i32[]


@pytree
class UCBSimplex(MixturePolicy):
    """UCB-Simplex: the best basis at optimistic rewards and *empirical* costs, with load balancing.

    .. math:: \\max_\\pi \\sum_k \\big(\\bar r_k + \\lambda \\sqrt{2 \\ln t / n_k}\\big) \\pi_k
        \\ \\text{ s.t. } \\ \\langle \\bar c, \\pi \\rangle \\le c, \\quad \\pi \\in \\Delta_K.

    Each arm once first. A single arm is pulled. Of a pair x = (j above c, k below c or null), j is
    pulled if :math:`b_x \\le c\\, n_x`, else k, where :math:`n_x` counts the rounds in which x was
    selected and :math:`b_x` is what they cost. ``Guarded(UCBSimplex(...))`` is the SUAK paper's
    USS.

    Args:
        c: the bound on the average cost, in (0, 1].
        lam: λ = 1 + 2κ > 0 with κ ≥ ``max |Δμ|/|Δρ|`` known; 9 in the SUAK paper (5 is valid on
            both its instances).

    Source: Flajolet and Jaillet, arXiv 1510.01800, case "time horizon and one resource" (from
    memory); λ from the SUAK paper, §5.

    Deviations: the original pulls an arm at first until its observed cost is not 0; here once.
    Rewards are not clipped.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.UCBSimplex(c=0.5).lam
        9.0
    """

    c: ArrayLike = leaf(above=0, at_most=1)
    lam: ArrayLike = leaf(default=9.0, above=0)

    def init(self, spec: FiniteSpec) -> SimplexState:
        none, balance = jnp.int32(spec.arms), ticks.zero((spec.arms, spec.arms + 1))
        return SimplexState(super().init(spec), balance, none, none)

    def update(self, state: SimplexState, key: jax.Array, observation: Observation) -> SimplexState:
        cost = jnp.where(_pair(state), -observation.feedback.cost, 0)
        state = state._replace(balance=ticks.add(state.balance, cost))
        return super().update(state, key, observation)  # type: ignore[no-any-return]

    def plan(self, state: SimplexState, view: View) -> tuple[SimplexState, Mixture]:
        """Step-Simplex, then Step-Load-Balance."""
        available, pulls = view.available, state.learnt.pulls
        reward, cost = means(state.learnt)
        boost = self.lam * radius(jnp.maximum(pulls, 1), 2.0, log_of(view.round))
        basis = best_mixture(reward + boost, cost, self.c, and_null(available))
        mixed = ~jnp.any((pulls == 0) & available) & (basis.high != basis.low)
        above, below = (jnp.where(mixed, x, pulls.shape[0]) for x in (basis.high, basis.low))
        state = state._replace(above=above, below=below)

        pair = _pair(state)
        in_debt = jnp.any(pair & (state.balance.whole < 0))  # b_x > c n_x
        action = jnp.where(mixed & in_debt, basis.low, basis.high)
        balance = ticks.add(state.balance, jnp.where(pair, floor_ticks(self.c), 0))
        return state._replace(balance=balance), first_pulls(state.learnt, view, alone(action))


def _pair(state: SimplexState) -> jax.Array:
    above = jax.lax.iota(jnp.int32, state.balance.part.shape[0]) == state.above
    below = jax.lax.iota(jnp.int32, state.balance.part.shape[1]) == state.below
    return above[:, None] & below[None, :]


# --- SUAK: strategic under-utilisation for anytime knapsacks


class SUAKState(NamedTuple):
    """Statistics, c minus cost summed over each arm's pulls, and over all of uncertain arms."""

    learnt: ArmStatistics
    margin: Total  # [K]: N_l c − Σ cost of arm l, exactly: floats would cancel in ρ̄_l − c
    slack: Total  # []: c N_p − S_p
    exploring: jax.Array  # bool[]: the last pull was one of an uncertain arm


@pytree
class SUAK(MixturePolicy):
    """SUAK: keeps Σ_{s≤t} c_s ≤ c·t in every round and under-uses the budget to avoid skips.

    Arm l is *uncertain* while :math:`|\\bar\\rho_l - c| \\le 7\\sqrt{1.5 \\ln t / N_l}`. While
    there is one: skip if :math:`S_p + 1 > c N_p` (:math:`S_p, N_p`: cost and number of such
    rounds), else pull the uncertain arm with the fewest pulls. Otherwise take the base of the
    optimistic LP, j above c and k below (or the null arm), from :math:`\\mu^U, \\rho^L = \\bar\\mu
    + \\epsilon, \\bar\\rho - \\epsilon` clipped to [0, 1], :math:`\\epsilon_l = \\sqrt{3 \\ln t /
    N_l}`, and play j with probability

    .. math:: p = \\mathrm{clip}\\Big(\\frac{b - \\bar\\rho_k}{\\bar\\rho_j - \\bar\\rho_k}, \\omega, 1 - \\omega\\Big),
        \\quad b = c t - S_c - \\frac{\\ln t}{\\omega^2}, \\quad \\omega = \\frac{d}{2 + d - c},
        \\quad d = \\min_l \\Big(|\\bar\\rho_l - c| - \\sqrt{1.5 \\ln t / N_l}\\Big).

    Before every pull, skip if :math:`S_c + 1 > c t`, in exact ticks: the constraint is never
    violated.

    Args:
        c: the bound on the average cost, in (0, 1], in cost units per round; taken down to whole
            ticks of 2⁻²⁴.
        horizon: None (anytime, default), or T to put ln T in place of ln t into ε.

    Source: SUAK paper, §3.2, Algorithm 2, Eqs. (4)–(9), App. A.

    Deviations: as printed, N_p counts pulls only, and nothing could be pulled in the first round; here
    it counts skips of this kind too (as the proof does). The test of S_p is made only while some
    arm is uncertain, that of S_c before every pull. Which uncertain arm is pulled is not said
    there. ε with ln t is the proof's, with ln T the text's.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.45, 0.7, 0.8], [0.3, 0.75, 0.8])
        >>> result = jb.simulate(jb.policies.SUAK(c=0.5), jb.environments.WithNullArm(arms),
        ...                      jb.AverageCost(c=0.5, rounds=1000), key=jax.random.key(0), replicates=2)
        >>> float(result.violation.max())
        0.0
    """

    c: ArrayLike = leaf(above=0, at_most=1)
    horizon: ArrayLike = leaf(default=None, integer=True, at_least=1)

    def init(self, spec: FiniteSpec) -> SUAKState:
        margin, learnt = ticks.zero((spec.arms,)), super().init(spec)
        return SUAKState(learnt, margin, ticks.zero(), jnp.bool_(False))

    def update(self, state: SUAKState, key: jax.Array, observation: Observation) -> SUAKState:
        """Book the pull; S_p grows only by pulls of uncertain arms."""
        cost = observation.feedback.cost
        pulled = jax.lax.iota(jnp.int32, state.learnt.pulls.shape[0]) == observation.action
        state = state._replace(
            margin=ticks.add(state.margin, jnp.where(pulled, floor_ticks(self.c) - cost, 0)),
            slack=ticks.add(state.slack, jnp.where(state.exploring, -cost, 0)),
        )
        return super().update(state, key, observation)  # type: ignore[no-any-return]

    def plan(self, state: SUAKState, view: View) -> tuple[SUAKState, Mixture]:
        """Skip, explore, or use the optimistic base."""
        available, log = view.available, log_of(view.round)
        pulls = jnp.maximum(state.learnt.pulls, 1).astype(jnp.float32)
        gap = jnp.abs(ticks.to_float(state.margin)) / pulls  # |ρ̄ − c|
        middle = radius(state.learnt.pulls, 1.5, log)
        uncertain = available & (gap <= 7 * middle)

        explore, one = jnp.any(uncertain), ticks.count(jnp.int32(1))
        # S_p + 1 > c N_p, S_c + 1 > c t
        broke, over = ticks.exceeds(one, state.slack), ticks.exceeds(one, money_left(view))
        counts = explore & (broke | ~over)  # N_p grows
        state = state._replace(
            slack=ticks.add(state.slack, jnp.where(counts, floor_ticks(self.c), 0)),
            exploring=explore & ~broke & ~over,
        )
        d = jnp.min(jnp.where(available, gap - middle, jnp.inf))
        to_explore = alone(fewest(state.learnt.pulls, uncertain))
        main = select_tree(explore, to_explore, self.base(state, view, log, d))
        return state, select_tree(over | (explore & broke), alone(jnp.int32(SKIP)), main)

    def base(self, state: SUAKState, view: View, log: jax.Array, d: jax.Array) -> Mixture:
        """The optimistic base, with weights that under-use the budget."""
        wide = bounds(state.learnt, 3.0, log if self.horizon is None else log_of(self.horizon))
        base = best_mixture(wide.reward_high, wide.cost_low, self.c, and_null(view.available))
        omega = d / (2 + d - self.c)
        spare = ticks.to_float(money_left(view)) - log / omega**2
        cost = jnp.append(means(state.learnt)[1], 0.0)
        ids = jax.lax.iota(jnp.int32, cost.shape[0])
        high, low = (jnp.sum(jnp.where(ids == arm, cost, 0.0)) for arm in (base.high, base.low))
        # One clip serves the three cases of the paper: ω ≤ ½ always, as d ≤ 1.
        share = jnp.clip((spare - low) / (high - low), omega, 1 - omega)
        return base._replace(weight=jnp.where(base.high == base.low, 1.0, share))
