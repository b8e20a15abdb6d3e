"""A comparison as Markdown, for the terminal and ``report.html``, and the files beside it."""

from __future__ import annotations

import base64
import html
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandits import tools
from jaxbandits.apps.comparison import numerals
from jaxbandits.apps.comparison.answer import FEWEST, Answer
from jaxbandits.apps.comparison.comparison import Comparison, put_all
from jaxbandits.apps.comparison.plan import BEST, MIXTURE, ComparisonPlan
from jaxbandits.statistics import invisible, mean
from jaxbandits.tools import Table, count_of, line

_EVERY = 2000  # rows of a table on the page, so that it opens at once
_FAR = 10  # times the file's money: a budget that is far from what the file tells of
# --- Markdown


def markdown(answer: Answer, rows: int = 12) -> str:
    """An answer as Markdown, the conclusion first, with at most so many rows per table.

    Example:
        >>> from jaxbandits.apps.comparison import answer_of, markdown
        >>> print(markdown(answer_of(found)))      # doctest: +SKIP
    """
    comparison, data = answer.comparison, answer.data
    plan, several = comparison.plan, len(comparison.plan.table.instances) > 1
    parts = [_in_short(answer), _of_mixture(answer), *(f"Warning: {x}." for x in answer.warnings)]
    parts.append(_markdown_table(_against(answer)))
    parts.append("## Where the money goes")
    if several:
        parts.append(_markdown_table(_instances(answer), rows, "arms.csv"))
    if not several or rows > len(data["instance"]) * len(data["arm"]):
        parts.append(_markdown_table(_arms(answer), rows, "arms.csv"))
    notes = [*_assumptions(plan), *_read(plan), *comparison.notes]
    last = ["## Assumptions and input", "\n".join(f"* {note}" for note in notes)]
    said = f"± is the 95 % interval of {count_of(plan.runs, 'run')}; clear: the joint interval excludes 0; "
    said += invisible(plan.runs, "replicate").removesuffix(".") + "."
    ranked = ["## All settings, ranked", _markdown_table(_ranking(comparison), rows), said]
    doubts = [f"Warning: {text}." for text in comparison.doubts()]
    return _joined([*parts, *ranked, *doubts, *last])


def _joined(parts: Sequence[str]) -> str:
    lines = (part.strip("\n") for part in parts if part)
    text = "\n\n".join("\n".join(map(line, part.split("\n"))) for part in lines)
    return re.sub(r"^(## .*)\n\n", r"\1\n", text, flags=re.MULTILINE)


def _in_short(answer: Answer) -> str:
    """What the best setting would have earned."""
    data, table = answer.data, answer.comparison.plan.table
    count, budget = len(table.instances), answer.comparison.plan.spending.budget
    money = f"with {numerals.money(budget, table.cost_unit, cents=False)} to spend"
    money += f" in each of {count} instances" * (count > 1)
    times = answer.comparison.plan.spending.supply.times
    if max(times, default=0) >= _FAR:
        money += f" ({_range(times, '.3g')} times the file's money, far beyond what it tells of)"
    elif count > 1 and len({x.currency for x in table.instances}) == 1:
        money += f" ({numerals.money(budget * count, table.cost_unit, cents=False)} in all)"
    earned = f"{numerals.amount(data['earned'].values[0])} {table.reward_unit}"
    between, coverage = f"no interval below {FEWEST} runs", data.attrs["coverage"]
    if not math.isnan(coverage):
        of_100 = math.floor(100 * coverage + 1e-9)
        between = f"{_ends(data, 'earned', row=0)} in {of_100} of 100 runs"
    place = place_of([row["difference_clear"] for row in answer.comparison.ranking()[1:]])
    would = f"{answer.setting} would have earned {earned} ({between}){place}"
    return f"In short: {money}, {would}; that is {_than(answer, 1)}."


def place_of(clear: Sequence[bool]) -> str:
    """``, the most of 3 settings``, and how many of the others are not clearly worse."""
    unclear, others = [*clear].count(False), len(clear)
    but = f" ({unclear} of {count_of(others, 'other')} not clearly worse)" if unclear else ""
    return f", the most of {others + 1} settings{but}" if others else ""


def _than(answer: Answer, row: int) -> str:
    """``40% more than an even split``; with the interval, where that is not clear."""
    at = answer.data.isel(row=row)
    name = _named(answer, str(at["row"].values))
    low, high, gain, share = (float(at[x]) for x in ("gain_low", "gain_high", "gain", "share"))
    interval = numerals.interval(gain, low, high)
    if not (low > 0 or high < 0):
        return f"{interval} against {name}, which is not clear"
    much = interval if math.isnan(share) else f"{abs(share):.{0 if abs(share) >= 0.01 else 1}%}"
    return f"{much} {'more' if gain > 0 else 'less'} than {name}"


def _of_mixture(answer: Answer) -> str:
    """The best split without learning, beside the policy."""
    names = answer.data["row"].values.tolist()
    name = MIXTURE if MIXTURE in names else BEST
    if name not in names or names.index(name) == 1:
        return ""
    row, unit = names.index(name), answer.data.attrs["reward_unit"]
    earned = numerals.amount(answer.data["earned"].values[row])
    how = " ratios first, each until it is sold out" if name == MIXTURE else ""
    split = f"A split without learning, {_named(answer, name)} (the best{how}, by the file)"
    return f"{split}, earns {earned} {unit}; {answer.setting} earns {_than(answer, row)}."


def _named(answer: Answer, name: str) -> str:
    """A split's name, with the arm that it is about."""
    if name != BEST:
        return name
    if len(answer.data["instance"]) > 1:
        return f"{name} of each instance"
    return f"{name}, {answer.data['name'].values[0, int(np.nanargmax(answer.data['mixture'].values[0]))]}"


def _ends(data: Any, name: str, percent: bool = False, **at: int) -> str:
    """``12–34``; ``5%–20%``."""
    low, high = (float(data[f"{name}_{end}"].isel(at)) for end in ("low", "high"))
    write = "{:.0%}".format if percent else numerals.amount
    return f"{write(low)}–{write(high)}"


def _spread(data: Any, name: str, percent: bool = False, **at: int) -> str:
    """``23 (12–34)``; below 20 runs the mean alone."""
    value = float(data[name].isel(at))
    text = f"{value:.0%}" if percent else numerals.amount(value)
    if math.isnan(data.attrs["coverage"]):
        return text
    return f"{text} ({_ends(data, name, percent, **at)})"


def _against(answer: Answer) -> Table:
    data, rows = answer.data, []
    for i, name in enumerate(data["row"].values.tolist()[1:], start=1):
        at = data.isel(row=i)
        low, high, gain = (float(at[x]) for x in ("gain_low", "gain_high", "gain"))
        clear = "" if low > 0 or high < 0 else ", not clear"
        more = f"{numerals.interval(gain, low, high)} ({_signed(at['share'])}{clear})"
        cells = [numerals.amount(float(at["earned"])), more, f"{float(at['better']):.0%} of runs"]
        rows.append([_named(answer, name), *cells])
    return Table(("against", data.attrs["reward_unit"], f"{answer.setting} earns more", "in"), rows)


def _signed(share: Any) -> str:
    """``+40%``; a dash where it is not known."""
    return "–" if math.isnan(float(share)) else f"{float(share):+.0%}".replace("-", "−")


def _arms(answer: Answer) -> Table:
    """Every arm, most money first in each instance."""
    plan, data = answer.comparison.plan, answer.data
    table, several, is_mixed = plan.table, len(data["instance"]) > 1, MIXTURE in data["row"].values
    closes = bool((data["sold_out"] > 0).any())
    header = ["instance"] * several + ["arm", "of the money"] + ["mixture"] * is_mixed
    header += [f"{table.pull_unit}s"] + ["sold out in"] * closes
    header += [table.reward_unit, f"cost per {table.result}", "best ratio, sure"]
    rows = []
    for i, name in enumerate(data["instance"].values.tolist()):
        share, unit = data["money_share"].values[i], table.instances[i].currency or table.cost_unit
        for k in np.argsort(-share, kind="stable")[: len(table.instances[i].arms)].tolist():
            at, of = {"instance": i, "arm": k}, data.isel(instance=i, arm=k)
            cost, reward = float(of["cost_in_file"]), float(of["reward_in_file"])
            cells = [str(of["name"].values), _spread(data, "money_share", True, **at)]
            cells += [f"{float(of['mixture']):.0%}"] * is_mixed + [_spread(data, "pulls", **at)]
            cells += [f"{float(of['sold_out']):.0%} of runs"] * closes
            cells += [_spread(data, "results", **at)]
            cells += [numerals.money(cost / reward, unit) if reward else "–"]
            cells += [_best_ratio(plan, float(of["best"]))]
            rows.append([name, *cells] if several else cells)
    return Table(header, rows, left=(0, 1) if several else (0,))


def _instances(answer: Answer) -> Table:
    """What each instance brings, and where most of its money goes."""
    plan, data, rows = answer.comparison.plan, answer.data, []
    for i, name in enumerate(data["instance"].values.tolist()):
        of = data.isel(instance=i)
        most, best = (int(np.nanargmax(of[x].values)) for x in ("money_share", "best"))
        names, earned = of["name"].values, _spread(data, "earned_in", row=0, instance=i)
        row = [name, len(plan.table.instances[i].arms), earned, _signed(of["share_in"][1])]
        is_out = " (sold out)" if of["sold_out"][most] > 0.5 else ""
        row += [f"{names[most]}{is_out}", f"{float(of['money_share'][most]):.0%}"]
        rows.append([*row, names[best], _best_ratio(plan, float(of["best"][best]))])
    header = ["instance", "arms", plan.table.reward_unit, f"against {data['row'].values[1]}"]
    return Table(
        [*header, "most money to", "of it", "best ratio by the file", "sure"], rows, left=(0, 4, 6)
    )


def _best_ratio(plan: ComparisonPlan, probability: float) -> str:
    """The probability that it has the best ratio; where means are taken as given, whether it has."""
    return f"{probability:.0%}" if plan.worlds.posterior is not None else "yes" * (probability == 1)


def _assumptions(plan: ComparisonPlan) -> list[str]:
    """How certain the means are, what a pull is, what is for sale, how often policies decide."""
    supply, played, pull = plan.spending.supply, plan.played, plan.table.pull_unit
    sure = f"The file's means are taken as exact, since {plan.worlds.why_given}."
    if plan.worlds.posterior is not None:
        sure = "The file's means are estimates: each run draws its true means from their posterior."
    budget = numerals.money(plan.spending.budget, plan.table.cost_unit, cents=False)
    times = _range(supply.times, ".3g") if supply.times else ""
    money = f"{budget} is {times} times the file's money, and so lasts {times} times as long"
    why = f", since {supply.reason}" if supply.reason else ""
    sale = f"An arm sells as many {pull}s as are bought, at its mean cost{why}."
    if supply.requests:
        sale = f"There are {_range(supply.requests, ',')} {pull}s ({money}; --growth)."
    elif supply.growth is not None:
        sale = f"{money}, in which an arm sells at most {supply.growth:g} times what it sold (--growth)."
    decided = f"Policies decide after every {pull}{played.reason and ', '}{played.reason}."
    if played.day:
        decided = f"Policies decide once a day of the file, every {_range(played.day, ',')} {pull}s (--decide)."
    return [f"{sure} Noise: {_noise(plan)}.", sale, decided]


def _noise(plan: ComparisonPlan) -> str:
    """What a pull looks like, in a sentence without its full stop."""
    unit, pull, worlds = plan.table.reward_unit, plan.table.pull_unit, plan.worlds
    if plan.table.wide and worlds.noise == "empirical":
        return (
            f"each {pull} is a row of the file, drawn at random, the same for all arms and policies"
        )
    if worlds.noise == "clicks" and worlds.posterior is not None:
        is_seen = worlds.posterior.cost_cv_from == "days"
        source = "from day to day in the file" if is_seen else "assumed, as counts do not show it"
        spread = min(worlds.posterior.cost_cv, 1 / math.sqrt(3))
        return f"each {pull} earns one of the {unit} or none, and its cost varies by {spread:.0%} ({source})"
    if worlds.noise == "empirical":
        return f"each {pull} is one of the arm's rows, drawn at random with its {unit} and its cost"
    return f"each {pull} earns its bound or nothing, and costs so: the largest variance"


def _markdown_table(table: Table, most: int = _EVERY, rest: str = "table.csv") -> str:
    """A table of Markdown whose columns stand below each other."""
    every = (table.header, *table.rows[:most])
    rows = [[line(str(x)).replace("|", "\\|") for x in row] for row in every]
    widths, lines = [max(map(len, column)) for column in zip(*rows, strict=True)], list[str]()
    ends = ["-" * w if n in table.left else "-" * (w - 1) + ":" for n, w in enumerate(widths)]
    for row in (rows[0], ends, *rows[1:]):
        pairs = enumerate(zip(row, widths, strict=True))
        cells = (x.ljust(w) if n in table.left else x.rjust(w) for n, (x, w) in pairs)
        lines.append(f"| {' | '.join(cells)} |")
    more = len(table.rows) - most
    return "\n".join(lines) + (f"\n\n… {more:,} more in {rest}" if more > 0 else "")


# --- The comparison


def _ranking(comparison: Comparison) -> Table:
    unit, cells, ranked = comparison.plan.table.reward_unit, [], comparison.ranking()
    for row in ranked:
        means = (
            (row[x], row[f"{x}_high"] - row[f"{x}_low"]) for x in ("reward", "regret", "pulls")
        )
        ends = (row[f"difference{end}"] for end in ("", "_low", "_high"))
        clear = "clear" if row["difference_clear"] else "not clear"
        last = "best" if row["rank"] == 1 else f"{numerals.interval(*ends)}, {clear}"
        numbers = [numerals.plus_minus(mean, width / 2) for mean, width in means]
        cells.append([row["rank"], row["setting"], *numbers, *[last] * (len(ranked) > 1)])
    header = ("rank", "policy", unit, "regret", "pulls", f"{unit} against rank 1, paired")
    return Table(header[: len(cells[0])], cells, left=(1, 5))


def _read(plan: ComparisonPlan) -> list[str]:
    """The file, the units, what a pull is, how much was run."""
    table, spending, count = plan.table, plan.spending, len(plan.table.instances)
    sizes = sorted(len(instance.arms) for instance in table.instances)
    pulls = [spending.pulls(instance, row) for row, instance in enumerate(table.instances)]
    bounds = [(instance.reward_bound, instance.cost_bound) for instance in table.instances]
    reward, cost = (_range(values, ".4g") for values in zip(*bounds, strict=True))
    end = "forfeits its reward" if spending.last_pull == "forfeits" else "counts"
    paid = f"{_range(pulls, ',.3g')} {table.pull_unit}s"
    counts = {"run": plan.runs, "instance": count, "setting": len(plan.played.labels)}
    parts = [count_of(n, name) for name, n in counts.items()]
    kinds = f"{table.kind}, {count_of(count, 'instance')}, {sum(sizes)} arms"
    return [
        f"{table.path or 'a table'}: {kinds}"
        + f" ({sizes[0]} to {sizes[-1]} in an instance)" * (count > 1),
        *table.notes,
        f"each {table.pull_unit} earns {table.reward_unit} (at most {reward}) and costs {table.cost_unit} "
        f"(at most {cost}); the budget pays for about {paid}, of which the last one {end}",
        f"{' × '.join(parts)} = {plan.runs * count * len(plan.played.labels):,} runs; seed {plan.worlds.seed}",
    ]


def _range(values: Sequence[float], form: str) -> str:
    low, high = (
        f"{x:,.0f}" if abs(x) >= 1000 and "," in form else f"{x:{form}}"
        for x in (min(values), max(values))
    )
    return low if low == high else f"{low} to {high}"


# --- The picture


def results_picture(answer: Answer) -> bytes:
    """Plot what the best setting and the splits earn against the money spent."""
    import xarray

    comparison, baselines = answer.comparison, answer.baselines
    plan, count = comparison.plan, len(comparison.plan.table.instances)
    at = list(plan.played.labels).index(answer.setting)
    every = np.concatenate([comparison.accounts.earned[[at]], baselines.accounts.earned])
    estimate = mean(xarray.DataArray(every, dims=("curve", "replicate", "mark")), over="replicate")
    summed = f"sum over {count} instances, " if count > 1 else ""
    unit = "" if plan.table.cost_unit in ("spent", "cost") else f" ({plan.table.cost_unit})"
    figure = tools.line_chart(
        np.asarray(plan.spending.shares) * plan.spending.budget,
        answer.data["row"].values.tolist(),
        [part.values for part in (estimate.value, estimate.low, estimate.high)],
        title=f"{summed}mean of {count_of(plan.runs, 'run')}, 95 % intervals",
        across=f"budget spent{' in each instance' if count > 1 else ''}{unit}",
        up=plan.table.reward_unit,
    )
    return tools.encoded(figure, "png")


# --- Files


def page_of(text: str, picture: bytes, command: str = "") -> str:
    """``report.html``: the Markdown and the picture in one self-contained page."""
    import jinja2

    from jaxbandits import __version__

    text = re.sub(r"^(## .*)\n", r"\1\n\n", text, flags=re.MULTILINE)
    every = [*text.split("\n\n"), *(["## To do it again", command] if command else [])]
    blocks = list(map(_html, every))
    data = base64.b64encode(picture).decode()
    image = f'<img src="data:image/png;base64,{data}" alt="results over the budget">'
    blocks.insert(every.index("## Where the money goes") + 1, image)
    template = (Path(__file__).parent / "report.html.jinja").read_text(encoding="utf-8")
    return jinja2.Template(template).render(blocks=blocks, version=__version__)


def _html(block: str) -> str:
    """A block of our Markdown: a table, a list, a heading or a paragraph; names are text."""
    lines = [html.escape(x) for x in block.split("\n")]
    if block.startswith("|"):
        head, ends, *rows = [re.split(r"(?<!\\)\|", x)[1:-1] for x in lines]
        of = ["" if x.strip().endswith(":") else ' class="left"' for x in ends]
        text = []
        for tag, row in (("th", head), *(("td", row) for row in rows)):
            cells = (x.replace("\\|", "|").strip() for x in row)
            cells = (f"<{tag}{x}>{cell}</{tag}>" for x, cell in zip(of, cells, strict=True))
            text.append(f"<tr>{''.join(cells)}</tr>\n")
        return f"<table>{''.join(text)}</table>"
    if block.startswith("* "):
        return f"<ul>{''.join(f'<li>{x[2:]}</li>' for x in lines)}</ul>"
    if block.startswith("## "):
        return f"<h2>{lines[0][3:]}</h2>"
    kind = {"In short": "lead", "Warning": "warning"}.get(block.partition(":")[0], "")
    return f'<p class="{kind}">{"<br>".join(lines)}</p>'


def _plain(value: Any) -> Any:
    """What JSON can hold: NaN is None."""
    if isinstance(value, dict):
        return {key: _plain(x) for key, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(x) for x in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_report(
    answer: Answer,
    folder: str | os.PathLike[str],
    command: str = "",
    about: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Write the page, picture and tables of an answer.

    Example:
        >>> from jaxbandits.apps.comparison import answer_of, write_report
        >>> written = write_report(answer_of(found), "results")      # doctest: +SKIP
    """
    comparison, picture = answer.comparison, results_picture(answer)
    facts = _plain(answer.data.to_dict()) | {"warnings": answer.warnings}
    of_arms = [str(x) for x, y in answer.data.items() if y.dims == ("instance", "arm")]
    frame = answer.data[of_arms].to_dataframe().query("name != ''")
    rows = frame.reset_index().drop(columns="arm").rename(columns={"name": "arm"})
    columns = ["instance", "arm", *(x for x in of_arms if x != "name")]
    files = {
        "answer.json": (json.dumps(facts, indent=1) + "\n").encode(),
        "arms.csv": Table(columns, rows[columns].to_numpy(object).tolist()).csv().encode(),
        "results.png": picture,
        "report.html": page_of(markdown(answer, _EVERY), picture, command).encode(),
    }
    return put_all(folder, comparison.numbers(about) | files)
