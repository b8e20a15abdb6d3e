"""Instances of different K in few compiles: which share one."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from jaxbandits.environments.finite.arms import FiniteArms
from jaxbandits.environments.finite.null_arm import WithNullArm

# Seconds, measured on two CPU cores. They decide how instances are grouped, never what comes out.
_COMPILE, _ARM_ROUND = 1.5, 5e-9


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """Instances that run in one compile: their rows in the table, and their arms, padded to the widest."""

    rows: tuple[int, ...]
    environment: FiniteArms | WithNullArm


def grouped(widths: Sequence[int], work: np.ndarray, policies: int) -> list[tuple[int, ...]]:
    """Rows of the table in groups of similar width, widest first, with least time for compiles and for padding arms.

    A group costs one compile per policy, and every round of its instances (``work``) the group's largest width.
    """
    order = sorted(range(len(widths)), key=lambda row: (widths[row], row))
    levels = [list(rows) for _, rows in itertools.groupby(order, key=lambda row: widths[row])]
    rounds = np.cumsum([0.0, *(float(sum(work[row] for row in level)) for level in levels)])
    best, cut = [0.0], [0]  # least time for the first n levels, and where their last group begins
    for n in range(1, len(levels) + 1):
        width = widths[levels[n - 1][0]]
        times = [
            best[first] + policies * _COMPILE + _ARM_ROUND * width * (rounds[n] - rounds[first]) for first in range(n)
        ]
        best.append(min(times))
        cut.append(times.index(best[n]))
    groups, n = [], len(levels)
    while n:
        groups.append(tuple(sorted(row for level in levels[cut[n] : n] for row in level)))
        n = cut[n]
    return groups
