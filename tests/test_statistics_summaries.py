"""Estimates with intervals and warnings: scipy's numbers, coverage by simulation, what is said of doubtful samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray
from scipy import stats

import jaxbandits as jb
from jaxbandits.core.errors import InputError
from jaxbandits.statistics import cvar, invisible, mean, median, quantile, sample, tail_share
from jaxbandits.statistics.means import corrected


def array(values: np.ndarray, *axes: str) -> xarray.DataArray:
    return xarray.DataArray(values, dims=axes)


def names(warnings: tuple[str, ...]) -> set[str]:
    return {line.split(":")[0] for line in warnings}


def covered(found: jb.statistics.Estimate, truth: float) -> float:
    return float(((found.low <= truth) & (truth <= found.high)).mean())


def near(share: float, size: int, level: float = 0.95) -> bool:
    """Within 3.5 standard errors of the level, and 1 % for what the method is off by."""
    return abs(share - level) < 0.01 + 3.5 * math.sqrt(level * (1 - level) / size)


def test_a_symmetric_sample_has_students_interval() -> None:
    x = np.r_[stats.norm.ppf((np.arange(40) + 0.5) / 40)] + 3
    found = mean(x)
    expected = stats.ttest_1samp(x, 0).confidence_interval()
    np.testing.assert_allclose([found.value, found.low, found.high], [x.mean(), *expected], rtol=1e-9)
    assert found.warnings == () and found.units == 40 and str(found).startswith("3 (2.68")


def test_skewness_moves_the_interval_to_where_the_tail_is() -> None:
    x = np.random.default_rng(0).exponential(size=30)
    up, down, t = mean(x), mean(-x), stats.ttest_1samp(x, 0).confidence_interval()
    assert up.low > t.low and up.high > t.high
    np.testing.assert_allclose([down.low, down.high], [-up.high, -up.low], rtol=1e-12)


@pytest.mark.parametrize("skew", [0.0, 0.02, 0.3, -1.1])
def test_the_correction_is_the_inverse_of_halls_transformation(skew: float) -> None:
    critical, a = np.linspace(-4, 4, 9), 0.95 * skew
    t = corrected(critical, np.full(9, skew))
    np.testing.assert_allclose(t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6, critical, rtol=1e-9, atol=1e-9)


def test_means_cover_skewed_laws() -> None:
    x = np.random.default_rng(1).exponential(size=(20, 4000))
    found = mean(array(x, "instance", "experiment"))
    assert found.value.dims == ("experiment",) and near(covered(found, 1.0), 4000)
    t = stats.t.ppf(0.975, 19) * x.std(0, ddof=1) / math.sqrt(20)
    assert np.mean(abs(x.mean(0) - 1) <= t) < 0.93  # Student's does not


def test_means_over_given_instances_with_two_runs_each_cover() -> None:
    rng = np.random.default_rng(2)
    x = rng.exponential(size=(19, 2, 2000)) + 100 * np.arange(19)[:, None, None]
    found = mean(array(x, "instance", "replicate", "experiment"), over="replicate")
    assert 0.94 < covered(found, 901.0) < 0.98 and found.units == 38
    assert abs(found.high - found.low).mean() < 2  # the spread between instances does not count


@pytest.mark.parametrize("q", [0.5, 0.9])
def test_quantiles_cover_heavy_tails(q: float) -> None:
    x = np.random.default_rng(3).pareto(0.8, size=(60, 3000))  # without a mean
    found = quantile(array(x, "instance", "experiment"), q)
    assert near(covered(found, (1 - q) ** (-1 / 0.8) - 1), 3000)


def test_the_median_is_that_of_hettmansperger_and_sheather() -> None:
    """n = 10: x₍₂₎ and x₍₃₎ have levels 97.85 and 89.06 %, between which the interval of 95 % lies."""
    x = np.arange(1.0, 11.0) ** 2
    found = median(x)
    part = (0.978515625 - 0.95) / (0.978515625 - 0.890625)
    weight = 8 * part / (2 + 6 * part)
    assert found.value == 30.5
    np.testing.assert_allclose([found.low, found.high], [4 + 5 * weight, 81 - 17 * weight], rtol=1e-9)


def test_a_sample_has_no_end_for_a_quantile_beyond_it() -> None:
    few, enough = (quantile(np.arange(float(n)), 0.99) for n in (367, 368))
    assert few.high == math.inf and names(few.warnings) == {"no end"} and "368 can" in few.warnings[0]
    assert enough.high <= 367 and enough.warnings == ()
    assert np.isneginf(quantile(np.arange(20.0), 0.01).low)


def test_the_worst_by_hand() -> None:
    x = np.arange(1.0, 101.0)
    assert cvar(x, 0.1).value == 95.5
    assert cvar(x, 0.015).value == pytest.approx((100 + 99 * 0.5) / 1.5)  # a part of a unit counts as a part
    assert cvar(x, 0.001).value == 100
    assert tail_share(x, 0.1).value == pytest.approx(955 / 5050)
    assert names(cvar(x, 0.1).warnings) == {"few in the tail"} and "take 110" in cvar(x, 0.1).warnings[0]


def test_the_worst_cover() -> None:
    x = np.random.default_rng(4).exponential(size=(400, 1500))
    found, share = (f(array(x, "instance", "experiment"), 0.1) for f in (cvar, tail_share))
    assert 0.92 < covered(found, 1 + math.log(10)) < 0.98
    assert 0.92 < covered(share, 0.1 * (1 + math.log(10))) < 0.98
    assert names(cvar(x[:, 0], 0.1).warnings) == set()


def test_what_two_of_a_hundred_carry_is_said() -> None:
    x = array(np.r_[np.ones(98), 100.0, 179.0], "instance")
    assert tail_share(x, 0.02).value == pytest.approx(0.74, abs=0.001)
    said = mean(x).warnings
    assert "heavy tail: 2 of 100 instances carry 74% of this mean: more instances will move it" in said
    one = mean(array(np.r_[np.linspace(0, 1, 29), 100.0], "seed"), over="seed").warnings
    assert names(one) == {"heavy tail", "one unit decides", "skewed"} and "1 of 30 seeds carries 87%" in one[0]


def test_few_units_are_said_and_the_worst_of_many_samples() -> None:
    x = np.random.default_rng(5).normal(5, 1, size=(12, 3))
    assert mean(array(x, "instance", "setting")).warnings == ()
    assert names(mean(array(x[:10], "instance", "setting")).warnings) == {"few units"}
    assert names(mean(array(x[:10].reshape(5, 2, 3), "instance", "replicate", "s"), over="replicate").warnings) == {
        "few units"
    }
    x[0, 1] = 200
    (said, *_) = mean(array(x, "instance", "setting")).warnings
    assert said.startswith("heavy tail: 1 of 12 instances carries") and said.endswith("(1 among 3)")


@pytest.mark.parametrize("law", ["normal", "uniform", "exponential"])
def test_tame_laws_are_seldom_warned_of(law: str) -> None:
    x = getattr(np.random.default_rng(6), law)(size=(20, 2000))
    wrong = sum(bool(names(mean(sample).warnings)) for sample in x.T[:500])
    assert wrong / 500 < 0.1 + 3 * math.sqrt(0.1 * 0.9 / 500) / 2


def test_over_any_axis_and_what_is_left() -> None:
    x = array(np.random.default_rng(7).normal(size=(2, 3, 30)), "setting", "mark", "seed")
    found = mean(x.assign_coords(setting=["a", "b"]), over="seed")
    assert found.value.dims == ("setting", "mark") and list(found.low["setting"].values) == ["a", "b"]
    assert float(found.low[1, 2]) == pytest.approx(mean(x[1, 2].values).low)
    twice = array(np.random.default_rng(8).normal(size=(30, 2)), "instance", "replicate")
    assert mean(twice).units == 30 and mean(twice).low == pytest.approx(mean(twice.values.mean(1)).low)


def test_blocks_of_places_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x = array(np.random.default_rng(9).lognormal(0, 2.5, size=(40, 30)), "instance", "experiment")
    whole = mean(x)
    monkeypatch.setattr(sample, "_AT_ONCE", 100)  # two places at once
    parts = mean(x)
    np.testing.assert_array_equal(whole.low, parts.low)
    assert whole.warnings == parts.warnings and len(parts.warnings) > 1


def test_equal_units_and_one() -> None:
    same, single = mean(np.full(20, 3.0)), mean(np.array([3.0]))
    assert (same.value, same.low, same.high, same.warnings) == (3.0, 3.0, 3.0, ())
    assert math.isnan(single.low) and names(single.warnings) == {"few units"}
    assert cvar(np.full(200, 3.0), 0.1).high == 3.0


def test_what_is_invisible() -> None:
    assert invisible(60, "instance") == "disasters rarer than 3 in 60 are invisible in 60 instances"


def test_errors() -> None:
    x = array(np.ones((3, 2)), "instance", "mark")
    for call, what in (
        (
            lambda: mean(x, over="run"),
            r"x: an array with axes \('instance', 'mark'\) given; it must have an axis 'run'",
        ),
        (lambda: mean(np.ones((3, 2))), r"x: a plain array of shape \(3, 2\) given; it must be labelled"),
        (lambda: mean("regret"), "x: 'regret' given"),
        (lambda: mean(np.array([1.0, np.nan])), "x: 'NaN or infinity' given; it must be finite numbers"),
        (lambda: mean(np.array([])), "x: 'no unit' given"),
        (lambda: mean(x, level=1.0), "level: 1.0 given"),
        (lambda: quantile(x, 99), r"q: 99 given; it must be a number in \(0, 1\)"),
        (lambda: cvar(x, 0), "tail: 0 given"),
        (lambda: tail_share(x, 1), "tail: 1 given"),
    ):
        with pytest.raises(InputError, match=what):
            call()
