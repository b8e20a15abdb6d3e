"""The files of an answer: a table of the arms, all its numbers, pictures, and the report."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
from pathlib import Path
from typing import Any

from jaxbandits._files.csv_text import csv_text
from jaxbandits._files.files import write_whole
from jaxbandits.comparison.answer import Answer
from jaxbandits.comparison.second_look import NoiseCheck
from jaxbandits.comparison.spreads import Spread

ANSWER_FILES = ("answer.json", "arms.csv", "money.png", "results.png", "report.html")


def save_answer(answer: Answer, folder: str | os.PathLike[str], command: str) -> list[Path]:
    """Write all of them, each whole; ``command`` is what the report says it was made by."""
    from jaxbandits._cli.answer_pictures import money_picture, results_picture
    from jaxbandits._cli.report import report_page

    contents = {
        "answer.json": (json.dumps(as_json(answer), indent=1) + "\n").encode(),
        "arms.csv": arms_csv(answer).encode(),
        "money.png": money_picture(answer),
        "results.png": results_picture(answer),
    }
    pictures = {
        "money": contents["money.png"],
        "money-narrow": money_picture(answer, narrow=True),
        "results": contents["results.png"],
        "results-narrow": results_picture(answer, narrow=True),
    }
    contents["report.html"] = report_page(answer, pictures, command).encode()
    for name, content in contents.items():
        write_whole(Path(folder) / name, functools.partial(_put, content))
    return [Path(folder) / name for name in ANSWER_FILES]


def arms_csv(answer: Answer) -> str:
    """A row for each arm and each setting that the answer is about."""
    numbers = ("share", "pulls", "money", "results")
    header = ["setting", "instance", "arm", "reward_per_pull", "cost_per_pull"]
    header += ["reward_per_pull_in_file", "cost_per_pull_in_file", "probability_best"]
    header += [f"{name}{end}" for name in numbers for end in ("", "_low", "_high")]
    rows: list[list[Any]] = []
    for part in answer.settings:
        for arm in (arm for arms in part.arms for arm in arms):
            row = [part.setting, arm.instance, arm.name, arm.reward, arm.cost]
            row += [arm.file_reward, arm.file_cost, arm.best]
            for name in numbers:
                spread: Spread = getattr(arm, name)
                row += [spread.mean, spread.low, spread.high]
            rows.append(row)
    return csv_text(header, rows)


def as_json(answer: Answer) -> dict[str, Any]:
    """Everything but the arms, which arms.csv has."""
    plan, check = answer.comparison.plan, answer.check
    posterior = plan.posterior
    return _plain(
        {
            "budget": plan.budget,
            "reward_unit": plan.table.reward_unit,
            "cost_unit": plan.table.cost_unit,
            "uncertainty": plan.uncertainty,
            "why_given": plan.why_given,
            "noise": plan.noise,
            "cost_cv": plan.cost_cv,
            "posterior": None
            if posterior is None
            else {
                "cost_cv_from": posterior.cost_cv_from,
                "dispersion": posterior.dispersion,
                "prior": dict(posterior.prior),
            },
            "constraint": "budget" if plan.average_cost is None else f"average-cost:{plan.average_cost:g}",
            "rounds": plan.rounds,
            "settings": [
                {
                    "setting": part.setting,
                    "rank": part.rank,
                    "earned": dataclasses.asdict(part.earned),
                    "rivals": [dataclasses.asdict(rival) for rival in part.rivals],
                }
                for part in answer.settings
            ],
            "best_arms": [
                {
                    "instance": instance.name,
                    "arm": instance.arms[best],
                    "probability": answer.settings[0].arms[row][best].best,
                }
                for row, (instance, best) in enumerate(zip(plan.table.instances, answer.best_arms, strict=True))
            ],
            "second_noise": dataclasses.asdict(check) if isinstance(check, NoiseCheck) else check,
            "warnings": list(answer.warnings),
        }
    )


def _plain(value: Any) -> Any:
    """The same, NaN as None."""
    if isinstance(value, dict):
        return {key: _plain(x) for key, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(x) for x in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _put(content: bytes, file: Any) -> None:
    file.write(content)
