"""Policies that forget: in the limit the inner policy's bits, and each has a plain twin."""

from __future__ import annotations

import dataclasses
import math
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.core import arm_statistics, ticks
from jaxbandits.core.pytrees import pytree
from jaxbandits.environments import Delayed, FiniteArms, FixedDelay, Piecewise, WithNullArm
from jaxbandits.policies import (
    CUSUM,
    GLR,
    MUCB,
    BudgetedThompson,
    Detector,
    Discounted,
    FixedSplit,
    InFlight,
    OmegaStarUCB,
    OmegaUCB,
    OnePhase,
    PageHinkley,
    PricePacer,
    Restarting,
    Schedule,
    SoftIndex,
    Windowed,
    alarms,
)
from jaxbandits.policies.forgetting import _in_whole_pulls
from jaxbandits.testing import assert_same_results, episode
from tests.contract.worlds import KEY, world

ROUNDS = 150
HORIZON = jb.Horizon(ROUNDS)
NEVER = CUSUM(threshold=1e6)
INNER: dict[str, Any] = {
    "omega": OmegaUCB(),
    "omega star": OmegaStarUCB(),
    "m-UCB": MUCB(),
    "Thompson": BudgetedThompson(),
    "soft index": SoftIndex(OmegaUCB(), temperature=0.5),
}


def without_restarts(result: jb.Result) -> jb.Result:
    final = {name: x for name, x in result.final.items() if name != "restarts"}
    return dataclasses.replace(result, final=final)


@pytest.mark.integration
@pytest.mark.sample_rows("m-UCB", "Thompson")
@pytest.mark.parametrize("name", INNER)
def test_who_never_forgets_plays_the_inner_policys_own_bits(name: str) -> None:
    """γ = 1, a window as long as the run, a detector that never tells."""
    inner = INNER[name]
    reference = lane_of(inner)
    limits = [
        Windowed(inner, window=400),
        Discounted(inner, gamma=1.0),
        Discounted(inner, gamma=1.0, per="pull"),
        Restarting(inner, NEVER),
        Restarting(inner, NEVER, whole=False),
    ]
    for policy in limits:
        steps = lane_of(policy)
        for got, must in ((steps.action, reference.action), (steps.outcome, reference.outcome)):
            jax.tree.map(partial(np.testing.assert_array_equal, err_msg=str(policy)), got, must)


@pytest.mark.parametrize(
    "policy", [OnePhase(c=0.6, horizon=100), PricePacer()], ids=["OnePhase", "PricePacer"]
)
@pytest.mark.integration
def test_policies_of_average_cost_and_of_renewing_budgets_too(policy: Any) -> None:
    keywords: dict[str, Any] = {"key": KEY, "replicates": 3, "marks": 2, "engine": "scan"}
    if isinstance(policy, OnePhase):
        arms: Any = WithNullArm(world("bernoulli"))
        constraint: Any = jb.AverageCost(c=0.6, rounds=100)
        around: Any = lambda x: x  # noqa: E731
    else:
        arms = Delayed(world("bernoulli"), FixedDelay(3), room=8)
        constraint = jb.Renewing(amount=[6.0], every=[5], requests=[20] * 5)
        around = InFlight
    reference = jb.simulate(around(policy), arms, constraint, **keywords)
    for wrapped in (
        Windowed(policy, window=120),
        Discounted(policy, gamma=1.0),
        Restarting(policy, NEVER),
    ):
        result = without_restarts(jb.simulate(around(wrapped), arms, constraint, **keywords))
        assert_same_results(
            reference, result, f"{type(policy).__name__} in {type(wrapped).__name__}"
        )
    # and a short memory plays another way
    short = jb.simulate(around(Windowed(policy, window=10)), arms, constraint, **keywords)
    assert (short.ledger["reward"] != reference.ledger["reward"]).any()


# --- twins: float64, from the definitions, fed what the policy saw


def lane_of(policy: Any) -> Any:
    """400 rounds of one lane in a world that changes halfway."""
    first, second = (
        FiniteArms.beta(*x) for x in np.random.default_rng(3).uniform(0.3, 4, (2, 4, 1, 4))
    )
    return one_lane(policy, Piecewise.of([first, second], at=[200]), 400, 12)


def one_lane(policy: Any, environment: Any, rounds: int, seed: int) -> Any:
    """Every array ``[round, …]``."""
    steps = episode(policy, environment, jb.Horizon(rounds), jax.random.key(seed), rounds)
    return jax.tree.map(lambda x: x[0], steps)


def decided(steps: Any, t: int) -> Any:
    """The policy's state when round t was decided."""
    return jax.tree.map(lambda x: np.asarray(x)[t - 1], steps.after)


def units(x: Any) -> np.ndarray:
    return np.asarray(x, np.float64) / ticks.ONE


def total(x: ticks.Total) -> np.ndarray:
    return ticks.join(x) / ticks.ONE


def wilson(reward: float, cost: float, n: float, t: float, rho: float = 0.25) -> float:
    """ω-UCB as printed: roots of (n + z²)ω² − (2Σx + z²)ω + (Σx)²/n = 0."""
    z2 = 2 * rho * math.log(t) if t > 1 else 0.0

    def roots(x: float) -> tuple[float, float]:
        a, b, c = n + z2, 2 * x + z2, x * x / n
        root = math.sqrt(max(b * b - 4 * a * c, 0.0))
        return 2 * c / (b + root), (b + root) / (2 * a)

    low = roots(cost)[0]
    return roots(reward)[1] / low if low > 0 else math.inf


def decisions_agree(
    steps: Any, weights: Any, arms: int, time_of: Any, tolerance: float = 1e-4
) -> int:
    """Every decision is one that the twin could take: ω-UCB of sums in which round s has the weight
    w(s, t).

    Returns how many were clear.
    """
    action = np.asarray(steps.action)
    reward, cost = units(steps.outcome.reward), units(steps.outcome.cost)
    clear = 0
    for t in range(1, len(action) + 1):
        w = np.asarray([weights(s, t) for s in range(1, t)])
        of_arm = [action[: t - 1] == k for k in range(arms)]
        n = np.asarray([w[m].sum() for m in of_arm])
        if (fresh := np.flatnonzero(n <= 0)).size:
            assert action[t - 1] == fresh[0], t
            continue
        sums = [(w[m] @ reward[: t - 1][m], w[m] @ cost[: t - 1][m]) for m in of_arm]
        scores = np.asarray(
            [wilson(r, c, k, time_of(t, w)) for (r, c), k in zip(sums, n, strict=True)]
        )
        assert scores[action[t - 1]] >= scores.max() * (1 - tolerance), (t, scores, action[t - 1])
        clear += int((scores >= scores.max() * (1 - tolerance)).sum() == 1)
    return clear


def test_the_twin_of_a_window() -> None:
    steps = lane_of(Windowed(OmegaUCB(), window=40))
    assert decisions_agree(steps, lambda s, t: float(s >= t - 40), 4, lambda t, w: min(t, 41)) > 300


def test_the_twin_of_a_discount_per_round() -> None:
    gamma = 0.97
    steps = lane_of(Discounted(OmegaUCB(), gamma=gamma))
    clear = decisions_agree(
        steps, lambda s, t: gamma ** (t - 1 - s), 4, lambda t, w: 1 + w.sum(), tolerance=2e-3
    )
    assert clear > 250


def test_the_twin_of_a_discount_per_pull() -> None:
    steps = lane_of(Discounted(OmegaUCB(), gamma=0.9, per="pull"))
    action = np.asarray(steps.action)

    def weight(s: int, t: int) -> float:
        return 0.9 ** int((action[s : t - 1] == action[s - 1]).sum())

    assert decisions_agree(steps, weight, 4, lambda t, w: t, tolerance=1e-3) > 300


def test_discounted_sums_are_those_of_the_definition() -> None:
    """Whole ticks, rounded down once a round: never more than a tick a round below."""
    gamma = float(np.float32(0.95))
    steps = lane_of(Discounted(OmegaUCB(), gamma=gamma))
    action, reward = np.asarray(steps.action), units(steps.outcome.reward)
    cost = units(steps.outcome.cost)
    for t in (2, 50, 299):
        state = decided(steps, t)
        # Of the rounds before t, as round t + 1 will see them
        weights = gamma ** (t - np.arange(1.0, t))
        for field, values in (("pulls", np.ones_like(reward)), ("reward", reward), ("cost", cost)):
            of_arm = action[: t - 1] == np.arange(4)[:, None]
            must = of_arm @ (weights * values[: t - 1])
            got = total(getattr(state.inner, field))
            assert (got <= must + 1e-9).all() and (must - got <= 21 / ticks.ONE).all(), (t, field)


def test_a_windows_sums_are_exact_and_draws_do_not_come_twice() -> None:
    """A window shows the inner policy one round number for ever; its draws go on changing."""
    flat = FiniteArms.bernoulli([0.5] * 8, [0.5] * 8)
    thompson = one_lane(Windowed(BudgetedThompson(), window=2), flat, 400, 5)
    for steps, arms, width in ((lane_of(Windowed(OmegaUCB(), window=40)), 4, 40), (thompson, 8, 2)):
        action, reward = np.asarray(steps.action), np.asarray(steps.outcome.reward)
        for t in (3, 41, 200):
            state, recent = decided(steps, t).inner, slice(max(t - 1 - width, 0), t - 1)
            pulls = np.bincount(action[recent], minlength=arms)
            np.testing.assert_array_equal(state.pulls, pulls)
            sums = (action[recent] == np.arange(arms)[:, None]) @ reward[recent].astype(np.int64)
            if arms == 4:
                np.testing.assert_array_equal(ticks.join(state.reward), sums)
            else:  # trials, here of 0 and 1
                np.testing.assert_array_equal(state.rewards, sums // ticks.ONE)
    assert np.bincount(action[20:], minlength=8).min() > 15


# --- detectors, and their twins


def cusum_twin(x: np.ndarray, h: float, epsilon: float, first: int) -> list[int]:
    alarm_times: list[int] = []
    sample: list[float] = []
    up = down = 0.0
    for number, y in enumerate(x, start=1):
        if len(sample) < first:
            sample.append(y)
            continue
        u = float(np.mean(sample))
        up, down = max(0.0, up + y - u - epsilon), max(0.0, down + u - y - epsilon)
        if max(up, down) >= h:
            alarm_times.append(number)
            sample, up, down = [], 0.0, 0.0
    return alarm_times


def page_hinkley_twin(x: np.ndarray, threshold: float, delta: float) -> list[int]:
    """As printed: m_T = Σ (x_t − x̄_t − δ) − its least value so far, and the same downwards."""
    alarm_times, begin = [], 0
    while begin < len(x):
        part = x[begin:]
        mean = np.cumsum(part) / np.arange(1, len(part) + 1)
        worst = np.zeros(len(part))
        for sign in (1, -1):
            m = np.concatenate([[0.0], np.cumsum(sign * (part - mean) - delta)])
            worst = np.maximum(worst, (m - np.minimum.accumulate(m))[1:])
        crossings = np.flatnonzero(worst >= threshold)
        if not crossings.size:
            break
        begin += int(crossings[0]) + 1
        alarm_times.append(begin)
    return alarm_times


def glr_twin(x: np.ndarray, delta: float) -> int | None:
    """The first alarm with all splits."""

    def kl(p: float, q: float) -> float:
        return sum(a * math.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)

    sums = np.concatenate([[0.0], np.cumsum(x)])
    for n in range(2, len(x) + 1):
        mean = sums[n] / n
        if not 0 < mean < 1:
            continue
        best = max(
            s * kl(sums[s] / s, mean) + (n - s) * kl((sums[n] - sums[s]) / (n - s), mean)
            for s in range(1, n)
        )
        if best >= math.log(3 * n**1.5 / delta):
            return n
    return None


def stream(seed: int, *means: float, length: int = 300) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([(rng.random(length) < mean).astype(np.float64) for mean in means])


def test_detectors_agree_with_their_twins() -> None:
    count = 0
    for seed in range(5):
        x = stream(seed, 0.3, 0.6, 0.6, 0.1)
        pairs = [
            (
                alarms(CUSUM(threshold=6.01, slack=0.053, first=40), x),
                cusum_twin(x, 6.01, 0.053, 40),
            ),
            (
                alarms(PageHinkley(threshold=8.01, slack=0.053), x),
                page_hinkley_twin(x, 8.01, 0.053),
            ),
        ]
        for got, must in pairs:
            assert got == must
            count += len(got)
    assert count >= 10


@pytest.mark.integration
def test_glr_with_few_places_is_at_most_a_spacing_later_than_with_all() -> None:
    for seed in range(4):
        x = stream(seed, 0.3, 0.7)
        every = glr_twin(x, 0.05)
        assert every is not None and every > 300
        assert alarms(GLR(delta=0.05, splits=600), x)[0] == every  # room for all
        coarse = alarms(GLR(delta=0.05), x)[0]
        assert every <= coarse <= every + 600 // 16


@jax.jit
def _first(detector: Any, state: Any, x: Any) -> Any:
    alarm = jax.vmap(lambda row: jax.lax.scan(detector.step, state, row)[1])(x)
    return jnp.where(jnp.any(alarm, axis=1), 1 + jnp.argmax(alarm, axis=1), 0)


def first_alarms(detector: Any, x: np.ndarray, state: Any = None) -> np.ndarray:
    """After which number each row of ``x`` is first told of (0: never), from ``state`` on."""
    as_floats = jax.tree.map(jnp.float32, detector)
    return np.asarray(
        _first(as_floats, detector.init() if state is None else state, jnp.asarray(x, jnp.float32))
    )


# Average run lengths of the two-sided CUSUM with k = ½ on standard normal numbers, mean known, as
# the textbooks of process control print them (Montgomery; after Lucas, Crosier, Technometrics
# 1982): by h, then by the mean's shift.
PUBLISHED = {
    4.0: {0.0: 168.0, 0.5: 26.6, 1.0: 8.38, 2.0: 3.34},
    5.0: {0.0: 465.0, 0.5: 38.0, 1.0: 10.4, 2.0: 4.01},
}


@cache
def normal(runs: int, length: int) -> np.ndarray:
    return np.random.default_rng(77).standard_normal((runs, length), np.float32)


@pytest.mark.parametrize(
    ("h", "shift"), [(h, shift) for h, row in PUBLISHED.items() for shift in row]
)
def test_cusum_has_the_published_run_lengths(h: float, shift: float) -> None:
    """False alarms (shift 0) and delays, within four standard errors and the rounding of the table."""
    published = PUBLISHED[h][shift]
    x = shift + normal(*((2000, 5000) if shift == 0 else (4000, 600)))
    detector = CUSUM(threshold=h, slack=0.5, first=1)
    # Its mean is 0 for ever
    n = first_alarms(detector, x, detector.init()._replace(n=jnp.int32(1))).astype(float)
    assert (n > 0).mean() > 0.999
    assert abs(n.mean() - published) < 4 * n.std(ddof=1) / math.sqrt(n.size) + 0.006 * published


def changes(runs: int, means: tuple[float, ...], length: int) -> np.ndarray:
    """Streams of coins, ``length`` numbers of each mean."""
    return np.random.default_rng(78).random((runs, length * len(means))) < np.repeat(means, length)


def test_glr_tells_falsely_less_often_than_said() -> None:
    """δ bounds the chance of a false alarm, ever: here in 2,000 numbers, 400 runs."""
    delta, runs = 0.2, 400
    share = (first_alarms(GLR(delta=delta), changes(runs, (0.4,), 2000)) > 0).mean()
    assert share <= delta + 3 * math.sqrt(delta * (1 - delta) / runs)


# --- restarts


def test_the_twin_of_restarts() -> None:
    """It begins anew when its detector's twin says so, and decides as ω-UCB then does."""
    steps = lane_of(Restarting(OmegaUCB(), CUSUM(threshold=4.0, first=20)))
    action = np.asarray(steps.action)
    reward = units(steps.outcome.reward)
    cost = units(steps.outcome.cost)
    since, restarts = 0, []
    watched: dict[tuple[int, str], list[float]] = {}
    for t in range(1, len(action) + 1):
        n = np.bincount(action[since : t - 1], minlength=4)
        if (fresh := np.flatnonzero(n == 0)).size:
            assert action[t - 1] == fresh[0], t
        else:
            recent = slice(since, t - 1)
            scores = np.asarray(
                [
                    wilson(
                        reward[recent][action[recent] == k].sum(),
                        cost[recent][action[recent] == k].sum(),
                        n[k],
                        t - since,
                    )
                    for k in range(4)
                ]
            )
            assert scores[action[t - 1]] >= scores.max() * (1 - 1e-4), t
        for kind, x in (("reward", reward), ("cost", cost)):
            watched.setdefault((int(action[t - 1]), kind), []).append(float(x[t - 1]))
        if any(
            cusum_twin(np.asarray(watched[int(action[t - 1]), kind]), 4.0, 0.05, 20)
            for kind in ("reward", "cost")
        ):
            since, watched = t, {}
            restarts.append(t)
    assert restarts
    assert int(np.asarray(steps.after.restarts)[-1]) == len(
        [t for t in restarts if t < len(action)]
    )


@pytest.mark.integration
def test_only_the_arm_that_changed_begins_anew() -> None:
    before = FiniteArms.bernoulli([0.9, 0.5], [0.5, 0.5])
    after = FiniteArms.bernoulli([0.1, 0.5], [0.5, 0.5])
    moving = Piecewise.of([before, after], at=[301])
    steps = one_lane(Restarting(OmegaUCB(), GLR(), whole=False), moving, 500, 2)
    pulls, restarts = np.asarray(steps.after.inner.pulls), np.asarray(steps.after.restarts)
    (alarm,) = np.flatnonzero(np.diff(restarts))
    assert 300 <= alarm < 340 and restarts[-1] == 1
    assert (
        pulls[alarm, 0] > 200
        and pulls[alarm + 1, 0] == 0
        and pulls[alarm + 1, 1] >= pulls[alarm, 1]
    )
    assert (np.asarray(steps.after.since) == 0).all()


@pytree
class EveryFiftieth(Detector):
    """Tells after every fiftieth number of a stream, whatever it is."""

    def init(self) -> Any:
        return jnp.int32(0)

    def step(self, state: Any, x: Any) -> Any:
        return state + 1, state + 1 >= 50


@pytest.mark.integration
def test_exploration_grows_with_the_root_of_the_alarms() -> None:
    """After k − 1 alarms an arm is played with probability α√k; else it stays α."""
    flat, arms, rounds = FiniteArms.bernoulli([0.5] * 4, [0.5] * 4), 4, 6000
    for growing in (False, True):
        policy = Restarting(
            Schedule(at=[1], arms=[0]), EveryFiftieth(), explore=0.2, growing=growing
        )
        steps = one_lane(policy, flat, rounds, 3)
        alarms_before = np.asarray(steps.after.restarts)  # as each round was decided
        chance = (
            np.minimum(1, 0.2 * np.sqrt(1 + alarms_before)) if growing else np.full(rounds, 0.2)
        )
        elsewhere = np.asarray(steps.action) != 0
        assert elsewhere[alarms_before == 0].any()  # before the first alarm k = 1
        for part in (slice(0, 1000), slice(1000, 6000)):
            p = chance[part] * (1 - 1 / arms)
            assert abs(elsewhere[part].sum() - p.sum()) < 4 * math.sqrt((p * (1 - p)).sum())
        assert alarms_before[-1] > 40


def test_whole_pulls_are_the_nearest_and_the_means_stay() -> None:
    part = np.int32([0, ticks.ONE // 2 - 1, ticks.ONE // 2, ticks.ONE - 1])
    pulls = ticks.Total(np.int32([2, 2, 2, 0]), part)
    mean = np.array([0.25, 0.5, 0.75, 1.0])
    n = ticks.to_units(ticks.join(pulls))
    total = ticks.Total(*map(np.asarray, ticks.split(ticks.from_units(mean * n))))
    whole = _in_whole_pulls(arm_statistics.empty(4)._replace(pulls=pulls, reward=total, cost=total))
    assert whole.pulls.tolist() == [2, 2, 3, 1]
    for sums in (whole.reward, whole.cost):
        np.testing.assert_allclose(ticks.to_units(ticks.join(sums)), mean * [2, 2, 3, 1], atol=3e-7)


@pytest.mark.integration
def test_several_resources_are_watched_one_by_one() -> None:
    """A change of the second resource alone is told of."""
    limit = jb.TotalBudget([200.0, 220.0], last_pull="counts", rounds=600)
    policy = Restarting(FixedSplit([1.0, 1.0]), GLR())

    def restarts(after: float) -> np.ndarray:
        """The second cost of the first arm is 0.1, and ``after`` from round 201 on."""
        worlds = [
            FiniteArms.bernoulli([[0.7, 0.4]], [[[0.5, x], [0.4, 0.5]]]) for x in (0.1, after)
        ]
        moving = Piecewise.of(worlds, at=[201])
        return jb.simulate(policy, moving, limit, key=KEY, replicates=3, marks=1).final["restarts"]

    assert (restarts(0.1) == 0).all() and (restarts(0.9) >= 1).all()
