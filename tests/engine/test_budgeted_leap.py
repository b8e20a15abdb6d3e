"""Budgeted policies that declare a score that rests: it does, in float64 and float32, and leaps to the same bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import policies
from jaxbandits.core import arm_statistics, ticks
from jaxbandits.core.arm_statistics import Arms
from jaxbandits.policies import base
from jaxbandits.policies.base import COARSER, IndexPolicy, evaluate, safe_round
from tests.contract.committee import RestingCommittee
from tests.engine.test_leap import assert_same, random_states

RESTING: dict[str, IndexPolicy] = {
    "budget_ucb": policies.BudgetUCB(min_cost=np.array([0.0, 0.02, 0.3])),
    "ucb_sc_plus": policies.UCBSCPlus(),
    "ucb_sc": policies.UCBSC(),
    "fractional_kube": policies.FractionalKUBE(),
    "ucb_bv1": policies.UCBBV1(min_cost=np.array([0.05, 0.5])),
    "pd_bwk": policies.PDBwK(c_rad=np.array([0.3, 3.0])),
    "ucb_b2": policies.UCBB2(min_cost=np.array([0.0, 0.1])),
    "ucb1": policies.UCB1(),
}

# tests/engine/test_leap.py holds these to their margin on CPU
EVERY: dict[str, IndexPolicy] = RESTING | {
    "omega_ucb": policies.OmegaUCB(rho=np.array([1 / 64, 0.25, 2.0])),
    "omega_star_ucb": policies.OmegaStarUCB(rho=np.array([1 / 64, 0.25, 2.0])),
    "m_ucb": policies.MUCB(),
    "c_ucb": policies.CUCB(),
    "i_ucb": policies.IUCB(),
    "rcb": policies.RCB(),
    "ucb_v_ratio": policies.UCBVRatio(),
}


def later_rounds(n: np.ndarray, seed: int) -> np.ndarray:
    return n + np.floor(10 ** np.random.default_rng(seed).uniform(0, 6, n.size)).astype(np.int64)


@pytest.mark.parametrize("name", RESTING)
def test_scores_rest_in_float64(name: str) -> None:
    """While an arm rests its score never falls as t grows: 10⁵ random states, exact formula in float64."""
    n, reward, cost, reward_spread, cost_spread = random_states(100_000, seed=5)
    t, one = later_rounds(n, 6), ticks.ONE
    with jax.enable_x64(True):
        x = (n, reward / one, cost / one, n - reward / one, n - cost / one, reward_spread / one, cost_spread / one)
        f = [jnp.asarray(v, jnp.float64) for v in x]
        draw = np.random.default_rng(7)
        leaves = jax.tree.map(lambda v: jnp.asarray(draw.choice(np.atleast_1d(v), n.size)), RESTING[name])
        score = jax.jit(lambda t: leaves.score(Arms(t, *f)))
        now = score(jnp.asarray(t, jnp.float64))
        assert float(jnp.isfinite(now).mean()) > 0.1
        for later in (1, 10, 1000):
            then = score(jnp.asarray(t + later, jnp.float64))
            # KL-UCB-SC+ ends Newton's method after five steps and floors a mean reward of 0
            tolerance = 1e-12 * jnp.abs(now)
            assert bool(((then >= now - tolerance) | ~jnp.isfinite(now)).all())
            assert bool((jnp.isfinite(now) | (then == jnp.inf)).all())
            if name != "pd_bwk":
                assert float((then > now).mean()) > 0.1, "it rises with t"


_ULPS = {"sqrt": 1, "rsqrt": 2, "div": 2}


def coarse(name: str, salt: tuple[int, int]) -> Callable[[jax.Array], jax.Array]:
    """A score as a GPU may compute it: square roots off by up to 1 unit in the last place, quotients by up to 2."""

    def off(x: jax.Array, ulps: int, inputs: list[jax.Array]) -> jax.Array:
        # the same error for the same numbers, as a device has it
        mixed = sum(
            jax.lax.bitcast_convert_type(i, jnp.uint32) * jnp.uint32(k) for i, k in zip(inputs, salt, strict=False)
        )
        by = ((mixed ^ (mixed >> 15)) * jnp.uint32(0x846CA68B) >> 16) % jnp.uint32(2 * ulps + 1)
        moved = jax.lax.bitcast_convert_type(x, jnp.int32) + by.astype(jnp.int32) - ulps
        return jnp.where(jnp.isfinite(x) & (x > 0), jax.lax.bitcast_convert_type(moved, jnp.float32), x)

    def run(jaxpr: Any, constants: Sequence[Any], *given: Any) -> list[Any]:
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *given], strict=True))
        for line in jaxpr.eqns:
            values = [x.val if isinstance(x, jax.extend.core.Literal) else known[x] for x in line.invars]
            if line.primitive.name in ("jit", "pjit"):
                inner = line.params["jaxpr"]
                found = run(inner.jaxpr, inner.consts, *values)
            else:
                told = line.primitive.bind(*values, **line.params)
                found = list(told) if line.primitive.multiple_results else [told]
            if (ulps := _ULPS.get(line.primitive.name)) and found[0].dtype == jnp.float32:
                found = [off(found[0], ulps, [jnp.broadcast_to(x, found[0].shape) for x in values])]
            known |= dict(zip(line.outvars, found, strict=True))
        return [x.val if isinstance(x, jax.extend.core.Literal) else known[x] for x in jaxpr.outvars]

    score = score_of_states(name)

    def scored(t: jax.Array) -> jax.Array:
        made = jax.make_jaxpr(score)(t)
        return run(made.jaxpr, made.consts, t)[0]

    return scored


STATES, LATER = 100_000, 40


def score_of_states(name: str) -> Callable[[jax.Array], jax.Array]:
    """The scores of random states at rounds t, one of each."""
    n, *totals = random_states(STATES, seed=8)
    state = arm_statistics.ArmStatistics(
        jnp.asarray(n, jnp.int32), *(jax.tree.map(jnp.asarray, ticks.split(x)) for x in totals)
    )
    draw = np.random.default_rng(9)
    leaves = jax.tree.map(lambda v: jnp.asarray(draw.choice(np.atleast_1d(v), n.size), jnp.float32), EVERY[name])
    return lambda t: evaluate(leaves, arm_statistics.as_floats(state, t))


def first_rounds() -> jax.Array:
    return jnp.asarray(later_rounds(random_states(STATES, seed=8)[0], 10), jnp.int32)


def largest_fall(
    score: Callable[[jax.Array], jax.Array], rounds: int, until: Callable[[jax.Array], jax.Array] = lambda t: t
) -> float:
    """By how much of itself a score falls from one round to the next; or to the round that is aimed at for that one."""
    worst, t = 0.0, first_rounds()
    highest = np.asarray(score(t))
    for later in range(1, rounds):
        now = np.asarray(score(until(t + later)))
        finite = np.isfinite(highest)
        assert (now[~finite] == np.inf).all()
        fall = (highest[finite] - now[finite]) / np.maximum(np.abs(highest[finite]), 1e-30)
        worst = max(worst, float(fall.max()))
        highest = np.maximum(highest, np.asarray(score(t + later)))
    return worst


@pytest.mark.parametrize("name", RESTING)
def test_float32_scores_fall_by_less_than_the_margin(name: str) -> None:
    worst, margin = largest_fall(jax.jit(score_of_states(name)), LATER), RESTING[name].rounding
    print(f"{name}: falls by {worst:.1e} at most, margin {margin:.1e}")
    assert 0 <= worst < margin / 2


@pytest.mark.parametrize("name", EVERY)
def test_scores_off_cpu_fall_by_less_than_the_margin_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "by_device", lambda *, cpu, other: jnp.float32(other))
    off_cpu = jax.jit(lambda t: safe_round(t))
    margin = EVERY[name].rounding * COARSER
    worst = max(
        largest_fall(coarse(name, salt), 12, off_cpu) for salt in ((0x9E3779B1, 0x85EBCA77), (0xC2B2AE3D, 0x27D4EB2F))
    )
    print(f"{name}: falls by {worst:.1e} at most, margin {margin:.1e}")
    assert 0 <= worst < margin / 2


def test_same_bits() -> None:
    """All of them in one program: each lane is played by the one that its leaf names."""
    arms = jb.environments.random_beta(jax.random.key(3), instances=6, arms=7)
    budget = 600.0 * np.asarray(arms.mean_cost).min(axis=1) / ticks.ONE
    places = [place for place, member in enumerate(RestingCommittee.members().values()) if member.rests]
    committee = RestingCommittee.played_by(np.array(places))
    scan, leap = (
        jb.simulate(
            committee,
            arms,
            jb.TotalBudget(budget, last_pull="counts"),
            key=jax.random.key(11),
            replicates=2,
            marks=5,
            engine=engine,
        )
        for engine in ("scan", "leap")
    )
    assert_same(scan, leap)
    assert len(np.unique(scan.ledger["reward"][..., -1].sum((1, 2)))) == len(places) == len(RESTING)
