"""b-greedy: ε-greedy on the ratio with a falling ε."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxbandits.core import streams
from jaxbandits.core.arm_statistics import Arms, ArmStatistics, as_floats
from jaxbandits.core.protocol import View
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.streams import Role
from jaxbandits.policies.base.index import IndexPolicy, evaluate
from jaxbandits.policies.base.ties import largest


@pytree
class BGreedy(IndexPolicy):
    """b-greedy (Xia et al., Neurocomputing 258, 2017; reference code of Heyden et al., KDD 2024).

    Each arm once; then with probability :math:`\\varepsilon_t = \\min(1, aK/(t-1))` an arm uniformly at random (the
    greedy one included), else :math:`\\arg\\max_k \\sum r / (\\sum c + 10^{-10})`, exact ties at random.

    Args:
        a: a ≥ 0, default 1 (the code's; the 2017 paper's own multiplier could not be read).

    Deviations: the schedule is the code's; an absent arm does not count towards K.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.BGreedy().a
        1.0
    """

    a: Any = leaf(default=1.0, at_least=0)

    plays: ClassVar[type] = FiniteSpec

    def score(self, arms: Arms) -> jax.Array:
        """Σr / (Σc + 1e-10)."""
        return arms.reward / (arms.cost + 1e-10)

    def select(self, state: ArmStatistics, key: jax.Array, view: View) -> tuple[ArmStatistics, jax.Array]:
        """Explore or exploit."""
        greedy = largest(evaluate(self, as_floats(state, view.round)), key, view, fresh=state.pulls == 0)
        coin = streams.policy_words(key, view.round, Role.EXPLORE)
        arms = jnp.sum(view.available, dtype=jnp.int32)
        at_random = streams.available_arm(coin[1], view.available)
        before = jnp.maximum(view.round - 1, 1).astype(jnp.float32)
        explore = streams.uniform(coin[0]) * before < self.a * arms.astype(jnp.float32)
        starting = jnp.any((state.pulls == 0) & view.available)
        return state, jnp.where(explore & ~starting, at_random, greedy)
