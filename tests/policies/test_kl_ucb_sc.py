"""KL-UCB-SC+: the index against brute-force maximisation, in float64 (the twin) and float32 (the library)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.core import arm_statistics, ticks
from jaxbandits.policies import KLUCBSCPlus, kl
from jaxbandits.policies.base import evaluate
from tests.policies.reference import budgeted as twin
from tests.policies.reference.budgeted import Floats, divergence


def farthest(mean: Floats, room: Floats, target: Floats) -> Floats:
    """The x between ``mean`` and ``target`` that is farthest from ``mean`` with d(mean, x) ≤ room, by bisection."""
    near, far = mean + 0 * room, target + 0 * room
    for _ in range(60):
        middle = (near + far) / 2
        inside = divergence(mean, middle) <= room
        near, far = np.where(inside, middle, near), np.where(inside, far, middle)
    return np.where(divergence(mean, target + 0 * room) <= room, target, near)


def brute_force(r: Floats, c: Floats, level: Floats) -> Floats:
    """sup r'/c' over the set itself: spend a share of ``level`` on the cost and the rest on the reward, every share.

    2,001 shares, then twice 401 around the best one. Nothing here knows of lines or slopes.
    """
    r, c, level = (x[:, None] for x in (r, c, level))
    low, high = np.zeros_like(level), np.ones_like(level)
    for points in (2001, 401, 401, 401):
        # more points near both ends, where the best share lies if a mean is near 0 or 1
        share = low + (high - low) * np.sin(np.linspace(0, np.pi / 2, points)) ** 2
        ratio = farthest(r, (1 - share) * level, 1.0) / farthest(c, share * level, 0.0)
        best = ratio.argmax(1)
        at = [np.take_along_axis(share, np.clip(best + i, 0, points - 1)[:, None], 1) for i in (-1, 1)]
        low, high = at
    return ratio.max(1)


def states(count: int, seed: int) -> tuple[np.ndarray, ...]:
    """(t, n, Σr, Σc) in pulls and ticks: means of all kinds, 0 and 1 among the rewards, 1 among the costs."""
    draw = np.random.default_rng(seed)
    n = np.floor(10 ** draw.uniform(0, 5, count)).astype(np.int64)
    t = n + np.ceil(10 ** draw.uniform(0, 5, count)).astype(np.int64)

    def mean(ends: tuple[float, ...]) -> np.ndarray:
        kind, inner = draw.random(count), draw.random(count)
        small = 10 ** draw.uniform(-4, 0, count)
        some = np.select([kind < 0.2, kind < 0.4], [small, 1 - small], inner)
        return np.where(kind > 1 - 0.05 * len(ends), draw.choice(ends, count), some)

    reward, cost = (np.floor(n * mean(ends) * ticks.ONE).astype(np.int64) for ends in ((0.0, 1.0), (1.0,)))
    return t, n, reward, np.maximum(cost, n * ticks.ONE // 1000 + 1)


def of_float32(t: np.ndarray, n: np.ndarray, reward: np.ndarray, cost: np.ndarray) -> np.ndarray:
    totals = (jax.tree.map(jnp.asarray, ticks.split(x)) for x in (reward, cost))
    state = arm_statistics.ArmStatistics(jnp.asarray(n, jnp.int32), *totals, None, None)
    table = jax.jit(lambda state, t: evaluate(KLUCBSCPlus(), arm_statistics.as_floats(state, t)))
    return np.asarray(table(state, jnp.asarray(t, jnp.int32)), np.float64)


def exact(t: np.ndarray, n: np.ndarray, reward: np.ndarray, cost: np.ndarray) -> Floats:
    r, c = (np.asarray(x / (n * ticks.ONE), np.float64) for x in (reward, cost))
    return twin.steepest(r, c, np.log(t / n) / n)


@pytest.mark.integration
def test_twin_and_float32_are_the_maximum() -> None:
    """The twin to 10⁻⁶, float32 to 2·10⁻⁴ against the brute force itself; and on many more states against the twin."""
    t, n, reward, cost = states(400, seed=1)
    r, c = reward / (n * ticks.ONE), cost / (n * ticks.ONE)
    brute = brute_force(r, c, np.log(t / n) / n)
    usual = brute < 1e12
    assert usual.mean() > 0.9
    assert np.abs(exact(t, n, reward, cost)[usual] / brute[usual] - 1).max() < 1e-6
    assert np.abs(of_float32(t, n, reward, cost)[usual] / brute[usual] - 1).max() < 2e-4
    many = states(100_000, seed=2)
    expected, got = exact(*many), of_float32(*many)
    usual = expected < 1e12
    off = np.abs(got[usual] / expected[usual] - 1)
    assert off.max() < 2e-4, [x[usual][off.argmax()] for x in many]
    assert np.quantile(off, 0.999) < 1e-5
    assert (got[~usual] > 1e11).all() and np.isfinite(got).all()


def test_number_of_newton_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """In float64 five steps are exact where four are not yet: the docstring's figures."""
    t, n, reward, cost = states(100_000, seed=3)
    with jax.enable_x64(True):
        f = [jnp.asarray(x, jnp.float64) for x in (reward / ticks.ONE, n - reward / ticks.ONE)]
        f += [jnp.asarray(x, jnp.float64) for x in (cost / ticks.ONE, n - cost / ticks.ONE)]
        given = [x / n for x in f] + [jnp.asarray(np.log1p((t - n) / n) / n)]
        error = {}
        for steps in (3, 4, 5, 12):
            monkeypatch.setattr(kl, "STEPS", steps)
            error[steps] = np.log(np.asarray(jax.jit(lambda *x: kl.steepest(*x))(*given)))
    usual = error[12] < np.log(1e12)
    off = {steps: np.abs(error[steps] - error[12])[usual] for steps in (3, 4, 5)}
    shares = {steps: (x > 1e-5).mean() for steps, x in off.items()}
    assert shares[3] > 1e-2 and shares[4] < 1e-3
    assert off[5].max() < 1e-8


@pytest.mark.parametrize(("t", "n"), [(2**24 + 1, 2**24), (2**27 + 6, 2**27), (2**30, 2**30 - 1)])
def test_an_index_where_t_and_n_are_one_float(t: int, n: int) -> None:
    """Beyond 2²⁴ rounds t − n may round to 0: the index is r̄/c̄ then, or little more, and not NaN."""
    sums = (t, n, 0.6 * n, 0.5 * n, 0.4 * n, 0.5 * n)
    arms = arm_statistics.Arms(*(jnp.full((1,), x, jnp.float32) for x in sums), None, None)
    for policy in (KLUCBSCPlus(), kl.UCBSCPlus()):
        assert float(evaluate(policy, arms)[0]) == pytest.approx(1.2, abs=1e-3)
