"""The router experiment: programs against a solver, rules against loops, data, verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

import jaxbandits as jb
from experiments import router
from experiments.common import Options
from experiments.router import programs, rules
from experiments.router.data import Split
from jaxbandits.environments import RequestTable, RowsInOrder, WithNullArm

RNG = np.random.default_rng(36)
N = 60


def split(n: int = N, seed: int = 0) -> Split:
    """A cheap, a middle and a dear model; the dear one is right where the middle one is wrong."""
    rng = np.random.default_rng(seed)
    hard = rng.random(n)
    quality = np.stack([1 - hard, 0.9 - 0.2 * hard, 0.85 + 0.15 * hard], axis=1)
    dollars = np.array([1e-4, 1e-3, 1e-2]) * (0.5 + rng.random((n, 3)))
    return Split([f"{'very ' * int(10 * h)}hard" for h in hard], quality, dollars)


# --- Programs


@pytest.mark.parametrize("budget", [5e-5, 3e-4, 2e-3, 8e-3, 1.0])
def test_the_best_mixture_and_its_price_are_the_solvers(budget: float) -> None:
    for _ in range(20):
        quality, dollars = RNG.random(4), 0.01 * RNG.random(4) ** 2 + 1e-5
        lp = linprog(-quality, [dollars, np.ones(4)], [budget, 1])
        plan = programs.mixture(quality, dollars, budget)
        assert plan.quality == pytest.approx(-lp.fun, abs=1e-9)
        assert plan.shares[:-1] @ dollars <= budget * (
            1 + 1e-9
        ) and plan.shares.sum() == pytest.approx(1)
        more = linprog(-quality, [dollars, np.ones(4)], [budget * 1.001, 1])
        assert programs.frontier(quality, dollars, np.array([budget, 0.0])).tolist() == [
            plan.quality,
            0.0,
        ]
        # Concave: the right slope
        assert plan.price >= (lp.fun - more.fun) / (budget * 0.001) * (1 - 1e-6) - 1e-9


@pytest.mark.parametrize("budget", [5e-5, 5e-4, 2e-3, 2e-2])
def test_the_ceiling_is_the_value_of_the_program_over_requests(budget: float) -> None:
    requests = split()
    per_request = np.kron(np.eye(N), np.ones((1, 3)))
    limits = np.vstack([requests.dollars.ravel() / N, per_request])
    lp = linprog(-requests.quality.ravel() / N, limits, np.append(budget, np.ones(N)))
    assert programs.ceiling(requests.quality, requests.dollars, budget) == pytest.approx(
        -lp.fun, abs=1e-6
    )


def test_the_price_that_fits_pays_the_budget_and_no_smaller_one_does() -> None:
    requests = split()
    rows = np.arange(N)
    for budget in (3e-4, 2e-3):
        price = programs.fitting_price(requests.quality, requests.dollars, budget)
        paid = [
            requests.dollars[rows, programs.by_price(requests.quality, requests.dollars, p)].mean()
            for p in (price, 0.999 * price)
        ]
        assert paid[0] <= budget < paid[1] * 1.05 and paid[1] >= paid[0]
    assert programs.fitting_price(requests.quality, requests.dollars, 1.0) == 0.0
    assert programs.fitting_price(requests.quality, requests.dollars, 1e-6) == np.inf


# --- Rules, against plain loops over the same rows


def actions_of(policy: Any, reward: np.ndarray, cost: np.ndarray, c: float) -> list[int]:
    """What the simulator plays, row after row: costs of the three columns tell the arms apart."""
    rounds = len(reward)
    world = WithNullArm(RequestTable.of(reward, cost, RowsInOrder()))
    limit = jb.AverageCost(c=c, rounds=rounds)
    marks = np.arange(1, rounds + 1) / rounds
    result = jb.simulate(policy, world, limit, key=jax.random.key(0), marks=marks)
    paid = np.diff(result.ledger["spent"][0, 0, 0], prepend=0)
    cells = np.asarray(world.arms.cost)[0]  # type: ignore[attr-defined]
    return [int(np.flatnonzero(row == x)[0]) for row, x in zip(cells, paid, strict=True)]


def ucb(worth: np.ndarray, price: float) -> Any:
    def choose(pulls: np.ndarray, r: np.ndarray, c: np.ndarray, t: int, money: float) -> int:
        if (pulls == 0).any():
            return int(np.argmin(pulls))
        return int(
            np.argmax(worth * r / pulls - price * c / pulls + np.sqrt(2 * np.log(t) / pulls))
        )

    return choose


def commit(pulls_per_arm: int, limit: float) -> Any:
    frozen: dict[str, np.ndarray] = {}

    def choose(pulls: np.ndarray, r: np.ndarray, c: np.ndarray, t: int, money: float) -> int:
        if not (pulls >= pulls_per_arm).all():
            return int(np.argmin(pulls))
        frozen.setdefault("r", r / pulls)
        frozen.setdefault("c", c / pulls)
        fits = frozen["c"] <= limit
        return (
            int(np.argmax(np.where(fits, frozen["r"], -1.0)))
            if fits.any()
            else int(np.argmin(frozen["c"]))
        )

    return choose


RULES = {
    "tiers": (rules.PriceTiers(worth=[1.0, 0.7, 0.4]), ucb(np.array([1.0, 0.7, 0.4]), 0.0)),
    "net": (rules.NetReward(price=0.8), ucb(np.ones(3), 0.8)),
    "commit": (rules.ExploreThenCommit(c=0.2, pulls_per_arm=5), commit(5, 0.2)),
    "commit to none": (rules.ExploreThenCommit(c=0.001, pulls_per_arm=5), commit(5, 0.001)),
    "cap": (
        rules.Cap(preferred=2, cheapest=0),
        lambda pulls, r, c, t, money: 2 if money > 0 else 0,
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_plays_what_its_sentence_says(name: str) -> None:
    policy, choose = RULES[name]
    rng = np.random.default_rng(7)
    rounds, c = 300, 0.2
    reward = np.clip(np.array([0.3, 0.6, 0.8]) + 0.3 * rng.standard_normal((rounds, 3)), 0, 1)
    cost = np.array([0.02, 0.15, 0.7]) * (0.7 + 0.6 * rng.random((rounds, 3)))
    pulls, r, paid, spent = np.zeros(3), np.zeros(3), np.zeros(3), 0.0
    expected = []
    for t in range(1, rounds + 1):
        arm = choose(pulls, r, paid, t, c * t - spent)
        expected.append(arm)
        pulls[arm] += 1
        r[arm] += reward[t - 1, arm]
        paid[arm] += cost[t - 1, arm]
        spent += cost[t - 1, arm]
    assert actions_of(policy, reward, cost, c) == expected
    assert len(set(expected)) > 1


def test_the_adaptive_router_learns_up_to_200_and_weighs_cheapness() -> None:
    policy = rules.AdaptiveRouter(
        cheapness=jnp.array([1.0, 0.5, 0.0]), prior=jnp.array([3, 5, 7]), quality_weight=0.7
    )
    spec = jb.environments.FiniteSpec(arms=3)
    state, key = policy.init(spec), jax.random.key(1)
    update, select = jax.jit(policy.update), jax.jit(policy.select)
    view = jb.View(jnp.int32(1), None, jnp.ones(3, bool))
    for t in range(1, 260):
        feedback = jb.core.Feedback(jnp.int32(2**24), jnp.int32(0))
        at = jb.View(jnp.int32(t), None, view.available)
        state = update(state, key, jb.Observation(at, jnp.int32(1), feedback, jnp.bool_(False)))
    assert state.successes.tolist() == [0, 190, 0] and state.failures.tolist() == [0, 0, 0]
    actions = [int(select(state, key, view._replace(round=jnp.int32(t)))[1]) for t in range(1, 200)]
    # 0.7 Beta(3, 7) + 0.3 beats 0.7 · 0.975 + 0.15 where Beta(3, 7) > 0.761: once in 770; 0.7
    # Beta(7, 3) never does
    assert np.mean(np.array(actions) == 1) > 0.97
    rng = np.random.default_rng(0)
    draws = 0.7 * rng.beta([3, 5, 7], [7, 5, 3], (20_000, 3)) + 0.3 * np.array([1.0, 0.5, 0.0])
    share = np.bincount(draws.argmax(1), minlength=3) / 20_000
    none = policy.init(spec)
    arms = jax.jit(jax.vmap(lambda t: policy.select(none, key, view._replace(round=t))[1]))(
        jnp.arange(4000)
    )
    frequency = np.bincount(np.asarray(arms), minlength=3) / 4000
    assert (np.abs(frequency - share) < 4 * np.sqrt(share * (1 - share) / 4000)).all()


# --- Data, and the verdict


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> router.World:
    """A made-up world of 210 + 96 requests in place of the real one."""
    train, test = split(210, 1), split(96, 2)
    means = train.dollars.mean(0)
    world = router.World(train, test, np.geomspace(means[0], means[2], 7), 0.02)
    monkeypatch.setattr(router, "world", lambda: world)
    return world


def test_the_verdict_can_say_yes_and_no(small: router.World) -> None:
    """By hindsight, by the same mixture for everybody, and by the worst choice at the same dollars."""
    n, budget = 96, float(small.budgets[4])
    price = programs.fitting_price(small.test.quality, small.test.dollars, budget)
    best = programs.by_price(small.test.quality, small.test.dollars, price)
    worst = programs.by_price(1 - small.test.quality, small.test.dollars, price)
    rng = np.random.default_rng(0)
    by_chance = rng.choice(
        3,
        size=(200, n),
        p=programs.mixture(*(x.mean(0) for x in small.test[1:]), budget).shares[:3],
    )
    for model, says in ((best[None], 1), (worst[None], -1), (by_chance, 0)):
        gap, low, high, _ = router.context_gain(small, model, draws=200)
        assert low <= gap <= high and (np.sign(low) + np.sign(high)) / 2 == says


def test_a_router_that_sees_difficulty_gains_and_one_that_sees_noise_does_not(
    small: router.World,
) -> None:
    rng = np.random.default_rng(4)

    def gains(features: np.ndarray) -> np.ndarray:
        models = router._linear(small, features[:210], features[210:])
        return np.array([router.context_gain(small, model[None], draws=50)[0] for model in models])

    hard = np.concatenate([1 - small.train.quality[:, 0], 1 - small.test.quality[:, 0]])
    constant = np.ones_like(hard)
    # At the smallest budget it can only take the cheapest, at the largest it is free to take the
    # best.
    assert (gains(np.stack([hard, constant], 1))[2:] > 0.005).all()
    assert np.abs(gains(np.stack([rng.standard_normal(306), constant], 1))).max() < 0.02


def test_accounts_of_a_plain_loop_and_of_lanes_are_the_same(small: router.World) -> None:
    """A fixed model, judged from rounds and from the simulator's marks."""
    parts = (210, 96)
    limit = jb.AverageCost(c=small.c, rounds=306)
    table = small.table(small.both, parts)
    result = jb.simulate(
        rules.Cap(preferred=1, cheapest=1), WithNullArm(table), limit, key=router.RUN_KEY, replicates=2,
        marks=router.marks(*parts),
    )  # fmt: skip
    lanes = router.judged(small, result.ledger, 0, 210)
    orders = np.array([[table.rows(router.RUN_KEY, 306, o, b) for o in range(2)] for b in range(7)])
    loop = router.record_of(small, small.both.quality[orders, 1], small.both.dollars[orders, 1])
    for name in ("quality", "dollars", "within_budget", "served"):
        np.testing.assert_allclose(
            getattr(lanes, name), getattr(loop, name), rtol=1e-5, err_msg=name
        )
    # Every prompt once
    np.testing.assert_allclose(lanes.quality, small.test.quality[:, 1].mean(), rtol=1e-6)


@pytest.mark.integration
def test_every_item_runs_small_and_draws(small: router.World, tmp_path: Path) -> None:
    options = Options(quick=True, out=tmp_path)
    rows = router.EXPERIMENT.run(options)
    assert {line.made_by for line in rows} == {"fixed", "learners", "delays", "prices"}
    assert (tmp_path / "router.png").stat().st_size > 10_000
    by_item = {line.item: float(line.measured) for line in rows}
    best = [by_item[f"fixed: best mixture at ${label}"] for label in router.PUBLISHED]
    ceiling = [
        by_item[f"fixed: best choice for every request at ${label}"] for label in router.PUBLISHED
    ]
    assert (np.diff(best) >= 0).all() and (np.array(ceiling) >= best).all()


def test_your_own_log_is_played(tmp_path: Path) -> None:
    """Two models, the dear one better by 0.2: half of the difference in dollars buys half of that."""
    rng = np.random.default_rng(0)
    lines = [f"{0.6 + 0.1 * x:.6f},{0.8 + 0.1 * x:.6f},{0.001},{0.01}" for x in rng.random(400)]
    text = "\n".join(["quality small,quality large,dollars small,dollars large", *lines])
    (tmp_path / "requests.csv").write_text(text, encoding="utf-8")
    rows = {
        x.item: x
        for x in router.EXPERIMENT.run(Options(quick=True, only="own", out=tmp_path, data=tmp_path))
    }
    alone = [float(rows[f"own: always {name}: quality"].measured) for name in ("small", "large")]
    for dollars, label in ((10**-2.5, "3.2e-03"), (10**-2.0, "1.0e-02")):
        best = alone[0] + (alone[1] - alone[0]) * (dollars - 0.001) / 0.009
        assert float(rows[f"own: best mixture at ${label}"].measured) == pytest.approx(
            best, abs=1e-4
        )
        learner = rows[f"own: UCB-Simplex at ${label}: quality"]
        assert float(learner.measured) == pytest.approx(best, abs=0.01)
    (tmp_path / "requests.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(jb.InputError, match=r"requests.csv: 'other columns' given"):
        router.EXPERIMENT.run(Options(quick=True, only="own", out=tmp_path, data=tmp_path))
    ran = router.EXPERIMENT.run(
        Options(quick=True, only="own", out=tmp_path, data=tmp_path / "nothing")
    )
    assert ran == []
