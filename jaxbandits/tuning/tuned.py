"""What tuning found: values, gains, picture, files."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxbandits._files.csv_text import csv_text
from jaxbandits._files.files import write_whole
from jaxbandits._reports.grid_ticks import label_grid, plain_numbers
from jaxbandits._reports.palette import BLUE, GREY, VERMILION
from jaxbandits.core.protocol import Policy
from jaxbandits.statistics import invisible

FILES = ("path.png", "path.csv", "run.json")


class Gain(NamedTuple):
    """How much smaller the regret of the tuned policy is, in the mean over fresh instances, paired."""

    mean: float
    low: float  # of the 95 % interval
    high: float


@dataclasses.dataclass(frozen=True)
class Tuned:
    """What :func:`tune` found.

    Attributes:
        policy: with the tuned values.
        values: the tuned parameters by name.
        path: parameters after every step, ``[step + 1, P]``, the start first.
        regrets: mean regret of each step's own instances, ``[step]``.
        slopes: gradient of ln(mean regret) by ln(parameter), ``[step, P]``.
        start, best: parameters of the start, and of the best grid value (None without a grid).
        grid, grid_regrets: grid values ``[G, P]`` and their mean regret on the grid's instances.
        regret: (mean, low, high): regret of the tuned policy on fresh instances, 95 % interval.
        over_start, over_best: paired gains over the start and over the best grid value, on the same fresh instances.
        rounds: simulated rounds of the tuning, and of the grid.
        seconds: of the tuning, compile included, and of the grid.
        estimator: which one was used.
        fresh: how many fresh instances the regret and the gains are of.
        warnings: of that regret, as :func:`jaxbandits.statistics.mean` says them.
    """

    policy: Policy
    values: dict[str, float]
    path: np.ndarray
    regrets: np.ndarray
    slopes: np.ndarray
    start: dict[str, float]
    best: dict[str, float] | None
    grid: np.ndarray
    grid_regrets: np.ndarray
    grid_errors: np.ndarray
    regret: tuple[float, float, float]
    over_start: Gain
    over_best: Gain | None
    rounds: tuple[int, int]
    seconds: tuple[float, float]
    estimator: str
    fresh: int
    warnings: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """A report in words."""
        shown = ", ".join(f"{name} = {value:.4g}" for name, value in self.values.items())
        began = ", ".join(f"{value:.4g}" for value in self.start.values())
        found = [
            f"tuned: {shown} (start {began}; {len(self.regrets)} steps of {self.estimator}, "
            f"{self.rounds[0]:.3g} rounds, {self.seconds[0]:.0f} s)",
            f"regret on fresh instances: {self.regret[0]:.5g} [{self.regret[1]:.5g}, {self.regret[2]:.5g}]",
            *(f"  {text.split(': ', 1)[1]}" for text in self.warnings if not text.startswith("skewed")),
            _against("the start's", self.over_start),
        ]
        if self.best is not None and self.over_best is not None:
            share = self.rounds[0] / self.rounds[1]
            best = ", ".join(f"{value:.4g}" for value in self.best.values())
            found += [
                f"best of {len(self.grid)} grid values: {best} ({self.rounds[1]:.3g} rounds, {self.seconds[1]:.0f} s; "
                f"tuning took {share:.0%} of its rounds)",
                _against("the best grid value's", self.over_best),
            ]
        return [*found, f"note: {invisible(self.fresh, 'instance')}"]

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def save(self, folder: str | os.PathLike[str], about: dict[str, Any] | None = None) -> list[Path]:
        """Write path.png, path.csv and run.json."""
        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        header = ["step", *self.values, "mean_regret", *(f"slope_{name}" for name in self.values)]
        found = np.column_stack([self.regrets, self.slopes]).tolist()
        found.append([""] * (1 + len(self.values)))  # nothing is played at the end of the path
        rows = ([step, *at, *of_step] for step, (at, of_step) in enumerate(zip(self.path, found, strict=True)))
        table = csv_text(header, rows, digits=None, line_end="\r\n")
        facts = {
            "values": self.values,
            "start": self.start,
            "best_grid_value": self.best,
            "regret": self.regret,
            "gain_over_start": self.over_start,
            "gain_over_best_grid_value": self.over_best,
            "rounds": self.rounds,
            "seconds": self.seconds,
            "estimator": self.estimator,
            "report": self.lines(),
        } | (about or {})
        # run.json first: it says whose the others are
        write_whole(out / FILES[2], lambda file: file.write(json.dumps(facts, indent=1, default=str).encode()))
        write_whole(out / FILES[1], lambda file: file.write(table.encode()))
        picture = self.picture()
        write_whole(out / FILES[0], lambda file: picture.savefig(file, format="png", dpi=130))
        return [out / name for name in FILES]

    def picture(self) -> Any:
        """The path of every parameter beside the grid's regrets, as a matplotlib figure."""
        from jaxbandits._reports.picture import Picture

        figure = Picture(figsize=(9, 3.6 * len(self.values)), layout="constrained")
        axes = figure.subplots(len(self.values), 2, squeeze=False)
        for (left, right), (name, value), path, i in zip(
            axes, self.values.items(), self.path.T, range(len(self.values)), strict=True
        ):
            left.plot(path, color=BLUE, marker="o", markersize=3, label="path")
            left.axhline(value, color=VERMILION, linestyle="--", label="tuned")
            left.set(xlabel="step", ylabel=name, yscale="log", title=f"{self.estimator}")
            plain_numbers(left.yaxis)
            left.xaxis.get_major_locator().set_params(integer=True)
            left.legend(frameon=False)
            right.set(xlabel=name, ylabel="mean regret", xscale="log", title="grid and tuned value")
            if len(self.grid):
                right.errorbar(self.grid[:, i], self.grid_regrets, 1.96 * self.grid_errors, color=GREY,
                               marker="s", markersize=4, capsize=2, label="grid, its own instances")  # fmt: skip
            half = [[self.regret[0] - self.regret[1]], [self.regret[2] - self.regret[0]]]
            right.errorbar([value], [self.regret[0]], half, color=VERMILION, marker="D", capsize=3,
                           label="tuned, fresh instances")  # fmt: skip
            if len(self.grid):
                label_grid(right.xaxis, self.grid[:, i], log=True, share=0.16)
            else:
                label_grid(right.xaxis, np.array([value]), log=True)
            right.legend(frameon=False)
        return figure


def _against(what: str, gain: Gain) -> str:
    """How much less, or more, the tuned value's regret is."""
    clear = "clear" if gain.low > 0 or gain.high < 0 else "not clear"
    mean, low, high, how = gain.mean, gain.low, gain.high, "less"
    if mean < 0:
        mean, low, high, how = -mean, -high, -low, "more"
    return f"{mean:.4g} [{low:.4g}, {high:.4g}] {how} than {what} (paired, {clear})"
