"""A policy that serves requests: many at once, of any thread, with budgets that renew; saved, logged, continued.

Decisions and learning are :func:`~jaxbandits.policies.wrappers.decide` and ``learn``, which the simulator plays; here
they are compiled and called one at a time. All else is plain Python, moved by events alone. What an event will change
is computed first; then its line is written; only then the state moves (:meth:`Agent._commit`). So the state is the
first line of the last segment of the log, and the lines after it, which :meth:`Agent._play` plays again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import logging
import math
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import constraints
from jaxbandits._files import path_of, reason_of, write_whole
from jaxbandits.core import streams, ticks
from jaxbandits.core.checks import MOST_INT, InputError, bad, number, positive_number, shown, whole_number
from jaxbandits.core.protocol import Policy, View
from jaxbandits.core.pytrees import Pytree, select_tree
from jaxbandits.core.specs import Arrivals, FiniteSpec
from jaxbandits.live import log as logs
from jaxbandits.live.budgets import (
    Account,
    Arm,
    Budget,
    Pace,
    Traffic,
    allowance,
    budget_state,
    mean_of,
    renumbered,
)
from jaxbandits.live.clock import Clock
from jaxbandits.live.errors import Broken, Misuse, Settled, Unpayable
from jaxbandits.live.step import in_first_places
from jaxbandits.live.terms import check_name, check_terms, of_one_setting, per_arm, terms_of, unit_of
from jaxbandits.policies import wrappers
from jaxbandits.policies.wrappers import Around, Known

_LOGGER = logging.getLogger("jaxbandits.live")
_LEAST = 4  # capacity
_MOST_NAMED = 8  # arms in a line
_MOST_COST = 1 << 20  # units: what is above that is no cost
_AT_ONCE = 4096  # outcomes that another policy is taught in one call
_FIXED = ("reward_bound", "key", "start")  # what a log keeps for ever: its numbers are in these


@dataclasses.dataclass(frozen=True)
class Ticket:
    """A request that was let through.

    Attributes:
        id: its number, which is that of its round.
        arm: the arm that serves it.
        reserved: money held for it.
        time: when it was decided.
    """

    id: int
    arm: str
    reserved: float
    time: float


@dataclasses.dataclass
class _Request:
    """A request that may still be answered."""

    id: int
    arm: int
    held: int  # ticks, charged until its cost is known
    time: float
    periods: list[int | None]  # of each budget, when it was decided; None: it does not pay


@jax.jit
def _decide(policy: Policy, known: Known, words: jax.Array, view: View, bound: jax.Array, scope: jax.Array) -> Any:
    known, arm = wrappers.decide(policy, known, streams.typed(words), view, bound, scope)
    return known.learnt, arm


@jax.jit
def _learn(policy: Policy, learnt: Pytree, words: jax.Array, there: jax.Array, arrived: jax.Array) -> Pytree:
    none = jnp.zeros(there.shape, jnp.int32)  # money and open requests are counted on the host
    decided, arm, reward, cost = arrived
    arrival = Arrivals(jnp.int32(1), decided, arm, reward, cost, lost=jnp.int32(0))
    known = Known(learnt, none, constraints.empty(0))
    return wrappers.learn(
        policy, known, streams.typed(words), there, arrival, none, jnp.zeros((0, none.size), bool)
    ).learnt


@jax.jit
def _learn_all(policy: Policy, learnt: Pytree, words: jax.Array, there: jax.Array, arrived: jax.Array) -> Pytree:
    def one(before: Pytree, arrival: jax.Array) -> tuple[Pytree, None]:
        return select_tree(arrival[0] > 0, _learn(policy, before, words, there, arrival), before), None

    return jax.lax.scan(one, learnt, arrived)[0]


class Agent:
    """Requests in flight and budgets that renew, decided as the simulator decides them.

    Thread-safe; for several processes see :func:`serve`. Money is exact: costs are rounded up to ticks (2⁻²⁴ of
    ``unit``) and budgets down, an open request is charged what is held for it, and while no request costs more than was
    held, in no period more is spent than is granted. What costs more is booked all the same, and :meth:`statistics`
    says by how much a period is overspent.

    Args:
        policy: any policy for finitely many arms; ``OmegaUCB`` for reward per money, ``PricePacer`` or ``EvenPace``
            where budgets are to last.
        arms: names, and the most that a request to each can cost, in money; 0 for one that is free.
        reward_bound: rewards are from 0 to this.
        budgets: see :class:`Budget`; none: nothing is ever refused.
        key: ``jax.random.key(seed)``.
        traffic: how many requests are expected; policies that pace need it.
        log: a file for the decision log; it must be new, or see ``resume``.
        resume: where the log is there already, go on from it, as :meth:`from_log` does. Arguments that differ from
            those of the last start become the terms from now on (:meth:`change`); arms that joined or left since stay
            as they are. A service that may have been killed begins so.
        unit: money of one unit of cost, rounded up to a power of two; default the largest bound. Arms that join later
            may not have larger bounds, unless :meth:`change` makes it larger.
        start: when periods of so many seconds begin, in seconds of the clock.
        clock: what time it is, default :func:`time.time`.
        tolerance: a reading so many seconds away from what it can be is refused, until :meth:`resume` takes it at its
            word. Default: an hour, by :func:`time.monotonic`; of a clock that was given a week, by the last reading.
        hold: what an open request holds: the ``"bound"`` of its arm, or a quantile of the arm's own costs, such as
            0.99: then dear arms are payable for longer, and what costs more may overspend a period
            (``statistics()["budgets"][name]["at_risk"]`` is the most that open requests can add).
        lost: what a request that is given up (:meth:`expire`) is charged: its ``"bound"``, or the ``"mean"`` of its
            arm's known costs, which is right on average if those that are never answered cost what the others cost.
        sync: wait for the disk after every line of the log.

    Raises:
        InputError: naming the argument, before anything is compiled.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> agent = jb.live.Agent(
        ...     jb.policies.OmegaUCB(), arms={"small": 0.01, "large": 0.2}, reward_bound=1.0,
        ...     budgets=[jb.live.Budget(amount=0.25, every=86400.0)], key=jax.random.key(0), clock=lambda: 0.0)
        >>> first, second = agent.choose(), agent.choose()
        >>> first.arm, second.arm, round(agent.left()["budget"], 3)
        ('small', 'large', 0.04)
        >>> agent.learn(second, reward=1.0, cost=0.05)
        >>> round(agent.left()["budget"], 3)
        0.19
        >>> [ticket.arm if ticket else None for ticket in agent.choose(n=3)], agent.renews_at()
        (['small', 'small', 'small'], None)
    """

    # What a segment's first line holds, and what follows from it.
    _terms: dict[str, Any]
    _told: dict[str, float]  # arms and bounds, as a constructor last said them
    _arms: list[Arm]
    _places: dict[str, int]  # of names among them; never given to another name
    _requests: dict[int, _Request]
    _lost: dict[int, _Request]  # given up, and not forgotten
    _accounts: list[Account]
    _pace: Pace | None
    _unit: float  # money of a unit of cost
    _round: int  # decisions so far
    _now: float  # of the last event that has a time
    _counts: Counter[str]
    _learnt: Pytree  # the policy's state: all that has arrived
    _waiting: np.ndarray  # open requests of each arm, up to the capacity
    _held: list[int]  # what a request to each arm holds
    _bound: jax.Array | None  # the same for compiled functions; None: not yet
    _policy: Policy | None  # None: while events of one whose state is not known are played

    def __init__(
        self,
        policy: Policy,
        *,
        arms: Mapping[str, float],
        reward_bound: float,
        key: Any,
        budgets: Sequence[Budget] = (),
        traffic: Traffic | None = None,
        log: Any = None,
        resume: bool = False,
        unit: float | None = None,
        start: float = 0.0,
        clock: Callable[[], float] = time.time,
        tolerance: float | None = None,
        hold: float | str = "bound",
        lost: str = "bound",
        sync: bool = False,
    ):
        given = of_one_setting(policy)
        power = unit_of(arms, unit)
        check_terms(given, arms, power, budgets, traffic, hold, lost)
        terms = terms_of(given, budgets, traffic, hold, lost) | {
            "reward_bound": positive_number("reward_bound", reward_bound),
            "unit": power,
            "key": np.asarray(jax.random.key_data(streams.root_key(key))).tolist(),
            "start": number("start", start),
        }
        told = {name: float(bound) for name, bound in arms.items()}
        self._begin(clock, tolerance, sync)
        place = None if log is None else path_of("log", log)
        if place is not None and not logs.never_begun(place):
            if not resume:
                raise bad("log", str(place), "a new file; an old one is continued with resume=True, or Agent.from_log")
            self._go_on(place, given, {}, terms if unit is not None else {**terms, "unit": None}, told)
            return
        self._take(given, {"terms": terms, "told": told, "segment": 1, "events": 1, "state": None})
        for name, bound in told.items():
            self._add(name, bound)
        self._lay_out()
        if place is not None:
            self._begin_log(place)

    def _begin(self, clock: Callable[[], float], tolerance: float | None, sync: bool) -> None:
        """What is of this process."""
        self._clock = Clock(clock, None if tolerance is None else positive_number("tolerance", tolerance))
        self._sync, self._lock, self._process = sync, threading.RLock(), os.getpid()
        self._log: logs.Log | None = None
        self._place: Path | None = None  # of the log
        self._history: Path | None = None  # where outcomes of the past may be read
        self._broken: str | None = None  # why nothing more may happen
        self._playing = False  # what a log says

    def _begin_log(self, place: Path) -> None:
        log = logs.Log(place, self._sync)
        try:
            log.begin(self._first_line())
        except BaseException:
            log.close()
            raise
        self._log, self._place, self._history = log, place, place

    def __repr__(self) -> str:
        """Policy, arms, money that is left, open requests."""
        try:
            left = "".join(f"; {name}: {money:,.6g} left" for name, money in self.left().items())
        except (Broken, Misuse) as problem:
            return f"<Agent: {problem}>"
        with self._lock:
            arms = [arm.name for arm in self._arms if arm.active]
            named = ", ".join(arms) if len(arms) <= _MOST_NAMED else f"{len(arms):,}"
            return f"<Agent: {self._terms['policy']}; arms: {named}{left}; {len(self._requests):,} open>"

    # --- one at a time, and only while all is well -------------------------------------------------------------

    @contextlib.contextmanager
    def _working(self) -> Iterator[None]:
        self._refuse_fork()
        with self._lock:
            if self._broken is not None:
                raise Broken(self._broken)
            try:
                yield
            except Misuse:
                raise
            except InputError as wrong:
                raise Misuse(str(wrong)) from None

    def _refuse_fork(self) -> None:
        """Before the lock is taken, which another thread may have held when the process was forked."""
        if os.getpid() != self._process:
            raise Broken(
                f"this agent is that of process {self._process}, and a fork has neither its log nor jax's threads; "
                "make it after the fork (gunicorn: without --preload), or ask one by jb.live.serve and jb.live.connect"
            )

    def _commit(self, event: dict[str, Any], move: Callable[[], None]) -> None:
        """Write an event, then let it happen. Whatever comes in between is an end, until :meth:`resume`."""
        if self._log is not None:
            if self._log.closed:
                raise Broken("the log is closed; go on with resume(), or Agent.from_log")
            if self._log.full():
                self._new_segment()
        self._broken = "an event was cut short between its line in the log and the state; resume() goes on from the log"
        try:
            if self._log is not None:
                self._log.write(event)
        except OSError as problem:
            self._broken = f"the log could not be written ({reason_of(problem)}); resume() goes on when it can be"
            raise Broken(self._broken) from problem
        move()
        self._events += 1
        self._broken = None

    def _new_segment(self) -> None:
        """The state as the first line of a new segment; where the disk is full, the old one goes on."""
        self._broken = "a new segment of the log was cut short; resume() goes on from the log"
        self._segment += 1
        if not self._log.begin(self._first_line()):  # type: ignore[union-attr]
            self._segment -= 1
        self._broken = None

    def resume(self) -> None:
        """Go on after :class:`Broken`, from what the log says; and take the clock at its word, wherever it stands now.

        A ticket of a call that was cut short may be open then, though nobody has it: see :meth:`open`.

        Raises:
            Broken: there is no log to go on from, or it cannot be written; in a fork.
        """
        self._refuse_fork()
        with self._lock:
            if (why := self._broken) is not None or (self._log is not None and self._log.closed):
                if self._place is None:
                    raise Broken(f"{why}; this agent has no log to go on from")
                if self._log is not None:
                    self._log.close()
                try:
                    self._log = self._broken = None
                    self._go_on(self._place, self._policy, {})
                except (OSError, InputError) as problem:
                    self._broken = why or "the log is closed"
                    raise Broken(f"{self._broken} ({problem})") from problem
                except BaseException:
                    self._broken = why or "the log is closed"
                    raise
        with self._working():
            now = self._clock.told()
            if now != self._now:
                self._commit({"do": "clock", "t": now}, lambda: setattr(self, "_now", now))

    # --- requests ----------------------------------------------------------------------------------------------

    def choose(
        self,
        n: int | None = None,
        available: Sequence[str] | None = None,
        *,
        request: str | None = None,
        must: bool = False,
    ) -> Any:
        """Decide for a request: its :class:`Ticket`, or None if it cannot be paid (see :meth:`renews_at`).

        Args:
            n: decide for so many at once, none of which knows of another's outcome: a list of as many. Default: one.
            available: names of the arms that may serve it; default all.
            request: a name of your own for it, which the log will have beside the ticket's id.
            must: raise :class:`Unpayable` instead of giving None; for one request.

        Raises:
            Misuse: a name that no arm has, or a clock that says no time, or one that cannot be.
            Unpayable: see ``must``.
            Broken: the log cannot be written, or see :class:`Broken`.
        """
        with self._working():
            if n is not None:
                whole_number("n", n, 1, 1 << 20)
            if isinstance(available, str):
                raise bad("available", available, "a list of names")
            if request is not None and (not isinstance(request, str) or len(request) > 200):
                raise bad("request", request, "text of at most 200 characters")
            extra = {"among": None if available is None else list(available), "request": request}
            extra = {name: x for name, x in extra.items() if x is not None}
            now = self._time()
            made = [self._choose(now, extra) for _ in range(n or 1)]
            if must and made[0] is None:
                renews = self._renews(now, extra.get("among"))
                why = "the policy keeps the money for later requests" if renews is None else "no arm can be paid"
                raise Unpayable(f"{why}; renews_at says {renews}", renews)
        return made if n is not None else made[0]

    def _choose(self, now: float, extra: dict[str, Any], said: dict[str, Any] | None = None) -> Ticket | None:
        """Decide; or, if the log ``said`` what was decided, do that."""
        there, round = self._there, self._round + 1
        if "among" in extra:
            there = np.zeros(self._waiting.size, bool)  # type: ignore[assignment]
            there[[self._index(name) for name in extra["among"]]] = True  # type: ignore[index]
        if round >= MOST_INT:
            raise bad(
                "agent", f"{self._round:,} decisions", f"fewer than {MOST_INT:,}; a new one may be taught by its log"
            )
        turns = [account.turned(now, round) for account in self._accounts]
        at = None if self._pace is None else self._pace.turned(now)
        learnt, arm = (None, -1) if self._policy is None else self._decided(round, turns, at, there)
        arm = int(arm)
        held = self._held[arm] if 0 <= arm < len(self._arms) else 0
        if said is not None:
            arm, held = -1 if said["arm"] is None else self._places[said["arm"]], said.get("held", 0)
        request = None
        event: dict[str, Any] = {"do": "choose", "t": now, "id": round, **extra, "arm": None}
        if 0 <= arm < len(self._arms):
            pays = [row[arm] for row in self._pays]
            periods = [turn.period if p else None for turn, p in zip(turns, pays, strict=True)]
            request = _Request(round, arm, held, now, periods)
            event |= {"arm": self._arms[arm].name, "held": held}

        def move() -> None:
            self._round, self._now, self._learnt = round, now, learnt
            for account, turn in zip(self._accounts, turns, strict=True):
                account.turn = turn
            if self._pace is not None:
                self._pace.at = at  # type: ignore[assignment]
            if request is None:
                self._counts["turned_away"] += 1
            else:
                self._requests[round] = request
                self._waiting[arm] += 1
                self._charge(request, held)

        self._commit(event, move)
        return None if request is None else self._ticket(request)

    def _decided(self, round: int, turns: Any, at: Any, there: Any) -> tuple[Pytree, jax.Array]:
        """The policy's state and arm for a round."""
        if self._bound is None:
            self._bound = jnp.asarray(np.array([*self._held, *self._spare(ticks.ONE)], np.int32))
        view = View(np.int32(round), allowance(self._accounts, turns, self._pace, at), there)  # type: ignore[arg-type]
        known = Known(self._learnt, self._waiting.copy(), budget_state(self._accounts, turns))  # type: ignore[arg-type]
        return _decide(self._policy, known, self._words, view, self._bound, self._scope)

    def learn(self, ticket: Ticket | int, *, reward: float | None = None, cost: float) -> None:
        """The outcome of a request, once, in any order; the money that it did not cost is free again.

        A request that was given up (:meth:`expire`) may still be answered: its reward is learnt, and the difference to
        what it was charged returns to the period in which it was decided. A cost above the arm's bound is booked and
        learnt (the policy sees at most ``unit``), and a warning is logged.

        Args:
            ticket: or its id.
            reward: from 0 to ``reward_bound``; None: it is not known, only the money is settled.
            cost: in money, at least 0.

        Raises:
            Settled: it was told before.
            Misuse: a ticket that was never given, or values out of range; nothing has changed then.
        """
        with self._working():
            request = self._open(ticket)
            arm = self._arms[request.arm]
            paid = self._ticks("cost", cost, 0.0, self._unit * _MOST_COST)
            earned = None if reward is None else self._reward_ticks(reward)
            learnt = self._learnt
            if earned is not None and self._policy is not None:
                arrival = np.array([request.id, request.arm, earned, min(paid, ticks.ONE)], np.int32)
                learnt = _learn(self._policy, learnt, self._words, self._there, arrival)
            event = {"do": "learn", "id": request.id, "arm": arm.name}

            def move() -> None:
                self._counts["late"] += request.id in self._lost
                self._settle(request, paid)
                self._learnt = learnt
                arm.learn(earned, paid)
                arm.above += paid > arm.bound
                if not isinstance(self._terms["hold"], str):
                    self._held[request.arm], self._bound = arm.held(self._terms["hold"]), None

            self._commit(event | {"reward": None if reward is None else float(reward), "cost": float(cost)}, move)
            # the first, second, fourth, eighth …; what a log tells again was warned of before
            if paid > arm.bound and not arm.above & (arm.above - 1) and not self._playing:
                told = request.id, arm.name, cost, self._money(arm.bound), arm.above
                _LOGGER.warning("request %d of %s cost %g, above its bound of %g (%d so far)", *told)

    def cancel(self, ticket: Ticket | int) -> None:
        """The request was not made: nothing is learnt, and what was held for it is free again.

        Raises:
            Settled, Misuse: a ticket that is not open.
        """
        with self._working():
            request = self._open(ticket)

            def move() -> None:
                self._settle(request, 0)
                self._counts["cancelled"] += 1

            self._commit({"do": "cancel", "id": request.id}, move)

    def expire(self, *, older_than: float) -> list[Ticket]:
        """Wait no longer for requests that were decided more than so many seconds ago: they are charged as ``lost``.

        Those that are twice as old are forgotten: an answer to them would be :class:`Settled`.

        Returns:
            The tickets that are given up now. An answer that comes after all is welcome (:meth:`learn`).
        """
        with self._working():
            positive_number("older_than", older_than)
            now = self._time()
            late = [x.id for x in self._requests.values() if now - x.time > older_than]
            gone = [x.id for x in self._lost.values() if now - x.time > 2 * older_than]
            return self._give_up(late, now, gone) if late or gone else []

    def _give_up(self, ids: list[int], now: float, gone: Sequence[int] = ()) -> list[Ticket]:
        requests = [self._requests[id] for id in ids]

        def move() -> None:
            for request in requests:
                self._lost[request.id] = self._requests.pop(request.id)
                self._waiting[request.arm] -= 1
                arm = self._arms[request.arm]
                arm.lost += 1
                charged = request.held if self._terms["hold"] == "bound" else max(request.held, arm.bound)
                if self._terms["lost"] == "mean" and arm.pulls:
                    charged = arm.mean_cost()
                self._charge(request, charged - request.held)
                request.held = charged
            for id in gone:
                del self._lost[id]

        tickets = [self._ticket(request) for request in requests]
        self._commit({"do": "expire", "t": now, "ids": ids, "forget": list(gone)}, move)
        return tickets

    def _open(self, ticket: Any) -> _Request:
        id = ticket.id if isinstance(ticket, Ticket) else ticket
        whole = isinstance(id, int) and not isinstance(id, bool)
        request = (self._requests.get(id) or self._lost.get(id)) if whole else None
        if request is None:
            known = whole and 1 <= id <= self._round
            why = "it was settled, or given up and forgotten" if known else "it was never given"
            raise (Settled if known else Misuse)(str(bad("ticket", id, f"one that is open; {why}")))
        if isinstance(ticket, Ticket) and (ticket.arm, ticket.time) != (self._arms[request.arm].name, request.time):
            raise bad("ticket", ticket, f"one of this agent, whose ticket {id} is another")
        return request

    def _ticket(self, request: _Request) -> Ticket:
        return Ticket(request.id, self._arms[request.arm].name, self._money(request.held), request.time)

    def _settle(self, request: _Request, paid: int) -> None:
        """The request is over: what it did not cost returns to the period in which it was decided."""
        if self._lost.pop(request.id, None) is None:
            del self._requests[request.id]
            self._waiting[request.arm] -= 1
        self._charge(request, paid - request.held)

    def _charge(self, request: _Request, amount: int) -> None:
        for account, period in zip(self._accounts, request.periods, strict=True):
            if period is not None:
                account.charge(period, amount)

    # --- arms and terms ----------------------------------------------------------------------------------------

    def add_arm(self, name: str, bound: float) -> None:
        """An arm joins; where there is no room, the capacity doubles. That compiles, while other threads are served.

        An arm that left and comes back under its name keeps what was learnt of it.

        Raises:
            Misuse: a name that is there, or a bound above ``unit``.
        """
        with self._working():
            self._check_arm(name, bound)
            room = self._room(len(self._arms) + (name not in self._places))
            grows = room > self._waiting.size
        if grows and self._policy is not None:
            self._policy.check(FiniteSpec(room))
            self._compile(room)
        with self._working():
            self._check_arm(name, bound)

            def move() -> None:
                self._add(name, bound)
                self._lay_out()

            self._commit({"do": "add_arm", "name": name, "bound": float(bound)}, move)

    def remove_arm(self, name: str) -> None:
        """An arm leaves: it serves no more requests. Those that are open may still be answered.

        Raises:
            Misuse: no arm of that name is there.
        """
        with self._working():
            arm = self._arms[self._index(name)]

            def move() -> None:
                arm.active = False
                self._lay_out()

            self._commit({"do": "remove_arm", "name": name}, move)

    def change(
        self,
        *,
        policy: Policy | None = None,
        budgets: Sequence[Budget] | None = None,
        traffic: Traffic | None = None,
        bounds: Mapping[str, float] | None = None,
        hold: float | str | None = None,
        lost: str | None = None,
        unit: float | None = None,
    ) -> None:
        """Other terms from now on, all or none; what is not given stays.

        A budget is known by its name: it keeps what was charged to the period that is running. A policy of the same
        kind, with other parameters, keeps what was learnt; another kind is taught the outcomes that the log still has.

        Args:
            policy, budgets, traffic, hold, lost: as for a new agent.
            bounds: new bounds of some arms.
            unit: more money for a unit of cost, so that bounds may be larger; the policy is taught anew.

        Raises:
            Misuse: terms that a new agent would refuse; nothing has changed then.
        """
        with self._working():
            given: dict[str, Any] = {"policy": policy, "budgets": budgets, "traffic": traffic, "bounds": bounds}
            given |= {"hold": hold, "lost": lost, "unit": unit}
            given = {name: x for name, x in given.items() if x is not None}
            now, before, old = self._time(), json.loads(json.dumps(self._first_line())), self._policy
            if "policy" in given:
                given["policy"] = of_one_setting(policy)
            self._broken = "other terms were cut short; resume() goes on from the log"
            try:
                self._set_terms(now, given)
            except BaseException:
                self._take(old, before)
                self._broken = None
                raise
            written = {name: self._terms.get(name, x) for name, x in given.items()}
            try:
                self._commit({"do": "change", "t": now, **written}, lambda: None)
            except BaseException:
                self._policy = old  # resume() goes on with what the log knows
                raise
            if self._log is not None:  # a segment has one set of terms
                self._new_segment()

    def _set_terms(self, now: float, given: dict[str, Any]) -> None:
        """Change the state as :meth:`change` says."""
        terms, old = self._terms, self._policy
        policy, bounds = given.get("policy", old), given.get("bounds", {})
        budgets = given.get("budgets", [account.budget for account in self._accounts])
        traffic = given.get("traffic", None if terms["traffic"] is None else Traffic(**terms["traffic"]))
        hold, lost = given.get("hold", terms["hold"]), given.get("lost", terms["lost"])
        arms = {arm.name: self._money(arm.bound) for arm in self._arms} | dict(bounds)
        power = unit_of(arms, given["unit"]) if "unit" in given else self._unit
        if power < self._unit:
            raise bad("unit", given["unit"], f"at least {self._unit:g}, as it is")
        if policy is not None:
            check_terms(policy, arms, power, budgets, traffic, hold, lost)
        if power > self._unit:
            self._enlarge(power)
        for name, bound in bounds.items():
            self._arms[self._index(name)].bound = self._ticks(f"bounds[{name!r}]", bound, 0.0, self._unit)
        self._now = max(now, self._now)
        if "budgets" in given:
            gone = {account.budget.name for account in self._accounts} - {budget.name for budget in budgets}
            if gone and not self._playing:
                _LOGGER.warning("budgets %s are no more: what they were charged is forgotten", sorted(gone))
            before = {account.budget.name: (j, account) for j, account in enumerate(self._accounts)}
            self._accounts = [Account(budget, self._start, self._unit) for budget in budgets]
            followed = [
                (before[x.budget.name][0], x.follow(before[x.budget.name][1], now)) if x.budget.name in before else None
                for x in self._accounts
            ]
            for request in (*self._requests.values(), *self._lost.values()):
                request.periods = [x and renumbered(request.periods[x[0]], x[1]) for x in followed]
        if "traffic" in given:
            self._pace = None if traffic is None else Pace(traffic, self._start)
        self._terms = {**terms, **terms_of(policy, budgets, traffic, hold, lost), "unit": self._unit}
        self._policy = policy
        other = old is None or self._terms["kind"] != terms["kind"] or self._unit != terms["unit"]
        if policy is not None and other:
            self._per_arm, self._learnt, self._waiting = per_arm(policy), None, np.zeros(0, np.int32)
            self._lay_out()
            self._teach()
        else:
            self._lay_out()
            self._compile(self._waiting.size)

    def _enlarge(self, unit: float) -> None:
        """All money in larger ticks, rounded up; what is held stays what it is of what was charged."""
        factor = round(unit / self._unit)
        self._unit = unit
        requests = [*self._requests.values(), *self._lost.values()]
        for request in requests:
            self._charge(request, -request.held)
            request.held = -(-request.held // factor)
        for account in self._accounts:
            account.enlarge(factor, unit)
        for arm in self._arms:
            arm.enlarge(factor)
        for request in requests:
            self._charge(request, request.held)

    def _teach(self) -> None:
        """A policy that knows nothing learns all outcomes that the log still has."""
        if self._policy is None:
            return
        batch: list[list[int]] = []
        taught = 0
        for part in () if self._history is None else logs.segments(self._history):
            for event in logs.read(part, only="learn"):
                if event["do"] != "learn" or event["reward"] is None:
                    continue
                earned = round(event["reward"] / self._reward_bound * ticks.ONE)
                paid = min(math.ceil(event["cost"] / self._unit * ticks.ONE), ticks.ONE)
                batch.append([event["id"], self._places[event["arm"]], earned, paid])
                taught += 1
                if len(batch) == _AT_ONCE:
                    self._learn_all(batch)
        self._learn_all(batch)
        known = sum(arm.rewarded for arm in self._arms)
        level = logging.WARNING if taught < known else logging.INFO
        _LOGGER.log(level, "%s was taught %d of %d outcomes", self._terms["policy"], taught, known)

    def _learn_all(self, batch: list[list[int]]) -> None:
        if batch:
            arrived = np.zeros((_AT_ONCE, 4), np.int32)
            arrived[: len(batch)] = batch
            self._learnt = _learn_all(self._policy, self._learnt, self._words, self._there, arrived)
            batch.clear()

    def _check_arm(self, name: str, bound: float) -> int:
        """Its bound in ticks, if it can join."""
        check_name(name)
        if name in self._places:
            if self._arms[self._places[name]].active:
                raise bad("name", name, "the name of an arm that is not there")
        elif self._learnt is not None and self._per_arm:
            raise InputError(f"arms: one more given; {self._per_arm} has one value for each of {len(self._arms)} arms")
        return self._ticks("bound", bound, 0.0, self._unit)

    def _add(self, name: str, bound: float) -> None:
        held = self._check_arm(name, bound)
        if name in self._places:
            arm = self._arms[self._places[name]]
            arm.active, arm.bound = True, held
        else:
            self._places[name] = len(self._arms)
            self._arms.append(Arm(name, held))

    def _index(self, name: Any) -> int:
        place = self._places.get(name) if isinstance(name, str) else None
        if place is None or not self._arms[place].active:
            there = ", ".join(arm.name for arm in self._arms if arm.active)
            raise bad("arm", name, f"one of {there or 'none'}")
        return place

    def _room(self, arms: int) -> int:
        """The capacity for so many arms: few sizes, so that few programs are compiled."""
        return arms if self._per_arm else max(_LEAST, 1 << (arms - 1).bit_length())

    def _spare(self, value: Any) -> list[Any]:
        return [value] * (self._waiting.size - len(self._arms))

    def _lay_out(self) -> None:
        """The tables of arms as compiled functions read them."""
        room, before = self._room(len(self._arms)), self._waiting.size
        if room > before:
            if self._policy is not None:
                self._policy.check(FiniteSpec(room))
                wide = self._policy.init(FiniteSpec(room))
                wide = wide if self._learnt is None else jax.tree.map(in_first_places, wide, self._learnt)
                self._learnt = jax.tree.map(jnp.asarray, wide)
                self._compile(room)
            self._waiting = np.zeros(room, np.int32)
            for request in self._requests.values():
                self._waiting[request.arm] += 1
        self._held, self._bound = [arm.held(self._terms["hold"]) for arm in self._arms], None
        self._there = jnp.asarray(np.array([*(arm.active for arm in self._arms), *self._spare(False)], bool))
        budgets = [account.budget for account in self._accounts]
        self._pays = [[budget.arms is None or arm.name in budget.arms for arm in self._arms] for budget in budgets]
        scope = np.array([[*row, *self._spare(False)] for row in self._pays], bool)
        self._scope = jnp.asarray(scope.reshape(len(budgets), self._waiting.size))

    def _compile(self, room: int) -> None:
        """Compile all that serving so many arms needs: no request must wait for it."""
        if self._policy is None:
            return
        began, spec = time.perf_counter(), FiniteSpec(room)
        learnt, there = jax.tree.map(jnp.asarray, self._policy.init(spec)), jnp.ones(room, bool)
        turns = [account.turned(self._start, 1) for account in self._accounts]
        at = None if self._pace is None else self._pace.turned(self._start)
        view = View(np.int32(1), allowance(self._accounts, turns, self._pace, at), there)  # type: ignore[arg-type]
        known = Known(learnt, np.zeros(room, np.int32), budget_state(self._accounts, turns))  # type: ignore[arg-type]
        bound, scope = jnp.ones(room, jnp.int32), jnp.ones((len(self._accounts), room), bool)
        _decide(self._policy, known, self._words, view, bound, scope)
        _learn(self._policy, learnt, self._words, there, np.array([1, 0, 0, 0], np.int32))
        _LOGGER.info("compiled for %d arms in %.1f s", room, time.perf_counter() - began)

    # --- money and time ----------------------------------------------------------------------------------------

    def left(self) -> dict[str, float]:
        """What each budget may still spend in this period, by name; below 0: what was overspent."""
        with self._working():
            now = self._time()
            return {account.budget.name: self._money(account.left(now)) for account in self._accounts}

    def charged(self) -> dict[str, dict[float, float]]:
        """What each budget paid or holds, by name and by the time at which the period began; of the last 1,000."""
        with self._working():
            return {
                x.budget.name: {x.periods.begin(p): self._money(paid) for p, paid in x.charged.items()}
                for x in self._accounts
            }

    def renews_at(self) -> float | None:
        """When an arm can be paid again; None if one can be paid now."""
        with self._working():
            return self._renews(self._time())

    def _renews(self, now: float, among: Sequence[str] | None = None) -> float | None:
        again = []
        for k, arm in enumerate(self._arms):
            if arm.active and (among is None or arm.name in among):
                short = [
                    account.periods.begin(account.periods.at(now) + 1)
                    for account, pays in zip(self._accounts, self._pays, strict=True)
                    if pays[k] and self._held[k] > account.left(now)
                ]
                if not short:
                    return None
                again.append(max(short))
        return min(again, default=None)

    def open(self) -> list[Ticket]:
        """Tickets that are waited for."""
        with self._working():
            return [self._ticket(x) for x in self._requests.values()]

    def statistics(self) -> dict[str, Any]:
        """What it knows and what it did, as plain numbers: whole counts of all time, and money of this period.

        Of each arm: ``pulls`` (outcomes), mean ``reward`` and ``cost`` with standard errors, ``open`` and ``lost``
        requests, outcomes ``above`` the bound, the ``bound``, what a request would ``hold`` now. Of each budget: what
        is ``granted``, ``charged``, ``left`` and ``held`` for open requests; what they could cost above that
        (``at_risk``); the money by which periods were ``overspent``; the ``price`` of money, if the policy has one, in
        reward for a unit of money. Of all: ``requests``, ``turned_away``, ``cancelled``, ``late`` answers, ``open``.
        """
        with self._working():
            now, price = self._time(), self._prices()
            arms = {arm.name: self._of_arm(k, arm) for k, arm in enumerate(self._arms)}
            budgets = {}
            for j, x in enumerate(self._accounts):
                mine = [request for request in self._requests.values() if request.periods[j] is not None]
                risk = sum(max(self._arms[request.arm].bound - request.held, 0) for request in mine)
                period = x.periods.at(now)
                budgets[x.budget.name] = {
                    "granted": self._money(x.granted(period, x.turn.begun)),
                    "charged": self._money(x.paid(period)),
                    "left": self._money(x.left(now)),
                    "held": self._money(sum(request.held for request in mine)),
                    "at_risk": self._money(risk),
                    "overspent": {x.periods.begin(p): self._money(over) for p, over in sorted(x.overspent().items())},
                    "price": price[j],
                }
            counts = {name: self._counts[name] for name in ("turned_away", "cancelled", "late")}
            return {"requests": self._round, **counts, "open": len(self._requests), "arms": arms, "budgets": budgets}

    def _of_arm(self, k: int, arm: Arm) -> dict[str, Any]:
        reward, reward_error = mean_of(arm.rewarded, arm.reward, arm.reward2, self._reward_bound)
        cost, cost_error = mean_of(arm.pulls, arm.cost, arm.cost2, self._unit)
        known = {"reward": reward, "reward_error": reward_error, "cost": cost, "cost_error": cost_error}
        counts = {"open": int(self._waiting[k]), "lost": arm.lost, "above": arm.above}
        bounds = {"bound": self._money(arm.bound), "hold": self._money(self._held[k])}
        return {"active": arm.active, "pulls": arm.pulls, **known, **counts, **bounds}

    def _prices(self) -> list[float | None]:
        """Of each budget, if the policy has set one."""
        policy, state = self._policy, self._learnt
        while isinstance(policy, Around):
            state, policy = policy.learnt(state), policy.policy
        scale, price = self._reward_bound / self._unit, getattr(state, "price", None)
        none: list[float | None] = [None] * len(self._accounts)
        return none if price is None else [float(x) * scale if x >= 0 else None for x in np.asarray(price)]

    def _time(self) -> float:
        return self._clock.read(self._now)

    def _money(self, amount: int) -> float:
        """Ticks as money."""
        return amount * self._unit / ticks.ONE

    def _ticks(self, name: str, value: Any, least: float, most: float) -> int:
        """Money as ticks, rounded up."""
        given = number(name, value)
        if not least <= given <= most:
            raise bad(name, value, f"from {least:.3g} to {most:g}")
        return math.ceil(given / self._unit * ticks.ONE)

    def _reward_ticks(self, reward: Any) -> int:
        given, most = number("reward", reward), self._reward_bound
        if not 0 <= given <= most:
            raise bad("reward", reward, f"from 0 to {most:g}")
        whole = round(given / most * ticks.ONE)
        if given and not whole:
            raise bad("reward", reward, f"0, or at least {most / 2 / ticks.ONE:.3g}, half a tick")
        return whole

    # --- on disk -----------------------------------------------------------------------------------------------

    def digest(self) -> str:
        """A hash of the whole state; agents of equal digests and terms decide the same for ever."""
        with self._lock:
            return hashlib.sha256(json.dumps(self._plain(), sort_keys=True).encode()).hexdigest()

    def _plain(self) -> dict[str, Any]:
        """The state as plain JSON."""
        return {
            "round": self._round,
            "now": self._now if math.isfinite(self._now) else None,
            "arms": [vars(arm) | {"seen": sorted(arm.seen.items())} for arm in self._arms],
            "requests": [list(vars(request).values()) for request in self._requests.values()],
            "lost": [list(vars(request).values()) for request in self._lost.values()],
            "accounts": [account.plain() for account in self._accounts],
            "pace": None if self._pace is None else self._pace.at,
            "counts": sorted((name, count) for name, count in self._counts.items() if count),
            "learnt": logs.packed(self._learnt),
        }

    def _first_line(self) -> dict[str, Any]:
        """The first line of a segment: terms and state."""
        begin = {"do": "begin", "format": logs.FORMAT, "by": logs.versions(), "segment": self._segment}
        return begin | {"events": self._events, "terms": self._terms, "told": self._told, "state": self._plain()}

    def _take(self, policy: Policy | None, line: dict[str, Any]) -> bool:
        """The state that a first line holds (None: that of a new agent). Is what was learnt that of such a policy?"""
        self._terms, self._told, state = line["terms"], line["told"], line["state"] or {}
        self._segment, self._events = line["segment"], line["events"]
        self._reward_bound, self._unit, self._start = (self._terms[x] for x in ("reward_bound", "unit", "start"))
        self._words = np.array(self._terms["key"], np.uint32)
        self._policy, self._per_arm = policy, per_arm(policy)
        now = state.get("now")
        self._round, self._now = state.get("round", 0), -math.inf if now is None else now
        self._arms = [Arm(**{**arm, "seen": dict(arm["seen"])}) for arm in state.get("arms", ())]
        self._places = {arm.name: k for k, arm in enumerate(self._arms)}
        self._requests, self._lost = (
            {x[0]: _Request(*x) for x in state.get(kind, ())} for kind in ("requests", "lost")
        )
        budgets = [Budget(**budget) for budget in self._terms["budgets"]]
        self._accounts = [Account(budget, self._start, self._unit) for budget in budgets]
        for account, plain in zip(self._accounts, state.get("accounts", ()), strict=False):
            account.take(plain)
        self._pace = None if self._terms["traffic"] is None else Pace(Traffic(**self._terms["traffic"]), self._start)
        if self._pace is not None and "pace" in state:
            self._pace.at = tuple(state["pace"])  # type: ignore[assignment]
        self._counts = Counter(dict(state.get("counts", ())))
        self._learnt, self._waiting = None, np.zeros(0, np.int32)
        if not state:
            return True
        self._lay_out()
        learnt = None if policy is None else logs.unpacked(state["learnt"], self._learnt)
        if learnt is None:
            return False
        self._learnt = jax.tree.map(jnp.asarray, learnt)
        return True

    def save(self, path: Any) -> None:
        """Write the whole state to a file, at once or not at all, as the first line of a log.

        Raises:
            InputError: no file can be written there.
        """
        with self._working():
            place, line = path_of("path", path), json.dumps(self._first_line()).encode() + b"\n"
            try:
                write_whole(place, lambda file: file.write(line))
            except OSError as problem:
                raise bad("path", str(place), f"a file that can be written ({reason_of(problem)})") from None

    @classmethod
    def load(
        cls,
        path: Any,
        *,
        log: Any = None,
        policy: Policy | None = None,
        clock: Callable[[], float] = time.time,
        tolerance: float | None = None,
        sync: bool = False,
        **changes: Any,
    ) -> Agent:
        """Go on from what :meth:`save` wrote, or from a log.

        Args:
            path: the file.
            log: a new file: a log begins with this state. The log that the agent wrote: go on from its end.
            policy: a policy of your own must be given; those of ``jb.policies`` are made again. Another one takes over.
            clock, tolerance, sync: as for a new agent.
            **changes: other terms, as :meth:`change` takes them.

        Raises:
            InputError: no such file, a log of another agent, terms that a new agent would refuse.
        """
        place, agent = path_of("path", path), cls.__new__(cls)
        agent._begin(clock, tolerance, sync)
        given = None if policy is None else of_one_setting(policy)
        where = None if log is None else path_of("log", log)
        if where is not None and not logs.never_begun(where):
            agent._go_on(where, given, changes, next(logs.read(place))["terms"])
            return agent
        changes |= agent._replay(place, given)[1]
        if where is not None:
            agent._segment = 1
            agent._begin_log(where)
            agent._history = place
        if changes:
            agent.change(**changes)
        return agent

    @classmethod
    def from_log(cls, log: Any, **given: Any) -> Agent:
        """The agent that wrote this log, in the state after its last whole line; the log is continued.

        The last segment is played again: the policy moves as it moved then, and what the log says was decided counts.
        On the version and the kind of processor that wrote it the state is the same to the bit.

        Args:
            log: the file.
            **given: as for :meth:`load`.

        Raises:
            InputError: no such log, or terms that a new agent would refuse.
        """
        return cls.load(log, log=log, **given)

    def _go_on(
        self,
        place: Path,
        given: Policy | None,
        changes: dict[str, Any],
        terms: dict[str, Any] | None = None,
        told: dict[str, float] | None = None,
    ) -> None:
        """Go on from a log and continue it, if its fixed ``terms`` are these; then make the changes.

        With ``told``, what a constructor says, those terms that are others than at the last start are changes too.
        """
        log = logs.Log(place, self._sync)
        try:
            begin = next(logs.read(place))
            others = [x for x in _FIXED if terms and begin["terms"][x] != terms[x]]
            if others:
                raise InputError(f"log: its terms are others ({', '.join(others)}); it must be the log of this agent")
            played, policy = self._replay(place, given)
            log.go_on()  # only now: it is a log, and this agent's
        except BaseException:
            log.close()
            raise
        self._log, self._place = log, place
        try:
            changes = changes | policy
            if told is not None and terms is not None:
                played |= told != self._told
                changes |= self._told_now(json.loads(json.dumps(terms)), told)
            if changes:
                self.change(**changes)
            elif played:
                self._new_segment()
        except BaseException:
            log.close()
            raise

    def _replay(self, place: Path, given: Policy | None) -> tuple[bool, dict[str, Any]]:
        """The state that a segment ends in: did anything happen, and the change to this policy, if it is one."""
        self._history = place
        first, *events = logs.read(place)
        text = next((x["policy"] for x in reversed(events) if "policy" in x), first["terms"]["policy"])
        policy = logs.policy_of(text, None) if given is None else given
        kind = logs.written(policy, values=False)
        if not self._take(policy if kind == first["terms"]["kind"] else None, first) and self._policy is not None:
            self._take(None, first)  # its state is that of another version
        for line, event in enumerate(events, start=2):
            self._play(event, line)
        other = self._policy is None or logs.written(policy) != self._terms["policy"]
        return bool(events), {"policy": policy} if other else {}

    def _told_now(self, terms: dict[str, Any], told: dict[str, float]) -> dict[str, Any]:
        """What a constructor says otherwise than at the last start: arms join and leave; the rest is given back."""
        unit = terms["unit"] or (unit_of(told, None) if max(told.values()) > self._unit else self._unit)
        if unit != self._unit:
            self.change(unit=unit)  # before bounds that need it
        changes: dict[str, Any] = {x: terms[x] for x in ("hold", "lost") if terms[x] != self._terms[x]}
        if terms["budgets"] != self._terms["budgets"]:
            changes["budgets"] = [Budget(**budget) for budget in terms["budgets"]]
        if terms["traffic"] and terms["traffic"] != self._terms["traffic"]:
            changes["traffic"] = Traffic(**terms["traffic"])
        before, self._told = self._told, told
        there = {arm.name for arm in self._arms if arm.active}
        for name in told:
            if name not in before and name not in there:
                self.add_arm(name, told[name])
        for name in before:
            if name not in told and name in there:
                self.remove_arm(name)
        bounds = {x: bound for x, bound in told.items() if x in there and before.get(x) != bound}
        return changes | ({"bounds": bounds} if bounds else {})

    def _play(self, event: dict[str, Any], number: int, check: bool = False) -> None:
        """Let happen again what a line of a log says; ``check``: and see that the decision would be the same."""
        self._playing = True
        try:
            self._play_one(event, number, check)
        finally:
            self._playing = False

    def _play_one(self, event: dict[str, Any], number: int, check: bool) -> None:
        said = dict(event)
        do = said.pop("do")
        if do == "choose":
            extra: dict[str, Any] = {name: said[name] for name in ("among", "request") if name in said}
            ticket = self._choose(said["t"], extra, None if check else said)
            arm = None if ticket is None else ticket.arm
            if (self._round, arm) != (event["id"], event["arm"]):
                raise InputError(
                    f"log: line {number} says {shown(event['arm'])} for request {event['id']}, and {shown(arm)} comes "
                    "out; it must be played by the version that wrote it, on the same kind of processor"
                )
        elif do == "expire":
            self._give_up(said["ids"], said["t"], said["forget"])
        elif do == "learn":
            self.learn(said["id"], reward=said["reward"], cost=said["cost"])
        elif do == "cancel":
            self.cancel(said["id"])
        elif do in ("add_arm", "remove_arm"):
            getattr(self, do)(**said)
        elif do == "clock":
            self._commit(event, lambda: setattr(self, "_now", said["t"]))
        elif do == "change":
            if said.get("unit", self._unit) != self._unit:
                self._policy = None  # it is taught when all has been played
            made = {**said, "budgets": [Budget(**x) for x in said.get("budgets", ())]}
            made["traffic"] = Traffic(**said["traffic"]) if said.get("traffic") else None
            made.pop("policy", None)  # it is the one that plays already
            self._set_terms(made.pop("t"), {name: made[name] for name in made if name in said})
            self._events += 1
        else:
            raise InputError(f"log: line {number} says {shown(do)}; it must be an event of format {logs.FORMAT}")

    def close(self) -> None:
        """Write no more to the log, so that another agent may continue it; what is known may still be read."""
        with self._lock:
            if self._log is not None:
                self._log.close()
