"""One look per policy in all experiments."""

from __future__ import annotations

from typing import Any

from jaxbandits._reports.palette import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, SKY, VERMILION

# One look per policy in all experiments: colour, marker, dashes.
LOOKS: dict[str, tuple[str, str, Any]] = {
    "SUAK": (BLUE, "o", "-"),
    "OPS, a = 3": (VERMILION, "s", "-"),
    "OPS, a = 2.4": (ORANGE, "D", "--"),
    "OPS, a = 2": (PINK, "v", ":"),
    "PDS": (BLACK, "X", "-."),
    "USS, λ = 9": (GREEN, "^", "-"),
    "USS, λ = 5": (SKY, "P", "--"),
    "pacer": (PINK, "*", "-"),
    "fluid oracle": (GREY, "d", "--"),
    "ω-UCB, ρ = 1/4": (BLUE, "o", "-"),
    "ω-UCB, ρ = 1": (BLUE, "^", "--"),
    "ω*-UCB, ρ = 1/4": (SKY, "s", "-"),
    "ω*-UCB, ρ = 1": (SKY, "v", "--"),
    "BTS": (VERMILION, "D", "-"),
    "m-UCB": (GREEN, "P", "-"),
    "c-UCB": (ORANGE, "X", "-"),
    "i-UCB": (PINK, "*", "-"),
    "b-greedy": (BLACK, "d", ":"),
    "Budget-UCB": (GREY, "<", "--"),
    "UCB-SC+": (GREY, ">", "-."),
    "RCB-I": (BLUE, "o", "-"),
    "RCB-AIR": (VERMILION, "s", "-"),
    "ω-UCB, K arms": (GREEN, "^", "--"),
    "ω-UCB, increasing": (ORANGE, "D", "--"),
    "RCB": (BLUE, "o", "-"),
    "UCB-V (reward)": (PINK, "s", "-"),
    "UCB-V (ratio)": (ORANGE, "D", "-"),
    "ω-UCB": (GREEN, "^", "--"),
    "ω*-UCB": (SKY, "v", "--"),
}
_SPARE = [(c, m, d) for d in ("-", "--") for c, m in zip((BLUE, VERMILION, GREEN, PINK, ORANGE), "osv^D", strict=True)]


def look(name: str) -> dict[str, Any]:
    """Colour, marker and dashes of a policy's curve."""
    colour, marker, dashes = LOOKS.get(name) or _SPARE[sum(map(ord, name)) % len(_SPARE)]
    return {"color": colour, "marker": marker, "linestyle": dashes, "markersize": 4.5, "linewidth": 1.5}
