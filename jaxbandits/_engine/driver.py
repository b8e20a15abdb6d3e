"""The driver: runs chunks of an engine, records marks and refills slots, all on the device.

A *slot* has the state of a lane that is being simulated. The *run buffer* has the constants of
more lanes than there are slots, from the moment when the host hands them over, and what stays of
each until the host takes it.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import threading
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import jaxprs_in_params
from jax.sharding import SingleDeviceSharding

from jaxbandits._engine import scan
from jaxbandits._engine.lanes import NoNativeForm
from jaxbandits._engine.scan import Account, Carry, Lane, account, at_instance, record_mark
from jaxbandits.core import ticks
from jaxbandits.core.fingerprint import PROGRAM
from jaxbandits.core.protocol import Constraint, Environment, Policy, Status
from jaxbandits.core.pytrees import T, select_tree
from jaxbandits.core.settings import Settings
from jaxbandits.core.streams import Domain, lane_words

_DOMAINS = np.array([[Domain.WORLD], [Domain.POLICY]])  # of a lane's keys
_FINDING_SHAPES = threading.RLock()


class Engine(Protocol):
    """The interface of the modules ``scan``, ``leap`` and ``merge`` to the driver.

    One may also have a ``native_chunk``, the form of ``chunk`` that suits a native function.
    """

    __name__: str
    CPU_SLOTS: tuple[int, int]  # lanes in flight per core, of a native program and of a plain one
    NATIVE_LANES: int  # with more lanes for a worker, its program is a plain one

    def trial(self, environment: Environment, lane: Lane, carry: Carry) -> Carry:
        """Everything that a chunk does, once, for one lane, to form the digest of the program."""

    def tuner(self, slots: int) -> Any:
        """The initial estimate of the slots' pace."""

    def chunk(
        self, environment: Any, lanes: Lane, carry: Carry, tuner: Any, rounds: jax.Array
    ) -> tuple[Carry, Any]:
        """Advance all lanes, ``[slot]``, by some rounds, and update the estimate of their pace."""


class TimeParallel(Engine, Protocol):
    """An engine that simulates many rounds at once for some policies, to the bits of ``scan``."""

    PLAYS: type[Policy]

    def why_not(
        self, policy: Policy, environment: Environment, constraint: Constraint
    ) -> str | None:
        """Why this engine cannot simulate these, or None if it can."""

    def is_short(self, environment: Environment, rounds: float) -> bool:
        """Whether ``scan`` simulates so many rounds before this engine has compiled."""


@dataclasses.dataclass(frozen=True)
class Task:
    """One policy on one environment: everything that the lanes share, as host arrays.

    Policy leaves are ``[setting, 1 or instance, …]``, constraint leaves ``[instance]``, marks
    ``[instance, mark]``.
    """

    engine: Engine
    policy_settings: Settings
    environment: Environment
    constraint: Constraint
    marks: ticks.Total
    root: np.ndarray  # u32[2]
    instance_ids: np.ndarray  # [instance]
    replicate_ids: np.ndarray  # [replicate], or [instance, replicate]
    cap: np.ndarray  # i32[instance]
    chunk: int
    order: np.ndarray  # lane numbers, longest first
    rounds: float  # expected, of all lanes together: steers scheduling only
    why_scan: str | None = None  # why ``engine="auto"`` simulates round by round
    record: tuple[str, ...] = ()  # of the world's summary, what is recorded at marks
    # The digest of what was traced, see ``core.fingerprint``; None of this package's code
    program: str | None = None

    @property
    def policy(self) -> Policy:
        """The policy with all its settings."""
        return self.policy_settings.policy

    @property
    def settings(self) -> int:
        """How many settings it has."""
        return self.policy_settings.count

    @property
    def shape(self) -> tuple[int, int, int]:
        """(settings, instances, replicates): lanes are numbered in C order."""
        return self.settings, self.instance_ids.size, self.replicate_ids.shape[-1]

    def places(self, numbers: np.ndarray) -> tuple[np.ndarray, ...]:
        """(setting, instance, replicate) of lanes."""
        return np.unravel_index(numbers, self.shape)

    def lanes(self, numbers: np.ndarray) -> scan.Lane:
        """The constants of these lanes."""
        setting, instance, replicate = self.places(numbers)
        of_each = np.broadcast_to(self.replicate_ids, self.shape[1:])
        address = self.root, self.instance_ids[instance], of_each[instance, replicate]

        def of_setting(leaf: np.ndarray) -> np.ndarray:
            return leaf[setting, instance if leaf.shape[1] > 1 else 0]

        world_key, policy_key = lane_words(*address, _DOMAINS)
        return scan.Lane(
            row=instance.astype(np.int32),  # type: ignore[arg-type]
            world_key=world_key,  # type: ignore[arg-type]
            policy_key=policy_key,  # type: ignore[arg-type]
            policy=jax.tree.map(of_setting, self.policy),
            constraint=jax.tree.map(lambda x: x[instance], self.constraint),
            marks=jax.tree.map(lambda x: x[instance], self.marks),
            cap=self.cap[instance],  # type: ignore[arg-type]
            record=dict.fromkeys(self.record) or None,
        )

    @functools.cached_property
    def shapes(self) -> Shapes:
        """The shapes of its lanes, the same object for all tasks of the same structure."""
        lane = self.lanes(np.zeros(1, np.int64))
        leaves, structure = jax.tree.flatten((self.environment, lane))
        shapes = (jax.ShapeDtypeStruct(np.shape(x), x.dtype) for x in leaves)
        # This object identifies the program; a cache alone gives two threads one each.
        with _FINDING_SHAPES:
            return _shapes_of(self.program, structure, *shapes)


# --- on the device: chunks, marks, slots


class CallLimits(NamedTuple):
    """Limits of one call, traced, so new values do not recompile; no result depends on them."""

    chunk: jax.Array  # i32[]: rounds between two looks at the marks
    chunks: jax.Array  # i32[]: most chunks in this call
    patience: jax.Array  # i32[]: hand out waiting lanes once more slots than this are idle
    quota: jax.Array  # i32[]: return once no lane waits and more slots than this are idle


class EndedLane(NamedTuple):
    """What is kept of a lane that has ended."""

    rows: jax.Array  # i32[M, F]: see scan.Carry
    account: Account  # at its end
    status: jax.Array  # i32[]
    final: dict[str, jax.Array]  # final values of the environment and of the policy


class Pool(NamedTuple):
    """A worker's state; a *seat* is a place in the run buffer."""

    carry: Carry  # [slot]
    seat: jax.Array  # i32[slot]: the seat of the lane that is simulated here, -1 for none
    tuner: Any  # what the engine has learnt about its pace
    outcome: EndedLane  # [seat]: what stays of lanes that have ended


class Report(NamedTuple):
    """What a call reports to the host."""

    starts: jax.Array  # i32[]: how many of the waiting lanes have got a slot
    chunks: jax.Array  # i32[]: chunks done
    # f32[]: sum of the shares of the clock that the lanes in slots have behind them
    share: jax.Array


class _Turns(NamedTuple):
    """:func:`advance`, between two hand-outs of lanes."""

    pool: Pool
    starts: jax.Array  # i32[]: waiting lanes that have got a slot
    chunks: jax.Array  # i32[]: chunks done
    turns: jax.Array  # i32[]: hand-outs done
    share: jax.Array  # f32[]: as in Report


class _Chunks(NamedTuple):
    """:func:`_play`, between two chunks."""

    carry: Carry
    tuner: Any
    done: jax.Array  # i32[]: chunks done in this call


def advance(
    engine: Engine,
    native: bool,
    environment: Environment,
    lanes: Lane,
    line: jax.Array,
    waiting: jax.Array,
    pool: Pool,
    limits: CallLimits,
) -> tuple[Pool, Report]:
    """Run lanes (constants, ``[seat]``) for one call; slots whose lanes end take the next ones.

    The first ``waiting`` of ``line``, ``i32[seat]``, are the seats whose lanes wait for a slot.
    """

    def turn(now: _Turns) -> _Turns:
        """Empty slots take lanes, chunks are run, and lanes that have ended leave their slots."""
        pool = now.pool
        # The n-th empty slot takes the n-th lane in line, so no two slots take the same one.
        empty = pool.seat < 0
        next_ = now.starts + jnp.cumsum(empty, dtype=jnp.int32) - 1
        gets = empty & (next_ < waiting)
        seat = jnp.where(gets, line[jnp.minimum(next_, line.size - 1)], pool.seat)
        starts = now.starts + jnp.sum(gets, dtype=jnp.int32)

        slot_lanes = jax.tree.map(lambda x: x[jnp.maximum(seat, 0)], lanes)
        first = _begin_all(environment, slot_lanes)
        carry = jax.vmap(select_tree)(gets, first, pool.carry)
        # A slot without a lane must not run: any status but RUNNING freezes it.
        status = jnp.where(seat < 0, jnp.int32(Status.HORIZON), carry.state.status)
        carry = carry._replace(state=carry.state._replace(status=status))

        most_idle = jnp.where(starts < waiting, limits.patience, limits.quota)
        chunks = _play(
            engine,
            native,
            environment,
            slot_lanes,
            _Chunks(carry, pool.tuner, now.chunks),
            most_idle,
            limits,
        )
        carry = chunks.carry

        # Before the slot takes another lane; `line.size` is no seat, and what goes there is
        # dropped.
        ended = (seat >= 0) & (carry.state.status != Status.RUNNING)
        to = jnp.where(ended, seat, line.size)
        lane_outcomes = outcomes(environment, slot_lanes, carry)
        outcome = jax.tree.map(
            lambda buffer, x: buffer.at[to].set(x, mode="drop"), pool.outcome, lane_outcomes
        )
        seat = jnp.where(ended, -1, seat)
        shares = jnp.where(seat < 0, jnp.float32(0), jax.vmap(_share)(slot_lanes, carry))
        return _Turns(
            Pool(carry, seat, chunks.tuner, outcome),
            starts,
            chunks.done,
            now.turns + 1,
            jnp.sum(shares),
        )

    def more(now: _Turns) -> jax.Array:
        # One turn in any case: a call may come with running lanes alone.
        return (now.turns == 0) | (now.chunks < limits.chunks) & (now.starts < waiting)

    zero = jnp.int32(0)
    last = jax.lax.while_loop(more, turn, _Turns(pool, zero, zero, zero, jnp.float32(0)))
    return last.pool, Report(last.starts, last.chunks, last.share)


def _play(
    engine: Engine,
    native: bool,
    environment: Environment,
    lanes: Lane,
    begin: _Chunks,
    most_idle: jax.Array,
    limits: CallLimits,
) -> _Chunks:
    """Chunks until enough of them are done or too many slots are idle."""
    write = jax.vmap(partial(record_mark, environment))

    def chunk(now: _Chunks) -> _Chunks:
        takes = environment, lanes, now.carry, now.tuner, limits.chunk
        if native:
            carry, tuner = in_one_piece(getattr(engine, "native_chunk", engine.chunk), *takes)
        else:
            carry, tuner = engine.chunk(*takes)
        # Lanes that reached a mark have waited for this; the next chunk continues them.
        return _Chunks(write(lanes, carry), tuner, now.done + 1)

    def more(now: _Chunks) -> jax.Array:
        idle = jnp.sum(now.carry.state.status != Status.RUNNING, dtype=jnp.int32)
        return (now.done < limits.chunks) & (idle <= most_idle)

    return jax.lax.while_loop(more, chunk, begin)


# What a native function cannot contain, or has other bits in (the compiler refuses a few more).
_FOREIGN = re.compile(
    "sort|tan|cbrt|fft|lu|eigh?|svd|ffi_call|.*(top_k|scatter|callback|cholesky|householder).*"
)


def may_be_native(platform: str) -> bool:
    """Whether to compile native functions for a platform; JAXBANDITS_NATIVE=0 turns them off."""
    known = platform == "cpu" and jax.__version_info__ < (0, 13)
    return known and os.environ.get("JAXBANDITS_NATIVE", "1") != "0"


def primitives(jaxpr: Any) -> Iterator[str]:
    """The name of each operation of a trace and of the traces in it."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for inside in jaxprs_in_params(equation.params):
            yield from primitives(inside)


def in_one_piece(function: Callable[..., T], *takes: Any) -> T:
    """``function(*takes)``, compiled for a CPU as one native function, with the same bits.

    Otherwise a round is a dozen kernels that an interpreter calls, one after the other over all
    lanes.

    Raises:
        NoNativeForm: it sorts, scatters, calls the host, … What else has none fails when it is
            compiled.
    """

    def whole(*takes: Any) -> Any:
        # The compiler aborts the process over an argument that nothing needs: so all are needed.
        needed = sum(x.reshape(-1)[0].astype(jnp.int32) for x in jax.tree.leaves(takes) if x.size)
        return function(*takes), needed

    program = jax.jit(whole)
    if found := next(filter(_FOREIGN.fullmatch, primitives(program.trace(*takes).jaxpr)), None):
        raise NoNativeForm(f"{found} has no native form")
    # As a value: in a context every operation inside would be marked.
    played = set_xla_metadata(program(*takes), xla_cpu_small_call="true", inlineable="false")
    return jax.lax.optimization_barrier(played)[0]  # type: ignore[no-any-return]


def outcomes(environment: Environment, lanes: Lane, carry: Carry) -> EndedLane:
    """What would be kept of these lanes, ``[slot]``, if they ended now."""

    return jax.vmap(partial(_outcome, environment))(lanes, carry)


def _outcome(environment: Environment, lane: Lane, carry: Carry) -> EndedLane:
    state, world = carry.state, at_instance(environment, lane.row)
    final = world.summary(state.environment) | lane.policy.summary(state.policy)
    return EndedLane(
        carry.rows, account(world, lane, state.environment, state.ledger), state.status, final
    )


def lane_trial(engine: Engine, environment: Environment, lane: Lane) -> tuple[Carry, EndedLane]:
    """A lane in which the engine does everything once, for the digest of the program."""
    carry = engine.trial(environment, lane, scan.start_lane(environment, lane))
    return carry, _outcome(environment, lane, carry)


# Hashing is most of the work and profits from the widest vectors; on CPU, XLA takes half of them
# unless told (machines without such vectors ignore it). Medians of three, one core: leap 1.15 times
# as fast, scan 1.1 to 1.2.
_OPTIONS: dict[str, dict[str, Any]] = {"cpu": {"xla_cpu_prefer_vector_width": 512}}


# The kinds of work that may be part of one CUDA graph: loops and branches, too, which XLA leaves to
# the host by itself.
_CAPTURED = "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,DYNAMIC_SLICE_FUSION,CONDITIONAL,WHILE"


def options(platform: str, captured: bool | None = None) -> dict[str, Any]:
    """The compiler's options for the devices of a platform.

    Args:
        captured: CUDA: whole loops in one graph, so that the host launches nothing in between (on
            an H100 1.3 to 1.9 times as fast, docs/accelerators.md). By default yes, unless the
            environment variable JAXBANDITS_CUDA_GRAPHS is 0.
    """
    if captured is None:
        captured = os.environ.get("JAXBANDITS_CUDA_GRAPHS", "1") != "0"
    graphs = {"xla_gpu_enable_command_buffer": _CAPTURED} if captured and platform == "gpu" else {}
    return _OPTIONS.get(platform, {}) | graphs


def compiled(platform: str) -> jax.stages.Wrapped:
    """:func:`advance` for the devices of a platform; the new state takes the old one's memory."""
    return _compiled(tuple(sorted(options(platform).items())))


@cache
def _compiled(option_items: tuple[tuple[str, Any], ...]) -> jax.stages.Wrapped:
    return jax.jit(
        advance,
        static_argnames=("engine", "native"),
        donate_argnames=("pool",),
        compiler_options=dict(option_items) or None,
    )


def _share(lane: Lane, carry: Carry) -> jax.Array:
    clock = ticks.to_float(lane.constraint.clock(carry.state.ledger))
    return jnp.clip(clock / ticks.to_float(lane.constraint.end()), 0, 1)


# --- on the host: the run buffer of a worker


_LEAST = 64  # lanes of a piece that travels


class RunBuffer:
    """Assigns lanes of a task to seats; keeps their constants on a device and their results.

    On CPU the device reads and writes the host's own memory. Elsewhere only what is new travels
    (constants of new lanes, outcomes of lanes that have ended), in pieces whose sizes are powers of
    two: few programs are compiled.
    """

    def __init__(self, task: Task, number: int, device: Any, *, near: bool | None = None):
        self.lane_of = np.full(number, -1)  # by seat, -1: none
        self.lanes: Lane | None = None  # [seat], on the device; None before the first lane came
        self._task, self._device = task, device
        self._near = device.platform == "cpu" if near is None else near

    @property
    def free(self) -> np.ndarray:
        """The seats without a lane."""
        return np.flatnonzero(self.lane_of < 0)

    def take(self, seats: np.ndarray, numbers: np.ndarray) -> None:
        """Assign these lanes, at least one, to these seats."""
        self.lane_of[seats] = numbers
        if self.lanes is None:
            self.lanes = constants(self._task, np.maximum(self.lane_of, 0), self._device)
        elif self._near:  # no program runs now
            new = self._task.lanes(numbers)
            jax.tree.map(lambda into, x: into.__setitem__(seats, x), self.lanes, new)
        else:
            at, of = (_padded(x, self.lane_of.size) for x in (seats, numbers))
            new = self._task.lanes(of)
            self.lanes = _put(self.lanes, *jax.device_put((at, new), self._device))

    def leave(self, outcome: EndedLane, ended: np.ndarray) -> tuple[np.ndarray, EndedLane]:
        """The lanes in ``ended`` seats and their results, perhaps followed by padding.

        The arrays may still be on their way; ``outcome`` is not needed any more.
        """
        numbers = self.lane_of[ended]
        self.lane_of[ended] = -1
        if self._near:
            return numbers, jax.tree.map(lambda x: np.asarray(x)[ended], outcome)
        at = _padded(np.flatnonzero(ended), ended.size)
        ended_lanes = _rows_at(outcome, jax.device_put(at, self._device))
        for x in jax.tree.leaves(ended_lanes):
            x.copy_to_host_async()
        return numbers, ended_lanes


def constants(task: Task, numbers: np.ndarray, device: Any) -> Lane:
    """The constants of these lanes; programs of a CPU read them in the host's own memory."""
    lanes = task.lanes(numbers)
    return lanes if device.platform == "cpu" else jax.device_put(lanes, device)


def constant_shapes(task: Task, count: int, device: Any) -> Lane:
    """The shapes of :func:`constants`, for the compiler."""
    place = None if device.platform == "cpu" else SingleDeviceSharding(device)
    return jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), task.shapes.lanes(count)
    )


def _padded(ids: np.ndarray, limit: int) -> np.ndarray:
    """As many as the next power of two, at most ``limit``, with the first one again and again."""
    size = min(max(_LEAST, 1 << (ids.size - 1).bit_length()), limit)
    return np.concatenate([ids, np.full(size - ids.size, ids[0])]).astype(np.int32)


@partial(jax.jit, donate_argnums=0)
def _put(buffer: T, at: jax.Array, new: T) -> T:
    return jax.tree.map(lambda into, x: into.at[at].set(x), buffer, new)


@jax.jit
def _rows_at(outcome: T, at: jax.Array) -> T:
    return jax.tree.map(lambda x: jnp.take(x, at, axis=0), outcome)


# --- the state of a worker that has not begun, and how much memory it takes


# Lanes that a worker keeps for each in flight, of few slots more: a visit for new ones costs
# milliseconds of Python.
_SEATS_PER_SLOT, _MOST_PER_SLOT, _SEATS = 4, 16, 256


def seats_for(slots: int) -> int:
    """How many lanes a worker with so many slots keeps."""
    return max(_SEATS_PER_SLOT * slots, min(_MOST_PER_SLOT * slots, _SEATS))


def _resized(tree: T, lanes: int) -> T:
    """The shapes of a tree with another number of lanes."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct((lanes, *x.shape[1:]), x.dtype), tree)


class Shapes:
    """The shapes of constants, of the state and of the outcomes of lanes, each found once."""

    def __init__(self, lane: scan.Lane, carry: scan.Carry, outcome: EndedLane):
        self.lanes: Callable[[int], scan.Lane] = cache(partial(_resized, lane))
        self.carry: Callable[[int], scan.Carry] = cache(partial(_resized, carry))
        self.outcome: Callable[[int], EndedLane] = cache(partial(_resized, outcome))
        self.bytes: Callable[[int], int] = cache(self._bytes)  # of a worker with so many slots
        self.state_bytes = tree_bytes(self.carry(1).state)  # of one lane

    def _bytes(self, slots: int) -> int:
        seats = seats_for(slots)
        return tree_bytes((self.carry(slots), self.outcome(seats), self.lanes(seats)))


@cache
def _shapes_of(program: str | None, structure: Any, *shapes: Any) -> Shapes:
    environment, lane = structure.unflatten(shapes)
    with PROGRAM(program):
        carry = jax.eval_shape(_begin_all, environment, lane)
        return Shapes(lane, carry, jax.eval_shape(outcomes, environment, lane, carry))


def blank(task: Task, slots: int) -> Pool:
    """The state of a worker that has not begun, as host arrays: no program for each shape."""
    shapes, engine = task.shapes, task.engine
    parts = shapes.carry(slots), shapes.outcome(seats_for(slots))
    carry, outcome = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), parts)
    return Pool(carry, np.full(slots, -1, np.int32), engine.tuner(slots), outcome)  # type: ignore[arg-type]


def _begin_all(environment: Environment, lanes: scan.Lane) -> scan.Carry:
    # A function with a name: jax keeps the trace of one, and would trace a lambda anew for every
    # worker.
    return jax.vmap(partial(scan.start_lane, environment))(lanes)


def tree_bytes(tree: Any) -> int:
    """Memory of all arrays, or shapes of arrays, in a tree."""
    return sum(int(np.prod(x.shape)) * np.dtype(x.dtype).itemsize for x in jax.tree.leaves(tree))
