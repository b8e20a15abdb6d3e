"""What is kept on disk: logs, a line of JSON for each event, and states, as ``.npz`` files of plain arrays."""

from __future__ import annotations

import ast
import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxbandits import policies
from jaxbandits._files import path_of, read_arrays, save_arrays
from jaxbandits.core.checks import InputError, bad, shown
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import Pytree

try:
    import fcntl
except ImportError:  # Windows: two agents are not kept from writing one log
    fcntl = None  # type: ignore[assignment]

FORMAT = 2  # of logs, and of saved states


def versions() -> dict[str, str]:
    """What made a file."""
    from jaxbandits import __version__

    return {"jaxbandits": __version__, "jax": jax.__version__}


# --- Whose state it is: what was learnt by one policy is not taken for what another one learnt.


def written(policy: Policy) -> str:
    """Class, parameters as float32 or int32 plays them, static fields: ``InFlight(policy=OmegaUCB(rho=0.3))``."""
    parts = []
    for field in dataclasses.fields(policy):  # type: ignore[arg-type]
        value = getattr(policy, field.name)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            parts.append(f"{field.name}={written(value)}")  # type: ignore[arg-type]
        elif field.metadata.get("static"):
            text = repr(value)  # of a function it holds an address, which is another one in every process
            text = getattr(value, "__qualname__", type(value).__qualname__) if " at 0x" in text else text
            parts.append(f"{field.name}={text}")
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


# --- The log: only ever added to, one whole line of JSON for each event.


class Log:
    """A file that grows by whole lines. A line is in the hands of the system when :meth:`write` returns.

    A process that is killed loses nothing that was written; a machine that loses power may, unless ``sync``.
    """

    def __init__(self, place: Path, sync: bool):
        try:
            self._file = open(place, "ab", buffering=0)  # noqa: SIM115 (as long as the agent lives)
        except OSError as problem:
            raise bad("log", str(place), f"a file that can be written ({problem.strerror})") from None
        self._sync = sync
        try:
            if fcntl is not None:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # it ends with the process, however that ends
        except OSError:
            self._file.close()
            raise bad("log", str(place), "a log that no other agent writes") from None

    def write(self, event: dict[str, Any]) -> None:
        """Add one line. Where the disk is full nothing has happened, but for a torn line at the end."""
        line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
        while line:
            line = line[self._file.write(line) :]
        if self._sync:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """No more lines."""
        self._file.close()


_BEGIN = b'{"do":"begin"'


def never_begun(place: Path) -> bool:
    """Is there no log yet: no file, an empty one, or the torn first line of a process that was killed at once?"""
    if not place.is_file():
        return not place.exists()
    with open(place, "rb") as file:
        line = file.readline()
        return not file.read(1) and not line.endswith(b"\n") and line[: len(_BEGIN)] == _BEGIN[: len(line)]


def mend(place: Path) -> None:
    """Cut off a torn last line, so that the next event begins a line of its own."""
    with open(place, "rb+") as file:
        file.truncate(file.read().rfind(b"\n") + 1)


def read(place: Path) -> Iterator[dict[str, Any]]:
    """The events of a log, in order, the first of them its beginning; a last line that is torn is left out."""
    number, begun = 0, False
    try:
        with open(place, "rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break
                event = json.loads(line)
                if number == 1 and (event["do"], event["format"]) != ("begin", FORMAT):
                    raise bad("log", str(place), f"a log of format {FORMAT}")
                begun = True
                yield event
    except OSError as problem:
        raise bad("log", str(place), f"a log ({problem.strerror})") from None
    except (ValueError, TypeError, KeyError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(f"log: line {number} of {shown(str(place))} is no event; it must be as written") from None
    if not begun:
        raise bad("log", str(place), "a log that has begun")


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
    about = {"format": FORMAT, "structure": str(jax.tree.structure(state))} | about
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
        if about["format"] == FORMAT:
            return about, [arrays[f"leaf{i}"] for i in range(len(arrays))]
        reason = f"it has no format {FORMAT}"
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
