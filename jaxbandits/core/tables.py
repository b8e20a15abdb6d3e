"""Checks of users' tables of arms: ranges, shapes, and the number of arms."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxbandits.core import ticks
from jaxbandits.core.checks import InputError, bad, booleans, numbers, refuse

MOST_ARMS = 1 << 24  # an arm's id takes 24 bits of an address
MOST_RESOURCES = 511  # two to a block of 64 bits, whose number takes the other 8 bits
MOST_IN_A_SET = 127  # their sum is one int32 of ticks


def is_arm(action: Any) -> bool:
    """Whether this is one array of signed integers."""
    return getattr(action, "dtype", None) in (np.int32, np.int64)


def logged(name: str, logs: Any) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    """``logs[instance][arm]``, f64: first ``[rows]``, second ``[rows]`` or ``[rows, d]``."""
    nested = "a list of instances, each a list of arms, each a pair of lists"
    try:
        rows = [list(instance) for instance in logs]
        pairs = [[tuple(arm) for arm in instance] for instance in rows]
    except TypeError:
        raise bad(name, logs, nested) from None
    if not pairs or not all(pairs) or any(len(arm) != 2 for instance in pairs for arm in instance):
        raise bad(name, logs, f"{nested}, none of them empty")
    checked = []
    for i, instance in enumerate(pairs):
        places = [f"{name}[{i}][{k}]" for k in range(len(instance))]
        named = zip(places, instance, strict=True)
        arms = [tuple(numbers(place, x) for x in arm) for place, arm in named]
        for place, (a, b) in zip(places, arms, strict=True):
            fits_both = b.shape in (a.shape, a.shape + arms[0][1].shape[1:])
            if a.ndim != 1 or a.size == 0 or not fits_both:
                given = f"shapes {a.shape} and {b.shape} given"
                raise InputError(f"{place}: {given}; both must be [rows], rows ≥ 1")
        checked.append(arms)
    return checked  # type: ignore[return-value]


def alike(axes: tuple[int, ...], may_be: str, **values: Any) -> list[np.ndarray]:
    """The ``values`` as float64, if all have one shape with so many axes, and none is empty."""
    arrays = [numbers(name, x) for name, x in values.items()]
    shapes = [x.shape for x in arrays]
    if len(set(shapes)) > 1 or len(shapes[0]) not in axes or 0 in shapes[0]:
        given = f"{', '.join(values)}: shapes {' and '.join(map(str, shapes))} given"
        raise InputError(f"{given}; all must be {may_be}")
    return arrays


def fits(name: str, shape: tuple[int, ...]) -> None:
    """Refuse tables ``[instance, K]`` with more arms than addresses can hold."""
    may_be = f"at most {MOST_ARMS}: an arm's id is 24 bits of an address"
    refuse(name, f"{shape[-1]} arms", shape[-1] > MOST_ARMS, may_be)


def ticks32(units: np.ndarray) -> np.ndarray:
    """Nearest whole ticks, int32."""
    return ticks.from_units(units).astype(np.int32)


def check_unit(name: str, values: np.ndarray, *, rows: bool = False) -> None:
    """Refuse values outside [0, 1], or positive ones (``rows``: means) below half a tick."""
    refuse(name, values, ~((values >= 0) & (values <= 1)), "finite and in [0, 1]")
    in_ticks, amounts = ticks.from_units(values), values
    if rows:
        in_ticks, amounts = np.rint(in_ticks.mean(keepdims=True)), values.mean(keepdims=True)
    half = f"0, or at least half a tick, 2**-25 = {0.5 / ticks.ONE:.7g}"
    refuse(name, amounts, (amounts > 0) & (in_ticks == 0), f"{'on average ' * rows}{half}")


def presence(present: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Which arms exist, ``bool[instance, K]``: all, or as given."""
    exists = np.broadcast_to(True, shape) if present is None else booleans("present", present)
    if exists.shape not in (shape, shape[1:]):
        raise InputError(f"present: shape {exists.shape} given; it must be {shape} or {shape[1:]}")
    exists = np.broadcast_to(exists, shape)
    if (exists.sum(-1) < 1).any():
        raise InputError("present: an instance without arms given; each must have at least one")
    return exists


def tables(
    prefix: str, reward: Any, cost: Any, present: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Checked (reward, cost, presence), ``[instance, K]``; absent arms have reward 0 and cost 1."""
    r, c = numbers(f"{prefix}_reward", reward), numbers(f"{prefix}_cost", cost)
    several = c.ndim == 3 and r.shape == c.shape[:2]
    if (not several and (r.shape != c.shape or r.ndim not in (1, 2))) or 0 in c.shape:
        must = "both must be [K] or [instance, K] (costs [instance, K, d] for d resources)"
        given = f"shapes {r.shape} and {c.shape} given"
        raise InputError(f"{prefix}_reward, {prefix}_cost: {given}; {must}")
    r, c = np.atleast_2d(r), np.atleast_2d(c)
    resources = c.shape[-1] if several else 1
    may_be = f"at most {MOST_RESOURCES}: a resource's number is 8 bits of an address"
    refuse(f"{prefix}_cost", f"{resources} resources", resources > MOST_RESOURCES, may_be)
    fits(f"{prefix}_reward, {prefix}_cost", r.shape)
    exists = presence(present, r.shape)
    check_unit(f"{prefix}_reward", r[exists])
    check_unit(f"{prefix}_cost", c[exists])
    c = np.where(exists[..., None] if several else exists, c, 1.0)
    return np.where(exists, r, 0.0), c, exists
