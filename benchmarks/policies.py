"""``python -m benchmarks --only policies``: every policy beside a Numba loop (benchmarks/loops)."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits as jb
from benchmarks import policies_page
from benchmarks.common import write
from benchmarks.loops import index, own, thompson
from jaxbandits.apps.comparison.plan import POLICIES
from jaxbandits.policies.average_cost import alone

LANES, REPEATS = 256, 3
ZEROS, HALVES = (np.full(LANES, x, np.float32) for x in (0.0, 0.5))
# The budget pays so many pulls of the cheapest arm, times the share with which the slowest player
# takes SECONDS, and none less than LEAST.
ROUNDS, SECONDS, LEAST, LARGEST = 1.5e5, 2.0, 0.1, 128.0
HEADER = (
    "policy",
    "engine",
    "K",
    "rounds_per_lane",
    "rounds_per_s",
    "native_rounds_per_s",
    "ratio_to_native",
    "compile_s",
)


def names():
    """The jobs: (policy, K), K None where there is no fixed number of arms."""
    with_arms = [
        "bts",
        *(name for name in POLICIES if name != "bts"),
        "suak",
        "suak_without_program",
    ]
    with_arms += ["rcucb", "primal_dual_bwk_2", "primal_dual_bwk_5"]
    return [(name, arms) for name in with_arms for arms in (10, 100)] + [
        ("b_zoom", None),
        ("rcb_air", None),
    ]


def item(out, _):
    """All of them, each in a process of its own; a CSV file and a picture."""
    rows: list[Any] = []
    for name, arms in names():
        command = [sys.executable, "-m", "benchmarks.policies", name, str(arms or 0)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=600, check=True)
        for line in done.stdout.splitlines():
            cells = line.split(",")
            rows.append(dict(zip(HEADER, cells, strict=True)))
            print("  ".join(cell.ljust(16) for cell in cells), flush=True)
        # After each, so that a late failure loses nothing
        write(out / "policies.csv", [HEADER, *(row.values() for row in rows)])
    policies_page.picture(rows, out / "policies.png")


def compare_policy(name, arms):
    """A row for each engine that plays a policy, timed in turn with its loops."""
    for engine in ("leap", "scan"):
        play, loops = jobs(name, arms, engine)
        start = time.perf_counter()
        try:
            play(0, 1e-3)
        except jb.InputError as refused:
            assert "engine" in str(refused), refused
            continue
        compile_seconds = time.perf_counter() - start
        players = [play, *loops]
        share = long_enough(players)
        runs = [[timed(x, seed, share) for x in players] for seed in range(1, REPEATS + 1)]
        speeds = np.array([[rounds.sum() / seconds for seconds, rounds, _ in row] for row in runs])
        ours, *theirs = np.median(speeds, axis=0)
        fastest = 1 + int(np.argmax(theirs))
        if name != "suak_without_program":
            agree(name, engine, *runs[0][0][1:], *runs[0][fastest][1:])
        ratio = np.median(speeds[:, 0] / speeds[:, fastest])
        length = runs[0][0][1].mean()
        cells = f"{length:.0f}", f"{ours:.4g}", f"{max(theirs):.4g}", f"{ratio:.3g}"
        row = name, engine, str(arms or ""), *cells, f"{compile_seconds:.2f}"
        print(",".join(row), flush=True)


def long_enough(players):
    """The share of the budget with which a run takes SECONDS: in a shorter one its start would
    count.

    A power of two, for speeds depend on how long a run is: two days should mean the same run.
    """
    for play in players:
        play(0, 2.0**-7)  # which may compile
    share = 2.0**-7
    while share < LARGEST:
        seconds = [timed(play, 0, share)[0] for play in players]
        if max(seconds) > SECONDS and min(seconds) > LEAST:
            break
        share *= 2
    return share


def timed(play, seed, share):
    """Seconds of a run, and the rounds and the reward of each lane."""
    start = time.perf_counter()
    rounds, reward = play(seed, share)
    return time.perf_counter() - start, rounds, reward


def agree(name, engine, rounds, reward, loop_rounds, loop_reward):
    """Do both play the same policy? Rewards a round over the instances, at one budget."""
    difference = reward / rounds - loop_reward / loop_rounds
    z = difference.mean() / max(difference.std(ddof=1) / len(difference) ** 0.5, 1e-12)
    if abs(z) > 5:
        print(
            f"{name}, {engine}: {difference.mean():.5f} a round apart, z = {z:.1f}", file=sys.stderr
        )


def jobs(name, arms, engine):
    """``play(seed, share)`` of ours and of the loops: rounds and rewards of each lane."""
    setup = {
        "primal_dual_bwk_2": _several,
        "primal_dual_bwk_5": _several,
        "suak": _suak,
        "suak_without_program": _suak,
        "rcucb": _rcucb,
        "b_zoom": _b_zoom,
        "rcb_air": _rcb_air,
    }.get(name, _finite)
    policy, world, limit, *loops = setup(name, arms)

    def play(seed, share):
        result = jb.simulate(policy, world, limit(share), key=jax.random.key(seed), engine=engine)
        return (
            result.ledger[x][0, :, 0, -1].astype(float) / unit
            for x, unit in (("rounds", 1), ("reward", 2.0**24))
        )

    return play, loops


# Each of these gives the policy, its world, the limit of a share of the budget, and the native
# loops.


def _bernoulli(arms):
    world = jb.environments.random_bernoulli(jax.random.key(0), instances=LANES, arms=arms)
    return world, *(x.astype(np.float32) for x in world.values())


def _budget(budget):
    return lambda share: jb.TotalBudget(share * budget, last_pull="counts")


def _finite(name, arms):
    world, reward, cost = _bernoulli(arms)
    cheapest = cost.min(axis=1)
    budget = ROUNDS * cheapest
    cls: Any = POLICIES[name]
    of_lane, constant = np.zeros(LANES, np.float32), np.float32(0)
    if name in ("budget_ucb", "ucb_bv1"):
        policy, of_lane = cls(min_cost=cheapest[None, :]), cheapest
    elif name == "pd_bwk":
        policy = cls.for_budget(budget, arms)
        of_lane = np.broadcast_to(policy.c_rad, (1, LANES))[0].astype(np.float32)
    else:
        policy = cls()
    for parameter in ("rho", "alpha", "factor", "a", "epsilon"):
        constant = np.float32(getattr(policy, parameter, constant))
    if name == "bts":
        loops = [thompson.sampling_loop(beta) for beta in thompson.WAYS.values()]
    elif name in own.LOOPS:
        loops = [own.LOOPS[name]]
    else:
        score, kind = index.SCORES[name]
        loops = [index.loop(score, **kind)]

    def native(loop):
        return lambda seed, share: loop(reward, cost, share * budget, constant, of_lane, seed)

    return policy, world, _budget(budget), *map(native, loops)


def _rounds_of(share, arms):
    return max(int(share * ROUNDS), arms)


@jb.pytree
class WithoutProgram(jb.policies.SUAK):
    """SUAK with arm 0 instead of the mixture of its linear program: what that program costs."""

    def base(self, *_):
        return alone(jnp.int32(0))


def _suak(name, arms):
    c = np.float32(0.4)
    world, reward, cost = _bernoulli(arms)

    def native(seed, share):
        return own.suak(reward, cost, np.full(LANES, _rounds_of(share, arms)), c, ZEROS, seed)

    policy = (jb.policies.SUAK if name == "suak" else WithoutProgram)(c=float(c))
    with_null = jb.environments.WithNullArm(world)
    return (
        policy,
        with_null,
        lambda share: jb.AverageCost(float(c), _rounds_of(share, arms)),
        native,
    )


def _several(name, arms):
    """A policy for several resources; the last part of its name is their number."""
    d = int(name.rsplit("_", 1)[1])
    rng = np.random.default_rng(0)
    means = rng.uniform(0.1, 1, (LANES, arms)), rng.uniform(0.1, 1, (LANES, arms, d))
    world, policy = jb.environments.FiniteArms.bernoulli(*means), jb.policies.PrimalDualBwK()
    reward, cost = (x.astype(np.float32) for x in world.values())

    def limit(share):
        return jb.TotalBudget(
            np.full(d, _rounds_of(share, arms) / 2),
            last_pull="counts",
            rounds=_rounds_of(share, arms),
        )

    def native(seed, share):
        horizon = _rounds_of(share, arms)
        return own.primal_dual_bwk(
            reward, cost, np.full((LANES, d), horizon / 2), horizon, HALVES, seed
        )

    return policy, world, limit, native


def _rcucb(_, arms):
    rng = np.random.default_rng(0)
    rewards, seconds = rng.random((LANES, arms, 20)), rng.gamma(2.0, 0.25, (LANES, arms, 20))
    limits = np.arange(1, 11) / 10
    logs = [list(zip(r, s, strict=True)) for r, s in zip(rewards, seconds, strict=True)]
    linear = jb.environments.Linear
    world = jb.environments.row_arms(logs, limits=limits, cost=linear(0.1), penalty=linear(0.5))
    rows, times, caps, fines = (
        x.astype(np.float32) for x in (rewards, seconds, limits, 0.5 * limits)
    )

    def native(seed, share):
        rounds = np.full(LANES, _rounds_of(share, arms))
        return own.rcucb(rows, times, rounds, (caps, np.float32(0.1), fines), ZEROS, seed)

    return (
        jb.policies.RCUCB(survival="legal"),
        world,
        lambda share: jb.Horizon(_rounds_of(share, arms)),
        native,
    )


def _b_zoom(*_):
    world = jb.environments.Continuum.of(
        lambda x, p: 0.5 + 0.4 * x + p["none"],
        lambda x, p: 0.2 + 0.5 * x * x,
        lipschitz_reward=0.4,
        lipschitz_cost=1.0,
        parameters={"none": np.zeros(LANES)},
    )
    budget = np.full(LANES, ROUNDS * 0.3)

    def native(seed, share):
        constants = np.float32(0.2), np.float32(2.1), 64
        return own.b_zoom(ZEROS, ZEROS, share * budget, constants, ZEROS, seed)

    return jb.policies.BZoom(lam=0.2, lipschitz=2.1), world, _budget(budget), native


def _rcb_air(*_):
    room, key = 1024, jax.random.key(0)

    def means(key):
        reward, cost = jax.random.uniform(key, (2,))
        return reward, 0.1 + 0.9 * cost

    bounds: Any = {"best_ratio": 10.0, "least_cost": 0.1}
    world = jb.environments.Reservoir.sampled(means, key, instances=LANES, capacity=room, **bounds)
    budget = np.full(LANES, ROUNDS * 0.3)

    def native(seed, share):
        constants = np.float32(0.5), np.float32(0.1), room
        return own.rcb_air(ZEROS, ZEROS, share * budget, constants, ZEROS, seed)

    return jb.policies.rcb_air(1.0), world, _budget(budget), native


if __name__ == "__main__":
    compare_policy(sys.argv[1], int(sys.argv[2]) or None)
