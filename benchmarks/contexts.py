"""``python -m benchmarks --only contexts``: LinUCB on linear coins, beside a NumPy class and a Numba
loop.

``python -m benchmarks.contexts ENGINE K D`` is one of them in a process of its own, see
`common.Worker`. NumPy and Numba learn rewards alone, as one would write it who needs no more; ours
learns costs, too, and books exact money.
"""

import multiprocessing
import statistics
import sys
from typing import Any

import jax
import numba
import numpy as np

import jaxbandits as jb
from benchmarks.common import Worker, in_turn, serve, write
from benchmarks.loops import FAST, INF, F, first_state, uniform, zeros

LANES, ALPHA, RIDGE, FREE = 256, 1.0, 4.0, 0.01
ROUNDS = {"scan": 2000, "native": 2000, "numpy": 5000}  # of a lane; NumPy plays four lanes


def means(arms, d):
    """Of each arm the constant and what the features change, ``[K, 1 + d]``."""
    theta = np.random.default_rng(arms * d).normal(size=(arms, 1 + d)) * 0.5 / d**0.5
    theta[:, 0] = 0.5
    return theta


def ours(arms, d):
    """A callable that plays everything once: the rounds."""
    world = jb.environments.ContextualArms.linear(
        means(arms, d), np.eye(1, 1 + d).repeat(arms, 0), jb.environments.UnitSphere(d)
    )
    policy = jb.policies.LinUCB(explore=jb.policies.Bonus(ALPHA), ridge=RIDGE, free=FREE)

    def run(seed, rounds=ROUNDS["scan"]):
        jb.simulate(
            policy, world, jb.Horizon(rounds), key=jax.random.key(seed), replicates=LANES, marks=1
        )
        return LANES * rounds

    return run


@numba.njit(parallel=True, fastmath=FAST)
def loop(theta, rounds, alpha, ridge, free, seed, lanes):
    """LinUCB on contexts of the unit sphere; the reward of each lane."""
    arms, width = theta.shape
    total = np.zeros(lanes)
    for lane in numba.prange(lanes):
        state = first_state(seed, lane)
        inverse, model = zeros((arms, width, width)), zeros((arms, width))
        applied, x, n = zeros((arms, width)), zeros(width), zeros(arms)
        for k in range(arms):
            for i in range(width):
                inverse[k, i, i] = F(1) / (ridge if i else free)
        for _ in range(rounds):
            square = F(0)
            for i in range(1, width):
                state, u = uniform(state)
                state, v = uniform(state)
                x[i] = np.sqrt(F(-2) * np.log(F(1) - u)) * np.cos(F(6.2831853) * v)
                square += x[i] * x[i]
            scale = F(1) / np.sqrt(square)
            x[0] = F(1) / scale
            best, arm, of_arm, width2 = -INF, 0, F(0), F(0)
            for i in range(width):
                x[i] *= scale
            for k in range(arms):
                rate, variance = F(0), F(0)
                for i in range(width):
                    dot = F(0)
                    for j in range(width):
                        dot += inverse[k, i, j] * x[j]
                    applied[k, i] = dot
                    variance += dot * x[i]
                    rate += model[k, i] * x[i]
                score = min(rate + alpha * np.sqrt(variance), F(1)) if n[k] >= 2 else INF
                if score > best:
                    best, arm, of_arm, width2 = score, k, rate, variance
            mean = F(0)
            for i in range(width):
                mean += theta[arm, i] * x[i]
            state, u = uniform(state)
            reward = F(u < mean)
            n[arm] += F(1)
            total[lane] += reward
            gain, shrink = (reward - of_arm) / (F(1) + width2), F(1) / (F(1) + width2)
            for i in range(width):
                model[arm, i] += gain * applied[arm, i]
                for j in range(width):
                    inverse[arm, i, j] -= shrink * applied[arm, i] * applied[arm, j]
    return total


def native(arms, d):
    """The Numba loop."""
    theta = means(arms, d).astype(np.float32)

    def run(seed, rounds=ROUNDS["native"]):
        loop(theta, rounds, F(ALPHA), F(RIDGE), F(FREE), seed, LANES)
        return LANES * rounds

    return run


def numpy_lane(theta, seed, rounds):
    """``rounds`` rounds of one lane, all arms at once; its reward."""
    rng, (arms, width) = np.random.default_rng(seed), theta.shape
    inverse = np.tile(np.diag([1 / FREE] + [1 / RIDGE] * (width - 1)), (arms, 1, 1))
    model, n, total = np.zeros((arms, width)), np.zeros(arms), 0.0
    for _ in range(rounds):
        x = rng.normal(size=width)
        x[0] = 0
        x /= np.sqrt(x @ x)
        x[0] = 1
        applied, rate = inverse @ x, model @ x
        variance = applied @ x
        score = np.where(n < 2, np.inf, np.minimum(rate + ALPHA * np.sqrt(variance), 1))
        arm = int(np.argmax(score))
        reward = float(rng.random() < theta[arm] @ x)
        n[arm] += 1
        total += reward
        model[arm] += applied[arm] * ((reward - rate[arm]) / (1 + variance[arm]))
        inverse[arm] -= np.outer(applied[arm], applied[arm] / (1 + variance[arm]))
    return total


def per_round_numpy(arms, d):
    """The NumPy loop, one process per core."""
    theta, pool = means(arms, d), multiprocessing.get_context("spawn").Pool(2)

    def run(seed, rounds=ROUNDS["numpy"]):
        pool.starmap(numpy_lane, [(theta, 4 * seed + i, rounds) for i in range(4)])
        return 4 * rounds

    return run


JOBS = {"scan": ours, "native": native, "numpy": per_round_numpy}


def item(out, quick):
    """The table."""
    rows: list[tuple[Any, ...]] = [
        ("K", "d", *(f"{name}_rounds_per_s" for name in JOBS), "ratio_numpy", "ratio_native")
    ]
    for arms in (3, 10):
        for d in (5, 26):
            workers = {name: Worker("benchmarks.contexts", name, arms, d) for name in JOBS}
            speeds = {
                name: statistics.median(float(rounds) / float(seconds) for seconds, rounds in words)
                for name, (words, _) in in_turn(workers, 3 if quick else 7).items()
            }
            ratios = speeds["scan"] / speeds["numpy"], speeds["scan"] / speeds["native"]
            numbers = *speeds.values(), *ratios
            rows.append((arms, d, *(f"{x:.4g}" for x in numbers)))
            print(*rows[-1], flush=True)
    write(out / "contexts.csv", rows)


if __name__ == "__main__":
    play = JOBS[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]))
    serve(lambda: play(0, rounds=10), play)
