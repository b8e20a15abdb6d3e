"""States on disk: written whole or not at all, never pickled, and of the policy that they say."""

from __future__ import annotations

import json
import os
from typing import Any

import jax
import numpy as np

from jaxbandits._files import npz
from jaxbandits._files.files import open_regular, path_of
from jaxbandits._files.result_file import write_arrays
from jaxbandits.core.errors import InputError, shown
from jaxbandits.core.printable import brief
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import Pytree
from jaxbandits.live.identity import identity_of, refuse_other

_FORMAT = 1


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
        >>> import os, tempfile
        >>> import jaxbandits as jb
        >>> policy = jb.policies.OmegaUCB()
        >>> path = os.path.join(tempfile.mkdtemp(), "state.npz")
        >>> jb.live.save(path, policy.init(jb.environments.FiniteSpec(arms=2)), policy=policy)
        >>> os.path.exists(path)
        True
    """
    place = path_of("path", path)
    named = jax.tree_util.tree_flatten_with_path(state)[0]
    for at, value in named:
        npz.check_plain({_where(at): value}, "state")
    stored = {f"leaf{i}": np.asarray(value) for i, (_, value) in enumerate(named)}
    whose = None if policy is None else identity_of(policy)
    about = json.dumps({"format": _FORMAT, "structure": str(jax.tree.structure(state)), "policy": whose})
    write_arrays(place, {"about": np.array(about)} | stored, np.savez)


def _where(path: Any) -> str:
    """A leaf's place in its tree."""
    return brief(jax.tree_util.keystr(path)) or "."


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
        jaxbandits.core.errors.InputError: policy: OmegaUCB(rho=0.25) given; it must be MUCB(alpha=0.0625), whose...
    """
    place = path_of("path", path)
    wanted, structure = jax.tree.flatten(like)
    npz.check_plain({f"leaf{i}": x for i, x in enumerate(wanted)}, "like")
    try:
        with open_regular(place) as file:
            arrays = npz.read(file, first="about")
            about = _about(npz.text_of(next(arrays)[1], "about"))
            refuse_other("policy", policy, about.get("policy"))
            found = npz.shapes(file)
            del found["about"]
            like_shapes = {f"leaf{i}": (np.shape(x), np.asarray(x).dtype) for i, x in enumerate(wanted)}
            if about.get("structure") != str(structure) or found != like_shapes:
                raise InputError(
                    f"path: {shown(str(place))} holds another structure than `like`; it must be of the same policy, "
                    "with or without `left` as before"
                )
            leaves = dict(arrays)
    except (OSError, npz.NotArrays) as problem:
        reason = f"it {problem}" if not isinstance(problem, OSError) else problem.strerror or str(problem)
        raise InputError(f"path: {shown(str(place))} given; it must be a saved state ({brief(reason)})") from None
    return jax.tree.unflatten(structure, [leaves[f"leaf{i}"] for i in range(len(wanted))])


def _about(text: str) -> dict[str, Any]:
    """What a file says of its leaves: their structure, and whose they are."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or type(found.get("format")) is not int or found["format"] != _FORMAT:
        raise npz.NotArrays(f"has no format {_FORMAT}")
    return found
