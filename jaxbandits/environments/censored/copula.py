"""Censored arms whose reward and consumption are tied by a Gaussian copula, with any marginals."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics import beta_tables
from jaxbandits.core import ticks
from jaxbandits.core.censored_specs import CensoredSpec, CostFunction
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.numbers import numbers
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.environments.censored.arms import CensoredArms
from jaxbandits.environments.finite.laws import Law

# Latent normals are fixed-point numbers in units of 2⁻²⁰, tables have equal cells of 2⁻⁷ over [−8, 8].
_Z_BITS, _CELL_BITS, _HALF = 20, 13, 8
_CELLS = (2 * _HALF << _Z_BITS) >> _CELL_BITS
_GRID = np.linspace(-_HALF, _HALF, _CELLS + 1)
_RHO_BITS = 15


class Marginal(Protocol):
    """A law on the line, as ``scipy.stats.beta(2, 3)`` or ``scipy.stats.lognorm(1.0, scale=0.5)`` are."""

    def ppf(self, q: Any) -> Any:
        """Its quantile function."""


@pytree
class CopulaLaw(Law):
    """C = F_C⁻¹(Φ(z)), R = F_R⁻¹(Φ(y)), (z, y) standard normal with correlation κ; all integer arithmetic.

    y = κ z + √(1 − κ²) e: word 0 draws e, word 1 draws z. The CDF of either marginal is right to 3·10⁻⁵ (by test).
    """

    reward: Any = leaf()  # i32[I, n, G]: ticks at equally spaced y
    consumption: Any = leaf()  # i32[I, n, G]: ticks of τ_max at equally spaced z, up to 2
    kappa: Any = leaf()  # i32[I, n]: κ · 2¹⁵
    rest: Any = leaf()  # i32[I, n]: √(1 − κ²) · 2¹⁵

    def outcome(self, arm: jax.Array, words: jax.Array) -> tuple[jax.Array, jax.Array]:
        """See :class:`Law`."""
        knots = jnp.asarray(_normal_knots())
        own, z = beta_tables.quantile(knots, words[0]), beta_tables.quantile(knots, words[1])
        y = _scaled(z, self.kappa[arm]) + _scaled(own, self.rest[arm])
        return _looked_up(self.reward, arm, y), _looked_up(self.consumption, arm, z)


def _scaled(z: jax.Array, factor: jax.Array) -> jax.Array:
    # ⌊z · factor / 2¹⁵⌋ from 12-bit pieces, each product inside an int32
    high, low = factor * (z >> 12), factor * (z & 0xFFF)
    return (high >> 3) + ((((high & 7) << 12) + low) >> _RHO_BITS)


def _looked_up(table: Any, arm: jax.Array, z: jax.Array) -> jax.Array:
    above = jnp.clip(z + (_HALF << _Z_BITS), 0, (2 * _HALF << _Z_BITS) - 1)
    cell = above >> _CELL_BITS
    fraction = (above & ((1 << _CELL_BITS) - 1)).astype(jnp.uint32) << np.uint32(beta_tables.FRACTION_BITS - _CELL_BITS)
    return beta_tables.interpolate(table[arm, cell], table[arm, cell + 1], fraction)


@functools.cache
def _normal_knots() -> np.ndarray:
    from scipy import special  # slow to import

    edges = np.concatenate([[0], np.cumsum(np.left_shift(1, beta_tables.cell_bits()))]) / 2.0**32
    z = np.clip(special.ndtri(edges), -6.3, 6.3)
    return np.rint(z * 2**_Z_BITS).astype(np.int32)


def copula_arms(
    reward: Sequence[Any],
    consumption: Sequence[Any],
    correlation: Any,
    *,
    limits: Sequence[float] | np.ndarray,
    cost: CostFunction,
    penalty: CostFunction,
    tau_max: float | None = None,
) -> CensoredArms:
    """Arms with given marginals of reward and consumption, joined by a Gaussian copula.

    Args:
        reward: laws on [0, 1], ``[arm]`` or ``[instance][arm]``: anything with ``ppf``, as ``scipy.stats.beta(2, 3)``.
        consumption: laws on [0, ∞), same shape, e.g. ``scipy.stats.lognorm`` or ``scipy.stats.gamma``. What exceeds
            τ_max saturates just above it.
        correlation: κ in (−1, 1) of the latent normals, one, ``[instance, 1]`` or ``[instance, arm]``; rounded to
            2⁻¹⁵.
        limits, cost, penalty, tau_max: see :meth:`CensoredSpec.of`.

    True means v_{i,τ} are quadratures in float64 of the tabulated law.

    Raises:
        InputError: marginals outside their range, shapes that differ, κ outside (−1, 1), and all of
            :meth:`CensoredSpec.of`.

    Example:
        >>> from scipy import stats
        >>> import jaxbandits as jb
        >>> from jaxbandits.environments import Linear, copula_arms
        >>> rewards = [stats.beta(2, 1), stats.beta(1, 1)]
        >>> seconds = [stats.gamma(2, scale=0.4), stats.gamma(2, scale=0.2)]
        >>> arms = copula_arms(rewards, seconds, 0.5, limits=[0.5, 1.0], cost=Linear(0.1), penalty=Linear(1.0))
        >>> [(arm, limit) for arm, limit, _ in arms.best_pair()]
        [(1, 1.0)]
    """
    rewards, consumptions = _nested("reward", reward), _nested("consumption", consumption)
    if [len(x) for x in rewards] != [len(x) for x in consumptions] or len({len(x) for x in rewards}) != 1:
        raise InputError("reward, consumption: they must be [arm] or [instance][arm], with as many of each")
    shape = (len(rewards), len(rewards[0]))
    given = numbers("correlation", correlation)
    try:
        kappa = np.broadcast_to(given, shape)
    except ValueError:
        raise bad("correlation", correlation, f"one number, or of shape {shape}") from None
    if not (np.rint(np.abs(kappa) * 2**_RHO_BITS) < 2**_RHO_BITS).all():
        raise bad("correlation", kappa.tolist(), "in (-1, 1), also when rounded to 2**-15")
    spec = CensoredSpec.of(len(rewards[0]), limits, cost, penalty, tau_max)
    reward_table = _tables(rewards, _reward_knots)
    consumption_table = _tables(consumptions, lambda i, k, law: _consumption_knots(i, k, law, spec.tau_max))
    law = CopulaLaw(
        reward=reward_table,
        consumption=consumption_table,
        kappa=np.rint(kappa * 2**_RHO_BITS).astype(np.int32),
        rest=np.rint(np.sqrt(1 - kappa**2) * 2**_RHO_BITS).astype(np.int32),
    )
    gain, spent = _means(spec, law)
    return CensoredArms(
        law=law,
        mean_gain=ticks.from_units(gain).astype(np.int32),
        mean_spent=ticks.from_units(spent).astype(np.int32),
        present=np.ones(reward_table.shape[:2], bool),
        game=spec,
    )


def _nested(name: str, laws: Sequence[Any]) -> list[list[Any]]:
    if not isinstance(laws, (list, tuple, np.ndarray)):
        raise bad(name, laws, "a list of laws, one per arm, or one such list per instance")
    rows = [list(row) if isinstance(row, (list, tuple)) else row for row in laws]
    if rows and not isinstance(rows[0], list):
        rows = [rows]
    if not rows or not all(isinstance(row, list) and row for row in rows):
        raise InputError(f"{name}: it must be a list of laws, one per arm, or one such list per instance")
    for i, row in enumerate(rows):
        for k, law in enumerate(row):
            if not callable(getattr(law, "ppf", None)):
                raise bad(f"{name}[{i}][{k}]", law, "a law with a method ppf, such as scipy.stats.beta(2, 3)")
    return rows


def _tables(laws: list[list[Any]], knots: Callable[[int, int, Any], np.ndarray]) -> np.ndarray:
    return np.stack([[knots(i, k, law) for k, law in enumerate(row)] for i, row in enumerate(laws)])


def _reward_knots(i: int, k: int, law: Marginal) -> np.ndarray:
    from scipy import special  # slow to import

    x = numbers(f"reward[{i}][{k}].ppf", law.ppf(special.ndtr(_GRID)))
    if x.shape != _GRID.shape or not ((x >= -1e-12) & (x <= 1 + 1e-12)).all():
        raise bad(f"reward[{i}][{k}]", law, "a law on [0, 1]")
    return ticks.from_units(np.clip(x, 0, 1)).astype(np.int32)


def _consumption_knots(i: int, k: int, law: Marginal, tau_max: float) -> np.ndarray:
    from scipy import special  # slow to import

    with np.errstate(over="ignore"):
        x = numbers(f"consumption[{i}][{k}].ppf", law.ppf(special.ndtr(_GRID))) / tau_max
    if x.shape != _GRID.shape or not (x >= 0).all():  # also if NaN
        raise bad(f"consumption[{i}][{k}]", law, "a law on [0, ∞)")
    knots = ticks.floor_from_units(np.minimum(x, 2.0))
    steps = np.arange(knots.size, dtype=np.int64) * ticks.ONE  # no cell may rise by more than interpolation can
    return (np.minimum.accumulate(knots - steps) + steps).astype(np.int32)


def _means(spec: CensoredSpec, law: CopulaLaw) -> tuple[np.ndarray, np.ndarray]:
    """(v, E min(C, τ)/τ_max), float64 ``[I, n, m]``: Gauss–Legendre in z between the limits, Gauss–Hermite in e."""
    instances, arms, _ = law.reward.shape
    gain, spent = np.zeros((2, instances, arms, len(spec.limits)))
    for i in range(instances):
        for k in range(arms):
            kappa, rest = law.kappa[i, k] / 2**_RHO_BITS, law.rest[i, k] / 2**_RHO_BITS
            gain[i, k], spent[i, k] = _arm_means(spec, law.reward[i, k], law.consumption[i, k], kappa, rest)
    return gain, spent


def _arm_means(
    spec: CensoredSpec, reward: np.ndarray, consumption: np.ndarray, kappa: float, rest: float
) -> tuple[np.ndarray, np.ndarray]:
    from scipy import special  # slow to import

    limits = spec.limit_ticks.astype(np.float64)
    rising = np.maximum.accumulate(consumption + np.arange(consumption.size) * 1e-6)
    ends = np.interp(limits + 0.5, rising, _GRID, left=-_HALF, right=_HALF)  # C ≤ τ up to these z
    edges = np.concatenate([np.linspace(min(-_HALF, ends[0]), ends[0], 33), ends[1:]])
    node, weight = np.polynomial.legendre.leggauss(48)
    half = np.diff(edges)[:, None] / 2
    z = edges[:-1, None] + half * (node + 1)
    mass = half * weight * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    e, share = np.polynomial.hermite_e.hermegauss(100)
    mean_reward = np.interp(kappa * z[..., None] + rest * e, _GRID, reward) @ (share / share.sum()) / ticks.ONE
    amount = np.interp(z, _GRID, consumption)
    with jax.ensure_compile_time_eval():
        charge = np.asarray(spec.cost_ticks(jnp.asarray(amount.astype(np.int32))), np.float64) / ticks.ONE

    def up_to(integrand: np.ndarray) -> np.ndarray:  # cumulated over the parts, read at the limits
        return np.cumsum((mass * integrand).sum(axis=1))[31:]

    beyond = special.ndtr(-ends)
    gain = up_to(mean_reward - charge) - np.asarray(spec.penalties) * beyond
    return gain, up_to(amount / ticks.ONE) + limits / ticks.ONE * beyond
