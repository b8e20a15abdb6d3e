"""The kit notices what it is there for: each rule, broken on purpose."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats as laws

import jaxbandits as jb
from jaxbandits._engine.setup import lay_out
from jaxbandits.core import streams, ticks
from jaxbandits.core.protocol import Policy
from jaxbandits.environments import AddressedArms, FiniteArms
from jaxbandits.policies import MUCB
from jaxbandits.policies.base import IndexPolicy, RandomisedPolicy
from jaxbandits.testing import (
    CONSTRAINT_CHECKS,
    POLICY_CHECKS,
    Subject,
    check_environment,
    check_policy,
    rules,
    ulps_apart,
)
from jaxbandits.testing.lanes import equal
from jaxbandits.testing.world import distance
from tests.engine.test_dry_run import Paced

from .worlds import KEY, as_a, with_its_own, world

CHECKS = {check.__name__: check for check in (*POLICY_CHECKS, *CONSTRAINT_CHECKS)}
CALLS = itertools.count()


def score(self: Any, arms: Any) -> Any:
    return arms.reward - arms.cost


def policy(**brought: Any) -> Any:
    return with_its_own(IndexPolicy, **({"score": score} | brought))()


def blunder(self: Any, state: Any, key: Any, observation: Any) -> Any:
    """It learns from empty observations."""
    return self.select(self.update(state, key, observation), key, observation.view)


def heedless(self: Any, state: Any, key: Any, view: Any) -> Any:
    """Whoever was pulled least, open or not."""
    return state, jnp.argmin(state.pulls).astype(jnp.int32)


def positional(self: Any, state: Any, key: Any, view: Any) -> Any:
    """It draws for all arms at once: how many there are changes the draws."""
    draws = jax.random.permutation(streams.at(key, view.round, 0), state.pulls.size)
    return state, jnp.argmax(jnp.where(view.available, draws, -1)).astype(jnp.int32)


def chaotic(self: Any, arms: Any) -> Any:
    """The score hangs on when it was traced."""
    return jnp.sin(arms.n * (3 + next(CALLS))) + arms.reward * 1e-3


def stuck(self: Any, state: Any, key: Any, view: Any) -> Any:
    """It draws once for the whole run."""
    return state, streams.below(streams.words(key, 0, 0)[0], state.pulls.size)


def restless(self: Any, arms: Any) -> Any:
    """It is said to rest, and falls."""
    return arms.reward / arms.t


def of_others(self: Any, arms: Any) -> Any:
    """It is said to read its own arm alone, and reads all."""
    mean = jnp.where(arms.n > 0, arms.reward / jnp.maximum(arms.n, 1), 1)
    return mean / jnp.maximum(jnp.sum(mean), 1e-3)


def sticky(self: Any, state: Any, key: Any, view: Any) -> Any:
    """The habit of every JAX author: the key as it comes."""
    scores = jax.random.uniform(key, (state.pulls.size,)) / (1 + state.pulls)
    return state, jnp.argmax(jnp.where(view.available, scores, -1)).astype(jnp.int32)


def sticky_in_a_branch(self: Any, state: Any, key: Any, view: Any) -> Any:
    """Split, and used in a branch."""
    first, _ = jax.random.split(key)
    size = (state.pulls.size,)
    scores = jax.lax.cond(
        view.round > 9, lambda k: jax.random.normal(k, size), lambda k: jnp.zeros(size), first
    )
    return state, jnp.argmax(jnp.where(view.available, scores - state.pulls, -jnp.inf)).astype(
        jnp.int32
    )


class Ticks(NamedTuple):
    pulls: Any
    total: Any


def wrapping() -> Any:
    """Ticks that are added with +."""

    def init(self: Any, spec: Any) -> Any:
        return Ticks(*(jnp.zeros((spec.arms,), jnp.int32) for _ in range(2)))

    def update(self: Any, state: Any, key: Any, observation: Any) -> Any:
        pulled = (jnp.arange(state.pulls.size) == observation.action).astype(jnp.int32)
        return Ticks(state.pulls + pulled, state.total + pulled * observation.feedback.reward)

    def select(self: Any, state: Any, key: Any, view: Any) -> Any:
        return state, jnp.argmin(jnp.where(view.available, state.pulls, 10**9)).astype(jnp.int32)

    brought = {
        "init": init,
        "update": update,
        "select": select,
        "plays": jb.environments.FiniteSpec,
    }
    return with_its_own(Policy, "Wrapping", **brought)()


RESTS, KEYS = "scores_rest_as_declared", "keys_are_addressed_by_the_round"
SAME = "a draw uses a key that is the same in every round"


@pytest.mark.parametrize(
    ("policy", "rule", "message"),
    [
        (policy(step=blunder), "learns_nothing_from_an_empty_observation", "changed the state"),
        (policy(select=positional), "what_it_is_played_with_changes_nothing", "absent arms: .* d"),
        (policy(select=heedless), "leaves_closed_arms_alone", "^round 1: arm 0 is chosen, though"),
        (policy(score=chaotic), "agrees_without_jit", "scores without jit"),
        (policy(select=stuck), "draws_change_from_round_to_round", "128 rounds .* all the same"),
        (policy(score=restless, rests=True), RESTS, "`rests` is declared; .* a score falls from"),
        (policy(score=of_others, rests=True), RESTS, "`rests` is declared; .* the score of arm ."),
        (policy(select=sticky), KEYS, rf"{SAME}.*test_kit\.py:\d+:\d+ \(sticky\)"),
        (policy(select=sticky_in_a_branch), KEYS, rf"{SAME}.*test_kit\.py"),
        (wrapping(), "totals_go_on_beyond_128_units", r"state\.total wraps after 128 rewards and"),
    ],
)
@pytest.mark.sample_rows(*(f"policy{i}-" for i in (0, 2, 6, 8)))
@pytest.mark.quick_rows("policy0-learns_nothing_from_an_empty_observation-changed the state")
def test_a_broken_policy_is_caught(policy: Policy, rule: str, message: str) -> None:
    subject = Subject(policy, world("bernoulli"), jb.Horizon(40), KEY)
    with pytest.raises(AssertionError, match=message):
        CHECKS[rule](subject)


def test_a_score_that_is_no_number_is_named_first() -> None:
    rooted = with_its_own(
        MUCB, score=lambda self, arms: jnp.sqrt(arms.mean_reward - 0.3)
    )()  # now and then of a negative
    message = r"«chooses what there is»: instance \d, .* ends as invalid .* a score is NaN .[^)]*.$"
    with pytest.raises(AssertionError, match=message):
        check_policy(rooted, world("bernoulli"), jb.Horizon(40), key=KEY)


class Keyed(NamedTuple):
    key: Any


def test_a_key_in_the_state_and_a_mistake_in_a_world_are_one_line_each() -> None:
    brought = {
        "init": lambda self, spec: Keyed(jax.random.key(3)),
        "update": lambda self, state, key, observation: state,
        "select": lambda self, state, key, view: (state, jnp.int32(0)),
        "plays": jb.environments.FiniteSpec,
    }
    keyed = with_its_own(Policy, "KeyState", **brought)()
    for ask in (check_policy, lambda p, w, c: jb.simulate(p, w, c, key=KEY)):
        with pytest.raises(jb.InputError, match=r"^KeyState\.init: state\.key: 'a jax key' given"):
            ask(keyed, world("bernoulli"), jb.Horizon(10))
    torn = as_a(with_its_own(FiniteArms, "Torn", pull=torn_pull), world("bernoulli"))
    with pytest.raises(jb.InputError, match=r"^torn_pull|Torn.pull: fails: TypeError: .*test_kit"):
        check_environment(torn)


def torn_pull(self: Any, state: Any, action: Any, key: Any, round: Any) -> Any:
    return state + {}, None


@pytest.mark.parametrize(
    ("brought", "message"),
    [
        ({"open": lambda self, state, round: jnp.ones((1,), bool)}, r"open and opens_next"),
        (
            {"pull": lambda self, state, action, key, round: None},
            r"pull gives a NoneType in place of \(state, Outcome",
        ),
    ],
)
def test_a_world_of_another_form_is_named(brought: Any, message: str) -> None:
    wrong = as_a(with_its_own(FiniteArms, "World", **brought), world("bernoulli"))
    with pytest.raises(AssertionError, match=f"World: .*{message}"):
        check_environment(wrong)


def test_levels_hold_for_rare_successes() -> None:
    """1,000 right worlds of two rare arms, reward and cost: at most 1 % fail; a wrong one is seen."""
    rng, tick = np.random.default_rng(3), float(ticks.ONE)
    allowed = laws.norm.isf(0.005 / 4)

    def worst(chance: float, stated: float, worth: Any = 1.0) -> float:
        outcomes = (
            (rng.random((4, 4096)) < chance) * np.broadcast_to(worth, (4, 4096)) * tick
        ).round()
        mean = np.full(4096, round(stated * tick))
        return max(distance(sample, mean, 0.0, tick) for sample in outcomes)

    failed = sum(worst(0.0016, 0.0016) > allowed for _ in range(1000))
    assert failed <= 10 + 2 * np.sqrt(10)
    prices = rng.uniform(0.1, 0.5, (4, 4096))
    dear = sum(worst(0.0016, 0.0016 * 0.3, prices) > allowed for _ in range(300))
    assert dear <= 3 + 2 * np.sqrt(3)
    assert worst(0.008, 0.0016) > allowed and worst(0.53, 0.5) > 2.5


@pytest.mark.integration
def test_a_clock_reads_the_numbers_of_its_own_lane() -> None:
    """As many marks as instances, or not: an instance's number meets its own rounds alone."""
    rule = CHECKS["every_lane_has_its_own_clock"]
    subject = Subject(MUCB(), world("bernoulli"), Paced(20, pace=(3, 2, 1)), KEY)
    rule(subject)
    clock = subject.base.ledger["clock"]
    for wrong in (clock[:, ::-1], np.roll(clock, 1, axis=-1)):
        broken = dataclasses.replace(subject.base, ledger={**subject.base.ledger, "clock": wrong})
        altered = dataclasses.replace(subject)
        vars(altered)["base"] = broken
        with pytest.raises(AssertionError, match="instance 0, replicate 0, mark 1 of 5: clock"):
            rule(altered)


def changing(**changes: Any) -> Any:
    """Two arms whose outcomes are told otherwise: by name, from state, action and outcome."""

    def pull(self: Any, state: Any, action: Any, key: Any, round: Any) -> Any:
        after, outcome, *rest = FiniteArms.pull(self, state, action, key, round)
        amended = {
            name: change(state[action], getattr(outcome, name)) for name, change in changes.items()
        }
        return after, outcome._replace(**amended), *rest

    return pull


def by_round(self: Any, state: Any, action: Any, key: Any, round: Any) -> Any:
    """Outcomes are addressed by the round, not by the pull."""
    _, *rest = FiniteArms.pull(self, jnp.full_like(state, round), action, key, round)
    return state + (jnp.arange(state.size) == action), *rest


def same_for_all(self: Any, state: Any, action: Any, key: Any, round: Any) -> Any:
    """Every lane meets the same outcomes."""
    return FiniteArms.pull(
        self, state, action, jax.random.wrap_key_data(jnp.zeros(2, jnp.uint32)), round
    )


def arms(pull: Any) -> Any:
    return as_a(
        with_its_own(FiniteArms, pull=pull), FiniteArms.bernoulli([[0.5, 0.7]], [[0.6, 0.4]])
    )


def test_means_may_change_from_pull_to_pull() -> None:
    def every_other(n: Any, x: Any) -> Any:
        return jnp.where(n % 2 == 1, x, 0)

    assert (
        check_environment(arms(changing(reward=every_other, expected_reward=every_other)), key=KEY)
        < 4
    )


@pytest.mark.parametrize(
    ("pull", "message"),
    [
        (by_round, "among others, and alone in other rounds"),
        (
            changing(expected_reward=lambda n, x: x * 21 // 20),
            r"instance 0: the mean reward of action 1 .* is 0\.(69|70)\d* in 4096 pulls, "
            r"and the stated one 0\.735, \d+\.\d\d st",
        ),
        (
            changing(expected_reward=lambda n, x: jnp.where(n < 4000, 0, x)),
            "the stated one .* away",
        ),
        (same_for_all, "another replicate gives the same"),
        (changing(reward=lambda n, x: x + 1), "is outside 0"),
    ],
    ids=["by round", "mean", "late mean", "same for all", "bound"],
)
@pytest.mark.quick_rows("mean")
def test_a_broken_environment_is_caught(pull: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_environment(arms(pull), key=KEY)


def test_arms_that_are_said_to_be_there_and_are_not_are_caught() -> None:
    def means(self: Any, arm: Any) -> Any:
        return self.mean_reward[arm], jnp.where(self.present[:][arm], self.mean_cost[arm], -1)

    def told(available: Any) -> Any:
        present = [[True, True], [True, False]]
        world = FiniteArms.bernoulli([[0.5, 0.7]] * 2, [[0.6, 0.4]] * 2, present=present)
        return as_a(with_its_own(FiniteArms, available=available, means=means), world)

    for available, message in (
        (lambda self: jnp.ones(2, bool), "instance 1: .* arm 1 is there"),
        (lambda self: jnp.array([True, False]), "instance 0: .* arm 1 is not there"),
        (lambda self: jnp.ones(3, bool), r"`available` gives bool\[3\]; it must be bool\[2\]"),
    ):
        with pytest.raises(AssertionError, match=message):
            check_environment(told(available), key=KEY)
    assert check_environment(told(AddressedArms.available), key=KEY) < 4


def test_values_that_are_not_the_means_are_caught() -> None:
    """Regret is made of them, and nothing else would notice."""

    def swapped(self: Any) -> Any:
        return FiniteArms.values(self)[::-1]

    odd = as_a(
        with_its_own(FiniteArms, values=swapped, addressed=False),
        FiniteArms.bernoulli([[0.5, 0.7]], [[0.6, 0.4]]),
    )
    with pytest.raises(AssertionError, match=r"`values` gives a mean reward of 0.4"):
        check_environment(odd, key=KEY)


def test_ulps() -> None:
    unit = np.float32(1)
    assert ulps_apart(unit, np.nextafter(unit, np.float32(2))) == 1
    assert ulps_apart(0.0, -0.0) == 0
    assert ulps_apart(np.float32(1e-45), np.float32(-1e-45)) == 2
    assert ulps_apart(np.nan, np.nan) == 0
    assert ulps_apart(np.nan, 1.0) > 2**32
    assert ulps_apart(np.inf, np.finfo(np.float32).max) == 1


def test_a_sum_is_rounded_as_its_larger_term_is() -> None:
    before, after = np.float32([100, 0.5, np.nan, np.inf]), np.float32([1.04, 0.75, np.nan, np.inf])
    off = [after + np.float32(x) for x in ([1.6e-6, 0, 0, 0], [0, 1e-6, 0, 0])] + [
        np.minimum(after, 9)
    ]
    equal(after, off[0], "a sum", terms=before)
    for must, got, terms in (
        (after, off[0], None),
        (after, off[1], before),
        (after, off[2], before),
    ):
        with pytest.raises(AssertionError, match="a sum is"):
            equal(must, got, "a sum", terms=terms)


def test_every_rule_stands_in_a_list() -> None:
    """By reflection: what takes a subject and gives nothing is a rule, and somebody must ask for it."""
    listed = {*POLICY_CHECKS, *CONSTRAINT_CHECKS}
    written = {
        function
        for name, function in vars(rules).items()
        if inspect.isfunction(function)
        and not name.startswith("_")
        and function.__module__ == rules.__name__
        and inspect.signature(function).return_annotation == "None"
        and [*inspect.signature(function).parameters] == ["subject"]
    }
    assert len(written) > 20
    assert listed == written
    assert rules.finished_lanes_are_frozen in POLICY_CHECKS
    assert rules.finished_lanes_are_frozen in CONSTRAINT_CHECKS


def none_wanted(self: Any, arms: Any) -> Any:
    """No arm is good enough any more."""
    return jnp.where(arms.t < 20, arms.reward, -jnp.inf)


def hopeless(self: Any, arms: Any, available: Any) -> Any:
    """The same, of a policy that draws."""
    return jnp.where(available & (arms.t < 9), 0.0, -jnp.inf)


def jittered(self: Any, arms: Any) -> Any:
    return arms.reward + np.random.random()


def noisy_pull(self: Any, state: Any, action: Any, key: Any, round: Any) -> Any:
    after, outcome, *rest = FiniteArms.pull(self, state, action, key, round)
    drawn = np.random.default_rng().integers(2, 2**20)
    return after, outcome._replace(reward=outcome.reward // drawn), *rest


TRACED = "traced twice, the program is another one"


def test_what_is_frozen_at_the_trace_is_caught() -> None:
    subject = Subject(policy(score=jittered), world("bernoulli"), jb.Horizon(40), KEY)
    with pytest.raises(AssertionError, match=TRACED):
        rules.a_second_trace_is_the_first(subject)
    with pytest.raises(AssertionError, match=TRACED):
        check_environment(arms(noisy_pull), key=KEY)


@pytest.mark.sample_rows("index")
@pytest.mark.parametrize(
    "silent",
    [policy(score=none_wanted), with_its_own(RandomisedPolicy, logits=hopeless)()],
    ids=["index", "logits"],
)
def test_scores_that_want_no_arm_are_caught(silent: Policy) -> None:
    subject = Subject(silent, world("bernoulli"), jb.Horizon(40), KEY)
    first = "20" if isinstance(silent, IndexPolicy) else "9"
    message = f"instance 0, replicate 0, round {first}: the scores of all arms are −∞"
    with pytest.raises(AssertionError, match=message):
        CHECKS["chooses_what_there_is"](subject)


def test_transposed_means_are_told() -> None:
    def asked(reward: Any, cost: Any) -> None:
        lay_out(MUCB(), FiniteArms.bernoulli(reward, cost), jb.Horizon(5), key=KEY)

    with pytest.warns(UserWarning, match="3 instances of one arm each"):
        asked([[0.5], [0.4], [0.3]], [[0.9], [0.3], [0.5]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked([[0.5, 0.4, 0.3]], [[0.9, 0.3, 0.5]])
        asked([0.5], [0.9])


def test_a_lane_that_goes_on_after_its_end_is_caught() -> None:
    rule = rules.finished_lanes_are_frozen
    subject = Subject(MUCB(), world("bernoulli"), jb.Horizon(9), KEY)
    ledger = {name: np.copy(x) for name, x in subject.base.ledger.items()}
    ledger["reward"][0, 1, 2, -1] += 1
    altered = dataclasses.replace(subject)
    vars(altered)["base"] = dataclasses.replace(subject.base, ledger=ledger)
    vars(altered)["run"] = lambda **_: altered.base
    with pytest.raises(AssertionError, match="instance 1, replicate 2: reward ends as"):
        rule(altered)


def test_a_best_rate_that_is_too_low_is_found() -> None:
    half = with_its_own(
        jb.Horizon, "Half", best_rate=lambda self, reward, cost: 0.5 * np.nanmax(reward, axis=1)
    )
    subject = Subject(jb.policies.BGreedy(), world("bernoulli"), half(rounds=80), KEY)
    with pytest.raises(AssertionError, match=r"arm \d alone has a mean regret of -\d.* ± "):
        rules.no_arm_has_a_regret_below_0(subject)
