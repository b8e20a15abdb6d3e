"""The public Facebook ads file: its rows that are arms, by the published rule; with its defect repaired or not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from jaxbandits.comparison._reading.numbers import plain_number
from jaxbandits.comparison._reading.rows import Rows
from jaxbandits.comparison._reading.sheet import Sheet
from jaxbandits.comparison.arms_table import NumberStyle
from jaxbandits.core.checks import InputError

_ZERO_REWARD_BECOMES = 0.01
_UNREADABLE = "with unreadable cells"


def facebook_rows(sheet: Sheet, repair: bool) -> tuple[Rows, str]:
    """The ads that are arms, in file order, and a note on the others; rules in `arms_file.read_arms`."""
    at, dropped, repaired = sheet.columns.at, Counter[str](), 0
    own = zip(sheet.line, zip(*sheet.cells, strict=True), strict=True)
    rows = [(*cells, "one more") if line in sheet.wide else cells for line, cells in own]
    start, width = at["campaign_id"], at["age"] - at["campaign_id"]
    place, instances, names, numbers = list[int](), list[str](), list[str](), list[list[float]]()
    for i, (cells, campaign) in enumerate(zip(rows, _campaigns(rows, at), strict=True)):
        if _is_shifted(cells, at):
            if not repair or campaign is None:
                dropped[f"shifted {width} columns left" + (", campaign unknown" if repair else "")] += 1
                continue
            cells = (*cells[:start], campaign, *[""] * (width - 1), *cells[start : len(cells) - width])
            repaired += 1
        group = [cells[at[column]] for column in ("campaign_id", "age", "gender")]
        found = [plain_number(cells[at[column]]) for column in ("clicks", "total_conversion", "spent")]
        if why := _unusable(found) if all(group) and len(cells) <= len(sheet.titles) else _UNREADABLE:
            dropped[why] += 1
            continue
        place.append(i)
        instances.append("/".join(group))
        names.append((cells[at["ad_id"]] if "ad_id" in at else "") or f"line {sheet.line[i]}")
        numbers.append([x or 0.0 for x in found])
    sizes = Counter(instances)
    kept = np.array([i for i, name in enumerate(instances) if sizes[name] > 1], np.int64)
    dropped["alone in its group"] = len(instances) - len(kept)
    reasons = ", ".join(f"{count} {reason}" for reason, count in dropped.items() if count)
    how = f" (moved {width} columns right)" if repaired else ""
    why = f" ({reasons})" if reasons else ""
    note = f"{len(rows)} rows read, {repaired} repaired{how}, {dropped.total()} dropped{why}, {len(kept)} arms kept"
    if not kept.size:
        raise InputError(f"{sheet.source}: no (campaign_id, age, gender) has two usable ads; {note}")
    clicks, value, spent = np.array(numbers)[kept].T
    means = np.where(value == 0, _ZERO_REWARD_BECOMES, value / clicks), spent / clicks
    instance, arm, at_row = np.array(instances, object)[kept], np.array(names, object)[kept], np.array(place)[kept]
    # the published rule makes every row an arm, also where one ad has several rows
    times = Counter(zip(instance, arm, strict=True))
    line = sheet.line[at_row]
    for i in (i for i, key in enumerate(zip(instance, list(arm), strict=True)) if times[key] > 1):
        arm[i] = f"{arm[i]} (line {line[i]})"
    return Rows(
        sheet.only(at_row), sheet.columns, NumberStyle(), instance, arm, clicks, value, spent, None, means
    ), note


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
