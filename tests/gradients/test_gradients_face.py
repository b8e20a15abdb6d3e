"""Refusals in one sentence, shapes, names; bounds against plain loops; the soft policies."""

from __future__ import annotations

import math
import re
import warnings
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import gradients
from jaxbandits.core.settings import Settings
from jaxbandits.environments import FiniteArms, WithNullArm
from jaxbandits.gradients import smoothed
from jaxbandits.oracles import bounds
from jaxbandits.policies import (
    MRCB,
    MUCB,
    RCUCB,
    SUAK,
    BGreedy,
    BudgetedThompson,
    EpsilonFirst,
    OmegaStarUCB,
    OmegaUCB,
    SoftElim,
)

ARMS = FiniteArms.bernoulli([[0.6, 0.4], [0.3, 0.7]], [[0.5, 0.5], [0.6, 0.9]])
HORIZON = jb.Horizon(8)
BUDGET = jb.TotalBudget(4.0, last_pull="counts")
KEY = jax.random.key(3)

REFUSALS = [
    (gradients.policy_score, OmegaUCB(), ARMS, HORIZON, "rho", "must be a randomised policy"),
    (gradients.policy_score, BudgetedThompson(), ARMS, HORIZON, "rho", "must be a randomised policy"),
    (gradients.policy_score, SoftElim(), ARMS, HORIZON, "rho", "one of theta"),
    (gradients.score_function, OmegaUCB(), ARMS, HORIZON, "rho", "one of mean_reward, mean_cost"),
    (gradients.score_function, OmegaUCB(), FiniteArms.bernoulli([1.0, 0.4], [0.5, 0.5]), HORIZON, "mean_reward",
     "strictly between 0 and 1"),
    (gradients.score_function, OmegaUCB(), FiniteArms.generalised_bernoulli(np.ones((2, 5)), np.ones((2, 5))), HORIZON,
     "mean_reward", "which have parameters"),
    (gradients.score_function, OmegaUCB(), jb.environments.Reservoir.ratio(KEY, instances=1, capacity=2, beta=1.0),
     HORIZON, "mean_reward", "must be FiniteArms"),
    (gradients.smoothed, SoftElim(theta=1.0), ARMS, HORIZON, "rho", "one of theta"),
    (gradients.smoothed, MUCB(alpha=0.0), ARMS, HORIZON, "alpha", "above 0"),
    (gradients.exact, SoftElim(), FiniteArms.bernoulli([0.6, 0.4], [0.5] * 2, present=[True, False]), HORIZON, "theta",
     "in which every arm exists"),
    (gradients.exact, SoftElim(), FiniteArms.bernoulli([0.6, 0.4], [0.5, 1.0]), HORIZON, "mean_cost", "costs below 1"),
    (gradients.score_function, MRCB(pulls=2), FiniteArms.bernoulli([0.6, 0.4, 0.3], [0.5] * 3),
     jb.TotalBudget(2.5, last_pull="forfeits"), "mean_reward", "it must pull one"),
    (gradients.straight_through, BudgetedThompson(), ARMS, HORIZON, "rho", "an index policy that chooses by its"),
    (gradients.straight_through, BGreedy(), ARMS, HORIZON, "a", "an index policy that chooses by its"),
    (gradients.exact, OmegaUCB(), ARMS, HORIZON, "rho", "regret is a step function; use smoothed"),
    (gradients.exact, BudgetedThompson(), ARMS, HORIZON, "mean_reward", "a randomised policy, or an index policy"),
    (gradients.bound, MUCB(), ARMS, BUDGET, "alpha", "whose bounds are implemented"),
    (gradients.bound, OmegaStarUCB(), ARMS, BUDGET, "rho", "for a known η"),
    (gradients.bound, OmegaUCB(), ARMS, HORIZON, "rho", "they must be FiniteArms and TotalBudget"),
    (gradients.bound, OmegaUCB(), ARMS, BUDGET, "alpha", "one of rho, mean_reward, mean_cost"),
    (gradients.bound, RCUCB("legal", alpha=1.0), jb.environments.g1(), HORIZON, "alpha", "above 1"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("estimator", "policy", "environment", "constraint", "wrt", "sentence"),
    REFUSALS,
    ids=[
        f"{row[0].__name__.rsplit('.', 1)[-1]}-{type(row[1]).__name__}-{i}"
        for i, row in enumerate(REFUSALS)
    ],
)
@pytest.mark.integration_rows("score_function-MRCB-11")
def test_refuses_in_one_sentence(estimator, policy, environment, constraint, wrt, sentence) -> None:
    with pytest.raises(jb.InputError, match=re.escape(sentence)) as problem:
        estimator.estimate(policy, environment, constraint, wrt=wrt, key=KEY)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize(("rare", "runs", "is_warned"), [(0.02, 100, True), (0.4, 400, False)])
def test_a_rare_outcome_is_told(rare: float, runs: int, is_warned: bool) -> None:
    """± 1.96 standard errors of the rare arm's slope covered 87 % of 400 samples of 100 runs."""
    keywords = {"wrt": "mean_reward", "key": jax.random.key(3), "replicates": runs, "slots": 64}
    arms = FiniteArms.bernoulli([0.6, rare], [0.5, 0.5])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gradients.score_function.estimate(OmegaUCB(), arms, jb.Horizon(100), **keywords)
    messages = [str(warning.message) for warning in caught if "dominate" in str(warning.message)]
    assert [text[:35] for text in messages] == ["gradient by mean_reward, arm 1: a f"] * is_warned


def test_few_directions_are_told() -> None:
    options: dict[str, Any] = {"wrt": "alpha", "key": KEY, "replicates": 16}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="directions: 2 given; with fewer than 10 of them"):
            gradients.smoothed.estimate(MUCB(), ARMS, HORIZON, **options, directions=2)
        with pytest.raises(jb.InputError, match=r"a multiple of directions \(10\): 10 or 20"):
            gradients.smoothed.estimate(MUCB(), ARMS, HORIZON, **options, directions=10)


@pytest.mark.parametrize(
    "options",
    [
        {"replicates": 1},
        {"replicates": 2.5},
        {"baseline": "best"},
        {"wrt": ()},
        {"wrt": ("mean_cost", "mean_cost")},
    ],
)
def test_bad_options(options: dict) -> None:
    with pytest.raises(jb.InputError):
        gradients.score_function.estimate(OmegaUCB(), ARMS, HORIZON, **({"key": KEY} | options))


@pytest.mark.integration
def test_settings_and_instances_are_axes_and_equal_single_calls() -> None:
    options: dict[str, Any] = {"key": KEY, "replicates": 6}
    both, single = (
        gradients.score_function.estimate(OmegaUCB(rho=rho), ARMS, BUDGET, **options)
        for rho in ([0.25, 1.0], 1.0)
    )
    assert both.gradient["mean_cost"].shape == (2, 2, 2)
    assert (both.gradient["mean_cost"][1] == single.gradient["mean_cost"][0]).all()
    soft, alone = (
        gradients.policy_score.estimate(SoftElim(x), ARMS, BUDGET, wrt="theta", **options)
        for x in ([0.5, 1.0], 1.0)
    )
    assert soft.gradient["theta"].shape == (2, 2)
    np.testing.assert_array_equal(soft.gradient["theta"][1], alone.gradient["theta"][0])


@jb.pytree
class TurnsBack(jb.Policy):
    """Arm 0 for ``turn`` rounds, then arm 1; for any number of resources."""

    turn: Any = jb.leaf(above=0)

    plays: ClassVar[type] = jb.environments.FiniteSpec

    def init(self, spec: Any) -> None:
        """Nothing to learn."""

    def update(self, state: None, key: jax.Array, observation: Any) -> None:
        """Nothing to learn."""

    def select(self, state: None, key: jax.Array, view: jb.View) -> tuple[None, jax.Array]:
        return state, (view.round > self.turn).astype(jnp.int32)


def test_a_budget_of_as_many_resources_as_instances_is_no_instance_axis() -> None:
    """Smoothing copies instances: by length alone a budget ``[d]`` looks like ``[instance]``."""
    arms = FiniteArms.bernoulli(
        ARMS.values()[0], np.random.default_rng(0).uniform(0.3, 0.9, (2, 2, 2))
    )
    options = {"wrt": "turn", "key": KEY, "replicates": 6, "directions": 3, "slots": 8}
    budgets = [np.array([3.0, 4.0]), [[3.0, 4.0], [3.0, 4.0]]]
    estimates = [
        gradients.smoothed.estimate(
            TurnsBack(2.0), arms, jb.TotalBudget(b, last_pull="counts"), **options
        )
        for b in budgets
    ]
    assert np.ptp([x.value for x in estimates], axis=0).max() == 0 < np.ptp(estimates[0].value)
    np.testing.assert_array_equal(estimates[0].gradient["turn"], estimates[1].gradient["turn"])


@pytest.mark.integration
def test_absent_arms_have_no_gradient() -> None:
    arms = FiniteArms.bernoulli([0.6, 0.4, 0.5], [0.5, 0.5, 0.5], present=[True, True, False])
    estimate = gradients.score_function.estimate(OmegaUCB(), arms, HORIZON, key=KEY, replicates=4)
    assert np.isnan(estimate.gradient["mean_reward"][0, 0]).tolist() == [False, False, True]


# --- bounds


def omega_bound(rho: float, r: np.ndarray, c: np.ndarray, tau: int) -> float:
    """Theorem 5 as printed, in plain loops."""
    best, arms, total = max(r / c), len(r), 0.0
    xi = (tau - arms) * (2 - math.sqrt(1 - tau**-rho))
    for t in range(arms + 1, tau + 1):
        xi -= math.sqrt(1 - t**-rho)
    for k in range(arms):
        gap = best - r[k] / c[k]
        if gap > 0:
            delta = gap / (gap + 1 / c[k])
            star = 8 * rho * math.log(tau) / delta**2 * max(r[k] / (1 - r[k]), (1 - c[k]) / c[k])
            total += gap * (1 + star + xi)
    return total + 2 * best


def rcucb_bound(alpha: float, v: np.ndarray, lam: np.ndarray, rounds: int) -> float:
    gap, total = v.max() - v, 0.0
    n, m = v.shape
    for i in range(n):
        for j in range(m):
            d = gap[i, j]
            if d > 0:
                u = 8 * alpha * (1 + lam[j]) ** 2 * math.log(rounds) / d**2 + 1
                total += d * (u + 8 / math.log((alpha + 1) / 2) * ((alpha + 1) / (alpha - 1)) ** 2)
    return total


def suak_bound(mu: np.ndarray, rho: np.ndarray, c: float, rounds: int) -> float:
    k = len(mu)
    m, q = np.append(mu, 0), np.append(rho, 0)
    bases = {(i,): m[i] for i in range(k + 1) if q[i] <= c}
    for i in range(k + 1):
        for j in range(k + 1):
            if q[i] > c >= q[j] and m[i] > m[j]:
                w = (c - q[j]) / (q[i] - q[j])
                bases[(i, j)] = w * m[i] + (1 - w) * m[j]
    best = max(bases.values())
    d = abs(rho - c)
    total = (
        241 * k * best * math.log(rounds) / (c * min(d) ** 2) + 3 * math.pi**2 * best / min(d) ** 2
    )
    for i in range(k):
        gap = min(best - r for base, r in bases.items() if i in base and r < best)
        total += 432 * best * ((d[i] + 1) / d[i]) ** 2 * math.log(rounds) / (min(d) * gap**2)
    return total + 2 * math.pi**2 * k**2


def test_bounds_are_the_printed_ones_and_gradients_their_slopes() -> None:
    r, c = np.array([0.8, 0.4, 0.3]), np.array([0.4, 0.6, 0.5])
    arms = FiniteArms.bernoulli(r, c)
    r, c = (x[0] for x in arms.values())
    estimate = gradients.bound.estimate(
        OmegaUCB(rho=0.5),
        arms,
        jb.TotalBudget(300.0, last_pull="counts"),
        wrt=("rho", "mean_reward", "mean_cost"),
    )
    tau = int(600 / c.min())
    assert abs(estimate.value[0, 0] / omega_bound(0.5, r, c, tau) - 1) < 1e-10
    h = 1e-6
    slope = (omega_bound(0.5 + h, r, c, tau) - omega_bound(0.5 - h, r, c, tau)) / (2 * h)
    assert abs(estimate.gradient["rho"][0, 0] / slope - 1) < 1e-6
    for name, i in (("mean_reward", 0), ("mean_cost", 1)):
        for k in range(3):
            step = h * np.eye(3)[k]
            ends = [omega_bound(0.5, *(x + (s * step if i == j else 0) for j, x in enumerate((r, c))), tau)
                    for s in (1, -1)]  # fmt: skip
            assert (
                abs(estimate.gradient[name][0, 0, k] / ((ends[0] - ends[1]) / (2 * h)) - 1) < 1e-5
            )
    v, lam = np.array([[0.5, 0.2, -1.0], [0.3, 0.1, 0.45]]), np.array([0.1, 0.4, 2.0])
    with jax.enable_x64(True):
        of_rcucb, of_suak = (
            jax.jit(bounds.rcucb_regret, static_argnums=3),
            jax.jit(bounds.suak_regret, static_argnums=3),
        )
        got = of_rcucb(jnp.float64(1.5), jnp.asarray(v), jnp.asarray(lam), 1000)
        assert abs(float(got) / rcucb_bound(1.5, v, lam, 1000) - 1) < 1e-12
        mu, rho = np.array([0.45, 0.7, 0.8, 0.2]), np.array([0.3, 0.75, 0.8, 0.4])
        got = of_suak(jnp.asarray(mu), jnp.asarray(rho), jnp.float64(0.5), 5000)
        assert abs(float(got) / suak_bound(mu, rho, 0.5, 5000) - 1) < 1e-12


def test_bounds_of_the_other_settings_have_gradients() -> None:
    estimate = gradients.bound.estimate(
        RCUCB("legal", alpha=1.5), jb.environments.g1(), jb.Horizon(100), wrt="values"
    )
    assert estimate.gradient["values"].shape == (1, 3, 10, 10)
    arms = WithNullArm(FiniteArms.bernoulli([0.45, 0.7, 0.8], [0.3, 0.75, 0.8]))
    suak = gradients.bound.estimate(
        SUAK(c=0.5), arms, jb.AverageCost(c=0.5, rounds=1000), wrt=("c", "mean_cost")
    )
    assert np.isfinite(suak.gradient["mean_cost"]).all() and not suak.standard_error["c"].any()


def test_a_cost_is_differentiated_where_arms_earn_alike() -> None:
    """Whose last reward was forfeited matters to rewards only."""
    arms, limit = (
        FiniteArms.bernoulli([0.5, 0.5], [0.5, 0.8]),
        jb.TotalBudget(2.5, last_pull="forfeits"),
    )
    estimate = gradients.score_function.estimate(
        OmegaUCB(), arms, limit, wrt="mean_cost", key=KEY, replicates=64
    )
    assert np.isfinite(estimate.gradient["mean_cost"]).all()
    with pytest.raises(jb.InputError, match="two arms of equal mean reward"):
        gradients.score_function.estimate(
            OmegaUCB(), arms, limit, wrt="mean_reward", key=KEY, replicates=64
        )


def test_a_parameter_with_a_range_is_moved_within_it() -> None:
    """Smoothing by e^{σε} would leave it; beyond its end the regret is what it is there."""
    leaves = Settings.of(EpsilonFirst(epsilon=0.5), 1).policy
    shifted = np.asarray(smoothed.antithetic(leaves, ("epsilon",), np.array([[2.0]])).epsilon)
    assert shifted.ravel().tolist() == [1.0, np.float32(0.5 * np.exp(-2.0))]
    estimate = gradients.smoothed.estimate(
        EpsilonFirst(epsilon=0.9), ARMS, BUDGET, wrt="epsilon", key=KEY, replicates=64
    )
    assert np.isfinite(estimate.gradient["epsilon"]).all()
