"""Finite arms under a total budget (the ω-UCB paper): its figures, Example 2, every statement about
them.

    python -m experiments omega_ucb [--quick|--full] [--only ITEM] [--out DIR] [--data DIR]

Items: example2, figure1, figure2, figure5, figure3a to figure3f, figure4, figure6, theorems, larger
(some statements on thousands of new instances), easier (KL-UCB-SC+ on the ads); ``--only figure3``
runs all that begin so. ``--full`` has the paper's sizes; ``--quick`` leaves out figure2, figure3b
to figure3e, figure6, larger and easier. What was played is kept in ``DIR/runs`` and not played
again with the same ``--out``. Figures 3d to 3f need the Facebook ads in ``--data``, and are
skipped, with a line that says so, without.
"""

from __future__ import annotations

from experiments.common import Experiment, Options, Row
from experiments.omega_ucb import figures as statements
from experiments.omega_ucb.figures import densities, easier, figure2, figure4, figure6, regret_item
from experiments.omega_ucb.intervals import example2, figure1, figure5, theorems
from experiments.omega_ucb.play import ADS_FILE


def larger(options: Options) -> list[Row]:
    """Statements of Figure 3 again, on thousands of new instances."""
    from experiments.omega_ucb_tails import (
        paired_differences as rows,
    )  # which stands on this package

    return rows(options)


EXPERIMENT = Experiment(
    "omega_ucb",
    {
        "example2": example2,
        "figure1": figure1,
        "figure2": figure2,
        "figure5": figure5,
        "figure3a": regret_item("figure3a", "S-Br", "Bernoulli", statements.bernoulli),
        "figure3b": regret_item(
            "figure3b", "S-GBr", "generalised Bernoulli", statements.other_laws
        ),
        "figure3c": regret_item("figure3c", "S-Bt", "Beta", statements.other_laws),
        "figure3d": regret_item(
            "figure3d", "FB-Br", "Facebook ads, Bernoulli", statements.advertisements
        ),
        "figure3e": regret_item(
            "figure3e", "FB-Bt", "Facebook ads, Beta", statements.advertisements
        ),
        "figure3f": densities,
        "figure4": figure4,
        "figure6": figure6,
        "theorems": theorems,
        "larger": larger,
        "easier": easier,
    },
    not_in_quick=(
        "easier",
        "larger",
        "figure2",
        "figure3b",
        "figure3c",
        "figure3d",
        "figure3e",
        "figure6",
    ),
    # not affected by the size
    any_size=lambda row: row.item.startswith(("example2", "figure5", "figure3f", "theorems")),
    needs=dict.fromkeys(("figure3d", "figure3e", "figure3f", "easier"), ADS_FILE),
)
