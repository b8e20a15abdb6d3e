"""``jaxbandits compare``: the options, and the job, which :mod:`~jaxbandits.comparison.plan` does."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
import sys

from jaxbandits._cli import compare_text
from jaxbandits._cli.arms_options import FORMATS, add_arms_options, arms_options
from jaxbandits._cli.command_line import (
    Parser,
    as_option,
    complain,
    names_of,
    number,
    numbers,
    one_of,
    option,
    say,
    whole,
)
from jaxbandits._files.output_folder import check_folder
from jaxbandits.comparison.comparison import FILES
from jaxbandits.comparison.plan import NOISES, POLICIES, prepare
from jaxbandits.comparison.running import run_plan
from jaxbandits.constraints import LAST_PULLS
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import check_range, leaf_fields
from jaxbandits.core.settings import grid

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
    add("--policies", required=True, type=names_of(POLICIES), metavar="A,B,…", help=f"from: {', '.join(POLICIES)}")
    for name, (default, users) in _parameters().items():
        text = f"parameter of {', '.join(users)} (default: {default})"
        add(option(name), type=numbers, metavar="X,Y,…", help=f"{text}; each value is one setting")
    add("--runs", type=whole(1, 2**32 - 1, "2**32 - 1"), default=1000, metavar="R",
        help="independent runs of each setting on each instance (1000)")  # fmt: skip
    add("--out", default="jaxbandits-out", metavar="DIR", help=f"folder for {', '.join(FILES)} (jaxbandits-out)")
    add("--seed", type=whole(0, 2**32 - 1, "2**32 - 1"), default=0, metavar="S",
        help="the same seed gives the same table.csv (0)")  # fmt: skip
    add("--noise", type=one_of(NOISES), metavar="|".join(NOISES),
        help="what a pull looks like (bernoulli; for a log empirical, that is its own rows)")  # fmt: skip
    add("--beta-concentration", type=positive, metavar="C",
        help="alpha + beta of --noise beta; larger is less noisy (4)")  # fmt: skip
    add("--last-pull", type=one_of(LAST_PULLS), metavar="|".join(LAST_PULLS), default="counts",
        help="the pull that exceeds the budget counts with its reward, or forfeits it (counts)")  # fmt: skip
    add("--marks", type=whole(1, 10_000), default=50, metavar="N", help="points of the curves in regret.png (50)")
    add_arms_options(made)
    add("--progress", action=argparse.BooleanOptionalAction, help="a progress bar on stderr (default: on a terminal)")
    return made


def run(arguments: argparse.Namespace, given: list[str]) -> int:
    """Do the job; the exit code is 0, 1 (nothing could be written) or 130 (Ctrl-C while writing)."""
    policies = chosen_policies(arguments)
    if arguments.beta_concentration is not None and arguments.noise != "beta":
        raise bad("--beta-concentration", arguments.beta_concentration, "left out unless --noise beta is given")
    check_folder("--out", arguments.out, FILES, "compare")
    try:
        plan = prepare(
            arguments.arms,
            arguments.budget,
            policies,
            runs=arguments.runs,
            seed=arguments.seed,
            noise=arguments.noise,
            beta_concentration=4.0 if arguments.beta_concentration is None else arguments.beta_concentration,
            last_pull=arguments.last_pull,
            marks=arguments.marks,
            **arms_options(arguments),
        )
    except InputError as problem:
        raise as_option(problem, arguments) from None
    say("\n".join(compare_text.what_was_read(plan)))
    comparison = run_plan(plan, progress=sys.stderr.isatty() if arguments.progress is None else arguments.progress)
    about = {"command": shlex.join(["jaxbandits", *given]), "arguments": vars(arguments)}
    try:
        written = comparison.save(arguments.out, about)  # first of all, for the results took the longest
    except OSError as problem:
        complain(f"--out: could not be written ({problem})")
        return 1
    except KeyboardInterrupt:
        print(f"interrupted: all runs finished; the files in {arguments.out} are whole or not there", file=sys.stderr)
        return 130
    sections = [
        compare_text.ranking(comparison),
        compare_text.per_instance(comparison),
        [f"note: {note}" for note in comparison.notes],
        [f"written: {', '.join(str(path) for path in written)}"],
    ]
    say("".join("\n" + "\n".join(lines) + "\n" for lines in sections if lines).removesuffix("\n"))
    return 0


def _parameters() -> dict[str, tuple[str, list[str]]]:
    """For each parameter of the policies: its default(s), and the policies that have it."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for name, kind in POLICIES.items():
        for field in leaf_fields(kind):
            defaults, users = found.setdefault(field.name, ([], []))
            default = "none, it must be given" if field.default is dataclasses.MISSING else f"{field.default:g}"
            defaults += [default] if default not in defaults else []
            users.append(name)
    return {field: (", ".join(defaults), users) for field, (defaults, users) in found.items()}


def chosen_policies(arguments: argparse.Namespace) -> list[Policy]:
    """The policies with their settings.

    Raises:
        InputError: a parameter that no chosen policy has, that is out of its range, or that is needed and missing.
    """
    names = arguments.policies
    for parameter, (_, users) in _parameters().items():
        values = getattr(arguments, parameter)
        if values is not None and not set(users) & set(names):
            raise bad(option(parameter), values, f"left out: no chosen policy has it, only {', '.join(users)}")
    chosen = []
    for name in names:
        values = {}
        for field in leaf_fields(POLICIES[name]):
            if (value := getattr(arguments, field.name)) is not None:
                check_range(option(field.name), value, field.metadata)
                if len(set(value)) < len(value):
                    raise bad(option(field.name), value, "different values")
                values[field.name] = value
            elif field.default is dataclasses.MISSING:
                raise InputError(f"{option(field.name)}: not given; {name} has no default for it")
        chosen.append(grid(POLICIES[name], **values) if values else POLICIES[name]())
    return chosen
