"""Tune a policy's parameters by stochastic gradient descent on the expected regret over a distribution of instances."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits.constraints import Horizon, TotalBudget
from jaxbandits.environments import FiniteArms, random_bernoulli, random_beta, random_generalised_bernoulli
from jaxbandits.errors import bad, positive_number, whole_number
from jaxbandits.gradients import policy_score, smoothed
from jaxbandits.gradients.face import get, names_of, positive_parameters, put
from jaxbandits.numbers import numbers
from jaxbandits.policies import RandomisedPolicy
from jaxbandits.protocol import Constraint, Environment, Policy, check_range
from jaxbandits.result import write_whole
from jaxbandits.simulate import settle, simulate

Problem = Callable[[Any, int], tuple[Environment, Constraint]]
"""``problem(key, count)``: ``count`` fresh instances of a distribution, and their constraint."""

FAMILIES = {
    "bernoulli": random_bernoulli,
    "generalised-bernoulli": random_generalised_bernoulli,
    "beta": random_beta,
}
FILES = ("path.png", "path.csv", "run.json")


def random_problem(family: str, arms: int, budget: float = 1.5e5, last_pull: str = "counts") -> Problem:
    """The random instances of the ω-UCB paper: budget = ``budget`` times the smallest mean cost of the instance.

    Args:
        family: ``"bernoulli"`` (S-Br), ``"generalised-bernoulli"`` (S-GBr) or ``"beta"`` (S-Bt).
        arms: K of every instance.
        budget: in units of the cheapest arm's mean cost, i.e. how many pulls of it could be paid.
        last_pull: see :class:`~jaxbandits.TotalBudget`.

    Raises:
        InputError: another family, budget or number of arms.
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
    """Instances drawn at random, with replacement, from those of an environment (one constraint for all)."""
    if np.ndim(getattr(constraint, "budget", 0)) or np.ndim(getattr(constraint, "rounds", 0)):
        raise bad("constraint", constraint, "one with the same number for all instances")

    def problem(key: Any, count: int) -> tuple[FiniteArms, Constraint]:
        chosen = np.asarray(jax.random.randint(key, (count,), 0, environment.instances))
        return environment.take(chosen.tolist()), constraint

    return problem


def uniform_problem(arms: int, rounds: int) -> Problem:
    """Bernoulli arms with mean rewards uniform on (0, 1), costs of 1, and a horizon."""

    def problem(key: Any, count: int) -> tuple[FiniteArms, Constraint]:
        means = np.asarray(jax.random.uniform(key, (count, arms)), np.float64)
        return FiniteArms.bernoulli(means, np.ones_like(means)), Horizon(rounds)

    return problem


class Gain(NamedTuple):
    """How much smaller the regret of the tuned policy is, in the mean over fresh instances, paired."""

    mean: float
    low: float  # of the 95 % interval
    high: float


@dataclasses.dataclass(frozen=True)
class Tuned:
    """What :func:`tune` found.

    Attributes:
        policy: with the tuned values.
        values: the tuned parameters by name.
        path: parameters after every step, ``[step + 1, P]``, the start first.
        regrets: mean regret of each step's own instances, ``[step]``.
        slopes: gradient of ln(mean regret) by ln(parameter), ``[step, P]``.
        start, best: parameters of the start, and of the best grid value (None without a grid).
        grid, grid_regrets: grid values ``[G, P]`` and their mean regret on the grid's instances.
        regret: (mean, low, high): regret of the tuned policy on fresh instances, 95 % interval.
        over_start, over_best: paired gains over the start and over the best grid value, on the same fresh instances.
        rounds: simulated rounds of the tuning, and of the grid.
        seconds: of the tuning, compile included, and of the grid.
        estimator: which one was used.
    """

    policy: Policy
    values: dict[str, float]
    path: np.ndarray
    regrets: np.ndarray
    slopes: np.ndarray
    start: dict[str, float]
    best: dict[str, float] | None
    grid: np.ndarray
    grid_regrets: np.ndarray
    grid_errors: np.ndarray
    regret: tuple[float, float, float]
    over_start: Gain
    over_best: Gain | None
    rounds: tuple[int, int]
    seconds: tuple[float, float]
    estimator: str

    def lines(self) -> list[str]:
        """A report in words."""
        shown = ", ".join(f"{name} = {value:.4g}" for name, value in self.values.items())
        began = ", ".join(f"{value:.4g}" for value in self.start.values())
        found = [
            f"tuned: {shown} (start {began}; {len(self.regrets)} steps of {self.estimator}, "
            f"{self.rounds[0]:.3g} rounds, {self.seconds[0]:.0f} s)",
            f"regret on fresh instances: {self.regret[0]:.5g} [{self.regret[1]:.5g}, {self.regret[2]:.5g}]",
            f"less than the start's by {_shown(self.over_start)}",
        ]
        if self.best is not None and self.over_best is not None:
            share = self.rounds[0] / self.rounds[1]
            best = ", ".join(f"{value:.4g}" for value in self.best.values())
            found += [
                f"best of {len(self.grid)} grid values: {best} ({self.rounds[1]:.3g} rounds, {self.seconds[1]:.0f} s; "
                f"tuning took {share:.0%} of its rounds)",
                f"less than the best grid value's by {_shown(self.over_best)}",
            ]
        return found

    def save(self, folder: str | os.PathLike[str], about: dict[str, Any] | None = None) -> list[Path]:
        """Write path.png, path.csv and run.json."""
        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        table = io.StringIO()
        writer = csv.writer(table)
        writer.writerow(["step", *self.values, "mean_regret", *(f"slope_{name}" for name in self.values)])
        for step, row in enumerate(self.path):
            of_step = [self.regrets[step], *self.slopes[step]] if step < len(self.regrets) else [""] * (1 + row.size)
            writer.writerow([step, *row, *of_step])
        facts = {
            "values": self.values,
            "start": self.start,
            "best_grid_value": self.best,
            "regret": self.regret,
            "gain_over_start": self.over_start,
            "gain_over_best_grid_value": self.over_best,
            "rounds": self.rounds,
            "seconds": self.seconds,
            "estimator": self.estimator,
            "report": self.lines(),
        } | (about or {})
        # run.json first: it says whose the others are
        write_whole(out / FILES[2], lambda file: file.write(json.dumps(facts, indent=1, default=str).encode()))
        write_whole(out / FILES[1], lambda file: file.write(table.getvalue().encode()))
        picture = self.picture()
        write_whole(out / FILES[0], lambda file: picture.savefig(file, format="png", dpi=130))
        return [out / name for name in FILES]

    def picture(self) -> Any:
        """The path of every parameter beside the grid's regrets, as a matplotlib figure."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 3.6 * len(self.values)), layout="constrained")
        axes = figure.subplots(len(self.values), 2, squeeze=False)
        for (left, right), (name, value), path, i in zip(
            axes, self.values.items(), self.path.T, range(len(self.values)), strict=True
        ):
            left.plot(path, color="#0072B2", marker="o", markersize=3, label="path")
            left.axhline(value, color="#D55E00", linestyle="--", label="tuned")
            left.set(xlabel="step", ylabel=name, yscale="log", title=f"{self.estimator}")
            left.legend(frameon=False)
            right.set(xlabel=name, ylabel="mean regret", xscale="log", title="grid and tuned value")
            if len(self.grid):
                right.errorbar(self.grid[:, i], self.grid_regrets, 1.96 * self.grid_errors, color="#777777",
                               marker="s", markersize=4, capsize=2, label="grid, its own instances")  # fmt: skip
            half = [[self.regret[0] - self.regret[1]], [self.regret[2] - self.regret[0]]]
            right.errorbar([value], [self.regret[0]], half, color="#D55E00", marker="D", capsize=3,
                           label="tuned, fresh instances")  # fmt: skip
            right.legend(frameon=False)
        return figure


def _shown(gain: Gain) -> str:
    clear = "clear" if gain.low > 0 or gain.high < 0 else "not clear"
    return f"{gain.mean:.4g} [{gain.low:.4g}, {gain.high:.4g}] (paired, {clear})"


def default_optimizer(steps: int) -> Any:
    """Plain SGD with a cosine schedule from 1 in units of ln(parameter), gradients clipped to 3.

    Regret is heavy-tailed: on most instances a smaller ρ is a little better, on a few it loses the best arm for good. A
    step in proportion to the gradient follows the mean of the two. Adam, which divides by the gradient's own size,
    follows the many: on 50 Bernoulli arms it ended at ρ = 0.10, where the mean regret is twice that of ρ = ½.
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

    Raises:
        InputError: naming the argument, before anything is compiled.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> from jaxbandits.tune import tune, uniform_problem
        >>> found = tune(jb.policies.SoftElim(theta=2.0), uniform_problem(arms=2, rounds=20), wrt="theta",
        ...              key=jax.random.key(0), steps=3, instances=8, fresh=8)
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
    leaves, _ = settle(policy, environment)
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
    leaves, _ = settle(policy, environment)
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
    from scipy import stats

    mean, error = float(samples.mean()), float(samples.std(ddof=1) / math.sqrt(samples.size))
    half = float(stats.t.ppf(0.975, samples.size - 1)) * error
    return mean, mean - half, mean + half


def _fold(key: Any, number: int) -> Any:
    return jax.random.fold_in(key, number)
