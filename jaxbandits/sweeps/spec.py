"""The declarative value: what a sweep plays."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxbandits._engine.marks import mark_shares
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.numbers import whole_number
from jaxbandits.core.printable import brief
from jaxbandits.core.protocol import Constraint, Environment, Policy
from jaxbandits.core.pytrees import walk
from jaxbandits.core.settings import canonicalise, label

# Names of a result's own, that a parameter must not take.
_TAKEN = {"setting", "environment", "budget", "instance", "replicate", "mark", "policy"} | {
    *("regret", "realised_regret", "reward", "spent", "rounds", "status", "skips", "violation"),
    *("low", "high", "difference", "best", "indistinguishable"),
}

OVER = ("replicate", "instance")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sweep:
    """The product of policies × their settings × environments × budgets × instances × replicates.

    All of it meets the same world: the outcomes of an instance depend on the seed, the number of the instance in its
    environment and the replicate only. So differences between settings, policies and budgets are paired.

    Args:
        policies: one or more; arrays in their fields are the grids (``OmegaUCB(rho=[0.1, 0.2])``, or
            :func:`~jaxbandits.grid` for all combinations of several fields). A mapping gives them names of your own.
        environments: one environment, or several by name. Instances are numbered from 0 in each.
        constraint: what ends a run. With ``budgets`` a function ``(environment, budget) -> Constraint``.
        budgets: the values of the axis ``budget``, increasing; None for the one ``constraint``.
        replicates: independent runs of each setting on each instance.
        seed: 0 … 2³² − 1.
        marks: at how many points of the clock to record, or the shares (see :func:`~jaxbandits.simulate`). The default
            1 records the end only.
        over: what was sampled, and hence what a standard error counts. ``"replicate"``: the instances are given, the
            runs on them are random. ``"instance"``: the instances were drawn at random; each, averaged over its
            replicates, is one observation.
        engine, max_rounds: as in :func:`~jaxbandits.simulate`.
        block_seconds: about how many seconds of one core's work make a block, the unit in which work is saved.
        title: heads the report.

    Example:
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
        >>> spec = jb.Sweep(
        ...     policies=jb.policies.OmegaUCB(rho=[0.125, 0.25, 0.5]), environments=arms, budgets=[20, 40],
        ...     constraint=lambda arms, budget: jb.TotalBudget(budget, last_pull="counts"), replicates=8)
        >>> spec.named_policies().keys(), spec.settings("OmegaUCB")
        (dict_keys(['OmegaUCB']), {'rho': array([0.125, 0.25 , 0.5  ], dtype=float32)})
    """

    policies: Policy | Sequence[Policy] | Mapping[str, Policy]
    environments: Environment | Mapping[str, Environment]
    constraint: Constraint | Callable[[Environment, float], Constraint]
    budgets: Sequence[float] | None = None
    replicates: int = 1
    seed: int = 0
    marks: int | Sequence[float] = 1
    over: str = "replicate"
    engine: str = "auto"
    max_rounds: int | None = None
    block_seconds: float = 5.0
    title: str = ""

    def check(self) -> None:
        """What no later check would find, or not by name.

        Raises:
            InputError: naming the field, its value, and what it may be.
        """
        whole_number("seed", self.seed, 0, 2**32 - 1, "2**32 - 1")
        whole_number("replicates", self.replicates, 1)
        if not isinstance(self.over, str) or self.over not in OVER:
            raise bad("over", self.over, " or ".join(map(repr, OVER)))
        is_number = isinstance(self.block_seconds, (int, float)) and not isinstance(self.block_seconds, bool)
        if not is_number or not 0 < self.block_seconds <= 1e9:
            raise bad("block_seconds", self.block_seconds, "a number above 0 and at most 1e9")
        mark_shares(self.marks)
        self._check_budgets()
        self.named_policies()
        self.named_environments()
        if not isinstance(self.title, str) or not self.title.isprintable():
            raise bad("title", self.title, "one line of text")

    def _check_budgets(self) -> None:
        if self.budgets is None:
            if not isinstance(self.constraint, Constraint):
                raise bad("constraint", self.constraint, "a constraint, or budgets must be given too")
            return
        try:
            values = np.asarray(self.budgets)
            truth = any(isinstance(value, (bool, np.bool_)) for value in self.budgets)
        except (TypeError, ValueError):
            raise bad("budgets", self.budgets, "increasing numbers above 0") from None
        if (
            truth
            or values.dtype.kind not in "iuf"
            or values.ndim != 1
            or not values.size
            or not (np.diff(values, prepend=0) > 0).all()
        ):
            raise bad("budgets", self.budgets, "increasing numbers above 0")
        if isinstance(self.constraint, Constraint) or not callable(self.constraint):
            raise bad(
                "constraint", self.constraint, "a function (environment, budget) -> Constraint, as budgets are given"
            )

    def named_policies(self) -> dict[str, Policy]:
        """Policies by name: the class, with its static fields if it has any.

        Raises:
            InputError: two of one name, or something that is no policy.
        """
        if isinstance(self.policies, Mapping):
            found = dict(self.policies)
        else:
            several = isinstance(self.policies, Iterable) and not isinstance(self.policies, (Policy, str, bytes))
            given = list(self.policies) if several else [self.policies]  # type: ignore[arg-type]
            found = {}
            for policy in given:
                if not isinstance(policy, Policy):
                    raise bad("policies", policy, "a policy, such as OmegaUCB(rho=[0.125, 0.25])")
                name = label(policy)
                if name in found:
                    raise InputError(
                        f"policies: {name} given twice; its values must be in one (an array, or jb.grid), or policies "
                        "must be a mapping of names"
                    )
                found[name] = policy
        if not found:
            raise bad("policies", self.policies, "a policy or several")
        for name, policy in found.items():
            if not isinstance(policy, Policy) or not dataclasses.is_dataclass(policy):
                raise bad(f"policies: {name}", policy, "a policy, such as OmegaUCB(rho=[0.125, 0.25])")
            _check_name("policies", name)
        return found

    def named_environments(self) -> dict[str, Environment]:
        """Environments by name; a single one has its class's name."""
        if isinstance(self.environments, Environment):
            return {type(self.environments).__name__: self.environments}
        if not isinstance(self.environments, Mapping) or not self.environments:
            raise bad("environments", self.environments, "an environment, or a mapping of names to environments")
        for name, environment in self.environments.items():
            _check_name("environments", name)
            if not isinstance(environment, Environment):
                raise bad(f"environments: {name}", environment, "an environment, such as FiniteArms.bernoulli(...)")
        return dict(self.environments)

    def constraint_of(self, environment: Environment, budget: float | None) -> Constraint:
        """What ends a run on this environment with this budget (None: the only one)."""
        if budget is None:
            assert isinstance(self.constraint, Constraint)
            return self.constraint
        assert callable(self.constraint)
        try:
            made = self.constraint(environment, budget)
        except InputError:
            raise
        except Exception as problem:
            said = brief(f"{type(problem).__name__}: {problem}")
            raise InputError(
                f"constraint: fails for budget {budget:g} ({said}); it must take (environment, budget) and give a "
                "Constraint"
            ) from problem
        if not isinstance(made, Constraint):
            raise InputError(
                f"constraint: gives a {type(made).__name__} for budget {budget:g}; it must give a Constraint"
            )
        return made

    def budget_axis(self) -> list[float | None]:
        """The budgets, or one None."""
        return [None] if self.budgets is None else [float(budget) for budget in self.budgets]

    def settings(self, name: str) -> dict[str, np.ndarray]:
        """The swept parameters of a policy: those fields that differ between its settings, each ``[setting]``.

        A parameter that is an array per arm or per instance has no one value and is left out.
        """
        environment = next(iter(self.named_environments().values()))
        leaves, count = canonicalise(self.named_policies()[name], environment.instances, environment.spec)
        found: dict[str, np.ndarray] = {}
        for leaf in walk(leaves):
            if leaf.value.size == count and np.unique(leaf.value).size > 1:
                short = leaf.name.split(".")[-1]
                found[leaf.name if short in found or short in _TAKEN else short] = leaf.value.reshape(count)
        return found


def _check_name(argument: str, name: Any) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= 200 or not name.isprintable() or re.search(r"[/\\]", name):
        raise bad(f"{argument}: name", name, "printable text of 1 to 200 characters, without slashes")
