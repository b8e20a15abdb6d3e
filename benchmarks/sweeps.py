"""``python -m benchmarks.sweeps ITEM [--out DIR]``: what sweeps promise, measured.

kill      40 ``kill -9`` at random times over docs/examples/sweep_rho.py (or the file that SPEC names), then the bytes
          against those of a whole run
kills     20 ``kill -9`` of the caller and of its worker processes, in the same way
executors 10⁴ lanes: this process on one core, its threads, and engines of two workers, one after the other
figure4   28,800 runs, whole commands: this process, worker processes, Dask
scaling   10⁴ lanes: one CPU device pinned to one core against two CPU devices on two cores
sharding  the pool's workers against one ``shard_map`` program over the same two devices
memory    peak memory against rounds, and against what ``--dry-run`` said
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from jaxbandits._cli.command_line import Parser, folder, one_of, parse_or_leave

KILLS, LANES = 40, 10_000
EXAMPLE = Path(os.environ.get("SPEC", Path(__file__).parents[1] / "docs" / "examples" / "sweep_rho.py"))


def command(out, *more):
    return [
        sys.executable,
        "-m",
        "jaxbandits._cli.console",
        "sweep",
        str(EXAMPLE),
        "--out",
        str(out),
        "--no-progress",
        *more,
    ]


def contents(folder):
    """Every file outside the log, by name."""
    files = [path for path in Path(folder).rglob("*") if path.is_file() and path.parent.name != "log"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def kill(out):
    """Lives of random length, so drawn that all 40 kills meet an unfinished sweep."""
    from jaxbandits.sweeps.log import read_logs
    from jaxbandits.sweeps.store import Folder

    began = time.time()
    subprocess.run(command(out / "whole"), check=True, stdout=subprocess.DEVNULL)
    (notes,) = read_logs(out / "whole")
    first, end = (next(n["time"] for n in notes if n["event"] == event) for event in ("block", "end"))
    startup, rest = _startup(out / "probe"), end - first
    whole, total = contents(out / "whole"), len(Folder(out / "whole").listed())
    print(f"uninterrupted: {end - began:.0f} s, {total} blocks, the first after {first - began:.0f} s", flush=True)
    print(f"again, with jax's cache of compiled programs if one is set: the first after {startup:.0f} s", flush=True)
    moments = random.Random(0)
    done: list[int] = []
    lives: list[float] = []
    while len(done) < KILLS:
        process = subprocess.Popen(command(out / "killed"), stdout=subprocess.DEVNULL)
        born, before = time.time(), done[-1] if done else 0
        pause = moments.uniform(0.0, startup)
        if len(done) % 2:  # every other life lasts until something new is there, and a random moment longer
            while process.poll() is None and len(Folder(out / "killed").listed()) == before:
                time.sleep(0.005)
            pause = moments.uniform(0.0, rest / KILLS)
        try:
            process.wait(pause)
            raise SystemExit(f"the sweep ended before kill {len(done) + 1}: draw shorter lives")
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        lives.append(time.time() - born)
        done.append(len(Folder(out / "killed").listed()))
    print(f"blocks after each of {KILLS} kills: {done}", flush=True)
    subprocess.run(command(out / "killed"), check=True, stdout=subprocess.DEVNULL)
    same = contents(out / "killed") == whole
    advanced = sum(b > a for a, b in zip([0, *done], done, strict=False))
    print(f"{KILLS} kills after {min(lives):.1f} to {max(lives):.1f} s, {advanced} of them after new blocks")
    print(f"{len(whole)} files: {'the same bytes' if same else 'THE BYTES DIFFER'}")
    return 0 if same else 1


def _startup(out):
    """Seconds until the first block is there."""
    began = time.time()
    process = subprocess.Popen(command(out), stdout=subprocess.DEVNULL)
    while process.poll() is None and not any(out.glob("blocks/*.npz")):
        time.sleep(0.05)
    seconds = time.time() - began
    process.kill()
    process.wait()
    return seconds


def spec(lanes=LANES, budget=20_000.0, engine="auto"):
    """ω-UCB on 100 random Bernoulli instances, K = 10, with as many ρ as make the lanes."""
    import jax
    import numpy as np

    import jaxbandits as jb

    arms = jb.environments.random_bernoulli(jax.random.key(0), instances=100, arms=10)
    multiple = arms.values()[1].min(axis=1)
    return jb.Sweep(
        policies=jb.policies.OmegaUCB(rho=np.geomspace(1 / 64, 2.0, lanes // 100)),
        environments=arms,
        constraint=jb.TotalBudget(budget * multiple, last_pull="counts"),
        over="instance",
        engine=engine,
    )


def timed(arguments):
    """In a process of its own: seconds of one sweep, compilation excluded, and its digest."""
    import hashlib

    from jaxbandits.sweeps import sweep

    engine, budget = arguments[0], float(arguments[1])
    sweep(spec(budget=20.0, engine=engine))
    began = time.perf_counter()
    found = sweep(spec(budget=budget, engine=engine))
    seconds = time.perf_counter() - began
    print(seconds, hashlib.sha256(found.data["regret"].values.tobytes()).hexdigest())


def child(name, *arguments, devices=1, cores=None):
    """Run ``name`` of this module elsewhere; its printed words."""
    environment = {**os.environ, "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.sweeps", name, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None,
    )
    return done.stdout.split()


def scaling(out):
    """Interleaved, three times."""
    for engine, budget in (("auto", 100_000.0), ("scan", 5_000.0)):
        ratios, digests = [], set()
        for _ in range(3):
            one, first = child("timed", engine, str(budget), cores={0})
            two, second = child("timed", engine, str(budget), devices=2)
            ratios.append(float(one) / float(two))
            digests |= {first, second}
            print(f"{engine}: one device, one core {float(one):.2f} s; two devices {float(two):.2f} s", flush=True)
        same = "the same bits" if len(digests) == 1 else "BITS DIFFER"
        print(f"{engine}: {', '.join(f'{r:.2f}' for r in ratios)}, median {statistics.median(ratios):.2f}; {same}")
    return 0


def sharded(arguments):
    """In a process of its own: the same lanes through one ``shard_map`` program over all devices."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh
    from jax.sharding import PartitionSpec as P

    from jaxbandits._engine import blanks, drive
    from jaxbandits.core.protocol import Status
    from jaxbandits.sweeps import make_plan

    budget, devices = float(arguments[0]), jax.devices()

    (unit,) = make_plan(spec(budget=budget)).units
    task, slots = unit.task, unit.task.engine.CPU_SLOTS
    seats = LANES // len(devices)
    # The order is longest first, so every n-th lane is a fair part. All seats are taken at once: one call plays all.
    lanes = task.lanes(np.concatenate([task.order[at :: len(devices)] for at in range(len(devices))]))
    plan = drive.CallLimits(*(jnp.int32(x) for x in (task.chunk, 2**31 - 1, slots // 16, slots - 1)))

    def body(environment, lanes, root, plan):
        blank = blanks.blank(task.engine, slots, blanks.blank_shapes(slots, environment, lanes, root))
        line = jnp.arange(seats, dtype=jnp.int32)
        done, _ = drive.advance(task.engine, environment, lanes, root, line, jnp.int32(seats), blank, plan)
        return done.outcome

    one, many = P(), P("lane")
    mesh = Mesh(np.array(devices), ("lane",))
    step = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=(one, many, one, one), out_specs=many, check_vma=False))
    given = (task.environment, lanes, task.root, plan)
    compiled = step.lower(*given).compile(drive.options("cpu"))
    began = time.perf_counter()
    outcome = jax.block_until_ready(compiled(*given))
    print(time.perf_counter() - began)
    assert outcome.status.size == LANES
    assert np.isin(np.asarray(outcome.status), (Status.EXHAUSTED, Status.HORIZON)).all()


def sharding(out):
    """Interleaved, three times."""
    ratios = []
    for _ in range(3):
        pool_, _ = child("timed", "auto", "20000.0", devices=2)
        (mapped,) = child("sharded", "20000.0", devices=2)
        ratios.append(float(mapped) / float(pool_))
        print(f"pool {float(pool_):.2f} s; shard_map {float(mapped):.2f} s", flush=True)
    print(f"shard_map takes {statistics.median(ratios):.2f} times as long as the pool")
    return 0


def peak(arguments):
    """In a process of its own: MiB foretold, and MiB used."""
    import resource

    from jaxbandits.sweeps import forecast, make_plan, sweep

    made = spec(lanes=int(arguments[0]), budget=float(arguments[1]))
    told = forecast(make_plan(made)).memory
    sweep(made)
    print(told / 2**20, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def memory(out):
    """Rounds up to 100-fold; lanes up to 100-fold."""
    for lanes, budget in ((1_000, 200.0), (1_000, 2_000.0), (1_000, 20_000.0), (10_000, 200.0), (100_000, 200.0)):
        told, used = map(float, child("peak", str(lanes), str(budget)))
        print(
            f"{lanes:,} lanes, budget {budget:,.0f} c_min: {used:.0f} MiB used, at most {told:.0f} foretold", flush=True
        )
    return 0


def main():
    """The command line."""
    if sys.argv[1:2] and sys.argv[1] in ("timed", "sharded", "peak"):
        globals()[sys.argv[1]](sys.argv[2:])
        return 0
    parser = Parser(must=("item",), prog="python -m benchmarks.sweeps", description=__doc__)
    from benchmarks.engines import executors, figure4, kills

    items = {"kill": kill, "kills": kills, "executors": executors, "figure4": figure4, "scaling": scaling}
    items |= {"sharding": sharding, "memory": memory}
    parser.add_argument("item", nargs="?", type=one_of(items), metavar="|".join(items))
    parser.add_argument("--out", type=folder, help="where the folders of sweeps go (default: a temporary folder)")
    given = parse_or_leave(parser)
    out = given.out or Path(tempfile.mkdtemp(prefix="sweeps-"))
    out.mkdir(parents=True, exist_ok=True)
    return items[given.item](out)


if __name__ == "__main__":
    sys.exit(main())
