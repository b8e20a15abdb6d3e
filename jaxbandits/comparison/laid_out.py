"""The nouns of one block of runs: its world, its policies, its constraint."""

from __future__ import annotations

from collections.abc import Sequence

from jaxbandits.comparison.assumptions import scaled_average_cost
from jaxbandits.comparison.grouping import Group
from jaxbandits.comparison.plan import ComparisonPlan
from jaxbandits.comparison.worlds import drawn_arms
from jaxbandits.constraints import AverageCost, TotalBudget
from jaxbandits.core.protocol import Constraint, Policy
from jaxbandits.core.settings import canonicalise, of_instances
from jaxbandits.environments.finite.arms import FiniteArms
from jaxbandits.environments.finite.null_arm import WithNullArm
from jaxbandits.policies import FixedSplit, Guarded


def world_of(plan: ComparisonPlan, group: Group, runs: Sequence[int]) -> FiniteArms | WithNullArm:
    """The arms of a group, a row an instance; where means are drawn, a row an instance in a run."""
    if plan.posterior is None:
        return group.environment
    of = plan.posterior.instances
    drawn = [of[row].draw(plan.seed, row, runs) for row in group.rows]
    made = drawn_arms([plan.table.instances[row] for row in group.rows], drawn, plan.noise, plan.cost_cv)
    return made if plan.rounds is None else WithNullArm(made)


def policies_of(plan: ComparisonPlan, group: Group, rows: list[int]) -> list[Policy]:
    """The policies for these rows of the table; those of fixed splits with as many weights as the group has arms."""
    if plan.splits is None:
        return [of_instances(policy, rows) for policy in plan.policies]
    split: Policy = FixedSplit(plan.splits[:, rows, : group.environment.spec.arms])
    return [canonicalise(split if plan.rounds is None else Guarded(split), len(rows))[0]]


def constraint_of(plan: ComparisonPlan, rows: list[int]) -> Constraint:
    """What ends a run in these rows of the table."""
    if plan.rounds is None or plan.average_cost is None:
        return TotalBudget(plan.scaled_budgets[rows], last_pull=plan.last_pull)
    return AverageCost(scaled_average_cost(plan.average_cost, plan.table)[rows], plan.rounds)
