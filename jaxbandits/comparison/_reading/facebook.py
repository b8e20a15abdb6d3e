"""The public Facebook ads file: its rows that are arms, by the published rule; with its defect repaired or not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jaxbandits.comparison._reading.numbers import plain_number
from jaxbandits.comparison._reading.rows import Rows
from jaxbandits.comparison._reading.sheet import Sheet
from jaxbandits.comparison.arms_table import NumberStyle
from jaxbandits.core.checks import InputError

_ZERO_REWARD_BECOMES = 0.01
_UNREADABLE = "with unreadable cells"


@dataclass(frozen=True)
class _Ad:
    """A row that became an arm: its position in the file, and its numbers."""

    row: int
    instance: str
    arm: str
    clicks: float
    conversions: float
    spent: float


def facebook_rows(sheet: Sheet, repair: bool) -> tuple[Rows, tuple[str, ...]]:
    """The ads that are arms, in file order, and a note on the others; rules in `arms_file.read_arms`.

    Raises:
        InputError: no ad is left.
    """
    ads, notes = _ads(sheet, sheet.columns.at, repair)
    clicks, value, spent = (np.array([getattr(ad, x) for ad in ads]) for x in ("clicks", "conversions", "spent"))
    means = np.where(value == 0, _ZERO_REWARD_BECOMES, value / clicks), spent / clicks
    # the published rule makes every row an arm, also where one ad has several rows
    times = Counter((ad.instance, ad.arm) for ad in ads)
    names = [f"{ad.arm} (line {sheet.line[ad.row]})" if times[ad.instance, ad.arm] > 1 else ad.arm for ad in ads]
    own, instances = sheet.only([ad.row for ad in ads]), [ad.instance for ad in ads]
    return Rows(own, sheet.columns, NumberStyle(), instances, names, clicks, value, spent, None, means), notes


def _ads(sheet: Sheet, at: Mapping[str, int], repair: bool) -> tuple[list[_Ad], tuple[str, ...]]:
    dropped, ads, repaired = Counter[str](), list[_Ad](), 0
    own = zip(sheet.line, zip(*sheet.cells, strict=True), strict=True)
    rows = [(*cells, "one more") if line in sheet.wide else cells for line, cells in own]
    start, width = at["campaign_id"], at["age"] - at["campaign_id"]
    for i, (cells, campaign) in enumerate(zip(rows, _campaigns(rows, at), strict=True)):
        if _is_shifted(cells, at):
            if not repair or campaign is None:
                dropped[f"shifted {width} columns left" + (", campaign unknown" if repair else "")] += 1
                continue
            missing = (campaign, *[""] * (width - 1))
            cells = cells[:start] + missing + cells[start : len(cells) - width]
            repaired += 1
        group = [cells[at[column]] for column in ("campaign_id", "age", "gender")]
        numbers = [plain_number(cells[at[column]]) for column in ("clicks", "total_conversion", "spent")]
        if why := _unusable(numbers) if all(group) and len(cells) <= len(sheet.titles) else _UNREADABLE:
            dropped[why] += 1
            continue
        name = cells[at["ad_id"]] if "ad_id" in at else ""
        ads.append(_Ad(i, "/".join(group), name or f"line {sheet.line[i]}", *(x or 0.0 for x in numbers)))
    sizes = Counter(ad.instance for ad in ads)
    kept = [ad for ad in ads if sizes[ad.instance] > 1]
    dropped["alone in its group"] = len(ads) - len(kept)
    reasons = ", ".join(f"{count} {reason}" for reason, count in dropped.items() if count)
    how = f" (moved {width} columns right)" if repaired else ""
    why = f" ({reasons})" if reasons else ""
    note = f"{len(rows)} rows read, {repaired} repaired{how}, {dropped.total()} dropped{why}, {len(kept)} arms kept"
    if not kept:
        raise InputError(f"{sheet.source}: no (campaign_id, age, gender) has two usable ads; {note}")
    return kept, (note,)


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
