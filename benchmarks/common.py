"""What the benchmarks share: workers that have compiled and wait, CSV."""

from __future__ import annotations

import argparse
import csv
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


class Worker:
    """A process that has compiled its job and waits, to be timed in turn; see `serve`."""

    def __init__(self, *words: object, cores: set[int] | None = None) -> None:
        self.process: Any = subprocess.Popen(
            [sys.executable, "-m", *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None,
        )
        self.compile = float(self._answer()[0])

    def run(self) -> list[str]:
        """Seconds of one run, and the words that it printed."""
        print("run", file=self.process.stdin, flush=True)
        return self._answer()

    def close(self) -> float:
        """Peak memory in MiB."""
        self.process.stdin.close()
        (peak,) = self._answer()
        self.process.wait()
        return float(peak)

    def _answer(self) -> list[str]:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("benchmarks: a worker died; its message is above")
        return line.split()


def in_turn(workers, repeats):
    """By worker: the words of its runs, taken in turn, and its peak memory. Closes the workers."""
    outcomes: dict[str, list[list[str]]] = {name: [] for name in workers}
    for _ in range(repeats):
        for name, worker in workers.items():
            outcomes[name].append(worker.run())
    return {name: (outcomes[name], worker.close()) for name, worker in workers.items()}


def serve(warm, run):
    """A worker's side: ``warm()`` compiles, then ``run(number)`` for each line of input."""
    start = time.perf_counter()
    warm()
    print(f"{time.perf_counter() - start:.3f}", flush=True)
    for number, _ in enumerate(sys.stdin, start=1):
        start = time.perf_counter()
        output = run(number)
        print(f"{time.perf_counter() - start:.6f} {output}", flush=True)
    peak = max(
        resource.getrusage(process).ru_maxrss
        for process in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    print(f"{peak / 1024:.0f}", flush=True)


def write(path: Path, rows: list[tuple[Any, ...]]) -> None:
    """A CSV file; the first row is its header."""
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(rows)


def run_parts(prog, about, play, **options):
    """A program of several parts: ``--only PART``, ``--quick``, and those of ``options``."""
    parser = argparse.ArgumentParser(prog=f"python -m {prog}", description=about)
    parser.add_argument("--only", choices=play, help="run one part")
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples")
    for name, option in options.items():
        parser.add_argument(f"--{name}", **option)
    arguments = parser.parse_args()
    for name in [arguments.only] if arguments.only else play:
        start = time.perf_counter()
        play[name](arguments)
        print(f"({name}: {time.perf_counter() - start:.0f} s)", file=sys.stderr)
