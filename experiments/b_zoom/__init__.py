"""Continuous arms with a budget (B-Zoom, Trovò et al., ECAI 2016): both tables, Figure 1, what the
paper leaves open.

    python -m experiments b_zoom [--quick|--full] [--only ITEM] [--out DIR] [--data DIR]

Items: table1, independent (B-Zoom by a loop that shares nothing with the library, at every budget),
figure1, table2, lemmas, worst (a worst case), scale, growth, grids, trees, auctions. ``--full``
plays the published sizes. auctions needs the folder ``../shared/data``, independent Numba; each is
skipped, and says so, without.
"""

from __future__ import annotations

from experiments.b_zoom.studies import (
    LOG,
    auctions,
    grids,
    growth,
    independent,
    lemmas,
    scale,
    trees,
    worst,
)
from experiments.b_zoom.tables import figure1, table1, table2
from experiments.common import Experiment

EXPERIMENT = Experiment.of(
    "b_zoom",
    (table1, independent, figure1, table2, lemmas, worst, scale, growth, grids, trees, auctions),
    not_in_quick=("worst", "independent", "scale", "growth", "trees", "grids", "auctions"),
    any_size=lambda row: False,
    needs={"auctions": LOG},
)
