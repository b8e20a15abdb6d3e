"""A result, or a comparison, as a notebook shows it: one small table."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np

from jaxbandits.core.protocol import Status

if TYPE_CHECKING:
    from jaxbandits.comparison.comparison import Comparison
    from jaxbandits.result import Result

_MOST_ROWS = 30


def result_html(result: Result) -> str:
    """Each setting with its mean regret, reward and rounds at the end, and how its lanes ended."""
    sizes = result.ledger["rounds"].shape
    said = f"{sizes[1]:,} instances × {sizes[2]:,} replicates, {sizes[3]} marks"
    last = {name: getattr(result, name).values[..., -1] for name in ("regret", "reward", "rounds")}
    rows = ["<tr><th>setting</th><th>regret</th><th>reward</th><th>rounds</th><th>ended</th></tr>"]
    for row, name in enumerate(result.settings[:_MOST_ROWS]):
        ended = result.ended[row]
        ends = ", ".join(f"{int((ended == x).sum())} {x.name.lower()}" for x in Status if (ended == x).any())
        numbers = "".join(f"<td>{np.mean(last[x][row]):,.4g}</td>" for x in last)
        rows.append(f"<tr><td>{html.escape(name)}</td>{numbers}<td>{ends}</td></tr>")
    more = len(result.settings) - _MOST_ROWS
    rest = f"<p>… {more} more settings</p>" if more > 0 else ""
    return f"<p><b>Result</b>: {said}; means at the end</p><table>{''.join(rows)}</table>{rest}"


def comparison_html(comparison: Comparison) -> str:
    """The ranking over all instances: mean reward, regret, and the difference to the best setting, with intervals."""
    unit = html.escape(comparison.plan.table.reward_unit)
    rows = [f"<tr><th></th><th>setting</th><th>{unit}</th><th>regret</th><th>against the best, paired</th></tr>"]
    for row in comparison.ranking()[:_MOST_ROWS]:
        cells = [f"{row[x]:,.4g} ({row[f'{x}_low']:,.4g} to {row[f'{x}_high']:,.4g})" for x in ("reward", "regret")]
        against = f"{row['difference']:+,.3g}{', clear' if row['difference_clear'] else ''}" if row["rank"] > 1 else ""
        cells = [str(row["rank"]), html.escape(row["setting"]), *cells, against]
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    return f"<p><b>{html.escape(repr(comparison))}</b></p><table>{''.join(rows)}</table>"
