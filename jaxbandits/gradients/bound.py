"""Gradients of the papers' closed-form regret bounds: plain :func:`jax.grad`, in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.constraints import AverageCost, Horizon, TotalBudget
from jaxbandits.core.checks import InputError, bad
from jaxbandits.core.protocol import Constraint, Environment, Policy
from jaxbandits.core.settings import Settings, names_of
from jaxbandits.environments import CensoredArms, FiniteArms, RevealConsumption, WithNullArm
from jaxbandits.gradients.estimates import Estimate, certain
from jaxbandits.oracles import bounds
from jaxbandits.policies import RCUCB, SUAK, OmegaStarUCB, OmegaUCB

Bound = tuple[Callable[..., Any], dict[str, np.ndarray], str]
"""A function of one instance, its arguments by name with a leading instance axis, and the theorem."""


def estimate(
    policy: Policy, environment: Environment, constraint: Constraint, *, wrt: str | Sequence[str], key: Any = None
) -> Estimate:
    """Value and gradient of the regret *bound* of a policy. Nothing is simulated, nothing is random.

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
        An :class:`Estimate` with standard errors of 0; ``about["theorem"]`` names the theorem.

    Raises:
        InputError: a policy without such a theorem, another environment or constraint, a name that is none of the
            bound's arguments, absent arms.

    Example:
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.8, 0.4], [0.4, 0.6])
        >>> budget = jb.TotalBudget(100.0, last_pull="counts")
        >>> found = jb.gradients.bound.estimate(jb.policies.OmegaUCB(rho=1.0), arms, budget, wrt="rho")
        >>> found.about["theorem"], found.gradient["rho"].shape
        ('Heyden et al., Theorem 5', (1, 1))
    """
    names = names_of(wrt)
    function, arguments, theorem = regret_bound(policy, environment, constraint)
    if unknown := [name for name in names if name not in arguments]:
        raise bad("wrt", unknown[0], f"one of {', '.join(arguments)}, the arguments of the bound")
    found = []
    with jax.enable_x64(True):
        for i in range(environment.instances):
            given = {name: jnp.asarray(x[i], jnp.float64) for name, x in arguments.items()}

            def of(chosen: dict[str, Any], given: dict[str, Any] = given, i: int = i) -> Any:
                return function(i, **(given | chosen))

            found.append(jax.value_and_grad(of)({name: given[name] for name in names}))
    values, gradient = jax.tree.map(lambda *x: np.stack(x)[None], *found)
    return certain(values, {name: gradient[name] for name in names}, estimator="bound", theorem=theorem)


@singledispatch
def regret_bound(policy: Policy, environment: Environment, constraint: Constraint) -> Bound:
    """The bound of a policy; register one for your own policy with ``regret_bound.register``."""
    raise bad("policy", type(policy).__name__, "OmegaUCB, RCUCB or SUAK: no closed-form bound of others is known here")


@regret_bound.register
def _(policy: OmegaUCB, environment: Environment, constraint: Constraint) -> Bound:
    arms = _fits(policy, environment, constraint, FiniteArms, TotalBudget)
    reward, cost = _means(arms)
    budget = np.broadcast_to(np.asarray(constraint.budget, np.float64), (arms.instances,))  # type: ignore[attr-defined]
    taus = [int(2 * b / c.min()) for b, c in zip(budget, cost, strict=True)]

    def bound(i: int, rho: Any, mean_reward: Any, mean_cost: Any) -> Any:
        return bounds.omega_regret_at(rho, mean_reward, mean_cost, taus[i])

    rho = _one_setting(policy, arms).rho
    return bound, {"rho": rho, "mean_reward": reward, "mean_cost": cost}, "Heyden et al., Theorem 5"


@regret_bound.register
def _(policy: OmegaStarUCB, environment: Environment, constraint: Constraint) -> Bound:
    raise bad("policy", "OmegaStarUCB", "OmegaUCB: the theorem is for a known η, not for the estimated one")


@regret_bound.register
def _(policy: RCUCB, environment: Environment, constraint: Constraint) -> Bound:
    arms = _fits(policy, environment, constraint, (CensoredArms, RevealConsumption), Horizon)
    alpha = _one_setting(policy, arms).alpha
    if (alpha <= 1).any():
        raise bad("alpha", float(alpha.min()), "above 1 (the theorem needs it)")
    spec = arms.spec
    values = arms.values()[0].reshape(arms.instances, spec.arms, len(spec.limits))
    if np.isnan(values).any():
        raise InputError("environment: an instance with absent arms given; bounds need all arms present")
    penalties = np.asarray(spec.penalties, np.float64)
    rounds = np.broadcast_to(np.asarray(constraint.rounds), (arms.instances,))  # type: ignore[attr-defined]

    def bound(i: int, alpha: Any, values: Any) -> Any:
        return bounds.rcucb_regret(alpha, values, jnp.asarray(penalties), int(rounds[i]))

    return bound, {"alpha": alpha, "values": values}, "Bengs and Hüllermeier, Theorem 1 without its second sum"


@regret_bound.register
def _(policy: SUAK, environment: Environment, constraint: Constraint) -> Bound:
    arms = _fits(policy, environment, constraint, WithNullArm, AverageCost)
    reward, cost = _means(arms)
    c = np.broadcast_to(np.asarray(constraint.c, np.float64), (arms.instances,))  # type: ignore[attr-defined]
    rounds = np.broadcast_to(np.asarray(constraint.rounds), (arms.instances,))  # type: ignore[attr-defined]

    def bound(i: int, c: Any, mean_reward: Any, mean_cost: Any) -> Any:
        return bounds.suak_regret(mean_reward, mean_cost, c, int(rounds[i]))

    return bound, {"c": c, "mean_reward": reward, "mean_cost": cost}, "SUAK, Theorem 3.2"


def _fits(policy: Any, environment: Any, constraint: Any, world: Any, accountant: type) -> Any:
    worlds = world if isinstance(world, tuple) else (world,)
    if not isinstance(environment, worlds) or not isinstance(constraint, accountant):
        given = f"{type(environment).__name__} and {type(constraint).__name__} given"
        must = f"for {type(policy).__name__} they must be {worlds[0].__name__} and {accountant.__name__}"
        raise InputError(f"environment, constraint: {given}; {must}")
    return environment


def _means(arms: Any) -> tuple[np.ndarray, np.ndarray]:
    inner = arms.arms if isinstance(arms, WithNullArm) else arms
    reward, cost = inner.values()
    if np.isnan(reward).any() or cost.ndim != 2:
        raise InputError("environment: absent arms or several resources given; bounds need all arms and one cost")
    return reward, cost


def _one_setting(policy: Any, environment: Any) -> Any:
    chosen, every = Settings.of(policy, environment.instances, environment.spec), environment.instances
    if chosen.count != 1:
        raise bad("policy", policy, "a policy with one setting, no arrays of them")
    return jax.tree.map(lambda x: np.broadcast_to(np.asarray(x[0], np.float64), (every, *x.shape[2:])), chosen.policy)
