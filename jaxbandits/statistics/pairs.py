"""Who beats whom, with an error rate that holds for the whole table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jaxbandits.core.errors import InputError, bad
from jaxbandits.statistics.sample import check_level, moments, units
from jaxbandits.statistics.student import t_above

if TYPE_CHECKING:
    import xarray

TESTS = ("t", "wilcoxon")


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's adjusted p-values: rejecting where they are ≤ α makes any false rejection at most α likely.

    The i-th smallest of m is multiplied by m − i + 1, then raised to the largest before it, at most 1. Valid under any
    dependence of the tests.

    Args:
        p: p-values, any shape; NaN (no test) stays NaN and does not count.

    Source: Holm (1979), A simple sequentially rejective multiple test procedure.

    Example:
        >>> import numpy as np
        >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
        [0.03, 0.06, 0.06]
    """
    p = np.asarray(p, float)
    adjusted = np.full(p.shape, np.nan)
    there = np.isfinite(p)
    ordered = np.argsort(p[there], kind="stable")
    steps = p[there][ordered] * np.arange(there.sum(), 0, -1)
    values = np.empty(ordered.size)
    values[ordered] = np.minimum(np.maximum.accumulate(steps), 1.0)
    adjusted[there] = values
    return adjusted


def dominance(
    x: xarray.DataArray,
    *,
    among: str = "setting",
    over: str = "instance",
    level: float = 0.95,
    test: str = "t",
) -> xarray.Dataset:
    """Every setting against every other, paired, with Holm's control over all pairs.

    Since all pairs are counted, the table may be read in any order: also "the winner against the rest", though the
    winner was found by looking.

    Args:
        x: an array with the axes ``among`` and ``over`` (and perhaps ``instance``, ``replicate``), no others, such as
            ``result.regret.isel(mark=-1)``.
        among: the axis whose entries are compared.
        over: what was sampled, ``"instance"`` or ``"replicate"`` (see :mod:`jaxbandits.statistics`).
        level: the chance that no pair is wrongly called clear.
        test: ``"t"``: paired t-test of the means (:func:`scipy.stats.ttest_rel`; with several given instances Welch and
            Satterthwaite's). ``"wilcoxon"``: signed ranks (:func:`scipy.stats.wilcoxon`), about the typical unit rather
            than the mean, which a few units may dominate; with one stratum only.

    Returns:
        A dataset over ``(among, against)``: ``difference`` (mean of row − column), ``p`` (two-sided), ``adjusted``
        (Holm's, over all pairs), ``clear`` (adjusted ≤ 1 − level), ``larger`` and ``smaller`` (the row is clearly
        larger, or smaller, than the column). The diagonal has p = 1.

    Raises:
        InputError: missing or further axes, fewer than two units, an argument out of its range.

    Example:
        >>> import numpy as np, xarray
        >>> noise = np.random.default_rng(0).normal(size=40)
        >>> x = xarray.DataArray([noise, noise + 1, noise + 1], dims=("setting", "instance"))
        >>> dominance(x)["larger"].values.astype(int).tolist()
        [[0, 0, 0], [1, 0, 0], [1, 0, 0]]
    """
    import xarray

    check_level("level", level)
    if test not in TESTS:
        raise bad("test", test, " or ".join(map(repr, TESTS)))
    sample = units(x, over)
    if sorted(map(str, sample.dims)) != sorted(("stratum", "unit", among)):
        raise InputError(f"x: an array with axes {tuple(x.dims)} given; it must have {among!r} and {over!r} only")
    values = np.asarray(sample.transpose(among, "stratum", "unit").values, float)
    if values.shape[2] < 2:
        raise InputError(f"x: 1 {over} given; it must have 2 or more, or there is nothing to test")
    if test == "wilcoxon" and values.shape[1] > 1:
        raise bad("test", test, "'t' for several given instances")
    count = values.shape[0]
    difference, p = np.zeros((count, count)), np.ones((count, count))
    for row in range(count - 1):
        apart = np.moveaxis(values[row] - values[row + 1 :], 0, -1)  # [stratum, unit, column]
        difference[row, row + 1 :] = apart.mean(axis=(0, 1))
        p[row, row + 1 :] = _t_test(apart) if test == "t" else _signed_ranks(apart[0])
    upper = np.triu_indices(count, 1)
    adjusted = np.ones_like(p)
    adjusted[upper] = holm(p[upper])
    for square in (p, adjusted):
        square.T[upper] = square[upper]
    difference = difference - difference.T
    clear = adjusted <= 1 - level
    labels = {name: list(x[among].values) for name in (among, "against")} if among in x.coords else {}
    parts = {
        "difference": difference,
        "p": p,
        "adjusted": adjusted,
        "clear": clear,
        "larger": clear & (difference > 0),
        "smaller": clear & (difference < 0),
    }
    data = {name: ((among, "against"), part) for name, part in parts.items()}
    return xarray.Dataset(data, coords=labels, attrs={"level": level, "test": test, **x.attrs})


def _t_test(apart: np.ndarray) -> np.ndarray:
    """Two-sided p of mean 0, ``[column]``; with one stratum it is scipy.stats.ttest_1samp's."""
    mean, error, freedom = moments(apart)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(mean == 0, 0.0, np.abs(mean) / error)
    return 2 * t_above(t, freedom)


def _signed_ranks(apart: np.ndarray) -> np.ndarray:
    from scipy import stats

    return np.array([stats.wilcoxon(d).pvalue if (d != 0).any() else 1.0 for d in apart.T])
