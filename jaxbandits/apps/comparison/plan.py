"""What a comparison plays: the file, its worlds, what may be spent, the policies, and the rule to stop."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

import jaxbandits.policies as p
from jaxbandits._engine.setup import mark_shares
from jaxbandits._numerics.knapsack_lp import best_basis
from jaxbandits.apps.comparison import worlds
from jaxbandits.apps.comparison.arms_file import read_arms
from jaxbandits.apps.comparison.arms_table import NO_EVIDENCE, ArmsTable, Instance
from jaxbandits.apps.comparison.options import Options
from jaxbandits.apps.comparison.stopping import StoppingRule, most_earned
from jaxbandits.apps.comparison.worlds import Drawn, Posterior, counts_conversions, run_arms
from jaxbandits.constraints import AverageCost, TotalBudget
from jaxbandits.core import ticks
from jaxbandits.core.checks import InputError, bad, positive_number, whole_number
from jaxbandits.core.protocol import Constraint, Policy
from jaxbandits.core.pytrees import leaf_fields
from jaxbandits.core.settings import Settings
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

TWO_COST_POLICIES: Mapping[str, type[Policy]] = {
    "pd_bwk": p.PrimalDualBwK,
    "ucb_bwk": p.UCBBwK,
    "thompson_lp": p.ThompsonLP,
    "epsilon_first": p.EpsilonFirstLP,
}
"""For a file of two costs, each with a budget."""

OF_THE_CONSTRAINT = ("c", "horizon")
"""Parameters of policies that an average-cost constraint sets."""

_MOST_VALUES = 1 << 29  # float64 in one labelled result


# --- The parts of a plan


@dataclasses.dataclass(frozen=True, eq=False)
class Spending:
    """What may be spent of each instance's money, in the file's units, and where that is recorded."""

    budgets: tuple[float, ...]  # of each cost; the first is that of the money
    last_pull: str
    shares: tuple[float, ...]  # of the budget, at which the regret is recorded
    average_cost: float | None = None  # a round; None for a total budget
    rounds: int | None = None  # of an average-cost constraint

    @property
    def budget(self) -> float:
        """The budget of the money."""
        return self.budgets[0]

    def part(self, numerator: int, denominator: int) -> Spending:
        """A smaller budget, to be spent at the same pace."""
        rounds = self.rounds and max(1, self.rounds * numerator // denominator)
        budgets = tuple(budget * numerator / denominator for budget in self.budgets)
        return dataclasses.replace(self, budgets=budgets, rounds=rounds)

    def in_money(self, cost: np.ndarray) -> np.ndarray:
        """What a pull takes of the budget that it takes most of, in money: ``[…, K(, d)]`` to ``[…, K]``.

        Reward over this, times the budget, is what an arm brings if it alone is pulled. Of one cost it is that cost.
        """
        if len(self.budgets) == 1:
            return cost
        return (cost * (self.budget / np.array(self.budgets))).max(axis=-1)

    def pulls(self, instance: Instance) -> float:
        """How many pulls the budgets pay for, about, if spread over all arms."""
        cost = instance.mean_cost.mean(axis=0, keepdims=True)
        return float(self.budget / self.in_money(cost)[0])

    def scaled_budgets(self, instances: Sequence[Instance]) -> np.ndarray:
        """The budgets over each instance's bounds of the costs, ``[instance]`` or ``[instance, d]``."""
        bounds = np.array([instance.cost_bound for instance in instances])
        return (self.budgets if bounds.ndim > 1 else self.budget) / bounds

    def scaled_average_costs(self, instances: Sequence[Instance]) -> np.ndarray:
        """The average cost over the same, in whole ticks (which float32 holds), ``[instance]``."""
        bounds = np.array([instance.cost_bound for instance in instances])
        whole = ticks.floor_from_units((self.average_cost or 0.0) / bounds)
        return ticks.to_units(np.maximum(whole, 1))

    def constraint(self, instances: Sequence[Instance]) -> Constraint:
        """The accountant of these instances, whose money is in units of their bounds."""
        if self.rounds is not None:
            return AverageCost(self.scaled_average_costs(instances), self.rounds)
        return TotalBudget(self.scaled_budgets(instances), last_pull=self.last_pull)


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """Instances that run in one compile: their rows in the table, and their arms, padded to the widest."""

    rows: tuple[int, ...]
    environment: FiniteArms | WithNullArm


@dataclasses.dataclass(frozen=True, eq=False)
class Worlds:
    """Where the policies play: what a pull looks like, and whose means it has."""

    noise: str
    seed: int
    posterior: Posterior | None  # what the means of each run are drawn from; None: those of the file
    why_given: str | None  # in that case the reason, if it is the file; None if it was asked for
    cost_cv: float  # coefficient of variation of the cost of one pull under the noise "clicks"
    cost_cv_from: str  # "days", "stated" or "rows"
    null_arm: bool  # a round may be sat out
    groups: tuple[Group, ...] = ()  # which instances share a compile

    @property
    def uncertainty(self) -> str:
        """``"means"`` that are drawn for each run, or ``"given"`` ones."""
        return "given" if self.posterior is None else "means"

    def arms(self, table: ArmsTable, rows: Sequence[int], runs: Sequence[int] = (0,)) -> FiniteArms | WithNullArm:
        """The arms of these instances, a row an instance; where means are drawn, a row an instance in a run."""
        instances = [table.instances[row] for row in rows]
        if self.posterior is not None:
            each = [self.posterior.instances[row].draw(self.seed, row, runs) for row in rows]
            arms = run_arms(instances, each, self.noise, self.cost_cv)
        elif self.noise == "clicks":
            each = [Drawn(one.mean_reward[None], one.mean_cost[None]) for one in instances]
            arms = run_arms(instances, each, self.noise, self.cost_cv)
        else:
            arms = worlds.finite_arms(instances, self.noise)
        return WithNullArm(arms) if self.null_arm else arms

    def grouped(self, table: ArmsTable, rows: Sequence[Sequence[int]]) -> Worlds:
        """The same, with the arms of groups of instances."""
        groups = tuple(Group(tuple(of), self.arms(table, of)) for of in rows)
        return dataclasses.replace(self, groups=groups)


def histories(table: ArmsTable, rows: Sequence[int], width: int) -> p.History:
    """What the file has counted of these instances' arms, ``[instance, K]``, over the bounds of the table."""
    pulls, reward, cost = np.zeros((3, len(table.instances), width))
    for row in set(rows):
        instance, evidence = table.instances[row], table.instances[row].evidence or NO_EVIDENCE
        assert evidence.clicks is not None and evidence.value is not None and evidence.spent is not None
        at: Any = row, slice(len(instance.arms))
        pulls[at] = np.rint(evidence.clicks)
        reward[at], cost[at] = evidence.value / instance.reward_bound, evidence.spent / np.asarray(instance.cost_bound)
    # A sum may be above its bound by what a division rounds.
    reward, cost = (np.minimum(x, pulls) for x in (reward, cost))
    return p.History.of(*(x[list(rows)] for x in (pulls, reward, cost)))


@dataclasses.dataclass(frozen=True, eq=False)
class Played:
    """The policies with their settings, for all instances of the file."""

    policies: tuple[Settings, ...]
    records: Mapping[str, Mapping[str, Any]]  # of each setting's label: its class and parameters
    starts: tuple[str, ...] = ()  # of each policy: "file" or "nothing"; empty: all from nothing

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the settings, such as ``omega_ucb(rho=0.25)``."""
        return tuple(self.records)

    def of_instances(self, rows: Sequence[int], spec: FiniteSpec, table: ArmsTable) -> list[Settings]:
        """The policies for these rows of the table, whose bounds are the units of their history."""
        found = [settings.of_instances(rows, spec.arms) for settings in self.policies]
        if "file" not in self.starts:
            return found
        history = histories(table, rows, spec.arms)
        starts = zip(found, self.starts, strict=True)
        return [_started(settings, history) if start == "file" else settings for settings, start in starts]

    def from_nothing(self) -> Played:
        """Those that start from the file, as they would be without it."""
        each = list(zip(self.policies, self.starts, strict=True)) if self.starts else []
        labels, records = iter(self.labels), dict[str, Mapping[str, Any]]()
        for settings, start in each:
            own = [next(labels) for _ in range(settings.count)]
            records |= {f"{name} {FROM_NOTHING}": self.records[name] for name in own if start == "file"}
        return Played(tuple(settings for settings, start in each if start == "file"), records)

    def only(self, setting: int) -> Played:
        """One of the settings."""
        each = [(policy, n) for policy in self.policies for n in range(policy.count)]
        (policy, n), name = each[setting], self.labels[setting]
        starts = tuple(start for start, of in zip(self.starts, self.policies, strict=False) if of is policy)
        return Played((policy.only(n),), {name: self.records[name]}, starts)

    def with_horizon(self, rounds: int | None) -> Played:
        """The same for another number of rounds of an average-cost constraint."""
        if rounds is None:
            return self
        return dataclasses.replace(self, policies=tuple(_with_horizon(each, rounds) for each in self.policies))


def _started(settings: Settings, history: p.History) -> Settings:
    """The settings with a history ``[1, instance, K]``."""
    every = jax.tree.map(lambda x: np.repeat(x, settings.count, axis=0), history)
    policy = p.experienced(settings.policy, every)
    hidden = ("history", "earlier")
    return dataclasses.replace(settings, policy=policy, name=f"{settings.name} from the file", hidden=hidden)


def _with_horizon(settings: Settings, rounds: int) -> Settings:
    policy: Any = settings.policy
    if "horizon" not in (field.name for field in leaf_fields(policy)):
        return settings
    horizon = np.full_like(policy.horizon, rounds)
    return dataclasses.replace(settings, policy=dataclasses.replace(policy, horizon=horizon))


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class ComparisonPlan:
    """A checked comparison, ready for :func:`~jaxbandits.apps.comparison.run_plan`.

    Made by :func:`~jaxbandits.apps.comparison.prepare`.

    Attributes:
        table: the file, with bounds that hold whatever is drawn.
        worlds: where the policies play.
        spending: what they may spend.
        played: the policies.
        runs: how many are played, at most.
        rule: when to stop before; None: never.
        baselines: fixed splits that are played in the same calls: one program compiles while another plays.
    """

    table: ArmsTable
    worlds: Worlds
    spending: Spending
    played: Played
    runs: int
    rule: StoppingRule | None = None
    baselines: Played | None = None

    @property
    def together(self) -> tuple[Played, ...]:
        """The policies, and the baselines if they are played with them."""
        return (self.played,) if self.baselines is None else (self.played, self.baselines)

    def alone(self, **parts: Any) -> ComparisonPlan:
        """Another comparison with some of the parts of this one, of as many runs as are asked for."""
        return dataclasses.replace(self, **{"rule": None, "baselines": None, **parts})


# --- From what the user wrote to a plan


def prepare(
    arms: str | os.PathLike[str] | ArmsTable,
    budget: float | Sequence[float],
    policies: Policy | Sequence[Policy],
    **options: Any,
) -> ComparisonPlan:
    """Read, check and lay out a comparison without compiling anything; what :func:`~jaxbandits.compare` then runs.

    Args and errors are those of :func:`~jaxbandits.compare`.

    Example:
        >>> import jaxbandits as jb
        >>> from jaxbandits.apps.comparison import prepare
        >>> plan = prepare("jaxbandits/data/sample_ads.csv", 300.0, jb.policies.OmegaUCB(rho=[0.25, 1.0]), runs=8)
        >>> plan.played.labels, len(plan.table.instances)
        (('omega_ucb(rho=0.25)', 'omega_ucb(rho=1)'), 4)
    """
    asked = Options(**options)
    asked.check()
    amounts = budget if isinstance(budget, (list, tuple)) else [budget]
    budgets = tuple(positive_number("budget", amount) for amount in amounts)
    shares = mark_shares(asked.marks)
    if isinstance(asked.marks, (int, np.integer)):
        shares = np.arange(1, asked.marks + 1) / asked.marks  # exactly i / n
    chosen = tuple(policies) if isinstance(policies, (list, tuple)) else (policies,)
    if not chosen or not all(isinstance(x, Policy) and issubclass(FiniteSpec, x.plays) for x in chosen):
        must = "a policy or a list of them: instances for finitely many arms, as OmegaUCB()"
        raise bad("policies", policies, must)
    table, world = _table_and_worlds(_read(arms, asked), asked)
    spending = _spending(table, budgets, tuple(shares.tolist()), asked)
    played = _played(chosen, table, spending)
    if asked.start == "file" and why_no_history(table, spending) is None:
        starts = tuple("file" if _learns_by_sums(settings, table) else "nothing" for settings in played.policies)
        played = dataclasses.replace(played, starts=starts)
    runs = int(asked.runs or asked.max_runs or 1000)
    values = len(played.labels) * len(table.instances) * runs * shares.size
    if values > _MOST_VALUES:
        most = _MOST_VALUES * runs // values
        raise bad("runs", runs, f"at most {most} with so many settings, instances and marks")
    pulls = np.array([spending.pulls(instance) for instance in table.instances])
    widths = [len(instance.arms) for instance in table.instances]
    groups = grouped(widths, len(played.labels) * runs * pulls, len(chosen))
    world = world.grouped(table, groups)
    for group in world.groups:
        spec = group.environment.spec
        for settings in played.of_instances(group.rows, spec, table):
            Settings.of(settings, len(group.rows), spec)
    rule = asked.rule
    plan = ComparisonPlan(table=table, worlds=world, spending=spending, played=played, runs=runs, rule=rule)
    if rule is not None:
        if len(played.labels) < 2:
            must = "left out with one setting: there is nothing to compare it with"
            raise bad("until", rule.what, must)
        most_earned(plan)  # there may be no bound of it
    return plan


def _read(arms: str | os.PathLike[str] | ArmsTable, asked: Options) -> ArmsTable:
    if not isinstance(arms, ArmsTable):
        return read_arms(arms, **asked.reading)
    usual: tuple[Any, ...] = (None, "published", (), [], False)
    if idle := [name for name, value in asked.reading.items() if value not in usual]:
        raise InputError(f"{', '.join(idle)}: given with an ArmsTable; give them to read_arms instead")
    return dataclasses.replace(arms, path=None)


def _table_and_worlds(table: ArmsTable, asked: Options) -> tuple[ArmsTable, Worlds]:
    """What is drawn, where the user says nothing by what suits the file; and the table, with bounds that hold for it.

    Raises:
        InputError: what the file does not allow; a bound of the user below what may be drawn.
    """
    why_given, cost_cv = None, asked.cost_cv
    if asked.uncertainty != "given":
        why_given = worlds.why_no_posterior(table)
        if why_given is None and asked.noise == "beta":
            why_given = "Beta laws are tables, which cannot be made anew for every run"
        if why_given is not None and asked.uncertainty == "means":
            raise InputError(f"uncertainty: 'means' given; it must be 'given' for this file: {why_given}")
    drawn = asked.uncertainty != "given" and why_given is None
    posterior = worlds.posterior_of(table, cost_cv) if drawn else None
    whole = counts_conversions(table) and table.kind != "log"
    usual = "empirical" if table.kind == "log" else "clicks" if drawn and whole else "bernoulli"
    noise = asked.noise or usual
    if noise == "clicks" and (not whole or table.cost2_unit):
        raise bad("noise", noise, "'bernoulli' for this file: only counts of conversions say what one click may bring")
    if noise == "empirical" and any(instance.log is None for instance in table.instances):
        raise bad("noise", noise, f"'bernoulli' or 'beta' for a file of {table.kind}: only a log has rows to resample")
    if cost_cv is not None and (table.kind == "log" or not (drawn or noise == "clicks")):
        raise bad("cost_cv", cost_cv, "left out: only files of counts need it, for clicks or for drawn means")
    cv, cv_from = worlds.cost_cv_of(table, posterior, cost_cv)
    if drawn or noise == "clicks":
        table = worlds.with_bounds(table, noise, posterior, cv, asked.reward_max, asked.cost_max)
    null_arm = asked.average_cost is not None
    return table, Worlds(noise, int(asked.seed), posterior, why_given, cv, cv_from, null_arm)


def _spending(table: ArmsTable, budgets: tuple[float, ...], shares: tuple[float, ...], asked: Options) -> Spending:
    """Budgets that the file has costs for, and that can be counted in ticks of their bounds."""
    units, average_cost = list(table.spent_units.values()), asked.average_cost
    if len(budgets) != len(units):
        must = f"{len(units)} of them: one for each cost of the file ({' and '.join(units)})"
        raise bad("budget", list(budgets), must)
    bounds = np.array([np.ravel(instance.cost_bound) for instance in table.instances])
    for amount, least, most in zip(budgets, 2.0**-24 * bounds.max(0), 2.0**30 * bounds.min(0), strict=True):
        if not least <= amount <= most:
            must = f"from {least:.3g} to {most:.3g} (2**-24 to 2**30 times the bound of the costs)"
            raise bad("budget", amount, must)
    if average_cost is None:
        return Spending(budgets, asked.last_pull, shares)
    if len(budgets) > 1:
        must = "left out: with two costs each has a budget for all rounds"
        raise bad("average_cost", average_cost, must)
    if average_cost > bounds.min():
        must = f"at most {bounds.min():.4g}, the bound of the costs, in {table.cost_unit}"
        raise bad("average_cost", average_cost, must)
    count = int(budgets[0] / average_cost)
    rounds = whole_number("budget / average_cost", count, 1, 2**30, "2**30")
    return Spending(budgets, asked.last_pull, shares, average_cost, rounds)


def why_no_history(table: ArmsTable, spending: Spending) -> str | None:
    """Why policies cannot start from what the file has counted; None if they can."""
    if any((instance.evidence or NO_EVIDENCE).clicks is None for instance in table.instances):
        return "it has means only"
    if len(spending.budgets) > 1:
        return "it has two costs"
    return None if spending.rounds is None else "under an average cost rounds may be sat out"


def _learns_by_sums(settings: Settings, table: ArmsTable) -> bool:
    """Whether a policy can start from a history."""
    width = max(len(instance.arms) for instance in table.instances)
    rows = range(len(table.instances))
    try:
        started = _started(settings.of_instances(rows, width), histories(table, rows, width))
        Settings.of(started, len(table.instances), FiniteSpec(width))
    except InputError:
        return False
    return True


def _played(policies: Sequence[Policy], table: ArmsTable, spending: Spending) -> Played:
    """The policies, called as in :data:`POLICIES`, with the bound and the horizon of an average-cost constraint."""
    named = (POLICIES, AVERAGE_COST_POLICIES, TWO_COST_POLICIES)
    name_of = {kind: name for tables in named for name, kind in tables.items()}
    values: dict[str, Any] = {}
    if spending.rounds is not None:
        bounds = spending.scaled_average_costs(table.instances)
        values = dict(zip(OF_THE_CONSTRAINT, (bounds[None], spending.rounds), strict=True))
    chosen, records = list[Settings](), dict[str, dict[str, Any]]()
    for policy in policies:
        own = {f.name: values[f.name] for f in leaf_fields(policy) if f.name in values}
        settings = Settings.of(dataclasses.replace(policy, **own), len(table.instances))  # type: ignore[type-var]
        name = name_of.get(type(policy), "")
        settings = dataclasses.replace(settings, name=name, hidden=tuple(values))
        for number, label in enumerate(settings.labels):
            if label in records:
                raise bad("policies", label, "given once: a setting with this label is already there")
            records[label] = settings.record(number)
        chosen.append(settings)
    return Played(tuple(chosen), records)


# --- What is done without a learner: the split seen in the file, an even split, all on the best arm of the file


SEEN, EVEN, BEST = "the split seen in the file", "an even split", "all on the file's best"
MIXTURE = "the file's best mixture"
FROM_NOTHING = "(from nothing)"


def file_means(table: ArmsTable, world: Worlds) -> list[tuple[np.ndarray, np.ndarray]]:
    """Mean reward and cost per pull of each instance's arms by the file, ``[K(, d)]``: pooled, where they are drawn."""
    if world.posterior is None:
        return [(instance.mean_reward, instance.mean_cost) for instance in table.instances]
    return [each.means() for each in world.posterior.instances]


def best_by_file(table: ArmsTable, world: Worlds, spending: Spending) -> list[int]:
    """The arm with the best ratio by the file, of each instance: known beforehand, the same in every run."""
    means = file_means(table, world)
    return [int(np.argmax(reward / spending.in_money(cost))) for reward, cost in means]


def baselines_of(table: ArmsTable, world: Worlds, spending: Spending, played: Played) -> Played:
    """What the same comparison is held against: those fixed splits that the file knows, and policies without the file.

    Weights are shares of pulls: those seen in the file; 1/cost for equal money on average; 1 for the best arm alone;
    with two costs, of which one arm alone may leave much, the mixture that the fluid program finds.
    """
    instances, means, best = table.instances, file_means(table, world), best_by_file(table, world, spending)
    clicks = [(instance.evidence or NO_EVIDENCE).clicks for instance in instances]
    splits = {SEEN: [x / x.max() for x in clicks if x is not None and x.sum() > 0]}
    splits[EVEN] = [x.min() / x for x in (spending.in_money(cost) for _, cost in means)]
    splits[BEST] = [np.eye(len(x.arms))[at] for x, at in zip(instances, best, strict=True)]
    if len(spending.budgets) > 1:
        budgets = np.array(spending.budgets)
        splits[MIXTURE] = [best_basis(reward, cost.T, budgets)[1] for reward, cost in means]
    splits = {name: rows for name, rows in splits.items() if len(rows) == len(instances)}
    width = max(len(instance.arms) for instance in instances)
    weights = np.zeros((len(splits), len(instances), width))
    for split, rows in zip(weights, splits.values(), strict=True):
        for into, own in zip(split, rows, strict=True):
            into[: len(own)] = own
    fixed: Policy = p.FixedSplit(weights)
    settings = Settings.of(fixed if spending.rounds is None else p.Guarded(fixed), len(instances))
    records = {name: {"policy": "FixedSplit", "parameters": {}} for name in splits}
    bare = played.from_nothing()
    return Played((settings, *bare.policies), {**records, **bare.records})


# --- What fits into one compile, and into one call


# Seconds, measured on two CPU cores. They decide how instances are grouped, never what comes out.
_COMPILE, _ARM_ROUND = 1.5, 5e-9
_ROWS_AT_ONCE = 1 << 21  # (lane, mark) pairs in one call of simulate, about 90 bytes each
_TABLE_BYTES, _RUNS_AT_ONCE = 1 << 26, 250  # of a block, where every run has means of its own


def grouped(widths: Sequence[int], work: np.ndarray, policies: int) -> list[tuple[int, ...]]:
    """Rows of the table in groups of similar width, widest first, with least time for compiles and for padding arms.

    A group costs one compile per policy, and every round of its instances (``work``) the group's largest width.
    """
    order = sorted(range(len(widths)), key=lambda row: (widths[row], row))
    levels = [list(rows) for _, rows in itertools.groupby(order, key=lambda row: widths[row])]
    rounds = np.cumsum([0.0, *(float(sum(work[row] for row in level)) for level in levels)])
    # the least time for the first n levels, and where the last of their groups begins
    best, cut = np.zeros(len(levels) + 1), np.zeros(len(levels) + 1, int)
    for n in range(1, len(levels) + 1):
        times = best[:n] + policies * _COMPILE + _ARM_ROUND * widths[levels[n - 1][0]] * (rounds[n] - rounds[:n])
        best[n], cut[n] = times.min(), times.argmin()
    groups, n = [], len(levels)
    while n:
        groups.append(tuple(sorted(row for level in levels[cut[n] : n] for row in level)))
        n = cut[n]
    return groups


def block_size(plan: ComparisonPlan) -> int:
    """How many runs are played in one call, so that their exact accounts fit in memory.

    Where means are drawn, every run is a row of the environment's tables, whose shape is part of the compiled program:
    so all blocks have one size, and the last one plays some runs of the one before again, to the same bits.
    """
    count, settings = 1, sum(len(each.labels) for each in plan.together)
    for group in plan.worlds.groups:
        rows = plan.runs * len(group.rows)
        count = max(count, -(-rows * settings * len(plan.spending.shares) // _ROWS_AT_ONCE))
        if plan.worlds.posterior is not None:
            row = sum(leaf[0].nbytes for leaf in jax.tree.leaves(group.environment))
            count = max(count, -(-rows * row // _TABLE_BYTES), -(-plan.runs // _RUNS_AT_ONCE))
    return -(-plan.runs // min(count, plan.runs))
