"""``python -m benchmarks.worker ENGINE K SHARE RUNS``: one engine in a process of its own, see
`common.Worker`.

SHARE is the part of the paper's budget to play, RUNS the number of runs of each of 256 instances.
"""

import multiprocessing
import sys

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits as jb
from benchmarks.common import serve
from benchmarks.textbook import run_numpy, run_textbook

RHO, LANES, ROUNDS = 0.25, 256, 1.5e5


def instances(arms):
    """256 random Bernoulli instances, and the paper's budget 1.5·10⁵ · c_min of each."""
    world = jb.environments.random_bernoulli(jax.random.key(0), instances=LANES, arms=arms)
    reward, cost = world.values()
    return world, reward, cost, ROUNDS * np.min(cost, axis=1)


def ours(engine, arms, share, runs):
    """A function that plays everything once."""
    world, _, _, budget = instances(arms)

    def run(seed, part=share):
        limit = jb.TotalBudget(part * budget, last_pull="counts")
        policy = jb.policies.OmegaUCB(rho=RHO)
        result = jb.simulate(
            policy, world, limit, key=jax.random.key(seed), engine=engine, replicates=runs
        )
        return float(result.ledger["rounds"][..., -1].sum())

    return run


def native(arms, share, runs):
    """The Numba loop."""
    from benchmarks.loops import index

    _, reward, cost, budget = instances(arms)
    play = index.loop(index.omega_ucb)
    lane_numbers = np.zeros(runs * LANES, np.float32)
    budget = np.tile(budget, runs)
    tables = tuple(np.tile(x, (runs, 1)).astype(np.float32) for x in (reward, cost))

    def run(seed, part=share):
        return float(play(*tables, part * budget, np.float32(RHO), lane_numbers, seed)[0].sum())

    return run


def textbook(arms, share, runs):
    """vmap + scan, key splitting, float sums."""
    _, reward, cost, budget = instances(arms)
    rewards, costs, limits = (jnp.asarray(x, jnp.float32) for x in (reward, cost, budget))

    def run(seed, part=share):
        return run_textbook(
            rewards, costs, limits, RHO, seed, max_rounds=max(int(part * ROUNDS), 1)
        )

    return run


def per_round_numpy(arms, share, runs):
    """The class loop, one process per core."""
    _, reward, cost, _ = instances(arms)
    pool = multiprocessing.get_context("spawn").Pool(2)

    def run(seed, part=share):
        rounds = max(int(part * ROUNDS), 100)
        jobs = [(reward[i], cost[i], RHO, seed + i, rounds) for i in range(4)]
        return float(sum(pool.starmap(run_numpy, jobs)))

    return run


JOBS = {"native": native, "textbook": textbook, "numpy": per_round_numpy}

if __name__ == "__main__":
    engine, arms, share, runs = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    play = JOBS[engine](arms, share, runs) if engine in JOBS else ours(engine, arms, share, runs)
    serve(lambda: play(0, part=1e-4), play)
