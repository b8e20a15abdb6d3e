"""Many policies that are a score alone in one compiled program: rows that compile once."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxbandits import policies
from jaxbandits.core.arm_statistics import Arms
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.policies.base import IndexPolicy


@pytree
class Committee(IndexPolicy):
    """A lane is played by the member ``member_id``; every member's score is computed."""

    member_id: Any = leaf(integer=True, at_least=0)
    budget_ucb: IndexPolicy = leaf()
    ucb_sc_plus: IndexPolicy = leaf()
    kl_ucb_sc_plus: IndexPolicy = leaf()
    ucb_sc: IndexPolicy = leaf()
    kl_ucb_sc: IndexPolicy = leaf()
    fractional_kube: IndexPolicy = leaf()
    ucb_bv1: IndexPolicy = leaf()
    pd_bwk: IndexPolicy = leaf()
    ucb_b2: IndexPolicy = leaf()
    ucb1: IndexPolicy = leaf()
    estimated_budget_ucb: IndexPolicy = leaf()
    ucb_bv2: IndexPolicy = leaf()

    spreads: ClassVar[bool] = True
    rounding: ClassVar[float] = policies.KLUCBSCPlus.rounding  # the roughest member's

    @staticmethod
    def members() -> dict[str, IndexPolicy]:
        """All of them, by field."""
        return {
            "budget_ucb": policies.BudgetUCB(min_cost=0.1),
            "ucb_sc_plus": policies.UCBSCPlus(),
            "kl_ucb_sc_plus": policies.KLUCBSCPlus(),
            "ucb_sc": policies.UCBSC(),
            "kl_ucb_sc": policies.KLUCBSC(),
            "fractional_kube": policies.FractionalKUBE(),
            "ucb_bv1": policies.UCBBV1(min_cost=0.5),
            "pd_bwk": policies.PDBwK(c_rad=0.5),
            "ucb_b2": policies.UCBB2(),
            "ucb1": policies.UCB1(),
            "estimated_budget_ucb": policies.EstimatedBudgetUCB(),
            "ucb_bv2": policies.UCBBV2(),
        }

    @classmethod
    def played_by(cls, member_id: Any) -> Committee:
        """The members with these places play: one setting each."""
        return cls(member_id=member_id, **cls.members())

    def score(self, arms: Arms) -> jax.Array:
        """The score of the member that plays."""
        score = jnp.zeros_like(arms.n)
        for place, name in enumerate(self.members()):
            if (member := getattr(self, name)) is not None:
                score = jnp.where(self.member_id == place, member.score(arms), score)
        return score


@pytree
class RestingCommittee(Committee):
    """Without members whose scores do not rest: a wrapper rests only if all it wraps does."""

    rests: ClassVar[bool] = True
    rounding: ClassVar[float] = IndexPolicy.rounding

    @classmethod
    def played_by(cls, member_id: Any) -> Committee:
        """The others' fields stay empty."""
        return cls(
            member_id=member_id,
            **{name: x if x.rests else None for name, x in cls.members().items()},
        )  # type: ignore[arg-type]
