"""Money that is true, days of a place, clocks that jump, numbers to look at, other processes."""

from __future__ import annotations

import datetime
import os
import random
import socket
import subprocess
import sys
import threading
import time
from decimal import Decimal
from multiprocessing import AuthenticationError
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.apps._cli.console import main
from jaxbandits.apps.live import Agent, Budget, Misuse, Settled, Traffic, Unpayable
from jaxbandits.apps.live.budgets import Account, Arm, Pace
from jaxbandits.apps.live.clock import Clock as Reading
from jaxbandits.apps.live.clock import Periods
from jaxbandits.core import ticks
from jaxbandits.policies import MUCB, PricePacer
from tests.apps.live.test_agent import DAY, HOUR, Clock, made

ROOT = Path(__file__).parents[3]

# --- money


def test_a_cost_above_the_bound_is_booked_learnt_and_told(caplog: pytest.LogCaptureFixture) -> None:
    agent = made(Clock(), budgets=[Budget(0.31, DAY, name="day")], arms={"a": 0.1, "b": 0.2})
    one, two = agent.choose(n=2)
    agent.learn(one, reward=1.0, cost=0.15)
    assert "cost 0.15, above its bound of 0.1" in caplog.text
    agent.learn(two, reward=1.0, cost=0.6)  # above the unit, 0.25
    told = agent.statistics()
    assert told["arms"]["a"]["cost"] == pytest.approx(0.15) and told["arms"]["b"]["cost"] == pytest.approx(0.6)
    assert [told["arms"][name]["above"] for name in "ab"] == [1, 1]
    assert told["budgets"]["day"]["overspent"] == {0.0: pytest.approx(0.44, abs=1e-6)}
    assert agent.left()["day"] == pytest.approx(-0.44, abs=1e-6) and agent.choose() is None
    cost = ticks.join(agent._state.learnt.cost)[:2] / ticks.ONE * 0.25
    np.testing.assert_allclose(cost, [0.15, 0.25], atol=1e-6)  # the policy sees at most the unit
    with pytest.raises(Unpayable, match="no arm can be paid") as refused:
        agent.choose(must=True)
    assert refused.value.renews_at == DAY


def test_open_requests_are_held_by_the_budgets_that_pay_for_them_now() -> None:
    """Other periods, other arms: what is held moves with its request, what is settled stays in the running period."""
    clock = Clock()
    clock.now = 10 * HOUR
    agent = made(clock, arms={"a": 0.1, "b": 0.2}, budgets=[Budget(5.0, DAY, name="day")])
    early, other = agent.choose(n=2)
    agent.learn(agent.choose(), reward=1.0, cost=0.05)
    clock.now = 14 * HOUR
    agent.change(budgets=[Budget(1.0, HOUR, name="day"), Budget(1.0, DAY, arms=("b",), name="b")])
    assert [early.arm, other.arm] == ["a", "b"]
    near = {name: {at: pytest.approx(x, abs=1e-6) for at, x in rows.items()} for name, rows in agent.charged().items()}
    assert near == {"day": {14 * HOUR: 0.05, 10 * HOUR: 0.3}, "b": {0.0: 0.2}}
    for ticket, cost in ((early, 0.01), (other, Decimal("0.02"))):
        agent.learn(ticket, reward=1.0, cost=cost)
    near = {name: {at: pytest.approx(x, abs=1e-6) for at, x in rows.items()} for name, rows in agent.charged().items()}
    assert near == {"day": {14 * HOUR: 0.05, 10 * HOUR: 0.03}, "b": {0.0: 0.02}}


def test_a_free_arm_is_served_when_the_money_is_gone() -> None:
    agent = made(Clock(), budgets=[Budget(0.11, DAY)], arms={"local": 0.0, "large": 0.1}, policy=MUCB())
    served = [ticket.arm for ticket in agent.choose(n=9)]
    assert served.count("large") == 1 and served.count("local") == 8
    for ticket in agent.open():
        agent.learn(ticket, reward=1.0, cost=0.0 if ticket.arm == "local" else 0.1)
    assert agent.statistics()["arms"]["local"]["cost"] == 0.0
    assert made(Clock(), budgets=(), arms={"one": 0.0, "two": 0.0}).choose() is not None


def test_a_quantile_is_of_the_arms_own_costs_and_rounded_up_by_at_most_an_eighth() -> None:
    rng = np.random.default_rng(0)
    costs = np.ceil(rng.gamma(2.0, 2.0**17, 3000)).astype(int)
    arm = Arm("a", ticks.ONE)
    for seen, cost in enumerate(costs, start=1):
        arm.learn(None, int(cost))
        assert seen >= 100 or arm.held(0.99) == ticks.ONE  # not before one of them is expected above it
    for q in (0.5, 0.9, 0.99):
        exact = np.sort(costs)[int(np.ceil(q * costs.size)) - 1]
        assert exact <= arm.held(q) <= exact * 1.13 + 1, q
    assert arm.held("bound") == ticks.ONE
    for cost in (0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 1000):
        one = Arm("b", ticks.ONE)
        for _ in range(4096 if cost == 9 else 10):  # counts are halved at 4,096
            one.learn(None, cost)
        assert cost <= one.held(0.5) <= cost * 1.125 + 1


def test_a_period_is_held_against_what_it_was_granted_then(tmp_path: Path) -> None:
    clock, log = Clock(), tmp_path / "log"
    agent = made(clock, arms={"a": 1.0}, budgets=[Budget(3.0, DAY, name="day")], log=log)
    for day, (amount, costs) in enumerate([(3.0, (1.0, 1.0, 1.0)), (1.0, (1.0,)), (2.0, (3.0,)), (9.0, ())]):
        clock.now = day * DAY + 10.0
        agent.change(budgets=[Budget(amount, DAY, name="day")])
        for cost in costs:
            agent.learn(agent.choose(must=True), reward=1.0, cost=cost)
    over = {2 * DAY: pytest.approx(1.0, abs=1e-6)}  # the third day alone, whatever days are granted before and after
    assert agent.statistics()["budgets"]["day"]["overspent"] == over
    assert agent.left()["day"] == pytest.approx(9.0, abs=1e-6)
    agent.learn(agent.choose(), reward=1.0, cost=1.0)
    agent.change(budgets=[Budget(0.5, DAY, name="day")])  # granted less than it has paid: no request was to blame
    assert agent.left()["day"] == pytest.approx(-0.5, abs=1e-6)
    assert agent.statistics()["budgets"]["day"]["overspent"] == over == jb.live.audit(log)["overspent"]["day"]
    assert main(["audit", str(log)]) == 1
    agent.remove_arm("a")
    with pytest.raises(Unpayable, match="there is no arm"):
        agent.choose(must=True)


def test_what_was_carried_over_was_not_overspent() -> None:
    clock = Clock()
    agent = made(clock, arms={"a": 1.0}, budgets=[Budget(2.0, DAY, carry_over=True, name="day")])
    for day, pulls in enumerate((1, 3, 2)):  # the second day spends what the first one left
        clock.now = day * DAY + 10.0
        for _ in range(pulls):
            agent.learn(agent.choose(must=True), reward=1.0, cost=1.0)
    agent.change(budgets=[Budget(2.0, DAY, name="day")])
    assert agent.statistics()["budgets"]["day"]["overspent"] == {}


def test_holding_a_quantile_frees_money_and_says_what_is_at_risk() -> None:
    clock, rng = Clock(), random.Random(0)
    agent = made(clock, arms={"a": 1.0}, budgets=[Budget(50.0, DAY, name="day")], hold=0.9)
    for _ in range(200):
        agent.learn(agent.choose(), reward=1.0, cost=0.01 + 0.04 * rng.random())
    ticket = agent.choose()
    assert 0.045 < ticket.reserved < 0.06
    risk = agent.statistics()["budgets"]["day"]["at_risk"]
    assert risk == pytest.approx(1.0 - ticket.reserved, abs=1e-6)
    agent.learn(ticket, reward=1.0, cost=0.9)
    assert agent.statistics()["budgets"]["day"]["overspent"] == {}


def test_lost_requests_are_charged_the_mean_of_their_arm() -> None:
    clock = Clock()
    agent = made(clock, arms={"a": 1.0}, budgets=[Budget(50.0, DAY, name="day")], lost="mean")
    unknown = agent.choose()
    clock.now = 10.0
    (late,) = agent.expire(older_than=5.0)
    assert late == unknown and agent.left()["day"] == pytest.approx(49.0)  # nothing is known: the bound
    for cost in (0.25, 0.75, 0.5):
        agent.learn(agent.choose(), reward=1.0, cost=cost)
    agent.choose()
    clock.now = 19.0
    (late,) = agent.expire(older_than=5.0)
    assert agent.left()["day"] == pytest.approx(50.0 - 1.0 - 1.5 - 0.5)
    agent.learn(late.id, reward=1.0, cost=0.1)
    assert agent.left()["day"] == pytest.approx(50.0 - 1.0 - 1.5 - 0.1)
    clock.now = 21.0
    agent.expire(older_than=5.0)  # the first is more than twice as old: forgotten
    with pytest.raises(Settled):
        agent.learn(unknown.id, reward=1.0, cost=0.1)
    told = agent.statistics()
    assert (told["late"], told["arms"]["a"]["lost"], len(agent._state.lost)) == (1, 2, 0)


# --- time


def test_days_weeks_and_months_are_those_of_the_place() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    rng = random.Random(0)
    for _ in range(500):
        now = rng.uniform(0, 4e9)
        date = datetime.datetime.fromtimestamp(now, berlin)
        midnight = date.replace(hour=0, minute=0, second=0, microsecond=0)
        begins = {
            "day": midnight,
            "week": midnight.replace(tzinfo=None) - datetime.timedelta(days=date.weekday()),
            "month": midnight.replace(day=1),
        }
        for every, begin in begins.items():
            periods = Periods(every, "Europe/Berlin", 0.0)
            number = periods.at(now)
            assert periods.begin(number) == begin.replace(tzinfo=berlin).timestamp()
            assert periods.begin(number) <= now < periods.begin(number + 1)
            assert periods.at(periods.begin(number)) == number
    for zone in ("Mars/Base", "", 3):
        with pytest.raises(jb.InputError, match=r"^day.zone: .* the name of a time zone"):
            made(Clock(), budgets=[Budget(1.0, "day", name="day", zone=zone)])
    with pytest.raises(jb.InputError, match=r"^day.every: 'year' given; .* one of day, week, month"):
        made(Clock(), budgets=[Budget(1.0, "year", name="day")])


def test_a_days_budget_renews_at_midnight_there() -> None:
    clock = Clock()
    clock.now = datetime.datetime(2026, 3, 28, 23, 30, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()
    agent = made(clock, arms={"a": 1.0}, budgets=[Budget(1.0, "day", zone="Europe/Berlin")])
    assert agent.choose() is not None and agent.choose() is None
    assert agent.renews_at() == clock.now + 1800.0
    clock.now += 1800.0
    assert agent.choose() is not None and agent.renews_at() == clock.now + 23 * HOUR  # the clocks go forward


def test_requests_expected_of_a_day_with_23_hours() -> None:
    start = datetime.datetime(2026, 3, 29, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()
    pace = Pace(Traffic([*range(24)], zone="Europe/Berlin"), 0.0)
    account = Account(Budget(1.0, "day", zone="Europe/Berlin"), 0.0, 1.0)
    for hour in range(23):
        now = start + hour * HOUR + 60.0
        left, total = pace.ahead([account], now)
        there = hour + (hour >= 2)  # from 2:00 on the clocks show one hour more
        assert (int(left[0]), int(total[0])) == (max(sum(range(there, 24)), 1), sum(range(24)))


def test_a_wrong_reading_is_refused_and_the_next_one_goes_on(tmp_path: Path) -> None:
    clock = Clock()
    agent = made(clock, log=tmp_path / "log", tolerance=HOUR)
    clock.now = 5.0
    assert agent.choose() is not None
    before = agent.digest()
    for wrong in (5.0 + 10 * 365 * DAY, -2 * HOUR, 1e300, -1e12):
        clock.now = wrong
        for call in (agent.choose, agent.left, lambda: agent.expire(older_than=1.0)):
            with pytest.raises(Misuse, match=r"^clock: "):
                call()
    clock.now = 4.0  # a little back: it stands
    assert agent.digest() == before and agent.choose().time == 5.0
    clock.now = 90 * DAY
    agent.resume()  # it is right: nobody came for so long
    assert agent.choose().time == 90 * DAY
    clock.now = 60.0
    agent.resume()  # it was wrong after all
    assert agent.choose().time == 60.0
    agent.close()
    assert Agent.from_log(tmp_path / "log", clock=clock).digest() == agent.digest()
    assert jb.live.audit(tmp_path / "log")["problems"] == []


def test_the_systems_clock_is_held_against_the_time_that_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    real, passed = [1e9], [50.0]
    monkeypatch.setattr(time, "time", lambda: real[0])
    monkeypatch.setattr(time, "monotonic", lambda: passed[0])
    clock = Reading(time.time, None)
    assert clock.read(-np.inf) == 1e9
    real[0], passed[0] = 1e9 + 30 * DAY, 50.0 + 30 * DAY  # nothing happened for a month
    assert clock.read(1e9) == real[0]
    real[0] += 2 * HOUR
    with pytest.raises(Misuse, match="7200 s ahead of the last event"):
        clock.read(1e9 + 30 * DAY)


# --- to be seen, and from elsewhere


def test_statistics_are_those_of_an_account_of_our_own() -> None:
    clock, rng, seen = Clock(), random.Random(1), []
    pacer = PricePacer(start=0.5)
    agent = made(clock, policy=pacer, traffic=Traffic([40] * 24), budgets=[Budget(9.0, DAY, name="day")])
    for _ in range(300):
        clock.now += 60.0
        if (ticket := agent.choose()) is not None:
            cost, reward = rng.random() * ticket.reserved, 2.0 * rng.random()
            agent.learn(ticket, reward=reward, cost=cost)
            seen.append((ticket.arm, reward, cost))
    told = agent.statistics()
    for name, row in told["arms"].items():
        mine = np.array([(reward, cost) for arm, reward, cost in seen if arm == name])
        assert row["pulls"] == len(mine)
        for column, what in enumerate(("reward", "cost")):
            error = mine[:, column].std(ddof=1) / np.sqrt(len(mine))
            np.testing.assert_allclose([row[what], row[f"{what}_error"]], [mine[:, column].mean(), error], rtol=1e-4)
    budget = told["budgets"]["day"]
    assert budget["charged"] == pytest.approx(sum(cost for *_, cost in seen), abs=1e-4)
    assert budget["left"] == pytest.approx(9.0 - budget["charged"]) and budget["price"] > 0
    assert told["requests"] == 300 == told["turned_away"] + len(seen)


def test_prometheus_reads_the_statistics() -> None:
    client = pytest.importorskip("prometheus_client")
    agent, registry = made(Clock()), client.CollectorRegistry()
    jb.live.prometheus(agent, registry)
    agent.learn(agent.choose(), reward=1.0, cost=0.005)
    text = client.generate_latest(registry).decode()
    assert 'jaxbandits_arm_pulls_total{arm="small"} 1.0' in text and "jaxbandits_requests_total 1.0" in text
    assert "# TYPE jaxbandits_turned_away_total counter" in text and "# TYPE jaxbandits_open gauge" in text
    assert 'jaxbandits_budget_overspent{budget="day"} 0.0' in text and "jaxbandits_budget_price{" not in text


def test_prometheus_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(jb.InputError, match=r"pip install 'jaxbandits\[prometheus\]'"):
        jb.live.prometheus(made(Clock()))


def test_many_threads_ask_an_agent_elsewhere(tmp_path: Path) -> None:
    agent, address = made(Clock(), log=tmp_path / "log"), str(tmp_path / "agent")
    given: dict[str, Any] = {"target": jb.live.serve, "args": (agent, address), "kwargs": {"key": b"k"}, "daemon": True}
    threading.Thread(**given).start()
    elsewhere = jb.live.connect(address, key=b"k")

    def work() -> None:
        for _ in range(20):
            if (ticket := elsewhere.choose()) is not None:
                elsewhere.learn(ticket, reward=1.0, cost=0.001)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert elsewhere.statistics()["requests"] == 80 and elsewhere.open() == []
    assert agent.statistics()["requests"] == 80
    for call, error in (
        (lambda: elsewhere.learn(1, cost=0.0), Settled),
        (lambda: elsewhere.learn(99, cost=0.0), Misuse),
        (lambda: elsewhere.choose(available=["none"]), Misuse),
        (lambda: elsewhere.save("x"), AttributeError),
        (lambda: jb.live.connect(address, key=b"other").choose(), AuthenticationError),
    ):
        with pytest.raises(error):
            call()
    with pytest.raises(jb.InputError, match=r"address: .* one that no other agent serves"):
        jb.live.serve(agent, address, key=b"k")
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(OSError, match="in use"):
        jb.live.serve(agent, str(tmp_path / "notes"), key=b"k")
    assert (tmp_path / "notes").read_text() == "mine"
    while elsewhere.choose():
        pass
    with pytest.raises(Unpayable) as refused:
        elsewhere.choose(must=True)
    assert refused.value.renews_at in (HOUR, DAY)
    assert os.path.exists(address)
    with socket.socket(fileno=os.dup(elsewhere._mine.line.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)  # the connection is lost: a new one is made
    assert elsewhere.left() == agent.left()


SERVER = """
import sys, time
from tests.apps.live.test_agent import made
import jaxbandits as jb
began = time.monotonic()
agent = made(lambda: float(sys.argv[3]) + 600.0 * (time.monotonic() - began), log=sys.argv[1], resume=True)
jb.live.serve(agent, sys.argv[2], key=b"k")
"""


@pytest.mark.integration
def test_a_served_agent_is_killed_twice_and_nobody_notices(tmp_path: Path) -> None:
    log, address, told = tmp_path / "log", str(tmp_path / "agent"), []
    elsewhere, done = jb.live.connect(address, key=b"k", patience=60.0), threading.Event()

    def process(now: float) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", SERVER, str(log), address, str(now)], cwd=ROOT)

    def work() -> None:
        while not done.is_set():
            if (ticket := elsewhere.choose()) is not None:
                elsewhere.learn(ticket, reward=1.0, cost=0.6 * ticket.reserved)
                told.append(ticket.id)

    workers = [threading.Thread(target=work) for _ in range(4)]
    child = process(0.0)
    for worker in workers:
        worker.start()
    for kill in (1, 2):
        while len(told) < 150 * kill:
            time.sleep(0.05)
        child.kill()
        child.wait()
        child = process(DAY * kill)
    while len(told) < 450:
        time.sleep(0.05)
    done.set()
    for worker in workers:
        worker.join()
    child.kill()
    child.wait()
    found = jb.live.audit(log)
    assert found["problems"] == [] == list(found["overspent"]) and found["outcomes"] >= len(set(told)) == len(told)
    learnt = {event["id"] for event in jb.live.events(log) if event["do"] == "learn"}
    assert learnt >= set(told) and len(learnt) == found["outcomes"]


def test_an_arm_joins_while_others_are_served() -> None:
    """The new program is compiled beside; no request waits for it."""
    agent = made(Clock(), budgets=())
    for name in "abcde":  # the capacity doubles
        agent.add_arm(name, 0.1)
    waits: list[float] = []
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            began = time.perf_counter()
            agent.learn(agent.choose(), reward=1.0, cost=0.001)
            waits.append(time.perf_counter() - began)

    worker = threading.Thread(target=work)
    worker.start()
    held: list[bool] = []
    compile_ = agent._state.compile

    def compiled(room: int) -> None:
        held.append(agent._lock._is_owned())  # type: ignore[attr-defined]
        time.sleep(0.3)
        compile_(room)

    agent._state.compile = compiled  # type: ignore[method-assign]
    agent.add_arm("f", 0.1)
    before = len(waits)
    done.set()
    worker.join()
    assert held[0] is False and before > 20
    assert {ticket.arm for ticket in agent.choose(n=60)} >= {"f"}


def test_money_for_one_arm_is_money() -> None:
    """A dear arm that cannot be paid does not close the service; a policy that rests says so."""
    clock = Clock()
    budgets = [Budget(1.0, DAY, name="day"), Budget(0.5, 2 * DAY, arms=("large",), name="large")]
    agent = made(clock, arms={"small": 0.1, "large": 0.9}, budgets=budgets, policy=MUCB())
    assert agent.choose(available=["large"]) is None and agent.renews_at() is None
    with pytest.raises(Unpayable, match="no arm can be paid") as refused:
        agent.choose(available=["large"], must=True)
    assert refused.value.renews_at == 2 * DAY
    while agent.choose():
        pass
    assert agent.renews_at() == DAY  # the small one can be paid then


def test_what_is_lost_is_charged_its_bound_though_less_was_held() -> None:
    clock = Clock()
    agent = made(clock, arms={"a": 0.2}, budgets=[Budget(100.0, DAY, name="day")], hold=0.9)
    for ticket in agent.choose(n=50):
        agent.learn(ticket, reward=1.0, cost=0.01)
    before, ticket = agent.left()["day"], agent.choose()
    assert ticket.reserved < 0.02
    clock.now = 100.0
    assert [x.id for x in agent.expire(older_than=50.0)] == [ticket.id]
    assert before - agent.left()["day"] == pytest.approx(0.2, abs=1e-6)
    agent.learn(ticket, reward=1.0, cost=0.05)
    assert before - agent.left()["day"] == pytest.approx(0.05, abs=1e-6)


def test_a_restart_with_a_larger_bound_makes_the_unit_larger(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock, log = Clock(), tmp_path / "log"
    how = {"log": log, "budgets": [Budget(9.0, DAY, name="day")]}
    agent = made(clock, arms={"a": 0.1, "b": 0.1}, **how)
    agent.learn(agent.choose(), reward=1.0, cost=0.12)
    assert "above its bound" in caplog.text
    agent.close()
    caplog.clear()
    again = made(clock, arms={"a": 0.1, "b": 0.6}, resume=True, **how)
    assert again.statistics()["arms"]["b"]["bound"] == pytest.approx(0.6) and again.left()["day"] == pytest.approx(
        8.88, abs=1e-6
    )
    assert "above its bound" not in caplog.text  # that was told when it happened
    again.change(budgets=[Budget(9.0, DAY, name="money")])  # another name, and nothing else
    assert again.left() == {"money": pytest.approx(8.88, abs=1e-6)} and not caplog.text
    again.change(budgets=[Budget(8.0, DAY, name="day")])
    assert "['money'] are no more" in caplog.text and again.left() == {"day": 8.0}
    for wrong, message in (({"traffic": [20] * 24}, "a jb.live.Traffic"), ({"traffic": 3}, "a jb.live.Traffic")):
        with pytest.raises(jb.InputError, match=message):
            made(clock, arms={"a": 0.1}, budgets=(), **wrong)
