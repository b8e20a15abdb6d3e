"""Tune a policy's parameters by stochastic gradient descent on the expected regret over a distribution of instances."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxbandits.core.errors import bad
from jaxbandits.core.numbers import numbers, whole_number
from jaxbandits.core.parameters import get, names_of, positive_parameters, put
from jaxbandits.core.protocol import Constraint, Environment, Policy
from jaxbandits.core.pytrees import check_range
from jaxbandits.core.settings import canonicalise
from jaxbandits.gradients import policy_score, smoothed
from jaxbandits.policies import RandomisedPolicy
from jaxbandits.simulation import simulate
from jaxbandits.statistics import mean
from jaxbandits.tuning.problems import Problem
from jaxbandits.tuning.tuned import Gain, Tuned


def default_optimizer(steps: int) -> Any:
    """Plain SGD with a cosine schedule from 1 in units of ln(parameter), gradients clipped to 3.

    Regret is heavy-tailed: on most instances a smaller ρ is a little better, on a few it loses the best arm for good. A
    step in proportion to the gradient follows the mean of the two. Adam, which divides by the gradient's own size,
    follows the many: on 50 Bernoulli arms it ended at ρ = 0.10, where the mean regret is twice that of ρ = ½.

    Example:
        >>> from jaxbandits.tuning import default_optimizer
        >>> sorted(name for name in dir(default_optimizer(8)) if name in ("init", "update"))
        ['init', 'update']
    """
    import optax

    return optax.chain(optax.clip(3.0), optax.sgd(optax.cosine_decay_schedule(1.0, steps, alpha=0.1)))


def tune(
    policy: Policy,
    problem: Problem,
    *,
    wrt: str | Sequence[str],
    key: Any,
    steps: int = 8,
    instances: int = 20,
    optimizer: Any = None,
    sigma: float = 0.7,
    grid: Sequence[float] | Sequence[Sequence[float]] | np.ndarray = (),
    grid_instances: int = 100,
    fresh: int = 200,
    **options: Any,
) -> Tuned:
    """Descend ln(parameters) along the gradient of ln E[regret], with fresh instances and fresh worlds in every step.

    With x = ln(parameters), a step moves x against ∇_x E[R(eˣ)] / E[R(eˣ)], as the optimiser says.

    A randomised policy is differentiated by its own score (``gradients.policy_score``), any other by antithetic
    Gaussian smoothing (``gradients.smoothed``), each instance with a direction of its own. The result is the geometric
    mean of the second half of the path. It is then played, with the start and the best grid value, on instances that
    none of them has seen, all in the same worlds.

    Args:
        policy: where to start; its parameters named must be above 0 and scalar.
        problem: fresh instances on demand, e.g. :func:`random_problem`.
        wrt: names of parameters, as for the estimators.
        key: ``jax.random.key(seed)``.
        steps: of the optimiser.
        instances: fresh ones in each step; two runs on each.
        optimizer: any optax ``GradientTransformation`` on ln(parameters); default :func:`default_optimizer`.
        sigma: of the smoothing, for policies that are not randomised.
        grid: values to compare with, ``[G]`` or ``[G, P]``; the best is chosen on ``grid_instances`` instances.
        grid_instances: how many instances the grid is played on, one run on each.
        fresh: instances of the final comparison, one run on each, at least 2.
        **options: passed to :func:`~jaxbandits.simulate`.

    Returns:
        A :class:`~jaxbandits.tuning.Tuned`: the tuned policy, its path, and its gains on fresh instances; regrets in
        the environment's unit of reward.

    Raises:
        InputError: naming the argument, before anything is compiled.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> problem = jb.tuning.uniform_problem(arms=2, rounds=20)
        >>> found = jb.tune(jb.policies.SoftElim(theta=2.0), problem, wrt="theta",
        ...                 key=jax.random.key(0), steps=3, instances=8, fresh=8)
        >>> found.path.shape, found.over_best is None
        ((4, 1), True)
    """
    names = names_of(wrt)
    paths = positive_parameters(policy, names)
    for name, value, least in (("steps", steps, 1), ("instances", instances, 1), ("fresh", fresh, 2),
                               ("grid_instances", grid_instances, 2)):  # fmt: skip
        whole_number(name, value, least)
    for parameter in paths:
        if np.size(get(policy, parameter)) != 1:
            raise bad(parameter, get(policy, parameter), "one number, to start from")
    start = np.array([np.asarray(get(policy, path), np.float64).item() for path in paths])
    values = _grid(grid, policy, paths)
    began = time.perf_counter()
    path, regrets, slopes, rounds = _descend(
        policy, problem, paths, start, key, steps, instances, optimizer or default_optimizer(steps), sigma, options
    )
    seconds = time.perf_counter() - began
    tuned = np.exp(np.log(path[(len(path) + 1) // 2 :]).mean(axis=0))
    began = time.perf_counter()
    grid_samples, grid_rounds = np.zeros((0, 2)), 0
    if len(values):
        grid_samples, grid_rounds = _play(policy, problem, paths, values, _fold(key, 1), grid_instances, options)
    grid_seconds = time.perf_counter() - began
    best = values[grid_samples.mean(axis=1).argmin()] if len(values) else None
    rivals = np.stack([tuned, start] + ([best] if best is not None else []))
    played, _ = _play(policy, problem, paths, rivals, _fold(key, 2), fresh, options)
    regret = _interval(played[0])
    return Tuned(
        policy=put(policy, dict(zip(paths, tuned.tolist(), strict=True))),
        values=dict(zip(names, tuned.tolist(), strict=True)),
        path=path,
        regrets=regrets,
        slopes=slopes,
        start=dict(zip(names, start.tolist(), strict=True)),
        best=None if best is None else dict(zip(names, best.tolist(), strict=True)),
        grid=values,
        grid_regrets=grid_samples.mean(axis=1),
        grid_errors=grid_samples.std(axis=1, ddof=1) / math.sqrt(grid_instances),
        regret=regret,
        fresh=fresh,
        warnings=mean(played[0]).warnings,
        over_start=Gain(*_interval(played[1] - played[0])),
        over_best=Gain(*_interval(played[2] - played[0])) if best is not None else None,
        rounds=(rounds, grid_rounds),
        seconds=(seconds, grid_seconds),
        estimator="policy_score" if isinstance(policy, RandomisedPolicy) else "smoothed",
    )


def _descend(
    policy: Policy,
    problem: Problem,
    paths: Sequence[str],
    start: np.ndarray,
    key: Any,
    steps: int,
    instances: int,
    optimizer: Any,
    sigma: float,
    options: dict[str, Any],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    import optax

    here = np.log(start)
    state = optimizer.init(here.astype(np.float32))
    path, regrets, slopes, rounds = [start], [], [], 0
    for step in range(steps):
        at = _fold(_fold(key, 3), step)
        environment, constraint = problem(_fold(at, 0), instances)
        now = put(policy, dict(zip(paths, np.exp(here).tolist(), strict=True)))
        regret, slope, played = _slopes(now, environment, constraint, paths, _fold(at, 1), sigma, options)
        relative = slope.mean(axis=0) / max(float(regret.mean()), 1e-12)
        updates, state = optimizer.update(relative.astype(np.float32), state, here.astype(np.float32))
        here = np.asarray(optax.apply_updates(here.astype(np.float32), updates), np.float64)
        for name, value in zip(paths, np.exp(here), strict=True):
            check_range(name, value, {})
        path.append(np.exp(here))
        regrets.append(float(regret.mean()))
        slopes.append(relative)
        rounds += played
    return np.stack(path), np.array(regrets), np.stack(slopes), rounds


def _slopes(
    policy: Policy,
    environment: Environment,
    constraint: Constraint,
    paths: Sequence[str],
    key: Any,
    sigma: float,
    options: dict[str, Any],
) -> tuple[np.ndarray, np.ndarray, int]:
    """Of every instance: regret ``[I]`` and its slopes by ln(parameter) ``[I, P]``, from two runs each."""
    if isinstance(policy, RandomisedPolicy):
        found = policy_score.pairs(policy, environment, constraint, paths, key, **options)
        scale = np.array([np.asarray(get(policy, path), np.float64).item() for path in paths])
        return found[0], found[1] * scale, found[2]
    leaves, _ = canonicalise(policy, environment.instances, environment.spec)
    regret, slope, rounds = smoothed.slopes(leaves, environment, constraint, paths, key, sigma, 1, **options)
    return regret[0, :, 0], slope[0, :, 0], rounds


def _play(
    policy: Policy,
    problem: Problem,
    paths: Sequence[str],
    values: np.ndarray,
    key: Any,
    instances: int,
    options: dict[str, Any],
) -> tuple[np.ndarray, int]:
    """Regret of every row of values on fresh instances, ``[row, instance]``, and the rounds played."""
    environment, constraint = problem(_fold(key, 0), instances)
    leaves, _ = canonicalise(policy, environment.instances, environment.spec)
    many = jax.tree.map(lambda x: np.repeat(x, len(values), axis=0), leaves)
    many = put(many, {path: values[:, i, None] for i, path in enumerate(paths)})
    result = simulate(many, environment, constraint, key=_fold(key, 1), marks=1, **options)
    return result.regret.values[:, :, 0, -1], int(result.ledger["rounds"][..., -1].sum())


def _grid(grid: Any, policy: Policy, paths: Sequence[str]) -> np.ndarray:
    values = numbers("grid", grid, "numbers, [G] or [G, parameter]")
    values = values.reshape(0, len(paths)) if values.size == 0 else values.reshape(len(values), -1)
    if values.shape[1] != len(paths) or not (np.isfinite(values) & (values > 0)).all():
        raise bad("grid", grid, f"finite numbers above 0, [G] or [G, {len(paths)}]")
    return values


def _interval(samples: np.ndarray) -> tuple[float, float, float]:
    found = mean(samples)
    return found.value, found.low, found.high


def _fold(key: Any, number: int) -> Any:
    return jax.random.fold_in(key, number)
