"""Cost subsidy, conservative exploration, least shares, best arms: twins and promises."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import policies, statistics
from jaxbandits.core.protocol import View
from jaxbandits.environments import FiniteArms
from jaxbandits.policies.best_arm import divergence
from jaxbandits.policies.subsidy import ArmMeans, Successes, total_of
from jaxbandits.testing import episode
from jaxbandits.testing.lanes import one_setting
from tests.contract.worlds import KEY
from tests.policies.drawn import lane_key, outcomes
from tests.policies.reference import subsidy as twin

LANES = 4


def single(*values: float) -> Any:
    return jnp.asarray(values, jnp.float32)


def number(x: float) -> Any:
    return jnp.float32(x)


# --- vectors


def test_indices_of_subsidy_and_conservative_bandits() -> None:
    totals = ArmMeans(single(100, 400, 499), single(0.5, 0.74, 0.88), single(0.1, 0.3, 0.8))
    upper = policies.CSUCB(alpha=number(0.3), horizon=number(20_000)).upper(totals)
    np.testing.assert_allclose(upper, [0.945050, 0.962525, 1], atol=6e-7)
    tau, width = policies.PECS(alpha=number(0.3), horizon=number(20_000)).needed(jnp.arange(7))
    assert tau.tolist() == [20, 69, 229, 736, 2232, 6087, 12991]
    np.testing.assert_allclose(
        width[:5], [0.497581, 0.248433, 0.124778, 0.062471, 0.031246], atol=6e-7
    )

    totals = ArmMeans(
        single(700, 60, 80, 100, 60), single(0, 0.3, 0.45, 0.6, 0.55), single(0, 0.3, 0.5, 0.6, 0.4)
    )
    careful = partial(
        policies.ConservativeUCB, mean=number(0.5), alpha=number(0.1), delta=number(0.05)
    )
    assert float(careful().psi(number(50), number(4))) == pytest.approx(10.255511, abs=1e-5)
    assert float(careful(wide=True).psi(number(50), number(4))) == pytest.approx(
        32.236191, abs=1e-5
    )
    high, low = careful().bounds(totals, number(4))
    np.testing.assert_allclose(high, [0.5, 0.714546, 0.810449, 0.923339, 0.964546], atol=1e-6)
    np.testing.assert_allclose(low, [0.5, 0, 0.089551, 0.276661, 0.135454], atol=1e-6)
    assert float(totals.n @ low + low[4] - 0.45 * 1001) == pytest.approx(-57.357084, abs=1e-4)
    ratio, net = careful(cost=number(0.6)).bounds(totals, number(4))
    np.testing.assert_allclose(net, [0.05, -0.547522, -0.579084, -0.436573, -0.502551], atol=1e-6)
    assert int(jnp.argmax(ratio)) == 1
    assert float(totals.n @ net + net[1]) == pytest.approx(-118.535884, abs=1e-4)


def test_which_draw_is_good_enough_and_who_is_behind() -> None:
    @jb.pytree
    class Drawn(policies.CSThompson):
        def draws(self, state: Any, key: Any, round: Any) -> Any:
            return single(0.61, 0.71, 0.93)

    state = policies.CSThompson(alpha=0.3).init(jb.environments.FiniteSpec(arms=3))
    state = Successes(state.learnt._replace(pulls=jnp.array([1, 1, 1])), state.rewards)
    view = View(jnp.int32(4), None, jnp.ones((3,), bool))
    policy = Drawn(alpha=number(0.3), costs=single(0.1, 0.3, 0.8))
    assert int(policy.select(state, lane_key(0, 0), view)[1]) == 1
    same = Drawn(alpha=number(0.3), costs=single(0.1, 0.3, 0.3))
    assert int(same.select(state, lane_key(0, 0), view)[1]) == 2

    floored = policies.Floored(policies.MUCB(), share=single(0.1, 0.2, 0.3))
    behind = floored.behind(jnp.array([1, 2, 7]))
    np.testing.assert_allclose(behind, [0, 0, -4], atol=1e-6)


def test_overlap_and_shares_of_the_money() -> None:
    racing = policies.ChernoffOverlap(delta=number(0.1))
    totals = ArmMeans(single(200, 150), single(0.6, 0.5), single(0, 0))
    assert float(racing.overlap(totals, jnp.ones((2,), bool))[1]) == pytest.approx(
        1.736387, abs=2e-6
    )
    assert float(divergence(number(1), number(1))) == 0
    rejects = policies.Elimination("rejects")
    cumulated = [float(rejects.share(jnp.int32(i), jnp.int32(8), 8)) for i in range(7)]
    np.testing.assert_allclose(
        cumulated, [0.450886, 0.507246, 0.571659, 0.646806, 0.736983, 0.849705, 1], atol=6e-7
    )
    assert [float(rejects.share(jnp.int32(i), jnp.int32(8), 11)) for i in range(7)] == cumulated


def test_a_sum_of_parts_of_either_sign_is_exact() -> None:
    rng = np.random.default_rng(0)
    parts, n = rng.integers(-(2**24), 2**24, 300), rng.integers(0, 2**20, 300)
    total = total_of(jnp.asarray(parts, jnp.int32), jnp.asarray(n, jnp.int32))
    assert int(jb.core.ticks.join(total)) == int((parts.astype(np.int64) * n).sum())


# --- whole lanes beside the twins, in a world without ties

WORLD = FiniteArms.beta(
    *np.array([[6.0, 7, 5, 4, 3], [2.5, 2, 3, 4, 4], [2, 3, 5, 4, 3], [8.0, 6, 2, 5, 7]])[:, None]
)
COSTS = WORLD.values()[1][0]
ROUNDS = 4000
# Whole ticks
SHARE = np.floor(np.array([0.1, 0, 0.25, 0.05, 0.3], np.float32).astype(float) * 2**24) / 2**24


def ucb1(lane: Any) -> int:
    n, t = lane.n, len(lane.played) + 1
    with np.errstate(divide="ignore"):
        return int(
            np.argmax(
                np.where(n > 0, lane.mean + np.sqrt(2 * np.log(t) / np.maximum(n, 1)), np.inf)
            )
        )


TWINS: dict[str, tuple[Any, Any]] = {
    "CSUCB": (
        policies.CSUCB(alpha=0.3, horizon=ROUNDS, costs=COSTS),
        lambda lane: twin.cs_ucb(lane, COSTS, 0.3, ROUNDS, ROUNDS),
    ),
    "PECS": (
        policies.PECS(alpha=0.3, horizon=ROUNDS, costs=COSTS),
        lambda lane: twin.pe_cs(lane, COSTS, 0.3, ROUNDS, ROUNDS),
    ),
    "PECS-close": (
        policies.PECS(alpha=0.12, horizon=ROUNDS, costs=COSTS, kappa=2),
        lambda lane: twin.pe_cs(lane, COSTS, 0.12, ROUNDS, ROUNDS, kappa=2),
    ),
    "ConservativeUCB": (
        policies.ConservativeUCB(mean=0.6, alpha=0.2),
        lambda lane: twin.conservative(lane, 0.6, 0.2, 0.05, ROUNDS),
    ),
    "ConservativeUCB-wide": (
        policies.ConservativeUCB(mean=0.6, alpha=0.2, wide=True),
        lambda lane: twin.conservative(lane, 0.6, 0.2, 0.05, ROUNDS, wide=True),
    ),
    "ConservativeUCB-money": (
        policies.ConservativeUCB(mean=0.6, alpha=0.2, cost=0.9),
        lambda lane: twin.conservative(lane, 0.6, 0.2, 0.05, ROUNDS, cost=0.9),
    ),
    "Floored": (
        policies.Floored(policies.UCB1(), share=[0.1, 0.0, 0.25, 0.05, 0.3], tolerance=0.5),
        lambda lane: twin.floored(lane, SHARE, 0.5, ROUNDS, ucb1),
    ),
    "ChernoffOverlap": (
        policies.ChernoffOverlap(delta=0.1),
        lambda lane: twin.chernoff_overlap(lane, 0.1, ROUNDS),
    ),
}


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.quick_rows("PECS", "ConservativeUCB-money", "Floored")
def test_a_lane_is_the_twins(name: str) -> None:
    """The same arm in every round: no decision is near enough to a tie for float32 to matter."""
    policy, play = TWINS[name]
    result_arms = np.asarray(
        episode(policy, WORLD, jb.Horizon(ROUNDS), KEY, ROUNDS, replicates=LANES).action
    )
    for replicate, table in enumerate(zip(*outcomes(WORLD, LANES, ROUNDS), strict=True)):
        lane = twin.Lane(*table)
        play(lane)
        actions = np.array(lane.played)
        different = np.flatnonzero(result_arms[replicate, : actions.size] != actions)
        # What was surely earned is in ticks here, rounded down: a pull of J may come a round or two
        # later.
        allowed = 8 if name == "ConservativeUCB-wide" else 0
        assert different.size <= allowed, (
            f"replicate {replicate}: round {different[0] + 1} of {actions.size}"
        )
        assert actions.size > 200 and np.unique(actions).size == 5


@pytest.mark.parametrize("spread", ["pulls", "root", "money"])
@pytest.mark.parametrize("rule", ["halving", "rejects"])
@pytest.mark.quick_rows("rejects-root")
def test_an_elimination_is_the_twins(rule: str, spread: str) -> None:
    budget = jb.TotalBudget(300.0, last_pull="counts")
    policy = policies.Elimination(rule, spread)
    result = jb.simulate(policy, WORLD, budget, key=KEY, replicates=LANES, marks=1)
    assert (result.status.values == "stopped").all() and float(result.spent.max()) <= 300
    for replicate, table in enumerate(zip(*outcomes(WORLD, LANES, ROUNDS), strict=True)):
        lane = twin.Lane(*table)
        survivor = twin.elimination(lane, 300.0, rule, spread)
        assert result.pulls.values[0, 0, replicate].tolist() == lane.n.tolist()
        assert [int(result.recommended.values[0, 0, replicate])] == survivor


def test_thompson_draws_decide_as_the_paper_says() -> None:
    policy = policies.CSThompson(alpha=0.3, costs=COSTS)
    steps = episode(policy, WORLD, jb.Horizon(60), KEY, 60)
    leaves = one_setting(policy, WORLD)
    for t in range(60):
        state = jax.tree.map(lambda x, t=t: x[0, t], steps.after)
        theta = np.asarray(leaves.draws(state, lane_key(0, 0), jnp.int32(t + 1)))
        enough = np.flatnonzero(theta >= (1 - 0.3) * theta.max())
        must = t if t < 5 else int(enough[np.argmin(COSTS[enough])])
        assert int(steps.action[0, t]) == must


@pytest.mark.integration
def test_an_arm_that_closes_is_closed_and_not_worse() -> None:
    """The best arm sells out after 30 pulls: it is recommended, others are played."""
    arms = FiniteArms.bernoulli([0.9, 0.5, 0.4, 0.2], [0.5, 0.5, 0.5, 0.5])
    world = jb.environments.Stocked.of(arms, pulls=[30, 500, 500, 500])
    budget = jb.TotalBudget(200.0, last_pull="counts")
    for policy in (
        policies.Elimination("rejects"),
        policies.Elimination("halving"),
        policies.ChernoffOverlap(),
    ):
        result = jb.simulate(policy, world, budget, key=KEY, replicates=50, marks=1)
        assert (result.recommended.values == 0).mean() > 0.9
        assert result.pulls.values[..., 0].max() <= 30


# --- printed numbers (see the docstrings' sources), and promises


@cache
def subsidised(policy: str) -> tuple[Any, Any]:
    arms = FiniteArms.bernoulli([0.5, 0.75, 0.9], [0.1, 0.3, 0.8])
    costs = {"costs": [0.1, 0.3, 0.8]}
    learner = {
        "CSUCB": policies.CSUCB(alpha=0.3, horizon=20_000, **costs),
        "CSThompson": policies.CSThompson(alpha=0.3, **costs),
        "PECS": policies.PECS(alpha=0.3, horizon=20_000, **costs),
    }[policy]
    keywords = {"key": KEY, "replicates": 400, "marks": 1, "record": ("pulls",)}
    return arms, jb.simulate(learner, arms, jb.Horizon(20_000), **keywords)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("policy", "quality", "paid"),
    # the authors' code, 100 seeds each: mean and standard error
    [
        ("CSUCB", (61.11, 1.40), (0.5, 0.0)),
        ("CSThompson", (99.33, 10.95), (14.08, 2.12)),
        ("PECS", (102.61, 6.79), (644.8, 36.3)),
    ],
)
def test_the_regrets_of_the_authors_code(policy: str, quality: Any, paid: Any) -> None:
    arms, result = subsidised(policy)
    regrets = (
        statistics.quality_regret(result, arms, 0.3),
        statistics.cost_regret(result, arms, 0.3),
    )
    for table, (value, error) in zip(regrets, (quality, paid), strict=True):
        values = table.values.ravel()
        together = np.hypot(values.std(ddof=1) / np.sqrt(values.size), error)
        # 2.05 was the largest of the eleven distances when these numbers were taken
        assert abs(values.mean() - value) <= 2.6 * together + 1e-4, (values.mean(), value, together)


@pytest.mark.integration
@pytest.mark.parametrize(("wide", "value", "error"), [(False, 370.5, 2.5), (True, 1170.8, 4.3)])
def test_a_conservative_run_keeps_its_floor(wide: bool, value: float, error: float) -> None:
    arms = FiniteArms.bernoulli([0.5, 0.3, 0.45, 0.6, 0.55], [0.5] * 5)
    policy = policies.ConservativeUCB(mean=0.5, alpha=0.1, wide=wide)
    result = jb.simulate(policy, arms, jb.Horizon(20_000), key=KEY, replicates=200, marks=200)
    regret = result.regret.values[..., -1].ravel()
    error_ours = regret.std(ddof=1) / np.sqrt(regret.size)
    assert abs(regret.mean() - value) <= 2 * np.hypot(error_ours, error)
    earned = result.ledger["expected_reward"] / 2**24
    assert (earned >= 0.45 * result.ledger["rounds"] - 1e-6).all()


@pytest.mark.integration
def test_a_fixed_confidence_is_kept() -> None:
    arms = FiniteArms.bernoulli([0.6, 0.5, 0.45, 0.4], [0.9, 0.1, 0.5, 0.9])
    budget = jb.TotalBudget(100_000.0, last_pull="counts")
    result = jb.simulate(
        policies.ChernoffOverlap(delta=0.1), arms, budget, key=KEY, replicates=400, marks=1
    )
    assert (result.status.values == "stopped").all()
    assert float(statistics.error(result, arms).mean()) <= 0.01
    spent = result.spent.values.ravel()
    assert abs(spent.mean() - 1458) <= 2 * np.hypot(23, spent.std(ddof=1) / 20)
