"""Censored consumption of resources (Bengs, Hüllermeier, Machine Learning 2023): figures, table and studies.

The laws of the paper's instances are in a supplement that could not be found. PosCorr, NegCorr and Indep are here the
stand-in G1 (``jaxbandits.environments.g1``): **ours, not the authors'**. It matches the published oracle censoring and
nothing else by construction, so agreement or disagreement with other published numbers says little.

    python -m experiments rcucb [--quick|--full] [--only ITEM] [--out DIR] [--data DIR]

Items: fig1, fig2, fig4 (with the censoring table), sizes, alpha, zoom, aslib, fig5. ``--quick`` leaves out sizes and
alpha. fig5 needs the table of ``python -m experiments.data_ames``, aslib the folder ``../shared/data``; both are
skipped, and say so, without.
"""

from __future__ import annotations

from experiments.rcucb.figures import fig1, fig2, fig4
from experiments.rcucb.real_data import ames, aslib
from experiments.rcucb.studies import alpha, sizes, zoom
from experiments.common import Item, Options, run_items

ITEMS: dict[str, Item] = {
    "fig1": fig1,
    "fig2": fig2,
    "fig4": fig4,
    "sizes": sizes,
    "alpha": alpha,
    "zoom": zoom,
    "aslib": aslib,
    "fig5": ames,
}
NOT_IN_QUICK = ("sizes", "alpha")


def run(options: Options) -> None:
    """All items, or those whose names begin with ``--only``."""
    run_items("rcucb", ITEMS, options, not_in_quick=NOT_IN_QUICK, any_size=lambda row: True)
