"""Read the arms of budgeted bandits from a CSV file: means, counts, logs of pulls, or Facebook ads.

In plain form the first line names the columns, in any order and in upper or lower case (aliases in brackets):

* means:    name [arm], mean_reward, mean_cost
* counts:   name [arm], clicks, spent [spend, cost], conversions [conversion, total_conversion]
* log:      name [arm], reward, cost; one row per pull
* facebook: campaign_id [xyz_campaign_id], age, gender, clicks, spent, total_conversion

An `instance` column in the first three holds several independent problems in one file; `ad_id` names the Facebook arms.
Files as programs export them are read too; the rules stand in docs/arms-files.md, and the notes say which were used.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from jaxbandits.comparison._reading.arms import NOT_KNOWN, Arm, arms_of, default_bounds, fitting, instance_of, kept_out
from jaxbandits.comparison._reading.columns import REWARD, ROLES, Asked
from jaxbandits.comparison._reading.facebook import facebook_rows
from jaxbandits.comparison._reading.rows import Choices, Rows, read_rows, unit_of_rewards
from jaxbandits.comparison._reading.sheet import Sheet, read_sheet
from jaxbandits.comparison.arms_table import ArmsTable, Instance, KeptOut
from jaxbandits.core.checks import InputError, bad, positive_number, shown


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
    """Read an arms file; the header decides the format (see the module's text for the columns).

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
    reward_max = None if reward_max is None else positive_number("reward_max (--reward-max)", reward_max)
    cost_max = None if cost_max is None else positive_number("cost_max (--cost-max)", cost_max)
    prior = 0.0 if prior is None else positive_number("prior", prior)
    if encoding is not None and not isinstance(encoding, str):
        raise bad("encoding", encoding, "the name of an encoding, such as cp1251")
    if decimal not in (None, ".", ","):
        raise bad("decimal", decimal, "'.' or ','")
    sheet = read_sheet(path, _asked(columns, reward), encoding)
    report = sheet.report
    if sheet.columns.kind == "facebook":
        rows = facebook_rows(sheet, repair=instances == "repaired")
    else:
        report.others += _of_columns(sheet)
        choices = Choices(frozenset(drop), frozenset(keep), add)
        rows = read_rows(sheet, "stdin" if path == "-" else Path(path).stem, decimal, choices)
    kind = rows.columns.kind
    if prior and rows.spent2 is not None:
        raise bad("prior", prior, "left out beside a second cost")
    for given, used in (
        (f"{instances=}" * (instances != "published"), "facebook"),
        (f"{prior=}" * (prior > 0), "counts"),
    ):
        report.others += [f"{given} has no effect on a file of {kind}"] if given and kind != used else []
    found, out = _instances(rows, prior, (reward_max, cost_max))
    report.tell(sheet.source)
    _tell_of_arms(rows, found, out, prior, reward_max)
    units = unit_of_rewards(rows), "cost" if kind in ("means", "log") else "spent"
    notes, pull_unit = (*report.changes, *report.others), rows.columns.pull_unit
    made = ArmsTable(kind, found, notes, *units, sheet.sha256, pull_unit, rows.style, out, len(report.changes))
    return made if rows.spent2 is None else replace(made, cost2_unit=sheet.titles[sheet.columns.at["cost2"]])


def _asked(columns: Mapping[str, str] | None, reward: str | None) -> Asked:
    given = dict(columns or {}) | ({REWARD: reward} if reward is not None else {})
    for role, text in given.items():
        if role not in (*ROLES, REWARD):
            raise bad("columns", role, f"one of {', '.join(ROLES)}")
        if not isinstance(text, str) or not text.strip():
            may_be = f"the title of the column that is {role.removeprefix('--')}"
            raise bad("reward" if role == REWARD else "columns", text, may_be)
    return {role: " ".join(text.split()) for role, text in given.items()}


def _instances(
    rows: Rows, prior: float, given: tuple[float | None, float | None]
) -> tuple[tuple[Instance, ...], tuple[KeptOut, ...]]:
    """The instances of at least two arms; the arms that are not in them."""
    groups, sheet = arms_of(rows, prior), rows.sheet
    everyone = [arm for group in groups for arm in group if not arm.why]
    found, out, lost = list[Instance](), list[KeptOut](), list[list[Arm]]()
    for group in groups:
        playable = [arm for arm in group if not arm.why]
        default = default_bounds(rows, playable if rows.columns.kind == "facebook" else everyone)
        bounds = given[0] or default[0], given[1] or default[1]
        fit = iter(fitting(rows, playable, bounds))
        group = [arm if arm.why else next(fit) for arm in group]
        playable = [arm for arm in group if not arm.why]
        if len(playable) > 1:
            found.append(instance_of(rows, playable, bounds))
        else:
            lost.append(group)
        out += [kept_out(rows, arm) for arm in group if arm.why]
    for group in lost if not sheet.report.problems else ():  # where a row cannot be used, it may be the missing arm
        errors = [arm.error for arm in group if arm.error is not None]
        if errors and found:
            out += [kept_out(rows, arm, "alone in its instance") for arm in group if not arm.why]
            continue
        where = f"{sheet.source}, instance {shown(group[0].instance)}, number of arms"
        for error in errors or [bad(where, len(group), "2 or more")]:
            sheet.note(error)
    if not groups and not sheet.report.problems:
        sheet.note(InputError(f"{sheet.source}: no row is an arm; it must have at least two arms"))
    return tuple(found), tuple(sorted(out, key=lambda arm: arm.line))


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
    rows: Rows, found: Sequence[Instance], out: Sequence[KeptOut], prior: float, reward_max: float | None
) -> None:
    """Sums, gaps, arms that are kept out, the prior, a bound of the rewards that was set."""
    kind, unit, changes, others = (
        rows.columns.kind,
        rows.columns.pull_unit,
        rows.sheet.report.changes,
        rows.sheet.report.others,
    )
    names = sum(len(instance.arms) for instance in found) + len(out)
    if kind == "counts" and names < len(rows.arm):
        others.append(f"{len(rows.arm):,} rows summed to {names:,} arms")
    if kind == "log" and (gaps := int((np.isnan(rows.value) | np.isnan(rows.spent)).sum())):
        changes.append(f"{gaps:,} {'row is a gap' if gaps == 1 else 'rows are gaps'}: without reward or cost")
    for why in dict.fromkeys(arm.reason for arm in out):
        arms = [f"{shown(arm.arm)} (line {arm.line})" for arm in out if arm.reason == why]
        more = f" and {len(arms) - 5:,} more" if len(arms) > 5 else ""
        remedy = "; --prior 10 keeps such" if kind == "counts" and not prior and why != NOT_KNOWN else ""
        changes.append(f"kept out, {why}: {', '.join(arms[:5])}{more}{remedy}")
    if prior and kind == "counts":
        others.append(f"prior: as if every arm had had {prior:g} {unit}s more, at its instance's average")
    bound = max((instance.reward_bound for instance in found), default=1.0)
    if kind != "facebook" and reward_max is None and bound > 1:
        others.append(f"rewards go above 1: their bound is {bound:.6g} (--reward-max sets another)")
