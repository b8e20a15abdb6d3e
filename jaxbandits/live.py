"""Policies without the simulator: feed real observations one at a time, save the state, go on tomorrow."""

from __future__ import annotations

import json
import os
from typing import Any

import jax
import numpy as np

from jaxbandits._engine.limits import check_spec
from jaxbandits._files import npz
from jaxbandits._files.files import open_regular, path_of
from jaxbandits._files.result_file import write_arrays
from jaxbandits.core import ticks
from jaxbandits.core.errors import InputError, bad, shown
from jaxbandits.core.numbers import MOST_INT, as_played, booleans, number, numbers
from jaxbandits.core.printable import brief
from jaxbandits.core.protocol import Feedback, Observation, Policy, View
from jaxbandits.core.pytrees import Pytree, check_range, walk
from jaxbandits.core.specs import FiniteSpec

_FORMAT = 1


def start(
    policy: Policy, spec: Any, *, left: float | None = None, available: Any = None, feedback: Pytree = None
) -> tuple[Pytree, Observation]:
    """Check the policy, and give its first state and its first (empty) observation.

    Args:
        policy: any policy.
        spec: what it will play, e.g. ``FiniteSpec(arms=3)``.
        feedback: in a setting of your own, a feedback of the right structure (its values do not matter).
        left: budget left, in cost units, for policies that look at it. Give it always or never.
        available: ``bool[K]``, which arms may be played in round 1; all by default.

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
        check_range(leaf.name, leaf.value, leaf.metadata)
    check_spec(spec)
    policy.check(spec)
    action = jax.tree.map(np.asarray, policy.blank_action(spec))
    arms, present = getattr(spec, "arms", None), None
    if arms is not None:
        present = np.ones(arms, bool) if available is None else _mask(available, arms)
    if isinstance(spec, FiniteSpec):
        cost = np.zeros(action.shape + spec.cost_shape, np.int32)
        feedback = Feedback(np.zeros(action.shape, np.int32), cost)  # type: ignore[arg-type]
    elif feedback is None:
        raise bad("feedback", feedback, f"given for a {type(spec).__name__}: an example of what the learner sees")
    view = View(np.int32(1), _left(left), present)  # type: ignore[arg-type]
    return policy.init(spec), Observation(view, action, jax.tree.map(np.asarray, feedback), np.bool_(True))  # type: ignore[arg-type]


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
    """The observation after a round, and the view of the next one.

    Args:
        previous: the observation that the round began with.
        action: what was really played (not always what the policy asked for).
        reward, cost: what came of it, in [0, 1]: divide by your own bounds.
        empty: True if nothing was played or nothing is known of it; the round counts all the same.
        left, available: as in :func:`start`, for the next round.
        feedback: in a setting of your own, what the learner sees, in place of ``reward`` and ``cost``.

    Raises:
        InputError: values outside [0, 1], an arm that does not exist, a feedback or an action of another structure, or
            ``left`` given once and not again.
    """
    action = _like("action", action, previous.action)
    values = {}
    for name, value in (("reward", reward), ("cost", cost)):
        array = numbers(name, value)
        wrong = ~(np.isfinite(array) & (array >= 0) & (array <= 1))
        if wrong.any():
            raise bad(name, float(array[wrong].flat[0]), "finite and in [0, 1]; divide by its bound")
        values[name] = ticks.from_units(array).astype(np.int32)
    if (left is None) != (previous.view.left is None):
        raise bad("left", left, "given in every round or in none")
    present = previous.view.available
    if present is not None:
        arms = np.shape(present)[0]
        if not empty and ((action < 0) | (action >= arms)).any():
            raise bad("action", action.tolist(), f"an arm from 0 to {arms - 1} (or empty=True for a skipped round)")
        present = present if available is None else _mask(available, arms)  # type: ignore[assignment]
    seen = Feedback(values["reward"], values["cost"]) if feedback is None else feedback  # type: ignore[arg-type]
    seen = _like("feedback" if feedback is not None else "reward, cost", seen, previous.feedback)
    if int(previous.view.round) >= MOST_INT:
        raise bad("previous", previous.view.round, f"of a round before {MOST_INT}")
    view = View(np.int32(int(previous.view.round) + 1), _left(left), present)  # type: ignore[arg-type]
    return Observation(view, action, seen, np.bool_(empty))  # type: ignore[arg-type]


def save(path: str | os.PathLike[str], state: Pytree) -> None:
    """Write a pytree of arrays (a policy's state, an observation, or both) to a ``.npz`` file, whole or not at all.

    Raises:
        InputError: no file can be written there, or a leaf is no array of numbers (nothing is ever pickled).
        OSError: the disk is full.
    """
    place = path_of("path", path)
    named = jax.tree_util.tree_flatten_with_path(state)[0]
    for at, value in named:
        npz.check_plain({_where(at): value}, "state")
    stored = {f"leaf{i}": np.asarray(value) for i, (_, value) in enumerate(named)}
    about = json.dumps({"format": _FORMAT, "structure": str(jax.tree.structure(state))})
    write_arrays(place, {"about": np.array(about)} | stored, np.savez)


def _where(path: Any) -> str:
    """A leaf's place in its tree."""
    return brief(jax.tree_util.keystr(path)) or "."


def load(path: str | os.PathLike[str], like: Pytree) -> Pytree:
    """Read what :func:`save` wrote, into the structure of ``like`` (for a state: ``policy.init(spec)``).

    Raises:
        InputError: a missing file, or one with another structure, shape or type.

    Example:
        >>> import tempfile, os
        >>> import jaxbandits as jb
        >>> policy, spec = jb.policies.MUCB(), jb.environments.FiniteSpec(arms=2)
        >>> path = os.path.join(tempfile.mkdtemp(), "state.npz")
        >>> jb.live.save(path, policy.init(spec))
        >>> jb.live.load(path, like=policy.init(spec)).pulls.tolist()
        [0, 0]
    """
    place = path_of("path", path)
    wanted, structure = jax.tree.flatten(like)
    npz.check_plain({f"leaf{i}": x for i, x in enumerate(wanted)}, "like")
    try:
        with open_regular(place) as file:
            arrays = npz.read(file, first="about")
            about = _about(npz.text_of(next(arrays)[1], "about"))
            found = npz.shapes(file)
            del found["about"]
            like_shapes = {f"leaf{i}": (np.shape(x), np.asarray(x).dtype) for i, x in enumerate(wanted)}
            if about != str(structure) or found != like_shapes:
                raise InputError(
                    f"path: {shown(str(place))} holds another structure than `like`; it must be of the same policy, "
                    "with or without `left` as before"
                )
            leaves = dict(arrays)
    except (OSError, npz.NotArrays) as problem:
        reason = f"it {problem}" if not isinstance(problem, OSError) else problem.strerror or str(problem)
        raise InputError(f"path: {shown(str(place))} given; it must be a saved state ({brief(reason)})") from None
    return jax.tree.unflatten(structure, [leaves[f"leaf{i}"] for i in range(len(wanted))])


def _about(text: str) -> str:
    """The structure that a file says its leaves have."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or type(found.get("format")) is not int or found["format"] != _FORMAT:
        raise npz.NotArrays(f"has no format {_FORMAT}")
    return str(found.get("structure"))


def _like(name: str, given: Pytree, wanted: Pytree) -> Pytree:
    """``given`` with the types of ``wanted``, so that the next step does not compile anew."""

    def shape(tree: Pytree) -> tuple[str, list[tuple[int, ...]]]:
        return str(jax.tree.structure(tree)), [np.shape(x) for x in jax.tree.leaves(tree)]

    if shape(given) != shape(wanted):
        raise bad(name, given, f"of the structure {jax.tree.map(np.shape, wanted)}")
    return jax.tree.map(lambda x, like: _as(name, x, like.dtype), given, wanted)


def _as(name: str, value: Any, dtype: np.dtype) -> np.ndarray:
    """``value`` in that type, if it is the same number there."""
    if dtype == np.bool_:
        return booleans(name, value)
    array = as_played(name, value, {"integer": True}) if dtype == np.int32 else numbers(name, value)
    return array.astype(dtype)


def _mask(available: Any, arms: int) -> np.ndarray:
    mask = booleans("available", available)
    if mask.shape != (arms,) or not mask.any():
        raise bad("available", available, f"{arms} booleans, at least one of them true")
    return mask


def _left(left: float | None) -> ticks.Total | None:
    if left is None:
        return None
    if not 0 <= number("left", left) < 2**30:
        raise bad("left", left, "a finite number from 0 to 2**30")
    return ticks.split(ticks.floor_from_units(number("left", left)))
