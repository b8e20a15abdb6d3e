"""The other policies on Bernoulli arms: ``play(mean_reward, mean_cost, budget, p, q, seed) -> (rounds, reward)``."""

import numba
import numpy as np

from benchmarks.loops.frame import FAST, below, first_state, pull, uniform

F, INF = np.float32, np.float32(np.inf)


@numba.njit(parallel=True, fastmath=FAST)
def b_greedy(mean_reward, mean_cost, budget, p, q, seed):
    """ε-greedy: a random arm with probability pK/(t − 1)."""
    lanes, width = mean_reward.shape
    rounds, earned = np.zeros(lanes, np.int64), np.zeros(lanes, np.float64)
    for lane in numba.prange(lanes):
        state = first_state(seed, lane)
        n, reward, cost, ratio = (
            np.zeros(width, np.float32),
            np.zeros(width, np.float32),
            np.zeros(width, np.float32),
            np.zeros(width, np.float32),
        )
        spent, t, won = 0.0, 0, 0.0
        while spent < budget[lane]:
            arm = t
            if t >= width:
                state, u = uniform(state)
                if u * F(t) < p * F(width):
                    state, arm = below(state, width)
                else:
                    arm = 0
                    for j in range(1, width):
                        if ratio[j] > ratio[arm]:
                            arm = j
            state, r, c = pull(state, n, reward, cost, mean_reward[lane], mean_cost[lane], arm)
            ratio[arm] = reward[arm] / (cost[arm] + F(1e-10))
            spent += c
            won += r
            t += 1
        rounds[lane], earned[lane] = t, won
    return rounds, earned


@numba.njit(parallel=True, fastmath=FAST)
def epsilon_first(mean_reward, mean_cost, budget, p, q, seed):
    """Arms in turn while less than p of the budget is spent; then the best ratio, found once."""
    lanes, width = mean_reward.shape
    rounds, earned = np.zeros(lanes, np.int64), np.zeros(lanes, np.float64)
    for lane in numba.prange(lanes):
        state = first_state(seed, lane)
        n, reward, cost = np.zeros(width, np.float32), np.zeros(width, np.float32), np.zeros(width, np.float32)
        spent, t, won, chosen = 0.0, 0, 0.0, -1
        while spent < budget[lane]:
            arm = t % width
            if spent >= p * budget[lane]:
                if chosen < 0:
                    best = F(-1)
                    for j in range(width):
                        ratio = reward[j] / cost[j] if cost[j] > F(0) else INF
                        if n[j] > F(0) and ratio > best:
                            best, chosen = ratio, j
                arm = chosen
            state, r, c = pull(state, n, reward, cost, mean_reward[lane], mean_cost[lane], arm)
            spent += c
            won += r
            t += 1
        rounds[lane], earned[lane] = t, won
    return rounds, earned


@numba.njit(parallel=True, fastmath=FAST)
def kube(mean_reward, mean_cost, budget, p, q, seed):
    """The greedy packing of what is left by density; an arm is drawn by its share of the units."""
    lanes, width = mean_reward.shape
    rounds, earned = np.zeros(lanes, np.int64), np.zeros(lanes, np.float64)
    for lane in numba.prange(lanes):
        state = first_state(seed, lane)
        n, reward, cost, density, price = (
            np.zeros(width, np.float32),
            np.zeros(width, np.float32),
            np.zeros(width, np.float32),
            np.zeros(width, np.float32),
            np.zeros(width, np.float32),
        )
        spent, t, won = 0.0, 0, 0.0
        while spent < budget[lane]:
            arm = t
            if t >= width:
                log_t, ready = np.log(F(t + 1)), True
                for j in range(width):
                    inv = F(1) / n[j]
                    price[j] = cost[j] * inv
                    density[j] = INF
                    if cost[j] > F(0):
                        density[j] = (reward[j] * inv + np.sqrt(F(2) * log_t * inv)) / price[j]
                    else:
                        ready = False
                arm = 0
                for j in range(1, width):
                    if density[j] > density[arm]:
                        arm = j
                room, units = F(budget[lane] - spent), F(0)
                while ready:
                    best = -1
                    for j in range(width):
                        if price[j] <= room and (best < 0 or density[j] > density[best]):
                            best = j
                    if best < 0:
                        break
                    many = max(np.floor(room / price[best]), F(1))
                    units += many
                    state, u = uniform(state)
                    if u * units < many:
                        arm = best
                    room -= many * price[best]
            state, r, c = pull(state, n, reward, cost, mean_reward[lane], mean_cost[lane], arm)
            spent += c
            won += r
            t += 1
        rounds[lane], earned[lane] = t, won
    return rounds, earned


@numba.njit(inline="always")
def _two_largest(value):
    first, second = (0, 1) if value[0] >= value[1] else (1, 0)
    for j in range(2, value.size):
        if value[j] > value[first]:
            first, second = j, first
        elif value[j] > value[second]:
            second = j
    return first, second


@numba.njit(parallel=True, fastmath=FAST)
def mrcb(mean_reward, mean_cost, budget, p, q, seed):
    """Two arms a round: the pair with the largest ratio of the sums of bounds."""
    lanes, width = mean_reward.shape
    rounds, earned = np.zeros(lanes, np.int64), np.zeros(lanes, np.float64)
    for lane in numba.prange(lanes):
        state = first_state(seed, lane)
        n, reward, cost, upper, lower, value = (
            np.zeros(width, np.float32),
            np.zeros(width, np.float32),
            np.zeros(width, np.float32),
            np.zeros(width, np.float32),
            np.zeros(width, np.float32),
            np.zeros(width, np.float32),
        )
        spent, t, won = 0.0, 0, 0.0
        while spent < budget[lane]:
            if 2 * t < width:
                a, b = 2 * t, min(2 * t + 1, width - 1)
                a = a if a != b else 0
            else:
                log_before, free = np.log(F(t)), 0
                for j in range(width):
                    inv = F(1) / n[j]
                    e = p * np.sqrt(log_before * inv)
                    upper[j], lower[j] = min(reward[j] * inv + e, F(1)), max(cost[j] * inv - e, F(0))
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
                state, r, c = pull(state, n, reward, cost, mean_reward[lane], mean_cost[lane], arm)
                spent += c
                won += r
            t += 1
        rounds[lane], earned[lane] = t, won
    return rounds, earned


@numba.njit(parallel=True, fastmath=FAST)
def suak(mean_reward, mean_cost, horizon, p, q, seed):
    """SUAK with a null arm: at most p a round on average in every round, ``horizon`` rounds."""
    lanes, width = mean_reward.shape
    rounds, earned = np.zeros(lanes, np.int64), np.zeros(lanes, np.float64)
    for lane in numba.prange(lanes):
        state = first_state(seed, lane)
        n, reward, cost, high, low = (
            np.zeros(width + 1, np.float32),
            np.zeros(width + 1, np.float32),
            np.zeros(width + 1, np.float32),
            np.zeros(width + 1, np.float32),
            np.zeros(width + 1, np.float32),
        )
        spent, slack, won = 0.0, 0.0, 0.0
        for t in range(1, int(horizon[lane]) + 1):
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
                                found = high[j] + (p - low[j]) * (high[i] - high[j]) / (low[i] - low[j])
                                if found > best:
                                    best, dear, cheap = found, i, j
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
                state, r, c = pull(state, n, reward, cost, mean_reward[lane], mean_cost[lane], arm)
                spent += c
                won += r
                if explore >= 0:
                    slack -= c
        rounds[lane], earned[lane] = int(horizon[lane]), won
    return rounds, earned


LOOPS = {"b_greedy": b_greedy, "epsilon_first": epsilon_first, "kube": kube, "mrcb": mrcb, "suak": suak}
