"""The marks: at which shares of the clock a lane's account is recorded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxbandits._engine import limits
from jaxbandits.core import ticks
from jaxbandits.core.errors import bad
from jaxbandits.core.numbers import numbers


def mark_shares(marks: int | Sequence[float] | np.ndarray) -> np.ndarray:
    """Shares of the clock, float64, increasing, the last exactly 1: ``marks`` log-spaced ones from 0.1 %, or as given.

    Raises:
        InputError: fewer than 1 or more than 10 000 marks, or shares that do not rise to 1.
    """
    if (number := limits.count("marks", marks)) is not None:
        if number > 10_000:
            raise bad("marks", marks, "from 1 to 10000, or the shares themselves")
        shares = np.geomspace(1e-3, 1.0, number) if number != 1 else np.ones(1)
        shares[-1] = 1.0
        return shares
    shares = numbers("marks", marks, "a number of marks, or increasing shares in (0, 1] that end in 1")
    if shares.ndim != 1 or shares.size < 1 or not (shares > 0).all() or shares[-1] != 1 or (np.diff(shares) <= 0).any():
        raise bad("marks", marks, "a number of marks, or increasing shares in (0, 1] that end in 1")
    return shares


def mark_totals(end: np.ndarray, shares: np.ndarray) -> ticks.Total:
    at = np.maximum(np.floor(end[:, None] * shares[None, :]).astype(np.int64), 1)  # at 0 no round was played yet
    at[:, -1] = end
    return ticks.split(at)
