"""The censored bandit: arms that consume a resource under a limit; cost functions and laws."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics import beta
from jaxbandits._numerics.arrays import ArrayLike, one_of
from jaxbandits.core import streams, ticks
from jaxbandits.core.checks import bad, in_float32, number, numbers, refuse, whole_number
from jaxbandits.core.protocol import Outcome, Pulled
from jaxbandits.core.pytrees import leaf, pytree, static
from jaxbandits.core.specs import (
    OVER,
    CensoredFeedback,
    CensoredSpec,
    CostFunction,
    PairAction,
    RevealedSpec,
)
from jaxbandits.core.tables import check_unit, is_arm, logged, ticks32
from jaxbandits.environments.finite import AroundWorld, CountedArms, Law, RowsLaw

# --- Cost c(x) of what was consumed, and penalty λ(τ) of a limit that was exceeded: JAX functions that compare by value
#
# Any JAX function of one float32 array may be used instead. It must be hashable, and each new one
# compiles anew; two equal objects of the classes here share one compiled program.


def _constant(owner: Any, field: str) -> np.ndarray:
    name = f"{type(owner).__name__}.{field}"
    return in_float32(name, number(name, getattr(owner, field)))


@dataclasses.dataclass(frozen=True)
class Linear:
    """x ↦ slope · x. PAR10 with cut-off T: the cost ``Linear(1 / T)``, the penalty ``Linear(10 / T)``.

    Source: RCUCB paper, §2.5.

    Example:
        >>> from jaxbandits.environments import Linear
        >>> float(Linear(0.5)(3.0))
        1.5
    """

    slope: float

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.asarray(x, jnp.float32) * _constant(self, "slope")


@dataclasses.dataclass(frozen=True)
class FastTrack:
    """λ(τ) = rate · τ for τ ≤ promise, compensation · τ above: a penalty for a promised time.

    Source: RCUCB paper, Example 2 and §5.1 (promise 0.5, compensation 10, rate 1/10: the defaults).

    Example:
        >>> from jaxbandits.environments import FastTrack
        >>> round(float(FastTrack()(0.5)), 6), round(float(FastTrack()(0.6)), 6)
        (0.05, 6.0)
    """

    promise: float = 0.5
    compensation: float = 10.0
    rate: float = 0.1

    def __call__(self, x: jax.Array) -> jax.Array:
        x = jnp.asarray(x, jnp.float32)
        rate, compensation = _constant(self, "rate"), _constant(self, "compensation")
        return x * jnp.where(x <= _constant(self, "promise"), rate, compensation)


@dataclasses.dataclass(frozen=True)
class Constant:
    """x ↦ value; with ``Constant(0)`` as cost and penalty it is the ordinary bandit (Remark 1).

    Example:
        >>> from jaxbandits.environments import Constant
        >>> float(Constant(2.0)(0.3))
        2.0
    """

    value: float

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.full_like(jnp.asarray(x, jnp.float32), _constant(self, "value"))


# --- Arms that consume a resource under a limit
# Bengs, Hüllermeier: Multi-armed bandits with censored consumption of resources, Machine Learning
# 2023.


@pytree
class CensoredArms(CountedArms):
    """n arms: choose an arm and a limit τ ∈ 𝓜, and observe (R, C) if C ≤ τ, else only "exceeded".

    A round earns (R − c(C))·1{C ≤ τ} − λ(τ)·1{C > τ}; this is the booked reward, and its mean is
    v_{i,τ}. What is spent is min(C, τ), in units of τ_max. Event ``censored`` counts rounds
    that exceeded their limit. The outcome (R, C) of the n-th pull of an arm is one draw, whatever
    the limit: policies that choose other limits face the same world. :meth:`values` counts pairs:
    pair p is arm p // m with limit p % m.

    Make one with :func:`~jaxbandits.environments.copula_arms`,
    :func:`~jaxbandits.environments.row_arms` or :func:`~jaxbandits.environments.g1`.

    Source: §2 of the paper, Eqs. (1)–(5).

    Example:
        >>> import jaxbandits as jb
        >>> world = jb.environments.g1()
        >>> world.instances, world.spec.arms, len(world.spec.limits)
        (3, 10, 10)
    """

    law: Law = leaf()
    mean_gain: ArrayLike = leaf()  # i32[I, n, m]: v in ticks
    mean_spent: ArrayLike = leaf()  # i32[I, n, m]: E min(C, τ) in ticks of τ_max
    present: ArrayLike = leaf()  # bool[I, n]
    game: CensoredSpec = static()

    @property
    def spec(self) -> CensoredSpec:
        return dataclasses.replace(self.game, arms=int(self.present.shape[-1]))

    def check(self) -> None:
        self.game.check()

    def refuses(self, action: Any) -> str | None:
        pair = isinstance(action, PairAction) and all(is_arm(x) and x.shape == () for x in action)
        return None if pair else "a PairAction of an arm and the place of a limit, int32[] each"

    def largest(self, action: Any) -> tuple[int, int]:
        return max(ticks.ONE, int(self.game.penalty_ticks.max())), ticks.ONE

    def available(self) -> jax.Array:
        return self.present[:]

    def outcome(self, key: jax.Array, arm: jax.Array, n: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(reward, consumption) in ticks of pull ``n`` + 1 of ``arm``; above τ_max 2²⁴ + 1 ticks."""
        reward, consumption = self.law.outcome(arm, streams.words(key, n, arm))
        return reward, jnp.minimum(consumption, OVER)

    def pull(
        self, state: jax.Array, action: PairAction, key: jax.Array, round: jax.Array
    ) -> Pulled:
        state, outcome, feedback, _ = self._play(state, action, key)
        return state, outcome, feedback, jnp.bool_(False)

    def _play(
        self, state: jax.Array, action: PairAction, key: jax.Array
    ) -> tuple[jax.Array, Outcome, CensoredFeedback, jax.Array]:
        game = self.spec
        arm = jnp.clip(action.arm, 0, game.arms - 1)
        at = jnp.clip(action.limit, 0, len(game.limits) - 1)
        valid = (arm == action.arm) & (at == action.limit) & self.present[arm]
        is_arm = jax.lax.iota(jnp.int32, game.arms) == arm
        n = jnp.sum(jnp.where(is_arm, state, 0), dtype=jnp.int32)
        reward, consumption = self.outcome(key, arm, n)
        limit = jnp.asarray(game.limit_ticks)[at]
        exceeded = consumption > limit
        feedback = CensoredFeedback(
            jnp.where(exceeded, 0, reward), jnp.where(exceeded, 0, consumption), exceeded
        )
        fine, cost = -jnp.asarray(game.penalty_ticks)[at], jnp.minimum(consumption, limit)
        reward = jnp.where(exceeded, fine, game.gain(feedback))
        means = self.mean_gain[arm, at], self.mean_spent[arm, at]
        events = {"censored": exceeded.astype(jnp.int32)}
        outcome = Outcome(reward, cost, *means, events, valid)
        return state + is_arm, outcome, feedback, consumption

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """(v_{i,τ}, E min(C, τ)/τ_max), ``[instance, n·m]``; NaN where the arm is absent."""
        means = np.stack([ticks.to_units(x) for x in (self.mean_gain, self.mean_spent)])
        means = np.where(np.asarray(self.present)[..., None], means, np.nan)
        gain, spent = means.reshape(2, self.instances, self.spec.pairs)
        return gain, spent

    def best_pair(self) -> list[tuple[int, float, float]]:
        """Host: (arm, limit, v*) of the best pair of every instance."""
        gain, limits = self.values()[0], self.game.limits
        places = zip(np.nanargmax(gain, axis=1).tolist(), gain, strict=True)
        return [(p // len(limits), limits[p % len(limits)], float(g[p])) for p, g in places]


@pytree
class RevealConsumption(AroundWorld):
    """Censored arms whose censored rounds reveal their consumption, against the paper's (1).

    It is revealed up to "above τ_max". Only ``RCUCB(survival="literal")`` and its relatives need
    it; other policies may run here too. A result has ``RevealConsumption`` in
    ``about.environment``.

    Example:
        >>> import jaxbandits as jb
        >>> type(jb.environments.RevealConsumption(jb.environments.g1()).spec).__name__
        'RevealedSpec'
    """

    arms: CensoredArms = leaf()

    @property
    def world(self) -> CensoredArms:
        return self.arms

    @property
    def spec(self) -> RevealedSpec:
        return RevealedSpec(**vars(self.arms.spec))

    def check(self) -> None:
        kind = type(self.arms).__name__
        refuse("arms", kind, not isinstance(self.arms, CensoredArms), "CensoredArms")
        super().check()

    def pull(
        self, state: jax.Array, action: PairAction, key: jax.Array, round: jax.Array
    ) -> Pulled:
        state, outcome, feedback, consumption = self.arms._play(state, action, key)
        return state, outcome, feedback._replace(consumption=consumption), jnp.bool_(False)


# --- Censored arms whose reward and consumption are tied by a Gaussian copula, with any marginals

# Latent normals are fixed-point numbers in units of 2⁻²⁰, tables have equal cells of 2⁻⁷ over [−8,
# 8].
_Z_BITS, _CELL_BITS, _HALF = 20, 13, 8
_CELLS = (2 * _HALF << _Z_BITS) >> _CELL_BITS
_GRID = np.linspace(-_HALF, _HALF, _CELLS + 1)
_RHO_BITS = 15


class Marginal(Protocol):
    """A distribution on the real line, such as ``scipy.stats.beta(2, 3)``."""

    def ppf(self, q: Any) -> Any:
        """The quantile function of the law."""


@pytree
class CopulaLaw(Law):
    """C = F_C⁻¹(Φ(z)), R = F_R⁻¹(Φ(y)), (z, y) normal with correlation κ; integer arithmetic.

    y = κ z + √(1 − κ²) e: word 0 draws e, word 1 draws z. The CDF of either marginal is right to
    3·10⁻⁵ (by test).
    """

    reward: ArrayLike = leaf()  # i32[I, n, G]: ticks at equally spaced y
    consumption: ArrayLike = leaf()  # i32[I, n, G]: ticks of τ_max at equally spaced z, up to 2
    kappa: ArrayLike = leaf()  # i32[I, n]: κ · 2¹⁵
    rest: ArrayLike = leaf()  # i32[I, n]: √(1 − κ²) · 2¹⁵

    def outcome(self, arm: jax.Array, words: jax.Array) -> tuple[jax.Array, jax.Array]:
        knots = jnp.asarray(_normal_knots())
        noise, z = beta.quantile_of_word(knots, words[0]), beta.quantile_of_word(knots, words[1])
        y = _scaled(z, self.kappa[arm]) + _scaled(noise, self.rest[arm])
        return _looked_up(self.reward, arm, y), _looked_up(self.consumption, arm, z)


def _scaled(z: jax.Array, factor: jax.Array) -> jax.Array:
    # ⌊z · factor / 2¹⁵⌋ from 12-bit pieces, each product inside an int32: whole numbers give the
    # same bits everywhere.
    high, low = factor * (z >> 12), factor * (z & 0xFFF)
    return (high >> 3) + ((((high & 7) << 12) + low) >> _RHO_BITS)


def _looked_up(table: Any, arm: jax.Array, z: jax.Array) -> jax.Array:
    # Beyond ±8 the outermost cell up to its last point: one more would be outside of the table.
    above = jnp.clip(z + (_HALF << _Z_BITS), 0, (2 * _HALF << _Z_BITS) - 1)
    cell = above >> _CELL_BITS
    rest, shift = above & ((1 << _CELL_BITS) - 1), np.uint32(beta.FRACTION_BITS - _CELL_BITS)
    fraction = rest.astype(jnp.uint32) << shift
    return beta.interpolate(table[arm, cell], table[arm, cell + 1], fraction)


@cache
def _normal_knots() -> np.ndarray:
    from scipy import special  # slow to import

    return np.rint(special.ndtri(beta.boundaries()) * 2**_Z_BITS).astype(np.int32)


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
        reward: laws on [0, 1], ``[arm]`` or ``[instance][arm]``: anything with ``ppf``, as
            ``scipy.stats.beta(2, 3)``.
        consumption: laws on [0, ∞), same shape, e.g. ``scipy.stats.lognorm`` or
            ``scipy.stats.gamma``. What exceeds τ_max saturates just above it.
        correlation: κ in (−1, 1) of the latent normals, one, ``[instance, 1]`` or ``[instance,
            arm]``; rounded to 2⁻¹⁵.
        limits, cost, penalty, tau_max: see :meth:`CensoredSpec.of`.

    True means v_{i,τ} are quadratures in float64 of the tabulated law.

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
    widths = [len(x) for x in rewards], [len(x) for x in consumptions]
    misfit = widths[0] != widths[1] or len(set(widths[0])) != 1
    must = "[arm] or [instance][arm], with as many of each"
    refuse("reward, consumption", widths, misfit, must)
    shape = (len(rewards), len(rewards[0]))
    rho = numbers("correlation", correlation)
    try:
        kappa = np.broadcast_to(rho, shape)
    except ValueError:
        raise bad("correlation", correlation, f"one number, or of shape {shape}") from None
    wrong = ~(np.rint(np.abs(kappa) * 2**_RHO_BITS) < 2**_RHO_BITS)
    refuse("correlation", kappa, wrong, "in (-1, 1), also when rounded to 2**-15")
    spec = CensoredSpec.of(len(rewards[0]), limits, cost, penalty, tau_max)
    # The mixture of two normal draws in whole numbers of 2⁻¹⁵: the same outcomes in every program.
    law = CopulaLaw(
        reward=_tables("reward", rewards, _reward_knots),
        consumption=_tables("consumption", consumptions, partial(_consumption_knots, spec.tau_max)),
        kappa=np.rint(kappa * 2**_RHO_BITS).astype(np.int32),
        rest=np.rint(np.sqrt(1 - kappa**2) * 2**_RHO_BITS).astype(np.int32),
    )
    gain, spent = (ticks32(x) for x in _means(spec, law))
    return CensoredArms(law, gain, spent, np.ones(shape, bool), spec)


def _nested(name: str, laws: Sequence[Any]) -> list[list[Any]]:
    rows = list(laws) if isinstance(laws, (list, tuple, np.ndarray)) else []
    rows = rows if rows and isinstance(rows[0], (list, tuple)) else [rows]
    wrong = not all(isinstance(row, (list, tuple)) and row for row in rows)
    refuse(name, laws, wrong, "a list of laws, one per arm, or one such list per instance")
    must = "a law with a method ppf, such as scipy.stats.beta(2, 3)"
    for i, row in enumerate(rows):
        for k, law in enumerate(row):
            refuse(f"{name}[{i}][{k}]", law, not callable(getattr(law, "ppf", None)), must)
    return [list(row) for row in rows]


def _tables(
    name: str, laws: list[list[Marginal]], knots: Callable[[str, Marginal], np.ndarray]
) -> np.ndarray:
    places = [[(f"{name}[{i}][{k}]", x) for k, x in enumerate(row)] for i, row in enumerate(laws)]
    return np.stack([[knots(*place) for place in row] for row in places])


def _on_grid(place: str, law: Marginal) -> np.ndarray:
    from scipy import special  # slow to import

    x = numbers(f"{place}.ppf", law.ppf(special.ndtr(_GRID)))
    refuse(place, law, x.shape != _GRID.shape, "a law whose ppf has the shape of its argument")
    return x


def _reward_knots(place: str, law: Marginal) -> np.ndarray:
    x = _on_grid(place, law)
    refuse(place, law, not ((x >= -1e-12) & (x <= 1 + 1e-12)).all(), "a law on [0, 1]")
    return ticks32(np.clip(x, 0, 1))


def _consumption_knots(tau_max: float, place: str, law: Marginal) -> np.ndarray:
    with np.errstate(over="ignore"):
        x = _on_grid(place, law) / tau_max
    refuse(place, law, not (x >= 0).all(), "a law on [0, ∞)")  # also if NaN
    knots = ticks.floor_from_units(np.minimum(x, 2.0))
    # No cell may rise by more than one unit, which is what interpolation holds exactly.
    steps = np.arange(knots.size, dtype=np.int64) * ticks.ONE
    return (np.minimum.accumulate(knots - steps) + steps).astype(np.int32)


def _means(spec: CensoredSpec, law: CopulaLaw) -> tuple[np.ndarray, np.ndarray]:
    """(v, E min(C, τ)/τ_max), f64 ``[I, n, m]``: Gauss–Legendre in z, Gauss–Hermite in e."""
    instances, arms, _ = law.reward.shape
    gain, spent = np.zeros((2, instances, arms, len(spec.limits)))
    for i in range(instances):
        for k in range(arms):
            kappa, rest = law.kappa[i, k] / 2**_RHO_BITS, law.rest[i, k] / 2**_RHO_BITS
            of_arm = law.reward[i, k], law.consumption[i, k], kappa, rest
            gain[i, k], spent[i, k] = _arm_means(spec, *of_arm)
    return gain, spent


def _arm_means(
    spec: CensoredSpec, reward: np.ndarray, consumption: np.ndarray, kappa: float, rest: float
) -> tuple[np.ndarray, np.ndarray]:
    from scipy import special  # slow to import

    limits = spec.limit_ticks.astype(np.float64)
    # The integrals over z are cut at the limits, where the integrand jumps; below the first, 32
    # parts.
    rising = np.maximum.accumulate(consumption + np.arange(consumption.size) * 1e-6)
    ends = np.interp(limits + 0.5, rising, _GRID, left=-_HALF, right=_HALF)  # C ≤ τ up to these z
    edges = np.concatenate([np.linspace(min(-_HALF, ends[0]), ends[0], 33), ends[1:]])
    node, weight = np.polynomial.legendre.leggauss(48)
    half = np.diff(edges)[:, None] / 2
    z = edges[:-1, None] + half * (node + 1)
    mass = half * weight * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    e, share = np.polynomial.hermite_e.hermegauss(100)
    rewards = np.interp(kappa * z[..., None] + rest * e, _GRID, reward)
    mean_reward = rewards @ (share / share.sum()) / ticks.ONE
    amount = np.interp(z, _GRID, consumption)
    with jax.ensure_compile_time_eval():
        charge = np.asarray(spec.cost_ticks(jnp.asarray(amount.astype(np.int32))), np.float64)
    charge = charge / ticks.ONE

    def up_to(integrand: np.ndarray) -> np.ndarray:  # cumulated over the parts, read at the limits
        return np.cumsum((mass * integrand).sum(axis=1))[31:]

    beyond = special.ndtr(-ends)
    gain = up_to(mean_reward - charge) - np.asarray(spec.penalties) * beyond
    return gain, up_to(amount / ticks.ONE) + limits / ticks.ONE * beyond


# --- Censored arms that replay real joint observations of reward and consumption


def row_arms(
    rows: Sequence[Sequence[tuple[Any, Any]]],
    *,
    limits: Sequence[float] | np.ndarray,
    cost: CostFunction,
    penalty: CostFunction,
    tau_max: float | None = None,
) -> CensoredArms:
    """Arms whose pulls resample rows of real data, reward and consumption together.

    Args:
        rows: ``rows[instance][arm] = (rewards, consumptions)``: rewards in [0, 1], consumptions ≥ 0
            in user units, ``inf`` allowed (a run that was never finished). Instances may differ in
            their number of arms; a missing arm is absent. Consumption above τ_max saturates just
            above it.
        limits, cost, penalty, tau_max: see :meth:`CensoredSpec.of`; shared by all instances.

    True means are exact averages over the rows.

    Example:
        >>> from jaxbandits.environments import Linear, row_arms
        >>> fast = ([1.0, 0.0], [2.0, float("inf")])
        >>> slow = ([1.0, 1.0], [8.0, 5000.0])
        >>> arms = row_arms([[fast, slow]], limits=[5.0, 10.0], cost=Linear(0.1), penalty=Linear(0.1))
        >>> [round(float(v), 3) for v in arms.values()[0][0]]
        [0.15, -0.1, -0.5, -0.4]
    """
    read = logged("rows", rows)
    width = max(len(instance) for instance in read)
    spec = CensoredSpec.of(width, limits, cost, penalty, tau_max)
    depth = max(r.size for instance in read for r, _ in instance)
    shape = (len(read), width)
    reward, consumption = (np.zeros((*shape, depth), np.int32) for _ in range(2))
    size, present = np.ones(shape, np.int32), np.zeros(shape, bool)
    gain, spent = (np.zeros((*shape, len(spec.limits)), np.int32) for _ in range(2))
    for i, instance in enumerate(read):
        for k, (r, c) in enumerate(instance):
            check_unit(f"rows[{i}][{k}] rewards", r, rows=True)
            refuse(f"rows[{i}][{k}] consumptions", c, ~(c >= 0), "at least 0 (inf allowed)")
            n = r.size
            reward[i, k, :n], consumption[i, k, :n] = ticks.from_units(r), spec.consumption_ticks(c)
            size[i, k], present[i, k] = n, True
            gain[i, k], spent[i, k] = _row_means(spec, reward[i, k, :n], consumption[i, k, :n])
    law = RowsLaw(reward, consumption, size)
    return CensoredArms(law=law, mean_gain=gain, mean_spent=spent, present=present, game=spec)


def _row_means(
    spec: CensoredSpec, reward: np.ndarray, consumption: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(v, E min(C, τ)) at every limit in ticks, ``i32[m]``: exact row sums, rounded once."""
    with jax.ensure_compile_time_eval():
        charge = np.asarray(spec.cost_ticks(jnp.asarray(consumption)), np.int64)
    limits = spec.limit_ticks.astype(np.int64)[:, None]
    within = consumption[None, :] <= limits
    fine = -spec.penalty_ticks.astype(np.int64)[:, None]
    gain = np.where(within, (reward - charge)[None, :], fine).sum(axis=1)
    spent = np.minimum(consumption[None, :], limits).sum(axis=1)
    return tuple(np.rint(x / reward.size).astype(np.int32) for x in (gain, spent))  # type: ignore[return-value]


# --- G1: our stand-in for the instances PosCorr, NegCorr and Indep of the RCUCB paper, whose laws are not published

G1_NAMES = ("PosCorr", "NegCorr", "Indep")
_KAPPA = {"PosCorr": 0.6, "NegCorr": -0.6, "Indep": 0.0}
_SHIFT = {"PosCorr": 0.0435, "NegCorr": 0.7963, "Indep": -0.39}


@dataclasses.dataclass(frozen=True)
class ProbitNormal:
    """The law of Φ(b + σ y), y standard normal; its mean is Φ(b/√(1 + σ²)).

    Example:
        >>> round(float(ProbitNormal(0.0, 0.6).ppf(0.5)), 3)
        0.5
    """

    b: float
    sigma: float

    def ppf(self, q: Any) -> Any:
        """The quantile function of the law."""
        from scipy import special  # slow to import

        return special.ndtr(self.b + self.sigma * special.ndtri(q))


def g1(
    names: Sequence[str] = G1_NAMES,
    *,
    arms: int = 10,
    limits: int | Sequence[float] = 10,
    cost: CostFunction = Linear(0.1),
    penalty: CostFunction = FastTrack(),
) -> CensoredArms:
    """The stand-in instances G1, one per name. **Ours**: the paper's supplement was not to be had.

    (z, y) standard normal with correlation κ = 0.6, −0.6, 0; arm i = 1 … n has C = ½·exp(2(z +
    q_i)) with q_i = −0.4 + 0.08(i − 1) + δ and R = Φ(b_i + 0.6 y) with b_i = −0.8 + 0.26(i − 1).
    The shift δ of each instance makes the best pair's censoring probability the published one
    (0.6116, 0.7631, 0.4404). For another number of arms the n values of q and b are spread evenly
    over the same ranges.

    Args:
        names: of ``"PosCorr"``, ``"NegCorr"``, ``"Indep"``.
        arms: n ≥ 1.
        limits: how many equally spaced ones in (0, 1], or the limits.
        cost: default x/10, as in the paper.
        penalty: default x/10 up to 0.5 and 10x above, as in the paper.

    Source: ours; constraints from §5.1 and its table.

    Example:
        >>> from jaxbandits.environments import g1
        >>> [(arm + 1, limit) for arm, limit, value in g1().best_pair()]
        [(9, 0.5), (5, 0.5), (9, 0.5)]
    """
    from scipy import stats  # slow to import, and only needed here

    wrong = not isinstance(names, (list, tuple)) or not names
    refuse("names", names, wrong, "a list of " + " or ".join(map(repr, G1_NAMES)))
    for name in names:
        one_of("names", name, G1_NAMES)
    whole_number("arms", arms, 1, 2**20 - 1, "2**20 - 1")
    level = np.linspace(0.0, 9.0, int(arms)) if arms > 1 else np.array([4.5])
    places: Any = limits
    if isinstance(limits, (int, np.integer)):
        count = whole_number("limits", limits, 1, 2**24, "2**24")
        places = np.arange(1, count + 1) / count
    reward = [ProbitNormal(-0.8 + 0.26 * x, 0.6) for x in level]
    shifted = [[-0.4 + 0.08 * x + _SHIFT[name] for x in level] for name in names]
    seconds = [[stats.lognorm(2.0, scale=0.5 * np.exp(2 * q)) for q in row] for row in shifted]
    laws = [reward] * len(names), seconds, [[_KAPPA[name]] for name in names]
    return copula_arms(*laws, limits=places, cost=cost, penalty=penalty)
