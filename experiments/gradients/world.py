"""What the gradient experiment plays: random small instances whose exact gradients are known, and policies on them."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np

import jaxbandits as jb
from experiments.common.running import Options
from jaxbandits.environments import FiniteArms
from jaxbandits.gradients import Estimate, exact
from jaxbandits.policies import OmegaUCB, SoftElim, SoftIndex

KEY = jax.random.key(20240611)
MEANS = ("mean_reward", "mean_cost")
INSTANCES = 24
SIGMA = 0.5
SLOTS = {"slots": 256}  # one program for any number of runs

OMEGA = OmegaUCB(rho=0.25)
ELIM = SoftElim(theta=0.5)
SOFT = SoftIndex(OMEGA, temperature=0.5)
CONSTRAINTS: dict[str, jb.Constraint] = {
    "horizon 12": jb.Horizon(12),
    "budget 3, last pull counts": jb.TotalBudget(3.0, last_pull="counts"),
    "budget 2.5, last pull forfeits": jb.TotalBudget(2.5, last_pull="forfeits"),
}
POLICIES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "ω-UCB": (OMEGA, ()),
    "SoftElim": (ELIM, ("theta",)),
    "soft ω-UCB": (SOFT, ("temperature", "rho")),
}


@functools.cache
def instances() -> FiniteArms:
    """Two Bernoulli arms each; costs not below 0.6, so that a run under a budget of 3 seldom needs 24 rounds."""
    rng = np.random.default_rng(24)
    return FiniteArms.bernoulli(rng.uniform(0.15, 0.85, (INSTANCES, 2)), rng.uniform(0.6, 0.95, (INSTANCES, 2)))


@functools.cache
def truth(policy: str, constraint: str) -> Estimate:
    """The exact value and gradient of all instances."""
    chosen, wrt = POLICIES[policy]
    return exact.estimate(chosen, instances(), CONSTRAINTS[constraint], wrt=MEANS + wrt)


@functools.cache
def smoothed_truth(constraint: str) -> Estimate:
    """The exact smoothed gradient of ω-UCB by ρ, its steps located to 4 % of a standard deviation of ε."""
    return exact.smoothed(OMEGA, instances(), CONSTRAINTS[constraint], wrt="rho", sigma=SIGMA, width=4e-2)


def runs(options: Options) -> int:
    """Runs on every instance."""
    return options.pick(1000, 4000, 40_000)
