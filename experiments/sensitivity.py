"""Tables of docs/reproductions/sensitivity.md, of the ``sensitivity.csv`` that each sweep wrote."""

from __future__ import annotations

import csv
import functools
from collections.abc import Callable, Iterator

from experiments.common.pages import DOCS, table

Line = dict[str, str]


@functools.cache
def _lines(name: str) -> list[Line]:
    with (DOCS / "reproductions" / f"sensitivity_{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _values(name: str, parameter: str, environment: str, policy: str, budget: str = "") -> tuple[str, str]:
    """The best value, and what cannot be told from it."""
    lines = [x for x in _lines(name) if (x["environment"], x["policy"]) == (environment, policy)]
    lines = [x for x in lines if not budget or x["budget"] == budget]
    values = [float(x[parameter]) for x in lines]
    like = [i for i, x in enumerate(lines) if "yes" in (x["best"], x["indistinguishable"])]
    (best,) = (i for i, x in enumerate(lines) if x["best"] == "yes")
    text = f"{values[best]:.3g}" + (", edge of the grid" if best in (0, len(values) - 1) else "")
    if like[0] == like[-1]:
        return text, "no other"
    gaps = ", with gaps" if len(like) <= like[-1] - like[0] else ""
    return text, f"{values[like[0]]:.2g} to {values[like[-1]]:.2g}{gaps}"


def _side_by_side(name: str, parameter: str, policies: dict[str, str]) -> Iterator[str]:
    """A row for each environment, two columns for each policy."""
    environments = dict.fromkeys(x["environment"] for x in _lines(name))
    symbol = {"rho": "ρ", "alpha": "α"}[parameter]
    head = ["", *(f"{said}: {what}" for said in policies.values() for what in (f"best {symbol}", "indistinguishable"))]
    return table(head, ([at, *(x for p in policies for x in _values(name, parameter, at, p))] for at in environments))


def _alphas() -> Iterator[str]:
    """m-, c- and i-UCB: a row for each environment and budget."""
    cells = dict.fromkeys((x["environment"], x["budget"]) for x in _lines("alpha"))
    lines = (
        [f"{at}, {float(budget):,.0f}", *("{} ({})".format(*_values("alpha", "alpha", at, p, budget)) for p in _UCBS)]
        for at, budget in cells
    )
    return table(["", *_UCBS.values()], lines)


_UCBS = {"MUCB": "m-UCB", "CUCB": "c-UCB", "IUCB": "i-UCB"}
_OMEGAS = {"OmegaUCB": "ω-UCB", "OmegaStarUCB": "ω\\*-UCB"}
_SURVIVALS = {"RCUCB(survival=legal)": "legal", "RCUCB(survival=kaplan_meier)": "Kaplan–Meier"}

TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "sensitivity, figure 4": functools.partial(_side_by_side, "figure4", "rho", _OMEGAS),
    "sensitivity, censored": functools.partial(_side_by_side, "alpha_censored", "alpha", _SURVIVALS),
    "sensitivity, alpha": _alphas,
}
