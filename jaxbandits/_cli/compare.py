"""``jaxbandits compare``: the options, and the job, which :mod:`~jaxbandits.comparison.plan` does."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from jaxbandits._cli import clear_text, compare_text
from jaxbandits._cli.answer_files import ANSWER_FILES, save_answer
from jaxbandits._cli.answer_text import GLOSSARY, answer_lines, closing
from jaxbandits._cli.arms_options import FORMATS, add_arms_options, arms_options
from jaxbandits._cli.chosen_policies import MEANINGS, chosen_policies, left_out, parameters, policy_names
from jaxbandits._cli.command_line import (
    Parser,
    as_option,
    complain,
    listed,
    number,
    numbers,
    one_of,
    option,
    refused,
    say,
    to_number,
    whole,
)
from jaxbandits._files.output_folder import check_folder
from jaxbandits._reports.progress import usual_progress
from jaxbandits.comparison.answer import answer_of
from jaxbandits.comparison.comparison import FILES, Comparison
from jaxbandits.comparison.named_policies import AVERAGE_COST_POLICIES, POLICIES
from jaxbandits.comparison.plan import NOISES, UNCERTAINTIES, ComparisonPlan, prepare
from jaxbandits.comparison.running import run_plan
from jaxbandits.comparison.until import CLAIMS, UNTIL, Until
from jaxbandits.constraints import LAST_PULLS
from jaxbandits.core.errors import InputError, bad

_CLAIMS = tuple(claim.replace(" ", "-") for claim in CLAIMS)
_EPILOG = f"""\
{FORMATS}
Example:
  jaxbandits compare --arms ads.csv --budget 500 --policies omega_ucb,bts,m_ucb --rho 0.0625,0.25,1
"""


def parser() -> Parser:
    """Of the command's options."""
    made = Parser(
        prog="jaxbandits compare",
        description="Spend a budget on the arms of a file with several policies, many times, and rank them.",
        epilog=_EPILOG,
    )
    add, positive = made.add_argument, number(above=0)
    add("--arms", required=True, metavar="FILE", help="the arms, a CSV file (see below); - for standard input")
    add("--budget", required=True, type=positive, metavar="B",
        help="budget of each instance, in the file's unit of cost")  # fmt: skip
    add("--policies", required=True, type=policy_names, metavar="A,B,…",
        help=f"from: {', '.join(POLICIES)}; with --constraint average-cost: {', '.join(AVERAGE_COST_POLICIES)}; all; "
        "or your own, mine.py:MyPolicy (see docs/add-a-policy.md)")  # fmt: skip
    add("--constraint", type=constraint, default="budget", metavar="budget|average-cost:C",
        help="spend the budget (budget), or spend it at no more than C a round on average, in every round")  # fmt: skip
    for name, (default, users) in parameters().items():
        text = f"{MEANINGS.get(name, 'a parameter')}, of {', '.join(users)} (default: {default})"
        add(option(name), type=numbers, metavar="X,Y,…", help=f"{text}; each value is one setting")
    add("--runs", type=whole(1, 2**32 - 1, "2**32 - 1"), metavar="R",
        help="independent runs of each setting on each instance (1000)")  # fmt: skip
    _add_until(made)
    add("--out", default="jaxbandits-out", metavar="DIR",
        help=f"folder for {', '.join((*FILES, *ANSWER_FILES))} (jaxbandits-out)")  # fmt: skip
    add("--seed", type=whole(0, 2**32 - 1, "2**32 - 1"), default=0, metavar="S",
        help="the same seed gives the same table.csv (0)")  # fmt: skip
    add("--noise", type=one_of(NOISES), metavar="|".join(NOISES),
        help="what a pull looks like (clicks for counts: a conversion or none, at a cost that varies; empirical for a "
        "log: its own rows; else bernoulli)")  # fmt: skip
    add("--uncertainty", type=one_of(UNCERTAINTIES), metavar="|".join(UNCERTAINTIES),
        help="true means of each run drawn from what the file's counts leave open, or as in the file (means, where "
        "there are counts)")  # fmt: skip
    add("--cost-cv", type=positive, metavar="X",
        help="coefficient of variation of a click's cost (from day to day in the file, else 0.5)")  # fmt: skip
    add("--policy", metavar="NAME", help="answer for this policy or setting too, beside the best")
    add("--answer", action=argparse.BooleanOptionalAction, default=True,
        help="the answer in words, pictures and report.html (yes); without it the ranking only")  # fmt: skip
    add("--check", action=argparse.BooleanOptionalAction, default=True,
        help="play a second noise too, and tell if the ranking depends on it (yes)")  # fmt: skip
    add("--explain", action="store_true", help="explain the words of the tables")
    add("--beta-concentration", type=positive, metavar="C",
        help="alpha + beta of --noise beta; larger is less noisy (4)")  # fmt: skip
    add("--last-pull", type=one_of(LAST_PULLS), metavar="|".join(LAST_PULLS), default="counts",
        help="the pull that exceeds the budget counts with its reward, or forfeits it (counts)")  # fmt: skip
    add("--marks", type=whole(1, 10_000), default=50, metavar="N", help="points of the curves in regret.png (50)")
    add_arms_options(made)
    add("--progress", action=argparse.BooleanOptionalAction,
        help="a progress bar on stderr (default: on a terminal; elsewhere a line every ten seconds)")  # fmt: skip
    return made


def _add_until(made: Parser) -> None:
    add = made.add_argument
    add("--until", type=one_of(UNTIL), metavar="|".join(UNTIL),
        help="play in batches until all pairs of settings are clear (clear), or one setting is clearly ahead of all "
        "others (best); of such tables 1 in 20 at most holds a false claim")  # fmt: skip
    add("--max-runs", type=whole(2, 2**32 - 1, "2**32 - 1"), metavar="R", help="with --until: runs at most (1000)")
    add("--claim", type=one_of(_CLAIMS), metavar="|".join(_CLAIMS),
        help="with --until: what must be clear: who earns more in most runs, on average, or either (any)")  # fmt: skip


def run(arguments: argparse.Namespace, given: list[str]) -> int:
    """Do the job; the exit code is 0, 1 (nothing could be written) or 130 (Ctrl-C while writing)."""
    average_cost = arguments.constraint
    policies = chosen_policies(arguments, average_cost is not None)
    if arguments.beta_concentration is not None and arguments.noise != "beta":
        raise bad("--beta-concentration", arguments.beta_concentration, "left out unless --noise beta is given")
    if arguments.policy is not None and not arguments.answer:
        raise bad("--policy", arguments.policy, "left out with --no-answer: only the answer is for it")
    check_folder("--out", arguments.out, (*FILES, *(ANSWER_FILES if arguments.answer else ())), "compare")
    try:
        until = Until.checked(
            arguments.until, (arguments.claim or "any").replace("-", " "), arguments.max_runs, arguments.runs
        )
        plan = prepare(
            arguments.arms,
            arguments.budget,
            policies,
            runs=until.max_runs if until is not None else arguments.runs or 1000,
            seed=arguments.seed,
            noise=arguments.noise,
            beta_concentration=4.0 if arguments.beta_concentration is None else arguments.beta_concentration,
            last_pull=arguments.last_pull,
            marks=arguments.marks,
            uncertainty=arguments.uncertainty,
            cost_cv=arguments.cost_cv,
            average_cost=average_cost,
            **arms_options(arguments),
        )
        check_setting(plan, arguments.policy)
        if until is not None:
            until.check(plan)
    except InputError as problem:
        raise as_option(problem, arguments) from None
    progress = usual_progress(arguments.progress)
    comparison = run_plan(plan, progress=progress, until=until)
    command = shlex.join(["jaxbandits", *given])
    about = {"command": command, "arguments": vars(arguments)}
    try:
        written = comparison.save(arguments.out, about)  # first of all, for the results took the longest
    except OSError as problem:
        complain(f"--out: could not be written ({problem})")
        return 1
    except KeyboardInterrupt:
        print(f"interrupted: all runs finished; the files in {arguments.out} are whole or not there", file=sys.stderr)
        return 130
    if arguments.answer:
        return _with_answer(comparison, arguments, command, written, progress)
    _tell(_sections(comparison, arguments, written))
    return 0


def _with_answer(
    comparison: Comparison, arguments: argparse.Namespace, command: str, written: list[Path], progress: bool | str
) -> int:
    """The answer, before everything else; its files beside those of the comparison, which are written already."""
    try:
        answer = answer_of(
            comparison, [arguments.policy] if arguments.policy else [], check=arguments.check, progress=progress
        )
        written += save_answer(answer, arguments.out, command)
    except OSError as problem:
        complain(f"--out: could not be written ({problem})")
        return 1
    except KeyboardInterrupt:
        print(f"interrupted: all runs finished; {', '.join(map(str, written))} are written", file=sys.stderr)
        return 130
    sections = _sections(comparison, arguments, written)
    _tell([answer_lines(answer), *sections[:-1], [closing(answer)], sections[-1]])
    return 0


def _sections(comparison: Comparison, arguments: argparse.Namespace, written: list[Path]) -> list[list[str]]:
    return [
        compare_text.ranking(comparison),
        clear_text.until_clear(comparison),
        compare_text.limits(comparison),
        compare_text.per_instance(comparison),
        compare_text.what_was_read(comparison.plan),
        [f"{word}: {meaning}" for word, meaning in GLOSSARY] if arguments.explain else [],
        [f"note: {note}" for note in (*comparison.notes, *left_out(arguments))],
        [f"written: {', '.join(str(path) for path in written)}"],
    ]


def _tell(sections: list[list[str]]) -> None:
    say("\n\n".join("\n".join(lines) for lines in sections if lines))


def constraint(text: str) -> float | None:
    """A converter: None for ``budget``, C for ``average-cost:C``."""
    kind, _, bound = text.partition(":")
    if text == "budget":
        return None
    may_be = "budget, or average-cost:C with C above 0, as average-cost:0.5"
    if kind != "average-cost":
        raise refused(text, may_be)
    value = to_number(bound, may_be)
    if value <= 0:
        raise refused(text, may_be)
    return value


def check_setting(plan: ComparisonPlan, name: str | None) -> None:
    """Is it a setting, or the name of a policy, that will be played?"""
    known = list(dict.fromkeys([*plan.settings, *(label.split("(")[0] for label in plan.settings)]))
    if name is not None and name not in known:
        raise bad("policy", name, f"one of {listed(name, known)}")
