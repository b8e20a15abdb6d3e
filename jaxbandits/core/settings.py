"""A policy's settings: checked, cast, named and labelled once; grids; parameters by name."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxbandits.core.checks import InputError, as_played, bad, called, door, numbers
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import Leaf, map_leaves, walk

_FEW = 6  # arms whose values a label shows
_DIGITS, _ALL_DIGITS = 6, 9  # of a number in a label; nine tell any two of float32 apart


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of a policy, checked and cast once by :meth:`of`.

    Attributes:
        policy: every leaf a read-only NumPy float32/int32 array ``[setting, 1 or instance,
            core…]``.
        count: how many settings there are.
        name: what labels call the policy; by default its class.
        hidden: parameters that labels leave out, such as those that a constraint sets.
    """

    policy: Policy
    count: int
    name: str = ""
    hidden: tuple[str, ...] = ()

    @classmethod
    def of(cls, policy: Policy | Settings, instances: int, spec: Any = None) -> Settings:
        """A policy's settings, checked and cast; given settings are only checked against ``spec``.

        A leaf may have extra leading axes ``[setting]`` or ``[setting, instance]``. ``spec`` is for
        ``Policy.check``.

        Raises:
            InputError: naming the parameter, its value and what it may be.
        """
        settings = policy if isinstance(policy, Settings) else cls._checked(policy, instances)
        if spec is not None:
            called(settings.shapes, "check", lambda: settings.policy.check(spec))
        return settings

    @classmethod
    def _checked(cls, policy: Policy, instances: int) -> Settings:
        counts: dict[str, int] = {}

        def with_axes(leaf: Leaf) -> np.ndarray:
            _, name, value, meta = leaf
            array = as_played(name, value, meta)
            lead = array.ndim - meta.get("core", 0)
            if lead < 0:
                raise bad(name, value, "an array with a value for each arm on its last axis")
            if lead < 2:
                array = array.reshape(*(array.shape[:lead] or (1,)), 1, *array.shape[lead:])
            elif lead > 2 or array.shape[1] not in (1, instances):
                must = f"[setting] or [setting, instance], with {instances} instances"
                given = f"an array of shape {np.shape(value)} given"
                raise InputError(f"{name}: {given}; its leading axes must be {must}")
            counts[name] = array.shape[0]
            return array

        shaped = map_leaves(policy, with_axes)
        count = max(counts.values(), default=1)
        for name, settings in counts.items():
            if settings not in (1, count):
                must = f"1 or {count}, as the others (use grid(...) for combinations)"
                raise InputError(f"{name}: {settings} settings given; it must be {must}")

        def fixed(leaf: Leaf) -> np.ndarray:
            # A copy: what the user gave may still be written to.
            every = np.array(np.broadcast_to(leaf.value, (count, *leaf.value.shape[1:])))
            every.setflags(write=False)
            return every

        return cls(map_leaves(shaped, fixed), count)

    def of_instances(self, rows: Sequence[int], arms: int | None = None) -> Settings:
        """The same settings on some instances; of per-arm values only the first ``arms``."""

        def part(leaf: Leaf) -> np.ndarray:
            x = leaf.value[:, list(rows)] if leaf.value.shape[1] > 1 else leaf.value
            x = x[..., :arms] if leaf.metadata.get("core") else x
            x.setflags(write=False)
            return x

        return dataclasses.replace(self, policy=map_leaves(self.policy, part))

    def only(self, setting: int) -> Settings:
        """The policy with only this setting."""
        policy = map_leaves(self.policy, lambda leaf: leaf.value[setting : setting + 1])
        return dataclasses.replace(self, policy=policy, count=1)

    @functools.cached_property
    def shapes(self) -> Policy:
        """The policy of one setting on one instance, with shapes in place of numbers.

        It answers all questions about the policy's class, static fields and leaves.
        """

        def shape(leaf: Leaf) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct(leaf.value.shape[2:], leaf.value.dtype)

        return map_leaves(self.policy, shape)

    @functools.cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the settings: the policy and its parameters, e.g. ``OmegaUCB(rho=0.25)``."""

        def every(digits: int) -> tuple[str, ...]:
            of = self.policy, self.name, self.hidden
            return tuple(label(of[0], n, *of[1:], digits) for n in range(self.count))

        short = every(_DIGITS)
        return short if len(set(short)) == self.count else every(_ALL_DIGITS)

    @functools.cached_property
    def parameters(self) -> list[dict[str, Any]]:
        """A dict for each setting: its class as ``policy``, and its parameters that are one number.

        A parameter of a nested policy goes by its last name where that is unambiguous. Numbers are
        those of float32 in their shortest form: 0.3 is 0.3 and not 0.30000001.
        """
        leaves = [(leaf.path, leaf.value) for leaf in walk(self.policy)]
        last = [path.rsplit(".", 1)[-1] for path, _ in leaves]
        kind = type(self.policy).__name__
        records: list[dict[str, Any]] = [{"policy": kind} for _ in range(self.count)]
        for (path, values), short in zip(leaves, last, strict=True):
            name = short if last.count(short) == 1 else path
            for number, parameters in enumerate(records):
                if values[number].size == 1:
                    parameters[name] = json.loads(str(values[number].ravel()[0]))
        return records

    def record(self, setting: int) -> dict[str, Any]:
        """One setting for JSON: its class, its parameters for every instance and arm."""
        leaves = {leaf.name: leaf.value[setting] for leaf in walk(self.policy)}
        numbers = {name: (x[0] if x.shape[0] == 1 else x) for name, x in leaves.items()}
        plain = {name: x.astype(str).astype(float).tolist() for name, x in numbers.items()}
        return {"policy": type(self.policy).__name__, "parameters": plain}


def refuse_twice(every: Sequence[Settings]) -> None:
    """Raise :class:`InputError` if two settings are equal in float32, in which they run."""
    seen = set()
    for settings in every:
        leaves, structure = jax.tree.flatten(settings.policy)
        # One value for all instances is one value, however it was given; and 0 is −0
        leaves = [x[:, :1] if (x == x[:, :1]).all() else x for x in leaves]
        for n in range(settings.count):
            same = structure, tuple((x.shape[1:], (x[n] + 0).tobytes()) for x in leaves)
            if same in seen:
                must = "given once (compared in float32)"
                raise InputError(f"policies: {settings.labels[n]} given twice; it must be {must}")
            seen.add(same)


def labels_of(every: Sequence[Settings]) -> tuple[tuple[str, ...], ...]:
    """The labels of several policies' settings; repeated ones are numbered."""
    met = Counter[str]()

    def own(text: str) -> str:
        met[text] += 1
        return text if met[text] == 1 else f"{text} ({met[text]})"

    return tuple(tuple(map(own, settings.labels)) for settings in every)


def label(
    policy: Any,
    setting: int | None = None,
    name: str = "",
    hidden: Sequence[str] = (),
    digits: int = _DIGITS,
) -> str:
    """A setting's name, e.g. ``OmegaUCB(rho=0.25)``; without ``number`` only static fields."""
    # The class is called ``name``, and ``hidden`` fields are left out. A class may say by
    # ``called`` what it makes of the name of the policy inside.
    if not name and (called := getattr(type(policy), "called", "")):
        return called.format(label(policy.policy, setting, digits=digits))
    parts = []
    for field in dataclasses.fields(policy):
        value = getattr(policy, field.name)
        if value is None or field.name in hidden:
            continue
        if dataclasses.is_dataclass(value):
            parts.append(label(value, setting, digits=digits))
            continue
        if not field.metadata.get("static"):
            if setting is None:
                continue
            value = _short(np.asarray(value)[setting], field.metadata.get("core", 0), digits)
        elif " at 0x" in str(value):
            # A function, or what holds one: an address, another one in every process
            if value is field.default:
                continue
            value = getattr(value, "__name__", type(value).__name__)
        parts.append(f"{field.name}={value}")
    name = name or type(policy).__name__
    return f"{name}({', '.join(parts)})" if parts else name


def _short(values: np.ndarray, core: int, digits: int) -> str:
    """``0.25``, ``[3 1]`` of a few arms, or what there is one value for each of."""
    if np.unique(values).size == 1:
        return f"{values.flat[0]:.{digits}g}"
    if core == 1 and (values == values[0]).all() and values.shape[-1] <= _FEW:
        return f"[{' '.join(f'{x:.{digits}g}' for x in values[0])}]"
    return "per arm" if core else "per instance"


@door
def grid(policy: type[Policy], **values: Any) -> Policy:
    """Settings that are all combinations of the given values, the last one varying fastest.

    Raises:
        InputError: not a class of policies, or no parameters of it.

    Example:
        >>> import jaxbandits as jb
        >>> jb.grid(jb.policies.OmegaUCB, rho=[0.25, 1.0]).rho.tolist()
        [0.25, 1.0]
    """
    if not (isinstance(policy, type) and issubclass(policy, Policy)):
        raise bad("policy", policy, "a class of policies, such as jb.policies.OmegaUCB")
    flat = (numbers(name, value).ravel() for name, value in values.items())
    axes = np.meshgrid(*flat, indexing="ij")
    return policy(**{name: axis.ravel() for name, axis in zip(values, axes, strict=True)})


# --- a policy's numeric parameters by name: find, read and replace them


def names_of(wrt: str | Sequence[str]) -> tuple[str, ...]:
    """``wrt`` as a tuple of different names."""
    names = (wrt,) if isinstance(wrt, str) else tuple(wrt)
    if not 0 < len(names) == len(set(names)) or not all(isinstance(x, str) for x in names):
        raise bad("wrt", wrt, "a name, or several different names")
    return names


def leaves_of(policy: Any) -> dict[str, Mapping[str, Any]]:
    """Declared ranges of numeric parameters by name (``field.name`` in a nested policy)."""
    return {leaf.path: leaf.metadata for leaf in walk(policy)}


def parameter_path(policy: Policy, name: str) -> str:
    """A parameter's full name; its last part suffices if unique (``rho``: ``policy.rho``)."""
    if not isinstance(policy, Policy):
        raise bad("policy", policy, "a policy, such as OmegaUCB()")
    paths = leaves_of(policy)
    by_last = [path for path in paths if path.rsplit(".", 1)[-1] == name]
    fitting = [name] if name in paths else by_last
    if len(fitting) != 1:
        kind, listed = type(policy).__name__, ", ".join(paths)
        none = f"left out: {kind} has no parameters"
        raise bad("wrt", name, f"one of {listed}, the parameters of {kind}" if paths else none)
    return fitting[0]


def get(policy: Any, path: str) -> Any:
    """The value at a full name."""
    return functools.reduce(getattr, path.split("."), policy)


def put(policy: Any, values: Mapping[str, Any]) -> Any:
    """A copy with other values at full names."""
    for path, value in values.items():
        first, _, rest = path.partition(".")
        inner = put(getattr(policy, first), {rest: value}) if rest else value
        policy = dataclasses.replace(policy, **{first: inner})
    return policy


def real_parameters(policy: Policy, wrt: Sequence[str]) -> tuple[str, ...]:
    """Full names of real scalar parameters; InputError for a whole number or one per arm."""
    paths = tuple(parameter_path(policy, name) for name in wrt)
    declared = leaves_of(policy)
    for path in paths:
        if declared[path].get("integer") or declared[path].get("core", 0):
            raise bad("wrt", path, "a real parameter with one value")
    return paths


def positive_parameters(policy: Policy, wrt: Sequence[str]) -> tuple[str, ...]:
    """Full names of scalar parameters that are above 0, so that their logarithm exists."""
    paths = real_parameters(policy, wrt)
    for path in paths:
        if not (np.asarray(get(policy, path), np.float64) > 0).all():
            raise bad(path, get(policy, path), "above 0, since its logarithm is used")
    return paths
