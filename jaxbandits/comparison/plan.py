"""The main job: which policy, with which parameter, spends a budget best, and how sure are we?

Like :func:`jaxbandits.simulate`, but in the units of an arms file: it divides by the bounds on the way in, multiplies
on the way out, runs instances of different K in few compiles, and ranks the settings.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxbandits._engine.marks import mark_shares
from jaxbandits._numerics.beta_tables import MOST_SHAPE
from jaxbandits.comparison.arms_file import read_arms
from jaxbandits.comparison.arms_table import ArmsTable
from jaxbandits.comparison.grouping import Group, grouped
from jaxbandits.comparison.scaled_arms import finite_arms
from jaxbandits.constraints import LAST_PULLS
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.numbers import positive_number, whole_number
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import walk
from jaxbandits.core.settings import canonicalise, label, of_instances
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.policies import (
    CUCB,
    IUCB,
    KUBE,
    MRCB,
    MUCB,
    UCB1,
    UCBB2,
    UCBBV1,
    UCBBV2,
    BGreedy,
    BudgetedThompson,
    BudgetUCB,
    EpsilonFirst,
    EstimatedBudgetUCB,
    FractionalKUBE,
    KLUCBSCPlus,
    OmegaStarUCB,
    OmegaUCB,
    PDBwK,
    UCBSCPlus,
)

POLICIES: Mapping[str, type[Policy]] = {
    "omega_ucb": OmegaUCB,
    "omega_star_ucb": OmegaStarUCB,
    "bts": BudgetedThompson,
    "m_ucb": MUCB,
    "c_ucb": CUCB,
    "i_ucb": IUCB,
    "b_greedy": BGreedy,
    "budget_ucb": BudgetUCB,
    "estimated_budget_ucb": EstimatedBudgetUCB,
    "ucb_sc_plus": UCBSCPlus,
    "kl_ucb_sc_plus": KLUCBSCPlus,
    "epsilon_first": EpsilonFirst,
    "kube": KUBE,
    "fractional_kube": FractionalKUBE,
    "ucb_bv1": UCBBV1,
    "ucb_bv2": UCBBV2,
    "pd_bwk": PDBwK,
    "mrcb": MRCB,
    "ucb_b2": UCBB2,
    "ucb1": UCB1,
}
NOISES = ("bernoulli", "beta", "empirical")

_MOST_VALUES = 1 << 29  # float64 in one labelled result


@dataclasses.dataclass(frozen=True, eq=False)
class ComparisonPlan:
    """A checked comparison, ready for :func:`~jaxbandits.comparison.run_plan`. Made by
    :func:`~jaxbandits.comparison.prepare`, whose arguments the attributes are.

    Attributes:
        source: path of the arms file, None if an :class:`~jaxbandits.comparison.arms_file.ArmsTable` was given.
        sha256: of the arms file.
        settings: labels of the policy settings, such as ``omega_ucb(rho=0.25)``, with their classes and parameters.
        policies: canonical, for all instances of the table.
        scaled_budgets: budget / cost_bound, float64 ``[instance]``.
        groups: which instances share a compile.
    """

    table: ArmsTable
    source: str | None
    sha256: str | None
    budget: float
    policies: tuple[Policy, ...]
    settings: Mapping[str, Mapping[str, Any]]
    runs: int
    seed: int
    noise: str
    beta_concentration: float
    last_pull: str
    shares: tuple[float, ...]
    scaled_budgets: np.ndarray
    groups: tuple[Group, ...]


def prepare(
    arms: str | os.PathLike[str] | ArmsTable,
    budget: float,
    policies: Policy | Sequence[Policy],
    *,
    runs: int = 1000,
    seed: int = 0,
    noise: str | None = None,
    beta_concentration: float = 4.0,
    last_pull: str = "counts",
    marks: int | Sequence[float] = 50,
    instances: str = "published",
    reward_max: float | None = None,
    cost_max: float | None = None,
    columns: Mapping[str, str] | None = None,
    reward: str | None = None,
    prior: float | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> ComparisonPlan:
    """Read, check and lay out a comparison without compiling anything; what :func:`~jaxbandits.compare` then runs.

    Args and errors are those of :func:`~jaxbandits.compare`.
    """
    if whole_number("runs", runs, 1) >= 2**32:
        raise bad("runs", runs, "below 2**32")
    whole_number("seed", seed, 0, 2**32 - 1, "2**32 - 1")
    budget = positive_number("budget", budget)
    concentration = positive_number("beta_concentration", beta_concentration)
    if concentration > MOST_SHAPE:
        raise bad("beta_concentration", beta_concentration, f"above 0 and at most {MOST_SHAPE:g}")
    if last_pull not in LAST_PULLS:
        raise bad("last_pull", last_pull, " or ".join(map(repr, LAST_PULLS)))
    if noise is not None and noise not in NOISES:
        raise bad("noise", noise, " or ".join(map(repr, NOISES)))
    shares = mark_shares(marks)
    if isinstance(marks, (int, np.integer)):
        shares = np.arange(1, marks + 1) / marks
    chosen = _checked(policies)
    reading = {"reward_max": reward_max, "cost_max": cost_max, "columns": columns, "reward": reward, "prior": prior}
    table = _table(arms, {"instances": instances, **reading, "decimal": decimal, "encoding": encoding})
    noise = _noise(noise, table)
    scaled = _scaled_budgets(budget, table)
    canonical = [canonicalise(policy, len(table.instances)) for policy in chosen]
    chosen = tuple(policy for policy, _ in canonical)
    settings = _settings(canonical)
    _check_size(len(settings) * len(table.instances), int(runs), shares.size)
    work = len(settings) * int(runs) * scaled / [instance.scaled_mean_cost.mean() for instance in table.instances]
    groups = tuple(
        Group(rows, finite_arms([table.instances[row] for row in rows], noise, concentration))
        for rows in grouped([len(instance.arms) for instance in table.instances], work, len(chosen))
    )
    for group in groups:
        for policy in chosen:
            canonicalise(of_instances(policy, list(group.rows)), len(group.rows), group.environment.spec)
    return ComparisonPlan(
        table=table,
        source=None if isinstance(arms, ArmsTable) else os.fspath(arms),
        sha256=table.sha256,
        budget=budget,
        policies=chosen,
        settings=settings,
        runs=int(runs),
        seed=int(seed),
        noise=noise,
        beta_concentration=concentration,
        last_pull=last_pull,
        shares=tuple(float(share) for share in shares),
        scaled_budgets=scaled,
        groups=groups,
    )


def _table(arms: str | os.PathLike[str] | ArmsTable, reading: Mapping[str, Any]) -> ArmsTable:
    if not isinstance(arms, ArmsTable):
        return read_arms(arms, **reading)
    given = [name for name, value in reading.items() if value not in (None, "published")]
    if given:
        raise InputError(f"{', '.join(given)}: given with an ArmsTable; give them to read_arms instead")
    return arms


def _noise(noise: str | None, table: ArmsTable) -> str:
    noise = noise or ("empirical" if table.kind == "log" else "bernoulli")
    if noise == "empirical" and any(instance.log is None for instance in table.instances):
        raise bad("noise", noise, f"'bernoulli' or 'beta' for a file of {table.kind}: only a log has rows to resample")
    return noise


def _scaled_budgets(budget: float, table: ArmsTable) -> np.ndarray:
    """The budget over each instance's bound of the costs, ``[instance]``."""
    bounds = np.array([instance.cost_bound for instance in table.instances])
    scaled = budget / bounds
    if (scaled > 2.0**30).any() or (scaled < 2.0**-24).any():
        least, most = 2.0**-24 * bounds.max(), 2.0**30 * bounds.min()
        raise bad("budget", budget, f"from {least:.3g} to {most:.3g} (2**-24 to 2**30 times the bound of the costs)")
    return scaled


def _check_size(rows: int, runs: int, marks: int) -> None:
    """Before any array of that size is made; a row is a setting on an instance."""
    values = rows * runs * marks
    if values > _MOST_VALUES:
        raise bad("runs", runs, f"at most {_MOST_VALUES * runs // values} with so many settings, instances and marks")


def _checked(policies: Policy | Sequence[Policy]) -> tuple[Policy, ...]:
    chosen = tuple(policies) if isinstance(policies, (list, tuple)) else (policies,)
    if not chosen:
        raise bad("policies", policies, "a policy or a list of them")
    for policy in chosen:
        if not isinstance(policy, Policy):
            raise bad("policies", policy, "a policy (an instance, such as OmegaUCB(rho=0.25)) or a list of them")
        if not issubclass(FiniteSpec, policy.plays):
            raise bad("policies", type(policy).__name__, "a policy for finitely many arms")
    return chosen


def _settings(canonical: Sequence[tuple[Policy, int]]) -> dict[str, dict[str, Any]]:
    """For each setting's label, which uses the names of :data:`POLICIES`: its class and its parameters (float32)."""
    name_of = {made: name for name, made in POLICIES.items()}
    made: dict[str, dict[str, Any]] = {}
    for leaves, count in canonical:
        kind, name = type(leaves).__name__, name_of.get(type(leaves), type(leaves).__name__)
        for setting in range(count):
            text = name + label(leaves, setting).removeprefix(kind)
            if text in made:
                raise bad("policies", text, "given once: a setting with this label is already there")
            made[text] = {"policy": kind, "parameters": _parameters(leaves, setting)}
    return made


def _parameters(leaves: Policy, setting: int) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for leaf in walk(leaves):
        value = leaf.value[setting]
        exact = np.array([float(str(x)) for x in value.ravel()]).reshape(value.shape)
        values[leaf.name] = (exact[0] if exact.shape[0] == 1 else exact).tolist()
    return values
