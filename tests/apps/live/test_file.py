"""The file of an agent: processes that die, disks that are full, calls that are cut short, audits,
other terms.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.apps._cli.console import main
from jaxbandits.apps.live import Agent, Broken, Budget, ledger
from jaxbandits.policies import (
    CUSUM,
    MUCB,
    BudgetedThompson,
    FixedSplit,
    OmegaUCB,
    PricePacer,
    Restarting,
    SoftElim,
)
from tests.apps.live.test_agent import DAY, HOUR, Clock, busy, new_agent, state

ROOT = Path(__file__).parents[3]
LIVE = str(Path(ledger.__file__).parent)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where no agent is yet."""
    return tmp_path / "agent.db"


# --- going on


def test_an_agent_goes_on_where_the_last_one_ended(file: Path) -> None:
    clock = Clock()
    agent = new_agent(clock, file=file)
    modes = [stat.S_IMODE(Path(f"{file}{end}").stat().st_mode) for end in ("", "-wal")]
    assert modes == [0o600, 0o600]
    busy(agent, clock, 150, seed=1)
    before = state(agent)
    again = new_agent(clock, file=file)
    assert state(again) == before == state(Agent.load(file, clock=clock))
    again.change(arms={"new": 0.1, "small": None}, hold=0.9, budgets=[Budget(2.0, DAY, name="day")])
    # It has heard of it
    tickets = agent.choose(n=4)
    assert tickets[0].id == again.open()[-4].id and "new" in repr(agent)
    assert "small" not in {ticket.arm for ticket in tickets}
    again.change(arms={"small": 0.01})
    assert agent.choose(available=["small"]) is not None
    # Given what the first one was given: what changed since stays
    third = new_agent(clock, file=file)
    assert repr(third) == repr(agent) and list(third.left()) == ["day"]
    others = {"small": 0.01, "middle": 0.07, "large": 0.2, "other": 0.3}
    fourth = new_agent(clock, file=file, lost="bound", arms=others)
    numbers = fourth.statistics()["arms"]
    assert {name for name, row in numbers.items() if row["active"]} == {*others}
    assert numbers["middle"]["bound"] == 0.07 and list(fourth.left()) == ["day"]
    with pytest.raises(jb.InputError, match=r"^file: "):
        new_agent(clock, file=file, reward_bound=1.0, key=jax.random.key(5))
    assert jb.live.audit(file)["problems"] == []


def test_a_first_start_that_fails_leaves_nothing(file: Path) -> None:
    for wrong in ({"policy": PricePacer()}, {"budgets": [Budget(1.0, DAY, arms=("none",))]}):
        with pytest.raises(jb.InputError):
            new_agent(Clock(), file=file, **wrong)
        assert not file.exists()
    assert new_agent(Clock(), file=file, policy=PricePacer(budgets=3)).choose() is not None


def test_another_file_is_refused_in_one_line(file: Path) -> None:
    file.write_bytes(content := b"my notes, which are long" * 200)
    for call in (lambda: new_agent(Clock(), file=file), lambda: jb.live.audit(file)):
        with pytest.raises(jb.InputError, match=r"^file: '.*agent.db' given; .* agent"):
            call()
    assert file.read_bytes() == content
    with pytest.raises(jb.InputError, match=r"^file: "):
        Agent.load(file.parent / "no.db")
    for earlier in (0, ledger.FORMAT - 1):  # a database of others, an agent of an earlier version
        with sqlite3.connect(other := file.parent / f"{earlier}.db") as db:
            db.execute("CREATE TABLE mine (x)")
            db.execute(f"PRAGMA user_version = {earlier}")
        with pytest.raises(jb.InputError, match=f"in format {earlier}; it must be of format"):
            new_agent(Clock(), file=other)


def test_what_forgets_serves_and_is_decided_again(file: Path) -> None:
    clock, rng = Clock(), random.Random(35)
    policy = Restarting(OmegaUCB(), CUSUM(threshold=2.0, first=5), explore=0.05)
    agent = new_agent(clock, policy=policy, file=file, budgets=[Budget(9.0, DAY)])
    for request in range(300):
        clock.now += 60.0
        ticket = agent.choose()
        share = 0.1 if 100 <= request < 200 and ticket.arm == "large" else 1.0
        cost = 0.05 * share * rng.random()
        agent.learn(ticket, reward=2.0 * (rng.random() < 0.5), cost=cost)
        if request == 250:
            # More than there was room for
            agent.change(arms={f"new {arm}": 0.05 for arm in range(3)})
    assert jb.live.audit(file)["problems"] == [] and jb.live.audit(file)["decisions"] == 300
    again = new_agent(clock, policy=policy, file=file, budgets=[Budget(9.0, DAY)])
    assert [x.arm for x in again.choose(n=9)] and state(again) == state(agent)


# --- what goes wrong


def cut_short(call: Any, line: int) -> bool:
    """Ctrl-C at so many lines of the package after the call; False if it has fewer."""
    lines_left = [line]

    def trace(frame: Any, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(LIVE):
            return None
        if event == "line":
            lines_left[0] -= 1
            if not lines_left[0]:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


@pytest.mark.parametrize("method", ["choose", "learn", "expire", "change"])
def test_a_call_that_is_cut_short_anywhere_has_happened_or_not(file: Path, method: str) -> None:
    clock = Clock()
    agent = new_agent(clock, file=file)
    agent.choose(n=400)
    clock.now = 10.0
    ids = iter(range(1, 400))
    calls = {
        "choose": agent.choose,
        "learn": lambda: agent.learn(next(ids), reward=1.0, cost=0.001),
        "expire": lambda: agent.expire(older_than=9.0),
        "change": lambda: agent.change(hold=random.random()),
    }
    line, happened = 1, 0
    while True:
        before, events = state(agent), agent.statistics()
        short = cut_short(calls[method], line)
        happened += state(agent) != before
        assert not agent._ledger.db.in_transaction and agent.statistics().keys() == events.keys()
        if not short:
            break
        line += {"expire": 97, "change": 61}.get(method, 7)
    assert line > 50 and happened and jb.live.audit(file)["problems"] == []


def test_a_full_disk_is_told_and_it_goes_on_by_itself(file: Path) -> None:
    clock = Clock()
    agent = new_agent(clock, file=file, budgets=[Budget(99.0, DAY, name="day")])
    ticket = agent.choose()
    (pages,) = agent._ledger.db.execute("PRAGMA page_count").fetchone()
    agent._ledger.db.execute(f"PRAGMA max_page_count = {pages}")
    refused = 0
    for _ in range(1000):
        try:
            agent.choose()
        except Broken as problem:
            refused += 1
            assert "full; nothing has changed" in str(problem)
            assert agent.statistics()["open"] == len(agent.open()) and agent.left()["day"] <= 99.0
            if refused == 3:
                agent._ledger.db.execute("PRAGMA max_page_count = 100000")
    assert refused == 3
    agent.learn(ticket, reward=1.0, cost=0.001)
    assert jb.live.audit(file)["problems"] == []


def test_a_file_that_was_moved_is_noticed(file: Path) -> None:
    agent = new_agent(Clock(), file=file)
    agent.choose()
    link = file.parent / "other-name.db"
    link.symlink_to(file)
    # Two names, one agent
    assert new_agent(Clock(), file=link).choose().id == 2 == len(agent.open())
    file.rename(file.parent / "rotated.db")
    with pytest.raises(Broken, match="it was moved or deleted"):
        agent.choose()
    assert agent.statistics()["open"] == 2


def test_a_second_agent_of_a_process_leaves_the_locks_of_the_first(file: Path) -> None:
    """Whoever closes a file releases its process's locks; then another may delete the log."""
    agent, again = new_agent(Clock(), file=file), new_agent(Clock(), file=file)
    look = "import contextlib, sqlite3, sys\nwith contextlib.closing(sqlite3.connect(sys.argv[1])) as db:\n"
    look += "    print(*db.execute('SELECT round FROM service').fetchone())"
    for requests in (1, 2, 3):
        (agent if requests % 2 else again).choose()
        seen = subprocess.run([sys.executable, "-c", look, file], capture_output=True).stdout
        assert seen == b"%d\n" % requests


def test_a_locked_file_is_waited_for_no_longer_than_said(file: Path) -> None:
    agent = new_agent(Clock(), file=file, patience=0.2)
    writer = sqlite3.connect(file, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    with pytest.raises(Broken, match="database is locked; nothing has changed"):
        agent.choose()
    assert 0.1 < time.monotonic() - began < 5.0 and agent.statistics()["requests"] == 0
    writer.execute("ROLLBACK")
    assert agent.choose() is not None
    agent.close()
    with pytest.raises(Broken, match=r"agent\.db: it was closed; create the agent again$"):
        agent.choose()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_a_fork_is_refused_by_name(file: Path) -> None:
    agent = new_agent(Clock(), file=file)
    read, write = os.pipe()
    if not (child := os.fork()):
        try:
            agent.choose()
            os.write(write, b"served")
        except Broken as problem:
            os.write(write, str(problem).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert b"a fork has neither its connection nor jax's threads" in os.read(read, 1000)
    assert agent.choose() is not None


def test_arms_that_join_at_once_have_all_joined(file: Path) -> None:
    agents = [new_agent(Clock(), file=file) for _ in range(2)]
    with ThreadPoolExecutor(4) as crowd:
        joins = [x.change for x in agents * 2]
        list(crowd.map(lambda join, name: join(arms={name: 0.1}), joins, "abcd"))
    assert {*"abcd"} < agents[0].statistics()["arms"].keys()
    assert all(row["active"] for row in agents[1].statistics()["arms"].values())


# --- many processes

WORKER = """
import sys, random, time
from decimal import Decimal
from tests.apps.live.test_agent import ARMS, Clock, new_agent
file, notes, seed, requests = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
clock, rng = Clock(), random.Random(seed)
clock.now = 86400.0 * (seed // 2)
agent = new_agent(clock, file=file, tolerance=1e9)
print("ready", flush=True)
with open(notes, "a") as out:
    for _ in range(requests):
        clock.now += 20.0
        if ticket := agent.choose():
            print("c", ticket.id, ticket.arm, file=out, flush=True)
            if rng.random() < 0.9:
                cost = str(Decimal(rng.randrange(10**6)) * Decimal(str(ARMS[ticket.arm])) / 10**6)
                print("t", ticket.id, cost, file=out, flush=True)
                agent.learn(ticket, reward=rng.random(), cost=cost)
                print("l", ticket.id, cost, file=out, flush=True)
"""


def worker(file: Path, notes: Path, seed: int, requests: int) -> subprocess.Popen[bytes]:
    """A process that serves and says so before and after."""
    command = [sys.executable, "-c", WORKER, str(file), f"{notes}.{seed}", str(seed), str(requests)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)


def reconcile(file: Path, folder: Path) -> int:
    """The file says what the processes said, to the last digit; returns the number of outcomes."""
    noted: dict[str, dict[int, str]] = {"c": {}, "t": {}, "l": {}}
    for path in folder.glob("notes.*"):
        for line in path.read_text().splitlines():
            kind, id, said = line.split()
            assert int(id) not in noted[kind]  # none twice
            noted[kind][int(id)] = said
    events = list(jb.live.events(file))
    learnt = [(event["id"], event["cost"]) for event in events if event["do"] == "learn"]
    costs = {id: Decimal(repr(cost)) for id, cost in learnt}
    served = {event["id"]: event for event in events if event["do"] == "choose" and event["arm"]}
    tried, confirmed = ({id: Decimal(x) for id, x in noted[kind].items()} for kind in "tl")
    assert served.keys() >= noted["c"].keys() and len(learnt) == len(costs)
    assert confirmed.items() <= costs.items() <= tried.items()
    paid: dict[float, Decimal] = {}
    for id, event in served.items():
        begin = event["t"] // DAY * DAY
        paid[begin] = paid.get(begin, Decimal(0)) + costs.get(id, Decimal(repr(event["held"])))
    agent = Agent.load(file)
    assert {at: Decimal(repr(x)) for at, x in agent.charged()["day"].items()} == paid
    assert agent.overspent() == {}
    report = jb.live.audit(file)
    assert report["problems"] == [] and report["outcomes"] == len(costs)
    return len(costs)


@pytest.mark.integration
def test_kills_lose_nothing(file: Path) -> None:
    """Two processes that share a file, killed together again and again."""
    rng = random.Random(0)
    for kill in range(6):
        workers = [worker(file, file.parent / "notes", 2 * kill + k, 10**6) for k in range(2)]
        for process in workers:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        time.sleep(rng.uniform(0.2, 0.8))
        for process in workers:
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()  # type: ignore[union-attr]
    assert reconcile(file, file.parent) > 100


# --- to be read


def test_events_say_what_happened(file: Path) -> None:
    clock = Clock()
    budgets = [Budget(1.0, DAY, name="each", per="caller")]
    agent = new_agent(clock, file=file, budgets=budgets, arms={"a": 1, "b": 0.5})
    ticket = agent.choose(available=["a"], caller="ann", request=17)
    assert agent.choose(caller="ann", available=["b"]) is None
    agent.learn(ticket, reward=2, cost="0.25")
    clock.now = 60.0
    agent.choose(caller="bob")
    clock.now = 70.0
    agent.expire(older_than=5.0)
    agent.change(arms={"b": None})
    rows = [
        {name: x for name, x in event.items() if name not in ("n", "t")}
        for event in jb.live.events(file)
    ]
    conditions = {"available": ["a"], "caller": "ann", "request": "17"}
    assert rows[0] == {"do": "choose", "id": 1, "arm": "a", "held": 1.0} | conditions
    learnt = {"do": "learn", "id": 1, "arm": "a", "cost": 0.25, "reward": 2.0}
    assert rows[1]["arm"] is None and rows[2] == learnt
    assert [row["do"] for row in rows[3:]] == ["choose", "expire", "terms"]


def test_an_audit_decides_again(file: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(ledger, "_EVENTS_A_STATE", 100)
    clock = Clock()
    agent = new_agent(clock, file=file)
    busy(agent, clock, 120, seed=3)
    agent.change(policy=BudgetedThompson(), hold=0.9)
    agent.resume()
    busy(agent, clock, 120, seed=4)
    report = jb.live.audit(file)
    assert report["problems"] == [] == [*report["overspent"]]
    assert report["decisions"] == 240 and not report["before"]
    assert main(["audit", str(file)]) == 0
    assert "every decision is the one that the file says" in capsys.readouterr().out
    with sqlite3.connect(file) as db:
        db.execute("UPDATE events SET arm = (arm + 1) % 3 WHERE id = 30 AND do = 'choose'")
        db.execute("DELETE FROM events WHERE n = 250")
    decision, gap = jb.live.audit(file)["problems"]
    assert "for request 30, recomputed as '" in decision and gap == "events 250 to 250 are missing"
    assert main(["audit", str(file)]) == 1
    with sqlite3.connect(file) as db:
        db.execute("UPDATE arms SET open = open + 1 WHERE id = 0")
    assert jb.live.audit(file)["problems"][-1].endswith("the state after it differs")


def test_old_events_go_and_the_state_needs_none(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "_EVENTS_A_STATE", 50)
    clock = Clock()
    agent = new_agent(clock, file=file, retention=2 * HOUR)
    busy(agent, clock, 300, seed=5)
    events = list(jb.live.events(file))
    report = jb.live.audit(file)
    assert report["before"] == events[0]["n"] - 1 and report["problems"] == []
    assert 50 < len(events) < 200 < events[0]["n"]
    assert abs(events[0]["t"] - (clock.now - 2 * HOUR)) < HOUR / 4
    assert new_agent(clock, file=file, retention=2 * HOUR).statistics() == agent.statistics()


def test_old_periods_of_callers_go(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_EVENTS_A_STATE", 20)
    clock, all_ = Clock(), Budget(1.0, HOUR, name="all")
    budgets = [all_, Budget(1.0, HOUR, name="each", per="caller")]
    agent = new_agent(clock, file=file, retention=5 * HOUR, budgets=budgets)
    for clock.now in np.arange(0.0, 20 * HOUR, HOUR / 2):
        agent.learn(agent.choose(caller="ann"), reward=1.0, cost="0.001")
    paid = agent.charged("ann")
    assert set(paid["all"].values()) == {0.002} and len(paid["all"]) == 20
    assert min(paid["each"]) == clock.now - HOUR / 2 - 5 * HOUR
    assert jb.live.audit(file)["problems"] == []


DRAWN = {"logits": SoftElim(), "weights": FixedSplit([1.0, 2, 3]), "draws": BudgetedThompson()}


@pytest.mark.parametrize("policy", DRAWN.values(), ids=DRAWN)
def test_propensities_are_those_of_many_agents(file: Path, policy: Any) -> None:
    """The last decision, by a hundred agents of other keys that saw the same: within four standard
    errors.
    """
    counts: Counter[str] = Counter()
    for seed in range(100):
        changes: Any = {"policy": policy, "key": jax.random.key(seed)}
        agent = new_agent(Clock(), budgets=(), file=None if seed else file, **changes)
        agent.choose(n=9, available=["small"])
        for id in range(1, 6):
            agent.learn(id, reward=2.0, cost=0.2)  # whole, so that nothing is drawn in learning
        counts[agent.choose(available=["small", "middle"]).arm] += 1
    *_, last = jb.live.propensities(file, samples=2000)
    assert (last["error"] == 0) is (policy is not DRAWN["draws"])
    share = counts[last["arm"]] / 100
    assert abs(share - last["propensity"]) < 4 * (0.25 / 100 + last["error"] ** 2) ** 0.5


def test_a_policy_of_ones_own_must_be_given(file: Path) -> None:
    @jb.pytree
    class Mine(MUCB):
        pass

    new_agent(Clock(), file=file, policy=Mine()).choose()
    for call in (Agent.load, jb.live.audit):
        with pytest.raises(jb.InputError, match=r"policy: None given; .*Mine\(alpha=0.0625\)"):
            call(file)
        call(file, policy=Mine())
