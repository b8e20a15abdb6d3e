"""One engine in a process of its own: told ``run`` on stdin, it answers ``rounds seconds`` on stdout.

Usage: python -m benchmarks.worker ENGINE K SHARE [RUNS]: SHARE the part of the paper's budget to play,
RUNS of each of 256 instances.
"""

import multiprocessing
import resource
import sys
import time

RHO, LANES, ROUNDS = 0.25, 256, 1.5e5


def instances(arms):
    """256 random Bernoulli instances, and the paper's budget 1.5·10⁵ · c_min of each."""
    import jax
    import numpy as np

    import jaxbandits as jb

    world = jb.environments.random_bernoulli(jax.random.key(0), instances=LANES, arms=arms)
    reward, cost = world.values()
    return world, reward, cost, ROUNDS * np.min(cost, axis=1)


def ours(engine, arms, share, runs=1):
    """A callable that plays everything once."""
    import jax

    import jaxbandits as jb

    world, _, _, budget = instances(arms)

    def run(seed, part=share):
        limit = jb.TotalBudget(part * budget, last_pull="counts")
        policy = jb.policies.OmegaUCB(rho=RHO)
        result = jb.simulate(policy, world, limit, key=jax.random.key(seed), engine=engine, replicates=runs)
        return float(result.ledger["rounds"][..., -1].sum())

    return run


def native(arms, share, runs=1):
    """The Numba loop."""
    import numpy as np

    from benchmarks.loops import index

    _, reward, cost, budget = instances(arms)
    play, none, budget = index.loop(index.omega), np.zeros(runs * LANES, np.float32), np.tile(budget, runs)
    tables = tuple(np.tile(x, (runs, 1)).astype(np.float32) for x in (reward, cost))

    def run(seed, part=share):
        return float(play(*tables, part * budget, np.float32(RHO), none, seed)[0].sum())

    return run


def textbook(arms, share):
    """vmap + scan, key splitting, float sums."""
    import jax.numpy as jnp

    from benchmarks.textbook import run as play

    _, reward, cost, budget = instances(arms)
    rewards, costs, limits = (jnp.asarray(x, jnp.float32) for x in (reward, cost, budget))

    def run(seed, part=share):
        return play(rewards, costs, limits, RHO, seed, most=max(int(part * ROUNDS), 1))

    return run


def _numpy_lane(job):
    from benchmarks.textbook import run_numpy

    return run_numpy(*job)


def per_round_numpy(arms, share):
    """The class loop, one process per core."""
    _, reward, cost, _ = instances(arms)
    pool = multiprocessing.get_context("spawn").Pool(2)

    def run(seed, part=share):
        rounds = max(int(part * ROUNDS), 100)
        jobs = [(reward[i], cost[i], RHO, seed + i, rounds) for i in range(4)]
        return float(sum(pool.map(_numpy_lane, jobs)))

    return run


def main():
    """Serve ``run`` until stdin closes, then tell the peak memory."""
    engine, arms, share = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    made = {"native": native, "textbook": textbook, "numpy": per_round_numpy}.get(engine)
    runs = (int(sys.argv[4]),) if len(sys.argv) > 4 else ()
    run = made(arms, share, *runs) if made else ours(engine, arms, share, *runs)
    began = time.perf_counter()
    run(0, part=1e-4)  # compiles
    print(f"ready {time.perf_counter() - began:.3f}", flush=True)
    for seed, line in enumerate(sys.stdin, start=1):
        if line.strip() != "run":
            break
        began = time.perf_counter()
        rounds = run(seed)
        print(f"{rounds:.0f} {time.perf_counter() - began:.6f}", flush=True)
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"peak {max(usage, children) / 1024:.0f}", flush=True)


if __name__ == "__main__":
    main()
