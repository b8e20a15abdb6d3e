"""Tune policy parameters by stochastic gradient descent on regret, expected over instances."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jaxbandits import _plots
from jaxbandits._files import finished, inches_of, write_whole
from jaxbandits._numerics.arrays import one_of
from jaxbandits._tables import in_greek
from jaxbandits.constraints import TotalBudget
from jaxbandits.core.checks import as_played, bad, door, numbers, positive_number, whole_number
from jaxbandits.core.protocol import Constraint, Environment, Policy
from jaxbandits.core.settings import Settings, get, names_of, positive_parameters, put
from jaxbandits.environments import (
    FiniteArms,
    random_bernoulli,
    random_beta,
    random_generalised_bernoulli,
)
from jaxbandits.gradients import policy_score, smoothed
from jaxbandits.gradients.estimates import centred, of_numbers
from jaxbandits.policies import RandomisedPolicy
from jaxbandits.simulation import simulate
from jaxbandits.statistics import Estimate, dominance, invisible, mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FAMILIES", "Problem", "Tuned", "fixed_problem", "random_problem", "tune"]

Problem = Callable[[Any, int], tuple[Environment, Constraint]]
"""``problem(key, count)`` draws ``count`` instances, and returns them with their constraint."""


FAMILIES = {
    "bernoulli": random_bernoulli,
    "generalised-bernoulli": random_generalised_bernoulli,
    "beta": random_beta,
}
"""The families of :func:`random_problem`, by name."""


def random_problem(family: str, arms: int, budget: float = 1.5e5) -> Problem:
    """The random instances of the ω-UCB paper, with ``budget`` in units of the least mean cost.

    Args:
        family: ``"bernoulli"`` (S-Br), ``"generalised-bernoulli"`` (S-GBr) or ``"beta"`` (S-Bt).
        arms: K of every instance.
        budget: in units of the cheapest arm's mean cost, i.e. how many pulls of it are affordable.

    Example:
        >>> import jax
        >>> from jaxbandits.tuning import random_problem
        >>> arms, constraint = random_problem("bernoulli", arms=3, budget=50.0)(jax.random.key(0), 4)
        >>> arms.instances, constraint.budget.shape
        (4, (4,))
    """
    one_of("family", family, FAMILIES)
    positive_number("budget", budget)
    whole_number("arms", arms, 2)

    def problem(key: Any, count: int) -> tuple[FiniteArms, Constraint]:
        environment = FAMILIES[family](key, count, arms)
        cheapest = environment.values()[1].min(axis=1)
        return environment, TotalBudget(budget * cheapest, last_pull="counts")

    return problem


def fixed_problem(environment: FiniteArms, constraint: Constraint) -> Problem:
    """Instances drawn with replacement from an environment, with one constraint for all.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([[0.5, 0.4], [0.3, 0.6]], [[0.9, 0.3], [0.4, 0.8]])
        >>> problem = jb.tuning.fixed_problem(arms, jb.TotalBudget(20.0, last_pull="counts"))
        >>> problem(jax.random.key(0), 5)[0].instances
        5
    """
    # What several resources have has one axis more
    several = int(environment.resources is not None)
    axes = {"budget": several, "c": several, "rounds": 0}
    if any(np.ndim(getattr(constraint, name, 0)) > axis for name, axis in axes.items()):
        raise bad("constraint", constraint, "one with the same number for all instances")

    def problem(key: Any, count: int) -> tuple[FiniteArms, Constraint]:
        rows = np.asarray(jax.random.randint(key, (count,), 0, environment.instances))
        return environment.take(rows.tolist()), constraint

    return problem


# --- What tuning found: values, gains, picture, files.

FILES = ("path.png", "run.json")


@dataclasses.dataclass(frozen=True)
class Tuned:
    """The result of :func:`tune`.

    Attributes:
        policy: with ``values``.
        values: the parameters to take: the tuned ones, unless the start or the best grid value has
            clearly less regret.
        tuned: the tuned parameters, by name as all others.
        path: parameters after every step, ``[step + 1, P]``, the start first.
        regrets: mean regret of each step's own instances, ``[step]``.
        slopes: gradient of ln(mean regret) by ln(parameter), ``[step, P]``.
        start, best: parameters of the start, and of the best grid value (None without a grid).
        grid, grid_regrets: grid values ``[G, P]`` and their mean regret on the grid's instances.
        regret: of ``policy`` on fresh instances, with its 95 % interval, as
            :class:`jaxbandits.statistics.Estimate`.
        fresh_regrets: mean regret of the tuned value, the start and the best grid value on them.
        over_start, over_best: how much less the tuned value's is than that of the start, and of the
            best grid value (None without a grid): paired, with the intervals of
            :func:`jaxbandits.statistics.dominance`, which hold at once; clear if 0 is outside.
        rounds: simulated rounds of the tuning, and of the grid.
        seconds: of the tuning, compile included, and of the grid.
        estimator: which one was used.
    """

    policy: Policy
    values: dict[str, float]
    tuned: dict[str, float]
    path: np.ndarray
    regrets: np.ndarray
    slopes: np.ndarray
    start: dict[str, float]
    best: dict[str, float] | None
    grid: np.ndarray
    grid_regrets: np.ndarray
    grid_errors: np.ndarray
    regret: Estimate
    fresh_regrets: np.ndarray
    over_start: Estimate
    over_best: Estimate | None
    rounds: tuple[int, int]
    seconds: tuple[float, float]
    estimator: str

    def lines(self) -> list[str]:
        """The report, line by line."""
        values, tuned = _numbers(self.values, named=True), _numbers(self.tuned)
        head = f"tuned: {values} (start {_numbers(self.start)}"
        if self.values != self.tuned:
            kept = "keep the start" if self.values == self.start else "take the best grid value"
            head = f"{kept}: {values} (tuned to {tuned}, which is clearly worse"
        rounds, seconds = self.rounds, self.seconds
        doubts = (x for x in self.regret.warnings if not x.startswith("skewed"))
        lines = [
            f"{head}; {len(self.regrets)} steps of {self.estimator}, {rounds[0]:.3g} rounds, {seconds[0]:.0f} s)",
            f"regret on fresh instances: {self.regret.value:.5g} [{self.regret.low:.5g}, {self.regret.high:.5g}]",
            *(f"  {doubt.split(': ', 1)[1]}" for doubt in doubts),
            _less(self.over_start, "the start's"),
        ]
        if self.best is not None and self.over_best is not None:
            took = f"{rounds[1]:.3g} rounds, {seconds[1]:.0f} s; tuning took {rounds[0] / rounds[1]:.0%} of its rounds"
            lines.append(f"best of {len(self.grid)} grid values: {_numbers(self.best)} ({took})")
            lines.append(_less(self.over_best, "the best grid value's"))
        return [*lines, f"note: {invisible(self.regret.units, 'instance')}"]

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def save(
        self, folder: str | os.PathLike[str], about: dict[str, Any] | None = None
    ) -> list[Path]:
        """Write path.png and run.json, which has everything but the policy, and ``about``."""
        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        facts = {name: x for name, x in vars(self).items() if name != "policy"}
        facts |= {"report": self.lines(), **(about or {})}
        record = json.dumps(facts, indent=1, default=_plain).encode()
        picture = _plots.encoded(self.picture(), dpi=130)
        # the first says whose the rest is
        for name, content in (("run.json", record), ("path.png", picture)):
            write_whole(out / name, lambda file, content=content: file.write(content))
        return [out / name for name in FILES]

    def picture(
        self, *, path: str | os.PathLike[str] | None = None, width: float | str | None = None
    ) -> Figure:
        """Plot the path of every parameter, and how much worse the compared values are.

        Bars are the paired intervals of these differences: one that leaves out 0 is clear.

        Args:
            path, width: as in ``result.plot.regret``.
        """
        inches = inches_of(width) or 9.0
        shape = (len(self.values), 2) if inches >= 5 else (2 * len(self.values), 1)
        size = inches, (3.2 if inches >= 5 else 2.2) * shape[0]
        figure = _plots.Picture(figsize=size, layout="constrained")
        axes = figure.subplots(*shape, squeeze=False).reshape(-1, 2)
        rivals = [("start", self.start, "o", _plots.BLUE, self.over_start)]
        if self.best is not None and self.over_best is not None:
            rivals.append(("best of the grid", self.best, "s", _plots.ink(), self.over_best))
        for i, (name, tuned) in enumerate(self.tuned.items()):
            left_axes, right_axes = axes[i]
            left_axes.plot(self.path[:, i], color=_plots.GREY, marker="o", markersize=3)
            left_axes.axhline(tuned, color=_plots.VERMILION, linestyle="--")
            left_axes.set(xlabel=f"step of {self.estimator}", ylabel=in_greek(name), yscale="log")
            _plots.plain_numbers(left_axes.yaxis)
            left_axes.xaxis.get_major_locator().set_params(integer=True)
            above = "regret above the\ntuned value's (reward)"
            right_axes.set(xlabel=in_greek(name), ylabel=above, xscale="log")
            for label, at, marker, colour, gain in rivals:
                ends = [[gain.value - gain.low], [gain.high - gain.value]]
                right_axes.errorbar(at[name], gain.value, np.nan_to_num(ends), color=colour,
                                    marker=marker, linestyle="", capsize=3, label=label)  # fmt: skip
            right_axes.plot(tuned, 0, "D", color=_plots.VERMILION, label="tuned")
            right_axes.axhline(0, color=_plots.VERMILION, linestyle=":", linewidth=1)
            compared = [tuned, *(at[name] for _, at, *_ in rivals)]
            _plots.label_grid(right_axes.xaxis, np.unique(compared), log=True, share=0.16)
            right_axes.margins(x=0.1)
        _plots.set_key(figure, *axes[0, 1].get_legend_handles_labels())
        return finished(figure, path, width)


def _less(gain: Estimate, reference: str) -> str:
    """How much less, or more, than ``reference`` the tuned value's regret is."""
    sure = "clear" if gain.low > 0 or gain.high < 0 else "not clear"
    value, low, high, less = gain.value, gain.low, gain.high, "less"
    if value < 0:  # a difference without a double negative
        value, low, high, less = -value, -high, -low, "more"
    text = f"{value:.4g} [{low:.4g}, {high:.4g}] {less}"
    return f"the tuned value's is {text} than {reference} (paired, {sure})"


def _numbers(of: Mapping[str, float], named: bool = False) -> str:
    return ", ".join(f"{name} = {x:.4g}" if named else f"{x:.4g}" for name, x in of.items())


def _plain(value: Any) -> Any:
    """An estimate or an array as JSON has it; of other objects their text."""
    if isinstance(value, Estimate):
        return vars(value)
    return value.tolist() if hasattr(value, "tolist") else str(value)


# --- The search.


@door
@of_numbers
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
    """Tune parameters by gradient descent on ln E[regret] in ln(parameters), with fresh instances.

    Each step draws new instances and moves x = ln(parameters) against ∇_x E[R(eˣ)] / E[R(eˣ)], by
    the optimiser's rule.

    A randomised policy is differentiated by its own score (``gradients.policy_score``), any other
    by antithetic Gaussian smoothing (``gradients.smoothed``), with a separate direction for each
    instance. The tuned value is the geometric mean of the second half of the path. It is then
    compared with the start and the best grid value on new instances, with the same random numbers;
    if one of these is clearly better, it is the result.

    Args:
        policy: where to start; its parameters named must be above 0 and scalar.
        problem: fresh instances on demand, e.g. :func:`random_problem`.
        wrt: names of parameters, as for the estimators.
        key: ``jax.random.key(seed)``.
        steps: of the optimiser.
        instances: fresh ones in each step; two runs on each.
        optimizer: any optax ``GradientTransformation`` on ln(parameters); default plain SGD with a
            cosine schedule from 1, gradients clipped to 3.
        sigma: of the smoothing, for policies that are not randomised.
        grid: values to compare with, ``[G]`` or ``[G, P]``.
        grid_instances: on how many instances the best of them is chosen, one run on each.
        fresh: instances of the final comparison, one run on each, at least 2.
        **options: passed to :func:`~jaxbandits.simulate`.

    Returns:
        A :class:`~jaxbandits.tuning.Tuned`: the tuned policy, its path, and its gains on fresh
        instances; regrets in the environment's unit of reward.

    Raises:
        InputError: naming the argument, before anything is compiled.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> problem = jb.tuning.random_problem("bernoulli", arms=2, budget=20.0)
        >>> tuned = jb.tune(jb.policies.SoftElim(theta=2.0), problem, wrt="theta",
        ...                 key=jax.random.key(0), steps=3, instances=8, fresh=8)
        >>> tuned.path.shape, tuned.over_best is None
        ((4, 1), True)
    """
    import optax
    import xarray

    if not callable(problem):
        must = "a function (key, count) -> (environment, constraint), such as jb.tuning.fixed_problem(…)"
        raise bad("problem", problem, must)
    names = names_of(wrt)
    for name, count, minimum in (("steps", steps, 1), ("instances", instances, 1), ("fresh", fresh, 2),
                               ("grid_instances", grid_instances, 2)):  # fmt: skip
        whole_number(name, count, minimum)
    paths = positive_parameters(policy, names)
    for path in paths:
        if np.size(get(policy, path)) != 1:
            raise bad(path, get(policy, path), "one number, to start from")
    start = np.array([np.asarray(get(policy, path), np.float64).item() for path in paths])
    values = numbers("grid", grid, "numbers, [G] or [G, parameter]")
    values = values.reshape(0, len(paths)) if values.size == 0 else values.reshape(len(values), -1)
    if values.shape[1] != len(paths) or not (np.isfinite(values) & (values > 0)).all():
        raise bad("grid", grid, f"finite numbers above 0, [G] or [G, {len(paths)}]")

    def policy_with(theta: np.ndarray) -> Policy:
        return put(policy, dict(zip(paths, theta.tolist(), strict=True)))

    def slopes_at(
        theta: np.ndarray, world: Environment, limit: Constraint, key: Any
    ) -> tuple[Any, Any, int]:
        """Each instance's regret ``[I]``, slopes by ln(parameter) ``[I, P]``; two runs each."""
        if isinstance(policy, RandomisedPolicy):
            lanes = policy_with(theta), world, limit, paths, key
            regret, score, rounds = policy_score.play_runs(*lanes, 1, 2, **options)
            slope = (centred(regret, "leave_one_out")[..., None] * score).mean(axis=3)
            return regret[0, :, 0].mean(axis=1), slope[0, :, 0] * theta, rounds
        leaves = Settings.of(policy_with(theta), world.instances, world.spec).policy
        lanes = leaves, world, limit, paths, key
        regret, slope, rounds = smoothed.pair_slopes(*lanes, sigma, 1, **options)
        return regret[0, :, 0], slope[0, :, 0], rounds

    def play(rows: np.ndarray, part: int, count: int) -> tuple[np.ndarray, int]:
        """Regret of rows of values on fresh instances, ``[row, instance]``; number of rounds."""
        part_key = jax.random.fold_in(key, part)
        world, limit = problem(jax.random.fold_in(part_key, 0), count)
        leaves = Settings.of(policy, world.instances, world.spec).policy
        leaves = jax.tree.map(lambda x: np.repeat(x, len(rows), axis=0), leaves)
        leaves = put(leaves, {path: rows[:, i, None] for i, path in enumerate(paths)})
        rows_played = Settings.of(leaves, world.instances)  # the start may be in the grid
        lane_key = jax.random.fold_in(part_key, 1)
        result = simulate(rows_played, world, limit, key=lane_key, marks=1, **options)
        return result.regret.values[:, :, 0, -1], int(result.ledger["rounds"][..., -1].sum())

    # Not Adam, which follows most instances and not the mean: docs/reproductions/gradients.md
    rate = optax.cosine_decay_schedule(1.0, steps, alpha=0.1)
    plain = optax.chain(optax.clip(3.0), optax.sgd(rate))
    climb, began, log_theta = optimizer or plain, time.perf_counter(), np.log(start)
    state = climb.init(log_theta.astype(np.float32))
    path_taken, regrets, slopes, rounds = [start], [], [], 0
    for step in range(steps):
        at = jax.random.fold_in(jax.random.fold_in(key, 3), step)
        world = problem(jax.random.fold_in(at, 0), instances)
        regret, slope, more = slopes_at(np.exp(log_theta), *world, jax.random.fold_in(at, 1))
        relative = slope.mean(axis=0) / max(float(regret.mean()), 1e-12)
        now = log_theta.astype(np.float32)
        updates, state = climb.update(relative.astype(np.float32), state, now)
        log_theta = np.asarray(optax.apply_updates(now, updates), np.float64)
        for name, value in zip(paths, np.exp(log_theta), strict=True):
            as_played(name, value, {})
        path_taken.append(np.exp(log_theta))
        regrets.append(float(regret.mean()))
        slopes.append(relative)
        rounds += more
    tuned = np.exp(np.log(np.stack(path_taken)[(len(path_taken) + 1) // 2 :]).mean(axis=0))
    ended = time.perf_counter()
    samples, grid_rounds = play(values, 1, grid_instances) if len(values) else (np.zeros((0, 2)), 0)
    seconds = ended - began, time.perf_counter() - ended
    compared = [tuned, start, *([values[samples.mean(axis=1).argmin()]] if len(values) else [])]
    regret_table, _ = play(np.stack(compared), 2, fresh)
    named = [dict(zip(names, x.tolist(), strict=True)) for x in compared]
    pairs = dominance(xarray.DataArray(regret_table, dims=("setting", "instance")), over="instance")
    means, apart = regret_table.mean(axis=1), pairs.isel(against=0)
    better = apart["smaller"].values  # clearly, than the tuned value, which is not among them
    taken = int(np.where(better, means, np.inf).argmin())
    ends = np.stack([apart[x].values for x in ("difference", "low", "high")], axis=1)[1:]
    over_start, *over_best = (Estimate(x, low, high, fresh, ()) for x, low, high in ends.tolist())
    return Tuned(
        policy=policy_with(compared[taken]),
        values=named[taken],
        tuned=named[0],
        path=np.stack(path_taken),
        regrets=np.array(regrets),
        slopes=np.stack(slopes),
        start=named[1],
        best=named[2] if len(values) else None,
        grid=values,
        grid_regrets=samples.mean(axis=1),
        grid_errors=samples.std(axis=1, ddof=1) / math.sqrt(grid_instances),
        regret=mean(regret_table[taken], over="instance"),
        fresh_regrets=means,
        over_start=over_start,
        over_best=over_best[0] if over_best else None,
        rounds=(rounds, grid_rounds),
        seconds=seconds,
        estimator="policy_score" if isinstance(policy, RandomisedPolicy) else "smoothed",
    )
