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

from jaxbandits.apps.comparison._reading.columns import REWARD, ROLES
from jaxbandits.apps.comparison._reading.facebook import facebook_rows
from jaxbandits.apps.comparison._reading.numbers import MAY_BE, is_nothing
from jaxbandits.apps.comparison._reading.rows import Rows, read_rows, unit_of_rewards
from jaxbandits.apps.comparison._reading.sheet import (
    Question,
    Refusal,
    Sheet,
    grouped,
    read_bytes,
    read_sheet,
)
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
_NOT_KNOWN = ("a number is not known", "no reward", "no cost")
_ZERO_REWARD_BECOMES = 0.01  # in the Facebook file, as in the paper
Options = dict[str, Any]  # drop, keep, add and columns, as far as a question may ask for them
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
    amounts = {"reward_max (--reward-max)": reward_max, "cost_max (--cost-max)": cost_max, "prior": prior}
    positive = [x if x is None else positive_number(name, x) for name, x in amounts.items()]
    reward_max, cost_max, prior = positive
    if decimal not in (None, ".", ","):
        raise bad("decimal", decimal, "'.' or ','")
    content = read_bytes(path)
    asked = _asked(columns, reward)

    def attempt(options: Options) -> ArmsTable:
        sheet = read_sheet(path, content, asked | options["columns"], encoding)
        return _table(path, sheet, instances, (reward_max, cost_max), prior, decimal, options)

    options = {"drop": tuple(drop), "keep": tuple(keep), "add": add, "columns": {}}
    try:
        return attempt(options)
    except InputError as error:
        raise _with_commands(error, attempt, options, asked) from None


def _asked(columns: Mapping[str, str] | None, reward: str | None) -> dict[str, str]:
    asked = dict(columns or {}) | ({REWARD: reward} if reward is not None else {})
    for role, text in asked.items():
        if role not in (*ROLES, REWARD):
            raise bad("columns", role, f"one of {', '.join(ROLES)}")
        if not isinstance(text, str) or not text.strip():
            must = f"the title of the column that is {role.removeprefix('--')}"
            raise bad("reward" if role == REWARD else "columns", text, must)
    return {role: " ".join(text.split()) for role, text in asked.items()}


def _table(
    path: str | os.PathLike[str],
    sheet: Sheet,
    instances: str,
    bounds: tuple[float | None, float | None],
    prior: float | None,
    decimal: str | None,
    options: Options,
) -> ArmsTable:
    if sheet.columns.kind == "facebook":
        rows = facebook_rows(sheet, repair=instances == "repaired")
    else:
        sheet.notes += _notes_on_columns(sheet)
        name = "stdin" if path == "-" else Path(path).stem
        rows = read_rows(sheet, name, decimal, options)
    kind = rows.columns.kind
    if prior and rows.spent2 is not None:
        raise bad("prior", prior, "left out beside a second cost")
    if instances != "published" and kind != "facebook":
        sheet.notes.append(f"{instances=} has no effect on a file of {kind}")
    if prior and kind != "counts":
        sheet.notes.append(f"{prior=} has no effect on a file of {kind}")
    played, kept_out = _instances(rows, prior or 0.0, bounds)
    if sheet.problems:
        raise Refusal(sheet.source, sheet.problems)
    _note_arms(rows, played, kept_out, prior, bounds[0])
    second = sheet.columns.at.get("cost2", -1)  # a number has no title
    pulls = f"{rows.columns.pull_unit}s"
    return ArmsTable(
        kind=kind,
        instances=played,
        notes=(*sheet.changes, *sheet.notes),
        reward_unit=unit_of_rewards(rows),
        cost_unit="cost" if kind in ("means", "log") else "spent",
        sha256=sheet.sha256,
        pull_unit=rows.columns.pull_unit,
        style=rows.style,
        kept_out=kept_out,
        changes=len(sheet.changes),
        path=os.fspath(path),
        cost2_unit="" if rows.spent2 is None else sheet.titles[second] if second >= 0 else pulls,
    )


# --- Questions, each with the options that answer it. A command is printed only if it reads the file.

_MOST_QUESTIONS = 4  # one behind another


def _with_commands(
    error: InputError,
    attempt: Callable[[Options], ArmsTable],
    options: Options,
    asked: Mapping[str, str],
) -> InputError:
    """The error, its questions with the commands that answer them, and those that come up then."""
    problems = error.problems if isinstance(error, Refusal) else (error,)

    def answered(options: Options, others: set[str], most: int) -> Options | None:
        """These options, and more until nothing is asked but what others ask; None if that fails."""
        try:
            attempt(options)
        except InputError as error:
            again = error.problems if isinstance(error, Refusal) else (error,)
            questions = [problem for problem in again if isinstance(problem, Question)]
            if {str(problem) for problem in again if problem not in questions} - others:
                return None
            for way, _ in questions[0].ways if questions and most else ():
                if (further := answered(_joined(options, way), others, most - 1)) is not None:
                    return further
            return None if {str(problem) for problem in questions} - others else options
        return options

    # A command answers all that is asked, but what must be mended in the file; or else what it can.
    mended = {str(problem) for problem in problems if not isinstance(problem, Question)}
    commands = dict[int, list[str]]()
    for others in (mended, {str(problem) for problem in problems}):
        for n, problem in enumerate(problems) if not any(commands.values()) else ():
            for way, effect in problem.ways if isinstance(problem, Question) else ():
                rest = others - {str(problem)}
                if (enough := answered(_joined(options, way), rest, _MOST_QUESTIONS)) is not None:
                    command = f"{_command(enough, options, asked)} {effect}"
                    commands.setdefault(n, []).append(command)
    texts = ["; ".join([str(x), *commands.get(n, ())]) for n, x in enumerate(problems)]
    errors = [InputError(text) for text in texts]
    return Refusal(error.source, errors) if isinstance(error, Refusal) else errors[0]


def _joined(options: Options, way: Mapping[str, Any]) -> Options:
    """The options with one way more."""
    return {
        "drop": (*options["drop"], *way.get("drop", ())),
        "keep": (*options["keep"], *way.get("keep", ())),
        "add": options["add"] or way.get("add", False),
        "columns": options["columns"] | way.get("columns", {}),
    }


def _command(options: Options, before: Options, asked: Mapping[str, str]) -> str:
    """The options as on the command line, without those of before."""
    words = list[str]()
    for name in ("drop", "keep"):
        words += [x for text in options[name][len(before[name]) :] for x in ("--" + name, text)]
    if options["columns"]:
        columns = {role: text for role, text in asked.items() if role != REWARD} | options["columns"]
        named = ",".join(f"{role.replace('_', '-')}={text}" for role, text in columns.items())
        words += ["--columns", named]
    words += ["--sum"] if options["add"] and not before["add"] else []
    return shlex.join(words)


# --- From rows to instances: sums, means, bounds, and the arms that cannot be played


class _Arm(NamedTuple):
    """One arm's rows, and its means per pull."""

    instance: str
    name: str
    every: np.ndarray  # positions of its rows in Rows
    rows: np.ndarray  # those in which everything is known
    totals: tuple[float, float, float] = (0.0, 0.0, 0.0)  # clicks, value, spent
    reward: float = math.nan  # mean; NaN if the arm cannot be played
    cost: float = math.nan
    why: str = ""  # it cannot be played


def _instances(
    rows: Rows, prior: float, bounds: tuple[float | None, float | None]
) -> tuple[tuple[Instance, ...], tuple[KeptOut, ...]]:
    """The instances of at least two arms; the arms that are not in them."""
    sheet, groups = rows.sheet, list[list[_Arm]]()
    for own in grouped(rows.instance.code, np.arange(len(sheet.line))):
        clicks, value, spent = (float(np.nansum(x[own])) for x in rows.amounts)
        average = (value / clicks, spent / clicks) if clicks > 0 else (0.0, 0.0)
        groups.append([_arm(rows, at, prior, average) for at in grouped(rows.arm.code, own)])
    everyone = [arm for group in groups for arm in group if not arm.why]
    played, kept_out, too_small = list[Instance](), list[tuple[_Arm, str]](), list[list[_Arm]]()
    for group in groups:
        playable = [arm for arm in group if not arm.why]
        default = _default_bounds(rows, playable if rows.columns.kind == "facebook" else everyone)
        reward_bound, cost_bound = bounds[0] or default[0], bounds[1] or default[1]
        _check_bounds(rows, playable, (reward_bound, cost_bound))
        for i, arm in enumerate(group):
            if not arm.why and arm.cost / cost_bound == 0:
                group[i] = arm._replace(why="its cost is too small")
        playable = [arm for arm in group if not arm.why]
        if len(playable) > 1:
            played.append(_instance(rows, playable, (reward_bound, cost_bound)))
        else:
            too_small.append(group)
        kept_out += [(arm, arm.why) for arm in group if arm.why]
    # Where a row cannot be used, it may be the missing arm.
    for group in too_small if not sheet.problems else ():
        unplayable = [arm for arm in group if arm.why]
        if unplayable and played:
            kept_out += [(arm, "alone in its instance") for arm in group if not arm.why]
            continue
        for arm in unplayable:
            first, keeps = int(arm.rows[0]), ""
            if arm.why in _NOT_KNOWN:
                empty = [x for x in rows.columns.numeric() if is_nothing(sheet.of(x).row(first))]
                role = empty[0] if empty else "cost"
                sheet.problems.append(bad(sheet.cell(first, role), sheet.of(role).row(first), MAY_BE))
                continue
            if rows.columns.kind == "counts" and everyone:
                keeps = " (--prior 10 keeps such arms)"
            where, must = sheet.where(first, f"arm {quoted(arm.name)}"), "pulls, and a mean cost above 0"
            sheet.problems.append(InputError(f"{where}: {arm.why}; two arms must have {must}{keeps}"))
        if not unplayable:
            where = f"{sheet.source}, instance {quoted(group[0].instance)}, number of arms"
            sheet.problems.append(bad(where, len(group), "2 or more"))
    if not groups and not sheet.problems:
        why = "no row is an arm; it must have at least two arms"
        sheet.problems.append(InputError(f"{sheet.source}: {why}"))
    out = [KeptOut(arm.instance, arm.name, int(sheet.line[arm.rows[0]]), why) for arm, why in kept_out]
    return tuple(played), tuple(sorted(out, key=lambda arm: arm.line))


def _arm(rows: Rows, at: np.ndarray, prior: float, average: tuple[float, float]) -> _Arm:
    """The arm of these rows, perhaps with a prior of these average means, or why it has none."""
    sheet, kind, first, unit = rows.sheet, rows.columns.kind, int(at[0]), rows.columns.pull_unit
    arm = _Arm(rows.instance.row(first), rows.arm.row(first), at, at)
    for again in at[1:] if kind == "means" else ():
        where = sheet.where(again, f"instance {quoted(arm.instance)}, name")
        must = f"another name, line {sheet.line[first]} has this one"
        sheet.problems.append(bad(where, arm.name, must))
    known = at[rows.known[at]]
    if not known.size:
        missing = 0 if kind == "counts" else 1 if np.isnan(rows.value[first]) else 2
        return arm._replace(why=_NOT_KNOWN[missing])
    clicks, value, spent = (math.fsum(x[known].tolist()) for x in rows.amounts)
    for role, column, total in (("conversions", rows.value, value), ("spent", rows.spent, spent)):
        if total < 0:  # refunds may make a row negative, not an arm
            least = int(known[np.argmin(column[known])])
            where = f"{sheet.cell(least, role)} (arm {quoted(arm.name)} in all)"
            sheet.problems.append(bad(where, total, MAY_BE))
    arm = arm._replace(rows=known, totals=(clicks, value, spent))
    if clicks + prior == 0:
        but = [f"{rows.style.money(spent)} spent"] * (spent > 0)
        but += [f"a reward of {value:g}"] * (value > 0)
        return arm._replace(why=f"no {unit}s{' but ' * bool(but)}{' and '.join(but)}")
    if kind in ("log", "means"):
        # Rounding may lift the mean of equal values above them, and so above the bound.
        means = [float(min(np.mean(x[known]), np.max(x[known]))) for x in rows.amounts[1:]]
    else:
        sums = zip((value, spent), average, strict=True)
        means = [(x + prior * of) / (clicks + prior) for x, of in sums]
    if kind == "facebook":
        means[0] = means[0] or _ZERO_REWARD_BECOMES
    if means[1] == 0:
        brought = f" and brought {value:,.10g}" if value and kind == "counts" else ""
        return arm._replace(why=f"it cost nothing{brought}")
    if not math.isfinite(means[1] / _LARGEST_SCALED_MEAN):
        return arm._replace(why="its cost is too large")
    return arm._replace(reward=means[0], cost=means[1])


def _default_bounds(rows: Rows, arms: Sequence[_Arm]) -> tuple[float, float]:
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


def _check_bounds(rows: Rows, arms: Sequence[_Arm], bounds: tuple[float, float]) -> None:
    """What is above a bound is a problem: single rewards of a log or of means, else means."""
    kind, single = rows.columns.kind, rows.columns.kind in ("log", "means")
    for name, column, bound in zip(("reward", "cost"), rows.amounts[1:], bounds, strict=True):
        above = [(arm.rows[0], getattr(arm, name)) for arm in arms if not getattr(arm, name) <= bound]
        if single and arms:
            at = np.concatenate([arm.rows for arm in arms])
            above = [(i, float(column[i])) for i in at[~(column[at] <= bound)]]
        for i, value in above:
            mean = "" if kind == "log" else "mean "
            why = f"{mean}{name} {value} is above its bound {bound}"
            say = f"raise {name}_max (--{name}-max)"
            if name == "reward" and not single:
                say += f" to {max(arm.reward for arm in arms):.6g} or more"
            where = rows.sheet.where(i, f"arm {quoted(rows.arm.row(i))}")
            rows.sheet.problems.append(InputError(f"{where}: {why}; {say}"))


def _instance(rows: Rows, arms: Sequence[_Arm], bounds: tuple[float, float]) -> Instance:
    """The instance of at least two playable arms, with its evidence."""
    kind, costs, bound = rows.columns.kind, np.array([arm.cost for arm in arms]), bounds[1]
    log = [(rows.value[arm.rows], rows.spent[arm.rows]) for arm in arms] if kind == "log" else []
    cost_bound: float | tuple[float, float] = bound
    if rows.spent2 is not None:  # beside the first cost; its bound is that of this instance's arms
        seen = [rows.spent2[arm.rows] for arm in arms]
        pulls = [rows.clicks[arm.rows].sum() for arm in arms]  # 1 a row but in counts
        means = np.array([x.sum() / n for x, n in zip(seen, pulls, strict=True)])
        most = max(x.max() for x in seen) if log else means.max() / _LARGEST_SCALED_MEAN
        costs, cost_bound = np.stack([costs, means], axis=1), (bound, float(most) or 1.0)
        log = [(r, np.stack([c, x], axis=1)) for (r, c), x in zip(log, seen, strict=False)]
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


def _evidence(rows: Rows, arms: Sequence[_Arm]) -> Evidence:
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


def _daily(rows: Rows, arm: _Arm) -> Daily:
    """Rows of one day summed; those without a day stand at the end, each for itself."""
    day = np.full(arm.rows.size, np.datetime64("NaT", "D"))
    if rows.time is not None:
        day = rows.time[arm.rows].astype("datetime64[D]")
    known = ~np.isnat(day)
    days, place = np.unique(day[known], return_inverse=True)
    columns = [column[arm.rows] for column in rows.amounts]
    sums = [np.concatenate([np.bincount(place, x[known], days.size), x[~known]]) for x in columns]
    return Daily(np.concatenate([days, day[~known]]), *map(_fixed, sums))


def _pulls(rows: Rows, arms: Sequence[_Arm]) -> Pulls:
    """All rows of these arms, in time order; a row without a time stays behind the one above."""
    number = np.full(len(rows.sheet.line), -1)
    for i, arm in enumerate(arms):
        number[arm.every] = i
    at = np.flatnonzero(number >= 0)
    if rows.time is not None:
        own = rows.time[at]
        known = np.maximum.accumulate(np.where(np.isnat(own), -1, np.arange(at.size)))
        least = np.datetime64(np.iinfo(np.int64).min + 1, "us")
        at = at[np.argsort(np.where(known < 0, least, own[known]), kind="stable")]
    time = None if rows.time is None else rows.time[at]
    return Pulls(number[at], _fixed(rows.value[at]), _fixed(rows.spent[at]), time)


def _fixed(values: ArrayLike) -> FloatArray:
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array


# --- Notes.

_REWARDS = ("conversions", "reward", "mean_reward")


def _notes_on_columns(sheet: Sheet) -> list[str]:
    """Which column is what, what else could have been meant, and what is not used."""
    columns, titles, notes = sheet.columns, [quoted(title) for title in sheet.titles], list[str]()
    at = {role: columns.at[role] for role in ("instance", "name", "time") if role in columns.at}
    at |= columns.numeric()
    if not columns.plain:
        parts = list[str]()
        for role, i in at.items():
            terms = [
                f"{sign} {titles[of] if isinstance(of, int) else f'{of:g}'}" for sign, of in columns.terms.get(role, ())
            ]
            parts.append(" ".join([f"{role} = {titles[i]}", *terms]))
        notes.append(f"columns: {', '.join(parts)}")
    if columns.other is not None:
        reward = next(titles[at[role]] for role in _REWARDS if role in at)
        other = shlex.quote(sheet.titles[columns.other])
        notes.append(f"the reward is {reward}; --reward {other} would take that column instead")
    used = columns.used()
    unused = ", ".join(text for i, text in enumerate(sheet.titles) if text and i not in used)
    return [*notes, f"columns not used: {quoted(unused)}"] if unused else notes


def _note_arms(
    rows: Rows,
    played: Sequence[Instance],
    kept_out: Sequence[KeptOut],
    prior: float | None,
    reward_max: float | None,
) -> None:
    """Sums, gaps, arms that are kept out, the prior, a bound of the rewards that was set."""
    sheet, kind, unit = rows.sheet, rows.columns.kind, rows.columns.pull_unit
    names = sum(len(instance.arms) for instance in played) + len(kept_out)
    if kind == "counts" and names < len(sheet.line):
        sheet.notes.append(f"{len(sheet.line):,} rows summed to {names:,} arms")
    if kind == "log" and (gaps := int((np.isnan(rows.value) | np.isnan(rows.spent)).sum())):
        are = "row is a gap" if gaps == 1 else "rows are gaps"
        sheet.changes.append(f"{gaps:,} {are}: without reward or cost")
    for why in dict.fromkeys(arm.reason for arm in kept_out):
        arms = [f"{quoted(arm.arm)} (line {arm.line})" for arm in kept_out if arm.reason == why]
        more = f" and {len(arms) - 5:,} more" if len(arms) > 5 else ""
        remedy = "; --prior 10 keeps such" if kind == "counts" and not prior else ""
        remedy = remedy if why not in _NOT_KNOWN else ""
        sheet.changes.append(f"kept out, {why}: {', '.join(arms[:5])}{more}{remedy}")
    if prior and kind == "counts":
        as_if = f"as if every arm had had {prior:g} {unit}s more, at its instance's average"
        sheet.notes.append(f"prior: {as_if}")
    bound = max((instance.reward_bound for instance in played), default=1.0)
    if kind != "facebook" and reward_max is None and bound > 1:
        sets = "(--reward-max sets another)"
        sheet.notes.append(f"rewards go above 1: their bound is {bound:.6g} {sets}")
