"""Colours, markers and dashes of all pictures: curves can be told apart with any colour vision, and in grey."""

from __future__ import annotations

from typing import Any

# Okabe and Ito's palette; yellow is left out, it is too pale for lines.
BLUE, VERMILION, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, GREY = "#E69F00", "#56B4E9", "#000000", "#777777"
COLOURS = (BLUE, VERMILION, GREEN, PINK, ORANGE, SKY, BLACK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def nth_look(number: int) -> tuple[str, str, Any]:
    """Colour, marker and dashes of a picture's n-th curve, n from 0.

    Example:
        >>> nth_look(0), nth_look(8)[:2]
        (('#0072B2', 'o', '-'), ('#D55E00', 'o'))
    """
    return COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)], DASHES[number % len(DASHES)]
