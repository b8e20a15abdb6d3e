"""The budget's optimum: against enumeration of all policies, and what it refuses."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.oracles.optimum import (
    ArmLaw,
    bernoulli_law,
    best_set_rate,
    budgeted_optimum,
    independent_law,
)


def value_of(
    policy: tuple[int, ...], arms: list[ArmLaw], budget: Fraction, step: Fraction, last_pull: str
) -> Fraction:
    """Expected reward of a map from what is spent (in steps) to an arm, by walking its Markov chain
    forward exactly.

    Every probability, reward and cost is a Fraction; a pull that costs nothing is repeated, a
    geometric series.
    """
    chance = [Fraction(0)] * len(policy)
    chance[0] = Fraction(1)
    total = Fraction(0)
    for level, arm in enumerate(policy):
        outcomes = [
            tuple(Fraction(float(x)) for x in outcome) for outcome in zip(*arms[arm], strict=True)
        ]
        pulls = chance[level] / sum(p for p, _, c in outcomes if c > 0)  # expected pulls here
        for p, r, c in outcomes:
            spent = level * step + c
            total += pulls * p * (r if last_pull == "counts" or spent <= budget else 0)
            if c > 0 and spent < budget:
                chance[int(spent / step)] += pulls * p
    return total


def random_arms(seed: int, count: int) -> list[ArmLaw]:
    """Laws on quarters, probabilities in 64ths: exact Fractions; rewards depend on costs."""
    draw = np.random.default_rng(seed)
    arms = []
    for _ in range(count):
        weights = np.bincount(draw.integers(0, 6, 64), minlength=6) / 64
        cost = draw.choice([0.0, 0.25, 0.5, 0.75, 1.0], 6)
        cost[0] = draw.choice([0.25, 0.5, 0.75, 1.0])
        arms.append(ArmLaw(weights, draw.choice([0.0, 0.25, 0.5, 1.0], 6), cost))
    return [arm for arm in arms if (arm.probability * arm.cost).any()]


@pytest.mark.parametrize("last_pull", ["counts", "forfeits"])
@pytest.mark.sample_rows("forfeits")
def test_against_all_policies(last_pull: str) -> None:
    differs = 0
    for seed in range(6):
        arms = [*random_arms(seed, 3), ArmLaw(np.ones(1), np.array([0.25]), np.array([0.25]))]
        budget, step = Fraction(9, 8), Fraction(1, 4)  # five levels: 4⁵ policies at most
        values = {
            policy: value_of(policy, arms, budget, step, last_pull)
            for policy in itertools.product(range(len(arms)), repeat=5)
        }
        best = budgeted_optimum(arms, float(budget), last_pull=last_pull)
        assert best.step == 0.25 and best.choice.size == 5
        assert best.value == pytest.approx(float(max(values.values())), abs=1e-12)
        assert float(values[tuple(best.choice.tolist())]) == pytest.approx(best.value, abs=1e-12)
        ratios = [(a.probability @ a.reward) / (a.probability @ a.cost) for a in arms]
        differs += values[(int(np.argmax(ratios)),) * 5] < max(values.values())
    assert differs >= 3, "the best ratio alone is not the optimum, else this test shows little"


def test_bernoulli_costs_need_the_best_ratio_only() -> None:
    best = budgeted_optimum(
        [bernoulli_law(0.5, 0.25), bernoulli_law(0.9, 0.5)], 7.5, last_pull="counts"
    )
    # The eighth coin overshoots and counts
    assert best.value == pytest.approx(8 * 2.0) and not best.choice.any()
    forfeited = budgeted_optimum(
        [bernoulli_law(0.5, 0.25), bernoulli_law(0.9, 0.5)], 7.5, last_pull="forfeits"
    )
    # at 7 of 7.5 only rewards of pulls that cost nothing count: 0.5·0.75/0.25 against 0.9·0.5/0.5
    assert forfeited.value == pytest.approx(7 * 2.0 + 0.5 * 0.75 / 0.25)


FINE = [(0.5, 0.3), (0.5, 0.77)]  # costs of one hundredth


@pytest.mark.parametrize(
    ("arms", "budget", "words"),
    [
        ([bernoulli_law(0.5, 0.0)], 1.0, r"arms\[0\].cost: .*above 0 for some outcome"),
        ([ArmLaw(*np.array([[0.5], [1.0], [1.0]]))], 1.0, "sum to 1"),
        ([ArmLaw(*np.array([[1.0], [2.0], [1.0]]))], 1.0, r"reward: .*in \[0, 1\]"),
        ([bernoulli_law(0.5, 0.5)], 0.0, "budget: 0.0 given"),
        ([independent_law([(1.0, 0.5)], FINE)], 1e6, "budget: .*at most 200000 times"),
    ],
)
def test_refusals(arms: list[ArmLaw], budget: float, words: str) -> None:
    with pytest.raises(jb.InputError, match=words):
        budgeted_optimum(arms, budget, last_pull="counts")


def test_sets() -> None:
    with pytest.raises(jb.InputError, match="size: 4 given; it must be a whole number from 1 to 3"):
        best_set_rate([0.1, 0.2, 0.3], [0.5, 0.5, 0.5], size=4)
    with pytest.raises(jb.InputError, match="last_pull"):
        budgeted_optimum([bernoulli_law(0.5, 0.5)], 1.0, last_pull="never")
