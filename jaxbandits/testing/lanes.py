"""Shared by the checks: bitwise comparisons, a lane as a plain loop, a policy and its runs."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._engine.scan import at_instance, book, open_ledger, passes, view_of
from jaxbandits.core import streams
from jaxbandits.core.checks import InputError
from jaxbandits.core.fingerprint import jit
from jaxbandits.core.protocol import Constraint, Environment, Ledger, Observation, Outcome, Policy
from jaxbandits.core.pytrees import Pytree, select_tree
from jaxbandits.core.settings import Settings
from jaxbandits.core.streams import Domain, typed
from jaxbandits.result import Result
from jaxbandits.simulation import simulate

_COMPILED = "/jax/core/compile/backend_compile_duration"


def ulps_apart(a: Any, b: Any) -> np.ndarray:
    """The distance of ``a`` and ``b`` in float32 units in the last place (NaN to NaN: 0), int64.

    Example:
        >>> import numpy as np
        >>> from jaxbandits.testing import ulps_apart
        >>> ulps_apart([1.0, 0.0], [np.nextafter(np.float32(1), np.float32(2)), -0.0]).tolist()
        [1, 0]
    """

    def rank(x: np.ndarray) -> np.ndarray:
        bits = np.ascontiguousarray(x).view(np.int32).astype(np.int64)
        # The order of the floats; −0 and +0 are one
        return np.where(bits >= 0, bits, -(2**31) - bits)

    x, y = np.asarray(a, np.float32), np.asarray(b, np.float32)
    apart, nan = np.abs(rank(x) - rank(y)), (np.isnan(x), np.isnan(y))
    return np.where(nan[0] & nan[1], 0, np.where(nan[0] | nan[1], 2**33, apart))


def assert_same_results(
    one: Result, other: Result, what: str, *, marks: Sequence[tuple[int, int]] | None = None
) -> None:
    """Assert that two results have the same exact ledgers, final values and statuses.

    Args:
        one, other: results with the same settings, instances and replicates in the same order.
        what: names the two, for the message.
        marks: pairs of mark numbers to compare (in ``one``, in ``other``); all, in order, by
            default.

    Raises:
        AssertionError: naming the first quantity and lane that differ.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
        >>> result = jb.simulate(jb.policies.MUCB(), arms, jb.Horizon(20), key=jax.random.key(0), marks=2)
        >>> jb.testing.assert_same_results(result, result, "a result and itself")
    """
    pairs = [(i, i) for i in range(len(one.marks))] if marks is None else list(marks)
    first_marks, second_marks = ([pair[side] for pair in pairs] for side in (0, 1))
    accounts = {
        k: (x[:, :, :, first_marks], other.ledger[k][:, :, :, second_marks])
        for k, x in one.ledger.items()
    }
    accounts |= {f"final {name}": (x, other.final[name]) for name, x in one.final.items()}
    for name, (a, b) in (accounts | {"the lanes' status": (one.ended, other.ended)}).items():
        assert a.shape == b.shape, f"{what}: {name} differs: shapes {a.shape} and {b.shape}"
        different = (a != b) & ((a == a) | (b == b))  # NaN is what a policy does not tell
        if different.any():
            at = tuple(int(i) for i in np.argwhere(different)[0])
            places = f"{int(different.sum())} places, first at {at}: {a[at]} and {b[at]}"
            raise AssertionError(f"{what}: {name} differs in {places}")


@contextlib.contextmanager
def compilations() -> Iterator[list[str]]:
    """Collects the name of every program that jax compiles inside the block, in any thread.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxbandits.testing import compilations
        >>> double = jax.jit(lambda x: 2 * x)
        >>> one, two = jnp.float32(1), jnp.float32(2)
        >>> with compilations() as first:
        ...     _ = double(one)
        >>> with compilations() as second:
        ...     _ = double(two)
        >>> len(first), len(second)
        (1, 0)
    """
    names: list[str] = []

    def listener(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == _COMPILED:
            names.append(str(kwargs.get("fun_name", "?")))

    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        yield names
    finally:
        jax.monitoring.unregister_event_duration_listener(listener)


ULPS = 4
"""Units in the last place by which a program may differ if compiled in another way."""


def equal(must: Any, got: Any, label: str, terms: Any = None) -> None:
    """Assert that two trees are equal to the bit, NaN included, or to 4 ULPs of given ``terms``."""
    # Where ``must`` was computed from ``terms``, a float may be as many units of its term apart: a
    # sum is rounded as its larger term is.
    paths = jax.tree_util.tree_leaves_with_path(must)
    before = [None] * len(paths) if terms is None else jax.tree.leaves(terms)
    for (path, a), b, was in zip(paths, jax.tree.leaves(got), before, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        same = np.array_equal(a, b, equal_nan=a.dtype.kind == "f" and b.dtype.kind == "f")
        if not same and was is not None and a.dtype == np.float32 and a.shape == b.shape:
            with np.errstate(invalid="ignore"):  # infinities are equal or not
                term = np.where(np.isfinite(was), np.abs(np.asarray(was)), 0)
                larger = np.maximum(np.maximum(np.abs(a), np.abs(b)), term)
                near = np.abs(a - b) <= ULPS * np.spacing(larger)
            same = (near | (ulps_apart(a, b) == 0)).all()
        assert same, f"{label}{jax.tree_util.keystr(path)} is {b}; it must be {a}"


def assert_traced_alike(trace: Callable[[], str]) -> None:
    """Assert that a program (its digest) is the same when it is traced again."""
    assert trace() == trace(), (
        "traced twice, the program is another one: what it reads of NumPy's random numbers, the time or a counter, "
        "say, is one constant for a whole run (draw with the key, see jb.draws)"
    )


# --- One lane, played by a plain loop over the protocol: no pool, no chunks, no masks. What the engines must reproduce.


class Step(NamedTuple):
    """One round of an episode, or a stack of them."""

    before: Pytree  # the policy's state as the round begins
    observation: Observation  # what the policy sees
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

    The play goes on when the constraint has ended (``over`` says so), so that all lanes have one
    length. The first setting of the policy plays.

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
    prepared = jax.tree.map(lambda x: jnp.asarray(x[instance]), constraint.prepare(environment))
    root = jax.random.key_data(streams.root_key(key))
    leaves = one_setting(policy, environment, instance)
    tables = jax.tree.map(jnp.asarray, environment)
    ids = np.int32(instance), np.arange(replicates, dtype=np.uint32)
    return _episodes(leaves, tables, prepared, root, *ids, rounds=rounds)


def one_setting(policy: Policy, environment: Environment, instance: int = 0) -> Policy:
    """The first setting's leaves as a lane has them: float32 or int32 arrays of core shape."""
    canonical = Settings.of(policy, environment.instances, environment.spec).policy
    return jax.tree.map(lambda x: jnp.asarray(x[0, instance if x.shape[1] > 1 else 0]), canonical)


@jit
def _episodes(
    policy: Policy,
    environment: Environment,
    constraint: Constraint,
    root: jax.Array,
    instance: jax.Array,
    replicates: jax.Array,
    *,
    rounds: int,
) -> Step:
    def of_replicate(replicate: jax.Array) -> Step:
        lane = streams.lane_key(typed(root), instance, replicate)
        words = jax.random.key_data(lane)
        return play_lane(policy, environment, constraint, words, instance, rounds)

    return jax.vmap(of_replicate)(replicates)


def play_lane(
    policy: Policy,
    environment: Environment,
    constraint: Constraint,
    lane: jax.Array,
    row: jax.Array,
    rounds: int,
) -> Step:
    """The first rounds of one lane, its key as words."""
    world = at_instance(environment, row)
    domains = Domain.WORLD, Domain.POLICY
    world_key, policy_key = (streams.domain_key(typed(lane), domain) for domain in domains)
    state, blank = world.start(), policy.blank_action(environment.spec)
    _, nothing, feedback, _ = jax.eval_shape(world.pull, state, blank, world_key, jnp.int32(1))
    silent = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), feedback)
    ledger, context = open_ledger(constraint, nothing), world.context(world_key, jnp.int32(1))
    begin = (policy.init(environment.spec), state, ledger, blank, silent, jnp.bool_(True), context)

    def round_step(carry: Any, _: None) -> tuple[Any, Step]:
        before, state, ledger, action, feedback, empty, context = carry
        view = view_of(world, constraint, world_key, world.available(), state, ledger)
        observation = Observation(view, action, feedback, empty, context)
        after, action = policy.step(before, policy_key, observation)
        world_state, outcome, feedback, empty = world.pull(state, action, world_key, view.round)
        booked = book(constraint, ledger, outcome)
        successor = (after, world_state, booked, action, feedback, empty, view.context)
        # Where no arm is open the round passes, and nothing is learnt
        if passes(environment, world, state):
            any_open, nothing = jnp.any(view.available), jax.tree.map(jnp.zeros_like, outcome)
            outcome = select_tree(any_open, outcome, nothing)
            passed = (before, state, book(constraint, ledger, nothing), *carry[3:])
            successor = select_tree(any_open, successor, passed)
        after, _, ledger, action = successor[:4]
        over = constraint.ended(ledger)
        return successor, Step(before, observation, after, action, outcome, ledger, over)

    return jax.lax.scan(round_step, begin, None, length=rounds)[1]


def domain_words(root: Any, instance: Any, replicate: Any, domain: Domain) -> jax.Array:
    """One lane's key words for a domain, from jax's keys, not from the engines' host hashes."""
    lane = streams.lane_key(root, instance, replicate)
    return jax.random.key_data(streams.domain_key(lane, domain))


# --- The subject of a check.


MARKS = (0.1, 0.25, 0.5, 0.75, 1.0)


@dataclasses.dataclass(frozen=True)
class Subject:
    """A policy to check and its environment; runs that several checks need are made once."""

    policy: Policy
    environment: Environment
    constraint: Constraint
    key: Any
    replicates: int = 3
    slots: int = 16
    _steps: dict[int, Step] = dataclasses.field(default_factory=dict)

    def run(self, **changes: Any) -> Result:
        """``simulate`` with the checks' settings, some arguments changed."""
        nouns = {"environment": self.environment, "constraint": self.constraint, "key": self.key}
        options: dict[str, Any] = {"replicates": self.replicates, "slots": self.slots, **nouns}
        options |= {"policies": self.first, "marks": MARKS, "chunk": 16, "engine": "scan"}
        return simulate(**(options | changes))

    @cached_property
    def first(self) -> Policy:
        """The policy's first setting, leaves ``[1, 1 or instance, …]``."""
        every = Settings.of(self.policy, self.environment.instances, self.environment.spec).policy
        return jax.tree.map(lambda x: x[:1], every)

    @cached_property
    def variants(self) -> list[Policy]:
        """Up to two copies of the policy with other leaf values in range, if it has leaves."""
        variants: list[Policy] = []
        for factor in (0.5, 2.0, 0.75, 1.25, 0.875, 1.0625) if jax.tree.leaves(self.first) else ():
            changed = jax.tree.map(lambda x, f=factor: (x * f).astype(x.dtype), self.first)
            try:
                Settings.of(changed, self.environment.instances, self.environment.spec)
            except InputError:
                continue
            variants.append(changed)
        return variants[:2]

    @cached_property
    def prepared(self) -> Constraint:
        """The constraint's traced form, leaves ``[instance]``."""
        return self.constraint.prepare(self.environment)

    @cached_property
    def base(self) -> Result:
        """The run with which others are compared."""
        return self.run()

    def episodes(self, instance: int) -> Step:
        """Host: an instance's replicates by the plain loop, as long as ``base``'s longest."""
        if instance not in self._steps:
            rounds = int(self.base.ledger["rounds"][..., -1].max())
            nouns = self.first, self.environment, self.constraint, self.key
            steps = episode(*nouns, rounds, instance=instance, replicates=self.replicates)
            self._steps[instance] = jax.device_get(steps)
        return self._steps[instance]

    @cached_property
    def steps(self) -> Step:
        """Host: first rounds of instance 0, replicate 0 by the plain loop, ``[round, …]``."""
        rounds = int(min(self.base.ledger["rounds"][0, 0, 0, -1], 64))
        return jax.tree.map(lambda x: x[0, :rounds], self.episodes(0))

    def round(self, i: int) -> Step:
        """Round i + 1 of ``steps``, as jax arrays."""
        return jax.tree.map(lambda x: jnp.asarray(x[i]), self.steps)

    def sampled(self, number: int) -> list[tuple[int, Step]]:
        """(i, round i + 1) of the first two rounds of ``steps``, and of about ``number`` others."""
        last = self.steps.over.shape[0] - 1
        places = {0, min(1, last), *np.linspace(0, last, number).astype(int).tolist()}
        return [(i, self.round(i)) for i in sorted(places)]

    @cached_property
    def decided(self) -> Callable[[Pytree, Observation], tuple[Any, Any]]:
        """(state, action) by ``step``, and by ``select`` alone: one program for all rules."""
        leaves, words = one_setting(self.first, self.environment), self.policy_words

        @jax.jit
        def both(before: Pytree, observation: Observation) -> tuple[Any, Any]:
            key = typed(words)
            selected = leaves.select(before, key, observation.view)
            return leaves.step(before, key, observation), selected

        return both

    @cached_property
    def policy_words(self) -> jax.Array:
        """The policy's key in instance 0, replicate 0, as words."""
        return domain_words(streams.root_key(self.key), 0, 0, Domain.POLICY)
