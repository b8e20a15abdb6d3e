"""Read the arms of budgeted bandits from a CSV file: means, counts, logs of pulls, or Facebook ads.

The first line names the columns, in any order and in upper or lower case (aliases in brackets):

* means:    name [arm], mean_reward, mean_cost
* counts:   name [arm], clicks, spent [spend, cost], conversions [conversion, total_conversion]
* log:      name [arm], reward, cost; one row per pull
* facebook: campaign_id [xyz_campaign_id], age, gender, clicks, spent, total_conversion

An `instance` column in the first three holds several independent problems in one file; `ad_id` names the
Facebook arms. Other columns are ignored. Cells are separated by commas, the text is UTF-8; a byte order
mark, blanks around cells, blank lines and any of LF, CRLF, CR as line end are accepted.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxbandits.comparison.arms_rows import Record, facebook_records, plain_record, read_sheet, recognised
from jaxbandits.comparison.evidence import Evidence, NumberStyle, Pulls
from jaxbandits.comparison.problems import Problems
from jaxbandits.core.errors import InputError, bad, shown
from jaxbandits.core.numbers import positive_number

FloatArray = NDArray[np.float64]

_UNITS = {
    "means": ("reward", "cost"),
    "counts": ("conversions", "spent"),
    "log": ("reward", "cost"),
    "facebook": ("conversions", "spent"),
}
_PULL_UNITS = {"means": "pull", "counts": "click", "log": "row", "facebook": "click"}
_LARGEST_SCALED_MEAN = 0.99
_REWARD_MAX, _COST_MAX = "reward_max (--reward-max)", "cost_max (--cost-max)"


@dataclass(frozen=True, eq=False)
class Instance:
    """One bandit problem with K >= 2 arms, in the order of the file.

    Attributes:
        name: the `instance` cell; the file's name without suffix where there is no such column;
            "campaign_id/age/gender" for Facebook ads.
        arms: names of the K arms, all different.
        mean_reward: float64 [K], reward per pull in the user's unit, >= 0.
        mean_cost: float64 [K], cost per pull in the user's unit, > 0.
        reward_bound: no reward (log) or mean reward (other formats) is above it; user's unit per pull.
        cost_bound: the same for costs.
        log: for each arm its (rewards, costs), one entry per logged pull in file order, so that the two may
            be resampled jointly; user's unit. None unless the file is a log.
        evidence: what the means were made of: clicks, totals, days, pulls in time order; None for an instance that was
            not read from a file.
    """

    name: str
    arms: tuple[str, ...]
    mean_reward: FloatArray
    mean_cost: FloatArray
    reward_bound: float
    cost_bound: float
    log: tuple[tuple[FloatArray, FloatArray], ...] | None
    evidence: Evidence | None = None

    @property
    def scaled_mean_reward(self) -> FloatArray:
        """mean_reward / reward_bound, float64 [K] in [0, 1]."""
        return self.mean_reward / self.reward_bound

    @property
    def scaled_mean_cost(self) -> FloatArray:
        """mean_cost / cost_bound, float64 [K] in (0, 1]."""
        return self.mean_cost / self.cost_bound


@dataclass(frozen=True)
class KeptOut:
    """An arm that is not played, and why.

    Attributes:
        instance: its instance's name.
        arm: its name.
        line: where it stands in the file, at first.
        reason: such as "no clicks".
    """

    instance: str
    arm: str
    line: int
    reason: str


@dataclass(frozen=True)
class ArmsTable:
    """All problems of one file.

    Attributes:
        kind: "means", "counts", "log" or "facebook".
        instances: in the order in which they first appear in the file; at least one.
        notes: lines to show to the user: rows dropped and repaired, columns ignored. May be empty.
        reward_unit: what rewards are counted in, "reward" or "conversions".
        cost_unit: what costs are counted in, "cost" or "spent".
        sha256: of the bytes that were read; None for a table that is not from a file.
        pull_unit: what a pull is, in the singular: "click", "session", "impression", "row" (of a log), "pull" (means).
        style: how the file writes money and numbers.
        kept_out: arms that the file names and that cannot be played, in file order.
    """

    kind: str
    instances: tuple[Instance, ...]
    notes: tuple[str, ...]
    reward_unit: str
    cost_unit: str
    sha256: str | None = None
    pull_unit: str = "pull"
    style: NumberStyle = field(default_factory=NumberStyle)
    kept_out: tuple[KeptOut, ...] = ()


def read_arms(
    path: str | os.PathLike[str],
    *,
    instances: str = "published",
    reward_max: float | None = None,
    cost_max: float | None = None,
) -> ArmsTable:
    """Read an arms file; the header decides the format (see the module's text for the columns).

    Means in the user's units: means as given; counts conversions/clicks and spent/clicks (clicks > 0); log
    the averages over the arm's rows; Facebook ads total_conversion/clicks (0.01 where that is 0, as in the
    omega-UCB paper) and spent/clicks.

    Bounds, by which rewards and costs are to be divided to lie in [0, 1], where none is given: for the
    Facebook file, in each instance max_k mean_k / 0.99, which is the paper's mean / max * 0.99; otherwise
    one pair for the file: 1 for rewards, and for costs 1 if no cost is above 1, else the largest mean cost /
    0.99 (means, counts) or the largest single cost (log).

    Facebook rules: an arm is a row with spent > 0 and clicks >= total_conversion, an instance a group of
    (campaign_id, age, gender) with at least two arms. In the public file 382 rows lack campaign_id and
    fb_campaign_id, and all that follows them sits two columns to the left. "published" drops these rows, as
    the paper's code does (19 instances, 545 arms). "repaired" moves the cells back (23 instances, 922 arms)
    and takes the campaign id from the nearest complete row above: the file is sorted by ad_id, campaigns are
    unbroken blocks of rows in it, and the shifted rows come last, in campaign 1178. A shifted row with no
    complete row above, or with one of another campaign below, stays without campaign and is dropped.

    Args:
        path: the CSV file, of at most 64 MiB and a million rows; a pipe such as ``/dev/stdin``; or ``-`` for standard
            input.
        instances: "published" or "repaired"; only the Facebook format has such a choice.
        reward_max: bound of the rewards in the user's unit per pull, for all instances; None for the default.
        cost_max: the same for costs.

    Returns:
        The instances with their arms in file order, and notes that say what was dropped or ignored.

    Raises:
        InputError: an argument, the file, its header or a cell cannot be used (cells with line and column);
            a value is above its bound; an instance has fewer than two arms; an arm is named twice or costs
            nothing. Several such problems are told together: the first line says how many there are, and each of up
            to 20 has a line of its own. Only in the Facebook format are unusable rows dropped and counted in the notes
            instead.
    """
    if not isinstance(instances, str) or instances not in ("published", "repaired"):
        raise bad("instances", instances, "'published' or 'repaired'")
    reward_max = None if reward_max is None else positive_number(_REWARD_MAX, reward_max)
    cost_max = None if cost_max is None else positive_number(_COST_MAX, cost_max)
    sheet = read_sheet(path)
    kind, at = recognised(sheet)
    problems = Problems(sheet.source)
    if kind == "facebook":
        records, notes = facebook_records(sheet, at, repair=instances == "repaired")
    else:
        default_name = "stdin" if path == "-" else Path(path).stem
        rows = [plain_record(sheet, at, kind, line, cells, default_name, problems) for line, cells in sheet.rows]
        records = [record for record in rows if record is not None]
        unused = [title for i, title in enumerate(sheet.header) if title and i not in at.values()]
        notes = (f"columns not used: {shown(', '.join(unused))}",) if unused else ()
        if instances != "published":
            notes += (f"instances={instances!r} has no effect on a file of {kind}",)
    built = []
    for of_instance in _grouped(records, [r.instance for r in records]):
        reward_bound, cost_bound = _default_bounds(kind, of_instance if kind == "facebook" else records)
        bounds = (reward_max or reward_bound, cost_max or cost_bound)
        built.append(_instance(sheet.source, kind, of_instance, bounds, problems))
    problems.tell()
    found = tuple(instance for instance in built if instance is not None)
    return ArmsTable(kind, found, notes, *_UNITS[kind], sheet.sha256, _PULL_UNITS[kind])


def _grouped(records: Sequence[Record], keys: Sequence[str]) -> list[list[Record]]:
    """Records of equal key together, in order of first appearance."""
    groups: dict[str, list[Record]] = {}
    for record, key in zip(records, keys, strict=True):
        groups.setdefault(key, []).append(record)
    return list(groups.values())


def _default_bounds(kind: str, records: Sequence[Record]) -> tuple[float, float]:
    reward, cost = max(r.reward for r in records), max(r.cost for r in records)
    if kind == "facebook":
        return reward / _LARGEST_SCALED_MEAN, cost / _LARGEST_SCALED_MEAN
    if cost <= 1:
        return 1.0, 1.0
    return 1.0, cost if kind == "log" else cost / _LARGEST_SCALED_MEAN


def _instance(
    source: str, kind: str, records: Sequence[Record], bounds: tuple[float, float], problems: Problems
) -> Instance | None:
    """The instance of these rows; None if `problems` holds something, be it of another instance."""
    for record in records:
        for column, value, bound, argument in (
            ("reward", record.reward, bounds[0], _REWARD_MAX),
            ("cost", record.cost, bounds[1], _COST_MAX),
        ):
            if not value <= bound:
                what = column if kind == "log" else f"mean {column}"
                where = f"{source}, line {record.line}, arm {shown(record.arm)}"
                problems.note(InputError(f"{where}: {what} {value} is above its bound {bound}; raise {argument}"))
    name = records[0].instance
    arms = _grouped(records, [record.arm for record in records])
    for first, again in ((rows[0], row) for rows in arms for row in rows[1:] if kind != "log"):
        where = f"{source}, line {again.line}, instance {shown(name)}, name"
        problems.note(bad(where, again.arm, f"another name, line {first.line} has this one"))
    if problems.count == 0 and len(arms) < 2:  # where a row cannot be used, it may be the missing arm
        problems.note(bad(f"{source}, instance {shown(name)}, number of arms", len(arms), "2 or more"))
    log = tuple((_fixed([r.reward for r in rows]), _fixed([r.cost for r in rows])) for rows in arms)
    # rounding may lift the mean of equal values above them, and so above the bound
    rewards, costs = (_fixed([min(np.mean(pulls[i]), np.max(pulls[i])) for pulls in log]) for i in (0, 1))
    for rows, cost in zip(arms, costs, strict=True):
        # a cost above 0 may still become 0 or infinite when divided, at the ends of float64
        fits = cost / bounds[1] > 0 if math.isfinite(bounds[1]) else math.isfinite(cost / _LARGEST_SCALED_MEAN)
        if not fits:
            where = f"{source}, line {rows[0].line}, arm {shown(rows[0].arm)}, mean cost"
            problems.note(bad(where, float(cost), f"finite and above 0 (its bound is {bounds[1]})"))
    if problems.count:
        return None
    names, evidence = tuple(rows[0].arm for rows in arms), _evidence(kind, records, arms)
    return Instance(name, names, rewards, costs, *bounds, log if kind == "log" else None, evidence)


def _evidence(kind: str, records: Sequence[Record], arms: Sequence[Sequence[Record]]) -> Evidence:
    if kind == "means":
        return Evidence(kind, None, None, None)
    clicks, value, spent = (_fixed([sum(r.totals[i] for r in rows) for rows in arms]) for i in range(3))
    if kind != "log":
        return Evidence(kind, clicks, value, spent, bool(((value % 1 == 0) & (value <= clicks)).all()))
    position = {rows[0].arm: i for i, rows in enumerate(arms)}
    arm = np.array([position[r.arm] for r in records], dtype=np.int64)
    rewards, costs = _fixed([r.reward for r in records]), _fixed([r.cost for r in records])
    pulls = Pulls(arm, rewards, costs, None)
    return Evidence(kind, clicks, value, spent, bool(np.isin(rewards, (0, 1)).all()), None, pulls)


def _fixed(values: ArrayLike) -> FloatArray:
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array
