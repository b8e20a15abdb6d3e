"""A world as a gymnax environment, for learners that take one."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandits.core import ticks
from jaxbandits.core.errors import InputError
from jaxbandits.core.protocol import Constraint, Environment
from jaxbandits.interfaces.episodes import Episode, Episodes


def gymnax_environment(
    environment: Environment, constraint: Constraint, *, key: Any, max_rounds: int | None = None
) -> Any:
    """A gymnax environment: ``reset``, ``step``, spaces and default parameters, for any learner that takes one.

    An episode is a lane (see :class:`Episodes`, which has observation and reward in words): it ends when the constraint
    says so, and its account is booked exactly, by the same code as in :func:`~jaxbandits.simulate`. The state that
    gymnax hands around is an :class:`Episode`: ``state.ledger`` is the account. ``info`` has the ``cost`` of the round
    (in the environment's units), the ``status`` after it (a :class:`~jaxbandits.Status`) and gymnax's ``discount``.

    Args:
        environment, constraint, key, max_rounds: as for :class:`Episodes`.

    Returns:
        An object of a class that derives from ``gymnax.environments.environment.Environment``, of gymnax 0.0.9 (where
        ``step`` gives one ``done``) or 1.0 (``terminated`` by the constraint, ``truncated`` by the largest number of
        steps in the parameters). For a learner that still wants one ``done``, put
        ``gymnax.wrappers.compat.LegacyStepAPIWrapper`` around it.

    Raises:
        InputError: gymnax is not installed (``pip install 'jaxbandits[gymnax]'``); whatever :class:`Episodes` refuses.

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
        raise InputError("gymnax: it is not installed: pip install 'jaxbandits[gymnax]'") from None

    class BudgetedBandit(environment.Environment):
        """See :func:`gymnax_environment`."""

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
            info = _info(state, after) | {"discount": self.discount(after, params)}
            return self.episodes.observe(after), after, reward, self.is_terminal(after, params), info

        def get_obs(self, state: Episode, params: Any = None, key: Any = None) -> jax.Array:
            return self.episodes.observe(state)

        def is_terminated(self, state: Episode, params: Any) -> jax.Array:
            return state.done

        def is_terminal(self, state: Episode, params: Any) -> jax.Array:
            # Since 1.0 gymnax looks at the limit of steps itself (is_truncated).
            late = state.time >= params.max_steps_in_episode
            return state.done if hasattr(environment.Environment, "is_truncated") else state.done | late

        @property
        def num_actions(self) -> int:
            return self.episodes.actions

        def action_space(self, params: Any = None) -> Any:
            return spaces.Discrete(self.episodes.actions)

        def observation_space(self, params: Any = None) -> Any:
            return spaces.Box(0.0, 1.0, (4 * self.episodes.arms + 2,), jnp.float32)

    return BudgetedBandit


def _info(before: Episode, after: Episode) -> dict[str, jax.Array]:
    """What a round cost and the status after it."""
    paid = ticks.to_float(ticks.minus(after.ledger.spent, before.ledger.spent))
    return {"cost": paid, "status": after.lane.status}
