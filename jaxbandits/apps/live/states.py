"""States of policies on disk: ``.npz`` files of plain arrays, never pickled, and of the policy that they say."""

from __future__ import annotations

import json
import os

import jax
import numpy as np

from jaxbandits._files import path_of, read_arrays, save_arrays
from jaxbandits.apps.live.program import written
from jaxbandits.core.checks import InputError, bad, shown
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import Pytree


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
        whose, structure = about["policy"], about["structure"]
    except (OSError, ValueError, KeyError) as problem:
        reason = getattr(problem, "strerror", None) or "it is broken, or none"
        raise bad("path", str(place), f"a saved state ({reason})") from None
    if (mine := None if policy is None else written(policy)) != whose:
        raise InputError(f"policy: {mine} given; it must be {whose}, whose state the file holds")
    try:
        wanted, found = jax.tree.flatten(like)
        leaves = list(arrays.values())
        shapes = [[(np.shape(x), np.asarray(x).dtype) for x in given] for given in (wanted, leaves)]
        if structure != str(found) or shapes[0] != shapes[1]:
            raise ValueError("another structure")
        return jax.tree.unflatten(found, leaves)
    except ValueError:
        raise InputError(
            f"path: {shown(str(place))} holds another structure than `like`; it must be of the same policy, "
            "with or without `left` as before"
        ) from None
