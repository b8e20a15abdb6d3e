"""Exact regret of small Bernoulli instances and its derivatives, by forward dynamic programming.

The probability of a history splits into what the policy does and what the arms do. Summed over all
histories that lead to the same counts (pulls, successes, costs of every arm), the first part, the
*weight* of the counts, does not depend on the instance; the second is Π μ^s (1−μ)^{n−s}. So one
forward pass over the counts serves every instance, the regret is a polynomial in the means, and its
derivatives are exact up to rounding in float64. NumPy alone computes here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jaxbandits._numerics.arrays import one_of
from jaxbandits.constraints import LAST_PULLS
from jaxbandits.core.checks import numbers, refuse, whole_number

_NUMBERS = 2_000_000  # in one array of (instance, end, arm)


class Counts(NamedTuple):
    """Counts before a round, one row per state, ``i64[state, K]``; round = ``pulls.sum(1) + 1``."""

    pulls: np.ndarray
    rewards: np.ndarray  # how many of the rewards were 1
    costs: np.ndarray  # how many of the costs were 1 (0 where costs are not followed)


Choice = Callable[[Counts], np.ndarray]
"""A policy: arm probabilities from counts, then P derivatives, ``f64[1 + P, state, K]``."""


class Ends(NamedTuple):
    """All final counts of a run, ``[end]``, with their weights; see :func:`play_out`."""

    counts: Counts
    # i64[end]: the arm whose last pull exceeded the budget and forfeits its reward, or −1
    last: np.ndarray
    weight: np.ndarray  # f64[1 + P, end]
    clock: str  # "rounds" or "spent"
    rounds: int
    open: Counts  # counts that had not ended after ``rounds`` rounds (under a budget)
    open_weight: np.ndarray  # f64[open]


class Exact(NamedTuple):
    """Exact expected values for instances ``[I]``, float64."""

    regret: np.ndarray  # [I]
    pulls: np.ndarray  # [I, K]: expected pulls
    by_mean_reward: np.ndarray  # [I, K]: ∂ regret / ∂ μ^r
    by_mean_cost: np.ndarray  # [I, K]: ∂ regret / ∂ μ^c
    by_parameter: np.ndarray  # [I, P]
    # [I]: probability of the histories that are longer than ``rounds``; 0 with a horizon
    missing: np.ndarray


def play_out(
    choose: Choice,
    arms: int,
    rounds: int,
    *,
    budget: float | None = None,
    last_pull: str = "counts",
    costs: bool = False,
) -> Ends:
    """All possible ends of a run, with their weights.

    Args:
        choose: the policy.
        arms: K; (K + 1) (rounds + 1)^(3 K) is below 2⁶³.
        rounds: the horizon; under a budget the most rounds that are followed, at least ⌈B⌉ (see
            ``Exact.missing``).
        budget: B > 0, for Bernoulli costs; None for a horizon.
        last_pull: ``"counts"`` or ``"forfeits"``, as in :class:`~jaxbandits.TotalBudget`.
        costs: whether to follow costs, for a policy that reads them; under a budget they are.

    Example:
        >>> import numpy as np
        >>> from jaxbandits import oracles
        >>> def uniform(counts):
        ...     return np.full((1, *counts.pulls.shape), 0.5)
        >>> ends = oracles.play_out(uniform, arms=2, rounds=10)
        >>> exact = oracles.evaluate(ends, [[0.6, 0.4]], [[1.0, 1.0]])
        >>> round(float(exact.regret[0]), 12), exact.pulls.round(9).tolist(), exact.by_mean_reward.shape
        (1.0, [[5.0, 5.0]], (1, 2))
    """
    must = f"smaller for {arms} arms: (arms + 1) (rounds + 1)^(3 arms) below 2**63"
    refuse("rounds", rounds, (arms + 1) * (rounds + 1) ** (3 * arms) >= 2**63, must)
    one_of("last_pull", last_pull, LAST_PULLS)
    follow = costs or budget is not None
    enough = math.inf if budget is None else math.ceil(budget)  # this many costs of 1 end a run
    must = f"{enough} or more: under this budget no run ends sooner"
    refuse("rounds", rounds, budget is not None and rounds < enough, must)
    forfeits = budget is not None and last_pull == "forfeits" and enough > budget
    states = np.zeros((1, 3, arms), np.int64)
    weight: np.ndarray | None = None
    ended: list[Group] = []
    for _ in range(rounds):
        chance = np.asarray(choose(_counts(states)), np.float64)
        if weight is None:
            weight = np.zeros((chance.shape[0], 1))
            weight[0] = 1.0
        states, weight, last = _next(states, weight, chance, follow)
        over = states[:, 2].sum(axis=1) >= enough
        lost = last[over] if forfeits else -1
        ended.append(_merge(states[over], weight[:, over], lost, rounds))
        states, weight, _ = _merge(states[~over], weight[:, ~over], -1, rounds)
    assert weight is not None
    if budget is None:
        ended = [(states, weight, np.full(states.shape[0], -1))]
        states, weight = states[:0], weight[:, :0]
    stops, weights, lasts = _joined(ended)
    return Ends(
        counts=_counts(stops),
        last=lasts,
        weight=weights,
        clock="rounds" if budget is None else "spent",
        rounds=rounds,
        open=_counts(states),
        open_weight=weight[0],
    )


def evaluate(ends: Ends, mean_reward: np.typing.ArrayLike, mean_cost: np.typing.ArrayLike) -> Exact:
    """Exact regret and derivatives of instances ``[I, K]``; means in (0, 1), costs in (0, 1].

    The derivative of the best rate is that of the best arm (the first, if several are best: there
    the regret has a kink). :func:`play_out` has an example.
    """
    mr = np.atleast_2d(numbers("mean_reward", mean_reward))
    mc = np.atleast_2d(numbers("mean_cost", mean_cost))
    at_once = max(1, _NUMBERS // ends.counts.pulls.size)
    rows = [slice(i, i + at_once) for i in range(0, len(mr), at_once)]
    parts = [_evaluate(ends, mr[some], mc[some]) for some in rows]
    return Exact(*(np.concatenate(x) for x in zip(*parts, strict=True)))


def _evaluate(ends: Ends, mr: np.ndarray, mc: np.ndarray) -> Exact:
    """Of a run the regret is rate · clock − Σ earned · μ^r, its derivative ∂regret + regret · score."""
    n, s, c = (x.astype(np.float64) for x in ends.counts)
    follows = ends.clock == "spent" or bool(ends.counts.costs.any())
    chance = _likelihood(ends.counts, mr, mc, follows)  # [I, end]
    earned = n - (ends.last[:, None] == np.arange(n.shape[1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        score_r = _ratio(s, mr[:, None]) - _ratio(n - s, 1 - mr[:, None])  # [I, end, K]
        score_c = _ratio(c, mc[:, None]) - _ratio(n - c, 1 - mc[:, None])
    if not ends.counts.costs.any():
        score_c = np.zeros_like(score_r)
    rate, rate_r, rate_c = best_rates(mr, mc, ends.clock)
    if ends.clock == "rounds":
        clock, clock_c = np.full(chance.shape, float(ends.rounds)), np.zeros_like(score_c)
    else:
        clock, clock_c = mc @ n.T, np.broadcast_to(n, score_c.shape)
    regret = rate[:, None] * clock - mr @ earned.T  # [I, end]
    p = chance * ends.weight[0]
    by_r = rate_r[:, None] * clock[..., None] - earned + regret[..., None] * score_r
    by_c = rate_c[:, None] * clock[..., None] + rate[:, None, None] * clock_c
    by_c = by_c + regret[..., None] * score_c
    return Exact(
        regret=(p * regret).sum(1),
        pulls=p @ n,
        by_mean_reward=np.einsum("ie,iek->ik", p, by_r),
        by_mean_cost=np.einsum("ie,iek->ik", p, by_c),
        by_parameter=(chance * regret) @ ends.weight[1:].T,
        missing=_likelihood(ends.open, mr, mc, follows) @ ends.open_weight,
    )


def best_rates(
    mean_reward: np.ndarray, mean_cost: np.ndarray, clock: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(best reward per unit of the clock ``[I]``, its derivatives w.r.t. μ^r and μ^c ``[I, K]``)."""
    if clock == "rounds":
        best = mean_reward.argmax(1)[:, None] == np.arange(mean_reward.shape[1])
        return mean_reward.max(1), best.astype(np.float64), np.zeros_like(mean_reward)
    ratio = mean_reward / mean_cost
    best = ratio.argmax(1)[:, None] == np.arange(ratio.shape[1])
    return ratio.max(1), best / mean_cost, -(best * ratio) / mean_cost


def _counts(states: np.ndarray) -> Counts:
    return Counts(states[:, 0], states[:, 1], states[:, 2])


def _ratio(count: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return np.where(count == 0, 0.0, count / mean)


def _likelihood(counts: Counts, mr: np.ndarray, mc: np.ndarray, costs: bool) -> np.ndarray:
    """Π μ^s (1−μ)^{n−s}, ``[I, state]``; costs only where they were followed."""
    n, s, c = counts
    parts = mr[:, None] ** s * (1 - mr[:, None]) ** (n - s)
    if costs:
        parts = parts * mc[:, None] ** c * (1 - mc[:, None]) ** (n - c)
    return parts.prod(-1)


Group = tuple[np.ndarray, np.ndarray, np.ndarray]  # states, weights, arm of the last pull


def _next(states: np.ndarray, weight: np.ndarray, chance: np.ndarray, costs: bool) -> Group:
    """Every state after one more pull, once for each way to get there."""
    groups: list[Group] = []
    for arm in range(states.shape[2]):
        reachable = (chance[:, :, arm] != 0).any(0)
        w, p = weight[:, reachable], chance[:, reachable, arm]
        product = np.concatenate([w[:1] * p[:1], w[1:] * p[:1] + w[:1] * p[1:]])
        for reward in (0, 1):
            for cost in (0, 1) if costs else (0,):
                after = states[reachable].copy()
                after[:, :, arm] += (1, reward, cost)
                groups.append((after, product, np.full(after.shape[0], arm)))
    return _joined(groups)


def _joined(groups: list[Group]) -> Group:
    states, weights, last = zip(*groups, strict=True)
    return np.concatenate(states), np.concatenate(weights, axis=1), np.concatenate(last)


def _merge(states: np.ndarray, weight: np.ndarray, last: np.ndarray | int, rounds: int) -> Group:
    """Equal states (with equal ``last``) as one, weights added."""
    last = np.broadcast_to(last, states.shape[:1])
    if states.shape[0] == 0:
        return states, weight, last
    digits = states.reshape(states.shape[0], -1)
    code = digits @ ((rounds + 1) ** np.arange(digits.shape[1], dtype=np.int64))
    code = code * (states.shape[2] + 1) + last + 1
    _, first, place = np.unique(code, return_index=True, return_inverse=True)
    merged = np.stack([np.bincount(place, w, minlength=first.size) for w in weight])
    return states[first], merged, last[first]


# --- Bayes-optimal play of two Bernoulli arms, by backward dynamic programming over the posterior


def bayes_optimal_reward(rounds: int) -> float:
    """The largest expected total reward of any policy in ``rounds`` rounds of two Bernoulli arms.

    V_t(s₁, f₁, s₂, f₂) = max_k [ p_k (1 + V_{t+1}(s_k + 1)) + (1 − p_k) V_{t+1}(f_k + 1) ],
    p_k = (1 + s_k)/(2 + s_k + f_k), where both means are uniform.

    Args:
        rounds: T, from 1 to 400 (memory T³).

    Example:
        >>> from jaxbandits import oracles
        >>> round(oracles.bayes_optimal_reward(10), 6)
        6.021786
    """
    whole_number("rounds", rounds, 1, 400)
    # value[n1, s1, s2] after t rounds, n2 = t − n1; entries with s1 > n1 or s2 > n2 mean nothing
    # and are never used
    value = np.zeros((rounds + 1, rounds + 1, rounds + 1))
    for t in reversed(range(rounds)):
        n1 = np.arange(t + 1)[:, None, None]
        s1, s2 = np.arange(t + 1)[None, :, None], np.arange(t + 1)[None, None, :]
        p1, p2 = (1 + s1) / (2 + n1), (1 + s2) / (2 + t - n1)
        now, more = slice(t + 1), slice(1, t + 2)
        first = p1 * (1 + value[more, more, now]) + (1 - p1) * value[more, now, now]
        second = p2 * (1 + value[now, now, more]) + (1 - p2) * value[now, now, now]
        value = np.pad(np.maximum(first, second), (0, 1))
    return float(value[0, 0, 0])


def bayes_optimal_regret(rounds: int) -> float:
    """T · E max(μ₁, μ₂) = ⅔ T, less :func:`bayes_optimal_reward`: the least possible Bayes regret.

    Example:
        >>> from jaxbandits import oracles
        >>> round(oracles.bayes_optimal_regret(10), 6)
        0.644881
    """
    return rounds * 2 / 3 - bayes_optimal_reward(rounds)
