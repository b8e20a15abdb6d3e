"""Gaussian smoothing: gradients of argmax policies, whose regret is a step function."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxbandits.core.checks import bad, positive_number, whole_number
from jaxbandits.core.protocol import Constraint, Environment, Policy
from jaxbandits.core.settings import Settings, get, leaves_of, names_of, positive_parameters, put
from jaxbandits.gradients.estimates import GradientEstimate, estimated, of_numbers, play_copies

_EPSILON = 0x5160  # folded into the key for the directions
_FEW = 10


@of_numbers
def estimate(
    policy: Policy,
    environment: Environment,
    constraint: Constraint,
    *,
    wrt: str | Sequence[str],
    key: Any,
    replicates: int = 960,
    sigma: float = 0.3,
    directions: int = 64,
    **options: Any,
) -> GradientEstimate:
    """Antithetic Gaussian smoothing (evolution strategies) of expected regret in log-parameters.

    The smoothed regret is R_σ(θ) = E R(θ e^{σε}), ε standard normal; it is smooth even where R is a
    step function, and

    .. math:: \\nabla_{\\ln\\theta} R_\\sigma = E\\Big[\\frac{f(\\theta e^{\\sigma\\varepsilon})
        - f(\\theta e^{-\\sigma\\varepsilon})}{2\\sigma}\\, \\varepsilon\\Big]

    without bias. A parameter that has a range stays in it: beyond its end f is what it is there. As
    a gradient of R itself it is biased by the smoothing, so σ is always reported. Both signs meet
    the same world.

    Args:
        policy: any policy; the parameters named are scalar or ``[setting]``, and above 0.
        environment, constraint: any.
        wrt: names of parameters, moved together.
        key: as in :func:`~jaxbandits.simulate`, which gets the further ``options``.
        replicates: pairs of runs on every instance, a multiple of ``directions``.
        sigma: σ > 0.
        directions: how many different ε are drawn for every instance, at least 2; the standard
            error counts these, and with fewer than 10 a warning says that it is itself uncertain.

    Returns:
        A :class:`GradientEstimate` of R_σ and ∂R_σ/∂θ, ``[setting, instance]``.

    Raises:
        InputError: a parameter that is not above 0, a whole number, or one per arm; replicates that
            are no multiple of ``directions``.

    Source: Nesterov and Spokoiny, Found. Comput. Math. 2017; Salimans et al., arXiv 1703.03864.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.6, 0.4], [0.5, 0.5])
        >>> estimate = jb.gradients.smoothed.estimate(
        ...     jb.policies.OmegaUCB(), arms, jb.Horizon(20), wrt="rho", key=jax.random.key(0), replicates=64)
        >>> estimate.gradient["rho"].shape, estimate.about["sigma"]
        ((1, 1), 0.3)
    """
    names = names_of(wrt)
    paths = positive_parameters(policy, names)
    whole_number("directions", directions, 2)
    if directions < _FEW:
        coverage = f"with fewer than {_FEW} of them ± 1.96 standard errors cover less than 92 %"  # of Student's t
        warnings.warn(f"directions: {directions} given; {coverage}", stacklevel=3)
    if whole_number("replicates", replicates, directions) % directions:
        less = replicates - replicates % directions
        near = f"({directions}): {less} or {less + directions}"
        raise bad("replicates", replicates, f"a multiple of directions {near}")
    sigma = positive_number("sigma", sigma)
    leaves = Settings.of(policy, environment.instances, environment.spec).policy
    worlds = replicates // directions
    value, slope, rounds = pair_slopes(
        leaves, environment, constraint, paths, key, sigma, directions, worlds, **options
    )
    about: dict[str, Any] = {"estimator": "smoothed", "sigma": sigma, "directions": directions}
    about |= {"unbiased_for": "expected regret smoothed in log parameters"}
    about |= {"rounds": rounds, "replicates": worlds * directions}
    result = estimated(value, names, slope, **about)
    for name, path in zip(names, paths, strict=True):  # from a slope by ln θ to one by θ
        theta = np.asarray(get(leaves, path), np.float64)  # [setting, 1 or instance]
        result.gradient[name][...] /= theta
        result.standard_error[name][...] /= theta
    return result


def pair_slopes(
    leaves: Policy,
    environment: Environment,
    constraint: Constraint,
    paths: Sequence[str],
    key: Any,
    sigma: float,
    directions: int,
    replicates: int = 1,
    **options: Any,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Slopes from antithetic pairs: ``directions`` per instance, ``replicates`` for each.

    Gives the mean regret of a pair ``[setting, instance, direction]``, its slopes by log parameters
    ``[setting, instance, direction, parameter]``, and the rounds played.
    """
    instances, settings = environment.instances, jax.tree.leaves(leaves)[0].shape[0]
    shape = instances * directions, len(paths)
    epsilon = np.asarray(jax.random.normal(jax.random.fold_in(key, _EPSILON), shape))

    def copied(x: np.ndarray) -> np.ndarray:
        return np.repeat(x, directions, axis=1) if x.shape[1] > 1 else x

    step = sigma * epsilon.astype(np.float64)
    shifted = antithetic(jax.tree.map(copied, leaves), paths, step)
    options |= {"copies": directions, "key": key, "replicates": replicates}
    _, regret, rounds = play_copies(shifted, environment, constraint, **options)
    regret = regret.mean(axis=2).reshape(2, settings, instances, directions)
    difference = (regret[0] - regret[1])[..., None] / (2 * sigma)
    slope = difference * epsilon.reshape(instances, directions, -1)
    return regret.mean(axis=0), slope, rounds


def antithetic(leaves: Policy, paths: Sequence[str], step: np.ndarray) -> Policy:
    """Parameters times e^{+step}, then times e^{−step}; ``step``: ``[instance, parameter]``."""
    both = jax.tree.map(lambda x: np.concatenate([x, x]), leaves)
    values = {}
    for i, path in enumerate(paths):
        theta, declared = np.asarray(get(leaves, path), np.float64), leaves_of(leaves)[path]
        shifted = np.concatenate([theta * np.exp(s * step[:, i]) for s in (1, -1)])
        # Held in the range of the parameter: beyond it, R is what it is at its end.
        lower, upper = declared.get("at_least"), declared.get("at_most")
        if (above := declared.get("above")) is not None:
            lower = np.nextafter(np.float32(above), np.float32(np.inf))
        values[path] = np.clip(shifted, lower, upper) if (lower, upper) != (None, None) else shifted
    return put(both, values)
