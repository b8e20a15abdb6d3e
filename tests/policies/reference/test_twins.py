"""Checks of the reference twins: vectors of SPEC F, LP against scipy, hard constraints, branch
arithmetic.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from . import knapsack
from .budgeted import omega_interval
from .knapsack import SUAK, Mixture, OnePhase, PrimalDualTwoPhase, UCBSimplex, lp_pair

MU1, RHO1 = [0.45, 0.70, 0.80], [0.30, 0.75, 0.80]
MU2 = [0.35, 0.45, 0.52, 0.72, 0.84, 0.90, 0.92, 0.90]
RHO2 = [0.25, 0.30, 0.40, 0.60, 0.70, 0.75, 0.80, 0.85]


def six(value: float) -> object:
    """Equality to 6 printed decimals."""
    return pytest.approx(value, rel=0.0, abs=5.1e-7)


# ---------------------------------------------------------------- finite arms


def test_omega_interval_is_the_literal_theorem_1() -> None:
    rng = np.random.default_rng(3)
    for _ in range(500):
        n, mean, k_z = (
            int(rng.integers(1, 2000)),
            float(rng.random()),
            float(rng.random() * 30 + 0.01),
        )
        a, b, c = n + k_z, 2 * n * mean + k_z, n * mean**2
        root = math.sqrt(b * b / (4 * a * a) - c / a)
        lower, upper = omega_interval(n, mean, k_z)
        assert upper == pytest.approx(b / (2 * a) + root, abs=1e-12)
        assert lower == pytest.approx(b / (2 * a) - root, abs=1e-12)
    assert omega_interval(7, 0.0, 3.0)[0] == 0.0
    assert omega_interval(7, 1.0, 3.0)[1] == 1.0
    assert omega_interval(9, 0.3, 0.0) == (
        pytest.approx(0.3, abs=1e-15),
        pytest.approx(0.3, abs=1e-15),
    )


# ---------------------------------------------------------------- LP


def linprog_value(mu: list[float], rho: list[float], c: float, allow_null: bool = True) -> float:
    """Optimum of the LP by scipy; -inf if infeasible."""
    extra = [0.0] if allow_null else []
    m, r = np.array([*mu, *extra]), np.array([*rho, *extra])
    out = linprog(
        -m, A_ub=r[None], b_ub=[c], A_eq=np.ones((1, len(m))), b_eq=[1.0], bounds=(0, None)
    )
    return -float(out.fun) if out.success else -math.inf


def test_lp_against_linprog() -> None:
    rng = np.random.default_rng(4)
    pairs = infeasible = 0
    for i in range(300):
        k = int(rng.integers(1, 9))
        mu, rho, c = rng.random(k), rng.random(k), float(rng.random())
        if i % 3 == 0:  # the clipped corners and coinciding arms that confidence bounds produce
            mu, rho = np.minimum(mu * 2, 1.0), np.maximum(rho * 2 - 1, 0.0)
        m, r = [float(x) for x in mu], [float(x) for x in rho]
        sol = lp_pair(m, r, c)
        assert sol.value == pytest.approx(linprog_value(m, r, c), abs=1e-9)
        assert sol.weights.shape == (k + 1,) and sol.weights.min() >= 0.0
        assert sol.weights.sum() == pytest.approx(1.0, abs=1e-12)
        assert float(sol.weights[:k] @ rho) <= c + 1e-12
        assert float(sol.weights[:k] @ mu) == pytest.approx(sol.value, abs=1e-12)
        pairs += sol.high >= 0
        restricted = lp_pair(m, r, c, forbidden={k})
        assert restricted.value == pytest.approx(linprog_value(m, r, c, allow_null=False), abs=1e-9)
        infeasible += restricted.low < 0
    assert pairs > 50 and infeasible > 10


def test_lp_of_the_two_instances() -> None:
    first, second = lp_pair(MU1, RHO1, 0.5), lp_pair(MU2, RHO2, 0.5)
    assert first.value == pytest.approx(0.59, abs=1e-12) and (first.high, first.low) == (2, 0)
    assert first.weights == pytest.approx([0.6, 0.0, 0.4, 0.0], abs=1e-12)
    assert second.value == pytest.approx(0.65, abs=1e-12) and (second.high, second.low) == (5, 1)
    assert second.weights[5] == pytest.approx(4 / 9, abs=1e-12)
    runner_up = lp_pair(MU2, RHO2, 0.5, forbidden={5})
    assert runner_up.value == pytest.approx(0.645, abs=1e-12)


def test_lp_ties_and_forbidden() -> None:
    assert lp_pair([0.5, 0.5], [0.2, 0.1], 0.5)[2:] == (-1, 0)
    # Single before the equally good pair
    assert lp_pair([1.0, 1.0], [0.9, 0.5], 0.5)[2:] == (-1, 1)
    assert lp_pair([0.3, 0.3, 0.9], [0.1, 0.1, 0.9], 0.5)[2:] == (2, 0)
    assert lp_pair([0.9, 0.9, 0.3], [0.9, 0.9, 0.1], 0.5)[2:] == (0, 2)
    assert lp_pair([0.9], [0.9], 0.45)[2:] == (0, 1)
    # equal up to rounding: the pair computes to 0.7 + 1.1e-16
    mu, rho = [0.7, 0.7], [0.93, 0.31]
    values = [
        x.value
        for c in np.linspace(0.35, 0.9, 200)
        for x in knapsack.lp_candidates(mu, rho, float(c))
    ]
    assert max(values) > 0.7
    assert all(lp_pair(mu, rho, float(c)).high == -1 for c in np.linspace(0.35, 0.9, 200))
    infeasible = lp_pair([0.9], [0.9], 0.5, forbidden={1})
    assert infeasible.value == -math.inf and infeasible.low == -1 and not infeasible.weights.any()


# ---------------------------------------------------------------- SUAK


@pytest.mark.parametrize(("c", "first"), [(0.5, 3), (0.3, 5), (0.09, 13), (1.0, 2)])
def test_suak_first_pull_is_after_ceil_one_over_c_skips(c: float, first: int) -> None:
    policy = SUAK(2, c)
    for t in range(1, 40):
        action = policy.act(0.5)
        if action >= 0:
            assert (t, action) == (first, 0) and policy.branch() == "explore"
            return
        policy.update(action, 0.0, 0.0)
    pytest.fail("deadlock")


def suak_state(spent_gap: float, T: int | None = None) -> SUAK:
    """t = 10001, N = (4e5, 9e5), means mu = (.3, .9), rho = (.2, .9), c = .5; ``spent_gap`` = c t -
    Sc.
    """
    policy = SUAK(2, 0.5, T=T)
    policy.n[:] = [400_000, 900_000]
    policy.sum_r[:] = [0.3 * 400_000, 0.9 * 900_000]
    policy.sum_c[:] = [0.2 * 400_000, 0.9 * 900_000]
    policy.rounds = 10_000
    policy.spent = 0.5 * 10_001 - spent_gap
    return policy


def test_suak_main_rule_by_hand() -> None:
    assert SUAK.omega_of(0.06, 0.5) == six(0.0384615)
    log_t = math.log(10_001)
    d = min(0.3 - math.sqrt(1.5 * log_t / 4e5), 0.4 - math.sqrt(1.5 * log_t / 9e5))
    w = d / (1.5 + d)
    shift = log_t / w**2
    assert suak_state(1.0).omega() == pytest.approx(w, rel=1e-12)
    assert w == pytest.approx(0.294 / 1.794, abs=1e-3)
    cases = [(0.95, 1 - w), (0.85, 1 - w), (0.15, w), (0.25, w), (0.55, 0.5), (0.62, 0.6)]
    for b, p in cases:
        policy = suak_state(shift + b)
        assert policy.branch() == "main"
        assert policy.spare() == pytest.approx(b, abs=1e-8)
        plan = policy.plan()
        assert plan[:2] == (1, 0)
        assert plan.p == pytest.approx(p, abs=1e-8)
        assert policy.act(plan.p - 1e-9) == 1 and policy.act(plan.p) == 0
    # b above c t is never reached, the anytime test comes first
    tight = suak_state(0.99)
    assert tight.branch() == "skip_c" and tight.act(0.0) == -1
    tight.update(-1, 0.0, 0.0)
    assert (tight.skips_c, tight.skips_p, tight.np_) == (1, 0, 0)
    assert suak_state(1.0).branch() == "main"


def test_suak_bounds_log_option() -> None:
    upper, lower = suak_state(5.0).bounds()
    assert upper[0] == pytest.approx(0.3 + math.sqrt(3 * math.log(10_001) / 4e5), abs=1e-12)
    assert lower[1] == pytest.approx(0.9 - math.sqrt(3 * math.log(10_001) / 9e5), abs=1e-12)
    upper_t, _ = suak_state(5.0, T=10**6).bounds()
    assert upper_t[0] == pytest.approx(0.3 + math.sqrt(3 * math.log(1e6) / 4e5), abs=1e-12)
    young = SUAK(1, 0.5)
    young.n[:], young.rounds = 1, 9
    assert young.bounds() == ([1.0], [0.0])


def test_suak_uncertain_test_and_phase_2_exploration() -> None:
    policy = suak_state(50.0)
    n_edge = 49 * 1.5 * math.log(10_001) / 0.3**2  # |0.2 - 0.5| = wide
    for n, expected in [(math.ceil(n_edge), []), (math.floor(n_edge), [0])]:
        policy.n[0], policy.sum_c[0], policy.sum_r[0] = n, 0.2 * n, 0.3 * n
        assert policy.uncertain() == expected
    # main rule off, S_p test first, and N_p moves with the skip
    policy.sp, policy.np_ = 9.5, 20
    assert policy.branch() == "skip_p"
    policy.update(policy.act(0.5), 0.0, 0.0)
    assert (policy.np_, policy.sp, policy.skips_p) == (21, 9.5, 1)
    assert policy.branch() == "explore" and policy.act(0.999) == 0
    policy.spent = 0.5 * policy.t - 0.9  # the anytime test bites in phase 2; N_p stays
    assert policy.branch() == "skip_c"
    policy.update(-1, 0.0, 0.0)
    assert (policy.np_, policy.skips_c) == (21, 1)
    policy.spent = 0.0
    policy.update(policy.act(0.0), 0.5, 0.25)
    assert (policy.np_, policy.sp, policy.spent) == (22, 9.75, 0.25)


# ---------------------------------------------------------------- skip wrapper and the three baselines


def test_one_phase_lp_is_the_budget_and_time_lp() -> None:
    rng = np.random.default_rng(9)
    kinds = set()
    for i in range(60):
        k, T = 4, 5000
        policy = OnePhase(k, 0.5, T)
        # Radius < 0.12: no clipped rewards, unique optima
        policy.n[:] = rng.integers(2000, 5000, k)
        policy.sum_r[:], policy.sum_c[:] = policy.n * rng.random(k) * 0.85, policy.n * rng.random(k)
        if i % 4 == 0:  # only costly arms: the null arm is needed
            policy.sum_c[:] = policy.n * rng.uniform(0.8, 1.0, k)
        policy.rounds = int(rng.integers(3000, 4900))
        policy.spent = float(rng.uniform(0.8, 1.0)) * 0.5 * policy.rounds
        upper = np.clip(policy.sum_r / policy.n + np.sqrt(3 * math.log(T) / policy.n), 0, 1)
        lower = np.clip(policy.sum_c / policy.n - np.sqrt(3 * math.log(T) / policy.n), 0, 1)
        rounds_left = T - policy.t + 1
        out = linprog(
            -upper,
            A_ub=np.array([lower, np.ones(k)]),
            b_ub=[0.5 * T - policy.spent, rounds_left],
            bounds=(0, None),
        )
        sol = policy.solution()
        assert sol.value * rounds_left == pytest.approx(-out.fun, rel=1e-8)
        plan = policy.base_plan()
        expected = np.append(out.x, rounds_left - out.x.sum()) / rounds_left
        weights = np.zeros(k + 1)
        weights[plan.second] += 1 - plan.p
        weights[plan.first] += plan.p
        assert weights == pytest.approx(expected, abs=1e-7)
        kinds.add("single" if plan.first == plan.second else "null" if plan.second == k else "pair")
    assert kinds == {"single", "null", "pair"}


def test_ops_exhausted_budget_plays_free_arms_or_null() -> None:
    policy = OnePhase(1, 0.5, 100, skip=False)
    policy.n[:], policy.sum_r[:], policy.sum_c[:] = 10_000, 5000, 9000
    policy.rounds, policy.spent = 90, 60.0  # c T - Sc < 0
    plan = policy.plan()
    assert plan == Mixture(1, 1, 1.0) and policy.act(0.0) == 1
    policy.sum_c[:] = 100.0  # lower cost bound 0
    assert policy.plan() == Mixture(0, 0, 1.0)


def test_primal_dual_identifies_arm_and_null_after_the_computed_sweep() -> None:
    """Deterministic outcomes: arm 0 (1, 1), arm 1 (0, 1), c = 1/2: optimum arm 0 with the null arm."""
    T = 10_000
    policy = PrimalDualTwoPhase(2, 0.5, T, skip=False)

    def rad(n: int) -> float:
        return math.sqrt(2 * math.log(T) / n)

    null_in = next(n for n in range(1, T) if 1 - rad(n) > 0.5)  # without null infeasible
    arm_in = next(
        n for n in range(1, T) if rad(n) * 0.5 / (1 - rad(n)) < 0.5 * (1 - rad(n)) and rad(n) < 0.5
    )
    assert null_in < arm_in
    for _ in range(2 * arm_in):
        assert policy.phase == 1
        arm = policy.act(0.9)
        policy.update(arm, 1.0 - arm, 1.0)
        assert (2 in policy.x_star) == (policy.n.min() >= null_in)
    assert policy.phase == 2 and policy.x_star == {0, 2} and not policy.cost_slack
    assert policy.n.tolist() == [arm_in, arm_in]
    lower = 1 - rad(arm_in)
    rate = (0.5 * T - 2 * arm_in) / (T - 2 * arm_in)
    assert policy.plan() == Mixture(0, 2, pytest.approx(rate / lower, abs=1e-12))


def test_primal_dual_phase_2_restriction() -> None:
    for always, expected in [(True, (1, 2)), (False, (1, 0))]:
        policy = PrimalDualTwoPhase(2, 0.5, 100, null_always=always)
        policy.n[:], policy.sum_r[:], policy.sum_c[:] = 10**8, [0.01e8, 0.9e8], [0.4e8, 0.8e8]
        policy.x_star = {0, 1}
        assert policy.base_plan()[:2] == expected
    policy.sum_c[0] = 0.7e8  # nothing feasible in x_star: the null arm comes back
    assert policy.base_plan()[1] == 2
    policy.x_star = {0, 2}
    assert policy.base_plan()[:2] == (0, 2)


def test_simplex_basis_is_unclipped_with_empirical_costs() -> None:
    policy = UCBSimplex(2, 0.5, lam=9.0)
    policy.n[:], policy.sum_r[:], policy.sum_c[:] = [100, 400], [30, 320], [20, 320]
    policy.rounds = 500
    log_t = math.log(501)
    boosted = [0.3 + 9 * math.sqrt(2 * log_t / 100), 0.8 + 9 * math.sqrt(2 * log_t / 400)]
    basis = policy.basis()
    assert basis is not None and boosted[0] > boosted[1] > 1.0
    assert (basis.high, basis.low) == (-1, 0) and basis.value == pytest.approx(
        boosted[0], rel=1e-12
    )
    policy.lam = 0.0
    basis = policy.basis()
    assert basis is not None and (basis.high, basis.low) == (1, 0)
    assert basis.weights == pytest.approx([0.5, 0.5, 0.0], abs=1e-12)


def test_simplex_load_balance() -> None:
    policy = UCBSimplex(2, 0.5, lam=0.0)
    policy.n[:], policy.sum_r[:], policy.sum_c[:] = 10_000, [3000, 8000], [2000, 8000]
    policy.rounds = 100_000
    trace = []
    for cost in (0.75, 0.25, 1.0, 0.25, 0.25, 0.25):
        trace.append(policy.act(0.5))
        policy.update(trace[-1], 0.5, cost)
    # b <= c n: 0<=0 high; .75>.5 low; 1<=1 high; 2>1.5 low; 2.25>2 low; 2.5<=2.5 high
    assert trace == [1, 0, 1, 0, 0, 1]
    assert policy.pair_n == {(1, 0): 6} and policy.pair_cost[(1, 0)] == 2.75
    null = UCBSimplex(1, 0.5, lam=0.0, skip=False)
    null.n[:], null.sum_r[:], null.sum_c[:], null.rounds = 100, 90, 90, 100
    assert null.act(0.0) == 0
    null.update(0, 1.0, 0.9)
    assert null.act(0.0) == 1
    null.update(1, 0.0, 0.0)
    assert null.pair_n == {(0, 1): 2} and null.n[0] == 101 and null.act(0.0) == 0
