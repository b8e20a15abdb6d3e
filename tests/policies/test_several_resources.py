"""The policies for several resources against their float64 NumPy twins
(``reference/several_resources.py``).

Each policy plays by the plain loop; on the same trajectories, and with the same draws, every
decision must be one that the twin could take when its numbers move by what float32 may be off.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats as laws

import jaxbandits as jb
from jaxbandits import policies
from jaxbandits.core import streams, ticks
from jaxbandits.core.streams import Role
from jaxbandits.policies import several_resources as ours
from jaxbandits.policies.forgetting import _in_whole_pulls
from jaxbandits.testing import episode
from jaxbandits.testing.lanes import one_setting
from tests.contract.worlds import KEY
from tests.policies.drawn import lane_key, uniforms, words
from tests.policies.reference import several_resources as twin

LANES, ARMS, RESOURCES, ROUNDS = 60, 5, 2, 160
DRAW = np.random.default_rng(34)
MU, RHO = DRAW.random((1, ARMS)), 0.05 + 0.95 * DRAW.random((1, ARMS, RESOURCES))
WORLD = jb.environments.FiniteArms.bernoulli(MU, RHO)
ONE = jb.environments.FiniteArms.bernoulli(MU, RHO[..., 0])
RESTING = jb.environments.WithNullArm(WORLD)
BUDGETS, HORIZON = [48.0, 36.5], 130
LIMITS = {
    "time": jb.TotalBudget(BUDGETS, last_pull="counts", rounds=HORIZON),
    "no time": jb.TotalBudget(BUDGETS, last_pull="counts"),
    "one": jb.TotalBudget(BUDGETS[0], last_pull="counts"),
}
OFF = 3e-5  # relative: float32 formulas of some forty operations, near which nothing cancels


class Play(NamedTuple):
    """A trajectory, as exact numbers; ``[lane, round, …]``."""

    action: np.ndarray
    n: np.ndarray  # [lane, round, K]: before the round
    r: np.ndarray
    c: np.ndarray  # [lane, round, K, d]
    reward: np.ndarray  # [lane, round]: of the round
    cost: np.ndarray  # [lane, round, d]
    money: np.ndarray  # [lane, round, m]
    alive: np.ndarray
    before: Any  # states
    after: Any
    lone: Any  # the policy's leaves


@cache
def play(policy: jb.Policy, kind: str, resting: bool = False) -> Play:
    world = ONE if kind == "one" else RESTING if resting else WORLD
    steps = jax.device_get(episode(policy, world, LIMITS[kind], KEY, ROUNDS, replicates=LANES))
    action = steps.action
    alive = np.concatenate([np.ones((LANES, 1), bool), ~steps.over[:, :-1]], axis=1)
    hot = (action[..., None] == np.arange(ARMS)).astype(float)
    reward, cost = ticks.to_units(steps.outcome.reward), ticks.to_units(steps.outcome.cost)
    money = ticks.to_units(ticks.join(steps.observation.view.left))
    cost, money = (x[..., None] if x.ndim == 2 else x for x in (cost, money))

    def before(x: np.ndarray) -> np.ndarray:
        return np.cumsum(x, axis=1) - x

    paid = hot[..., None] * cost[:, :, None, :]
    sums = before(hot), before(hot * reward[..., None]), before(paid)
    return Play(
        action,
        *sums,
        reward,
        cost,
        money,
        alive,
        steps.before,
        steps.after,
        one_setting(policy, world),
    )


BOUNDS = {
    "rad": (policies.RadBounds(c_rad=0.5), lambda *totals: twin.rad_bounds(*totals, c_rad=0.5)),
    "wilson": (
        policies.WilsonBounds(rho=0.5),
        lambda *totals: twin.wilson_bounds(*totals, rho=0.5),
    ),
}


def budgets_of(kind: str) -> np.ndarray:
    return np.array(
        {"time": [*BUDGETS, HORIZON], "no time": BUDGETS, "one": BUDGETS[:1]}[kind], float
    )


# --- PD-BwK


@pytest.mark.parametrize("kind", LIMITS)
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.quick_rows("rad-time")
@pytest.mark.sample_rows("rad-time", "rad-one", "wilson-no")
def test_primal_dual_bwk(kind: str, bounds: str) -> None:
    bounds_ours, bounds_twin = BOUNDS[bounds]
    p = play(policies.PrimalDualBwK(bounds=bounds_ours, rate=2.0), kind)
    pd, rows = twin.PrimalDual(LANES, budgets_of(kind), rate=2.0), np.arange(LANES)
    decisions = away = 0
    for i in range(ROUNDS):
        action, alive = p.action[:, i], p.alive[:, i]
        if i < ARMS:
            assert (action == i).all(), "each arm once, in index order"
            continue
        upper, lower = bounds_twin(p.n[:, i], p.r[:, i], p.c[:, i], i + 1)
        scores = pd.scores(upper, lower)
        score, best = scores[rows, action], scores.max(-1)
        # a lower bound that is 0 in one arithmetic may be 10⁻⁷ in the other
        low = bounds_twin(
            p.n[:, i], p.r[:, i], np.maximum(p.c[:, i] - 1e-6 * p.n[:, i][..., None], 0), i + 1
        )[1]
        endless = pd.scores(upper, np.maximum(low - 2e-6, 0))[rows, action]
        assert ((score >= best * (1 - OFF)) | np.isinf(endless))[alive].all(), (i, score, best)
        pd.book(action, lower)
        decisions = decisions + alive.sum()
        away = away + (action != np.argmax(p.n[:, i], -1))[alive].sum()
    assert decisions > 2500 and away > 300


@pytest.mark.integration
def test_with_one_resource_and_no_horizon_it_is_pd_bwk() -> None:
    several = play(policies.PrimalDualBwK(bounds=policies.RadBounds(c_rad=0.5)), "one")
    single = play(policies.PDBwK(c_rad=0.5), "one")
    assert np.array_equal(several.action[several.alive], single.action[single.alive])
    assert several.alive.sum() > 4000


# --- draws from the LP


def check_draws(
    p: Play, kind: str, mu: np.ndarray, cost: np.ndarray, update: bool, share: float = 1.0
) -> None:
    """Arms drawn from HiGHS' solution by the same uniforms; ``cost`` ``[…, K, d]``."""
    uniform, timed, start = uniforms(Role.MIX, LANES, ROUNDS), kind == "time", budgets_of(kind)
    decisions = mixed = unlike = edges = 0
    for lane, i in np.argwhere(p.alive):
        if (lane + i) % 5 or np.isnan(mu[lane, i]).any():
            continue
        room = p.money[lane, i] if update else start
        rows, limit = twin.with_time(cost[lane, i], timed), twin.fluid_limit(room, timed, share)
        if ((rows.max(-1) < 1e-4) & (mu[lane, i] > 0)).any():
            continue  # not bounded, or float32 cannot tell
        x, price = twin.program(mu[lane, i], rows, limit)
        if x.sum() <= 0:
            continue
        cumulated = np.cumsum(x) / x.sum()
        arm, action = int(np.argmax(cumulated > uniform[lane, i])), p.action[lane, i]
        decisions, mixed = decisions + 1, mixed + ((x > 1e-6 * x.sum()).sum() > 1)
        if arm != action:
            edge = np.abs(cumulated - uniform[lane, i]).min() < 1e-4
            edges, unlike = edges + edge, unlike + (not edge)
            # then the optimum is not unique: the arm is in another solution just as good
            gain = mu[lane, i, action] - rows[action] @ price
            assert edge or abs(gain) < 1e-4, (lane, i, arm, action, x, gain)
    assert decisions > 400 and unlike + edges < 0.1 * decisions, (decisions, mixed, unlike, edges)
    assert kind == "one" or mixed > 0.2 * decisions


@pytest.mark.parametrize(
    ("kind", "update"), [("time", False), ("time", True), ("no time", True), ("one", False)]
)
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.quick_rows("wilson-time-True")
@pytest.mark.sample_rows("wilson-time-True", "rad-no", "wilson-one")
def test_ucb_bwk(kind: str, update: bool, bounds: str) -> None:
    bounds_ours, bounds_twin = BOUNDS[bounds]
    p = play(policies.UCBBwK(bounds=bounds_ours, epsilon=0.125, update_budgets=update), kind)
    assert (p.action[:, :ARMS] == np.arange(ARMS)).all()
    mu, cost = np.full((LANES, ROUNDS, ARMS), np.nan), np.zeros(p.c.shape)
    for i in range(ARMS, ROUNDS):
        mu[:, i], cost[:, i] = bounds_twin(p.n[:, i], p.r[:, i], p.c[:, i], i + 1)
    check_draws(p, kind, mu, cost, update, share=0.875)


def has_a_part(action: int, totals: Any, t: int, money: np.ndarray) -> bool:
    """Is the arm in HiGHS' solution or in one as good? Tells if another has more."""
    upper, lower = (x[0] for x in BOUNDS["wilson"][1](*(x[None] for x in totals), t))
    rows, limit = twin.with_time(lower, True), twin.fluid_limit(money, True, 1.0)
    x, price = twin.program(upper, rows, limit)
    assert x[action] > 0 or abs(upper[action] - rows[action] @ price) < 1e-4, (t, action, x)
    return bool(x[action] < x.max())


UCB = policies.UCBBwK(bounds=BOUNDS["wilson"][0], update_budgets=True)


def weights(action: np.ndarray, gamma: float, per: str) -> np.ndarray:
    """Weight of every pull in later rounds ``[t, s]``: γ to the rounds or pulls between."""
    rows, w = [], np.zeros(action.size)
    for t, arm in enumerate(action):
        rows.append(w)
        w = np.where(action == arm, w * gamma, w) if per == "pull" else w * gamma
        w[t] = 1.0
    return np.stack(rows)


@pytest.mark.integration
@pytest.mark.sample_rows("pull")
@pytest.mark.parametrize("per", ["round", "pull"])
def test_ucb_bwk_with_a_discount(per: str) -> None:
    """Every drawn arm has a part in HiGHS' solution for discounted means of n pulls."""
    gamma, away, anew = 0.95, [], 0
    p = play(policies.Discounted(UCB, gamma, per), "time")
    for lane in range(0, LANES, 3):
        hot = (p.action[lane][:, None] == np.arange(ARMS)).astype(float)
        every = weights(p.action[lane], gamma, per)
        for i in range(ARMS, int(p.alive[lane].sum())):
            w = every[i][:, None] * hot
            n, r, c = w.sum(0), w.T @ p.reward[lane], w.T @ p.cost[lane]
            if (np.abs(n % 1 - 0.5) < 1e-4).any():
                continue  # rounding decides
            whole, action = np.floor(n + 0.5), p.action[lane, i]
            if (whole == 0).any():
                assert action == np.argmax(whole == 0)
                anew += 1
                continue
            t = i + 1 if per == "pull" else 1 + int(every[i].sum() - 1e-4)
            totals = whole, r / n * whole, c / n[:, None] * whole[:, None]
            away.append(has_a_part(action, totals, t, p.money[lane, i]))
    assert len(away) > 400 and sum(away) > 100 and (anew > 20 or per == "pull"), (
        len(away),
        sum(away),
        anew,
    )


FORGETFUL = {
    "PD-BwK": policies.PrimalDualBwK(),
    "UCB-BwK": UCB,
    "descent": policies.DualMirrorDescent(),
}


@pytest.mark.parametrize("per", ["round", "pull"])
@pytest.mark.parametrize("name", FORGETFUL)
@pytest.mark.integration
@pytest.mark.sample_rows("PD-BwK-round", "UCB-BwK-pull")
def test_a_discount_of_one_plays_the_inner_policys_own_bits(name: str, per: str) -> None:
    reference, *runs = (
        play(policy, "time", resting=name == "descent")
        for policy in (
            FORGETFUL[name],
            *(policies.Discounted(FORGETFUL[name], gamma, per) for gamma in (1.0, 0.9)),
        )
    )
    assert np.array_equal(reference.action, runs[0].action)
    assert not np.array_equal(reference.action, runs[1].action)
    must, got = (getattr(x, "learnt", x) for x in (reference.after, runs[0].after.inner))
    jax.tree.map(np.testing.assert_array_equal, must, _in_whole_pulls(got))


@pytest.mark.parametrize(("kind", "update"), [("time", False), ("time", True), ("no time", True)])
@pytest.mark.quick_rows("time-True")
def test_thompson_lp(kind: str, update: bool) -> None:
    """Trials and their counts exactly; the twin's LP is fed the policy's own posterior draws."""
    policy = policies.ThompsonLP(update_budgets=update)
    p = play(policy, kind)
    # Learnt, and tried, a round later
    trial = words(Role.TRIAL, LANES, ROUNDS + 1, 2)[:, 1:].reshape(LANES, ROUNDS, 4) >> 8
    hot = p.action[..., None] == np.arange(ARMS)
    won = trial[..., 0] < p.reward * 2**24
    paid = trial[..., 1:3] < p.cost * 2**24
    rewards, costs = hot * won[..., None], hot[..., None] * paid[:, :, None, :]
    assert np.array_equal(np.cumsum(rewards, axis=1) - rewards, p.after.learnt.rewards)
    assert np.array_equal(np.cumsum(costs, axis=1) - costs, p.after.learnt.costs)
    assert np.array_equal(p.n, p.after.learnt.pulls)
    present = jnp.ones(ARMS, bool)

    def theta(replicate: jax.Array, states: Any) -> Any:
        view = jax.vmap(lambda t: jb.View(t, None, present))(jnp.arange(1, ROUNDS + 1))
        key = lane_key(0, replicate)
        return jax.vmap(lambda state, view: policy.believed(state, key, view))(states, view)

    mu, cost = jax.jit(jax.vmap(theta))(jnp.arange(LANES), p.after)
    check_draws(p, kind, np.asarray(mu, float), np.asarray(cost, float), update)


def test_posterior_draws_of_every_resource_are_beta_and_independent() -> None:
    policy, key = policies.ThompsonLP(), streams.typed(jnp.array([3, 4], jnp.uint32))
    state = policy.init(jb.environments.FiniteSpec(arms=2, resources=3))
    learnt = state.learnt._replace(
        pulls=jnp.array([10, 400]),
        rewards=jnp.array([2, 399]),
        costs=jnp.array([[9, 0, 5], [100, 400, 1]]),
    )
    state = state._replace(learnt=learnt)
    views = jax.vmap(lambda t: jb.View(t, None, jnp.ones(2, bool)))(jnp.arange(1, 3001))
    reward, cost = jax.jit(jax.vmap(lambda view: policy.believed(state, key, view)))(views)
    columns = np.concatenate(
        [np.asarray(reward), np.asarray(cost).reshape(3000, 6)], axis=1
    ).astype(float)
    hits = np.concatenate([np.asarray(learnt.rewards), np.asarray(learnt.costs).ravel()])
    pulls = np.concatenate([np.asarray(learnt.pulls), np.repeat(np.asarray(learnt.pulls), 3)])
    for x, s, n in zip(columns.T, hits, pulls, strict=True):
        assert laws.kstest(x, laws.beta(1 + s, 1 + n - s).cdf).pvalue > 0.01 / 8
    correlation = np.corrcoef(columns, rowvar=False)[np.triu_indices(8, 1)]
    assert np.abs(correlation).max() * np.sqrt(3000) < laws.norm.isf(0.005 / 28)


@pytest.mark.integration
@pytest.mark.sample_rows("time-True")
@pytest.mark.parametrize(("kind", "update"), [("time", True), ("time", False), ("no time", True)])
def test_the_oracle_draws_from_the_program_at_the_true_means(kind: str, update: bool) -> None:
    p = play(policies.KnapsackOracle(MU[0], RHO[0], update_budgets=update), kind)
    mu, cost = (np.broadcast_to(x[0], (LANES, ROUNDS, *x.shape[1:])) for x in WORLD.values())
    check_draws(p, kind, mu, cost, update)
    with pytest.raises(jb.InputError, match=r"KnapsackOracle\.mean_cost: 'shape .*' given"):
        jb.simulate(policies.KnapsackOracle(MU[0], RHO[0, :, :1]), WORLD, LIMITS["time"], key=KEY)


@pytest.mark.integration
@pytest.mark.sample_rows("time")
@pytest.mark.parametrize("kind", ["time", "no time", "one"])
def test_epsilon_first(kind: str) -> None:
    """In turn until a share of some budget is spent; then draws at that phase's means."""
    p = play(policies.EpsilonFirstLP(epsilon=0.3), kind)
    exploring = (budgets_of(kind) - p.money < 0.3 * budgets_of(kind) * (1 - 1e-6)).all(-1)
    assert np.array_equal(p.action[exploring], np.argmin(p.n, axis=-1)[exploring])
    hot = (p.action[..., None] == np.arange(ARMS)) * exploring[..., None]
    sums = hot, hot * p.reward[..., None], hot[..., None] * p.cost[:, :, None, :]
    n, r, c = (np.cumsum(x, axis=1) - x for x in sums)
    n = np.maximum(n, 1)  # what exploration did not reach brings nothing
    mu, cost = r / n, c / n[..., None]
    mu[exploring] = np.nan
    check_draws(p, kind, mu, cost, update=True)


# --- LagrangeBwK


def test_lagrange_bwk() -> None:
    p = play(policies.LagrangeBwK(ratio=0.75, delta=0.1), "time")
    game = twin.Game(LANES, ARMS, budgets_of("time"), ratio=0.75, delta=0.1)
    word = words(32, LANES, ROUNDS, ARMS)[..., 0]
    gumbel = -np.log(-np.log1p(-np.minimum((word + 0.5) * 2.0**-32, 1 - 2.0**-24)))
    uniform, rows = uniforms(ours._RESOURCE, LANES, ROUNDS), np.arange(LANES)
    present, unsure = jnp.ones(ARMS, bool), 0
    probabilities = jax.jit(jax.vmap(lambda state: p.lone.probabilities(state, present)))(
        jax.tree.map(lambda x: x[0], p.after)
    )
    for i in range(ROUNDS):
        chances = game.arms()
        scores = np.log(chances) + gumbel[:, i]
        assert (scores[rows, p.action[:, i]] >= scores.max(-1) - 1e-4)[p.alive[:, i]].all()
        cumulated = np.cumsum(game.resources(), axis=-1)
        named, resource = (cumulated <= uniform[:, i, None]).sum(-1), p.after.resource[:, i]
        near = np.abs(cumulated - uniform[:, i, None]).min(-1) < 1e-4
        assert ((named == resource) | near)[p.alive[:, i]].all()
        unsure += near.sum()
        np.testing.assert_allclose(probabilities[i], chances[0], rtol=2e-4)
        game.book(p.action[:, i], resource, p.reward[:, i], p.cost[:, i])
    assert unsure < 60 and len(np.unique(p.after.resource)) == 3


# --- dual mirror descent


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.quick_rows("wilson")
def test_dual_mirror_descent(bounds: str) -> None:
    bounds_ours, bounds_twin = BOUNDS[bounds]
    p = play(
        policies.DualMirrorDescent(bounds=bounds_ours, eta=3.0, start=0.2), "time", resting=True
    )
    descent, rows, rests = twin.Descent(3.0, 0.2, HORIZON), np.arange(LANES), 0
    assert (p.action[:, :ARMS] == np.arange(ARMS)).all()
    for i in range(HORIZON):
        n = np.maximum(p.n[:, i], 1)
        upper, lower = bounds_twin(n, p.r[:, i], p.c[:, i], i + 1)
        paid = p.cost[:, i - 1] if i else np.zeros((LANES, RESOURCES))
        net = descent.net(upper, lower, p.money[:, i, :-1], p.money[0, i, -1], paid)
        if i < ARMS:
            continue
        net, alive = np.concatenate([net, np.zeros((LANES, 1))], axis=1), p.alive[:, i]
        off = 2e-4 * (1 + (descent.price[:, None] * lower).sum(-1).max(-1))
        assert (net[rows, p.action[:, i]] >= net.max(-1) - off)[alive].all(), i
        np.testing.assert_allclose(p.after.price[:, i][alive], descent.price[alive], rtol=2e-4)
        rests += (p.action[:, i] == ARMS)[alive].sum()
    assert rests > 100


def test_a_cost_of_a_hundred_thousandth_is_no_gift() -> None:
    """Money for the best arm in half of the rounds: a price of 0 spends it all."""
    price, rounds = 168 * 2.0**-24, 2000  # 10⁻⁵, beside an arm at 1
    reward, cost = np.array([0.9, 0.5, 0.1]), np.array([[price], [0.0], [1.0]])
    world = jb.environments.FiniteArms.empirical(
        [[([r], [c]) for r, c in zip(reward, cost, strict=True)]]
    )
    limit = jb.TotalBudget([price * rounds / 2], last_pull="counts", rounds=rounds)
    oracle = policies.KnapsackOracle(reward, cost)
    result = jb.simulate(oracle, world, limit, key=KEY, replicates=4, marks=1)
    assert (result.reward > 1390).all() and (result.reward <= 1400.001).all()
