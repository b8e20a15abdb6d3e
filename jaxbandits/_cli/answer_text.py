"""The first block of ``jaxbandits compare``: the answer in the user's words, in the file's numbers and units."""

from __future__ import annotations

import math

from jaxbandits._cli.columns import aligned
from jaxbandits.comparison.answer import Answer, ArmAnswer, SettingAnswer
from jaxbandits.comparison.plan import ComparisonPlan
from jaxbandits.comparison.rivals import SEEN
from jaxbandits.comparison.second_look import NoiseCheck
from jaxbandits.comparison.spreads import Gain, Spread
from jaxbandits.core.printable import line

MOST_ARMS, _MOST_INSTANCES = 8, 12
_FAR_BEYOND = 2.0  # times as many pulls as the file has seen

GLOSSARY = (
    ("regret", "what the best arm, known from the beginning, would have brought more for the same money"),
    ("run", "the whole budget spent once, from knowing nothing to the last pull"),
    ("setting", "a policy with one value for each of its parameters"),
    ("interval", "a ± b: were all runs made anew, the mean would be off by more than b in 5 of 100 cases"),
    ("clear", "a difference that chance explains in fewer than 5 of 100 tables, all pairs of settings counted"),
    ("instance", "a problem of its own in the file, such as a campaign, with its own arms and its own budget"),
)


def answer_lines(answer: Answer) -> list[str]:
    """The first block: of the best setting, and of those that were asked for."""
    lines = [headline(answer.comparison.plan)]
    for number, part in enumerate(answer.settings):
        lines += ["", *_of_setting(answer, part)] if number else _of_setting(answer, part)
    sure = sentence_of_the_best(answer)
    lines += [f"  {text}" for text in ([sure] if sure else []) + sentences(answer)]
    return [*lines, *(f"  warning: {text}" for text in answer.warnings)]


def headline(plan: ComparisonPlan) -> str:
    """``If you had run this again with 500 to spend:``"""
    many = len(plan.table.instances)
    each = ""
    if many > 1:
        each = f" in each of {many} instances ({money(plan, plan.budget * many)} in all)"
    if plan.average_cost is not None and plan.rounds is not None:
        pace = f"{plan.table.style.money(plan.average_cost)} a round on average, for {count(plan, plan.rounds)} rounds"
        return f"If you had run this again with {money(plan, plan.budget)} to spend{each}, at most {pace}:"
    return f"If you had run this again with {money(plan, plan.budget)} to spend{each}:"


def _of_setting(answer: Answer, part: SettingAnswer) -> list[str]:
    plan = answer.comparison.plan
    unit = plan.table.reward_unit
    lines = [f"  {earned_sentence(answer, part)}"]
    cells = [["against", unit, "difference", "", "more in"]]
    for rival in part.rivals:
        cells.append([rival_name(answer, rival.name), amount(plan, rival.earned.mean), *gain_cells(plan, rival.gain)])
    lines += ["", *(f"    {text}" for text in aligned(cells, left=(0,))), ""]
    table = _arms(plan, part) if len(part.arms) == 1 else _instances(answer, part)
    return [*lines, *(f"    {text}" for text in table), ""]


def earned_sentence(answer: Answer, part: SettingAnswer) -> str:
    """What a setting would have brought."""
    plan, settings = answer.comparison.plan, len(answer.comparison.plan.settings)
    place = "the most of" if part.rank == 1 else f"number {part.rank} of"
    if part is answer.settings[0] and part.rank > 1:
        place = f"the most of those that kept the bound, number {part.rank} of"
    which = f", {place} {settings} settings" if settings > 1 else ""
    return (
        f"{part.setting} would have brought {amount(plan, part.earned.mean)} {plan.table.reward_unit}"
        f" ({between(plan, part.earned)} in 95 of 100 runs){which}."
    )


def _arms(plan: ComparisonPlan, part: SettingAnswer) -> list[str]:
    """The arms of the only instance, most money first."""
    unit, arms = plan.table.reward_unit, part.arms[0]
    shown = by_money(arms)[:MOST_ARMS]
    cells = [["arm", "of the budget", f"{plan.table.pull_unit}s", unit, f"cost per {singular(unit)}", "best ratio"]]
    for arm in shown:
        cells.append(
            [
                line(arm.name),
                f"{arm.share.mean:.0%} ({arm.share.low:.0%}–{arm.share.high:.0%})",
                f"{amount(plan, arm.pulls.mean)} ({between(plan, arm.pulls)})",
                f"{amount(plan, arm.results.mean)} ({between(plan, arm.results)})",
                per_result(plan, arm),
                best_ratio(plan, arm),
            ]
        )
    more = len(arms) - len(shown)
    rest = sum(arm.share.mean for arm in by_money(arms)[MOST_ARMS:])
    return [
        *aligned(cells, left=(0,)),
        *([f"… {more} more arms, {rest:.0%} of the budget, in arms.csv"] if more else []),
    ]


def _instances(answer: Answer, part: SettingAnswer) -> list[str]:
    """Each instance: what it brings, and where most of its money goes."""
    plan = answer.comparison.plan
    rival, unit = part.rivals[0], plan.table.reward_unit
    against = "against the file's split" if rival.name == SEEN else "against even"
    cells = [["instance", "arms", unit, against, "most money to", "of it", "best ratio by the file", "sure"]]
    for row in range(min(len(part.arms), _MOST_INSTANCES)):
        arms = part.arms[row]
        first, best = by_money(arms)[0], arms[answer.best_arms[row]]
        cells.append(
            [
                line(first.instance),
                str(len(arms)),
                f"{amount(plan, part.by_instance[row].mean)} ({between(plan, part.by_instance[row])})",
                _percent(rival.by_instance[row]),
                line(first.name),
                f"{first.share.mean:.0%}",
                line(best.name),
                best_ratio(plan, best),
            ]
        )
    if plan.posterior is None:
        cells = [row[:-1] for row in cells]  # nobody knows how sure
    more = len(part.arms) - _MOST_INSTANCES
    return [*aligned(cells, left=(0, 4, 6)), *([f"… {more} more instances in arms.csv"] if more > 0 else [])]


def sentence_of_the_best(answer: Answer) -> str:
    """Which arm has the best ratio, and how sure the file is of that; only where there is one instance."""
    plan, arms = answer.comparison.plan, answer.settings[0].arms
    if plan.posterior is None or len(arms) > 1:
        return ""
    best, unit = arms[0][answer.best_arms[0]], plan.table.reward_unit
    others = sorted((arm for arm in arms[0] if arm is not best), key=lambda arm: -arm.best)[:2]
    rest = ", ".join(f"{line(arm.name)} {arm.best:.0%}" for arm in others)
    sure = f"the file is {best.best:.0%} sure of that (then {rest})"
    return f"{line(best.name)} has the best ratio of {unit} to cost: {sure}."


def sentences(answer: Answer) -> list[str]:
    """How sure the means are, what a pull was taken to be, and whether the ranking depends on that."""
    plan = answer.comparison.plan
    if plan.posterior is not None:
        sure = (
            "The file's means are estimates: each run draws its true means from what the file leaves open "
            "(--uncertainty given takes them as they are)."
        )
    else:
        why = f", for {plan.why_given}" if plan.why_given else " (--uncertainty given)"
        sure = f"The file's means are taken as the truth{why}."
    said = [sure, f"Noise: {noise_words(plan, plan.noise)}.", room(answer)]
    if isinstance(answer.check, str):
        said.append(f"Check: {line(answer.check)}.")
    elif answer.check is not None:
        said.append(check_words(plan, answer.check))
    return said


def room(answer: Answer) -> str:
    """That an arm never runs out, and where most is bought beyond what the file has seen."""
    plan = answer.comparison.plan
    pull = plan.table.pull_unit
    said = f"An arm is taken to have as many {pull}s to sell as are bought, at its mean cost"
    beyond = []
    for instance, arms in zip(plan.table.instances, answer.settings[0].arms, strict=True):
        clicks = None if instance.evidence is None else instance.evidence.clicks
        if clicks is not None and plan.table.kind != "log":
            beyond += [(arm.pulls.mean / max(n, 1), arm, n) for arm, n in zip(arms, clicks, strict=True)]
    factor, arm, seen = max(beyond, key=lambda x: x[0], default=(0.0, None, 0.0))
    if arm is None or factor <= _FAR_BEYOND:
        return f"{said}."
    bought = amount(plan, arm.pulls.mean)
    return f"{said}; of {line(arm.name)} a run buys {bought}, and the file saw {count(plan, float(seen))}."


def noise_words(plan: ComparisonPlan, noise: str) -> str:
    """What a pull looks like, in a sentence without its full stop."""
    unit, pull = plan.table.reward_unit, plan.table.pull_unit
    spread = min(plan.cost_cv, 1 / math.sqrt(3))
    days = plan.cost_cv_from == "days"
    source = "from day to day in the file" if days else "stated, for counts do not tell it: --cost-cv"
    words = {
        "clicks": f"a {pull} brings one of the {unit} or none, and its cost varies by {spread:.0%} ({source})",
        "bernoulli": f"a {pull} brings its bound or nothing, and costs its bound or nothing: as noisy as can be",
        "beta": f"a {pull} brings and costs between 0 and its bound (alpha + beta = {plan.beta_concentration:g})",
        "empirical": f"a {pull} is one of the arm's own rows, drawn anew with its {unit} and its cost",
    }
    return words[noise]


def check_words(plan: ComparisonPlan, check: NoiseCheck) -> str:
    """Whether the ranking depends on the noise."""
    played = f"Check: {noise_words(plan, check.noise)}"
    if len(check.ranking) == 1:
        return (
            f"{played}: {amount(plan, check.ranking[0][1])} {plan.table.reward_unit} an instance ({check.runs} runs)."
        )
    if check.same_order:
        return f"{played}: the ranking stays as it is ({check.runs} runs)."
    if check.same_best:
        return f"{played}: the best stays the best, places below change ({check.runs} runs)."
    how = "clearly" if check.ahead.clear else "not clearly"
    ahead = f"{check.ranking[0][0]} is ahead, {how} ({_plus_minus(plan, check.ahead)}, {check.runs} runs)"
    return f"{played}: there {ahead}: the ranking depends on the noise."


def closing(answer: Answer) -> str:
    """The last sentence."""
    plan, part = answer.comparison.plan, answer.settings[0]
    rival = part.rivals[0]
    if not rival.gain.clear:
        how = "about as much as"
    else:
        how = f"{abs(rival.gain.share):.0%} {'more' if rival.gain.mean > 0 else 'less'} than"
    check = answer.check
    doubted = isinstance(check, NoiseCheck) and len(check.ranking) > 1 and not check.same_best
    depends = "; which setting is best depends on the noise (see the check)" if doubted else ""
    return (
        f"In short: {part.setting} would have brought {amount(plan, part.earned.mean)} {plan.table.reward_unit}, "
        f"{how} {rival.name}{depends}."
    )


def rival_name(answer: Answer, name: str) -> str:
    """The split's name; where there is one instance, the best arm's too."""
    plan = answer.comparison.plan
    if name.endswith("best") and len(plan.table.instances) == 1:
        return f"{name}, {line(plan.table.instances[0].arms[answer.best_arms[0]])}"
    return f"{name} of each instance" if name.endswith("best") else name


def per_result(plan: ComparisonPlan, arm: ArmAnswer) -> str:
    """What a result costs in the file."""
    return plan.table.style.money(arm.file_cost / arm.file_reward) if arm.file_reward else "–"


def best_ratio(plan: ComparisonPlan, arm: ArmAnswer) -> str:
    """The probability that it has the best ratio; where means are taken as given, whether it has."""
    if plan.posterior is None:
        return "yes" if arm.best == 1 else ""
    return f"{arm.best:.0%}"


def by_money(arms: tuple[ArmAnswer, ...]) -> list[ArmAnswer]:
    """Most money first."""
    return sorted(arms, key=lambda arm: -arm.share.mean)


def money(plan: ComparisonPlan, value: float) -> str:
    """An amount as the file writes it, without cents where there are none."""
    style = plan.table.style
    if float(value).is_integer():
        plain = style.money(value)
        return plain.replace(f"{style.decimal}00", "") if plain.count(f"{style.decimal}00") == 1 else plain
    return style.money(value)


def count(plan: ComparisonPlan, value: float) -> str:
    """A whole number as the file writes it."""
    return plan.table.style.number(value, 0)


def amount(plan: ComparisonPlan, value: float) -> str:
    """A mean number of results or pulls: three digits that count."""
    size = abs(value)
    decimals = 0 if size >= 100 or size == 0 else 1 if size >= 1 else 2
    return plan.table.style.number(value, decimals)


def between(plan: ComparisonPlan, spread: Spread) -> str:
    """``12–34``."""
    return f"{amount(plan, spread.low)}–{amount(plan, spread.high)}"


def singular(unit: str) -> str:
    """``conversion`` for ``conversions``."""
    return unit.removesuffix("s")


def gain_cells(plan: ComparisonPlan, gain: Gain) -> list[str]:
    """The difference, its share of the other, and in how many runs it is more."""
    return [_plus_minus(plan, gain), f"({_percent(gain)})", f"{gain.better:.0%} of runs"]


def _percent(gain: Gain) -> str:
    return "–" if math.isnan(gain.share) else f"{gain.share:+.0%}".replace("-", "−")


def _plus_minus(plan: ComparisonPlan, gain: Gain) -> str:
    """``+12.3 ± 0.4``."""
    return plan.table.style.plus_minus(gain.mean, gain.half, sign="+").replace("-", "−")
