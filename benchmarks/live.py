"""The live agent: its speed, its behaviour in failures, and how well it spends.

python -m benchmarks.live speed               choose-learn pairs per second, from 1, 4 and 8 processes
python -m benchmarks.live latency             one pair at 200 per second, from 4 processes
python -m benchmarks.live restart [REQUESTS]  seconds to start and bytes per request as the file grows
python -m benchmarks.live dead                an arm that fails for six hours
python -m benchmarks.live pace                share of the fluid program's value on drifting days
python -m benchmarks.live money               spending and service when bounds are far above means

Each fails if it misses a number stated in docs/live.md.
"""

from __future__ import annotations

import argparse
import heapq
import math
import multiprocessing
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxbandits as jb
from jaxbandits.apps.live import Agent, Budget
from jaxbandits.policies import Discounted, OmegaUCB, PricePacer

DAY = 86400.0
# Mean cost, quality
PRICES = {"small": (0.0008, 0.70), "middle": (0.004, 0.82), "large": (0.02, 0.93)}
# Requests of the hours of a day, in shares
SHAPE = [10, 6, 4, 4, 6, 12, 25, 40, 55, 60, 60, 55, 55, 60, 60, 55, 50, 50, 55, 60, 55, 45, 30, 18]


def gateway(file: Any, **changes: Any) -> Agent:
    """The agent of the first example of docs/live.md."""
    settings: dict[str, Any] = {
        "arms": {name: 15 * price for name, (price, _) in PRICES.items()},
        "budgets": [Budget(12.0, "day")],
        "reward_bound": 1.0,
        "key": jax.random.key(0),
        "hold": 0.99,
    }
    return Agent(Discounted.half_life(PricePacer(), 2000), file=file, **settings | changes)


def _serve(file: str, seconds: float, pause: float, out: Any, barrier: Any, seed: int) -> None:
    """A process that asks and answers; it says how long each pair took."""
    agent, rng, times = gateway(file, budgets=[Budget(10**6, "day")]), random.Random(seed), []
    barrier.wait()  # until all have compiled
    due = time.monotonic()
    until = due + seconds
    while (due := due + rng.expovariate(1 / pause) if pause else time.monotonic()) < until:
        time.sleep(max(due - time.monotonic(), 0))
        start = time.perf_counter()
        if ticket := agent.choose():
            agent.learn(ticket, reward=rng.random(), cost=0.0013)
        times.append(time.perf_counter() - start)
    out.put(times)


def _crowd(processes: int, seconds: float, pause: float) -> list[float]:
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        out, barrier, file = (
            context.Queue(),
            context.Barrier(processes),
            str(Path(folder) / "agent.db"),
        )
        gateway(file, budgets=[Budget(10**6, "day")])
        crowd = [
            context.Process(target=_serve, args=(file, seconds, pause, out, barrier, k))
            for k in range(processes)
        ]
        for process in crowd:
            process.start()
        rows = [row for _ in crowd for row in out.get()]
        for process in crowd:
            process.join()
        numbers = jb.live.Agent.load(file).statistics()
        if numbers["requests"] != len(rows) or numbers["open"]:
            raise SystemExit(
                f"{len(rows)} pairs, and the file says {numbers['requests']}, {numbers['open']} open"
            )
    return sorted(rows)


def speed() -> None:
    """Pairs of choose and learn a second, as fast as processes can."""
    slowest = math.inf
    for processes in (1, 4, 8):
        rows = _crowd(processes, 8.0, 0.0)
        slowest = min(slowest, len(rows) / 8.0)
        summary = f"median {1e3 * statistics.median(rows):.2f} ms, 99 % {1e3 * rows[int(0.99 * len(rows))]:.1f} ms"
        print(
            f"{processes} processes: {len(rows) / 8.0:,.0f} pairs a second; {summary}", flush=True
        )
    if slowest < 1000:
        raise SystemExit(f"{slowest:,.0f} pairs a second: below 1,000")


def latency() -> None:
    """Times of pairs that come at random, 200 a second."""
    rows = _crowd(4, 20.0, 4 / 200)
    times = {q: 1e3 * rows[int(q * len(rows))] for q in (0.5, 0.9, 0.99, 0.999)}
    summary = ", ".join(f"{100 * q:g} % {time:.2f} ms" for q, time in times.items())
    print(f"{len(rows) / 20.0:.0f} pairs a second from 4 processes: {summary}")
    if times[0.99] > 10:
        raise SystemExit("the slowest of a hundred takes more than 10 ms")


def restart(requests: int) -> None:
    """Seconds to start from a file with so many requests, and its bytes a request."""
    with tempfile.TemporaryDirectory() as folder:
        file, now, done = Path(folder) / "agent.db", [0.0], 0
        agent = gateway(file, clock=lambda: now[0], budgets=[Budget(10**6, "day")])
        for count in (10**k for k in range(3, 8) if 10**k <= requests):
            while done < count:
                now[0] += 40.0
                agent.learn(agent.choose(), reward=0.5, cost=0.0013)
                done += 1
            agent._ledger.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            start = time.perf_counter()
            again = gateway(file, clock=lambda: now[0], budgets=[Budget(10**6, "day")])
            again.choose(available=["small"])
            seconds, size = time.perf_counter() - start, file.stat().st_size / count
            again.cancel(again.open()[-1])
            done += 1
            print(
                f"{count:,} requests: {seconds:.3f} s to start, {size:.0f} bytes a request",
                flush=True,
            )


def dead() -> None:
    """Sixty requests an hour; the arm that has most of them is dead for six hours."""
    pacer = Discounted.half_life(PricePacer(), 2000)
    for policy, favourite in ((OmegaUCB(), "small"), (pacer, "large")):
        now, rng = [0.0], random.Random(0)
        agent = gateway(None, clock=lambda now=now: now[0], budgets=[Budget(50.0, "day")])  # type: ignore[misc]
        agent.change(policy=policy)

        def serve(
            works: bool, agent: Any = agent, now: Any = now, rng: Any = rng, dies: str = favourite
        ) -> bool:
            now[0] += 60.0
            if (ticket := agent.choose()) is None:
                return False
            price, quality = PRICES[ticket.arm]
            if ticket.arm == dies and not works:
                agent.fail(ticket)
            else:
                agent.learn(ticket, reward=min(1.0, rng.gauss(quality, 0.05)), cost=price)
            return ticket.arm == dies

        before, failures = sum(serve(True) for _ in range(600)), 0
        while not agent.statistics()["arms"][favourite]["paused"]:
            failures += serve(False)
        tried = sum(serve(False) for _ in range(360))
        name = f"{favourite} ({type(policy).__name__})"
        print(
            f"{name}: {before} of 600 while well, paused after {failures} failures, then {tried} of 360 in six hours"
        )
        if tried > 5:
            raise SystemExit(1)


# --- how well it spends


def drifting(seed: int) -> Any:
    """(price, quality) of an arm at a time: both swing, each with two periods of 1 to 6 days."""
    rng = random.Random(1000 + seed)
    waves = {
        name: [(rng.uniform(1, 6), rng.uniform(0, 2 * math.pi)) for _ in range(4)]
        for name in PRICES
    }

    def at(name: str, when: float) -> tuple[float, float]:
        swings = [math.sin(2 * math.pi * when / DAY / days + shift) for days, shift in waves[name]]
        price, quality = PRICES[name]
        dearer, better = 0.25 * swings[0] + 0.15 * swings[1], 0.05 * swings[2] + 0.02 * swings[3]
        return price * math.exp(dearer), quality - 0.06 + better

    return at


def fluid(price: np.ndarray, quality: np.ndarray, budget: float) -> float:
    """The value of a day's linear program, ``[request, arm]``, by its dual: one price of money."""
    low, high = 0.0, 1e5
    for _ in range(60):
        middle = (low + high) / 2
        net = quality - middle * price
        best = net.argmax(1)
        spends = (np.take_along_axis(price, best[:, None], 1)[:, 0] * (net.max(1) > 0)).sum()
        low, high = (middle, high) if spends > budget else (low, middle)
    return high * budget + np.maximum((quality - high * price).max(1), 0).sum()


def pace(rate: int = 2000, days: int = 5) -> None:
    """What was served, in mean quality, over the program's value; of days 2 to 5 and of the first."""
    shares = [_drifting_days(seed, rate, days) for seed in range(3)]
    later, first = [statistics.mean(row[1:]) for row in shares], [row[0] for row in shares]
    numbers = (" ".join(f"{x:.4f}" for x in row) for row in (later, first))
    print("share of days 2 on: {}; of the first: {}".format(*numbers))
    if min(later) < 0.98:
        raise SystemExit(f"{min(later):.4f}: below 0.98")


def _drifting_days(seed: int, rate: int, days: int) -> list[float]:
    rng, draws, at, now = random.Random(seed), np.random.default_rng(seed), drifting(seed), [0.0]
    budget, level, names = 0.006 * rate, rate / sum(SHAPE), [*PRICES]
    settings = {"budgets": [Budget(budget, "day")], "key": jax.random.key(seed)}
    agent, share = gateway(None, clock=lambda: now[0], **settings), []
    waiting: list[tuple[float, int, float, float]] = []  # until when, ticket, quality, cost
    for day in range(days):
        when = np.concatenate(
            [h + draws.random(draws.poisson(x * level)) for h, x in enumerate(SHAPE)]
        )
        times = DAY * day + 3600.0 * np.sort(when)
        table = np.array([[at(name, t) for name in names] for t in times])
        value = 0.0
        for i, t in enumerate(times):
            now[0] = float(t)
            while waiting and waiting[0][0] <= t:
                _, id, reward, cost = heapq.heappop(waiting)
                agent.learn(id, reward=reward, cost=cost)
            if (ticket := agent.choose()) is None:
                continue
            price, quality = table[i, names.index(ticket.arm)]
            value += quality
            cost = min(15 * PRICES[ticket.arm][0], price * rng.gammavariate(2.0, 0.5))
            answer = min(1.0, max(0.0, rng.gauss(quality, 0.1)))
            heapq.heappush(waiting, (float(t) + 60.0, ticket.id, answer, cost))
        share.append(value / fluid(table[..., 0], table[..., 1], budget))
    return share


def money(days: int = 12, rate: int = 2000) -> None:
    """Days of requests whose bounds are so many times their means, of which 5 % are never answered.

    Those that are lost cost what the others cost, and whoever is billed pays it: "billed" is that
    over the budget. The first two days are left out.
    """
    print(
        "bound/mean  hold   lost   account  billed  worst day  overspent by account  turned away  quality a request"
    )
    for ratio in (5, 15, 50):
        for hold, charge in (("bound", "bound"), ("bound", "mean"), (0.99, "mean")):
            runs = [_days(ratio, hold, charge, days, rate, seed) for seed in range(3)]
            mean = [statistics.mean(x) for x in zip(*runs, strict=True)]
            error = statistics.stdev([x[0] for x in runs]) / len(runs) ** 0.5
            head = f"{ratio:10}  {hold!s:5}  {charge:5}  {mean[0]:.3f} ± {error:.3f}  {mean[1]:.3f}"
            worst = f"{max(x[2] for x in runs):.4f}  {max(x[3] for x in runs):.4f}"
            print(f"{head}  {worst}  {mean[4]:.3f}  {mean[5]:.3f}", flush=True)


def _days(ratio: int, hold: Any, charge: str, days: int, rate: int, seed: int) -> tuple[float, ...]:
    grant, rng, now = 0.006 * rate, random.Random(seed), [0.0]
    waiting: list[
        tuple[float, jb.live.Ticket, float, float]
    ] = []  # until when, ticket, quality, cost
    arms = {name: ratio * price for name, (price, _) in PRICES.items()}
    settings: dict[str, Any] = {
        "arms": arms,
        "budgets": [Budget(grant, "day")],
        "key": jax.random.key(seed),
    }
    agent = gateway(None, clock=lambda: now[0], hold=hold, lost=charge, **settings)
    billed, quality, refused, requests = dict.fromkeys(range(days), 0.0), 0.0, 0, 0
    for request in range(days * rate):
        now[0] = request * DAY / rate
        today = int(now[0] // DAY)
        while waiting and waiting[0][0] <= now[0]:
            _, ticket, reward, cost = waiting.pop(0)
            agent.learn(ticket, reward=reward, cost=cost)
        agent.expire(older_than=600.0, failed=False)
        ticket, counts = agent.choose(), today >= 2
        requests, refused = requests + counts, refused + (counts and ticket is None)
        if ticket is None:
            continue
        price, good = PRICES[ticket.arm]
        # Heavy: its standard deviation is 1.4 means
        cost = min(ratio * price, price * rng.gammavariate(0.5, 2.0))
        billed[today] += cost
        if rng.random() >= 0.05:
            reward = min(1.0, max(0.0, rng.gauss(good, 0.1)))
            quality += reward * counts
            waiting.append((now[0] + 120.0, ticket, reward, cost))
    account = {round(begin / DAY): paid for begin, paid in agent.charged()["budget"].items()}
    late = range(2, days - 1)  # the last day's answers are not all there
    return (
        statistics.mean(account[d] / grant for d in late),
        statistics.mean(billed[d] / grant for d in late),
        max(billed[d] / grant for d in late),
        max(agent.overspent().get("budget", {}).values(), default=0.0) / grant,
        refused / requests,
        quality / requests,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("item", choices=("speed", "latency", "restart", "dead", "pace", "money"))
    parser.add_argument("requests", nargs="?", type=int, default=1_000_000)
    options = parser.parse_args()
    if options.item == "restart":
        restart(options.requests)
    else:
        globals()[options.item]()
