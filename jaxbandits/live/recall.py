"""A service from its file, and from its log: what happened is played again, and must come out the same."""

from __future__ import annotations

import json
from typing import Any

import jax
import numpy as np

from jaxbandits._files import npz
from jaxbandits._files.files import open_regular, path_of
from jaxbandits._files.result_file import write_arrays
from jaxbandits.core import ticks
from jaxbandits.core.errors import InputError, shown
from jaxbandits.core.printable import brief
from jaxbandits.core.protocol import Policy
from jaxbandits.live.identity import versions
from jaxbandits.live.log import FORMAT, mend, read
from jaxbandits.live.service import Service
from jaxbandits.live.terms import money_ticks, plain_terms, reward_ticks, terms_from

_KIND = "jaxbandits.live.Agent"


def save(path: Any, service: Service, events: int) -> None:
    """Everything in one ``.npz`` file."""
    place = path_of("path", path)
    about = {"format": FORMAT, "kind": _KIND, "terms": plain_terms(service.terms)}
    about |= {"by": versions(), "plain": service.plain(), "events": events}
    leaves = {f"leaf{i}": np.asarray(x) for i, x in enumerate(jax.tree.leaves(service.known))}
    write_arrays(place, {"about": np.array(json.dumps(about))} | leaves, np.savez)


def load(path: Any, policy: Policy | None) -> tuple[Service, int]:
    """The service, and how many events of its log are in it."""
    place = path_of("path", path)
    try:
        with open_regular(place) as file:
            arrays = npz.read(file, first="about")
            about = json.loads(npz.text_of(next(arrays)[1], "about"))
            if not isinstance(about, dict) or (about.get("kind"), about.get("format")) != (
                _KIND,
                FORMAT,
            ):
                raise npz.NotArrays(f"holds no agent of format {FORMAT}")
            service = Service(terms_from(about["terms"], policy))
            named = dict(arrays)
            service.restore(about["plain"], [named[f"leaf{i}"] for i in range(len(named))])
            return service, int(about["events"])
    except InputError:
        raise
    except OSError as problem:
        reason = problem.strerror or str(problem)
    except Exception as problem:  # a stranger's file: whatever is wrong with it
        reason = f"it {problem}" if isinstance(problem, npz.NotArrays) else "it is broken"
    raise InputError(f"path: {shown(str(place))} given; it must be a saved agent ({brief(reason)})")


def first(log: Any, policy: Policy | None) -> tuple[Service, int]:
    """The service at the beginning of its log."""
    event = _begin(log)
    service = Service(terms_from(event["terms"], policy))
    service.begin(event["arms"])
    return service, 1


def _begin(log: Any) -> dict[str, Any]:
    event = next(read(log), None)
    if event is None or event["do"] != "begin" or event.get("format") != FORMAT:
        raise InputError(f"log: {shown(str(log))} given; it must begin as a log of format {FORMAT} does")
    return event


def resume(service: Service, log: Any, arms: dict[str, float]) -> int:
    """:func:`replay` for a service that has just begun with these ``arms``.

    Raises:
        InputError: a log that began with others, or in other terms.
    """
    if list(_begin(log)["arms"].items()) != list(arms.items()):
        raise InputError(f"log: {shown(str(log))} given; it must be the log of this agent: it began with other arms")
    return replay(service, log, 1)


def replay(service: Service, log: Any, events: int) -> int:
    """Play what came after the first ``events`` lines; how many lines there are. A torn last line is cut off.

    Raises:
        InputError: a log of another agent, or of fewer lines; a decision that comes out otherwise.
    """
    mend(log)
    number, by, mine = 0, {}, json.loads(json.dumps(plain_terms(service.terms)))
    for number, event in enumerate(read(log), start=1):
        if number == 1:
            by = event.get("by", {})
            if (found := event.get("terms")) != mine:
                others = ", ".join(
                    name for name in mine if not isinstance(found, dict) or found.get(name) != mine[name]
                )
                raise InputError(
                    f"log: {shown(str(log))} given; it must be the log of this agent: its terms are others ({others})"
                )
        if number > events:
            play(service, event, number, by)
    if number < events:
        raise InputError(f"log: {number} lines given; it must be the log of this agent, which wrote {events}")
    return number


def play(service: Service, event: dict[str, Any], number: int, by: dict[str, str] | None = None) -> None:
    """Play one event, line ``number`` of a log that was written ``by`` these versions."""
    do, terms = event["do"], service.terms
    if do == "choose":
        request = service.choose(event["t"], event.get("among"))
        arm = None if request is None else service.names[request.arm]
        if (service.round, arm) != (event["id"], event["arm"]):
            raise InputError(
                f"log: line {number} says {shown(event['arm'])} for request {event['id']}, and {shown(arm)} comes out; "
                f"it must be played by what wrote it, {shown(by)}, on the same kind of processor"
            )
    elif do == "learn":
        held = service.requests[event["id"]].held * terms.unit / ticks.ONE
        reward = None if event["reward"] is None else reward_ticks(terms, event["reward"])
        service.learn(event["id"], reward, money_ticks(terms, "cost", event["cost"], held))
    elif do == "cancel":
        service.cancel(event["id"])
    elif do == "expire":
        service.expire(event["ids"])
    elif do == "add_arm":
        service.add_arm(event["name"], event["bound"])
    elif do == "remove_arm":
        service.remove_arm(event["name"])
    else:
        raise InputError(f"log: line {number} says {shown(do)}; it must be an event of format {FORMAT}")
