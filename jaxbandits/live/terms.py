"""What is settled when a service begins: checked numbers, and the same as plain JSON."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxbandits._engine.limits import check_spec
from jaxbandits.core import streams, ticks
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.numbers import number, positive_number
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import check_range, walk
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.live.budgets import Budget, Traffic, refuse_unknown_arms
from jaxbandits.live.identity import identity_of, refuse_other


@dataclasses.dataclass(frozen=True)
class Ticket:
    """A request that was let through.

    Attributes:
        id: its number, which is that of its round.
        arm: the arm that serves it.
        reserved: money held for it: the arm's bound.
        time: when it was decided.
    """

    id: int
    arm: str
    reserved: float
    time: float


@dataclasses.dataclass(frozen=True)
class Terms:
    """What does not change while a service lives; see :class:`~jaxbandits.live.Agent`."""

    policy: Policy
    reward_bound: float
    unit: float  # money of one unit of cost: a power of two, so that bounds and costs become ticks exactly
    budgets: tuple[Budget, ...]
    traffic: Traffic | None
    key: tuple[int, int]
    start: float


def terms_of(
    policy: Any,
    arms: Any,
    reward_bound: Any,
    key: Any,
    budgets: Sequence[Budget],
    traffic: Traffic | None,
    unit: float | None,
    start: Any,
) -> Terms:
    """The terms, checked; arguments are those of :class:`~jaxbandits.live.Agent`."""
    if not isinstance(policy, Policy):
        raise bad("policy", policy, "a policy, such as OmegaUCB(rho=0.25)")
    if not issubclass(FiniteSpec, policy.plays):
        raise bad("policy", type(policy).__name__, "one for finitely many arms")
    for leaf in walk(policy):
        check_range(leaf.name, leaf.value, leaf.metadata)
        if np.ndim(leaf.value) != leaf.metadata.get("core", 0):
            raise bad(leaf.name, leaf.value, "one setting: one value")
    if not isinstance(arms, Mapping) or not arms:
        raise bad("arms", arms, "a bound for each name, such as {'small': 0.01, 'large': 0.2}")
    for name, bound in arms.items():
        check_name(name)
        positive_number(f"arms[{name!r}]", bound)
    check_spec(FiniteSpec(len(arms)))
    try:
        policy.check(FiniteSpec(len(arms)))
    except InputError as reason:
        raise InputError(
            f"policy: {type(policy).__name__} cannot serve requests for {len(arms)} arms: {reason}"
        ) from None
    largest = positive_number("unit", unit) if unit is not None else max(float(x) for x in arms.values())
    power = 2.0 ** math.ceil(math.log2(largest))
    if any(bound > power for bound in arms.values()):
        raise bad("unit", unit, "at least the largest bound")
    for budget in budgets:
        if not isinstance(budget, Budget):
            raise bad("budgets", budget, "a list of jb.live.Budget")
        budget.check(power)
    names = [budget.name for budget in budgets]
    if len(set(names)) < len(names):
        raise bad("budgets", names, "of different names")
    refuse_unknown_arms(budgets, list(arms))
    if traffic is not None:
        traffic.check(budgets)
    words = np.asarray(jax.random.key_data(streams.root_key(key)))
    bound = positive_number("reward_bound", reward_bound)
    return Terms(policy, bound, power, tuple(budgets), traffic, (int(words[0]), int(words[1])), number("start", start))


def check_name(name: Any) -> None:
    """Raise :class:`InputError` unless it is a name for an arm."""
    if not isinstance(name, str) or not name:
        raise bad("arms", name, "names, as text")


def money_ticks(terms: Terms, name: str, value: Any, most: float) -> int:
    """Money as ticks, rounded up."""
    given = number(name, value)
    least = 0.0 if name == "cost" else terms.unit / ticks.ONE
    if not least <= given <= most:
        raise bad(name, value, f"from {least:.3g} to {most:g}")
    return math.ceil(given / terms.unit * ticks.ONE)


def reward_ticks(terms: Terms, reward: Any) -> int:
    """A reward as ticks of its bound."""
    given, most = number("reward", reward), terms.reward_bound
    if not 0 <= given <= most:
        raise bad("reward", reward, f"from 0 to {most:g}")
    whole = round(given / most * ticks.ONE)
    if given and not whole:
        raise bad("reward", reward, f"0, or at least {most / 2 / ticks.ONE:.3g}, half a tick")
    return whole


def plain_terms(terms: Terms) -> dict[str, Any]:
    """The terms as plain JSON."""
    return {
        "policy": identity_of(terms.policy),
        "reward_bound": terms.reward_bound,
        "unit": terms.unit,
        "budgets": [dataclasses.asdict(budget) for budget in terms.budgets],
        "traffic": None if terms.traffic is None else dataclasses.asdict(terms.traffic),
        "key": list(terms.key),
        "start": terms.start,
    }


def terms_from(plain: dict[str, Any], policy: Policy | None) -> Terms:
    """What :func:`plain_terms` gave.

    Raises:
        InputError: another policy than it says, or one that cannot be made again and is not given.
    """
    if policy is None:
        policy = policy_of(plain["policy"])
    refuse_other("policy", policy, plain["policy"])
    budgets = [
        Budget(**(budget | {"arms": None if budget["arms"] is None else tuple(budget["arms"])}))
        for budget in plain["budgets"]
    ]
    traffic = (
        None if plain["traffic"] is None else Traffic(tuple(plain["traffic"]["expected"]), plain["traffic"]["slot"])
    )
    key = (int(plain["key"][0]), int(plain["key"][1]))
    return Terms(policy, plain["reward_bound"], plain["unit"], tuple(budgets), traffic, key, plain["start"])


def policy_of(identity: dict[str, Any]) -> Policy:
    """A policy of this package, made again from what :func:`~jaxbandits.live.identity.identity_of` said of it."""
    import ast

    from jaxbandits import policies

    kind = getattr(policies, str(identity.get("class")), None)
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind) and issubclass(kind, Policy)):
        raise bad("policy", None, f"given: {identity.get('class')} is none of jb.policies")
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name in identity:
            value = identity[field.name]
            if isinstance(value, dict):
                value = policy_of(value)
            elif field.metadata.get("static"):
                try:
                    value = ast.literal_eval(value)
                except (ValueError, SyntaxError):
                    raise InputError(f"policy: None given; {kind.__name__}.{field.name} cannot be read back") from None
            values[field.name] = value
    return kind(**values)
