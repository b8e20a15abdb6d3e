"""Pictures of results. Matplotlib is imported when the first one is drawn, and only through its objects (no pyplot)."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from jaxbandits._reports.palette import nth_look

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Bands = Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]


def curves(
    x: np.ndarray,
    bands: Bands,
    *,
    title: str,
    across: str,
    up: str,
    form: str = "png",
    narrow: bool = False,
) -> bytes:
    """Curves that start in the origin, with bands around them, as the bytes of a picture file.

    Every curve has its own colour, marker and dashes, so that it can be told apart in grey too.

    Args:
        x: where the curves were measured, ``[mark]``.
        bands: for each curve's label its (mean, low, high), ``[mark]`` each; NaN bounds draw no band.
        title: over the picture.
        across: what runs along x, with its unit.
        up: what runs along y, with its unit.
        form: "png", "pdf" or "svg".
        narrow: half as wide, the legend below, for a phone.

    Example:
        >>> import numpy as np
        >>> y = np.array([1.0, 2.0])
        >>> curves(y, {"omega_ucb": (y, y - 0.1, y + 0.1)}, title="", across="spent", up="regret")[1:4]
        b'PNG'
    """
    file = io.BytesIO()
    drawn(x, bands, title=title, across=across, up=up, narrow=narrow).savefig(file, format=form, dpi=150)
    return file.getvalue()


def drawn(x: np.ndarray, bands: Bands, *, title: str, across: str, up: str, narrow: bool = False) -> Figure:
    """The figure of :func:`curves`, to be changed before it is saved."""
    from jaxbandits._reports.picture import Picture

    figure = Picture(figsize=(4.2, 4.6) if narrow else (8, 4.8), layout="constrained")
    axes = figure.add_subplot()
    x = np.concatenate([[0.0], x])
    apart = max(1, (x.size - 1) // 8)
    for number, (name, parts) in enumerate(bands.items()):
        mean, low, high = (np.concatenate([[0.0], part]) for part in parts)
        colour, marker, dashes = nth_look(number)
        axes.plot(
            x,
            mean,
            color=colour,
            linestyle=dashes,
            linewidth=1.8,
            marker=marker,
            markersize=5,
            # markers of several curves side by side rather than one over the other
            markevery=(min(x.size - 1, 1 + number * apart // max(1, len(bands))), apart),
            label=_without_mathtext(name),
        )
        if np.isfinite(low).all() and np.isfinite(high).all():
            axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.set_title(_without_mathtext(title), fontsize=10)
    axes.set_xlabel(_without_mathtext(across))
    axes.set_ylabel(_without_mathtext(up))
    axes.set_xlim(0, x[-1] * 1.01)
    least = min(np.nanmin(np.concatenate(parts[:2])) for parts in bands.values())  # bands may be missing
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]) if least < 0 else 0.0)
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    order = sorted(range(len(bands)), key=lambda i: -float(list(bands.values())[i][0][-1]))
    lines = axes.get_lines()
    columns = 1 if len(bands) <= 20 else 2
    figure.legend(
        [lines[i] for i in order],  # from top to bottom as the curves end
        [_short(str(lines[i].get_label()), 36 if narrow else 60) for i in order],
        loc="outside lower left" if narrow else "outside right upper",
        frameon=False,
        fontsize=9 if len(bands) <= 12 else 7,
        ncols=columns,
        handlelength=3.5,
    )
    return figure


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _without_mathtext(text: str) -> str:
    return text.replace("$", r"\$")
