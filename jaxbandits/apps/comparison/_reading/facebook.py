"""The public Facebook ads file: its ads that are arms, by the published rule; its defect repaired or not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from jaxbandits._tables import NumberStyle
from jaxbandits.apps.comparison._reading.numbers import plain_number
from jaxbandits.apps.comparison._reading.rows import Rows
from jaxbandits.apps.comparison._reading.sheet import Cells, Sheet
from jaxbandits.core.checks import InputError

_UNREADABLE = "with unreadable cells"


def facebook_rows(sheet: Sheet, repair: bool) -> Rows:
    """The ads that are arms, in file order, with a note on others; rules in `arms_file.read_arms`."""
    at, dropped, repaired = sheet.columns.at, Counter[str](), 0
    start, width = at["campaign_id"], at["age"] - at["campaign_id"]
    rows = [
        (*cells, "one more") if line in sheet.wide else cells
        for line, *cells in zip(sheet.line, *(of.every for of in sheet.cells), strict=True)
    ]
    ads = list[tuple[int, str, str, float, float, float]]()
    for i, (cells, campaign) in enumerate(zip(rows, _campaigns(rows, at), strict=True)):
        if _is_shifted(cells, at):
            if not repair or campaign is None:
                unknown = ", campaign unknown" if repair else ""
                dropped[f"shifted {width} columns left{unknown}"] += 1
                continue
            blank = [""] * (width - 1)
            cells = (*cells[:start], campaign, *blank, *cells[start : len(cells) - width])
            repaired += 1
        group = [cells[at[column]] for column in ("campaign_id", "age", "gender")]
        numbers = [plain_number(cells[at[x]]) for x in ("clicks", "total_conversion", "spent")]
        clicks, conversions, spent = numbers
        why = ""
        if clicks is None or conversions is None or spent is None or not all(group) or len(cells) > len(sheet.titles):
            why = _UNREADABLE
        elif spent == 0:
            why = "with nothing spent"
        elif clicks < conversions:
            why = "with more conversions than clicks"
        elif clicks == 0:
            why = "with spending but no clicks"
        else:
            name = (cells[at["ad_id"]] if "ad_id" in at else "") or f"line {sheet.line[i]}"
            ads.append((i, "/".join(group), name, clicks, conversions, spent))
        dropped[why] += 1
    del dropped[""]
    sizes = Counter(ad[1] for ad in ads)
    kept = [ad for ad in ads if sizes[ad[1]] > 1]
    dropped["alone in its group"] = len(ads) - len(kept)
    reasons = ", ".join(f"{count} {reason}" for reason, count in dropped.items() if count)
    how, why = f" (moved {width} columns right)" * bool(repaired), f" ({reasons})" * bool(reasons)
    note = f"{len(rows)} rows read, {repaired} repaired{how}, {dropped.total()} dropped{why}, {len(kept)} arms kept"
    if not kept:
        raise InputError(f"{sheet.source}: no (campaign_id, age, gender) has two usable ads; {note}")
    sheet.changes.append(note)
    # The published rule makes every row an arm, also where one ad has several rows.
    times = Counter(ad[1:3] for ad in kept)
    names = [f"{ad[2]} (line {sheet.line[ad[0]]})" if times[ad[1:3]] > 1 else ad[2] for ad in kept]
    place, instance, _, *columns = zip(*kept, strict=True)
    pulls, value, money = (np.array(column, np.float64) for column in columns)
    own, arms, style = sheet.only(np.array(place)), Cells.of(names), NumberStyle()
    return Rows(own, sheet.columns, style, Cells.of(instance), arms, pulls, value, money)


def _is_shifted(cells: Sequence[str], at: Mapping[str, int]) -> bool:
    """Whether the age stands in the column of the campaign id, and as many cells are blank behind."""
    width = at["age"] - at["campaign_id"]
    if width < 1 or any(cells[-width:]):
        return False
    return re.fullmatch(r"\d+\s*-\s*\d+|\d+\+", cells[at["campaign_id"]]) is not None


def _campaigns(rows: Sequence[Sequence[str]], at: Mapping[str, int]) -> list[str | None]:
    """Campaign of every row: its own, or the one above if shifted, unless the one below is another."""
    start = at["campaign_id"]
    own = [None if _is_shifted(cells, at) else cells[start] or None for cells in rows]

    def carried(ids: list[str | None]) -> list[str | None]:
        latest: str | None = None
        return [latest := latest if i is None else i for i in ids]

    above, below = carried(own), carried(own[::-1])[::-1]
    return [a if b in (None, a) else None for a, b in zip(above, below, strict=True)]
