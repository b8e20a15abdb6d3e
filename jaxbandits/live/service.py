"""The state of a service, moved by events alone: the same events give the same state, to the bit.

Decisions and learning are those of :mod:`jaxbandits.policies.base.in_flight`, which the simulator plays; here they are
compiled and called one at a time. Money is kept twice: in ticks by that rule, and in whole Python numbers by period.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import ticks
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.protocol import Policy, View
from jaxbandits.core.pytrees import leaf_fields, walk
from jaxbandits.core.specs import Arrivals, FiniteSpec
from jaxbandits.live.budgets import Periods
from jaxbandits.live.terms import Terms, money_ticks
from jaxbandits.policies.base import in_flight
from jaxbandits.policies.base.in_flight import Known

_LEAST = 4  # capacity


@dataclasses.dataclass
class Request:
    """A request that is not settled."""

    id: int
    arm: int
    held: int  # ticks
    time: float
    periods: list[int]  # of each budget, when it was decided
    lost: bool = False  # given up: charged its bound, and no longer waited for


@jax.jit
def _decide(policy: Policy, known: Known, words: jax.Array, view: View, bound: jax.Array, scope: jax.Array) -> Any:
    return in_flight.decide(policy, known, _typed(words), view, bound, scope)


@jax.jit
def _learn(
    policy: Policy,
    known: Known,
    words: jax.Array,
    there: jax.Array,
    told: jax.Array,
    bound: jax.Array,
    scope: jax.Array,
) -> Known:
    arrival = Arrivals(*(told[i] for i in range(6)))
    return in_flight.learn(policy, known, _typed(words), there, arrival, bound, scope)


@jax.jit
def _refund(known: Known, told: jax.Array, scope: jax.Array) -> Known:
    return in_flight.refund(known, told[0], told[1], told[2], told[3], scope)


def _typed(words: jax.Array) -> jax.Array:
    return jax.random.wrap_key_data(words, impl="threefry2x32")


class Service:
    """See the module. Not thread-safe: :class:`~jaxbandits.live.Agent` is."""

    def __init__(self, terms: Terms):
        self.terms, self.round, self.now = terms, 0, -math.inf
        self.names: list[str] = []  # by index; an index is never given to another name
        self.bounds: list[int] = []  # ticks
        self.active: list[bool] = []
        self.requests: dict[int, Request] = {}
        self.periods = Periods(terms.budgets, terms.traffic, terms.start, terms.unit)
        self.charged: list[dict[int, int]] = [{} for _ in terms.budgets]  # ticks by period: costs, and held bounds
        self._policy = jax.tree.map(lambda x: jnp.asarray(x, jnp.result_type(x)), _leaves_as_played(terms.policy))
        self._words = jnp.asarray(np.array(terms.key, np.uint32))
        self.capacity = 0
        self.known: Known = None  # type: ignore[assignment]

    # --- arms --------------------------------------------------------------------------------------------------

    def begin(self, arms: dict[str, float]) -> None:
        """The first arms."""
        self.names, self.active = list(arms), [True] * len(arms)
        self.bounds = [money_ticks(self.terms, "bound", bound, self.terms.unit) for bound in arms.values()]
        self._grow()
        self._lay_out()

    def add_arm(self, name: str, bound: float) -> None:
        """An arm joins, or comes back with what was learnt of it."""
        held = money_ticks(self.terms, "bound", bound, self.terms.unit)
        if name in self.names:
            index = self.names.index(name)
            if self.active[index]:
                raise bad("name", name, "the name of an arm that is not there")
            self.active[index], self.bounds[index] = True, held
        else:
            if len(self.names) == self.capacity:
                self._grow(len(self.names) + 1)
            self.names, self.bounds, self.active = [*self.names, name], [*self.bounds, held], [*self.active, True]
        self._lay_out()

    def remove_arm(self, name: str) -> None:
        """An arm leaves; its open requests may still be answered."""
        self.active[self.index(name)] = False
        self._lay_out()

    def index(self, name: Any) -> int:
        """An arm that is there."""
        there = [n for n, active in zip(self.names, self.active, strict=True) if active]
        if name not in there:
            raise bad("arm", name, f"one of {', '.join(there) or 'none'}")
        return self.names.index(name)

    def _grow(self, arms: int | None = None) -> None:
        arms = len(self.names) if arms is None else arms
        per_arm = [leaf.path for leaf in walk(self.terms.policy) if leaf.metadata.get("core", 0)]
        if per_arm and self.capacity:
            raise InputError(f"arms: one more given; {per_arm[0]} has one value for each of {self.capacity} arms")
        many = arms if per_arm else max(_LEAST, 1 << (arms - 1).bit_length())
        spec = FiniteSpec(many)
        self.terms.policy.check(spec)
        wide = in_flight.first(self._policy, spec, len(self.terms.budgets))
        if self.known is not None:
            wide = jax.tree.map(_into, wide, self.known)
        self.known, self.capacity = jax.tree.map(jnp.asarray, wide), many

    def _lay_out(self) -> None:
        """The tables of arms as compiled functions read them."""
        spare = self.capacity - len(self.names)
        self._bound = jnp.asarray(np.array([*self.bounds, *[ticks.ONE] * spare], np.int32))
        self._there = jnp.asarray(np.array([*self.active, *[False] * spare], bool))
        self.pays = [
            [budget.arms is None or name in budget.arms for name in self.names] for budget in self.terms.budgets
        ]
        scope = np.zeros((len(self.terms.budgets), self.capacity), bool)
        for j, row in enumerate(self.pays):
            scope[j, : len(row)] = row
        self._scope = jnp.asarray(scope)

    # --- events ------------------------------------------------------------------------------------------------

    def choose(self, now: float, among: list[str] | None = None) -> Request | None:
        """The next round: a request, or None if nothing can be paid or the policy rests."""
        there = self._there if among is None else self._only(among)
        self.round, self.now = self.round + 1, now
        self.periods.turn(now, self.round)
        allowance = self.periods.allowance() if self.terms.budgets else None
        view = View(np.int32(self.round), allowance, there)  # type: ignore[arg-type]
        self.known, arm = _decide(self._policy, self.known, self._words, view, self._bound, self._scope)
        index = int(arm)
        if not 0 <= index < len(self.names):
            return None
        request = Request(self.round, index, self.bounds[index], now, list(self.periods.period))
        self.requests[request.id] = request
        self._charge(request, request.held)
        return request

    def _only(self, among: list[str]) -> jax.Array:
        mask = np.zeros(self.capacity, bool)
        mask[[self.index(name) for name in among]] = True
        return jnp.asarray(mask)

    def learn(self, id: int, reward: int | None, cost: int) -> None:
        """The outcome of a request, in ticks; with no reward only its money is settled."""
        request = self.requests.pop(id)
        closes = 0 if request.lost else 1
        if reward is None:
            told = np.array([request.id, request.arm, request.held - cost, closes], np.int32)
            self.known = _refund(self.known, told, self._scope)
        else:
            told = np.array([closes, request.id, request.arm, reward, cost, 0], np.int32)
            bound = (
                self._bound
                if request.held == self.bounds[request.arm]
                else self._bound.at[request.arm].set(request.held)
            )
            self.known = _learn(self._policy, self.known, self._words, self._there, told, bound, self._scope)
        self._charge(request, cost - request.held)

    def cancel(self, id: int) -> None:
        """It was never made: all that was held is free."""
        self.learn(id, None, 0)

    def expire(self, ids: list[int]) -> None:
        """These are no longer waited for: what they held is spent."""
        for id in ids:
            request = self.requests[id]
            request.lost = True
            self.known = _refund(self.known, np.array([id, request.arm, 0, 1], np.int32), self._scope)

    def _charge(self, request: Request, amount: int) -> None:
        for j, pays in enumerate(self.pays):
            if pays[request.arm]:
                period = request.periods[j]
                self.charged[j][period] = self.charged[j].get(period, 0) + amount

    # --- money -------------------------------------------------------------------------------------------------

    def left(self, number: int, now: float) -> int:
        """What a budget may still spend, in ticks: what is granted, less known costs and held bounds."""
        period = self.periods.at(now)[number]
        carries = self.terms.budgets[number].carry_over
        paid = sum(self.charged[number].values()) if carries else self.charged[number].get(period, 0)
        return self.periods.granted(number, period) - paid

    def renews_at(self, now: float) -> float | None:
        """When the first of the budgets renews that cannot pay some arm now; None if all can pay all."""
        short = [
            self.periods.renews(j, now)
            for j, row in enumerate(self.pays)
            if any(pays and self.active[k] and self.bounds[k] > self.left(j, now) for k, pays in enumerate(row))
        ]
        return min(short, default=None)

    # --- on disk -----------------------------------------------------------------------------------------------

    def plain(self) -> dict[str, Any]:
        """All but the arrays, as plain JSON."""
        return {
            "round": self.round,
            "now": self.now,
            "arms": [list(x) for x in zip(self.names, self.bounds, self.active, strict=True)],
            "requests": [dataclasses.asdict(request) for request in self.requests.values()],
            "periods": self.periods.state(),
            "charged": [sorted(periods.items()) for periods in self.charged],
            "capacity": self.capacity,
        }

    def restore(self, plain: dict[str, Any], leaves: list[np.ndarray]) -> None:
        """What :meth:`plain` and the leaves of ``known`` were."""
        self.round, self.now = plain["round"], plain["now"]
        self.names, self.bounds, self.active = (list(x) for x in zip(*plain["arms"], strict=True))
        self.requests = {x["id"]: Request(**x) for x in plain["requests"]}
        self.periods.restore(plain["periods"])
        self.charged = [dict(map(tuple, periods)) for periods in plain["charged"]]
        self._grow()
        structure = jax.tree.structure(self.known)
        shapes = [(x.shape, x.dtype) for x in jax.tree.leaves(self.known)]
        if plain["capacity"] != self.capacity or shapes != [(x.shape, x.dtype) for x in leaves]:
            raise InputError("path: the file holds a state of another shape; it must be of this policy and version")
        self.known = jax.tree.unflatten(structure, [jnp.asarray(x) for x in leaves])
        self._lay_out()

    def digest(self) -> str:
        """A hash of the whole state: two services of the same digest are the same."""
        text = json.dumps(self.plain(), sort_keys=True).encode()
        arrays = b"".join(np.asarray(x).tobytes() for x in jax.tree.leaves(self.known))
        return hashlib.sha256(text + arrays).hexdigest()


def _leaves_as_played(policy: Policy) -> Policy:
    """Leaves as float32 or int32, so that numbers of another kind do not compile anew."""
    values: dict[str, Any] = {}
    for field in leaf_fields(policy):
        value = getattr(policy, field.name)
        if dataclasses.is_dataclass(value):
            values[field.name] = _leaves_as_played(value)  # type: ignore[arg-type]
        elif value is not None:
            values[field.name] = np.asarray(value, np.int32 if field.metadata.get("integer") else np.float32)
    return dataclasses.replace(policy, **values)  # type: ignore[type-var]


def _into(wide: Any, narrow: Any) -> Any:
    return jnp.asarray(wide).at[tuple(slice(0, n) for n in np.shape(narrow))].set(narrow)
