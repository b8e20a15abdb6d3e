"""Figure 4 of the ω-UCB paper: which ρ is best."""

from __future__ import annotations

import numpy as np
from scipy import stats

from experiments.common.figures import figure, intervals, save
from experiments.common.looks import look
from experiments.common.rows import Row, mean_se, row
from experiments.common.running import Options
from experiments.omega_ucb.play import curves, seconds_row
from experiments.omega_ucb.specs import FAMILIES, LAWS, RHOS, fraction, of_size
from jaxbandits.statistics import holm

BOTH = ("ω-UCB", "ω*-UCB")
DASHES = {"10": "-", "50": "--", "100": ":"}


def figure4(options: Options) -> list[Row]:
    """Regret at B over ρ, for each law and K, and the best ρ (also with each K weighing the same)."""
    laws = {law: title for law, title in LAWS.items() if not (options.quick and law == "S-GBr")}
    picture, axes = figure(1, len(laws), (4.5 * len(laws), 4.4))
    rows: list[Row] = []
    for axis, (law, title) in zip(axes, laws.items(), strict=True):
        of_law: dict[str, list[np.ndarray]] = {family: [] for family in BOTH}
        for name in of_size(law, options):
            found = curves(name, options, BOTH)
            for family in BOTH:
                values = np.stack([found.at(1.0, label).mean("replicate").values for label in FAMILIES[family].labels])
                of_law[family].append(values)
                arms = name.rsplit("-", 1)[1]
                style = look(FAMILIES[family].labels[4]) | {"linestyle": DASHES[arms]}
                if family == "ω-UCB":  # it shows from under ω*-UCB where the two are equal
                    style |= {"linewidth": 3.5, "markersize": 8}
                intervals(axis, RHOS, values, capsize=2, label=f"{family}, K = {arms}", **style)
                rows.append(_best_rho(f"figure4: {name}, best ρ of {family}", law, family, values))
        for family, each_k in of_law.items():
            rows.append(_best_rho(f"figure4: {law}, all K, best ρ of {family}", law, family, np.mean(each_k, axis=0)))
        axis.set(title=title, xlabel="ρ", yscale="log")
        axis.set_xscale("log", base=2)
        axis.set_xticks(RHOS, [fraction(r) for r in RHOS])
    axes[0].set_ylabel("regret at B")
    title = "Figure 4: regret at the whole budget over ρ (mean and 95 % interval over random instances)"
    save(picture, options.out / "figure4.png", title, legend=axes, columns=3)
    played = [name for law in laws for name in of_size(law, options)]
    return [*rows, seconds_row("figure4: ", played, options, BOTH, "; shared with figure 3")]


def _best_rho(item: str, law: str, family: str, values: np.ndarray) -> Row:
    """``values`` [ρ, instance]: which ρ has the least mean, and how much worse is the one that the paper names?"""
    mean = values.mean(axis=1)
    least = int(mean.argmin())
    if law == "S-Br":
        published, named, slack = "1/4", 0.25, 0.0
    elif family == "ω-UCB":
        published, named, slack = "1/8 works well", 0.125, 0.1
    else:
        published, named, slack = "1/4 near-optimal", 0.25, 0.1
    wanted = int(np.flatnonzero(named == RHOS)[0])
    gap, se = (float(x) / mean[least] for x in mean_se(values[wanted] - values[least]))
    holds = is_near_least(values, wanted, slack)
    limit = f"{1 + slack:g} times " if slack else ""
    rule = f"yes: clearly below {limit}every other value, no: clearly above {limit}one (paired t-tests, Holm at 5 %)"
    listed = ", ".join(f"{fraction(r)}: {m:.4g}" for r, m in zip(RHOS, mean, strict=True))
    note = f"regret at ρ = {fraction(named)} is {100 * gap:.1f} ± {100 * se:.1f} % above the least; {rule}; {listed}"
    return row(item, fraction(RHOS[least]), f"{100 * se:.2g} %", published=published, holds=holds, note=note)


def is_near_least(values: np.ndarray, wanted: int, slack: float = 0.0) -> bool | None:
    """Has row ``wanted`` of ``values`` [ρ, instance] the least mean, or one at most ``slack`` above every other?"""
    excess = values[wanted] - (1 + slack) * np.delete(values, wanted, axis=0)
    p = holm(stats.ttest_1samp(excess, 0.0, axis=1).pvalue)
    clear, above = p <= 0.05, excess.mean(axis=1) > 0
    return False if (clear & above).any() else True if (clear & ~above).all() else None
