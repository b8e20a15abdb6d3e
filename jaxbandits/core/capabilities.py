"""What an engine may rely on: a capability is a promise, and it counts only where it was made.

A class declares a capability by a class attribute (``rests = True``). An engine that plays many rounds at once leans on
it *instead of* calling the methods that it speaks of, so a subclass that changes what such a method does must say again
that the promise holds. It counts if no class below the declaring one

* overrides anything that the declaring class has or inherits (a helper may be what the promise rests on), or
* defines a method that the declaring class calls and leaves to others.

What every engine calls on the object itself (``check``, ``values``, …) may be overridden freely; a method that the
declaring class leaves abstract may be filled in, unless the promise speaks of that very method. An object that wraps
others (a policy around a policy) has a capability only if they have it too.

=============  ==============================  ===================================================================
capability     declared by                     promise
=============  ==============================  ===================================================================
``rests``      index and zooming policies      a score reads its own arm's statistics and t only, and does not fall
                                               while the arm rests (the ball of a zooming policy does not grow)
``steady``     policies with ``admits``        up to which round ``admits`` and ``status`` say the same
``addressed``  environments                    ``pull`` does what ``means`` and ``outcome`` say, and no more
``additive``   constraints                     below its end, ``charge`` is :func:`~jaxbandits.core.ledger.post`
=============  ==============================  ===================================================================
"""

from __future__ import annotations

import dataclasses
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
        name: the class attribute that declares it.
        speaks_of: methods that it is about: filling in one of them, abstract or not, calls for a new declaration.
        apart: further names that it does not depend on.
        lacking: what is said of a class that does not declare it.
    """

    name: str
    speaks_of: frozenset[str]
    apart: frozenset[str]
    lacking: str


RESTS = Capability(
    "rests",
    frozenset({"score", "spreads", "radius", "value", "at"}),
    frozenset({"admits", "status", "steady", "summary", "target"}),
    "does not declare a score that rests (an arm's score must read its own statistics and the round only, and never "
    "fall while the arm is not pulled)",
)
STEADY = Capability(
    "steady",
    frozenset({"admits", "status"}),
    frozenset({"score", "spreads", "rests", "rounding", "summary"}),
    "does not say for how long its arms stay the same",
)
ADDRESSED = Capability(
    "addressed",
    frozenset({"pull", "start", "summary"}),
    _ASKED_OF_WORLDS,
    "does not give its outcomes by address (AddressedArms and Continuum do)",
)
ADDITIVE = Capability(
    "additive",
    frozenset({"charge", "audit", "clock", "end", "ended", "view"}),
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
    lineage = type(owner).__mro__
    declared = next((i for i, cls in enumerate(lineage) if capability.name in vars(cls)), None)
    if declared is None or not getattr(owner, capability.name) or not isinstance(owner, among):
        return f"{type(owner).__name__} {capability.lacking}"
    above = lineage[declared:]
    for cls in lineage[:declared]:
        for name in vars(cls):
            if _matters(name, cls, above, capability):
                return (
                    f"{cls.__name__} overrides {name} without declaring `{capability.name}` again "
                    f"({above[0].__name__} declared it of its own)"
                )
    for inner in _wrapped(owner):
        if hasattr(inner, capability.name) and (reason := why_not(inner, capability)) is not None:
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


def played_by(engine: str, owner: object, base: type, *methods: str) -> str | None:
    """Why an engine that does itself what these methods of ``base`` do must not play ``owner``: it has its own."""
    for method in methods:
        if getattr(type(owner), method) is not getattr(base, method):
            return f"{type(owner).__name__} has a method {method} of its own, which the {engine} engine would not call"
    return None


def _matters(name: str, cls: type, above: tuple[type, ...], capability: Capability) -> bool:
    """May what ``cls`` defines as ``name`` undo a promise made in ``above[0]``?"""
    if name in _ASKED or name in capability.apart or _is_machinery(name):
        return False
    old = next((vars(c)[name] for c in above if name in vars(c)), None)
    if old is None:
        return callable(getattr(cls, name, None)) and name in _calls(above)
    if getattr(old, "__isabstractmethod__", False):
        return name in capability.speaks_of
    return not (name in _fields(cls) and name in set().union(*map(_fields, above)))  # another default is but a number


def _is_machinery(name: str) -> bool:
    """Names that Python, typing or dataclasses give a class."""
    return (name.startswith("__") and name.endswith("__") and name != "__getattribute__") or name == "_abc_impl"


def _fields(cls: type) -> set[str]:
    return {field.name for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()


def _calls(classes: tuple[type, ...]) -> set[str]:
    """Names of attributes that the methods of some classes read."""
    return {name for cls in classes if cls is not object for code in _codes(cls) for name in code.co_names}


def _codes(cls: type) -> Iterator[types.CodeType]:
    for value in vars(cls).values():
        for part in (value, getattr(value, "__func__", None), getattr(value, "fget", None)):
            stack = [part.__code__] if isinstance(part, types.FunctionType) else []
            while stack:
                code = stack.pop()
                yield code
                stack += [x for x in code.co_consts if isinstance(x, types.CodeType)]


def _wrapped(owner: object) -> Iterator[Any]:
    """The dataclasses among an object's own fields."""
    if dataclasses.is_dataclass(owner):
        for field in dataclasses.fields(owner):
            value = getattr(owner, field.name)
            if dataclasses.is_dataclass(value) and not isinstance(value, type):
                yield value
