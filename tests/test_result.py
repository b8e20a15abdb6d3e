"""What a result says: regrets from exact counts, last pulls, marks, statuses, save and load."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits._engine.setup import lay_out, mark_shares
from jaxbandits.core import ticks
from jaxbandits.core.protocol import Status
from jaxbandits.environments import FiniteArms
from jaxbandits.policies.base import IndexPolicy
from jaxbandits.testing import assert_same_results
from tests.contract.worlds import KEY, world

POLICIES = [jb.policies.OmegaUCB(rho=[0.25, 1.0]), jb.policies.BudgetedThompson()]


@jb.pytree
class Alternating(IndexPolicy):
    """Plays arms 0, 1, 0, 1, …: the fewest pulls first."""

    def score(self, arms: Any) -> Any:
        return -arms.n + 1e-3 * arms.reward  # equal counts: the arm with more reward

    def select(self, state: Any, key: Any, view: Any) -> Any:
        return state, jnp.int32((view.round - 1) % 2)


@jb.pytree
class Spoilt(IndexPolicy):
    """Its score is NaN from round 7 on, in lanes whose first arm paid in the first round."""

    def score(self, arms: Any) -> Any:
        return jnp.where((arms.t > 6) & (arms.reward > 0), jnp.nan, 1.0 + 0.0 * arms.n)


@jb.pytree
class Astray(IndexPolicy):
    """Asks for an arm that is not there in round 4."""

    def score(self, arms: Any) -> Any:
        return arms.mean_reward

    def select(self, state: Any, key: Any, view: Any) -> Any:
        return state, jnp.where(view.round == 4, jnp.int32(17), jnp.int32(0))


def one_row(*arms: tuple[float, float]) -> FiniteArms:
    """Arms with a certain reward and cost."""
    return FiniteArms.empirical([[([reward], [cost]) for reward, cost in arms]])


def run(policies: Any, environment: Any, constraint: Any, **changes: Any) -> jb.Result:
    keywords: dict[str, Any] = {
        "key": KEY,
        "replicates": 3,
        "marks": 4,
        "slots": 16,
        "engine": "scan",
    }
    return jb.simulate(policies, environment, constraint, **(keywords | changes))


@pytest.mark.parametrize("name", ["bernoulli", "beta", "empirical"])
@pytest.mark.integration_rows("beta", "empirical")
def test_pseudo_regret_is_that_of_the_pulls(name: str) -> None:
    """best_rate · Σ n_k μ^c_k − Σ n_k μ^r_k, from pull counts by NumPy."""
    arms = world(name)
    result = run(POLICIES, arms, jb.TotalBudget(30.0, last_pull="counts"))
    reward, cost = arms.values()
    pulls = result.pulls.values
    best = np.nanmax(reward / cost, axis=-1)
    expected = best[:, None] * np.einsum("sirk,ik->sir", pulls, np.nan_to_num(cost))
    expected -= np.einsum("sirk,ik->sir", pulls, np.nan_to_num(reward))
    assert np.allclose(result.regret.values[..., -1], expected, rtol=1e-12, atol=1e-12)
    assert np.array_equal(pulls.sum(-1), result.rounds.values[..., -1])
    exact = np.einsum("sirk,ik->sir", pulls.astype(np.int64), np.asarray(arms.mean_cost, np.int64))  # type: ignore[attr-defined]
    assert np.array_equal(exact, result.ledger["expected_spent"][..., -1]), (
        "in ticks there is no rounding at all"
    )
    realised = best[:, None] * result.spent.values[..., -1] - result.reward.values[..., -1]
    assert np.allclose(result.realised_regret.values[..., -1], realised, rtol=1e-12)
    assert (result.regret.values[..., 1:] >= result.regret.values[..., :-1] - 1e-9).all(), (
        "pseudo-regret never falls"
    )


def test_the_regret_of_a_horizon_is_the_ordinary_one() -> None:
    arms = world("beta")
    result = run(POLICIES, arms, jb.Horizon([50, 60, 70]))
    reward = arms.values()[0]
    gaps = np.nan_to_num(np.nanmax(reward, axis=-1, keepdims=True) - reward)
    expected = np.einsum("sirk,ik->sir", result.pulls.values, gaps)
    assert np.allclose(result.regret.values[..., -1], expected, atol=1e-12)
    assert (result.rounds.values[..., -1] == np.array([50, 60, 70])[:, None]).all()
    assert (result.status == "horizon").all()


SHARES = (0.01, 0.1, 0.25, 0.26, 0.5, 0.9, 1.0)


def alternating(budget: float, last_pull: str) -> jb.Result:
    """Arms (r, c) = (0.5, 0.75) and (0.25, 0.25) in turn."""
    limit = jb.TotalBudget(budget, last_pull=last_pull)  # type: ignore[arg-type]
    return run(Alternating(), one_row((0.5, 0.75), (0.25, 0.25)), limit, marks=SHARES)


@pytest.mark.parametrize(
    ("last_pull", "spent", "reward", "regret"),
    [
        # B = 2.1: costs 0.75, 1, 1.75, 2, 2.75.
        # The best rate is 1; expected cost 2.75 in both cases (the last pull was made).
        ("counts", 2.75, 2.0, 0.75),
        ("forfeits", 2.1, 1.5, 1.25),
    ],
)
def test_the_last_pull_by_hand(last_pull: str, spent: float, reward: float, regret: float) -> None:
    result = alternating(2.1, last_pull)
    # The budget rounds down to a tick; 2.75 is exact
    budget = np.floor(spent * ticks.ONE) / ticks.ONE
    assert (result.spent.values[..., -1] == budget).all()
    assert (result.reward.values[..., -1] == reward).all()
    assert np.allclose(result.regret.values[..., -1], regret, atol=1e-12)
    assert (result.rounds.values[..., -1] == 5).all()
    assert (result.pulls.values == [3, 2]).all()
    assert (result.status == "exhausted").all()


@pytest.mark.parametrize("last_pull", ["counts", "forfeits"])
def test_a_budget_spent_to_the_tick_earns_its_last_pull(last_pull: str) -> None:
    result = alternating(2.0, last_pull)
    assert (result.spent.values[..., -1] == 2.0).all()
    assert (result.reward.values[..., -1] == 1.5).all()
    assert (result.rounds.values[..., -1] == 4).all()
    assert np.allclose(result.regret.values[..., -1], 0.5, atol=1e-12)


def test_marks_are_the_first_rounds_that_reach_them() -> None:
    """Costs 0.75 and 0.25 in turn, B = 4: spent 0.75, 1, 1.75, 2, 2.75, 3, 3.75, 4."""
    result = alternating(4.0, "counts")
    assert result.rounds.values[0, 0, 0].tolist() == [1, 1, 2, 3, 4, 7, 8]
    assert result.spent.values[0, 0, 0].tolist() == [0.75, 0.75, 1.0, 1.75, 2.0, 3.75, 4.0]
    assert result.marks == SHARES


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_a_mark_is_recorded_in_its_round_whatever_the_chunk(chunk: int) -> None:
    result = run(
        POLICIES[0], world("beta"), jb.Horizon(100), marks=[0.05, 0.1, 0.37, 1.0], chunk=chunk
    )
    assert (result.rounds.values == [5, 10, 37, 100]).all()


def test_marks_as_a_number() -> None:
    assert mark_shares(1).tolist() == [1.0]
    assert np.allclose(
        run(POLICIES[1], world("beta"), jb.Horizon(40), marks=4).marks, [1e-3, 1e-2, 1e-1, 1]
    )


def test_the_round_cap() -> None:
    """A free arm never ends a budget: it pays nothing, has a cap, and the lane says so."""
    free = one_row((0.0, 0.0), (0.5, 0.5))
    budget = jb.TotalBudget(5.0, last_pull="counts")
    with pytest.raises(jb.InputError, match="max_rounds"):
        run(jb.policies.CUCB(), free, budget)
    with pytest.warns(UserWarning, match="3 of 3 lanes ended with status round_cap"):
        result = run(jb.policies.CUCB(), free, budget, max_rounds=37)
    assert (result.status == "round_cap").all()
    assert (result.rounds.values[..., -1] == 37).all(), "marks that were never reached hold the end"
    assert (result.spent.values[..., -1] == 0.5).all()


def test_the_default_cap_does_not_depend_on_the_other_instances() -> None:
    """No lane is ever unlucky enough to meet it: it is looked at before anything is played."""
    slow, quick = (
        FiniteArms.bernoulli([[0.5], [0.5]], [[0.001], [cost]]) for cost in (0.00001, 0.5)
    )
    budget = jb.TotalBudget(0.5, last_pull="counts")
    slow_cap, quick_cap = (
        lay_out(jb.policies.CUCB(), arms, budget, key=KEY).tasks[0].cap for arms in (slow, quick)
    )
    assert slow_cap[0] == quick_cap[0] and slow_cap[1] > quick_cap[1]


def test_a_nan_score_ends_its_lane_as_invalid_and_no_other() -> None:
    arms = FiniteArms.bernoulli([[0.5, 0.5]], [[0.5, 0.5]])
    with pytest.warns(UserWarning, match="ended with status invalid"):
        result = run(Spoilt(), arms, jb.Horizon(20), replicates=64, marks=[0.1, 0.5, 1.0])
    invalid = result.ended[0, 0] == Status.INVALID
    assert invalid.any()
    rounds = result.ledger["rounds"][0, 0, :, -1]
    assert (rounds[invalid] >= 6).all() and (rounds[invalid] < 20).all(), (
        "what was played stays in the account"
    )
    assert (rounds[~invalid] == 20).all() and (result.ended[0, 0][~invalid] == Status.HORIZON).all()
    for view in (result.regret, result.realised_regret):
        assert (np.isnan(view.values[0, 0, :, -1]) == invalid).all(), (
            "what broke early would look best"
        )
    assert np.array_equal(result.final["pulls"].sum(-1)[0, 0], rounds)


def test_an_arm_that_is_not_there_ends_the_lane_as_invalid() -> None:
    with pytest.warns(UserWarning, match="3 of 3 lanes ended with status invalid"):
        result = run(Astray(), one_row((0.5, 0.25)), jb.Horizon(20), marks=[0.05, 0.5, 1.0])
    assert (result.status == "invalid").all()
    assert (result.rounds.values == [1, 3, 3]).all(), (
        "the bad round is not booked; later marks hold the end"
    )
    assert (result.spent.values[..., -1] == 0.75).all()


@jb.pytree
class AtMost(jb.TotalBudget):
    """A budget, and a cap on pulls of which the clock knows nothing."""

    pulls: int = jb.static(default=7)

    def ended(self, ledger: jb.Ledger) -> jax.Array:
        return super().ended(ledger) | (ledger.rounds >= self.pulls)


def test_an_end_that_the_clock_does_not_measure_is_told_once() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        two = [jb.policies.OmegaUCB(rho=0.25), jb.policies.OmegaUCB(rho=1.0)]
        result = run(two, world("beta"), AtMost(50.0, last_pull="counts"), replicates=2)
    lanes = result.ended.size
    sentence = f"{lanes} of {lanes} lanes ended by AtMost.ended before their clock did: their regret means nothing"
    assert [str(warning.message) for warning in caught].count(
        f"{sentence}; see result.rounds and result.spent"
    ) == 1
    assert sum("means nothing" in str(warning.message) for warning in caught) == 1
    assert (result.rounds.values[..., -1] == 7).all()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*means nothing")
        run(two, world("beta"), AtMost(50.0, last_pull="counts"), max_rounds=5)


def test_no_warning_for_lanes_that_ended_well() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        run(POLICIES[1], world("beta"), jb.Horizon(40))


def test_labels() -> None:
    names = ["a", "b", "c"]
    result = run(
        POLICIES, world("beta"), jb.Horizon(40), instance_names=names, replicates=[7, 3], marks=4
    )
    regret = result.regret
    assert regret.dims == ("setting", "instance", "replicate", "mark")
    assert regret.sel(instance="b", replicate=3, mark=1.0).sizes == {"setting": 3}
    assert regret.coords["setting"].values.tolist() == [
        "OmegaUCB(rho=0.25)",
        "OmegaUCB(rho=1)",
        "BudgetedThompson",
    ]
    assert jax.tree.leaves(result.about.key) == jax.random.key_data(KEY).tolist()
    later = dataclasses.replace(result.about, seconds=9.0, when="2030", processor="another")
    assert later == result.about != dataclasses.replace(later, key=(0, 9))
    assert "instance_ids=(0, 1, 2)" in repr(later) and "replicate_ids" not in repr(later)


@jb.pytree
class Telling(jb.policies.OmegaUCB):
    """Tells its rounds in the end, and for each arm whether it was pulled."""

    def summary(self, state: Any) -> dict[str, jax.Array]:
        flags = {"seen": state.pulls.sum(), "known": state.pulls > 0}
        return {**super().summary(state), **flags}


@pytest.mark.integration
def test_what_one_policy_tells_in_the_end_is_kept_beside_others() -> None:
    alone = run([Telling(rho=1.0)], world("beta"), jb.Horizon(40))
    both = run([jb.policies.BudgetedThompson(), Telling(rho=1.0)], world("beta"), jb.Horizon(40))
    assert set(both.final) == set(alone.final) and {"seen", "known", "pulls"} <= set(both.final)
    for name, x in alone.final.items():
        assert np.array_equal(both.final[name][1:], x), name
        assert both.final[name].dtype == (x.dtype if name == "pulls" else np.float64), name
    assert np.isnan(both.final["seen"][0]).all() and np.isnan(both.final["known"][0]).all()
    assert_same_results(both, both, "with NaN where a policy does not tell")


def test_the_regret_of_several_budgets_counts_what_is_left_of_them() -> None:
    """Two certain arms, the second resource ends the run: half of the first is left."""
    arms = FiniteArms.bernoulli([[1.0, 0.5]], [[[0.5, 1.0], [0.5, 1.0]]])
    constraint = jb.TotalBudget([10.0, 10.0], last_pull="counts")
    policy = jb.policies.FixedSplit([0.0, 1.0])
    result = jb.simulate(policy, arms, constraint, key=KEY, replicates=3, marks=2)
    earned = result.ledger["expected_reward"][0, 0] / ticks.ONE
    possible = float(result.best_rate[0]) * 10.0 * np.array(result.marks)
    regret = result.budget_regret(10.0).values[0, 0]
    assert possible[-1] == 10.0 and np.allclose(regret, possible - earned, atol=1e-12)
    assert (result.regret.values[0, 0, :, -1] == 5.0).all() and (earned[:, -1] == 5.0).all()
