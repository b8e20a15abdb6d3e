"""Worlds that change: a standing one's bits, addresses, exact benchmarks."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import numpy as np
import pytest
from scipy.optimize import linprog

import jaxbandits as jb
from jaxbandits.core.checks import InputError
from jaxbandits.environments import FiniteArms, Piecewise, WithNullArm, drift
from jaxbandits.policies import MUCB, OmegaUCB, Schedule
from jaxbandits.result import pick
from jaxbandits.testing import assert_same_results
from tests.contract.worlds import KEY, world

BUDGET = jb.TotalBudget(30.0, last_pull="counts")


@pytest.mark.parametrize(
    ("name", "changes", "constraint"),
    [
        ("bernoulli", (7, 40), BUDGET),
        ("bernoulli", (), jb.Horizon(60)),
        ("beta", (9,), jb.Horizon(60)),
        ("null_arm", (7, 40), BUDGET),
    ],
)
@pytest.mark.integration_rows("bernoulli-changes1-constraint1", "beta-changes2-constraint2")
def test_a_world_that_stands_gives_its_own_bits(
    name: str, changes: tuple[int, ...], constraint: Any
) -> None:
    inside = world(name)
    standing = Piecewise.of([inside] * (1 + len(changes)), at=changes)
    keywords: dict[str, Any] = {
        "key": KEY,
        "replicates": 3,
        "marks": 3,
        "engine": "scan",
        "max_rounds": 400,
    }
    reference, result = (
        jb.simulate(OmegaUCB(), w, constraint, **keywords) for w in (inside, standing)
    )
    possible = {name for name in result.ledger if name.startswith(("moving:", "fixed:"))}
    assert len(possible) == 4
    plain = {name: x for name, x in result.ledger.items() if name not in possible}
    assert_same_results(
        reference, dataclasses.replace(result, ledger=plain), "the world, and a standing one"
    )
    # the regrets are those of today, up to a tick
    for ours in (result.regret, result.fixed_regret):
        np.testing.assert_allclose(ours, reference.regret, atol=2.0**-23)
    np.testing.assert_allclose(result.realised_regret, reference.realised_regret, atol=2.0**-23)
    np.testing.assert_allclose(result.best_rate, reference.best_rate, rtol=1e-6)


def test_a_draw_keeps_its_address_and_goes_through_the_law_of_its_round() -> None:
    """An arm's n-th pull is the same uniform in every segment: a larger mean brings no less."""
    low, high = (FiniteArms.bernoulli([m, 0.5], [0.5, 0.5]) for m in (0.3, 0.7))
    pairs = (low, low), (low, high), (high, high)  # of one shape: one program plays them all
    only = Schedule(at=[1], arms=[0])
    keywords: dict[str, Any] = {
        "key": KEY,
        "replicates": 4,
        "marks": np.arange(1, 201) / 200,
        "engine": "scan",
    }
    totals = [
        jb.simulate(only, Piecewise.of(x, at=[101]), jb.Horizon(200), **keywords).ledger["reward"]
        for x in pairs
    ]
    rewards = [np.diff(x, axis=-1, prepend=0) for x in totals]
    np.testing.assert_array_equal(rewards[1][..., :100], rewards[0][..., :100])
    np.testing.assert_array_equal(rewards[1][..., 100:], rewards[2][..., 100:])
    assert (rewards[0] <= rewards[2]).all() and (rewards[0] < rewards[2]).any()


def test_an_instance_has_changes_of_its_own_and_batches_change_nothing() -> None:
    first, second = (
        jb.environments.random_bernoulli(jax.random.key(i), instances=3, arms=4) for i in (1, 2)
    )
    moving = Piecewise.of([first, second], at=[[5], [20], [300]])
    whole = jb.simulate(MUCB(), moving, jb.Horizon(50), key=KEY, replicates=2, marks=2)
    alone = jax.tree.map(lambda x: np.asarray(x)[1:2], moving)
    part = jb.simulate(
        MUCB(), alone, jb.Horizon(50), key=KEY, replicates=2, marks=2, instance_ids=[1]
    )
    assert_same_results(pick(whole, instances=[1]), part, "in the whole and alone")


# --- what could be gained


def by_linear_program(start: Any, reward: Any, cost: Any, budget: float) -> float:
    """The program as it stands in the docstring, one for each segment in which the run may end."""
    lengths, best = np.append(np.diff(start), 1e9), 0.0
    segments, arms = reward.shape
    for j in range(segments):
        keep = range(j + 1)
        rows = np.kron(np.eye(j + 1), np.ones(arms))
        solution = linprog(
            -reward[keep].ravel(),
            np.vstack([cost[keep].ravel(), rows[j]]),
            [budget, lengths[j]],
            rows[:j] if j else None,
            lengths[:j] if j else None,
        )
        best = max(best, -solution.fun if solution.status == 0 else 0.0)
    return best


def test_the_benchmark_is_the_value_of_the_linear_program() -> None:
    rng, marks = np.random.default_rng(5), (0.1, 0.3, 0.6, 1.0)
    for segments, arms, null in (
        (1, 3, False),
        (2, 2, False),
        (4, 3, False),
        (6, 5, False),
        (3, 2, True),
        (5, 4, True),
    ):
        reward, cost = rng.random((2, segments, arms))
        cost = 0.02 + 0.98 * cost
        at = np.sort(rng.choice(np.arange(2, 120), segments - 1, replace=False))
        parts: list[Any] = [FiniteArms.bernoulli(r, c) for r, c in zip(reward, cost, strict=True)]
        parts = [WithNullArm(part) for part in parts] if null else parts
        moving = Piecewise.of(parts, at=at)
        tables = [x[0] for x in moving._tables()]
        for budget in (3.0, 20.0, 70.0):
            ready = jb.TotalBudget(budget, last_pull="counts").prepare(moving)
            clock = budget * np.array([marks])
            value = moving.benchmarks(ready, clock)["moving"](np.zeros(1, int), clock)[0]
            for x, of_x in zip(clock[0], value, strict=True):
                must = by_linear_program(moving.starts[0], *tables, x)
                assert of_x == pytest.approx(must, rel=1e-7), (segments, arms, null, x)


def test_luck_with_random_costs_is_no_regret_below_0() -> None:
    """One arm plays the best there is, though luck takes it to the cheap segment beyond V(B)."""
    only, budget = Schedule([1], [0]), jb.TotalBudget(40.0, last_pull="counts")
    moving = Piecewise.bernoulli([[0.5], [1.0]], [[0.5], [0.01]], at=[81])
    result = jb.simulate(only, moving, budget, key=KEY, replicates=2000, marks=1)
    earned = result.reward.values.ravel()
    error = earned.std() / np.sqrt(2000)
    # 80 rounds cost binomial(80, 1/2); what is left then buys 100 times as many rounds
    spent = np.arange(81)
    chance = np.array([math.comb(80, int(n)) for n in spent]) / 2.0**80
    assert (
        abs(earned.mean() - (40 + (chance * 100 * np.maximum(40 - spent, 0)).sum())) < 4 * error + 1
    )
    ready = budget.prepare(moving)
    assert moving.benchmarks(ready, np.array([[40.0]]))["moving"](
        np.zeros(1, int), np.array([[40.0]])
    ).item() == pytest.approx(40)
    for regret in (result.regret, result.fixed_regret):
        assert np.abs(regret.values).max() <= 2.0**-20


def test_by_rounds_the_benchmark_is_a_sum() -> None:
    reward = np.array([[0.2, 0.6, 0.1], [0.9, 0.1, 0.3], [0.4, 0.5, 0.7]])
    moving = Piecewise.bernoulli(reward, [0.5, 0.5, 0.5], at=[11, 31])
    result = jb.simulate(
        Schedule(at=[1], arms=[0]), moving, jb.Horizon(50), key=KEY, marks=[0.2, 0.5, 1.0]
    )
    mean = np.repeat(reward, [10, 20, 20], axis=0)
    for mark, rounds in enumerate((10, 25, 50)):
        best = mean[:rounds].max(1).sum()
        fixed = mean[:rounds].sum(0).max()
        arm_reward = mean[:rounds, 0].sum()
        assert result.regret.values[0, 0, 0, mark] == pytest.approx(best - arm_reward, abs=1e-5)
        assert result.fixed_regret.values[0, 0, 0, mark] == pytest.approx(
            fixed - arm_reward, abs=1e-5
        )


def some_worlds() -> list[Piecewise]:
    rng = np.random.default_rng(8)
    reward, cost = rng.random((2, 6, 4, 5))
    path = drift.random_walk(jax.random.key(3), rng.random((6, 5)), 0.2, 8)
    return [
        Piecewise.bernoulli(reward, 0.05 + 0.95 * cost, at=[40, 90, 400]),
        Piecewise.bernoulli(path, 0.05 + 0.95 * cost[:, :1], every=25),
    ]


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.quick_rows("0")
def test_who_plays_the_benchmark_has_regret_exactly_0(number: int) -> None:
    """By rounds at every mark; by money where the run ends inside a segment."""
    moving = some_worlds()[number]
    horizon = jb.Horizon(200)
    result = jb.simulate(
        Schedule(*moving.best_schedule(horizon)), moving, horizon, key=KEY, replicates=4, marks=5
    )
    assert (result.regret == 0).all()
    assert (result.fixed_regret <= 0).all() and (result.fixed_regret < 0).any()

    budget = jb.TotalBudget(150.0, last_pull="counts")
    exact = Schedule(*moving.best_schedule(budget))
    ends = jb.simulate([exact, OmegaUCB()], moving, budget, key=KEY, replicates=8, marks=1)
    value = ends.ledger["moving:expected_clock"][:, :, :, 0] / 2.0**24
    shares = ends.regret.values[..., 0] / value
    # The fraction of a pull at a boundary
    assert np.abs(shares[0]).max() < 0.02 and np.median(np.abs(shares[0])) == 0.0
    assert shares[1].mean() > 0.02


@pytest.mark.integration
def test_with_certain_costs_a_budget_is_planned_to_the_tick() -> None:
    """Cheap now, good later: who knows waits, and the null arm makes waiting free."""

    def certain(*arms: tuple[float, float]) -> FiniteArms:
        return FiniteArms.empirical([[([r], [c]) for r, c in arms]])

    poor, rich = certain((0.25, 0.5), (0.0, 0.125)), certain((1.0, 0.5), (0.0, 0.125))
    budget = jb.TotalBudget(20.0, last_pull="counts")
    moving = Piecewise.of([poor, rich], at=[33])
    schedule = moving.best_schedule(budget)
    assert [x.ravel().tolist() for x in schedule] == [[1, 33], [1, 0]]
    result = jb.simulate(
        [Schedule(*schedule), Schedule([1], [0])], moving, budget, key=KEY, marks=1
    )
    # 32 rounds of waiting cost 4, and the 16 that are left buy 32; who does not wait has 4 for the
    # good times
    assert result.reward.values.ravel().tolist() == [32.0, 16.0]
    assert result.regret.values.ravel().tolist() == [0.0, 32.0 - 16.0]
    free = Piecewise.of([WithNullArm(poor), WithNullArm(rich)], at=[33])
    result = jb.simulate(
        Schedule(*free.best_schedule(budget)), free, budget, key=KEY, marks=1, max_rounds=1000
    )
    assert (float(result.reward.max()), float(result.regret.max())) == (40.0, 0.0)


def test_other_constraints_have_no_benchmark_and_say_so() -> None:
    moving = Piecewise.of([WithNullArm(world("bernoulli"))] * 2, at=[20])
    only, limit = Schedule(at=[1], arms=[0]), jb.AverageCost(c=0.5, rounds=40)
    result = jb.simulate(only, moving, limit, key=KEY, marks=1)
    assert np.isnan(result.regret).all()
    with pytest.raises(InputError, match="fixed_regret"):
        _ = result.fixed_regret
    with pytest.raises(InputError, match="constraint"):
        moving.best_schedule(limit)


def test_paths_keep_to_their_law() -> None:
    assert drift.linear([0.0], [1.0], 5).ravel().tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    swing = drift.sinusoidal([0.1, 0.3], [0.9, 0.3], 8, period=8, phase=[0.25, 0.0])
    np.testing.assert_allclose(swing[[0, 4]], [[0.9, 0.3], [0.1, 0.3]])
    key = jax.random.key(9)
    path = drift.random_walk(key, [[0.5, 0.1], [0.5, 0.9]], 0.05, 4000)
    assert path.shape == (2, 4000, 2) and (path >= 0).all() and (path <= 1).all()
    # by address: a longer walk with more arms and fewer instances begins as this one
    np.testing.assert_array_equal(
        drift.random_walk(key, [[0.5, 0.1, 0.5]], 0.05, 50)[0, :, :2], path[0, :50]
    )
    inside = (path[:, :-1] > 0.05) & (path[:, :-1] < 0.95)
    moves = np.diff(path, axis=1)[inside]
    error = moves.std() / np.sqrt(moves.size)
    assert abs(moves.mean()) < 3.5 * error and abs(moves.std() - 0.05 / np.sqrt(3)) < 5e-4
    assert abs(np.corrcoef(np.diff(path[:, :, 0], axis=1))[0, 1]) < 3.5 / np.sqrt(4000)


def test_prices_that_change_are_no_prices() -> None:
    """Certain costs of one cost and of several: those that are the same in all segments."""
    for d in (1, 2):
        segments = [
            FiniteArms.empirical([[([0.5], [[cost] * d]), ([0.5], [[0.5] * d])]])
            for cost in (0.1, 0.3)
        ]
        prices = Piecewise.of(segments, at=[33]).prices()
        assert prices is not None and prices.tolist() == [[[0] * d, [2**23] * d]]
