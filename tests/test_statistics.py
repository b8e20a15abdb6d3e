"""Intervals over replicates: the textbook's where there is one, exact cases, coverage for averaged instances."""

from __future__ import annotations

import numpy as np
import pytest
import xarray
from scipy import stats

from jaxbandits.core.errors import InputError
from jaxbandits.statistics import mean_interval, paired_difference

RANDOM = np.random.default_rng(7)


def array(values: np.ndarray, *axes: str) -> xarray.DataArray:
    return xarray.DataArray(values, dims=axes)


def symmetric(*shape: int) -> np.ndarray:
    """Samples without skewness along the last axis, whose intervals need no correction."""
    half = RANDOM.exponential(size=(*shape[:-1], shape[-1] // 2))
    return np.concatenate([half, -half], axis=-1) + RANDOM.normal(size=(*shape[:-1], 1))


def test_one_instance_is_the_t_interval() -> None:
    x = symmetric(3, 12)
    found = mean_interval(array(x, "setting", "replicate"), level=0.9)
    for i in range(3):
        expected = stats.ttest_1samp(x[i], 0).confidence_interval(0.9)
        np.testing.assert_allclose([found["low"][i], found["high"][i]], expected, rtol=1e-12)
    np.testing.assert_allclose(found["mean"], x.mean(1))


def test_averaging_one_instance_changes_nothing() -> None:
    x = array(RANDOM.normal(size=(2, 1, 9)), "setting", "instance", "replicate")
    whole, single = mean_interval(x, average_instances=True), mean_interval(x).isel(instance=0)
    for part in ("mean", "low", "high"):
        np.testing.assert_allclose(whole[part], single[part])


def test_two_instances_are_welch() -> None:
    x = symmetric(2, 8) * [[1.0], [4.0]]
    found = mean_interval(array(x, "instance", "replicate"), average_instances=True)
    # mean(a) − mean(−b) is the sum, of which the average is half
    welch = stats.ttest_ind(x[0], -x[1], equal_var=False).confidence_interval()
    np.testing.assert_allclose([found["low"], found["high"]], np.array(welch) / 2, rtol=1e-12)


def test_over_instances_each_counts_with_its_mean() -> None:
    x = RANDOM.exponential(size=(20, 4))
    found = mean_interval(array(x, "instance", "replicate"), over="instance")
    alone = mean_interval(array(x.mean(1), "replicate"))
    assert all(float(found[part]) == pytest.approx(float(alone[part])) for part in ("mean", "low", "high"))
    apart = paired_difference(array(x + 1, "instance", "replicate"), array(x, "instance", "replicate"), over="instance")
    assert float(apart["low"]) == pytest.approx(1) == float(apart["high"])


def test_the_spread_between_instances_does_not_widen_the_interval() -> None:
    x = RANDOM.normal(size=(4, 20))
    apart = x + 1000 * np.arange(4)[:, None]
    near, far = (mean_interval(array(y, "instance", "replicate"), average_instances=True) for y in (x, apart))
    np.testing.assert_allclose(near["high"] - near["low"], far["high"] - far["low"], rtol=1e-6)


def test_coverage_over_instances_of_unequal_noise() -> None:
    scale = np.array([0.1, 1.0, 5.0])[:, None, None]
    x = scale * RANDOM.normal(size=(3, 4000, 6))
    found = mean_interval(array(x, "instance", "experiment", "replicate"), average_instances=True)
    covered = ((found["low"] <= 0) & (found["high"] >= 0)).mean()
    assert abs(float(covered) - 0.95) < 0.015


def test_equal_values_have_an_interval_of_no_width_and_one_replicate_has_none() -> None:
    same = mean_interval(array(np.full((2, 5), 3.0), "instance", "replicate"), average_instances=True)
    assert (float(same["low"]), float(same["high"])) == (3.0, 3.0)
    with np.errstate(all="raise"):
        single = mean_interval(array(np.full((2, 1), 3.0), "instance", "replicate"), average_instances=True)
    assert float(single["mean"]) == 3.0
    assert np.isnan(single["low"]) and np.isnan(single["high"])


def test_pairing_removes_what_both_share() -> None:
    shared = RANDOM.normal(0, 100, size=50)
    x = array(shared + RANDOM.normal(1, 0.1, 50), "replicate")
    y = array(shared, "replicate")
    found = paired_difference(x, y)
    assert bool(found["clear"]) and float(found["high"] - found["low"]) < 0.1
    assert not bool(paired_difference(y, y)["clear"])


def test_errors() -> None:
    x = xarray.DataArray([1.0, 2.0], dims="replicate", coords={"replicate": [0, 1]})
    with pytest.raises(InputError, match="must have an axis 'replicate'"):
        mean_interval(array(np.ones(3), "instance"))
    with pytest.raises(InputError, match="must have an axis 'instance'"):
        mean_interval(x, average_instances=True)
    with pytest.raises(InputError, match="level"):
        mean_interval(x, level=1.0)
    with pytest.raises(InputError, match="labels on the axis 'replicate'"):
        paired_difference(x, x.assign_coords(replicate=[1, 2]))
    seeds = x.rename(replicate="seed")  # xarray alone would take the one that both have
    with pytest.raises(InputError, match="labels on the axis 'seed'"):
        paired_difference(seeds, seeds.assign_coords(seed=[1, 2]), over="seed")
