"""The ω-UCB experiment without simulations: closed forms, verdicts, laws of the ads."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import xarray

import jaxbandits as jb
from experiments.common import Options, ranking
from experiments.omega_ucb.figures import best, less, somewhere, statistic
from experiments.omega_ucb.intervals import arms_of, example2, figure5, ratio_bounds
from experiments.omega_ucb.play import MARKS, SETTINGS, Curves, ToldOfTime, _beta_ads
from jaxbandits.policies import OmegaUCB
from jaxbandits.policies.base import evaluate_arms

UNITS = 80


def noisy_curves(**means: float) -> Curves:
    """Regrets of some policies around given means, in worlds that they share."""
    random = np.random.default_rng(0)
    shared = random.normal(0, 30, size=(1, UNITS, 1, 1))
    noise = shared + random.normal(0, 5, size=(len(means), UNITS, 1, 1))
    level = np.array(list(means.values()))[:, None, None, None]
    values = (level + noise) * MARKS**0.5
    coords = {"instance": np.arange(UNITS), "replicate": [0], "mark": MARKS}
    data = {
        name: xarray.DataArray(x, dims=("instance", "replicate", "mark"), coords=coords)
        for name, x in zip(means, values, strict=True)
    }
    return Curves(SETTINGS["S-Br-10"], data, data)


def test_example_2() -> None:
    verdicts = {
        row.item.removeprefix("example2: "): (row.measured, row.verdict)
        for row in example2(Options())
    }
    assert verdicts["ω-UCB, exact normal quantile of α(t), arm 1"] == ("5.504", "yes")
    assert verdicts["ω-UCB, exact normal quantile of α(t), arm 2"] == ("2.142", "yes")
    assert verdicts["ω-UCB, z = √(2 ln t) as in the policy, arm 1"] == ("5.607", "no")
    assert verdicts["m-UCB, α = 1, arm 1"] == ("8.613", "no")
    assert verdicts["m-UCB, α = 1, arm 2"] == ("48.63", "yes")


def test_bounds_of_figure_1_have_hoeffdings_and_wilsons_width() -> None:
    n, reward, cost = 1000, np.array([300.0, 650.0]), np.array([400.0, 90.0])
    upper_bounds = ratio_bounds(n, reward, cost)
    r, c, e = reward / n, cost / n, np.sqrt(np.log(2 / 0.01) / (2 * n))
    np.testing.assert_allclose(upper_bounds["i-UCB"], r / c + e, rtol=1e-5)
    np.testing.assert_allclose(upper_bounds["c-UCB"], (r + e) / c, rtol=1e-5)
    np.testing.assert_allclose(upper_bounds["m-UCB"], (r + e) / (c - e), rtol=1e-4)
    # the tangent to the disc of Hoeffding's radius around (c̄, r̄)
    angle = np.arctan2(r, c) + np.arcsin(e / np.hypot(r, c))
    np.testing.assert_allclose(upper_bounds["UCB-SC+"], np.tan(angle), rtol=1e-4)
    z = 2.5758293
    a, half = n + z**2, z * np.sqrt(n * np.stack([r * (1 - r), c * (1 - c)]) + z**2 / 4)
    upper, lower = (reward + z**2 / 2 + half[0]) / a, (cost + z**2 / 2 - half[1]) / a
    np.testing.assert_allclose(upper_bounds["ω-UCB"], upper / lower, rtol=1e-4)
    assert np.isfinite(np.asarray(evaluate_arms(OmegaUCB(), arms_of(n, reward, cost, 10)))).all()


def test_verdicts() -> None:
    runs = noisy_curves(a=100, b=103, c=160)
    lowest, near, far = (runs.at(1.0, name) for name in "abc")
    assert less("", "", lowest, far, "instance").verdict == "yes"
    assert less("", "", far, lowest, "instance").verdict == "no"
    assert less("", "", lowest, lowest, "instance").verdict == "no"
    equal = noisy_curves(a=100, b=100)
    row = less("", "", equal.at(1.0, "a"), equal.at(1.0, "b"), "instance")
    assert row.verdict == "unclear" and "would tell" in row.note
    assert best("", "", runs, 1.0, "a", ("b", "c")).verdict == "yes"
    assert best("", "", runs, 1.0, "c", ("a", "b")).verdict == "no"
    assert best("", "", equal, 1.0, "a", ("b",)).verdict == "unclear"
    assert float(best("", "", runs, 1.0, "a", ("b", "c")).measured) == pytest.approx(
        float(near.mean() - lowest.mean()), rel=1e-4
    )


def test_a_ratio_of_means_has_the_bootstrap_of_scipy() -> None:
    runs = noisy_curves(a=100, b=200)
    samples = [runs.at(1.0, "b"), runs.at(1.0, "a")]
    row = statistic("", "", lambda b, a: b / a, samples, lambda low, high: low > 1.5, "")
    assert row.verdict == "yes" and float(row.measured) == pytest.approx(
        float(samples[0].mean() / samples[1].mean()), rel=1e-3
    )
    assert 0 < float(row.standard_error) < 0.2


def test_ranking_joins_what_is_not_clear() -> None:
    # The same mean for a and b, which differ run by run
    noise, error = np.random.default_rng(0).normal(size=(2, 40))
    row = ranking("", {"worst": noise + 9, "a": noise + error, "b": noise + error[::-1]})
    assert row.measured in ("a ≈ b < worst", "b ≈ a < worst")


def test_beta_laws_of_the_ads_have_the_means() -> None:
    reward, cost = np.random.default_rng(0).uniform(0.02, 0.99, (2, 3, 7))
    arms = _beta_ads(reward, cost, np.ones((3, 7), bool))
    for values, mean in zip(arms.values(), (reward, cost), strict=True):
        np.testing.assert_allclose(values, 0.99 * mean, atol=2e-4)


def test_equation_23_is_the_square_of_what_it_defines() -> None:
    verdicts = {row.item: row.verdict for row in figure5(Options())}
    assert verdicts["figure5: Eq. (23) as printed, largest distance from its definition"] == "no"
    assert (
        verdicts["figure5: Eq. (23) its square root, largest distance from its definition"] == "yes"
    )


def test_somewhere_finds_a_place_where_the_difference_is_clear() -> None:
    runs = noisy_curves(a=100, b=100)
    # b is the better one early, the worse one late
    crossing = runs.regret | {"b": runs.regret["b"] + np.where(MARKS < 0.05, -20.0, 40.0)}
    assert somewhere("", Curves(runs.setting, crossing, crossing), "a", "b").verdict == "yes"
    assert somewhere("", runs, "a", "b").verdict == "unclear"
    worse = runs.regret | {"b": runs.regret["b"] + 50}
    assert somewhere("", Curves(runs.setting, worse, worse), "a", "b").verdict == "no"
    # Compared on the runs that both have
    fewer = runs.regret | {"b": runs.regret["b"].isel(instance=slice(30))}
    assert Curves(runs.setting, fewer, fewer).at(1.0, "a", "b").sizes["instance"] == 30
    assert (
        less("", "", runs.at(1.0, "a"), fewer["b"].sel(mark=1.0) + 40, "instance").verdict == "yes"
    )


def test_who_is_told_of_time_plays_as_if_the_run_ended_by_it() -> None:
    """The same pulls to the bit, up to the end, as where rounds are a resource of the constraint."""
    reward, cost, rounds = [[0.9, 0.4, 0.6]], np.array([[0.8, 0.2, 0.5]]), 90
    pd_bwk = jb.policies.PrimalDualBwK(jb.policies.RadBounds(1.0))
    told = jb.rollout(
        ToldOfTime(pd_bwk, horizon=rounds),
        jb.environments.FiniteArms.bernoulli(reward, cost),
        jb.TotalBudget(40.0, last_pull="counts"),
        key=jax.random.key(0),
        rounds=rounds,
    )
    ended = jb.rollout(
        pd_bwk,
        jb.environments.FiniteArms.bernoulli(reward, cost[..., None]),
        jb.TotalBudget([40.0], last_pull="counts", rounds=rounds),
        key=jax.random.key(0),
        rounds=rounds,
    )
    played = np.asarray(ended.played) & np.asarray(told.played)
    assert played.sum() > 50
    assert (np.asarray(told.action) == np.asarray(ended.action))[played].all()
