"""The public Facebook ads file: its ads that are arms, by the published rule; its defect repaired
or not.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from jaxbandits._tables import NumberStyle
from jaxbandits.apps.comparison._reading.numbers import plain_number
from jaxbandits.apps.comparison._reading.rows import ArmRows
from jaxbandits.apps.comparison._reading.sheet import Column, Sheet
from jaxbandits.core.checks import InputError

_AGE = re.compile(r"\d+\s*-\s*\d+|\d+\+")


def facebook_rows(sheet: Sheet, repair: bool) -> ArmRows:
    """The ads that are arms, in file order, with a note on others; rules in `arms_file.read_arms`."""
    at, dropped, repaired = sheet.columns.at, Counter[str](), 0
    start, width = at["campaign_id"], at["age"] - at["campaign_id"]
    rows = [
        (*cells, "one more") if line in sheet.wide else cells
        for line, *cells in zip(sheet.line, *(column.every for column in sheet.cells), strict=True)
    ]
    # Shifted: the age stands in the column of the campaign id, and as many cells are blank behind.
    shifted = [
        width > 0 and not any(cells[-width:]) and _AGE.fullmatch(cells[start]) for cells in rows
    ]
    # Such a row has the campaign above, unless the one below is another.
    above = [None if x else cells[start] or None for x, cells in zip(shifted, rows, strict=True)]
    below = above[:]
    for i in range(1, len(rows)):
        above[i] = above[i] or above[i - 1]
        below[-1 - i] = below[-1 - i] or below[-i]
    ads = list[tuple[int, str, str, float, float, float]]()
    for i, cells in enumerate(rows):
        campaign = above[i] if below[i] in (None, above[i]) else None
        if shifted[i] and (not repair or campaign is None):
            dropped[f"shifted {width} columns left{', campaign unknown' * repair}"] += 1
            continue
        if shifted[i]:
            blank = [""] * (width - 1)
            cells = (*cells[:start], campaign, *blank, *cells[start : len(cells) - width])
            repaired += 1
        group = [cells[at[column]] for column in ("campaign_id", "age", "gender")]
        numbers = [plain_number(cells[at[x]]) for x in ("clicks", "total_conversion", "spent")]
        if None in numbers or not all(group) or len(cells) > len(sheet.titles):
            dropped["with unreadable cells"] += 1
            continue
        pulls, conversions, money = (float(x or 0) for x in numbers)
        reason = (
            "with nothing spent" * (money == 0)
            or "with more conversions than clicks" * (pulls < conversions)
            or "with spending but no clicks" * (pulls == 0)
        )
        dropped[reason] += 1
        if not reason:
            name = (cells[at["ad_id"]] if "ad_id" in at else "") or f"line {sheet.line[i]}"
            ads.append((i, "/".join(group), name, pulls, conversions, money))
    del dropped[""]
    sizes = Counter(ad[1] for ad in ads)
    arms = [ad for ad in ads if sizes[ad[1]] > 1]
    dropped["alone in its group"] = len(ads) - len(arms)
    reasons = ", ".join(f"{count} {reason}" for reason, count in dropped.items() if count)
    moves = f" (moved {width} columns right)" * bool(repaired)
    note = f"{len(rows)} rows read, {repaired} repaired{moves}, {dropped.total()} dropped"
    note += f"{f' ({reasons})' * bool(reasons)}, {len(arms)} arms kept"
    if not arms:
        raise InputError(
            f"{sheet.source}: no (campaign_id, age, gender) has two usable ads; {note}"
        )
    sheet.changes.append(note)
    # The published rule makes every row an arm, also where one ad has several rows.
    times = Counter(ad[1:3] for ad in arms)
    names = [f"{ad[2]} (line {sheet.line[ad[0]]})" if times[ad[1:3]] > 1 else ad[2] for ad in arms]
    place, instance, _, *columns = zip(*arms, strict=True)
    clicks, value, spent = (np.array(column, np.float64) for column in columns)
    arm_sheet, instances = sheet.only(np.array(place)), Column.of(instance)
    return ArmRows(
        arm_sheet, sheet.columns, NumberStyle(), instances, Column.of(names), clicks, value, spent
    )
