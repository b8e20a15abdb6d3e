"""Figures 2, 3, 4 and 6 of the ω-UCB paper, and what it says of Figure 3, one by one."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray
from scipy import stats

import jaxbandits as jb
from experiments import common
from experiments.common import (
    Item,
    Options,
    Row,
    Summary,
    above_zero,
    between,
    beyond,
    is_within,
    mean_se,
    row,
)
from experiments.figures import figure, intervals, look, name_ticks, save
from experiments.omega_ucb import play
from experiments.omega_ucb.ads import read_ads
from experiments.omega_ucb.play import (
    CODED,
    COMPETITORS,
    SHOWN,
    Curves,
    curves,
    omega,
    omega_star,
    seconds_row,
)
from jaxbandits.apps.comparison.worlds import scaled_means
from jaxbandits.statistics.estimates import moments, units

TENTH, MIDDLE, END = SHOWN


def less(
    item: str,
    published: str,
    low: xarray.DataArray,
    high: xarray.DataArray,
    over: str,
    note: str = "paired",
) -> Row:
    """Is the mean of ``low`` below that of ``high``? By 95 % bootstrap of paired differences."""
    low, high = xarray.align(low, high, join="inner")
    interval = jb.statistics.bootstrap_interval(jb.statistics.paired(high, low), over=over)
    mean, low_end, high_end = interval.value, interval.low, interval.high
    holds = beyond(low_end, high_end)
    low_mean, high_mean = (float(x.mean()) for x in (low, high))
    details = f"{note}; {low_mean:.5g} against {high_mean:.5g}; "
    details += f"95 % interval {low_end:.4g} to {high_end:.4g}"
    if bool((high == low).all()):
        holds, details = False, f"equal, run by run; {low_mean:.5g}"
    elif holds is None:
        details += f"; {runs_to_tell(high, low, over)}"
    error = standard_error(high - low, over)
    return row(item, mean, error, published=published, holds=holds, note=details, digits=".5g")


def somewhere(item: str, runs: Curves, above: str, below: str) -> Row:
    """Is ``above`` the larger regret at some share up to 0.1 B? By a band over all those shares."""
    difference = (runs.regret[above] - runs.regret[below]).sel(mark=slice(None, TENTH))
    band = jb.statistics.simultaneous_band(difference, over=runs.over)
    at = int(band.low.values.argmax())
    holds = True if bool((band.low > 0).any()) else False if bool((band.high < 0).all()) else None
    mean, low, high = (float(part[at]) for part in (band.value, band.low, band.high))
    note = f"at {float(difference['mark'][at]):.2g} B; "
    note += f"band at 95 % for all shares: {low:.4g} to {high:.4g}"
    error = standard_error(difference.isel(mark=at), runs.over)
    return row(item, mean, error, published="may be > 0 for small budgets", holds=holds, note=note)


def standard_error(x: xarray.DataArray, over: str) -> float:
    return float(moments(np.asarray(units(x, over).values, float)).error)


def runs_to_tell(x: xarray.DataArray, y: xarray.DataArray, over: str) -> str:
    needed = float(jb.statistics.runs_needed(x, y, over=over)["needed"])
    units = "instances" if over == "instance" else "runs of each campaign"
    return (
        f"about {float(f'{needed:.2g}'):,.0f} {units} would tell"
        if needed < 1e7
        else "no number of runs would tell"
    )


def best(
    item: str, published: str, runs: Curves, share: float, name: str, rivals: Sequence[str]
) -> Row:
    """Has ``name`` less regret than all others? Paired; all intervals hold at once with 95 %."""
    regret = runs.at(share, name)
    gaps = {rival: runs.at(share, rival) - regret for rival in rivals}
    level = 1 - 0.05 / len(rivals)
    tests = {
        o: jb.statistics.dominance(
            runs.at(share, name, o), among="policy", over=runs.over, level=level
        )[dict(policy=1, against=0)]
        for o in rivals
    }
    behind = [o for o in rivals if not tests[o]["larger"]]
    better = [o for o in behind if tests[o]["smaller"]]
    nearest = min(rivals, key=lambda o: float(runs.at(share, o).mean()))
    holds = False if better else None if behind else True
    remarks = [
        f"{name}: {float(regret.mean()):.5g}; measured: regret of the best other ({nearest}) − it"
    ]
    if better:
        remarks.append(f"clearly less regret: {', '.join(better)}")
    for rival in (o for o in behind if o not in better):
        worse = (gaps[rival] > 0).values
        remarks.append(
            f"not clear: {rival} ({float(tests[rival]['low']):.3g} to {float(tests[rival]['high']):.3g}, "
            f"more regret in {worse.sum()} of {worse.size} runs)"
        )
    if holds is None and len(behind) <= 2:
        remarks.append(
            runs_to_tell(*xarray.align(runs.at(share, behind[0]), regret, join="inner"), runs.over)
        )
    lead = gaps[nearest]
    return row(item, lead.mean(), standard_error(lead, runs.over), published=published, holds=holds,
               note="; ".join(remarks), digits=".5g")  # fmt: skip


def statistic(
    item: str, published: str, function: Callable[..., Any], samples: Sequence[xarray.DataArray],
    holds: Callable[..., bool | None], note: str, over: str = "instance",
) -> Row:  # fmt: skip
    """A function of the means of several curves, with its bootstrap interval over ``over``."""
    averaged = "replicate" if over == "instance" else "instance"
    values = [np.asarray(x.mean(averaged).values, float) for x in samples]

    def of_means(*arrays: np.ndarray, axis: int = -1) -> np.ndarray:
        return function(*(part.mean(axis=axis) for part in arrays))

    bootstrap = stats.bootstrap(
        values, of_means, paired=True, vectorized=True, n_resamples=2000, method="percentile",
        rng=np.random.default_rng(0),
    )  # fmt: skip
    low, high = bootstrap.confidence_interval
    note += f"; 95 % interval {low:.3g} to {high:.3g}"
    return row(
        item,
        of_means(*values),
        bootstrap.standard_error,
        published=published,
        holds=holds(low, high),
        note=note,
    )


def above(level: float, sign: int = 1) -> Callable[[float, float], bool | None]:
    """yes if ``sign`` times the interval is above the level, no if below."""
    return lambda low, high: beyond(
        min(sign * low, sign * high), max(sign * low, sign * high), level
    )


def local_exponent(middle: Any, end: Any) -> Any:
    """Local exponent of the mean regret in the budget, over the last half decade."""
    return np.log(end / middle) / np.log(END / MIDDLE)


def bend(tenth: Any, middle: Any, end: Any) -> Any:
    """Growth in the last half decade over that in the one before: 1 if straight over ln B."""
    return (end - middle) / (middle - tenth)


QUARTER, ONE = omega(0.25), omega(1.0)
STAR, STAR_ONE = omega_star(0.25), omega_star(1.0)
UCBS = ("m-UCB", "c-UCB", "i-UCB")
EASIER = ("BTS", "KL-UCB-SC+", "UCB-SC+")  # on the ads; the paper says so of the first two


def bernoulli(name: str, options: Options) -> list[Row]:
    """§6.1, synthetic Bernoulli."""
    runs, arms = curves(name, options), int(name.rsplit("-", 1)[1])
    rows = _leads(name, runs, QUARTER, "has the least regret", "yes", (ONE, *COMPETITORS))
    for policy, theirs in itertools.product((QUARTER, ONE, "BTS"), UCBS):
        item = f"{name}: growth exponent of {theirs} − of {policy}, from 0.32 B to B"
        means = (
            [float(runs.at(share, label).mean()) for share in (MIDDLE, END)]
            for label in (theirs, policy)
        )
        note = "exponents {:.2f} and {:.2f}".format(*(local_exponent(*pair) for pair in means))
        rows.append(_faster(item, "> 0 (better asymptotics)", runs, theirs, policy, note))
    for theirs in UCBS:
        rows.append(
            somewhere(
                f"{name}: regret of {ONE} − {theirs}, where largest up to 0.1 B", runs, ONE, theirs
            )
        )
        rows.append(_gap(name, runs, theirs, ONE, "> 0"))
    if arms == 10:
        rows.append(_gap(name, runs, ONE, "BTS", "> 0 (only for K = 10)"))
    else:
        rows += [_gap(name, runs, "BTS", policy, "> 0") for policy in (QUARTER, ONE)]
    rows += _bends(name, runs)
    rows.append(_gap(name, runs, ONE, QUARTER, "> 0 (not too large budgets)"))
    item = f"{name}: growth exponent of {QUARTER} − of {ONE}"
    statement = "> 0 (ρ = 1 better asymptotically)"
    note = "from 0.32 B to B: yes and no are about these budgets, no finite one shows or refutes what comes later"
    rows.append(_faster(item, statement, runs, QUARTER, ONE, note))
    rows.append(_almost_equal(name, runs))
    if arms == 10:
        constant = "ω-UCB, α = 0.05"
        extended = Curves(
            runs.setting, runs.regret | curves(name, options, ["constant"]).regret, runs.share
        )
        exponents = [
            float(local_exponent(*(extended.at(share, label).mean() for share in (MIDDLE, END))))
            for label in (constant, ONE)
        ]
        item = f"{name}: growth exponent of {constant} − of {ONE}"
        note = "exponents {:.2f} and {:.2f}".format(*exponents)
        rows.append(
            _faster(item, "> 0 (linear regret with a constant α)", extended, constant, ONE, note)
        )
    return rows + magnitudes(name, runs) + (_ranges(runs) if arms == 100 else [])


def _leads(
    name: str, runs: Curves, policy: str, claim: str, published: str, rivals: Sequence[str]
) -> list[Row]:
    """Has one policy less regret than others, at every share of the budget that is shown?"""
    labels = {share: "B" if share == 1 else f"{share:.2g} B" for share in SHOWN}
    return [
        best(f"{name}: {policy} {claim} at {at}", published, runs, share, policy, rivals)
        for share, at in labels.items()
    ]


def _gap(name: str, runs: Curves, worse: str, better: str, published: str) -> Row:
    """Has one policy less regret at B than another?"""
    item = f"{name}: regret of {worse} − {better} at B"
    return less(item, published, runs.at(END, better), runs.at(END, worse), runs.over)


def _faster(item: str, published: str, runs: Curves, faster: str, slower: str, note: str) -> Row:
    """Does the regret of one policy grow faster than that of another?"""
    samples = [runs.at(share, label) for label in (faster, slower) for share in (MIDDLE, END)]
    return statistic(
        item,
        published,
        lambda a, b, c, d: local_exponent(a, b) - local_exponent(c, d),
        samples,
        above(0),
        note,
    )


def _bends(name: str, runs: Curves) -> list[Row]:
    unit, quarter, bts = (
        [runs.at(share, label) for share in SHOWN] for label in (ONE, QUARTER, "BTS")
    )
    note = "growth from 0.32 B to B over that from 0.1 B to 0.32 B"

    def straight(low: float, high: float) -> bool | None:
        return False if low > 1 or high < 1 else True if high - low < 1 else None

    def flat(low: float, high: float) -> bool | None:
        return True if high < 1 else straight(low, high)

    rule = f"{note}; yes: 1 inside an interval shorter than 1"
    return [
        statistic(f"{name}: bend of {ONE}", "1 (straight over ln B)", bend, unit, straight, rule),
        statistic(f"{name}: bend of {QUARTER}", "> 1 (convex)", bend, quarter, above(1), note),
        statistic(
            f"{name}: bend of BTS", "≤ 1 (logarithmic)", bend, bts, flat, f"{rule}, or below 1"
        ),
    ]


def _almost_equal(name: str, runs: Curves) -> Row:
    gap, size = runs.at(END, STAR) - runs.at(END, QUARTER), float(runs.at(END, QUARTER).mean())
    part, error = float(gap.mean()) / size, standard_error(gap, runs.over) / size
    item = f"{name}: regret of {STAR} − {QUARTER} at B, share of the latter"
    if not gap.any():
        note = "equal, run by run: η̂ is exactly 1 on Bernoulli arms, so nothing is tested"
        return row(
            item,
            part,
            error,
            published="almost 0",
            holds=common.BY_CONSTRUCTION,
            note=note,
            digits=".3g",
        )
    close = is_within(part, error, -0.05, 0.05)
    note = "yes: its interval of 2 standard errors within 5 %"
    return row(item, part, error, published="almost 0", holds=close, note=note, digits=".3g")


def other_laws(name: str, options: Options) -> list[Row]:
    """§6.1, synthetic generalised Bernoulli and Beta."""
    runs, comparable = curves(name, options), name == "S-Bt-100"
    published = "yes; with m-UCB comparable" if comparable else "yes"
    rivals = [c for c in COMPETITORS if not (comparable and c == "m-UCB")]
    rows: list[Row] = []
    for policy in (QUARTER, STAR):
        rows += _leads(name, runs, policy, "beats its competitors", published, rivals)
    rows += [_comparable(name, runs, policy) for policy in (QUARTER, STAR) if comparable]
    item = f"{name}: regret of BTS / {STAR} at B"
    samples = [runs.at(END, "BTS"), runs.at(END, STAR)]
    statement, rule = "not competitive (≫ 1)", "yes: above 2"
    rows.append(statistic(item, statement, lambda bts, star: bts / star, samples, above(2), rule))
    rows += [_gap(name, runs, QUARTER, STAR, "> 0"), *magnitudes(name, runs)]
    return (
        [*rows, _as_stated(runs, curves(CODED, options))] if CODED.startswith(f"{name},") else rows
    )


def _as_stated(runs: Curves, coded: Curves) -> Row:
    """The regret by the reference code's means, which are 0.8 times the true ones."""
    stated, true = coded.at(END, QUARTER), runs.at(END, QUARTER)
    early = 0.8 * float(runs.at(0.8, QUARTER).mean())
    note = f"the code's means, budget and regret (gbr_mean_bug); {float(true.mean()):.4g} with the true ones, "
    note += f"0.8 times the regret at 0.8 B is {early:.4g}"
    mean, error = float(stated.mean()), standard_error(stated, coded.over)
    return row(f"{CODED}: regret of {QUARTER} at B", mean, error, note=note)


def _comparable(name: str, runs: Curves, policy: str) -> Row:
    """m-UCB's regret over ours: yes if its whole interval lies from 4/5 to 5/4, no if outside."""
    samples = [runs.at(END, "m-UCB"), runs.at(END, policy)]
    item = f"{name}: regret of m-UCB / {policy} at B"
    rule = "yes: interval within 4/5 and 5/4, no: outside"
    holds = functools.partial(between, floor=0.8, ceiling=1.25)
    return statistic(item, "comparable", lambda theirs, ours: theirs / ours, samples, holds, rule)


def advertisements(name: str, options: Options) -> list[Row]:
    """§6.1, social-media advertisement data."""
    runs = curves(name, options)
    rows = _leads(name, runs, QUARTER, "beats its competitors", "yes", COMPETITORS)
    rows += [
        _gap(name, runs, ONE, QUARTER, "> 0"),
        _gap(name, runs, QUARTER, STAR, "> 0, not much"),
    ]
    note = "local exponent of the mean regret from 0.32 B to B; yes: below 1/2"
    for policy in (QUARTER, ONE):
        item, statement = f"{name}: growth exponent of {policy}", "good asymptotics (≪ 1)"
        samples = [runs.at(share, policy) for share in (MIDDLE, END)]
        rows.append(
            statistic(item, statement, local_exponent, samples, above(-0.5, -1), note, runs.over)
        )
    rows += magnitudes(name, runs)
    if options.quick:
        return rows
    twin = "S-Br-50" if name == "FB-Br" else "S-Bt-50"
    return rows + [
        _relative(name, twin, runs, curves(twin, options), label)
        for label in ("BTS", "UCB-SC+", *UCBS)
    ]


def easier(options: Options) -> list[Row]:
    """KL-UCB-SC+ on Bernoulli ads and on random arms; and beside UCB-BV1, as Figure 2 has it."""
    ads_runs, synthetic_runs = (
        curves(name, options, ("two ρ", "KL")) for name in ("FB-Br", "S-Br-50")
    )
    rows = [_relative("FB-Br", "S-Br-50", ads_runs, synthetic_runs, "KL-UCB-SC+")]
    rows.append(
        _gap("S-Br-10", curves("S-Br-10", options, ("older", "KL")), "UCB-BV1", "KL-UCB-SC+", "> 0")
    )
    return [line._replace(item=f"easier: {line.item}") for line in rows]


def _relative(name: str, twin: str, runs: Curves, twin_runs: Curves, label: str) -> Row:
    """Relative to ω-UCB, ρ = 1/4: easier here than on synthetic arms of the same law (K = 50)?"""
    means, errors = [], []
    for x in (runs, twin_runs):
        top, bottom = xarray.align(x.at(END, label), x.at(END, QUARTER), join="inner")
        high, low = float(top.mean()), float(bottom.mean())
        means.append(high / low)
        errors.append(standard_error(top / high - bottom / low, x.over))  # by the delta method
    difference = float(np.log(means[0])) - float(np.log(means[1]))
    error = float(np.hypot(errors[0], errors[1]))
    easier = label in EASIER
    holds = above_zero(-difference if easier else difference, error)
    item = f"{name}: ln of regret of {label} / {QUARTER}, minus the same on {twin}"
    note = f"ratios of mean regrets at B: {means[0]:.3g}, {means[1]:.3g}; 2 standard errors"
    statement = common.OURS if label == "UCB-SC+" else "easier (< 0)" if easier else "harder (> 0)"
    return row(item, difference, error, published=statement, holds=holds, note=note, digits=".3g")


def magnitudes(name: str, runs: Curves) -> list[Row]:
    """Regret at B of every policy, and whether ω-UCB's fits the published axis."""
    top, rows = runs.setting.published_top, Summary()
    for label in runs.regret:
        if label.startswith("ω") and label not in (QUARTER, ONE, STAR, STAR_ONE):
            continue
        x, share = runs.at(END, label), float(runs.share[label].isel(mark=-1).mean())
        mean, error = float(x.mean()), standard_error(x, runs.over)
        statement, holds = (
            (f"below {top:g} (axis)", above_zero(top - mean, error))
            if label == QUARTER
            else ("", None)
        )
        note = f"{100 * share:.3g} % of the best arm's reward"
        if name.startswith("S-GBr"):
            early = 0.8 * float(runs.at(0.8, label).mean())
            note += f"; with the reference code's means, 0.8 times the true ones: {early:.4g}"
        item = f"{name}: regret of {label} at B"
        rows.add(item, mean, error, published=statement, holds=holds, note=note, digits=".5g")
    return rows


def _ranges(runs: Curves) -> list[Row]:
    note = "yes: inside; unclear: inside within 2 standard errors; the limits are those of an enlarged axis"
    rows = Summary()
    for label, (low, high) in ((ONE, (4700, 9500)), (QUARTER, (4000, 6500))):
        ends = [runs.at(share, label) for share in (TENTH, END)]
        means = [float(x.mean()) for x in ends]
        errors = [standard_error(x, runs.over) for x in ends]
        inside = means[0] > low and means[1] < high
        is_near = means[0] + 2 * errors[0] > low and means[1] - 2 * errors[1] < high
        item = f"S-Br-100: regret of {label} from 0.1 B to B"
        measured = f"{means[0]:.4g} to {means[1]:.4g}"
        holds = True if inside else None if is_near else False
        error = f"{errors[0]:.2g}, {errors[1]:.2g}"
        rows.add(item, measured, error, published=f"{low} to {high}", holds=holds, note=note)
    return rows


OMEGAS = (play.omega(0.25), play.omega(1.0), play.omega_star(0.25), play.omega_star(1.0))


def regret_figure(
    options: Options, name: str, title: str, settings: list[str], *, bands: bool = False
) -> None:
    """One column per setting: mean regret as in the paper, and regret as a share of the best arm's
    reward.

    With ``bands`` they hold their whole curve at 95 %; without, each place by itself.
    """
    picture, axes = figure(2, len(settings), (max(6.5, 4.6 * len(settings)), 8.2))
    for column, setting in enumerate(settings):
        runs = curves(setting, options)
        top, below = axes[column], axes[len(settings) + column]
        # ω* equals ω on Bernoulli arms, and is left out there as in the paper
        for policy in (*(OMEGAS[:2] if setting.startswith("S-Br") else OMEGAS), *play.COMPETITORS):
            _draw(top, runs, "regret", policy, bands)
            _draw(below, runs, "share", policy, bands)
        highest = max(float(runs.at(1.0, p).mean()) for p in OMEGAS)
        top.set(title=setting, ylim=(0, 2.2 * highest))
        below.set(yscale="log", xlabel="share of the budget spent")
        for axis in (top, below):
            axis.set(xscale="log", xlim=(0.01, 1.05))
            name_ticks(axis, [0.01, 0.03, 0.1, 0.3, 1.0])
    axes[0].set_ylabel("regret (units of reward), mean")
    axes[len(settings)].set_ylabel("regret / reward of the best arm, mean")
    kind = "bands hold their whole curve at 95 %" if bands else "bands: 95 % at each place"
    units = (
        "random instances"
        if play.SETTINGS[settings[0]].over == "instance"
        else "runs on the given campaigns"
    )
    size = f"\nbudget {play.steps(options):,.0f} instead of {play.STEPS:,.0f} times the smallest mean cost"
    picture.suptitle(f"{title}\n{kind}, over {units}{'' if options.full else size}", fontsize=11)
    save(picture, options.out / f"{name}.png", legend=axes, columns=3 if len(settings) == 1 else 6)


def regret_item(name: str, law: str, title: str, tell: Callable[[str, Options], list[Row]]) -> Item:
    """A panel of Figure 3, and the rows that ``tell`` gives for each of its settings."""

    def item(options: Options) -> list[Row]:
        settings = [law] if law.startswith("FB") else play.of_size(law, options)
        regret_figure(options, name, f"Figure {name.removeprefix('figure')}: {title}", settings)
        rows = [seconds_row("", settings, options, note=f" in {', '.join(settings)}")]
        rows += [line for setting in settings for line in tell(setting, options)]
        return [line._replace(item=f"{name}: {line.item}") for line in rows]

    return item


def figure6(options: Options) -> list[Row]:
    """Figure 6: Figure 3 with intervals; here bands that hold whole curves."""
    for law, title in play.LAWS.items():
        regret_figure(
            options, f"figure6_{law}", f"Figure 6: {title}", play.of_size(law, options), bands=True
        )
    if (options.data / play.ADS_FILE).is_file():
        regret_figure(
            options, "figure6_FB", "Figure 6: Facebook ads", ["FB-Br", "FB-Bt"], bands=True
        )
    return []


def _draw(axis: Any, runs: Curves, kind: str, policy: str, bands: bool) -> None:
    values = getattr(runs, kind)[policy]
    make = jb.statistics.simultaneous_band if bands else jb.statistics.bootstrap_interval
    band = make(values, over=runs.over, resamples=1000)
    x, style = values["mark"].values, look(policy)
    axis.plot(x, band.value, label=policy, markevery=(1, 4), **style)
    axis.fill_between(
        x, band.low.values, band.high.values, color=style["color"], alpha=0.1, linewidth=0
    )


def densities(options: Options) -> list[Row]:
    """Figure 3f: where the mean rewards and costs of the campaign with 33 ads lie."""
    (campaign,) = [c for c in read_ads(options.data / play.ADS_FILE)[0] if len(c.arms) == 33]
    rows = Summary()
    (rewards,), (costs,), _ = scaled_means([campaign])
    for name, means in (("mean reward", rewards), ("mean cost", costs)):
        quartiles = np.quantile(means, [0.25, 0.5, 0.75])
        outside = float(((means < 0.25) | (means > 0.75)).mean())
        if name == "mean cost":
            statement, holds, rule = "towards 1", quartiles[1] > 0.5, "median above 1/2"
        else:
            statement = "towards the ends of [0, 1]"
            holds = outside > 0.5
            rule = "more than half of them"
        item = f"figure3f: {name} of campaign {campaign.name}"
        text = "quartiles " + ", ".join(f"{q:.2f}" for q in quartiles)
        note = f"{100 * outside:.0f} % below 1/4 or above 3/4; yes: {rule}"
        rows.add(item, text, 0, published=statement, holds=holds, note=note)
    return rows


SETTING = "S-Br-10"
KUBE = "fractional KUBE"  # what later comparisons play; KUBE itself differs in the last pulls only
# who was beaten by whom, as the text quotes the literature; the matrix itself is printed unreadably
RECORD = {
    "ε-first": (KUBE,),
    KUBE: ("UCB-BV1", "BTS"),
    "UCB-BV1": ("BTS", "Budget-UCB", "UCB-SC+"),
    "PD-BwK": ("BTS", "b-greedy", "i-UCB", "c-UCB", "m-UCB"),
}


def figure2(options: Options) -> list[Row]:
    """The head-to-head results that the paper quotes."""
    runs = curves(SETTING, options, (*play.SETTINGS[SETTING].groups, "older"))
    note = "paired; the quoted comparisons had other instances and mostly far smaller budgets"
    rows = Summary()
    for loser, winner in (
        (loser, winner) for loser, winners in RECORD.items() for winner in winners
    ):
        item = f"figure2: {SETTING}: regret of {loser} − {winner} at B"
        rows.append(less(item, "> 0", runs.at(END, winner), runs.at(END, loser), runs.over, note))
    item, timed = (
        f"figure2: {SETTING}: regret of PD-BwK − PD-BwK with time at B",
        "PD-BwK with time",
    )
    rows.append(
        less(
            item,
            common.OURS,
            runs.at(END, timed),
            runs.at(END, "PD-BwK"),
            runs.over,
            "T = B / min μ^c; paired",
        )
    )
    for name in play.OLDER:
        x = runs.at(END, name)
        rows.add(
            f"figure2: {SETTING}: regret of {name} at B",
            float(x.mean()),
            standard_error(x, runs.over),
        )
    remark = f" of {', '.join(play.OLDER)}; the others are those of figure 3a"
    return [*rows, seconds_row("figure2: ", [SETTING], options, ["older"], remark)]


BOTH = play.GROUPS["omegas"]
DASHES = {"10": "-", "50": "--", "100": ":"}


def figure4(options: Options) -> list[Row]:
    """Regret at B over ρ, for each law and K, and the best ρ (also with each K weighing the same)."""
    laws = {
        law: title for law, title in play.LAWS.items() if not (options.quick and law == "S-GBr")
    }
    picture, axes = figure(1, len(laws), (4.5 * len(laws), 4.4))
    rows: list[Row] = []
    for axis, (law, title) in zip(axes, laws.items(), strict=True):
        of_law: dict[str, list[np.ndarray]] = {family: [] for family in BOTH}
        for name in play.of_size(law, options):
            runs = curves(name, options, ["omegas"])
            for family in BOTH:
                values = np.stack(
                    [runs.at(1.0, label).mean("replicate").values for label in BOTH[family]]
                )
                of_law[family].append(values)
                arms = name.rsplit("-", 1)[1]
                style = look(BOTH[family][4]) | {"linestyle": DASHES[arms]}
                if family == "ω-UCB":  # it shows from under ω*-UCB where the two are equal
                    style |= {"linewidth": 3.5, "markersize": 8}
                intervals(
                    axis, play.RHOS, values, capsize=2, label=f"{family}, K = {arms}", **style
                )
                rows.append(_best_rho(f"figure4: {name}, best ρ of {family}", law, family, values))
        for family, each_k in of_law.items():
            rows.append(
                _best_rho(
                    f"figure4: {law}, all K, best ρ of {family}",
                    law,
                    family,
                    np.mean(each_k, axis=0),
                )
            )
        axis.set(title=title, xlabel="ρ", yscale="log")
        axis.set_xscale("log", base=2)
        name_ticks(axis, play.RHOS, map(play.fraction, play.RHOS))
    axes[0].set_ylabel("regret at B")
    title = (
        "Figure 4: regret at the whole budget over ρ (mean and 95 % interval over random instances)"
    )
    save(picture, options.out / "figure4.png", title, legend=axes, columns=3)
    settings = [name for law in laws for name in play.of_size(law, options)]
    return [
        *rows,
        seconds_row("figure4: ", settings, options, ["omegas"], "; shared with figure 3"),
    ]


def _best_rho(item: str, law: str, family: str, values: np.ndarray) -> Row:
    """``values`` [ρ, instance]: which ρ is least, and how much worse is the one the paper names?"""
    mean = values.mean(axis=1)
    lowest = int(mean.argmin())
    if law == "S-Br":
        published, named, slack = "1/4", 0.25, 0.0
    elif family == "ω-UCB":
        published, named, slack = "1/8 works well", 0.125, 0.1
    else:
        published, named, slack = "1/4 near-optimal", 0.25, 0.1
    target = int(np.flatnonzero(named == play.RHOS)[0])
    gap, se = (float(x) / mean[lowest] for x in mean_se(values[target] - values[lowest]))
    others = np.delete(values, target, axis=0)
    tests = [
        jb.statistics.dominance(
            xarray.DataArray([values[target], (1 + slack) * other], dims=("setting", "instance")),
            over="instance",
            level=1 - 0.05 / len(others),
        )
        for other in others
    ]
    above, below = (np.array([bool(x[n][0, 1]) for x in tests]) for n in ("larger", "smaller"))
    holds = False if above.any() else True if below.all() else None
    limit = f"{1 + slack:g} times " if slack else ""
    rule = f"yes: clearly below {limit}every other value, no: clearly above {limit}one (paired, at once with 95 %)"
    listed = ", ".join(f"{play.fraction(r)}: {m:.4g}" for r, m in zip(play.RHOS, mean, strict=True))
    excess_text = f"{100 * gap:.1f} ± {100 * se:.1f} % above the least"
    note = f"regret at ρ = {play.fraction(named)} is {excess_text}; {rule}; {listed}"
    return row(
        item,
        play.fraction(play.RHOS[lowest]),
        f"{100 * se:.2g} %",
        published=published,
        holds=holds,
        note=note,
    )
