"""What ``jaxbandits compare --until`` says: which claims are clear, after how many runs, how many were saved."""

from __future__ import annotations

from typing import Any

from jaxbandits.comparison.comparison import Comparison
from jaxbandits.comparison.until import Clearness

ANY_TIME = "at 5 % over all looks, all pairs and both claims; the ± are those of a number of runs fixed beforehand"
_SAID = {"any": "in most runs or on average", "most runs": "in most runs", "average": "on average"}


def until_clear(comparison: Comparison) -> list[str]:
    """Why it stopped, runs played and saved, how many pairs are clear in which claim."""
    clear = comparison.clear
    if clear is None:
        return []
    plan = comparison.plan
    pairs = len(plan.settings) * (len(plan.settings) - 1) // 2
    which = "every pair is" if clear.until.what == "clear" else "one setting is ahead of all others,"
    said = _SAID[clear.until.claim]
    if clear.reached:
        first = (
            f"{which} clear ({said}) after {clear.runs:,} of at most {clear.until.max_runs:,} runs: "
            f"{clear.saved:,} saved, {clear.looks} looks"
        )
    else:
        first = f"not clear ({said}) after all {clear.runs:,} runs, {clear.looks} looks"
    counts = [f"{pairs - clear.open_pairs(claim)} of {pairs} pairs" for claim in ("most runs", "average")]
    unit = plan.table.reward_unit
    lines = [
        f"until {clear.until.what}: {first}",
        f"  who earns more in most runs is clear in {counts[0]}; on average in {counts[1]} (a run can earn "
        f"{clear.bound:,.4g} {unit}, of which a disaster not yet seen may lose all)",
    ]
    if clear.beyond:
        lines.append(f"  {clear.beyond} runs earned more than that; what is more was not counted on average")
    return lines


def clear_words(clear: Clearness | None, best: str, row: dict[str, Any]) -> str:
    """Of a setting against the first: ``less in most runs (clear after 50)``; empty where nothing was looked at."""
    if clear is None:
        return ""
    name, found = row["setting"], []
    for claim, part in zip(("in most runs", "on average"), clear.pairs, strict=True):
        less = int(part.sel(setting=best, against=name))
        more = int(part.sel(setting=name, against=best))
        for word, after in (("less", less), ("MORE", more)):
            if after:
                found.append(f"{word} {claim} (clear after {after:,})")
    return ", ".join(found) or "not clear"
