"""What the checks of a policy have in common: the policy on trial, its runs, and worlds cut and widened."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import streams
from jaxbandits.core.errors import InputError
from jaxbandits.core.protocol import Constraint, Environment, Policy
from jaxbandits.core.pytrees import leaf_fields, map_leaves
from jaxbandits.core.settings import canonicalise
from jaxbandits.core.streams import Domain
from jaxbandits.result import Result
from jaxbandits.simulation import simulate
from jaxbandits.testing.episodes import Step, episode, lane_words

MARKS = (0.1, 0.25, 0.5, 0.75, 1.0)


@dataclasses.dataclass(frozen=True)
class Subject:
    """A policy on trial, with the world to try it in. Runs that several checks need are made once."""

    policy: Policy
    environment: Environment
    constraint: Constraint
    key: Any
    replicates: int = 3
    slots: int = 16
    _played: dict[int, Step] = dataclasses.field(default_factory=dict)

    def run(self, **changes: Any) -> Result:
        """``simulate`` on trial settings, with some of its arguments changed."""
        given: dict[str, Any] = {
            "policies": self.first,
            "environment": self.environment,
            "constraint": self.constraint,
            "key": self.key,
            "replicates": self.replicates,
            "marks": MARKS,
            "slots": self.slots,
            "chunk": 16,
            "engine": "scan",
        }
        given |= changes
        return simulate(given.pop("policies"), given.pop("environment"), given.pop("constraint"), **given)

    def keeps(self, checks: Sequence[Callable[[Subject], None]], owner: object) -> None:
        """Raise :class:`AssertionError` with the first rule that ``owner`` breaks."""
        for check in checks:
            try:
                check(self)
            except AssertionError as broken:
                rule = check.__name__.replace("_", " ")
                raise AssertionError(f"{type(owner).__name__} breaks the rule «{rule}»: {broken}") from broken

    @cached_property
    def first(self) -> Policy:
        """The policy's first setting, leaves ``[1, 1 or instance, …]``."""
        canonical, _ = canonicalise(self.policy, self.environment.instances, self.environment.spec)
        return jax.tree.map(lambda x: x[:1], canonical)

    @cached_property
    def others(self) -> list[Policy]:
        """The same policy with other values of its leaves, as far as their ranges allow (none if it has none)."""
        found: list[Policy] = []
        if not jax.tree.leaves(self.first):
            return found
        for factor in (0.5, 2.0, 0.75, 1.25, 0.875, 1.0625):
            changed = jax.tree.map(lambda x, f=factor: (x * f).astype(x.dtype), self.first)
            try:
                canonicalise(changed, self.environment.instances, self.environment.spec)
            except InputError:
                continue
            found.append(changed)
        return found[:2]

    @cached_property
    def base(self) -> Result:
        """The run that the others are compared with."""
        return self.run()

    def episodes(self, instance: int) -> Step:
        """The replicates of an instance by the plain loop, as long as the longest lane of ``base``; host arrays."""
        if instance not in self._played:
            rounds = int(self.base.ledger["rounds"][..., -1].max())
            played = episode(
                self.first,
                self.environment,
                self.constraint,
                self.key,
                rounds,
                instance=instance,
                replicates=self.replicates,
            )
            self._played[instance] = jax.device_get(played)
        return self._played[instance]

    @cached_property
    def steps(self) -> Step:
        """The first rounds of instance 0, replicate 0 by the plain loop, ``[round, …]``, host arrays."""
        rounds = int(min(self.base.ledger["rounds"][0, 0, 0, -1], 64))
        return jax.tree.map(lambda x: x[0, :rounds], self.episodes(0))

    def round(self, i: int) -> Step:
        """Round i + 1 of ``steps``, as jax arrays."""
        return jax.tree.map(lambda x: jnp.asarray(x[i]), self.steps)

    @cached_property
    def policy_words(self) -> jax.Array:
        """The policy's key in instance 0, replicate 0, as words."""
        return lane_words(streams.root_key(self.key), 0, 0, Domain.POLICY)


def cut(subject: Subject, instances: Sequence[int]) -> dict[str, Any]:
    """The policy, environment and constraint of some instances."""
    chosen, environment = np.asarray(instances), subject.environment
    resources = environment.resources

    def per_instance(value: Any) -> bool:
        shape = np.shape(value)
        one_each = shape[:1] == (environment.instances,)
        return one_each and (len(shape) > 1 or shape != (resources,))

    parts = {
        field.name: np.asarray(value)[chosen]
        for field in leaf_fields(subject.constraint)
        if per_instance(value := getattr(subject.constraint, field.name))
    }
    return {
        "policies": jax.tree.map(lambda x: x[:, chosen] if x.shape[1] > 1 else x, subject.first),
        "environment": jax.tree.map(lambda x: np.asarray(x)[chosen], environment),
        "constraint": dataclasses.replace(subject.constraint, **parts),  # type: ignore[type-var]
    }


def is_presence(path: Any) -> bool:
    """Does this path lead to a table of which arms exist?"""
    return bool(path) and getattr(path[-1], "name", "") == "present"


def pad_arms(environment: Environment, extra: int) -> Environment:
    """More columns in every table ``[instance, arm, …]``: copies of the last arm, but absent."""
    arms = environment.spec.arms

    def pad(path: Any, x: Any) -> np.ndarray:
        x = np.asarray(x)
        if x.ndim < 2 or x.shape[1] != arms:
            return x
        widths = [(0, 0), (0, extra)] + [(0, 0)] * (x.ndim - 2)
        return np.pad(x, widths) if is_presence(path) else np.pad(x, widths, mode="edge")

    return jax.tree_util.tree_map_with_path(pad, environment)


def pad_policy(policy: Policy, extra: int) -> Policy:
    """Per-arm leaves get columns as well."""

    def pad(name: str, x: Any, meta: Any) -> Any:
        return np.pad(x, [(0, 0), (0, 0), (0, extra)], mode="edge") if meta.get("core", 0) == 1 else x

    return map_leaves(policy, pad)
