"""Checks of the reference twins: vectors of SPEC F, LP against scipy, hard constraints, branch arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import norm

from . import budgeted, knapsack
from .budgeted import Seen, omega_interval
from .knapsack import SUAK, Mixture, OnePhase, PrimalDualTwoPhase, UCBSimplex, lp_pair

MU1, RHO1 = [0.45, 0.70, 0.80], [0.30, 0.75, 0.80]
MU2 = [0.35, 0.45, 0.52, 0.72, 0.84, 0.90, 0.92, 0.90]
RHO2 = [0.25, 0.30, 0.40, 0.60, 0.70, 0.75, 0.80, 0.85]


def six(value: float) -> object:
    """Equality to 6 printed decimals."""
    return pytest.approx(value, rel=0.0, abs=5.1e-7)


# ---------------------------------------------------------------- finite arms


def seen_of(t: float, *outcomes: tuple[list[float], list[float]]) -> Seen:
    """Of arms with these rewards and costs."""
    r, c = (np.array([[sum(x**k for x in arm[j]) for arm in outcomes] for k in (1, 2)]) for j in (0, 1))
    n = np.array([float(len(rewards)) for rewards, _ in outcomes])
    return Seen(np.array([t]), n, r[0], c[0], r[1], c[1])


def test_omega_star_estimates_eta_from_thirty_pulls_on() -> None:
    """η = min(1, biased two-pass variance / (mean (1 − mean))); 1 below 30 pulls and for a mean of exactly 0 or 1."""
    rng = np.random.default_rng(1)
    few, many, coins = rng.random(29).tolist(), rng.random(30).tolist(), rng.integers(0, 2, 200).astype(float).tolist()
    for sample, eta in (
        (few, 1.0),
        (coins, 1.0),
        ([1.0] * 40, 1.0),
        (many, np.var(many) / np.mean(many) / (1 - np.mean(many))),
    ):
        s = seen_of(300.0, (sample, sample))
        assert budgeted.omega_star(s) == pytest.approx(budgeted.omega(s, 0.25, eta, eta), rel=1e-9)
    assert eta < 0.6
    upper, lower = (omega_interval(30, float(np.mean(many)), 0.5 * math.log(300.0) * eta)[k] for k in (1, 0))
    assert budgeted.omega_star(s)[0] == pytest.approx(upper / lower, rel=1e-12)


def test_example_2() -> None:
    """P-omega Example 2 as recomputed in SPEC A.15 #21: t = 10000, n = 1000."""
    quantile = norm.ppf(1 - (1 - math.sqrt(1 - 1e-4)) / 2)
    assert quantile == pytest.approx(4.0556, abs=5e-5)
    for z, expected in [(quantile, (5.504, 2.142)), (math.sqrt(2 * math.log(10000)), (5.607, 2.238))]:
        for (mean_r, mean_c), value in zip([(0.8, 0.2), (0.1, 0.1)], expected, strict=True):
            upper = omega_interval(1000, mean_r, z * z)[1]
            lower = omega_interval(1000, mean_c, z * z)[0]
            assert upper / lower == pytest.approx(value, abs=5.1e-4)
    s = Seen(*(np.array(x, float) for x in ([10_000], [1000, 1000], [800, 100], [200, 100], [0, 0], [0, 0])))
    assert budgeted.omega(s, 1.0) == pytest.approx([5.607, 2.238], abs=5.1e-4)
    assert budgeted.m_ucb(s, 1.0) == pytest.approx([8.613, 48.628], abs=5.1e-4)  # ln(t - 1); ln t would give 48.634


@pytest.mark.parametrize("score", [budgeted.omega, budgeted.omega_star, budgeted.m_ucb, budgeted.c_ucb, budgeted.i_ucb])
def test_an_arm_that_cost_nothing_comes_first(score: Callable[[Seen], np.ndarray]) -> None:
    s = seen_of(184.0, *(([0.25] * 61, [cost] * 61) for cost in (0.0, 0.5, 1.0)))
    assert score(s)[0] == math.inf and np.isfinite(score(s)[1:]).all()


def test_log_guard_and_m_ucb_infinite_denominator() -> None:
    for t in (1.0, 2.0):  # ln(max(t - 1, 1)) = 0
        assert budgeted.m_ucb(seen_of(t, ([0.5], [0.5])))[0] == 1.0
    state = seen_of(1000.0, ([0.99] * 50, [0.4] * 50))
    radius = math.sqrt(math.log(999) / 50)
    assert budgeted.m_ucb(state, 1.2)[0] == math.inf
    assert budgeted.m_ucb(state)[0] == pytest.approx(1.0 / (0.4 - radius / 16), rel=1e-12)


def test_omega_interval_is_the_literal_theorem_1() -> None:
    rng = np.random.default_rng(3)
    for _ in range(500):
        n, mean, k_z = int(rng.integers(1, 2000)), float(rng.random()), float(rng.random() * 30 + 0.01)
        a, b, c = n + k_z, 2 * n * mean + k_z, n * mean**2
        root = math.sqrt(b * b / (4 * a * a) - c / a)
        lower, upper = omega_interval(n, mean, k_z)
        assert upper == pytest.approx(b / (2 * a) + root, abs=1e-12)
        assert lower == pytest.approx(b / (2 * a) - root, abs=1e-12)
    assert omega_interval(7, 0.0, 3.0)[0] == 0.0
    assert omega_interval(7, 1.0, 3.0)[1] == 1.0
    assert omega_interval(9, 0.3, 0.0) == (pytest.approx(0.3, abs=1e-15), pytest.approx(0.3, abs=1e-15))


# ---------------------------------------------------------------- LP


def linprog_value(mu: list[float], rho: list[float], c: float, allow_null: bool = True) -> float:
    """Optimum of the LP by scipy; -inf if infeasible."""
    extra = [0.0] if allow_null else []
    m, r = np.array([*mu, *extra]), np.array([*rho, *extra])
    out = linprog(-m, A_ub=r[None], b_ub=[c], A_eq=np.ones((1, len(m))), b_eq=[1.0], bounds=(0, None))
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
    one, two = lp_pair(MU1, RHO1, 0.5), lp_pair(MU2, RHO2, 0.5)
    assert one.value == pytest.approx(0.59, abs=1e-12) and (one.high, one.low) == (2, 0)
    assert one.weights == pytest.approx([0.6, 0.0, 0.4, 0.0], abs=1e-12)
    assert two.value == pytest.approx(0.65, abs=1e-12) and (two.high, two.low) == (5, 1)
    assert two.weights[5] == pytest.approx(4 / 9, abs=1e-12)
    runner_up = lp_pair(MU2, RHO2, 0.5, forbidden={5})
    assert runner_up.value == pytest.approx(0.645, abs=1e-12)


def test_lp_ties_and_forbidden() -> None:
    assert lp_pair([0.5, 0.5], [0.2, 0.1], 0.5)[2:] == (-1, 0)
    assert lp_pair([1.0, 1.0], [0.9, 0.5], 0.5)[2:] == (-1, 1)  # single before the equally good pair
    assert lp_pair([0.3, 0.3, 0.9], [0.1, 0.1, 0.9], 0.5)[2:] == (2, 0)
    assert lp_pair([0.9, 0.9, 0.3], [0.9, 0.9, 0.1], 0.5)[2:] == (0, 2)
    assert lp_pair([0.9], [0.9], 0.45)[2:] == (0, 1)
    # equal up to rounding: the pair computes to 0.7 + 1.1e-16
    mu, rho = [0.7, 0.7], [0.93, 0.31]
    values = [x.value for c in np.linspace(0.35, 0.9, 200) for x in knapsack.lp_candidates(mu, rho, float(c))]
    assert max(values) > 0.7
    assert all(lp_pair(mu, rho, float(c)).high == -1 for c in np.linspace(0.35, 0.9, 200))
    infeasible = lp_pair([0.9], [0.9], 0.5, forbidden={1})
    assert infeasible.value == -math.inf and infeasible.low == -1 and not infeasible.weights.any()


# ---------------------------------------------------------------- SUAK


def play(
    policy: knapsack._Knapsack,
    mu: list[float],
    rho: list[float],
    rounds: int,
    seed: int,
    bernoulli: bool = False,
) -> dict[str, list[float]]:
    """Simulate, asserting the hard constraint after every round; returns actions and running cost."""
    rng = np.random.default_rng(seed)
    log: dict[str, list[float]] = {"action": [], "cost": [], "reward": []}
    total = 0.0
    for t in range(1, rounds + 1):
        action = policy.act(float(rng.random()))
        reward = cost = 0.0
        if 0 <= action < policy.K:
            m, r = mu[action], rho[action]
            if bernoulli:
                reward, cost = float(rng.random() < m), float(rng.random() < r)
            else:
                reward, cost = float(rng.beta(10 * m, 10 * (1 - m))), float(rng.beta(10 * r, 10 * (1 - r)))
        policy.update(action, reward, cost)
        total += cost
        assert total <= policy.c * t + 1e-9, f"round {t}"
        log["action"].append(action)
        log["cost"].append(cost)
        log["reward"].append(reward)
    assert policy.rounds == rounds and policy.spent == pytest.approx(total, abs=1e-9)
    return log


def test_suak_instance_1_constraint_and_phase_1() -> None:
    policy = SUAK(3, 0.5)
    log = play(policy, MU1, RHO1, 20_000, seed=5)
    action = np.array(log["action"])
    assert list(action[:3]) == [-1, -1, 0]  # no deadlock: N_p counts the two skips, then 1 <= c * 2
    assert policy.np_ == 20_000 and policy.sp == policy.spent  # all phase 1 (needs about 5e4 pulls)
    assert policy.skips_p == int((action == -1).sum()) and policy.skips_c == 0
    assert policy.n.sum() + policy.skips_p == 20_000
    assert policy.n.max() - policy.n.min() <= 1  # fewest pulls first
    assert policy.spent / 20_000 == pytest.approx(0.5, abs=0.001)  # average cost is c in phase 1
    # Skips fill the gap between the mean cost 0.61667 and c = 0.5 (share 1 - 0.5/0.61667 = 0.189).
    assert policy.skips_p / 20_000 == pytest.approx(1 - 0.5 / np.mean(RHO1), abs=0.01)


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
    """t = 10001, N = (4e5, 9e5), means mu = (.3, .9), rho = (.2, .9), c = .5; ``spent_gap`` = c t - Sc."""
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
    few = SUAK(1, 0.5)
    few.n[:], few.rounds = 1, 9
    assert few.bounds() == ([1.0], [0.0])


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


def test_suak_single_arm_and_null_base() -> None:
    single = suak_state(5.0)
    single.sum_r[:] = [0.9 * 400_000, 0.3 * 900_000]
    assert single.plan() == Mixture(0, 0, 1.0)
    only = SUAK(1, 0.5)
    only.n[:], only.sum_r[:], only.sum_c[:], only.rounds = 900_000, 0.9 * 900_000, 0.9 * 900_000, 10_000
    plan = only.plan()
    assert plan[:2] == (0, 1) and plan.p == pytest.approx(1 - only.omega(), abs=1e-12)
    assert only.act(0.999) == 1
    only.update(1, 0.0, 0.0)
    assert only.n[0] == 900_000 and only.skips_c == only.skips_p == 0


# ---------------------------------------------------------------- skip wrapper and the three baselines


@pytest.mark.parametrize("c", [0.5, 0.3, 0.81])
@pytest.mark.parametrize("bernoulli", [False, True])
@pytest.mark.parametrize("kind", ["suak", "ops", "pds", "uss"])
def test_hard_constraint(kind: str, bernoulli: bool, c: float) -> None:
    make = {
        "suak": lambda **_: SUAK(8, c),
        "ops": lambda **given: OnePhase(8, c, 1500, **given),
        "pds": lambda **given: PrimalDualTwoPhase(8, c, 1500, **given),
        "uss": lambda **given: UCBSimplex(8, c, **given),
    }[kind]
    if kind != "suak" and c == 0.3:  # without the wrapper they break it
        with pytest.raises(AssertionError, match="round"):
            play(make(skip=False), MU2, RHO2, 300, seed=8)
    policy = make()
    log = play(policy, MU2, RHO2, 1500, seed=7, bernoulli=bernoulli)
    assert np.sum(policy.n) > 700
    assert log["action"][0] == -1  # 1 > c * 1: initialisation skips too


def test_skip_changes_no_other_counter() -> None:
    policy = UCBSimplex(2, 0.5)
    policy.n[:], policy.sum_r[:], policy.sum_c[:] = 100, [30, 80], [20, 80]
    policy.rounds, policy.spent = 200, 100.0
    assert policy.act(0.3) == -1
    policy.update(-1, 0.0, 0.0)
    assert (policy.t, policy.skips, policy.pair_n, policy.spent) == (202, 1, {}, 100.0)
    assert policy.n.tolist() == [100, 100] and policy.act(0.3) >= 0  # 101 <= 0.5 * 202


def test_one_phase_lp_is_the_budget_and_time_lp() -> None:
    rng = np.random.default_rng(9)
    kinds = set()
    for i in range(60):
        k, T = 4, 5000
        policy = OnePhase(k, 0.5, T)
        policy.n[:] = rng.integers(2000, 5000, k)  # radius < 0.12: no clipped rewards, unique optima
        policy.sum_r[:], policy.sum_c[:] = policy.n * rng.random(k) * 0.85, policy.n * rng.random(k)
        if i % 4 == 0:  # only costly arms: the null arm is needed
            policy.sum_c[:] = policy.n * rng.uniform(0.8, 1.0, k)
        policy.rounds = int(rng.integers(3000, 4900))
        policy.spent = float(rng.uniform(0.8, 1.0)) * 0.5 * policy.rounds
        upper = np.clip(policy.sum_r / policy.n + np.sqrt(3 * math.log(T) / policy.n), 0, 1)
        lower = np.clip(policy.sum_c / policy.n - np.sqrt(3 * math.log(T) / policy.n), 0, 1)
        left = T - policy.t + 1
        out = linprog(-upper, A_ub=np.array([lower, np.ones(k)]), b_ub=[0.5 * T - policy.spent, left], bounds=(0, None))
        sol = policy.solution()
        assert sol.value * left == pytest.approx(-out.fun, rel=1e-8)
        plan = policy.base_plan()
        expected = np.append(out.x, left - out.x.sum()) / left
        weights = np.zeros(k + 1)
        weights[plan.second] += 1 - plan.p
        weights[plan.first] += plan.p
        assert weights == pytest.approx(expected, abs=1e-7)
        kinds.add("single" if plan.first == plan.second else "null" if plan.second == k else "pair")
    assert kinds == {"single", "null", "pair"}


def test_one_phase_initialisation_and_radius() -> None:
    policy = OnePhase(2, 0.5, 1000)
    actions = []
    for _ in range(6):
        actions.append(policy.act(0.5))
        policy.update(actions[-1], 0.0 if actions[-1] < 0 else 0.4, 0.0 if actions[-1] < 0 else 1.0)
    # Sc + 1 <= t / 2: pulls possible from t = 2, then t = 4, 6
    assert actions[:4] == [-1, 0, -1, 1]
    policy = OnePhase(2, 0.5, 1000, a=2.0)
    policy.n[:], policy.sum_r[:], policy.sum_c[:] = 400, [40, 80], [160, 360]
    assert policy.bounds()[0][0] == pytest.approx(0.1 + math.sqrt(2 * math.log(1000) / 400), abs=1e-12)
    assert policy.bounds()[1][1] == pytest.approx(0.9 - math.sqrt(2 * math.log(1000) / 400), abs=1e-12)


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
    arm_in = next(n for n in range(1, T) if rad(n) * 0.5 / (1 - rad(n)) < 0.5 * (1 - rad(n)) and rad(n) < 0.5)
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


def test_primal_dual_identifies_slack() -> None:
    """Arm 0 (1, 0), arm 1 (0, 0): the cost constraint does not bind; stops on one arm plus the resource."""
    T = 1000
    policy = PrimalDualTwoPhase(2, 0.5, T, skip=False)
    while policy.phase == 1:
        arm = policy.act(0.0)
        policy.update(arm, 1.0 - arm, 0.0)
    n = int(policy.n[0])
    # max <mu^U + rho^U> - c = 1 + rad - c < 1 - rad, i.e. rad < 1/4
    assert n == math.floor(2 * math.log(T) / 0.0625) + 1
    assert policy.x_star == {0} and policy.cost_slack
    assert policy.plan() == Mixture(0, 0, 1.0)


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


def test_primal_dual_stays_in_phase_1_on_instance_2() -> None:
    policy = PrimalDualTwoPhase(8, 0.5, 2_500_000)
    rounds = 4000
    log = play(policy, MU2, RHO2, rounds, seed=10)
    assert policy.phase == 1 and policy.n.max() - policy.n.min() <= 1
    regret = 0.65 - sum(log["reward"]) / rounds
    assert regret == pytest.approx(0.65 - 0.7 * 0.5 / 0.58125, abs=0.01)  # 1.20e5 at T = 2.5e6
    # even with exact means the tests cannot separate arm 5 (gap 0.005) at N = T c / (8 * 0.58125)
    policy.n[:] = int(2.5e6 * 0.5 / 0.58125 / 8)
    policy.sum_r[:], policy.sum_c[:] = policy.n * np.array(MU2), policy.n * np.array(RHO2)
    opt, without, _ = policy.tests()
    assert without[5] > opt
    policy.n[:] *= 10_000
    policy.sum_r *= 10_000
    policy.sum_c *= 10_000
    opt, without, slack = policy.tests()
    assert [x for x in range(9) if without[x] < opt] == [1, 5] and slack > opt


def test_simplex_basis_is_unclipped_with_empirical_costs() -> None:
    policy = UCBSimplex(2, 0.5, lam=9.0)
    policy.n[:], policy.sum_r[:], policy.sum_c[:] = [100, 400], [30, 320], [20, 320]
    policy.rounds = 500
    log_t = math.log(501)
    boosted = [0.3 + 9 * math.sqrt(2 * log_t / 100), 0.8 + 9 * math.sqrt(2 * log_t / 400)]
    basis = policy.basis()
    assert basis is not None and boosted[0] > boosted[1] > 1.0
    assert (basis.high, basis.low) == (-1, 0) and basis.value == pytest.approx(boosted[0], rel=1e-12)
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
