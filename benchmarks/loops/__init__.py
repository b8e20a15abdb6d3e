"""Plain Numba loops, one for each policy: what a user would write who wants speed and needs one
policy only.

Float32 sums, xorshift, fast math, every lane on its own, lanes over all cores; no exact money, no
addresses, no marks. Here: fast math that keeps infinities, random numbers, and the pull of an arm.
"""

import numba
import numpy as np

F, INF = np.float32, np.float32(np.inf)

# Without ``nnan`` and ``ninf``: scores are infinite at zero cost.
FAST = {"nsz", "arcp", "contract", "afn", "reassoc"}


@numba.njit(inline="always")
def zeros(shape):
    """Float32 zeros."""
    return np.zeros(shape, np.float32)


@numba.njit(inline="always")
def first_state(seed, lane):
    """The first state of a lane's generator."""
    return np.uint64(seed * 1000003 + lane * 7919 + 88172645463325252)


@numba.njit(inline="always")
def counts(width):
    """Pulls, rewards and costs of each arm: none yet."""
    return zeros(width), zeros(width), zeros(width)


def over_lanes(one):
    """``play(mean_reward, mean_cost, budget, p, q, seed) -> (rounds, reward)`` of all lanes."""
    of_lane = numba.njit(fastmath=FAST, error_model="numpy")(one)

    @numba.njit(parallel=True, fastmath=FAST)
    def play(mean_reward, mean_cost, budget, p, q, seed):
        lanes = len(mean_reward)
        rounds, earned = np.zeros(lanes, np.int64), np.zeros(lanes, np.float64)
        for lane in numba.prange(lanes):
            state = first_state(seed, lane)
            rounds[lane], earned[lane] = of_lane(
                mean_reward[lane], mean_cost[lane], budget[lane], p, q[lane], state
            )
        return rounds, earned

    return play


@numba.njit(inline="always")
def uniform(state):
    """The next state, and a float32 in [0, 1)."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state, np.float32(state >> np.uint64(40)) * np.float32(2.0**-24)


@numba.njit(inline="always")
def pull(state, n, reward, cost, mean_reward, mean_cost, arm):
    """Play a Bernoulli arm and count it: the next state, its reward and its cost."""
    state, u = uniform(state)
    state, v = uniform(state)
    r, c = np.float32(u < mean_reward[arm]), np.float32(v < mean_cost[arm])
    n[arm] += np.float32(1)
    reward[arm] += r
    cost[arm] += c
    return state, r, c


def until_spent(choose):
    """The loop of a policy that pulls one Bernoulli arm a round until the budget is spent.

    ``choose(state, t, spent, budget, n, reward, cost, kept, p) -> (state, arm)`` decides after t
    rounds; ``kept`` is its own memory, ``[2, arm]``, zeros at first.
    """
    chosen = numba.njit(fastmath=FAST, error_model="numpy")(choose)

    @over_lanes
    def play(mean_reward, mean_cost, budget, p, q, state):
        n, reward, cost = counts(mean_reward.size)
        kept = zeros((2, mean_reward.size))
        spent, t, won = 0.0, 0, 0.0
        while spent < budget:
            state, arm = chosen(state, t, spent, budget, n, reward, cost, kept, p)
            state, r, c = pull(state, n, reward, cost, mean_reward, mean_cost, arm)
            spent, won, t = spent + c, won + r, t + 1
        return t, won

    return play


@numba.njit(inline="always")
def largest(values):
    """The first place of the largest value."""
    arm = 0
    for j in range(1, values.size):
        if values[j] > values[arm]:
            arm = j
    return arm


@numba.njit(inline="always")
def below(state, count):
    """The next state, and a whole number below ``count``."""
    state, u = uniform(state)
    return state, min(int(u * count), count - 1)
