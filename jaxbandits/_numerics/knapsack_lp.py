"""Fluid linear programs of bandits with knapsacks: best mixtures of arms and rest.

With one resource the optimum is a single arm or a pair, in closed form, for what is traced. With
several it is found by the simplex method, written once for the traced form (one lane, float32) and
for the host (NumPy, float64, batches), which solves those of one resource by it, too.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics.arrays import reduced

_NO_END = 100_000  # exchanges: on the host it goes on until it has found the optimum


class Mixture(NamedTuple):
    """Choose ``high`` with probability ``weight``, else ``low``; a single arm is both, weight 1."""

    # f32[]: the optimum; −∞ if nothing is feasible (then high = low = the number of actions)
    value: jax.Array
    high: jax.Array  # i32[]: the member that costs more than c
    low: jax.Array  # i32[]: the member that costs at most c
    weight: jax.Array  # f32[]


def vertices(mu: jax.Array, rho: jax.Array, c: jax.Array) -> jax.Array:
    """Values of all vertices of max ⟨μ, π⟩ with ⟨ρ, π⟩ ≤ c over K arms and the null arm (0, 0).

    Singles i with ρ_i ≤ c have the value μ_i; pairs ρ_i > c ≥ ρ_j put w = (c − ρ_j)/(ρ_i − ρ_j) on
    i and have the value μ_j + w(μ_i − μ_j), which is exact where both means are equal.

    Args:
        mu, rho: at least 0, ``[K]``. c: one number.

    Returns:
        ``[K + 1, K + 1]``: singles on the diagonal, pair (i, j) in row i and column j, −∞ where
        infeasible.
    """
    mu, rho = with_null(mu), with_null(rho)
    below = rho <= c
    both = ~below[:, None] & below[None, :]
    single = jnp.eye(mu.size, dtype=bool) & below[None, :]
    apart = jnp.where(both, rho[:, None] - rho[None, :], 1)
    more = (c - rho)[None, :] * (mu[:, None] - mu[None, :])
    # The division comes last: XLA on CPU stores its result instead of repeating all this in every
    # kernel that reads it.
    return mu[None, :] + jnp.where(both, more, jnp.where(single, 0, -jnp.inf)) / apart


def with_null(x: jax.Array) -> jax.Array:
    """The arms' values, ``[K]``, and a 0 for the null arm."""
    return jnp.concatenate([x, jnp.zeros((1,), x.dtype)])


class _Line(NamedTuple):
    """A line through two actions, or through one, in :func:`best_mixture`."""

    high: jax.Array  # i32[]: above c; the number of actions: none is
    low: jax.Array  # i32[]: at most c
    is_new: jax.Array  # bool[]: another ``low`` than before
    steps: jax.Array  # i32[]


def best_mixture(
    mu: jax.Array, rho: jax.Array, c: jax.Array, allowed: jax.Array | None = None
) -> Mixture:
    """The optimum of the one-resource LP (traced, one lane); arguments as for :func:`vertices`.

    No action lies above the line through the best pair in the plane of (ρ, μ). So from the best
    action at most c go to the one above c with the steepest line, from that one to the one at most
    c with the flattest, and so on: each line is higher at c than the one before (Newton's method on
    the dual), and a few steps of O(K) do where there are K² pairs. Exact ties go to a single arm
    before a pair, then to the lowest index. Only actions that are ``allowed`` are played,
    ``bool[K + 1]``, the null arm last; by default all.
    """
    mu, rho = with_null(mu), with_null(rho)
    actions = mu.shape[0]
    ids = jax.lax.iota(jnp.int32, actions)
    below = rho <= c
    above = ~below
    if allowed is not None:
        below, above = below & allowed, above & allowed

    def first(of: jax.Array, value: jax.Array) -> jax.Array:
        best = reduced(jax.lax.max, jnp.where(of, value, -jnp.inf), -jnp.inf)
        return reduced(jax.lax.min, jnp.where(of & (value == best), ids, actions), actions)

    def at(arm: jax.Array) -> tuple[jax.Array, jax.Array]:
        return mu.at[arm].get(mode="clip"), rho.at[arm].get(mode="clip")

    def steepest(low: jax.Array) -> jax.Array:
        reward, cost = at(low)
        return first(above, (mu - reward) / jnp.where(above, rho - cost, 1))

    def exchange(now: _Line) -> _Line:
        reward, cost = at(now.high)
        low = first(below, (mu - reward) / jnp.where(below, cost - rho, 1))
        is_new = low != now.low
        return _Line(jnp.where(is_new, steepest(low), now.high), low, is_new, now.steps + 1)

    def goes_on(now: _Line) -> jax.Array:
        return now.is_new & (now.steps < actions)  # rounding could go in circles

    single = first(below, mu)
    any_above = reduced(jax.lax.bitwise_or, above, False) & (single < actions)
    start = _Line(steepest(single), single, any_above, jnp.int32(0))
    line = jax.lax.while_loop(goes_on, exchange, start)
    (gain, dear), (base, cheap), (alone, _) = at(line.high), at(line.low), at(single)
    # As in `vertices`, to the bit.
    pair = base + (c - cheap) * (gain - base) / jnp.where(any_above, dear - cheap, 1)
    mixed = any_above & (pair > alone)
    value = jnp.where(single < actions, jnp.where(mixed, pair, alone), -jnp.inf)
    weight = jnp.where(mixed, (c - cheap) / jnp.where(any_above, dear - cheap, 1), 1.0)
    return Mixture(
        value, jnp.where(mixed, line.high, single), jnp.where(mixed, line.low, single), weight
    )


# --- Several rows: the simplex method


class Vertex(NamedTuple):
    """A vertex of max ⟨μ, x⟩ with C x ≤ b, x ≥ 0: at most as many arms as there are rows.

    Where it is not bounded, one arm that brings something and uses nothing, at the level 1.
    """

    value: Any  # f[...]; +∞ where it is not bounded
    arm: Any  # i32[..., row]: an arm of the basis in each place, −1 for none
    level: Any  # f[..., row]: x of that arm, 0 for none
    price: Any  # f[..., row]: the dual prices
    pivots: Any  # i32[...]: exchanges made
    optimal: Any  # bool[...]: the optimum; else the best vertex that ``max_exchanges`` came to, or it is not bounded


class _Tableau(NamedTuple):
    """Variables: the slacks of the m rows, then the K arms; further arms change no number."""

    rows: Any  # f[..., m + 1, m + K + 1]: of the constraints and, last, of the reduced costs; right sides last
    terms: Any  # f[..., m, m]: the largest that was subtracted so far in the inverse, the rows below the slacks
    basis: Any  # i32[..., m]: the variable in each place
    pivots: Any  # i32[...]
    stuck: Any  # bool[...]: the last exchange moved nothing
    running: Any  # bool[...]
    endless: Any  # i32[...]: the variable that may grow for ever; −1: none


def simplex(
    mu: Any,
    cost: Any,
    limit: Any,
    allowed: Any = None,
    *,
    xp: ModuleType = jnp,
    max_exchanges: int = 0,
) -> Vertex:
    """max ⟨μ, x⟩ with C x ≤ b, x ≥ 0 by the simplex method, the same code traced and on the host.

    The entering variable is the one of the largest gain, the leaving one that of the smallest
    ratio. After an exchange that moved nothing, the entering one is the first that gains (Bland's
    rule), until something moves: so no cycle is possible. Equals go to the lower place: slacks
    before arms. A pure function, no randomness.

    A number of a column is the inverse of the basis times the column as it was. Rounding leaves a
    share of the terms of that sum, so what is below 2⁸ units in the last place of the terms is
    none. Terms of 1 would hide small costs: those of a row that no exchange has changed are the
    costs themselves.

    Args:
        mu: μ, ``[..., K]``, at most 1 in size or so: a gain below 2⁵ units in the last place of 1
            is none.
        cost: C ≥ 0, ``[..., m, K]``, over six decades and more. limit: b ≥ 0, ``[..., m]``.
        allowed: ``bool[..., K]``; all by default.
        xp: ``jax.numpy`` (one lane, to be batched by ``vmap``) or ``numpy`` (leading axes are a
            batch).
        max_exchanges: exchanges at most, by default 8 (m + 2) (on 10⁵ programs at most 5 (m + 2)
            were needed).
    """
    m, arms = cost.shape[-2:]
    max_exchanges = max_exchanges or 8 * (m + 2)
    dtype = cost.dtype
    small, noise = (dtype.type(x * np.finfo(dtype).eps) for x in (2**5, 2**8))
    size = xp.max(cost, axis=-1)
    size = xp.where(size > 0, size, 1)  # the largest number of each row becomes 1
    lead = cost.shape[:-2]
    slacks = xp.broadcast_to(xp.eye(m, dtype=dtype), (*lead, m, m))
    right = limit / size
    table = xp.concatenate([slacks, cost / size[..., None]], axis=-1)
    rows = xp.concatenate([table, right[..., None]], axis=-1)
    gains = xp.concatenate([xp.zeros((*lead, m), dtype), -mu, xp.zeros((*lead, 1), dtype)], axis=-1)
    rows = xp.concatenate([rows, gains[..., None, :]], axis=-2)
    ids, places = xp.arange(m + arms, dtype=np.int32), xp.arange(m, dtype=np.int32)
    never, none = np.int32(m + arms), np.int32(-1)
    levels = np.zeros((m + 1, m + arms + 1), bool)
    levels[:m, -1] = True
    if allowed is None:
        allowed = xp.ones((*lead, arms), bool)
    enters_at_all = xp.concatenate([xp.ones((*lead, m), bool), allowed], axis=-1)

    def entering(now: _Tableau) -> Any:
        """The variable with the largest gain, or the first that gains after a degenerate step."""
        gain = now.rows[..., -1, :-1]
        better = enters_at_all & (gain < -small)
        largest = xp.min(xp.where(better, gain, 0), axis=-1)[..., None]
        best = better & (now.stuck[..., None] | (gain <= largest))
        return xp.min(xp.where(best, ids, never), axis=-1)

    def ratio_test(now: _Tableau, column: Any, original: Any) -> tuple[Any, Any]:
        """(right side ÷ coefficient of the entering variable by row, or ∞; is it positive?)."""
        # A number of the column is a sum over the inverse of the basis: rounding leaves a share of
        # its largest terms, below which it is no number that a row may be divided by.
        inverse = xp.abs(now.rows[..., :-1, :m])
        least_sure = xp.sum(xp.maximum(inverse, now.terms) * original[..., None, :], axis=-1)
        # Where nothing is left, as in a degenerate vertex, only a number that is beyond doubt may
        # be exchanged.
        some_left = now.rows[..., :-1, -1] > noise * xp.sum(inverse * right[..., None, :], axis=-1)
        takes = (column > noise) | ((column > noise * least_sure) & some_left)
        return xp.where(takes, now.rows[..., :-1, -1] / xp.where(takes, column, 1), xp.inf), takes

    def exchange(now: _Tableau) -> _Tableau:
        """One step: a variable enters the basis, and the first to reach 0 leaves it."""
        enters = entering(now)
        at_end = enters == never
        is_entering = (ids == enters[..., None])[..., None, :]
        column = xp.sum(xp.where(is_entering, now.rows[..., :-1], 0), axis=-1)
        original = xp.sum(xp.where(is_entering, table, 0), axis=-1)
        ratio, takes = ratio_test(now, column[..., :-1], original)
        lowest_ratio = xp.min(ratio, axis=-1)
        is_lowest = takes & (ratio <= lowest_ratio[..., None])
        leaving = xp.min(xp.where(is_lowest, now.basis, never), axis=-1)
        # It takes nothing of any row: it may grow for ever.
        endless = ~at_end & ~xp.any(takes, axis=-1)
        moves = now.running & ~at_end & ~endless
        is_pivot = now.basis == leaving[..., None]
        pivot = xp.sum(xp.where(is_pivot, column[..., :-1], 0), axis=-1)
        pivot = xp.where(moves, pivot, 1)[..., None]

        def pivot_row(x: Any) -> Any:
            return xp.sum(xp.where(is_pivot[..., None], x, 0), axis=-2) / pivot

        # The pivot row is divided; of every other row so much of it is subtracted that the entering
        # variable has 0 there.
        row = pivot_row(now.rows[..., :-1, :])
        is_pivot_row = xp.concatenate([is_pivot, xp.zeros_like(is_pivot[..., :1])], axis=-1)
        others = now.rows - column[..., None] * row[..., None, :]
        after = xp.where(is_pivot_row[..., None], row[..., None, :], others)
        # What rounding leaves below 0 would be no vertex
        after = xp.where(levels, xp.maximum(after, 0), after)
        terms = xp.maximum(now.terms, xp.abs(column[..., :-1, None] * row[..., None, :m]))
        terms = xp.where(is_pivot[..., None], pivot_row(now.terms)[..., None, :], terms)
        return _Tableau(
            xp.where(moves[..., None, None], after, now.rows),
            xp.where(moves[..., None, None], terms, now.terms),
            xp.where(moves[..., None] & is_pivot, enters[..., None], now.basis),
            now.pivots + moves,
            xp.where(moves, lowest_ratio <= 0, now.stuck),
            moves,
            xp.where(now.running & endless, enters, now.endless),
        )

    def goes_on(now: _Tableau) -> Any:
        return xp.any(now.running & (now.pivots < max_exchanges))

    start = _Tableau(
        rows,
        xp.zeros((*lead, m, m), dtype),
        xp.broadcast_to(places, (*lead, m)),
        xp.zeros(lead, np.int32),
        xp.zeros(lead, bool),
        xp.ones(lead, bool),
        xp.full(lead, none, np.int32),
    )
    if xp is jnp:
        last = jax.lax.while_loop(goes_on, exchange, start)
    else:
        last = start
        while goes_on(last):
            last = exchange(last)
    endless, first = last.endless >= 0, places == 0
    arm = xp.where(last.basis >= m, last.basis - m, none)
    level = xp.where(arm >= 0, last.rows[..., :-1, -1], 0)
    alone = endless[..., None]
    return Vertex(
        value=xp.where(endless, xp.inf, last.rows[..., -1, -1]).astype(dtype),
        arm=xp.where(alone, xp.where(first, last.endless[..., None] - m, none), arm),
        level=xp.where(alone, first.astype(dtype), level),
        price=last.rows[..., -1, :m] / size,
        pivots=last.pivots,
        optimal=~last.running & ~endless,
    )


# --- On the host, for the oracles of the constraints


def fluid_values(
    reward: np.ndarray, cost: np.ndarray, budget: np.ndarray, rounds: np.ndarray | None = None
) -> np.ndarray:
    """max Σ n_k μ_k with Σ n_k ρ_kj ≤ B_j, n ≥ 0, Σ n_k ≤ T if ``rounds`` are given, by instance.

    Args:
        reward: μ ``[instance, action]``, NaN where absent.
        cost: ρ ``[instance, action]`` or ``[instance, action, d]``.
        budget: B ``[instance]`` or ``[instance, d]``.
        rounds: T ``[instance]``; with 1 and the budget of a round it is the best mixture of a round.
    """
    if cost.ndim == 2:
        cost, budget = cost[..., None], budget[..., None]
    if rounds is not None:
        cost = np.concatenate([cost, np.ones_like(cost[..., :1])], axis=-1)
        budget = np.concatenate([budget, rounds[:, None]], axis=-1)
    exists = np.isfinite(reward)
    mu, rows = np.where(exists, reward, 0.0), np.where(exists[..., None], cost, 1.0)
    return solved(mu, np.moveaxis(rows, -1, -2), budget, exists).value


def solved(mu: np.ndarray, cost: np.ndarray, limit: np.ndarray, allowed: np.ndarray) -> Vertex:
    """:func:`simplex` in float64, iterated until it has found the optimum."""
    return simplex(mu, cost, limit, allowed, xp=np, max_exchanges=_NO_END)
