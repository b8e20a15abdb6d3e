"""Settings of a policy: grids of them, their canonical form, their labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxbandits.core.errors import InputError
from jaxbandits.core.numbers import as_played, numbers
from jaxbandits.core.protocol import Environment, Policy
from jaxbandits.core.pytrees import map_leaves
from jaxbandits.core.user_methods import called


def canonicalise(policy: Policy, environment: Environment) -> tuple[Policy, int]:
    """The policy with every leaf a NumPy float32/int32 array ``[setting, 1 or instance, core…]``, and the settings.

    Raises:
        InputError: a leaf whose leading axes fit neither ``[setting]`` nor ``[setting, instance]``.
    """
    counts: dict[str, int] = {}

    def shape(name: str, value: Any, meta: Mapping[str, Any]) -> np.ndarray:
        array = as_played(name, value, meta)
        lead = array.ndim - meta.get("core", 0)
        if lead == 0:
            array = array[None, None]
        elif lead == 1:
            array = array[:, None]
        elif lead != 2 or array.shape[1] not in (1, environment.instances):
            raise InputError(
                f"{name}: an array of shape {np.shape(value)} given; its leading axes must be [setting] or "
                f"[setting, instance], with {environment.instances} instances"
            )
        counts[name] = array.shape[0]
        return array

    shaped = map_leaves(policy, shape)
    called(policy, "check", lambda: policy.check(environment.spec))
    settings = max(counts.values(), default=1)
    for name, count in counts.items():
        if count not in (1, settings):
            raise InputError(
                f"{name}: {count} settings given; it must be 1 or {settings}, as the others (use grid(...) for "
                "combinations)"
            )
    return jax.tree.map(lambda x: np.broadcast_to(x, (settings, *x.shape[1:])), shaped), settings


def label(policy: Any, leaves: Any, setting: int) -> str:
    """A setting's name: the policy and its parameters, e.g. ``OmegaUCB(rho=0.25)``."""
    parts = []
    for field in dataclasses.fields(policy):
        value = getattr(leaves, field.name)
        if value is None:
            continue
        if dataclasses.is_dataclass(value):
            parts.append(label(getattr(policy, field.name), value, setting))
            continue
        if not field.metadata.get("static"):
            values = np.unique(np.asarray(value)[setting])
            value = f"{values[0]:.6g}" if values.size == 1 else "per instance"
        parts.append(f"{field.name}={value}")
    return f"{type(policy).__name__}({', '.join(parts)})" if parts else type(policy).__name__


def grid(policy: type[Policy], **values: Any) -> Policy:
    """Settings that are all combinations of the given values, the last one varying fastest.

    Example:
        >>> import jaxbandits as jb
        >>> jb.grid(jb.policies.OmegaUCB, rho=[0.25, 1.0]).rho.tolist()
        [0.25, 1.0]
    """
    axes = np.meshgrid(*(numbers(name, value).ravel() for name, value in values.items()), indexing="ij")
    return policy(**{name: axis.ravel() for name, axis in zip(values, axes, strict=True)})
