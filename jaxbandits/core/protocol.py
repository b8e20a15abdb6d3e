"""The protocol: :class:`Environment`, :class:`Policy`, :class:`Constraint` and their messages.

Everything traced here is written for **one lane**: one run of one policy setting on one instance.
The runner batches.
"""

from __future__ import annotations

import dataclasses
import enum
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._tables import Shown, Table, count_of, span
from jaxbandits.core import ticks
from jaxbandits.core.checks import bad
from jaxbandits.core.pytrees import Pytree, select_tree, short, short_value
from jaxbandits.core.ticks import Total


class Status(enum.IntEnum):
    """How a lane (one run) ended."""

    RUNNING = 0
    EXHAUSTED = 1  # the budget is spent
    HORIZON = 2  # the last round was played
    ROUND_CAP = 3  # `max_rounds` came first
    CAPACITY = 4  # a growing set is full: rerun with a larger capacity, the prefix stays the same
    INVALID = 5  # the policy asked for something that the environment does not have (or its scores were NaN)
    CLOSED = 6  # no arm is open, and none will open again


NEVER = np.int32(2**31 - 1)
"""A round number that no run reaches."""


class Outcome(NamedTuple):
    """What the constraint sees of a round, in ticks. Policies never see it."""

    reward: jax.Array  # i32[]
    cost: jax.Array  # i32[], or i32[d] for d resources
    expected_reward: jax.Array  # i32[]: mean of `reward` given the action
    expected_cost: jax.Array  # as cost
    events: Mapping[str, jax.Array]  # named 0/1 counts of this round (i32[]), summed and reported
    valid: jax.Array  # bool[]: the action was one that the environment has


class Ledger(NamedTuple):
    """The exact account of one lane. Written to the result at every mark."""

    rounds: jax.Array  # i32[]
    reward: Total
    spent: Total
    expected_reward: Total
    expected_spent: Total
    events: Mapping[str, jax.Array]  # i32[]
    audit: Mapping[str, Total]  # what the constraint itself keeps (see AverageCost)


def post(ledger: Ledger, outcome: Outcome, earns: jax.Array | bool = True) -> Ledger:
    """Add ``outcome``, of one round or summed over several, to the totals; not to ``rounds``.

    A pull that does not ``earn`` brings no reward (nor expected reward), but is paid for in full: a
    constraint that never pays more than is left must cap ``spent`` itself, as ``TotalBudget`` does.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxbandits.core import Ledger, Outcome, post, ticks
        >>> half, none = jnp.int32(ticks.ONE // 2), ticks.zero()
        >>> before = Ledger(jnp.int32(0), none, none, none, none, events={}, audit={})
        >>> round = Outcome(half, half, half, half, events={}, valid=jnp.bool_(True))
        >>> after = post(before, round, earns=False)
        >>> float(ticks.to_float(after.reward)), float(ticks.to_float(after.spent))
        (0.0, 0.5)
    """

    def earned(x: jax.Array) -> jax.Array:
        return jnp.where(earns, x, 0)

    counts = {name: ledger.events[name] + n for name, n in outcome.events.items()}
    return ledger._replace(
        reward=ticks.add(ledger.reward, earned(outcome.reward)),
        spent=ticks.add(ledger.spent, outcome.cost),
        expected_reward=ticks.add(ledger.expected_reward, earned(outcome.expected_reward)),
        expected_spent=ticks.add(ledger.expected_spent, outcome.expected_cost),
        events=dict(ledger.events) | counts,
    )


class View(NamedTuple):
    """What the constraint and the environment reveal to a policy about the next round.

    ``available`` is always given where arms can be counted; only in a continuum there is none.
    """

    round: jax.Array  # i32[]: 1-based
    # what may still be spent, if the constraint tells; [], [d], or [d + 1]: the rounds last
    left: Total | None = None
    available: jax.Array = None  # type: ignore[assignment]  # bool[K]: the arms that exist and are open in this round
    # f32[d], or [K, d]: what is known of the request, in a world that has contexts
    context: jax.Array | None = None


class Feedback(NamedTuple):
    """What a policy observes, in ticks: ``i32[]`` each; ``i32[L]`` for L arms; cost ``[…, d]``."""

    reward: jax.Array
    cost: jax.Array


class Observation(NamedTuple):
    """What a policy observes before it acts: its last action, the feedback, the next round's view.

    ``empty`` means that there is nothing to learn (first round, skipped round); the view is valid
    all the same. A policy with contexts learns from ``context`` and never from that of a view,
    which is another round's.
    """

    view: View
    action: Pytree
    feedback: Pytree
    empty: jax.Array  # bool[]
    context: jax.Array | None = None  # that of the round in which ``action`` was decided


# --- the three nouns


class _Fields(Shown):
    """Accepts no values until :func:`~jaxbandits.core.pytrees.pytree` has made its fields."""

    def __repr__(self) -> str:
        return short(self)

    def _shown_rows(self) -> Table:
        fields = ((x.name, getattr(self, x.name)) for x in dataclasses.fields(self))  # type: ignore[arg-type]
        return Table(("field", "value"), [(name, short_value(x)) for name, x in fields])

    def __init__(self, *values: Any, **fields: Any):
        if values or fields:
            must = "a class with @jb.pytree above it, to take values"
            raise bad(type(self).__name__, [*values, *fields], must)


def _kind_or_value(name: str, x: Any) -> str:
    """``room=8``; of what holds arrays the class."""
    return type(x).__name__ if any(map(np.ndim, jax.tree.leaves(x))) else f"{name}={x!r}"


Possible = Callable[[np.ndarray, np.ndarray], np.ndarray]  # see Environment.benchmarks


def unknown(instance: np.ndarray, clock: np.ndarray) -> np.ndarray:
    """An unknown benchmark, as NaN."""
    return np.full(clock.shape, np.nan)


# What a pull gives: (state, outcome for the accountant, learner's feedback, empty?)
Pulled = tuple[Pytree, Outcome, Any, jax.Array]
Chosen = tuple[Any, Any]  # what a choice gives: (state, action)


class Environment(_Fields):
    """An environment of ``instances`` independent problems. Leaves have a leading instance axis.

    Traced methods are written for one instance and read parameters by indexing: ``self.mean[arm]``,
    ``self.scale[()]``. (The runner puts a :class:`Row` in place of each leaf, so that only what is
    indexed is ever gathered.)
    """

    @property
    @abstractmethod
    def spec(self) -> Any:
        """A small static value that describes the problem to a policy (arms, limits, …)."""

    @property
    def instances(self) -> int:
        """Number of independent problems."""
        return int(jax.tree.leaves(self)[0].shape[0])

    def __repr__(self) -> str:
        try:
            return self._in_units()
        except Exception:  # while it is traced, or of a user's class: no error of its own
            return short(self)

    def _in_units(self) -> str:
        # Tables are in ticks; a wrapper's sizes and means are those of the world inside.
        fields = {x.name: getattr(self, x.name) for x in dataclasses.fields(self)}  # type: ignore[arg-type]
        shown = {name: x for name, x in fields.items() if x is not None and not np.ndim(x)}
        parts = [
            repr(x) if isinstance(x, Environment) else _kind_or_value(name, x)
            for name, x in shown.items()
        ]
        if not any(isinstance(x, Environment) for x in fields.values()):
            arms = getattr(self.spec, "arms", 0)
            of_arms = f" × {count_of(arms, 'arm')}" if arms else ""
            parts.insert(0, f"{count_of(self.instances, 'instance')}{of_arms}")
        parts += [f"{kind} {span(x.ravel())}" for kind, x in self._means_in_units().items()]
        return f"{type(self).__qualname__}({'; '.join(parts)})"

    def _means_in_units(self) -> dict[str, np.ndarray]:
        """Mean reward and cost in units, where there are tables of them; NaN of absent arms."""
        exists = np.asarray(getattr(self, "present", True))
        tables: dict[str, Any] = {x: getattr(self, f"mean_{x}", 0) for x in ("reward", "cost")}
        known = {kind: np.asarray(x) for kind, x in tables.items() if np.ndim(x) > 1}

        def where_there(x: np.ndarray) -> np.ndarray:
            mask = exists.reshape(exists.shape + (1,) * (x.ndim - exists.ndim))
            return np.where(mask, ticks.to_units(x), np.nan)

        return {kind: where_there(x) for kind, x in known.items()}

    def _shown_rows(self) -> Table:
        means = self._means_in_units()
        if not means:
            return super()._shown_rows()
        places = np.ndindex(next(iter(means.values())).shape[:2])
        numbers = ((at, [span(np.ravel(x[at])) for x in means.values()]) for at in places)
        rows = [[*at, *of_arm] for at, of_arm in numbers if any(of_arm)]
        return Table(("instance", "arm", *means), rows)

    @property
    def resources(self) -> int | None:
        """None for one scalar cost, d for a cost vector ``[d]``, from the spec if it has one."""
        return getattr(self.spec, "resources", None)

    def check(self) -> None:
        """Raise :class:`InputError` for invalid parameters (concrete arrays), before a run."""

    @abstractmethod
    def start(self) -> Pytree:
        """The environment's own state at round 1 (pull counts, for example)."""

    def available(self) -> jax.Array | None:
        """Arms of this instance, ``bool[K]`` (all), if there is ``spec.arms``; else None."""
        arms = getattr(self.spec, "arms", None)
        return None if arms is None else jnp.ones((arms,), bool)

    def open(self, state: Pytree, round: jax.Array) -> jax.Array | None:
        """Which arms may be pulled in this round, ``bool[K]``; None (default): all that exist.

        ``state`` is the one before the pull. Policies see only arms that exist and are open.
        """
        return None

    def opens_next(self, state: Pytree, round: jax.Array) -> jax.Array:
        """The next round in which a closed arm opens if nothing is pulled, ``i32[]``, or ``NEVER``.

        Asked where no arm is open, and by engines that play many rounds at once: too early is safe,
        too late is wrong.
        """
        return jnp.int32(NEVER)

    @property
    def idle_rounds(self) -> int:
        """Host: the most rounds without an open arm, by which a lane may be longer."""
        return 0

    def context(self, key: jax.Array, round: jax.Array) -> jax.Array | None:
        """The context of this round: ``f32[d]``, or ``f32[K, d]`` with a row per arm; None: none.

        A pure function of the world's key and the round, which :meth:`pull` calls too;
        ``spec.context`` is its shape.
        """
        return None

    def refuses(self, action: Pytree) -> str | None:
        """Host: what actions must be if these shapes and types are invalid, else None."""
        return None

    def largest(self, action: Pytree) -> tuple[int, int]:
        """Host: the largest size of a round's reward, and of its cost (of one resource), in ticks.

        Totals are bounded by it before anything runs. Say so if it is more than one unit;
        ``action`` gives shapes only.
        """
        return ticks.ONE, ticks.ONE

    @abstractmethod
    def pull(self, state: Pytree, action: Pytree, key: jax.Array, round: jax.Array) -> Pulled:
        """Take ``action``: (state, outcome for the constraint, policy's feedback, empty?)."""

    def summary(self, state: Pytree) -> dict[str, jax.Array]:
        """Named final values of a lane, for the result."""
        return {}

    @abstractmethod
    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """Host: mean reward ``[instance, action]`` and cost ``[instance, action(, d)]`` of actions.

        Float64, of every pure action; NaN where one is absent.
        """

    def prices(self) -> np.ndarray | None:
        """Host: constant costs, int64 ticks shaped as mean costs; 0 if varying, None if all vary.

        Budgets are measured in them (:class:`~jaxbandits.TotalBudget`).
        """
        return None

    def listed_costs(self) -> np.ndarray | None:
        """Host: all costs that can occur, in ticks, int64 ``[instance, n(, d)]``; None: no list."""
        return None

    def benchmarks(
        self, constraint: Constraint, clock: np.ndarray
    ) -> Mapping[str, Possible] | None:
        """Host: what could have been earned; ``clock``: of marks in units, ``[instance, mark]``.

        None where means stay as they are: it is ``constraint.best_rate`` times the clock. Else
        functions by name, ``"moving"`` and ``"fixed"``, of the instance of each lane, ``[lane]``,
        and its clock (where money is the clock the mean costs in sum), in units, ``[lane, mark]``,
        to what it could have gained; NaN where it is not known. Where they are estimates,
        ``"moving_error"`` and ``"fixed_error"`` are their standard errors.
        """
        return None


class Policy(_Fields):
    """A policy: leaves are hyper-parameters, methods are pure functions of state, key, observation.

    Write :meth:`init`, :meth:`update` and :meth:`select`; :meth:`step` is their composition.
    ``key`` is the same in every round: draws are addressed by ``view.round`` (see
    :mod:`jaxbandits.core.streams`), so no key is ever split.
    """

    plays: ClassVar[type]  # the Spec class of the environments in which it runs

    @property
    def most_rounds(self) -> int:
        """Host: the most rounds with exact numbers; longer runs are refused. Default: no limit."""
        return int(NEVER)

    def check(self, spec: Any) -> None:
        """Raise :class:`InputError` for what leaf ranges cannot express; called before a run."""

    def warnings(self, environment: Environment) -> list[str]:
        """Host: a line for each hyper-parameter that does not fit the true environment.

        Their axes are ``[setting, 1 or instance, …]``; ``simulate`` warns and continues. A policy
        never learns the truth, but its user may want to know.
        """
        return []

    @abstractmethod
    def init(self, spec: Any) -> Pytree:
        """The state before the first round."""

    def blank_action(self, spec: Any) -> Pytree:
        """An action of the right structure, for the first (empty) observation."""
        return jnp.zeros((), jnp.int32)

    @abstractmethod
    def update(self, state: Pytree, key: jax.Array, observation: Observation) -> Pytree:
        """Learn from a non-empty observation."""

    @abstractmethod
    def select(self, state: Pytree, key: jax.Array, view: View) -> Chosen:
        """(state, action) for the round that ``view`` describes."""

    def select_while_open(
        self, state: Pytree, key: jax.Array, view: View, open: jax.Array
    ) -> Chosen:
        """:meth:`select` while earlier pulls are open, ``open`` of each arm (``i32[K]``).

        A policy that draws at random spreads its choices anyway; one that would choose the same
        arm repeatedly should count the open pulls.
        """
        return self.select(state, key, view)

    def step(
        self, state: Pytree, key: jax.Array, observation: Observation
    ) -> tuple[Pytree, Pytree]:
        """Learn from the last observation, then act: ``select ∘ update``.

        This is the only place that prevents an empty observation from changing the state.
        """
        learnt = self.update(state, key, observation)
        state = select_tree(observation.empty, state, learnt)
        return self.select(state, key, observation.view)

    def status(self, state: Pytree) -> jax.Array:
        """A :class:`Status`; any but RUNNING ends the lane, such as CAPACITY for a full set.

        Checked after :meth:`step`: the round in which it appears is neither simulated nor booked.
        """
        return jnp.int32(Status.RUNNING)

    def summary(self, state: Pytree) -> dict[str, jax.Array]:
        """Named final values of a lane, in addition to those of :meth:`Environment.summary`."""
        return {}


class Constraint(_Fields):
    """A constraint: what a round costs, when a lane ends, what the clock is.

    Attributes:
        ends_with: the status of a lane at the end of the clock.
        clock_name: ``"spent"`` or ``"rounds"``.
        additive: True if, while the clock is below its end, :meth:`charge` is :func:`post`, no more
            and no less: then many rounds may be booked at once. A capability: see
            :mod:`jaxbandits.core.capabilities`.
    """

    ends_with: ClassVar[Status]
    clock_name: ClassVar[str]
    additive: ClassVar[bool] = False

    @abstractmethod
    def prepare(self, environment: Environment) -> Constraint:
        """Check the user's numbers; return the traced form: leaves ``[instance]``, whole ticks."""

    @abstractmethod
    def end(self) -> Total:
        """The value of the clock at which runs end."""

    def audit(self) -> dict[str, Total]:
        """The constraint's own part of the ledger at the start."""
        return {}

    def view(self, ledger: Ledger) -> Total | None:
        """What is left, as far as a policy may know it."""
        return None

    @abstractmethod
    def charge(self, ledger: Ledger, outcome: Outcome) -> Ledger:
        """Book one round; :func:`post` does the usual part. (The runner itself counts ``rounds``.)"""

    @abstractmethod
    def clock(self, ledger: Ledger) -> Total:
        """The time that this constraint measures: money, or rounds."""

    def ended(self, ledger: Ledger) -> jax.Array:
        """Whether this lane has ended. (At the end of the clock it always has.)"""
        return ticks.reached(self.clock(ledger), self.end())

    @abstractmethod
    def expected_clock(self, ledger: Mapping[str, np.ndarray]) -> np.ndarray:
        """Host: the clock at conditional mean outcomes, in ticks, for lanes of one instance.

        Args:
            ledger: int64 accounts by name, ``[lane, mark]``: ``rounds``, and in ticks ``reward``,
                ``spent``, ``expected_reward``, ``expected_spent`` (with several resources ``[lane,
                mark, resource]``), ``clock``, ``event:NAME`` and ``audit:NAME``.
        """

    @abstractmethod
    def best_rate(self, reward: np.ndarray, cost: np.ndarray) -> np.ndarray:
        """Host: the best reward per unit of the clock, float64 ``[instance]``; leaves are prepared.

        Args:
            reward, cost: true means ``[instance, action(, resource)]``
                (:meth:`Environment.values`), NaN for an arm that an instance has not.
        """
