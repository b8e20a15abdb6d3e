"""Arms that consume a resource under a limit: the environment of the censored bandit (Bengs, Hüllermeier:
Multi-armed bandits with censored consumption of resources, Machine Learning 2023)."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import streams, ticks
from jaxbandits.core.censored_specs import OVER, CensoredFeedback, CensoredSpec, PairAction, RevealedSpec
from jaxbandits.core.errors import InputError
from jaxbandits.core.ledger import Outcome
from jaxbandits.core.protocol import Environment
from jaxbandits.core.pytrees import leaf, pytree, static
from jaxbandits.core.tables import is_arm
from jaxbandits.environments.finite.laws import Law


@pytree
class CensoredArms(Environment):
    """n arms; the learner picks an arm and a limit τ ∈ 𝓜 and sees (R, C) if C ≤ τ, else only "exceeded".

    A round gains (R − c(C))·1{C ≤ τ} − λ(τ)·1{C > τ}; this is the reward of the accountant, its mean is v_{i,τ}. What
    is spent is min(C, τ), in units of τ_max. Event ``censored`` counts rounds that exceeded their limit. The outcome
    (R, C) of the n-th pull of an arm is one draw, whatever the limit: policies that choose other limits meet the same
    world. :meth:`values` counts pairs: pair p is arm p // m with limit p % m.

    Make one with :func:`~jaxbandits.environments.copula_arms`, :func:`~jaxbandits.environments.row_arms` or
    :func:`~jaxbandits.environments.g1`.

    Source: §2 of the paper, Eqs. (1)–(5).

    Example:
        >>> import jaxbandits as jb
        >>> world = jb.environments.g1()
        >>> world.instances, world.spec.arms, len(world.spec.limits)
        (3, 10, 10)
    """

    law: Law = leaf()
    mean_gain: Any = leaf()  # i32[I, n, m]: v in ticks
    mean_spent: Any = leaf()  # i32[I, n, m]: E min(C, τ) in ticks of τ_max
    present: Any = leaf()  # bool[I, n]
    game: CensoredSpec = static()

    @property
    def spec(self) -> CensoredSpec:
        """Arms, limits, penalties and the cost function."""
        return dataclasses.replace(self.game, arms=int(self.present.shape[-1]))

    def check(self) -> None:
        """Checks the spec."""
        self.game.check()

    def refuses(self, action: Any) -> str | None:
        """See :meth:`Environment.refuses`: a pair."""
        pair = isinstance(action, PairAction) and all(is_arm(x) and x.shape == () for x in action)
        return None if pair else "a PairAction of an arm and the place of a limit, int32[] each"

    def largest(self, action: Any) -> tuple[int, int]:
        """See :meth:`Environment.largest`: the largest penalty, if it is above 1."""
        return max(ticks.ONE, int(self.game.penalty_ticks.max())), ticks.ONE

    def available(self) -> jax.Array:
        """The arms that this instance has, ``bool[n]``."""
        return self.present[:]

    def start(self) -> jax.Array:
        """Pull counts, ``i32[n]``."""
        return jnp.zeros((self.spec.arms,), jnp.int32)

    def outcome(self, key: jax.Array, arm: jax.Array, n: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(reward, consumption) in ticks of the pull of ``arm`` that comes after ``n`` earlier ones.

        Consumption above τ_max is 2²⁴ + 1 ticks.
        """
        reward, consumption = self.law.outcome(arm, streams.words(key, n, arm))
        return reward, jnp.minimum(consumption, OVER)

    def pull(
        self, state: jax.Array, action: PairAction, key: jax.Array, round: jax.Array
    ) -> tuple[jax.Array, Outcome, CensoredFeedback, jax.Array]:
        """Play an arm under a limit."""
        state, outcome, feedback, _ = self._play(state, action, key)
        return state, outcome, feedback, jnp.bool_(False)

    def _play(
        self, state: jax.Array, action: PairAction, key: jax.Array
    ) -> tuple[jax.Array, Outcome, CensoredFeedback, jax.Array]:
        game = self.spec
        arm = jnp.clip(action.arm, 0, game.arms - 1)
        at = jnp.clip(action.limit, 0, len(game.limits) - 1)
        valid = (arm == action.arm) & (at == action.limit) & self.present[arm]
        mine = jax.lax.iota(jnp.int32, game.arms) == arm
        n = jnp.sum(jnp.where(mine, state, 0), dtype=jnp.int32)
        reward, consumption = self.outcome(key, arm, n)
        limit = jnp.asarray(game.limit_ticks)[at]
        exceeded = consumption > limit
        seen = CensoredFeedback(jnp.where(exceeded, 0, reward), jnp.where(exceeded, 0, consumption), exceeded)
        outcome = Outcome(
            reward=jnp.where(exceeded, -jnp.asarray(game.penalty_ticks)[at], game.gain(seen)),
            cost=jnp.minimum(consumption, limit),
            expected_reward=self.mean_gain[arm, at],
            expected_cost=self.mean_spent[arm, at],
            events={"censored": exceeded.astype(jnp.int32)},
            valid=valid,
        )
        return state + mine, outcome, seen, consumption

    def summary(self, state: jax.Array) -> dict[str, jax.Array]:
        """``pulls`` of every arm."""
        return {"pulls": state}

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """(v_{i,τ}, E min(C, τ)/τ_max) of every pair, ``[instance, n·m]``, NaN where the arm is absent."""
        absent = ~np.asarray(self.present)[..., None]
        flat = (self.instances, self.spec.pairs)
        gain, spent = (np.where(absent, np.nan, ticks.to_units(x)) for x in (self.mean_gain, self.mean_spent))
        return gain.reshape(flat), spent.reshape(flat)

    def best_pair(self) -> list[tuple[int, float, float]]:
        """Host: (arm, limit, v*) of the best pair of every instance."""
        gain, _ = self.values()
        best = np.nanargmax(gain, axis=1)
        width = len(self.game.limits)
        return [
            (int(p) // width, self.game.limits[int(p) % width], float(g[p])) for p, g in zip(best, gain, strict=True)
        ]


@pytree
class RevealConsumption(Environment):
    """The same arms, but a censored round tells its consumption (at most "above τ_max"): more than feedback (1) allows.

    Only ``RCUCB(survival="literal")`` and its relatives need it. Other policies may play here too and use none of it.
    A result from here says ``RevealConsumption`` in ``about["environment"]``.

    Example:
        >>> import jaxbandits as jb
        >>> type(jb.environments.RevealConsumption(jb.environments.g1()).spec).__name__
        'RevealedSpec'
    """

    arms: CensoredArms = leaf()

    @property
    def spec(self) -> RevealedSpec:
        """The arms' spec, marked as revealing."""
        inner = self.arms.spec
        return RevealedSpec(**{f.name: getattr(inner, f.name) for f in dataclasses.fields(inner)})

    def check(self) -> None:
        """Checks the arms."""
        if not isinstance(self.arms, CensoredArms):
            raise InputError(f"arms: {type(self.arms).__name__} given; it must be CensoredArms")
        self.arms.check()

    def refuses(self, action: Any) -> str | None:
        """As the arms."""
        return self.arms.refuses(action)

    def largest(self, action: Any) -> tuple[int, int]:
        """As the arms."""
        return self.arms.largest(action)

    def available(self) -> jax.Array:
        """The arms that exist."""
        return self.arms.available()

    def start(self) -> jax.Array:
        """The arms' state."""
        return self.arms.start()

    def pull(
        self, state: jax.Array, action: PairAction, key: jax.Array, round: jax.Array
    ) -> tuple[jax.Array, Outcome, CensoredFeedback, jax.Array]:
        """Play an arm under a limit; the feedback's consumption is always the true one."""
        state, outcome, feedback, consumption = self.arms._play(state, action, key)
        return state, outcome, feedback._replace(consumption=consumption), jnp.bool_(False)

    def summary(self, state: jax.Array) -> dict[str, jax.Array]:
        """The arms'."""
        return self.arms.summary(state)

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """The arms'."""
        return self.arms.values()
