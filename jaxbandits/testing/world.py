"""The contract of an environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._engine.rows import at_instance
from jaxbandits.core import capabilities, streams, ticks
from jaxbandits.core.ledger import Outcome
from jaxbandits.core.protocol import Environment
from jaxbandits.core.pytrees import Pytree
from jaxbandits.core.streams import Domain
from jaxbandits.testing.addresses import check_addresses
from jaxbandits.testing.episodes import lane_words, typed


def check_environment(
    environment: Environment,
    actions: Sequence[Any] | None = None,
    *,
    key: Any = None,
    pulls: int = 4096,
    counted: bool = True,
    bound: int = ticks.ONE,
) -> float:
    """Check that an environment keeps the rules of the contract, in each of its instances.

    Args:
        environment: the world.
        actions: what to try, default every arm of ``environment.spec``. Those that an instance calls not valid are
            left out there.
        key: the root key, default ``jax.random.key(0)``.
        pulls: outcomes of every action that the means are estimated from.
        counted: True if the n-th outcome of an action belongs to n and not to the round (arms that can be counted).
        bound: largest size of an outcome, in ticks.

    Returns:
        The largest distance of an empirical mean from the stated one, in its standard errors.

    An environment whose outcomes are *addressed* (:mod:`jaxbandits.core.capabilities`) is held to it: ``pull`` agrees
    with
    ``outcome`` and ``means``, and every engine that takes it gives the bits of the scan engine.

    Raises:
        AssertionError: naming the rule that is broken and where. Empirical means fail by a Bonferroni test at 1 %.

    Example:
        >>> import jaxbandits as jb
        >>> from jaxbandits.testing import check_environment
        >>> worst = check_environment(jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3]))
        >>> worst < 4
        True
    """
    forgotten = capabilities.forgotten(environment)
    assert forgotten is None, forgotten
    environment.check()
    environment = jax.tree.map(jnp.asarray, environment)
    root = streams.root_key(jax.random.key(0) if key is None else key)
    tried = [jnp.int32(arm) for arm in range(environment.spec.arms)] if actions is None else list(actions)
    name = type(environment).__name__
    try:
        _structure(environment, tried[0], root)
        scores: list[float] = []
        for instance in range(environment.instances):
            words = lane_words(root, instance, 0, Domain.WORLD)
            _pure(environment, tried, instance, words)
            if counted:
                _counted(environment, tried, instance, words)
            _lanes_differ(environment, tried, instance, root, pulls)
            scores += _means(environment, tried, instance, words, pulls, bound)
        check_addresses(environment, root)
        from scipy import stats as laws  # slow to import

        allowed = float(laws.norm.isf(0.005 / len(scores)))
        worst = max(scores)
        assert worst <= allowed, (
            f"an empirical mean is {worst:.2f} standard errors from the stated one; among {len(scores)} comparisons "
            f"{allowed:.2f} are allowed"
        )
    except AssertionError as broken:
        raise AssertionError(f"{name}: {broken}") from broken
    return worst


def _pull(
    environment: Environment, instance: jax.Array, state: Pytree, action: Any, words: jax.Array, round: Any
) -> Any:
    return at_instance(environment, instance).pull(state, action, typed(words), jnp.asarray(round, jnp.int32))


_pull_fast = jax.jit(_pull)


def _start(environment: Environment, instance: int) -> Pytree:
    return at_instance(environment, jnp.int32(instance)).start()


def _structure(environment: Environment, action: Any, root: jax.Array) -> None:
    state, words = _start(environment, 0), lane_words(root, 0, 0, Domain.WORLD)
    after, outcome, _, empty = jax.eval_shape(_pull, environment, jnp.int32(0), state, action, words, jnp.int32(1))
    same = str(jax.tree.structure(state)) == str(jax.tree.structure(after))
    assert same, "a pull changes the structure of the state"
    for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(after), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), (
            f"a pull makes {a.dtype}{a.shape} of the state {b.dtype}{b.shape}"
        )
    assert isinstance(outcome, Outcome), f"pull gives a {type(outcome).__name__} in place of an Outcome"
    for field in ("reward", "cost", "expected_reward", "expected_cost"):
        value, like = getattr(outcome, field), outcome.cost.shape if "cost" in field else ()
        told = f"outcome.{field} is {value.dtype}{list(value.shape)}; it must be int32{list(like)}"
        assert (value.shape, value.dtype) == (like, jnp.int32), told
    for event, value in outcome.events.items():
        assert (value.shape, value.dtype) == ((), jnp.int32), (
            f"event {event} is {value.dtype}{value.shape}, not int32[]"
        )
    assert outcome.valid.dtype == jnp.bool_ and outcome.valid.shape == (), "outcome.valid is not bool[]"
    assert empty.dtype == jnp.bool_ and empty.shape == (), "empty is not bool[]"


def _equal(a: Any, b: Any, message: str) -> None:
    same = all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))
    assert same, f"{message}: {a} and {b}"


def _pure(environment: Environment, actions: Sequence[Any], instance: int, words: jax.Array) -> None:
    """Equal arguments, equal bits: twice, without jit, and in a batch."""
    state, i = _start(environment, instance), jnp.int32(instance)
    first = [_pull_fast(environment, i, state, action, words, 1) for action in actions]
    for action, got in zip(actions, first, strict=True):
        _equal(got, _pull_fast(environment, i, state, action, words, 1), f"instance {instance}: one pull made twice")
    with jax.disable_jit():
        slow = _pull(environment, i, state, actions[0], words, 1)
    _equal(first[0], slow, f"instance {instance}: a pull with and without jit")
    batch = jax.tree.map(lambda *x: jnp.stack(x), *actions)
    together = jax.jit(jax.vmap(_pull, in_axes=(None, None, None, 0, None, None)))(
        environment, i, state, batch, words, 1
    )
    _equal(jax.tree.map(lambda *x: jnp.stack(x), *first), together, f"instance {instance}: pulls apart and in a batch")


def _counted(environment: Environment, actions: Sequence[Any], instance: int, words: jax.Array, times: int = 6) -> None:
    """The n-th pull gives the same, whatever was pulled in between."""
    i = jnp.int32(instance)
    state, mixed, round = _start(environment, instance), {}, 0
    for n in range(times):
        for number, action in enumerate(actions):
            round += 1
            state, *got = _pull_fast(environment, i, state, action, words, round)
            mixed[number, n] = got
    for number, action in enumerate(actions):
        state = _start(environment, instance)
        for n in range(times):
            state, *got = _pull_fast(environment, i, state, action, words, 1000 + n)
            message = f"instance {instance}: pull {n + 1} of action {number} among others, and alone in other rounds"
            _equal(mixed[number, n], got, message)


def _lanes_differ(environment: Environment, actions: Sequence[Any], instance: int, root: jax.Array, pulls: int) -> None:
    """Replicates and instances meet different outcomes (unless nothing is random)."""
    seen = [
        _table(environment, actions, instance, lane_words(root, *lane, Domain.WORLD), pulls)[:2]
        for lane in ((instance, 0), (instance, 1), (instance + 1, 0))
    ]
    random = any((x != x[:, :1]).any() for x in seen[0])
    if random:
        for other, name in ((1, "replicate"), (2, "instance id")):
            same = all(np.array_equal(a, b) for a, b in zip(seen[0], seen[other], strict=True))
            assert not same, f"instance {instance}: another {name} gives the same outcomes of every action"


def _table(
    environment: Environment, actions: Sequence[Any], instance: int, words: jax.Array, pulls: int
) -> tuple[np.ndarray, np.ndarray, Outcome]:
    """Rewards and costs ``[valid action, pull]`` in ticks, and all of the outcomes."""
    batch = jax.tree.map(lambda *x: jnp.stack(x), *actions)
    outcomes = _play(environment, batch, jnp.int32(instance), words, pulls)
    valid = np.asarray(outcomes.valid).all(axis=1)
    assert valid.any(), f"instance {instance}: no action is valid"
    outcomes = jax.tree.map(lambda x: np.asarray(x)[valid], outcomes)
    return outcomes.reward, outcomes.cost, outcomes


def _play_actions(environment: Environment, actions: Any, instance: jax.Array, words: jax.Array, pulls: int) -> Outcome:
    def one(action: Any) -> Outcome:
        def again(state: Pytree, round: jax.Array) -> tuple[Pytree, Outcome]:
            state, outcome, _, _ = _pull(environment, instance, state, action, words, round)
            return state, outcome

        start = at_instance(environment, instance).start()
        return jax.lax.scan(again, start, jnp.arange(1, pulls + 1, dtype=jnp.int32))[1]

    return jax.vmap(one)(actions)


_play = jax.jit(_play_actions, static_argnames="pulls")


def _means(
    environment: Environment, actions: Sequence[Any], instance: int, words: jax.Array, pulls: int, bound: int
) -> list[float]:
    """|empirical − stated mean| in standard errors, of reward and cost of every valid action."""
    reward, cost, outcomes = _table(environment, actions, instance, words, pulls)
    scores: list[float] = []
    for name, sample, stated in (
        ("reward", reward, outcomes.expected_reward),
        ("cost", cost, outcomes.expected_cost),
    ):
        low = -bound if stated.min() < 0 else 0
        inside = (sample >= low) & (sample <= bound)
        assert inside.all(), (
            f"instance {instance}: a {name} of {sample[~inside].flat[0]} ticks is outside {low} … {bound}"
        )
        # Of each pull against its own stated mean, which may change from pull to pull.
        gap = sample.astype(np.float64) - stated
        error = gap.std(axis=1, ddof=1) / np.sqrt(pulls)
        # A sample without spread has no error of its own: that of a 0-or-1 outcome of the stated mean, then.
        share = np.clip(stated.mean(axis=1) / bound, 0, 1)
        error = np.where(error > 0, error, bound * np.sqrt(share * (1 - share) / pulls))
        constant = (np.abs(gap) <= 1).all(axis=1)
        away = np.maximum(np.abs(gap.mean(axis=1)) - 0.5, 0)  # the stated mean is rounded to a tick
        scores += np.where(constant, 0.0, away / np.maximum(error, 1e-9)).ravel().tolist()
    return scores
