"""What the paper says about its Figure 3, tested statement by statement."""

from __future__ import annotations

import itertools

from experiments.omega_ucb.play import Curves, curves
from experiments.omega_ucb.comparisons import (
    END,
    MIDDLE,
    TENTH,
    above,
    bend,
    best,
    growth,
    less,
    somewhere,
    standard_error,
    statistic,
)
from experiments.omega_ucb.specs import COMPETITORS, SHOWN, omega, omega_star
from experiments.common import Options, Row, mean_se, verdict

QUARTER, ONE = omega(0.25), omega(1.0)
STAR, STAR_ONE = omega_star(0.25), omega_star(1.0)
UCBS = ("m-UCB", "c-UCB", "i-UCB")


def bernoulli(name: str, options: Options) -> list[Row]:
    """§6.1, synthetic Bernoulli."""
    found, arms = curves(name, options), int(name.rsplit("-", 1)[1])
    rows = [
        best(
            f"{name}: {QUARTER} has the least regret at {_share(share)}",
            "yes",
            found,
            share,
            QUARTER,
            (ONE, *COMPETITORS),
        )
        for share in SHOWN
    ]
    for mine, theirs in itertools.product((QUARTER, ONE, "BTS"), UCBS):
        rows.append(
            statistic(
                f"{name}: growth exponent of {theirs} − of {mine}, from 0.32 B to B",
                "> 0 (better asymptotics)",
                lambda a, b, c, d: growth(a, b) - growth(c, d),
                [found.at(share, who) for who in (theirs, mine) for share in (MIDDLE, END)],
                above(0),
                f"exponents {growth(*_means(found, theirs)):.2f} and {growth(*_means(found, mine)):.2f}",
            )
        )
    for theirs in UCBS:
        rows.append(somewhere(f"{name}: regret of {ONE} − {theirs}, where largest up to 0.1 B", found, ONE, theirs))
        low, high = found.at(END, ONE), found.at(END, theirs)
        rows.append(less(f"{name}: regret of {theirs} − {ONE} at B", "> 0", low, high, found.over))
    bts = found.at(END, "BTS")
    if arms == 10:
        rows.append(
            less(f"{name}: regret of {ONE} − BTS at B", "> 0 (only for K = 10)", bts, found.at(END, ONE), found.over)
        )
    else:
        for mine in (QUARTER, ONE):
            rows.append(less(f"{name}: regret of BTS − {mine} at B", "> 0", found.at(END, mine), bts, found.over))
    three = [[found.at(share, who) for share in SHOWN] for who in (ONE, QUARTER)]
    note = "growth from 0.32 B to B over that from 0.1 B to 0.32 B"
    rows.append(
        statistic(
            f"{name}: bend of {ONE}",
            "1 (straight over ln B)",
            bend,
            three[0],
            lambda low, high: True if low <= 1 <= high and high - low < 1 else False if low > 1 or high < 1 else None,
            f"{note}; yes: 1 inside an interval shorter than 1",
        )
    )
    rows.append(statistic(f"{name}: bend of {QUARTER}", "> 1 (convex)", bend, three[1], above(1), note))
    rows.append(
        less(
            f"{name}: regret of {ONE} − {QUARTER} at B",
            "> 0 (not too large budgets)",
            found.at(END, QUARTER),
            found.at(END, ONE),
            found.over,
        )
    )
    rows.append(
        statistic(
            f"{name}: growth exponent of {QUARTER} − of {ONE}",
            "> 0 (ρ = 1 better asymptotically)",
            lambda a, b, c, d: growth(a, b) - growth(c, d),
            [found.at(share, who) for who in (QUARTER, ONE) for share in (MIDDLE, END)],
            lambda low, high: True if low > 0 else None,
            "from 0.32 B to B; a finite budget may show it, but cannot refute it",
        )
    )
    rows.append(_almost_equal(name, found))
    rows += magnitudes(name, found)
    if arms == 100:
        rows += _ranges(found)
    return rows


def _almost_equal(name: str, found: Curves) -> Row:
    gap = found.at(END, STAR) - found.at(END, QUARTER)
    part = float(gap.mean() / found.at(END, QUARTER).mean())
    item = f"{name}: regret of {STAR} − {QUARTER} at B, share of the latter"
    error = standard_error(gap, found.over) / float(found.at(END, QUARTER).mean())
    return Row(
        item, "almost 0", f"{part:.3g}", f"{error:.2g}", verdict(abs(part) + 2 * error < 0.05), "yes: within 5 %"
    )


def other_laws(name: str, options: Options) -> list[Row]:
    """§6.1, synthetic generalised Bernoulli and Beta."""
    found = curves(name, options)
    rows = []
    for mine in (QUARTER, STAR):
        for share in SHOWN:
            published = "yes; with m-UCB comparable" if name == "S-Bt-100" else "yes"
            others = [c for c in COMPETITORS if not (name == "S-Bt-100" and c == "m-UCB")]
            rows.append(
                best(f"{name}: {mine} beats its competitors at {_share(share)}", published, found, share, mine, others)
            )
    if name == "S-Bt-100":
        for mine in (QUARTER, STAR):
            gap = found.at(END, "m-UCB") - found.at(END, mine)
            mean, se = (float(x) for x in mean_se(gap.values.ravel()))
            size = float(found.at(END, mine).mean())
            holds = abs(mean) <= max(0.25 * size, 2 * se)
            note = f"{mine}: {size:.5g}; yes: within a quarter of it or 2 standard errors"
            rows.append(
                Row(
                    f"{name}: regret of m-UCB − {mine} at B",
                    "comparable",
                    f"{mean:.5g}",
                    f"{se:.2g}",
                    verdict(holds),
                    note,
                )
            )
    ratio = statistic(
        f"{name}: regret of BTS / {STAR} at B",
        "not competitive (≫ 1)",
        lambda bts, star: bts / star,
        [found.at(END, "BTS"), found.at(END, STAR)],
        above(2),
        "yes: above 2",
    )
    rows += [
        ratio,
        less(
            f"{name}: regret of {QUARTER} − {STAR} at B", "> 0", found.at(END, STAR), found.at(END, QUARTER), found.over
        ),
    ]
    return rows + magnitudes(name, found)


def ads(name: str, options: Options) -> list[Row]:
    """§6.1, social-media advertisement data."""
    found = curves(name, options)
    rows = [
        best(f"{name}: {QUARTER} beats its competitors at {_share(share)}", "yes", found, share, QUARTER, COMPETITORS)
        for share in SHOWN
    ]
    rows.append(
        less(f"{name}: regret of {ONE} − {QUARTER} at B", "> 0", found.at(END, QUARTER), found.at(END, ONE), found.over)
    )
    rows.append(
        less(
            f"{name}: regret of {QUARTER} − {STAR} at B",
            "> 0, not much",
            found.at(END, STAR),
            found.at(END, QUARTER),
            found.over,
        )
    )
    for mine in (QUARTER, ONE):
        exponent = float(growth(*_means(found, mine)))
        note = "local exponent of the mean regret from 0.32 B to B; yes: below 1/2"
        rows.append(
            Row(
                f"{name}: growth exponent of {mine}",
                "good asymptotics (≪ 1)",
                f"{exponent:.3g}",
                "",
                verdict(exponent < 0.5),
                note,
            )
        )
    rows += magnitudes(name, found)
    return rows if options.quick else rows + _easier(name, found, options)


def _easier(name: str, found: Curves, options: Options) -> list[Row]:
    """Relative to ω-UCB, ρ = 1/4: easier here than on synthetic arms of the same law (K = 50)?"""
    twin = "S-Br-50" if name == "FB-Br" else "S-Bt-50"
    other = curves(twin, options)
    rows = []
    for who in ("BTS", "UCB-SC+", *UCBS):
        ratios = [float(x.at(END, who).mean() / x.at(END, QUARTER).mean()) for x in (found, other)]
        easier = who in ("BTS", "UCB-SC+")
        holds = ratios[0] < ratios[1] if easier else ratios[0] > ratios[1]
        item = f"{name}: regret of {who} / {QUARTER}, and on {twin}"
        note = "ratios of mean regrets at B"
        rows.append(
            Row(
                item,
                "easier (smaller)" if easier else "harder (larger)",
                f"{ratios[0]:.3g}, {ratios[1]:.3g}",
                "",
                verdict(holds),
                note,
            )
        )
    return rows


def magnitudes(name: str, found: Curves) -> list[Row]:
    """Regret at B of every policy, and whether ω-UCB's fits the published axis (read from plotting scripts)."""
    top = found.setting.published_top
    rows = []
    for who in found.regret:
        x = found.at(END, who)
        if who.startswith("ω") and who not in (QUARTER, ONE, STAR, STAR_ONE):
            continue
        share = float(found.share[who].isel(mark=-1).mean())
        mean, error = float(x.mean()), standard_error(x, found.over)
        published, holds, note = "", None, f"{100 * share:.3g} % of the best arm's reward"
        if who == QUARTER:
            published, holds = f"below {top:g} (axis)", bool(mean < top)
        if name.startswith("S-GBr"):
            early = 0.8 * float(found.at(0.8, who).mean())
            note += f"; with the reference code's means, 0.8 times the true ones: {early:.4g}"
        rows.append(
            Row(f"{name}: regret of {who} at B", published, f"{mean:.5g}", f"{error:.2g}", verdict(holds), note)
        )
    return rows


def _ranges(found: Curves) -> list[Row]:
    rows = []
    for who, (low, high) in ((ONE, (4700, 9500)), (QUARTER, (4000, 6500))):
        ends = [found.at(share, who) for share in (TENTH, END)]
        means, errors = [float(x.mean()) for x in ends], [standard_error(x, found.over) for x in ends]
        inside = means[0] > low and means[1] < high
        near = means[0] + 2 * errors[0] > low and means[1] - 2 * errors[1] < high
        measured = f"{means[0]:.4g} to {means[1]:.4g}"
        note = "yes: inside; unclear: inside within 2 standard errors; the limits are those of an enlarged axis"
        holds = True if inside else None if near else False
        rows.append(
            Row(
                f"S-Br-100: regret of {who} from 0.1 B to B",
                f"{low} to {high}",
                measured,
                f"{errors[0]:.2g}, {errors[1]:.2g}",
                verdict(holds),
                note,
            )
        )
    return rows


def _means(found: Curves, who: str) -> tuple[float, float]:
    middle, end = (float(found.at(share, who).mean()) for share in (MIDDLE, END))
    return middle, end


def _share(share: float) -> str:
    return "B" if share == 1 else f"{share:.2g} B"
