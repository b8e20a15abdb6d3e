"""Policies of censored arms against the twins: scores to 1e-5, decisions but at ties."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxbandits as jb
from jaxbandits._engine.scan import at_instance
from jaxbandits.core import streams, ticks
from jaxbandits.core.protocol import Observation, Status, View
from jaxbandits.core.specs import OVER
from jaxbandits.core.streams import Role
from jaxbandits.environments import RevealConsumption, g1
from jaxbandits.policies import RCUCB, ZRCUCB, ThompsonReduction, UCBReduction, fine_limits
from jaxbandits.policies.censored import on_grid
from jaxbandits.testing import episode
from tests.policies.reference import censored as twins

ROUNDS = 400  # what z-RCUCB needs to refine
FEW = 150


class Step(NamedTuple):
    """One round, on the host, in user units."""

    state: Any  # the policy's state before it acted, having learnt from the round before
    view: Any
    arm: int
    limit: int
    reward: float
    consumption: float | None
    true: float


@jax.jit
def _round(
    policy: Any, tables: Any, key: Any, world_key: Any, state: Any, place: Any, observation: Any
) -> Any:
    learnt, action = policy.step(state, key, observation)
    place, _, feedback, _ = at_instance(tables, jnp.int32(0)).pull(
        place, action, world_key, observation.view.round
    )
    return learnt, place, action, feedback


_scores = jax.jit(lambda policy, *arguments: policy.scores(*arguments))


def as_arrays(policy: Any) -> Any:
    """Its numbers as a lane holds them: what they are does not belong to the program."""
    return jax.tree.map(
        lambda x: jnp.asarray(x, jnp.int32 if isinstance(x, int) else jnp.float32), policy
    )


def rounds(policy: Any, world: Any, count: int, seed: int = 0) -> Iterator[Step]:
    """One lane of instance 0, round by round; the policy is told only what it may know."""
    key, spec, leaves = jax.random.key(seed), world.spec, as_arrays(policy)
    tables = jax.tree.map(jnp.asarray, world)
    inner = at_instance(tables, jnp.int32(0))
    state, place, action = policy.init(spec), inner.start(), policy.blank_action(spec)
    shapes = jax.eval_shape(
        lambda: inner.pull(inner.start(), policy.blank_action(spec), key, jnp.int32(1))[2]
    )
    feedback, empty = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes), True
    for t in range(1, count + 1):
        observation = Observation(
            View(jnp.int32(t), None, jnp.ones(spec.arms, bool)), action, feedback, jnp.bool_(empty)
        )
        arguments = leaves, tables, key, jax.random.key(seed + 1), state, place, observation
        state, place, action, feedback = _round(*arguments)
        empty = False
        exceeded = bool(feedback.exceeded)
        true = int(feedback.consumption) / ticks.ONE
        yield Step(
            state,
            observation.view,
            int(action.arm),
            int(action.limit),
            0.0 if exceeded else int(feedback.reward) / ticks.ONE,
            None if exceeded else true,
            float("inf") if int(feedback.consumption) == OVER else true,
        )


def near_best(scores: np.ndarray, pair: tuple[int, int]) -> bool:
    best = scores.max()
    slack = 1e-5 * max(1.0, abs(best)) if np.isfinite(best) else 0.0
    return bool(scores[pair] >= (best - slack if slack else best))


def units(spec: Any) -> np.ndarray:
    return spec.limit_ticks / ticks.ONE


def same(ours: np.ndarray, theirs: np.ndarray) -> None:
    assert np.array_equal(np.isinf(ours), np.isinf(theirs))
    finite = np.isfinite(theirs)
    np.testing.assert_allclose(ours[finite], theirs[finite], rtol=1e-5, atol=1e-5)


def rcucb(survival: str) -> tuple[Any, Any]:
    return RCUCB(survival, alpha=0.7), partial(twins.RCUCB, alpha=0.7, survival=survival)


def reduction(width: str) -> tuple[Any, Any]:
    return UCBReduction(width, alpha=0.5), partial(twins.UCBReduction, alpha=0.5, width=width)


SURVIVALS = ("literal", "legal", "infinite", "kaplan_meier")
INDEX = [(*rcucb(survival), name) for survival in SURVIVALS for name in ("PosCorr", "NegCorr")]
INDEX += [(*reduction(width), "PosCorr") for width in ("lambda", "one")]


@pytest.mark.parametrize(
    ("policy", "twin", "name"), INDEX, ids=[f"{policy}-{name}" for policy, _, name in INDEX]
)
@pytest.mark.integration_rows(*(f"{policy}-NegCorr" for policy, _, _ in INDEX))
def test_index_policies(policy: Any, twin: Any, name: str) -> None:
    world = RevealConsumption(g1([name], arms=4, limits=5))
    reference, leaves = twin(4, units(world.spec)), as_arrays(policy)
    for step in rounds(policy, world, FEW):
        first = reference.initial_pair()
        if first is not None:
            assert (step.arm, step.limit) == first
        else:
            theirs = reference.scores()
            same(np.asarray(_scores(leaves, step.state, step.view.round)).reshape(4, 5), theirs)
            assert near_best(theirs, (step.arm, step.limit))
        true = (step.true,) if isinstance(reference, twins.RCUCB) else ()
        reference.update(step.arm, step.limit, step.reward, step.consumption, *true)


@pytest.mark.parametrize("scaling", ["global", "per_arm"])
def test_thompson_reduction(scaling: str) -> None:
    world = RevealConsumption(g1(["Indep"], arms=4, limits=5))
    policy, spec, seed = ThompsonReduction(scaling), world.spec, 3
    twin = twins.ThompsonReduction(4, units(spec), scaling)
    draw = jax.jit(lambda state, t: policy.draws(state, jax.random.key(seed), t))
    last: Step | None = None
    for step in rounds(policy, world, FEW, seed):
        successes = np.asarray(step.state.brought).reshape(4, 5)
        if last is not None:
            coin = streams.policy_words(jax.random.key(seed), step.view.round, Role.TRIAL)[0]
            u = int(streams.uniform_ticks(coin)) / ticks.ONE
            y = int(successes[last.arm, last.limit]) - sum(twin.trials[last.arm][last.limit])
            probability = twin.probability(last.limit, last.reward, last.consumption)
            assert y == (u < probability) or abs(u - probability) < 1e-6
            twin.update(last.arm, last.limit, last.reward, last.consumption)
            twin.trial(last.arm, last.limit, y)
        a, b = twin.posterior()
        pulls = np.asarray(step.state.pulls).reshape(4, 5)
        assert np.array_equal(successes + 1, a) and np.array_equal(pulls - successes + 1, b)
        theta = np.asarray(draw(step.state, step.view.round), np.float64).reshape(4, 5)
        assert near_best(twin.values(theta), (step.arm, step.limit))
        last = step


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("survival", ["literal", "legal", "infinite"])
@pytest.mark.quick_rows("legal-3")
def test_z_rcucb(survival: str, m: int) -> None:
    depth = {2: 4, 3: 3}[m]
    cells = m**depth
    # A small alpha (the class refuses it before anything runs) refines within a short run.
    policy = ZRCUCB(survival, horizon=ROUNDS, alpha=0.02, m=m)
    world = RevealConsumption(g1(["NegCorr"], arms=3, limits=list(fine_limits(depth, m))))
    twin = twins.ZRCUCB(
        3, alpha=0.02, m=m, T=ROUNDS, depth=depth, capacity=cells, survival=survival
    )
    score, recommended = jax.jit(policy.scores), jax.jit(policy.best_pair)
    finest = cells
    for step in rounds(policy, world, ROUNDS):
        ours = np.asarray(score(step.state)).reshape(3, cells)
        grid = np.asarray(on_grid(step.state)).reshape(3, cells)
        assert np.array_equal(np.isneginf(ours), ~grid)
        if int(policy.status(step.state)) == Status.CAPACITY:
            break
        for arm in range(3):
            points = np.asarray(twin.ticks(arm)) - 1
            assert np.flatnonzero(grid[arm]).tolist() == points.tolist()
            same(ours[arm, points], twin.scores(arm))
        assert near_best(ours, (step.arm, step.limit))
        assert (step.arm, step.limit + 1) in twin.choices()
        final = recommended(step.state)
        assert (int(final.arm), int(final.limit) + 1) in twin.finest()
        finest = min(finest, int(step.state.cell.min()))
        tick = step.limit + 1
        twin.update(step.arm, tick, step.reward, _inside(step, tick / cells), step.true)
    assert finest <= cells // m**2, "the run must refine to mean anything"


def _inside(step: Step, limit: float) -> float | None:
    return None if step.consumption is None else min(step.consumption, limit)


def test_draws_of_thompson_are_of_the_posterior_of_a_flat_prior() -> None:
    policy = ThompsonReduction()
    state = policy.init(g1(["Indep"], arms=1, limits=2).spec)
    state = state._replace(pulls=jnp.array([0, 5]), brought=jnp.array([0, 1]))
    draws = jax.vmap(lambda t: policy.draws(state, jax.random.key(8), t))(jnp.arange(1, 4001))
    for theta, law in zip(np.asarray(draws).T, (stats.beta(1, 1), stats.beta(2, 5)), strict=True):
        assert stats.kstest(theta, law.cdf).pvalue > 0.005


def test_z_rcucb_explores_in_its_last_round_and_not_after() -> None:
    """Round T is still the index's; in round T + 1 the recommended pair is played."""
    world, horizon = g1(["NegCorr"], arms=3, limits=list(fine_limits(4))), 300
    policy = ZRCUCB("infinite", horizon=horizon, alpha=1.01)
    rounds = horizon + 1
    steps = episode(policy, world, jb.Horizon(rounds), jax.random.key(0), rounds, replicates=5)
    recommended = jax.vmap(policy.best_pair)
    is_it = []
    for place in (-2, -1):
        pair = recommended(jax.tree.map(lambda x, place=place: x[:, place], steps.after))
        arm, limit = (np.asarray(x)[:, place] for x in steps.action)
        is_it.append((arm == pair.arm) & (limit == pair.limit))
    assert not is_it[0].all() and is_it[1].all()


def test_kaplan_meier_has_the_textbook_s_numbers() -> None:
    """6-MP remission times (Freireich et al. 1963), ties with censored times at 6 and 10."""
    exceeded = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    history = [twins.Round(float(x), 0.0, np.inf, np.nan) for x in exceeded]
    history += [
        twins.Round(40.0, 0.0, float(x), float(x)) for x in (6, 6, 6, 7, 10, 13, 16, 22, 23)
    ]
    times = (5.9, 6.0, 7.0, 10.0, 13.0, 16.0, 22.0, 23.0, 35.0)
    table = [1.0, 0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448, 0.448]
    assert [twins.kaplan_meier(history, x) for x in times] == pytest.approx(table, abs=5.1e-4)
