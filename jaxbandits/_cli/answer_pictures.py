"""The two pictures of an answer: where the money goes, and what it brings."""

from __future__ import annotations

import numpy as np

from jaxbandits._cli.answer_text import amount, money
from jaxbandits._reports.areas import Panel, stacked
from jaxbandits._reports.plot import curves
from jaxbandits.comparison.answer import Answer
from jaxbandits.comparison.plan import ComparisonPlan
from jaxbandits.core.printable import line

_MOST_PANELS, _MOST_PARTS, _MOST_OF_ONE = 6, 5, 7


def money_picture(answer: Answer, narrow: bool = False) -> bytes:
    """Money on each arm over the budget, stacked: of the only instance, or of the six that bring most."""
    plan = answer.comparison.plan
    if answer.budgets is None or answer.money is None:
        raise ValueError("an answer without its picture's numbers")
    instances = plan.table.instances
    most = _MOST_OF_ONE if len(instances) == 1 else _MOST_PARTS
    panels = []
    for row in sorted(range(len(instances)), key=lambda row: -answer.settings[0].by_instance[row].mean)[:_MOST_PANELS]:
        spent = answer.money[:, row, : len(instances[row].arms)]
        order = list(np.argsort(-spent[-1], kind="stable"))
        shown, others = (order[:most], order[most:]) if len(order) > most + 1 else (order, [])
        heights, names = spent[:, shown], [line(instances[row].arms[k]) for k in shown]
        if others:
            heights = np.column_stack([heights, spent[:, others].sum(axis=1)])
            names.append(f"{len(others)} others")
        title = line(instances[row].name) if len(instances) > 1 else f"{answer.settings[0].setting}: money on each arm"
        panels.append(Panel(title, tuple(names), heights, names[-1] if others else ""))
    unit = unit_of_cost(plan)
    many = " of each instance" if len(instances) > 1 else ""
    return stacked(
        answer.budgets,
        panels,
        across=f"budget{many}{unit}",
        narrow=narrow,
        up=f"money{unit}",
        written=lambda value: money(plan, value) if plan.table.style.symbol == "" else amount(plan, value),
    )


def results_picture(answer: Answer, narrow: bool = False) -> bytes:
    """What the best setting, the even split and the file's best arm bring, against the money spent."""
    plan, accounts, rivals = answer.comparison.plan, answer.comparison.accounts, answer.rivals.accounts
    if accounts is None or rivals is None:
        raise ValueError("a comparison without accounts")
    labels = list(plan.settings)
    paths = {part.setting: accounts.earned[labels.index(part.setting)] for part in answer.settings}
    paths |= {name: rivals.earned[number] for number, name in enumerate(rivals_labels(answer))}
    bands = {}
    for name, path in paths.items():
        mean = path.mean(axis=0)
        half = 1.96 * path.std(axis=0, ddof=1) / np.sqrt(path.shape[0]) if path.shape[0] > 1 else np.nan * mean
        bands[name] = (mean, mean - half, mean + half)
    many = len(plan.table.instances)
    summed = f"sum over {many} instances, " if many > 1 else ""
    unit = unit_of_cost(plan)
    clock = "budget spent" if plan.rounds is None else "budget that was due"
    return curves(
        np.asarray(plan.shares) * plan.budget,
        bands,
        title=f"{summed}mean of {plan.runs} runs and its 95 % band",
        across=f"{clock}{' in each instance' if many > 1 else ''}{unit}",
        up=plan.table.reward_unit,
        narrow=narrow,
    )


def unit_of_cost(plan: ComparisonPlan) -> str:
    """`` [$]``; nothing where the file says no more than that it was spent."""
    unit = plan.table.style.symbol or plan.table.cost_unit
    return "" if unit == "spent" else f" [{unit}]"


def rivals_labels(answer: Answer) -> list[str]:
    """Names of the splits, in the order of their comparison."""
    return list(answer.rivals.plan.settings)
