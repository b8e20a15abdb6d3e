"""From rows to instances: sums, means, bounds, and the arms that cannot be played."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jaxbandits.comparison._reading.numbers import MAY_BE, is_nothing
from jaxbandits.comparison._reading.rows import Rows
from jaxbandits.comparison._reading.sheet import coded, grouped
from jaxbandits.comparison.arms_table import Daily, Evidence, FloatArray, Instance, KeptOut, Pulls
from jaxbandits.core.checks import InputError, bad, shown

Log = tuple[tuple[FloatArray, FloatArray], ...]
LARGEST_SCALED_MEAN = 0.99
NOT_KNOWN = "a number is not known"
_SMALL_COST = 0.1  # below it a file that is not in plain form has a bound of its own


class Arm(NamedTuple):
    """One arm's rows, and its means per pull."""

    instance: str
    name: str
    every: np.ndarray  # positions of its rows in Rows
    rows: np.ndarray  # those that are complete, or counted
    reward: float = math.nan  # mean; NaN if the arm cannot be played
    cost: float = math.nan
    why: str = ""  # it cannot be played
    error: InputError | None = None  # the same, which is told if too few arms are left


def arms_of(rows: Rows, prior: float) -> list[list[Arm]]:
    """The arms of each instance, the unplayable ones among them; names that stand twice are problems of the sheet."""
    found = []
    code = coded(rows.arm)[0]
    for own in grouped(coded(rows.instance)[0], np.arange(len(rows.arm))):
        clicks, value, spent = (float(np.nansum(x[own])) for x in (rows.clicks, rows.value, rows.spent))
        rates = (value / clicks, spent / clicks) if clicks > 0 else (0.0, 0.0)
        found.append([_arm(rows, at, prior, rates) for at in grouped(code, own)])
    return found


def _arm(rows: Rows, at: np.ndarray, prior: float, average: tuple[float, float]) -> Arm:
    sheet, kind, first = rows.sheet, rows.columns.kind, int(at[0])
    arm = Arm(rows.instance[first], rows.arm[first], at, at)
    if rows.ads is not None:
        return arm._replace(reward=float(rows.ads[0][first]), cost=float(rows.ads[1][first]))
    if kind != "counts":
        for again in at[1:] if kind == "means" else ():
            where = sheet.where(again, f"instance {shown(arm.instance)}, name")
            sheet.note(bad(where, arm.name, f"another name, line {sheet.line[first]} has this one"))
        return _arm_of_means(rows, arm)
    known = at[~np.isnan(rows.clicks[at])]
    if not known.size:
        texts = {role: sheet.of(role)[first] for role in rows.columns.numeric()}
        role, text = next(((role, text) for role, text in texts.items() if is_nothing(text)), ("spent", ""))
        return arm._replace(why=NOT_KNOWN, error=bad(sheet.cell(first, role), text, MAY_BE))
    first = int(known[0])
    clicks, value, spent = _totals(rows, known)
    for role, column, total in (("conversions", rows.value, value), ("spent", rows.spent, spent)):
        if total < 0:  # refunds may make a row negative, not an arm
            where = f"{sheet.cell(int(known[np.argmin(column[known])]), role)} (arm {shown(arm.name)} in all)"
            sheet.note(bad(where, total, MAY_BE))
    if clicks + prior == 0:
        but = [f"{rows.style.money(spent)} spent"] * (spent > 0) + [f"a reward of {value:g}"] * (value > 0)
        why = f"no {rows.columns.pull_unit}s" + (f" but {' and '.join(but)}" if but else "")
        text = sheet.of("clicks")[first] or "0"
        may_be = "above 0, since means are per click" + (" (--prior 10 keeps such arms)" if average[1] > 0 else "")
        return arm._replace(rows=known, why=why, error=bad(sheet.cell(first, "clicks"), text, may_be))
    if prior:
        value, spent, clicks = value + prior * average[0], spent + prior * average[1], clicks + prior
    return _costing(rows, arm._replace(rows=known, reward=value / clicks, cost=spent / clicks), value)


def _totals(rows: Rows, at: np.ndarray) -> tuple[float, float, float]:
    """Clicks, value and spent of these rows."""
    return math.fsum(rows.clicks[at]), math.fsum(rows.value[at]), math.fsum(rows.spent[at])


def _arm_of_means(rows: Rows, arm: Arm) -> Arm:
    kind, at = rows.columns.kind, arm.every
    complete = at[~np.isnan(rows.value[at]) & ~np.isnan(rows.spent[at])]
    if not complete.size:
        first = int(at[0])
        what = "reward" if np.isnan(rows.value[first]) else "cost"
        role = what if kind == "log" else f"mean_{what}"
        error = bad(rows.sheet.cell(first, role), rows.sheet.of(role)[first], MAY_BE)
        return arm._replace(why=f"no {what}", error=error)
    # rounding may lift the mean of equal values above them, and so above the bound
    reward, cost = (float(min(np.mean(x[complete]), np.max(x[complete]))) for x in (rows.value, rows.spent))
    return _costing(rows, arm._replace(rows=complete, reward=reward, cost=cost))


def _costing(rows: Rows, arm: Arm, value: float = 0.0) -> Arm:
    """The same, unplayable if its mean cost is 0 or too large, or its mean reward too large."""
    if arm.cost == 0:
        return _unplayable(rows, arm, "it cost nothing" + (f" and brought {value:,.10g}" if value else ""))
    return arm if math.isfinite(arm.cost / LARGEST_SCALED_MEAN) else _unplayable(rows, arm, "its cost is too large")


def _unplayable(rows: Rows, arm: Arm, why: str) -> Arm:
    where = rows.sheet.where(arm.rows[0], f"arm {shown(arm.name)}, mean cost")
    return arm._replace(why=why, error=bad(where, arm.cost, "finite and above 0"))


def default_bounds(rows: Rows, arms: Sequence[Arm]) -> tuple[float, float]:
    """Of rewards and costs, where none is given; see `arms_file.read_arms`."""
    kind, columns = rows.columns.kind, rows.columns
    if not arms:
        return 1.0, 1.0
    share = 1.0 if kind == "log" else LARGEST_SCALED_MEAN
    if kind == "log":
        at = np.concatenate([arm.rows for arm in arms])
        reward, cost = float(rows.value[at].max()), float(rows.spent[at].max())
    else:
        reward, cost = max(arm.reward for arm in arms), max(arm.cost for arm in arms)
    own_reward = reward > 1 and (kind == "log" or columns.is_value or (kind == "means" and not columns.plain))
    own_cost = cost > 1 or (not columns.plain and cost < _SMALL_COST)
    either = kind == "facebook"
    return reward / share if own_reward or either else 1.0, cost / share if own_cost or either else 1.0


def fitting(rows: Rows, arms: Sequence[Arm], bounds: tuple[float, float]) -> list[Arm]:
    """The arms, unplayable where a cost vanishes beside its bound; what is above a bound is a problem of the sheet."""
    kind, single = rows.columns.kind, rows.columns.kind in ("log", "means")
    if not arms:
        return []
    for what, bound, column in zip(("reward", "cost"), bounds, (rows.value, rows.spent), strict=True):
        at = [arm.rows if single else arm.rows[:1] for arm in arms]
        of = np.repeat(np.arange(len(arms)), [len(own) for own in at])
        found = column[np.concatenate(at)] if single else np.array([getattr(arm, what) for arm in arms])
        for n in np.flatnonzero(~(found <= bound)).tolist():
            told = f"{'mean ' * (kind != 'log')}{what} {float(found[n])} is above its bound {bound}"
            told += f"; raise {what}_max (--{what}-max)"
            if what == "reward" and not single:
                told += f" to {max(arm.reward for arm in arms):.6g} or more"
            where = rows.sheet.where(np.concatenate(at)[n], f"arm {shown(arms[of[n]].name)}")
            rows.sheet.note(InputError(f"{where}: {told}"))
    vanishing = [arm.cost / bounds[1] == 0 for arm in arms]
    return [_unplayable(rows, a, "its cost is too small") if v else a for a, v in zip(arms, vanishing, strict=True)]


def kept_out(rows: Rows, arm: Arm, why: str = "") -> KeptOut:
    """What the user is told of an arm that is not played."""
    return KeptOut(arm.instance, arm.name, int(rows.sheet.line[arm.rows[0]]), why or arm.why)


def instance_of(rows: Rows, arms: Sequence[Arm], bounds: tuple[float, float]) -> Instance:
    """The instance of at least two playable arms, with its evidence."""
    rewards, costs = _fixed([arm.reward for arm in arms]), _fixed([arm.cost for arm in arms])
    names, log, bound = tuple(arm.name for arm in arms), None, bounds[1]
    if rows.columns.kind == "log":
        log = tuple((_fixed(rows.value[arm.rows]), _fixed(rows.spent[arm.rows])) for arm in arms)
    if rows.spent2 is not None:
        log, costs, bound = _of_two_costs(rows, arms, log, costs, bound)
    return Instance(arms[0].instance, names, rewards, costs, bounds[0], bound, log, _evidence(rows, arms))


def _of_two_costs(rows: Rows, arms: Sequence[Arm], log: Log | None, costs: FloatArray, bound: float) -> Any:
    """Log, mean costs and bounds with the second cost beside the first; its bound is that of this instance's arms."""
    seen = [rows.spent2[arm.rows] for arm in arms]  # type: ignore[index]
    whole = [rows.clicks[arm.rows].sum() for arm in arms]  # 1 a row but in counts
    means = np.array([x.sum() / n for x, n in zip(seen, whole, strict=True)])
    most = max(x.max() for x in seen) if rows.columns.kind == "log" else means.max() / LARGEST_SCALED_MEAN
    both = log and tuple((r, _fixed(np.stack([c, x], axis=1))) for (r, c), x in zip(log, seen, strict=True))
    return both, _fixed(np.stack([costs, means], axis=1)), (bound, float(most) or 1.0)


def _evidence(rows: Rows, arms: Sequence[Arm]) -> Evidence:
    kind = rows.columns.kind
    if kind == "means":
        return Evidence(kind, None, None, None)
    clicks, value, spent = map(_fixed, zip(*(_totals(rows, arm.rows) for arm in arms), strict=True))
    if kind == "log":
        rewards = np.concatenate([rows.value[arm.rows] for arm in arms])
        return Evidence(kind, clicks, value, spent, bool(np.isin(rewards, (0, 1)).all()), None, _pulls(rows, arms))
    whole = bool(((value % 1 == 0) & (value <= clicks)).all()) and not rows.columns.is_value
    many = kind == "counts" and any(arm.rows.size > 1 for arm in arms)
    return Evidence(kind, clicks, value, spent, whole, tuple(_daily(rows, arm) for arm in arms) if many else None)


def _daily(rows: Rows, arm: Arm) -> Daily:
    """Rows of one day summed; those without a day stand at the end, each for itself."""
    nowhen = np.full(arm.rows.size, np.datetime64("NaT", "D"))
    day = nowhen if rows.time is None else rows.time[arm.rows].astype("datetime64[D]")
    known = ~np.isnat(day)
    days, which = np.unique(day[known], return_inverse=True)
    sums = []
    for column in (rows.clicks, rows.value, rows.spent):
        of_arm = column[arm.rows]
        sums.append(_fixed(np.concatenate([np.bincount(which, of_arm[known], days.size), of_arm[~known]])))
    return Daily(np.concatenate([days, day[~known]]), *sums)


def _pulls(rows: Rows, arms: Sequence[Arm]) -> Pulls:
    """All rows of these arms, in time order; a row without a time stays behind the one above."""
    which = np.full(len(rows.arm), -1)
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
