"""A policy's numeric parameters by name: find, read and replace them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxbandits.core.errors import bad
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import walk


def names_of(wrt: str | Sequence[str]) -> tuple[str, ...]:
    """``wrt`` as a tuple of different names.

    Raises:
        InputError: nothing, or a name twice.
    """
    names = (wrt,) if isinstance(wrt, str) else tuple(wrt)
    if not names or len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
        raise bad("wrt", wrt, "a name, or several different names")
    return names


def leaves_of(policy: Any) -> dict[str, Mapping[str, Any]]:
    """Declared ranges of a policy's numeric parameters by name; one of a nested policy is ``field.name``."""
    return {leaf.path: leaf.metadata for leaf in walk(policy)}


def path_of(policy: Policy, name: str) -> str:
    """The full name of a parameter; the last part is enough where it is unambiguous (``rho`` for ``policy.rho``).

    Raises:
        InputError: naming the parameters that there are.
    """
    known = leaves_of(policy)
    fitting = [path for path in known if path == name] or [p for p in known if p.rsplit(".", 1)[-1] == name]
    if len(fitting) != 1:
        may_be = f"one of {', '.join(known)}" if known else "left out"
        raise bad("wrt", name, f"{may_be}, the parameters of {type(policy).__name__}")
    return fitting[0]


def parameters_of(policy: Policy) -> list[dict[str, Any]]:
    """What each setting of a canonical policy is: its class, and its parameters that are one number.

    A parameter of a nested policy goes by its last name where that is unambiguous. Numbers are those of float32 in
    their shortest form: 0.3 is 0.3 and not 0.30000001.

    Example:
        >>> import jaxbandits as jb
        >>> from jaxbandits.core.settings import canonicalise
        >>> parameters_of(canonicalise(jb.policies.OmegaUCB(rho=[0.3, 1.0]), instances=1)[0])
        [{'policy': 'OmegaUCB', 'rho': 0.3}, {'policy': 'OmegaUCB', 'rho': 1.0}]
    """
    leaves = [(leaf.path, np.asarray(leaf.value)) for leaf in walk(policy)]
    last = [path.rsplit(".", 1)[-1] for path, _ in leaves]
    settings = max((value.shape[0] for _, value in leaves), default=1)
    found: list[dict[str, Any]] = [{"policy": type(policy).__name__} for _ in range(settings)]
    for (path, values), short in zip(leaves, last, strict=True):
        for number, parameters in enumerate(found):
            if values[number].size == 1:
                name = short if last.count(short) == 1 else path
                parameters[name] = json.loads(str(values[number].ravel()[0]))
    return found


def get(policy: Any, path: str) -> Any:
    """The value at a full name."""
    for part in path.split("."):
        policy = getattr(policy, part)
    return policy


def put(policy: Any, values: Mapping[str, Any]) -> Any:
    """A copy with other values at full names."""
    for path, value in values.items():
        first, _, rest = path.partition(".")
        inner = put(getattr(policy, first), {rest: value}) if rest else value
        policy = dataclasses.replace(policy, **{first: inner})
    return policy


def real_parameters(policy: Policy, wrt: Sequence[str]) -> tuple[str, ...]:
    """Full names of scalar parameters that may be moved a little.

    Raises:
        InputError: a parameter with one value per arm, or a whole number.
    """
    paths = tuple(path_of(policy, name) for name in wrt)
    known = leaves_of(policy)
    for path in paths:
        if known[path].get("integer") or known[path].get("core", 0):
            raise bad("wrt", path, "a real parameter with one value")
    return paths


def positive_parameters(policy: Policy, wrt: Sequence[str]) -> tuple[str, ...]:
    """Full names of scalar parameters that are above 0, so that their logarithm may be moved.

    Raises:
        InputError: as :func:`real_parameters`, and a value that is not above 0.
    """
    paths = real_parameters(policy, wrt)
    for path in paths:
        if not (np.asarray(get(policy, path), np.float64) > 0).all():
            raise bad(path, get(policy, path), "above 0 (its logarithm is moved)")
    return paths
