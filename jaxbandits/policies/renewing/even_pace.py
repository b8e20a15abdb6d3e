"""An even pace: at any moment no more may be spent than the share of the period's requests that have come."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import purses, ticks
from jaxbandits.core.protocol import Policy, View
from jaxbandits.core.pytrees import Pytree, leaf, pytree, select_tree
from jaxbandits.core.specs import SKIP
from jaxbandits.policies.base.around import Around
from jaxbandits.policies.renewing.price_pacer import allowance_of


@pytree
class EvenPace(Around):
    """The inner policy acts among the arms whose bounds fit under the even line; with none the request is skipped.

    Held back is amount · (requests still expected − 1) / (requests expected in the period), of each budget.

    Args:
        policy: any policy for finitely many arms.
        share: how much of the even line is held back, from 0 (nothing) to 1; default 1.

    Raises:
        InputError: before anything runs, under a constraint other than :class:`~jaxbandits.Renewing`.

    Source: throttling, as ad servers do it.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.EvenPace(jb.policies.UCB1()).share
        1.0
    """

    policy: Policy = leaf()
    share: Any = leaf(default=1.0, at_least=0, at_most=1)

    def _paced(self, view: View) -> tuple[View, jax.Array]:
        money = allowance_of(view)
        kept = self.share * ticks.to_float(money.amount) * ((money.requests - 1) / money.total)
        whole = jnp.floor(kept)
        back = ticks.Total(whole.astype(jnp.int32), jnp.floor((kept - whole) * np.float32(ticks.ONE)).astype(jnp.int32))
        left = ticks.minus(ticks.Total(money.whole, money.part), back)
        now = money._replace(whole=left.whole, part=left.part)
        available = view.available & purses.affordable(now, money.bound, money.scope)  # type: ignore[arg-type]
        return view._replace(available=available), ~jnp.any(available)

    def select(self, state: Pytree, key: jax.Array, view: View) -> tuple[Pytree, Pytree]:
        """Under the line, or a skip."""
        return self.select_while_open(state, key, view, jnp.zeros(view.available.shape, jnp.int32))

    def select_while_open(self, state: Pytree, key: jax.Array, view: View, open: jax.Array) -> tuple[Pytree, Pytree]:
        """The inner policy's, under the line."""
        view, none = self._paced(view)
        acted, arm = self.policy.select_while_open(state, key, view, open)
        return select_tree(none, state, acted), jnp.where(none, jnp.int32(SKIP), arm)
