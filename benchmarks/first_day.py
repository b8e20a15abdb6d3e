"""python -m benchmarks.first_day [--lanes N,…] [--out DIR]: for the day when a device is there.

1. Same bits: the scan and the leap engine, three laws.
2. Resting scores: the most by which an index falls while its arm rests, against what the leap engine allows for.
3. Rounds per second of scan, leap and Thompson sampling over numbers of lanes, on a GPU also with whole loops in one
   CUDA graph; beside them a loop as it is usually written in JAX. Off CPU also the share of the time in which the
   device did nothing, from jax's profiler: it waited for a launch, or for the host.
4. first_day.csv, and whether what docs/accelerators.md expects has come true.

It runs on CPU too, with fewer lanes. Exit status 1 if bits differ, or a score falls by more than is allowed for.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits as jb
from benchmarks.common import both_engines, laws, write
from benchmarks.textbook import run_textbook
from jaxbandits.core import ticks
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.policies.base import evaluate_state, margin, safe_round

ARMS, RHO, ROUNDS = 100, 0.25, 2000
LANES = {"cpu": (64, 256), "gpu": (10**3, 10**4, 10**5, 10**6), "tpu": (10**3, 10**4, 10**5)}
EXPECTED = {("scan", ARMS): 300e6, ("leap", ARMS): 1.4e9}
"""Rounds per second on an H100 by docs/accelerators.md, from bytes and launches alone."""
HEADER = ("device", "what", "K", "lanes", "rounds_per_s", "compile_s", "idle_share")
GRAPHS = "JAXBANDITS_CUDA_GRAPHS"


def main():
    """Read the options, run everything, write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanes", type=lambda text: tuple(int(float(x)) for x in text.split(",")), metavar="N,…")
    parser.add_argument("--out", type=Path, default=Path("jaxbandits-out"), metavar="DIR")
    given = parser.parse_args()

    device = jax.devices()[0]
    print(f"{device.device_kind} ({device.platform}), jax {jax.__version__}, {time.strftime('%Y-%m-%d')}", flush=True)
    wrong = same_bits() + resting_scores()
    rows = speeds(device, given.lanes or LANES.get(device.platform, LANES["cpu"]))
    given.out.mkdir(parents=True, exist_ok=True)
    write(given.out / "first_day.csv", [HEADER, *rows])
    print("\n".join([*verdict(device, rows), *wrong, f"written to {given.out}/"]))
    return int(bool(wrong))


def world(instances):
    """Random Bernoulli arms, and a budget that pays ROUNDS pulls at the mean cost, and more cheap ones."""
    made = jb.environments.random_bernoulli(jax.random.key(0), instances=instances, arms=ARMS)
    return made, jb.TotalBudget(ROUNDS * np.mean(made.values()[1], axis=1), last_pull="counts")


def same_bits():
    """Lines about laws where the engines differ."""
    wrong = []
    for law in laws():
        lanes, _, equal = both_engines(law, arms=10, budget=200, replicates=3, instances=32)
        print(f"{law}: {lanes} lanes, scan and leap {'equal' if equal else 'DIFFER'}", flush=True)
        wrong += [] if equal else [f"{law}: scan and leap differ"]
    return wrong


def resting_scores(many=1 << 18):
    """A line for each index that falls, from a round to the one that the leap engine aims at for the next, by too much.

    Too much is half of the engine's margin. M-UCB and UCB-SC+ take differences of nearly equal numbers.
    """
    drawn, wrong = np.random.default_rng(0), []
    pulls = np.rint(10 ** drawn.uniform(0, 6, many)).astype(np.int64)
    reward, cost = (ticks.split((drawn.random(many) * pulls * ticks.ONE).astype(np.int64)) for _ in range(2))
    known = ArmStatistics(pulls.astype(np.int32), reward, cost, None, None)
    for policy in (jb.policies.OmegaUCB(rho=RHO), jb.policies.MUCB(), jb.policies.UCBSCPlus()):
        name, worst = type(policy).__name__, 0.0
        score = jax.jit(lambda t, policy=policy: evaluate_state(policy, jax.tree.map(jnp.asarray, known), t))
        for t in (10, 1000, 30_000, 1_000_000):
            rounds = jnp.int32(t), safe_round(jnp.int32(t + 1))
            now, later = (np.asarray(score(round_), np.float64) for round_ in rounds)
            falls = (now - later) / np.abs(now)
            worst = max(worst, float(falls[np.isfinite(falls)].max()))
        allowed = float(margin(policy))
        print(f"{name}: at rest it falls by {worst:.2e} of itself at most; the margin is {allowed:.2e}", flush=True)
        if worst >= allowed / 2:
            wrong.append(f"{name}: at rest it falls by {worst:.2e}; the leap engine needs below {allowed / 2:.2e}")
    return wrong


def speeds(device, lanes):
    """Rows of the table."""
    omega, thompson = jb.policies.OmegaUCB(rho=RHO), jb.policies.BudgetedThompson()
    kinds = [("scan", omega, "scan", ""), ("leap", omega, "leap", ""), ("bts", thompson, "scan", "")]
    if device.platform == "gpu":
        kinds += [("scan, one graph", omega, "scan", "1"), ("leap, one graph", omega, "leap", "1")]
    rows = []
    for many in lanes:
        plays = {name: (ours(policy, engine, many), graphs) for name, policy, engine, graphs in kinds}
        plays["textbook"] = plain(many), ""
        for name, (play, graphs) in plays.items():
            os.environ[GRAPHS] = graphs
            speed, compiling = timed(play)
            idle = "" if device.platform == "cpu" else f"{idle_share(lambda play=play: play(4)):.2f}"
            rows.append((device.device_kind, name, ARMS, many, f"{speed:.4g}", f"{compiling:.1f}", idle))
            print(f"{many:>9,} lanes  {name:<15} {speed:>16,.0f} rounds/s  idle {idle or 'unknown'}", flush=True)
    os.environ[GRAPHS] = ""
    return rows


def timed(play):
    """Rounds a second, the median of three, and the seconds that the first run took beyond that."""
    seconds, rates = [], []
    for seed in range(4):
        began = time.perf_counter()
        rounds = play(seed)
        seconds.append(time.perf_counter() - began)
        rates.append(rounds / seconds[-1])
    return statistics.median(rates[1:]), max(seconds[0] - statistics.median(seconds[1:]), 0.0)


def idle_share(play):
    """The share of the time of a run in which the device did nothing."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            play()
        (written,) = Path(folder).rglob("*.trace.json.gz")
        return idle(json.loads(gzip.decompress(written.read_bytes()))["traceEvents"])


def idle(events):
    """Of the profiler's events: 1 − the time that any of the device's covers / from its first to its last; else NaN."""
    named = (e for e in events if e.get("name") == "process_name")
    devices = {e["pid"] for e in named if "/device:" in e["args"]["name"]}
    spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e.get("ph") == "X" and e["pid"] in devices)
    if not spans:
        return float("nan")
    busy, until = 0.0, spans[0][0]
    for begin, end in spans:
        busy += max(end - max(begin, until), 0.0)
        until = max(until, end)
    return 1 - busy / (until - spans[0][0])


def ours(policy, engine, lanes):
    """One run of all lanes: its rounds."""
    arms, limit = world(min(lanes, 64))
    more = {"engine": engine, "replicates": max(lanes // 64, 1), "marks": 1}

    def play(seed):
        result = jb.simulate(policy, arms, limit, key=jax.random.key(seed), **more)
        return float(result.ledger["rounds"][..., -1].sum())

    return play


def plain(lanes):
    """vmap and scan, keys split, floats summed."""
    arms, limit = world(64)
    reward, cost = (jnp.asarray(np.resize(x, (lanes, ARMS)), jnp.float32) for x in arms.values())
    budget = jnp.asarray(np.resize(np.asarray(limit.budget), lanes), jnp.float32)
    return lambda seed: run_textbook(reward, cost, budget, RHO, seed, most=5 * ROUNDS)


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


if __name__ == "__main__":
    sys.exit(main())
