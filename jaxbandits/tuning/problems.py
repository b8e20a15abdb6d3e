"""Distributions of instances that a policy may be tuned on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxbandits.constraints import Horizon, TotalBudget
from jaxbandits.core.errors import bad
from jaxbandits.core.numbers import positive_number, whole_number
from jaxbandits.core.protocol import Constraint, Environment
from jaxbandits.environments import FiniteArms, random_bernoulli, random_beta, random_generalised_bernoulli

Problem = Callable[[Any, int], tuple[Environment, Constraint]]
"""``problem(key, count)``: ``count`` fresh instances of a distribution, and their constraint."""


FAMILIES = {
    "bernoulli": random_bernoulli,
    "generalised-bernoulli": random_generalised_bernoulli,
    "beta": random_beta,
}
"""The families of :func:`random_problem` by name."""


def random_problem(family: str, arms: int, budget: float = 1.5e5, last_pull: str = "counts") -> Problem:
    """The random instances of the ω-UCB paper: budget = ``budget`` times the smallest mean cost of the instance.

    Args:
        family: ``"bernoulli"`` (S-Br), ``"generalised-bernoulli"`` (S-GBr) or ``"beta"`` (S-Bt).
        arms: K of every instance.
        budget: in units of the cheapest arm's mean cost, i.e. how many pulls of it could be paid.
        last_pull: see :class:`~jaxbandits.TotalBudget`.

    Raises:
        InputError: another family, budget or number of arms.

    Example:
        >>> import jax
        >>> from jaxbandits.tuning import random_problem
        >>> arms, constraint = random_problem("bernoulli", arms=3, budget=50.0)(jax.random.key(0), 4)
        >>> arms.instances, constraint.budget.shape
        (4, (4,))
    """
    if family not in FAMILIES:
        raise bad("family", family, " or ".join(map(repr, FAMILIES)))
    positive_number("budget", budget)
    whole_number("arms", arms, 2)

    def problem(key: Any, count: int) -> tuple[FiniteArms, Constraint]:
        drawn = FAMILIES[family](key, count, arms)
        return drawn, TotalBudget(budget * drawn.values()[1].min(axis=1), last_pull=last_pull)

    return problem


def fixed_problem(environment: FiniteArms, constraint: Constraint) -> Problem:
    """Instances drawn at random, with replacement, from those of an environment (one constraint for all).

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([[0.5, 0.4], [0.3, 0.6]], [[0.9, 0.3], [0.4, 0.8]])
        >>> problem = jb.tuning.fixed_problem(arms, jb.TotalBudget(20.0, last_pull="counts"))
        >>> problem(jax.random.key(0), 5)[0].instances
        5
    """
    several = int(environment.resources is not None)  # what several resources have has one axis more
    axes = {"budget": several, "c": several, "rounds": 0}
    if any(np.ndim(getattr(constraint, name, 0)) > axis for name, axis in axes.items()):
        raise bad("constraint", constraint, "one with the same number for all instances")

    def problem(key: Any, count: int) -> tuple[FiniteArms, Constraint]:
        chosen = np.asarray(jax.random.randint(key, (count,), 0, environment.instances))
        return environment.take(chosen.tolist()), constraint

    return problem


def uniform_problem(arms: int, rounds: int) -> Problem:
    """Bernoulli arms with mean rewards uniform on (0, 1), costs of 1, and a horizon.

    Example:
        >>> import jax
        >>> from jaxbandits.tuning import uniform_problem
        >>> arms, constraint = uniform_problem(arms=4, rounds=100)(jax.random.key(0), 3)
        >>> arms.spec.arms, constraint.rounds
        (4, 100)
    """

    def problem(key: Any, count: int) -> tuple[FiniteArms, Constraint]:
        means = np.asarray(jax.random.uniform(key, (count, arms)), np.float64)
        return FiniteArms.bernoulli(means, np.ones_like(means)), Horizon(rounds)

    return problem
