"""Censored arms that replay real joint observations of reward and consumption."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import ticks
from jaxbandits.core.censored_specs import CensoredSpec, CostFunction
from jaxbandits.core.errors import InputError
from jaxbandits.core.tables import check_unit, logged
from jaxbandits.environments.censored.arms import CensoredArms
from jaxbandits.environments.finite.laws import RowsLaw


def row_arms(
    rows: Sequence[Sequence[tuple[Any, Any]]],
    *,
    limits: Sequence[float] | np.ndarray,
    cost: CostFunction,
    penalty: CostFunction,
    tau_max: float | None = None,
) -> CensoredArms:
    """Arms whose pulls resample rows of real data, reward and consumption together.

    Args:
        rows: ``rows[instance][arm] = (rewards, consumptions)``: rewards in [0, 1], consumptions ≥ 0 in user units,
            ``inf`` allowed (a run that was never finished). Instances may differ in their number of arms; a missing
            arm is absent. Consumption above τ_max saturates just above it.
        limits, cost, penalty, tau_max: see :meth:`CensoredSpec.of`; shared by all instances.

    True means are exact averages over the rows.

    Raises:
        InputError: an arm without rows, lengths that differ, values out of range, and all of :meth:`CensoredSpec.of`.

    Example:
        >>> from jaxbandits.environments import Linear, row_arms
        >>> fast = ([1.0, 0.0], [2.0, float("inf")])
        >>> slow = ([1.0, 1.0], [8.0, 5000.0])
        >>> arms = row_arms([[fast, slow]], limits=[5.0, 10.0], cost=Linear(0.1), penalty=Linear(0.1))
        >>> [round(float(v), 3) for v in arms.values()[0][0]]
        [0.15, -0.1, -0.5, -0.4]
    """
    read = logged("rows", rows)
    width = max(len(instance) for instance in read)
    spec = CensoredSpec.of(width, limits, cost, penalty, tau_max)
    checked = [[_checked(i, k, *arm) for k, arm in enumerate(instance)] for i, instance in enumerate(read)]
    depth = max(r.size for instance in checked for r, _ in instance)
    shape = (len(checked), width)
    reward, consumption = (np.zeros((*shape, depth), np.int32) for _ in range(2))
    size, present = np.ones(shape, np.int32), np.zeros(shape, bool)
    gain, spent = (np.zeros((*shape, len(spec.limits)), np.int32) for _ in range(2))
    for i, instance in enumerate(checked):
        for k, (r, c) in enumerate(instance):
            n = r.size
            reward[i, k, :n], consumption[i, k, :n] = ticks.from_units(r), spec.consumption_ticks(c)
            size[i, k], present[i, k] = n, True
            gain[i, k], spent[i, k] = _means(spec, reward[i, k, :n], consumption[i, k, :n])
    law = RowsLaw(reward, consumption, size)
    return CensoredArms(law=law, mean_gain=gain, mean_spent=spent, present=present, game=spec)


def _checked(i: int, k: int, r: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    check_unit(f"rows[{i}][{k}] rewards", r, rows=True)
    if not (c >= 0).all():
        raise InputError(f"rows[{i}][{k}] consumptions: {c[~(c >= 0)][0]:g} given; it must be at least 0 (inf allowed)")
    return r, c


def _means(spec: CensoredSpec, reward: np.ndarray, consumption: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(v, E min(C, τ)) at every limit in ticks, ``i32[m]``: exact sums of whole ticks over the rows, rounded once."""
    with jax.ensure_compile_time_eval():
        charge = np.asarray(spec.cost_ticks(jnp.asarray(consumption)), np.int64)
    limits = spec.limit_ticks.astype(np.int64)[:, None]
    within = consumption[None, :] <= limits
    fine = -spec.penalty_ticks.astype(np.int64)[:, None]
    gain = np.where(within, (reward - charge)[None, :], fine).sum(axis=1)
    spent = np.minimum(consumption[None, :], limits).sum(axis=1)
    return tuple(np.rint(x / reward.size).astype(np.int32) for x in (gain, spent))  # type: ignore[return-value]
