"""Settings of a policy: grids of them, their canonical form, their labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.numbers import as_played, numbers
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import map_leaves
from jaxbandits.core.user_methods import called

_CANONICAL = "_canonical"  # (settings, instances) of what canonicalise gave; whatever changes a leaf loses it
_FEW = 6  # arms whose values a label shows


def canonicalise(policy: Policy, instances: int, spec: Any = None) -> tuple[Policy, int]:
    """The policy with every leaf a NumPy float32/int32 array ``[setting, 1 or instance, core…]``, and the settings.

    A policy that is canonical already is given back as it is, but for ``Policy.check``.

    Args:
        policy: as the user gave it.
        instances: how many its world has.
        spec: what it may know of that world, for ``Policy.check``; None if that is not known yet.

    Raises:
        InputError: a leaf out of its range, or whose leading axes fit neither ``[setting]`` nor
            ``[setting, instance]``; what ``Policy.check`` raises.
    """
    settings, had = getattr(policy, _CANONICAL, (0, 0))
    canonical = policy
    if had != instances:
        canonical, settings = _shaped(policy, instances)
    if spec is not None:
        called(policy, "check", lambda: policy.check(spec))
    return canonical, settings


def _shaped(policy: Policy, instances: int) -> tuple[Policy, int]:
    counts: dict[str, int] = {}

    def shape(name: str, value: Any, meta: Mapping[str, Any]) -> np.ndarray:
        array = as_played(name, value, meta)
        lead = array.ndim - meta.get("core", 0)
        if lead < 0:
            raise bad(name, value, "an array with a value for each arm on its last axis")
        if lead == 0:
            array = array[None, None]
        elif lead == 1:
            array = array[:, None]
        elif lead != 2 or array.shape[1] not in (1, instances):
            raise InputError(
                f"{name}: an array of shape {np.shape(value)} given; its leading axes must be [setting] or "
                f"[setting, instance], with {instances} instances"
            )
        counts[name] = array.shape[0]
        return array

    shaped = map_leaves(policy, shape)
    settings = max(counts.values(), default=1)
    for name, count in counts.items():
        if count not in (1, settings):
            raise InputError(
                f"{name}: {count} settings given; it must be 1 or {settings}, as the others (use grid(...) for "
                "combinations)"
            )
    # Copies: what the user gave may still be written to.
    every = jax.tree.map(lambda x: _fixed(np.array(np.broadcast_to(x, (settings, *x.shape[1:])))), shaped)
    return _marked(every, settings, instances), settings


def of_instances(canonical: Policy, rows: list[int]) -> Policy:
    """What :func:`canonicalise` gave, for some of its instances."""
    settings, _ = getattr(canonical, _CANONICAL)
    chosen = jax.tree.map(lambda x: _fixed(x[:, rows]) if x.shape[1] > 1 else x, canonical)
    return _marked(chosen, settings, len(rows))


def _marked(policy: Policy, settings: int, instances: int) -> Policy:
    object.__setattr__(policy, _CANONICAL, (settings, instances))  # leaves are read-only, so it stays true
    return policy


def _fixed(x: np.ndarray) -> np.ndarray:
    x.setflags(write=False)
    return x


def label(policy: Any, setting: int | None = None) -> str:
    """A setting's name: the policy and its parameters, e.g. ``OmegaUCB(rho=0.25)``.

    Args:
        policy: canonical (see :func:`canonicalise`).
        setting: its number; with None the class and its static fields only, of any policy.
    """
    parts = []
    for field in dataclasses.fields(policy):
        value = getattr(policy, field.name)
        if value is None:
            continue
        if dataclasses.is_dataclass(value):
            parts.append(label(value, setting))
            continue
        if not field.metadata.get("static"):
            if setting is None:
                continue
            value = _short(np.asarray(value)[setting], field.metadata.get("core", 0))
        elif " at 0x" in str(value):  # a function, or what holds one: an address, another one in every process
            if value is field.default:
                continue
            value = getattr(value, "__name__", type(value).__name__)
        parts.append(f"{field.name}={value}")
    return f"{type(policy).__name__}({', '.join(parts)})" if parts else type(policy).__name__


def _short(values: np.ndarray, core: int) -> str:
    """``0.25``, ``[3 1]`` of a few arms, or what there is a value of each for."""
    if np.unique(values).size == 1:
        return f"{values.flat[0]:.6g}"
    if core == 1 and (values == values[0]).all() and values.shape[-1] <= _FEW:
        return f"[{' '.join(f'{x:.6g}' for x in values[0])}]"
    return "per arm" if core else "per instance"


def grid(policy: type[Policy], **values: Any) -> Policy:
    """Settings that are all combinations of the given values, the last one varying fastest.

    Example:
        >>> import jaxbandits as jb
        >>> jb.grid(jb.policies.OmegaUCB, rho=[0.25, 1.0]).rho.tolist()
        [0.25, 1.0]
    """
    axes = np.meshgrid(*(numbers(name, value).ravel() for name, value in values.items()), indexing="ij")
    return policy(**{name: axis.ravel() for name, axis in zip(values, axes, strict=True)})
