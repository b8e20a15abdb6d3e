"""One agent for many processes, and its numbers for Prometheus."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

from jaxbandits.apps.live.agent import Agent
from jaxbandits.apps.live.errors import Settled
from jaxbandits.core.checks import InputError, bad, positive_number

_CALLS = (
    *("choose", "learn", "cancel", "expire", "add_arm", "remove_arm", "change"),
    *("left", "charged", "renews_at", "open", "statistics", "resume"),
)
_GROWS = ("requests", "turned_away", "cancelled", "late", "pulls", "lost", "above")  # counters of Prometheus
_GONE = (ConnectionError, EOFError, FileNotFoundError)  # what is raised where nobody answers
_PAUSE = 0.05  # seconds until it is tried again


def serve(agent: Agent, address: Any, *, key: bytes) -> None:
    """Let other processes ask this agent, until this one ends.

    Args:
        agent: made in this process, with a log if it is to survive this process.
        address: the path of a socket, or (host, port).
        key: a secret. Whoever has it may run code in this process: it is for processes of one service, not for a
            network of strangers.

    Raises:
        InputError: another process serves there.

    Example:
        >>> import os, tempfile, threading, jax
        >>> import jaxbandits as jb
        >>> agent = jb.live.Agent(jb.policies.OmegaUCB(), arms={"a": 1.0}, reward_bound=1.0, key=jax.random.key(0))
        >>> address = os.path.join(tempfile.mkdtemp(), "agent")
        >>> threading.Thread(target=jb.live.serve, args=(agent, address), kwargs={"key": b"1"}, daemon=True).start()
        >>> elsewhere = jb.live.connect(address, key=b"1")          # in another process
        >>> ticket = elsewhere.choose()
        >>> elsewhere.learn(ticket, reward=1.0, cost=0.5)
        >>> agent.statistics()["arms"]["a"]["pulls"]
        1
    """
    if not isinstance(address, tuple) and Path(address).is_socket():
        with socket.socket(socket.AF_UNIX) as other:
            if not other.connect_ex(os.fspath(address)):
                raise bad("address", address, "one that no other agent serves")
        os.unlink(address)  # a process that was killed left it there
    gc.collect()
    gc.freeze()  # what jax made until now is no garbage, and need not be looked through again
    with Listener(address, backlog=128, authkey=key) as listener:
        while True:
            try:
                caller = listener.accept()
            except Exception:  # who has another key, or is gone already; or no more connections can be open
                time.sleep(_PAUSE)
                continue
            threading.Thread(target=_answer, args=(agent, caller), daemon=True).start()


def _answer(agent: Agent, caller: Connection) -> None:
    with caller, contextlib.suppress(*_GONE):
        while True:
            name, args, given = caller.recv()
            try:
                told = True, getattr(agent, name)(*args, **given) if name in _CALLS else None
            except Exception as problem:
                told = False, problem
            caller.send(told)


class _Elsewhere:
    """Calls an agent in another process; a connection for each thread."""

    def __init__(self, address: Any, key: bytes, patience: float):
        self._address, self._key, self._patience = address, key, patience
        self._mine = threading.local()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _CALLS:
            raise AttributeError(f"an agent of another process has no {name}; it has {', '.join(_CALLS)}")
        return functools.partial(self._call, name)

    def _call(self, name: str, *args: Any, **given: Any) -> Any:
        until, again = time.monotonic() + self._patience, False
        while True:
            try:
                if getattr(self._mine, "process", None) != os.getpid():  # a fork must not speak on its parent's line
                    self._mine.line = Client(self._address, authkey=self._key)
                    self._mine.process = os.getpid()
                self._mine.line.send((name, args, given))
                fine, told = self._mine.line.recv()
                break
            except _GONE:
                self._mine.process = None
                if time.monotonic() > until:
                    raise
                again = True
                time.sleep(_PAUSE)
            except BaseException:  # the answer would be taken for that of the next question
                self._mine.process = None
                raise
        if fine or (again and isinstance(told, Settled)):  # it was heard the first time, and only the answer was lost
            return told if fine else None
        raise told


def connect(address: Any, *, key: bytes, patience: float = 10.0) -> Any:
    """An agent that another process :func:`serve`\\ s: the same calls, from any thread, also after a fork.

    A call whose answer is lost is made again, so a process that is killed and started anew is waited for. What was
    learnt is learnt once. A ticket whose answer was lost stays open until ``expire``.

    Args:
        address, key: as they were given to :func:`serve`.
        patience: seconds to wait for a process that does not answer.

    Raises:
        ConnectionError, EOFError, FileNotFoundError: nobody answered for so long.
        multiprocessing.AuthenticationError: another key.

    Example:
        >>> import jaxbandits as jb
        >>> jb.live.connect("/tmp/nobody", key=b"1", patience=0.01).choose()
        Traceback (most recent call last):
        FileNotFoundError: [Errno 2] No such file or directory
    """
    return _Elsewhere(address, key, positive_number("patience", patience))


def prometheus(agent: Any, registry: Any = None) -> None:
    """Let Prometheus read :meth:`Agent.statistics`: ``jaxbandits_requests_total``, ``jaxbandits_arm_cost{arm="…"}``, …

    What only grows is a counter (``…_total``), all else a gauge.

    Args:
        agent: an agent, or what :func:`connect` gave.
        registry: of ``prometheus_client``; default its own.

    Raises:
        InputError: ``prometheus_client`` is not installed.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> agent = jb.live.Agent(jb.policies.OmegaUCB(), arms={"a": 1.0}, reward_bound=1.0, key=jax.random.key(0))
        >>> jb.live.prometheus(agent)                               # doctest: +SKIP
        >>> prometheus_client.start_http_server(8000)               # doctest: +SKIP
    """
    try:
        from prometheus_client import REGISTRY
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    except ImportError:
        raise InputError("prometheus: it is not installed: pip install 'jaxbandits[prometheus]'") from None

    class Collector:
        def describe(self) -> list[Any]:
            return []  # nothing is asked of the agent before the first reading

        def collect(self) -> Iterator[Any]:
            told = agent.statistics()
            kinds = {"arm": told.pop("arms"), "budget": told.pop("budgets"), "": {"": told}}
            for kind, rows in kinds.items():
                for field in next(iter(rows.values()), ()):
                    made = CounterMetricFamily if field in _GROWS else GaugeMetricFamily
                    name = "_".join(filter(None, ("jaxbandits", kind, field)))
                    family = made(name, f"see {field} of Agent.statistics", labels=[kind] if kind else [])
                    for row_name, row in rows.items():
                        value = sum(row[field].values()) if isinstance(row[field], dict) else row[field]
                        if value is not None:
                            family.add_metric([row_name] if kind else [], float(value))
                    yield family

    (REGISTRY if registry is None else registry).register(Collector())
