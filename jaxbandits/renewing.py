"""An accountant of budgets that renew: so much a day, so much an hour, for all arms or for some of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics import knapsack_lp
from jaxbandits.constraints import per_instance
from jaxbandits.core import purses, ticks
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.ledger import Ledger, Outcome, post
from jaxbandits.core.numbers import booleans, numbers
from jaxbandits.core.protocol import Constraint, Environment, Status
from jaxbandits.core.purses import Allowance, Purse
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.core.ticks import Total

_MOST = 2**30


@pytree
class Renewing(Constraint):
    """Budgets that renew, on a clock of requests: every round is one request, and slots (hours, say) hold some of them.

    Budget j grants ``amount[j]`` in every period of ``every[j]`` slots. What is left at its end is lost, or carried
    over. The environment's resource j is what budget j pays (see ``groups`` of
    :class:`~jaxbandits.environments.Delayed`). No action is altered: what is overspent, in any round and period, is
    ``result.violation``, in exact ticks (0 for ``InFlight`` with bounds that hold).

    Rounds are the clock, so the regret is T·r* − reward. r* is the value of a fluid LP: the best mixture of arms and
    rest whose mean cost is at most what all periods together grant, per request. Renewals only bind tighter, so no
    policy can have a larger mean reward; traffic that changes from period to period leaves some of it to nobody.

    Args:
        amount: what each budget grants a period, ``[d]`` or ``[instance, d]``, above 0; rounded down to ticks.
        every: the length of its period in slots, ``[d]``.
        requests: how many requests each slot has, ``[slot]`` or ``[instance, slot]``: the traffic, as it came.
        expected: how many were expected, same shape; what a pacer plans with. Default: ``requests``.
        carry_over: is what is left carried over, ``[d]``.

    Raises:
        InputError: at :func:`~jaxbandits.simulate`, for numbers that are none of these, or a world without as many
            resources.

    Example:
        >>> import jaxbandits as jb
        >>> day = jb.Renewing(amount=[10.0, 1.0], every=[24, 1], requests=[20] * 48)  # so much a day, so much an hour
        >>> day.carry_over
        False
    """

    amount: Any = leaf()
    every: Any = leaf(integer=True)
    requests: Any = leaf(integer=True)
    expected: Any = dataclasses.field(default=None)
    carry_over: Any = dataclasses.field(default=False)

    ends_with: ClassVar[Status] = Status.HORIZON
    clock_name: ClassVar[str] = "rounds"

    def prepare(self, environment: Environment) -> Constraint:
        """See :meth:`Constraint.prepare`."""
        what = "a finite number above 0 (at least one tick, 2**-24) and at most 2**30"
        given = np.atleast_1d(numbers("amount", self.amount, what))
        if environment.resources != given.shape[-1]:
            has = "one cost" if environment.resources is None else f"{environment.resources} resources"
            raise bad("environment", has, f"one with {given.shape[-1]} resources (see `groups` of Delayed)")
        amount = per_instance("amount", given, environment, what, per_resource=True)
        whole = ticks.floor_from_units(np.minimum(amount, 2.0**31))
        if (whole < 1).any() or (amount > _MOST).any():
            raise bad("amount", float(amount[(whole < 1) | (amount > _MOST)][0]), what)
        requests = self._table("requests", self.requests, environment.instances)
        expected = requests if self.expected is None else self._table("expected", self.expected, environment.instances)
        if expected.shape != requests.shape:
            raise bad("expected", expected.shape, f"of the shape of requests, {requests.shape}")
        every = self._per_budget("every", self.every, given.shape[-1])
        if ((every < 1) | (every != np.rint(every))).any():
            raise bad("every", self.every, "whole numbers of slots, at least 1")
        carries = booleans("carry_over", np.broadcast_to(booleans("carry_over", self.carry_over), every.shape))
        return _laid_out(whole, every.astype(np.int64), requests, expected, carries)

    @staticmethod
    def _table(name: str, value: Any, instances: int) -> np.ndarray:
        table = np.atleast_2d(numbers(name, value))
        wrong = ~(np.isfinite(table) & (table >= 0) & (table == np.rint(table)))
        if wrong.any():
            raise bad(name, float(table[wrong][0]), "whole numbers of requests, at least 0")
        if table.ndim != 2 or table.shape[0] not in (1, instances) or not table.shape[1]:
            raise InputError(f"{name}: shape {np.shape(value)} given; it must be [slot] or [{instances}, slot]")
        if (table.sum(1) < 1).any() or (table.sum(1) > _MOST).any():
            raise bad(name, float(table.sum(1).max()), "from 1 to 2**30 requests in all")
        return np.broadcast_to(table, (instances, table.shape[1])).astype(np.int64)

    @staticmethod
    def _per_budget(name: str, value: Any, budgets: int) -> np.ndarray:
        array = np.atleast_1d(numbers(name, value))
        if array.shape not in ((1,), (budgets,)):
            raise bad(name, value, f"one number, or {budgets}")
        return np.broadcast_to(array, (budgets,))

    def _unprepared(self, *_: Any) -> Any:
        raise InputError("constraint: Renewing was not prepared; it must be given to simulate, which does that")

    end = charge = clock = expected_clock = best_rate = _unprepared  # type: ignore[assignment]  # Prepared does it


@pytree
class Prepared(Constraint):
    """:class:`Renewing` as tables, ``[instance, slot, …]``: what holds in the slot that a round lies in."""

    ends: Any = leaf()  # i32[I, S]: last round of the slot
    expected: Any = leaf()  # i32[I, S]
    later: Any = leaf()  # i32[I, S, d]: expected after this slot in the period
    whole: Any = leaf()  # i32[I, S, d]: expected in the period
    since: Any = leaf()  # i32[I, S, d]: first round of the period
    granted: Any = leaf()  # Total [I, S, d]
    amount: Any = leaf()  # Total [I, d]
    carries: Any = leaf()  # bool[I, d]
    grants: Any = leaf()  # Total [I, d]: of all periods

    ends_with: ClassVar[Status] = Status.HORIZON
    clock_name: ClassVar[str] = "rounds"

    def prepare(self, environment: Environment) -> Constraint:
        """It is."""
        return self

    def end(self) -> Total:
        """Requests in all."""
        return ticks.count(jnp.asarray(self.ends)[..., -1])

    def clock(self, ledger: Ledger) -> Total:
        """Rounds played."""
        return ticks.count(ledger.rounds)

    def expected_clock(self, ledger: Mapping[str, np.ndarray]) -> np.ndarray:
        """Rounds played, in ticks."""
        return ledger["rounds"] * ticks.ONE

    def audit(self) -> dict[str, Total]:
        """What each budget paid in this period, and the most that any paid too much in any."""
        nothing = ticks.zero(self.carries.shape)
        return {"charged": nothing, "violation": nothing}

    def _slot(self, round: jax.Array) -> jax.Array:
        return jnp.sum((self.ends < round).astype(jnp.int32), dtype=jnp.int32)

    def _allowance(self, round: jax.Array) -> Allowance:
        slot = jnp.minimum(self._slot(round), self.ends.shape[0] - 1)
        before = jnp.where(slot > 0, self.ends[jnp.maximum(slot - 1, 0)], 0)
        granted = Total(self.granted.whole[slot], self.granted.part[slot])
        here = jnp.maximum(self.expected[slot] - (round - before - 1), 0)
        return Allowance(
            whole=granted.whole,
            part=granted.part,
            granted=granted,
            amount=self.amount,
            since=self.since[slot],
            requests=jnp.maximum(self.later[slot] + here, 1),
            total=jnp.maximum(self.whole[slot], 1),
            carries=self.carries,
        )

    def _purse(self, ledger: Ledger, allowance: Allowance) -> Purse:
        before = self.since[jnp.minimum(self._slot(jnp.maximum(ledger.rounds, 1)), self.ends.shape[0] - 1)]
        return purses.renewed(Purse(ledger.audit["charged"], before, self.carries), allowance)

    def view(self, ledger: Ledger) -> Allowance:  # type: ignore[override]
        """What is left of every budget, and how many requests are expected until it renews."""
        allowance = self._allowance(ledger.rounds + 1)
        return purses.left(self._purse(ledger, allowance), allowance)

    def charge(self, ledger: Ledger, outcome: Outcome) -> Ledger:
        """Book one round and audit it."""
        allowance = self._allowance(ledger.rounds + 1)
        purse = self._purse(ledger, allowance)
        charged = ticks.add(purse.charged, outcome.cost)
        worst = ticks.larger(ledger.audit["violation"], ticks.minus(charged, allowance.granted))
        return post(ledger, outcome)._replace(audit={"charged": charged, "violation": worst})

    def best_rate(self, reward: np.ndarray, cost: np.ndarray) -> np.ndarray:
        """r*: see :class:`Renewing`."""
        requests = np.asarray(self.ends)[:, -1:]
        rate = ticks.to_units(ticks.join(self.grants)) / requests
        return knapsack_lp.mixture_values(reward, cost, np.minimum(rate, 1.0))


def _granted(amount: np.ndarray, times: np.ndarray) -> np.ndarray:
    """``amount · times`` in ticks, at most what a total holds: an amount without end, many times, would wrap."""
    most = ticks.floor_from_units(2.0**31) - 1
    return np.where(amount > most // times, most, amount * times)


def _laid_out(
    amount: np.ndarray, every: np.ndarray, requests: np.ndarray, expected: np.ndarray, carries: np.ndarray
) -> Prepared:
    """The tables from checked numbers: ``amount`` in ticks ``[I, d]``, ``every`` ``[d]``, traffic ``[I, S]``."""
    slots, budgets = requests.shape[1], every.size
    ends = np.cumsum(requests, axis=1)
    ahead = np.concatenate([np.zeros_like(ends[:, :1]), np.cumsum(expected, axis=1)], axis=1)
    period = np.arange(slots)[:, None] // every[None, :]  # [S, d]
    first = period * every
    last = np.minimum(first + every, slots)  # one behind it
    begun = np.concatenate([np.zeros_like(ends[:, :1]), ends], axis=1)
    times = np.where(carries[None, :], period + 1, 1)
    granted = _granted(amount[:, None, :], times[None])
    return dataclasses.replace(
        Prepared(**dict.fromkeys((field.name for field in dataclasses.fields(Prepared)), 0)),
        ends=ends.astype(np.int32),
        expected=np.minimum(expected, _MOST).astype(np.int32),
        later=(ahead[:, last] - ahead[:, 1:, None]).astype(np.int32),
        whole=(ahead[:, last] - ahead[:, first]).astype(np.int32),
        since=(begun[:, first] + 1).astype(np.int32),
        granted=ticks.split(granted),
        amount=ticks.split(amount),
        carries=np.broadcast_to(carries, (requests.shape[0], budgets)).copy(),
        grants=ticks.split(_granted(amount, (period[-1] + 1)[None, :])),
    )
