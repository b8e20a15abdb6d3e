"""Exact value and gradient of a small Bernoulli instance, to check the other estimators."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.constraints import Horizon, TotalBudget
from jaxbandits.core.arm_statistics import Arms, ArmStatistics
from jaxbandits.core.checks import InputError, bad, refuse
from jaxbandits.core.fingerprint import jit
from jaxbandits.core.protocol import Constraint, Environment, Policy
from jaxbandits.core.settings import get, names_of, parameter_path, put
from jaxbandits.core.ticks import Total
from jaxbandits.environments.finite import BernoulliLaw, FiniteArms
from jaxbandits.gradients.estimates import MEANS, GradientEstimate, certain, next_kink, of_numbers
from jaxbandits.oracles import Choice, Counts, evaluate, play_out
from jaxbandits.policies import IndexPolicy, RandomisedPolicy, base
from jaxbandits.policies.base import chooses_by_logits, chooses_by_score

_ROWS = 1 << 12


@of_numbers
def estimate(
    policy: Policy,
    environment: Environment,
    constraint: Constraint,
    *,
    wrt: str | Sequence[str] = MEANS,
    key: Any = None,
    most_rounds: int = 24,
) -> GradientEstimate:
    """Exact regret and gradient for a few Bernoulli arms and rounds, by dynamic programming.

    Args:
        policy: one setting of an index policy that chooses by its score alone, or of a randomised
            policy.
        environment: Bernoulli arms, instances ``[I]``, means strictly between 0 and 1; two or three
            arms.
        constraint: a horizon or a total budget, the same for all instances.
        wrt: ``mean_reward``, ``mean_cost``, and parameters of a randomised policy by name.
        key: not used; nothing is random here.
        most_rounds: under a budget B, how many rounds are followed, at least ⌈B⌉;
            ``about["missing"]`` is the largest probability of a longer run.

    Returns:
        A :class:`GradientEstimate` with standard errors of 0. By means, ``about["next_kink"]``
        says how far one must move until another arm is the best, ``[I]``.

    Raises:
        InputError: another policy, environment or constraint; a parameter of an argmax policy, of
            which the expected regret is a step function.

    Example:
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.6, 0.4], [0.5, 0.5])
        >>> estimate = jb.gradients.exact.estimate(jb.policies.SoftElim(theta=0.5), arms, jb.Horizon(20), wrt="theta")
        >>> round(float(estimate.value[0, 0]), 6), round(float(estimate.gradient["theta"][0, 0]), 6)
        (1.316552, 0.335158)
    """
    names = names_of(wrt)
    arms: Any = environment
    of_coins = isinstance(arms, FiniteArms) and isinstance(arms.law, BernoulliLaw)
    if not of_coins or arms.resources is not None:
        raise bad("environment", type(arms).__name__, "Bernoulli arms with one cost")
    reward, cost = arms.values()
    absent, must = not np.asarray(arms.present).all(), "instances in which every arm exists"
    refuse("environment", "instances with absent arms", absent, must)
    if "mean_cost" in names and (cost == 1).any():
        raise bad("environment", "a mean cost of 1", "mean costs below 1 for wrt='mean_cost'")
    limit: dict[str, Any]
    if isinstance(constraint, Horizon) and np.ndim(constraint.rounds) == 0:
        limit = {"rounds": int(constraint.rounds)}
    elif isinstance(constraint, TotalBudget) and np.ndim(constraint.budget) == 0:
        budget = {"budget": float(constraint.budget), "last_pull": constraint.last_pull}
        limit = {"rounds": most_rounds, **budget}
    else:
        may_be = "a Horizon or a TotalBudget with one number for all instances"
        raise bad("constraint", type(constraint).__name__, may_be)
    paths = {name: parameter_path(policy, name) for name in names if name not in MEANS}
    choose = choice_of(policy, tuple(paths.values()))
    limit["costs"] = getattr(policy, "reads_costs", True)
    solution = evaluate(play_out(choose, reward.shape[1], **limit), reward, cost)
    gradient = {"mean_reward": solution.by_mean_reward, "mean_cost": solution.by_mean_cost}
    gradient |= dict(zip(paths, solution.by_parameter.T, strict=True))
    selected = {name: gradient[name][None] for name in names}
    about = {"estimator": "exact", "missing": float(solution.missing.max())}
    return certain(solution.regret[None], selected, **about, **next_kink(arms, constraint, names))


def choice_of(policy: Policy, wrt: Sequence[str] = ()) -> Choice:
    """A policy for the oracles: probabilities of arms and their derivatives by named parameters.

    An index policy is asked in float32, as the engines do, and splits ties evenly; a randomised one
    in float64.
    """
    if chooses_by_logits(policy):
        return partial(_soft_choice, policy, tuple(wrt))
    if not chooses_by_score(policy):
        must = "a randomised policy, or an index policy that chooses by its score"
        raise bad("policy", type(policy).__name__, must)
    if wrt:
        name = type(policy).__name__
        raise InputError(
            f"wrt: {wrt[0]!r} given, of which {name}'s regret is a step function; use smoothed"
        )
    return partial(_argmax_choice, policy)


def _argmax_choice(policy: IndexPolicy, counts: Counts) -> np.ndarray:
    """``f64[1, state, K]``: the first arm without pulls, else the largest score, shared by ties."""
    typed = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), policy)
    scores = _in_chunks(lambda part: np.asarray(_scores(typed, part)), counts)
    fresh = counts.pulls == 0
    first = fresh & (np.cumsum(fresh, axis=1) == 1)
    best = np.where(fresh.any(1, keepdims=True), first, scores == scores.max(1, keepdims=True))
    return (best / best.sum(1, keepdims=True))[None]


@jit
def _scores(policy: IndexPolicy, counts: list[jax.Array]) -> jax.Array:
    """The scores of every arm at counts ``[state, K]``, as the engines ask for them."""

    def of_row(pulls: jax.Array, rewards: jax.Array, costs: jax.Array) -> jax.Array:
        none = jnp.zeros_like(pulls)
        spreads = Total(none, none) if policy.spreads else None
        state = ArmStatistics(pulls, Total(rewards, none), Total(costs, none), spreads, spreads)
        return base.evaluate_state(policy, state, 1 + jnp.sum(pulls, dtype=jnp.int32))

    return jax.vmap(of_row)(*(x.astype(jnp.int32) for x in counts))


def _soft_choice(policy: RandomisedPolicy, wrt: tuple[str, ...], counts: Counts) -> np.ndarray:
    """``f64[1 + P, state, K]``: probabilities of arms, then their derivatives by leaves ``wrt``."""
    with jax.enable_x64(True):
        typed = jax.tree.map(lambda x: jnp.asarray(np.float32(x), jnp.float64), policy)
        of = _in_chunks(lambda part: np.asarray(_probabilities(typed, part, wrt=wrt)), counts)
        return np.moveaxis(of, 1, 0)


@jit
def _probabilities(
    policy: RandomisedPolicy, counts: list[jax.Array], *, wrt: tuple[str, ...]
) -> jax.Array:
    def of_row(values: list[jax.Array], n: jax.Array, s: jax.Array, c: jax.Array) -> jax.Array:
        at_values = put(policy, dict(zip(wrt, values, strict=True)))
        n, s, c = (x.astype(jnp.float64) for x in (n, s, c))
        none = jnp.zeros_like(n)
        arms = Arms(jnp.broadcast_to(1 + jnp.sum(n), n.shape), n, s, c, n - s, n - c, none, none)
        return jax.nn.softmax(at_values.logits(arms, jnp.ones(n.shape, bool)))

    values = [get(policy, path) for path in wrt]

    def both(n: jax.Array, s: jax.Array, c: jax.Array) -> jax.Array:
        slopes = jax.jacfwd(of_row)(values, n, s, c) if values else []
        return jnp.stack([of_row(values, n, s, c), *slopes])

    return jax.vmap(both)(*counts)


def _in_chunks(ask: Any, counts: Counts) -> np.ndarray:
    """``ask`` for a fixed number of states at a time, so that it compiles once."""
    states = counts.pulls.shape[0]
    answers = []
    for start in range(0, states, _ROWS):
        part = [np.resize(x[start : start + _ROWS], (_ROWS, x.shape[1])) for x in counts]
        answers.append(ask(part)[: states - start])
    return np.concatenate(answers)
