"""A policy that serves requests: many at once, of any thread, with budgets that renew; saved, logged, continued.

All that is known is in :class:`~jaxbandits.apps.live.state.State`, and every event takes one way to it,
:meth:`Agent._do`: it is decided, its line is written, it is applied. So the state is the first line of the last segment
of the log, after the events of the lines behind it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import decimal
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxbandits._files import path_of, reason_of, write_whole
from jaxbandits.apps.live import log as logs
from jaxbandits.apps.live.budgets import Arm, Budget, Traffic, mean_of
from jaxbandits.apps.live.clock import Clock
from jaxbandits.apps.live.errors import Broken, Misuse, Unpayable
from jaxbandits.apps.live.state import Request, State, of_one_setting, terms_of, unit_of
from jaxbandits.core import streams, ticks
from jaxbandits.core.checks import InputError, bad, number, positive_number, whole_number
from jaxbandits.core.protocol import Policy
from jaxbandits.policies.wrappers import Around

_LOGGER = logging.getLogger("jaxbandits.apps.live")
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


class Agent:
    """Requests in flight and budgets that renew, decided as the simulator decides them.

    Thread-safe; for several processes see :func:`serve`. Money is exact: costs are rounded up to ticks (2⁻²⁴ of
    ``unit``) and budgets down, an open request is charged what is held for it, and while no request costs more than was
    held, in no period more is spent than is granted. What costs more is booked all the same, and :meth:`statistics`
    says by how much a period is overspent.

    Every call raises :class:`Misuse` on what cannot be meant, and then nothing has changed; :class:`Broken` where the
    log cannot be written, until :meth:`resume`, and in a fork. Both say what to do.

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
            those of the last start become the terms from now on; what :meth:`change`, :meth:`add_arm` and
            :meth:`remove_arm` did since stays. A service that may have been killed begins so.
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

    _state: State

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
        self._begin(clock, tolerance, sync)
        given, power = of_one_setting(policy), unit_of(arms, unit)
        bounds = {name: float(bound) for name, bound in arms.items()}
        terms = {"policy": given, "budgets": budgets, "traffic": traffic, "unit": power, "hold": hold, "lost": lost}
        terms |= {
            "reward_bound": positive_number("reward_bound", reward_bound),
            "base": power,
            "key": jax.random.key_data(streams.root_key(key)),
            "start": number("start", start),
        }
        terms = terms_of(terms)
        place = None if log is None else path_of("log", log)
        if resume and place is not None and not logs.never_begun(place):
            self._go_on(place, given, told={"arms": bounds, **terms})
            return
        self._state = State.new(given, terms, bounds)
        if place is not None:
            self._begin_log(place)
        self._state.compile(self._state.waiting.size)

    def _begin(self, clock: Callable[[], float], tolerance: float | None, sync: bool) -> None:
        """What is of this process."""
        self._clock = Clock(clock, tolerance)
        self._sync, self._lock, self._process = sync, threading.RLock(), os.getpid()
        self._log: logs.Log | None = None
        self._broken: str | None = None  # why nothing more may happen

    def _begin_log(self, place: Path) -> None:
        if not logs.never_begun(place):
            raise bad("log", str(place), "a new file; an old one is continued with resume=True, or Agent.from_log")
        self._log, self._state.history = logs.Log(place, self._sync), place
        try:
            self._log.begin(self._state.line())
        except OSError as problem:
            raise bad("log", str(place), f"a file that can be written ({reason_of(problem)})") from None

    def __repr__(self) -> str:
        """Policy, arms, open requests, and what is wrong."""
        arms = ", ".join(arm.name for arm in self._state.arms if arm.active)
        wrong = f"; {self._broken}" if self._broken else ""
        return f"<Agent: {self._state.terms['policy']}; arms: {arms}; {len(self._state.requests):,} open{wrong}>"

    # --- one at a time, and only while all is well -------------------------------------------------------------

    @contextlib.contextmanager
    def _working(self) -> Iterator[State]:
        self._refuse_fork()
        with self._lock:
            if self._broken is not None:
                raise Broken(self._broken)
            try:
                yield self._state
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

    @contextlib.contextmanager
    def _moving(self, what: str) -> Iterator[None]:
        """What is cut short in here is an end, until :meth:`resume`."""
        if self._log is not None and self._log.closed:
            raise Broken("the log is closed; go on with resume(), or Agent.from_log")
        self._broken = f"{what} was cut short; resume() goes on from the log"
        try:
            yield
        except OSError as problem:
            self._broken = f"the log could not be written ({reason_of(problem)}); resume() goes on when it can be"
            raise Broken(self._broken) from problem
        self._broken = None

    def _do(self, event: dict[str, Any]) -> dict[str, Any]:
        """The way of every event: it is decided, then its line is written, then the state moves."""
        event, learnt = self._state.decide(event)
        if self._log is not None and self._log.room <= 0:
            self._rotate()
        with self._moving("an event between its line in the log and the state"):
            if self._log is not None:
                self._log.write(event)
            self._state.apply(event, learnt)
        return event

    def _rotate(self, state: State | None = None, change: dict[str, Any] | None = None) -> None:
        """A new segment of the log begins; with these state, if terms change: then it must."""
        with self._moving("a new segment of the log"):
            new = self._state if state is None else state
            new.segment += 1
            try:
                if self._log is not None:
                    self._log.begin(new.line() | ({} if change is None else {"change": change}))
            except OSError as problem:
                new.segment -= 1
                if change is not None:
                    raise
                _LOGGER.warning("the log could not begin a new segment (%s)", reason_of(problem))
            self._state = new

    def resume(self) -> None:
        """Go on after :class:`Broken`, from what the log says; and take the clock at its word, wherever it stands now.

        A ticket of a call that was cut short may be open then, though nobody has it: see :meth:`open`. Without a log
        there is nothing to go on from.
        """
        self._refuse_fork()
        with self._lock:
            if (why := self._broken) is not None or (self._log is not None and self._log.closed):
                if self._log is None:
                    raise Broken(f"{why}; this agent has no log to go on from")
                self._broken = why = why or "the log is closed"
                self._log.close()
                try:
                    self._go_on(self._log.place, self._state.policy, stays=True)
                except (OSError, InputError) as problem:
                    self._broken = why
                    raise Broken(f"{why} ({problem})") from problem
                self._broken = None
        with self._working() as state:
            now = self._clock.told()
            if now != state.now:
                self._do({"do": "clock", "t": now})

    # --- requests ----------------------------------------------------------------------------------------------

    def choose(
        self,
        n: int | None = None,
        available: Sequence[str] | None = None,
        *,
        request: Any = None,
        must: bool = False,
    ) -> Any:
        """Decide for a request: its :class:`Ticket`, or None if it cannot be paid (see :meth:`renews_at`).

        Args:
            n: decide for so many at once, none of which knows of another's outcome: a list of as many. Default: one.
            available: names of the arms that may serve it; default all.
            request: a name of your own for it; the log has its text beside the ticket's id.
            must: raise :class:`Unpayable` instead of giving None; for one request.
        """
        with self._working():
            if n is not None:
                whole_number("n", n, 1)
            asked: dict[str, Any] = {"do": "choose", "t": self._time()}
            if available is not None:
                asked["among"] = list(available)
            if request is not None:
                asked["request"] = str(request)
            made = []
            for _ in range(n or 1):
                event = self._do(asked)
                made.append(None if event["arm"] is None else self._ticket(self._state.requests[event["id"]]))
            if must and made[0] is None:
                renews = self._renews(asked["t"], available)
                why = "the policy keeps the money for later requests" if renews is None else "no arm can be paid"
                if not asked.get("among", self._state.there.any()):
                    why = "there is no arm"
                raise Unpayable(f"{why}; renews_at says {renews}", renews)
        return made if n is not None else made[0]

    def learn(self, ticket: Ticket | int, *, reward: float | None = None, cost: float) -> None:
        """The outcome of a request, once, in any order; the money that it did not cost is free again.

        A request that was given up (:meth:`expire`) may still be answered: its reward is learnt, and the difference to
        what it was charged returns to the period in which it was decided. A cost above the arm's bound is booked and
        learnt (the policy sees at most ``unit``), and a warning is logged.

        Args:
            ticket: or its id.
            reward: from 0 to ``reward_bound``; None: it is not known, only the money is settled.
            cost: in money, at least 0. Of a :class:`~decimal.Decimal` the nearest float is taken.

        Raises:
            Settled: it was told before.
        """
        with self._working() as state:
            arm = state.arms[state.find(id := self._id(ticket)).arm]
            reward, cost = (float(x) if isinstance(x, decimal.Decimal) else x for x in (reward, cost))  # type: ignore[assignment]
            above = arm.above
            self._do({"do": "learn", "id": id, "reward": reward, "cost": cost})
            if arm.above > above and not arm.above & above:  # the first, second, fourth, eighth …
                told = id, arm.name, cost, state.money(arm.bound), arm.above
                _LOGGER.warning("request %d of %s cost %g, above its bound of %g (%d so far)", *told)

    def cancel(self, ticket: Ticket | int) -> None:
        """The request was not made: nothing is learnt, and what was held for it is free again."""
        with self._working():
            self._do({"do": "cancel", "id": self._id(ticket)})

    def expire(self, *, older_than: float) -> list[Ticket]:
        """Wait no longer for requests that were decided more than so many seconds ago: they are charged as ``lost``.

        Those that are twice as old are forgotten: an answer to them would be :class:`Settled`.

        Returns:
            The tickets that are given up now. An answer that comes after all is welcome (:meth:`learn`).
        """
        with self._working() as state:
            positive_number("older_than", older_than)
            now = self._time()
            late = [x for x in state.requests.values() if now - x.time > older_than]
            gone = [x.id for x in state.lost.values() if now - x.time > 2 * older_than]
            tickets = [self._ticket(request) for request in late]
            if late or gone:
                self._do({"do": "expire", "t": now, "ids": [x.id for x in late], "forget": gone})
            return tickets

    def _id(self, ticket: Any) -> Any:
        """The id of a ticket, which must be of this agent."""
        if not isinstance(ticket, Ticket):
            return ticket
        mine = self._ticket(self._state.find(ticket.id))
        if (ticket.arm, ticket.time) != (mine.arm, mine.time):
            raise bad("ticket", ticket, f"one of this agent, whose ticket {ticket.id} is another")
        return ticket.id

    def _ticket(self, request: Request) -> Ticket:
        name, reserved = self._state.arms[request.arm].name, self._state.money(request.held)
        return Ticket(request.id, name, reserved, request.time)

    # --- arms and terms ----------------------------------------------------------------------------------------

    def add_arm(self, name: str, bound: float) -> None:
        """An arm joins; where there is no room, the capacity doubles. That compiles, while other threads are served.

        An arm that left and comes back under its name keeps what was learnt of it. A bound is at most ``unit``.
        """
        with self._working() as state:
            state.joins(name, bound)
            room = state.room(len(state.arms) + (name not in state.places))
        if room > state.waiting.size:
            state.compile(room)
        with self._working():
            self._do({"do": "add_arm", "name": name, "bound": float(bound)})

    def remove_arm(self, name: str) -> None:
        """An arm leaves: it serves no more requests. Those that are open may still be answered."""
        with self._working():
            self._do({"do": "remove_arm", "name": name})

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
        """Other terms from now on, all or none; what is not given stays. A new segment of the log begins.

        A budget is known by its name, or where only its name is new, by all the rest: it keeps what was charged to the
        period that is running. A policy of the same kind, with other parameters, keeps what was learnt; another kind is
        taught the outcomes that the log still has.

        Args:
            policy, budgets, traffic, hold, lost: as for a new agent.
            bounds: new bounds of some arms.
            unit: more money for a unit of cost, so that bounds may be larger; the policy is taught anew.
        """
        with self._working():
            policy = None if policy is None else of_one_setting(policy)
            given: dict[str, Any] = {"policy": policy, "budgets": budgets, "traffic": traffic, "bounds": bounds}
            given |= {"hold": hold, "lost": lost, "unit": unit}
            given = terms_of({name: x for name, x in given.items() if x is not None})
            self._rotate(self._state.changed(self._time(), policy, given), given)

    # --- money and time ----------------------------------------------------------------------------------------

    def left(self) -> dict[str, float]:
        """What each budget may still spend in this period, by name; below 0: what was overspent."""
        with self._working() as state:
            now = self._time()
            return {account.budget.name: state.money(account.left(now)) for account in state.accounts}

    def charged(self) -> dict[str, dict[float, float]]:
        """What each budget paid or holds, by name and by the time at which the period began; of the last 1,000."""
        with self._working() as state:
            return {x.budget.name: state.by_period(x, x.charged) for x in state.accounts}

    def renews_at(self) -> float | None:
        """When an arm can be paid again; None if one can be paid now."""
        with self._working():
            return self._renews(self._time())

    def _renews(self, now: float, among: Sequence[str] | None = None) -> float | None:
        state, again = self._state, []
        for k, arm in enumerate(state.arms):
            if arm.active and (among is None or arm.name in among):
                short = [x for x, pays in zip(state.accounts, state.pays, strict=True) if pays[k]]
                short = [x for x in short if state.held[k] > x.left(now)]
                if not short:
                    return None
                again.append(max(x.periods.begin(x.periods.at(now) + 1) for x in short))
        return min(again, default=None)

    def open(self) -> list[Ticket]:
        """Tickets that are waited for."""
        with self._working() as state:
            return [self._ticket(x) for x in state.requests.values()]

    def statistics(self) -> dict[str, Any]:
        """What it knows and what it did, as plain numbers: whole counts of all time, and money of this period.

        Of each arm: ``pulls`` (outcomes), mean ``reward`` and ``cost`` with standard errors, ``open`` and ``lost``
        requests, outcomes ``above`` the bound, the ``bound``, what a request would ``hold`` now. Of each budget: what
        is ``granted``, ``charged``, ``left`` and ``held`` for open requests; what they could cost above that
        (``at_risk``); the money by which periods were ``overspent``; the ``price`` of money, if the policy has one, in
        reward for a unit of money. Of all: ``requests``, ``turned_away``, ``cancelled``, ``late`` answers, ``open``.
        """
        with self._working() as state:
            now, money = self._time(), state.money
            budgets = {}
            for x, pays, price in zip(state.accounts, state.pays, self._prices(), strict=True):
                mine = [request for request in state.requests.values() if pays[request.arm]]
                budgets[x.budget.name] = {
                    "granted": money(x.granted(now)),
                    "charged": money(x.paid(now)),
                    "left": money(x.left(now)),
                    "held": money(sum(request.held for request in mine)),
                    "at_risk": money(sum(max(state.arms[request.arm].bound - request.held, 0) for request in mine)),
                    "overspent": state.by_period(x, x.overspent(now)),
                    "price": price,
                }
            counts = {name: state.counts[name] for name in ("turned_away", "cancelled", "late")}
            arms = {arm.name: self._of_arm(k, arm) for k, arm in enumerate(state.arms)}
            return {"requests": state.round, **counts, "open": len(state.requests), "arms": arms, "budgets": budgets}

    def _of_arm(self, k: int, arm: Arm) -> dict[str, Any]:
        state = self._state
        reward, reward_error = mean_of(arm.rewarded, arm.reward, arm.reward2, state.reward_bound / ticks.ONE)
        cost, cost_error = mean_of(arm.pulls, arm.cost, arm.cost2, state.money(1))
        known = {"reward": reward, "reward_error": reward_error, "cost": cost, "cost_error": cost_error}
        counts = {"open": int(state.waiting[k]), "lost": arm.lost, "above": arm.above}
        bounds = {"bound": state.money(arm.bound), "hold": state.money(int(state.held[k]))}
        return {"active": arm.active, "pulls": arm.pulls, **known, **counts, **bounds}

    def _prices(self) -> list[float | None]:
        """Of each budget, if the policy has set one."""
        policy, learnt = self._state.policy, self._state.learnt
        while isinstance(policy, Around):
            learnt, policy = policy.learnt(learnt), policy.policy
        scale, price = self._state.reward_bound / self._state.unit, getattr(learnt, "price", None)
        none: list[float | None] = [None] * len(self._state.accounts)
        return none if price is None else [float(x) * scale if x >= 0 else None for x in np.asarray(price)]

    def _time(self) -> float:
        return self._clock.read(self._state.now)

    # --- on disk -----------------------------------------------------------------------------------------------

    def digest(self) -> str:
        """A hash of the whole state; agents of equal digests and terms decide the same for ever."""
        with self._lock:
            return self._state.digest()

    def save(self, path: Any) -> None:
        """Write the whole state to a file, at once or not at all, as the first line of a log."""
        with self._working() as state:
            place, line = path_of("path", path), json.dumps(state.line()).encode() + b"\n"
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
            log: a new file: a log begins with this state. The same file: that log is continued.
            policy: a policy of your own must be given; those of ``jb.policies`` are made again. Another one takes over.
            clock, tolerance, sync: as for a new agent.
            **changes: other terms, as :meth:`change` takes them.
        """
        place, agent = path_of("path", path), cls.__new__(cls)
        agent._begin(clock, tolerance, sync)
        given, where = None if policy is None else of_one_setting(policy), None if log is None else path_of("log", log)
        if where == place:
            agent._go_on(place, given, changes)
            return agent
        agent._state, other = _played(place, given)
        if changes := changes | ({} if other is None else {"policy": other}):
            agent.change(**changes)  # before its log is another one, from which it cannot be taught
        if where is not None:
            agent._state.segment = 1
            agent._begin_log(where)
        return agent

    @classmethod
    def from_log(cls, log: Any, **given: Any) -> Agent:
        """The agent that wrote this log, in the state after its last whole line; the log is continued.

        The last segment is played again: the policy moves as it moved then, and what the log says was decided counts.
        On the version and the kind of processor that wrote it the state is the same to the bit.
        Other arguments are those of :meth:`load`.
        """
        return cls.load(log, log=log, **given)

    def _go_on(
        self,
        place: Path,
        given: Policy | None,
        changes: dict[str, Any] | None = None,
        told: dict[str, Any] | None = None,
        stays: bool = False,
    ) -> None:
        """Go on from a log and continue it, under these changes, by this policy unless the log's ``stays``.

        With ``told``, what a constructor says, it is changed what that says otherwise than at the last start.
        """
        log = logs.Log(place, self._sync)
        try:
            begin = next(logs.read(place))
            if told is not None:
                if others := [x for x in _FIXED if begin["terms"][x] != told[x]]:
                    said = ", ".join(others)
                    raise InputError(f"log: its terms are others ({said}); it must be the log of this agent")
                stays = told["policy"] == begin["told"]["policy"]
            self._state, other = _played(place, given, stays)
            log.go_on()  # only now: it is a log, and this agent's
            self._log = log
            changes = (changes or {}) | ({} if other is None else {"policy": other})
            if told not in (None, self._state.told):
                changes |= self._told_now(told)  # type: ignore[arg-type]
            if changes:
                self.change(**changes)
            elif (self._state.events, self._state.told) != (begin["events"], begin["told"]):
                self._rotate()
        except BaseException:
            log.close()
            raise

    def _told_now(self, told: dict[str, Any]) -> dict[str, Any]:
        """What a constructor says otherwise than at the last start: arms join and leave; the rest is given back."""
        before, self._state.told = self._state.told, told
        if told["unit"] > self._state.unit:
            self.change(unit=told["unit"])  # before bounds that need it
        there = {arm.name for arm in self._state.arms if arm.active}
        old, new = before["arms"], told["arms"]
        for name in new:
            if name not in old and name not in there:
                self.add_arm(name, new[name])
        for name in old:
            if name not in new and name in there:
                self.remove_arm(name)
        changes = {x: told[x] for x in ("hold", "lost", "budgets", "traffic") if told[x] not in (None, before[x])}
        if "budgets" in changes:
            changes["budgets"] = [Budget(**budget) for budget in told["budgets"]]
        if "traffic" in changes:
            changes["traffic"] = Traffic(**told["traffic"])
        bounds = {name: bound for name, bound in new.items() if name in there and bound != old.get(name)}
        return changes | ({"bounds": bounds} if bounds else {})

    def close(self) -> None:
        """Write no more to the log, so that another agent may continue it; what is known may still be read."""
        with self._lock:
            if self._log is not None:
                self._log.close()


def _played(place: Path, given: Policy | None, stays: bool = False) -> tuple[State, Policy | None]:
    """The state in which a segment ends, and the policy that is to take over: the ``given`` one, unless it ``stays``.

    The policy that the log says moves as it moved then; if it is one of the caller's own and not given, none does: then
    the given one is taught the outcomes afterwards.
    """
    first, *events = logs.read(place)
    text = first["terms"]["policy"]
    try:
        policy: Policy | None = of_one_setting(logs.policy_of(text, given))
    except InputError:
        if given is None:
            raise
        policy, stays = given if logs.written(given, values=False) == first["terms"]["kind"] else None, False
    state = State(policy, first, place)
    for line, event in enumerate(events, start=2):
        state.replay(event, line)
    state.compile(state.waiting.size)
    other = given is not None and not stays and logs.written(given) != text
    return state, (given or policy) if other or state.policy is None else None
