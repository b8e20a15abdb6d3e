"""Finite arms under a total budget (the ω-UCB paper): its figures, Example 2, every statement about them.

    python -m experiments omega_ucb [--quick|--full] [--only ITEM] [--out DIR] [--data DIR]

Items: example2, figure1, figure2, figure5, figure3a to figure3f, figure4, figure6; ``--only figure3`` runs all that
begin so. ``--full`` has the paper's sizes; ``--quick`` leaves out figure2, figure3b to figure3e and figure6. What was
played is kept in ``DIR/runs`` and not played again with the same ``--out``.
Figures 3d to 3f need the Facebook ads in ``--data``, and are skipped, with a line that says so, without.
"""

from __future__ import annotations

from collections.abc import Callable

from experiments.omega_ucb import statements
from experiments.omega_ucb.figures import densities, regret_figure
from experiments.omega_ucb.intervals import example2, figure1, figure5
from experiments.omega_ucb.play import seconds
from experiments.omega_ucb.record import figure2
from experiments.omega_ucb.sensitivity import figure4, settings
from experiments.omega_ucb.specs import ads_file
from experiments.common import Item, Options, Row, run_items


def run(options: Options) -> None:
    """All items, or those whose names begin with ``--only``."""
    run_items("omega_ucb", ITEMS, options, not_in_quick=NOT_IN_QUICK, any_size=lambda row: row.item.startswith(CLOSED))


def _regret_item(name: str, law: str, title: str, tell: Callable[[str, Options], list[Row]]) -> Item:
    def item(options: Options) -> list[Row]:
        played = [law] if law.startswith("FB") else settings(law, options)
        regret_figure(options, name, title, played)
        took, rounds = seconds(played, options)
        note = f"{rounds:.3g} rounds in {', '.join(played)}"
        rows = [Row("seconds of simulation, compile included", "", f"{took:.0f}", "", "unclear", note)]
        rows += [row for setting in played for row in tell(setting, options)]
        return [row._replace(item=f"{name}: {row.item}") for row in rows]

    return item


def _needs_ads(name: str, item: Item) -> Item:
    def if_there(options: Options) -> list[Row]:
        if ads_file(options).is_file():
            return item(options)
        print(f"omega_ucb {name}: skipped, {ads_file(options)} is not there", flush=True)
        return []

    return if_there


def figure6(options: Options) -> list[Row]:
    """Figure 6: Figure 3 with intervals; here bands that hold whole curves."""
    for law, title in LAWS.items():
        if not options.quick:
            regret_figure(options, f"figure6_{law}", f"Figure 6: {title}", settings(law, options), bands=True)
    if ads_file(options).is_file() and not options.quick:
        regret_figure(options, "figure6_FB", "Figure 6: Facebook ads", ["FB-Br", "FB-Bt"], bands=True)
    return []


LAWS = {"S-Br": "Bernoulli", "S-GBr": "generalised Bernoulli", "S-Bt": "Beta"}
ITEMS: dict[str, Item] = {
    "example2": example2,
    "figure1": figure1,
    "figure2": figure2,
    "figure5": figure5,
    "figure3a": _regret_item("figure3a", "S-Br", "Figure 3a: Bernoulli", statements.bernoulli),
    "figure3b": _regret_item("figure3b", "S-GBr", "Figure 3b: generalised Bernoulli", statements.other_laws),
    "figure3c": _regret_item("figure3c", "S-Bt", "Figure 3c: Beta", statements.other_laws),
    "figure3d": _needs_ads(
        "figure3d", _regret_item("figure3d", "FB-Br", "Figure 3d: Facebook ads, Bernoulli", statements.ads)
    ),
    "figure3e": _needs_ads(
        "figure3e", _regret_item("figure3e", "FB-Bt", "Figure 3e: Facebook ads, Beta", statements.ads)
    ),
    "figure3f": _needs_ads("figure3f", densities),
    "figure4": figure4,
    "figure6": figure6,
}
CLOSED = ("example2", "figure5", "figure3f")  # not affected by the size
NOT_IN_QUICK = ("figure2", "figure3b", "figure3c", "figure3d", "figure3e", "figure6")
