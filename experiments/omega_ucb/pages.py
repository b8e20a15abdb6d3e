"""Tables of docs/reproductions/omega_ucb.md."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping

from experiments.common.pages import cell, found, table

_OMEGA = ("ω-UCB, ρ = 1/4", "ω-UCB, ρ = 1")
_STAR = ("ω*-UCB, ρ = 1/4", "ω*-UCB, ρ = 1")
_OTHERS = ("BTS", "m-UCB", "c-UCB", "i-UCB", "b-greedy", "Budget-UCB", "UCB-SC+")
_SIZES = (10, 50, 100)


def _regret(settings: Mapping[str, str], star: bool = True) -> Iterator[str]:
    """Regret at B of every policy; ``settings`` with the item that played each."""
    return table(
        ["", *settings],
        (
            [
                _shown(name),
                *(cell(found("omega_ucb", f"{by}: {x}: regret of {name} at B")) for x, by in settings.items()),
            ]
            for name in (*_OMEGA, *(_STAR if star else ()), *_OTHERS)
        ),
    )


def _shown(name: str) -> str:
    return name.replace("*", "\\*").replace("1/4", "¼")


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "omega_ucb, S-Br": functools.partial(_regret, {f"S-Br-{k}": "figure3a" for k in _SIZES}, star=False),
    "omega_ucb, S-GBr": functools.partial(_regret, {f"S-GBr-{k}": "figure3b" for k in _SIZES}),
    "omega_ucb, S-Bt": functools.partial(_regret, {f"S-Bt-{k}": "figure3c" for k in _SIZES}),
    "omega_ucb, ads": functools.partial(_regret, {"FB-Br": "figure3d", "FB-Bt": "figure3e"}),
}
