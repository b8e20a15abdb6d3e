"""What a comparison simulates: the file, its worlds, the budget and the policies."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

import jaxbandits.policies as p
from jaxbandits.apps.comparison import worlds
from jaxbandits.apps.comparison.arms_table import ArmsTable, Instance
from jaxbandits.apps.comparison.names import NAMES
from jaxbandits.apps.comparison.request import Request
from jaxbandits.apps.comparison.worlds import FilePosterior, counts_conversions, run_arms
from jaxbandits.core import FiniteSpec, InputError, Policy, bad
from jaxbandits.environments.closing import Stocked
from jaxbandits.environments.finite import FiniteArms
from jaxbandits.environments.table import RequestTable
from jaxbandits.tools import Settings, mark_shares, positive_number, refuse_misfit

POLICIES: Mapping[str, type[Policy]] = {name: getattr(p, of) for name, of in NAMES.items()}
"""The policies for a total budget by their names in ``compare --policies``."""

_MOST_VALUES = 1 << 29  # float64 in one labelled result
_NOTHING = 1e-9  # of a budget, in a linear program
_GROWTH = 2.0  # of an arm, where it is not said
# Where days are played, which is round by round: rounds times arms (and a round's own share) up to
# which there are as many runs as usual, and up to which days are played at all unless they are
# asked for; some ten seconds, and a minute.
_DAILY, _MOST_DAILY, _ROUND, _USUAL_RUNS, _FEWEST_RUNS = 1 << 29, 1 << 31, 30, 1000, 200

World = FiniteArms | RequestTable


# --- The parts of a plan


@dataclasses.dataclass(frozen=True, eq=False)
class Supply:
    """What is for sale during a run, which lasts twice the file's time for twice its money."""

    growth: float | None  # how many times what it sold in the file an arm sells; None: no limit
    reason: str = ""  # in that case the reason, unless it was asked for
    stock: tuple[np.ndarray, ...] = ()  # of each instance the most pulls of each arm
    requests: tuple[int, ...] = ()  # of a log instead: all rounds of each instance
    times: tuple[float, ...] = ()  # the budget over the file's money, of each instance

    def world(self, arms: World, rows: Sequence[int]) -> World | Stocked:
        """Arms of these instances that close when they, or all requests, are sold out."""
        if self.requests:
            is_offered = np.repeat([[True], [False]], arms.spec.arms, axis=1)
            return Stocked.of(arms, shown=is_offered, at=[[self.requests[row] + 1] for row in rows])
        if not self.stock:
            return arms
        limits = np.zeros((len(rows), arms.spec.arms))
        for arm_limits, row in zip(limits, rows, strict=True):
            arm_limits[: len(self.stock[row])] = self.stock[row]
        return Stocked.of(arms, pulls=limits)


@dataclasses.dataclass(frozen=True, eq=False)
class Spending:
    """The budget of each instance in the file's units, and when regret is recorded."""

    budget: float
    last_pull: str
    shares: tuple[float, ...]  # of the budget, at which the regret is recorded
    supply: Supply = Supply(None)

    def price(self, cost: np.ndarray, row: int) -> np.ndarray:
        """The price of a pull in the scarcer of money and requests; reward over it ranks arms."""
        requests = self.supply.requests
        return np.maximum(cost, self.budget / requests[row] if requests else 0.0)

    def pulls(self, instance: Instance, row: int) -> float:
        """About how many pulls the budget pays for if spread over all arms."""
        return self.budget / float(self.price(np.asarray(instance.mean_cost.mean()), row))

    def best_split(self, reward: np.ndarray, cost: np.ndarray, row: int) -> np.ndarray:
        """The pulls of each arm that earn most at these means, by a linear program."""
        use = cost[None] / self.budget
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


@dataclasses.dataclass(frozen=True, eq=False)
class Worlds:
    """The simulated environments: the outcomes of a pull, and where the means come from."""

    noise: str
    seed: int
    posterior: FilePosterior | None  # what each run's means are drawn from; None: the file's means
    why_given: str | None  # in that case the reason

    def arms(self, table: ArmsTable, runs: Sequence[int]) -> World:
        """The arms of all instances; a row is an instance or, if means are drawn, one run of it."""
        if self.posterior is None:
            return worlds.finite_arms(table.instances)
        pairs = enumerate(self.posterior.instances)
        draws = [posterior.draw(self.seed, row, runs) for row, posterior in pairs]
        if table.wide and self.noise == "empirical":  # of one instance
            return worlds.request_table(table.instances[0], (draws[0].weights or ())[0])
        return run_arms(table.instances, draws, self.noise, self.posterior.cost_cv)


def histories(table: ArmsTable, rows: Sequence[int], width: int) -> p.History:
    """The file's counts of these instances' arms, ``[instance, K]``, divided by the bounds."""
    pulls, reward, cost = np.zeros((3, len(table.instances), width))
    for row, instance in enumerate(table.instances):
        counted: Any = instance.evidence
        at: Any = row, slice(len(instance.arms))
        pulls[at], reward[at] = np.rint(counted.clicks), counted.value / instance.reward_bound
        cost[at] = counted.spent / instance.cost_bound
    # A sum may be above its bound by what a division rounds.
    reward, cost = (np.minimum(x, pulls) for x in (reward, cost))
    return p.History.of(*(x[list(rows)] for x in (pulls, reward, cost)))


@dataclasses.dataclass(frozen=True, eq=False)
class Played:
    """The policies with their settings, for all instances of the file."""

    policies: tuple[Settings, ...]
    records: Mapping[str, Mapping[str, Any]]  # of each setting's label: its class and parameters
    sums: tuple[bool, ...] = ()  # which policies learn by sums, and so in batches
    starts: tuple[str, ...] = ()  # of each policy: "file" or "nothing"; empty: all from nothing
    day: tuple[int, ...] = ()  # pulls between two decisions, of each instance; empty: one
    reason: str = ""  # why a file of days is not played by days

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the settings, such as ``omega_ucb(rho=0.25)``."""
        return tuple(self.records)

    def of_instances(
        self, rows: Sequence[int], spec: FiniteSpec, table: ArmsTable
    ) -> list[Settings]:
        """The policies for these rows of the table, with histories in units of the rows' bounds."""
        every = [settings.of_instances(rows, spec.arms) for settings in self.policies]
        if "file" in self.starts:
            counted = histories(table, rows, spec.arms)
            pairs = zip(every, self.starts, strict=True)
            every = [_started(x, counted) if start == "file" else x for x, start in pairs]
        if not self.day:
            return every
        size = np.array([self.day[row] for row in rows])
        return [
            _batched(settings, size) if sums else settings
            for settings, sums in itertools.zip_longest(every, self.sums)
        ]


def _started(settings: Settings, history: p.History) -> Settings:
    """The settings with a history ``[1, instance, K]``."""
    every = jax.tree.map(lambda x: np.repeat(x, settings.count, axis=0), history)
    return dataclasses.replace(settings, policy=p.experienced(settings.policy, every), name="")


def _batched(settings: Settings, size: np.ndarray) -> Settings:
    """The settings with so many pulls of each instance between two decisions."""
    every = np.broadcast_to(size.astype(np.int32), (settings.count, size.size))
    return dataclasses.replace(settings, policy=p.InBatches(settings.policy, size=every))


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class ComparisonPlan:
    """A checked comparison of :func:`~jaxbandits.apps.comparison.prepare`, ready for ``run_plan``."""

    table: ArmsTable  # the file, with bounds that hold whatever is drawn
    worlds: Worlds  # where the policies play
    spending: Spending  # what they may spend
    played: Played
    runs: int


# --- From what the user wrote to a plan


def prepare(
    arms: str | os.PathLike[str] | ArmsTable,
    budget: float,
    policies: Policy | Sequence[Policy],
    **options: Any,
) -> ComparisonPlan:
    """Read and check a comparison and lay out its runs, for :func:`run_plan`; compiles nothing.

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
    budget = positive_number("budget", budget)
    shares = mark_shares(request.marks)
    if isinstance(request.marks, (int, np.integer)):
        shares = np.arange(1, request.marks + 1) / request.marks  # exactly i / n
    candidates = tuple(policies) if isinstance(policies, (list, tuple)) else (policies,)
    fits = [isinstance(x, Policy) and issubclass(FiniteSpec, x.plays) for x in candidates]
    if not fits or not all(fits):
        must = "a policy for finitely many arms, such as OmegaUCB(), or a list of them"
        raise bad("policies", policies, must)
    table, world = _table_and_worlds(_read(arms, request), request)
    spending = _spending(table, budget, tuple(shares.tolist()), request, candidates)
    lineup, work = _lineup(candidates, table), 0.0
    for row, instance in enumerate(table.instances):
        work += spending.pulls(instance, row) * (len(instance.arms) + _ROUND) * len(lineup.labels)
    day, reason = _day(table, request, work * (request.runs or _FEWEST_RUNS))
    usual = int(np.clip(_DAILY / work, _FEWEST_RUNS, _USUAL_RUNS)) if day else _USUAL_RUNS
    runs = int(request.runs or usual)
    values = len(lineup.labels) * len(table.instances) * runs * shares.size
    if values > _MOST_VALUES:
        limit = _MOST_VALUES * runs // values
        raise bad("runs", runs, f"at most {limit} with so many settings, instances and marks")
    starts = tuple("file" if x else "nothing" for x in lineup.sums)
    if request.start == "nothing" or table.kind == "means":
        starts = ()
    lineup = dataclasses.replace(lineup, day=day, reason=reason, starts=starts)
    spec, rows = world.arms(table, [0]).spec, range(len(table.instances))
    for settings in lineup.of_instances(rows, spec, table):
        Settings.of(settings, len(rows), spec)
    return ComparisonPlan(table=table, worlds=world, spending=spending, played=lineup, runs=runs)


def _read(arms: str | os.PathLike[str] | ArmsTable, request: Request) -> ArmsTable:
    if not isinstance(arms, ArmsTable):
        from jaxbandits.apps.comparison.arms_file import read_arms  # and so pandas

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
        InputError: what the file does not allow.
    """
    is_log, whole = table.kind == "log", table.kind == "counts" and counts_conversions(table)
    noise = request.noise or ("empirical" if is_log else "clicks" if whole else "bernoulli")
    if noise == "clicks" and not whole:
        must = (
            "'bernoulli' for this file: only counts of conversions determine what a click can earn"
        )
        raise bad("noise", noise, must)
    if noise == "empirical" and not is_log:
        must = f"'bernoulli' for a file of {table.kind}: only a log has rows to resample"
        raise bad("noise", noise, must)
    why_given = worlds.why_no_posterior(table)
    if request.cost_cv is not None and (is_log or why_given is not None):
        raise bad("cost_cv", request.cost_cv, "left out: only drawn means of counts need it")
    posterior = worlds.posterior_of(table, request.cost_cv) if why_given is None else None
    table = worlds.with_bounds(table, noise, posterior)
    return table, Worlds(noise, int(request.seed), posterior, why_given)


def _spending(
    table: ArmsTable,
    budget: float,
    shares: tuple[float, ...],
    request: Request,
    policies: Sequence[Policy],
) -> Spending:
    """A budget that can be counted in ticks of the bounds, and what is for sale for it."""
    bounds = [instance.cost_bound for instance in table.instances]
    lowest, highest = 2.0**-24 * max(bounds), 2.0**30 * min(bounds)
    if not lowest <= budget <= highest:
        times = "2**-24 to 2**30 times the bound of the costs"
        raise bad("budget", budget, f"from {lowest:.3g} to {highest:.3g} ({times})")
    width, reason = max(len(instance.arms) for instance in table.instances), ""
    if sets := [x for x in policies if np.ndim(x.blank_action(FiniteSpec(width)))]:
        reason = f"{type(sets[0]).__name__} pulls several arms at once"
    supply = _supply(table, budget, request.growth, reason)
    return Spending(budget, request.last_pull, shares, supply)


def _supply(table: ArmsTable, budget: float, growth: float | str | None, reason: str) -> Supply:
    """What is for sale, by what the file has sold; no limit if there is a ``reason`` not."""
    if table.kind == "means":
        reason = f"the file does not say how many {table.pull_unit}s there were"
    if reason and growth not in (None, "none"):
        raise bad("growth", growth, f"left out: {reason}")
    evidence: Any = [x.evidence for x in table.instances if table.kind != "means"]
    times = tuple(budget / float(np.sum(x.spent)) for x in evidence)
    if growth == "none" or reason:
        return Supply(None, "" if growth == "none" else reason, times=times)
    sold = [float(np.sum(x.clicks)) for x in evidence]
    if table.wide:  # all arms answered each request, and so no money paid for them
        times = (1.0,) * len(sold)
        sold = [n / len(x.arms) for n, x in zip(sold, table.instances, strict=True)]
    if table.kind == "log":
        factor = float(growth or 1.0)
        whole = [factor * time * n for time, n in zip(times, sold, strict=True)]
        requests = tuple(int(np.clip(np.rint(x), 1, 2**30 - 1)) for x in whole)
        return Supply(factor, requests=requests, times=times)
    factor = float(growth or _GROWTH)
    limits = [factor * time * x.clicks for time, x in zip(times, evidence, strict=True)]
    return Supply(factor, stock=tuple(np.maximum(np.ceil(x), 1) for x in limits), times=times)


def _day(table: ArmsTable, request: Request, work: float) -> tuple[tuple[int, ...], str]:
    """Pulls of a day of each instance, where one decides once a day; else a reason not to, if any."""
    evidence: Any = [instance.evidence for instance in table.instances]
    has_days = all(x.days > 1 for x in evidence)
    if request.decide == "daily" and not has_days:
        raise bad("decide", "daily", "'per-click': the file has no days")
    if request.decide == "per-click" or not has_days:
        return (), ""
    if request.decide is None and work > _MOST_DAILY:
        return (), "as if deciding click by click, which is faster to simulate (--decide daily)"
    return tuple(max(1, round(float(np.sum(x.clicks)) / x.days)) for x in evidence), ""


def _lineup(policies: Sequence[Policy], table: ArmsTable) -> Played:
    """The policies by their names, and whether they learn by sums."""
    name_of = {kind: name for name, kind in POLICIES.items()}
    checked, records = list[Settings](), dict[str, dict[str, Any]]()
    for policy in policies:
        settings = Settings.of(policy, len(table.instances))
        settings = dataclasses.replace(settings, name=name_of.get(type(policy), ""))
        for number, label in enumerate(settings.labels):
            if label in records:
                raise bad("policies", label, "given once: another setting has this label")
            records[label] = settings.record(number)
        checked.append(settings)
    widths = [len(instance.arms) for instance in table.instances]
    return Played(tuple(checked), records, tuple(_learns_by_sums(x, widths) for x in checked))


def _learns_by_sums(settings: Settings, widths: Sequence[int]) -> bool:
    """Whether a policy can start from a history, and learn in batches."""
    width, count = max(widths), len(widths)
    nothing = p.History.of(*np.zeros((3, count, width)))
    try:
        started = _started(settings.of_instances(range(count), width), nothing)
        Settings.of(_batched(started, np.ones(count)), count, FiniteSpec(width))
    except InputError:
        return False
    return True


# --- What is done without a learner


SEEN, EVEN, BEST = "the split seen in the file", "an even split", "all on the file's best"
MIXTURE = "the file's best mixture"


def file_means(table: ArmsTable, world: Worlds) -> list[tuple[np.ndarray, np.ndarray]]:
    """Mean reward and cost per pull from the file, ``[K]`` each; pooled if means are drawn."""
    if world.posterior is None:
        return [(instance.mean_reward, instance.mean_cost) for instance in table.instances]
    return [posterior.means() for posterior in world.posterior.instances]


def with_splits(plan: ComparisonPlan) -> ComparisonPlan:
    """The same comparison for fixed splits of the budget computed from the file.

    Those seen in the file; 1/cost for equal money on average; the best arm alone, unless it may be
    sold out; and the mixture that brings most by the file, where that is more than one arm.
    """
    table, spending, width = plan.table, plan.spending, 0
    splits: dict[str, list[np.ndarray]] = {name: [] for name in (SEEN, EVEN, BEST, MIXTURE)}
    for row, (reward, cost) in enumerate(file_means(table, plan.worlds)):
        clicks = table.instances[row].evidence.clicks
        if clicks is not None and not table.wide:
            splits[SEEN].append(clicks / clicks.max())
        price = spending.price(cost, row)
        splits[EVEN].append(cost.min() / cost)
        splits[BEST].append(np.eye(len(cost))[np.argmax(reward / price)])
        mixed = spending.best_split(reward, cost, row)
        splits[MIXTURE].append(mixed / mixed.max() if mixed.any() else np.ones_like(mixed))
        width = max(width, len(cost))
    several = any(np.count_nonzero(x) > 1 for x in splits[MIXTURE])
    keeps = {SEEN: bool(splits[SEEN]), BEST: not (several and spending.supply.stock)}
    keeps[MIXTURE] = several
    splits = {name: rows for name, rows in splits.items() if keeps.get(name, True)}
    weights = np.zeros((len(splits), len(table.instances), width))
    for split, rows in zip(weights, splits.values(), strict=True):
        for arm_weights, arm_shares in zip(split, rows, strict=True):
            arm_weights[: len(arm_shares)] = arm_shares
    settings = Settings.of(p.FixedSplit(weights), len(table.instances))
    records = {name: {"policy": "FixedSplit", "parameters": {}} for name in splits}
    return dataclasses.replace(plan, played=Played((settings,), records))


# --- What fits into one call


_ROWS_AT_ONCE = 1 << 21  # (lane, mark) pairs in one call of simulate, about 90 bytes each
_TABLE_BYTES, _RUNS_AT_ONCE = 1 << 26, 250  # of a block, where every run has means of its own


def block_size(plan: ComparisonPlan) -> int:
    """How many runs to simulate in one call, so that their exact accounts fit in memory.

    Where means are drawn, every run is a row of the environment's tables, whose shape is part of
    the compiled program: so all blocks have one size, and the last one plays some runs of the one
    before again, to the same bits.
    """
    rows = plan.runs * len(plan.table.instances)
    count = -(-rows * len(plan.played.labels) * len(plan.spending.shares) // _ROWS_AT_ONCE)
    if plan.worlds.posterior is not None:
        one_run = jax.tree.leaves(plan.worlds.arms(plan.table, [0]))
        size = sum(leaf.nbytes for leaf in one_run) * plan.runs
        count = max(count, -(-size // _TABLE_BYTES), -(-plan.runs // _RUNS_AT_ONCE))
    return -(-plan.runs // max(1, min(count, plan.runs)))
