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
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxbandits import policies
from jaxbandits._files import path_of, read_arrays, save_arrays, write_whole
from jaxbandits.core.checks import InputError, bad, shown
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import Pytree

try:
    import fcntl
except ImportError:  # Windows: two agents are not kept from writing one log
    fcntl = None  # type: ignore[assignment]

_LOGGER = logging.getLogger("jaxbandits.apps.live")
FORMAT = 4  # of logs and saved agents


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
    if given is not None and written(given) == text:
        return given
    try:
        return _made_again(ast.parse(text, mode="eval").body)
    except (ValueError, TypeError, AttributeError, SyntaxError):
        raise bad("policy", None, f"given: {text} cannot be made again from jb.policies") from None


def _made_again(node: Any) -> Any:
    if not isinstance(node, ast.Call):
        return ast.literal_eval(node)
    kind = getattr(policies, node.func.id)  # type: ignore[attr-defined]
    if not issubclass(kind, (Policy, policies.Detector)):
        raise TypeError("no policy")
    return kind(**{str(word.arg): _made_again(word.value) for word in node.keywords})


# --- The log: a line of JSON for each event, behind a first line that holds the whole state before them
#
# That line and what follows is a segment. When the events outgrow it, or the terms change, the segment is put aside,
# compressed, and a new one begins with the state of that moment. So going on needs the last segment only; all together
# are the history. Each event holds the number of its line, so that a reader sees where one is lost.

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
        self._lines = 0  # in this segment
        self.room = 0  # bytes until it is time for a new one
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

    def begin(self, first: dict[str, Any]) -> None:
        """A new segment, whole or not at all; what was there is put aside under its number."""
        replaces, line = self._file is not None, _line(first)
        if not replaces and (found := _aside(self.place)):
            raise bad("log", str(self.place), f"a place without {found[0][1].name}, which an older log left there")
        try:
            if replaces:
                self._file.close()  # type: ignore[union-attr]  # or Windows would not let go of it
                before = gzip.compress(self.place.read_bytes(), 3)
                write_whole(f"{self.place}.{first['segment'] - 1:06}.gz", lambda file: file.write(before))
            write_whole(self.place, lambda file: file.write(line))
        except OSError:
            if replaces:
                self.go_on()
                self.room = _LEAST  # it is tried again then
            raise
        self.go_on()

    def go_on(self) -> None:
        """Add to the segment that is there; a torn last line is cut off."""
        with open(self.place, "rb+") as file:
            whole = file.read()
            file.truncate(end := whole.rfind(b"\n") + 1)
        if self._file is not None:
            self._file.close()
        self._file = open(self.place, "ab", buffering=0)  # noqa: SIM115
        first = whole.index(b"\n") + 1
        self._lines, self.room = whole.count(b"\n"), max(_LEAST, _TIMES * first) - (end - first)

    def write(self, event: dict[str, Any]) -> None:
        """Add one line. Where the disk is full nothing has happened, but for a torn line at the end."""
        line = _line(event | {"n": self._lines + 1})
        self._lines, self.room = self._lines + 1, self.room - len(line)
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
    """The lines of a segment: its beginning, then all events, or those that do ``only`` this.

    A last line that is torn is left out.
    """
    number = 0
    try:
        with gzip.open(place) if place.suffix == ".gz" else open(place, "rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                number += 1
                if only and number > 1 and not line.startswith(f'{{"do":"{only}'.encode()):
                    continue
                event = json.loads(line)
                if number == 1 and (event["do"] != "begin" or event["format"] != FORMAT):
                    raise bad("log", str(place), f"a log of format {FORMAT}")
                yield event
    except OSError as problem:
        raise bad("log", str(place), f"a log ({problem.strerror or problem})") from None
    except InputError:
        raise
    except (ValueError, TypeError, KeyError, EOFError, zlib.error):
        raise InputError(f"log: line {number} of {shown(str(place))} is no event; it must be as written") from None
    if not number:
        raise bad("log", str(place), "a log that has begun")


def _aside(place: Path) -> list[tuple[int, Path]]:
    """Segments of a log that were put aside, by number."""
    found = ((_ASIDE.fullmatch(x.name.removeprefix(place.name)), x) for x in place.parent.iterdir())
    return sorted((int(match[1]), path) for match, path in found if match)


def segments(place: Path, only: str = "") -> Iterator[tuple[Path, Iterable[dict[str, Any]]]]:
    """The segments of a log that are still there, in order, each with its lines; the last one is ``place`` itself."""
    # It is read before the others are looked for: an agent may put it aside meanwhile. And one may have been put aside
    # by a process that was killed before the next one began: it is there twice.
    lines = [*read(place, only)]
    for number, path in _aside(place):
        if number < lines[0]["segment"]:
            yield path, read(path, only)
    yield place, lines


def events(log: Any) -> Iterator[dict[str, Any]]:
    """All events of a log, as far as its segments are still there, in order, whoever writes it now.

    Each is a dict: ``do`` says what happened (``choose``, ``learn``, ``cancel``, ``expire``, ``add_arm``,
    ``remove_arm``, ``clock``), and ``id`` to which request. A ``begin`` holds the terms of what follows, and under
    ``change`` what was changed in them.

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
    for _, lines in segments(path_of("log", log)):
        for event in lines:
            event.pop("state", None)
            yield event


def packed(tree: Pytree) -> dict[str, Any]:
    """A pytree of arrays as JSON."""
    leaves, structure = jax.tree.flatten(tree)
    arrays = [np.asarray(leaf) for leaf in leaves]
    kept = [[x.dtype.str, x.shape, base64.b64encode(x.tobytes()).decode()] for x in arrays]
    return {"structure": str(structure), "leaves": kept}


def unpacked(kept: dict[str, Any], like: Pytree) -> Pytree:
    """What :func:`packed` made, in the structure of ``like``; ValueError if it has another one."""
    parts = ((base64.b64decode(text), np.dtype(kind), shape) for kind, shape, text in kept["leaves"])
    return _shaped([np.frombuffer(*part[:2]).reshape(part[2]) for part in parts], kept["structure"], like)


def _shaped(leaves: list[np.ndarray], said: str, like: Pytree) -> Pytree:
    wanted, structure = jax.tree.flatten(like)
    shapes = [[(np.shape(x), np.asarray(x).dtype) for x in given] for given in (wanted, leaves)]
    if said != str(structure) or shapes[0] != shapes[1]:
        raise ValueError("another structure")
    return jax.tree.unflatten(structure, leaves)


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
    place, leaves = path_of("path", path), jax.tree_util.tree_flatten_with_path(state)[0]
    about = {"structure": str(jax.tree.structure(state)), "policy": None if policy is None else written(policy)}
    arrays = {f"state{jax.tree_util.keystr(at)}": x if hasattr(x, "dtype") else np.asarray(x) for at, x in leaves}
    save_arrays("path", place, {"about": np.array(json.dumps(about))} | arrays)


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
    try:
        arrays = read_arrays(place)
        about = json.loads(str(arrays.pop("about")))
        found, structure = about["policy"], about["structure"]
    except (OSError, ValueError, KeyError) as problem:
        reason = getattr(problem, "strerror", None) or "it is broken, or none"
        raise bad("path", str(place), f"a saved state ({reason})") from None
    if (mine := None if policy is None else written(policy)) != found:
        raise InputError(f"policy: {mine} given; it must be {found}, whose state the file holds")
    try:
        return _shaped(list(arrays.values()), structure, like)
    except ValueError:
        raise InputError(
            f"path: {shown(str(place))} holds another structure than `like`; it must be of the same policy, "
            "with or without `left` as before"
        ) from None
