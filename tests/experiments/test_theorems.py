"""The theorems' bounds, as the experiments compute them: against the policy's score, simulation and numbers by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from experiments.b_zoom.studies import _unclean
from experiments.omega_ucb.intervals import _worst, arms_of, exceeded, held, missed, pulls_bound, wilson
from experiments.rcb import best_ratio_alone
from experiments.rcucb import regret_bound as of_rcucb
from experiments.suak import MEANS, SkipFirst, beta_arms
from experiments.suak import regret_bound as of_suak
from jaxbandits.core import ticks
from jaxbandits.core.specs import SKIP
from jaxbandits.policies import BZoom, OmegaUCB
from jaxbandits.policies.base import evaluate


def test_the_interval_is_that_of_the_policy() -> None:
    n, t = 40, 5000.0
    z = np.sqrt(2 * 0.25 * np.log(t))
    lower, upper = wilson(n, z)
    reward, cost = np.arange(1, n), np.arange(n - 1, 0, -1)
    ours = np.asarray(evaluate(OmegaUCB(rho=0.25), arms_of(n, reward, cost, t)), float)
    np.testing.assert_allclose(upper[reward] / lower[cost], ours, rtol=1e-4)


def test_probabilities_of_a_miss_are_those_of_simulation() -> None:
    n, z, runs = 30, 1.5, 200_000
    rng, (lower, upper) = np.random.default_rng(0), wilson(30, 1.5)
    reward, cost = rng.binomial(n, 0.6, runs), rng.binomial(n, 0.1, runs)
    outside = (lower[reward] > 0.6) | (upper[reward] < 0.6)
    assert missed(n, 0.6, z) == pytest.approx(outside.mean(), abs=0.004)
    with np.errstate(divide="ignore"):
        above = upper[reward] / lower[cost] < 0.6 / 0.1
    assert exceeded(n, 0.6, 0.1, z) == pytest.approx(above.mean(), abs=0.004) and above.mean() > 0.02
    with np.errstate(divide="ignore"):
        other = upper[reward] / lower[cost] < 12.0  # a ratio that is not this arm's
    assert exceeded(n, 0.6, 0.1, z, 12.0) == pytest.approx(other.mean(), abs=0.004) and 0.1 < other.mean() < 0.9


def test_theorem_4_by_hand() -> None:
    reward, cost, budget, rho = np.array([[0.5, 0.4]]), np.array([[0.5, 0.8]]), np.array([5.0]), 1.0
    tau = 20  # 2·5/0.5
    delta = 0.5 / (0.5 + 1 / 0.8)
    needed = 8 * np.log(tau) / delta**2 * max(0.4 / 0.6, 0.2 / 0.8)
    xi = (tau - 2) * (2 - np.sqrt(1 - 1 / tau)) - sum(np.sqrt(1 - 1 / t) for t in range(3, tau + 1))
    found = pulls_bound(reward, cost, budget, rho)
    assert np.isnan(found[0, 0]) and found[0, 1] == pytest.approx(1 + needed + xi)


def test_a_bound_can_be_broken() -> None:
    values = np.random.default_rng(1).normal(10, 1, (3, 50, 2))
    bound = np.full((3, 1, 2), 20.0)
    assert held("", values, bound).verdict == "yes"
    assert held("", values, bound - 15 * (np.arange(3) == 1)[:, None, None]).verdict == "no"
    assert held("", values, bound - 10).verdict == "unclear"
    assert [_worst("", np.array([0.01, x]), 0.05, [0.1, 0.2]).verdict for x in (0.05, 0.0501)] == ["yes", "no"]


def test_theorem_1_of_rcucb_by_hand() -> None:
    value, penalty = np.array([0.5, 0.1, 0.3, 0.2]), np.array([0.0, 1.0])  # two arms, two limits
    rest = 1 + 8 / np.log(1.5) * 9
    log = np.log(1000)
    by_hand = sum(16 * (1 + lam) ** 2 * log / gap + gap * rest for gap, lam in ((0.4, 1.0), (0.2, 0.0), (0.3, 1.0)))
    assert of_rcucb(value, penalty, 2.0, 1000) == pytest.approx(by_hand)


def test_theorem_3_2_of_suak_by_hand() -> None:
    # bases: (1, 2): 0.5·0.4 + 0.5·0.8 = 0.6 is best; 1 and skipping: 0.4; skipping and 2: 0.8·0.5/0.75
    best, skipping = 0.6, 0.8 * 0.5 / 0.75
    gaps, delta, log = (best - 0.4, best - skipping), 0.25, np.log(1000)
    by_hand = sum(432 * best * 25 * log / (delta * gap**2) for gap in gaps)
    by_hand += 241 * 2 * best * log / (0.5 * delta**2) + 3 * np.pi**2 * best / delta**2 + 8 * np.pi**2
    assert of_suak([0.4, 0.8], [0.25, 0.75], 0.5, 1000) == pytest.approx(by_hand)


def test_best_ratio_alone_is_not_optimal_and_the_bounds_could_fail() -> None:
    gap, value = best_ratio_alone(20)
    assert 0.1 < gap < 2 and 0.5 < value < 1


def test_clean_phases_are_told_from_unclean_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _unclean(4, 20).tolist() == [0, 0, 0, 0]
    monkeypatch.setattr(BZoom, "radius", lambda self, n, phase: 0.5 / jnp.sqrt(n))  # a hundredth of what is proved
    assert (_unclean(4, 20)[1:] > 0).all()


def test_a_savings_account_is_never_spent() -> None:
    """One-Phase after skipped rounds plans with what is left beside their money."""
    arms, limit = beta_arms(*MEANS[1]), jb.AverageCost(c=0.5, rounds=400)
    spent = []
    for first in (0, 100):
        policy = SkipFirst(c=0.5, horizon=400, first=first)
        lane = jb.rollout(policy, arms, limit, key=jax.random.key(0), rounds=400)
        assert (np.asarray(lane.action[:first]) == SKIP).all() and (np.asarray(lane.action[first:]) != SKIP).any()
        spent.append(float(ticks.to_float(lane.ledger.spent)[-1]))
    assert spent[0] > 190 and spent[1] < spent[0] - 25, "of the 50 saved most is there at the end"
