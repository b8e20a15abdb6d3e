"""What all estimators share: what they return, what they refuse, how they play and sum up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits._engine.prepared import prepare
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.parameters import get, leaves_of, put
from jaxbandits.core.protocol import Constraint, Environment, Policy
from jaxbandits.environments.finite.arms import FiniteArms
from jaxbandits.environments.finite.laws import BernoulliLaw, BetaLaw
from jaxbandits.result import Result
from jaxbandits.simulation import simulate

MEANS = ("mean_reward", "mean_cost")
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


def check_law(environment: Environment, names: Sequence[str]) -> FiniteArms:
    """An environment whose outcomes have a density in the named parameters.

    Raises:
        InputError: another environment or law, or a name that is none of its parameters.
    """
    if not isinstance(environment, FiniteArms) or environment.resources is not None:
        raise bad("environment", type(environment).__name__, "FiniteArms with one cost")
    law = environment.law
    if not isinstance(law, (BernoulliLaw, BetaLaw)):
        raise InputError(f"environment: arms with a {type(law).__name__} have no parameters to differentiate by")
    known = MEANS if isinstance(law, BernoulliLaw) else SHAPES
    for name in names:
        if name not in known:
            kind = "Bernoulli" if known is MEANS else "Beta"
            raise bad("wrt", name, f"one of {', '.join(known)}, the parameters of {kind} arms")
    return environment


# --- from runs to an estimate ------------------------------------------------------------------------------------


def play(
    policy: Policy, environment: Environment, constraint: Constraint, *, copies: int = 1, **options: Any
) -> tuple[Result, np.ndarray, int]:
    """Runs to the end of the clock on ``copies`` of every instance, side by side: row ``i·copies + j`` is a copy of i.

    Args:
        policy: one, or canonical leaves ``[setting, 1 or instance·copies, …]``.
        environment, constraint: as given by the user.
        copies: how many rows each instance becomes.
        **options: passed to :func:`~jaxbandits.simulate`.

    Returns:
        The result, the regret ``[setting, instance·copies, replicate]``, and the rounds played.

    Raises:
        InputError: naming the status of a run that did not end.
    """
    if copies > 1:
        environment, constraint = _copied(environment, copies), _copied_constraint(constraint, environment, copies)
    result = simulate(policy, environment, constraint, marks=1, **options)
    bad_ends = set(np.unique(result.status.values)) - {"exhausted", "horizon"}
    if bad_ends:
        raise InputError(f"max_rounds: runs ended as {sorted(bad_ends)}; it must leave every run its whole clock")
    return result, result.regret.values[..., -1], int(result.ledger["rounds"][..., -1].sum())


def _copied(environment: Environment, copies: int) -> Environment:
    return jax.tree.map(lambda x: np.repeat(np.asarray(x), copies, axis=0), environment)


def _copied_constraint(constraint: Constraint, environment: Environment, copies: int) -> Constraint:
    # As the user gave it, a leaf may or may not have an instance axis; as it is played, it has one. Lengths do not
    # tell: a budget [d] of d resources may meet d instances.
    prepared = prepare(constraint, environment)
    values = {path: np.asarray(get(constraint, path)) for path in leaves_of(constraint)}
    per_instance = [path for path, x in values.items() if x.ndim == jax.tree.leaves(get(prepared, path))[0].ndim]
    return put(constraint, {path: np.repeat(values[path], copies, axis=0) for path in per_instance})


MeanAndError = tuple[np.ndarray, np.ndarray]


def mean_and_error(samples: np.ndarray) -> MeanAndError:
    """Mean of independent samples ``[setting, instance, sample, …]``, and its standard error."""
    return samples.mean(axis=2), samples.std(axis=2, ddof=1) / np.sqrt(samples.shape[2])


def by_name(names: Sequence[str], samples: np.ndarray) -> dict[str, MeanAndError]:
    """:func:`mean_and_error` of ``[setting, instance, sample, parameter]`` by name of the parameter."""
    mean, error = mean_and_error(samples)
    return {name: (mean[..., i], error[..., i]) for i, name in enumerate(names)}


def estimate_of(regret: np.ndarray, slopes: Mapping[str, MeanAndError], **about: Any) -> Estimate:
    """An :class:`Estimate` from samples of the regret ``[setting, instance, sample]`` and slopes by name."""
    value, error = mean_and_error(regret)
    gradient = {name: mean for name, (mean, _) in slopes.items()}
    errors = {"value": error} | {name: error for name, (_, error) in slopes.items()}
    return Estimate(value, gradient, errors, about)
