"""Policies without the simulator: feed real observations one at a time, and keep states on disk."""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._engine.limits import check_spec
from jaxbandits._files import path_of, read_arrays, save_arrays
from jaxbandits.apps.live.program import in_first_places, policy_text
from jaxbandits.core import ticks
from jaxbandits.core.checks import (
    MOST_INT,
    InputError,
    as_played,
    bad,
    booleans,
    number,
    numbers,
    quoted,
    refuse_traced,
    whole_number,
)
from jaxbandits.core.protocol import Feedback, Observation, Policy, View
from jaxbandits.core.pytrees import Pytree, walk
from jaxbandits.core.specs import SKIP, FiniteSpec
from jaxbandits.core.tables import check_unit, ticks32


def start(
    policy: Policy,
    spec: Any,
    *,
    left: float | None = None,
    available: Any = None,
    feedback: Pytree = None,
) -> tuple[Pytree, Observation]:
    """Check the policy, and give its first state and its first (empty) observation.

    Args:
        policy, spec: any policy, and what it will play, e.g. ``FiniteSpec(arms=3)``.
        left: budget left, in cost units, for policies that look at it. Give it always or never.
        available: ``bool[K]``, which arms may be played in round 1; all by default.
        feedback: in a setting of your own, a feedback of the right structure (its values do not
            matter).

    Raises:
        InputError: hyper-parameters out of range, or a policy for another setting.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> policy = jb.policies.OmegaUCB(rho=0.25)
        >>> state, observation = jb.live.start(policy, jb.environments.FiniteSpec(arms=2))
        >>> step, key = jax.jit(policy.step), jax.random.key(0)
        >>> for reward, cost in [(1.0, 0.3), (0.0, 0.2), (1.0, 0.25)]:
        ...     state, arm = step(state, key, observation)
        ...     observation = jb.live.observe(observation, arm, reward=reward, cost=cost)
        >>> state.pulls.tolist(), int(observation.view.round)
        ([1, 1], 4)
    """
    if not isinstance(spec, policy.plays):
        raise bad("spec", spec, f"a {policy.plays.__name__} for {type(policy).__name__}")
    for leaf in walk(policy):
        as_played(leaf.name, leaf.value, leaf.metadata)
    check_spec(spec)
    policy.check(spec)
    blank = policy.blank_action(spec)
    refuse_traced("start", blank)  # inside jit all arrays are
    action = jax.tree.map(np.asarray, blank)
    arms, present = getattr(spec, "arms", None), None
    if arms is not None:
        present = np.ones(arms, bool) if available is None else _mask(available, arms)
    if isinstance(spec, FiniteSpec):
        cost = np.zeros(action.shape + spec.cost_shape, np.int32)
        feedback = Feedback(np.zeros(action.shape, np.int32), cost)  # type: ignore[arg-type]
    elif feedback is None:
        raise bad(
            "feedback",
            feedback,
            f"given for a {type(spec).__name__}: an example of what the learner sees",
        )
    view = View(np.int32(1), _budget_left(left), present)  # type: ignore[arg-type]
    observation = Observation(view, action, jax.tree.map(np.asarray, feedback), np.bool_(True))  # type: ignore[arg-type]
    state, accepted = policy.init(spec), []
    for amount in (None, _budget_left(0.0)) if left is None else ():
        variant = observation._replace(view=view._replace(left=amount))
        with contextlib.suppress(Exception):  # whatever it is, the first step shows it in full
            jax.eval_shape(policy.step, state, jax.random.key(0), variant)
            accepted.append(amount)
    # A policy that reads what is left cannot do without. It is refused at once, in words of the
    # caller.
    if accepted and accepted[0] is not None:
        raise bad(
            "left",
            None,
            f"given in every round: {type(policy).__name__} reads how much may still be spent",
        )
    return state, observation


def observe(
    previous: Observation,
    action: Any,
    *,
    reward: Any = 0.0,
    cost: Any = 0.0,
    empty: bool = False,
    left: float | None = None,
    available: Any = None,
    feedback: Pytree = None,
) -> Observation:
    """The observation after a round, and the view of the next one. May be traced; then no value is
    checked.

    Args:
        previous: the observation that the round began with.
        action: what was really played (not always what the policy asked for). −1, a skip: an empty
            round.
        reward, cost: what came of it, in [0, 1]: divide by your own bounds.
        empty: True if nothing was played or nothing is known of it; the round counts all the same.
        left, available: as in :func:`start`, for the next round; where no arm is, it goes by with
            ``empty=True``.
        feedback: in a setting of your own, what the learner sees, in place of ``reward`` and
            ``cost``.

    Raises:
        InputError: values outside [0, 1], or so small that they are no tick (2⁻²⁴); an arm that
            does not exist, a feedback or an action of another structure, or ``left`` given once and
            not again.

    Example:
        >>> import jaxbandits as jb
        >>> state, first = jb.live.start(jb.policies.OmegaUCB(), jb.environments.FiniteSpec(arms=2))
        >>> second = jb.live.observe(first, 1, reward=0.5, cost=0.25)
        >>> int(second.view.round), int(second.feedback.cost) / 2**24
        (2, 0.25)
    """
    if (left is None) != (previous.view.left is None):
        raise bad("left", left, "given in every round or in none")
    if feedback is None and not isinstance(previous.feedback, Feedback):
        raise bad("feedback", None, "given, as in every round")
    arguments = (previous, action, reward, cost, empty, left, available, feedback)
    if any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(arguments)):
        # Values are not known yet: the same arithmetic, and nothing to check.
        action = jax.tree.map(
            lambda x, like: jnp.asarray(x, jnp.result_type(like)), action, previous.action
        )
        if feedback is None:
            feedback = Feedback(
                *(jnp.rint(jnp.float32(x) * ticks.ONE).astype(jnp.int32) for x in (reward, cost))
            )
        present = previous.view.available if available is None else jnp.asarray(available, bool)
        if present is not None:
            empty = jnp.asarray(empty) | jnp.all(action == SKIP)  # type: ignore[assignment]
        amount = None
        if left is not None:
            whole = jnp.floor(jnp.asarray(left, jnp.float32))
            amount = ticks.Total(
                whole.astype(jnp.int32), jnp.floor((left - whole) * ticks.ONE).astype(jnp.int32)
            )
        return Observation(
            View(previous.view.round + 1, amount, present), action, feedback, jnp.asarray(empty)
        )
    action = _as_before("action", action, previous.action)
    present = previous.view.available
    if present is not None:
        arms = np.shape(present)[0]
        empty = empty or bool((action == SKIP).all())
        if not empty and ((action < 0) | (action >= arms)).any():
            raise bad(
                "action",
                action.tolist(),
                f"an arm from 0 to {arms - 1}, -1 for a skip (or empty=True)",
            )
        present = present if available is None else _mask(available, arms)  # type: ignore[assignment]
    if feedback is None:
        outcome = {"reward": numbers("reward", reward), "cost": numbers("cost", cost)}
        for name, value in outcome.items():
            check_unit(name, value)
        feedback = Feedback(*map(ticks32, outcome.values()))  # type: ignore[arg-type]
    typed_feedback = _as_before("feedback", feedback, previous.feedback)
    if int(previous.view.round) >= MOST_INT:
        raise bad("previous", previous.view.round, f"of a round before {MOST_INT}")
    view = View(np.int32(int(previous.view.round) + 1), _budget_left(left), present)  # type: ignore[arg-type]
    return Observation(view, action, typed_feedback, np.bool_(empty))  # type: ignore[arg-type]


def widen(
    policy: Policy, state: Pytree, observation: Observation, arms: int
) -> tuple[Pytree, Observation]:
    """A state and an observation with room for more arms, which change no decision until they are
    available.

    Args:
        policy, state, observation: as they stand; a policy without a parameter per arm.
        arms: how many there are to be, at least as many as there are.

    Raises:
        InputError: fewer arms than there are.

    Example:
        >>> import jaxbandits as jb
        >>> policy = jb.policies.MUCB()
        >>> state, observation = jb.live.start(policy, jb.environments.FiniteSpec(arms=2))
        >>> state, observation = jb.live.widen(policy, state, observation, arms=4)
        >>> state.pulls.shape, observation.view.available.tolist()
        ((4,), [True, True, False, False])
    """
    before = np.shape(observation.view.available)[0]
    spec = FiniteSpec(whole_number("arms", arms, before))
    policy.check(spec)
    wide = jax.tree.map(in_first_places, policy.init(spec), state)
    present = in_first_places(np.zeros(arms, bool), observation.view.available)
    return wide, observation._replace(view=observation.view._replace(available=present))  # type: ignore[arg-type]


def _as_before(name: str, value: Pytree, previous: Pytree) -> Pytree:
    """``value`` with the types of the last round's, so that the next step does not compile anew."""

    def cast(leaf: Any, previous_leaf: Any) -> np.ndarray:
        if previous_leaf.dtype == np.bool_:
            return booleans(name, leaf)
        whole = previous_leaf.dtype == np.int32
        return (as_played(name, leaf, {"integer": True}) if whole else numbers(name, leaf)).astype(
            previous_leaf.dtype
        )

    shapes = [
        (str(jax.tree.structure(x)), list(map(np.shape, jax.tree.leaves(x))))
        for x in (value, previous)
    ]
    if shapes[0] != shapes[1]:
        raise bad(name, value, f"of the structure {jax.tree.map(np.shape, previous)}")
    return jax.tree.map(cast, value, previous)


def _mask(available: Any, arms: int) -> np.ndarray:
    mask = booleans("available", available)
    if mask.shape != (arms,):
        raise bad("available", available, f"{arms} booleans")
    return mask


def _budget_left(amount: float | None) -> ticks.Total | None:
    if amount is None:
        return None
    if not 0 <= (units := number("left", amount)) < 2**30:
        raise bad("left", amount, "a finite number from 0 to 2**30")
    return ticks.split(ticks.floor_from_units(units))


# --- On disk: ``.npz`` files of plain arrays, never pickled, and of the policy that they say


def save(path: str | os.PathLike[str], state: Pytree, *, policy: Policy | None) -> None:
    """Write a pytree of arrays (a policy's state, an observation, or both) to a ``.npz`` file,
    whole or not at all.

    Args:
        path, state: the file, and the arrays.
        policy: whose state it is: its class and parameters are written, and it is read for no
            other. None: nobody's.

    Raises:
        InputError: no file can be written there, or a leaf is no array of numbers (nothing is ever
            pickled).
        OSError: the disk is full.

    Example:
        >>> import tempfile, os
        >>> import jaxbandits as jb
        >>> policy = jb.policies.OmegaUCB()
        >>> path = os.path.join(tempfile.mkdtemp(), "state.npz")
        >>> jb.live.save(path, policy.init(jb.environments.FiniteSpec(arms=2)), policy=policy)
        >>> os.path.exists(path)
        True
    """
    place, leaves = path_of("path", path), jax.tree_util.tree_flatten_with_path(state)[0]
    about = {
        "structure": str(jax.tree.structure(state)),
        "policy": None if policy is None else policy_text(policy),
    }
    arrays = {
        f"state{jax.tree_util.keystr(at)}": x if hasattr(x, "dtype") else np.asarray(x)
        for at, x in leaves
    }
    save_arrays("path", place, {"about": np.array(json.dumps(about))} | arrays)


def load(path: str | os.PathLike[str], like: Pytree, *, policy: Policy | None = None) -> Pytree:
    """Read what :func:`save` wrote, into the structure of ``like`` (for a state:
    ``policy.init(spec)``).

    Raises:
        InputError: no such file, or one of another policy, other parameters, another structure,
            shape or type.

    Example:
        >>> import tempfile, os
        >>> import jaxbandits as jb
        >>> policy, spec = jb.policies.MUCB(), jb.environments.FiniteSpec(arms=2)
        >>> path = os.path.join(tempfile.mkdtemp(), "state.npz")
        >>> jb.live.save(path, policy.init(spec), policy=policy)
        >>> jb.live.load(path, like=policy.init(spec), policy=policy).pulls.tolist()
        [0, 0]
        >>> jb.live.load(path, like=policy.init(spec), policy=jb.policies.OmegaUCB())
        Traceback (most recent call last):
        jaxbandits.core.checks.InputError: policy: OmegaUCB(rho=0.25) given; it must be MUCB(alpha=0.0625), whose...
    """
    place = path_of("path", path)
    try:
        arrays = read_arrays(place)
        about = json.loads(str(arrays.pop("about")))
        whose, structure = about["policy"], about["structure"]
    except (OSError, ValueError, KeyError) as problem:
        reason = getattr(problem, "strerror", None) or "it is broken, or none"
        raise bad("path", str(place), f"a saved state ({reason})") from None
    if (name := None if policy is None else policy_text(policy)) != whose:
        raise InputError(f"policy: {name} given; it must be {whose}, whose state the file holds")
    like_leaves, tree = jax.tree.flatten(like)
    shapes = [
        [(np.shape(x), np.asarray(x).dtype) for x in leaves]
        for leaves in (like_leaves, arrays.values())
    ]
    if structure != str(tree) or shapes[0] != shapes[1]:
        raise InputError(
            f"path: {quoted(str(place))} holds another structure than `like`; it must be of the same policy, "
            "with or without `left` as before"
        )
    return jax.tree.unflatten(tree, arrays.values())
