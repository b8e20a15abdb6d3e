"""The simplex method of the knapsack programs against scipy's HiGHS, on the host and traced."""

from __future__ import annotations

import itertools
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

from jaxbandits._numerics import knapsack_lp as lp

KINDS = ("random", "degenerate", "time", "equal rows", "equal ratios")
# Arms, rows
SHAPES = ((1, 1), (3, 1), (3, 2), (10, 2), (10, 3), (20, 6), (8, 9), (100, 3), (40, 9))


def programs(
    kind: str, arms: int, rows: int, count: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    mu, cost, limit = (
        rng.random((count, arms)),
        rng.random((count, rows, arms)),
        rng.uniform(0.02, 1, (count, rows)),
    )
    if kind == "degenerate":  # many equal numbers, costs of 0, some budgets of 0
        mu, cost, limit = (
            np.round(x * 4) / 4 for x in (mu, cost * (rng.random(cost.shape) < 0.8), limit)
        )
        limit = np.where(rng.random(limit.shape) < 0.15, 0, limit)
    if kind == "time":
        cost[:, -1] = limit[:, -1] = 1
    if kind == "equal rows":
        cost, limit = np.repeat(cost[:, :1], rows, axis=1), np.repeat(limit[:, :1], rows, axis=1)
    if kind == "equal ratios":
        mu = cost.mean(1)
    return mu, cost, limit


BATCH = 5
batch_of_programs = jax.jit(jax.vmap(lp.simplex))


def traced_simplex(*program: np.ndarray) -> lp.Vertex:
    """In float32, a few at a time: so all tests compile one program for each shape."""
    parts = []
    for first in range(0, len(program[0]), BATCH):
        rows = [x[first : first + BATCH].astype(np.float32) for x in program]
        filled = batch_of_programs(*(np.resize(x, (BATCH, *x.shape[1:])) for x in rows))
        parts.append([np.asarray(x)[: len(rows[0])] for x in filled])
    return lp.Vertex(*map(np.concatenate, zip(*parts, strict=True)))


def solution(vertex: lp.Vertex, arms: int) -> np.ndarray:
    """x, ``[program, K]``."""
    in_basis = vertex.arm[..., None] == np.arange(arms)
    return (in_basis * vertex.level[..., None]).sum(1)


def against_highs(count: int, seed: int) -> int:
    largest = 0.0
    for kind, (arms, rows) in itertools.product(KINDS, SHAPES):
        mu, cost, limit = programs(kind, arms, rows, count, seed)
        host = lp.simplex(mu, cost, limit, xp=np)
        traced = traced_simplex(mu, cost, limit)
        x, exact = solution(host, arms), np.full(count, np.inf)
        for i in range(count):
            program = linprog(-mu[i], A_ub=cost[i], b_ub=limit[i], method="highs")
            exact[i] = -program.fun if program.status == 0 else np.inf
        bounded = np.isfinite(exact)
        assert np.array_equal(np.isfinite(host.value), bounded) and np.array_equal(
            host.optimal, bounded
        ), (kind, arms)
        size = np.maximum(exact, 1)[bounded]
        prices = (host.price * limit).sum(-1)
        # The optimum of the program and of its dual
        for value in (host.value, (mu * x).sum(-1), prices):
            assert (np.abs(value[bounded] - exact[bounded]) <= 1e-9 * size).all(), (
                kind,
                arms,
                rows,
            )
        assert (x >= 0).all() and ((cost @ x[..., None])[..., 0] <= limit + 1e-9)[bounded].all()
        # Beyond it some arm's costs are so small that float32 takes them for 0
        usual = bounded & (exact < 1e3)
        assert traced.optimal[usual].all()
        error = np.abs(traced.value[usual] - exact[usual])
        assert (error <= 2e-6 * np.maximum(exact, 1)[usual]).all(), (kind, arms, rows)
        largest = max(largest, host.pivots.max() / (rows + 2), traced.pivots.max() / (rows + 2))
    assert largest <= 5  # the bound is 8
    return len(KINDS) * len(SHAPES) * count


def test_programs_against_highs() -> None:
    assert against_highs(5, seed=0) == 225


# A hundred thousand of each, in four minutes:
# PROGRAMS=2250 python -m pytest tests/numerics/test_simplex.py -m integration -k many
@pytest.mark.integration
def test_many_programs_against_highs() -> None:
    count = int(os.environ.get("PROGRAMS", "300"))
    assert against_highs(count, seed=1) == 45 * count


PRICES = ("each its own", "arms are dear or cheap", "some are free")


def decades(
    kind: str, arms: int, rows: int, timed: bool, count: int, seed: int
) -> list[np.ndarray]:
    """Costs and limits from 10⁻⁶ to 1, alike in every decade; numbers of float32."""
    rng = np.random.default_rng(seed)
    mu, cost, limit = (
        rng.random((count, arms)),
        *(10 ** rng.uniform(-6, 0, (count, rows, n)) for n in (arms, 1)),
    )
    if kind == "arms are dear or cheap":
        cost = np.maximum(cost[:, :1] * rng.uniform(0.2, 1, cost.shape), 1e-6)
    if kind == "some are free":
        cost = cost * (rng.random(cost.shape) < 0.8)
    limit = limit[..., 0]
    if timed:
        cost[:, -1] = limit[:, -1] = 1
    return [x.astype(np.float32).astype(np.float64) for x in (mu, cost, limit)]


def over_six_decades(count: int, seed: int) -> int:
    number = 0
    for kind, (arms, rows), timed in itertools.product(PRICES, SHAPES, (False, True)):
        mu, cost, limit = decades(kind, arms, rows, timed, count, seed + number)
        number += count
        # the general solver takes absolute tolerances: its columns and rows are scaled for it
        scaled = cost / limit[..., None]
        size = np.where(scaled.max(1) > 0, scaled.max(1), 1)
        gain = mu / size
        exact, largest = np.full(count, np.inf), gain.max(1)
        for i in range(count):
            program = linprog(
                -gain[i] / largest[i], A_ub=scaled[i] / size[i], b_ub=np.ones(rows), method="highs"
            )
            exact[i] = -program.fun * largest[i] if program.status == 0 else np.inf
        bounded, solved = ((cost > 0).any(1) | (mu <= 0)).all(1), np.isfinite(exact)
        # the general solver errs on a few: it gives up, or takes a gain of 1e-7 for none; what is
        # bounded is plain to see
        assert (bounded != solved).sum() <= max(count / 500, 1)
        both = bounded & solved
        host = lp.simplex(mu, cost, limit, xp=np)
        traced = traced_simplex(mu, cost, limit)
        for vertex, rounding in ((host, 1e-6), (traced, 1e-4)):  # shares of the value
            assert np.array_equal(np.isfinite(vertex.value), bounded) and np.array_equal(
                vertex.optimal, bounded
            ), kind
            x = solution(vertex, arms).astype(np.float64)[both]
            used = (scaled[both] @ x[..., None])[..., 0].max(-1)
            brings = (mu[both] * x).sum(-1) / np.maximum(used, 1)
            off = [
                np.abs(value - exact[both]) > rounding * exact[both]
                for value in (brings, vertex.value[both])
            ]
            assert not off[0].any(), (kind, arms, rows, timed)  # what is played
            # prices that fall by six decades may cancel in the float32 value itself, though not in
            # what is played
            assert off[1].sum() <= (0 if vertex is host else count / 500), (kind, arms, rows, timed)
    return number


def test_prices_over_six_decades_against_highs() -> None:
    assert over_six_decades(3, seed=0) == 162


@pytest.mark.integration
def test_many_programs_over_six_decades_against_highs() -> None:
    count = int(os.environ.get("PROGRAMS", "300"))
    assert over_six_decades(count, seed=1) == 54 * count


def test_further_arms_that_do_not_exist_and_the_batch_change_no_bit() -> None:
    mu, cost, limit = (x.astype(np.float32) for x in programs("random", 7, 3, 40, 5))
    wide = [
        np.pad(mu, [(0, 0), (0, 5)], mode="edge"),
        np.pad(cost, [(0, 0), (0, 0), (0, 5)], mode="edge"),
        limit,
    ]
    solve = jax.jit(jax.vmap(lp.simplex, in_axes=(0, 0, 0, None)))
    narrow = solve(mu, cost, limit, jnp.ones(7, bool))
    padded = solve(*wide, jnp.arange(12) < 7)
    for a, b in zip(narrow, padded, strict=True):
        assert np.array_equal(a, b)
    single = jax.jit(lp.simplex)
    for i in range(10):
        for a, b in zip(single(mu[i], cost[i], limit[i]), narrow, strict=True):
            assert np.array_equal(a, b[i])


def test_no_cycle_is_possible() -> None:
    """Nothing may be spent, so no exchange moves; the largest gain alone would cycle."""
    rng = np.random.default_rng(0)
    mu, cost = rng.integers(1, 17, (1000, 40)) / 16, rng.integers(0, 3, (1000, 8, 40)) / 2
    those = slice(870, 890)
    vertices = lp.simplex(mu[those], cost[those], np.zeros((20, 8)), xp=np, max_exchanges=200)
    bounded = (cost[those] > 0).any(1).all(1)
    assert vertices.optimal[bounded].all() and (vertices.value[bounded] == 0).all() and bounded[9]


def test_edges() -> None:
    free = lp.simplex(
        np.array([0.5, 0.25]), np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([1.0, 2.0]), xp=np
    )
    assert free.value == np.inf
    assert free.arm.tolist() == [1, -1]
    assert free.level.tolist() == [1, 0]
    assert not free.optimal
    broke = lp.simplex(
        np.array([0.5, 0.25]), np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([0.0, 2.0]), xp=np
    )
    assert broke.value == 0.5
    assert solution(lp.Vertex(*(np.asarray(x)[None] for x in broke)), 2).tolist() == [[0, 2]]
    mu, cost, limit = programs("random", 40, 9, 200, 6)
    short, whole = (
        lp.simplex(mu, cost, limit, xp=np, max_exchanges=exchanges) for exchanges in (2, 0)
    )
    assert short.pivots.max() == 2 and not short.optimal.all() and whole.optimal.all()
    assert (short.value <= whole.value + 1e-12).all()
    assert ((cost @ solution(short, 40)[..., None])[..., 0] <= limit + 1e-9).all()
