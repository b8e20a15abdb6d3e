"""The main job: which policy, with which parameter, spends a budget best, and how sure are we?

Like :func:`jaxbandits.simulate`, but in the units of an arms file: it divides by the bounds on the way in, multiplies
on the way out, runs instances of different K in few compiles, and ranks the settings.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandits._engine.marks import mark_shares
from jaxbandits._numerics.beta_tables import MOST_SHAPE
from jaxbandits.comparison.arms_file import ArmsTable, read_arms
from jaxbandits.comparison.grouping import Group, check_costs, grouped, padded_environment
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

if TYPE_CHECKING:
    pass

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
) -> ComparisonPlan:
    """Read, check and lay out a comparison without compiling anything; :func:`~jaxbandits.compare` is this and
    ``run_plan``.

    Args:
        arms, budget, policies: as in :func:`~jaxbandits.comparison.compare`.
        runs: independent runs of each setting on each instance, at least 1.
        seed: 0 to 2³² − 1; the same seed gives the same numbers.
        noise: what a pull looks like, with means as in the file. ``"bernoulli"``: the whole bound or nothing, reward
            and cost independent (default for all files but logs). ``"beta"``: Beta distributed between 0 and the bound,
            independent. ``"empirical"``: a row of the arm's log, reward and cost together (default for logs, only for
            them).
        beta_concentration: α + β > 0 of the Beta laws; larger is less noisy.
        last_pull: the pull that exceeds the budget ``"counts"`` or ``"forfeits"`` its reward.
        marks: at how many equally spaced shares of the budget to record the regret, or the shares, ending in 1.
        instances, reward_max, cost_max: as in :func:`~jaxbandits.comparison.arms_file.read_arms`.

    Raises:
        InputError: naming the argument, its value and what it may be.
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
    if isinstance(arms, ArmsTable):
        if instances != "published" or reward_max is not None or cost_max is not None:
            raise InputError("instances, reward_max, cost_max: given with an ArmsTable; give them to read_arms instead")
        table, source, digest = arms, None, arms.sha256
    else:
        table = read_arms(arms, instances=instances, reward_max=reward_max, cost_max=cost_max)
        source, digest = os.fspath(arms), table.sha256
    noise = noise or ("empirical" if table.kind == "log" else "bernoulli")
    if noise == "empirical" and any(instance.log is None for instance in table.instances):
        raise bad("noise", noise, f"'bernoulli' or 'beta' for a file of {table.kind}: only a log has rows to resample")
    bounds = np.array([instance.cost_bound for instance in table.instances])
    scaled = budget / bounds
    if (scaled > 2.0**30).any() or (scaled < 2.0**-24).any():
        least, most = 2.0**-24 * bounds.max(), 2.0**30 * bounds.min()
        raise bad("budget", budget, f"from {least:.3g} to {most:.3g} (2**-24 to 2**30 times the bound of the costs)")
    canonical = [canonicalise(policy, len(table.instances)) for policy in chosen]
    chosen = tuple(policy for policy, _ in canonical)
    settings = _settings(canonical)
    values = len(settings) * len(table.instances) * int(runs) * shares.size
    if values > _MOST_VALUES:
        raise bad(
            "runs", runs, f"at most {_MOST_VALUES * int(runs) // values} with so many settings, instances and marks"
        )
    work = len(settings) * int(runs) * scaled / [instance.scaled_mean_cost.mean() for instance in table.instances]
    groups = tuple(
        Group(places, padded_environment([table.instances[place] for place in places], noise, concentration))
        for places in grouped([len(instance.arms) for instance in table.instances], work, len(chosen))
    )
    for group in groups:
        check_costs(group, table, noise)
        for policy in chosen:
            canonicalise(of_instances(policy, list(group.places)), len(group.places), group.environment.spec)
    return ComparisonPlan(
        table=table,
        source=source,
        sha256=digest,
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
