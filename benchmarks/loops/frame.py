"""What the loops share: fast math that keeps infinities, and random numbers."""

import numba
import numpy as np

# Without ``nnan`` and ``ninf``: scores are infinite at zero cost.
FAST = {"nsz", "arcp", "contract", "afn", "reassoc"}


@numba.njit(inline="always")
def first_state(seed, lane):
    """Of a lane's generator."""
    return np.uint64(seed * 1000003 + lane * 7919 + 88172645463325252)


@numba.njit(inline="always")
def uniform(state):
    """The next state, and a float32 in [0, 1)."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state, np.float32(state >> np.uint64(40)) * np.float32(2.0**-24)


@numba.njit(inline="always")
def below(state, many):
    """The next state, and a whole number below ``many``."""
    state, u = uniform(state)
    return state, min(int(u * many), many - 1)
