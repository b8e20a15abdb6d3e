"""The tables of an agent's file; a call reads and writes them inside one transaction.

Money is whole billionths. A budget is charged what a request holds until its cost is known, then
its cost. Every event is a row; the state, which is all other tables, can do without them. From the
first state that is still kept a replay lets the events happen again by the same code
(:meth:`ServiceLedger.replay`).
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import sqlite3
import time
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxbandits.apps.live.clock import Forecast, period, zone_of
from jaxbandits.apps.live.errors import Misuse, Settled
from jaxbandits.apps.live.program import (
    Lesson,
    Program,
    Situation,
    has_value_for_each_arm,
    packed,
    policy_of,
)
from jaxbandits.apps.live.terms import BILLION, Breaker, in_currency
from jaxbandits.constraints import Allowance
from jaxbandits.core import InputError, Policy, View, bad, ticks

_LOGGER = logging.getLogger("jaxbandits.apps.live")
FORMAT = 8
SCHEMA = """
-- one row: the terms that hold, and the arguments of whoever made an agent of this file last
CREATE TABLE terms (text TEXT, arguments TEXT);
-- one row (version: of the terms, trust: how often the clock was taken at its word, seen: requests of
-- the running hour)
CREATE TABLE service (version INTEGER, event INTEGER, round INTEGER, now REAL, trust INTEGER,
    seen INTEGER, pace TEXT, turned_away INTEGER, cancelled INTEGER, late INTEGER, learnt BLOB);
-- what a request holds now, failures and pauses (trips) in a row, until when it is paused,
-- then sums over requests with a known cost, and over those with a known reward
CREATE TABLE arms (id INTEGER PRIMARY KEY, name TEXT UNIQUE, hold INTEGER, open INTEGER DEFAULT 0,
    failures INTEGER DEFAULT 0, trips INTEGER DEFAULT 0, until REAL DEFAULT 0, pulls INTEGER DEFAULT 0,
    cost INTEGER DEFAULT 0, cost2 REAL DEFAULT 0, rewarded INTEGER DEFAULT 0, reward REAL DEFAULT 0,
    reward2 REAL DEFAULT 0, lost INTEGER DEFAULT 0, failed INTEGER DEFAULT 0, above INTEGER DEFAULT 0);
-- the last thousand costs of each arm
CREATE TABLE costs (arm INTEGER, n INTEGER, cost INTEGER, PRIMARY KEY (arm, n)) WITHOUT ROWID;
CREATE INDEX costs_in_order ON costs (arm, cost);
CREATE TABLE periods (budget TEXT, caller TEXT, begins REAL, granted INTEGER, charged INTEGER,
    PRIMARY KEY (budget, caller, begins)) WITHOUT ROWID;
-- requests that may be answered (lost: 0, or 1, given up, or 2, given up and taught as a failure)
CREATE TABLE tickets (id INTEGER PRIMARY KEY, arm INTEGER, held INTEGER, time REAL, caller TEXT, lost INTEGER,
    context BLOB);
CREATE TABLE events (n INTEGER PRIMARY KEY, do TEXT, t REAL, id INTEGER, arm INTEGER, money INTEGER, reward REAL,
    more TEXT, context BLOB);
CREATE TABLE states (event INTEGER PRIMARY KEY, t REAL, text TEXT);
"""
# And the periods that are running
_STATE = ("terms", "service", "arms", "costs", "tickets")
_EVENTS_A_STATE = 10_000  # from one state to the next
_EVENTS_TAUGHT = 100_000  # the last ones, to a policy of another kind
_LEARNT_AT_ONCE = 4096  # outcomes, in one call of it
_STATES_A_RETENTION = 8  # at least, where there are events
_COSTS_KEPT = 1000  # that a quantile is of
_LARGEST_TOTAL = (1 << 55) - 1  # ticks: what a total of the policy holds
_FAILED = 2

_ARM = ["hold", "open", "failures", "trips", "until", "pulls", "cost", "cost2", "rewarded"]
_ARM += ["reward", "reward2", "lost", "failed", "above", "id"]
_MARKS = "?," * 16
_BOOK = "INSERT INTO periods VALUES (?,?,?,?,?) ON CONFLICT DO UPDATE SET charged = charged + excluded.charged"
_ARM_UPDATE = f"UPDATE arms SET {' = ?, '.join(_ARM[:-1])} = ? WHERE id = ?"


def dumped(x: Any) -> str:
    """JSON without spaces, bytes as hexadecimal digits."""
    return json.dumps(x, separators=(",", ":"), default=lambda blob: {"hex": blob.hex()})


def check_format(db: sqlite3.Connection) -> None:
    """Refuse a file that is not an agent's, or has another format."""
    (found,) = db.execute("PRAGMA user_version").fetchone()
    if found != FORMAT:
        others = f"an agent of another version of jaxbandits wrote it, in format {found}"
        raise sqlite3.DatabaseError(f"{others}; it must be of format {FORMAT}")


class BudgetAccount:
    """A budget in the ledger."""

    def __init__(self, plain: Mapping[str, Any], names: Sequence[str], start: float):
        self.plain, self.name, self.amount = plain, plain["name"], plain["amount"]
        self.per_caller, self.counts = plain["per"] == "caller", plain["of"] == "requests"
        self.paced = not (self.per_caller or self.counts)
        self.arms = {
            k for k, name in enumerate(names) if plain["arms"] is None or name in plain["arms"]
        }
        self._zone, self._start = zone_of("zone", plain["zone"]), start
        self._last = math.inf, -math.inf

    def period(self, now: float) -> tuple[float, float]:
        """(begin, end) of the period that contains a time."""
        if not self._last[0] <= now < self._last[1]:  # it is asked for several times a request
            self._last = period(self.plain["every"], self._zone, self._start, now)
        return self._last


class Setup:
    """All that a call needs to know of one version of the terms."""

    def __init__(self, terms: dict[str, Any], names: Sequence[str], policy: Policy):
        # The cost that is 1 for the policy: the largest bound there ever was
        self.unit = max((*terms["arms"].values(), terms.get("unit", 0))) or BILLION
        self.terms, self.names, self.policy = terms | {"unit": self.unit}, list(names), policy
        self.bounds = [terms["arms"].get(name, 0) for name in names]
        self.there = {k for k, name in enumerate(names) if name in terms["arms"]}
        self.accounts = [BudgetAccount(x, self.names, terms["start"]) for x in terms["budgets"]]
        self.paced = [x for x in self.accounts if x.paced]
        self.breaker = terms["breaker"] and Breaker(**terms["breaker"])
        n = len(self.names)
        self.context_size: int = terms["context"] or 0  # 0: there are none
        # Room for arms that join later, so that the programs need not be compiled for each.
        room = n if has_value_for_each_arm(policy) else max(4, 1 << (n - 1).bit_length())
        self.available = np.array([k in self.there for k in range(room)])
        blank = self._blank(room)
        self.program = Program(policy, terms["key"], self.available, blank, self.context_size)
        self.blank, self.places = packed(blank).tolist(), self.program.situations.places()

    def changed(self, change: dict[str, Any], custom: Policy | None) -> Setup:
        """The set-up after a change of the terms, with the names of all current and former arms."""
        terms, names = self.terms | change, list(self.names)
        names += [name for name in terms["arms"] if name not in names]
        return Setup(terms, names, policy_of(terms["policy"], custom))

    def remembers_as(self, old: Setup) -> bool:
        """Whether what was learned under old terms is still valid under these."""
        kinds = [(jax.tree.structure(x.policy), x.unit, x.program.states) for x in (self, old)]
        return kinds[0] == kinds[1]

    def tick(self, amount: int) -> int:
        """A cost as the policy sees it: the nearest tick, at most a unit, 0 only for nothing."""
        nearest = (2 * amount * ticks.ONE + self.unit) // (2 * self.unit)
        return min(max(nearest, amount > 0), ticks.ONE)

    def reward_ticks(self, reward: float) -> int:
        """A reward, in ticks of the largest one."""
        return round(reward / self.terms["reward_bound"] * ticks.ONE)

    def _blank(self, room: int) -> Situation:
        """What is the same in all situations, as the first one of an agent: no arm but one serves."""
        d, n, allowance = len(self.paced), self.context_size, None
        if d:
            nothing, one = ticks.split(np.zeros(d, np.int64)), np.ones(d, np.int32)
            amount = ticks.split(np.array([self.total(x.amount) for x in self.paced]))
            scope = np.array([[k in x.arms for k in range(room)] for x in self.paced])
            ahead, bound = (one, one, np.zeros(d, bool)), np.full(room, ticks.ONE, np.int32)
            parts: Any = *nothing, amount, amount, None, *ahead, bound, scope
            allowance = Allowance(*parts)
        context = np.zeros(n, np.float32) if n else None
        view = View(np.int32(1), allowance, np.arange(room) == 0, context)  # type: ignore[arg-type]
        return Situation(view, np.zeros(room, np.int32))

    def total(self, amount: int) -> int:
        """A budget's money in ticks of the unit, rounded down, and cut to what a total can hold."""
        return max(min(amount * ticks.ONE // self.unit, _LARGEST_TOTAL), -_LARGEST_TOTAL)

    def context_bytes(self, context: Any) -> bytes | None:
        """The context of a request, checked, as bytes."""
        if not (size := self.context_size) and context is None:
            return None
        with contextlib.suppress(TypeError, ValueError), np.errstate(over="ignore"):
            row = np.asarray(context, np.float32)
            if size and row.shape == (size,) and np.isfinite(row).all():
                return row.tobytes()
        must = f"the {size} numbers of this request's context, all finite"
        raise bad("context", context, must if size else "left out: the agent was made without it")

    def place(self, name: Any) -> int:
        """The position of an existing arm."""
        if not isinstance(name, str) or name not in self.terms["arms"]:
            raise bad("arm", name, f"one of {', '.join(self.terms['arms']) or 'none'}")
        return self.names.index(name)


class ServiceLedger:
    """The tables of one open file; every method is called inside a transaction.

    ``service`` and ``arms`` are the rows of these tables, ``paid`` what periods were charged; they
    are read again only where another connection wrote, or a call of this one was cut short
    (``is_whole`` is False).
    """

    def __init__(self, db: sqlite3.Connection, policy: Policy | None):
        self.db, self.policy = db, policy
        db.row_factory = sqlite3.Row
        self._version, self._tidied = 0, -math.inf
        self._seen, self.is_whole = -1, False
        self._forecast: tuple[Any, Any] = "", None
        self.setup: Setup
        self.service: dict[str, Any]
        self.arms: list[dict[str, Any]]
        self.paid: dict[tuple[str, str | None, float], int]

    def row(self, sql: str, *values: Any) -> Any:
        """The first row of a query's result."""
        return self.db.execute(sql, values).fetchone()

    def rows(self, sql: str, *values: Any) -> list[Any]:
        """All rows of a query's result."""
        return self.db.execute(sql, values).fetchall()

    def _insert(self, table: str, *row: Any, do: str = "INSERT") -> None:
        self.db.execute(f"{do} INTO {table} VALUES ({_MARKS[: 2 * len(row) - 1]})", row)

    def begin(self, setup: Setup, arguments: Mapping[str, Any]) -> None:
        """Create the tables of a service without events."""
        for statement in SCHEMA.split(";"):
            self.db.execute(statement)
        self.db.execute(f"PRAGMA user_version = {FORMAT}")
        self._insert("terms", dumped(setup.terms), dumped(arguments))
        self._insert("service", 1, 0, 0, None, 0, 0, None, 0, 0, 0, setup.program.first)
        self._adopt(setup, 1)
        self._keep(None)

    def _adopt(self, setup: Setup, version: int) -> None:
        """From now on these terms hold."""
        self.setup, self._version = setup, version
        joined = "INSERT OR IGNORE INTO arms (id, name) VALUES (?, ?)"
        self.db.executemany(joined, enumerate(setup.names))
        for k, pulls in self.rows("SELECT id, pulls FROM arms"):
            self.db.execute("UPDATE arms SET hold = ? WHERE id = ?", (self._hold(k, pulls), k))
        self.is_current()

    def is_current(self) -> bool:
        """Read what others wrote; returns whether the terms are those of the set-up."""
        (seen,) = self.row("PRAGMA data_version")
        if seen != self._seen or not self.is_whole:
            self.paid = {}
            self.service = dict(self.row("SELECT * FROM service"))
            self.arms = [*map(dict, self.rows(f"SELECT {','.join(_ARM)} FROM arms ORDER BY id"))]
        self._seen, self.is_whole = seen, False
        return self.service["version"] == self._version

    def load(self) -> None:
        """Read the terms now in force."""
        terms = json.loads(self.row("SELECT text FROM terms")["text"])
        names = [row["name"] for row in self.rows("SELECT name FROM arms ORDER BY id")]
        self.setup = Setup(terms, names, policy_of(terms["policy"], self.policy))
        self.is_current()
        self._version = self.service["version"]

    # --- money ---------------------------------------------------------------------------------------------------

    def accounts(self, caller: str | None) -> list[BudgetAccount]:
        """The shared budgets and, if a caller is named, those per caller."""
        return [x for x in self.setup.accounts if caller is not None or not x.per_caller]

    def balance(
        self, account: BudgetAccount, now: float, caller: str | None = None
    ) -> tuple[int, int]:
        """What is granted and charged in this period."""
        key = account.name, caller if account.per_caller else "", account.period(now)[0]
        if key not in self.paid:
            charged = "SELECT charged FROM periods WHERE budget = ? AND caller = ? AND begins = ?"
            self.paid[key] = row["charged"] if (row := self.row(charged, *key)) else 0
        return account.amount, self.paid[key]

    def charge(self, request: Mapping[str, Any], amount: int, count: int = 0) -> None:
        """Charge every budget that pays for the arm, in the period of the decision."""
        for account in self.setup.accounts:
            caller = request["caller"] if account.per_caller else ""
            if request["arm"] in account.arms and caller is not None:
                charged = count * BILLION if account.counts else amount
                key = account.name, caller, account.period(request["time"])[0]
                self.db.execute(_BOOK, (*key, account.amount, charged))
                if key in self.paid:
                    self.paid[key] += charged

    def by_period(self, caller: str | None = None) -> tuple[dict[str, dict[float, float]], ...]:
        """What each budget paid, and what of it exceeded the grant, by the start of the period."""
        paid: dict[str, dict[float, float]] = {x.name: {} for x in self.accounts(caller)}
        over: dict[str, dict[float, float]] = {}
        of_caller = "SELECT * FROM periods WHERE caller IN ('', ?) ORDER BY begins"
        for row in self.rows(of_caller, caller or ""):
            name, beyond = row["budget"], row["charged"] - row["granted"]
            paid.setdefault(name, {})[row["begins"]] = in_currency(row["charged"])
            if beyond > 0:
                over.setdefault(name, {})[row["begins"]] = in_currency(beyond)
        return paid, over

    # --- a decision ------------------------------------------------------------------------------------------------

    def forecast(self) -> Forecast:
        """The forecast of requests, cached until it changes."""
        if self._forecast[0] != (text := self.service["pace"]):
            start = self.setup.terms["start"]
            self._forecast = text, Forecast(start, text and json.loads(text))
        return self._forecast[1]

    def ready(
        self, now: float, available: Sequence[str] | None, caller: str | None
    ) -> tuple[dict[int, float], dict[str, tuple[int, int]]]:
        """When each available arm can serve; (granted, charged) by budget.

        An arm is closed while it is paused, and until every budget renews that pays for it and
        cannot pay what a request holds, or has no request left. One that costs nothing needs no
        money.
        """
        setup, arms, balances = self.setup, self.arms, {}
        candidates = setup.there if available is None else {setup.place(name) for name in available}
        times = {k: arms[k]["until"] for k in candidates}
        for account in self.accounts(caller):
            balances[account.name] = granted, paid = self.balance(account, now, caller)
            for k in candidates & account.arms:
                if (BILLION if account.counts else arms[k]["hold"]) > max(granted - paid, 0):
                    times[k] = max(times[k], account.period(now)[1])
        return times, balances

    def renews_at(self, now: float, caller: str | None) -> float | None:
        """When the first arm can serve again; None if one can now, or if there is no arm."""
        first = min(self.ready(now, None, caller)[0].values(), default=now)
        return first if first > now else None

    def situation(
        self, now: float, available: Sequence[str] | None, caller: str | None, context: bytes | None
    ) -> tuple[bytes | None, set[int]]:
        """(the policy's input, None if no arm can serve; the arms that can)."""
        setup, service, arms = self.setup, self.service, self.arms
        if caller is None and (cap := next((x for x in setup.accounts if x.per_caller), None)):
            raise bad("caller", None, f"a name, since {cap.name} is a budget of each caller")
        times, balances = self.ready(now, available, caller)
        if not (ready := {k for k, time in times.items() if time <= now}):
            return None, ready
        # As words, where the policy's views have them; nothing else may reach it
        words, (view, open), n = setup.blank.copy(), setup.places, len(arms)
        words[view.round] = [service["round"] + 1]
        words[view.available] = [k in ready for k in range(setup.available.size)]
        words[open.start : open.start + n] = [arm["open"] for arm in arms]
        if left := view.left:
            periods, money = [x.period(now) for x in setup.paced], []
            for account in setup.paced:
                granted, paid = balances[account.name]
                money.append(setup.total(granted - paid))
            words[left.whole] = [x >> ticks.BITS for x in money]
            words[left.part] = [x % ticks.ONE for x in money]
            ahead = self.forecast().ahead(periods, now, service["seen"])
            words[left.requests], words[left.total] = ahead
            bounds = [setup.tick(arm["hold"]) for arm in arms]
            words[left.bound.start : left.bound.start + n] = bounds
        if context:
            words[view.context] = array("i", context)
        return array("i", words).tobytes(), ready

    def choose(
        self, now: float, context: bytes | None = None, **conditions: Any
    ) -> dict[str, Any] | None:
        """Decide, reserve and record; ``conditions``: ``available``, ``caller``, ``request``."""
        setup, service = self.setup, self.service
        if (id := service["round"] + 1) >= setup.policy.most_rounds:
            raise InputError(
                f"agent: {id - 1:,} decisions made, its limit; continue with a new file"
            )
        caller, request = conditions.get("caller"), None
        situation, ready = self.situation(now, conditions.get("available"), caller, context)
        learnt, k = service["learnt"], -1
        if situation is not None:
            learnt, k = setup.program.choose(learnt, situation)
            if 0 <= k < setup.available.size and k not in ready:
                must_be = f"{setup.terms['policy']} must choose an open one (view.available)"
                raise InputError(f"policy: arm {k} chosen; {must_be}")
        if 0 <= k < len(setup.names):
            held = (arm := self.arms[k])["hold"]
            request = {"id": id, "arm": k, "held": held, "time": now, "caller": caller, "lost": 0}
            request["context"] = context
            self._insert("tickets", *request.values())
            arm["open"] += 1
            # This request tries the arm: no other one until it had time to answer
            if arm["trips"] and setup.breaker:
                arm["trips"] += 1
                arm["until"] = now + setup.breaker.seconds(arm["trips"])
            self.db.execute(_ARM_UPDATE, [*arm.values()])
            self.charge(request, held, 1)
        change = {"round": id, "learnt": learnt, "seen": service["seen"] + 1}
        change["turned_away"] = service["turned_away"] + (request is None)
        forecast = self.forecast()
        if (slot := math.floor(forecast.place(now))) != forecast.slot:
            self._forecast = "", None  # who is cut short reads it again
            forecast.move(slot, service["seen"], now)
            change |= {"seen": 1, "pace": dumped(forecast.plain())}
        served = (k, request["held"]) if request else (None, None)
        more = dumped(conditions) if conditions else None
        self._record(now, "choose", id, *served, None, more, context, **change)
        return request

    # --- an outcome ------------------------------------------------------------------------------------------------

    def find(self, id: Any) -> Any:
        """A request whose outcome may still be reported."""
        whole = isinstance(id, (int, np.integer)) and not isinstance(id, bool)
        row = self.row("SELECT * FROM tickets WHERE id = ?", int(id)) if whole else None
        if row is None:
            kind = Settled if whole and 1 <= id <= self.service["round"] else Misuse
            was = "settled, or expired and forgotten" if kind is Settled else "never issued"
            raise kind(str(bad("ticket", id, f"one that is open; it was {was}")))
        return row

    def settle(
        self,
        now: float,
        do: str,
        request: Mapping[str, Any],
        reward: float | None = None,
        cost: int | None = None,
    ) -> None:
        """Book an event of a request: ``learn``, ``fail``, ``cancel``, ``expire`` or ``forget``.

        A reward of None is not known, and not taught; nor is a reward after the request was taught
        as a failure. Where the cost is not known the arm's mean cost is taught.
        """
        service, setup, id, k = self.service, self.setup, request["id"], request["arm"]
        arm, late = self.arms[k], request["lost"] > 0
        learnt, bound = service["learnt"], max(setup.bounds[k], request["held"])
        teaches = reward is not None and request["lost"] != _FAILED
        failed, likely, charged = teaches and do != "learn", cost, cost
        if cost is None:
            likely = -(-arm["cost"] // arm["pulls"]) if arm["pulls"] else bound
            charged = likely if setup.terms["lost"] == "mean" else bound
        paid: Any = {"cancel": 0, "forget": request["held"]}.get(do, charged)
        self.charge(request, paid - request["held"], -(do == "cancel"))
        if do == "expire":
            given_up = paid, _FAILED if teaches else 1, id
            self.db.execute("UPDATE tickets SET held = ?, lost = ? WHERE id = ?", given_up)
        else:
            self.db.execute("DELETE FROM tickets WHERE id = ?", (id,))
        arm["open"] -= not late
        arm["lost"] += do == "expire"
        arm["failed"] += failed
        if cost is not None:
            self._insert("costs", k, arm["pulls"] % _COSTS_KEPT, cost, do="REPLACE")
            arm["pulls"] += 1
            arm["cost"] += cost
            arm["cost2"] += float(cost) ** 2
            arm["above"] += cost > bound
            arm["hold"] = self._hold(k, arm["pulls"])
        if teaches:
            arm["rewarded"] += 1
            arm["reward"] += reward
            arm["reward2"] += reward * reward  # type: ignore[operator]
            in_ticks = setup.reward_ticks(reward), setup.tick(likely)  # type: ignore[arg-type]
            learnt = setup.program.noted(learnt, Lesson(id, k, *in_ticks, request["context"]))
        if do == "learn":
            arm |= {"failures": 0, "trips": 0, "until": 0.0}
        elif failed:
            arm["failures"] += 1
            breaker, failures = setup.breaker, arm["failures"]
            if breaker and not arm["trips"] and failures >= breaker.failures:
                arm |= {"trips": 1, "until": max(arm["until"], now + breaker.seconds(1))}
                at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))  # of an audit: then
                what = f"{setup.names[k]} failed {failures} times in a row, last in request {id}"
                _LOGGER.warning("%s: %s; it is paused for %g s", at, what, arm["until"] - now)
        self.db.execute(_ARM_UPDATE, [*arm.values()])
        change = {"learnt": learnt, "cancelled": service["cancelled"] + (do == "cancel")}
        change["late"] = service["late"] + (late and do in ("learn", "fail"))
        remark = dumped({"late": True}) if reward is not None and not teaches else None
        self._record(now, do, id, k, paid if do == "expire" else cost, reward, remark, **change)

    def _hold(self, k: int, pulls: int) -> int:
        """What a request holds: the bound, or a quantile once a cost is expected above it."""
        hold = self.setup.terms["hold"]
        if hold == "bound" or (above := min(pulls, _COSTS_KEPT) * (1 - hold)) < 1:
            return self.setup.bounds[k]
        dear = "SELECT cost FROM costs WHERE arm = ? ORDER BY cost DESC LIMIT 1 OFFSET ?"
        return self.row(dear, k, math.floor(above))[0]

    def clock(self, now: float) -> None:
        """Accept this time, whatever the clock showed before."""
        self._record(now, "clock", trust=self.service["trust"] + 1)

    # --- what is written down --------------------------------------------------------------------------------------

    def _record(self, now: float, do: str, *event: Any, **change: Any) -> None:
        """An event (id, arm, money, reward, more, context), and its change of the service's row."""
        n = self.service["event"] + 1
        self.service |= change | {"event": n, "now": now}
        self._insert("events", n, do, now, *event, *[None] * (6 - len(event)))
        update = f"UPDATE service SET {' = ?, '.join(self.service)} = ?"
        self.db.execute(update, [*self.service.values()])
        if n % _EVENTS_A_STATE == 0:
            self._keep(now)

    def tidy(self, now: float) -> None:
        """Before an event: store a state if the last is too old, and delete what is older."""
        retention = self.setup.terms["retention"]
        if abs(now - self._tidied) >= retention / 100:
            self._tidied = now
            (last,) = self.row("SELECT max(t) FROM states")
            if last is None or now - last >= retention / _STATES_A_RETENTION:
                self._keep(now)

    def state(self) -> str:
        """All that future decisions depend on, as one text."""
        sql = "SELECT * FROM periods WHERE budget = ? AND begins = ?"
        now = self.service["now"] or 0.0
        tables = {name: list(map(list, self.rows(f"SELECT * FROM {name}"))) for name in _STATE}
        # Whether its outcomes are learnt or noted yet is no part of it
        tables["service"][0][-1] = self.setup.program.learnt(self.service["learnt"])
        running = [(x.name, x.period(now)[0]) for x in self.setup.accounts]
        tables["periods"] = [list(row) for key in running for row in self.rows(sql, *key)]
        return dumped(tables)

    def _keep(self, now: float | None) -> None:
        """Write the state beside the events, and delete what is older than the retention."""
        at = self.service["event"], self.service["now"]
        self._insert("states", *at, self.state(), do="REPLACE")
        if now is not None:
            oldest = now - self.setup.terms["retention"]
            (first,) = self.row("SELECT max(event) FROM states WHERE t <= ?", oldest)
            if first:
                self.db.execute("DELETE FROM events WHERE n <= ?", (first,))
                self.db.execute("DELETE FROM states WHERE event < ?", (first,))
            begins = min((x.period(oldest)[0] for x in self.setup.accounts), default=oldest)
            self.paid = {}  # there may be many callers
            self.db.execute("DELETE FROM periods WHERE caller > '' AND begins < ?", (begins,))

    def restore(self, text: str) -> None:
        """Restore a state into a database that is empty or was restored before."""
        if not self.row("SELECT 1 FROM sqlite_master"):
            self.db.executescript(SCHEMA)

        def plain(x: dict[str, Any]) -> Any:
            return bytes.fromhex(x["hex"]) if x.keys() == {"hex"} else x

        for name, rows in json.loads(text, object_hook=plain).items():
            self.db.execute(f"DELETE FROM {name}")
            for row in rows:
                self._insert(name, *row)
        self.load()

    def replay(self, event: Mapping[str, Any]) -> dict[str, Any] | None:
        """Repeat an event."""
        do, now = event["do"], event["t"]
        if do == "choose":
            return self.choose(now, event["context"], **json.loads(event["more"] or "{}"))
        if do == "clock":
            self.clock(now)
        else:
            cost = None if do == "expire" else event["money"]
            self.settle(now, do, self.find(event["id"]), event["reward"], cost)
        return None

    # --- other terms -----------------------------------------------------------------------------------------------

    def change(self, now: float, setup: Setup, arguments: Mapping[str, Any] | None) -> None:
        """Change the terms from now on; what was charged and learned stays."""
        old, version, requests = self.setup, self._version + 1, self.rows("SELECT * FROM tickets")
        books = {x.name: (x.per_caller, x.counts) for x in old.accounts}
        for account in setup.accounts:
            kind = account.per_caller, account.counts
            if books.get(account.name, kind) != kind:
                must = "another name, since its accounts have the per= and of= that it had"
                raise bad("budgets", account.name, must)
        for request in requests:  # other budgets may pay for them
            self.charge(request, -request["held"], -1)
        texts = dumped(setup.terms), arguments and dumped(arguments)
        self.db.execute("UPDATE terms SET text = ?, arguments = ifnull(?, arguments)", texts)
        if old.terms["breaker"] != setup.terms["breaker"]:
            self.db.execute("UPDATE arms SET failures = 0, trips = 0, until = 0")
        self._adopt(setup, version)
        for request in requests:
            self.charge(request, request["held"], 1)
        for account in setup.accounts:
            # Of what was paid under a larger grant no request is to blame
            raised = "UPDATE periods SET granted = max(granted, ?) WHERE budget = ? AND begins = ?"
            self.db.execute(raised, (account.amount, account.name, account.period(now)[0]))
        learnt = old.program.learnt(self.service["learnt"])
        if not setup.remembers_as(old):
            learnt = self._taught()
        self._record(now, "terms", None, None, version, version=version, learnt=learnt)
        self._keep(now)

    def _taught(self) -> bytes:
        """What a policy of another kind has learnt of the last outcomes that are kept."""
        setup, lessons, contexts = self.setup, list[bytes](), dict[int, bytes]()
        # Where nobody knows the cost
        likely = [
            -(-x["cost"] // x["pulls"]) if x["pulls"] else setup.bounds[x["id"]] for x in self.arms
        ]
        last = "SELECT * FROM events WHERE n > ? ORDER BY n"
        for row in self.db.execute(last, (self.service["event"] - _EVENTS_TAUGHT,)):
            id, k, cost = row["id"], row["arm"], None if row["do"] == "expire" else row["money"]
            if row["context"] is not None:
                contexts[id] = row["context"]
            # Else its decision is too old
            known = not setup.context_size or id in contexts
            if row["reward"] is not None and row["more"] is None and known:
                paid = setup.tick(likely[k] if cost is None else cost)
                lesson = id, k, setup.reward_ticks(row["reward"]), paid, contexts.get(id)
                lessons.append(Lesson(*lesson).words())
        return setup.program.learnt(b"".join((setup.program.first, *lessons)), _LEARNT_AT_ONCE)
