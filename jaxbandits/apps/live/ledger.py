"""What the file holds, and what a call reads and writes in it: always inside one transaction of the caller.

Money is whole billionths. A budget is charged what a request holds until its cost is known, then its cost. Every event
is a row; the state (all other tables) does not need them. With the first state that is still there they tell the
rest: a replay lets them happen again by the same code (:meth:`Ledger.replay`).
"""

from __future__ import annotations

import json
import logging
import math
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxbandits.apps.live.budgets import (
    BILLION,
    MOST_COST,
    Account,
    Breaker,
    Pace,
    Traffic,
    billionths,
    different,
    place_of,
    quantile,
)
from jaxbandits.apps.live.errors import Misuse, Settled
from jaxbandits.apps.live.program import Program, policy_of, value_for_each_arm, written
from jaxbandits.core import ticks
from jaxbandits.core.checks import MOST_INT, InputError, bad, number, positive_number
from jaxbandits.core.protocol import Policy

_LOGGER = logging.getLogger("jaxbandits.apps.live")
FORMAT = 5
SCHEMA = """
CREATE TABLE service (one INTEGER PRIMARY KEY CHECK (one = 1), event INTEGER, terms INTEGER, round INTEGER, now REAL,
    trust INTEGER, seen INTEGER, turned_away INTEGER, cancelled INTEGER, late INTEGER, pace TEXT, learnt BLOB);
CREATE TABLE terms (id INTEGER PRIMARY KEY, text TEXT, told TEXT);
CREATE TABLE arms (id INTEGER PRIMARY KEY, name TEXT UNIQUE, hold INTEGER, open INTEGER DEFAULT 0,
    failures INTEGER DEFAULT 0, trips INTEGER DEFAULT 0, until REAL DEFAULT 0, pulls INTEGER DEFAULT 0,
    cost INTEGER DEFAULT 0, cost2 REAL DEFAULT 0, rewarded INTEGER DEFAULT 0, reward REAL DEFAULT 0,
    reward2 REAL DEFAULT 0, lost INTEGER DEFAULT 0, failed INTEGER DEFAULT 0, above INTEGER DEFAULT 0);
CREATE TABLE costs (arm INTEGER, place INTEGER, count INTEGER, PRIMARY KEY (arm, place)) WITHOUT ROWID;
CREATE TABLE budgets (id INTEGER PRIMARY KEY, name TEXT, begun INTEGER, brought INTEGER DEFAULT 0,
    total INTEGER DEFAULT 0);
CREATE TABLE periods (budget INTEGER, caller TEXT, period INTEGER, begins REAL, granted INTEGER, charged INTEGER,
    PRIMARY KEY (budget, caller, period)) WITHOUT ROWID;
CREATE TABLE tickets (id INTEGER PRIMARY KEY, arm INTEGER, held INTEGER, time REAL, caller TEXT, lost INTEGER);
CREATE TABLE events (n INTEGER PRIMARY KEY, do TEXT, t REAL, id INTEGER, arm INTEGER, money INTEGER, reward REAL,
    more TEXT);
CREATE TABLE states (event INTEGER PRIMARY KEY, t REAL, text TEXT);
"""
_STATE = ("service", "arms", "costs", "budgets", "tickets")  # and the periods that are running
_EVERY = 10_000  # events from one state to the next
_ENOUGH = 4096  # costs in a histogram; then all counts are halved, so that old prices are forgotten
_MOST = (1 << 55) - 1  # ticks: what a total holds
_QUIET, _FAILED = 1, 2  # a ticket that was given up: nothing was taught, or that it failed


class Service(NamedTuple):
    """The one row of its table."""

    one: int
    event: int
    terms: int
    round: int
    now: float | None
    trust: int  # grows when the clock is taken at its word
    seen: int  # requests of the running slot
    turned_away: int
    cancelled: int
    late: int
    pace: str | None
    learnt: bytes


class Request(NamedTuple):
    """A request that may still be answered."""

    id: int
    arm: int
    held: int  # charged until its cost is known
    time: float  # when it was decided; the period of that time pays
    caller: str | None
    lost: int


def dumped(x: Any) -> str:
    """As JSON, in few characters."""
    return json.dumps(x, separators=(",", ":"))


# --- Terms: all that is given, as JSON


def terms_of(given: Mapping[str, Any], arms: Iterable[str]) -> dict[str, Any]:
    """What is given, checked and as JSON has it; ``arms`` are names that budgets may speak of."""

    def plain(name: str, value: Any, kind: Any) -> Any:
        if value is not None and not isinstance(value, kind):
            raise bad(name, value, f"a jb.live.{kind.__name__}, or None")
        return None if value is None else value.plain()

    def hold(value: Any) -> Any:
        if value != "bound" and (isinstance(value, str) or not 0 < number("hold", value) < 1):
            raise bad("hold", value, "'bound', or a quantile above 0 and below 1")
        return value if value == "bound" else float(value)

    def lost(value: Any) -> str:
        if value not in ("bound", "mean"):
            raise bad("lost", value, "'bound' or 'mean'")
        return value

    read: dict[str, Callable[[Any], Any]] = {
        "policy": written,
        "arms": bounds_of,
        "budgets": lambda value: [budget.plain(arms) for budget in different(value)],
        "traffic": lambda value: plain("traffic", value, Traffic),
        "breaker": lambda value: plain("breaker", value, Breaker),
        "hold": hold,
        "lost": lost,
        "start": lambda value: number("start", value),
    }
    made = {name: read.get(name, lambda x, name=name: positive_number(name, x))(x) for name, x in given.items()}
    return made | ({"kind": written(given["policy"], values=False)} if "policy" in given else {})


def bounds_of(arms: Any) -> dict[str, int]:
    """Names and bounds, in whole billionths."""
    if not isinstance(arms, Mapping) or not arms:
        raise bad("arms", arms, "a bound for each name, such as {'small': 0.01, 'large': 0.2}")
    for name in arms:
        if not isinstance(name, str) or not name:
            raise bad("arms", name, "names, as text")
    return {name: billionths(f"arms[{name!r}]", bound, most=MOST_COST) for name, bound in arms.items()}


class Layout:
    """Terms as a call needs them; of one version of the terms."""

    def __init__(self, terms: dict[str, Any], names: Sequence[str], policy: Policy):
        self.terms, self.names, self.policy = terms, list(names), policy
        self.places = {name: k for k, name in enumerate(self.names)}
        self.unit, self.start = terms["unit"], terms["start"]
        self.accounts = [Account(budget, self.start) for budget in terms["budgets"]]
        self.shared = [x for x in self.accounts if not x.per_caller]
        self.breaker = None if terms["breaker"] is None else Breaker(**terms["breaker"])
        n = len(self.names)
        room = n if value_for_each_arm(policy) else max(4, 1 << (n - 1).bit_length())
        self.program = Program(policy, room, len(self.shared), terms["key"])
        self.there, self.bounds = np.zeros(room, np.int32), np.zeros(room, np.int64)
        for name, bound in terms["arms"].items():
            self.there[self.places[name]], self.bounds[self.places[name]] = 1, bound
        self.pays = np.zeros((len(self.accounts), room), bool)
        for row, account in zip(self.pays, self.accounts, strict=True):
            row[:n] = [account.pays(name) for name in self.names]
        self.scope = self.pays[[not x.per_caller for x in self.accounts]].astype(np.int32)
        self.carries = [int(x.carries) for x in self.shared]
        self._pace: tuple[str | None, Pace] = "", None  # type: ignore[assignment]
        self._seen: tuple[tuple[int, ...], np.ndarray] = (), np.zeros(0)

    def pace(self, text: str | None) -> Pace:
        """Where in its traffic the agent is."""
        if self._pace[0] != text:
            self._pace = text, Pace(self.terms["traffic"], self.start, None if text is None else json.loads(text))
        return self._pace[1]

    def tick(self, amount: int) -> int:
        """What the policy is told of a cost: the nearest tick, at most a unit, and 0 only of nothing."""
        return min(max((2 * amount * ticks.ONE + self.unit) // (2 * self.unit), amount > 0), ticks.ONE)

    def bound_ticks(self, held: tuple[int, ...]) -> np.ndarray:
        """The same of what requests hold."""
        if self._seen[0] != held:
            known = [self.tick(x) for x in held]
            self._seen = held, np.array(known + [ticks.ONE] * (len(self.there) - len(known)), np.int32)
        return self._seen[1]

    def reward_ticks(self, reward: float) -> int:
        """A reward, in ticks."""
        return round(reward / self.terms["reward_bound"] * ticks.ONE)

    def place(self, name: Any) -> int:
        """The place of an arm that is there."""
        place = self.places.get(name) if isinstance(name, str) else None
        if place is None or not self.there[place]:
            raise bad("arm", name, f"one of {', '.join(self.terms['arms']) or 'none'}")
        return place


class Ledger:
    """The tables of one open file; every method is called inside a transaction."""

    def __init__(self, db: sqlite3.Connection, policy: Policy | None):
        self.db, self.given = db, policy
        self._version = 0
        self.layout: Layout

    def begin(self, layout: Layout, told: Mapping[str, Any]) -> None:
        """Write the tables of a service in which nothing has happened."""
        for statement in SCHEMA.split(";"):
            self.db.execute(statement)
        self.db.execute(f"PRAGMA user_version = {FORMAT}")
        row = (1, 0, 1, 0, None, 0, 0, 0, 0, 0, None, layout.program.first)
        self.db.execute(f"INSERT INTO service VALUES ({','.join('?' * 12)})", row)
        self.db.execute("INSERT INTO terms VALUES (1, ?, ?)", (dumped(layout.terms), dumped(told)))
        self.db.executemany("INSERT INTO arms (id, name) VALUES (?, ?)", enumerate(layout.names))
        self.db.executemany("INSERT INTO budgets (id, name) VALUES (?, ?)", ((x.id, x.name) for x in layout.accounts))
        self.layout, self._version = layout, 1
        self._hold_all()
        self._keep(self.service())

    def service(self) -> Service:
        """What stands in its row."""
        return Service(*self._row("SELECT * FROM service"))

    def current(self) -> bool:
        """Are these still the terms?"""
        return self._row("SELECT terms FROM service")[0] == self._version

    def load(self) -> None:
        """Read the terms that hold now."""
        version, text = self._row("SELECT id, text FROM terms, service WHERE id = terms")
        terms = json.loads(text)
        names = [name for (name,) in self.db.execute("SELECT name FROM arms ORDER BY id")]
        self.layout, self._version = Layout(terms, names, policy_of(terms["policy"], self.given)), version

    def _row(self, sql: str, *values: Any) -> Any:
        return self.db.execute(sql, values).fetchone()

    def _set(self, table: str, id: int, change: str, *values: Any) -> None:
        self.db.execute(f"UPDATE {table} SET {change} WHERE id = ?", (*values, id))

    # --- money ---------------------------------------------------------------------------------------------------

    def charged(self, account: Account, period: int, caller: str | None = None) -> int:
        """What a period was charged, of this caller where it is a cap."""
        whose = caller if account.per_caller else ""
        sql = "SELECT charged FROM periods WHERE budget = ? AND caller = ? AND period = ?"
        row = self._row(sql, account.id, whose, period)
        return row[0] if row else 0

    def standing(self, account: Account, now: float, caller: str | None = None) -> tuple[int, int]:
        """What is granted by now, and what was charged of it: in this period, or in all so far if it carries over."""
        period = account.periods.at(now)
        if not account.carries:
            return account.amount, self.charged(account, period, caller)
        begun, brought, total = self._row("SELECT begun, brought, total FROM budgets WHERE id = ?", account.id)
        return brought + account.amount * (1 if begun is None else period - begun + 1), total

    def charge(self, time: float, arm: int, caller: str | None, amount: int) -> None:
        """Charge to the period of that time, which may be over, of every budget that pays for the arm."""
        for account, pays in zip(self.layout.accounts, self.layout.pays, strict=True):
            if pays[arm] and not (account.per_caller and caller is None):
                self._book(account, account.periods.at(time), caller if account.per_caller else "", amount)

    def _book(self, account: Account, period: int, caller: str | None, amount: int) -> None:
        row = account.id, caller, period, account.periods.begin(period), account.amount, amount
        self.db.execute(
            "INSERT INTO periods VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET charged = charged + excluded.charged",
            row,
        )
        if account.carries:
            self._set("budgets", account.id, "total = total + ?", amount)

    def payable(self, now: float, arms: np.ndarray, hold: np.ndarray, caller: str | None) -> tuple[np.ndarray, list]:
        """Which of these arms every budget can pay, and (granted, charged) of the budgets that are paced.

        An arm that costs nothing needs no money.
        """
        can, standing = arms.copy(), []
        for account, pays in zip(self.layout.accounts, self.layout.pays, strict=True):
            granted, paid = self.standing(account, now, caller)
            can &= ~(pays[: can.size] & (hold > granted - paid) & (hold > 0))
            if not account.per_caller:
                standing.append((granted, paid))
        return can, standing

    def by_period(self, accounts: Iterable[Account], caller: str | None = None) -> dict[str, dict[float, tuple]]:
        """Of each budget, by the begin of a period: what it paid, and by how much that was more than was granted then.

        Where what is left is carried over, a period may pay more than it brings: only the last one can be overspent.
        """
        now, made = self.service().now, {}
        for account in accounts:
            asked = account.id, (caller if account.per_caller else "")
            rows = self.db.execute(
                "SELECT period, begins, charged, granted FROM periods WHERE budget = ? AND caller = ? ORDER BY 1", asked
            ).fetchall()
            made[account.name] = row = {begins: (paid, paid - granted) for _, begins, paid, granted in rows}
            if account.carries and now is not None:
                granted, total = self.standing(account, now)
                row.update({begins: (paid, 0) for _, begins, paid, _ in rows})
                if rows:
                    row[rows[-1][1]] = rows[-1][2], total - granted
        return made

    # --- a decision ------------------------------------------------------------------------------------------------

    def dynamics(self) -> tuple[tuple[int, ...], ...]:
        """Of every arm: what a request holds, open requests, pauses in a row, until when it is set aside."""
        return tuple(zip(*self.db.execute("SELECT hold, open, trips, until FROM arms ORDER BY id"), strict=True))

    def candidates(
        self, now: float, available: Sequence[str] | None, caller: str | None
    ) -> tuple[np.ndarray, list, tuple[tuple[int, ...], ...]]:
        """The arms that may serve now, what the paced budgets stand at, and the arms' :meth:`dynamics`."""
        layout, dynamics = self.layout, self.dynamics()
        n = len(layout.names)
        arms = layout.there[:n] > 0
        if available is not None:
            asked = np.zeros_like(arms)
            asked[[layout.place(name) for name in available]] = True
            arms &= asked
        arms &= np.array(dynamics[3]) <= now
        if caller is None and (cap := next((x for x in layout.accounts if x.per_caller), None)):
            raise bad("caller", None, f"a name, since {cap.name} is a budget of each caller")
        can, standing = self.payable(now, arms, np.array(dynamics[0], np.int64), caller)
        return can, standing, dynamics

    def asked(self, service: Service, now: float, can: np.ndarray, standing: list, dynamics: Any) -> np.ndarray:
        """What the policy is asked with: the one place to add what it may depend on."""
        layout, rows = self.layout, None
        there = np.zeros(len(layout.there), np.int32)
        there[: can.size] = can
        open_ = np.zeros(len(layout.there), np.int32)
        open_[: can.size] = dynamics[1]
        if layout.shared:
            amounts = [[g - c for g, c in standing], [g for g, _ in standing], [x.amount for x in layout.shared]]
            wide = np.array([[min(x * ticks.ONE // layout.unit, _MOST) for x in row] for row in amounts], np.int64)
            split = np.stack(ticks.split(wide), axis=1)  # [3, 2, d]
            ahead = layout.pace(service.pace).ahead(layout.shared, now, service.seen)
            rows = np.concatenate([split.reshape(6, -1), np.array([*ahead, layout.carries], np.int64)])
        return layout.program.asked(
            service.round + 1, open_, there, layout.bound_ticks(dynamics[0]), layout.scope, rows
        )

    def choose(
        self, now: float, available: Sequence[str] | None = None, caller: str | None = None, request: str | None = None
    ) -> Request | None:
        """Decide, hold the money, write it down."""
        layout, service = self.layout, self.service()
        if service.round + 1 >= MOST_INT:
            raise InputError(f"agent: {service.round:,} decisions made; it must be fewer: a new file goes on")
        can, standing, dynamics = self.candidates(now, available, caller)
        learnt, arm = service.learnt, -1
        if can.any():
            learnt, arm = layout.program.choose(learnt, self.asked(service, now, can, standing, dynamics))
        id, made = service.round + 1, None
        for account in layout.accounts:
            if account.carries:
                self._set("budgets", account.id, "begun = coalesce(begun, ?)", account.periods.at(now))
        if 0 <= arm < len(layout.names):
            made = Request(id, arm, dynamics[0][arm], now, caller, 0)
            self.db.execute("INSERT INTO tickets VALUES (?, ?, ?, ?, ?, ?)", made)
            trips = dynamics[2][arm]
            if trips and layout.breaker is not None:  # this request tries it: no other one until it had time to answer
                self._set("arms", arm, "trips = ?, until = ?", trips + 1, now + layout.breaker.seconds(trips + 1))
            self._set("arms", arm, "open = open + 1")
            self.charge(now, arm, caller, made.held)
        more = {"available": available, "caller": caller, "request": request}
        more = {name: x for name, x in more.items() if x is not None}
        taken = (made.arm, made.held) if made else (None, None)
        self._note(service, "choose", now, id, *taken, None, dumped(more) if more else None)
        saved = {"round": id, "turned_away": service.turned_away + (made is None), "learnt": learnt}
        self._save(service, now, saved | self._paced(service, now))
        return made

    def _paced(self, service: Service, now: float) -> dict[str, Any]:
        """One more request has come."""
        pace = self.layout.pace(service.pace)
        slot = math.floor(pace.place(now))
        if slot == pace.slot:
            return {"seen": service.seen + 1}
        pace.move(slot, service.seen, now)
        return {"seen": 1, "pace": dumped(pace.plain())}

    # --- an outcome ------------------------------------------------------------------------------------------------

    def find(self, id: Any) -> Request:
        """A request that may be answered."""
        whole = isinstance(id, (int, np.integer)) and not isinstance(id, bool)
        row = self.db.execute("SELECT * FROM tickets WHERE id = ?", (int(id),)).fetchone() if whole else None
        if row is None:
            known = whole and 1 <= id <= self.service().round
            why = "it was settled, or given up and forgotten" if known else "it was never given, or is no ticket"
            raise (Settled if known else Misuse)(str(bad("ticket", id, f"one that is open; {why}")))
        return Request(*row)

    def learn(self, now: float, id: int, reward: float | None, cost: int) -> Request:
        """The outcome of a request."""
        request, service = self.find(id), self.service()
        taught = None if request.lost == _FAILED else reward
        self._settle(request, cost)
        closes = ", failures = 0, trips = 0, until = 0"
        learnt = self._teach(service, request, taught, cost, closes)
        late = dumped({"late": True}) if taught is not reward else None  # it was taught that it failed
        self._note(service, "learn", now, request.id, request.arm, cost, reward, late)
        self._save(service, now, {"learnt": learnt, "late": service.late + (request.lost > 0)})
        return request

    def fail(self, now: float, id: int, cost: int | None) -> Request:
        """A request failed; what it cost, if that is known."""
        request, service = self.find(id), self.service()
        self._settle(request, self._unknown(request) if cost is None else cost)
        learnt = service.learnt
        if request.lost != _FAILED:
            self._set("arms", request.arm, "failed = failed + 1")
            learnt = self._teach(service, request, 0.0, cost)
            self._trip(request.arm, now)
        elif cost is not None:
            learnt = self._teach(service, request, None, cost)
        self._note(service, "fail", now, request.id, request.arm, cost, 0.0)
        self._save(service, now, {"learnt": learnt, "late": service.late + (request.lost > 0)})
        return request

    def cancel(self, now: float, id: int) -> Request:
        """A request was not made."""
        request, service = self.find(id), self.service()
        self._settle(request, 0)
        self._note(service, "cancel", now, request.id, request.arm)
        self._save(service, now, {"cancelled": service.cancelled + 1})
        return request

    def expire(self, now: float, id: int, reward: float | None) -> Request:
        """A request is waited for no longer, and charged as one that is lost; ``reward`` 0: it failed."""
        request, service = self.find(id), self.service()
        held = self._unknown(request)
        self.charge(request.time, request.arm, request.caller, held - request.held)
        lost = _QUIET if reward is None else _FAILED
        self._set("tickets", request.id, "held = ?, lost = ?", held, lost)
        self._set("arms", request.arm, "open = open - 1, lost = lost + 1, failed = failed + ?", reward is not None)
        learnt = service.learnt
        if reward is not None:
            learnt = self._teach(service, request, reward, None)
            self._trip(request.arm, now)
        self._note(service, "expire", now, request.id, request.arm, held, reward)
        self._save(service, now, {"learnt": learnt})
        return request._replace(held=held)

    def forget(self, now: float, id: int) -> None:
        """An answer to this request will not be heard any more."""
        service = self.service()
        self.db.execute("DELETE FROM tickets WHERE id = ?", (id,))
        self._note(service, "forget", now, id)
        self._save(service, now, {})

    def _settle(self, request: Request, paid: int) -> None:
        self.charge(request.time, request.arm, request.caller, paid - request.held)
        self.db.execute("DELETE FROM tickets WHERE id = ?", (request.id,))
        if not request.lost:
            self._set("arms", request.arm, "open = open - 1")

    def _unknown(self, request: Request) -> int:
        """What is charged for a request whose cost nobody knows: the mean of its arm, or its bound."""
        pulls, cost = self._row("SELECT pulls, cost FROM arms WHERE id = ?", request.arm)
        if self.layout.terms["lost"] == "mean" and pulls:
            return -(-cost // pulls)
        return max(request.held, int(self.layout.bounds[request.arm]))

    def _trip(self, arm: int, now: float) -> None:
        """One more failure in a row; after enough of them the arm is set aside."""
        failures, trips = self._row("SELECT failures + 1, trips FROM arms WHERE id = ?", arm)
        breaker, until = self.layout.breaker, 0.0
        if breaker is not None and not trips and failures >= breaker.failures:
            trips, until = 1, now + breaker.seconds(1)
            _LOGGER.warning("%s failed %d times in a row and is set aside", self.layout.names[arm], failures)
        self._set("arms", arm, "failures = ?, trips = ?, until = max(until, ?)", failures, trips, until)

    def _teach(
        self, service: Service, request: Request, reward: float | None, cost: int | None, more: str = ""
    ) -> bytes:
        """Count an outcome, of which reward or cost may be unknown, and let the policy learn it."""
        layout, k = self.layout, request.arm
        if cost is not None:
            change = f"pulls = pulls + 1, cost = cost + ?, cost2 = cost2 + ?, above = above + ?{more}"
            self._set("arms", k, change, cost, float(cost) ** 2, int(cost > layout.bounds[k]))
            self._see(k, cost)
        if reward is None:
            return service.learnt
        change = "rewarded = rewarded + 1, reward = reward + ?, reward2 = reward2 + ?"
        self._set("arms", k, change, reward, reward * reward)
        paid = layout.tick(cost if cost is not None else self._unknown(request))
        return layout.program.learn(service.learnt, request.id, k, layout.reward_ticks(reward), paid, layout.there)

    def _see(self, k: int, cost: int) -> None:
        """A cost joins the arm's histogram."""
        self.db.execute(
            "INSERT INTO costs VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1", (k, place_of(cost))
        )
        if self.layout.terms["hold"] != "bound":
            counts = self._hold(k)
            if sum(count for _, count in counts) >= _ENOUGH:
                self.db.execute("UPDATE costs SET count = count / 2 WHERE arm = ?", (k,))
                self.db.execute("DELETE FROM costs WHERE count = 0")

    def _hold(self, k: int) -> list[tuple[int, int]]:
        """What a request to this arm holds: its bound, or a quantile of its costs."""
        hold, bound = self.layout.terms["hold"], int(self.layout.bounds[k])
        counts = self.db.execute("SELECT place, count FROM costs WHERE arm = ?", (k,)).fetchall()
        amount = bound if hold == "bound" else quantile(counts, hold, bound)
        self._set("arms", k, "hold = ?", amount)
        return counts

    def _hold_all(self) -> None:
        for k in range(len(self.layout.names)):
            self._hold(k)

    # --- what is written down --------------------------------------------------------------------------------------

    def _note(self, service: Service, do: str, now: float, *rest: Any) -> None:
        row = service.event + 1, do, now, *rest, *[None] * (5 - len(rest))
        self.db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def _save(self, service: Service, now: float, change: Mapping[str, Any]) -> None:
        """The service's row after an event; now and then the whole state, for those who look back."""
        change = {"event": service.event + 1, "now": now, **change}
        self.db.execute(f"UPDATE service SET {', '.join(f'{name} = ?' for name in change)}", tuple(change.values()))
        if change["event"] % _EVERY == 0:
            self._keep(self.service())

    def state(self) -> str:
        """All that decides what comes, as one text."""
        tables = {
            name: [
                [x.hex() if isinstance(x, bytes) else x for x in row]
                for row in self.db.execute(f"SELECT * FROM {name}")
            ]
            for name in _STATE
        }
        now, rows = self.service().now or 0.0, []
        for account in self.layout.accounts:
            rows += self.db.execute(
                "SELECT * FROM periods WHERE budget = ? AND period = ?", (account.id, account.periods.at(now))
            ).fetchall()
        return dumped(tables | {"periods": rows})

    def _keep(self, service: Service) -> None:
        """Write the state beside the events, and delete what is older than is to be kept."""
        self.db.execute("INSERT INTO states VALUES (?, ?, ?)", (service.event, service.now, self.state()))
        if service.now is not None:
            oldest = service.now - self.layout.terms["retention"]
            (first,) = self._row("SELECT max(event) FROM states WHERE t <= ?", oldest)
            for table, column in (("events", "n"), ("states", "event")) if first else ():
                self.db.execute(f"DELETE FROM {table} WHERE {column} < ?", (first,))

    def restore(self, text: str, terms: str) -> None:
        """Into an empty database: a state, and its terms."""
        if not self._row("SELECT 1 FROM sqlite_master"):
            self.db.executescript(SCHEMA)
        for name, rows in json.loads(text).items():
            self.db.execute(f"DELETE FROM {name}")
            for row in rows:
                row = [*row[:-1], bytes.fromhex(row[-1])] if name == "service" else row
                self.db.execute(f"INSERT INTO {name} VALUES ({','.join('?' * len(row))})", row)
        self.db.execute("INSERT OR REPLACE INTO terms VALUES (?, ?, '')", (self.service().terms, terms))
        self.load()

    def replay(self, event: Mapping[str, Any]) -> Request | None:
        """Let an event happen again."""
        do, now, id = event["do"], event["t"], event["id"]
        if do == "choose":
            return self.choose(now, **json.loads(event["more"] or "{}"))
        calls: dict[str, Callable[[], Any]] = {
            "learn": lambda: self.learn(now, id, event["reward"], event["money"]),
            "fail": lambda: self.fail(now, id, event["money"]),
            "cancel": lambda: self.cancel(now, id),
            "expire": lambda: self.expire(now, id, event["reward"]),
            "forget": lambda: self.forget(now, id),
            "clock": lambda: self.clock(now),
        }
        return calls[do]()

    def clock(self, now: float) -> None:
        """It is so late, whatever was believed before."""
        service = self.service()
        self._note(service, "clock", now)
        self._save(service, now, {"trust": service.trust + 1})

    # --- other terms -----------------------------------------------------------------------------------------------

    def settle_terms(self, change: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """The terms after a change, with ids for budgets and the unit, and the names of all arms that ever were."""
        old = self.layout.terms
        terms, names = old | change, list(self.layout.names)
        names += [name for name in terms["arms"] if name not in self.layout.places]
        if len(names) > len(self.layout.names) and (path := value_for_each_arm(self.layout.policy)):
            raise InputError(f"arms: one more given; {path} has one value for each of {len(self.layout.names)} arms")
        (last,) = self._row("SELECT coalesce(max(id), 0) FROM budgets")
        return terms | {"budgets": numbered(terms["budgets"], old["budgets"], last), "unit": unit_of(terms)}, names

    def change(self, now: float, layout: Layout, told: Mapping[str, Any] | None = None) -> None:
        """Other terms from now on; what was charged and learnt stays."""
        service, old = self.service(), self.layout
        pending = [Request(*row) for row in self.db.execute("SELECT * FROM tickets")]
        before = {x.name: (x, self.standing(x, now)[0]) for x in old.accounts}
        for request in pending:
            self.charge(request.time, request.arm, request.caller, -request.held)
        text, kept = dumped(layout.terms), dumped(told) if told is not None else self.told()
        (version,) = self._row("SELECT max(id) + 1 FROM terms")
        self.db.execute("INSERT INTO terms VALUES (?, ?, ?)", (version, text, kept))
        self.db.executemany("INSERT OR IGNORE INTO arms (id, name) VALUES (?, ?)", enumerate(layout.names))
        self.layout, self._version = layout, version
        for account in layout.accounts:
            old_one, granted = before.pop(account.name, (None, 0))
            self._hand_over(account, old_one, granted, now)
        if before:
            _LOGGER.warning("budgets %s are no more: what they were charged is forgotten", sorted(before))
        for request in pending:
            self.charge(request.time, request.arm, request.caller, request.held)
        self._hold_all()
        if old.terms["breaker"] != layout.terms["breaker"]:
            self.db.execute("UPDATE arms SET failures = 0, trips = 0, until = 0")
        learnt = service.learnt
        if (old.terms["kind"], old.unit, old.program.shape.tree) != (
            layout.terms["kind"],
            layout.unit,
            layout.program.shape.tree,
        ):
            learnt = self._taught()
        elif old.program.shape != layout.program.shape:
            learnt = layout.program.widened(old.program, learnt)
        paced = {"pace": None, "seen": 0} if old.terms["traffic"] != layout.terms["traffic"] else {}
        self._note(service, "terms", now, None, None, version)
        self._save(service, now, {"terms": version, "learnt": learnt, **paced})
        self.db.execute("DELETE FROM states WHERE event = ?", (service.event + 1,))
        self._keep(self.service())

    def told(self) -> str:
        """What the last one who made an agent of this file gave."""
        return self._row("SELECT told FROM terms, service WHERE id = terms")[0]

    def _hand_over(self, account: Account, before: Account | None, granted: int, now: float) -> None:
        """What the running period paid, the one that runs now has paid; so what is left changes by the amounts."""
        period = account.periods.at(now)
        if before is None or before.id != account.id:
            self.db.execute("INSERT INTO budgets (id, name) VALUES (?, ?)", (account.id, account.name))
        if before is None:
            return
        if before.id != account.id and before.per_caller == account.per_caller:
            running = before.id, before.periods.at(now)
            rows = self.db.execute("SELECT caller, charged FROM periods WHERE budget = ? AND period = ?", running)
            for caller, paid in rows.fetchall():
                self._book(account, period, caller, paid)
        if account.carries and before.carries:
            (total,) = self._row("SELECT total FROM budgets WHERE id = ?", before.id)
            change = period, granted - before.amount, total
            self._set("budgets", account.id, "begun = ?, brought = ?, total = ?", *change)
        most = max(before.amount, account.amount)  # what it paid under the larger grant was not overspent
        self.db.execute(
            "UPDATE periods SET granted = max(granted, ?) WHERE budget = ? AND period = ?", (most, account.id, period)
        )

    def _taught(self) -> bytes:
        """What a policy that knows nothing learns from the outcomes that are still there."""
        layout = self.layout
        means = {
            k: -(-cost // pulls) if pulls else int(layout.bounds[k])
            for k, cost, pulls in self.db.execute("SELECT id, cost, pulls FROM arms")
        }
        found = self.db.execute(
            "SELECT id, arm, do, money, reward FROM events WHERE reward IS NOT NULL AND more IS NULL ORDER BY n"
        ).fetchall()
        rows = [
            (id, k, layout.reward_ticks(reward), layout.tick(means[k] if paid is None or do == "expire" else paid))
            for id, k, do, paid, reward in found
        ]
        (known,) = self._row("SELECT sum(rewarded) FROM arms")
        level = logging.WARNING if len(rows) < (known or 0) else logging.INFO
        _LOGGER.log(level, "%s was taught %d of %d outcomes", layout.terms["policy"], len(rows), known or 0)
        return layout.program.learn_all(np.array(rows, np.int64).reshape(-1, 4), layout.there)


def numbered(budgets: Sequence[Mapping[str, Any]], old: Sequence[Mapping[str, Any]], last: int) -> list[dict[str, Any]]:
    """Budgets with an id: that of the old one of their name if its periods are the same, else a new one."""
    made, same = [], ("name", "every", "zone", "carry_over", "per")
    for budget in budgets:
        id = next((x["id"] for x in old if all(x[name] == budget[name] for name in same)), None)
        last += id is None
        made.append({**budget, "id": last if id is None else id})
    return made


def unit_of(terms: Mapping[str, Any]) -> int:
    """The cost that is 1 for the policy: the largest bound there ever was."""
    return max(max(terms["arms"].values(), default=0), terms.get("unit", 0)) or BILLION
