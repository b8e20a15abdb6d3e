"""docs/benchmarks.md of policies.csv: ``python -m benchmarks.policies_page`` writes it."""

from __future__ import annotations

import csv
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def native_rows():
    """The rows behind the page."""
    with open(DOCS / "policies_beside_native.csv", newline="") as file:
        return list(csv.DictReader(file))


def rendered(page):
    """The page with its table made anew from the rows."""
    lines = page.split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith("| policy | leap, K = 10"))
    last = next(i for i in range(first, len(lines)) if not lines[i].startswith("|"))
    return "\n".join([*lines[:first], *page_table(native_rows()), *lines[last:]])


def page_table(rows):
    """The table of docs/benchmarks.md, of rows of policies.csv."""
    lines = [
        "| policy | leap, K = 10 | scan, K = 10 | native | leap, K = 100 | scan, K = 100 | native |",
        "|---" * 7 + "|",
    ]
    ratio = {(row["policy"], row["engine"], row["K"]): row["ratio_to_native"] for row in rows}
    native: dict[tuple[str, str], float] = {}
    for row in rows:
        place = row["policy"], row["K"]
        native[place] = max(float(row["native_rounds_per_s"]) / 1e6, native.get(place, 0))
    for name in dict.fromkeys(row["policy"] for row in rows):
        sizes = ("10", "100") if (name, "10") in native else ("",)
        cells = []
        for width in sizes:
            engines = [ratio.get((name, engine, width)) for engine in ("leap", "scan")]
            cells += ["" if x is None else f"{float(x):.2g}" for x in engines] + [
                f"{native[name, width]:.3g}"
            ]
        title = f"`{name}`" if len(sizes) == 2 else f"`{name}` (no fixed K)"
        lines.append(f"| {title} | {' | '.join(cells + [''] * (6 - len(cells)))} |")
    return lines


def picture(rows, path):
    """Ratios on a log axis, a row for each policy; leap and scan, K = 10 and 100."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["policy"] for row in rows))
    looks = {"leap": ("o", "#0072B2"), "scan": ("s", "#E69F00")}
    figure = Figure(figsize=(7.2, 1.2 + 0.24 * len(names)), layout="constrained")
    axes = figure.subplots()
    for engine, (marker, colour) in looks.items():
        for width, filled in (("10", True), ("100", False), ("", True)):
            points = [row for row in rows if row["engine"] == engine and row["K"] == width]
            if points:
                label = f"{engine}, K = {width}" if width else None
                at = [names.index(row["policy"]) for row in points]
                face = colour if filled else "white"
                axes.plot(
                    [float(row["ratio_to_native"]) for row in points],
                    at,
                    marker,
                    color=colour,
                    mfc=face,
                    label=label,
                    ms=6,
                )
    axes.axvline(1, color="#666666", linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("rounds per second, as a multiple of the Numba loop's (256 lanes, two cores)")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(fontsize=8, frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    page = DOCS / "benchmarks.md"
    page.write_text(rendered(page.read_text(encoding="utf-8")), encoding="utf-8")
    picture(native_rows(), DOCS / "images" / "policies.png")
