"""What a comparison found: where the money went, the ranking, a picture, files, and the way to the report."""

from __future__ import annotations

import functools
import json
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jaxlib
import numpy as np
from numpy.typing import NDArray

from jaxbandits import _files
from jaxbandits._drawing import Drawing
from jaxbandits._tables import Table, counted
from jaxbandits.comparison.arms_table import money
from jaxbandits.comparison.plan import ComparisonPlan
from jaxbandits.comparison.until import Clearness
from jaxbandits.core.checks import bad
from jaxbandits.statistics import dominance, invisible, mean, runs_needed, simultaneous_band

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,unused-ignore]
    import xarray

    from jaxbandits.comparison.answer import Answer

FloatArray = NDArray[np.float64]
FILES = ("regret.png", "table.csv", "run.json")
ANSWER_FILES = ("answer.json", "arms.csv", "money.png", "results.png", "report.html")


@dataclass(frozen=True, eq=False)
class Accounts:
    """Where the money of some settings went, in the file's units; 0 for an arm that an instance does not have."""

    pulls: NDArray[np.int32]  # [setting, instance, run, arm], of the first runs
    mean_reward: FloatArray  # true means per pull, [instance, run or 1, arm]
    mean_cost: FloatArray  # the same; with several costs [instance, run or 1, arm, d]
    earned: FloatArray  # reward up to each mark, summed over the instances, [setting, run, mark]

    def money(self, setting: int) -> FloatArray:
        """Expected money of each arm given how often it was pulled, ``[instance, run, arm]``.

        Its mean over runs is that of the money spent (Wald), with less noise.
        """
        return self.pulls[setting] * money(self.mean_cost, 3)

    def spent2(self, setting: int) -> FloatArray:
        """The same of the second cost."""
        return self.pulls[setting] * self.mean_cost[..., 1]

    def results(self, setting: int) -> FloatArray:
        """Expected reward of each arm given how often it was pulled, ``[instance, run, arm]``."""
        return self.pulls[setting] * self.mean_reward


@dataclass(frozen=True, eq=False)
class Comparison:
    """What every policy setting made of the budget, in the file's units.

    Attributes:
        data: labelled arrays ``[setting, instance, replicate]``: ``reward``, ``pulls`` and ``spent`` of a whole run;
            ``regret`` ``[setting, instance, replicate, mark]``, the pseudo-regret (best reward per cost · expected cost
            − expected reward) when the share ``mark`` of the budget was spent.
        plan: what was run.
        accounts: pulls, money and results of each arm.
        play: what plays a plan like this one; :meth:`answer` plays other noises and splits with it.
        baselines: the splits that were played with it, if any were.
        notes: runs that did not end by spending the budget. Mostly empty.
        broken: settings that broke an average-cost bound in some round.
        clear: which claims are clear, where runs were played until they are.
    """

    data: xarray.Dataset
    plan: ComparisonPlan
    accounts: Accounts
    play: Callable[..., Comparison]
    notes: tuple[str, ...] = ()
    broken: frozenset[str] = frozenset()
    clear: Clearness | None = None
    baselines: Comparison | None = None

    def __repr__(self) -> str:
        plan, best = self.plan, self.ranking()[0]["setting"]
        parts = counted(len(plan.settings), "setting"), counted(len(plan.table.instances), "instance")
        runs = f"{counted(plan.runs, 'run')} of each, budget {' and '.join(f'{x:g}' for x in plan.budgets)}"
        return f"Comparison: {', '.join(parts)}, {runs}; best mean reward: {best}"

    def ranking(self) -> list[dict[str, Any]]:
        """One row per setting, averaged over the instances, best mean reward first; see :meth:`table`."""
        return [row for row in self.table() if row["scope"] == "overall"]

    def table(self) -> list[dict[str, Any]]:
        """Rows ``overall`` (every instance weighs the same), then rows ``instance``, each ranked by mean reward.

        A row has ``scope``, ``instance``, ``arms``, ``rank``, ``setting``, ``runs``; for each of ``reward``,
        ``regret``, ``pulls``, ``spent`` the mean over the runs and the 95 % interval (``reward``, ``reward_low``,
        ``reward_high``), and ``difference`` with its interval: the reward minus that of rank 1 in the same world, run
        by run. These intervals are those of :func:`~jaxbandits.statistics.mean`, each by itself.

        With many settings, some interval leaves out 0 by chance. ``difference_p`` is the p-value of that difference
        after Holm's correction for all pairs of settings (:func:`~jaxbandits.statistics.dominance`), and
        ``difference_clear`` whether it is at most 5 %. ``more_runs`` says how many more runs would probably (80 %) make
        it clear if it is what it now seems to be (:func:`~jaxbandits.statistics.runs_needed`, at 5 % over the number of
        pairs): 0 where it is clear, inf where there is none; ``more_runs_least`` and ``more_runs_most`` for the ends of
        the interval of the difference.
        """
        return [dict(row) for row in self._rows]

    def to_pandas(self) -> pandas.DataFrame:
        """:meth:`table` as a data frame; ``.attrs["units"]`` has the file's units of its columns."""
        table = self.plan.table
        earned = dict.fromkeys(("reward", "regret", "difference"), table.reward_unit)
        return _files.of_rows(self.table(), earned | table.spent_units | {"pulls": "pulls"})

    def doubts(self) -> list[str]:
        """Settings whose mean regret a few runs carry, and whether the runs are too few, in words; mostly none."""
        last = self.data["regret"].isel(mark=-1, drop=True)
        found = []
        for name in self.plan.settings:
            kinds = dict(text.split(": ", 1) for text in mean(last.sel(setting=name), over="replicate").warnings)
            if "few units" in kinds:
                return [kinds["few units"]]
            found += [f"regret of {name}: {kinds['heavy tail']}"] if "heavy tail" in kinds else []
        return found

    @functools.cached_property
    def _rows(self) -> list[dict[str, Any]]:
        last = {name: self.data[name] for name in ("reward", "regret", "pulls", *self.plan.table.spent_units)}
        last["regret"] = last["regret"].isel(mark=-1, drop=True)
        each = {name: x.rename(instance="each") for name, x in last.items()}
        return [row for part in (last, each) for row in self._ranked(part)]

    def _ranked(self, last: Mapping[str, xarray.DataArray]) -> list[dict[str, Any]]:
        """Rows of all instances together, or, where these are an axis ``each``, of one after the other."""
        reward, apart, settings = last["reward"], "each" in last["reward"].dims, list(self.plan.settings)
        found = {name: mean(x, over="replicate") for name, x in last.items()}
        best = found["reward"].value.argmax("setting")
        against = reward.isel(setting=best).drop_vars("setting")
        found["difference"] = mean(reward - against, over="replicate")
        ends = {
            f"{name}{end}": getattr(estimate, part).values.reshape(len(settings), -1)
            for name, estimate in found.items()
            for end, part in (("", "value"), ("_low", "low"), ("_high", "high"))
        }
        ends |= self._tested(reward, against, np.atleast_1d(best.values))
        rows = []
        for scope in range(ends["reward"].shape[1]):
            here = self.plan.table.instances[scope : scope + 1] if apart else self.plan.table.instances
            where = ("instance", here[0].name) if apart else ("overall", "")
            about = {"scope": where[0], "instance": where[1], "arms": sum(len(instance.arms) for instance in here)}
            for rank, at in enumerate(np.argsort(-ends["reward"][:, scope], kind="stable"), start=1):
                named = {"rank": rank, "setting": settings[at], "runs": self.plan.runs}
                rows.append(about | named | {name: values[at, scope].item() for name, values in ends.items()})
        return rows

    def _tested(self, reward: xarray.DataArray, against: xarray.DataArray, best: NDArray) -> dict[str, NDArray]:
        """Whether differences to the best are clear, and how many more runs would make them so, ``[setting, scope]``.

        Here and in the answer a difference is called clear by one test: Holm's, over all pairs of its table.
        """
        runs, count = self.plan.runs, reward.sizes["setting"]
        unknown = np.full((count, best.size), np.nan)
        if runs < 2:
            more = dict.fromkeys(("more_runs", "more_runs_least", "more_runs_most"), unknown)
            return {"difference_p": unknown, "difference_clear": np.zeros(unknown.shape, bool), **more}
        alone = [reward.isel(each=i) for i in range(best.size)] if "each" in reward.dims else [reward]
        tables = [(dominance(part, over="replicate"), at) for part, at in zip(alone, best, strict=True)]
        p, clear = (np.stack([table[x].values[:, at] for table, at in tables], -1) for x in ("adjusted", "clear"))
        needed = runs_needed(reward, against, level=1 - 0.05 / max(1, count * (count - 1) // 2))
        more = {"more_runs": needed["more"].values}
        for end in ("least", "most"):
            more[f"more_runs_{end}"] = np.maximum(needed[end].values - runs, 1.0)
        more = {name: np.where(clear, 0.0, x.reshape(unknown.shape)) for name, x in more.items()}
        return {"difference_p": p, "difference_clear": clear, **more}

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
        picture = self.drawing(form).draw()
        _files.write_whole(path, lambda file: file.write(picture))

    def drawing(self, form: str = "png") -> Drawing:
        """The picture of :meth:`plot`, not drawn yet."""
        # Fewer resamples where there are very many runs, which need fewer and make each dearer.
        table, count, regret = self.plan.table, len(self.plan.table.instances), self.data["regret"]
        resamples = int(np.clip(2e8 / (count * self.plan.runs), 200, 1000))
        found = simultaneous_band(regret, over="replicate", resamples=resamples)
        many = f"mean of {count} instances, " if count > 1 else ""
        takes = dict(
            x=np.asarray(self.plan.shares) * self.plan.budget,
            names=list(self.plan.settings),
            parts=[found[part].transpose("setting", "mark").values for part in ("mean", "low", "high")],
            title=f"{many}{counted(self.plan.runs, 'run')} each; a band holds its whole curve at 95 %",
            across="budget spent per instance" + (f" [{table.cost_unit}]" if table.cost_unit != "spent" else ""),
            up=f"regret [{table.reward_unit}]",
        )
        return Drawing("drawn", takes, form)

    def csv(self) -> str:
        """:meth:`table` as text of a CSV file; the same bytes for the same plan on the same machine."""
        rows = self.table()
        return Table(tuple(rows[0]), [tuple(row.values()) for row in rows]).csv()

    def save(self, folder: str | os.PathLike[str], about: Mapping[str, Any] | None = None) -> list[Path]:
        """Write ``regret.png``, ``table.csv`` and ``run.json`` into a folder, which is made if missing.

        Everything is made in memory first, and every file is put in place whole.

        Args:
            folder: where to.
            about: more entries for ``run.json``.
        """
        put_all(folder, {**self.numbers(about), "regret.png": self.drawing().draw()})
        return [Path(folder) / name for name in FILES]

    def numbers(self, about: Mapping[str, Any] | None = None) -> dict[str, bytes]:
        """The files without a picture; ``run.json`` is the first, which says whose the others are."""
        run = json.dumps({**(about or {}), **self.about()}, indent=2) + "\n"
        return {"run.json": run.encode(), "table.csv": self.csv().encode()}

    def answer(self, *settings: str, check: bool = True, progress: bool | str = False) -> Answer:
        """What the best setting makes of the money; see :func:`~jaxbandits.comparison.answer_of`."""
        from jaxbandits.comparison.answer import answer_of

        return answer_of(self, settings, check=check, progress=progress)

    def report(self, folder: str | os.PathLike[str], *settings: str, check: bool = True) -> list[Path]:
        """:meth:`save`, and the answer beside it: ``report.html``, pictures, ``arms.csv`` and ``answer.json``.

        Args:
            folder: where to.
            settings: for which settings or policies, beside the best.
            check: play a second noise, to see whether the ranking depends on it.
        """
        from jaxbandits.comparison.report import answer_files, drawings

        answer = self.answer(*settings, check=check)
        made = answer_files(answer, {name: drawing.draw() for name, drawing in drawings(answer)})
        return [*self.save(folder), *put_all(folder, made)]

    def about(self) -> dict[str, Any]:
        """Everything needed to repeat the comparison: what goes into ``run.json``."""
        from jaxbandits import __version__

        plan, table = self.plan, self.plan.table
        file = {name: getattr(table, name) for name in ("sha256", "kind", "notes", "reward_unit", "cost_unit")}
        bounds = ("reward_bound", "cost_bound")
        return {
            "arms_file": {"path": plan.source, **file},
            **{name: getattr(plan, name) for name in ("budget", "last_pull", "noise", "uncertainty")},
            **({"budgets": plan.budgets} if len(plan.budgets) > 1 else {}),
            "cost_cv": plan.cost_cv if plan.noise == "clicks" or plan.posterior is not None else None,
            "average_cost": plan.average_cost,
            "beta_concentration": plan.beta_concentration if plan.noise == "beta" else None,
            "runs": plan.runs,
            "until": None if self.clear is None else self.clear.about(),
            "seed": plan.seed,
            "marks": list(plan.shares),
            "settings": [{"label": name, **what} for name, what in plan.settings.items()],
            "instances": [
                {"id": number, "name": of.name, "arms": len(of.arms), **{name: getattr(of, name) for name in bounds}}
                for number, of in enumerate(table.instances)
            ],
            "notes": list(self.notes),
            "warnings": self.doubts(),
            "invisible": invisible(plan.runs),
            "versions": {
                "jaxbandits": __version__,
                "jax": jax.__version__,
                "jaxlib": jaxlib.__version__,
                "numpy": np.__version__,
                "python": platform.python_version(),
            },
            "backend": jax.default_backend(),
        }


def put_all(folder: str | os.PathLike[str], contents: Mapping[str, bytes]) -> list[Path]:
    """Write files into a folder, which is made if missing, each put in place whole; their paths."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        _files.write_whole(Path(folder) / name, lambda file, content=content: file.write(content))
    return [Path(folder) / name for name in contents]
