"""Unbiased estimators against exact gradients on 20 random instances, one Bonferroni test."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest
from scipy import stats

import jaxbandits as jb
from experiments.gradients import exact_smoothed
from jaxbandits.gradients import exact, policy_score, score_function, smoothed, straight_through
from jaxbandits.policies import OmegaUCB, SoftElim, SoftIndex

I = 20  # noqa: E741
_RNG = np.random.default_rng(20)
ARMS = jb.environments.FiniteArms.bernoulli(
    _RNG.uniform(0.15, 0.85, (I, 2)), _RNG.uniform(0.6, 0.95, (I, 2))
)
HORIZON = jb.Horizon(10)
COUNTS = jb.TotalBudget(3.0, last_pull="counts")
FORFEITS = jb.TotalBudget(2.5, last_pull="forfeits")
KEY = jax.random.key(11)
MEANS = ("mean_reward", "mean_cost")
SOFT = SoftIndex(OmegaUCB(rho=0.25), temperature=0.5)


def z_values(got: jb.gradients.GradientEstimate, must: jb.gradients.GradientEstimate) -> np.ndarray:
    names = [name for name in got.gradient if name in must.gradient]
    assert names
    parts = [(got.gradient[n] - must.gradient[n]) / got.standard_error[n] for n in names]
    return np.concatenate(
        [x.ravel() for x in [*parts, (got.value - must.value) / got.standard_error["value"]]]
    )


@pytest.mark.integration
def test_unbiased_estimators(record_property: Callable[[str, object], None]) -> None:
    runs = {"key": KEY, "replicates": 4000}
    z: dict[str, np.ndarray] = {}
    for name, policy, constraint, wrt in (
        ("argmax, horizon", OmegaUCB(rho=0.25), HORIZON, ()),
        ("argmax, budget", OmegaUCB(rho=0.25), COUNTS, ()),
        ("SoftElim, horizon", SoftElim(theta=0.5), HORIZON, ("theta",)),
        ("SoftElim, forfeits", SoftElim(theta=0.5), FORFEITS, ("theta",)),
        ("soft ω-UCB, budget", SOFT, COUNTS, ("temperature", "rho")),
    ):
        truth = exact.estimate(policy, ARMS, constraint, wrt=MEANS + wrt)
        assert truth.about["missing"] < 1e-6
        if not wrt or name.endswith("forfeits"):
            z[f"score_function, {name}"] = z_values(
                score_function.estimate(policy, ARMS, constraint, **runs), truth
            )
        if wrt and not name.endswith("forfeits"):
            z[f"policy_score, {name}"] = z_values(
                policy_score.estimate(policy, ARMS, constraint, wrt=wrt, **runs), truth
            )
    short = jb.Horizon(8)
    estimate = smoothed.estimate(
        OmegaUCB(rho=0.25),
        ARMS,
        short,
        wrt="rho",
        sigma=0.5,
        key=KEY,
        replicates=2000,
        directions=2000,
    )
    truth = exact_smoothed(OmegaUCB(rho=0.25), ARMS, {"rounds": 8}, sigma=0.5, width=1e-3)
    assert truth.gradient["rho"].any()
    z["smoothed, argmax, horizon"] = z_values(estimate, truth)
    every = np.concatenate(list(z.values()))
    limit = stats.norm.isf(0.005 / every.size)
    largest = {name: float(np.abs(x).max()) for name, x in z.items()}
    record_property("largest |z|", max(largest.values()))
    assert max(largest.values()) < limit, (largest, limit)
    assert 0.8 < every.std() < 1.2, every.std()  # standard errors neither too large nor too small


@pytest.mark.integration
def test_baselines_do_not_bias_and_help() -> None:
    truth = exact.estimate(OmegaUCB(rho=0.25), ARMS, HORIZON)
    errors = {}
    for baseline in ("leave_one_out", "self_play", "none"):
        estimate = score_function.estimate(
            OmegaUCB(rho=0.25), ARMS, HORIZON, key=KEY, replicates=4000, baseline=baseline
        )
        z = z_values(estimate, truth)
        assert np.abs(z).max() < stats.norm.isf(0.005 / (3 * z.size)), baseline
        errors[baseline] = estimate.standard_error["mean_reward"].mean()
    assert errors["leave_one_out"] < min(errors["self_play"], errors["none"])


def test_straight_through_is_biased_and_says_so() -> None:
    truth = exact.estimate(SoftElim(theta=0.5), ARMS, HORIZON, wrt="theta")
    estimate = straight_through.estimate(
        SoftElim(theta=0.5), ARMS, HORIZON, wrt="theta", key=KEY, replicates=1000
    )
    assert estimate.about["unbiased_for"] == "nothing"
    z = (
        np.abs(estimate.gradient["theta"] - truth.gradient["theta"])
        / estimate.standard_error["theta"]
    )
    assert z.max() > 5, "the bias that the docs state has vanished"


@pytest.mark.integration
def test_replay_gives_back_the_ledger_exactly() -> None:
    beta = jb.environments.random_beta(jax.random.key(1), 3, 4)
    for arms, engine in ((ARMS.take([0, 1]), "leap"), (beta, "scan")):
        result = jb.simulate(
            OmegaUCB(rho=[0.25, 1.0]), arms, jb.TotalBudget(30.0, last_pull="counts"), key=KEY, replicates=5, marks=1,
            engine=engine, instance_ids=range(7, 7 + arms.instances),
        )  # fmt: skip
        ids = np.arange(7, 7 + arms.instances)
        totals = score_function.sums(
            arms, score_function._outcome, KEY, ids, np.arange(5), result.final["pulls"]
        )
        assert (
            jb.core.ticks.from_units(totals.sum(axis=3)[..., 0]) == result.ledger["reward"][..., -1]
        ).all()
        assert (
            jb.core.ticks.from_units(totals.sum(axis=3)[..., 1]) == result.ledger["spent"][..., -1]
        ).all()


@pytest.mark.integration
def test_beta_scores_have_mean_zero_and_the_right_covariance_with_the_outcome() -> None:
    """E[S] = 0 and E[x S] = ∂ E[x], for one pull of each arm, small shapes included."""
    a, b = np.array([[0.2, 0.8, 3.0]]), np.array([[0.5, 2.0, 0.3]])
    arms = jb.environments.FiniteArms.beta(a, b, b, a)
    runs = 40_000
    pulls = np.ones((1, 1, runs, 3), int)
    of = (KEY, np.arange(1), np.arange(runs), pulls)
    x = score_function.sums(arms, score_function._outcome, *of)
    scores = score_function._beta_scores(
        arms, pulls, score_function.sums(arms, score_function._logs, *of)
    )
    z = []
    for i, (kind, al, be) in enumerate((("reward", a, b), ("cost", b, a))):
        for name, by in (("alpha", be / (al + be) ** 2), ("beta", -al / (al + be) ** 2)):
            score = scores[f"{kind}_{name}"][0, 0]
            for samples, must in ((score, np.zeros(3)), (x[0, 0, :, :, i] * score, by[0])):
                z.append(
                    (samples.mean(axis=0) - must) / (samples.std(axis=0, ddof=1) / np.sqrt(runs))
                )
    assert np.abs(z).max() < stats.norm.isf(0.005 / np.size(z)), np.abs(z).max()


def test_score_function_of_several_resources_against_dynamic_programming() -> None:
    rounds, budget = 14, 4
    reward, cost = np.array([0.5, 0.7]), np.array([[0.6, 0.3], [0.4, 0.8]])
    limit = jb.TotalBudget([[budget, budget]], rounds=rounds, last_pull="counts")

    def expected(reward: np.ndarray, cost: np.ndarray) -> float:
        """Regret of a fair draw of two arms, until a resource or the time is gone."""
        rate = float(limit.prepare(two_arms).best_rate(reward[None], cost[None])[0])
        ahead = np.zeros((budget + 1, budget + 1))  # by what is left of both resources
        for _ in range(rounds):
            now = np.zeros_like(ahead)
            for a, b in np.ndindex(budget, budget):
                p, q = cost[:, 0], cost[:, 1]
                outcomes = [
                    ((1 - p) * (1 - q), (1, 1)),
                    (p * (1 - q), (0, 1)),
                    ((1 - p) * q, (1, 0)),
                    (p * q, (0, 0)),
                ]
                later = sum(chance * ahead[a + i, b + j] for chance, (i, j) in outcomes)
                now[a + 1, b + 1] = (later - reward).mean()
            ahead = now
        # Every run ends: by its rounds, or by one of the budgets.
        return rate * budget + float(ahead[budget, budget])

    def slope(name_of_means: str, place: tuple[int, ...], step: float = 1e-5) -> float:
        ends = []
        for sign in (1, -1):
            means = {"mean_reward": reward.copy(), "mean_cost": cost.copy()}
            means[name_of_means][place] += sign * step
            ends.append(expected(means["mean_reward"], means["mean_cost"]))
        return (ends[0] - ends[1]) / (2 * step)

    two_arms = jb.environments.FiniteArms.bernoulli([reward], [cost])
    split = jb.policies.FixedSplit([1.0, 1.0])
    keywords = {"key": jax.random.key(3), "replicates": 4000}
    estimate = score_function.estimate(split, two_arms, limit, **keywords)
    truth = {name: np.array([slope(name, at) for at in np.ndindex(x.shape)]).reshape(x.shape)
             for name, x in (("mean_reward", reward), ("mean_cost", cost))}  # fmt: skip
    z = [(estimate.value - expected(reward, cost)) / estimate.standard_error["value"]]
    z += [(estimate.gradient[name] - truth[name]) / estimate.standard_error[name] for name in MEANS]
    assert estimate.gradient["mean_cost"].shape == (1, 1, 2, 2)
    assert max(float(np.abs(x).max()) for x in z) < stats.norm.isf(0.005 / 7)
    beside_a_null_arm = score_function.estimate(
        split, jb.environments.WithNullArm(two_arms), limit, **keywords
    )
    for name in MEANS:
        np.testing.assert_array_equal(beside_a_null_arm.gradient[name], estimate.gradient[name])
