"""Constraints: a total budget, a horizon, an average cost, renewing budgets and their state.

That state is the account of whoever decides (:class:`BudgetState`). An open request is charged its
arm's own bound; when its cost is known, the difference is given back to the period in which it was
decided. So what is known to be left is never more than what is left, and nothing is overspent. The
same functions serve the simulator (:class:`~jaxbandits.policies.InFlight`) and the service
(``jb.live.Agent``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics import knapsack_lp
from jaxbandits._numerics.arrays import ArrayLike, one_of, per_instance, positive
from jaxbandits.core import ticks
from jaxbandits.core.checks import InputError, bad, booleans, numbers, refuse
from jaxbandits.core.protocol import Constraint, Environment, Ledger, Outcome, Status, post
from jaxbandits.core.pytrees import leaf, pytree, select_tree, static
from jaxbandits.core.ticks import Total

LAST_PULLS = ("counts", "forfeits")
_DECIMALS = 6  # digits of the smallest unit in which prices are looked for
_MOST = 2**30  # units of a budget, rounds of a horizon, requests of a traffic

# --- A total budget, a horizon, an average cost


def _of_resources(argument: str, value: Any, environment: Environment, may_be: str) -> np.ndarray:
    """``value``, float64 ``[instance]`` or (d resources) ``[instance, d]``; finite, above 0."""
    core = () if environment.resources is None else (environment.resources,)
    return per_instance(argument, positive(argument, value, may_be), environment.instances, core)


def _money(argument: str, value: Any, environment: Environment, lowest: bool) -> np.ndarray:
    """Whole ticks, ``[instance(, d)]``, of an amount of money; see :func:`in_prices`."""
    may_be = f"a finite number above 0 (at least one tick, {1 / ticks.ONE:.2g}) and at most 2**30"
    units = _of_resources(argument, value, environment, may_be)
    whole = ticks.floor_from_units(np.minimum(units, 2.0**31))
    refuse(argument, units, (whole < 1) | (units > _MOST), may_be)
    costs, prices = environment.listed_costs(), environment.prices()
    if costs is not None:
        by_unit = in_prices(whole, units, costs, lowest, multiples=False)
        if prices is None or (by_unit != whole).any():
            return by_unit
    return whole if prices is None else in_prices(whole, units, prices, lowest)


def in_prices(
    whole: np.ndarray, units: np.ndarray, prices: np.ndarray, lowest: bool, multiples: bool = True
) -> np.ndarray:
    """A budget in the exact ticks of sums of prices, if the prices are known exactly.

    A price is off by up to half a tick, so k of them by k/2: 0.1 is 1,677,722 ticks, ten of which
    are four more than 1.0. What a price is exactly is known where all of them and the budget are
    whole multiples of a decimal unit, such as a cent, and (``multiples``, for prices that never
    vary) where the budget is k times a price, which k/2 ticks decide. The budget is then taken in
    units of the price that was rounded up most, or (``lowest``) down most: all bundles that cost no
    more than it in money, or no less, do so in ticks.
    """
    amount = np.broadcast_to(whole[:, None], (len(whole), *prices.shape[1:]))
    prices, money = np.broadcast_to(prices, amount.shape), np.asarray(units, np.longdouble)[:, None]
    times = np.rint(amount / np.maximum(prices, 1)).astype(np.int64)
    known = multiples & (prices > 0) & (times > 0) & (times < prices)
    known &= abs(times * prices - amount) <= times / 2 + 1
    exact = np.where(known, money * ticks.ONE / np.maximum(times, 1), np.maximum(prices, 1))
    for digits in range(_DECIMALS, 0, -1):  # the largest unit of which all are multiples
        unit = np.longdouble(10) ** -digits
        decimal = np.maximum(np.rint(prices / (ticks.ONE * unit)), 1) * unit
        near = (abs(decimal * ticks.ONE - prices) <= 0.5) | (prices == 0)
        multiple = abs(np.rint(money / unit) * unit - money) <= 2.0**-40 * money
        ratio = np.where(prices > 0, prices / (decimal * ticks.ONE), 1)
        # In a run prices are off by less than a unit
        tells = money * np.ptp(ratio, axis=1, keepdims=True) < unit
        all_fit = (near & multiple & tells).all(axis=1, keepdims=True) & (prices > 0)
        exact, known = np.where(all_fit, decimal * ticks.ONE, exact), known | all_fit
    worth = np.where(known, money * ticks.ONE * prices / exact, amount)
    if lowest:
        least = np.where(known, worth, np.inf).min(axis=1)
        return np.where(known.any(axis=1), np.ceil(least - 1e-3), whole).astype(np.int64)
    return np.floor(worth.max(axis=1) + 1e-3).astype(np.int64)


def _whole_rounds(value: Any, environment: Environment) -> np.ndarray:
    """``value`` as whole rounds ``i32[instance]``, if it is numbers from 1 to 2**30."""
    may_be = "a whole number from 1 to 2**30"
    rounds = per_instance("rounds", positive("rounds", value, may_be), environment.instances)
    refuse("rounds", rounds, (rounds != np.rint(rounds)) | (rounds > _MOST), may_be)
    return rounds.astype(np.int32)


@pytree
class BudgetAndHorizon(Constraint):
    """A budget and a horizon where a cost is one number: runs end when either is used up.

    The clock is the larger of the used shares of money and rounds, in units of money, and the
    benchmark the linear program, both as in :class:`TotalBudget` with ``rounds``. The view tells
    the money that is left. An index policy such as ω-UCB finds the best reward per cost; where the
    optimum is a mixture of arms, its regret grows linearly.

    Args:
        budget, last_pull, rounds: as in :class:`TotalBudget`.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([[0.6, 0.4]], [[0.5, 0.2]])
        >>> limit = jb.BudgetAndHorizon(40.0, last_pull="counts", rounds=60)
        >>> jb.simulate(jb.policies.OmegaUCB(), arms, limit, key=jax.random.key(0), marks=1).rounds.item()
        60
    """

    budget: ArrayLike = leaf()
    last_pull: str = static()
    rounds: ArrayLike = leaf(integer=True)
    resources: int | None = static(default=None)  # set by prepare
    # Set by prepare where a run has several ends: the clock's units for one of each, f32[end]
    pace: ArrayLike = leaf(default=None)

    ends_with: ClassVar[Status] = Status.EXHAUSTED
    clock_name: ClassVar[str] = "spent"
    additive: ClassVar[bool] = True

    def prepare(self, environment: Environment) -> Constraint:
        one_of("last_pull", self.last_pull, LAST_PULLS)
        whole = _money("budget", self.budget, environment, lowest=self.last_pull == "counts")
        rounds = None if self.rounds is None else _whole_rounds(self.rounds, environment)
        ends = ticks.to_units(whole).reshape(len(whole), -1)
        if rounds is not None:
            ends = np.append(ends, rounds[:, None], axis=1)
        pace = (ends[:, :1] / ends).astype(np.float32) if ends.shape[1] > 1 else None
        limits: dict[str, Any] = {"budget": ticks.split(whole), "rounds": rounds, "pace": pace}
        return dataclasses.replace(self, resources=environment.resources, **limits)

    def _first(self, total: Total) -> Total:
        return total if self.resources is None else Total(total.whole[..., 0], total.part[..., 0])

    def end(self) -> Total:
        return self._first(self.budget)

    def ended(self, ledger: Ledger) -> jax.Array:
        spent = ticks.reached(ledger.spent, self.budget)
        spent = spent if self.resources is None else jnp.any(spent)
        return spent if self.rounds is None else spent | (ledger.rounds >= self.rounds)

    def view(self, ledger: Ledger) -> Total | None:
        """Money left (a total, at least 0); of vectors also rounds left, if they are limited."""
        money = ticks.minus(self.budget, ticks.smaller(ledger.spent, self.budget))
        if self.rounds is None or self.resources is None:
            return money
        rounds = ticks.count(jnp.asarray(self.rounds - ledger.rounds))
        return jax.tree.map(jnp.append, money, rounds)

    def charge(self, ledger: Ledger, outcome: Outcome) -> Ledger:
        """Add one round to the account, with the rule for the last pull."""
        if self.last_pull == "counts":
            return post(ledger, outcome)
        over = jnp.any(ticks.exceeds(ticks.add(ledger.spent, outcome.cost), self.budget))
        booked = post(ledger, outcome, earns=~over)
        return booked._replace(spent=ticks.smaller(booked.spent, self.budget))

    def clock(self, ledger: Ledger) -> Total:
        """Money spent; with several ends the largest used share of any, see the class."""
        if self.pace is None:
            return self._first(ledger.spent)
        used, rounds = ticks.to_float(ledger.spent), ledger.rounds.astype(jnp.float32)
        # Products alone, of which float32 makes the same bits in every program.
        if self.resources is None:
            share = jnp.maximum(used, rounds * self.pace[1])  # of many ledgers at once, too
        else:
            used = used if self.rounds is None else jnp.append(used, rounds)
            share = jnp.max(used * self.pace)
        whole = jnp.floor(share)
        part = ((share - whole) * np.float32(ticks.ONE)).astype(jnp.int32)
        # Rounding must not end a run, nor leave one before its end.
        before = ticks.minus(self.end(), ticks.Total(jnp.int32(0), jnp.int32(1)))
        running = ticks.smaller(Total(whole.astype(jnp.int32), part), before)
        return select_tree(self.ended(ledger), self.end(), running)

    def expected_clock(self, ledger: Mapping[str, np.ndarray]) -> np.ndarray:
        """The sum of conditional mean costs; with several ends the clock itself."""
        if self.pace is not None:
            return ledger["clock"]
        spent = ledger["expected_spent"]
        return spent if self.resources is None else spent[..., 0]

    def best_rate(self, reward: np.ndarray, cost: np.ndarray) -> np.ndarray:
        """max_k μ^r_k / μ^c_k, the reward per unit of money of always pulling the best arm.

        With d resources, the value of the fluid LP (max Σ n_k μ^r_k with Σ n_k μ^c_kj ≤ B_j, and Σ
        n_k ≤ T where there is a horizon) per unit of resource 0.
        """
        if self.resources is not None or self.rounds is not None:
            budget = ticks.to_units(ticks.join(self.budget))
            rounds = None if self.rounds is None else np.asarray(self.rounds, np.float64)
            value = knapsack_lp.fluid_values(reward, cost, budget, rounds)
            return value / budget.reshape(len(budget), -1)[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nanmax(np.where(cost > 0, reward / cost, np.nan), axis=-1)


@pytree
class TotalBudget(BudgetAndHorizon):
    """A total budget: runs end when it is spent; the clock is money, the regret is budgeted regret.

    A lane ends as soon as spent ≥ B. The pull that exceeds the budget *counts* with its reward (the
    rule of Heyden et al., KDD 2024) or *forfeits* it (B-Zoom; RCB): then no more than the budget is
    ever paid, and its expected cost is charged to the regret.

    With d resources a lane ends when the first of them is spent. ``rounds`` makes time one more
    resource: a round uses one of T, none is left after T rounds, and the view tells the rounds that
    are left after what is left of the others, ``[d + 1]``.

    A run with several ends has for its clock the largest share that is used of any of them, in
    units of resource 0 (s of its budget),

    .. math:: s = \\max(n/T,\\; \\max_j \\text{spent}_j / B_j),

    which is 1 at every end, and only there. The regret is s times the fluid optimum (``best_rate``
    times the budget of resource 0) minus the reward: in the end that of bandits with knapsacks.

    Args:
        budget: B in (0, 2³⁰] in cost units, scalar or ``[instance]``; rounded down to whole ticks of 2⁻²⁴,
            or in the ticks of prices that never vary, where these and B are whole multiples of a
            cent, say, or B is k times a price: then a run ends as sums of decimals do. With d
            resources ``[d]`` or ``[instance, d]``, each in its own units.
        last_pull: ``"counts"`` or ``"forfeits"``. Required: the papers differ.
        rounds: T in 1 … 2³⁰, scalar or ``[instance]``; None (default): no horizon. Only where costs
            are a vector; for a cost that is one number see :class:`BudgetAndHorizon`.

    Example:
        Money for 40 pulls, tokens for 500 and 60 rounds: the money is gone first.

        >>> import jax
        >>> import jaxbandits as jb
        >>> world = jb.environments.FiniteArms.bernoulli([[0.5, 0.4]], [[[1.0, 0.1], [1.0, 0.2]]])
        >>> limit = jb.TotalBudget([40.0, 100.0], last_pull="counts", rounds=60)
        >>> jb.simulate(jb.policies.FixedSplit([1.0, 1.0]), world, limit, key=jax.random.key(0), marks=1).rounds.item()
        40
    """

    rounds: ArrayLike = leaf(default=None, integer=True)

    def prepare(self, environment: Environment) -> Constraint:
        if self.rounds is not None and environment.resources is None:
            must = "left out where a cost is one number: BudgetAndHorizon limits money and rounds"
            raise bad("rounds", self.rounds, must)
        return super().prepare(environment)


class _RoundClock(Constraint):
    """Rounds are the clock. Declares no capability: its subclasses book in different ways."""

    rounds: ArrayLike
    ends_with: ClassVar[Status] = Status.HORIZON
    clock_name: ClassVar[str] = "rounds"

    def end(self) -> Total:
        return ticks.count(jnp.asarray(self.rounds))

    def clock(self, ledger: Ledger) -> Total:
        return ticks.count(ledger.rounds)

    def expected_clock(self, ledger: Mapping[str, np.ndarray]) -> np.ndarray:
        return ledger["rounds"] * ticks.ONE


@pytree
class Horizon(_RoundClock):
    """A horizon of ``rounds`` rounds, with ordinary regret; costs are only reported.

    Args:
        rounds: T ≥ 1, scalar or ``[instance]``.

    Example:
        >>> import jaxbandits as jb
        >>> jb.Horizon(1000).rounds
        1000
    """

    rounds: ArrayLike = leaf(integer=True)

    additive: ClassVar[bool] = True

    def prepare(self, environment: Environment) -> Self:
        return dataclasses.replace(self, rounds=_whole_rounds(self.rounds, environment))

    def charge(self, ledger: Ledger, outcome: Outcome) -> Ledger:
        return post(ledger, outcome)

    def best_rate(self, reward: np.ndarray, cost: np.ndarray) -> np.ndarray:
        return np.nanmax(reward, axis=-1)


@pytree
class AverageCost(_RoundClock):
    """An average cost of at most c: Σ_{s ≤ u} c_s ≤ c·u after every u ≤ T; rounds are the clock.

    It is only checked: no action is changed. Every round is checked in exact ticks, Σ cost ≤
    ⌊c·2²⁴⌋·u, and the largest violation so far is part of every result (``result.violation``,
    exactly 0 for a policy that keeps the bound). Skips count as rounds. The regret is T·r* −
    reward with r* the value of the fluid LP: it can be below 0 for a policy that overspends, so
    look at the violation first.

    The view reports what may be spent in the next round, c·t − Σ_{s<t} c_s; the horizon reaches a
    policy only through its own constructor.

    Args:
        c: bound on the average cost in (0, 1], scalar or ``[instance]``; rounded down to ticks.
            With d resources ``[d]`` or ``[instance, d]``.
        rounds: T ≥ 1, scalar or ``[instance]``.

    Raises:
        InputError: at :func:`~jaxbandits.simulate`, for c outside (0, 1], for T that is not a whole
            number from 1 to 2³⁰, and for c below every arm's mean cost if there is no null arm.

    Source: "anytime" knapsack constraint of the SUAK paper, §2.

    Example:
        >>> import jaxbandits as jb
        >>> jb.AverageCost(c=0.5, rounds=1000).c
        0.5
    """

    c: ArrayLike = leaf()
    rounds: ArrayLike = leaf(integer=True)

    def prepare(self, environment: Environment) -> Constraint:
        must = "a number in (0, 1], at least one tick of 2**-24"
        c = _of_resources("c", self.c, environment, must)
        whole = ticks.floor_from_units(c)
        refuse("c", c, (whole < 1) | (c > 1), must)
        lowest = np.nanmin(environment.values()[1], axis=1)
        if (short := lowest > c).any():
            may_be = f"at least {lowest[short].flat[0]:g}, the smallest mean cost, or the environment a WithNullArm"
            raise bad("c", float(c[short].flat[0]), f"{may_be}(arms)")
        rounds = _whole_rounds(self.rounds, environment)
        return dataclasses.replace(self, c=whole.astype(np.int32), rounds=rounds)

    def audit(self) -> dict[str, Total]:
        """The unspent part of c·t so far, and the largest violation."""
        return {"slack": ticks.zero(self.c.shape), "violation": ticks.zero(self.c.shape)}

    def view(self, ledger: Ledger) -> Total | None:
        """c·t − (spent before round t): what round t may spend."""
        return ticks.add(ledger.audit["slack"], self.c)

    def charge(self, ledger: Ledger, outcome: Outcome) -> Ledger:
        slack = ticks.add(ledger.audit["slack"], self.c - outcome.cost)
        over = ticks.minus(ticks.zero(slack.part.shape), slack)
        worst = ticks.larger(ledger.audit["violation"], over)
        return post(ledger, outcome)._replace(audit={"slack": slack, "violation": worst})

    def best_rate(self, reward: np.ndarray, cost: np.ndarray) -> np.ndarray:
        """r*: the best mean reward per round of a mixture of arms and rest with mean cost ≤ c."""
        return knapsack_lp.fluid_values(reward, cost, ticks.to_units(self.c), np.ones(len(reward)))


# --- Budgets that renew: their state


class Allowance(NamedTuple):
    """d budgets before a round; ``whole`` and ``part`` are the total that is left."""

    whole: jax.Array  # i32[d]
    part: jax.Array  # i32[d]
    granted: Total  # [d]: for this period; all periods so far where what is left is carried over
    amount: Total  # [d]: what every period brings
    since: jax.Array  # i32[d]: first round of this period; None in a service, which counts by time
    requests: jax.Array  # i32[d]: expected until the period ends, this one included; at least 1
    total: jax.Array  # i32[d]: expected in the whole period; at least 1
    carries: jax.Array  # bool[d]: is what is left carried over?
    # Set by who decides: i32[K], ticks, the most that a pull of each arm can cost; bool[d, K],
    # which budget pays for which arm
    bound: jax.Array | None = None
    scope: jax.Array | None = None


class BudgetState(NamedTuple):
    """What has been charged to d budgets in their current periods."""

    # Known costs and held bounds, of this period; of all periods where what is left is carried
    # over.
    charged: Total  # [d]
    since: jax.Array  # i32[d]: first round of the period that it knows of
    carries: jax.Array  # bool[d]


def no_charges(budgets: int) -> BudgetState:
    """The state before round 1, with nothing charged."""
    since, carries = jnp.zeros((budgets,), jnp.int32), jnp.zeros((budgets,), bool)
    return BudgetState(ticks.zero((budgets,)), since, carries)


def renewed(state: BudgetState, allowance: Allowance) -> BudgetState:
    """The state in the allowance's period: earlier charges are dropped, or carried over."""
    keep = allowance.carries | (allowance.since == state.since)
    charged = Total(jnp.where(keep, state.charged.whole, 0), jnp.where(keep, state.charged.part, 0))
    return BudgetState(charged, allowance.since, allowance.carries)


def remaining(state: BudgetState, allowance: Allowance) -> Allowance:
    """The allowance less what was charged in its period."""
    money = ticks.minus(allowance.granted, state.charged)
    return allowance._replace(whole=money.whole, part=money.part)


def affordable(allowance: Allowance, bound: jax.Array, scope: jax.Array) -> jax.Array:
    """Which arms are affordable at their bounds (ticks) by all of their budgets, ``bool[K]``."""
    # An arm whose bound is 0 needs no money, also where a budget is overspent.
    needed = ticks.add(ticks.zero((1, bound.shape[0])), bound[None, :])
    short = ticks.exceeds(needed, Total(allowance.whole[:, None], allowance.part[:, None]))
    return ~jnp.any(scope & short & (bound > 0)[None, :], axis=0)


def charge(state: BudgetState, cost: jax.Array, pays: jax.Array) -> BudgetState:
    """Charge ``cost`` (ticks) to the budgets that pay, ``bool[d]``."""
    return state._replace(charged=ticks.add(state.charged, jnp.where(pays, cost, 0)))


def settle(
    state: BudgetState, round: jax.Array, difference: jax.Array, pays: jax.Array
) -> BudgetState:
    """Refund ``difference`` (bound − cost, ticks) to the period of ``round``, if it is not over."""
    return charge(state, -difference, pays & (state.carries | (round >= state.since)))


def pays_for(scope: jax.Array, arm: jax.Array) -> jax.Array:
    """Which budgets pay for an arm, ``bool[d]``."""
    ids = jax.lax.iota(jnp.int32, scope.shape[1])
    return jnp.any(scope & (ids == arm)[None, :], axis=1)


# --- Budgets that renew: their accountant


@pytree
class Renewing(_RoundClock):
    """Budgets that renew each period; every round is a request, and a slot (an hour, say) has some.

    Budget j grants ``amount[j]`` in every period of ``every[j]`` slots. What is left at its end is
    lost, or carried over. The environment's resource j is what budget j pays (see ``groups`` of
    :class:`~jaxbandits.environments.Delayed`). No action is altered: what is overspent, in any
    round and period, is ``result.violation``, in exact ticks (0 for ``InFlight`` with bounds that
    hold).

    Rounds are the clock, so the regret is T·r* − reward. r* is the value of a fluid LP: the best
    mixture of arms and rest whose mean cost is at most what all periods together grant, per
    request. Renewals only restrict further, so no policy can have a larger mean reward; if traffic
    changes from period to period no policy attains it.

    Args:
        amount: what each budget grants per period, ``[d]`` or ``[instance, d]``, above 0; rounded
            as a :class:`TotalBudget` is.
        every: the length of its period in slots, ``[d]``.
        requests: how many requests each slot has, ``[slot]`` or ``[instance, slot]``: the actual
            traffic.
        expected: the forecast of requests for pacers, same shape. Default:
            ``requests``.
        carry_over: whether what is left is carried over, ``[d]``.

    Example:
        >>> import jaxbandits as jb
        >>> day = jb.Renewing(amount=[10.0, 1.0], every=[24, 1], requests=[20] * 48)  # so much a day, so much an hour
        >>> day.carry_over
        False
    """

    amount: ArrayLike = leaf()
    every: ArrayLike = leaf(integer=True)
    requests: ArrayLike = leaf(integer=True)
    expected: Any = dataclasses.field(default=None)
    carry_over: Any = dataclasses.field(default=False)

    def prepare(self, environment: Environment) -> Constraint:
        amounts = np.atleast_1d(numbers("amount", self.amount))
        if environment.resources != amounts.shape[-1]:
            must = f"one with {amounts.shape[-1]} resources (see `groups` of Delayed)"
            has = f"{count} resources" if (count := environment.resources) else "one cost"
            raise bad("environment", has, must)
        whole = _money("amount", amounts, environment, lowest=False)
        requests = self._table("requests", self.requests, environment.instances)
        expected = requests
        if self.expected is not None:
            expected = self._table("expected", self.expected, environment.instances)
        if expected.shape != requests.shape:
            raise bad("expected", expected.shape, f"of the shape of requests, {requests.shape}")
        every = np.atleast_1d(numbers("every", self.every))
        whole_slots = ((every >= 1) & (every == np.rint(every))).all()
        if every.shape not in ((1,), amounts.shape[-1:]) or not whole_slots:
            must = f"whole numbers of slots, at least 1: one, or {amounts.shape[-1]}"
            raise bad("every", self.every, must)
        every = np.broadcast_to(every, amounts.shape[-1:])
        carries = np.broadcast_to(booleans("carry_over", self.carry_over), every.shape)
        return _tabulated(whole, every.astype(np.int64), requests, expected, carries)

    @staticmethod
    def _table(name: str, value: Any, instances: int) -> np.ndarray:
        table = np.atleast_2d(numbers(name, value))
        wrong = ~(np.isfinite(table) & (table >= 0) & (table == np.rint(table)))
        refuse(name, table, wrong, "whole numbers of requests, at least 0")
        if table.ndim != 2 or table.shape[0] not in (1, instances) or not table.shape[1]:
            must = f"[slot] or [{instances}, slot]"
            raise InputError(f"{name}: shape {np.shape(value)} given; it must be {must}")
        if (table.sum(1) < 1).any() or (table.sum(1) > _MOST).any():
            raise bad(name, float(table.sum(1).max()), "from 1 to 2**30 requests in all")
        return np.broadcast_to(table, (instances, table.shape[1])).astype(np.int64)

    def _unprepared(self, *_: Any) -> Any:
        must = "pass it to simulate, which prepares it"
        raise InputError(f"constraint: Renewing was not prepared; {must}")

    end = charge = clock = expected_clock = best_rate = _unprepared  # type: ignore[assignment]  # _Tables does it


@pytree
class _Tables(_RoundClock):
    """:class:`Renewing` as tables ``[instance, slot, …]``: what applies in a round's slot."""

    ends: ArrayLike = leaf()  # i32[I, S]: last round of the slot
    expected: ArrayLike = leaf()  # i32[I, S]
    later: ArrayLike = leaf()  # i32[I, S, d]: expected after this slot in the period
    whole: ArrayLike = leaf()  # i32[I, S, d]: expected in the period
    since: ArrayLike = leaf()  # i32[I, S, d]: first round of the period
    granted: ArrayLike = leaf()  # Total [I, S, d]
    amount: ArrayLike = leaf()  # Total [I, d]
    carries: ArrayLike = leaf()  # bool[I, d]
    grants: ArrayLike = leaf()  # Total [I, d]: of all periods

    def prepare(self, environment: Environment) -> Constraint:
        return self

    def end(self) -> Total:
        return ticks.count(jnp.asarray(self.ends)[..., -1])

    def audit(self) -> dict[str, Total]:
        """What each budget paid in this period, and the largest overspending in any period."""
        nothing = ticks.zero(self.carries.shape)
        return {"charged": nothing, "violation": nothing}

    def _slot(self, round: jax.Array) -> jax.Array:
        return jnp.sum((self.ends < round).astype(jnp.int32), dtype=jnp.int32)

    def _allowance(self, round: jax.Array) -> Allowance:
        slot = jnp.minimum(self._slot(round), self.ends.shape[0] - 1)
        before = jnp.where(slot > 0, self.ends[jnp.maximum(slot - 1, 0)], 0)
        granted = Total(self.granted.whole[slot], self.granted.part[slot])
        slot_rest = jnp.maximum(self.expected[slot] - (round - before - 1), 0)
        return Allowance(
            whole=granted.whole,
            part=granted.part,
            granted=granted,
            amount=self.amount,
            since=self.since[slot],
            requests=jnp.maximum(self.later[slot] + slot_rest, 1),
            total=jnp.maximum(self.whole[slot], 1),
            carries=self.carries,
        )

    def _state(self, ledger: Ledger, allowance: Allowance) -> BudgetState:
        slot = self._slot(jnp.maximum(ledger.rounds, 1))
        before = self.since[jnp.minimum(slot, self.ends.shape[0] - 1)]
        return renewed(BudgetState(ledger.audit["charged"], before, self.carries), allowance)

    def view(self, ledger: Ledger) -> Allowance:  # type: ignore[override]
        """What is left of every budget, and how many requests are expected until it renews."""
        allowance = self._allowance(ledger.rounds + 1)
        return remaining(self._state(ledger, allowance), allowance)

    def charge(self, ledger: Ledger, outcome: Outcome) -> Ledger:
        allowance = self._allowance(ledger.rounds + 1)
        charged = ticks.add(self._state(ledger, allowance).charged, outcome.cost)
        worst = ticks.larger(ledger.audit["violation"], ticks.minus(charged, allowance.granted))
        return post(ledger, outcome)._replace(audit={"charged": charged, "violation": worst})

    def best_rate(self, reward: np.ndarray, cost: np.ndarray) -> np.ndarray:
        """r*, as :class:`Renewing` defines it."""
        requests = np.asarray(self.ends)[:, -1:]
        rate = ticks.to_units(ticks.join(self.grants)) / requests
        return knapsack_lp.fluid_values(reward, cost, np.minimum(rate, 1.0), np.ones(len(reward)))


def pays_for_the_clock(constraint: Constraint) -> bool:
    """Whether a prepared constraint's clock is the cost of pulls, so mean costs are its mean."""
    return constraint.clock_name == "spent" and getattr(constraint, "pace", None) is None


def rounds_of(constraint: Constraint) -> np.ndarray | None:
    """Host: latest end of a prepared constraint, ``[instance]`` rounds; None if only money."""
    if constraint.clock_name == "rounds":
        return ticks.join(jax.tree.map(np.asarray, constraint.end())) // ticks.ONE
    return getattr(constraint, "rounds", None)


class Pace(NamedTuple):
    """What a constraint allows a round to spend, for bounds on what a round can earn."""

    budget: np.ndarray | None  # f64[instance, J], J = 0: a horizon; None: money alone is the clock
    units: np.ndarray  # f64[instance]: of the clock in a round, or 1 where money is the clock


def a_round(constraint: Constraint) -> Pace | None:
    """Host: the pace of a prepared constraint; None for a user's class."""
    spend: np.ndarray | None = None
    if isinstance(constraint, Horizon):
        spend = np.zeros((np.size(constraint.rounds), 0))
    elif isinstance(constraint, AverageCost):
        spend = ticks.to_units(constraint.c).reshape(len(np.asarray(constraint.c)), -1)
    elif isinstance(constraint, _Tables):
        ends = np.asarray(constraint.ends)[:, -1:]
        spend = ticks.to_units(ticks.join(constraint.grants)) / ends
    if spend is not None:
        return Pace(spend, np.ones(len(spend)))
    if isinstance(constraint, BudgetAndHorizon):
        budget = ticks.to_units(ticks.join(constraint.budget))
        if constraint.rounds is None:
            one_cost = constraint.resources in (None, 1)
            return Pace(None, np.ones(len(budget))) if one_cost else None
        budget = budget.reshape(len(budget), -1) / np.asarray(constraint.rounds)[:, None]
        return Pace(budget, budget[:, 0])
    return None


def _tabulated(
    amount: np.ndarray,
    every: np.ndarray,
    requests: np.ndarray,
    expected: np.ndarray,
    carries: np.ndarray,
) -> _Tables:
    """Tables from checked ``amount[I, d]`` (ticks), ``every[d]`` and traffic ``[I, S]``."""

    def granted(amount: np.ndarray, times: np.ndarray) -> Total:
        """``amount · times``, at most what a total can be: an infinite amount must not wrap."""
        limit = ticks.floor_from_units(2.0**31) - 1
        return ticks.split(np.where(amount > limit // times, limit, amount * times))

    slots, budgets = requests.shape[1], every.size
    ends = np.cumsum(requests, axis=1)
    ahead = np.concatenate([np.zeros_like(ends[:, :1]), np.cumsum(expected, axis=1)], axis=1)
    period = np.arange(slots)[:, None] // every[None, :]  # [S, d]
    first = period * every
    last = np.minimum(first + every, slots)  # one behind it
    starts = np.concatenate([np.zeros_like(ends[:, :1]), ends], axis=1)
    times = np.where(carries[None, :], period + 1, 1)
    return _Tables(
        ends=ends.astype(np.int32),
        expected=np.minimum(expected, _MOST).astype(np.int32),
        later=(ahead[:, last] - ahead[:, 1:, None]).astype(np.int32),
        whole=(ahead[:, last] - ahead[:, first]).astype(np.int32),
        since=(starts[:, first] + 1).astype(np.int32),
        granted=granted(amount[:, None, :], times[None]),
        amount=ticks.split(amount),
        carries=np.broadcast_to(carries, (requests.shape[0], budgets)).copy(),
        grants=granted(amount, (period[-1] + 1)[None, :]),
    )
