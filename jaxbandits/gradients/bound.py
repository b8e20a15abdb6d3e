"""Gradients of the papers' closed-form regret bounds: plain :func:`jax.grad`, in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.constraints import AverageCost, Horizon, TotalBudget
from jaxbandits.core.checks import InputError, bad, refuse
from jaxbandits.core.protocol import Constraint, Environment, Policy
from jaxbandits.core.settings import Settings, names_of
from jaxbandits.environments import CensoredArms, FiniteArms, RevealConsumption, WithNullArm
from jaxbandits.gradients.estimates import MEANS, GradientEstimate, certain, of_numbers
from jaxbandits.oracles import bounds
from jaxbandits.policies import RCUCB, SUAK, OmegaStarUCB, OmegaUCB

Bound = tuple[Callable[..., Any], dict[str, np.ndarray], str]
"""(bound for one instance, its named arguments with a leading instance axis, the theorem)."""


@of_numbers
def estimate(
    policy: Policy,
    environment: Environment,
    constraint: Constraint,
    *,
    wrt: str | Sequence[str],
    key: Any = None,
) -> GradientEstimate:
    """Value and gradient of a policy's closed-form regret *bound*, without simulation.

    =========== ============================ ================== ======================================
    policy      environment, constraint      theorem            wrt
    =========== ============================ ================== ======================================
    OmegaUCB    FiniteArms, TotalBudget      5 (and 4 inside)   rho, mean_reward, mean_cost
    RCUCB       censored arms, Horizon       1                  alpha, values (penalised gains v)
    SUAK        WithNullArm, AverageCost     3.2                c, mean_reward, mean_cost
    =========== ============================ ================== ======================================

    Args:
        policy: one setting of it.
        environment, constraint: as in the table.
        wrt: names from the table.
        key: not used.

    Returns:
        A :class:`GradientEstimate` with standard errors of 0; ``about["theorem"]`` names the
        theorem.

    Raises:
        InputError: a policy without such a theorem, another environment or constraint, a name that
            is none of the bound's arguments, absent arms.

    Example:
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.8, 0.4], [0.4, 0.6])
        >>> budget = jb.TotalBudget(100.0, last_pull="counts")
        >>> estimate = jb.gradients.bound.estimate(jb.policies.OmegaUCB(rho=1.0), arms, budget, wrt="rho")
        >>> estimate.about["theorem"], estimate.gradient["rho"].shape
        ('Heyden et al., Theorem 5', (1, 1))
    """
    names = names_of(wrt)
    function, arguments, theorem = regret_bound(policy, environment, constraint)
    if unknown := [name for name in names if name not in arguments]:
        raise bad("wrt", unknown[0], f"one of {', '.join(arguments)}, the arguments of the bound")
    by_instance = []
    with jax.enable_x64(True):
        for i in range(environment.instances):
            point = {name: jnp.asarray(x[i], jnp.float64) for name, x in arguments.items()}

            def of(moving: dict[str, Any], point: dict[str, Any] = point, i: int = i) -> Any:
                return function(i, **(point | moving))

            by_instance.append(jax.value_and_grad(of)({name: point[name] for name in names}))
    values, gradient = jax.tree.map(lambda *x: np.stack(x)[None], *by_instance)
    gradient = {name: gradient[name] for name in names}
    return certain(values, gradient, estimator="bound", theorem=theorem)


_FITS: dict[type, tuple[Any, Any]] = {
    OmegaUCB: (FiniteArms, TotalBudget),
    RCUCB: ((CensoredArms, RevealConsumption), Horizon),
    SUAK: (WithNullArm, AverageCost),
}


def regret_bound(policy: Any, environment: Any, constraint: Any) -> Bound:
    """The function of a policy's bound, its arguments by name, and the theorem."""
    name, every = type(policy).__name__, environment.instances
    kind = next((kind for kind in _FITS if isinstance(policy, kind)), None)
    if kind is None or isinstance(policy, OmegaStarUCB):
        may_be = (
            "OmegaUCB (its theorem is for a known η), RCUCB or SUAK, whose bounds are implemented"
        )
        raise bad("policy", name, may_be)
    worlds, accountant = _FITS[kind]
    if not isinstance(environment, worlds) or not isinstance(constraint, accountant):
        kinds = f"{type(environment).__name__} and {type(constraint).__name__} given"
        world = (worlds if isinstance(worlds, type) else worlds[0]).__name__
        must = f"for {name} they must be {world} and {accountant.__name__}"
        raise InputError(f"environment, constraint: {kinds}; {must}")
    settings: Any = Settings.of(policy, every, environment.spec)
    if settings.count != 1:
        raise bad("policy", policy, "a policy with one setting, without arrays of values")

    def per_instance(x: Any) -> np.ndarray:
        """A number for each instance, or one for all, as ``f64[instance]``."""
        return np.broadcast_to(np.asarray(x, np.float64), (every,))

    values = (environment.arms if kind is SUAK else environment).values()
    if np.isnan(values[0]).any() or (kind is not RCUCB and values[1].ndim != 2):
        given = "absent arms or several resources given"
        raise InputError(f"environment: {given}; bounds need all arms and one cost")
    means = dict(zip(MEANS, values, strict=True))
    if kind is OmegaUCB:
        rho = per_instance(settings.policy.rho[0])
        return _of_omega(rho, means, per_instance(constraint.budget))
    rounds = per_instance(constraint.rounds)
    if kind is SUAK:
        return _of_suak(per_instance(constraint.c), means, rounds)
    return _of_rcucb(per_instance(settings.policy.alpha[0]), values[0], environment.spec, rounds)


def _of_omega(rho: np.ndarray, means: dict[str, np.ndarray], budgets: np.ndarray) -> Bound:
    # τ_B of the theorem is a whole number, and so a constant of every derivative.
    each = zip(budgets, means["mean_cost"], strict=True)
    taus = [int(2 * budget / cost.min()) for budget, cost in each]

    def bound(i: int, rho: Any, mean_reward: Any, mean_cost: Any) -> Any:
        return bounds.omega_regret_at(rho, mean_reward, mean_cost, taus[i])

    return bound, {"rho": rho, **means}, "Heyden et al., Theorem 5"


def _of_suak(c: np.ndarray, means: dict[str, np.ndarray], rounds: np.ndarray) -> Bound:
    def bound(i: int, c: Any, mean_reward: Any, mean_cost: Any) -> Any:
        return bounds.suak_regret(mean_reward, mean_cost, c, int(rounds[i]))

    return bound, {"c": c, **means}, "SUAK, Theorem 3.2"


def _of_rcucb(alpha: np.ndarray, gains: np.ndarray, spec: Any, rounds: np.ndarray) -> Bound:
    refuse("alpha", alpha, alpha <= 1, "above 1 (the theorem needs it)")
    penalties = np.asarray(spec.penalties, np.float64)

    def bound(i: int, alpha: Any, values: Any) -> Any:
        return bounds.rcucb_regret(alpha, values, jnp.asarray(penalties), int(rounds[i]))

    table = gains.reshape(len(alpha), spec.arms, len(spec.limits))
    theorem = "Bengs and Hüllermeier, Theorem 1 without its second sum"
    return bound, {"alpha": alpha, "values": table}, theorem
