"""Outcomes by address: what an environment must keep if engines are to play many of its rounds at once."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._engine.layout import time_parallel
from jaxbandits._engine.rows import at_instance
from jaxbandits.constraints import Horizon
from jaxbandits.core import capabilities
from jaxbandits.core.protocol import Environment, Policy
from jaxbandits.core.streams import Domain
from jaxbandits.environments.continuum.world import Continuum
from jaxbandits.environments.finite.arms import AddressedArms
from jaxbandits.policies.budget.ratio import CUCB
from jaxbandits.policies.continuum.zooming import Zooming
from jaxbandits.simulation import simulate
from jaxbandits.testing.bits import assert_same_results
from jaxbandits.testing.episodes import lane_words, typed

_PULLS = 3


def check_addresses(environment: Environment, root: jax.Array) -> None:
    """Hold an environment to the capability ``addressed``, if it has it.

    Raises:
        AssertionError: ``pull`` says something else than ``means`` and ``outcome``, or an engine other bits than scan.
    """
    policy: Policy
    if isinstance(environment, AddressedArms) and environment.resources is None:
        policy, instances = CUCB(), range(environment.instances)
        for instance in instances if capabilities.has(environment, capabilities.ADDRESSED) else ():
            _pull_agrees(environment, instance, lane_words(root, instance, 0, Domain.WORLD))
    elif isinstance(environment, Continuum):
        policy = Zooming(lipschitz=4.0, capacity=min(environment.remembered, 64))
    else:
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Zooming\.lipschitz")  # how well it plays does not matter here
        _engines_agree(policy, environment, root)


def _engines_agree(policy: Policy, environment: Environment, root: jax.Array) -> None:
    horizon, told = Horizon(200), {"key": root, "replicates": 2, "marks": (0.5, 1.0)}
    if not isinstance(time_parallel(policy, environment, horizon.prepare(environment)), str):
        one, other = (simulate(policy, environment, horizon, engine=name, **told) for name in ("scan", "leap"))  # type: ignore[arg-type]
        assert_same_results(one, other, f"engine scan and engine {other.about['engine']}")


def _pull_agrees(environment: AddressedArms, instance: int, words: jax.Array) -> None:
    """Every arm a few times: the outcome, its means, the count of pulls, and nothing else."""
    said = _said(environment, jnp.int32(instance), words)
    for name, value in said.items():
        there = np.asarray(value["pull"]), np.asarray(value["address"])
        wrong = (there[0] != there[1]) & np.asarray(said["valid"]["pull"])
        if wrong.any():
            arm, n = (int(i) for i in np.argwhere(wrong)[0])
            raise AssertionError(
                f"instance {instance}: pull {n + 1} of arm {arm}: {name} is {there[0][arm, n]} by pull and "
                f"{there[1][arm, n]} by means and outcome"
            )


@jax.jit
def _said(environment: AddressedArms, instance: jax.Array, words: jax.Array) -> dict[str, dict[str, jax.Array]]:
    """What pull, and what means and outcome say: ``[arm, pull]`` each."""
    world, key = at_instance(environment, instance), typed(words)

    def pulls(arm: jax.Array) -> dict[str, Any]:
        def again(state: Any, n: jax.Array) -> tuple[Any, dict[str, Any]]:
            after, outcome, feedback, empty = world.pull(state, arm, key, n + 1)
            reward, cost = world.outcome(key, arm, n)
            mean_reward, mean_cost = world.means(arm)
            counted = state + (jax.lax.iota(jnp.int32, state.size) == arm)
            none = {"the number of events": (jnp.int32(len(outcome.events)), jnp.int32(0))}
            pairs = none | {
                "the reward": (outcome.reward, reward),
                "the cost": (outcome.cost, cost),
                "the mean reward": (outcome.expected_reward, mean_reward),
                "the mean cost": (outcome.expected_cost, mean_cost),
                "the learner's reward": (feedback.reward, reward),
                "the learner's cost": (feedback.cost, cost),
                "the state (is it the counts of pulls?)": (jnp.all(after == counted), jnp.bool_(True)),
                "empty": (empty, jnp.bool_(False)),
                "valid": (outcome.valid, mean_cost >= 0),
            }
            return after, {name: {"pull": a, "address": b} for name, (a, b) in pairs.items()}

        return jax.lax.scan(again, world.start(), jnp.arange(_PULLS, dtype=jnp.int32))[1]

    return jax.vmap(pulls)(jnp.arange(environment.spec.arms, dtype=jnp.int32))
