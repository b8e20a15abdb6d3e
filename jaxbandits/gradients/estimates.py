"""Shared by all estimators: their result, checks, simulation and sums."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics.arrays import one_of
from jaxbandits._tables import Shown, Table
from jaxbandits.constraints import Horizon, TotalBudget
from jaxbandits.core.checks import InputError, bad, refuse_traced, whole_number
from jaxbandits.core.protocol import Constraint, Environment, Observation, Policy, Status
from jaxbandits.core.pytrees import Pytree
from jaxbandits.core.settings import Settings, get, leaves_of, put
from jaxbandits.environments.finite import BernoulliLaw, BetaLaw, FiniteArms, WithNullArm
from jaxbandits.policies.wrappers import Around
from jaxbandits.result import Result
from jaxbandits.simulation import simulate

MEANS = ("mean_reward", "mean_cost")
BASELINES = ("leave_one_out", "self_play", "none")
SHAPES = ("reward_alpha", "reward_beta", "cost_alpha", "cost_beta")
P = ParamSpec("P")
R = TypeVar("R")


class GradientEstimate(NamedTuple):
    """An expected regret and its gradient, float64 arrays ``[setting, instance, …]``.

    Attributes:
        value: expected regret at the end of the clock, ``[setting, instance]``.
        gradient: by name of the parameter, ``[setting, instance]`` for a scalar, ``[setting,
            instance, K]`` per arm.
        standard_error: as ``gradient``, and of the value under the name ``"value"``.
        about: the estimator's name, what it is unbiased for, and its settings.
    """

    value: np.ndarray
    gradient: dict[str, np.ndarray]
    standard_error: dict[str, np.ndarray]
    about: dict[str, Any]

    def __repr__(self) -> str:
        rows = self._shown_rows().rows
        by = self.about.get("estimator", "")
        more = f", … {len(rows)} in all" if len(rows) > 4 else ""
        texts = (f"{name} {value} (standard error {error})" for name, _, value, error in rows[:4])
        return f"GradientEstimate({by}: {', '.join(texts)}{more})"

    def _shown_rows(self) -> Table:
        """Value and slopes at each place ``[setting, instance, …]``, with their standard errors."""
        parts = {"value": self.value} | {f"d/d {x}": y for x, y in self.gradient.items()}
        errors = (self.standard_error[name.removeprefix("d/d ")] for name in parts)
        rows = [
            [name, ", ".join(map(str, at)), f"{part[at]:.4g}", f"{error[at]:.2g}"]
            for (name, part), error in zip(parts.items(), errors, strict=True)
            for at in np.ndindex(part.shape)
        ]
        return Table(("", "setting, instance, …", "estimate", "standard error"), rows)

    def _repr_html_(self) -> str:
        return Shown._repr_html_(self)  # type: ignore[arg-type]


class Scores(NamedTuple):
    """Runs, and their scores by the parameters of an instance.

    Attributes:
        regret: ``[setting, instance, replicate]``.
        score: Σ ∂ ln p(outcome) by name, ``[setting, instance, replicate, …]``.
        explicit: ∂ regret at fixed pulls, shaped as the score.
        exists: 0 by name, NaN where there is no such parameter, ``[instance, …]``.
        rounds: that were played.
    """

    regret: np.ndarray
    score: dict[str, np.ndarray]
    explicit: dict[str, np.ndarray]
    exists: dict[str, np.ndarray]
    rounds: int


def of_numbers(estimate: Callable[P, R]) -> Callable[P, R]:
    """Decorator: the estimator refuses traced arguments, and otherwise runs as usual."""
    names = tuple(inspect.signature(estimate).parameters)

    @functools.wraps(estimate)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name, value in {**dict(zip(names, args, strict=False)), **kwargs}.items():
            refuse_traced(name, value)
        with jax.ensure_compile_time_eval():
            return estimate(*args, **kwargs)

    return checked


def beside_null(environment: Environment) -> Environment:
    """The environment without its null arm, if it has one."""
    return environment.arms if isinstance(environment, WithNullArm) else environment


def check_law(environment: Environment, names: Sequence[str]) -> FiniteArms:
    """The arms, without a null arm, if their outcomes have a density in the named parameters."""
    arms = beside_null(environment)
    if not isinstance(arms, FiniteArms):
        must = "FiniteArms, or ContextualArms for score_function"
        raise bad("environment", type(environment).__name__, must)
    kinds = BernoulliLaw if arms.resources is not None else (BernoulliLaw, BetaLaw)
    if not isinstance(arms.law, kinds):
        must = "given; it must be Bernoulli arms, or Beta arms with one cost, which have parameters"
        raise InputError(f"environment: arms with a {type(arms.law).__name__} {must}")
    parameters = MEANS if isinstance(arms.law, BernoulliLaw) else SHAPES
    if unknown := [name for name in names if name not in parameters]:
        must = f"one of {', '.join(parameters)}, the parameters of these arms"
        raise bad("wrt", unknown[0], must)
    return arms


def check_replicates(replicates: Any, baseline: str = "none") -> None:
    """Refuse fewer than two replicates, and a baseline that does not exist."""
    whole_number("replicates", replicates, 2)
    one_of("baseline", baseline, BASELINES)


def next_kink(arms: FiniteArms, constraint: Constraint, names: Sequence[str]) -> dict[str, Any]:
    """``"next_kink"``, ``[I]``: the least change of one named mean that makes another arm the best.

    There the regret has a kink, and differences across it are not slopes. Empty if the benchmark is
    not one arm.
    """
    if arms.resources is not None or not isinstance(constraint, (Horizon, TotalBudget)):
        return {}
    reward, cost = arms.values()
    by_money = constraint.clock_name == "spent"
    cost = cost if by_money else np.ones_like(cost)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(np.isnan(reward), -np.inf, reward / cost)
        is_best = np.arange(ratio.shape[1]) == ratio.argmax(axis=1)[:, None]
        rival = np.where(is_best, -np.inf, ratio).max(axis=1, keepdims=True)
        rival = np.where(is_best, rival, ratio.max(axis=1, keepdims=True))
        ways = {"reward": np.abs(rival * cost - reward)}
        if by_money:
            ways["cost"] = np.abs(np.where(rival > 0, reward / rival, np.inf) - cost)
    moving = [x for kind, x in ways.items() if any(kind in name for name in names)]
    return {"next_kink": np.fmin.reduce(np.hstack(moving), axis=1)} if moving else {}


# --- From runs to an estimate.


def play_copies(
    policy: Policy,
    environment: Environment,
    constraint: Constraint,
    *,
    copies: int = 1,
    **options: Any,
) -> tuple[Result, np.ndarray, int]:
    """Runs to the end of the clock on ``copies`` of each instance; row ``i·copies + j`` copies i.

    Gives the result, the regret ``[setting, instance·copies, replicate]``, and the rounds played.
    """
    if copies > 1:
        # As the user gave it, a leaf of a constraint may or may not have an instance axis; as it is
        # played, it has one. Lengths do not tell: a budget [d] of d resources may meet d instances.
        prepared, repeated = constraint.prepare(environment), {}
        for path in leaves_of(constraint):
            x = np.asarray(get(constraint, path))
            if x.ndim == jax.tree.leaves(get(prepared, path))[0].ndim:
                repeated[path] = np.repeat(x, copies, axis=0)
        constraint = put(constraint, repeated)
        environment = jax.tree.map(lambda x: np.repeat(np.asarray(x), copies, axis=0), environment)
    settings = Settings.of(policy, environment.instances)  # two shifted ones may be equal
    result = simulate(settings, environment, constraint, marks=1, **options)
    if invalid := np.count_nonzero(result.ended == Status.INVALID):
        cause = "a score is NaN, or the action does not exist"
        raise InputError(f"policy: {invalid} of {result.ended.size} runs end as invalid: {cause}")
    if not np.isin(result.ended, (Status.EXHAUSTED, Status.HORIZON)).all():
        raise InputError(
            "max_rounds: some runs ended before their clock did; it must be large enough for all runs"
        )
    return result, result.regret.values[..., -1], int(result.ledger["rounds"][..., -1].sum())


def mean_and_error(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean of independent samples ``[setting, instance, sample, …]``, and its standard error."""
    return samples.mean(axis=2), samples.std(axis=2, ddof=1) / np.sqrt(samples.shape[2])


_CARRIED = 15  # degrees of freedom below which ± 1.96 standard errors covered 81 to 92 %, in samples of 100


def warn_of_few(name: str, samples: np.ndarray) -> None:
    """Warn if few of n runs determine a standard error: freedom 2n/(κ − 1), κ their kurtosis."""
    square = (samples - samples.mean(axis=2, keepdims=True)) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = 2 * samples.shape[2] / ((square**2).mean(axis=2) / square.mean(axis=2) ** 2 - 1)
    if (uncertain := freedom < _CARRIED).any():
        places = ", ".join(map(str, np.unique(np.nonzero(uncertain)[2])[:8]))
        carried = f"a few of {samples.shape[2]} runs dominate; ± 1.96 standard errors cover less than 92 %"
        warnings.warn(
            f"gradient by {name}, arm {places}: {carried}; take more replicates", stacklevel=4
        )


def estimated(
    regret: np.ndarray, names: Sequence[str], slopes: np.ndarray, **about: Any
) -> GradientEstimate:
    """From regret ``[setting, instance, sample]`` and its slopes ``[…, sample, parameter]``."""
    value, error = mean_and_error(regret)
    # Of all parameters at once: NumPy sums one column of several in another order, to other bits
    parts = (np.moveaxis(x, -1, 0) for x in mean_and_error(slopes))
    mean, errors = (dict(zip(names, x, strict=True)) for x in parts)
    return GradientEstimate(value, mean, {"value": error, **errors}, about)


def certain(
    value: np.ndarray, gradient: Mapping[str, np.ndarray], **about: Any
) -> GradientEstimate:
    """A :class:`GradientEstimate` without standard errors."""
    for name, slopes in gradient.items():
        refuse_endless(name, slopes, "places")
    none = {name: np.zeros_like(x) for name, x in {**gradient, "value": value}.items()}
    return GradientEstimate(value, dict(gradient), none, about)


def centred(regret: np.ndarray, baseline: str, axis: int = -1) -> np.ndarray:
    """Regret minus its baseline, both along an axis of independent runs, at least 2.

    A baseline is independent of the run from which it is subtracted, so it biases nothing.
    ``leave_one_out``: the mean of the other runs; ``self_play``: the next run; ``none``: 0.
    """
    if baseline == "none":
        return regret
    if baseline == "self_play":
        return regret - np.roll(regret, -1, axis=axis)
    return regret - (regret.sum(axis=axis, keepdims=True) - regret) / (regret.shape[axis] - 1)


# --- Policies that act as another one and report what they saw, in sums without a unit.


class Watching(Around):
    """Chooses as its inner ``policy``, whose state is the field ``policy`` of a NamedTuple."""

    def status(self, state: Pytree) -> jax.Array:
        return self.policy.status(state.policy)

    def update(self, state: Pytree, key: jax.Array, observation: Observation) -> Pytree:
        inner = self.policy.update(state.policy, self.own_key(key), observation)
        return state._replace(policy=inner)

    def own_key(self, key: jax.Array) -> jax.Array:
        """The key for the inner policy."""
        return key


def scale(values: Any) -> Any:
    """A parameter's scale, 1 for 0; slopes relative to it are the same in every unit."""
    size = abs(values)
    return size + (size == 0)


def moved(policy: Policy, paths: Sequence[str], shares: jax.Array) -> Policy:
    """The policy with each parameter moved by a share of its :func:`scale`."""
    values = [get(policy, path) for path in paths]
    steps = [v + scale(v) * share for v, share in zip(values, shares, strict=True)]
    return put(policy, dict(zip(paths, steps, strict=True)))


class FloatSum(NamedTuple):
    """``whole + rest``, float32: any sum to some 45 bits; NaN if a term is not finite."""

    whole: jax.Array
    rest: jax.Array


def no_floats(shape: tuple[int, ...]) -> FloatSum:
    """The empty sum, of any shape."""
    return FloatSum(jnp.zeros(shape, jnp.float32), jnp.zeros(shape, jnp.float32))


def add_floats(total: FloatSum, x: jax.Array) -> FloatSum:
    """``total + x``, with what the larger number rounds away kept in ``rest`` (Knuth's sum)."""
    near = total.whole + x
    part = near - total.whole
    rest = total.rest + ((total.whole - (near - part)) + (x - part))
    whole = near + rest
    return FloatSum(whole, rest - (whole - near))


def reported(name: str, total: FloatSum) -> dict[str, jax.Array]:
    """The sum's two parts as named final values."""
    return {f"{name}_{part}": x for part, x in total._asdict().items()}


def read(result: Result, name: str) -> np.ndarray:
    """Host: the sums reported by :func:`reported`, float64."""
    whole, rest = (np.asarray(result.final[f"{name}_{x}"], np.float64) for x in FloatSum._fields)
    return whole + rest


def by_parameter(policy: Policy, paths: Sequence[str], slopes: np.ndarray) -> np.ndarray:
    """Slopes by the parameters, from slopes ``[setting, …, parameter]`` relative to the scale."""
    for i, path in enumerate(paths):
        refuse_endless(path, slopes[..., i])
        size = scale(np.asarray(get(policy, path), np.float64))
        slopes[..., i] /= size.reshape(size.shape + (1,) * (slopes.ndim - 1 - size.ndim))
    return slopes


def refuse_endless(name: str, slopes: np.ndarray, what: str = "runs") -> None:
    """Raise :class:`InputError` where a slope by parameter ``name`` is NaN or infinite."""
    if endless := np.count_nonzero(~np.isfinite(slopes)):
        cause = "0/0, or a root or logarithm at 0: guard it with jnp.where, inside and outside"
        raise InputError(
            f"wrt: the slope by {name} is not finite in {endless} of {slopes.size} {what} ({cause})"
        )
