"""Rows and figures of the RCUCB experiment."""

from __future__ import annotations

from typing import Any

from experiments.common.figures import intervals
from experiments.common.looks import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, SKY, VERMILION
from experiments.common.rows import Row, above_zero, mean_se, row

STAND_IN = "stand-in G1, ours"
ROUNDED = 0.5e-4  # half of the last digit: the paper prints shares with four
COLOUR_OF = {
    "RCUCB literal": VERMILION,
    "RCUCB legal": BLUE,
    "RCUCB legal α=0.03": ORANGE,
    "RCUCB infinite": ORANGE,
    "RCUCB Kaplan-Meier": GREEN,
    "UCB width 1+λ": GREY,
    "UCB width 1": BLACK,
    "TS global": PINK,
    "TS per arm": SKY,
}


def dashes(name: str) -> str:
    """Curves that may lie on others are dashed."""
    return "--" if name in ("RCUCB infinite", "RCUCB Kaplan-Meier") else "-"


def estimate(item: str, published: Any, values: Any, note: str) -> Row:
    """A measured mean; with a published share: yes within 3 s.e. and the rounding, else no; without, unclear."""
    mean, se = (float(v) for v in mean_se(values))
    holds = None
    if published != "":
        apart = abs(mean - float(published))
        holds = apart <= 3 * se + ROUNDED
        note = f"{note}; {apart:.2g} apart; yes: within 3 s.e. and half of the last digit"
    return row(item, mean, se, published=published, holds=holds, note=note, digits=".6g")


def difference(item: str, published: str, values: Any, note: str = STAND_IN) -> Row:
    """Published: below 0. yes if it is by 2 s.e. (paired), no if above by 2 s.e., else unclear."""
    mean, se = mean_se(values)
    holds, text = above_zero(-mean, se), f"difference {mean:.6g}"
    return row(item, text, se, published=published, holds=holds, note=f"paired; {note}")


def band(axis: Any, x: Any, samples: Any, name: str, **style: Any) -> None:
    """A policy's mean over the runs ``[run, x]`` with its 95 % interval."""
    mean, se = mean_se(samples)
    axis.plot(x, mean, dashes(name), color=COLOUR_OF[name], label=name, **style)
    axis.fill_between(x, mean - 1.96 * se, mean + 1.96 * se, color=COLOUR_OF[name], alpha=0.2, lw=0)


def dots(axis: Any, x: Any, samples: Any, name: str, **style: Any) -> None:
    """A policy's means over the runs ``[x, run]`` with their 95 % intervals."""
    intervals(axis, x, samples, marker="o", ms=3, capsize=2, color=COLOUR_OF[name], **style)
