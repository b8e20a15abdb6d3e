"""Worst instances: gradient ascent over arms' means, on a regret or two policies' gap."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits._numerics.arrays import one_of
from jaxbandits.core.checks import InputError, whole_number
from jaxbandits.core.protocol import Constraint, Policy
from jaxbandits.core.settings import names_of
from jaxbandits.environments import FiniteArms
from jaxbandits.gradients import score_function
from jaxbandits.gradients.estimates import MEANS, of_numbers
from jaxbandits.simulation import simulate


class Worst(NamedTuple):
    """What :func:`search` found, restarts ``[R]`` in falling order of the re-simulated objective.

    Attributes:
        mean_reward, mean_cost: the instances, ``[R, K]``.
        objective: regret (or gap of regrets) on fresh randomness, ``[R]``, and its standard error.
        standard_error: of ``objective``, over ``check`` runs.
        claimed: the last estimate of the ascent itself, ``[R]``: noisier, and too large where it
            was chosen for it.
        path: the ascent's own estimates, ``[step, R]``.
        start: the objective of the R starting points on the same fresh randomness, ``[R]``, in
            their own order.
    """

    mean_reward: np.ndarray
    mean_cost: np.ndarray
    objective: np.ndarray
    standard_error: np.ndarray
    claimed: np.ndarray
    path: np.ndarray
    start: np.ndarray


@of_numbers
def search(
    policy: Policy,
    constraint: Constraint,
    *,
    arms: int,
    key: Any,
    against: Policy | None = None,
    over: tuple[str, ...] | str = MEANS,
    restarts: int = 8,
    steps: int = 40,
    replicates: int = 256,
    check: int = 4000,
    low: float = 0.05,
    high: float = 0.95,
    **options: Any,
) -> Worst:
    """Ascend E[regret of ``policy``] (minus that of ``against``) over the means of Bernoulli arms,
    from many starts.

    The means are low + (high − low)·sigmoid(x), and x climbs the unbiased gradient of
    ``gradients.score_function`` by Adam, all restarts at once. What is reported was simulated
    again, on randomness that the search never saw: the largest of many noisy numbers is too large,
    and an instance counts only by its second simulation.

    Args:
        policy: one setting, any policy for finite arms.
        constraint: a horizon or a budget, one number.
        arms: K ≥ 2.
        key: ``jax.random.key(seed)``.
        against: the search is for instances where ``policy`` is worse than this one; both meet the
            same worlds.
        over: which means move; the others keep their random starts.
        restarts: random starting points, uniform in (low, high).
        steps: of the optimiser.
        replicates: runs of every restart in each step.
        check: fresh runs of every found instance.
        low, high: the range of all means, in (0, 1).
        **options: passed to :func:`~jaxbandits.simulate`.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> from experiments.worst_instances import search
        >>> worst = search(jb.policies.OmegaUCB(), jb.Horizon(10), arms=2, key=jax.random.key(0),
        ...                            restarts=2, steps=2, replicates=4, check=8)
        >>> worst.mean_reward.shape, bool(worst.objective[0] >= worst.objective[1])
        ((2, 2), True)
    """
    import optax

    names = names_of(over)
    for name in names:
        one_of("over", name, MEANS)
    for argument, count, minimum in (("arms", arms, 2), ("restarts", restarts, 1), ("steps", steps, 1),
                               ("replicates", replicates, 2), ("check", check, 2)):  # fmt: skip
        whole_number(argument, count, minimum)
    if not 0 < low < high < 1:
        raise InputError(f"low, high: {low:g} and {high:g} given; they must be 0 < low < high < 1")
    climb = optax.adam(0.3)
    policies = [policy] if against is None else [policy, against]

    def means(x: np.ndarray) -> np.ndarray:
        return low + (high - low) / (1 + np.exp(-x))

    def objective(x: np.ndarray) -> np.ndarray:
        """On fresh randomness: regret, or its paired difference, of every run, ``[restart, run]``."""
        world = FiniteArms.bernoulli(*means(x))
        arguments: dict[str, Any] = {
            "key": jax.random.fold_in(key, 2),
            "replicates": check,
            "marks": 1,
        } | options
        regret = [
            simulate(p, world, constraint, **arguments).regret.values[0, ..., -1] for p in policies
        ]
        return regret[0] if against is None else regret[0] - regret[1]

    uniform = np.asarray(
        jax.random.uniform(jax.random.fold_in(key, 0), (2, restarts, arms)), np.float64
    )
    x = np.log(uniform + 1e-3) - np.log(1 - uniform + 1e-3)
    first = x.copy()
    state, path = climb.init(x.astype(np.float32)), []
    for step in range(steps):
        world = FiniteArms.bernoulli(*means(x))
        at = jax.random.fold_in(jax.random.fold_in(key, 1), step)
        with warnings.catch_warnings():  # a step reads no standard error
            warnings.filterwarnings("ignore", "gradient by")
            estimates = [
                score_function.estimate(
                    p, world, constraint, wrt=names, key=at, replicates=replicates, **options
                )
                for p in policies
            ]
        sign = np.array([1.0, -1.0])[: len(estimates), None]
        path.append((sign * np.stack([f.value[0] for f in estimates])).sum(axis=0))
        slope, share = np.zeros_like(x), 1 / (1 + np.exp(-x))
        for name in names:
            by = (sign[..., None] * np.stack([f.gradient[name][0] for f in estimates])).sum(axis=0)
            slope[MEANS.index(name)] = by * ((high - low) * share * (1 - share))[MEANS.index(name)]
        updates, state = climb.update(-slope.astype(np.float32), state, x.astype(np.float32))
        x = np.asarray(optax.apply_updates(x.astype(np.float32), updates), np.float64)
    ends, starts = objective(x), objective(first)
    order = np.argsort(-ends.mean(axis=1))
    reward, cost = means(x)[:, order]
    errors = ends.std(axis=1, ddof=1) / np.sqrt(check)
    return Worst(
        reward,
        cost,
        ends.mean(axis=1)[order],
        errors[order],
        path[-1][order],
        np.stack(path),
        starts.mean(axis=1),
    )
