"""Limits: widths of addresses, totals that a run may reach, memory. See docs/limits.md."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jaxbandits.core import ticks
from jaxbandits.core.checks import (
    InputError,
    bad,
    called,
    numbers,
    refuse_beyond_memory,
    whole_number,
)
from jaxbandits.core.protocol import Constraint, Environment, Policy
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.tables import MOST_ARMS, MOST_RESOURCES

# What fits into one int32, next to the part of a unit that a total may have
MOST_A_ROUND = 127 * ticks.ONE
_WHOLE = 2**31 - 1  # whole units of a total
_ID = 2**32  # ids of instances and replicates are one word of an address each
_LEAST_LANE = 40.0  # bytes of a lane on the host, whatever is recorded of it
_SLACK = 1e-6  # of a unit: means in float64 are not bounded to the tick


def check_spec(spec: Any) -> None:
    """Refuse more arms or resources than an address has room for."""
    if isinstance(spec, FiniteSpec):
        whole_number("arms", spec.arms, 1, MOST_ARMS, "2**24")
        if spec.resources is not None:
            whole_number("resources", spec.resources, 1, MOST_RESOURCES)


# --- totals


def largest_outcomes(environment: Environment, action: Any) -> tuple[int, int]:
    """The largest reward and cost of a round, in ticks, as the environment states them."""

    def stated() -> tuple[int, int]:
        reward, cost = environment.largest(action)
        return int(reward), int(cost)

    return called(environment, "largest", stated)


def ends_before_its_clock(constraint: Constraint) -> str | None:
    """Why a block of rounds, which stops at the end of the clock, may overrun a lane; else None.

    A class that says of its own when a lane ends must say what its clock is, and where that ends.
    """

    def giving(method: str) -> type:
        return next(cls for cls in type(constraint).__mro__ if method in vars(cls))

    if getattr(constraint, "resources", None) is not None:
        return f"{type(constraint).__name__} ends with the first of several resources"
    owner = giving("ended")
    if owner is Constraint or owner is giving("clock") is giving("end"):
        return None
    return f"{owner.__name__} overrides `ended`, but has the clock of {giving('clock').__name__}"


def beyond_a_unit(environment: Environment, action: jax.ShapeDtypeStruct) -> str | None:
    """Why the sums of a block of such actions would not fit an int32, or None if they do."""
    if max(largest_outcomes(environment, action)) > ticks.ONE:
        return f"{type(environment).__name__} may have more than one unit a round"
    return None


def most_rounds(
    policy: Policy,
    environment: Environment,
    action: Any,
    means: tuple[np.ndarray, np.ndarray],
    constraint: Constraint,
    end: np.ndarray,
    max_rounds: int | None,
) -> int:
    """The rounds in which no total of a lane can leave its two limbs: whole units below 2³¹.

    Refuses more rounds, outcomes beyond an int32, and true means beyond what the environment
    states. The policy has shapes for leaves (:attr:`Settings.shapes`), as has ``action``; ``end``
    is the clock's, in ticks, ``[instance]``.
    """
    kind, bounds = type(environment).__name__, largest_outcomes(environment, action)
    for name, bound, values in zip(("reward", "cost"), bounds, means, strict=True):
        if not ticks.ONE <= bound <= MOST_A_ROUND:
            raise InputError(
                f"{kind}.largest: a {name} of {bound / ticks.ONE:g} a round given; it must be from 1 to "
                f"{MOST_A_ROUND // ticks.ONE}, in ticks of 2**-24"
            )
        values = np.asarray(values, np.float64)
        size = np.abs(values[np.isfinite(values)]).max(initial=0.0)
        if size > bound / ticks.ONE + _SLACK:
            raise InputError(
                f"{kind}.values: a mean {name} of size {size:g} given; it must be at most {bound / ticks.ONE:g}, the "
                f"bound that {kind}.largest states"
            )
    # The first of two limits: a total beyond its two limbs, and sums in float32 that a round no
    # longer changes.
    bound = max(bounds)
    limit = min(_WHOLE * ticks.ONE // bound, _WHOLE - 1)
    must = f"at most {limit}: a round may have {bound / ticks.ONE:g}, and totals at most 2**31 - 1"
    if policy.most_rounds < limit:
        limit = policy.most_rounds
        must = f"at most {limit} for {type(policy).__name__}, whose float32 sums would stop growing"
    if max_rounds is not None and max_rounds > limit:
        raise bad("max_rounds", max_rounds, must)
    if max_rounds is None and constraint.clock_name == "rounds" and (end > limit * ticks.ONE).any():
        raise bad("rounds", int(end.max() // ticks.ONE), must)
    return limit


# --- ids: a word of the address of every draw


def count_unless_list(name: str, value: Any) -> int | None:
    """A count of at least 1, or None if the value may be a list."""
    if isinstance(value, (list, tuple, range)) or getattr(value, "ndim", 0) > 0:
        return None
    return whole_number(name, value, 1, may_also=", or a list")


def replicate_ids(
    replicates: Any,
    environment: Environment,
    settings: int = 1,
    marks: int = 0,
    recorded: float = 0.0,
) -> np.ndarray:
    """Ids of replicates ``u32[replicate]`` or ``u32[instance, replicate]``: 0, 1, … or as given.

    Refuses more lanes than fit into memory: ``settings`` are those of all policies, ``marks`` those
    that are kept until the end, ``recorded`` the bytes of what is recorded at one beside the
    account.
    """
    number = count_unless_list("replicates", replicates)
    if number is not None and number > _ID:
        raise bad("replicates", replicates, f"at most {_ID}: an id is 32 bits of an address")
    id_table = ids("replicates", replicates, rows=environment.instances) if number is None else None
    runs = number if id_table is None else id_table.shape[-1]
    assert runs is not None
    # What is left of a lane is its exact accounts at every mark and its pulls; while it waits for
    # its turn, an entry.
    arms = getattr(environment.spec, "arms", 0)
    mark_bytes = marks * (40 + 50 * (environment.resources or 1) + recorded) + 4.0 * arms
    lanes = settings * environment.instances * runs
    lane_bytes = _LEAST_LANE + (mark_bytes if marks else 0)
    refuse_beyond_memory(
        "replicates", f"{runs} replicates ({lanes} runs in all)", lanes * lane_bytes
    )
    return np.arange(runs, dtype=np.uint32) if id_table is None else id_table


def instance_ids(id_list: Any, environment: Environment, replicates: np.ndarray) -> np.ndarray:
    """Ids of the instances, ``u32[instance]``: 0, 1, … or as given.

    An id may come twice if no pair (instance id, replicate id) does: that run would count twice.
    """
    of_each = replicates.ndim == 2
    words = ids(
        "instance_ids",
        np.arange(environment.instances) if id_list is None else id_list,
        distinct=not of_each,
    )
    if words.size != environment.instances:
        raise InputError(
            f"instance_ids: {words.size} ids given; it must be one for each of {environment.instances}"
        )
    if of_each:
        pairs = words.astype(np.uint64)[:, None] << np.uint64(32) | replicates
        if np.unique(pairs).size != pairs.size:
            raise InputError(
                "replicates: a pair (instance id, replicate id) is given twice; each must be given once"
            )
    return words


def ids(name: str, values: Any, distinct: bool = True, rows: int | None = None) -> np.ndarray:
    """Distinct ids as given, ``u32[…]``; with ``rows`` also a table in which an id may recur."""
    may_be = f"a list of distinct whole numbers from 0 to {_ID - 1}"
    words = numbers(name, values, may_be)
    whole = (words >= 0) & (words < _ID) & (words == np.rint(words))
    table = words.ndim == 2 and rows is not None
    if table and words.shape[0] != rows:
        must = f"one row of ids for each of {rows} instances"
        raise InputError(f"{name}: an array of shape {words.shape} given; it must be {must}")
    unique = table or not distinct or np.unique(words).size == words.size
    if not (words.ndim == 1 or table) or words.size < 1 or not whole.all() or not unique:
        raise bad(name, values, may_be)
    return words.astype(np.uint32)
