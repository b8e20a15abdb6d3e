"""Censored pairs, growing sets of arms, points of [0, 1]: ``play(…) -> (rounds, reward)`` of each lane."""

import numba
import numpy as np

from benchmarks.loops.frame import FAST, below, first_state, pull, uniform

F, INF = np.float32, np.float32(np.inf)


@numba.njit(parallel=True, fastmath=FAST)
def rcucb(rewards, seconds, limits, price, penalty, horizon, seed):
    """RC-UCB (survival "legal") on logs: a pull draws a row (reward, seconds); ``rewards[lane, arm, row]``."""
    lanes, width, depth = rewards.shape
    many = limits.size
    rounds, earned = np.zeros(lanes, np.int64), np.zeros(lanes, np.float64)
    for lane in numba.prange(lanes):
        state = first_state(seed, lane)
        n, gain, beyond = (
            np.zeros((width, many), np.float32),
            np.zeros((width, many), np.float32),
            np.zeros((width, many), np.float32),
        )
        for t in range(1, horizon + 1):
            arm, limit = t - 1, many - 1
            if t > width:
                z = F(2) * np.log(F(t))
                best = -INF
                for j in range(width):
                    for i in range(many):
                        inv = F(1) / n[j, i]
                        found = (gain[j, i] - penalty[i] * beyond[j, i]) * inv + (F(1) + penalty[i]) * np.sqrt(z * inv)
                        if found > best:
                            best, arm, limit = found, j, i
            state, row = below(state, depth)
            x, r = seconds[lane, arm, row], rewards[lane, arm, row]
            worth = r - price * x
            earned[lane] += worth if x <= limits[limit] else -penalty[limit]
            for i in range(limit + 1):
                n[arm, i] += F(1)
                if x <= limits[i]:
                    gain[arm, i] += worth
                else:
                    beyond[arm, i] += F(1)
        rounds[lane] = horizon
    return rounds, earned


@numba.njit(parallel=True, fastmath=FAST)
def rcb_air(budget, exponent, least_cost, capacity, seed):
    """RCB-AIR: a new arm whenever fewer than t^exponent are open; means are uniform, those of costs above a least."""
    lanes = budget.size
    rounds, earned = np.zeros(lanes, np.int64), np.zeros(lanes, np.float64)
    for lane in numba.prange(lanes):
        state = first_state(seed, lane)
        n, reward, cost, mean_reward, mean_cost = (
            np.zeros(capacity, np.float32),
            np.zeros(capacity, np.float32),
            np.zeros(capacity, np.float32),
            np.zeros(capacity, np.float32),
            np.zeros(capacity, np.float32),
        )
        opened, spent, t, won = 0, 0.0, 0, 0.0
        while spent < budget[lane]:
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
                    found = min(reward[j] * inv + e, F(1)) / lower if lower > F(0) else INF
                    if found > best:
                        best, arm = found, j
            state, r, c = pull(state, n, reward, cost, mean_reward, mean_cost, arm)
            spent += c
            won += r
            t += 1
        rounds[lane], earned[lane] = t, won
    return rounds, earned


@numba.njit(parallel=True, fastmath=FAST)
def b_zoom(budget, lam, lipschitz, capacity, seed):
    """B-Zoom on μ_r = ½ + 0.4x, μ_c = 0.2 + ½x²: a new point in the first hole."""
    lanes = budget.size
    rounds, earned = np.zeros(lanes, np.int64), np.zeros(lanes, np.float64)
    for lane in numba.prange(lanes):
        state = first_state(seed, lane)
        x, n, reward, cost, radius, index = (
            np.zeros(capacity + 1, np.float32),
            np.zeros(capacity + 1, np.float32),
            np.zeros(capacity + 1, np.float32),
            np.zeros(capacity + 1, np.float32),
            np.zeros(capacity + 1, np.float32),
            np.zeros(capacity + 1, np.float32),
        )
        many, phase, spent, t, won = 0, 0, 0.0, 1, 0.0
        while spent < budget[lane]:
            if t >= 1 << phase:
                phase, many = phase + 1, 0
            reached, grows, hole = F(0), True, F(1)
            while grows:
                grows = False
                for j in range(many):
                    if x[j] - radius[j] < reached < x[j] + radius[j]:
                        reached, grows = x[j] + radius[j], True
            if reached <= F(1) and many < capacity:
                for j in range(many):
                    if reached <= x[j] - radius[j] < hole:
                        hole = x[j] - radius[j]
                state, u = uniform(state)
                arm = many
                x[arm], n[arm], reward[arm], cost[arm] = reached + u * (hole - reached), F(0), F(0), F(0)
                many += 1
            else:
                arm = 0
                for j in range(1, many):
                    if index[j] > index[arm]:
                        arm = j
            p = x[arm]
            state, u = uniform(state)
            state, v = uniform(state)
            r, c = F(u < F(0.5) + F(0.4) * p), F(v < F(0.2) + F(0.5) * p * p)
            n[arm] += F(1)
            reward[arm] += r
            cost[arm] += c
            e = F(1) / lam * (F(1) + F(1) / lam) * np.sqrt((F(8) * F(phase) + F(1.3862944)) / n[arm])
            radius[arm] = e / lipschitz
            index[arm] = reward[arm] / max(lam * n[arm], cost[arm]) + F(2) * e
            spent += c
            won += r
            t += 1
        rounds[lane], earned[lane] = t, won
    return rounds, earned
