"""The public Facebook ads file: its rows that are arms, by the published rule; with its defect repaired or not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from jaxbandits._tables import NumberStyle
from jaxbandits.comparison._reading.numbers import plain_number
from jaxbandits.comparison._reading.rows import Rows
from jaxbandits.comparison._reading.sheet import Sheet
from jaxbandits.core.checks import InputError

_ZERO_REWARD_BECOMES = 0.01
_UNREADABLE = "with unreadable cells"


def facebook_rows(sheet: Sheet, repair: bool) -> Rows:
    """The ads that are arms, in file order, with a note on the others; rules in `arms_file.read_arms`."""
    at, dropped, repaired, ads = sheet.columns.at, Counter[str](), 0, list[tuple]()
    own = zip(sheet.line, zip(*sheet.cells, strict=True), strict=True)
    rows = [(*cells, "one more") if line in sheet.wide else cells for line, cells in own]
    start, width = at["campaign_id"], at["age"] - at["campaign_id"]
    for i, (cells, campaign) in enumerate(zip(rows, _campaigns(rows, at), strict=True)):
        if _is_shifted(cells, at):
            if not repair or campaign is None:
                dropped[f"shifted {width} columns left" + (", campaign unknown" if repair else "")] += 1
                continue
            cells = (*cells[:start], campaign, *[""] * (width - 1), *cells[start : len(cells) - width])
            repaired += 1
        group = [cells[at[column]] for column in ("campaign_id", "age", "gender")]
        numbers = [plain_number(cells[at[column]]) for column in ("clicks", "total_conversion", "spent")]
        if why := _unusable(numbers) if all(group) and len(cells) <= len(sheet.titles) else _UNREADABLE:
            dropped[why] += 1
            continue
        name = (cells[at["ad_id"]] if "ad_id" in at else "") or f"line {sheet.line[i]}"
        ads.append((i, "/".join(group), name, *numbers))
    sizes = Counter(ad[1] for ad in ads)
    kept = [ad for ad in ads if sizes[ad[1]] > 1]
    dropped["alone in its group"] = len(ads) - len(kept)
    reasons = ", ".join(f"{count} {reason}" for reason, count in dropped.items() if count)
    how = f" (moved {width} columns right)" if repaired else ""
    why = f" ({reasons})" if reasons else ""
    note = f"{len(rows)} rows read, {repaired} repaired{how}, {dropped.total()} dropped{why}, {len(kept)} arms kept"
    if not kept:
        raise InputError(f"{sheet.source}: no (campaign_id, age, gender) has two usable ads; {note}")
    sheet.report.changes.append(note)
    # the published rule makes every row an arm, also where one ad has several rows
    times = Counter(ad[1:3] for ad in kept)
    names = [f"{ad[2]} (line {sheet.line[ad[0]]})" if times[ad[1:3]] > 1 else ad[2] for ad in kept]
    place, instance, _, *found = (np.array(of) for of in zip(*kept, strict=True))
    clicks, value, spent = found
    means = np.where(value == 0, _ZERO_REWARD_BECOMES, value / clicks), spent / clicks
    arm, instance = np.array(names, object), instance.astype(object)
    return Rows(sheet.only(place), sheet.columns, NumberStyle(), instance, arm, clicks, value, spent, None, means)


def _unusable(numbers: Sequence[float | None]) -> str:
    """Why these clicks, conversions and costs make no arm, or the empty text."""
    clicks, conversions, spent = numbers
    if clicks is None or spent is None or conversions is None:
        return _UNREADABLE
    if spent == 0:
        return "with nothing spent"
    if clicks < conversions:
        return "with more conversions than clicks"
    return "with spending but no clicks" if clicks == 0 else ""


def _is_shifted(cells: Sequence[str], at: Mapping[str, int]) -> bool:
    """Whether the age stands in the column of the campaign id, and as many cells are blank at the end."""
    width = at["age"] - at["campaign_id"]
    if width < 1 or any(cells[-width:]):
        return False
    return re.fullmatch(r"\d+\s*-\s*\d+|\d+\+", cells[at["campaign_id"]]) is not None


def _campaigns(rows: Sequence[Sequence[str]], at: Mapping[str, int]) -> list[str | None]:
    """Campaign of every row: its own, or the one above if shifted, unless the one below is another."""
    own = [None if _is_shifted(cells, at) else cells[at["campaign_id"]] or None for cells in rows]

    def carried(ids: list[str | None]) -> list[str | None]:
        latest: str | None = None
        return [latest := latest if i is None else i for i in ids]

    above, below = carried(own), carried(own[::-1])[::-1]
    return [a if b in (None, a) else None for a, b in zip(above, below, strict=True)]
