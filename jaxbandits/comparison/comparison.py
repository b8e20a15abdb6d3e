"""What a comparison found: ranking, table, picture, files."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jaxlib
import numpy as np

from jaxbandits._files import frames
from jaxbandits._files.csv_text import csv_text
from jaxbandits._files.files import write_whole
from jaxbandits.comparison.accounts import Accounts
from jaxbandits.comparison.plan import ComparisonPlan
from jaxbandits.comparison.until import Clearness
from jaxbandits.core.errors import bad
from jaxbandits.statistics import (
    dominance,
    invisible,
    mean_interval,
    paired_difference,
    runs_needed,
    simultaneous_band,
)

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,unused-ignore]
    import polars
    import xarray


FILES = ("regret.png", "table.csv", "run.json")


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """What every policy setting made of the budget, in the file's units.

    Attributes:
        data: labelled arrays ``[setting, instance, replicate]``: ``reward``, ``pulls`` and ``spent`` of a whole run;
            ``regret`` ``[setting, instance, replicate, mark]``, the pseudo-regret (best reward per cost · expected cost
            − expected reward) when the share ``mark`` of the budget was spent.
        plan: what was run.
        notes: runs that did not end by spending the budget. Mostly empty.
        accounts: pulls, money and results of each arm.
        broken: settings that broke an average-cost bound in some round.
        clear: which claims are clear, where runs were played until they are.
    """

    data: xarray.Dataset
    plan: ComparisonPlan
    notes: tuple[str, ...] = ()
    accounts: Accounts | None = None
    broken: frozenset[str] = frozenset()
    clear: Clearness | None = None

    def __repr__(self) -> str:
        plan, best = self.plan, self.ranking()[0]["setting"]
        said = f"{len(plan.settings)} settings, {len(plan.table.instances)} instances, {plan.runs:,} runs of each"
        return f"Comparison: {said}, budget {plan.budget:g}; best mean reward: {best}"

    def _repr_html_(self) -> str:
        from jaxbandits._reports.result_html import comparison_html

        return comparison_html(self)

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
        pairs): 0 where it is clear, inf where there is none; ``more_runs_least`` and ``more_runs_most`` for the ends of
        the interval of the difference.
        """
        return [dict(row) for row in self._rows]

    def to_pandas(self) -> pandas.DataFrame:
        """:meth:`table` as a data frame; ``.attrs["units"]`` has the file's units of its columns."""
        table = self.plan.table
        earned = dict.fromkeys(("reward", "regret", "difference"), table.reward_unit)
        return frames.of_rows(self.table(), earned | {"spent": table.cost_unit, "pulls": "pulls"})

    def to_polars(self) -> polars.DataFrame:
        """The same for polars; one clear line if it is not installed (``pip install 'jaxbandits[polars]'``)."""
        return frames.in_polars(self.to_pandas())

    def doubts(self) -> list[str]:
        """Settings whose mean regret a few runs carry, and whether the runs are too few, in words; mostly none."""
        last = self.data["regret"].isel(mark=-1)
        found = []
        for name in self.plan.settings:
            said = mean_interval(last.sel(setting=name, drop=True), average_instances=True).attrs["warnings"]
            kinds = {text.split(": ")[0]: text.split(": ", 1)[1] for text in said}
            if "few units" in kinds:
                return [kinds["few units"]]
            found += [f"regret of {name}: {kinds[kind]}" for kind in ("heavy tail",) if kind in kinds]
        return found

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
            numbers: Sequence[int | None] = [None] if overall else range(len(self.plan.table.instances))
            for number in numbers:
                here = found if number is None else {name: x.isel(instance=number) for name, x in found.items()}
                rows += self._ranked(here, number)
        return rows

    def _against(
        self, reward: xarray.DataArray, against: xarray.DataArray, best: xarray.DataArray, overall: bool
    ) -> xarray.Dataset:
        """Differences to the best setting: single intervals, and p-values over all pairs."""
        import xarray

        single = paired_difference(reward, against, average_instances=overall)
        if self.plan.runs < 2:
            nothing = xarray.full_like(single["mean"], np.nan)
            none = {name: nothing for name in ("p", "more", "more_least", "more_most")}
            return single.assign({**none, "clear": xarray.zeros_like(single["clear"])})
        alone = [reward] if overall else [reward.isel(instance=i) for i in range(reward.sizes["instance"])]
        tables = [dominance(part, over="replicate") for part in alone]
        pairs = max(1, reward.sizes["setting"] * (reward.sizes["setting"] - 1) // 2)
        level = 1 - 0.05 / pairs
        parts = zip(tables, np.atleast_1d(best.values), strict=True)
        columns = [(table["adjusted"].values[:, i], table["clear"].values[:, i]) for table, i in parts]
        p, clear = (np.stack(part, axis=-1).reshape(single["mean"].shape) for part in zip(*columns, strict=True))
        wanted = reward if overall else reward.rename(instance="each")
        other = against if overall else against.rename(instance="each")
        needed = runs_needed(wanted, other, level=level)
        found = {"more": needed["more"].values}
        for end in ("least", "most"):
            found[f"more_{end}"] = np.maximum(needed[end].values - self.plan.runs, 1.0)
        axes = single["mean"].dims
        more = {name: (axes, np.where(clear, 0.0, x)) for name, x in found.items()}
        return single.assign({"p": (axes, p), "clear": (axes, clear), **more})

    def _ranked(self, found: Mapping[str, xarray.Dataset], number: int | None) -> list[dict[str, Any]]:
        instances = self.plan.table.instances
        means = {name: {part: np.atleast_1d(x[part].values) for part in x.data_vars} for name, x in found.items()}
        rows = []
        for rank, at in enumerate(np.argsort(-means["reward"]["mean"], kind="stable"), start=1):
            row: dict[str, Any] = {
                "scope": "overall" if number is None else "instance",
                "instance": "" if number is None else instances[number].name,
                "arms": sum(len(i.arms) for i in instances) if number is None else len(instances[number].arms),
                "rank": rank,
                "setting": list(self.plan.settings)[at],
                "runs": self.plan.runs,
            }
            for name, parts in means.items():
                row |= {name: float(parts["mean"][at])}
                row |= {f"{name}_{part}": float(parts[part][at]) for part in ("low", "high")}
            row |= {"difference_p": float(means["difference"]["p"][at])}
            row |= {"difference_clear": bool(means["difference"]["clear"][at])}
            for part in ("more", "more_least", "more_most"):
                row |= {part.replace("more", "more_runs"): float(means["difference"][part][at])}
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
        from jaxbandits._reports.plot import curves

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
        rows = self.table()
        return csv_text(list(rows[0]), (row.values() for row in rows))

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
            "uncertainty": plan.uncertainty,
            "cost_cv": plan.cost_cv if plan.noise == "clicks" or plan.posterior is not None else None,
            "average_cost": plan.average_cost,
            "beta_concentration": plan.beta_concentration if plan.noise == "beta" else None,
            "runs": plan.runs,
            "until": None if self.clear is None else self.clear.about(),
            "seed": plan.seed,
            "marks": list(plan.shares),
            "settings": [{"label": name, **what} for name, what in plan.settings.items()],
            "instances": [
                {
                    "id": number,
                    "name": instance.name,
                    "arms": len(instance.arms),
                    "reward_bound": instance.reward_bound,
                    "cost_bound": instance.cost_bound,
                }
                for number, instance in enumerate(plan.table.instances)
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


def _put(content: bytes, file: Any) -> None:
    file.write(content)
