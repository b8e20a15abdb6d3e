"""Prints the hash of every policy's ledger as JSON: by ``test_bits.py``, in other settings."""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

import jax
import numpy as np

import jaxbandits as jb
from tests.contract.worlds import KEY, world

POLICIES: dict[str, jb.Policy] = {
    "omega_ucb": jb.policies.OmegaUCB(rho=[0.25, 1.0]),
    "omega_star_ucb": jb.policies.OmegaStarUCB(),
    "m_ucb": jb.policies.MUCB(),
    "c_ucb": jb.policies.CUCB(),
    "i_ucb": jb.policies.IUCB(),
    "b_greedy": jb.policies.BGreedy(),
    "bts": jb.policies.BudgetedThompson(),
}
LIVE = ("omega_ucb", "b_greedy", "bts")
WORLDS = ("bernoulli", "generalised_bernoulli", "beta", "empirical")


def simulated(name: str, engine: str = "scan") -> str:
    """A policy's ledgers in one of the worlds, the next policy in the next world."""
    environment = world(WORLDS[list(POLICIES).index(name) % len(WORLDS)])
    budget = jb.TotalBudget(30.0, last_pull="counts")
    result = jb.simulate(
        POLICIES[name],
        environment,
        budget,
        key=KEY,
        replicates=4,
        marks=5,
        slots=2,
        chunk=16,
        engine=engine,
    )
    return digest([*result.ledger.values(), *result.final.values(), result.ended])


def live(name: str) -> str:
    """A policy's decisions without the simulator, hyper-parameters as plain numbers."""
    policy = {"omega_ucb": jb.policies.OmegaUCB(rho=0.3)}.get(name, POLICIES[name])
    step, rng = jax.jit(policy.step), np.random.default_rng(0)
    state = policy.init(jb.environments.FiniteSpec(arms=4))
    none, present = np.int32(0), np.ones(4, bool)
    view = jb.View(np.int32(1), None, present)
    observation = jb.Observation(view, none, jb.Feedback(none, none), np.bool_(True))
    arms = []
    for round in range(2, 62):
        state, arm = step(state, KEY, observation)
        arms.append(int(arm))
        feedback = jb.Feedback(*np.rint(rng.random(2) * jb.ticks.ONE).astype(np.int32))
        view = view._replace(round=np.int32(round))
        observation = jb.Observation(view, arm, feedback, np.bool_(False))
    return digest([np.array(arms), *(np.asarray(x) for x in jax.tree.leaves(state))])


def digest(arrays: list[Any]) -> str:
    """One hash of the values; all are whole numbers."""
    return hashlib.sha256(b"".join(np.asarray(x, np.int64).tobytes() for x in arrays)).hexdigest()


def main(names: list[str]) -> None:
    """Print the hashes of these policies, all by default."""
    selection = names or list(POLICIES)
    print(
        json.dumps(
            {
                "devices": len(jax.devices()),
                "x64": bool(jax.config.jax_enable_x64),  # type: ignore[attr-defined]
                "simulated": {name: simulated(name) for name in selection},
                "live": {name: live(name) for name in LIVE} if not names else None,
                "leap": simulated("omega_star_ucb", "leap") if not names else None,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1:])
