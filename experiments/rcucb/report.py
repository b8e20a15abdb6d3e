"""Rows and figures of the RCUCB experiment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from experiments import common
from experiments.common import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, SKY, VERMILION, Options, Row, is_above, mean_se

STAND_IN = "stand-in G1, ours"
COLOURS = (VERMILION, BLUE, ORANGE, GREEN, GREY, BLACK, PINK, SKY)
_NAMES = ("literal", "legal", "infinite", "Kaplan-Meier")
COLOUR_OF = dict(
    zip(
        (*(f"RCUCB {name}" for name in _NAMES), "UCB width 1+λ", "UCB width 1", "TS global", "TS per arm"),
        COLOURS,
        strict=True,
    )
) | {"RCUCB legal α=0.03": ORANGE}


def dashes(name: str) -> str:
    """Curves that may lie on others are dashed."""
    return "--" if name in ("RCUCB infinite", "RCUCB Kaplan-Meier") else "-"


def estimate(item: str, published: Any, values: Any, note: str) -> Row:
    """A measured mean; with a published number: yes within 3 s.e. or 0.01, else no; without one, unclear."""
    mean, se = (float(v) for v in mean_se(values))
    holds = None if published == "" else abs(mean - float(published)) <= max(3 * se, 0.01)
    return Row(item, str(published), f"{mean:.6g}", f"{se:.2g}", common.verdict(holds), note)


def difference(item: str, published: str, values: Any, note: str = STAND_IN) -> Row:
    """Published: below 0. yes if it is by 2 s.e. (paired), no if above by 2 s.e., else unclear."""
    mean, se = (float(v) for v in mean_se(values))
    above = is_above(values)
    holds = None if above is None else not above
    return Row(item, published, f"difference {mean:.6g}", f"{se:.2g}", common.verdict(holds), f"paired; {note}")


def figure(
    options: Options, name: str, lines: int, columns: int, size: tuple[float, float]
) -> tuple[np.ndarray, Callable[..., None]]:
    """(axes ``[line, column]``, save(title, legend=axes whose labels are listed)); writes ``<out>/<name>.png``."""
    picture, axes = common.figure(lines, columns, size)

    def save(title: str, legend: Any = ()) -> None:
        picture.suptitle(title)
        common.save(picture, options.out / f"{name}.png", legend)

    return axes.reshape(lines, columns), save
