"""The main job: which policy, with which parameter, spends a budget best, and how sure are we?

Like :func:`jaxbandits.simulate`, but in the units of an arms file: it divides by the bounds on the way in, multiplies
on the way out, runs instances of different K in few compiles, and ranks the settings.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxbandits._engine.marks import mark_shares
from jaxbandits._numerics.beta_tables import MOST_SHAPE
from jaxbandits.comparison.arms_file import read_arms
from jaxbandits.comparison.arms_table import ArmsTable
from jaxbandits.comparison.assumptions import arms_of, assumed, rounds_of, with_constraint
from jaxbandits.comparison.grouping import Group, grouped
from jaxbandits.comparison.named_policies import AVERAGE_COST_POLICIES, POLICIES
from jaxbandits.comparison.posterior import STATED_COST_CV, Posterior
from jaxbandits.constraints import LAST_PULLS
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.numbers import positive_number, whole_number
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import walk
from jaxbandits.core.settings import canonicalise, label, of_instances
from jaxbandits.core.specs import FiniteSpec

NOISES = ("bernoulli", "beta", "clicks", "empirical")
"""What a pull may look like, see :func:`~jaxbandits.compare`."""
UNCERTAINTIES = ("means", "given")

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
        posterior: what the means of each run are drawn from; None where they are those of the file.
        why_given: where they are, the reason if it is the file; None if it was asked for.
        cost_cv: coefficient of variation of the cost of one pull under the noise ``"clicks"``.
        cost_cv_from: ``"days"``, ``"stated"`` or ``"rows"``.
        rounds: of the average-cost constraint; None for a total budget.
        average_cost: its bound, in the file's unit per round; None for a total budget.
        splits: weights ``[setting, instance, arm]``, where the settings are fixed splits and not ``policies``.
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
    posterior: Posterior | None = None
    why_given: str | None = None
    cost_cv: float = STATED_COST_CV
    cost_cv_from: str = "stated"
    rounds: int | None = None
    average_cost: float | None = None
    splits: np.ndarray | None = None

    @property
    def uncertainty(self) -> str:
        """``"means"``: drawn anew for every run; or ``"given"``."""
        return "given" if self.posterior is None else "means"


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
    uncertainty: str | None = None,
    cost_cv: float | None = None,
    average_cost: float | None = None,
    columns: Mapping[str, str] | None = None,
    reward: str | None = None,
    prior: float | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> ComparisonPlan:
    """Read, check and lay out a comparison without compiling anything; what :func:`~jaxbandits.compare` then runs.

    Args and errors are those of :func:`~jaxbandits.compare`.

    Example:
        >>> import jaxbandits as jb
        >>> from jaxbandits.comparison import prepare
        >>> plan = prepare("jaxbandits/data/sample_ads.csv", 300.0, jb.policies.OmegaUCB(rho=[0.25, 1.0]), runs=8)
        >>> list(plan.settings), len(plan.table.instances)
        (['omega_ucb(rho=0.25)', 'omega_ucb(rho=1)'], 4)
    """
    _check_choices(runs, seed, last_pull, noise, uncertainty, average_cost)
    budget = positive_number("budget", budget)
    concentration = positive_number("beta_concentration", beta_concentration)
    if concentration > MOST_SHAPE:
        raise bad("beta_concentration", beta_concentration, f"above 0 and at most {MOST_SHAPE:g}")
    cost_cv = None if cost_cv is None else positive_number("cost_cv", cost_cv)
    shares = _shares(marks)
    chosen = _checked(policies)
    reading = {"reward_max": reward_max, "cost_max": cost_max, "columns": columns, "reward": reward, "prior": prior}
    table = _table(arms, {"instances": instances, **reading, "decimal": decimal, "encoding": encoding})
    world = assumed(table, uncertainty, noise, cost_cv, reward_max, cost_max)
    table = world.table
    scaled = _scaled_budgets(budget, table)
    rounds = None if average_cost is None else rounds_of(budget, average_cost, table)
    if rounds is not None and average_cost is not None:
        chosen = tuple(with_constraint(policy, average_cost, rounds, table) for policy in chosen)
    canonical = [canonicalise(policy, len(table.instances)) for policy in chosen]
    chosen = tuple(policy for policy, _ in canonical)
    settings = _settings(canonical, () if rounds is None else ("c", "horizon"))
    _check_size(len(settings) * len(table.instances), int(runs), shares.size)
    work = len(settings) * int(runs) * scaled / [instance.scaled_mean_cost.mean() for instance in table.instances]
    groups = tuple(
        Group(rows, arms_of(world, rows, concentration, rounds is not None))
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
        noise=world.noise,
        beta_concentration=concentration,
        last_pull=last_pull,
        shares=tuple(float(share) for share in shares),
        scaled_budgets=scaled,
        groups=groups,
        posterior=world.posterior,
        why_given=world.why_given or None,
        cost_cv=world.cost_cv,
        cost_cv_from=world.cost_cv_from,
        rounds=rounds,
        average_cost=average_cost,
    )


def _shares(marks: int | Sequence[float]) -> np.ndarray:
    """Shares of the budget: equally spaced, where a number is given."""
    shares = mark_shares(marks)
    return np.arange(1, marks + 1) / marks if isinstance(marks, (int, np.integer)) else shares


def _check_choices(
    runs: int, seed: int, last_pull: str, noise: str | None, uncertainty: str | None, average_cost: float | None
) -> None:
    if whole_number("runs", runs, 1) >= 2**32:
        raise bad("runs", runs, "below 2**32")
    whole_number("seed", seed, 0, 2**32 - 1, "2**32 - 1")
    if last_pull not in LAST_PULLS:
        raise bad("last_pull", last_pull, " or ".join(map(repr, LAST_PULLS)))
    if average_cost is not None and last_pull != "counts":
        raise bad("last_pull", last_pull, "left out with an average cost, beyond which no pull goes")
    if noise is not None and noise not in NOISES:
        raise bad("noise", noise, " or ".join(map(repr, NOISES)))
    if uncertainty is not None and uncertainty not in UNCERTAINTIES:
        raise bad("uncertainty", uncertainty, " or ".join(map(repr, UNCERTAINTIES)))


def _table(arms: str | os.PathLike[str] | ArmsTable, reading: Mapping[str, Any]) -> ArmsTable:
    if not isinstance(arms, ArmsTable):
        return read_arms(arms, **reading)
    given = [name for name, value in reading.items() if value not in (None, "published")]
    if given:
        raise InputError(f"{', '.join(given)}: given with an ArmsTable; give them to read_arms instead")
    return arms


def _scaled_budgets(budget: float, table: ArmsTable) -> np.ndarray:
    """The budget over each instance's bound of the costs, ``[instance]``."""
    bounds = np.array([instance.cost_bound for instance in table.instances])
    scaled = budget / bounds
    if (scaled > 2.0**30).any() or (scaled < 2.0**-24).any():
        least, most = 2.0**-24 * bounds.max(), 2.0**30 * bounds.min()
        raise bad("budget", budget, f"from {least:.3g} to {most:.3g} (2**-24 to 2**30 times the bound of the costs)")
    return scaled


def in_units_of(plan: ComparisonPlan, table: ArmsTable) -> ComparisonPlan:
    """The plan for its own budget and horizon with a table of these arms, perhaps of other bounds; its groups stay."""
    policies, average_cost, rounds = plan.policies, plan.average_cost, plan.rounds
    if average_cost is not None and rounds is not None:
        told = (with_constraint(policy, average_cost, rounds, table) for policy in policies)
        policies = tuple(canonicalise(policy, len(table.instances))[0] for policy in told)
    scaled = _scaled_budgets(plan.budget, table)
    return dataclasses.replace(plan, table=table, policies=policies, scaled_budgets=scaled)


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


def _settings(canonical: Sequence[tuple[Policy, int]], hidden: Sequence[str]) -> dict[str, dict[str, Any]]:
    """For each setting's label, which uses the names of :data:`POLICIES`: its class and its parameters (float32)."""
    name_of = {made: name for name, made in {**POLICIES, **AVERAGE_COST_POLICIES}.items()}
    made: dict[str, dict[str, Any]] = {}
    for leaves, count in canonical:
        kind, name = type(leaves).__name__, name_of.get(type(leaves), type(leaves).__name__)
        for setting in range(count):
            text = _without(name + label(leaves, setting).removeprefix(kind), hidden)
            if text in made:
                raise bad("policies", text, "given once: a setting with this label is already there")
            made[text] = {"policy": kind, "parameters": _parameters(leaves, setting)}
    return made


def _without(text: str, hidden: Sequence[str]) -> str:
    """A label without some parameters: those that are the constraint's."""
    for parameter in hidden:
        text = re.sub(rf"(?<=[( ]){parameter}=[^,)]*(, )?", "", text)
    return text.replace(", )", ")").replace("()", "")


def _parameters(leaves: Policy, setting: int) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for leaf in walk(leaves):
        value = leaf.value[setting]
        exact = np.array([float(str(x)) for x in value.ravel()]).reshape(value.shape)
        values[leaf.name] = (exact[0] if exact.shape[0] == 1 else exact).tolist()
    return values
