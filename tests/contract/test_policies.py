"""Every policy keeps the contract. A new policy is one more row; the worlds and constraints take turns."""

from __future__ import annotations

import pytest

import jaxbandits as jb
from jaxbandits.policies import (
    CUCB,
    IUCB,
    KUBE,
    MRCB,
    MUCB,
    RCB,
    UCB1,
    UCBB2,
    UCBBV1,
    UCBBV2,
    ArmIncreasing,
    BestRatioOracle,
    BGreedy,
    BudgetedThompson,
    BudgetUCB,
    EpsilonFirst,
    EstimatedBudgetUCB,
    FractionalKUBE,
    Guarded,
    KLUCBSCPlus,
    OmegaStarUCB,
    OmegaUCB,
    PDBwK,
    SampledArms,
    UCBSCPlus,
    UCBVRatio,
)
from jaxbandits.protocol import Constraint, Policy
from jaxbandits.testing import check_policy

from .worlds import KEY, world

COUNTS = jb.TotalBudget(40.0, last_pull="counts")
FORFEITS = jb.TotalBudget([20.0, 40.0, 10.0], last_pull="forfeits")
HORIZON = jb.Horizon(80)

ROWS: list[tuple[Policy, str, Constraint]] = [
    (OmegaUCB(rho=0.25), "bernoulli", COUNTS),
    (OmegaStarUCB(rho=0.25), "beta", COUNTS),
    (MUCB(), "empirical", FORFEITS),
    (CUCB(alpha=[[0.1, 0.2, 0.3]]), "generalised_bernoulli", COUNTS),
    (IUCB(), "bernoulli", HORIZON),
    (BGreedy(), "generalised_bernoulli", FORFEITS),
    (BudgetedThompson(), "beta", FORFEITS),
    (BudgetUCB(min_cost=[[0.05, 0.1, 0.2]]), "bernoulli", COUNTS),
    (EstimatedBudgetUCB(), "beta", FORFEITS),
    (UCBSCPlus(), "empirical", COUNTS),
    (KLUCBSCPlus(), "generalised_bernoulli", COUNTS),
    (EpsilonFirst(epsilon=0.25), "bernoulli", FORFEITS),
    (KUBE(), "empirical", COUNTS),
    (FractionalKUBE(), "beta", COUNTS),
    (UCBBV1(min_cost=0.5), "generalised_bernoulli", COUNTS),
    (UCBBV2(), "empirical", COUNTS),
    (PDBwK(c_rad=0.5), "beta", COUNTS),
    (MRCB(pulls=2), "generalised_bernoulli", COUNTS),
    (UCBB2(), "beta", COUNTS),
    (UCB1(), "bernoulli", HORIZON),
    (BestRatioOracle([0.5, 0.2, 0.7, 0.4], [0.6, 0.3, 0.9, 0.4]), "bernoulli", COUNTS),
    (SampledArms(RCB(), arms=5), "reservoir", FORFEITS),
    (ArmIncreasing(UCBVRatio(), beta=1.0), "reservoir_of_a_sampler", COUNTS),
    (Guarded(OmegaUCB(rho=0.5)), "null_arm", jb.AverageCost(c=0.6, rounds=80)),
]


@pytest.mark.parametrize(
    ("policy", "name", "constraint"), ROWS, ids=[f"{type(p).__name__}-{name}" for p, name, _ in ROWS]
)
def test_policy_keeps_the_contract(policy: Policy, name: str, constraint: Constraint) -> None:
    check_policy(policy, world(name), constraint, key=KEY)
