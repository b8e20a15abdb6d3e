"""A policy as a service runs it: two compiled functions, from one array of words to one array of words.

What a policy has learnt is kept as one blob: its leaves as words of 32 bits, one behind the other. So a call hands two
small arrays to jax and takes one back, whatever the policy remembers.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import policies
from jaxbandits.apps.live.step import in_first_places
from jaxbandits.constraints import Allowance
from jaxbandits.core import streams, ticks
from jaxbandits.core.checks import InputError, bad, brief
from jaxbandits.core.fingerprint import is_users
from jaxbandits.core.protocol import Feedback, Observation, Policy, View
from jaxbandits.core.pytrees import Pytree, select_tree, walk
from jaxbandits.core.settings import Settings
from jaxbandits.core.specs import FiniteSpec

# --- Whose state it is: what was learnt by one policy is not taken for what another one learnt.


def of_one_setting(policy: Any) -> Policy:
    """The policy, its leaves float32 or int32 of one setting."""
    if not isinstance(policy, Policy):
        raise bad("policy", policy, "a policy, such as OmegaUCB(rho=0.25)")
    if not issubclass(FiniteSpec, policy.plays):
        raise bad("policy", type(policy).__name__, "one for finitely many arms")
    chosen = Settings.of(policy, 1)
    if chosen.count != 1:
        raise bad("policy", policy, "one setting: one value of each parameter")
    return jax.tree.map(lambda x: jnp.asarray(x[0, 0]), chosen.policy)


def written(policy: Policy, values: bool = True) -> str:
    """Class, parameters as float32 or int32 plays them, static fields: ``InFlight(policy=OmegaUCB(rho=0.3))``.

    Without ``values`` it is the kind of its state, which parameters do not change: ``InFlight(policy=OmegaUCB(rho))``.
    """
    parts = []
    for field in dataclasses.fields(policy):  # type: ignore[arg-type]
        value = getattr(policy, field.name)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            parts.append(f"{field.name}={written(value, values)}")  # type: ignore[arg-type]
        elif field.metadata.get("static"):
            text = repr(value)  # of a function it holds an address, which is another one in every process
            text = getattr(value, "__qualname__", type(value).__qualname__) if " at 0x" in text else text
            parts.append(f"{field.name}={text}")
        elif value is not None and not values:
            parts.append(field.name)
        elif value is not None:
            played = np.asarray(value, np.int32 if field.metadata.get("integer") else np.float32)
            parts.append(f"{field.name}={_digits(played)}")
    return f"{type(policy).__qualname__}({', '.join(parts)})"


def _digits(x: np.ndarray) -> str:
    """As few digits as tell float32 numbers apart."""
    return f"[{', '.join(map(_digits, x))}]" if x.ndim else str(x)


def policy_of(text: str, given: Policy | None) -> Policy:
    """The policy that was :func:`written` so: the one that is given, or one of this package, made again."""
    if given is not None and written(given) == text:
        return given
    try:
        return of_one_setting(_made_again(ast.parse(text, mode="eval").body))
    except (ValueError, TypeError, AttributeError, SyntaxError):
        raise bad("policy", None, f"given: {text} cannot be made again from jb.policies") from None


def _made_again(node: Any) -> Any:
    if not isinstance(node, ast.Call):
        return ast.literal_eval(node)
    kind = getattr(policies, node.func.id)  # type: ignore[attr-defined]
    if not issubclass(kind, (Policy, policies.Detector)):
        raise TypeError("no policy")
    return kind(**{str(word.arg): _made_again(word.value) for word in node.keywords})


def value_for_each_arm(policy: Policy) -> str | None:
    """The parameter, if there is one, that has a value for each arm: then no arm may join."""
    return next((leaf.path for leaf in walk(policy) if leaf.metadata.get("core", 0)), None)


# --- Its two functions


@dataclasses.dataclass(frozen=True)
class _Shape:
    """How leaves lie in words; static."""

    tree: Any
    leaves: tuple[tuple[tuple[int, ...], str], ...]

    def of(self, words: Any, bitcast: Callable[[Any, Any], Any]) -> Pytree:
        """The leaves, from words."""
        made, at = [], 0
        for shape, dtype in self.leaves:
            part = words[at : at + math.prod(shape)].reshape(shape)
            at += math.prod(shape)
            made.append(part != 0 if dtype == "bool" else bitcast(part, np.dtype(dtype)))
        return jax.tree.unflatten(self.tree, made)


def _words(tree: Pytree) -> jax.Array:
    leaves = [x.astype(jnp.int32) if x.dtype == jnp.bool_ else x for x in map(jnp.asarray, jax.tree.leaves(tree))]
    return jnp.concatenate([jax.lax.bitcast_convert_type(x, jnp.int32).ravel() for x in leaves])


def inputs(asked: Any, arms: int, budgets: int) -> tuple[View, Any]:
    """The view, and open requests of each arm, of an array that :meth:`Program.asked` laid out."""
    open_, there, bound = asked[1 : 1 + 3 * arms].reshape(3, arms)
    scope = asked[1 + 3 * arms : 1 + (3 + budgets) * arms].reshape(budgets, arms) != 0
    rows = asked[1 + (3 + budgets) * arms :].reshape(9, budgets)
    left, granted, amount = (ticks.Total(*rows[at : at + 2]) for at in (0, 2, 4))
    money = Allowance(*left, granted, amount, None, *rows[6:8], rows[8] != 0, bound, scope) if budgets else None  # type: ignore[arg-type,call-arg]
    return View(asked[0], money, there != 0), open_  # type: ignore[arg-type]


@functools.lru_cache(maxsize=64)
def _compiled(tree: Any, shape: _Shape, arms: int, budgets: int) -> tuple[Any, Any, Any]:
    """choose, learn, and learn of many, for all policies of one structure."""
    state = functools.partial(shape.of, bitcast=jax.lax.bitcast_convert_type)

    def choose(leaves: Any, key: jax.Array, learnt: jax.Array, asked: jax.Array) -> jax.Array:
        view, open_ = inputs(asked, arms, budgets)
        policy = jax.tree.unflatten(tree, leaves)
        after, arm = policy.select_while_open(state(learnt), streams.typed(key), view, open_)
        return jnp.concatenate([arm.astype(jnp.int32).reshape(1), _words(after)])

    def learn(leaves: Any, key: jax.Array, learnt: jax.Array, told: jax.Array) -> jax.Array:
        # The round is that after the decision, as in the simulator's ``wrappers.learn``.
        policy, (round, arm, reward, cost) = jax.tree.unflatten(tree, leaves), told[:4]
        seen = Observation(View(round + 1, None, told[4:] != 0), arm, Feedback(reward, cost), jnp.bool_(False))
        return _words(policy.update(state(learnt), streams.typed(key), seen))

    def learn_all(leaves: Any, key: jax.Array, learnt: jax.Array, told: jax.Array) -> jax.Array:
        def one(before: jax.Array, row: jax.Array) -> tuple[jax.Array, None]:
            return select_tree(row[0] > 0, learn(leaves, key, before, row), before), None

        return jax.lax.scan(one, learnt, told)[0]

    return jax.jit(choose), jax.jit(learn), jax.jit(learn_all)


_AT_ONCE = 4096  # outcomes that a policy is taught in one call


class Program:
    """A policy for so many arms and budgets, compiled."""

    def __init__(self, policy: Policy, arms: int, budgets: int, key: Sequence[int]):
        policy.check(FiniteSpec(arms))
        self.policy, self.arms, self.budgets = policy, arms, budgets
        self._leaves, tree = jax.tree.flatten(policy)
        self._key = jnp.asarray(np.array(key, np.uint32))
        try:
            first = jax.tree.map(np.asarray, policy.init(FiniteSpec(arms)))
            leaves, structure = jax.tree.flatten(first)
            self.shape = _Shape(structure, tuple((x.shape, x.dtype.name) for x in leaves))
            self.first = np.asarray(_words(first)).tobytes()
            compiled = _compiled.__wrapped__ if is_users(policy) else _compiled  # whose code may be another one by now
            self._choose, self._learn, self._learn_all = compiled(tree, self.shape, arms, budgets)
            self._asked = np.zeros(1 + (3 + budgets) * arms + 9 * budgets, np.int32)
            self._there = np.ones(arms, np.int32)
            asked = self._asked.copy()
            asked[0], asked[1 + arms : 1 + 3 * arms] = 1, 1
            asked[asked.size - 3 * budgets : asked.size - budgets] = 1
            self._choose(self._leaves, self._key, self._array(self.first), asked)
        except Exception as problem:  # whatever a policy meets that asks for what no service has
            name = type(policy).__name__
            if isinstance(problem, InputError) and str(problem).startswith(name):
                raise
            if not budgets:
                raise bad("budgets", (), f"at least one for {name}, which reads them") from None
            what = "one that serves: an index policy such as OmegaUCB(), or a pacer such as PricePacer()"
            raise InputError(f"policy: {name} given; it must be {what} ({brief(problem, 90)})") from None
        self.learn(self.first, 1, 0, 0, 0, self._there)

    @staticmethod
    def _array(learnt: bytes) -> np.ndarray:
        return np.frombuffer(learnt, np.int32)

    def asked(self, round: int, open: Any, there: Any, bound: Any, scope: Any, rows: Any) -> np.ndarray:
        """What a decision depends on besides what was learnt, in one array; ``rows`` are those of an allowance."""
        n, told = self.arms, self._asked
        told[0], told[1 : 1 + n], told[1 + n : 1 + 2 * n], told[1 + 2 * n : 1 + 3 * n] = round, open, there, bound
        if self.budgets:
            told[1 + 3 * n : 1 + (3 + self.budgets) * n] = scope.ravel()
            told[1 + (3 + self.budgets) * n :] = np.ravel(rows)
        return told

    def choose(self, learnt: bytes, asked: np.ndarray) -> tuple[bytes, int]:
        """What the policy remembers after a decision, and the arm."""
        made = np.asarray(self._choose(self._leaves, self._key, self._array(learnt), asked))
        return made[1:].tobytes(), int(made[0])

    def learn(self, learnt: bytes, round: int, arm: int, reward: int, cost: int, there: Any) -> bytes:
        """What it remembers after an outcome, in ticks."""
        told = np.concatenate([np.array([round, arm, reward, cost], np.int32), there])
        return np.asarray(self._learn(self._leaves, self._key, self._array(learnt), told)).tobytes()

    def learn_all(self, rows: np.ndarray, there: Any) -> bytes:
        """What it remembers after these outcomes (round, arm, reward, cost), one after the other."""
        learnt: Any = self._array(self.first)
        told = np.concatenate([rows, np.broadcast_to(there, (len(rows), len(there)))], axis=1).astype(np.int32)
        for part in np.pad(told, ((0, -len(told) % _AT_ONCE), (0, 0))).reshape(-1, _AT_ONCE, told.shape[1]):
            learnt = self._learn_all(self._leaves, self._key, learnt, part)
        return np.asarray(learnt).tobytes()

    def state(self, learnt: bytes) -> Pytree:
        """What it remembers, as the policy knows it, in arrays of NumPy."""
        return self.shape.of(self._array(learnt), lambda x, dtype: x.view(dtype))

    def widened(self, narrow: Program, learnt: bytes) -> bytes:
        """What was learnt where there was room for fewer arms."""
        wide = jax.tree.map(in_first_places, self.state(self.first), narrow.state(learnt))
        return np.asarray(_words(wide)).tobytes()
