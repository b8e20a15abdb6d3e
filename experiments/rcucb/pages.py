"""Tables of docs/reproductions/rcucb.md."""

from __future__ import annotations

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


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "rcucb, figure 4": _regret,
    "rcucb, below": _below,
    "rcucb, gap": _gap,
    "rcucb, censored": _censored,
    "rcucb, figure 5": _forests,
}
