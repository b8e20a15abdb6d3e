"""A policy that serves requests: many at once, of any thread, with budgets that renew; saved, logged, continued."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxbandits._files.files import path_of
from jaxbandits.core import ticks
from jaxbandits.core.errors import bad
from jaxbandits.core.protocol import Policy
from jaxbandits.live import recall
from jaxbandits.live.budgets import Budget, Traffic
from jaxbandits.live.desk import Desk
from jaxbandits.live.identity import identity_of, text_of, versions
from jaxbandits.live.log import FORMAT, Log, mend, never_begun
from jaxbandits.live.service import Service
from jaxbandits.live.terms import Ticket, check_name, plain_terms, terms_of

_MOST_NAMED = 8  # arms in a line


class Agent(Desk):
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
        terms = terms_of(policy, arms, reward_bound, key, budgets, traffic, unit, start)
        self._take(Service(terms), clock)
        self._service.begin(dict(arms))
        self._compile()
        if log is not None:
            place, money = path_of("log", log), {name: float(bound) for name, bound in arms.items()}
            if never_begun(place):
                self._log = Log(place, sync)
                mend(place)
                about = {"format": FORMAT, "by": versions(), "terms": plain_terms(terms)}
                self._write({"do": "begin"} | about | {"arms": money})
            elif resume:
                self._go_on(log, sync, lambda: recall.resume(self._service, log, money))
                self._compile()  # for arms that joined since
            else:
                raise bad("log", str(place), "a new file; an old one is continued with resume=True, or Agent.from_log")

    def __repr__(self) -> str:
        """Policy, arms, money that is left, open requests."""
        with self._lock:
            service = self._service
            arms = [name for name, there in zip(service.names, service.active, strict=True) if there]
            named = ", ".join(arms) if len(arms) <= _MOST_NAMED else f"{len(arms):,}"
            left = "".join(f"; {name}: {money:,.6g} left" for name, money in self.left().items())
            return (
                f"<Agent: {text_of(identity_of(service.terms.policy))}; arms: {named}{left}; {len(self.open()):,} open>"
            )

    # --- arms and money ----------------------------------------------------------------------------------------

    def add_arm(self, name: str, bound: float) -> None:
        """An arm joins; where there is no room, the capacity doubles (which compiles, and is said to the logger).

        An arm that left and comes back under its name keeps what was learnt of it.

        Raises:
            InputError: a name that is there, or a bound above ``unit``.
        """
        with self._lock:
            room = self._service.capacity
            check_name(name)
            self._service.add_arm(name, bound)
            self._write({"do": "add_arm", "name": name, "bound": float(bound)})
            if self._service.capacity > room:
                self._compile()

    def remove_arm(self, name: str) -> None:
        """An arm leaves: it serves no more requests. Those that are open may still be answered.

        Raises:
            InputError: no arm of that name is there.
        """
        with self._lock:
            self._service.remove_arm(name)
            self._write({"do": "remove_arm", "name": name})

    def left(self) -> dict[str, float]:
        """What each budget may still spend in this period, by name."""
        with self._lock:
            now, unit = self._now(), self._service.terms.unit
            budgets = self._service.terms.budgets
            return {x.name: self._service.left(j, now) * unit / ticks.ONE for j, x in enumerate(budgets)}

    def charged(self) -> dict[str, dict[float, float]]:
        """What each budget paid or holds, by name and by the time at which the period began."""
        with self._lock:
            terms, paid = self._service.terms, {}
            for budget, periods in zip(terms.budgets, self._service.charged, strict=True):
                money = {terms.start + p * budget.every: x * terms.unit / ticks.ONE for p, x in periods.items()}
                paid[budget.name] = money
            return paid

    def renews_at(self) -> float | None:
        """When the first budget renews that cannot pay some arm now; None if all can pay all arms."""
        with self._lock:
            return self._service.renews_at(self._now())

    def open(self) -> list[Ticket]:
        """Tickets that are waited for."""
        with self._lock:
            return [self._ticket(x) for x in self._service.requests.values() if not x.lost]

    def digest(self) -> str:
        """A hash of the whole state; agents of equal digests decide the same for ever."""
        with self._lock:
            return self._service.digest()

    # --- on disk -----------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the whole state to a file, at once or not at all, without pickling: arrays, and JSON of the rest.

        Raises:
            InputError: no file can be written there.
        """
        with self._lock:
            recall.save(path, self._service, self._events)

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
        service, events = recall.load(path, policy)
        return cls._continue(service, events, log, clock, sync)

    @classmethod
    def from_log(
        cls, log: Any, *, policy: Policy | None = None, clock: Callable[[], float] = time.time, sync: bool = False
    ) -> Agent:
        """The agent that wrote this log, in the state after its last whole line, to the bit; the log is continued.

        Raises:
            InputError: no such log; another policy than given; a decision that comes out otherwise than the log says
                (another version, or another kind of processor).
        """
        service, events = recall.first(log, policy)
        return cls._continue(service, events, log, clock, sync)

    @classmethod
    def _continue(cls, service: Service, events: int, log: Any, clock: Callable[[], float], sync: bool) -> Agent:
        agent = cls.__new__(cls)
        agent._take(service, clock)
        agent._events = events
        if log is not None:
            if never_begun(place := path_of("log", log)):
                raise bad("log", str(place), "the log that this agent wrote (only a new agent begins one)")
            agent._go_on(log, sync, lambda: recall.replay(service, log, events))
        agent._compile()
        return agent

    def _go_on(self, log: Any, sync: bool, replayed: Callable[[], int]) -> None:
        """Take a log that has begun, and what it says; a log that is refused is let go."""
        self._log = Log(log, sync)
        try:
            self._events = replayed()
        except BaseException:
            self._log.close()
            raise

    def close(self) -> None:
        """Write no more to the log, so that another agent may continue it."""
        with self._lock:
            if self._log is not None:
                self._log.close()
                self._broken = True
