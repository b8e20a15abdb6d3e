"""Bandits with knapsacks: policies for several budgeted resources, of which time may be one.

They read what is left of every resource from the view. Where the constraint has a horizon
(``TotalBudget(…, rounds=T)``), time is one more resource, of which every round uses 1 of T. A world
of one scalar cost is a world of one resource; a constraint that tells no totals is refused. K arms,
d resources, m = d, or d + 1 with time.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics.arrays import ArrayLike, positive
from jaxbandits._numerics.knapsack_lp import Vertex, simplex
from jaxbandits.core import streams, ticks
from jaxbandits.core.arm_statistics import Arms, ArmStatistics, as_floats, beside, counted
from jaxbandits.core.capabilities import RESTS, why_not
from jaxbandits.core.checks import InputError, refuse
from jaxbandits.core.protocol import Chosen, Observation, Policy, View
from jaxbandits.core.pytrees import leaf, pytree, select_tree, static
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.streams import Role
from jaxbandits.core.ticks import Total
from jaxbandits.policies.base import (
    ArmTotals,
    IndexPolicy,
    check_null_arm,
    fewest,
    gumbel,
    largest,
    money_left,
)
from jaxbandits.policies.knapsack import EpsilonFirstState
from jaxbandits.policies.pacers import best_or_rest, net_of, next_price, pace_of_rounds
from jaxbandits.policies.soft import Posterior, one_more_trial, posterior_draws
from jaxbandits.policies.ucb import lower_bound, ratio_of, upper_bound

_RESOURCE = 33  # the role of the draw of a resource
_THETA_COST = 64  # and of the posterior draws of resource 0, 1, …: roles from here to 255
_MOST_DRAWN = 256 - _THETA_COST

# --- Confidence bounds, which every policy here may be given


class Confidence:
    """An upper bound U of each mean reward and a lower bound L of each mean cost, in [0, 1].

    Attributes:
        rests: True if an arm's bounds do not change while it is not pulled, in whatever round: they
            are remembered.
    """

    rests: ClassVar[bool] = False

    @abstractmethod
    def upper(self, arms: Arms) -> jax.Array:
        """U, ``f32[K]``."""

    @abstractmethod
    def lower(self, arms: Arms) -> jax.Array:
        """L, ``f32[K]``, or ``f32[K, d]`` as the costs are."""


def rad(mean: jax.Array, n: jax.Array, c_rad: jax.Array) -> jax.Array:
    """rad(ν, N) = √(C_rad ν / N) + C_rad / N."""
    return jnp.sqrt(c_rad * mean / n) + c_rad / n


@pytree
class RadBounds(Confidence):
    """U = min(r̄ + rad(r̄, n), 1), L = max(c̄ − rad(c̄, n), 0).

    The radius is rad(ν, N) = √(C_rad ν / N) + C_rad / N.

    Args:
        c_rad: C_rad > 0. The theory wants an order of ln(d T K); with the default ½ least was lost
            of the values tried (docs/findings/knapsacks.md).

    Source: Badanidiyuru, Kleinberg, Slivkins, JACM 65, 2018, §2; the radius of UCB-BwK too.

    Example:
        >>> from jaxbandits.policies import RadBounds
        >>> RadBounds(c_rad=1.0).c_rad
        1.0
    """

    c_rad: ArrayLike = leaf(default=0.5, above=0)

    rests: ClassVar[bool] = True

    def upper(self, arms: Arms) -> jax.Array:
        mean = arms.mean_reward
        return jnp.minimum(mean + rad(mean, arms.n, self.c_rad), 1)

    def lower(self, arms: Arms) -> jax.Array:
        mean = arms.mean_cost
        return jnp.maximum(mean - rad(mean, beside(arms.n, mean.ndim - arms.n.ndim), self.c_rad), 0)


@pytree
class WilsonBounds(Confidence):
    """U = ω⁺(r̄), L = ω⁻(c̄): Wilson's bounds with z = √(2ρ ln t), as in ω-UCB.

    Args:
        rho: ρ > 0; with the default ⅛ least was lost of the values tried
            (docs/findings/knapsacks.md).

    Source: Heyden et al., KDD 2024, Theorem 1. That they stand in policies for several resources is
    ours.

    Example:
        >>> from jaxbandits.policies import WilsonBounds
        >>> WilsonBounds().rho
        0.125
    """

    rho: ArrayLike = leaf(default=0.125, above=0)

    def upper(self, arms: Arms) -> jax.Array:
        return upper_bound(arms.reward, arms.reward_rest, arms.n, 2 * self.rho * jnp.log(arms.t))

    def lower(self, arms: Arms) -> jax.Array:
        n, t = (beside(x, arms.cost.ndim - arms.n.ndim) for x in (arms.n, arms.t))
        return lower_bound(arms.cost, arms.cost_rest, n, 2 * self.rho * jnp.log(t))


# --- What they share: amounts, bounds, statistics


class BudgetAmounts(NamedTuple):
    """Budgets and what is left, ``f32[m]``, in their units; the rounds of a horizon are last."""

    budget: jax.Array
    rest: jax.Array
    timed: bool


def totals_left(view: View, resources: int) -> Total:
    """What is left, ``[m]``; refuses, before a run, constraints that do not report totals."""
    money = money_left(view)
    if not isinstance(money, Total):
        must = "it must report totals to spend, as TotalBudget does"
        raise InputError(f"constraint: one with renewing budgets given; {must}")
    money = Total(jnp.atleast_1d(money.whole), jnp.atleast_1d(money.part))
    if (told := money.part.shape[0]) not in (resources, resources + 1):
        must = f"{resources}, one for each resource, or one more for time"
        raise InputError(f"constraint: {told} totals reported; there must be {must}")
    return money


def budgets_now(
    budget: Total, view: View, timed_for: Policy | None = None
) -> tuple[Total, BudgetAmounts]:
    """The budgets ``[d + 1]``, from the view of round 1, and what is left now.

    ``timed_for`` is who needs a horizon among them.
    """
    places = budget.part.shape[0]
    money = totals_left(view, places - 1)
    count = money.part.shape[0]
    if timed_for is not None and count < places:
        needs = f"{type(timed_for).__name__} needs one, as in TotalBudget([…], rounds=T)"
        raise InputError(f"constraint: no horizon given; {needs}")
    # Only round 1 shows whole budgets, later views what is left of them: they are kept in the state.
    now = jax.tree.map(lambda x: jnp.pad(x, (0, places - count)), money)
    budget = select_tree(view.round == 1, now, budget)
    whole = ticks.to_float(budget)[:count]
    return budget, BudgetAmounts(whole, ticks.to_float(money), timed=count == places)


def resources_of(spec: FiniteSpec) -> int:
    """d, the number of resources; one scalar cost is one resource."""
    return 1 if spec.resources is None else spec.resources


class KnapsackState(NamedTuple):
    """Statistics, and the budgets."""

    learnt: Any  # ArmStatistics; () where nothing is learnt
    budget: Total  # [d + 1]: as the view of round 1 told them; the last is of rounds, 0 where there is no end of them


class _ArmsOfSeveral(ArmTotals):
    """Statistics of K arms, d resources; the state has ``learnt`` and ``budget``."""

    def check(self, spec: FiniteSpec) -> None:
        """Check the spec; it may have any number of resources."""

    def init(self, spec: FiniteSpec) -> Any:
        return KnapsackState(super().init(spec), ticks.zero((resources_of(spec) + 1,)))

    def select_while_open(self, state: Any, key: jax.Array, view: View, open: jax.Array) -> Chosen:
        after, arm = self.select(self.with_learnt(state, counted(state.learnt, open)), key, view)
        return self.with_learnt(after, state.learnt), arm


def pulled(learnt: ArmStatistics, round: jax.Array) -> Arms:
    """Statistics as floats, costs ``[K, d]``; an unpulled arm counts as one pull of zeros."""
    statistics = learnt._replace(pulls=jnp.maximum(learnt.pulls, 1))
    if statistics.cost.part.ndim == 1:
        statistics = statistics._replace(cost=jax.tree.map(lambda x: x[:, None], statistics.cost))
    return jax.lax.optimization_barrier(as_floats(statistics, round))


def fresh_first(state: Any, view: View, then: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(each arm once in index order, then the given one; is this a later round?)."""
    fresh = (state.learnt.pulls == 0) & view.available
    by_rule = ~jnp.any(fresh)
    return jnp.where(by_rule, then, fewest(state.learnt.pulls, fresh)), by_rule


# --- PD-BwK (Badanidiyuru et al., JACM 65, 2018): multiplicative weights as prices of the resources

# Of a unit: coarser than rounding, so that hardly a bound falls on its other side elsewhere
_FINE = 2**14


class PricedState(NamedTuple):
    """Statistics, budgets, and the sums that determine the weights."""

    learnt: ArmStatistics
    budget: Total  # [d + 1]
    used: Total  # [d]: Σ L of the arms played by their index, each rounded to 2⁻¹⁴
    rounds: jax.Array  # i32[]: how many those were
    bounds: Any = ()  # (U f32[K], L f32[d, K]) by the statistics, where they rest


@pytree
class PrimalDualBwK(_ArmsOfSeveral):
    """PD-BwK: the arm with the largest optimistic reward per cost at the resources' current prices,

    .. math:: \\arg\\max_k \\frac{U_k}{\\sum_j v_j\\, L_{kj}\\, B / B_j}, \\qquad
        v_j \\leftarrow v_j (1 + \\varepsilon)^{L_{kj} B / B_j}, \\quad
        \\varepsilon = a \\sqrt{\\ln m / B}, \\quad B = \\min_j B_j,

    over the m resources, of which time, where there is a horizon, is the last: L = 1 of T rounds.
    All weights begin at 1 when each arm was pulled once; k is the arm just played. +∞ where an arm
    uses nothing; exact ties at random. With one resource and no horizon the weights cancel, and
    with ``RadBounds`` this is :class:`~jaxbandits.policies.PDBwK`, which leaps.

    Args:
        bounds: U and L, :class:`RadBounds` (default, the paper's) or :class:`WilsonBounds`.
        rate: a ≥ 0, default 1, the paper's.

    Source: §5, Algorithm 2 (PrimalDualBwK), from memory.

    Deviations: the paper scales costs so that all budgets are equal and then takes the radius; here
    the bounds are those of costs in their own units, which are tighter where a budget is larger
    than the least.

    Example:
        Two budgets and 2,000 rounds, of which the best mixture uses all up at once: shares of the
        fluid optimum. The last one knows the means.

        >>> import jax
        >>> import jaxbandits as jb
        >>> world = jb.environments.FiniteArms.bernoulli([[0.9, 0.4]], [[[0.6, 0.5], [0.1, 0.5]]])
        >>> limit = jb.TotalBudget([600.0, 1000.0], last_pull="counts", rounds=2000)
        >>> policies = [jb.policies.PrimalDualBwK(), jb.policies.UCBBwK(), jb.policies.EpsilonFirstLP()]
        >>> policies += [jb.policies.ThompsonLP(), jb.policies.KnapsackOracle([0.9, 0.4], [[0.6, 0.5], [0.1, 0.5]])]
        >>> result = jb.simulate(policies, world, limit, key=jax.random.key(0), replicates=20, marks=1)
        >>> [f"{x / float(result.best_rate[0] * 600):.3f}" for x in result.reward.values.mean((1, 2, 3))]
        ['0.943', '0.949', '0.992', '0.994', '0.994']
    """

    bounds: Confidence = leaf(default=RadBounds())
    rate: ArrayLike = leaf(default=1.0, at_least=0)

    def init(self, spec: FiniteSpec) -> PricedState:
        state, used = super().init(spec), ticks.zero((resources_of(spec),))
        priced = PricedState(state.learnt, state.budget, used, jnp.int32(0))
        return self.with_learnt(priced, state.learnt)

    def with_learnt(
        self, state: PricedState, learnt: ArmStatistics, arm: jax.Array | None = None
    ) -> PricedState:
        """Update the bounds too; if they rest, only those of the pulled arm."""
        state = state._replace(learnt=learnt)
        if why_not(self.bounds, RESTS, Confidence) is not None:
            return state
        if arm is None:
            return state._replace(bounds=self.limits(learnt, jnp.int32(1)))
        # One arm learnt: its row is a table of one arm, and its new bounds go where the old ones were.
        row = jax.tree.map(lambda x: x.at[arm].get(mode="clip")[None], learnt)
        is_arm = jax.lax.iota(jnp.int32, learnt.pulls.shape[0]) == arm
        both = zip(state.bounds, self.limits(row, jnp.int32(1)), strict=True)
        return state._replace(bounds=tuple(jnp.where(is_arm, new, old) for old, new in both))

    def limits(self, learnt: ArmStatistics, round: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(U ``f32[K]``, L ``f32[d, K]``) of all arms, or of the pulled one, with the same bits."""
        arms = pulled(learnt, round)
        # As in `base.evaluate_arms`
        wide = jax.tree.map(lambda x: jnp.broadcast_to(x, arms.n.shape), self.bounds)
        wide, arms = jax.lax.optimization_barrier((wide, arms))
        columns = zip(arms.cost.T, arms.cost_rest.T, strict=True)
        lower = [wide.lower(arms._replace(cost=x, cost_rest=rest)) for x, rest in columns]
        return wide.upper(arms), jnp.stack(lower)

    def select(self, state: PricedState, key: jax.Array, view: View) -> Chosen:
        budget, amounts = budgets_now(state.budget, view)
        state = state._replace(budget=budget)
        score, lower = self.score(state, view.round, amounts)
        arm, by_index = fresh_first(state, view, largest(score, key, view))
        use = jnp.where(by_index, lower.at[:, arm].get(mode="fill", fill_value=0), 0)
        used = ticks.add(state.used, jnp.rint(use * _FINE).astype(jnp.int32) * (ticks.ONE // _FINE))
        return state._replace(used=used, rounds=state.rounds + by_index.astype(jnp.int32)), arm

    def score(
        self, state: PricedState, round: jax.Array, amounts: BudgetAmounts
    ) -> tuple[jax.Array, jax.Array]:
        """(U/Σ v L B/B_j ``f32[K]``, L ``f32[d, K]``); weights scaled against overflow."""
        upper, lower = state.bounds or self.limits(state.learnt, round)
        used = ticks.to_float(state.used)
        policy, budgets, used = jax.lax.optimization_barrier((self, amounts.budget, used))
        m = budgets.shape[0]
        # All resources in units of the scarcest budget, as the paper scales them
        smallest = jnp.min(budgets)
        rate = jnp.log1p(policy.rate * jnp.sqrt(np.float32(np.log(m)) / smallest))
        if amounts.timed:
            used = jnp.append(used, state.rounds.astype(jnp.float32))
        share = smallest / budgets
        log = rate * share * used
        # A common factor of all weights changes no choice: over the largest none overflows.
        price = jnp.exp(log - jnp.max(log)) * share
        uses = jnp.zeros_like(upper) + (price[m - 1] if amounts.timed else 0)
        # One after the other: a reduction may add in another order in another program
        for j in range(lower.shape[0]):
            uses = uses + price[j] * lower[j]
        return jnp.where(uses > 0, upper / uses, jnp.inf), lower


@pytree
class PDBwK(IndexPolicy):
    """PD-BwK with money as the only resource, where :class:`PrimalDualBwK` reduces to an index.

    .. math:: \\frac{\\min(\\bar r_k + \\mathrm{rad}(\\bar r_k, n_k), 1)}
        {\\max(\\bar c_k - \\mathrm{rad}(\\bar c_k, n_k), 0)}, \\qquad
        \\mathrm{rad}(\\nu, N) = \\sqrt{C_{rad}\\, \\nu / N} + C_{rad} / N;

    +∞ where the denominator is 0. With one resource and no horizon the dual weights are one common
    factor, whose rate ε = √(ln d / B) is 0 besides, so nothing of them remains. Leaps: the index
    does not depend on t at all.

    Args:
        c_rad: C_rad > 0, a constant of order ln(dTm) that the paper leaves open;
            :meth:`for_budget` gives that of the BTS paper's comparison, which needs the budget.

    Source: §2 and §5 of the paper; its radius is rebuilt from the text and its Claim 4.6.

    Example:
        >>> import jaxbandits as jb
        >>> round(float(jb.policies.PDBwK.for_budget(1e4, arms=10).c_rad), 6)
        2.878231
    """

    c_rad: ArrayLike = leaf(above=0)

    rests: ClassVar[bool] = True

    @classmethod
    def for_budget(cls, budget: Any, arms: Any) -> PDBwK:
        """With C_rad = ¼ ln(B K), at least 0.1; arrays ``[instance]`` give a value per instance."""
        c_rad = np.maximum(0.25 * np.log(positive("budget", budget) * positive("arms", arms)), 0.1)
        return cls(c_rad if c_rad.ndim == 0 else np.atleast_2d(c_rad))

    def score(self, arms: Arms) -> jax.Array:
        bounds = RadBounds(self.c_rad)
        return ratio_of(bounds.upper(arms), bounds.lower(arms))


# --- A draw from the solution of the fluid LP at means that are believed


class _ByProgram(Policy):
    """Draw the arm from the fluid LP. Write :meth:`believed`; the state has ``budget``."""

    plays: ClassVar[type] = FiniteSpec
    update_budgets: bool

    @abstractmethod
    def believed(self, state: Any, key: jax.Array, view: View) -> tuple[jax.Array, jax.Array]:
        """(μ ``f32[K]``, c ``f32[K, d]``) of this round."""

    def share(self) -> Any:
        """1 − ε, the share of the budgets that the program may use."""
        return np.float32(1)

    def program(self, state: Any, key: jax.Array, view: View) -> tuple[Any, jax.Array, Vertex]:
        """(the state with its budgets, μ, the solution of this round's program)."""
        budget, amounts = budgets_now(state.budget, view)
        state = state._replace(budget=budget)
        mu, cost = self.believed(state, key, view)
        room = amounts.rest if self.update_budgets else amounts.budget
        # One row of the program for each resource; only the ratios of the right sides count, near 1
        # where float32 is finest.
        rows, limit = [cost[:, j] for j in range(cost.shape[1])], room / jnp.max(room)
        if amounts.timed:
            # With a horizon it is the program of a mean round, in which time is Σ x ≤ 1.
            rows.append(jnp.ones_like(mu))
            limit = jnp.append(self.share() * room[:-1] / room[-1], 1)
        mu, *arguments = jax.lax.optimization_barrier((mu, jnp.stack(rows), limit, view.available))
        return state, mu, simplex(mu, *arguments)

    def select(self, state: Any, key: jax.Array, view: View) -> Chosen:
        state, mu, vertex = self.program(state, key, view)
        uniform = streams.uniform(streams.policy_words(key, view.round, Role.MIX)[0])
        empty = ~jnp.any(vertex.level > 0)  # nothing brings anything, or nothing more fits
        return state, jnp.where(empty, largest(mu, key, view), draw_arm(vertex, uniform))


def draw_arm(vertex: Vertex, uniform: jax.Array) -> jax.Array:
    """Draw an arm with probability proportional to its level, by ``uniform``, in index order."""
    places, level = range(vertex.arm.shape[0]), vertex.level

    def summed(includes: Any) -> jax.Array:  # one after the other, as in any other program
        return sum((jnp.where(includes(j), level[j], 0) for j in places), start=jnp.float32(0))

    goal = uniform * summed(lambda j: level[j] > 0)
    # Whatever rounding makes of the sums
    choice = last = jnp.max(jnp.where(level > 0, vertex.arm, -1))
    for i in places:
        exceeds = (level[i] > 0) & (summed(lambda j, i=i: vertex.arm[j] <= vertex.arm[i]) > goal)
        choice = jnp.where(exceeds & (vertex.arm[i] < choice), vertex.arm[i], choice)
    return jnp.minimum(choice, last)


# --- UCB-BwK (Agrawal, Devanur, EC 2014; Operations Research 67, 2019)


@pytree
class UCBBwK(_ByProgram, _ArmsOfSeveral):
    """UCB-BwK: each arm once, then in every round a draw from the solution of the optimistic LP,

    .. math:: \\max_x \\sum_k x_k U_k \\ \\text{ s.t. } \\ \\sum_k x_k L_{kj} \\le (1 - \\epsilon)\\, B_j / T
        \\ \\forall j, \\quad \\sum_k x_k \\le 1, \\quad x \\ge 0.

    Arm k is drawn with probability :math:`x_k / \\sum_i x_i`: no round is sat out, since a round
    saved now is worth no more than one at the end. Without a horizon the right sides are B_j, the
    last row is missing, and ε changes nothing.

    Args:
        bounds: U and L, :class:`RadBounds` (default, the paper's) or :class:`WilsonBounds`.
        epsilon: ε from 0 (default) to below 1. The paper's is of order √(γ d / B), γ of order ln(d
            T K), which is above 1 for small budgets.
        update_budgets: True to put what is left over the rounds left in place of B_j/T; default
            False, as the paper.

    Source: EC 2014, §3, from memory.

    Deviations: the rest of the rounds that the LP leaves unused is not sat out.

    :class:`PrimalDualBwK` has an example.
    """

    bounds: Confidence = leaf(default=RadBounds())
    epsilon: ArrayLike = leaf(default=0.0, at_least=0, at_most=1 - 2.0**-10)
    update_budgets: bool = static(default=False)

    def share(self) -> Any:
        return 1 - self.epsilon

    def believed(self, state: Any, key: jax.Array, view: View) -> tuple[jax.Array, jax.Array]:
        arms = pulled(state.learnt, view.round)
        policy = jax.lax.optimization_barrier(self)
        return policy.bounds.upper(arms), policy.bounds.lower(arms)

    def select(self, state: Any, key: jax.Array, view: View) -> Chosen:
        state, arm = super().select(state, key, view)
        return state, fresh_first(state, view, arm)[0]


# --- ε-first (Tran-Thanh et al., AAAI 2010)


@pytree
class EpsilonFirstLP(_ByProgram, _ArmsOfSeveral):
    """ε-first for several resources: explores in turn, then draws from an LP at the sample means.

    It pulls the arms in turn until the share ε of some budget, time included, is spent. Then the
    means stay fixed, and it draws from the LP's solution at them and at what is left per round.

    With one resource the LP's solution is the arm of the best ratio, as in
    :class:`~jaxbandits.policies.EpsilonFirst`.

    Args:
        epsilon: ε in (0, 1], default 0.1.
        update_budgets: False to put B_j/T in place of what is left over the rounds left.

    Source: AAAI 2010 for one resource; the LP in its second phase is ours.

    Deviations: as :class:`~jaxbandits.policies.EpsilonFirst`; an arm that exploration did not reach
    is not played.

    :class:`PrimalDualBwK` has an example.
    """

    epsilon: ArrayLike = leaf(default=0.1, above=0, at_most=1)
    update_budgets: bool = static(default=True)

    def init(self, spec: FiniteSpec) -> EpsilonFirstState:
        state = super().init(spec)
        return EpsilonFirstState(state.learnt, state.budget, jnp.bool_(True))

    def update(self, state: Any, key: jax.Array, observation: Observation) -> Any:
        return select_tree(state.exploring, super().update(state, key, observation), state)

    def believed(self, state: Any, key: jax.Array, view: View) -> tuple[jax.Array, jax.Array]:
        """(r̄, c̄); an arm never pulled is taken to earn nothing."""
        arms = pulled(state.learnt, view.round)
        return arms.mean_reward, arms.mean_cost

    def select(self, state: Any, key: jax.Array, view: View) -> Chosen:
        state, arm = super().select(state, key, view)
        amounts = budgets_now(state.budget, view)[1]
        money = amounts.budget - amounts.rest, self.epsilon * amounts.budget
        spent, share = jax.lax.optimization_barrier(money)
        exploring = jnp.all(spent < share)
        in_turn = fewest(state.learnt.pulls, view.available)
        return state._replace(exploring=exploring), jnp.where(exploring, in_turn, arm)


# --- Thompson sampling (Ferreira, Simchi-Levi, Wang, Operations Research 66, 2018)


@pytree
class ThompsonLP(_ByProgram):
    """Thompson sampling with an LP: draws means θ, then an arm from the solution of the LP at θ,

    .. math:: \\max_x \\sum_k x_k \\theta^r_k \\ \\text{ s.t. } \\ \\sum_k x_k \\theta^{c_j}_k \\le b_j \\ \\forall j,
        \\quad \\sum_k x_k \\le 1, \\quad x \\ge 0,

    :math:`b_j = B_j / T` (TS-fixed), or what is left over the rounds left (TS-update). Arm k with
    probability :math:`x_k / \\sum_i x_i`. Posteriors are Beta(1 + successes, 1 + failures) of a
    Bernoulli trial of every outcome, as in :class:`~jaxbandits.policies.BudgetedThompson`. No
    initial pulls, no parameter. Without a horizon the right sides are the budgets and the last row
    is missing.

    Args:
        update_budgets: True (default) for TS-update, False for TS-fixed.

    Raises:
        InputError: before anything runs, for more than 192 resources, or a constraint that tells no
            totals to spend.

    Source: Operations Research 66, 2018, Algorithms 1 (fixed) and 2 (update) and their form for
    bandits with knapsacks; from memory.

    Deviations: no round is sat out (the paper's price ∞, of which there may be a draw, is missing).

    :class:`PrimalDualBwK` has an example.
    """

    update_budgets: bool = static(default=True)

    def check(self, spec: FiniteSpec) -> None:
        given, many = f"{spec.resources} resources", resources_of(spec) > _MOST_DRAWN
        refuse("environment", given, many, f"at most {_MOST_DRAWN} for ThompsonLP")

    def init(self, spec: FiniteSpec) -> KnapsackState:
        d, none = resources_of(spec), jnp.zeros((spec.arms,), jnp.int32)
        learnt = Posterior(none, none, jnp.zeros((spec.arms, d), jnp.int32))
        return KnapsackState(learnt, ticks.zero((d + 1,)))

    def update(self, state: Any, key: jax.Array, observation: Observation) -> Any:
        return state._replace(learnt=one_more_trial(state.learnt, key, observation))

    def believed(self, state: Any, key: jax.Array, view: View) -> tuple[jax.Array, jax.Array]:
        """(θ^r, θ^c), the sampled means for the linear program."""
        pulls, rewards, costs = state.learnt

        def theta(role: int, successes: jax.Array) -> jax.Array:
            return posterior_draws(key, view.round, role, successes, pulls)[: pulls.shape[0]]

        drawn = [theta(_THETA_COST + j, costs[:, j]) for j in range(costs.shape[1])]
        return theta(Role.THETA_REWARD, rewards), jnp.stack(drawn, axis=1)


# --- The oracle: the LP at the true means


@pytree
class KnapsackOracle(_ByProgram):
    """An oracle: draws every round from the solution of the fluid LP at the *true* means.

    Its mean reward is near the fluid optimum (``best_rate`` times the budget of resource 0), which
    no policy exceeds.

    Args:
        mean_reward: μ, ``[K]`` (per instance ``[1, instance, K]``).
        mean_cost: c, ``[K, d]`` (per instance ``[1, instance, K, d]``); for a world of one scalar
            cost d = 1.
        update_budgets: True (default) to put what is left over the rounds left on the right side,
            False for B_j/T.

    :class:`PrimalDualBwK` has an example.
    """

    mean_reward: ArrayLike = leaf(at_least=0, at_most=1, core=1)
    mean_cost: ArrayLike = leaf(at_least=0, at_most=1, core=2)
    update_budgets: bool = static(default=True)

    def check(self, spec: FiniteSpec) -> None:
        shapes = {"mean_reward": (spec.arms,), "mean_cost": (spec.arms, resources_of(spec))}
        for name, shape in shapes.items():
            given, must = np.shape(getattr(self, name)), f"{list(shape)}, leading axes aside"
            other = given[-len(shape) :] != shape
            refuse(f"KnapsackOracle.{name}", f"shape {given}", other, must)

    def init(self, spec: FiniteSpec) -> KnapsackState:
        return KnapsackState((), ticks.zero((resources_of(spec) + 1,)))

    def update(self, state: Any, key: jax.Array, observation: Observation) -> Any:
        return state

    def believed(self, state: Any, key: jax.Array, view: View) -> tuple[jax.Array, jax.Array]:
        return jnp.asarray(self.mean_reward), jnp.asarray(self.mean_cost)


# --- LagrangeBwK (Immorlica et al., JACM 69, 2022): two players that know nothing of means


class LagrangeState(NamedTuple):
    """The weights of both players, the budgets, and the second player's last resource."""

    arms: jax.Array  # f32[K]: G̃, less its largest
    available: jax.Array  # bool[K]: the arms that were open in the last round
    resources: jax.Array  # f32[d + 1]: Σ of the losses, less the least
    resource: jax.Array  # i32[]: of the last round
    budget: Total  # [d + 1]


@pytree
class LagrangeBwK(Policy):
    """LagrangeBwK: EXP3.P over arms against Hedge over resources in a game with payoff

    .. math:: \\mathcal{L}(k, j) = r_k + 1 - \\frac{T_0}{B_j}\\, c_{kj},

    of which an arm wants much and a resource little; time (T of which every round uses 1) is one of
    the m resources. Every round an arm k and a resource j are drawn; EXP3.P is told 𝓛(k, j), Hedge
    𝓛(k, ·), both scaled to [0, 1] by :math:`g = (\\mathcal{L} - 1 + M) / (1 + M)`, M = T_0 / min_j
    B_j.

    EXP3.P: :math:`p_k = (1-\\gamma)\\, e^{\\eta \\tilde G_k} / \\sum_i e^{\\eta \\tilde G_i} +
    \\gamma / K`, :math:`\\tilde G_i \\leftarrow \\tilde G_i + (g\\, 1\\{i = k\\} + \\beta) / p_i`,
    with :math:`\\beta = \\sqrt{\\ln(K/\\delta) / (TK)}`, :math:`\\eta = 0.95 \\sqrt{\\ln K /
    (TK)}`, :math:`\\gamma = \\min(1.05 \\sqrt{K \\ln K / T}, 1)`. Hedge: weights :math:`e^{-\\eta'
    \\sum g_j}`, :math:`\\eta' = \\sqrt{8 \\ln m / T}`.

    Designed for adversarial environments; if means are constant, confidence bounds lose far less.

    Args:
        ratio: T_0 / T > 0, default 1, the paper's for constant means; against an adversary T_0 is a
            guess.
        delta: δ in (0, 1), default 0.05.

    Raises:
        InputError: before anything runs, for values outside their ranges, or a constraint without a
            horizon (``TotalBudget(…, rounds=T)``).

    Source: JACM 69, 2022, Algorithm 1 and its instance with EXP3.P and Hedge, from memory; rates of
    EXP3.P by Bubeck and Cesa-Bianchi 2012, Theorem 3.3, and of Hedge for a known horizon.

    Deviations: where outcomes come later (``InFlight``), one meets the resource that was named
    last.

    :class:`PrimalDualBwK` has an example.
    """

    ratio: ArrayLike = leaf(default=1.0, above=0)
    delta: ArrayLike = leaf(default=0.05, above=0, at_most=1)

    plays: ClassVar[type] = FiniteSpec

    def init(self, spec: FiniteSpec) -> LagrangeState:
        d = resources_of(spec)
        even, every = jnp.zeros((spec.arms,)), jnp.ones((spec.arms,), bool)
        return LagrangeState(even, every, jnp.zeros((d + 1,)), jnp.int32(0), ticks.zero((d + 1,)))

    def probabilities(self, state: LagrangeState, available: jax.Array) -> jax.Array:
        """p of EXP3.P, ``f32[K]``."""
        arms = jnp.sum(available, dtype=jnp.int32).astype(jnp.float32)
        horizon = ticks.to_float(state.budget)[-1]
        eta = 0.95 * jnp.sqrt(jnp.log(arms) / (horizon * arms))
        gamma = jnp.minimum(1.05 * jnp.sqrt(arms * jnp.log(arms) / horizon), 1)
        # The largest may be closed
        gain = state.arms - jnp.max(jnp.where(available, state.arms, -jnp.inf))
        weight = jnp.where(available, jnp.exp(eta * gain), 0)
        return jnp.where(available, (1 - gamma) * weight / whole_sum(weight) + gamma / arms, 0)

    def update(
        self, state: LagrangeState, key: jax.Array, observation: Observation
    ) -> LagrangeState:
        # Of the round in which it was drawn
        available, feedback = state.available, observation.feedback
        state, policy = jax.lax.optimization_barrier((state, self))
        p, budget = policy.probabilities(state, available), ticks.to_float(state.budget)
        arms = jnp.sum(available, dtype=jnp.int32).astype(jnp.float32)
        cost = jnp.append(ticks.ticks_to_float(jnp.atleast_1d(feedback.cost)), 1)
        reach = policy.ratio * budget[-1] / budget
        largest_reach = jnp.max(reach)
        # g [m], the payoff of the pulled arm against each resource, scaled to [0, 1]
        payoff = ticks.ticks_to_float(feedback.reward) - reach * cost + largest_reach
        gain = payoff / (1 + largest_reach)
        won = jnp.sum(jnp.where(jax.lax.iota(jnp.int32, gain.shape[0]) == state.resource, gain, 0))
        beta_ = jnp.sqrt(jnp.log(arms / policy.delta) / (budget[-1] * arms))
        is_arm = jax.lax.iota(jnp.int32, p.shape[0]) == observation.action
        told = (jnp.where(is_arm, won, 0) + beta_) / jnp.where(available, p, 1)
        total = state.arms + jnp.where(available, told, 0)
        # Of both sums only differences count: kept small, float32 keeps them fine.
        total = total - jnp.max(jnp.where(available, total, -jnp.inf))
        losses = state.resources + gain
        return state._replace(arms=total, resources=losses - jnp.min(losses))

    def select(self, state: LagrangeState, key: jax.Array, view: View) -> Chosen:
        budget, amounts = budgets_now(state.budget, view, timed_for=self)
        state, policy = jax.lax.optimization_barrier((state._replace(budget=budget), self))
        p = policy.probabilities(state, view.available)
        noise = gumbel(key, view.round, p.shape[0])
        scores = jnp.where(view.available, jnp.log(p), -jnp.inf) + noise
        # Hedge draws a resource: as many as lie below the coin, summed one after the other.
        m = state.resources.shape[0]
        rate = jnp.sqrt(np.float32(8 * np.log(m)) / amounts.budget[-1])
        weight = jnp.exp(-rate * state.resources)
        coin = streams.uniform(streams.policy_words(key, view.round, _RESOURCE)[0])
        goal = coin * sum(weight[j] for j in range(m))
        resource = sum(
            (sum(weight[i] for i in range(j + 1)) <= goal).astype(jnp.int32) for j in range(m - 1)
        )
        state = state._replace(resource=jnp.int32(0) + resource, available=view.available)
        return state, largest(scores, key, view)


def whole_sum(x: jax.Array) -> jax.Array:
    """Σ of numbers in [0, 1], ``[K]``, in whole ticks, so padding zeros do not change its bits."""
    whole = jnp.floor(x * ticks.ONE).astype(jnp.int32)
    parts = whole >> 12, whole & 0xFFF
    high, low = (jnp.sum(y, dtype=jnp.int32).astype(jnp.float32) for y in parts)
    return high * np.float32(2.0**-12) + low * np.float32(2.0**-24)


# --- Dual mirror descent with learnt means (Balseiro, Lu, Mirrokni, Operations Research 71, 2023)


class DescentState(NamedTuple):
    """Statistics, budgets, prices, and what was left at the last action."""

    learnt: ArmStatistics
    budget: Total  # [d + 1]
    price: jax.Array  # f32[d]: λ; below 0: not set yet
    money: Total  # [d]


@pytree
class DualMirrorDescent(_ArmsOfSeveral):
    """Pull the arm with the largest optimistic reward minus optimistic costs at the current prices,

    .. math:: \\arg\\max_k\\ U_k - \\sum_j \\lambda_j L_{kj}, \\qquad
        \\lambda_j \\leftarrow \\lambda_j \\exp\\Big(\\frac{\\eta}{\\sqrt T}
        \\Big(\\frac{c_j}{\\tau_j} - 1\\Big)\\Big), \\qquad \\tau_j = \\frac{\\text{left of }
        j}{\\text{rounds left}},

    or the null arm, which has 0, if none is above 0; c is what the round before cost. Each arm once
    first. It is mirror descent with the entropy on the dual of the fluid LP. One step is at most a
    factor e; λτ stays at most 1, where its optimum lies. Without a null arm a dear world could
    never be paced, hence it is required (:class:`~jaxbandits.environments.WithNullArm`).
    :class:`~jaxbandits.policies.PricePacer` is its sibling for budgets that renew.

    Args:
        bounds: U and L, :class:`WilsonBounds` (default) or :class:`RadBounds`.
        eta: η > 0, default 1.
        start: the first price, as λτ, above 0; default 0.1.

    Raises:
        InputError: before anything runs, for values outside their ranges, an environment without
            null arm, or a constraint without a horizon (``TotalBudget(…, rounds=T)``).

    Source: Operations Research 71, 2023, Algorithm 1 with the entropy; there rewards and costs are
    known before a decision. Here bounds of learnt means stand in their place, and the pace is that
    of the money left: ours.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([[0.9, 0.4]], [[[0.6, 0.5], [0.1, 0.5]]])
        >>> world = jb.environments.WithNullArm(arms)
        >>> limit = jb.TotalBudget([600.0, 1000.0], last_pull="counts", rounds=2000)
        >>> policy = jb.policies.DualMirrorDescent()
        >>> result = jb.simulate(policy, world, limit, key=jax.random.key(0), replicates=20, marks=1)
        >>> f"{float(result.reward.mean()) / float(result.best_rate[0] * 600):.3f} of the fluid optimum"
        '0.979 of the fluid optimum'
    """

    bounds: Confidence = leaf(default=WilsonBounds())
    eta: ArrayLike = leaf(default=1.0, above=0)
    start: ArrayLike = leaf(default=0.1, above=0, at_most=1)

    def check(self, spec: FiniteSpec) -> None:
        check_null_arm(self, spec)

    def init(self, spec: FiniteSpec) -> DescentState:
        state, d = super().init(spec), resources_of(spec)
        unset = jnp.full((d,), -1, jnp.float32)
        return DescentState(state.learnt, state.budget, unset, ticks.zero((d,)))

    def select(self, state: DescentState, key: jax.Array, view: View) -> Chosen:
        budget, amounts = budgets_now(state.budget, view, timed_for=self)
        now = jax.tree.map(lambda x: x[:-1], totals_left(view, state.price.shape[0]))
        paid = ticks.to_float(ticks.minus(state.money, now))
        arms = pulled(state.learnt, view.round)
        policy, before, paid, room, every = jax.lax.optimization_barrier(
            (self, state.price, paid, amounts.rest, amounts.budget)
        )
        # The price moves by what the last round paid, against the even pace of what is left.
        target = pace_of_rounds(room)
        eta = policy.eta / jnp.sqrt(every[-1])
        after = next_price(jnp.minimum(before, 1 / target), paid, target, eta, policy.start)
        price = jnp.where(before < 0, policy.start / target, after)
        net = net_of(policy.bounds.upper(arms), price, policy.bounds.lower(arms))
        arm, _ = best_or_rest(net, key, view, jnp.bool_(True))
        state = state._replace(budget=budget, price=price, money=now)
        return state, fresh_first(state, view, arm)[0]
