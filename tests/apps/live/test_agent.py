"""The service object: tickets, money, arms, files, threads, kills."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.apps.live import Agent, Budget
from jaxbandits.apps.live import log as logs
from jaxbandits.apps.live.state import State, of_one_setting
from jaxbandits.core import ticks
from jaxbandits.policies import (
    CUSUM,
    MUCB,
    BudgetedThompson,
    Discounted,
    FixedSplit,
    OmegaUCB,
    Restarting,
    Windowed,
)

ARMS = {"small": 0.01, "middle": 0.05, "large": 0.2}
DAY, HOUR = 86400.0, 3600.0
BUDGETS = [
    Budget(3.0, DAY, name="day"),
    Budget(0.5, HOUR, arms=("large", "middle"), name="provider"),
    Budget(1.0, DAY, carry_over=True, arms=("small",), name="rest"),
]


class Clock:
    """Time that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def made(clock: Callable[[], float], **changes: Any) -> Agent:
    given: dict[str, Any] = {"policy": OmegaUCB(), "arms": ARMS, "reward_bound": 2.0, "budgets": BUDGETS}
    given |= {"key": jax.random.key(4), "clock": clock} | changes
    return Agent(given.pop("policy"), **given)


def test_a_request_is_settled_once():
    agent = made(Clock())
    one, two, three = agent.choose(n=3)
    assert [x.arm for x in (one, two, three)] == ["small", "middle", "large"]  # not three times the same
    agent.learn(two, reward=1.0, cost=0.04)
    agent.cancel(three)
    for call, message in (
        (lambda: agent.learn(two, reward=1.0, cost=0.04), "ticket: 2 given; .* it was settled, or given up"),
        (lambda: agent.cancel(three), "ticket: 3 given; .* it was settled, or given up"),
        (lambda: agent.learn(77, cost=0.0), "ticket: 77 given; .* never given"),
        (lambda: agent.learn("2", cost=0.0), "ticket: '2' given; .* never given"),
        (lambda: agent.learn(one, cost=-0.01), "cost: -0.01 given; it must be from 0 to"),
        (lambda: agent.learn(one, cost=0.0, reward=2.5), "reward: 2.5 given; it must be from 0 to 2"),
        (lambda: agent.learn(one, cost=0.0, reward=1e-9), "reward: 1e-09 given; .* half a tick"),
        (lambda: agent.learn(one, cost=np.nan), "cost: nan given"),
    ):
        before = agent.digest()
        with pytest.raises(jb.InputError, match=message):
            call()
        assert agent.digest() == before
    assert [x.id for x in agent.open()] == [1] and agent._state.learnt.pulls.tolist() == [0, 1, 0, 0]
    agent.learn(1, cost=np.float32(2.9e-9))  # of no reward; so small a cost is a tick and not nothing
    assert agent._state.accounts[0].charged == {0: ticks.from_units(0.04 / 0.25).item() + 1}


def test_money_spent_answers_none_until_it_renews():
    clock = Clock()
    agent = made(clock, budgets=[Budget(0.3, DAY)], policy=MUCB())
    assert [x.arm if x else None for x in agent.choose(n=9)][:3] == ["small", "middle", "large"]
    while agent.choose():
        pass
    assert agent.renews_at() == DAY and agent.choose(available=["large"]) is None
    held = agent.left()["budget"]
    assert held < 0.01
    clock.now = 100.0
    late = agent.expire(older_than=50.0)
    assert len(late) == 6 and not agent.open() and agent.left()["budget"] == held  # what was held is spent
    agent.learn(late[2], reward=1.0, cost=0.05)  # an answer comes after all: the difference is free in its own period
    assert agent.left()["budget"] == pytest.approx(held + 0.15, abs=1e-6)
    clock.now = DAY + 1
    full = agent.left()["budget"]
    assert agent.choose() is not None
    agent.learn(late[1], reward=0.0, cost=0.01)
    assert full - agent.left()["budget"] < 0.21 and agent.renews_at() != DAY


def test_every_open_request_has_a_round_of_its_own():
    agent = made(Clock(), policy=BudgetedThompson(), budgets=())
    for ticket in agent.choose(n=12):
        agent.learn(ticket, reward=1.0, cost=0.005)
    assert len({x.arm for x in agent.choose(n=8)}) > 1


def test_arms_join_leave_and_come_back():
    agent = made(Clock(), budgets=())
    for name in "defgh":
        agent.add_arm(name, 0.1)
    assert agent._state.waiting.size == 8 and {x.arm for x in agent.choose(n=8)} == {*ARMS, *"defgh"}
    agent.remove_arm("small")
    assert "small" not in {x.arm for x in agent.choose(n=40)}
    for call, message in (
        (lambda: agent.remove_arm("small"), "arm: 'small' given; it must be one of middle, large"),
        (lambda: agent.add_arm("d", 0.1), "name: 'd' given"),
        (lambda: agent.add_arm("i", 0.3), "bound: 0.3 given; it must be from"),
        (lambda: agent.choose(available=["small"]), "arm: 'small' given"),
    ):
        with pytest.raises(jb.InputError, match=message):
            call()
    agent.add_arm("small", 0.02)
    assert agent.choose(available=["small"]).reserved == pytest.approx(0.02, abs=1e-7)
    with pytest.raises(jb.InputError, match=r"arms: one more given; weights has one value"):
        made(Clock(), policy=FixedSplit([1.0, 2.0, 3.0]), budgets=()).add_arm("d", 0.1)


def busy(agent: Agent, clock: Clock, requests: int, seed: int) -> dict[int, tuple[float, str, int]]:
    """Requests in any order: learnt, twice, given back, given up, answered after all. (decided, arm, ticks) of all."""
    rng, open_, lost, paid = random.Random(seed), [], [], {}
    unit = agent._state.unit

    def answer(ticket: jb.live.Ticket, reward: float | None, cost: float) -> None:
        agent.learn(ticket, reward=reward, cost=cost)
        paid[ticket.id] = (*paid[ticket.id][:2], -(-Fraction(cost) * ticks.ONE // Fraction(unit)))

    for _ in range(requests):
        clock.now += rng.expovariate(1 / 60.0)
        if (ticket := agent.choose()) is not None:
            open_.append(ticket)
            paid[ticket.id] = (clock.now, ticket.arm, round(ticket.reserved / unit * ticks.ONE))
        while open_ and rng.random() < 0.75:
            ticket = open_.pop(rng.randrange(len(open_)))
            what = rng.random()
            cost = rng.random() ** 2 * ARMS.get(ticket.arm, 0.05)
            if what < 0.05:
                agent.cancel(ticket)
                del paid[ticket.id]
            else:
                answer(ticket, rng.random(), cost)
                if what > 0.9:
                    with pytest.raises(jb.InputError, match="it was settled, or given up"):
                        agent.learn(ticket, reward=1.0, cost=0.0)
        if rng.random() < 0.02:
            late = agent.expire(older_than=600.0)
            lost += late
            open_ = [x for x in open_ if x not in late]
        if lost and rng.random() < 0.02:
            ticket = lost.pop(rng.randrange(len(lost)))
            cost = rng.random() * ARMS.get(ticket.arm, 0.05)
            answer(ticket, rng.choice([None, 1.0]), cost)
    return paid


def audit(agent: Agent, paid: dict[int, tuple[float, str, int]]) -> int:
    """Nothing is overspent in any period, to the tick, by an account of our own. Gives the number of periods."""
    seen = 0
    for j, budget in enumerate(BUDGETS):
        by_period: dict[int, int] = {}
        for time_, arm, amount in paid.values():
            if budget.arms is None or arm in budget.arms:
                period = int(time_ // budget.every)
                by_period[period] = by_period.get(period, 0) + int(amount)
        mine = {p: x for p, x in agent._state.accounts[j].charged.items() if x or p in by_period}
        assert mine == by_period, budget.name
        granted = Fraction(budget.amount) / Fraction(agent._state.unit) * ticks.ONE
        for period, amount in by_period.items():
            so_far = sum(x for p, x in by_period.items() if p <= period)
            assert so_far <= granted * (period + 1) if budget.carry_over else amount <= granted
        seen += len(by_period)
    return seen


def test_no_budget_is_overspent_whatever_happens():
    clock = Clock()
    agent = made(clock)
    paid = busy(agent, clock, 2000, seed=0)
    assert audit(agent, paid) > 10


def test_tickets_of_another_agent_and_clocks_that_say_no_time() -> None:
    clock, other = Clock(), Clock()
    agent, stranger = made(clock), made(other)
    other.now = 1.0
    mine, theirs = agent.choose(), stranger.choose()
    assert mine.id == theirs.id
    before = agent.digest()
    for odd in (theirs, dataclasses.replace(mine, arm="no such arm"), True, "1", 1.0):
        with pytest.raises(jb.InputError, match=r"^ticket: "):
            agent.learn(odd, cost=0.0)
    with pytest.raises(jb.InputError, match=r"^arm: 's' given; it must be one of small, middle, large"):
        agent.choose(available="small")
    for now in (math.nan, math.inf, None, "1"):
        clock.now = now  # type: ignore[assignment]
        for call in (agent.choose, lambda: agent.expire(older_than=1.0)):
            with pytest.raises(jb.InputError, match=r"^clock: "):
                call()
    assert agent.digest() == before
    agent.learn(mine, cost=0.0)


@pytest.mark.parametrize(
    "policy",
    [
        Windowed(BudgetedThompson(), window=50),
        Discounted.half_life(OmegaUCB(), 30),
        Restarting(OmegaUCB(), CUSUM(threshold=2.0, first=5), explore=0.05),
    ],
    ids=["window", "discount", "restarts"],
)
def test_what_forgets_serves_and_is_replayed(tmp_path: Path, policy: Any) -> None:
    """One back end's price drops to a tenth and comes back; arms join; the log gives the very state again."""
    clock, log, rng = Clock(), tmp_path / "log", random.Random(35)
    agent = made(clock, policy=policy, log=log, budgets=[Budget(9.0, DAY)])
    for request in range(300):
        clock.now += 60.0
        price = 0.1 if 100 <= request < 200 else 1.0
        ticket = agent.choose()
        assert ticket is not None
        cost = ARMS.get(ticket.arm, 0.05) * (price if ticket.arm == "large" else 1.0) * rng.random()
        agent.learn(ticket, reward=2.0 * (rng.random() < 0.5), cost=cost)
        if request == 250:
            for arm in range(8):  # more than there was room for
                agent.add_arm(f"new {arm}", 0.05)
    agent.close()
    again = Agent.from_log(log, clock=clock)
    assert again.digest() == agent.digest()
    for mine, must in zip(jax.tree.leaves(again._state.learnt), jax.tree.leaves(agent._state.learnt), strict=True):
        np.testing.assert_array_equal(mine, must)
    if isinstance(policy, Restarting):
        assert int(again._state.learnt.restarts) > 0


def test_an_empty_file_is_a_log_to_begin(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    agent = made(Clock(), log=log)
    agent.close()
    assert Agent.from_log(log).digest() == agent.digest()


@pytest.mark.parametrize("other", [b"my notes", b'{"do":"begin"}\n', b'{"do":"begin","format":2'])
def test_another_file_is_no_log_to_begin(tmp_path: Path, other: bytes) -> None:
    log = tmp_path / "notes"
    log.write_bytes(other)
    for call in (made, lambda clock, log: made(clock, log=log, resume=True), lambda clock, log: Agent.from_log(log)):
        with pytest.raises(jb.InputError, match=r"^log: "):
            call(Clock(), log=log)
    assert log.read_bytes() == other


def test_a_file_and_a_log_give_the_same_state(tmp_path: Path) -> None:
    clock, log, file = Clock(), tmp_path / "log", tmp_path / "agent.npz"
    agent = made(clock, log=log)
    busy(agent, clock, 150, seed=1)
    agent.save(file)
    busy(agent, clock, 50, seed=2)
    agent.add_arm("new", 0.1)
    agent.choose()
    with open(log, "ab") as torn:
        torn.write(b'{"do":"choose","t":1')
    assert Agent.load(file).digest() != agent.digest()
    with pytest.raises(jb.InputError, match=r"log: .* no other agent writes"):
        Agent.from_log(log)
    agent.close()
    with pytest.raises(OSError, match="the log is closed"):
        agent.cancel(agent.open()[0])
    for again in (lambda: Agent.load(log, log=log, clock=clock), lambda: Agent.from_log(log, clock=clock)):
        same = again()
        assert same.digest() == agent.digest()
        assert all(json.loads(line)["do"] for line in log.read_bytes().splitlines())
        same.close()
    for changes, message in (
        ({"reward_bound": 1.0}, r"its terms are others \(reward_bound\); it must be the log of this agent"),
        ({"key": jax.random.key(5), "start": 1.0}, r"others \(key, start\)"),
    ):
        with pytest.raises(jb.InputError, match=message):
            made(clock, log=log, resume=True, **changes)
    agent = made(clock, log=log, resume=True)  # an arm joined since
    assert agent.digest() == same.digest()
    assert re.fullmatch(r"<Agent: OmegaUCB\(rho=0.25\); arms: small, middle, large, new; \d+ open>", repr(agent))
    more = agent.choose(n=5)
    agent.close()
    assert Agent.from_log(log, clock=clock).digest() == agent.digest() and len(more) == 5


def test_files_of_another_agent_are_refused_by_name(tmp_path: Path) -> None:
    clock, log, file = Clock(), tmp_path / "log", tmp_path / "agent"
    agent = made(clock, log=log)
    agent.choose()
    agent.save(file)
    agent.close()
    made(clock, log=tmp_path / "other", reward_bound=1.0).close()
    state = jb.live.start(MUCB(), jb.environments.FiniteSpec(2))
    jb.live.save(tmp_path / "state.npz", state, policy=MUCB())
    for call, message in (
        (lambda: Agent.load(file, log=tmp_path / "other"), "log: .* a new file; an old one is continued"),
        (lambda: made(clock, log=log), "a new file; an old one is continued"),
        (lambda: Agent.load(tmp_path / "no"), r"log: .* \(No such file"),
        (lambda: Agent.load(tmp_path / "state.npz"), "line 1 .* is no event"),
        (lambda: Agent.from_log(log, budgets=[5.0]), "budgets: 5.0 given"),
    ):
        with pytest.raises(jb.InputError, match=message):
            call()
    again = Agent.load(file, log=tmp_path / "new", clock=clock)  # a log may begin with a saved state
    again.learn(again.choose(), reward=1.0, cost=0.0)
    again.change(policy=MUCB())  # it is taught by the log that this agent writes
    assert int(again._state.learnt.pulls.sum()) == 1
    again.close()
    assert Agent.from_log(tmp_path / "new", clock=clock).digest() == again.digest()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"policy": "ucb"}, "policy: 'ucb' given"),
        ({"policy": OmegaUCB(rho=[0.1, 0.2])}, "policy: .* one setting"),
        ({"policy": OmegaUCB(rho=-1.0)}, r"OmegaUCB.rho: -1.0 given"),
        ({"policy": jb.policies.Zooming(lipschitz=1.0)}, "policy: 'Zooming' given; it must be one for finitely many"),
        ({"policy": jb.policies.Guarded(OmegaUCB())}, "'no null"),
        ({"arms": {}}, "arms: {} given"),
        ({"arms": {"a": -1.0}}, r"arms\['a'\]: -1.0 given"),
        ({"unit": 0.1}, "unit: 0.1 given; it must be at least the largest bound"),
        ({"reward_bound": 0.0}, "reward_bound: 0.0 given"),
        ({"budgets": [5.0]}, r"budgets: 5.0 given"),
        ({"budgets": [Budget(1.0, DAY), Budget(2.0, DAY)]}, "of different names"),
        ({"budgets": [Budget(1e-12, DAY)]}, "budget.amount: 1e-12 given"),
        ({"budgets": [Budget(1.0, DAY, arms=("none",))]}, "'none' given; it must be one of small, middle, large"),
        ({"traffic": jb.live.Traffic([1, 2], slot=7.0)}, "traffic.slot: 7.0 given; it must be a divisor"),
        ({"key": 1}, "key: 1 given"),
    ],
)
def test_an_agent_is_checked(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(jb.InputError, match=message):
        made(Clock(), **changes)


def crowd(threads: int, requests: int) -> None:
    clock = Clock()
    agent, problems, taken = made(clock), [], []

    def serve(seed: int) -> None:
        rng, mine = random.Random(seed), []
        try:
            for i in range(requests):
                clock.now += 1.0  # not exact between threads, and need not be
                if (ticket := agent.choose()) is not None:
                    mine.append(ticket)
                if mine and rng.random() < 0.9:
                    ticket = mine.pop(rng.randrange(len(mine)))
                    agent.learn(ticket, reward=rng.random(), cost=rng.random() * ARMS[ticket.arm])
                    taken.append(ticket.id)
                if i % 97 == 0:
                    assert all(x >= 0 for x in agent.left().values())
            for ticket in mine:
                agent.learn(ticket, reward=0.5, cost=0.0)
                taken.append(ticket.id)
        except Exception as problem:
            problems.append(problem)

    workers = [threading.Thread(target=serve, args=(seed,)) for seed in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not problems, problems[0]
    assert len(set(taken)) == len(taken) == int(np.asarray(agent._state.learnt.pulls).sum())
    assert agent._state.round == threads * requests and not agent.open()
    assert not agent._state.waiting.any()
    for j, budget in enumerate(BUDGETS):
        amount = Fraction(budget.amount) / Fraction(agent._state.unit) * ticks.ONE
        paid = agent._state.accounts[j].charged
        periods = max(paid, default=0) + 1
        assert sum(paid.values()) <= amount * periods if budget.carry_over else max(paid.values()) <= amount


@pytest.mark.parametrize("requests", [60, pytest.param(10_000, marks=pytest.mark.integration)])
def test_eight_threads_share_an_agent(requests: int) -> None:
    crowd(8, requests)


CHILD = """
import sys, random, jax, jaxbandits as jb
from tests.apps.live.test_agent import ARMS, BUDGETS, Clock, made
from jaxbandits.apps.live import Agent, log as logs
from pathlib import Path
logs._LEAST, logs._TIMES = 5000, 0  # so that some are killed between two segments
log, said, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
clock, rng = Clock(), random.Random(seed)
clock.now = 5000.0 * seed
agent = Agent.from_log(log, clock=clock) if log.exists() and log.stat().st_size else made(clock, log=log)
print("ready", flush=True)
with open(said, "a") as out:
    while True:
        clock.now += 20.0
        ticket = agent.choose()
        if agent.open() and rng.random() < 0.8:
            late = rng.choice(agent.open())
            agent.learn(late, reward=rng.random(), cost=rng.random() * ARMS[late.arm])
        if rng.random() < 0.05:
            agent.expire(older_than=300.0)
        print(agent._state.events, agent.digest(), file=out, flush=True)
"""


@pytest.mark.integration
def test_twenty_kills_lose_nothing(tmp_path: Path) -> None:
    """After each kill -9 the log gives the very states that the dead process said it was in, and is continued."""
    log, said, rng = tmp_path / "log", tmp_path / "said", random.Random(0)
    for kill in range(20):
        command = [sys.executable, "-c", CHILD, str(log), str(said), str(kill)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3])
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        time.sleep(rng.uniform(0.05, 0.4))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
    whole = [line.split() for line in said.read_text().splitlines()]
    told = {int(x[0]): x[1] for x in whole if len(x) == 2 and len(x[1]) == 64}
    assert len(told) > 100
    same = 0
    for segment, (begin, *events) in logs.segments(log):
        state = State(of_one_setting(logs.policy_of(begin["terms"]["policy"], None)), begin)
        for number, event in enumerate(events, start=2):
            state.replay(event, number, check=True)
            if state.events in told:
                assert state.digest() == told[state.events], (segment, number)
                same += 1
    assert same == len(told) and Agent.from_log(log).digest() == state.digest()
