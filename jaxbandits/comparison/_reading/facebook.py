"""The public Facebook ads file: its rows that are arms, by the published rule; with its defect repaired or not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxbandits.comparison._reading.numbers import plain_number
from jaxbandits.comparison._reading.rows import Rows
from jaxbandits.comparison._reading.sheet import Sheet
from jaxbandits.comparison.evidence import NumberStyle
from jaxbandits.core.errors import InputError

_ZERO_REWARD_BECOMES = 0.01


@dataclass(frozen=True)
class _Ad:
    """A row that became an arm: reward and cost per click, and (clicks, conversions, spent)."""

    line: int
    instance: str
    arm: str
    reward: float
    cost: float
    totals: tuple[float, float, float]


def facebook_rows(sheet: Sheet, repair: bool) -> tuple[Rows, tuple[str, ...]]:
    """The ads that are arms, in file order, and a note on the others; rules in `arms_file.read_arms`.

    Raises:
        InputError: no ad is left.
    """
    ads, notes = _ads(sheet, dict(sheet.columns.at), repair)
    clicks, value, spent = (np.array([ad.totals[i] for ad in ads]) for i in range(3))
    means = np.array([ad.reward for ad in ads]), np.array([ad.cost for ad in ads])
    line, instance, arm = [ad.line for ad in ads], [ad.instance for ad in ads], [ad.arm for ad in ads]
    style = NumberStyle()
    return Rows(
        sheet.source, sheet.columns, style, line, instance, arm, clicks, value, spent, {}, {}, None, means
    ), notes


def _ads(sheet: Sheet, at: dict[str, int], repair: bool) -> tuple[list[_Ad], tuple[str, ...]]:
    dropped: Counter[str] = Counter()
    repaired = 0
    ads: list[_Ad] = []
    campaigns = _campaigns(sheet, at)
    start, width = at["campaign_id"], at["age"] - at["campaign_id"]
    for (line, cells), campaign in zip(sheet.rows, campaigns, strict=True):
        if _is_shifted(cells, at):
            if not repair or campaign is None:
                dropped[f"shifted {width} columns left" + (", campaign unknown" if repair else "")] += 1
                continue
            missing = (campaign, *[""] * (width - 1))
            cells = cells[:start] + missing + cells[start : len(cells) - width]
            repaired += 1
        ad = _facebook_ad(line, cells, at, len(sheet.titles))
        if isinstance(ad, str):
            dropped[ad] += 1
        else:
            ads.append(ad)
    sizes = Counter(ad.instance for ad in ads)
    kept = [ad for ad in ads if sizes[ad.instance] > 1]
    dropped["alone in its group"] = len(ads) - len(kept)
    reasons = ", ".join(f"{count} {reason}" for reason, count in dropped.items() if count)
    how = f" (moved {width} columns right)" if repaired else ""
    why = f" ({reasons})" if reasons else ""
    note = (
        f"{len(sheet.rows)} rows read, {repaired} repaired{how}, {dropped.total()} dropped{why}, {len(kept)} arms kept"
    )
    if not kept:
        raise InputError(f"{sheet.source}: no (campaign_id, age, gender) has two usable ads; {note}")
    return _with_distinct_names(kept), (note,)


def _is_shifted(cells: Sequence[str], at: dict[str, int]) -> bool:
    """Whether the age stands in the column of the campaign id, and as many cells are blank at the end."""
    width = at["age"] - at["campaign_id"]
    if width < 1 or any(cells[-width:]):
        return False
    return re.fullmatch(r"\d+\s*-\s*\d+|\d+\+", cells[at["campaign_id"]]) is not None


def _campaigns(sheet: Sheet, at: dict[str, int]) -> list[str | None]:
    """Campaign of every row: its own, or the one above if shifted, unless the one below is another."""
    own = [None if _is_shifted(cells, at) else cells[at["campaign_id"]] or None for _, cells in sheet.rows]

    def carried(ids: list[str | None]) -> list[str | None]:
        latest: str | None = None
        return [latest := latest if i is None else i for i in ids]

    above, below = carried(own), carried(own[::-1])[::-1]
    return [a if b in (None, a) else None for a, b in zip(above, below, strict=True)]


def _facebook_ad(line: int, cells: Sequence[str], at: dict[str, int], width: int) -> _Ad | str:
    """The arm of one row, or the reason to drop it."""
    group = [cells[at[column]] for column in ("campaign_id", "age", "gender")]
    numbers = [plain_number(cells[at[column]]) for column in ("clicks", "spent", "total_conversion")]
    clicks, spent, conversions = numbers
    if clicks is None or spent is None or conversions is None or not all(group) or len(cells) > width:
        return "with unreadable cells"
    if spent == 0:
        return "with nothing spent"
    if clicks < conversions:
        return "with more conversions than clicks"
    if clicks == 0:
        return "with spending but no clicks"
    name = cells[at["ad_id"]] if "ad_id" in at else ""
    return _Ad(
        line,
        "/".join(group),
        name or f"line {line}",
        conversions / clicks or _ZERO_REWARD_BECOMES,
        spent / clicks,
        (clicks, conversions, spent),
    )


def _with_distinct_names(ads: list[_Ad]) -> list[_Ad]:
    # the published rule makes every row an arm, also where one ad has several rows
    times = Counter((ad.instance, ad.arm) for ad in ads)
    return [
        ad
        if times[ad.instance, ad.arm] == 1
        else _Ad(ad.line, ad.instance, f"{ad.arm} (line {ad.line})", ad.reward, ad.cost, ad.totals)
        for ad in ads
    ]
