"""The kit notices what it is there for: each rule, broken on purpose."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.core import streams, ticks
from jaxbandits.core.protocol import Policy
from jaxbandits.environments import FiniteArms
from jaxbandits.policies import MUCB
from jaxbandits.policies.base import IndexPolicy
from jaxbandits.testing import CONSTRAINT_CHECKS, POLICY_CHECKS, Subject, check_environment, check_policy, ulps_apart

from .worlds import KEY, world

CHECKS = {check.__name__: check for check in (*POLICY_CHECKS, *CONSTRAINT_CHECKS)}
CALLS = itertools.count()


@jb.pytree
class Widening(IndexPolicy):
    """Its state changes type."""

    def score(self, arms: Any) -> Any:
        return arms.reward - arms.cost

    def update(self, state: Any, key: Any, observation: Any) -> Any:
        state = super().update(state, key, observation)
        return state._replace(pulls=state.pulls.astype(jnp.float32))


@jb.pytree
class Blunder(IndexPolicy):
    """Learns from empty observations."""

    def score(self, arms: Any) -> Any:
        return arms.reward - arms.cost

    def step(self, state: Any, key: Any, observation: Any) -> Any:
        return self.select(self.update(state, key, observation), key, observation.view)


@jb.pytree
class Positional(IndexPolicy):
    """Draws for all arms at once: how many there are changes the draws."""

    def score(self, arms: Any) -> Any:
        return arms.reward - arms.cost

    def select(self, state: Any, key: Any, view: Any) -> Any:
        draws = jax.random.permutation(streams.at(key, view.round, 0), state.pulls.size)
        return state, jnp.argmax(jnp.where(view.available, draws, -1)).astype(jnp.int32)


@jb.pytree
class Chaotic(IndexPolicy):
    """Its score hangs on when it was traced."""

    def score(self, arms: Any) -> Any:
        return jnp.sin(arms.n * (3 + next(CALLS))) + arms.reward * 1e-3


@jb.pytree
class Stuck(IndexPolicy):
    """Draws once for the whole run."""

    def score(self, arms: Any) -> Any:
        return arms.reward - arms.cost

    def select(self, state: Any, key: Any, view: Any) -> Any:
        return state, streams.below(streams.words(key, 0, 0)[0], state.pulls.size)


@jb.pytree
class Restless(IndexPolicy):
    """Says that its scores rest, and they fall."""

    rests = True

    def score(self, arms: Any) -> Any:
        return arms.reward / arms.t


@pytest.mark.parametrize(
    ("policy", "rule", "message"),
    [
        (Blunder(), "learns_nothing_from_an_empty_observation", "an empty observation changed the state"),
        (Positional(), "what_it_is_played_with_changes_nothing", "with two absent arms: .* differs"),
        (Chaotic(), "agrees_without_jit", "scores without jit"),
        (Stuck(), "draws_change_from_round_to_round", "128 rounds with one key all the same"),
        (Restless(), "scores_rest_as_declared", "a score falls from"),
    ],
)
@pytest.mark.integration_rows(
    "policy1-what_it_is_played_with_changes_nothing-with two absent arms: .* differs",
    "policy2-agrees_without_jit-scores without jit",
    "policy3-draws_change_from_round_to_round-128 rounds with one key all the same",
    "policy4-scores_rest_as_declared-a score falls from",
)
def test_a_broken_policy_is_caught(policy: Policy, rule: str, message: str) -> None:
    subject = Subject(policy, world("bernoulli"), jb.Horizon(40), KEY)
    with pytest.raises(AssertionError, match=message):
        CHECKS[rule](subject)


@jb.pytree
class Rooted(MUCB):
    """The root of a negative number, now and then."""

    def score(self, arms: Any) -> Any:
        return jnp.sqrt(arms.mean_reward - 0.3)


def test_a_score_that_is_no_number_is_named_first() -> None:
    with pytest.raises(
        AssertionError, match=r"«chooses what there is»: instance \d, .* ends as invalid .* a score is NaN .[^)]*.$"
    ):
        check_policy(Rooted(), world("bernoulli"), jb.Horizon(40), key=KEY)


def test_a_state_that_changes_its_type_is_caught() -> None:
    with pytest.raises(jb.InputError, match=r"Widening\.update: it must give a state"):
        check_policy(Widening(), world("bernoulli"), jb.Horizon(10), key=KEY)


@jb.pytree
class Metered(jb.Horizon):
    """Its clock runs at a speed of each instance: ``speed`` ticks a round."""

    speed: Any = jb.leaf(default=ticks.ONE, integer=True)

    def prepare(self, environment: Any) -> Any:
        prepared = super().prepare(environment)
        speed = np.broadcast_to(np.asarray(self.speed, np.int32), (environment.instances,))
        return dataclasses.replace(self, rounds=prepared.rounds, speed=speed)

    def clock(self, ledger: Any) -> Any:
        return ticks.times(jnp.int32(self.speed), ledger.rounds)

    def end(self) -> Any:
        return ticks.times(jnp.int32(self.speed), jnp.int32(self.rounds))

    def expected_clock(self, ledger: Any) -> Any:
        return ledger["rounds"] * np.int64(self.speed)


def test_a_clock_reads_the_numbers_of_its_own_lane() -> None:
    """As many marks as instances, or not: a number of each instance must meet the rounds of that instance alone."""
    rule = CHECKS["every_lane_has_its_own_clock"]
    subject = Subject(MUCB(), world("bernoulli"), Metered(20, speed=[ticks.ONE, ticks.ONE - 1, ticks.ONE - 2]), KEY)
    rule(subject)
    clock = subject.base.ledger["clock"]
    for wrong in (clock[:, ::-1], np.roll(clock, 1, axis=-1)):
        broken = dataclasses.replace(subject.base, ledger={**subject.base.ledger, "clock": wrong})
        other = dataclasses.replace(subject)
        vars(other)["base"] = broken
        with pytest.raises(AssertionError, match=r"instance 0, replicate 0, mark 1 of 5: clock is \d+, of the lane"):
            rule(other)


@dataclasses.dataclass(frozen=True, eq=False)
class _Cheats(FiniteArms):
    """Base of broken worlds."""


@jb.pytree
class ByRound(_Cheats):
    """Outcomes are addressed by the round, not by the pull."""

    def pull(self, state: Any, action: Any, key: Any, round: Any) -> Any:
        _, *rest = super().pull(jnp.full_like(state, round), action, key, round)
        return state + (jnp.arange(state.size) == action), *rest


@jb.pytree
class Overstated(_Cheats):
    """States means that are 5 % too large."""

    def pull(self, state: Any, action: Any, key: Any, round: Any) -> Any:
        state, outcome, *rest = super().pull(state, action, key, round)
        return state, outcome._replace(expected_reward=outcome.expected_reward * 21 // 20), *rest


@jb.pytree
class SameForAll(_Cheats):
    """Every lane meets the same outcomes."""

    def pull(self, state: Any, action: Any, key: Any, round: Any) -> Any:
        return super().pull(state, action, jax.random.wrap_key_data(jnp.zeros(2, jnp.uint32)), round)


@jb.pytree
class TooMuch(_Cheats):
    """Rewards above their bound."""

    def pull(self, state: Any, action: Any, key: Any, round: Any) -> Any:
        state, outcome, *rest = super().pull(state, action, key, round)
        return state, outcome._replace(reward=outcome.reward + 1), *rest


def _odd(state: Any, action: Any) -> Any:
    return state[action] % 2 == 1


@jb.pytree
class EveryOther(_Cheats):
    """Every other pull brings nothing, and says so: means may change from pull to pull."""

    def pull(self, state: Any, action: Any, key: Any, round: Any) -> Any:
        odd = _odd(state, action)
        state, outcome, *rest = super().pull(state, action, key, round)
        reward, expected = (jnp.where(odd, x, 0) for x in (outcome.reward, outcome.expected_reward))
        return state, outcome._replace(reward=reward, expected_reward=expected), *rest


@jb.pytree
class LateTruth(_Cheats):
    """States the right mean in the end, and nothing before."""

    def pull(self, state: Any, action: Any, key: Any, round: Any) -> Any:
        early = state[action] < 4000
        state, outcome, *rest = super().pull(state, action, key, round)
        return state, outcome._replace(expected_reward=jnp.where(early, 0, outcome.expected_reward)), *rest


def test_means_may_change_from_pull_to_pull() -> None:
    arms = FiniteArms.bernoulli([[0.5, 0.7]], [[0.6, 0.4]])
    fields = {field.name: getattr(arms, field.name) for field in dataclasses.fields(arms)}
    assert check_environment(EveryOther(**fields), key=KEY) < 4


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (ByRound, "among others, and alone in other rounds"),
        (Overstated, "standard errors from the stated one"),
        (LateTruth, "standard errors from the stated one"),
        (SameForAll, "another replicate gives the same"),
        (TooMuch, "is outside 0"),
    ],
)
def test_a_broken_environment_is_caught(broken: Any, message: str) -> None:
    arms = FiniteArms.bernoulli([[0.5, 0.7]], [[0.6, 0.4]])
    fields = {field.name: getattr(arms, field.name) for field in dataclasses.fields(arms)}
    with pytest.raises(AssertionError, match=message):
        check_environment(broken(**fields), key=KEY)


@pytest.mark.integration
def test_the_means_of_the_reference_code_are_caught() -> None:
    """``gbr_mean_bug`` keeps every other rule of the contract: this one is the last that is looked at."""
    arms = jb.environments.random_generalised_bernoulli(KEY, 1, 2, gbr_mean_bug=True)
    with pytest.raises(AssertionError, match="standard errors from the stated one"):
        check_environment(arms, key=KEY)


def test_ulps() -> None:
    one = np.float32(1)
    assert ulps_apart(one, np.nextafter(one, np.float32(2))) == 1
    assert ulps_apart(0.0, -0.0) == 0
    assert ulps_apart(np.float32(1e-45), np.float32(-1e-45)) == 2
    assert ulps_apart(np.nan, np.nan) == 0
    assert ulps_apart(np.nan, 1.0) > 2**32
    assert ulps_apart(np.inf, np.finfo(np.float32).max) == 1
