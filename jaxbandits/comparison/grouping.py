"""Instances of different K in few compiles: which share one, and their arms in scaled units."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from jaxbandits.comparison.arms_file import ArmsTable, Instance
from jaxbandits.core import ticks
from jaxbandits.core.errors import InputError, bad, shown
from jaxbandits.environments.finite.arms import FiniteArms

_BETA_ERROR = 0.1  # of a mean: those of tables are right to 1e-5 of the bound, which is much of a small one


# Seconds, measured on two CPU cores. They decide how instances are grouped, never what comes out.
_COMPILE, _ARM_ROUND = 1.5, 5e-9


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """Instances that run in one compile: their places in the table, and their arms, padded to the widest."""

    places: tuple[int, ...]
    environment: FiniteArms


def padded_environment(instances: Sequence[Instance], noise: str, concentration: float) -> FiniteArms:
    """The arms of some instances in scaled units, padded to the widest."""
    if noise == "empirical":
        return FiniteArms.empirical(
            [[(r / i.reward_bound, c / i.cost_bound) for r, c in i.log or ()] for i in instances]
        )
    width = max(len(instance.arms) for instance in instances)
    reward, cost = np.full((2, len(instances), width), 0.5)
    present = np.zeros(reward.shape, bool)
    for row, instance in enumerate(instances):
        arms = slice(len(instance.arms))
        reward[row, arms], cost[row, arms] = instance.scaled_mean_reward, instance.scaled_mean_cost
        present[row, arms] = True
        for what, means in (("reward", reward[row, arms]), ("cost", cost[row, arms])):
            if noise == "beta" and ((means <= 0) | (means >= 1)).any():
                at = int(np.flatnonzero((means <= 0) | (means >= 1))[0])
                raise InputError(
                    f"noise: 'beta' given; it must be 'bernoulli' for mean {what}s at 0 or at their bound, as that of "
                    f"arm {shown(instance.arms[at])} in instance {shown(instance.name)} (or raise --{what}-max)"
                )
            small = (means > 0) & (ticks.from_units(means) == 0)
            if noise == "bernoulli" and small.any():
                at = int(np.flatnonzero(small)[0])
                raise _below_a_tick(instance, at, what)
    if noise == "bernoulli":
        return FiniteArms.bernoulli(reward, cost, present)
    ra, rb, ca, cb = (x * concentration for x in (reward, 1 - reward, cost, 1 - cost))
    arms_of = FiniteArms.beta(ra, rb, ca, cb, present)
    for what, given, played in zip(("reward", "cost"), (reward, cost), arms_of.values(), strict=True):
        for row, arm in np.argwhere(present & (np.abs(played - given) > _BETA_ERROR * given))[:1]:
            place = f"arm {shown(instances[row].arms[arm])} in instance {shown(instances[row].name)}"
            raise InputError(
                f"noise: 'beta' given; it must be 'bernoulli' for a mean {what} of {given[row, arm]:.3g} of its bound, "
                f"as that of {place}, for its table would have the mean {played[row, arm]:.3g} (or lower --{what}-max)"
            )
    return arms_of


def check_costs(group: Group, table: ArmsTable, noise: str) -> None:
    """An arm whose scaled mean cost rounds to nothing would never spend the budget."""
    _, cost = group.environment.values()
    for row, arm in np.argwhere(cost <= 0)[:1]:
        raise _below_a_tick(table.instances[group.places[row]], int(arm), "cost")


def _below_a_tick(instance: Instance, arm: int, what: str) -> InputError:
    least = getattr(instance, f"{what}_bound") * 2.0**-24
    return bad(
        f"instance {shown(instance.name)}, arm {shown(instance.arms[arm])}, mean {what}",
        float(getattr(instance, f"mean_{what}")[arm]),
        f"at least {least:.3g}, a 2**24th of the bound of the {what}s (lower --{what}-max)",
    )


def grouped(widths: Sequence[int], work: np.ndarray, policies: int) -> list[tuple[int, ...]]:
    """Places in groups of similar width, the widest first, with least time for compiles and for padding arms.

    A group costs one compile per policy, and every round of its instances (``work``) the group's largest width.
    """
    order = sorted(range(len(widths)), key=lambda place: (widths[place], place))
    levels = [list(places) for _, places in itertools.groupby(order, key=lambda place: widths[place])]
    rounds = np.cumsum([0.0, *(float(sum(work[place] for place in level)) for level in levels)])
    best, cut = [0.0], [0]  # least time for the first n levels, and where their last group begins
    for n in range(1, len(levels) + 1):
        width = widths[levels[n - 1][0]]
        times = [
            best[first] + policies * _COMPILE + _ARM_ROUND * width * (rounds[n] - rounds[first]) for first in range(n)
        ]
        best.append(min(times))
        cut.append(times.index(best[n]))
    groups, n = [], len(levels)
    while n:
        groups.append(tuple(sorted(place for level in levels[cut[n] : n] for place in level)))
        n = cut[n]
    return groups
