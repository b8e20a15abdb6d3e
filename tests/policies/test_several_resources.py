"""The policies for several resources against their float64 NumPy twins (``reference/several_resources.py``).

Each policy plays by the plain loop; on the same trajectories, and with the same draws, every decision must be one that
the twin could take when its numbers move by what float32 may be off.
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
from jaxbandits.core.streams import Domain, Role
from jaxbandits.policies import several_resources as ours
from jaxbandits.policies.forgetting import _in_whole_pulls
from jaxbandits.testing import episode
from jaxbandits.testing.lanes import one_setting
from tests.contract.worlds import KEY
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
    left: np.ndarray  # [lane, round, m]
    alive: np.ndarray
    before: Any  # states
    after: Any
    lone: Any  # the policy's leaves


@cache
def play(policy: jb.Policy, kind: str, resting: bool = False) -> Play:
    world = ONE if kind == "one" else RESTING if resting else WORLD
    steps = jax.device_get(episode(policy, world, LIMITS[kind], KEY, ROUNDS, replicates=LANES))
    action, alive = steps.action, np.concatenate([np.ones((LANES, 1), bool), ~steps.over[:, :-1]], axis=1)
    hot = (action[..., None] == np.arange(ARMS)).astype(float)
    reward, cost = ticks.to_units(steps.outcome.reward), ticks.to_units(steps.outcome.cost)
    left = ticks.to_units(ticks.join(steps.observation.view.left))
    cost, left = (x[..., None] if x.ndim == 2 else x for x in (cost, left))

    def before(x: np.ndarray) -> np.ndarray:
        return np.cumsum(x, axis=1) - x

    paid = hot[..., None] * cost[:, :, None, :]
    sums = before(hot), before(hot * reward[..., None]), before(paid)
    return Play(action, *sums, reward, cost, left, alive, steps.before, steps.after, one_setting(policy, world))


def words(role: int, arms: int, rounds: int = ROUNDS) -> np.ndarray:
    """The policy's words of (round, role, arm), ``u32[lane, round, arm, 2]``."""

    def lane(replicate: jax.Array) -> jax.Array:
        key = streams.domain_key(streams.lane_key(streams.root_key(KEY), 0, replicate), Domain.POLICY)
        of_arms = jax.vmap(lambda t, arm: streams.policy_words(key, t, role, arm), (None, 0))
        return jax.vmap(of_arms, (0, None))(jnp.arange(1, rounds + 1), jnp.arange(arms))

    return np.asarray(jax.jit(jax.vmap(lane))(jnp.arange(LANES)))


def uniforms(role: int) -> np.ndarray:
    return (words(role, 1)[:, :, 0, 0] >> 8) / 2.0**24


BOUNDS = {
    "rad": (policies.RadBounds(c_rad=0.5), lambda *seen: twin.rad_bounds(*seen, c_rad=0.5)),
    "wilson": (policies.WilsonBounds(rho=0.5), lambda *seen: twin.wilson_bounds(*seen, rho=0.5)),
}


def budgets_of(kind: str) -> np.ndarray:
    return np.array({"time": [*BUDGETS, HORIZON], "no time": BUDGETS, "one": BUDGETS[:1]}[kind], float)


# --- PD-BwK


@pytest.mark.parametrize("kind", LIMITS)
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.quick_rows("rad-time", "wilson-no time")
def test_primal_dual_bwk(kind: str, bounds: str) -> None:
    mine, theirs = BOUNDS[bounds]
    p = play(policies.PrimalDualBwK(bounds=mine, rate=2.0), kind)
    pd, rows = twin.PrimalDual(LANES, budgets_of(kind), rate=2.0), np.arange(LANES)
    decisions = away = 0
    for i in range(ROUNDS):
        action, alive = p.action[:, i], p.alive[:, i]
        if i < ARMS:
            assert (action == i).all(), "each arm once, in index order"
            continue
        upper, lower = theirs(p.n[:, i], p.r[:, i], p.c[:, i], i + 1)
        scores = pd.scores(upper, lower)
        taken, best = scores[rows, action], scores.max(-1)
        # a lower bound that is 0 in one arithmetic may be 10⁻⁷ in the other
        low = theirs(p.n[:, i], p.r[:, i], np.maximum(p.c[:, i] - 1e-6 * p.n[:, i][..., None], 0), i + 1)[1]
        endless = pd.scores(upper, np.maximum(low - 2e-6, 0))[rows, action]
        assert ((taken >= best * (1 - OFF)) | np.isinf(endless))[alive].all(), (i, taken, best)
        pd.played(action, lower)
        decisions, away = decisions + alive.sum(), away + (action != np.argmax(p.n[:, i], -1))[alive].sum()
    assert decisions > 2500 and away > 300


def test_with_one_resource_and_no_horizon_it_is_pd_bwk() -> None:
    several = play(policies.PrimalDualBwK(bounds=policies.RadBounds(c_rad=0.5)), "one")
    one = play(policies.PDBwK(c_rad=0.5), "one")
    assert np.array_equal(several.action[several.alive], one.action[one.alive])
    assert several.alive.sum() > 4000


# --- draws from the LP


def check_draws(p: Play, kind: str, mu: np.ndarray, cost: np.ndarray, update: bool, share: float = 1.0) -> None:
    """Arms drawn from HiGHS' solution by the same uniforms; ``mu`` ``[lane, round, K]``, ``cost`` ``[…, K, d]``."""
    uniform, timed, start = uniforms(Role.MIX), kind == "time", budgets_of(kind)
    decisions = mixed = other = edges = 0
    for lane, i in np.argwhere(p.alive):
        if (lane + i) % 3 or np.isnan(mu[lane, i]).any():
            continue
        room = p.left[lane, i] if update else start
        rows, limit = twin.with_time(cost[lane, i], timed), twin.fluid_limit(room, timed, share)
        if ((rows.max(-1) < 1e-4) & (mu[lane, i] > 0)).any():
            continue  # not bounded, or float32 cannot tell
        x, price = twin.program(mu[lane, i], rows, limit)
        if x.sum() <= 0:
            continue
        reached = np.cumsum(x) / x.sum()
        arm, action = int(np.argmax(reached > uniform[lane, i])), p.action[lane, i]
        decisions, mixed = decisions + 1, mixed + ((x > 1e-6 * x.sum()).sum() > 1)
        if arm != action:
            edge = np.abs(reached - uniform[lane, i]).min() < 1e-4
            edges, other = edges + edge, other + (not edge)
            # then the optimum is not unique: the arm is in another solution just as good
            gain = mu[lane, i, action] - rows[action] @ price
            assert edge or abs(gain) < 1e-4, (lane, i, arm, action, x, gain)
    assert decisions > 600 and other + edges < 0.1 * decisions, (decisions, mixed, other, edges)
    assert kind == "one" or mixed > 0.2 * decisions


@pytest.mark.parametrize(("kind", "update"), [("time", False), ("time", True), ("no time", True), ("one", False)])
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.quick_rows("wilson-time-True")
def test_ucb_bwk(kind: str, update: bool, bounds: str) -> None:
    mine, theirs = BOUNDS[bounds]
    p = play(policies.UCBBwK(bounds=mine, epsilon=0.125, update_budgets=update), kind)
    assert (p.action[:, :ARMS] == np.arange(ARMS)).all()
    mu, cost = np.full((LANES, ROUNDS, ARMS), np.nan), np.zeros(p.c.shape)
    for i in range(ARMS, ROUNDS):
        mu[:, i], cost[:, i] = theirs(p.n[:, i], p.r[:, i], p.c[:, i], i + 1)
    check_draws(p, kind, mu, cost, update, share=0.875)


def test_ucb_bwk_in_a_window() -> None:
    """SW-UCB-BwK: every drawn arm has a part in HiGHS' solution for what the last w rounds brought."""
    window, (mine, theirs) = 40, BOUNDS["rad"]
    p = play(policies.Windowed(policies.UCBBwK(bounds=mine), window=window), "time")
    start, decisions, away = budgets_of("time"), 0, 0
    later = window + 1
    for lane, i in np.argwhere(p.alive[:, later:]) + np.array([0, later]):
        n, r, c = (x[lane, i] - x[lane, i - window] for x in (p.n, p.r, p.c))
        action = p.action[lane, i]
        if (n == 0).any():
            assert n[action] == 0
            continue
        upper, lower = (x[0] for x in theirs(n[None], r[None], c[None], window + 1))
        rows, limit = twin.with_time(lower, True), twin.fluid_limit(start, True, 1.0)
        x, price = twin.program(upper, rows, limit)
        assert x[action] > 0 or abs(upper[action] - rows[action] @ price) < 1e-4, (lane, i, action, x)
        decisions, away = decisions + 1, away + (x[action] < x.max())
    assert decisions > 500 and away > 100, (decisions, away)


def weights(action: np.ndarray, gamma: float, per: str) -> np.ndarray:
    """Of every pull in every later round, ``[round t, round s]``, 0 from t on: γ to the rounds, or the arm's own pulls,
    between the two."""
    found, w = [], np.zeros(action.size)
    for t, arm in enumerate(action):
        found.append(w)
        w = np.where(action == arm, w * gamma, w) if per == "pull" else w * gamma
        w[t] = 1.0
    return np.stack(found)


@pytest.mark.parametrize("per", ["round", "pull"])
def test_ucb_bwk_with_a_discount(per: str) -> None:
    """Every drawn arm has a part in HiGHS' solution for the discounted means of n pulls, n to the nearest whole one."""
    gamma, (mine, theirs) = 0.95, BOUNDS["wilson"]
    p = play(policies.Discounted(policies.UCBBwK(bounds=mine), gamma, per), "time")
    start, decisions, away, anew = budgets_of("time"), 0, 0, 0
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
            seen = whole[None], (r / n * whole)[None], (c / n[:, None] * whole[:, None])[None]
            upper, lower = (x[0] for x in theirs(*seen, t))
            rows, limit = twin.with_time(lower, True), twin.fluid_limit(start, True, 1.0)
            x, price = twin.program(upper, rows, limit)
            assert x[action] > 0 or abs(upper[action] - rows[action] @ price) < 1e-4, (lane, i, action, x)
            decisions, away = decisions + 1, away + (x[action] < x.max())
    assert decisions > 400 and away > 100 and (anew > 20 or per == "pull"), (decisions, away, anew)


FORGETFUL = {
    "PD-BwK": policies.PrimalDualBwK(),
    "UCB-BwK": policies.UCBBwK(bounds=policies.WilsonBounds(), update_budgets=True),
    "descent": policies.DualMirrorDescent(),
}


@pytest.mark.parametrize("per", ["round", "pull"])
@pytest.mark.parametrize("name", FORGETFUL)
@pytest.mark.quick_rows("PD-BwK-round", "descent-pull")
def test_a_discount_of_one_plays_the_inner_policys_own_bits(name: str, per: str) -> None:
    own, found = (
        play(policy, "time", resting=True)
        for policy in (FORGETFUL[name], policies.Discounted(FORGETFUL[name], 1.0, per))
    )
    assert np.array_equal(own.action, found.action)
    jax.tree.map(np.testing.assert_array_equal, own.after.learnt, _in_whole_pulls(found.after.inner.learnt))
    other = play(policies.Discounted(FORGETFUL[name], 0.9, per), "time", resting=True)
    assert not np.array_equal(own.action, other.action)


@pytest.mark.parametrize(("kind", "update"), [("time", False), ("time", True), ("no time", True)])
@pytest.mark.quick_rows("time-True")
def test_thompson_lp(kind: str, update: bool) -> None:
    """Trials and their counts exactly; the twin's LP is fed the policy's own posterior draws."""
    policy = policies.ThompsonLP(update_budgets=update)
    p = play(policy, kind)
    trial = words(Role.TRIAL, 2, ROUNDS + 1)[:, 1:].reshape(LANES, ROUNDS, 4) >> 8  # learnt, and tried, a round later
    hot = p.action[..., None] == np.arange(ARMS)
    won = trial[..., 0] < p.reward * 2**24
    paid = trial[..., 1:3] < p.cost * 2**24
    rewards, costs = hot * won[..., None], hot[..., None] * paid[:, :, None, :]
    assert np.array_equal(np.cumsum(rewards, axis=1) - rewards, p.after.rewards)
    assert np.array_equal(np.cumsum(costs, axis=1) - costs, p.after.costs)
    assert np.array_equal(p.n, p.after.pulls)
    there = jnp.ones(ARMS, bool)

    def theta(replicate: jax.Array, states: Any) -> Any:
        key = streams.domain_key(streams.lane_key(streams.root_key(KEY), 0, replicate), Domain.POLICY)
        view = jax.vmap(lambda t: jb.View(t, None, there))(jnp.arange(1, ROUNDS + 1))
        return jax.vmap(lambda state, view: policy.believed(state, key, view))(states, view)

    mu, cost = jax.jit(jax.vmap(theta))(jnp.arange(LANES), p.after)
    check_draws(p, kind, np.asarray(mu, float), np.asarray(cost, float), update)


def test_posterior_draws_of_every_resource_are_beta_and_independent() -> None:
    policy, key = policies.ThompsonLP(), streams.typed(jnp.array([3, 4], jnp.uint32))
    state = policy.init(jb.environments.FiniteSpec(arms=2, resources=3))
    state = state._replace(
        pulls=jnp.array([10, 400]), rewards=jnp.array([2, 399]), costs=jnp.array([[9, 0, 5], [100, 400, 1]])
    )
    views = jax.vmap(lambda t: jb.View(t, None, jnp.ones(2, bool)))(jnp.arange(1, 3001))
    reward, cost = jax.jit(jax.vmap(lambda view: policy.believed(state, key, view)))(views)
    columns = np.concatenate([np.asarray(reward), np.asarray(cost).reshape(3000, 6)], axis=1).astype(float)
    hits = np.concatenate([np.asarray(state.rewards), np.asarray(state.costs).ravel()])
    pulls = np.concatenate([np.asarray(state.pulls), np.repeat(np.asarray(state.pulls), 3)])
    for x, s, n in zip(columns.T, hits, pulls, strict=True):
        assert laws.kstest(x, laws.beta(1 + s, 1 + n - s).cdf).pvalue > 0.01 / 8
    correlation = np.corrcoef(columns, rowvar=False)[np.triu_indices(8, 1)]
    assert np.abs(correlation).max() * np.sqrt(3000) < laws.norm.isf(0.005 / 28)


@pytest.mark.parametrize(("kind", "update"), [("time", True), ("time", False), ("no time", True)])
@pytest.mark.quick_rows("time-False")
def test_the_oracle_draws_from_the_program_at_the_true_means(kind: str, update: bool) -> None:
    p = play(policies.KnapsackOracle(MU[0], RHO[0], update_budgets=update), kind)
    mu, cost = (np.broadcast_to(x[0], (LANES, ROUNDS, *x.shape[1:])) for x in WORLD.values())
    check_draws(p, kind, mu, cost, update)
    with pytest.raises(jb.InputError, match=r"KnapsackOracle\.mean_cost: 'shape .*' given; it must be \[5, 2\]"):
        jb.simulate(policies.KnapsackOracle(MU[0], RHO[0, :, :1]), WORLD, LIMITS["time"], key=KEY)


@pytest.mark.parametrize("kind", ["time", "no time", "one"])
@pytest.mark.quick_rows("time")
def test_epsilon_first(kind: str) -> None:
    """In turn until the share of some budget is spent, time among them; then draws at the means of that phase."""
    p = play(policies.EpsilonFirstLP(epsilon=0.3), kind)
    exploring = (budgets_of(kind) - p.left < 0.3 * budgets_of(kind) * (1 - 1e-6)).all(-1)
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
    word = words(32, ARMS)[..., 0]
    gumbel = -np.log(-np.log1p(-np.minimum((word + 0.5) * 2.0**-32, 1 - 2.0**-24)))
    uniform, rows = uniforms(ours._RESOURCE), np.arange(LANES)
    unsure = 0
    for i in range(ROUNDS):
        chances = game.arms()
        scores = np.log(chances) + gumbel[:, i]
        assert (scores[rows, p.action[:, i]] >= scores.max(-1) - 1e-4)[p.alive[:, i]].all()
        reached = np.cumsum(game.resources(), axis=-1)
        named, resource = (reached <= uniform[:, i, None]).sum(-1), p.after.resource[:, i]
        near = np.abs(reached - uniform[:, i, None]).min(-1) < 1e-4
        assert ((named == resource) | near)[p.alive[:, i]].all()
        unsure += near.sum()
        np.testing.assert_allclose(
            np.asarray(p.lone.probabilities(jax.tree.map(lambda x, i=i: x[0, i], p.after), jnp.ones(ARMS, bool))),
            chances[0],
            rtol=2e-4,
        )
        game.played(p.action[:, i], resource, p.reward[:, i], p.cost[:, i])
    assert unsure < 60 and len(np.unique(p.after.resource)) == 3


# --- dual mirror descent


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.quick_rows("wilson")
def test_dual_mirror_descent(bounds: str) -> None:
    mine, theirs = BOUNDS[bounds]
    p = play(policies.DualMirrorDescent(bounds=mine, eta=3.0, start=0.2), "time", resting=True)
    descent, rows, rests = twin.Descent(3.0, 0.2, HORIZON), np.arange(LANES), 0
    assert (p.action[:, :ARMS] == np.arange(ARMS)).all()
    for i in range(HORIZON):
        n = np.maximum(p.n[:, i], 1)
        upper, lower = theirs(n, p.r[:, i], p.c[:, i], i + 1)
        paid = p.cost[:, i - 1] if i else np.zeros((LANES, RESOURCES))
        net = descent.net(upper, lower, p.left[:, i, :-1], p.left[0, i, -1], paid)
        if i < ARMS:
            continue
        net, alive = np.concatenate([net, np.zeros((LANES, 1))], axis=1), p.alive[:, i]
        off = 2e-4 * (1 + (descent.price[:, None] * lower).sum(-1).max(-1))
        assert (net[rows, p.action[:, i]] >= net.max(-1) - off)[alive].all(), i
        np.testing.assert_allclose(p.after.price[:, i][alive], descent.price[alive], rtol=2e-4)
        rests += (p.action[:, i] == ARMS)[alive].sum()
    assert rests > 100


# --- who may play what


def test_what_they_need_is_said() -> None:
    with pytest.raises(jb.InputError, match="no horizon given; LagrangeBwK needs one"):
        jb.simulate(policies.LagrangeBwK(), WORLD, LIMITS["no time"], key=KEY)
    with pytest.raises(jb.InputError, match="no null arm"):
        jb.simulate(policies.DualMirrorDescent(), WORLD, LIMITS["time"], key=KEY)
    with pytest.raises(jb.InputError, match="no horizon given; DualMirrorDescent"):
        jb.simulate(policies.DualMirrorDescent(), RESTING, LIMITS["no time"], key=KEY, max_rounds=100)
    later = jb.environments.Delayed(ONE, jb.environments.FixedDelay(2), room=8, arrivals=2)
    renewing = jb.Renewing(amount=[5.0], every=[2], requests=[8, 12])
    with pytest.raises(jb.InputError, match="one whose budgets renew given; it must tell totals to spend"):
        jb.simulate(policies.InFlight(policies.PrimalDualBwK()), later, renewing, key=KEY)
    with pytest.raises(jb.InputError, match="it tells nothing of what is left"):
        jb.simulate(policies.UCBBwK(), WORLD, jb.Horizon(50), key=KEY)


# --- whole runs: the library beside independent runs of the twins, in the same worlds


class Told(NamedTuple):
    """What a twin knows before round t; lanes are rows."""

    t: int
    n: np.ndarray
    r: np.ndarray
    c: np.ndarray
    left: np.ndarray  # [lane, m]
    last: tuple[np.ndarray, np.ndarray, np.ndarray]  # arm, reward and costs of the round before
    rng: np.random.Generator


@cache
def outcomes() -> tuple[np.ndarray, np.ndarray]:
    """The outcomes that the library's world gives: rewards ``[lane, K, pull]``, costs ``[…, d]``."""
    tables = jax.tree.map(lambda x: jnp.asarray(x)[0], WORLD)

    def lane(replicate: jax.Array) -> Any:
        key = streams.domain_key(streams.lane_key(streams.root_key(KEY), 0, replicate), Domain.WORLD)
        every_pull = jax.vmap(tables.outcome, in_axes=(None, None, 0))
        return jax.vmap(every_pull, in_axes=(None, 0, None))(key, jnp.arange(ARMS), jnp.arange(HORIZON))

    reward, cost = jax.jit(jax.vmap(lane))(jnp.arange(LANES))
    return ticks.to_units(reward), ticks.to_units(cost)


def earned(choose: Any, seed: int) -> np.ndarray:
    """The reward of every lane; arm K rests."""
    rng, rows, (rewards, costs) = np.random.default_rng(seed), np.arange(LANES), outcomes()
    n, r, c = np.zeros((LANES, ARMS)), np.zeros((LANES, ARMS)), np.zeros((LANES, ARMS, RESOURCES))
    last: Any = (np.zeros(LANES, int), np.zeros(LANES), np.zeros((LANES, RESOURCES)))
    money, total = np.tile(np.array(BUDGETS), (LANES, 1)), np.zeros(LANES)
    for t in range(1, HORIZON + 1):
        left = np.concatenate([money, np.full((LANES, 1), HORIZON - t + 1.0)], axis=1)
        arm = choose(Told(t, n, r, c, left, last, rng))
        plays = (money > 0).all(-1) & (arm < ARMS)
        k = np.minimum(arm, ARMS - 1)
        at = n[rows, k].astype(int)
        x, y = rewards[rows, k, at] * plays, costs[rows, k, at] * plays[:, None]
        n[rows, k] += plays
        r[rows, k] += x
        c[rows, k] += y
        money, total, last = money - y, total + x, (arm, x, y)
    return total


def in_turn_then(rule: Any) -> Any:
    """Each arm once first."""
    return lambda s: np.full(LANES, s.t - 1) if s.t <= ARMS else rule(s)


def by_program(means: Any, share: float = 1.0, update: bool = True) -> Any:
    def choose(s: Told) -> np.ndarray:
        mu, cost = means(s)
        arm = np.zeros(LANES, int)
        for lane in range(LANES):
            room = np.maximum(s.left[lane], 1e-9) if update else budgets_of("time")
            x, _ = twin.program(mu[lane], twin.with_time(cost[lane], True), twin.fluid_limit(room, True, share))
            arm[lane] = s.rng.choice(ARMS, p=x / x.sum()) if x.sum() > 0 else s.rng.integers(ARMS)
        return arm

    return choose


def bounded(s: Told) -> tuple[np.ndarray, np.ndarray]:
    return twin.wilson_bounds(s.n, s.r, s.c, s.t, rho=0.125)


def pd() -> Any:
    prices = twin.PrimalDual(LANES, budgets_of("time"))

    def rule(s: Told) -> np.ndarray:
        upper, lower = twin.rad_bounds(s.n, s.r, s.c, s.t, c_rad=0.5)
        scores = prices.scores(upper, lower)
        best = scores >= scores.max(-1, keepdims=True)
        arm = np.argmax(np.where(best, s.rng.random(scores.shape), -1), axis=-1)
        prices.played(arm, lower)
        return arm

    return in_turn_then(rule)


def thompson() -> Any:
    """Bernoulli outcomes: a trial of one is that one."""
    return by_program(lambda s: (s.rng.beta(1 + s.r, 1 + s.n - s.r), s.rng.beta(1 + s.c, 1 + s.n[..., None] - s.c)))


def game() -> Any:
    players, named = twin.Game(LANES, ARMS, budgets_of("time"), 1.0, 0.05), []

    def choose(s: Told) -> np.ndarray:
        if named:
            players.played(s.last[0], named.pop(), *s.last[1:])
        named.append((np.cumsum(players.resources(), axis=-1)[:, :-1] <= s.rng.random((LANES, 1))).sum(-1))
        return (np.cumsum(players.arms(), axis=-1)[:, :-1] <= s.rng.random((LANES, 1))).sum(-1)

    return choose


def descent() -> Any:
    prices = twin.Descent(1.0, 0.1, HORIZON)

    def choose(s: Told) -> np.ndarray:
        upper, lower = twin.wilson_bounds(np.maximum(s.n, 1), s.r, s.c, s.t, rho=0.125)
        net = prices.net(upper, lower, np.maximum(s.left[:, :-1], 0), s.left[0, -1], s.last[2])
        best = np.where(net.max(-1) > 0, np.argmax(net + 1e-9 * s.rng.random(net.shape), axis=-1), ARMS)
        return np.full(LANES, s.t - 1) if s.t <= ARMS else best

    return choose


WHOLE: dict[str, tuple[jb.Policy, Any, bool]] = {
    "PD-BwK": (policies.PrimalDualBwK(), pd, False),
    "UCB-BwK": (
        policies.UCBBwK(bounds=policies.WilsonBounds()),
        lambda: in_turn_then(by_program(bounded, update=False)),
        False,
    ),
    "Thompson": (policies.ThompsonLP(), thompson, False),
    "Lagrange": (policies.LagrangeBwK(), game, False),
    "descent": (policies.DualMirrorDescent(), descent, True),
    "oracle": (
        policies.KnapsackOracle(MU[0], RHO[0]),
        lambda: by_program(lambda s: (np.tile(MU[0], (LANES, 1)), np.tile(RHO[0], (LANES, 1, 1)))),
        False,
    ),
}


@pytest.mark.integration
def test_mean_rewards_agree_with_those_of_the_twins() -> None:
    """Paired over lanes, which meet the same outcomes; ties and draws are each one's own. Bonferroni at 1 %."""
    z = {}
    for number, (name, (policy, choose, resting)) in enumerate(WHOLE.items()):
        p = play(policy, "time", resting)
        mine, theirs = (p.reward * p.alive).sum(1), earned(choose(), seed=number)
        gap = mine - theirs
        error = gap.std(ddof=1) / np.sqrt(LANES)  # 0 where every run is the twin's: nothing was drawn, nothing tied
        z[name] = gap.mean() / error if error > 0 else (0.0 if abs(gap.mean()) < 1e-9 else np.inf)
        print(f"{name:10s} {mine.mean():.2f} {theirs.mean():.2f}  z = {z[name]:+.2f}")
    assert max(map(abs, z.values())) < laws.t.isf(0.005 / len(z), LANES - 1), z
