"""Ranking by regret is ranking by reward, and nobody is below 0; or ``regret`` says so."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import environments as e
from jaxbandits import policies as p
from jaxbandits.environments import FiniteArms, WithNullArm

from .worlds import KEY, world

COUNTS = jb.TotalBudget(40.0, last_pull="counts")
FORFEITS = jb.TotalBudget(40.0, last_pull="forfeits")
HORIZON = jb.Horizon(160)
AVERAGE = jb.AverageCost(c=0.4, rounds=160)
TWO = jb.TotalBudget([40.0, 30.0], last_pull="counts")
TWO_AND_TIME = jb.TotalBudget([40.0, 30.0], last_pull="forfeits", rounds=120)
PACED = jb.TotalBudget([60.0], last_pull="counts", rounds=200)
RENEWING = jb.Renewing(amount=[5.0, 3.0], every=[2, 4], requests=[8, 12, 0, 20, 9, 11, 5, 15])

ALONE = [p.FixedSplit([[[1.0, 0, 0, 0]], [[0, 0, 1.0, 0]]])]
# Benchmarks are what is tried: one who learns and two who do not are enough.
LEARNERS = [p.OmegaUCB(rho=0.25), *ALONE]
KNAPSACK = [p.PrimalDualBwK(), *ALONE]
PACERS = [p.SUAK(c=0.4), p.Pacer(c=0.4)]
SEEN = [p.LinUCB(), p.LinUCB(price=0.5), *ALONE]
BY_CONTEXT = [p.LinUCB(), p.LinUCB(price=3.0), *ALONE]


@jb.pytree
class Set(jb.Policy):
    """The same arms in every round."""

    arms: Any = jb.leaf(core=1, integer=True)
    plays = e.FiniteSpec

    def init(self, spec: Any) -> Any:
        return jnp.int32(0)

    def blank_action(self, spec: Any) -> jax.Array:
        return jnp.zeros(np.shape(self.arms)[-1:], jnp.int32)

    def update(self, state: Any, key: jax.Array, observation: Any) -> Any:
        return state

    def select(self, state: Any, key: jax.Array, view: Any) -> Any:
        return state, self.arms


SETS = [Set([0, 2, 3]), Set([0, 1, 2]), Set([1, 2, 3])]


def arms() -> FiniteArms:
    """One instance, all arms there."""
    return FiniteArms.bernoulli([0.7, 0.2, 0.5, 0.6], [0.5, 0.25, 0.2, 0.8])


def two_costs() -> FiniteArms:
    cost = [[0.5, 0.1], [0.25, 0.6], [0.2, 0.3], [0.8, 0.2]]
    return FiniteArms.bernoulli([[0.7, 0.2, 0.5, 0.6]], [cost])


def by_features(order: Any = None, budgets: int = 0) -> e.RequestTable:
    """Four arms, each the best for one value of the feature; two rows of each value."""
    rng, kind = np.random.default_rng(3), np.repeat(np.arange(4), 2)
    reward = 0.2 * rng.random((8, 4)) + 0.8 * (kind[:, None] == np.arange(4))
    cost = 0.1 + 0.6 * rng.random((8, 4))
    return e.RequestTable.of(reward, cost, order, features=np.eye(4)[kind])


def stocked(**limits: Any) -> e.Stocked:
    return e.Stocked.of(arms(), **limits)


def certain(cost: float) -> FiniteArms:
    return FiniteArms.empirical([[([r, 0.0], [cost, cost]) for r in (0.9, 0.2, 0.5, 0.6)]])


CLOSES = {"shown": [[True] * 4, [False] * 4], "at": [61]}
ROWS: dict[str, tuple[Any, list[Any], Any]] = {
    "money": (lambda: world("bernoulli"), LEARNERS, COUNTS),
    "money, forfeits": (lambda: world("beta"), LEARNERS, FORFEITS),
    "rounds": (lambda: world("empirical"), LEARNERS, HORIZON),
    "one cost in a list and rounds": (
        lambda: FiniteArms.bernoulli([[0.7, 0.2, 0.5, 0.6]], [[[0.5], [0.25], [0.2], [0.8]]]),
        KNAPSACK,
        PACED,
    ),
    "two budgets": (two_costs, KNAPSACK, TWO),
    "two budgets and rounds": (two_costs, KNAPSACK, TWO_AND_TIME),
    "average cost": (lambda: WithNullArm(arms()), PACERS, AVERAGE),
    "renewing": (lambda: world("delayed"), [p.InFlight(p.PricePacer(budgets=2))], RENEWING),
    "changes, rounds": (lambda: world("piecewise"), [p.UCB1(), *ALONE], HORIZON),
    "changes, money": (lambda: world("piecewise"), [p.OmegaUCB(), *ALONE], COUNTS),
    "contexts, rounds": (
        lambda: world("contexts_by_row"),
        [p.LinUCB(shared=True), *ALONE],
        HORIZON,
    ),
    "contexts, money and rounds": (
        lambda: e.ContextualArms.linear(
            [[0.5, 0.3, 0.0], [0.3, 0.0, 0.0], [0.1, 0.0, 0.1], [0.0, 0.0, 0.0]],
            [[[0.6, 0.0, 0.0]], [[0.1, 0.0, 0.0]], [[0.3, 0.0, 0.0]], [[0.1, 0.0, 0.0]]],
            e.Rows.of([[1.0, 1.0], [-1.0, 1.0]]),
            resources=1,
        ),
        BY_CONTEXT,
        PACED,
    ),
    "a table": (lambda: world("requests_shuffled"), [p.UCB1(), *ALONE], HORIZON),
    "a table with features": (by_features, SEEN, HORIZON),
    "a table with features, money": (by_features, SEEN, COUNTS),
    "a table with features, in order": (
        lambda: by_features(e.RowsInOrder()),
        SEEN,
        HORIZON,
    ),
    "sold out, money": (lambda: stocked(pulls=[20, 30, 40, 10]), LEARNERS, COUNTS),
    "sold out, rounds": (lambda: stocked(pulls=[20, 30, 40, 10]), LEARNERS, HORIZON),
    "purses, rounds": (lambda: stocked(money=[1.5, 3.0, 0.5, 2.0]), LEARNERS, HORIZON),
    "purses that forfeit": (
        lambda: stocked(money=[1.5, 3.0, 0.5, 2.0], last_pull="forfeits"),
        LEARNERS,
        HORIZON,
    ),
    "purses, certain costs": (
        lambda: e.Stocked.of(certain(0.3), money=[1.0, 2.0, 3.0, 0.2]),
        LEARNERS,
        HORIZON,
    ),
    "purses, money": (lambda: stocked(money=[1.5, 3.0, 9.0, 20.0]), LEARNERS, FORFEITS),
    "closes for good, money": (lambda: stocked(**CLOSES), LEARNERS, COUNTS),
    "sets, rounds": (arms, SETS, HORIZON),
    "sets, money": (arms, [*SETS, p.MRCB(pulls=2), p.OmegaUCB()], COUNTS),
    "sets, money and rounds": (two_costs, SETS, TWO_AND_TIME),
    "a reservoir": (lambda: world("reservoir"), [p.SampledArms(p.RCB(), arms=3)], FORFEITS),
}
TOLD: dict[str, tuple[Any, list[Any], Any]] = {
    "sets of two sizes": (arms, [SETS[0], p.UCB1()], HORIZON),
    "stock under an average cost": (
        lambda: WithNullArm(stocked(pulls=[20, 30, 40, 10])),
        PACERS,
        AVERAGE,
    ),
    "stock by contexts": (
        lambda: e.Stocked.of(by_features(), pulls=[20, 30, 40, 10]),
        SEEN,
        HORIZON,
    ),
    "changing contexts and money": (
        lambda: e.Piecewise.of([by_features(), by_features()], at=[50]),
        SEEN,
        COUNTS,
    ),
    "sets in a world that changes": (
        lambda: e.Piecewise.of([arms(), arms()], at=[50]),
        SETS,
        HORIZON,
    ),
}


def played(row: tuple[Any, list[Any], Any]) -> tuple[jb.Result, np.ndarray, list[str]]:
    """A result, its last regrets ``[setting, instance, replicate]``, and what was said of them."""
    make, policies, constraint = row
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = jb.simulate(policies, make(), constraint, key=KEY, replicates=64, marks=3)
        regret = result.regret.values[..., -1]
    return result, regret, [str(w.message) for w in caught if "rank by" in str(w.message)]


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.quick_rows("contexts, money and rounds", "a table with features", "purses, rounds")
@pytest.mark.sample_rows(
    "money, f",
    "two budgets and",
    "average",
    "changes, m",
    "contexts, m",
    "a table w",
    "sold out, m",
    "purses, r",
    "sets, m",
)
def test_regret_ranks_as_reward_does(name: str) -> None:
    result, regret, told = played(ROWS[name])
    assert not told
    runs = np.sqrt(regret.shape[2])
    # What one round may earn, and cost where money is the clock; realised rewards are noisy.
    constraint = ROWS[name][2]
    sets = 3 if name.startswith("sets") else 1
    beyond = 0.0
    if not isinstance(constraint, (jb.Horizon, jb.AverageCost, jb.Renewing)):
        beyond = sets * (1 + np.nanmax(result.best_rate))
    possible = regret + result.reward.values[..., -1]
    apart = possible - possible[:1]
    error = apart.std(axis=2, ddof=1) / runs
    assert (np.abs(apart.mean(axis=2)) <= beyond + 5 * error + 1e-6).all()
    error = regret.std(axis=2, ddof=1) / runs
    assert (regret.mean(axis=2) >= -beyond - 5 * error - 1e-6).all()
    # and it is no bound that says nothing: what could be had is not far above what the best had
    if name != "a reservoir":  # all of whose arms may be poor
        best = result.reward.values[..., -1].mean(axis=2).max(axis=0)
        assert (possible.mean(axis=2).max(axis=0) <= 2.5 * best + 3).all()


@pytest.mark.parametrize("name", TOLD)
@pytest.mark.quick_rows("sets of two sizes")
@pytest.mark.sample_rows("sets of two sizes", "stock by contexts")
def test_what_regret_cannot_rank_is_told(name: str) -> None:
    _, _, told = played(TOLD[name])
    assert told and all("result.reward" in line for line in told)


# --- Worlds of one's own whose means move


def moving_world(shift: Any, **methods: Any) -> jb.Environment:
    """Two arms that state [.5, .4]; ``shift(state, round, key)`` is added to the first's mean."""

    @jb.pytree
    class Moving(jb.Environment):
        mean: Any = jb.leaf()

        @property
        def spec(self) -> Any:
            return e.FiniteSpec(2)

        def start(self) -> Any:
            return jnp.int32(0)

        def pull(self, state: Any, action: Any, key: Any, round: Any) -> Any:
            reward, cost = shift(state, round, key)
            one = jnp.int32(2**24)
            first = (action == 0).astype(jnp.int32)
            mean = (self.mean[action] * one).astype(jnp.int32) + first * reward
            paid = one // 2 + first * cost
            outcome = jb.core.Outcome(mean, paid, mean, paid, {}, (action >= 0) & (action < 2))
            feedback = jb.core.protocol.Feedback(mean, paid)
            return state + first, outcome, feedback, jnp.bool_(False)

        def values(self) -> Any:
            return np.array([[0.5, 0.4]]), np.array([[0.5, 0.5]])

    for name, method in methods.items():
        setattr(Moving, name, method)
    return Moving(np.array([[0.5, 0.4]], np.float32))


QUARTER = jnp.int32(2**22)
SHIFTS: dict[str, Any] = {
    "by the round": lambda state, round, key: (-QUARTER * (round > 20), 0),
    "by pulls of its own": lambda state, round, key: (-QUARTER * (state > 5), 0),
    "costs alone": lambda state, round, key: (0, QUARTER * (round % 2)),
    "once, by chance of the key": lambda state, round, key: (
        -QUARTER * (round == 3 + (jax.random.key_data(key)[0] % 30).astype(jnp.int32)),
        0,
    ),
}


@pytest.mark.parametrize("name", SHIFTS)
@pytest.mark.quick_rows("by the round", "costs alone")
def test_means_that_move_are_told(name: str) -> None:
    with pytest.warns(UserWarning, match=r"Moving\.values does not give .* rank by result\.reward"):
        result = jb.simulate(
            p.UCB1(), moving_world(SHIFTS[name]), jb.Horizon(60), key=KEY, replicates=3, marks=1
        )
    assert "event:apart" not in result.ledger and result.about.environment == "Moving"


def test_means_that_stand_are_not_told() -> None:
    still = moving_world(lambda state, round, key: (0, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = jb.simulate(p.UCB1(), still, jb.Horizon(60), key=KEY, replicates=3, marks=1)
        inside = jb.simulate(
            p.UCB1(), WithNullArm(still), jb.Horizon(60), key=KEY, replicates=3, marks=1
        )
    assert result.ledger["reward"].tolist() == inside.ledger["reward"].tolist()


@pytest.mark.parametrize(("runs", "told"), [(40, True), (5, False)])
def test_few_runs_tell_of_no_difference(runs: int, told: bool) -> None:
    make, policies, constraint = TOLD["sets of two sizes"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jb.simulate(policies, make(), constraint, key=KEY, replicates=runs, marks=1).regret  # noqa: B018
    assert any("differs by" in str(w.message) for w in caught) == told
