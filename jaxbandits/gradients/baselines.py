"""Baselines: what is subtracted from a run's regret before it weighs a score; independent of the run, so no bias."""

from __future__ import annotations

import numpy as np

BASELINES = ("leave_one_out", "self_play", "none")


def centred(regret: np.ndarray, baseline: str) -> np.ndarray:
    """Regret minus its baseline, both along the last axis (independent runs, at least 2).

    ``leave_one_out``: the mean of the other runs; ``self_play``: the next run; ``none``: 0.
    """
    if baseline == "none":
        return regret
    if baseline == "self_play":
        return regret - np.roll(regret, -1, axis=-1)
    runs = regret.shape[-1]
    others = (regret.sum(axis=-1, keepdims=True) - regret) / (runs - 1)
    return regret - others
