"""What an engine may rely on: a capability is a promise, and it counts only where it was made.

A class declares a capability by a class attribute (``rests = True``). An engine that plays many rounds at once leans on
it *instead of* calling the methods that it speaks of, so a class that changes what such a method does must say again
that the promise holds. It counts for an object if every name that the declaring class has, inherits, calls or leaves to
others means in the object's class what it means there: helpers, hooks, constants and operators included, wherever among
the base classes another meaning comes from. Another default of a field is but another number.

What every engine calls on the object itself (``check``, ``values``, …) may be overridden freely, and what a promise
leaves *open* may be filled in (means and outcomes of addressed arms, of which ``pull`` is made). An object that wraps
others (a policy around a policy) has a capability only if they have it too.

=============  ==============================  ===================================================================
capability     declared by                     promise
=============  ==============================  ===================================================================
``rests``      index and zooming policies      a score reads its own arm's statistics and t only, and does not fall
                                               while the arm rests (the ball of a zooming policy does not grow)
``steady``     policies with ``admits``        up to which round ``admits`` and ``status`` say the same
``addressed``  environments                    ``pull`` does what ``means`` and ``outcome`` say, and no more
``additive``   constraints                     below its end, ``charge`` is :func:`~jaxbandits.core.ledger.post`, and it
                                               ends where its clock does (of several resources: with the first)
=============  ==============================  ===================================================================
"""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Iterator
from typing import Any

# What no promise is about: all engines, and the host, ask the object itself for these.
_ASKED = frozenset({"check", "warnings", "plays", "prepare", "best_rate", "expected_clock", "ends_with", "clock_name"})
_ASKED_OF_WORLDS = frozenset({"values", "instances", "resources", "largest", "refuses"})


@dataclasses.dataclass(frozen=True)
class Capability:
    """A promise that an engine may rely on.

    Attributes:
        name: the class attribute, or the method, that declares it.
        apart: names that it does not depend on.
        lacking: what is said of a class that does not declare it.
        open: abstract methods that others fill in, and the promise holds whatever they say.
        by_method: True if it is a method that declares it, and not a class attribute that is True.
        within: True if every dataclass among an object's fields must have it too, False if only those that speak of it.
    """

    name: str
    apart: frozenset[str]
    lacking: str
    open: frozenset[str] = frozenset()
    within: bool = False
    by_method: bool = False


RESTS = Capability(
    "rests",
    frozenset({"admits", "select_while_open", "status", "steady", "summary", "target"}),
    "does not declare a score that rests (an arm's score must read its own statistics and the round only, and never "
    "fall while the arm is not pulled)",
    within=True,
)
STEADY = Capability(
    "steady",
    frozenset({"score", "select_while_open", "spreads", "rests", "rounding", "summary"}),
    "does not say for how long its arms stay the same",
    by_method=True,
)
ADDRESSED = Capability(
    "addressed",
    _ASKED_OF_WORLDS,
    "does not give its outcomes by address (AddressedArms and Continuum do)",
    open=frozenset({"means", "outcome", "spec"}),
)
ADDITIVE = Capability(
    "additive",
    frozenset(),
    "must see every round",
)


def why_not(owner: object, capability: Capability, among: type = object) -> str | None:
    """Why ``owner``, which must be one of the class ``among``, has not got the capability, or None if it has.

    Example:
        >>> import jaxbandits as jb
        >>> from jaxbandits.core import capabilities
        >>> class Halved(jb.policies.UCB1):
        ...     def score(self, arms):
        ...         return super().score(arms) / arms.t
        >>> print(capabilities.why_not(jb.policies.UCB1(), capabilities.RESTS))
        None
        >>> capabilities.why_not(Halved(), capabilities.RESTS)
        'Halved overrides score without declaring `rests` again (UCB1 declared it of its own)'
    """
    declaring = next((cls for cls in type(owner).__mro__ if capability.name in vars(cls)), None)
    said = getattr(owner, capability.name, False)
    if declaring is None or (said is not True and not capability.by_method) or not isinstance(owner, among):
        return f"{type(owner).__name__} {capability.lacking}"
    for name in sorted(_names(type(owner)) & (_names(declaring) | _calls(declaring) | _operators(type(owner)))):
        if (cls := _changed_by(type(owner), declaring, name, capability)) is not None:
            return (
                f"{cls.__name__} overrides {name} without declaring `{capability.name}` again "
                f"({declaring.__name__} declared it of its own)"
            )
    for inner in _wrapped(owner):
        asked = capability.within or hasattr(inner, capability.name)
        if asked and (reason := why_not(inner, capability)) is not None:
            return f"{type(owner).__name__} wraps what has it not: {reason}"
    return None


def has(owner: object, capability: Capability) -> bool:
    """Has ``owner`` the capability, and does it count?"""
    return why_not(owner, capability) is None


def undone(owner: object, capability: Capability) -> bool:
    """Does ``owner`` declare a capability that does not count?"""
    return bool(getattr(owner, capability.name, False)) and not has(owner, capability)


def forgotten(owner: object) -> str | None:
    """Which abstract methods, or class attributes without a value, ``owner`` or what it wraps does not define."""
    cls = type(owner)
    methods = [name for name in dir(cls) if getattr(getattr(cls, name, None), "__isabstractmethod__", False)]
    kinds = {name: str(kind) for base in cls.__mro__ for name, kind in vars(base).get("__annotations__", {}).items()}
    missing = methods + [name for name, kind in kinds.items() if "ClassVar" in kind and not hasattr(cls, name)]
    if missing:
        return f"{cls.__name__} does not define {' and '.join(missing)}"
    return next(filter(None, map(forgotten, _wrapped(owner))), None)


def own_method(owner: object, base: type, *methods: str) -> str | None:
    """The first of these methods that ``owner`` has not from ``base``: code that does their work would miss it."""
    return next((name for name in methods if getattr(type(owner), name) is not getattr(base, name)), None)


def played_by(engine: str, owner: object, base: type, *methods: str) -> str | None:
    """Why an engine that does itself what these methods of ``base`` do must not play ``owner``: it has its own."""
    if (method := own_method(owner, base, *methods)) is None:
        return None
    return f"{type(owner).__name__} has a method {method} of its own, which the {engine} engine would not call"


def _changed_by(cls: type, declaring: type, name: str, capability: Capability) -> type | None:
    """The class that gives ``name`` another meaning in ``cls`` than in ``declaring``, if the promise may rest on it."""
    if name in _ASKED or name in capability.apart or name in _MACHINERY:
        return None
    source = next(c for c in cls.__mro__ if name in vars(c))
    new, old = vars(source)[name], next((vars(c)[name] for c in declaring.__mro__ if name in vars(c)), None)
    if new is old:
        return None
    if getattr(old, "__isabstractmethod__", False) and name in capability.open:
        return None
    number = name in _fields(cls) and name in _fields(declaring) and not hasattr(new, "__get__")
    return None if number else source


# What Python, typing, dataclasses and pickle give a class; `object.__getattribute__` alone is no matter of course.
_MACHINERY = frozenset(dir(dataclasses.make_dataclass("_", [], frozen=True))) - {"__getattribute__"} | {
    "_abc_impl",
    *(f"__{name}__" for name in ("annotations", "annotate", "annotate_func", "annotations_cache", "abstractmethods")),
    *(f"__{name}__" for name in ("orig_bases", "parameters", "slots", "post_init", "firstlineno", "static_attributes")),
    *(f"__{name}__" for name in ("conditional_annotations", "type_params", "qualname", "class_getitem", "slotnames")),
}


def _names(cls: type) -> set[str]:
    return {name for base in cls.__mro__ if base is not object for name in vars(base)}


def _operators(cls: type) -> set[str]:
    """Methods that are called without their name: ``self(…)``, ``self.unknown``, ``self + …``."""
    return {name for name in _names(cls) if name.startswith("__") and name.endswith("__")}


def _fields(cls: type) -> set[str]:
    return {field.name for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()


@functools.cache
def _calls(cls: type) -> set[str]:
    """Names that the methods of a class and of its bases read, or could look up, and the functions that they call."""
    found: set[str] = set()
    waiting = [value for base in cls.__mro__ if base is not object for value in vars(base).values()]
    seen: set[int] = set()
    while waiting:
        function = _function(waiting.pop())
        if function is None or id(function) in seen:
            continue
        seen.add(id(function))
        bound = _bound(function)
        found.update(text for text in bound if isinstance(text, str) and text.isidentifier())
        waiting += bound
        for code in _codes(function.__code__):
            found.update(code.co_names)
            found.update(text for text in code.co_consts if isinstance(text, str) and text.isidentifier())
            waiting += [function.__globals__[name] for name in code.co_names if name in function.__globals__]
    return found


def _function(value: Any) -> types.FunctionType | None:
    """What a method, property, partial or decorated function runs, if it was written by a user or by us."""
    for _ in range(16):
        if isinstance(value, types.FunctionType) and not hasattr(value, "__wrapped__"):
            return None if (value.__module__ or "").partition(".")[0] in ("jax", "numpy") else value
        inner = (getattr(value, name, None) for name in ("__wrapped__", "__func__", "fget", "func"))
        value = next((x for x in inner if x is not None), None)
        if value is None:
            return None
    return None


def _bound(function: types.FunctionType) -> list[Any]:
    """What a function was made with: the variables of its closure, its defaults."""
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell != types.CellType()]
    return [*cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _codes(part)


def _wrapped(owner: object) -> Iterator[Any]:
    """The dataclasses among an object's own fields."""
    if dataclasses.is_dataclass(owner):
        for field in dataclasses.fields(owner):
            value = getattr(owner, field.name)
            if dataclasses.is_dataclass(value) and not isinstance(value, type):
                yield value
