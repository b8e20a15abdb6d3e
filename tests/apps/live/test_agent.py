"""The service: tickets, money to the billionth, arms, terms, failures, and what is refused by name."""

from __future__ import annotations

import contextlib
import datetime
import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.apps.live import Agent, Breaker, Budget, Misuse, Settled
from jaxbandits.apps.live import ledger as ledgers
from jaxbandits.apps.live.clock import Forecast
from jaxbandits.apps.live.terms import BILLION, billionths
from jaxbandits.policies import (
    KUBE,
    MRCB,
    MUCB,
    BudgetedThompson,
    EpsilonFirst,
    FixedSplit,
    LinUCB,
    OmegaUCB,
    PricePacer,
)

ARMS = {"small": 0.01, "middle": 0.05, "large": 0.2}
DAY, HOUR = 86400.0, 3600.0
BUDGETS = [
    Budget(3.0, DAY, name="day"),
    Budget(0.5, HOUR, arms=("large", "middle"), name="provider"),
    Budget(1.0, DAY, arms=("small",), name="rest"),
]


class Clock:
    """Time that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now: Any = 0.0

    def __call__(self) -> float:
        return self.now


def new_agent(clock: Callable[[], float], **changes: Any) -> Agent:
    settings: dict[str, Any] = {
        "policy": OmegaUCB(),
        "arms": ARMS,
        "reward_bound": 2.0,
        "budgets": BUDGETS,
    }
    settings |= {"key": jax.random.key(4), "clock": clock} | changes
    return Agent(settings.pop("policy"), **settings)


def state(agent: Agent) -> str:
    """All that decides what comes."""
    with agent._transaction(write=False) as ledger:
        return ledger.state()


def memory(agent: Agent) -> Any:
    """What the policy remembers."""
    with agent._transaction(write=False) as ledger:
        return ledger.setup.program.state(ledger.service["learnt"])


# --- money


@pytest.mark.parametrize("kind", [float, Decimal, str])
def test_cents_are_cents(kind: Any) -> None:
    """A budget of k prices pays k requests, in floats, decimals and text alike."""
    for price, times in ((1, 10), (7, 3), (29, 7)):
        cost, amount = kind(str(Decimal(price) / 100)), kind(str(Decimal(price * times) / 100))
        budgets = [Budget(amount, DAY)]
        agent = new_agent(Clock(), arms={"a": cost}, budgets=budgets, policy=MUCB())
        paid = 0
        while paid <= times and (ticket := agent.choose()) is not None:
            agent.learn(ticket, reward=1.0, cost=cost)
            paid += 1
        assert paid == times and agent.left() == {"budget": 0.0} and agent.renews_at() == DAY


def test_what_has_more_digits_is_rounded_against_who_spends() -> None:
    down = billionths("amount", "1.0000000009", down=True)
    assert billionths("cost", "0.0000000001") == 1 and down == BILLION
    same = {billionths("cost", 0.1), billionths("cost", Decimal("0.1")), billionths("x", 0.1, True)}
    assert same == {10**8} and billionths("cost", np.float32(0.5)) == BILLION // 2


def busy(
    agent: Agent, clock: Clock, requests: int, seed: int
) -> dict[int, tuple[float, str, Decimal]]:
    """Requests that are learned, failed, cancelled or expired, in any order; what each cost."""
    rng, open_, expired, paid = random.Random(seed), [], [], {}

    def answer(ticket: jb.live.Ticket, call: Any, cost: Decimal, **more: Any) -> None:
        call(ticket, cost=cost, **more)
        paid[ticket.id] = (*paid[ticket.id][:2], cost)

    for _ in range(requests):
        clock.now += rng.expovariate(1 / 200.0)
        if (ticket := agent.choose()) is not None:
            open_.append(ticket)
            paid[ticket.id] = (clock.now, ticket.arm, Decimal(repr(ticket.reserved)))
        while open_ and rng.random() < 0.75:
            ticket = open_.pop(rng.randrange(len(open_)))
            fate = rng.random()
            cost = Decimal(rng.randrange(10**9)) / 10**9 * Decimal(str(ARMS[ticket.arm]))
            cost = cost.quantize(Decimal("1e-9"), "ROUND_CEILING")
            if fate < 0.05:
                agent.cancel(ticket)
                del paid[ticket.id]
            elif fate < 0.15:
                answer(ticket, agent.fail, cost)
            else:
                answer(ticket, agent.learn, cost, reward=rng.random())
                if fate > 0.9:
                    with pytest.raises(Settled):
                        agent.learn(ticket, reward=1.0, cost=0.0)
        if rng.random() < 0.02:
            late = agent.expire(older_than=600.0, failed=False)
            expired += late
            open_ = [x for x in open_ if x not in late]
        if expired and rng.random() < 0.02:
            ticket = expired.pop(rng.randrange(len(expired)))
            with contextlib.suppress(Settled):  # it is so old that it is forgotten
                answer(ticket, agent.learn, Decimal("0.000000001"), reward=None)
    return paid


def test_the_ledger_is_that_of_decimals() -> None:
    """By an account of our own: every period to the last digit, and none overspent."""
    clock, periods = Clock(), 0
    agent = new_agent(clock, lost="bound", breaker=None)
    paid = busy(agent, clock, 1500, seed=0)
    for budget, rows in zip(BUDGETS, agent.charged().values(), strict=True):
        by_period: dict[float, Decimal] = {}
        for time, arm, amount in paid.values():
            if budget.arms is None or arm in budget.arms:
                begin = time // budget.every * budget.every
                by_period[begin] = by_period.get(begin, Decimal(0)) + amount
        charged = {at: Decimal(repr(x)) for at, x in rows.items() if x}
        assert charged == {at: x for at, x in by_period.items() if x}
        assert max(by_period.values()) <= Decimal(str(budget.amount))
        periods += len(by_period)
    assert periods > 20 and agent.overspent() == {}


def test_a_cost_above_the_bound_is_booked() -> None:
    clock = Clock()
    agent = new_agent(clock, budgets=[Budget(0.31, DAY, name="day")], arms={"a": 0.1, "b": 0.2})
    first, second = agent.choose(n=2)
    agent.learn(first, reward=1.0, cost=Decimal("0.15"))
    agent.learn(second, reward=1.0, cost=0.6)
    numbers = agent.statistics()
    assert [numbers["arms"][name]["cost"] for name in "ab"] == [0.15, 0.6]
    assert [numbers["arms"][name]["above"] for name in "ab"] == [1, 1]
    assert numbers["budgets"]["day"]["overspent"] == 0.44 and agent.left() == {"day": -0.44}
    assert agent.choose() is None and agent.renews_at() == DAY
    assert int(memory(agent).cost.whole[1]) == 1  # the policy sees at most the largest bound
    clock.now = DAY
    agent.learn(agent.choose(), cost=30)
    assert agent.overspent() == {"day": {0.0: 0.44, DAY: 29.69}}
    clock.now = 2 * DAY
    assert agent.statistics()["budgets"]["day"]["overspent"] == 0.0  # of this period alone


def test_a_free_arm_serves_whatever_is_left() -> None:
    arms = {"local": 0, "large": 0.1}
    agent = new_agent(Clock(), budgets=[Budget(0.11, DAY)], arms=arms, policy=MUCB())
    (large,) = (x for x in agent.choose(n=9) if x.arm == "large")
    agent.learn(large, reward=1.0, cost=0.5)
    assert agent.left()["budget"] < 0 and agent.renews_at() is None
    assert agent.choose().arm == "local"
    assert new_agent(Clock(), budgets=(), arms={"one": 0.0, "two": 0.0}).choose() is not None


def test_lost_requests_are_charged_the_mean_or_the_bound() -> None:
    for rule, charged in (("mean", 0.5), ("bound", 1.0)):
        clock = Clock()
        agent = new_agent(
            clock, arms={"a": 1.0}, budgets=[Budget(50.0, DAY, name="day")], lost=rule, hold=0.9
        )
        for cost in (0.25, 0.75, 0.5):
            agent.learn(agent.choose(), reward=1.0, cost=cost)
        unknown, money = agent.choose(), agent.left()["day"]
        clock.now = 10.0
        (late,) = agent.expire(older_than=5.0, failed=rule == "mean")
        assert memory(agent).pulls[0] == 3 + (rule == "mean")
        assert late == unknown and agent.left()["day"] == money + unknown.reserved - charged
        agent.learn(late, reward=1.0, cost=0.1)
        assert agent.left()["day"] == money + unknown.reserved - 0.1
        agent.choose()
        for clock.now in (16.0, 21.0):  # more than twice as old: forgotten
            agent.expire(older_than=5.0)
        with pytest.raises(Settled):
            agent.learn(5, reward=1.0, cost=0.1)
        numbers, row = agent.statistics(), agent.statistics()["arms"]["a"]
        assert (numbers["late"], row["lost"], row["failed"]) == (1, 2, 1 + (rule == "mean"))


def test_a_quantile_is_of_the_arms_last_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A share 1 − q of the last costs is above it; the bound, while that share is none."""
    monkeypatch.setattr(ledgers, "_COSTS_KEPT", 64)
    changes: Any = {"arms": {"a": 9.0, "b": 9.0}, "budgets": [Budget(500.0, DAY, name="day")]}
    agent, costs = new_agent(Clock(), hold=0.9, **changes), []
    for cost in np.random.default_rng(0).gamma(2.0, 0.5, 100).round(3):
        agent.learn(agent.choose(available=["a"]), reward=1.0, cost=cost)
        costs.append(float(cost))
        last = sorted(costs[-64:])
        above = int(len(last) * (1 - 0.9))
        assert agent.statistics()["arms"]["a"]["hold"] == (last[-1 - above] if above else 9.0)
    assert agent.statistics()["arms"]["b"]["hold"] == 9.0
    held = agent.choose(available=["a"]).reserved
    assert held < 9.0 and agent.statistics()["budgets"]["day"]["at_risk"] == 9.0 - held


def test_callers_have_caps_of_their_own_and_learn_together() -> None:
    clock = Clock()
    budgets = [Budget(10.0, DAY, name="all"), Budget(0.2, DAY, name="each", per="caller")]
    agent = new_agent(clock, arms={"a": 0.1}, budgets=budgets, policy=PricePacer(start=0.0))
    with pytest.raises(Misuse, match="caller: None given; it must be a name, since each is"):
        agent.choose()
    for caller in ("ann", "bob"):
        assert agent.choose(caller=caller) and agent.choose(caller=caller)
        assert agent.choose(caller=caller) is None and agent.renews_at(caller) == DAY
    assert agent.left("ann") == {"all": 9.6, "each": 0.0} and agent.left("eve")["each"] == 0.2
    for ticket in agent.open():
        agent.learn(ticket, reward=1.0, cost=0.05)
    assert agent.left("bob") == {"all": 9.8, "each": 0.1} and list(agent.left()) == ["all"]
    assert agent.charged("ann")["each"] == {0.0: 0.1}
    assert memory(agent).learnt.pulls.tolist() == [4, 0, 0, 0]
    clock.now = DAY
    assert agent.choose(caller="ann") is not None


# --- failures


def test_a_breaker_has_one_request_on_trial(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    breaker = Breaker(failures=2, pause=10.0, longest=25.0)
    agent = new_agent(clock, arms={"a": 0.1}, budgets=(), breaker=breaker)
    early, *two = agent.choose(n=3)
    for ticket in two:
        agent.fail(ticket, cost=0)
    assert agent.choose() is None and agent.renews_at() == 10.0
    said = "1970-01-01 00:00:00 UTC: a failed 2 times in a row, last in request 3"
    assert caplog.messages == [f"{said}; it is paused for 10 s"]
    assert agent.statistics()["arms"]["a"]["paused"] == 10.0
    clock.now = 10.0
    trial = agent.choose()
    assert agent.choose() is None and agent.renews_at() == 35.0  # 25 s: not three times 10
    agent.fail(trial)
    assert agent.renews_at() == 35.0
    agent.learn(early, reward=1.0, cost=0.1)  # a slow answer is one as well
    assert agent.renews_at() is None and agent.choose() is not None
    agent.change(breaker=None)
    for _ in range(5):
        agent.fail(agent.choose())
    assert agent.choose() is not None


def test_what_a_failure_teaches() -> None:
    day = [Budget(50.0, DAY, name="day")]
    agent = new_agent(Clock(), arms={"a": 1.0}, budgets=day, breaker=None)
    for cost in (0.25, 0.75):
        agent.learn(agent.choose(), reward=2.0, cost=cost)
    agent.fail(agent.choose())  # nobody knows what it cost
    assert agent.left()["day"] == 50.0 - 1.0 - 0.5
    agent.fail(agent.choose(), cost="0.1")
    row = agent.statistics()["arms"]["a"]
    assert agent.left()["day"] == 48.4 and row["reward"] == 1.0
    assert row["cost"] == pytest.approx(1.1 / 3)
    assert (row["failed"], row["pulls"]) == (2, 3) and memory(agent).pulls.tolist() == [4, 0, 0, 0]
    assert memory(agent).reward.whole[0] == 2
    agent.change(lost="bound", hold="bound")
    before = memory(agent).cost.part[0]
    agent.fail(agent.choose())  # charged its bound, and taught the mean
    taught = (memory(agent).cost.part[0] - before) / 2**24
    assert agent.left()["day"] == 47.4 and taught == pytest.approx(1.1 / 3)


# --- arms that close


SERVE = {
    "pacer": PricePacer(),
    "weights": FixedSplit([1.0, 2.0, 3.0, 1.0]),
    "window": jb.policies.Windowed(BudgetedThompson(), window=20),
}


@pytest.mark.parametrize("name", SERVE)
def test_no_policy_pulls_a_closed_arm(name: str) -> None:
    """Stock, quotas, money, failures, arms that leave, arms that were not asked for: an account of
    our own.
    """
    rng, clock = random.Random(3), Clock()
    arms = {"a": 0.0, "b": 0.1, "c": 0.1, "d": 0.2}
    budgets = [
        Budget(2.0, DAY, name="money"),
        Budget(40, "ever", ("a",), of="requests", name="stock"),
        Budget(6, HOUR, ("b", "c"), of="requests", name="quota"),
    ]
    breaker = Breaker(2, 900.0, 3600.0)
    agent = new_agent(clock, policy=SERVE[name], arms=arms, budgets=budgets, breaker=breaker)
    held, sold, none, hourly = Decimal(0), 0, 0, Counter[float]()
    fails, served = Counter[str](), Counter[str]()
    until, trips, removed = dict.fromkeys(arms, 0.0), Counter[str](), set[str]()
    for request in range(400):
        clock.now += 60.0
        if request == 250:
            agent.change(arms={"d": None})
            removed.add("d")
        available = [x for x in arms if x not in removed and rng.random() < 0.8]
        if clock.now % DAY < 60.0:
            held = Decimal(0)
        payable = {x for x in available if Decimal(str(arms[x])) <= 2 - held}
        open_ = {x for x in payable if until[x] <= clock.now}
        open_ -= {"a"} if sold == 40 else set()
        open_ -= {"b", "c"} if hourly[clock.now // HOUR] == 6 else set()
        ticket = agent.choose(available=available)
        if ticket is None:
            none += 1
            assert not open_ or name == "pacer", (request, open_)
            continue
        assert ticket.arm in open_, (request, ticket, open_)
        served[ticket.arm] += 1
        sold += ticket.arm == "a"
        hourly[clock.now // HOUR] += ticket.arm in "bc"
        if trips[ticket.arm]:
            trips[ticket.arm] += 1
            until[ticket.arm] = clock.now + min(900.0 * 3 ** (trips[ticket.arm] - 1), 3600.0)
        if rng.random() < 0.1:  # it was never sent: a piece of the stock is there again
            agent.cancel(ticket)
            sold -= ticket.arm == "a"
            hourly[clock.now // HOUR] -= ticket.arm in "bc"
        elif rng.random() < 0.3:
            agent.fail(ticket, cost=0)
            fails[ticket.arm] += 1
            if fails[ticket.arm] >= 2 and not trips[ticket.arm]:
                trips[ticket.arm], until[ticket.arm] = 1, clock.now + 900.0
        else:
            agent.learn(ticket, reward=rng.random(), cost=str(Decimal(str(arms[ticket.arm])) / 2))
            held += Decimal(str(arms[ticket.arm])) / 2
            fails[ticket.arm] = trips[ticket.arm] = 0
            until[ticket.arm] = 0.0
    assert sold == 40 and none > 20 and len(served) >= 3


# --- contexts

SEES = {
    "policy": LinUCB(explore=jb.policies.Bonus(0.5)),
    "context": 2,
    "reward_bound": 1.0,
    "budgets": (),
}


def test_an_outcome_brings_its_own_context_back(tmp_path: Any) -> None:
    """Told in another order and by another process: Σ x̃x̃ᵀ and Σ r x̃ of each arm are those of the
    decisions.
    """
    rng, file, clock = np.random.default_rng(0), tmp_path / "agent.db", Clock()
    arms = {"a": 0.1, "b": 0.1}
    chooser, learner = (new_agent(clock, file=file, arms=arms, **SEES) for _ in range(2))
    requests, gram, sums = [], np.zeros((2, 3, 3)), np.zeros((2, 3))
    for x in rng.normal(size=(40, 2)):
        requests.append((chooser.choose(context=x), np.append(1.0, x.astype(np.float32))))
    for at in rng.permutation(40)[:30]:
        ticket, row = requests[at]
        reward = float(rng.random())
        learner.learn(ticket, reward=reward, cost=0.05)
        gram["ab".index(ticket.arm)] += np.outer(row, row)
        sums["ab".index(ticket.arm)] += reward * row
    for agent in (chooser, learner):
        model = memory(agent).model
        inverse = np.linalg.inv(gram + np.diag([0.01, 8.0, 8.0]))
        np.testing.assert_allclose(model.inverse[:2], inverse, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(model.reward[:2], sums, rtol=1e-5)
    assert jb.live.audit(file)["problems"] == []
    row = next(jb.live.events(file))
    assert np.float32(row["context"]).tolist() == requests[0][1][1:].tolist()
    # Another kind: taught what was seen
    chooser.change(policy=LinUCB(explore=jb.policies.Draw(0.1)))
    np.testing.assert_allclose(memory(learner).model.reward[:2], sums, rtol=1e-5)


# --- terms


def test_a_larger_bound_teaches_anew_in_the_new_unit() -> None:
    agent = new_agent(Clock(), arms={"a": 0.1, "b": 0.1}, budgets=[Budget(9.0, DAY, name="day")])
    for ticket in agent.choose(n=2):
        agent.learn(ticket, reward=1.0, cost=0.05)
    before = memory(agent).cost.part[:2]
    agent.change(arms={"b": 0.2})
    assert agent.left()["day"] == 8.9 and memory(agent).pulls.tolist() == [1, 1, 0, 0]
    assert (2 * memory(agent).cost.part[:2] == before).all()


def test_other_budgets_hold_what_is_open() -> None:
    """What is settled stays with the name and the period; no request is to blame for a change."""
    clock = Clock()
    clock.now = 10 * HOUR
    agent = new_agent(clock, arms={"a": 0.1, "b": 0.2}, budgets=[Budget(5.0, DAY, name="day")])
    early, late = agent.choose(n=2)
    agent.learn(agent.choose(), reward=1.0, cost=0.05)
    clock.now = 14 * HOUR
    agent.change(budgets=[Budget(1.0, HOUR, name="day"), Budget(1.0, DAY, arms=("b",), name="b")])
    assert agent.charged() == {"day": {0.0: 0.05, 10 * HOUR: 0.3}, "b": {0.0: 0.2}}
    for ticket, cost in ((early, 0.01), (late, Decimal("0.02"))):
        agent.learn(ticket, reward=1.0, cost=cost)
    assert agent.charged() == {"day": {0.0: 0.05, 10 * HOUR: 0.03}, "b": {0.0: 0.02}}
    agent.change(budgets=[Budget(0.04, DAY, name="day")])
    assert agent.left() == {"day": -0.01} and agent.overspent() == {}


def test_another_policy_is_taught_what_was_seen() -> None:
    agent = new_agent(Clock(), policy=BudgetedThompson(), budgets=())
    for reward, ticket in enumerate(agent.choose(n=3)):
        agent.learn(ticket, reward=reward / 2, cost=0.01)
    agent.fail(agent.choose(), cost=0)
    agent.change(policy=MUCB())
    assert memory(agent).pulls.sum() == 4 and "MUCB(alpha=0.0625); arms: small" in repr(agent)
    before = memory(agent)
    agent.change(policy=MUCB(alpha=0.5))
    assert all(map(np.array_equal, jax.tree.leaves(before), jax.tree.leaves(memory(agent))))


# --- time


def test_a_days_budget_renews_at_midnight_there() -> None:
    clock = Clock()
    clock.now = datetime.datetime(2026, 3, 28, 23, 30, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()
    agent = new_agent(clock, arms={"a": 1.0}, budgets=[Budget(1.0, "day", zone="Europe/Berlin")])
    assert agent.choose() is not None and agent.choose() is None
    assert agent.renews_at() == clock.now + 1800.0
    clock.now += 1800.0
    # The clocks go forward
    assert agent.choose() is not None and agent.renews_at() == clock.now + 23 * HOUR


def test_the_level_and_the_shape_of_traffic_are_learnt() -> None:
    """600 requests by day, none by night: after three days that is expected, within 7.5 standard
    errors.
    """
    pace, arrivals, rng = Forecast(0.0, None), 0, np.random.default_rng(0)
    for hour in range(24 * 4):
        for minute in range(rng.poisson(50.0 * (hour % 24 >= 12))):
            now = hour * HOUR + 60.0 * min(minute, 59)
            if int(pace.place(now)) != pace.slot:
                pace.move(int(pace.place(now)), arrivals, now)
                arrivals = 0
            arrivals += 1
            if hour >= 84 and minute == 30:
                (ahead,), (total,) = pace.ahead([(3 * DAY, 4 * DAY)], now, arrivals)
                assert max(abs(ahead - 50 * (95 - hour + 0.5)), abs(total - 600)) < 7.5 * 600**0.5


def test_a_wrong_reading_is_refused_and_the_next_one_goes_on() -> None:
    clock = Clock()
    agent = new_agent(clock, tolerance=HOUR)
    clock.now = 5.0
    assert agent.choose() is not None
    before = state(agent)
    for wrong in (5.0 + 10 * 365 * DAY, -2 * HOUR, 1e300, -1e12, np.nan, None, "1"):
        clock.now = wrong
        for call in (agent.choose, lambda: agent.expire(older_than=1.0)):
            with pytest.raises(Misuse, match=r"^clock: "):
                call()
        # Who only looks is answered
        assert agent.left()["day"] < 3.0 and agent.statistics()["requests"] == 1
    clock.now = 4.0  # a little back: it stands
    assert state(agent) == before and agent.choose().time == 5.0
    clock.now = 90 * DAY
    agent.resume()  # it is right: nobody came for so long
    assert agent.choose().time == 90 * DAY
    clock.now = 60.0
    agent.resume()  # it was wrong after all
    assert agent.choose().time == 60.0


# --- numbers


def test_statistics_are_those_of_an_account_of_our_own() -> None:
    clock, rng, outcomes = Clock(), random.Random(1), []
    agent = new_agent(clock, policy=PricePacer(start=0.5), budgets=[Budget(9.0, DAY, name="day")])
    for _ in range(200):
        clock.now += 60.0
        if (ticket := agent.choose()) is not None:
            cost, reward = rng.random() * ticket.reserved, 2.0 * rng.random()
            agent.learn(ticket, reward=reward, cost=cost)
            outcomes.append((ticket.arm, reward, cost))
    numbers = agent.statistics()
    for name, row in numbers["arms"].items():
        arm_outcomes = np.array([(reward, cost) for arm, reward, cost in outcomes if arm == name])
        assert row["pulls"] == len(arm_outcomes)
        for column, quantity in zip(arm_outcomes.T, ("reward", "cost"), strict=True):
            truth = [column.mean(), column.std(ddof=1) / np.sqrt(len(column))]
            assert [row[quantity], row[f"{quantity}_error"]] == pytest.approx(truth, rel=1e-4)
    budget = numbers["budgets"]["day"]
    assert budget["charged"] == pytest.approx(sum(cost for *_, cost in outcomes), abs=1e-6)
    assert budget["left"] == pytest.approx(9.0 - budget["charged"])
    assert numbers["requests"] == 200 == numbers["turned_away"] + len(outcomes)


# --- what is refused, by name: nothing has changed then

NO_CONTEXTS = None, [1.0], ["a", "b"], [1.0, 1e39]


@jb.pytree
class Stubborn(MUCB):
    """Takes the second arm, come what may."""

    def select_while_open(self, state: Any, key: Any, view: Any, open: Any) -> Any:
        return state, np.int32(1) + 0 * open[0]


@pytest.mark.parametrize(
    ("argument", "call", "settings"),
    [
        ("ticket", lambda x: x.learn(77, cost=0.0), {}),
        ("ticket", lambda x: x.learn(new_agent(lambda: 1.0).choose(), cost=0.0), {}),
        ("cost", lambda x: x.learn(1, cost=-0.01), {}),
        ("reward", lambda x: x.learn(1, cost=0.0, reward=2.5), {}),
        ("reward", lambda x: x.learn(1, cost=0.0, reward=1e-9), {}),
        ("caller", lambda x: x.choose(caller=3), {}),
        ("arm", lambda x: x.choose(available="small"), {}),
        ("policy", lambda x: x.choose(available=["small"]), {"policy": Stubborn()}),
        ("arm", lambda x: x.change(arms={"none": None}), {}),
        ("change", lambda x: x.change(unit=3.0), {}),
        (
            "FixedSplit.weights",
            lambda x: x.change(arms={"d": 1}),
            {"policy": FixedSplit([1.0] * 3)},
        ),
        ("budgets", lambda x: x.change(budgets=[Budget(1, DAY, name="day", of="requests")]), {}),
        *(("context", lambda x, c=c: x.choose(context=c), SEES) for c in NO_CONTEXTS),
    ],
)
def test_a_call_that_cannot_be_meant_is_refused(
    argument: str, call: Callable[[Agent], Any], settings: dict[str, Any]
) -> None:
    agent = new_agent(Clock(), **settings)
    agent.choose(context=[1.0, 2.0] if settings is SEES else None)
    before = state(agent)
    with pytest.raises(jb.InputError, match=f"^{argument}: ") as refused:
        call(agent)
    assert state(agent) == before and "\n" not in str(refused.value)


def of(*amount: Any, **more: Any) -> dict[str, Any]:
    """One budget, as a change."""
    return {"budgets": [Budget(*amount, **more)]}


@pytest.mark.parametrize(
    ("argument", "changes"),
    [
        ("policy", {"policy": "ucb"}),
        ("policy", {"policy": jb.policies.Zooming(lipschitz=1.0)}),
        *(("policy", {"policy": x}) for x in (KUBE(), EpsilonFirst(epsilon=0.1), MRCB())),
        ("policy", {"policy": PricePacer(), "budgets": ()}),
        (r"arms\['a'\]", {"arms": {"a": -1.0}}),
        ("arms", {"arms": {3: 1.0}}),
        ("reward_bound", {"reward_bound": 0.0}),
        ("budgets", {"budgets": BUDGETS[0]}),
        ("budgets", {"budgets": [Budget(1.0, DAY), Budget(2.0, DAY)]}),
        (r"budget\.amount", of(1.5, DAY, of="requests")),
        (r"budget\.arms", of(1.0, DAY, arms=("none",))),
        (r"budget\.every", of(1.0, datetime.timedelta(days=1))),
        (r"budget\.zone", of(1.0, "day", zone="Mars/Base")),
        (r"budget\.per", of(1.0, DAY, per="team")),
        (r"budget\.of", of(1.0, DAY, of="tokens")),
        ("context", {"policy": LinUCB(), "context": 0}),
        ("hold", {"hold": 1.0}),
        ("lost", {"lost": "all"}),
        ("breaker", {"breaker": 3}),
        ("key", {"key": 1}),
    ],
)
def test_an_agent_is_checked(argument: str, changes: dict[str, Any]) -> None:
    with pytest.raises(jb.InputError, match=f"^{argument}: .* given; "):
        new_agent(**({"clock": Clock()} | changes))


# --- threads


def test_eight_threads_share_an_agent(tmp_path: Any) -> None:
    """Nothing is lost or told twice, and no budget pays more than it grants."""
    clock, requests = Clock(), 60
    agent = new_agent(clock, file=tmp_path / "agent.db")

    def serve(seed: int) -> int:
        rng, settled = random.Random(seed), 0
        for _ in range(requests):
            clock.now += 1.0  # not exact between threads, and need not be
            if (ticket := agent.choose()) is not None:
                agent.learn(ticket, reward=rng.random(), cost=rng.random() * ARMS[ticket.arm])
                settled += 1
        return settled

    with ThreadPoolExecutor(8) as threads:
        settled = sum(threads.map(serve, range(8)))
    assert settled == int(memory(agent).pulls.sum()) and agent.overspent() == {}
    assert agent.statistics()["requests"] == 8 * requests and not agent.open()
    assert jb.live.audit(tmp_path / "agent.db")["problems"] == []
