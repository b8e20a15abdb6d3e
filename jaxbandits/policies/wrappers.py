"""Wrappers around a policy: a guard for a constraint, and many requests in flight."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import constraints
from jaxbandits._numerics.arrays import ArrayLike
from jaxbandits.constraints import Allowance, BudgetState
from jaxbandits.core import ticks
from jaxbandits.core.checks import InputError
from jaxbandits.core.protocol import Chosen, Feedback, Observation, Policy, Status, View
from jaxbandits.core.pytrees import Pytree, leaf, pytree, select_tree
from jaxbandits.core.specs import SKIP, Arrivals, DelayedSpec, FiniteSpec
from jaxbandits.policies.base import check_for_each_arm, check_null_arm, money_left


class Around(Policy):
    """A wrapper around the policy in its field ``policy``, to which it forwards other methods.

    Write :meth:`select`; and :meth:`inside` and :meth:`learnt` where the inner policy's world, or
    its state, is only a part of one's own.
    """

    policy: Policy

    plays: ClassVar[type] = FiniteSpec

    def inside(self, spec: Any) -> Any:
        """The spec for the inner policy."""
        return spec

    def learnt(self, state: Pytree) -> Pytree:
        """The state of the inner policy."""
        return state

    def check(self, spec: Any) -> None:
        self.policy.check(self.inside(spec))

    def init(self, spec: Any) -> Pytree:
        return self.policy.init(self.inside(spec))

    def blank_action(self, spec: Any) -> Pytree:
        return self.policy.blank_action(self.inside(spec))

    def update(self, state: Pytree, key: jax.Array, observation: Observation) -> Pytree:
        return self.policy.update(state, key, observation)

    def status(self, state: Pytree) -> jax.Array:
        return self.policy.status(self.learnt(state))


class Choice(NamedTuple):
    """Calls the inner policy's choice, with open pulls or, if None, as if there were none."""

    policy: Policy
    open: jax.Array | None  # i32[K]

    def __call__(self, state: Pytree, key: jax.Array, view: View) -> tuple[Pytree, Pytree]:
        if self.open is None:
            return self.policy.select(state, key, view)
        return self.policy.select_while_open(state, key, view, self.open)


class AroundChoice(Around):
    """A wrapper that calls the inner policy's choice. Subclasses define :meth:`decide`."""

    @abstractmethod
    def decide(self, state: Any, key: jax.Array, view: View, choose: Choice) -> Chosen:
        """(state, action), where ``choose(state, key, view)`` is the inner policy's choice."""

    def select(self, state: Any, key: jax.Array, view: View) -> Chosen:
        return self.decide(state, key, view, Choice(self.policy, None))

    def select_while_open(self, state: Any, key: jax.Array, view: View, open: jax.Array) -> Chosen:
        return self.decide(state, key, view, Choice(self.policy, open))


class WithState(AroundChoice):
    """An :class:`AroundChoice` whose state has the inner policy's state in its field ``inner``."""

    def learnt(self, state: Any) -> Pytree:
        return state.inner


# --- A wrapper that skips rounds in which a pull could overspend


@pytree
class Guarded(Around):
    """Skips the round if a pull that costs ``max_cost`` would break the constraint.

    Otherwise the inner policy chooses.

    Under :class:`~jaxbandits.AverageCost` that is the rule Sc(t−1) + 1 > c·t ⇒ skip, in exact
    ticks. A skipped round changes nothing in the inner policy but its view of the round number.

    Args:
        policy: the policy to guard.
        max_cost: the largest cost of one pull, in (0, 1], default 1.

    Raises:
        InputError: before anything runs, if the environment has no null arm to rest with, or the
            constraint does not report what is left.

    Source: the "skip" wrapper of the SUAK paper's baselines.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.WithNullArm(jb.environments.FiniteArms.bernoulli([0.5, 0.9], [0.4, 0.8]))
        >>> policy = jb.policies.Guarded(jb.policies.OnePhase(c=0.5, horizon=40))
        >>> constraint = jb.AverageCost(c=0.5, rounds=40)
        >>> result = jb.simulate(policy, arms, constraint, key=jax.random.key(0), marks=2)
        >>> float(result.violation.max())
        0.0
    """

    policy: Policy = leaf()
    max_cost: ArrayLike = leaf(default=1.0, above=0, at_most=1)

    def check(self, spec: FiniteSpec) -> None:
        check_null_arm(self, spec)
        super().check(spec)

    def select(self, state: Pytree, key: jax.Array, view: View) -> Chosen:
        bound = jnp.ceil(self.max_cost * ticks.ONE).astype(jnp.int32)
        needed = ticks.add(ticks.zero(), bound)
        skip = jnp.any(ticks.exceeds(needed, money_left(view)))
        acted, action = self.policy.select(state, key, view)
        return select_tree(skip, state, acted), jnp.where(skip, jnp.int32(SKIP), action)


# --- A policy with many requests in flight: it decides with what has arrived, and counts in what is open
#
# :func:`decide` and :func:`learn` are the whole rule, which the simulator plays through
# :class:`InFlight`. A service (``jb.live.Agent``) counts money on the host, and asks the policy
# with what these would ask it with: a test holds both to the same decisions.


class Known(NamedTuple):
    """What is stored while outcomes are pending."""

    learnt: Pytree  # the policy's state: all that has arrived
    open: jax.Array  # i32[K]: requests whose outcome is not known
    budgets: BudgetState  # what they and the others cost


def decide(
    policy: Policy, memory: Known, key: jax.Array, view: View, bound: jax.Array, scope: jax.Array
) -> tuple[Known, jax.Array]:
    """Choose an arm that every budget can pay, and reserve its bound: (memory, arm or −1).

    ``bound`` is the most that a request to each arm can cost, ``i32[K]`` ticks; ``scope`` says
    which budget pays for which arm, ``bool[d, K]``. ``view.left`` is an
    :class:`~jaxbandits.constraints.Allowance` if budgets renew.
    """
    if isinstance(view.left, Allowance):
        memory = memory._replace(budgets=constraints.renewed(memory.budgets, view.left))
        allowance = constraints.remaining(memory.budgets, view.left)._replace(
            bound=bound, scope=scope
        )
        view = view._replace(
            left=allowance,
            available=view.available & constraints.affordable(allowance, bound, scope),
        )
    acted, arm = policy.select_while_open(memory.learnt, key, view, memory.open)
    none = ~jnp.any(view.available)
    arm = jnp.where(none, jnp.int32(SKIP), arm)
    learnt = select_tree(none, memory.learnt, acted)
    return reserve(memory._replace(learnt=learnt), arm, bound, scope), arm


def reserve(memory: Known, arm: jax.Array, bound: jax.Array, scope: jax.Array) -> Known:
    """Open a request and reserve its bound; nothing for a skip."""
    is_arm = jax.lax.iota(jnp.int32, memory.open.shape[0]) == arm
    held = jnp.sum(jnp.where(is_arm, bound, 0), dtype=jnp.int32)
    budgets = constraints.charge(memory.budgets, held, constraints.pays_for(scope, arm))
    return memory._replace(open=memory.open + is_arm.astype(jnp.int32), budgets=budgets)


def learn(
    policy: Policy,
    memory: Known,
    key: jax.Array,
    available: jax.Array,
    arrival: Arrivals,
    bound: jax.Array,
    scope: jax.Array,
) -> Known:
    """Learn from an arrival (costs may be ``[d]``), refund the rest; a lost one costs its bound.

    ``arrival.number`` says by how many the arm's open requests become fewer: 1, or 0 for one that
    was lost before.
    """
    # The round is that after the decision, as when nothing is late: what is drawn for it is drawn
    # once.
    view, outcome = View(arrival.round + 1, None, available), Feedback(arrival.reward, arrival.cost)
    observation = Observation(view, arrival.arm, outcome, jnp.bool_(False), arrival.context)
    learnt = select_tree(
        arrival.lost > 0, memory.learnt, policy.update(memory.learnt, key, observation)
    )
    difference = jnp.where(arrival.lost > 0, 0, bound[arrival.arm] - arrival.cost)
    return refund(memory, arrival.round, arrival.arm, difference, arrival.number, scope)._replace(
        learnt=learnt
    )


def refund(
    memory: Known, round: jax.Array, arm: jax.Array, difference: jax.Array, closes: Any, scope: Any
) -> Known:
    """Return money without learning; the arm's open requests fall by ``closes``."""
    budgets = constraints.settle(
        memory.budgets, round, difference, constraints.pays_for(scope, arm)
    )
    is_arm = jax.lax.iota(jnp.int32, memory.open.shape[0]) == arm
    return memory._replace(open=memory.open - jnp.where(is_arm, closes, 0), budgets=budgets)


def first(policy: Policy, spec: Any, budgets: int) -> Known:
    """The memory before the first round."""
    return Known(
        policy.init(spec), jnp.zeros((spec.arms,), jnp.int32), constraints.no_charges(budgets)
    )


class InFlightState(NamedTuple):
    """The memory, and what does not change."""

    memory: Known
    scope: jax.Array  # bool[d, K]
    room: jax.Array  # i32[]: how many more requests may be open


@pytree
class InFlight(Around):
    """Adapts a policy for :class:`~jaxbandits.environments.Delayed` environments.

    Outcomes are learned in the order of arrival, each with the draws of its own round. An index
    policy counts open requests at their arm's current means; a randomised one spreads its choices
    by drawing in each round. Under :class:`~jaxbandits.Renewing` the bound of each open request is
    reserved, an arm whose bound a budget cannot pay is not available, and if no arm is available
    the round is skipped.

    Without delays and renewing budgets its choices are those of the policy itself.

    Args:
        policy: any policy for finitely many arms whose ``update`` takes one observation.
        bound: the most that a pull of each arm can cost, ``[K]`` in [0, 1], default 1; of several
            costs each. A cost above it could be overspent; the audit of ``Renewing`` would show it.
            An arm of bound 0 is free: it is available whatever is left.

    Raises:
        InputError: before anything runs, for a policy that is not for the environment's arms.
    """

    policy: Policy = leaf()
    bound: ArrayLike = leaf(default=None, at_least=0, at_most=1, core=1)

    plays: ClassVar[type] = DelayedSpec

    def check(self, spec: DelayedSpec) -> None:
        if not isinstance(spec.inner, self.policy.plays):
            name = type(self.policy).__name__
            raise InputError(
                f"policy: {name} is for a {self.policy.plays.__name__}; it must be for a FiniteSpec"
            )
        check_for_each_arm("bound", self.bound, spec.inner)
        super().check(spec)

    def inside(self, spec: DelayedSpec) -> FiniteSpec:
        return spec.inner

    def learnt(self, state: InFlightState) -> Pytree:
        """The inner policy's statistics."""
        return state.memory.learnt

    def init(self, spec: DelayedSpec) -> InFlightState:
        memory = first(self.policy, spec.inner, spec.budgets)
        return InFlightState(memory, jnp.asarray(spec.scope()), jnp.int32(spec.room))

    def _bound(self, arms: int) -> jax.Array:
        if self.bound is None:
            return jnp.full((arms,), ticks.ONE, jnp.int32)
        return jnp.ceil(jnp.asarray(self.bound) * ticks.ONE).astype(jnp.int32)

    def update(
        self, state: InFlightState, key: jax.Array, observation: Observation
    ) -> InFlightState:
        arrivals, bound = observation.feedback, self._bound(state.memory.open.shape[0])

        def learn_next(carry: tuple[jax.Array, Known]) -> tuple[jax.Array, Known]:
            place, memory = carry
            arrival = Arrivals(jnp.int32(1), *jax.tree.map(lambda x: x[place], arrivals[1:]))
            return place + 1, learn(
                self.policy, memory, key, observation.view.available, arrival, bound, state.scope
            )

        number = arrivals.number
        _, memory = jax.lax.while_loop(
            lambda carry: carry[0] < number, learn_next, (jnp.int32(0), state.memory)
        )
        return state._replace(memory=memory, room=state.room + jnp.maximum(number, 0))

    def select(self, state: InFlightState, key: jax.Array, view: View) -> Chosen:
        bound = self._bound(state.memory.open.shape[0])
        memory, arm = decide(self.policy, state.memory, key, view, bound, state.scope)
        return state._replace(memory=memory, room=state.room - (arm >= 0).astype(jnp.int32)), arm

    def status(self, state: InFlightState) -> jax.Array:
        """CAPACITY if more than ``room`` requests are open; else the inner policy's status."""
        return jnp.where(state.room < 0, jnp.int32(Status.CAPACITY), super().status(state))
