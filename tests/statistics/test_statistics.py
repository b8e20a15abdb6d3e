"""Estimates, intervals, bands: textbook and scipy numbers, coverage, warnings, errors."""

from __future__ import annotations

import inspect
import math
import re

import numpy as np
import pytest
import xarray
from scipy import stats

import jaxbandits as jb
from jaxbandits.core.checks import InputError
from jaxbandits.statistics import (
    bootstrap_interval,
    cvar,
    estimates,
    invisible,
    mean,
    median,
    paired,
    quantile,
    simultaneous_band,
    tail_share,
)
from jaxbandits.statistics.estimates import corrected

RANDOM = np.random.default_rng(7)


def array(values: np.ndarray, *axes: str) -> xarray.DataArray:
    return xarray.DataArray(values, dims=axes)


def symmetric(*shape: int) -> np.ndarray:
    """Samples without skewness along the last axis, whose intervals need no correction."""
    half = RANDOM.exponential(size=(*shape[:-1], shape[-1] // 2))
    return np.concatenate([half, -half], axis=-1) + RANDOM.normal(size=(*shape[:-1], 1))


def test_one_instance_is_the_t_interval() -> None:
    x = symmetric(3, 12)
    interval = mean(array(x, "setting", "replicate"), over="replicate", level=0.9)
    for i in range(3):
        expected = stats.ttest_1samp(x[i], 0).confidence_interval(0.9)
        np.testing.assert_allclose([interval.low[i], interval.high[i]], expected, rtol=1e-12)
    np.testing.assert_allclose(interval.value, x.mean(1))


def test_two_instances_are_welch() -> None:
    x = symmetric(2, 8) * [[1.0], [4.0]]
    interval = mean(array(x, "instance", "replicate"), over="replicate")
    # mean(a) − mean(−b) is the sum, of which the average is half
    welch = stats.ttest_ind(x[0], -x[1], equal_var=False).confidence_interval()
    np.testing.assert_allclose([interval.low, interval.high], np.array(welch) / 2, rtol=1e-12)
    per_instance = mean(array(x, "instance", "replicate").rename(instance="each"), over="replicate")
    alone = [mean(of_one, over="replicate") for of_one in x]
    assert per_instance.low.dims == ("each",) and per_instance.low.values.tolist() == pytest.approx(
        [estimate.low for estimate in alone]
    )


def test_over_instances_each_counts_with_its_mean() -> None:
    x = RANDOM.exponential(size=(20, 4))
    interval = mean(array(x, "instance", "replicate"), over="instance")
    alone = mean(x.mean(1), over="instance")
    assert (interval.value, interval.low, interval.high) == pytest.approx(
        (alone.value, alone.low, alone.high)
    )
    difference = paired(array(x + 1, "instance", "replicate"), array(x, "instance", "replicate"))
    apart = mean(difference, over="instance")
    assert apart.low == pytest.approx(1) == apart.high


def test_over_is_said_by_the_caller() -> None:
    defaults = {
        name: inspect.signature(getattr(jb.statistics, name)).parameters
        for name in jb.statistics.__all__
    }
    defaults = {
        name: parameters["over"].default
        for name, parameters in defaults.items()
        if "over" in parameters
    }
    assert len(defaults) == 11 and set(defaults.values()) == {inspect.Parameter.empty}, defaults


def names(warnings: tuple[str, ...]) -> set[str]:
    return {line.split(":")[0] for line in warnings}


def holds(interval: jb.statistics.Estimate, truth: float | np.ndarray = 0.0) -> float:
    """The share of experiments whose intervals, or whole curves, hold the truth."""
    inside = (interval.low <= truth) & (truth <= interval.high)
    return float(inside.all("mark").mean() if "mark" in inside.dims else inside.mean())


def near(share: float, size: int, level: float = 0.95) -> bool:
    """Within 3.5 standard errors of the level, and 1 % for what the method is off by."""
    return abs(share - level) < 0.01 + 3.5 * math.sqrt(level * (1 - level) / size)


@pytest.mark.parametrize("skew", [0.0, 0.02, 0.3, -1.1])
def test_the_correction_is_the_inverse_of_halls_transformation(skew: float) -> None:
    critical, a = np.linspace(-4, 4, 9), 0.95 * skew
    t = corrected(critical, np.full(9, skew))
    np.testing.assert_allclose(
        t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6, critical, rtol=1e-9, atol=1e-9
    )


def test_means_cover_skewed_laws() -> None:
    x = np.random.default_rng(1).exponential(size=(20, 4000))
    estimate = mean(array(x, "instance", "experiment"), over="instance")
    assert estimate.value.dims == ("experiment",) and near(holds(estimate, 1.0), 4000)
    t = stats.t.ppf(0.975, 19) * x.std(0, ddof=1) / math.sqrt(20)
    assert np.mean(abs(x.mean(0) - 1) <= t) < 0.93  # Student's does not


@pytest.mark.parametrize("q", [0.5, 0.9])
def test_quantiles_cover_heavy_tails(q: float) -> None:
    x = np.random.default_rng(3).pareto(0.8, size=(60, 3000))  # without a mean
    estimate = quantile(array(x, "instance", "experiment"), q, over="instance")
    assert near(holds(estimate, (1 - q) ** (-1 / 0.8) - 1), 3000)


def test_the_median_is_that_of_hettmansperger_and_sheather() -> None:
    """n = 10: x₍₂₎ and x₍₃₎ have levels 97.85 and 89.06 %, between which the interval of 95 % lies."""
    x = np.arange(1.0, 11.0) ** 2
    estimate = median(x, over="instance")
    part = (0.978515625 - 0.95) / (0.978515625 - 0.890625)
    weight = 8 * part / (2 + 6 * part)
    assert estimate.value == 30.5
    np.testing.assert_allclose(
        [estimate.low, estimate.high], [4 + 5 * weight, 81 - 17 * weight], rtol=1e-9
    )


def test_a_sample_has_no_end_for_a_quantile_beyond_it() -> None:
    short, enough = (quantile(np.arange(float(n)), 0.99, over="instance") for n in (367, 368))
    assert (
        short.high == math.inf
        and names(short.warnings) == {"no end"}
        and "368 can" in short.warnings[0]
    )
    assert enough.high <= 367 and enough.warnings == ()
    assert np.isneginf(quantile(np.arange(20.0), 0.01, over="instance").low)


def test_the_worst_by_hand() -> None:
    x = np.arange(1.0, 101.0)
    worst = cvar(x, 0.1, over="instance")
    assert worst.value == 95.5
    part = cvar(x, 0.015, over="instance").value
    assert part == pytest.approx((100 + 99 * 0.5) / 1.5)  # a part of a unit counts as a part
    assert cvar(x, 0.001, over="instance").value == 100
    assert tail_share(x, 0.1, over="instance").value == pytest.approx(955 / 5050)
    assert names(worst.warnings) == {"few in the tail"} and "take 110" in worst.warnings[0]


def test_the_worst_cover() -> None:
    x = np.random.default_rng(4).exponential(size=(400, 1500))
    worst, share = (
        f(array(x, "instance", "experiment"), 0.1, over="instance") for f in (cvar, tail_share)
    )
    assert 0.92 < holds(worst, 1 + math.log(10)) < 0.98
    assert 0.92 < holds(share, 0.1 * (1 + math.log(10))) < 0.98
    assert names(cvar(x[:, 0], 0.1, over="instance").warnings) == set()


def test_what_two_of_a_hundred_carry_is_said() -> None:
    x = array(np.r_[np.ones(98), 100.0, 179.0], "instance")
    assert tail_share(x, 0.02, over="instance").value == pytest.approx(0.74, abs=0.001)
    messages = mean(x, over="instance").warnings
    assert (
        "heavy tail: 2 of 100 instances carry 74% of this mean: more instances will move it"
        in messages
    )
    single = mean(array(np.r_[np.linspace(0, 1, 29), 100.0], "seed"), over="seed").warnings
    assert names(single) == {"heavy tail", "one unit decides", "skewed"}
    assert "1 of 30 seeds carries 87%" in single[0]


def test_few_units_are_said_and_the_worst_of_many_samples() -> None:
    x = np.random.default_rng(5).normal(5, 1, size=(12, 3))
    assert mean(array(x, "instance", "setting"), over="instance").warnings == ()
    assert names(mean(array(x[:10], "instance", "setting"), over="instance").warnings) == {
        "few units"
    }
    assert names(
        mean(
            array(x[:10].reshape(5, 2, 3), "instance", "replicate", "s"), over="replicate"
        ).warnings
    ) == {"few units"}
    x[0, 1] = 200
    (message, *_) = mean(array(x, "instance", "setting"), over="instance").warnings
    assert message.startswith("heavy tail: 1 of 12 instances carries") and message.endswith(
        "(1 among 3)"
    )


@pytest.mark.parametrize("law", ["normal", "uniform", "exponential"])
def test_tame_laws_are_seldom_warned_of(law: str) -> None:
    x = getattr(np.random.default_rng(6), law)(size=(20, 2000))
    wrong = sum(bool(names(mean(sample, over="instance").warnings)) for sample in x.T[:500])
    assert wrong / 500 < 0.1 + 3 * math.sqrt(0.1 * 0.9 / 500) / 2


def test_over_any_axis_and_what_is_left() -> None:
    x = array(np.random.default_rng(7).normal(size=(2, 3, 30)), "setting", "mark", "seed")
    estimate = mean(x.assign_coords(setting=["a", "b"]), over="seed")
    assert estimate.value.dims == ("setting", "mark")
    assert list(estimate.low["setting"].values) == ["a", "b"]
    assert float(estimate.low[1, 2]) == pytest.approx(mean(x[1, 2].values, over="instance").low)
    twice = array(np.random.default_rng(8).normal(size=(30, 2)), "instance", "replicate")
    both = mean(twice, over="instance")
    assert both.units == 30
    assert both.low == pytest.approx(mean(twice.values.mean(1), over="instance").low)


def test_blocks_of_places_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x = array(np.random.default_rng(9).lognormal(0, 2.5, size=(40, 30)), "instance", "experiment")
    whole = mean(x, over="instance")
    monkeypatch.setattr(estimates, "_AT_ONCE", 100)  # two places at once
    parts = mean(x, over="instance")
    np.testing.assert_array_equal(whole.low, parts.low)
    assert whole.warnings == parts.warnings and len(parts.warnings) > 1


def test_equal_units_have_an_interval_of_no_width_and_one_has_none() -> None:
    same, single = mean(np.full(20, 3.0), over="instance"), mean(np.array([3.0]), over="instance")
    assert (same.value, same.low, same.high, same.warnings) == (3.0, 3.0, 3.0, ())
    assert math.isnan(single.low) and names(single.warnings) == {"few units"}
    assert cvar(np.full(200, 3.0), 0.1, over="instance").high == 3.0
    with np.errstate(all="raise"):
        alone = mean(array(np.full((2, 1), 3.0), "instance", "replicate"), over="replicate")
    assert alone.value == 3.0 and np.isnan(alone.low) and np.isnan(alone.high)
    x = np.stack([np.full(9, 3.0), np.arange(9.0)])
    interval = bootstrap_interval(array(x, "setting", "instance"), over="instance")
    assert (float(interval.low[0]), float(interval.high[0])) == (3.0, 3.0)
    assert float(interval.low[1]) < 4 < float(interval.high[1])
    assert np.isnan(
        bootstrap_interval(array(np.ones((2, 1)), "setting", "instance"), over="instance").low
    ).all()
    assert np.isnan(
        simultaneous_band(array(np.ones((1, 4)), "instance", "mark"), over="instance").low
    ).all()


def test_it_is_the_studentised_bootstrap_by_hand() -> None:
    x = np.random.default_rng(1).exponential(size=36)
    interval = bootstrap_interval(
        array(x, "instance"), level=0.9, resamples=4000, seed=3, over="instance"
    )
    resamples = np.random.default_rng(2).choice(x, size=(40_000, 36))
    t = (resamples.mean(1) - x.mean()) / (resamples.std(1, ddof=0) / np.sqrt(35))
    expected = x.mean() - np.quantile(t, [0.95, 0.05]) * x.std(ddof=1) / 6
    np.testing.assert_allclose([interval.low, interval.high], expected, atol=0.05)
    assert interval.high - x.mean() > 1.3 * (x.mean() - interval.low)  # it follows the skew


def test_runs_of_given_instances_are_resampled_within_each() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(5, 40)) + 1000 * np.arange(5)[:, None]
    over_runs = bootstrap_interval(array(x, "instance", "replicate"), over="replicate")
    over_instances = bootstrap_interval(array(x, "instance", "replicate"), over="instance")
    t = mean(array(x, "instance", "replicate"), over="replicate")
    width, ordinary = over_runs.high - over_runs.low, t.high - t.low
    assert abs(width / ordinary - 1) < 0.15  # both estimate the same standard error
    assert (
        over_instances.high - over_instances.low > 100 * width
    )  # here the spread between instances counts
    assert over_runs.value == pytest.approx(over_instances.value)


def walks(experiments: int, units: int, places: int, seed: int) -> np.ndarray:
    """Curves with mean 0 whose places depend on each other, ``[experiment, unit, place]``."""
    return np.random.default_rng(seed).normal(size=(experiments, units, places)).cumsum(axis=2)


def test_a_band_holds_the_whole_curve_as_often_as_asked_for() -> None:
    x = array(walks(300, 50, 12, 6), "experiment", "instance", "mark")
    band = simultaneous_band(x, resamples=400, over="instance")
    assert near(holds(band), 300)
    single = mean(x, over="instance")
    assert holds(single) < 0.88  # intervals place by place do not
    critical = ((band.high - band.low) / (single.high - single.low)).mean() * stats.t.isf(0.025, 49)
    # Below Bonferroni's
    assert stats.t.isf(0.025, 49) < float(critical) < stats.t.isf(0.025 / 12, 49)


def test_a_band_over_given_instances_covers_too() -> None:
    scale = np.array([0.2, 1.0, 4.0])[:, None, None]
    x = np.stack([walks(200, 25, 8, 7 + i) for i in range(3)], axis=1) * scale
    curves = array(x, "experiment", "instance", "replicate", "mark")
    assert near(holds(simultaneous_band(curves, over="replicate", resamples=400)), 200)


def test_a_band_over_more_axes_is_wider_and_constant_places_have_no_width() -> None:
    x = walks(4, 60, 6, 8)
    x[:, :, 0] = 0.1
    curves = array(x, "setting", "instance", "mark")
    bands = simultaneous_band(curves, over="instance")
    all_ = simultaneous_band(curves, along=("setting", "mark"), over="instance")
    assert bool((all_.high - all_.low >= bands.high - bands.low).all())
    np.testing.assert_allclose(bands.high[:, 0] - bands.low[:, 0], 0, atol=1e-12)
    again = simultaneous_band(curves, over="instance")
    # The same seed, the same band
    assert again.low.identical(bands.low) and again.high.identical(bands.high)


def test_one_unit_that_differs_does_not_blow_up_the_band() -> None:
    x = walks(1, 100, 6, 9)[0]
    x[:, 0] = 0.0
    x[3, 0] = 5.0  # a third of the resamples miss this unit, and have no spread there
    band = simultaneous_band(array(x, "instance", "mark"), over="instance")
    assert bool((band.high > band.low).all())
    assert bool((band.high - band.value < 4 * x.std(0, ddof=1) / 10).all())


@pytest.mark.parametrize("count", [2, 5])
def test_strata_of_few_units_have_welch_and_satterthwaites_interval(count: int) -> None:
    """Resampled, 19 × 2 runs cover 77 %: half of the resamples of 2 units have no spread."""
    rng = np.random.default_rng(10)
    x = array(rng.exponential(size=(19, count, 800)), "instance", "replicate", "experiment")
    interval = bootstrap_interval(x, over="replicate")
    assert near(holds(interval, 1.0), 800)
    t = mean(x, over="replicate")
    np.testing.assert_allclose(interval.low, t.low)


@pytest.mark.parametrize(("strata", "count"), [(12, 2), (1, 8)])
def test_bands_of_few_units_hold_the_whole_curve(strata: int, count: int) -> None:
    x = walks(strata * 300, count, 6, 11).reshape(strata, 300, count, 6).swapaxes(1, 2)
    curves = array(x, "instance", "replicate", "experiment", "mark")
    assert near(holds(simultaneous_band(curves, over="replicate", resamples=300)), 300)


def test_bands_follow_the_skew() -> None:
    """Lognormal units with one size for the whole curve; bands x̄ ± q se hold 84 % of such curves."""
    rng = np.random.default_rng(12)
    x = rng.lognormal(0, 1, size=(300, 50, 1)) * np.linspace(0.2, 1, 5)
    band = simultaneous_band(
        array(x, "experiment", "instance", "mark"), resamples=300, over="instance"
    )
    truth = np.exp(0.5) * np.linspace(0.2, 1, 5)
    assert holds(band, truth) > 0.89


@pytest.mark.parametrize("of", [mean, bootstrap_interval])
def test_pairing_removes_what_both_share(of) -> None:
    shared = RANDOM.normal(0, 100, size=50)
    x, y = array(shared + RANDOM.normal(1, 0.1, 50), "replicate"), array(shared, "replicate")
    estimate = of(paired(x, y), over="replicate")
    assert 0.9 < estimate.low < estimate.high < 1.1
    same = of(paired(y, y), over="replicate")
    assert same.low == same.high == 0


def test_what_is_invisible() -> None:
    """At the rate that is said n units show none with probability 5 % at least."""
    for count in (1, 2, 20, 60, 1000):
        rate = float(re.search(r"up to ([\d.]+)%", invisible(count, "replicate"))[1]) / 100
        assert (1 - rate) ** count == pytest.approx(0.05, rel=0.2) and rate <= 3 / count
    assert invisible(60, "instance").startswith(
        "what 60 instances did not show may still happen in up to 4.9% of all"
    )


X = array(np.ones((3, 2)), "instance", "mark")
RUNS = xarray.DataArray([1.0, 2.0], dims="replicate", coords={"replicate": [0, 1]})
SEEDS = RUNS.rename(replicate="seed")  # xarray alone would take the labels that both have


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean(X, over="run"), r"x: an array with axes .* given"),
        (lambda: mean(np.ones((3, 2)), over="run"), r"x: a plain array of shape \(3, 2\) given"),
        (lambda: mean("regret", over="instance"), "x: 'regret' given"),
        (lambda: mean([1.0, np.nan], over="run"), "x: 'NaN or infinity' given; it must be finite"),
        (lambda: mean(np.array([]), over="instance"), "x: 'no unit' given"),
        (lambda: mean(X, level=1.0, over="instance"), "level: 1.0 given"),
        (lambda: quantile(X, 99, over="instance"), r"q: 99 given; it must be a number in \(0, 1\)"),
        (lambda: cvar(X, 0, over="instance"), "tail: 0 given"),
        (lambda: tail_share(X, 1, over="instance"), "tail: 1 given"),
        (lambda: paired(RUNS, RUNS.assign_coords(replicate=[1, 2])), "labels on the axis"),
        (lambda: paired(SEEDS, SEEDS.assign_coords(seed=[1, 2])), "labels on the axis 'seed'"),
        (lambda: bootstrap_interval(X, over="run"), "must have an axis 'run'"),
        (lambda: bootstrap_interval(X, level=1.0, over="instance"), "level: 1.0 given"),
        (lambda: bootstrap_interval(X, resamples=10, over="instance"), "resamples: 10 given"),
        (lambda: simultaneous_band(X, along="time", over="instance"), "must have an axis 'time'"),
    ],
)
def test_errors(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
