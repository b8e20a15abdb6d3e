"""One policy on one environment: what the lanes of a task share."""

from __future__ import annotations

import dataclasses
from types import ModuleType

import jax
import numpy as np

from jaxbandits._engine import scan
from jaxbandits.core import ticks
from jaxbandits.core.protocol import Constraint, Environment, Policy


@dataclasses.dataclass(frozen=True)
class Task:
    """One policy on one environment: everything that the lanes share, as host arrays.

    Policy leaves are ``[setting, 1 or instance, …]``, constraint leaves ``[instance]``, marks ``[instance, mark]``.
    """

    engine: ModuleType
    policy: Policy
    environment: Environment
    constraint: Constraint
    marks: ticks.Total
    root: np.ndarray  # u32[2]
    instance_ids: np.ndarray  # [instance]
    replicate_ids: np.ndarray  # [replicate], or [instance, replicate]
    settings: int
    cap: np.ndarray  # i32[instance]
    chunk: int
    order: np.ndarray  # lane numbers, longest first
    why_scan: str | None = None  # why ``engine="auto"`` plays round by round

    def lanes(self, numbers: np.ndarray) -> scan.Lane:
        """The constants of these lanes; a lane's number counts (setting, instance, replicate) in C order."""
        runs = self.replicate_ids.shape[-1]
        setting, instance, replicate = np.unravel_index(numbers, (self.settings, self.instance_ids.size, runs))
        of_each = np.broadcast_to(self.replicate_ids, (self.instance_ids.size, runs))

        def of_setting(leaf: np.ndarray) -> np.ndarray:
            return leaf[setting, instance if leaf.shape[1] > 1 else 0]

        return scan.Lane(
            row=instance.astype(np.int32),  # type: ignore[arg-type]
            instance=self.instance_ids[instance].astype(np.uint32),  # type: ignore[arg-type]
            replicate=of_each[instance, replicate].astype(np.uint32),  # type: ignore[arg-type]
            policy=jax.tree.map(of_setting, self.policy),
            constraint=jax.tree.map(lambda x: x[instance], self.constraint),
            marks=jax.tree.map(lambda x: x[instance], self.marks),
            cap=self.cap[instance],  # type: ignore[arg-type]
        )
