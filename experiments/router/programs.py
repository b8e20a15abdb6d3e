"""Yardsticks: the frontier of mixtures, the best choice for every request, a linear model."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np


class Mixture(NamedTuple):
    """A mixture of models and of turning requests away (last), at a budget a request."""

    shares: np.ndarray  # [K + 1]
    quality: float
    price: float  # what one more dollar would bring: the slope of the frontier to the right


def mixture(quality: np.ndarray, dollars: np.ndarray, budget: float) -> Mixture:
    """The best mixture whose mean cost is at most ``budget``, of means ``[K]``: an LP."""
    r, c = np.append(quality, 0.0), np.append(dollars, 0.0)
    eye, free = np.eye(r.size), int(np.argmax(np.where(c <= budget, r, -1.0)))
    shares, best = eye[free], float(r[free])
    for j in np.flatnonzero(c > budget):
        for k in np.flatnonzero(c <= budget):
            share = (budget - c[k]) / (c[j] - c[k])
            if (value := float(r[k] + share * (r[j] - r[k]))) > best:
                shares, best = share * eye[j] + (1 - share) * eye[k], value
    dearer = c > budget
    slopes = (r[dearer] - best) / (c[dearer] - budget)
    return Mixture(shares, best, float(np.max(slopes, initial=0.0)))


def frontier(quality: np.ndarray, dollars: np.ndarray, budgets: np.ndarray) -> np.ndarray:
    """Quality of the best fixed :func:`mixture` at each of many budgets."""
    r, c, b = np.append(quality, 0.0), np.append(dollars, 0.0), np.asarray(budgets, float)
    best = np.where(c <= b[..., None], r, 0.0).max(axis=-1)
    for j, k in itertools.permutations(range(r.size), 2):
        if c[j] > c[k]:
            value = r[k] + (b - c[k]) / (c[j] - c[k]) * (r[j] - r[k])
            best = np.where((c[k] <= b) & (b < c[j]), np.maximum(best, value), best)
    return best


def by_price(quality: np.ndarray, dollars: np.ndarray, price: float) -> np.ndarray:
    """The model with the largest quality − price · dollars, ``[N]``; the cheaper of equals."""
    net = quality - price * dollars
    return np.lexsort((dollars, -net), axis=-1)[:, 0]


def fitting_price(
    quality: np.ndarray, dollars: np.ndarray, budget: float, paid: np.ndarray | None = None
) -> float:
    """The least price at which :func:`by_price` pays at most ``budget`` a request (of ``paid``,
    default ``dollars``).

    ``inf`` if none does: then the cheapest is chosen for every request.
    """
    true = dollars if paid is None else paid
    rows = np.arange(len(true))

    def cost(price: float) -> float:
        return float(true[rows, by_price(quality, dollars, price)].mean())

    low, high = 0.0, 1e9
    if cost(0.0) <= budget:
        return 0.0
    if cost(high) > budget:
        return np.inf
    for _ in range(200):
        middle = (low * high) ** 0.5 if low > 0 else high / 1e6
        low, high = (low, middle) if cost(middle) <= budget else (middle, high)
        if high - low < 1e-9 * high:
            break
    return high


def ceiling(quality: np.ndarray, dollars: np.ndarray, budget: float) -> float:
    """Mean quality of the best choice for every request whose mean cost is at most ``budget``,
    turning away allowed.

    The value of the LP relaxation of the knapsack, by its dual: min_λ λB + mean_i max_k (r_ik − λ
    c_ik)⁺, exact up to one request in N.
    """

    def dual(price: float) -> float:
        return price * budget + float(np.maximum((quality - price * dollars).max(axis=1), 0).mean())

    low, high = 0.0, 1e6
    for _ in range(300):  # a convex function of one number
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if dual(a) <= dual(b) else (a, high)
    return dual((low + high) / 2)


class Ridge(NamedTuple):
    """Quality and ln dollars of every model as linear functions of a prompt's features."""

    quality: np.ndarray  # [D, K]
    log_dollars: np.ndarray  # [D, K]

    @staticmethod
    def fitted(
        features: np.ndarray, quality: np.ndarray, dollars: np.ndarray, penalty: float
    ) -> Ridge:
        """Ridge regressions on all cells of a training split: more than a router learns."""
        gram = features.T @ features + penalty * np.eye(features.shape[1])
        return Ridge(*(np.linalg.solve(gram, features.T @ y) for y in (quality, np.log(dollars))))

    def predictions(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(quality, dollars) of every model on new prompts."""
        return features @ self.quality, np.exp(features @ self.log_dollars)
