"""Leap gives scan's bits, scores that rest do, and what it cannot run is refused."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxbandits as jb
from jaxbandits._engine.setup import lay_out
from jaxbandits.core import arm_statistics, ticks
from jaxbandits.core.arm_statistics import Arms
from jaxbandits.policies import base
from jaxbandits.policies.base import COARSER, IndexPolicy, evaluate_arms, safe_round
from jaxbandits.testing import assert_same_results
from tests.contract.committee import RestingCommittee

POLICIES = {
    "omega": jb.policies.OmegaUCB(rho=np.array([1 / 64, 0.25, 2.0])),
    "omega_star": jb.policies.OmegaStarUCB(rho=np.array([1 / 64, 0.25, 2.0])),
    "m": jb.policies.MUCB(alpha=np.array([2.0**-5, 2.0**-2])),
    "c": jb.policies.CUCB(alpha=np.array([2.0**-5, 2.0**-1])),
    "i": jb.policies.IUCB(alpha=np.array([2.0**-5, 2.0**-1])),
}
FAMILIES = {
    "bernoulli": jb.environments.random_bernoulli,
    "quarters": jb.environments.random_generalised_bernoulli,
    "beta": jb.environments.random_beta,
}


def same(scan, leap):
    assert_same_results(scan, leap, "scan and leap")


def both(policy, arms, constraint, **options):
    keywords = {"key": jax.random.key(11)} | options
    return tuple(
        jb.simulate(policy, arms, constraint, engine=engine, **keywords)
        for engine in ("scan", "leap")
    )


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.quick_rows("bernoulli-omega")
@pytest.mark.sample_rows("bernoulli-omega", "bernoulli-m", "quarters-omega", "beta-m")
def test_same_bits(policy, family):
    arms = FAMILIES[family](jax.random.key(3), instances=12, arms=7)
    budget = 900.0 * np.asarray(arms.mean_cost).min(axis=1) / ticks.ONE
    scan, leap = both(
        POLICIES[policy], arms, jb.TotalBudget(budget, last_pull="counts"), replicates=2, marks=9
    )
    same(scan, leap)
    assert scan.ledger["rounds"].max() > 500


@pytest.mark.parametrize("arms_count", [2, 33, 100])
@pytest.mark.parametrize("last_pull", ["counts", "forfeits"])
@pytest.mark.quick_rows("forfeits-100")
@pytest.mark.sample_rows("forfeits-100", "counts-2", "counts-33")
def test_same_bits_for_few_and_many_arms(arms_count, last_pull):
    arms = jb.environments.random_bernoulli(jax.random.key(4), instances=6, arms=arms_count)
    budget = 3000.0 * np.asarray(arms.mean_cost).min(axis=1) / ticks.ONE
    same(*both(POLICIES["omega"], arms, jb.TotalBudget(budget, last_pull=last_pull), marks=20))


@pytest.mark.integration
def test_same_bits_on_a_horizon_with_padded_instances():
    mean = np.array([[0.9, 0.5, 0.3, 0.2], [0.4, 0.6, 0.0, 0.0]])
    arms = jb.environments.FiniteArms.bernoulli(mean, mean[:, ::-1] * 0.5 + 0.1, present=mean > 0)
    scan, leap = both(POLICIES["omega"], arms, jb.Horizon(np.array([4000, 1])), replicates=3)
    same(scan, leap)
    assert leap.final["pulls"][:, 1, :, 2:].sum() == 0


@pytest.mark.integration
def test_same_bits_for_twins_among_arms_whose_scores_tie():
    logs = [[([0.5], [0.25])] * 4, [([1.0], [0.5])] * 2 + [([0.5], [0.25])] * 2]
    arms = jb.environments.FiniteArms.empirical(logs)
    same(*both(POLICIES["m"], arms, jb.TotalBudget(200.0, last_pull="counts"), replicates=4))


@pytest.mark.integration
def test_same_bits_for_arms_that_cost_nothing():
    arms = jb.environments.FiniteArms.bernoulli([0.0, 0.4, 0.0], [0.0, 0.3, 0.0])
    with pytest.warns(UserWarning, match="round_cap"):
        scan, leap = both(
            POLICIES["omega"], arms, jb.TotalBudget(5.0, last_pull="counts"), max_rounds=700
        )
    same(scan, leap)
    assert (leap.ledger["rounds"][..., -1] == 700).any()


@pytest.mark.integration
@pytest.mark.slow
def test_same_bits_of_all_members_of_a_committee() -> None:
    """All of them in one program: each lane is played by the one that its leaf names."""
    arms = jb.environments.random_beta(jax.random.key(3), instances=6, arms=7)
    budget = 600.0 * np.asarray(arms.mean_cost).min(axis=1) / ticks.ONE
    places = [
        place for place, member in enumerate(RestingCommittee.members().values()) if member.rests
    ]
    committee = RestingCommittee.played_by(np.array(places))
    limit = jb.TotalBudget(budget, last_pull="counts")
    scan, leap = both(committee, arms, limit, replicates=2, marks=5)
    same(scan, leap)
    assert len(np.unique(scan.ledger["reward"][..., -1].sum((1, 2)))) == len(places) == 8


@pytest.mark.parametrize("cap", [1, 2, 3, 64, 65, 66, 777])
@pytest.mark.integration_rows("1")
def test_the_round_cap_is_met_exactly(cap):
    """With ordinary costs; the lane that is not capped ends by its budget."""
    arms = jb.environments.FiniteArms.bernoulli(
        [[0.5, 0.4, 0.1], [0.9, 0.2, 0.3]], [[0.5, 0.3, 0.9], [0.6, 0.8, 0.7]]
    )
    budget = jb.TotalBudget(np.array([1000.0, 0.25]), last_pull="counts")
    with pytest.warns(UserWarning, match="round_cap"):
        scan, leap = both(POLICIES["omega"], arms, budget, max_rounds=cap)
    same(scan, leap)
    assert (leap.ledger["rounds"][:, 0, :, -1] == cap).all()
    assert (leap.ended[:, 0] == jb.Status.ROUND_CAP).all()


@jb.pytree
class Jitter(jb.policies.IndexPolicy):
    """A score that falls while its arm rests, by what ``rounding`` allows, odd to even."""

    rests = True

    def score(self, arms):
        odd, place = arms.t.astype(jnp.int32) & 1, (arms.n.astype(jnp.int32) * 5) & 3
        return 1 + (4 * odd + place).astype(jnp.float32) * np.float32(2.0**-23)


@jb.pytree
class Unwary(Jitter):
    """The same without a margin."""

    rests = True
    rounding = 0.0


@pytest.mark.integration
def test_the_margin_decides_a_bit():
    """Without it leap plays an arm that is led by less than a resting score may fall."""
    arms = jb.environments.FiniteArms.empirical([[([1.0], [1.0])] * 3])
    budget = jb.TotalBudget(400.0, last_pull="counts")
    scan, leap = both(Jitter(), arms, budget)
    same(scan, leap)
    scan, leap = both(Unwary(), arms, budget)
    assert (scan.final["pulls"] != leap.final["pulls"]).any()


@pytest.mark.integration
@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    budget=st.floats(2.0**-24, 60.0),
    rho=st.floats(1 / 64, 2.0),
    means=st.lists(
        st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.sampled_from([0.01, 0.25, 0.5, 1.0])),
        min_size=3,
        max_size=3,
    ),
)
def test_no_counterexample_is_found(seed, budget, rho, means):
    reward, cost = np.array(means).T
    arms = jb.environments.FiniteArms.bernoulli(reward, cost)
    limit = jb.TotalBudget(budget, last_pull="counts")
    same(
        *both(
            jb.policies.OmegaUCB(rho=rho),
            arms,
            limit,
            key=jax.random.key(seed),
            replicates=4,
            marks=5,
        )
    )


@pytest.mark.parametrize("policy", [jb.policies.BGreedy(), jb.policies.BudgetedThompson()])
def test_leap_is_refused_by_name(policy):
    arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.5, 0.4])
    limit, key = jb.TotalBudget(5.0, last_pull="counts"), jax.random.key(0)
    with pytest.raises(jb.InputError, match=f"but {type(policy).__name__}.*rests"):
        jb.simulate(policy, arms, limit, key=key, engine="leap")


def test_auto_leaps_where_that_repays_its_compilation():
    """5·10⁷ rounds × arms; before anything runs, and the same whichever policies share the call."""
    arms = jb.environments.FiniteArms.bernoulli([0.5, 0.9], [0.5, 0.4])

    def engine_of(rounds: int, replicates: int, policy: Any = None, world: Any = arms) -> Any:
        policy, limit = policy or jb.policies.OmegaUCB(), jb.Horizon(rounds)
        (task,) = lay_out(policy, world, limit, key=jax.random.key(0), replicates=replicates).tasks
        return task.engine.__name__.rsplit(".", 1)[-1], task.why_scan

    assert engine_of(1_000, 26_000) == ("leap", None) == engine_of(1_000_000, 26)
    engine, reason = engine_of(1_000, 24_000)
    assert engine == "scan" and "about 24,000,000 rounds are simulated before" in str(reason)
    many = jb.environments.random_bernoulli(jax.random.key(0), instances=1, arms=39)
    plain = jb.policies.UCBBV1(min_cost=0.1), jb.policies.UCB1()
    for policy in (*plain, *(jb.policies.SampledArms(x, arms=39) for x in plain)):
        engine, reason = engine_of(1_000_000, 26, policy, many)
        assert engine == "scan" and "leader" in reason
    assert engine_of(1_000_000, 26, jb.policies.UCB1()) == ("leap", None)


def random_states(count, seed):
    """Statistics of arms with n pulls of Beta or 0/1 outcomes, in ticks."""
    draw = np.random.default_rng(seed)
    n = np.floor(10 ** draw.uniform(0, 6, count)).astype(np.int64)
    whole = draw.random(count) < 0.5

    def totals():
        mean = draw.choice([0.0, 1.0, -1.0], count, p=[0.05, 0.05, 0.9])
        mean = np.where(mean < 0, draw.random(count), mean)
        exact = np.where(
            whole, np.rint(n * mean) * ticks.ONE, np.floor(n * mean * ticks.ONE)
        ).astype(np.int64)
        share = np.where(whole, 0.0, draw.random(count))  # Σx(1−x) is at most n·x̄(1−x̄)
        return exact, np.floor(share * exact * (1 - exact / (n * ticks.ONE))).astype(np.int64)

    (reward, reward_spread), (cost, cost_spread) = totals(), totals()
    return n, reward, cost, reward_spread, cost_spread


# --- the margin: scores that are declared to rest do, in float64 and float32 ----------------------------------------

RESTING: dict[str, IndexPolicy] = POLICIES | {
    "budget_ucb": jb.policies.BudgetUCB(min_cost=np.array([0.0, 0.02, 0.3])),
    "ucb_sc_plus": jb.policies.UCBSCPlus(),
    "ucb_sc": jb.policies.UCBSC(),
    "fractional_kube": jb.policies.FractionalKUBE(),
    "ucb_bv1": jb.policies.UCBBV1(min_cost=np.array([0.05, 0.5])),
    "pd_bwk": jb.policies.PDBwK(c_rad=np.array([0.3, 3.0])),
    "ucb_b2": jb.policies.UCBB2(min_cost=np.array([0.0, 0.1])),
    "ucb1": jb.policies.UCB1(),
    "rcb": jb.policies.RCB(),
    "ucb_v_ratio": jb.policies.UCBVRatio(),
}


def statistics_of(n, *totals):
    split = (jax.tree.map(jnp.asarray, ticks.split(x)) for x in totals)
    return arm_statistics.ArmStatistics(jnp.asarray(n, jnp.int32), *split)


def later_rounds(n: np.ndarray, seed: int) -> np.ndarray:
    return n + np.floor(10 ** np.random.default_rng(seed).uniform(0, 6, n.size)).astype(np.int64)


@pytest.mark.parametrize("name", RESTING)
def test_scores_rest_in_float64(name: str) -> None:
    """A resting arm's score never falls as t grows: 10⁵ random states, in float64."""
    n, reward, cost, reward_spread, cost_spread = random_states(100_000, seed=5)
    t, unit = later_rounds(n, 6), ticks.ONE
    with jax.enable_x64(True):
        x = (
            n,
            reward / unit,
            cost / unit,
            n - reward / unit,
            n - cost / unit,
            reward_spread / unit,
            cost_spread / unit,
        )
        f = [jnp.asarray(v, jnp.float64) for v in x]
        draw = np.random.default_rng(7)
        leaves = jax.tree.map(
            lambda v: jnp.asarray(draw.choice(np.atleast_1d(v), n.size)), RESTING[name]
        )
        # Tables in the program would be folded
        jitted = jax.jit(lambda leaves, t, f: leaves.score(Arms(t, *f)))

        def score(t: jax.Array) -> jax.Array:
            return jitted(leaves, t, f)

        now = score(jnp.asarray(t, jnp.float64))
        assert float(jnp.isfinite(now).mean()) > 0.1
        for later in (1, 10, 1000):
            then = score(jnp.asarray(t + later, jnp.float64))
            # KL-UCB-SC+ ends Newton's method after five steps and floors a mean reward of 0
            tolerance = 1e-12 * jnp.abs(now)
            assert bool(((then >= now - tolerance) | ~jnp.isfinite(now)).all())
            assert bool((jnp.isfinite(now) | (then == jnp.inf)).all())
            if name != "pd_bwk":
                assert float((then > now).mean()) > 0.1, "it rises with t"


_ULPS = {"sqrt": 1, "rsqrt": 2, "div": 2}


def coarse(name: str) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """A score as on a GPU: square roots off by up to 1 ulp, quotients by up to 2."""

    def off(x: jax.Array, ulps: int, inputs: list[jax.Array], salt: jax.Array) -> jax.Array:
        # the same error for the same numbers, as a device has it
        mixed = sum(
            jax.lax.bitcast_convert_type(x, jnp.uint32) * salt[k] for k, x in enumerate(inputs)
        )
        by = ((mixed ^ (mixed >> 15)) * jnp.uint32(0x846CA68B) >> 16) % jnp.uint32(2 * ulps + 1)
        shifted = jax.lax.bitcast_convert_type(x, jnp.int32) + by.astype(jnp.int32) - ulps
        return jnp.where(
            jnp.isfinite(x) & (x > 0), jax.lax.bitcast_convert_type(shifted, jnp.float32), x
        )

    def run(salt: jax.Array, jaxpr: Any, constants: Sequence[Any], *arguments: Any) -> list[Any]:
        values_of = dict(
            zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *arguments], strict=True)
        )
        for line in jaxpr.eqns:
            values = [
                x.val if isinstance(x, jax.extend.core.Literal) else values_of[x]
                for x in line.invars
            ]
            if line.primitive.name in ("jit", "pjit"):
                inner = line.params["jaxpr"]
                outputs = run(salt, inner.jaxpr, inner.consts, *values)
            else:
                output = line.primitive.bind(*values, **line.params)
                outputs = list(output) if line.primitive.multiple_results else [output]
            if (ulps := _ULPS.get(line.primitive.name)) and outputs[0].dtype == jnp.float32:
                outputs = [
                    off(
                        outputs[0],
                        ulps,
                        [jnp.broadcast_to(x, outputs[0].shape) for x in values],
                        salt,
                    )
                ]
            values_of |= dict(zip(line.outvars, outputs, strict=True))
        return [
            x.val if isinstance(x, jax.extend.core.Literal) else values_of[x] for x in jaxpr.outvars
        ]

    score, t = score_of_states(name), jax.ShapeDtypeStruct((STATES,), jnp.int32)
    traced = jax.make_jaxpr(score)(t)
    rounded = jax.jit(lambda constants, salt, t: run(salt, traced.jaxpr, constants, t)[0])
    return lambda salt, t: rounded(traced.consts, salt, t)


STATES, LATER = 100_000, 40


def score_of_states(name: str) -> Callable[[jax.Array], jax.Array]:
    """Scores of random states at rounds t; states are no constants, which XLA would fold."""
    state, draw = statistics_of(*random_states(STATES, seed=8)), np.random.default_rng(9)
    leaves = jax.tree.map(
        lambda v: jnp.asarray(draw.choice(np.atleast_1d(v), STATES), jnp.float32), RESTING[name]
    )
    score = jax.jit(
        lambda leaves, state, t: evaluate_arms(leaves, arm_statistics.as_floats(state, t))
    )
    return lambda t: score(leaves, state, t)


def largest_fall(
    score: Callable[[jax.Array], jax.Array],
    rounds: int,
    until: Callable[[jax.Array], jax.Array] = lambda t: t,
) -> float:
    """By how much of itself a score falls to the next round, or to the round aimed at."""
    worst, t = 0.0, jnp.asarray(later_rounds(random_states(STATES, seed=8)[0], 10), jnp.int32)
    highest = np.asarray(score(t))
    for later in range(1, rounds):
        now = np.asarray(score(until(t + later)))
        finite = np.isfinite(highest)
        assert (now[~finite] == np.inf).all()
        fall = (highest[finite] - now[finite]) / np.maximum(np.abs(highest[finite]), 1e-30)
        worst = max(worst, float(fall.max()))
        highest = np.maximum(highest, np.asarray(score(t + later)))
    return worst


@pytest.mark.parametrize("name", RESTING)
def test_float32_scores_fall_by_less_than_the_margin(name: str) -> None:
    worst, margin = largest_fall(score_of_states(name), LATER), RESTING[name].rounding
    assert 0 <= worst < margin / 2


@pytest.mark.parametrize("name", RESTING)
def test_scores_off_cpu_fall_by_less_than_the_margin_there(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "by_device", lambda *, cpu, accelerator: jnp.float32(accelerator))
    off_cpu = jax.jit(lambda t: safe_round(t))
    margin, score = RESTING[name].rounding * COARSER, coarse(name)
    salts = jnp.array([[0x9E3779B1, 0x85EBCA77], [0xC2B2AE3D, 0x27D4EB2F]], jnp.uint32)
    worst = max(largest_fall(partial(score, salt), 12, off_cpu) for salt in salts)
    assert 0 <= worst < margin / 2


@pytest.mark.parametrize("policy", ["omega_star", "m"])
def test_the_score_wrapper_gives_the_same_bits_in_different_programs(policy):
    state = statistics_of(*random_states(4096, seed=12))
    leaves = jax.tree.map(lambda x: jnp.asarray(x[0], jnp.float32), POLICIES[policy])
    t = jnp.int32(50_000)

    def table(state, t):
        return evaluate_arms(leaves, arm_statistics.as_floats(state, t))

    flat = jax.jit(table)(state, t)
    shaped = jax.tree.map(lambda x: x.reshape(64, 64), state)
    rows = jax.jit(jax.vmap(lambda s: evaluate_arms(leaves, arm_statistics.as_floats(s, t))))(
        shaped
    )
    maxima = jax.jit(
        jax.vmap(lambda s: jnp.max(evaluate_arms(leaves, arm_statistics.as_floats(s, t))))
    )(jax.tree.map(lambda x: x[:, None], state))

    def block(s, leaf_t):  # as a leap sees it: one arm, many rounds
        wide = jax.tree.map(lambda x: jnp.broadcast_to(x, (32,)), s)
        return evaluate_arms(
            leaves, arm_statistics.as_floats(wide, jnp.broadcast_to(leaf_t, (32,)))
        )[17]

    blocks = jax.jit(jax.vmap(block, in_axes=(0, None)))(state, t)
    for scores in (rows.reshape(-1), maxima, blocks):
        np.testing.assert_array_equal(np.asarray(flat), np.asarray(scores))
