"""Policies with a loop of their own, each over the rounds of one lane (see `over_lanes`).

Last those of censored pairs, of growing sets of arms and of points of [0, 1], whose constants are
p, and whose means no table has.
"""

import numba
import numpy as np

from benchmarks.loops import (
    INF,
    F,
    below,
    counts,
    largest,
    over_lanes,
    pull,
    uniform,
    until_spent,
    zeros,
)


@over_lanes
def primal_dual_bwk(mean_reward, mean_cost, budget, max_rounds, c_rad, state):
    """PD-BwK with d resources and time: costs ``[lane, K, d]``, budgets ``[lane, d]``."""
    width, d = mean_cost.shape
    n, reward, _ = counts(width)
    cost, lower, upper = zeros((width, d)), zeros((width, d)), zeros(width)
    weight, price, share = zeros(d + 1), zeros(d + 1), zeros(d + 1)
    spent = np.zeros(d)
    smallest = F(max_rounds)
    for j in range(d):
        smallest = min(smallest, F(budget[j]))
    for j in range(d):
        share[j] = smallest / F(budget[j])
    share[d] = smallest / F(max_rounds)
    rate = np.log(F(1) + np.sqrt(np.log(F(d + 1)) / smallest))
    t, won, going = 0, 0.0, True
    while going and t < max_rounds:
        arm = t
        if t >= width:
            top = weight.max()
            for j in range(d + 1):
                price[j] = np.exp(weight[j] - top) * share[j]
            arm, best = 0, F(-1)
            for k in range(width):
                uses = price[d]
                for j in range(d):
                    uses += price[j] * lower[k, j]
                if upper[k] > best * uses:
                    best, arm = upper[k] / uses, k
            for j in range(d):
                weight[j] += rate * share[j] * lower[arm, j]
            weight[d] += rate * share[d]
        state, u = uniform(state)
        r = F(u < mean_reward[arm])
        n[arm] += F(1)
        reward[arm] += r
        inv = F(1) / n[arm]
        mean = reward[arm] * inv
        upper[arm] = min(mean + np.sqrt(c_rad * mean * inv) + c_rad * inv, F(1))
        for j in range(d):
            state, u = uniform(state)
            c = F(u < mean_cost[arm, j])
            cost[arm, j] += c
            spent[j] += c
            going = going and spent[j] < budget[j]
            mean = cost[arm, j] * inv
            lower[arm, j] = max(mean - np.sqrt(c_rad * mean * inv) - c_rad * inv, F(0))
        won, t = won + r, t + 1
    return t, won


@until_spent
def b_greedy(state, t, spent, budget, n, reward, cost, kept, p):
    """ε-greedy: a random arm with probability pK/(t − 1)."""
    ratio, last = kept[0], int(kept[1, 0])
    ratio[last] = reward[last] / (cost[last] + F(1e-10))
    arm = t
    if t >= n.size:
        state, u = uniform(state)
        if u * F(t) < p * F(n.size):
            state, arm = below(state, n.size)
        else:
            arm = largest(ratio)
    kept[1, 0] = arm
    return state, arm


@until_spent
def epsilon_first(state, t, spent, budget, n, reward, cost, kept, p):
    """Arms in turn while less than p of the budget is spent; then the best ratio, found once."""
    if spent < p * budget:
        return state, t % n.size
    if kept[0, 0] == F(0):  # one more than the best arm, once it is known
        best = F(-1)
        for j in range(n.size):
            ratio = reward[j] / cost[j] if cost[j] > F(0) else INF
            if n[j] > F(0) and ratio > best:
                best, kept[0, 0] = ratio, F(j + 1)
    return state, int(kept[0, 0]) - 1


@until_spent
def kube(state, t, spent, budget, n, reward, cost, kept, p):
    """The greedy packing of what is left by density; an arm is drawn by its share of the units."""
    if t < n.size:
        return state, t
    log_t, ready = np.log(F(t + 1)), True
    density, price = kept
    for j in range(n.size):
        inv = F(1) / n[j]
        price[j] = cost[j] * inv
        density[j] = INF
        if cost[j] > F(0):
            density[j] = (reward[j] * inv + np.sqrt(F(2) * log_t * inv)) / price[j]
        else:
            ready = False
    arm, room, units = largest(density), F(budget - spent), F(0)
    while ready:
        best = -1
        for j in range(n.size):
            if price[j] <= room and (best < 0 or density[j] > density[best]):
                best = j
        if best < 0:
            break
        copies = max(np.floor(room / price[best]), F(1))
        units += copies
        state, u = uniform(state)
        if u * units < copies:
            arm = best
        room -= copies * price[best]
    return state, arm


@numba.njit(inline="always")
def _two_largest(value):
    first, second = (0, 1) if value[0] >= value[1] else (1, 0)
    for j in range(2, value.size):
        if value[j] > value[first]:
            first, second = j, first
        elif value[j] > value[second]:
            second = j
    return first, second


@over_lanes
def mrcb(mean_reward, mean_cost, budget, p, q, state):
    """Two arms a round: the pair with the largest ratio of the sums of bounds."""
    width = mean_reward.size
    n, reward, cost = counts(width)
    upper, lower, value = zeros(width), zeros(width), zeros(width)
    spent, t, won = 0.0, 0, 0.0
    while spent < budget:
        if 2 * t < width:
            a, b = 2 * t, min(2 * t + 1, width - 1)
            a = a if a != b else 0
        else:
            log_before, free = np.log(F(t)), 0
            for j in range(width):
                inv = F(1) / n[j]
                e = p * np.sqrt(log_before * inv)
                upper[j], lower[j] = (min(reward[j] * inv + e, F(1)), max(cost[j] * inv - e, F(0)))
                free += lower[j] <= F(0)
            if free >= 2:
                for j in range(width):
                    value[j] = F(lower[j] <= F(0))
                a, b = _two_largest(value)
            else:
                a, b = _two_largest(upper)
                before = F(-1)
                rate = (upper[a] + upper[b]) / (lower[a] + lower[b])
                while rate > before:
                    before = rate
                    for j in range(width):
                        value[j] = upper[j] - rate * lower[j]
                    a, b = _two_largest(value)
                    rate = (upper[a] + upper[b]) / (lower[a] + lower[b])
        for arm in (a, b):
            state, r, c = pull(state, n, reward, cost, mean_reward, mean_cost, arm)
            spent, won = spent + c, won + r
        t += 1
    return t, won


@over_lanes
def suak(mean_reward, mean_cost, horizon, p, q, state):
    """SUAK with a null arm: at most p a round on average in every round, ``horizon`` rounds."""
    width = mean_reward.size
    n, reward, cost = counts(width + 1)
    high, low = zeros(width + 1), zeros(width + 1)
    spent, slack, won = 0.0, 0.0, 0.0
    for t in range(1, int(horizon) + 1):
        log_t, explore, d = np.log(F(t)), -1, INF
        for j in range(width):
            middle = np.sqrt(F(1.5) * log_t / n[j]) if n[j] > F(0) else INF
            gap = abs(p - cost[j] / max(n[j], F(1)))
            d = min(d, gap - middle)
            if gap <= F(7) * middle and (explore < 0 or n[j] < n[explore]):
                explore = j
        over, broke = spent + 1.0 > p * t, slack < 1.0
        arm = -1
        if explore >= 0:
            if broke or not over:
                slack += p
            if not broke and not over:
                arm = explore
        elif not over:
            for j in range(width):
                inv = F(1) / n[j]
                e = np.sqrt(F(3) * log_t * inv)
                high[j], low[j] = min(reward[j] * inv + e, F(1)), max(cost[j] * inv - e, F(0))
            high[width], low[width] = F(0), F(0)
            best, dear, cheap = F(-1), width, width
            for j in range(width + 1):
                if low[j] <= p:
                    if high[j] > best:
                        best, dear, cheap = high[j], j, j
                    for i in range(width + 1):
                        if low[i] > p:
                            value = high[j] + (p - low[j]) * (high[i] - high[j]) / (low[i] - low[j])
                            if value > best:
                                best, dear, cheap = value, i, j
            arm = dear
            if dear != cheap:
                omega = d / (F(2) + d - p)
                spare = F(p * t - spent) - log_t / (omega * omega)
                up = cost[dear] / n[dear]
                down = cost[cheap] / n[cheap] if cheap < width else F(0)
                share = min(max((spare - down) / (up - down), omega), F(1) - omega)
                state, u = uniform(state)
                arm = dear if u < share else cheap
        if 0 <= arm < width:
            state, r, c = pull(state, n, reward, cost, mean_reward, mean_cost, arm)
            spent += c
            won += r
            if explore >= 0:
                slack -= c
    return int(horizon), won


@over_lanes
def rcucb(rewards, seconds, horizon, p, q, state):
    """RC-UCB ("legal") on logs ``[arm, row]``; p: limits, price of a second, penalties."""
    limits, price, penalty = p
    width, depth = rewards.shape
    shape, earned = (width, limits.size), 0.0
    n, gain, beyond = zeros(shape), zeros(shape), zeros(shape)
    for t in range(1, horizon + 1):
        arm, limit = t - 1, limits.size - 1
        if t > width:
            z = F(2) * np.log(F(t))
            best = -INF
            for j in range(width):
                for i in range(limits.size):
                    inv = F(1) / n[j, i]
                    index = (gain[j, i] - penalty[i] * beyond[j, i]) * inv + (
                        F(1) + penalty[i]
                    ) * np.sqrt(z * inv)
                    if index > best:
                        best, arm, limit = index, j, i
        state, row = below(state, depth)
        x, r = seconds[arm, row], rewards[arm, row]
        worth = r - price * x
        earned += worth if x <= limits[limit] else -penalty[limit]
        for i in range(limit + 1):
            n[arm, i] += F(1)
            if x <= limits[i]:
                gain[arm, i] += worth
            else:
                beyond[arm, i] += F(1)
    return horizon, earned


@over_lanes
def rcb_air(_, __, budget, p, q, state):
    """RCB-AIR: an arm opens below t^exponent; p: exponent, least cost, capacity."""
    exponent, least_cost, capacity = p
    n, reward, cost = counts(capacity)
    mean_reward, mean_cost = zeros(capacity), zeros(capacity)
    opened, spent, t, won = 0, 0.0, 0, 0.0
    while spent < budget:
        if opened < F(t + 1) ** exponent and opened < capacity:
            state, mean_reward[opened] = uniform(state)
            state, u = uniform(state)
            mean_cost[opened] = least_cost + (F(1) - least_cost) * u
            arm = opened
            opened += 1
        else:
            level, arm, best = F(0.5) * np.log(max(F(t), F(2))), 0, F(-1)
            for j in range(opened):
                inv = F(1) / n[j]
                e = np.sqrt(level * inv)
                lower = cost[j] * inv - e
                index = min(reward[j] * inv + e, F(1)) / lower if lower > F(0) else INF
                if index > best:
                    best, arm = index, j
        state, r, c = pull(state, n, reward, cost, mean_reward, mean_cost, arm)
        spent, won, t = spent + c, won + r, t + 1
    return t, won


@over_lanes
def b_zoom(_, __, budget, p, q, state):
    """B-Zoom on μ_r = ½ + 0.4x, μ_c = 0.2 + ½x²; p: λ, Lipschitz constant, capacity."""
    lam, lipschitz, capacity = p
    n, reward, cost = counts(capacity + 1)
    mean_reward, mean_cost = zeros(capacity + 1), zeros(capacity + 1)
    x, radius, index = zeros(capacity + 1), zeros(capacity + 1), zeros(capacity + 1)
    points, phase, spent, t, won = 0, 0, 0.0, 1, 0.0
    while spent < budget:
        if t >= 1 << phase:
            phase, points = phase + 1, 0
        frontier, grows, hole = F(0), True, F(1)
        while grows:
            grows = False
            for j in range(points):
                if x[j] - radius[j] < frontier < x[j] + radius[j]:
                    frontier, grows = x[j] + radius[j], True
        if frontier <= F(1) and points < capacity:
            for j in range(points):
                if frontier <= x[j] - radius[j] < hole:
                    hole = x[j] - radius[j]
            state, u = uniform(state)
            arm = points
            at = x[arm] = frontier + u * (hole - frontier)
            n[arm], reward[arm], cost[arm] = F(0), F(0), F(0)
            mean_reward[arm], mean_cost[arm] = F(0.5) + F(0.4) * at, F(0.2) + F(0.5) * at * at
            points += 1
        else:
            arm = largest(index[:points])
        state, r, c = pull(state, n, reward, cost, mean_reward, mean_cost, arm)
        e = F(1) / lam * (F(1) + F(1) / lam) * np.sqrt((F(8) * F(phase) + F(1.3862944)) / n[arm])
        radius[arm] = e / lipschitz
        index[arm] = reward[arm] / max(lam * n[arm], cost[arm]) + F(2) * e
        spent, won, t = spent + c, won + r, t + 1
    return t, won


LOOPS = {
    "b_greedy": b_greedy,
    "epsilon_first": epsilon_first,
    "kube": kube,
    "mrcb": mrcb,
    "suak": suak,
}
