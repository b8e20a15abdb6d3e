"""The service object: how fast it is, and a million requests under audit.

    python -m benchmarks.live speed               choose + learn in milliseconds, for several numbers of arms
    python -m benchmarks.live audit [REQUESTS]    random order, loss, duplicates, late costs, renewals: exact money
    python -m benchmarks.live arm                 an arm joins beyond the capacity: how long do others wait
    python -m benchmarks.live restart [REQUESTS]  bytes a request, seconds to start as the log grows (--picture PNG),
                                                  and an audit of the whole log
    python -m benchmarks.live money               what is spent and served where bounds are far above means

All take one core. The audit keeps an account of its own in whole ticks, and ends with an error if any budget of any
period paid more than it granted.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import statistics
import tempfile
import threading
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import jax
from matplotlib.figure import Figure

import jaxbandits as jb
from jaxbandits.apps.live import Agent, Budget, Settled, Traffic
from jaxbandits.policies import BudgetedThompson, OmegaUCB, PricePacer

ARMS = {"small": 0.01, "middle": 0.05, "large": 0.2}
BUDGETS = [
    Budget(20.0, 86400.0, name="day"),
    Budget(1.5, 3600.0, arms=("large", "middle"), name="provider"),
    Budget(4.0, 86400.0, carry_over=True, arms=("small",), name="rest"),
]
UNIT, ONE = 0.25, 1 << 24


def speed() -> None:
    """Median and 99 % of choose + learn, with a log."""
    for policy in (OmegaUCB(), BudgetedThompson()):
        for arms in (4, 20, 100):
            with tempfile.TemporaryDirectory() as folder:
                bounds, budgets = {f"arm{i}": 1.0 for i in range(arms)}, [Budget(1e6, 86400.0)]
                log, key = Path(folder) / "log", jax.random.key(0)
                agent = Agent(policy, arms=bounds, reward_bound=1.0, budgets=budgets, key=key, log=log)
                taken = []
                for i in range(3000):
                    began = time.perf_counter()
                    ticket = agent.choose()
                    agent.learn(ticket, reward=(i % 7) / 7, cost=0.5)
                    taken.append(1e3 * (time.perf_counter() - began))
                taken, name = sorted(taken[500:]), type(policy).__name__
                told = f"median {statistics.median(taken):.3f} ms, 99 % {taken[-25]:.3f} ms"
                print(f"{name}, {arms} arms: {told}, {1e3 * len(taken) / sum(taken):,.0f} pairs a second")


def arm() -> None:
    """The fifth arm makes a capacity of four double: what a thread that goes on meanwhile waits for its requests."""
    jax.config.update("jax_enable_compilation_cache", False)  # or there is nothing to compile
    with tempfile.TemporaryDirectory() as folder:
        arms, log = dict.fromkeys("abcd", 1.0), Path(folder) / "log"
        agent = Agent(OmegaUCB(), arms=arms, reward_bound=1.0, key=jax.random.key(0), log=log)
        waits: list[float] = []
        done = threading.Event()

        def work() -> None:
            while not done.is_set():
                began = time.perf_counter()
                agent.learn(agent.choose(), reward=0.5, cost=0.5)
                waits.append(time.perf_counter() - began)

        worker = threading.Thread(target=work)
        worker.start()
        began = time.perf_counter()
        agent.add_arm("e", 1.0)
        taken, served = time.perf_counter() - began, len(waits)
        done.set()
        worker.join()
        print(f"add_arm: {taken:.2f} s; {served} requests served meanwhile, the slowest in {1e3 * max(waits):.0f} ms")


def audit(requests: int) -> None:
    """Serve, and hold every period to its grant."""
    rng, now = random.Random(0), [0.0]
    agent = Agent(OmegaUCB(), arms=ARMS, reward_bound=1.0, budgets=BUDGETS, key=jax.random.key(0), clock=lambda: now[0])
    open_: list[jb.live.Ticket] = []
    lost: list[jb.live.Ticket] = []
    paid: dict[int, tuple[float, str, int]] = {}  # a request: decided, arm, ticks
    told: Counter[str] = Counter()

    def settle(ticket: jb.live.Ticket, reward: float | None) -> None:
        cost = rng.random() ** 2 * ARMS[ticket.arm]
        agent.learn(ticket, reward=reward, cost=cost)
        paid[ticket.id] = (*paid[ticket.id][:2], int(-(-Fraction(cost) * ONE // Fraction(UNIT))))

    began = time.perf_counter()
    for _ in range(requests):
        now[0] += rng.expovariate(1 / 30.0)
        ticket = agent.choose()
        told["asked" if ticket else "none"] += 1
        if ticket:
            open_.append(ticket)
            paid[ticket.id] = (now[0], ticket.arm, round(ticket.reserved / UNIT * ONE))
        while open_ and rng.random() < 0.7:
            ticket = open_.pop(rng.randrange(len(open_)))
            if (fate := rng.random()) < 0.03:
                continue  # it never answers, or after it was given up
            if fate < 0.08:
                agent.cancel(ticket)
                del paid[ticket.id]
                told["cancelled"] += 1
                continue
            settle(ticket, rng.random())
            told["learnt"] += 1
            if rng.random() < 0.1:
                with contextlib.suppress(jb.InputError):
                    agent.learn(ticket, reward=1.0, cost=0.0)
                    raise SystemExit(f"{ticket}: learnt twice")
        if rng.random() < 0.01:
            late = set(agent.expire(older_than=600.0))
            lost += sorted(late, key=lambda x: x.id)
            told["lost"] += len(late)
            open_ = [x for x in open_ if x not in late]
        if lost and rng.random() < 0.01:
            with contextlib.suppress(Settled):  # it is so old that it is forgotten
                settle(lost.pop(), rng.choice([None, 1.0]))
                told["late"] += 1
    taken = time.perf_counter() - began
    print(f"{requests:,} requests in {taken:.0f} s: {told}")
    for budget in BUDGETS:
        _hold(budget, paid, agent.charged()[budget.name])


def restart(requests: int, picture: str | None) -> None:
    """Bytes and seconds at 1, 2, 5, 10, … thousand requests; after each the same state goes on."""
    sizes, points = {step * 10**power for step in (1, 2, 5) for power in range(3, 9)} | {requests}, []
    rng, now, arms = random.Random(0), [0.0], {f"arm{i}": 1.0 for i in range(10)}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"

        def begin() -> Agent:
            budgets, traffic = [Budget(2000.0, "day")], Traffic([600] * 24)
            given: dict[str, Any] = {"budgets": budgets, "traffic": traffic, "clock": lambda: now[0]}
            key = jax.random.key(0)
            return Agent(PricePacer(), arms=arms, reward_bound=1.0, key=key, log=log, resume=True, **given)

        agent, taken = begin(), []
        for request in range(1, requests + 1):
            now[0] += rng.expovariate(1 / 6.0)
            began = time.perf_counter()
            if ticket := agent.choose():
                agent.learn(ticket, reward=rng.random(), cost=0.3 * rng.random())
            taken.append(time.perf_counter() - began)
            if request in sizes:
                agent.close()
                size = sum(part.stat().st_size for part in Path(folder).iterdir()) / request
                was, began = agent.digest(), time.perf_counter()
                agent = begin()
                again = time.perf_counter() - began
                if agent.digest() != was:
                    raise SystemExit(f"{request:,}: another state")
                print(f"{request:,} requests: {size:.0f} bytes each, {again:.2f} s to start", flush=True)
                points.append((request, again, size))
        agent.close()
        began = time.perf_counter()
        found = jb.live.audit(log)
        if found["problems"] or found["decisions"] != requests:
            raise SystemExit(f"the audit finds {found['decisions']:,} decisions, {found['problems']}")
        told = f"{found['outcomes']:,} outcomes, {found['segments']} segments in {time.perf_counter() - began:.0f} s"
        print(f"audit: {requests:,} decisions, {told}; overspent: {found['overspent']}")
    taken.sort()
    told = ", ".join(f"{100 * q:g} %: {1e3 * taken[int(q * len(taken))]:.2f} ms" for q in (0.5, 0.99, 0.9999))
    print(f"choose + learn: {told}, longest {1e3 * taken[-1]:.1f} ms")
    if picture:
        figure = Figure(figsize=(8.4, 3.4), layout="constrained")
        count, seconds, each = zip(*points, strict=True)
        panels = (("seconds to start", seconds), ("bytes a request", each))
        for axes, (what, values) in zip(figure.subplots(1, 2), panels, strict=True):
            axes.plot(count, values, marker="o", color="#0072B2")
            axes.set(xscale="log", xlabel="requests in the log", ylabel=what, ylim=(0, None))
            axes.grid(alpha=0.25)
        figure.savefig(picture, dpi=130)


PRICES = {"small": (0.0008, 0.70), "middle": (0.004, 0.82), "large": (0.02, 0.93)}  # mean cost, quality


def money(days: int = 12, rate: int = 2000) -> None:
    """Days of requests whose bounds are so many times their means, of which 5 % are never answered.

    Those that are lost cost what the others cost, and whoever is billed pays it: "billed" is that over the budget. The
    first two days are left out. "best" is the share of what a policy that is told all means could spend.
    """
    print("bound/mean  hold   lost   account  billed  worst day  overspent by account  turned away  quality a request")
    for ratio in (5, 15, 50):
        for hold, lost in (("bound", "bound"), ("bound", "mean"), (0.99, "mean")):
            told = [_days(ratio, hold, lost, days, rate, seed) for seed in range(3)]
            mean = [statistics.mean(x) for x in zip(*told, strict=True)]
            error = statistics.stdev([x[0] for x in told]) / len(told) ** 0.5
            head = f"{ratio:10}  {hold!s:5}  {lost:5}  {mean[0]:.3f} ± {error:.3f}  {mean[1]:.3f}"
            worst = f"{max(x[2] for x in told):.4f}  {max(x[3] for x in told):.4f}"
            print(f"{head}  {worst}  {mean[4]:.3f}  {mean[5]:.3f}", flush=True)


def _days(ratio: int, hold: float | str, lost: str, days: int, rate: int, seed: int) -> tuple[float, ...]:
    day, grant = 86400.0, 0.006 * rate
    rng, now = random.Random(seed), [0.0]
    waiting: list[tuple[float, jb.live.Ticket, float, float]] = []  # until when, ticket, quality, cost
    agent = Agent(
        PricePacer(),
        arms={name: ratio * price for name, (price, _) in PRICES.items()},
        reward_bound=1.0,
        budgets=[Budget(grant, "day")],
        traffic=Traffic([rate // 24] * 24),
        key=jax.random.key(seed),
        clock=lambda: now[0],
        hold=hold,
        lost=lost,
    )
    billed, quality, away, asked = dict.fromkeys(range(days), 0.0), 0.0, 0, 0
    for request in range(days * rate):
        now[0] = request * day / rate
        today = int(now[0] // day)
        while waiting and waiting[0][0] <= now[0]:
            _, ticket, brought, cost = waiting.pop(0)
            agent.learn(ticket, reward=brought, cost=cost)
        agent.expire(older_than=600.0)
        ticket = agent.choose()
        counts = today >= 2
        asked += counts
        away += counts and ticket is None
        if ticket is None:
            continue
        price, good = PRICES[ticket.arm]
        cost = min(ratio * price, price * rng.gammavariate(0.5, 2.0))  # heavy: its standard deviation is 1.4 means
        billed[today] += cost
        if rng.random() >= 0.05:
            brought = min(1.0, max(0.0, rng.gauss(good, 0.1)))
            quality += brought * counts
            waiting.append((now[0] + 120.0, ticket, brought, cost))
    account = {round(begin / day): paid for begin, paid in agent.charged()["budget"].items()}
    late = range(2, days - 1)  # the last day's answers are not all there
    over = agent.statistics()["budgets"]["budget"]["overspent"]
    return (
        statistics.mean(account[d] / grant for d in late),
        statistics.mean(billed[d] / grant for d in late),
        max(billed[d] / grant for d in late),
        max(over.values(), default=0.0) / grant,
        away / asked,
        quality / asked,
    )


def _hold(budget: Budget, paid: dict[int, tuple[float, str, int]], reported: dict[float, float]) -> None:
    by_period: Counter[int] = Counter()
    every = float(budget.every)
    for when, arm, amount in paid.values():
        if budget.arms is None or arm in budget.arms:
            by_period[int(when // every)] += amount
    granted, total, fullest = Fraction(budget.amount) / Fraction(UNIT) * ONE, 0, Fraction(0)
    for period, amount in sorted(by_period.items()):
        total += amount
        spent, most = (total, granted * (period + 1)) if budget.carry_over else (amount, granted)
        if spent > most:
            raise SystemExit(f"{budget.name}, period {period}: {spent} ticks spent of {most}")
        told = reported.get(period * every)  # of the last 1,000 periods
        if told is not None and amount != round(told / UNIT * ONE):
            raise SystemExit(f"{budget.name}, period {period}: the agent says another amount")
        fullest = max(fullest, Fraction(spent) / most)
    print(f"  {budget.name}: {len(by_period)} periods, none overspent, the fullest at {100 * float(fullest):.4f} %")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("item", choices=("speed", "arm", "audit", "restart", "money"))
    parser.add_argument("requests", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--picture", metavar="PNG", help="of restart")
    given = parser.parse_args()
    if given.item == "audit":
        audit(given.requests)
    elif given.item == "restart":
        restart(given.requests, given.picture)
    else:
        {"speed": speed, "arm": arm, "money": money}[given.item]()
