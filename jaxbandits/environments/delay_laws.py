"""How long a request's outcome takes, in rounds: 0 is told before the next round is decided."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import streams
from jaxbandits.core.errors import bad
from jaxbandits.core.numbers import numbers
from jaxbandits.core.pytrees import leaf, pytree, static

NEVER = np.int32(1 << 30)  # rounds: no run is that long


class DelayLaw:
    """A law of delays; leaves carry a leading instance axis, as an environment's do.

    Example:
        >>> import jaxbandits as jb
        >>> @jb.pytree
        ... class OddRoundsLater(jb.environments.DelayLaw):
        ...     def delay(self, word, round):
        ...         return round % 2
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.9], [0.9, 0.3])
        >>> jb.environments.Delayed(arms, OddRoundsLater(), room=4).instances
        1
    """

    @abstractmethod
    def delay(self, word: jax.Array, round: jax.Array) -> jax.Array:
        """The delay of the request of this round, ``i32[]`` from 0 to ``NEVER``, by 32 random bits."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise :class:`InputError` on impossible parameters."""


@pytree
class FixedDelay(DelayLaw):
    """Every outcome takes the same number of rounds.

    Args:
        rounds: a whole number from 0 on.

    Example:
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.9], [0.9, 0.3])
        >>> jb.environments.Delayed(arms, jb.environments.FixedDelay(20), room=50).instances
        1
    """

    rounds: int = static(default=0)

    def check(self) -> None:
        """A whole number."""
        _whole("rounds", self.rounds, 0)

    def delay(self, word: jax.Array, round: jax.Array) -> jax.Array:
        """``rounds``."""
        return jnp.int32(self.rounds)


@pytree
class Batched(DelayLaw):
    """Rounds come in batches of ``size``: decisions of a batch see nothing of each other, the next batch sees all.

    Args:
        size: a whole number from 1 on.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxbandits.environments import Batched
        >>> [int(Batched(4).delay(jnp.uint32(0), jnp.int32(round))) for round in (1, 2, 3, 4, 5)]
        [3, 2, 1, 0, 3]
    """

    size: int = static(default=1)

    def check(self) -> None:
        """A whole number."""
        _whole("size", self.size, 1)

    def delay(self, word: jax.Array, round: jax.Array) -> jax.Array:
        """Until the batch is complete."""
        return (-round) % jnp.int32(self.size)


@pytree
class TableDelay(DelayLaw):
    """P(delay = j) ∝ ``weights[j]``; with probability ``lost`` the outcome never comes.

    Cut to multiples of 2⁻²⁴, as all chances are.

    Args:
        cumulated: ``i32[instance, J]``; use :meth:`of` or :meth:`geometric`.
    """

    cumulated: Any = leaf()

    @staticmethod
    def of(weights: Any, lost: float = 0.0, instances: int = 1) -> TableDelay:
        """A table of weights, the same for every instance.

        Raises:
            InputError: weights that are negative, not finite or all 0; a chance outside [0, 1).

        Example:
            >>> from jaxbandits.environments import TableDelay
            >>> TableDelay.of([1, 0, 1]).cumulated.tolist()
            [[8388608, 8388608, 16777216]]
        """
        w = numbers("weights", weights)
        if w.ndim != 1 or not w.size or not (np.isfinite(w) & (w >= 0)).all() or w.sum() <= 0:
            raise bad("weights", weights, "a list of finite numbers of at least 0, not all 0")
        if not 0 <= lost < 1:
            raise bad("lost", lost, "at least 0 and below 1")
        share = np.cumsum(w) / w.sum() * (1 - lost)
        table = np.rint(share * (1 << 24)).astype(np.int32)
        return TableDelay(np.broadcast_to(table, (instances, table.size)).copy())

    @staticmethod
    def geometric(mean: float, lost: float = 0.0, instances: int = 1) -> TableDelay:
        """P(delay = j) ∝ (mean/(1 + mean))ʲ, cut where less than 2⁻²⁴ is left.

        Raises:
            InputError: a mean that is not from 0 to 1,000: its table would be too long.
        """
        if not 0 <= mean <= 1000:
            raise bad("mean", mean, "from 0 to 1000")
        q = mean / (1 + mean)
        length = 1 if q == 0 else int(np.ceil(24 * np.log(2) / -np.log(q))) + 1
        return TableDelay.of(q ** np.arange(length), lost, instances)

    def delay(self, word: jax.Array, round: jax.Array) -> jax.Array:
        """By the inverse of the distribution function."""
        table = self.cumulated[:]
        later = jnp.sum((streams.uniform_ticks(word) >= table).astype(jnp.int32), dtype=jnp.int32)
        return jnp.where(later < table.shape[0], later, NEVER)


def _whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value < NEVER:
        raise bad(name, value, f"a whole number from {least} to {NEVER - 1}")
