"""The main job: which policy, with which parameter, spends a budget best, and how sure are we?

Like :func:`jaxbandits.simulate`, but in the units of an arms file: it divides by the bounds on the way in, multiplies
on the way out, runs instances of different K in few compiles, and ranks the settings.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import itertools
import json
import os
import platform
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jaxlib
import numpy as np

from jaxbandits import ticks
from jaxbandits.arms_file import ArmsTable, Instance, read_arms
from jaxbandits.beta import MOST_SHAPE
from jaxbandits.constraints import LAST_PULLS, TotalBudget
from jaxbandits.environments.finite import FiniteArms, FiniteSpec
from jaxbandits.errors import InputError, bad, positive_number, shown, whole_number
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
from jaxbandits.printable import cell as printable_cell
from jaxbandits.progress import Progress, check_progress
from jaxbandits.protocol import Policy, Status, map_leaves
from jaxbandits.result import Result, write_whole
from jaxbandits.simulate import label, mark_shares, settle, simulate
from jaxbandits.statistics import dominance, mean_interval, paired_difference, runs_needed, simultaneous_band

if TYPE_CHECKING:
    import xarray

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
FILES = ("regret.png", "table.csv", "run.json")

_BETA_ERROR = 0.1  # of a mean: those of tables are right to 1e-5 of the bound, which is much of a small one
# Seconds, measured on two CPU cores. They decide how instances are grouped, never what comes out.
_COMPILE, _ARM_ROUND = 1.5, 5e-9
_ROWS_AT_ONCE = 1 << 21  # (lane, mark) pairs in one call of simulate, about 90 bytes each
_MOST_VALUES = 1 << 29  # float64 in one labelled result


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during :func:`compare`: ``done`` of ``runs`` runs were finished."""

    def __init__(self, done: int, runs: int):
        super().__init__(f"{done} of {runs} runs finished")
        self.done, self.runs = done, runs


def compare(
    arms: str | os.PathLike[str] | ArmsTable, budget: float, policies: Policy | Sequence[Policy], **options: Any
) -> Comparison:
    """Spend the budget on every instance of an arms file with every policy setting, many times, and rank them.

    A pull's reward and cost are r · reward_bound and c · cost_bound with r, c in [0, 1] drawn by the chosen noise, so
    that their means are those of the file. Each run starts with the whole budget and ends when it is spent. All
    settings meet the same world; an instance's world depends on the seed, its place in the file and the run only.

    Args:
        arms: an arms file (see :mod:`jaxbandits.arms_file`), or what :func:`~jaxbandits.arms_file.read_arms` returned.
        budget: B > 0 for each instance, in the file's unit of cost.
        policies: one policy or a list; a parameter that is an array makes several settings.
        **options: see :func:`prepare`, which documents them; and ``progress``: show a bar on stderr.

    Returns:
        A :class:`Comparison`, in the file's units.

    Raises:
        InputError: naming the argument, its value and what it may be, before anything is compiled.
        Interrupted: at Ctrl-C, with the number of finished runs.

    Example:
        >>> import numpy as np
        >>> from jaxbandits.arms_file import ArmsTable, Instance
        >>> from jaxbandits.policies import BudgetedThompson, OmegaUCB
        >>> ads = Instance("ads", ("a", "b"), np.array([0.2, 0.1]), np.array([0.5, 0.9]), 1.0, 1.0, None)
        >>> table = ArmsTable("means", (ads,), (), "reward", "cost")
        >>> found = compare(table, 20.0, [OmegaUCB(rho=[0.25, 1.0]), BudgetedThompson()], runs=8)
        >>> found.data["reward"].sizes["setting"], [row["rank"] for row in found.ranking()]
        (3, [1, 2, 3])
    """
    progress = options.pop("progress", False)
    return prepare(arms, budget, policies, **options).run(progress=progress)


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """Instances that run in one compile: their places in the table, and their arms, padded to the widest."""

    places: tuple[int, ...]
    environment: FiniteArms


@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
    """A checked comparison, ready to :meth:`run`. Made by :func:`prepare`, whose arguments the attributes are.

    Attributes:
        source: path of the arms file, None if an :class:`~jaxbandits.arms_file.ArmsTable` was given.
        sha256: of the arms file.
        settings: labels of the policy settings, such as ``omega_ucb(rho=0.25)``, with their classes and parameters.
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

    def run(self, *, progress: bool = False) -> Comparison:
        """Simulate everything.

        Raises:
            Interrupted: at Ctrl-C.
        """
        check_progress(progress)
        lanes = len(self.settings) * len(self.table.instances) * self.runs
        blocks = [(group, runs) for group in self.groups for runs in self._blocks(group)]
        with Progress(progress, len(blocks) * len(self.policies), lanes) as shown:
            try:
                return self._collect([(group, runs, self._simulated(group, runs, shown)) for group, runs in blocks])
            except KeyboardInterrupt:
                raise Interrupted(shown.done, shown.runs) from None

    def _blocks(self, group: Group) -> list[range]:
        """Replicates in equal blocks, so that the exact accounts of one block fit in memory."""
        rows = self.runs * len(self.settings) * len(group.places) * len(self.shares)
        size = -(-self.runs // max(1, -(-rows // _ROWS_AT_ONCE)))
        return [range(first, min(first + size, self.runs)) for first in range(0, self.runs, size)]

    def _simulated(self, group: Group, runs: range, shown: Progress) -> dict[str, np.ndarray]:
        """Rewards, regret, … of one block in the file's units: ``[setting, instance, replicate(, mark)]``."""
        places = list(group.places)
        instances = [self.table.instances[place] for place in places]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"\d+ of \d+ lanes ended")  # counted in the notes
            result = simulate(
                [_for_instances(policy, places) for policy in self.policies],
                group.environment,
                TotalBudget(self.scaled_budgets[places], last_pull=self.last_pull),
                key=jax.random.key(self.seed),
                replicates=runs,
                marks=self.shares,
                instance_ids=places,
                instance_names=[instance.name for instance in instances],
                progress=shown,
            )
        return _in_user_units(result, instances)

    def _collect(self, parts: list[tuple[Group, range, dict[str, np.ndarray]]]) -> Comparison:
        import xarray

        shape = (len(self.settings), len(self.table.instances), self.runs)
        made: dict[str, np.ndarray] = {}
        for group, runs, values in parts:
            for name, value in values.items():
                into = made.setdefault(name, np.zeros((*shape, *value.shape[3:]), value.dtype))
                into[:, list(group.places), runs.start : runs.stop] = value
        axes = ("setting", "instance", "replicate", "mark")
        units = {"reward": self.table.reward_unit, "regret": self.table.reward_unit, "spent": self.table.cost_unit}
        ended = made.pop("ended")
        data = xarray.Dataset(
            {name: (axes[: x.ndim], x, {"units": units.get(name, name)}) for name, x in made.items()},
            coords={
                "setting": list(self.settings),
                "instance": [instance.name for instance in self.table.instances],
                "replicate": np.arange(self.runs),
                "mark": list(self.shares),
            },
        )
        notes = tuple(
            f"{int((ended == status).sum())} of {ended.size} runs ended by {status.name.lower()}, not with the budget"
            for status in Status
            if status != Status.EXHAUSTED and (ended == status).any()
        )
        return Comparison(data, self, notes)


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """What every policy setting made of the budget, in the file's units.

    Attributes:
        data: labelled arrays ``[setting, instance, replicate]``: ``reward``, ``pulls`` and ``spent`` of a whole run;
            ``regret`` ``[setting, instance, replicate, mark]``, the pseudo-regret (best reward per cost · expected cost
            − expected reward) when the share ``mark`` of the budget was spent.
        plan: what was run.
        notes: runs that did not end by spending the budget. Mostly empty.
    """

    data: xarray.Dataset
    plan: Plan
    notes: tuple[str, ...] = ()

    def ranking(self) -> list[dict[str, Any]]:
        """One row per setting, averaged over the instances, best mean reward first; see :meth:`table`."""
        return [row for row in self.table() if row["scope"] == "overall"]

    def table(self) -> list[dict[str, Any]]:
        """Rows ``overall`` (every instance weighs the same), then rows ``instance``, each ranked by mean reward.

        A row has ``scope``, ``instance``, ``arms``, ``rank``, ``setting``, ``runs``; for each of ``reward``,
        ``regret``, ``pulls``, ``spent`` the mean over the runs and the 95 % interval (``reward``, ``reward_low``,
        ``reward_high``), and ``difference`` with its interval: the reward minus that of rank 1 in the same world, run
        by run. These intervals are those of :func:`~jaxbandits.statistics.mean_interval`, each by itself.

        With many settings, some interval leaves out 0 by chance. ``difference_p`` is the p-value of that difference
        after Holm's correction for all pairs of settings (:func:`~jaxbandits.statistics.dominance`), and
        ``difference_clear`` whether it is at most 5 %. ``more_runs`` says how many more runs would probably (80 %) make
        it clear if it is what it now seems to be (:func:`~jaxbandits.statistics.runs_needed`, at 5 % over the number of
        pairs): 0 where it is clear, inf where there is none.
        """
        return [dict(row) for row in self._rows]

    @functools.cached_property
    def _rows(self) -> list[dict[str, Any]]:
        last = {name: self.data[name] for name in ("reward", "pulls", "spent")}
        last["regret"] = self.data["regret"].isel(mark=-1, drop=True)
        rows = []
        for overall in (True, False):
            found = {
                name: mean_interval(last[name], average_instances=overall)
                for name in ("reward", "regret", "pulls", "spent")
            }
            best = found["reward"]["mean"].argmax("setting")
            against = last["reward"].isel(setting=best).drop_vars("setting")
            found["difference"] = self._against(last["reward"], against, best, overall)
            places: Sequence[int | None] = [None] if overall else range(len(self.plan.table.instances))
            for place in places:
                here = found if place is None else {name: x.isel(instance=place) for name, x in found.items()}
                rows += self._ranked(here, place)
        return rows

    def _against(
        self, reward: xarray.DataArray, against: xarray.DataArray, best: xarray.DataArray, overall: bool
    ) -> xarray.Dataset:
        """Differences to the best setting: single intervals, and p-values over all pairs."""
        import xarray

        single = paired_difference(reward, against, average_instances=overall)
        if self.plan.runs < 2:
            nothing = xarray.full_like(single["mean"], np.nan)
            return single.assign(p=nothing, clear=xarray.zeros_like(single["clear"]), more=nothing)
        alone = [reward] if overall else [reward.isel(instance=i) for i in range(reward.sizes["instance"])]
        tables = [dominance(part, over="replicate") for part in alone]
        pairs = max(1, reward.sizes["setting"] * (reward.sizes["setting"] - 1) // 2)
        level = 1 - 0.05 / pairs
        parts = zip(tables, np.atleast_1d(best.values), strict=True)
        columns = [(table["adjusted"].values[:, i], table["clear"].values[:, i]) for table, i in parts]
        p, clear = (np.stack(part, axis=-1).reshape(single["mean"].shape) for part in zip(*columns, strict=True))
        wanted = reward if overall else reward.rename(instance="each")
        other = against if overall else against.rename(instance="each")
        more = runs_needed(wanted, other, level=level)["more"].values
        axes = single["mean"].dims
        return single.assign(p=(axes, p), clear=(axes, clear), more=(axes, np.where(clear, 0.0, more)))

    def _ranked(self, found: Mapping[str, xarray.Dataset], place: int | None) -> list[dict[str, Any]]:
        instances = self.plan.table.instances
        means = {name: {part: np.atleast_1d(x[part].values) for part in x.data_vars} for name, x in found.items()}
        rows = []
        for rank, at in enumerate(np.argsort(-means["reward"]["mean"], kind="stable"), start=1):
            row: dict[str, Any] = {
                "scope": "overall" if place is None else "instance",
                "instance": "" if place is None else instances[place].name,
                "arms": sum(len(i.arms) for i in instances) if place is None else len(instances[place].arms),
                "rank": rank,
                "setting": list(self.plan.settings)[at],
                "runs": self.plan.runs,
            }
            for name, parts in means.items():
                row |= {name: float(parts["mean"][at])}
                row |= {f"{name}_{part}": float(parts[part][at]) for part in ("low", "high")}
            row |= {"difference_p": float(means["difference"]["p"][at])}
            row |= {"difference_clear": bool(means["difference"]["clear"][at])}
            row |= {"more_runs": float(means["difference"]["more"][at])}
            rows.append(row)
        return rows

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the mean regret against the money spent into a picture file (png, pdf or svg).

        The bands are simultaneous: each holds its whole curve at 95 %
        (:func:`~jaxbandits.statistics.simultaneous_band`).

        Raises:
            InputError: another suffix.
        """
        form = Path(path).suffix.lower().lstrip(".")
        if form not in ("png", "pdf", "svg"):
            raise bad("path", os.fspath(path), "a file name that ends in .png, .pdf or .svg")
        picture = self._picture(form)
        write_whole(path, lambda file: file.write(picture))

    def _picture(self, form: str) -> bytes:
        from jaxbandits.plot import curves

        # Fewer resamples where there are very many runs, which need fewer and make each dearer.
        size = self.data["regret"].sizes["instance"] * self.plan.runs
        resamples = int(np.clip(2e8 / size, 200, 1000))
        bands = simultaneous_band(self.data["regret"], over="replicate", resamples=resamples)
        table, count = self.plan.table, len(self.plan.table.instances)
        many = f"mean of {count} instances, " if count > 1 else ""
        return curves(
            np.asarray(self.plan.shares) * self.plan.budget,
            {
                name: (band["mean"].values, band["low"].values, band["high"].values)
                for name, band in ((name, bands.sel(setting=name)) for name in self.plan.settings)
            },
            title=f"{many}{self.plan.runs} run{'s' * (self.plan.runs > 1)} each; a band holds its whole curve at 95 %",
            across="budget spent per instance" + (f" [{table.cost_unit}]" if table.cost_unit != "spent" else ""),
            up=f"regret [{table.reward_unit}]",
            form=form,
        )

    def csv(self) -> str:
        """:meth:`table` as text of a CSV file; the same bytes for the same plan on the same machine."""
        text = io.StringIO()
        rows = self.table()
        writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
        return text.getvalue()

    def save(self, folder: str | os.PathLike[str], about: Mapping[str, Any] | None = None) -> list[Path]:
        """Write ``regret.png``, ``table.csv`` and ``run.json`` into a folder, which is made if missing.

        Everything is made in memory first, and every file is put in place whole.

        Args:
            folder: where to.
            about: more entries for ``run.json``.
        """
        contents = {
            "run.json": (json.dumps({**(about or {}), **self.about()}, indent=2) + "\n").encode(),
            "table.csv": self.csv().encode(),
            "regret.png": self._picture("png"),
        }
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():  # run.json first: it says whose the others are
            write_whole(Path(folder) / name, functools.partial(_put, content))
        return [Path(folder) / name for name in FILES]

    def about(self) -> dict[str, Any]:
        """Everything needed to repeat the comparison: what goes into ``run.json``."""
        from jaxbandits import __version__

        plan = self.plan
        return {
            "arms_file": {
                "path": plan.source,
                "sha256": plan.sha256,
                "kind": plan.table.kind,
                "notes": list(plan.table.notes),
                "reward_unit": plan.table.reward_unit,
                "cost_unit": plan.table.cost_unit,
            },
            "budget": plan.budget,
            "last_pull": plan.last_pull,
            "noise": plan.noise,
            "beta_concentration": plan.beta_concentration if plan.noise == "beta" else None,
            "runs": plan.runs,
            "seed": plan.seed,
            "marks": list(plan.shares),
            "settings": [{"label": name, **what} for name, what in plan.settings.items()],
            "instances": [
                {
                    "id": place,
                    "name": instance.name,
                    "arms": len(instance.arms),
                    "reward_bound": instance.reward_bound,
                    "cost_bound": instance.cost_bound,
                }
                for place, instance in enumerate(plan.table.instances)
            ],
            "notes": list(self.notes),
            "versions": {
                "jaxbandits": __version__,
                "jax": jax.__version__,
                "jaxlib": jaxlib.__version__,
                "numpy": np.__version__,
                "python": platform.python_version(),
            },
            "backend": jax.default_backend(),
        }


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
) -> Plan:
    """Read, check and lay out a comparison without compiling anything; :func:`compare` is this and ``run()``.

    Args:
        arms, budget, policies: as in :func:`compare`.
        runs: independent runs of each setting on each instance, at least 1.
        seed: 0 to 2³² − 1; the same seed gives the same numbers.
        noise: what a pull looks like, with means as in the file. ``"bernoulli"``: the whole bound or nothing, reward
            and cost independent (default for all files but logs). ``"beta"``: Beta distributed between 0 and the bound,
            independent. ``"empirical"``: a row of the arm's log, reward and cost together (default for logs, only for
            them).
        beta_concentration: α + β > 0 of the Beta laws; larger is less noisy.
        last_pull: the pull that exceeds the budget ``"counts"`` or ``"forfeits"`` its reward.
        marks: at how many equally spaced shares of the budget to record the regret, or the shares, ending in 1.
        instances, reward_max, cost_max: as in :func:`~jaxbandits.arms_file.read_arms`.

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
    settings = _settings(chosen, len(table.instances))
    values = len(settings) * len(table.instances) * int(runs) * shares.size
    if values > _MOST_VALUES:
        raise bad(
            "runs", runs, f"at most {_MOST_VALUES * int(runs) // values} with so many settings, instances and marks"
        )
    work = len(settings) * int(runs) * scaled / [instance.scaled_mean_cost.mean() for instance in table.instances]
    groups = tuple(
        Group(places, padded_environment([table.instances[place] for place in places], noise, concentration))
        for places in _grouped([len(instance.arms) for instance in table.instances], work, len(chosen))
    )
    for group in groups:
        _check_costs(group, table, noise)
        for policy in chosen:
            settle(_for_instances(policy, list(group.places)), group.environment)
    return Plan(
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


def _settings(policies: Sequence[Policy], instances: int) -> dict[str, dict[str, Any]]:
    """For each setting's label, which uses the names of :data:`POLICIES`: its class and its parameters (float32)."""
    name_of = {made: name for name, made in POLICIES.items()}
    stand_in = FiniteArms.bernoulli(*np.full((2, instances, 2), 0.5))  # only its number of instances counts
    made: dict[str, dict[str, Any]] = {}
    for policy in policies:
        leaves, count = settle(policy, stand_in)
        kind, name = type(policy).__name__, name_of.get(type(policy), type(policy).__name__)
        for setting in range(count):
            text = name + label(policy, leaves, setting).removeprefix(kind)
            if text in made:
                raise bad("policies", text, "given once: a setting with this label is already there")
            made[text] = {"policy": kind, "parameters": _parameters(leaves, setting)}
    return made


def _parameters(leaves: Policy, setting: int) -> dict[str, Any]:
    values: dict[str, Any] = {}

    def note(name: str, value: Any, meta: Mapping[str, Any]) -> Any:
        exact = np.array([float(str(x)) for x in value[setting].ravel()]).reshape(value[setting].shape)
        values[name] = (exact[0] if exact.shape[0] == 1 else exact).tolist()
        return value

    map_leaves(leaves, note)
    return values


def _for_instances(policy: Policy, places: list[int]) -> Policy:
    """The policy with the columns of these instances where a parameter is ``[setting, instance]``."""

    def chosen(name: str, value: Any, meta: Mapping[str, Any]) -> Any:
        array = np.asarray(value)
        per_instance = array.ndim - meta.get("core", 0) == 2 and array.shape[1] > 1
        return array[:, places] if per_instance else value

    return map_leaves(policy, chosen)


def padded_environment(instances: Sequence[Instance], noise: str, concentration: float) -> FiniteArms:
    """The arms of some instances in scaled units, padded to the widest."""
    if noise == "empirical":
        return FiniteArms.empirical(
            [[(r / i.reward_bound, c / i.cost_bound) for r, c in i.log or ()] for i in instances]
        )
    width = max(len(instance.arms) for instance in instances)
    reward, cost = np.full((2, len(instances), width), 0.5)
    present = np.zeros(reward.shape, bool)
    for row, instance in enumerate(instances):
        arms = slice(len(instance.arms))
        reward[row, arms], cost[row, arms] = instance.scaled_mean_reward, instance.scaled_mean_cost
        present[row, arms] = True
        for what, means in (("reward", reward[row, arms]), ("cost", cost[row, arms])):
            if noise == "beta" and ((means <= 0) | (means >= 1)).any():
                at = int(np.flatnonzero((means <= 0) | (means >= 1))[0])
                raise InputError(
                    f"noise: 'beta' given; it must be 'bernoulli' for mean {what}s at 0 or at their bound, as that of "
                    f"arm {shown(instance.arms[at])} in instance {shown(instance.name)} (or raise --{what}-max)"
                )
            small = (means > 0) & (ticks.from_units(means) == 0)
            if noise == "bernoulli" and small.any():
                at = int(np.flatnonzero(small)[0])
                raise _below_a_tick(instance, at, what)
    if noise == "bernoulli":
        return FiniteArms.bernoulli(reward, cost, present)
    ra, rb, ca, cb = (x * concentration for x in (reward, 1 - reward, cost, 1 - cost))
    arms_of = FiniteArms.beta(ra, rb, ca, cb, present)
    for what, given, played in zip(("reward", "cost"), (reward, cost), arms_of.values(), strict=True):
        for row, arm in np.argwhere(present & (np.abs(played - given) > _BETA_ERROR * given))[:1]:
            place = f"arm {shown(instances[row].arms[arm])} in instance {shown(instances[row].name)}"
            raise InputError(
                f"noise: 'beta' given; it must be 'bernoulli' for a mean {what} of {given[row, arm]:.3g} of its bound, "
                f"as that of {place}, for its table would have the mean {played[row, arm]:.3g} (or lower --{what}-max)"
            )
    return arms_of


def _check_costs(group: Group, table: ArmsTable, noise: str) -> None:
    """An arm whose scaled mean cost rounds to nothing would never spend the budget."""
    _, cost = group.environment.values()
    for row, arm in np.argwhere(cost <= 0)[:1]:
        raise _below_a_tick(table.instances[group.places[row]], int(arm), "cost")


def _below_a_tick(instance: Instance, arm: int, what: str) -> InputError:
    least = getattr(instance, f"{what}_bound") * 2.0**-24
    return bad(
        f"instance {shown(instance.name)}, arm {shown(instance.arms[arm])}, mean {what}",
        float(getattr(instance, f"mean_{what}")[arm]),
        f"at least {least:.3g}, a 2**24th of the bound of the {what}s (lower --{what}-max)",
    )


def _grouped(widths: Sequence[int], work: np.ndarray, policies: int) -> list[tuple[int, ...]]:
    """Places in groups of similar width, the widest first, with least time for compiles and for padding arms.

    A group costs one compile per policy, and every round of its instances (``work``) the group's largest width.
    """
    order = sorted(range(len(widths)), key=lambda place: (widths[place], place))
    levels = [list(places) for _, places in itertools.groupby(order, key=lambda place: widths[place])]
    rounds = np.cumsum([0.0, *(float(sum(work[place] for place in level)) for level in levels)])
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
        groups.append(tuple(sorted(place for level in levels[cut[n] : n] for place in level)))
        n = cut[n]
    return groups


def _in_user_units(result: Result, instances: Sequence[Instance]) -> dict[str, np.ndarray]:
    reward = np.array([instance.reward_bound for instance in instances])[None, :, None]
    cost = np.array([instance.cost_bound for instance in instances])[None, :, None]
    return {
        "reward": result.reward.values[..., -1] * reward,
        "regret": result.regret.values * reward[..., None],
        "pulls": result.rounds.values[..., -1],
        "spent": result.spent.values[..., -1] * cost,
        "ended": result.ended,
    }


def _put(content: bytes, file: Any) -> None:
    file.write(content)


def _cell(value: Any) -> Any:
    """A cell of ``table.csv``: nine digits, more than the order of a sum can change; nothing for a missing interval."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.9g}"
    return printable_cell(value)
