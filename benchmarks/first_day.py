"""python -m benchmarks.first_day [--lanes N,…] [--captured] [--out DIR]: for the day when a device is there.

1. Same bits: the scan and the leap engine, three laws.
2. Resting scores: the most by which an ω-UCB score falls while its arm rests, against what the leap engine allows for.
3. Rounds per second of scan, leap and Thompson sampling over numbers of lanes; beside them a loop as it is usually
   written in JAX and, where it is installed, gymnax's BernoulliBandit with a random policy.
4. first_day.csv, first_day.png, and whether what docs/accelerators.md expects has come true.

It runs on CPU too, with fewer lanes. Exit status 1 if bits differ, or a score falls by more than is allowed for.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import statistics
import sys
import time
from pathlib import Path

ARMS, RHO, ROUNDS = 100, 0.25, 2000
LANES = {"cpu": (64, 256), "gpu": (10**3, 10**4, 10**5, 10**6), "tpu": (10**3, 10**4, 10**5)}
EXPECTED = {("scan", ARMS): 130e6, ("leap", ARMS): 550e6}
"""Rounds per second on an H100 by docs/accelerators.md, from bytes and launches alone."""
HEADER = ("device", "what", "K", "lanes", "rounds_per_s", "compile_s")


def main():
    """Read the options, run everything, write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanes", type=lambda text: tuple(int(float(x)) for x in text.split(",")), metavar="N,…")
    parser.add_argument("--captured", action="store_true", help="CUDA: whole loops in one graph")
    parser.add_argument("--out", type=Path, default=Path("jaxbandits-out"), metavar="DIR")
    given = parser.parse_args()
    import jax

    from benchmarks.ahead_of_time.targets import CAPTURED
    from jaxbandits._engine import drive

    device = jax.devices()[0]
    if given.captured:
        drive.OPTIONS[device.platform] = {"xla_gpu_enable_command_buffer": CAPTURED}
    print(f"{device.device_kind} ({device.platform}), jax {jax.__version__}, {time.strftime('%Y-%m-%d')}", flush=True)
    wrong = same_bits() + resting_scores()
    rows = speeds(device, given.lanes or LANES.get(device.platform, LANES["cpu"]))
    given.out.mkdir(parents=True, exist_ok=True)
    with open(given.out / "first_day.csv", "w", newline="") as file:
        csv.writer(file).writerows([HEADER, *rows])
    picture(rows, given.out / "first_day.png")
    print("\n".join([*verdict(device, rows), *wrong, f"written to {given.out}/"]))
    return int(bool(wrong))


def world(arms, instances=64):
    """Random Bernoulli arms, and a budget that pays ROUNDS pulls at the mean cost, and more cheap ones."""
    import jax
    import numpy as np

    import jaxbandits as jb

    made = jb.environments.random_bernoulli(jax.random.key(0), instances=instances, arms=arms)
    return made, jb.TotalBudget(ROUNDS * np.mean(made.values()[1], axis=1), last_pull="counts")


def same_bits():
    """Lines about laws where the engines differ."""
    import jax
    import numpy as np

    import jaxbandits as jb

    wrong, e = [], jb.environments
    for law in (e.random_bernoulli, e.random_generalised_bernoulli, e.random_beta):
        arms = law(jax.random.key(7), instances=32, arms=10)
        limit = jb.TotalBudget(200 * np.min(arms.values()[1], axis=1), last_pull="counts")
        policy = jb.policies.OmegaUCB(rho=np.array([1 / 64, 0.25, 2.0]))
        scan, leap = (
            jb.simulate(policy, arms, limit, key=jax.random.key(8), engine=engine, replicates=3)
            for engine in ("scan", "leap")
        )
        equal = all(np.array_equal(scan.ledger[name], leap.ledger[name]) for name in scan.ledger)
        print(f"{law.__name__}: {scan.ended.size} lanes, scan and leap {'equal' if equal else 'DIFFER'}", flush=True)
        wrong += [] if equal else [f"{law.__name__}: scan and leap differ"]
    return wrong


def resting_scores(many=1 << 18):
    """A line if a score falls by more of itself, from one round to the next, than half of what the leap allows for."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import jaxbandits as jb
    from jaxbandits.core import ticks
    from jaxbandits.core.arm_statistics import ArmStatistics
    from jaxbandits.policies.base.index import evaluate_state

    drawn = np.random.default_rng(0)
    pulls = np.rint(10 ** drawn.uniform(0, 6, many)).astype(np.int64)
    reward, cost = (ticks.split((drawn.random(many) * pulls * ticks.ONE).astype(np.int64)) for _ in range(2))
    known = ArmStatistics(pulls.astype(np.int32), reward, cost, None, None)
    policy, worst = jb.policies.OmegaUCB(rho=RHO), 0.0
    score = jax.jit(lambda t: evaluate_state(policy, jax.tree.map(jnp.asarray, known), t))
    for t in (10, 1000, 30_000, 1_000_000):
        now, later = (np.asarray(score(jnp.int32(round_)), np.float64) for round_ in (t, t + 1))
        falls = (now - later) / now
        worst = max(worst, float(falls[np.isfinite(falls)].max()))
    allowed = policy.rounding
    print(f"resting scores: the largest fall is {worst:.2e} of itself; {allowed:.2e} are allowed for", flush=True)
    return (
        []
        if worst < allowed / 2
        else [f"a resting score falls by {worst:.2e}; the leap engine needs below {allowed / 2:.2e}"]
    )


def speeds(device, lanes):
    """Rows of the table."""
    import jaxbandits as jb

    omega, thompson = jb.policies.OmegaUCB(rho=RHO), jb.policies.BudgetedThompson()
    kinds = [("scan", omega, "scan"), ("leap", omega, "leap"), ("bts", thompson, "scan")]
    rows = []
    for many in lanes:
        plays = {name: ours(policy, engine, many) for name, policy, engine in kinds}
        plays["textbook"] = textbook(many)
        if importlib.util.find_spec("gymnax"):
            plays["gymnax"] = gymnax_bandit(many)
        for name, play in plays.items():
            began = time.perf_counter()
            play(0)
            first = time.perf_counter() - began
            runs = [play(seed) for seed in (1, 2, 3)]
            speed = statistics.median(rounds / seconds for rounds, seconds in runs)
            compiling = max(first - statistics.median(seconds for _, seconds in runs), 0.0)
            rows.append((device.device_kind, name, ARMS, many, f"{speed:.4g}", f"{compiling:.1f}"))
            print(f"{many:>9,} lanes  {name:<9} {speed:>16,.0f} rounds/s", flush=True)
    return rows


def ours(policy, engine, lanes):
    """One run of all lanes: rounds and seconds."""
    import jax

    import jaxbandits as jb

    instances = min(lanes, 64)
    arms, limit = world(ARMS, instances)

    def play(seed):
        began = time.perf_counter()
        result = jb.simulate(
            policy, arms, limit, key=jax.random.key(seed), engine=engine, replicates=lanes // instances, marks=1
        )
        return float(result.ledger["rounds"][..., -1].sum()), time.perf_counter() - began

    return play


def textbook(lanes):
    """vmap and scan, keys split, floats summed."""
    import jax.numpy as jnp
    import numpy as np

    from benchmarks.textbook import run

    arms, limit = world(ARMS)
    reward, cost = (jnp.asarray(np.resize(x, (lanes, ARMS)), jnp.float32) for x in arms.values())
    budget = jnp.asarray(np.resize(np.asarray(limit.budget), lanes), jnp.float32)

    def play(seed):
        began = time.perf_counter()
        return float(run(reward, cost, budget, RHO, seed, most=5 * ROUNDS)), time.perf_counter() - began

    return play


def gymnax_bandit(lanes):
    """A random policy on gymnax's Bernoulli bandit: the least that a step costs there."""
    import gymnax
    import jax

    made, settings = gymnax.make("BernoulliBandit-bsuite")

    @jax.jit
    def steps(key):
        def one(carry, _):
            key, state = carry
            key, chosen, stepped = jax.random.split(key, 3)
            action = made.action_space(settings).sample(chosen)
            _, state, reward, _, _ = made.step(stepped, state, action, settings)
            return (key, state), reward

        def lane(key):
            _, state = made.reset(key, settings)
            return jax.lax.scan(one, (key, state), None, ROUNDS)[1].sum()

        return jax.vmap(lane)(jax.random.split(key, lanes)).sum()

    def play(seed):
        began = time.perf_counter()
        steps(jax.random.key(seed)).block_until_ready()
        return float(lanes * ROUNDS), time.perf_counter() - began

    return play


def verdict(device, rows):
    """Whether the paper estimate held, in words."""
    best = {name: max(float(row[4]) for row in rows if row[1] == name) for name in {row[1] for row in rows}}
    lines = [f"at most {best[name] / 1e6:,.1f} million rounds/s: {name}" for name in sorted(best)]
    if "H100" not in device.device_kind:
        return [*lines, f"docs/accelerators.md expects nothing of this device ({device.device_kind})"]
    for (name, _), expected in EXPECTED.items():
        share = best[name] / expected
        held = "held" if 0.5 <= share <= 2 else "did not hold"
        lines.append(f"{name}: {share:.2f} times what docs/accelerators.md expects: the estimate {held}")
    return lines


def picture(rows, path):
    """Rounds per second over lanes."""
    from matplotlib.figure import Figure

    looks = {
        "leap": ("#0072B2", "o"),
        "scan": ("#56B4E9", "s"),
        "bts": ("#009E73", "^"),
        "textbook": ("#E69F00", "D"),
        "gymnax": ("#CC79A7", "v"),
    }
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    for name in dict.fromkeys(row[1] for row in rows):
        colour, marker = looks[name]
        mine = [(row[3], float(row[4])) for row in rows if row[1] == name]
        axes.plot(*zip(*mine, strict=True), color=colour, marker=marker, label=name)
    axes.set(xscale="log", yscale="log", xlabel="lanes", ylabel="rounds per second", title=f"{rows[0][0]}, K = {ARMS}")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    sys.exit(main())
