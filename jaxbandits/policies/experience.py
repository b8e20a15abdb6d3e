"""Policies that start from past data, or that learn in batches."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics.arrays import ArrayLike
from jaxbandits.core import arm_statistics, ticks
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.core.checks import InputError, bad, numbers, whole_number
from jaxbandits.core.protocol import Observation, Policy, View
from jaxbandits.core.pytrees import Pytree, leaf, pytree, static
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.ticks import Total
from jaxbandits.policies.base import (
    AroundIndex,
    IndexPolicy,
    check_for_each_arm,
    check_one_cost,
    chooses_by_score,
)
from jaxbandits.policies.wrappers import AroundChoice, Choice, WithState

# --- A history: how often each arm was pulled before the first round, and what it brought


@pytree
class History:
    """Past data of each arm: pulls, Σ reward, Σ cost. Build one with :meth:`of`.

    Sums are kept as whole units and ticks, since a float32 would round them.
    """

    pulls: ArrayLike = leaf(core=1, integer=True, at_least=0)  # i32[…, K]
    reward: ArrayLike = leaf(core=1, integer=True, at_least=0)  # whole units of the sums
    reward_part: ArrayLike = leaf(core=1, integer=True, at_least=0)  # and ticks
    cost: ArrayLike = leaf(core=1, integer=True, at_least=0)
    cost_part: ArrayLike = leaf(core=1, integer=True, at_least=0)

    rests: ClassVar[bool] = True  # it is what it is

    @staticmethod
    def of(pulls: Any, reward: Any, cost: Any) -> History:
        """A history for one instance, ``[K]``, or for each, ``[instance, K]``.

        Args:
            pulls: whole numbers of at least 0; 0 for an arm that was never tried, or that an
                instance has not.
            reward, cost: sums over these pulls, in the environment's units, from 0 to ``pulls``
                each.

        Example:
            >>> from jaxbandits.policies import History
            >>> History.of([90, 10], reward=[45, 4.5], cost=[60, 5]).reward_part.tolist()
            [0, 8388608]
        """
        n, *sums = (
            numbers(name, x) for name, x in (("pulls", pulls), ("reward", reward), ("cost", cost))
        )
        if n.ndim not in (1, 2) or any(x.shape != n.shape for x in sums):
            shapes = " and ".join(str(list(x.shape)) for x in (n, *sums))
            raise InputError(
                f"pulls, reward, cost: shapes {shapes} given; all must be [K] or [instance, K]"
            )
        if not ((n >= 0) & (n == np.rint(n)) & (n < 2**30)).all():
            raise bad("pulls", pulls, "whole numbers from 0 to 2**30")
        for name, x in zip(("reward", "cost"), sums, strict=True):
            if not ((x >= 0) & (x <= n)).all():
                must = "sums over the pulls: from 0 to the number of pulls of each arm"
                raise bad(name, x.tolist(), must)
        parts = [ticks.split(ticks.from_units(x)) for x in sums]
        lead = (lambda x: x[None]) if n.ndim == 2 else (lambda x: x)  # [setting, instance, K]
        arrays = [n.astype(np.int32), *(np.asarray(half) for part in parts for half in part)]
        return History(*map(lead, arrays))

    def totals(self, spreads: bool) -> ArmStatistics:
        """The data as totals, ``[K]``; Σx(1 − x), if used, is 0, as for 0/1 outcomes."""
        none = ticks.zero(jnp.shape(self.pulls)) if spreads else None
        reward, cost = Total(self.reward, self.reward_part), Total(self.cost, self.cost_part)  # type: ignore[arg-type]
        return jax.tree.map(jnp.asarray, ArmStatistics(self.pulls, reward, cost, none, none))  # type: ignore[arg-type]

    @property
    def rounds(self) -> jax.Array:
        """The number of all pulls, ``i32[]``, from which rounds continue."""
        return jnp.sum(jnp.asarray(self.pulls), axis=-1, dtype=jnp.int32)


def experienced(policy: Policy, history: History) -> Policy:
    """The policy as if it had already made these pulls with these sums; rounds continue from there.

    Its statistics begin at the history's, and t of its formula at the number of all earlier pulls +
    1. So an arm that was tried enough needs no initial pulls, and one never tried is pulled
    at once. Draws keep the addresses of the run's own rounds. Index policies that leap leap on.

    Args:
        policy: one that keeps sums over observations (every index, randomised and average-cost
            policy), or :class:`~jaxbandits.policies.BudgetedThompson`; one cost.
        history: from :meth:`History.of`.

    Returns:
        A policy.

    Raises:
        InputError: a policy that learns in another way.

    Source: warm start from logged data, as in Shivaswamy, Joachims, Multi-armed bandit problems
    with history, AISTATS 2012 (UCB1 with counts and means that include the history).

    Deviations: Σx(1 − x) is not part of a history, and counts as 0 until pulls bring it.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.6], [0.5, 0.3])
        >>> history = jb.policies.History.of([400, 400], reward=[203, 246], cost=[199, 124])
        >>> both = [jb.policies.OmegaUCB(rho=0.25), jb.policies.experienced(jb.policies.OmegaUCB(rho=0.25), history)]
        >>> limit = jb.TotalBudget(100.0, last_pull="counts")
        >>> result = jb.simulate(both, arms, limit, key=jax.random.key(0), replicates=50, marks=1)
        >>> result.regret.mean(["instance", "replicate", "mark"]).round(1).values.tolist()
        [10.2, 0.0]
    """
    if chooses_by_score(policy):
        return ExperiencedIndex(policy, history)
    return Experienced(policy, history)


@pytree
class ExperiencedIndex(AroundIndex):
    """An index policy that starts from a history; made by :func:`experienced`."""

    policy: IndexPolicy = leaf()
    history: History | None = leaf()
    earlier: ArrayLike = leaf(default=None, integer=True)  # set by `scoring`

    called: ClassVar[str] = "{} from a history"

    @property
    def rests(self) -> bool:  # type: ignore[override]
        return self.policy.rests

    def check(self, spec: FiniteSpec) -> None:
        super().check(spec)
        check_for_each_arm("history", getattr(self.history, "pulls", None), spec)

    def init(self, spec: FiniteSpec) -> ArmStatistics:
        return self.history.totals(self.spreads)  # type: ignore[union-attr]

    def scoring(self) -> IndexPolicy:
        """The policy for scores, which needs only the length of the history."""
        if self.history is None:
            return self
        return type(self)(self.policy.scoring(), None, self.history.rounds)

    def earlier_pulls(self) -> jax.Array:
        return jnp.asarray(self.history.pulls)  # type: ignore[union-attr]

    def own_round(self, round: jax.Array) -> jax.Array:
        """The round as the inner policy counts it, after the rounds of the history."""
        return round + (self.earlier if self.history is None else self.history.rounds)


@pytree
class Experienced(AroundChoice):
    """Any other policy that starts from a history; made by :func:`experienced`."""

    policy: Policy = leaf()
    history: History = leaf()

    called: ClassVar[str] = "{} from a history"

    @property
    def spreads(self) -> bool:
        return getattr(self.policy, "spreads", False)

    def check(self, spec: FiniteSpec) -> None:
        _check_sums(self, self.policy, spec)
        check_for_each_arm("history", self.history.pulls, spec)
        super().check(spec)

    def init(self, spec: FiniteSpec) -> Pytree:
        return self.with_history(self.policy.init(spec), self.history.totals(self.spreads))

    def with_history(self, state: Pytree, totals: ArmStatistics) -> Pytree:
        """The inner policy's state as if it had also learned these pulls."""
        return self.policy.with_history(state, totals)  # type: ignore[attr-defined]

    def _later(self, view: View) -> View:
        return view._replace(round=view.round + self.history.rounds)

    def update(self, state: Pytree, key: jax.Array, observation: Observation) -> Pytree:
        """The inner policy learns, with rounds as it counts them."""
        return self.policy.update(
            state, key, observation._replace(view=self._later(observation.view))
        )

    def decide(
        self, state: Pytree, key: jax.Array, view: View, choose: Choice
    ) -> tuple[Pytree, Pytree]:
        return choose(state, key, self._later(view))


def _check_sums(owner: Policy, inner: Policy, spec: FiniteSpec) -> None:
    """Refuse a policy inside whose statistics cannot be added to, and several costs."""
    check_one_cost(owner, spec)
    if not hasattr(inner, "with_history"):
        must = f"a policy that sums each arm's outcomes, such as OmegaUCB(), inside {type(owner).__name__}"
        raise bad("policy", type(inner).__name__, must)


# --- Learning in batches: one decides, and sees what came of it, once a day


class BatchedState(NamedTuple):
    """The inner policy's state, and the outcomes of batches that it does not see yet."""

    inner: Pytree
    batch: jax.Array  # i32[L + 1]: the number of the batch at each place; −1: none
    brought: ArmStatistics  # [L + 1, K]


@pytree
class InBatches(WithState):
    """The inner policy with outcomes revealed once per batch of rounds, ``later`` batches late.

    Batch d has the rounds from :math:`1 + dm` to :math:`(d + 1)m`. Its outcomes are known from
    the first round of batch :math:`d + 1 + L` on. Until then they are open: the inner policy counts
    them at their arm's current means (:meth:`~jaxbandits.Policy.select_while_open`), so that the
    pulls of a batch are spread over the arms.

    To set budgets once a day and see conversions a week later, use ``InBatches(policy, size=m,
    later=7)`` for m clicks a day. It stores K numbers per batch, whatever m is; for outcomes that
    arrive one by one see :class:`~jaxbandits.environments.Delayed`.

    Args:
        policy: one that learns by sums (see :func:`experienced`, which may be inside), of one cost.
        size: m ≥ 1, rounds of a batch: a number, or one for each instance.
        later: L ≥ 0.

    Raises:
        InputError: before anything runs, for a policy that learns in another way.

    Source: batched bandits, Perchet, Rigollet, Chassang, Snowberg, Annals of Statistics 44, 2016,
    with batches of one size.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.6], [0.5, 0.3])
        >>> daily = [jb.policies.InBatches(jb.policies.OmegaUCB(rho=0.25), size=100, later=7 * late) for late in (0, 1)]
        >>> policies = [jb.policies.OmegaUCB(rho=0.25), *daily]
        >>> result = jb.simulate(policies, arms, jb.Horizon(3000), key=jax.random.key(0), replicates=50, marks=1)
        >>> result.spent.mean(["instance", "replicate", "mark"]).round().values.tolist()  # the cheaper arm is better
        [910.0, 914.0, 983.0]
    """

    policy: Policy = leaf()
    size: ArrayLike = leaf(integer=True, at_least=1)
    later: int = static(default=0)

    def check(self, spec: FiniteSpec) -> None:
        _check_sums(self, self.policy, spec)
        whole_number("InBatches.later", self.later, 0, 2**16)
        super().check(spec)

    def init(self, spec: FiniteSpec) -> BatchedState:
        blank = arm_statistics.empty(spec.arms, spreads=getattr(self.policy, "spreads", False))
        rows = jax.tree.map(lambda x: jnp.zeros((self.later + 1, *x.shape), x.dtype), blank)
        return BatchedState(
            self.policy.init(spec), jnp.full((self.later + 1,), -1, jnp.int32), rows
        )

    def update(self, state: BatchedState, key: jax.Array, observation: Observation) -> BatchedState:
        """Book the outcome under the batch of the round in which it was decided."""
        batch = (observation.view.round - 2) // self.size
        place = batch % (self.later + 1)
        feedback = observation.feedback
        row = jax.tree.map(lambda x: x[place], state.brought)
        row = arm_statistics.record(row, observation.action, feedback.reward, feedback.cost)
        brought = jax.tree.map(lambda all, x: all.at[place].set(x), state.brought, row)
        return state._replace(batch=state.batch.at[place].set(batch), brought=brought)

    def _opened(self, state: BatchedState, round: jax.Array) -> tuple[BatchedState, jax.Array]:
        """The state with all outcomes known by this round, and the open pulls, ``i32[K]``."""
        now = (round - 1) // self.size
        arrived = (state.batch >= 0) & (state.batch < now - self.later)

        def sums(x: jax.Array, mask: jax.Array) -> jax.Array:
            return jnp.sum(
                jnp.where(mask.reshape(-1, *[1] * (x.ndim - 1)), x, 0), axis=0, dtype=x.dtype
            )

        def learn(state: BatchedState) -> BatchedState:
            # Batches come one by one, as a rule; ticks of several must carry.
            def learn_batch(place: jax.Array, state: BatchedState) -> BatchedState:
                more = jax.tree.map(lambda x: jnp.where(arrived[place], x[place], 0), state.brought)
                brought = jax.tree.map(
                    lambda x: x.at[place].set(jnp.where(arrived[place], 0, x[place])), state.brought
                )
                inner = self.policy.with_history(state.inner, more)  # type: ignore[attr-defined]
                batch = state.batch.at[place].set(jnp.where(arrived[place], -1, state.batch[place]))
                return BatchedState(inner, batch, brought)

            return jax.lax.fori_loop(0, self.later + 1, learn_batch, state)

        state = jax.lax.cond(jnp.any(arrived), learn, lambda state: state, state)
        return state, sums(state.brought.pulls, jnp.ones_like(arrived))

    def decide(
        self, state: BatchedState, key: jax.Array, view: View, choose: Choice
    ) -> tuple[BatchedState, Pytree]:
        state, waiting = self._opened(state, view.round)
        waiting = waiting if choose.open is None else waiting + choose.open
        inner, arm = choose._replace(open=waiting)(state.inner, key, view)
        return state._replace(inner=inner), arm
