"""The leap engine gives the scan engine's bits, and refuses what it cannot run."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxbandits as jb
from jaxbandits._engine.setup import lay_out
from jaxbandits.core import arm_statistics, ticks
from jaxbandits.core.arm_statistics import Arms
from jaxbandits.policies.base import evaluate

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


def assert_same(a, b):
    chex.assert_trees_all_equal(*((dict(x.ledger), x.final["pulls"], x.ended) for x in (a, b)))


def both(policy, arms, constraint, **options):
    return tuple(
        jb.simulate(policy, arms, constraint, key=jax.random.key(11), engine=engine, **options)
        for engine in ("scan", "leap")
    )


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.integration_rows(
    "bernoulli-c",
    "bernoulli-i",
    "bernoulli-m",
    "bernoulli-omega_star",
    "beta-c",
    "beta-i",
    "beta-m",
    "beta-omega",
    "beta-omega_star",
    "quarters-c",
    "quarters-m",
    "quarters-omega",
    "quarters-omega_star",
)
def test_same_bits(policy, family):
    arms = FAMILIES[family](jax.random.key(3), instances=12, arms=7)
    budget = 900.0 * np.asarray(arms.mean_cost).min(axis=1) / ticks.ONE
    scan, leap = both(POLICIES[policy], arms, jb.TotalBudget(budget, last_pull="counts"), replicates=2, marks=9)
    assert_same(scan, leap)
    assert scan.ledger["rounds"].max() > 500


@pytest.mark.parametrize("arms_count", [2, 33, 100])
@pytest.mark.parametrize("last_pull", ["counts", "forfeits"])
@pytest.mark.integration_rows("counts-100", "counts-2", "counts-33", "forfeits-2", "forfeits-33")
def test_same_bits_for_few_and_many_arms(arms_count, last_pull):
    arms = jb.environments.random_bernoulli(jax.random.key(4), instances=6, arms=arms_count)
    budget = 3000.0 * np.asarray(arms.mean_cost).min(axis=1) / ticks.ONE
    assert_same(*both(POLICIES["omega"], arms, jb.TotalBudget(budget, last_pull=last_pull), marks=20))


@pytest.mark.integration
def test_same_bits_on_a_horizon_with_padded_instances():
    mean = np.array([[0.9, 0.5, 0.3, 0.2], [0.4, 0.6, 0.0, 0.0]])
    arms = jb.environments.FiniteArms.bernoulli(mean, mean[:, ::-1] * 0.5 + 0.1, present=mean > 0)
    scan, leap = both(POLICIES["omega"], arms, jb.Horizon(np.array([4000, 1])), replicates=3)
    assert_same(scan, leap)
    assert leap.final["pulls"][:, 1, :, 2:].sum() == 0


@pytest.mark.integration
def test_same_bits_for_twins_among_arms_whose_scores_tie():
    logs = [[([0.5], [0.25])] * 4, [([1.0], [0.5])] * 2 + [([0.5], [0.25])] * 2]
    arms = jb.environments.FiniteArms.empirical(logs)
    assert_same(*both(POLICIES["m"], arms, jb.TotalBudget(200.0, last_pull="counts"), replicates=4))


@pytest.mark.integration
def test_same_bits_for_arms_that_cost_nothing():
    arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4, 0.1], [0.0, 0.3, 0.0])
    with pytest.warns(UserWarning, match="round_cap"):
        scan, leap = both(POLICIES["omega"], arms, jb.TotalBudget(5.0, last_pull="counts"), max_rounds=700)
    assert_same(scan, leap)
    assert (leap.ledger["rounds"][..., -1] == 700).any()


@pytest.mark.parametrize("cap", [1, 2, 3, 64, 65, 66, 777])
@pytest.mark.integration_rows("1")
def test_the_round_cap_is_met_exactly(cap):
    """With ordinary costs; the lane that is not capped ends by its budget."""
    arms = jb.environments.FiniteArms.bernoulli([[0.5, 0.4, 0.1], [0.9, 0.2, 0.3]], [[0.5, 0.3, 0.9], [0.6, 0.8, 0.7]])
    budget = jb.TotalBudget(np.array([1000.0, 0.25]), last_pull="counts")
    with pytest.warns(UserWarning, match="round_cap"):
        scan, leap = both(POLICIES["omega"], arms, budget, max_rounds=cap)
    assert_same(scan, leap)
    assert (leap.ledger["rounds"][:, 0, :, -1] == cap).all() and (leap.ended[:, 0] == jb.Status.ROUND_CAP).all()


@jb.pytree
class Jitter(jb.policies.IndexPolicy):
    """A score that falls while its arm rests, by as much as ``rounding`` allows: from odd to even rounds."""

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
    """Without it the leap engine plays an arm that another one leads by less than what a resting score may fall."""
    arms = jb.environments.FiniteArms.empirical([[([1.0], [1.0])] * 3])
    budget = jb.TotalBudget(400.0, last_pull="counts")
    scan, leap = both(Jitter(), arms, budget)
    assert_same(scan, leap)
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
    results = [
        jb.simulate(
            jb.policies.OmegaUCB(rho=rho), arms, limit, key=jax.random.key(seed), replicates=4, marks=5, engine=engine
        )
        for engine in ("scan", "leap")
    ]
    assert_same(*results)


@pytest.mark.parametrize(
    ("policy", "reason"), [(jb.policies.BGreedy(), "rests"), (jb.policies.BudgetedThompson(), "rests")]
)
def test_leap_is_refused_by_name(policy, reason):
    arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.5, 0.4])
    with pytest.raises(jb.InputError, match=f"engine: 'leap' given, but {type(policy).__name__}.*{reason}"):
        jb.simulate(policy, arms, jb.TotalBudget(5.0, last_pull="counts"), key=jax.random.key(0), engine="leap")


def test_auto_leaps_where_that_repays_its_compilation():
    """5·10⁷ rounds × arms; before anything runs, and the same whichever policies share the call."""
    arms = jb.environments.FiniteArms.bernoulli([0.5, 0.9], [0.5, 0.4])

    def chosen(rounds: int, replicates: int) -> tuple[str, str | None]:
        (task,) = lay_out(
            jb.policies.OmegaUCB(), arms, jb.Horizon(rounds), key=jax.random.key(0), replicates=replicates
        ).tasks
        return task.engine.__name__.rsplit(".", 1)[-1], task.why_scan

    assert chosen(1_000, 26_000) == ("leap", None) == chosen(1_000_000, 26)
    engine, why = chosen(1_000, 24_000)
    assert engine == "scan" and "about 24,000,000 rounds are played sooner" in str(why)
    with pytest.raises(jb.InputError, match="engine"):
        jb.simulate(jb.policies.OmegaUCB(), arms, jb.Horizon(10), key=jax.random.key(0), engine="fast")


def random_states(count, seed):
    """Statistics of arms with n pulls of Beta or 0/1 outcomes, in ticks."""
    draw = np.random.default_rng(seed)
    n = np.floor(10 ** draw.uniform(0, 6, count)).astype(np.int64)
    whole = draw.random(count) < 0.5

    def totals():
        mean = draw.choice([0.0, 1.0, -1.0], count, p=[0.05, 0.05, 0.9])
        mean = np.where(mean < 0, draw.random(count), mean)
        exact = np.where(whole, np.rint(n * mean) * ticks.ONE, np.floor(n * mean * ticks.ONE)).astype(np.int64)
        share = np.where(whole, 0.0, draw.random(count))  # Σx(1−x) is at most n·x̄(1−x̄)
        return exact, np.floor(share * exact * (1 - exact / (n * ticks.ONE))).astype(np.int64)

    (reward, reward_spread), (cost, cost_spread) = totals(), totals()
    return n, reward, cost, reward_spread, cost_spread


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_scores_rest_in_float64(policy):
    """While an arm rests its score never falls as t grows: 2·10⁵ random states, exact formula in float64."""
    n, reward, cost, rs, cs = random_states(200_000, seed=5)
    one = ticks.ONE
    t = n + np.floor(10 ** np.random.default_rng(6).uniform(0, 6, n.size))
    with jax.enable_x64(True):
        f = [
            jnp.asarray(x, jnp.float64)
            for x in (n, reward / one, cost / one, n - reward / one, n - cost / one, rs / one, cs / one)
        ]
        leaves = jax.tree.map(
            lambda x: jnp.asarray(np.random.default_rng(7).choice(np.asarray(x), n.size), jnp.float64), POLICIES[policy]
        )
        now = leaves.score(Arms(jnp.asarray(t, jnp.float64), *f))
        for later in (1, 10, 1000):
            then = leaves.score(Arms(jnp.asarray(t + later, jnp.float64), *f))
            tolerance = 1e-13 * jnp.abs(now)
            assert bool(((then >= now - tolerance) | ~jnp.isfinite(now)).all())
            assert bool((jnp.isfinite(now) | (then == jnp.inf)).all())


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_float32_scores_fall_by_less_than_the_margin(policy):
    n, reward, cost, rs, cs = random_states(200_000, seed=8)
    state = arm_statistics.ArmStatistics(
        jnp.asarray(n, jnp.int32), *(jax.tree.map(jnp.asarray, ticks.split(x)) for x in (reward, cost, rs, cs))
    )
    leaves = jax.tree.map(
        lambda x: jnp.asarray(np.random.default_rng(9).choice(x, n.size), jnp.float32), POLICIES[policy]
    )
    t = jnp.asarray(n + np.floor(10 ** np.random.default_rng(10).uniform(0, 6, n.size)), jnp.int32)
    score = jax.jit(lambda t: evaluate(leaves, arm_statistics.as_floats(state, t)))
    worst = 0.0
    for later in range(1, 40):
        now, then = np.asarray(score(t + later - 1)), np.asarray(score(t + later))
        finite = np.isfinite(now)
        assert (then[~finite] == np.inf).all()
        fall = (now[finite] - then[finite]) / np.maximum(np.abs(now[finite]), 1e-30)
        worst = max(worst, float(fall.max()))
    assert 0 <= worst < POLICIES[policy].rounding / 2


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.integration_rows("i")
def test_the_score_wrapper_gives_the_same_bits_in_different_programs(policy):
    n, reward, cost, rs, cs = random_states(4096, seed=12)
    state = arm_statistics.ArmStatistics(
        jnp.asarray(n, jnp.int32), *(jax.tree.map(jnp.asarray, ticks.split(x)) for x in (reward, cost, rs, cs))
    )
    leaves = jax.tree.map(lambda x: jnp.asarray(x[0], jnp.float32), POLICIES[policy])
    t = jnp.int32(50_000)

    def table(state, t):
        return evaluate(leaves, arm_statistics.as_floats(state, t))

    flat = jax.jit(table)(state, t)
    shaped = jax.tree.map(lambda x: x.reshape(64, 64), state)
    rows = jax.jit(jax.vmap(lambda s: evaluate(leaves, arm_statistics.as_floats(s, t))))(shaped)
    ones = jax.jit(jax.vmap(lambda s: jnp.max(evaluate(leaves, arm_statistics.as_floats(s, t)))))(
        jax.tree.map(lambda x: x[:, None], state)
    )

    def block(s, leaf_t):  # as a leap sees it: one arm, many rounds
        wide = jax.tree.map(lambda x: jnp.broadcast_to(x, (32,)), s)
        return evaluate(leaves, arm_statistics.as_floats(wide, jnp.broadcast_to(leaf_t, (32,))))[17]

    blocks = jax.jit(jax.vmap(block, in_axes=(0, None)))(state, t)
    for other in (rows.reshape(-1), ones, blocks):
        np.testing.assert_array_equal(np.asarray(flat), np.asarray(other))
