"""Tables of pages from the runs that they show; ``python -m experiments.published`` writes them.

``docs/reproductions/NAME.csv`` holds rows of the ``summary.csv`` of a run, as its command wrote
them, ``sensitivity_NAME.csv`` the ``sensitivity.csv`` of a sweep, and ``docs/findings`` the
tails.csv and best.csv of ``omega_ucb_tails``. A table of a page stands between ``<!-- summary:
TABLE -->`` (or ``omega_ucb_tails: TABLE``) and ``<!-- end -->``; a sentence is listed in a
``quotes.csv`` with the row that its numbers are of. A test compares all of them with the rows.
"""

from __future__ import annotations

import csv
import functools
import itertools
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments import router
from experiments.b_zoom.tables import COLUMNS, COLUMNS2, STATISTICS
from experiments.common import Row, read_summary
from experiments.omega_ucb_tails import REST
from experiments.rcb import BETAS
from experiments.rcucb import ORACLE_PROBIT, POLICIES, PUBLISHED
from experiments.suak import BUDGETS, GAPS
from jaxbandits.environments.censored import G1_NAMES

DOCS = Path(__file__).resolve().parents[1] / "docs"
BLOCK = re.compile(r"(<!-- ((?:summary|omega_ucb_tails): .+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
PAPER = 150_000.0  # the budget of the ω-UCB paper, in smallest mean costs

Line = dict[str, str]


@functools.cache
def lines(name: str) -> list[Line]:
    """The lines of a table in docs, ``findings/quotes.csv`` for one."""
    with (DOCS / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@functools.cache
def summary(name: str) -> dict[str, Row]:
    """The rows of ``docs/reproductions/NAME.csv``, by item."""
    return {row.item: row for row in read_summary(DOCS / "reproductions" / f"{name}.csv")}


def lookup(name: str, item: str) -> Row:
    """A row that must be there (else a LookupError)."""
    if item not in summary(name):
        raise LookupError(f"{name}.csv has no row {item!r}")
    return summary(name)[item]


def cell(row: Row, digits: str = ",.0f") -> str:
    """``measured ± standard error``, both in ``digits``."""
    return f"{float(row.measured):{digits}} ± {float(row.standard_error):{digits}}".replace(
        "-", "−"
    )


def grid(
    name: str, rows: Iterable[tuple[str, str]], columns: Mapping[str, str],
    show: Callable[[Row], str] = cell, corner: str = "", gaps: bool = False,
) -> Iterator[str]:  # fmt: skip
    """A table of rows of a run: lines are (label, item with ``{}``), columns map a head to what
    replaces ``{}``; ``gaps``: an item may be missing.
    """
    body = []
    for label, item in rows:
        items = (item.format(x) for x in columns.values())
        body.append(
            [
                label,
                *("" if gaps and x not in summary(name) else show(lookup(name, x)) for x in items),
            ]
        )
    return table([corner, *columns], body)


def difference(row: Row) -> str:
    """A measured ``difference …`` with its sign, ± its standard error."""
    value = float(row.measured.removeprefix("difference "))
    return f"{value:+,.0f} ± {float(row.standard_error):,.0f}".replace("-", "−")


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> Iterator[str]:
    """A Markdown table, line by line."""
    names = list(head)
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"
    for line in lines:
        yield f"| {' | '.join(line)} |"


# --- docs/reproductions/omega_ucb.md, suak.md, gradients.md ----------------------------------------------------
_OTHERS = ("BTS", "m-UCB", "c-UCB", "i-UCB", "b-greedy", "Budget-UCB", "UCB-SC+")


def _of_omega(settings: Mapping[str, str], star: bool = True) -> Iterator[str]:
    """Regret at B of every policy; ``settings`` with the item that played each."""
    omegas = (
        "ω-UCB, ρ = 1/4",
        "ω-UCB, ρ = 1",
        *(("ω*-UCB, ρ = 1/4", "ω*-UCB, ρ = 1") if star else ()),
    )
    rows = (
        (name.replace("*", "\\*").replace("1/4", "¼"), f"{{}}: regret of {name} at B")
        for name in (*omegas, *_OTHERS)
    )
    return grid("omega_ucb", rows, {x: f"{by}: {x}" for x, by in settings.items()})


def _of_suak() -> Iterator[str]:
    """Regret at T of every policy in both figures, and what the first ten runs alone say."""
    body = []
    for name in (
        "SUAK",
        "OPS, a = 3",
        "OPS, a = 2.4",
        "OPS, a = 2",
        "PDS",
        "USS, λ = 9",
        "USS, λ = 5",
    ):
        second = lookup("suak", f"figure2: regret of {name} at T")
        (value, error) = re.findall(r"first 10: ([\d.e+]+) ± ([\d.e+]+)", second.note)[0]
        first = summary("suak").get(f"figure1: regret of {name} at T")
        body.append(
            [
                name,
                cell(first) if first else "",
                cell(second),
                f"{float(value):,.0f} ± {float(error):,.0f}",
            ]
        )
    return table(["", "Fig. 1: regret", "Fig. 2: regret", "first 10 runs of 200"], body)


def _over_gap() -> Iterator[str]:
    """Regret of SUAK and One-Phase over the smallest cost gap."""
    notes = [lookup("suak", f"sweep_gap: regret of OPS − SUAK, δ = {gap:g}").note for gap in GAPS]
    body = (
        [name, *(f"{float(re.findall(rf'{short} ([^,;]+)', note)[0]):,.0f}" for note in notes)]
        for name, short in (("SUAK", "SUAK"), ("OPS, a = 3", "OPS"))
    )
    return table(["δ", *(f"{gap:g}" for gap in GAPS)], body)


def _tuned() -> Iterator[str]:
    """Tuned ρ by key, and mean gains over the keys with their intervals."""
    gains = ("regret of the best grid value − tuned", "regret of the start − tuned")
    body = []
    for name in ("S-Br-50", "S-Bt-50"):
        rhos = lookup("gradients", f"tuned: {name}: ρ")
        (grid,) = re.findall(r"best grid value ([\d., ]+);", rhos.note)
        cells = []
        for gain in gains:
            row = lookup("gradients", f"tuned: {name}: ({gain}) / tuned")
            (interval,) = re.findall(r"95 % interval (-?[\d.]+ to -?[\d.]+)", row.note)
            cells.append(f"{float(row.measured):.3f} ({interval}): {row.verdict}".replace("-", "−"))
        body.append([name, rhos.measured, grid, *cells])
    return table(
        [
            "",
            "tuned ρ, by key",
            "best of the grid, by key",
            *(f"({gain}) / tuned" for gain in gains),
        ],
        body,
    )


# --- docs/reproductions/rcucb.md -------------------------------------------------------------------------------
_SAID = {
    "Kaplan-Meier": "Kaplan–Meier (ours)",
    "UCB width": "UCB, width",
    "1+λ": "1 + λ",
    "TS ": "TS, ",
}
_READINGS = {
    name: functools.reduce(lambda x, y: x.replace(*y), _SAID.items(), name) for name in POLICIES
}
_BASELINES = tuple(_READINGS)[4:]


_INSTANCES = {name: name for name in G1_NAMES}


def _gap() -> Iterator[str]:
    """Is the gap larger with correlation?"""
    body = []
    for name in _BASELINES:
        row = lookup("rcucb", f"Fig. 4 regret {name} / RCUCB literal: {', '.join(G1_NAMES)}")
        body.append([f"{_READINGS[name]} / literal", ", ".join(row.measured.split()), row.verdict])
    return table(
        [f"regret on {', '.join(G1_NAMES)}", "measured on G1", "larger with correlation"], body
    )


def _censored() -> Iterator[str]:
    """The paper's table of censored shares."""
    body = []
    for at in G1_NAMES:
        rcucb, ts, ucb, oracle = (f"{x:.4f}" for x in PUBLISHED[at])
        body.append([at, "published", rcucb, "", "", "", ucb, "", ts, "", oracle])
        shares = (
            lookup("rcucb", f"table {at}: censored share {name}").measured for name in _READINGS
        )
        measured = lookup("rcucb", f"table {at}: oracle 1 − P(τ*)").measured
        body.append(["", "measured", *(f"{float(x):.4f}" for x in shares), measured])
    assert list(ORACLE_PROBIT) == list(G1_NAMES)
    return table(["", "", *_READINGS.values(), "oracle"], body)


def _forests() -> Iterator[str]:
    """Figure 5: share of rounds over the limit, and cumulative gain."""
    body = []
    for name in ("RCUCB legal", "RCUCB Kaplan-Meier", *_BASELINES):
        share, gain = (
            lookup("rcucb", f"Fig. 5 {quantity} {name}")
            for quantity in ("share over the limit", "cumulative gain")
        )
        body.append(
            [_READINGS[name], share.published, cell(share, digits=".4f"), share.verdict, cell(gain)]
        )
    head = [
        "",
        "share over the limit: published",
        "measured",
        "verdict on the number",
        "cumulative gain",
    ]
    return table(head, body)


def _theorem1() -> Iterator[str]:
    """Regret beside its bound, and what the worst pair would lose."""
    body = []
    for at in G1_NAMES:
        row = lookup("rcucb", f"Theorem 1, {at}: regret of RCUCB literal")
        (worst,) = re.findall(r"loses ([\d.e+]+)", row.note)
        bound = float(row.published.removeprefix("≤ "))
        body.append([at, cell(row), f"{bound:,.0f}", f"{float(worst):,.0f}", row.verdict])
    return table(["", "regret of `literal`", "bound", "worst pair in every round", "verdict"], body)


def _sizes(quantity: str) -> Iterator[str]:
    """Regret by the number of limits or of arms."""
    names, counts = (
        ("RCUCB literal", "RCUCB legal", "UCB width 1+λ", "UCB width 1"),
        (5, 10, 20, 40),
    )
    body = (
        [
            at,
            _READINGS[name],
            *(cell(lookup("rcucb", f"{n} {quantity}, {at}: regret {name}")) for n in counts),
        ]
        for at in G1_NAMES
        for name in names
    )
    return table([f"number of {quantity}", "", *map(str, counts)], body)


# --- docs/reproductions/b_zoom.md ------------------------------------------------------------------------------
_OF_B_ZOOM, _LAMBDAS = (50_000, 100_000, 500_000), (0.05, 0.1, 0.25, 0.5)


def _cells(begin: str, columns: Iterable[str], statistic: str, digits: str) -> Iterator[str]:
    """``published / measured (distance in s.e.)``; in bold where the verdict is no."""
    for name in columns:
        row = lookup("b_zoom", f"{begin} {name} {statistic}")
        (distance,) = re.findall(r"([+-][\d.]+) s\.e\. between", row.note)
        value = float(row.measured)
        text = f"{value:{digits}}" if value < 1000 else f"{value:.0f}"
        yield f"{row.published} / {f'**{text}**' if row.verdict == 'no' else text} ({distance})".replace(
            "-", "−"
        )


def _by_statistic(
    head: str, columns: Iterable[str], groups: Iterable[tuple[str, str]], digits: str
) -> Iterator[str]:
    """A row for each statistic of each group ``(label, begin)``; the group's first row bears its
    label.
    """
    body = (
        [label if s == STATISTICS[0] else "", s, *_cells(begin, columns, s, digits)]
        for label, begin in groups
        for s in STATISTICS
    )
    return table([head, "", *columns], body)


def _table1(budget: int) -> Iterator[str]:
    """Table 1 at one budget, thousands of pulls."""
    groups = ((f"{lam:g}", f"table1 B={budget} λ={lam:g}") for lam in _LAMBDAS)
    return _by_statistic(f"B = {budget:,}, λ", COLUMNS, groups, ".3g")


def _table2(reading: str) -> Iterator[str]:
    """Table 2 by one reading of the reward, thousands."""
    groups = ((f"{b:,}", f"table2 {reading} B={b}") for b in _OF_B_ZOOM)
    return _by_statistic(f"{reading}, B", COLUMNS2, groups, ".1f")


_AGREEMENT = {
    "Table 2, the reward's peak 0.1 (fitted)": "table2 peak 0.1: within 3 s.e., Σ reward, all cells",
    "Table 2, peak 0.2 (printed)": "table2 printed peak 0.2: within 3 s.e., Σ reward, all cells",
    "Table 1, counted as pulls": "table1: within 3 s.e., pulls, all cells",
    **{f"… column {name}": f"table1: within 3 s.e., pulls, column {name}" for name in COLUMNS},
    "Table 1, counted as Σ reward": "table1: within 3 s.e., Σ reward, all cells",
    "its UCB1 columns, had UCB1 seen equal rewards": (
        "table1 if UCB1 saw equal rewards: within 3 s.e., B/c̄ pulls, all cells"
    ),
}


def _agreement() -> Iterator[str]:
    """How many printed cells the measurements meet."""
    body = []
    for label, item in _AGREEMENT.items():
        row = lookup("b_zoom", item)
        largest, chance = row.note.removeprefix("largest ").split("; so many outside by chance: ")
        body.append([label, row.measured, largest, chance])
    return table(["cells within 3 s.e.", "", "largest distance", "chance of so many outside"], body)


def _claims() -> Iterator[str]:
    """Every statement about Table 1: published, measured, verdict, and why."""
    claims = {
        item.removeprefix("claim: "): x
        for item, x in summary("b_zoom").items()
        if item.startswith("claim: ")
    }
    of_table1 = ((item, x) for item, x in claims.items() if not item.startswith("table2"))
    body = ([item, x.published, x.measured, f"**{x.verdict}**: {x.note}"] for item, x in of_table1)
    return table(["statement", "published", "measured", "verdict"], body)


def _claims2() -> Iterator[str]:
    """Every statement about Table 2: the verdict, and the difference of means that it is of."""
    places = [f"{x}, B = {b:,}" for x in ("printed peak 0.2", "peak 0.1") for b in _OF_B_ZOOM]
    claims = (
        "m of Z is the highest",
        "Q1 of Z is the highest",
        *(f"mean profit of {x} − Z" for x in COLUMNS2[1:]),
    )

    def show(row: Row) -> str:
        return f"**{row.verdict}**" + (f" ({cell(row)})" if row.standard_error else "")

    return grid(
        "b_zoom", [(x, f"claim: table2 {{}}: {x}") for x in claims], {x: x for x in places}, show
    )


_SCALES = {
    "BZ, L = largest slope of the ratio": "BZ, ball radius E/L, L = largest slope of μ_r/μ_c",
    "BZ, L = 1 (no rescaling)": "BZ, L = 1 (as printed, no rescaling)",
    "BZ, L' = (L_r + L_c)/λ²": "BZ, L' = (L_r + L_c)/λ² (Lemma 1)",
    "Z, E without λ, L = slope of the reward": "Z, E without the factors of λ, L = slope of the reward",
    "Z, E as printed for BZ, L = slope of the reward": "Z, E as printed for BZ, L = slope of the reward",
    "Z, E as printed for BZ, L = slope of the ratio": "Z, E as printed for BZ, L = slope of the ratio",
    "Z, E without λ, L = slope of the ratio": "Z, E without the factors of λ, L = slope of the ratio",
}


def _scale() -> Iterator[str]:
    """How many cells of its column each reading meets."""
    body = []
    for name, label in _SCALES.items():
        pulls, reward = (
            lookup("b_zoom", f"scale: {name}, {quantity}") for quantity in ("pulls", "Σ reward")
        )
        (median,) = re.findall(r"median \|z\| ([\d.]+)", pulls.note)
        full = re.findall(r"; (\d+) lanes full", pulls.note)
        capacity_note = f" ({int(full[0]):,} of 1,200 runs fill their points)" if full else ""
        body.append([label, f"{pulls.measured}{capacity_note}", median, reward.measured])
    return table(
        ["reading", "cells within 3 s.e., as pulls", "median \\|z\\|", "as Σ reward"], body
    )


def _independent(budget: int) -> Iterator[str]:
    """BZ by the library, by the independent loop, and as printed: thousands of pulls."""
    body = []
    for lam in _LAMBDAS:
        cells = []
        for statistic in STATISTICS:
            row = lookup("b_zoom", f"independent B={budget} λ={lam:g} BZ {statistic}")
            ours, distance, printed = re.findall(
                r"ours ([\d.]+), ([+-][\d.]+) s\.e\. away; printed (\d+)", row.note
            )[0]
            cells.append(f"{float(row.measured):.4g} / {float(ours):.4g} ({distance}) / {printed}")
        body.append([f"{lam:g}", *cells])
    return table([f"B = {budget:,}, λ", *STATISTICS], body)


# --- docs/reproductions/rcb.md ---------------------------------------------------------------------------------
_FRACTION = {0.5: "½", 1.0: "1", 2.0: "2"}
_RCBS = ("RCB-I", "RCB-AIR")
_BUDGETS_OF_RCB = (1_000, 3_160, 10_000, 31_600, 100_000, 316_000, 1_000_000)
_HEAD = {f"B = {b:,}": f"{float(b):g}" for b in _BUDGETS_OF_RCB}


def _exponents() -> Iterator[str]:
    """Local exponents, each beside that of its bound."""
    middles = [float(np.sqrt(a * b)) for a, b in itertools.pairwise(_BUDGETS_OF_RCB)]
    body = []
    for beta, name in itertools.product(BETAS, _RCBS):
        begin = f"exponent: {name}, β = {beta:g}"
        steps = [summary("rcb").get(f"{begin}, B ≈ {b:.3g}") for b in middles]
        lower = re.findall(r"≥ ([\d.]+)", steps[0].published)[0]  # type: ignore[union-attr]
        falls = lookup("rcb", f"{begin}: it falls with B")
        label = f"{name}, β = {_FRACTION[beta]} (lower {float(lower):.2f})"
        cells = [_step(row) if row else "" for row in steps]
        body.append([label, *cells, f"{cell(falls, digits='.3f')}, {falls.verdict}"])
    return table(["", *(f"B ≈ {b:,.0f}" for b in middles), "falls from first to last by"], body)


def _step(row: Row) -> str:
    (bound,) = re.findall(r"≤ ([\d.]+)", row.published)
    return f"{cell(row, digits='.3f')} [{float(bound):.2f}] {row.verdict}"


def _share(row: Row) -> str:
    return "".join(re.findall(r"infinite index in (\d+ %)", row.note))


def _far() -> Iterator[str]:
    """Regret beyond the budgets of ``regret``, a hundred reservoirs each."""
    exponents = {  # by policy, β and the budget at the end of the step
        _place(item, 10**0.25): row
        for item, row in summary("rcb").items()
        if item.startswith("far: exponent")
    }
    body = []
    for item, row in summary("rcb").items():
        if item.startswith("far: regret"):
            policy, beta, budget = place = _place(item)
            slope = _step(exponents[place]) if place in exponents else ""
            name = f"{policy}, β = {_FRACTION[beta]}"
            body.append([name, f"{budget:,}", cell(row), _share(row), slope])
    return table(
        [
            "",
            "B",
            "regret",
            "pulls with an infinite index",
            "exponent since the budget before [bound's]",
        ],
        body,
    )


def _place(item: str, times: float = 1.0) -> tuple[str, float, int]:
    """Policy, β, and the budget times a factor, to the half decade."""
    match = re.fullmatch(r"far: \w+: (.+), β = ([\d.]+), B [=≈] (.+)", item)
    assert match
    half = round(2 * np.log10(float(match[3]) * times))
    return match[1], float(match[2]), int(float(f"{10 ** (half / 2):.3g}"))


# --- docs/reproductions/sensitivity.md -------------------------------------------------------------------------
_UCBS = {"MUCB": "m-UCB", "CUCB": "c-UCB", "IUCB": "i-UCB"}
_OMEGAS = {"OmegaUCB": "ω-UCB", "OmegaStarUCB": "ω\\*-UCB"}
_SURVIVALS = {"RCUCB(survival=legal)": "legal", "RCUCB(survival=kaplan_meier)": "Kaplan–Meier"}


def _sensitivity(name: str) -> list[Line]:
    return lines(f"reproductions/sensitivity_{name}.csv")


def _values(
    name: str, parameter: str, environment: str, policy: str, budget: str = ""
) -> tuple[str, str]:
    """The best value, and the range of values that cannot be distinguished from it."""
    points = [
        x for x in _sensitivity(name) if (x["environment"], x["policy"]) == (environment, policy)
    ]
    points = [x for x in points if not budget or x["budget"] == budget]
    values = [float(x[parameter]) for x in points]
    like = [i for i, x in enumerate(points) if "yes" in (x["best"], x["indistinguishable"])]
    (best,) = (i for i, x in enumerate(points) if x["best"] == "yes")
    text = f"{values[best]:.3g}" + (", edge of the grid" if best in (0, len(values) - 1) else "")
    if like[0] == like[-1]:
        return text, "no other"
    gaps = ", with gaps" if len(like) <= like[-1] - like[0] else ""
    return text, f"{values[like[0]]:.2g} to {values[like[-1]]:.2g}{gaps}"


def _side_by_side(name: str, parameter: str, policies: dict[str, str]) -> Iterator[str]:
    """A row for each environment, two columns for each policy."""
    environments = dict.fromkeys(x["environment"] for x in _sensitivity(name))
    symbol = {"rho": "ρ", "alpha": "α"}[parameter]
    head = [
        "",
        *(
            f"{label}: {column}"
            for label in policies.values()
            for column in (f"best {symbol}", "indistinguishable")
        ),
    ]
    return table(
        head,
        (
            [at, *(x for p in policies for x in _values(name, parameter, at, p))]
            for at in environments
        ),
    )


def _alphas() -> Iterator[str]:
    """m-, c- and i-UCB: a row for each environment and budget."""
    cells = dict.fromkeys((x["environment"], x["budget"]) for x in _sensitivity("alpha"))
    body = (
        [
            f"{at}, {float(budget):,.0f}",
            *("{} ({})".format(*_values("alpha", "alpha", at, p, budget)) for p in _UCBS),
        ]
        for at, budget in cells
    )
    return table(["", *_UCBS.values()], body)


# --- docs/findings/drift.md ------------------------------------------------------------------------------------
_FORGETFUL = ("ω-UCB, ρ = 1/4", "BTS", "m-UCB")
_WAYS: tuple[str, ...] = (
    "never",
    "half-life 128",
    "half-life 512",
    "half-life 512 pulls",
    "window 740",
)
_WAYS += (
    "restart, GLR",
    "restart the arm, GLR",
    "restart, GLR, growing",
    "restart, CUSUM",
    "restart, Page–Hinkley",
)


def _lines() -> Iterator[str]:
    """From how many changes in a run on forgetting pays."""
    budgets, items = (
        (500, 2000, 8000),
        "pays: {}, budget {}: half-life {} pays from … changes a run on",
    )
    body = []
    for name, half in itertools.product(_FORGETFUL, (32, 128, 512, 2048, 8192)):
        rows = (lookup("drift", items.format(name, budget, half)) for budget in budgets)
        body.append([name, f"{half:,}", *(f"{x.measured} ({x.standard_error})" for x in rows)])
    return table(["", "half-life", *(f"budget {budget:,}" for budget in budgets)], body)


def _held() -> Iterator[str]:
    """The lines, tested in other worlds."""
    body = []
    for item, row in summary("drift").items():
        if item.startswith("held: "):
            name, budget, half = re.findall(r"held: (.+), budget (\d+), half-life (\d+):", item)[0]
            doubled, halved = row.measured.replace("-", "−").split("; ")
            budget, half = f"{int(budget):,}", f"{int(half):,}"
            body.append([name, budget, half, row.published, doubled, halved, row.verdict])
    header = [
        "",
        "budget",
        "half-life",
        "line",
        "with twice as many changes",
        "with half as many",
        "holds",
    ]
    return table(header, body)


def _percent_of(row: Row, digits: str) -> str:
    values = (100 * float(x) for x in (row.measured, row.standard_error))
    return " ± ".join(format(value, digits) for value in values)


# --- docs/findings/router.md -----------------------------------------------------------------------------------
_ROUTERS: tuple[str, ...] = (
    "ParetoBandit",
    "mixture learnt on the training split",
    "UCB-Simplex",
    "UCB-Simplex, guarded",
    "pacer",
)
_ROUTERS += (
    "One-Phase",
    "primal-dual",
    "SUAK",
    "ω-UCB",
    "BTS",
    "explore 50, then commit",
    "r − λc",
    "cap",
)
_ROUTERS += ("price tiers", "LiteLLM adaptive")
_CONTEXTUAL = ("ParetoBandit", "linear, shown all", "longer prompts to the dearer")


def _at_budgets(
    rows: Iterable[tuple[str, str]], show: Callable[[str], str], corner: str = ""
) -> Iterator[str]:
    """A column for each budget; ``show`` makes a cell of an item without its ``quality``."""
    budgets = {f"${label}": label for label in router.PUBLISHED}
    return table(
        [corner, *budgets],
        ([name, *(show(item.format(x)) for x in budgets.values())] for name, item in rows),
    )


def _routers() -> Iterator[str]:
    """Quality, and dollars over the budget in brackets."""

    def show(item: str) -> str:
        quality, paid = (
            lookup("router", f"{item}: {quantity}")
            for quantity in ("quality", "dollars over the budget")
        )
        return f"{float(quality.measured):.3f} ({float(paid.measured):.2f})"

    rows = [("context" if name == "ParetoBandit" else "learners", name) for name in _ROUTERS]
    return _at_budgets([(name, f"{by}: {name} at ${{}}") for by, name in rows], show)


def _does_context_pay() -> Iterator[str]:
    """Quality less the best mixture's, its interval, and the verdict."""

    def show(item: str) -> str:
        row = lookup("router", item)
        low, high = re.findall(r"from (\S+) to (\S+) ", row.note)[0]
        verdict = {"yes": "**yes**", "no": "**no**"}.get(row.verdict, "?")
        return f"{float(row.measured):+.3f} ({float(low):+.3f} to {float(high):+.3f}) {verdict}".replace(
            "-", "−"
        )

    rows = ((name, f"context: {name} − best mixture at its dollars, ${{}}") for name in _CONTEXTUAL)
    return _at_budgets(rows, show)


def _reproduced() -> Iterator[str]:
    """ParetoBandit's own table, cell by cell."""

    def show(item: str) -> str:
        row = lookup("router", item)
        digits = ".3f" if "quality" in item else ".2f"
        return f"{float(row.measured):{digits}} ± {float(row.standard_error):.2g} / {float(row.published):{digits}}"

    return _at_budgets(
        [
            (quantity, f"context: ParetoBandit's {quantity} at ${{}}, ours and published")
            for quantity in _JUDGED
        ],
        show,
        "ours / published",
    )


_JUDGED = ("quality", "dollars over the budget")


def _soon() -> Iterator[str]:
    """Requests until a router is as good as the mixture."""

    def show(item: str) -> str:
        requests = re.findall(
            r"after (never|[0-9]+ requests)$", lookup("router", f"{item}: quality").note
        )[0]
        return str(requests.removesuffix(" requests"))

    rows = [("context" if name == "ParetoBandit" else "learners", name) for name in _ROUTERS]
    yield from _at_budgets(
        [(name, f"{by}: {name} at ${{}}") for by, name in rows], show, "requests"
    )
    gaps, no_guess = _gaps("policies: ContextualPacer"), _gaps("policies: no guess")
    pacers = [
        ("ContextualPacer", gaps, "as_good"),
        ("ContextualPacer, ahead in all", gaps, "ahead"),
        ("no guess of prices, ahead in all", no_guess, "ahead"),
    ]
    yield from itertools.islice(_gap_table(pacers), 2, None)


_GAP_NOTE = re.compile(
    r"from (?P<low>\S+) to (?P<high>\S+) over (?P<orders>\d+) orders, the worst (?P<worst>\S+); "
    r"quality (?P<quality>\S+) at (?P<paid>\S+) ± \S+ of the budget; as good as the mixture after "
    r"(?P<as_good>.+?), ahead of it in all after (?P<ahead>.+?); "
)


def _gaps(item: str) -> dict[str, dict[str, str]]:
    """Cells of a policy that sees contexts, by budget: quality less the best mixture's at its
    dollars, and the parts of the note.
    """
    start, columns = f"{item} − best mixture at its dollars, $", {}
    for name, row in summary("router").items():
        if name.startswith(start):
            parts = _GAP_NOTE.match(row.note)
            assert parts is not None, row.note
            cells = {part: text.replace("-", "−") for part, text in parts.groupdict().items()}
            gap = row.measured.replace("-", "−")
            cells["gap"] = f"**{gap}**" if float(parts["low"]) > 0 else gap
            cells["paid"] = f"{float(parts['paid']):.2f}"
            cells["from, to"] = f"{cells['low']}, {cells['high']}"
            columns[name.removeprefix(start)] = cells
    if not columns:
        raise LookupError(f"router.csv has no row {start}…")
    return columns


def _gap_table(rows: Iterable[tuple[str, dict[str, dict[str, str]], str]]) -> Iterator[str]:
    """Rows are (label, :func:`_gaps` of a policy, name of the cells)."""
    rows = list(rows)
    body = [[label, *(cells[part] for cells in gaps.values())] for label, gaps, part in rows]
    return table(["", *(f"${budget}" for budget in rows[0][1])], body)


_GAP_PARTS = {
    "dollars over the budget": "paid",
    "less the best mixture": "gap",
    "from, to": "from, to",
    "worst order": "worst",
}
_VARIANTS = {
    "no guess": "no guess, each model twice first",
    "draws": "draws (LinTS) in place of a bonus",
    "32 cells": "32 cells",
    "100 late": "answers 100 requests late",
    "1,000 late": "answers 1,000 requests late",
    "length alone": "the prompt's length alone",
    "no context": "no context",
}


def _policies() -> Iterator[str]:
    """The contextual pacer from nothing, and variants of it."""
    first = _gaps("policies: ContextualPacer")
    orders = int(next(iter(first.values()))["orders"])
    rows = [(f"quality, {orders:,} orders", first, "quality")]
    rows += [(label, first, part) for label, part in _GAP_PARTS.items()]
    for name, label in _VARIANTS.items():
        gaps = _gaps(f"policies: {name}")
        rows.append((f"{label}; {next(iter(gaps.values()))['orders']} orders", gaps, "gap"))
    return _gap_table(rows)


def _second() -> Iterator[str]:
    """Other prompts, other models."""
    gaps = _gaps("second: ContextualPacer")
    rows = [("less the best mixture", "gap"), ("dollars over the budget", "paid")]
    rows += [("as good as the mixture after", "as_good"), ("ahead of it in all after", "ahead")]
    return _gap_table((label, gaps, part) for label, part in rows)


def _late() -> Iterator[str]:
    """Quality over delays, and the share that was served."""

    def show(item: str) -> str:
        row = lookup("router", f"{item}: quality")
        served = re.findall(r"; (\S+) % served", row.note)[0]
        return f"{cell(row, '.3f')} ({float(served):.0f} %)"

    names = ("PricePacer", "explore 50, then commit")
    rows = [
        (f"{x}, {n:,} late", f"delays: {x}, {n} requests late at ${{}}")
        for x in names
        for n in (0, 10, 100, 1000)
    ]
    return _at_budgets(rows, show)


_AS_PRICES_FALL = (
    "ParetoBandit", "ContextualPacer", "ContextualPacer, not told", "UCB-Simplex", "pacer", "pacer, window 300",
    "explore 50, then commit", "cap",
)  # fmt: skip


def _price_falls() -> Iterator[str]:
    """Dollars over the budget by phase."""
    phases = ("before", "while cheap", "after")
    body = []
    for label in ("tight", "moderate", "loose"):
        for name in _AS_PRICES_FALL:
            rows = [
                lookup("router", f"prices: {name}, {label}, {phase}: dollars over the budget")
                for phase in phases
            ]
            printed = [
                f" / {float(x.published):.2f}" if name == "ParetoBandit" else "" for x in rows
            ]
            body.append(
                [label, name, *(cell(x, ".2f") + y for x, y in zip(rows, printed, strict=True))]
            )
    return table(["budget", "", *phases], body)


# --- docs/findings/omega_ucb_tails.md --------------------------------------------------------------------------
def tail_line(setting: str, policy: str, rho: float | None = None, budget: float = PAPER) -> Line:
    """The line of tails.csv of a policy in a setting; a LookupError unless there is exactly one."""
    candidates = [line for line in _tails(setting, budget) if line["policy"] == policy]
    if rho is not None:
        candidates = [
            line for line in candidates if line["rho"] and abs(float(line["rho"]) / rho - 1) < 1e-3
        ]
    if len(candidates) != 1:
        raise LookupError(f"{setting}, {policy}, ρ = {rho}, {budget:g}: {len(candidates)} lines")
    return candidates[0]


def _tails(setting: str, budget: float) -> list[Line]:
    tails = lines("findings/omega_ucb_tails.csv")
    return [
        line for line in tails if line["setting"] == setting and float(line["budget"]) == budget
    ]


def number(text: str) -> str:
    """A regret in whole units, with commas; an interval without an end has ∞."""
    return "∞" if text == "inf" else f"{float(text):,.0f}".replace("-", "−")


def percent(text: str, digits: int = 0) -> str:
    """A share in percent."""
    return f"{100 * float(text):.{digits}f} %"


def interval(line: Line, name: str) -> str:
    """Value and 95 % interval."""
    return f"{number(line[name])} ({number(line[f'{name}_low'])} to {number(line[f'{name}_high'])})"


def _narrow(head: Iterable[str], body: Iterable[Iterable[str]]) -> Iterator[str]:
    """A :func:`table` whose empty cells are one space wide."""
    return (line.replace("|  |", "| |") for line in table(head, body))


def _by_rho(setting: str) -> Iterator[str]:
    """A line for each ρ at the paper's budget."""
    body = []
    for line in _tails(setting, PAPER):
        if line["policy"] == "ω-UCB":
            cells = [interval(line, name) for name in ("mean", "median", "q99")]
            cells += [
                percent(line["tail_share"]),
                f"{line['half']} of {int(line['instances']):,} runs",
            ]
            cells += [
                percent(line["lock_in"], 1),
                f"{line['least_in']} of {line['groups']} hundreds",
            ]
            body.append([f"{float(line['rho']):.3g}", *cells])
    head = "ρ | mean | median | 99 % quantile | worst 1 % carry | half of the mean lies in | lock-ins | the least in"
    return table(head.split(" | "), body)


def _best(budget: float) -> Iterator[str]:
    """The best ρ for each criterion, and the least and largest that are not clearly worse."""
    candidates = [
        line for line in lines("findings/omega_ucb_best.csv") if float(line["budget"]) == budget
    ]
    body = []
    for setting in dict.fromkeys(line["setting"] for line in candidates):
        setting_lines = [line for line in candidates if line["setting"] == setting]
        cells = (
            f"{float(line['best_rho']):.2g} ({float(line['from_rho']):.2g} to {float(line['to_rho']):.2g})"
            for line in setting_lines
        )
        body.append([setting, *cells, interval(setting_lines[0], "quarter_minus_half")])
    head = [
        "",
        "least mean",
        "least median",
        "least 99 % quantile",
        "least worst 1 %",
        "mean at ¼ − at ½",
    ]
    return _narrow(head, body)


_REPLAYED: tuple[tuple[str, str, float | None], ...] = (
    ("ω-UCB, ρ = ¼", "ω-UCB", 0.25),
    ("ω-UCB, ρ = ½", "ω-UCB", 0.5),
    ("ω-UCB, ρ = 1", "ω-UCB", 1.0),
    ("ω\\*-UCB, ρ = ¼", "ω*-UCB", 0.25),
    ("ω\\*-UCB, ρ = 1", "ω*-UCB", 1.0),
    *((name, name, None) for name in _OTHERS),
)


def _replayed(law: str) -> Iterator[str]:
    """Mean regret of the paper's policies on more instances, with the number of instances."""
    body = []
    for label, policy, rho in _REPLAYED:
        if policy == "ω*-UCB" if law == "S-Br" else policy in REST:
            continue  # the first is ω-UCB there, the others were played on Bernoulli arms only
        tail_lines = (tail_line(f"{law}-{arms}", policy, rho) for arms in (10, 50, 100))
        body.append(
            [
                label,
                *(f"{interval(line, 'mean')}, {int(line['instances']):,}" for line in tail_lines),
            ]
        )
    return _narrow(["", f"{law}-10", f"{law}-50", f"{law}-100"], body)


def _distributions() -> Iterator[str]:
    """The law of the regret of BTS and m-UCB, in every setting at the paper's budget."""
    body = []
    for policy, law, arms in itertools.product(
        ("BTS", "m-UCB"), ("S-Br", "S-GBr", "S-Bt"), (10, 50, 100)
    ):
        line = tail_line(f"{law}-{arms}", policy)
        cells = [interval(line, name) for name in ("mean", "median", "q99")]
        body.append(
            [
                policy,
                line["setting"],
                *cells,
                percent(line["tail_share"]),
                percent(line["lock_in"], 1),
            ]
        )
    head = ["", "", "mean", "median", "99 % quantile", "worst 1 % carry", "lock-ins"]
    return (line.replace("|  |", "| |") for line in _narrow(head, body))


def _seldom() -> Iterator[str]:
    """Policies that the paper does not play, beside some that it does: S-Br-10, a tenth of the
    paper's budget.
    """
    selection = [
        x
        for x in _tails("S-Br-10", PAPER / 10)
        if x["policy"] != "ω-UCB" or float(x["rho"]) in (0.25, 1.0)
    ]
    body = []
    for line in sorted(selection, key=lambda x: float(x["mean"])):
        name = line["policy"] + (f", ρ = {float(line['rho']):g}" if line["rho"] else "")
        cells = [f"{int(line['instances']):,}", interval(line, "mean"), interval(line, "median")]
        body.append([name, *cells, percent(line["lock_in"], 1)])
    return _narrow(["", "instances", "mean", "median", "lock-ins"], body)


def quote(entry: Line) -> str:
    """The sentence that a page must have: ``text`` with numbers of a line of tails.csv, or of
    best.csv (by criterion).

    ``{mean}`` is a regret in whole units, ``{lock_in%}`` a percentage, ``{half#}`` stands as it is.
    """
    if entry["criterion"]:
        key = (entry["setting"], entry["criterion"], float(entry["budget"]))
        best = lines("findings/omega_ucb_best.csv")
        line = best[[(x["setting"], x["criterion"], float(x["budget"])) for x in best].index(key)]
    else:
        rho = float(entry["rho"]) if entry["rho"] else None
        line = tail_line(entry["setting"], entry["policy"], rho, float(entry["budget"]))

    def formatted(match: re.Match[str]) -> str:
        name, kind = match[1], match[2]
        return (
            percent(line[name])
            if kind == "%"
            else line[name]
            if kind == "#"
            else number(line[name])
        )

    return re.sub(r"\{(\w+)([%#]?)\}", formatted, entry["text"])


def _of_rcb(names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Rows of policies on every reservoir."""
    places = itertools.product(BETAS, names)
    return [
        (f"{x}, β = {_FRACTION[beta]}", f"regret: {x}, β = {beta:g}, B = {{}}")
        for beta, x in places
    ]


_CHANGES = {f"{n:,}": f"a change in {n}" for n in (128, 256, 512, 1024, 2048, 4096, 8192)} | {
    "never": "standing"
}
_WEEKS = ("before", "price at a tenth", "first week after", "second week after")
_PACERS = (
    "never",
    "window, 1 day",
    "window, 3 days",
    "restart the arm, GLR",
    "restart the arm, CUSUM",
)
_LEGAL = {
    "legal − literal": "{}: regret legal − literal",
    "infinite − literal": "{}: regret infinite − literal",
    "Kaplan–Meier − literal": "{}: Kaplan-Meier (ours) beats literal",
    "Kaplan–Meier − legal": "{}: Kaplan-Meier (ours) beats legal",
}
# What :func:`grid` makes: run, rows, columns, what a cell shows, corner, gaps
_GRIDS: dict[str, tuple[Any, ...]] = {
    "suak, over c": (
        "suak",
        [("regret of OPS − SUAK", "sweep_c: regret of OPS − SUAK, c = {}")],
        {f"{c:g}": f"{c:g}" for c in BUDGETS},
        cell,
        "c",
    ),
    "rcucb, figure 4": (
        "rcucb",
        [(label, f"Fig. 4 {{}}: regret {x}") for x, label in _READINGS.items()],
        _INSTANCES,
    ),
    "rcucb, below": (
        "rcucb",
        [(_READINGS[x], f"Fig. 4 {{}}: RCUCB literal below {x}") for x in _BASELINES],
        _INSTANCES,
        lambda x: f"{x.verdict} ({difference(x)})",
        "RCUCB literal below …",
    ),
    "rcucb, legal": ("rcucb", list(_LEGAL.items()), _INSTANCES, difference),
    "rcucb, zoom": (
        "rcucb",
        [
            (f"{t:,}", f"z-RCUCB legal, {{}}: simple regret at T = {t}")
            for t in (1_000, 3_000, 10_000, 30_000, 100_000)
        ],
        _INSTANCES,
        functools.partial(cell, digits=".3f"),
        "T",
    ),
    "rcucb, smooth": (
        "rcucb",
        [(x, f"smooth instance: simple regret of {x} at T = {{}}") for x in ("z-RCUCB", "StoOO")],
        {f"T = {t:,}": str(t) for t in (1_000, 10_000, 100_000)},
        functools.partial(cell, digits=".4f"),
    ),
    "rcb, regret": (
        "rcb",
        _of_rcb((*_RCBS, "ω-UCB, K arms", "ω-UCB, increasing")),
        _HEAD,
        cell,
        "",
        True,
    ),
    "rcb, infinite": ("rcb", _of_rcb(_RCBS), _HEAD, _share, "", True),
    "drift, ways": (
        "drift",
        [(x, f"ways: {x}, {{}}: regret") for x in _WAYS],
        _CHANGES,
        functools.partial(_percent_of, digits=".1f"),
        "a change every … rounds",
    ),
    "drift, prices": (
        "drift",
        [(x, f"prices: {x}, {{}}: quality") for x in _PACERS],
        {x: x for x in _WEEKS},
        functools.partial(cell, digits=".3f"),
    ),
}
_K = (10, 50, 100)
TABLES: dict[str, Callable[[], Iterator[str]]] = {
    **{
        f"summary: {name}": functools.partial(grid, *arguments)
        for name, arguments in _GRIDS.items()
    },
    "summary: omega_ucb, S-Br": functools.partial(
        _of_omega, {f"S-Br-{k}": "figure3a" for k in _K}, star=False
    ),
    "summary: omega_ucb, S-GBr": functools.partial(
        _of_omega, {f"S-GBr-{k}": "figure3b" for k in _K}
    ),
    "summary: omega_ucb, S-Bt": functools.partial(_of_omega, {f"S-Bt-{k}": "figure3c" for k in _K}),
    "summary: omega_ucb, ads": functools.partial(
        _of_omega, {"FB-Br": "figure3d", "FB-Bt": "figure3e"}
    ),
    "summary: suak, regret": _of_suak,
    "summary: suak, over the gap": _over_gap,
    "summary: rcucb, gap": _gap,
    "summary: rcucb, censored": _censored,
    "summary: rcucb, figure 5": _forests,
    "summary: rcucb, theorem 1": _theorem1,
    "summary: rcucb, limits": functools.partial(_sizes, "limits"),
    "summary: rcucb, arms": functools.partial(_sizes, "arms"),
    "summary: b_zoom, agreement": _agreement,
    "summary: b_zoom, claims": _claims,
    "summary: b_zoom, claims, table 2": _claims2,
    "summary: b_zoom, scale": _scale,
    **{f"summary: b_zoom, table 1, {b}": functools.partial(_table1, b) for b in _OF_B_ZOOM},
    **{
        f"summary: b_zoom, table 2, {x}": functools.partial(_table2, x)
        for x in ("printed peak 0.2", "peak 0.1")
    },
    **{
        f"summary: b_zoom, independent, {b}": functools.partial(_independent, b) for b in _OF_B_ZOOM
    },
    "summary: rcb, exponents": _exponents,
    "summary: rcb, far": _far,
    "summary: drift, lines": _lines,
    "summary: drift, held": _held,
    "summary: router, budgets": _routers,
    "summary: router, context": _does_context_pay,
    "summary: router, reproduced": _reproduced,
    "summary: router, requests": _soon,
    "summary: router, policies": _policies,
    "summary: router, second": _second,
    "summary: router, delays": _late,
    "summary: router, prices": _price_falls,
    "summary: gradients, tuned": _tuned,
    "summary: sensitivity, figure 4": functools.partial(_side_by_side, "figure4", "rho", _OMEGAS),
    "summary: sensitivity, censored": functools.partial(
        _side_by_side, "alpha_censored", "alpha", _SURVIVALS
    ),
    "summary: sensitivity, alpha": _alphas,
    **{
        f"omega_ucb_tails: by ρ, {x}": functools.partial(_by_rho, x)
        for x in ("S-Br-10", "S-Br-50", "S-Bt-10")
    },
    "omega_ucb_tails: best": functools.partial(_best, PAPER),
    "omega_ucb_tails: best, a tenth": functools.partial(_best, PAPER / 10),
    "omega_ucb_tails: best, ten times": functools.partial(_best, 10 * PAPER),
    **{
        f"omega_ucb_tails: replayed, {x}": functools.partial(_replayed, x)
        for x in ("S-Br", "S-GBr", "S-Bt")
    },
    "omega_ucb_tails: BTS and m-UCB": _distributions,
    "omega_ucb_tails: seldom": _seldom,
}


def pages() -> dict[str, str]:
    """All pages that quote a table."""
    texts = {
        str(path.relative_to(DOCS)): path.read_text(encoding="utf-8")
        for path in sorted(DOCS.rglob("*.md"))
    }
    return {name: text for name, text in texts.items() if BLOCK.search(text)}


def rendered(page: str) -> str:
    """A page with its tables made anew from the rows."""
    return BLOCK.sub(lambda m: m[1] + "\n".join(TABLES[m[2]]()) + "\n" + m[4], page)


def quoted(entry: Line) -> str:
    """The sentence of ``reproductions/quotes.csv`` that a page must have, with the numbers of its
    row.

    In whole units, or as the row has them where it measured less than 10; ``{error}``: a standard
    error or an interval.
    """
    row = lookup(entry["summary"], entry["item"])
    small = abs(float(row.measured)) < 10
    texts = (row.measured, *row.standard_error.split(" to "))
    measured, *error = ((x if small else f"{float(x):,.0f}").replace("-", "−") for x in texts)
    return entry["text"].format(measured=measured, error=" to ".join(error), verdict=row.verdict)


def main() -> int:
    """Write the tables into the pages."""
    for name, before in pages().items():
        if (after := rendered(before)) != before:
            (DOCS / name).write_text(after, encoding="utf-8")
            print(f"{name}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
