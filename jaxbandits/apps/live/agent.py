"""A live agent: any number of threads and processes, one file, budgets that renew.

Every call is one transaction of SQLite on the agent's file (:mod:`jaxbandits.apps.live.ledger`), so
it has happened wholly or not at all, and the next call of whatever process goes on from there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import jax

from jaxbandits.apps.live.clock import Clock
from jaxbandits.apps.live.errors import Broken, Misuse
from jaxbandits.apps.live.ledger import ServiceLedger, Setup, check_format
from jaxbandits.apps.live.program import of_one_setting
from jaxbandits.apps.live.terms import (
    BILLION,
    Breaker,
    Budget,
    billionths,
    check_name,
    checked_terms,
    in_currency,
    path_of,
)
from jaxbandits.core import InputError, Policy, bad, streams, ticks
from jaxbandits.tools import number, positive_number, whole_number

_USUAL_BREAKER = Breaker()
# What a file keeps for ever: its numbers are in these
_FIXED = ("reward_bound", "key", "start", "context")
_CHANGE = ("policy", "arms", "budgets", "hold", "lost", "breaker", "retention")


@dataclasses.dataclass(frozen=True)
class Ticket:
    """A request that was assigned to an arm.

    Attributes:
        id, arm: its number, which is that of its round; the arm that serves it.
        reserved, time: money held for it; when it was decided.
    """

    id: int
    arm: str
    reserved: float
    time: float


class Agent:
    """Chooses arms for live requests within renewing budgets, as the simulator does.

    Any number of threads may share an agent, and any number of processes may open the same file.
    Money is whole billionths of the currency, as written: bounds and costs are rounded up, budgets
    down. An open request is charged its reservation; while no request costs more, no period pays
    more than it grants. A higher cost is booked too, and :meth:`statistics` reports by how much the
    period is overspent. A call raises :class:`Misuse` for invalid arguments and :class:`Broken` if
    the file cannot be written; then nothing has changed.

    Args:
        policy: any policy for finitely many arms; ``OmegaUCB`` for reward per money, ``PricePacer``
            or ``EvenPace`` where budgets are to last, ``ContextualPacer`` where it sees the
            request. Inside ``Discounted`` where prices and quality change.
        arms: names, and the most that a request to each can cost, in money; 0 for a free one.
        reward_bound, key: rewards are from 0 to this; ``jax.random.key(seed)``.
        budgets: see :class:`Budget`; none: money is no limit.
        context: the number of context features of a request, which each :meth:`choose` then needs.
        file: where the state is stored; None: in memory. An existing file is continued. Arguments
            that differ from those of its last start become the terms; the others stay as
            :meth:`change` left them.
        hold: the reservation for an open request: the ``"bound"`` of its arm, or a quantile of the
            arm's last thousand costs, such as 0.99: then expensive arms stay affordable for
            longer, and costs above it may overspend a period (by ``at_risk`` of
            :meth:`statistics` at most).
        lost: the charge for a request of unknown cost (:meth:`expire`, :meth:`fail`): the
            ``"mean"`` of its arm's costs, or its ``"bound"``.
        breaker: when a failing arm is paused, see :class:`Breaker`; None: never.
        retention: seconds that events are kept for :func:`events` and :func:`audit`.
        start: when the first of the periods that are a number of seconds begins.
        clock, tolerance: a function that returns the time in seconds; how far a reading may be off
            (default: an hour from what :func:`time.monotonic` says; for your own clock, a week
            from the last event). Others are refused until :meth:`resume` accepts one.
        patience: seconds to wait for calls of other processes.
        sync: wait for the disk after every call. Without it the last calls may be lost if the
            machine crashes, but not if a process does.

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
        context: int | None = None,
        file: Any = None,
        hold: float | str = "bound",
        lost: str = "mean",
        breaker: Breaker | None = _USUAL_BREAKER,
        retention: float = 90 * 86400.0,
        start: float = 0.0,
        clock: Callable[[], float] = time.time,
        tolerance: float | None = None,
        patience: float = 10.0,
        sync: bool = False,
    ):
        words, policy = jax.random.key_data(streams.root_key(key)), of_one_setting(policy)
        terms = dict(policy=policy, arms=arms, budgets=budgets, hold=hold, lost=lost)
        terms |= dict(breaker=breaker, retention=retention, reward_bound=reward_bound)
        terms |= dict(start=start, context=context)
        arguments = checked_terms(terms, arms) | {"key": words.tolist()}
        # Compiled before the file is touched: a first start that fails leaves nothing behind.
        setup = Setup(arguments, list(arguments["arms"]), policy)
        self._open(file, policy, True, clock, tolerance, patience, sync)
        with self._transaction(serving=False) as ledger:
            if fresh := not ledger.row("SELECT 1 FROM sqlite_master"):
                ledger.begin(setup, arguments)
        if not fresh:
            self._go_on(arguments)

    @classmethod
    def load(cls, file: Any, *, policy: Policy | None = None, **options: Any) -> Agent:
        """Open the agent of an existing file with the terms stored in it, to read its numbers, say.

        Args:
            file, policy: its place; needed for a class of your own alone.
            **options: ``clock``, ``tolerance``, ``patience``, ``sync``, as for a new agent.
        """
        agent = cls.__new__(cls)
        agent._open(file, None if policy is None else of_one_setting(policy), new=False, **options)
        with agent._transaction(serving=False) as ledger:
            if not ledger.row("SELECT 1 FROM sqlite_master"):
                raise bad("file", str(file), "the file of an agent")
            ledger.load()
        return agent

    def __repr__(self) -> str:
        """Policy, arms, open requests."""
        with self._transaction(write=False) as ledger:
            (count,) = ledger.row("SELECT count(*) FROM tickets WHERE lost = 0")
            terms = ledger.setup.terms
        return f"<Agent: {terms['policy']}; arms: {', '.join(terms['arms'])}; {count:,} open>"

    # --- the file ----------------------------------------------------------------------------------------------

    def _open(
        self,
        file: Any,
        policy: Policy | None,
        new: bool,
        clock: Callable[[], float] = time.time,
        tolerance: float | None = None,
        patience: float = 10.0,
        sync: bool = False,
    ) -> None:
        self._clock = Clock(clock, tolerance)
        self._place = None if file is None else path_of("file", file).absolute()
        self._lock, self._process = threading.RLock(), os.getpid()
        self._patience = positive_number("patience", patience)
        try:
            if self._place is not None:
                self._place = self._place.resolve()
                if new and not self._place.exists():
                    # Whoever closes a file that is there lets go of the locks that SQLite holds on
                    # it in this process.
                    os.close(os.open(self._place, os.O_RDWR | os.O_CREAT, 0o600))
                self._inode = self._place.stat().st_ino
            place, wait = self._place or ":memory:", self._patience
            db = sqlite3.connect(place, timeout=wait, isolation_level=None, check_same_thread=False)
            if db.execute("SELECT 1 FROM sqlite_master").fetchone():
                check_format(db)
            # A call changes a few bytes on each of six pages. SQLite's pauses grow to 100 ms:
            # _transaction asks again instead
            settings = {"page_size": 1024, "journal_mode": "WAL", "wal_autocheckpoint": 8000}
            settings |= {"synchronous": "FULL" if sync else "NORMAL", "busy_timeout": 1}
            for name, value in settings.items():
                db.execute(f"PRAGMA {name} = {value}")
        except OSError as problem:
            raise bad("file", str(file), f"a file that can be written ({problem})") from None
        except sqlite3.Error as problem:
            raise bad("file", str(file), f"a new file, or one of an agent ({problem})") from None
        self._ledger = ServiceLedger(db, policy)

    @contextlib.contextmanager
    def _transaction(self, write: bool = True, serving: bool = True) -> Iterator[ServiceLedger]:
        """One call: wholly, or not at all."""
        if os.getpid() != self._process:
            has = "a fork has neither its connection nor jax's threads"
            raise Broken(
                f"this is an agent of process {self._process}, and {has}; create a new one"
            )
        ledger, db = self._ledger, self._ledger.db
        with self._lock:
            try:
                if write and self._place is not None and os.stat(self._place).st_ino != self._inode:
                    raise OSError("another file is there")
                while not self._begin(write, serving):  # another process changed the terms
                    db.execute("ROLLBACK")
                    db.execute("BEGIN")  # who reads keeps nobody waiting while it compiles
                    ledger.load()
                    db.execute("ROLLBACK")
                yield ledger
                db.execute("COMMIT" if write else "ROLLBACK")
                ledger.is_whole = True
            except (sqlite3.Error, OSError) as problem:
                reason = f"{problem}; nothing has changed"
                if isinstance(problem, OSError) or "closed" in reason:
                    was = "moved or deleted" if isinstance(problem, OSError) else "closed"
                    reason = f"it was {was}; create the agent again"
                raise Broken(f"{self._place or 'agent'}: {reason}") from problem
            except InputError as wrong:
                is_said = isinstance(wrong, Misuse) or not serving
                raise (wrong if is_said else Misuse(str(wrong))) from None
            finally:
                with contextlib.suppress(sqlite3.ProgrammingError):  # it was closed
                    if db.in_transaction:
                        db.execute("ROLLBACK")

    def _begin(self, write: bool, serving: bool) -> bool:
        """Begin as soon as the file is free; False where the terms are others than were read."""
        ledger, until = self._ledger, time.monotonic() + self._patience
        while True:
            try:
                ledger.db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                return not serving or ledger.is_current()
            except sqlite3.OperationalError as problem:
                is_busy = problem.sqlite_errorcode & 255 == sqlite3.SQLITE_BUSY
                if not is_busy or time.monotonic() > until:  # SQLite has waited a millisecond
                    raise
                if ledger.db.in_transaction:
                    ledger.db.execute("ROLLBACK")

    def _go_on(self, arguments: dict[str, Any]) -> None:
        """Arguments that differ from those of the file's last start become the terms."""
        with self._transaction(serving=False) as ledger:
            ledger.load()
            last = json.loads(ledger.row("SELECT arguments FROM terms")["arguments"])
        if wrong := [name for name in _FIXED if arguments[name] != last[name]]:
            others = f"its terms differ ({', '.join(wrong)})"
            raise InputError(f"file: {others}; it must be the file of this agent")
        if differing := {name: value for name, value in arguments.items() if value != last[name]}:
            self._change(lambda setup: differing, arguments)

    def _change(
        self,
        change_of: Callable[[Setup], dict[str, Any]],
        arguments: dict[str, Any] | None = None,
        policy: Policy | None = None,
    ) -> None:
        """The terms become those of ``change_of(setup)``, asked again if others were quicker."""
        while True:
            with self._transaction(write=False) as ledger:
                old, version = ledger.setup, ledger.service["version"]
                change = change_of(old)
                custom = ledger.policy if policy is None else policy
            setup = old.changed(change, custom)  # it compiles: nobody need wait meanwhile
            with self._transaction() as ledger:
                if ledger.service["version"] == version:
                    ledger.change(self._time(ledger), setup, arguments)
                    ledger.policy = setup.policy
                    return

    # --- requests ----------------------------------------------------------------------------------------------

    def choose(
        self,
        n: int | None = None,
        *,
        available: Sequence[str] | None = None,
        caller: str | None = None,
        request: Any = None,
        context: Any = None,
    ) -> Any:
        """Choose an arm for a request, or for ``n``; returns a :class:`Ticket` for each.

        It is None if no arm can serve (until :meth:`renews_at`), or if the policy saves the money
        for later requests. An arm serves unless it was removed, is paused, or a budget that pays
        for it cannot pay its reservation, or has no request left.

        Args:
            n, available: how many (then a list is returned); names that may serve, default all.
            caller, request: the caller's name, required if a budget is ``per="caller"``; your
                name of the request, for the events.
            context: the request's context, as many numbers as the agent was made for.
        """
        names = None if available is None else list(available)
        conditions: dict[str, Any] = {"available": names, "caller": caller}
        conditions["request"] = None if request is None else str(request)
        conditions = {name: value for name, value in conditions.items() if value is not None}
        with self._transaction() as ledger:
            if caller is not None:
                check_name("caller", caller)
            now, times = self._time(ledger), 1 if n is None else whole_number("n", n, 1)
            context_bytes = ledger.setup.context_bytes(context)
            requests = [ledger.choose(now, context_bytes, **conditions) for _ in range(times)]
        tickets = [None if x is None else self._ticket(x) for x in requests]
        return tickets[0] if n is None else tickets

    def learn(self, ticket: Ticket | int, *, reward: Any = None, cost: Any) -> None:
        """Report the outcome of a request, once, in any order; unspent reserved money is released.

        It is booked in the period of the decision, even if the request expired (:meth:`expire`);
        then its reward is learned unless the request was learned as a failure. A cost above the
        arm's bound is booked and learned.

        Args:
            ticket, cost: it or its id; money, at least 0: a number, a ``Decimal`` or its text.
            reward: from 0 to ``reward_bound``; None if unknown, and then not learned.

        Raises:
            Settled: the request was settled before.
        """
        self._settle("learn", ticket, reward, cost)

    def fail(self, ticket: Ticket | int, *, cost: Any = None) -> None:
        """Report a failed request: reward 0 and its cost, if known, are learned; the rest is freed.

        An arm that fails repeatedly is paused (:class:`Breaker`).

        Args:
            ticket, cost: it or its id; what it cost nevertheless, 0 if nothing, None if unknown:
                then it is charged by ``lost``.
        """
        self._settle("fail", ticket, 0.0, cost)

    def cancel(self, ticket: Ticket | int) -> None:
        """Report a request that was never sent: nothing is learned, reserved money is released.

        For a request that was sent and failed use :meth:`fail`; otherwise the failing arm would be
        chosen again.
        """
        self._settle("cancel", ticket)

    def _settle(self, do: str, ticket: Any, reward: Any = None, cost: Any = None) -> None:
        """Check an outcome, and book it."""
        with self._transaction() as ledger:
            request = ledger.find(ticket.id if isinstance(ticket, Ticket) else ticket)
            arm = ledger.setup.names[request["arm"]]
            if isinstance(ticket, Ticket) and (ticket.arm, ticket.time) != (arm, request["time"]):
                must = f"one of this agent, whose ticket {ticket.id} is different"
                raise bad("ticket", ticket, must)
            if reward is not None:
                is_number = isinstance(reward, (float, Decimal))
                value = float(reward) if is_number else number("reward", reward)
                largest = ledger.setup.terms["reward_bound"]
                if not 0 <= value <= largest:
                    raise bad("reward", reward, f"from 0 to {largest:g}")
                if value and not ledger.setup.reward_ticks(value):
                    least = f"0, or at least {largest / 2 / ticks.ONE:.3g}, half a tick"
                    raise bad("reward", reward, least)
                reward = value
            if cost is not None or do == "learn":
                cost = billionths("cost", cost)
            ledger.settle(self._time(ledger), do, request, reward, cost)

    def expire(self, *, older_than: float, failed: bool = True) -> list[Ticket]:
        """Stop waiting for requests older than so many seconds, and charge them by ``lost``.

        Call it every few seconds, in any process. A late answer may still be reported until the
        request is twice as old; then it is forgotten, and an answer raises :class:`Settled`.

        Args:
            older_than, failed: seconds; whether the policy and the breaker count them as failures.

        Returns:
            The tickets that expire now.
        """
        positive_number("older_than", older_than)
        with self._transaction() as ledger:
            old = "SELECT * FROM tickets WHERE (lost > 0) = ? AND ? - time > ?"
            now = self._time(ledger)
            for row in ledger.rows(old, True, now, 2 * older_than):
                ledger.settle(now, "forget", row)
            late = ledger.rows(old, False, now, older_than)
            for row in late:
                ledger.settle(now, "expire", row, 0.0 if failed else None)
        return list(map(self._ticket, late))

    def _ticket(self, row: Mapping[str, Any]) -> Ticket:
        arm, held = self._ledger.setup.names[row["arm"]], in_currency(row["held"])
        return Ticket(row["id"], arm, held, row["time"])

    # --- arms and terms ----------------------------------------------------------------------------------------

    def change(self, **terms: Any) -> None:
        """Change terms from now on, all of those given or none; the others stay.

        The charges of a period stay with the budget's name; under another name, or with another
        period, a budget begins with the reservations of open requests. A policy of the same kind,
        with other parameters, keeps what it learned; another kind, or any if a bound is the largest
        ever or there is no more room for arms (4, 8, 16, …), relearns the last stored outcomes, at
        most fifty thousand.

        Args:
            **terms: ``policy``, ``budgets``, ``hold``, ``lost``, ``breaker`` and ``retention``, as
                for a new agent; ``arms``: new bounds by name, also of arms that join, or return
                with what was learned about them, and None for each arm to remove: it serves no more
                requests, but open ones may be answered.
        """
        if wrong := [name for name in terms if name not in _CHANGE]:
            raise Misuse(f"change: {wrong[0]} given; it must be one of {', '.join(_CHANGE)}")
        if "policy" in terms:
            terms["policy"] = of_one_setting(terms["policy"])

        def change_of(setup: Setup) -> dict[str, Any]:
            now, others = dict(setup.terms["arms"]), dict(terms)
            given = others.pop("arms", {})
            for name in [name for name in given if given[name] is None]:
                setup.place(name)  # is it there?
                del now[name]
            if bounds := {name: bound for name, bound in given.items() if bound is not None}:
                now |= checked_terms({"arms": bounds}, ())["arms"]
            return checked_terms(others, {*now, *setup.names}) | {"arms": now}

        self._change(change_of, policy=terms.get("policy"))

    # --- money and time ----------------------------------------------------------------------------------------

    def left(self, caller: str | None = None) -> dict[str, float]:
        """What each budget may still spend in this period, by name; below 0 if it is overspent.

        With a ``caller`` that caller's budgets are included; a budget of requests is in requests.
        """
        with self._transaction(write=False) as ledger:
            now, rest = self._reading(ledger), {}
            for account in ledger.accounts(caller):
                granted, paid = ledger.balance(account, now, caller)
                rest[account.name] = in_currency(granted - paid)
        return rest

    def charged(self, caller: str | None = None) -> dict[str, dict[float, float]]:
        """What each budget has paid or reserved, by its name and the start of the period."""
        with self._transaction(write=False) as ledger:
            return ledger.by_period(caller)[0]

    def overspent(self, caller: str | None = None) -> dict[str, dict[float, float]]:
        """By how much periods were overspent, in the form of :meth:`charged`; {} if none was."""
        with self._transaction(write=False) as ledger:
            return ledger.by_period(caller)[1]

    def renews_at(self, caller: str | None = None) -> float | None:
        """When the first arm can serve again, in seconds of the clock; None if one can now."""
        with self._transaction(write=False) as ledger:
            return ledger.renews_at(self._reading(ledger), caller)

    def open(self) -> list[Ticket]:
        """The tickets whose outcome has not arrived."""
        with self._transaction(write=False) as ledger:
            rows = ledger.rows("SELECT * FROM tickets WHERE lost = 0 ORDER BY id")
            return list(map(self._ticket, rows))

    def statistics(self) -> dict[str, Any]:
        """The agent's statistics as plain numbers: counts of all time, and money of this period.

        Of each arm: ``pulls`` (known costs), mean ``reward`` and ``cost`` with standard errors,
        ``open``, ``lost`` and ``failed`` requests, costs ``above`` the bound, the ``bound``, what a
        request would ``hold`` now, for how many seconds it is ``paused``. Of each budget of all:
        what is ``granted``, ``charged``, ``left`` and ``overspent`` in this period, what is
        ``held`` for open requests and what they could cost above that (``at_risk``). Of all:
        ``requests``, ``turned_away``, ``cancelled``, ``late`` answers, ``open``. It can be read
        whatever state the disk and the clock are in.
        """
        with self._transaction(write=False) as ledger:
            now, service, setup = self._reading(ledger), ledger.service, ledger.setup
            rows = ledger.rows("SELECT * FROM arms ORDER BY id")
            open_requests = ledger.rows("SELECT arm, held FROM tickets WHERE lost = 0")
            balances = [(x, *ledger.balance(x, now)) for x in ledger.accounts(None)]
        arms, budgets = {}, {}
        for k, row in enumerate(rows):
            cost, cost2 = in_currency(row["cost"]), row["cost2"] / BILLION**2
            arms[row["name"]] = {
                "active": k in setup.there,
                "pulls": row["pulls"],
                **mean_with_error("reward", row["rewarded"], row["reward"], row["reward2"]),
                **mean_with_error("cost", row["pulls"], cost, cost2),
                **{name: row[name] for name in ("open", "lost", "failed", "above")},
                "bound": in_currency(setup.bounds[k]),
                "hold": in_currency(row["hold"]),
                "paused": max(row["until"] - now, 0.0),
            }
        for account, granted, charged in balances:
            requests = [x for x in open_requests if x["arm"] in account.arms]
            held = sum(BILLION if account.counts else x["held"] for x in requests)
            above = sum(max(setup.bounds[x["arm"]] - x["held"], 0) for x in requests)
            amounts = {"granted": granted, "charged": charged, "left": granted - charged}
            amounts |= {"overspent": max(charged - granted, 0), "held": held}
            amounts["at_risk"] = 0 if account.counts else above
            budgets[account.name] = {name: in_currency(x) for name, x in amounts.items()}
        counts = {"requests": service["round"]}
        counts |= {name: service[name] for name in ("turned_away", "cancelled", "late")}
        return counts | {"open": len(open_requests), "arms": arms, "budgets": budgets}

    def _time(self, ledger: ServiceLedger) -> float:
        """The time of an event; :class:`Misuse` where the clock cannot be right."""
        now = self._clock.read(ledger.service["now"], ledger.service["trust"])
        ledger.tidy(now)
        return now

    def _reading(self, ledger: ServiceLedger) -> float:
        """The time for who only looks: where the clock cannot be right, that of the last event."""
        try:
            return self._clock.read(ledger.service["now"], ledger.service["trust"])
        except InputError:
            return ledger.service["now"] or 0.0

    def resume(self) -> None:
        """Accept the clock's present reading as right, in all processes."""
        with self._transaction() as ledger:
            ledger.clock(self._clock.reading())

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._ledger.db.close()


def mean_with_error(name: str, n: int, total: float, squares: float) -> dict[str, float | None]:
    """The mean of n numbers, and its standard error."""
    error = math.sqrt(max((squares - total * total / n) / (n - 1), 0.0) / n) if n > 1 else None
    return {name: total / n if n else None, f"{name}_error": error}
