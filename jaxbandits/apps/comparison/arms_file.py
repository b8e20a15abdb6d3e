"""Read the arms of budgeted bandits from a CSV file: means, counts, logs of pulls, or Facebook ads.

Their plain headers, and the rules for files as programs export them, stand in docs/arms-files.md.
"""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jaxbandits.apps.comparison._reading.columns import REWARD, ROLES, Asked
from jaxbandits.apps.comparison._reading.facebook import facebook_rows
from jaxbandits.apps.comparison._reading.numbers import MAY_BE, is_nothing
from jaxbandits.apps.comparison._reading.rows import Rows, read_rows, unit_of_rewards
from jaxbandits.apps.comparison._reading.sheet import Question, Refusal, Sheet, coded, grouped, read_bytes, read_sheet
from jaxbandits.apps.comparison.arms_table import (
    NO_EVIDENCE,
    ArmsTable,
    Daily,
    Evidence,
    FloatArray,
    Instance,
    KeptOut,
    Pulls,
)
from jaxbandits.core.checks import InputError, bad, positive_number, shown

_LARGEST_SCALED_MEAN = 0.99
_NOT_KNOWN = "a number is not known"
_SMALL_COST = 0.1  # below it a file that is not in plain form has a bound of its own


def read_arms(
    path: str | os.PathLike[str],
    *,
    instances: str = "published",
    reward_max: float | None = None,
    cost_max: float | None = None,
    columns: Mapping[str, str] | None = None,
    reward: str | None = None,
    prior: float | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    add: bool = False,
) -> ArmsTable:
    """Read an arms file; the header decides the format.

    Means in the user's units: means as given; counts conversions/clicks and spent/clicks; log the averages over the
    arm's rows; Facebook ads total_conversion/clicks (0.01 where that is 0, as in the omega-UCB paper) and spent/clicks.
    In a file of counts the rows of a name are summed, and an empty cell is 0; in a log each is a pull, and a row
    without reward or cost a gap. Arms without clicks or cost are kept out, and told.

    Bounds that divide rewards and costs into [0, 1], where none is given: for the Facebook file, in each instance
    max_k mean_k / 0.99, which is the paper's mean / max * 0.99; otherwise one pair for the file: for rewards 1, or the
    largest mean / 0.99 (values) or reward (log) if that is above 1; for costs 1 if no cost is above 1, else the largest
    mean / 0.99 (means, counts) or single cost (log). A file in other than plain form, whose costs are all below 0.1,
    has the largest as its bound too.

    Facebook rules: an arm is a row with spent > 0 and clicks >= total_conversion, an instance a group of (campaign_id,
    age, gender) with at least two arms. In the public file 382 rows lack campaign_id and fb_campaign_id, and all that
    follows them sits two columns to the left. "published" drops these rows, as the paper's code does (19 instances, 545
    arms). "repaired" moves the cells back (23 instances, 922 arms) and takes the campaign id from the nearest complete
    row above: the file is sorted by ad_id, campaigns are unbroken blocks of rows in it, and the shifted rows come last,
    in campaign 1178. A shifted row with no complete row above, or with one of another campaign below, is dropped.

    Args:
        path: the CSV file, or ``-`` for standard input.
        instances: "published" or "repaired"; only the Facebook format has such a choice.
        reward_max: bound of the rewards in the user's unit per pull, for all instances; None for the default.
        cost_max: the same for costs.
        columns: titles of columns by what they are: instance, name, time, reward, cost (or spent), clicks,
            conversions, price and reward_rate (of one pull), mean_reward, mean_cost; cost2, what a pull costs besides,
            in units of its own. Titles may be joined by " + ", " * " and " / " (``"A + B"``, ``"Cost (pence) / 100"``).
            A number as cost: what every pull costs.
        reward: the title of the column that counts as reward, such as ``"revenue"``.
        prior: counts: as if every arm had had so many clicks more, at its instance's average; > 0. None for none.
        decimal: the decimal sign, "." or ","; None to tell it from the file.
        encoding: of the file's text, such as ``"cp1251"``; None to tell UTF-8, UTF-16 and Latin-1 apart.
        drop: rows of these names are left out, or, where no row has such a name, with such a cell (a device).
        keep: rows with one of these texts are arms, whatever they are called and sum.
        add: rows of one name that differ in another column of words (a device, a window) are added.

    Returns:
        The instances with their arms in file order, and notes that say what was dropped or ignored.

    Raises:
        InputError: an argument, the file, its header or a cell cannot be used (cells with line and column); a value is
            above its bound; an instance has fewer than two arms; an arm of a file of means is named twice; a row may be
            a total, or rows may be views of one thing (the message says which option decides). Up to 20 such problems
            are told together. Only in the Facebook format are unusable rows dropped and counted.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "ads.csv")
        ...     with open(path, "w") as file:
        ...         _ = file.write("Kampagne;Klicks;Kosten;Umsatz\\nA;1.300;650,00 €;1.950\\nB;10;2,50 €;-\\n")
        ...     table = read_arms(path)
        >>> table.instances[0].mean_reward.tolist(), table.style.money(1950.0)
        ([1.5, 0.0], '1.950,00 €')
    """
    if not isinstance(instances, str) or instances not in ("published", "repaired"):
        raise bad("instances", instances, "'published' or 'repaired'")
    given = {"reward_max (--reward-max)": reward_max, "cost_max (--cost-max)": cost_max, "prior": prior}
    reward_max, cost_max, prior = (None if x is None else positive_number(name, x) for name, x in given.items())
    if decimal not in (None, ".", ","):
        raise bad("decimal", decimal, "'.' or ','")
    content = read_bytes(path)

    def attempt(drop: Sequence[str], keep: Sequence[str], add: bool, columns: Mapping[str, str]) -> ArmsTable:
        named = _asked(columns, reward)
        sheet = read_sheet(path, content, named, encoding)
        return _table(path, sheet, instances, (reward_max, cost_max), prior, decimal, (drop, keep, add))

    options: dict[str, Any] = {"drop": tuple(drop), "keep": tuple(keep), "add": add, "columns": dict(columns or {})}
    try:
        return attempt(**options)
    except InputError as error:
        raise _with_ways(error, attempt, options) from None


def _table(
    path: str | os.PathLike[str],
    sheet: Sheet,
    instances: str,
    bounds: tuple[float | None, float | None],
    prior: float | None,
    decimal: str | None,
    choice: tuple[Sequence[str], Sequence[str], bool],
) -> ArmsTable:
    reward_max = bounds[0]
    if sheet.columns.kind == "facebook":
        rows = facebook_rows(sheet, repair=instances == "repaired")
    else:
        sheet.notes += _of_columns(sheet)
        rows = read_rows(sheet, "stdin" if path == "-" else Path(path).stem, decimal, *choice)
    kind = rows.columns.kind
    if prior and rows.spent2 is not None:
        raise bad("prior", prior, "left out beside a second cost")
    for idle, used in (
        (f"{instances=}" * (instances != "published"), "facebook"),
        (f"{prior=}" * (prior is not None), "counts"),
    ):
        sheet.notes += [f"{idle} has no effect on a file of {kind}"] if idle and kind != used else []
    found, out = _instances(rows, prior or 0.0, bounds)
    if sheet.problems:
        raise Refusal(sheet.source, sheet.problems)
    second = sheet.columns.at.get("cost2", -1)  # a number has no title
    _tell_of_arms(rows, found, out, prior, reward_max)
    return ArmsTable(
        kind=kind,
        instances=found,
        notes=(*sheet.changes, *sheet.notes),
        reward_unit=unit_of_rewards(rows),
        cost_unit="cost" if kind in ("means", "log") else "spent",
        sha256=sheet.sha256,
        pull_unit=rows.columns.pull_unit,
        style=rows.style,
        kept_out=out,
        changes=len(sheet.changes),
        path=os.fspath(path),
        cost2_unit="" if rows.spent2 is None else sheet.titles[second] if second >= 0 else f"{rows.columns.pull_unit}s",
    )


def _asked(columns: Mapping[str, str] | None, reward: str | None) -> Asked:
    given = dict(columns or {}) | ({REWARD: reward} if reward is not None else {})
    for role, text in given.items():
        if role not in (*ROLES, REWARD):
            raise bad("columns", role, f"one of {', '.join(ROLES)}")
        if not isinstance(text, str) or not text.strip():
            may_be = f"the title of the column that is {role.removeprefix('--')}"
            raise bad("reward" if role == REWARD else "columns", text, may_be)
    return {role: " ".join(text.split()) for role, text in given.items()}


# --- Questions, each with the options that answer it. What is printed has been tried.

_MOST_QUESTIONS = 4  # one behind another


def _with_ways(error: InputError, attempt: Callable[..., ArmsTable], options: dict[str, Any]) -> InputError:
    """The error, its questions with the commands that answer them (and those that come up then)."""
    problems = error.problems if isinstance(error, Refusal) else (error,)
    certain = {str(one) for one in problems if not isinstance(one, Question)}

    def leads(options: dict[str, Any], most: int) -> dict[str, Any] | None:
        """These options, and what else it takes until nothing is asked any more; None if that does not help."""
        try:
            attempt(**options)
        except InputError as again:
            left = again.problems if isinstance(again, Refusal) else (again,)
            asked = [one for one in left if isinstance(one, Question)]
            if most == 0 or {str(one) for one in left if not isinstance(one, Question)} - certain:
                return None
            further = (leads(_joined(options, way), most - 1) for one in asked[:1] for way, _ in one.ways)
            return options if not asked else next(filter(None, further), None)
        return options

    told = list[InputError]()
    for one in problems:
        if isinstance(one, Question):
            tried = [(leads(_joined(options, way), _MOST_QUESTIONS), effect) for way, effect in one.ways]
            ways = [f"{_written(found, options)} {effect}" for found, effect in tried if found is not None]
            one = InputError("; ".join([str(one), *ways]))
        told.append(one)
    return Refusal(error.source, told) if isinstance(error, Refusal) else told[0]


def _joined(options: Mapping[str, Any], way: Mapping[str, Any]) -> dict[str, Any]:
    """The options with one way more."""
    more = {name: (*options[name], *way[name]) for name in ("drop", "keep") if name in way}
    columns = options["columns"] | way.get("columns", {})
    return {**options, **more, "add": options["add"] or way.get("add", False), "columns": columns}


def _written(options: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """The options as on the command line, without what was given already."""
    parts = [("--" + name, text) for name in ("drop", "keep") for text in options[name][len(given[name]) :]]
    columns = ",".join(f"{role.replace('_', '-')}={title}" for role, title in options["columns"].items())
    parts += [("--columns", columns)] if options["columns"] != given["columns"] else []
    words = [word for part in parts for word in part] + ["--sum"] * (options["add"] and not given["add"])
    return shlex.join(words)


# --- From rows to instances: sums, means, bounds, and the arms that cannot be played


class _Arm(NamedTuple):
    """One arm's rows, and its means per pull."""

    instance: str
    name: str
    every: np.ndarray  # positions of its rows in Rows
    rows: np.ndarray  # those that are complete, or counted
    reward: float = math.nan  # mean; NaN if the arm cannot be played
    cost: float = math.nan
    why: str = ""  # it cannot be played
    error: InputError | None = None  # the same, which is told if too few arms are left


def _instances(
    rows: Rows, prior: float, given: tuple[float | None, float | None]
) -> tuple[tuple[Instance, ...], tuple[KeptOut, ...]]:
    """The instances of at least two arms; the arms that are not in them."""
    sheet, code, groups = rows.sheet, coded(rows.arm)[0], list[list[_Arm]]()
    for own in grouped(coded(rows.instance)[0], np.arange(len(rows.sheet.line))):
        clicks, value, spent = (float(np.nansum(x[own])) for x in (rows.clicks, rows.value, rows.spent))
        average = (value / clicks, spent / clicks) if clicks > 0 else (0.0, 0.0)
        groups.append([_arm(rows, at, prior, average) for at in grouped(code, own)])
    everyone = [arm for group in groups for arm in group if not arm.why]
    found, out, lost = list[Instance](), list[tuple[_Arm, str]](), list[list[_Arm]]()
    for group in groups:
        playable = [arm for arm in group if not arm.why]
        default = _default_bounds(rows, playable if rows.columns.kind == "facebook" else everyone)
        bounds = given[0] or default[0], given[1] or default[1]
        _check_bounds(rows, playable, bounds)
        small = [not arm.why and arm.cost / bounds[1] == 0 for arm in group]
        group = [_unplayable(rows, x, "its cost is too small") if no else x for x, no in zip(group, small, strict=True)]
        playable = [arm for arm in group if not arm.why]
        if len(playable) > 1:
            found.append(_instance_of(rows, playable, bounds))
        else:
            lost.append(group)
        out += [(arm, arm.why) for arm in group if arm.why]
    for group in lost if not sheet.problems else ():  # where a row cannot be used, it may be the missing arm
        errors = [arm.error for arm in group if arm.error is not None]
        if errors and found:
            out += [(arm, "alone in its instance") for arm in group if not arm.why]
            continue
        where = f"{sheet.source}, instance {shown(group[0].instance)}, number of arms"
        for error in errors or [bad(where, len(group), "2 or more")]:
            sheet.problems.append(error)
    if not groups and not sheet.problems:
        sheet.problems.append(InputError(f"{sheet.source}: no row is an arm; it must have at least two arms"))
    kept_out = [KeptOut(arm.instance, arm.name, int(sheet.line[arm.rows[0]]), why) for arm, why in out]
    return tuple(found), tuple(sorted(kept_out, key=lambda arm: arm.line))


def _arm(rows: Rows, at: np.ndarray, prior: float, average: tuple[float, float]) -> _Arm:
    """The arm of these rows, unplayable if it has no pulls, rewards or costs; a prior has the ``average`` means."""
    sheet, kind, first = rows.sheet, rows.columns.kind, int(at[0])
    arm = _Arm(rows.instance.row(first), rows.arm.row(first), at, at)
    if rows.ads is not None:
        return arm._replace(reward=float(rows.ads[0][first]), cost=float(rows.ads[1][first]))
    for again in at[1:] if kind == "means" else ():
        where = sheet.where(again, f"instance {shown(arm.instance)}, name")
        sheet.problems.append(bad(where, arm.name, f"another name, line {sheet.line[first]} has this one"))
    if kind != "counts":
        complete = at[~np.isnan(rows.value[at]) & ~np.isnan(rows.spent[at])]
        if not complete.size:
            what = "reward" if np.isnan(rows.value[first]) else "cost"
            role = what if kind == "log" else f"mean_{what}"
            return arm._replace(why=f"no {what}", error=bad(sheet.cell(first, role), sheet.of(role).row(first), MAY_BE))
        # rounding may lift the mean of equal values above them, and so above the bound
        reward, cost = (float(min(np.mean(x[complete]), np.max(x[complete]))) for x in (rows.value, rows.spent))
        return _costing(rows, arm._replace(rows=complete, reward=reward, cost=cost))
    known = at[~np.isnan(rows.clicks[at])]
    if not known.size:
        texts = {role: sheet.of(role).row(first) for role in rows.columns.numeric()}
        role, text = next(((role, text) for role, text in texts.items() if is_nothing(text)), ("spent", ""))
        return arm._replace(why=_NOT_KNOWN, error=bad(sheet.cell(first, role), text, MAY_BE))
    arm, (clicks, value, spent) = arm._replace(rows=known), _totals(rows, known)
    for role, column, total in (("conversions", rows.value, value), ("spent", rows.spent, spent)):
        if total < 0:  # refunds may make a row negative, not an arm
            where = f"{sheet.cell(int(known[np.argmin(column[known])]), role)} (arm {shown(arm.name)} in all)"
            sheet.problems.append(bad(where, total, MAY_BE))
    if clicks + prior == 0:
        but = [f"{rows.style.money(spent)} spent"] * (spent > 0) + [f"a reward of {value:g}"] * (value > 0)
        may_be = "above 0, since means are per click" + (" (--prior 10 keeps such arms)" if average[1] > 0 else "")
        error = bad(sheet.cell(int(known[0]), "clicks"), sheet.of("clicks").row(known[0]) or "0", may_be)
        return arm._replace(why=f"no {rows.columns.pull_unit}s{' but ' * bool(but)}{' and '.join(but)}", error=error)
    if prior:
        value, spent, clicks = value + prior * average[0], spent + prior * average[1], clicks + prior
    return _costing(rows, arm._replace(reward=value / clicks, cost=spent / clicks), value)


def _totals(rows: Rows, at: np.ndarray) -> tuple[float, float, float]:
    """Clicks, value and spent of these rows."""
    clicks, value, spent = (math.fsum(of[at].tolist()) for of in (rows.clicks, rows.value, rows.spent))
    return clicks, value, spent


def _costing(rows: Rows, arm: _Arm, value: float = 0.0) -> _Arm:
    """The same, unplayable if its mean cost is 0 or too large, or its mean reward too large."""
    if arm.cost == 0:
        return _unplayable(rows, arm, "it cost nothing" + (f" and brought {value:,.10g}" if value else ""))
    return arm if math.isfinite(arm.cost / _LARGEST_SCALED_MEAN) else _unplayable(rows, arm, "its cost is too large")


def _unplayable(rows: Rows, arm: _Arm, why: str) -> _Arm:
    where = rows.sheet.where(arm.rows[0], f"arm {shown(arm.name)}, mean cost")
    return arm._replace(why=why, error=bad(where, arm.cost, "finite and above 0"))


def _default_bounds(rows: Rows, arms: Sequence[_Arm]) -> tuple[float, float]:
    """Of rewards and costs, where none is given; see :func:`read_arms`."""
    kind, columns = rows.columns.kind, rows.columns
    if not arms:
        return 1.0, 1.0
    if kind == "log":
        at, share = np.concatenate([arm.rows for arm in arms]), 1.0
        reward, cost = float(rows.value[at].max()), float(rows.spent[at].max())
    else:
        reward, cost, share = max(arm.reward for arm in arms), max(arm.cost for arm in arms), _LARGEST_SCALED_MEAN
    own_reward = reward > 1 and (kind == "log" or columns.is_value or (kind == "means" and not columns.plain))
    own_cost = cost > 1 or (not columns.plain and cost < _SMALL_COST)
    either = kind == "facebook"
    return reward / share if own_reward or either else 1.0, cost / share if own_cost or either else 1.0


def _check_bounds(rows: Rows, arms: Sequence[_Arm], bounds: tuple[float, float]) -> None:
    """What is above a bound is a problem of the sheet: single rewards of a log or of means, else means."""
    kind, single = rows.columns.kind, rows.columns.kind in ("log", "means")
    for what, bound, column in zip(("reward", "cost"), bounds, (rows.value, rows.spent), strict=True):
        for arm in arms:
            values = column[arm.rows] if single else np.array([getattr(arm, what)])
            for n in np.flatnonzero(~(values <= bound)).tolist():
                told = f"{'mean ' * (kind != 'log')}{what} {float(values[n])} is above its bound {bound}"
                told += f"; raise {what}_max (--{what}-max)"
                if what == "reward" and not single:
                    told += f" to {max(arm.reward for arm in arms):.6g} or more"
                rows.sheet.problems.append(InputError(f"{rows.sheet.where(arm.rows[n], f'arm {shown(arm.name)}')}: {told}"))


def _instance_of(rows: Rows, arms: Sequence[_Arm], bounds: tuple[float, float]) -> Instance:
    """The instance of at least two playable arms, with its evidence; costs have the second one beside the first."""
    is_log, costs, bound = rows.columns.kind == "log", np.array([arm.cost for arm in arms]), bounds[1]
    log = [(rows.value[arm.rows], rows.spent[arm.rows]) for arm in arms] if is_log else []
    both: float | tuple[float, float] = bound
    if rows.spent2 is not None:  # its bound is that of this instance's arms
        seen = [rows.spent2[arm.rows] for arm in arms]
        whole = [rows.clicks[arm.rows].sum() for arm in arms]  # 1 a row but in counts
        means = np.array([x.sum() / n for x, n in zip(seen, whole, strict=True)])
        most = max(x.max() for x in seen) if is_log else means.max() / _LARGEST_SCALED_MEAN
        costs, both = np.stack([costs, means], axis=1), (bound, float(most) or 1.0)
        log = [(r, np.stack([c, x], axis=1)) for (r, c), x in zip(log, seen, strict=False)]
    return Instance(
        name=arms[0].instance,
        arms=tuple(arm.name for arm in arms),
        mean_reward=_fixed([arm.reward for arm in arms]),
        mean_cost=_fixed(costs),
        reward_bound=bounds[0],
        cost_bound=both,
        log=tuple((_fixed(r), _fixed(c)) for r, c in log) if is_log else None,
        evidence=_evidence(rows, arms),
    )


def _evidence(rows: Rows, arms: Sequence[_Arm]) -> Evidence:
    kind = rows.columns.kind
    if kind == "means":
        return NO_EVIDENCE
    clicks, value, spent = map(_fixed, zip(*(_totals(rows, arm.rows) for arm in arms), strict=True))
    if kind == "log":
        rewards = np.concatenate([rows.value[arm.rows] for arm in arms])
        return Evidence(kind, clicks, value, spent, bool(np.isin(rewards, (0, 1)).all()), None, _pulls(rows, arms))
    whole = bool(((value % 1 == 0) & (value <= clicks)).all()) and not rows.columns.is_value
    many = kind == "counts" and any(arm.rows.size > 1 for arm in arms)
    return Evidence(kind, clicks, value, spent, whole, tuple(_daily(rows, arm) for arm in arms) if many else None)


def _daily(rows: Rows, arm: _Arm) -> Daily:
    """Rows of one day summed; those without a day stand at the end, each for itself."""
    nowhen = np.full(arm.rows.size, np.datetime64("NaT", "D"))
    day = nowhen if rows.time is None else rows.time[arm.rows].astype("datetime64[D]")
    known = ~np.isnat(day)
    days, which = np.unique(day[known], return_inverse=True)
    columns = [column[arm.rows] for column in (rows.clicks, rows.value, rows.spent)]
    sums = [np.concatenate([np.bincount(which, of[known], days.size), of[~known]]) for of in columns]
    return Daily(np.concatenate([days, day[~known]]), *map(_fixed, sums))


def _pulls(rows: Rows, arms: Sequence[_Arm]) -> Pulls:
    """All rows of these arms, in time order; a row without a time stays behind the one above."""
    which = np.full(len(rows.sheet.line), -1)
    for i, arm in enumerate(arms):
        which[arm.every] = i
    at = np.flatnonzero(which >= 0)
    if rows.time is not None:
        latest = rows.time[at]
        known = np.maximum.accumulate(np.where(np.isnat(latest), -1, np.arange(at.size)))
        order = np.where(known < 0, np.datetime64(np.iinfo(np.int64).min + 1, "us"), latest[known])
        at = at[np.argsort(order, kind="stable")]
    time = None if rows.time is None else rows.time[at]
    return Pulls(which[at], _fixed(rows.value[at]), _fixed(rows.spent[at]), time)


def _fixed(values: ArrayLike) -> FloatArray:
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array


# --- What the user is told.

_REWARDS = ("conversions", "reward", "mean_reward")


def _of_columns(sheet: Sheet) -> list[str]:
    """Which column was taken for what, what else could have been meant, and what is not used."""
    columns, titles, notes = sheet.columns, [shown(title) for title in sheet.titles], list[str]()
    at = {role: columns.at[role] for role in ("instance", "name", "time") if role in columns.at} | columns.numeric()
    if not columns.plain:

        def term(sign: str, of: int | float) -> str:
            return f" {sign} {titles[of] if isinstance(of, int) else f'{of:g}'}"

        terms = {role: "".join(term(*one) for one in of) for role, of in columns.terms.items()}
        said = [f"{role} = {titles[i]}{terms.get(role, '')}" for role, i in at.items()]
        notes.append(f"columns: {', '.join(said)}")
    if columns.other is not None:
        reward, other = next(titles[at[x]] for x in _REWARDS if x in at), shlex.quote(sheet.titles[columns.other])
        notes.append(f"the reward is {reward}; --reward {other} would take that column instead")
    unused = ", ".join(text for i, text in enumerate(sheet.titles) if text and i not in columns.used())
    return [*notes, f"columns not used: {shown(unused)}"] if unused else notes


def _tell_of_arms(
    rows: Rows, found: Sequence[Instance], out: Sequence[KeptOut], prior: float | None, reward_max: float | None
) -> None:
    """Sums, gaps, arms that are kept out, the prior, a bound of the rewards that was set."""
    columns, sheet = rows.columns, rows.sheet
    kind, unit, changes, others = columns.kind, columns.pull_unit, sheet.changes, sheet.notes
    names = sum(len(instance.arms) for instance in found) + len(out)
    if kind == "counts" and names < len(rows.sheet.line):
        others.append(f"{len(rows.sheet.line):,} rows summed to {names:,} arms")
    if kind == "log" and (gaps := int((np.isnan(rows.value) | np.isnan(rows.spent)).sum())):
        changes.append(f"{gaps:,} {'row is a gap' if gaps == 1 else 'rows are gaps'}: without reward or cost")
    for why in dict.fromkeys(arm.reason for arm in out):
        arms = [f"{shown(arm.arm)} (line {arm.line})" for arm in out if arm.reason == why]
        more = f" and {len(arms) - 5:,} more" if len(arms) > 5 else ""
        remedy = "; --prior 10 keeps such" if kind == "counts" and not prior and why != _NOT_KNOWN else ""
        changes.append(f"kept out, {why}: {', '.join(arms[:5])}{more}{remedy}")
    if prior and kind == "counts":
        others.append(f"prior: as if every arm had had {prior:g} {unit}s more, at its instance's average")
    bound = max((instance.reward_bound for instance in found), default=1.0)
    if kind != "facebook" and reward_max is None and bound > 1:
        others.append(f"rewards go above 1: their bound is {bound:.6g} (--reward-max sets another)")
