"""What a policy cannot be, or cannot play, is refused in one line; one table for the room."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import policies as p
from jaxbandits.environments import (
    Delayed,
    FiniteArms,
    FixedDelay,
    Reservoir,
    WithNullArm,
    cost_valley,
)
from tests.contract.worlds import KEY

COUNTS = jb.TotalBudget(5.0, last_pull="counts")
MONEY = jb.TotalBudget([5.0, 4.0], last_pull="counts")
PACED = jb.TotalBudget([5.0, 4.0], last_pull="counts", rounds=9)
AVERAGE, HORIZON = jb.AverageCost(c=0.4, rounds=10), jb.Horizon(10)
RENEWING = jb.Renewing(amount=[5.0], every=[2], requests=[8, 12])
ARMS = FiniteArms.bernoulli([0.3, 0.6, 0.9], [0.1, 0.5, 0.8])
TWO = FiniteArms.bernoulli([[0.3, 0.6]], [[[0.1, 0.2], [0.5, 0.6]]])
NULL, VALLEY = WithNullArm(ARMS), cost_valley([0.3], 0.5)
DEEP = Reservoir.ratio(jax.random.key(0), instances=2, capacity=4)
SPLIT, HISTORY = p.FixedSplit([1, 1, 1]), p.History.of([1], [1], [1])
B_ZOOM = p.BZoom(lam=0.5, lipschitz=1.0)
SINGLE: Any = {"lam": 0.5, "lipschitz": 1.0}
MEANS, COSTS = [0.3, 0.6, 0.9], [0.1, 0.5, 0.8]
ALONE = "an index policy that chooses by its score alone"

REFUSED = [
    # average cost
    (p.SUAK(c=0.0), NULL, AVERAGE, r"SUAK\.c: 0\.0 given"),
    (p.SUAK(c=0.4, horizon=0), NULL, AVERAGE, r"SUAK\.horizon: 0\.0 given"),
    (p.OnePhase(c=0.4, horizon=2.5), NULL, AVERAGE, r"OnePhase\.horizon: 2\.5 given"),
    (p.PrimalDualTwoPhase(c=-1.0, horizon=10), NULL, AVERAGE, r"PrimalDualTwoPhase\.c: -1\.0 given"),
    (p.UCBSimplex(c=0.4, lam=-1.0), NULL, AVERAGE, r"UCBSimplex\.lam: -1\.0 given"),
    (p.FluidOracle([0.5, 0.5, 2.0], COSTS, c=0.4), NULL, AVERAGE, r"FluidOracle\.mean_reward: 2\.0"),
    (p.Guarded(p.SUAK(c=0.4), max_cost=0.0), NULL, AVERAGE, r"Guarded\.max_cost: 0\.0 given"),
    (p.SUAK(c=0.4), ARMS, AVERAGE, "environment: 'no null arm' given"),
    (p.OnePhase(c=0.4, horizon=10), ARMS, AVERAGE, "environment: 'no null arm' given"),
    (p.PrimalDualTwoPhase(c=0.4, horizon=10), ARMS, AVERAGE, "environment: 'no null arm' given"),
    (p.UCBSimplex(c=0.4), ARMS, AVERAGE, "environment: 'no null arm' given"),
    (p.Pacer(c=0.4), ARMS, AVERAGE, "environment: 'no null arm' given"),
    (p.FluidOracle(MEANS, COSTS, c=0.4), ARMS, AVERAGE, "environment: 'no null arm' given"),
    (p.SUAK(c=0.4), WithNullArm(TWO), jb.AverageCost(c=[0.4, 0.4], rounds=9), "'costs as a vector of length 2' given"),
    # several resources
    (p.LagrangeBwK(), TWO, MONEY, "no horizon given; LagrangeBwK needs one"),
    (p.DualMirrorDescent(), TWO, PACED, "no null arm"),
    (p.InFlight(p.PrimalDualBwK()), Delayed(ARMS, FixedDelay(2), room=8), RENEWING, "renewing budgets given"),
    (p.UCBBwK(), TWO, HORIZON, "it does not report what is left"),
    # forgetting
    (p.Windowed(p.EpsilonFirst(), window=5), ARMS, HORIZON, "policy"),
    (p.Windowed(p.OmegaUCB(), window=0), ARMS, HORIZON, "window"),
    (p.Discounted(p.EpsilonFirst(), gamma=0.9), ARMS, HORIZON, "policy"),
    (p.Discounted(p.ThompsonLP(), gamma=0.9), ARMS, HORIZON, "policy"),
    (p.Discounted(p.OmegaUCB(), gamma=1.5), ARMS, HORIZON, "gamma"),
    (p.Discounted(p.OmegaUCB(), gamma=0.9, per="day"), ARMS, HORIZON, "per"),
    (p.Restarting(p.OmegaUCB(), p.OmegaUCB()), ARMS, HORIZON, "detector"),
    (p.Restarting(p.EpsilonFirst(), p.GLR(), whole=False), ARMS, HORIZON, "policy"),
    (p.Restarting(p.OmegaUCB(), p.CUSUM(threshold=0.0)), ARMS, HORIZON, "threshold"),
    # a history, batches, soft indices
    (p.experienced(p.UCB1(), HISTORY), ARMS, COUNTS, "history: '1 numbers' given; .* 3 arms"),
    (p.experienced(SPLIT, HISTORY), ARMS, COUNTS, "policy: 'FixedSplit' given"),
    (p.InBatches(SPLIT, size=2), ARMS, COUNTS, "policy: 'FixedSplit' given"),
    (p.SoftIndex(p.BGreedy(), 1.0), ARMS, COUNTS, ALONE),
    (p.SoftIndex(p.BudgetedThompson(), 1.0), ARMS, COUNTS, ALONE),
    (p.SoftIndex(p.SoftElim(), 1.0), ARMS, COUNTS, ALONE),
    # points of a continuum
    (p.BZoom(lam=0.0, lipschitz=1.0), VALLEY, COUNTS, "BZoom.lam: 0.0 given"),
    (p.BZoom(lam=0.5, lipschitz=0.0), VALLEY, COUNTS, "BZoom.lipschitz: 0.0 given"),
    (p.BZoom(**SINGLE, capacity=0), VALLEY, COUNTS, "BZoom.capacity: 0 given"),
    (p.SinglePhaseBZoom(budget=-1.0, **SINGLE), VALLEY, COUNTS, "SinglePhaseBZoom.budget: -1.0 given"),
    (p.SinglePhaseBZoom(budget=0.25, **SINGLE), VALLEY, COUNTS, "budget: 0.25 given; .* at least lam"),
    (p.SinglePhaseZooming(budget=0.25, **SINGLE), VALLEY, COUNTS, "budget: 0.25 given; .* at least lam"),
    (p.HOO(lam=0.5, nu=1.0, depth=15), VALLEY, COUNTS, "HOO.depth: 15 given; .* from 1 to 14"),
    (p.StoOO(lam=0.5, nu=1.0, horizon=10.0, capacity=0), VALLEY, COUNTS, "StoOO.capacity: 0 given"),
    (p.OnPoints(p.UCB1(), points=[0.2, 0.2]), VALLEY, COUNTS, "OnPoints.points: two points"),
    (p.OnPoints(B_ZOOM, points=[0.2]), VALLEY, COUNTS, "OnPoints.policy: .* finitely many arms"),
    # infinitely many arms
    (p.SampledArms(p.RCB(), 5), DEEP, COUNTS, "capacity: 4 given; .* 5, the arms of SampledArms"),
    (p.SampledArms(p.RCB(), 2.5), DEEP, COUNTS, r"SampledArms\.arms: 2\.5 given"),
    (p.ArmIncreasing(p.RCB(), 0.0), DEEP, COUNTS, r"ArmIncreasing\.beta: 0\.0 given"),
    (p.ArmIncreasing(p.RCB(p.LogExploration(-1.0)), 1.0), DEEP, COUNTS, r"LogExploration\.scale: -1\.0"),
    (p.ArmIncreasing(p.BudgetedThompson(), 1.0), DEEP, COUNTS, "policy: .* an index policy"),
]  # fmt: skip
NUMBERS: list[Any] = [
    (lambda: p.History.of([1.5, 2], [1, 1], [1, 1]), r"pulls: \[1.5, 2\] given; .* whole numbers"),
    (lambda: p.History.of([1, 2], [1, 3], [1, 1]), r"reward: \[1.0, 3.0\] given"),
    (lambda: p.History.of([1, 2], [1], [1, 1]), r"pulls, reward, cost: shapes \[2\] and \[1\]"),
    (lambda: p.arms_to_sample(0.0, 1.0), "budget: .* given"),
    (lambda: p.arms_to_sample(1e3, 1.0, np.nan), "multiplier: .* given"),
]


@pytest.mark.parametrize(
    ("policy", "world", "limit", "message"),
    REFUSED,
    ids=[f"{type(row[0]).__name__}-{row[3][:20]}" for row in REFUSED],
)
def test_what_cannot_be_played_is_refused(
    policy: Any, world: Any, limit: Any, message: str
) -> None:
    with pytest.raises(jb.InputError, match=message) as refused:
        jb.simulate(policy, world, limit, key=KEY)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("make", "message"), NUMBERS)
def test_what_cannot_be_made_is_refused(make: Any, message: str) -> None:
    with pytest.raises(jb.InputError, match=message):
        make()
