"""Censored arms: laws, means, saturation, pairing, and what is refused before a run."""

from __future__ import annotations

import contextlib
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxbandits as jb
from jaxbandits._engine.scan import at_instance
from jaxbandits.core import streams, ticks
from jaxbandits.core.specs import OVER, PairAction
from jaxbandits.environments import (
    CensoredArms,
    CensoredSpec,
    Constant,
    Linear,
    RevealConsumption,
    copula_arms,
    g1,
    row_arms,
)
from jaxbandits.environments.censored import G1_NAMES
from jaxbandits.policies import RCUCB, ZRCUCB, ThompsonReduction, UCBReduction, fine_limits
from jaxbandits.testing import check_environment, check_policy, episode
from tests.policies.reference.censored import best_pair_G1

KEY = jax.random.key(20)
INF = float("inf")


def rows() -> CensoredArms:
    """Two instances, one with an absent arm; run times of 5,000 s beside limits of 1 s."""
    rng = np.random.default_rng(0)

    def arm(size: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
        seconds = rng.exponential(scale, size)
        seconds[::5] = 5000.0
        seconds[1::7] = INF
        return rng.random(size), seconds

    return row_arms(
        [[arm(20, 0.4), arm(7, 0.8), arm(1, 0.5)], [arm(9, 0.3), arm(30, 1.0)]],
        limits=[0.2, 0.5, 1.0],
        cost=Linear(0.3),
        penalty=Linear(2.0),
    )


def small_g1() -> CensoredArms:
    return g1(["PosCorr", "NegCorr"], arms=3, limits=4)


WORLDS = {"g1": small_g1, "rows": rows, "revealed": lambda: RevealConsumption(small_g1())}


def pulled(world: Any, instance: int, arm: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """(reward, consumption) in ticks of the first n pulls."""
    inner = at_instance(jax.tree.map(jnp.asarray, world), jnp.int32(instance))
    key = streams.lane_key(KEY, instance, 0)
    draw = jax.jit(jax.vmap(lambda i: inner.outcome(key, jnp.int32(arm), i)))
    reward, consumption = draw(jnp.arange(n, dtype=jnp.int32))
    return np.asarray(reward), np.asarray(consumption)


# --- the contract -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.quick_rows("rows")
def test_environment_keeps_the_contract(name: str) -> None:
    world = WORLDS[name]()
    spec = world.spec
    mean = world.values()[0].reshape(world.instances, spec.arms, -1)
    # One limit at a time, since pulls are counted per arm whatever the limit; and the kit takes
    # rewards to be signed only where a stated mean is below 0.
    for j in np.flatnonzero((np.nanmin(mean, axis=1) < 0).all(axis=0)).tolist():
        actions = [PairAction(jnp.int32(i), jnp.int32(j)) for i in range(spec.arms)]
        check_environment(world, actions, key=KEY)


def test_mean_gains_are_the_stated_ones() -> None:
    """Every pair of every instance, by a Bonferroni test at 1 %."""
    world, n, scores = small_g1(), 1 << 14, []
    stated = world.values()[0].reshape(2, 3, 4)
    for i in range(2):
        for arm in range(3):
            reward, consumption = pulled(world, i, arm, n)
            cost = np.asarray(world.spec.cost_ticks(jnp.asarray(consumption)))
            for j, limit in enumerate(world.spec.limit_ticks):
                gain = (
                    np.where(consumption <= limit, reward - cost, -world.spec.penalty_ticks[j])
                    / ticks.ONE
                )
                scores.append((gain.mean() - stated[i, arm, j]) / (gain.std(ddof=1) / np.sqrt(n)))
    assert np.abs(scores).max() < stats.norm.isf(0.005 / len(scores)), np.abs(scores).max()


@pytest.mark.integration
@pytest.mark.parametrize(
    ("policy", "name"),
    [
        (RCUCB("literal"), "revealed"),
        (RCUCB("legal", alpha=0.5), "rows"),
        (RCUCB("infinite"), "g1"),
        (RCUCB("kaplan_meier"), "rows"),
        (UCBReduction("lambda"), "rows"),
        (UCBReduction("one", alpha=0.1), "g1"),
        (ThompsonReduction("global"), "rows"),
        (ThompsonReduction("per_arm"), "g1"),
        (ZRCUCB("legal", horizon=60, alpha=1.5), "g1"),
    ],
    ids=str,
)
@pytest.mark.sample_rows(
    "RCUCB(survival='lit", "RCUCB(survival='kap", "UCBReduction(width='l", "Thom", "ZRCUCB"
)
def test_policy_keeps_the_contract(policy: jb.Policy, name: str) -> None:
    check_policy(policy, WORLDS[name](), jb.Horizon(80), key=KEY)


# --- laws and means -----------------------------------------------------------------------------------------------


# Of each instance: value of the best pair, share of its rounds that are censored (published), gap
SPECIFIED = [(0.271, 0.6116, 0.0018), (0.131, 0.7631, 0.0024), (0.453, 0.4404, 0.0038)]


@pytest.mark.parametrize("i", range(3))
def test_g1_means_are_the_closed_forms(i: int) -> None:
    world, twin = g1(), best_pair_G1(G1_NAMES[i])
    numbers = twin.value, twin.survival[twin.best], twin.gap
    np.testing.assert_allclose(numbers, SPECIFIED[i], atol=5.1e-4)
    ours = world.values()[0][i].reshape(10, 10)
    # λ ≤ 10, and the tabulated CDF is right to 1e-5
    np.testing.assert_allclose(ours, twin.v, atol=1e-4, rtol=0)
    arm, limit, value = world.best_pair()[i]
    assert (arm, world.spec.limits.index(limit)) == twin.best
    assert value == pytest.approx(twin.value, abs=2e-5)


def test_copula_has_its_marginals_and_its_correlation() -> None:
    reward, consumption = stats.beta(2.0, 3.0), stats.gamma(1.5, scale=0.4)
    kappas = (0.6, -0.6, 0.0)
    n = 1 << 17
    world = copula_arms(
        [[reward]] * 3,
        [[consumption]] * 3,
        [[k] for k in kappas],
        limits=[2.0],
        cost=Linear(0.1),
        penalty=Linear(1.0),
    )
    for i, kappa in enumerate(kappas):
        r, c = pulled(world, i, 0, n)
        r, observed = r / ticks.ONE, c / ticks.ONE * 2.0
        # Dvoretzky–Kiefer–Wolfowitz at 1 % over six comparisons, and 3e-5 for the tables
        allowed = np.sqrt(np.log(2 * 6 / 0.01) / (2 * n)) + 3e-5
        grid = np.linspace(0.01, 0.99, 99)
        assert np.abs((r[:, None] <= grid).mean(axis=0) - reward.cdf(grid)).max() < allowed
        grid = np.linspace(0.02, 1.98, 99)
        assert (
            np.abs((observed[:, None] <= grid).mean(axis=0) - consumption.cdf(grid)).max() < allowed
        )
        # Spearman's ρ of a Gaussian copula, on pulls below τ_max for all but 0.7 % of them
        rank = stats.spearmanr(r, c).statistic
        assert rank == pytest.approx(6 / np.pi * np.arcsin(kappa / 2), abs=4 / np.sqrt(n) + 2e-3)


def test_rows_have_exact_means_and_run_times_above_every_limit_saturate() -> None:
    world = rows()
    spec = world.spec
    _, consumption = pulled(world, 0, 0, 2000)
    assert consumption.max() == OVER and (consumption <= OVER).all() and (consumption >= 0).all()
    law = world.law
    for i, k in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1)):
        size = int(law.rows[i, k])
        r = law.reward[i, k, :size]
        c = law.consumption[i, k, :size] if hasattr(law, "consumption") else law.cost[i, k, :size]
        cost = np.asarray(spec.cost_ticks(jnp.asarray(c)), np.int64)
        for j, limit in enumerate(spec.limit_ticks):
            gain = np.where(c <= limit, r.astype(np.int64) - cost, -int(spec.penalty_ticks[j]))
            assert abs(int(world.mean_gain[i, k, j]) - gain.mean()) <= 0.5
    assert np.isnan(world.values()[0][1].reshape(3, 3)[2]).all()
    assert spec.consumption_ticks([5000.0, INF, 1.0, 0.0]).tolist() == [OVER, OVER, ticks.ONE, 0]


def test_a_consumption_equal_to_its_limit_is_within() -> None:
    limits = [0.1, 0.3, 0.7, 1.0]
    spec = CensoredSpec.of(1, limits, cost=Linear(0.1), penalty=Linear(1.0))
    assert (spec.consumption_ticks(limits) == spec.limit_ticks).all()
    costs: dict[str, Any] = {"cost": Linear(0.1), "penalty": Linear(1.0)}
    world = row_arms([[([1.0], [0.3])]], limits=limits, **costs)
    inner = at_instance(jax.tree.map(jnp.asarray, world), jnp.int32(0))
    pairs = [PairAction(jnp.int32(0), jnp.int32(j)) for j in range(4)]
    pulls = [inner.pull(inner.start(), pair, KEY, jnp.int32(1))[2] for pair in pairs]
    assert [bool(feedback.exceeded) for feedback in pulls] == [True, False, False, False]


def test_the_outcome_of_a_pull_does_not_depend_on_its_limit() -> None:
    world = RevealConsumption(small_g1())
    inner = at_instance(jax.tree.map(jnp.asarray, world), jnp.int32(1))
    limits = world.spec.limit_ticks
    pull = jax.jit(lambda state, action: inner.pull(state, action, KEY, jnp.int32(1)))
    state = inner.start()
    for _ in range(20):
        pulls = [pull(state, PairAction(jnp.int32(2), jnp.int32(j))) for j in range(4)]
        consumption = {int(feedback.consumption) for _, _, feedback, _ in pulls}
        assert len(consumption) == 1
        rewards = {int(feedback.reward) for _, _, feedback, _ in pulls if not feedback.exceeded}
        assert len(rewards) <= 1
        for j, (_, outcome, feedback, _) in enumerate(pulls):
            assert bool(feedback.exceeded) == (int(feedback.consumption) > limits[j])
            assert int(outcome.events["censored"]) == int(feedback.exceeded)
            expected = (
                -world.spec.penalty_ticks[j]
                if feedback.exceeded
                else int(feedback.reward) - int(outcome.cost) // 10
            )
            assert abs(int(outcome.reward) - int(expected)) <= 1
            assert int(outcome.cost) == min(int(feedback.consumption), int(limits[j]))
        state = pulls[0][0]


def test_what_is_hidden_is_hidden() -> None:
    inner = at_instance(jax.tree.map(jnp.asarray, small_g1()), jnp.int32(1))
    for n in range(30):
        state = jnp.full((3,), n, jnp.int32)
        _, _, feedback, _ = inner.pull(
            state, PairAction(jnp.int32(2), jnp.int32(0)), KEY, jnp.int32(1)
        )
        if feedback.exceeded:
            assert int(feedback.consumption) == 0 and int(feedback.reward) == 0
            return
    raise AssertionError("no round was censored")


@pytest.mark.integration
def test_policies_meet_the_same_world_and_legal_ones_do_not_read_what_is_revealed() -> None:
    world = small_g1()
    for policy in (
        RCUCB("legal"),
        RCUCB("infinite"),
        RCUCB("kaplan_meier"),
        UCBReduction(),
        ThompsonReduction(),
    ):
        hidden, revealed = (
            episode(policy, w, jb.Horizon(150), KEY, 150, replicates=2)
            for w in (world, RevealConsumption(world))
        )
        feedback = [jax.tree.leaves(steps.observation.feedback) for steps in (hidden, revealed)]
        assert any((a != b).any() for a, b in zip(*feedback, strict=True)), (
            "nothing more was revealed"
        )
        for part in ("action", "outcome", "ledger"):
            chex.assert_trees_all_equal(getattr(hidden, part), getattr(revealed, part))


# --- z-RCUCB ------------------------------------------------------------------------------------------------------


def test_a_full_lane_says_so_and_replays_with_more_limits() -> None:
    # Constant rewards and no penalty: the grid of a single arm is refined as fast as it can be.
    arm = (np.ones(4), np.array([0.05, 0.2, 0.4, 0.9]))
    results = []
    for depth in (1, 3):
        world = row_arms(
            [[arm, arm]],
            limits=fine_limits(depth),
            cost=Linear(0.1),
            penalty=Constant(0.0),
            tau_max=1.0,
        )
        policy = ZRCUCB("legal", horizon=100_000, alpha=1.0001, delta=1.0)
        with (
            pytest.warns(UserWarning, match="capacity") if depth == 1 else contextlib.nullcontext()
        ):
            results.append(
                jb.simulate(policy, world, jb.Horizon(900), key=KEY, marks=np.arange(1, 301) / 300)
            )
    small, large = results
    assert small.status.values.ravel().tolist() == ["capacity"]
    assert large.status.values.ravel().tolist() == ["horizon"]
    rounds = int(small.ledger["rounds"].max())
    same = small.ledger["rounds"][0, 0, 0] < rounds
    assert 20 < same.sum() < 300
    for name in ("reward", "spent", "event:censored"):
        assert np.array_equal(
            small.ledger[name][0, 0, 0][same], large.ledger[name][0, 0, 0][same]
        ), name


def test_after_its_horizon_the_recommended_pair_is_played() -> None:
    world = g1(["NegCorr"], arms=3, limits=fine_limits(4).tolist())
    policy = ZRCUCB("infinite", horizon=300, alpha=1.01)
    result = jb.simulate(
        policy,
        world,
        jb.Horizon(304),
        key=KEY,
        replicates=5,
        marks=[(300 + i) / 304 for i in range(5)],
    )
    last = np.diff(result.ledger["expected_reward"][0, 0], axis=1)
    assert (last == last[:, :1]).all()
    simple = world.values()[0].max() - last[:, 0] / ticks.ONE
    assert (simple >= -1e-6).all()


def test_a_zero_penalty_is_the_ordinary_bandit() -> None:
    arms = [[(np.array([1.0, 0.0, 1.0]), np.zeros(3)), (np.array([0.0, 1.0, 0.0]), np.zeros(3))]]
    world = row_arms(arms, limits=[1.0], cost=Constant(0.0), penalty=Constant(0.0))
    gains = world.values()[0][0]
    np.testing.assert_allclose(gains, [2 / 3, 1 / 3], atol=1e-7)
    result = jb.simulate(RCUCB("legal"), world, jb.Horizon(200), key=KEY, marks=1)
    assert int(result.count("censored").values.max()) == 0
    assert result.pulls.values.sum() == 200
