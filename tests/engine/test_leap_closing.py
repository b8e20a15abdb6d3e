"""Arms that close: leap gives scan's bits by stock, by schedule, by both, in passed rounds."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.environments import FiniteArms, Stocked
from jaxbandits.testing import assert_same_results


def closing(arms: int) -> Stocked:
    """Instances: stock alone, a schedule alone, both, both with waits, nothing that closes."""
    rng = np.random.default_rng(arms)
    world = FiniteArms.bernoulli(*(0.05 + 0.9 * rng.random((2, 5, arms))))
    stock = rng.integers(20, 900, (5, arms)).astype(float)
    stock[[1, 4]] = np.inf
    schedule = rng.random((5, 4, arms)) < 0.5
    schedule[:, 0] |= ~schedule[:, 0].any(axis=1, keepdims=True)
    schedule[[0, 4]] = True
    schedule[3, 1] = schedule[3, 2] = False
    return Stocked.of(world, pulls=stock, shown=schedule, at=[400, 700, 1100])


CASES: dict[str, tuple[Any, Any, int]] = {
    "omega-horizon-5": (jb.policies.OmegaUCB(rho=np.array([0.25, 2.0])), jb.Horizon(2500), 5),
    "ucb1-money-5": (jb.policies.UCB1(), jb.TotalBudget(600.0, last_pull="forfeits"), 5),
    "m-money-80": (jb.policies.MUCB(), jb.TotalBudget(900.0, last_pull="counts"), 80),
    "omega-horizon-80": (jb.policies.OmegaUCB(), jb.Horizon(4000), 80),
    "sampled-horizon-5": (jb.policies.SampledArms(jb.policies.UCB1(), arms=2), jb.Horizon(2500), 5),
}


@pytest.mark.integration
@pytest.mark.sample_rows("omega-horizon-5", "m-money-80", "sampled-horizon-5")
@pytest.mark.parametrize("case", CASES)
def test_same_bits_where_arms_close(case: str) -> None:
    policy, constraint, arms = CASES[case]
    world, results = closing(arms), []
    for engine in ("scan", "leap"):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*lanes ended with status closed")
            keywords: Any = {
                "key": jax.random.key(4),
                "replicates": 16,
                "marks": 7,
                "record": ("pulls",),
            }
            results.append(jb.simulate(policy, world, constraint, engine=engine, **keywords))
    scan, leap = results
    assert_same_results(scan, leap, "scan and leap")
    pulls = scan.pulls.values
    assert (pulls <= np.asarray(world.stock)[None, :, None]).all()
    waited = scan.rounds.values[:, 3, :, -1] - pulls[:, 3].sum(axis=-1)
    assert waited.max() >= 300, "in this instance rounds pass"
    assert (scan.rounds.values[:, 4, :, -1] == pulls[:, 4].sum(axis=-1)).all()


def test_where_nothing_closes_it_is_the_world_inside() -> None:
    arms = jb.environments.random_bernoulli(jax.random.key(1), instances=3, arms=5)
    open_ = Stocked.of(arms, pulls=np.inf)
    budget = jb.TotalBudget(300.0, last_pull="counts")
    plain, stocked = (
        jb.simulate(
            jb.policies.OmegaUCB(), world, budget, key=jax.random.key(2), marks=5, engine="scan"
        )
        for world in (arms, open_)
    )
    for name in ("rounds", "reward", "spent", "expected_reward", "clock"):
        np.testing.assert_array_equal(plain.ledger[name], stocked.ledger[name])
    np.testing.assert_array_equal(plain.pulls.values, stocked.pulls.values)
    np.testing.assert_allclose(plain.regret.values, stocked.regret.values, atol=1e-6)
