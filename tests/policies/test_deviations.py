"""Where the library differs from a paper or its code: rows of docs/deviations.md, by name."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import policies
from jaxbandits.core.arm_statistics import Arms
from jaxbandits.environments.finite import uniforms
from jaxbandits.policies import ucb
from jaxbandits.policies.base import IndexPolicy, evaluate_arms
from tests.policies.reference import budgeted as twin
from tests.policies.reference.budgeted import Seen

DOCS = Path(__file__).parents[2] / "docs"
NEAR = 1e-5


def score(policy: IndexPolicy, t: float, n: float, mean_r: float, mean_c: float) -> float:
    """The library's index of an arm with outcomes of 0 and 1."""
    values = (t, n, n * mean_r, n * mean_c, n * (1 - mean_r), n * (1 - mean_c), 0.0, 0.0)
    arms = Arms(*(jnp.full((1,), x, jnp.float32) for x in values))
    return float(evaluate_arms(jax.tree.map(jnp.float32, policy), arms)[0])


def totals(t: float, n: float, mean_r: float, mean_c: float) -> Seen:
    return Seen(*(np.array([x]) for x in (t, n, n * mean_r, n * mean_c, n * mean_r, n * mean_c)))


STATE = (12.0, 4.0, 0.5, 0.75)  # a small t, where ln(t − 1) and ln(t − 2) differ


def test_logarithm_of_the_round_as_printed() -> None:
    """m-, c-, i-UCB, Budget-UCB: ln(t − 1); UCB-SC+: ln(t/n). The code counts one less."""
    ours = score(policies.BudgetUCB(min_cost=0.1), *STATE)
    assert ours == pytest.approx(twin.budget_ucb(totals(*STATE), 0.1)[0], rel=NEAR)
    assert ours != pytest.approx(twin.budget_ucb(totals(*STATE), 0.1, lag=2)[0], rel=0.01)
    ours = score(policies.UCBSCPlus(), *STATE)
    assert ours == pytest.approx(twin.ucb_sc_plus(totals(*STATE))[0], rel=NEAR)
    assert ours != pytest.approx(twin.ucb_sc_plus(totals(*STATE), completed=True)[0], rel=0.01)
    ours = score(policies.MUCB(alpha=0.25), *STATE)
    assert ours == pytest.approx(twin.m_ucb(totals(*STATE), 0.25)[0], rel=NEAR)


def test_oracle_least_cost_is_a_visible_argument() -> None:
    """The reference code hands the true least cost to Budget-UCB and UCB-B2 behind the scenes."""
    for policy in (policies.BudgetUCB, policies.UCBBV1):
        with pytest.raises(TypeError, match="min_cost"):
            policy()
    assert policies.UCBB2().min_cost == 0.0, "no oracle unless given"
    dear = score(policies.BudgetUCB(min_cost=0.7), *STATE)
    assert dear < score(policies.BudgetUCB(min_cost=0.1), *STATE)


def test_m_ucb_is_infinite_where_the_lower_bound_is_not_above_zero() -> None:
    assert score(policies.MUCB(alpha=1.0), *STATE) == np.inf
    assert score(policies.MUCB(alpha=0.5), *STATE) < np.inf


def test_eta_of_omega_star_is_the_number_of_the_reference_code() -> None:
    """It divides a variance with n − 1 by n/(n − 1) · x̄(1 − x̄)."""
    rng, largest = np.random.default_rng(0), 0.0
    for n in np.repeat([30, 100, 1_000, 10_000], 50):
        x = rng.beta(*rng.uniform(0.2, 5, 2), size=n)
        room = x.mean() * (1 - x.mean())
        code = x.var(ddof=1) / (n / (n - 1) * room)
        largest = max(largest, abs(code - (1 - (x * (1 - x)).sum() / (n * room))))
        sums = (x * (1 - x)).sum(), x.sum(), n - x.sum(), n
        ours = float(ucb._eta(*(jnp.float32(total) for total in sums)))
        assert ours == pytest.approx(code, abs=5e-7)  # some roundings of float32
    assert largest < 2e-14
    assert "2·10⁻¹⁴ apart at most" in (DOCS / "deviations.md").read_text(encoding="utf-8")
    coin = np.arange(40) % 4 == 0
    assert coin.var(ddof=1) / (coin.mean() * (1 - coin.mean())) == pytest.approx(40 / 39)
    assert ucb._eta(jnp.float32(0), jnp.float32(10), jnp.float32(30), jnp.float32(40)) == 1


def test_ucb_sc_plus_rises_to_infinity_at_its_pole() -> None:
    """+∞ where c̄² ≤ ln(t/n)/(2n), equality included (the code divides by zero there)."""
    n, mean_c = 50.0, 0.25
    critical = n * np.exp(2 * n * mean_c**2)
    t = jnp.asarray(critical * (1 + np.linspace(-2e-6, 2e-6, 4001)), jnp.float32)
    full = jnp.full_like(t, 1.0)
    arms = Arms(
        t, n * full, 15 * full, n * mean_c * full, 35 * full, n * (1 - mean_c) * full, None, None
    )
    scores = np.asarray(evaluate_arms(policies.UCBSCPlus(), arms))
    assert not np.isnan(scores).any() and (scores > 100).all()
    assert np.isinf(scores[-1])
    assert np.isfinite(scores[0])
    assert (np.diff(scores[np.isfinite(scores)]) >= 0).all()


def test_kl_ucb_sc_plus_is_finite_once_a_cost_was_seen() -> None:
    assert score(policies.KLUCBSCPlus(), 1e6, 1.0, 1.0, 0.01) == pytest.approx(1e30)
    assert score(policies.KLUCBSCPlus(), 1e6, 1000.0, 1.0, 0.0) == np.inf


def test_epsilon_first_needs_no_known_costs_and_skips_arms_it_never_reached() -> None:
    arms = jb.environments.FiniteArms.bernoulli([0.5, 0.5, 0.9], [1.0, 1.0, 0.1])
    result = jb.simulate(
        policies.EpsilonFirst(epsilon=0.15),
        arms,
        jb.TotalBudget(10.0, last_pull="counts"),
        key=jax.random.key(0),
        replicates=8,
        marks=2,
    )
    # Two pulls of cost 1 spend 15 % of 10
    assert (result.final["pulls"].reshape(8, 3).sum(0)[2]) == 0


def test_ucb_b2_guard_is_on_the_mean_cost() -> None:
    """The reference code compares the cost radius with the mean reward."""
    rich, poor = (2000.0, 200.0, 0.05, 0.9), (2000.0, 200.0, 0.9, 0.05)
    assert score(policies.UCBB2(), *rich) == pytest.approx(twin.ucb_b2(totals(*rich))[0], rel=NEAR)
    assert np.isfinite(twin.ucb_b2(totals(*rich))[0])
    assert np.isinf(twin.ucb_b2(totals(*rich), guard="reward")[0])
    assert score(policies.UCBB2(), *poor) == np.inf
    assert np.isfinite(twin.ucb_b2(totals(*poor), guard="reward")[0])


def test_pd_bwk_with_one_resource_has_no_weights() -> None:
    """Its index does not depend on t, and C_rad = ¼ ln(BK) is an argument."""
    policy = policies.PDBwK.for_budget(1e4, arms=10)
    assert score(policy, 100.0, 50.0, 0.3, 0.4) == score(policy, 1e6, 50.0, 0.3, 0.4)
    assert policies.PDBwK.for_budget([1e2, 1e4], arms=10).c_rad.shape == (1, 2)


def test_instances_are_not_sorted_and_cost_something() -> None:
    """The code sorts arms best first; its costs are U(0.01, 1), the paper's U(0, 1)."""
    arms = jb.environments.random_bernoulli(jax.random.key(0), instances=200, arms=4)
    reward, cost = arms.values()
    best = (reward / cost).argmax(1)
    assert (np.bincount(best, minlength=4) > 20).all()
    assert cost.min() >= 0.01 and cost.min() < 0.02


def test_gbr_mean_bug_states_the_means_of_the_reference_code() -> None:
    """Its five-valued arms have 0.8 times the true means: 0.8 times the regret."""
    key = jax.random.key(0)
    weights = np.moveaxis(uniforms(key, 3, 4, 10), 0, -1)
    results = {}
    for bug in (False, True):
        arms = jb.environments.random_generalised_bernoulli(
            key, instances=3, arms=4, gbr_mean_bug=bug
        )
        for stated, w in zip(arms.values(), (weights[..., :5], weights[..., 5:]), strict=True):
            assert np.abs(stated - twin.gbr_means(w, gbr_mean_bug=bug)).max() < 4 / 2**24
        limit = jb.TotalBudget(30.0, last_pull="counts")
        results[bug] = jb.simulate(policies.MUCB(), arms, limit, key=key, marks=2, engine="scan")
    assert np.array_equal(results[True].final["pulls"], results[False].final["pulls"])
    np.testing.assert_allclose(
        results[True].regret.values, 0.8 * results[False].regret.values, rtol=1e-4, atol=1e-4
    )
    assert (results[False].regret.values[..., -1] > 0.1).all()
