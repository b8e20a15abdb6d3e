"""Rewrites the trace of one lane for a group of lanes side by side in one GPU kernel.

The compiler of a kernel supports arrays of 2ⁿ numbers, but no slice of one and no gather. So here a
value of shape ``S`` is a NumPy array of objects of that shape, and each *entry* is one number of
every lane: a NumPy number, known while tracing; an array ``[lane]``; or an :class:`Arm`, a column
of an array ``[lane, arm]``, a *tile*. What only moves numbers is NumPy's and costs nothing.

Entries that are a whole tile in order are computed at once, others one by one. That is a matter of
speed, never of right and wrong: each entry is a number by itself, too.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.random import threefry_prng_impl

from jaxbandits._engine.lanes import EACH, WITHIN, Rewriter, inner, scan_parts
from jaxbandits.core import streams

_Mode = lax.GatherScatterMode
_UNROLLED = 64  # turns of an inner scan that are written out
_MOST = 1024  # entries of one value that are computed one by one: a longer program is not worth it
# What hands its values on: one kernel computes a score in one way, and has numbers, not arrays.
_SAME = re.compile("copy(_p)?|once|optimization_barrier|stop_gradient|random_(un)?wrap")
_TAKES_TABLES = re.compile("gather|dynamic_slice|cond|while|scan")


class Arm:
    """An entry that is a column of a tile."""

    def __init__(self, tile: jax.Array, number: int):
        self.tile, self.number = tile, number


class Table(NamedTuple):
    """Numbers in memory that all lanes share; bools are stored as integers."""

    load: Callable[..., Any]  # of an index for each axis, arrays of one shape
    shape: tuple[int, ...]
    known: np.ndarray | None = None  # if it is a constant


def entries(shape: Sequence[int], entry: Callable[[tuple[int, ...]], Any]) -> np.ndarray:
    """An array of the entries at its indices."""
    made = np.empty(tuple(shape), object)
    for i in np.ndindex(made.shape):
        made[i] = entry(i)
    return made


def known(x: Any) -> np.ndarray:
    """The entries of constant numbers."""
    x = np.asarray(x)
    return entries(x.shape, lambda i: x[i])


def numbered(shape: Sequence[int], axis: int) -> np.ndarray:
    """0, 1, … along an axis of an array with so many axes, known; of size 1 along the others."""
    sizes = [n if d == axis else 1 for d, n in enumerate(shape)]
    return known(np.arange(shape[axis], dtype=np.int32).reshape(sizes))


def _rows(value: np.ndarray) -> list[np.ndarray]:
    """Its rows as arrays, also if each is a single entry."""
    return [value[k, ...] for k in range(len(value))]


def _is_known(entry: Any) -> bool:
    return isinstance(entry, np.generic)


def _is_in_place(entry: Any, place: int) -> bool:
    return isinstance(entry, Arm) and entry.number == place


def _lines(shape: Sequence[int], axis: int | None) -> list[tuple[Any, ...]]:
    """Indices of all lines along an axis; of all entries, if it is None."""
    indices = np.ndindex(*(n for d, n in enumerate(shape) if d != axis))
    return [i if axis is None else (*i[:axis], slice(None), *i[axis:]) for i in indices]


def _first_line(value: np.ndarray, axis: int) -> np.ndarray:
    """What lies along an axis, at the first place of the others."""
    return np.moveaxis(value, axis, 0).reshape(value.shape[axis], -1)[:, 0]


def _put(value: np.ndarray, at: tuple[Any, ...], axis: int | None, cell: Any) -> None:
    """An array as the entry, or the line of entries, at an index."""
    if axis is None:
        value[at] = cell
        return
    line, is_tile = value[at], not _is_known(cell) and cell.ndim == 2
    for j in range(len(line)):
        line[j] = Arm(cell, j) if is_tile else cell


def _source(entry: Any, place: int | None) -> Any:
    """Equal for entries that are the same number, or at their places in the same tile."""
    if isinstance(entry, Arm):
        return id(entry.tile), None if entry.number == place else entry.number
    return (entry.dtype, entry.tobytes()) if _is_known(entry) else id(entry)


# --- what only moves numbers


def _spread_out(e: Any, x: np.ndarray, *_: Any) -> np.ndarray:
    sizes = dict(zip(e.params["broadcast_dimensions"], x.shape, strict=True))
    shape = e.params["shape"]
    return np.broadcast_to(x.reshape([sizes.get(d, 1) for d in range(len(shape))]), shape)


def _padded(e: Any, x: np.ndarray, filling: np.ndarray) -> np.ndarray:
    out = entries(e.outvars[0].aval.shape, lambda _: filling[()])
    for i in np.ndindex(x.shape):
        around = zip(i, e.params["padding_config"], strict=True)
        to = tuple(low + at * (1 + between) for at, (low, _, between) in around)
        # A padding may be negative
        if all(0 <= at < n for at, n in zip(to, out.shape, strict=True)):
            out[to] = x[i]
    return out


def _reshaped(e: Any, x: np.ndarray, *_: Any) -> np.ndarray:
    # A key has an axis more, its words
    return x.reshape((*e.outvars[0].aval.shape, *x.shape[len(e.invars[0].aval.shape) :]))


_BOUNDS = "start_indices", "limit_indices", "strides"
_MOVES: dict[str, Callable[..., Any]] = {
    "broadcast_in_dim": _spread_out,
    "concatenate": lambda e, *xs: np.concatenate(xs, e.params["dimension"]),
    "iota": lambda e: known(np.indices(e.params["shape"])[e.params["dimension"]].astype(e.params["dtype"])),
    "pad": _padded,
    "reshape": _reshaped,
    "rev": lambda e, x: np.flip(x, e.params["dimensions"]),
    "slice": lambda e, x: x[tuple(map(slice, *(e.params[k] or [1] * x.ndim for k in _BOUNDS)))],
    "split": lambda e, x: np.split(x, np.cumsum(e.params["sizes"])[:-1], e.params["axis"]),
    "stack": lambda e, *xs: np.stack(xs, e.params["axis"]),
    "transpose": lambda e, x: x.transpose(e.params["permutation"]),
    "unstack": lambda e, x: _rows(np.moveaxis(x, e.params["axis"], 0)),
}  # fmt: skip
_MOVES |= dict.fromkeys(("expand_dims", "squeeze"), _MOVES["reshape"])


def _extreme(kind: Any, sign: int) -> Any:
    """The number of a kind that is larger, or smaller, than all others."""
    if jnp.issubdtype(kind, jnp.floating):
        return sign * np.inf
    return jnp.iinfo(kind).max if sign > 0 else jnp.iinfo(kind).min


def _in_order(*xs: Any, axis: int, keys: int) -> list[jax.Array]:
    """In order along an axis: each number at its rank, which is how many come before it."""
    xs = tuple(jnp.moveaxis(x, axis, -1) for x in xs)
    rank, square = xs[0].ndim, (*xs[0].shape, xs[0].shape[-1])
    before, place = (lax.broadcasted_iota(jnp.int32, square, d) for d in (rank - 1, rank))
    is_first = before < place  # of equal ones
    # From the last key to the first: where two numbers are equal, the keys behind decide.
    for x in reversed(xs[:keys]):
        a, b = x[..., :, None], x[..., None, :]
        is_less = (a < b) | ((b != b) & (a == a))  # what is no number is larger than all
        is_first = is_less | (((a == b) | ((a != a) & (b != b))) & is_first)
    is_here = jnp.sum(is_first, -2)[..., None] == place
    at = jnp.argmax(is_here.astype(jnp.int32), -2)
    taken = (jnp.take_along_axis(x, at, -1, mode="promise_in_bounds") for x in xs)
    return [jnp.moveaxis(x, -1, axis) for x in taken]


# Rules by name, and their arguments. A reduction: of two numbers, of a tile, of nothing (None: ∓∞).
_RULES: dict[str, tuple[str, ...] | tuple[Any, ...]] = {
    "reduce_max": ("_reduced", lax.max, jnp.max, None),
    "reduce_min": ("_reduced", lax.min, jnp.min, None),
    "reduce_sum": ("_reduced", lax.add, jnp.sum, 0),
    "reduce_prod": ("_reduced", lax.mul, None, 1),
    "reduce_or": ("_reduced", lax.bitwise_or, jnp.max, False),
    "reduce_and": ("_reduced", lax.bitwise_and, jnp.min, True),
    "argmax": ("_best", operator.gt, lax.argmax, -1),
    "argmin": ("_best", operator.lt, lax.argmin, 1),
    "cumsum": ("_running", lax.add),
    "cumprod": ("_running", lax.mul),
    "cummax": ("_running", lax.max),
    "cummin": ("_running", lax.min),
    "scatter": ("_scattered", None),
    "scatter_add": ("_scattered", lax.add),
    "scatter_mul": ("_scattered", lax.mul),
    "scatter_max": ("_scattered", lax.max),
    "scatter_min": ("_scattered", lax.min),
    "random_bits": ("_keyed", threefry_prng_impl.random_bits),
    "random_fold_in": ("_keyed", threefry_prng_impl.fold_in),
    "random_split": ("_keyed", threefry_prng_impl.split),
    # The generator itself: this package's own, which has the same bits
    "threefry2x32": ("_keyed", lambda a, b, x, y: streams.threefry2x32((a, b), (x, y))),
}


class Cells(Rewriter):
    """``side`` lanes, and ``wide`` places for the ``arms`` of each (1: no tiles)."""

    def __init__(self, side: int, wide: int, arms: int):
        self.side, self.wide, self.arms = side, wide, arms

    def shared(self, x: Any) -> Any:
        """The value of a constant."""
        return x if isinstance(x, Table) else known(x)

    def equation(self, e: Any, ins: list[Any]) -> list[Any]:
        """Evaluate by NumPy if numbers are only moved, else by rule ``p_…`` or entry by entry."""
        name = e.primitive.name.replace("-", "_")
        if WITHIN.fullmatch(name):
            return self.run(*inner(e), ins)
        if _SAME.fullmatch(name):
            return ins
        if not _TAKES_TABLES.fullmatch(name):
            ins = [self._whole(name, x) if isinstance(x, Table) else x for x in ins]
        rule = _MOVES.get(name) or getattr(self, f"p_{name}", None)
        if name in _RULES:
            method, *given = _RULES[name]
            rule = partial(getattr(self, method), *given)
        elif name == "select_n" and len(ins) == 3:
            return [self.chosen(ins[0], ins[2], ins[1])]
        elif rule is None and EACH.fullmatch(name):
            return [self.each(partial(e.primitive.bind, **e.params), *ins)]
        if rule is None:  # a product of matrices has none: its sums have another order there
            raise NotImplementedError(name)
        result = rule(e, *ins)
        return result if isinstance(result, list) else [result]

    def _whole(self, name: str, table: Table) -> np.ndarray:
        if table.known is None or table.known.size > _MOST:
            raise NotImplementedError(f"{name} of a table")
        return known(table.known)

    # --- entries as arrays

    def spread(self, cell: Any, is_tile: bool) -> jax.Array:
        """A number, ``[lane]`` or ``[lane, arm]`` as one of the last two."""
        shape = (self.side, self.wide) if is_tile else (self.side,)
        if _is_known(cell):
            return jnp.full(shape, cell, cell.dtype)
        return cell if cell.ndim == len(shape) else lax.broadcast_in_dim(cell, shape, (0,))

    def places(self) -> jax.Array:
        """The number of each arm, as a tile."""
        return lax.broadcasted_iota(jnp.int32, (self.side, self.wide), 1)

    def alone(self, entry: Any) -> Any:
        """An entry as a known number or as ``[lane]``."""
        return self.pick(entry.tile, np.int32(entry.number)) if isinstance(entry, Arm) else entry

    def pick(self, tile: jax.Array, at: Any) -> jax.Array:
        """The value of one arm: a sum of one number and zeros, as integers."""
        mine, kind = self.places() == self.spread(at, True).astype(jnp.int32), tile.dtype
        is_float = jnp.issubdtype(kind, jnp.floating)
        whole = lax.bitcast_convert_type(tile, jnp.int32) if is_float else tile.astype(jnp.int32)
        found = jnp.sum(lax.select(mine, whole, jnp.zeros_like(whole)), axis=1)
        if kind == jnp.bool_:
            return found != 0
        return lax.bitcast_convert_type(found, kind) if is_float else found.astype(kind)

    def joined(self, line: Any) -> Any:
        """Join entries into one array, with one selection per run of entries from one source."""
        # Consecutive whole numbers are the places plus the first, without any selection.
        first, n = line[0], len(line)
        is_whole = n > 1 and all(map(_is_known, line)) and first.dtype.kind in "iu"
        if is_whole and [int(x) - int(first) for x in line] == list(range(n)):
            return self.places().astype(first.dtype) + first
        sources = [_source(entry, place) for place, entry in enumerate(line)]
        starts = [j for j in range(n) if j == 0 or sources[j] != sources[j - 1]]
        cells = [line[j].tile if _is_in_place(line[j], j) else self.alone(line[j]) for j in starts]
        tile = cells[0]
        for start, cell in zip(starts[1:], cells[1:], strict=True):
            is_later = self.places() >= start
            tile = lax.select(is_later, self.spread(cell, True), self.spread(tile, True))
        return tile

    def _is_side(self, line: Any) -> bool:
        """Are most of these entries a tile's, at their places?"""
        count = sum(map(_is_in_place, line, range(len(line))))
        return 1 < len(line) <= self.wide and 2 * count > len(line)

    def cell(self, value: np.ndarray, at: tuple[Any, ...], axis: int | None) -> Any:
        """The entry, or the line of entries, at an index: known, ``[lane]`` or ``[lane, arm]``."""
        return self.alone(value[at]) if axis is None else self.joined(value[at])

    def _axis(self, values: Sequence[np.ndarray]) -> int | None:
        """The axis along which arrays of entries, of one shape, are computed side by side."""
        if self.wide == 1 or not values[0].size:
            return None
        firsts = [(d, _first_line(x, d)) for d in range(values[0].ndim) for x in values]
        if (axis := next((d for d, line in firsts if self._is_side(line)), None)) is not None:
            return axis
        # Constants that differ between arms, beside a number of the lane: side by side, too
        numbers = [x for x in values if all(map(_is_known, x.flat))]
        if len(numbers) == len(values):
            return None
        firsts = [(d, _first_line(x, d)) for d in range(values[0].ndim) for x in numbers]
        long = ((d, line) for d, line in firsts if self.wide < 2 * len(line) <= 2 * self.wide)
        return next((d for d, line in long if len(set(line)) > 1), None)

    def each(self, f: Any, *values: np.ndarray) -> np.ndarray:
        """A function of single numbers, for arrays of entries that broadcast; of equal ones once.
        Of whole numbers that are known the result is known, too.
        """
        values = np.broadcast_arrays(*values)
        shape, axis, made = values[0].shape, self._axis(values), dict[Any, Any]()
        out = np.empty(shape, object)
        for at in _lines(shape, axis):
            lines = [[x[at]] if axis is None else x[at] for x in values]
            source = tuple(_source(x, place) for line in lines for place, x in enumerate(line))
            if source not in made:
                if len(made) == _MOST:
                    raise NotImplementedError(f"arithmetic of {shape} numbers")
                cells = [self.cell(x, at, axis) for x in values]
                if all(_is_known(x) and x.dtype.kind != "f" for x in cells):
                    with jax.ensure_compile_time_eval():
                        made[source] = np.asarray(f(*cells))[()]
                else:
                    is_tile = any(not _is_known(x) and x.ndim == 2 for x in cells)
                    made[source] = f(*(self.spread(x, is_tile) for x in cells))
            _put(out, at, axis, made[source])
        return out

    def equal(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Whether these integers are equal."""
        return self.each(lambda a, b: a.astype(jnp.int32) == b.astype(jnp.int32), x, y)

    def chosen(self, condition: np.ndarray, yes: np.ndarray, no: np.ndarray) -> np.ndarray:
        """A choice between entries; if the condition is a constant, nothing is computed."""
        if all(map(_is_known, condition.flat)):
            return np.where(condition.astype(bool), yes, no)
        return self.each(lax.select, condition, yes, no)

    def p_convert_element_type(self, e: Any, x: np.ndarray) -> np.ndarray:
        """Convert a number to another type."""
        kind = np.dtype(e.params["new_dtype"])
        return self.each(lambda x: x != 0 if kind.kind == "b" else x.astype(kind), x)

    # --- traces within, and loops

    def p_platform_index(self, e: Any) -> np.ndarray:
        """The index of this device's branch."""
        names = e.params["platforms"]
        return known(np.int32(next(i for i, x in enumerate(names) if x is None or "cuda" in x)))

    def p_cond(self, e: Any, index: np.ndarray, *ins: Any) -> list[np.ndarray]:
        """Evaluate all branches and select among them."""
        branches = e.params["branches"]
        if _is_known(index[()]):
            branches = (branches[int(np.clip(index[()], 0, len(branches) - 1))],)
        first, *others = (self.run(b.jaxpr, b.consts, ins) for b in branches)
        for number, results in enumerate(others, 1):
            later = self.each(lambda x, n=number: x.astype(jnp.int32) >= n, index)
            first = [self.chosen(later, new, old) for new, old in zip(results, first, strict=True)]
        return first

    def axis_of(self, shape: Sequence[int]) -> int | None:
        """The axis along which arms lie side by side, where a value is in arrays or in memory."""
        if self.wide == 1 or self.arms not in shape:
            return None
        return tuple(shape).index(self.arms)

    def arrays(self, values: Sequence[np.ndarray]) -> tuple[jax.Array, ...]:
        """The arrays that a loop carries for these values."""
        axes = [self.axis_of(x.shape) for x in values]
        return tuple(
            self.spread(self.cell(x, at, axis), axis is not None)
            for x, axis in zip(values, axes, strict=True)
            for at in _lines(x.shape, axis)
        )

    def values(self, arrays: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
        """The values of these arrays."""
        rest, made = iter(arrays), [np.empty(shape, object) for shape in shapes]
        for value in made:
            axis = self.axis_of(value.shape)
            for at in _lines(value.shape, axis):
                _put(value, at, axis, next(rest))
        return made

    def any_lane(self, value: np.ndarray) -> jax.Array:
        """Whether the condition is true in any lane."""
        return jnp.max(self.spread(self.alone(value[()]), False).astype(jnp.int32)) > 0

    def p_while(self, e: Any, *ins: Any) -> list[np.ndarray]:
        """Loop while any lane continues; the others keep their values."""
        test, body = e.params["cond_jaxpr"], e.params["body_jaxpr"]
        n, m = e.params["cond_nconsts"], e.params["cond_nconsts"] + e.params["body_nconsts"]
        shapes = [x.shape for x in ins[m:]]

        def goes_on(now: Sequence[np.ndarray]) -> np.ndarray:
            return self.run(test.jaxpr, test.consts, [*ins[:n], *now])[0]

        def once(now: Any) -> Any:
            old = self.values(now, shapes)
            on, new = goes_on(old), self.run(body.jaxpr, body.consts, [*ins[n:m], *old])
            return self.arrays([self.chosen(on, x, y) for x, y in zip(new, old, strict=True)])

        def more(now: Any) -> jax.Array:
            return self.any_lane(goes_on(self.values(now, shapes)))

        return self.values(lax.while_loop(more, once, self.arrays(ins[m:])), shapes)

    def p_scan(self, e: Any, *ins: Any) -> list[np.ndarray]:
        """Unroll a short loop."""
        p, (n, m) = e.params, scan_parts(e.params, len(ins))
        if p["length"] > _UNROLLED:
            raise NotImplementedError(f"a scan of {p['length']} turns")
        carry, rows, step = list(ins[n:m]), [], -1 if p["reverse"] else 1
        for t in range(p["length"])[::step]:
            now = [*ins[:n], *carry, *(x[t, ...] for x in ins[m:])]
            results = self.run(p["jaxpr"].jaxpr, p["jaxpr"].consts, now)
            carry = results[: m - n]
            rows.append(results[m - n :])
        return carry + [np.stack(ys) for ys in zip(*rows[::step], strict=True)]

    # --- along axes

    def _along(self, x: np.ndarray, whole: Callable[[jax.Array], Any], nothing: Any) -> np.ndarray:
        """What a function makes of each tile along the first axis; ``nothing`` stands beyond it."""

        def made(i: tuple[int, ...]) -> Any:
            tile = self.spread(self.joined(np.moveaxis(x, 0, -1)[i]), True)
            return whole(lax.select(self.places() < len(x), tile, jnp.full_like(tile, nothing)))

        return entries(x.shape[1:], made)

    def _reduced(self, pair: Any, whole: Any, nothing: Any, e: Any, x: np.ndarray) -> np.ndarray:
        axes, kind = e.params["axes"], e.invars[0].aval.dtype
        if nothing is None:
            nothing = _extreme(kind, -1 if pair is lax.max else 1)

        def of_tile(tile: jax.Array) -> jax.Array:
            numbers = tile.astype(jnp.int32) if kind == jnp.bool_ else tile
            return whole(numbers, axis=1).astype(kind)

        x = np.moveaxis(x, axes, range(len(axes)))
        for _ in axes:
            if not len(x):
                x = known(np.full(x.shape[1:], nothing, kind))
            elif whole is not None and self._is_side(_first_line(x, 0)):
                x = self._along(x, of_tile, nothing)
            else:
                x = reduce(partial(self.each, pair), _rows(x))
        return x

    def p_reduce(self, e: Any, *ins: np.ndarray) -> list[np.ndarray]:
        """Reduce in order by any function of two numbers."""
        half, axes, pair = len(ins) // 2, e.params["dimensions"], e.params["jaxpr"]
        xs = [np.moveaxis(x, axes, range(len(axes))) for x in ins[:half]]
        now = [np.broadcast_to(x, xs[0].shape[len(axes) :]) for x in ins[half:]]
        for rows in zip(*(_rows(x.reshape(-1, *x.shape[len(axes) :])) for x in xs), strict=True):
            now = self.run(pair.jaxpr, pair.consts, [*now, *rows])
        return now

    def _best(self, better: Any, whole: Any, sign: int, e: Any, x: np.ndarray) -> np.ndarray:
        """Where the largest is, or the smallest."""
        (axis,), kind = e.params["axes"], e.params["index_dtype"]
        x = np.moveaxis(x, axis, 0)
        if self._is_side(_first_line(x, 0)):
            nothing = _extreme(e.invars[0].aval.dtype, sign)
            return self._along(x, lambda t: whole(t, 1, kind), nothing)
        best, at = x[0, ...], known(np.zeros(x.shape[1:], kind))
        for k, row in enumerate(_rows(x)[1:], 1):
            takes = self.each(lambda a, b: better(a, b) | ((a != a) & (b == b)), row, best)
            best = self.chosen(takes, row, best)
            at = self.chosen(takes, known(np.asarray(k, kind)), at)
        return at

    def _running(self, pair: Any, e: Any, x: np.ndarray) -> np.ndarray:
        axis, step = e.params["axis"], -1 if e.params["reverse"] else 1
        rows = _rows(np.moveaxis(x, axis, 0))[::step]
        made = list(itertools.accumulate(rows, partial(self.each, pair)))[::step]
        return np.stack(made, axis) if made else x

    def p_sort(self, e: Any, *xs: np.ndarray) -> list[np.ndarray]:
        """Sort along an axis."""
        axis, keys = e.params["dimension"], e.params["num_keys"]
        return self._traced(partial(_in_order, axis=axis, keys=keys), e, *xs)

    # --- reads and writes at an index

    def _index(
        self, numbers: Any, mode: Any, shape: Sequence[int], out: Sequence[int], at: np.ndarray
    ) -> tuple[list[np.ndarray], np.ndarray, dict[int, int]]:
        """Where windows begin: an index for each axis of the array, each of the shape ``out``.

        Also whether each window is inside, and which axis of the array is which of ``out``.
        ``numbers`` are those of a gather, or of a scatter with updates of the shape ``out``; None:
        one window along all axes.
        """
        every = tuple(range(len(shape)))
        along, gone, of_axes, batches, at_batches = (
            numbers[:5] if numbers else (every, (), every, (), ())
        )
        left = (d for d in range(len(shape)) if d not in (*gone, *batches))
        windows = dict(zip(left, along, strict=True))
        others = [d for d in range(len(out)) if d not in along]
        at, index, inside = np.expand_dims(at, along), [], known(np.bool_(True))
        for d, n in enumerate(shape):
            # A window begins at 0 along an axis without index, at its own number along a batch's.
            size, place = out[windows[d]] if d in windows else 1, known(np.int32(0))
            if d in of_axes:
                most, place = np.int32(n - size), at[..., of_axes.index(d)]
                fits = lambda x, m=most: (x >= 0) & (x.astype(jnp.int32) <= m)  # noqa: E731
                inside = self.each(operator.and_, inside, self.each(fits, place))
                if mode != _Mode.PROMISE_IN_BOUNDS:
                    clipped = lambda x, m=most: jnp.clip(x.astype(jnp.int32), 0, m)  # noqa: E731
                    place = self.each(clipped, place)
            elif d in batches:
                place = numbered(out, others[at_batches[batches.index(d)]])
            if size > 1:
                beyond = numbered(out, windows[d])
                place = self.each(lambda x, y: x.astype(jnp.int32) + y, place, beyond)
            index.append(np.broadcast_to(place, out))
        return index, np.broadcast_to(inside, out), windows

    def _at(self, x: Any, index: Sequence[np.ndarray]) -> np.ndarray:
        """Numbers at these indices, all of one shape."""
        if isinstance(x, Table):
            return self.each(x.load, *index)
        unknown = [d for d, j in enumerate(index) if not all(map(_is_known, j.flat))]
        if not unknown:
            return entries(index[0].shape, lambda i: x[tuple(int(j[i]) for j in index)])
        d = unknown[-1]
        lines = np.moveaxis(x, d, 0)
        is_one = len(unknown) == 1 and self._axis([index[d]]) is None
        if is_one and self._is_side(_first_line(lines, 0)):

            def picked(i: tuple[int, ...]) -> Any:
                others = (int(j[i]) for axis, j in enumerate(index) if axis != d)
                tile = self.spread(self.joined(lines[:, *others]), True)
                return self.pick(tile, self.alone(index[d][i]))

            return entries(index[d].shape, picked)

        def found(k: int) -> np.ndarray:
            here = known(np.full(index[d].shape, k, np.int32))
            return self._at(x, [*index[:d], here, *index[d + 1 :]])

        result = found(0)
        for k in range(1, x.shape[d]):
            result = self.chosen(self.equal(index[d], known(np.int32(k))), found(k), result)
        return result

    def p_gather(self, e: Any, x: Any, at: np.ndarray) -> np.ndarray:
        """Gather windows at indices."""
        p, aval = e.params, e.outvars[0].aval
        numbers, mode = p.get("dimension_numbers"), p.get("mode", _Mode.CLIP)
        index, inside, _ = self._index(numbers, mode, x.shape, aval.shape, at)
        found = self._at(x, index) if index else np.broadcast_to(x, aval.shape)
        if mode != _Mode.FILL_OR_DROP:
            return found
        fill = p["fill_value"]
        if fill is None:
            is_whole = jnp.issubdtype(aval.dtype, jnp.integer)
            fill = np.nan if not is_whole else _extreme(aval.dtype, -1) or _extreme(aval.dtype, 1)
        return self.chosen(inside, found, known(np.full(aval.shape, fill, aval.dtype)))

    def p_dynamic_slice(self, e: Any, x: Any, *starts: np.ndarray) -> np.ndarray:
        """Read a window."""
        return self.p_gather(e, x, np.stack(starts))

    def p_dynamic_update_slice(self, e: Any, x: Any, new: Any, *starts: np.ndarray) -> np.ndarray:
        """Write a window."""
        return self._scattered(None, e, x, np.stack(starts), new)

    def _scattered(self, pair: Any, e: Any, x: Any, at: np.ndarray, new: np.ndarray) -> np.ndarray:
        """``x`` with new numbers in windows, one after the other; axes they fill at once."""
        numbers, mode = e.params.get("dimension_numbers"), e.params.get("mode", _Mode.CLIP)
        index, inside, windows = self._index(numbers, mode, x.shape, new.shape, at)
        full = {d: a for d, a in windows.items() if new.shape[a] == x.shape[d]}
        for i in np.ndindex(*(1 if a in full.values() else n for a, n in enumerate(new.shape))):
            here = inside[(*i, ...)] if mode == _Mode.FILL_OR_DROP else known(True)
            # An axis that the window fills is written at once; along others places are compared.
            for d in range(x.ndim):
                if d not in full:
                    at = self.equal(index[d][(*i, ...)], numbered(x.shape, d))
                    here = self.each(operator.and_, here, at)
            part = new[(*(slice(None) if a in full.values() else j for a, j in enumerate(i)), ...)]
            part = part.reshape([n if d in full else 1 for d, n in enumerate(x.shape)])
            x = self.chosen(here, part if pair is None else self.each(pair, x, part), x)
        return x

    # --- jax's own random numbers

    def _traced(self, function: Any, e: Any, *ins: np.ndarray) -> list[np.ndarray]:
        """A function of arrays, of values; a key is its words, along the last axis."""
        words = {"key<fry>": np.uint32}  # another generator has other functions, and is refused
        kinds = (words.get(str(v.aval.dtype), v.aval.dtype) for v in e.invars)
        closed = jax.make_jaxpr(function)(*map(jax.ShapeDtypeStruct, map(np.shape, ins), kinds))
        return self.run(closed.jaxpr, closed.consts, ins)

    def _keyed(self, function: Any, e: Any, *ins: np.ndarray) -> list[np.ndarray]:
        return self._traced(partial(function, **e.params), e, *ins)

    def p_iota_2x32_shape(self, e: Any) -> list[np.ndarray]:
        """Consecutive numbers as two words each."""
        numbers = np.arange(np.prod(e.params["shape"], dtype=int)).reshape(e.params["shape"])
        return [known((numbers >> 32).astype(np.uint32)), known(numbers.astype(np.uint32))]
