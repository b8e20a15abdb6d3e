"""Censored consumption of resources (Bengs, Hüllermeier, Machine Learning 2023): figures, table and studies.

The laws of the paper's instances are in a supplement that could not be found. PosCorr, NegCorr and Indep are here the
stand-in G1 (``jaxbandits.environments.g1``): **ours, not the authors'**. It matches the published oracle censoring and
nothing else by construction, so agreement or disagreement with other published numbers says little.

    python -m experiments rcucb [--quick|--full] [--only ITEM] [--out DIR] [--data DIR]

Items: fig1, fig2, fig4 (with the censoring table), sizes, alpha, zoom, aslib, fig5, theorem1. ``--quick`` leaves out
sizes and alpha. fig5 needs the table of ``python -m experiments.data_ames``, aslib the folder ``../shared/data``; both
are skipped, and say so, without.
"""

from __future__ import annotations

from experiments.common.running import Experiment
from experiments.rcucb.figures import fig1, fig2, fig4
from experiments.rcucb.real_data import ames, aslib
from experiments.rcucb.studies import alpha, sizes, theorem1, zoom

EXPERIMENT = Experiment(
    "rcucb",
    {
        "fig1": fig1,
        "fig2": fig2,
        "fig4": fig4,
        "sizes": sizes,
        "alpha": alpha,
        "zoom": zoom,
        "aslib": aslib,
        "fig5": ames,
        "theorem1": theorem1,
    },
    not_in_quick=("sizes", "alpha"),
    # laws and closed forms; what is said of 100,000 rounds is neither shown nor refuted by fewer
    any_size=lambda row: row.made_by in ("fig1", "fig2", "theorem1") or "oracle" in row.item,
)
