"""The table of docs/reproductions/gradients.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from experiments.common.pages import found, table


def _tuned() -> Iterator[str]:
    """Tuned ρ by key, and mean gains over the keys with their intervals."""
    gains = ("regret of the best grid value − tuned", "regret of the start − tuned")
    lines = []
    for name in ("S-Br-50", "S-Bt-50"):
        rhos = found("gradients", f"tuned: {name}: ρ")
        (grid,) = re.findall(r"best grid value ([\d., ]+);", rhos.note)
        cells = []
        for gain in gains:
            each = found("gradients", f"tuned: {name}: ({gain}) / tuned")
            (interval,) = re.findall(r"95 % interval (-?[\d.]+ to -?[\d.]+)", each.note)
            cells.append(f"{float(each.measured):.3f} ({interval}): {each.verdict}".replace("-", "−"))
        lines.append([name, rhos.measured, grid, *cells])
    head = ["", "tuned ρ, by key", "best of the grid, by key", *(f"({gain}) / tuned" for gain in gains)]
    return table(head, lines)


TABLES: dict[str, Callable[[], Iterator[str]]] = {"gradients, tuned": _tuned}
