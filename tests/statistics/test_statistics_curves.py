"""Curves: what is called clearly worse than the best, how often wrongly, and in which words."""

from __future__ import annotations

import numpy as np
import pytest
import xarray

from jaxbandits.statistics.curves import Curve, cases_of


def of_runs(values, x, over="replicate"):
    """The curve of one policy, all that a report has."""
    (case,) = cases_of([xarray.DataArray(values, dims=("setting", over))], over)
    return Curve.of("p", case, {"rho": np.asarray(x)})


def test_the_indistinguishable_values_contain_the_best_one():
    """12 values, two equally best: left out in at most 5 % of 400 tables, but for chance."""
    rng = np.random.default_rng(3)
    means = np.array([6, 4, 2, 1, 0.5, 0, 0, 0.5, 1, 2, 4, 6.0])
    grid = np.geomspace(0.01, 1, means.size)
    missed = narrow = 0
    for _ in range(400):
        noise = rng.normal(0, 5, 30) + rng.gamma(2, 1, (means.size, 30)) - 2
        curve = of_runs(means[:, None] + noise, grid)
        missed += not curve.indistinguishable[5]
        narrow += not curve.indistinguishable[[0, 1, 10, 11]].any()
    assert missed / 400 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert narrow > 380  # and what is clearly worse is left out


@pytest.mark.parametrize("cells", [1, 4])
@pytest.mark.sample_rows("4")
def test_noise_is_called_clear_in_one_table_of_twenty(cells):
    """Eight policies of one law, the best chosen by looking."""
    rng, tables = np.random.default_rng(4), 400 // cells
    noise = rng.normal(size=(tables, cells, 8, 30)) + rng.normal(0, 3, size=(tables, cells, 1, 30))
    regrets = [
        [xarray.DataArray(x, dims=("setting", "replicate")) for x in table] for table in noise
    ]
    wrong = sum(
        any(case["clear"].any() for case in cases_of(table, "replicate")) for table in regrets
    )
    assert wrong / tables <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / tables)


@pytest.mark.parametrize(("shift", "share"), [(3, 0.65), (-3, 0.65), (5, 0.95)])
@pytest.mark.sample_rows("-3")
def test_a_true_difference_of_three_standard_errors_is_called_clear(shift, share):
    """The first of eight policies is some standard errors worse, or better, than the rest."""
    rng, runs = np.random.default_rng(5), 60
    clear = 0
    for _ in range(300):
        x = rng.normal(size=(8, runs))
        x[0] += shift * np.sqrt(2 / runs)
        (case,) = cases_of([xarray.DataArray(x, dims=("setting", "replicate"))], "replicate")
        best = int(x.mean(axis=1).argmin())
        worse = case["larger"].values
        clear += bool(worse[0, best] if shift > 0 else worse[1:, 0].any())
    assert clear / 300 >= share


def test_recommendation_in_words():
    grid = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    common = np.random.default_rng(0).normal(0, 10, 20)
    wiggle = np.random.default_rng(1).normal(0, 0.1, (5, 20))

    for means, values, words in (
        ([9, 1.01, 1, 1.02, 9], grid, "; not clearly worse: 0.2 to 0.4"),
        ([9, 5, 1, 5, 9], grid, ", clearly better than every other value"),
        ([1.01, 9, 1, 1.02, 9], grid, "; not clearly worse: 0.1 and 0.3 to 0.4"),
        ([9, 1.01, 1, 1.02, 9], grid[::-1], "; not clearly worse: 0.2 to 0.4"),
    ):
        curve = of_runs(np.array(means)[:, None] + common + wiggle, values)
        assert curve.recommendation() == f"rho = 0.3{words}"
    same = of_runs(np.tile([2.0, 1.0, 4.0], (3, 1)), [0.1, 0.2, 0.3])
    assert same.recommendation() == "all values of rho are equal: the same regret in every run"
    single = of_runs(np.array([[2.0], [1.0]]), [0.1, 0.2])
    assert "rho = 0.2" in single.recommendation() and single.indistinguishable.all()


def test_a_curve_says_what_a_few_units_carry():
    means = np.linspace(5, 1, 2)[:, None] + np.random.default_rng(1).normal(size=(2, 60)) / 10
    means[1, :2] = 40.0
    curve = of_runs(means, [0.1, 0.2], over="instance")
    assert curve.best == 1 and curve.warnings[0] == (
        "heavy tail: 2 of 60 instances carry 58% of this mean: more instances will move it"
    )
    short = of_runs(means[:, 2:8], [0.1, 0.2])
    assert short.warnings == (
        "few units: 6 runs are too few for an interval with its stated coverage; take 11 or more",
    )
