"""This package's worlds for learners of other libraries: an episode is a lane of the engine."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxbandits._engine import scan
from jaxbandits._engine.setup import lane_of, prepared
from jaxbandits.core import arm_statistics, streams, ticks
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.core.checks import InputError, bad
from jaxbandits.core.protocol import Constraint, Environment, Ledger, Status, View
from jaxbandits.core.pytrees import leaf, pytree, select_tree
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.policies.base import Plan

__all__ = ["Episode", "Episodes", "gymnax_environment"]


@pytree
class Told(Plan):
    """Plays the arm that it is told; the engine asks it as it asks any policy."""

    arm: ArrayLike = leaf(default=0, integer=True)

    def select(self, state: jax.Array, key: jax.Array, view: View) -> tuple[jax.Array, jax.Array]:
        return state, self.arm  # type: ignore[return-value]


class Episode(NamedTuple):
    """A lane that is being played, and what its learner has seen."""

    time: jax.Array  # i32[]: rounds played
    instance: jax.Array  # i32[]: the number of its instance
    replicate: jax.Array  # u32[]: with it `simulate(…, replicates=[id])` meets the same outcomes
    lane: scan.LaneState  # the engine's state of it
    known: ArmStatistics  # what the learner has seen of each arm, exact totals

    @property
    def ledger(self) -> Ledger:
        """The exact account, in ticks."""
        return self.lane.ledger

    @property
    def done(self) -> jax.Array:
        """Has the episode ended? How, is in ``lane.status``."""
        return self.lane.status != Status.RUNNING


class Episodes:
    """Episodes of a world of finitely many arms under a constraint: pure functions, to jit, vmap
    and scan.

    Every episode is a lane that :func:`~jaxbandits.simulate` could have played: an instance drawn
    uniformly and a replicate id drawn from 2³², under the root key. The account is booked by the
    engine's own round, in whole ticks.

    What a learner sees is a vector in [0, 1]: of each arm n/(1 + n) for its n pulls, mean reward
    and mean cost so far (0 and 1 before the first), whether it can be pulled now; then the share of
    the clock that is left, and what may be spent in the coming round, at most 1. So a learner
    without memory sees all that an index policy would. The reward of a round is what the accountant
    let it earn, in the environment's units.

    Args:
        environment: a world of finitely many arms with one cost; with a null arm there is one
            action more, K: to rest.
        constraint: when an episode ends, as in ``simulate``.
        key: the root key of the world.
        max_rounds: as in ``simulate``.

    Raises:
        InputError: another kind of world; whatever ``simulate`` refuses.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
        >>> episodes = jb.interfaces.Episodes(arms, jb.TotalBudget(3.0, last_pull="counts"), key=jax.random.key(0))
        >>> episode, rounds = episodes.reset(jax.random.key(1)), 0
        >>> while not episode.done:
        ...     episode, reward = episodes.step(episode, rounds % episodes.actions)
        ...     rounds += 1
        >>> rounds == int(episode.ledger.rounds), episode.ledger.spent.whole.item(), episodes.observe(episode).shape
        (True, 3, (10,))
    """

    def __init__(
        self,
        environment: Environment,
        constraint: Constraint,
        *,
        key: Any,
        max_rounds: int | None = None,
    ) -> None:
        spec = environment.spec
        if not isinstance(spec, FiniteSpec) or spec.resources is not None:
            raise bad(
                "environment",
                type(environment).__name__,
                "a world of finitely many arms with one cost",
            )
        self.arms, self.actions = spec.arms, spec.arms + spec.null_arm
        self.instances = environment.instances
        self._root = streams.root_key(key)
        self._constraint, self._told, self._cap, _ = prepared(
            Told(), environment, constraint, max_rounds
        )
        self._tables = jax.tree.map(jnp.asarray, environment)
        self.max_rounds = int(self._cap.max())

    def _lane(self, instance: jax.Array, replicate: jax.Array, arm: Any = 0) -> scan.Lane:
        lane = lane_of(self._constraint, self._told, self._cap, self._root, instance, replicate)
        return lane._replace(policy=Told(jnp.asarray(arm, jnp.int32)))

    def _view(self, episode: Episode) -> View:
        """The view of the coming round."""
        lane, state = self._lane(episode.instance, episode.replicate), episode.lane
        world = scan.at_instance(self._tables, lane.row)
        key = streams.typed(lane.world_key)
        return scan.view_of(
            world, lane.constraint, key, world.available(), state.environment, state.ledger
        )

    def reset(self, key: jax.Array) -> Episode:
        """A new episode: its instance and its replicate id are drawn with ``key``."""
        instance_key, replicate_key = jax.random.split(key)
        instance = jax.random.randint(instance_key, (), 0, self.instances, jnp.int32)
        return self.begin(instance, jax.random.bits(replicate_key, (), jnp.uint32))

    def begin(self, instance: Any, replicate: Any) -> Episode:
        """The episode that is this lane of ``simulate``."""
        lane = self._lane(instance, replicate)
        state = scan.start_lane(self._tables, lane).state
        statistics = arm_statistics.empty(self.arms)
        return Episode(
            jnp.int32(0), lane.row, jnp.asarray(replicate, jnp.uint32), state, statistics
        )

    def step(self, episode: Episode, arm: Any) -> tuple[Episode, jax.Array]:
        """Play an arm: the episode after it, and the reward ``f32[]``.

        An arm that does not exist, or is closed, ends the episode with the status INVALID,
        unplayed. Where no arm is open the round passes whatever was chosen. What has ended stays as
        it is.
        """
        lane = self._lane(episode.instance, episode.replicate, arm)
        before, exists = episode.lane, scan.at_instance(self._tables, lane.row).available()
        after, _ = scan.play(self._tables, lane, exists, before)
        after = select_tree(episode.done, before, after)
        has_pulled = (after.ledger.rounds > before.ledger.rounds) & jnp.any(
            self._view(episode).available
        )
        feedback = after.feedback
        learnt = arm_statistics.record(
            episode.known, jnp.asarray(arm, jnp.int32), feedback.reward, feedback.cost
        )
        statistics = select_tree(has_pulled & ~after.empty, learnt, episode.known)
        earned = ticks.to_float(ticks.minus(after.ledger.reward, before.ledger.reward))
        return episode._replace(time=after.ledger.rounds, lane=after, known=statistics), earned

    def observe(self, episode: Episode) -> jax.Array:
        """What a learner sees, ``f32[4K + 2]``."""
        n, has_pulls = episode.known.pulls, episode.known.pulls > 0
        count = jnp.maximum(n, 1).astype(jnp.float32)
        reward = jnp.where(has_pulls, ticks.to_float(episode.known.reward) / count, 0.0)
        cost = jnp.where(has_pulls, ticks.to_float(episode.known.cost) / count, 1.0)
        lane = self._lane(episode.instance, episode.replicate)
        view = self._view(episode)
        clock, end = (
            ticks.to_float(x)
            for x in (lane.constraint.clock(episode.ledger), lane.constraint.end())
        )
        spendable = jnp.float32(1.0) if view.left is None else ticks.to_float(view.left)
        rest = jnp.stack([1 - clock / end, spendable])
        pulls = n.astype(jnp.float32)
        parts = [pulls / (1 + pulls), reward, cost, jnp.asarray(view.available, jnp.float32), rest]
        return jnp.clip(jnp.concatenate(parts), 0.0, 1.0)

    def discount(self, episode: Episode) -> jax.Array:
        """0 where the episode has ended, else 1."""
        return jnp.where(episode.done, np.float32(0.0), np.float32(1.0))


def gymnax_environment(
    environment: Environment, constraint: Constraint, *, key: Any, max_rounds: int | None = None
) -> Any:
    """A gymnax environment: ``reset``, ``step``, spaces and default parameters, for any learner
    that takes one.

    Observation, reward and end are those of :class:`Episodes`. The state that gymnax hands around
    is an :class:`Episode`: ``state.ledger`` is the account. ``info`` has the ``cost`` of the round
    (in the environment's units), the ``status`` after it (a :class:`~jaxbandits.Status`) and
    gymnax's ``discount``.

    Args:
        environment, constraint, key, max_rounds: as for :class:`Episodes`.

    Returns:
        An object of a class that derives from ``gymnax.environments.environment.Environment``, of
        gymnax 0.0.9 (where ``step`` gives one ``done``) or 1.0 (``terminated`` by the constraint,
        ``truncated`` by the largest number of steps in the parameters). For a learner that still
        wants one ``done``, put ``gymnax.wrappers.compat.LegacyStepAPIWrapper`` around it.

    Raises:
        InputError: gymnax is not installed (``pip install '.[gymnax]'``); whatever
            :class:`Episodes` refuses.

    Where gymnax is installed::

        arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
        world = jb.interfaces.gymnax_environment(
            arms, jb.TotalBudget(20.0, last_pull="counts"), key=jax.random.key(0))
        observation, state = world.reset(jax.random.key(1), world.default_params)
    """
    return _kind()(Episodes(environment, constraint, key=key, max_rounds=max_rounds))


@functools.cache
def _kind() -> type:
    try:
        from gymnax.environments import environment, spaces
    except ImportError:
        raise InputError("gymnax: it is not installed: pip install '.[gymnax]'") from None

    class BudgetedBandit(environment.Environment):
        """The environment that :func:`gymnax_environment` makes."""

        def __init__(self, episodes: Episodes) -> None:
            super().__init__()
            self.episodes = episodes

        @property
        def default_params(self) -> Any:
            return environment.EnvParams(max_steps_in_episode=self.episodes.max_rounds)

        def reset_env(self, key: jax.Array, params: Any) -> tuple[jax.Array, Episode]:
            episode = self.episodes.reset(key)
            return self.episodes.observe(episode), episode

        def step_env(self, key: jax.Array, state: Episode, action: Any, params: Any) -> Any:
            after, reward = self.episodes.step(state, action)
            paid = ticks.to_float(ticks.minus(after.ledger.spent, state.ledger.spent))
            info = {
                "cost": paid,
                "status": after.lane.status,
                "discount": self.discount(after, params),
            }
            return (
                self.episodes.observe(after),
                after,
                reward,
                self.is_terminal(after, params),
                info,
            )

        def get_obs(self, state: Episode, params: Any = None, key: Any = None) -> jax.Array:
            return self.episodes.observe(state)

        def is_terminated(self, state: Episode, params: Any) -> jax.Array:
            return state.done

        def is_terminal(self, state: Episode, params: Any) -> jax.Array:
            # Since 1.0 gymnax looks at the limit of steps itself (is_truncated).
            late = state.time >= params.max_steps_in_episode
            return (
                state.done
                if hasattr(environment.Environment, "is_truncated")
                else state.done | late
            )

        @property
        def num_actions(self) -> int:
            return self.episodes.actions

        def action_space(self, params: Any = None) -> Any:
            return spaces.Discrete(self.episodes.actions)

        def observation_space(self, params: Any = None) -> Any:
            return spaces.Box(0.0, 1.0, (4 * self.episodes.arms + 2,), jnp.float32)

    return BudgetedBandit
