"""Every policy of finitely many arms against its float64 NumPy twin (``tests/policies/reference``).

Each policy plays once, by the plain loop: 200 replicates of two instances of four arms with a
budget, or some lanes on a horizon in a world of the contract. From these trajectories:

* every score agrees with the twin's to 1e-5 relative, or to what rounding may move the twin's near
  a pole, and every decision is one that the twin could take when its scores move by as much;
* no policy earns more than the optimum of exact dynamic programming by more than 3 standard errors.

u = 2⁻²⁴ is half a unit in the last place of float32. Formulas of some twenty positive terms are
good to 40u = 2.4e-6. Where differences decide, the twin is asked again with every sum moved by 8u,
and Σx(1 − x) by half a tick an outcome.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats as laws

import jaxbandits as jb
from jaxbandits import policies
from jaxbandits.core import ticks
from jaxbandits.core.arm_statistics import Arms
from jaxbandits.core.streams import Role
from jaxbandits.oracles.optimum import ArmLaw, best_set_rate, budgeted_optimum, independent_law
from jaxbandits.policies.base import IndexPolicy, evaluate_arms, evaluate_state
from jaxbandits.policies.soft import Posterior
from jaxbandits.policies.ucb import lower_bound
from jaxbandits.testing import episode
from jaxbandits.testing.lanes import one_setting, typed
from tests.contract.worlds import ARMS, KEY, world
from tests.policies.drawn import lane_key, words
from tests.policies.reference import budgeted as twin
from tests.policies.reference.budgeted import Floats, Seen

DECISIONS = 100_000
U = 2.0**-24
RELATIVE = 1e-5
LANES, ROUNDS, BUDGET = 200, 224, 40.0
WORLD = jb.environments.random_generalised_bernoulli(jax.random.key(5), instances=2, arms=ARMS)
MEAN_REWARD, MEAN_COST = WORLD.values()
LEAST = MEAN_COST.min(axis=1)
C_RAD = 0.25 * np.log(BUDGET * ARMS)

Score = Callable[[Seen, int], Floats]


# --- how far float32 may be from the twin ------------------------------------------------------------------------


def score_error(score: Score, s: Seen, instance: int = 0) -> Floats:
    """How far a twin's score may move, absolute; +∞ where it may be infinite or not."""
    expected, largest = score(s, instance), np.zeros_like(s.n)
    off = (-8 * U, 8 * U)
    # N never falls below a threshold
    for n, r, c, spread in itertools.product((0, 16 * U), off, off, off):
        squares = [  # so that Σx(1 − x), which the library keeps, moves by its own error alone
            x + by * total + np.sign(spread) * (8 * U * total * (1 - total / s.n) + s.n * 2.0**-25)
            for x, total, by in ((s.rr, s.r, r), (s.cc, s.c, c))
        ]
        shifted = score(Seen(s.t, s.n * (1 + n), s.r * (1 + r), s.c * (1 + c), *squares), instance)
        difference = np.abs(shifted - expected)  # of two infinite ones: NaN
        largest = np.maximum(
            largest, np.where(np.isinf(shifted) & np.isinf(expected), 0, difference)
        )
    return np.where(np.isnan(largest), np.inf, largest)


class Case(NamedTuple):
    policy: jb.Policy
    score: Score | None = None
    relative: float = RELATIVE
    world_name: str = ""  # a world of the contract, played on a horizon; else WORLD with a budget
    lanes: int = LANES


CASES = {
    "budget_ucb": Case(
        policies.BudgetUCB(min_cost=LEAST[None]), lambda s, i: twin.budget_ucb(s, LEAST[i])
    ),
    "estimated_budget_ucb": Case(
        policies.EstimatedBudgetUCB(), lambda s, i: twin.estimated_budget_ucb(s)
    ),
    "ucb_sc_plus": Case(policies.UCBSCPlus(), lambda s, i: twin.ucb_sc_plus(s)),
    "kl_ucb_sc_plus": Case(
        policies.KLUCBSCPlus(), lambda s, i: twin.kl_ucb_sc_plus(s), relative=2e-4
    ),
    "ucb_sc": Case(policies.UCBSC(), lambda s, i: twin.ucb_sc_plus(s, plus=False)),
    "kl_ucb_sc": Case(
        policies.KLUCBSC(), lambda s, i: twin.kl_ucb_sc_plus(s, plus=False), relative=2e-4
    ),
    "ucb_bv1": Case(policies.UCBBV1(min_cost=0.5), lambda s, i: twin.ucb_bv1(s, 0.5)),
    "ucb_bv2": Case(policies.UCBBV2(), lambda s, i: twin.ucb_bv2(s)),
    "pd_bwk": Case(policies.PDBwK.for_budget(BUDGET, ARMS), lambda s, i: twin.pd_bwk(s, C_RAD)),
    "ucb_b2": Case(policies.UCBB2(), lambda s, i: twin.ucb_b2(s)),
    "fractional_kube": Case(policies.FractionalKUBE(), lambda s, i: twin.density(s)),
    "ucb1": Case(policies.UCB1(), lambda s, i: twin.ucb1(s)),
    "omega_ucb": Case(policies.OmegaUCB(), lambda s, i: twin.omega(s)),
    "omega_star_ucb": Case(policies.OmegaStarUCB(), lambda s, i: twin.omega_star(s)),
    "m_ucb": Case(policies.MUCB(), lambda s, i: twin.m_ucb(s)),
    "c_ucb": Case(policies.CUCB(), lambda s, i: twin.c_ucb(s)),
    "i_ucb": Case(policies.IUCB(), lambda s, i: twin.i_ucb(s)),
    # those that have no score
    "b_greedy": Case(policies.BGreedy()),
    "bts": Case(policies.BudgetedThompson()),
    "epsilon_first": Case(policies.EpsilonFirst(epsilon=0.3)),
    "kube": Case(policies.KUBE()),
    "mrcb_of_one_arm": Case(policies.MRCB(pulls=1)),
    "best_ratio": Case(policies.BestRatioOracle(MEAN_REWARD[None], MEAN_COST[None])),
}
ELSEWHERE = {
    "bts in beta": CASES["bts"]._replace(world_name="beta", lanes=100),
    "b_greedy in quarters": CASES["b_greedy"]._replace(
        world_name="generalised_bernoulli", lanes=100
    ),
}
SCORED = {name: case for name, case in CASES.items() if case.score}


# --- trajectories ------------------------------------------------------------------------------------------------


class Play(NamedTuple):
    """Trajectories ``[lane, round, …]``, as exact numbers."""

    action: np.ndarray  # [lane, round] or [lane, round, L]
    history: Seen  # before each round
    alive: np.ndarray  # bool: the lane had not ended before the round
    money: Floats
    explored: Floats  # reward and cost of each round, by arm: [2, lane, round, K]
    states: Any  # the policy's, when it decides
    earned: Floats  # [lane]


@cache
def play(name: str, instance: int) -> Play:
    case = (CASES | ELSEWHERE)[name]
    if case.world_name:
        rounds = DECISIONS // case.lanes
        steps = episode(
            case.policy,
            world(case.world_name),
            jb.Horizon(rounds),
            KEY,
            rounds,
            replicates=case.lanes,
        )
        over = np.zeros((case.lanes, rounds), bool)
    else:
        limit = jb.TotalBudget(BUDGET, last_pull="counts")
        steps = episode(case.policy, WORLD, limit, KEY, ROUNDS, instance=instance, replicates=LANES)
        over = np.asarray(steps.over)
        assert over[:, -1].all(), "some lane did not spend its budget"
    action = np.asarray(steps.action)
    arms = action if action.ndim == 3 else action[..., None]
    hot = (arms[..., None] == np.arange(ARMS)).astype(np.float64)  # [lane, round, L, K]
    # what a round brought is told in the next one
    feedback = [
        np.roll(ticks.to_units(x), -1, axis=1).reshape(arms.shape)
        for x in steps.observation.feedback
    ]
    count, by_arm = hot.sum(2), [(x[..., None] * hot).sum(2) for x in feedback]
    squares = [(x[..., None] ** 2 * hot).sum(2) for x in feedback]

    def before(x: Floats) -> Floats:
        return np.cumsum(x, axis=1) - x

    lanes, rounds = action.shape[:2]
    t = np.broadcast_to(np.arange(1.0, rounds + 1)[:, None], (lanes, rounds, 1))
    alive = np.concatenate([np.ones((lanes, 1), bool), ~over[:, :-1]], axis=1)
    return Play(
        action=action,
        history=Seen(t, *(before(x) for x in (count, *by_arm, *squares))),
        alive=alive,
        money=BUDGET - before(by_arm[1]).sum(-1),
        explored=np.stack(by_arm),
        states=steps.after,
        earned=(np.asarray(by_arm[0])[:, :-1].sum(-1) * alive[:, :-1]).sum(1),
    )


def scores(name: str, p: Play, instance: int) -> tuple[Floats, Floats, Floats]:
    """(the policy's scores of all that was seen, the twin's, how far apart they may be)."""
    case = SCORED[name]
    assert isinstance(case.policy, IndexPolicy) and case.score is not None
    leaves = one_setting(case.policy, WORLD, instance)
    got = np.asarray(_table(leaves, p.states, jnp.arange(1, p.action.shape[1] + 1)), np.float64)
    with np.errstate(all="ignore"):
        expected = case.score(p.history, instance)
        allowed = case.relative * np.abs(expected)
        if case.relative == RELATIVE:
            allowed = allowed + score_error(case.score, p.history, instance)
        ready = (p.history.n > 0) & ~(np.isinf(expected) & np.isinf(got))
        unsure = ~np.isfinite(allowed)
        off = ready & ~unsure & ~(np.abs(got - expected) <= allowed)
    assert not off.any(), f"{off.sum()} scores differ, first {got[off][0]} and {expected[off][0]}"
    assert (unsure & ready).mean() < 0.02
    assert (ready & np.isfinite(got) & np.isfinite(expected)).sum() > 400, (
        "a test of infinities only"
    )
    return (
        got,
        expected,
        np.where(unsure & ready, np.inf, np.where(np.isfinite(expected), allowed, 0.0)),
    )


_table = jax.jit(jax.vmap(jax.vmap(evaluate_state, in_axes=(None, 0, 0)), in_axes=(None, 0, None)))


@pytest.mark.parametrize("name", SCORED)
def test_scores(name: str) -> None:
    """On what ω*-UCB saw, whose statistics are those of all."""
    scores(name, play("omega_star_ucb", 1), 1)


@pytest.mark.parametrize("name", SCORED)
@pytest.mark.quick_rows("omega_star_ucb", "pd_bwk", "m_ucb")
def test_decisions(name: str, record_property: Callable[[str, object], None]) -> None:
    """Along a trajectory of the policy itself, and scores there."""
    for instance in range(2):
        p = play(name, instance)
        _, expected, tolerance = scores(name, p, instance)
        fresh = p.history.n == 0
        # an index whose pole float32 cannot place may be any large number: such rounds decide
        # nothing here
        sure = np.isfinite(tolerance).all(-1)
        filled = np.where(fresh, np.inf, expected)
        record_property(
            f"{name} {instance}",
            check_decisions(p.action[sure], fresh[sure], filled[sure], tolerance[sure]),
        )


def check_decisions(
    action: np.ndarray, fresh: np.ndarray, scores: Floats, tolerance: Floats
) -> dict[str, int]:
    """Every action is initial, infinite, or best up to the tolerances. Gives counts, ties too."""
    open_ties, starting = np.isinf(scores).sum(-1) > 1, fresh.any(-1)
    assert np.array_equal(action[starting], fresh.argmax(-1)[starting]), (
        "initial pulls in index order"
    )
    taken_infinite = np.isinf(np.take_along_axis(scores, action[:, None], axis=-1)[:, 0])
    assert taken_infinite[open_ties & ~starting].all(), "an infinite index comes first"
    rest = ~open_ties & ~starting
    action, scores, tolerance = action[rest], scores[rest], tolerance[rest]
    high, low = (np.where(np.isinf(scores), 1e300, scores + x) for x in (tolerance, -tolerance))
    could_win = high >= low.max(axis=-1, keepdims=True)
    wrong = ~np.take_along_axis(could_win, action[:, None], axis=-1)[:, 0]
    assert not wrong.any(), (
        f"{wrong.sum()} decisions differ, first {action[wrong][0]} of {scores[wrong][0]}"
    )
    best = (scores == scores.max(axis=-1, keepdims=True)).sum(-1)
    near = int(((could_win.sum(-1) > 1) & (best == 1)).sum())
    counts = {"decisions": int(rest.sum()), "exact ties": int((best > 1).sum()), "near ties": near}
    undecided = counts["exact ties"] + near
    assert rest.sum() < 1000 or undecided < 0.1 * rest.sum(), (
        f"too few that the scores decide alone: {counts}"
    )
    return counts | {
        "initial": int(starting.sum()),
        "among infinite ones": int((open_ties & ~starting).sum()),
    }


# --- choices that are no argmax of a score -----------------------------------------------------------------------


def test_epsilon_first() -> None:
    policy = CASES["epsilon_first"].policy
    explored = greedy = 0
    for instance in range(2):
        p = play("epsilon_first", instance)
        spent = BUDGET - p.money
        exploring = spent < policy.epsilon * BUDGET
        s = p.history
        mask = exploring[..., None]  # only what exploration brought
        counted = (p.action[..., None] == np.arange(ARMS)) * mask
        n, r, c = (np.cumsum(x * mask, axis=1) - x * mask for x in (counted, *p.explored))
        turn = np.argmin(s.n, axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(n > 0, np.where(c > 0, r / c, np.inf), -np.inf)
        best = ratio >= ratio.max(-1, keepdims=True) * (1 - 4 * U)
        ok = np.where(
            exploring, p.action == turn, np.take_along_axis(best, p.action[..., None], -1)[..., 0]
        )
        assert ok[p.alive].all()
        explored = explored + int((exploring & p.alive).sum())
        greedy = greedy + int((~exploring & p.alive).sum())
    assert explored > 2000 and greedy > 10_000


def test_kube() -> None:
    """The twin packs the knapsack; the policy's own words say which unit is drawn."""
    away = expected = variance = 0.0
    decisions = unsure = 0
    for instance in range(2):
        p, word = play("kube", instance), words(Role.MIX, LANES, ROUNDS, ARMS, instance)
        coins = (word[..., 0] >> 8) / 2**24
        for lane, i in np.argwhere(
            p.alive & (p.history.c > 0).all(-1) & (p.history.t[..., 0] % 2 == 0)
        ):
            s = Seen(*(x[lane, i] for x in p.history))
            densities = twin.density(s)
            price = s.mean_c
            money = p.money[lane, i]
            action = p.action[lane, i]
            units, more, fewer = (
                twin.kube_units(densities, price * x, money) for x in (1, 1 - 1e-5, 1 + 1e-5)
            )
            order = np.argsort(-densities)
            close = np.abs(np.diff(densities[order]) / densities[order][:-1]).min() < RELATIVE
            if close or (units != more).any() or (units != fewer).any():
                unsure += 1
                continue
            total, unit = 0.0, order[0]  # where nothing fits: the densest
            for k in order[units[order] > 0]:
                total += units[k]
                if coins[lane, i, k] * total < units[k]:
                    unit = k
            assert action == unit
            decisions += 1
            if total > 0:
                # Not the densest that fits
                chance = 1 - units[order[np.argmax(units[order] > 0)]] / total
                away += action != order[np.argmax(units[order] > 0)]
                expected, variance = expected + chance, variance + chance * (1 - chance)
    assert decisions > 8000 and unsure < decisions, (decisions, unsure)
    assert abs(away - expected) < laws.norm.isf(0.005) * np.sqrt(variance) and expected > 50


def test_mrcb_finds_the_best_of_many_sets() -> None:
    """Dinkelbach's method against all sets of four of sixteen, with zero bounds and absent arms."""
    draw = np.random.default_rng(3)
    policy = jax.tree.map(jnp.float32, policies.MRCB(pulls=4, alpha=0.3))
    spec = jb.environments.FiniteSpec(arms=16)
    select = jax.jit(
        lambda state, view: policy.select(state, typed(jnp.array([1, 2], jnp.uint32)), view)[1]
    )
    start = policy.init(spec), jb.View(jnp.int32(1), None, jnp.ones(16, bool))
    assert np.asarray(select(*start)).tolist() == [0, 1, 2, 3], "each arm once, in index order"
    endless = 0
    for round in (200, 300, 5000, 100_000):
        for _ in range(6):
            n = draw.integers(1, 40, 16)
            r, c = (np.floor(n * draw.random(16) * ticks.ONE).astype(np.int64) for _ in range(2))
            state = policy.init(spec)._replace(
                pulls=jnp.asarray(n, jnp.int32), reward=_total(r), cost=_total(c)
            )
            present = draw.random(16) < 0.8
            view = jb.View(jnp.int32(round), None, jnp.asarray(present))
            arms = np.asarray(select(state, view))
            assert present[arms].all() and len(set(arms.tolist())) == 4
            s = Seen(
                *(np.asarray(x, np.float64) for x in (round, n, r / ticks.ONE, c / ticks.ONE, 0, 0))
            )
            upper, lower = twin.mrcb_bounds(s, 0.3)
            best, _ = twin.best_sets(upper[present], lower[present], 4)
            ratio = upper[arms].sum() / lower[arms].sum() if lower[arms].sum() > 0 else np.inf
            assert ratio == best or ratio >= best * (1 - RELATIVE)
            endless += np.isinf(best)
    assert 0 < endless < 20


def _total(whole: np.ndarray) -> ticks.Total:
    return jax.tree.map(jnp.asarray, ticks.split(whole))


# --- policies that draw ------------------------------------------------------------------------------------------


def test_budgeted_thompson() -> None:
    """SPEC A.3: Beta posteriors of Bernoulli trials, then the largest ratio of the draws."""
    p = play("bts in beta", 0)
    lanes, rounds = p.action.shape
    # what was observed in round t is learnt, and tried, at the beginning of round t + 1
    trial = words(Role.TRIAL, lanes, rounds + 1)[:, 1:, 0] >> 8
    for word, (counted, outcome) in enumerate(
        zip((p.states.rewards, p.states.costs), p.explored, strict=True)
    ):
        successes = trial[..., word, None] < outcome * 2**24
        assert np.array_equal(np.cumsum(successes, axis=1) - successes, counted)
    assert np.array_equal(p.history.n, p.states.pulls)

    def draws(replicate: jax.Array, states: Posterior) -> Any:
        key = lane_key(0, replicate)
        return jax.vmap(lambda state, t: CASES["bts"].policy.draws(state, key, t))(
            states, jnp.arange(1, rounds + 1)
        )

    theta = jax.jit(jax.vmap(draws))(jnp.arange(lanes), p.states)
    ratio = np.asarray(theta[0], np.float64) / np.asarray(theta[1], np.float64)
    played_ratio, best = np.take_along_axis(ratio, p.action[..., None], -1)[..., 0], ratio.max(-1)
    assert (played_ratio >= best * (1 - 4 * U)).all(), "one float32 division decides"
    assert (played_ratio < best).sum() < 10, "near-ties of two float32 ratios are rarer than that"


def test_b_greedy() -> None:
    """SPEC A.6, with the policy's own two words of a round."""
    p = play("b_greedy in quarters", 0)
    lanes, rounds = p.action.shape
    word = words(Role.EXPLORE, lanes, rounds)[:, :, 0]
    coin = (word[..., 0] >> 8) / 2**24 * np.maximum(p.history.t[..., 0] - 1, 1) - ARMS
    starting = (p.history.n == 0).any(-1)
    explored = coin < 0
    undecided = np.abs(coin) <= 2 * U * ARMS
    scores = p.history.r / (p.history.c + 1e-10)
    played_score, best = np.take_along_axis(scores, p.action[..., None], -1)[..., 0], scores.max(-1)
    at_random = p.action == word[..., 1].astype(np.uint64) * ARMS >> 32
    right = np.where(explored, at_random, played_score >= best * (1 - RELATIVE))
    right = np.where(starting, p.action == (p.history.n == 0).argmax(-1), right)
    assert (right | undecided).all()
    near = (played_score < best) & ~explored & ~starting
    assert (near | undecided).sum() < 0.001 * near.size and (explored & ~starting).sum() > 1000


# --- the optimum -------------------------------------------------------------------------------------------------


def arm_laws(instance: int) -> list[ArmLaw]:
    def five(cumulative: np.ndarray) -> list[tuple[float, float]]:
        p = np.diff(np.concatenate([[0], cumulative, [ticks.ONE]])) / ticks.ONE
        return [(float(x), j / 4) for j, x in enumerate(p)]

    law = WORLD.law
    return [
        independent_law(
            five(np.asarray(law.reward)[instance, k]), five(np.asarray(law.cost)[instance, k])
        )
        for k in range(ARMS)
    ]


@pytest.mark.integration
def test_no_policy_beats_the_optimum() -> None:
    above = {}
    for instance in range(2):
        best = budgeted_optimum(arm_laws(instance), BUDGET, last_pull="counts")
        for name in CASES:
            earned = play(name, instance).earned
            error = earned.std(ddof=1) / np.sqrt(LANES)
            above[name, instance] = (earned.mean() - best.value) / error
    best_of_all = max(above, key=lambda key: above[key])
    print("closest to the optimum, in standard errors:", best_of_all, above[best_of_all])
    assert above[best_of_all] < 3
    assert best_of_all[0] == "best_ratio"


def test_rate_of_sets() -> None:
    draw = np.random.default_rng(0)
    for size in (1, 2, 3, 5):
        r, c = draw.random(7), 0.05 + 0.95 * draw.random(7)
        assert best_set_rate(r, c, size) == pytest.approx(twin.best_sets(r, c, size)[0], rel=1e-12)


# --- the vectors of ALGORITHMS.md, section F ----------------------------------------------------------------------


def six_digits(value: float) -> Any:
    """Printed to six decimals; float32 adds at most 40u (see above) = 2.4e-6 relative."""
    return pytest.approx(value, rel=40 * U, abs=5e-7)


def state_f() -> Arms:
    """t = 1000, n = 50, r̄ = 0.3, c̄ = 0.4, and spreads such that η^r = 0.2, η^c = 0.5."""
    values = (1000, 50, 15, 20, 35, 30, 50 * 0.3 * 0.7 * 0.8, 50 * 0.4 * 0.6 * 0.5)
    return Arms(*(jnp.full((1,), x, jnp.float32) for x in values))


SEEN_F = Seen(
    *(
        np.array([float(x)])
        for x in (1000, 50, 15, 20, 15 - 50 * 0.3 * 0.7 * 0.8, 20 - 50 * 0.4 * 0.6 * 0.5)
    )
)


@pytest.mark.parametrize(
    ("policy", "score", "index"),
    [
        (policies.OmegaUCB(rho=1.0), lambda s: twin.omega(s, 1.0), 2.910886),
        (policies.OmegaUCB(rho=0.25), twin.omega, 1.526531),
        (policies.OmegaStarUCB(rho=0.25), twin.omega_star, 1.135537),
        (policies.MUCB(), twin.m_ucb, 0.857893),
        (policies.CUCB(), twin.c_ucb, 0.866145),
        (policies.IUCB(), twin.i_ucb, 0.842916),
        (policies.BGreedy(), lambda s: s.r / (s.c + 1e-10), 0.75),
        (
            policies.BudgetUCB(min_cost=0.05, factor=1.0),
            lambda s: twin.budget_ucb(s, 0.05, factor=1.0),
            14.160898,
        ),
        (policies.BudgetUCB(min_cost=0.05), lambda s: twin.budget_ucb(s, 0.05), 23.761756),
        (policies.UCBSCPlus(), twin.ucb_sc_plus, 1.547111),
        (policies.KLUCBSCPlus(), twin.kl_ucb_sc_plus, 1.471522),
        (policies.KLUCBSC(), lambda s: twin.kl_ucb_sc_plus(s, plus=False), 2.131769),
        (policies.UCBBV1(min_cost=0.5), lambda s: twin.ucb_bv1(s, 0.5), 9.438187),
        (policies.UCBBV1(min_cost=0.05), lambda s: twin.ucb_bv1(s, 0.05), np.inf),
        (policies.FractionalKUBE(), twin.density, 2.064130),
        (
            policies.PDBwK.for_budget(1e4, arms=10),
            lambda s: twin.pd_bwk(s, 0.25 * np.log(1e5)),
            2.564219,
        ),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, jb.Policy) else str(x)[:9],
)
def test_vectors(policy: IndexPolicy, score: Callable[[Seen], Floats], index: float) -> None:
    """The library and its twin."""
    assert float(evaluate_arms(jax.tree.map(jnp.float32, policy), state_f())[0]) == six_digits(
        index
    )
    assert score(SEEN_F)[0] == pytest.approx(index, rel=1e-6, abs=5.1e-7)


def test_the_lower_bound_is_exactly_zero_without_cost_and_never_otherwise() -> None:
    n = jnp.arange(1, 20_000, dtype=jnp.float32)
    k = jnp.full_like(n, 2.5)
    assert not np.asarray(lower_bound(jnp.zeros_like(n), n, n, k)).any()
    one_tick = jnp.full_like(n, 2.0**-24)
    assert (np.asarray(lower_bound(one_tick, n, n, k)) > 0).all()
