"""What is kept on disk: logs, a line of JSON for each event, and states, as ``.npz`` files of plain arrays."""

from __future__ import annotations

import ast
import base64
import dataclasses
import gzip
import io
import json
import logging
import os
import re
import weakref
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxbandits import policies
from jaxbandits._files import path_of, read_arrays, reason_of, save_arrays, write_whole
from jaxbandits.core.checks import InputError, bad, shown
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import Pytree

try:
    import fcntl
except ImportError:  # Windows: two agents are not kept from writing one log
    fcntl = None  # type: ignore[assignment]

_LOGGER = logging.getLogger("jaxbandits.live")
FORMAT, _STATES = 3, 2  # of logs and saved agents; of saved states


def versions() -> dict[str, str]:
    """What made a file."""
    from jaxbandits import __version__

    return {"jaxbandits": __version__, "jax": jax.__version__}


# --- Whose state it is: what was learnt by one policy is not taken for what another one learnt.


def written(policy: Policy, values: bool = True) -> str:
    """Class, parameters as float32 or int32 plays them, static fields: ``InFlight(policy=OmegaUCB(rho=0.3))``.

    Without ``values`` it is the kind of its state, which parameters do not change: ``InFlight(policy=OmegaUCB(rho))``.
    """
    parts = []
    for field in dataclasses.fields(policy):  # type: ignore[arg-type]
        value = getattr(policy, field.name)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            parts.append(f"{field.name}={written(value, values)}")  # type: ignore[arg-type]
        elif field.metadata.get("static"):
            text = repr(value)  # of a function it holds an address, which is another one in every process
            text = getattr(value, "__qualname__", type(value).__qualname__) if " at 0x" in text else text
            parts.append(f"{field.name}={text}")
        elif value is not None and not values:
            parts.append(field.name)
        elif value is not None:
            played = np.asarray(value, np.int32 if field.metadata.get("integer") else np.float32)
            parts.append(f"{field.name}={_digits(played)}")
    return f"{type(policy).__qualname__}({', '.join(parts)})"


def _digits(x: np.ndarray) -> str:
    """As few digits as tell float32 numbers apart."""
    return f"[{', '.join(map(_digits, x))}]" if x.ndim else str(x)


def policy_of(text: str, given: Policy | None) -> Policy:
    """The policy that was :func:`written` so: the one that is given, or one of this package, made again."""
    if given is None:
        try:
            given = _made_again(ast.parse(text, mode="eval").body)
        except (ValueError, TypeError, AttributeError, SyntaxError):
            raise bad("policy", None, f"given: {text} cannot be made again from jb.policies") from None
    refuse_other(given, text)
    return given


def _made_again(node: Any) -> Any:
    if not isinstance(node, ast.Call):
        return ast.literal_eval(node)
    kind = getattr(policies, node.func.id)  # type: ignore[attr-defined]
    if not issubclass(kind, (Policy, policies.Detector)):
        raise TypeError("no policy")
    return kind(**{str(word.arg): _made_again(word.value) for word in node.keywords})


def refuse_other(given: Policy | None, found: str | None) -> None:
    """Raise :class:`InputError` unless the policy that is ``given`` is the one that a file was ``found`` to be of."""
    mine = None if given is None else written(given)
    if mine != found:
        may_be = f"it must be {found}, whose state the file holds"
        if found is None:
            may_be = "the file does not say whose state it holds: save(policy=…)"
        raise InputError(f"policy: {mine} given; {may_be}")


# --- The log: a line of JSON for each event, behind a first line that holds the whole state before them
#
# That line and what follows is a segment. When the events outgrow it, the segment is put aside, compressed, and a new
# one begins with the state of that moment. So going on needs the last segment only; all together are the history.

_LEAST = 1 << 19  # bytes of events in a segment: half a second to play again
_TIMES = 4  # and so many times its first line, so that the states do not fill the disk
_ASIDE = re.compile(r"\.(\d{6,})\.gz")
_OPEN: weakref.WeakSet[Log] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):  # a child would keep the lock of a log when its parent is dead
    os.register_at_fork(after_in_child=lambda: [*map(Log.close, _OPEN)])


class Log:
    """The last segment of a log, to which this process alone adds whole lines.

    A line is in the hands of the system when :meth:`write` returns. A process that is killed loses nothing that was
    written; a machine that loses power may, unless ``sync``.
    """

    def __init__(self, place: Path, sync: bool):
        self.place, self._sync = place, sync
        self._file: io.FileIO | None = None
        self._room = 0, 0  # bytes of events in this segment, and how many there may be
        try:
            self._guard = open(f"{place}.lock", "ab")  # noqa: SIM115 (as long as the agent lives)
        except OSError as problem:
            raise bad("log", str(place), f"a file that can be written ({problem.strerror})") from None
        try:
            if fcntl is not None:
                fcntl.flock(self._guard, fcntl.LOCK_EX | fcntl.LOCK_NB)  # it ends with the process, however that ends
        except OSError:
            self._guard.close()
            raise bad("log", str(place), "a log that no other agent writes") from None
        _OPEN.add(self)

    def begin(self, first: dict[str, Any]) -> bool:
        """A new segment, whole or not at all; what was there is put aside under its number. False: the disk is full."""
        line, replaces = _line(first), self._file is not None
        try:
            if replaces:
                before = self.place.read_bytes()
                aside = f"{self.place}.{first['segment'] - 1:06}.gz"
                write_whole(aside, lambda file: file.write(gzip.compress(before, 3)))
            elif found := _aside(self.place):
                must = f"a place without {found[0][1].name}, which an older log left there"
                raise bad("log", str(self.place), must)
            write_whole(self.place, lambda file: file.write(line))
        except OSError as problem:
            if not replaces:
                raise bad("log", str(self.place), f"a file that can be written ({reason_of(problem)})") from None
            self._room = 0, self._room[1]  # it is tried again when as much was written once more
            _LOGGER.warning("the log could not begin a new segment (%s)", reason_of(problem))
            return False
        self._continue(len(line))
        return True

    def go_on(self) -> None:
        """Cut off a torn last line, so that the next event begins a line of its own."""
        with open(self.place, "rb+") as file:
            first = len(file.readline())
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
        self._continue(first)

    def _continue(self, first: int) -> None:
        if self._file is not None:
            self._file.close()
        self._file = open(self.place, "ab", buffering=0)  # noqa: SIM115
        self._room = self._file.tell() - first, max(_LEAST, _TIMES * first)

    def full(self) -> bool:
        """Is it time for a new segment?"""
        return self._room[0] >= self._room[1]

    def write(self, event: dict[str, Any]) -> None:
        """Add one line. Where the disk is full nothing has happened, but for a torn line at the end."""
        line = _line(event)
        self._room = self._room[0] + len(line), self._room[1]
        while line:
            line = line[self._file.write(line) :]  # type: ignore[union-attr]
        if self._sync:
            os.fsync(self._file.fileno())  # type: ignore[union-attr]

    @property
    def closed(self) -> bool:
        """Is there no more to be written?"""
        return self._guard.closed

    def close(self) -> None:
        """No more lines."""
        if self._file is not None:
            self._file.close()
        self._guard.close()


def _line(event: dict[str, Any]) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"


def never_begun(place: Path) -> bool:
    """Is there no log yet: no file, or an empty one? (A first line is written whole or not at all.)"""
    return not place.exists() or (place.is_file() and not place.stat().st_size)


def read(place: Path, only: str = "") -> Iterator[dict[str, Any]]:
    """The lines of a segment, the first of them its beginning; a last line that is torn is left out.

    Of the others, those of events that do ``only`` this; by default all.
    """
    wanted = f'{{"do":"{only}"'.encode()
    number, begun = 0, False
    try:
        with gzip.open(place) if place.suffix == ".gz" else open(place, "rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break
                if only and number > 1 and not line.startswith(wanted):
                    continue
                event = json.loads(line)
                if number == 1 and (event["do"], event["format"]) != ("begin", FORMAT):
                    raise bad("log", str(place), f"a log of format {FORMAT}")
                begun = True
                yield event
    except OSError as problem:
        raise bad("log", str(place), f"a log ({problem.strerror or problem})") from None
    except (ValueError, TypeError, KeyError, EOFError, zlib.error) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(f"log: line {number} of {shown(str(place))} is no event; it must be as written") from None
    if not begun:
        raise bad("log", str(place), "a log that has begun")


def _aside(place: Path) -> list[tuple[int, Path]]:
    """Segments of a log that were put aside, by number."""
    found = ((_ASIDE.fullmatch(x.name.removeprefix(place.name)), x) for x in place.parent.iterdir())
    return sorted((int(match[1]), path) for match, path in found if match)


def segments(place: Path) -> list[Path]:
    """The segments of a log that are still there, in order; the last one is ``place`` itself."""
    last = next(read(place))["segment"]
    # One may have been put aside by a process that was killed before the next one began: it is there twice.
    return [path for number, path in _aside(place) if number < last] + [place]


def events(log: Any) -> Iterator[dict[str, Any]]:
    """All events of a log, as far as its segments are still there, in order, whoever writes it now.

    Each is a dict: ``do`` says what happened (``choose``, ``learn``, ``cancel``, ``expire``, ``add_arm``,
    ``remove_arm``, ``change``, ``clock``), and ``id`` to which request. A ``begin`` holds the terms of what follows.

    Args:
        log: the file that the agent was given.

    Raises:
        InputError: no log, or a line that is no event.

    Example:
        >>> import os, tempfile, jax
        >>> import jaxbandits as jb
        >>> log = os.path.join(tempfile.mkdtemp(), "decisions.jsonl")
        >>> agent = jb.live.Agent(
        ...     jb.policies.OmegaUCB(), arms={"a": 1.0}, reward_bound=1.0, key=jax.random.key(0), log=log)
        >>> agent.learn(agent.choose(request="mine"), reward=1.0, cost=0.5)
        >>> [(event["do"], event.get("request")) for event in jb.live.events(log)]
        [('begin', None), ('choose', 'mine'), ('learn', None)]
    """
    for path in segments(path_of("log", log)):
        for event in read(path):
            event.pop("state", None)
            yield event


def packed(tree: Pytree) -> dict[str, Any]:
    """A pytree of arrays as JSON."""
    leaves, structure = jax.tree.flatten(tree)
    arrays = [np.asarray(leaf) for leaf in leaves]
    kept = [[x.dtype.str, x.shape, base64.b64encode(x.tobytes()).decode()] for x in arrays]
    return {"structure": str(structure), "leaves": kept}


def unpacked(kept: dict[str, Any], like: Pytree) -> Pytree | None:
    """What :func:`packed` made, if it is of the structure of ``like``; else None."""
    leaves, structure = jax.tree.flatten(like)
    found = [
        np.frombuffer(base64.b64decode(text), np.dtype(kind)).reshape(shape) for kind, shape, text in kept["leaves"]
    ]
    shapes = [[(np.shape(x), np.asarray(x).dtype) for x in given] for given in (leaves, found)]
    if kept["structure"] != str(structure) or shapes[0] != shapes[1]:
        return None
    return jax.tree.unflatten(structure, found)


# --- States: written whole or not at all, never pickled, and of the policy that they say.


def save(path: str | os.PathLike[str], state: Pytree, *, policy: Policy | None) -> None:
    """Write a pytree of arrays (a policy's state, an observation, or both) to a ``.npz`` file, whole or not at all.

    Args:
        path: the file.
        state: the arrays.
        policy: whose state it is: the file says its class and parameters, and is read for no other. None for arrays
            that are no policy's.

    Raises:
        InputError: no file can be written there, or a leaf is no array of numbers (nothing is ever pickled).
        OSError: the disk is full.

    Example:
        >>> import tempfile, os
        >>> import jaxbandits as jb
        >>> policy = jb.policies.OmegaUCB()
        >>> path = os.path.join(tempfile.mkdtemp(), "state.npz")
        >>> jb.live.save(path, policy.init(jb.environments.FiniteSpec(arms=2)), policy=policy)
        >>> os.path.exists(path)
        True
    """
    save_with(path, state, {"policy": None if policy is None else written(policy)})


def save_with(path: Any, state: Pytree, about: dict[str, Any]) -> None:
    """The leaves of ``state`` as arrays, its structure and ``about`` as JSON."""
    place, leaves = path_of("path", path), {}
    for i, (at, value) in enumerate(jax.tree_util.tree_flatten_with_path(state)[0]):
        kind = getattr(value, "dtype", None) or np.asarray(value).dtype  # a key of jax has a type without a kind
        if getattr(kind, "kind", "") not in ("b", "i", "u", "f"):
            name = jax.tree_util.keystr(at) or "."
            raise bad(f"state: {name}", value, "an array of numbers or truth values (nothing is pickled)")
        leaves[f"leaf{i}"] = np.asarray(value)
    about = {"format": _STATES, "structure": str(jax.tree.structure(state))} | about
    save_arrays("path", place, {"about": np.array(json.dumps(about))} | leaves)


def load(path: str | os.PathLike[str], like: Pytree, *, policy: Policy | None = None) -> Pytree:
    """Read what :func:`save` wrote, into the structure of ``like`` (for a state: ``policy.init(spec)``).

    Raises:
        InputError: a missing file, one of another policy or of other parameters (both are named), or one with another
            structure, shape or type.

    Example:
        >>> import tempfile, os
        >>> import jaxbandits as jb
        >>> policy, spec = jb.policies.MUCB(), jb.environments.FiniteSpec(arms=2)
        >>> path = os.path.join(tempfile.mkdtemp(), "state.npz")
        >>> jb.live.save(path, policy.init(spec), policy=policy)
        >>> jb.live.load(path, like=policy.init(spec), policy=policy).pulls.tolist()
        [0, 0]
        >>> jb.live.load(path, like=policy.init(spec), policy=jb.policies.OmegaUCB())
        Traceback (most recent call last):
        jaxbandits.core.checks.InputError: policy: OmegaUCB(rho=0.25) given; it must be MUCB(alpha=0.0625), whose...
    """
    place = path_of("path", path)
    about, leaves = load_with(place)
    refuse_other(policy, about.get("policy"))
    return like_before(place, like, about, leaves)


def load_with(place: Path) -> tuple[dict[str, Any], list[np.ndarray]]:
    """What :func:`save_with` wrote: the JSON, and the leaves."""
    try:
        arrays = read_arrays(place)
        about = json.loads(str(arrays.pop("about")))
        if about["format"] == _STATES:
            return about, [arrays[f"leaf{i}"] for i in range(len(arrays))]
        reason = f"it has no format {_STATES}"
    except OSError as problem:
        reason = problem.strerror or "it is cut off"
    except Exception:  # whatever is wrong with a file that is none of ours
        reason = "it holds no state, or is broken"
    raise bad("path", str(place), f"a saved state ({reason})")


def like_before(place: Path, like: Pytree, about: dict[str, Any], leaves: list[np.ndarray]) -> Pytree:
    """The leaves in the structure of ``like``, if it is the one that was saved."""
    wanted, structure = jax.tree.flatten(like)
    shapes = [[(np.shape(x), np.asarray(x).dtype) for x in given] for given in (wanted, leaves)]
    if about.get("structure") != str(structure) or shapes[0] != shapes[1]:
        raise InputError(
            f"path: {shown(str(place))} holds another structure than `like`; it must be of the same policy, "
            "with or without `left` as before"
        )
    return jax.tree.unflatten(structure, leaves)
