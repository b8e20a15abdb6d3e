"""``python -m benchmarks.sweeps ITEM [--out DIR]``: the speed and resumption of sweeps.

executors 10⁴ lanes: this process on one core, its threads, and engines of two workers, one after the other
figure4   28,800 runs, whole commands: this process, worker processes, Dask
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common import Worker, in_turn, serve

LANES, BLOCK = 10_000, 0.5  # seconds of a block
EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


def command(out, *options, file):
    words = ["sweep", str(EXAMPLES / file), "--out", str(out), "--no-progress"]
    return [sys.executable, "-m", "jaxbandits", *words, *options]


def contents(folder):
    """Every file outside the log, by name."""
    files = [
        path for path in Path(folder).rglob("*") if path.is_file() and path.parent.name != "log"
    ]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def spec(budget=20_000.0, engine="auto"):
    """ω-UCB on 100 random Bernoulli instances, K = 10, with a hundred values of ρ."""
    import jax
    import numpy as np

    import jaxbandits as jb

    arms = jb.environments.random_bernoulli(jax.random.key(0), instances=100, arms=10)
    return jb.Sweep(
        policies=jb.policies.OmegaUCB(rho=np.geomspace(1 / 64, 2.0, LANES // 100)),
        environments=arms,
        constraint=jb.TotalBudget(budget * arms.values()[1].min(axis=1), last_pull="counts"),
        over="instance",
        engine=engine,
    )


def swept(engine, budget, on="here"):
    """A worker: one sweep after another; CPU seconds of all its processes, and a digest."""
    from jaxbandits.sweeps import open_engine, sweep

    sweep_spec = spec(budget=float(budget), engine=engine)
    with open_engine(on) if on != "here" else contextlib.nullcontext() as executor:

        def run(_):
            before = cpu_seconds(os.getpid())
            result = sweep(dataclasses.replace(sweep_spec, block_seconds=BLOCK), executor=executor)
            used = cpu_seconds(os.getpid()) - before
            return f"{used} {hashlib.sha256(result.data['regret'].values.tobytes()).hexdigest()}"

        # The same number of blocks, so that each worker gets some and compiles.
        small = dataclasses.replace(
            spec(budget=float(budget) / 20, engine=engine), block_seconds=BLOCK / 20
        )
        serve(lambda: sweep(small, executor=executor), run)


def compared(title, ways, repeats):
    """Runs of each worker in turn: medians, and how many times as fast as the first one each is."""
    outcomes = {
        name: list(zip(*words, strict=True)) for name, (words, _) in in_turn(ways, repeats).items()
    }
    digests = {digest for *_, bits in outcomes.values() for digest in bits if digest != "-"}
    same = "the same bits" if len(digests) == 1 else "BITS DIFFER"
    print(f"{title}, 10⁴ lanes, load {os.getloadavg()[0]:.1f}; {same}")
    first: list[float] = []
    for name, (seconds, cores, _) in outcomes.items():
        walls, used = (list(map(float, x)) for x in (seconds, cores))
        first = first or walls
        ratios = [baseline / duration for baseline, duration in zip(first, walls, strict=True)]
        listing = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        median = f"median {statistics.median(walls):.2f} s, "
        median += f"{statistics.median(ratios):.2f} times as fast"
        print(
            f"  {name:13} {median} ({listing}); {statistics.median(used):.2f} s of CPU time",
            flush=True,
        )
    return 0 if len(digests) == 1 else 1


def executors(out):
    """10⁴ lanes: one core, threads, and an engine of two workers, in turn, five times."""
    wrong = 0
    for engine, budget in (("auto", 100_000.0), ("scan", 20_000.0)):
        job = ("benchmarks.sweeps", "swept", engine, budget)
        ways = {"one core": Worker(*job, cores={0}), "threads": Worker(*job)}
        ways |= {on: Worker(*job, on) for on in ("processes:2",)}
        wrong |= compared(engine, ways, 5)
    return wrong


def figure4(out):
    """28,800 runs at the full budget, whole commands: this process and engines, in turn."""
    files = {}
    for name in ("here", "processes:2"):
        folder = out / name.replace(":", "-")
        start, on = time.perf_counter(), ["--on", name] if name != "here" else []
        subprocess.run(
            command(folder, *on, file="sweep_figure4.py"), check=True, stdout=subprocess.DEVNULL
        )
        files[name] = contents(folder)
        same = "the same bytes" if files[name] == files["here"] else "THE BYTES DIFFER"
        print(f"figure 4, {name}: {time.perf_counter() - start:.0f} s, {same}", flush=True)
    return 0


def cpu_seconds(pid):
    """CPU seconds of a process and of its living descendants (on Linux)."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    seconds = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return seconds + sum(map(cpu_seconds, children(pid)))


def children(pid):
    """The processes that it started (on Linux)."""
    return [
        int(child)
        for path in Path(f"/proc/{pid}/task").glob("*/children")
        for child in path.read_text().split()
    ]


ITEMS = {item.__name__: item for item in (executors, figure4)}


def main():
    """The command line."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sweeps", description=__doc__, formatter_class=formatter
    )
    parser.add_argument("item", choices=ITEMS)
    parser.add_argument(
        "--out", type=Path, help="folder for the sweeps (default: a temporary folder)"
    )
    options = parser.parse_args()
    out = options.out or Path(tempfile.mkdtemp(prefix="sweeps-"))
    out.mkdir(parents=True, exist_ok=True)
    return ITEMS[options.item](out)


if __name__ == "__main__":
    if sys.argv[1:2] == ["swept"]:
        sys.exit(swept(*sys.argv[2:]))
    sys.exit(main())
