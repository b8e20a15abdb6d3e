"""Run a comparison, and what it found: blocks of runs through :func:`~jaxbandits.simulate`, in the
file's units.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import platform
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jaxlib
import numpy as np
from numpy.typing import NDArray

from jaxbandits import tools
from jaxbandits.apps.comparison import plan as plans
from jaxbandits.apps.comparison.arms_table import ArmsTable, FloatArray, money_cost
from jaxbandits.apps.comparison.plan import ComparisonPlan, Group, prepare
from jaxbandits.apps.comparison.stopping import StoppingRule, ahead, most_earned
from jaxbandits.apps.comparison.worlds import BETA_CONCENTRATION
from jaxbandits.core import Policy, Status, ticks
from jaxbandits.environments.finite import WithNullArm
from jaxbandits.simulation import simulate
from jaxbandits.statistics import (
    ClearPairs,
    clear_pairs,
    dominance,
    invisible,
    mean,
    runs_needed,
    simultaneous_band,
)
from jaxbandits.tools import Progress, Table, count_of, door

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,unused-ignore]
    import xarray

FILES = ("regret.png", "table.csv", "run.json")
ANSWER_FILES = ("answer.json", "arms.csv", "money.png", "results.png", "report.html")
_GROWN = 1.02  # times as many runs, at least, before the next look
# Pull counts that are kept, 4 bytes each: of the first runs only, where there are more
_MOST_COUNTS = 1 << 27


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during :func:`~jaxbandits.apps.comparison.compare`: ``done`` of ``runs`` runs were
    finished.
    """

    def __init__(self, done: int, runs: int):
        super().__init__(f"{done} of {runs} runs finished")
        self.done, self.runs = done, runs


@dataclass(frozen=True, eq=False)
class Accounts:
    """Where the money of some settings went, in the file's units; 0 for an absent arm."""

    pulls: NDArray[np.int32]  # [setting, instance, run, arm], of the first runs
    mean_reward: FloatArray  # true means per pull, [instance, run or 1, arm]
    mean_cost: FloatArray  # the same; with several costs [instance, run or 1, arm, d]
    earned: FloatArray  # reward up to each mark, summed over the instances, [setting, run, mark]

    def money(self, setting: int) -> FloatArray:
        """Expected money of each arm given how often it was pulled, ``[instance, run, arm]``.

        Its mean over runs is that of the money spent (Wald), with less noise.
        """
        return self.pulls[setting] * money_cost(self.mean_cost, 3)

    def spent2(self, setting: int) -> FloatArray:
        """The same of the second cost."""
        return self.pulls[setting] * self.mean_cost[..., 1]

    def results(self, setting: int) -> FloatArray:
        """The same of the reward."""
        return self.pulls[setting] * self.mean_reward


@dataclass(frozen=True, eq=False)
class Clearness:
    """What was clear when the last batch had been played."""

    rule: StoppingRule
    pairs: ClearPairs  # which setting earns clearly more than which, and after how many runs that was clear
    bound: float  # what a run can earn, averaged over the instances, in the file's unit
    runs: int  # how many were played
    looks: int  # and looked at
    is_reached: bool  # whether that is clear which should be
    beyond: int  # runs that earned more than the bound (once in a million); what is more was not counted

    def open_pairs(self, claim: str) -> int:
        """How many pairs are not clear."""
        clear = ahead(self.pairs, claim)
        return int((~(clear | clear.T))[np.triu_indices(len(clear), 1)].sum())

    def about(self) -> dict[str, Any]:
        """Numbers for ``run.json``: for each ordered pair the run after which it was clear, 0 if it
        is not.
        """
        pairs = [part.values.tolist() for part in self.pairs]
        after = dict(zip(("most_runs", "average"), pairs, strict=True))
        counts = {"runs": self.runs, "looks": self.looks, "reached": self.is_reached}
        return {**vars(self.rule), **counts, "bound": self.bound, "clear_after": after}


@dataclass(frozen=True, eq=False)
class Comparison:
    """What every policy setting made of the budget, in the file's units.

    Attributes:
        data: labelled arrays ``[setting, instance, replicate]``: ``reward``, ``pulls`` and
            ``spent`` of a whole run; ``regret`` ``[setting, instance, replicate, mark]``, the
            pseudo-regret (best reward per cost · expected cost − expected reward) when the share
            ``mark`` of the budget was spent.
        plan: what was run.
        accounts: pulls, money and results of each arm.
        notes: runs that did not end by spending the budget. Mostly empty.
        broken: settings that broke an average-cost bound in some round.
        clear: which claims are clear, where runs were played until they are.
        baselines: the splits that were played with it, if any were.
    """

    data: xarray.Dataset
    plan: ComparisonPlan
    accounts: Accounts
    notes: tuple[str, ...] = ()
    broken: frozenset[str] = frozenset()
    clear: Clearness | None = None
    baselines: Comparison | None = None

    def __repr__(self) -> str:
        plan, best = self.plan, self.ranking()[0]["setting"]
        counts = {"setting": len(plan.played.labels), "instance": len(plan.table.instances)}
        parts = [count_of(n, name) for name, n in (counts | {"run": plan.runs}).items()]
        budget = " and ".join(f"{x:g}" for x in plan.spending.budgets)
        return f"Comparison: {', '.join(parts)} of each, budget {budget}; best mean reward: {best}"

    def ranking(self) -> list[dict[str, Any]]:
        """One row per setting, averaged over the instances, best mean reward first; see
        :meth:`table`.
        """
        return [row for row in self.table() if row["scope"] == "overall"]

    def table(self) -> list[dict[str, Any]]:
        """Rows ``overall`` (every instance weighs the same), then rows ``instance``, each ranked by
        mean reward.

        A row has ``scope``, ``instance``, ``arms``, ``rank``, ``setting``, ``runs``; for each of
        ``reward``, ``regret``, ``pulls``, ``spent`` the mean over the runs and the 95 % interval
        (``reward``, ``reward_low``, ``reward_high``), each by itself
        (:func:`~jaxbandits.statistics.mean`).

        ``difference`` is the reward minus that of rank 1 in the same world, run by run; the
        intervals of all differences in a scope hold at once with 95 %
        (:func:`~jaxbandits.statistics.dominance`), and ``difference_clear`` says whether it leaves
        out 0. ``more_runs`` says how many more runs would probably (80 %) make it clear if it is what
        it now seems to be (:func:`~jaxbandits.statistics.runs_needed`, at 5 % over the number of
        pairs): 0 where it is clear, inf where there is none.
        """
        return [dict(row) for row in self._rows]

    def to_pandas(self) -> pandas.DataFrame:
        """:meth:`table` as a data frame; ``.attrs["units"]`` has the file's units of its columns."""
        table = self.plan.table
        earned = dict.fromkeys(("reward", "regret", "difference"), table.reward_unit)
        return tools.of_rows(self.table(), earned | table.spent_units | {"pulls": "pulls"})

    def doubts(self) -> list[str]:
        """Settings whose mean regret a few runs carry, and whether the runs are too few, in words;
        mostly none.
        """
        last = self.data["regret"].isel(mark=-1, drop=True)
        texts = []
        for name in self.plan.played.labels:
            told = mean(last.sel(setting=name), over="replicate").warnings
            kinds = dict(text.split(": ", 1) for text in told)
            if "few units" in kinds:
                return [kinds["few units"]]
            texts += [f"regret of {name}: {kinds['heavy tail']}"] if "heavy tail" in kinds else []
        return texts

    @functools.cached_property
    def _rows(self) -> list[dict[str, Any]]:
        names = ("reward", "regret", "pulls", *self.plan.table.spent_units)
        last = {name: self.data[name] for name in names}
        last["regret"] = last["regret"].isel(mark=-1, drop=True)
        scopes = [("instance", x.name, len(x.arms)) for x in self.plan.table.instances]
        overall = [("overall", "", sum(arms for *_, arms in scopes))]
        each = {name: x.rename(instance="each") for name, x in last.items()}
        return self._ranked(overall, last) + self._ranked(scopes, each)

    def _ranked(
        self, scopes: list[tuple], last: Mapping[str, xarray.DataArray]
    ) -> list[dict[str, Any]]:
        """Rows of all instances together, or of each where they are an axis ``each``."""
        reward, settings, runs = last["reward"], list(self.plan.played.labels), self.plan.runs
        estimates = {name: mean(x, over="replicate") for name, x in last.items()}
        best = estimates["reward"].value.argmax("setting")
        columns = {
            f"{name}{end}": getattr(estimate, part).values.reshape(len(settings), -1)
            for name, estimate in estimates.items()
            for end, part in (("", "value"), ("_low", "low"), ("_high", "high"))
        }
        columns |= self._apart(reward, best)
        return [
            dict(zip(("scope", "instance", "arms"), scope, strict=True))
            | {"rank": rank, "setting": settings[at], "runs": runs}
            | {name: values[at, n].item() for name, values in columns.items()}
            for n, scope in enumerate(scopes)
            for rank, at in enumerate(np.argsort(-columns["reward"][:, n], kind="stable"), start=1)
        ]

    def _apart(self, reward: xarray.DataArray, best: xarray.DataArray) -> dict[str, NDArray]:
        """Differences to the best, whether clear, and runs missing, ``[setting, scope]``."""
        runs, count, places = self.plan.runs, reward.sizes["setting"], np.atleast_1d(best.values)
        parts = [reward.isel(each=i) for i in range(places.size)] if best.dims else [reward]
        pairs = (dominance(part, over="replicate") for part in parts)
        tables = [table.isel(against=at) for table, at in zip(pairs, places, strict=True)]
        columns = {
            f"difference_{x}".removesuffix("_difference"): np.stack([t[x] for t in tables], -1)
            for x in ("difference", "low", "high", "clear")
        }
        more = np.full((count, places.size), np.nan)
        if runs > 1:
            against = reward.isel(setting=best).drop_vars("setting")
            level = 1 - 0.05 / max(1, count * (count - 1) // 2)
            needed = runs_needed(reward, against, over="replicate", level=level)
            more = needed["more"].values.reshape(count, -1)
        columns["more_runs"] = np.where(columns["difference_clear"], 0.0, more)
        return columns

    def picture(self) -> bytes:
        """The mean regret against the money spent; a band holds its whole curve at 95 %."""
        # Fewer resamples where there are very many runs, which need fewer and make each dearer.
        table, count, regret = self.plan.table, len(self.plan.table.instances), self.data["regret"]
        resamples = int(np.clip(2e8 / (count * self.plan.runs), 200, 1000))
        band = simultaneous_band(regret, over="replicate", resamples=resamples)
        scope = f"mean of {count} instances, " if count > 1 else ""
        unit = f" [{table.cost_unit}]" if table.cost_unit != "spent" else ""
        curves = (x.transpose("setting", "mark").values for x in (band.value, band.low, band.high))
        figure = tools.line_chart(
            np.asarray(self.plan.spending.shares) * self.plan.spending.budget,
            list(self.plan.played.labels),
            list(curves),
            title=f"{scope}{count_of(self.plan.runs, 'run')} each; a band holds its whole curve at 95 %",
            across=f"budget spent per instance{unit}",
            up=f"regret [{table.reward_unit}]",
        )
        return tools.encoded(figure, "png")

    def csv(self) -> str:
        """:meth:`table` as text of a CSV file; the same bytes for the same plan on the same
        machine.
        """
        rows = self.table()
        return Table(tuple(rows[0]), [tuple(row.values()) for row in rows]).csv()

    def save(
        self, folder: str | os.PathLike[str], about: Mapping[str, Any] | None = None
    ) -> list[Path]:
        """Write ``regret.png``, ``table.csv`` and ``run.json``, each whole, into a folder, which is
        made if missing; more entries ``about`` go into ``run.json``.
        """
        put_all(folder, {**self.numbers(about), "regret.png": self.picture()})
        return [Path(folder) / name for name in FILES]

    def numbers(self, about: Mapping[str, Any] | None = None) -> dict[str, bytes]:
        """The files without a picture; more entries ``about`` go into ``run.json``."""
        run = json.dumps({**(about or {}), **self.about()}, indent=2) + "\n"
        return {"run.json": run.encode(), "table.csv": self.csv().encode()}

    def about(self) -> dict[str, Any]:
        """Everything needed to repeat the comparison: what goes into ``run.json``."""
        from jaxbandits import __version__

        plan, table = self.plan, self.plan.table
        worlds, spending = plan.worlds, plan.spending
        of_file = ("sha256", "kind", "notes", "reward_unit", "cost_unit")
        file = {name: getattr(table, name) for name in of_file}
        has_cv = worlds.noise == "clicks" or worlds.uncertainty == "means"
        return {
            "arms_file": {"path": plan.table.path, **file},
            **{name: getattr(spending, name) for name in ("budget", "last_pull")},
            **{name: getattr(worlds, name) for name in ("noise", "uncertainty")},
            **({"budgets": spending.budgets} if len(spending.budgets) > 1 else {}),
            "cost_cv": worlds.cost_cv if has_cv else None,
            "average_cost": spending.average_cost,
            "beta_concentration": BETA_CONCENTRATION if worlds.noise == "beta" else None,
            "runs": plan.runs,
            "until": None if self.clear is None else self.clear.about(),
            "seed": worlds.seed,
            "marks": list(spending.shares),
            "start": plan.played.starts or "nothing",
            "growth": "none" if spending.supply.growth is None else spending.supply.growth,
            "decide": plan.played.cadence.size or "per-click",
            "known_after": plan.played.cadence.later,
            "settings": [{"label": name, **record} for name, record in plan.played.records.items()],
            "instances": [
                {"id": number, "name": instance.name, "arms": len(instance.arms)}
                | {name: getattr(instance, name) for name in ("reward_bound", "cost_bound")}
                for number, instance in enumerate(table.instances)
            ],
            "notes": list(self.notes),
            "warnings": self.doubts(),
            "invisible": invisible(plan.runs, "replicate"),
            "versions": {"jaxbandits": __version__}
            | {module.__name__: module.__version__ for module in (jax, jaxlib, np)}
            | {"python": platform.python_version()},
            "backend": jax.default_backend(),
        }


def put_all(folder: str | os.PathLike[str], contents: Mapping[str, bytes]) -> list[Path]:
    """Write files into a folder, which is made if missing, each put in place whole; their paths."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        tools.write_whole(Path(folder) / name, lambda file, content=content: file.write(content))
    return [Path(folder) / name for name in contents]


# --- The runs


@door
def compare(
    arms: str | os.PathLike[str] | ArmsTable,
    budget: float | Sequence[float],
    policies: Policy | Sequence[Policy],
    *,
    progress: bool | str = False,
    **options: Any,
) -> Comparison:
    """Spend the budget on every instance of an arms file with every policy setting, many times, and
    rank them.

    A pull's reward and cost are r · reward_bound and c · cost_bound with r, c in [0, 1] drawn by
    the chosen noise, so that their means are those of the file. Each run starts with the whole
    budget and ends when it is spent. Its regret is max_k (μ^r_k / μ^c_k) · Σ_t μ^c_{a_t} − Σ_t
    μ^r_{a_t}, in the file's unit of reward (what the best that is for sale brings for the same
    money, minus what was brought). All settings meet the same world; an instance's world depends on
    the seed, its number in the file and the run only.

    Args:
        arms: an arms file, or what :func:`~jaxbandits.apps.comparison.read_arms` returned.
        budget: B > 0 for each instance, in the file's unit of cost; 2⁻²⁴ to 2³⁰ times the bound of
            the costs. Of a file with two costs a list of two, each in its own unit: a run ends when
            the first of them is spent, and its regret is against the fluid optimum of that share of
            both budgets. Policies must play several resources.
        policies: one policy for finitely many arms or a list; a parameter that is an array makes
            several settings.
        options: the following, with the defaults of :class:`~jaxbandits.apps.comparison.Request`.
        runs: independent runs of each setting on each instance, 1 to 2³² − 1 (1000, or down to 200
            where days are played and take long); left out with ``until``.
        until: ``"clear"``: play in batches until every pair of settings is clear; ``"best"``: until
            one setting is clearly ahead of every other. The chance of any false claim is at most 5
            % over all looks, pairs and both claims (:func:`~jaxbandits.statistics.clear_pairs`);
            ``Comparison.clear`` has them. Runs are addressed, so the result is that of ``runs`` =
            as many as were played, bit for bit.
        max_runs: with ``until``: how many are played at most (1000).
        claim: with ``until``: which claim must be clear, that one earns more in ``"most runs"``, on
            ``"average"``, or ``"any"`` of the two.
        seed: 0 to 2³² − 1; the same seed gives the same numbers.
        noise: what a pull looks like, with means as in the file. ``"bernoulli"``: the whole bound
            or nothing, reward and cost independent (default for all files but logs). ``"beta"``:
            Beta distributed between 0 and the bound, independent, α + β = 4. ``"empirical"``: a row
            of the arm's log, reward and cost together (default for logs, only for them).
            ``"clicks"``: a click brings one conversion or none, and costs its price, drawn
            uniformly around its mean (default for counts whose means are drawn, only for counts of
            conversions).
        start: ``"file"``: policies start from what the file has counted of each arm (as
            :func:`~jaxbandits.policies.experienced`), where it has counts and one cost and the
            policy learns by sums; ``"nothing"``: they know nothing of it.
        growth: an arm sells at most so many times what it sold in the file, in the time that goes
            with the money: n_k pulls for S of money there are up to growth · n_k · B / S pulls
            here. A log has growth times its requests, of all arms together. Sold out, an arm closes
            for everybody; the regret is against what can be bought. Default 2, of a log 1;
            ``"none"``: as many as are bought. Not where a file has means only, with two costs, an
            average cost, or a policy that pulls several arms at once.
        decide: ``"daily"`` (or as often as the file's rows say), ``"per-click"``, or after how many
            pulls the policies see what came of their choices
            (:class:`~jaxbandits.policies.InBatches`). Default: daily where the file has days,
            unless that takes long to play.
        known_after: how many days (decisions, if ``decide`` is a number) later a result is known;
            0.
        last_pull: the pull that exceeds the budget ``"counts"`` or ``"forfeits"`` its reward.
        marks: at how many equally spaced shares of the budget to record the regret, or the shares,
            ending in 1.
        columns, drop, wide, decimal, encoding, reward_max, cost_max:
            as in :func:`~jaxbandits.apps.comparison.read_arms`; left out with a table.
        uncertainty: ``"means"``: the true means of each run are drawn from what the file's counts
            leave open (see :mod:`jaxbandits.apps.comparison.worlds`); addressed by (instance, run,
            arm), the same for all policies. ``"given"``: they are those of the file. Default: drawn
            where the file has counts or is a log, unless the noise is ``"beta"``.
        cost_cv: coefficient of variation of one pull's cost; default what its days say, else 0.5.
        average_cost: play under an average-cost constraint (:class:`~jaxbandits.AverageCost`), in
            the file's unit per round, for budget / average_cost rounds, with a null arm; policies'
            ``c`` and ``horizon`` are set to it.
        progress: show a bar on stderr.

    Returns:
        A :class:`Comparison`, in the file's units.

    Raises:
        InputError: naming the argument, its value and what it may be, before anything is compiled.
        Interrupted: at Ctrl-C, with the number of finished runs.

    Example:
        >>> import numpy as np
        >>> from jaxbandits.apps.comparison import ArmsTable, Instance
        >>> from jaxbandits.policies import BudgetedThompson, OmegaUCB
        >>> ads = Instance("ads", ("a", "b"), np.array([0.2, 0.1]), np.array([0.5, 0.9]), 1.0, 1.0, None)
        >>> table = ArmsTable("means", (ads,), (), "reward", "cost")
        >>> found = compare(table, 20.0, [OmegaUCB(rho=[0.25, 1.0]), BudgetedThompson()], runs=8)
        >>> found.data["reward"].sizes["setting"], [row["rank"] for row in found.ranking()]
        (3, [1, 2, 3])
    """
    return run_plan(prepare(arms, budget, policies, **options), progress=progress)


def run_plan(plan: ComparisonPlan, *, progress: bool | str = False) -> Comparison:
    """Simulate everything; with a stopping rule, until that is reached.

    Raises:
        Interrupted: at Ctrl-C.

    Example:
        >>> import numpy as np
        >>> import jaxbandits as jb
        >>> from jaxbandits.apps.comparison import ArmsTable, Instance, prepare, run_plan
        >>> ads = Instance("ads", ("a", "b"), np.array([0.2, 0.1]), np.array([0.5, 0.9]), 1.0, 1.0, None)
        >>> plan = prepare(ArmsTable("means", (ads,), (), "reward", "cost"), 20.0, jb.policies.OmegaUCB(), runs=8)
        >>> run_plan(plan).data["reward"].sizes["replicate"]
        8
    """
    rule, size, parts = plan.rule, plans.block_size(plan), list[Part]()
    if rule is not None:
        size = min(size, rule.batch(plan.runs))
    firsts, instances = (*range(0, plan.runs - size, size), plan.runs - size), plan.table.instances
    blocks = [range(first, first + size) for first in firsts]
    lanes = sum(len(lineup.labels) for lineup in plan.together) * len(instances) * plan.runs
    tasks = sum(len(lineup.policies) for lineup in plan.together)
    earned = np.zeros((len(plan.played.labels), len(instances), plan.runs if rule else 0))
    looks, looked, clear = 0, 0, None
    with Progress(progress, len(blocks) * len(plan.worlds.groups) * tasks, lanes) as bar:
        try:
            for runs in blocks:
                for group in plan.worlds.groups:
                    found = _simulated(plan, group, runs, bar)
                    parts.append((group, runs, found))
                    if rule is not None:
                        at = list(group.rows), slice(runs.start, runs.stop)
                        earned[:, *at] = found["reward"][: len(earned)]
                # A look takes time with all runs so far: not after every batch of very many
                if rule is None or runs.stop < min(_GROWN * looked, plan.runs):
                    continue
                looks, looked = looks + 1, runs.stop
                clear = look(plan, rule, earned[..., :looked].mean(axis=1), looks)
                if clear.is_reached:
                    break
        except KeyboardInterrupt:
            raise Interrupted(bar.done, bar.runs) from None
        return _gathered(dataclasses.replace(plan, runs=runs.stop), parts, clear)


def look(plan: ComparisonPlan, rule: StoppingRule, earned: np.ndarray, looks: int) -> Clearness:
    """What is clear by now, from what each run earned on average, ``[setting, run]``."""
    import xarray

    bound, labels = most_earned(plan), {"setting": list(plan.played.labels)}
    table = xarray.DataArray(earned, dims=("setting", "replicate"), coords=labels)
    pairs = clear_pairs(table, bound, over="replicate")
    beyond = int((earned > bound).any(axis=0).sum())
    return Clearness(rule, pairs, bound, earned.shape[1], looks, rule.is_reached(pairs), beyond)


# A group of instances, the runs that were played of it, and what came out
Part = tuple[Group, range, dict[str, np.ndarray]]


def _simulated(
    plan: ComparisonPlan, group: Group, runs: range, bar: Progress
) -> dict[str, np.ndarray]:
    """Rewards, regret, … of one block in the file's units: ``[setting, instance, replicate, …]``.

    The settings of the baselines, if there are any, come after those of the plan.
    """
    rows, draws_means = list(group.rows), plan.worlds.posterior is not None
    env_rows = list(np.repeat(rows, len(runs))) if draws_means else rows  # rows of the environment
    plain = plan.worlds.arms(plan.table, rows, runs) if draws_means else group.environment
    arms: Any = plain.arms if isinstance(plain, WithNullArm) else plain
    environment = plan.spending.supply.world(plain, env_rows)
    lanes = [plan.table.instances[row] for row in env_rows]
    spec = group.environment.spec
    played = [x.of_instances(env_rows, spec, plan.table) for x in plan.together]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\d+ of \d+ lanes ended")  # counted in the notes
        result = simulate(
            [settings for lineup in played for settings in lineup],
            environment,
            plan.spending.constraint(lanes),
            key=jax.random.key(plan.worlds.seed),
            replicates=np.tile(runs, len(rows))[:, None] if draws_means else runs,
            marks=plan.spending.shares,
            instance_ids=env_rows,
            instance_names=[instance.name for instance in lanes],
            progress=bar,
        )

    def by_run(x: np.ndarray) -> np.ndarray:
        return x.reshape(x.shape[0], len(rows), len(runs), *x.shape[3:])

    instances = [plan.table.instances[row] for row in rows]
    reward = np.array([x.reward_bound for x in instances])[None, :, None, None]
    cost = np.array([x.cost_bound for x in instances])[None, :, None]  # and of each resource
    width, present = max(len(x.arms) for x in instances), np.asarray(arms.present)

    def in_units(x: np.ndarray) -> np.ndarray:
        units = ticks.to_units(x * tools.beside(present, x.ndim - 2))
        return units.reshape(len(rows), -1, *x.shape[1:])[:, :, :width]

    means = [in_units(np.asarray(x)) for x in (arms.mean_reward, arms.mean_cost)]
    spent, regret = by_run(result.spent.values)[:, :, :, -1] * cost, result.regret.values
    if plan.spending.supply.requests and len(plan.spending.budgets) == 1:
        # Money and requests are used at one pace: against an even share of what both can earn.
        regret = result.budget_regret(plan.spending.scaled_budgets(lanes)).values
    earned = by_run(result.reward.values) * reward
    pulls = by_run(result.final["pulls"])[..., :width]
    amounts = np.moveaxis(spent.reshape(*spent.shape[:3], -1), -1, 0)  # of each cost
    columns = dict(zip(plan.table.spent_units, amounts, strict=True))
    if plan.spending.rounds is not None:
        columns["violation"] = by_run(result.violation.values)[..., -1] * cost
    return columns | {
        "reward": earned[..., -1],
        "regret": by_run(regret) * reward,
        "pulls": pulls.sum(axis=-1),  # no rounds: a skip is none
        "ended": by_run(result.ended),
        "earned": earned.sum(axis=1),
        "arm pulls": pulls,
        "mean reward": means[0] * reward[0],
        "mean cost": means[1] * cost[0][:, None],
    }


def _gathered(plan: ComparisonPlan, parts: list[Part], clear: Clearness | None) -> Comparison:
    """All runs of the plan, and of its baselines. Blocks may share runs, to the same bits."""
    table, counts = plan.table, [len(lineup.labels) for lineup in plan.together]
    width = max(len(instance.arms) for instance in table.instances)
    instances, runs, marks = len(table.instances), plan.runs, len(plan.spending.shares)
    # Runs whose pulls are kept
    recorded = max(1, min(runs, _MOST_COUNTS // (counts[0] * instances * width)))
    of_run = recorded if plan.worlds.posterior is not None else 1
    d = table.instances[0].mean_cost.shape[1:]
    columns: dict[str, np.ndarray] = {}
    pulls = np.zeros((sum(counts), instances, recorded, width), np.int32)
    means = {"mean reward": np.zeros((instances, of_run, width))}
    means["mean cost"] = np.zeros((instances, of_run, width, *d))
    earned = np.zeros((len(plan.worlds.groups), sum(counts), runs, marks))
    for group, block, values in parts:
        rows, run_span = list(group.rows), slice(block.start, block.stop)
        for name in ("reward", "regret", "pulls", *table.spent_units, "ended", "violation"):
            if (value := values.get(name)) is not None:
                empty = np.zeros((len(value), instances, runs, *value.shape[3:]), value.dtype)
                columns.setdefault(name, empty)[:, rows, run_span] = value
        earned[plan.worlds.groups.index(group), :, run_span] = values["earned"]
        if (count := min(block.stop, recorded) - block.start) > 0:
            kept, of_arms = slice(block.start, block.start + count), values["arm pulls"]
            pulls[:, rows, kept, : of_arms.shape[-1]] = of_arms[:, :, :count]
            kept = kept if of_run > 1 else slice(1)
            for name, x in means.items():
                x[rows, kept, : of_arms.shape[-1]] = values[name][:, :count]
    comparison, ends = None, np.cumsum([0, *counts])
    for number, lineup in reversed(list(enumerate(plan.together))):
        span, is_own = slice(ends[number], ends[number + 1]), lineup is plan.played
        accounts = Accounts(pulls[span], *means.values(), earned[:, span].sum(axis=0))
        own = plan if is_own else plan.alone(played=lineup)
        parts_of = {name: x[span] for name, x in columns.items()}
        comparison = _comparison(own, parts_of, accounts, clear if is_own else None, comparison)
    assert comparison is not None
    return comparison


def _comparison(
    plan: ComparisonPlan,
    columns: dict[str, np.ndarray],
    accounts: Accounts,
    clear: Clearness | None,
    baselines: Comparison | None,
) -> Comparison:
    """Labelled, with notes on runs that ended early and settings that broke the bound."""
    import xarray

    axes, table, spending = ("setting", "instance", "replicate", "mark"), plan.table, plan.spending
    units = {"reward": table.reward_unit, "regret": table.reward_unit} | table.spent_units
    ended, none = columns.pop("ended"), np.zeros((len(plan.played.labels), 1))
    violation = columns.pop("violation", none)
    instances: Any = [instance.name for instance in table.instances]
    names = list(plan.played.labels), instances, np.arange(plan.runs), list(spending.shares)
    data = {x: (axes[: y.ndim], y, {"units": units.get(x, x)}) for x, y in columns.items()}
    usual = {Status.EXHAUSTED if spending.rounds is None else Status.HORIZON}
    usual |= {Status.CLOSED} if spending.supply.requests else set()
    notes = [
        f"{int((ended == status).sum())} of {ended.size} runs ended by {status.name.lower()}, not with the budget"
        for status in Status
        if status not in usual and (ended == status).any()
    ]
    broken = {  # settings that broke the average-cost bound in some round, and so had more to spend than others
        name: f"{name} broke the bound of {spending.average_cost:g} a round on average in "
        f"{int((excess > 0).sum()):,} of {excess.size:,} runs, by {excess.max():.4g} {table.cost_unit} at most"
        for name, excess in zip(plan.played.labels, violation, strict=True)
        if (excess > 0).any()
    }
    labelled = xarray.Dataset(data, coords=dict(zip(axes, names, strict=True)))
    return Comparison(
        labelled, plan, accounts, (*notes, *broken.values()), frozenset(broken), clear, baselines
    )
