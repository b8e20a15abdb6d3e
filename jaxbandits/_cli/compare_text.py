"""What ``jaxbandits compare`` prints: what was read, the ranking, and each instance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxbandits._cli.clear_text import ANY_TIME, clear_words
from jaxbandits._cli.columns import aligned
from jaxbandits.comparison.comparison import Comparison
from jaxbandits.comparison.plan import ComparisonPlan
from jaxbandits.core.printable import line
from jaxbandits.statistics import invisible

_MOST_INSTANCES, _MOST_COLUMNS = 40, 6
_LAST = {"counts": "counts, though it may cost more than is left", "forfeits": "forfeits"}
_HOLM = "Holm's test over all pairs, at 5 % for the whole table"


def what_was_read(plan: ComparisonPlan) -> list[str]:
    """The file, the units, what a pull is, how much will be run."""
    table, many = plan.table, len(plan.table.instances)
    sizes = sorted(len(instance.arms) for instance in table.instances)
    pulls = sorted(plan.budget / instance.mean_cost.mean() for instance in table.instances)
    each = " (each instance its own, see run.json)"
    reward = _spread([i.reward_bound for i in table.instances], each)
    cost = _spread([i.cost_bound for i in table.instances], each)
    means = "as in the file" if plan.posterior is None else "as drawn for each run"
    looks = {
        "bernoulli": f"it brings its whole bound or nothing, and costs its whole bound or nothing; means {means}",
        "beta": f"between 0 and the bound, alpha + beta = {plan.beta_concentration:g}; means {means}",
        "clicks": f"one conversion or none, at a cost that varies by {min(plan.cost_cv, 3**-0.5):.0%}; means {means}",
        "empirical": "a row of the arm's log, reward and cost together",
    }
    lines = [
        f"read {line(str(plan.source))}: {table.kind}, {_several(many, 'instance')}, {sum(sizes)} arms"
        + (f" ({sizes[0]} to {sizes[-1]} in an instance)" if many > 1 else ""),
        *(f"  {line(note)}" for note in table.notes),
        f"a reward is counted in {table.reward_unit}, at most {reward}",
        f"a cost is counted in {table.cost_unit}, at most {cost}",
        f"a pull is {plan.noise}: {looks[plan.noise]}",
        f"budget {plan.budget:g} ({table.cost_unit}) for each instance, about {_range(pulls)} pulls if spread over all "
        f"arms; {_end(plan)}",
        f"{_several(plan.runs, 'run')} × {_several(many, 'instance')} × {_several(len(plan.settings), 'setting')}"
        f" = {plan.runs * many * len(plan.settings):,} runs; seed {plan.seed}",
    ]
    return lines


def _end(plan: ComparisonPlan) -> str:
    if plan.rounds is None:
        return f"the last pull {_LAST[plan.last_pull]}"
    return f"at most {plan.average_cost:g} a round on average, at any time, for {plan.rounds:,} rounds"


def ranking(comparison: Comparison) -> list[str]:
    """The settings, best first, over all instances."""
    plan, rows = comparison.plan, comparison.ranking()
    cells = [
        [
            "rank",
            "policy",
            plan.table.reward_unit,
            "regret",
            "pulls",
            f"{plan.table.reward_unit} against rank 1, paired",
        ]
    ]
    alone, clear = len(rows) == 1, comparison.clear
    for row in rows:
        cells.append(
            [
                str(row["rank"]),
                row["setting"],
                *(with_interval(comparison, row, name) for name in ("reward", "regret", "pulls")),
                "best" if row["rank"] == 1 else against_the_best(comparison, row),
            ]
        )
    if alone:  # nothing to compare with, and no test
        cells = [row[:-1] for row in cells]
    count = len(plan.table.instances)
    average = f"the average of {count} instances, which all weigh the same; " if count > 1 else ""
    return [
        *aligned(cells, left=(1,) if alone else (1, 5)),
        f"({average}± 95 % interval over {_several(plan.runs, 'run')}, each interval by itself"
        + ("" if alone else f";\n clear: {_HOLM if clear is None else ANY_TIME}")
        + (";\n the instances are given, not sampled: the intervals say nothing about others)" if count > 1 else ")"),
    ]


def per_instance(comparison: Comparison) -> list[str]:
    """The reward in each of the first instances; nothing where there is only one."""
    plan, instances = comparison.plan, comparison.plan.table.instances
    if len(instances) == 1:
        return []
    ranked = [row["setting"] for row in comparison.ranking()][:_MOST_COLUMNS]
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    for row in comparison.table():
        if row["scope"] == "instance":
            rows.setdefault(row["instance"], {})[row["setting"]] = row
    cells = [["instance", "arms", *(f"rank {n}" for n in range(1, len(ranked) + 1))]]
    for instance in instances[:_MOST_INSTANCES]:
        of = rows[instance.name]
        marks = {name: "*" if row["rank"] == 1 else " " if row["difference_clear"] else "~" for name, row in of.items()}
        cells.append(
            [
                line(instance.name),
                str(len(instance.arms)),
                *(with_interval(comparison, of[name], "reward") + marks[name] for name in ranked),
            ]
        )
    hidden = []
    if len(instances) > _MOST_INSTANCES:
        hidden.append(_several(len(instances) - _MOST_INSTANCES, "more instance"))
    if len(plan.settings) > len(ranked):
        hidden.append(_several(len(plan.settings) - len(ranked), "more setting"))
    return [
        f"{plan.table.reward_unit} in each instance, by overall rank (* best there, ~ not clearly worse than it)",
        *aligned(cells, left=(0,)),
        *([f"… {' and '.join(hidden)} in table.csv"] if hidden else []),
    ]


def _clear(row: dict[str, Any]) -> str:
    """``clear``, or ``not clear`` and how many more runs would probably make it so, with the range of that number."""
    if row["difference_clear"]:
        return "clear"
    more, least, most = (row[f"more_runs{end}"] for end in ("", "_least", "_most"))
    if not more < 1e6:
        return "not clear"
    least, most = min(least, more), max(most, more)
    between = f"{_rounded(least)} to {_rounded(most)}" if most < 1e6 else f"{_rounded(least)} at least, perhaps never"
    return f"not clear (about {_rounded(more)} more runs; {between})"


def _rounded(count: float) -> str:
    """Two digits that count."""
    return f"{float(f'{count:.2g}'):,.0f}"


def limits(comparison: Comparison) -> list[str]:
    """What so many runs cannot tell: tails that carry the mean, few runs, and disasters that no run has seen."""
    plan = comparison.plan
    said = [f"warning: {text}" for text in comparison.doubts()]
    return [*said, f"note: {invisible(plan.runs)}" + (" of an instance" if len(plan.table.instances) > 1 else "")]


def against_the_best(comparison: Comparison, row: dict[str, Any]) -> str:
    """``−2 ± 1, clear``: how much more than the best it earns, and whether that is clear."""
    best = comparison.ranking()[0]["setting"]
    return f"{with_interval(comparison, row, 'difference')}, {clear_words(comparison.clear, best, row) or _clear(row)}"


def with_interval(comparison: Comparison, row: dict[str, Any], name: str) -> str:
    """``12.34 ± 0.56``: as many decimals as show two digits of the interval's half width, in the file's style."""
    half = (row[f"{name}_high"] - row[f"{name}_low"]) / 2
    return comparison.plan.table.style.plus_minus(row[name], half)


def _range(numbers: Sequence[float]) -> str:
    low, high = (f"{number:,.3g}" if number < 1000 else f"{number:,.0f}" for number in (min(numbers), max(numbers)))
    return low if low == high else f"{low} to {high}"


def _spread(numbers: Sequence[float], each: str) -> str:
    low, high = f"{min(numbers):.4g}", f"{max(numbers):.4g}"
    return low if low == high else f"{low} to {high}{each}"


def _several(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"
