"""Tables of pages from the runs that they show; ``python -m experiments.published`` writes them.

``docs/reproductions/NAME.csv`` holds rows of the ``summary.csv`` of a run, as its command wrote them. A table of a page
stands between ``<!-- summary: TABLE -->`` and ``<!-- end -->``; each paper's tables are in its ``pages.py``, and a test
compares all of them with the rows.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Callable, Iterator

from experiments import sensitivity
from experiments.b_zoom import pages as b_zoom
from experiments.common.pages import DOCS, found
from experiments.gradients import pages as gradients
from experiments.omega_ucb import pages as omega_ucb
from experiments.rcb import pages as rcb
from experiments.rcucb import pages as rcucb
from experiments.suak import pages as suak

BLOCK = re.compile(r"(<!-- summary: (.+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)

TABLES: dict[str, Callable[[], Iterator[str]]] = {
    **omega_ucb.TABLES,
    **suak.TABLES,
    **rcucb.TABLES,
    **b_zoom.TABLES,
    **rcb.TABLES,
    **gradients.TABLES,
    **sensitivity.TABLES,
}


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


def main() -> int:
    """Write the tables into the pages."""
    for name, before in pages().items():
        if (after := rendered(before)) != before:
            (DOCS / name).write_text(after, encoding="utf-8")
            print(f"{name}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
