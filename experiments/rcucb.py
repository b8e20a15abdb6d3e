"""Censored consumption of resources (Bengs, Hüllermeier, Machine Learning 2023): figures, table and studies.

The laws of the paper's instances are in a supplement that could not be found. PosCorr, NegCorr and Indep are here the
stand-in G1 (``jaxbandits.environments.g1``): **ours, not the authors'**. It matches the published oracle censoring and
nothing else by construction, so agreement or disagreement with other published numbers says little.

    python -m experiments rcucb [--quick|--full] [--only ITEM] [--out DIR]

Items: fig1, fig2, fig4 (with the censoring table), sizes, alpha, zoom, aslib, fig5. ``--quick`` leaves out sizes and
alpha. fig5 needs the table of ``python -m experiments.data_ames``, aslib the folder ``../shared/data``; both are
skipped, and say so, without.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from experiments._rcucb_figures import fig1, fig2, fig4
from experiments._rcucb_real import ames, aslib
from experiments._rcucb_report import Options, Row, write_rows
from experiments._rcucb_studies import alpha, sizes, zoom

ITEMS: dict[str, Callable[[Options], list[Row]]] = {
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


def run(options: Any) -> None:
    """All items, or one."""
    chosen = Options.of(options)
    if chosen.only and chosen.only not in ITEMS:
        raise SystemExit(f"--only: {chosen.only} given; it must be one of {', '.join(ITEMS)}")
    names = [chosen.only] if chosen.only else [n for n in ITEMS if chosen.size or n not in NOT_IN_QUICK]
    rows: list[Row] = []
    for name in names:
        began = time.perf_counter()
        rows += ITEMS[name](chosen)
        write_rows(chosen.out / "summary.csv", rows)
        print(f"rcucb {name}: {time.perf_counter() - began:.0f} s", flush=True)


def main() -> None:
    """``python -m experiments.rcucb`` with the flags of the shared runner, and ``--data DIR``."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--full", action="store_true")
    for name in ("--only", "--out", "--data"):
        parser.add_argument(name)
    run(parser.parse_args())


if __name__ == "__main__":
    main()
