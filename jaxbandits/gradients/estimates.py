"""What all estimators share: what they return, what they refuse, how they play and sum up."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import ticks
from jaxbandits.core.checks import InputError, bad, whole_number
from jaxbandits.core.protocol import Constraint, Environment, Observation, Policy
from jaxbandits.core.pytrees import Pytree
from jaxbandits.core.settings import get, leaves_of, put
from jaxbandits.core.ticks import Total
from jaxbandits.environments.finite import BernoulliLaw, BetaLaw, FiniteArms, WithNullArm
from jaxbandits.policies.wrappers import Around
from jaxbandits.result import Result
from jaxbandits.simulation import simulate

MEANS = ("mean_reward", "mean_cost")
BASELINES = ("leave_one_out", "self_play", "none")
SHAPES = ("reward_alpha", "reward_beta", "cost_alpha", "cost_beta")


class Estimate(NamedTuple):
    """An expected regret and its gradient, float64 arrays ``[setting, instance, …]``.

    Attributes:
        value: expected regret at the end of the clock, ``[setting, instance]``.
        gradient: by name of the parameter, ``[setting, instance]`` for a scalar, ``[setting, instance, K]`` per arm.
        standard_error: as ``gradient``, and of the value under the name ``"value"``.
        about: the estimator's name, what it is unbiased for, and its settings.
    """

    value: np.ndarray
    gradient: dict[str, np.ndarray]
    standard_error: dict[str, np.ndarray]
    about: dict[str, Any]


def check_law(environment: Environment, names: Sequence[str], several: bool = False) -> FiniteArms:
    """The arms, if their outcomes have a density in the named parameters; ``several``: resources, and a null arm."""
    arms = environment.arms if several and isinstance(environment, WithNullArm) else environment
    if not isinstance(arms, FiniteArms) or (arms.resources is not None and not several):
        raise bad("environment", type(environment).__name__, "FiniteArms" + ("" if several else " with one cost"))
    law = arms.law
    if arms.resources is not None and not isinstance(law, BernoulliLaw):
        raise InputError(f"environment: a {type(law).__name__} with several resources given; it must be Bernoulli")
    if not isinstance(law, (BernoulliLaw, BetaLaw)):
        raise InputError(f"environment: arms with a {type(law).__name__} have no parameters to differentiate by")
    known = MEANS if isinstance(law, BernoulliLaw) else SHAPES
    for name in names:
        if name not in known:
            kind = "Bernoulli" if known is MEANS else "Beta"
            raise bad("wrt", name, f"one of {', '.join(known)}, the parameters of {kind} arms")
    return arms


def check_runs(replicates: Any, baseline: str = "none") -> None:
    """At least two runs, and a baseline that there is."""
    whole_number("replicates", replicates, 2)
    if baseline not in BASELINES:
        raise bad("baseline", baseline, " or ".join(map(repr, BASELINES)))


# --- From runs to an estimate.


def play(
    policy: Policy, environment: Environment, constraint: Constraint, *, copies: int = 1, **options: Any
) -> tuple[Result, np.ndarray, int]:
    """Runs to the end of the clock on ``copies`` of every instance, side by side: row ``i·copies + j`` is a copy of i.

    Gives the result, the regret ``[setting, instance·copies, replicate]``, and the rounds played.
    """
    if copies > 1:
        constraint = _copied(constraint, environment, copies)
        environment = jax.tree.map(lambda x: np.repeat(np.asarray(x), copies, axis=0), environment)
    result = simulate(policy, environment, constraint, marks=1, **options)
    bad_ends = set(np.unique(result.status.values)) - {"exhausted", "horizon"}
    if bad_ends:
        raise InputError(f"max_rounds: runs ended as {sorted(bad_ends)}; it must leave every run its whole clock")
    return result, result.regret.values[..., -1], int(result.ledger["rounds"][..., -1].sum())


def _copied(constraint: Constraint, environment: Environment, copies: int) -> Constraint:
    # As the user gave it, a leaf may or may not have an instance axis; as it is played, it has one. Lengths do not
    # tell: a budget [d] of d resources may meet d instances.
    prepared = constraint.prepare(environment)
    values = {path: np.asarray(get(constraint, path)) for path in leaves_of(constraint)}
    per_instance = [path for path, x in values.items() if x.ndim == jax.tree.leaves(get(prepared, path))[0].ndim]
    return put(constraint, {path: np.repeat(values[path], copies, axis=0) for path in per_instance})


def mean_and_error(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean of independent samples ``[setting, instance, sample, …]``, and its standard error."""
    return samples.mean(axis=2), samples.std(axis=2, ddof=1) / np.sqrt(samples.shape[2])


_CARRIED = 15  # degrees of freedom below which ± 1.96 standard errors covered 81 to 92 %, in samples of 100


def warn_of_few(name: str, samples: np.ndarray) -> None:
    """Warn where a few runs carry a standard error: 2n/(κ − 1) degrees of freedom, κ the kurtosis of n samples."""
    square = (samples - samples.mean(axis=2, keepdims=True)) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = 2 * samples.shape[2] / ((square**2).mean(axis=2) / square.mean(axis=2) ** 2 - 1)
    if (few := freedom < _CARRIED).any():
        where = ", ".join(map(str, np.unique(np.nonzero(few)[-1])[:8]))
        carried = f"a few of {samples.shape[2]} runs carry its standard error, ± 1.96 of which cover less than 92 %"
        warnings.warn(f"gradient by {name}, arm {where}: {carried}; take more replicates", stacklevel=3)


def by_name(names: Sequence[str], samples: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """:func:`mean_and_error` of ``[setting, instance, sample, parameter]`` by name of the parameter.

    Of all parameters at once: NumPy sums one column of several in another order, to another last bit.
    """
    mean, error = mean_and_error(samples)
    return {name: (mean[..., i], error[..., i]) for i, name in enumerate(names)}


def estimated(regret: np.ndarray, found: Mapping[str, tuple[np.ndarray, np.ndarray]], **about: Any) -> Estimate:
    """An :class:`Estimate` from samples of the regret ``[setting, instance, sample]``; means and errors of slopes."""
    value, error = mean_and_error(regret)
    errors = {"value": error} | {name: error for name, (_, error) in found.items()}
    return Estimate(value, {name: mean for name, (mean, _) in found.items()}, errors, about)


def certain(value: np.ndarray, gradient: Mapping[str, np.ndarray], **about: Any) -> Estimate:
    """An :class:`Estimate` in which nothing is random."""
    none = {name: np.zeros_like(x) for name, x in {**gradient, "value": value}.items()}
    return Estimate(value, dict(gradient), none, about)


def centred(regret: np.ndarray, baseline: str, axis: int = -1) -> np.ndarray:
    """Regret minus its baseline, both along an axis of independent runs, at least 2.

    A baseline is independent of the run from which it is subtracted, so it biases nothing. ``leave_one_out``: the mean
    of the other runs; ``self_play``: the next run; ``none``: 0.
    """
    if baseline == "none":
        return regret
    if baseline == "self_play":
        return regret - np.roll(regret, -1, axis=axis)
    return regret - (regret.sum(axis=axis, keepdims=True) - regret) / (regret.shape[axis] - 1)


# --- Policies that act as another one and report what they saw, in exact totals.


class Watching(Around):
    """Acts as its inner ``policy``; the state is a NamedTuple whose field ``policy`` is the inner one's."""

    def status(self, state: Pytree) -> jax.Array:
        return self.policy.status(state.policy)

    def update(self, state: Pytree, key: jax.Array, observation: Observation) -> Pytree:
        return state._replace(policy=self.policy.update(state.policy, self.own_key(key), observation))

    def own_key(self, key: jax.Array) -> jax.Array:
        """The key that the inner policy sees."""
        return key


_LARGEST = np.float32(2.0**24)


def add(total: Total, x: jax.Array) -> Total:
    """``total + x``, x rounded to 2⁻²⁴ and cut to ±2²⁴; nothing else is ever rounded."""
    x = jnp.clip(x.astype(jnp.float32), -_LARGEST, _LARGEST)
    whole = jnp.floor(x)
    part = jnp.rint((x - whole) * ticks.ONE).astype(jnp.int32)  # up to 2²⁴: plus carries it
    return ticks.plus(total, Total(whole.astype(jnp.int32), part))


def reported(name: str, total: Total) -> dict[str, jax.Array]:
    """The total's two limbs as named final values."""
    return {f"{name}_whole": total.whole, f"{name}_part": total.part}


def read(result: Result, name: str) -> np.ndarray:
    """Host: what :func:`reported` gave, float64."""
    whole, part = (np.asarray(result.final[f"{name}_{limb}"]) for limb in ("whole", "part"))
    return ticks.to_units(ticks.join(Total(whole, part)))  # type: ignore[arg-type]
