"""Figures 3 and 6 of the ω-UCB paper: regret over the budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter
from scipy import stats

from experiments.common.figures import figure, save
from experiments.common.looks import BLUE, VERMILION, look
from experiments.common.rows import Row, row
from experiments.common.running import Item, Options
from experiments.omega_ucb.play import Curves, curves, seconds_row
from experiments.omega_ucb.specs import COMPETITORS, LAWS, SETTINGS, STEPS, ads_file, of_size, omega, omega_star, steps
from jaxbandits.comparison.arms_file import read_arms
from jaxbandits.statistics import bootstrap_interval, simultaneous_band

OURS = (omega(0.25), omega(1.0), omega_star(0.25), omega_star(1.0))


def names_in(setting: str) -> list[str]:
    """What is drawn: ω* equals ω on Bernoulli arms, and is left out there as in the paper."""
    ours = OURS[:2] if setting.startswith("S-Br") else OURS
    return [*ours, *COMPETITORS]


def regret_figure(options: Options, name: str, title: str, settings: list[str], *, bands: bool = False) -> None:
    """One column per setting: mean regret as in the paper, and regret as a share of the best arm's reward.

    With ``bands`` they hold their whole curve at 95 %; without, each place by itself.
    """
    picture, axes = figure(2, len(settings), (max(6.5, 4.6 * len(settings)), 8.2))
    for column, setting in enumerate(settings):
        found = curves(setting, options)
        top, below = axes[column], axes[len(settings) + column]
        for policy in names_in(setting):
            _draw(top, found, "regret", policy, bands)
            _draw(below, found, "share", policy, bands)
        highest = max(float(found.at(1.0, p).mean()) for p in OURS)
        top.set(title=setting, ylim=(0, 2.2 * highest))
        below.set(yscale="log", xlabel="share of the budget spent")
        for axis in (top, below):
            _budget_axis(axis)
    axes[0].set_ylabel("regret (units of reward), mean")
    axes[len(settings)].set_ylabel("regret / reward of the best arm, mean")
    kind = "bands hold their whole curve at 95 %" if bands else "bands: 95 % at each place"
    what = "random instances" if SETTINGS[settings[0]].over == "instance" else "runs on the given campaigns"
    size = f"\nbudget {steps(options):,.0f} instead of {STEPS:,.0f} times the smallest mean cost"
    picture.suptitle(f"{title}\n{kind}, over {what}{'' if options.full else size}", fontsize=11)
    save(picture, options.out / f"{name}.png", legend=axes, columns=3 if len(settings) == 1 else 6)


def regret_item(name: str, law: str, title: str, tell: Callable[[str, Options], list[Row]]) -> Item:
    """A panel of Figure 3, and the rows that ``tell`` gives for each of its settings."""

    def item(options: Options) -> list[Row]:
        played = [law] if law.startswith("FB") else of_size(law, options)
        regret_figure(options, name, f"Figure {name.removeprefix('figure')}: {title}", played)
        rows = [seconds_row("", played, options, note=f" in {', '.join(played)}")]
        rows += [told for setting in played for told in tell(setting, options)]
        return [told._replace(item=f"{name}: {told.item}") for told in rows]

    return item


def needs_ads(name: str, item: Item) -> Item:
    """The item, skipped with a line that says so where the ads are missing."""

    def if_there(options: Options) -> list[Row]:
        if ads_file(options).is_file():
            return item(options)
        print(f"omega_ucb {name}: skipped, {ads_file(options)} is not there", flush=True)
        return []

    return if_there


def figure6(options: Options) -> list[Row]:
    """Figure 6: Figure 3 with intervals; here bands that hold whole curves."""
    if options.quick:
        return []
    for law, title in LAWS.items():
        regret_figure(options, f"figure6_{law}", f"Figure 6: {title}", of_size(law, options), bands=True)
    if ads_file(options).is_file():
        regret_figure(options, "figure6_FB", "Figure 6: Facebook ads", ["FB-Br", "FB-Bt"], bands=True)
    return []


def _draw(axis: Any, found: Curves, kind: str, policy: str, bands: bool) -> None:
    values = getattr(found, kind)[policy]
    make = simultaneous_band if bands else bootstrap_interval
    band = make(values, over=found.over, resamples=1000)
    x, style = values["mark"].values, look(policy)
    axis.plot(x, band["mean"], label=policy, markevery=(1, 4), **style)
    axis.fill_between(x, band["low"].values, band["high"].values, color=style["color"], alpha=0.1, linewidth=0)


def _budget_axis(axis: Any) -> None:
    axis.set_xscale("log")
    axis.set_xlim(0.01, 1.05)
    axis.xaxis.set_major_locator(FixedLocator([0.01, 0.03, 0.1, 0.3, 1.0]))
    axis.xaxis.set_major_formatter(FixedFormatter(["0.01", "0.03", "0.1", "0.3", "1"]))
    axis.xaxis.set_minor_formatter(NullFormatter())


def densities(options: Options) -> list[Row]:
    """Figure 3f: where the mean rewards and costs of the campaign with 33 ads lie."""
    (campaign,) = [c for c in read_arms(ads_file(options)).instances if len(c.arms) == 33]
    picture, axes = figure(1, 1, (7, 4.2))
    x = np.linspace(0, 1, 300)
    rows = []
    for name, means, colour, dashes, depth in (
        ("mean reward", campaign.scaled_mean_reward, BLUE, "-", -0.16),
        ("mean cost", campaign.scaled_mean_cost, VERMILION, "--", -0.08),
    ):
        axes[0].plot(x, stats.gaussian_kde(means)(x), dashes, color=colour, label=name)
        axes[0].plot(means, np.full(means.size, depth), "|", color=colour)
        quartiles, outside = np.quantile(means, [0.25, 0.5, 0.75]), float(((means < 0.25) | (means > 0.75)).mean())
        if name == "mean cost":
            said, holds, rule = "towards 1", quartiles[1] > 0.5, "median above 1/2"
        else:
            said, holds, rule = "towards the ends of [0, 1]", outside > 0.5, "more than half of them"
        item, inside = (
            f"figure3f: {name} of campaign {campaign.name}",
            "quartiles " + ", ".join(f"{q:.2f}" for q in quartiles),
        )
        note = f"{100 * outside:.0f} % below 1/4 or above 3/4; yes: {rule}"
        rows.append(row(item, inside, 0, published=said, holds=holds, note=note))
    title = f"Figure 3f: campaign {campaign.name}, K = 33"
    axes[0].set(xlabel="mean of an ad (scaled)", ylabel="kernel density", title=title)
    axes[0].legend(frameon=False)
    save(picture, options.out / "figure3f.png")
    return rows
