"""With what an agent is made: its policy, the money of a unit, the terms that may change."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandits._engine.limits import check_spec
from jaxbandits.core.checks import InputError, bad, number, positive_number
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import walk
from jaxbandits.core.settings import Settings
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.live import log as logs
from jaxbandits.live.budgets import Budget, Traffic


def of_one_setting(policy: Any) -> Policy:
    """The policy, its leaves float32 or int32 of one setting."""
    if not isinstance(policy, Policy):
        raise bad("policy", policy, "a policy, such as OmegaUCB(rho=0.25)")
    if not issubclass(FiniteSpec, policy.plays):
        raise bad("policy", type(policy).__name__, "one for finitely many arms")
    chosen = Settings.of(policy, 1)
    if chosen.count != 1:
        raise bad("policy", policy, "one setting: one value of each parameter")
    return jax.tree.map(lambda x: jnp.asarray(x[0, 0]), chosen.policy)


def unit_of(arms: Any, unit: Any) -> float:
    """The money of one unit of cost, a power of two, so that bounds and costs become ticks exactly."""
    if not isinstance(arms, Mapping) or not arms:
        raise bad("arms", arms, "a bound for each name, such as {'small': 0.01, 'large': 0.2}")
    for name, bound in arms.items():
        check_name(name)
        if not 0 <= number(f"arms[{name!r}]", bound) < math.inf:
            raise bad(f"arms[{name!r}]", bound, "a finite number of at least 0")
    largest = max(float(bound) for bound in arms.values())
    power = 2.0 ** math.ceil(math.log2((largest or 1.0) if unit is None else positive_number("unit", unit)))
    if largest > power:
        raise bad("unit", unit, "at least the largest bound")
    return power


def check_terms(
    policy: Policy, arms: Mapping[str, float], unit: float, budgets: Any, traffic: Any, hold: Any, lost: Any
) -> None:
    """Raise :class:`InputError` on what a new agent could not be made with."""
    spec = FiniteSpec(len(arms))
    check_spec(spec)
    try:
        policy.check(spec)
    except InputError as reason:
        name = type(policy).__name__
        raise InputError(f"policy: {name} cannot serve requests for {len(arms)} arms: {reason}") from None
    for budget in budgets:
        if not isinstance(budget, Budget):
            raise bad("budgets", budget, "a list of jb.live.Budget")
        budget.check(unit, list(arms))
    names = [budget.name for budget in budgets]
    if len(set(names)) < len(names):
        raise bad("budgets", names, "of different names")
    if traffic is not None:
        if not isinstance(traffic, Traffic):
            raise bad("traffic", traffic, "a jb.live.Traffic")
        traffic.check(budgets)
    if hold != "bound" and (isinstance(hold, str) or not 0 < number("hold", hold) < 1):
        raise bad("hold", hold, "'bound', or a quantile above 0 and below 1")
    if lost not in ("bound", "mean"):
        raise bad("lost", lost, "'bound' or 'mean'")


def terms_of(policy: Policy | None, budgets: Any, traffic: Any, hold: Any, lost: str) -> dict[str, Any]:
    """Terms that may change, as JSON gives them back."""
    named = {} if policy is None else {"policy": logs.written(policy), "kind": logs.written(policy, values=False)}
    terms = {
        **named,
        "budgets": [dataclasses.asdict(budget) for budget in budgets],
        "traffic": None if traffic is None else dataclasses.asdict(traffic),
        "hold": hold,
        "lost": lost,
    }
    return json.loads(json.dumps(terms))


def per_arm(policy: Policy | None) -> str | None:
    """The first parameter that has one value for each arm."""
    return None if policy is None else next((leaf.path for leaf in walk(policy) if leaf.metadata.get("core", 0)), None)


def check_name(name: Any) -> None:
    """Raise :class:`InputError` on what is no name of an arm."""
    if not isinstance(name, str) or not name:
        raise bad("arms", name, "names, as text")
