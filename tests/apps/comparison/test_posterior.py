"""What counts leave open of means: a plain twin of the posterior and its addresses; what draws may
not depend on.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxbandits as jb
from jaxbandits._engine import setup
from jaxbandits.apps.comparison import ArmsTable, Evidence, Instance, worlds
from jaxbandits.apps.comparison.arms_table import Daily
from jaxbandits.apps.comparison.plan import prepare
from jaxbandits.core import streams
from jaxbandits.core.checks import InputError
from jaxbandits.core.streams import Domain, lane_words
from jaxbandits.policies import MUCB, OmegaUCB
from tests.contract.threefry import threefry

CLICKS = np.array([400.0, 250.0, 3.0, 600.0])
CONVERSIONS = np.array([40.0, 30.0, 2.0, 50.0])
SPENT = np.array([410.0, 300.0, 2.4, 500.0])


def counts(name: str, arms: int = 4, daily: tuple[Daily, ...] | None = None) -> Instance:
    n, x, s = CLICKS[:arms], CONVERSIONS[:arms], SPENT[:arms]
    evidence = Evidence("counts", n, x, s, whole=True, daily=daily)
    names = tuple(f"ad {k}" for k in range(n.size))
    return Instance(name, names, x / n, s / n, 1.0, 2.0, None, evidence)


def table(*instances: Instance, kind: str = "counts") -> ArmsTable:
    return ArmsTable(kind, instances, (), "conversions", "spent", pull_unit="click")


TWO = table(counts("one"), counts("two", 3))


def test_uniforms_stand_where_their_address_says() -> None:
    uniforms = worlds.mean_uniforms(7, 3, [0, 11], np.array([0, 5]), np.array([2, 4]))
    root = tuple(int(x) for x in np.asarray(jax.random.key_data(jax.random.key(7))))
    for i, run in enumerate((0, 11)):
        for j, (draw, arm) in enumerate(((0, 2), (5, 4))):
            # (instance, run), then the domain of means
            means = threefry(threefry(root, (3, run)), (0, 3))
            words = threefry(means, (draw, arm))
            assert uniforms[i, j].tolist() == [((word >> 8) + 0.5) / 2**24 for word in words]
    assert streams.Domain.MEANS == 3 and len(set(streams.Domain)) == 3


def test_no_draw_depends_on_other_runs_or_policies() -> None:
    short = prepare(TWO, 15.0, OmegaUCB(), runs=5, marks=2)
    assert short.worlds.noise == "clicks"
    assert short.worlds.posterior is not None
    arms = short.worlds.arms(short.table, range(5))
    reward, cost = (x.reshape(2, 5, 4) for x in arms.values())
    long = prepare(TWO, 99.0, [OmegaUCB(rho=[0.25, 1.0]), MUCB()], runs=900, marks=2)
    others = [x.reshape(2, 2, 4) for x in long.worlds.arms(long.table, [800, 3]).values()]
    for number in (1, 0):
        width = len(TWO.instances[number].arms)
        alone = [x[number, 1, :width] for x in others]
        np.testing.assert_array_equal(alone[0], reward[number, 3, :width])
        np.testing.assert_array_equal(alone[1], cost[number, 3, :width])
        means = short.worlds.posterior.instances[number].draw(0, number, [3])  # in the file's unit
        bound = short.table.instances[number].cost_bound
        np.testing.assert_allclose(means.reward[0], alone[0], atol=2**-24)
        np.testing.assert_allclose(means.cost[0], alone[1] * bound, atol=2**-22)


def test_the_posterior_is_the_one_that_the_text_states() -> None:
    posterior = worlds.posterior_of(TWO)
    n, x, s = (np.concatenate([a, a[:3]]) for a in (CLICKS, CONVERSIONS, SPENT))

    # The same integrals in other coordinates: Δ(arcsin √m) has the density (m(1 − m))^−½, Δ(ln σ)
    # that of a normal law.
    angle, log_spread = (np.linspace(*ends, 500) for ends in ((0.05, 1.0), (-4.0, 2.5)))
    m, sigma = np.sin(angle)[:, None] ** 2, np.exp(log_spread)[None, :]
    k = (1 - m) / (m * sigma**2) - 1
    a, b = m * np.where(k > 0, k, 1), (1 - m) * np.where(k > 0, k, 1)
    log = stats.norm.logpdf(np.log(sigma), np.log(0.5), 0.7)
    log = log + sum(stats.betabinom.logpmf(x[i], n[i], a, b) for i in range(n.size))
    weight = np.where(k > 0, np.exp(log - log.max()), 0)
    weight /= weight.sum()
    rate = [(weight * ((a + x[i]) / (a + b + n[i]))).sum() for i in range(n.size)]
    means = np.concatenate([instance.means()[0] for instance in posterior.instances])
    np.testing.assert_allclose(means, rate, rtol=2e-3)

    mu, tau = np.linspace(-2, 2, 801)[:, None], np.exp(np.linspace(-6, 2, 600))[None, :]
    log = stats.norm.logpdf(np.log(tau), np.log(0.5), 0.7)
    spread = (np.sqrt(0.25 / x + tau**2) for x in n)
    log = log + sum(map(stats.norm.logpdf, np.log(s / n), [mu] * n.size, spread))
    weight = np.exp(log - log.max()) / np.exp(log - log.max()).sum()
    precision, means = n / 0.25, posterior.instances[0].draw(0, 0, range(20_000))
    total = [precision[i] + tau**-2 for i in range(4)]
    center = [(precision[i] * np.log(s[i] / n[i]) + mu * tau**-2) / total[i] for i in range(4)]
    # The mean and standard deviation of ln c, of which a draw leaves out one in a thousand
    for i in range(4):
        mean = (weight * center[i]).sum()
        sd = np.sqrt((weight * (1 / total[i] + (center[i] - mean) ** 2)).sum())
        logs = np.log(means.cost[:, i])
        assert abs(logs.mean() - mean) < 4 * sd / np.sqrt(20_000)
        assert logs.std() == pytest.approx(sd, rel=0.03)
    assert posterior.cost_cv == 0.5 and posterior.cost_cv_from == "stated"


def test_mean_costs_are_those_of_what_is_drawn_with_the_doubt_of_what_arms_share() -> None:
    """Few clicks, and an m that is hardly known: exp of a wider normal law has a larger mean."""
    unit, doubtful = np.ones(1), np.array([0.4])
    pool = worlds.SharedGrid(unit, np.array([-1.0]), np.array([0.5]), doubtful)
    clicks = np.array([0.0, 1.0, 50.0])
    log_cost = np.log([1.0, 0.5, 0.3])
    costs = worlds.CountPosterior("beta", clicks, clicks / 2, log_cost, clicks / 0.25, pool, pool)
    uniform = (np.arange(100) + 0.5) / 100
    samples = [[costs._cost([0], [m], np.full(3, u))[0] for u in uniform] for m in uniform]
    np.testing.assert_allclose(costs.means()[1], np.mean(samples, axis=(0, 1)), rtol=0.01)


def test_a_draw_is_of_the_node_that_its_run_drew() -> None:
    posterior = worlds.posterior_of(TWO).instances[0]
    # Of no instance: of the file
    shared = worlds.mean_uniforms(5, 2**32 - 1, range(3), np.array([1, 2]), np.array([0, 0]))
    # The central 99.9 %
    u = 0.0005 + 0.999 * worlds.mean_uniforms(5, 1, range(3), np.zeros(4, int), np.arange(4))
    means = posterior.draw(5, 1, range(3))
    for run in range(3):
        at, cost = (
            np.searchsorted(pool.weight.cumsum(), shared[run, i, 0])
            for i, pool in enumerate((posterior.rewards, posterior.costs))
        )
        m, k = posterior.rewards.mean[at], posterior.rewards.strength[at]
        law = stats.beta(m * k + CONVERSIONS, (1 - m) * k + CLICKS - CONVERSIONS)
        np.testing.assert_allclose(means.reward[run], law.ppf(u[run, :, 0]), rtol=1e-9)
        z = stats.norm.ppf(0.0005 + 0.999 * shared[run, 1, 1])
        mean = posterior.costs.mean[cost] + z * posterior.costs.mean_sd[cost]
        weight, precision = CLICKS / 0.25, posterior.costs.strength[cost] ** -2
        center = (weight * np.log(SPENT / CLICKS) + mean * precision) / (weight + precision)
        law = stats.lognorm(s=(weight + precision) ** -0.5, scale=np.exp(center))
        np.testing.assert_allclose(means.cost[run], law.ppf(u[run, :, 1]), rtol=1e-9)


def test_no_draw_is_above_the_bound() -> None:
    plan = prepare(TWO, 15.0, OmegaUCB(), runs=400)
    assert plan.worlds.posterior is not None
    bounds = {(i.reward_bound, i.cost_bound) for i in plan.table.instances}
    assert len(bounds) == 1  # one for all
    (reward_bound, cost_bound), spread = bounds.pop(), 1 + np.sqrt(3) / 2
    for number, posterior in enumerate(plan.worlds.posterior.instances):
        means = posterior.draw(0, number, range(400))
        assert means.reward.max() < reward_bound == 1
        assert means.cost.max() * spread < cost_bound
        highest, dearest = posterior.largest()  # type: ignore[union-attr]
        assert (means.reward <= highest).all() and (means.cost <= dearest).all()
        assert dearest * spread <= cost_bound * (1 + 1e-12)


def test_days_say_how_a_cost_varies() -> None:
    clicks, spent = np.array([10.0, 20.0, 10.0]), np.array([8.0, 20.0, 12.0])  # 0.8, 1, 1.2 a click
    rows = Daily(clicks, np.array([1.0, 2.0, 1.0]), spent)
    assert worlds.day_to_day_cost_cv([rows]) == pytest.approx(np.sqrt((10 * 0.04 + 10 * 0.04) / 2))
    posterior = worlds.posterior_of(table(counts("one", daily=(rows,) * 4)))
    assert posterior.cost_cv_from == "days"
    assert posterior.cost_cv == pytest.approx(worlds.day_to_day_cost_cv([rows]))
    # Conversions vary less than by chance: no less than a binomial law
    assert posterior.dispersion == 1.0
    assert worlds.posterior_of(table(counts("one", daily=(rows,) * 4)), cost_cv=0.2).cost_cv == 0.2


def test_rates_of_many_arms_have_the_law_that_they_were_drawn_by() -> None:
    draw = np.random.default_rng(0)
    n, rate = draw.integers(20, 400, 3000).astype(float), draw.gamma(4.0, 0.5, 3000)
    pool = worlds.pooled_gamma(n, 3.0 * draw.poisson(n * rate / 3.0), 3.0)
    assert pool.weight @ pool.mean == pytest.approx(2.0, rel=0.04)
    assert np.exp(pool.weight @ np.log(pool.strength)) == pytest.approx(4.0, rel=0.1)


def test_a_log_is_the_bayesian_bootstrap_of_its_rows() -> None:
    draw = np.random.default_rng(1)
    rows = tuple((draw.uniform(0, 1, k), draw.uniform(0.1, 1, k)) for k in (5, 9))
    means = worlds.LogPosterior(rows).draw(3, 2, range(4000))
    for arm, (reward, cost) in enumerate(rows):
        u = worlds.mean_uniforms(3, 2, [17], np.arange(reward.size), np.full(reward.size, arm))
        weights = -np.log(u[0, :, 0]) / -np.log(u[0, :, 0]).sum()
        assert means.reward[17, arm] == pytest.approx((weights * reward).sum())
        assert means.cost[17, arm] == pytest.approx((weights * cost).sum())
        error = reward.std() / np.sqrt(reward.size + 1)  # Var Σ w r = Var(r) / (R + 1)
        assert abs(means.reward[:, arm].mean() - reward.mean()) < 4 * error / np.sqrt(4000)
        assert means.reward[:, arm].std() == pytest.approx(error, rel=0.05)
    of_file = (np.array([row[i].mean() for row in rows]) for i in (0, 1))
    instance = Instance("log", ("a", "b"), *of_file, 1.0, 1.0, rows)
    short = worlds.LogPosterior(rows).draw(3, 2, range(2))
    arms = worlds.run_arms([instance], [short], "empirical", 0.0)
    reward, cost = arms.values()
    np.testing.assert_allclose(reward, short.reward, atol=2**-20)
    np.testing.assert_allclose(cost, short.cost, atol=2**-20)
    # a row is drawn with its weight: the share of each row among many pulls
    key = jax.random.key(5)
    words = jax.vmap(lambda n: streams.words(key, n, 0))(jnp.arange(4000))
    law = jax.tree.map(lambda leaf: jnp.asarray(leaf[1]), arms.law)
    pulled = np.asarray(jax.vmap(lambda w: jnp.stack(law.outcome(jnp.int32(0), w)))(words)) / 2**24
    for j, weight in enumerate((short.weights or ())[0][1]):
        hits = np.isclose(pulled, [rows[0][0][j], rows[0][1][j]], atol=2**-23).all(axis=1).mean()
        assert abs(hits - weight) < 4.5 * np.sqrt(weight * (1 - weight) / 4000) + 1e-9


def test_clicks_keep_the_words_of_coins() -> None:
    instance = counts("one")
    means = worlds.DrawnMeans((CONVERSIONS / CLICKS)[None], (SPENT / CLICKS)[None])
    coins = jb.environments.FiniteArms.bernoulli(means.reward, means.cost / 2.0)
    noises = ("bernoulli", "clicks")
    same, clicks = (worlds.run_arms([instance], [means], noise, 0.3) for noise in noises)
    words = jax.vmap(lambda n: streams.words(jax.random.key(1), n, 3))(jnp.arange(2000))
    outcomes = []
    for arms in (coins, same, clicks):
        law = jax.tree.map(lambda leaf: jnp.asarray(leaf)[0], arms.law)
        pull = jax.vmap(lambda w, law=law: jnp.stack(law.outcome(jnp.int32(1), w)))
        outcomes.append(np.asarray(pull(words)))
    np.testing.assert_array_equal(outcomes[0], outcomes[1])
    np.testing.assert_array_equal(outcomes[0][:, 0], outcomes[2][:, 0])  # the same clicks convert
    np.testing.assert_array_equal(clicks.mean_cost, same.mean_cost)
    cost = outcomes[2][:, 1] / 2**24 / (SPENT[1] / CLICKS[1] / 2)
    assert abs(cost.mean() - 1) < 4 * 0.3 / np.sqrt(2000)
    assert cost.std() == pytest.approx(0.3, rel=0.05)
    assert abs(cost - 1).max() < np.sqrt(3) * 0.3 + 1e-6


def test_an_instance_may_come_twice_with_other_runs() -> None:
    arms = jb.environments.FiniteArms.bernoulli([[0.6, 0.4]] * 2, [[0.5, 0.7]] * 2)
    budget = jb.TotalBudget(12.0, last_pull="counts")
    options = {"key": jax.random.key(1), "instance_ids": [4, 4]}
    runs = np.array([[2, 5], [0, 7]])
    (task,) = setup.lay_out(OmegaUCB(), arms, budget, replicates=runs, **options).tasks
    addressed = lane_words(task.root, np.full(4, 4), runs.ravel(), Domain.WORLD)
    assert np.array_equal(task.lanes(np.arange(4)).world_key, addressed)
    with pytest.raises(InputError, match="is given twice; each must be given once"):
        setup.lay_out(OmegaUCB(), arms, budget, replicates=runs[:, :1] * 0, **options)
