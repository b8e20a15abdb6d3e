"""The kernel engine: many rounds in one launch on a GPU, with the bits of the scan engine.

With a few thousand lanes the scan waits for its launches, ten a round. Here :func:`scan.step`, its
trace for one lane written anew for some (:mod:`.cells`), is run inside one Pallas kernel, until
none of these lanes may go on. Marks, slots and everything else are the driver's. On a CPU the
kernel is interpreted, slowly: for tests of its bits.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._engine import scan
from jaxbandits._engine.cells import Cells, Table
from jaxbandits._engine.driver import primitives
from jaxbandits.core.checks import in_a_line

CPU_SLOTS, NATIVE_LANES = scan.CPU_SLOTS, 0  # never a native function
trial, tuner = scan.trial, scan.tuner

BITS_ARE_EQUAL = False
"""Whether ``engine="auto"`` may use this engine.

It becomes True together with a committed ``first_day.csv`` of a device whose rows of part "bits"
all say "equal: scan, kernel" (or "only scan plays it") and whose rows of part "speed" have the
kernel ahead of scan from 2¹⁰ lanes on.
"""
WORTH_COMPILING = 1e9  # rounds of a task: of scan 2 to 60 s, and a kernel compiles in 3 to 80

# A thread for each lane from so many lanes on, if the arms fit its registers; else one for each arm
# and lane. (A prototype on an H100, K = 10, million rounds a second: 2¹⁰ lanes 67 and 126, 2¹⁴ 988
# and 1,219, 2¹⁷ 3,781 and 2,517; 25 and 3 s to compile.)
_MANY_LANES, _FEW_ARMS = 1 << 16, 16
_WARP = 32  # threads that run together
_LEAST = 8  # places for arms: who pads them (Beta draws) has room
_LARGE = 64  # constants of more numbers lie in memory
_LONGEST = 1 << 14  # operations (RCUCB, K = 100, has 44,176: a compiler fills 20 GB with them)


def layout(arms: int, slots: int) -> tuple[int, int]:
    """Lanes of a block, and threads for the arms of each (1: a thread has all arms)."""
    if arms <= _FEW_ARMS and slots >= _MANY_LANES:
        return math.gcd(_WARP, slots), 1
    wide = max(1 << (arms - 1).bit_length(), _LEAST)
    return math.gcd(max(_WARP // wide, 1), slots), wide


def is_faster(task: Any) -> bool:
    """Whether a GPU finishes the task sooner, compilation included.

    With many arms leap is faster (an H100, ω-UCB, K = 100, 2¹⁴ lanes, million rounds a second: leap
    1,205, a kernel some 500).
    """
    few = task.engine is scan or getattr(task.environment.spec, "arms", 0) <= _FEW_ARMS
    return BITS_ARE_EQUAL and few and task.rounds >= WORTH_COMPILING


def rounds_between(expected: float) -> int:
    """Rounds between checks for marks: about twice the ``expected`` rounds between marks."""
    return int(np.clip(2 * expected, 64, 4096))


def why_not(task: Any) -> str | None:
    """Why this engine cannot run a task, or None if it can; traces what would be compiled."""
    if not hasattr(task.environment.spec, "arms"):
        return f"no kernel supports {type(task.environment).__name__}, which has no arms"
    takes = task.shapes.lanes(_WARP), task.shapes.carry(_WARP)
    world = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), task.environment)
    try:
        made = jax.make_jaxpr(partial(_rounds, interpret=True))(world, *takes, jnp.int32(1))
    except Exception as lacking:  # whatever it is, the scan simulates it
        return f"no kernel supports its round ({in_a_line(lacking)})"
    if (count := sum(1 for _ in primitives(made.jaxpr))) > _LONGEST:
        return f"no kernel supports its round of {count:,} operations, more than {_LONGEST:,}"
    return None


def chunk(
    environment: Any, lanes: Any, carry: Any, tuner: Any, rounds: jax.Array
) -> tuple[scan.Carry, Any]:
    """``rounds`` rounds of every lane, ``[slot]``, or fewer of those that end or come to a mark."""
    play = {name: partial(_rounds, interpret=name == "cpu") for name in ("cpu", "default")}
    state = jax.lax.platform_dependent(environment, lanes, carry, rounds, **play)
    return carry._replace(state=state), tuner


def _step(environment: Any, lane: Any, available: Any, goal: Any, state: Any) -> Any:
    carry = scan.Carry(available, state, None, None, goal)  # type: ignore[arg-type]
    return scan.step(environment, lane, carry).state


def _may_play(environment: Any, lane: Any, available: Any, goal: Any, state: Any) -> Any:
    carry = scan.Carry(available, state, None, None, goal)  # type: ignore[arg-type]
    return scan.may_play(lane, carry, state.ledger, state.status)


def _rounds(
    environment: Any, lanes: scan.Lane, carry: Any, rounds: jax.Array, *, interpret: bool
) -> scan.LaneState:
    """The states after these rounds."""
    # Imported when used: a start of the package need not wait for it, and one day it may be gone.
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    arms, slots = environment.spec.arms, carry.state.status.shape[0]
    side, wide = layout(arms, slots)
    # The marks are the driver's.
    given = lanes._replace(marks=None, record=None), carry.available, carry.goal  # type: ignore[arg-type]
    one = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), (*given, carry.state))
    # The end is asked where a loop asks: the compiler of kernels dies of one that is carried along.
    turn, more = (jax.make_jaxpr(f)(environment, *one) for f in (_step, _may_play))
    tables, constants, states = map(jax.tree.leaves, (environment, given, carry.state))
    large = [np.asarray(x) for x in turn.consts if np.size(x) > _LARGE]
    leaves = [*tables, *constants, *states, *large]
    first, last = len(tables) + len(constants), len(leaves) - len(large)  # of the states
    # In memory bools are whole numbers.
    inputs = [x.astype(jnp.int32) if x.dtype == jnp.bool_ else x for x in leaves]

    def kernel(rounds_ref: Any, *refs: Any) -> None:
        block = Cells(side, wide, arms)
        at = pl.program_id(0) * side + jax.lax.iota(jnp.int32, side)

        def lines(leaf: Any) -> Any:
            """Where a leaf's numbers of these lanes are, line by line, and which are there."""
            shape, lane = leaf.shape[1:], jax.lax.broadcast_in_dim(at, (side, wide), (0,))
            if (axis := block.axis_of(shape)) is None:
                return [(at, *i) for i in np.ndindex(shape)], None
            others = np.ndindex(*shape[:axis], *shape[axis + 1 :])
            places = [(lane, *i[:axis], block.places(), *i[axis:]) for i in others]
            return places, block.places() < arms

        known = map(_table, refs[last : len(leaves)], large, large)
        consts = [next(known) if np.size(x) > _LARGE else np.asarray(x) for x in turn.consts]
        fixed: list[Any] = list(map(_table, refs, tables))

        def held(ref: Any, leaf: Any) -> Any:
            arrays = [_table(ref, leaf).load(*place) for place in lines(leaf)[0]]
            return block.values(arrays, [leaf.shape[1:]])[0]

        fixed += map(held, refs[len(tables) :], constants)
        begin = block.arrays(list(map(held, refs[first:], states)))
        shapes = [x.shape[1:] for x in states]

        def go_on(now: Any) -> jax.Array:
            arguments = [*fixed, *block.values(now[1], shapes)]
            (runs,) = block.run(more.jaxpr, more.consts, arguments)
            return (now[0] < rounds_ref[0]) & block.any_lane(runs)

        def once(now: Any) -> Any:
            arguments = [*fixed, *block.values(now[1], shapes)]
            return now[0] + 1, block.arrays(block.run(turn.jaxpr, consts, arguments))

        ended = jax.lax.while_loop(go_on, once, (jnp.int32(0), begin))[1]
        rest = iter(ended)
        for ref, leaf in zip(refs[len(leaves) :], states, strict=True):
            places, mask = lines(leaf)
            for place in places:
                x = next(rest)
                x = x.astype(jnp.int32) if x.dtype == jnp.bool_ else x
                triton.store(ref.at[place], x, mask=mask)

    options: Any = {"interpret": True}
    if not interpret:
        options = {"compiler_params": triton.CompilerParams(num_warps=1, num_stages=1)}
    new = pl.pallas_call(
        kernel,
        grid=(slots // side,),
        out_shape=[jax.ShapeDtypeStruct(x.shape, x.dtype) for x in inputs[first:last]],
        input_output_aliases={1 + first + i: i for i in range(len(states))},
        name="rounds",
        **options,
    )(rounds[None], *inputs)
    played = [x.astype(old.dtype) for x, old in zip(new, states, strict=True)]
    return jax.tree.unflatten(jax.tree.structure(carry.state), played)


def _table(ref: Any, leaf: Any, known: np.ndarray | None = None) -> Table:
    """Numbers in memory; what is read beyond the arms is read again from the last place."""

    def load(*index: Any) -> jax.Array:
        shape = next(np.shape(i) for i in index if np.ndim(i))
        if len(shape) == 2:
            wide = (jnp.broadcast_to(jnp.int32(i), shape) for i in index)
            index = tuple(jnp.minimum(i, n - 1) for i, n in zip(wide, leaf.shape, strict=True))
        x = ref[index]
        return x != 0 if leaf.dtype == jnp.bool_ else x

    return Table(load, leaf.shape, known)
