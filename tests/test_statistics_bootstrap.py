"""Bootstrap intervals and simultaneous bands: coverage by simulation, exact cases, errors."""

from __future__ import annotations

import numpy as np
import pytest
import xarray
from scipy import stats

from jaxbandits.core.errors import InputError
from jaxbandits.statistics import bootstrap_difference, bootstrap_interval, mean_interval, simultaneous_band


def array(values: np.ndarray, *axes: str) -> xarray.DataArray:
    return xarray.DataArray(values, dims=axes)


def share(hits: np.ndarray) -> tuple[float, float]:
    """Share of hits, and the standard error that it has if the true share is 95 %."""
    return float(hits.mean()), float(np.sqrt(0.95 * 0.05 / hits.size))


def test_it_is_the_studentised_bootstrap_by_hand() -> None:
    x = np.random.default_rng(1).exponential(size=36)
    found = bootstrap_interval(array(x, "instance"), level=0.9, resamples=4000, seed=3)
    drawn = np.random.default_rng(2).choice(x, size=(40_000, 36))
    t = (drawn.mean(1) - x.mean()) / (drawn.std(1, ddof=0) / np.sqrt(35))
    expected = x.mean() - np.quantile(t, [0.95, 0.05]) * x.std(ddof=1) / 6
    np.testing.assert_allclose([found["low"], found["high"]], expected, atol=0.05)
    assert float(found["high"] - x.mean()) > 1.3 * float(x.mean() - found["low"])  # it follows the skew


def test_coverage_over_instances_is_that_asked_for() -> None:
    x = np.random.default_rng(2).normal(size=(400, 60))
    found = bootstrap_interval(array(x, "experiment", "instance"), resamples=600)
    covered, error = share(((found["low"] <= 0) & (found["high"] >= 0)).values)
    assert abs(covered - 0.95) < 3.5 * error  # ± 3.8 %; an interval half as wide would cover 67 %


def test_runs_of_given_instances_are_resampled_within_each() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(5, 40)) + 1000 * np.arange(5)[:, None]
    given = bootstrap_interval(array(x, "instance", "replicate"), over="replicate")
    drawn = bootstrap_interval(array(x, "instance", "replicate"), over="instance")
    t = mean_interval(array(x, "instance", "replicate"), average_instances=True)
    width, ordinary = float(given["high"] - given["low"]), float(t["high"] - t["low"])
    assert abs(width / ordinary - 1) < 0.15  # both estimate the same standard error
    assert float(drawn["high"] - drawn["low"]) > 100 * width  # here the spread between instances counts
    assert float(given["mean"]) == pytest.approx(float(drawn["mean"]))


def test_units_that_are_equal_have_no_width_and_one_has_no_interval() -> None:
    x = np.stack([np.full(9, 3.0), np.arange(9.0)])
    found = bootstrap_interval(array(x, "setting", "instance"))
    assert (float(found["low"][0]), float(found["high"][0])) == (3.0, 3.0)
    assert float(found["low"][1]) < 4 < float(found["high"][1])
    single = bootstrap_interval(array(np.ones((2, 1)), "setting", "instance"))
    assert np.isnan(single["low"]).all() and float(single["mean"][0]) == 1.0
    assert np.isnan(simultaneous_band(array(np.ones((1, 4)), "instance", "mark"))["low"]).all()


def test_pairing_removes_what_both_share() -> None:
    rng = np.random.default_rng(5)
    shared = rng.normal(0, 100, 50)
    x, y = array(shared + rng.normal(1, 0.1, 50), "instance"), array(shared, "instance")
    assert bool(bootstrap_difference(x, y)["clear"])
    assert not bool(bootstrap_difference(y, y)["clear"])


def walks(experiments: int, units: int, places: int, seed: int) -> np.ndarray:
    """Curves with mean 0 whose places depend on each other, ``[experiment, unit, place]``."""
    return np.random.default_rng(seed).normal(size=(experiments, units, places)).cumsum(axis=2)


def test_a_band_holds_the_whole_curve_as_often_as_asked_for() -> None:
    x = array(walks(300, 50, 12, 6), "experiment", "instance", "mark")
    band = simultaneous_band(x, resamples=400)
    covered, error = share(((band["low"] <= 0) & (band["high"] >= 0)).all("mark").values)
    assert abs(covered - 0.95) < 3.5 * error
    single = mean_interval(x.rename(instance="replicate"))
    apart, _ = share(((single["low"] <= 0) & (single["high"] >= 0)).all("mark").values)
    assert apart < 0.95 - 5 * error  # intervals place by place do not
    critical = ((band["high"] - band["low"]) / (single["high"] - single["low"])).mean() * stats.t.isf(0.025, 49)
    assert stats.t.isf(0.025, 49) < float(critical) < stats.t.isf(0.025 / 12, 49)  # below Bonferroni's


def test_a_band_over_given_instances_covers_too() -> None:
    scale = np.array([0.2, 1.0, 4.0])[:, None, None]
    x = np.stack([walks(200, 25, 8, 7 + i) for i in range(3)], axis=1) * scale
    band = simultaneous_band(array(x, "experiment", "instance", "replicate", "mark"), over="replicate", resamples=400)
    covered, error = share(((band["low"] <= 0) & (band["high"] >= 0)).all("mark").values)
    assert abs(covered - 0.95) < 3.5 * error


def test_a_band_over_more_axes_is_wider_and_constant_places_have_no_width() -> None:
    x = walks(4, 60, 6, 8)
    x[:, :, 0] = 0.1
    curves = array(x, "setting", "instance", "mark")
    each, all_ = simultaneous_band(curves), simultaneous_band(curves, along=("setting", "mark"))
    assert bool((all_["high"] - all_["low"] >= each["high"] - each["low"]).all())
    np.testing.assert_allclose(each["high"][:, 0] - each["low"][:, 0], 0, atol=1e-12)
    again = simultaneous_band(curves)
    assert again.identical(each)  # the same seed, the same band


def test_one_unit_that_differs_does_not_blow_up_the_band() -> None:
    x = walks(1, 100, 6, 9)[0]
    x[:, 0] = 0.0
    x[3, 0] = 5.0  # a third of the resamples miss this unit, and have no spread there
    band = simultaneous_band(array(x, "instance", "mark"))
    assert bool((band["high"] > band["low"]).all())
    assert bool((band["high"] - band["mean"] < 4 * x.std(0, ddof=1) / 10).all())


@pytest.mark.parametrize("count", [2, 5])
def test_strata_of_few_units_have_welch_and_satterthwaites_interval(count: int) -> None:
    """Resampled, 19 × 2 runs cover 77 %: half of the resamples of 2 units have no spread."""
    rng = np.random.default_rng(10)
    x = array(rng.exponential(size=(19, count, 800)), "instance", "replicate", "experiment")
    found = bootstrap_interval(x, over="replicate")
    covered, error = share(((found["low"] <= 1) & (found["high"] >= 1)).values)
    assert abs(covered - 0.95) < 3.5 * error
    t = mean_interval(x, average_instances=True)
    np.testing.assert_allclose(found["low"], t["low"])


@pytest.mark.parametrize(("strata", "count"), [(12, 2), (1, 8)])
def test_bands_of_few_units_hold_the_whole_curve(strata: int, count: int) -> None:
    x = walks(strata * 300, count, 6, 11).reshape(strata, 300, count, 6).swapaxes(1, 2)
    band = simultaneous_band(array(x, "instance", "replicate", "experiment", "mark"), over="replicate", resamples=300)
    covered, error = share(((band["low"] <= 0) & (band["high"] >= 0)).all("mark").values)
    assert abs(covered - 0.95) < 3.5 * error


def test_bands_follow_the_skew() -> None:
    """Lognormal units with one size for the whole curve; bands x̄ ± q se hold 84 % of such curves."""
    rng = np.random.default_rng(12)
    x = rng.lognormal(0, 1, size=(300, 50, 1)) * np.linspace(0.2, 1, 5)
    band = simultaneous_band(array(x, "experiment", "instance", "mark"), resamples=300)
    truth = np.exp(0.5) * np.linspace(0.2, 1, 5)
    covered, error = share(((band["low"] <= truth) & (band["high"] >= truth)).all("mark").values)
    assert covered > 0.92 - 3 * error


def test_errors() -> None:
    x = array(np.ones((3, 2)), "instance", "mark")
    for call, what in (
        (lambda: bootstrap_interval(x, over="run"), "must have an axis 'run'"),
        (lambda: bootstrap_interval(x, over="replicate"), "must have an axis 'replicate'"),
        (lambda: bootstrap_interval(x, level=1.0), "level: 1.0 given"),
        (lambda: bootstrap_interval(x, resamples=10), "resamples: 10 given"),
        (lambda: simultaneous_band(x, along="time"), "must have an axis 'time'"),
    ):
        with pytest.raises(InputError, match=what):
            call()
