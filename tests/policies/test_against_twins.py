"""Every policy against its float64 NumPy twin, on 10⁵ decisions of shared observations each.

Trajectories come from the jax policies (a plain loop, without an engine) and are replayed into the twins in
``reference``. Scores agree to 1e-5 relative, or to the propagated rounding bound near a pole; a decision must
be one that the twin could take when its scores move by these tolerances.

The bounds. u = 2⁻²⁴ is half a unit in the last place of float32. Every operation is correct to u, ``log`` and ``sqrt``
to 4u, so the formulas without cancellation (ω, c, i, greedy: some twenty positive terms) are good to 40u = 2.4e-6,
well inside 1e-5. Two formulas subtract:

* m-UCB divides by c̄ − ε: its absolute error is at most 2u c̄ + 8u ε. Where that is not small against c̄ − ε, it decides.
* ω* takes 1 − q with q = Σx(1−x) / (n x̄(1−x̄)): absolute error at most 8u plus the rounding of each x(1−x) to a tick,
  n·2⁻²⁵ in the sum. The score is computed at both ends of that interval.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats as laws

import jaxbandits as jb
from jaxbandits import policies
from jaxbandits.core import arm_statistics, ticks
from jaxbandits.core.arm_statistics import Arms
from jaxbandits.core.protocol import View
from jaxbandits.core.streams import Role
from jaxbandits.policies.base import IndexPolicy, evaluate, evaluate_state, largest
from jaxbandits.policies.soft import Posterior
from jaxbandits.policies.ucb import lower_bound, upper_bound
from jaxbandits.testing import episode
from jaxbandits.testing.lanes import typed
from tests.contract import threefry
from tests.contract.worlds import ARMS, KEY, world
from tests.policies.reference import finite as twins

DECISIONS = 100_000
U = 2.0**-24
RELATIVE = 1e-5
ROOT = tuple(int(x) for x in jax.random.key_data(KEY))
Floats = np.ndarray


class Play(NamedTuple):
    """A trajectory ``[lane, round, …]``, as exact numbers."""

    action: np.ndarray
    reward: Floats  # units; exact in float64
    cost: Floats
    states: Any  # the policy's state when it decides
    round: np.ndarray


def play(policy: jb.Policy, name: str, lanes: int) -> Play:
    rounds = DECISIONS // lanes
    steps = episode(policy, world(name), jb.Horizon(rounds), KEY, rounds, replicates=lanes)
    return Play(
        np.asarray(steps.action),
        ticks.to_units(steps.outcome.reward),
        ticks.to_units(steps.outcome.cost),
        steps.after,
        np.asarray(steps.observation.view.round),
    )


class Totals(NamedTuple):
    """What the scores read, in float64, ``[lane, round, arm]``."""

    t: Floats
    n: Floats
    reward: Floats
    cost: Floats
    reward_spread: Floats | None
    cost_spread: Floats | None


def totals(states: arm_statistics.ArmStatistics, round: np.ndarray) -> Totals:
    def exact(total: Any) -> Any:
        return None if total is None else ticks.to_units(ticks.join(total))

    sums = [exact(x) for x in (states.reward, states.cost, states.reward_spread, states.cost_spread)]
    return Totals(round[..., None].astype(np.float64), np.asarray(states.pulls, np.float64), *sums)


def no_more(policy: Any, scores: Floats, x: Totals) -> Floats:
    """Tolerance where nothing cancels."""
    return RELATIVE * np.abs(scores)


def near_the_pole(policy: Any, scores: Floats, x: Totals) -> Floats:
    """m-UCB: the error of the denominator, over the denominator; +∞ where float32 cannot tell its sign."""
    mean = x.cost / x.n
    epsilon = policy.alpha * np.sqrt(np.log(np.maximum(x.t - 1, 1)) / x.n)
    error, below = 2 * U * mean + 8 * U * epsilon, mean - epsilon
    finite = np.where(np.isfinite(scores), scores, 0.0)
    bound = RELATIVE * finite + finite * error / np.maximum(below - error, 1e-300)
    return np.where(np.abs(below) <= error, np.inf, bound)


def at_both_ends(policy: Any, scores: Floats, x: Totals) -> Floats:
    """ω*: the score with each η moved by its error."""

    def eta(total: Floats, spread: Floats | None, move: int) -> Floats:
        most = total * (x.n - total) / x.n
        q = spread / most
        error = 8 * U + x.n * 2.0**-25 / most
        return np.where((x.n < 30) | (most <= 0), 1.0, np.clip(1 - q + move * error, 0, 1))

    def score(move: int) -> Floats:
        z2 = 2 * policy.rho * np.log(x.t)
        k_r, k_c = z2 * eta(x.reward, x.reward_spread, move), z2 * eta(x.cost, x.cost_spread, move)
        root_r = np.sqrt(k_r) * np.sqrt(x.reward * (x.n - x.reward) / x.n + k_r / 4)
        root_c = np.sqrt(k_c) * np.sqrt(x.cost * (x.n - x.cost) / x.n + k_c / 4)
        return (x.reward + k_r / 2 + root_r) / (x.n + k_r) * (x.cost + k_c / 2 + root_c) / (x.cost**2 / x.n)

    finite = np.where(np.isfinite(scores), scores, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        move = np.maximum(np.abs(score(1) - scores), np.abs(score(-1) - scores))
    return RELATIVE * finite + np.where(np.isfinite(move), move, 0.0)


def check_decisions(action: np.ndarray, fresh: np.ndarray, scores: Floats, tolerance: Floats) -> dict[str, int]:
    """Every action must be the initial one, or best up to the tolerances. Gives counts, ties among them."""
    starting = fresh.any(axis=-1)
    assert np.array_equal(action[starting], fresh.argmax(axis=-1)[starting]), "initial pulls in index order"
    high = np.where(np.isinf(scores), 1e300, scores + tolerance)
    low = np.where(np.isinf(scores), 1e300, scores - tolerance)
    could_win = high >= low.max(axis=-1, keepdims=True)
    taken = np.take_along_axis(could_win, action[..., None], axis=-1)[..., 0]
    wrong = ~starting & ~taken
    assert not wrong.any(), f"{wrong.sum()} decisions differ, first at [lane, round] {np.argwhere(wrong)[0]}"
    best = scores == scores.max(axis=-1, keepdims=True)
    counts = {
        "decisions": action.size,
        "initial": int(starting.sum()),
        "exact ties": int((~starting & (best.sum(-1) > 1)).sum()),
        "near ties": int((~starting & (could_win.sum(-1) > 1) & (best.sum(-1) == 1)).sum()),
    }
    decided = counts["decisions"] - sum(counts[k] for k in ("initial", "exact ties", "near ties"))
    assert decided > 0.9 * action.size, f"too few decisions that the scores decide alone: {counts}"
    return counts


def report(record_property: Callable[[str, object], None], name: str, counts: dict[str, Any]) -> None:
    record_property("twin", counts)
    print(name, counts)


Bound = Callable[[Any, Floats, Totals], Floats]
INDEX: list[tuple[str, Any, Callable[[], Any], str, int, Bound]] = [
    (
        "omega",
        policies.OmegaUCB(rho=0.25),
        lambda: twins.OmegaUCB(ARMS, rho=0.25),
        "generalised_bernoulli",
        40,
        no_more,
    ),
    ("omega-1", policies.OmegaUCB(rho=1.0), lambda: twins.OmegaUCB(ARMS, rho=1.0), "bernoulli", 200, no_more),
    ("omega*", policies.OmegaStarUCB(rho=0.25), lambda: twins.OmegaStarUCB(ARMS, rho=0.25), "beta", 250, at_both_ends),
    ("m", policies.MUCB(), lambda: twins.MUCB(ARMS), "beta", 100, near_the_pole),
    ("m-wide", policies.MUCB(alpha=0.5), lambda: twins.MUCB(ARMS, alpha=0.5), "empirical", 200, near_the_pole),
    ("c", policies.CUCB(), lambda: twins.CUCB(ARMS), "generalised_bernoulli", 100, no_more),
    ("i", policies.IUCB(), lambda: twins.IUCB(ARMS), "empirical", 100, no_more),
]


@pytest.mark.parametrize(("name", "policy", "twin", "where", "lanes", "bound"), INDEX, ids=[row[0] for row in INDEX])
@pytest.mark.integration_rows("omega*")
def test_index_policies(
    name: str,
    policy: IndexPolicy,
    twin: Callable[[], Any],
    where: str,
    lanes: int,
    bound: Bound,
    record_property: Callable[[str, object], None],
) -> None:
    played = play(policy, where, lanes)
    scores = np.asarray(
        jax.jit(jax.vmap(jax.vmap(lambda s, t: evaluate_state(policy, s, t))))(played.states, played.round)
    )
    expected = np.full(scores.shape, np.inf)
    for lane in range(lanes):
        one = twin()
        for i in range(played.action.shape[1]):
            assert one.t == played.round[lane, i]
            if one.initial_arm() is None:
                expected[lane, i] = one.scores()
            one.update(int(played.action[lane, i]), played.reward[lane, i], played.cost[lane, i])
    exact = totals(played.states, played.round)
    with np.errstate(divide="ignore", invalid="ignore"):
        tolerance = bound(policy, expected, exact)
    ready = (exact.n > 0).all(axis=-1)
    got, must, allowed = scores[ready].astype(np.float64), expected[ready], tolerance[ready]
    same_infinite = np.isinf(got) & np.isinf(must)
    with np.errstate(invalid="ignore"):
        off = ~same_infinite & ~(np.abs(got - must) <= allowed) & ~np.isinf(allowed)
    assert not off.any(), f"{off.sum()} scores differ, first {got[off][0]} and {must[off][0]} ± {allowed[off][0]}"
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = np.nanmax(np.where(np.isfinite(got) & np.isfinite(must), np.abs(got / must - 1), 0))
    counts = check_decisions(played.action, exact.n == 0, expected, np.where(np.isfinite(expected), tolerance, 0))
    report(record_property, name, counts | {"worst relative difference of a score": float(worst)})


def test_budgeted_thompson(record_property: Callable[[str, object], None]) -> None:
    """The twin gets the policy's posterior draws, and Bernoulli trials from the words at their stated address."""
    policy, lanes = policies.BudgetedThompson(), 100
    played = play(policy, "beta", lanes)
    words = [threefry.threefry(threefry.threefry(ROOT, (0, r)), (0, threefry.POLICY)) for r in range(lanes)]
    keys = jnp.array(words, jnp.uint32)

    def draws(key: jax.Array, state: Posterior, round: jax.Array) -> Any:
        return policy.draws(state, typed(key), round)

    every_round = jax.vmap(draws, in_axes=(None, 0, 0))
    theta = jax.jit(jax.vmap(every_round))(keys, played.states, jnp.asarray(played.round))
    reward, cost = (np.asarray(x, np.float64) for x in theta)
    states = jax.tree.map(np.asarray, played.states)
    near = different = 0
    for lane in range(lanes):
        twin = twins.BudgetedThompson(ARMS)
        for i in range(played.action.shape[1]):
            assert np.array_equal(twin.n, states.pulls[lane, i])
            assert np.array_equal(twin.s_r, states.rewards[lane, i]), "successes of the reward trials"
            assert np.array_equal(twin.s_c, states.costs[lane, i]), "successes of the cost trials"
            action, arm = int(played.action[lane, i]), twin.decide(reward[lane, i], cost[lane, i])
            if action != arm:
                different += 1
                ratio = reward[lane, i] / cost[lane, i]
                assert ratio[action] >= ratio[arm] * (1 - 4 * U), "one float32 division decides"
                near += 1
            r, c = played.reward[lane, i], played.cost[lane, i]
            # what was observed in round t is learnt, and tried, at the beginning of round t + 1
            trial = threefry.policy_words(ROOT, 0, lane, i + 2, threefry.TRIAL)
            trials = [
                None if x in (0.0, 1.0) else int((w >> 8) < x * 2**24) for x, w in zip((r, c), trial, strict=True)
            ]
            twin.update(action, r, c, *trials)
    assert different < 10, "near-ties of two float32 ratios are rarer than that"
    report(record_property, "bts", {"decisions": played.action.size, "near ties": near})


def test_posterior_draws_are_beta_and_addressed_by_arm() -> None:
    policy, key = policies.BudgetedThompson(), typed(jnp.array([3, 4], jnp.uint32))
    state = Posterior(*(jnp.array(x, jnp.int32) for x in ([0, 10, 400, 3], [0, 2, 399, 3], [0, 9, 100, 0])))
    rounds = jnp.arange(1, 4001, dtype=jnp.int32)
    theta = jax.jit(jax.vmap(lambda t: policy.draws(state, key, t)))(rounds)
    for x, successes in zip(theta, (state.rewards, state.costs), strict=True):
        for arm in range(4):
            a, b = 1 + int(successes[arm]), 1 + int(state.pulls[arm] - successes[arm])
            assert laws.kstest(np.asarray(x[:, arm], np.float64), laws.beta(a, b).cdf).pvalue > 0.01 / 8
    columns = np.concatenate([np.asarray(x) for x in theta], axis=1)
    correlation = np.corrcoef(columns, rowvar=False)[np.triu_indices(8, 1)]
    assert np.abs(correlation).max() * np.sqrt(4000) < laws.norm.isf(0.005 / 28), "arms and roles are independent"
    two = jax.tree.map(lambda x: x[:2], state)
    fewer = jax.jit(lambda t: policy.draws(two, key, t))(rounds[0])
    assert np.array_equal(np.stack(fewer), np.stack([x[0, :2] for x in theta])), "further arms change no draw"


def test_what_stands_behind_the_arms_is_never_chosen() -> None:
    """``largest`` of padded scores: neither the largest number there nor NaN counts, and no arm is K as ever."""
    key = jax.random.key(1)

    @jax.jit
    def chosen(behind: jax.Array, there: jax.Array, round: jax.Array) -> tuple[jax.Array, jax.Array]:
        view, scores = View(round, None, there), jnp.array([0.5, -2.0, 0.5])
        padded = jnp.concatenate([scores, jnp.full(5, behind)])
        return largest(padded, key, view, arms=3), largest(scores, key, view)

    for behind in (9.0, np.inf, np.nan, 0.5):
        for there in ([True, True, True], [False, True, False], [False, False, False]):
            for t in range(1, 9):
                padded, plain = chosen(jnp.float32(behind), jnp.array(there), jnp.int32(t))
                assert int(padded) == int(plain), (behind, there, t)
    view = View(jnp.int32(1), None, None)
    assert int(largest(jnp.array([-1.0, -2.0, 5.0, jnp.nan]), key, view, arms=2)) == 0
    assert int(largest(jnp.array([-1.0, jnp.nan, 5.0]), key, view, arms=2)) == 2


def test_b_greedy(record_property: Callable[[str, object], None]) -> None:
    """The twin gets the two words of (round, EXPLORE) as uniforms."""
    policy, lanes = policies.BGreedy(a=1.0), 100
    played = play(policy, "generalised_bernoulli", lanes)
    counts = dict.fromkeys(("decisions", "explored", "exact ties", "near ties", "undecided coins"), 0)
    for lane in range(lanes):
        twin = twins.BGreedy(ARMS, a=1.0)
        for i in range(played.action.shape[1]):
            action = int(played.action[lane, i])
            coin = threefry.policy_words(ROOT, 0, lane, i + 1, threefry.EXPLORE)
            uniform = (coin[0] >> 8) / 2**24
            decision = twin.decide(uniform, coin[1] / 2**32)
            counts["decisions"] += 1
            counts["explored"] += decision.explored
            if twin.initial_arm() is None and abs(uniform * twin.rounds - ARMS) <= 2 * U * ARMS:
                counts["undecided coins"] += 1
            elif action not in decision.maximisers:
                scores = twin.greedy_scores()
                assert not decision.explored and scores[action] >= scores[decision.arm] * (1 - RELATIVE)
                counts["near ties"] += 1
            counts["exact ties"] += len(decision.maximisers) > 1
            twin.update(action, played.reward[lane, i], played.cost[lane, i])
    assert counts["near ties"] + counts["undecided coins"] < 0.001 * counts["decisions"]
    assert counts["explored"] > 1000
    report(record_property, "b_greedy", counts)


def test_exploration_is_uniform_and_as_often_as_stated() -> None:
    policy = policies.BGreedy(a=2.0)
    steps = episode(policy, world("beta"), jb.Horizon(400), KEY, 400, replicates=200)
    scores = jax.vmap(jax.vmap(lambda s, t: evaluate_state(policy, s, t)))(steps.after, steps.observation.view.round)
    other = np.asarray(steps.action) != np.asarray(scores).argmax(-1)
    t = np.arange(1, 401)[100:]
    chance = np.minimum(1, 2.0 * ARMS / (t - 1)) * (1 - 1 / ARMS)  # another arm than the greedy one
    expected, variance = 200 * chance.sum(), 200 * (chance * (1 - chance)).sum()
    assert abs(other[:, 100:].sum() - expected) / np.sqrt(variance) < laws.norm.isf(0.005)


# --- the vectors of ALGORITHMS.md, section F ----------------------------------------------------------------------


def six_digits(value: float) -> Any:
    """The printed number is rounded to six decimals; float32 adds at most 40u (see above) = 2.4e-6 relative."""
    return pytest.approx(value, rel=40 * U, abs=5e-7)


def state_f() -> Arms:
    """t = 1000, n = 50, r̄ = 0.3, c̄ = 0.4, and spreads such that η^r = 0.2, η^c = 0.5."""

    def f(x: float) -> jax.Array:
        return jnp.full((1,), x, jnp.float32)

    most_r, most_c = 50 * 0.3 * 0.7, 50 * 0.4 * 0.6
    return Arms(f(1000), f(50), f(15), f(20), f(35), f(30), f(most_r * (1 - 0.2)), f(most_c * (1 - 0.5)))


@pytest.mark.parametrize(
    ("policy", "index"),
    [
        (policies.OmegaUCB(rho=1.0), 2.910886),
        (policies.OmegaUCB(rho=0.25), 1.526531),
        (policies.OmegaStarUCB(rho=0.25), 1.135537),
        (policies.MUCB(), 0.857893),
        (policies.CUCB(), 0.866145),
        (policies.IUCB(), 0.842916),
        (policies.BGreedy(), 0.75),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, jb.Policy) else str(x),
)
def test_vectors(policy: IndexPolicy, index: float) -> None:
    leaves = jax.tree.map(jnp.float32, policy)
    assert float(evaluate(leaves, state_f())[0]) == six_digits(index)


@pytest.mark.parametrize(
    ("rho", "eta_reward", "eta_cost", "upper", "lower"),
    [(1.0, 1.0, 1.0, 0.560871, 0.192681), (0.25, 1.0, 1.0, 0.430123, 0.281765), (0.25, 0.2, 0.5, 0.356290, 0.313763)],
)
def test_vectors_of_the_bounds(rho: float, eta_reward: float, eta_cost: float, upper: float, lower: float) -> None:
    arms = state_f()
    z2 = 2 * jnp.float32(rho) * jnp.log(arms.t)
    assert float(upper_bound(arms.reward, arms.reward_rest, arms.n, z2 * eta_reward)[0]) == six_digits(upper)
    assert float(lower_bound(arms.cost, arms.cost_rest, arms.n, z2 * eta_cost)[0]) == six_digits(lower)


def test_the_lower_bound_is_exactly_zero_without_cost_and_never_otherwise() -> None:
    n = jnp.arange(1, 20_000, dtype=jnp.float32)
    k = jnp.full_like(n, 2.5)
    assert not np.asarray(lower_bound(jnp.zeros_like(n), n, n, k)).any()
    one_tick = jnp.full_like(n, 2.0**-24)
    assert (np.asarray(lower_bound(one_tick, n, n, k)) > 0).all()


def test_the_roles_are_those_of_the_table() -> None:
    names = ("TIE", "THETA_REWARD", "THETA_COST", "TRIAL", "EXPLORE")
    assert [int(Role[name]) for name in names] == [getattr(threefry, name) for name in names]
