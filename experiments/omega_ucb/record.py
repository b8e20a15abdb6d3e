"""Figure 2 of the ω-UCB paper: who beat whom in earlier comparisons, played again on S-Br-10."""

from __future__ import annotations

import numpy as np
import xarray
from matplotlib.colors import ListedColormap

from experiments.common.figures import figure, save
from experiments.common.looks import BLUE, VERMILION
from experiments.common.rows import OURS, Row, row
from experiments.common.running import Options
from experiments.omega_ucb.comparisons import END, less, standard_error
from experiments.omega_ucb.play import curves, seconds_row
from experiments.omega_ucb.specs import COMPETITORS, OLDER, omega, steps
from jaxbandits.statistics import dominance

SETTING = "S-Br-10"
KUBE = "fractional KUBE"  # what later comparisons play; KUBE itself differs in the last pulls only
# (winner, loser), as the text quotes the literature; the matrix itself is printed unreadably
RECORD = (
    (KUBE, "ε-first"),
    ("UCB-BV1", KUBE),
    ("BTS", KUBE),
    ("BTS", "UCB-BV1"),
    ("Budget-UCB", "UCB-BV1"),
    ("UCB-SC+", "UCB-BV1"),
    ("BTS", "PD-BwK"),
    ("b-greedy", "PD-BwK"),
    ("i-UCB", "PD-BwK"),
    ("c-UCB", "PD-BwK"),
    ("m-UCB", "PD-BwK"),
)


def figure2(options: Options) -> list[Row]:
    """A dominance matrix of all policies, and the head-to-head results that the paper quotes."""
    families = ("ω-UCB", *COMPETITORS, *OLDER)
    found = curves(SETTING, options, families)
    names = [omega(0.25), omega(1.0), *COMPETITORS, *OLDER]
    last = found.at(END, *names)
    _draw(options, last)
    note = "paired; the quoted comparisons had other instances and mostly far smaller budgets"
    rows = []
    for winner, loser in RECORD:
        item = f"figure2: {SETTING}: regret of {loser} − {winner} at B"
        rows.append(less(item, "> 0", found.at(END, winner), found.at(END, loser), found.over, note))
    item, timed = f"figure2: {SETTING}: regret of PD-BwK − PD-BwK with time at B", "PD-BwK with time"
    rows.append(less(item, OURS, found.at(END, timed), found.at(END, "PD-BwK"), found.over, "T = B / min μ^c; paired"))
    for name in OLDER:
        x = found.at(END, name)
        rows.append(row(f"figure2: {SETTING}: regret of {name} at B", float(x.mean()), standard_error(x, found.over)))
    told = f" of {', '.join(OLDER)}; the others are those of figure 3a"
    return [*rows, seconds_row("figure2: ", [SETTING], options, OLDER, told)]


def _draw(options: Options, last: xarray.DataArray) -> None:
    order = np.argsort(last.mean(("instance", "replicate")).values)
    table = dominance(last.isel(policy=order), among="policy")
    names = [str(name) for name in table["policy"].values]
    shown = table["smaller"].values.astype(int) - table["larger"].values.astype(int)
    picture, axes = figure(1, 1, (8.4, 7.4))
    axes[0].imshow(shown, cmap=ListedColormap([VERMILION, "#EEEEEE", BLUE]), vmin=-1, vmax=1, alpha=0.75)
    for (line, column), value in np.ndenumerate(shown):
        mark = "" if line == column else {1: "△", -1: "▽", 0: "○"}[int(value)]
        axes[0].text(column, line, mark, ha="center", va="center", fontsize=10)
    axes[0].set_xticks(range(len(names)), names, rotation=60, ha="right")
    axes[0].set_yticks(range(len(names)), names)
    axes[0].grid(False)
    count = last.sizes["instance"]
    axes[0].set_title(
        f"{SETTING}, {count} instances, budget {steps(options):,.0f} times the smallest mean cost\n"
        "△ the row has clearly less regret than the column, ▽ more, ○ not clear\n(Holm over all pairs at 5 %)",
        fontsize=10,
    )
    save(picture, options.out / "figure2.png")
