"""What a comparison plays, and until when: the options, what suits the file, and what fits into one compile."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import jax
import numpy as np

import jaxbandits.policies as p
from jaxbandits._engine.setup import mark_shares
from jaxbandits._numerics.knapsack_lp import best_basis
from jaxbandits.apps.comparison import worlds
from jaxbandits.apps.comparison.arms_file import read_arms
from jaxbandits.apps.comparison.arms_table import NO_EVIDENCE, ArmsTable, Instance, money
from jaxbandits.apps.comparison.worlds import (
    CountPosterior,
    Drawn,
    LogPosterior,
    Posterior,
    counts_conversions,
    run_arms,
)
from jaxbandits.constraints import LAST_PULLS
from jaxbandits.core import ticks
from jaxbandits.core.checks import InputError, bad, positive_number, whole_number
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import leaf_fields, walk
from jaxbandits.core.settings import Settings, label
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.environments.finite import FiniteArms, WithNullArm
from jaxbandits.statistics import ClearPairs

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

NOISES = ("bernoulli", "beta", "clicks", "empirical")
"""What a pull may look like, see :func:`~jaxbandits.compare`."""
UNCERTAINTIES = ("means", "given")
UNTIL = ("clear", "best")
CLAIMS = ("any", "most runs", "average")
OF_THE_CONSTRAINT = ("c", "horizon")
"""Parameters of policies that an average-cost constraint sets."""
READING = tuple(inspect.signature(read_arms).parameters)[1:]
"""The options that :func:`~jaxbandits.apps.comparison.read_arms` takes."""

_LOOKS, _LEAST, _MOST = 40, 20, 250  # looks at most, unless a batch would be smaller or larger than that
_RARE = 6 * math.log(10)  # −ln of the chance of more
_SLOPES = np.geomspace(1e-6, 8.0, 240)  # θ
_MOST_VALUES = 1 << 29  # float64 in one labelled result


@dataclasses.dataclass(frozen=True)
class StoppingRule:
    """When to stop."""

    what: str  # "clear" (every pair) or "best" (one setting against every other)
    claim: str = "any"  # which must be clear: "any", "most runs" or "average"
    max_runs: int = 1000  # at most

    def batch(self, runs: int) -> int:
        """Runs between two looks."""
        return min(runs, max(_LEAST, min(_MOST, -(-runs // _LOOKS))))

    def reached(self, pairs: ClearPairs) -> bool:
        """Whether that is clear which shall be."""
        clear = ahead(pairs, self.claim) | np.eye(pairs.most.shape[0], dtype=bool)
        return bool(clear.all(axis=1).any() if self.what == "best" else (clear | clear.T).all())


def ahead(pairs: ClearPairs, claim: str) -> np.ndarray:
    """Whether the row is clearly ahead of the column, ``bool[setting, setting]``."""
    most, average = (part.values > 0 for part in pairs)
    return {"any": most | average, "most runs": most, "average": average}[claim]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """What :func:`~jaxbandits.compare` takes beside arms, budget and policies; its docstring says what each means.

    The command's options have these names, and a plan is made of them: they are written down here only.
    """

    runs: int | None = None
    until: str | None = None
    max_runs: int | None = None
    claim: str = "any"
    seed: int = 0
    noise: str | None = None
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

    @property
    def rule(self) -> StoppingRule | None:
        """When to stop; None where the number of runs is fixed."""
        return None if self.until is None else StoppingRule(self.until, self.claim, int(self.max_runs or 1000))

    def check(self) -> None:
        """Raise an InputError for a value that no file can make right."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        for name, least in (("runs", 1), ("max_runs", 2), ("seed", 0)):
            if name in given:
                whole_number(name, given[name], least, 2**32 - 1, "2**32 - 1")
        for name in given.keys() & {"cost_cv", "average_cost"}:
            positive_number(name, given[name])
        known = {"last_pull": LAST_PULLS, "claim": CLAIMS, "until": UNTIL, "noise": NOISES}
        for name, names in (known | {"uncertainty": UNCERTAINTIES}).items():
            if name in given and given[name] not in names:
                raise bad(name, given[name], " or ".join(map(repr, names)))
        fixed, paced = self.until is None, self.average_cost is not None
        for name, unused, why in (
            ("max_runs", fixed and self.max_runs is not None, " without until"),
            ("claim", fixed and self.claim != "any", " without until"),
            ("runs", not fixed and self.runs is not None, " with until (max_runs says how many at most)"),
            ("last_pull", paced and self.last_pull != "counts", " with an average cost, which no pull exceeds"),
        ):
            if unused:
                raise bad(name, given[name], f"left out{why}")


_Function = TypeVar("_Function", bound=Callable[..., Any])


def takes_options(function: _Function) -> _Function:
    """Show every field of :class:`Options` in the signature of a function that takes ``**options``."""
    plain = inspect.signature(function)
    own = [x for x in plain.parameters.values() if x.kind is not x.VAR_KEYWORD]
    options = inspect.signature(Options).parameters.values()
    order = sorted([*options, *own], key=lambda x: x.kind)
    function.__signature__ = plain.replace(parameters=order)  # type: ignore[attr-defined]
    return function


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """Instances that run in one compile: their rows in the table, and their arms, padded to the widest."""

    rows: tuple[int, ...]
    environment: FiniteArms | WithNullArm


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class ComparisonPlan(Options):
    """A checked comparison, ready for :func:`~jaxbandits.apps.comparison.run_plan`.

    Made by :func:`~jaxbandits.apps.comparison.prepare`, whose arguments are attributes, with what suits the file where
    none were given.
    """

    table: ArmsTable  # with bounds that hold whatever is drawn
    source: str | None  # path of the arms file, None if a table was given
    budgets: tuple[float, ...]  # of each cost, in its unit; the first is that of the money
    policies: tuple[Policy, ...]  # canonical, for all instances; `told` puts in their c and horizon
    settings: Mapping[str, Mapping[str, Any]]  # by label, such as omega_ucb(rho=0.25): class and parameters
    runs: int
    noise: str
    shares: tuple[float, ...]  # of the budget, at which the regret is recorded
    uncertainty: str
    cost_cv: float  # coefficient of variation of the cost of one pull under the noise "clicks"
    cost_cv_from: str  # "days", "stated" or "rows"
    groups: tuple[Group, ...] = ()  # which instances share a compile
    posterior: Posterior | None = None  # what the means of each run are drawn from; None: those of the file
    why_given: str | None = None  # in that case the reason, if it is the file; None if it was asked for
    rounds: int | None = None  # of the average-cost constraint; None for a total budget
    splits: np.ndarray | None = None  # weights [setting, instance, arm], where fixed splits are played, not `policies`
    baselines: ComparisonPlan | None = None  # played in the same calls: one program compiles while another plays

    @property
    def together(self) -> tuple[ComparisonPlan, ...]:
        """This plan, and that of the baselines if they are played with it."""
        return (self,) if self.baselines is None else (self, self.baselines)

    @property
    def budget(self) -> float:
        """The budget of the money."""
        return self.budgets[0]

    @property
    def scaled_budgets(self) -> np.ndarray:
        """The budgets over each instance's bounds of the costs, ``[instance]`` or ``[instance, d]``."""
        bounds = np.array([instance.cost_bound for instance in self.table.instances])
        return (self.budgets if bounds.ndim > 1 else self.budget) / bounds

    def in_money(self, cost: np.ndarray) -> np.ndarray:
        """What a pull takes of the budget that it takes most of, in money: ``[…, K(, d)]`` to ``[…, K]``.

        Reward over this, times the budget, is what an arm brings if it alone is pulled. Of one cost it is that cost.
        """
        if len(self.budgets) == 1:
            return cost
        return (cost * (self.budget / np.array(self.budgets))).max(axis=-1)

    def pulls(self, instance: Instance) -> float:
        """How many pulls the budgets pay for, about, if spread over all arms."""
        return float(self.budget / self.in_money(instance.mean_cost.mean(axis=0, keepdims=True))[0])

    @property
    def scaled_average_costs(self) -> np.ndarray:
        """The average cost over the same, in whole ticks (which float32 holds), ``[instance]``."""
        bounds = np.array([instance.cost_bound for instance in self.table.instances])
        return ticks.to_units(np.maximum(ticks.floor_from_units((self.average_cost or 0.0) / bounds), 1))

    def told(self, rows: list[int], spec: FiniteSpec | None = None) -> list[Settings]:
        """The policies for these rows of the table, with the bound and the horizon of an average-cost constraint.

        They are checked against ``spec``; fixed splits get as many weights as there are arms by it.
        """
        if self.splits is not None:
            split: Policy = p.FixedSplit(self.splits[:, rows, : spec.arms if spec else None])
            return [Settings.of(split if self.rounds is None else p.Guarded(split), len(rows), spec)]
        values: dict[str, Any] = {}
        if self.rounds is not None:
            values = dict(zip(OF_THE_CONSTRAINT, (self.scaled_average_costs[None, rows], self.rounds), strict=True))
        found = []
        for policy in self.policies:
            own: Any = Settings(policy, 0).of_instances(rows).policy
            own = dataclasses.replace(own, **{f.name: values[f.name] for f in leaf_fields(own) if f.name in values})
            found.append(Settings.of(own, len(rows), spec))
        return found


@takes_options
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
        >>> list(plan.settings), len(plan.table.instances)
        (['omega_ucb(rho=0.25)', 'omega_ucb(rho=1)'], 4)
    """
    asked = Options(**options)
    asked.check()
    budgets = tuple(positive_number("budget", x) for x in (budget if isinstance(budget, (list, tuple)) else [budget]))
    shares = mark_shares(asked.marks)
    if isinstance(asked.marks, (int, np.integer)):
        shares = np.arange(1, asked.marks + 1) / asked.marks  # exactly i / n
    chosen = tuple(policies) if isinstance(policies, (list, tuple)) else (policies,)
    if not chosen or not all(isinstance(x, Policy) and issubclass(FiniteSpec, x.plays) for x in chosen):
        raise bad("policies", policies, "a policy or a list of them: instances for finitely many arms, as OmegaUCB()")
    reading = {name: getattr(asked, name) for name in READING}
    table = arms if isinstance(arms, ArmsTable) else read_arms(arms, **reading)
    if table is arms and (
        given := [x for x, value in reading.items() if value not in (None, "published", (), [], False)]
    ):
        raise InputError(f"{', '.join(given)}: given with an ArmsTable; give them to read_arms instead")
    world = _resolved(table, asked)
    table, rounds, units = world["table"], None, list(table.spent_units.values())
    if len(budgets) != len(units):
        raise bad(
            "budget", list(budgets), f"{len(units)} of them: one for each cost of the file ({' and '.join(units)})"
        )
    bounds = np.array([np.ravel(instance.cost_bound) for instance in table.instances])
    for given_budget, least, most in zip(budgets, 2.0**-24 * bounds.max(0), 2.0**30 * bounds.min(0), strict=True):
        if not least <= given_budget <= most:
            may_be = f"from {least:.3g} to {most:.3g} (2**-24 to 2**30 times the bound of the costs)"
            raise bad("budget", given_budget, may_be)
    if asked.average_cost is not None:
        if len(budgets) > 1:
            raise bad("average_cost", asked.average_cost, "left out: with two costs each has a budget for all rounds")
        if asked.average_cost > bounds.min():
            of = f"at most {bounds.min():.4g}, the bound of the costs, in {table.cost_unit}"
            raise bad("average_cost", asked.average_cost, of)
        rounds = whole_number("budget / average_cost", int(budgets[0] / asked.average_cost), 1, 2**30, "2**30")
    known: dict[str, Any] = {
        "source": None if isinstance(arms, ArmsTable) else os.fspath(arms),
        "budgets": budgets,
        "policies": tuple(Settings.of(policy, len(table.instances)).policy for policy in chosen),
        "settings": {},
        "runs": int(asked.runs or asked.max_runs or 1000),
        "seed": int(asked.seed),
        "shares": tuple(shares.tolist()),
        "rounds": rounds,
    }
    plan = ComparisonPlan(**vars(asked) | world | known)
    plan = dataclasses.replace(plan, settings=_settings(plan))
    values = len(plan.settings) * len(table.instances) * plan.runs * shares.size
    if values > _MOST_VALUES:
        most = _MOST_VALUES * plan.runs // values
        raise bad("runs", plan.runs, f"at most {most} with so many settings, instances and marks")
    pulls = np.array([plan.pulls(instance) for instance in table.instances])
    widths = [len(instance.arms) for instance in table.instances]
    groups = grouped(widths, len(plan.settings) * plan.runs * pulls, len(chosen))
    plan = dataclasses.replace(plan, groups=tuple(Group(rows, world_of(plan, rows)) for rows in groups))
    for group in plan.groups:
        plan.told(list(group.rows), group.environment.spec)
    if plan.until is not None:
        if len(plan.settings) < 2:
            raise bad("until", plan.until, "left out with one setting: there is nothing to compare it with")
        most_earned(plan)  # there may be no bound of it
    return plan


def _settings(plan: ComparisonPlan) -> dict[str, dict[str, Any]]:
    """For each setting's label, which uses the names of :data:`POLICIES`: its class and its parameters (float32)."""
    hidden = () if plan.rounds is None else OF_THE_CONSTRAINT
    named = (POLICIES, AVERAGE_COST_POLICIES, TWO_COST_POLICIES)
    name_of = {kind: name for policies in named for name, kind in policies.items()}
    made: dict[str, dict[str, Any]] = {}
    for own in plan.told(list(range(len(plan.table.instances)))):
        policy: Any = own.policy
        kind = type(policy).__name__
        # a label leaves out what is None
        shown = dataclasses.replace(policy, **{f.name: None for f in leaf_fields(policy) if f.name in hidden})
        for setting in range(own.count):
            text = name_of.get(type(policy), kind) + label(shown, setting).removeprefix(kind)
            if text in made:
                raise bad("policies", text, "given once: a setting with this label is already there")
            values = {leaf.name: leaf.value[setting].astype(str).astype(float) for leaf in walk(policy)}
            each = {name: (x[0] if x.shape[0] == 1 else x).tolist() for name, x in values.items()}
            made[text] = {"policy": kind, "parameters": each}
    return made


# --- What is played where the user says nothing


def _resolved(table: ArmsTable, asked: Options) -> dict[str, Any]:
    """What the user said, and for the rest what suits the file, as fields of :class:`ComparisonPlan`.

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
    known = {"table": table, "noise": noise, "posterior": posterior, "uncertainty": "means" if drawn else "given"}
    return known | {"why_given": why_given, "cost_cv": cv, "cost_cv_from": cv_from}


def world_of(plan: ComparisonPlan, rows: Sequence[int], runs: Sequence[int] = (0,)) -> FiniteArms | WithNullArm:
    """The arms of these instances, a row an instance; where means are drawn, a row an instance in a run."""
    instances = [plan.table.instances[row] for row in rows]
    drawn = [Drawn(instance.mean_reward[None], instance.mean_cost[None]) for instance in instances]
    if plan.posterior is not None:
        drawn = [plan.posterior.instances[row].draw(plan.seed, row, runs) for row in rows]
    if plan.posterior is not None or plan.noise == "clicks":
        made = run_arms(instances, drawn, plan.noise, plan.cost_cv)
    else:
        made = worlds.finite_arms(instances, plan.noise)
    return made if plan.rounds is None else WithNullArm(made)


# --- What is done without a learner: the split seen in the file, an even split, all on the best arm of the file


SEEN, EVEN, BEST = "the split seen in the file", "an even split", "all on the file's best"
MIXTURE = "the file's best mixture"


def file_means(plan: ComparisonPlan) -> list[tuple[np.ndarray, np.ndarray]]:
    """Mean reward and cost per pull of each instance's arms by the file, ``[K(, d)]``: pooled, where they are drawn."""
    if plan.posterior is None:
        return [(instance.mean_reward, instance.mean_cost) for instance in plan.table.instances]
    return [found.means() for found in plan.posterior.instances]


def best_by_file(plan: ComparisonPlan) -> list[int]:
    """The arm with the best ratio by the file, of each instance: known beforehand, the same in every run."""
    return [int(np.argmax(reward / plan.in_money(cost))) for reward, cost in file_means(plan)]


def baselines_plan(plan: ComparisonPlan) -> ComparisonPlan:
    """The same comparison, played by fixed splits: those of them that the file knows.

    Weights are shares of pulls: those seen in the file; 1/cost for equal money on average; 1 for the best arm alone;
    with two costs, of which one arm alone may leave much, the mixture that the fluid program finds.
    """
    instances, means, best = plan.table.instances, file_means(plan), best_by_file(plan)
    clicks = [(instance.evidence or NO_EVIDENCE).clicks for instance in instances]
    made = {SEEN: [x / x.max() for x in clicks if x is not None and x.sum() > 0]}
    made[EVEN] = [cost.min() / cost for cost in (plan.in_money(cost) for _, cost in means)]
    made[BEST] = [np.eye(len(x.arms))[at] for x, at in zip(instances, best, strict=True)]
    if len(plan.budgets) > 1:
        made[MIXTURE] = [best_basis(reward, cost.T, np.array(plan.budgets))[1] for reward, cost in means]
    made = {name: rows for name, rows in made.items() if len(rows) == len(instances)}
    splits = np.zeros((len(made), len(instances), max(len(instance.arms) for instance in instances)))
    for split, rows in zip(splits, made.values(), strict=True):
        for into, weights in zip(split, rows, strict=True):
            into[: len(weights)] = weights
    return dataclasses.replace(
        plan,
        policies=plan.policies[:1],  # one task: a policy whose settings the splits are
        settings={name: {"policy": "FixedSplit", "parameters": {}} for name in made},
        splits=splits,
        baselines=None,
        until=None,
    )


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
    count = 1
    for group in plan.groups:
        rows = plan.runs * len(group.rows)
        settings = sum(len(each.settings) for each in plan.together)
        count = max(count, -(-rows * settings * len(plan.shares) // _ROWS_AT_ONCE))
        if plan.posterior is not None:
            row = sum(leaf[0].nbytes for leaf in jax.tree.leaves(group.environment))
            count = max(count, -(-rows * row // _TABLE_BYTES), -(-plan.runs // _RUNS_AT_ONCE))
    return -(-plan.runs // min(count, plan.runs))


# --- What a run can earn, which a stopping rule must know


def most_earned(plan: ComparisonPlan) -> float:
    """No run earns more than this, averaged over the instances, in the file's unit of reward, but once in a million.

    With independent rewards and costs in [0, 1] of their bounds, of means r_k and c_k, for every θ > 0 there is the
    least κ with (1 + r_k (e^θ − 1)) (1 − c_k (1 − e^−κ)) ≤ 1 for all arms. Then exp(θ R − κ C) is a supermartingale
    under every policy, R and C being what was earned and spent so far. So P(R > b) ≤ ε for b = (κ C + ln(1/ε)) / θ, C
    the budget and one cost more; the best θ is taken. Where the two depend on each other, as in rows of a log, the root
    of that is one (Cauchy and Schwarz), hence 2 ln(1/ε). Over T rounds it is C = T and κ = max_k ln(1 + r_k (e^θ − 1)).
    Where means are drawn, the largest reward and the least cost that may be drawn are taken; of a log, whose rows have
    weights of their own in each run, the best ratio of any row.

    Raises:
        InputError: an arm may earn at no cost, so that there is no bound.
    """
    bounds = [_most_of(plan, row) for row in range(len(plan.table.instances))]
    for instance, bound in zip(plan.table.instances, bounds, strict=True):
        if not math.isfinite(bound):
            what = "a row" if plan.table.kind == "log" else "an arm"
            raise InputError(f"instance {instance.name!r}: {what} earns at no cost, so that no bound of a run is known")
    return float(np.mean(bounds))


def _most_of(plan: ComparisonPlan, row: int) -> float:
    """The bound of one instance."""
    instance = plan.table.instances[row]
    posterior = None if plan.posterior is None else plan.posterior.instances[row]
    # Of several costs the money alone bounds what is earned.
    spent, rare = float(money(plan.scaled_budgets)[row]) + 1, _RARE * (1 + (plan.noise == "empirical"))
    reward, cost = instance.scaled_mean_reward, money(instance.scaled_mean_cost)
    if isinstance(posterior, CountPosterior):
        rewards, costs, _ = posterior.extremes()
        reward, cost = np.minimum(rewards / instance.reward_bound, 1), costs / instance.cost_bound
    with np.errstate(divide="ignore", invalid="ignore"):
        if plan.rounds is not None:
            reward = np.ones(1) if isinstance(posterior, LogPosterior) else reward
            kappa, spent, rare = np.log1p(reward.max() * np.expm1(_SLOPES)), float(plan.rounds), _RARE
        elif isinstance(posterior, LogPosterior):
            best = max(np.nan_to_num(r / money(c), nan=0.0, posinf=np.inf).max() for r, c in posterior.rows)
            return float(best) * spent * float(np.ravel(instance.cost_bound)[0])
        else:  # no κ is enough where 1 or more is needed
            needed = (1 - 1 / (1 + reward * np.expm1(_SLOPES)[:, None])) / np.maximum(cost, 1e-300)
            kappa = np.where(needed < 1, -np.log1p(-needed), np.inf).max(axis=1)
    return instance.reward_bound * float(((kappa * spent + rare) / _SLOPES).min())
