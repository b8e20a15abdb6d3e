"""What the user is told about a file that was read: which columns, what was summed, which arms are kept out."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np

from jaxbandits.comparison._reading.building import NOT_KNOWN
from jaxbandits.comparison._reading.numbers import is_nothing, is_number
from jaxbandits.comparison._reading.rows import Rows
from jaxbandits.comparison._reading.sheet import Sheet
from jaxbandits.comparison._reading.words import rank_of, ranks, title
from jaxbandits.comparison.arms_table import Instance, KeptOut
from jaxbandits.core.errors import shown
from jaxbandits.core.printable import brief

_MOST_NAMED = 5


def of_columns(sheet: Sheet) -> tuple[str, ...]:
    """Which column was taken for what, what else could have been meant, and what is not used."""
    columns, notes = sheet.columns, tuple[str, ...]()
    numeric = {role: at for role, at in columns.numeric().items() if role in columns.at}
    at = {**{role: columns.at[role] for role in ("instance", "name", "time") if role in columns.at}, **numeric}
    seen = {word for rank in ranks()["clicks"][-2:] for word in rank}  # of views and impressions every export has some
    if not columns.plain:
        notes += (f"columns: {', '.join(f'{role} = {shown(sheet.titles[i])}' for role, i in at.items())}",)
    for role, others in columns.others.items():
        others = tuple(i for i in others if title(sheet.titles[i]).key not in seen)
        if role == "name" or not others:
            continue
        other = sheet.titles[others[0]]
        option = f"--columns {shlex.quote(f'{role}={other}')}"
        if role in ("conversions", "reward") and {title(other).key, *title(other).others} & rank_of()["value"].keys():
            option = f"--reward {shlex.quote(other)}"
        notes += (f"{role} is {shown(sheet.titles[at[role]])}; {brief(option, 80)} would take that column instead",)
    if columns.kind == "log" and not columns.plain and "clicks" not in columns.at:
        notes += ("no column counts pulls (clicks, sessions, …): every row is one pull",)
    unused = [text for i, text in enumerate(sheet.titles) if text and i not in columns.used()]
    return (*notes, f"columns not used: {shown(', '.join(unused))}") if unused else notes


def of_arms(
    rows: Rows, found: Sequence[Instance], out: Sequence[KeptOut], prior: float, reward_max: float | None
) -> tuple[str, ...]:
    """Sums, gaps, arms that are kept out, the prior, a bound of the rewards that was set."""
    kind, notes, names = rows.columns.kind, tuple[str, ...](), set(zip(rows.instance, rows.arm, strict=True))
    if kind == "counts" and len(names) < len(rows.line):
        notes += (f"{len(rows.line):,} rows summed to {len(names):,} arms",)
    gaps = int((np.isnan(rows.value) | np.isnan(rows.spent)).sum()) if kind == "log" else 0
    if gaps:
        notes += (f"{gaps:,} {'row is a gap' if gaps == 1 else 'rows are gaps'}: without reward or cost",)
    for why in dict.fromkeys(arm.reason for arm in out):
        arms = [f"{shown(arm.arm)} (line {arm.line})" for arm in out if arm.reason == why]
        more = f" and {len(arms) - _MOST_NAMED:,} more" if len(arms) > _MOST_NAMED else ""
        remedy = "; --prior 10 keeps such" if kind == "counts" and not prior and why != NOT_KNOWN else ""
        notes += (f"kept out, {why}: {', '.join(arms[:_MOST_NAMED])}{more}{remedy}",)
    if prior and kind == "counts":
        notes += (
            f"prior: as if every arm had had {prior:g} {rows.columns.pull_unit}s more, at its instance's average "
            "(where means are drawn, the other arms are their prior, and this one only keeps arms)",
        )
    bounds = sorted({instance.reward_bound for instance in found})
    if kind != "facebook" and reward_max is None and bounds and bounds[-1] > 1:
        notes += (f"rewards go above 1: their bound is {bounds[-1]:.6g} (--reward-max sets another)",)
    return notes


def reward_unit(sheet: Sheet, rows: Rows) -> str:
    """What rewards are counted in: the file's own word, where it is not in plain form."""
    columns = rows.columns
    if columns.kind == "counts" and (not columns.plain or columns.is_value):
        role = next((role for role in ("conversions", "reward") if role in columns.at), "")
        known = columns.at.get(role)
        if known is not None and title(sheet.titles[known]).key not in rank_of()["rate"]:
            return brief(sheet.titles[known], 40)
        return "value" if columns.is_value else "conversions"
    if columns.kind == "log" and not columns.plain:
        role = "reward" if "reward" in columns.at else "conversions"
        return brief(sheet.titles[columns.at[role]], 40)
    return "reward" if columns.kind in ("means", "log") else "conversions"


def other_names(sheet: Sheet) -> str:
    """For the message of a file whose names are all one: the column that may be meant instead."""
    used = set(sheet.columns.numeric().values()) | {
        sheet.columns.at[role] for role in ("name", "time") if role in sheet.columns.at
    }
    for i, text in enumerate(sheet.titles):
        cells = [cells[i] for _, cells in sheet.rows]
        if (
            i not in used
            and text
            and len(set(cells)) > 1
            and not any(is_number(cell) or is_nothing(cell) for cell in cells)
        ):
            return f" (--columns {shlex.quote(f'name={brief(text, 60)}')} has {len(set(cells)):,})"
    return ""
