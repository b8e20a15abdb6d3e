"""Exact oracles: published digits, plain enumeration of all histories, finite differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import oracles
from jaxbandits.gradients import exact
from tests.policies.reference.soft import soft_omega

# n, theta, regret, d/dtheta, d/dmu1, d/dmu2 of the means (0.6, 0.4): computed apart from this
# project
TABLE = [
    (20, 0.25, 1.3476830120, -0.5110703247, 3.75511031, -3.61524658),
    (20, 0.5, 1.3165517734, 0.3351578764, 3.40888297, -3.47858104),
    (50, 0.5, 2.4663112845, 0.6382316172, 2.22783083, -2.11569954),
    (50, 1.0, 3.2021077026, 1.5532180365, 7.57492129, -7.92045990),
]


def soft_elim(theta: float) -> oracles.Choice:
    """p ∝ exp(−2 (max r̄ − r̄)² n / θ²), r̄ = 1 without pulls; dp/dθ by −(2/θ³)(s_a − Σ p s)."""

    def choose(counts: oracles.Counts) -> np.ndarray:
        pulls = counts.pulls.astype(float)
        mean = np.where(pulls > 0, counts.rewards / np.maximum(pulls, 1), 1.0)
        s = -2 * (mean.max(1, keepdims=True) - mean) ** 2 * pulls
        p = np.exp(s / theta**2)
        p /= p.sum(1, keepdims=True)
        return np.stack([p, p * -2 / theta**3 * (s - (p * s).sum(1, keepdims=True))])

    return choose


def ucb1(c: float) -> oracles.Choice:
    """r̄ + √(c ln t / n), t = pulls so far, ties to the first arm."""

    def choose(counts: oracles.Counts) -> np.ndarray:
        n = counts.pulls
        with np.errstate(divide="ignore", invalid="ignore"):
            bonus = np.sqrt(c * np.log(np.maximum(n.sum(1, keepdims=True), 1)) / n)
            score = np.where(n > 0, counts.rewards / n + bonus, np.inf)
        return (score.argmax(1)[:, None] == np.arange(n.shape[1])).astype(float)[None]

    return choose


def of(choose: oracles.Choice, n: int) -> oracles.Exact:
    return oracles.evaluate(oracles.play_out(choose, arms=2, rounds=n), [[0.6, 0.4]], [[1.0, 1.0]])


@pytest.mark.parametrize(("n", "theta", "regret", "by_theta", "by_first", "by_second"), TABLE)
def test_softelim_to_eight_digits(
    n: int, theta: float, regret: float, by_theta: float, by_first: float, by_second: float
) -> None:
    solution = of(soft_elim(theta), n)
    got = (solution.regret[0], solution.by_parameter[0, 0], *solution.by_mean_reward[0])
    np.testing.assert_allclose(got, (regret, by_theta, by_first, by_second), atol=6e-9, rtol=0)


def test_the_library_softelim_is_the_same_to_eight_digits() -> None:
    # Rounded to ticks: 6e-8 away
    arms = jb.environments.FiniteArms.bernoulli([0.6, 0.4], [0.5, 0.5])
    for n, theta, regret, by_theta, *_ in TABLE[:3]:
        estimate = exact.estimate(jb.policies.SoftElim(theta), arms, jb.Horizon(n), wrt="theta")
        twin = oracles.evaluate(
            oracles.play_out(soft_elim(theta), 2, n), arms.values()[0], arms.values()[1]
        )
        np.testing.assert_allclose(estimate.value[0], twin.regret, rtol=1e-10)
        np.testing.assert_allclose(
            estimate.gradient["theta"][0], twin.by_parameter[:, 0], rtol=1e-10
        )
        np.testing.assert_allclose(
            (estimate.value[0, 0], estimate.gradient["theta"][0, 0]), (regret, by_theta), atol=1e-6
        )


@pytest.mark.parametrize(
    ("n", "at", "regret"), [(20, 0.404844, 1.29904801), (50, 0.442958, 2.44646722)]
)
@pytest.mark.integration_rows("50-0.442958-2.44646722")
def test_best_theta(n: int, at: float, regret: float) -> None:
    low, high = 0.3, 0.6
    while high - low > 3e-8:  # the derivative changes sign
        middle = (low + high) / 2
        low, high = (
            (middle, high) if of(soft_elim(middle), n).by_parameter[0, 0] < 0 else (low, middle)
        )
    assert abs(low - at) < 6e-7
    assert abs(of(soft_elim(low), n).regret[0] - regret) < 6e-9


def test_ucb1_is_a_step_function_of_its_constant() -> None:
    solution = of(ucb1(2.0), 20)
    assert abs(solution.regret[0] - 1.5465188247) < 6e-11
    np.testing.assert_allclose(solution.by_mean_reward[0], (5.60680247, -5.66625055), atol=6e-9)
    wide = {round(float(of(ucb1(c), 20).regret[0]), 12) for c in np.linspace(1.9, 2.1, 41)}
    narrow = {round(float(of(ucb1(c), 20).regret[0]), 12) for c in np.linspace(1.999, 2.001, 11)}
    assert len(wide) == 17
    assert len(narrow) == 1


@pytest.mark.parametrize(
    ("n", "reward", "regret"),
    [(10, 6.021786, 0.644881), (50, 31.996712, 1.336621), (100, 64.918421, 1.748246)],
)
def test_bayes_optimal(n: int, reward: float, regret: float) -> None:
    assert abs(oracles.bayes_optimal_reward(n) - reward) < 6e-7
    assert abs(oracles.bayes_optimal_regret(n) - regret) < 6e-7


def enumerate_histories(
    choose: oracles.Choice, r: np.ndarray, c: np.ndarray, budget: float, rule: str
) -> np.ndarray:
    """(expected regret, P(end)) by plain recursion over histories of at most 6 rounds."""
    rate = (r / c).max()

    def go(
        n: np.ndarray, s: np.ndarray, k: np.ndarray, spent: int, regret: float, depth: int
    ) -> np.ndarray:
        if spent >= budget:
            return np.array([regret, 1.0])
        if depth == 6:
            return np.zeros(2)
        p = choose(oracles.Counts(n[None], s[None], k[None]))[0, 0]
        total = np.zeros(2)
        for arm, reward, cost in itertools.product(range(len(r)), (0, 1), (0, 1)):
            if p[arm] == 0:
                continue
            chance = p[arm] * (r[arm] if reward else 1 - r[arm]) * (c[arm] if cost else 1 - c[arm])
            unit = np.eye(len(r), dtype=int)[arm]
            earns = not (rule == "forfeits" and spent + cost > budget)
            more = rate * c[arm] - r[arm] * earns
            after = go(
                n + unit, s + reward * unit, k + cost * unit, spent + cost, regret + more, depth + 1
            )
            total += chance * after
        return total

    none = np.zeros(len(r), int)
    return go(none, none, none, 0, 0.0, 0)


@pytest.mark.parametrize(
    ("budget", "rule"), [(1.0, "counts"), (2.0, "counts"), (1.5, "counts"), (1.5, "forfeits")]
)
def test_budgeted_regret_is_that_of_all_histories(budget: float, rule: str) -> None:
    r, c = np.array([0.7, 0.4]), np.array([0.9, 0.8])
    choose = soft_omega(0.25, 0.5)
    must = enumerate_histories(choose, r, c, budget, rule)
    ends = oracles.play_out(choose, 2, 6, budget=budget, last_pull=rule)
    solution = oracles.evaluate(ends, [r], [c])
    np.testing.assert_allclose([solution.regret[0], 1 - solution.missing[0]], must, rtol=1e-12)


def test_three_arms_with_a_horizon_and_costs() -> None:
    ends = oracles.play_out(soft_elim(0.7), 3, 6)
    solution = oracles.evaluate(ends, [[0.6, 0.4, 0.5]], [[1.0, 1.0, 1.0]])
    assert abs(solution.pulls.sum() - 6) < 1e-12
    np.testing.assert_allclose(solution.regret[0], solution.pulls[0] @ [0, 0.2, 0.1], rtol=1e-12)


def test_derivatives_are_those_of_finite_differences() -> None:
    r, c, h = np.array([[0.7, 0.4]]), np.array([[0.8, 0.9]]), 1e-6
    ends = oracles.play_out(soft_omega(0.25, 0.5), 2, 14, budget=2.5, last_pull="forfeits")
    solution = oracles.evaluate(ends, r, c)
    by_mean = np.stack([solution.by_mean_reward[0], solution.by_mean_cost[0]])
    for kind, k in itertools.product(range(2), range(2)):
        step = np.zeros((2, 2))
        step[kind, k] = h
        high, low = (oracles.evaluate(ends, r + s[0], c + s[1]).regret[0] for s in (step, -step))
        np.testing.assert_allclose(by_mean[kind, k], (high - low) / (2 * h), rtol=1e-6)


def test_a_budget_that_no_run_can_spend_in_so_many_rounds_is_refused() -> None:
    with pytest.raises(jb.InputError, match="rounds: 6 given; it must be 7 or more"):
        oracles.play_out(soft_elim(0.7), 2, 6, budget=6.5)


def test_the_library_choices_are_the_twins() -> None:
    rng = np.random.default_rng(0)
    n = rng.integers(0, 12, (300, 2))
    counts = oracles.Counts(n, rng.integers(0, n + 1), rng.integers(0, n + 1))
    soft = jb.policies.SoftIndex(jb.policies.OmegaUCB(rho=0.25), temperature=0.5)
    np.testing.assert_allclose(
        exact.choice_of(soft)(counts)[0], soft_omega(0.25, 0.5)(counts)[0], atol=1e-9
    )
    elim = exact.choice_of(jb.policies.SoftElim(theta=0.5), ("theta",))(counts)
    np.testing.assert_allclose(elim, soft_elim(0.5)(counts), atol=1e-12)
    hard = exact.choice_of(jb.policies.OmegaUCB(rho=0.25))(counts)[0]
    sharp = soft_omega(0.25, 1e-6)(counts)[0]
    assert (hard == sharp).all(axis=1).mean() > 0.99  # but for float32 near-ties
