"""Arms that close: the most that could be bought, a plain loop, and all keep to what is open."""

from __future__ import annotations

import dataclasses
import warnings
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats as laws

import jaxbandits as jb
from jaxbandits import policies
from jaxbandits.core.protocol import Constraint, Policy, Status
from jaxbandits.environments import FiniteArms, Stocked
from jaxbandits.environments.closing import bought
from jaxbandits.policies.base import Plan
from jaxbandits.testing import check_environment
from tests.contract import test_policies as contract
from tests.contract.worlds import (
    ARMS,
    INSTANCES,
    KEY,
    as_a,
    bernoulli,
    several_resources,
    with_its_own,
)
from tests.policies.drawn import outcomes

# --- what could be bought


def exhaustive(
    reward: np.ndarray, cost: np.ndarray, budget: int, caps: tuple[int, ...]
) -> tuple[float, float]:
    """(the most any policy earns on average, what the order by ratio earns), costs 0 or 1."""

    @cache
    def value(money: int, stock: tuple[int, ...], greedy: bool) -> float:
        open_ = [k for k, m in enumerate(stock) if m > 0]
        if money == 0 or not open_:
            return 0.0
        tried = [max(open_, key=lambda k: reward[k] / cost[k])] if greedy else open_
        after = {k: (*stock[:k], stock[k] - 1, *stock[k + 1 :]) for k in tried}
        return max(
            reward[k]
            + cost[k] * value(money - 1, after[k], greedy)
            + (1 - cost[k]) * value(money, after[k], greedy)
            for k in tried
        )

    return value(budget, caps, False), value(budget, caps, True)


def test_the_most_that_can_be_bought() -> None:
    reward, cost = np.array([0.6, 0.5, 0.3]), np.array([0.5, 0.25, 0.6])
    caps = np.array([60, 80, np.inf])
    bundles = bought(reward, cost, caps, np.array([10.0, 35.0, 100.0]))
    np.testing.assert_allclose(bundles, [(20, 2), (58, 1.2), (101, 0.5)], rtol=1e-12)
    # the second arm shut for 100 rounds, then all open for 60
    parts = np.array([100.0, 60.0]), np.array([[True, False, True], [True, True, True]])
    np.testing.assert_allclose(
        bought(reward, cost, np.full(3, np.inf), np.array([40.0]), parts), [(60.0, 1.2)], rtol=1e-9
    )
    # open for ever, the second arm shut: a part without an end is no limit
    endless = np.array([np.inf]), np.array([[True, False, True]])
    np.testing.assert_allclose(
        bought(reward, cost, np.full(3, np.inf), np.array([30.0]), endless),
        [(36.0, 1.2)],
        rtol=1e-12,
    )
    assert exhaustive(np.array([0.9, 0.4]), np.array([0.8, 0.5]), 3, (2, 10))[0] == pytest.approx(
        2.914375, abs=1e-12
    )
    three = np.array([0.9, 0.4, 0.2]), np.array([0.8, 0.5, 0.1])
    assert exhaustive(*three, 4, (2, 3, 5))[0] == pytest.approx(3.762067, abs=1e-6)
    assert bought(*three, np.array([2.0, 3.0, 5.0]), np.array([4.0]))[0, 0] == pytest.approx(4.0)


def test_an_instance_may_have_fewer_arms() -> None:
    present = [[True, True, True], [True, True, False]]
    tables = [[0.6, 0.5, 0.3]] * 2, [[0.5, 0.25, 0.6]] * 2
    arms = FiniteArms.bernoulli(*tables, present=present)
    stock = Stocked.of(arms, pulls=[4, 12, 9]), 6.0, [10.9, 8.4]
    parts = [[True, False, True], [False, True, True]]
    limit, end = jb.TotalBudget(10.0, last_pull="counts"), np.full((2, 1), 10.0)
    for world, *most in (stock, (Stocked.of(arms, shown=parts, at=[6]), 20.0, 20.0)):
        known = world.benchmarks(limit.prepare(world), end)
        for name, value in zip(("fixed", "moving"), most, strict=True):
            at_end = known[name](np.arange(2), end)[:, 0]
            np.testing.assert_allclose(at_end, value, rtol=2e-7)  # means are whole ticks


def test_a_capped_world_pays_what_an_exhaustive_search_says() -> None:
    """60 tiny instances: no policy earns more, and who knows the ratios as much."""
    rng, instances, replicates = np.random.default_rng(49), 60, 400
    reward, cost = rng.uniform(0.05, 0.95, (2, instances, 3))
    caps, budget = rng.integers(0, 6, (instances, 3)), rng.integers(1, 5, instances)
    arms = FiniteArms.bernoulli(reward, cost)
    reward, cost = arms.values()
    world = Stocked.of(arms, pulls=caps)
    oracle = policies.BestRatioOracle(reward[None], cost[None])
    constraint = jb.TotalBudget(budget.astype(float), last_pull="counts")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # many lanes end as closed
        result = jb.simulate(oracle, world, constraint, key=KEY, replicates=replicates, marks=1)
    assert (result.pulls.values <= caps[None, :, None]).all()
    earned = result.reward.values[0, ..., 0]
    searched = [
        exhaustive(*x)
        for x in zip(reward, cost, budget.tolist(), map(tuple, caps.tolist()), strict=True)
    ]
    best, greedy = np.array(searched).T
    np.testing.assert_allclose(greedy, best, rtol=1e-12)
    error = np.sqrt(earned.var(axis=1, ddof=1) / replicates)
    uncertain = error > 0
    z = (earned.mean(axis=1) - best)[uncertain] / error[uncertain]
    assert np.abs(z).max() < laws.norm.isf(0.005 / z.size)
    np.testing.assert_allclose(earned.mean(axis=1)[~uncertain], best[~uncertain], atol=1e-12)
    value = [world.most(constraint, i) for i in range(instances)]
    assert (best <= np.array(value) + 1e-12).all()


# --- a loop of one's own


def by_hand(
    table: Any,
    caps: np.ndarray,
    purse: np.ndarray,
    schedule: np.ndarray,
    at: np.ndarray,
    rounds: int,
    forfeits: bool,
) -> tuple[np.ndarray, float, float, int]:
    """UCB1 among the open arms: (pulls, reward, spent, rounds that passed), in float64."""
    arms = caps.size
    n, r, spent = np.zeros(arms, int), np.zeros(arms), np.zeros(arms)
    passed = 0
    for t in range(1, rounds + 1):
        open_ = (n < caps) & (spent < purse) & schedule[np.searchsorted(at, t, side="right")]
        if not open_.any():
            passed += 1
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.where(n > 0, r / n + np.sqrt(2 * np.log(t) / n), np.inf)
        k = int(np.argmax(np.where(open_, score, -np.inf)))
        reward, cost = table[0][k, n[k]], table[1][k, n[k]]
        if forfeits and spent[k] + cost > purse[k]:
            reward, cost = 0.0, purse[k] - spent[k]
        n[k] += 1
        r[k] += reward
        spent[k] += cost
    return n, float(r.sum()), float(spent.sum()), passed


@pytest.mark.parametrize("last_pull", ["counts", "forfeits"])
@pytest.mark.quick_rows("forfeits")
def test_a_loop_of_ones_own_plays_the_same(last_pull: str) -> None:
    """Stock, money and schedule at once, 3,000 rounds: the same pulls, the same money to the tick."""
    rng, rounds = np.random.default_rng(3), 3000
    arms = FiniteArms.beta(*(0.5 + 3 * rng.random((4, 1, 5))))
    caps = np.array([300, 2000, np.inf, 150, 700])
    purse = np.array([np.inf, 90.5, 200.25, np.inf, 60.0])
    schedule = np.array([[1, 1, 1, 0, 1], [0, 1, 0, 1, 1], [0, 0, 0, 0, 0], [1, 1, 1, 1, 0]], bool)
    at = np.array([400, 900, 960])
    world = Stocked.of(arms, pulls=caps, money=purse, shown=schedule, at=at, last_pull=last_pull)
    result = jb.simulate(
        policies.UCB1(),
        world,
        jb.Horizon(rounds),
        key=KEY,
        replicates=3,
        marks=[0.5, 1],
        record=("pulls",),
    )
    for replicate, table in enumerate(zip(*outcomes(arms, 3, rounds), strict=True)):
        n, reward, spent, passed = by_hand(
            table, caps, purse, schedule, at, rounds, last_pull == "forfeits"
        )
        assert result.pulls.values[0, 0, replicate].tolist() == n.tolist()
        assert float(result.reward.values[0, 0, replicate, -1]) == pytest.approx(reward, abs=1e-9)
        assert float(result.spent.values[0, 0, replicate, -1]) == pytest.approx(spent, abs=1e-9)
        rounds_played = int(result.rounds.values[0, 0, replicate, -1])
        closed = result.status.values[0, 0, replicate] == "closed"
        assert (
            (rounds_played - n.sum() <= passed) if closed else (rounds_played - n.sum() == passed)
        )
        assert passed >= 60, "nothing ever waited"
    assert (result.recorded().values.sum(axis=-1) <= result.rounds.values).all()


# --- policies keep to open arms

SHOWN = np.ones((INSTANCES, 5, ARMS), bool)
SHOWN[:, 1] = [True, False, True, False]
SHOWN[:, 2] = False
SHOWN[:, 3] = [False, True, False, True]
STOCK = np.array([[12, 40, 7, 30], [25, 6, 14, 40], [9, 30, 30, 11]])


def closing(name: str) -> jb.Environment:
    """The contract's worlds with arms that sell out, close for some rounds, or all close."""
    inner = several_resources() if name.startswith("several") else bernoulli()
    world: jb.Environment = Stocked.of(inner, pulls=STOCK, shown=SHOWN, at=[16, 30, 36, 50])
    if name == "delayed":
        law = jb.environments.TableDelay.geometric(3.0, lost=0.05, instances=INSTANCES)
        return jb.environments.Delayed(
            world, law, room=32, arrivals=2, patience=12, groups=(None, (2, 3))
        )
    return jb.environments.WithNullArm(world) if "null_arm" in name else world


# That each policy leaves closed arms alone is the kit's to say (leaves_closed_arms_alone); here one
# of each kind of world and of choice meets them in an engine.
ROWS: list[tuple[Policy, str, Constraint]] = [
    (policies.OmegaUCB(), "bernoulli", contract.FORFEITS),
    (policies.EpsilonFirst(epsilon=0.25), "bernoulli", contract.FORFEITS),
    (policies.FixedSplit([0.0, 1.0, 0.0, 0.0]), "bernoulli", contract.COUNTS),
    (policies.SampledArms(policies.RCB(), arms=1), "bernoulli", contract.COUNTS),
    (policies.ArmIncreasing(policies.RCB(), beta=0.25), "bernoulli", contract.COUNTS),
    (policies.PrimalDualTwoPhase(c=0.6, horizon=80, a=0.02), "null_arm", contract.AVERAGE),
    (policies.UCBBwK(), "several_resources", contract.TWO_AND_TIME),
    contract.SLOW,
]


@pytest.mark.parametrize(
    ("policy", "name", "constraint"), ROWS, ids=[contract.policy_name(row[0]) for row in ROWS]
)
@pytest.mark.quick_rows("EpsilonFirst")
@pytest.mark.sample_rows("EpsilonFirst", "PrimalDualTwoPhase", "ArmIncreasing", "InFlight")
def test_no_policy_pulls_a_closed_arm(policy: Policy, name: str, constraint: Constraint) -> None:
    """No lane is invalid, no stock is oversold, and arms closed for good do not end what can go on."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*lanes ended with status closed")
        result = jb.simulate(
            policy, closing(name), constraint, key=KEY, replicates=8, marks=2, engine="scan"
        )
    endings = set(np.unique(result.status.values).tolist())
    assert endings <= {"exhausted", "horizon", "closed"}, endings
    arms = result.pulls.values[..., :ARMS]
    assert (arms <= STOCK[None, :, None]).all()
    assert (arms.sum(axis=-1) > 0).all()


@jb.pytree
class Stubborn(Plan):
    """The first arm, whatever is open."""

    def select(self, state: Any, key: Any, view: Any) -> Any:
        return state, jnp.int32(0)


@jb.pytree
class Closed(jb.environments.RequestTable):
    """Says itself who is open."""

    def open(self, state: Any, round: Any) -> Any:
        return round < jnp.full(self.spec.arms, 3)


def test_a_pull_of_a_closed_arm_ends_the_lane() -> None:
    world = Stocked.of(FiniteArms.bernoulli([0.5, 0.4], [0.5, 0.4]), pulls=[5, 9])
    with pytest.warns(UserWarning, match="4 of 4 lanes ended with status invalid"):
        result = jb.simulate(Stubborn(), world, jb.Horizon(20), key=KEY, replicates=4, marks=1)
    assert (result.rounds.values == 5).all()


def test_a_table_of_requests_ends_with_its_last_one() -> None:
    """Which arm is right is another one in each row, so that those of a run share three requests."""
    order = jb.environments.ShuffledRows()
    table = jb.environments.RequestTable.of([[1, 0], [0, 1], [1, 0]], [[0.5, 0.25]] * 3, order)
    world = Stocked.of(table, pulls=[9, 2], shown=[[True, True], [False, False]], at=[4])
    budget, alone = jb.TotalBudget(9.0, last_pull="counts"), policies.FixedSplit(np.eye(2))
    result = jb.simulate(alone, world, budget, key=KEY, replicates=4, marks=1)
    assert (result.ended == Status.CLOSED).all()
    assert result.pulls.values[:, 0].tolist() == [[[3, 0]] * 4, [[1, 2]] * 4]
    assert (result.reward.values[0] == 2).all() and result.about.engine == "scan"
    with pytest.raises(jb.InputError, match="Stocked does not define its outcomes by address"):
        jb.simulate(policies.MUCB(), world, budget, key=KEY, engine="leap")
    leaves = (table.reward, table.cost, table.mean_reward, table.mean_cost)
    with pytest.raises(jb.InputError, match="'Closed' given; it must be arms that never close"):
        Stocked.of(Closed(*leaves), pulls=3)


def test_an_open_request_has_taken_its_stock() -> None:
    """With nothing told for 50 rounds, no more than the stock is requested; the rest is skipped."""
    world = Stocked.of(FiniteArms.bernoulli([0.5, 0.4], [0.5, 0.4]), pulls=[7, 9])
    late = jb.environments.Delayed(world, jb.environments.FixedDelay(50), room=32)
    result = jb.simulate(policies.InFlight(policies.UCB1()), late, jb.Horizon(40), key=KEY, marks=1)
    assert result.pulls.values.ravel().tolist() == [7, 9]
    assert int(result.count("skips").values.item()) == 24
    assert result.status.values.item() == "horizon"


@pytest.mark.integration
def test_the_kit_knows_what_is_closed() -> None:
    """Right worlds pass; an ``open`` that says too much, or opens earlier, does not."""
    arms = FiniteArms.bernoulli([[0.5, 0.4], [0.3, 0.8]], [[0.5, 0.4], [0.7, 0.2]])
    schedule = np.array([[True, True], [False, False], [False, True]])
    right = Stocked.of(
        arms, pulls=[[40, 90], [0, 70]], money=[np.inf, 30.0], shown=schedule, at=[20, 40]
    )
    check_environment(right, pulls=256)

    def sells_on(self: Any, state: Any, action: Any, key: Any, round: Any) -> Any:
        return self.arms.pull(state, action, key, round)

    def never(self: Any, state: Any, round: Any) -> Any:
        return jnp.int32(2**31 - 1)

    for brought, message in (
        ({"pull": sells_on}, "in round 20 .* arm 0 is closed, and"),
        ({"opens_next": never}, "in round 20 `opens_next` says never"),
    ):
        wrong = as_a(with_its_own(Stocked, **brought), dataclasses.replace(right, purse=None))
        with pytest.raises(AssertionError, match=message):
            check_environment(wrong, pulls=256)
