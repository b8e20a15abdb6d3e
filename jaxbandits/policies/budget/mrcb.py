"""MRCB: several arms a round (Xia, Qin, Ma, Yu, Liu: Budgeted multi-armed bandits with multiple plays, IJCAI 2016)."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxbandits.core import arm_statistics, streams
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.core.errors import bad
from jaxbandits.core.protocol import Observation, Policy, View
from jaxbandits.core.pytrees import leaf, pytree, static
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.streams import Role
from jaxbandits.policies.base.ties import ABSENT, first_of_largest, sortable
from jaxbandits.policies.budget.ratio import radius

_FEW = 8  # so few are found one by one: XLA on CPU sorts each lane on its own, which took 40 times as long at L = 2
_MOST = 120  # arms in a set: what a total can take in one addition


@pytree
class MRCB(Policy):
    """MRCB: the set of L arms with the largest ratio of summed bounds.

    .. math:: \\max_{|S| = L} \\frac{\\sum_{k \\in S} \\min(\\bar r_k + \\varepsilon_k, 1)}
        {\\sum_{k \\in S} \\max(\\bar c_k - \\varepsilon_k, 0)}, \\qquad
        \\varepsilon_k = \\alpha \\sqrt{\\ln(t-1) / n_k},

    t counting rounds, each with L pulls. The set is found by Dinkelbach's method: the top L of U_k − θL_k, then θ as
    their ratio, until θ stands still. Where L arms or more have a lower cost bound of 0 the ratio is +∞: L of those, at
    random. At first the arms not yet pulled, L a round in index order, filled up from arm 0. With L = 1 it is
    :class:`~jaxbandits.policies.MUCB`.

    Args:
        pulls: L from 1 to 120, at most the number of arms of the smallest instance (else its lanes end as invalid).
        alpha: α ≥ 0, default 2⁻⁴, that of m-UCB.

    Raises:
        InputError: before anything runs, for L out of range, or an environment with several resources.

    Does not leap: its action is a set. A result's regret is against the best single arm;
    :func:`jaxbandits.oracles.optimum.best_set_rate` gives the best rate of a set.

    Source: IJCAI 2016, of which only the abstract could be read; the rest is from memory, as is α.

    Example:
        >>> import jaxbandits as jb
        >>> policy = jb.policies.MRCB(pulls=2)
        >>> policy.blank_action(jb.environments.FiniteSpec(arms=5)).shape
        (2,)
    """

    pulls: int = static(default=2)
    alpha: Any = leaf(default=2.0**-4, at_least=0)

    plays: ClassVar[type] = FiniteSpec

    def check(self, spec: FiniteSpec) -> None:
        """L must fit the arms."""
        most = min(spec.arms, _MOST)
        if not isinstance(self.pulls, int) or isinstance(self.pulls, bool) or not 1 <= self.pulls <= most:
            raise bad("MRCB.pulls", self.pulls, f"a whole number from 1 to {most}")
        if spec.resources is not None:
            raise bad("environment", f"{spec.resources} resources", "one with one cost for MRCB")

    def init(self, spec: FiniteSpec) -> ArmStatistics:
        """Empty statistics."""
        return arm_statistics.empty(spec.arms)

    def blank_action(self, spec: FiniteSpec) -> jax.Array:
        """A set of L arms."""
        return jnp.zeros((self.pulls,), jnp.int32)

    def update(self, state: ArmStatistics, key: jax.Array, observation: Observation) -> ArmStatistics:
        """Add the L outcomes."""
        seen = observation.feedback
        return arm_statistics.record(state, observation.action, seen.reward, seen.cost)

    def select(self, state: ArmStatistics, key: jax.Array, view: View) -> tuple[ArmStatistics, jax.Array]:
        """The best set."""
        width = state.pulls.shape[0]
        there, ids = view.available, jax.lax.iota(jnp.int32, width)
        upper, lower = self.bounds(state, view.round)
        order = streams.priorities(streams.policy_words(key, view.round, Role.TIE)[0], width)

        def top(value: jax.Array, order: jax.Array) -> jax.Array:
            """The L largest, smaller ``order`` first among equals, absent arms last."""
            if self.pulls > _FEW:
                keys = (jnp.where(there, -value, jnp.inf), order, ids)
                return jax.lax.sort(keys, num_keys=2)[2][: self.pulls]
            rest, found = jnp.where(there, sortable(value), ABSENT), []
            for _ in range(self.pulls):
                found.append(first_of_largest(rest, order, ids)[1])
                rest = jnp.where(ids == found[-1], ABSENT, rest)
            return jnp.stack(found)

        def ratio(chosen: jax.Array) -> jax.Array:
            return jnp.sum(upper[chosen]) / jnp.sum(lower[chosen])

        free = there & (lower <= 0)
        endless = jnp.sum(free, dtype=jnp.int32) >= self.pulls
        first = top(jnp.where(endless, free.astype(jnp.float32), upper), order)

        def improves(tried: tuple[jax.Array, jax.Array]) -> jax.Array:
            chosen, before = tried
            return ~endless & (ratio(chosen) > before)

        def improve(tried: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            rate = ratio(tried[0])
            return top(upper - rate * lower, order), rate

        chosen, _ = jax.lax.while_loop(improves, improve, (first, jnp.float32(-1)))
        fresh = there & (state.pulls == 0)
        starting = top(fresh.astype(jnp.float32), ids.astype(jnp.uint32))
        return state, jnp.where(jnp.any(fresh), starting, chosen)

    def bounds(self, state: ArmStatistics, round: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(U, L): min(r̄ + ε, 1) and max(c̄ − ε, 0), ``f32[K]``; 1 and 0 for an arm never pulled."""
        arms = jax.lax.optimization_barrier(arm_statistics.as_floats(state, round))
        epsilon = jnp.where(arms.n > 0, radius(self.alpha, arms), jnp.inf)
        upper = jnp.where(arms.n > 0, jnp.minimum(arms.mean_reward + epsilon, 1), 1.0)
        lower = jnp.where(arms.n > 0, jnp.maximum(arms.mean_cost - epsilon, 0), 0.0)
        return upper, lower
