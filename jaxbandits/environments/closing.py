"""Arms that close: when sold out, when their own money is spent, or by a schedule of rounds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics.arrays import ArrayLike, one_of
from jaxbandits._numerics.knapsack_lp import solved
from jaxbandits.constraints import LAST_PULLS, Horizon, TotalBudget, in_prices
from jaxbandits.core import ticks
from jaxbandits.core.capabilities import own_method
from jaxbandits.core.checks import InputError, numbers, refuse
from jaxbandits.core.protocol import NEVER, Constraint, Feedback, Possible, Pulled, unknown
from jaxbandits.core.pytrees import leaf, pytree, static
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.ticks import Total
from jaxbandits.environments.finite import AddressedArms, AroundWorld
from jaxbandits.environments.table import RequestTable

_MOST_ROUND = 2**30


class Sold(NamedTuple):
    """The state of arms with their own money: pulls and money spent."""

    pulls: jax.Array  # i32[K]
    spent: Total  # [K]


@pytree
class Stocked(AddressedArms, AroundWorld):
    """Arms with a limited number of pulls, their own budgets, or a schedule of open rounds.

    Arm k is open in round t if

    .. math:: n_k < m_k, \\qquad c_k(1) + \\dots + c_k(n_k) < b_k, \\qquad \\text{and the schedule says so for } t.

    Policies see only open arms (``view.available``), and a pull of a closed one
    ends the lane as INVALID. A closed arm keeps its statistics. If no arm is open the round passes:
    nothing is pulled or paid, and the clock of rounds continues. If none will open again the lane
    ends with the status CLOSED. With a null arm (``WithNullArm(Stocked.of(…))``) the policy rests
    instead. If nothing closes, the bits are those of the inner world.

    Build one with :meth:`of`. ``regret`` is against the best that can be bought
    (:meth:`benchmarks`).

    Source: capped and sleeping arms; Kleinberg, Niculescu-Mizil, Sharma, Regret bounds for sleeping
    experts and bandits, Machine Learning 80, 2010 (UCB1 among the arms that are open is their
    AUER).

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.6, 0.5, 0.3], [0.5, 0.25, 0.6])
        >>> world = jb.environments.Stocked.of(arms, pulls=[60, 80, 500])
        >>> budget = jb.TotalBudget(100.0, last_pull="counts")
        >>> result = jb.simulate(jb.policies.OmegaUCB(rho=0.25), world, budget, key=jax.random.key(0), marks=1)
        >>> result.final["pulls"].ravel().tolist(), round(world.most(budget), 3)
        ([60, 80, 76], 101.0)
    """

    arms: Any = leaf()  # AddressedArms, or a RequestTable, which is played round by round
    stock: ArrayLike = leaf(integer=True)  # i32[I, K]: m
    purse: Total | None = leaf(default=None)  # [I, K]: b in ticks
    # i32[I, S]: the first round of each part of the schedule
    starts: ArrayLike = leaf(default=None, integer=True)
    shown: ArrayLike = leaf(default=None)  # bool[I, S, K]: which arms are open in it
    last_pull: str = static(default="counts")

    # Its benchmarks sit rounds out where that pays, so that they hold with a null arm.
    may_wait: ClassVar[bool] = True

    @classmethod
    def of(
        cls,
        world: AddressedArms | RequestTable,
        pulls: Any = None,
        money: Any = None,
        shown: Any = None,
        at: Any = (),
        last_pull: str = "counts",
    ) -> Self:
        """Limit a world's arms; at least one limit must be given.

        Args:
            world: arms whose outcomes are addressed, such as
                :class:`~jaxbandits.environments.FiniteArms`; or a
                :class:`~jaxbandits.environments.RequestTable`.
            pulls: m, the most pulls of each arm: whole numbers of at least 0 (∞: no limit), one for
                all, ``[K]`` or ``[instance, K]``.
            money: b > 0, what each arm may cost in all (∞: no limit), same shapes. One cost only.
            shown: which arms are open in each part of the schedule, ``[part, K]`` or ``[instance,
                part, K]``. The last part has no end.
            at: the first rounds of all parts but the first, increasing, ``[part − 1]`` or with
                instances before them.
            last_pull: ``"counts"``: the pull that reaches an arm's money counts in full;
                ``"forfeits"``: one that goes beyond it earns nothing and costs what is left of it.
        """
        kind, is_table = type(world).__name__, isinstance(world, RequestTable)
        base, *methods = (RequestTable, "open") if is_table else (AddressedArms, "open", "opening")
        closes = not isinstance(world, base) or own_method(world, base, *methods) is not None
        must = "arms that never close: addressed arms, such as FiniteArms, or a RequestTable"
        refuse("world", kind, closes, must)
        shape = world.instances, world.spec.arms
        untold = np.shape(world.values()[0]) != shape
        must = "one that states the means of each of its arms, such as FiniteArms"
        refuse("world", kind, untold, must)
        if pulls is None and money is None and shown is None:
            raise InputError("pulls, money, shown: none given; at least one must be given")
        stock = _per_arm("pulls", np.inf if pulls is None else pulls, shape)
        wrong = (stock < 0) | (np.isfinite(stock) & (stock != np.rint(stock)))
        refuse("pulls", stock, wrong, "whole numbers of at least 0, or infinity: no limit")
        purse = None
        if money is not None:
            amount = _per_arm("money", money, shape)
            refuse("money", amount, ~(amount > 0), "above 0, or infinity: no limit")
            amount = np.minimum(amount, 2.0**30)
            whole, prices = ticks.floor_from_units(amount), world.prices()
            if prices is not None and prices.shape == whole.shape:  # each arm by its own price
                by_arm = whole.ravel(), amount.ravel(), prices.reshape(-1, 1)
                whole = in_prices(*by_arm, last_pull == "counts").reshape(whole.shape)
            purse = ticks.split(whole)
        starts = table = None
        if shown is not None:
            table = np.asarray(shown)
            fits = table.dtype == np.bool_ and table.ndim in (2, 3) and table.shape[-1] == shape[1]
            given = f"{table.dtype}{list(table.shape)}"
            refuse("shown", given, not fits, f"bool[part, {shape[1]}], or one per instance")
            table = np.broadcast_to(table, (shape[0], *table.shape[-2:])).copy()
            starts = first_rounds(at, shape[0], table.shape[1])
        stock = np.minimum(stock, NEVER).astype(np.int32)
        return cls(world, stock, purse, starts, table, last_pull)

    @property
    def addressed(self) -> bool:  # type: ignore[override]
        """True if no arm has its own money: then pulls and the round determine the open arms."""
        return self.purse is None and getattr(self.arms, "addressed", False)

    @property
    def world(self) -> Any:
        return self.arms

    @property
    def spec(self) -> FiniteSpec:
        return self.arms.spec

    @property
    def idle_rounds(self) -> int:
        return 0 if self.starts is None else int(np.max(self.starts))

    def check(self) -> None:
        super().check()
        one_of("last_pull", self.last_pull, LAST_PULLS)
        several = self.purse is not None and self.spec.resources is not None
        given = f"a world of {self.spec.resources} costs"
        refuse("money", given, several, "left out unless an arm has one cost")

    def available(self) -> jax.Array:
        return self.arms.available()

    def means(self, arm: jax.Array) -> tuple[jax.Array, jax.Array]:
        return self.arms.means(arm)

    def outcome(self, key: jax.Array, arm: jax.Array, n: jax.Array) -> tuple[jax.Array, jax.Array]:
        return self.arms.outcome(key, arm, n)

    def opening(self, arm: jax.Array, n: jax.Array, round: jax.Array) -> jax.Array:
        """By stock and schedule; :meth:`open` also checks an arm's own money."""
        open_ = n < self.stock[arm]
        return open_ if self.starts is None else open_ & self.shown[self._part(round), arm]

    def open(self, state: Any, round: jax.Array) -> jax.Array:
        if self.purse is None:
            return super().open(state, round)  # type: ignore[return-value]
        return super().open(state.pulls, round) & ~self._is_empty(state)  # type: ignore[operator]

    def _is_empty(self, state: Sold) -> jax.Array:
        return ticks.reached(state.spent, jax.tree.map(lambda x: x[:], self.purse))

    def _part(self, round: jax.Array) -> jax.Array:
        return jnp.sum((self.starts[:] <= round).astype(jnp.int32), dtype=jnp.int32) - 1

    def opens_next(self, state: Any, round: jax.Array) -> jax.Array:
        """The first round of a later part that opens an arm which is closed but not sold out."""
        if self.starts is None:
            return jnp.int32(NEVER)
        pulls = state if self.purse is None else state.pulls
        sold = (pulls >= self.stock[:]) | ~self.available()
        if self.purse is not None:
            sold = sold | self._is_empty(state)
        starts, table = self.starts[:], self.shown[:]
        opens = jnp.any(table & (~table[self._part(round)] & ~sold)[None], axis=1)
        return jnp.min(jnp.where(opens & (starts > round), starts, NEVER))

    def start(self) -> Any:
        pulls = jnp.zeros((self.spec.arms,), jnp.int32)
        return pulls if self.purse is None else Sold(pulls, ticks.zero(pulls.shape))

    def summary(self, state: Any) -> dict[str, jax.Array]:
        return {"pulls": state if self.purse is None else state.pulls}

    def pull(self, state: Any, action: jax.Array, key: jax.Array, round: jax.Array) -> Pulled:
        arm = jnp.clip(action, 0, self.spec.arms - 1)
        pulls = state if self.purse is None else state.pulls
        pulls, outcome, feedback, empty = self.arms.pull(pulls, action, key, round)
        outcome = outcome._replace(valid=outcome.valid & self.open(state, round)[arm])
        if self.purse is None:
            return pulls, outcome, feedback, empty
        purse, spent = jax.tree.map(lambda x: x[arm], (self.purse, state.spent))
        rest = ticks.minus(purse, spent)
        reward, cost = feedback
        if self.last_pull == "forfeits":
            beyond = ticks.exceeds(ticks.add(ticks.zero(), cost), rest)
            # What is left is less than a cost here, so it is the part of one unit.
            reward, cost = jnp.where(beyond, 0, reward), jnp.where(beyond, rest.part, cost)
            expected = jnp.where(beyond, 0, outcome.expected_reward)
            outcome = outcome._replace(reward=reward, cost=cost, expected_reward=expected)
        is_arm = jax.lax.iota(jnp.int32, self.spec.arms) == arm
        spent = ticks.add(state.spent, jnp.where(is_arm, cost, 0))
        return Sold(pulls, spent), outcome, Feedback(reward, cost), empty

    def most(self, constraint: Constraint, instance: int = 0) -> float:
        """Host: the most that an instance can earn by a constraint's end (:meth:`benchmarks`)."""
        ready = constraint.prepare(self)
        end = ticks.to_units(ticks.join(jax.tree.map(np.asarray, ready.end())))[:, None]
        value = self.benchmarks(ready, end)["moving"]
        return float(value(np.array([instance]), end[[instance]]).item())

    def _most_pulls(self) -> np.ndarray:
        """Host: the most pulls of each arm that can earn, in the mean, ``[instance, arm]``."""
        stock = np.asarray(self.stock)
        limit = np.where(stock == NEVER, np.inf, stock.astype(np.float64))
        if self.purse is None:
            return limit
        _, cost = self.values()
        purse = ticks.join(jax.tree.map(np.asarray, self.purse))
        steps = getattr(self.arms, "cost_steps", lambda: (1, ticks.ONE))()
        step, largest = (np.broadcast_to(np.maximum(x, 1), purse.shape) for x in steps)
        # Before the last pull less than the purse is used, and both are whole numbers of steps.
        used = (-(-purse // step) - 1) * step + largest
        with np.errstate(divide="ignore", invalid="ignore"):
            pulls = ticks.to_units(used) / cost
        if self.last_pull == "forfeits":  # by the last pull, where costs are 0 or one step
            pulls = pulls - ((largest == step) & (purse % step > 0))
        return np.where(purse < 2**30 * ticks.ONE, np.minimum(limit, pulls), limit)

    def benchmarks(self, constraint: Constraint, clock: np.ndarray) -> Mapping[str, Possible]:
        """Host: the most that could be earned, from the tangent of V at a mark.

        ``"moving"``: the value of

        .. math:: V(u) = \\max_{x \\ge 0} \\sum_{s,k} x_{sk} \\mu_k \\quad\\text{with}\\quad
            \\sum_{s,k} x_{sk} c_k \\le u, \\quad \\sum_s x_{sk} \\le \\min(m_k, b'_k / c_k), \\quad
            \\sum_k x_{sk} \\le L_s,

        :math:`x_{sk}` pulls of arm k in part s of :math:`L_s` rounds, 0 where it is closed, and
        :math:`b'_k` the most of its money that can be used: by Wald's identity the mean number of
        pulls is the mean money used by :math:`c_k`, and the last pull may go beyond :math:`b_k`, by
        less than one cost. Without a schedule that is the greedy knapsack: arms by falling
        :math:`\\mu_k / c_k`, each until it is sold out; with rounds as the clock c = 1. ``"fixed"``:
        the best single arm. V is concave, and what a lane has pulled is one of its x, with the
        clock at its conditional mean: so no lane has a regret below 0 where stock or a schedule
        closes arms. (An arm's money is reached by random costs: there the mean of lanes has none.)

        Args:
            constraint: prepared. For others than :class:`~jaxbandits.Horizon` and
                :class:`~jaxbandits.TotalBudget` with one cost, and where there are contexts, the
                values are NaN, and so are regrets.
            clock: in units, ``[instance, mark]``.
        """
        is_solved = isinstance(constraint, (TotalBudget, Horizon)) and self.resources is None
        if self.spec.context is not None or not is_solved:
            return {"moving": unknown, "fixed": unknown}
        (reward, cost), limit = self.values(), self._most_pulls()
        price = cost if isinstance(constraint, TotalBudget) else np.ones_like(cost)
        lengths = None if self.starts is None else np.diff(np.asarray(self.starts), append=np.inf)

        def earned(arms: Any) -> np.ndarray:
            """(V, slope) of some arms, ``[instance, mark, 2]``; one that is none earns nothing."""
            r, c, m = reward[:, arms], price[:, arms], limit[:, arms]
            if lengths is None:
                return bought(r, c, m, clock)
            shown = np.asarray(self.shown)[..., arms] & ~np.isnan(r)[:, None]
            every = zip(r, c, m, clock, zip(lengths, shown, strict=True), strict=True)
            return np.stack([bought(*instance) for instance in every])

        best, alone = earned(slice(None)), earned([0])
        for k in range(1, reward.shape[1]):  # one by one: all at once would fill the memory
            one = earned([k])
            alone = np.where(one[..., :1] > alone[..., :1], one, alone)
        tables = {"moving": best, "fixed": alone}
        return {name: partial(_tangent, table, clock) for name, table in tables.items()}


def _tangent(
    table: np.ndarray, at: np.ndarray, instance: np.ndarray, clock: np.ndarray
) -> np.ndarray:
    """Upper bound on concave V: its tangent at mark ``at``; ``table`` has (V, slope) there."""
    value, slope = np.moveaxis(table[instance], -1, 0)
    return value + slope * (clock - at[instance])


def first_rounds(at: Any, instances: int, parts: int) -> np.ndarray:
    """First rounds ``i32[instance, part]`` from those of all parts but the first."""
    later = numbers("at", at) if np.size(at) else np.zeros((0,))
    misfit = later.shape not in ((parts - 1,), (instances, parts - 1))
    must = f"[{parts - 1}] or [{instances}, {parts - 1}], one for each part but the first"
    refuse("at", f"shape {np.shape(at)}", misfit, must)
    first = np.concatenate([np.ones((*later.shape[:-1], 1)), later], axis=-1)
    wrong = (np.diff(first) < 1) | (later != np.rint(later)) | ~(later <= _MOST_ROUND)
    refuse("at", later, wrong, "increasing whole numbers from 2 to 2**30")
    return np.broadcast_to(first, (instances, parts)).astype(np.int32)


def _per_arm(name: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    table = np.asarray(values, np.float64)
    wrong = table.shape not in ((), shape, shape[1:]) or bool(np.isnan(table).any())
    must = f"one number, or numbers of the shape {list(shape[1:])} or {list(shape)}"
    refuse(name, values, wrong, must)
    return np.broadcast_to(table, shape)


def bought(
    reward: np.ndarray,
    cost: np.ndarray,
    limit: np.ndarray,
    clock: np.ndarray,
    parts: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """(V, slope) of :meth:`Stocked.benchmarks` for arms ``[…, K]`` at ``clock[…, mark]``.

    ``parts`` are lengths ``[S]`` and who is open, ``[S, K]``: for one instance. V is a broken line
    where no schedule says who is open, or says how many rounds there are only; else a linear
    program is solved for each clock.
    """
    open_parts = [] if parts is None else np.flatnonzero(parts[1].any(axis=1)).tolist()
    if parts is None:
        free, widths, slopes = _by_ratio(reward, cost, limit)
    elif len(open_parts) == 1 and np.isinf(limit[open_arms := parts[1][open_parts[0]]]).all():
        free, widths, slopes = _by_round(
            reward[open_arms], cost[open_arms], parts[0][open_parts[0]]
        )
    else:
        return _scheduled(reward, cost, limit, clock, *parts)
    first = np.zeros((*widths.shape[:-1], 1))
    ends = np.concatenate([first, np.cumsum(widths, -1)], -1)
    with np.errstate(invalid="ignore"):
        gains = np.concatenate([first, np.cumsum(widths * slopes, -1)], -1)
    # How many arms are sold out at each mark
    at = (ends[..., None, 1:] <= clock[..., None]).sum(-1)
    start, value = (np.take_along_axis(x, at, -1) for x in (ends, gains + free[..., None]))
    slope = np.take_along_axis(np.concatenate([slopes, first], -1), at, -1)
    value = value + slope * np.where(slope > 0, clock - start, 0.0)
    return np.stack([value, slope], axis=-1)


def _by_ratio(
    reward: np.ndarray, cost: np.ndarray, limit: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Greedy knapsack: (reward at no cost, each arm's spending and ratio, best ratio first)."""
    paid, free = (reward > 0) & (cost > 0), (reward > 0) & (cost <= 0)
    with np.errstate(invalid="ignore"):
        ratio = np.divide(reward, cost, out=np.zeros_like(reward), where=paid)
        width = np.where(paid, limit * cost, 0.0)
        without_cost = np.where(free, limit * reward, 0.0).sum(-1)
    order = np.argsort(-ratio, axis=-1, kind="stable")
    widths, ratios = (np.take_along_axis(x, order, -1) for x in (width, ratio))
    return without_cost, widths, ratios


def _by_round(
    reward: np.ndarray, cost: np.ndarray, rounds: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(reward at no cost, widths, slopes) over ``rounds``: upper hull of (cost, reward)."""
    free = float(reward.max(where=cost <= 0, initial=0.0))
    rest_and_arms = (np.append(0.0, x)[None] for x in (reward, cost))
    slopes, widths, _ = exchanges(np.array([rounds]), *rest_and_arms)
    return np.asarray(rounds * free if free else 0.0), widths, slopes


def exchanges(
    length: np.ndarray, reward: np.ndarray, cost: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(λ, money, segment) of exchanges for a costlier arm in segments ``[S]``, best λ first."""
    # They start at the cheapest arm and go along the upper hull of (cost, reward), ``[S, K]``.
    rows, now = np.arange(len(length)), np.lexsort((-reward, cost))[:, 0]
    steps = []
    for _ in range(reward.shape[1] - 1):
        dearer = cost - cost[rows, now][:, None]
        gain = np.where(dearer > 0, reward - reward[rows, now][:, None], 0)
        slope = gain / np.where(dearer > 0, dearer, 1)
        # Of equally steep ones the dearest: those between lie on the same edge of the hull.
        then = np.where(slope >= slope.max(axis=1, keepdims=True), cost, -np.inf).argmax(axis=1)
        rises = slope[rows, then] > 0
        money = length[rises] * dearer[rows, then][rises]
        steps.append(np.stack([slope[rows, then][rises], money, rows[rises]]))
        now = np.where(rises, then, now)
    price, money, segment = np.concatenate([np.zeros((3, 0)), *steps], axis=1)
    best_first = np.argsort(-price, kind="stable")
    return price[best_first], money[best_first], segment[best_first]


def _scheduled(
    reward: np.ndarray,
    cost: np.ndarray,
    limit: np.ndarray,
    clock: np.ndarray,
    lengths: np.ndarray,
    schedule: np.ndarray,
) -> np.ndarray:
    """(V, slope) of the linear program of a schedule at each clock, ``[x, 2]``."""
    s, k = np.nonzero(schedule)
    if not s.size:
        return np.zeros((len(clock), 2))
    # A variable for each open arm of each part; a row for the money, each arm and each part.
    rows = np.concatenate([cost[k][None], np.eye(len(cost))[:, k], np.eye(len(lengths))[:, s]])
    fixed = np.broadcast_to(np.append(limit, lengths), (len(clock), len(rows) - 1))
    limits = np.column_stack([clock, fixed])
    finite = np.isfinite(limits).all(axis=0)
    every = np.broadcast_to(rows[finite], (len(clock), *rows[finite].shape))
    gain = np.broadcast_to(reward[k], (len(clock), len(k)))
    vertex = solved(gain, every, limits[:, finite], np.ones(gain.shape, bool))
    # The price of the money is what one more unit of it would bring.
    return np.stack([vertex.value, vertex.price[:, 0]], axis=-1)
