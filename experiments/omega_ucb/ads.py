"""The public Facebook ads file: its ads that are arms, by the published rule.

An arm is a row with spent > 0 and clicks >= total_conversion, an instance a group of (campaign_id,
age, gender) with at least two arms. Its reward is total_conversion/clicks (0.01 where that is 0), its
cost spent/clicks, and its bounds are the largest mean / 0.99, which is the paper's mean / max * 0.99.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import numpy as np

from jaxbandits.apps.comparison import Evidence, Instance

_AGE = re.compile(r"\d+\s*-\s*\d+|\d+\+")
_ZERO_REWARD_BECOMES, _LARGEST_SCALED_MEAN = 0.01, 0.99


def read_ads(path: Path) -> tuple[tuple[Instance, ...], Counter[str]]:
    """The instances in file order, and how many rows were dropped for which reason.

    In the public file 382 rows lack campaign_id and fb_campaign_id, and all that follows them sits
    two columns to the left. They are dropped, as in the paper's code (19 instances, 545 arms).
    """
    with open(path, newline="", encoding="utf-8-sig") as file:
        titles, *rows = ([cell.strip() for cell in row] for row in csv.reader(file) if any(row))
    at = {title.removeprefix("xyz_"): n for n, title in enumerate(titles)}
    groups, dropped = dict[str, list[tuple[str, float, float, float]]](), Counter[str]()
    for row in rows:
        if _AGE.fullmatch(row[at["campaign_id"]]):
            dropped["shifted"] += 1
            continue
        clicks, conversions, spent = (
            float(row[at[x]]) for x in ("clicks", "total_conversion", "spent")
        )
        reason = (
            "nothing spent" * (spent == 0)
            or "more conversions than clicks" * (clicks < conversions)
            or "no clicks" * (clicks == 0)
        )
        dropped[reason] += 1
        if not reason:
            ad = row[at["ad_id"]], clicks, conversions, spent
            name = "/".join(row[at[x]] for x in ("campaign_id", "age", "gender"))
            groups.setdefault(name, []).append(ad)
    del dropped[""]
    dropped["alone in its group"] = sum(len(ads) == 1 for ads in groups.values())
    return tuple(_instance(name, ads) for name, ads in groups.items() if len(ads) > 1), dropped


def _instance(name: str, ads: list[tuple[str, float, float, float]]) -> Instance:
    names, *columns = zip(*ads, strict=True)
    clicks, conversions, spent = (np.array(x) for x in columns)
    reward, cost = np.where(conversions, conversions / clicks, _ZERO_REWARD_BECOMES), spent / clicks
    top, dearest = (float(x.max() / _LARGEST_SCALED_MEAN) for x in (reward, cost))
    evidence = Evidence("counts", clicks, conversions, spent, whole=True)
    return Instance(name, names, reward, cost, top, dearest, None, evidence)
