"""A policy that serves requests: any number of threads and processes, one file, budgets that renew.

Every call is one transaction of SQLite on the agent's file (:mod:`jaxbandits.apps.live.ledger`), so it has happened
wholly or not at all, and the next one, of whatever process, begins where it ended.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxbandits._files import path_of, reason_of
from jaxbandits.apps.live.budgets import (
    BILLION,
    MOST_COST,
    Account,
    Breaker,
    Budget,
    Traffic,
    billionths,
    mean_of,
    money,
)
from jaxbandits.apps.live.clock import Clock
from jaxbandits.apps.live.errors import Broken, Misuse, Unpayable
from jaxbandits.apps.live.ledger import FORMAT, Layout, Ledger, Request, numbered, terms_of, unit_of
from jaxbandits.apps.live.program import of_one_setting, policy_of
from jaxbandits.core import streams, ticks
from jaxbandits.core.checks import InputError, bad, number, positive_number, whole_number
from jaxbandits.core.protocol import Policy
from jaxbandits.policies.wrappers import Around

_USUAL = Breaker()
_FIXED = ("reward_bound", "key", "start")  # what a file keeps for ever: its numbers are in these


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

    Any number of threads may share an agent, and any number of processes may make one of the same file. Money is whole
    billionths of the currency, of what is written: bounds and costs rounded up, budgets down. An open request is
    charged what is held for it; while none costs more than was held, no period pays more than it grants. What costs
    more is booked all the same, and :meth:`statistics` says by how much the period is overspent.

    A call raises :class:`Misuse` on what cannot be meant and :class:`Broken` where the file cannot be written. Then
    nothing has changed, and the next call tries again.

    Args:
        policy: any policy for finitely many arms; ``OmegaUCB`` for reward per money, ``PricePacer`` or ``EvenPace``
            where budgets are to last. Inside ``Discounted`` where prices and quality change.
        arms: names, and the most that a request to each can cost, in money; 0 for one that is free.
        reward_bound: rewards are from 0 to this.
        key: ``jax.random.key(seed)``.
        budgets: see :class:`Budget`; none: nothing is ever refused.
        traffic: how many requests are expected, for policies that pace; see :class:`Traffic` for what None learns.
        file: where all is kept; None: in memory, as long as this agent lives. Where the file is there already the agent
            goes on with it. Arguments that differ from those of the last who did so become the terms from now on; what
            :meth:`change`, :meth:`add_arm` and :meth:`remove_arm` did since stays.
        hold: what an open request holds: the ``"bound"`` of its arm, or a quantile of the arm's own costs, such as
            0.99: then dear arms are payable for longer, and what costs more may overspend a period
            (``statistics()["budgets"][name]["at_risk"]`` is the most that open requests can add).
        lost: what a request is charged whose cost nobody knows (:meth:`expire`, :meth:`fail`): the ``"mean"`` of its
            arm's costs, which is right on average if those cost what the others cost, or its ``"bound"``.
        breaker: when an arm is set aside that fails again and again, see :class:`Breaker`; None: never.
        times_bound: a cost above so many times its arm's bound is refused (a wrong unit?), unless it is confirmed.
        retention: seconds that events are kept for :func:`events` and :func:`audit`; default 90 days. The agent itself
            needs none of them.
        start: when periods of so many seconds begin, in seconds of the clock.
        clock: what time it is, default :func:`time.time`.
        tolerance: a reading so many seconds away from what it can be is refused, until :meth:`resume` takes it at its
            word. Default: an hour, by :func:`time.monotonic`; of a clock that was given a week, by the last event.
        patience: seconds to wait for other processes to finish their calls.
        sync: wait for the disk after every call. Without, a machine (no process) that dies may lose the last calls.

    Raises:
        InputError: naming the argument, before anything is compiled or written.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> agent = jb.live.Agent(
        ...     jb.policies.OmegaUCB(), arms={"small": 0.01, "large": 0.2}, reward_bound=1.0,
        ...     budgets=[jb.live.Budget(amount=0.25, every=86400.0)], key=jax.random.key(0), clock=lambda: 0.0)
        >>> first, second = agent.choose(), agent.choose()
        >>> first.arm, second.arm, agent.left()["budget"]
        ('small', 'large', 0.04)
        >>> agent.learn(second, reward=1.0, cost=0.05)
        >>> agent.left()["budget"]
        0.19
        >>> [ticket.arm if ticket else None for ticket in agent.choose(n=3)], agent.renews_at()
        (['small', 'small', 'small'], None)
    """

    def __init__(
        self,
        policy: Policy,
        *,
        arms: Mapping[str, Any],
        reward_bound: float,
        key: Any,
        budgets: Sequence[Budget] = (),
        traffic: Traffic | None = None,
        file: Any = None,
        hold: float | str = "bound",
        lost: str = "mean",
        breaker: Breaker | None = _USUAL,
        times_bound: float = 100.0,
        retention: float = 90 * 86400.0,
        start: float = 0.0,
        clock: Callable[[], float] = time.time,
        tolerance: float | None = None,
        patience: float = 10.0,
        sync: bool = False,
    ):
        self._clock, policy = Clock(clock, tolerance), of_one_setting(policy)
        given: dict[str, Any] = {"policy": policy, "arms": arms, "budgets": budgets, "traffic": traffic}
        given |= {"hold": hold, "lost": lost, "breaker": breaker, "times_bound": times_bound, "retention": retention}
        given |= {"reward_bound": reward_bound, "start": start}
        told = terms_of(given, arms) | {"key": jax.random.key_data(streams.root_key(key)).tolist()}
        terms = told | {"budgets": numbered(told["budgets"], (), 0), "unit": unit_of(told)}
        layout = Layout(terms, list(terms["arms"]), policy)
        self._open(file, policy, patience, sync, new=True)
        with self._transaction(begun=False) as ledger:
            if fresh := not ledger.db.execute("SELECT 1 FROM sqlite_master").fetchone():
                ledger.begin(layout, told)
        if not fresh:
            self._go_on(told)

    @classmethod
    def load(
        cls,
        file: Any,
        *,
        policy: Policy | None = None,
        clock: Callable[[], float] = time.time,
        tolerance: float | None = None,
        patience: float = 10.0,
        sync: bool = False,
    ) -> Agent:
        """The agent of a file that is there, on its own terms: for a page of numbers, say.

        Args:
            file: the file.
            policy: a policy of your own must be given; those of ``jb.policies`` are made again.
            clock, tolerance, patience, sync: as for a new agent.
        """
        agent = cls.__new__(cls)
        agent._clock = Clock(clock, tolerance)
        agent._open(file, None if policy is None else of_one_setting(policy), patience, sync, new=False)
        with agent._transaction(begun=False) as ledger:
            if not ledger.db.execute("SELECT 1 FROM sqlite_master").fetchone():
                raise bad("file", str(file), "a file in which an agent has begun")
            ledger.load()
        return agent

    def __repr__(self) -> str:
        """Policy, arms, open requests."""
        with self._transaction(write=False) as ledger:
            terms = ledger.layout.terms
            (waiting,) = ledger.db.execute("SELECT count(*) FROM tickets WHERE lost = 0").fetchone()
        return f"<Agent: {terms['policy']}; arms: {', '.join(terms['arms'])}; {waiting:,} open>"

    # --- the file ----------------------------------------------------------------------------------------------

    def _open(self, file: Any, policy: Policy | None, patience: float, sync: bool, new: bool) -> None:
        self._place = None if file is None else path_of("file", file).absolute()
        self._lock, self._process, self._trust = threading.RLock(), os.getpid(), 0
        self._patience = positive_number("patience", patience)
        try:
            if self._place is not None:
                self._place = self._place.resolve()
                os.close(os.open(self._place, os.O_RDWR | (os.O_CREAT if new else 0), 0o600))
                self._inode = self._place.stat().st_ino
            db = sqlite3.connect(
                self._place or ":memory:", timeout=self._patience, isolation_level=None, check_same_thread=False
            )
            (written,) = db.execute("PRAGMA user_version").fetchone()
            tables = db.execute("SELECT 1 FROM sqlite_master").fetchone()
            if tables and written != FORMAT:
                raise bad("file", str(file), f"a file of an agent, of format {FORMAT}")
            db.execute("PRAGMA journal_mode = WAL")
            db.execute(f"PRAGMA synchronous = {'FULL' if sync else 'NORMAL'}")
            db.execute("PRAGMA wal_autocheckpoint = 4000")
            db.execute("PRAGMA busy_timeout = 0")
        except OSError as problem:
            raise bad("file", str(file), f"a file that can be written ({reason_of(problem)})") from None
        except sqlite3.Error as problem:
            why = "a log of version 1.1 is not read" if "not a database" in str(problem) else str(problem)
            raise bad("file", str(file), f"a new file, or one of an agent ({why})") from None
        self._ledger = Ledger(db, policy)

    @contextlib.contextmanager
    def _transaction(self, write: bool = True, begun: bool = True) -> Iterator[Ledger]:
        """One call: wholly, or not at all."""
        if os.getpid() != self._process:
            raise Broken(
                f"this agent is that of process {self._process}, and a fork has neither its connection nor jax's "
                "threads; make it after the fork (gunicorn: without --preload)"
            )
        with self._lock:
            ledger, db = self._ledger, self._ledger.db
            try:
                if write and self._place is not None and os.stat(self._place).st_ino != self._inode:
                    raise OSError("another file is there")
                self._begin(write)
                while begun and not ledger.current():  # another process changed the terms
                    db.execute("ROLLBACK")
                    self._begin(write=False)  # who reads keeps nobody waiting while it compiles
                    ledger.load()
                    db.execute("ROLLBACK")
                    self._begin(write)
                yield ledger
                db.execute("COMMIT" if write else "ROLLBACK")
            except (sqlite3.Error, OSError) as problem:
                if isinstance(problem, Broken):
                    raise
                moved = "it was moved or deleted: make the agent anew" if isinstance(problem, OSError) else problem
                raise Broken(f"{self._place}: {moved}; nothing has changed") from problem
            except Misuse:
                raise
            except InputError as wrong:
                raise (Misuse(str(wrong)) if begun else wrong) from None
            finally:
                with contextlib.suppress(sqlite3.ProgrammingError):  # it was closed
                    if db.in_transaction:
                        db.execute("ROLLBACK")

    def _begin(self, write: bool) -> None:
        # SQLite's own waiting begins with a millisecond, in which another one is done; but where many wait, who asks
        # too often takes the core from whom they wait for.
        until, pause = time.monotonic() + self._patience, 0.0003
        while True:
            try:
                self._ledger.db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                return
            except sqlite3.OperationalError as problem:
                if "locked" not in str(problem) or time.monotonic() > until:
                    raise
            time.sleep(random.uniform(0.5, 1.0) * pause)
            pause = min(2 * pause, 0.02)

    def _go_on(self, told: dict[str, Any]) -> None:
        """With a file that is there: what is given otherwise than at the last start, is otherwise from now on."""
        with self._transaction(begun=False) as ledger:
            ledger.load()
            (before,) = ledger.db.execute("SELECT told FROM terms, service WHERE id = terms").fetchone()
        before = json.loads(before)
        if wrong := [name for name in _FIXED if told[name] != before[name]]:
            raise InputError(f"file: its terms are others ({', '.join(wrong)}); it must be the file of this agent")
        change = {name: value for name, value in told.items() if value != before.get(name) and name != "kind"}
        if "arms" in change:  # those that joined or left since stay as they are
            arms, now = dict(self._ledger.layout.terms["arms"]), change["arms"]
            arms |= {name: bound for name, bound in now.items() if bound != before["arms"].get(name)}
            change["arms"] = {name: bound for name, bound in arms.items() if name in now or name not in before["arms"]}
        if change:
            self._change(change | ({"kind": told["kind"]} if "policy" in change else {}), told)

    def _change(self, change: dict[str, Any], told: dict[str, Any] | None = None, policy: Policy | None = None) -> None:
        """Terms that were checked become those that hold."""
        while True:
            with self._transaction(write=False) as ledger:
                terms, names = ledger.settle_terms(change)
                version = ledger.service().terms
            given = policy if policy is not None else policy_of(terms["policy"], self._ledger.given)
            layout = Layout(terms, names, given)  # a compile, in which nobody need wait
            with self._transaction() as ledger:
                if ledger.service().terms == version:
                    ledger.given = given
                    ledger.change(self._time(ledger), layout, told)
                    return

    # --- requests ----------------------------------------------------------------------------------------------

    def choose(
        self,
        n: int | None = None,
        available: Sequence[str] | None = None,
        *,
        caller: str | None = None,
        request: Any = None,
        must: bool = False,
    ) -> Any:
        """Decide for a request: its :class:`Ticket`, or None if it cannot be paid (see :meth:`renews_at`).

        Args:
            n: decide for so many at once, none of which knows of another's outcome: a list of as many. Default: one.
            available: names of the arms that may serve it; default all.
            caller: on whose account, for budgets ``per="caller"``.
            request: a name of your own for it; events have its text beside the ticket's id.
            must: raise :class:`Unpayable` instead of giving None; for one request.
        """
        asked: dict[str, Any] = {
            "available": None if available is None else list(available),
            "caller": self._caller(caller),
            "request": None if request is None else str(request),
        }
        if n is not None:
            whole_number("n", n, 1)
        with self._transaction() as ledger:
            now = self._time(ledger)
            made = [ledger.choose(now, **asked) for _ in range(n or 1)]
            if must and made[0] is None:
                renews = self._renews(ledger, now, asked["available"], asked["caller"])
                why = "the policy keeps the money for later requests" if renews is None else "no arm can be paid"
                if not (ledger.layout.terms["arms"] if available is None else asked["available"]):
                    why = "there is no arm"
        tickets = [None if x is None else self._ticket(x) for x in made]
        if must and tickets[0] is None:
            raise Unpayable(f"{why}; renews_at says {renews}", renews)
        return tickets if n is not None else tickets[0]

    def learn(self, ticket: Ticket | int, *, reward: Any = None, cost: Any, confirm: bool = False) -> None:
        """The outcome of a request, once, in any order; the money that it did not cost is free again.

        A request that was given up (:meth:`expire`) may still be answered: the difference to what it was charged
        returns to the period in which it was decided; its reward is learnt unless it was learnt that it failed. A cost
        above the arm's bound is booked and learnt (the policy sees at most the largest bound).

        Args:
            ticket: or its id.
            reward: from 0 to ``reward_bound``; None: it is not known, only the money is settled.
            cost: in money, at least 0; a number, a :class:`~decimal.Decimal` or its text.
            confirm: book a cost that is above ``times_bound`` times its bound, too.

        Raises:
            Settled: it was told before.
        """
        with self._transaction() as ledger:
            given = None if reward is None else self._reward(ledger, reward)
            paid = self._cost(ledger, ticket, cost, confirm)
            ledger.learn(self._time(ledger), self._id(ledger, ticket), given, paid)

    def fail(self, ticket: Ticket | int, *, cost: Any = None, confirm: bool = False) -> None:
        """The request failed: reward 0 is learnt, and its cost, if that is known; the rest is free again.

        An arm that fails again and again is set aside (:class:`Breaker`).

        Args:
            ticket: or its id.
            cost: what it cost all the same, 0 if nothing; None: nobody knows, and it is charged as ``lost`` says.
            confirm: as for :meth:`learn`.
        """
        with self._transaction() as ledger:
            paid = None if cost is None else self._cost(ledger, ticket, cost, confirm)
            ledger.fail(self._time(ledger), self._id(ledger, ticket), paid)

    def cancel(self, ticket: Ticket | int) -> None:
        """The request was not made: nothing is learnt, and what was held for it is free again.

        One that was made and failed is for :meth:`fail`: where nobody says so the arm is chosen on.
        """
        with self._transaction() as ledger:
            ledger.cancel(self._time(ledger), self._id(ledger, ticket))

    def expire(self, *, older_than: float, failed: bool = True) -> list[Ticket]:
        """Wait no longer for requests that were decided more than so many seconds ago: they are charged as ``lost``.

        Those that are twice as old are forgotten: an answer to them would be :class:`Settled`.

        Args:
            older_than: seconds.
            failed: does the policy learn that they failed, and the breaker count them? False: nothing is learnt.

        Returns:
            The tickets that are given up now. An answer that comes after all is welcome (:meth:`learn`).
        """
        positive_number("older_than", older_than)
        with self._transaction() as ledger:
            now, reward = self._time(ledger), 0.0 if failed else None
            late = ledger.db.execute("SELECT id FROM tickets WHERE lost = 0 AND ? - time > ?", (now, older_than))
            ids = [id for (id,) in late.fetchall()]
            gone = ledger.db.execute("SELECT id FROM tickets WHERE lost AND ? - time > ?", (now, 2 * older_than))
            for (id,) in gone.fetchall():
                ledger.forget(now, id)
            before = [ledger.find(id) for id in ids]
            for id in ids:
                ledger.expire(now, id, reward)
        return [self._ticket(request) for request in before]

    def _id(self, ledger: Ledger, ticket: Any) -> int:
        """The id of a ticket, which must be of this agent."""
        if not isinstance(ticket, Ticket):
            return ticket
        mine = self._ticket(ledger.find(ticket.id))
        if (ticket.arm, ticket.time) != (mine.arm, mine.time):
            raise bad("ticket", ticket, f"one of this agent, whose ticket {ticket.id} is another")
        return ticket.id

    def _ticket(self, request: Request) -> Ticket:
        return Ticket(request.id, self._ledger.layout.names[request.arm], money(request.held), request.time)

    @staticmethod
    def _caller(caller: Any) -> str | None:
        if caller is not None and (not isinstance(caller, str) or not caller):
            raise Misuse(str(bad("caller", caller, "a name, as text")))
        return caller

    def _cost(self, ledger: Ledger, ticket: Any, cost: Any, confirm: bool) -> int:
        paid, arm = billionths("cost", cost, most=MOST_COST), ledger.find(self._id(ledger, ticket)).arm
        most = ledger.layout.terms["times_bound"] * int(ledger.layout.bounds[arm])
        if paid > most and not confirm:
            what = f"at most {ledger.layout.terms['times_bound']:g} times the bound of {ledger.layout.names[arm]}"
            raise bad("cost", cost, f"{what}, {most / BILLION:g}, or be told with confirm=True")
        return paid

    @staticmethod
    def _reward(ledger: Ledger, reward: Any) -> float:
        most = ledger.layout.terms["reward_bound"]
        given = number("reward", float(reward) if type(reward).__name__ == "Decimal" else reward)
        if not 0 <= given <= most:
            raise bad("reward", reward, f"from 0 to {most:g}")
        if given and not ledger.layout.reward_ticks(given):
            raise bad("reward", reward, f"0, or at least {most / 2 / ticks.ONE:.3g}, half a tick")
        return given

    # --- arms and terms ----------------------------------------------------------------------------------------

    def add_arm(self, name: str, bound: Any) -> None:
        """An arm joins; where there is no room, the capacity doubles. That compiles, while other threads are served.

        An arm that left and comes back under its name keeps what was learnt of it. Where its bound is the largest there
        ever was, the policy is taught anew, in the new unit, from the events that are there.
        """
        amount = terms_of({"arms": {name: bound}}, ())["arms"][name]
        with self._transaction(write=False) as ledger:
            arms = ledger.layout.terms["arms"]
            if name in arms:
                raise bad("name", name, "the name of an arm that is not there")
        self._change({"arms": {**arms, name: amount}})

    def remove_arm(self, name: str) -> None:
        """An arm leaves: it serves no more requests. Those that are open may still be answered."""
        with self._transaction(write=False) as ledger:
            ledger.layout.place(name)
            arms = ledger.layout.terms["arms"]
        self._change({"arms": {other: bound for other, bound in arms.items() if other != name}})

    def change(self, *, policy: Policy | None = None, bounds: Mapping[str, Any] | None = None, **terms: Any) -> None:
        """Other terms from now on, all or none; what is not given stays.

        A budget is known by its name: it keeps what was charged to the period that is running. A policy of the same
        kind, with other parameters, keeps what was learnt; another kind is taught the outcomes that are still there.

        Args:
            policy: another one.
            bounds: new bounds of some arms.
            **terms: ``budgets``, ``traffic``, ``hold``, ``lost``, ``breaker``, ``times_bound``, ``retention``, as for a
                new agent.
        """
        others = ("budgets", "traffic", "hold", "lost", "breaker", "times_bound", "retention")
        if wrong := [name for name in terms if name not in others]:
            raise Misuse(f"change: {wrong[0]} given; it must be one of policy, bounds, {', '.join(others)}")
        with self._transaction(write=False) as ledger:
            arms, names = dict(ledger.layout.terms["arms"]), ledger.layout.names
            for name in bounds or ():
                ledger.layout.place(name)
            made = terms_of(terms, names)
        if policy is not None:
            policy = of_one_setting(policy)
            made |= terms_of({"policy": policy}, ())
        if bounds:
            made["arms"] = arms | terms_of({"arms": bounds}, ())["arms"]
        self._change(made, policy=policy)

    # --- money and time ----------------------------------------------------------------------------------------

    def left(self, caller: str | None = None) -> dict[str, float]:
        """What each budget may still spend in this period, by name; below 0: what was overspent.

        With a ``caller`` what is left of their own budgets, too.
        """
        with self._transaction(write=False) as ledger:
            now = self._reading(ledger)
            rows = {x.name: ledger.standing(x, now, caller) for x in self._accounts(ledger, caller)}
        return {name: money(granted - paid) for name, (granted, paid) in rows.items()}

    def charged(self, caller: str | None = None) -> dict[str, dict[float, float]]:
        """What each budget paid or holds, by name and by the time at which the period began."""
        with self._transaction(write=False) as ledger:
            rows = ledger.by_period(self._accounts(ledger, caller), caller)
        return {name: {begin: money(paid) for begin, (paid, _) in row.items()} for name, row in rows.items()}

    def overspent(self, caller: str | None = None) -> dict[str, dict[float, float]]:
        """By how much periods paid more than they were granted then, by name and by the time at which they began."""
        with self._transaction(write=False) as ledger:
            rows = ledger.by_period(self._accounts(ledger, caller), caller)
        return {name: {begin: money(x) for begin, (_, x) in row.items() if x > 0} for name, row in rows.items()}

    @staticmethod
    def _accounts(ledger: Ledger, caller: str | None) -> list[Account]:
        return [x for x in ledger.layout.accounts if caller is not None or not x.per_caller]

    def renews_at(self, caller: str | None = None) -> float | None:
        """When an arm can be paid again, and is not set aside; None if one can serve now."""
        with self._transaction(write=False) as ledger:
            return self._renews(ledger, self._reading(ledger), None, self._caller(caller))

    def _renews(self, ledger: Ledger, now: float, available: Any, caller: str | None) -> float | None:
        layout, again = ledger.layout, []
        hold, _, _, until = ledger.dynamics()
        standing = [(x, *ledger.standing(x, now, caller)) for x in self._accounts(ledger, caller)]
        for name in layout.terms["arms"]:
            k = layout.places[name]
            if available is None or name in available:
                short = [x for x, g, c in standing if x.pays(name) and hold[k] > max(g - c, 0)]
                times = [x.periods.begin(x.periods.at(now) + 1) for x in short] + [until[k]]
                if max(times) <= now:
                    return None
                again.append(max(times))
        return min(again, default=None)

    def open(self) -> list[Ticket]:
        """Tickets that are waited for."""
        with self._transaction(write=False) as ledger:
            rows = ledger.db.execute("SELECT * FROM tickets WHERE lost = 0 ORDER BY id").fetchall()
            return [self._ticket(Request(*row)) for row in rows]

    def statistics(self) -> dict[str, Any]:
        """What it knows and what it did, as plain numbers: whole counts of all time, and money of this period.

        Of each arm: ``pulls`` (known costs), mean ``reward`` and ``cost`` with standard errors, ``open``, ``lost`` and
        ``failed`` requests, outcomes ``above`` the bound, the ``bound``, what a request would ``hold`` now, the seconds
        for which it is ``aside``. Of each budget of all: what is ``granted``, ``charged``, ``left``, and ``overspent``
        in this period, what is ``held`` for open requests and what they could cost above that (``at_risk``), and the
        ``price`` of money, if the policy has one, in reward for a unit of money. Of all: ``requests``, ``turned_away``,
        ``cancelled``, ``late`` answers, ``open``. It is read whatever state the disk and the clock are in.
        """
        with self._transaction(write=False) as ledger:
            now, service, layout = self._reading(ledger), ledger.service(), ledger.layout
            rows = ledger.db.execute("SELECT * FROM arms ORDER BY id").fetchall()
            waiting = ledger.db.execute("SELECT arm, held FROM tickets WHERE lost = 0").fetchall()
            standing = [(x, *ledger.standing(x, now)) for x in layout.shared]
        budgets, prices = {}, self._prices(layout, service.learnt)
        for (account, granted, paid), price in zip(standing, prices, strict=True):
            mine = [(k, held) for k, held in waiting if account.pays(layout.names[k])]
            budgets[account.name] = {
                "granted": money(granted),
                "charged": money(paid),
                "left": money(granted - paid),
                "overspent": money(max(paid - granted, 0)),
                "held": money(sum(held for _, held in mine)),
                "at_risk": money(sum(max(int(layout.bounds[k]) - held, 0) for k, held in mine)),
                "price": price,
            }
        arms = {row[1]: self._of_arm(layout, now, *row) for row in rows}
        counts = {name: getattr(service, name) for name in ("turned_away", "cancelled", "late")}
        return {"requests": service.round, **counts, "open": len(waiting), "arms": arms, "budgets": budgets}

    @staticmethod
    def _of_arm(layout: Layout, now: float, k: int, name: str, hold: int, open_: int, *row: Any) -> dict[str, Any]:
        _, _, until, pulls, cost, cost2, rewarded, reward, reward2, lost, failed, above = row
        mean, error = mean_of(rewarded, reward, reward2)
        paid, paid_error = mean_of(pulls, cost / BILLION, cost2 / BILLION**2)
        known = {"reward": mean, "reward_error": error, "cost": paid, "cost_error": paid_error}
        counts = {"open": open_, "lost": lost, "failed": failed, "above": above}
        bounds = {"bound": money(int(layout.bounds[k])), "hold": money(hold), "aside": max(until - now, 0.0)}
        return {"active": name in layout.terms["arms"], "pulls": pulls, **known, **counts, **bounds}

    @staticmethod
    def _prices(layout: Layout, learnt: bytes) -> list[float | None]:
        """Of each budget, if the policy has set one."""
        policy, state = layout.policy, layout.program.state(learnt)
        while isinstance(policy, Around):
            state, policy = policy.learnt(state), policy.policy
        scale, price = layout.terms["reward_bound"] / money(layout.unit), getattr(state, "price", None)
        none: list[float | None] = [None] * len(layout.shared)
        return none if price is None else [float(x) * scale if x >= 0 else None for x in np.asarray(price)]

    def _time(self, ledger: Ledger) -> float:
        """What time it is, if that can be."""
        last, trust = ledger.db.execute("SELECT now, trust FROM service").fetchone()
        if trust != self._trust:
            self._clock.trust()
        self._trust = trust
        return self._clock.read(-np.inf if last is None else last)

    def _reading(self, ledger: Ledger) -> float:
        """The same for who only looks: at worst the time of the last event."""
        try:
            return self._time(ledger)
        except InputError:
            return ledger.service().now or 0.0

    def resume(self) -> None:
        """Take the clock at its word, wherever it stands now: in all processes."""
        with self._transaction() as ledger:
            ledger.clock(self._clock.reading())

    # --- on disk -----------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Copy the file as it stands, whole, while others go on: the copy is an agent's file as well."""
        place = path_of("path", path)
        if place.exists():
            raise bad("path", str(place), "a new file")
        with self._lock:
            try:
                os.close(os.open(place, os.O_RDWR | os.O_CREAT, 0o600))
                with contextlib.closing(sqlite3.connect(place)) as copy:
                    self._ledger.db.backup(copy)
            except (OSError, sqlite3.Error) as problem:
                raise bad("path", str(place), f"a file that can be written ({problem})") from None

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._ledger.db.close()
