"""What a comparison plays: the options, what suits the file where nothing was said, and what fits into one compile."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

import jaxbandits.policies as p
from jaxbandits._engine.setup import mark_shares
from jaxbandits._numerics.beta import MOST_SHAPE
from jaxbandits.comparison.arms_file import read_arms
from jaxbandits.comparison.arms_table import ArmsTable
from jaxbandits.comparison.posterior import STATED_COST_CV, Drawn, Posterior, cost_cv_of, posterior_of, why_no_posterior
from jaxbandits.comparison.until import StoppingRule
from jaxbandits.comparison.worlds import finite_arms, run_arms, with_bounds
from jaxbandits.constraints import LAST_PULLS
from jaxbandits.core import ticks
from jaxbandits.core.checks import InputError, bad, positive_number, whole_number
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import leaf_fields, walk
from jaxbandits.core.settings import Settings, label
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.environments.finite import FiniteArms, WithNullArm

POLICIES: Mapping[str, type[Policy]] = {
    "omega_ucb": p.OmegaUCB,
    "omega_star_ucb": p.OmegaStarUCB,
    "bts": p.BudgetedThompson,
    "m_ucb": p.MUCB,
    "c_ucb": p.CUCB,
    "i_ucb": p.IUCB,
    "b_greedy": p.BGreedy,
    "budget_ucb": p.BudgetUCB,
    "estimated_budget_ucb": p.EstimatedBudgetUCB,
    "ucb_sc_plus": p.UCBSCPlus,
    "ucb_sc": p.UCBSC,
    "kl_ucb_sc_plus": p.KLUCBSCPlus,
    "kl_ucb_sc": p.KLUCBSC,
    "epsilon_first": p.EpsilonFirst,
    "kube": p.KUBE,
    "fractional_kube": p.FractionalKUBE,
    "ucb_bv1": p.UCBBV1,
    "ucb_bv2": p.UCBBV2,
    "pd_bwk": p.PDBwK,
    "mrcb": p.MRCB,
    "ucb_b2": p.UCBB2,
    "ucb1": p.UCB1,
}
"""What ``compare --policies`` calls the policies for a total budget: class by name."""

AVERAGE_COST_POLICIES: Mapping[str, type[Policy]] = {
    "suak": p.SUAK,
    "one_phase": p.OnePhase,
    "primal_dual": p.PrimalDualTwoPhase,
    "ucb_simplex": p.UCBSimplex,
    "pacer": p.Pacer,
}
"""For an average-cost constraint; their ``c`` and ``horizon`` are those of the constraint."""

NOISES = ("bernoulli", "beta", "clicks", "empirical")
"""What a pull may look like, see :func:`~jaxbandits.compare`."""
UNCERTAINTIES = ("means", "given")
OF_THE_CONSTRAINT = ("c", "horizon")
"""Parameters of policies that an average-cost constraint sets."""

_USUAL_CONCENTRATION = 4.0  # alpha + beta of Beta laws
_MOST_VALUES = 1 << 29  # float64 in one labelled result
READING = (
    *("instances", "reward_max", "cost_max", "columns", "reward", "prior", "decimal", "encoding"),
    *("drop", "keep", "add"),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """What :func:`~jaxbandits.compare` takes beside arms, budget and policies; its docstring says what each means.

    The command fills one too: its options have these names.

    Raises:
        InputError: a value that no file can make right.
    """

    runs: int | None = None
    until: str | None = None
    max_runs: int | None = None
    claim: str = "any"
    seed: int = 0
    noise: str | None = None
    beta_concentration: float | None = None
    last_pull: str = "counts"
    marks: int | Sequence[float] = 50
    instances: str = "published"
    reward_max: float | None = None
    cost_max: float | None = None
    columns: Mapping[str, str] | None = None
    reward: str | None = None
    prior: float | None = None
    decimal: str | None = None
    encoding: str | None = None
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    add: bool = False
    uncertainty: str | None = None
    cost_cv: float | None = None
    average_cost: float | None = None

    def __post_init__(self) -> None:
        if self.runs is not None:
            whole_number("runs", self.runs, 1, 2**32 - 1, "2**32 - 1")
        whole_number("seed", self.seed, 0, 2**32 - 1, "2**32 - 1")
        if self.beta_concentration is not None:
            if positive_number("beta_concentration", self.beta_concentration) > MOST_SHAPE:
                raise bad("beta_concentration", self.beta_concentration, f"above 0 and at most {MOST_SHAPE:g}")
            if self.noise != "beta":
                raise bad("beta_concentration", self.beta_concentration, "left out: only the noise beta has one")
        for name, known in (("last_pull", LAST_PULLS), ("noise", NOISES), ("uncertainty", UNCERTAINTIES)):
            value = getattr(self, name)
            if value not in known and (value is not None or name == "last_pull"):
                raise bad(name, value, " or ".join(map(repr, known)))
        for name in ("cost_cv", "average_cost"):
            if getattr(self, name) is not None:
                positive_number(name, getattr(self, name))
        if self.average_cost is not None and self.last_pull != "counts":
            raise bad("last_pull", self.last_pull, "left out with an average cost, beyond which no pull goes")

    @property
    def rule(self) -> StoppingRule | None:
        """When to stop; None where the number of runs is fixed."""
        return StoppingRule.checked(self.until, self.claim, self.max_runs, self.runs)

    @property
    def reading(self) -> dict[str, Any]:
        """What :func:`~jaxbandits.comparison.read_arms` takes."""
        return {name: getattr(self, name) for name in READING}


_Function = TypeVar("_Function", bound=Callable[..., Any])


def takes_options(function: _Function) -> _Function:
    """Show every field of :class:`Options` in the signature of a function that takes ``**options``."""
    plain = inspect.signature(function)
    own = [x for x in plain.parameters.values() if x.kind is not x.VAR_KEYWORD]
    options = inspect.signature(Options).parameters.values()
    order = sorted([*options, *own], key=lambda x: x.kind)
    function.__signature__ = plain.replace(parameters=order)  # type: ignore[attr-defined]
    return function


# --- Instances of different K in few compiles


# Seconds, measured on two CPU cores. They decide how instances are grouped, never what comes out.
_COMPILE, _ARM_ROUND = 1.5, 5e-9


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """Instances that run in one compile: their rows in the table, and their arms, padded to the widest."""

    rows: tuple[int, ...]
    environment: FiniteArms | WithNullArm


def grouped(widths: Sequence[int], work: np.ndarray, policies: int) -> list[tuple[int, ...]]:
    """Rows of the table in groups of similar width, widest first, with least time for compiles and for padding arms.

    A group costs one compile per policy, and every round of its instances (``work``) the group's largest width.
    """
    order = sorted(range(len(widths)), key=lambda row: (widths[row], row))
    levels = [list(rows) for _, rows in itertools.groupby(order, key=lambda row: widths[row])]
    rounds = np.cumsum([0.0, *(float(sum(work[row] for row in level)) for level in levels)])
    best, cut = [0.0], [0]  # least time for the first n levels, and where their last group begins
    for n in range(1, len(levels) + 1):
        width = widths[levels[n - 1][0]]
        times = [
            best[first] + policies * _COMPILE + _ARM_ROUND * width * (rounds[n] - rounds[first]) for first in range(n)
        ]
        best.append(min(times))
        cut.append(times.index(best[n]))
    groups, n = [], len(levels)
    while n:
        groups.append(tuple(sorted(row for level in levels[cut[n] : n] for row in level)))
        n = cut[n]
    return groups


# --- What is played where the user says nothing


class Resolved(NamedTuple):
    """What the user said, and for the rest what suits the file; see :class:`ComparisonPlan`."""

    table: ArmsTable  # with bounds that hold whatever is drawn
    noise: str
    posterior: Posterior | None
    why_given: str | None
    cost_cv: float
    cost_cv_from: str = "stated"


def resolved(table: ArmsTable, options: Options) -> Resolved:
    """The defaults of this file.

    Raises:
        InputError: what the file does not allow; a bound of the user below what may be drawn.
    """
    why_given, cost_cv = _why_given(table, options), options.cost_cv
    posterior = posterior_of(table, cost_cv) if why_given is None else None
    noise = _noise_of(options.noise, table, posterior)
    if cost_cv is not None and (table.kind == "log" or (posterior is None and noise != "clicks")):
        raise bad("cost_cv", cost_cv, "left out: only counts are played with it, as clicks or with drawn means")
    cv, cv_from = cost_cv_of(table, posterior, cost_cv)
    if posterior is not None or noise == "clicks":
        table = with_bounds(table, noise, posterior, cv, options.reward_max, options.cost_max)
    return Resolved(table, noise, posterior, why_given or None, cv, cv_from)


def _why_given(table: ArmsTable, options: Options) -> str | None:
    """None: means are drawn. Else why not: what the file lacks, or nothing if it was asked for."""
    if options.uncertainty == "given":
        return ""
    why = why_no_posterior(table)
    if why is None and options.noise == "beta":
        why = "Beta laws are tables, which cannot be made anew for every run"
    if why is not None and options.uncertainty == "means":
        raise InputError(f"uncertainty: 'means' given; it must be 'given' for this file: {why}")
    return why


def _noise_of(noise: str | None, table: ArmsTable, posterior: Posterior | None) -> str:
    """What a pull looks like: as asked for, else by the kind of file."""
    whole = counts_conversions(table) and table.kind != "log"
    usual = "clicks" if posterior is not None and whole else "bernoulli"
    noise = noise or ("empirical" if table.kind == "log" else usual)
    if noise == "clicks" and not whole:
        raise bad("noise", noise, "'bernoulli' for this file: only counts of conversions say what one click may bring")
    if noise == "empirical" and any(instance.log is None for instance in table.instances):
        raise bad("noise", noise, f"'bernoulli' or 'beta' for a file of {table.kind}: only a log has rows to resample")
    return noise


def counts_conversions(table: ArmsTable) -> bool:
    """Whether every reward is a count of what a pull brings at most once."""
    return all(i.evidence is not None and i.evidence.whole for i in table.instances)


def arms_of(world: Resolved, rows: Sequence[int], concentration: float, may_rest: bool) -> FiniteArms | WithNullArm:
    """The arms of a group of instances; where means are drawn, those of run 0, which have the right shapes."""
    instances, posterior = [world.table.instances[row] for row in rows], world.posterior
    if posterior is not None or world.noise == "clicks":
        drawn = [
            Drawn(instance.mean_reward[None], instance.mean_cost[None])
            if posterior is None
            else posterior.instances[row].draw(0, row, [0])
            for row, instance in zip(rows, instances, strict=True)
        ]
        made = run_arms(instances, drawn, world.noise, world.cost_cv)
    else:
        made = finite_arms(instances, world.noise, concentration)
    return WithNullArm(made) if may_rest else made


def scaled_average_cost(average_cost: float, table: ArmsTable) -> np.ndarray:
    """The bound over each instance's bound of the costs, in whole ticks (which float32 holds), ``[instance]``."""
    bounds = np.array([instance.cost_bound for instance in table.instances])
    return ticks.to_units(np.maximum(ticks.floor_from_units(average_cost / bounds), 1))


def _with_constraint(policy: Any, average_cost: float, rounds: int, table: ArmsTable) -> Policy:
    """The policy with the bound and the horizon of the constraint, where it has parameters of these names."""
    values = dict(zip(OF_THE_CONSTRAINT, (scaled_average_cost(average_cost, table)[None, :], rounds), strict=True))
    given = {field.name: values[field.name] for field in leaf_fields(type(policy)) if field.name in values}
    return dataclasses.replace(policy, **given)


# --- The plan


@dataclasses.dataclass(frozen=True, eq=False)
class ComparisonPlan:
    """A checked comparison, ready for :func:`~jaxbandits.comparison.run_plan`. Made by
    :func:`~jaxbandits.comparison.prepare`, whose arguments the attributes are.

    Attributes:
        source: path of the arms file, None if an :class:`~jaxbandits.comparison.ArmsTable` was given.
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
        rule: when to stop; None where the number of runs is fixed.
    """

    table: ArmsTable
    source: str | None
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
    rule: StoppingRule | None = None

    @property
    def uncertainty(self) -> str:
        """``"means"``: drawn anew for every run; or ``"given"``."""
        return "given" if self.posterior is None else "means"


@takes_options
def prepare(
    arms: str | os.PathLike[str] | ArmsTable, budget: float, policies: Policy | Sequence[Policy], **options: Any
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
    chosen = Options(**options)
    budget, rule, average_cost = positive_number("budget", budget), chosen.rule, chosen.average_cost
    runs = rule.max_runs if rule is not None else 1000 if chosen.runs is None else int(chosen.runs)
    shares = mark_shares(chosen.marks)
    if isinstance(chosen.marks, (int, np.integer)):
        shares = np.arange(1, chosen.marks + 1) / chosen.marks  # exactly i / n
    given = _checked(policies)
    world = resolved(_table(arms, chosen.reading), chosen)
    table, rounds = world.table, None
    scaled = _scaled_budgets(budget, table)
    if average_cost is not None:
        least = min(instance.cost_bound for instance in table.instances)
        if average_cost > least:
            of = f"at most {least:.4g}, the bound of the costs, in {table.cost_unit}"
            raise bad("average_cost", average_cost, of)
        rounds = whole_number("budget / average_cost", int(budget / average_cost), 1, 2**30, "2**30")
        given = tuple(_with_constraint(policy, average_cost, rounds, table) for policy in given)
    concentration = _USUAL_CONCENTRATION if chosen.beta_concentration is None else float(chosen.beta_concentration)
    canonical = [Settings.of(policy, len(table.instances)) for policy in given]
    settings = _settings(canonical, hidden=() if rounds is None else OF_THE_CONSTRAINT)
    values = len(settings) * len(table.instances) * runs * shares.size
    if values > _MOST_VALUES:
        most = f"at most {_MOST_VALUES * runs // values} with so many settings, instances and marks"
        raise bad("runs", runs, most)
    work = len(settings) * runs * scaled / [instance.scaled_mean_cost.mean() for instance in table.instances]
    groups = tuple(
        Group(rows, arms_of(world, rows, concentration, rounds is not None))
        for rows in grouped([len(instance.arms) for instance in table.instances], work, len(given))
    )
    for group in groups:
        for own in canonical:  # each is checked against what it may know of its world
            Settings.of(own.of_instances(group.rows).policy, len(group.rows), group.environment.spec)
    plan = ComparisonPlan(
        source=None if isinstance(arms, ArmsTable) else os.fspath(arms),
        budget=budget,
        policies=tuple(own.policy for own in canonical),
        settings=settings,
        runs=runs,
        seed=int(chosen.seed),
        beta_concentration=concentration,
        last_pull=chosen.last_pull,
        shares=tuple(float(share) for share in shares),
        scaled_budgets=scaled,
        groups=groups,
        rounds=rounds,
        average_cost=average_cost,
        rule=rule,
        **world._asdict(),
    )
    if rule is not None:
        rule.check(plan)
    return plan


def _table(arms: str | os.PathLike[str] | ArmsTable, reading: Mapping[str, Any]) -> ArmsTable:
    if not isinstance(arms, ArmsTable):
        return read_arms(arms, **reading)
    given = [name for name, value in reading.items() if value not in (None, "published", (), [], False)]
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
    policies = plan.policies
    if plan.average_cost is not None and plan.rounds is not None:
        told = (_with_constraint(policy, plan.average_cost, plan.rounds, table) for policy in policies)
        policies = tuple(Settings.of(policy, len(table.instances)).policy for policy in told)
    return dataclasses.replace(
        plan, table=table, policies=policies, scaled_budgets=_scaled_budgets(plan.budget, table), rule=None
    )


_ROWS_AT_ONCE = 1 << 21  # (lane, mark) pairs in one call of simulate, about 90 bytes each
_TABLE_BYTES, _RUNS_AT_ONCE = 1 << 26, 250  # of a block, where every run has means of its own


def blocks_of(plan: ComparisonPlan, group: Group) -> list[range]:
    """Replicates in equal blocks, so that the exact accounts of one block fit in memory.

    Where means are drawn, every run is a row of the environment's tables, whose shape is part of the compiled program:
    so all blocks have one size, and the last one plays some runs of the one before again, to the same bits.
    """
    values = plan.runs * len(plan.settings) * len(group.rows) * len(plan.shares)
    count = max(1, -(-values // _ROWS_AT_ONCE))
    if plan.posterior is not None:
        row = sum(leaf[0].nbytes for leaf in jax.tree.leaves(group.environment))
        count = max(count, -(-plan.runs * len(group.rows) * row // _TABLE_BYTES), -(-plan.runs // _RUNS_AT_ONCE))
    size = -(-plan.runs // min(count, plan.runs))
    if plan.posterior is None:
        return [range(first, min(first + size, plan.runs)) for first in range(0, plan.runs, size)]
    return [range(min(first, plan.runs - size), min(first + size, plan.runs)) for first in range(0, plan.runs, size)]


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


def _settings(canonical: Sequence[Settings], hidden: Sequence[str]) -> dict[str, dict[str, Any]]:
    """For each setting's label, which uses the names of :data:`POLICIES`: its class and its parameters (float32)."""
    name_of = {made: name for name, made in {**POLICIES, **AVERAGE_COST_POLICIES}.items()}
    made: dict[str, dict[str, Any]] = {}
    for own in canonical:
        leaves = own.policy
        kind, name = type(leaves).__name__, name_of.get(type(leaves), type(leaves).__name__)
        of_constraint = {field.name: None for field in leaf_fields(type(leaves)) if field.name in hidden}
        named: Any = leaves
        named = dataclasses.replace(named, **of_constraint)  # a label leaves out what is None
        for setting in range(own.count):
            text = name + label(named, setting).removeprefix(kind)
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
