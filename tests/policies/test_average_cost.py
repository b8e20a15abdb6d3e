"""Policies for an average cost: against their twins, their promises, their input."""

from __future__ import annotations

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.core import streams, ticks
from jaxbandits.core.protocol import Feedback, Observation, View
from jaxbandits.core.streams import Role
from jaxbandits.environments import FiniteArms, FiniteSpec, WithNullArm
from jaxbandits.policies import (
    SUAK,
    FluidOracle,
    Guarded,
    OnePhase,
    Pacer,
    PrimalDualTwoPhase,
    UCBSimplex,
)
from tests.policies.reference import knapsack

EPS, LONGEST = 2.0**-24, 20_000
INSTANCES = {
    1: ([0.45, 0.70, 0.80], [0.30, 0.75, 0.80]),
    2: (
        [0.35, 0.45, 0.52, 0.72, 0.84, 0.90, 0.92, 0.90],
        [0.25, 0.30, 0.40, 0.60, 0.70, 0.75, 0.80, 0.85],
    ),
}
KEY = jax.random.key(3)


def traced(policy, mu, rho, c, rounds, law="beta"):
    """One lane without the engine: (actions, rewards, costs) in ticks, and the uniforms."""
    rng = np.random.default_rng(11)
    m, r = np.asarray(mu), np.asarray(rho)
    draw = (lambda x: rng.beta(10 * x, 10 * (1 - x), (rounds, len(x)))) if law == "beta" else (
        lambda x: (rng.random((rounds, len(x))) < x).astype(float)
    )  # fmt: skip
    # Rounds that nobody looks at: one program serves all lengths
    padded = ((0, LONGEST - rounds), (0, 0))
    reward, cost = (
        jnp.asarray(np.pad(ticks.from_units(draw(x)), padded), jnp.int32) for x in (m, r)
    )
    policy = jax.tree.map(
        lambda x: jnp.asarray(x, jnp.int32 if isinstance(x, int) else jnp.float32), policy
    )
    trace, uniform = _traced(policy, reward, cost, jnp.int32(int(np.floor(c * ticks.ONE))))
    return jax.tree.map(lambda x: np.asarray(x)[:rounds], trace), np.asarray(uniform, float)[
        :rounds
    ]


@jax.jit
def _traced(policy, reward, cost, limit):
    rounds, arms = reward.shape
    key = streams.domain_key(streams.lane_key(KEY, 0, 0), streams.Domain.POLICY)

    def play(carry, t):
        state, slack, last, empty = carry
        budget_left = ticks.add(slack, limit)
        state, action = policy.step(
            state,
            key,
            Observation(
                View(t, budget_left, jnp.ones(arms, bool)), last[0], Feedback(*last[1:]), empty
            ),
        )
        pulled = (action >= 0) & (action < arms)
        arm = jnp.clip(action, 0, arms - 1)
        r, c_ = (jnp.where(pulled, x[t - 1, arm], 0) for x in (reward, cost))
        account = (state.slack, state.exploring) if isinstance(policy, SUAK) else ()
        if isinstance(getattr(policy, "policy", None), UCBSimplex):
            account = (state.above, state.below)
        return (state, ticks.add(budget_left, -c_), (action, r, c_), ~pulled), (
            action,
            r,
            c_,
            account,
        )

    zero = jnp.int32(0)
    start = (
        policy.init(FiniteSpec(arms, null_arm=True)),
        ticks.zero(),
        (zero, zero, zero),
        jnp.bool_(True),
    )
    times = jnp.arange(1, rounds + 1, dtype=jnp.int32)
    _, trace = jax.lax.scan(play, start, times)
    return trace, streams.uniform(
        jax.vmap(lambda t: streams.policy_words(key, t, Role.MIX)[0])(times)
    )


def near_tie(twin, uniform):
    """Could float32 rounding have changed this decision? By the sizes that are compared."""
    base = (
        getattr(twin, "basis", None)
        or getattr(twin, "base", None)
        or getattr(twin, "solution", None)
    )
    log = math.log(max(twin.t, 2))
    if isinstance(twin, knapsack.SUAK):
        rho = twin.mean_c()
        edges = [
            abs(abs(rho[k] - twin.c) - 7 * twin.radius(k, 1.5, log))
            for k in range(twin.K)
            if twin.n[k]
        ]
        if min(edges, default=1.0) < 16 * EPS:
            return True
        if twin.branch() != "main":
            return False
        # b = ct − Sc − ln t/ω²: each term is rounded, ω with a relative error of a few units over
        # d.
        omega, plan = twin.omega(), twin.plan()
        size = abs(twin.c * twin.t - twin.spent) + log / omega**2 * (8 + 4 / omega)
        apart = abs(([*rho, 0.0])[plan.first] - ([*rho, 0.0])[plan.second])
        if abs(uniform - plan.p) < 8 * EPS * size / max(apart, 1e-3) + 16 * EPS:
            return True
    elif abs(uniform - twin.plan().p) < 64 * EPS:
        return True
    if base is None:
        return False
    if isinstance(twin, knapsack.UCBSimplex):
        mu, rho, c = twin.mean_r(), twin.mean_c(), twin.c
        mu = [mu[k] + twin.lam * twin.radius(k, 2.0, log) for k in range(twin.K)]
    else:
        bounds = twin.bounds()
        mu, rho = (bounds[1], bounds[2]) if len(bounds) == 4 else bounds
        c = twin.c if isinstance(twin, knapsack.SUAK) else twin.rate(twin.T)
    values = sorted((x.value for x in knapsack.lp_candidates(mu, rho, c)), reverse=True)
    return (
        values[0] - values[1] < 64 * EPS * max(1.0, values[0])
        or min(abs(x - c) for x in rho) < 16 * EPS
    )


def agree(policy, twin, instance, rounds, c=0.5, law="beta"):
    """Replay the trace through the twin; returns (ties, twin)."""
    mu, rho = INSTANCES[instance] if isinstance(instance, int) else instance
    (actions, reward, cost, account), uniform = traced(policy, mu, rho, c, rounds, law)
    ties = 0
    for t in range(rounds):
        action, u = int(actions[t]), float(uniform[t])
        pair_differs = False
        if account and isinstance(twin, knapsack.UCBSimplex) and action >= 0:
            basis, none = twin.basis(), twin.K
            base = (none, none) if basis is None or basis.high < 0 else (basis.high, basis.low)
            pair_differs = base != (int(account[0][t]), int(account[1][t]))
        if twin.act(u) != action or pair_differs:
            assert near_tie(twin, u), (
                f"round {t + 1}: {action}, the twin {twin.act(u)}, {twin.plan()}, uniform {u}"
            )
            ties += 1
        twin.update(action, int(reward[t]) / ticks.ONE, int(cost[t]) / ticks.ONE)
        if pair_differs:  # book the round in the pair that was chosen in float32
            pair = (int(account[0][t]), int(account[1][t]))
            for key, sign in ((base, -1), (pair, 1)):
                if key[0] < twin.K:
                    twin.pair_n[key] = twin.pair_n.get(key, 0) + sign
                    twin.pair_cost[key] = (
                        twin.pair_cost.get(key, 0.0) + sign * int(cost[t]) / ticks.ONE
                    )
        # A tie at the edge of "uncertain" is one round more or less in N_p
        if isinstance(twin, knapsack.SUAK):
            slack, exploring = jax.tree.map(lambda x, t=t: x[t], account)
            exact = int(ticks.join(slack)) - (int(cost[t]) if exploring else 0)
            if ties == 0:
                assert twin.c * twin.np_ - twin.sp == exact / ticks.ONE
            twin.sp = twin.c * twin.np_ - exact / ticks.ONE
    print(f"{type(twin).__name__}: {ties} ties in {rounds}, skips {np.sum(actions == -1)}")
    assert ties <= rounds // 500
    if isinstance(policy, Guarded | SUAK):
        assert (
            np.cumsum(cost, dtype=np.int64) <= int(c * ticks.ONE) * np.arange(1, rounds + 1)
        ).all()
    return ties, twin, actions


WIDE = ([0.3, 0.6, 0.9], [0.05, 0.9, 0.95])  # leaves phase 1 early
ROUNDS = 12_000


@pytest.mark.parametrize("horizon", [None, 20_000])
@pytest.mark.quick_rows("None")
def test_suak_against_its_twin(horizon):
    for instance, rounds in ((1, ROUNDS), (WIDE, 20_000)):
        k = 3 if instance == 1 else len(instance[0])
        _, twin, actions = agree(
            SUAK(c=0.5, horizon=horizon), knapsack.SUAK(k, 0.5, T=horizon), instance, rounds
        )
    assert twin.branch() in ("main", "skip_c")
    assert np.sum(actions[-5000:] == 1) + np.sum(actions[-5000:] == 2) > 500


@pytest.mark.integration
def test_suak_in_odd_settings_against_its_twin():
    agree(SUAK(c=1.0), knapsack.SUAK(3, 1.0), 1, 3000, c=1.0)
    agree(SUAK(c=0.03125), knapsack.SUAK(3, 0.03125), 1, 3000, c=0.03125)
    agree(SUAK(c=0.5), knapsack.SUAK(1, 0.5), ([0.5], [0.9]), 10_000, law="bernoulli")
    agree(SUAK(c=0.5), knapsack.SUAK(2, 0.5), ([0.5, 0.9], [0.0, 1.0]), 10_000, law="bernoulli")


@pytest.mark.parametrize("a", [3.0, 0.5])
@pytest.mark.parametrize("instance", [1, 2])
@pytest.mark.quick_rows("1-3.0")
def test_one_phase_against_its_twin(a, instance):
    k = len(INSTANCES[instance][0])
    agree(
        Guarded(OnePhase(c=0.5, horizon=ROUNDS, a=a)),
        knapsack.OnePhase(k, 0.5, ROUNDS, a=a),
        instance,
        ROUNDS,
    )
    # Where the guard never skips; in the same program
    free = Guarded(OnePhase(c=1.0, horizon=2000, a=a))
    _, _, actions = agree(free, knapsack.OnePhase(k, 1.0, 2000, a=a), instance, 2000, c=1.0)
    assert (actions >= 0).all()


@pytest.mark.integration
def test_primal_dual_against_its_twin():
    """With a small radius phase 1 ends."""
    cheap = [0.3, 0.9, 0.2], [0.2, 0.4, 0.3]  # as many arms as the first: one program
    for instance, a in ((1, 0.01), (1, 2.0), (2, 1e-4), (cheap, 0.05)):
        mu = (INSTANCES[instance] if isinstance(instance, int) else instance)[0]
        policy = Guarded(PrimalDualTwoPhase(c=0.5, horizon=ROUNDS, a=a))
        _, twin, _ = agree(
            policy, knapsack.PrimalDualTwoPhase(len(mu), 0.5, ROUNDS, a=a), instance, ROUNDS
        )
        assert twin.phase == (1 if a == 2.0 else 2)


@pytest.mark.parametrize("lam", [9.0, 0.25])
@pytest.mark.parametrize("instance", [1, 2])
@pytest.mark.quick_rows("1-9.0")
def test_ucb_simplex_against_its_twin(lam, instance):
    k = len(INSTANCES[instance][0])
    agree(
        Guarded(UCBSimplex(c=0.5, lam=lam)), knapsack.UCBSimplex(k, 0.5, lam=lam), instance, ROUNDS
    )


def test_pacer_price_follows_the_spending():
    mu, rho = INSTANCES[1]
    (actions, _, cost, _), _ = traced(Guarded(Pacer(c=0.5, a=0.01)), mu, rho, 0.5, 20_000)
    assert cost.sum() / ticks.ONE == pytest.approx(0.5 * 20_000, rel=0.01)
    assert np.sum(actions == 2) > 2000 and np.sum(actions == 0) > 2000


# --- through the engine ----------------------------------------------------------------------------------------

ARMS = WithNullArm(FiniteArms.bernoulli([0.3, 0.6, 0.9], [0.1, 0.5, 0.8]))
play = partial(jb.simulate, key=jax.random.key(1), replicates=40, marks=5)


def test_the_oracle_earns_the_lp_s_rate():
    result = play(
        FluidOracle([0.3, 0.6, 0.9], [0.1, 0.5, 0.8], c=0.4),
        ARMS,
        jb.AverageCost(c=0.4, rounds=4000),
    )
    regret = result.realised_regret.values[0, 0, :, -1]
    assert abs(regret.mean()) < 4 * regret.std(ddof=1) / np.sqrt(regret.size)
    assert float(result.violation.max()) > 0  # unguarded, its path strays above the line


@pytest.mark.integration
def test_arms_that_are_all_above_c():
    with pytest.raises(jb.InputError, match=r"c: 0\.05 given; .* 0\.1"):  # fmt: skip
        play(jb.policies.BGreedy(), ARMS.arms, jb.AverageCost(c=0.05, rounds=10))
    # With the null arm to mix with, no arm below c is a legal problem.
    result = play(SUAK(c=0.05), ARMS, jb.AverageCost(c=0.05, rounds=200))
    assert result.best_rate[0] == pytest.approx(0.15, abs=1e-6)
    assert float(result.violation.max()) == 0


def test_a_skip_for_the_whole_budget_is_no_round_of_exploration() -> None:
    """N_p counts rounds that S_p + 1 decided, pull or skip; not those that S_c skips."""
    policy, c = SUAK(c=jnp.float32(0.5)), ticks.ONE // 2
    state = policy.init(FiniteSpec(2, null_arm=True))
    two, none = ticks.count(jnp.int32(2)), ticks.zero()
    present = jnp.ones(2, bool)

    def slack_after(slack: ticks.Total, budget_left: ticks.Total) -> tuple[int, int]:
        after, action = policy.select(
            state._replace(slack=slack), KEY, View(jnp.int32(40), budget_left, present)
        )
        return int(ticks.join(after.slack)) - int(ticks.join(slack)), int(action)

    assert slack_after(two, two) == (c, 0), "explores: N_p grows"
    assert slack_after(none, two) == (c, -1), "S_p + 1 > c N_p: skips, N_p grows"
    assert slack_after(two, none) == (0, -1), "S_c + 1 > c t: skips, N_p does not"
    assert slack_after(none, none) == (c, -1), "both"
