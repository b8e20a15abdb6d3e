"""Fluid optima of a sample of requests whose means are known. Host, float64."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxbandits._numerics.knapsack_lp import solved

_MOST_CUTS = 1000
# How near the cuts come to the optimum, of the largest reward. That of a sample is off by 1e-3 by
# chance, and many requests make the dual smooth, where cuts take hundreds of steps to the end.
_EXACT, _SAMPLED = 1e-12, 1e-6


class FluidOptimum(NamedTuple):
    """The value of a request, and the price of each resource, ``[J]``."""

    value: float
    price: np.ndarray


def _mean(rows: np.ndarray, share: np.ndarray | None) -> np.ndarray:
    """The mean over requests, the first axis."""
    return rows.mean(axis=0) if share is None else np.tensordot(share, rows, 1)


def best_responses(
    reward: np.ndarray, cost: np.ndarray, price: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(reward ``[N]``, cost ``[N, J]``) of each request's best arm at these prices, 0 for none."""
    # Of equals the one that costs least: so the slope of the dual is the one towards higher prices.
    net = reward - cost @ price
    best = net.max(axis=1, keepdims=True)
    weight = np.where(net == best, cost.sum(axis=2), np.inf)
    arm = weight.argmin(axis=1)
    rows, served = np.arange(len(net)), best[:, 0] > 0
    return np.where(served, reward[rows, arm], 0.0), np.where(served[:, None], cost[rows, arm], 0.0)


def dual(reward: np.ndarray, cost: np.ndarray, budget: np.ndarray, price: np.ndarray) -> np.ndarray:
    """⟨λ, b⟩ + [max_k r − ⟨λ, c⟩]₊ by request, ``[N]``: the mean bounds any policy's gain."""
    return price @ budget + np.maximum((reward - cost @ price).max(axis=1), 0.0)


def optimum(
    reward: np.ndarray,
    cost: np.ndarray,
    budget: np.ndarray,
    gap: float = _EXACT,
    share: np.ndarray | None = None,
) -> FluidOptimum:
    """max E r(x, k(x)) with E c(x, k(x)) ≤ b over (mixed) rules k(x), rest included, by its dual

    .. math:: \\min_{\\lambda \\ge 0}\\ \\langle\\lambda, b\\rangle + E_x \\max_k [r - \\langle\\lambda, c\\rangle]_+ .

    The dual is convex and piecewise linear. Its tangents bound it from below, and the next price is
    where the bound is least (Kelley's cuts), until the bound is met.

    Args:
        reward: ``[N, K]``, −∞ where an arm is absent. cost: ``[N, K, J]``. budget: b ≥ 0, ``[J]``,
            for a request.
        gap: of the largest reward, between the value that is given and the bound from below.
        share: how often each request comes, ``[N]``; None: all equally often.
    """
    largest = max(reward.max(), 0.0)
    if not budget.size:
        best_rewards = np.maximum(reward.max(axis=1), 0)
        return FluidOptimum(float(_mean(best_rewards, share)), np.zeros(0))
    lowest_cost = np.where(cost > 0, cost, np.inf).min(axis=(0, 1))
    with np.errstate(divide="ignore"):
        # At the second nobody who pays is served
        price_limit = np.minimum(largest / budget, 2 * largest / lowest_cost)
    price, best, at = np.zeros(budget.size), np.inf, np.zeros(budget.size)
    gains, slopes = np.zeros(1), budget[None]  # at prices so high that nobody is served
    for _ in range(_MOST_CUTS):
        gain, paid = (_mean(x, share) for x in best_responses(reward, cost, price))
        value = float(price @ (budget - paid) + gain)
        if value < best:
            best, at = value, price
        gains, slopes = np.insert(gains, -1, gain), np.insert(slopes, -1, budget - paid, axis=0)
        bound, price = _lowest_tangent(gains, slopes, price_limit)
        if best - bound <= gap * largest:
            break
    return FluidOptimum(min(best, max(bound, 0.0)) if best - bound <= 1e-9 else best, at)


def _lowest_tangent(
    gains: np.ndarray, slopes: np.ndarray, price_limit: np.ndarray
) -> tuple[float, np.ndarray]:
    """(value, price) that minimise the largest of all ``gain + ⟨slope, λ⟩``."""
    from scipy import optimize  # type: ignore[import-untyped,unused-ignore]  # slow to import

    # Prices in units of their largest values: budgets may be of very different sizes.
    table = np.hstack([slopes * price_limit, -np.ones((len(gains), 1))])
    count = price_limit.size
    aim, bounds = np.eye(count + 1)[-1], [(0, 1)] * count + [(None, None)]
    solution = optimize.linprog(aim, table, -gains, bounds=bounds, method="highs")
    return float(solution.x[-1]), solution.x[:-1] * price_limit


def best_ratio(reward: np.ndarray, cost: np.ndarray, share: np.ndarray | None = None) -> float:
    """ρ* with E max_k (r − ρ c) = 0 over ``[N, K]``, every request served: Dinkelbach's steps."""
    ratio, rows = 0.0, np.arange(len(reward))
    while True:
        arm = (reward - ratio * cost).argmax(axis=1)
        gain, paid = (_mean(x[rows, arm], share) for x in (reward, cost))
        if paid <= 0:
            return np.inf
        if not gain / paid > ratio * (1 + 1e-14):
            return float(ratio)
        ratio = gain / paid


class ContextValue(NamedTuple):
    """The value of seeing contexts, for a request or (with money as the clock) a unit of money.

    Attributes:
        contextual: the fluid optimum of who sees contexts and knows the means.
        fixed: that of the best mixture that sees none.
        value: the difference, at least 0.
        low, high: an interval of the value at 95 %; it is a point where the law of contexts is a
            table.
        price: of each resource, ``[J]``; with money as the clock ρ* itself.
        error, fixed_error: standard errors of ``contextual`` and of ``fixed``; 0 where the law of
            contexts is a table. The second is that of the best mixture's reward: where another one
            is as good, ``fixed`` itself spreads less.
    """

    contextual: float
    fixed: float
    value: float
    low: float
    high: float
    price: np.ndarray
    error: float = 0.0
    fixed_error: float = 0.0


_Z = 1.959964


def context_value(
    samples: list[tuple[np.ndarray, np.ndarray]],
    budget: np.ndarray | None,
    share: np.ndarray | None = None,
) -> ContextValue:
    """The value of context on an exact table, or on two samples: prices of one, values on the other.

    The optimum on the sample that it is found on is too high on average; so is the dual at any
    price but the best one. With rounds the first is E f₁ ≤ OPT ≤ E f₂, and the interval reaches
    from one to the other.

    Args:
        samples: (reward ``[N, K]``, cost ``[N, K, J]``) each.
        budget: b ``[J]`` for a request; None: money is the clock.
        share: of an exact table how often each of its requests comes; default equally often.
    """
    (r, c), (reward, cost) = samples[0], samples[-1]
    if budget is None:
        return _value_by_ratio(samples, share)
    if not budget.size:  # a horizon: money does not matter
        c, cost = c[..., :0], cost[..., :0]
    best = optimum(r, c, budget, _EXACT if len(samples) == 1 else _SAMPLED, share)
    fixed, mixture, price = _without_context(reward, cost, budget, share)
    rows = dual(reward, cost, budget, best.price)
    if len(samples) == 1:
        value = max(best.value - fixed, 0.0)
        return ContextValue(best.value, fixed, value, value, value, best.price)
    mixed = (np.where(np.isfinite(reward), reward, 0.0) - cost @ price) @ mixture
    value, first_value = float(rows.mean()) - fixed, best.value - _without_context(r, c, budget)[0]
    error = _mean_error(rows - mixed)
    low = max(min(value, first_value) - _Z * error, 0.0)
    high, errors = max(value, first_value) + _Z * error, (_mean_error(rows), _mean_error(mixed))
    return ContextValue(float(rows.mean()), fixed, max(value, 0.0), low, high, best.price, *errors)


def _mean_error(rows: np.ndarray) -> float:
    return float(rows.std() / np.sqrt(len(rows)))


def _without_context(
    reward: np.ndarray, cost: np.ndarray, budget: np.ndarray, share: np.ndarray | None = None
) -> tuple[float, np.ndarray, np.ndarray]:
    """(value, mixture ``[K]``, price ``[J]``) of the best mixture at the mean rewards and costs."""
    exists = np.isfinite(reward[0])
    mean, paid = (_mean(x, share) for x in (reward, cost))
    mean = np.where(exists, mean, 0.0)
    rows = np.vstack([paid.T, np.ones(len(mean))])
    limit = np.append(np.maximum(budget, 1e-12), 1.0)
    vertex = solved(mean, rows, limit, exists)
    # At a price of its own each budget is worth what one more unit of it would bring.
    played = vertex.arm >= 0
    mixture = np.bincount(vertex.arm[played], vertex.level[played], len(mean))
    return float(vertex.value), mixture, vertex.price[:-1]


def _value_by_ratio(
    samples: list[tuple[np.ndarray, np.ndarray]], share: np.ndarray | None
) -> ContextValue:
    """:func:`context_value` with money as the clock: ρ* against the best ratio of a single arm."""
    (r, c), (reward, cost) = ((r, c[..., 0]) for r, c in (samples[0], samples[-1]))
    first, last = best_ratio(r, c, share), best_ratio(reward, cost, share)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.divide(*(_mean(x, share) for x in (reward, cost)))
    alone = int(np.nanargmax(ratios))
    fixed = float(ratios[alone])
    if len(samples) == 1:
        return ContextValue(last, fixed, last - fixed, last - fixed, last - fixed, np.array([last]))
    rows = np.arange(len(reward))
    arm = (reward - first * cost).argmax(axis=1)
    gain, paid = reward[rows, arm], cost[rows, arm]
    # A rule that was chosen on the other sample: not above ρ* on average
    ratio = float(gain.mean() / paid.mean())
    # A ratio of means moves as the mean of these
    slack = (gain - ratio * paid) / paid.mean()
    fixed_slack = (reward[:, alone] - fixed * cost[:, alone]) / cost[:, alone].mean()
    error, errors = _mean_error(slack - fixed_slack), (_mean_error(slack), _mean_error(fixed_slack))
    low = max(min(ratio, last) - fixed - _Z * error, 0.0)
    high = max(ratio, last) - fixed + _Z * error
    return ContextValue(last, fixed, max(last - fixed, 0.0), low, high, np.array([last]), *errors)
