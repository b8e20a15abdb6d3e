"""Policies with contexts in float64, from their formulas: A is kept and solved with."""

from __future__ import annotations

from typing import Any

import numpy as np


class Linear:
    """Ridge models of K arms: A, h, g; ``diagonal`` is that of P."""

    def __init__(
        self, arms: int, costs: int, diagonal: Any, shared: bool = False, gamma: float = 1.0
    ):
        self.p = np.diag(np.asarray(diagonal, np.float64))
        models = 1 if shared else arms
        self.a = np.repeat(self.p[None], models, axis=0)
        self.h = np.zeros((models, len(self.p)))
        self.g = np.zeros((models, costs, len(self.p)))
        self.paid, self.n = np.zeros((arms, costs)), np.zeros(arms, int)
        self.shared, self.gamma = shared, gamma

    def learn(self, arm: int, x: np.ndarray, reward: float, cost: Any) -> None:
        k = 0 if self.shared else arm
        x = np.append(1.0, x)
        cost = np.atleast_1d(cost)
        self.a = self.gamma * self.a + (1 - self.gamma) * self.p
        self.h, self.g = self.gamma * self.h, self.gamma * self.g
        self.a[k] += np.outer(x, x)
        self.h[k] += reward * x
        self.g[k] += np.outer(cost, x)
        self.paid[arm] += cost
        self.n[arm] += 1

    def asked(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(r̂ [K], ĉ [K, J], w [K]) for x [d] or [K, d]."""
        arms = len(self.n)
        rows = np.column_stack([np.ones(arms), np.broadcast_to(x, (arms, np.shape(x)[-1]))])
        r, c, w = np.zeros(arms), np.zeros((arms, self.paid.shape[1])), np.zeros(arms)
        for k in range(arms):
            m = 0 if self.shared else k
            solved = np.linalg.solve(self.a[m], rows[k])
            r[k], c[k], w[k] = solved @ self.h[m], self.g[m] @ solved, np.sqrt(rows[k] @ solved)
        return r, c, w

    @property
    def mean_cost(self) -> np.ndarray:
        return self.paid / np.maximum(self.n, 1)[:, None]


def optimistic(
    model: Linear, x: np.ndarray, alpha: float, cost_alpha: float = 0.0, guess: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """(U [K], L [K, J])."""
    r, c, w = model.asked(x)
    mean = model.mean_cost
    upper = np.minimum(r + alpha * w, 1)
    lower = np.maximum(c - cost_alpha * w[:, None] * mean, mean / 20)
    if guess is not None:
        upper = np.where(model.n < 2, 1.0, upper)
        lower = np.where((model.n == 0)[:, None], np.asarray(guess)[:, None], lower)
    return upper, lower


def moved(
    price: np.ndarray, paid: np.ndarray, tau: np.ndarray, eta: float, start: float
) -> np.ndarray:
    """λ ← λ exp(min(η(L/τ − 1), 1)), λτ from s 2⁻¹⁰ to 1."""
    return np.clip(
        price * np.exp(np.minimum(eta * (paid / tau - 1), 1)), start * 2.0**-10 / tau, 1 / tau
    )


def linear_cbwk(
    r: np.ndarray, c: np.ndarray, w: np.ndarray, beta: float, z: float, y: np.ndarray
) -> np.ndarray:
    """min(r̂ + βw, 1) − Z⟨y, [ĉ − βw]₊⟩."""
    return np.minimum(r + beta * w, 1) - z * np.maximum(c - beta * w[:, None], 0) @ y


def square_cbwk(s: np.ndarray, gamma: float) -> np.ndarray:
    """Inverse gap weighting; the null arm's 0 is the last of ``s``."""
    best = int(np.argmax(s))
    p = 1 / (len(s) + gamma * (s[best] - s))
    p[best] = 0
    p[best] = 1 - p.sum()
    return p


def weights(y: np.ndarray, cost: np.ndarray, pace: np.ndarray, rate: float) -> np.ndarray:
    """y on the resources and, last, the dummy: y_j ∝ y_j exp(η(c_j − b_j))."""
    new = y * np.exp(rate * np.append(np.asarray(cost) - pace, 0.0))
    return new / new.sum()


def drawn_theta(a: np.ndarray, h: np.ndarray, v: float, z: np.ndarray) -> np.ndarray:
    """A⁻¹h + v L⁻ᵀz, A = LLᵀ."""
    return np.linalg.solve(a, h) + v * np.linalg.solve(np.linalg.cholesky(a).T, z)
