"""The twins against solvers, printed formulas, textbook numbers; all else by the policies."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import norm

from .budgeted import omega_interval
from .censored import (
    RCUCB,
    Round,
    UCBReduction,
    best_pair_G1,
    instance_G1,
    kaplan_meier,
    paper_limits,
    paper_penalty,
)
from .knapsack import SUAK, PrimalDualTwoPhase, lp_pair


def test_omega_interval_is_the_literal_theorem_1() -> None:
    rng = np.random.default_rng(3)
    for _ in range(500):
        n, mean, k_z = int(rng.integers(1, 2000)), float(rng.random()), 30 * rng.random() + 0.01
        a, b, c = n + k_z, 2 * n * mean + k_z, n * mean**2
        root = math.sqrt(b * b / (4 * a * a) - c / a)
        must = pytest.approx((b / (2 * a) - root, b / (2 * a) + root), abs=1e-12)
        assert omega_interval(n, mean, k_z) == must
    assert omega_interval(7, 0.0, 3.0)[0] == 0.0 and omega_interval(7, 1.0, 3.0)[1] == 1.0


# --- average cost


def solved(mu: list[float], rho: list[float], c: float, rest: bool) -> float:
    """The optimum of the program by scipy; −∞ if infeasible."""
    extra = [0.0] if rest else []
    m, r = np.array([*mu, *extra]), np.array([*rho, *extra])
    out = linprog(-m, A_ub=r[None], b_ub=[c], A_eq=np.ones((1, len(m))), b_eq=[1.0])
    return -float(out.fun) if out.success else -math.inf


def test_programs_have_the_solver_s_value() -> None:
    rng = np.random.default_rng(4)
    pairs = infeasible = 0
    for i in range(300):
        k = int(rng.integers(1, 9))
        mu, rho, c = rng.random(k), rng.random(k), float(rng.random())
        if i % 3 == 0:  # the clipped corners and coinciding arms that confidence bounds produce
            mu, rho = np.minimum(mu * 2, 1.0), np.maximum(rho * 2 - 1, 0.0)
        m, r = mu.tolist(), rho.tolist()
        best = lp_pair(m, r, c)
        assert best.value == pytest.approx(solved(m, r, c, rest=True), abs=1e-9)
        assert best.weights.min() >= 0.0 and best.weights.sum() == pytest.approx(1.0, abs=1e-12)
        assert best.weights[:k] @ rho <= c + 1e-12
        assert best.weights[:k] @ mu == pytest.approx(best.value, abs=1e-12)
        pairs += best.high >= 0
        restricted = lp_pair(m, r, c, forbidden={k})
        assert restricted.value == pytest.approx(solved(m, r, c, rest=False), abs=1e-9)
        infeasible += restricted.low < 0
    assert pairs > 50 and infeasible > 10


def test_of_equal_programs_the_first_and_a_single_arm_is_taken() -> None:
    assert lp_pair([0.5, 0.5], [0.2, 0.1], 0.5)[2:] == (-1, 0)
    assert lp_pair([1.0, 1.0], [0.9, 0.5], 0.5)[2:] == (-1, 1)
    assert lp_pair([0.3, 0.3, 0.9], [0.1, 0.1, 0.9], 0.5)[2:] == (2, 0)
    assert lp_pair([0.9, 0.9, 0.3], [0.9, 0.9, 0.1], 0.5)[2:] == (0, 2)
    assert lp_pair([0.9], [0.9], 0.45)[2:] == (0, 1)
    # equal up to rounding: the pair computes to 0.7 + 1.1e-16
    budgets = np.linspace(0.35, 0.9, 200).tolist()
    assert all(lp_pair([0.7, 0.7], [0.93, 0.31], c).high == -1 for c in budgets)


def test_suak_mixes_as_its_main_rule_says() -> None:
    """t = 10001, N = (4e5, 9e5), mu = (.3, .9), rho = (.2, .9), c = ½."""
    policy = SUAK(2, 0.5)
    policy.n[:], policy.rounds = [400_000, 900_000], 10_000
    policy.sum_r[:], policy.sum_c[:] = policy.n * [0.3, 0.9], policy.n * [0.2, 0.9]
    log_t = math.log(10_001)
    d = min(0.3 - math.sqrt(1.5 * log_t / 4e5), 0.4 - math.sqrt(1.5 * log_t / 9e5))
    w = d / (1.5 + d)
    for spare, p in [(0.95, 1 - w), (0.15, w), (0.25, w), (0.55, 0.5), (0.62, 0.6)]:
        policy.spent = 0.5 * 10_001 - log_t / w**2 - spare
        assert policy.branch() == "main" and policy.spare() == pytest.approx(spare, abs=1e-8)
        plan = policy.plan()
        assert plan[:2] == (1, 0) and plan.p == pytest.approx(p, abs=1e-8)
    policy.spent = 0.5 * 10_001 - 0.99
    assert policy.branch() == "skip_c", "the anytime test comes first"


def test_primal_dual_identifies_arm_and_null_after_the_computed_sweep() -> None:
    """Outcomes are certain: arm 0 (1, 1), arm 1 (0, 1), c = ½; the optimum is arm 0 with the null arm."""
    T, policy = 10_000, PrimalDualTwoPhase(2, 0.5, 10_000, skip=False)
    radius = np.sqrt(2 * math.log(T) / np.arange(1, T))
    null_in = 1 + int(np.argmax(1 - radius > 0.5))  # without null infeasible
    is_in = (radius * 0.5 / (1 - radius) < 0.5 * (1 - radius)) & (radius < 0.5)
    arm_in = 1 + int(np.argmax(is_in))
    assert null_in < arm_in
    for _ in range(2 * arm_in):
        assert policy.phase == 1
        arm = policy.act(0.9)
        policy.update(arm, 1.0 - arm, 1.0)
        assert (2 in policy.x_star) == (policy.n.min() >= null_in)
    assert policy.phase == 2 and policy.x_star == {0, 2} and not policy.cost_slack
    rate = (0.5 * T - 2 * arm_in) / (T - 2 * arm_in) / (1 - radius[arm_in - 1])
    plan = policy.plan()
    assert plan[:2] == (0, 2) and plan.p == pytest.approx(rate, abs=1e-12)


# --- censored resources


def test_recurrences_of_the_paper() -> None:
    """The update rules printed after P-RCUCB (10) give the twin's literal estimates in every round."""
    limits, n, rng = np.array([0.2, 0.5, 0.8, 1.0]), 3, np.random.default_rng(3)
    policy, lam = RCUCB(n, limits), np.array([paper_penalty(x) for x in (0.2, 0.5, 0.8, 1.0)])
    g, pen, count, pulls = np.zeros((n, 4)), np.zeros((n, 4)), np.zeros((n, 4)), np.zeros(n)
    for t in range(150):  # first every arm once without a limit
        i, j = (t, 3) if t < n else (int(rng.integers(n)), int(rng.integers(4)))
        reward, true = float(rng.random()), float(1.4 * rng.random())
        pen[i] = lam / (pulls[i] + 1) * (pulls[i] * pen[i] / lam + (true > limits))
        seen, gain = limits <= limits[j], np.where(true <= limits, reward - true / 10, 0.0)
        g[i] = np.where(seen, (count[i] * g[i] + gain) / (count[i] + 1), g[i])
        count[i] += seen
        pulls[i] += 1
        policy.update(i, j, reward, true if true <= limits[j] else None, true)
        if policy.t > n:
            log = 2.0 * math.log(policy.t)
            width = np.sqrt(log / count) + lam * np.sqrt(log / pulls)[:, None]
            np.testing.assert_allclose(policy.scores(), g - pen + width, rtol=1e-12, atol=1e-12)


def test_kaplan_meier_has_the_textbook_s_numbers() -> None:
    """6-MP remission times (Freireich et al. 1963), ties with censored times at 6 and 10."""
    exceeded = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    history = [Round(float(x), 0.0, math.inf, math.nan) for x in exceeded]
    history += [Round(40.0, 0.0, float(x), float(x)) for x in (6, 6, 6, 7, 10, 13, 16, 22, 23)]
    times = (5.9, 6.0, 7.0, 10.0, 13.0, 16.0, 22.0, 23.0, 35.0)
    table = [1.0, 0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448, 0.448]
    assert [kaplan_meier(history, x) for x in times] == pytest.approx(table, abs=5.1e-4)


@pytest.mark.parametrize(("width", "factors"), [("lambda", (1.03, 7, 11)), ("one", (1, 1, 1))])
def test_ucb_reduction(width: str, factors: tuple[float, ...]) -> None:
    policy = UCBReduction(1, (0.3, 0.6, 1.0), alpha=1.3, width=width)
    assert policy.initial_pair() == (0, 0)
    for j, reward, observed in [(2, 0.5, 0.4), (1, 0.7, None), (0, 0.9, 0.2), (0, 0.7, None)]:
        policy.update(0, j, reward, observed)
    means, root = ((0.88 - 0.03) / 2, -6.0, 0.46), math.sqrt(2.6 * math.log(5.0))
    must = [m + f * root / math.sqrt(n) for m, f, n in zip(means, factors, (2, 1, 1), strict=True)]
    np.testing.assert_allclose(policy.scores()[0], must, rtol=1e-13)


G1_TABLE = {
    "PosCorr": (9, 0.271, 0.6116, 0.0018, -1.85),
    "NegCorr": (5, 0.131, 0.7631, 0.0024, -3.60),
    "Indep": (9, 0.453, 0.4404, 0.0038, -0.95),
}


@pytest.mark.parametrize("name", G1_TABLE)
def test_g1_has_the_numbers_of_the_specification(name: str) -> None:
    arm, value, censoring, gap, beyond = G1_TABLE[name]
    g1 = best_pair_G1(name)
    assert g1.best == (arm - 1, 4) and paper_limits()[4] == 0.5
    assert g1.value == pytest.approx(value, abs=5.1e-4) and g1.value == g1.v.max()
    assert g1.survival[g1.best] == pytest.approx(censoring, abs=5.1e-5)
    assert g1.survival[g1.best] == pytest.approx(norm.cdf(instance_G1(name).q[arm - 1]), rel=1e-13)
    assert g1.gap == pytest.approx(gap, abs=5.1e-5)
    assert g1.v[:, 5:].max() == pytest.approx(beyond, abs=5.1e-3)
    assert g1.v.shape == (10, 10) and (g1.v.argmax(axis=1) == 4).all()
