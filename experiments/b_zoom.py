"""Continuous arms with a budget (B-Zoom, Trovò et al., ECAI 2016): both tables, Figure 1, what the paper leaves open.

    python -m experiments b_zoom [--quick|--full] [--only ITEM] [--out DIR] [--data DIR]

Items: table1, figure1, table2, scale, growth, grids, trees, auctions. ``--full`` plays the published sizes. auctions
needs the folder ``../shared/data`` and is skipped, and says so, without.
"""

from __future__ import annotations

from experiments._b_zoom_auctions import auctions
from experiments._b_zoom_studies import grids, growth, scale, trees
from experiments._b_zoom_tables import figure1, table1, table2
from experiments.common import Item, Options, run_items

ITEMS: dict[str, Item] = {
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
    """All items, or those whose names begin with ``--only``."""
    run_items("b_zoom", ITEMS, options, not_in_quick=NOT_IN_QUICK)
