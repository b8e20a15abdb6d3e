"""SUAK: strategic under-utilisation for anytime knapsacks."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits._numerics.knapsack_lp import Mixture, best_mixture
from jaxbandits.core import arm_statistics, ticks
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.core.protocol import Observation, View
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.core.specs import SKIP, FiniteSpec
from jaxbandits.core.ticks import Total
from jaxbandits.policies.base.mixture import (
    MixturePolicy,
    alone,
    and_null,
    bounds,
    either,
    fewest,
    floor_ticks,
    left,
    means,
    radius,
)


class SUAKState(NamedTuple):
    """What SUAK remembers."""

    learnt: ArmStatistics
    margin: Total  # [K]: N_l c − Σ cost of arm l, exactly: floats would cancel in ρ̄_l − c
    slack: Total  # []: c N_p − S_p
    exploring: jax.Array  # bool[]: the last pull was one of an uncertain arm


@pytree
class SUAK(MixturePolicy):
    """SUAK: keep Σ_{s≤t} c_s ≤ c·t at every round, learn the best base, and under-use the budget to avoid skips.

    Arm l is *uncertain* while :math:`|\\bar\\rho_l - c| \\le 7\\sqrt{1.5 \\ln t / N_l}`. While there is one: skip if
    :math:`S_p + 1 > c N_p` (:math:`S_p, N_p`: cost and number of such rounds), else pull the uncertain arm with the
    fewest pulls. Otherwise take the base of the optimistic LP, j above c and k below (or the null arm), from
    :math:`\\mu^U, \\rho^L = \\bar\\mu + \\epsilon, \\bar\\rho - \\epsilon` clipped to [0, 1],
    :math:`\\epsilon_l = \\sqrt{3 \\ln t / N_l}`, and play j with probability

    .. math:: p = \\mathrm{clip}\\Big(\\frac{b - \\bar\\rho_k}{\\bar\\rho_j - \\bar\\rho_k}, \\omega, 1 - \\omega\\Big),
        \\quad b = c t - S_c - \\frac{\\ln t}{\\omega^2}, \\quad \\omega = \\frac{d}{2 + d - c}, \\quad
        d = \\min_l \\Big(|\\bar\\rho_l - c| - \\sqrt{1.5 \\ln t / N_l}\\Big).

    Before every pull, skip if :math:`S_c + 1 > c t`, in exact ticks: the constraint is never violated.

    Args:
        c: the bound on the average cost, in (0, 1], in cost units per round; taken down to whole ticks of 2⁻²⁴.
        horizon: None (anytime, default), or T to put ln T in place of ln t into ε.

    Raises:
        InputError: before anything runs, for c outside (0, 1], an environment without null arm or with several
            resources.

    Source: SUAK paper, §3.2, Algorithm 2, Eqs. (4)–(9), App. A.

    Deviations: as printed, N_p counts pulls only, and the first round could never be played; here it counts skips of
    this kind too (as the proof does). The test of S_p is made only while some arm is uncertain, that of S_c before
    every pull. Which uncertain arm is pulled is not said there. ε with ln t is the proof's, with ln T the text's.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.45, 0.7, 0.8], [0.3, 0.75, 0.8])
        >>> result = jb.simulate(jb.policies.SUAK(c=0.5), jb.environments.WithNullArm(arms),
        ...                      jb.AverageCost(c=0.5, rounds=1000), key=jax.random.key(0), replicates=2)
        >>> float(result.violation.max())
        0.0
    """

    c: Any = leaf(above=0, at_most=1)
    horizon: Any = leaf(default=None, integer=True, at_least=1)

    def init(self, spec: FiniteSpec) -> SUAKState:
        """Nothing pulled, nothing spent."""
        return SUAKState(arm_statistics.empty(spec.arms), ticks.zero((spec.arms,)), ticks.zero(), jnp.bool_(False))

    def update(self, state: SUAKState, key: jax.Array, observation: Observation) -> SUAKState:
        """Book the pull; S_p grows only by pulls of uncertain arms."""
        cost = observation.feedback.cost
        pulled = jax.lax.iota(jnp.int32, state.learnt.pulls.shape[0]) == observation.action
        return state._replace(
            learnt=super().update(state.learnt, key, observation),
            margin=ticks.add(state.margin, jnp.where(pulled, floor_ticks(self.c) - cost, 0)),
            slack=ticks.add(state.slack, jnp.where(state.exploring, -cost, 0)),
        )

    def plan(self, state: SUAKState, view: View) -> tuple[SUAKState, Mixture]:
        """Skip, explore, or play the optimistic base."""
        there = view.available
        log = jnp.log(view.round.astype(jnp.float32))
        pulls = jnp.maximum(state.learnt.pulls, 1).astype(jnp.float32)
        gap = jnp.abs(ticks.to_float(state.margin)) / pulls  # |ρ̄ − c|
        middle = radius(state.learnt.pulls, 1.5, log)
        uncertain = there & (gap <= 7 * middle)

        explore = jnp.any(uncertain)
        broke = ticks.exceeds(ticks.count(jnp.int32(1)), state.slack)  # S_p + 1 > c N_p
        over = ticks.exceeds(ticks.count(jnp.int32(1)), left(view))  # S_c + 1 > c t
        counts = explore & (broke | ~over)  # N_p grows
        state = state._replace(
            slack=ticks.add(state.slack, jnp.where(counts, floor_ticks(self.c), 0)),
            exploring=explore & ~broke & ~over,
        )
        d = jnp.min(jnp.where(there, gap - middle, jnp.inf))
        skip = over | (explore & broke)
        main = either(explore, alone(fewest(state.learnt.pulls, uncertain)), self.base(state, view, log, d, there))
        return state, either(skip, alone(jnp.int32(SKIP)), main)

    def base(self, state: SUAKState, view: View, log: jax.Array, d: jax.Array, there: jax.Array) -> Mixture:
        """The optimistic base, mixed so that the budget is under-used."""
        optimist = bounds(state.learnt, 3.0, log if self.horizon is None else jnp.log(self.horizon.astype(jnp.float32)))
        base = best_mixture(optimist.reward_high, optimist.cost_low, self.c, and_null(there))
        omega = d / (2 + d - self.c)
        spare = ticks.to_float(left(view)) - log / omega**2
        cost = jnp.append(means(state.learnt)[1], 0.0)
        ids = jax.lax.iota(jnp.int32, cost.shape[0])
        high, low = (jnp.sum(jnp.where(ids == arm, cost, 0.0)) for arm in (base.high, base.low))
        # One clip serves the three cases of the paper: ω ≤ ½ always, as d ≤ 1.
        share = jnp.clip((spare - low) / (high - low), omega, 1 - omega)
        return base._replace(weight=jnp.where(base.high == base.low, 1.0, share))
