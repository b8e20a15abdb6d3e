"""What all estimators share: what they return, and how parameters are named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.protocol import Environment
from jaxbandits.environments.finite.arms import FiniteArms
from jaxbandits.environments.finite.laws import BernoulliLaw, BetaLaw

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


# --- parameters of policies ------------------------------------------------------------------------------------


# --- parameters of environments --------------------------------------------------------------------------------


def check_law(environment: Environment, names: Sequence[str]) -> FiniteArms:
    """An environment whose outcomes have a density in the named parameters.

    Raises:
        InputError: another environment or law, or a name that is none of its parameters.
    """
    if not isinstance(environment, FiniteArms) or environment.spec.resources is not None:
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


def repeat_rows(tree: Any, instances: int, times: int) -> Any:
    """Every leaf with a leading instance axis repeated ``times`` times, row by row; other leaves as they are."""

    def repeat(x: Any) -> Any:
        x = np.asarray(x)
        return np.repeat(x, times, axis=0) if x.ndim and x.shape[0] == instances else x

    return jax.tree.map(repeat, tree)
