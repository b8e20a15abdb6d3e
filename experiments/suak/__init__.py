"""Anytime knapsacks (the SUAK paper): both figures, every statement about them, sweeps, an audit, LLM routing.

    python -m experiments suak [--quick|--full] [--only ITEM] [--out DIR] [--data DIR]

Items: figure1, figure2, skips, sweep_c, sweep_gap, audit, routing. ``--full`` plays the published horizons 200 times.
"""

from __future__ import annotations

from experiments.common.running import Experiment
from experiments.suak.figures import figure1, figure2
from experiments.suak.llms import routing
from experiments.suak.skipping import skips
from experiments.suak.sweeps import audit, sweep_c, sweep_gap

EXPERIMENT = Experiment(
    "suak",
    {
        "figure1": figure1,
        "figure2": figure2,
        "skips": skips,
        "sweep_c": sweep_c,
        "sweep_gap": sweep_gap,
        "audit": audit,
        "routing": routing,
    },
    any_size=lambda row: "violation" in row.item or "r*" in row.item,
)
