"""Several resources: constraints against exact integers, oracles against linprog."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

import jaxbandits as jb
from jaxbandits.core import arm_statistics, streams, ticks
from jaxbandits.core.streams import Domain, Role
from jaxbandits.environments import FiniteArms, FiniteSpec, WithNullArm
from jaxbandits.testing import episode

KEY = jax.random.key(7)
MU = np.array([[0.3, 0.6, 0.9], [0.5, 0.2, 0.7]])
RHO = np.array([[[0.2, 0.5], [0.6, 0.3], [0.9, 0.8]], [[0.4, 0.1], [0.3, 0.6], [0.5, 0.5]]])


@jb.pytree
class Anything(jb.Policy):
    """A uniformly random action, rests included where there are any."""

    plays = FiniteSpec
    actions: int = jb.static(default=3)
    first: int = jb.static(default=0)

    def init(self, spec):
        return jnp.zeros((), jnp.int32)

    def update(self, state, key, observation):
        return state

    def select(self, state, key, view):
        return state, self.first + streams.below(
            streams.policy_words(key, view.round, Role.EXPLORE)[0], self.actions
        )


def trace(environment, policy, instance, replicate, rounds):
    """(action, reward, cost[d]) of every round in ticks, by the addresses alone."""
    arms = environment.arms if isinstance(environment, WithNullArm) else environment
    key = streams.lane_key(KEY, instance, replicate)
    world, policy_key = (streams.domain_key(key, x) for x in (Domain.WORLD, Domain.POLICY))
    words = jax.vmap(lambda t: streams.policy_words(policy_key, t, Role.EXPLORE)[0])(
        jnp.arange(1, rounds + 1)
    )
    actions = np.asarray(policy.first + streams.below(words, policy.actions))
    instance_arms = jax.tree.map(lambda x: jnp.asarray(x)[instance], arms)
    outcome = jax.vmap(
        jax.vmap(lambda a, n: instance_arms.outcome(world, a, n), (None, 0)), (0, None)
    )
    reward, cost = (np.asarray(x, np.int64) for x in outcome(jnp.arange(3), jnp.arange(rounds)))
    pulls = np.zeros(3, int)
    rows = []
    for action in actions:
        if 0 <= action < 3:
            rows.append((reward[action, pulls[action]], cost[action, pulls[action]]))
            pulls[action] += 1
        else:
            rows.append((0, np.zeros(cost.shape[-1], np.int64)))
    return rows


@pytest.mark.parametrize(
    ("last_pull", "horizon"), [("counts", None), ("forfeits", None), ("forfeits", [95, 400])]
)
@pytest.mark.integration_rows("counts-None")
def test_total_budgets(last_pull, horizon):
    environment, policy = FiniteArms.bernoulli(MU, RHO), Anything()
    budget = np.array([60.3, 47.7])
    limit = jb.TotalBudget(budget, last_pull=last_pull, rounds=horizon)
    result = jb.simulate(policy, environment, limit, key=KEY, replicates=5, marks=3)
    assert horizon is None or (result.ledger["rounds"][0, 0, :, -1] == 95).any()
    limits = [int(x * ticks.ONE) for x in budget]
    for i in range(2):
        for r in range(5):
            reward, spent, rounds = 0, [0, 0], 0
            for gain, cost in trace(environment, policy, i, r, 400):
                rounds += 1
                spent = [s + int(c) for s, c in zip(spent, cost, strict=True)]
                over = any(s > b for s, b in zip(spent, limits, strict=True))
                if last_pull == "counts" or not over:
                    reward += int(gain)
                if last_pull == "forfeits":
                    spent = [min(s, b) for s, b in zip(spent, limits, strict=True)]
                if any(s >= b for s, b in zip(spent, limits, strict=True)) or (
                    horizon and rounds == horizon[i]
                ):
                    break
            assert result.ledger["reward"][0, i, r, -1] == reward
            assert result.ledger["spent"][0, i, r, -1].tolist() == spent
            assert result.ledger["rounds"][0, i, r, -1] == rounds


def test_time_is_one_more_resource_of_the_view_and_of_the_optimum():
    environment = FiniteArms.bernoulli(MU, RHO)
    limit = jb.TotalBudget([60.5, 47.5], last_pull="counts", rounds=80)
    steps = episode(Anything(), environment, limit, KEY, 30)
    money = ticks.join(steps.observation.view.left)[0]
    spent = np.cumsum(np.asarray(steps.outcome.cost[0], np.int64), axis=0)
    assert money[:, 2].tolist() == [(80 - t) * ticks.ONE for t in range(30)]
    assert money[0, :2].tolist() == [60.5 * ticks.ONE, 47.5 * ticks.ONE]
    assert np.array_equal(money[1:, :2], money[0, :2] - spent[:-1])
    mu, rho = environment.values()
    rate = limit.prepare(environment).best_rate(mu, rho)
    for i in range(2):
        rows = np.vstack([rho[i].T, np.ones(3)])
        assert rate[i] * 60.5 == pytest.approx(
            -linprog(-mu[i], rows, [60.5, 47.5, 80.0]).fun, rel=1e-9
        )
    with pytest.raises(jb.InputError, match=r"rounds: 80 given.*BudgetAndHorizon"):
        plain = FiniteArms.bernoulli(MU, RHO[..., 0])
        jb.simulate(Anything(), plain, jb.TotalBudget(5.0, last_pull="counts", rounds=80), key=KEY)


@pytest.mark.integration
def test_money_and_rounds_with_one_cost_are_those_of_a_vector_of_length_1():
    budget, rounds, options = [20.3, 60.0], [70, 45], {"key": KEY, "replicates": 5, "marks": 3}
    both = jb.BudgetAndHorizon(budget, last_pull="forfeits", rounds=rounds)
    limit = jb.TotalBudget(np.array(budget)[:, None], last_pull="forfeits", rounds=rounds)
    arms, vectors = (FiniteArms.bernoulli(MU, x) for x in (RHO[..., 0], RHO[..., :1]))
    one = jb.simulate(Anything(), arms, both, **options)
    several = jb.simulate(Anything(), vectors, limit, **options)
    for name in ("rounds", "reward", "clock", "expected_clock"):
        assert np.array_equal(one.ledger[name], several.ledger[name]), name
    assert np.array_equal(one.spent.values, several.spent.values[..., 0])
    assert np.array_equal(one.best_rate, several.best_rate)
    assert one.rounds.values[0, 0, :, -1].max() < 70 and (one.rounds[0, 1, :, -1] == 45).all()
    leap, scan = (
        jb.simulate(jb.policies.OmegaUCB(), arms, both, **options, engine=engine)
        for engine in ("leap", "scan")
    )
    jb.testing.assert_same_results(leap, scan, "leap and scan")


@pytest.mark.integration
def test_statistics_of_several_resources_are_those_of_each():
    """What is recorded, counted while open and read, by one resource at a time, to the bit."""
    rng = np.random.default_rng(0)
    both = arm_statistics.empty(4, resources=3, spreads=True)
    single = [arm_statistics.empty(4, spreads=True)] * 3
    for action in [*rng.integers(4, size=20), *(rng.permutation(4)[:2] for _ in range(5))]:
        arm = jnp.asarray(action, jnp.int32)
        reward = jnp.asarray(rng.integers(0, ticks.ONE, np.shape(action)), jnp.int32)
        cost = jnp.asarray(rng.integers(0, ticks.ONE, (*np.shape(action), 3)), jnp.int32)
        both = arm_statistics.record(both, arm, reward, cost)
        single = [arm_statistics.record(s, arm, reward, cost[..., j]) for j, s in enumerate(single)]
    opened = jnp.array([0, 3, 1, 0], jnp.int32)
    for change in (lambda s: s, lambda s: arm_statistics.counted(s, opened)):
        for j in range(3):
            alone = arm_statistics.as_floats(change(single[j]), jnp.int32(40))
            joint = arm_statistics.as_floats(change(both), jnp.int32(40))
            names = "n reward cost reward_rest cost_rest cost_spread mean_reward"
            for name in names.split():
                a, b = getattr(alone, name), getattr(joint, name)
                assert np.array_equal(a, b[:, j] if b.ndim == 2 else b), name
            # A reciprocal, for d at once
            np.testing.assert_allclose(alone.mean_cost, joint.mean_cost[:, j], rtol=3e-7)


def test_average_costs_are_audited_every_round():
    environment, policy = WithNullArm(FiniteArms.bernoulli(MU, RHO)), Anything(actions=5, first=-1)
    c = np.array([0.31, 0.29])
    result = jb.simulate(
        policy, environment, jb.AverageCost(c, rounds=300), key=KEY, replicates=5, marks=4
    )
    limit = np.floor(c * ticks.ONE).astype(np.int64)
    positive = 0
    for i in range(2):
        for r in range(5):
            spent, worst, reward = np.zeros(2, np.int64), np.zeros(2, np.int64), 0
            for t, (gain, cost) in enumerate(trace(environment, policy, i, r, 300), start=1):
                spent, reward = spent + cost, reward + int(gain)
                worst = np.maximum(worst, spent - limit * t)
            assert result.ledger["audit:violation"][0, i, r, -1].tolist() == worst.tolist()
            assert (
                result.ledger["audit:slack"][0, i, r, -1].tolist() == (limit * 300 - spent).tolist()
            )
            assert result.ledger["reward"][0, i, r, -1] == reward
            positive += int((worst > 0).any())
    assert positive == 10  # the random policy does not keep it: the audit has something to see


def test_the_oracles_with_two_resources():
    environment = FiniteArms.bernoulli(MU, RHO)
    mu, rho = environment.values()
    average = np.floor(np.array([0.4, 0.35]) * ticks.ONE) / ticks.ONE
    for constraint, extra, c in (
        (jb.AverageCost([0.4, 0.35], rounds=10), True, average),
        (jb.TotalBudget([80.0, 50.0], last_pull="counts"), False, np.array([80.0, 50.0])),
    ):
        rate = constraint.prepare(environment).best_rate(mu, rho)
        for i in range(2):
            rows = np.vstack([rho[i].T, np.ones(3)]) if extra else rho[i].T
            limits = np.append(c, 1.0) if extra else c
            value = -linprog(-mu[i], A_ub=rows, b_ub=limits, bounds=(0, None)).fun
            assert rate[i] == pytest.approx(value if extra else value / 80.0, rel=1e-9)


def test_the_guard_minds_every_resource():
    guarded = jb.policies.Guarded(Anything(actions=5, first=-1))
    environment = WithNullArm(FiniteArms.bernoulli(MU, RHO))
    result = jb.simulate(
        guarded, environment, jb.AverageCost([0.3, 0.35], rounds=500), key=KEY, replicates=20
    )
    assert float(result.violation.max()) == 0.0
    assert (result.spent[..., -1, :] > 100).all()


def test_wrong_budgets_name_the_argument():
    environment = FiniteArms.bernoulli(MU, RHO)
    with pytest.raises(jb.InputError, match=r"budget: an array of shape \(3,\) given"):
        jb.simulate(
            Anything(), environment, jb.TotalBudget([1.0, 2.0, 3.0], last_pull="counts"), key=KEY
        )
    with pytest.raises(jb.InputError, match=r"c: 1\.5 given; it must be a number in \(0, 1\]"):
        jb.simulate(Anything(), environment, jb.AverageCost([0.5, 1.5], rounds=10), key=KEY)
    with pytest.raises(jb.InputError, match=r"c: 0\.15 given"):
        jb.simulate(Anything(), environment, jb.AverageCost([0.15, 0.5], rounds=10), key=KEY)


def test_several_resources_are_columns_not_rows():
    limit = jb.TotalBudget([6.0, 9.0], last_pull="counts")
    result = jb.simulate(
        Anything(), FiniteArms.bernoulli(MU, RHO), limit, key=KEY, replicates=3, marks=2
    )
    table = result.to_pandas()
    assert len(table) == 12
    assert {"spent_0", "spent_1"} <= set(table)
    assert not {"spent", "resource"} & set(table)
    assert table["spent_1"].tolist() == result.spent.values[..., 1].ravel().tolist()


@pytest.mark.parametrize("rule", ["counts", "forfeits"])
@pytest.mark.sample_rows("forfeits")
def test_ten_dimes_are_a_dollar_everywhere(rule: str) -> None:
    arms = FiniteArms.empirical([[([0.5], [0.1])]])
    table = jb.environments.RequestTable.of([[0.5]] * 3, [[0.1]] * 3)
    dollar = jb.TotalBudget(1.0, last_pull=rule)
    for world in (arms, table):
        result = jb.simulate(jb.policies.MUCB(), world, dollar, key=jax.random.key(0), marks=1)
        assert (result.reward.item(), result.rounds.item()) == (5.0, 10)
    purse = jb.environments.Stocked.of(arms, money=[[1.0]], last_pull=rule)
    result = jb.simulate(jb.policies.MUCB(), purse, jb.Horizon(30), key=jax.random.key(0), marks=1)
    assert (result.reward.item(), result.final["pulls"].item()) == (5.0, 10)


def test_prices_that_are_no_decimals_change_no_budget() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        prices = rng.uniform(0.01, 1, 3)
        arms = FiniteArms.empirical([[([0.5], [price]) for price in prices]])
        budget = float(rng.uniform(1, 100))
        limit = jb.TotalBudget(budget, last_pull="counts").prepare(arms)
        assert ticks.join(limit.budget)[0] == int(budget * 2**24)  # type: ignore[attr-defined]


def test_costs_that_vary_in_cents_end_where_decimals_end() -> None:
    """Rows of one arm, and cells of a table, cost different cents."""
    rng = np.random.default_rng(62)
    for case in range(40):
        cents = rng.integers(1, 60, rng.integers(2, 5))
        arms = FiniteArms.empirical([[([0.5] * len(cents), list(cents / 100))]])
        table = jb.environments.RequestTable.of(np.full((len(cents), 1), 0.5), cents[:, None] / 100)
        order = rng.integers(0, len(cents), 4000)
        budget = int(np.cumsum(cents[order])[rng.integers(2, 60)])
        stocked = jb.environments.Stocked.of(arms, pulls=[5000])
        resting = jb.environments.WithNullArm(table)
        late = jb.environments.Delayed(arms, jb.environments.FixedDelay(2))
        for world in (arms, table, stocked, resting, late):
            listed = np.asarray(world.listed_costs()).reshape(len(cents))
            amount = budget / 100 if world is not late else [budget / 100]
            paid = np.cumsum(listed[order])  # type: ignore[arg-type]
            for rule in ("counts", "forfeits"):
                limit = jb.TotalBudget(amount, last_pull=rule).prepare(world)
                end, sums = ticks.join(limit.budget).ravel()[0], np.cumsum(cents[order])  # type: ignore[attr-defined]
                same = (paid < end, sums < budget) if rule == "counts" else (paid <= end, sums <= budget)  # fmt: skip
                assert (same[0] == same[1]).all(), (case, cents, budget, rule)
