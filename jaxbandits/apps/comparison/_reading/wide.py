"""A table of requests: a column of scores for each arm, perhaps one of costs, and a row for each
request that all arms were tried on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from jaxbandits.apps.comparison._reading import numbers
from jaxbandits.apps.comparison._reading.columns import (
    REWARD,
    Choices,
    Columns,
    Question,
    pattern,
    role_words,
    title,
)
from jaxbandits.apps.comparison._reading.rows import ArmRows
from jaxbandits.apps.comparison._reading.sheet import Column, Refusal, Sheet
from jaxbandits.core.checks import InputError, bad, brief, quoted

_BETWEEN = re.compile(r"[\s_|:.,/()\[\]-]+")
_COST = ("cost", "spent", "mean_cost")
_MONEY = ("dollars", "usd", "euros", "eur")
_PARTS = ("cent", "cents", "¢", "micro", "micros")
_SCORE = ("reward", "solved", "conversions", "value", "mean_reward")
_MEAN = re.compile(rf"{pattern('total')}|{pattern('mean')}|std|count|min|max", re.IGNORECASE)
_ID = re.compile(r"(?:.*[\s_-])?(?:id|index|idx|no|nr|#)", re.IGNORECASE)


class _Title(NamedTuple):
    """A title taken apart: "gpt-4_cost", "cost: gpt-4" and "gpt-4|total_cost" are the cost of gpt-4."""

    at: int  # the column
    arm: str
    word: str  # cost, score, …; empty where the title is the arm's name alone
    is_cost: bool = False


def _taken_apart(at: int, text: str) -> _Title:
    parts = [_Title(at, text, "")]
    for cut in _BETWEEN.finditer(text):
        before, behind = text[: cut.start()], text[cut.end() :]
        for word, arm in ((behind, before), (before, behind)):
            is_cost = title(word).is_any(*_COST) or word.casefold() in _MONEY
            if (arm := arm.strip(" _|:.()[]/-")) and (is_cost or title(word).is_any(*_SCORE)):
                parts.append(_Title(at, arm, word.strip(" ()[]"), is_cost))
    return max(parts, key=lambda part: len(part.word))


def read_requests(
    sheet: Sheet,
    default_name: str,
    decimal: str | None,
    choices: Choices,
    options: Mapping[str, Any],
) -> ArmRows:
    """The rows of a table of requests as those of a log, arm by arm: row j of each is one request.

    ``options["wide"]`` is ``"offered"`` where nobody said that the file is such a table: then its
    titles, or scores of at most 1, must say so.
    """
    for role, text in choices.items():
        if role == REWARD:
            raise bad("reward", text, "left out with wide (drop leaves out columns)")
        if role not in ("cost", "cost2") or (numbers.plain_number(text) or 0) <= 0:
            must = "cost or cost2 with wide, a number above 0: what every request costs"
            raise bad("columns", f"{role}={text}", must)
    longer = np.isin(sheet.line, list(sheet.wide))
    for i in np.flatnonzero(longer).tolist():
        must = f"at most {len(sheet.titles)}, as in the header"
        place = sheet.place(i, "number of cells")
        sheet.problems.append(bad(place, sheet.wide[sheet.line[i]], must))
    if sheet.problems:  # which cell stands in which column is not known
        raise Refusal(sheet.source, sheet.problems)
    scores, costs = _columns(sheet, options["drop"], "cost" in choices)
    sheet = _requests(sheet, {part.at for part in (*scores, *costs)}, options)
    titles = [sheet.titles[part.at] for part in (*scores, *costs)]
    cells = [sheet.cells[part.at] for part in (*scores, *costs)]
    read, style, note = numbers.read_numbers(cells, [False] * len(cells), sheet.separator, decimal)
    sheet.changes += [note] if note else []
    whole = np.ones(len(sheet.line), bool)
    for text, texts, column in zip(titles, cells, read, strict=True):
        is_number = column.state == numbers.NUMBER
        bare = is_number & ~column.percent & (column.values != 0)
        wrong = ~(is_number | np.isin(column.state, (numbers.NOTHING, numbers.UNKNOWN)))
        for i in np.flatnonzero(wrong | (column.percent & bare.any())).tolist():
            place = sheet.place(i, f"column {text}")
            sheet.problems.append(bad(place, texts.row(i), numbers.MAY_BE))
        whole &= is_number
    if (gaps := np.flatnonzero(~whole)).size:
        are = "request is" if gaps.size == 1 else "requests are"
        reason = f"left out, without a number of each arm: {sheet.lines(gaps)}"
        sheet.changes.append(f"{gaps.size:,} {are} {reason}")
    if not whole.any() and not sheet.problems:
        raise InputError(f"{sheet.source}: no row has a number of each arm")
    value = np.concatenate([x.values[whole] for x in read[: len(scores)]])
    if options["wide"] == "offered" and not costs and value.max(initial=0) > 1:
        raise InputError(f"{sheet.source}: nothing says that it is a table of requests")
    if costs:
        spent = np.concatenate([x.values[whole] for x in read[len(scores) :]])
    else:
        spent = np.full(value.size, float(choices["cost"]))
        sheet.changes.append(f"every request costs {choices['cost']}, as --columns says")
    words = {part.word for part in scores}
    word = words.pop() if len(words) == 1 else ""
    names = [part.arm if word else sheet.titles[part.at] for part in scores]
    arm = Column(np.repeat(np.arange(len(names)), whole.sum()), np.array(names, object))
    used = {*titles, *filter(None, options["drop"])}
    unused = [text for text in sheet.titles if text and text not in used]
    columns = brief(", ".join(map(quoted, titles)), 200)
    sheet.notes.append(f"a table of {whole.sum():,} requests: {columns}")
    sheet.notes += [f"columns not used: {quoted(', '.join(unused))}"] if unused else []
    size, blank = value.size, Column.same("", value.size)
    melted = replace(
        sheet,
        titles=("arm", word or "reward", "cost"),
        columns=Columns("log", {"name": 0, "reward": 1, "cost": 2}, pull_unit="request"),
        line=np.tile(sheet.line[whole], len(names)),
        cells=[arm, blank, blank],
        wide={},
    )
    spent2 = np.full(size, float(choices["cost2"])) if "cost2" in choices else None
    instance, pulls = Column.same(default_name, size), np.ones(size)
    return ArmRows(melted, melted.columns, style, instance, arm, pulls, value, spent, spent2=spent2)


def _columns(
    sheet: Sheet, drop: Sequence[str], has_cost: bool
) -> tuple[list[_Title], list[_Title]]:
    """Scores and costs of the arms, in one order; no costs where the user says one for all.

    Where some arm has both, those that have are the arms; else columns of numbers that are called
    scores, or all that are no ids and that no usual word says to be something else.
    """
    parts, first = list[_Title](), np.arange(min(len(sheet.line), 1000))
    for n, text in enumerate(sheet.titles):
        column = sheet.cells[n].only(first)
        filled = ~column.passes(numbers.is_nothing)
        is_read = column.passes(lambda x: numbers.is_number(x) or numbers.is_yes_or_no(x))
        # A wrong cell is told, not the whole column lost
        if text and filled.sum() < 2 * is_read.sum():
            part = _taken_apart(n, text)
            parts += [] if {text, part.arm} & {*drop} else [part]
    costs = {part.arm.casefold(): part for part in parts if part.is_cost}
    scores = [part for part in parts if not part.is_cost]
    paired = [part for part in scores if part.arm.casefold() in costs]
    units = {title(sheet.titles[part.at]).unit for part in costs.values()}
    scores = [part for part in scores if part.word or not _is_other(sheet, part.at)]
    words = {part.word for part in paired or scores}
    free = [part for part in scores if part not in paired and part.word in words]
    if paired and free and not has_cost:
        texts = [sheet.titles[part.at] for part in free]
        text = f"no column tells what {quoted(', '.join(part.arm for part in free))} costs"
        raise Question(f"{sheet.source}: {text}", ({"drop": texts}, "leaves it out"))
    worded = [part for part in scores if part.word]
    scores = paired or (worded if len(worded) > 1 else scores)
    arms = [part.arm.casefold() for part in scores]
    if len({*arms}) < len(arms):
        ways = [
            (
                {"drop": [sheet.titles[part.at] for part in scores if part.word != word]},
                f"takes {quoted(word or 'the names alone')}",
            )
            for word in dict.fromkeys(part.word for part in scores)
        ]
        text = f"several columns tell what {quoted(scores[0].arm)} brought"
        raise Question(f"{sheet.source}: {text}", *ways)
    if len(scores) < 2:
        must = "it must have a column of numbers for each of two arms or more"
        raise InputError(f"{sheet.source}: {must}")
    if has_cost:
        return scores, []
    if not paired:
        example = f"a column of its costs, as {quoted(scores[0].arm + '_cost')}"
        text = f"no column tells what a request costs an arm ({example})"
        way = {"columns": {"cost": "1"}}, "takes every request to cost 1"
        raise Question(f"{sheet.source}: {text}", way)
    if len(units) > 1 or units & {*_PARTS}:
        must = "they must be in one currency, in whole units of it"
        raise InputError(f"{sheet.source}: costs in {' and '.join(sorted(units))}; {must}")
    return scores, [costs[arm] for arm in arms]


def _is_other(sheet: Sheet, n: int) -> bool:
    """Whether a column of numbers is an id or has a usual word for something else than an arm."""
    texts = sheet.cells[n].texts
    if _ID.fullmatch(sheet.titles[n]) or title(sheet.titles[n]).is_any(*role_words()):
        return True
    values = np.array([numbers.plain_number(text) or 0.0 for text in texts])
    runs = len(values) == len(sheet.line) and bool((np.diff(values) == 1).all())
    return runs and len(values) > 2  # 1, 2, 3, …


def _requests(sheet: Sheet, used: set[int], options: Mapping[str, Any]) -> Sheet:
    """Without the rows that the user drops; what may be a mean of the others is a problem."""
    words = [n for n in range(len(sheet.cells)) if n not in used]
    dropped = np.zeros(len(sheet.line), bool)
    for n in words:
        dropped |= sheet.cells[n].equal(*options["drop"])
    if dropped.any():
        sheet.notes.append(f"{sheet.lines(np.flatnonzero(dropped))} dropped, as --drop says")
        sheet = sheet.only(np.flatnonzero(~dropped))
    for column in (sheet.cells[n] for n in words):
        called = column.passes(_MEAN.fullmatch) & ~column.equal(*options["keep"])
        if 0 < called.sum() <= 5:
            texts = column.only(np.flatnonzero(called)).texts.tolist()
            ways = ({"drop": texts}, "leaves it out"), ({"keep": texts}, "takes it as a request")
            text = f"{sheet.lines(np.flatnonzero(called))}: {quoted(texts[0])} may be no request"
            sheet.problems.append(Question(f"{sheet.source}, {text}", *ways))
    return sheet
