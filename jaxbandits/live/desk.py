"""Requests at a desk: decided, answered, given back, given up; one after the other, whoever calls."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxbandits.core import ticks
from jaxbandits.core.errors import bad
from jaxbandits.core.numbers import positive_number, whole_number
from jaxbandits.live.log import Log
from jaxbandits.live.service import Request, Service
from jaxbandits.live.terms import Ticket, money_ticks, reward_ticks

_SAID = logging.getLogger("jaxbandits.live")


class Desk:
    """The part of :class:`~jaxbandits.live.Agent` that requests pass through."""

    def _take(self, service: Service, clock: Callable[[], float]) -> None:
        self._service, self._clock, self._lock = service, clock, threading.RLock()
        self._log: Log | None = None
        self._events, self._broken = 0, False

    def _write(self, event: dict[str, Any]) -> None:
        if self._broken:
            raise OSError("the log is closed, or could not be written; go on with Agent.from_log")
        if self._log is not None:
            self._broken = True
            self._log.write(event)
            self._broken = False
        self._events += 1

    def _now(self) -> float:
        now = self._clock()
        if isinstance(now, bool) or not isinstance(now, (int, float, np.number)) or not np.isfinite(now):
            raise bad("clock", now, "a clock that says a finite number of seconds")
        return max(float(now), self._service.now)

    def _compile(self) -> None:
        """Compile all that serving needs, on a copy: the first request must not wait for it."""
        began, kept = time.perf_counter(), self._service
        trial = Service(kept.terms)
        money = (bound * kept.terms.unit / ticks.ONE for bound in kept.bounds)
        trial.begin(dict(zip(kept.names, money, strict=True)))
        for reward in (0, None):
            trial.choose(0.0)
            trial.requests[0] = Request(0, 0, 0, 0.0, [0] * len(kept.terms.budgets))
            trial.learn(0, reward, 0)
        _SAID.info("compiled for %d arms in %.1f s", trial.capacity, time.perf_counter() - began)

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
            now = self._now()
            made = [self._choose(now, None if available is None else list(available)) for _ in range(n or 1)]
        return made if n is not None else made[0]

    def _choose(self, now: float, among: list[str] | None) -> Ticket | None:
        request, service = self._service.choose(now, among), self._service
        event: dict[str, Any] = {"do": "choose", "t": now, "id": service.round}
        if among is not None:
            event["among"] = among
        event |= {"arm": None} if request is None else {"arm": service.names[request.arm], "held": request.held}
        self._write(event)
        return None if request is None else self._ticket(request)

    def _ticket(self, request: Request) -> Ticket:
        reserved = request.held * self._service.terms.unit / ticks.ONE
        return Ticket(request.id, self._service.names[request.arm], reserved, request.time)

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
            bound = request.held * self._service.terms.unit / ticks.ONE
            paid = money_ticks(self._service.terms, "cost", cost, bound)
            earned = None if reward is None else reward_ticks(self._service.terms, reward)
            self._write(
                {
                    "do": "learn",
                    "id": request.id,
                    "reward": None if reward is None else float(reward),
                    "cost": float(cost),
                }
            )
            self._service.learn(request.id, earned, paid)

    def _open(self, ticket: Any) -> Request:
        id = ticket.id if isinstance(ticket, Ticket) else ticket
        number = isinstance(id, int) and not isinstance(id, bool)
        request = self._service.requests.get(id) if number else None
        if request is not None and isinstance(ticket, Ticket) and ticket != self._ticket(request):
            raise bad("ticket", ticket, f"one of this agent, whose ticket {id} is another")
        if request is None:
            known = number and 1 <= id <= self._service.round
            raise bad("ticket", id, f"one that is open; {'it was settled already' if known else 'it was never given'}")
        return request

    def cancel(self, ticket: Ticket | int) -> None:
        """The request was not made: nothing is learnt, and what was held for it is free again.

        Raises:
            InputError: a ticket that is not open.
        """
        with self._lock:
            request = self._open(ticket)
            self._write({"do": "cancel", "id": request.id})
            self._service.cancel(request.id)

    def expire(self, *, older_than: float) -> list[Ticket]:
        """Wait no longer for requests that were decided more than so many seconds ago: their bounds count as spent.

        Returns:
            Their tickets. An answer that comes after all is welcome (:meth:`learn`).
        """
        positive_number("older_than", older_than)
        with self._lock:
            now = self._now()
            late = [x for x in self._service.requests.values() if not x.lost and now - x.time > older_than]
            if late:
                self._write({"do": "expire", "t": now, "ids": [x.id for x in late]})
                self._service.expire([x.id for x in late])
            return [self._ticket(x) for x in late]
