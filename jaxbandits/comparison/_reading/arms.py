"""From rows to instances: sums, means, bounds, and the arms that cannot be played."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from jaxbandits.comparison._reading.numbers import MAY_BE, is_nothing
from jaxbandits.comparison._reading.rows import Rows
from jaxbandits.comparison._reading.sheet import Problems
from jaxbandits.comparison.arms_table import Daily, Evidence, FloatArray, Instance, KeptOut, Pulls
from jaxbandits.core.checks import InputError, bad, shown

LARGEST_SCALED_MEAN = 0.99
NOT_KNOWN = "a number is not known"
_SMALL_COST = 0.1  # below it a file that is not in plain form has a bound of its own


@dataclass(frozen=True, eq=False)
class Arm:
    """One arm's rows, and its means per pull.

    Attributes:
        rows: positions in :class:`~jaxbandits.comparison._reading.rows.Rows`; of a log those that are complete.
        reward, cost: the means; NaN if the arm cannot be played.
        why: the reason for that, or the empty text.
        error: the same as an error, which is told if too few arms are left.
    """

    instance: str
    name: str
    rows: np.ndarray
    reward: float
    cost: float
    why: str = ""
    error: InputError | None = None


def grouped(keys: Sequence[str], rows: np.ndarray) -> dict[str, np.ndarray]:
    """Rows of equal key together, in order of first appearance."""
    own = [keys[row] for row in rows.tolist()]
    place = {key: n for n, key in enumerate(dict.fromkeys(own))}
    which = np.fromiter(map(place.__getitem__, own), np.int64, len(own))
    ends = np.cumsum(np.bincount(which, minlength=len(place)))[:-1]
    return dict(zip(place, np.split(rows[np.argsort(which, kind="stable")], ends), strict=bool(place)))


def arms_of(rows: Rows, prior: float, problems: Problems) -> list[list[Arm]]:
    """The arms of each instance, the unplayable ones among them; ``problems`` then has names that stand twice."""
    found = []
    for instance, own in grouped(rows.instance, np.arange(len(rows.sheet.line))).items():
        arms = grouped(rows.arm, own)
        if rows.columns.kind == "means":
            for name, at in arms.items():
                for again in at[1:]:
                    where = f"{rows.sheet.source}, line {rows.sheet.line[again]}, instance {shown(instance)}, name"
                    problems.note(bad(where, name, f"another name, line {rows.sheet.line[at[0]]} has this one"))
        clicks, value, spent = (float(np.nansum(x[own])) for x in (rows.clicks, rows.value, rows.spent))
        rates = (value / clicks, spent / clicks) if clicks > 0 else (0.0, 0.0)
        _check_sums(rows, arms, problems)
        found.append([_arm(rows, instance, name, at, prior, rates) for name, at in arms.items()])
    return found


def _check_sums(rows: Rows, arms: Mapping[str, np.ndarray], problems: Problems) -> None:
    """Refunds may make a row negative, not an arm."""
    for name, at in arms.items() if rows.columns.kind == "counts" else ():
        for role, column in (("conversions", rows.value), ("spent", rows.spent)):
            if np.nansum(column[at]) < 0:
                row = int(at[np.nanargmin(column[at])])
                where = f"{rows.where(row, role)} (arm {shown(name)} in all)"
                problems.note(bad(where, float(np.nansum(column[at])), MAY_BE))


def _arm(rows: Rows, instance: str, name: str, at: np.ndarray, prior: float, average: tuple[float, float]) -> Arm:
    kind, first = rows.columns.kind, int(at[0])
    if rows.ads is not None:
        return Arm(instance, name, at, float(rows.ads[0][first]), float(rows.ads[1][first]))
    if kind != "counts":
        return _arm_of_means(rows, instance, name, at)
    known = at[~np.isnan(rows.clicks[at])]
    if not known.size:
        texts = {role: rows.text(first, role) for role in rows.columns.numeric() if is_nothing(rows.text(first, role))}
        role, text = next(iter(texts.items()), ("spent", ""))
        error = bad(rows.where(first, role), text, MAY_BE)
        return Arm(instance, name, at, math.nan, math.nan, NOT_KNOWN, error)
    at, first = known, int(known[0])
    clicks, value, spent = (math.fsum(x[at]) for x in (rows.clicks, rows.value, rows.spent))
    if clicks + prior == 0:
        but = [f"{rows.style.money(spent)} spent"] * (spent > 0) + [f"a reward of {value:g}"] * (value > 0)
        why = f"no {rows.columns.pull_unit}s" + (f" but {' and '.join(but)}" if but else "")
        text, where = rows.text(first, "clicks") or "0", rows.where(first, "clicks")
        may_be = "above 0, since means are per click" + (" (--prior 10 keeps such arms)" if average[1] > 0 else "")
        return Arm(instance, name, at, math.nan, math.nan, why, bad(where, text, may_be))
    if prior:
        value, spent, clicks = value + prior * average[0], spent + prior * average[1], clicks + prior
    return _costing(rows, Arm(instance, name, at, value / clicks, spent / clicks), value)


def _costing(rows: Rows, arm: Arm, value: float = 0.0) -> Arm:
    """The same, unplayable if its mean cost is 0 or too large, or its mean reward too large."""
    why = ""
    if arm.cost == 0:
        why = "it cost nothing" + (f" and brought {value:,.10g}" if value else "")
    elif not math.isfinite(arm.cost / LARGEST_SCALED_MEAN):
        why = "its cost is too large"
    return _unplayable(rows, arm, why) if why else arm


def _unplayable(rows: Rows, arm: Arm, why: str) -> Arm:
    where = f"{rows.sheet.source}, line {rows.sheet.line[arm.rows[0]]}, arm {shown(arm.name)}, mean cost"
    return replace(arm, why=why, error=bad(where, arm.cost, "finite and above 0"))


def _arm_of_means(rows: Rows, instance: str, name: str, at: np.ndarray) -> Arm:
    kind = rows.columns.kind
    complete = at[~np.isnan(rows.value[at]) & ~np.isnan(rows.spent[at])]
    if not complete.size:
        first = int(at[0])
        what = "reward" if np.isnan(rows.value[first]) else "cost"
        role = what if kind == "log" else f"mean_{what}"
        error = bad(rows.where(first, role), rows.text(first, role), MAY_BE)
        return Arm(instance, name, at, math.nan, math.nan, f"no {what}", error)
    # rounding may lift the mean of equal values above them, and so above the bound
    reward, cost = (float(min(np.mean(x[complete]), np.max(x[complete]))) for x in (rows.value, rows.spent))
    return _costing(rows, Arm(instance, name, complete, reward, cost))


def default_bounds(rows: Rows, arms: Sequence[Arm]) -> tuple[float, float]:
    """Of rewards and costs, where none is given; see `arms_file.read_arms`."""
    kind, columns = rows.columns.kind, rows.columns
    if not arms:
        return 1.0, 1.0
    if kind == "log":
        at = np.concatenate([arm.rows for arm in arms])
        reward, cost = float(rows.value[at].max()), float(rows.spent[at].max())
    else:
        reward, cost = max(arm.reward for arm in arms), max(arm.cost for arm in arms)
    share = 1.0 if kind == "log" else LARGEST_SCALED_MEAN
    if kind == "facebook":
        return reward / share, cost / share
    own_reward = reward > 1 and (kind == "log" or columns.is_value or (kind == "means" and not columns.plain))
    own_cost = cost > 1 or (not columns.plain and cost < _SMALL_COST)
    return reward / share if own_reward else 1.0, cost / share if own_cost else 1.0


def fitting(rows: Rows, arms: Sequence[Arm], bounds: tuple[float, float], problems: Problems) -> list[Arm]:
    """The arms, unplayable where a cost vanishes beside its bound; ``problems`` then has what is above a bound."""
    single = rows.columns.kind in ("log", "means")
    limits = zip(("reward", "cost"), bounds, ("reward_max (--reward-max)", "cost_max (--cost-max)"), strict=True)
    for what, bound, argument in limits:
        for arm in arms:
            values = (rows.value if what == "reward" else rows.spent)[arm.rows]
            found = values if single else np.array([getattr(arm, what)])
            for i in np.flatnonzero(~(found <= bound)):
                where = f"{rows.sheet.source}, line {rows.sheet.line[arm.rows[i]]}, arm {shown(arm.name)}"
                label = what if rows.columns.kind == "log" else f"mean {what}"
                told = f"{label} {float(found[i])} is above its bound {bound}; raise {argument}"
                if what == "reward" and not single:
                    told += f" to {max(arm.reward for arm in arms):.6g} or more"
                problems.note(InputError(f"{where}: {told}"))
    vanishing = [arm.cost / bounds[1] == 0 for arm in arms]
    return [_unplayable(rows, a, "its cost is too small") if v else a for a, v in zip(arms, vanishing, strict=True)]


def kept_out(rows: Rows, arm: Arm, why: str = "") -> KeptOut:
    """What the user is told of an arm that is not played."""
    return KeptOut(arm.instance, arm.name, rows.sheet.line[arm.rows[0]], why or arm.why)


def instance_of(rows: Rows, arms: Sequence[Arm], bounds: tuple[float, float]) -> Instance:
    """The instance of at least two playable arms, with its evidence."""
    kind, names = rows.columns.kind, tuple(arm.name for arm in arms)
    log = None
    if kind == "log":
        log = tuple((_fixed(rows.value[arm.rows]), _fixed(rows.spent[arm.rows])) for arm in arms)
    rewards, costs = _fixed([arm.reward for arm in arms]), _fixed([arm.cost for arm in arms])
    return Instance(arms[0].instance, names, rewards, costs, *bounds, log, _evidence(rows, arms))


def _evidence(rows: Rows, arms: Sequence[Arm]) -> Evidence:
    kind = rows.columns.kind
    if kind == "means":
        return Evidence(kind, None, None, None)
    clicks, value, spent = (
        _fixed([math.fsum(x[arm.rows]) for arm in arms]) for x in (rows.clicks, rows.value, rows.spent)
    )
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
        sums.append(_fixed([*np.bincount(which, of_arm[known], days.size), *of_arm[~known]]))
    return Daily(np.concatenate([days, day[~known]]), *sums)


def _pulls(rows: Rows, arms: Sequence[Arm]) -> Pulls:
    """All rows of these arms, in time order; a row without a time stays behind the one above."""
    position = {(arm.instance, arm.name): i for i, arm in enumerate(arms)}
    own = zip(rows.instance, rows.arm, strict=True)
    which = np.fromiter((position.get(key, -1) for key in own), np.int64, len(rows.sheet.line))
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
