"""Policies that start from a history, and policies that learn in batches."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.core import ticks
from jaxbandits.environments import FiniteArms, Stocked
from jaxbandits.policies import History, InBatches, experienced
from jaxbandits.testing import assert_same_results

KEY = jax.random.key(20261125)
ARMS = FiniteArms.bernoulli([[0.6, 0.5, 0.3], [0.2, 0.9, 0.5]], [[0.5, 0.25, 0.6], [0.3, 0.7, 0.4]])
HISTORY = {
    "pulls": [[40, 40, 0], [30, 20, 10]],
    "reward": [[23.5, 18, 0], [6, 17, 4]],
    "cost": [[20, 11, 0], [8, 15, 4]],
}
BUDGET = jb.TotalBudget(60.0, last_pull="counts")


def history_of(state: Any) -> History:
    """What a lane has learnt."""
    statistics = getattr(state, "learnt", state)
    sums = (
        ticks.to_units(ticks.join(jax.tree.map(np.asarray, x)))
        for x in (statistics.reward, statistics.cost)
    )
    return History.of(np.asarray(statistics.pulls), *sums)


@pytest.mark.parametrize(
    "policy", [jb.policies.OmegaUCB(rho=0.25), jb.policies.BGreedy()], ids=["index", "other"]
)
def test_a_history_is_what_was_played(policy: jb.Policy) -> None:
    """Its first decision is the next one of the policy that played the history."""
    lane = jb.rollout(policy, ARMS, jb.Horizon(80), key=KEY, rounds=80)
    state = jax.tree.map(lambda x: x[60], lane.state)  # has learnt 60 rounds, decided the 61st
    again = experienced(policy, history_of(state))
    first_round: Any = jb.rollout(again, ARMS, jb.Horizon(1), key=KEY, rounds=1)
    learnt = jax.tree.map(lambda x: x[0], first_round.state)
    assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), learnt, state))
    if hasattr(again, "scoring"):
        assert int(first_round.action[0]) == int(lane.action[60])
        scoring = again.scoring()  # type: ignore[attr-defined]
        base = jb.policies.base.evaluate_totals
        assert (base(scoring, learnt, jnp.int32(1)) == base(policy, state, jnp.int32(61))).all()


@pytest.mark.integration
def test_engines_agree_and_the_world_counts_its_own_pulls() -> None:
    policies = [
        experienced(x, History.of(**HISTORY))
        for x in (jb.policies.OmegaUCB(rho=[0.25, 1.0]), jb.policies.MUCB())
    ]
    stocked = Stocked.of(ARMS, pulls=[30, 60, 500])
    for world in (ARMS, stocked):
        more: dict[str, Any] = {"key": KEY, "replicates": 4, "marks": 4}
        scan, leap = (
            jb.simulate(policies, world, BUDGET, engine=engine, **more)
            for engine in ("scan", "leap")
        )
        assert_same_results(scan, leap, "scan and leap with a history")
        assert set(leap.about.engines) == {"leap"}
        assert (scan.pulls.sum("arm").values == scan.rounds.values[..., -1]).all()
    assert (scan.pulls.values <= [30, 60, 500]).all() and (scan.pulls.values == 30).any()


def twin(size: int, later: int, rounds: int) -> tuple[list[int], list[float]]:
    """UCB1 told by batches, open pulls counted at their arm's means (unknown: as nothing)."""
    lane = jb.rollout(
        InBatches(jb.policies.UCB1(), size=size, later=later),
        ARMS,
        jb.Horizon(rounds),
        key=KEY,
        rounds=rounds,
    )
    return np.asarray(lane.action).tolist(), (np.asarray(lane.outcome.reward) / ticks.ONE).tolist()


@pytest.mark.parametrize("size, later", [(1, 0), (7, 0), (5, 3)])
def test_batches_beside_a_plain_loop(size: int, later: int) -> None:
    rounds = 150
    actions, rewards = twin(size, later, rounds)
    n, s, unknown = np.zeros(3), np.zeros(3), []
    for t, (arm, reward) in enumerate(zip(actions, rewards, strict=True), start=1):
        batch = (t - 1) // size
        for outcome in [x for x in unknown if x[0] < batch - later]:
            n[outcome[1]] += 1
            s[outcome[1]] += outcome[2]
            unknown.remove(outcome)
        open_ = np.bincount([x[1] for x in unknown], minlength=3)
        all_ = n + open_
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(n > 0, np.floor(s / np.maximum(n, 1) * ticks.ONE) / ticks.ONE, 0)
            score = np.where(
                all_ > 0, (s + open_ * mean) / all_ + np.sqrt(2 * np.log(t) / all_), np.inf
            )
        first = np.flatnonzero(all_ == 0)
        assert arm == first[0] if first.size else score[arm] >= score.max() - 1e-5, (t, arm, score)
        unknown.append((batch, arm, reward))


@pytest.mark.integration
@pytest.mark.parametrize(
    "policy",
    [jb.policies.OmegaUCB(rho=0.25), jb.policies.BudgetedThompson()],
    ids=["index", "other"],
)
def test_batches_may_stand_around_a_history(policy: jb.Policy) -> None:
    """After every pull they are the policy inside, with its labels and a history."""
    started = experienced(policy, History.of(**HISTORY))
    policies = [started, InBatches(started, size=1), InBatches(started, size=20, later=1)]
    result = jb.simulate(policies, ARMS, BUDGET, key=KEY, replicates=4, marks=2)
    np.testing.assert_array_equal(*result.reward.values[:2])
    np.testing.assert_array_equal(*result.pulls.values[:2])
    assert (result.pulls.values[0] != result.pulls.values[2]).any()
    name = "OmegaUCB(rho=0.25)" if isinstance(policy, jb.policies.OmegaUCB) else "BudgetedThompson"
    assert result.settings[0] == f"{name} from a history"
    assert result.settings[2] == f"InBatches({name} from a history, size=20, later=1)"
