"""``report.html``: the answer as one page that needs nothing else: no network, no file beside it."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxbandits._cli import compare_text
from jaxbandits._cli.answer_text import (
    GLOSSARY,
    amount,
    best_ratio,
    between,
    by_money,
    earned_sentence,
    gain_cells,
    headline,
    per_result,
    rival_name,
    sentence_of_the_best,
    sentences,
    singular,
)
from jaxbandits._cli.clear_text import until_clear
from jaxbandits.comparison.answer import Answer, ArmAnswer, SettingAnswer
from jaxbandits.comparison.spreads import Spread
from jaxbandits.core.printable import line

_TEMPLATE = "report.html.jinja"
_MOST_ROWS = 2000  # of a table, so that the page opens at once


@dataclass(frozen=True)
class Cell:
    """What is shown, and what it is sorted by."""

    text: str
    value: str


@dataclass(frozen=True)
class Table:
    """A table of the page; the columns ``left`` are flush left."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left: tuple[int, ...] = (0,)


def report_page(answer: Answer, pictures: Mapping[str, bytes], command: str) -> str:
    """The page; the pictures are PNG files: ``money``, ``results``, and both ``-narrow``, for a phone."""
    import jinja2

    from jaxbandits import __version__

    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    plan = answer.comparison.plan
    *_, note = compare_text.ranking(answer.comparison)
    return environment.get_template(_TEMPLATE).render(
        headline=headline(plan).rstrip(":"),
        settings=[_setting(answer, part) for part in answer.settings],
        sure=sentence_of_the_best(answer),
        warnings=[line(text) for text in answer.warnings],
        pictures={name: base64.b64encode(picture).decode() for name, picture in pictures.items()},
        reward_unit=plan.table.reward_unit,
        ranking=_ranking(answer),
        ranking_note=" ".join(note.split()).strip("()"),
        limits=[line(text) for text in (*until_clear(answer.comparison), *compare_text.limits(answer.comparison))],
        assumed=[*sentences(answer), *(text.strip() for text in compare_text.what_was_read(plan))],
        glossary=GLOSSARY,
        command=command,
        version=__version__,
    )


def _setting(answer: Answer, part: SettingAnswer) -> dict[str, Any]:
    plan, several = answer.comparison.plan, len(part.arms) > 1
    unit = plan.table.reward_unit
    rivals = []
    for rival in part.rivals:
        difference, percent, runs = gain_cells(plan, rival.gain)
        rivals.append(
            (
                _text(rival_name(answer, rival.name)),
                _number(amount(plan, rival.earned.mean), rival.earned.mean),
                _number(f"{difference} {percent}", rival.gain.mean),
                _number(runs, rival.gain.better),
            )
        )
    return {
        "title": part.setting,
        "sentence": earned_sentence(answer, part),
        "rivals": Table(("against", unit, "difference", "more in"), tuple(rivals)),
        "instances": _instances(answer, part) if several else None,
        "arms": _arms(answer, part, several),
    }


def _arms(answer: Answer, part: SettingAnswer, several: bool) -> Table:
    plan = answer.comparison.plan
    unit, pulls = plan.table.reward_unit, f"{plan.table.pull_unit}s"
    header = [*(["instance"] if several else []), "arm", "of the budget", pulls, unit, f"cost per {singular(unit)}"]
    rows = []
    for arm in [arm for arms in part.arms for arm in by_money(arms)][:_MOST_ROWS]:
        row = [_text(line(arm.instance))] if several else []
        row += [
            _text(line(arm.name)),
            _number(f"{arm.share.mean:.0%} ({arm.share.low:.0%}–{arm.share.high:.0%})", arm.share.mean),
            _spread(answer, arm.pulls),
            _spread(answer, arm.results),
            _per_result(answer, arm),
            _number(best_ratio(plan, arm), arm.best),
        ]
        rows.append(tuple(row))
    return Table((*header, "best ratio"), tuple(rows), left=(0, 1) if several else (0,))


def _per_result(answer: Answer, arm: ArmAnswer) -> Cell:
    value = arm.file_cost / arm.file_reward if arm.file_reward else math.inf
    return _number(per_result(answer.comparison.plan, arm), value)


def _instances(answer: Answer, part: SettingAnswer) -> Table:
    plan = answer.comparison.plan
    header = ["instance", "arms", plan.table.reward_unit, *(f"against {rival.name}" for rival in part.rivals)]
    rows = []
    for row, arms in enumerate(part.arms):
        most, best = by_money(arms)[0], arms[answer.best_arms[row]]
        gains = [rival.by_instance[row] for rival in part.rivals]
        rows.append(
            (
                _text(line(arms[0].instance)),
                _number(str(len(arms)), len(arms)),
                _spread(answer, part.by_instance[row]),
                *(_number(gain_cells(plan, gain)[1].strip("()"), gain.share) for gain in gains),
                _text(f"{line(most.name)} ({most.share.mean:.0%})"),
                _text(line(best.name) if plan.posterior is None else f"{line(best.name)} ({best.best:.0%} sure)"),
            )
        )
    left = (0, len(header), len(header) + 1)
    return Table((*header, "most money to", "best ratio by the file"), tuple(rows), left)


def _ranking(answer: Answer) -> Table:
    unit = answer.comparison.plan.table.reward_unit
    rows = []
    for row in answer.comparison.ranking():
        cells = [
            _number(compare_text.with_interval(answer.comparison, row, name), row[name])
            for name in ("reward", "regret", "pulls", "spent")
        ]
        against = "best" if row["rank"] == 1 else compare_text.against_the_best(answer.comparison, row)
        rows.append(
            (
                _number(str(row["rank"]), row["rank"]),
                _text(row["setting"]),
                *cells,
                _number(against, row["difference"]),
            )
        )
    return Table(
        ("rank", "setting", unit, "regret", "pulls", "spent", "against rank 1, paired"), tuple(rows), left=(1,)
    )


def _text(text: str) -> Cell:
    return Cell(text, text)


def _number(text: str, value: float) -> Cell:
    return Cell(text, f"{value:.9g}" if math.isfinite(value) else "")


def _spread(answer: Answer, spread: Spread) -> Cell:
    plan = answer.comparison.plan
    return _number(f"{amount(plan, spread.mean)} ({between(plan, spread)})", spread.mean)
