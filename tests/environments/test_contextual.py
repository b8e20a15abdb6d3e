"""Worlds with contexts: benchmarks against programs and by hand, laws, late outcomes."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxbandits as jb
from jaxbandits._numerics import fluid
from jaxbandits.core import streams
from jaxbandits.environments import (
    ContextualArms,
    Delayed,
    FixedDelay,
    Gaussian,
    LinearMeans,
    Piecewise,
    RequestTable,
    Rows,
    RowsInOrder,
    ShuffledRows,
    UnitSphere,
    WithNullArm,
)
from jaxbandits.environments.noise import Tent
from jaxbandits.policies import Bonus, ContextualOracle, ContextualPacer, LinearRate, LinUCB
from jaxbandits.policies.base import Plan, largest
from tests.numerics.test_fluid import solved

KEY = jax.random.key(50)
R = np.array([[0.2, 0.9], [0.8, 0.9], [0.5, 0.6], [0.1, 0.8]])
C = np.array([[0.1, 0.6], [0.1, 0.5], [0.2, 0.4], [0.1, 0.9]])[..., None]

# --- Benchmarks


def test_fluid_optimum_by_hand() -> None:
    for b, value, price, fixed in (
        (0.05, 0.2625, 2.5, 0.16),
        (0.2, 0.515, 1.4, 0.463158),
        (0.4, 0.70625, 0.875, 0.631579),
        (0.7, 0.8, 0.0, 0.8),
    ):
        solution = fluid.context_value([(R, C)], np.array([b]))
        assert solution.contextual == pytest.approx(value, abs=1e-12)
        assert solution.price[0] == pytest.approx(price, abs=1e-9)
        assert solution.fixed == pytest.approx(fixed, abs=1e-6)
        assert (
            solution.low == solution.value == solution.high == pytest.approx(value - solution.fixed)
        )
    second = np.array([[0.5, 0.1], [0.4, 0.2], [0.3, 0.3], [0.6, 0.1]])[..., None]
    solution = fluid.context_value(
        [(R, np.concatenate([C, second], axis=2))], np.array([0.3, 0.25])
    )
    assert (solution.contextual, solution.fixed) == (
        pytest.approx(0.617453, abs=1e-6),
        pytest.approx(0.491688, abs=1e-6),
    )
    np.testing.assert_allclose(solution.price, [0.886792, 0.018868], atol=1e-6)
    money = np.array([[0.3, 0.9], [0.7, 0.8]]), np.array([[0.2, 0.3], [0.2, 0.7]])[..., None]
    solution = fluid.context_value([money], None)
    assert (solution.contextual, solution.fixed) == (pytest.approx(3.2), pytest.approx(2.5))


def test_fluid_optimum_against_a_general_solver() -> None:
    """150 random tables, of which some have costs of 0, equal rewards and budgets of 0."""
    rng, worst = np.random.default_rng(50), 0.0
    for number in range(150):
        n, k, j = rng.integers(1, 24), rng.integers(1, 5), rng.integers(1, 4)
        reward, cost, budget = rng.random((n, k)), rng.random((n, k, j)), 0.7 * rng.random(j)
        if number % 3 == 0:
            reward, cost = np.rint(4 * reward) / 4, np.rint(3 * cost) / 3
        if number % 10 == 0:
            budget[0] = 0
        value, _ = solved(reward, cost, budget)
        worst = max(worst, abs(value - fluid.optimum(reward, cost, budget).value))
    assert worst < 1e-10


def tiny(rows: Any = None) -> ContextualArms:
    """x in {0, 1} equally likely; of whom it is known is told in J.2's table."""
    contexts = rows or Rows.of([[0.0], [1.0]])
    return ContextualArms.linear(
        [[0.3, 0.4], [0.9, -0.1]], [[[0.2, 0.0]], [[0.7, 0.0]]], contexts, resources=1
    )  # fmt: skip


@pytest.mark.integration
def test_no_policy_gains_more_than_the_benchmark() -> None:
    """With an exact optimum: the oracle comes near T·OPT, others above it by chance only."""
    world, rounds = tiny(), 4000
    limit = jb.TotalBudget([rounds / 4], last_pull="forfeits", rounds=rounds)
    best = world.value_of_context(limit)[0]
    assert (best.contextual, best.fixed) == (
        pytest.approx(0.56, abs=1e-6),
        pytest.approx(0.535, abs=1e-6),
    )
    policies = [
        ContextualOracle.of(world, [best.price]),
        ContextualPacer(explore=Bonus(1.0), ridge=4.0),
        jb.policies.FixedSplit([1.0, 1.0]),
    ]
    result = jb.simulate(policies, WithNullArm(world), limit, key=KEY, replicates=64, marks=2)
    assert not result.benchmark_error.values.any()
    reward = result.reward.values[:, 0, :, -1] / rounds
    mean, error = reward.mean(axis=1), reward.std(axis=1) / 8
    assert (mean < best.contextual + 4 * error).all()
    # The oracle; and one who sees no context
    assert mean[0] > best.contextual - 0.01 > mean[2] + 0.01
    assert mean[1] > best.fixed
    # regret is against who sees contexts, `fixed_regret` against who does not
    apart = (result.regret - result.fixed_regret).values[..., -1]
    np.testing.assert_allclose(apart, best.value * rounds, rtol=1e-6)
    # at each end of a run the regret is T·OPT less the reward, whatever of its ends it was
    earned = result.ledger["expected_reward"][..., -1] / 2**24
    np.testing.assert_allclose(
        result.regret.values[..., -1], best.contextual * rounds - earned, atol=1e-3
    )


SPHERE = ContextualArms.linear(
    [[0.5, 0.3, -0.1], [0.5, -0.3, 0.2], [0.3, 0.1, 0.1]],
    [[0.3, 0.05, 0.0], [0.4, 0.0, 0.1], [0.4, 0.0, 0.2]],
    UnitSphere(2),
)
ANGLE = 2 * np.pi * (np.arange(4096) + 0.5) / 4096
CIRCLE = Rows.of(np.stack([np.cos(ANGLE), np.sin(ANGLE)], axis=1))


@pytest.mark.integration
def test_laws_without_end_are_sampled() -> None:
    exact = dataclasses.replace(SPHERE, contexts=CIRCLE)
    for limit in (
        jb.AverageCost(c=0.32, rounds=100),
        jb.TotalBudget(50.0, last_pull="counts"),
        jb.Horizon(100),
    ):
        sampled, exact_value = (x.value_of_context(limit)[0] for x in (SPHERE, exact))
        assert sampled.low < exact_value.value < sampled.high and sampled.high - sampled.low < 0.05
        assert exact_value.low == exact_value.value == exact_value.high
        assert sampled.contextual == pytest.approx(exact_value.contextual, abs=0.02)


# Its best mixture is clearly best: else which one is depends on the sample
UNLIKE = dataclasses.replace(
    SPHERE, reward=LinearMeans.of([[0.5, 0.3, -0.1], [0.6, -0.3, 0.2], [0.2, 0.1, 0.1]])
)


@pytest.mark.parametrize("budget", [np.zeros(0), np.array([0.32]), None])
def test_the_error_of_a_sampled_benchmark_is_its_spread(budget: Any) -> None:
    reward, cost = (x[0].reshape(64, 256, *x.shape[2:]) for x in UNLIKE.sampled(2**14))
    parts = list(zip(reward, cost, strict=True))
    values = [fluid.context_value([parts[i], parts[i + 1]], budget) for i in range(63)]
    for value, error in (("contextual", "error"), ("fixed", "fixed_error")):
        spread = np.std([getattr(x, value) for x in values], ddof=1)
        stated = np.mean([getattr(x, error) for x in values])
        assert stated == pytest.approx(spread, rel=4 / np.sqrt(2 * 62)), value
    if budget is not None and not budget.size:  # of the best arm alone
        assert values[0].fixed_error == pytest.approx(parts[1][0][:, 1].std() / 16)
    exact = fluid.context_value(parts[:1], budget)
    assert exact.error == exact.fixed_error == 0


@jb.pytree
class Informed(Plan):
    """The largest mean, which it knows: no regret but for chance in the benchmark."""

    theta: Any = jb.leaf(core=2)

    def select(self, state: Any, key: Any, view: Any) -> Any:
        theta = jnp.asarray(self.theta)
        return state, largest(theta[:, 0] + theta[:, 1:] @ view.context, key, view)


@pytest.mark.integration
def test_a_result_says_how_far_its_benchmark_may_be_off() -> None:
    policy, limit = Informed(theta=np.asarray(SPHERE.reward.theta)[0, :, 0]), jb.Horizon(2000)
    message = r"^regret: its benchmark is that of sampled contexts, .* error of \d"
    result = jb.simulate(policy, SPHERE, limit, key=KEY, replicates=4, marks=[0.5, 1.0])
    with pytest.warns(UserWarning, match=message):
        assert np.isfinite(result.regret.values).all()
    worth = SPHERE.value_of_context(limit, samples=2**14)[0]
    for stated, error in (
        (result.benchmark_error, worth.error),
        (result.fixed_benchmark_error, worth.fixed_error),
    ):
        np.testing.assert_allclose(
            stated.values[0, 0], [[1000 * error, 2000 * error]] * 4, rtol=1e-6
        )
    assert 0 < worth.fixed_error != worth.error
    title = result.plot.regret(over="replicate").axes[0].get_title()
    assert "benchmark" in " ".join(title.split())
    with warnings.catch_warnings():  # what contexts are worth is far more than chance
        warnings.simplefilter("error")
        assert (result.fixed_regret.values < 0).all()
    always = jb.policies.FixedSplit([1.0, 0.0, 0.0])
    result = jb.simulate(always, SPHERE, limit, key=KEY, replicates=4, marks=1)
    with pytest.warns(UserWarning, match="fixed_regret: .* see result.fixed_benchmark_error"):
        assert np.isfinite(result.fixed_regret.values).all()


# --- Laws of contexts and outcomes


def contexts_of(law: Any, rounds: int) -> np.ndarray:
    return np.asarray(jax.vmap(law.draw, in_axes=(None, 0))(KEY, jnp.arange(rounds)))


@pytest.mark.integration
def test_laws_of_contexts() -> None:
    x = contexts_of(Gaussian(3), 4096)
    assert np.abs(x).max() == 3.0 and abs(np.corrcoef(x.T) - np.eye(3)).max() < 4 / 64
    inside = np.sort(x[np.abs(x[:, 0]) < 3, 0])
    assert stats.kstest(inside, stats.truncnorm(-3, 3).cdf).pvalue > 0.001
    assert float((contexts_of(Gaussian(4), 4096) ** 2).mean()) == pytest.approx(
        0.995, abs=4 * np.sqrt(2 / 16384)
    )
    sphere = contexts_of(UnitSphere(3, arms=2), 2048)
    np.testing.assert_allclose((sphere**2).sum(-1), 1, rtol=1e-6)
    assert stats.kstest(sphere[:, 1, 0], stats.uniform(-1, 2).cdf).pvalue > 0.001  # Archimedes
    assert abs(np.corrcoef(sphere[:, 0, 0], sphere[:, 1, 0])[0, 1]) < 4 / np.sqrt(2048)
    rows = Rows.of(np.arange(6.0)[:, None], RowsInOrder())
    law_row = jax.tree.map(lambda table: jnp.asarray(table)[0], rows)
    met = jax.vmap(law_row.draw, in_axes=(None, 0))(KEY, jnp.arange(1, 9))
    assert met.ravel().tolist() == [0, 1, 2, 3, 4, 5, 0, 1]


def test_a_tent_has_its_mean() -> None:
    words = jnp.asarray(np.random.default_rng(0).integers(0, 2**32, 20_000, dtype=np.uint32))
    for mean in (0, 2**20, 2**23, 2**24 - 3, 2**24):
        x = np.asarray(Tent(0.25).outcome(jnp.int32(mean), words), np.float64)
        half = min(mean, 2**24 - mean, 2**22)
        assert abs(x - mean).max() <= half and x.min() >= 0 and x.max() <= 2**24
        assert abs(x.mean() - mean) <= 4 * half / np.sqrt(3 * x.size) + 0.5


def linear() -> ContextualArms:
    rng = np.random.default_rng(4)
    theta = [rng.uniform(-0.3, 0.3, (2, 3, 4)) for _ in range(2)]
    theta[0][..., 0] = theta[1][..., 0] = 0.5
    present = np.array([[True, True, True], [True, False, True]])
    return ContextualArms.linear(*theta, Gaussian(3), present=present)


def test_outcomes_are_around_the_means_of_the_context() -> None:
    """A pull of the kit has the mean of another round's context if `pull` does not call `context`."""
    world = jax.tree.map(lambda x: jnp.asarray(x)[0], linear())
    for t in (1, 5):
        x = world.context(KEY, jnp.int32(t))
        _, outcome, _, _ = world.pull(world.start(), jnp.int32(2), KEY, jnp.int32(t))
        theta = np.asarray(world.reward.theta[2, 0], np.float64)
        must = np.clip(theta[0] + theta[1:] @ np.asarray(x, np.float64), 0, 1)
        assert int(outcome.expected_reward) == pytest.approx(must * 2**24, abs=8)


def test_reward_and_each_cost_have_a_word_of_their_own() -> None:
    """Four coins a pull, of means one half: no two are the same coin (words come in pairs)."""
    world = ContextualArms.linear([[0.5, 0.0]], [[[0.5, 0.0]] * 3], Rows.of([[0.0]]), resources=3)
    pull = jax.vmap(jax.tree.map(lambda x: jnp.asarray(x)[0], world).pull, (None, None, None, 0))
    feedback = pull(world.start(), jnp.int32(0), KEY, jnp.arange(1, 257))[2]
    coins = np.column_stack([feedback.reward, feedback.cost]) > 0
    same = (coins[:, :, None] == coins[:, None, :]).mean(axis=0)[np.triu_indices(4, 1)]
    assert np.abs(same - 0.5).max() < 4 * 0.5 / 16


# --- Contexts reach the learner with their own outcomes


@jb.pytree
class Spelled(jb.environments.ContextLaw):
    """The context is the round."""

    shape = (1,)

    def draw(self, key: jax.Array, round: jax.Array) -> jax.Array:
        return round.astype(jnp.float32)[None]


@jb.pytree
class Spells(jb.Policy):
    """Remembers Σ of the contexts that it learnt from, and the rounds of their decisions."""

    plays = jb.environments.FiniteSpec

    def init(self, spec: Any) -> Any:
        return jnp.zeros(2), jnp.int32(0)

    def update(self, state: Any, key: Any, observation: Any) -> Any:
        sums, number = state
        x = jnp.stack([observation.context[0], observation.view.round.astype(jnp.float32) - 1])
        return sums + x, number + 1

    def select(self, state: Any, key: Any, view: Any) -> Any:
        # 99: no arm, the lane would end as invalid
        return state, jnp.where(view.context[0] == view.round, 0, 99)


@pytest.mark.parametrize("late", [0, 1, 7])
@pytest.mark.quick_rows("1")
def test_late_outcomes_bring_their_own_context(late: int) -> None:
    arms = ContextualArms.linear([[0.5, 0.0]], [[0.5, 0.0]], Spelled())
    world = Delayed(arms, FixedDelay(late), room=late + 1)
    steps = jb.testing.episode(jb.policies.InFlight(Spells()), world, jb.Horizon(40), KEY, 40)
    sums, number = (np.asarray(x)[0, -1] for x in steps.after.memory.learnt)
    learnt = 39 - late  # when round 40 is decided
    assert number == learnt and sums.tolist() == [learnt * (learnt + 1) / 2] * 2
    result = jb.simulate(jb.policies.InFlight(Spells()), world, jb.Horizon(40), key=KEY, marks=1)
    assert result.status.values.ravel().tolist() == ["horizon"]


# --- Arms that are absent or closed; the table's own contexts


@jb.pytree
class Closing(jb.environments.finite.AroundWorld):
    """The last arm is open in even rounds alone."""

    inner: Any = jb.leaf()

    @property
    def world(self) -> Any:
        return self.inner

    @property
    def spec(self) -> Any:
        return self.inner.spec

    def open(self, state: Any, round: jax.Array) -> jax.Array:
        return jnp.arange(self.spec.arms) < self.spec.arms - round % 2

    def opens_next(self, state: Any, round: jax.Array) -> jax.Array:
        return round + 1

    def pull(self, state: Any, action: jax.Array, key: Any, round: jax.Array) -> Any:
        state, outcome, feedback, empty = self.inner.pull(state, action, key, round)
        is_open = self.open(state, round).at[action].get(mode="fill", fill_value=False)
        return state, outcome._replace(valid=outcome.valid & is_open), feedback, empty


@pytest.mark.parametrize(
    "policy", [ContextualPacer(c=0.4), LinUCB(), LinearRate()], ids=lambda x: type(x).__name__
)
@pytest.mark.quick_rows("LinUCB")
def test_absent_and_closed_arms(policy: Any) -> None:
    """Nobody pulls them, though their rows may be NaN; and an absent arm changes no bit."""
    rng = np.random.default_rng(2)
    features = rng.normal(size=(2, 30, 3, 2)).astype(np.float32)
    features[1, :, 1] = 1e30  # nobody's
    theta = rng.uniform(0.2, 0.4, (2, 3, 3))
    present = np.array([[True] * 3, [True, False, True]])
    law = Rows(features, ShuffledRows())
    world = Closing(ContextualArms.linear(theta, theta, law, present=present))
    limit = (
        jb.AverageCost(c=0.4, rounds=60) if isinstance(policy, ContextualPacer) else jb.Horizon(60)
    )
    if isinstance(limit, jb.AverageCost):
        limit = jb.AverageCost(c=1.0, rounds=60)
    result = jb.simulate(policy, world, limit, key=KEY, replicates=2, marks=2)
    assert set(result.status.values.ravel()) == {"horizon"}
    pulls = result.final["pulls"][0]
    assert not pulls[1, :, 1].any() and pulls.sum(-1).tolist() == [[60, 60], [60, 60]]
    features[1, :, 1] = np.nan
    nan = ContextualArms.linear(theta, theta, Rows(features, ShuffledRows()), present=present)
    again = jb.simulate(policy, Closing(nan), limit, key=KEY, replicates=2, marks=2)
    for name in ("reward", "spent", "expected_reward"):
        assert np.array_equal(result.ledger[name], again.ledger[name])


def test_features_of_a_table_are_the_round_s_row() -> None:
    rng = np.random.default_rng(6)
    quality, dollars = rng.random((11, 2)), rng.random((11, 2))
    features = np.arange(11.0)[:, None]
    plain, featured = (
        RequestTable.of(quality, dollars, ShuffledRows(), features=x) for x in (None, features)
    )
    assert (plain.spec.context, featured.spec.context) == (None, (1,))
    rows = featured.rows(KEY, 22)
    lane = streams.domain_key(streams.lane_key(streams.root_key(KEY), 0, 0), streams.Domain.WORLD)
    instance = jax.tree.map(lambda x: jnp.asarray(x)[0], featured)
    met = jax.vmap(instance.context, (None, 0))(lane, jnp.arange(1, 23))
    assert met.ravel().tolist() == rows.tolist()
    later = RequestTable.of(quality, dollars, ShuffledRows(), features=100 + features)
    moves = jax.tree.map(lambda x: jnp.asarray(x)[0], Piecewise.of([featured, later], at=[12]))
    met = jax.vmap(moves.context, (None, 0))(lane, jnp.arange(1, 23))
    assert met.ravel().tolist() == (rows + 100 * (np.arange(22) >= 11)).tolist()
    # policies without contexts play both alike; expected is the mean of rows with these features
    one, other = (
        jb.simulate(jb.policies.UCB1(), w, jb.Horizon(50), key=KEY, replicates=2, marks=2).ledger
        for w in (plain, featured)
    )
    for name in ("reward", "spent", "rounds"):
        np.testing.assert_array_equal(one[name], other[name])
    np.testing.assert_array_equal(other["expected_reward"], other["reward"])


@pytest.mark.integration
def test_of_a_world_that_changes_nobody_knows_how_far_its_sample_is_off() -> None:
    """By rounds it is against who sees contexts; the error of a sample without end is NaN, not 0."""
    parts = [
        ContextualArms.linear([[0.5, sign, 0.0], [0.5, -sign, 0.0]], [[0.5, 0.0, 0.0]] * 2, UnitSphere(2))
        for sign in (0.4, 0.2)
    ]  # fmt: skip
    world = Piecewise.of(parts, at=[51])
    policies = [LinUCB(), jb.policies.UCB1()]
    result = jb.simulate(policies, world, jb.Horizon(100), key=KEY, replicates=16, marks=1)
    assert np.isnan(result.benchmark_error).all()
    # E max(.5 + sx, .5 − sx) = .5 + s E|x| = .5 + 2s/π on the circle
    most = 50 * (0.5 + 0.8 / np.pi) + 50 * (0.5 + 0.4 / np.pi)
    assert result.best_rate[0] * 100 == pytest.approx(most, rel=2e-3)
    sees, blind = result.regret.mean("replicate").values.ravel()
    assert 0 < sees < blind and (result.fixed_regret.mean("replicate").values[0] < 0).all()
    exact = Piecewise.of([RequestTable.of(np.eye(2), np.eye(2), features=np.eye(2))] * 2, at=[9])
    sure = jb.simulate(jb.policies.FixedSplit([1.0, 1.0]), exact, jb.Horizon(20), key=KEY, marks=1)
    assert (sure.benchmark_error == 0).all() and sure.best_rate[0] == 1.0


@pytest.mark.integration
def test_the_realised_regret_warns_as_the_regret_does() -> None:
    world = ContextualArms.linear([[0.5, 0.4]], [[0.5, 0.0]], Gaussian(1))
    result = jb.simulate(LinUCB(), world, jb.Horizon(10**5), key=KEY, marks=1, max_rounds=10**5)
    for name in ("regret", "realised_regret"):
        with pytest.warns(UserWarning, match=f"^{name}: its benchmark is that of sampled contexts"):
            getattr(result, name)
