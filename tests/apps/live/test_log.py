"""Events that are cut short, segments, other terms, other policies, audits, forks."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.apps._cli.console import main
from jaxbandits.apps.live import Agent, Broken, Budget, Misuse, Settled
from jaxbandits.apps.live import log as logs
from jaxbandits.apps.live.state import State, of_one_setting
from jaxbandits.policies import (
    MUCB,
    BudgetedThompson,
    Discounted,
    FixedSplit,
    OmegaUCB,
    PricePacer,
    SoftElim,
    SoftIndex,
)
from tests.apps.live.test_agent import ARMS, BUDGETS, DAY, Clock, busy, made

LIVE = str(Path(logs.__file__).parent)


def cut_short(call: Any, line: int) -> bool:
    """Ctrl-C at this line of the package's own that ``call`` comes to; False: it does not come so far."""
    left = [line]

    def trace(frame: Any, what: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(LIVE):
            return None
        if what == "line":
            left[0] -= 1
            if not left[0]:
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


@pytest.mark.parametrize("what", ["choose", "learn", "expire", "add_arm", "change"])
def test_a_call_that_is_cut_short_anywhere_leaves_a_whole_agent_or_one_that_says_so(tmp_path: Path, what: str) -> None:
    clock, log = Clock(), tmp_path / "log"
    pacer = PricePacer(start=0.0)
    agent = made(clock, log=log, policy=pacer, traffic=jb.live.Traffic([40] * 24), budgets=[Budget(99.0, DAY)])
    line, broken = 1, 0
    while True:
        clock.now += 1.0
        for left in agent.open():
            agent.cancel(left)
        if agent.statistics()["arms"].get("new", {}).get("active"):
            agent.remove_arm("new")
        ticket = agent.choose()
        call = {
            "choose": agent.choose,
            "learn": lambda ticket=ticket: agent.learn(ticket, reward=1.0, cost=0.02),
            "expire": lambda: agent.expire(older_than=0.5),
            "add_arm": lambda: agent.add_arm("new", 0.01),
            "change": lambda line=line: agent.change(budgets=[Budget(90.0 + line % 2, DAY)]),
        }[what]
        clock.now += 1.0
        if not cut_short(call, line):
            break
        try:
            agent.left()
        except Broken as problem:
            assert "resume()" in str(problem) and "resume()" in repr(agent)
            agent.resume()
            broken += 1
            assert Agent.load(log, clock=clock).digest() == agent.digest(), line
        line += 1
    assert line > 40 and broken > 5
    agent.close()
    assert Agent.from_log(log, clock=clock).digest() == agent.digest()


def test_a_full_disk_stops_and_resume_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, log = Clock(), tmp_path / "log"
    agent = made(clock, log=log)
    ticket = agent.choose()
    before = agent.digest()

    def full(self: logs.Log, event: dict[str, Any]) -> None:
        self._file.write(b'{"do":"lea')  # type: ignore[union-attr]
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(logs.Log, "write", full)
        with pytest.raises(Broken, match=r"could not be written \(no space left\)"):
            agent.learn(ticket, reward=1.0, cost=0.001)
        for call in (agent.choose, agent.left, agent.open, lambda: agent.cancel(ticket)):
            with pytest.raises(OSError, match="could not be written"):
                call()
    agent.resume()
    assert agent.digest() == before and [x.id for x in agent.open()] == [ticket.id]
    agent.learn(ticket, reward=1.0, cost=0.001)
    agent.close()
    with pytest.raises(Broken, match="the log is closed"):
        agent.choose()
    assert agent.open() == []
    agent.resume()
    assert agent.choose() is not None


def test_an_agent_without_a_log_cannot_go_on() -> None:
    agent = made(Clock())
    agent._broken = "cut short"
    with pytest.raises(Broken, match="cut short; this agent has no log to go on from"):
        agent.resume()


def test_a_fork_is_refused_by_name(tmp_path: Path) -> None:
    agent = made(Clock(), log=tmp_path / "log")
    reader, writer = os.pipe()
    if not (child := os.fork()):
        for call in (agent.choose, agent.left, agent.resume):
            try:
                call()
            except Broken as problem:
                os.write(writer, str(problem).encode()[:40] + b"\n")
        os._exit(0)
    os.waitpid(child, 0)
    said = os.read(reader, 1000).decode().splitlines()
    assert said == [f"this agent is that of process {os.getpid()}, and a fork"[:40]] * 3
    assert agent.choose() is not None


def test_segments_are_put_aside_and_old_ones_may_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_LEAST", 8_000)
    monkeypatch.setattr(logs, "_TIMES", 0)
    clock, log = Clock(), tmp_path / "log"
    agent = made(clock, log=log)
    busy(agent, clock, 500, seed=3)
    parts = [path for path, _ in logs.segments(log)]
    assert len(parts) > 4 and parts[-1] == log and parts[0].name == "log.000001.gz"
    told = list(jb.live.events(log))
    assert [x["id"] for x in told if x["do"] == "choose"] == list(range(1, agent._state.round + 1))
    assert sum(x["do"] != "begin" for x in told) == agent._state.events - 1
    for part in parts[:-1]:
        part.unlink()
    agent.close()
    again = Agent.from_log(log, clock=clock)
    assert again.digest() == agent.digest()
    again.close()
    log.unlink()
    parts[1].write_bytes(b"")
    with pytest.raises(jb.InputError, match=r"a place without log.000002.gz, which an older log left there"):
        made(clock, log=log, resume=True)


def test_a_log_is_read_whole_while_its_agent_puts_segments_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_LEAST", 5_000)
    monkeypatch.setattr(logs, "_TIMES", 0)
    clock, log = Clock(), tmp_path / "log"
    agent = made(clock, log=log)
    busy(agent, clock, 200, seed=3)
    many, reader = agent._state.round, jb.live.events(log)
    told = [next(reader)]
    busy(agent, clock, 200, seed=4)
    told += reader
    assert [x["id"] for x in told if x["do"] == "choose"] == list(range(1, many + 1))


def test_a_segment_that_cannot_begin_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_LEAST", 5_000)
    monkeypatch.setattr(logs, "_TIMES", 0)
    clock, log = Clock(), tmp_path / "log"
    agent = made(clock, log=log)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(logs, "write_whole", full)
        busy(agent, clock, 100, seed=3)
    assert [path for path, _ in logs.segments(log)] == [log]
    busy(agent, clock, 50, seed=4)
    assert len([*logs.segments(log)]) > 1
    assert Agent.load(log, clock=clock).digest() == agent.digest()


@pytest.mark.parametrize("way", ["change", "load", "resume"])
def test_terms_change(tmp_path: Path, way: str) -> None:
    """Another amount, another policy's parameter, other bounds: what was charged and learnt stays."""
    clock, log = Clock(), tmp_path / "log"
    agent = made(clock, log=log, budgets=[Budget(3.0, DAY, name="day"), Budget(2.0, DAY, name="old")])
    for ticket in agent.choose(n=6):
        agent.learn(ticket, reward=1.0, cost=0.005)
    (late,) = agent.choose(n=1)
    paid, pulls = agent.charged()["day"][0.0], agent._state.learnt.pulls.tolist()
    new = [Budget(5.0, "day", name="day"), Budget(0.5, DAY, arms=("small",), name="new")]
    if way == "change":
        agent.change(policy=OmegaUCB(rho=1.0), budgets=new, bounds={"small": np.float32(0.02)})
        assert [x["change"]["policy"] for x in jb.live.events(log) if "change" in x] == ["OmegaUCB(rho=1.0)"]
    else:
        agent.close()
        if way == "load":
            agent = Agent.from_log(log, policy=OmegaUCB(rho=1.0), budgets=new, bounds={"small": 0.02}, clock=clock)
        else:
            arms = {"small": 0.02, "middle": 0.05, "new": 0.1}
            agent = made(clock, log=log, resume=True, policy=OmegaUCB(rho=1.0), budgets=new, arms=arms)
            assert [arm.name for arm in agent._state.arms if arm.active] == list(arms)
    assert agent.charged() == {"day": {0.0: paid}, "new": {}} and agent._state.learnt.pulls.tolist() == pulls
    agent.learn(late, reward=1.0, cost=0.001)
    assert agent.left()["day"] == pytest.approx(5.0 - paid + late.reserved - 0.001, abs=1e-6)
    assert agent.choose(available=["small"]).reserved == pytest.approx(0.02, abs=1e-6)
    agent.close()
    again = Agent.from_log(log, clock=clock)
    assert again.digest() == agent.digest() and again._state.terms == agent._state.terms
    again.close()
    if way == "resume":  # what was said at the last start is no change; what happened since then stays
        same = made(clock, log=log, resume=True, policy=OmegaUCB(rho=1.0), budgets=new, arms=arms)
        assert same.digest() == agent.digest()


def test_terms_that_cannot_be_change_nothing(tmp_path: Path) -> None:
    clock = Clock()
    agent = made(clock, log=tmp_path / "log")
    busy(agent, clock, 30, seed=1)
    before = agent.digest()
    for given, message in (
        ({"budgets": [Budget(1.0, DAY, arms=("none",))]}, "'none' given"),
        ({"bounds": {"small": 0.3}}, r"bounds\['small'\]: 0.3 given; it must be from 0 to 0.25"),
        ({"policy": PricePacer(), "budgets": BUDGETS}, "traffic: None given|PricePacer.budgets"),
        ({"hold": 1.0}, "hold: 1.0 given; it must be 'bound', or a quantile"),
        ({"lost": "all"}, "lost: 'all' given"),
    ):
        with pytest.raises(Misuse, match=message):
            agent.change(**given)
        assert agent.digest() == before
    assert agent.choose() is not None


def test_another_policy_is_taught_what_the_log_says(tmp_path: Path) -> None:
    clock, log, seen = Clock(), tmp_path / "log", []
    agent = made(clock, log=log, policy=BudgetedThompson(), budgets=())
    rng = random.Random(0)
    for _ in range(60):
        ticket = agent.choose()
        seen.append((ticket.arm, rng.random() < 0.5, rng.random() * ARMS[ticket.arm]))
        agent.learn(ticket, reward=2.0 * seen[-1][1], cost=seen[-1][2])
    for policy in (Discounted(OmegaUCB(), gamma=0.9), MUCB()):
        agent.change(policy=policy)
        assert agent._state.terms["policy"].startswith(type(policy).__name__)
    want = [sum(arm == name for arm, *_ in seen) for name in ARMS]
    assert agent._state.learnt.pulls.tolist()[:3] == want
    reward = np.asarray(agent._state.learnt.reward.whole + agent._state.learnt.reward.part / 2**24)[:3]
    assert reward.tolist() == [sum(good for arm, good, _ in seen if arm == name) for name in ARMS]
    agent.choose()
    agent.close()
    again = Agent.from_log(log, policy=OmegaUCB(), clock=clock)  # MUCB's statistics are of the same kind of state …
    assert again._state.learnt.pulls.tolist()[:3] == want  # … and all the same it was taught, not handed on
    assert "OmegaUCB" in repr(again)


def test_a_request_has_a_name_and_tickets_are_settled_once(tmp_path: Path) -> None:
    clock, log = Clock(), tmp_path / "log"
    agent = made(clock, log=log)
    ticket = agent.choose(request="mine")
    agent.learn(ticket, reward=1.0, cost=0.0)
    with pytest.raises(Settled, match="it was settled, or given up"):
        agent.learn(ticket, reward=1.0, cost=0.0)
    number = agent.choose(request=7)
    named = {x["request"]: x["id"] for x in jb.live.events(log) if "request" in x}
    assert named == {"mine": ticket.id, "7": number.id}


def test_the_last_decision_is_refused_by_name() -> None:
    agent = made(Clock())
    agent._state.round = 2**31 - 2
    with pytest.raises(Misuse, match=r"2,147,483,646 decisions made; it must be fewer"):
        agent.choose()


def test_an_audit_decides_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logs, "_LEAST", 8_000)
    monkeypatch.setattr(logs, "_TIMES", 0)
    clock, log = Clock(), tmp_path / "log"
    agent = made(clock, log=log)
    busy(agent, clock, 150, seed=3)
    agent.add_arm("new", 0.1)
    agent.change(budgets=[*BUDGETS[:2]], policy=MUCB())
    busy(agent, clock, 50, seed=4)
    agent.close()
    agent = made(clock, log=log, resume=True, policy=MUCB(), budgets=BUDGETS[:2], arms=ARMS | {"new": 0.1})
    busy(agent, clock, 50, seed=5)
    found = jb.live.audit(log)
    assert found["decisions"] == agent._state.round and found["problems"] == [] == list(found["overspent"])
    assert found["segments"] == len([*logs.segments(log)]) > 5
    assert main(["audit", str(log)]) == 0
    said = capsys.readouterr().out
    assert f"{agent._state.round:,} decisions" in said and "every decision is the one that the log says" in said
    [path for path, _ in logs.segments(log)][1].unlink()
    lines = log.read_bytes().splitlines(keepends=True)
    wrong = next(i for i, line in enumerate(lines) if i and b'"arm":"small"' in line and b'"choose"' in line)
    lines[wrong] = lines[wrong].replace(b'"arm":"small"', b'"arm":"large"')
    log.write_bytes(b"".join(lines))
    assert main(["audit", str(log)]) == 1
    said = capsys.readouterr().out
    assert "1 segment before it not there" in said
    assert re.search(rf"log: line {wrong + 1} says 'large' for request \d+, and 'small' comes out", said)
    assert main(["audit", str(tmp_path / "none")]) == 2


def test_another_number_of_budgets_and_the_policy_for_them_come_together(tmp_path: Path) -> None:
    clock, log, one = Clock(), tmp_path / "log", [Budget(9.0, DAY, name="day")]
    traffic, two = jb.live.Traffic([40] * 24), [Budget(9.0, DAY, name="day"), Budget(8.0, "week", name="week")]
    agent = made(clock, log=log, policy=PricePacer(start=0.0), budgets=one, traffic=traffic)
    for ticket in agent.choose(n=20):
        agent.learn(ticket, reward=1.0, cost=0.005)
    agent.close()
    pulls = agent._state.learnt.learnt.pulls.tolist()
    for again in (
        lambda: made(clock, log=log, policy=PricePacer(budgets=2), budgets=two, traffic=traffic, resume=True),
        lambda: Agent.from_log(log, policy=PricePacer(), budgets=one, clock=clock),
        lambda: Agent.from_log(log, policy=PricePacer(eta=0.1), clock=clock),
    ):
        agent = again()
        assert agent._state.learnt.learnt.pulls.tolist() == pulls
        assert agent.charged()["day"][0.0] == pytest.approx(0.1, abs=1e-6)
        agent.choose()
        agent.cancel(agent.open()[0])
        agent.close()
    assert Agent.from_log(log, clock=clock).digest() == agent.digest() and "eta=0.1" in repr(agent)


def test_a_change_that_cannot_be_written_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = made(Clock(), log=tmp_path / "log")
    busy(agent, agent._clock._tell, 20, seed=1)  # type: ignore[arg-type]
    before = agent.digest()

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(logs, "write_whole", full)
        with pytest.raises(Broken, match="could not be written"):
            agent.change(policy=MUCB(), budgets=[Budget(1.0, DAY)])
    agent.resume()
    assert agent.digest() == before and "OmegaUCB" in repr(agent)


def test_a_larger_unit_makes_room_for_larger_bounds(tmp_path: Path) -> None:
    """Prices six times as high: what was charged stays charged, and the policy is taught in the new unit."""
    clock, log = Clock(), tmp_path / "log"
    agent = made(clock, log=log, hold=0.5)
    busy(agent, clock, 120, seed=6)
    before, told = agent.statistics(), agent._state.learnt.pulls.tolist()
    with pytest.raises(Misuse, match=r"bounds\['large'\]: 1.2 given; it must be from 0 to 0.25"):
        agent.change(bounds={"large": 1.2})
    with pytest.raises(Misuse, match=r"unit: 0.1 given; it must be at least"):
        agent.change(unit=0.1)
    agent.change(unit=1.2, bounds={"large": 1.2})
    after = agent.statistics()
    assert agent._state.unit == 2.0 and agent._state.learnt.pulls.tolist() == told
    for name in ("day", "provider", "rest"):
        for what in ("granted", "charged", "left", "held"):
            assert after["budgets"][name][what] == pytest.approx(before["budgets"][name][what], abs=1e-4)
        assert after["budgets"][name]["left"] <= before["budgets"][name]["left"] + 1e-9
    for name in ("small", "middle"):
        for what in ("cost", "cost_error", "hold"):
            assert after["arms"][name][what] == pytest.approx(before["arms"][name][what], abs=1e-5)
    for ticket in agent.open():
        agent.learn(ticket, reward=1.0, cost=0.0)
    agent.add_arm("dear", 1.9)
    agent.close()
    agent = made(clock, log=log, hold=0.5, resume=True, unit=3.0, arms=ARMS | {"dearer": 4.0})
    assert agent._state.unit == 4.0 and agent.choose(available=["dearer"]) is None
    agent.close()
    assert Agent.from_log(log, clock=clock).digest() == agent.digest()
    assert jb.live.audit(log)["problems"] == []


def test_an_audit_tells_that_a_line_is_missing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    agent = made(Clock(), log=log)
    busy(agent, agent._clock._tell, 30, seed=1)  # type: ignore[arg-type]
    agent.close()
    lines = log.read_bytes().splitlines(keepends=True)
    lost = next(i for i, line in enumerate(lines) if b'"learn"' in line)
    log.write_bytes(b"".join(lines[:lost] + lines[lost + 1 :]))
    (problem,) = jb.live.audit(log)["problems"]
    assert problem == f"log: log: line {lost + 1} says that it is line {lost + 2}; no line may be missing"


def test_a_wrong_outcome_is_taken_back_in_the_log(tmp_path: Path) -> None:
    def served(name: str, cost: float) -> Agent:
        agent = made(Clock(), log=tmp_path / name)
        tickets = agent.choose(n=3)
        agent.learn(tickets[1], reward=1.0, cost=cost)
        agent.learn(tickets[0], reward=0.0, cost=0.001)
        agent.close()
        return agent

    right, _ = served("right", 0.04), served("wrong", 40.0)
    log = tmp_path / "wrong"
    log.write_bytes(log.read_bytes().replace(b'"cost":40.0', b'"cost":0.04'))
    assert Agent.from_log(log, clock=Clock()).digest() == right.digest()


@pytest.mark.parametrize(
    ("policy", "exact"),
    [
        (SoftElim(), True),
        (SoftIndex(OmegaUCB(), temperature=0.3), True),
        (FixedSplit([1.0, 3.0, 2.0]), True),
        (BudgetedThompson(), False),
    ],
    ids=["logits", "an index", "weights", "Thompson"],
)
def test_propensities_are_those_of_a_thousand_agents(tmp_path: Path, policy: Any, exact: bool) -> None:
    """Agents that saw the same, with other keys, decide the next request: their shares are the propensities."""
    clock, log = Clock(), tmp_path / "log"
    agent = made(clock, log=log, policy=policy, budgets=[Budget(9.0, DAY, name="day")])
    rng = random.Random(3)
    for _ in range(12):
        agent.learn(agent.choose(), reward=2.0 * rng.random(), cost=0.008 * rng.random())
    agent.choose(40, available=["small"])  # stay open, and count
    agent.save(tmp_path / "state")
    ticket = agent.choose(available=["small", "middle"], request="mine")
    agent.close()
    *_, last = jb.live.propensities(log, samples=4000)
    assert (last["id"], last["request"], last["arm"]) == (ticket.id, "mine", ticket.arm)
    assert (last["error"] == 0.0) == exact
    state, served = State(of_one_setting(policy), json.loads((tmp_path / "state").read_text())), 0
    for seed in range(1000):
        state.words = np.asarray(jax.random.key_data(jax.random.key(1000 + seed)))
        event, _ = state.decide({"do": "choose", "t": clock.now, "among": ["small", "middle"]})
        served += event["arm"] == ticket.arm
    spread = np.hypot(last["error"], np.sqrt(max(last["propensity"] * (1 - last["propensity"]), 0.01) / 1000))
    assert abs(served / 1000 - last["propensity"]) < 4 * spread


@pytest.mark.parametrize("policy", [OmegaUCB(), Discounted(MUCB(), gamma=0.9)], ids=["index", "discounted"])
def test_what_draws_nothing_has_no_propensities(tmp_path: Path, policy: Any) -> None:
    agent = made(Clock(), log=tmp_path / "log", policy=policy)
    agent.choose()
    with pytest.raises(
        jb.InputError, match=f"log: .{type(policy).__name__}.* by a policy that draws more than the order"
    ):
        list(jb.live.propensities(tmp_path / "log"))


def test_what_changed_since_the_last_start_stays_at_the_next(tmp_path: Path) -> None:
    clock, log, budgets = Clock(), tmp_path / "log", [Budget(3.0, DAY, name="day")]
    agent = made(clock, log=log, budgets=budgets)
    agent.change(budgets=[Budget(5.0, DAY, name="day")], policy=MUCB(), hold=0.9)
    agent.close()
    agent = made(clock, log=log, budgets=budgets, resume=True)
    assert agent.left() == {"day": 5.0} and "MUCB" in repr(agent) and agent._state.terms["hold"] == 0.9
    agent.remove_arm("small")
    agent.close()
    arms = {"small": 0.02, "z": 0.1, "a": 0.1} | ARMS
    agent = made(
        clock,
        log=log,
        arms=arms | {"small": 0.02},
        budgets=[Budget(4.0, DAY, name="day")],
        policy=OmegaUCB(rho=0.5),
        resume=True,
    )
    assert [arm.name for arm in agent._state.arms if arm.active] == ["middle", "large", "z", "a"]
    assert agent.left() == {"day": 4.0} and "rho=0.5" in repr(agent) and agent._state.terms["hold"] == 0.9
