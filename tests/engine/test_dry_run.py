"""Mistakes in a user's own methods are one clear line, before anything is compiled."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits._engine import setup
from jaxbandits.core import ticks
from jaxbandits.core.protocol import post
from jaxbandits.policies import MUCB, BGreedy, IndexPolicy, RandomisedPolicy, SampledArms
from jaxbandits.testing import compilations
from tests.contract.worlds import with_its_own

ARMS = jb.environments.FiniteArms.bernoulli([[0.5, 0.4], [0.3, 0.2]], [[0.5, 0.4], [0.3, 0.2]])
HORIZON = jb.Horizon(20)


@jb.pytree
class First(jb.Policy):
    plays = jb.environments.FiniteSpec

    def init(self, spec):
        return jnp.zeros((2,), jnp.int32)

    def update(self, state, key, observation):
        return state + observation.feedback.reward

    def select(self, state, key, view):
        return state, jnp.int32(0)


def play(policy, environment=ARMS, constraint=HORIZON, **options):
    return jb.simulate(
        policy, environment, constraint, key=jax.random.key(0), **({"marks": 1} | options)
    )


def broken(base, name="Broken", arguments=(), **brought):
    return with_its_own(base, name, **brought)(*arguments)


def policy(**methods):
    return broken(MUCB, "Mine", **methods)


def limit(**brought):
    return broken(jb.Horizon, "Limit", (20,), **brought)


def first(**methods):
    return broken(First, **methods)


def index(**methods):
    return broken(IndexPolicy, **methods)


class Asks:
    def score(self, arms):
        return arms.n if arms.t > 3 else -arms.n


SCORE_ALONE = r"policy: .* an index policy that chooses by its score alone"


@pytest.mark.parametrize(
    ("slip", "message"),
    [
        (first(update=lambda p, s, *_: s.astype(jnp.float32)), "Broken.update: .* types: float32"),
        (first(update=lambda p, s, *_: (s, s)), "Broken.update: .* given: PyTreeDef"),
        (first(update=lambda p, s, k, o: s + o.nonsense), "update: fails when traced.*nonsense"),
        (first(select=lambda *_: jnp.int32(0)), "select: it must give"),
        (first(select=lambda p, s, *_: (s, jnp.float32(0))), "select: .* types: float32 != int32"),
        (first(init=lambda p, spec: spec.nothing), "Broken.init: fails when traced.*nothing"),
        (index(score=Asks.score), r"Asks\.score: fails .*jnp\.where instead of `if`.*test_dry_run"),
        (index(score=lambda *_: None), r"a NoneType given; .* each arm, \[2\] .test_dry.*line"),
        (
            broken(RandomisedPolicy, logits=lambda self, arms, present: arms.t[0]),
            r"Broken\.logits: float32\[\] given",
        ),
        # methods that are called late, or by one engine only
        (policy(status=lambda self, state: None), r"Mine\.status: it must give int32\[\]; .*None"),
        (policy(summary=lambda *_: [1]), r"Mine\.summary: .* given; it must be a dict of arrays"),
        (
            policy(summary=lambda p, s: {"pulls": s.pulls}),
            r"Mine\.summary: 'pulls' given; .*Finite",
        ),
        (limit(ended=lambda self, ledger: "yes"), r"Limit\.ended"),
        (limit(ends_with=jb.Status.RUNNING), r"Limit\.ends_with: .*RUNNING.*; .* a Status other"),
        (limit(ends_with=9), r"Limit\.ends_with: 9 given"),
        (limit(clock_name=None), r"Limit\.clock_name: None given; it must be 'spent' or 'rounds'"),
        (limit(best_rate=lambda self, reward, cost: None), r"Limit\.best_rate: array.nan. given"),
        # a wrapper refuses a policy that chooses in its own way
        (SampledArms(BGreedy(), 2), SCORE_ALONE),
    ],
)
def test_a_slip_is_one_line_before_anything_is_played(slip, message):
    nouns = (MUCB(), ARMS, slip) if isinstance(slip, jb.Constraint) else (slip,)
    with pytest.raises(jb.InputError, match=message) as caught:
        play(*nouns)
    assert "\n" not in str(caught.value)


def test_what_has_passed_vouches_for_its_own_class_only(monkeypatch):
    checked = []
    real = setup._play_a_round
    monkeypatch.setattr(
        setup, "_play_a_round", lambda *nouns: (checked.append(nouns), real(*nouns))
    )
    monkeypatch.setattr(setup, "_PASSED", set())
    play(First())
    play(First())
    arms = jb.environments.FiniteArms.bernoulli([[0.1, 0.2], [0.4, 0.9]], [[0.3, 0.8], [0.6, 0.7]])
    play(First(), arms)
    assert len(checked) == 1
    for _ in range(2):  # a failure is not remembered as a pass
        with pytest.raises(jb.InputError, match=r"Broken\.select: it must give"):
            play(broken(First, select=lambda self, s, k, v: jnp.int32(0)))
    play(
        First(), jb.environments.FiniteArms.bernoulli([[0.5, 0.4, 0.1]] * 2, [[0.5, 0.4, 0.1]] * 2)
    )
    assert len(checked) == 4


def test_policy_without_decorator_or_setting():
    class Plain(jb.Policy):
        plays = jb.environments.FiniteSpec

    @jb.pytree
    class Unsaid(jb.Policy):
        pass

    with pytest.raises(jb.InputError, match=r"policies: .*@jb\.pytree"):
        play(Plain())
    with pytest.raises(jb.InputError, match=r"Plain: .'width'. given; .*@jb\.pytree above it"):
        Plain(width=0.3)
    with pytest.raises(jb.InputError, match=r"Unsaid does not define .*plays; it must"):
        play(Unsaid())


@jb.pytree
class Coin(jb.Environment):
    mean: Any = jb.leaf()
    reward: str = jb.static(default="ticks")

    @property
    def spec(self):
        return jb.environments.FiniteSpec(arms=2)

    def start(self):
        return ()

    def pull(self, state, action, key, round):
        reward = jnp.float32(1) if self.reward == "float" else jnp.int32(1)
        tick = jnp.int32(1)
        return (
            state,
            jb.Outcome(reward, tick, tick, tick, {}, jnp.bool_(True)),
            jb.Feedback(tick, tick),
            jnp.bool_(False),
        )

    def values(self):
        return (
            (np.zeros(2), np.zeros(2))
            if self.reward == "values"
            else (np.ones((1, 2)), np.ones((1, 2)))
        )


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        ("float", "Coin.pull: .* in int32 ticks of .* '1/reward': types: float32"),
        ("values", "Coin.values: shapes .2,. and"),
    ],
)
def test_environment(reward, message):
    world = Coin(mean=np.zeros((1, 2), np.int32), reward=reward)
    with pytest.raises(jb.InputError, match=message):
        play(First(), world)


def test_a_constraint_that_forgets_to_book_still_ends_by_the_round_cap():
    forgetful = broken(
        jb.TotalBudget, arguments=(5.0, "counts"), charge=lambda self, ledger, outcome: ledger
    )
    with pytest.warns(UserWarning, match="round_cap"):
        result = play(First(), constraint=forgetful, max_rounds=50)
    assert result.ledger["rounds"].ravel().tolist() == [50, 50]


def test_what_a_users_exception_says_moves_no_cursor():
    def init(self, spec):
        raise ValueError("a\x1b[2Jb")

    with pytest.raises(jb.InputError, match=r"a\\x1b\[2Jb"):
        play(policy(init=init))


@pytest.mark.parametrize(
    "change", [{"mean_reward": np.array([[0.3, 0.6]])}, {"present": np.zeros((2, 2), bool)}]
)
def test_tables_made_by_hand_are_looked_at(change):
    with pytest.raises(jb.InputError, match=f"^{next(iter(change))}: "):
        play(MUCB(), dataclasses.replace(ARMS, **change))


def test_a_status_that_is_none_ends_a_lane_as_invalid():
    with pytest.warns(UserWarning, match="invalid"):
        result = play(policy(status=lambda self, state: jnp.int32(77)))
    assert (result.ended == jb.Status.INVALID).all()


@jb.pytree
class Odd(jb.Horizon):
    """A constraint of one's own with a slip."""

    cap: Any = jb.leaf(default=3.0, at_least=1)

    def prepare(self, environment: Any) -> Any:
        return dataclasses.replace(
            super().prepare(environment), cap=np.full(environment.instances, self.cap)
        )

    def expected_clock(self, ledger: Any) -> Any:
        return ledger["expected_cost"]


@jb.pytree
class Unprepared(jb.Horizon):
    """Gives its numbers as they are."""

    cap: Any = jb.leaf(default=3.0)

    def prepare(self, environment: Any) -> Any:
        return dataclasses.replace(super().prepare(environment), cap=self.cap)


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (Odd(rounds=5), r"Odd\.expected_clock: .*KeyError: 'expected_cost'"),
        (Odd(rounds=5, cap=0.5), r"Odd\.cap: 0\.5 given; it must be .*1"),
        (Unprepared(rounds=5), "Unprepared\\.prepare: cap has shape"),
        (limit(charge=lambda _, *it: post(*it).reward), "Limit\\.charge: it must give a ledger"),
    ],
)
def test_slips_of_a_constraint_are_named_before_anything_is_compiled(
    constraint: Any, message: str
) -> None:
    with compilations() as compiled, pytest.raises(jb.InputError, match=message):
        play(MUCB(), constraint=constraint)
    assert not [name for name in compiled if "advance" in name]


@jb.pytree
class Paced(jb.Horizon):
    """A clock that ticks faster in some instances."""

    pace: Any = jb.leaf(default=(1, 2, 3))

    def prepare(self, environment: Any) -> Any:
        return dataclasses.replace(
            super().prepare(environment), pace=np.asarray(self.pace, np.int32)
        )

    def clock(self, ledger: Any) -> Any:
        return ticks.count(ledger.rounds * self.pace)

    def expected_clock(self, ledger: Any) -> Any:
        return ledger["rounds"] * self.pace * ticks.ONE


@pytest.mark.parametrize("marks", [3, 2])
def test_a_clock_reads_the_number_of_its_own_instance(marks: int) -> None:
    """As many instances as marks: the leaf was once broadcast along the marks."""
    arms = jb.environments.FiniteArms.bernoulli([[0.5, 0.4]] * 3, [[0.9, 0.3]] * 3)
    with pytest.warns(UserWarning, match="Paced overrides clock"):
        result = jb.simulate(
            MUCB(),
            arms,
            Paced(rounds=12),
            key=jax.random.key(0),
            replicates=2,
            marks=marks,
            engine="auto",
        )
    rounds, pace = result.ledger["rounds"], np.array([1, 2, 3])[None, :, None, None]
    for name in ("clock", "expected_clock"):
        assert (result.ledger[name] == rounds * pace * ticks.ONE).all()
    assert (rounds[..., -1] * pace[..., 0] == 12).all()
