"""Twins against printed formulas and a textbook's numbers; all else by the policies."""

from __future__ import annotations

import math

import numpy as np
import pytest

from .censored import (
    RCUCB,
    Round,
    kaplan_meier,
    paper_penalty,
)
from .knapsack import SUAK


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
