"""Logs that answer: walks beside loops and worlds, estimators beside formulas, coverage."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import policies as p
from jaxbandits.environments import ContextualArms, FiniteArms, Gaussian

KEY = jax.random.key(67)
REWARD, COST = np.array([0.7, 0.5, 0.2]), np.array([0.6, 0.3, 0.5])
BUDGET = jb.TotalBudget(30.0, last_pull="counts")


def drawn(
    rng: np.random.Generator, n: int, chance: np.ndarray | None = None
) -> tuple[np.ndarray, ...]:
    """Arms by these probabilities, and Bernoulli rewards and costs."""
    arm = rng.choice(3, n, p=chance)
    return arm, *((rng.random(n) < mean[arm]).astype(float) for mean in (REWARD, COST))


# --- Walks


@jb.pytree
class Counting(jb.Policy):
    """Arm by what was earned and paid so far: a plain loop can follow it."""

    plays = jb.environments.FiniteSpec

    def init(self, spec: Any) -> jax.Array:
        return jnp.int32(0)

    def update(self, state: jax.Array, key: jax.Array, observation: Any) -> jax.Array:
        reward, cost = (x >> 24 for x in observation.feedback)
        return state + reward + 2 * cost

    def select(
        self, state: jax.Array, key: jax.Array, view: jb.View
    ) -> tuple[jax.Array, jax.Array]:
        return state, ((state + view.round) % 3).astype(jnp.int32)


def walked(log: jb.Log, budget: float) -> tuple[list[tuple[float, float, int, int]], int]:
    """A plain loop over the rows as they stand: reward, money and rounds at the end, rows met."""
    state, reward, spent, rounds = 0, 0.0, 0.0, 0
    for row in range(len(log)):
        if log.action[row] != (state + rounds + 1) % 3:
            continue
        rounds += 1
        state += int(log.reward[row]) + 2 * int(log.cost[row])
        reward, spent = reward + log.reward[row], spent + log.cost[row]
        if spent >= budget:
            return [(reward, spent, rounds, row + 1)], rounds
    return [(reward, spent, rounds, len(log))], rounds


@pytest.mark.parametrize("parts", [1, 4])
def test_a_walk_is_a_plain_loop(parts: int) -> None:
    arm, reward, cost = drawn(np.random.default_rng(1), 1200)
    log = jb.Log.of(arm, reward, cost, propensity="uniform", arms=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = jb.replay(
            Counting(), log, jb.TotalBudget(20.0, last_pull="counts"), key=KEY, parts=parts
        )
    seed = np.asarray(jax.random.key_data(KEY)).tolist()
    generator = np.random.default_rng(seed)
    order = generator.permutation(1200)
    length = 1200 // parts
    for part in range(parts):
        rows = order[part * length : (part + 1) * length]
        some = jb.Log.of(arm[rows], reward[rows], cost[rows], propensity="uniform", arms=3)
        (must, *_), _ = walked(some, 20.0)
        at: Any = {"setting": 0, "instance": 0, "replicate": part}
        got = (
            result.reward.isel(at).values[-1],
            result.spent.isel(at).values[-1],
            result.rounds.isel(at).values[-1],
            result.final["rows"][0, 0, part].item(),
        )
        assert got == must
        # who wrote the log: all rows in this order, until its money is spent
        spent = np.cumsum(cost[rows])
        ends = int(np.argmax(spent >= 20.0)) + 1
        assert result.rounds.isel(at | {"setting": 1}).values[-1] == ends
        assert result.reward.isel(at | {"setting": 1}).values[-1] == reward[rows][:ends].sum()


def test_marks_of_a_walk_are_those_of_its_prefixes() -> None:
    """A lane does not wait at its marks: every row after one counts."""
    log = jb.Log.of(*drawn(np.random.default_rng(2), 3000), propensity="uniform", arms=3)
    whole = jb.replay(Counting(), log, jb.Horizon(100), key=KEY, parts=2, marks=[0.1, 0.5, 1.0])
    for at, rounds in enumerate((10, 50)):
        short = jb.replay(Counting(), log, jb.Horizon(rounds), key=KEY, parts=2, marks=1)
        assert (whole.reward.values[..., at] == short.reward.values[..., -1]).all()


def the_same(world: Any, policy: Any, limit: Any, log: jb.Log, runs: int = 2000) -> float:
    """z of the mean reward of walks beside that of runs in the world that wrote the log."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = jb.replay(policy, log, limit, key=KEY, marks=1)
        truth = jb.simulate(policy, world, limit, key=KEY, replicates=runs, marks=1)
    got = found.reward.values[0, 0, :, -1]
    must = truth.reward.values[0, 0, :, -1]
    assert (found.ended[0] != jb.Status.ROUND_CAP).all() and got.size >= 80
    error = np.hypot(got.std() / got.size**0.5, must.std() / must.size**0.5)
    return float((got.mean() - must.mean()) / error)


LEARNERS: dict[str, Any] = {
    "UCB1": p.UCB1(),
    "OmegaUCB": p.OmegaUCB(),
    "BudgetedThompson": p.BudgetedThompson(),
    "SoftElim": p.SoftElim(theta=0.5),
    "EpsilonFirst": p.EpsilonFirst(epsilon=0.25),
}


@pytest.mark.parametrize("limit", ["money", "rounds"])
@pytest.mark.parametrize("log", ["uniform", "lopsided"])
@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.quick_rows("OmegaUCB-lopsided-money", "UCB1-uniform-rounds")
@pytest.mark.sample_rows(
    "OmegaUCB-lopsided-money", "UCB1-uniform-rounds", "EpsilonFirst-uniform-m", "Budgeted"
)
def test_walks_have_the_law_of_the_world(name: str, log: str, limit: str) -> None:
    if (name, limit) == ("EpsilonFirst", "rounds"):
        pytest.skip("it plays budgets")
    chance = np.array([0.15, 0.25, 0.6]) if log == "lopsided" else np.full(3, 1 / 3)
    arm, reward, cost = drawn(np.random.default_rng(3), 120_000, chance)
    rows = jb.Log.of(arm, reward, cost, propensity=chance[arm], arms=3)
    bound = BUDGET if limit == "money" else jb.Horizon(80)
    z = the_same(FiniteArms.bernoulli(REWARD, COST), LEARNERS[name], bound, rows)
    assert abs(z) < 3, z  # 19 of them: 5 % of all such tables have one beyond


@pytest.mark.parametrize("policy", [p.LinUCB(), p.UCB1()], ids=["LinUCB", "UCB1"])
def test_walks_with_contexts_have_the_law_of_the_world(policy: jb.Policy) -> None:
    """The log's arms depend on the context: rows are dropped until they do not."""
    rng, n = np.random.default_rng(4), 200_000
    theta = np.array([[0.0, 1.5], [0.3, -1.5], [0.2, 0.0]])
    price = np.zeros((3, 2))
    world = ContextualArms.logistic(theta, price, Gaussian(1))
    context = np.clip(rng.normal(size=(n, 1)), -3, 3).astype(np.float32)
    x = np.column_stack([np.ones(n), context])
    taste = np.exp(0.8 * context * np.array([1.0, -1.0, 0.0]))
    chances = 0.4 / 3 + 0.6 * taste / taste.sum(axis=1, keepdims=True)
    arm = (rng.random((n, 1)) > chances.cumsum(axis=1)).sum(axis=1)

    def coins(theta: np.ndarray) -> np.ndarray:
        return (rng.random(n) < 1 / (1 + np.exp(-(x * theta[arm]).sum(1)))).astype(float)

    known = context if isinstance(policy, p.LinUCB) else None  # UCB1 would not look at it
    log = jb.Log.of(arm, coins(theta), coins(price), propensity=chances, context=known)
    z = the_same(world, policy, jb.Horizon(40), log, 4000)
    assert abs(z) < 3, z


# --- Rules that do not learn


def formulas(log: jb.Log, pi: np.ndarray, q: np.ndarray) -> dict[str, float]:
    """Row by row, as published."""
    ips = dr = weights = weighted = 0.0
    for i in range(len(log)):
        w = pi[i, log.action[i]] / log.propensity[i]
        ips, weights, weighted = ips + w * log.reward[i], weights + w, weighted + w * log.reward[i]
        dr += sum(pi[i, a] * q[i, a, 0] for a in range(3))
        dr += w * (log.reward[i] - q[i, log.action[i], 0])
    return {"ips": ips / len(log), "snips": weighted / weights, "dr": dr / len(log)}


def test_estimators_are_their_formulas() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        n = int(rng.integers(20, 200))
        chances = rng.dirichlet(np.ones(3) * 3, n)
        arm = np.array([rng.choice(3, p=row) for row in chances])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            log = jb.Log.of(arm, rng.random(n), rng.random(n), propensity=chances, arms=3)
        pi, q = rng.dirichlet(np.ones(3), n), rng.random((n, 3, 2))
        for name, must in formulas(log, pi, q).items():
            if not (np.bincount(arm, minlength=3) > 0).all():
                continue
            found = jb.off_policy(log, pi, jb.Horizon(10), method=name, model=q)
            assert abs(found.value - 10 * must) < 1e-12 * n
            assert abs(found.reward - must) < 1e-13 * n


def truth(pi: np.ndarray, limit: str) -> float:
    reward, cost = pi @ REWARD, pi @ COST
    return 30 * reward / cost if limit == "money" else 80 * reward


@pytest.mark.parametrize("method", ["ips", "snips", "dr"])
@pytest.mark.parametrize("limit", ["money", "rounds"])
@pytest.mark.quick_rows("money-snips")
@pytest.mark.sample_rows("money-snips", "money-ips", "rounds-dr")
def test_intervals_hold_their_level(method: str, limit: str) -> None:
    """400 logs: 95 % of intervals cover, give or take three binomial errors."""
    rng, covered, over = np.random.default_rng(6), 0, 0
    chance, pi = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.3, 0.1])
    bound = BUDGET if limit == "money" else jb.Horizon(80)
    gap = truth(pi, limit) - truth(chance, limit)
    for _ in range(400):
        arm, reward, cost = drawn(rng, 400, chance)
        log = jb.Log.of(arm, reward, cost, propensity=chance[arm], arms=3)
        found = jb.off_policy(log, pi, bound, method=method)
        covered += found.low <= truth(pi, limit) <= found.high
        over += found.over_log_low <= gap <= found.over_log_high
    error = 3 * (0.95 * 0.05 * 400) ** 0.5
    assert abs(covered - 380) < error and abs(over - 380) < error, (covered, over)


def test_a_model_of_contexts_makes_the_interval_shorter() -> None:
    rng = np.random.default_rng(7)
    context, arm = rng.normal(size=(4000, 2)).astype(np.float32), rng.integers(0, 3, 4000)
    mean = np.clip(0.5 + 0.2 * context @ np.array([[1, -1, 0], [0, 1, -1]]), 0, 1)
    reward = mean[np.arange(4000), arm]
    log = jb.Log.of(arm, reward, 0.5, propensity="uniform", context=context)
    pi = np.eye(3)[mean.argmax(axis=1)]
    dr, ips = (jb.off_policy(log, pi, jb.Horizon(100), method=m) for m in ("dr", "ips"))
    best = 100 * mean.max(axis=1).mean()
    assert dr.low < best < dr.high
    assert dr.high - dr.low < (ips.high - ips.low) / 2


def test_two_budgets_and_rounds_end_where_the_first_ends() -> None:
    log = jb.Log.of(
        [0, 1] * 50, [1.0, 0.5] * 50, [[0.5, 0.1], [0.1, 0.4]] * 50, propensity="uniform"
    )
    for budget, rounds, must in (
        ([10.0, 10.0], 100, 20.0),
        ([100.0, 1.0], 100, 10.0),
        ([100.0, 100.0], 30, 30.0),
    ):
        limit = jb.TotalBudget(budget, last_pull="counts", rounds=rounds)
        assert jb.off_policy(log, [1.0, 0.0], limit).value == pytest.approx(must, rel=1e-6)


# --- What is refused, and what is told


OK: dict[str, Any] = {
    "action": [0, 1, 0, 1],
    "reward": [0.5] * 4,
    "cost": [0.5] * 4,
    "propensity": "uniform",
}
REFUSED: dict[str, dict[str, Any]] = {
    "propensity: '0 in row 1' given; it must be in (0, 1]": {"propensity": [0.5, 0.0, 0.5, 0.5]},
    "propensity: 'a sum of 0.9 in row 0' given": {"propensity": [[0.5, 0.4]] * 4},
    "reward: 1.5 given": {"reward": [1.5] * 4},
    "action: 2 given; it must be one of the arms 0, 1": {"action": [0, 1, 2, 0], "arms": 2},
    "available: 'False for arm 1 in row 1'": {"available": [[True, False]] * 4},
    "action: [None] given; it must be the name": {"action": ["a", None, "b", "a"]},
    "arms: ['a'] given; it must be distinct names": {
        "action": ["a"] * 4,
        "arms": ["a", "a"],
    },
    "arms: 'ab' given; it must be K": {"action": ["a"] * 4, "arms": "ab"},
    "context: '[nan] in row 2' given": {"context": [[0.0], [1.0], [np.nan], [1.0]]},
    "context: 'shape (3, 2)' given": {"context": np.zeros((3, 2))},
    "reward: 'shape (3,)' given": {"reward": [0.5] * 3},
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_log_that_is_none_is_refused(message: str) -> None:
    with pytest.raises(jb.InputError) as error:
        jb.Log.of(**OK | REFUSED[message])
    assert str(error.value).startswith(message)


def test_what_was_never_tried_is_refused() -> None:
    with pytest.warns(UserWarning, match="fewer than their probabilities"):
        log = jb.Log.of(**OK | {"arms": 3})
    with pytest.raises(jb.InputError, match="no row of arm 2"):
        jb.replay(p.UCB1(), log, jb.Horizon(2), key=KEY)
    with pytest.raises(
        jb.InputError, match="'arm 2' given; it must be positive only for arms with rows"
    ):
        jb.off_policy(log, [0.5, 0.0, 0.5], jb.Horizon(2))


def test_wrong_propensities_are_seen() -> None:
    arm, reward, cost = drawn(np.random.default_rng(8), 3000, np.array([0.2, 0.3, 0.5]))
    with pytest.warns(UserWarning, match="propensity: rows of arm .* standard errors"):
        jb.Log.of(arm, reward, cost, propensity="uniform", arms=3)


def test_a_log_that_ends_first_says_so() -> None:
    log = jb.Log.of(*drawn(np.random.default_rng(9), 300), propensity="uniform", arms=3)
    with pytest.warns(UserWarning, match=r"rows ended before the budget in runs of UCB1 1 of 1"):
        result = jb.replay(
            p.UCB1(), log, jb.TotalBudget(200.0, last_pull="counts"), key=KEY, parts=1
        )
    assert result.ended[0].item() == jb.Status.ROUND_CAP
    assert result.final["rows"][0].item() == 300


def test_arms_that_are_not_there_are_not_taken() -> None:
    rng = np.random.default_rng(10)
    available = rng.random((6000, 3)) < 0.7
    available[~available.any(axis=1), 0] = True
    arm = np.array([rng.choice(np.flatnonzero(row)) for row in available])
    log = jb.Log.of(
        arm, (arm == 2).astype(float), 0.5, propensity="uniform", available=available, arms=3
    )
    assert (log.propensity == 1 / available.sum(axis=1)).all()
    result = jb.replay(p.UCB1(), log, jb.Horizon(50), key=KEY, marks=1)
    # the best arm is there in seven of ten rows, and is then learnt to be taken
    assert 20 < result.reward.values[0, 0, :, -1].mean() < 36
    taken = result.final["pulls"][0, 0].sum(axis=0)
    assert (taken > 0).all()
    for pair in itertools.combinations(range(3), 2):
        assert taken[list(pair)].sum() < taken.sum()


def test_runs_that_a_context_breaks_are_told() -> None:
    rng = np.random.default_rng(11)
    context = np.full((6000, 1), 1e30)
    log = jb.Log.of(
        rng.integers(0, 3, 6000), np.full(6000, 0.5), 0.5, propensity="uniform", context=context
    )
    with pytest.warns(UserWarning, match=r"replay: .* lanes ended with status invalid"):
        jb.replay(p.LinUCB(), log, jb.Horizon(50), key=KEY, marks=1)


def test_a_tiny_propensity_is_named() -> None:
    chance = np.full(60, 0.5)
    chance[7] = 1e-6
    context = np.zeros((60, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = jb.Log.of([0, 1] * 30, np.full(60, 0.5), 0.5, propensity=chance, context=context)
    with pytest.raises(jb.InputError, match=r"propensity: '1e-06, the least, which leaves"):
        jb.replay(p.UCB1(), log, jb.Horizon(5), key=KEY)


def test_few_rows_of_weight_and_other_constraints_are_told() -> None:
    log = jb.Log.of([0, 1] * 5, [True, False] * 5, 0.5, propensity="uniform")
    with pytest.warns(UserWarning, match=r"off_policy: these shares have the weight of 5\.0 rows"):
        jb.off_policy(log, [1.0, 0.0], jb.Horizon(5))
    with pytest.raises(jb.InputError, match=r"constraint: 26\.0 given; it must be a Horizon"):
        jb.off_policy(log, [1.0, 0.0], 26.0)
    with pytest.raises(jb.InputError, match=r"shares: .* given; it must be at least 0"):
        jb.off_policy(log, [np.nan, 1.0], jb.Horizon(5))
