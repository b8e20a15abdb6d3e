"""Every policy keeps the contract. A new policy is one more row; worlds take turns."""

from __future__ import annotations

import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import policies as p
from jaxbandits.core.protocol import Constraint, Policy
from jaxbandits.testing import check_policy

from .committee import Committee
from .worlds import KEY, world

COUNTS = jb.TotalBudget(40.0, last_pull="counts")
FORFEITS = jb.TotalBudget([20.0, 40.0, 10.0], last_pull="forfeits")
HORIZON = jb.Horizon(80)
TWO = jb.TotalBudget([40.0, 30.0], last_pull="counts")
TWO_AND_TIME = jb.TotalBudget(
    [[40.0, 30.0], [30.0, 40.0], [20.0, 60.0]], last_pull="forfeits", rounds=[80, 70, 60]
)
AVERAGE = jb.AverageCost(c=0.6, rounds=80)
PACED = jb.TotalBudget([40.0, 30.0], last_pull="counts", rounds=80)
RENEWING = jb.Renewing(
    amount=[5.0, 3.0], every=[2, 4], requests=[8, 12, 0, 20, 9, 11, 5, 15], carry_over=[False, True]
)

ROWS: list[tuple[Policy, str, Constraint]] = [
    (p.OmegaUCB(rho=0.25), "bernoulli", COUNTS),
    (p.OmegaStarUCB(rho=0.25), "beta", COUNTS),
    (p.MUCB(), "empirical", FORFEITS),
    (p.CUCB(alpha=[[0.1, 0.2, 0.3]]), "generalised_bernoulli", COUNTS),
    (p.IUCB(), "bernoulli", HORIZON),
    (p.BGreedy(), "generalised_bernoulli", FORFEITS),
    (p.BudgetedThompson(), "beta", FORFEITS),
    (p.EpsilonFirst(epsilon=0.25), "bernoulli", FORFEITS),
    (p.KUBE(), "empirical", COUNTS),
    (p.MRCB(pulls=2), "generalised_bernoulli", COUNTS),
    (p.FixedSplit([3.0, 1.0, 0.0, 2.0]), "bernoulli", COUNTS),
    (p.BestRatioOracle([0.5, 0.2, 0.7, 0.4], [0.6, 0.3, 0.9, 0.4]), "bernoulli", COUNTS),
    # One program plays the policies that are a score and nothing else, so that they do not compile
    # one by one.
    *(
        (Committee.played_by(place), "empirical", COUNTS)
        for place in range(len(Committee.members()))
    ),
    (p.SampledArms(p.RCB(), arms=5), "reservoir", FORFEITS),
    (p.ArmIncreasing(p.UCBVRatio(), beta=1.0), "reservoir_of_a_sampler", COUNTS),
    (p.Guarded(p.OmegaUCB(rho=0.5)), "null_arm", AVERAGE),
    (p.SUAK(c=0.6), "null_arm", AVERAGE),
    (p.OnePhase(c=0.6, horizon=80), "null_arm", AVERAGE),
    (p.PrimalDualTwoPhase(c=0.6, horizon=80, a=0.02), "null_arm", AVERAGE),
    (p.UCBSimplex(c=0.6), "null_arm", AVERAGE),
    (p.Pacer(c=0.6), "null_arm", AVERAGE),
    (p.FluidOracle([0.5, 0.2, 0.7, 0.4], [0.6, 0.3, 0.9, 0.4], c=0.6), "null_arm", AVERAGE),
    (p.SoftElim(theta=0.5), "bernoulli", HORIZON),
    (p.SoftIndex(p.OmegaUCB(rho=0.25), temperature=0.5), "beta", COUNTS),
    (p.PrimalDualBwK(), "several_resources", TWO_AND_TIME),
    (p.PrimalDualBwK(bounds=p.WilsonBounds()), "empirical", COUNTS),
    (p.UCBBwK(bounds=p.WilsonBounds(), epsilon=0.125), "several_resources", TWO_AND_TIME),
    (p.ThompsonLP(update_budgets=False), "several_resources", TWO),
    (p.EpsilonFirstLP(epsilon=0.25), "several_resources", TWO_AND_TIME),
    (p.LagrangeBwK(), "several_resources", TWO_AND_TIME),
    (p.DualMirrorDescent(), "several_resources_and_null_arm", TWO_AND_TIME),
    (
        p.KnapsackOracle(np.full(4, 0.5), np.linspace(0.3, 0.9, 8).reshape(4, 2)),
        "several_resources",
        TWO_AND_TIME,
    ),
    (p.Windowed(p.OmegaUCB(), window=20), "piecewise", COUNTS),
    (p.Discounted(p.BudgetedThompson(), gamma=0.95), "piecewise", FORFEITS),
    (p.Discounted(p.PrimalDualBwK(), gamma=0.9), "several_resources", TWO_AND_TIME),
    (p.Restarting(p.MUCB(), p.CUSUM(threshold=2.0, first=5), explore=0.1), "piecewise", HORIZON),
    (p.ContextualPacer(explore=p.Draw(0.25), cost_alpha=0.5), "contexts", PACED),
    (p.LinUCB(price=0.5, shared=True, explore=p.Draw(0.25)), "contexts_by_row", HORIZON),
    (
        p.LinearRate(features=p.Cells(np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))),
        "contexts_and_money",
        COUNTS,
    ),
    (p.LinUCB(forget=5), "contexts_and_money", HORIZON),
    (p.LinCBwK(), "contexts", PACED),
    (p.SquareCBwK(greed=50.0), "contexts", PACED),
    (p.Schedule(at=[1, 21, 60], arms=[0, 2, 0]), "piecewise", HORIZON),
]

SLOW = (p.InFlight(p.PricePacer(budgets=2)), "delayed", RENEWING)


def policy_name(policy: Policy) -> str:
    """Whose row this is."""
    if isinstance(policy, Committee) and np.ndim(policy.member_id) == 0:
        policy = list(Committee.members().values())[policy.member_id]
    return type(policy).__name__


EVERY = [*ROWS, SLOW]
NAMES = [f"{policy_name(policy)}-{name}" for policy, name, _ in EVERY]


# One plays in `make test`, every third one in CI: relatives stand side by side.
@pytest.mark.parametrize(("policy", "name", "constraint"), EVERY, ids=NAMES)
@pytest.mark.quick_rows("OmegaUCB-bernoulli")
@pytest.mark.sample_rows(*NAMES[::3])
def test_policy_keeps_the_contract(policy: Policy, name: str, constraint: Constraint) -> None:
    check_policy(policy, world(name), constraint, key=KEY)
