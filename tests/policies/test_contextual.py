"""Policies with contexts: formulas' vectors, twins in float64, what they keep."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.core import ticks
from jaxbandits.core.protocol import Feedback, Observation, View
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.policies import (
    Bonus,
    ContextualPacer,
    Draw,
    LinCBwK,
    LinearRate,
    LinUCB,
    SquareCBwK,
    Standardised,
)
from jaxbandits.policies.contextual import Move
from jaxbandits.testing import episode
from jaxbandits.testing.lanes import one_setting

from .reference import contextual as twin

SEEN = [
    (0, (0.5, -1), 1, 0.2), (0, (-0.25, 0.75), 0, 0.05), (0, (1.5, 0.25), 0.75, 0.5),
    (1, (-1, 0), 0.5, 0.6), (1, (0.5, 0.5), 1, 0.4),
]  # fmt: skip
ASKED = jnp.array([-0.5, 0.5])
KEY = jax.random.key(50)


def observed(arm: int, x: Any, reward: float, cost: Any, view_x: Any = ASKED) -> Observation:
    whole = [jnp.asarray(ticks.from_units(y), jnp.int32) for y in (reward, cost)]
    view = View(jnp.int32(9), None, jnp.ones(2, bool), view_x)
    return Observation(
        view, jnp.int32(arm), Feedback(*whole), jnp.bool_(False), jnp.asarray(x, jnp.float32)
    )


def taught(policy: Any, observations: Any = tuple(SEEN)) -> Any:
    state = policy.init(FiniteSpec(2, context=(2,)))
    for observation in observations:
        state = policy.update(state, KEY, observed(*observation))
    return state


def view(**changes: Any) -> View:
    return View(jnp.int32(9), None, jnp.ones(2, bool), ASKED)._replace(**changes)


# --- Vectors by hand


def test_ridge_models_by_hand() -> None:
    policy = LinUCB(ridge=2.0)
    estimates = policy.estimates(taught(policy).model, view())
    np.testing.assert_allclose(estimates.reward, [0.310691, 0.727386], atol=2e-6)
    np.testing.assert_allclose(estimates.cost[:, 0], [0.126471, 0.505527], atol=2e-6)
    np.testing.assert_allclose(estimates.width, [0.841201, 0.745484], atol=2e-6)
    after = taught(policy, [*SEEN, (0, (2, -0.5), 0.5, 0.5)]).model
    np.testing.assert_allclose(after.inverse[0, 0], [0.422629, -0.186412, -0.008607], atol=2e-6)
    forgets = LinUCB(ridge=2.0, forget=2)
    model = taught(LinUCB(ridge=2.0), SEEN[:3]).model  # the Gram matrix without P, by hand
    rows = np.array([(1, *x) for _, x, *_ in SEEN[:3]], np.float32)
    model = model._replace(inverse=model.inverse.at[0].set(rows.T @ rows).at[1].set(0))
    later = forgets.taught(model, observed(0, (2, -0.5), 0.5, 0.5))
    gram = np.asarray(later.inverse[0], np.float64) + np.diag([0.01, 2, 2])
    np.testing.assert_allclose(
        np.linalg.solve(gram, later.reward[0]), [0.473258, 0.057396, -0.159106], atol=2e-6
    )
    assert float(forgets.estimates(later, view()).width[0]) == pytest.approx(0.928972, abs=2e-6)


def test_prices_and_moves_by_hand() -> None:
    spent = jnp.zeros(2, jnp.int32)
    pacer = ContextualPacer(ridge=2.0, c=0.2, window=1e9, start=0.1)
    state = taught(pacer)._replace(price=jnp.array([0.8]))
    money = ticks.Total(jnp.int32(0), jnp.int32(0.2 * 2**24))
    bounds = pacer.bounds(state.model, KEY, view(), spent)
    np.testing.assert_allclose(
        bounds.upper - 0.8 * bounds.lower[:, 0], [0.419814, 0.509335], atol=2e-6
    )
    after, arm = pacer.select(state, KEY, view(left=money))
    assert int(arm) == 1 and float(after.price[0]) == pytest.approx(0.812315, abs=2e-6)
    assert float(
        pacer.pace(state, view(left=ticks.Total(jnp.int32(0), jnp.int32(0.9 * 2**24))), spent)[0]
    ) == (pytest.approx(0.2, abs=1e-6))
    near = ContextualPacer(c=0.1)
    assert float(
        near.pace(state, view(left=ticks.Total(jnp.int32(0), jnp.int32(0.9 * 2**24))), spent)[0]
    ) == (pytest.approx(0.102667, abs=1e-6))
    rate = LinearRate(ridge=2.0, explore=Bonus(0.25), cost_alpha=0.0)
    learnt = taught(rate)
    earned, paid = (float(ticks.to_float(x)) for x in (learnt.earned, learnt.paid))
    assert (earned, paid) == (3.25, pytest.approx(1.75, abs=1e-6))
    bounds = rate.bounds(learnt.model, KEY, view(), spent)
    np.testing.assert_allclose(
        bounds.upper - earned / paid * bounds.lower[:, 0], [0.286116, -0.025079], atol=2e-6
    )
    assert int(rate.select(learnt, KEY, view())[1]) == 0


def test_games_by_hand() -> None:
    game = LinCBwK(ridge=2.0, free=0.01, beta=0.05)
    model = taught(game).model
    estimates, price = game.estimates(model, view()), jnp.array([4 * 0.6])
    net = twin.linear_cbwk(
        *(np.asarray(x, np.float64) for x in estimates[1:]), 0.05, 4, np.array([0.6])
    )
    np.testing.assert_allclose(net, [0.150164, -0.359146], atol=2e-6)
    now = Move(estimates, price, jnp.float32(1000), jnp.bool_(False))
    assert int(game.play(now, KEY, view())) == 0
    square = SquareCBwK(ridge=2.0, free=0.01)
    greed = 2 * np.sqrt(2 * 1000 / (2 * np.log(1000)))
    assert greed == pytest.approx(24.063651, abs=1e-6)
    s = np.asarray(estimates.reward) - 2.4 * np.asarray(estimates.cost[:, 0])
    np.testing.assert_allclose(s, [0.00716, -0.485879], atol=3e-6)
    p = square.probabilities(jnp.asarray(s), jnp.ones(2, bool), jnp.bool_(True), greed)
    np.testing.assert_allclose(p, [0.617496, 0.067275, 0.315229], atol=3e-6)
    p = square.probabilities(
        jnp.array([0.62, 0.55, 0.40]), jnp.ones(3, bool), jnp.bool_(True), 10.0
    )
    np.testing.assert_allclose(p, [0.527905, 0.212766, 0.161290, 0.098039], atol=2e-6)
    y = twin.weights(
        np.array([0.6, 0.4]), np.array([0.6]), np.array([0.25]), 2 * np.log(2) / np.sqrt(1000)
    )
    np.testing.assert_allclose(y, [0.603677, 0.396323], atol=1e-6)


@pytest.mark.integration
def test_a_draw_of_one_number_is_a_draw_of_the_whole_parameter() -> None:
    """θ̃ = A⁻¹h + v L⁻ᵀz: its score at x̃ is r̂ + v w ζ, ζ standard normal, arm by arm."""
    model = twin.Linear(2, 1, [0.01, 2, 2])
    for row in SEEN:
        model.learn(*row)
    z, x = np.array([0.3, -1.2, 0.5]), np.array([1, -0.5, 0.5])
    theta = twin.drawn_theta(model.a[0], model.h[0], 0.25, z)
    np.testing.assert_allclose(theta, [0.625055, -0.000740, -0.145063], atol=1e-6)
    r, _, w = model.asked(x[1:])
    zeta = z @ np.linalg.solve(np.linalg.cholesky(model.a[0]), x) / w[0]
    assert theta @ x == pytest.approx(0.552894, abs=1e-6)
    assert theta @ x == pytest.approx(r[0] + 0.25 * w[0] * zeta, abs=1e-12)
    # and so is what is drawn here: mean and standard deviation over rounds
    policy = LinUCB(ridge=2.0, explore=Draw(0.25))
    learnt = taught(policy).model
    estimates = policy.estimates(learnt, view())

    def deviation(explore: Any, model: Any, round: Any) -> Any:
        return explore.above(model, estimates.rows, estimates.width, KEY, round)

    rounds = jnp.arange(4096)
    draws = jax.vmap(lambda t: deviation(policy.explore, learnt, t))(rounds)
    np.testing.assert_allclose(draws.mean(0), 0, atol=4 * 0.25 * float(estimates.width.max()) / 64)
    np.testing.assert_allclose(draws.std(0), 0.25 * estimates.width, rtol=4 / np.sqrt(2 * 4096))
    # One model: the draws of its rows depend on each other
    shared = learnt._replace(inverse=learnt.inverse[:1])
    both = jax.vmap(lambda t: deviation(policy.explore, shared, t))(rounds)
    covariance = 0.25**2 * np.asarray(estimates.rows @ shared.inverse[0] @ estimates.rows.T)
    np.testing.assert_allclose(
        np.cov(both.T), covariance, atol=6 * covariance.max() / np.sqrt(4096)
    )


# --- Twins: fed the same contexts, actions and outcomes


def worlds() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    env = jb.environments
    theta = {k: rng.uniform(-0.15, 0.15, (3, j, 4)) for k, j in (("reward", 1), ("cost", 2))}
    theta["reward"][..., 0], theta["cost"][..., 0] = (
        rng.uniform(0.3, 0.7, (3, 1)),
        rng.uniform(0.2, 0.6, (3, 2)),
    )
    cost1, cost2 = theta["cost"][:, :1], theta["cost"]
    law, rows = env.Gaussian(3), env.Gaussian(3, arms=3)
    make = env.ContextualArms.linear
    return {
        "one": env.WithNullArm(make(theta["reward"][:, 0], cost1, law, resources=1)),
        "two": env.WithNullArm(make(theta["reward"][:, 0], cost2, law, resources=2)),
        "money": make(theta["reward"][:, 0], cost1[:, 0], law),
        "rows": make(theta["reward"][:1, 0], cost1[:1, 0], rows),
    }


ROUNDS = 10_000
PACED = jb.TotalBudget([0.25 * ROUNDS], last_pull="counts", rounds=ROUNDS)
BOTH = jb.TotalBudget([0.25 * ROUNDS, 0.3 * ROUNDS], last_pull="counts", rounds=ROUNDS)
MONEY = jb.TotalBudget(ROUNDS, last_pull="counts")


@pytest.mark.parametrize(
    ("policy", "name", "constraint"),
    [
        (ContextualPacer(explore=Bonus(1.0)), "one", PACED),
        (ContextualPacer(explore=Bonus(1.0), cost_alpha=1.0, eta=0.02), "two", BOTH),
        (
            ContextualPacer(
                cost_guess=[0.3, 0.5, 0.2], features=Standardised([0.1, 0, 0], [1, 2, 0.5])
            ),
            "one",
            PACED,
        ),
        (LinUCB(price=0.5, forget=6), "one", PACED),
        (LinUCB(shared=True), "rows", MONEY),
        (LinearRate(), "money", MONEY),
        (LinCBwK(beta=0.5), "two", BOTH),
        (SquareCBwK(), "two", BOTH),
    ],
    ids=["pacer", "pacer of two", "guess", "price", "shared", "rate", "LinCBwK", "SquareCBwK"],
)
@pytest.mark.quick_rows("pacer of two")
def test_twins_over_ten_thousand_rounds(policy: Any, name: str, constraint: Any) -> None:
    """r̂, ĉ, w within 2·10⁻⁵, and the same decisions but where two values are as close as that."""
    world = worlds()[name]
    steps = jax.device_get(
        jax.tree.map(lambda x: x[0], episode(policy, world, constraint, KEY, ROUNDS))
    )
    spec = world.spec
    costs = spec.resources or 1
    d = spec.context[-1]
    if isinstance(policy.features, Standardised):
        shift, scale = np.asarray(policy.features.mean), np.asarray(policy.features.sd)
    else:
        shift, scale = np.zeros(d), np.ones(d)
    p = 4 * d if policy.ridge is None else policy.ridge
    gamma = 1 - 2.0**-policy.forget if policy.forget else 1.0
    model = twin.Linear(spec.arms, costs, [policy.free] + [p] * d, policy.shared, gamma)
    plays = jax.jit(one_setting(policy, world).estimates)
    observations, earned, paid_so_far = steps.observation, 0.0, 0.0
    y, price, before = np.full(costs + 1, 1 / (costs + 1)), np.full(costs, -1.0), None
    apart = 0
    for t in range(int(np.argmax(steps.over)) + 1):
        if not observations.empty[t]:
            x = (observations.context[t] - shift) / scale
            x = x if x.ndim == 1 else x[int(observations.action[t])]
            reward = ticks.to_units(observations.feedback.reward[t])
            cost = ticks.to_units(observations.feedback.cost[t])
            model.learn(int(observations.action[t]), x, float(reward), cost)
            earned, paid_so_far = earned + float(reward), paid_so_far + float(np.sum(cost))
        x = (observations.view.context[t] - shift) / scale
        r, c, w = model.asked(x)
        if t % 997 == 0:
            at = jax.tree.map(lambda leaf, t=t: leaf[t], (steps.after.model, observations.view))
            estimates = plays(*jax.tree.map(jnp.asarray, at))
            for got, must in zip(estimates[1:], (r, c, w), strict=True):
                np.testing.assert_allclose(
                    got, must, atol=2e-5 * max(1, np.abs(must).max()), rtol=2e-5
                )
        money = None if name in ("money", "rows") else observations.view.left
        if money is not None:
            amounts = (
                np.asarray(money.whole[t], np.float64)
                + np.asarray(money.part[t], np.float64) / 2**24
            )
            tau = np.maximum(amounts[:-1] / amounts[-1], 2.0**-24)
        if isinstance(policy, (LinCBwK, SquareCBwK)):
            pace = np.array([0.25, 0.3])
            if before is not None:
                y = twin.weights(y, before - amounts[:-1], pace, 2 * np.log(2) / np.sqrt(ROUNDS))
            before = amounts[:-1]
            z = 1 / pace.min()
            if isinstance(policy, SquareCBwK):
                s = np.append(r - z * c @ y[:-1], 0)
                chance = twin.square_cbwk(s, 2 * np.sqrt(3 * ROUNDS / (3 * np.log(ROUNDS))))
                uniform = jb.core.streams.uniform(
                    jb.core.streams.policy_words(policy_key(), t + 1, 5)[0]
                )
                arm = int((np.cumsum(chance) <= float(uniform)).sum())
                gap = np.abs(np.cumsum(chance) - uniform).min()
            else:
                arm, gap = best(np.append(twin.linear_cbwk(r, c, w, 0.5, z, y[:-1]), 0))
        else:
            alpha = float(policy.explore.alpha)
            upper, lower = twin.optimistic(
                model, x, alpha, float(policy.cost_alpha), policy.cost_guess
            )
            if isinstance(policy, ContextualPacer):
                price = np.where(price < 0, policy.start / tau, np.minimum(price, 1 / tau))
            else:
                price = np.full(
                    costs,
                    earned / paid_so_far if isinstance(policy, LinearRate) and paid_so_far else 0.0,
                )
                price = np.full(costs, policy.price) if isinstance(policy, LinUCB) else price
            net = upper - lower @ price
            arm, gap = best(np.append(net, 0) if spec.null_arm else net)
            if policy.cost_guess is None and (model.n < 2).any():
                arm, gap = int(np.argmax(model.n < 2)), 1.0
            if isinstance(policy, ContextualPacer):
                arm_played = int(steps.action[t])  # the price follows what was played
                spent = lower[arm_played] if arm_played < spec.arms else 0 * price
                price = twin.moved(price, spent, tau, float(policy.eta), float(policy.start))
        if arm != int(steps.action[t]):
            apart += 1
            assert gap < 1e-4, (t, arm, int(steps.action[t]), gap)
    assert apart <= 20


def best(net: np.ndarray) -> tuple[int, float]:
    """(the best, by how much)."""
    order = np.sort(net)
    return int(np.argmax(net)), float(order[-1] - order[-2])


def policy_key() -> Any:
    lane = jb.core.streams.lane_key(jb.core.streams.root_key(KEY), 0, 0)
    return jb.core.streams.domain_key(lane, jb.core.streams.Domain.POLICY)


# --- Prices that are known, budgets that renew


def test_a_known_price_is_learnt_over_and_paid_by() -> None:
    """Costs over prices are what the models see; the bound of a request is at its own price."""
    policy = LinUCB(priced=True, ridge=2.0)
    spec = FiniteSpec(2, context=(4,))  # two features, then the two arms' prices
    state = policy.init(spec)
    plain = LinUCB(ridge=2.0).init(FiniteSpec(2, context=(2,)))
    for (arm, x, reward, cost), price in zip(SEEN, (1.0, 0.5, 0.25, 2.0, 1.0), strict=True):
        prices = [price if k == arm else 99.0 for k in range(2)]
        state = policy.update(state, KEY, observed(arm, [*x, *prices], reward, price * cost / 2))
        plain = LinUCB(ridge=2.0).update(plain, KEY, observed(arm, x, reward, cost / 2))
    for name in ("inverse", "cost", "mean_cost"):
        must, got = getattr(plain.model, name), getattr(state.model, name)
        np.testing.assert_allclose(got, must, atol=3e-7)
    features = jnp.concatenate([ASKED, jnp.array([3.0, 0.5])])
    nobody = jnp.zeros(2, jnp.int32)
    at_one = LinUCB(ridge=2.0).bounds(plain.model, KEY, view(), nobody).lower
    np.testing.assert_allclose(
        policy.bounds(state.model, KEY, view(context=features), nobody).lower,
        at_one * jnp.array([[3.0], [0.5]]),
        rtol=1e-5,
    )


@pytest.mark.integration
def test_budgets_that_renew_are_paced() -> None:
    """Of a budget for each day most is spent and nothing overspent, and contexts pay."""
    env = jb.environments
    arms = env.ContextualArms.linear(
        [[0.4, 0.0], [0.5, 0.4]], [[0.05, 0.0], [0.3, 0.0]], env.Gaussian(1), env.noise.Tent(0.02)
    )
    world = env.Delayed(arms, env.FixedDelay(3), room=4)
    limit = jb.Renewing(amount=[30.0], every=[1], requests=[200] * 12)
    pacer = ContextualPacer(explore=Bonus(0.1))
    policies = [
        jb.policies.InFlight(p, bound=[0.1, 0.35]) for p in (pacer, jb.policies.PricePacer())
    ]
    result = jb.simulate(policies, world, limit, key=KEY, replicates=8, marks=1)
    assert float(result.violation.max()) == 0
    spent = result.spent.values[..., -1, 0] / (30 * 12)
    assert (spent > 0.8).all() and (spent <= 1).all()
    reward = result.reward.values[:, 0, :, -1].mean(axis=1) / 2400
    best = arms.value_of_context(jb.AverageCost(c=0.15, rounds=2400))[0]
    assert best.fixed < reward[0] < best.contextual and reward[1] < reward[0] - 0.03
