"""``python -m benchmarks.first_answer [--repeats N] [--out DIR]``: seconds from the command to the
answer, by part.

``jaxbandits demo`` in a new process, from an empty cache folder (cold) and again (warm), medians;
beside it NumPy's loop over rounds that plays the same number of runs of the same arms, all runs
side by side.
"""

import argparse
import builtins
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import write
from benchmarks.textbook import scores

PARTS = ("first line", "whole", "import", "trace", "compile", "play", "draw")
# The engines' own; small helpers are compiled in milliseconds
_PROGRAMS = ("advance",)


def child(out):
    """One demo in this process; prints its seconds as JSON on stderr, last line."""
    spent: Any = defaultdict(float)
    depth, real_import = threading.local(), builtins.__import__

    def counted(*words, **options):
        level = getattr(depth, "now", 0)
        depth.now, start = level + 1, time.perf_counter()
        try:
            return real_import(*words, **options)
        finally:
            depth.now = level
            if level == 0:
                spent["import"] += time.perf_counter() - start

    builtins.__import__ = counted
    from jaxbandits.apps._cli import console

    _instrument(spent)
    code = console.main(["demo", "--out", out])
    print(json.dumps({"code": code, **spent}), file=sys.stderr)


def _instrument(spent):
    """Add up traces and compilations of the engines' programs, their calls, and pictures; threads
    add to one sum.
    """
    import jax.monitoring

    from jaxbandits import _plots
    from jaxbandits._engine import pool

    kinds = {
        "jaxpr_trace_duration": "trace",
        "jaxpr_to_mlir_module_duration": "trace",
        "backend_compile": "compile",
    }

    def event(name, seconds, **about):
        kind = next((kind for word, kind in kinds.items() if word in name), None)
        if kind and any(program in str(about.get("fun_name")) for program in _PROGRAMS):
            spent[kind] += seconds

    jax.monitoring.register_event_duration_secs_listener(event)  # type: ignore[arg-type]

    def timed(function, part):
        def call(*given, **options):
            start = time.perf_counter()
            try:
                return function(*given, **options)
            finally:
                spent[part] += time.perf_counter() - start

        return call

    real = pool.Queue._prepared

    def prepared(queue, *given):
        program, which = real(queue, *given)

        def play(*given):
            start = time.perf_counter()
            state, *rest = program(*given)
            int(rest[-1].chunks)  # until the device is done
            spent["play"] += time.perf_counter() - start
            return state, *rest

        return play, which

    pool.Queue._prepared = prepared  # type: ignore[method-assign]
    _plots.encoded = timed(_plots.encoded, "draw")


def demo(cache):
    """Two demos in new processes with this cache, or with new ones: seconds of one from outside,
    parts of the other.
    """
    with tempfile.TemporaryDirectory() as out, tempfile.TemporaryDirectory() as empty:
        environment = os.environ | {"JAXBANDITS_CACHE": cache or f"{empty}/a"}
        words = [sys.executable, "-m", "jaxbandits", "demo", "--out", f"{out}/demo"]
        found: dict[str, float] = {}
        began = time.perf_counter()
        with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as command:
            for text in command.stdout or ():
                if text.strip() and not text.startswith("$"):
                    found.setdefault("first line", time.perf_counter() - began)
        found["whole"] = time.perf_counter() - began
        assert command.returncode == 0
        environment["JAXBANDITS_CACHE"] = cache or f"{empty}/b"
        words = [sys.executable, "-m", "benchmarks.first_answer", "--child", f"{out}/parts"]
        parts = json.loads(
            subprocess.run(
                words, env=environment, capture_output=True, text=True
            ).stderr.splitlines()[-1]
        )
    assert parts["code"] == 0
    return parts | found


def numpy_loop(runs=200, budget=300.0, seed=0):
    """Seconds for ω-UCB (ρ = 1/16, 1/4, 1), m-UCB and BTS on the demo's arms, with NumPy's own
    draws.
    """
    from jaxbandits.apps.comparison import read_arms

    table = read_arms(Path(__file__).parents[1] / "jaxbandits/data/sample_ads.csv")
    began, draw = time.perf_counter(), np.random.default_rng(seed)
    for instance in table.instances:
        for rho in (1 / 16, 1 / 4, 1.0, None, "bts"):
            _loop(
                instance.mean_reward,
                instance.mean_cost,
                instance.cost_bound,
                budget,
                runs,
                rho,
                draw,
            )
    return time.perf_counter() - began


def _loop(mean_reward, mean_cost, bound, budget, runs, rho, draw):
    """All runs of one setting side by side, a round at a time, until every budget is spent."""
    arms, lane = mean_reward.size, np.arange(runs)
    n, reward, cost = np.zeros((3, runs, arms))
    spent, t = np.zeros(runs), 0
    while (on := spent < budget).any():
        t += 1
        if t <= arms:
            arm = np.full(runs, t - 1)
        elif rho == "bts":
            arm = np.argmax(
                draw.beta(reward + 1, n - reward + 1) / draw.beta(cost + 1, n - cost + 1), axis=1
            )
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                arm = np.argmax(scores(n, reward, cost, t, rho or 1 / 16, np), axis=1)
        brought = (draw.random(runs) < mean_reward[arm]) * on
        paid = np.minimum(mean_cost[arm] / bound * draw.uniform(0.13, 1.87, runs), 1) * on
        n[lane, arm] += on
        reward[lane, arm] += brought
        cost[lane, arm] += paid
        spent += paid * bound


def main():
    """Run it all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return child(given.child)
    found: dict[str, list[Any]] = {"cold": [], "warm": []}
    loops = []
    for _ in range(given.repeats):
        with tempfile.TemporaryDirectory() as cache:
            found["cold"].append(demo(None))
            demo(cache)
            found["warm"].append(demo(cache))
        loops.append(numpy_loop())
    rows: list[tuple[Any, ...]] = [("part", "cold_s", "warm_s")]
    for part in PARTS:
        rows.append(
            (
                part,
                *(
                    f"{statistics.median(run.get(part, 0.0) for run in found[kind]):.2f}"
                    for kind in found
                ),
            )
        )
    rows.append(("NumPy loop of the main job", *[f"{statistics.median(loops):.2f}"] * 2))
    print("(seconds, medians; trace, compile, play and draw add up what threads do side by side)")
    for row in rows:
        print(f"{row[0]:<28}{row[1]:>9}{row[2]:>9}")
    given.out.mkdir(parents=True, exist_ok=True)
    write(given.out / "first_answer.csv", rows)


if __name__ == "__main__":
    main()
