"""What a comparison plays: the file, its worlds, what may be spent, the policies, and the rule to
stop.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

import jaxbandits.policies as p
from jaxbandits.apps.comparison import names, worlds
from jaxbandits.apps.comparison.arms_file import read_arms
from jaxbandits.apps.comparison.arms_table import ArmsTable, Evidence, Instance
from jaxbandits.apps.comparison.request import Request
from jaxbandits.apps.comparison.stopping import StoppingRule, most_earned
from jaxbandits.apps.comparison.worlds import (
    DrawnMeans,
    FilePosterior,
    counts_conversions,
    run_arms,
)
from jaxbandits.constraints import AverageCost, TotalBudget
from jaxbandits.core import Constraint, FiniteSpec, InputError, Policy, bad, ticks
from jaxbandits.environments.closing import Stocked
from jaxbandits.environments.finite import FiniteArms, WithNullArm
from jaxbandits.environments.table import RequestTable
from jaxbandits.tools import (
    Settings,
    leaf_fields,
    mark_shares,
    positive_number,
    refuse_misfit,
    whole_number,
)


def _classes(kind: Mapping[str, str]) -> Mapping[str, type[Policy]]:
    return {name: getattr(p, of) for name, of in kind.items()}


POLICIES = _classes(names.TOTAL_BUDGET)
"""What ``compare --policies`` calls the policies for a total budget: class by name."""
AVERAGE_COST_POLICIES = _classes(names.AVERAGE_COST)
"""For an average-cost constraint; their ``c`` and ``horizon`` are those of the constraint."""
TWO_COST_POLICIES = _classes(names.TWO_COSTS)
"""For a file of two costs, each with a budget."""

OF_THE_CONSTRAINT = ("c", "horizon")
"""Parameters of policies that an average-cost constraint sets."""

_MOST_VALUES = 1 << 29  # float64 in one labelled result
_NOTHING = 1e-9  # of a budget, in a linear program
_GROWTH = 2.0  # of an arm, where it is not said
# Where days are played, which is round by round: rounds times arms (and a round's own share) up to
# which there are as many runs as usual, and up to which days are played at all unless they are
# asked for; some ten seconds, and a minute.
_DAILY, _MOST_DAILY, _ROUND, _USUAL_RUNS, _FEWEST_RUNS = 1 << 29, 1 << 31, 30, 1000, 200


# --- The parts of a plan


@dataclasses.dataclass(frozen=True, eq=False)
class Supply:
    """What is for sale while the budget is spent: in twice the file's money, twice its time."""

    growth: float | None  # how many times what it sold in the file an arm sells; None: no limit
    reason: str = ""  # in that case the reason, unless it was asked for
    stock: tuple[np.ndarray, ...] = ()  # of each instance the most pulls of each arm
    requests: tuple[int, ...] = ()  # of a log instead: all rounds of each instance
    times: tuple[float, ...] = ()  # the budget over the file's money, of each instance

    def part(self, share: float) -> Supply:
        """In a shorter time."""
        stock = tuple(np.ceil(share * limit) for limit in self.stock)
        requests = tuple(max(1, round(share * limit)) for limit in self.requests)
        return dataclasses.replace(
            self, stock=stock, requests=requests, times=tuple(share * x for x in self.times)
        )

    def world(
        self, arms: FiniteArms | RequestTable | WithNullArm, rows: Sequence[int]
    ) -> FiniteArms | RequestTable | WithNullArm | Stocked:
        """Arms of these instances that close when they, or all requests, are sold out."""
        if self.requests:
            is_offered = np.repeat([[True], [False]], arms.spec.arms, axis=1)
            return Stocked.of(arms, shown=is_offered, at=[[self.requests[row] + 1] for row in rows])  # type: ignore[arg-type]
        if not self.stock:
            return arms
        limits = np.zeros((len(rows), arms.spec.arms))
        for arm_limits, row in zip(limits, rows, strict=True):
            arm_limits[: len(self.stock[row])] = self.stock[row]
        return Stocked.of(arms, pulls=limits)  # type: ignore[arg-type]


@dataclasses.dataclass(frozen=True)
class Cadence:
    """How often one decides, and when results are known."""

    size: tuple[int, ...] = ()  # pulls between two decisions, of each instance; empty: one
    later: int = 0  # decisions until a result is known
    unit: str = ""  # "day", "week" or "month" of the file; empty: a number of pulls
    reason: str = ""  # why a file of days is not played by days


@dataclasses.dataclass(frozen=True, eq=False)
class Spending:
    """What may be spent of each instance's money, in the file's units, and where that is recorded."""

    budgets: tuple[float, ...]  # of each cost; the first is that of the money
    last_pull: str
    shares: tuple[float, ...]  # of the budget, at which the regret is recorded
    average_cost: float | None = None  # a round; None for a total budget
    rounds: int | None = None  # of an average-cost constraint
    supply: Supply = Supply(None)

    @property
    def budget(self) -> float:
        """The budget of the money."""
        return self.budgets[0]

    def part(self, share: float) -> Spending:
        """A smaller budget, to be spent at the same pace."""
        rounds = self.rounds and max(1, int(self.rounds * share + 1e-9))
        budgets, supply = tuple(budget * share for budget in self.budgets), self.supply.part(share)
        return dataclasses.replace(self, budgets=budgets, rounds=rounds, supply=supply)

    def price(self, cost: np.ndarray) -> np.ndarray:
        """What a pull takes of the scarcest budget, in money: ``[…, K(, d)]`` to ``[…, K]``."""
        if len(self.budgets) == 1:
            return cost
        return (cost * (self.budget / np.array(self.budgets))).max(axis=-1)

    def in_money(self, cost: np.ndarray, row: int) -> np.ndarray:
        """The same of the budget or of the requests, so that reward over it ranks arms alone."""
        least = self.budget / self.supply.requests[row] if self.supply.requests else 0.0
        return np.maximum(self.price(cost), least if len(self.budgets) == 1 else 0.0)

    def pulls(self, instance: Instance, row: int) -> float:
        """How many pulls the budgets pay for, about, if spread over all arms."""
        cost = instance.mean_cost.mean(axis=0, keepdims=True)
        return float(self.budget / self.in_money(cost, row)[0])

    def best_split(self, reward: np.ndarray, cost: np.ndarray, row: int) -> np.ndarray:
        """The pulls of each arm that bring most by these means: a linear program."""
        use = (cost.reshape(len(reward), -1) / self.budgets).T
        if self.supply.requests:
            use = np.concatenate([use, np.full((1, len(reward)), 1 / self.supply.requests[row])])
        size = use.max(axis=0)  # a pull of each arm is so much of what it takes most of
        stock = self.supply.stock[row] if self.supply.stock else np.inf
        limits, gain = stock * size, reward / size
        if len(use) == 1:  # by falling gain, each until it is sold out
            shares, left = np.zeros_like(gain), 1.0
            for arm in np.argsort(-gain, kind="stable"):
                shares[arm] = min(limits[arm], left) if gain[arm] > 0 else 0.0
                left -= shares[arm]
            return np.where(shares > _NOTHING, shares, 0.0) / size
        from scipy import optimize  # type: ignore[import-untyped,unused-ignore]  # slow to import

        solved = optimize.linprog(
            -gain / max(gain.max(), 1e-300),
            A_ub=use / size,
            b_ub=np.ones(len(use)),
            bounds=np.stack([np.zeros_like(limits), limits], axis=1),
            method="highs",
        )
        return np.where(solved.x > _NOTHING, solved.x, 0.0) / size

    def scaled_budgets(self, instances: Sequence[Instance]) -> np.ndarray:
        """The budgets over each instance's bounds of the costs, ``[instance(, d)]``."""
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
    """Instances that run in one compile: their rows in the table, their arms padded."""

    rows: tuple[int, ...]
    environment: FiniteArms | RequestTable | WithNullArm


@dataclasses.dataclass(frozen=True, eq=False)
class Worlds:
    """Where the policies play: what a pull looks like, and whose means it has."""

    noise: str
    seed: int
    # What the means of each run are drawn from; None: those of the file
    posterior: FilePosterior | None
    why_given: str | None  # in that case the reason, if it is the file; None if it was asked for
    cost_cv: float  # coefficient of variation of the cost of one pull under the noise "clicks"
    cost_cv_from: str  # "days", "stated" or "rows"
    null_arm: bool  # a round may be sat out
    groups: tuple[Group, ...] = ()  # which instances share a compile

    @property
    def uncertainty(self) -> str:
        """``"means"`` that are drawn for each run, or ``"given"`` ones."""
        return "given" if self.posterior is None else "means"

    def arms(
        self, table: ArmsTable, rows: Sequence[int], runs: Sequence[int] = (0,)
    ) -> FiniteArms | RequestTable | WithNullArm:
        """The arms of these instances, a row an instance; where means are drawn, also a run."""
        instances = [table.instances[row] for row in rows]
        draws = list[DrawnMeans]()
        if self.posterior is not None:
            draws = [self.posterior.instances[row].draw(self.seed, row, runs) for row in rows]
        if table.wide and self.noise == "empirical":  # of one instance
            weights = [draw.weights[0] for draw in draws if draw.weights]
            arms: Any = worlds.request_table(instances[0], *weights)
        elif draws:
            arms = run_arms(instances, draws, self.noise, self.cost_cv)
        elif self.noise == "clicks":
            draws = [DrawnMeans(x.mean_reward[None], x.mean_cost[None]) for x in instances]
            arms = run_arms(instances, draws, self.noise, self.cost_cv)
        else:
            arms = worlds.finite_arms(instances, self.noise)
        return WithNullArm(arms) if self.null_arm else arms

    def grouped(self, table: ArmsTable, rows: Sequence[Sequence[int]]) -> Worlds:
        """The same, with the arms of groups of instances."""
        groups = tuple(Group(tuple(group), self.arms(table, group)) for group in rows)
        return dataclasses.replace(self, groups=groups)


def histories(table: ArmsTable, rows: Sequence[int], width: int) -> p.History:
    """What the file has counted of these instances' arms, ``[instance, K]``, over the bounds."""
    pulls, reward, cost = np.zeros((3, len(table.instances), width))
    for row in set(rows):
        instance = table.instances[row]
        counted: Any = instance.evidence
        at: Any = row, slice(len(instance.arms))
        pulls[at], reward[at] = np.rint(counted.clicks), counted.value / instance.reward_bound
        cost[at] = counted.spent / np.asarray(instance.cost_bound)
    # A sum may be above its bound by what a division rounds.
    reward, cost = (np.minimum(x, pulls) for x in (reward, cost))
    return p.History.of(*(x[list(rows)] for x in (pulls, reward, cost)))


@dataclasses.dataclass(frozen=True, eq=False)
class Played:
    """The policies with their settings, for all instances of the file."""

    policies: tuple[Settings, ...]
    records: Mapping[str, Mapping[str, Any]]  # of each setting's label: its class and parameters
    starts: tuple[str, ...] = ()  # of each policy: "file" or "nothing"; empty: all from nothing
    cadence: Cadence = Cadence()  # of those that learn by sums
    sums: tuple[bool, ...] = ()  # which do

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the settings, such as ``omega_ucb(rho=0.25)``."""
        return tuple(self.records)

    def of_instances(
        self, rows: Sequence[int], spec: FiniteSpec, table: ArmsTable
    ) -> list[Settings]:
        """The policies for these rows of the table, whose bounds are the units of their history."""
        policies = [settings.of_instances(rows, spec.arms) for settings in self.policies]
        if "file" in self.starts:
            counted = histories(table, rows, spec.arms)
            policies = [
                _started(settings, counted) if start == "file" else settings
                for settings, start in zip(policies, self.starts, strict=True)
            ]
        size = np.array([self.cadence.size[row] for row in rows]) if self.cadence.size else None
        return [
            _batched(settings, size, self.cadence.later) if sums and size is not None else settings
            for settings, sums in itertools.zip_longest(policies, self.sums)
        ]

    def only(self, setting: int) -> Played:
        """One of the settings."""
        members = [(policy, n) for policy in self.policies for n in range(policy.count)]
        (policy, n), name = members[setting], self.labels[setting]
        at = [candidate is policy for candidate in self.policies]
        starts, sums = (tuple(itertools.compress(x, at)) for x in (self.starts, self.sums))
        return Played((policy.only(n),), {name: self.records[name]}, starts, self.cadence, sums)

    def with_horizon(self, rounds: int | None) -> Played:
        """The same for another number of rounds of an average-cost constraint."""
        if rounds is None:
            return self
        policies = list[Settings]()
        for settings in self.policies:
            policy: Any = settings.policy
            if "horizon" in (field.name for field in leaf_fields(policy)):
                horizon = np.full_like(policy.horizon, rounds)
                policy = dataclasses.replace(policy, horizon=horizon)
                settings = dataclasses.replace(settings, policy=policy)
            policies.append(settings)
        return dataclasses.replace(self, policies=tuple(policies))


def _started(settings: Settings, history: p.History) -> Settings:
    """The settings with a history ``[1, instance, K]``."""
    every = jax.tree.map(lambda x: np.repeat(x, settings.count, axis=0), history)
    return dataclasses.replace(settings, policy=p.experienced(settings.policy, every), name="")


def _batched(settings: Settings, size: np.ndarray, later: int) -> Settings:
    """The settings with so many pulls of each instance between two decisions."""
    every = np.broadcast_to(size.astype(np.int32), (settings.count, size.size))
    return dataclasses.replace(
        settings, policy=p.InBatches(settings.policy, size=every, later=later)
    )


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
        baselines: fixed splits that are played in the same calls: one program compiles while
            another plays.
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
    """Read, check and lay out a comparison without compiling anything; what
    :func:`~jaxbandits.compare` then runs.

    Args and errors are those of :func:`~jaxbandits.compare`.

    Example:
        >>> import jaxbandits as jb
        >>> from jaxbandits.apps.comparison import prepare
        >>> plan = prepare("jaxbandits/data/sample_ads.csv", 300.0, jb.policies.OmegaUCB(rho=[0.25, 1.0]), runs=8)
        >>> plan.played.labels, len(plan.table.instances)
        (('omega_ucb(rho=0.25)', 'omega_ucb(rho=1)'), 4)
    """
    refuse_misfit(Request, (), options, "compare")
    request = Request(**options)
    request.check()
    amounts = budget if isinstance(budget, (list, tuple)) else [budget]
    budgets = tuple(positive_number("budget", amount) for amount in amounts)
    shares = mark_shares(request.marks)
    if isinstance(request.marks, (int, np.integer)):
        shares = np.arange(1, request.marks + 1) / request.marks  # exactly i / n
    candidates = tuple(policies) if isinstance(policies, (list, tuple)) else (policies,)
    fits = [isinstance(x, Policy) and issubclass(FiniteSpec, x.plays) for x in candidates]
    if not fits or not all(fits):
        must = "a policy or a list of them: instances for finitely many arms, as OmegaUCB()"
        raise bad("policies", policies, must)
    table, world = _table_and_worlds(_read(arms, request), request)
    spending = _spending(table, budgets, tuple(shares.tolist()), request)
    widths = [len(instance.arms) for instance in table.instances]
    sets = [x for x in candidates if np.ndim(x.blank_action(FiniteSpec(max(widths))))]
    reason = f"{type(sets[0]).__name__} pulls several arms at once" if sets else ""
    supply = _supply(table, spending, request.growth, reason)
    spending = dataclasses.replace(spending, supply=supply)
    lineup = _lineup(candidates, table, spending)
    pulls = np.array([spending.pulls(x, row) for row, x in enumerate(table.instances)])
    work = float(pulls @ (np.array(widths) + _ROUND)) * len(lineup.labels)
    run_limit = request.runs or request.max_runs
    cadence = _cadence(table, spending, request, work * (run_limit or _FEWEST_RUNS))
    usual = int(np.clip(_DAILY / work, _FEWEST_RUNS, _USUAL_RUNS)) if cadence.size else _USUAL_RUNS
    runs = int(run_limit or usual)
    values = len(lineup.labels) * len(table.instances) * runs * shares.size
    if values > _MOST_VALUES:
        limit = _MOST_VALUES * runs // values
        raise bad("runs", runs, f"at most {limit} with so many settings, instances and marks")
    sums = tuple(_learns_by_sums(settings, widths) for settings in lineup.policies)
    lineup = dataclasses.replace(lineup, cadence=cadence, sums=sums)
    if request.start == "file" and why_no_history(table, spending) is None:
        lineup = dataclasses.replace(lineup, starts=tuple("file" if x else "nothing" for x in sums))
    groups = compile_groups(widths, len(lineup.labels) * runs * pulls, len(candidates))
    world = world.grouped(table, groups)
    for group in world.groups:
        spec = group.environment.spec
        for settings in lineup.of_instances(group.rows, spec, table):
            Settings.of(settings, len(group.rows), spec)
    parts: Any = {"table": table, "worlds": world, "spending": spending, "played": lineup}
    plan = ComparisonPlan(**parts, runs=runs, rule=(rule := request.rule))
    if rule is not None:
        if len(lineup.labels) < 2:
            must = "left out with one setting: there is nothing to compare it with"
            raise bad("until", rule.until, must)
        most_earned(plan)  # there may be no bound of it
    return plan


def _read(arms: str | os.PathLike[str] | ArmsTable, request: Request) -> ArmsTable:
    if not isinstance(arms, ArmsTable):
        return read_arms(arms, **request.reading)
    usual: tuple[Any, ...] = (None, (), [], False)
    if idle := [name for name, value in request.reading.items() if value not in usual]:
        raise InputError(
            f"{', '.join(idle)}: given with an ArmsTable; give them to read_arms instead"
        )
    return dataclasses.replace(arms, path=None)


def _table_and_worlds(table: ArmsTable, request: Request) -> tuple[ArmsTable, Worlds]:
    """What is drawn, where the user says nothing by what suits the file; and the table, with bounds
    that hold for it.

    Raises:
        InputError: what the file does not allow; a bound of the user below what may be drawn.
    """
    why_given, cost_cv = None, request.cost_cv
    if request.uncertainty != "given":
        why_given = worlds.why_no_posterior(table)
        if why_given is None and request.noise == "beta":
            why_given = "Beta laws are tables, which cannot be made anew for every run"
        if why_given is not None and request.uncertainty == "means":
            raise bad("uncertainty", "means", f"'given' for this file: {why_given}")
    draws_means = request.uncertainty != "given" and why_given is None
    posterior = worlds.posterior_of(table, cost_cv) if draws_means else None
    whole = counts_conversions(table) and table.kind != "log"
    usual = "clicks" if draws_means and whole else "bernoulli"
    noise = request.noise or ("empirical" if table.kind == "log" else usual)
    if noise == "clicks" and (not whole or table.cost2_unit):
        must = "'bernoulli' for this file: only counts of conversions say what one click may bring"
        raise bad("noise", noise, must)
    if noise == "empirical" and any(instance.log is None for instance in table.instances):
        must = f"'bernoulli' or 'beta' for a file of {table.kind}: only a log has rows to resample"
        raise bad("noise", noise, must)
    if cost_cv is not None and (table.kind == "log" or not (draws_means or noise == "clicks")):
        must = "left out: only files of counts need it, for clicks or for drawn means"
        raise bad("cost_cv", cost_cv, must)
    cv, cv_from = worlds.cost_cv_of(table, posterior, cost_cv)
    if draws_means or noise == "clicks" or table.kind == "log":
        limits = request.reward_max, request.cost_max
        table = worlds.with_bounds(table, noise, posterior, cv, *limits)
    null_arm = request.average_cost is not None
    return table, Worlds(noise, int(request.seed), posterior, why_given, cv, cv_from, null_arm)


def _spending(
    table: ArmsTable, budgets: tuple[float, ...], shares: tuple[float, ...], request: Request
) -> Spending:
    """Budgets that the file has costs for, and that can be counted in ticks of their bounds."""
    units, average_cost = list(table.spent_units.values()), request.average_cost
    if len(budgets) != len(units):
        must = f"{len(units)} of them: one for each cost of the file ({' and '.join(units)})"
        raise bad("budget", list(budgets), must)
    bounds = np.array([np.ravel(instance.cost_bound) for instance in table.instances])
    ends = 2.0**-24 * bounds.max(0), 2.0**30 * bounds.min(0)
    for amount, lowest, highest in zip(budgets, *ends, strict=True):
        if not lowest <= amount <= highest:
            times = "2**-24 to 2**30 times the bound of the costs"
            raise bad("budget", amount, f"from {lowest:.3g} to {highest:.3g} ({times})")
    if average_cost is None:
        return Spending(budgets, request.last_pull, shares)
    if len(budgets) > 1:
        must = "left out: with two costs each has a budget for all rounds"
        raise bad("average_cost", average_cost, must)
    if average_cost > bounds.min():
        must = f"at most {bounds.min():.4g}, the bound of the costs, in {table.cost_unit}"
        raise bad("average_cost", average_cost, must)
    count = int(budgets[0] / average_cost)
    rounds = whole_number("budget / average_cost", count, 1, 2**30, "2**30")
    return Spending(budgets, request.last_pull, shares, average_cost, rounds)


def why_no_history(table: ArmsTable, spending: Spending) -> str | None:
    """Why policies cannot start from what the file has counted; None if they can."""
    if any((instance.evidence or Evidence()).clicks is None for instance in table.instances):
        return "it has means only"
    if len(spending.budgets) > 1:
        return "it has two costs"
    return None if spending.rounds is None else "under an average cost rounds may be sat out"


def _learns_by_sums(settings: Settings, widths: Sequence[int]) -> bool:
    """Whether a policy can start from a history, and learn in batches."""
    width, count = max(widths), len(widths)
    nothing = p.History.of(*np.zeros((3, count, width)))
    try:
        started = _started(settings.of_instances(range(count), width), nothing)
        Settings.of(_batched(started, np.ones(count), 0), count, FiniteSpec(width))
    except InputError:
        return False
    return True


def _supply(
    table: ArmsTable, spending: Spending, growth: float | str | None, reason: str
) -> Supply:
    """What is for sale, by what the file has sold; no limit if there is a ``reason`` not."""
    evidence = [instance.evidence or Evidence() for instance in table.instances]
    totals = [record.totals(slice(None)) for record in evidence]
    if spending.rounds is not None:
        reason = "an average cost has rounds of its own"
    elif len(spending.budgets) > 1:
        reason = "with two costs each has a budget"
    elif None in totals:
        reason = f"the file does not say how many {table.pull_unit}s there were"
    if growth == "none" or reason:
        if growth not in (None, "none"):
            raise bad("growth", growth, f"left out: {reason}")
        return Supply(None, "" if growth == "none" else reason)
    times = tuple(spending.budget / total[2] for total in totals if total is not None)
    sold = [total[0] for total in totals if total is not None]
    if table.wide:  # all arms answered each request, and so no money paid for them
        times = (1.0,) * len(sold)
        sold = [n / len(x.arms) for n, x in zip(sold, table.instances, strict=True)]
    if table.kind == "log":
        factor = float(growth or 1.0)
        whole = [factor * time * n for time, n in zip(times, sold, strict=True)]
        requests = tuple(int(np.clip(np.rint(x), 1, 2**30 - 1)) for x in whole)
        return Supply(factor, requests=requests, times=times)
    factor, clicks = float(growth or _GROWTH), (np.asarray(x.clicks) for x in evidence)
    limits = [factor * time * x for time, x in zip(times, clicks, strict=True)]
    return Supply(factor, stock=tuple(np.maximum(np.ceil(x), 1) for x in limits), times=times)


def days_of(instance: Instance) -> tuple[int, str] | None:
    """How many days (weeks, months) the rows of an instance have, and which; None below two."""
    evidence = instance.evidence or Evidence()
    days = [day.day for day in evidence.daily or ()]
    if evidence.pulls is not None and evidence.pulls.time is not None:
        days.append(evidence.pulls.time.astype("datetime64[D]"))
    every = np.unique(np.concatenate(days)) if days else np.empty(0, "datetime64[D]")
    every = every[~np.isnat(every)]
    if every.size < 2:
        return None
    step = float(np.median(np.diff(every).astype(float)))
    return every.size, "day" if step < 4 else "week" if step < 15 else "month"


def _cadence(table: ArmsTable, spending: Spending, request: Request, work: float) -> Cadence:
    """How often one decides: as asked, or once a day where a file of counts has days."""
    decide, later = request.decide, int(request.known_after or 0)
    days = [days_of(instance) for instance in table.instances]
    apart = spending.rounds is not None or len(spending.budgets) > 1
    if apart and (decide not in (None, "per-click") or later):
        asked = ("known_after", later) if decide in (None, "per-click") else ("decide", decide)
        raise bad(*asked, "left out with an average cost or two costs")
    reason = ""
    if decide is None and table.kind != "log" and None not in days and not apart:
        if work <= _MOST_DAILY or later:
            decide = "daily"
        else:
            reason = "as if one decided click by click, which is faster to play (--decide daily)"
    if decide == "daily":
        if None in days:
            raise bad("decide", decide, "'per-click' or a whole number: the file has no days")
        calendar = [*filter(None, days)]
        totals = [(x.evidence or Evidence()).totals(slice(None)) for x in table.instances]
        pairs = zip(filter(None, totals), calendar, strict=True)
        sizes = tuple(max(1, round(total[0] / count)) for total, (count, _) in pairs)
        return Cadence(sizes, later, calendar[0][1])
    if isinstance(decide, (int, np.integer)):
        return Cadence((int(decide),) * len(days), later)
    if later:
        must = "left out where one decides per click (--decide says how often)"
        raise bad("known_after", later, must)
    return Cadence(reason=reason)


def _lineup(policies: Sequence[Policy], table: ArmsTable, spending: Spending) -> Played:
    """The policies by their names, with the bound and the horizon of an average-cost constraint."""
    named = (POLICIES, AVERAGE_COST_POLICIES, TWO_COST_POLICIES)
    name_of = {kind: name for tables in named for name, kind in tables.items()}
    values: dict[str, Any] = {}
    if spending.rounds is not None:
        bounds = spending.scaled_average_costs(table.instances)
        values = dict(zip(OF_THE_CONSTRAINT, (bounds[None], spending.rounds), strict=True))
    checked, records = list[Settings](), dict[str, dict[str, Any]]()
    for policy in policies:
        values_set = {f.name: values[f.name] for f in leaf_fields(policy) if f.name in values}
        settings = Settings.of(dataclasses.replace(policy, **values_set), len(table.instances))  # type: ignore[type-var]
        name = name_of.get(type(policy), "")
        settings = dataclasses.replace(settings, name=name, hidden=tuple(values))
        for number, label in enumerate(settings.labels):
            if label in records:
                raise bad("policies", label, "given once: a setting with this label is there")
            records[label] = settings.record(number)
        checked.append(settings)
    return Played(tuple(checked), records)


# --- What is done without a learner: the split seen in the file, an even split, all on the best arm of the file


SEEN, EVEN, BEST = "the split seen in the file", "an even split", "all on the file's best"
MIXTURE = "the file's best mixture"


def file_means(table: ArmsTable, world: Worlds) -> list[tuple[np.ndarray, np.ndarray]]:
    """Mean reward and cost per pull by the file, ``[K(, d)]`` each; pooled where drawn."""
    if world.posterior is None:
        return [(instance.mean_reward, instance.mean_cost) for instance in table.instances]
    return [posterior.means() for posterior in world.posterior.instances]


def best_by_file(table: ArmsTable, world: Worlds, spending: Spending) -> list[int]:
    """The arm of each instance that alone brings most by the file."""
    means = file_means(table, world)
    return [
        int(np.argmax(reward / spending.in_money(cost, row)))
        for row, (reward, cost) in enumerate(means)
    ]


def baselines_of(table: ArmsTable, world: Worlds, spending: Spending) -> Played:
    """What the same comparison is held against: fixed splits of pulls that the file knows.

    Those seen in the file; 1/cost for equal money on average; the best arm alone, unless it may be
    sold out; and the mixture that brings most by the file, where that is more than one arm.
    """
    instances, means = table.instances, file_means(table, world)
    best = best_by_file(table, world, spending)
    mixed = [spending.best_split(reward, cost, row) for row, (reward, cost) in enumerate(means)]
    clicks = [None if table.wide else (x.evidence or Evidence()).clicks for x in instances]
    splits = {SEEN: [x / x.max() for x in clicks if x is not None and x.sum() > 0]}
    splits[EVEN] = [x.min() / x for x in (spending.price(cost) for _, cost in means)]
    several = any(np.count_nonzero(x) > 1 for x in mixed)
    if not (several and spending.supply.stock):
        splits[BEST] = [np.eye(len(x.arms))[at] for x, at in zip(instances, best, strict=True)]
    if several:
        splits[MIXTURE] = [x / x.max() if x.any() else np.ones_like(x) for x in mixed]
    splits = {name: rows for name, rows in splits.items() if len(rows) == len(instances)}
    width = max(len(instance.arms) for instance in instances)
    weights = np.zeros((len(splits), len(instances), width))
    for split, rows in zip(weights, splits.values(), strict=True):
        for arm_weights, arm_shares in zip(split, rows, strict=True):
            arm_weights[: len(arm_shares)] = arm_shares
    fixed: Policy = p.FixedSplit(weights)
    settings = Settings.of(fixed if spending.rounds is None else p.Guarded(fixed), len(instances))
    records = {name: {"policy": "FixedSplit", "parameters": {}} for name in splits}
    return Played((settings,), records, starts=("",), sums=(False,))


def with_baselines(plan: ComparisonPlan) -> ComparisonPlan:
    """The same with its splits, played in the same calls."""
    splits = baselines_of(plan.table, plan.worlds, plan.spending)
    return dataclasses.replace(plan, baselines=splits)


# --- What fits into one compile, and into one call


# Seconds, measured on two CPU cores. They decide how instances are grouped, never what comes out.
_COMPILE, _ARM_ROUND = 1.5, 5e-9
_ROWS_AT_ONCE = 1 << 21  # (lane, mark) pairs in one call of simulate, about 90 bytes each
_TABLE_BYTES, _RUNS_AT_ONCE = 1 << 26, 250  # of a block, where every run has means of its own


def compile_groups(widths: Sequence[int], work: np.ndarray, policies: int) -> list[tuple[int, ...]]:
    """Rows of the table in groups of similar width, widest first.

    A group costs one compile per policy, and every round of its instances (``work``) the group's
    largest width: rows join wider ones where that pads for less time than a compile takes.
    """
    groups, widest = list[list[int]](), 0
    order = sorted(range(len(widths)), key=lambda row: -widths[row])
    for width, level in itertools.groupby(order, key=lambda row: widths[row]):
        rows = list(level)
        padding = _ARM_ROUND * (widest - width) * float(sum(work[row] for row in rows))
        if groups and padding < policies * _COMPILE:
            groups[-1] += rows
        else:
            groups.append(rows)
            widest = width
    return [tuple(sorted(group)) for group in groups]


def block_size(plan: ComparisonPlan) -> int:
    """How many runs are played in one call, so that their exact accounts fit in memory.

    Where means are drawn, every run is a row of the environment's tables, whose shape is part of
    the compiled program: so all blocks have one size, and the last one plays some runs of the one
    before again, to the same bits.
    """
    count, settings = 1, sum(len(lineup.labels) for lineup in plan.together)
    for group in plan.worlds.groups:
        rows = plan.runs * len(group.rows)
        count = max(count, -(-rows * settings * len(plan.spending.shares) // _ROWS_AT_ONCE))
        if plan.worlds.posterior is not None:
            row = sum(leaf[0].nbytes for leaf in jax.tree.leaves(group.environment))
            count = max(count, -(-rows * row // _TABLE_BYTES), -(-plan.runs // _RUNS_AT_ONCE))
    return -(-plan.runs // min(count, plan.runs))
