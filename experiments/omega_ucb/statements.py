"""What the paper says about its Figure 3, tested statement by statement."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from experiments.common.rows import BY_CONSTRUCTION, Row, above_zero, is_within, row
from experiments.common.running import Options
from experiments.omega_ucb.comparisons import (
    END,
    MIDDLE,
    TENTH,
    above,
    below,
    bend,
    best,
    growth,
    less,
    log_ratio,
    somewhere,
    standard_error,
    statistic,
)
from experiments.omega_ucb.play import Curves, curves
from experiments.omega_ucb.specs import CODED, COMPETITORS, SHOWN, omega, omega_star

QUARTER, ONE = omega(0.25), omega(1.0)
STAR, STAR_ONE = omega_star(0.25), omega_star(1.0)
UCBS = ("m-UCB", "c-UCB", "i-UCB")


def bernoulli(name: str, options: Options) -> list[Row]:
    """§6.1, synthetic Bernoulli."""
    found, arms = curves(name, options), int(name.rsplit("-", 1)[1])
    rows = _leads(name, found, QUARTER, "has the least regret", "yes", (ONE, *COMPETITORS))
    for mine, theirs in itertools.product((QUARTER, ONE, "BTS"), UCBS):
        item = f"{name}: growth exponent of {theirs} − of {mine}, from 0.32 B to B"
        note = f"exponents {growth(*_means(found, theirs)):.2f} and {growth(*_means(found, mine)):.2f}"
        rows.append(_faster(item, "> 0 (better asymptotics)", found, theirs, mine, note))
    for theirs in UCBS:
        rows.append(somewhere(f"{name}: regret of {ONE} − {theirs}, where largest up to 0.1 B", found, ONE, theirs))
        rows.append(_gap(name, found, theirs, ONE, "> 0"))
    if arms == 10:
        rows.append(_gap(name, found, ONE, "BTS", "> 0 (only for K = 10)"))
    else:
        rows += [_gap(name, found, "BTS", mine, "> 0") for mine in (QUARTER, ONE)]
    rows += _bends(name, found)
    rows.append(_gap(name, found, ONE, QUARTER, "> 0 (not too large budgets)"))
    item, said = f"{name}: growth exponent of {QUARTER} − of {ONE}", "> 0 (ρ = 1 better asymptotically)"
    note = "from 0.32 B to B: yes and no are about these budgets, no finite one shows or refutes what comes later"
    rows.append(_faster(item, said, found, QUARTER, ONE, note))
    rows.append(_almost_equal(name, found))
    return rows + magnitudes(name, found) + (_ranges(found) if arms == 100 else [])


def _leads(name: str, found: Curves, mine: str, what: str, published: str, others: Sequence[str]) -> list[Row]:
    """Has one policy less regret than others, at every share of the budget that is shown?"""
    where = {share: "B" if share == 1 else f"{share:.2g} B" for share in SHOWN}
    return [
        best(f"{name}: {mine} {what} at {at}", published, found, share, mine, others) for share, at in where.items()
    ]


def _gap(name: str, found: Curves, more: str, fewer: str, published: str) -> Row:
    """Has one policy less regret at B than another?"""
    item = f"{name}: regret of {more} − {fewer} at B"
    return less(item, published, found.at(END, fewer), found.at(END, more), found.over)


def _faster(item: str, published: str, found: Curves, one: str, other: str, note: str) -> Row:
    """Does the regret of one policy grow faster than that of another?"""
    samples = [found.at(share, who) for who in (one, other) for share in (MIDDLE, END)]
    return statistic(item, published, lambda a, b, c, d: growth(a, b) - growth(c, d), samples, above(0), note)


def _bends(name: str, found: Curves) -> list[Row]:
    one, quarter = ([found.at(share, who) for share in SHOWN] for who in (ONE, QUARTER))
    note = "growth from 0.32 B to B over that from 0.1 B to 0.32 B"

    def straight(low: float, high: float) -> bool | None:
        return True if low <= 1 <= high and high - low < 1 else False if low > 1 or high < 1 else None

    rule = f"{note}; yes: 1 inside an interval shorter than 1"
    return [
        statistic(f"{name}: bend of {ONE}", "1 (straight over ln B)", bend, one, straight, rule),
        statistic(f"{name}: bend of {QUARTER}", "> 1 (convex)", bend, quarter, above(1), note),
    ]


def _almost_equal(name: str, found: Curves) -> Row:
    gap, size = found.at(END, STAR) - found.at(END, QUARTER), float(found.at(END, QUARTER).mean())
    part, error = float(gap.mean()) / size, standard_error(gap, found.over) / size
    item = f"{name}: regret of {STAR} − {QUARTER} at B, share of the latter"
    if not gap.any():
        note = "equal, run by run: η̂ is exactly 1 on Bernoulli arms, so nothing is tested"
        return row(item, part, error, published="almost 0", holds=BY_CONSTRUCTION, note=note, digits=".3g")
    close, note = is_within(part, error, -0.05, 0.05), "yes: its interval of 2 standard errors within 5 %"
    return row(item, part, error, published="almost 0", holds=close, note=note, digits=".3g")


def other_laws(name: str, options: Options) -> list[Row]:
    """§6.1, synthetic generalised Bernoulli and Beta."""
    found, comparable = curves(name, options), name == "S-Bt-100"
    published = "yes; with m-UCB comparable" if comparable else "yes"
    others = [c for c in COMPETITORS if not (comparable and c == "m-UCB")]
    rows: list[Row] = []
    for mine in (QUARTER, STAR):
        rows += _leads(name, found, mine, "beats its competitors", published, others)
    rows += [_comparable(name, found, mine) for mine in (QUARTER, STAR) if comparable]
    item, both = f"{name}: regret of BTS / {STAR} at B", [found.at(END, "BTS"), found.at(END, STAR)]
    said, rule = "not competitive (≫ 1)", "yes: above 2"
    rows.append(statistic(item, said, lambda bts, star: bts / star, both, above(2), rule))
    rows += [_gap(name, found, QUARTER, STAR, "> 0"), *magnitudes(name, found)]
    return [*rows, _as_stated(found, curves(CODED, options))] if CODED.startswith(f"{name},") else rows


def _as_stated(found: Curves, coded: Curves) -> Row:
    """The regret that the reference code would state in the same instances: its means are 0.8 times the true ones."""
    stated, true = coded.at(END, QUARTER), found.at(END, QUARTER)
    early = 0.8 * float(found.at(0.8, QUARTER).mean())
    note = (
        f"the code's means, budget and regret (gbr_mean_bug); {float(true.mean()):.4g} with the true ones, 0.8 times "
    )
    note += f"the regret at 0.8 B is {early:.4g}"
    mean, error = float(stated.mean()), standard_error(stated, coded.over)
    return row(f"{CODED}: regret of {QUARTER} at B", mean, error, note=note)


def _comparable(name: str, found: Curves, mine: str) -> Row:
    """m-UCB's regret over ours: yes if the whole interval lies between 4/5 and 5/4, no if it lies outside."""
    both = [found.at(END, "m-UCB"), found.at(END, mine)]
    item, rule = f"{name}: regret of m-UCB / {mine} at B", "yes: interval within 4/5 and 5/4, no: outside"

    def holds(low: float, high: float) -> bool | None:
        return True if low >= 0.8 and high <= 1.25 else False if low > 1.25 or high < 0.8 else None

    return statistic(item, "comparable", lambda theirs, ours: theirs / ours, both, holds, rule)


def ads(name: str, options: Options) -> list[Row]:
    """§6.1, social-media advertisement data."""
    found = curves(name, options)
    rows = _leads(name, found, QUARTER, "beats its competitors", "yes", COMPETITORS)
    rows += [_gap(name, found, ONE, QUARTER, "> 0"), _gap(name, found, QUARTER, STAR, "> 0, not much")]
    note = "local exponent of the mean regret from 0.32 B to B; yes: below 1/2"
    for mine in (QUARTER, ONE):
        item, said = f"{name}: growth exponent of {mine}", "good asymptotics (≪ 1)"
        samples = [found.at(share, mine) for share in (MIDDLE, END)]
        rows.append(statistic(item, said, growth, samples, below(0.5), note, found.over))
    rows += magnitudes(name, found)
    return rows if options.quick else rows + _easier(name, found, options)


def _easier(name: str, found: Curves, options: Options) -> list[Row]:
    """Relative to ω-UCB, ρ = 1/4: easier here than on synthetic arms of the same law (K = 50)?"""
    twin = "S-Br-50" if name == "FB-Br" else "S-Bt-50"
    return [_relative(name, twin, found, curves(twin, options), who) for who in ("BTS", "UCB-SC+", *UCBS)]


def _relative(name: str, twin: str, found: Curves, other: Curves, who: str) -> Row:
    here, there = (log_ratio(x.at(END, who), x.at(END, QUARTER), x.over) for x in (found, other))
    apart, error = here[0] - there[0], float(np.hypot(here[1], there[1]))
    easier = who in ("BTS", "UCB-SC+")
    holds = above_zero(-apart if easier else apart, error)
    item = f"{name}: ln of regret of {who} / {QUARTER}, minus the same on {twin}"
    note = f"ratios of mean regrets at B: {np.exp(here[0]):.3g}, {np.exp(there[0]):.3g}; 2 standard errors"
    said = "easier (< 0)" if easier else "harder (> 0)"
    return row(item, apart, error, published=said, holds=holds, note=note, digits=".3g")


def magnitudes(name: str, found: Curves) -> list[Row]:
    """Regret at B of every policy, and whether ω-UCB's fits the published axis (read from plotting scripts)."""
    top, rows = found.setting.published_top, []
    for who in found.regret:
        if who.startswith("ω") and who not in (QUARTER, ONE, STAR, STAR_ONE):
            continue
        x, share = found.at(END, who), float(found.share[who].isel(mark=-1).mean())
        mean, error = float(x.mean()), standard_error(x, found.over)
        said, holds = (f"below {top:g} (axis)", above_zero(top - mean, error)) if who == QUARTER else ("", None)
        note = f"{100 * share:.3g} % of the best arm's reward"
        if name.startswith("S-GBr"):
            early = 0.8 * float(found.at(0.8, who).mean())
            note += f"; with the reference code's means, 0.8 times the true ones: {early:.4g}"
        item = f"{name}: regret of {who} at B"
        rows.append(row(item, mean, error, published=said, holds=holds, note=note, digits=".5g"))
    return rows


def _ranges(found: Curves) -> list[Row]:
    note = "yes: inside; unclear: inside within 2 standard errors; the limits are those of an enlarged axis"
    rows = []
    for who, (low, high) in ((ONE, (4700, 9500)), (QUARTER, (4000, 6500))):
        ends = [found.at(share, who) for share in (TENTH, END)]
        means, errors = [float(x.mean()) for x in ends], [standard_error(x, found.over) for x in ends]
        inside = means[0] > low and means[1] < high
        near = means[0] + 2 * errors[0] > low and means[1] - 2 * errors[1] < high
        item, measured = f"S-Br-100: regret of {who} from 0.1 B to B", f"{means[0]:.4g} to {means[1]:.4g}"
        holds, error = True if inside else None if near else False, f"{errors[0]:.2g}, {errors[1]:.2g}"
        rows.append(row(item, measured, error, published=f"{low} to {high}", holds=holds, note=note))
    return rows


def _means(found: Curves, who: str) -> tuple[float, float]:
    middle, end = (float(found.at(share, who).mean()) for share in (MIDDLE, END))
    return middle, end
