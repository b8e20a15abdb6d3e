"""Run a comparison in blocks of :func:`~jaxbandits.simulate`; results in the file's units."""

from __future__ import annotations

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
from jaxbandits.apps.comparison.arms_table import ArmsTable, FloatArray
from jaxbandits.apps.comparison.plan import ComparisonPlan, prepare
from jaxbandits.constraints import TotalBudget
from jaxbandits.core import Policy, Status, ticks
from jaxbandits.simulation import simulate
from jaxbandits.statistics import dominance, invisible, mean
from jaxbandits.tools import Progress, Table, count_of, door

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,unused-ignore]
    import xarray

# Pull counts that are kept, 4 bytes each: of the first runs only, where there are more
_MOST_COUNTS = 1 << 27


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a comparison: ``done`` of ``runs`` runs were finished."""

    def __init__(self, done: int, runs: int):
        super().__init__(f"{done} of {runs} runs finished")
        self.done, self.runs = done, runs


@dataclass(frozen=True, eq=False)
class Accounts:
    """The money spent and rewards earned by arm, in the file's units; 0 for an absent arm."""

    pulls: NDArray[np.int32]  # [setting, instance, run, arm], of the first runs
    mean_reward: FloatArray  # true means per pull, [instance, run or 1, arm]
    mean_cost: FloatArray  # the same
    earned: FloatArray  # reward up to each mark, summed over the instances, [setting, run, mark]

    def money(self, setting: int) -> FloatArray:
        """Expected money of each arm given how often it was pulled, ``[instance, run, arm]``.

        Its mean over runs is that of the money spent (Wald), with less noise.
        """
        return self.pulls[setting] * self.mean_cost

    def results(self, setting: int) -> FloatArray:
        """Expected reward of each arm given how often it was pulled, ``[instance, run, arm]``."""
        return self.pulls[setting] * self.mean_reward


@dataclass(frozen=True, eq=False)
class Comparison:
    """What every policy setting earned with the budget, in the file's units.

    Attributes:
        data: labelled arrays ``[setting, instance, replicate]``: ``reward``, ``pulls`` and
            ``spent`` of a whole run; ``regret`` ``[setting, instance, replicate, mark]``, the
            pseudo-regret (best reward per cost · expected cost − expected reward) when the share
            ``mark`` of the budget was spent.
        plan: what was run.
        accounts: pulls, money and results of each arm.
        notes: runs that did not end by spending the budget. Mostly empty.
    """

    data: xarray.Dataset
    plan: ComparisonPlan
    accounts: Accounts
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        plan, (best, *others) = self.plan, self.ranking()
        counts = {"setting": len(plan.played.labels), "instance": len(plan.table.instances)}
        parts = [count_of(n, name) for name, n in (counts | {"run": plan.runs}).items()]
        of_each = f"of each, budget {plan.spending.budget:g}; best mean reward: {best['setting']}"
        is_clear = all(row["difference_clear"] for row in others)
        return f"Comparison: {', '.join(parts)} {of_each}{'' if is_clear else ', not clearly'}"

    def ranking(self) -> list[dict[str, Any]]:
        """One row per setting, averaged over the instances, best first; see :meth:`table`."""
        return [row for row in self.table() if row["scope"] == "overall"]

    def table(self) -> list[dict[str, Any]]:
        """Rows ``overall`` (instances weighted equally), then rows ``instance``, by mean reward.

        A row has ``scope``, ``instance``, ``arms``, ``rank``, ``setting``, ``runs``; for each of
        ``reward``, ``regret``, ``pulls``, ``spent`` the mean over the runs and the 95 % interval
        (``reward``, ``reward_low``, ``reward_high``), each by itself
        (:func:`~jaxbandits.statistics.mean`).

        ``difference`` is the reward minus that of rank 1 in the same world, run by run; the
        intervals of all differences in a scope hold at once with 95 %
        (:func:`~jaxbandits.statistics.dominance`), and ``difference_clear`` says whether it leaves
        out 0.
        """
        return [dict(row) for row in self._rows]

    def to_pandas(self) -> pandas.DataFrame:
        """:meth:`table` as a data frame; ``.attrs["units"]`` has the file's units of its columns."""
        table = self.plan.table
        units = dict.fromkeys(("reward", "regret", "difference"), table.reward_unit)
        return tools.of_rows(self.table(), units | {"spent": table.cost_unit, "pulls": "pulls"})

    def doubts(self) -> list[str]:
        """Warnings: mean regrets that depend on a few runs, and too few runs."""
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
        last = {name: self.data[name] for name in ("reward", "regret", "pulls", "spent")}
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
        """Differences to the best, and whether they are clear, ``[setting, scope]``."""
        places = np.atleast_1d(best.values)
        parts = [reward.isel(each=i) for i in range(places.size)] if best.dims else [reward]
        pairs = (dominance(part, over="replicate") for part in parts)
        tables = [table.isel(against=at) for table, at in zip(pairs, places, strict=True)]
        return {
            f"difference_{x}".removesuffix("_difference"): np.stack([t[x] for t in tables], -1)
            for x in ("difference", "low", "high", "clear")
        }

    def numbers(self, about: Mapping[str, Any] | None = None) -> dict[str, bytes]:
        """The contents of the files other than the picture; ``about`` goes into ``run.json``."""
        run = json.dumps({**(about or {}), **self.about()}, indent=2) + "\n"
        rows = self.table()
        table = Table(tuple(rows[0]), [tuple(row.values()) for row in rows]).csv()
        return {"run.json": run.encode(), "table.csv": table.encode()}

    def about(self) -> dict[str, Any]:
        """Everything needed to repeat the comparison, for ``run.json``."""
        from jaxbandits import __version__

        plan, table = self.plan, self.plan.table
        worlds, spending = plan.worlds, plan.spending
        of_file = ("sha256", "kind", "notes", "reward_unit", "cost_unit")
        file = {name: getattr(table, name) for name in of_file}
        return {
            "arms_file": {"path": plan.table.path, **file},
            **{name: getattr(spending, name) for name in ("budget", "last_pull")},
            "noise": worlds.noise,
            "means": "drawn" if worlds.posterior else "given",
            "cost_cv": worlds.posterior.cost_cv if worlds.posterior else None,
            "runs": plan.runs,
            "seed": worlds.seed,
            "marks": list(spending.shares),
            "start": plan.played.starts or "nothing",
            "growth": "none" if spending.supply.growth is None else spending.supply.growth,
            "decide": plan.played.day or "per-click",
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
    """Write files into a folder, created if missing, each whole or not at all; return the paths."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        tools.write_whole(Path(folder) / name, lambda file, content=content: file.write(content))
    return [Path(folder) / name for name in contents]


# --- The runs


@door
def compare(
    arms: str | os.PathLike[str] | ArmsTable,
    budget: float,
    policies: Policy | Sequence[Policy],
    *,
    progress: bool | str = False,
    **options: Any,
) -> Comparison:
    """Simulate policies that spend a budget on each instance of an arms file, and rank them.

    A pull's reward and cost are r · reward_bound and c · cost_bound with r, c in [0, 1] drawn by
    the chosen noise, so that their means are those of the file; where the file has counts or is a
    log, each run's true means are drawn from their posterior
    (:mod:`jaxbandits.apps.comparison.worlds`), the same for all policies. Each run starts with the
    whole budget and ends when it is spent. Its regret is max_k (μ^r_k / μ^c_k) · Σ_t μ^c_{a_t} −
    Σ_t μ^r_{a_t}, in the file's unit of reward (what the best purchase earns for the same money,
    minus what was earned). All settings face the same world; an instance's world depends only on
    the seed, its number in the file and the run.

    Args:
        arms: an arms file, a data frame, or what
            :func:`~jaxbandits.apps.comparison.read_arms` returned.
        budget: B > 0 for each instance, in the file's unit of cost; 2⁻²⁴ to 2³⁰ times the bound of
            the costs.
        policies: one policy for finitely many arms or a list; a parameter that is an array makes
            several settings.
        options: the following, with the defaults of :class:`~jaxbandits.apps.comparison.Request`.
        runs: independent runs of each setting on each instance, 1 to 2³² − 1 (1000, or down to 200
            where days are simulated and take long).
        seed: 0 to 2³² − 1; the same seed gives the same numbers.
        noise: the outcomes of a pull, given its means. ``"bernoulli"``: the whole bound or nothing,
            reward and cost independent (default for means and revenue). ``"clicks"``: a click
            earns one conversion or none, and costs its price, drawn uniformly around its mean
            (default for counts of conversions, only for them). ``"empirical"``: a row of the arm's
            log, reward and cost together (default for logs, only for them).
        start: ``"file"``: policies that learn by sums start from the file's counts for each arm
            (as :func:`~jaxbandits.policies.experienced`); ``"nothing"``: they start without data.
        growth: an arm sells at most so many times what it sold in the file, in the time that goes
            with the money: n_k pulls for S of money are up to growth · n_k · B / S pulls here. A
            log has growth times its requests, of all arms together. An arm that is sold out closes;
            the regret is against what can be bought. Default 2, for a log 1; ``"none"``: no limit.
            Not for means only, or for a policy that pulls several arms at once.
        decide: ``"daily"`` (or as often as the file has rows) or ``"per-click"``: when policies see
            their outcomes (:class:`~jaxbandits.policies.InBatches`). Default: daily if a file of
            counts has days, unless that takes long to simulate.
        last_pull: the pull that exceeds the budget ``"counts"`` or ``"forfeits"`` its reward.
        marks: at how many equally spaced shares of the budget to record the regret, or the shares,
            ending in 1.
        columns, drop, wide, decimal, encoding:
            as in :func:`~jaxbandits.apps.comparison.read_arms`; left out with a table.
        cost_cv: coefficient of variation of one pull's cost; default from its days, else 0.5.
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
    """Simulate everything.

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
    size, settings = plans.block_size(plan), len(plan.played.labels)
    blocks = [range(first, first + size) for first in range(0, plan.runs - size, size)]
    blocks.append(range(plan.runs - size, plan.runs))
    lanes = settings * len(plan.table.instances) * plan.runs
    names = [of.name or type(of.policy).__name__ for of in plan.played.policies]
    parts = list[dict[str, np.ndarray]]()
    with Progress(progress, len(blocks) * len(names), lanes, names) as bar:
        try:
            parts += [_simulated(plan, runs, bar) for runs in blocks]
        except KeyboardInterrupt:
            raise Interrupted(bar.done, bar.runs) from None
    return _comparison(plan, _joined(plan, blocks, parts))


_RUN_AXIS = {"earned": 1, "mean reward": 1, "mean cost": 1}  # elsewhere it is the third axis


def _simulated(plan: ComparisonPlan, runs: range, bar: Progress) -> dict[str, np.ndarray]:
    """Rewards, regret, … of one block in the file's units: ``[setting, instance, replicate, …]``."""
    instances, draws_means = plan.table.instances, plan.worlds.posterior is not None
    rows = list(range(len(instances)))
    env_rows = list(np.repeat(rows, len(runs))) if draws_means else rows  # rows of the environment
    arms: Any = plan.worlds.arms(plan.table, runs)
    lanes = [instances[row] for row in env_rows]
    budgets = plan.spending.budget / np.array([x.cost_bound for x in lanes])
    supply = plan.spending.supply
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\d+ of \d+ lanes ended")  # counted in the notes
        result = simulate(
            plan.played.of_instances(env_rows, arms.spec, plan.table),
            supply.world(arms, env_rows),
            TotalBudget(budgets, last_pull=plan.spending.last_pull),
            key=jax.random.key(plan.worlds.seed),
            replicates=np.tile(runs, len(rows))[:, None] if draws_means else runs,
            marks=plan.spending.shares,
            instance_ids=env_rows,
            instance_names=[instance.name for instance in lanes],
            progress=bar,
        )

    def by_run(x: np.ndarray) -> np.ndarray:
        return x.reshape(x.shape[0], len(rows), len(runs), *x.shape[3:])

    reward, cost = (
        np.array([getattr(x, f"{name}_bound") for x in instances])[None, :, None]
        for name in ("reward", "cost")
    )
    regret = result.regret.values
    if supply.requests:
        # Money and requests are used at one pace: against an even share of what both can earn.
        regret = result.budget_regret(budgets).values
    earned = by_run(result.reward.values) * reward[..., None]
    pulls, of_run = by_run(result.final["pulls"]), (len(rows), -1, arms.spec.arms)
    kept = max(0, max(1, _MOST_COUNTS // pulls[:, :, 0].size) - runs.start)
    reward_mean, cost_mean = (
        ticks.to_units(np.asarray(x) * np.asarray(arms.present)).reshape(of_run)
        for x in (arms.mean_reward, arms.mean_cost)
    )
    return {
        "reward": earned[..., -1],
        "regret": by_run(regret) * reward[..., None],
        "pulls": pulls.sum(axis=-1),
        "spent": by_run(result.spent.values)[..., -1] * cost,
        "ended": by_run(result.ended),
        "earned": earned.sum(axis=1),
        "arm pulls": pulls[:, :, :kept],
        "mean reward": (reward_mean * reward[0][..., None])[:, :kept],
        "mean cost": (cost_mean * cost[0][..., None])[:, :kept],
    }


def _joined(
    plan: ComparisonPlan, blocks: Sequence[range], parts: Sequence[dict[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """All runs of the plan. The last two blocks may share runs, to the same bits."""
    shared = blocks[-2].stop - blocks[-1].start if len(blocks) > 1 else 0
    columns = dict[str, np.ndarray]()
    for name in parts[0]:
        *first, last = (part[name] for part in parts)
        axis = _RUN_AXIS.get(name, 2)
        own = last[(slice(None),) * axis + (slice(shared, None),)]
        columns[name] = np.concatenate([*first, own], axis)
    if plan.worlds.posterior is None:  # one mean for all runs
        columns |= {name: parts[0][name] for name in ("mean reward", "mean cost")}
    return columns


def _comparison(plan: ComparisonPlan, columns: dict[str, np.ndarray]) -> Comparison:
    """Labelled, with notes on runs that ended early."""
    import xarray

    axes, table, spending = ("setting", "instance", "replicate", "mark"), plan.table, plan.spending
    of_arms = ("arm pulls", "mean reward", "mean cost", "earned")
    accounts = Accounts(*(columns.pop(name) for name in of_arms))
    units = {"reward": table.reward_unit, "regret": table.reward_unit, "spent": table.cost_unit}
    ended, instances = columns.pop("ended"), [instance.name for instance in table.instances]
    names = list(plan.played.labels), instances, np.arange(plan.runs), list(spending.shares)
    data = {x: (axes[: y.ndim], y, {"units": units.get(x, x)}) for x, y in columns.items()}
    usual = {Status.EXHAUSTED} | ({Status.CLOSED} if spending.supply.requests else set())
    notes = [
        f"{int((ended == status).sum())} of {ended.size} runs ended by {status.name.lower()}, not with the budget"
        for status in Status
        if status not in usual and (ended == status).any()
    ]
    labelled = xarray.Dataset(data, coords=dict(zip(axes, names, strict=True)))
    return Comparison(labelled, plan, accounts, tuple(notes))
