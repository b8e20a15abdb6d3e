"""Items of ``python -m benchmarks.sweeps`` that compare engines: kills, executors, figure4."""

from __future__ import annotations

import dataclasses
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.sweeps import command, contents, spec

KILLS = 20
BLOCK = 0.5  # seconds of a block


def ready(arguments):
    """In a process of its own: after a first sweep, which compiles, one for each line of input; seconds and digest."""
    import contextlib
    import hashlib

    from jaxbandits.sweeps import open_engine, sweep

    engine, budget, on = arguments[0], float(arguments[1]), arguments[2]
    made = dataclasses.replace(spec(budget=budget, engine=engine), block_seconds=BLOCK)
    with open_engine(on) if on != "here" else contextlib.nullcontext() as executor:
        # The same number of blocks, so that each worker gets some and compiles.
        sweep(dataclasses.replace(spec(budget=budget / 20, engine=engine), block_seconds=BLOCK / 20), executor=executor)
        print("ready", flush=True)
        for _ in sys.stdin:
            began, used = time.perf_counter(), cpu_seconds(os.getpid())
            found = sweep(made, executor=executor)
            seconds = time.perf_counter() - began
            used = cpu_seconds(os.getpid()) - used
            print(seconds, used, hashlib.sha256(found.data["regret"].values.tobytes()).hexdigest(), flush=True)


class Ready:
    """A process that has compiled, and waits."""

    def __init__(self, *arguments, cores=None):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.engines", *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None,
        )
        assert self._answer() == "ready\n"

    def time(self):
        """Of one sweep: seconds, those of all cores, and what came out."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        seconds, used, digest = self._answer().split()
        return float(seconds), float(used), digest

    def _answer(self):
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def end(self):
        self._process.communicate()


def executors(out):
    """10⁴ lanes: one core, this process's threads, and engines of two workers; one after the other, five times."""
    for engine, budget in (("auto", 100_000.0), ("scan", 20_000.0)):
        ways = {"one core": Ready(engine, budget, "here", cores={0}), "threads": Ready(engine, budget, "here")}
        ways |= {on: Ready(engine, budget, on) for on in ("processes:2", "dask:local:2")}
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        cores: dict[str, list[float]] = {name: [] for name in ways}
        digests = set()
        for _ in range(5):
            for name, way in ways.items():
                took, used, digest = way.time()
                seconds[name].append(took)
                cores[name].append(used)
                digests.add(digest)
        for way in ways.values():
            way.end()
        same = "the same bits" if len(digests) == 1 else "BITS DIFFER"
        print(f"{engine}, 10⁴ lanes, load {os.getloadavg()[0]:.1f}; {same}")
        for name, took in seconds.items():
            ratios = [one / mine for one, mine in zip(seconds["one core"], took, strict=True)]
            shown = ", ".join(f"{ratio:.2f}" for ratio in ratios)
            median = f"median {statistics.median(took):.2f} s, {statistics.median(ratios):.2f} times as fast"
            print(f"  {name:13} {median} ({shown}); {statistics.median(cores[name]):.2f} s of CPU time", flush=True)
    return 0


FIGURE_4 = """
import jax, numpy as np, jaxbandits as jb

RHO, KEY = np.geomspace(2.0**-6, 2.0, 16), jax.random.key(4)
WORLDS = {"S-Br": jb.environments.random_bernoulli, "S-GBr": jb.environments.random_generalised_bernoulli,
          "S-Bt": jb.environments.random_beta}
sweep = jb.Sweep(
    title="Figure 4 of the ω-UCB paper",
    policies=[jb.policies.OmegaUCB(rho=RHO), jb.policies.OmegaStarUCB(rho=RHO)],
    environments={f"{name}-{arms}": make(KEY, instances=100, arms=arms)
                  for name, make in WORLDS.items() for arms in (10, 50, 100)},
    budgets=[150_000],
    constraint=lambda arms, multiple: jb.TotalBudget(multiple * arms.values()[1].min(axis=1), last_pull="counts"),
    over="instance")
"""


def figure4(out):
    """28,800 runs at the full budget, whole commands, compilation included: this process and engines, in turn."""
    (out / "figure4.py").write_text(FIGURE_4)
    found = {}
    for name in ("here", "processes:2", "dask:local:2"):
        folder = out / name.replace(":", "-")
        words = [*command(folder)[:4], str(out / "figure4.py"), *command(folder)[5:]]
        began = time.perf_counter()
        subprocess.run([*words, *(["--on", name] if name != "here" else [])], check=True, stdout=subprocess.DEVNULL)
        found[name] = contents(folder)
        same = "the same bytes" if found[name] == found["here"] else "THE BYTES DIFFER"
        load = os.getloadavg()[0]
        print(f"figure 4, {name}: {time.perf_counter() - began:.0f} s, {same}, load {load:.1f}", flush=True)
    return 0


def kills(out):
    """The caller and its workers are killed in turn, each some time after a new block."""
    from jaxbandits.sweeps.store import Folder

    on = ("--on", "processes:2")
    began = time.time()
    subprocess.run(command(out / "whole"), check=True, stdout=subprocess.DEVNULL)
    print(f"uninterrupted, in one process: {time.time() - began:.0f} s", flush=True)
    whole, total = contents(out / "whole"), len(Folder(out / "whole").listed())
    done: list[int] = []
    moments, process, hit = random.Random(0), None, {"caller": 0, "worker": 0}
    while sum(hit.values()) < KILLS:
        if process is None:
            process = subprocess.Popen([*command(out / "killed"), *on], stdout=subprocess.DEVNULL)
        before = done[-1] if done else 0
        while process.poll() is None and len(Folder(out / "killed").listed()) == before:
            time.sleep(0.005)
        time.sleep(moments.uniform(0.0, 0.5))
        assert process.poll() is None, f"the sweep ended before kill {sum(hit.values()) + 1}"
        whom = moments.choice(list(hit))
        hit[whom] += 1
        if whom == "worker":
            os.kill(moments.choice(children(process.pid)), signal.SIGKILL)
        else:
            process.kill()
            process.wait()
            process = None
        done.append(len(Folder(out / "killed").listed()))
    if process is not None:
        process.wait()
    subprocess.run([*command(out / "killed"), *on], check=True, stdout=subprocess.DEVNULL)
    same = contents(out / "killed") == whole
    print(f"{total} blocks; there after each of the kills: {done}")
    print(f"killed: {hit['caller']} callers, {hit['worker']} workers")
    print(f"{len(whole)} files: {'the same bytes' if same else 'THE BYTES DIFFER'}")
    return 0 if same else 1


def cpu_seconds(pid):
    """Of a process and all below it that live (on Linux)."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    mine = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return mine + sum(map(cpu_seconds, children(pid)))


def children(pid):
    """The processes that it started (on Linux)."""
    return [int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()]


if __name__ == "__main__":
    ready(sys.argv[1:])
