"""Read the arms of budgeted bandits from a CSV file: means, counts, logs of pulls, or Facebook ads.

Their plain headers, and the rules for files as programs export them, stand in docs/arms-files.md.
"""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jaxbandits.apps.comparison._reading.columns import REWARD, ROLES, Question
from jaxbandits.apps.comparison._reading.facebook import facebook_rows
from jaxbandits.apps.comparison._reading.numbers import MAY_BE, is_nothing
from jaxbandits.apps.comparison._reading.rows import ArmRows, read_rows, unit_of_rewards
from jaxbandits.apps.comparison._reading.sheet import (
    Refusal,
    Sheet,
    read_bytes,
    read_sheet,
    read_table,
    rows_by_code,
)
from jaxbandits.apps.comparison._reading.wide import read_requests
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
from jaxbandits.core.checks import InputError, bad, positive_number, quoted

_LARGEST_SCALED_MEAN = 0.99
_INCOMPLETE = ("a number is not known", "no reward", "no cost")
_ZERO_REWARD_BECOMES = 0.01  # in the Facebook file, as in the paper
_SMALL_COST = 0.1  # below it a file that is not in plain form has a bound of its own
_MOST_QUESTIONS = 4  # one behind another
# drop, keep, add, columns and wide, as far as a question may ask for them
ReadOptions = dict[str, Any]


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
    wide: bool = False,
) -> ArmsTable:
    """Read an arms file; the header decides the format.

    Means in the user's units: means as given; counts conversions/clicks and spent/clicks; log the
    averages over the arm's rows; Facebook ads total_conversion/clicks (0.01 where that is 0, as in
    the omega-UCB paper) and spent/clicks. In a file of counts the rows of a name are summed, and an
    empty cell is 0; in a log each is a pull, and a row without reward or cost a gap. Arms without
    clicks or cost are kept out, and told.

    Bounds that divide rewards and costs into [0, 1], where none is given: for the Facebook file, in
    each instance max_k mean_k / 0.99, which is the paper's mean / max * 0.99; otherwise one pair
    for the file: for rewards 1, or the largest mean / 0.99 (values) or reward (log) if that is
    above 1; for costs 1 if no cost is above 1, else the largest mean / 0.99 (means, counts) or
    single cost (log). A file in other than plain form, whose costs are all below 0.1, has the
    largest as its bound too.

    Facebook rules: an arm is a row with spent > 0 and clicks >= total_conversion, an instance a
    group of (campaign_id, age, gender) with at least two arms. In the public file 382 rows lack
    campaign_id and fb_campaign_id, and all that follows them sits two columns to the left.
    "published" drops these rows, as the paper's code does (19 instances, 545 arms). "repaired"
    moves the cells back (23 instances, 922 arms); the campaign is that of the nearest complete
    rows, above and, if there is one, below: the file is sorted by ad_id, and campaigns are unbroken
    blocks of rows in it.

    Args:
        path: the CSV file, or ``-`` for standard input.
        instances: "published" or "repaired"; only the Facebook format has such a choice.
        reward_max: bound of the rewards in the user's unit per pull, for all instances; None for
            the default.
        cost_max: the same for costs.
        columns: titles of columns by what they are: instance, name, time, reward, cost (or spent),
            clicks, conversions, price and reward_rate (of one pull), mean_reward, mean_cost; cost2,
            what a pull costs besides, in units of its own. A number as cost: what every pull costs.
        reward: the title of the column that counts as reward, such as ``"revenue"``.
        prior: counts: as if every arm had had so many clicks more, at its instance's average; > 0.
            None for none.
        decimal: the decimal sign, "." or ","; None to tell it from the file.
        encoding: of the file's text, such as ``"cp1251"``; None to tell UTF-8, UTF-16 and Latin-1
            apart.
        drop: rows of these names are left out, or, where no row has such a name, with such a cell
            (a device).
        keep: rows with one of these texts are arms, whatever they are called and sum.
        add: rows of one name that differ in another column of words (a device, a window) are added.
        wide: the file is a table of requests: a row is a request that all arms were tried on, a
            column what an arm brought, and perhaps another one what that cost (``gpt4`` and
            ``gpt4_cost``, ``score_gpt4`` and ``cost_gpt4``). ``columns`` may be a number as cost
            or cost2 of every request; ``drop`` leaves out columns, too.

    Returns:
        The instances with their arms in file order, and notes that say what was dropped or ignored.

    Raises:
        InputError: an argument, the file, its header or a cell cannot be used (cells with line and
            column); a value is above its bound; an instance has fewer than two arms; an arm of a
            file of means is named twice; a row may be a total, or rows may be views of one thing
            (the message says which option decides). Up to 20 such problems are told together. Only
            in the Facebook format are unusable rows dropped and counted.

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
    amounts = {
        "reward_max (--reward-max)": reward_max,
        "cost_max (--cost-max)": cost_max,
        "prior": prior,
    }
    reward_max, cost_max, prior = (
        value if value is None else positive_number(name, value) for name, value in amounts.items()
    )
    if decimal not in (None, ".", ","):
        raise bad("decimal", decimal, "'.' or ','")
    content = read_bytes(path)
    choices = dict(columns or {}) | ({REWARD: reward} if reward is not None else {})
    for role, title in choices.items():
        if role not in (*ROLES, REWARD):
            raise bad("columns", role, f"one of {', '.join(ROLES)}")
        if not isinstance(title, str) or not title.strip():
            must = f"the title of the column that is {role.removeprefix('--')}"
            raise bad("reward" if role == REWARD else "columns", title, must)
    choices = {role: " ".join(title.split()) for role, title in choices.items()}

    def attempt(options: ReadOptions) -> ArmsTable:
        name, bounds = "stdin" if path == "-" else Path(path).stem, (reward_max, cost_max)
        if options["wide"]:
            sheet, named = read_table(path, content, encoding), choices | options["columns"]
            rows = read_requests(sheet, name, decimal, named, options)
            return replace(_table(path, rows, bounds, prior), wide=True)
        sheet = read_sheet(path, content, choices | options["columns"], encoding)
        if sheet.columns.kind == "facebook":
            rows = facebook_rows(sheet, repair=instances == "repaired")
        else:
            sheet.notes += _notes_on_columns(sheet)
            rows = read_rows(sheet, name, decimal, options)
        if instances != "published" and rows.columns.kind != "facebook":
            sheet.notes.append(f"{instances=} has no effect on a file of {rows.columns.kind}")
        return _table(path, rows, bounds, prior)

    if wide and (add or instances != "published"):
        raise bad("wide", wide, "left out with sum (add) or instances")
    options = {"drop": tuple(drop), "keep": tuple(keep), "add": add, "columns": {}, "wide": wide}
    try:
        return attempt(options)
    except InputError as error:
        raise _with_commands(error, attempt, options, choices) from None


def _table(
    path: str | os.PathLike[str],
    rows: ArmRows,
    bounds: tuple[float | None, float | None],
    prior: float | None,
) -> ArmsTable:
    """The table of these rows; InputError with all problems of the file if there are any."""
    sheet, kind, unit = rows.sheet, rows.columns.kind, rows.columns.pull_unit
    if prior and rows.spent2 is not None:
        raise bad("prior", prior, "left out beside a second cost")
    instances, kept_out = _instances(rows, prior or 0.0, bounds)
    if sheet.problems:
        raise Refusal(sheet.source, sheet.problems)
    count = sum(len(instance.arms) for instance in instances) + len(kept_out)
    if kind == "counts" and count < len(sheet.line):
        sheet.notes.append(f"{len(sheet.line):,} rows summed to {count:,} arms")
    if kind == "log" and (gaps := int((np.isnan(rows.value) | np.isnan(rows.spent)).sum())):
        are = "row is a gap" if gaps == 1 else "rows are gaps"
        sheet.changes.append(f"{gaps:,} {are}: without reward or cost")
    for reason in dict.fromkeys(arm.reason for arm in kept_out):
        arms = [f"{quoted(arm.arm)} (line {arm.line})" for arm in kept_out if arm.reason == reason]
        more = f" and {len(arms) - 5:,} more" if len(arms) > 5 else ""
        is_remedy = kind == "counts" and not prior and reason not in _INCOMPLETE
        remedy = "; --prior 10 keeps such" * is_remedy
        sheet.changes.append(f"kept out, {reason}: {', '.join(arms[:5])}{more}{remedy}")
    if prior:
        as_if = f"as if every arm had had {prior:g} {unit}s more, at its instance's average"
        idle = f"{prior=} has no effect on a file of {kind}"
        sheet.notes.append(f"prior: {as_if}" if kind == "counts" else idle)
    bound = max((instance.reward_bound for instance in instances), default=1.0)
    if kind != "facebook" and bounds[0] is None and bound > 1:
        sets = "(--reward-max sets another)"
        sheet.notes.append(f"rewards go above 1: their bound is {bound:.6g} {sets}")
    second = sheet.columns.at.get("cost2", -1)  # a number has no title
    cost2_unit = sheet.titles[second] if second >= 0 else f"{unit}s"
    return ArmsTable(
        kind=kind,
        instances=instances,
        notes=(*sheet.changes, *sheet.notes),
        reward_unit=unit_of_rewards(rows),
        cost_unit="cost" if kind in ("means", "log") else "spent",
        sha256=sheet.sha256,
        pull_unit=unit,
        style=rows.style,
        kept_out=kept_out,
        changes=len(sheet.changes),
        path=os.fspath(path),
        cost2_unit="" if rows.spent2 is None else cost2_unit,
    )


def _notes_on_columns(sheet: Sheet) -> list[str]:
    """Which column is what, what else could have been meant, and what is not used."""
    columns, titles, notes = sheet.columns, [quoted(title) for title in sheet.titles], list[str]()
    at = {role: columns.at[role] for role in ("instance", "name", "time") if role in columns.at}
    at |= columns.numeric()
    if not columns.plain:
        parts = (f"{role} = {titles[i]}" for role, i in at.items())
        notes.append(f"columns: {', '.join(parts)}")
    if columns.rival is not None:
        reward = next(titles[at[x]] for x in ("conversions", "reward", "mean_reward") if x in at)
        instead = shlex.quote(sheet.titles[columns.rival])
        notes.append(f"the reward is {reward}; --reward {instead} would take that column instead")
    used = columns.used()
    unused = ", ".join(text for i, text in enumerate(sheet.titles) if text and i not in used)
    return [*notes, f"columns not used: {quoted(unused)}"] if unused else notes


# --- Questions, each with the options that answer it. A command is printed only if it reads the file.


def _with_commands(
    error: InputError,
    attempt: Callable[[ReadOptions], ArmsTable],
    options: ReadOptions,
    choices: Mapping[str, str],
) -> InputError:
    """The error, its questions with the commands that answer them, and those that come up then."""
    problems = error.problems if isinstance(error, Refusal) else (error,)
    # A command answers all that is asked, but not what must be mended in the file.
    mended = {str(problem) for problem in problems if not isinstance(problem, Question)}

    def answered(before: ReadOptions, way: Mapping[str, Any], depth: int) -> ReadOptions | None:
        """These options with a way, and more until nothing is asked; None if that fails."""
        options = {
            "drop": (*before["drop"], *way.get("drop", ())),
            "keep": (*before["keep"], *way.get("keep", ())),
            "add": before["add"] or way.get("add", False),
            "columns": before["columns"] | way.get("columns", {}),
            "wide": before["wide"] or way.get("wide", False),
        }
        try:
            attempt(options)
        except InputError as error:
            rest = error.problems if isinstance(error, Refusal) else (error,)
            questions = [problem for problem in rest if isinstance(problem, Question)]
            if {str(problem) for problem in rest if problem not in questions} - mended:
                return None
            for further, _ in questions[0].ways if questions and depth else ():
                if (enough := answered(options, further, depth - 1)) is not None:
                    return enough
            return None if questions else options
        return options

    lines = list[str]()
    for problem in problems:
        parts = [str(problem)]
        for way, effect in problem.ways if isinstance(problem, Question) else ():
            if (enough := answered(options, way, _MOST_QUESTIONS)) is not None:
                parts.append(f"{_command(enough, options, choices)} {effect}")
        lines.append("; ".join(parts))
    errors = [InputError(line) for line in lines]
    return Refusal(error.source, errors) if isinstance(error, Refusal) else errors[0]


def _command(options: ReadOptions, before: ReadOptions, choices: Mapping[str, str]) -> str:
    """The options as on the command line, without those of before."""
    words = ["--wide"] if options["wide"] and not before["wide"] else list[str]()
    for name in ("drop", "keep"):
        words += [x for text in options[name][len(before[name]) :] for x in ("--" + name, text)]
    if options["columns"]:
        columns = {x: text for x, text in choices.items() if x != REWARD} | options["columns"]
        pairs = (f"{role.replace('_', '-')}={text}" for role, text in columns.items())
        words += ["--columns", ",".join(pairs)]
    words += ["--sum"] if options["add"] and not before["add"] else []
    return shlex.join(words)


# --- From rows to instances: sums, means, bounds, and the arms that cannot be played


class _Arm(NamedTuple):
    """One arm's rows, and its means per pull."""

    instance: str
    name: str
    every: np.ndarray  # positions of its rows in ArmRows
    rows: np.ndarray  # those that are complete
    totals: tuple[float, float, float] = (0.0, 0.0, 0.0)  # clicks, value, spent
    reward: float = math.nan  # mean; NaN if the arm cannot be played
    cost: float = math.nan
    reason: str = ""  # why it cannot be played


def _instances(
    rows: ArmRows, prior: float, bounds: tuple[float | None, float | None]
) -> tuple[tuple[Instance, ...], tuple[KeptOut, ...]]:
    """The instances of at least two arms; the arms that are not in them."""
    sheet, groups = rows.sheet, list[list[_Arm]]()
    for at in rows_by_code(rows.instance.code, np.arange(len(sheet.line))):
        clicks, value, spent = (float(np.nansum(x[at])) for x in rows.amounts)
        average = (value / clicks, spent / clicks) if clicks > 0 else (0.0, 0.0)
        groups.append([_arm(rows, x, prior, average) for x in rows_by_code(rows.arm.code, at)])
    playable = [arm for group in groups for arm in group if not arm.reason]
    instances, kept_out, too_small = list[Instance](), list[tuple[_Arm, str]](), list[list[_Arm]]()
    for group in groups:
        arms = [arm for arm in group if not arm.reason]
        default = _default_bounds(rows, arms if rows.columns.kind == "facebook" else playable)
        reward_bound, cost_bound = bounds[0] or default[0], bounds[1] or default[1]
        _check_bounds(rows, arms, (reward_bound, cost_bound))
        for i, arm in enumerate(group):
            if not arm.reason and arm.cost / cost_bound == 0:
                group[i] = arm._replace(reason="its cost is too small")
        arms = [arm for arm in group if not arm.reason]
        if len(arms) > 1:
            instances.append(_instance(rows, arms, (reward_bound, cost_bound)))
        else:
            too_small.append(group)
        kept_out += [(arm, arm.reason) for arm in group if arm.reason]
    # Where a row cannot be used, it may be the missing arm.
    for group in too_small if not sheet.problems else ():
        unplayable = [arm for arm in group if arm.reason]
        if unplayable and instances:
            kept_out += [(arm, "alone in its instance") for arm in group if not arm.reason]
            continue
        sheet.problems += [_unplayable(rows, arm, bool(playable)) for arm in unplayable]
        if not unplayable:
            place = f"{sheet.source}, instance {quoted(group[0].instance)}, number of arms"
            sheet.problems.append(bad(place, len(group), "2 or more"))
    if not groups and not sheet.problems:
        reason = "no row is an arm; it must have at least two arms"
        sheet.problems.append(InputError(f"{sheet.source}: {reason}"))
    left_out = [
        KeptOut(arm.instance, arm.name, int(sheet.line[arm.rows[0]]), reason)
        for arm, reason in kept_out
    ]
    return tuple(instances), tuple(sorted(left_out, key=lambda arm: arm.line))


def _unplayable(rows: ArmRows, arm: _Arm, has_prior: bool) -> InputError:
    """Why an arm cannot be played, where its instance has too few others."""
    sheet, first = rows.sheet, int(arm.rows[0])
    if arm.reason in _INCOMPLETE:
        empty = [x for x in rows.columns.numeric() if is_nothing(sheet.of(x).row(first))]
        role = empty[0] if empty else "cost"
        return bad(sheet.cell(first, role), sheet.of(role).row(first), MAY_BE)
    keeps = " (--prior 10 keeps such arms)" * (rows.columns.kind == "counts" and has_prior)
    place, must = sheet.place(first, f"arm {quoted(arm.name)}"), "pulls, and a mean cost above 0"
    return InputError(f"{place}: {arm.reason}; two arms must have {must}{keeps}")


def _arm(rows: ArmRows, at: np.ndarray, prior: float, average: tuple[float, float]) -> _Arm:
    """The arm of these rows, perhaps with a prior of these average means, or why it has none."""
    sheet, kind, first, unit = rows.sheet, rows.columns.kind, int(at[0]), rows.columns.pull_unit
    arm = _Arm(rows.instance.row(first), rows.arm.row(first), at, at)
    for again in at[1:] if kind == "means" else ():
        place = sheet.place(again, f"instance {quoted(arm.instance)}, name")
        must = f"another name, line {sheet.line[first]} has this one"
        sheet.problems.append(bad(place, arm.name, must))
    complete = at[rows.complete[at]]
    if not complete.size:
        missing = 0 if kind == "counts" else 1 if np.isnan(rows.value[first]) else 2
        return arm._replace(reason=_INCOMPLETE[missing])
    clicks, value, spent = (math.fsum(x[complete].tolist()) for x in rows.amounts)
    for role, column, total in (("conversions", rows.value, value), ("spent", rows.spent, spent)):
        if total < 0:  # refunds may make a row negative, not an arm
            worst = int(complete[np.argmin(column[complete])])
            place = f"{sheet.cell(worst, role)} (arm {quoted(arm.name)} in all)"
            sheet.problems.append(bad(place, total, MAY_BE))
    arm = arm._replace(rows=complete, totals=(clicks, value, spent))
    if clicks + prior == 0:
        but = [f"{rows.style.money(spent)} spent"] * (spent > 0)
        but += [f"a reward of {value:g}"] * (value > 0)
        return arm._replace(reason=f"no {unit}s{' but ' * bool(but)}{' and '.join(but)}")
    if kind in ("log", "means"):
        # Rounding may lift the mean of equal values above them, and so above the bound.
        means = [float(min(np.mean(x[complete]), np.max(x[complete]))) for x in rows.amounts[1:]]
    else:
        sums = zip((value, spent), average, strict=True)
        means = [(x + prior * mean) / (clicks + prior) for x, mean in sums]
    if kind == "facebook":
        means[0] = means[0] or _ZERO_REWARD_BECOMES
    if means[1] == 0:
        brought = f" and brought {value:,.10g}" if value and kind == "counts" else ""
        return arm._replace(reason=f"it cost nothing{brought}")
    if not math.isfinite(means[1] / _LARGEST_SCALED_MEAN):
        return arm._replace(reason="its cost is too large")
    return arm._replace(reward=means[0], cost=means[1])


def _default_bounds(rows: ArmRows, arms: Sequence[_Arm]) -> tuple[float, float]:
    """Of rewards and costs, where none is given; see :func:`read_arms`."""
    kind, columns = rows.columns.kind, rows.columns
    if not arms:
        return 1.0, 1.0
    if kind == "log":
        at, share = np.concatenate([arm.rows for arm in arms]), 1.0
        reward, cost = float(rows.value[at].max()), float(rows.spent[at].max())
    else:
        reward, cost = max(arm.reward for arm in arms), max(arm.cost for arm in arms)
        share = _LARGEST_SCALED_MEAN
    is_amount = kind == "log" or columns.is_value or (kind == "means" and not columns.plain)
    own_reward = kind == "facebook" or (reward > 1 and is_amount)
    own_cost = kind == "facebook" or cost > 1 or (not columns.plain and cost < _SMALL_COST)
    return reward / share if own_reward else 1.0, cost / share if own_cost else 1.0


def _check_bounds(rows: ArmRows, arms: Sequence[_Arm], bounds: tuple[float, float]) -> None:
    """What is above a bound is a problem: single rewards of a log or of means, else means."""
    kind, single = rows.columns.kind, rows.columns.kind in ("log", "means")
    for name, column, bound in zip(("reward", "cost"), rows.amounts[1:], bounds, strict=True):
        above = [
            (arm.rows[0], getattr(arm, name)) for arm in arms if not getattr(arm, name) <= bound
        ]
        if single and arms:
            at = np.concatenate([arm.rows for arm in arms])
            above = [(i, float(column[i])) for i in at[~(column[at] <= bound)]]
        for i, value in above:
            mean = "" if kind == "log" else "mean "
            excess = f"{mean}{name} {value} is above its bound {bound}"
            say = f"raise {name}_max (--{name}-max)"
            if name == "reward" and not single:
                say += f" to {max(arm.reward for arm in arms):.6g} or more"
            place = rows.sheet.place(i, f"arm {quoted(rows.arm.row(i))}")
            rows.sheet.problems.append(InputError(f"{place}: {excess}; {say}"))


def _instance(rows: ArmRows, arms: Sequence[_Arm], bounds: tuple[float, float]) -> Instance:
    """The instance of at least two playable arms, with its evidence."""
    kind, costs, bound = rows.columns.kind, np.array([arm.cost for arm in arms]), bounds[1]
    log = [(rows.value[arm.rows], rows.spent[arm.rows]) for arm in arms] if kind == "log" else []
    cost_bound: float | tuple[float, float] = bound
    if rows.spent2 is not None:  # beside the first cost; its bound is that of this instance's arms
        second_costs = [rows.spent2[arm.rows] for arm in arms]
        pulls = [rows.clicks[arm.rows].sum() for arm in arms]  # 1 a row but in counts
        means = np.array([x.sum() / n for x, n in zip(second_costs, pulls, strict=True)])
        largest = max(x.max() for x in second_costs) if log else means.max() / _LARGEST_SCALED_MEAN
        costs, cost_bound = np.stack([costs, means], axis=1), (bound, float(largest) or 1.0)
        log = [(r, np.stack([c, x], axis=1)) for (r, c), x in zip(log, second_costs, strict=False)]
    return Instance(
        name=arms[0].instance,
        arms=tuple(arm.name for arm in arms),
        mean_reward=_fixed([arm.reward for arm in arms]),
        mean_cost=_fixed(costs),
        reward_bound=bounds[0],
        cost_bound=cost_bound,
        log=tuple((_fixed(r), _fixed(c)) for r, c in log) or None,
        evidence=_evidence(rows, arms),
    )


def _evidence(rows: ArmRows, arms: Sequence[_Arm]) -> Evidence:
    kind = rows.columns.kind
    if kind == "means":
        return NO_EVIDENCE
    clicks, value, spent = map(_fixed, zip(*(arm.totals for arm in arms), strict=True))
    if kind == "log":
        whole = all(np.isin(rows.value[arm.rows], (0, 1)).all() for arm in arms)
        return Evidence(kind, clicks, value, spent, whole, None, _pulls(rows, arms))
    is_count = (value % 1 == 0) & (value <= clicks)
    daily = None
    if kind == "counts" and any(arm.rows.size > 1 for arm in arms):
        daily = tuple(_daily(rows, arm) for arm in arms)
    whole = bool(is_count.all()) and not rows.columns.is_value
    return Evidence(kind, clicks, value, spent, whole, daily)


def _daily(rows: ArmRows, arm: _Arm) -> Daily:
    """Rows of one day summed; those without a day stand at the end, each for itself."""
    day = np.full(arm.rows.size, np.datetime64("NaT", "D"))
    if rows.time is not None:
        day = rows.time[arm.rows].astype("datetime64[D]")
    dated = ~np.isnat(day)
    days, place = np.unique(day[dated], return_inverse=True)
    columns = [column[arm.rows] for column in rows.amounts]
    sums = [np.concatenate([np.bincount(place, x[dated], days.size), x[~dated]]) for x in columns]
    return Daily(np.concatenate([days, day[~dated]]), *map(_fixed, sums))


def _pulls(rows: ArmRows, arms: Sequence[_Arm]) -> Pulls:
    """All rows of these arms, in time order; a row without a time stays behind the one above."""
    number = np.full(len(rows.sheet.line), -1)
    for i, arm in enumerate(arms):
        number[arm.every] = i
    at = np.flatnonzero(number >= 0)
    if rows.time is not None:
        times = rows.time[at]
        dated = np.maximum.accumulate(np.where(np.isnat(times), -1, np.arange(at.size)))
        earliest = np.datetime64(np.iinfo(np.int64).min + 1, "us")
        at = at[np.argsort(np.where(dated < 0, earliest, times[dated]), kind="stable")]
    time = None if rows.time is None else rows.time[at]
    return Pulls(number[at], _fixed(rows.value[at]), _fixed(rows.spent[at]), time)


def _fixed(values: ArrayLike) -> FloatArray:
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array
