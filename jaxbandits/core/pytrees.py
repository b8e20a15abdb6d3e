"""Dataclasses that jax flattens: leaves with declared ranges, static fields, and walks over them."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._tables import span
from jaxbandits.core.checks import InputError, bad, brief, door
from jaxbandits.core.fingerprint import exactly, hashable

T = TypeVar("T")


Pytree = Any


def leaf(
    *,
    default: Any = dataclasses.MISSING,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    core: int = 0,
    integer: bool = False,
) -> Any:
    """A numeric hyper-parameter: a pytree leaf, which can be swept without recompiling.

    Args:
        default: the value if none is given.
        above, at_least, at_most: its range, checked before anything runs.
        core: rank of one setting's value (0: a scalar, 1: one value per arm).
        integer: int32 instead of float32.

    Example:
        >>> import jaxbandits as jb
        >>> @jb.pytree
        ... class Wide:
        ...     width: float = jb.leaf(default=0.5, above=0)
        >>> Wide(width=[0.25, 0.5])
        Wide(width=[0.25, 0.5])
    """
    meta: dict[str, Any] = {"above": above, "at_least": at_least, "at_most": at_most}
    return dataclasses.field(default=default, metadata=meta | {"core": core, "integer": integer})


def static(*, default: Any = dataclasses.MISSING) -> Any:
    """A field that changes shapes or code: part of the compiled program, must be hashable.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> @jb.pytree
        ... class Sized:
        ...     scale: float = jb.leaf(default=1.0)
        ...     arms: int = jb.static(default=3)
        >>> jax.tree.leaves(Sized(scale=2.0, arms=5))
        [2.0]
    """
    return dataclasses.field(default=default, metadata={"static": True})


class _Fixed:
    """The static fields of an object: a part of its program's key."""

    def __init__(self, owner: Any, names: Sequence[str]):
        self.values = tuple(getattr(owner, name) for name in names)
        self.key = tuple(map(exactly, self.values))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Fixed) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return ", ".join(map(repr, self.values))


@dataclass_transform(
    field_specifiers=(leaf, static, dataclasses.field), frozen_default=True, eq_default=False
)
def pytree(cls: type[T]) -> type[T]:
    """Make ``cls`` a frozen dataclass and pytree; fields are leaves unless they are :func:`static`.

    For policies, environments and constraints alike.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> @jb.pytree
        ... class Pair:
        ...     one: float = jb.leaf()
        ...     two: float = jb.leaf(default=2.0)
        >>> jax.tree.map(lambda x: 10 * x, Pair(one=1.0))
        Pair(one=10.0, two=20.0)
    """
    if cls.__repr__ is object.__repr__:
        cls.__repr__ = short  # type: ignore[method-assign]
    for name in inspect.get_annotations(cls):
        default = getattr(vars(cls).get(name), "default", vars(cls).get(name))
        if not hashable(default):
            may_be = "an immutable default, such as a number or a tuple, or left out"
            raise bad(f"{cls.__name__}.{name}", default, may_be)
    try:
        node = dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
    except (TypeError, ValueError) as problem:  # fields in an order that Python does not take, say
        raise InputError(f"{cls.__name__}: {brief(problem)}") from None
    node.__init__ = door(node.__init__, cls.__name__)  # type: ignore[method-assign]
    names = [field.name for field in dataclasses.fields(node)]  # type: ignore[arg-type]
    leaves = [field.name for field in leaf_fields(node)]
    fixed = [name for name in names if name not in leaves]

    def flatten(self: T) -> tuple[tuple, tuple]:
        return tuple(getattr(self, name) for name in leaves), (node, _Fixed(self, fixed))

    def flatten_with_keys(self: T) -> tuple[tuple, tuple]:
        children, aux = flatten(self)
        return tuple(zip(map(jax.tree_util.GetAttrKey, leaves), children, strict=True)), aux

    def unflatten(aux: tuple, children: Any) -> T:
        self = object.__new__(node)
        for name, value in zip(leaves + fixed, (*children, *aux[1].values), strict=True):
            object.__setattr__(self, name, value)
        return self

    # Not register_dataclass: in jax 0.10 two dataclasses with the same leaves have equal tree
    # structures, so that jit may take the program of one policy for another's. Here the class is
    # part of the structure.
    jax.tree_util.register_pytree_with_keys(node, flatten_with_keys, unflatten, flatten)
    return node


_MOST_SHOWN = 12  # numbers of an array


def short(self: Any) -> str:
    """The class and its fields; of larger arrays the size and the range."""
    names = (field.name for field in dataclasses.fields(self))
    fields = (f"{name}={short_value(getattr(self, name))}" for name in names)
    return f"{type(self).__qualname__}({', '.join(fields)})"


def short_value(value: Any) -> str:
    """One field of :func:`short`; tables (two or more axes), which are in ticks, are not shown."""
    if isinstance(value, (list, tuple)) and len(value) > _MOST_SHOWN:
        return f"{type(value).__name__} of {len(value)}"
    if not hasattr(value, "dtype") or not getattr(value, "ndim", 0):
        return repr(value)
    if value.ndim == 1 and isinstance(value, np.ndarray):
        few = value.size <= _MOST_SHOWN
        return f"{value.tolist()}" if few else f"[{value.size} values, {span(value)}]"
    return f"{value.dtype}{list(value.shape)}"


def select_tree(condition: jax.Array, yes: T, no: T) -> T:
    """``yes`` where ``condition`` (a scalar) holds, else ``no``, leaf by leaf.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxbandits.core import select_tree
        >>> [int(x) for x in select_tree(jnp.bool_(False), (1, 2), (3, 4))]
        [3, 4]
    """
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


class Leaf(NamedTuple):
    """A leaf of a policy, from :func:`walk`."""

    path: str  # where it is: ``rho``, or ``policy.rho`` of a nested policy
    name: str  # what messages call it: ``OmegaUCB.rho``
    value: Any
    metadata: Mapping[str, Any]  # see :func:`leaf`


def leaf_fields(owner: Any) -> list[dataclasses.Field[Any]]:
    """The fields of a :func:`pytree` class, or of an object of one, that are not static."""
    return [field for field in dataclasses.fields(owner) if not field.metadata.get("static", False)]


def check_static(owner: Any) -> None:
    """Raise :class:`InputError` for a static field without a hash, also in nested objects."""
    for field in dataclasses.fields(owner):
        value = getattr(owner, field.name)
        if not field.metadata.get("static", False):
            if dataclasses.is_dataclass(value):
                check_static(value)
        elif not hashable(value):
            may_be = "hashable, such as a number or a tuple: a static field is part of the program"
            raise bad(f"{type(owner).__name__}.{field.name}", value, may_be)


def walk(owner: Any, prefix: str = "") -> Iterator[Leaf]:
    """Every leaf of a policy, nested policies included, in the order of its fields."""
    for field in leaf_fields(owner):
        value = getattr(owner, field.name)
        if dataclasses.is_dataclass(value):
            yield from walk(value, f"{prefix}{field.name}.")
        elif value is not None:
            name = f"{type(owner).__name__}.{field.name}"
            yield Leaf(prefix + field.name, name, value, field.metadata)


def map_leaves(owner: T, change: Callable[[Leaf], Any], prefix: str = "") -> T:
    """A policy with ``change(leaf)`` in place of the value of every leaf of :func:`walk`."""
    values = {}
    for field in leaf_fields(owner):
        value = getattr(owner, field.name)
        if dataclasses.is_dataclass(value):
            values[field.name] = map_leaves(value, change, f"{prefix}{field.name}.")
        elif value is not None:
            name = f"{type(owner).__name__}.{field.name}"
            values[field.name] = change(Leaf(prefix + field.name, name, value, field.metadata))
    return dataclasses.replace(owner, **values)  # type: ignore[type-var]
