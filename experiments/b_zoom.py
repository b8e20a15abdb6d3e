"""Continuous arms with a budget (B-Zoom, Trovò et al., ECAI 2016): both tables, Figure 1, what the paper leaves open.

    python -m experiments b_zoom [--quick|--full] [--only ITEM] [--out DIR] [--data DIR]

Items: table1, figure1, table2, scale, growth, grids, trees, auctions. ``--full`` plays the published sizes. auctions
needs the folder ``../shared/data`` and is skipped, and says so, without.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from experiments._b_zoom_auctions import auctions
from experiments._b_zoom_studies import grids, growth, scale, trees
from experiments._b_zoom_tables import figure1, table1, table2
from experiments.common import Options, Row, write_summary

ITEMS: dict[str, Callable[[Options], list[Row]]] = {
    "table1": table1,
    "figure1": figure1,
    "table2": table2,
    "scale": scale,
    "growth": growth,
    "grids": grids,
    "trees": trees,
    "auctions": auctions,
}
NOT_IN_QUICK = ("scale", "growth", "trees", "grids", "auctions")


def run(options: Options) -> None:
    """All items, or one."""
    if options.only and options.only not in ITEMS:
        raise SystemExit(f"--only: {options.only} given; it must be one of {', '.join(ITEMS)}")
    usual = [name for name in ITEMS if not (options.quick and name in NOT_IN_QUICK)]
    rows: list[Row] = []
    for name in [options.only] if options.only else usual:
        began = time.perf_counter()
        rows += [row if options.full else _short(row) for row in ITEMS[name](options)]
        write_summary(options.out, rows)
        print(f"b_zoom {name}: {time.perf_counter() - began:.0f} s", flush=True)


def _short(row: Row) -> Row:
    # What is said about the published sizes is neither shown nor refuted by smaller ones.
    return row._replace(verdict="unclear", note=f"{row.note}; not --full".removeprefix("; "))
