"""Capabilities: promises on which engines rely, valid only for the class that makes them.

A class declares a capability by a class attribute (``rests = True``). An engine that plays many rounds at once leans on
it instead of calling the methods that it names. **It counts if the class that declares it is, or derives from, every
class from which the object has one of those methods**: who overrides one says again that the promise holds. A wrapper
(a policy around a policy) has a capability only if what it wraps has it. Abstract ``means``, ``outcome`` and ``spec``
may be filled in freely: ``pull`` is made of them.

The rule does not see a helper that no capability names: who overrides such a one below the declaration must say the
promise again unasked. The kit (:mod:`jaxbandits.testing`) proves each promise by play.

=============  ==============================  ===================================================================
capability     declared by                     promise
=============  ==============================  ===================================================================
``rests``      index and zooming policies,     a score reads its own arm's statistics and t only, and does not fall
               confidence bounds               while the arm rests (a ball does not grow, bounds do not change)
``steady``     policies with ``admits``        up to which round ``admits`` and ``status`` say the same
``addressed``  environments                    ``pull`` does what ``means`` and ``outcome`` say, and no more
``additive``   constraints                     below its end, ``charge`` is ``core.post``, and it
                                               ends where its clock does (of several resources: with the first)
=============  ==============================  ===================================================================
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple


class Capability(NamedTuple):
    """A promise that an engine may rely on."""

    name: str  # the class attribute, or the method, that declares it
    methods: tuple[str, ...]  # what it speaks of, helpers included
    lacking: str  # what is said of a class that does not declare it
    # abstract methods that a subclass may write without saying it again
    fillable: tuple[str, ...] = ()
    # every dataclass among the fields must have it, not only those that speak of it
    within: bool = False
    by_method: bool = False  # a method declares it, and not an attribute that is True


RESTS = Capability(
    "rests",
    (
        *("score", "init", "blank_action", "update", "select", "step", "spreads", "rounding"),
        # Of explorations, zooming policies, confidence bounds
        *("at", "radius", "value", "phased", "upper", "lower"),
    ),
    "does not declare a score that rests (an arm's score must read its own statistics and the round only, and never "
    "fall while the arm is not pulled)",
    within=True,
)
_UNSTEADY = "does not define (by `steady`) for how long its arms stay the same"
STEADY = Capability("steady", ("admits", "status", "wanted"), _UNSTEADY, by_method=True)
ADDRESSED = Capability(
    "addressed",
    (
        *("pull", "means", "outcome", "means_with", "start", "available", "open", "opening"),
        *("opens_next", "context", "spec"),
    ),
    "does not define its outcomes by address (AddressedArms and Continuum do)",
    fillable=("means", "outcome", "spec"),
)
ADDITIVE = Capability(
    "additive", ("charge", "ended", "clock", "end", "view", "audit"), "must see every round"
)


def why_not(owner: object, capability: Capability, among: type = object) -> str | None:
    """Why ``owner``, which must be an ``among``, lacks the capability; None if it has it."""
    declaring = _giving(type(owner), capability.name)
    declared = capability.by_method or getattr(owner, capability.name, False) is True
    if declaring is None or not declared or not isinstance(owner, among):
        return f"{type(owner).__name__} {capability.lacking}"
    for method in capability.methods:
        giving = _giving(type(owner), method)
        open_ = method in capability.fillable and _is_abstract(declaring, method)
        if giving is not None and not issubclass(declaring, giving) and not open_:
            undoes = f"{giving.__name__} overrides {method} without declaring `{capability.name}`"
            return f"{undoes} again ({declaring.__name__} declared it for its own methods)"
    for inner in _wrapped(owner):
        applies = capability.within or hasattr(inner, capability.name)
        if applies and (reason := why_not(inner, capability)) is not None:
            return f"{type(owner).__name__} wraps a part that lacks it: {reason}"
    return None


def has(owner: object, capability: Capability) -> bool:
    """Whether ``owner`` has the capability and its declaration is valid."""
    return why_not(owner, capability) is None


def undone(owner: object, capability: Capability) -> bool:
    """Whether ``owner`` declares a capability, but the declaration is not valid."""
    return bool(getattr(owner, capability.name, False)) and not has(owner, capability)


def forgotten(owner: object) -> str | None:
    """What ``owner`` or its parts do not define: abstract methods, class attributes."""
    cls = type(owner)
    noted = [vars(base).get("__annotations__", {}) for base in cls.__mro__]
    kinds = {name: str(kind) for of in noted for name, kind in of.items()}
    missing = [name for name in dir(cls) if _is_abstract(cls, name)]
    missing += [x for x, kind in kinds.items() if "ClassVar" in kind and not hasattr(cls, x)]
    if missing:
        return f"{cls.__name__} does not define {' and '.join(missing)}"
    return next(filter(None, map(forgotten, _wrapped(owner))), None)


def own_method(owner: object, base: type, *methods: str) -> str | None:
    """The first of these methods that ``owner`` does not inherit from ``base``, or None."""
    kind = type(owner)
    return next((x for x in methods if getattr(kind, x) is not getattr(base, x)), None)


def played_by(engine: str, owner: object, base: type, *methods: str) -> str | None:
    """Why an engine that replaces methods of ``base`` refuses ``owner``, which overrides them."""
    if (method := own_method(owner, base, *methods)) is None:
        return None
    return f"{type(owner).__name__} overrides {method}, which the {engine} engine would not call"


def _giving(cls: type, name: str) -> type | None:
    """The class from which objects of ``cls`` have ``name``."""
    return next((base for base in cls.__mro__ if name in vars(base)), None)


def _is_abstract(cls: type, name: str) -> bool:
    return getattr(getattr(cls, name, None), "__isabstractmethod__", False)


def _wrapped(owner: object) -> Iterator[Any]:
    """The dataclasses among an object's own fields."""
    if dataclasses.is_dataclass(owner):
        for field in dataclasses.fields(owner):
            value = getattr(owner, field.name)
            if dataclasses.is_dataclass(value) and not isinstance(value, type):
                yield value
