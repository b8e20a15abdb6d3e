"""Specs: what a policy may know of its environment, a small static value of each kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import ticks
from jaxbandits.core.checks import (
    InputError,
    bad,
    in_float32,
    numbers,
    positive_number,
    refuse,
    whole_number,
)
from jaxbandits.core.fingerprint import hashable

SKIP = -1
"""The action that skips a round at no cost, in environments that allow it."""


class Spec:
    """What a policy may know of its environment. Your own spec may be any frozen dataclass.

    Attributes:
        resources: None for one cost (a scalar), d for a cost vector ``[d]``.
        context: None, or the shape of what is known of a request: ``(d,)``, or ``(K, d)`` with a
            row for each arm.
        may_skip: True if a policy may sit a round out.
    """

    resources: int | None = None
    context: tuple[int, ...] | None = None
    may_skip: bool = False


@dataclasses.dataclass(frozen=True)
class ContinuumSpec(Spec):
    """The spec of a continuum: an action is a point of [0, 1] (``f32[]``).

    Example:
        >>> from jaxbandits.environments import ContinuumSpec
        >>> ContinuumSpec()
        ContinuumSpec()
    """


def to_ticks(point: jax.Array) -> jax.Array:
    """A point of [0, 1] (f32) as whole ticks (i32)."""
    return jnp.rint(point * ticks.ONE).astype(jnp.int32)


def point_of_ticks(point: jax.Array) -> jax.Array:
    """Ticks (i32) as a point of [0, 1] (f32), exactly."""
    return point.astype(jnp.float32) * np.float32(1 / ticks.ONE)


@dataclasses.dataclass(frozen=True)
class FiniteSpec(Spec):
    """The spec of finitely many arms.

    Attributes:
        arms: K.
        resources, context: as in :class:`Spec`.
        null_arm: True if arm number K may be pulled too: it earns and costs nothing (so does a
            skip, arm −1).

    Example:
        >>> from jaxbandits.environments import FiniteSpec
        >>> FiniteSpec(arms=10)
        FiniteSpec(arms=10, resources=None, null_arm=False, context=None)
    """

    arms: int
    resources: int | None = None
    null_arm: bool = False
    context: tuple[int, ...] | None = None

    @property
    def may_skip(self) -> bool:  # type: ignore[override]
        """Whether a policy may skip a round: if there is a null arm."""
        return self.null_arm

    @property
    def cost_shape(self) -> tuple[int, ...]:
        """Shape of one pull's cost."""
        return () if self.resources is None else (self.resources,)


@dataclasses.dataclass(frozen=True)
class DelayedSpec(Spec):
    """The spec of an environment whose outcomes arrive later.

    Attributes:
        inner: the spec of the world itself.
        room: how many requests may be open at once.
        groups: for each budget the arms that it pays for; None: all. Not read where the world has
            several costs.

    Example:
        >>> from jaxbandits.environments import DelayedSpec, FiniteSpec
        >>> DelayedSpec(FiniteSpec(arms=2), room=8).scope().tolist()
        [[True, True]]
    """

    inner: FiniteSpec
    room: int
    groups: tuple[tuple[int, ...] | None, ...] = (None,)

    @property
    def arms(self) -> int:
        """K, the number of arms."""
        return self.inner.arms

    @property
    def context(self) -> tuple[int, ...] | None:  # type: ignore[override]
        """The shape of a context, from the inner environment."""
        return self.inner.context

    @property
    def may_skip(self) -> bool:  # type: ignore[override]
        """Whether a policy may skip a round: always."""
        return True

    @property
    def budgets(self) -> int:
        """d, the number of budgets: one for each cost of the environment, or for each group."""
        return len(self.groups) if self.inner.resources is None else self.inner.resources

    def scope(self) -> np.ndarray:
        """Which budget pays for which arm, ``bool[d, K]``."""
        ids = np.arange(self.arms)
        if self.inner.resources is not None:
            return np.full((self.budgets, self.arms), True)
        return np.stack([np.isin(ids, ids if g is None else g) for g in self.groups])


class Arrivals(NamedTuple):
    """What a policy observes after a round: the outcomes that arrived, in order, ``i32[M]`` each.

    Costs are ``[M, d]`` where there are several.

    A lost request (``lost``) reveals nothing; its cost stays at its upper bound. With contexts,
    each outcome has the context of the round in which it was decided, ``f32[M, …]``.
    """

    number: jax.Array  # i32[]
    round: jax.Array  # the round in which it was decided
    arm: jax.Array
    reward: jax.Array  # ticks
    cost: jax.Array  # ticks
    lost: jax.Array  # 0 or 1
    context: jax.Array | None = None


# --- censored arms: arms, limits, penalties, the cost function; actions and feedback


CostFunction = Callable[[Any], Any]
OVER = ticks.ONE + 1  # the consumption, in ticks, of every pull that needs more than τ_max
_MOST_PENALTY = 100.0  # keeps a round's ticks well inside an int32
MOST_PAIRS = 1 << 24  # a pair's id takes 24 bits of an address
_GRID = 4097  # points on which a cost function is checked


class PairAction(NamedTuple):
    """The action: an arm, and the limit of its consumption as an index of ``spec.limits``."""

    arm: jax.Array  # i32[]
    limit: jax.Array  # i32[]


class CensoredFeedback(NamedTuple):
    """(reward, consumption) of a pull, or only that it exceeded the limit (then both are 0)."""

    reward: jax.Array  # i32[]: ticks
    consumption: jax.Array  # i32[]: ticks of τ_max
    exceeded: jax.Array  # bool[]


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class CensoredSpec(Spec):
    """The spec of censored arms. Usually made by :meth:`of`.

    Attributes:
        arms: n.
        limits: 𝓜, increasing, in (0, τ_max], in user units (seconds, say).
        penalties: λ(τ) of every limit.
        tau_max: the bound that consumption is counted in: one tick is τ_max · 2⁻²⁴.
        cost: c, a JAX function from consumption (float32, user units, in [0, τ_max]) to [0, 1].

    Example:
        >>> from jaxbandits.environments import CensoredSpec, Linear
        >>> CensoredSpec.of(3, [0.5, 1.0], cost=Linear(0.1), penalty=Linear(10)).penalties
        (5.0, 10.0)
    """

    arms: int
    limits: tuple[float, ...]
    penalties: tuple[float, ...]
    tau_max: float
    cost: CostFunction

    @classmethod
    def of(
        cls,
        arms: int,
        limits: Sequence[float] | np.ndarray,
        cost: CostFunction,
        penalty: CostFunction,
        tau_max: float | None = None,
    ) -> CensoredSpec:
        """A checked spec.

        Args:
            arms: n ≥ 1.
            limits: increasing values in (0, τ_max].
            cost: c, nondecreasing with values in [0, 1] on [0, τ_max].
            penalty: λ, values in [0, 100], nondecreasing over the limits (constant is allowed: with
                λ = c = 0 the problem is the ordinary bandit, Remark 1 of the paper).
            tau_max: default the largest limit.

        Raises:
            InputError: for anything else.
        """
        values = numbers("limits", limits, "a list of numbers")
        if values.ndim != 1 or values.size == 0:
            raise bad("limits", limits, "a list of at least one number")
        refuse("limits", values, ~np.isfinite(values), "finite")
        in_float32("limits", values)
        bound = float(values[-1]) if tau_max is None else tau_max
        penalties = _evaluated("penalty", penalty, values)
        spec = cls(arms, tuple(values.tolist()), tuple(penalties.tolist()), bound, cost)
        spec.check()
        return spec

    def check(self) -> None:
        """Refuse a problem that cannot be simulated."""
        whole_number("arms", self.arms, 1, 2**20 - 1, "2**20 - 1")
        if self.pairs > MOST_PAIRS:
            sizes = self.arms, len(self.limits)
            raise bad("arms, limits", sizes, f"at most {MOST_PAIRS} pairs of an arm and a limit")
        in_float32("tau_max", positive_number("tau_max", self.tau_max))
        limits, penalties = numbers("limits", self.limits), numbers("penalties", self.penalties)
        in_float32("limits", limits)
        inside = (limits > 0) & (limits <= self.tau_max)
        inside &= ticks.floor_from_units(limits / self.tau_max) >= 1
        may_be = f"in (0, tau_max] = (0, {self.tau_max:g}], at least a tick"
        refuse("limits", limits, ~inside, may_be)
        for at in np.flatnonzero(np.diff(self.limit_ticks) <= 0):
            raise bad("limits", [float(limits[at]), float(limits[at + 1])], "increasing")
        if penalties.shape != limits.shape:
            raise bad("penalties", self.penalties, f"one for each of the {limits.size} limits")
        if not (np.isfinite(penalties) & (penalties >= 0) & (penalties <= _MOST_PENALTY)).all():
            raise bad("penalty", penalties.tolist(), f"from 0 to {_MOST_PENALTY:g} at every limit")
        small = (penalties > 0) & (self.penalty_ticks == 0)
        refuse("penalty", penalties, small, f"0, or at least half a tick, {0.5 / ticks.ONE:.7g}")
        for at in np.flatnonzero(np.diff(penalties) < 0):
            two = [float(penalties[at]), float(penalties[at + 1])]
            raise bad("penalty", two, f"increasing from limit {limits[at]:g} to {limits[at + 1]:g}")
        self._check_cost()

    def _check_cost(self) -> None:
        x = np.linspace(0.0, self.tau_max, _GRID)
        c = _evaluated("cost", self.cost, x)
        for at in np.flatnonzero(~(np.isfinite(c) & (c >= 0) & (c <= 1 + 1e-6))):
            must = f"in [0, 1] for every consumption in [0, tau_max] (here c({x[at]:g}))"
            raise bad("cost", float(c[at]), must)
        for at in np.flatnonzero(np.diff(c) < -1e-6):
            must = f"increasing in the consumption (here c({x[at + 1]:g}) < c({x[at]:g}))"
            raise bad("cost", float(c[at + 1]), must)

    @property
    def pairs(self) -> int:
        """n · m, m limits: pair p is arm p // m with limit p % m."""
        return self.arms * len(self.limits)

    @property
    def limit_ticks(self) -> np.ndarray:
        """The limits in ticks of τ_max, rounded down, ``i32[m]``."""
        return ticks.floor_from_units(np.asarray(self.limits) / self.tau_max).astype(np.int32)

    @property
    def penalty_ticks(self) -> np.ndarray:
        """λ at the limits in ticks, ``i32[m]``."""
        return ticks.from_units(self.penalties).astype(np.int32)

    def consumption_ticks(self, consumption: Any) -> np.ndarray:
        """Host: consumption in user units as ticks, rounded down; 2²⁴ + 1 above τ_max or ∞."""
        x = np.asarray(consumption, np.float64) / self.tau_max
        return np.where(x > 1, OVER, ticks.floor_from_units(np.clip(x, 0, 1))).astype(np.int32)

    def cost_ticks(self, consumption: jax.Array) -> jax.Array:
        """c(C) in ticks, of a consumption in ticks; the same bits for environment and policy."""
        x = ticks.ticks_to_float(jnp.minimum(consumption, ticks.ONE)) * np.float32(self.tau_max)
        c = jax.lax.optimization_barrier(self.cost(jax.lax.optimization_barrier(x)))
        return jnp.clip(jnp.rint(c * np.float32(ticks.ONE)).astype(jnp.int32), 0, ticks.ONE)

    def gain(self, feedback: CensoredFeedback) -> jax.Array:
        """R − c(C) in ticks of a pull within its limit, 0 of one that exceeded it."""
        gain = feedback.reward - self.cost_ticks(feedback.consumption)
        return jnp.where(feedback.exceeded, 0, gain)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class RevealedSpec(CensoredSpec):
    """The spec of an environment that reveals censored consumption (:class:`RevealConsumption`)."""


def _evaluated(name: str, function: CostFunction, x: np.ndarray) -> np.ndarray:
    """``function`` at float32 ``x``, outside of any trace, as float64."""
    if not callable(function):
        raise bad(name, function, "a JAX function of one array, such as Linear(0.1)")
    if not hashable(function):
        raise bad(name, function, "hashable (a function, or a frozen dataclass with __call__)")
    with jax.ensure_compile_time_eval():
        y = np.asarray(function(jnp.asarray(x, jnp.float32)), np.float64)
    if y.shape != x.shape:
        given = f"a function that maps shape {x.shape} to {y.shape}"
        raise InputError(f"{name}: {given} given; it must keep the shape")
    return y
