"""What a comparison says: Markdown of its Dataset, for the terminal and for ``report.html``; and the
files beside it.
"""

from __future__ import annotations

import base64
import html
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandits import tools
from jaxbandits.apps.comparison.answer import FEWEST, Answer, money_of_part
from jaxbandits.apps.comparison.comparison import Clearness, Comparison, put_all
from jaxbandits.apps.comparison.plan import BEST, MIXTURE, ComparisonPlan
from jaxbandits.apps.comparison.worlds import BETA_CONCENTRATION
from jaxbandits.statistics import invisible, mean
from jaxbandits.tools import Table, count_of, line

_EVERY = 2000  # rows of a table on the page, so that it opens at once
_PANELS, _PARTS, _PARTS_OF_ONE, _POINTS = 6, 5, 7, 4  # of the picture of the money

# --- Markdown


def markdown(answer: Answer, rows: int = 12) -> str:
    """An answer as Markdown, with so many rows of each table: what comes first is the answer.

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
    last = ["## What was assumed, and read", "\n".join(f"* {note}" for note in notes)]
    return _joined([*parts, *_of_settings(comparison, rows), *last])


def _of_settings(comparison: Comparison, rows: int) -> list[str]:
    """The ranking and its limits."""
    plan, clear = comparison.plan, comparison.clear
    test = "the interval leaves out 0, all at once"
    test = "at 5 % over all looks, pairs and claims" if clear else test
    said = f"± is the 95 % interval of {count_of(plan.runs, 'run')}; clear: {test}; "
    said += invisible(plan.runs, "replicate").removesuffix(".") + "."
    parts = ["## All settings, ranked", _markdown_table(_ranking(comparison), rows), said]
    parts += [_until_clear(plan, clear)] if clear else []
    return [*parts, *(f"Warning: {text}." for text in comparison.doubts())]


def _joined(parts: Sequence[str]) -> str:
    lines = (part.strip("\n") for part in parts if part)
    text = "\n\n".join("\n".join(map(line, part.split("\n"))) for part in lines)
    return re.sub(r"^(## .*)\n\n", r"\1\n", text, flags=re.MULTILINE)


def _in_short(answer: Answer) -> str:
    """What the best setting would have brought."""
    data, plan = answer.data, answer.comparison.plan
    count, spending, style = len(plan.table.instances), plan.spending, plan.table.style
    scope = pace = ""
    if count > 1:
        whole = _amounts(plan, [x * count for x in spending.budgets])
        scope = f" in each of {count} instances ({whole} in all)"
    if spending.average_cost is not None and spending.rounds is not None:
        limit, rounds = style.money(spending.average_cost), style.count(spending.rounds)
        pace = f", at most {limit} a round on average, for {rounds} rounds"
    brought = f"{answer.setting} would have brought {style.amount(data['earned'].values[0])} {plan.table.reward_unit}"
    coverage = data.attrs["coverage"]
    between = f"no interval below {FEWEST} runs"
    if not math.isnan(coverage):
        of_100 = math.floor(100 * coverage + 1e-9)
        between = f"{_ends(plan, data, 'earned', row=0)} in {of_100} of 100 runs"
    than = _than(answer, 1)
    place = data.attrs["settings"] > 1 and f", the most of {data.attrs['settings']} settings" * (
        data.attrs["rank"] == 1
    )
    money = f"with {_amounts(plan, spending.budgets)} to spend{scope}{pace}"
    return f"In short: {money}, {brought} ({between}){place or ''}; that is {than}."


def _than(answer: Answer, row: int) -> str:
    """``40% more than an even split``; with the interval, where that is not clear."""
    at = answer.data.isel(row=row)
    name = _named(answer, str(at["row"].values))
    low, high, gain, share = (float(at[x]) for x in ("gain_low", "gain_high", "gain", "share"))
    interval = answer.comparison.plan.table.style.interval(gain, low, high)
    if not (low > 0 or high < 0):
        return f"{interval} against {name}, which is not clear"
    much = interval if math.isnan(share) else f"{abs(share):.{0 if abs(share) >= 0.01 else 1}%}"
    return f"{much} {'more' if gain > 0 else 'less'} than {name}"


def _of_mixture(answer: Answer) -> str:
    """The best split that needs no learner, told as what it is, beside the policy."""
    names = answer.data["row"].values.tolist()
    name = MIXTURE if MIXTURE in names else BEST
    if name not in names or names.index(name) == 1:
        return ""
    row, plan = names.index(name), answer.comparison.plan
    earned = plan.table.style.amount(answer.data["earned"].values[row])
    how = " ratios first, each as far as it sells" if name == MIXTURE else ""
    split = f"A split that needs no learner, {_named(answer, name)} (by the file the best{how})"
    brings = f"brings {earned} {plan.table.reward_unit}"
    return f"{split}, {brings}; {answer.setting} brings {_than(answer, row)}."


def _named(answer: Answer, name: str) -> str:
    """A split's name, with the arm that it is about."""
    if name != BEST:
        return name
    if len(answer.data["instance"]) > 1:
        return f"{name} of each instance"
    return f"{name}, {answer.data['name'].values[0, int(np.nanargmax(answer.data['mixture'].values[0]))]}"


def _amounts(plan: ComparisonPlan, amounts: Sequence[float]) -> str:
    """``$500``; ``500 and 2,000,000 tokens`` of two costs."""
    style, unit = plan.table.style, plan.table.cost2_unit
    more = (f"{style.amount(x)} {unit}" for x in amounts[1:])
    return " and ".join([style.money(amounts[0], cents=False), *more])


def _ends(plan: ComparisonPlan, data: Any, name: str, percent: bool = False, **at: int) -> str:
    """``12–34``; ``5%–20%``."""
    low, high = (float(data[f"{name}_{end}"].isel(at)) for end in ("low", "high"))
    write = "{:.0%}".format if percent else plan.table.style.amount
    return f"{write(low)}–{write(high)}"


def _spread(plan: ComparisonPlan, data: Any, name: str, percent: bool = False, **at: int) -> str:
    """``23 (12–34)``; below 20 runs the mean alone."""
    value = float(data[name].isel(at))
    text = f"{value:.0%}" if percent else plan.table.style.amount(value)
    if math.isnan(data.attrs["coverage"]):
        return text
    return f"{text} ({_ends(plan, data, name, percent, **at)})"


def _against(answer: Answer) -> Table:
    data, style, rows = answer.data, answer.comparison.plan.table.style, []
    for i, name in enumerate(data["row"].values.tolist()[1:], start=1):
        at = data.isel(row=i)
        low, high, gain = (float(at[x]) for x in ("gain_low", "gain_high", "gain"))
        clear = "" if low > 0 or high < 0 else ", not clear"
        more = f"{style.interval(gain, low, high)} ({_signed(at['share'])}{clear})"
        cells = [style.amount(float(at["earned"])), more, f"{float(at['better']):.0%} of runs"]
        rows.append([_named(answer, name), *cells])
    return Table(
        ("against", data.attrs["reward_unit"], f"{answer.setting} brings more", "in"), rows
    )


def _signed(share: Any) -> str:
    """``+40%``; a dash where it is not known."""
    return "–" if math.isnan(float(share)) else f"{float(share):+.0%}".replace("-", "−")


def _arms(answer: Answer) -> Table:
    """Every arm, most money first in each instance."""
    plan, data, several = answer.comparison.plan, answer.data, len(answer.data["instance"]) > 1
    unit, style, table = plan.table.reward_unit, plan.table.style, plan.table
    with_mixture = MIXTURE in data["row"].values
    header = ["arm", "of the money", "at first", *["mixture"] * with_mixture, f"{table.pull_unit}s"]
    header += [unit, f"cost per {unit.removesuffix('s')}", "best ratio"]
    header, rows = header + [table.cost2_unit] * bool(table.cost2_unit), []
    for i, name in enumerate(data["instance"].values.tolist()):
        share = data["money_share"].values[i]
        for k in np.argsort(-share, kind="stable")[: len(table.instances[i].arms)].tolist():
            at, of = {"instance": i, "arm": k}, data.isel(instance=i, arm=k)
            cost, reward = float(of["cost_in_file"]), float(of["reward_in_file"])
            cells = [str(of["name"].values), _spread(plan, data, "money_share", True, **at)]
            cells += [f"{float(of[x]):.0%}" for x in ("first", "mixture")[: 1 + with_mixture]]
            cells += [_spread(plan, data, x, **at) for x in ("pulls", "results")]
            cells += [style.money(cost / reward) if reward else "–"]
            cells += [_best_ratio(plan, float(of["best"]))]
            cells += [_spread(plan, data, "spent2_of_arm", **at)] if table.cost2_unit else []
            rows.append([name, *cells] if several else cells)
    return Table(
        ["instance", *header] if several else header, rows, left=(0, 1) if several else (0,)
    )


def _instances(answer: Answer) -> Table:
    """What each instance brings, and where most of its money goes."""
    plan, data, rows = answer.comparison.plan, answer.data, []
    for i, name in enumerate(data["instance"].values.tolist()):
        of = data.isel(instance=i)
        most, best = (int(np.nanargmax(of[x].values)) for x in ("money_share", "best"))
        names, earned = of["name"].values, _spread(plan, data, "earned_in", row=0, instance=i)
        row = [name, len(plan.table.instances[i].arms), earned, _signed(of["share_in"][1])]
        row += [names[most], f"{float(of['money_share'][most]):.0%}"]
        rows.append([*row, names[best], _best_ratio(plan, float(of["best"][best]))])
    header = ["instance", "arms", plan.table.reward_unit, f"against {data['row'].values[1]}"]
    return Table(
        [*header, "most money to", "of it", "best ratio by the file", "sure"], rows, left=(0, 4, 6)
    )


def _best_ratio(plan: ComparisonPlan, probability: float) -> str:
    """The probability that it has the best ratio; where means are taken as given, whether it has."""
    return f"{probability:.0%}" if plan.worlds.posterior is not None else "yes" * (probability == 1)


def _assumptions(plan: ComparisonPlan) -> list[str]:
    """How sure the means are, what a pull was taken to be, what is for sale, how often one decides."""
    supply, cadence = plan.spending.supply, plan.played.cadence
    style, pull = plan.table.style, plan.table.pull_unit
    reason = f", for {plan.worlds.why_given}" if plan.worlds.why_given else ""
    sure = f"The file's means are taken as the truth{reason}."
    if plan.worlds.posterior is not None:
        sure = "The file's means are estimates: each run draws its true means from what the file leaves open."
    times = style.written(_range(supply.times, ".3g")) if supply.times else ""
    money = f"{_amounts(plan, plan.spending.budgets)} is {times} times the file's money, and so of its time"
    why = f", for {supply.reason}" if supply.reason else ""
    sale = f"An arm sells as many {pull}s as are bought, at its mean cost{why}."
    if supply.requests:
        there = style.written(_range(supply.requests, ","))
        sale = f"There are {there} {pull}s ({money}; --growth)."
    elif supply.growth is not None:
        sale = f"{money}, in which an arm sells at most {supply.growth:g} times what it sold (--growth)."
    decided = f"One decides after every {pull}{cadence.reason and ', '}{cadence.reason}."
    if cadence.size:
        every = f"once a {cadence.unit}, every" if cadence.unit else "every"
        late = f", and knows what came of it {count_of(cadence.later, cadence.unit or 'decision')} later"
        late *= bool(cadence.later)
        decided = f"One decides {every} {_range(cadence.size, ',')} {pull}s{late} (--decide)."
    return [f"{sure} Noise: {_noise(plan)}.", sale, decided]


def _noise(plan: ComparisonPlan) -> str:
    """What a pull looks like, in a sentence without its full stop."""
    unit, pull, worlds = plan.table.reward_unit, plan.table.pull_unit, plan.worlds
    is_seen = worlds.cost_cv_from == "days"
    source = "from day to day in the file" if is_seen else "stated, for counts do not tell it"
    spread = min(worlds.cost_cv, 1 / math.sqrt(3))
    if plan.table.wide and worlds.noise == "empirical":
        return f"a {pull} is a row of the file, drawn anew, and all arms and policies are asked the same"
    return {
        "clicks": f"a {pull} brings one of the {unit} or none, and its cost varies by {spread:.0%} ({source})",
        "bernoulli": f"a {pull} brings its bound or nothing, and costs its bound or nothing: as noisy as can be",
        "beta": f"a {pull} brings and costs between 0 and its bound (alpha + beta = {BETA_CONCENTRATION:g})",
        "empirical": f"a {pull} is one of the arm's own rows, drawn anew with its {unit} and its cost",
    }[worlds.noise]


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
        numbers = [with_interval(comparison, row, name) for name in ("reward", "regret", "pulls")]
        last = "best" if row["rank"] == 1 else against_the_best(comparison, row)
        cells.append([row["rank"], row["setting"], *numbers, *[last] * (len(ranked) > 1)])
    header = ("rank", "policy", unit, "regret", "pulls", f"{unit} against rank 1, paired")
    return Table(header[: len(cells[0])], cells, left=(1, 5))


def against_the_best(comparison: Comparison, row: Mapping[str, Any]) -> str:
    """``−2 (−3 to −1), clear``; ``−2 (−5 to +1), not clear (about 50 more runs)``."""
    style, more = comparison.plan.table.style, row["more_runs"]
    if comparison.clear is not None:
        best, name = comparison.ranking()[0]["setting"], row["setting"]
        found = []
        for claim, part in zip(("in most runs", "on average"), comparison.clear.pairs, strict=True):
            for word, pair in (("less", (best, name)), ("MORE", (name, best))):
                if runs := int(part.sel(setting=pair[0], against=pair[1])):
                    found.append(f"{word} {claim} (clear after {runs:,})")
        value = style.interval(row["difference"], math.nan, math.nan)
        return f"{value}, {', '.join(found) or 'not clear'}"
    verdict = "clear" if row["difference_clear"] else "not clear"
    if not row["difference_clear"] and more < 1e6:
        verdict += f" (about {float(f'{more:.2g}'):,.0f} more runs)"
    ends = row["difference_low"], row["difference_high"]
    return f"{style.interval(row['difference'], *ends)}, {verdict}"


def _until_clear(plan: ComparisonPlan, clear: Clearness) -> str:
    """Why it stopped, runs played and saved, how many pairs are clear in which claim."""
    rule, settings = clear.rule, len(plan.played.labels)
    pairs = settings * (settings - 1) // 2
    subject = "every pair is" if rule.until == "clear" else "one setting is ahead of all others,"
    first = f"not clear after all {clear.runs:,} runs"
    if clear.is_reached:
        first = f"{subject} clear after {clear.runs:,} of at most {rule.max_runs:,} runs"
    most, average = (
        f"{pairs - clear.open_pairs(x)} of {pairs} pairs" for x in ("most runs", "average")
    )
    bound = f"a run can earn {clear.bound:,.4g} {plan.table.reward_unit}"
    both = f"Clear in most runs: {most}; on average: {average} ({bound})"
    return f"Until {rule.until}: {first}, {clear.looks} looks. {both}."


def _read(plan: ComparisonPlan) -> list[str]:
    """The file, the units, what a pull is, how much was run."""
    table, spending, count = plan.table, plan.spending, len(plan.table.instances)
    sizes = sorted(len(instance.arms) for instance in table.instances)
    pulls = [spending.pulls(instance, row) for row, instance in enumerate(table.instances)]
    bounds = [np.append(instance.reward_bound, instance.cost_bound) for instance in table.instances]
    reward, *costs = (_range(values, ".4g") for values in np.transpose(bounds).tolist())
    takes = zip(table.spent_units.values(), costs, strict=True)
    units = [f"{unit} (at most {cost})" for unit, cost in takes]
    end = "forfeits its reward" if spending.last_pull == "forfeits" else "counts"
    counts = {"run": plan.runs, "instance": count, "setting": len(plan.played.labels)}
    parts = [count_of(n, name) for name, n in counts.items()]
    kinds = f"{table.kind}, {count_of(count, 'instance')}, {sum(sizes)} arms"
    return [
        f"{table.path}: {kinds}" + f" ({sizes[0]} to {sizes[-1]} in an instance)" * (count > 1),
        *table.notes[: table.changes],
        f"a {table.pull_unit} brings {table.reward_unit} (at most {reward}) and takes {' and '.join(units)}; the "
        f"budget is about {_range(pulls, ',.3g')} {table.pull_unit}s, of which the last one {end}",
        f"{' × '.join(parts)} = {plan.runs * count * len(plan.played.labels):,} runs; seed {plan.worlds.seed}",
    ]


def with_interval(comparison: Comparison, row: Mapping[str, Any], name: str) -> str:
    """``12.34 ± 0.56``, in the file's style."""
    half = (row[f"{name}_high"] - row[f"{name}_low"]) / 2
    return comparison.plan.table.style.plus_minus(row[name], half)


def _range(values: Sequence[float], form: str) -> str:
    low, high = (
        f"{x:,.0f}" if abs(x) >= 1000 and "," in form else f"{x:{form}}"
        for x in (min(values), max(values))
    )
    return low if low == high else f"{low} to {high}"


# --- Pictures


def money_picture(answer: Answer, progress: bool | str = False) -> bytes:
    """Money on each arm over the budget, stacked: of the six instances that bring most."""
    plan, data, panels = answer.comparison.plan, answer.data, []
    instances, setting = plan.table.instances, list(plan.played.labels).index(answer.setting)
    parts = [money_of_part(plan, setting, i / _POINTS, progress) for i in range(1, _POINTS)]
    money = np.stack([*parts, data["money"].values])
    limit = _PARTS_OF_ONE if len(instances) == 1 else _PARTS
    for row in np.argsort(-data["earned_in"].values[0], kind="stable")[:_PANELS].tolist():
        spent, names = money[:, row, : len(instances[row].arms)], instances[row].arms
        order = np.argsort(-spent[-1], kind="stable")
        kept = limit if len(order) > limit + 1 else len(order)
        largest, rest = order[:kept], order[kept:]
        heights, shown, others = spent[:, largest], [line(names[k]) for k in largest], ""
        if len(rest):
            heights = np.column_stack([heights, spent[:, rest].sum(axis=1)])
            shown.append(others := f"{len(rest)} others")
        title = line(instances[row].name)
        title = title if len(instances) > 1 else f"{answer.setting}: money on each arm"
        panels.append({"title": title, "names": shown, "heights": heights, "rest": others})
    unit, style = _cost_unit(plan), plan.table.style
    across = f"budget{' of each instance' if len(instances) > 1 else ''}{unit}"
    form = style.amount if style.symbol else partial(style.money, cents=False)
    budgets = plan.spending.budget * np.arange(1, _POINTS + 1) / _POINTS
    figure = tools.stacked(budgets, panels, across=across, up=f"money{unit}", number_format=form)
    return tools.encoded(figure, "png")


def results_picture(answer: Answer) -> bytes:
    """What the best setting and the splits bring, against the money spent."""
    import xarray

    comparison, baselines = answer.comparison, answer.baselines
    plan, count = comparison.plan, len(comparison.plan.table.instances)
    at = list(plan.played.labels).index(answer.setting)
    every = np.concatenate([comparison.accounts.earned[[at]], baselines.accounts.earned])
    estimate = mean(xarray.DataArray(every, dims=("curve", "replicate", "mark")), over="replicate")
    summed = f"sum over {count} instances, " if count > 1 else ""
    clock = "budget spent" if plan.spending.rounds is None else "budget that was due"
    figure = tools.line_chart(
        np.asarray(plan.spending.shares) * plan.spending.budget,
        answer.data["row"].values.tolist(),
        [part.values for part in (estimate.value, estimate.low, estimate.high)],
        title=f"{summed}mean of {count_of(plan.runs, 'run')}, 95 % intervals",
        across=f"{clock}{' in each instance' if count > 1 else ''}{_cost_unit(plan)}",
        up=plan.table.reward_unit,
    )
    return tools.encoded(figure, "png")


def _cost_unit(plan: ComparisonPlan) -> str:
    """`` [$]``; nothing where the file says no more than that it was spent."""
    unit = plan.table.style.symbol or plan.table.cost_unit
    return "" if unit == "spent" else f" [{unit}]"


# --- Files


def page_of(text: str, pictures: Mapping[str, bytes], command: str = "") -> str:
    """``report.html``: one page that needs nothing else, of the Markdown and of PNG files by name."""
    import jinja2

    from jaxbandits import __version__

    text = re.sub(r"^(## .*)\n", r"\1\n\n", text, flags=re.MULTILINE)
    every = [*text.split("\n\n"), *(["## To do it again", command] if command else [])]
    blocks = list(map(_html, every))
    for name, picture in pictures.items():
        data = base64.b64encode(picture).decode()
        image = f'<img src="data:image/png;base64,{data}" alt="{name} over the budget">'
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


def answer_files(
    answer: Answer, pictures: Mapping[str, bytes], command: str = ""
) -> dict[str, bytes]:
    """A table of the arms, all numbers, pictures and the page, by file name."""
    facts = _plain(answer.data.to_dict()) | {"warnings": answer.warnings}
    of_arms = [x for x, y in answer.data.items() if y.dims == ("instance", "arm")]
    frame = answer.data[of_arms].to_dataframe().query("name != ''")
    rows = frame.reset_index().drop(columns="arm").rename(columns={"name": "arm"})
    columns = ["instance", "arm", *(x for x in of_arms if x != "name")]
    return {
        "answer.json": (json.dumps(facts, indent=1) + "\n").encode(),
        "arms.csv": Table(columns, rows[columns].to_numpy(object).tolist()).csv().encode(),
        **{f"{name}.png": picture for name, picture in pictures.items()},
        "report.html": page_of(markdown(answer, _EVERY), pictures, command).encode(),
    }


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
    progress: bool | str = False,
) -> list[Path]:
    """Write the files of :meth:`Comparison.save`, ``report.html``, pictures, ``arms.csv`` and
    ``answer.json``.

    Example:
        >>> from jaxbandits.apps.comparison import answer_of, write_report
        >>> written = write_report(answer_of(found), "results")      # doctest: +SKIP
    """
    pictures = {"money": money_picture(answer, progress), "results": results_picture(answer)}
    pages = answer_files(answer, pictures, command)
    return [*answer.comparison.save(folder, about), *put_all(folder, pages)]
