"""Anytime knapsacks (the SUAK paper): both figures, every statement about them, sweeps, an audit, LLM routing.

    python -m experiments suak [--quick|--full] [--only ITEM] [--out DIR] [--data DIR]

Items: figure1, figure2, skips, sweep_c, sweep_gap, audit, routing. ``--full`` plays the published horizons 200 times.
"""

from __future__ import annotations

import numpy as np

from experiments._suak_play import C, Played, play
from experiments._suak_routing import routing
from experiments._suak_sweeps import audit, sweep_c, sweep_gap
from experiments.common import (
    Item,
    Options,
    Row,
    count_rounds,
    curve,
    figure,
    is_above,
    mean_se,
    ranking,
    run_items,
    save,
    verdict,
)


def run(options: Options) -> None:
    """All items, or those whose names begin with ``--only``."""
    run_items("suak", ITEMS, options, any_size=lambda row: "violation" in row.item or "r*" in row.item)


def figure1(options: Options) -> list[Row]:
    """Figure 1: SUAK against One-Phase with skips, three arms."""
    played = play(1, options)
    picture, axes = figure(1, 3, (12, 4.2))
    _panels(played, axes, tuple(played.regret))
    picture.suptitle(_title("Instance 1 (K = 3, c = 0.5)", played))
    save(picture, options.out / "figure1.png", legend=axes[:1])
    gap = played.regret["OPS, a = 3"][:, -1] - played.regret["SUAK"][:, -1]
    return [
        _timing("figure1", played),
        Row("figure1: r*", "0.59", f"{played.best:.5f}", "", verdict(abs(played.best - 0.59) < 5e-4), "closed form"),
        *_levels("figure1", played),
        ranking("figure1: order of the regrets at T", {name: x[:, -1] for name, x in played.regret.items()}),
        _row("figure1: regret of OPS − SUAK at T", "> 0", gap, is_above(gap), "a = 3, paired"),
        *(
            _row(f"figure1: regret of OPS − SUAK at T, a = {a}", "> 0", x, is_above(x), "paired; other radius")
            for a in ("2.4", "2")
            for x in [played.regret[f"OPS, a = {a}"][:, -1] - played.regret["SUAK"][:, -1]]
        ),
    ]


def figure2(options: Options) -> list[Row]:
    """Figure 2: all four policies, eight arms."""
    played = play(2, options)
    picture, axes = figure(2, 2, (11, 8))
    names = tuple(played.regret)
    _panels(played, [axes[0], axes[2], axes[3]], names)
    for name in ("SUAK", "OPS, a = 3", "OPS, a = 2.4", "OPS, a = 2"):
        curve(axes[1], played.t, played.regret[name], name, spread=True)
    axes[1].set(title="Regret, enlarged: SUAK and OPS", xlabel="round t", ylabel="T·r* − Σ reward")
    count_rounds(axes[1])
    picture.suptitle(_title("Instance 2 (K = 8, c = 0.5)", played))
    save(picture, options.out / "figure2.png", legend=axes[:1])
    last = {name: x[:, -1] for name, x in played.regret.items()}
    others = np.max([last[n] for n in names if n not in ("PDS",)], axis=0)
    return [
        _timing("figure2", played),
        Row("figure2: r*", "0.65", f"{played.best:.5f}", "", verdict(abs(played.best - 0.65) < 5e-4), "closed form"),
        *_levels("figure2", played),
        ranking("figure2: order of the regrets at T", last),
        _row(
            "figure2: PDS is worst: its regret − largest other",
            "> 0",
            last["PDS"] - others,
            is_above(last["PDS"] - others),
            "paired",
        ),
        _row(
            "figure2: regret of PDS",
            "1.20e5 (our calculation)",
            last["PDS"],
            bool(abs(last["PDS"].mean() / 1.2e5 - 1) < 0.05),
            "phase 1 does not end; yes: within 5 %",
        ),
        *(
            _row(
                f"figure2: regret of {n} − SUAK",
                "> 0",
                last[n] - last["SUAK"],
                is_above(last[n] - last["SUAK"]),
                "USS performs poorly; paired" if "9" in n else "λ = 5 is valid here; paired",
            )
            for n in ("USS, λ = 9", "USS, λ = 5")
        ),
        *(crossing(played, a) for a in ("3", "2.4", "2")),
        *_average_cost(played),
    ]


def crossing(played: Played, a: str) -> Row:
    """The last round at which SUAK's mean regret goes below that of One-Phase, with a bootstrap over runs."""
    ahead = played.regret["SUAK"] - played.regret[f"OPS, a = {a}"]

    def last_crossing(runs: np.ndarray) -> float:
        mean = ahead[runs].mean(axis=0)
        above = np.flatnonzero(mean > 0)
        if mean[-1] > 0 or above.size == 0:
            return np.nan
        i = above[-1]
        share = mean[i] / (mean[i] - mean[i + 1])
        return float(played.t[i] + share * (played.t[i + 1] - played.t[i]))

    count = ahead.shape[0]
    rng = np.random.default_rng(0)
    at = last_crossing(np.arange(count))
    draws = np.array([last_crossing(rng.integers(0, count, count)) for _ in range(400)])
    name = f"figure2: SUAK overtakes OPS at round, a = {a}"
    if np.isnan(at):
        final, se = mean_se(ahead[:, -1])
        note = f"never; SUAK − OPS at T: {final:.4g} ± {se:.2g}"
        return Row(name, "≈ 1.4e6", "none", "", "no", note)
    error = float(np.nanstd(draws))
    first = last_crossing(np.arange(min(10, count)))
    note = f"bootstrap over {count} runs; first 10 runs alone: {first:.4g}; yes: 1.2e6 to 1.6e6"
    return Row(name, "≈ 1.4e6", f"{at:.4g}", f"{error:.2g}", verdict(1.2e6 <= at <= 1.6e6), note)


def skips(options: Options) -> list[Row]:
    """Statements about skips, from the runs of both figures."""
    one, two = play(1, options), play(2, options)
    more = one.skips["OPS, a = 3"][:, -1] / one.skips["SUAK"][:, -1]
    rows = [_row("skips 1: OPS / SUAK", "many more (≫ 1)", more, is_above(more, 2.0), "a = 3; yes: above 2")]
    for figure_, played in ((1, one), (2, two)):
        for name in played.skips:
            rows.append(_sublinear(figure_, played, name))
    least = {1: 4.5e3, 2: 1.35e4}
    for number, played in ((1, one), (2, two)):
        final = played.skips["SUAK"][:, -1]
        holds = bool(least[number] <= final.mean())
        rows.append(
            _row(
                f"skips {number}: SUAK at T",
                f"at least ≈ {least[number]:g} (our estimate)",
                final,
                holds,
                "73.5 ln T / δ² pulls an arm",
            )
        )
    for name in ("SUAK", "USS, λ = 9", "USS, λ = 5"):
        share = two.skips[name][:, -1] / two.skips["OPS, a = 3"][:, -1]
        few = is_above(0.25 - share)
        rows.append(_row(f"skips 2: {name} / OPS", "very few", share, few, "a = 3; yes: below a quarter of OPS's"))
    picture, axes = figure(1, 2, (10, 4.4))
    for axis, played, number in ((axes[0], one, 1), (axes[1], two, 2)):
        for name, values in played.skips.items():
            curve(axis, played.t, np.maximum(values, 0.5), name)
        axis.set(xscale="log", yscale="log", xlabel="round t", ylabel="skipped rounds", title=f"Instance {number}")
    picture.suptitle("Skips so far (mean and 95 % interval; a slope below 1 is sublinear)")
    save(picture, options.out / "skips.png", legend=[axes[1]])
    return rows


def _sublinear(number: int, played: Played, name: str) -> Row:
    half = played.t >= played.t[-1] / 2
    mean = played.skips[name].mean(axis=0)[half]
    item, published = f"skips {number}: growth exponent of {name}", "< 1 (sublinear)"
    if mean[0] < 1:
        return Row(item, published, "0", "", "yes", f"{mean[-1]:.3g} skips in all")
    logs = np.log(played.t[half])
    slopes = [np.polyfit(logs, np.log(np.maximum(x[half], 0.5)), 1)[0] for x in played.skips[name]]
    return _row(
        item,
        published,
        slopes,
        is_above(0.98 - np.array(slopes)),
        "slope of log skips over log t, second half; yes: below 0.98",
    )


def _average_cost(played: Played) -> list[Row]:
    gap = played.gap["SUAK"]
    mean = gap.mean(axis=0)
    late = np.flatnonzero(played.t >= 0.02 * played.t[-1])
    dip = int(late[mean[late].argmax()])
    early = gap[:, (played.t >= 0.02 * played.t[-1]) & (played.t <= 0.1 * played.t[-1])].max(axis=1)
    rows = [
        _row("figure2: c − average cost of SUAK in phase 1", "≈ 0", early, bool(early.mean() < 1e-3),
             "largest between 2 % and 10 % of T; yes: below 0.001"),
        _row("figure2: lowest average cost of SUAK after phase 1", "≈ 0.49", C - gap[:, dip], bool(
            abs(C - mean[dip] - 0.49) < 0.005), f"at round {played.t[dip]:.3g}; yes: within 0.005"),
        _row("figure2: average cost of SUAK at T", "back towards 0.5", C - gap[:, -1], bool(
            mean[-1] < 0.75 * mean[dip]), "yes: a quarter of the dip or more is made good"),
    ]  # fmt: skip
    for name, x in played.gap.items():
        if name != "SUAK":
            rows.append(_row(f"figure2: c − average cost of {name} at T", "≈ 0", x[:, -1], bool(
                x[:, -1].mean() < 2e-3), "yes: below 0.002"))  # fmt: skip
    return rows


def _panels(played: Played, axes: object, names: tuple[str, ...]) -> None:
    what = (
        (played.regret, "Regret", "T·r* − Σ reward"),
        (played.skips, "Skips", "skipped rounds"),
        (played.gap, "Budget not used", "c − average cost"),
    )
    for axis, (values, title, label) in zip(axes, what, strict=True):  # type: ignore[call-overload]
        for name in names:
            curve(axis, played.t, values[name], name, spread=True)
        axis.set(title=title, xlabel="round t", ylabel=label)
        count_rounds(axis)
    gaps = np.concatenate([played.gap[n].mean(axis=0)[played.t >= 0.02 * played.t[-1]] for n in names])
    axes[2].set_ylim(-0.05 * gaps.max(), 1.25 * gaps.max())  # type: ignore[index]


def _title(text: str, played: Played) -> str:
    runs = next(iter(played.regret.values())).shape[0]
    return f"{text}: mean of {runs} runs, band ± 1 standard deviation of a run"


def _levels(item: str, played: Played) -> list[Row]:
    rows = [
        Row(f"{item}: largest violation", "0", f"{played.violation:g}", "", verdict(played.violation == 0), "exact")
    ]
    for name, x in played.regret.items():
        ten = mean_se(x[:10, -1])
        rows.append(
            _row(f"{item}: regret of {name} at T", "", x[:, -1], None, f"first 10: {ten[0]:.5g} ± {ten[1]:.2g}")
        )
    return rows


def _row(item: str, published: str, samples: object, holds: bool | None, note: str) -> Row:
    mean, se = mean_se(samples)
    return Row(item, published, f"{mean:.5g}", f"{se:.2g}", verdict(holds), note)


def _timing(item: str, played: Played) -> Row:
    wall, processor = (sum(x) for x in zip(*played.seconds.values(), strict=True))
    rate = played.rounds / wall / 1e6
    note = f"{played.rounds:.3g} rounds, {rate:.2g} million a second; {processor:.0f} s of processor time"
    return Row(f"{item}: seconds, compile included", "", f"{wall:.0f}", "", "unclear", note)


ITEMS: dict[str, Item] = {
    "figure1": figure1,
    "figure2": figure2,
    "skips": skips,
    "sweep_c": sweep_c,
    "sweep_gap": sweep_gap,
    "audit": audit,
    "routing": routing,
}
