"""What is done without a learner: the split seen in the file, an even split, all on the best arm of the file."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from jaxbandits.comparison.plan import ComparisonPlan

FloatArray = NDArray[np.float64]

SEEN, EVEN, BEST = "the split seen in the file", "an even split", "all on the file's best"


def file_means(plan: ComparisonPlan) -> list[tuple[FloatArray, FloatArray]]:
    """Mean reward and cost per pull of each instance's arms by the file: pooled, where means are drawn, ``[K]``."""
    if plan.posterior is None:
        return [(instance.mean_reward, instance.mean_cost) for instance in plan.table.instances]
    return [found.means() for found in plan.posterior.instances]


def best_by_file(plan: ComparisonPlan) -> list[int]:
    """The arm with the best ratio by the file, of each instance: known beforehand, the same in every run."""
    return [int(np.argmax(reward / cost)) for reward, cost in file_means(plan)]


def rivals_plan(plan: ComparisonPlan) -> ComparisonPlan:
    """The same comparison, played by fixed splits: those of them that the file knows.

    Weights are shares of pulls: those seen in the file; 1/cost for equal money on average; 1 for the best arm alone.
    """
    instances = plan.table.instances
    width = max(len(instance.arms) for instance in instances)
    weights = {name: np.zeros((len(instances), width)) for name in (SEEN, EVEN, BEST)}
    for row, (instance, (_, cost), best) in enumerate(
        zip(instances, file_means(plan), best_by_file(plan), strict=True)
    ):
        arms = len(instance.arms)
        clicks = None if instance.evidence is None else instance.evidence.clicks
        if clicks is None or not clicks.sum() > 0:
            weights.pop(SEEN, None)
        elif SEEN in weights:
            weights[SEEN][row, :arms] = clicks / clicks.max()
        weights[EVEN][row, :arms] = cost.min() / cost
        weights[BEST][row, best] = 1.0
    return dataclasses.replace(
        plan,
        policies=plan.policies[:1],  # one task: a policy whose settings the splits are
        settings={name: {"policy": "FixedSplit", "parameters": {}} for name in weights},
        splits=np.stack(list(weights.values())),
    )
