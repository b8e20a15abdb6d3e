"""Float64 NumPy twins of the policies for several resources, written from the papers and the
specification (H).

Lanes are rows. K arms, d resources with budgets ``[d]``, and T rounds or None; ``m`` counts time
where there is one. Each twin is told (arm, reward, costs) of every round and says what it would
play; draws are those of the library.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

Floats = NDArray[np.float64]


def rad_bounds(n: Floats, r: Floats, c: Floats, t: int, c_rad: float) -> tuple[Floats, Floats]:
    """Ends of [0, 1] intersected with mean ± (sqrt(C mean / n) + C / n) (SPEC A.12)."""

    def rad(mean: Floats, n: Floats) -> Floats:
        return np.sqrt(c_rad * mean / n) + c_rad / n

    mean, cost = r / n, c / n[..., None]
    return np.minimum(mean + rad(mean, n), 1), np.maximum(cost - rad(cost, n[..., None]), 0)


def wilson_bounds(n: Floats, r: Floats, c: Floats, t: int, rho: float) -> tuple[Floats, Floats]:
    """Roots of (mean - w)^2 = z^2 w (1 - w) / n with z^2 = 2 rho ln t (P-omega, Theorem 1 on [0,
    1]).

    That is (n + z^2) w^2 - (2 n mean + z^2) w + n mean^2 = 0.
    """
    z2 = 2 * rho * np.log(t)

    def roots(mean: Floats, n: Floats) -> tuple[Floats, Floats]:
        a, b, e = n + z2, 2 * n * mean + z2, n * mean**2
        high = (b + np.sqrt(np.maximum(b**2 - 4 * a * e, 0))) / (2 * a)
        return e / a / np.where(high > 0, high, 1), high

    return roots(r / n, n)[1], roots(c / n[..., None], n[..., None])[0]


def program(mu: Floats, cost: Floats, limit: Floats) -> tuple[Floats, Floats]:
    """(x, prices) of max mu x with cost^T x <= limit, x >= 0, by HiGHS; cost ``[K, rows]``."""
    solution = linprog(-mu, A_ub=cost.T, b_ub=limit, method="highs")
    assert solution.status == 0, solution.message
    return solution.x, -solution.ineqlin.marginals


def fluid_limit(room: Floats, timed: bool, share: float = 1.0) -> Floats:
    """Right sides: per round, and 1 for time; without a horizon the budgets themselves."""
    return np.append(share * room[:-1] / room[-1], 1.0) if timed else room


def with_time(cost: Floats, timed: bool) -> Floats:
    """Costs ``[..., K, d]`` and, last, the round that every pull takes."""
    return np.concatenate([cost, np.ones_like(cost[..., :1])], axis=-1) if timed else cost


class PrimalDual:
    """PD-BwK (SPEC H.1): v_j (1 + eps)^(L_j B / B_j), the largest U / <v, L B / B_j>."""

    def __init__(self, lanes: int, budgets: Floats, rate: float = 1.0) -> None:
        self.budgets = budgets  # [m], the last of rounds where there is a horizon
        self.least = budgets.min()
        self.epsilon = rate * np.sqrt(np.log(budgets.size) / self.least)
        self.weights = np.ones((lanes, budgets.size))

    def uses(self, lower: Floats) -> Floats:
        """Scaled lower bounds, ``[lane, K, m]``."""
        return with_time(lower, lower.shape[-1] < self.budgets.size) * self.least / self.budgets

    def scores(self, upper: Floats, lower: Floats) -> Floats:
        shares = self.weights / self.weights.sum(-1, keepdims=True)
        price = (self.uses(lower) * shares[:, None]).sum(-1)
        with np.errstate(divide="ignore"):
            return np.where(price > 0, upper / np.where(price > 0, price, 1), np.inf)

    def book(self, arm: NDArray[np.int64], lower: Floats) -> None:
        used = self.uses(lower)[np.arange(arm.size), arm]
        self.weights = self.weights * (1 + self.epsilon) ** used
        self.weights /= self.weights.sum(-1, keepdims=True)


class Game:
    """LagrangeBwK (SPEC H.4): EXP3.P (Bubeck and Cesa-Bianchi 2012, Theorem 3.3) against Hedge."""

    def __init__(self, lanes: int, arms: int, budgets: Floats, ratio: float, delta: float) -> None:
        self.T, self.reach = budgets[-1], ratio * budgets[-1] / budgets
        self.beta = np.sqrt(np.log(arms / delta) / (self.T * arms))
        self.eta = 0.95 * np.sqrt(np.log(arms) / (self.T * arms))
        self.gamma = min(1.05 * np.sqrt(arms * np.log(arms) / self.T), 1)
        self.hedge = np.sqrt(8 * np.log(budgets.size) / self.T)
        self.gains, self.losses = np.zeros((lanes, arms)), np.zeros((lanes, budgets.size))

    def arms(self) -> Floats:
        weight = np.exp(self.eta * (self.gains - self.gains.max(-1, keepdims=True)))
        return (1 - self.gamma) * weight / weight.sum(
            -1, keepdims=True
        ) + self.gamma / weight.shape[-1]

    def resources(self) -> Floats:
        weight = np.exp(-self.hedge * (self.losses - self.losses.min(-1, keepdims=True)))
        return weight / weight.sum(-1, keepdims=True)

    def book(
        self, arm: NDArray[np.int64], resource: NDArray[np.int64], reward: Floats, cost: Floats
    ) -> None:
        p, lanes = self.arms(), np.arange(arm.size)
        payoff = reward[:, None] + 1 - self.reach * with_time(cost, True)
        low, high = 1 - self.reach.max(), 2.0
        scaled = (payoff - low) / (high - low)
        self.losses += scaled
        self.gains += self.beta / p
        self.gains[lanes, arm] += scaled[lanes, resource] / p[lanes, arm]


class Descent:
    """Dual mirror descent (SPEC H.5) with the entropy, paced by what is left over the rounds left."""

    def __init__(self, eta: float, start: float, rounds: int) -> None:
        self.step, self.start = eta / np.sqrt(rounds), start
        self.price: Floats | None = None

    def net(
        self, upper: Floats, lower: Floats, money: Floats, rounds_left: int, paid: Floats
    ) -> Floats:
        """Prices of this round, after one that cost ``paid``; then the net rewards."""
        target = np.maximum(money / rounds_left, 2.0**-24)
        if self.price is None:
            self.price = self.start / target
        else:
            price = np.minimum(self.price, 1 / target) * np.exp(
                np.minimum(self.step * (paid / target - 1), 1)
            )
            self.price = np.clip(price, self.start / 2**10 / target, 1 / target)
        return upper - (self.price[:, None] * lower).sum(-1)
