"""From the text of an arms file to one record per usable row; part of `jaxbandits.comparison.arms_file`."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import math
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from jaxbandits.comparison.arms_input import read_arms_bytes
from jaxbandits.comparison.problems import Problems
from jaxbandits.core.errors import InputError, bad, shown
from jaxbandits.core.printable import line as on_one_line

_ALIASES = {
    "name": ("arm",),
    "spent": ("spend", "cost"),
    "conversions": ("conversion", "total_conversion"),
    "campaign_id": ("xyz_campaign_id",),
}
_COLUMNS = {
    "means": ("name", "mean_reward", "mean_cost"),
    "counts": ("name", "clicks", "spent", "conversions"),
    "log": ("name", "reward", "cost"),
    "facebook": ("campaign_id", "age", "gender", "clicks", "spent", "total_conversion"),
}
_OPTIONAL = {"means": "instance", "counts": "instance", "log": "instance", "facebook": "ad_id"}
_ZERO_REWARD_BECOMES = 0.01
_SHOWN_OF_A_PATH = 160
_MOST_ROWS = 1_000_000


@dataclass(frozen=True)
class Sheet:
    """Cells of a CSV file, without the blanks around them and without blank lines.

    Attributes:
        source: the path on one line, for messages.
        header: titles in lower case.
        rows: for each further row its line number (1-based; the last line of a row that spans several) and
            its cells: as many as titles, more only if the surplus has content.
        sha256: of the bytes that were read.
    """

    source: str
    header: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]
    sha256: str


@dataclass(frozen=True)
class Record:
    """A row that became an arm or, in a log, a pull of an arm; reward and cost in the user's units.

    Attributes:
        totals: clicks, conversions and spent of the row; for a pull 1, reward and cost.
    """

    line: int
    instance: str
    arm: str
    reward: float
    cost: float
    totals: tuple[float, float, float]


def read_sheet(path: str | os.PathLike[str]) -> Sheet:
    """Read a CSV file with a header.

    Raises:
        InputError: the file cannot be read, is not CSV in UTF-8, or has no rows below a header.
    """
    content = read_arms_bytes(path)
    source = on_one_line(" ".join(str(path).split()))
    if len(source) > _SHOWN_OF_A_PATH:
        source = f"…{source[-_SHOWN_OF_A_PATH:]}"
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise bad("arms file", source, "text in UTF-8") from None
    if "\0" in text:
        raise bad("arms file", source, "text in UTF-8, and has null characters")
    # strict, because otherwise one stray quote swallows the rest of the file without a word
    reader = csv.reader(io.StringIO(text, newline=None), strict=True, skipinitialspace=True)
    try:
        lines = [
            (reader.line_num, [cell.strip() for cell in cells]) for cells in itertools.islice(reader, _MOST_ROWS + 1)
        ]
    except csv.Error as error:
        raise InputError(f"{source}, line {reader.line_num}: not readable as CSV: {error}") from None
    if len(lines) > _MOST_ROWS:
        raise InputError(f"{source}: more than {_MOST_ROWS:,} rows; a log of more says the same as means or counts")
    lines = [(line, cells) for line, cells in lines if any(cells)]
    if not lines:
        raise InputError(f"{source}: the file is empty; it must have a header line and rows of arms")
    header = tuple(title.lower() for title in lines[0][1])
    if len(lines) == 1:
        raise InputError(f"{source}: there is a header but no rows; it must have at least two arms")
    rows = tuple((line, _fitted(cells, len(header))) for line, cells in lines[1:])
    return Sheet(source, header, rows, hashlib.sha256(content).hexdigest())


def _fitted(cells: Sequence[str], width: int) -> tuple[str, ...]:
    """Blank cells added or taken away at the end to reach `width`; cells with content stay."""
    used = max((i + 1 for i, cell in enumerate(cells) if cell), default=0)
    return (*cells[:used], *[""] * (width - used))


def recognised(sheet: Sheet) -> tuple[str, dict[str, int]]:
    """The format and, for each of its columns that the file has, the position.

    Raises:
        InputError: the header fits none or several of the formats, or has two columns for one purpose.
    """

    def hits(column: str) -> list[int]:
        accepted = (column, *_ALIASES.get(column, ()))
        return [i for i, title in enumerate(sheet.header) if title in accepted]

    missing = {kind: [c for c in columns if not hits(c)] for kind, columns in _COLUMNS.items()}
    fits = [kind for kind in _COLUMNS if not missing[kind]]
    formats = "; ".join(f"{kind}: {', '.join(columns)}" for kind, columns in _COLUMNS.items())
    if not fits:
        nearest = min(_COLUMNS, key=lambda kind: len(missing[kind]) / len(_COLUMNS[kind]))
        separator = " separated by commas" if len(sheet.header) == 1 else ""
        raise InputError(
            f"{sheet.source}: columns missing for the nearest format ({nearest}): "
            f"{', '.join(missing[nearest])}; the header is {shown(','.join(sheet.header))}; "
            f"it must have the columns{separator} of {formats}"
        )
    if len(fits) > 1:
        raise InputError(
            f"{sheet.source}: the header fits {' and '.join(fits)}; it must have the columns of only one of {formats}"
        )
    kind = fits[0]
    positions = {column: hits(column) for column in (*_COLUMNS[kind], _OPTIONAL[kind])}
    for column, found in positions.items():
        if len(found) > 1:
            titles = " and ".join(sheet.header[i] for i in found)
            raise InputError(f"{sheet.source}: columns {titles} all stand for {column}; only one may be there")
    return kind, {column: found[0] for column, found in positions.items() if found}


def _number(text: str) -> float | None:
    """A finite number >= 0, or None."""
    if not re.fullmatch(r"\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text, flags=re.ASCII):
        return None
    return float(text) if math.isfinite(float(text)) else None


def plain_record(
    sheet: Sheet, at: dict[str, int], kind: str, line: int, cells: Sequence[str], default_name: str, problems: Problems
) -> Record | None:
    """The record of one row of a file of means, counts or pulls; `default_name` names its instance.

    None if a cell is no number or name, there are too many cells, or clicks are 0, which `problems` then holds.
    """

    def where(column: str) -> str:
        return f"{sheet.source}, line {line}, column {column}"

    before, values = problems.count, dict[str, float]()
    if len(cells) > len(sheet.header):
        may_be = f"at most {len(sheet.header)}, as in the header"
        problems.note(bad(f"{sheet.source}, line {line}, number of cells", len(cells), may_be))
    for column in ("name", "instance"):
        if column in at and not cells[at[column]]:
            problems.note(bad(where(column), "", "a name"))
    for column in _COLUMNS[kind][1:]:
        value = _number(cells[at[column]])
        if value is None:
            problems.note(bad(where(column), cells[at[column]], "a finite number of at least 0"))
        elif column == "clicks" and value == 0:
            problems.note(bad(where(column), cells[at[column]], "above 0, since means are per click"))
        else:
            values[column] = value
    if problems.count > before:
        return None
    instance = cells[at["instance"]] if "instance" in at else default_name
    if kind == "counts":
        totals = values["clicks"], values["conversions"], values["spent"]
        means = totals[1] / totals[0], totals[2] / totals[0]
    else:
        _, reward, cost = _COLUMNS[kind]
        means = values[reward], values[cost]
        totals = 1.0, *means
    return Record(line, instance, cells[at["name"]], *means, totals)


def facebook_records(sheet: Sheet, at: dict[str, int], repair: bool) -> tuple[list[Record], tuple[str, ...]]:
    """The ads that are arms, in file order, and a note on the others; rules in `arms_file.read_arms`.

    Raises:
        InputError: no ad is left.
    """
    dropped: Counter[str] = Counter()
    repaired = 0
    ads: list[Record] = []
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
        ad = _facebook_ad(line, cells, at, len(sheet.header))
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


def _facebook_ad(line: int, cells: Sequence[str], at: dict[str, int], width: int) -> Record | str:
    """The arm of one row, or the reason to drop it."""
    group = [cells[at[column]] for column in ("campaign_id", "age", "gender")]
    numbers = [_number(cells[at[column]]) for column in ("clicks", "spent", "total_conversion")]
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
    return Record(
        line,
        "/".join(group),
        name or f"line {line}",
        conversions / clicks or _ZERO_REWARD_BECOMES,
        spent / clicks,
        (clicks, conversions, spent),
    )


def _with_distinct_names(ads: list[Record]) -> list[Record]:
    # the published rule makes every row an arm, also where one ad has several rows
    times = Counter((ad.instance, ad.arm) for ad in ads)
    return [
        ad
        if times[ad.instance, ad.arm] == 1
        else Record(ad.line, ad.instance, f"{ad.arm} (line {ad.line})", ad.reward, ad.cost, ad.totals)
        for ad in ads
    ]
