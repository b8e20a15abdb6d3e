"""Float64 twins of policies that mind a floor or look for the best arm: one lane, from tables of
outcomes.

Each is given rewards and costs ``[arm, pull]`` and plays by itself; ``arms`` are pulled as the
papers say it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Table = np.ndarray


class Lane:
    """What one lane has seen."""

    def __init__(self, reward: Table, cost: Table):
        self.table = reward, cost
        self.n = np.zeros(len(reward), int)
        self.r, self.c = np.zeros(len(reward)), np.zeros(len(reward))
        self.played: list[int] = []

    def pull(self, arm: int) -> None:
        self.r[arm] += self.table[0][arm, self.n[arm]]
        self.c[arm] += self.table[1][arm, self.n[arm]]
        self.n[arm] += 1
        self.played.append(arm)

    @property
    def mean(self) -> np.ndarray:
        return self.r / np.maximum(self.n, 1)


def cs_ucb(lane: Lane, costs: np.ndarray, alpha: float, horizon: int, rounds: int) -> None:
    for arm in range(lane.n.size):
        lane.pull(arm)
    while len(lane.played) < rounds:
        upper = np.minimum(1, lane.mean + np.sqrt(2 * np.log(horizon) / lane.n))
        enough = np.flatnonzero(upper >= (1 - alpha) * upper.max())
        lane.pull(int(enough[np.argmin(costs[enough])]))


def pe_cs(
    lane: Lane, costs: np.ndarray, alpha: float, horizon: int, rounds: int, kappa: int = 5
) -> None:
    """As in the authors' code, but that ℓ itself is played where no arm is cheaper."""
    order = [int(k) for k in np.argsort(costs, kind="stable")]

    def level(omega: int) -> tuple[int, float]:
        gap = 2.0**-omega
        log = np.log(horizon * gap**2)
        tau = int(np.ceil(2 * log / gap**2))
        return tau, float(np.sqrt(log / (2 * tau)))

    def to(arm: int, tau: int) -> None:
        while lane.n[arm] < tau and len(lane.played) < rounds:
            lane.pull(arm)

    remaining, omega = list(order), 0
    while len(remaining) > 1 and len(lane.played) < rounds:
        tau, width = level(omega)
        for arm in remaining:
            to(arm, tau)
        if len(lane.played) == rounds:
            return
        floor = max(lane.mean[k] - width for k in remaining)
        remaining = [k for k in remaining if lane.mean[k] + width > floor]
        if len(remaining) > 1:
            omega += 1
            lane.pull(remaining[0])  # before the next τ is looked at
    best, phases = remaining[0], dict.fromkeys(order, 0)
    queue = order[: order.index(best)]
    while len(lane.played) < rounds:
        if not queue:
            to(best, rounds)
            return
        arm = queue[0]
        (tau, width), (tau_best, width_best) = (
            level(phases[arm]),
            level(min(omega, phases[arm] + kappa)),
        )
        to(arm, tau)
        to(best, tau_best)
        if len(lane.played) == rounds:
            return
        mean_arm, mean_best, share = lane.mean[arm], lane.mean[best], 1 - alpha
        if share * (mean_best + width) < mean_arm - width:
            while len(lane.played) < rounds:
                lane.pull(arm)
        elif mean_arm + width < share * (mean_best - width_best):
            queue.pop(0)
            lane.pull(queue[0] if queue else best)
        else:
            phases[arm] += 1
            omega = max(omega, phases[arm])
            lane.pull(arm)


def conservative(
    lane: Lane,
    mean: float,
    alpha: float,
    delta: float,
    rounds: int,
    cost: float | None = None,
    wide: bool = False,
) -> None:
    rivals = lane.n.size - 1
    bounds = rivals if cost is None else 2 * rivals
    zeta = bounds / delta

    def psi(s: float) -> float:
        if wide:
            return 2 * np.log(bounds * s**3 / delta)
        grows = zeta * (1 + np.log(zeta)) / ((zeta - 1) * np.log(zeta))
        return (
            np.log(max(3, np.log(zeta)))
            + np.log(2 * np.e**2 * zeta)
            + grows * np.log(np.log(1 + s))
        )

    floor = 0.0 if cost is None else (1 - alpha) * mean / cost
    for t in range(1, rounds + 1):
        index, net = np.zeros(rivals + 1), np.zeros(rivals + 1)
        index[0], net[0] = (mean, mean) if cost is None else (mean / cost, alpha * mean)
        for k in range(1, rivals + 1):
            if lane.n[k] == 0:
                index[k], net[k] = np.inf, -floor
                continue
            width = np.sqrt(max(psi(lane.n[k]), 0) / lane.n[k])
            high, low = lane.mean[k] + width, max(0, lane.mean[k] - width)
            if cost is None:
                index[k], net[k] = high, low
                continue
            paid = lane.c[k] / lane.n[k]
            lowest = max(0, paid - width)
            index[k] = min(1, high) / lowest if lowest > 0 else np.inf
            net[k] = low - floor * min(1, paid + width)
        arm = int(np.argmax(index))
        room = lane.n @ net + net[arm] - ((1 - alpha) * mean * t if cost is None else 0)
        lane.pull(arm if room >= 0 else 0)


def floored(
    lane: Lane, share: np.ndarray, tolerance: float, rounds: int, inner: Callable[[Lane], int]
) -> None:
    for t in range(1, rounds + 1):
        behind = share * (t - 1) - lane.n
        lane.pull(int(np.argmax(behind)) if behind.max() > tolerance else inner(lane))


def divergence(p: float, q: float) -> float:
    return sum(a * np.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)


def chernoff_overlap(lane: Lane, delta: float, rounds: int) -> list[int]:
    """The arms that remain."""
    arms = list(range(lane.n.size))
    alive = list(arms)
    while len(lane.played) < rounds:
        if lane.n.sum():
            best = max(alive, key=lambda k: lane.mean[k])
            level = np.log(2 * lane.n.sum() * (len(arms) - 1) / delta)
            survivors = [best]
            for k in alive:
                n = lane.n[best], lane.n[k]
                if k == best:
                    continue
                pooled = (lane.r[best] + lane.r[k]) / max(sum(n), 1)
                sure = n[0] * divergence(lane.mean[best], pooled) + n[1] * divergence(
                    lane.mean[k], pooled
                )
                if min(n) == 0 or sure <= level:
                    survivors.append(k)
            alive = sorted(survivors)
        if len(alive) == 1:
            break
        price = (lane.c + 1) / (lane.n + 1)
        lane.pull(min(alive, key=lambda k: lane.n[k] * np.sqrt(price[k])))
    return alive


def elimination(lane: Lane, budget: float, rule: str, spread: str) -> list[int]:
    """The arms that remain."""
    arms = lane.n.size
    alive = list(range(arms))
    if rule == "halving":
        phases = int(np.ceil(np.log2(arms)))
        goals = [budget * (i + 1) / phases for i in range(phases)]
    else:
        norm = 0.5 + sum(1 / i for i in range(2, arms + 1))
        shares = [1 / norm, *(1 / (norm * (arms + 2 - k)) for k in range(2, arms))]
        goals = list(budget * np.cumsum(shares))
    for goal in goals:
        while lane.c.sum() <= goal - 1:
            price = (lane.c + 1) / (lane.n + 1)
            weight = {"pulls": np.ones(arms), "root": np.sqrt(price), "money": price}[spread]
            lane.pull(min(alive, key=lambda k: lane.n[k] * weight[k]))
        alive.sort(key=lambda k: -lane.mean[k])
        alive = sorted(alive[: (len(alive) + 1) // 2 if rule == "halving" else len(alive) - 1])
    return alive
