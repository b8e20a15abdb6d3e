"""Scores of contextual environments, which sum over pulls how outcomes depend on θ."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize  # type: ignore[import-untyped,unused-ignore]

from jaxbandits._numerics.means import LinearMeans
from jaxbandits.constraints import a_round, pays_for_the_clock
from jaxbandits.core import ticks
from jaxbandits.core.checks import InputError, bad
from jaxbandits.core.protocol import Constraint, Environment, Feedback, Outcome, Policy
from jaxbandits.core.pytrees import pytree, static
from jaxbandits.environments.contextual import SAMPLE, ContextualArms, ContextValue, sample_contexts
from jaxbandits.environments.finite import WithNullArm
from jaxbandits.environments.noise import Bernoulli
from jaxbandits.environments.table import context_values
from jaxbandits.gradients import estimates
from jaxbandits.gradients.estimates import FloatSum, Scores

NAMES = ("reward", "cost")
_TIE = 1e-9  # of the largest reward: means are whole ticks, prices good to 1e-12


class ScoreState(NamedTuple):
    """An environment's state, and for each named θ the sums over pulls, in the shape of θ."""

    arms: Any
    score: dict[str, FloatSum]  # of ∂ ln p(outcome)
    slope: dict[str, FloatSum]  # of ∂ mean (of costs, of resource 0)


@pytree
class ScoredArms(ContextualArms):
    """The same environment with the state :class:`ScoreState`, simulated outcome by outcome."""

    wrt: tuple[str, ...] = static(default=())

    def start(self) -> Any:
        def empty() -> dict[str, FloatSum]:
            shapes = {name: getattr(self, name).theta.shape[-3:] for name in self.wrt}
            return {name: estimates.no_floats(shape) for name, shape in shapes.items()}

        return ScoreState(super().start(), empty(), empty())

    def pull(
        self, state: Any, action: jax.Array, key: jax.Array, round: jax.Array
    ) -> tuple[Any, Outcome, Feedback, jax.Array]:
        pulls, outcome, feedback, rests = super().pull(state.arms, action, key, round)
        arm = jnp.clip(action, 0, self.spec.arms - 1)
        context = self.context(key, round)
        row = context if context.ndim == 1 else context[arm]
        score, slope = {}, {}
        for name in self.wrt:
            observed = jnp.atleast_1d(getattr(outcome, name))
            by_score, by_slope = _slopes(getattr(self, name), row, arm, observed)
            score[name] = estimates.add_floats(state.score[name], by_score)
            slope[name] = estimates.add_floats(state.slope[name], by_slope)
        return ScoreState(pulls, score, slope), outcome, feedback, rests

    def summary(self, state: Any) -> dict[str, jax.Array]:
        values = super().summary(state.arms)
        for name in self.wrt:
            values |= estimates.reported(f"{name}_score", state.score[name])
            values |= estimates.reported(f"{name}_slope", state.slope[name])
        return values


def _slopes(
    means: Any, row: jax.Array, arm: jax.Array, observed: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """∂ ln p(y) = Σ_j (y_j − μ_j)/(μ_j(1 − μ_j)) ∂μ_j, and ∂μ_0, by θ: 0 for means at an edge."""

    def at(theta: jax.Array) -> jax.Array:
        return dataclasses.replace(means, theta=theta).at(row, arm)

    mean, back = jax.vjp(at, means.theta[:])
    whole = jnp.rint(jnp.clip(mean, 0, 1) * ticks.ONE).astype(jnp.int32)
    inside = (whole > 0) & (whole < ticks.ONE)
    # 1/μ after a 1, −1/(1 − μ) after a 0
    likely = jnp.where(observed > 0, whole, whole - ticks.ONE)
    score = jnp.where(inside, 1 / ticks.ticks_to_float(jnp.where(inside, likely, 1)), 0)
    first = jnp.where(inside, jnp.zeros_like(mean).at[0].set(1), 0)
    return back(score)[0], back(first)[0]


def score_runs(
    policy: Policy,
    environment: Environment,
    constraint: Constraint,
    names: Sequence[str],
    **options: Any,
) -> Scores:
    """Runs with contexts, their scores, and ∂f/∂θ for f = rate · clock − Σ μ^r at fixed pulls."""
    world = _checked(estimates.beside_null(environment), names)
    scored: Environment = ScoredArms(**vars(world), wrt=tuple(names))
    if isinstance(environment, WithNullArm):
        scored = dataclasses.replace(environment, arms=scored)
    ready = constraint.prepare(environment)
    best = context_values(world.value_tables(), ready)
    if not best or getattr(ready, "last_pull", "counts") != "counts":
        must = "a Horizon, an AverageCost or a TotalBudget with last_pull='counts' (with several costs and rounds)"
        raise bad("constraint", repr(constraint), f"{must} where arms have contexts")
    result, regret, rounds = estimates.play_copies(policy, scored, constraint, **options)
    clock = ticks.to_units(result.ledger["expected_clock"][..., -1])[..., None, None, None]
    rate, by_rate = _rates(world, best, ready, names)
    score, explicit, exists = {}, {}, {}
    for name in names:
        theta = getattr(world, name).theta
        slope = -estimates.read(result, f"{name}_slope")
        if name == "cost":  # dearer pulls move the clock, where that is money
            slope *= -rate[:, None, None, None, None] if pays_for_the_clock(ready) else 0.0
        score[name] = estimates.read(result, f"{name}_score")
        explicit[name] = by_rate[name][:, None] * clock + slope
        exists[name] = np.zeros(theta.shape)
        if theta.shape[1] == world.spec.arms:
            exists[name][~np.asarray(world.present)] = np.nan
        if name == "reward" or world.resources is None:  # one number, no axis of resources
            for part in (score, explicit, exists):
                part[name] = part[name][..., 0, :]
    return Scores(regret, score, explicit, exists, rounds)


def _checked(world: Environment, names: Sequence[str]) -> ContextualArms:
    """The world, if its outcomes are coins whose chances have a θ."""
    if type(world) is not ContextualArms:
        must = "ContextualArms itself"
        raise bad("environment", f"{type(world).__name__}, another class", must)
    if unknown := [name for name in names if name not in NAMES]:
        raise bad("wrt", unknown[0], f"one of {', '.join(NAMES)}, the means of these arms")
    if not isinstance(world.noise, Bernoulli):
        raise InputError(
            f"environment: {type(world.noise).__name__} noise given; it must be Bernoulli noise"
        )
    for name in names:
        if not isinstance(means := getattr(world, name), LinearMeans):
            raise bad(name, type(means).__name__, "LinearMeans or LogisticMeans, which have a θ")
    return world


# --- How the benchmark moves


def _rates(
    world: ContextualArms, best: list[ContextValue], ready: Constraint, names: Sequence[str]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Best rate of the clock, ``[I]``, and its derivative, shaped as θ, by the envelope theorem

    .. math:: \\partial \\mathrm{OPT} = E_x \\sum_k p_k(x)\\,\\partial\\,[r(x, k) - \\langle\\lambda, c(x, k)\\rangle],

    p the optimal rule, λ its prices (of money as the clock λ = ρ*, and all over E c).
    """
    pace: Any = a_round(ready)
    # As the regret takes it: values from a second sample, or from all there is.
    first = 1 + SAMPLE if world.contexts.table() is None else 1
    reward, cost = world.sampled(SAMPLE, first)
    reward, cost = np.where(np.isnan(reward), -np.inf, reward), np.nan_to_num(cost)
    weights, prices = np.zeros(reward.shape), np.zeros((len(best), cost.shape[-1]))
    for i, optimum in enumerate(best):
        prices[i, : optimum.price.size] = optimum.price  # a horizon has none
        if pace.budget is None:
            arm = (reward[i] - cost[i] @ prices[i]).argmax(axis=1)[:, None]
            weights[i] = np.arange(reward.shape[2]) == arm
            weights[i] /= (weights[i][..., None] * cost[i]).sum(axis=(0, 1))[0]
        else:
            shares = _shares(reward[i], cost[i], pace.budget[i], prices[i])
            weights[i] = shares / reward.shape[1] / pace.units[i]
    by_cost = -weights[..., None] * prices[:, None, None, :]
    rows = world.contexts.table()
    rounds = jnp.arange(first, first + SAMPLE, dtype=jnp.int32)
    there = jax.tree.map(jnp.asarray, (world, rounds, rows))
    by = (jnp.asarray(x, jnp.float32) for x in (weights, by_cost))
    slopes = _weighted_slopes(*there, *by, names=tuple(names))
    rate = np.array([optimum.contextual for optimum in best]) / pace.units
    return rate, {name: np.asarray(x, np.float64) for name, x in slopes.items()}


def _shares(
    reward: np.ndarray, cost: np.ndarray, budget: np.ndarray, price: np.ndarray
) -> np.ndarray:
    """How often the optimal rule pulls each arm at each context, ``[N, K]``; else it rests.

    At the optimal prices a few contexts have several best arms. They are shared out so that every
    budget that has a price is spent.
    """
    pay = np.concatenate([cost, np.zeros((len(cost), 1, cost.shape[2]))], axis=1)
    net = np.append(reward - cost @ price, np.zeros((len(cost), 1)), axis=1)
    near = net >= net.max(axis=1, keepdims=True) - _TIE * max(reward.max(), 0.0)
    share = near / near.sum(axis=1, keepdims=True)
    tied = near.sum(axis=1) > 1
    row, arm = np.nonzero(near & tied[:, None])
    if not row.size or not budget.size:
        return share[:, :-1]
    unspent = len(cost) * budget - (share[~tied][..., None] * pay[~tied]).sum(axis=(0, 1))
    # Variables: shares of the tied arms, then what each budget is missed by.
    paid, missed = pay[row, arm].T, np.eye(budget.size)
    priced = price > 0
    table = np.vstack([np.hstack([paid, -missed]), np.hstack([-paid, -missed])[priced]])
    whole = np.hstack([np.flatnonzero(tied)[:, None] == row, np.zeros((tied.sum(), budget.size))])
    aim = np.append(np.zeros(row.size), np.ones(budget.size))
    solution = optimize.linprog(
        aim, table, np.append(unspent, -unspent[priced]), whole, np.ones(tied.sum()), method="highs"
    )
    share[row, arm] = solution.x[: row.size]
    return share[:, :-1]


@partial(jax.jit, static_argnames="names")
def _weighted_slopes(
    world: ContextualArms,
    rounds: jax.Array,
    rows: jax.Array | None,
    by_reward: jax.Array,
    by_cost: jax.Array,
    names: tuple[str, ...],
) -> dict[str, jax.Array]:
    """By θ, for each instance, the derivatives of :func:`_weighted_sum`."""

    def of_instance(world: ContextualArms, rows: jax.Array | None, *by: jax.Array) -> Any:
        contexts = sample_contexts(world, rounds) if rows is None else rows
        means = {name: getattr(world, name) for name in names}

        def total(thetas: dict[str, jax.Array]) -> jax.Array:
            moved = {x: dataclasses.replace(means[x], theta=theta) for x, theta in thetas.items()}
            return _weighted_sum(moved, contexts, *by)

        return jax.grad(total)({name: mean.theta for name, mean in means.items()})

    in_axes = 0, None if rows is None else 0, 0, 0
    return jax.vmap(of_instance, in_axes)(world, rows, by_reward, by_cost)


def _weighted_sum(
    means: dict[str, Any], contexts: jax.Array, by_reward: jax.Array, by_cost: jax.Array
) -> jax.Array:
    """Σ by_reward · r + Σ by_cost · c over contexts and arms; clipped means do not move."""

    def term(context: jax.Array, arm: jax.Array, reward: jax.Array, cost: jax.Array) -> jax.Array:
        row = context if context.ndim == 1 else context[arm]
        weight = {"reward": reward[None], "cost": cost}
        values = {name: mean.at(row, arm) for name, mean in means.items()}
        inside = {name: jnp.where((x > 0) & (x < 1), x, 0) for name, x in values.items()}
        return jnp.stack([jnp.sum(weight[name] * x) for name, x in inside.items()]).sum()

    arms = jax.lax.iota(jnp.int32, by_reward.shape[1])
    of_context = jax.vmap(term, in_axes=(None, 0, 0, 0))
    return jax.vmap(of_context, in_axes=(0, None, 0, 0))(contexts, arms, by_reward, by_cost).sum()
