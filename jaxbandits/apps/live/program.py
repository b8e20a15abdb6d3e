"""A policy compiled for a service: one function for a decision, one for outcomes.

The policy's memory is one blob: the leaves of its state as words of 32 bits, one after the other.
So a call of a compiled function takes and gives one array, whatever the policy remembers.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import math
import struct
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import policies
from jaxbandits.core import Feedback, FiniteSpec, Observation, Policy, View, bad, streams
from jaxbandits.tools import Settings, brief, is_users, refuse

_MOST_NOTED = 16  # outcomes that wait for the next decision to be learnt

# --- Whose memory it is: what one policy has learnt is not taken for what another one has.


def of_one_setting(policy: Any) -> Policy:
    """The policy with one value of each parameter, as float32 or int32."""
    if not isinstance(policy, Policy):
        raise bad("policy", policy, "a policy, such as OmegaUCB(rho=0.25)")
    if not issubclass(FiniteSpec, policy.plays):
        raise bad("policy", type(policy).__name__, "one for finitely many arms")
    settings = Settings.of(policy, 1)
    refuse("policy", policy, settings.count != 1, "one setting: one value of each parameter")
    return jax.tree.map(lambda x: jnp.asarray(x[0, 0]), settings.policy)


def policy_text(policy: Any) -> str:
    """``InFlight(policy=OmegaUCB(rho=0.3))``."""
    parts = []
    for field in dataclasses.fields(policy):
        value = getattr(policy, field.name)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            text = policy_text(value)
        elif field.metadata.get("static"):
            # Of a function it holds an address, which is another one in every process
            text = repr(value)
            if " at 0x" in text:
                text = getattr(value, "__qualname__", type(value).__qualname__)
        elif value is None:
            continue
        else:
            dtype = np.int32 if field.metadata.get("integer") else np.float32
            text = _digits(np.asarray(value, dtype))
        parts.append(f"{field.name}={text}")
    return f"{type(policy).__qualname__}({', '.join(parts)})"


def _digits(x: np.ndarray) -> str:
    """As few digits as tell float32 numbers apart."""
    return f"[{', '.join(map(_digits, x))}]" if x.ndim else str(x)


def policy_of(text: str, custom: Policy | None) -> Policy:
    """The policy of a :func:`policy_text`: ``custom``, or one of this package, made again."""

    def part_of(node: Any) -> Any:
        if not isinstance(node, ast.Call):
            return ast.literal_eval(node)
        kind = getattr(policies, node.func.id)  # type: ignore[attr-defined]
        if not dataclasses.is_dataclass(kind):
            raise TypeError("no policy, nor a part of one")
        return kind(**{str(word.arg): part_of(word.value) for word in node.keywords})  # type: ignore[operator]

    if custom is not None and policy_text(custom) == text:
        return custom
    try:
        return of_one_setting(part_of(ast.parse(text, mode="eval").body))
    except (ValueError, TypeError, AttributeError, SyntaxError):
        raise bad("policy", None, f"given: {text} cannot be rebuilt from jb.policies") from None


def has_value_for_each_arm(policy: Policy) -> bool:
    """Whether a parameter has a value per arm, or per price in a context; then no arm can join."""
    paths = [
        [part.name for part in path]
        for path, leaf in jax.tree_util.tree_leaves_with_path(policy)
        if np.ndim(leaf)
    ]
    # Features have a value for each number of a context
    return any("features" not in x for x in paths) or bool(getattr(policy, "priced", False))


# --- States as words


@dataclasses.dataclass(frozen=True)
class Words:
    """How the leaves of states of one kind lie in an array of 32-bit words; static."""

    tree: Any
    leaves: tuple[tuple[tuple[int, ...], str], ...]

    @staticmethod
    def of(example: Any) -> Words:
        """The layout for states like this one, of NumPy."""
        leaves, tree = jax.tree.flatten(example)
        return Words(tree, tuple((x.shape, x.dtype.name) for x in leaves))

    @property
    def ends(self) -> list[int]:
        """Where the leaves end in the words, from 0 on."""
        return np.cumsum([0, *(math.prod(shape) for shape, _ in self.leaves)]).tolist()

    def places(self) -> Any:
        """Where each leaf lies in the words, as a state of slices."""
        return jax.tree.unflatten(self.tree, map(slice, self.ends[:-1], self.ends[1:]))

    def split(self, words: Any) -> Any:
        """The state, from words of NumPy or jax."""
        leaves = []
        for (shape, dtype), begin, end in zip(self.leaves, self.ends, self.ends[1:], strict=False):
            part = words[begin:end].reshape(shape)
            leaves.append(part != 0 if dtype == "bool" else part.view(dtype))
        return jax.tree.unflatten(self.tree, leaves)


def packed(tree: Any, numpy: Any = np) -> Any:
    """The words of a tree, of NumPy or of ``jax.numpy``."""
    leaves = [x.astype(np.int32) if x.dtype == bool else x for x in jax.tree.leaves(tree)]
    return numpy.concatenate([x.view(np.int32).ravel() for x in leaves])


# --- The two functions


class Lesson(NamedTuple):
    """An outcome, in ticks."""

    round: int  # that of the decision
    arm: int
    reward: int
    cost: int
    context: bytes | None  # f32[d]

    def words(self) -> bytes:
        """The words that the memory stores."""
        return struct.pack("=4i", *self[:4]) + (self.context or b"")


class Situation(NamedTuple):
    """What a decision depends on besides the policy's memory."""

    view: View
    open: Any  # i32[K]: requests of each arm whose outcome is not known


@functools.lru_cache(maxsize=64)
def _compiled(constants: Words, states: Words, situations: Words, d: int) -> tuple[Any, Any]:
    """choose and learn, for all policies of one structure; ``d`` numbers are known of a request."""

    def learn(fixed: jax.Array, memory: jax.Array, noted: jax.Array, count: jax.Array) -> jax.Array:
        policy, key, there = constants.split(fixed)

        def once(i: jax.Array, words: jax.Array) -> jax.Array:
            round, arm, reward, cost = noted[i, :4]
            # The round is that after the decision, as in the simulator's ``wrappers.learn``.
            view, context = View(round + 1, None, there), noted[i, 4:].view(np.float32)
            told = arm, Feedback(reward, cost), jnp.bool_(False), context if d else None
            observation = Observation(view, *told)
            after = policy.update(states.split(words), streams.typed(key), observation)
            return packed(jax.tree.map(jnp.asarray, after), jnp)

        return jax.lax.fori_loop(0, count, once, memory)

    def choose(fixed: jax.Array, words: jax.Array) -> jax.Array:
        policy, key, _ = constants.split(fixed)
        # One array of all: each further one would take as long as the decision
        count, memory, noted, situation = jnp.split(
            words, np.cumsum([1, states.ends[-1], _MOST_NOTED * (4 + d)])
        )
        memory = learn(fixed, memory, noted.reshape(_MOST_NOTED, 4 + d), count[0])
        state, view = states.split(memory), situations.split(situation)
        after, arm = policy.select_while_open(state, streams.typed(key), *view)
        return packed((arm.astype(jnp.int32).reshape(()), jax.tree.map(jnp.asarray, after)), jnp)

    return jax.jit(choose), jax.jit(learn)


class Program:
    """A policy of one setting, compiled for situations like this, with ``d`` context numbers.

    Its memory is the words of its state, and after them the last outcomes, which are noted only:
    the next decision learns them first, in one call.
    """

    def __init__(
        self, policy: Policy, key: Sequence[int], there: Any, situation: Situation, d: int
    ):
        self.policy, spec = policy, FiniteSpec(there.size, context=(d,) if d else None)
        constants = jax.tree.map(np.asarray, (policy, np.array(key, np.uint32), there))
        self._fixed = jnp.asarray(packed(constants))
        name, self._d, self.situations = type(policy).__name__, d, Words.of(situation)
        policy.check(spec)
        try:
            first = jax.tree.map(np.asarray, policy.init(spec))
            self.first, self.states = packed(first).tobytes(), Words.of(first)
            # Of a user's class the code may be another one by now.
            compiled = _compiled.__wrapped__ if is_users(policy) else _compiled
            kinds = Words.of(constants), self.states, self.situations
            self._choose, self._learn = compiled(*kinds, d)
            self.choose(self.first, packed(situation).tobytes())
        except Exception as problem:  # whatever a policy meets that asks for what no service has
            may_be = "one for requests: an index policy such as OmegaUCB(), or a pacer with budgets"
            raise bad("policy", name, f"{may_be} ({brief(problem, 90)})") from None
        self.learnt(self.first + bytes(4 * (4 + d)))

    def choose(self, memory: bytes, situation: bytes) -> tuple[bytes, int]:
        """The policy's memory after a decision in the situation of these words, and the arm."""
        noted, row = len(memory) - len(self.first), 4 * (4 + self._d)
        head, room = (noted // row).to_bytes(4, sys.byteorder), bytes(_MOST_NOTED * row - noted)
        words = np.frombuffer(b"".join((head, memory, room, situation)), np.int32)
        after = np.asarray(self._choose(self._fixed, words))
        return after[1:].tobytes(), int(after[0])

    def noted(self, memory: bytes, lesson: Lesson) -> bytes:
        """The memory with one more outcome noted."""
        memory += lesson.words()
        is_full = len(memory) - len(self.first) == _MOST_NOTED * 4 * (4 + self._d)
        return self.learnt(memory) if is_full else memory

    def learnt(self, memory: bytes, at_once: int = _MOST_NOTED) -> bytes:
        """The memory after learning the outcomes noted in it, one by one."""
        words, noted = memory[: len(self.first)], memory[len(self.first) :]
        row = 4 * (4 + self._d)
        for at in range(0, len(noted), at_once * row):
            part = noted[at : at + at_once * row]
            rows = np.frombuffer(part.ljust(at_once * row, b"\0"), np.int32).reshape(at_once, -1)
            count = np.int32(len(part) // row)
            before = np.frombuffer(words, np.int32)
            words = np.asarray(self._learn(self._fixed, before, rows, count)).tobytes()
        return words

    def state(self, memory: bytes) -> Any:
        """The policy's state in NumPy arrays."""
        return self.states.split(np.frombuffer(self.learnt(memory), np.int32))
