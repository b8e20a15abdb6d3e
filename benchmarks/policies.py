"""``python -m benchmarks --only policies``: every policy beside a Numba loop of its own (see benchmarks/loops)."""

from __future__ import annotations

import csv
import statistics
import subprocess
import sys
import time
from typing import Any

from benchmarks import policies_page

LANES, REPEATS = 256, 3
# The budget pays so many pulls of the cheapest arm, times the share that lets one run of ours take SECONDS.
ROUNDS, SECONDS, LARGEST = 1.5e5, 2.0, 200.0
HEADER = ("policy", "engine", "K", "rounds_per_s", "native_rounds_per_s", "ratio_to_native", "compile_s")


def names():
    """The jobs: (policy, K), K None where there is no fixed number of arms."""
    from jaxbandits.comparison.named_policies import POLICIES

    finite = ["bts", *(name for name in POLICIES if name != "bts"), "suak", "rcucb"]
    return [(name, arms) for name in finite for arms in (10, 100)] + [("b_zoom", None), ("rcb_air", None)]


def item(out, quick):
    """All of them, each in a process of its own; a CSV file and a picture."""
    rows = []
    for name, arms in names():
        if quick and (arms == 100 or name not in ("omega_ucb", "bts", "m_ucb")):
            continue
        command = [sys.executable, "-m", "benchmarks.policies", name, str(arms or 0)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=600)
        if done.returncode != 0:
            raise SystemExit(f"benchmarks: {name}, K = {arms} failed; its message is above")
        for line in done.stdout.splitlines():
            rows.append(line.split(","))
            print("  ".join(cell.ljust(16) for cell in rows[-1]), flush=True)
        with open(out / "policies.csv", "w", newline="") as file:  # after each, so that a late failure loses nothing
            csv.writer(file).writerows([HEADER, *rows])
    policies_page.picture(rows, out / "policies.png")


def one(name, arms):
    """Its rows: of each engine that can play it, in turn with each of the loops; the fastest loop counts."""
    from jaxbandits.core.errors import InputError

    for engine in ("leap", "scan"):
        play, loops = jobs(name, arms, engine)
        began = time.perf_counter()
        try:
            play(0, 1e-3)
        except InputError as refused:
            assert "engine" in str(refused), refused
            continue
        compile_seconds = time.perf_counter() - began
        for loop in loops:
            loop(0, 1e-3)
        share = long_enough(play)
        ours: list[Any] = []
        theirs: list[list[Any]] = [[] for _ in loops]
        for seed in range(1, REPEATS + 1):
            ours.append(timed(play, seed, share))
            for times, loop in zip(theirs, loops, strict=True):
                times.append(timed(loop, seed, share))
        native = max(theirs, key=lambda runs: statistics.median(speed for speed, _ in runs))
        agree(name, engine, ours, native)
        speed, other = (statistics.median(x for x, _ in runs) for runs in (ours, native))
        ratio = statistics.median(a / b for (a, _), (b, _) in zip(ours, native, strict=True))
        cells = f"{speed:.4g}", f"{other:.4g}", f"{ratio:.3g}", f"{compile_seconds:.2f}"
        print(",".join((name, engine, str(arms or ""), *cells)), flush=True)


def long_enough(play):
    """The share of the budget with which a run takes about SECONDS: the start of a shorter one would count."""
    share = 0.01
    while True:
        began = time.perf_counter()
        play(0, share)
        seconds = time.perf_counter() - began
        if seconds > SECONDS / 4 or share == LARGEST:
            return min(share * SECONDS / seconds, LARGEST)
        share = min(share * min(SECONDS / seconds, 10), LARGEST)


def timed(play, seed, share):
    """Rounds per second, and each lane's reward a round."""
    began = time.perf_counter()
    rounds, reward = play(seed, share)
    seconds = time.perf_counter() - began
    return float(rounds.sum()) / seconds, reward / rounds


def agree(name, engine, ours, native):
    """Do both play the same policy? Means over the instances, of which each repeat is one more run."""
    import numpy as np

    mine, other = (np.mean([rate for _, rate in runs], axis=0) for runs in (ours, native))
    difference = mine - other
    z = difference.mean() / max(difference.std(ddof=1) / len(difference) ** 0.5, 1e-12)
    if abs(z) > 5:
        print(f"{name}, {engine}: {mine.mean():.5f} and {other.mean():.5f} a round, z = {z:.1f}", file=sys.stderr)


def jobs(name, arms, engine):
    """``play(seed, share)`` of ours and of the loops: rounds and rewards of each lane."""
    made = {"suak": _suak, "rcucb": _rcucb, "b_zoom": _b_zoom, "rcb_air": _rcb_air}.get(name, _finite)
    return made(name, arms, engine)


def _ours(policy, world, limit, engine):
    import jax

    import jaxbandits as jb

    def play(seed, share):
        result = jb.simulate(policy, world, limit(share), key=jax.random.key(seed), engine=engine)
        return (result.ledger[x][0, :, 0, -1].astype(float) / unit for x, unit in (("rounds", 1), ("reward", 2.0**24)))

    return play


def _finite(name, arms, engine):
    import jax
    import numpy as np

    import jaxbandits as jb
    from benchmarks.loops import finite, index, thompson
    from jaxbandits.comparison.named_policies import POLICIES

    world = jb.environments.random_bernoulli(jax.random.key(0), instances=LANES, arms=arms)
    reward, cost = (x.astype(np.float32) for x in world.values())
    least = cost.min(axis=1)
    budget = ROUNDS * least
    cls: Any = POLICIES[name]
    own, constant = np.zeros(LANES, np.float32), np.float32(0)
    if name in ("budget_ucb", "ucb_bv1"):
        policy, own = cls(min_cost=least[None, :]), least
    elif name == "pd_bwk":
        policy = cls.for_budget(budget, arms)
        own = np.broadcast_to(policy.c_rad, (1, LANES))[0].astype(np.float32)
    else:
        policy = cls()
    for given in ("rho", "alpha", "factor", "a", "epsilon"):
        constant = np.float32(getattr(policy, given, constant))
    if name == "bts":
        loops = [thompson.loop(beta) for beta in thompson.WAYS.values()]
    elif name in finite.LOOPS:
        loops = [finite.LOOPS[name]]
    else:
        score, kind = index.SCORES[name]
        loops = [index.loop(score, **kind)]

    def native(loop):
        return lambda seed, share: loop(reward, cost, share * budget, constant, own, seed)

    def limit(share):
        return jb.TotalBudget(share * budget, last_pull="counts")

    return _ours(policy, world, limit, engine), [native(loop) for loop in loops]


def _suak(name, arms, engine):
    import jax
    import numpy as np

    import jaxbandits as jb
    from benchmarks.loops.finite import suak

    c = np.float32(0.4)
    world = jb.environments.random_bernoulli(jax.random.key(0), instances=LANES, arms=arms)
    reward, cost = (x.astype(np.float32) for x in world.values())
    with_null = jb.environments.WithNullArm(world)

    def many(share):
        return max(int(share * ROUNDS), arms)

    def native(seed, share):
        return suak(reward, cost, np.full(LANES, many(share)), c, np.zeros(LANES, np.float32), seed)

    policy = jb.policies.SUAK(c=float(c))
    return _ours(policy, with_null, lambda share: jb.AverageCost(float(c), many(share)), engine), [native]


def _rcucb(name, arms, engine):
    import numpy as np

    import jaxbandits as jb
    from benchmarks.loops.others import rcucb
    from jaxbandits.environments import Linear, row_arms

    drawn = np.random.default_rng(0)
    rewards, seconds = drawn.random((LANES, arms, 20)), drawn.gamma(2.0, 0.25, (LANES, arms, 20))
    limits = np.arange(1, 11) / 10
    logs = [list(zip(r, s, strict=True)) for r, s in zip(rewards, seconds, strict=True)]
    world = row_arms(logs, limits=limits, cost=Linear(0.1), penalty=Linear(0.5))
    tables: list[Any] = [x.astype(np.float32) for x in (rewards, seconds, limits, 0.5 * limits)]

    def many(share):
        return max(int(share * ROUNDS), arms)

    def native(seed, share):
        rows, times, most, fines = tables
        return rcucb(rows, times, most, np.float32(0.1), fines, many(share), seed)

    policy = jb.policies.RCUCB(survival="legal")
    return _ours(policy, world, lambda share: jb.Horizon(many(share)), engine), [native]


def _b_zoom(name, arms, engine):
    import numpy as np

    import jaxbandits as jb
    from benchmarks.loops.others import b_zoom

    world = jb.environments.Continuum.of(
        lambda x, p: 0.5 + 0.4 * x + p["none"],
        lambda x, p: 0.2 + 0.5 * x * x,
        lipschitz_reward=0.4,
        lipschitz_cost=1.0,
        parameters={"none": np.zeros(LANES)},
    )
    budget = np.full(LANES, ROUNDS * 0.3)
    policy = jb.policies.BZoom(lam=0.2, lipschitz=2.1)

    def native(seed, share):
        return b_zoom(share * budget, np.float32(0.2), np.float32(2.1), 64, seed)

    return _ours(policy, world, lambda share: jb.TotalBudget(share * budget, last_pull="counts"), engine), [native]


def _rcb_air(name, arms, engine):
    import jax
    import numpy as np

    import jaxbandits as jb
    from benchmarks.loops.others import rcb_air

    room = 1024

    def means(key):
        reward, cost = jax.random.uniform(key, (2,))
        return reward, 0.1 + 0.9 * cost

    key = jax.random.key(0)
    world = jb.environments.Reservoir.sampled(
        means, key, instances=LANES, capacity=room, best_ratio=10.0, least_cost=0.1
    )
    budget = np.full(LANES, ROUNDS * 0.3)

    def native(seed, share):
        return rcb_air(share * budget, np.float32(0.5), np.float32(0.1), room, seed)

    policy = jb.policies.rcb_air(1.0)
    return _ours(policy, world, lambda share: jb.TotalBudget(share * budget, last_pull="counts"), engine), [native]


if __name__ == "__main__":
    one(sys.argv[1], int(sys.argv[2]) or None)
