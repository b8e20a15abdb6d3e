"""Tables of pages from the runs that they show; ``python -m experiments.published`` writes them.

``docs/reproductions/NAME.csv`` holds rows of the ``summary.csv`` of a run, as its command wrote them. A table of a page
stands between ``<!-- summary: TABLE -->`` and ``<!-- end -->``; a test compares all of them with the rows.
"""

from __future__ import annotations

import csv
import functools
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from experiments.b_zoom.published import STATISTICS
from experiments.common.rows import Row

DOCS = Path(__file__).resolve().parents[1] / "docs"
BLOCK = re.compile(r"(<!-- summary: (.+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


@functools.cache
def summary(name: str) -> dict[str, Row]:
    """The rows of ``docs/reproductions/NAME.csv``, by item."""
    with (DOCS / "reproductions" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        rows = [Row(*line) for line in list(csv.reader(file))[1:]]
    return {each.item: each for each in rows}


def found(name: str, item: str) -> Row:
    """A row that must be there.

    Raises:
        LookupError: no such row.
    """
    if item not in summary(name):
        raise LookupError(f"{name}.csv has no row {item!r}")
    return summary(name)[item]


def cell(each: Row, scale: float = 1.0, digits: str = ",.0f") -> str:
    """``measured ± standard error``, both in ``digits``."""
    return f"{float(each.measured) * scale:{digits}} ± {float(each.standard_error) * scale:{digits}}"


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> Iterator[str]:
    """Markdown."""
    names = list(head)
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"
    for line in lines:
        yield f"| {' | '.join(line)} |"


def pages() -> dict[str, str]:
    """All pages that quote a table."""
    texts = {str(path.relative_to(DOCS)): path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}
    return {name: text for name, text in texts.items() if BLOCK.search(text)}


def rendered(page: str) -> str:
    """A page with its tables as the rows say."""
    return BLOCK.sub(lambda m: m[1] + "\n".join(TABLES[m[2]]()) + "\n" + m[4], page)


def quotes() -> list[dict[str, str]]:
    """``docs/reproductions/quotes.csv``: what a page must have of a row, ``{measured} ± {error}`` and ``{verdict}``."""
    with (DOCS / "reproductions" / "quotes.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def quoted(entry: dict[str, str]) -> str:
    """The text, with the numbers of its row."""
    each = found(entry["summary"], entry["item"])
    numbers = (f"{float(x):,.0f}" for x in (each.measured, each.standard_error))
    return entry["text"].format(**dict(zip(("measured", "error"), numbers, strict=True)), verdict=each.verdict)


# --- the tables --------------------------------------------------------------------------------------------------

OMEGA = ("ω-UCB, ρ = 1/4", "ω-UCB, ρ = 1")
STAR = ("ω*-UCB, ρ = 1/4", "ω*-UCB, ρ = 1")
OTHERS = ("BTS", "m-UCB", "c-UCB", "i-UCB", "b-greedy", "Budget-UCB", "UCB-SC+")


def omega_regret(figure: str, law: str) -> Iterator[str]:
    """Regret at B of every policy, by K."""
    names = (*OMEGA, *(STAR if law != "S-Br" else ()), *OTHERS)
    settings = [f"{law}-{arms}" for arms in (10, 50, 100)]
    return table(
        ["", *settings],
        (
            [shown(name), *(cell(found("omega_ucb", f"{figure}: {s}: regret of {name} at B")) for s in settings)]
            for name in names
        ),
    )


def shown(name: str) -> str:
    """A policy's name on a page."""
    return name.replace("*", "\\*").replace("1/4", "¼")


def rcb_far() -> Iterator[str]:
    """Regret beyond the budgets of ``regret``, a hundred reservoirs each."""
    head = ["", "B", "regret", "pulls with an infinite index", "exponent since the budget before [bound's]"]
    return table(head, _far_lines())


def _far_lines() -> Iterator[list[str]]:
    exponents = {  # by policy, β and the budget at the end of the step
        _place(each.item, 10**0.25): each for each in summary("rcb").values() if each.item.startswith("far: exponent")
    }
    for each in summary("rcb").values():
        if not each.item.startswith("far: regret"):
            continue
        policy, beta, budget = place = _place(each.item)
        infinite = re.findall(r"infinite index in (\d+ %)", each.note)
        slope = ""
        if place in exponents:
            bound = re.findall(r"≤ ([\d.]+)", exponents[place].published)[0]
            slope = f"{cell(exponents[place], digits='.3f')} [{float(bound):.2f}] {exponents[place].verdict}"
        name = f"{policy}, β = {FRACTION[beta]}"
        yield [name, f"{budget:,}", cell(each), infinite[0] if infinite else "", slope]


def _place(item: str, times: float = 1.0) -> tuple[str, float, int]:
    """Policy, β, and the budget times a factor, to the half decade."""
    found = re.fullmatch(r"far: \w+: (.+), β = ([\d.]+), B [=≈] (.+)", item)
    assert found
    half = round(2 * np.log10(float(found[3]) * times))
    return found[1], float(found[2]), int(float(f"{10 ** (half / 2):.3g}"))


FRACTION = {0.5: "½", 1.0: "1", 2.0: "2"}


def b_zoom_independent(budget: int) -> Iterator[str]:
    """BZ by the library, by the independent loop, and as printed: thousands of pulls."""
    lines = []
    for lam in (0.05, 0.1, 0.25, 0.5):
        cells = []
        for statistic in STATISTICS:
            each = found("b_zoom", f"independent B={budget} λ={lam:g} BZ {statistic}")
            ours, apart, printed = re.findall(r"ours ([\d.]+), ([+-][\d.]+) s\.e\. away; printed (\d+)", each.note)[0]
            cells.append(f"{float(each.measured):.4g} / {float(ours):.4g} ({apart}) / {printed}")
        lines.append([f"{lam:g}", *cells])
    return table([f"B = {budget:,}, λ", *STATISTICS], lines)


def rcucb_forests() -> Iterator[str]:
    """Figure 5: share of rounds over the limit, and cumulative gain."""
    lines = []
    for name, said in READINGS.items():
        share, gain = (found("rcucb", f"Fig. 5 {what} {name}") for what in ("share over the limit", "cumulative gain"))
        measured, earned = cell(share, digits=".4f"), cell(gain).replace("-", "−")
        lines.append([said, share.published, measured, share.verdict, earned])
    head = ["", "share over the limit: published", "measured", "verdict on the number", "cumulative gain"]
    return table(head, lines)


READINGS = {
    "RCUCB legal": "RCUCB legal",
    "RCUCB Kaplan-Meier": "RCUCB Kaplan–Meier",
    "UCB width 1+λ": "UCB, width 1 + λ",
    "UCB width 1": "UCB, width 1",
    "TS global": "TS, global",
    "TS per arm": "TS, per arm",
}


def tuned() -> Iterator[str]:
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


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "omega_ucb, S-GBr": functools.partial(omega_regret, "figure3b", "S-GBr"),
    "omega_ucb, S-Bt": functools.partial(omega_regret, "figure3c", "S-Bt"),
    "rcb, far": rcb_far,
    **{f"b_zoom, independent, {b}": functools.partial(b_zoom_independent, b) for b in (50_000, 100_000, 500_000)},
    "rcucb, figure 5": rcucb_forests,
    "gradients, tuned": tuned,
}


def main() -> int:
    """Write the tables into the pages."""
    for name, before in pages().items():
        if (after := rendered(before)) != before:
            (DOCS / name).write_text(after, encoding="utf-8")
            print(f"{name}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
