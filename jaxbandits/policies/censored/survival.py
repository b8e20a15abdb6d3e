"""Estimates of the probability P(C > τ) that a limit is exceeded, for the policies of censored arms.

After a censored round (C > τ_t) nothing is known of C > τ for τ > τ_t, which the printed estimate (9) of the RCUCB
paper needs. Each class here is one way out. Arrays are over pairs, ``[n·m]``; counts are int32 and exact.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.core.censored_specs import CensoredSpec

Counts = tuple[jax.Array, ...]


class Seen(NamedTuple):
    """One round as the pairs see it: ``bool[n·m]``."""

    mine: jax.Array  # pairs of the arm that was pulled
    reach: jax.Array  # … whose limit τ is at most the round's
    within: jax.Array  # C ≤ τ was seen (False everywhere after a censored round)
    before: jax.Array  # C ≤ (the next smaller limit) was seen
    revealed: jax.Array  # C ≤ τ in truth; meaningful only where consumption is revealed


class Tail(NamedTuple):
    """An estimate of P(C > τ) and the number of rounds that its confidence width counts, ``f32[n·m]``."""

    share: jax.Array
    rounds: jax.Array


class Survival:
    """A survival estimate. ``pulls`` is N_{i,0}, ``reach`` N_{i,τ}, both ``i32[n·m]``."""

    needs_revealed = False

    def start(self, spec: CensoredSpec) -> Counts:
        """Counts before the first round."""
        return (jnp.zeros((spec.pairs,), jnp.int32),)

    @abstractmethod
    def record(self, counts: Counts, seen: Seen) -> Counts:
        """Add a round."""
        raise NotImplementedError

    def tail(self, spec: CensoredSpec, counts: Counts, pulls: jax.Array, reach: jax.Array) -> Tail:
        """The estimate; 0 rounds give an undefined share, which the caller masks."""
        return _share(counts[0], pulls)


class Literal(Survival):
    """S counts C > τ over all pulls of the arm, censored or not, as printed: needs more than the feedback (1)."""

    needs_revealed = True

    def record(self, counts: Counts, seen: Seen) -> Counts:
        """S += 1{C > τ}."""
        return (counts[0] + (seen.mine & ~seen.revealed),)


class Infinite(Survival):
    """As literal, a censored round counting as C = ∞: legal, slightly biased upwards."""

    def record(self, counts: Counts, seen: Seen) -> Counts:
        """S += 1{censored or C > τ}."""
        return (counts[0] + (seen.mine & ~seen.within),)


class Legal(Survival):
    """S counts over the rounds with limit ≥ τ only, in which 1{C > τ} is known; its width counts those rounds."""

    def record(self, counts: Counts, seen: Seen) -> Counts:
        """S += 1{C > τ} where τ ≤ τ_t."""
        return (counts[0] + (seen.reach & ~seen.within),)

    def tail(self, spec: CensoredSpec, counts: Counts, pulls: jax.Array, reach: jax.Array) -> Tail:
        """S / N_{i,τ}."""
        return _share(counts[0], reach)


class KaplanMeier(Survival):
    """The product-limit estimate Π (1 − events/at risk) over the cells between limits: legal, uses all rounds (ours).

    Rounds are censored exactly at limits, so counts per cell give what the product over single consumptions gives.
    The width is literal's, with N_{i,0}; no theory covers it.
    """

    def start(self, spec: CensoredSpec) -> Counts:
        """(at risk, events) per cell."""
        return (jnp.zeros((spec.pairs,), jnp.int32), jnp.zeros((spec.pairs,), jnp.int32))

    def record(self, counts: Counts, seen: Seen) -> Counts:
        """A round is at risk in every cell up to its limit that its consumption did not end before."""
        risk = seen.reach & ~seen.before
        return (counts[0] + risk, counts[1] + (risk & seen.within))

    def tail(self, spec: CensoredSpec, counts: Counts, pulls: jax.Array, reach: jax.Array) -> Tail:
        """The product up to every limit."""
        risk, events = (x.reshape(spec.arms, -1) for x in counts)
        stays = jnp.where(risk > 0, (risk - events).astype(jnp.float32) / jnp.maximum(risk, 1).astype(jnp.float32), 1.0)
        columns = [stays[:, 0]]
        for j in range(1, stays.shape[1]):  # in this order, so that no compilation multiplies in another
            columns.append(columns[-1] * stays[:, j])
        return Tail(jnp.stack(columns, axis=1).reshape(-1), pulls.astype(jnp.float32))


def _share(beyond: jax.Array, rounds: jax.Array) -> Tail:
    n = rounds.astype(jnp.float32)
    return Tail(beyond.astype(jnp.float32) / jnp.maximum(n, 1), n)


SURVIVALS: dict[str, Survival] = {
    "literal": Literal(),
    "legal": Legal(),
    "infinite": Infinite(),
    "kaplan_meier": KaplanMeier(),
}
