"""What the RCUCB experiment plays: the eight columns, on the stand-in G1."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxbandits as jb
from jaxbandits.environments import RevealConsumption
from jaxbandits.policies import RCUCB, ThompsonReduction, UCBReduction

KEY = jax.random.key(6)
POLICIES: dict[str, Any] = {
    "RCUCB literal": RCUCB("literal"),
    "RCUCB legal": RCUCB("legal"),
    "RCUCB infinite": RCUCB("infinite"),
    "RCUCB Kaplan-Meier": RCUCB("kaplan_meier"),
    "UCB width 1+λ": UCBReduction("lambda"),
    "UCB width 1": UCBReduction("one"),
    "TS global": ThompsonReduction("global"),
    "TS per arm": ThompsonReduction("per_arm"),
}
RCUCBS, BASELINES = tuple(POLICIES)[:4], tuple(POLICIES)[4:]


class Played(NamedTuple):
    """Runs of one policy: regret and censored rounds ``[setting, instance, replicate, mark]``."""

    regret: np.ndarray
    censored: np.ndarray
    shares: np.ndarray
    seconds: float


def play(policy: Any, world: Any, rounds: int, replicates: int, marks: Any = 40) -> Played:
    """One policy; a literal one in the world that reveals its consumption."""
    if getattr(policy, "survival", "") == "literal":
        world = RevealConsumption(world)
    began = time.perf_counter()
    result = simulate(policy, world, rounds, replicates, marks)
    seconds = time.perf_counter() - began
    return Played(result.regret.values, result.count("censored").values, np.asarray(result.marks), seconds)


def simulate(
    policy: Any, world: Any, rounds: int, replicates: int, marks: Any, key: Any = KEY, names: Any = None
) -> jb.Result:
    """One policy on all instances, half of the lanes at once: one wave on two cores."""
    lanes = np.size(getattr(policy, "alpha", 1)) * world.instances * replicates
    return jb.simulate(
        policy,
        world,
        jb.Horizon(rounds),
        key=key,
        replicates=replicates,
        marks=marks,
        instance_names=names,
        slots=min(256, -(-lanes // 2)),
    )
