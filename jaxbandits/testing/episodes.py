"""One lane, played by a plain loop over the protocol: no pool, no chunks, no masks. What the engines must reproduce."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._engine.booking import book, open_ledger
from jaxbandits._engine.rows import at_instance
from jaxbandits.core import streams
from jaxbandits.core.ledger import Ledger, Outcome
from jaxbandits.core.protocol import Constraint, Environment, Observation, Policy, View
from jaxbandits.core.pytrees import Pytree
from jaxbandits.core.settings import canonicalise
from jaxbandits.core.streams import Domain


class Step(NamedTuple):
    """One round of an episode, or a stack of them."""

    before: Pytree  # the policy's state as the round begins
    observation: Observation  # what the policy is told
    after: Pytree  # its state when it has learnt and chosen
    action: Pytree
    outcome: Outcome
    ledger: Ledger  # after the round
    over: jax.Array  # bool[]: the constraint's end is reached with this round


def episode(
    policy: Policy,
    environment: Environment,
    constraint: Constraint,
    key: Any,
    rounds: int,
    *,
    instance: int = 0,
    replicates: int = 1,
) -> Step:
    """The first ``rounds`` rounds of some lanes, every array ``[replicate, round, …]``.

    The play goes on when the constraint has ended (``over`` says so), so that all lanes have one length. The first
    setting of the policy plays.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> from jaxbandits.testing import episode
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
        >>> steps = episode(jb.policies.OmegaUCB(), arms, jb.Horizon(5), jax.random.key(0), rounds=5)
        >>> steps.action.shape, steps.action[0, :2].tolist(), steps.over[0].tolist()
        ((1, 5), [0, 1], [False, False, False, False, True])
    """
    environment.check()
    prepared = constraint.prepare(environment)
    prepared = jax.tree.map(lambda x: jnp.asarray(x[instance]), prepared)
    root = jax.random.key_data(streams.root_key(key))
    leaves = one_setting(policy, environment, instance)
    tables = jax.tree.map(jnp.asarray, environment)
    return _episodes(leaves, tables, prepared, root, np.int32(instance), np.arange(replicates, dtype=np.uint32), rounds)


def one_setting(policy: Policy, environment: Environment, instance: int = 0) -> Policy:
    """The first setting's leaves as a lane holds them: float32 or int32 arrays of core shape."""
    canonical, _ = canonicalise(policy, environment.instances, environment.spec)
    return jax.tree.map(lambda x: jnp.asarray(x[0, instance if x.shape[1] > 1 else 0]), canonical)


@partial(jax.jit, static_argnames="rounds")
def _episodes(
    policy: Policy,
    environment: Environment,
    constraint: Constraint,
    root: jax.Array,
    instance: jax.Array,
    replicates: jax.Array,
    rounds: int,
) -> Step:
    def one(replicate: jax.Array) -> Step:
        lane = streams.lane_key(jax.random.wrap_key_data(root, impl="threefry2x32"), instance, replicate)
        return _play(policy, environment, constraint, jax.random.key_data(lane), instance, rounds)

    return jax.vmap(one)(replicates)


def lane_words(root: Any, instance: int, replicate: int, domain: Domain) -> jax.Array:
    """The words of a lane's world or policy key."""
    return jax.random.key_data(streams.domain_key(streams.lane_key(root, instance, replicate), domain))


def typed(words: jax.Array) -> jax.Array:
    """Words as a key."""
    return jax.random.wrap_key_data(words, impl="threefry2x32")


def _play(
    policy: Policy, environment: Environment, constraint: Constraint, lane: jax.Array, row: jax.Array, rounds: int
) -> Step:
    world = at_instance(environment, row)
    world_key = jax.random.key_data(streams.domain_key(typed(lane), Domain.WORLD))
    policy_key = jax.random.key_data(streams.domain_key(typed(lane), Domain.POLICY))
    state, blank = world.start(), policy.blank_action(environment.spec)
    _, nothing, feedback, _ = jax.eval_shape(world.pull, state, blank, typed(world_key), jnp.int32(1))
    ledger = open_ledger(constraint, nothing)
    silent = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), feedback)
    begin = (policy.init(environment.spec), state, ledger, blank, silent, jnp.bool_(True))

    def one(carry: Any, _: None) -> tuple[Any, Step]:
        before, state, ledger, action, feedback, empty = carry
        view = View(ledger.rounds + 1, constraint.view(ledger), world.available())  # type: ignore[arg-type]
        seen = Observation(view, action, feedback, empty)
        after, action = policy.step(before, typed(policy_key), seen)
        state, outcome, feedback, empty = world.pull(state, action, typed(world_key), view.round)
        ledger = book(constraint, ledger, outcome)
        over = constraint.ended(ledger)
        return (after, state, ledger, action, feedback, empty), Step(before, seen, after, action, outcome, ledger, over)

    return jax.lax.scan(one, begin, None, length=rounds)[1]
