"""Figures 1 and 2 of the SUAK paper, and what it says about them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.common.figures import count_rounds, curve, figure, save
from experiments.common.rows import Row, is_above, is_within, mean_row, mean_se, ranking, row
from experiments.common.running import Options
from experiments.suak.play import MEANS, RADII, C, Played, play, violation


def figure1(options: Options) -> list[Row]:
    """Figure 1: SUAK against One-Phase with skips, three arms."""
    played = play(1, options)
    picture, axes = figure(1, 3, (12, 4.2))
    _panels(played, axes, tuple(played.regret))
    save(picture, options.out / "figure1.png", _title("Instance 1 (K = 3, c = 0.5)", played), legend=axes[:1])
    rows = _levels("figure1", played, 0.59)
    for a, note in ((3, "a = 3, paired"), (2.4, "paired; other radius"), (2, "paired; other radius")):
        gap = played.last(f"OPS, a = {a}") - played.last("SUAK")
        item = "figure1: regret of OPS − SUAK at T" + ("" if a == 3 else f", a = {a}")
        rows.append(mean_row(item, gap, "> 0", holds=is_above(gap), note=note))
    return rows


def figure2(options: Options) -> list[Row]:
    """Figure 2: all four policies, eight arms."""
    played = play(2, options)
    picture, axes = figure(2, 2, (11, 8))
    names = tuple(played.regret)
    _panels(played, [axes[0], axes[2], axes[3]], names)
    for name in ("SUAK", *(f"OPS, a = {a:g}" for a in RADII)):
        curve(axes[1], played.t, played.regret[name], name, spread=True)
    axes[1].set(title="Regret, enlarged: SUAK and OPS", xlabel="round t", ylabel="T·r* − Σ reward")
    count_rounds(axes[1])
    save(picture, options.out / "figure2.png", _title("Instance 2 (K = 8, c = 0.5)", played), legend=axes[:1])
    pds = played.last("PDS")
    lead = pds - np.max([played.last(n) for n in names if n != "PDS"], axis=0)
    item, said = "figure2: PDS is worst: its regret − largest other", "1.20e5 (our calculation)"
    near, note = is_within(*mean_se(pds), 1.14e5, 1.26e5), "phase 1 does not end; yes: within 5 %, by 2 s.e."
    rows = [
        *_levels("figure2", played, 0.65),
        mean_row(item, lead, "> 0", holds=is_above(lead), note="paired"),
        mean_row("figure2: regret of PDS", pds, said, holds=near, note=note),
    ]
    for name, note in (("USS, λ = 9", "USS performs poorly; paired"), ("USS, λ = 5", "λ = 5 is valid here; paired")):
        gap = played.last(name) - played.last("SUAK")
        rows.append(mean_row(f"figure2: regret of {name} − SUAK", gap, "> 0", holds=is_above(gap), note=note))
    return rows + [_crossing(played, f"{a:g}") for a in RADII] + _average_cost(played)


def _crossing(played: Played, a: str) -> Row:
    """The last round at which SUAK's mean regret goes below that of One-Phase, with a bootstrap over runs."""
    ahead = played.regret["SUAK"] - played.regret[f"OPS, a = {a}"]
    count = ahead.shape[0]
    rng = np.random.default_rng(0)
    at = _last_crossing(played.t, ahead)
    item, said = f"figure2: SUAK overtakes OPS at round, a = {a}", "≈ 1.4e6"
    if np.isnan(at):
        final, se = mean_se(ahead[:, -1])
        return row(item, "none", published=said, holds=False, note=f"never; SUAK − OPS at T: {final:.4g} ± {se:.2g}")
    error = np.nanstd([_last_crossing(played.t, ahead[rng.integers(0, count, count)]) for _ in range(400)])
    first = _last_crossing(played.t, ahead[: min(10, count)])
    note = f"bootstrap over {count} runs; first 10 runs alone: {first:.4g}; yes: 1.2e6 to 1.6e6, by 2 s.e."
    return row(item, at, error, published=said, holds=is_within(at, error, 1.2e6, 1.6e6), note=note)


def _last_crossing(t: np.ndarray, ahead: np.ndarray) -> float:
    """Where the mean of differences ``[run, mark]`` goes below 0 for the last time; NaN: nowhere."""
    mean = ahead.mean(axis=0)
    above = np.flatnonzero(mean > 0)
    if mean[-1] > 0 or above.size == 0:
        return np.nan
    i = above[-1]
    share = mean[i] / (mean[i] - mean[i + 1])
    return float(t[i] + share * (t[i + 1] - t[i]))


def _average_cost(played: Played) -> list[Row]:
    gap, late = played.gap["SUAK"], played.t >= 0.02 * played.t[-1]
    mean = gap.mean(axis=0)
    dip = int(np.flatnonzero(late)[mean[late].argmax()])
    early = gap[:, late & (played.t <= 0.1 * played.t[-1])].max(axis=1)
    rows = [
        mean_row("figure2: c − average cost of SUAK in phase 1", early, "≈ 0", holds=is_above(-early, -1e-3),
                 note="largest between 2 % and 10 % of T; yes: below 0.001, by 2 s.e."),
        mean_row("figure2: lowest average cost of SUAK after phase 1", C - gap[:, dip], "≈ 0.49",
                 holds=is_within(*mean_se(C - gap[:, dip]), 0.485, 0.495),
                 note=f"at round {played.t[dip]:.3g}; yes: within 0.005, by 2 s.e."),
        mean_row("figure2: average cost of SUAK at T", C - gap[:, -1], "back towards 0.5",
                 holds=is_above(0.75 * gap[:, dip] - gap[:, -1]),
                 note="yes: a quarter of the dip or more is made good, by 2 s.e."),
    ]  # fmt: skip
    for name, x in played.gap.items():
        if name != "SUAK":
            item, holds = f"figure2: c − average cost of {name} at T", is_above(-x[:, -1], -2e-3)
            rows.append(mean_row(item, x[:, -1], "≈ 0", holds=holds, note="yes: below 0.002, by 2 s.e."))
    return rows


def _panels(played: Played, axes: Any, names: tuple[str, ...]) -> None:
    what = (
        (played.regret, "Regret", "T·r* − Σ reward"),
        (played.skips, "Skips", "skipped rounds"),
        (played.gap, "Budget not used", "c − average cost"),
    )
    for axis, (values, title, label) in zip(axes, what, strict=True):
        for name in names:
            curve(axis, played.t, values[name], name, spread=True)
        axis.set(title=title, xlabel="round t", ylabel=label)
        count_rounds(axis)
    gaps = np.concatenate([played.gap[n].mean(axis=0)[played.t >= 0.02 * played.t[-1]] for n in names])
    axes[2].set_ylim(-0.05 * gaps.max(), 1.25 * gaps.max())


def _title(text: str, played: Played) -> str:
    runs = next(iter(played.regret.values())).shape[0]
    return f"{text}: mean of {runs} runs, band ± 1 standard deviation of a run"


def _levels(item: str, played: Played, best: float) -> list[Row]:
    """Seconds, r*, violation, regrets at T and their order."""
    wall, processor = (sum(x) for x in zip(*played.seconds.values(), strict=True))
    rate = played.rounds / wall / 1e6
    note = f"{played.rounds:.3g} rounds, {rate:.2g} million a second; {processor:.0f} s of processor time"
    right = abs(played.best - best) < 5e-4
    rows = [
        row(f"{item}: seconds, compile included", wall, note=note, digits=".0f"),
        row(f"{item}: r*", played.best, published=best, holds=right, note="closed form", digits=".5f"),
        violation(item, played.violation, "exact"),
    ]
    bound, suak = regret_bound(*MEANS[1 if item == "figure1" else 2], C, int(played.t[-1])), played.last("SUAK")
    note = f"constants as printed; playing nothing loses {played.best * played.t[-1]:.3g}"
    note += "; the bound is larger" if bound > played.best * played.t[-1] else ""
    below = is_above(-suak, -bound)
    rows.append(mean_row(f"{item}: SUAK within Theorem 3.2", suak, f"≤ {bound:.3g}", holds=below, note=note))
    for name in played.regret:
        ten = mean_se(played.last(name)[:10])
        note = f"first 10: {ten[0]:.5g} ± {ten[1]:.2g}"
        rows.append(mean_row(f"{item}: regret of {name} at T", played.last(name), note=note))
    last = {name: played.last(name) for name in played.regret}
    return [*rows, ranking(f"{item}: order of the regrets at T", last)]


def regret_bound(mean_reward: Sequence[float], mean_cost: Sequence[float], c: float, rounds: int) -> float:
    """Theorem 3.2 at T = ``rounds``, Eq. (11).

    A base is a pair of arms on both sides of c, or one arm and the null arm; Δ_min,i is the least gap of a base with
    arm i that is not the best one.
    """
    arms = [(0.0, 0.0), *zip(mean_reward, mean_cost, strict=True)]  # the null arm first
    rates: dict[tuple[int, int], float] = {}
    for j, k in itertools.permutations(range(len(arms)), 2):
        (low, saved), (high, spent) = arms[j], arms[k]
        if saved <= c < spent:
            share = (spent - c) / (spent - saved)
            rates[j, k] = share * low + (1 - share) * high
        elif j and not k and saved <= c:  # affordable alone
            rates[j, k] = low
    best = max(rates.values())
    delta = np.abs(np.array(mean_cost) - c)
    total = 241 * len(delta) * best * np.log(rounds) / (c * delta.min() ** 2)
    total += 3 * np.pi**2 * best / delta.min() ** 2 + 2 * np.pi**2 * len(delta) ** 2
    for i, own in enumerate(delta, start=1):
        gap = min(best - rate for base, rate in rates.items() if i in base and best - rate > 1e-12)
        total += 432 * best * ((own + 1) / own) ** 2 * np.log(rounds) / (delta.min() * gap**2)
    return float(total)
