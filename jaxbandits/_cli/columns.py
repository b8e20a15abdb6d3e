"""Columns of text."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(cells: Sequence[Sequence[str]], left: Sequence[int]) -> list[str]:
    """Rows of cells as lines, two blanks between columns; the columns ``left`` are flush left, the others right.

    A row may end before its last columns.

    Example:
        >>> aligned([["a", "1"], ["bc", "23"]], left=(0,))
        ['a    1', 'bc  23']
    """
    widths = [max(len(row[column]) for row in cells if column < len(row)) for column in range(len(cells[0]))]
    return [
        "  ".join(
            text.ljust(width) if column in left else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=False))
        ).rstrip()
        for row in cells
    ]
