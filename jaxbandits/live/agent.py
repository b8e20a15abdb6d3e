"""A policy that serves requests: many at once, of any thread, with budgets that renew; saved, logged, continued.

Decisions and learning are :func:`~jaxbandits.policies.wrappers.decide` and ``learn``, which the simulator plays; here
they are compiled and called one at a time. All else is plain Python, moved by events alone: the same events give the
same state, to the bit. So an agent is its first line in the log, which says with what it was made, and the events after
it, which :meth:`Agent._play` plays again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import constraints
from jaxbandits._engine.limits import check_spec
from jaxbandits._files import path_of
from jaxbandits.core import streams, ticks
from jaxbandits.core.checks import InputError, bad, number, positive_number, shown, whole_number
from jaxbandits.core.protocol import Policy, View
from jaxbandits.core.pytrees import Pytree, walk
from jaxbandits.core.settings import Settings
from jaxbandits.core.specs import Arrivals, FiniteSpec
from jaxbandits.live import log as logs
from jaxbandits.live.budgets import Account, Budget, Pace, Traffic, allowance, budget_state
from jaxbandits.live.step import in_first_places
from jaxbandits.policies import wrappers
from jaxbandits.policies.wrappers import Known

_LOGGER = logging.getLogger("jaxbandits.live")
_LEAST = 4  # capacity
_MOST_NAMED = 8  # arms in a line


@dataclasses.dataclass(frozen=True)
class Ticket:
    """A request that was let through.

    Attributes:
        id: its number, which is that of its round.
        arm: the arm that serves it.
        reserved: money held for it: the arm's bound.
        time: when it was decided.
    """

    id: int
    arm: str
    reserved: float
    time: float


@dataclasses.dataclass
class _Request:
    """A request that is not settled."""

    id: int
    arm: int
    held: int  # ticks
    time: float
    periods: list[int]  # of each budget, when it was decided
    lost: bool = False  # given up: charged its bound, and no longer waited for


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


class Agent:
    """Requests in flight and budgets that renew, decided as the simulator decides them.

    Thread-safe; no server. Money is exact: costs are rounded up to ticks (2⁻²⁴ of ``unit``) and budgets down, an open
    request is charged its arm's bound, so that in no period more is spent than is granted.

    Args:
        policy: any policy for finitely many arms; ``OmegaUCB`` for reward per money, ``PricePacer`` or ``EvenPace``
            where budgets are to last.
        arms: names, and the most that a request to each can cost, in money.
        reward_bound: rewards are from 0 to this.
        budgets: see :class:`Budget`; none: nothing is ever refused.
        key: ``jax.random.key(seed)``.
        traffic: how many requests are expected; policies that pace need it.
        log: a file for the decision log; it must be new, or see ``resume``.
        resume: where the log is there already, go on from it, as :meth:`from_log` does; it must be that of an agent
            that began with these arguments. A service that may have been killed begins so.
        unit: money of one unit of cost, rounded up to a power of two; default the largest bound. Arms that join later
            may not have larger bounds.
        start: when periods begin, in seconds of the clock.
        clock: what time it is, default :func:`time.time`.
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
        (['small', 'small', 'small'], 86400.0)
    """

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
        sync: bool = False,
    ):
        self._policy, self._unit = _checked(policy, arms, unit, budgets, traffic)
        self._per_arm = next((leaf.path for leaf in walk(self._policy) if leaf.metadata.get("core", 0)), None)
        self._reward_bound, self._start = positive_number("reward_bound", reward_bound), number("start", start)
        self._words = np.asarray(jax.random.key_data(streams.root_key(key)))
        self._clock, self._lock = clock, threading.RLock()
        self._log: logs.Log | None = None
        self._broken = False  # the log is behind the state: nothing more may happen
        terms = {
            "policy": logs.written(self._policy),
            "reward_bound": self._reward_bound,
            "unit": self._unit,
            "budgets": [dataclasses.asdict(budget) for budget in budgets],
            "traffic": None if traffic is None else dataclasses.asdict(traffic),
            "key": self._words.tolist(),
            "start": self._start,
        }
        begin = {"do": "begin", "format": logs.FORMAT, "by": logs.versions(), "terms": terms}
        # With what it was made, as the first line of its log, read back: so the two can be compared.
        self._begin = json.loads(json.dumps(begin | {"arms": {name: float(bound) for name, bound in arms.items()}}))
        self._events = 1  # lines of the log; the beginning is one

        self._round, self._now = 0, -math.inf
        self._names: list[str] = []  # by index; an index is never given to another name
        self._bounds: list[int] = []  # ticks
        self._active: list[bool] = []
        self._requests: dict[int, _Request] = {}
        self._accounts = [Account(budget, self._start, self._unit) for budget in budgets]
        self._pace = None if traffic is None else Pace(traffic, self._start)
        self._learnt: Pytree = None  # the policy's state: all that has arrived
        self._waiting = np.zeros(0, np.int32)  # open requests of each arm
        for name, bound in arms.items():
            self._add(name, bound)
        self._lay_out()
        if log is not None:
            place = path_of("log", log)
            if logs.never_begun(place):
                self._log = logs.Log(place, sync)
                logs.mend(place)
                self._log.write(self._begin)
            elif resume:
                self._go_on(place, sync)
            else:
                raise bad("log", str(place), "a new file; an old one is continued with resume=True, or Agent.from_log")

    def __repr__(self) -> str:
        """Policy, arms, money that is left, open requests."""
        with self._lock:
            arms = self._present()
            named = ", ".join(arms) if len(arms) <= _MOST_NAMED else f"{len(arms):,}"
            left = "".join(f"; {name}: {money:,.6g} left" for name, money in self.left().items())
            return f"<Agent: {self._begin['terms']['policy']}; arms: {named}{left}; {len(self.open()):,} open>"

    # --- requests ----------------------------------------------------------------------------------------------

    def choose(self, n: int | None = None, available: Sequence[str] | None = None) -> Any:
        """Decide for a request: its :class:`Ticket`, or None if it cannot be paid (see :meth:`renews_at`).

        Args:
            n: decide for so many at once, none of which knows of another's outcome: a list of as many. Default: one.
            available: names of the arms that may serve it; default all.

        Raises:
            InputError: a name that no arm has, or a clock that says no time.
        """
        if n is not None:
            whole_number("n", n, 1, 1 << 20)
        if isinstance(available, str):
            raise bad("available", available, "a list of names")
        with self._lock:
            now = self._time()
            made = [self._choose(now, None if available is None else list(available)) for _ in range(n or 1)]
        return made if n is not None else made[0]

    def _choose(self, now: float, among: list[str] | None) -> Ticket | None:
        there = self._there
        if among is not None:
            there = np.zeros(self._waiting.size, bool)  # type: ignore[assignment]
            there[[self._index(name) for name in among]] = True  # type: ignore[index]
        self._round, self._now = self._round + 1, now
        for account in self._accounts:
            account.turn(now, self._round)
        if self._pace is not None:
            self._pace.turn(now)
        self._learnt, chosen = self._decided(there)
        arm, request = int(chosen), None
        if 0 <= arm < len(self._names):
            periods = [account.period or 0 for account in self._accounts]
            request = _Request(self._round, arm, self._bounds[arm], now, periods)
            self._requests[request.id] = request
            self._waiting[arm] += 1
            self._charge(request, request.held)
        event: dict[str, Any] = {"do": "choose", "t": now, "id": self._round}
        if among is not None:
            event["among"] = among
        event |= {"arm": None} if request is None else {"arm": self._names[arm], "held": request.held}
        self._write(event)
        return None if request is None else self._ticket(request)

    def _decided(self, there: Any) -> tuple[Pytree, jax.Array]:
        """The policy's state and arm for the round that was begun."""
        view = View(np.int32(self._round), allowance(self._accounts, self._pace), there)  # type: ignore[arg-type]
        known = Known(self._learnt, self._waiting.copy(), budget_state(self._accounts))  # type: ignore[arg-type]
        return _decide(self._policy, known, self._words, view, self._bound, self._scope)

    def learn(self, ticket: Ticket | int, *, reward: float | None = None, cost: float) -> None:
        """The outcome of a request, once, in any order; the money that it did not cost is free again.

        A request that was given up (:meth:`expire`) may still be answered: its reward is learnt, and the difference to
        its bound returns to the period in which it was decided.

        Args:
            ticket: or its id.
            reward: from 0 to ``reward_bound``; None: it is not known, only the money is settled.
            cost: in money, from 0 to the arm's bound.

        Raises:
            InputError: a ticket that is not open, or values out of range; nothing has changed then.
        """
        with self._lock:
            request = self._open(ticket)
            paid = self._ticks("cost", cost, 0.0, self._money(request.held))
            earned = None if reward is None else self._reward_ticks(reward)
            event = {"do": "learn", "id": request.id, "reward": None if reward is None else float(reward)}
            self._write(event | {"cost": float(cost)})
            self._settle(request, paid)
            if earned is not None:
                arrival = np.array([request.id, request.arm, earned, paid], np.int32)
                self._learnt = _learn(self._policy, self._learnt, self._words, self._there, arrival)

    def cancel(self, ticket: Ticket | int) -> None:
        """The request was not made: nothing is learnt, and what was held for it is free again.

        Raises:
            InputError: a ticket that is not open.
        """
        with self._lock:
            request = self._open(ticket)
            self._write({"do": "cancel", "id": request.id})
            self._settle(request, 0)

    def expire(self, *, older_than: float) -> list[Ticket]:
        """Wait no longer for requests that were decided more than so many seconds ago: their bounds count as spent.

        Returns:
            Their tickets. An answer that comes after all is welcome (:meth:`learn`).
        """
        positive_number("older_than", older_than)
        with self._lock:
            now = self._time()
            late = [x.id for x in self._requests.values() if not x.lost and now - x.time > older_than]
            return self._give_up(late, now) if late else []

    def _give_up(self, ids: list[int], now: float) -> list[Ticket]:
        self._write({"do": "expire", "t": now, "ids": ids})
        for id in ids:
            self._requests[id].lost = True
            self._waiting[self._requests[id].arm] -= 1
        return [self._ticket(self._requests[id]) for id in ids]

    def _open(self, ticket: Any) -> _Request:
        id = ticket.id if isinstance(ticket, Ticket) else ticket
        whole = isinstance(id, int) and not isinstance(id, bool)
        request = self._requests.get(id) if whole else None
        if request is None:
            known = whole and 1 <= id <= self._round
            raise bad("ticket", id, f"one that is open; {'it was settled already' if known else 'it was never given'}")
        if isinstance(ticket, Ticket) and ticket != self._ticket(request):
            raise bad("ticket", ticket, f"one of this agent, whose ticket {id} is another")
        return request

    def _ticket(self, request: _Request) -> Ticket:
        return Ticket(request.id, self._names[request.arm], self._money(request.held), request.time)

    def _settle(self, request: _Request, paid: int) -> None:
        """The request is over: what it did not cost returns to the period in which it was decided."""
        del self._requests[request.id]
        self._waiting[request.arm] -= 0 if request.lost else 1
        self._charge(request, paid - request.held)

    def _charge(self, request: _Request, amount: int) -> None:
        for account, pays, period in zip(self._accounts, self._pays, request.periods, strict=True):
            if pays[request.arm]:
                account.charge(period, amount)

    # --- arms --------------------------------------------------------------------------------------------------

    def add_arm(self, name: str, bound: float) -> None:
        """An arm joins; where there is no room, the capacity doubles (which compiles, and is logged).

        An arm that left and comes back under its name keeps what was learnt of it.

        Raises:
            InputError: a name that is there, or a bound above ``unit``.
        """
        with self._lock:
            self._add(name, bound)
            self._write({"do": "add_arm", "name": name, "bound": float(bound)})
            self._lay_out()

    def remove_arm(self, name: str) -> None:
        """An arm leaves: it serves no more requests. Those that are open may still be answered.

        Raises:
            InputError: no arm of that name is there.
        """
        with self._lock:
            index = self._index(name)
            self._write({"do": "remove_arm", "name": name})
            self._active[index] = False
            self._lay_out()

    def _add(self, name: str, bound: float) -> None:
        _check_name(name)
        held = self._ticks("bound", bound, self._money(1), self._unit)
        if name in self._names:
            index = self._names.index(name)
            if self._active[index]:
                raise bad("name", name, "the name of an arm that is not there")
            self._active[index], self._bounds[index] = True, held
            return
        if self._learnt is not None and self._per_arm:
            raise InputError(f"arms: one more given; {self._per_arm} has one value for each of {len(self._names)} arms")
        self._names.append(name)
        self._bounds.append(held)
        self._active.append(True)

    def _present(self) -> list[str]:
        return [name for name, there in zip(self._names, self._active, strict=True) if there]

    def _index(self, name: Any) -> int:
        if name not in self._present():
            raise bad("arm", name, f"one of {', '.join(self._present()) or 'none'}")
        return self._names.index(name)

    def _lay_out(self) -> None:
        """The tables of arms as compiled functions read them; their number is a capacity, so that few are compiled."""
        arms, room = len(self._names), self._waiting.size
        if arms > room:
            many = arms if self._per_arm else max(_LEAST, 1 << (arms - 1).bit_length())
            self._policy.check(FiniteSpec(many))
            wide = self._policy.init(FiniteSpec(many))
            wide = wide if self._learnt is None else jax.tree.map(in_first_places, wide, self._learnt)
            self._learnt = jax.tree.map(jnp.asarray, wide)
            self._waiting = np.append(self._waiting, np.zeros(many - room, np.int32))
        spare = self._waiting.size - arms
        self._bound = jnp.asarray(np.array([*self._bounds, *[ticks.ONE] * spare], np.int32))
        self._there = jnp.asarray(np.array([*self._active, *[False] * spare], bool))
        budgets = [account.budget for account in self._accounts]
        self._pays = [[budget.arms is None or name in budget.arms for name in self._names] for budget in budgets]
        scope = [[*row, *[False] * spare] for row in self._pays]
        self._scope = jnp.asarray(np.array(scope, bool).reshape(len(budgets), self._waiting.size))
        if arms > room:
            self._compile()

    def _compile(self) -> None:
        """Compile all that serving needs: the first request must not wait for it."""
        began = time.perf_counter()
        self._decided(self._there)
        _learn(self._policy, self._learnt, self._words, self._there, np.array([1, 0, 0, 0], np.int32))
        _LOGGER.info("compiled for %d arms in %.1f s", self._waiting.size, time.perf_counter() - began)

    # --- money and time ----------------------------------------------------------------------------------------

    def left(self) -> dict[str, float]:
        """What each budget may still spend in this period, by name."""
        with self._lock:
            now = self._time()
            return {account.budget.name: self._money(account.left(now)) for account in self._accounts}

    def charged(self) -> dict[str, dict[float, float]]:
        """What each budget paid or holds, by name and by the time at which the period began."""
        with self._lock:
            return {
                x.budget.name: {self._start + p * x.budget.every: self._money(paid) for p, paid in x.charged.items()}
                for x in self._accounts
            }

    def renews_at(self) -> float | None:
        """When the first budget renews that cannot pay some arm now; None if all can pay all arms."""
        with self._lock:
            now, arms = self._time(), range(len(self._names))
            short = [
                account.renews(now)
                for account, pays in zip(self._accounts, self._pays, strict=True)
                if any(pays[k] and self._active[k] and self._bounds[k] > account.left(now) for k in arms)
            ]
            return min(short, default=None)

    def open(self) -> list[Ticket]:
        """Tickets that are waited for."""
        with self._lock:
            return [self._ticket(x) for x in self._requests.values() if not x.lost]

    def _time(self) -> float:
        now = self._clock()
        if isinstance(now, bool) or not isinstance(now, (int, float, np.number)) or not np.isfinite(now):
            raise bad("clock", now, "a clock that says a finite number of seconds")
        return max(float(now), self._now)

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
        """A hash of the whole state; agents of equal digests decide the same for ever."""
        with self._lock:
            text = json.dumps(self._plain(), sort_keys=True).encode()
            arrays = b"".join(np.asarray(x).tobytes() for x in jax.tree.leaves(self._learnt))
        return hashlib.sha256(text + arrays).hexdigest()

    def _plain(self) -> dict[str, Any]:
        """All of the state but what the policy learnt, as plain JSON."""
        return {
            "round": self._round,
            "now": self._now,
            "arms": [list(x) for x in zip(self._names, self._bounds, self._active, strict=True)],
            "requests": [dataclasses.asdict(request) for request in self._requests.values()],
            "accounts": [[x.period, x.begun, x.since, sorted(x.charged.items())] for x in self._accounts],
            "pace": None if self._pace is None else [self._pace.slot, self._pace.seen],
        }

    def save(self, path: Any) -> None:
        """Write the whole state to a file, at once or not at all, without pickling: arrays, and JSON of the rest.

        Raises:
            InputError: no file can be written there.
        """
        with self._lock:
            about = {"begin": self._begin, "agent": self._plain(), "events": self._events}
            logs.save_with(path, self._learnt, about)

    @classmethod
    def load(
        cls,
        path: Any,
        *,
        policy: Policy | None = None,
        log: Any = None,
        clock: Callable[[], float] = time.time,
        sync: bool = False,
    ) -> Agent:
        """Go on from what :meth:`save` wrote, and from what the log says happened since.

        Args:
            path: the file.
            policy: a policy of your own must be given; those of ``jb.policies`` are made again.
            log: the log that the agent wrote: its events after the save are played again, and it is continued.
            clock, sync: as for a new agent.

        Raises:
            InputError: no such file, another policy or parameters than given, a log of another agent.
        """
        place = path_of("path", path)
        about, leaves = logs.load_with(place)
        if "agent" not in about:
            raise bad("path", str(place), "a saved agent (it holds a state alone; see jb.live.load)")
        agent = cls._made_by(about["begin"], policy, clock)
        plain = about["agent"]
        agent._round, agent._now, agent._events = plain["round"], plain["now"], about["events"]
        agent._names, agent._bounds, agent._active = (list(x) for x in zip(*plain["arms"], strict=True))
        agent._lay_out()
        agent._requests = {x["id"]: _Request(**x) for x in plain["requests"]}
        for request in agent._requests.values():
            agent._waiting[request.arm] += not request.lost
        for account, (period, begun, since, charged) in zip(agent._accounts, plain["accounts"], strict=True):
            account.period, account.begun, account.since = period, begun, since
            for of, paid in charged:
                account.charge(of, paid)
        if agent._pace is not None:
            agent._pace.slot, agent._pace.seen = plain["pace"]
        agent._learnt = jax.tree.map(jnp.asarray, logs.like_before(place, agent._learnt, about, leaves))
        if log is not None:
            if logs.never_begun(where := path_of("log", log)):
                raise bad("log", str(where), "the log that this agent wrote (only a new agent begins one)")
            agent._go_on(where, sync)
        return agent

    @classmethod
    def from_log(
        cls, log: Any, *, policy: Policy | None = None, clock: Callable[[], float] = time.time, sync: bool = False
    ) -> Agent:
        """The agent that wrote this log, in the state after its last whole line, to the bit; the log is continued.

        Raises:
            InputError: no such log; another policy than given; a decision that comes out otherwise than the log says
                (another version, or another kind of processor).
        """
        place = path_of("log", log)
        agent = cls._made_by(next(logs.read(place)), policy, clock)
        agent._go_on(place, sync)
        return agent

    @classmethod
    def _made_by(cls, begin: dict[str, Any], policy: Policy | None, clock: Callable[[], float]) -> Agent:
        """A new agent with the arguments that the first event of a log says."""
        terms = begin["terms"]
        return cls(
            logs.policy_of(terms["policy"], policy),
            arms=begin["arms"],
            reward_bound=terms["reward_bound"],
            key=streams.typed(np.array(terms["key"], np.uint32)),  # type: ignore[arg-type]
            budgets=[Budget(**budget) for budget in terms["budgets"]],
            traffic=None if terms["traffic"] is None else Traffic(**terms["traffic"]),
            unit=terms["unit"],
            start=terms["start"],
            clock=clock,
        )

    def _go_on(self, place: Path, sync: bool) -> None:
        """Play what a log says happened since, and continue it; a log that is refused is let go."""
        log = logs.Log(place, sync)
        try:
            begin, mine = next(logs.read(place)), self._begin
            names = [name for name in mine["terms"] if (begin.get("terms") or {}).get(name) != mine["terms"][name]]
            if names or list(begin["arms"].items()) != list(mine["arms"].items()):
                what = f"its terms are others ({', '.join(names)})" if names else "it began with other arms"
                raise InputError(f"log: {what}; it must be the log of this agent")
            logs.mend(place)  # only now: it is a log, and this agent's
            number, done = 0, self._events
            for number, event in enumerate(logs.read(place), start=1):
                if number > done:
                    self._play(event, number)
            if number < done:
                raise InputError(f"log: {number} lines given; it must be the log of this agent, which wrote {done}")
        except BaseException:
            log.close()
            raise
        self._log = log

    def _play(self, event: dict[str, Any], number: int) -> None:
        """Decide, learn or change again what a line of a log says."""
        said = dict(event)
        do = said.pop("do")
        if do == "choose":
            ticket = self._choose(event["t"], event.get("among"))
            arm = None if ticket is None else ticket.arm
            if (self._round, arm) != (event["id"], event["arm"]):
                raise InputError(
                    f"log: line {number} says {shown(event['arm'])} for request {event['id']}, and {shown(arm)} comes "
                    "out; it must be played by the version that wrote it, on the same kind of processor"
                )
        elif do == "expire":
            self._give_up(event["ids"], event["t"])
        elif do in ("learn", "cancel"):
            getattr(self, do)(said.pop("id"), **said)
        elif do in ("add_arm", "remove_arm"):
            getattr(self, do)(**said)
        else:
            raise InputError(f"log: line {number} says {shown(do)}; it must be an event of format {logs.FORMAT}")

    def _write(self, event: dict[str, Any]) -> None:
        if self._broken:
            raise OSError("the log is closed, or could not be written; go on with Agent.from_log")
        if self._log is not None:
            self._broken = True
            self._log.write(event)
            self._broken = False
        self._events += 1

    def close(self) -> None:
        """Write no more to the log, so that another agent may continue it."""
        with self._lock:
            if self._log is not None:
                self._log.close()
                self._broken = True


def _checked(
    policy: Any, arms: Any, unit: Any, budgets: Sequence[Budget], traffic: Traffic | None
) -> tuple[Policy, float]:
    """What an agent is made with: the policy, its leaves float32 or int32 of one setting, and the money of one unit of
    cost, a power of two, so that bounds and costs become ticks exactly.
    """
    if not isinstance(policy, Policy):
        raise bad("policy", policy, "a policy, such as OmegaUCB(rho=0.25)")
    if not issubclass(FiniteSpec, policy.plays):
        raise bad("policy", type(policy).__name__, "one for finitely many arms")
    chosen = Settings.of(policy, 1)
    if chosen.count != 1:
        raise bad("policy", policy, "one setting: one value of each parameter")
    if not isinstance(arms, Mapping) or not arms:
        raise bad("arms", arms, "a bound for each name, such as {'small': 0.01, 'large': 0.2}")
    for name, bound in arms.items():
        _check_name(name)
        positive_number(f"arms[{name!r}]", bound)
    spec = FiniteSpec(len(arms))
    check_spec(spec)
    try:
        policy.check(spec)
    except InputError as reason:
        name = type(policy).__name__
        raise InputError(f"policy: {name} cannot serve requests for {len(arms)} arms: {reason}") from None
    largest = max(float(bound) for bound in arms.values())
    power = 2.0 ** math.ceil(math.log2(largest if unit is None else positive_number("unit", unit)))
    if largest > power:
        raise bad("unit", unit, "at least the largest bound")
    for budget in budgets:
        if not isinstance(budget, Budget):
            raise bad("budgets", budget, "a list of jb.live.Budget")
        budget.check(power, list(arms))
    names = [budget.name for budget in budgets]
    if len(set(names)) < len(names):
        raise bad("budgets", names, "of different names")
    if traffic is not None:
        traffic.check(budgets)
    return jax.tree.map(lambda x: jnp.asarray(x[0, 0]), chosen.policy), power


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise bad("arms", name, "names, as text")
