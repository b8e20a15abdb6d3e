"""What fits: widths of addresses, and of the totals that a run may reach. See docs/randomness-and-money.md."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import ticks
from jaxbandits.environments.finite import MOST_ARMS, MOST_RESOURCES, FiniteSpec
from jaxbandits.errors import InputError, bad, whole_number
from jaxbandits.protocol import Constraint, Environment, Policy

MOST_A_ROUND = 127 * ticks.ONE  # what one int32 holds, next to the part of a unit that a total may have
_WHOLE = 2**31 - 1  # whole units of a total
_SLACK = 1e-6  # of a unit: means in float64 are not bounded to the tick


def check_spec(spec: Any) -> None:
    """Do arms and resources fit their part of an address?

    Raises:
        InputError: more than 2²⁴ arms, more than 511 resources.
    """
    if isinstance(spec, FiniteSpec):
        whole_number("arms", spec.arms, 1, MOST_ARMS, "2**24")
        if spec.resources is not None:
            whole_number("resources", spec.resources, 1, MOST_RESOURCES)


def check_widths(environment: Environment) -> None:
    """Do arms, resources and instances fit their part of an address?

    Raises:
        InputError: naming what is too many.
    """
    check_spec(environment.spec)
    if environment.instances > 2**32:
        raise bad("environment", f"{environment.instances} instances", "of at most 2**32")


def most_rounds(
    policy: Policy, environment: Environment, constraint: Constraint, end: np.ndarray, max_rounds: int | None
) -> int:
    """The rounds in which no total of a lane can leave its two limbs: whole units below 2³¹.

    Args:
        policy: leaves ``[setting, 1 or instance, …]``.
        end: of the clock, in ticks, ``[instance]``.
        max_rounds: as the user gave it.

    Raises:
        InputError: more rounds asked for, outcomes beyond an int32, or true means beyond what the environment states.
    """
    one = jax.tree.map(lambda x: jnp.asarray(x[0, 0]), policy)
    action = jax.eval_shape(lambda: one.blank_action(environment.spec))
    reward, cost = environment.largest(action)
    kind = type(environment).__name__
    for name, bound in (("reward", reward), ("cost", cost)):
        if not ticks.ONE <= bound <= MOST_A_ROUND:
            raise InputError(
                f"{kind}.largest: a {name} of {bound / ticks.ONE:g} a round given; it must be from 1 to "
                f"{MOST_A_ROUND // ticks.ONE}, in ticks of 2**-24"
            )
    for name, bound, means in zip(("reward", "cost"), (reward, cost), environment.values(), strict=True):
        size = np.abs(means[np.isfinite(means)]).max(initial=0.0)
        if size > bound / ticks.ONE + _SLACK:
            raise InputError(
                f"{kind}.values: a mean {name} of size {size:g} given; it must be at most {bound / ticks.ONE:g}, the "
                f"bound that {kind}.largest states"
            )
    bound = max(reward, cost)
    most = min(_WHOLE * ticks.ONE // bound, _WHOLE - 1)
    why = f"at most {most}, as a round may bring {bound / ticks.ONE:g} and totals hold 2**31 - 1"
    if max_rounds is not None and max_rounds > most:
        raise bad("max_rounds", max_rounds, why)
    if max_rounds is None and constraint.clock_name == "rounds" and (end > most * ticks.ONE).any():
        raise bad("rounds", int(end.max() // ticks.ONE), why)
    return most
