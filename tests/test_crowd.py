"""The crowd engine gives the scan engine's bits, plays most rounds fast, and is chosen where it helps."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import stats, ticks
from jaxbandits.engine import crowd, scan
from jaxbandits.environments import Reservoir, uniform_outcome
from jaxbandits.layout import settle
from jaxbandits.policies import RCB, ArmIncreasing, LogExploration, OmegaUCB, SampledArms, UCBVRatio
from jaxbandits.policies.index import evaluate
from jaxbandits.protocol import Constraint
from jaxbandits.testing import assert_same_results

KEY = jax.random.key(33)
ROOM = 96


def reservoir(instances: int = 4, **changes: Any) -> Reservoir:
    return Reservoir.ratio(jax.random.key(2), instances=instances, capacity=ROOM, **changes)


ROWS: list[tuple[str, Any, Reservoir, Constraint]] = [
    (
        "K arms",
        SampledArms(RCB(LogExploration([1.0, 0.1])), 90),
        reservoir(),
        jb.TotalBudget([500.0, 900.0, 0.5, 100.0], last_pull="forfeits"),
    ),
    (
        "increasing",
        ArmIncreasing(RCB(LogExploration([1.0, 0.1])), 1.4),
        reservoir(),
        jb.TotalBudget([700.0, 650.0, 1.0, 600.0], last_pull="counts"),
    ),
    ("omega", SampledArms(OmegaUCB(rho=[0.02, 1.0]), 96), reservoir(), jb.Horizon([3000, 1, 500, 2999])),
    (
        "uniform",
        SampledArms(UCBVRatio(LogExploration([0.3, 0.02])), [[40, 96, 2, 70]]),
        reservoir(outcomes=uniform_outcome),
        jb.TotalBudget(900.0, last_pull="forfeits"),
    ),
]


@jb.pytree
class Stubborn(SampledArms):
    """Always the first arm: nothing that a score says."""

    def select(self, state: Any, key: jax.Array, view: Any) -> tuple[Any, jax.Array]:
        return state, jnp.int32(0)


@jb.pytree
class Even(RCB):
    """Leaves out arm 1 in odd rounds."""

    def admits(self, state: Any, view: Any) -> jax.Array:
        return (jax.lax.iota(jnp.int32, state.pulls.shape[0]) != 1) | (view.round % 2 == 0)


@pytest.mark.parametrize(("policy", "method"), [(Stubborn(RCB(), 90), "select"), (Even(), "admits")])
def test_a_policy_that_chooses_in_its_own_way_is_scanned(policy: Any, method: str) -> None:
    reason = crowd.why_not(policy, reservoir(), jb.TotalBudget(5.0, last_pull="counts"))
    assert reason is not None and f"has a method {method} of its own" in reason
    assert crowd.why_not(SampledArms(RCB(), 90), reservoir(), jb.TotalBudget(5.0, last_pull="counts")) is None


@pytest.mark.parametrize(("name", "policy", "arms", "constraint"), ROWS, ids=[row[0] for row in ROWS])
def test_same_bits(name: str, policy: Any, arms: Reservoir, constraint: Constraint) -> None:
    played = [
        jb.simulate(policy, arms, constraint, key=KEY, replicates=2, marks=6, engine=engine, slots=16)
        for engine in ("scan", "auto")
    ]
    assert [result.about["engine"] for result in played] == ["scan", "crowd"]
    assert played[0].ledger["rounds"].max() > 2000
    assert_same_results(*played, f"{name}: engines scan and crowd")


def test_a_full_set_is_told_by_both_engines() -> None:
    limit = jb.TotalBudget(2500.0, last_pull="forfeits")
    results = []
    for engine in ("scan", "leap"):
        with pytest.warns(UserWarning, match="status capacity"):
            policy = ArmIncreasing(RCB(), 1.0)
            results.append(jb.simulate(policy, reservoir(2), limit, key=KEY, marks=3, engine=engine, slots=16))
    assert (results[0].rounds.values[..., -1] == ROOM**2).all()
    assert_same_results(*results, "engines scan and crowd, full sets")


def test_most_rounds_are_fast() -> None:
    """Once most scores are finite, four macro-steps hold four ordinary rounds; many more are played."""
    lanes_, world = 4, reservoir()
    leaves, _ = settle(SampledArms(RCB(), ROOM), world)
    policy = jax.tree.map(lambda x: jnp.asarray(np.broadcast_to(x[0, :1], (lanes_, *x.shape[2:]))), leaves)
    limit = jb.TotalBudget(50_000.0, last_pull="forfeits").prepare(world)
    limit, world = (jax.tree.map(jnp.asarray, x) for x in (limit, world))
    ids = jnp.arange(lanes_)
    marks = jax.tree.map(lambda x: jnp.asarray(x)[:, None], limit.end())
    lanes = scan.Lane(
        ids, ids.astype(jnp.uint32), ids.astype(jnp.uint32), policy, limit, marks, jnp.full((lanes_,), 2**30, jnp.int32)
    )
    carry = jax.vmap(partial(scan.start, world), in_axes=(0, None))(lanes, jax.random.key_data(KEY))
    chunk = jax.jit(lambda now: crowd.chunk(world, lanes, now, crowd.gauge(lanes_), jnp.int32(1))[0])
    rounds = []
    for _ in range(120):
        carry = chunk(carry)
        rounds.append(np.asarray(carry.memory.ledger.rounds).mean())
    assert np.diff(rounds)[-20:].mean() > 100


@pytest.mark.parametrize("width", [65, 100, 320])
def test_few_largest(width: int) -> None:
    rng = np.random.default_rng(width)
    scores = np.exp(rng.normal(size=(40, width)) * rng.choice([1e-4, 0.1, 3.0], (40, 1))).astype(np.float32)
    scores[:5, :20] = np.inf
    scores[5], scores[6], scores[7, :-9], scores[8, :40] = 0, 1, -np.inf, np.inf
    ids, bounds = (np.asarray(x) for x in jax.jit(jax.vmap(crowd.few_largest))(scores))
    for row, (found, bound) in enumerate(zip(ids, bounds, strict=True)):
        chosen = found[found >= 0]
        assert np.unique(chosen).size == chosen.size and (scores[row][chosen] > bound).all()
        assert (np.delete(scores[row], chosen) <= bound).all()
        expected = {5: 0, 6: 0, 7: 9, 8: 0}.get(row, crowd.GROUP)
        assert expected - 3 * (row > 8) <= chosen.size <= expected


def test_it_is_refused_by_name() -> None:
    few = Reservoir.ratio(jax.random.key(2), instances=1, capacity=32)
    limit = jb.TotalBudget(5.0, last_pull="counts")
    with pytest.raises(jb.InputError, match=r"engine: .leap. given, but .*32 arms are few"):
        jb.simulate(SampledArms(RCB(), 8), few, limit, key=KEY, engine="leap")
    with pytest.raises(jb.InputError, match="BudgetedThompson does not declare a score that rests"):
        jb.simulate(jb.policies.BudgetedThompson(), reservoir(1), limit, key=KEY, engine="leap")


def test_float32_scores_of_rcb_fall_by_less_than_the_margin() -> None:
    """While an arm rests; near the pole too, where one unit in the last place of ln t would be most of the score."""
    draw = np.random.default_rng(4)
    n = np.floor(10 ** draw.uniform(0, 5, 100_000))
    cost = np.floor(n * draw.random(n.size))
    t = jnp.asarray(n + np.floor(10 ** draw.uniform(0, 6, n.size)), jnp.int32)
    state = jb.policies.RCB().init(jb.environments.FiniteSpec(n.size))
    state = state._replace(
        pulls=jnp.asarray(n, jnp.int32),
        reward=ticks.count(jnp.asarray(cost // 2, jnp.int32)),
        cost=ticks.count(jnp.asarray(cost, jnp.int32)),
    )
    leaves = jax.tree.map(jnp.float32, RCB())
    score = jax.jit(lambda s, t: evaluate(leaves, stats.as_floats(s, t)))
    worst, now = 0.0, np.asarray(score(state, t))
    for later in range(1, 20):
        then = np.asarray(score(state, t + later))
        finite = np.isfinite(now)
        assert (then[~finite] == np.inf).all()
        worst = max(worst, float(((now[finite] - then[finite]) / now[finite]).max()))
        now = then
    assert worst < RCB.rounding / 2
