"""A capability counts only where it was made: an override is played round by round."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits._engine import leap, merge
from jaxbandits.core import capabilities, ticks
from jaxbandits.core.capabilities import ADDITIVE, ADDRESSED, RESTS, STEADY, has, why_not
from jaxbandits.core.protocol import post
from jaxbandits.environments import Continuum, FiniteArms, Reservoir
from jaxbandits.policies import (
    MUCB,
    RCB,
    ArmIncreasing,
    IndexPolicy,
    OmegaUCB,
    SampledArms,
    Zooming,
)
from jaxbandits.policies.base import Exploration
from jaxbandits.policies.zooming import ZoomingPolicy
from jaxbandits.testing import CONSTRAINT_CHECKS, Subject, assert_same_results, check_environment
from tests.contract.worlds import as_a, with_its_own

KEY = jax.random.key(20261122)
BUDGET = jb.TotalBudget(30.0, last_pull="counts")


def arms(cls: type[FiniteArms] = FiniteArms) -> Any:
    return as_a(cls, FiniteArms.bernoulli([[0.5, 0.4], [0.3, 0.7]], [[0.9, 0.3], [0.5, 0.6]]))


def line(cls: type[Continuum] = Continuum) -> Any:
    continuum = Continuum.of(
        lambda x, p: 0.3 + 0.4 * x,
        lambda x, p: 0.5 + 0 * x,
        lipschitz_reward=0.4,
        lipschitz_cost=0.1,
    )
    return as_a(cls, continuum)


def overriding(base: type, *methods: str, **brought: Any) -> Any:
    """A subclass of ``base`` that overrides these methods and brings these attributes."""
    return with_its_own(base, **{method: lambda self, *args: None for method in methods}, **brought)


def both(
    policy: jb.Policy, world: jb.Environment, constraint: jb.Constraint, engine: str
) -> jb.Result:
    """What ``auto`` plays, and that scan plays the same; ``engine`` is whom it should take."""
    scan, auto = (
        jb.simulate(policy, world, constraint, key=KEY, replicates=2, marks=2, engine=x)
        for x in ("scan", "auto")
    )
    assert auto.about.engine == engine
    assert_same_results(scan, auto, f"scan and {engine}")
    return auto


@pytest.fixture(autouse=True)
def no_run_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here ``auto`` is asked what it may take, not what pays."""
    monkeypatch.setattr(leap, "SHORT", 0.0)
    monkeypatch.setattr(merge, "SHORT", 0.0)


# --- the rule


@jb.pytree
class Plain(MUCB):
    """Another default, a name that nobody calls, and a check."""

    alpha: Any = jb.leaf(default=0.25, above=0)
    label: ClassVar[str] = "plain"

    def check(self, spec: Any) -> None:
        super().check(spec)


class Falling:
    def score(self, arms: Any) -> Any:
        return arms.mean_reward / arms.t


class Sinking(Falling, MUCB):
    """Another score, before the one that the promise speaks of in the order of bases."""


class Template(IndexPolicy):
    """Promises for a score that others write."""

    rests: ClassVar[bool] = True


class Beside(IndexPolicy):
    def update(self, state: Any, key: Any, observation: Any) -> Any:
        return state


class Promising(IndexPolicy):
    rests: ClassVar[bool] = True

    def score(self, arms: Any) -> Any:
        return arms.mean_reward


class EndsEarly(jb.Constraint):
    def ended(self, ledger: Any) -> Any:
        return ledger.rounds >= 17


class EndsBadly(jb.Policy):
    def status(self, state: Any) -> Any:
        return jnp.int32(jb.Status.INVALID)


class Poor(jb.environments.AddressedArms):
    def pull(self, state: Any, action: Any, key: Any, round: Any) -> Any:
        return super().pull(state, action, key, round)


def mixed(*bases: type) -> Any:
    return jb.pytree(type("Mixed", bases, {"__annotations__": {}}))


RESERVOIR = Reservoir.ratio(jax.random.key(0), instances=1, capacity=4)


@pytest.mark.parametrize(
    ("owner", "capability", "undone_by"),
    [
        *((overriding(MUCB, x)(), RESTS, x) for x in ("score", "init", "update", "select", "step")),
        (mixed(Sinking)(), RESTS, "score"),
        (mixed(Falling, Template)(), RESTS, "score"),
        (mixed(Promising, Beside)(), RESTS, "update"),  # the second base of a diamond
        (overriding(Zooming, "radius")(lipschitz=4.0), RESTS, "radius"),
        (mixed(MUCB, EndsBadly)(), STEADY, "status"),
        (overriding(MUCB, "admits")(), STEADY, "admits"),
        (overriding(ArmIncreasing, "wanted")(RCB(), beta=1.0), STEADY, "wanted"),
        *(
            (overriding(jb.Horizon, x)(rounds=5), ADDITIVE, x)
            for x in ("charge", "clock", "end", "view")
        ),
        (mixed(jb.Horizon, EndsEarly)(rounds=50), ADDITIVE, "ended"),
        (arms(overriding(FiniteArms, "pull")), ADDRESSED, "pull"),
        (arms(overriding(FiniteArms, "outcome")), ADDRESSED, "outcome"),
        (as_a(overriding(Reservoir, "means"), RESERVOIR), ADDRESSED, "means"),
        (as_a(mixed(Reservoir, Poor), RESERVOIR), ADDRESSED, "pull"),
        (line(overriding(Continuum, "outcome")), ADDRESSED, "outcome"),
    ],
)
def test_an_override_undoes_the_promise(
    owner: Any, capability: capabilities.Capability, undone_by: str
) -> None:
    assert f"overrides {undone_by} without declaring `{capability.name}` again" in str(
        why_not(owner, capability)
    )
    again = {capability.name: MUCB.steady if capability is STEADY else True}
    assert has(as_a(overriding(type(owner), **again), owner), capability), "said again, it counts"


def test_what_changes_nothing_leaves_the_promise() -> None:
    for policy in (Plain(), MUCB(), OmegaUCB()):
        assert has(policy, RESTS) and has(policy, STEADY)
    assert has(arms(overriding(FiniteArms, "check", "values")), ADDRESSED)
    assert has(RESERVOIR, ADDRESSED)
    assert has(overriding(jb.Horizon, "best_rate")(rounds=5), ADDITIVE) and has(line(), ADDRESSED)
    filled = overriding(jb.environments.AddressedArms, "means", "outcome", "spec", "values")
    assert has(filled(), ADDRESSED), "what is abstract may be filled in"


def test_only_true_declares() -> None:
    for declaration in ("no", lambda self: False):
        assert "does not declare a score that rests" in str(
            why_not(overriding(MUCB, rests=declaration)(), RESTS)
        )
        assert "must see every round" in str(
            why_not(overriding(jb.Horizon, additive=declaration)(rounds=5), ADDITIVE)
        )


def test_wrappers_ask_what_they_wrap() -> None:
    assert has(SampledArms(RCB(), arms=2), RESTS) and has(ArmIncreasing(RCB(), beta=1.0), RESTS)
    falling = RCB(exploration=overriding(Exploration, "at")())
    for policy in (falling, SampledArms(falling, arms=2), SampledArms(mixed(Sinking)(), arms=2)):
        assert "wraps a part that lacks it" in str(why_not(policy, RESTS))


def test_everything_that_the_library_declares_counts() -> None:
    """A declaration that a class of our own undoes would be slow, and nobody would see why."""

    def below(cls: type) -> list[type]:
        return [cls, *(subclass for sub in cls.__subclasses__() for subclass in below(sub))]

    declaring = {
        RESTS: (IndexPolicy, ZoomingPolicy),
        ADDRESSED: (jb.Environment,),
        ADDITIVE: (jb.Constraint,),
    }
    count = 0
    for capability, bases in declaring.items():
        for cls in (
            subclass
            for base in bases
            for subclass in below(base)
            if subclass.__module__.startswith("jaxbandits.")
        ):
            if getattr(cls, capability.name, False) is True:
                count += 1
                # So that no field must be given
                bare = type(cls.__name__, (cls,), {"__dataclass_fields__": {}})
                assert why_not(object.__new__(bare), capability) is None
    assert count > 20


# --- what the engines do with it


@jb.pytree
class Refill(jb.Horizon):
    """Money that comes back every round: not ``post``, and it inherits `additive`."""

    def charge(self, ledger: Any, outcome: Any) -> Any:
        remaining = ticks.count(1 + ledger.rounds // 4)
        price = ticks.add(ticks.zero(), outcome.cost)
        return post(
            ledger, outcome, earns=~ticks.exceeds(price, ticks.minus(remaining, ledger.spent))
        )


@jb.pytree
class BudgetOrHorizon(jb.Horizon):
    """Additive by the word of its ``charge``, and at its end before its clock is."""

    additive: ClassVar[bool] = True

    def ended(self, ledger: Any) -> Any:
        return ticks.reached(ledger.spent, ticks.count(jnp.int32(10))) | ticks.reached(
            self.clock(ledger), self.end()
        )


@jb.pytree
class Halved(FiniteArms):
    """Says that its outcomes are addressed, and they are not those that it plays."""

    addressed: ClassVar[bool] = True

    def pull(self, state: Any, action: Any, key: Any, round: Any) -> Any:
        state, outcome, feedback, empty = super().pull(state, action, key, round)
        outcome = outcome._replace(
            reward=outcome.reward // 2, expected_reward=outcome.expected_reward // 2
        )
        return state, outcome, feedback._replace(reward=feedback.reward // 2), empty


def test_a_lane_that_ends_before_its_clock_is_played_round_by_round() -> None:
    """Blocks of rounds stop where the clock ends; this one must stop before."""
    auto = both(MUCB(), arms(), BudgetOrHorizon(rounds=60), "scan")
    assert (auto.rounds.values[..., -1] < 60).all()
    assert "BudgetOrHorizon overrides `ended`" in auto.about.why_scan
    valley = jb.environments.cost_valley([0.3], lam=0.5)
    zooming = jb.policies.SinglePhaseBZoom(budget=30.0, lam=0.5, lipschitz=5.0)
    assert "overrides `ended`" in str(merge.why_not(zooming, valley, BudgetOrHorizon(rounds=60)))


def test_a_policy_with_a_value_for_each_arm_does_not_leap() -> None:
    """A block is of one arm at many rounds: there is no place for K values."""

    @jb.pytree
    class Prior(Promising):
        prior: Any = jb.leaf(core=1)

    with pytest.raises(jb.InputError, match=r"but Prior.prior has a value for each arm"):
        jb.simulate(Prior(np.array([1.0, 2.0])), arms(), BUDGET, key=KEY, engine="leap")


def test_no_engine_plays_an_arm_that_does_not_exist() -> None:
    present = [[True, True, True], [True, True, False]]
    world = FiniteArms.bernoulli(np.full((2, 3), 0.5), np.full((2, 3), 0.5), present)
    generous = overriding(
        MUCB, admits=lambda self, state, view: jnp.arange(3) < 3, steady=MUCB.steady
    )
    assert (both(generous(), world, BUDGET, "leap").final["pulls"][:, 1, :, 2] == 0).all()


def test_the_kit_finds_a_promise_that_is_not_kept() -> None:
    assert why_not(arms(Halved), ADDRESSED) is None, "it is believed, so the kit has to find it"
    with pytest.raises(AssertionError, match=r"pull \d of arm \d: .* by means and outcome"):
        check_environment(arms(Halved), key=KEY, pulls=256)


def jumping(self: Any, ledger: Any) -> Any:
    return ticks.count(jnp.where(ledger.rounds == 5, 2, ledger.rounds))


def endless(self: Any, ledger: Any) -> Any:
    return jnp.bool_(False)


@pytest.mark.parametrize(
    ("broken", "rule", "message"),
    [
        (
            overriding(Refill, additive=True),
            "adds_up_as_declared",
            "what post books and what charge",
        ),
        (BudgetOrHorizon, "adds_up_as_declared", "`ended` before its clock"),
        (overriding(jb.Horizon, clock=jumping), "clock_runs_forward", "the clock goes back by"),
        (overriding(jb.Horizon, ended=endless), "clock_runs_forward", "a lane would never end"),
        (
            overriding(jb.Horizon, expected_clock=lambda self, x: x["rounds"]),
            "expected_clock_is_the_clock_of_the_means",
            "expected_clock is",
        ),
    ],
)
@pytest.mark.quick_rows("Odd-adds_up_as_declared-what post books and what charge")
def test_the_kit_finds_a_broken_constraint(broken: Any, rule: str, message: str) -> None:
    checks = {check.__name__: check for check in CONSTRAINT_CHECKS}
    with pytest.raises(AssertionError, match=message):
        checks[rule](Subject(MUCB(), arms(), broken(rounds=20), KEY))


def test_whoever_asks_for_scores_alone_refuses_a_policy_with_more_of_its_own() -> None:
    """Its scores, or logits, are not what it plays: values made of them would be another's."""
    from jaxbandits.gradients import exact, policy_score, straight_through
    from jaxbandits.policies.base import chooses_by_logits, chooses_by_score

    soft = jb.policies.SoftElim
    assert chooses_by_score(MUCB()) and chooses_by_logits(soft(theta=0.5))
    common = ("blank_action", "update", "select", "step", "status")
    for method in (*common, "init", "admits", "steady", "summary"):
        assert not chooses_by_score(overriding(MUCB, method)()), method
    for method in (*common, "perturbed", "log_probabilities"):
        assert not chooses_by_logits(overriding(soft, method)(theta=0.5)), method
    for inner in (overriding(MUCB, "update")(), SampledArms(RCB(), arms=1)):
        with pytest.raises(jb.InputError, match="chooses by its score alone"):
            jb.policies.SoftIndex(inner, temperature=0.1).check(arms().spec)
        with pytest.raises(jb.InputError, match="chooses by its score"):
            exact.choice_of(inner)
    always = overriding(soft, select=lambda self, state, key, view: (state, jnp.int32(0)))(
        theta=0.5
    )
    for estimator in (policy_score, straight_through):
        with pytest.raises(jb.InputError, match=r"policy: '?Odd'? given"):
            estimator.estimate(always, arms(), jb.Horizon(5), wrt="theta", key=KEY, replicates=4)
    with pytest.raises(jb.InputError, match=r"policy: '?Odd'? given"):
        exact.choice_of(always)


# --- what else all engines stand on


def test_the_view_tells_which_arms_exist_wherever_arms_can_be_counted() -> None:
    counted, line = (
        overriding(jb.Environment, spec=spec)().available()
        for spec in (jb.environments.FiniteSpec(arms=3), jb.environments.ContinuumSpec())
    )
    assert counted.dtype == bool and counted.tolist() == [True] * 3 and line is None


def test_a_forgotten_method_is_named_before_anything_runs() -> None:
    no_score, no_world, no_clock = (mixed(base) for base in (IndexPolicy, Poor, jb.Constraint))
    no_update = overriding(jb.Policy, "init", plays=jb.environments.FiniteSpec)
    cases: list[tuple[Any, Any, Any, str]] = [
        (no_score(), arms(), BUDGET, "policies: Mixed does not define score; it must"),
        (no_update(), arms(), BUDGET, "policies: Odd does not define select and update; it must"),
        (MUCB(), no_world(), BUDGET, "Mixed does not define means and outcome and spec and values"),
        (MUCB(), arms(), no_clock(), "Mixed does not define best_rate"),
        (SampledArms(no_score(), arms=1), arms(), BUDGET, "Mixed does not define score"),
    ]
    for policy, world, constraint, message in cases:
        with pytest.raises(jb.InputError, match=message):
            jb.simulate(policy, world, constraint, key=KEY)
