"""What a comparison says: one list of sections for the terminal and for ``report.html``, and the
files beside them.
"""

from __future__ import annotations

import base64
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandits._tables import Table, count_of, line
from jaxbandits.apps.comparison.answer import (
    FEWEST,
    Answer,
    ArmAnswer,
    Gain,
    NextSplit,
    NoiseCheck,
    SettingAnswer,
    Spread,
    leading,
    money_over_budgets,
)
from jaxbandits.apps.comparison.comparison import Clearness, Comparison, put_all
from jaxbandits.apps.comparison.plan import (
    AVERAGE_COST_POLICIES,
    BEST,
    MIXTURE,
    POLICIES,
    SEEN,
    TWO_COST_POLICIES,
    ComparisonPlan,
)
from jaxbandits.apps.comparison.worlds import BETA_CONCENTRATION
from jaxbandits.apps.drawing import Drawing
from jaxbandits.statistics import invisible, mean

GLOSSARY = (
    (
        "regret",
        "what the best arm, known from the beginning, would have brought more for the same money",
    ),
    ("run", "the whole budget spent once, from knowing nothing to the last pull"),
    ("setting", "a policy with one value for each of its parameters"),
    (
        "interval",
        "a ± b: were all runs made anew, the mean would be off by more than b in 5 of 100 cases",
    ),
    (
        "clear",
        "a difference whose interval (a to b) leaves out 0; those of a whole table hold at once in 95 of 100 cases",
    ),
    (
        "instance",
        "a problem of its own in the file, such as a campaign, with its own arms and its own budget",
    ),
)
_MOST_ON_PAGE = 2000  # rows of a table, so that the page opens at once
_WORTH_A_LINE = 0.005  # of an instance's money, in the split that comes next
_MOST_RANKS = 6  # settings side by side, instance by instance


class Cell(str):
    """Text of a table that is sorted by a number."""

    value: str  # the number as the page has it; empty where there is none

    def __new__(cls, text: str, number: float) -> Cell:
        """The text, and what it is sorted by."""
        cell = super().__new__(cls, text)
        cell.value = f"{number:.9g}" if math.isfinite(number) else ""
        return cell


@dataclass(frozen=True)
class Section:
    """Sentences and tables that belong together, in the order in which they are read."""

    title: str  # a heading on the page; on the terminal only if it ends in a colon
    blocks: Sequence[str | Table]
    indent: int = 0  # blanks before each line of the terminal; tables then stand apart
    rows: int = 40  # of a table on the terminal; the page has all
    rest: str = "table.csv"  # the file that has the rows that are left out
    picture: str = ""  # that stands below the title on the page, by its name
    page_only: bool = False

    def text(self) -> str:
        """Lines for a terminal."""
        lines, pad, apart = [], " " * self.indent, [""] * bool(self.indent)
        for block in self.blocks:
            if isinstance(block, str):
                lines.append(f"{pad}{line(block)}")
                continue
            rows = block._replace(rows=block.rows[: self.rows]).text().split("\n")
            more = len(block.rows) - self.rows
            rows += [f"… {more:,} more in {self.rest}"] if more > 0 else []
            lines += [*apart, *(f"{pad}{pad}{text}".rstrip() for text in rows), *apart]
        head = [self.title] if self.title.endswith(":") else []
        return "\n".join(head + lines).replace("\n\n\n", "\n\n").strip("\n")


def text_of(comparison: Comparison, answer: Answer | None = None, explain: bool = False) -> str:
    """All that the command prints of a comparison, but for its own notes."""
    sections = [*(answer_sections(answer) if answer else ()), *comparison_sections(comparison)]
    sections += [_words()] if explain else []
    parts = [part.text() for part in sections if not part.page_only]
    return "\n\n".join(part for part in parts if part)


def page_of(answer: Answer, pictures: Mapping[str, bytes], command: str = "") -> str:
    """``report.html``: one page that needs nothing else. The pictures are PNG files by name."""
    import jinja2

    from jaxbandits import __version__

    sections = [*answer_sections(answer), *comparison_sections(answer.comparison), _words()]
    sections += [Section("To do it again", [command])] if command else []
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["line"] = line  # without what a terminal would obey
    return environment.get_template("report.html.jinja").render(
        sections=[part for part in sections if part.title],
        most=_MOST_ON_PAGE,
        pictures={name: base64.b64encode(picture).decode() for name, picture in pictures.items()},
        version=__version__,
    )


# --- The answer


def answer_sections(answer: Answer) -> list[Section]:
    """What the best setting, and those that were asked for, make of the money."""
    plan, several = answer.comparison.plan, len(answer.comparison.plan.table.instances) > 1
    blocks: list[str | Table] = [*_most_of_all(answer)]
    for part in answer.settings:
        blocks += [_earned(answer, part), _against_baselines(answer, part)]
        blocks += [_instances(answer, part) if several else _arms(answer, part)]
    blocks += (
        [_sure_of_the_best(answer)] if plan.worlds.posterior is not None and not several else []
    )
    blocks += [f"warning: {text}" for text in answer.warnings]
    note = f"{_foretold(answer)} “Best ratio”: the probability, by the file, that the arm has the best "
    note += f"ratio of {plan.table.reward_unit} to cost."
    tables = [_arms(answer, part) for part in answer.settings] if several else []
    return [
        Section(_headline(plan), blocks, indent=2, rows=12 if several else 8, rest="arms.csv"),
        *next_sections(answer),
        Section("Where the money goes", [note, *tables], picture="money", page_only=True),
        Section("What it brings", (), picture="results", page_only=True),
        Section("What was assumed", _assumptions(answer), indent=2),
    ]


def _headline(plan: ComparisonPlan) -> str:
    style, count, scope, pace = plan.table.style, len(plan.table.instances), "", ""
    spending = plan.spending
    if count > 1:
        scope = f" in each of {count} instances ({_amounts(plan, [x * count for x in spending.budgets])} in all)"
    if spending.average_cost is not None and spending.rounds is not None:
        limit, rounds = style.money(spending.average_cost), style.count(spending.rounds)
        pace = f", at most {limit} a round on average, for {rounds} rounds"
    return (
        f"If you had run this again with {_amounts(plan, spending.budgets)} to spend{scope}{pace}:"
    )


def _amounts(plan: ComparisonPlan, amounts: Sequence[float]) -> str:
    """``$500``; ``500 and 2,000,000 tokens`` of two costs."""
    style, unit = plan.table.style, plan.table.cost2_unit
    return " and ".join(
        [style.money(amounts[0], cents=False), *(f"{style.amount(x)} {unit}" for x in amounts[1:])]
    )


def _earned(answer: Answer, part: SettingAnswer) -> str:
    """What a setting would have brought."""
    plan, settings = answer.comparison.plan, len(answer.comparison.plan.played.labels)
    place = "the most of" if part.rank == 1 else f"number {part.rank} of"
    if part is answer.settings[0] and part.rank > 1:
        place = f"the most of those that kept the bound, number {part.rank} of"
    standing = f", {place} {settings} settings" if settings > 1 else ""
    between = f"(no interval for a further run: {_too_few(answer)})"
    if not math.isnan(part.earned.coverage):
        between = f"({_between(plan, part.earned)} in {_of_100(part.earned)} of 100 runs)"
    used = f", for {_amounts(plan, [x.mean for x in part.spent])}" if len(part.spent) > 1 else ""
    return f"{part.setting} would have brought {_results(plan, part.earned)} {between}{standing}{used}."


def _most_of_all(answer: Answer) -> list[str]:
    """The row that brings most, where it is not the best setting itself: how much more, and what
    either may lose.
    """
    plan, part = answer.comparison.plan, answer.settings[0]
    if (top := leading(part)) is None:
        return []
    name, sure = (
        _named(answer, part, top.name),
        f"more than {part.setting} in {1 - top.gain.better:.0%} of runs",
    )
    text = f"{name} brings most if the file is right, {_results(plan, top.earned)}, {sure}; "
    text += f"{part.setting} brings {abs(top.gain.share):.0%} less"
    if not math.isnan(top.earned.coverage):
        low, top_low = (plan.table.style.amount(x.earned.low) for x in (part, top))
        risk = "loses least" if part.earned.low > top.earned.low else "no more"
        text += f" and {risk} if it is wrong: {low} against {top_low} in a bad run (1 in "
        text += f"{2 / (1 - top.earned.coverage):.0f})"
    return [f"{text}."]


def _named(answer: Answer, part: SettingAnswer, name: str) -> str:
    """A split's name, with the arm that it is about."""
    best = (
        " of each instance" if len(part.arms) > 1 else f", {part.arms[0][answer.best_arms[0]].name}"
    )
    return line(name + best * (name == BEST))


def _foretold(answer: Answer) -> str:
    """What the numbers in brackets beside a mean are, or why there are none."""
    share = answer.settings[0].arms[0][0].share
    if math.isnan(share.coverage):
        return f"No interval for a further run stands beside the means: {_too_few(answer)}."
    return f"{_of_100(share)} of 100 further runs would lie between the numbers in brackets."


def _of_100(spread: Spread) -> int:
    return math.floor(100 * spread.coverage + 1e-9)


def _too_few(answer: Answer) -> str:
    return f"it takes {FEWEST} runs, {answer.comparison.data.sizes['replicate']} were played"


def _against_baselines(answer: Answer, part: SettingAnswer) -> Table:
    plan, rows = answer.comparison.plan, []
    for name, earned, gain, _ in part.baselines:
        row = [_named(answer, part, name), Cell(plan.table.style.amount(earned.mean), earned.mean)]
        sure = "" if gain.clear else ", not clear"
        row += [Cell(_gain(plan, gain), gain.mean), Cell(f"({_percent(gain)}{sure})", gain.share)]
        rows.append([*row, Cell(f"{gain.better:.0%} of runs", gain.better)])
    return Table(("against", plan.table.reward_unit, "difference", "", "more in"), rows)


def _arms(answer: Answer, part: SettingAnswer) -> Table:
    """Every arm, most money first in each instance."""
    plan, several = answer.comparison.plan, len(part.arms) > 1
    unit, style = plan.table.reward_unit, plan.table.style
    per_result = f"cost per {unit.removesuffix('s')}"
    header = ["arm", "of the budget", f"{plan.table.pull_unit}s", unit, per_result, "best ratio"]
    header += [plan.table.cost2_unit] if plan.table.cost2_unit else []
    rows = []
    for arm in (arm for arms in part.arms for arm in _by_money(arms)):
        price = arm.file_cost / arm.file_reward if arm.file_reward else math.inf
        row = [
            line(arm.name),
            _spread(plan, arm.share, percent=True),
            _spread(plan, arm.pulls),
            _spread(plan, arm.results),
            Cell(style.money(price) if arm.file_reward else "–", price),
            _best_ratio(plan, arm),
            *([_spread(plan, arm.spent2)] if arm.spent2 is not None else []),
        ]
        rows.append([line(arm.instance), *row] if several else row)
    return Table(
        ["instance", *header] if several else header, rows, left=(0, 1) if several else (0,)
    )


def _instances(answer: Answer, part: SettingAnswer) -> Table:
    """What each instance brings, and where most of its money goes."""
    plan, split, rows = answer.comparison.plan, part.baselines[0], []
    against = "against the file's split" if split.name == SEEN else "against even"
    for earned, gain, arms in zip(part.by_instance, split.by_instance, part.arms, strict=True):
        first, best = _by_money(arms)[0], _best_by_ratio(arms)
        row = [
            line(first.instance),
            len(arms),
            _spread(plan, earned),
            Cell(_percent(gain), gain.share),
        ]
        row += [
            line(first.name),
            Cell(f"{first.share.mean:.0%}", first.share.mean),
            line(best.name),
        ]
        rows.append([*row, _best_ratio(plan, best)] if plan.worlds.posterior is not None else row)
    header = (
        "instance",
        "arms",
        plan.table.reward_unit,
        against,
        "most money to",
        "of it",
        "best ratio by the file",
    )
    return Table((*header, "sure")[: len(rows[0])], rows, left=(0, 4, 6))


def _sure_of_the_best(answer: Answer) -> str:
    """Which arm has the best ratio, and how sure the file is of that."""
    (arms,), plan = answer.settings[0].arms, answer.comparison.plan
    best, *rivals = sorted(arms, key=lambda arm: -arm.best)[:3]
    rest = ", ".join(f"{arm.name} {arm.best:.0%}" for arm in rivals)
    text = f"{best.name} has the best ratio of {plan.table.reward_unit} to cost: "
    text += f"the file is {best.best:.0%} sure of that (then {rest})."
    most = arms[answer.best_arms[0]]
    if most is not best and plan.spending.supply.requests:
        text += f" All on {most.name} would bring more, for the requests are fewer than the money could buy."
    return text


def _assumptions(answer: Answer) -> list[str]:
    """How sure the means are, what a pull was taken to be, that an arm never runs out, and the
    check of the noise.
    """
    plan = answer.comparison.plan
    reason = f", for {plan.worlds.why_given}" if plan.worlds.why_given else " (--uncertainty given)"
    sure = f"The file's means are taken as the truth{reason}."
    if plan.worlds.posterior is not None:
        sure = "The file's means are estimates: each run draws its true means from what the file leaves open "
        sure += "(--uncertainty given takes them as they are)."
    return [
        sure,
        f"Noise: {_noise(plan, plan.worlds.noise)}.",
        _for_sale(plan),
        _decided(plan),
        *check_of(answer),
    ]


def _for_sale(plan: ComparisonPlan) -> str:
    """What arms sell, or how many requests there are."""
    supply, style, pull = plan.spending.supply, plan.table.style, plan.table.pull_unit
    if supply.growth is None:
        reason = f", for {supply.reason}" if supply.reason else " (--growth none)"
        return f"An arm is taken to have as many {pull}s to sell as are bought, at its mean cost{reason}."
    times = style.written(_range(supply.times, ".3g"))
    time = f"{_amounts(plan, plan.spending.budgets)}: {times} times the file's money, and so of its time"
    if supply.requests:
        requests = style.written(_range(supply.requests, ","))
        grown = "as many as" if supply.growth == 1 else f"{supply.growth:g} times as many as"
        whole = f"there are {requests} {pull}s, {grown} in the file (--growth)."
        return whole.capitalize() if plan.table.wide else f"{time}, in which {whole}"
    return f"{time}, in which an arm sells at most {supply.growth:g} times what it sold (--growth; none: no end)."


def _decided(plan: ComparisonPlan) -> str:
    """How often one decides, and when results are known."""
    cadence, pull = plan.played.cadence, plan.table.pull_unit
    if not cadence.size:
        reason = f"{cadence.reason and ', '}{cadence.reason}"
        return f"One decides anew after every {pull}{reason}, and knows at once what it brought."
    sizes = _range(cadence.size, ",")
    every = (
        f"once a {cadence.unit}, every {sizes} {pull}s"
        if cadence.unit
        else f"every {sizes} {pull}s"
    )
    delay = "by all that came before"
    if cadence.later:
        delay = (
            f"and knows what came of it {count_of(cadence.later, cadence.unit or 'decision')} later"
        )
    return f"One decides {every}, {delay} (--decide, --known-after)."


# --- What to do next


_OPTIMIST, _MIXER = (
    "take the arm whose reward for the money could be the best by all that was seen: one that was tried little could "
    "be far better than it looks",
    "draw the arm from the mixture that could bring most by all that was seen",
)
RULES: Mapping[str, str] = {
    **dict.fromkeys(POLICIES, _OPTIMIST),
    **dict.fromkeys((*AVERAGE_COST_POLICIES, "ucb_bwk", "thompson_lp"), _MIXER),
    "bts": "draw for each arm a reward and a cost from what its results leave open, and take the best ratio",
    "b_greedy": "take the arm that brought most for its money so far",
    "epsilon_first": "take all arms in turn for the first share epsilon of the budget, then the best of them",
    "ucb1": "take the arm whose reward could be the largest by all that was seen, whatever it costs",
    "kube": "fill the budget that is left with what could bring most by all that was seen, and draw a pull of that",
    "pacer": "take the arm that could bring most net of its cost, at a price of money that keeps the pace",
}
"""What a policy does, in words."""


def next_sections(answer: Answer) -> list[Section]:
    """The split until one decides again, how to go on, and what it costs to decide no more often."""
    plan, split, part = answer.comparison.plan, answer.next, answer.settings[0]
    if split is None:
        return []
    cadence, pull, supply = plan.played.cadence, plan.table.pull_unit, plan.spending.supply
    name = _named(answer, part, split.row)
    advice = f"Then keep to these shares{' while they sell' * bool(supply.stock)}: {name} learns nothing."
    if not split.fixed:
        often = count_of(cadence.size[0], pull) if cadence.size else pull
        again = f"every {cadence.unit}" if cadence.unit else f"after every {often}"
        rule = RULES.get(split.row.split("(")[0], "ask the policy again")
        advice = f"Then, {again}, {rule}. What was seen is the file and all that came since; "
        advice += "jb.live.Agent keeps the books and decides (docs/live.md)."
    blocks: list[str | Table] = [_split_table(plan, split), advice]
    if supply.requests and split.row == MIXTURE and len(supply.requests) == 1:
        both = f"--columns cost2=1 --budget {plan.spending.budget:g},{supply.requests[0]}"
        both += f" --policies {','.join(TWO_COST_POLICIES)}"
        blocks.append(
            f"These policies look at the money alone; for those that count requests, too: {both}."
        )
    if (gain := split.per_click) is not None:
        less = f"{abs(gain.share):.1%} {'less' if gain.mean > 0 else 'more'}"
        sure = "" if gain.clear else f" (not clear: {_gain(plan, gain)} the other way round)"
        seldom = f"once a {cadence.unit}" if cadence.unit else "so seldom"
        late = (
            f", with results {count_of(cadence.later, cadence.unit or 'decision')} late,"
            if cadence.later
            else ""
        )
        blocks.append(
            f"Deciding {seldom}{late} brings {part.setting} {less} than deciding after every {pull}{sure}."
        )
    when = (
        f"on the first {cadence.unit}"
        if cadence.unit
        else f"with the first {split.share:.0%} of the money"
    )
    return [Section(f"What {name} does {when}:", blocks, indent=2, rest="report.html")]


def _split_table(plan: ComparisonPlan, split: NextSplit) -> Table:
    """Money and pulls of each arm that gets some, most first in each instance."""
    style, several, rows = plan.table.style, len(plan.table.instances) > 1, list[list[Any]]()
    for instance, money, pulls in zip(plan.table.instances, split.money, split.pulls, strict=True):
        shares = money[: len(instance.arms)] / max(float(money.sum()), 1e-300)
        for k in np.argsort(-shares, kind="stable")[
            : np.count_nonzero(shares >= _WORTH_A_LINE)
        ].tolist():
            cells = [line(instance.arms[k]), Cell(f"{shares[k]:.0%}", shares[k])]
            cells += [Cell(style.money(money[k]), money[k]), Cell(style.amount(pulls[k]), pulls[k])]
            rows.append([line(instance.name), *cells] if several else cells)
    header = ["arm", "of the money", plan.table.cost_unit, f"{plan.table.pull_unit}s"]
    return Table(
        ["instance", *header] if several else header, rows, left=(0, 1) if several else (0,)
    )


def check_of(answer: Answer) -> list[str]:
    """Whether the ranking depends on the noise, if another one was played or there is a reason why
    not.
    """
    plan, check = answer.comparison.plan, answer.check
    if not isinstance(check, NoiseCheck):
        return [f"Check: {check}."] if check else []
    runs, style = count_of(check.runs, "run"), plan.table.style
    if len(check.ranking) == 1:
        verdict = (
            f"{style.amount(check.ranking[0][1])} {plan.table.reward_unit} an instance ({runs})"
        )
    elif check.same_best:
        stays = (
            "ranking stays as it is"
            if check.same_order
            else "best stays the best, places below change"
        )
        verdict = f"the {stays} ({runs})"
    else:
        lead = f"{'clearly' if check.ahead.clear else 'not clearly'} ({_gain(plan, check.ahead)}, {runs})"
        verdict = f"there {check.ranking[0][0]} is ahead, {lead}: the ranking depends on the noise"
    return [f"Check: {_noise(plan, check.noise)}: {verdict}."]


def _noise(plan: ComparisonPlan, noise: str) -> str:
    """What a pull looks like, in a sentence without its full stop."""
    unit, pull = plan.table.reward_unit, plan.table.pull_unit
    days = plan.worlds.cost_cv_from == "days"
    source = (
        "from day to day in the file" if days else "stated, for counts do not tell it: --cost-cv"
    )
    spread = min(plan.worlds.cost_cv, 1 / math.sqrt(3))
    if plan.table.wide and noise == "empirical":
        return f"a {pull} is a row of the file, drawn anew: all arms are asked the same, and so are all policies"
    return {
        "clicks": f"a {pull} brings one of the {unit} or none, and its cost varies by {spread:.0%} ({source})",
        "bernoulli": f"a {pull} brings its bound or nothing, and costs its bound or nothing: as noisy as can be",
        "beta": f"a {pull} brings and costs between 0 and its bound (alpha + beta = {BETA_CONCENTRATION:g})",
        "empirical": f"a {pull} is one of the arm's own rows, drawn anew with its {unit} and its cost",
    }[noise]


def closing(answer: Answer) -> str:
    """The last sentence."""
    plan, part, check = answer.comparison.plan, answer.settings[0], answer.check
    split = part.baselines[0]
    relation = f"{_gain(plan, split.gain)} against {split.name}, which is not clear"
    if split.gain.clear:
        more = "more" if split.gain.mean > 0 else "less"
        relation = f"{abs(split.gain.share):.0%} {more} than {split.name}"
    doubted = isinstance(check, NoiseCheck) and len(check.ranking) > 1 and not check.same_best
    depends = "; which setting is best depends on the noise (see the check)" if doubted else ""
    headline = _most_of_all(answer)
    if headline:
        return f"In short: {headline[0].removesuffix('.')}{depends}."
    brought = f"{part.setting} would have brought {_results(plan, part.earned)}"
    return f"In short: {brought}, {relation}{depends}."


# --- The comparison: ranking, instances, what was read


ANY_TIME = "at 5 % over all looks, all pairs and both claims; the ± are those of a number of runs fixed beforehand"
AT_ONCE = (
    "the interval of the difference leaves out 0; all intervals of a table hold at once with 95 %"
)
_CLAIMED = {
    "any": "in most runs or on average",
    "most runs": "in most runs",
    "average": "on average",
}
_LAST = {"counts": "counts, though it may cost more than is left", "forfeits": "forfeits"}


def comparison_sections(comparison: Comparison) -> list[Section]:
    """The ranking and its limits, each instance, what was read, and what was noticed."""
    plan, clear = comparison.plan, comparison.clear
    sections = [
        Section("All settings, ranked", _ranking(comparison)),
        Section("Until it is clear", _until_clear(plan, clear) if clear else ()),
        Section("What so many runs cannot tell", limits(comparison)),
        Section(
            "Each instance", _each_instance(comparison) if len(plan.table.instances) > 1 else ()
        ),
        Section("What was read", _read(plan)),
        Section("Notes", [f"note: {note}" for note in comparison.notes]),
    ]
    return [section for section in sections if section.blocks]


def _ranking(comparison: Comparison) -> list[str | Table]:
    plan, rows = comparison.plan, comparison.ranking()
    unit, count, alone = plan.table.reward_unit, len(plan.table.instances), len(rows) == 1
    header: tuple[str, ...] = (
        "rank",
        "policy",
        unit,
        "regret",
        "pulls",
        f"{unit} against rank 1, paired",
    )
    cells = [
        [
            row["rank"],
            row["setting"],
            *(
                Cell(with_interval(comparison, row, name), row[name])
                for name in ("reward", "regret", "pulls")
            ),
            Cell(
                "best" if row["rank"] == 1 else against_the_best(comparison, row), row["difference"]
            ),
        ]
        for row in rows
    ]
    if alone:  # nothing to compare with, and no test
        header, cells = header[:-1], [row[:-1] for row in cells]
    average = f"the average of {count} instances, which all weigh the same; " if count > 1 else ""
    notes = [
        f"({average}± 95 % interval over {count_of(plan.runs, 'run')}, each interval by itself"
    ]
    notes += [] if alone else [f" clear: {AT_ONCE if comparison.clear is None else ANY_TIME}"]
    notes += (
        [" the instances are given, not sampled: the intervals say nothing about others"]
        if count > 1
        else []
    )
    return [
        Table(header, cells, left=(1, 5)),
        *(f"{text};" for text in notes[:-1]),
        f"{notes[-1]})",
    ]


def against_the_best(comparison: Comparison, row: Mapping[str, Any]) -> str:
    """How much more than the best it earns, and whether that is clear, or would be after how many
    more runs.

    ``−2 (−3 to −1), clear``, ``−2 (−5 to +1), not clear (about 50 more runs; …)``; while runs were
    added, the claims that decided: ``−2, less in most runs (clear after 50)``.
    """
    more, low_end, high_end = (row[f"more_runs{end}"] for end in ("", "_least", "_most"))
    style, ends = comparison.plan.table.style, (row["difference_low"], row["difference_high"])
    if comparison.clear is not None:
        best, name = comparison.ranking()[0]["setting"], row["setting"]
        after = [
            (f"{word} {claim}", int(part.sel(setting=ahead, against=behind)))
            for claim, part in zip(
                ("in most runs", "on average"), comparison.clear.pairs, strict=True
            )
            for word, ahead, behind in (("less", best, name), ("MORE", name, best))
        ]
        verdict = (
            ", ".join(f"{finding} (clear after {runs:,})" for finding, runs in after if runs)
            or "not clear"
        )
        ends = math.nan, math.nan  # of a number of runs fixed beforehand
    elif row["difference_clear"]:
        verdict = "clear"
    elif not more < 1e6:
        verdict = "not clear"
    else:
        low_end, high_end = _rounded(min(low_end, more)), max(high_end, more)
        between = (
            f"{low_end} to {_rounded(high_end)}"
            if high_end < 1e6
            else f"{low_end} at least, perhaps never"
        )
        verdict = f"not clear (about {_rounded(more)} more runs; {between})"
    return f"{style.interval(row['difference'], *ends)}, {verdict}"


def _until_clear(plan: ComparisonPlan, clear: Clearness) -> list[str]:
    """Why it stopped, runs played and saved, how many pairs are clear in which claim."""
    rule, settings, claimed = clear.rule, len(plan.played.labels), _CLAIMED[clear.rule.claim]
    pairs = settings * (settings - 1) // 2
    subject = "every pair is" if rule.until == "clear" else "one setting is ahead of all others,"
    first = f"not clear ({claimed}) after all {clear.runs:,} runs, {clear.looks} looks"
    if clear.is_reached:
        saved = f"{rule.max_runs - clear.runs:,} saved, {clear.looks} looks"
        first = f"{subject} clear ({claimed}) after {clear.runs:,} of at most {rule.max_runs:,} runs: {saved}"
    most_runs, average = (
        f"{pairs - clear.open_pairs(claim)} of {pairs} pairs" for claim in ("most runs", "average")
    )
    more = f"  {clear.beyond} runs earned more than that; what is more was not counted on average"
    return [
        f"until {rule.until}: {first}",
        f"  who earns more in most runs is clear in {most_runs}; on average in {average} (a run can earn "
        f"{clear.bound:,.4g} {plan.table.reward_unit}, of which a disaster not yet seen may lose all)",
        *([more] if clear.beyond else []),
    ]


def limits(comparison: Comparison) -> list[str]:
    """What so many runs cannot tell: tails that carry the mean, few runs, and disasters that no run
    has seen.
    """
    plan = comparison.plan
    warned = [f"warning: {text}" for text in comparison.doubts()]
    of_each = "of each instance, " if len(plan.table.instances) > 1 else ""
    return [*warned, f"note: {of_each}{invisible(plan.runs, 'replicate')}"]


def _each_instance(comparison: Comparison) -> list[str | Table]:
    """The reward in each instance, for the settings that are best overall."""
    plan = comparison.plan
    ranked = [row["setting"] for row in comparison.ranking()][:_MOST_RANKS]
    by_instance: dict[str, dict[str, dict[str, Any]]] = {}
    for row in comparison.table():
        if row["scope"] == "instance":
            by_instance.setdefault(row["instance"], {})[row["setting"]] = row
    rows = []
    for name, by_setting in by_instance.items():
        marks = {
            x: "*" if row["rank"] == 1 else " " if row["difference_clear"] else "~"
            for x, row in by_setting.items()
        }
        cells = [
            Cell(
                with_interval(comparison, by_setting[x], "reward") + marks[x],
                by_setting[x]["reward"],
            )
            for x in ranked
        ]
        rows.append((line(name), by_setting[ranked[0]]["arms"], *cells))
    header = ("instance", "arms", *(f"rank {n}" for n in range(1, len(ranked) + 1)))
    title = f"{plan.table.reward_unit} in each instance, by overall rank (* best there, ~ not clearly worse than it)"
    hidden = len(plan.played.labels) - len(ranked)
    rest = [f"… and {count_of(hidden, 'more setting')} in table.csv"] if hidden > 0 else []
    return [title, Table(header, rows), *rest]


def _read(plan: ComparisonPlan) -> list[str]:
    """The file, the units, what a pull is, how much was run."""
    table, spending, count = plan.table, plan.spending, len(plan.table.instances)
    sizes = sorted(len(instance.arms) for instance in table.instances)
    pulls = [spending.pulls(instance, row) for row, instance in enumerate(table.instances)]
    bounds = [np.append(instance.reward_bound, instance.cost_bound) for instance in table.instances]
    reward, *costs = (_range(values, ".4g") for values in np.transpose(bounds).tolist())
    reward, *costs = (
        x + " (each instance its own, see run.json)" * (" to " in x) for x in (reward, *costs)
    )
    spent = list(zip(table.spent_units.values(), costs, spending.budgets, strict=True))
    means = "as in the file" if plan.worlds.posterior is None else "as drawn for each run"
    end = f"the last pull {_LAST[spending.last_pull]}"
    if spending.rounds is not None:
        limit, rounds = f"{spending.average_cost:g}", f"{spending.rounds:,}"
        end = f"at most {limit} a round on average, at any time, for {rounds} rounds"
    parts = (
        count_of(plan.runs, "run"),
        count_of(count, "instance"),
        count_of(len(plan.played.labels), "setting"),
    )
    return [
        f"read {plan.table.path}: {table.kind}, {count_of(count, 'instance')}, {sum(sizes)} arms"
        + (f" ({sizes[0]} to {sizes[-1]} in an instance)" if count > 1 else ""),
        *([f"  {'; '.join(table.notes[: table.changes])}"] if table.changes else []),
        f"a reward is counted in {table.reward_unit}, at most {reward}",
        *(f"a cost is counted in {unit}, at most {cost}" for unit, cost, _ in spent),
        f"noise {plan.worlds.noise}: {_noise(plan, plan.worlds.noise)}; means {means}",
        f"budget {' and '.join(f'{budget:g} ({unit})' for unit, _, budget in spent)} for each instance, about "
        f"{_range(pulls, ',.3g')} pulls if spread "
        f"over all arms; {end}",
        f"{' × '.join(parts)} = {plan.runs * count * len(plan.played.labels):,} runs; seed {plan.worlds.seed}",
    ]


def _words() -> Section:
    return Section("Words", [f"{word}: {meaning}" for word, meaning in GLOSSARY])


# --- Numbers in words


def with_interval(comparison: Comparison, row: Mapping[str, Any], name: str) -> str:
    """``12.34 ± 0.56``: as many decimals as show two digits of the interval's half width, in the
    file's style.
    """
    half = (row[f"{name}_high"] - row[f"{name}_low"]) / 2
    return comparison.plan.table.style.plus_minus(row[name], half)


def _gain(plan: ComparisonPlan, gain: Gain) -> str:
    """``+12.3 (+11.9 to +12.8)``."""
    return plan.table.style.interval(gain.mean, gain.low, gain.high)


def _percent(gain: Gain) -> str:
    return "–" if math.isnan(gain.share) else f"{gain.share:+.0%}".replace("-", "−")


def _results(plan: ComparisonPlan, earned: Spread) -> str:
    """``12.3 conversions``."""
    return f"{plan.table.style.amount(earned.mean)} {plan.table.reward_unit}"


def _between(plan: ComparisonPlan, spread: Spread, percent: bool = False) -> str:
    """``12–34``; ``5%–20%``."""
    write = "{:.0%}".format if percent else plan.table.style.amount
    return f"{write(spread.low)}–{write(spread.high)}"


def _spread(plan: ComparisonPlan, spread: Spread, percent: bool = False) -> Cell:
    """``23 (12–34)``; below 20 runs the mean alone."""
    text = f"{spread.mean:.0%}" if percent else plan.table.style.amount(spread.mean)
    if not math.isnan(spread.coverage):
        text += f" ({_between(plan, spread, percent)})"
    return Cell(text, spread.mean)


def _best_ratio(plan: ComparisonPlan, arm: ArmAnswer) -> Cell:
    """The probability that it has the best ratio; where means are taken as given, whether it has."""
    mark = "yes" if arm.best == 1 else ""
    return Cell(mark if plan.worlds.posterior is None else f"{arm.best:.0%}", arm.best)


def _best_by_ratio(arms: Sequence[ArmAnswer]) -> ArmAnswer:
    return max(arms, key=lambda arm: arm.best)


def _by_money(arms: Sequence[ArmAnswer]) -> list[ArmAnswer]:
    return sorted(arms, key=lambda arm: -arm.share.mean)


def _rounded(count: float) -> str:
    """Two digits that count."""
    return f"{float(f'{count:.2g}'):,.0f}"


def _range(values: Sequence[float], form: str) -> str:
    low, high = (
        f"{x:,.0f}" if abs(x) >= 1000 and "," in form else f"{x:{form}}"
        for x in (min(values), max(values))
    )
    return low if low == high else f"{low} to {high}"


# --- Pictures


_MOST_PANELS, _MOST_PARTS, _MOST_OF_ONE = 6, 5, 7


def money_drawing(answer: Answer, progress: bool | str = False) -> Drawing:
    """Money on each arm over the budget, stacked: of the only instance, or of the six that bring
    most.
    """
    plan, first, panels = answer.comparison.plan, answer.settings[0], []
    instances, setting = plan.table.instances, list(plan.played.labels).index(first.setting)
    budgets, money = money_over_budgets(answer.comparison, setting, progress=progress)
    limit = _MOST_OF_ONE if len(instances) == 1 else _MOST_PARTS
    for row in sorted(range(len(instances)), key=lambda row: -first.by_instance[row].mean)[
        :_MOST_PANELS
    ]:
        spent = money[:, row, : len(instances[row].arms)]
        order = list(np.argsort(-spent[-1], kind="stable"))
        largest, rest = (order[:limit], order[limit:]) if len(order) > limit + 1 else (order, [])
        heights, names = spent[:, largest], [line(instances[row].arms[k]) for k in largest]
        if rest:
            heights = np.column_stack([heights, spent[:, rest].sum(axis=1)])
            names.append(f"{len(rest)} others")
        title = (
            line(instances[row].name)
            if len(instances) > 1
            else f"{first.setting}: money on each arm"
        )
        panels.append(
            {"title": title, "names": names, "heights": heights, "rest": names[-1] if rest else ""}
        )
    unit, style = _cost_unit(plan), plan.table.style
    across = f"budget{' of each instance' if len(instances) > 1 else ''}{unit}"
    number_format = style.amount if style.symbol else partial(style.money, cents=False)
    takes = dict(
        x=budgets, panels=panels, across=across, up=f"money{unit}", number_format=number_format
    )
    return Drawing("stacked", takes)


def results_drawing(answer: Answer) -> Drawing:
    """What the best setting, the even split and the file's best arm bring, against the money spent."""
    import xarray

    plan, labels = answer.comparison.plan, list(answer.comparison.plan.played.labels)
    paths = {
        x.setting: answer.comparison.accounts.earned[labels.index(x.setting)]
        for x in answer.settings
    }
    of_split = dict(
        zip(answer.baselines.plan.played.labels, answer.baselines.accounts.earned, strict=True)
    )
    paths |= {split.name: of_split[split.name] for split in answer.settings[0].baselines}
    every = xarray.DataArray(np.stack(list(paths.values())), dims=("curve", "replicate", "mark"))
    estimate = mean(every, over="replicate")
    count = len(plan.table.instances)
    summed = f"sum over {count} instances, " if count > 1 else ""
    clock = "budget spent" if plan.spending.rounds is None else "budget that was due"
    takes = dict(
        x=np.asarray(plan.spending.shares) * plan.spending.budget,
        names=list(paths),
        parts=[part.values for part in (estimate.value, estimate.low, estimate.high)],
        title=f"{summed}mean of {count_of(plan.runs, 'run')}, 95 % intervals",
        across=f"{clock}{' in each instance' if count > 1 else ''}{_cost_unit(plan)}",
        up=plan.table.reward_unit,
    )
    return Drawing("line_chart", takes)


def _cost_unit(plan: ComparisonPlan) -> str:
    """`` [$]``; nothing where the file says no more than that it was spent."""
    unit = plan.table.style.symbol or plan.table.cost_unit
    return "" if unit == "spent" else f" [{unit}]"


def drawings(answer: Answer, progress: bool | str = False) -> Iterator[tuple[str, Drawing]]:
    """The pictures of the answer by name; smaller budgets are played for the last one."""
    yield "results", results_drawing(answer)
    yield "money", money_drawing(answer, progress)


# --- Files


def answer_files(
    answer: Answer, pictures: Mapping[str, bytes], command: str = ""
) -> dict[str, bytes]:
    """A table of the arms, all numbers, pictures and the page by name; ``command`` is what they
    were made by.
    """
    return {
        "answer.json": (json.dumps(as_json(answer), indent=1) + "\n").encode(),
        "arms.csv": arms_table(answer).csv().encode(),
        **{f"{name}.png": picture for name, picture in pictures.items()},
        "report.html": page_of(answer, pictures, command).encode(),
    }


def arms_table(answer: Answer) -> Table:
    """A row for each arm and each setting that the answer is about, for ``arms.csv``."""
    numbers = ["share", "pulls", "money", "results"] + ["spent2"] * bool(
        answer.comparison.plan.table.cost2_unit
    )
    header = ["setting", "instance", "arm", "reward_per_pull", "cost_per_pull"]
    header += ["reward_per_pull_in_file", "cost_per_pull_in_file", "probability_best"]
    header += ["coverage", *(f"{name}{end}" for name in numbers for end in ("", "_low", "_high"))]
    rows = []
    for part in answer.settings:
        for arm in (arm for arms in part.arms for arm in arms):
            means = arm.reward, arm.cost, arm.file_reward, arm.file_cost, arm.best
            spreads = (x for name in numbers for x in getattr(arm, name)[:3])
            row = (part.setting, arm.instance, arm.name, *means, arm.share.coverage)
            rows.append((*row, *spreads))
    return Table(header, rows)


def as_json(answer: Answer) -> dict[str, Any]:
    """Everything but the arms, which arms.csv has."""
    plan, split = answer.comparison.plan, answer.next
    posterior, spending = plan.worlds.posterior, plan.spending
    several = {"budgets": spending.budgets, "cost2_unit": plan.table.cost2_unit}
    pace = spending.average_cost
    prior_facts = None
    if posterior is not None:
        prior_facts = {name: getattr(posterior, name) for name in ("cost_cv_from", "dispersion")}
        prior_facts |= {"prior": dict(posterior.prior)}
    settings = [
        {
            "setting": part.setting,
            "rank": part.rank,
            "earned": part.earned,
            "rivals": part.baselines,
        }
        | ({"spent": part.spent} if len(part.spent) > 1 else {})
        for part in answer.settings
    ]
    best = [_best_by_ratio(arms) for arms in answer.settings[0].arms]
    facts = {
        "budget": spending.budget,
        **(several if len(spending.budgets) > 1 else {}),
        "reward_unit": plan.table.reward_unit,
        "cost_unit": plan.table.cost_unit,
        **{
            name: getattr(plan.worlds, name)
            for name in ("uncertainty", "why_given", "noise", "cost_cv")
        },
        "posterior": prior_facts,
        "constraint": "budget" if pace is None else f"average-cost:{pace:g}",
        "rounds": spending.rounds,
        "settings": settings,
        "best_arms": [
            {"instance": arm.instance, "arm": arm.name, "probability": arm.best} for arm in best
        ],
        "second_noise": answer.check,
        "growth": spending.supply.growth,
        "decide": {
            "every": plan.played.cadence.size or 1,
            "unit": plan.played.cadence.unit,
            "later": plan.played.cadence.later,
        },
        "next": split and split._replace(money=split.money.tolist(), pulls=split.pulls.tolist()),
        "warnings": answer.warnings,
    }
    return _plain(facts)


def _plain(value: Any) -> Any:
    """What JSON can hold: names and values of a tuple with names, NaN as None."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {key: _plain(x) for key, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(x) for x in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_report(answer: Answer, folder: str | os.PathLike[str]) -> list[Path]:
    """Write the files of :meth:`Comparison.save`, ``report.html``, pictures, ``arms.csv`` and
    ``answer.json``.

    Example:
        >>> from jaxbandits.apps.comparison import answer_of, write_report
        >>> written = write_report(answer_of(found), "results")      # doctest: +SKIP
    """
    files = answer_files(answer, {name: drawing.draw() for name, drawing in drawings(answer)})
    return [*answer.comparison.save(folder), *put_all(folder, files)]
