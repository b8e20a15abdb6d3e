"""Reading an agent's file: its events, an audit of its decisions and money, how likely each
decision was.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.apps.live.ledger import ServiceLedger, format_of, place_of
from jaxbandits.apps.live.program import of_one_setting
from jaxbandits.apps.live.terms import in_currency, path_of
from jaxbandits.core import arm_statistics, streams
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.core.checks import InputError, bad, quoted, whole_number
from jaxbandits.core.fingerprint import jit
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import Pytree
from jaxbandits.policies import FixedSplit
from jaxbandits.policies.base import chooses_by_logits


@contextlib.contextmanager
def _reading(file: Any, policy: Policy | None = None) -> Iterator[ServiceLedger]:
    """The tables of a file as they stand at one moment, whoever writes it."""
    place = path_of("file", file)
    try:
        with contextlib.ExitStack() as stack:
            resolved = place.resolve()
            place_of(resolved)
            try:
                db = stack.enter_context(_connected(resolved))
            except sqlite3.OperationalError as problem:
                if problem.sqlite_errorcode != sqlite3.SQLITE_CANTOPEN:
                    raise
                # SQLite would put an index of the log beside the file, and may not: read a copy
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                for part in (resolved, resolved.with_name(f"{resolved.name}-wal")):
                    if part.exists():
                        shutil.copyfile(part, folder / part.name)
                db = stack.enter_context(_connected(folder / resolved.name))
            db.execute("BEGIN")
            yield ServiceLedger(db, None if policy is None else of_one_setting(policy))
    except (sqlite3.Error, OSError) as problem:
        raise bad("file", str(place), f"a file of an agent ({problem})") from None


@contextlib.contextmanager
def _connected(place: Path) -> Iterator[sqlite3.Connection]:
    """A connection that only reads."""
    with contextlib.closing(sqlite3.connect(f"{place.as_uri()}?mode=ro", uri=True)) as db:
        db.isolation_level = None
        format_of(db)
        yield db


def events(file: Any) -> Iterator[dict[str, Any]]:
    """All events of a file that are kept, in order, whoever writes it now.

    Each is a dict: its number ``n``, what happened (``do``: ``choose``, ``learn``, ``fail``,
    ``cancel``, ``expire``, ``forget``, ``clock`` or ``terms``) at ``t``, and the ``id`` of the
    request. A ``choose`` has the ``arm``, None if none serves, the money ``held``, and the
    conditions of the call; outcomes have ``reward`` and ``cost``. A ``context`` is as it was given.

    Raises:
        InputError: ``file`` is not that of an agent.

    Example:
        >>> import os, tempfile, jax
        >>> import jaxbandits as jb
        >>> file = os.path.join(tempfile.mkdtemp(), "agent.db")
        >>> agent = jb.live.Agent(
        ...     jb.policies.OmegaUCB(), arms={"a": 1.0}, reward_bound=1.0, key=jax.random.key(0), file=file)
        >>> agent.learn(agent.choose(request="mine"), reward=1.0, cost=0.5)
        >>> [(event["do"], event["arm"], event.get("request")) for event in jb.live.events(file)]
        [('choose', 'a', 'mine'), ('learn', 'a', None)]
    """
    with _reading(file) as ledger:
        names = dict(map(tuple, ledger.rows("SELECT id, name FROM arms")))
        for row in ledger.db.execute("SELECT * FROM events ORDER BY n"):
            do, paid = row["do"], None if row["money"] is None else in_currency(row["money"])
            event = {name: row[name] for name in ("n", "do", "t", "id")}
            if do not in ("clock", "terms", "forget"):
                event["arm"] = names.get(row["arm"])
                is_held = do in ("choose", "expire")
                event |= {"held": paid} if is_held else {"cost": paid, "reward": row["reward"]}
            if row["context"] is not None:
                event["context"] = np.frombuffer(row["context"], np.float32).tolist()
            yield event | json.loads(row["more"] or "{}")


def _replayed(ledger: ServiceLedger, problems: list[str]) -> Iterator[tuple[ServiceLedger, Any]]:
    """(a ledger in memory as it was before the event, the event) for each; then the event happens
    again there.
    """
    ledger.load()
    copy = ServiceLedger(sqlite3.connect(":memory:", isolation_level=None), ledger.policy)
    states = [tuple(row) for row in ledger.rows("SELECT event, text FROM states ORDER BY event")]
    last = ledger.service["event"]
    for (first, text), (until, ends) in zip(
        states, [*states[1:], (last, ledger.state())], strict=True
    ):
        copy.restore(text)
        n = first
        for event in ledger.db.execute(
            "SELECT * FROM events WHERE n > ? AND n <= ? ORDER BY n", (first, until)
        ):
            if event["n"] != n + 1:
                problems.append(f"events {n + 1} to {event['n'] - 1} are not there")
                break
            n = event["n"]
            if event["do"] == "terms":  # the state after it was kept, and comes next
                break
            yield copy, event
            try:
                request = copy.replay(event)
            except InputError as problem:
                problems.append(f"event {n}: {problem}")
                break
            arm, held = (request["arm"], request["held"]) if request else (None, None)
            if event["do"] == "choose" and (arm, held) != (event["arm"], event["money"]):
                names = [None if k is None else copy.setup.names[k] for k in (event["arm"], arm)]
                problems.append(
                    f"event {n}: {quoted(names[0])} for request {event['id']}, and {quoted(names[1])} comes out; it "
                    "must be played by the version that wrote it, on the same kind of processor"
                )
                break
        else:
            if copy.state() != ends:
                problems.append(f"event {n}: the state after it is another one")


def audit(file: Any, *, policy: Policy | None = None) -> dict[str, Any]:
    """Decide again what a file says was decided, from the first state on that is kept.

    Args:
        file: the file of an agent, which may go on meanwhile; nothing is written.
        policy: needed for a class of your own; those of ``jb.policies`` are made again.

    Returns:
        The numbers of ``decisions`` and ``outcomes`` that were checked; ``problems``, a line for
        each decision, event or state that differs or is missing (it goes on with the next state);
        how many events ``before`` the first state are not kept; what each budget was ``charged``
        and by how much it was ``overspent``, by the begin of the period.

    Raises:
        InputError: ``file`` is not that of an agent.

    Example:
        >>> import os, tempfile, jax
        >>> import jaxbandits as jb
        >>> file = os.path.join(tempfile.mkdtemp(), "agent.db")
        >>> agent = jb.live.Agent(
        ...     jb.policies.OmegaUCB(), arms={"a": 1.0, "b": 1.0}, reward_bound=1.0, key=jax.random.key(0), file=file)
        >>> tickets = agent.choose(n=9)
        >>> report = jb.live.audit(file)
        >>> report["decisions"], report["problems"]
        (9, [])
    """
    problems: list[str] = []
    with _reading(file, policy) as ledger:
        (before,) = ledger.row("SELECT min(event) FROM states")
        replayed = [event["do"] for _, event in _replayed(ledger, problems)]
        paid, over = ledger.by_period()
    report = {"decisions": replayed.count("choose"), "before": before}
    report["outcomes"] = replayed.count("learn") + replayed.count("fail")
    over = {name: row for name, row in over.items() if row}
    return report | {"problems": problems, "charged": paid, "overspent": over}


def propensities(
    file: Any, *, policy: Policy | None = None, samples: int = 1000, seed: int = 0
) -> Iterator[dict[str, Any]]:
    """How likely each decision was when it was made: what an estimate of another policy's value
    divides by.

    It is exact for policies that draw an arm by its logits (``SoftElim``, ``SoftIndex``, …) or by
    weights (``FixedSplit``). For others, such as ``BudgetedThompson``, it is the share of
    ``samples`` further draws, with its standard error; for a policy that draws nothing but ties it
    is 1. Money, open requests and available arms are those of the decision.

    Args:
        file, policy: as of :func:`audit`; events that are not kept are left out.
        samples, seed: draws for each decision.

    Yields:
        For each request that was served: its ``id`` and your ``request`` name (or None), by which
        it is joined with the events and with your data; the ``arm``, its ``propensity``, and the
        ``error`` of that (0 where exact).

    Example:
        >>> import os, tempfile, jax
        >>> import jaxbandits as jb
        >>> file = os.path.join(tempfile.mkdtemp(), "agent.db")
        >>> agent = jb.live.Agent(
        ...     jb.policies.SoftElim(), arms={"a": 1.0, "b": 1.0}, reward_bound=1.0, key=jax.random.key(0), file=file)
        >>> agent.learn(agent.choose(request="mine"), reward=1.0, cost=0.5)
        >>> next(jb.live.propensities(file))
        {'id': 1, 'request': 'mine', 'arm': 'a', 'propensity': 0.5, 'error': 0.0}
    """
    whole_number("samples", samples, 2)
    words = jax.random.key_data(jax.random.split(jax.random.key(seed), samples))
    with _reading(file, policy) as ledger:
        for copy, event in _replayed(ledger, []):
            more, setup = json.loads(event["more"] or "{}"), copy.setup
            if event["do"] != "choose" or event["arm"] is None:
                continue
            situation: Any = copy.situation(
                event["t"], more.get("available"), more.get("caller"), event["context"]
            )[0]
            if situation is None:  # the file is not what its agent decided: an audit says where
                continue
            learnt, k = setup.program.state(copy.service["learnt"]), event["arm"]
            if chooses_by_logits(setup.policy) or isinstance(setup.policy, FixedSplit):
                share, error = float(_arm_probabilities(setup.policy, learnt, *situation)[k]), 0.0
            else:
                share = float(
                    (np.asarray(_sampled_arms(setup.policy, learnt, words, *situation)) == k).mean()
                )
                error = (share * (1 - share) / samples) ** 0.5
            row = {"id": event["id"], "request": more.get("request"), "arm": setup.names[k]}
            yield row | {"propensity": share, "error": error}


@jit
def _arm_probabilities(policy: Any, learnt: Pytree, view: Any, open: jax.Array) -> jax.Array:
    if isinstance(learnt, ArmStatistics):
        learnt = arm_statistics.counted(learnt, open)
    return jnp.exp(policy.log_probabilities(learnt, view))


@jit
def _sampled_arms(
    policy: Policy, learnt: Pytree, words: jax.Array, view: Any, open: jax.Array
) -> jax.Array:
    def sample(word: jax.Array) -> jax.Array:
        return policy.select_while_open(learnt, streams.typed(word), view, open)[1]

    return jax.vmap(sample)(words)
