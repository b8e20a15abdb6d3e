"""What is assumed where the user says nothing: how sure the means are, what a pull looks like; and the constraint."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxbandits.comparison.arms_file import ArmsTable
from jaxbandits.comparison.posterior import Drawn, Posterior, cost_cv_of, posterior_of, why_no_posterior
from jaxbandits.comparison.scaled_arms import finite_arms
from jaxbandits.comparison.worlds import click_arms, drawn_arms, with_bounds
from jaxbandits.core import ticks
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.numbers import positive_number, whole_number
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import leaf_fields
from jaxbandits.environments.finite.arms import FiniteArms
from jaxbandits.environments.finite.null_arm import WithNullArm


def why_means_are_given(uncertainty: str | None, noise: str | None, table: ArmsTable) -> str | None:
    """None: means are drawn. Else why not: what the file lacks, or nothing if it was asked for.

    Raises:
        InputError: asked for, and the file does not say how sure its means are.
    """
    if uncertainty == "given":
        return ""
    why = why_no_posterior(table)
    if why is None and noise == "beta":
        why = "Beta laws are tables, which cannot be made anew for every run"
    if why is not None and uncertainty == "means":
        raise InputError(f"uncertainty: 'means' given; it must be 'given' for this file: {why}")
    return why


class Assumed(NamedTuple):
    """What is played: the table with its bounds, and what was decided of it; see :class:`ComparisonPlan`."""

    table: ArmsTable
    noise: str
    posterior: Posterior | None
    why_given: str | None
    cost_cv: float
    cost_cv_from: str = "stated"


def assumed(
    table: ArmsTable,
    uncertainty: str | None,
    noise: str | None,
    cost_cv: float | None,
    reward_max: float | None,
    cost_max: float | None,
) -> Assumed:
    """What the user said, and for the rest what suits the file.

    Raises:
        InputError: what the file does not allow; a bound of the user below what may be drawn.
    """
    why_given = why_means_are_given(uncertainty, noise, table)
    posterior = posterior_of(table, cost_cv) if why_given is None else None
    noise = noise_of(noise, table, posterior)
    if cost_cv is not None and (table.kind == "log" or (posterior is None and noise != "clicks")):
        raise bad("cost_cv", cost_cv, "left out: only counts are played with it, as clicks or with drawn means")
    cv, cv_from = cost_cv_of(table, posterior, cost_cv)
    if posterior is not None or noise == "clicks":
        table = with_bounds(table, noise, posterior, cv, reward_max, cost_max)
    return Assumed(table, noise, posterior, why_given, cv, cv_from)


def arms_of(world: Assumed, rows: Sequence[int], concentration: float, may_rest: bool) -> FiniteArms | WithNullArm:
    """The arms of a group of instances; where means are drawn, those of run 0, which have the right shapes."""
    instances, posterior = [world.table.instances[row] for row in rows], world.posterior
    noise, cost_cv = world.noise, world.cost_cv
    if posterior is not None:
        made = drawn_arms(instances, [posterior.instances[row].draw(0, row, [0]) for row in rows], noise, cost_cv)
    elif noise == "clicks":
        made = click_arms(instances, [Drawn(i.mean_reward[None], i.mean_cost[None]) for i in instances], noise, cost_cv)
    else:
        made = finite_arms(instances, noise, concentration)
    return WithNullArm(made) if may_rest else made


def rounds_of(budget: float, average_cost: float, table: ArmsTable) -> int:
    """How many rounds a budget lasts at an average cost."""
    least = min(instance.cost_bound for instance in table.instances)
    if not 0 < positive_number("average_cost", average_cost) <= least:
        raise bad("average_cost", average_cost, f"at most {least:.4g}, the bound of the costs, in {table.cost_unit}")
    return whole_number("budget / average_cost", int(budget / average_cost), 1, 2**30, "2**30")


def scaled_average_cost(average_cost: float, table: ArmsTable) -> np.ndarray:
    """The bound over each instance's bound of the costs, in whole ticks (which float32 holds), ``[instance]``."""
    bounds = np.array([instance.cost_bound for instance in table.instances])
    return ticks.to_units(np.maximum(ticks.floor_from_units(average_cost / bounds), 1))


def with_constraint(policy: Any, average_cost: float, rounds: int, table: ArmsTable) -> Policy:
    """The policy with the bound and the horizon of the constraint, where it has parameters of these names."""
    values = {"c": scaled_average_cost(average_cost, table)[None, :], "horizon": rounds}
    given = {field.name: values[field.name] for field in leaf_fields(type(policy)) if field.name in values}
    return dataclasses.replace(policy, **given)


def noise_of(noise: str | None, table: ArmsTable, posterior: Posterior | None) -> str:
    """What a pull looks like: as asked for, else by the kind of file.

    Raises:
        InputError: a noise for which the file lacks something.
    """
    whole = all(i.evidence is not None and i.evidence.whole for i in table.instances) and table.kind != "log"
    usual = "clicks" if posterior is not None and whole else "bernoulli"
    noise = noise or ("empirical" if table.kind == "log" else usual)
    if noise == "clicks" and not whole:
        raise bad("noise", noise, "'bernoulli' for this file: only counts of conversions say what one click may bring")
    if noise == "empirical" and any(instance.log is None for instance in table.instances):
        raise bad("noise", noise, f"'bernoulli' or 'beta' for a file of {table.kind}: only a log has rows to resample")
    return noise
