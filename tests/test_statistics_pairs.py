"""Dominance with Holm's control, and how many runs a difference needs: scipy's numbers, error rates by simulation."""

from __future__ import annotations

import numpy as np
import pytest
import xarray
from scipy import stats

from jaxbandits.core.errors import InputError
from jaxbandits.statistics import dominance, holm, runs_needed


def array(values: np.ndarray, *axes: str) -> xarray.DataArray:
    return xarray.DataArray(values, dims=axes)


def test_holm_by_hand() -> None:
    # times 4, 3, 2, 1 in increasing order, never below the one before, at most 1
    np.testing.assert_allclose(holm(np.array([0.3, 0.01, 0.02, 0.6])), [0.6, 0.04, 0.06, 0.6])
    np.testing.assert_allclose(holm(np.array([0.9, 0.8])), [1.0, 1.0])
    np.testing.assert_allclose(holm(np.array([0.02, np.nan, 0.01])), [0.02, np.nan, 0.02])


def test_entries_are_those_of_scipy() -> None:
    rng = np.random.default_rng(1)
    x = rng.exponential(size=(3, 30)) + np.array([0.0, 0.4, 1.0])[:, None]
    t = dominance(array(x, "setting", "instance"))
    ranks = dominance(array(x, "setting", "instance"), test="wilcoxon")
    for a in range(3):
        for b in range(3):
            if a == b:
                assert float(t["p"][a, a]) == 1.0 and not bool(t["clear"][a, a])
                continue
            assert float(t["p"][a, b]) == pytest.approx(stats.ttest_rel(x[a], x[b]).pvalue, rel=1e-9)
            assert float(ranks["p"][a, b]) == pytest.approx(stats.wilcoxon(x[a] - x[b]).pvalue, rel=1e-9)
            assert float(t["difference"][a, b]) == pytest.approx(x[a].mean() - x[b].mean())
    pairs = np.triu_indices(3, 1)
    np.testing.assert_allclose(t["adjusted"].values[pairs], holm(t["p"].values[pairs]))
    np.testing.assert_array_equal(t["larger"].values, t["smaller"].values.T)


def test_two_given_instances_are_welch() -> None:
    rng = np.random.default_rng(2)
    x = np.stack([rng.normal(0.5, 1, (2, 12)), rng.normal(0, 5, (2, 12))], axis=1)  # [setting, instance, replicate]
    found = dominance(array(x, "setting", "instance", "replicate"), over="replicate")
    d = x[0] - x[1]
    # mean(d₀) + mean(d₁) = 0 is the test of d₀ against −d₁
    assert float(found["p"][0, 1]) == pytest.approx(stats.ttest_ind(d[0], -d[1], equal_var=False).pvalue, rel=1e-9)


def test_the_whole_table_is_seldom_wrong() -> None:
    """Six policies that are all equal: some pair is called clear in at most 5 % of tables, without Holm far oftener."""
    rng = np.random.default_rng(3)
    tables = 300
    wrong = single = 0
    for _ in range(tables):
        found = dominance(array(rng.normal(size=(6, 20)), "setting", "instance"))
        wrong += bool(found["clear"].any())
        single += bool((found["p"] < 0.05).any())
    assert wrong / tables < 0.05 + 3 * np.sqrt(0.05 * 0.95 / tables)
    assert single / tables > 0.2


def test_a_constant_gap_is_clear_and_no_gap_is_not() -> None:
    noise = np.random.default_rng(4).normal(size=20)
    for test in ("t", "wilcoxon"):
        found = dominance(array(np.stack([noise, noise, noise + 1]), "setting", "instance"), test=test)
        assert found["smaller"].values.tolist() == [[False, False, True], [False, False, True], [False] * 3]


def test_labels_and_another_axis() -> None:
    x = xarray.DataArray(np.random.default_rng(5).normal(size=(7, 2)), dims=("replicate", "policy"))
    x = x.assign_coords(policy=["a", "b"])
    found = dominance(x, among="policy", over="replicate")
    assert found["p"].dims == ("policy", "against") and list(found["against"].values) == ["a", "b"]


@pytest.mark.parametrize("strata", [1, 3])
def test_the_needed_runs_give_the_power(strata: int) -> None:
    """Planned on a known mean and spread, the t-test then finds the difference as often as promised, and one with
    three quarters of the runs less often."""
    rng = np.random.default_rng(6)
    scale = np.array([1.0, 2.0, 0.5])[:strata, None]
    ideal = stats.norm.ppf((np.arange(40) + 0.5) / 40)
    shaped = scale * ideal / ideal.std(ddof=1) + 0.3
    d = array(shaped, "instance", "replicate")
    needed = int(runs_needed(d, 0 * d, power=0.8)["needed"])

    def found(n: int) -> float:
        many = 4000
        x = rng.normal(0.3, scale[..., None], size=(strata, n, many))
        variance = x.var(axis=1, ddof=1)
        freedom = (n - 1) * variance.sum(0) ** 2 / (variance**2).sum(0)
        t = x.mean(axis=(0, 1)) / np.sqrt(variance.sum(0) / n) * strata
        return float((2 * stats.t.sf(np.abs(t), freedom) < 0.05).mean())

    error = np.sqrt(0.8 * 0.2 / 4000)
    assert found(needed) > 0.8 - 3 * error
    assert found(needed - needed // 4) < 0.8 - 3 * error


def test_a_clear_difference_needs_no_more_and_no_difference_never_gets_clear() -> None:
    noise = np.random.default_rng(7).normal(size=(1, 30))
    d = array(
        np.concatenate([noise + 5, noise - noise.mean(), 0 * noise, noise - noise.mean() + 0.1]), "s", "replicate"
    )
    found = runs_needed(d, 0 * d)
    assert found["more"].values[0] == 0 and found["needed"].values[0] < 30
    assert found["needed"].values[1] > 1e6
    assert np.isinf(found["needed"].values[2]) and np.isinf(found["most"].values[2])
    assert found["more"].values[3] == found["needed"].values[3] - 30 > 0
    assert found["least"].values[3] < found["needed"].values[3] and np.isinf(found["most"].values[3])


def test_errors() -> None:
    x = array(np.ones((3, 2)), "setting", "instance")
    single = array(np.ones((3, 1)), "setting", "replicate")
    for call, what in (
        (lambda: dominance(x, test="anova"), "test: 'anova' given; it must be 't' or 'wilcoxon'"),
        (lambda: dominance(x.expand_dims("mark")), "must have 'setting' and 'instance' only"),
        (lambda: dominance(single, over="replicate"), "1 replicate given; it must have 2 or more"),
        (
            lambda: dominance(
                array(np.ones((2, 3, 4)), "setting", "instance", "replicate"), over="replicate", test="wilcoxon"
            ),
            "'t' for several given instances",
        ),
        (lambda: runs_needed(single, single), "1 replicate given"),
        (lambda: runs_needed(x, x, over="instance", power=0.0), "power: 0.0 given"),
    ):
        with pytest.raises(InputError, match=what):
            call()
