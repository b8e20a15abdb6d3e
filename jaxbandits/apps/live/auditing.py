"""Reading an agent's file: its events, an audit, the probability of each decision."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.apps.live.ledger import ServiceLedger, check_format
from jaxbandits.apps.live.program import of_one_setting
from jaxbandits.apps.live.terms import in_currency, path_of
from jaxbandits.core import ArmStatistics, InputError, Policy, arm_statistics, bad, streams
from jaxbandits.policies import FixedSplit
from jaxbandits.policies.base import chooses_by_logits
from jaxbandits.tools import quoted, whole_number


@contextlib.contextmanager
def _reading(file: Any, policy: Policy | None = None) -> Iterator[ServiceLedger]:
    """The tables of a file as they stand at one moment, whoever writes it."""
    place = path_of("file", file)
    try:
        uri = f"{place.resolve().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as db:
            db.isolation_level = None
            check_format(db)
            db.execute("BEGIN")
            yield ServiceLedger(db, None if policy is None else of_one_setting(policy))
    except (sqlite3.Error, OSError) as problem:
        raise bad("file", str(place), f"a file of an agent ({problem})") from None


def events(file: Any) -> Iterator[dict[str, Any]]:
    """All events stored in an agent's file, in order, even while agents write to it.

    Each is a dict: its number ``n``, what happened (``do``: ``choose``, ``learn``, ``fail``,
    ``cancel``, ``expire``, ``forget``, ``clock`` or ``terms``) at ``t``, and the ``id`` of the
    request. A ``choose`` has the ``arm``, None if none serves, the money ``held``, and the
    conditions of the call; outcomes have ``reward`` and ``cost``. A ``context`` is as it was given.

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
    """(a ledger in memory as it was before an event, the event); then it happens again there."""
    ledger.load()
    copy = ServiceLedger(sqlite3.connect(":memory:", isolation_level=None), ledger.policy)
    states = [tuple(row) for row in ledger.rows("SELECT event, text FROM states ORDER BY event")]
    last = ledger.service["event"]
    until = [*states[1:], (last, ledger.state())]
    part = "SELECT * FROM events WHERE n > ? AND n <= ? ORDER BY n"
    for (n, text), (end, state_there) in zip(states, until, strict=True):
        copy.restore(text)
        for event in ledger.db.execute(part, (n, end)):
            if event["n"] != n + 1:
                problems.append(f"events {n + 1} to {event['n'] - 1} are missing")
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
                    f"event {n}: {quoted(names[0])} for request {event['id']}, recomputed as {quoted(names[1])}; it "
                    "must be audited by the version that wrote it, on the same kind of processor"
                )
                break
        else:
            if copy.state() != state_there:
                problems.append(f"event {n}: the state after it differs")


def audit(file: Any, *, policy: Policy | None = None) -> dict[str, Any]:
    """Recompute all decisions in a file, from the first stored state on, and report differences.

    Args:
        file: that of an agent (else an InputError), which may go on meanwhile; nothing is written.
        policy: needed for a class of your own.

    Returns:
        The numbers of ``decisions`` and ``outcomes`` that were checked; ``problems``, a line for
        each decision, event or state that differs or is missing (it goes on with the next state);
        how many events ``before`` the first state are not kept; what each budget was ``charged``
        and, if so, by how much it was ``overspent``, by the start of the period.

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
    return report | {"problems": problems, "charged": paid, "overspent": over}


def propensities(
    file: Any, *, policy: Policy | None = None, samples: int = 1000, seed: int = 0
) -> Iterator[dict[str, Any]]:
    """The probability of each decision when it was made, for off-policy estimates.

    It is exact for policies that draw an arm by its logits (``SoftElim``, ``SoftIndex``, …) or by
    weights (``FixedSplit``). For others, such as ``BudgetedThompson``, it is the share of
    ``samples`` further draws, with its standard error; for a policy that draws nothing but ties it
    is 1. Money, open requests and available arms are those of the decision.

    Args:
        file, policy, samples, seed: as of :func:`audit`; draws for each decision.

    Yields:
        For each request that was served: its ``id``, your ``request`` name (or None), the ``arm``,
        its ``propensity``, and the ``error`` of that (0 where exact).

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
    exact, drawn = _probabilities(samples, seed)
    with _reading(file, policy) as ledger:
        for copy, event in _replayed(ledger, []):
            more, setup = json.loads(event["more"] or "{}"), copy.setup
            if event["do"] != "choose" or event["arm"] is None:
                continue
            conditions = more.get("available"), more.get("caller"), event["context"]
            words = copy.situation(event["t"], *conditions)[0]
            if words is None:  # the file is not what its agent decided: an audit says where
                continue
            is_exact = chooses_by_logits(setup.policy) or isinstance(setup.policy, FixedSplit)
            learnt = setup.program.state(copy.service["learnt"])
            situation = setup.program.situations.split(np.frombuffer(words, np.int32))
            decision, k = (setup.policy, learnt, *situation), event["arm"]
            if is_exact:
                share, error = float(exact(*decision)[k]), 0.0
            else:
                share = float((np.asarray(drawn(*decision)) == k).mean())
                error = (share * (1 - share) / samples) ** 0.5
            row = {"id": event["id"], "request": more.get("request"), "arm": setup.names[k]}
            yield row | {"propensity": share, "error": error}


def _probabilities(samples: int, seed: int) -> tuple[Any, Any]:
    """Functions of a decision: how likely each arm is; the arms of further draws.

    Compiled for each caller anew: the code of a user's class may be another one by now.
    """
    words = jax.random.key_data(jax.random.split(jax.random.key(seed), samples))

    def exact(policy: Any, learnt: Any, view: Any, open: jax.Array) -> jax.Array:
        if isinstance(learnt, ArmStatistics):
            learnt = arm_statistics.counted(learnt, open)
        return jnp.exp(policy.log_probabilities(learnt, view))

    def drawn(policy: Policy, learnt: Any, view: Any, open: jax.Array) -> jax.Array:
        def sample(word: jax.Array) -> jax.Array:
            return policy.select_while_open(learnt, streams.typed(word), view, open)[1]

        return jax.vmap(sample)(words)

    return jax.jit(exact), jax.jit(drawn)
