"""Checks of the twins for censored resources: hand-computed histories, the paper's recurrences,
textbook Kaplan-Meier, grid refinement by hand, finest-grid tables, and the numbers and laws of SPEC
C.4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import norm

from .censored import (
    RCUCB,
    ZRCUCB,
    RCUCBKaplanMeier,
    Round,
    ThompsonReduction,
    UCBReduction,
    best_pair_G1,
    instance_G1,
    kaplan_meier,
    paper_limits,
    paper_penalty,
)

LIMITS = (0.3, 0.6, 1.0)  # penalties 0.03, 6, 10
# (limit index, reward, consumption or None, true consumption)
HAND = [(2, 0.5, 0.4, 0.4), (1, 0.7, None, 0.8), (0, 0.9, 0.2, 0.2), (0, 0.7, None, 0.5)]


def exact(value: float) -> object:
    return pytest.approx(value, rel=1e-13, abs=1e-13)


def play_hand(policy: RCUCB) -> RCUCB:
    for j, reward, observed, true in HAND:
        policy.update(0, j, reward, observed, true)
    return policy


def random_rounds(
    n: int, limits: Sequence[float], T: int, seed: int, scale: float = 1.4
) -> list[tuple[int, int, float, float | None, float]]:
    """``(arm, limit index, reward, consumption or None, true consumption)``, initial rounds at
    tau_max first.
    """
    rng = np.random.default_rng(seed)
    out: list[tuple[int, int, float, float | None, float]] = []
    for t in range(T):
        i, j = (
            (t, len(limits) - 1)
            if t < n
            else (int(rng.integers(n)), int(rng.integers(len(limits))))
        )
        reward, true = float(rng.random()), float(scale * rng.random())
        out.append((i, j, reward, true if true <= limits[j] else None, true))
    return out


# ---------------------------------------------------------------- RCUCB


def test_width_vector() -> None:
    """SPEC F: alpha = 1, t = 1000, tau = .3, N = 50, N0 = 80."""
    policy = RCUCB(2, LIMITS)
    policy.history[0] = [Round(0.6, 0.5, 0.1, 0.1)] * 50 + [Round(0.2, 0.5, 0.1, 0.1)] * 30
    policy.rounds = 999
    assert policy.counts(0, 0)[:2] == (50, 80)
    assert policy.width(0, 0) == pytest.approx(0.538119, rel=0.0, abs=5.1e-7)
    policy.survival = "legal"
    assert policy.width(0, 0) == exact(1.03 * math.sqrt(2.0 * math.log(1000.0) / 50.0))


@pytest.mark.parametrize(
    ("survival", "tails", "bases"),
    [
        ("literal", (3 / 4, 1 / 4, 0.0), (4, 4, 4)),
        ("infinite", (3 / 4, 2 / 4, 2 / 4), (4, 4, 4)),
        ("legal", (3 / 4, 1 / 2, 0.0), (4, 2, 1)),
        ("kaplan-meier", (3 / 4, 3 / 8, 3 / 8), (4, 4, 4)),
    ],
)
def test_hand_history(survival: str, tails: tuple[float, ...], bases: tuple[int, ...]) -> None:
    policy = play_hand(
        RCUCBKaplanMeier(1, LIMITS)
        if survival == "kaplan-meier"
        else RCUCB(1, LIMITS, 1.0, survival)
    )
    assert policy.t == 5
    assert [policy.counts(0, j).at_least for j in range(3)] == [4, 2, 1]
    gains, lam, log = (0.88 / 4, 0.46 / 2, 0.46), (0.03, 6.0, 10.0), 2.0 * math.log(5.0)
    for j in range(3):
        assert policy.tail(0, j) == exact(tails[j])
        assert policy.gain(0, j) == exact(gains[j])
        width = math.sqrt(log / (4, 2, 1)[j]) + lam[j] * math.sqrt(log / bases[j])
        assert policy.width(0, j) == exact(width)
        assert policy.scores()[0, j] == exact(gains[j] - lam[j] * tails[j] + width)


def test_recurrences_of_the_paper() -> None:
    """The update rules printed after P-RCUCB (10) reproduce the twin's literal estimates round by
    round.
    """
    limits, n = (0.2, 0.5, 0.8, 1.0), 3
    policy = RCUCB(n, limits)
    g, pen = np.zeros((n, 4)), np.zeros((n, 4))
    count, pulls = np.zeros((n, 4)), np.zeros(n)
    for i, j, reward, observed, true in random_rounds(n, limits, 150, seed=3):
        for k, tau in enumerate(limits):
            lam = paper_penalty(tau)
            pen[i, k] = lam / (pulls[i] + 1) * (pulls[i] * pen[i, k] / lam + float(true > tau))
            if tau <= limits[j]:
                add = reward - true / 10 if true <= tau else 0.0
                g[i, k] = (count[i, k] * g[i, k] + add) / (count[i, k] + 1)
                count[i, k] += 1
        pulls[i] += 1
        policy.update(i, j, reward, observed, true)
        if policy.t > n:
            log = 2.0 * math.log(policy.t)
            width = (
                np.sqrt(log / count)
                + np.array([paper_penalty(x) for x in limits]) * np.sqrt(log / pulls)[:, None]
            )
            np.testing.assert_allclose(policy.scores(), g - pen + width, rtol=1e-12, atol=1e-12)


# ---------------------------------------------------------------- Kaplan-Meier


def test_kaplan_meier_textbook() -> None:
    """6-MP remission times (Freireich et al. 1963), ties of events with censored times at 6 and at
    10.
    """
    events = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    exceeded = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    history = [Round(float(x), 0.0, math.inf, math.nan) for x in exceeded]
    history += [Round(40.0, 0.0, float(x), float(x)) for x in events]
    table = {
        5.9: 1.0,
        6: 0.857,
        7: 0.807,
        10: 0.753,
        13: 0.690,
        16: 0.627,
        22: 0.538,
        23: 0.448,
        35: 0.448,
    }
    for tau, value in table.items():
        assert kaplan_meier(history, float(tau)) == pytest.approx(value, abs=5.1e-4)


# ---------------------------------------------------------------- z-RCUCB


def tiny(penalty_at_1: float, capacity: int = 8, depth: int | None = None, m: int = 2) -> ZRCUCB:
    """n = 1, T = 10, delta = .1: 2 alpha L = 2.02 ln 1000 = 13.9537."""
    return ZRCUCB(
        1,
        m=m,
        delta=0.1,
        T=10,
        capacity=capacity,
        depth=depth,
        cost=lambda x: 0.0,
        penalty=lambda x: penalty_at_1 if x == 1.0 else 0.0,
    )


def test_first_refinement_and_index() -> None:
    policy = tiny(0.0)
    constant = 2.02 * math.log(1000.0)
    assert policy.depth == 3 and policy.ticks(0) == (8,)
    assert policy.choices() == frozenset({(0, 8)}) and math.isinf(policy.scores(0)[0])
    for _ in range(13):
        policy.update(0, 8, 0.6, 0.7)
    assert policy.ticks(0) == (8,)
    assert policy.scores(0).tolist() == [exact(0.6 + math.sqrt(constant / 13) + 1.0)]
    policy.update(0, 8, 0.6, 0.7)
    assert policy.grid(0).tolist() == [0.5, 1.0]
    assert policy.counts(0, 4) == (14, 14, 0.0, 14)
    width = math.sqrt(constant / 14)
    assert policy.scores(0).tolist() == [exact(width + 0.5), exact(0.6 + width + 0.5)]
    assert policy.choices() == frozenset({(0, 8)})


def test_no_cascade_then_several_points_in_one_round() -> None:
    """lambda(1) = 3: tau = 1 splits at N = 224, where .5 and .25 would qualify at once; each waits
    a round.
    """
    policy = tiny(3.0)
    grids = {}
    for t in range(1, 228):
        policy.update(0, 8, 0.6, 0.3)
        grids[t] = policy.ticks(0)
    assert grids[223] == (8,) and grids[224] == (4, 8)
    assert grids[225] == (2, 4, 8)
    assert grids[226] == (1, 2, 3, 4, 8) and grids[227] == grids[226]
    assert [policy.cell(0, k) for k in policy.ticks(0)] == [0.125, 0.125, 0.125, 0.125, 0.5]
    assert policy.finest() == frozenset({(0, 3), (0, 4)})
    assert policy.pair() == (0, 0.375)


def test_best_pair_of_two_arms() -> None:
    policy = ZRCUCB(2, T=2, delta=0.5, capacity=2, cost=lambda x: 0.0, penalty=lambda x: 0.0)
    assert policy.finest() == frozenset({(0, 2), (1, 2)})
    policy.update(0, 2, 0.9, 0.4)
    assert policy.pair() == (0, 1.0)
    for _ in range(10):
        policy.update(1, 2, 0.3, 0.7)
    assert policy.ticks(0) == (2,) and policy.ticks(1) == (1, 2)
    assert policy.estimate(0, 2) == exact(0.9)
    assert policy.pair() == (1, 1.0)  # the finer cell wins over the larger estimate, then .3 over 0


# ---------------------------------------------------------------- reductions


@pytest.mark.parametrize(
    ("width", "factors"), [("lambda", (1.03, 7.0, 11.0)), ("one", (1.0, 1.0, 1.0))]
)
def test_ucb_reduction(width: str, factors: tuple[float, ...]) -> None:
    policy = UCBReduction(1, LIMITS, alpha=1.3, width=width)
    assert policy.choices() == frozenset({(0, 0)})
    for j, reward, observed, _ in HAND:
        policy.update(0, j, reward, observed)
    root = math.sqrt(2.6 * math.log(5.0))
    means, pulls = ((0.88 - 0.03) / 2, -6.0, 0.46), (2, 1, 1)
    assert policy.pulls().tolist() == [list(pulls)]
    for j in range(3):
        assert policy.scores()[0, j] == exact(means[j] + factors[j] * root / math.sqrt(pulls[j]))


@pytest.mark.parametrize(
    ("scaling", "observed", "exceeded"),
    [
        ("global", (0.46 + 10.0) / 11.0, (-0.03 + 10.0) / 11.0),
        ("per_arm", (0.46 + 0.03) / 1.03, 0.0),
    ],
)
def test_thompson_payoffs_and_posterior(scaling: str, observed: float, exceeded: float) -> None:
    limits = (0.1, 0.3, 0.45, 1.0)
    policy = ThompsonReduction(2, limits, scaling)
    assert policy.probability(1, 0.49, 0.3) == exact(observed)
    assert policy.probability(1, 0.9, None) == exact(exceeded)
    assert policy.probability(3, 0.9, None) == 0.0
    for arm, limit, y in ((1, 1, 1), (1, 1, 1), (1, 1, 0), (0, 3, 0)):
        policy.update(arm, limit, 0.49, 0.3)
        policy.trial(arm, limit, y)
    a, b = policy.posterior()
    assert a.tolist() == [[1, 1, 1, 1], [1, 3, 1, 1]] and b.tolist() == [[1, 1, 1, 2], [1, 2, 1, 1]]
    assert policy.t == 5 and policy.pulls().sum() == 4


# ---------------------------------------------------------------- G1

G1_TABLE = {
    "PosCorr": (9, 0.271, 0.6116, 0.0018, -1.85),
    "NegCorr": (5, 0.131, 0.7631, 0.0024, -3.60),
    "Indep": (9, 0.453, 0.4404, 0.0038, -0.95),
}


@pytest.mark.parametrize("name", sorted(G1_TABLE))
def test_g1_numbers(name: str) -> None:
    arm, value, censoring, gap, beyond = G1_TABLE[name]
    g1 = best_pair_G1(name)
    assert g1.best == (arm - 1, 4) and paper_limits()[4] == 0.5
    assert g1.value == pytest.approx(value, abs=5.1e-4) and g1.value == g1.v.max()
    assert g1.survival[g1.best] == pytest.approx(censoring, abs=5.1e-5)
    assert g1.survival[g1.best] == exact(float(norm.cdf(instance_G1(name).q[arm - 1])))
    assert g1.gap == pytest.approx(gap, abs=5.1e-5)
    assert g1.v[:, 5:].max() == pytest.approx(beyond, abs=5.1e-3)
    assert np.all(g1.v.argmax(axis=1) == 4)
    assert g1.reward.shape == g1.consumption.shape == (10, 10)
