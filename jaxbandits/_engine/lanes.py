"""Rewrites the trace of one lane for many lanes side by side, with the lanes' axis last.

``jax.vmap`` moves the lanes' axis to the front wherever a number of a lane is combined with an
array over arms, so ten arms would lie side by side and fill no vector. Here a value of shape ``S``
is ``S + (lane,)`` from end to end, and what all lanes share stays as it is. What has no rule here
has jax's own rule for batches, so everything is carried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Literal

from jaxbandits.core.checks import in_a_line

# What is done to each number by itself.
EACH = re.compile(
    "abs|a?(sin|cos|tan)h?|add(_any)?|and|atan2|bitcast_convert_type|cbrt|ceil|clamp|clz|copy(_p)?"
    "|convert_element_type|div|erf(_inv|c)?|expm?[12]?|floor|[gl][et]|integer_pow|is_finite|lgamma"
    "|log(1p|istic)?|max|min|mul|neg?|nextafter|not|once|x?or|eq|population_count|pow|rem|round"
    "|reduce_precision|r?sqrt|select_n|shift_.*|sign|square|stop_gradient|sub"
)
# What names its axes: an axis more behind them changes nothing.
_ALONG = re.compile(
    "arg(max|min)|concatenate|cum(max|min|prod|sum|logsumexp)|rev|sort|split|squeeze|stack"
    "|reduce_(and|max|min|or|prod|sum|xor)"
)
# What runs a trace, and the names of the parameter that is the trace.
WITHIN = re.compile("p?jit|closed_call|core_call|custom_[jv]vp_call|checkpoint|remat2")
_KEPT_AS = "jaxpr", "call_jaxpr", "fun_jaxpr"


class NoNativeForm(Exception):
    """The program contains an operation that a native function cannot contain."""


class _Value(NamedTuple):
    """The value of one variable."""

    x: Any
    each: bool  # does each lane have its own? Then the lanes' axis is the last one


def lanes_last(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function(shared, *of_a_lane)`` for many lanes; all but ``shared`` have the lanes' axis last."""

    def of_many(shared: Any, *lanes: Any) -> Any:
        leaves = jax.tree.leaves(lanes)
        one = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[:-1], x.dtype), lanes)
        like = jax.tree.map(lambda x: jax.ShapeDtypeStruct(jnp.shape(x), x.dtype), shared)
        closed, shape = jax.make_jaxpr(function, return_shape=True)(like, *one)
        values = [_Value(x, False) for x in jax.tree.leaves(shared)]
        values += [_Value(x, True) for x in leaves]
        many = _Lanes(leaves[0].shape[-1])
        try:
            results = many.run(closed.jaxpr, closed.consts, values)
        except Exception as problem:  # what jax cannot batch is reported where jax batches it
            raise NoNativeForm(f"not with the lanes last: {in_a_line(problem)}") from problem
        return jax.tree.unflatten(jax.tree.structure(shape), map(many.spread, results))

    return of_many


def inner(e: Any) -> tuple[Any, Sequence[Any]]:
    """The trace inside an equation, and its constants."""
    within = next(e.params[name] for name in _KEPT_AS if name in e.params)
    return getattr(within, "jaxpr", within), getattr(within, "consts", ())


def scan_parts(params: Any, count: int) -> tuple[int, int]:
    """Where the carry of a scan with so many arguments begins, and its rows."""
    if "ft_in" not in params:  # before jax 0.12
        return params["num_consts"], params["num_consts"] + params["num_carry"]
    parts = tuple(params["ft_in"].update(range(count)).unpack())
    n, carried = (len(list(part)) for part in parts[:2])
    return n, n + carried


def _depends(jaxpr: Any, each: Sequence[bool]) -> list[bool]:
    """Which results may differ between lanes if these arguments do."""
    known = dict(zip(jaxpr.invars, each, strict=True))

    def of(v: Any) -> bool:
        return not isinstance(v, Literal) and known.get(v, False)

    for e in jaxpr.eqns:
        ins = list(map(of, e.invars))
        is_within = WITHIN.fullmatch(e.primitive.name)
        outs = _depends(inner(e)[0], ins) if is_within else [any(ins)] * len(e.outvars)
        known.update(zip(e.outvars, outs, strict=True))
    return list(map(of, jaxpr.outvars))


def _steady(
    jaxpr: Any, before: Sequence[bool], carry: Sequence[bool], after: Any = ()
) -> list[bool]:
    """Which parts of what a loop carries differ between lanes, sooner or later."""
    # What was shared differs once something that differs flows into it, maybe several turns later.
    while True:
        depends = _depends(jaxpr, [*before, *carry, *after])[: len(carry)]
        new = [a or b for a, b in zip(carry, depends, strict=True)]
        if new == list(carry):
            return new
        carry = new


class Rewriter:
    """Evaluates a trace on its own kind of values, made by ``shared`` and ``equation``."""

    shared: Callable[[Any], Any]  # the value of a constant
    equation: Callable[[Any, list[Any]], list[Any]]  # what an equation gives for these values

    def run(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """The results of a trace."""
        known = dict(zip(jaxpr.constvars, map(self.shared, consts), strict=True))
        known |= dict(zip(jaxpr.invars, args, strict=True))

        def read(v: Any) -> Any:
            if not isinstance(v, Literal):
                return known[v]
            aval: Any = v.aval
            return self.shared(np.asarray(v.val, aval.dtype))

        for e in jaxpr.eqns:
            known.update(zip(e.outvars, self.equation(e, list(map(read, e.invars))), strict=True))
        return list(map(read, jaxpr.outvars))


class _Lanes(Rewriter):
    """A number of lanes; ``p_…`` is the rule of the primitive of that name."""

    def __init__(self, count: int):
        self.count = count

    def shared(self, x: Any) -> _Value:
        """A value that all lanes share."""
        return _Value(x, False)

    def equation(self, e: Any, ins: list[_Value]) -> list[_Value]:
        """Evaluate by a rule of this class, or else by jax's batching rule."""
        name = e.primitive.name
        if WITHIN.fullmatch(name):
            return self.run(*inner(e), ins)
        if not any(v.each for v in ins):
            return self._bound(e, [v.x for v in ins], False)
        if (rule := getattr(self, f"p_{name}", None)) is not None:
            return rule(e, *ins)  # type: ignore[no-any-return]
        if EACH.fullmatch(name):
            rank = len(e.outvars[0].aval.shape)
            if all(len(v.aval.shape) in (0, rank) for v in e.invars):
                return self._each(e, ins)
        if _ALONG.fullmatch(name):
            return self._bound(e, map(self.spread, ins), True)
        return self._batched(e, ins)

    def _bound(self, e: Any, ins: Any, each: bool, **other: Any) -> list[_Value]:
        """The equation's primitive for these arrays, with other parameters where they differ."""
        made = e.primitive.get_bind_params(e.params | other)
        functions, params = made if isinstance(made, tuple) else ((), made)  # by version of jax
        with e.ctx.manager:
            results = e.primitive.bind(*functions, *ins, **params)
        return [_Value(x, each) for x in (results if e.primitive.multiple_results else [results])]

    def _batched(self, e: Any, ins: list[_Value]) -> list[_Value]:
        """By jax's own rule for batches."""
        axes = [-1 if v.each else None for v in ins]
        play = jax.vmap(lambda *xs: [v.x for v in self._bound(e, xs, False)], axes, -1)
        return [_Value(x, True) for x in play(*(v.x for v in ins))]

    def spread(self, value: _Value, shape: tuple[int, ...] | None = None) -> jax.Array:
        """The value with the lanes' axis; a single number of a lane in this shape, too."""
        x, each = value
        rank = jnp.ndim(x) - each
        shape = jnp.shape(x)[:rank] if shape is None else shape
        if each and jnp.shape(x)[:-1] == shape:
            return x  # type: ignore[no-any-return]
        dims = (*range(rank), len(shape)) if each else tuple(range(rank))
        return lax.broadcast_in_dim(x, (*shape, self.count), dims)

    def _each(self, e: Any, ins: list[_Value]) -> list[_Value]:
        shape = e.outvars[0].aval.shape
        # Most take a single number for many; of what is chosen all must have one shape.
        alone = e.primitive.name not in ("select_n", "clamp")
        is_one = [alone and not v.each and np.ndim(v.x) == 0 for v in ins]
        xs = [v.x if one else self.spread(v, shape) for v, one in zip(ins, is_one, strict=True)]
        return self._bound(e, xs, True)

    # --- traces within

    def _chosen(self, which: Any, cases: Sequence[Sequence[_Value]]) -> list[_Value]:
        """Of each result the case of this number, by lane."""
        chosen = []
        for values in zip(*cases, strict=True):
            xs = list(map(self.spread, values))
            at = lax.broadcast_in_dim(which, xs[0].shape, (xs[0].ndim - 1,))
            chosen.append(_Value(lax.select_n(at, *xs), True))
        return chosen

    def p_cond(self, e: Any, index: _Value, *ins: _Value) -> list[_Value]:
        """All branches and a selection, if lanes may take different ones."""
        branches = e.params["branches"]
        if index.each:
            return self._chosen(index.x, [self.run(b.jaxpr, b.consts, ins) for b in branches])
        each = [v.each for v in ins]

        def many(branch: Any) -> Any:
            def play(*xs: Any) -> list[Any]:
                values = [_Value(x, of_each) for x, of_each in zip(xs, each, strict=True)]
                return list(map(self.spread, self.run(branch.jaxpr, branch.consts, values)))

            return jax.make_jaxpr(play)(*(v.x for v in ins))

        return self._bound(
            e, [index.x, *(v.x for v in ins)], True, branches=tuple(map(many, branches))
        )

    def p_while(self, e: Any, *ins: _Value) -> list[_Value]:
        """Loop while any lane continues; the others keep their values."""
        test, body = e.params["cond_jaxpr"], e.params["body_jaxpr"]
        n, m = e.params["cond_nconsts"], e.params["cond_nconsts"] + e.params["body_nconsts"]
        before = [[v.each for v in part] for part in (ins[:n], ins[n:m], ins[m:])]
        each = _steady(body.jaxpr, *before[1:])
        apart = _depends(test.jaxpr, [*before[0], *each])[0]  # may one lane end before another?
        # A lane that ends early keeps its own last values, so then all of them differ.
        each = [apart or x for x in each]

        def values(xs: Any) -> list[_Value]:
            return [_Value(x, of_each) for x, of_each in zip(xs, each, strict=True)]

        def goes_on(now: list[_Value]) -> _Value:
            return self.run(test.jaxpr, test.consts, [*ins[:n], *now])[0]

        def more(xs: Any) -> jax.Array:
            on = goes_on(values(xs))
            return jnp.any(on.x) if on.each else on.x

        def once(xs: Any) -> list[Any]:
            now = values(xs)
            new = self.run(body.jaxpr, body.consts, [*ins[n:m], *now])
            if apart:
                new = self._chosen(self.spread(goes_on(now)), [now, new])
            return self._as_carried(new, each)

        return values(lax.while_loop(more, once, self._as_carried(ins[m:], each)))

    def p_scan(self, e: Any, *ins: _Value) -> list[_Value]:
        """A loop with a fixed number of iterations."""
        p, inner = e.params, e.params["jaxpr"]
        n, m = scan_parts(p, len(ins))
        before = [[v.each for v in part] for part in (ins[:n], ins[n:m], ins[m:])]
        each = _steady(inner.jaxpr, *before)

        def once(carry: Any, xs: Any) -> tuple[list[Any], list[Any]]:
            now = map(_Value, [*carry, *xs], [*each, *before[2]])
            new = self.run(inner.jaxpr, inner.consts, [*ins[:n], *now])
            return self._as_carried(new[: m - n], each), list(map(self.spread, new[m - n :]))

        carry, rows = lax.scan(
            once,
            self._as_carried(ins[n:m], each),
            [v.x for v in ins[m:]],
            length=p["length"],
            reverse=p["reverse"],
            unroll=p["unroll"],
        )
        return [*map(_Value, carry, each), *(_Value(x, True) for x in rows)]

    def _as_carried(self, values: Sequence[_Value], each: Sequence[bool]) -> list[Any]:
        return [self.spread(v) if of_each else v.x for v, of_each in zip(values, each, strict=True)]

    # --- shapes

    def p_optimization_barrier(self, e: Any, *ins: _Value) -> list[_Value]:
        """One barrier for all values, unchanged."""
        xs = self._bound(e, [v.x for v in ins], True)
        return [_Value(new.x, old.each) for new, old in zip(xs, ins, strict=True)]

    def p_broadcast_in_dim(self, e: Any, x: _Value, *_: Any) -> list[_Value]:
        """Add or extend axes."""
        shape, dims = e.params["shape"], e.params["broadcast_dimensions"]
        wide = lax.broadcast_in_dim(x.x, (*shape, self.count), (*dims, len(shape)))
        return [_Value(wide, True)]

    def p_reshape(self, e: Any, x: _Value, *_: Any) -> list[_Value]:
        """The same numbers in another shape."""
        return [_Value(lax.reshape(x.x, (*e.params["new_sizes"], self.count)), True)]

    def p_transpose(self, e: Any, x: _Value) -> list[_Value]:
        """Permute axes."""
        order = e.params["permutation"]
        return [_Value(lax.transpose(x.x, (*order, len(order))), True)]

    def p_slice(self, e: Any, x: _Value) -> list[_Value]:
        """Take a slice."""
        start, limit, steps = (e.params[k] for k in ("start_indices", "limit_indices", "strides"))
        steps = None if steps is None else (*steps, 1)
        return [_Value(lax.slice(x.x, (*start, 0), (*limit, self.count), steps), True)]

    def p_pad(self, e: Any, x: _Value, filling: _Value) -> list[_Value]:
        """Pad with a value."""
        if filling.each:
            return self._batched(e, [x, filling])
        around = *e.params["padding_config"], (0, 0, 0)
        return [_Value(lax.pad(self.spread(x), filling.x, around), True)]

    def p_gather(self, e: Any, x: _Value, at: _Value) -> list[_Value]:
        """Gather windows at indices."""
        if not at.each:
            return self._batched(e, [x, at])
        numbers, sizes = e.params["dimension_numbers"], e.params["slice_sizes"]
        places = jnp.moveaxis(at.x, -1, -2)  # the numbers of one index lie side by side
        if x.each:
            numbers = numbers._replace(
                operand_batching_dims=(*numbers.operand_batching_dims, len(sizes)),
                start_indices_batching_dims=(
                    *numbers.start_indices_batching_dims,
                    places.ndim - 2,
                ),
            )
            sizes = (*sizes, 1)
        return self._bound(e, [x.x, places], True, dimension_numbers=numbers, slice_sizes=sizes)
