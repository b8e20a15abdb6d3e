"""Tables of docs/reproductions/rcucb.md."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator

from experiments.common.pages import cell, found, table
from experiments.rcucb.figures import ORACLE_PROBIT, PUBLISHED
from jaxbandits.environments.censored.g1_settings import G1_NAMES

_READINGS = {
    "RCUCB literal": "RCUCB literal",
    "RCUCB legal": "RCUCB legal",
    "RCUCB infinite": "RCUCB infinite",
    "RCUCB Kaplan-Meier": "RCUCB Kaplan–Meier (ours)",
    "UCB width 1+λ": "UCB, width 1 + λ",
    "UCB width 1": "UCB, width 1",
    "TS global": "TS, global",
    "TS per arm": "TS, per arm",
}
_BASELINES = tuple(_READINGS)[4:]


def _regret() -> Iterator[str]:
    """Figure 4: regret of every reading on every instance."""
    lines = (
        [said, *(cell(found("rcucb", f"Fig. 4 {at}: regret {name}")) for at in G1_NAMES)]
        for name, said in _READINGS.items()
    )
    return table(["", *G1_NAMES], lines)


def _below() -> Iterator[str]:
    """Is RCUCB below the baselines? Paired differences."""

    def one(at: str, name: str) -> str:
        each = found("rcucb", f"Fig. 4 {at}: RCUCB literal below {name}")
        difference = float(each.measured.removeprefix("difference "))
        return f"{each.verdict} ({difference:+,.0f} ± {float(each.standard_error):,.0f})".replace("-", "−")

    lines = ([_READINGS[name], *(one(at, name) for at in G1_NAMES)] for name in _BASELINES)
    return table(["RCUCB literal below …", *G1_NAMES], lines)


def _gap() -> Iterator[str]:
    """Is the gap larger with correlation?"""
    lines = []
    for name in _BASELINES:
        each = found("rcucb", f"Fig. 4 regret {name} / RCUCB literal: {', '.join(G1_NAMES)}")
        lines.append([f"{_READINGS[name]} / literal", ", ".join(each.measured.split()), each.verdict])
    return table([f"regret on {', '.join(G1_NAMES)}", "measured on G1", "larger with correlation"], lines)


def _censored() -> Iterator[str]:
    """The paper's table of censored shares."""
    lines = []
    for at in G1_NAMES:
        rcucb, ts, ucb, oracle = (f"{x:.4f}" for x in PUBLISHED[at])
        lines.append([at, "published", rcucb, "", "", "", ucb, "", ts, "", oracle])
        shares = (found("rcucb", f"table {at}: censored share {name}").measured for name in _READINGS)
        measured = found("rcucb", f"table {at}: oracle 1 − P(τ*)").measured
        lines.append(["", "measured", *(f"{float(x):.4f}" for x in shares), measured])
    assert list(ORACLE_PROBIT) == list(G1_NAMES)
    return table(["", "", *_READINGS.values(), "oracle"], lines)


def _forests() -> Iterator[str]:
    """Figure 5: share of rounds over the limit, and cumulative gain."""
    lines = []
    for name in ("RCUCB legal", "RCUCB Kaplan-Meier", *_BASELINES):
        share, gain = (found("rcucb", f"Fig. 5 {what} {name}") for what in ("share over the limit", "cumulative gain"))
        lines.append([_READINGS[name], share.published, cell(share, digits=".4f"), share.verdict, cell(gain)])
    head = ["", "share over the limit: published", "measured", "verdict on the number", "cumulative gain"]
    return table(head, lines)


def _legal() -> Iterator[str]:
    """What the legal readings cost: paired differences of regret."""
    rows = {
        "legal − literal": "regret legal − literal",
        "infinite − literal": "regret infinite − literal",
        "Kaplan–Meier − literal": "Kaplan-Meier (ours) beats literal",
        "Kaplan–Meier − legal": "Kaplan-Meier (ours) beats legal",
    }

    def one(at: str, item: str) -> str:
        each = found("rcucb", f"{at}: {item}")
        value = float(each.measured.removeprefix("difference "))
        return f"{value:+,.0f} ± {float(each.standard_error):,.0f}".replace("-", "−")

    return table(["", *G1_NAMES], ([said, *(one(at, item) for at in G1_NAMES)] for said, item in rows.items()))


def _theorem1() -> Iterator[str]:
    """Regret beside its bound, and what the worst pair would lose."""
    lines = []
    for at in G1_NAMES:
        each = found("rcucb", f"Theorem 1, {at}: regret of RCUCB literal")
        (worst,) = re.findall(r"loses ([\d.e+]+)", each.note)
        bound = float(each.published.removeprefix("≤ "))
        lines.append([at, cell(each), f"{bound:,.0f}", f"{float(worst):,.0f}", each.verdict])
    return table(["", "regret of `literal`", "bound", "worst pair in every round", "verdict"], lines)


def _zoom() -> Iterator[str]:
    """Simple regret of z-RCUCB by T."""
    lines = (
        [f"{t:,}", *(cell(found("rcucb", f"z-RCUCB legal, {at}: simple regret at T = {t}"), ".3f") for at in G1_NAMES)]
        for t in (1_000, 3_000, 10_000, 30_000, 100_000)
    )
    return table(["T", *G1_NAMES], lines)


def _sizes(what: str) -> Iterator[str]:
    """Regret by the number of limits or of arms."""
    names = {n: _READINGS[n] for n in ("RCUCB literal", "RCUCB legal", "UCB width 1+λ", "UCB width 1")}
    counts = (5, 10, 20, 40)
    lines = (
        [at, said, *(cell(found("rcucb", f"{n} {what}, {at}: regret {name}")) for n in counts)]
        for at in G1_NAMES
        for name, said in names.items()
    )
    return table([f"number of {what}", "", *map(str, counts)], lines)


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "rcucb, figure 4": _regret,
    "rcucb, below": _below,
    "rcucb, gap": _gap,
    "rcucb, censored": _censored,
    "rcucb, figure 5": _forests,
    "rcucb, legal": _legal,
    "rcucb, theorem 1": _theorem1,
    "rcucb, zoom": _zoom,
    "rcucb, limits": functools.partial(_sizes, "limits"),
    "rcucb, arms": functools.partial(_sizes, "arms"),
}
