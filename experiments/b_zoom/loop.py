"""Single-phase B-Zoom on the cost valley as a plain loop in float64, for `independent` alone."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit
def covered_until(x: np.ndarray, reach: np.ndarray, balls: int) -> float:
    """The balls cover all points from 0 up to this one."""
    end, grows = 0.0, True
    while grows:
        grows = False
        for j in range(balls):
            if x[j] - reach[j] < end < x[j] + reach[j]:
                end, grows = x[j] + reach[j], True
    return end


@numba.njit
def in_a_gap(x: np.ndarray, reach: np.ndarray, balls: int) -> float:
    """A point drawn uniformly from the gaps between the balls, in the order of the balls' left ends."""
    order = np.argsort(x[:balls] - reach[:balls])
    total, place = 0.0, 0.0
    for j in order:
        total += max(min(x[j] - reach[j], 1.0) - place, 0.0)
        place = max(place, x[j] + reach[j])
    aim = np.random.random() * (total + max(1.0 - place, 0.0))
    place = 0.0
    for j in order:
        gap = max(min(x[j] - reach[j], 1.0) - place, 0.0)
        if aim < gap:
            return place + aim
        aim -= gap
        place = max(place, x[j] + reach[j])
    return min(place + aim, 1.0)


@numba.njit
def is_covered(low: float, high: float, x: np.ndarray, reach: np.ndarray, balls: int) -> bool:
    """Does a single ball hold all of [low, high] within [0, 1]?"""
    if high < 0.0 or low > 1.0:
        return True
    covered = False
    for j in range(balls):
        covered |= x[j] - reach[j] < max(low, 0.0) and x[j] + reach[j] > min(high, 1.0)
    return covered


@numba.njit
def b_zoom(
    budget: int, lam: float, lipschitz: float, centre: float, room: int, seed: int
) -> tuple[int, int]:
    """(pulls, points) of one run. Costs are 0 or 1 and B is whole, so it spends all of B."""
    np.random.seed(seed)
    x, n, reward, cost = np.zeros(room), np.zeros(room), np.zeros(room), np.zeros(room)
    reach, index = np.zeros(room), np.zeros(room)
    width = (1 / lam) * (1 + 1 / lam) * np.sqrt(8 * (np.log(budget) - np.log(lam)) + np.log(4.0))
    points, money, pulls, shrunk = 0, budget, 0, True
    while money > 0:
        if shrunk and points < room and covered_until(x, reach, points) <= 1.0:
            x[points] = in_a_gap(x, reach, points)
            arm = points
            points += 1
        else:
            arm = 0
            for j in range(1, points):
                if index[j] > index[arm]:
                    arm = j
        mean_cost = lam + (1 - np.exp(-500 * (x[arm] - centre) ** 2)) / 5
        paid = 1 if np.random.random() < mean_cost else 0
        n[arm] += 1
        reward[arm] += 1 if np.random.random() < 0.95 + 0.05 * x[arm] else 0
        cost[arm] += paid
        money -= paid
        pulls += 1
        radius, old_reach = width / np.sqrt(n[arm]), reach[arm]
        reach[arm] = new_reach = radius / lipschitz
        # only the points that the ball gave up can be open now; a new arm's ball was infinite
        shrunk = n[arm] == 1 or not (
            is_covered(x[arm] - old_reach, x[arm] - new_reach, x, reach, points)
            and is_covered(x[arm] + new_reach, x[arm] + old_reach, x, reach, points)
        )
        index[arm] = reward[arm] / n[arm] / max(lam, cost[arm] / n[arm]) + 2 * radius
    return pulls, points
