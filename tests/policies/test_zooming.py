"""Zooming policies and tree searches: twins, engines, capacity, warnings, messages."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits._engine import merge
from jaxbandits._engine.setup import lay_out, time_parallel
from jaxbandits.core import arm_statistics, ticks
from jaxbandits.environments import Continuum, FiniteArms, cost_valley
from jaxbandits.environments.noise import Beta
from jaxbandits.policies import (
    HOO,
    UCB1,
    BZoom,
    OnPoints,
    SinglePhaseBZoom,
    SinglePhaseZooming,
    StoOO,
    Zooming,
)
from jaxbandits.testing import POLICY_CHECKS, Subject, assert_same_results, episode
from tests.policies.reference import continuum as twins

KEY = jax.random.key(5)
BUDGET = jb.TotalBudget(500.0, last_pull="forfeits")
SLACK = 2e-6  # float32 radii against float64 ones
pytestmark = pytest.mark.filterwarnings("ignore:.*lipschitz.*")


def near_best(scores: list[float], place: int) -> bool:
    best = max(scores)
    return scores[place] == best or scores[place] >= best - 1e-5 * max(1.0, abs(best))


def rounds(policy: Any, count: int) -> Iterator[tuple[int, int, float, float, Any]]:
    """(round, point played, reward, cost, the policy's state then) of a lane in a valley."""
    steps = jax.tree.map(
        lambda x: np.asarray(x)[0], episode(policy, cost_valley([0.3], 0.5), BUDGET, KEY, count)
    )
    for i, (reward, cost) in enumerate(
        zip(steps.outcome.reward / 2**24, steps.outcome.cost / 2**24, strict=True)
    ):
        yield (
            i + 1,
            round(float(steps.action[i]) * 2**24),
            reward,
            cost,
            jax.tree.map(lambda x, i=i: x[i], steps.after),
        )


ZOOMS: dict[str, tuple[Any, Any]] = {
    "BZoom": (BZoom(lam=0.5, lipschitz=80.0), twins.BZoomTwin(0.5, 80.0)),
    "SinglePhaseBZoom": (
        SinglePhaseBZoom(budget=500.0, lam=0.5, lipschitz=120.0),
        twins.SinglePhaseBZoomTwin(500.0, 0.5, 120.0),
    ),
    "Zooming": (Zooming(lipschitz=20.0), twins.ZoomTwin(20.0)),
    "SinglePhaseZooming": (
        SinglePhaseZooming(budget=500.0, lam=0.5, lipschitz=30.0, scale=1.5),
        twins.SinglePhaseZoomTwin(500.0, 0.5, 30.0, 1.5),
    ),
}


@pytest.mark.parametrize("name", ZOOMS)
@pytest.mark.quick_rows("BZoom")
def test_zooming_against_its_twin(name: str) -> None:
    policy, twin = ZOOMS[name]
    largest = 0
    for t, point, reward, cost, state in rounds(policy, 600):
        twin.begin_round(t)
        before, count = len(twin.arms), int(state.count)
        if count > before:
            assert count == before + 1, "at most one point is activated a round"
            new = int(state.point[before])
            gaps = twin.gaps(-SLACK)
            assert before == 0 or any(a <= new <= b for a, b in gaps), "the new point was covered"
            twin.activate(new)
        else:
            assert count == before and not twin.gaps(SLACK), (
                f"round {t}: an uncovered point was not activated"
            )
        place = [arm.x for arm in twin.arms].index(point)
        scores = twin.scores()
        np.testing.assert_allclose(state.index[:count], scores, rtol=1e-5)
        assert near_best(scores, place)
        if count > before:
            assert place == before, "a new point is played at once"
        twin.update(point, reward, cost)
        largest = max(largest, count)
    assert largest >= 5, "a test with fewer active points tests little"


def test_hoo_against_its_twin() -> None:
    policy, twin = HOO(lam=0.5, nu=12.0, rho=0.6, depth=5), twins.HOOTwin(0.5, 12.0, 0.6, 5)
    for t, action, reward, cost, _ in rounds(policy, 400):
        point, gaps = twin.choose(t)
        assert action == point or min(gaps) < 1e-4, f"round {t}"
        twin.update(action, reward, cost)
    assert len(twin.cells) > 60 and max(h for h, _ in twin.cells) == 5


def test_sto_oo_against_its_twin() -> None:
    policy = StoOO(lam=0.9, nu=60.0, horizon=800.0, delta=0.2)
    twin = twins.StoOOTwin(0.9, 60.0, 800.0, 0.2)
    for t, point, reward, cost, state in rounds(policy, 500):
        assert int(state.count) == len(twin.leaves)
        place = [leaf.x for leaf in twin.leaves].index(point)
        assert near_best(twin.scores(), place), f"round {t}"
        twin.update(point, reward, cost)
    assert len(twin.leaves) > 8


def wobble_reward(x: jax.Array, p: Any) -> jax.Array:
    return 0.5 + 0.3 * jnp.sin(p["a"] * x)


def wobble_cost(x: jax.Array, p: Any) -> jax.Array:
    return 0.4 + 0.3 * jnp.cos(7 * x)


def wobbly(remembered: int = 64) -> Continuum:
    return Continuum.of(
        wobble_reward,
        wobble_cost,
        lipschitz_reward=3.0,
        lipschitz_cost=2.1,
        parameters={"a": [3.0, 9.0, 6.0]},
        reward_noise=Beta(3.0),
        cost_noise=Beta(0.7),
        remembered=remembered,
    )


@pytest.mark.parametrize(
    ("policy", "constraint"),
    [
        (
            SinglePhaseBZoom(
                budget=[900.0, 200.0], lam=0.1, lipschitz=[2000.0, 4000.0], capacity=48
            ),
            jb.TotalBudget([900.0, 500.0, 700.0], last_pull="forfeits"),
        ),
        (Zooming(lipschitz=9.0, capacity=48), jb.Horizon(3000)),
    ],
    ids=["one phase, two settings", "phases"],
)
@pytest.mark.integration
def test_merge_gives_the_bits_of_scan(policy: Any, constraint: Any) -> None:
    """Marks in the middle, Beta outcomes, long lanes; any number of slots, any chunk."""

    def run(engine: str, **more: Any) -> jb.Result:
        return jb.simulate(
            policy, wobbly(), constraint, key=KEY, replicates=4, marks=7, engine=engine, **more
        )

    scan, merged = run("scan", slots=24), run("leap", slots=7, chunk=3)
    assert merged.about.engine == "merge"
    assert_same_results(scan, merged, "scan and merge")
    assert scan.ledger["rounds"].max() > 1000


@pytest.mark.integration
def test_b_zoom_keeps_the_contract() -> None:
    """All rules but two: radii and means are float32 formulas rounded to ticks, and other programs
    round otherwise.

    Without jit a radius may be another tick; a plain loop adds up means that are a few ticks off.
    """
    policy = BZoom(lam=0.3, lipschitz=100.0, capacity=32)
    subject = Subject(policy, wobbly(32), jb.TotalBudget(60.0, last_pull="counts"), KEY)
    for rule in POLICY_CHECKS:
        if rule.__name__ not in ("agrees_without_jit", "finished_lanes_are_frozen"):
            rule(subject)


@jb.pytree
class Stubborn(SinglePhaseBZoom):
    """Always the first point: nothing that an index says."""

    def select(self, state: Any, key: jax.Array, view: Any) -> tuple[Any, jax.Array]:
        return state, state.points[0]


def test_merge_refuses_what_it_cannot_play() -> None:
    world, budget = wobbly(), BUDGET.prepare(wobbly())
    policy = SinglePhaseBZoom(budget=100.0, lam=0.1, lipschitz=10.0, capacity=65)
    assert "counts the pulls of 64 points only" in str(merge.why_not(policy, world, budget))
    stubborn = Stubborn(budget=100.0, lam=0.1, lipschitz=10.0)
    assert "Stubborn overrides select without declaring `rests` again" in str(
        merge.why_not(stubborn, world, budget)
    )
    assert "does not declare a score that rests" in str(
        time_parallel(HOO(lam=0.1, nu=1.0), world, budget)
    )
    with pytest.raises(jb.InputError, match="does not declare a score that rests"):
        jb.simulate(HOO(lam=0.1, nu=1.0), world, BUDGET, key=KEY, engine="leap")
    assert (
        time_parallel(SinglePhaseBZoom(budget=1.0, lam=0.1, lipschitz=1.0), world, budget) is merge
    )


@pytest.mark.integration
def test_forgotten_points_are_new_points() -> None:
    """A world that counts two points plays on with ten active ones: no outcome repeats itself."""
    policy = SinglePhaseZooming(budget=300.0, lam=0.1, lipschitz=60.0)
    result = jb.simulate(
        policy,
        wobbly(2),
        jb.TotalBudget(300.0, last_pull="forfeits"),
        key=KEY,
        replicates=20,
        marks=1,
    )
    expected, reward = (
        result.ledger[k][..., -1] / ticks.ONE for k in ("expected_reward", "reward")
    )
    rounds = result.ledger["rounds"][..., -1]
    # The sd of Beta(3μ, 3(1 − μ)) is at most 1/4
    z = (reward - expected) / (0.25 * np.sqrt(rounds))
    assert np.abs(z).max() < 4 and np.abs(z.mean()) < 4 / np.sqrt(z.size)


@pytest.mark.parametrize("engine", ["scan", "leap"])
@pytest.mark.integration
def test_capacity_ends_a_lane_and_a_larger_one_has_the_same_prefix(engine: str) -> None:
    small = SinglePhaseBZoom(budget=500.0, lam=0.5, lipschitz=100.0, capacity=4)
    large = SinglePhaseBZoom(budget=500.0, lam=0.5, lipschitz=100.0, capacity=64)
    world = cost_valley([0.2, 0.7], 0.5)
    with pytest.warns(UserWarning, match="ended with status capacity .*rerun with more capacity"):
        cut = jb.simulate(small, world, BUDGET, key=KEY, marks=1, engine=engine)
    assert (cut.ended == jb.Status.CAPACITY).all()
    rounds = cut.ledger["rounds"][0, :, 0, -1]
    steps = episode(large, world, BUDGET, KEY, int(rounds[1]) + 1, instance=1)
    assert int(steps.after.count[0, -1]) == 5 and int(steps.after.count[0, -2]) == 4
    assert (
        int(jnp.sum(steps.outcome.reward[0, :-1] >> 24)) == cut.ledger["reward"][0, 1, 0, -1] >> 24
    )


def test_warnings_in_clear_words() -> None:
    world = cost_valley([0.3, 0.6], [0.5, 0.1])

    def messages(policy: Any) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lay_out(policy, world, jb.TotalBudget(5.0, last_pull="forfeits"), key=KEY)
        return [str(w.message) for w in caught]

    zoom = functools.partial(SinglePhaseBZoom, budget=5.0)
    good, where = [[600.0, 600.0]], r".* in instance 1 \(1 of 2 instances\)"
    for policy, words in (
        (zoom(lam=0.2, lipschitz=good), rf"lam: 0\.2 is above .* 0\.1{where}"),
        (
            zoom(lam=[[0.5, 0.1]], lipschitz=[[600.0, 20.0]]),
            rf"lipschitz: 20 is below the largest slope 1[78]\d{where}",
        ),
        (SinglePhaseZooming(budget=5.0, lam=0.1, lipschitz=0.01), "0.01 is below .* slope 0.05"),
        (HOO(lam=0.7, nu=1.0), "HOO.lam: 0.7 is above the smallest mean cost 0.5"),
    ):
        (line,) = messages(policy)
        assert re.search(words, line)
    assert messages(zoom(lam=[[0.5, 0.1]], lipschitz=good)) == []
    assert messages(SinglePhaseZooming(budget=5.0, lam=0.1, lipschitz=0.05)) == []


def test_on_points_plays_the_finite_bandit() -> None:
    """The inner policy alone, told the same outcomes, makes the same choices."""
    points = np.array([0.1, 0.3, 0.77], np.float32)
    policy, inner = OnPoints(UCB1(), points=points), UCB1()
    steps = episode(policy, cost_valley([0.3], 0.5), BUDGET, KEY, 60)
    key = jax.random.wrap_key_data(jax.random.key_data(KEY))
    state = inner.init(jb.environments.FiniteSpec(arms=3))
    for t in range(60):
        arm = int(np.argmin(np.abs(points - float(steps.action[0, t]))))
        assert abs(points[arm] - float(steps.action[0, t])) < 2**-23
        scores = np.asarray(inner.score(arm_statistics.as_floats(state, jnp.int32(t + 1))))
        fresh = np.asarray(state.pulls) == 0
        assert arm == int(np.argmax(fresh)) if fresh.any() else near_best(list(scores), arm)
        feedback = jb.Feedback(steps.outcome.reward[0, t], steps.outcome.cost[0, t])
        state = inner.update(
            state, key, jb.Observation(None, jnp.int32(arm), feedback, jnp.bool_(False))
        )  # type: ignore[arg-type]
    np.testing.assert_array_equal(
        state.pulls, jax.tree.map(lambda x: x[0, -1], steps.after).pulls + (np.arange(3) == arm)
    )
    assert isinstance(cost_valley([0.3], 0.5).at(points), FiniteArms)
