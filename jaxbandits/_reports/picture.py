"""A figure that a notebook shows by itself. It is imported when the first one is drawn, as matplotlib is."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


class Picture(Figure):
    """A figure of no window: the last line of a cell shows it, whether or not pyplot was ever imported.

    Args:
        options: as :class:`matplotlib.figure.Figure` takes them.

    Example:
        >>> Picture(figsize=(2, 1))._repr_png_()[1:4]
        b'PNG'
    """

    def __init__(self, **options: Any):
        super().__init__(**options)
        FigureCanvasAgg(self)

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=100)
        return file.getvalue()
