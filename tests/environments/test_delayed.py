"""Requests in flight and budgets that renew: against a plain twin and the service."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.core import arm_statistics, streams, ticks
from jaxbandits.core.protocol import View
from jaxbandits.core.streams import Domain
from jaxbandits.environments import Batched, Delayed, FiniteArms, FixedDelay, Reservoir, TableDelay
from jaxbandits.environments.delayed import delay_words
from jaxbandits.policies import (
    CUSUM,
    RCB,
    ArmIncreasing,
    BudgetedThompson,
    Discounted,
    EvenPace,
    FixedSplit,
    InFlight,
    OmegaUCB,
    PricePacer,
    PrimalDualBwK,
    Restarting,
    Schedule,
    SoftIndex,
    ThompsonLP,
    UCBBwK,
    Windowed,
)
from jaxbandits.policies.wrappers import Known
from jaxbandits.testing import check_constraint, check_environment
from jaxbandits.testing.lanes import domain_words
from tests.policies.reference.service import (
    Budget,
    Pacer,
    Twin,
    even_line,
    expected_left,
    with_returns,
)

KEY = jax.random.key(26)
BOUNDS = (0.25, 0.5, 1.0)
REQUESTS = [5, 9, 0, 14, 7, 3, 12, 10]
EXPECTED = [6, 8, 1, 12, 7, 4, 10, 12]
AMOUNT, EVERY, CARRIES = (1.5, 2.0), (2, 4), (False, True)
GROUPS = (None, (1, 2))
ROUNDS, RUNS, PATIENCE, M = sum(REQUESTS), 4, 12, 2


@cache
def logs() -> list[list[tuple[Any, Any]]]:
    rng = np.random.default_rng(1)
    quality = (0.3, 0.6, 0.9)
    return [
        [
            # Whole billionths
            (np.clip(q + 0.3 * rng.random(9) - 0.15, 0, 1), b * np.rint(512 * rng.random(9)) / 512)
            for q, b in zip(quality, BOUNDS, strict=True)
        ]
    ]


@cache
def world() -> Delayed:
    law = TableDelay.geometric(4.0, lost=0.1)
    return Delayed(
        FiniteArms.empirical(logs()), law, room=32, arrivals=M, patience=PATIENCE, groups=GROUPS
    )


RENEWING = jb.Renewing(AMOUNT, EVERY, REQUESTS, EXPECTED, CARRIES)


@cache
def lanes(name: str, carries: tuple[bool, ...] = CARRIES) -> jb.Trajectory:
    """Some lanes of a policy, ``[run, round]``."""
    policy = InFlight(POLICIES[name], bound=BOUNDS)
    renewing = dataclasses.replace(RENEWING, carry_over=carries)

    def lane(run: jax.Array) -> jb.Trajectory:
        return jb.rollout(policy, world(), renewing, key=KEY, rounds=ROUNDS, replicate=run)

    return jax.device_get(jax.jit(jax.vmap(lane))(jnp.arange(RUNS)))


POLICIES = {
    "omega_ucb": OmegaUCB(),
    "pacer": PricePacer(eta=0.05, budgets=2),
    "thompson": BudgetedThompson(),
    "even_pace": EvenPace(OmegaUCB()),
    "window": Windowed(PricePacer(eta=0.05, budgets=2), window=15),
    "discount": Discounted(OmegaUCB(), gamma=0.9),
    "restarts": Restarting(
        BudgetedThompson(), CUSUM(threshold=0.5, first=3), explore=0.1, whole=False
    ),
}
SLOTS = np.repeat(np.arange(len(REQUESTS)), REQUESTS)
SEEN = np.concatenate([np.arange(n) for n in REQUESTS])


def delays(run: int, arms: np.ndarray) -> np.ndarray:
    """Of each round, with the simulator's own draws."""
    key = jax.random.wrap_key_data(domain_words(streams.root_key(KEY), 0, run, Domain.WORLD))
    words = jax.vmap(lambda t, k: delay_words(key, t, k)[0])(
        jnp.arange(1, arms.size + 1), jnp.asarray(np.maximum(arms, 0))
    )
    table = np.asarray(world().law.cumulated[0])
    later = (np.asarray(words >> 8)[:, None] >= table).sum(1)
    return np.where(later < table.size, later, 1 << 30)


def fresh_twin(carries: tuple[bool, ...]) -> Twin:
    budgets = [
        Budget(int(a * ticks.ONE), e, set(range(3)) if g is None else set(g), c)
        for a, e, g, c in zip(AMOUNT, EVERY, GROUPS, carries, strict=True)
    ]
    return Twin([int(b * ticks.ONE) for b in BOUNDS], budgets, PATIENCE)


class Round(NamedTuple):
    """A round of a lane, beside what the twin knows before it."""

    number: int
    arm: int  # −1: none was played
    slot: int
    earlier: int  # requests of this slot that came before
    lane: Any  # the lane's own values of this round
    twin: Twin
    arrived: list[tuple[int, int, int, int, bool]]  # filled when the round is over
    can: list[int]  # arms that every budget can pay


def replayed(
    name: str,
    run: int,
    booked: Callable[[Round], None] = lambda now: None,
    carries: tuple[bool, ...] = CARRIES,
) -> Iterator[Round]:
    """A lane's decisions, round by round; ``booked`` is told of each before arrivals."""
    lane, twin = jax.tree.map(lambda x: x[run], lanes(name, carries)), fresh_twin(carries)
    wait = delays(run, lane.action)
    for i, arm in enumerate(lane.action.tolist()):
        slot, values = int(SLOTS[i]), jax.tree.map(lambda x, i=i: x[i], lane)
        arrived: list[tuple[int, int, int, int, bool]] = []
        yield (
            now := Round(
                i + 1, arm, slot, int(SEEN[i]), values, twin, arrived, twin.affordable(slot)
            )
        )
        if arm >= 0:
            cost = int(values.outcome.cost.max())
            twin.play(i + 1, slot, arm, int(values.outcome.reward), cost, int(wait[i]))
        booked(now)
        arrived += twin.arrive(i + 1, M)


def test_the_simulator_agrees_with_a_plain_twin():
    """Queue, statistics, open requests, money in whole ticks; decisions by float64 scores."""
    skips, arrived, late = 0, [], False

    def booked(now: Round) -> None:
        twin, memory = now.twin, now.lane.state.memory
        assert memory.open.tolist() == twin.open
        assert memory.learnt.pulls.tolist() == twin.n
        assert ticks.join(memory.learnt.reward).tolist() == twin.reward
        assert ticks.join(memory.learnt.cost).tolist() == twin.cost
        for j, budget in enumerate(twin.budgets):
            charged = int(ticks.join(memory.budgets.charged)[j])
            granted = budget.amount * (now.slot // budget.every + 1 if budget.carries else 1)
            assert granted - charged == budget.balance(now.slot), (now.number, j)

    for run in range(RUNS):
        for now in replayed("omega_ucb", run, booked):
            twin, can = now.twin, now.can
            assert now.lane.played and (now.arm >= 0) == bool(can), now
            if now.arm >= 0:
                scores = twin.scores(now.number, 0.25)
                new = [k for k in can if twin.n[k] + twin.open[k] == 0]
                best = max(scores[k] for k in can)
                assert (
                    now.arm == new[0]
                    if new
                    else now.arm in can and scores[now.arm] >= best * (1 - 1e-5)
                ), now
            skips += now.arm < 0
            late |= sum(x[0] < now.number for x in twin.waiting) > 0
            arrived.append(now.arrived)
        violation, spent = (
            ticks.join(x) for x in (now.lane.ledger.audit["violation"], now.lane.ledger.spent)
        )
        assert violation.tolist() == [0, 0] == [budget.overspent() for budget in twin.budgets]
        assert spent.tolist() == [sum(budget.paid.values()) for budget in twin.budgets]
    # Or nothing was tried
    assert skips and late and any(is_lost for events in arrived for *_, is_lost in events)


class Forecast:
    """In place of what an agent learns of its traffic: what the simulator's accountant tells."""

    slot = None

    def place(self, now: float) -> float:
        return now

    def move(self, slot: int, seen: int, now: float) -> None:
        self.slot = slot

    def plain(self) -> None:
        return None

    def ahead(self, periods: Any, now: float, seen: int) -> list[list[int]]:
        seen, slot = seen if int(now) == self.slot else 0, int(now)
        ends = [(slot // every + 1) * every for every in EVERY]
        ahead = [expected_left(slot, seen, every, EXPECTED) for every in EVERY]
        return [
            ahead,
            [sum(EXPECTED[end - every : end]) for every, end in zip(EVERY, ends, strict=True)],
        ]


def serve(name: str, run: int) -> None:
    """The same requests, delays, losses and reservations: the same decisions and state."""
    rounds, now = list(replayed(name, run, carries=(False, False))), [0.0]
    key = jax.random.wrap_key_data(domain_words(streams.root_key(KEY), 0, run, Domain.POLICY))
    names = ("a", "b", "c")
    budgets = [
        jb.live.Budget(a, float(e), None if g is None else tuple(names[k] for k in g), str(j))
        for j, (a, e, g) in enumerate(zip(AMOUNT, EVERY, GROUPS, strict=True))
    ]
    agent = jb.live.Agent(
        POLICIES[name],
        arms=dict(zip(names, BOUNDS, strict=True)),
        reward_bound=1.0,
        budgets=budgets,
        key=key,
        lost="bound",
        clock=lambda: now[0],
    )
    with agent._transaction() as ledger:
        setup, forecast = ledger.setup, Forecast()
        ledger.forecast = lambda: forecast  # type: ignore[assignment,method-assign,return-value]
    for t, arm, slot, *_, arrived, _can in rounds:
        now[0] = float(slot)
        ticket = agent.choose()
        assert (names.index(ticket.arm) if ticket else -1) == arm, (name, run, t)
        if t < ROUNDS:
            for round, _, reward, cost, is_lost in arrived:
                if is_lost:
                    with agent._transaction() as ledger:
                        ledger.settle(now[0], "expire", ledger.find(round))
                else:
                    agent.learn(round, reward=reward / ticks.ONE, cost=cost / ticks.ONE)
    simulated = rounds[-1].lane.state.memory
    with agent._transaction() as ledger:
        service = ledger.service
        waiting = np.array([x["open"] for x in ledger.rows("SELECT * FROM arms ORDER BY id")])
        paid = [
            ledger.balance(account, now[0])[1] * ticks.ONE // setup.unit
            for account in setup.accounts
        ]
    learnt = setup.program.state(service["learnt"])
    memory = Known(learnt, waiting, simulated.budgets._replace(charged=ticks.split(np.array(paid))))
    for got, must in zip(jax.tree.leaves(memory), jax.tree.leaves(simulated), strict=True):
        if got.ndim and got.shape != must.shape:  # an agent has room for more arms
            got, more = got[: must.shape[0]], got[must.shape[0] :]
            assert not np.asarray(more).any()
        if got.dtype == np.float32:  # prices, in a program that is another one
            np.testing.assert_allclose(got, must, rtol=1e-5)
        else:
            assert np.array_equal(got, must), (name, run)


SLOW = [
    pytest.param(name, marks=pytest.mark.integration)
    for name in ("pacer", "thompson", "even_pace", "window", "discount", "restarts")
]


@pytest.mark.sample_rows("omega_ucb", "pacer", "thompson", "window")
@pytest.mark.parametrize("name", ["omega_ucb", *SLOW])
def test_a_service_decides_as_the_simulator(name: str) -> None:
    for run in range(RUNS):
        serve(name, run)


@pytest.mark.integration
def test_the_pacer_agrees_with_its_twin():
    """Prices to 10⁻³ over a whole lane in float32, decisions but for near-ties."""
    decisions = 0
    for run in range(RUNS):
        pacer = Pacer(eta=0.05)
        for now in replayed("pacer", run):
            twin, can, arm = now.twin, now.can, now.arm
            if not can:
                assert arm < 0
                continue
            money = with_returns(twin, pacer, now.slot)
            ahead = [
                expected_left(now.slot, now.earlier, budget.every, EXPECTED)
                for budget in twin.budgets
            ]
            targets = [
                max(a / ticks.ONE / b, 1 / ticks.ONE) for a, b in zip(money, ahead, strict=True)
            ]
            net = pacer.play(twin, now.number, targets, can)
            new, best = [k for k in can if net[k] == np.inf], max(net[k] for k in can)
            if arm < 0:
                assert best < 1e-3
            else:
                assert arm == new[0] if new else net[arm] >= best - 1e-3
            pacer.move(twin, targets, arm)
            assert np.allclose(now.lane.state.memory.learnt.price, pacer.price, rtol=1e-3), now
            decisions += 1
    assert decisions > ROUNDS


@pytest.mark.integration
def test_an_even_pace_stays_under_its_line():
    for run in range(RUNS):
        skips = 0
        for now in replayed("even_pace", run):
            line = [
                even_line(budget, now.slot, now.earlier, EXPECTED) for budget in now.twin.budgets
            ]
            room = [
                min(x for x, b in zip(line, now.twin.budgets, strict=True) if k in b.arms)
                for k in range(3)
            ]
            fits = [k for k, bound in enumerate(now.twin.bounds) if bound <= room[k] + 8]
            assert now.arm in fits if now.arm >= 0 else not fits, now
            skips += now.arm < 0
        assert skips


@pytest.mark.parametrize(
    "policy", [OmegaUCB(), PrimalDualBwK(), UCBBwK(), ThompsonLP()], ids=lambda x: type(x).__name__
)
@pytest.mark.quick_rows("OmegaUCB", "PrimalDualBwK")
def test_without_delay_it_is_the_policy_itself(policy: jb.Policy) -> None:
    arms, limit = dear(), jb.TotalBudget([20.0, 25.0], last_pull="counts", rounds=60)
    if isinstance(policy, OmegaUCB):
        arms, limit = FiniteArms.empirical(logs()), jb.Horizon(60)
    plain = jb.rollout(policy, arms, limit, key=KEY, rounds=60)
    late = jb.rollout(InFlight(policy), Delayed(arms), limit, key=KEY, rounds=60)
    assert np.array_equal(plain.action, late.action)
    assert np.array_equal(plain.outcome.reward, late.outcome.reward)
    # A world that answers late has costs for each of its budgets
    assert np.array_equal(np.ravel(plain.outcome.cost), np.ravel(late.outcome.cost))
    same = jax.tree.map(np.array_equal, late.state.memory.learnt, plain.state)
    assert jax.tree.all(same)


# --- several costs, which arrive together


def dear() -> FiniteArms:
    return FiniteArms.bernoulli([[0.3, 0.6, 0.9]], [[[0.2, 0.5], [0.6, 0.4], [0.9, 0.7]]])


def test_several_costs_arrive_together_and_are_held_and_given_back() -> None:
    """Outcomes of six rounds ago are known; budgets are charged these, and open bounds."""
    rounds, bound = 40, (1.0, 1.0, 1.0)
    late = Delayed(dear(), FixedDelay(5), room=8)
    limit = jb.TotalBudget([60.0, 60.0], last_pull="counts", rounds=60)
    lane = jb.rollout(InFlight(PrimalDualBwK()), late, limit, key=KEY, rounds=rounds)
    hot = (np.asarray(lane.action)[:, None] == np.arange(3))[..., None]
    costs = np.cumsum(hot * np.asarray(lane.outcome.cost)[:, None, :].astype(np.int64), axis=0)
    learnt_costs = ticks.join(lane.state.memory.learnt.learnt.cost)
    assert (
        np.array_equal(learnt_costs[6:], costs[:-6])
        and not learnt_costs[:6].any()
        and learnt_costs[-1].all()
    )
    day = jb.Renewing([9.0, 7.0], [2, 1], [10] * 4)
    lane = jb.rollout(
        InFlight(FixedSplit([1.0, 1.0, 1.0]), bound=bound), late, day, key=KEY, rounds=rounds
    )
    cost, is_pull = np.asarray(lane.outcome.cost).astype(np.int64), np.asarray(lane.action) >= 0
    charged = ticks.join(lane.state.memory.budgets.charged)
    for j, slots in enumerate((2, 1)):
        for t in range(rounds):
            first = t // (10 * slots) * 10 * slots  # of this period
            paid = sum(
                int(cost[s, j]) if s <= t - 6 else ticks.ONE * int(is_pull[s])
                for s in range(first, t + 1)
            )
            assert charged[t, j] == paid, (j, t)
    assert not ticks.join(lane.ledger.audit["violation"]).any()
    assert not is_pull.all()
    assert is_pull.sum() > 20
    with pytest.raises(jb.InputError, match=r"groups: .* the world has 2 costs"):
        Delayed(dear(), groups=(None, (1,))).check()


def test_decisions_of_a_batch_see_nothing_of_each_other():
    """Statistics change between batches only, and an index policy spreads its pulls."""
    rounds, size = 24, 6
    batches = Delayed(FiniteArms.empirical(logs()), Batched(size), room=size)
    lane = jb.rollout(InFlight(OmegaUCB()), batches, jb.Horizon(rounds), key=KEY, rounds=rounds)
    pulls = np.asarray(lane.state.memory.learnt.pulls).sum(1)
    assert pulls.tolist() == [t // size * size for t in range(rounds)]
    assert sorted(lane.action[:3].tolist()) == [0, 1, 2]
    assert sorted(lane.action[3:6].tolist()) == [0, 1, 2]


def test_too_many_open_requests_end_the_lane_with_a_status():
    full = Delayed(FiniteArms.empirical(logs()), FixedDelay(10), room=6)
    lane = jb.rollout(InFlight(OmegaUCB()), full, jb.Horizon(24), key=KEY, rounds=8)
    assert jb.Status(int(lane.status[-1])) == jb.Status.CAPACITY and int(lane.played.sum()) == 6


def test_open_pulls_count_at_their_arms_means():
    rng = np.random.default_rng(0)
    n = np.array([0, 0, 1, 7, 2**20, 2**30], np.int64)
    reward, cost = (np.array([rng.integers(0, x * ticks.ONE + 1) for x in n]) for _ in range(2))
    cost[3] = 7 * ticks.ONE
    open_ = np.array([0, 3, 1000, 5, 10**6, 10**6])
    stats = arm_statistics.ArmStatistics(
        jnp.asarray(n, jnp.int32), ticks.split(reward), ticks.split(cost), None, None
    )
    got = arm_statistics.counted(stats, jnp.asarray(open_, jnp.int32))
    divisor = np.maximum(n, 1)
    assert ticks.join(got.reward).tolist() == (reward + open_ * (reward // divisor)).tolist()
    assert (
        ticks.join(got.cost).tolist()
        == (cost + open_ * np.where(n > 0, cost // divisor, ticks.ONE)).tolist()
    )
    assert got.pulls.tolist() == (n + open_).tolist()


@pytest.mark.integration
def test_delayed_worlds_and_renewing_budgets_keep_the_contract():
    assert check_environment(world(), key=KEY, counted=False) < 5
    late = Delayed(
        dear(), TableDelay.geometric(4.0, lost=0.1), room=32, arrivals=M, patience=PATIENCE
    )
    assert check_environment(late, key=KEY, counted=False) < 5
    check_constraint(RENEWING, world(), InFlight(OmegaUCB(), bound=BOUNDS), key=KEY)


@pytest.mark.parametrize("carries", [False, True])
def test_amounts_without_end_do_not_wrap(carries: bool) -> None:
    """10⁹ in each of 600 periods, more than a total holds, is as much as one holds."""
    prepared = jb.Renewing([1e9, 2.0], [1, 1], [1] * 600, carry_over=carries).prepare(world())
    granted = ticks.join(prepared.granted)
    assert (granted > 0).all() and (np.diff(granted, axis=1) >= 0).all()
    assert (ticks.join(prepared.grants) >= granted[:, -1]).all()
    assert np.isfinite(prepared.best_rate(*world().values())).all()


def test_what_draws_counts_open_requests_too() -> None:
    """Answers come after 40 rounds; until then every arm is served once before any is again."""
    slow = Delayed(FiniteArms.bernoulli([0.5] * 6, [0.5] * 6), FixedDelay(40), room=64)
    limit = jb.Renewing([100.0], [1], [30])
    policy = InFlight(SoftIndex(OmegaUCB(), 0.1))
    lane = jb.rollout(policy, slow, limit, key=KEY, rounds=30)
    assert sorted(np.asarray(lane.action[:6]).tolist()) == [*range(6)]
    assert np.bincount(np.asarray(lane.action), minlength=6).max() < 20


def test_an_arm_whose_only_answer_was_lost_is_tried_again() -> None:
    state = arm_statistics.empty(4)._replace(pulls=jnp.array([3, 0, 2, 0]))
    admitted = ArmIncreasing(RCB(), beta=1.0).admits(
        state, View(jnp.int32(100), None, jnp.ones(4, bool))
    )
    assert admitted.tolist() == [True, True, True, False]


def test_a_reservoir_may_answer_late() -> None:
    late = Delayed(Reservoir.ratio(KEY, instances=2, capacity=8, beta=1.0), FixedDelay(2), room=4)
    late.check()
    reward, cost = late.values()
    assert cost.shape == (*reward.shape, 1)
    named = Delayed(
        Reservoir.ratio(KEY, instances=2, capacity=8, beta=1.0),
        FixedDelay(2),
        room=4,
        groups=((1,),),
    )
    with pytest.raises(jb.InputError, match=r"groups: \(\(1,\),\) given; it must be \(None,\)"):
        named.check()


def test_an_outcome_that_comes_when_patience_ends_is_not_lost() -> None:
    def lost_count(delay: int) -> int:
        law = TableDelay.of(np.eye(5)[delay])  # of one shape, so that both have one program
        arms = FiniteArms.bernoulli([0.5, 0.5], [0.5, 0.5])
        late = Delayed(arms, law, room=8, patience=3)
        result = jb.simulate(InFlight(OmegaUCB()), late, jb.Horizon(20), key=KEY, marks=1)
        return int(result.ledger["event:lost"].item())

    assert [lost_count(delay) for delay in (3, 4)] == [0, 17]


def test_delays_of_any_size_of_weight() -> None:
    assert (
        TableDelay.of([1e308, 0, 1e308]).cumulated.tolist()
        == TableDelay.of([1, 0, 1]).cumulated.tolist()
    )


def test_each_budget_expects_what_its_own_arms_cost() -> None:
    late = Delayed(FiniteArms.bernoulli([0.5, 0.5], [0.25, 0.75]), groups=((0,), (1,), None))
    policy = InFlight(Schedule(at=[1, 13], arms=[0, 1]), bound=[1.0, 1.0])
    limit = jb.Renewing(amount=[99.0] * 3, every=[1], requests=[20])
    result = jb.simulate(policy, late, limit, key=KEY, marks=1)
    expected = ticks.to_units(result.ledger["expected_spent"]).ravel()
    assert expected.tolist() == [12 * 0.25, 8 * 0.75, 12 * 0.25 + 8 * 0.75]


def money_and_tokens(rounds: int, *amounts: float) -> jb.Renewing:
    return jb.Renewing(amount=list(amounts), every=[1] * len(amounts), requests=[rounds] * 10)


@pytest.mark.integration
def test_a_price_for_each_of_two_equal_costs_is_one_cost_with_two_budgets() -> None:
    def actions(world: FiniteArms, **keywords: Any) -> np.ndarray:
        late = Delayed(world, FixedDelay(2), room=8, **keywords)
        policy = InFlight(PricePacer(eta=0.05, budgets=2), bound=BOUNDS)
        return jb.rollout(policy, late, money_and_tokens(30, 6.0, 6.0), key=KEY, rounds=300).action

    twice = [[(r, np.repeat(c[:, None], 2, axis=1)) for r, c in arms] for arms in logs()]
    single = actions(FiniteArms.empirical(logs()), groups=(None, None))
    both = actions(FiniteArms.empirical(twice))
    assert np.array_equal(single, both) and len(set(single.tolist())) > 2


@pytest.mark.integration
def test_money_and_tokens_a_day_are_paced_by_their_prices() -> None:
    """Either may be scarce: nothing is overspent, the scarce one is used up, little is lost."""
    for amounts in ((40.0, 90.0), (90.0, 40.0)):
        limit, late = money_and_tokens(200, *amounts), Delayed(dear(), FixedDelay(3), room=8)
        policy = InFlight(PricePacer(budgets=2))
        result = jb.simulate(policy, late, limit, key=KEY, replicates=4, marks=1)
        assert (result.violation == 0).all()
        spent, scarce = result.spent.values[0, 0, :, 0], int(np.argmin(amounts))
        assert (spent[:, scarce] > 0.93 * 10 * amounts[scarce]).all()
        assert (result.regret.values < 0.1 * result.best_rate[0] * 2000).all()
    with pytest.raises(jb.InputError, match=r"budgets: 1 given; .* for each cost"):
        jb.simulate(InFlight(PricePacer()), late, limit, key=KEY)


@pytest.mark.integration
def test_a_price_that_divides_a_budget_that_renews_is_paid_as_often() -> None:
    for price, times in itertools.product((0.1, 0.3, 0.7), (1, 10)):  # rounded up, up and down
        world = Delayed(FiniteArms.empirical([[([1.0], [price])]]), FixedDelay(0), room=2)
        day = jb.Renewing([round(price * times, 10)], [1], [20, 20])
        result = jb.simulate(InFlight(OmegaUCB(), bound=[price]), world, day, key=KEY, marks=1)
        assert result.reward.max().item() == 2 * times and not result.violation.max().item()


def test_budgets_are_measured_in_the_dearest_price_and_others_as_they_are() -> None:
    def whole(budget: float, costs: list[list[float]], last_pull: str = "forfeits") -> int:
        world = FiniteArms.empirical([[([1.0] * len(row), row) for row in costs]])
        return int(ticks.join(jb.TotalBudget(budget, last_pull=last_pull).prepare(world).budget)[0])

    tenth, seven = round(0.1 * ticks.ONE), round(0.7 * ticks.ONE)  # 0.4 too many, 0.2 too few
    assert whole(7.0, [[0.1], [0.7]]) == 70 * tenth
    assert whole(7.0, [[0.1], [0.7]], "counts") == 10 * seven
    for costs in ([[0.1234567, 0.2]], [[0.3]]):
        assert (
            whole(1.0, costs) == ticks.ONE
        )  # no decimals, or nothing that is rounded up by a tick
    assert whole(1.0, [[0.1, 0.2]]) == 10 * tenth  # whole tenths, though none of them stays
    assert whole(1.0, [[0.1, 0.2], [0.1]]) == 10 * tenth
    assert whole(1000.03, [[0.1]]) == 100003 * tenth // 10  # both are whole cents
    assert whole(1000 / 3, [[0.1]]) == int(1000 / 3 * ticks.ONE)


def test_a_free_arm_is_played_whatever_is_left() -> None:
    world = Delayed(FiniteArms.empirical([[([1.0], [0.0]), ([1.0], [1.0])]]), FixedDelay(0), room=2)
    policy = InFlight(OmegaUCB(), bound=[0.0, 0.5])  # the other one costs twice its bound
    result = jb.simulate(policy, world, jb.Renewing([0.75], [1], [20]), key=KEY, marks=1)
    assert result.reward.max().item() == 20 and result.violation.max().item() == 0.25
