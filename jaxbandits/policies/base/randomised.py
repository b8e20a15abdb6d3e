"""Randomised policies: an arm is drawn with a probability that is smooth in the policy's parameters."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import arm_statistics, streams
from jaxbandits.core.arm_statistics import Arms, ArmStatistics
from jaxbandits.core.capabilities import own_method
from jaxbandits.core.protocol import View
from jaxbandits.core.user_methods import one_for_each_arm
from jaxbandits.policies.base.arm_totals import ArmTotals
from jaxbandits.policies.base.ties import largest

_CHOICE = 32  # the role of these draws


class RandomisedPolicy(ArmTotals):
    """Draw arm k with probability p_k ∝ exp(ℓ_k). Write :meth:`logits`, which gives ℓ.

    The draw is argmax_k (ℓ_k + G_k) with independent standard Gumbel G_k, addressed by (round, arm), so a small change
    of a parameter changes few draws, and an arm that does not exist changes none.

    Attributes:
        spreads: True if the logits read Σx(1 − x) (``arms.reward_spread``, ``arms.cost_spread``).
        reads_costs: False if the logits do not depend on costs; exact values are then far cheaper.
    """

    reads_costs: ClassVar[bool] = True

    @abstractmethod
    def logits(self, arms: Arms, available: jax.Array) -> jax.Array:
        """ℓ, ``[K]``, up to a constant; −∞ for an arm that is not drawn, as those that are not ``available``."""
        raise NotImplementedError

    def log_probabilities(self, state: ArmStatistics, view: View) -> jax.Array:
        """ln p of every arm at the round that ``view`` describes, ``f32[K]``."""
        return jax.nn.log_softmax(self.logits(arm_statistics.as_floats(state, view.round), view.available))

    def select(self, state: ArmStatistics, key: jax.Array, view: View) -> tuple[ArmStatistics, jax.Array]:
        """Draw an arm."""
        return state, largest(self.perturbed(state, key, view), key, view)

    def select_while_open(
        self, state: ArmStatistics, key: jax.Array, view: View, open: jax.Array
    ) -> tuple[ArmStatistics, jax.Array]:
        """Open pulls count at their arm's current means: logits may leave no choice, as where arms are fresh."""
        return state, self.select(arm_statistics.counted(state, open), key, view)[1]

    def perturbed(self, state: ArmStatistics, key: jax.Array, view: View) -> jax.Array:
        """ℓ + G, ``f32[K]``: the arm that is drawn has the largest."""
        arms = arm_statistics.as_floats(state, view.round)
        mine, arms, available = jax.lax.optimization_barrier((self, arms, view.available))
        given = one_for_each_arm(self, "logits", mine.logits(arms, available), state.pulls.shape)
        return given + gumbel(key, view.round, state.pulls.shape[0])


_BY_LOGITS = "blank_action", "update", "select", "step", "status", "perturbed", "log_probabilities"


def chooses_by_logits(policy: object) -> TypeGuard[RandomisedPolicy]:
    """Is it a randomised policy of which nothing but the logits is its own, so that others may ask for them alone?"""
    return isinstance(policy, RandomisedPolicy) and own_method(policy, RandomisedPolicy, *_BY_LOGITS) is None


def gumbel(key: jax.Array, round: jax.Array, arms: int) -> jax.Array:
    """Standard Gumbel draws G = −ln E, ``f32[arms]``, E exponential from 32 bits of the address (round, arm)."""
    ids = jax.lax.iota(jnp.uint32, arms)
    word = jax.vmap(lambda arm: streams.policy_words(key, round, _CHOICE, arm)[0])(ids)
    u = (word.astype(jnp.float32) + 0.5) * np.float32(2.0**-32)  # small u, the ones that win, are the finest
    return -jnp.log(-jnp.log1p(-jnp.minimum(u, np.float32(1 - 2.0**-24))))
