"""python -m benchmarks.first_day [--part NAME] [--out DIR] [--rehearse KIND]: for the day when a device is there.

Four parts, each a process of its own and below seven minutes on the devices that :data:`KINDS` knows:

correctness  the same bits from all engines, slots and workers; resting scores; the five settings; agreement with CPU
speed        rounds per second over numbers of lanes, beside a textbook loop, and the share of the device's bandwidth
memory       what a slot takes, against what the pool expects
graphs       whole loops in one CUDA graph, and not: last, each in a child of its own, since graphs have aborted some

A part says first what it will take: seconds, memory of the host, memory of the device. Every row
is in first_day.csv as soon as it is known. A part that dies keeps its rows, and the next one goes
on; if this command dies, its parts do. Without an accelerator it is refused: ``--rehearse "NVIDIA
H200"`` plays the whole plan in small sizes on the CPU, under that name. Exit status 1 if bits
differ, or a score falls by more than is allowed for; 2 if refused.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import gzip
import itertools
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits as jb
from benchmarks.common import both_engines, laws
from benchmarks.textbook import run_textbook
from jaxbandits._engine import driver, pool
from jaxbandits._engine.setup import lay_out
from jaxbandits.core import ticks
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.policies.base import evaluate_state, margin, safe_round

HEADER = (
    "device",
    "part",
    "what",
    "K",
    "lanes",
    "value",
    "unit",
    "compile_s",
    "idle_share",
    "verdict",
)
KINDS = {"H100": 3.35e12, "H200": 4.8e12, "A100": 2.0e12, "L4": 0.3e12}
"""Bytes per second by the data sheet. Of another kind a copy is measured, which is done first on
every device.
"""
BYTES = {("scan", 10): 1_367, ("scan", 100): 10_682, ("bts", 10): 9_097, ("bts", 100): 31_888}
"""That a round of a slot moves on CUDA, as compiled ahead of time: see docs/accelerators.md."""
GRAPHS, PREALLOCATE = "JAXBANDITS_CUDA_GRAPHS", "XLA_PYTHON_CLIENT_PREALLOCATE"
RHO, ROUNDS = 0.25, 2000
_TRACED = 40  # rounds of a profile: of 2000 it takes 2.6 million events and 93 seconds (H100)


class Plan(NamedTuple):
    """Sizes of a run."""

    kind: str  # the device's name
    rehearsal: bool
    out: Path
    abort: str | None  # the graph whose child dies, to see what becomes of the others

    @property
    def lanes(self) -> tuple[int, ...]:
        """Numbers of lanes that play at a time."""
        if self.rehearsal:
            return 64, 128
        slow = (
            self.bandwidth() or 0
        ) < 1e12  # an L4, or a kind that nobody knows: fewer, to keep below 400 s
        return (1 << 10, 1 << 12, 1 << 14) if slow else (1 << 10, 1 << 12, 1 << 14, 1 << 17)

    @property
    def rounds(self) -> int:
        """Pulls that a lane's budget pays for, at the mean cost."""
        return 50 if self.rehearsal else ROUNDS

    @property
    def copied(self) -> int:
        """Bytes of an array that is copied to measure the bandwidth."""
        return 1 << 22 if self.rehearsal else 1 << 30

    def bandwidth(self) -> float | None:
        """By the data sheet, bytes per second."""
        return next((rate for name, rate in KINDS.items() if name in self.kind), None)

    def row(self, part: str, quantity: str, value: object, unit: str, **columns: object) -> None:
        """Write a row at once, and print it."""
        cells = {
            "device": self.kind,
            "part": part,
            "what": quantity,
            "value": value,
            "unit": unit,
        } | columns
        path = self.out / "first_day.csv"
        new = not path.exists()
        with open(path, "a", newline="") as file:
            rows = csv.DictWriter(file, HEADER)
            if new:
                rows.writeheader()
            rows.writerow(cells)
        print(", ".join(f"{x}" for x in cells.values() if x != ""), flush=True)


# --- correctness


def correctness(plan: Plan) -> bool:
    """All checks of correctness; False if bits differ or a score falls too far."""
    fine = True
    for law in laws():
        lanes, _, equal = both_engines(law, arms=10, budget=200, replicates=3, instances=32)
        plan.row(
            "correctness",
            f"scan and leap, {law}",
            "equal" if equal else "DIFFER",
            "bits",
            lanes=lanes,
        )
        fine &= equal
    fine &= _same_bits(plan)
    fine &= resting_scores(plan)
    _five_settings(plan)
    _beside_cpu(plan)
    _pure_functions(plan)
    return fine


def _same_bits(plan: Plan) -> bool:
    """Other numbers of slots, one worker or two: the same results."""
    arms, limit = world(8, 10, plan.rounds)
    usual = digest(
        jb.simulate(jb.policies.OmegaUCB(), arms, limit, key=jax.random.key(1), replicates=9)
    )
    workers, fine = pool.usual_workers, True
    for label, slots, number in (("few slots", 4, 2), ("one worker", None, 1)):
        pool.usual_workers = lambda *_, number=number: number  # type: ignore[misc]
        try:
            result = jb.simulate(
                jb.policies.OmegaUCB(),
                arms,
                limit,
                key=jax.random.key(1),
                replicates=9,
                slots=slots,
            )
        finally:
            pool.usual_workers = workers
        equal = digest(result) == usual
        plan.row("correctness", label, "equal" if equal else "DIFFER", "bits", K=10, lanes=72)
        fine &= equal
    return fine


def digest(result: jb.Result) -> bytes:
    """All exact accounts of a result, as bytes."""
    return b"".join(
        np.ascontiguousarray(x).tobytes()
        for _, x in sorted({**result.ledger, **result.final}.items())
    )


def resting_scores(plan: Plan, states: int = 1 << 18) -> bool:
    """Does no index fall by half of the leap engine's margin, from a round to the one that it aims
    at for the next?

    M-UCB and UCB-SC+ take differences of nearly equal numbers.
    """
    rng, fine = np.random.default_rng(0), True
    pulls = np.rint(10 ** rng.uniform(0, 6, states)).astype(np.int64)
    reward, cost = (
        ticks.split((rng.random(states) * pulls * ticks.ONE).astype(np.int64)) for _ in range(2)
    )
    totals = ArmStatistics(pulls.astype(np.int32), reward, cost, None, None)  # type: ignore[arg-type]
    for policy in (jb.policies.OmegaUCB(rho=RHO), jb.policies.MUCB(), jb.policies.UCBSCPlus()):
        worst = 0.0
        score = jax.jit(
            lambda t, policy=policy: evaluate_state(policy, jax.tree.map(jnp.asarray, totals), t)
        )
        for t in (10, 1000, 30_000, 1_000_000):
            rounds = jnp.int32(t), safe_round(jnp.int32(t + 1))
            now, later = (np.asarray(score(round_), np.float64) for round_ in rounds)
            with np.errstate(invalid="ignore", divide="ignore"):  # of scores that are infinite
                falls = (now - later) / np.abs(now)
            worst = max(worst, float(falls[np.isfinite(falls)].max()))
        is_safe = worst < float(margin(policy)) / 2
        remark = (
            "below half the margin"
            if is_safe
            else f"TOO MUCH: the margin is {float(margin(policy)):.2e}"
        )
        plan.row(
            "correctness",
            f"{type(policy).__name__} falls at rest",
            f"{worst:.2e}",
            "of itself",
            verdict=remark,
        )
        fine &= is_safe
    return fine


def _five_settings(plan: Plan) -> None:
    """Each paper's policy, once, through the engine that `auto` chooses."""
    p, e, key = jb.policies, jb.environments, jax.random.key(0)
    ten = e.random_bernoulli(key, instances=4, arms=10)
    counts, forfeits = (jb.TotalBudget(30.0, last_pull=kind) for kind in ("counts", "forfeits"))
    valley = e.cost_valley([0.35, 0.6], lam=0.3)
    cases = {
        "omega_ucb": (p.OmegaUCB(), ten, counts),
        "rcucb": (p.RCUCB("legal"), e.g1(), jb.Horizon(100)),
        "b_zoom": (p.SinglePhaseBZoom(budget=40.0, lam=0.3, lipschitz=5.0), valley, forfeits),
        "suak": (p.SUAK(c=0.5), e.WithNullArm(ten), jb.AverageCost(c=0.5, rounds=200)),
        "rcb": (p.rcb_air(beta=1.0), e.Reservoir.ratio(key, instances=4, capacity=64), forfeits),
    }
    for name, (policy, environment, constraint) in cases.items():
        result = jb.simulate(policy, environment, constraint, key=key, replicates=4, marks=2)
        ended = np.isin(result.ended, (jb.Status.EXHAUSTED, jb.Status.HORIZON)).mean()
        plan.row(
            "correctness",
            name,
            f"{ended:.3g}",
            "of lanes ended as they should",
            lanes=result.ended.size,
        )


def _beside_cpu(plan: Plan) -> None:
    """The mean reward of some cells here and on the CPU, with keys of their own, in standard
    errors.
    """
    p, e, rounds, rng = jb.policies, jb.environments, plan.rounds, np.random.default_rng(0)
    arms, limit = world(4, 10, rounds)
    usual, cheap = (e.FiniteArms.bernoulli([0.5, 0.8], [0.3, cost]) for cost in (0.9, 0.09))
    changing, budget = (
        e.Piecewise.of([usual, cheap], at=[rounds // 3]),
        jb.TotalBudget(0.4 * rounds, last_pull="counts"),
    )
    two = e.FiniteArms.bernoulli([[0.9, 0.4]], [[[0.6, 0.5], [0.1, 0.5]]])
    requests = e.RequestTable.of(
        rng.random((64, 3)) * [0.4, 0.6, 0.9], rng.random((64, 3)) * [0.1, 0.3, 0.9]
    )
    cases: list[tuple[Any, Any, Any]] = [
        ([p.OmegaUCB(rho=[0.25, 1.0]), p.MUCB(), p.BudgetedThompson(), p.UCB1()], arms, limit),
        (
            [p.Windowed(p.OmegaUCB(), window=rounds // 4), p.Discounted(p.OmegaUCB(), gamma=0.99)],
            changing,
            budget,
        ),
        (
            [p.UCBBwK(), p.PrimalDualBwK()],
            two,
            jb.TotalBudget([0.3 * rounds, 0.5 * rounds], "counts", rounds=rounds),
        ),
        ([p.OmegaUCB()], requests, jb.TotalBudget(0.2 * rounds, last_pull="counts")),
    ]
    cells: list[list[np.ndarray]] = [[], []]
    for policies, environment, ends in cases:
        for side, seed, devices in ((0, 3, None), (1, 4, jax.local_devices(backend="cpu"))):
            key = jax.random.key(seed)
            result = jb.simulate(
                policies, environment, ends, key=key, replicates=64, marks=1, devices=devices
            )
            cells[side].append(result.reward.values[..., -1].reshape(-1, 64))
    on_device, on_cpu = map(np.concatenate, cells)
    error = np.sqrt((on_device.var(axis=-1, ddof=1) + on_cpu.var(axis=-1, ddof=1)) / 64)
    z = (on_device.mean(axis=-1) - on_cpu.mean(axis=-1)) / error
    within = (
        "within chance"
        if (np.abs(z) < 4).all() and np.sqrt(np.mean(z**2)) < 1.6
        else "NOT within chance"
    )
    value = f"{np.sqrt(np.mean(z**2)):.2f} (largest {np.abs(z).max():.1f})"
    plan.row(
        "correctness",
        f"beside CPU, rms z of {z.size} cells",
        value,
        "standard errors",
        verdict=within,
    )


def _pure_functions(plan: Plan) -> None:
    """A rollout has the bits of simulate, and a gradient is a number, on the device."""
    arms, limit = world(2, 5, 20)
    key, policy = jax.random.key(5), jb.policies.OmegaUCB()
    lane = jb.rollout(policy, arms, limit, key=key, rounds=4000, instance=1, replicate=2)
    whole = jb.simulate(policy, arms, limit, key=key, replicates=3, marks=1)
    equal = int(lane.played.sum()) == int(whole.ledger["rounds"][0, 1, 2, -1])
    plan.row("correctness", "rollout and simulate", "equal" if equal else "DIFFER", "rounds")
    soft = jb.policies.SoftElim(theta=0.5)
    estimate = jb.gradients.policy_score.estimate(
        soft, arms, jb.Horizon(20), wrt="theta", key=key, replicates=64
    )
    slope, error = (
        estimate.gradient["theta"].ravel()[0],
        estimate.standard_error["theta"].ravel()[0],
    )
    remark = "finite" if np.isfinite([slope, error]).all() else "NOT finite"
    plan.row(
        "correctness",
        "a gradient of SoftElim's regret",
        f"{slope:.3g} ± {error:.2g}",
        "per theta",
        verdict=remark,
    )


# --- speed


def world(instances: int, arms: int, rounds: int) -> tuple[Any, jb.TotalBudget]:
    """Random Bernoulli arms, and a budget that pays for ``rounds`` pulls at the mean cost."""
    environment = jb.environments.random_bernoulli(
        jax.random.key(0), instances=instances, arms=arms
    )
    return environment, jb.TotalBudget(
        rounds * np.mean(environment.values()[1], axis=1), last_pull="counts"
    )


def throughput(plan: Plan) -> bool:
    """Rounds per second of scan, leap, BTS and a textbook loop; the bytes that they move beside a
    plain copy.
    """
    copied = copy_rate(plan.copied)
    stated = plan.bandwidth()
    remark = (
        f"{copied / stated:.2f} of the data sheet" if stated else "a kind without a data sheet here"
    )
    plan.row("speed", "copy", f"{copied:.3g}", "bytes/s", verdict=remark)
    omega, thompson = jb.policies.OmegaUCB(rho=RHO), jb.policies.BudgetedThompson()
    kinds = (("scan", omega, "scan"), ("leap", omega, "leap"), ("bts", thompson, "scan"))
    for arms in (10, 100):
        for lanes in plan.lanes:
            plays, traced = (
                {
                    name: library_run(rounds, policy, engine, arms, lanes)
                    for name, policy, engine in kinds
                }
                | ({"textbook": textbook_run(rounds, arms, lanes)} if lanes <= 1 << 14 else {})
                for rounds in (plan.rounds, _TRACED)
            )
            for name, play in plays.items():
                rate, compiling = timed(play)
                idle_ = f"{idle_share(lambda play=traced[name]: play(4)):.2f}"
                columns = {
                    "K": arms,
                    "lanes": lanes,
                    "compile_s": f"{compiling:.1f}",
                    "idle_share": idle_,
                }
                plan.row(
                    "speed",
                    name,
                    f"{rate:.4g}",
                    "rounds/s",
                    **columns,
                    verdict=verdict(name, arms, rate, copied),
                )
    return True


def copy_rate(size: int) -> float:
    """Bytes per second of a copy on the device: read and written."""
    x = jnp.zeros(size // 4, jnp.float32)
    move = jax.jit(lambda x: x + 1.0)
    seconds = []
    for _ in range(6):
        start = time.perf_counter()
        x = jax.block_until_ready(move(x))
        seconds.append(time.perf_counter() - start)
    return 2 * size / statistics.median(seconds[1:])


def verdict(name: str, arms: int, rate: float, copied: float) -> str:
    """The rate at which a round's bytes move, as a share of a copy's, beside the estimate."""
    if (bytes_moved := BYTES.get((name, arms))) is None:
        return ""
    share = rate * bytes_moved / copied
    outcome = "the estimate held" if 0.25 <= share <= 1.2 else "the estimate did NOT hold"
    return f"{share:.2f} of the copy's bytes/s; {outcome} (0.25 to 1.2)"


def timed(play: Any) -> tuple[float, float]:
    """Rounds a second, the median of three, and the seconds that the first run took beyond that."""
    seconds, rates = [], []
    for seed in range(4):
        start = time.perf_counter()
        rounds = play(seed)
        seconds.append(time.perf_counter() - start)
        rates.append(rounds / seconds[-1])
    return statistics.median(rates[1:]), max(seconds[0] - statistics.median(seconds[1:]), 0.0)


def idle_share(play: Any) -> float:
    """The share of the time of a run in which the device did nothing: it waited for a launch, or
    for the host.
    """
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            play()
        # Another jax may write none: the rate counts more
        traces = list(Path(folder).rglob("*.trace.json.gz"))
        return (
            idle(json.loads(gzip.decompress(traces[0].read_bytes()))["traceEvents"])
            if traces
            else float("nan")
        )


def idle(events: list[dict[str, Any]]) -> float:
    """Of the profiler's events: 1 − the time that any of the device's covers / from its first to
    its last; else NaN.
    """
    named = (e for e in events if e.get("name") == "process_name")
    devices = {e["pid"] for e in named if "/device:" in e["args"]["name"]}
    spans = sorted(
        (e["ts"], e["ts"] + e["dur"]) for e in events if e.get("ph") == "X" and e["pid"] in devices
    )
    if not spans:
        return float("nan")
    busy, until = 0.0, spans[0][0]
    for begin, end in spans:
        busy += max(end - max(begin, until), 0.0)
        until = max(until, end)
    return 1 - busy / (until - spans[0][0])


def library_run(rounds: int, policy: Any, engine: str, arms: int, lanes: int) -> Any:
    """A function that plays all lanes once, some ``rounds`` each, and gives their rounds."""
    environment, limit = world(min(lanes, 64), arms, rounds)
    keywords: dict[str, Any] = {"engine": engine, "replicates": max(lanes // 64, 1), "marks": 1}

    def play(seed: int) -> float:
        result = jb.simulate(policy, environment, limit, key=jax.random.key(seed), **keywords)
        return float(result.ledger["rounds"][..., -1].sum())

    return play


def textbook_run(rounds: int, arms: int, lanes: int) -> Any:
    """The same as a textbook loop: vmap and scan, keys split, floats summed."""
    environment, limit = world(64, arms, rounds)
    reward, cost = (
        jnp.asarray(np.resize(x, (lanes, arms)), jnp.float32) for x in environment.values()
    )
    budget = jnp.asarray(np.resize(np.asarray(limit.budget), lanes), jnp.float32)
    return lambda seed: run_textbook(reward, cost, budget, RHO, seed, max_rounds=2 * rounds)


# --- memory


def slot_memory(plan: Plan) -> bool:
    """The most memory in use while so many slots play, beside what the pool expects of them."""
    device = jax.local_devices()[0]
    for lanes in plan.lanes:
        environment, limit = world(64, 100, min(plan.rounds, 100))
        policy = jb.policies.OmegaUCB(rho=RHO)
        keywords: dict[str, Any] = {"replicates": max(lanes // 64, 1), "marks": 1, "engine": "scan"}
        (task,) = lay_out(policy, environment, limit, key=jax.random.key(0), **keywords).tasks
        expected = pool.STATES.get(device.platform, pool.STATES["tpu"]) * driver.state_bytes(
            task, lanes
        )
        jb.simulate(policy, environment, limit, key=jax.random.key(0), slots=lanes, **keywords)
        peak = (device.memory_stats() or {}).get("peak_bytes_in_use")
        remark = (
            "unknown here" if peak is None else f"{peak / expected:.2f} of what the pool expects"
        )
        plan.row(
            "memory",
            "scan",
            f"{expected:.4g}",
            "bytes expected",
            K=100,
            lanes=lanes,
            verdict=remark,
        )
    return True


# --- graphs


def graphs(plan: Plan) -> bool:
    """Each kind of graph in a process of its own, since one that aborts takes its process along."""
    for name, captured in itertools.product(("scan", "leap", "bts"), ("0", "1")):
        arguments = ["--part", f"graph:{name}", "--out", str(plan.out)]
        arguments += ["--rehearse", plan.kind] if plan.rehearsal else []
        arguments += ["--abort", plan.abort] if plan.abort else []
        code = child_process(arguments, os.environ | {GRAPHS: captured}, timeout=300)
        if code:
            plan.row("graphs", f"{name}{_LOOPS[captured]}", "died", f"exit status {code}")
    return True


_LOOPS = {"0": ", loops from the host", "1": ", one graph"}


def graph(plan: Plan, name: str) -> bool:
    """One kind, with whole loops in one CUDA graph or not, more than once: the second execution is
    the one that has aborted.
    """
    if plan.abort == name:
        os.abort()
    policy = jb.policies.BudgetedThompson() if name == "bts" else jb.policies.OmegaUCB(rho=RHO)
    lanes = plan.lanes[-2]
    rate, compiling = timed(
        library_run(plan.rounds, policy, "leap" if name == "leap" else "scan", 100, lanes)
    )
    columns = {"K": 100, "lanes": lanes, "compile_s": f"{compiling:.1f}"}
    loops = _LOOPS[os.environ.get(GRAPHS, "1")]
    plan.row("graphs", f"{name}{loops}", f"{rate:.4g}", "rounds/s", **columns)
    return True


# --- the plan


PARTS = {"correctness": correctness, "speed": throughput, "memory": slot_memory, "graphs": graphs}


def forecast(plan: Plan, part: str) -> float:
    """Seconds that a part should take: its programs, and rounds at a fifth of what their bytes
    allow.

    A program is 7 s: compiled ahead of time 5 on the mean (tables/cuda.csv), the rest is Python's
    and a margin.
    """
    sizes = len(plan.lanes)
    programs = {
        "correctness": 31,
        "speed": 2 * (4 * sizes - (max(plan.lanes) > 1 << 14)),
        "memory": sizes,
    }
    seconds = 7.0 * programs.get(part, 12)  # graphs: six processes, which begin by importing jax
    if plan.rehearsal:
        return seconds
    rate = 0.2 * (plan.bandwidth() or 3e11)
    rounds = {
        "speed": sum(plan.lanes) * plan.rounds * 5,
        "graphs": 24 * plan.lanes[-2] * plan.rounds,
    }.get(part, 1e7)
    return seconds + rounds * (BYTES["scan", 10] + BYTES["scan", 100] + BYTES["bts", 100]) / rate


class Memory(NamedTuple):
    """Upper bounds, in bytes."""

    host: float
    device: float  # 0 where the device is the host


def memory_of(plan: Plan, part: str) -> Memory:
    """What a part should take of the host's memory and of the device's.

    Device: what the pool expects of its most slots, with 100 arms, or a copy's two arrays. Host:
    4.5 GB for a process with jax, CUDA's libraries and their programs (an H100's took 4.2), 10 kB a
    lane (on CPU, where that holds the device's part too, 8.6 kB were measured), and 1 GB for a
    profile of 10⁶ events.
    """
    lanes = {"correctness": 4096, "graphs": plan.lanes[-2]}.get(part, plan.lanes[-1])
    arms, limit = world(64, 100, 100)
    policy, replicates = jb.policies.OmegaUCB(rho=RHO), max(lanes // 64, 1)
    options: dict[str, Any] = {"replicates": replicates, "marks": 1, "engine": "scan"}
    (task,) = lay_out(policy, arms, limit, key=jax.random.key(0), **options).tasks
    device = pool.STATES["gpu"] * driver.state_bytes(task, lanes)
    copied = 2.0 * plan.copied if part == "speed" else 0.0
    host = (1.5e9 if plan.rehearsal else 4.5e9) + 1e4 * lanes + (1e9 if part == "speed" else 0.0)
    if plan.rehearsal:
        return Memory(host + copied, 0.0)
    return Memory(host, max(device, copied))


def announcement(plan: Plan, part: str, expected: Memory) -> str:
    """What a part will take, printed before it starts; jax holds most of a GPU from its first array
    on.
    """
    text = f"{part}: about {forecast(plan, part):.0f} s; "
    text += f"at most {expected.host / 1e9:.1f} GB of the host's memory"
    if not expected.device:
        return text
    reserved = (jax.devices()[0].memory_stats() or {}).get("bytes_limit")
    text += f" and {expected.device / 1e9:.1f} GB of the device's"
    if reserved is None or os.environ.get(PREALLOCATE, "").lower() in ("false", "0"):
        return text
    return (
        f"{text}, of which jax holds {reserved / 1e9:.0f} GB at once (not with {PREALLOCATE}=false)"
    )


def child_process(
    words: list[str], environment: dict[str, str], timeout: float | None = None
) -> int:
    """The exit status of this command with other options, in a process that ends with this one."""
    command = [sys.executable, "-m", "benchmarks.first_day", *words, "--parent", str(os.getpid())]
    return subprocess.run(command, env=environment, timeout=timeout).returncode


def end_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends: an orphan would hold the device."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:  # it has ended before that
        sys.exit(1)


def main() -> int:
    """Read the options, and play one part here or all of them in children."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", help=" | ".join(PARTS))
    parser.add_argument("--out", type=Path, default=Path("jaxbandits-out"), metavar="DIR")
    parser.add_argument(
        "--rehearse", metavar="KIND", help="on the CPU, in small sizes, as if it were such a device"
    )
    parser.add_argument("--abort", help=argparse.SUPPRESS)
    parser.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.parent is not None:
        end_with(arguments.parent)
    environment = dict(os.environ)
    if (
        arguments.part is None
    ):  # the device's memory is the parts': this process only asks what it is
        os.environ[PREALLOCATE] = "false"
    if arguments.rehearse is None and jax.devices()[0].platform == "cpu":
        hint = "--rehearse KIND plays the plan on the CPU, in small sizes"
        parser.exit(2, f"first_day: jax sees no accelerator here; {hint}\n")
    arguments.out.mkdir(parents=True, exist_ok=True)
    kind = arguments.rehearse or jax.devices()[0].device_kind
    plan = Plan(kind, arguments.rehearse is not None, arguments.out, arguments.abort)
    if arguments.part and arguments.part.startswith("graph:"):
        return int(not graph(plan, arguments.part.removeprefix("graph:")))
    if arguments.part:
        return int(not play(plan, arguments.part))
    print(f"{kind}, jax {jax.__version__}, {time.strftime('%Y-%m-%d')}", flush=True)
    codes = []
    for part in PARTS:
        start = time.perf_counter()
        codes.append(child_process(["--part", part, *sys.argv[1:]], environment))
        died = (
            f"; it ended with exit status {codes[-1]}, and its rows are kept" if codes[-1] else ""
        )
        print(f"{part}: {time.perf_counter() - start:.0f} s{died}", flush=True)
    print(f"written to {arguments.out}/first_day.csv")
    return int(any(codes))


def play(plan: Plan, part: str) -> bool:
    """A part: what it will take, its rows, and what it took of the host's memory."""
    expected = memory_of(plan, part)
    print(announcement(plan, part, expected), flush=True)
    fine = PARTS[part](plan)
    scopes = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    peak = 1024.0 * max(
        resource.getrusage(scope).ru_maxrss for scope in scopes
    )  # Linux counts in KiB
    share = f"{peak / expected.host:.2f} of what was said"
    plan.row(part, "host", f"{peak:.4g}", "bytes", verdict=share)
    return fine


if __name__ == "__main__":
    sys.exit(main())
