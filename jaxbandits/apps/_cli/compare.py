"""``jaxbandits compare``, and the options of every command that reads an arms file.

What only Python can set stays in :func:`jaxbandits.compare`.
"""

from __future__ import annotations

import argparse
import itertools
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxbandits.apps._cli.console import Parser, check_folder, listed, refused, say
from jaxbandits.apps.comparison.names import NAMES
from jaxbandits.core import bad
from jaxbandits.tools import nearest

if TYPE_CHECKING:
    from jaxbandits import Policy

# jax is imported by the jobs: the help comes without it.

FORMATS = """\
The arms file is a CSV file; these headers are recognised; for others name the columns with --columns:
  name,clicks,spent,conversions         counts; means are taken per click
  name,reward,cost                      a log, one row per pull
  name,mean_reward,mean_cost            means per pull
  gpt4,gpt4_cost,small,small_cost       with --wide: a row is a request that all arms were tried on
A column `instance` separates several problems in one file. If the columns are not known, the error message lists them
and a command with a guess for each: --columns 'name=Campaign,pulls=Clicks,reward=Conv.,cost=Amount'.
"""
FILES = ["results.png", "table.csv", "run.json", "answer.json", "arms.csv", "report.html"]

READING_TABLE = """\
--columns  name=TITLE,…  the title of each column, see below; a number as cost is the cost of every pull
--drop  TEXT  leave out rows with this cell, such as a total (repeatable)
--decimal  .|,  the decimal sign (default: the one by which all cells can be read)
--encoding  NAME  of the file's text, such as cp1252 (default: UTF-8)
--wide  -  a row is a request, and each arm has a reward column and optionally a cost column
"""


def columns_of(text: str) -> dict[str, str]:
    """Parse ``name=Campaign,cost=Cost, EUR``; a comma without ``key=`` after it is in a title."""
    titles: dict[str, str] = {}
    parts = re.split(r"(?:^|,)\s*([A-Za-z_-]+)\s*=", text)
    if parts[0].strip() or len(parts) < 3:
        raise refused(text, "pairs such as name=Campaign,cost=Kosten")
    for role, title in zip(parts[1::2], parts[2::2], strict=True):
        role = role.replace("-", "_").lower()
        if role in titles or not title.strip():
            raise refused(text, f"exactly one title for {role}")
        titles[role] = title.strip()
    return titles


READING_TYPES: dict[str, Any] = {"columns": {"type": columns_of}}
READING_TYPES["drop"] = {"action": "append", "default": []}


# --- Policies, and their parameters as options


def policy_names(text: str) -> list[str]:
    """Convert an option to names of policies."""
    chosen = [part.strip(" ") for part in text.split(",")]
    for name in chosen:
        if name not in NAMES:
            raise refused(name, f"one of {listed(name, NAMES)}")
    return chosen


def chosen_policies(arguments: argparse.Namespace) -> list[Policy]:
    """The policies with their settings; a parameter that none of them has is refused."""
    from jaxbandits import grid
    from jaxbandits.apps.comparison.plan import POLICIES
    from jaxbandits.tools import leaf_fields

    def option(parameter: str) -> str:
        return f"--{parameter.replace('_', '-')}"

    stated, policies = arguments.parameters, []
    own = {name: [x.name for x in leaf_fields(POLICIES[name])] for name in arguments.policies}
    known = {*itertools.chain(*own.values())}
    for parameter in (x for x in stated if x not in known):
        has = ", ".join(map(option, sorted(known))) or "none"
        near = nearest(option(parameter), map(option, [*known, *vars(arguments)]))
        may_be = f"an option, or a parameter of the policies ({has}){near}"
        raise bad(option(parameter), stated[parameter], may_be)
    for name in arguments.policies:
        values = {x: stated[x] for x in own[name] if x in stated}
        policies.append(grid(POLICIES[name], **values) if values else POLICIES[name]())
    return policies


_EPILOG = f"""\
{FORMATS}
Parameters of policies are options too, and each value is one setting: --rho 0.0625,0.25,1. What else can be set, the
names of all policies' parameters among it, is documented in Python: jaxbandits.compare, jaxbandits.policies.

Example:
  jaxbandits compare --arms ads.csv --budget 500 --policies omega_ucb,bts,m_ucb --rho 0.0625,0.25,1
"""
_OPTIONS = f"""\
--arms  FILE  the arms, a CSV file (see below); - for standard input
--budget  B  budget of each instance, in the file's unit of cost
--policies  A,B,…  policies to compare, of {", ".join(NAMES)}
--runs  R  runs of each setting on each instance (1000; fewer for files with days)
--growth  G|none  an arm sells at most G times what it sold in the file; a log has G times its requests (2; logs: 1)
--decide  daily|per-click  how often the policy decides (daily, if the file has days)
--start  file|nothing  policies start from the file's counts, or without data (file)
--noise  bernoulli|clicks|empirical  distribution of outcomes (conversions: clicks, a log: empirical, else bernoulli)
--seed  S  the same seed gives the same numbers (0)
--out  DIR  folder for {", ".join(FILES)} (jaxbandits-out)
--progress  -  a progress bar on stderr (default: on a terminal; elsewhere a line every ten seconds)
"""


def growth(text: str) -> float | str:
    """Convert an option to a factor, or to ``none``."""
    return text if text == "none" else float(text)


def parser() -> Parser:
    """The parser of ``compare``."""
    more: dict[str, Any] = {
        "arms": {"required": True},
        "budget": {"required": True, "type": float},
        "policies": {"required": True, "type": policy_names},
        "runs": {"type": int},
        "growth": {"type": growth},
        "start": {"default": "file"},
        "seed": {"type": int, "default": 0},
        "out": {"default": "jaxbandits-out"},
        "progress": {"action": argparse.BooleanOptionalAction},
    }
    about = "Simulate several policies that spend a budget on the arms of a file, and rank them."
    table = _OPTIONS + READING_TABLE
    return Parser("compare", about, table, more | READING_TYPES, _EPILOG)


def run(arguments: argparse.Namespace, argv: list[str]) -> int:
    """Compare; the exit code is 0, or 130 (Ctrl-C after the runs)."""
    from jaxbandits.apps import comparison as desk
    from jaxbandits.apps.comparison.comparison import put_all
    from jaxbandits.tools import usual_progress

    policies = chosen_policies(arguments)
    out, command = Path(arguments.out), shlex.join(["jaxbandits", *argv])
    check_folder(arguments.out, FILES, "compare")
    options = {x: y for x, y in vars(arguments).items() if x in desk.Request.__annotations__}
    plan = desk.prepare(arguments.arms, arguments.budget, policies, **options)
    progress = usual_progress(arguments.progress)
    comparison = desk.run_plan(plan, progress=progress)
    try:
        # Numbers are written first, for the runs took the longest; then comes what is to be read.
        about = {"command": command, "arguments": vars(arguments)}
        put_all(out, comparison.numbers(about))
        answer = desk.answer_of(comparison, progress=progress)
        say(desk.markdown(answer))
        desk.write_report(answer, out, command, about)
    except KeyboardInterrupt:
        print(f"interrupted: all runs finished; numbers are in {out}/", file=sys.stderr)
        return 130
    say(f"\nwritten: {out}/ ({', '.join(FILES)})")
    return 0
