"""What a sample of regrets says about their law, with intervals: mean, median, quantiles, what the worst 1 % carry."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from jaxbandits.statistics import cvar, mean, median, quantile, tail_share

RESAMPLES, LEVEL = 1000, 0.95
WORST = 0.01
CRITERIA = {"mean": "least mean", "median": "least median", "q99": "least 99 % quantile", "worst": "least worst 1 %"}


def resampled(count: int, seed: int = 0) -> np.ndarray:
    """How often each of ``count`` instances is in each resample, ``[resample, instance]``."""
    picks = np.random.default_rng(seed).integers(0, count, (RESAMPLES, count))
    return np.stack([np.bincount(pick, minlength=count) for pick in picks]).astype(np.int32)


def criteria(values: np.ndarray, times: np.ndarray) -> dict[str, np.ndarray]:
    """Statistics of a sample in which instance i occurs ``times[:, i]`` times.

    Args:
        values: regrets, ``[instance]``.
        times: ``[resample, instance]``, of equal sums.

    Returns:
        mean, median, q90, q99, ``worst`` (mean of the worst 1 %) and ``tail_share`` (what these carry of the mean).
    """
    order = np.argsort(values)
    x, times = values[order], times[:, order]
    upto, count = np.cumsum(times, axis=-1), int(times[0].sum())
    total = times.astype(float) @ x
    found = {"mean": total / count}
    for name, share in (("median", 0.5), ("q90", 0.9), ("q99", 0.99)):
        place = (upto < share * count).sum(axis=-1)  # the least value below or at which a share of the sample lies
        found[name] = x[np.minimum(place, x.size - 1)]
    worst = max(1, round(WORST * count))
    inside = np.diff(np.maximum(upto - (count - worst), 0), axis=-1, prepend=0)
    found["worst"] = inside.astype(float) @ x / worst
    found["tail_share"] = worst * found["worst"] / np.where(total == 0, 1, total)
    return found


def described(regret: np.ndarray, wrong: np.ndarray, costly: np.ndarray) -> dict[str, Any]:
    """By name, (value, low, high) of the runs of one setting of a policy, with 95 % intervals.

    Mean, quantiles, worst 1 % and what these carry are those of ``jaxbandits.statistics``; shares of runs have Clopper
    and Pearson's intervals, exact ones. ``half`` is the least number of runs that together carry half of the mean, and
    ``warned`` what is doubtful about the mean.
    """
    of_mean = mean(regret)
    found: dict[str, Any] = {
        "mean": of_mean,
        "median": median(regret),
        "q90": quantile(regret, 0.9),
        "q99": quantile(regret, 0.99),
        "worst": cvar(regret, WORST),
        "tail_share": tail_share(regret, WORST),
    }
    found = {name: (x.value, x.low, x.high) for name, x in found.items()}
    for name, hits in (("lock_in", wrong), ("costly_lock_in", costly)):
        low, high = stats.binomtest(int(hits.sum()), hits.size).proportion_ci(LEVEL)
        found[name] = (float(hits.mean()), float(low), float(high))
    found["half"] = 1 + int((np.cumsum(np.sort(regret)[::-1]) < regret.sum() / 2).sum())
    found["warned"] = ", ".join(line.split(":")[0] for line in of_mean.warnings)
    return found


def not_worse(regret: np.ndarray) -> dict[str, tuple[int, np.ndarray]]:
    """By criterion: (the setting that is least by it, which settings are not clearly worse than that one).

    Clearly: the bootstrap of the difference, paired by instance, is above 0 at 5 % for all settings together
    (Bonferroni).

    Args:
        regret: ``[setting, instance]``.
    """
    times = np.concatenate([np.ones((1, regret.shape[1]), np.int32), resampled(regret.shape[1])])
    by_setting = [criteria(x, times) for x in regret]
    found = {}
    for criterion in CRITERIA:
        values = np.array([each[criterion] for each in by_setting])  # [setting, the sample and its resamples]
        best = int(values[:, 0].argmin())
        gaps = np.quantile(values[:, 1:] - values[best, 1:], (1 - LEVEL) / max(1, len(regret) - 1), axis=1)
        found[criterion] = best, gaps <= 0
    return found


def groups(values: np.ndarray, size: int) -> np.ndarray:
    """Means of consecutive groups of ``size`` instances, ``[..., group]``; what is left over is left out."""
    count = values.shape[-1] // size
    return values[..., : count * size].reshape(*values.shape[:-1], count, size).mean(axis=-1)


def row_of(found: dict[str, Any]) -> list[Any]:
    """The numbers in the order of :func:`header`."""
    return [number for name in NAMES for number in found[name]] + [found["half"], found["warned"]]


NAMES = ("mean", "median", "q90", "q99", "worst", "tail_share", "lock_in", "costly_lock_in")


def header() -> list[str]:
    """Names of the columns of :func:`row_of`."""
    return [f"{name}{end}" for name in NAMES for end in ("", "_low", "_high")] + ["half", "warned"]
