"""The theorems' bounds in the experiments: against scores, simulation and by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from experiments.b_zoom.studies import _falls, _in_phases
from experiments.common import Options
from experiments.omega_ucb.intervals import (
    _worst,
    arms_of,
    below_bound,
    exceeded,
    missed,
    pulls_bound,
    score_interval,
    three_valued,
    wilson,
)
from experiments.rcb import (
    _above_the_lower_bound,
    _as_printed,
    _in_closed_form,
    best_ratio_alone,
    eta,
)
from experiments.rcucb import StoOOPairs, smooth_arms
from experiments.suak import MEANS, SkipFirst, beta_arms
from jaxbandits.core import ticks
from jaxbandits.core.specs import SKIP
from jaxbandits.policies import ZRCUCB, BZoom, OmegaUCB
from jaxbandits.policies.base import evaluate_arms


def test_the_interval_is_that_of_the_policy() -> None:
    n, t = 40, 5000.0
    z = np.sqrt(2 * 0.25 * np.log(t))
    lower, upper = wilson(n, z)
    reward, cost = np.arange(1, n), np.arange(n - 1, 0, -1)
    ours = np.asarray(evaluate_arms(OmegaUCB(rho=0.25), arms_of(n, reward, cost, t)), float)
    np.testing.assert_allclose(upper[reward] / lower[cost], ours, rtol=1e-4)


def test_probabilities_of_a_miss_are_those_of_simulation() -> None:
    n, z, runs = 30, 1.5, 200_000
    rng, (lower, upper) = np.random.default_rng(0), wilson(30, 1.5)
    reward, cost = rng.binomial(n, 0.6, runs), rng.binomial(n, 0.1, runs)
    outside = (lower[reward] > 0.6) | (upper[reward] < 0.6)
    assert missed(n, 0.6, z) == pytest.approx(outside.mean(), abs=0.004)
    with np.errstate(divide="ignore"):
        above = upper[reward] / lower[cost] < 0.6 / 0.1
    assert (
        exceeded(n, 0.6, 0.1, z) == pytest.approx(above.mean(), abs=0.004) and above.mean() > 0.02
    )
    with np.errstate(divide="ignore"):
        foreign = upper[reward] / lower[cost] < 12.0  # a ratio that is not this arm's
    assert (
        exceeded(n, 0.6, 0.1, z, 12.0) == pytest.approx(foreign.mean(), abs=0.004)
        and 0.1 < foreign.mean() < 0.9
    )


def test_theorem_4_by_hand() -> None:
    reward, cost, budget, rho = np.array([[0.5, 0.4]]), np.array([[0.5, 0.8]]), np.array([5.0]), 1.0
    tau = 20  # 2·5/0.5
    delta = 0.5 / (0.5 + 1 / 0.8)
    needed = 8 * np.log(tau) / delta**2 * max(0.4 / 0.6, 0.2 / 0.8)
    xi = (tau - 2) * (2 - np.sqrt(1 - 1 / tau)) - sum(np.sqrt(1 - 1 / t) for t in range(3, tau + 1))
    bound = pulls_bound(reward, cost, budget, rho)
    assert np.isnan(bound[0, 0]) and bound[0, 1] == pytest.approx(1 + needed + xi)


def test_a_bound_can_be_broken() -> None:
    values = np.random.default_rng(1).normal(10, 1, (3, 50, 2))
    bound = np.full((3, 1, 2), 20.0)
    assert below_bound("", values, bound).verdict == "yes"
    assert below_bound("", values, bound - 15 * (np.arange(3) == 1)[:, None, None]).verdict == "no"
    assert below_bound("", values, bound - 10).verdict == "unclear"
    assert [_worst("", np.array([0.01, x]), 0.05, [0.1, 0.2]).verdict for x in (0.05, 0.0501)] == [
        "yes",
        "no",
    ]


def test_intervals_of_the_papers_generalisation() -> None:
    """With η = 1 on [0, 1] they are Wilson's; three values have the stated moments."""
    n, z = 30, 2.1
    ours, theirs = score_interval(n, np.arange(n + 1) / n, z, 1.0, 0.0, 1.0), wilson(n, z)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    shifted = score_interval(n, 1 + 2 * np.arange(n + 1) / n, z, 0.6, 1.0, 3.0)
    np.testing.assert_allclose(
        shifted, 1 + 2 * np.array(score_interval(n, np.arange(n + 1) / n, z, 0.6, 0.0, 1.0))
    )
    for mean in (0.05, 0.3, 0.9):
        law, eta = three_valued(n, mean)
        x = np.arange(2 * n + 1) / (2 * n)
        assert law.sum() == pytest.approx(1) and law @ x == pytest.approx(mean)
        assert n * (law @ (x - mean) ** 2) == pytest.approx(eta * mean * (1 - mean)) and eta < 1


def test_best_ratio_alone_is_not_optimal_and_the_bounds_could_fail() -> None:
    gap, value = best_ratio_alone(20)
    assert 0.1 < gap < 2 and 0.5 < value < 1


@pytest.mark.integration
def test_clean_phases_are_told_from_unclean_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    unclean, gap, active = _in_phases(6, 20)
    assert unclean.tolist() == [0] * 6 and 0 < gap < 1
    assert (
        active.shape == (20, 6)
        and (active[:, 0] == 1).all()
        and (active <= 2.0 ** np.arange(6)).all()
    )
    # A hundredth of what is proved
    monkeypatch.setattr(BZoom, "radius", lambda self, n, phase: 0.5 / jnp.sqrt(n))
    unclean, closer, more = _in_phases(6, 20)
    assert (unclean[1:] > 0).all() and closer > 5 * gap and more.mean() > active.mean()


def test_a_case_is_worse_only_if_every_step_is() -> None:
    noise = np.random.default_rng(7).normal(0, 0.01, (3, 50))
    for levels, verdict in (
        ((0.9, 0.5, 0.1), "yes"),
        ((0.5, 0.9, 0.1), "no"),
        ((0.9, 0.5, 0.5), "unclear"),
    ):
        assert _falls("", "", np.arange(3), np.array(levels)[:, None] + noise)[0].verdict == verdict


def test_exponents_are_held_against_both_bounds() -> None:
    middle, se = np.array([1e3, 1e4, 1e5]), np.full(3, 0.01)
    for slope, verdict in (
        ((0.9, 0.8, 0.7), "yes"),
        ((0.9, 0.4, 0.7), "no"),
        ((0.9, 0.5, 0.7), "unclear"),
    ):
        assert _above_the_lower_bound("RCB-I", 1.0, middle, np.array(slope), se).verdict == verdict
    # β = 2 as printed: 1/2 + 2/ln 10⁵ = 0.674; as read it would be 2/3 more than that half
    for last, verdict in ((0.6, "yes"), (0.75, "no"), (0.674, "unclear")):
        assert _as_printed(2.0, middle, np.array([0.9, 0.9, last]), se)[0].verdict == verdict


def test_the_proof_of_rcb_could_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = Options(quick=True)
    assert {line.verdict for line in _in_closed_form(quick)} == {"yes"}
    monkeypatch.setattr("experiments.rcb.eta", lambda lam: 2 * eta(lam))
    assert _in_closed_form(quick)[0].verdict == "no"


@pytest.mark.integration
def test_stooo_on_pairs_learns_of_its_own_limit_alone() -> None:
    world = smooth_arms(3)
    best = (0.42 * np.arange(1, 9) / 8 - 0.3 * (np.arange(1, 9) / 8) ** 2).max()
    np.testing.assert_allclose(world.best_pair()[0][2], best, atol=1e-4)
    states = {}
    for policy in (ZRCUCB("legal", horizon=300), StoOOPairs("legal", horizon=300)):
        lane = jb.rollout(policy, world, jb.Horizon(301), key=jax.random.key(0), rounds=301)
        pair = np.asarray(lane.action.arm * 8 + lane.action.limit)[:300]
        states[type(policy)] = (
            np.asarray(lane.state.sums.reach[-1]),
            np.bincount(pair, minlength=16),
        )
    reach, pulls = states[StoOOPairs]
    np.testing.assert_array_equal(reach, pulls)
    reach, pulls = states[ZRCUCB]
    np.testing.assert_array_equal(
        reach, pulls.reshape(2, 8)[:, ::-1].cumsum(axis=1)[:, ::-1].ravel()
    )


def test_a_savings_account_is_never_spent() -> None:
    """One-Phase after skipped rounds plans with what is left beside their money."""
    arms, limit = beta_arms(*MEANS[1]), jb.AverageCost(c=0.5, rounds=400)
    spent = []
    for first in (0, 100):
        policy = SkipFirst(c=0.5, horizon=400, first=first)
        lane = jb.rollout(policy, arms, limit, key=jax.random.key(0), rounds=400)
        assert (np.asarray(lane.action[:first]) == SKIP).all() and (
            np.asarray(lane.action[first:]) != SKIP
        ).any()
        spent.append(float(ticks.to_float(lane.ledger.spent)[-1]))
    assert spent[0] > 190 and spent[1] < spent[0] - 25, "of the 50 saved most is there at the end"
