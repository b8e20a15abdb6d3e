"""Is a log what its agent decided, did the money last, and how likely was each decision?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._files import path_of
from jaxbandits._tables import counted
from jaxbandits.apps.live import log as logs
from jaxbandits.apps.live.state import State, of_one_setting, select
from jaxbandits.core import arm_statistics, streams
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.core.checks import InputError, bad, whole_number
from jaxbandits.core.fingerprint import jit
from jaxbandits.core.protocol import Policy, View
from jaxbandits.core.pytrees import Pytree
from jaxbandits.policies import FixedSplit
from jaxbandits.policies.base import chooses_by_logits


def _segments(log: Any, policy: Policy | None) -> Iterator[tuple[Path, dict[str, Any], State, list[dict[str, Any]]]]:
    """Of each segment: its file, its first line, the state that it begins with, the events after it."""
    for part, (first, *events) in logs.segments(path_of("log", log)):
        yield part, first, State(of_one_setting(logs.policy_of(first["terms"]["policy"], policy)), first), events


def audit(log: Any, *, policy: Policy | None = None) -> dict[str, Any]:
    """Decide again what a log says was decided, segment by segment, as far as they are still there.

    Nothing is written, and the agent may go on meanwhile.

    Args:
        log: the file that the agent was given.
        policy: a policy of your own must be given; those of ``jb.policies`` are made again.

    Returns:
        ``segments``, ``decisions`` and ``outcomes`` that were checked; ``problems``, a line for each decision that is
        another one and for each line that is missing (the rest of the segment is not checked then), each segment that
        does not begin as the one before it ended, and each that is missing; how many segments ``before`` the first are
        not there; what was ``charged`` to each budget (of the last 1,000 periods) and by how much it was ``overspent``,
        by the begin of the period.

    Raises:
        InputError: no log, or a line that is no event.

    Example:
        >>> import os, tempfile, jax
        >>> import jaxbandits as jb
        >>> log = os.path.join(tempfile.mkdtemp(), "decisions.jsonl")
        >>> agent = jb.live.Agent(
        ...     jb.policies.OmegaUCB(), arms={"a": 1.0, "b": 1.0}, reward_bound=1.0, key=jax.random.key(0), log=log)
        >>> tickets = agent.choose(n=9)
        >>> found = jb.live.audit(log)
        >>> found["decisions"], found["problems"]
        (9, [])
    """
    told: dict[str, Any] = {"segments": 0, "decisions": 0, "outcomes": 0, "before": 0}
    problems: list[str] = []
    last, ended = None, None  # the number of the segment before, and the hash of the state after it, if that is known
    for part, first, state, events in _segments(log, policy):
        if last is None:
            told["before"] = state.segment - 1
        elif missing := state.segment - last - 1:
            problems.append(f"{part.name}: {counted(missing, 'segment')} before it not there")
        elif "change" not in first and ended not in (None, state.digest()):
            problems.append(f"{part.name}: it does not begin with the state in which the one before it ended")
        last, ended = state.segment, None
        told["segments"] += 1
        try:
            for line, event in enumerate(events, start=2):
                if (number := event.get("n")) != line:
                    raise InputError(f"log: line {line} says that it is line {number}; no line may be missing")
                state.replay(event, line, check=True)
                told["decisions"] += event["do"] == "choose"
                told["outcomes"] += event["do"] == "learn"
            ended = state.digest()
        except InputError as problem:
            problems.append(f"{part.name}: {problem}")
    over = {x.budget.name: state.by_period(x, x.overspent(state.now)) for x in state.accounts if state.round}
    told |= {"problems": problems, "overspent": {name: periods for name, periods in over.items() if periods}}
    return told | {"charged": {x.budget.name: state.by_period(x, x.charged) for x in state.accounts}}


def propensities(
    log: Any, *, policy: Policy | None = None, samples: int = 1000, seed: int = 0
) -> Iterator[dict[str, Any]]:
    """How likely each decision of a log was, given what was known then: what an estimate of another policy divides by.

    It is exact for policies that draw an arm by its logits (``SoftElim``, ``SoftIndex``, …) or by weights
    (``FixedSplit``). For others that draw, such as ``BudgetedThompson``, it is the share of ``samples`` further draws,
    with its standard error. Money, open requests and arms that were asked for count as they stood.

    Args:
        log: the file that the agent was given; segments that are not there are left out.
        policy: a policy of your own must be given; those of ``jb.policies`` are made again.
        samples: draws for each decision.
        seed: of these draws.

    Yields:
        For each request that was served: ``id`` and your ``request`` name (or None), to join it with the events and
        with data of your own; the ``arm``, its ``propensity``, and the ``error`` of that (0 where it is exact).

    Raises:
        InputError: the policy draws nothing but ties: its decisions have no propensity.

    Example:
        >>> import os, tempfile, jax
        >>> import jaxbandits as jb
        >>> log = os.path.join(tempfile.mkdtemp(), "decisions.jsonl")
        >>> agent = jb.live.Agent(
        ...     jb.policies.SoftElim(), arms={"a": 1.0, "b": 1.0}, reward_bound=1.0, key=jax.random.key(0), log=log)
        >>> agent.learn(agent.choose(request="mine"), reward=1.0, cost=0.5)
        >>> next(jb.live.propensities(log))
        {'id': 1, 'request': 'mine', 'arm': 'a', 'propensity': 0.5, 'error': 0.0}
    """
    whole_number("samples", samples, 2)
    words = jax.random.key_data(jax.random.split(jax.random.key(seed), samples))
    for _, _, state, events in _segments(log, policy):
        draws = False  # not known yet
        for line, event in enumerate(events, start=2):
            if event["do"] == "choose" and event["arm"] is not None:
                learnt, _, view, open_ = state.decision(event)  # type: ignore[misc]
                draws = draws or _draws(state.policy, learnt, view, open_)
                if not draws:
                    raise bad("log", state.terms["policy"], "by a policy that draws more than the order of ties")
                place = state.places[event["arm"]]
                if chooses_by_logits(state.policy) or isinstance(state.policy, FixedSplit):
                    share, error = float(_exact(state.policy, learnt, view, open_)[place]), 0.0
                else:
                    share = float((np.asarray(_drawn(state.policy, learnt, words, view, open_)) == place).mean())
                    error = (share * (1 - share) / samples) ** 0.5
                row = {"id": event["id"], "request": event.get("request"), "arm": event["arm"]}
                yield row | {"propensity": share, "error": error}
            state.replay(event, line)


def _draws(policy: Any, learnt: Pytree, view: View, open: np.ndarray) -> bool:
    """Does a decision draw anything but the order of ties? All draws have a role, and come from one function."""
    roles, words = set(), streams.policy_words

    def noted(key: jax.Array, round: jax.Array, role: int, arm: Any = 0) -> jax.Array:
        roles.add(int(role))
        return words(key, round, role, arm)

    streams.policy_words = noted
    try:
        jax.eval_shape(lambda *x: policy.select_while_open(*x), learnt, jax.random.key(0), view, open)
    finally:
        streams.policy_words = words
    return bool(roles - {int(streams.Role.TIE)})


@jit
def _exact(policy: Any, learnt: Pytree, view: View, open: jax.Array) -> jax.Array:
    known = arm_statistics.counted(learnt, open) if isinstance(learnt, ArmStatistics) else learnt
    return jnp.exp(policy.log_probabilities(known, view))


@jit
def _drawn(policy: Policy, learnt: Pytree, words: jax.Array, view: View, open: jax.Array) -> jax.Array:
    return jax.vmap(lambda word: select(policy, learnt, word, view, open)[1])(words)
