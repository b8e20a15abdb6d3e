"""python -m benchmarks.first_day [--seconds 470] [--out DIR] [--rehearse]: tests of a new device.

In eight minutes: the bits of twelve policies and worlds, engine by engine; rounds per second of
engines and a textbook loop; a sweep. Each row is written to first_day.csv at once, and nothing
starts that might not end in time. `first_s` is the first run, with compilation; `host_share` is the
time of a run of one round, host only, as a share of a whole run. It requires an accelerator, except
with ``--rehearse``, which runs small sizes on the CPU. Exit status 1 if bits differ or a run fails;
2 without an accelerator.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits as jb
from benchmarks.textbook import run_textbook

HEADER = (
    "device", "jax", "at_s", "part", "what", "K", "lanes", "rounds", "value", "unit", "first_s", "host_share",
)  # fmt: skip
RHO, FOR_SPEED = 0.25, 0.55  # of the time: bits that are not known by then are left out
Play = Callable[[int], float]  # a seed -> rounds that were played
ENGINES = "kernel", "scan", "leap"


class Sizes(NamedTuple):
    """What is played."""

    arms: tuple[int, ...] = (10, 100)
    lanes: tuple[int, ...] = (1 << 10, 1 << 14, 1 << 17)
    rounds: tuple[int, int] = (2_000, 20_000)
    replicates: int = 32  # of each of four instances, to compare bits
    cases: int = 12


REHEARSED = Sizes((4,), (8,), (20, 40), replicates=2, cases=2)


class Day:
    """Rows, and the time that is left."""

    def __init__(self, out: Path, seconds: float) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self.began, self.seconds, self.fine = time.monotonic(), seconds, True
        self.longest = 0.0  # of any question: none begins with less time left
        self.device = jax.devices()[0]
        self._path = out / "first_day.csv"
        with open(self._path, "w", newline="") as file:
            csv.writer(file).writerow(HEADER)

    def row(self, part: str, what: str, value: object, **columns: object) -> None:
        """Write a row at once, and print it."""
        at = f"{time.monotonic() - self.began:.0f}"
        here = {"device": self.device.device_kind, "jax": jax.__version__, "at_s": at}
        cells = {"part": part, "what": what} | columns | {"value": value}
        with open(self._path, "a", newline="") as file:
            csv.DictWriter(file, HEADER).writerow(here | cells)
        print(at, *cells.values(), sep=", ", flush=True)

    def ask(
        self, part: str, what: str, question: Any, keep: float = 0.0, **columns: object
    ) -> None:
        """The row of a question, unless less time is left than the longest took, and ``keep``."""
        start = time.monotonic()
        if self.seconds - (start - self.began) < keep + self.longest:
            return self.row(part, what, "not played: no time", **columns)
        try:
            answer = question()
        except Exception as problem:  # the other questions still have their answers
            answer = {"value": f"{type(problem).__name__}: {str(problem)[:200]}"}
            self.fine = False
        self.longest = max(self.longest, time.monotonic() - start)
        self.fine &= not str(answer["value"]).startswith("DIFFER")
        self.row(part, what, **(columns | answer))


def cases(arms: int) -> dict[str, tuple[Any, Any, Any]]:
    """Policy, world and limit, by name; the dearest to compile last."""
    p, e = jb.policies, jb.environments
    key, other = jax.random.key(3), jax.random.key(9)
    budget = jb.TotalBudget(60.0, last_pull="counts")
    ten = e.random_bernoulli(key, instances=4, arms=arms)
    omega = p.OmegaUCB(rho=RHO)
    same, average = (ten, budget), jb.AverageCost(c=0.5, rounds=200)
    changed = e.random_bernoulli(other, instances=4, arms=arms)
    shares = e.random_generalised_bernoulli(key, instances=4, arms=arms)
    return {
        "OmegaUCB": (omega, *same),
        "MUCB": (p.MUCB(), *same),
        "UCBSCPlus": (p.UCBSCPlus(), *same),
        "PDBwK": (p.PDBwK.for_budget(60.0, arms), *same),
        "BTS": (p.BudgetedThompson(), *same),
        "SoftElim": (p.SoftElim(), *same),
        "KLUCBSCPlus": (p.KLUCBSCPlus(), *same),
        "Beta arms": (omega, e.random_beta(key, instances=4, arms=arms), budget),
        "generalised Bernoulli": (omega, shares, budget),
        "drift": (omega, e.Piecewise.of([ten, changed], at=[31]), budget),
        "closing arms": (omega, e.Stocked.of(ten, pulls=[8 + arm for arm in range(arms)]), budget),
        "SUAK": (p.SUAK(c=0.5), e.WithNullArm(ten), average),
    }


def bits(day: Day, sizes: Sizes) -> None:
    """Every engine beside scan, case by case: with few arms, then the first six with many."""
    for arms in sizes.arms:
        for name, case in list(cases(arms).items())[: sizes.cases if arms < 100 else 6]:
            question = partial(compared, case, sizes.replicates)
            day.ask("bits", name, question, keep=FOR_SPEED * day.seconds, K=arms)


def compared(case: tuple[Any, Any, Any], replicates: int) -> dict[str, Any]:
    """What differs from scan's ledger, by engine; one that does not play the case is named."""
    options: dict[str, Any] = {"key": jax.random.key(1), "replicates": replicates, "marks": 7}
    results, refused, start = {}, [], time.monotonic()
    for engine in ENGINES:
        try:
            results[engine] = jb.simulate(*case, **options, engine=engine)
        except jb.InputError:  # such as a leap of a policy that draws
            refused.append(engine)
    scan = results.pop("scan")
    wrong = [f"{name} {x}" for name, result in results.items() for x in differences(scan, result)]
    same = f"equal: {', '.join(['scan', *results])}" if results else "only scan plays it"
    said = f"DIFFER: {', '.join(wrong)}" if wrong else same
    unit, first = ", not ".join(["bits", *refused]), f"{time.monotonic() - start:.1f}"
    return {"value": said, "unit": unit, "lanes": scan.ended.size, "first_s": first}


def differences(one: jb.Result, other: jb.Result) -> list[str]:
    """Names of the accounts that are not the same, bit for bit."""
    first, second = ({**x.ledger, **x.final, "ended": x.ended} for x in (one, other))
    return [name for name in first if not np.array_equal(first[name], second[name], equal_nan=True)]


def world(instances: int, arms: int, rounds: int) -> tuple[Any, jb.TotalBudget]:
    """Random Bernoulli arms, and a budget that pays for ``rounds`` pulls at the mean cost."""
    key, make = jax.random.key(0), jb.environments.random_bernoulli
    environment = make(key, instances=instances, arms=arms)
    budget = rounds * np.mean(environment.values()[1], axis=1)
    return environment, jb.TotalBudget(budget, last_pull="counts")


def player(who: str, arms: int, lanes: int, rounds: int) -> Play:
    """Plays all lanes, some ``rounds`` each: an engine with ω-UCB or BTS, or a textbook loop."""
    environment, limit = world(min(lanes, 64), arms, rounds)
    if who == "textbook":
        shaped = (np.resize(x, (lanes, arms)) for x in environment.values())
        reward, cost = (jnp.asarray(x, jnp.float32) for x in shaped)
        budget = jnp.asarray(np.resize(np.asarray(limit.budget), lanes), jnp.float32)
        return lambda seed: run_textbook(reward, cost, budget, RHO, seed, max_rounds=2 * rounds)
    is_thompson = who.startswith("BTS, ")
    policy = jb.policies.BudgetedThompson() if is_thompson else jb.policies.OmegaUCB(rho=RHO)
    engine, runs_each = who.removeprefix("BTS, "), max(lanes // 64, 1)
    options: Any = {"engine": engine, "replicates": runs_each, "marks": 1}

    def play(seed: int) -> float:
        result = jb.simulate(policy, environment, limit, key=jax.random.key(seed), **options)
        return float(result.ledger["rounds"][..., -1].sum())

    return play


def runs(sizes: Sizes) -> Iterator[tuple[str, int, int, int]]:
    """(who, K, lanes, rounds): short runs first, then Thompson, then the long ones."""
    everyone, (short, long) = (*ENGINES, "textbook"), sizes.rounds
    for arms, lanes in itertools.product(sizes.arms, sizes.lanes):
        # a textbook loop keeps whole arrays of floats: not of a hundred arms and 2¹⁷ lanes
        ours = everyone if lanes * arms <= 1 << 21 else everyone[:-1]
        yield from ((who, arms, lanes, short) for who in ours)
    thompson = [f"BTS, {engine}" for engine in ENGINES if engine != "leap"]
    for lanes in sizes.lanes[:2]:
        yield from ((who, sizes.arms[0], lanes, short) for who in thompson)
        yield from ((who, sizes.arms[0], lanes, long) for who in everyone)


def speed(day: Day, sizes: Sizes) -> None:
    """Rounds a second of every run that there is time for."""
    for who, arms, lanes, rounds in runs(sizes):
        plays = [player(who, arms, lanes, x) for x in (rounds, 1)]
        columns = {"K": arms, "lanes": lanes, "rounds": rounds}
        day.ask("speed", who, partial(rate, *plays), **columns)


def rate(play: Play, one_round: Play) -> dict[str, Any]:
    """The faster of two runs, the first one's seconds, and the share of a run of one round."""
    (first, _), *again = (timed(play, seed) for seed in range(3))
    host = min(timed(one_round, seed)[0] for seed in range(3)) / min(x for x, _ in again)
    value = f"{max(rounds / seconds for seconds, rounds in again):.4g}"
    columns = {"first_s": f"{first:.1f}", "host_share": f"{host:.2f}"}
    return {"value": value, "unit": "rounds/s", **columns}


def timed(play: Play, seed: int) -> tuple[float, float]:
    """Seconds and rounds."""
    start = time.perf_counter()
    rounds = play(seed)
    return time.perf_counter() - start, rounds


def swept(sizes: Sizes) -> dict[str, Any]:
    """ω-UCB over 32 values of ρ in 64 instances, twice: the second time all is compiled."""
    environment, limit = world(64, sizes.arms[0], sizes.rounds[0])
    whole = jb.Sweep(
        policies=jb.policies.OmegaUCB(rho=np.geomspace(1 / 64, 2, 32)),
        environments=environment, constraint=limit, replicates=sizes.replicates, over="instance",
    )  # fmt: skip
    (first, _), (seconds, lanes) = (
        timed(lambda _: jb.sweep(whole).data["regret"].size, x) for x in range(2)
    )
    value, first_s = f"{lanes / seconds:.4g}", f"{first:.1f}"
    return {"value": value, "unit": "lanes/s", "lanes": lanes, "first_s": first_s}


def main() -> int:
    """Read the options, and ask."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=470.0, help="time limit for all parts")
    parser.add_argument("--out", type=Path, default=Path("jaxbandits-out"), metavar="DIR")
    parser.add_argument("--rehearse", action="store_true", help="run small sizes on the CPU")
    options = parser.parse_args()
    if not options.rehearse and jax.devices()[0].platform == "cpu":
        parser.exit(2, "first_day: jax sees no accelerator here; --rehearse plays it on the CPU\n")
    day, sizes = Day(options.out, options.seconds), REHEARSED if options.rehearse else Sizes()
    bits(day, sizes)
    speed(day, sizes)
    day.ask("sweep", "OmegaUCB, 32 ρ", partial(swept, sizes), K=sizes.arms[0])
    day.row("day", "all", f"{time.monotonic() - day.began:.0f}", unit="s")
    return int(not day.fine)


if __name__ == "__main__":
    sys.exit(main())
