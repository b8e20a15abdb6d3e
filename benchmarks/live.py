"""The service object: how fast it is, and a million requests under audit.

    python -m benchmarks.live speed               choose + learn in milliseconds, for several numbers of arms
    python -m benchmarks.live audit [REQUESTS]    random order, loss, duplicates, late costs, renewals: exact money

Both take one core. The audit keeps an account of its own in whole ticks, and ends with an error if any budget of any
period paid more than it granted.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import statistics
import tempfile
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import jax

import jaxbandits as jb
from jaxbandits.live import Agent, Budget
from jaxbandits.policies import BudgetedThompson, OmegaUCB

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
                print(f"{name}, {arms} arms: median {statistics.median(taken):.3f} ms, 99 % {taken[-25]:.3f} ms")


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
            settle(lost.pop(rng.randrange(len(lost))), rng.choice([None, 1.0]))
            told["late"] += 1
    taken = time.perf_counter() - began
    print(f"{requests:,} requests in {taken:.0f} s: {told}")
    for budget in BUDGETS:
        _hold(budget, paid, agent.charged()[budget.name])


def _hold(budget: Budget, paid: dict[int, tuple[float, str, int]], reported: dict[float, float]) -> None:
    by_period: Counter[int] = Counter()
    for when, arm, amount in paid.values():
        if budget.arms is None or arm in budget.arms:
            by_period[int(when // budget.every)] += amount
    granted, total, fullest = Fraction(budget.amount) / Fraction(UNIT) * ONE, 0, Fraction(0)
    for period, amount in sorted(by_period.items()):
        total += amount
        spent, most = (total, granted * (period + 1)) if budget.carry_over else (amount, granted)
        if spent > most:
            raise SystemExit(f"{budget.name}, period {period}: {spent} ticks spent of {most}")
        if amount != round(reported[period * budget.every] / UNIT * ONE):
            raise SystemExit(f"{budget.name}, period {period}: the agent says another amount")
        fullest = max(fullest, Fraction(spent) / most)
    print(f"  {budget.name}: {len(by_period)} periods, none overspent, the fullest at {100 * float(fullest):.4f} %")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("item", choices=("speed", "audit"))
    parser.add_argument("requests", nargs="?", type=int, default=1_000_000)
    given = parser.parse_args()
    speed() if given.item == "speed" else audit(given.requests)
