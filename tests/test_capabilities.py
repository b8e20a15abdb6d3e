"""A capability counts only where it was made: whoever overrides what it speaks of is played round by round."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from abc import abstractmethod
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits._engine import leap, merge
from jaxbandits.core import capabilities, ticks
from jaxbandits.core.capabilities import ADDITIVE, ADDRESSED, RESTS, STEADY, has, why_not
from jaxbandits.environments import Continuum, FiniteArms, Reservoir
from jaxbandits.policies import MUCB, RCB, UCB1, ArmIncreasing, IndexPolicy, OmegaUCB, SampledArms, Zooming
from jaxbandits.policies.base.exploration import Exploration
from jaxbandits.policies.base.zooming import ZoomingPolicy
from jaxbandits.testing import CONSTRAINT_CHECKS, Subject, assert_same_results, check_environment

KEY = jax.random.key(20261122)
BUDGET = jb.TotalBudget(30.0, last_pull="counts")


def arms(cls: type[FiniteArms] = FiniteArms) -> FiniteArms:
    made = FiniteArms.bernoulli([[0.5, 0.4], [0.3, 0.7]], [[0.9, 0.3], [0.5, 0.6]])
    return cls(**{field.name: getattr(made, field.name) for field in dataclasses.fields(made)})


@pytest.fixture(autouse=True)
def no_run_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here ``auto`` is asked what it may take, not what pays."""
    monkeypatch.setattr(leap, "SHORT", 0.0)
    monkeypatch.setattr(merge, "SHORT", 0.0)


def both(policy: jb.Policy, world: jb.Environment, constraint: jb.Constraint) -> tuple[jb.Result, jb.Result]:
    """Scan, and whatever ``auto`` takes."""
    return tuple(  # type: ignore[return-value]
        jb.simulate(policy, world, constraint, key=KEY, replicates=2, marks=2, engine=engine)
        for engine in ("scan", "auto")
    )


# --- policies ----------------------------------------------------------------------------------------------------


@jb.pytree
class Plain(MUCB):
    """Another name, another default, a method that nobody calls, and a check."""

    alpha: Any = jb.leaf(default=0.25, above=0)
    label: ClassVar[str] = "plain"

    def check(self, spec: Any) -> None:
        super().check(spec)

    def colour(self) -> str:
        return "blue"


@jb.pytree
class Sinking(MUCB):
    def score(self, arms: Any) -> Any:
        return super().score(arms) / arms.t


@jb.pytree
class SaysSo(MUCB):
    """Another score that rests as well, and says so."""

    rests: ClassVar[bool] = True

    def score(self, arms: Any) -> Any:
        return super().score(arms) + 1


class Mixin:
    """Not below the declaring class in the file, but before it in the method resolution order."""

    def score(self, arms: Any) -> Any:
        return arms.mean_reward / arms.t


@jb.pytree
class Mixed(Mixin, UCB1):
    pass


@jb.pytree
class Helped(IndexPolicy):
    """Its score calls a helper, and one that it leaves to others."""

    rests: ClassVar[bool] = True
    weight: ClassVar[float] = 1.0

    def bonus(self, arms: Any) -> Any:
        return jnp.sqrt(jnp.log(arms.t) / arms.n) * self.weight

    def score(self, arms: Any) -> Any:
        return arms.mean_reward + self.bonus(arms) + (self.hook(arms) if hasattr(self, "hook") else 0)  # type: ignore[attr-defined]


@jb.pytree
class OtherHelper(Helped):
    def bonus(self, arms: Any) -> Any:
        return -jnp.sqrt(jnp.log(arms.t) / arms.n)


@jb.pytree
class OtherWeight(Helped):
    weight: ClassVar[float] = -1.0


@jb.pytree
class Hooked(Helped):
    def hook(self, arms: Any) -> Any:
        return -jnp.log(arms.t)


@jb.pytree
class OwnStep(MUCB):
    def step(self, state: Any, key: Any, observation: Any) -> Any:
        return super().step(state, key, observation)


@jb.pytree
class Greyed(MUCB):
    def __getattribute__(self, name: str) -> Any:
        return super().__getattribute__(name)


@jb.pytree
class Template(IndexPolicy):
    """Promises for a score that others write."""

    rests: ClassVar[bool] = True


@jb.pytree
class Filled(Template):
    def score(self, arms: Any) -> Any:
        return arms.mean_reward / arms.t


class Based(IndexPolicy):
    def bonus(self, arms: Any) -> Any:
        return 0 * arms.n


class Sided(Based):
    rests: ClassVar[bool] = True

    def score(self, arms: Any) -> Any:
        return arms.mean_reward + self.bonus(arms)


class OtherSide(Based):
    def bonus(self, arms: Any) -> Any:
        return -jnp.log(arms.t)


@jb.pytree
class Diamond(Sided, OtherSide):
    pass


@jb.pytree
class SaidByAMethod(MUCB):
    def rests(self) -> bool:  # type: ignore[override]
        return False

    def score(self, arms: Any) -> Any:
        return arms.mean_reward / arms.t


@jb.pytree
class SaidByAWord(MUCB):
    rests = "no"  # type: ignore[assignment]

    def score(self, arms: Any) -> Any:
        return arms.mean_reward / arms.t


class LeftToOthers(IndexPolicy):
    """Four ways to call what a subclass brings."""

    rests: ClassVar[bool] = True
    slope: ClassVar[float]

    @jax.jit
    def score(self, arms: Any) -> Any:
        return arms.mean_reward + self.decorated(arms) + getattr(self, "looked_up", jnp.zeros_like)(arms.n)

    def __call__(self, arms: Any) -> Any:
        return arms.n * through_a_function(self, arms) * self.slope

    @abstractmethod
    def width(self, arms: Any) -> Any:
        raise NotImplementedError


def through_a_function(policy: Any, arms: Any) -> Any:
    return policy.by_function(arms)


def made_with(name: str) -> Any:
    """A method that knows by a variable of its closure what to call."""

    def score(self: Any, arms: Any) -> Any:
        return arms.mean_reward + getattr(self, name)(arms)

    return score


class MadeScore(IndexPolicy):
    rests: ClassVar[bool] = True
    score = made_with("tail")


@jb.pytree
class Tailed(MadeScore):
    def tail(self, arms: Any) -> Any:
        return -jnp.log(arms.t)


def _with(**brought: Any) -> jb.Policy:
    return jb.pytree(type("Brought", (LeftToOthers,), {"__annotations__": {}, **brought}))()


def falls(self: Any, arms: Any) -> Any:
    return -arms.t


@jb.pytree
class Duck:
    """Looks like an exploration, and promises nothing."""

    def at(self, t: Any) -> Any:
        return 1 / t


@jb.pytree
class Falling(Exploration):
    def at(self, t: Any) -> Any:
        return 1 / t


@jb.pytree
class Joining(ArmIncreasing):
    def wanted(self, opened: Any, round: Any) -> Any:
        return opened < round // 3


@pytest.mark.parametrize(
    ("policy", "undone_by"),
    [
        (Sinking(), "score"),
        (Mixed(), "score"),
        (OtherHelper(), "bonus"),
        (OtherWeight(), "weight"),
        (Hooked(), "hook"),
        (OwnStep(), "step"),
        (Greyed(), "__getattribute__"),
        (Filled(), "score"),
        (Diamond(), "bonus"),
        (Tailed(), "tail"),
        (_with(decorated=falls), "decorated"),
        (_with(looked_up=falls), "looked_up"),
        (_with(by_function=falls), "by_function"),
        (_with(width=falls), "width"),
        (_with(slope=-1.0), "slope"),
        (_with(__call__=falls), "__call__"),
        (_with(__getattr__=falls), "__getattr__"),
    ],
)
def test_an_override_undoes_the_promise(policy: jb.Policy, undone_by: str) -> None:
    assert f"overrides {undone_by} " in str(why_not(policy, RESTS))


def test_what_changes_nothing_leaves_the_promise() -> None:
    for policy in (Plain(), SaysSo(), MUCB(), OmegaUCB()):
        assert has(policy, RESTS) and has(policy, STEADY)


def test_only_true_declares() -> None:
    for policy in (SaidByAMethod(), SaidByAWord()):
        assert "does not declare a score that rests" in str(why_not(policy, RESTS))

    @jb.pytree
    class Early(jb.Horizon):
        def additive(self) -> bool:  # type: ignore[override]
            return False

    assert "must see every round" in str(why_not(Early(rounds=5), ADDITIVE))


def test_bases_beside_the_declaring_class_count_too() -> None:
    class Before(jb.Constraint):
        def ended(self, ledger: Any) -> Any:
            return ledger.rounds >= 17

    @jb.pytree
    class Both(jb.Horizon, Before):
        pass

    class Poor(jb.environments.AddressedArms):
        def pull(self, state: Any, action: Any, key: Any, round: Any) -> Any:
            return super().pull(state, action, key, round)

    @jb.pytree
    class Poorer(Reservoir, Poor):
        pass

    class Ending(jb.Policy):
        def status(self, state: Any) -> Any:
            return jnp.int32(jb.Status.INVALID)

    @jb.pytree
    class Ends(MUCB, Ending):
        pass

    made = Reservoir.ratio(jax.random.key(0), instances=1, capacity=4)
    poorer = Poorer(**{field.name: getattr(made, field.name) for field in dataclasses.fields(made)})
    assert "Before overrides ended" in str(why_not(Both(rounds=50), ADDITIVE))
    assert "Poor overrides pull" in str(why_not(poorer, ADDRESSED))
    assert "Ending overrides status" in str(why_not(Ends(), STEADY))


def test_wrappers_ask_what_they_wrap() -> None:
    assert has(SampledArms(RCB(), arms=2), RESTS) and has(ArmIncreasing(RCB(), beta=1.0), RESTS)
    assert "wraps" in str(why_not(RCB(exploration=Falling()), RESTS))
    assert "wraps" in str(why_not(RCB(exploration=Duck()), RESTS))  # type: ignore[arg-type]
    assert "wraps" in str(why_not(SampledArms(RCB(exploration=Falling()), arms=2), RESTS))
    assert "Sinking overrides score" in str(why_not(SampledArms(Sinking(), arms=2), RESTS))
    assert "overrides wanted" in str(why_not(Joining(RCB(), beta=1.0), STEADY))


def test_only_a_promise_that_counts_leaps_and_the_others_say_why() -> None:
    scan, auto = both(Plain(), arms(), BUDGET)
    assert auto.about["engine"] == "leap" and auto.about["why_scan"] is None
    assert_same_results(scan, auto, "scan and leap, a plain subclass")
    for policy in (Sinking(),):
        with pytest.warns(UserWarning, match="played round by round, because .* overrides"):
            scan, auto = both(policy, arms(), BUDGET)
        assert auto.about["engine"] == "scan" and "overrides" in auto.about["why_scan"]
        assert_same_results(scan, auto, type(policy).__name__)
    with pytest.raises(jb.InputError, match="engine: 'leap' given, but Sinking overrides score"):
        jb.simulate(Sinking(), arms(), BUDGET, key=KEY, engine="leap")


@jb.pytree
class Generous(MUCB):
    """Admits an arm that one of the instances does not have."""

    def admits(self, state: Any, view: Any) -> Any:
        return jnp.arange(3) < 3

    def steady(self, state: Any, round: Any) -> Any:
        return jnp.int32(2**31 - 1)


def test_no_engine_plays_an_arm_that_does_not_exist() -> None:
    present = [[True, True, True], [True, True, False]]
    world = FiniteArms.bernoulli(np.full((2, 3), 0.5), np.full((2, 3), 0.5), present)
    scan, auto = both(Generous(), world, BUDGET)
    assert auto.about["engine"] == "leap" and (auto.final["pulls"][:, 1, :, 2] == 0).all()
    assert_same_results(scan, auto, "an admitted arm that does not exist")


# --- environments ------------------------------------------------------------------------------------------------


@jb.pytree
class Halved(FiniteArms):
    """The audit's: half of every reward."""

    def pull(self, state: Any, action: Any, key: Any, round: Any) -> Any:
        state, outcome, told, empty = super().pull(state, action, key, round)
        outcome = outcome._replace(reward=outcome.reward // 2, expected_reward=outcome.expected_reward // 2)
        return state, outcome, told._replace(reward=told.reward // 2), empty


@jb.pytree
class HalvedAndSure(Halved):
    """Says that its outcomes are addressed, and they are not those that it plays."""

    addressed: ClassVar[bool] = True


@jb.pytree
class WithEvents(FiniteArms):
    def pull(self, state: Any, action: Any, key: Any, round: Any) -> Any:
        state, outcome, told, empty = super().pull(state, action, key, round)
        return state, outcome._replace(events={"wins": (outcome.reward > 0).astype(jnp.int32)}), told, empty


@jb.pytree
class OtherOutcome(FiniteArms):
    def outcome(self, key: Any, arm: Any, n: Any) -> Any:
        reward, cost = super().outcome(key, arm, n)
        return ticks.ONE - reward, cost


@jb.pytree
class Quiet(FiniteArms):
    """Overrides only what every engine asks of the object itself."""

    def check(self) -> None:
        pass

    def values(self) -> Any:
        return super().values()


@pytest.mark.parametrize("cls", [Halved, WithEvents])
def test_another_pull_is_played_round_by_round(cls: Any) -> None:
    with pytest.warns(UserWarning, match="played round by round, because"):
        scan, auto = both(MUCB(), arms(cls), BUDGET)
    assert auto.about["engine"] == "scan"
    assert_same_results(scan, auto, cls.__name__)
    if cls is WithEvents:
        assert (auto.count("wins").values == auto.reward.values).all()


def test_a_null_arm_keeps_the_events_of_the_arms() -> None:
    world = jb.environments.WithNullArm(arms(WithEvents))
    result = jb.simulate(MUCB(), world, jb.Horizon(40), key=KEY, marks=1)
    assert (result.count("wins").values == result.reward.values).all() and (result.count("null").values == 0).all()


def test_a_plain_subclass_of_the_arms_leaps() -> None:
    scan, auto = both(MUCB(), arms(Quiet), BUDGET)
    assert auto.about["engine"] == "leap"
    assert_same_results(scan, auto, "Quiet")


def test_the_kit_holds_an_environment_to_its_addresses() -> None:
    with pytest.raises(AssertionError, match=r"pull \d of arm \d: .* by means and outcome"):
        check_environment(arms(HalvedAndSure), key=KEY, pulls=256)
    assert why_not(arms(HalvedAndSure), ADDRESSED) is None, "it was believed, so the kit had to find it"


@jb.pytree
class Steeper(Zooming):
    """A ball that grows: the cover may have had a hole in between."""

    def radius(self, n: Any, phase: Any) -> Any:
        return jnp.sqrt(phase * n) / 100


@jb.pytree
class OtherPoints(Continuum):
    def outcome(self, key: Any, since: Any, n: Any, mean_reward: Any, mean_cost: Any) -> Any:
        return super().outcome(key, since, n + 1, mean_reward, mean_cost)


def line(cls: type[Continuum]) -> Continuum:
    made = Continuum.of(lambda x, p: 0.3 + 0.4 * x, lambda x, p: 0.5 + 0 * x, lipschitz_reward=0.4, lipschitz_cost=0.1)
    return cls(**{field.name: getattr(made, field.name) for field in dataclasses.fields(made)})


def test_points_too() -> None:
    assert has(Zooming(lipschitz=4.0), RESTS) and "overrides radius" in str(why_not(Steeper(lipschitz=4.0), RESTS))
    assert has(line(Continuum), ADDRESSED) and "overrides outcome" in str(why_not(line(OtherPoints), ADDRESSED))
    with pytest.warns(UserWarning, match="Steeper overrides radius"):
        result = jb.simulate(Steeper(lipschitz=4.0), line(Continuum), jb.Horizon(20), key=KEY, marks=1)
    assert result.about["engine"] == "scan"


def test_a_reservoir_has_addresses_until_its_means_are_overridden() -> None:
    @jb.pytree
    class Poorer(Reservoir):
        def means(self, arm: Any) -> Any:
            reward, cost = super().means(arm)
            return reward // 2, cost

    made = Reservoir.ratio(jax.random.key(0), instances=1, capacity=4)
    poorer = Poorer(**{field.name: getattr(made, field.name) for field in dataclasses.fields(made)})
    assert has(made, ADDRESSED) and "overrides means" in str(why_not(poorer, ADDRESSED))


# --- constraints -------------------------------------------------------------------------------------------------


@jb.pytree
class Refill(jb.Horizon):
    """The guide's: a purse that refills."""

    per_round: Any = jb.leaf(default=0.25)

    def prepare(self, environment: jb.Environment) -> jb.Constraint:
        ready = super().prepare(environment)
        rate = np.full(environment.instances, ticks.floor_from_units(self.per_round), np.int32)
        return dataclasses.replace(ready, per_round=rate)  # type: ignore[type-var]

    def audit(self) -> Any:
        return {"purse": ticks.zero()}

    def view(self, ledger: Any) -> Any:
        return ticks.add(ledger.audit["purse"], self.per_round)

    def charge(self, ledger: Any, outcome: Any) -> Any:
        from jaxbandits.core.ledger import post

        purse = self.view(ledger)
        price = ticks.add(ticks.zero(), outcome.cost)
        paid = ticks.smaller(price, purse)
        booked = post(ledger, outcome, earns=~ticks.exceeds(price, purse))
        return booked._replace(spent=ticks.plus(ledger.spent, paid), audit={"purse": ticks.minus(purse, paid)})


@jb.pytree
class RefillAndSure(Refill):
    additive: ClassVar[bool] = True


@jb.pytree
class Backwards(jb.Horizon):
    """Its clock goes back."""

    def clock(self, ledger: Any) -> Any:
        return ticks.count(jnp.where(ledger.rounds == 5, 2, ledger.rounds))


@jb.pytree
class NeverEnds(jb.Horizon):
    def ended(self, ledger: Any) -> Any:
        return jnp.bool_(False)


@jb.pytree
class WrongClock(jb.Horizon):
    def expected_clock(self, ledger: Any) -> Any:
        return ledger["rounds"]


@jb.pytree
class BudgetOrHorizon(jb.Horizon):
    """Additive by the word of its ``charge``, and at its end before its clock is."""

    money: int = jb.static(default=10)
    additive: ClassVar[bool] = True

    def ended(self, ledger: Any) -> Any:
        spent = ticks.reached(ledger.spent, ticks.count(jnp.int32(self.money)))
        return spent | ticks.reached(self.clock(ledger), self.end())


@jb.pytree
class Renamed(jb.Horizon):
    """Nothing that an engine does by itself."""

    ends_with: ClassVar[jb.Status] = jb.Status.EXHAUSTED

    def best_rate(self, reward: Any, cost: Any) -> Any:
        return super().best_rate(reward, cost) / 2


def test_the_guides_own_budget_spends_the_same_on_every_engine() -> None:
    with pytest.warns(UserWarning, match="played round by round, because Refill overrides"):
        scan, auto = both(MUCB(), arms(), Refill(rounds=60))
    assert (auto.spent.values <= 15).all() and auto.about["engine"] == "scan"
    assert_same_results(scan, auto, "Refill")


def test_a_lane_that_ends_before_its_clock_is_played_round_by_round() -> None:
    """Blocks of rounds stop where the clock ends; this one must stop before."""
    scan, auto = both(MUCB(), arms(), BudgetOrHorizon(rounds=60))
    assert auto.about["engine"] == "scan" and (auto.rounds.values[..., -1] < 60).all()
    assert "BudgetOrHorizon has a method ended of its own" in auto.about["why_scan"]
    assert_same_results(scan, auto, "BudgetOrHorizon")
    valley = jb.environments.cost_valley([0.3], lam=0.5)
    zooming = jb.policies.SinglePhaseBZoom(budget=30.0, lam=0.5, lipschitz=5.0)
    assert "a method ended of its own" in str(merge.why_not(zooming, valley, BudgetOrHorizon(rounds=60)))


def test_a_policy_with_a_value_for_each_arm_does_not_leap() -> None:
    """A block is of one arm at many rounds: there is no place for K values."""

    @jb.pytree
    class Prior(IndexPolicy):
        prior: Any = jb.leaf(core=1)
        rests: ClassVar[bool] = True

        def score(self, arms: Any) -> Any:
            return arms.mean_reward + self.prior / arms.n

    with pytest.raises(jb.InputError, match=r"engine: 'leap' given, but Prior.prior has a value for each arm"):
        jb.simulate(Prior(np.array([1.0, 2.0])), arms(), BUDGET, key=KEY, engine="leap")


def test_a_constraint_that_overrides_nothing_of_the_promise_leaps() -> None:
    scan, auto = both(MUCB(), arms(), Renamed(rounds=60))
    assert auto.about["engine"] == "leap" and (auto.ended == jb.Status.EXHAUSTED).all()
    assert_same_results(scan, auto, "Renamed")


@pytest.mark.parametrize(
    ("broken", "rule", "message"),
    [
        (RefillAndSure(rounds=20), "adds_up_as_declared", "what post books and what charge books"),
        (BudgetOrHorizon(rounds=60), "adds_up_as_declared", "`ended` before its clock"),
        (Backwards(rounds=20), "clock_runs_forward", "the clock goes back by"),
        (NeverEnds(rounds=20), "clock_runs_forward", "a lane would never end"),
        (WrongClock(rounds=20), "expected_clock_is_the_clock_of_the_means", "expected_clock is"),
    ],
)
def test_the_kit_finds_a_broken_constraint(broken: jb.Constraint, rule: str, message: str) -> None:
    checks = {check.__name__: check for check in CONSTRAINT_CHECKS}
    with pytest.raises(AssertionError, match=message):
        checks[rule](Subject(MUCB(), arms(), broken, KEY))


@pytest.mark.parametrize("arms_spec", [True, False])
def test_the_view_tells_which_arms_exist_wherever_arms_can_be_counted(arms_spec: bool) -> None:
    class World(jb.Environment):
        spec = jb.environments.FiniteSpec(arms=3) if arms_spec else jb.environments.ContinuumSpec()

    there = World().available()
    assert (there is None) if not arms_spec else (there.dtype == bool and there.tolist() == [True] * 3)


def test_one_draw_among_the_arms_that_exist_is_uniform_and_ignores_absent_ones() -> None:
    from jaxbandits.core import streams

    words = jax.random.bits(KEY, (30_000,), "uint32")
    draw = jax.jit(jax.vmap(streams.available_arm, in_axes=(0, None)))
    arms = np.asarray(draw(words, jnp.array([True, False, True, True, False])))
    counts = np.bincount(arms, minlength=5)
    assert counts[[1, 4]].sum() == 0
    assert (np.abs(counts[[0, 2, 3]] - 10_000) < 4 * np.sqrt(30_000 * 2 / 9)).all(), "4 standard errors"
    assert (arms == np.asarray(draw(words, jnp.array([True, False, True, True, False, False, False])))).all()
    assert int(streams.available_arm(words[0], jnp.zeros(5, bool))) == 5, "none exists"


# --- abstract methods --------------------------------------------------------------------------------------------


def test_a_forgotten_method_is_named_before_anything_runs() -> None:
    @jb.pytree
    class NoScore(IndexPolicy):
        pass

    @jb.pytree
    class NoUpdate(jb.Policy):
        plays = jb.environments.FiniteSpec

        def init(self, spec: Any) -> Any:
            return jnp.int32(0)

    @jb.pytree
    class NoWorld(jb.environments.AddressedArms):
        table: Any = jb.leaf()

    @jb.pytree
    class NoClock(jb.Constraint):
        pass

    cases: list[tuple[Any, Any, Any, str]] = [
        (NoScore(), arms(), BUDGET, "policies: NoScore does not define score; it must"),
        (NoUpdate(), arms(), BUDGET, "policies: NoUpdate does not define select and update; it must"),
        (MUCB(), NoWorld(np.zeros((1, 2))), BUDGET, "NoWorld does not define means and outcome and spec and values"),
        (MUCB(), arms(), NoClock(), "constraint: NoClock does not define best_rate and charge and clock"),
        (SampledArms(NoScore(), arms=1), arms(), BUDGET, "NoScore does not define score"),
    ]
    for policy, world, constraint, message in cases:
        with pytest.raises(jb.InputError, match=message):
            jb.simulate(policy, world, constraint, key=KEY)
    with pytest.raises(AssertionError, match="does not define"):
        check_environment(NoWorld(np.zeros((1, 2))))


def test_everything_that_the_library_declares_counts() -> None:
    """A declaration that a class of our own undoes would be slow, and nobody would see why."""

    def below(cls: type) -> list[type]:
        return [cls, *(found for sub in cls.__subclasses__() for found in below(sub))]

    declaring = {RESTS: (IndexPolicy, ZoomingPolicy), ADDRESSED: (jb.Environment,), ADDITIVE: (jb.Constraint,)}
    seen = 0
    for capability, bases in declaring.items():
        for cls in (found for base in bases for found in below(base) if found.__module__.startswith("jaxbandits.")):
            if getattr(cls, capability.name, False) is True:
                seen += 1
                reason = capabilities.why_not(object.__new__(_bare(cls)), capability)
                assert reason is None, reason
    assert seen > 20


def _bare(cls: type) -> type:
    """The class without fields, so that nothing must be given for them."""
    return type(cls.__name__, (cls,), {"__dataclass_fields__": {}})


# --- what asks a policy for its scores alone ---------------------------------------------------------------------


@jb.pytree
class LearnsNothing(MUCB):
    def update(self, state: Any, key: Any, observation: Any) -> Any:
        return state


@jb.pytree
class AlwaysFirst(jb.policies.SoftElim):
    def select(self, state: Any, key: Any, view: Any) -> Any:
        return state, jnp.int32(0)


def test_whoever_asks_for_scores_alone_refuses_a_policy_with_more_of_its_own() -> None:
    """Its scores, or logits, are not what it plays: values and gradients made of them would be another's."""
    from jaxbandits.gradients import exact, policy_score, straight_through
    from jaxbandits.policies.base.index import chooses_by_score
    from jaxbandits.policies.base.randomised import chooses_by_logits

    def with_its_own(base: type, method: str) -> type:
        return jb.pytree(type("Odd", (base,), {"__annotations__": {}, method: lambda self, *args: None}))

    assert chooses_by_score(MUCB()) and chooses_by_logits(jb.policies.SoftElim(theta=0.5))
    for method in ("init", "blank_action", "update", "select", "step", "admits", "steady", "status", "summary"):
        assert not chooses_by_score(with_its_own(MUCB, method)()), method
    for method in ("blank_action", "update", "select", "step", "status", "perturbed", "log_probabilities"):
        assert not chooses_by_logits(with_its_own(jb.policies.SoftElim, method)(theta=0.5)), method
    spec = arms().spec
    for inner in (LearnsNothing(), SampledArms(RCB(), arms=1)):
        with pytest.raises(jb.InputError, match="chooses by its score alone"):
            jb.policies.SoftIndex(inner, temperature=0.1).check(spec)
        with pytest.raises(jb.InputError, match="chooses by its score"):
            exact.choice_of(inner)
    for estimator in (policy_score, straight_through):
        with pytest.raises(jb.InputError, match="policy: AlwaysFirst given"):
            estimator.estimate(AlwaysFirst(theta=0.5), arms(), jb.Horizon(5), wrt="theta", key=KEY, replicates=4)
    with pytest.raises(jb.InputError, match="policy: 'AlwaysFirst' given"):
        exact.choice_of(AlwaysFirst(theta=0.5))


def test_a_pickled_or_copied_policy_is_played_as_before() -> None:
    """Both leave a trace in the class: ``__slotnames__``."""
    policy = pickle.loads(pickle.dumps(jb.grid(OmegaUCB, rho=[0.25, 1.0])))
    copy.copy(policy)
    assert "__slotnames__" in vars(OmegaUCB)
    assert has(policy, RESTS) and has(policy, STEADY)
    copy.copy(arms()), copy.copy(BUDGET)
    assert has(arms(), ADDRESSED) and has(BUDGET, ADDITIVE)
