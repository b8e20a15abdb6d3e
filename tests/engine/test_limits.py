"""What fits, and one more is refused by name: the table of docs/limits.md, row by row."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import _engine as engine
from jaxbandits import environments, policies
from jaxbandits._engine import limits, scan
from jaxbandits._engine.setup import lay_out, time_parallel
from jaxbandits.core import arm_statistics, checks, pytrees, streams, ticks
from jaxbandits.environments import (
    CensoredSpec,
    Constant,
    FiniteArms,
    FiniteSpec,
    Linear,
    Reservoir,
    row_arms,
)
from jaxbandits.policies.base import Plan

KEY = jax.random.key(0)
MANY = 2**24 + 1
ARMS = FiniteArms.bernoulli([0.5, 0.4], [0.5, 0.4])
WIDE = FiniteArms.bernoulli(np.ones(200), np.ones(200))
BUDGET = jb.TotalBudget(5.0, last_pull="counts")
CONTEXTS = environments.ContextualArms.linear(
    [[0.5, 0.1]] * 2, [[0.5, 0.1]] * 2, environments.Rows.of([[0.0], [1.0]])
)


def half(*shape: int) -> np.ndarray:
    return np.broadcast_to(0.5, shape)


def laid_out(
    policy: Any = None, world: Any = ARMS, constraint: Any = BUDGET, **options: Any
) -> Any:
    """Everything that ``simulate`` checks; nothing is compiled."""
    return lay_out(
        policy or policies.OmegaUCB(), world, constraint, key=KEY, **({"marks": 1} | options)
    )


def penal(units: float) -> environments.CensoredArms:
    return row_arms([[([0.5], [0.5])]], limits=[1.0], cost=Linear(0.1), penalty=Constant(units))


@jb.pytree
class Sets(Plan):
    """Plays the first L arms, or arm 0 as an action of any type."""

    width: int = pytrees.static()
    dtype: str = pytrees.static(default="int32")

    def blank_action(self, spec):
        return jnp.arange(self.width, dtype=self.dtype) if self.width else jnp.zeros((), self.dtype)

    def select(self, state, key, view):
        return state, self.blank_action(None)


# --- addresses -------------------------------------------------------------------------------------------------

LARGEST = Reservoir.ratio(KEY, instances=1, capacity=2**24)
FINE = policies.OnPoints(policies.MUCB(), half(MANY))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FiniteArms.bernoulli(half(MANY), half(MANY)), "mean_cost: .* at most 16777216"),
        (
            lambda: FiniteArms.generalised_bernoulli(*[half(MANY, 5)] * 2),
            "weights: '16777217 arms'",
        ),
        (lambda: FiniteArms.beta(*[half(MANY)] * 4), "reward_alpha: '16777217 arms'"),
        (lambda: limits.check_spec(FiniteSpec(MANY)), "arms: 16777217 given"),
        (lambda: LARGEST.with_capacity(MANY), "capacity: 16777217 given"),
        (
            lambda: FiniteArms.bernoulli(half(1, 2), half(1, 2, 512)),
            "'512 resources' .* at most 511",
        ),
        (lambda: FINE.check(environments.ContinuumSpec()), r"OnPoints.points: '16777217 points'"),
        (lambda: streams.policy_words(KEY, jnp.int32(1), 256), "role: 256 given"),
    ],
)
def test_one_more_than_an_address_holds(make, message):
    with pytest.raises(jb.InputError, match=message):
        make()


def test_as_many_as_an_address_holds():
    limits.check_spec(FiniteSpec(2**24))
    assert LARGEST.spec.arms == 2**24
    assert streams.policy_words(KEY, jnp.int32(1), 255).shape == (2,)


def test_resources():
    widest = FiniteArms.bernoulli(half(1, 2), half(1, 2, 511))
    assert widest.spec.resources == 511
    # Its last block's bit is 2**31
    wide = jax.tree.map(jnp.asarray, FiniteArms.bernoulli(half(1, 2), half(1, 2, 257)))
    world = scan.at_instance(wide, jnp.int32(0))
    _, cost = jax.eval_shape(world.outcome, KEY, jnp.int32(1), jnp.int32(0))
    assert cost.shape == (257,)


def test_pairs():
    law = {"cost": Linear(0.1), "penalty": Linear(0.1)}
    with pytest.raises(jb.InputError, match=r"arms, limits: \(1048575, 17\) given"):
        CensoredSpec.of(2**20 - 1, np.arange(1, 18) / 17, **law)
    assert CensoredSpec.of(2**20 - 1, np.arange(1, 17) / 16, **law).pairs < 2**24


@pytest.mark.parametrize("name", ["replicates", "instance_ids"])
@pytest.mark.parametrize("wrong", [[2**32], [-1], [0.5], [True], ["1"], [], [1, [2]], [3, 3]])
def test_ids(name, wrong):
    with pytest.raises(jb.InputError, match=f"{name}: .* distinct whole numbers"):
        laid_out(**{name: wrong})


def test_ids_that_fit():
    task = laid_out(replicates=[2**32 - 1, 0], instance_ids=[2**32 - 1]).tasks[0]
    assert task.replicate_ids.tolist() == [2**32 - 1, 0]
    assert task.instance_ids.tolist() == [2**32 - 1]


# --- totals ----------------------------------------------------------------------------------------------------


def test_a_set_of_127_arms_is_exact_where_the_total_has_a_part():
    world = scan.at_instance(jax.tree.map(jnp.asarray, WIDE), jnp.int32(0))
    _, outcome, _, _ = jax.jit(world.pull)(
        world.start(), jnp.arange(127, dtype=jnp.int32), KEY, jnp.int32(1)
    )
    assert int(outcome.reward) == int(outcome.expected_cost) == 127 * ticks.ONE
    nearly = ticks.Total(jnp.int32(5), jnp.int32(ticks.ONE - 1))
    assert ticks.join(ticks.add(nearly, outcome.reward)) == 133 * ticks.ONE - 1
    assert ticks.join(ticks.add(nearly, -outcome.reward)) == -121 * ticks.ONE - 1
    assert WIDE.refuses(jnp.zeros(127, jnp.int32)) is None
    for more in (128, 200):
        with pytest.raises(jb.InputError, match=r"Sets.blank_action: .* L from 1 to 127"):
            laid_out(Sets(more), WIDE)


@pytest.mark.parametrize("dtype", ["float32", "bool", "uint8", "int8", "uint32", "bfloat16"])
def test_an_action_that_is_no_arm(dtype):
    message = rf"Sets.blank_action: an action of {dtype}\[\] given; for FiniteArms it must"
    with pytest.raises(jb.InputError, match=message):
        laid_out(Sets(0, dtype))


@pytest.mark.parametrize(
    ("policy", "world", "largest"),
    [
        (policies.UCBReduction(), penal(100.0), (2**31 - 1) // 100),
        (policies.UCBReduction(), environments.RevealConsumption(penal(3.0)), (2**31 - 1) // 3),
        (Sets(127), WIDE, (2**31 - 1) // 127),
        (policies.LinUCB(), CONTEXTS, 2**24),  # the policy's own most_rounds
    ],
)
def test_rounds_that_a_total_can_hold(policy, world, largest):
    assert laid_out(policy, world, jb.Horizon(largest)).tasks[0].cap[0] == largest
    with pytest.raises(jb.InputError, match=f"rounds: {largest + 1} given"):
        laid_out(policy, world, jb.Horizon(largest + 1))
    with pytest.raises(jb.InputError, match=f"max_rounds: {largest + 1} given"):
        laid_out(policy, world, BUDGET, max_rounds=largest + 1)
    assert laid_out(policy, world, jb.Horizon(largest + 1), max_rounds=5).tasks[0].cap[0] == 5


def test_penalties():
    assert penal(100.0).spec.penalties == (100.0,)
    for wrong in (100.1, 1e-9, -1.0):
        with pytest.raises(jb.InputError, match="penalty: "):
            penal(wrong)


def test_a_cap_that_nobody_asked_for_is_lowered():
    cheap = row_arms([[([0.5], [1e-6])]], limits=[1.0], cost=Linear(0.1), penalty=Constant(100.0))
    assert (
        laid_out(policies.UCBReduction(), cheap, jb.TotalBudget(2.0**20, last_pull="counts"))
        .tasks[0]
        .cap[0]
        == 21474836
    )


def test_ordinary_worlds_keep_their_rounds():
    assert laid_out(constraint=jb.Horizon(2**30)).tasks[0].cap[0] == 2**30 + 1
    assert laid_out(max_rounds=2**30).tasks[0].cap[0] == 2**30
    for wrong in (2**30 + 1, 10.5, 0):
        with pytest.raises(jb.InputError, match="rounds: "):
            laid_out(constraint=jb.Horizon(wrong))


@jb.pytree
class Loud(environments.Continuum):
    """Says that it may bring much."""

    def largest(self, action):
        return 3 * ticks.ONE, ticks.ONE


def test_what_may_bring_more_than_a_unit_is_played_round_by_round():
    def flat(x, parameters):
        return 0.5 + 0 * x

    slope = np.ones(1, np.float32)
    bzoom = policies.SinglePhaseBZoom(budget=5.0, lam=0.5, lipschitz=1.0)
    ordinary, loud = (kind({}, slope, slope, flat, flat) for kind in (environments.Continuum, Loud))
    assert time_parallel(bzoom, ordinary, BUDGET) is engine.merge
    assert "more than one unit" in str(time_parallel(bzoom, loud, BUDGET))


def test_means_beyond_the_stated_bound():
    world = FiniteArms(ARMS.law, ARMS.mean_reward * 4, ARMS.mean_cost, ARMS.present)
    with pytest.raises(jb.InputError, match=r"FiniteArms.values: a mean reward of size 2 given"):
        laid_out(world=world)


def test_statistics_of_an_arm_hold_as_many_pulls_as_there_are_rounds():
    pulls = jnp.int32(2**30 - 1)
    full = arm_statistics.ArmStatistics(
        *(jnp.full(1, pulls), *[ticks.Total(jnp.full(1, pulls), jnp.zeros(1, jnp.int32))] * 4)
    )
    tick = jnp.int32(ticks.ONE)
    after = jax.jit(arm_statistics.record)(full, jnp.int32(0), tick, tick)
    assert int(after.pulls[0]) == 2**30 and ticks.join(after.reward)[0] == 2**30 * ticks.ONE
    assert float(jax.jit(arm_statistics.as_floats)(after, pulls).reward_rest[0]) == 0


# --- memory ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "number"), [("replicates", 2**31), ("replicates", 2**28), ("slots", 2**30)]
)
def test_memory(name, number, monkeypatch):
    monkeypatch.setattr(checks, "available_memory", lambda: 8 << 30)
    message = f"{name}.* it must be less: it would take .* GiB of memory, and 8 GiB are free"
    with pytest.raises(jb.InputError, match=message):
        jb.simulate(policies.OmegaUCB(), ARMS, BUDGET, key=KEY, **{name: number})
    monkeypatch.setattr(checks, "available_memory", lambda: 0)
    assert laid_out(replicates=100).tasks[0].order.size == 100, "little is never refused"


# --- what is given ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("constraint", [jb.TotalBudget(10.0, last_pull="counts"), jb.Horizon(10)])
def test_a_mark_before_the_first_tick_has_its_own_account(constraint: jb.Constraint) -> None:
    both = [
        jb.simulate(policies.UCB1(), ARMS, constraint, key=KEY, replicates=3, marks=marks)
        for marks in ([1e-9, 0.5, 1.0], [0.25, 0.5, 1.0])
    ]
    early, usual = (result.rounds.values for result in both)
    assert (early[..., 0] < usual[..., 0]).all() and (early[..., 1:] == usual[..., 1:]).all()


def test_ids_of_replicates_may_be_rows_of_a_list() -> None:
    world = FiniteArms.bernoulli([[0.5, 0.4], [0.3, 0.2]], [[0.5, 0.4], [0.3, 0.2]])
    ids = [[0, 1], [2, 3]]
    for form in (ids, [(0, 1), (2, 3)], np.array(ids)):
        assert laid_out(world=world, replicates=form).tasks[0].replicate_ids.tolist() == ids


def test_values_for_each_arm_are_asked_for_and_shown() -> None:
    with pytest.raises(jb.InputError, match=r"weights: 0.5 given"):
        laid_out(policies.FixedSplit(weights=0.5))
    splits = [policies.FixedSplit([3.0, 1.0]), policies.FixedSplit([1.0, 3.0])]
    assert laid_out(splits).settings == (
        ("FixedSplit(weights=[3 1])",),
        ("FixedSplit(weights=[1 3])",),
    )
