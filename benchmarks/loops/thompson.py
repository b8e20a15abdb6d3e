"""Budgeted Thompson sampling on Bernoulli arms: the same loop with several ways to draw from
Beta(a, b), a and b whole.

``numpy``: ``np.random.beta`` as Numba compiles it. ``gamma``: two gamma variates (Marsaglia and
Tsang 2000) from a polar normal. ``ziggurat``: the same from a ziggurat of 128 layers (Marsaglia and
Tsang 2000), in float32.
"""

import math

import numba
import numpy as np

from benchmarks.loops import FAST, F, uniform, until_spent


def _layers():
    """Edges of 128 layers of equal area under exp(−x²/2), and the widths always inside."""
    edge, area = 3.442619855899, 9.91256303526217e-3
    x = np.zeros(129)
    x[0], x[1] = area / math.exp(-0.5 * edge * edge), edge
    for i in range(2, 128):
        x[i] = math.sqrt(-2 * math.log(area / x[i - 1] + math.exp(-0.5 * x[i - 1] ** 2)))
    return x.astype(np.float32), np.exp(-0.5 * x * x).astype(np.float32)


_X, _HEIGHT = _layers()


@numba.njit(fastmath=FAST)
def _ziggurat(state):
    while True:
        state, u = uniform(state)
        layer = int(np.uint32(state) & np.uint32(127))
        x = (F(2) * u - F(1)) * _X[layer]
        if abs(x) < _X[layer + 1]:
            return state, x
        if layer == 0:
            while True:
                state, a = uniform(state)
                state, b = uniform(state)
                tail = -np.log(F(1) - a) / _X[1]
                if F(-2) * np.log(F(1) - b) >= tail * tail:
                    return state, (_X[1] + tail) if x > F(0) else -(_X[1] + tail)
        state, v = uniform(state)
        if _HEIGHT[layer] + v * (_HEIGHT[layer + 1] - _HEIGHT[layer]) < np.exp(F(-0.5) * x * x):
            return state, x


@numba.njit(fastmath=FAST)
def _polar(state):
    while True:
        state, u = uniform(state)
        state, v = uniform(state)
        x, y = F(2) * u - F(1), F(2) * v - F(1)
        s = x * x + y * y
        if F(0) < s < F(1):
            return state, x * np.sqrt(F(-2) * np.log(s) / s)


def _gamma(normal):
    @numba.njit(fastmath=FAST)
    def gamma(state, a):
        d = a - F(1 / 3)
        c = F(1) / np.sqrt(F(9) * d)
        while True:
            state, x = normal(state)
            v = F(1) + c * x
            if v <= F(0):
                continue
            v = v * v * v
            state, u = uniform(state)
            if u < F(1) - F(0.0331) * x * x * x * x:
                return state, d * v
            if np.log(u) < F(0.5) * x * x + d * (F(1) - v + np.log(v)):
                return state, d * v

    @numba.njit(fastmath=FAST)
    def beta(state, a, b):
        state, x = gamma(state, a)
        state, y = gamma(state, b)
        return state, x / (x + y)

    return beta


@numba.njit
def _numpy(state, a, b):
    return state, F(np.random.beta(a, b))


def sampling_loop(beta):
    """``play(mean_reward, mean_cost, budget, p, q, seed) -> (rounds, reward)`` of each lane."""

    @until_spent
    def play(state, t, spent, budget, n, reward, cost, kept, p):
        arm, best = 0, F(-1.0)
        for j in range(n.size):
            state, gain = beta(state, F(1) + reward[j], F(1) + n[j] - reward[j])
            state, price = beta(state, F(1) + cost[j], F(1) + n[j] - cost[j])
            if gain > best * price:
                best, arm = gain / price, j
        return state, arm

    return play


WAYS = {"numpy": _numpy, "gamma": _gamma(_polar), "ziggurat": _gamma(_ziggurat)}
