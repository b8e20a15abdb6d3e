"""What the SUAK paper says about skips, from the runs of both figures."""

from __future__ import annotations

import numpy as np

from experiments.common.figures import curve, figure, save
from experiments.common.rows import Row, is_above, mean_row, row
from experiments.common.running import Options
from experiments.suak.play import Played, play

LEAST = {1: 4.5e3, 2: 1.35e4}  # our estimates for SUAK, 73.5 ln T / δ² pulls an arm


def skips(options: Options) -> list[Row]:
    """Statements about skips, from the runs of both figures."""
    both = {number: play(number, options) for number in (1, 2)}
    one, two = ({name: x[:, -1] for name, x in played.skips.items()} for played in both.values())
    more = one["OPS, a = 3"] / one["SUAK"]
    holds, note = is_above(more, 2.0), "a = 3; yes: above 2"
    rows = [mean_row("skips 1: OPS / SUAK", more, "many more (≫ 1)", holds=holds, note=note)]
    for number, played in both.items():
        rows += [_sublinear(number, played, name) for name in played.skips]
    for number, final in ((1, one["SUAK"]), (2, two["SUAK"])):
        said, holds = f"at least ≈ {LEAST[number]:g} (our estimate)", LEAST[number] <= final.mean()
        rows.append(
            mean_row(f"skips {number}: SUAK at T", final, said, holds=holds, note="73.5 ln T / δ² pulls an arm")
        )
    for name in ("SUAK", "USS, λ = 9", "USS, λ = 5"):
        share, note = two[name] / two["OPS, a = 3"], "a = 3; yes: below a quarter of OPS's"
        rows.append(mean_row(f"skips 2: {name} / OPS", share, "very few", holds=is_above(0.25 - share), note=note))
    picture, axes = figure(1, 2, (10, 4.4))
    for axis, (number, played) in zip(axes, both.items(), strict=True):
        for name, values in played.skips.items():
            curve(axis, played.t, np.maximum(values, 0.5), name)
        axis.set(xscale="log", yscale="log", xlabel="round t", ylabel="skipped rounds", title=f"Instance {number}")
    title = "Skips so far (mean and 95 % interval; a slope below 1 is sublinear)"
    save(picture, options.out / "skips.png", title, legend=[axes[1]])
    return rows


def _sublinear(number: int, played: Played, name: str) -> Row:
    half = played.t >= played.t[-1] / 2
    mean = played.skips[name].mean(axis=0)[half]
    item, said = f"skips {number}: growth exponent of {name}", "< 1 (sublinear)"
    if mean[0] < 1:
        return row(item, 0, published=said, holds=True, note=f"{mean[-1]:.3g} skips in all")
    logs = np.log(played.t[half])
    slopes = np.array([np.polyfit(logs, np.log(np.maximum(x[half], 0.5)), 1)[0] for x in played.skips[name]])
    note = "slope of log skips over log t, second half; yes: below 0.98"
    return mean_row(item, slopes, said, holds=is_above(0.98 - slopes), note=note)
