"""Every policy keeps the contract. A new policy is one more row; the worlds and constraints take turns."""

from __future__ import annotations

import pytest

import jaxbandits as jb
from jaxbandits.policies import (
    CUCB,
    IUCB,
    MUCB,
    BGreedy,
    BudgetedThompson,
    Guarded,
    OmegaStarUCB,
    OmegaUCB,
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
    (Guarded(OmegaUCB(rho=0.5)), "null_arm", jb.AverageCost(c=0.6, rounds=80)),
]


@pytest.mark.parametrize(
    ("policy", "name", "constraint"), ROWS, ids=[f"{type(p).__name__}-{name}" for p, name, _ in ROWS]
)
def test_policy_keeps_the_contract(policy: Policy, name: str, constraint: Constraint) -> None:
    check_policy(policy, world(name), constraint, key=KEY)
