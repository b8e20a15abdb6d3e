"""Is a log what its agent decided, and did the money last?"""

from __future__ import annotations

import time
from typing import Any

from jaxbandits._files import path_of
from jaxbandits._tables import counted
from jaxbandits.core.checks import InputError
from jaxbandits.core.protocol import Policy
from jaxbandits.live import log as logs
from jaxbandits.live.agent import Agent


def audit(log: Any, *, policy: Policy | None = None) -> dict[str, Any]:
    """Decide again what a log says was decided, segment by segment, as far as they are still there.

    Nothing is written, and the agent may go on meanwhile.

    Args:
        log: the file that the agent was given.
        policy: a policy of your own must be given; those of ``jb.policies`` are made again.

    Returns:
        ``segments``, ``decisions`` and ``outcomes`` that were checked; ``problems``, a line for each decision that is
        another one (the rest of its segment is not checked then), each segment that does not begin as the one before
        it ended, and each that is missing; how many segments ``before`` the first are not there; what was ``charged``
        to each budget (of the last 1,000 periods) and by how much it was ``overspent``, by the begin of the period.

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
    told: dict[str, Any] = {"segments": 0, "decisions": 0, "outcomes": 0, "problems": [], "before": 0}
    told |= {"charged": {}, "overspent": {}}
    ended: tuple[int, str | None] | None = None  # the last segment's number and state; None: it is not known
    for part in logs.segments(path_of("log", log)):
        first, *events = logs.read(part)
        agent = Agent.__new__(Agent)
        agent._begin(time.time, None, False)
        text = first["terms"]["policy"]
        agent._take(logs.policy_of(text, policy if policy and logs.written(policy) == text else None), first)
        number, state = first["segment"], agent.digest()
        if ended is None:
            told["before"] = number - 1
        elif number > ended[0] + 1:
            told["problems"].append(f"{part.name}: {counted(number - ended[0] - 1, 'segment')} before it not there")
        elif ended[1] not in (None, state):
            told["problems"].append(f"{part.name}: it does not begin with the state in which the one before it ended")
        known = True
        for line, event in enumerate(events, start=2):
            if event["do"] == "change":  # the next segment has the terms after it
                known = False
                break
            try:
                agent._play(event, line, check=True)
            except InputError as problem:
                told["problems"].append(f"{part.name}: {problem}")
                known = False
                break
            told["decisions"] += event["do"] == "choose"
            told["outcomes"] += event["do"] == "learn"
        told["segments"] += 1
        ended = number, agent.digest() if known else None
        budgets, told["charged"] = agent.statistics()["budgets"] if agent._accounts else {}, agent.charged()
        told["overspent"] = {name: x["overspent"] for name, x in budgets.items() if x["overspent"]}
    return told
