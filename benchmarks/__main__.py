"""``python -m benchmarks [--quick] [--only ITEM] [--out DIR]``: side-by-side timings, interleaved,
medians, ratios.

Items: engines (the table), lanes (256 and 2,048 of them), growth (time against budget), evaluation
(the ω-UCB paper's synthetic evaluation), contexts (LinUCB beside NumPy and native), policies (every
policy beside a native loop). ``--quick`` runs the first one only, in at most ten minutes.
"""

import argparse
import os
import statistics
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure

import jaxbandits as jb
from benchmarks import contexts, policies
from benchmarks.common import Worker, in_turn, write

ENGINES = ("leap", "scan", "textbook", "numpy", "native")
# Share of the paper's budget that one timed run plays: slow engines play less, their speed does not
# depend on it. The leap's does, so it always plays everything, as native does.
SHARES = {"leap": 1.0, "native": 1.0, "scan": 0.1, "textbook": 0.03, "numpy": 0.02}


def measured(names, arms, repeats, runs=1):
    """Of each engine: its sorted speeds, their ratio to native, compile seconds, peak memory."""
    workers = {name: Worker("benchmarks.worker", name, arms, SHARES[name], runs) for name in names}
    outcomes = in_turn(workers, repeats)
    speeds = {
        name: [float(rounds) / float(seconds) for seconds, rounds in words]
        for name, (words, _) in outcomes.items()
    }
    for name, worker in workers.items():
        ratio = statistics.median(
            a / b for a, b in zip(speeds[name], speeds["native"], strict=True)
        )
        yield name, sorted(speeds[name]), ratio, worker.compile, outcomes[name][1]


def engines(out, quick):
    """The table and its picture."""
    rows: list[tuple[Any, ...]] = []
    for arms in (10, 50, 100):
        for name, speeds, ratio, compiling, peak in measured(ENGINES, arms, 3 if quick else 7):
            speed = statistics.median(speeds)
            rows.append(
                (name, arms, f"{speed:.4g}", f"{ratio:.3g}", f"{compiling:.2f}", f"{peak:.0f}")
            )
            print(
                f"K={arms:<4}{name:<9} {speed:>12,.0f} rounds/s ({speeds[0]:,.0f} … {speeds[-1]:,.0f})"
                f"  {ratio:6.2f} × native",
                flush=True,
            )
    _bars(rows, out / "benchmark.png")
    rows.insert(0, ("engine", "K", "rounds_per_s", "ratio_to_native", "compile_s", "peak_mb"))
    write(out / "benchmark.csv", rows)


def lanes(out, quick):
    """Leap, scan and the native loop at 256 lanes and at 2,048, interleaved."""
    rows: list[tuple[Any, ...]] = [
        ("lanes", "K", "engine", "rounds_per_s", "least", "most", "ratio_to_native")
    ]
    for runs in (1, 8):
        for arms in (10, 50, 100):
            for name, (slowest, middle, fastest), ratio, *_ in measured(
                ("leap", "scan", "native"), arms, 3, runs
            ):
                cells = (f"{speed:.4g}" for speed in (middle, slowest, fastest))
                rows.append((256 * runs, arms, name, *cells, f"{ratio:.3g}"))
                print(*rows[-1], flush=True)
    write(out / "lanes.csv", rows)


def _bars(rows, path):
    colours = {
        "leap": "#0072B2",
        "scan": "#56B4E9",
        "textbook": "#E69F00",
        "numpy": "#999999",
        "native": "#D55E00",
    }
    figure = Figure(figsize=(7.2, 4.0), layout="constrained")
    axes = figure.subplots()
    counts = sorted({row[1] for row in rows})
    for place, name in enumerate(ENGINES):
        heights = [float(row[2]) for row in rows if row[0] == name]
        at = [i + (place - 2) * 0.16 for i in range(len(counts))]
        bars = axes.bar(at, heights, 0.15, label=name, color=colours[name])
        axes.bar_label(bars, [f"{h / 1e6:.3g}" for h in heights], fontsize=7)
    axes.set_xticks(range(len(counts)), [f"K = {k}" for k in counts])
    axes.set(yscale="log", ylabel="rounds per second (bar labels: millions)")
    axes.set_title("ω-UCB, ρ = ¼, Bernoulli arms, 256 runs, two CPU cores", fontsize=10)
    axes.legend(ncols=5, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.08), frameon=False)
    figure.savefig(path, dpi=150)


def growth(out, _):
    """Wall time of both engines against the budget, compile excluded."""
    world = jb.environments.random_bernoulli(jax.random.key(0), instances=64, arms=10)
    smallest = np.min(world.values()[1], axis=1)
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    rows = [("engine", "budget_over_c_min", "rounds", "seconds")]
    for engine, last, colour, marker in (("scan", 6, "#E69F00", "s"), ("leap", 7, "#0072B2", "o")):
        points = []
        for budget in [1.0, *(10.0**power for power in range(3, last + 1))]:
            limit = jb.TotalBudget(budget * smallest, last_pull="counts")
            start = time.perf_counter()
            result = jb.simulate(
                jb.policies.OmegaUCB(), world, limit, key=jax.random.key(1), engine=engine
            )
            seconds = time.perf_counter() - start
            rounds = float(result.ledger["rounds"][..., -1].sum())
            if budget > 1:  # the first one compiles
                points.append((budget, seconds))
                rows.append((engine, f"{budget:g}", f"{rounds:.0f}", f"{seconds:.3f}"))
                print(*rows[-1], flush=True)
        axes.plot(*zip(*points, strict=True), color=colour, marker=marker, label=engine)
    axes.set(
        xscale="log", yscale="log", xlabel="budget / c_min", ylabel="seconds for 64 runs (K = 10)"
    )
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    figure.savefig(out / "growth.png", dpi=150)
    write(out / "growth.csv", rows)


def evaluation(out, quick):
    """The ω-UCB paper's evaluation: 9 settings × 100 instances × {ω, ω* at 8 ρ, m, c, i}."""
    from jaxbandits.apps._cli.console import keep_programs

    keep_programs()  # JAXBANDITS_CACHE=off for a cold run
    p, e, grid = jb.policies, jb.environments, 2.0 ** np.arange(-6, 2)
    laws = {
        "S-Br": e.random_bernoulli,
        "S-GBr": e.random_generalised_bernoulli,
        "S-Bt": e.random_beta,
    }
    policies = [p.OmegaUCB(rho=grid), p.OmegaStarUCB(rho=grid), p.MUCB(), p.CUCB(), p.IUCB()]
    first_start = time.perf_counter()
    rows = [("setting", "seconds", "rounds", "rounds_per_s")]
    for arms in (10, 50, 100):
        for law, draw in laws.items():
            name, world = f"{law}-{arms}", draw(jax.random.key(0), instances=100, arms=arms)
            start = time.perf_counter()
            limit = jb.TotalBudget(
                (1.5e3 if quick else 1.5e5) * np.min(world.values()[1], axis=1), last_pull="counts"
            )
            result = jb.simulate(policies, world, limit, key=jax.random.key(1))
            seconds = time.perf_counter() - start
            rounds = float(result.ledger["rounds"][..., -1].sum())
            rows.append((name, f"{seconds:.1f}", f"{rounds:.0f}", f"{rounds / seconds:.4g}"))
            print(*rows[-1], flush=True)
    rows.append(
        (
            "all, instances and compilation included",
            f"{time.perf_counter() - first_start:.1f}",
            "",
            "",
        )
    )
    print(*rows[-1])
    write(out / "evaluation.csv", rows)


ITEMS = {item.__name__: item for item in (engines, lanes, growth, evaluation)} | {
    "contexts": contexts.item,
    "policies": policies.item,
}


def main():
    """Read the options, run the items."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="only the table, fewer repeats, at most ten minutes"
    )
    parser.add_argument("--only", choices=ITEMS, help="run one item")
    parser.add_argument(
        "--out", type=Path, default=Path("jaxbandits-out"), help="folder to write to"
    )
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    names = [options.only] if options.only else (["engines"] if options.quick else list(ITEMS))
    print(
        f"{os.cpu_count()} cores; load {os.getloadavg()[0]:.1f} (another job at work makes these figures worthless)"
    )
    for name in names:
        ITEMS[name](options.out, options.quick)
    print(f"written to {options.out}/")


if __name__ == "__main__":
    main()
