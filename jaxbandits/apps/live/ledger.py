"""What the file holds, and what a call reads and writes in it, always inside one transaction of the
caller.

Money is whole billionths. A budget is charged what a request holds until its cost is known, then
its cost. Every event is a row; the state, which is all other tables, can do without them. From the
first state that is still kept a replay lets the events happen again by the same code
(:meth:`ServiceLedger.replay`).
"""

from __future__ import annotations

import json
import logging
import math
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandits.apps.live.clock import TrafficForecast, period, zone_of
from jaxbandits.apps.live.errors import Misuse, Settled
from jaxbandits.apps.live.program import Lesson, Program, Situation, policy_of, value_for_each_arm
from jaxbandits.apps.live.terms import BILLION, LARGEST_AMOUNT, Breaker, in_currency
from jaxbandits.constraints import Allowance
from jaxbandits.core import InputError, Policy, View, bad, ticks

_LOGGER = logging.getLogger("jaxbandits.apps.live")
FORMAT = 7
SCHEMA = """
-- one row: the terms that hold, and the arguments of whoever made an agent of this file last
CREATE TABLE terms (version INTEGER, text TEXT, arguments TEXT);
-- one row (seen: requests of the running slot, trust: how often the clock was taken at its word)
CREATE TABLE service (event INTEGER, round INTEGER, now REAL, trust INTEGER, seen INTEGER, pace TEXT,
    turned_away INTEGER, cancelled INTEGER, late INTEGER, learnt BLOB);
-- what a request holds now, failures and pauses (trips) in a row, until when it is set aside,
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
-- of budgets that carry over: granted before the period numbered since, and paid in all
CREATE TABLE carried (budget TEXT PRIMARY KEY, since INTEGER, brought INTEGER, total INTEGER);
-- requests that were answered or forgotten, and what each has paid
CREATE TABLE IF NOT EXISTS paid (time REAL, id INTEGER, arm INTEGER, caller TEXT, money INTEGER,
    PRIMARY KEY (time, id)) WITHOUT ROWID;
-- requests that may be answered (lost: 0, or 1, given up, or 2, given up and taught as a failure)
CREATE TABLE tickets (id INTEGER PRIMARY KEY, arm INTEGER, held INTEGER, time REAL, caller TEXT, lost INTEGER,
    context BLOB);
CREATE TABLE events (n INTEGER PRIMARY KEY, do TEXT, t REAL, id INTEGER, arm INTEGER, money INTEGER, reward REAL,
    more TEXT, context BLOB);
CREATE TABLE states (event INTEGER PRIMARY KEY, t REAL, text TEXT);
"""
# And the periods that are running
_STATE = ("terms", "service", "arms", "costs", "carried", "tickets")
_EVENTS_A_STATE = 10_000  # from one state to the next
_EVENTS_A_PART = 8192  # that a policy of another kind reads at once
_LEARNT_AT_ONCE = 4096  # outcomes, in one call of it
_STATES_A_RETENTION = 8  # at least, where there are events
_COSTS_KEPT = 1000  # that a quantile is of
_LARGEST_TOTAL = (1 << 55) - 1  # ticks: what a total of the policy holds
_FAILED = 2

_SERVICE = ["event", "round", "now", "trust", "seen", "pace"]
_SERVICE += ["turned_away", "cancelled", "late", "learnt"]
_SUMS = ["open", "pulls", "cost", "cost2", "lost", "failed", "above"]
_SUMS += ["rewarded", "reward", "reward2"]
_SERVICE_UPDATE = f"UPDATE service SET {', '.join(f'{name} = :{name}' for name in _SERVICE)}"
_BOOK = "INSERT INTO periods VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET charged ="
_MARKS = "?," * 16
_ARM_UPDATE = (
    f"UPDATE arms SET {', '.join(f'{name} = {name} + :{name}' for name in _SUMS)}, hold = :hold, "
    "failures = :failures, trips = :trips, until = :until WHERE id = :id"
)


def dumped(x: Any) -> str:
    """JSON without spaces, bytes as hexadecimal digits."""
    return json.dumps(x, separators=(",", ":"), default=lambda blob: {"hex": blob.hex()})


def check_format(db: sqlite3.Connection) -> None:
    """Is it the file of an agent, of this format?"""
    if db.execute("PRAGMA user_version").fetchone() != (FORMAT,):
        raise sqlite3.DatabaseError(f"it must be of format {FORMAT}")


def place_of(file: Path) -> int:
    """The number of a file that is there, with one name: beside each name SQLite keeps a log."""
    status = file.stat()
    if status.st_nlink > 1:
        names = f"a file with one name, not with {status.st_nlink} (hard links)"
        raise bad(
            "file", str(file), f"{names}: each name would have a log, and an account, of its own"
        )
    return status.st_ino


def numbers_of(context: bytes | None) -> np.ndarray | None:
    """The numbers of a context, from its bytes."""
    return None if context is None else np.frombuffer(context, np.float32)


class BudgetAccount:
    """A budget as the ledger keeps it."""

    def __init__(self, plain: Mapping[str, Any], names: Sequence[str], start: float):
        self.plain, self.name, self.amount = plain, plain["name"], plain["amount"]
        self.carries, self.per_caller = plain["carry_over"], plain["per"] == "caller"
        self.counts = plain["of"] == "requests"
        self.paced = not (self.per_caller or self.counts)
        # What it pays for, and when
        self.paying = [plain[x] for x in ("every", "zone", "arms", "per", "of", "carry_over")]
        self.arms = {
            k for k, name in enumerate(names) if plain["arms"] is None or name in plain["arms"]
        }
        self._zone, self._start = zone_of("zone", plain["zone"]), start
        self._last = 0, math.inf, -math.inf

    def period(self, now: float) -> tuple[int, float, float]:
        """(number, begin, end) of the period in which a time lies."""
        if not self._last[1] <= now < self._last[2]:  # it is asked for several times a request
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
        self.accounts = [
            BudgetAccount(budget, self.names, terms["start"]) for budget in terms["budgets"]
        ]
        self.paced = [x for x in self.accounts if x.paced]
        self.breaker = terms["breaker"] and Breaker(**terms["breaker"])
        n = len(self.names)
        self.context_size: int = terms["context"] or 0  # 0: there are none
        self.by_arm = value_for_each_arm(policy)
        # Room for arms that join later, so that the programs need not be compiled for each.
        room = n if self.by_arm else max(4, 1 << (n - 1).bit_length())
        self.available = np.array([k in self.there for k in range(room)])
        scope = [[k in x.arms for k in range(room)] for x in self.paced]
        self._scope = np.array(scope, bool).reshape(-1, room)
        self._carries = np.array([x.carries for x in self.paced], bool)
        context = bytes(4 * self.context_size) or None
        situation = self.situation(1, {0}, (), [(0, 0, 0, 1, 1)] * len(self.paced), context)
        self.program = Program(policy, terms["key"], self.available, situation, self.context_size)

    def changed(self, change: dict[str, Any], custom: Policy | None) -> Setup:
        """The set-up after a change of the terms; it has the names of all arms that ever were."""
        terms, names = self.terms | change, list(self.names)
        names += [name for name in terms["arms"] if name not in names]
        if len(names) > len(self.names) and self.by_arm:
            each = f"{self.by_arm} has one value for each of {len(self.names)} arms"
            raise Misuse(f"arms: one more given; {each}")
        return Setup(terms, names, policy_of(terms["policy"], custom))

    def remembers_as(self, old: Setup) -> bool:
        """Is what was learnt under old terms of use under these?"""
        kinds = [(x.terms["kind"], x.unit, x.program.states.tree) for x in (self, old)]
        return kinds[0] == kinds[1]

    def tick(self, amount: int) -> int:
        """A cost as the policy sees it: the nearest tick, at most a unit, 0 only for nothing."""
        nearest = (2 * amount * ticks.ONE + self.unit) // (2 * self.unit)
        return min(max(nearest, amount > 0), ticks.ONE)

    def reward_ticks(self, reward: float) -> int:
        """A reward, in ticks of the largest one."""
        return round(reward / self.terms["reward_bound"] * ticks.ONE)

    def situation(
        self,
        round: int,
        ready: set[int],
        arms: Sequence[Any],
        paced_money: Sequence[Any],
        context: bytes | None,
    ) -> Situation:
        """What a decision depends on besides the policy's memory; nothing else may reach the
        policy.

        ``paced_money`` has of each paced budget what is left, granted and brought by a period, and
        the requests that are to come and those of the whole period.
        """
        room, allowance = self.available.size, None
        bound, open = np.full(room, ticks.ONE, np.int32), np.zeros(room, np.int32)
        for k, arm in enumerate(arms):
            bound[k], open[k] = self.tick(arm["hold"]), arm["open"]
        if paced_money:
            *amounts, requests, total = zip(*paced_money, strict=True)
            in_ticks = np.array(
                [[min(x * ticks.ONE // self.unit, _LARGEST_TOTAL) for x in row] for row in amounts]
            )
            rest, granted, amount = map(ticks.Total, *ticks.split(in_ticks))
            ahead = np.array([requests, total], np.int32)
            parts: Any = *rest, granted, amount, None, *ahead, self._carries, bound, self._scope
            allowance = Allowance(*parts)
        available = np.zeros(room, bool)
        available[list(ready)] = True
        view = View(np.int32(round), allowance, available, numbers_of(context))  # type: ignore[arg-type]
        return Situation(view, open)

    def context_bytes(self, context: Any) -> bytes | None:
        """What is known of a request, checked."""
        if not self.context_size:
            if context is not None:
                must = "left out, since the agent was made without `context`"
                raise bad("context", context, must)
            return None
        try:
            with np.errstate(over="ignore"):
                row = np.asarray(context, np.float32)
            if row.shape == (self.context_size,) and np.isfinite(row).all():
                return row.tobytes()
        except (TypeError, ValueError):  # they are no numbers
            pass
        must = f"the {self.context_size} numbers that are known of this request, all finite"
        raise bad("context", context, must)

    def place(self, name: Any) -> int:
        """The place of an arm that is there."""
        if not isinstance(name, str) or name not in self.terms["arms"]:
            raise bad("arm", name, f"one of {', '.join(self.terms['arms']) or 'none'}")
        return self.names.index(name)


class Pupil:
    """A policy of another kind learns the outcomes that are there, in parts: nobody waits long."""

    def __init__(self, setup: Setup):
        self._setup, self._last, self._contexts = setup, 0, dict[int, bytes]()
        self.memory, self.taught = setup.program.first, 0

    def read(self, ledger: ServiceLedger) -> tuple[list[Any], list[int]]:
        """The next events, and what is taught of each arm where nobody knows the cost."""
        part = "SELECT * FROM events WHERE n > ? ORDER BY n LIMIT ?"
        rows = ledger.rows(part, self._last, _EVENTS_A_PART)
        arms = ledger.rows("SELECT id, pulls, cost FROM arms ORDER BY id")
        return rows, [-(-c // pulls) if pulls else self._setup.bounds[k] for k, pulls, c in arms]

    def learn(self, part: tuple[list[Any], list[int]]) -> bool:
        """Learn from them; may there be more?"""
        setup, lessons, (rows, likely) = self._setup, [], part
        for row in rows:
            id, k, cost = row["id"], row["arm"], None if row["do"] == "expire" else row["money"]
            if row["context"] is not None:
                self._contexts[id] = row["context"]
            # Else its decision is too old
            known = not setup.context_size or id in self._contexts
            if row["reward"] is not None and row["more"] is None and known:
                paid = setup.tick(likely[k] if cost is None else cost)
                reward, context = setup.reward_ticks(row["reward"]), self._contexts.get(id)
                lessons.append(Lesson(id, k, reward, paid, context).words())
        memory = b"".join((self.memory, *lessons))
        self.memory = setup.program.learnt(memory, _LEARNT_AT_ONCE)
        self.taught += len(lessons)
        self._last = rows[-1]["n"] if rows else self._last
        return len(rows) == _EVENTS_A_PART


class ServiceLedger:
    """The tables of one open file; every method is called inside a transaction.

    ``service`` is the row of that table as it was left, and the version of the terms.
    """

    def __init__(self, db: sqlite3.Connection, policy: Policy | None):
        self.db, self.policy = db, policy
        db.row_factory = sqlite3.Row
        self._version, self._tidied = 0, -math.inf
        self._forecast: tuple[Any, Any] = None, None
        self.setup: Setup
        self.service: dict[str, Any]

    def row(self, sql: str, *values: Any) -> Any:
        """The first row of an answer."""
        return self.db.execute(sql, values).fetchone()

    def rows(self, sql: str, *values: Any) -> list[Any]:
        """All rows of an answer."""
        return self.db.execute(sql, values).fetchall()

    def _insert(self, table: str, *row: Any, do: str = "INSERT") -> None:
        self.db.execute(f"{do} INTO {table} VALUES ({_MARKS[: 2 * len(row) - 1]})", row)

    def begin(self, setup: Setup, arguments: Mapping[str, Any]) -> None:
        """Write the tables of a service in which nothing has happened."""
        for statement in SCHEMA.split(";"):
            self.db.execute(statement)
        self.db.execute(f"PRAGMA user_version = {FORMAT}")
        self._insert("terms", 1, dumped(setup.terms), dumped(arguments))
        self._insert("service", 0, 0, None, 0, 0, None, 0, 0, 0, setup.program.first)
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
        """Read the service's row; are its terms those of the set-up?"""
        self.service = dict(self.row("SELECT service.*, version FROM service, terms"))
        return self.service["version"] == self._version

    def load(self) -> None:
        """Read the terms that hold now."""
        version, text, _ = self.row("SELECT * FROM terms")
        names = [row["name"] for row in self.rows("SELECT name FROM arms ORDER BY id")]
        terms = json.loads(text)
        self.setup = Setup(terms, names, policy_of(terms["policy"], self.policy))
        self._version = version
        self.is_current()

    # --- money ---------------------------------------------------------------------------------------------------

    def accounts(self, caller: str | None) -> list[BudgetAccount]:
        """Those of all, and where a caller is named those of each caller."""
        return [x for x in self.setup.accounts if caller is not None or not x.per_caller]

    def balance(
        self, account: BudgetAccount, now: float, caller: str | None = None
    ) -> tuple[int, int]:
        """What is granted and charged in this period; of money that is carried over, in all."""
        number, begins, _ = account.period(now)
        if account.carries:
            sums = "SELECT since, brought, total FROM carried WHERE budget = ?"
            since, brought, total = self.row(sums, account.name) or (number, 0, 0)
            return brought + account.amount * (number - since + 1), total
        charged = "SELECT charged FROM periods WHERE budget = ? AND caller = ? AND begins = ?"
        row = self.row(charged, account.name, caller if account.per_caller else "", begins)
        return account.amount, row["charged"] if row else 0

    def charge(self, request: Mapping[str, Any], amount: int, count: int = 0) -> None:
        """Charge every budget that pays for the arm, in the period of the decision."""
        for account in self.setup.accounts:
            caller = request["caller"] if account.per_caller else ""
            if request["arm"] in account.arms and caller is not None:
                charged = count * BILLION if account.counts else amount
                begins = account.period(request["time"])[1]
                row = account.name, caller, begins, account.amount, charged
                self.db.execute(f"{_BOOK} charged + excluded.charged", row)
                if account.carries:
                    total = "UPDATE carried SET total = total + ? WHERE budget = ?"
                    self.db.execute(total, (charged, account.name))

    def by_period(self, caller: str | None = None) -> tuple[dict[str, dict[float, float]], ...]:
        """Of each budget what was paid, and what of it above the grant, by the period's begin."""
        accounts = {x.name: x for x in self.accounts(caller)}
        paid: dict[str, dict[float, float]] = {name: {} for name in accounts}
        over: dict[str, dict[float, float]] = {name: {} for name in accounts}
        carried = {row["budget"] for row in self.rows("SELECT budget FROM carried")}
        of_caller = "SELECT * FROM periods WHERE caller IN ('', ?) ORDER BY begins"
        for row in self.rows(of_caller, caller or ""):
            name, beyond = row["budget"], row["charged"] - row["granted"]
            paid.setdefault(name, {})[row["begins"]] = in_currency(row["charged"])
            # A period may pay more than it brings: only all of them can be overspent
            if name in carried:
                granted, total = 0, 0
                if name in accounts:
                    granted, total = self.balance(accounts[name], self.service["now"])
                over[name], beyond = {}, total - granted
            if beyond > 0:
                over.setdefault(name, {})[row["begins"]] = in_currency(beyond)
        return paid, over

    # --- a decision ------------------------------------------------------------------------------------------------

    def forecast(self) -> TrafficForecast:
        """How many requests are to come."""
        terms, text = self.setup.terms, self.service["pace"]
        return TrafficForecast(terms["traffic"], terms["start"], text and json.loads(text))

    def _same_forecast(self) -> TrafficForecast:
        """That, not read again while it is the same; not to be moved."""
        about = self._version, self.service["pace"]
        if self._forecast[0] != about:
            self._forecast = about, self.forecast()
        return self._forecast[1]

    def ready(
        self, now: float, available: Sequence[str] | None, caller: str | None
    ) -> tuple[dict[int, float], list[Any], dict[str, tuple[int, int]]]:
        """From when on each available arm can serve; the rows of all arms; (granted, charged) by
        budget.

        An arm is closed while it is set aside, and until every budget renews that pays for it and
        cannot pay what a request holds, or has no request left. One that costs nothing needs no
        money.
        """
        setup, arms, balances = self.setup, self.rows("SELECT * FROM arms ORDER BY id"), {}
        candidates = setup.there if available is None else {setup.place(name) for name in available}
        times = {k: arms[k]["until"] for k in candidates}
        for account in self.accounts(caller):
            balances[account.name] = granted, paid = self.balance(account, now, caller)
            for k in candidates & account.arms:
                if (BILLION if account.counts else arms[k]["hold"]) > max(granted - paid, 0):
                    times[k] = max(times[k], account.period(now)[2])
        return times, arms, balances

    def renews_at(
        self, now: float, available: Sequence[str] | None, caller: str | None
    ) -> float | None:
        """When the first arm can serve; None if one can now, or none is available."""
        first = min(self.ready(now, available, caller)[0].values(), default=now)
        return first if first > now else None

    def situation(
        self, now: float, available: Sequence[str] | None, caller: str | None, context: bytes | None
    ) -> tuple[Situation | None, list[Any]]:
        """What the policy has to decide in, None where no arm can serve; and the rows of all arms."""
        setup, service = self.setup, self.service
        if caller is None and (cap := next((x for x in setup.accounts if x.per_caller), None)):
            raise bad("caller", None, f"a name, since {cap.name} is a budget of each caller")
        times, arms, balances = self.ready(now, available, caller)
        if not (ready := {k for k, time in times.items() if time <= now}):
            return None, arms
        ahead = self._same_forecast().ahead(
            [x.period(now)[1:] for x in setup.paced], now, service["seen"]
        )
        paced_money = []
        for account, requests, total in zip(setup.paced, *ahead, strict=True):
            granted, paid = balances[account.name]
            paced_money.append((granted - paid, granted, account.amount, requests, total))
        return setup.situation(service["round"] + 1, ready, arms, paced_money, context), arms

    def choose(
        self, now: float, context: bytes | None = None, **conditions: Any
    ) -> dict[str, Any] | None:
        """Decide, hold, write it down; ``conditions``: ``available``, ``caller``, ``request``."""
        setup, service = self.setup, self.service
        if (id := service["round"] + 1) >= setup.policy.most_rounds:
            raise InputError(f"agent: {id - 1:,} decisions made; a new file must go on")
        caller, request = conditions.get("caller"), None
        situation, arms = self.situation(now, conditions.get("available"), caller, context)
        learnt, k = service["learnt"], -1
        if situation is not None:
            learnt, k = setup.program.choose(learnt, situation)
            if 0 <= k < setup.available.size and not situation.view.available[k]:
                must_be = f"it must be open (view.available) in {setup.terms['policy']}"
                raise InputError(f"policy: arm {k} chosen; {must_be}")
        for account in setup.accounts:
            if account.carries:
                first = account.name, account.period(now)[0]
                self.db.execute("INSERT OR IGNORE INTO carried VALUES (?, ?, 0, 0)", first)
        if 0 <= k < len(setup.names):
            held = arms[k]["hold"]
            request = {"id": id, "arm": k, "held": held, "time": now, "caller": caller, "lost": 0}
            request["context"] = context
            self._insert("tickets", *request.values())
            trips, until = arms[k]["trips"], arms[k]["until"]
            # This request tries the arm: no other one until it had time to answer
            if trips and setup.breaker:
                trips, until = trips + 1, now + setup.breaker.seconds(trips + 1)
            opened = "UPDATE arms SET open = open + 1, trips = ?, until = ? WHERE id = ?"
            self.db.execute(opened, (trips, until, k))
            self.charge(request, held, 1)
        change = {"round": id, "learnt": learnt, "seen": service["seen"] + 1}
        change["turned_away"] = service["turned_away"] + (request is None)
        forecast = self._same_forecast()
        if (slot := math.floor(forecast.place(now))) != forecast.slot:
            (forecast := self.forecast()).move(slot, service["seen"], now)
            change |= {"seen": 1, "pace": dumped(forecast.plain())}
        served = (k, request["held"]) if request else (None, None)
        more = dumped(conditions) if conditions else None
        self._record(now, "choose", id, *served, None, more, context, **change)
        return request

    # --- an outcome ------------------------------------------------------------------------------------------------

    def find(self, id: Any) -> Any:
        """A request that may be answered."""
        whole = isinstance(id, (int, np.integer)) and not isinstance(id, bool)
        row = self.row("SELECT * FROM tickets WHERE id = ?", int(id)) if whole else None
        if row is None:
            existed = whole and 1 <= id <= self.service["round"]
            reason = "settled, or given up and forgotten" if existed else "never given, or is none"
            wrong = bad("ticket", id, f"one that is open; it was {reason}")
            raise (Settled if existed else Misuse)(str(wrong))
        return row

    def settle(
        self,
        now: float,
        do: str,
        request: Mapping[str, Any],
        reward: float | None = None,
        cost: int | None = None,
    ) -> None:
        """What became of a request: ``learn``, ``fail``, ``cancel``, ``expire`` (it may be answered
        yet), ``forget``.

        A reward of None is not known, and not taught; nor is a reward after the request was taught
        as a failure. Where the cost is not known the arm's mean cost is taught.
        """
        service, setup, id, k = self.service, self.setup, request["id"], request["arm"]
        arm, late = self.row("SELECT * FROM arms WHERE id = ?", k), request["lost"] > 0
        learnt = service["learnt"]
        teaches = reward is not None and request["lost"] != _FAILED
        failed, sums = teaches and do != "learn", dict.fromkeys(_SUMS, 0)
        likely, charged = self._likely_cost(k, request["held"]) if cost is None else (cost, cost)
        paid: Any = {"cancel": 0, "forget": request["held"]}.get(do, charged)  # type: ignore[arg-type]
        self.charge(request, paid - request["held"], -(do == "cancel"))
        if do == "expire":
            given_up = paid, _FAILED if teaches else 1, id
            self.db.execute("UPDATE tickets SET held = ?, lost = ? WHERE id = ?", given_up)
        else:
            self.db.execute("DELETE FROM tickets WHERE id = ?", (id,))
            if do != "cancel":
                self._insert("paid", request["time"], id, k, request["caller"], paid)
        hold, failures, trips, until = arm["hold"], arm["failures"], arm["trips"], arm["until"]
        sums |= {"open": -(not late), "lost": do == "expire", "failed": failed}
        if cost is not None:
            above = cost > max(setup.bounds[k], request["held"])
            sums |= {"pulls": 1, "cost": cost, "cost2": float(cost) ** 2, "above": above}  # type: ignore[dict-item]
            self._insert("costs", k, arm["pulls"] % _COSTS_KEPT, cost, do="REPLACE")
            hold = hold if setup.terms["hold"] == "bound" else self._hold(k, arm["pulls"] + 1)
        if teaches:
            sums |= {"rewarded": 1, "reward": reward, "reward2": reward * reward}  # type: ignore[dict-item,operator]
            in_ticks = setup.reward_ticks(reward), setup.tick(likely)  # type: ignore[arg-type]
            learnt = setup.program.noted(learnt, Lesson(id, k, *in_ticks, request["context"]))
        if do == "learn":
            failures, trips, until = 0, 0, 0.0
        elif failed:
            failures += 1
            if setup.breaker and not trips and failures >= setup.breaker.failures:
                trips, until = 1, max(until, now + setup.breaker.seconds(1))
                aside = setup.names[k], failures
                _LOGGER.warning("%s failed %d times in a row and is set aside", *aside)
        values = {"id": k, "hold": hold, "failures": failures, "trips": trips, "until": until}
        self.db.execute(_ARM_UPDATE, sums | values)
        change = {"learnt": learnt, "cancelled": service["cancelled"] + (do == "cancel")}
        change["late"] = service["late"] + (late and do in ("learn", "fail"))
        remark = dumped({"late": True}) if reward is not None and not teaches else None
        self._record(now, do, id, k, paid if do == "expire" else cost, reward, remark, **change)

    def _likely_cost(self, k: int, held: int) -> tuple[int, int]:
        """Where nobody knows the cost: what is taught (the mean), what is charged (as ``lost``)."""
        pulls, cost = self.row("SELECT pulls, cost FROM arms WHERE id = ?", k)
        bound = max(held, self.setup.bounds[k])
        mean = -(-cost // pulls) if pulls else bound
        return mean, mean if self.setup.terms["lost"] == "mean" else bound

    def _hold(self, k: int, pulls: int) -> int:
        """What a request holds: the bound, or a quantile once a cost is expected above it."""
        hold = self.setup.terms["hold"]
        if hold == "bound" or (above := min(pulls, _COSTS_KEPT) * (1 - hold)) < 1:
            return self.setup.bounds[k]
        dear = "SELECT cost FROM costs WHERE arm = ? ORDER BY cost DESC LIMIT 1 OFFSET ?"
        return self.row(dear, k, math.floor(above))[0]

    def clock(self, now: float) -> None:
        """It is so late, whatever was believed before."""
        self._record(now, "clock", trust=self.service["trust"] + 1)

    # --- what is written down --------------------------------------------------------------------------------------

    def _record(self, now: float, do: str, *event: Any, **change: Any) -> None:
        """An event (id, arm, money, reward, more, context), and its change of the service's row."""
        n = self.service["event"] + 1
        self.service |= change | {"event": n, "now": now}
        self._insert("events", n, do, now, *event, *[None] * (6 - len(event)))
        self.db.execute(_SERVICE_UPDATE, self.service)
        if n % _EVENTS_A_STATE == 0:
            self._keep(now)

    def tidy(self, now: float) -> None:
        """Before an event: keep a state where the last one, or what it would delete, is too old."""
        retention = self.setup.terms["retention"]
        if abs(now - self._tidied) < retention / 100:
            return
        self._tidied = now
        unkept, is_old = self.row(
            "SELECT (SELECT t FROM events WHERE n > (SELECT max(event) FROM states) ORDER BY n LIMIT 1),"
            "(SELECT max(event) FROM states WHERE t <= ?) >= (SELECT min(n) FROM events)",
            now - retention,
        )
        if is_old or (unkept is not None and now - unkept >= retention / _STATES_A_RETENTION):
            self._keep(now)

    def state(self) -> str:
        """All that decides what comes, as one text."""
        sql = "SELECT * FROM periods WHERE budget = ? AND begins = ?"
        now = self.service["now"] or 0.0
        tables = {name: list(map(list, self.rows(f"SELECT * FROM {name}"))) for name in _STATE}
        # Whether its outcomes are learnt or noted yet is no part of it
        tables["service"][0][-1] = self.setup.program.learnt(self.service["learnt"])
        running = [(x.name, x.period(now)[1]) for x in self.setup.accounts]
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
            begins = min((x.period(oldest)[1] for x in self.setup.accounts), default=oldest)
            # There may be many callers
            self.db.execute("DELETE FROM periods WHERE caller > '' AND begins < ?", (begins,))
            running = min((x.period(now)[1] for x in self.setup.accounts), default=oldest)
            self.db.execute("DELETE FROM paid WHERE time < ?", (min(oldest, running),))

    def restore(self, text: str) -> None:
        """Take over a state, in a database that is empty or was restored before."""
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
        """Let an event happen again."""
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

    def change(
        self,
        now: float,
        setup: Setup,
        arguments: Mapping[str, Any] | None = None,
        pupil: Pupil | None = None,
    ) -> None:
        """Other terms from now on; what was charged and learnt stays."""
        old, (version, _, last_arguments) = self.setup, self.row("SELECT * FROM terms")
        requests = self.rows("SELECT * FROM tickets")
        for request in requests:  # other budgets may pay for them
            self.charge(request, -request["held"], -1)
        books = {x.name: (x, *self.balance(x, now)) for x in old.accounts}
        text = dumped(setup.terms), last_arguments if arguments is None else dumped(arguments)
        self.db.execute("DELETE FROM terms")
        self._insert("terms", version + 1, *text)
        self._adopt(setup, version + 1)
        for account in setup.accounts:
            book = books.get(account.name, (None, 0, 0))
            if book[0] is None or book[0].plain != account.plain:
                self._reckon(account, now, *book)
        for request in requests:
            self.charge(request, request["held"], 1)
        for account in setup.accounts:
            own = books.get(account.name, (account, 0, 0))[0]
            # Of what was paid before it began, or under a larger grant, no request is to blame
            is_own = account.name in books and own.paying == account.paying
            least = own.amount if is_own else LARGEST_AMOUNT
            self.db.execute(
                "UPDATE periods SET granted = max(granted, ?, min(charged, ?)) WHERE budget = ? AND begins = ?",
                (account.amount, least, account.name, account.period(now)[1]),
            )
        if old.terms["breaker"] != setup.terms["breaker"]:
            self.db.execute("UPDATE arms SET failures = 0, trips = 0, until = 0")
        learnt, change = old.program.learnt(self.service["learnt"]), {}
        if pupil is not None:
            while pupil.learn(pupil.read(self)):
                pass
            learnt = pupil.memory
            taught, rewarded = pupil.taught, self.row("SELECT sum(rewarded) FROM arms")[0] or 0
            level = logging.WARNING if taught < rewarded else logging.INFO
            about = setup.terms["policy"], taught, rewarded
            _LOGGER.log(level, "%s was taught %d of %d outcomes", *about)
        elif old.program.states != setup.program.states:
            learnt = setup.program.widened(old.program, learnt)
        if old.terms["traffic"] != setup.terms["traffic"]:
            change = {"pace": None, "seen": 0}
        self._record(now, "terms", None, None, version + 1, learnt=learnt, **change)
        self._keep(now)

    def _reckon(
        self,
        account: BudgetAccount,
        now: float,
        own: BudgetAccount | None,
        granted: int,
        total: int,
    ) -> None:
        """What a budget paid in its running period: what its arms cost, or is booked, if more."""
        number, begins, _ = account.period(now)
        name, row = account.name, "SELECT {}, {} FROM paid WHERE time >= ? AND arm IN ({})"
        if own and (own.per_caller, own.counts) != (account.per_caller, account.counts):
            self.db.execute("DELETE FROM periods WHERE budget = ?", (name,))
        what = f"count(*) * {BILLION}" if account.counts else "sum(money)"
        whom, arms = "caller" if account.per_caller else "''", ",".join(map(str, account.arms))
        paid = dict(map(tuple, self.rows(row.format(whom, what, arms) + " GROUP BY 1", begins)))
        for caller, amount in paid.items():
            if caller is not None and amount:
                booked = name, caller, begins, account.amount, amount
                self.db.execute(f"{_BOOK} max(charged, excluded.charged)", booked)
        self.db.execute("DELETE FROM carried WHERE budget = ?", (name,))
        if account.carries:
            brought = granted - own.amount if own and own.carries else 0
            total = total if own and own.carries else paid.get("") or 0
            self._insert("carried", name, number, brought, total)
