"""``python -m benchmarks [--quick] [--only ITEM] [--out DIR]``: side-by-side timings, interleaved, medians, ratios.

Items: engines (the table), lanes (256 and 2,048 of them), equality (leap against scan, bit for bit), growth (time
against budget), evaluation (the ω-UCB paper's synthetic evaluation), policies (every policy beside a native loop).
``--quick`` runs the first one only, in at most ten minutes.
"""

import csv
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import policies
from jaxbandits._cli.command_line import Parser, folder, one_of, parse_or_leave
from jaxbandits._cli.programs import keep_programs

ENGINES = ("leap", "scan", "textbook", "numpy", "native")
# Share of the paper's budget that one timed run plays: slow engines play less, their speed does not depend on it.
# The leap's does, so it always plays everything, as native does.
SHARES = {"leap": 1.0, "native": 1.0, "scan": 0.1, "textbook": 0.03, "numpy": 0.02}


class Worker:
    """A process with one engine; idle unless asked."""

    def __init__(self, engine, arms, share, runs=1):
        command = [sys.executable, "-m", "benchmarks.worker", engine, str(arms), str(share)]
        command += [str(runs)] if runs > 1 else []
        self.process: Any = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.compile = float(self._answer().split()[1])

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("benchmarks: a worker died; its message is above")
        return line

    def run(self):
        """Rounds per second of one run."""
        print("run", file=self.process.stdin, flush=True)
        rounds, seconds = self._answer().split()
        return float(rounds) / float(seconds)

    def close(self):
        """Peak memory in MB."""
        print("stop", file=self.process.stdin, flush=True)
        peak = float(self._answer().split()[1])
        self.process.wait()
        return peak


def interleaved(workers, repeats):
    """Rounds per second of each worker, one run after the other's."""
    speeds: dict[str, list[float]] = {name: [] for name in workers}
    for _ in range(repeats):
        for name, worker in workers.items():
            speeds[name].append(worker.run())
    return speeds


def engines(out, quick):
    """The table and its picture."""
    repeats, rows = (3 if quick else 7), []
    for arms in (10, 50, 100):
        workers = {}
        for name in ENGINES:
            workers[name] = Worker(name, arms, SHARES[name])
        speeds = interleaved(workers, repeats)
        peaks = {name: worker.close() for name, worker in workers.items()}
        for name in ENGINES:
            ratio = statistics.median(a / b for a, b in zip(speeds[name], speeds["native"], strict=True))
            speed = statistics.median(speeds[name])
            rows.append(
                (name, arms, f"{speed:.4g}", f"{ratio:.3g}", f"{workers[name].compile:.2f}", f"{peaks[name]:.0f}")
            )
            low, high = min(speeds[name]), max(speeds[name])
            print(
                f"K={arms:<4}{name:<9} {speed:>12,.0f} rounds/s ({low:,.0f} … {high:,.0f})  {ratio:6.2f} × native",
                flush=True,
            )
    header = ("engine", "K", "rounds_per_s", "ratio_to_native", "compile_s", "peak_mb")
    with open(out / "benchmark.csv", "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    _bars(rows, out / "benchmark.png")
    print()
    for row in (header, *rows):
        print("".join(str(cell).ljust(17) for cell in row))


def lanes(out, quick):
    """Leap, scan and the native loop at 256 lanes and at 2,048, interleaved."""
    rows: list[tuple[Any, ...]] = [("lanes", "K", "engine", "rounds_per_s", "least", "most", "ratio_to_native")]
    for runs in (1, 8):
        for arms in (10, 50, 100):
            workers = {name: Worker(name, arms, SHARES[name], runs) for name in ("leap", "scan", "native")}
            speeds = interleaved(workers, 3)
            for name, worker in workers.items():
                worker.close()
                ratio = statistics.median(a / b for a, b in zip(speeds[name], speeds["native"], strict=True))
                found = sorted(speeds[name])
                rows.append((256 * runs, arms, name, *(f"{found[i]:.4g}" for i in (1, 0, 2)), f"{ratio:.3g}"))
                print(*rows[-1], flush=True)
    with open(out / "lanes.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)


def _bars(rows, path):
    from matplotlib.figure import Figure

    colours = {"leap": "#0072B2", "scan": "#56B4E9", "textbook": "#E69F00", "numpy": "#999999", "native": "#D55E00"}
    figure = Figure(figsize=(7.2, 4.0), layout="constrained")
    axes = figure.subplots()
    counts = sorted({row[1] for row in rows})
    for place, name in enumerate(ENGINES):
        heights = [float(row[2]) for row in rows if row[0] == name]
        at = [i + (place - 2) * 0.16 for i in range(len(counts))]
        bars = axes.bar(at, heights, 0.15, label=name, color=colours[name])
        axes.bar_label(bars, [f"{h / 1e6:.3g}" for h in heights], fontsize=7)
    axes.set_yscale("log")
    axes.set_xticks(range(len(counts)), [f"K = {k}" for k in counts])
    axes.set_ylabel("rounds per second (bar labels: millions)")
    axes.set_title("ω-UCB, ρ = ¼, Bernoulli arms, 256 runs, two CPU cores", fontsize=10)
    axes.legend(ncols=5, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.08), frameon=False)
    figure.savefig(path, dpi=150)


def growth(out, quick):
    """Wall time of both engines against the budget, compile excluded."""
    import jax
    import numpy as np
    from matplotlib.figure import Figure

    import jaxbandits as jb

    world = jb.environments.random_bernoulli(jax.random.key(0), instances=64, arms=10)
    smallest = np.min(world.values()[1], axis=1)
    budgets = {"scan": [1e3, 1e4, 1e5, 1e6], "leap": [1e3, 1e4, 1e5, 1e6, 1e7]}
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    rows = [("engine", "budget_over_c_min", "rounds", "seconds")]
    for engine, colour, marker in (("scan", "#E69F00", "s"), ("leap", "#0072B2", "o")):
        points = []
        for budget in [1.0, *(budgets[engine][:3] if quick else budgets[engine])]:
            limit = jb.TotalBudget(budget * smallest, last_pull="counts")
            began = time.perf_counter()
            result = jb.simulate(jb.policies.OmegaUCB(), world, limit, key=jax.random.key(1), engine=engine)
            seconds, rounds = time.perf_counter() - began, float(result.ledger["rounds"][..., -1].sum())
            if budget > 1:  # the first one compiles
                points.append((budget, seconds))
                rows.append((engine, f"{budget:g}", f"{rounds:.0f}", f"{seconds:.3f}"))
                print(*rows[-1], flush=True)
        axes.plot(*zip(*points, strict=True), color=colour, marker=marker, label=engine)
    axes.set(xscale="log", yscale="log", xlabel="budget / c_min", ylabel="seconds for 64 runs (K = 10)")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    figure.savefig(out / "growth.png", dpi=150)
    with open(out / "growth.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)


def _settings(arms):
    import jax

    from jaxbandits import environments as e

    make = {"S-Br": e.random_bernoulli, "S-GBr": e.random_generalised_bernoulli, "S-Bt": e.random_beta}
    return {f"{name}-{arms}": build(jax.random.key(0), instances=100, arms=arms) for name, build in make.items()}


def evaluation(out, quick):
    """The ω-UCB paper's synthetic evaluation: 9 settings × 100 instances × {ω, ω* at 8 values of ρ, m, c, i}."""
    import jax
    import numpy as np

    import jaxbandits as jb

    keep_programs()  # JAXBANDITS_CACHE=off for a cold run
    grid = 2.0 ** np.arange(-6, 2)
    policies = [
        jb.policies.OmegaUCB(rho=grid),
        jb.policies.OmegaStarUCB(rho=grid),
        jb.policies.MUCB(),
        jb.policies.CUCB(),
        jb.policies.IUCB(),
    ]
    began = time.perf_counter()
    rows = [("setting", "seconds", "rounds", "rounds_per_s")]
    for arms in (10, 50, 100):
        for name, world in _settings(arms).items():
            start = time.perf_counter()
            limit = jb.TotalBudget((1.5e3 if quick else 1.5e5) * np.min(world.values()[1], axis=1), last_pull="counts")
            result = jb.simulate(policies, world, limit, key=jax.random.key(1))
            seconds, rounds = time.perf_counter() - start, float(result.ledger["rounds"][..., -1].sum())
            rows.append((name, f"{seconds:.1f}", f"{rounds:.0f}", f"{rounds / seconds:.4g}"))
            print(*rows[-1], flush=True)
    rows.append(("all, instances and compilation included", f"{time.perf_counter() - began:.1f}", "", ""))
    print(*rows[-1])
    with open(out / "evaluation.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)


def equality(out, quick):
    """Both engines, bit for bit, on more than 10⁴ lanes, and at the paper's own budget."""
    import jax
    import numpy as np

    import jaxbandits as jb
    from jaxbandits import environments as e

    rho, lanes = np.array([1 / 64, 0.25, 2.0]), 0
    rows: list[tuple[Any, ...]] = [("law", "K", "budget_over_c_min", "lanes", "rounds", "equal")]
    laws = {"S-Br": e.random_bernoulli, "S-GBr": e.random_generalised_bernoulli, "S-Bt": e.random_beta}
    jobs = [(law, arms, 2e3, 3) for law in laws for arms in (2, 10, 33, 100)]
    jobs += [("S-Br", 10, 1.0, 3), ("S-Br", 10, 1.5e3 if quick else 1.5e5, 1)]
    for law, arms, budget, replicates in jobs:
        world = laws[law](jax.random.key(7), instances=100, arms=arms)
        limit = jb.TotalBudget(budget * np.min(world.values()[1], axis=1), last_pull="counts")
        policy = jb.policies.OmegaUCB(rho=rho)
        scan, leap = (
            jb.simulate(policy, world, limit, key=jax.random.key(8), engine=engine, replicates=replicates)
            for engine in ("scan", "leap")
        )
        same = all(np.array_equal(scan.ledger[name], leap.ledger[name]) for name in scan.ledger)
        same = same and np.array_equal(scan.final["pulls"], leap.final["pulls"])
        lanes += scan.ended.size
        rows.append((law, arms, f"{budget:g}", scan.ended.size, int(scan.ledger["rounds"][..., -1].sum()), same))
        print(*rows[-1], flush=True)
        jax.clear_caches()
    rows.append(("all", "", "", lanes, "", all(row[-1] for row in rows[1:])))
    print(*rows[-1])
    with open(out / "equality.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)


ITEMS = {
    "engines": engines,
    "lanes": lanes,
    "equality": equality,
    "growth": growth,
    "evaluation": evaluation,
    "policies": policies.item,
}


def main():
    """Read the options, run the items."""
    parser = Parser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the table only, fewer repeats, at most ten minutes")
    parser.add_argument("--only", type=one_of(ITEMS), metavar="ITEM", help=f"one item: {', '.join(ITEMS)}")
    parser.add_argument("--out", type=folder, default=Path("jaxbandits-out"), help="folder to write to")
    options = parse_or_leave(parser)
    options.out.mkdir(parents=True, exist_ok=True)
    names = [options.only] if options.only else (["engines"] if options.quick else list(ITEMS))
    print(f"{os.cpu_count()} cores; load {os.getloadavg()[0]:.1f} (another job at work makes these figures worthless)")
    for name in names:
        ITEMS[name](options.out, options.quick)
    print(f"written to {options.out}/")


if __name__ == "__main__":
    main()
