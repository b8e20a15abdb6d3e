"""What all estimators share: what they return, and how parameters are named."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits.environments.finite import FiniteArms
from jaxbandits.environments.laws import BernoulliLaw, BetaLaw
from jaxbandits.errors import InputError, bad
from jaxbandits.protocol import Environment, Policy

MEANS = ("mean_reward", "mean_cost")
SHAPES = ("reward_alpha", "reward_beta", "cost_alpha", "cost_beta")


class Estimate(NamedTuple):
    """An expected regret and its gradient, float64 arrays ``[setting, instance, …]``.

    Attributes:
        value: expected regret at the end of the clock, ``[setting, instance]``.
        gradient: by name of the parameter, ``[setting, instance]`` for a scalar, ``[setting, instance, K]`` per arm.
        standard_error: as ``gradient``, and of the value under the name ``"value"``.
        about: the estimator's name, what it is unbiased for, and its settings.
    """

    value: np.ndarray
    gradient: dict[str, np.ndarray]
    standard_error: dict[str, np.ndarray]
    about: dict[str, Any]


def names_of(wrt: str | Sequence[str]) -> tuple[str, ...]:
    """``wrt`` as a tuple of different names.

    Raises:
        InputError: nothing, or a name twice.
    """
    names = (wrt,) if isinstance(wrt, str) else tuple(wrt)
    if not names or len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
        raise bad("wrt", wrt, "a name, or several different names")
    return names


# --- parameters of policies ------------------------------------------------------------------------------------


def leaves_of(policy: Any, prefix: str = "") -> dict[str, Mapping[str, Any]]:
    """Declared ranges of a policy's numeric parameters by name; one of a nested policy is ``field.name``."""
    found: dict[str, Mapping[str, Any]] = {}
    for field in dataclasses.fields(policy):
        value = getattr(policy, field.name)
        if field.metadata.get("static") or value is None:
            continue
        if dataclasses.is_dataclass(value):
            found |= leaves_of(value, f"{prefix}{field.name}.")
        else:
            found[prefix + field.name] = field.metadata
    return found


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


def positive_parameters(policy: Policy, wrt: Sequence[str]) -> tuple[str, ...]:
    """Full names of scalar parameters that are above 0, so that their logarithm may be moved.

    Raises:
        InputError: a parameter with one value per arm, a whole number, or a value that is not above 0.
    """
    paths = tuple(path_of(policy, name) for name in wrt)
    known = leaves_of(policy)
    for path in paths:
        meta = known[path]
        if meta.get("integer") or meta.get("core", 0):
            raise bad("wrt", path, "a real parameter with one value")
        if not (np.asarray(get(policy, path), np.float64) > 0).all():
            raise bad(path, get(policy, path), "above 0 (its logarithm is moved)")
    return paths


# --- parameters of environments --------------------------------------------------------------------------------


def check_law(environment: Environment, names: Sequence[str]) -> FiniteArms:
    """An environment whose outcomes have a density in the named parameters.

    Raises:
        InputError: another environment or law, or a name that is none of its parameters.
    """
    if not isinstance(environment, FiniteArms) or environment.spec.resources is not None:
        raise bad("environment", type(environment).__name__, "FiniteArms with one cost")
    law = environment.law
    if not isinstance(law, (BernoulliLaw, BetaLaw)):
        raise InputError(f"environment: arms with a {type(law).__name__} have no parameters to differentiate by")
    known = MEANS if isinstance(law, BernoulliLaw) else SHAPES
    for name in names:
        if name not in known:
            kind = "Bernoulli" if known is MEANS else "Beta"
            raise bad("wrt", name, f"one of {', '.join(known)}, the parameters of {kind} arms")
    return environment


def repeat_rows(tree: Any, instances: int, times: int) -> Any:
    """Every leaf with a leading instance axis repeated ``times`` times, row by row; other leaves as they are."""

    def repeat(x: Any) -> Any:
        x = np.asarray(x)
        return np.repeat(x, times, axis=0) if x.ndim and x.shape[0] == instances else x

    return jax.tree.map(repeat, tree)
