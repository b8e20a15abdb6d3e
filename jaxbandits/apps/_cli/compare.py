"""``jaxbandits compare``: its options, those of every command that reads an arms file, and the job.

What only Python can set stays in :func:`jaxbandits.compare`.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import re
import shlex
import sys
import types
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxbandits.apps._cli import console
from jaxbandits.apps._cli.console import Parser, nearest, number_list, option_name, refused, say
from jaxbandits.apps.comparison import names
from jaxbandits.core import InputError, bad

if TYPE_CHECKING:
    from jaxbandits import Policy

# jax is imported by the jobs: the help comes without it.

FORMATS = """\
The arms file is a CSV file; these headers are recognised; for others name the columns with --columns:
  name,clicks,spent,conversions         counts; means are taken per click
  name,reward,cost                      a log, one row per pull
  name,mean_reward,mean_cost            means per pull
  gpt4,gpt4_cost,small,small_cost       with --wide: a row is a request that all arms were tried on
A column `instance` holds several problems in one file. If columns are not known, the message has all of them, and a
command with a guess in each place: --columns 'name=Campaign,pulls=Clicks,reward=Conv.,cost=Amount'.
"""
READING = ("columns", "drop", "wide", "decimal", "encoding")
_PICTURES = ("regret.png", "money.png", "results.png")
FILES = (*_PICTURES, "table.csv", "run.json", "answer.json", "arms.csv", "report.html")


def reading_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The arguments of :func:`~jaxbandits.apps.comparison.read_arms`."""
    return {name: getattr(arguments, name) for name in READING}


READING_TABLE = """\
--columns  name=TITLE,…  which column is what, see below; as cost a number: what every pull costs
--drop  TEXT  leave out rows with this cell, such as a total (repeatable)
--decimal  .|,  the decimal sign (default: detected)
--encoding  NAME  of the file's text (default: detected)
--wide  -  a row is a request, and each arm has a reward column and optionally a cost column
"""


def columns_of(text: str) -> dict[str, str]:
    """``name=Campaign,cost=Cost, EUR``: a comma stands in a title unless ``key=`` follows it."""
    titles: dict[str, str] = {}
    parts = re.split(r"(?:^|,)\s*([A-Za-z_-]+2?)\s*=", text)
    if parts[0].strip() or len(parts) < 3:
        raise refused(text, "pairs such as name=Campaign,cost=Kosten")
    for role, title in zip(parts[1::2], parts[2::2], strict=True):
        role = role.replace("-", "_").lower()
        if role in titles or not title.strip():
            raise refused(text, f"one title for each key, and {role} has another")
        titles[role] = title.strip()
    return titles


READING_TYPES: dict[str, Any] = {
    "columns": {"type": columns_of},
    "drop": {"action": "append", "default": []},
}


# --- Policies: names, ``all``, or a class of the user's own file; and their parameters as options


def policy_names(text: str) -> list[str]:
    """A converter to names of policies, ``all``, or ``mine.py:MyPolicy``, each once."""
    chosen = [part.strip(" ") for part in text.split(",")]
    for name in chosen:
        if name != "all" and name not in names.EVERY and ".py:" not in name:
            choices = ", ".join([*names.EVERY, "all", "mine.py:MyPolicy"])
            raise refused(name, f"one of {choices}{nearest(name, names.EVERY)}")
        if chosen.count(name) > 1:
            raise refused(name, "given once")
    return chosen


def chosen_policies(arguments: argparse.Namespace) -> tuple[list[Policy], list[str]]:
    """The policies with their settings, and a note on what ``all`` leaves out.

    Raises:
        InputError: a parameter that no chosen policy has, or that is needed and missing; a policy
            for another constraint; a file or class that cannot be used.
    """
    from jaxbandits.apps.comparison import plan as plans

    several, paced = isinstance(arguments.budget, list), arguments.constraint is not None
    if several and "cost2" not in (arguments.columns or {}):
        must = "one number, with no comma: two are for two costs (--columns cost2=…)"
        raise bad("--budget", arguments.budget, must)
    choices = plans.TWO_COST_POLICIES if several else plans.POLICIES
    choices = plans.AVERAGE_COST_POLICIES if paced else choices
    stated, kinds = arguments.parameters, dict[str, Any]()
    needs = {name: _missing(kind, stated) for name, kind in choices.items()}
    for name in arguments.policies:
        if name == "all":
            kinds |= {x: kind for x, kind in choices.items() if not needs[x]}
        elif name in names.EVERY and name not in choices:
            of = next(label for label, kind in names.KINDS.items() if name in kind)
            raise bad("--policies", name, f"one of {', '.join(choices)}: it is for {of}")
        else:
            kinds[name] = choices[name] if name in choices else loaded(name)
    left_out = {x: of[0] for x, of in needs.items() if of and x not in arguments.policies}
    notes = list[str]()
    if "all" in arguments.policies and left_out:
        needing = ", ".join(f"{x} ({option_name(of)})" for x, of in left_out.items())
        notes = [f"note: --policies all is without those that need a parameter: {needing}"]
    known = {name for kind in kinds.values() for name in _fields(kind)}
    for parameter, values in stated.items():
        if parameter not in known:
            has = ", ".join(map(option_name, sorted(known))) or "none"
            near = nearest(option_name(parameter), map(option_name, [*known, *OPTIONS]))
            may_be = f"an option, or a parameter of the policies ({has}){near}"
            raise bad(option_name(parameter), values, may_be)
    return [_settings(name, kind, stated, paced) for name, kind in kinds.items()], notes


def _fields(kind: type[Policy]) -> dict[str, bool]:
    """The parameters of a policy, and whether each must be given."""
    from jaxbandits.tools import leaf_fields

    return {x.name: x.default is dataclasses.MISSING for x in leaf_fields(kind)}


def _missing(kind: type[Policy], stated: Collection[str]) -> list[str]:
    """Parameters without default that are neither stated nor those of the constraint."""
    needed = [name for name, missing in _fields(kind).items() if missing]
    return [name for name in needed if name not in (*stated, "c", "horizon")]


def _settings(
    name: str, kind: type[Policy], stated: Mapping[str, list[float]], paced: bool
) -> Policy:
    from jaxbandits import grid

    if missing := _missing(kind, stated):
        raise InputError(f"{option_name(missing[0])}: not given; {name} has no default for it")
    values: dict[str, Any] = {x: stated[x] for x in _fields(kind) if x in stated}
    if paced:  # the plan puts in the constraint's own
        values |= dict.fromkeys(_fields(kind).keys() & {"c", "horizon"}, 1)
    return grid(kind, **values) if values else kind()


def loaded(name: str) -> type[Policy]:
    """The class of ``mine.py:MyPolicy``, by running the file; InputError if it gives no policy."""
    from jaxbandits import Policy

    file, _, class_name = name.rpartition(":")
    module = types.ModuleType(f"_jaxbandits_policies_{Path(file).stem}")
    module.__file__ = file
    sys.modules[module.__name__] = module  # dataclasses look their module up
    reason = f"{class_name} is no policy: a class with @jaxbandits.pytree, from a Policy"
    try:
        exec(compile(Path(file).read_bytes(), file, "exec"), vars(module))
        kind = getattr(module, class_name)
        if isinstance(kind, type) and issubclass(kind, Policy) and dataclasses.is_dataclass(kind):
            return kind
    except Exception as problem:  # whatever a stranger's file raises
        reason = f"{type(problem).__name__}: {problem}"
    raise bad("--policies", name, f"a file and a policy in it, as mine.py:MyPolicy ({reason})")


# --- The command


_EPILOG = f"""\
{FORMATS}
Parameters of policies are options too, and each value is one setting: --rho 0.0625,0.25,1. What else can be set, the
names of all policies' parameters among it, is documented in Python: jaxbandits.compare, jaxbandits.policies.

Example:
  jaxbandits compare --arms ads.csv --budget 500 --policies omega_ucb,bts,m_ucb --rho 0.0625,0.25,1
"""
_LISTS = (
    f"{', '.join(names.TOTAL_BUDGET)}; with average-cost: {', '.join(names.AVERAGE_COST)}; "
    f"with two costs: {', '.join(names.TWO_COSTS)}"
)
_OPTIONS = f"""\
--arms  FILE  the arms, a CSV file (see below); - for standard input
--budget  B  of each instance, in the file's unit of cost; B,B2 where --columns names a cost2
--policies  A,B,…  of {_LISTS}; all; or your own, mine.py:MyPolicy
--constraint  budget|average-cost:C  spend the budget (budget), or at most C a round on average, in every round
--runs  R  of each setting on each instance, with --until at most (1000; fewer where days are played)
--until  clear|best  stop when all pairs of settings are clear, or one is clearly ahead of all others
--growth  G|none  an arm sells at most G times what it sold in the file, a log has G times its requests (2; a log 1)
--decide  daily|per-click|N  how often the policy decides (daily, if the file has days)
--start  file|nothing  policies start from the file's counts, or without data (file)
--uncertainty  means|given  draw each run's true means from a posterior, or take the file's (means)
--noise  bernoulli|beta|clicks|empirical  law of an outcome (clicks for counts, empirical for a log, else bernoulli)
--seed  S  the same seed gives the same numbers (0)
--out  DIR  folder for {", ".join(FILES)} (jaxbandits-out)
--progress  -  a progress bar on stderr (default: on a terminal; elsewhere a line every ten seconds)
"""
OPTIONS = [line.split("  ")[0][2:] for line in (_OPTIONS + READING_TABLE).splitlines()]


def budgets(text: str) -> float | list[float]:
    """A converter: a budget, or one for each cost, separated by commas."""
    return number_list(text) if "," in text else float(text)


def constraint(text: str) -> float | None:
    """A converter: None for ``budget``, C for ``average-cost:C``."""
    kind, _, bound = text.partition(":")
    with contextlib.suppress(ValueError):
        if text == "budget" or (kind == "average-cost" and float(bound) > 0):
            return None if text == "budget" else float(bound)
    raise refused(text, "budget, or average-cost:C with C above 0")


def growth(text: str) -> float | str:
    """A converter: a factor, or ``none``."""
    return text if text == "none" else float(text)


def decide(text: str) -> int | str:
    """A converter: ``daily``, ``per-click``, or how many pulls are between two decisions."""
    return text if text in ("daily", "per-click") else int(text)


def parser() -> Parser:
    """The parser of ``compare``."""
    more: dict[str, Any] = {
        "arms": {"required": True},
        "budget": {"required": True, "type": budgets},
        "policies": {"required": True, "type": policy_names},
        "constraint": {"type": constraint},
        "runs": {"type": int},
        "growth": {"type": growth},
        "decide": {"type": decide},
        "start": {"default": "file"},
        "seed": {"type": int, "default": 0},
        "out": {"default": "jaxbandits-out"},
        "progress": {"action": argparse.BooleanOptionalAction},
    }
    about = "Spend a budget on the arms of a file with several policies, many times, and rank them."
    table = _OPTIONS + READING_TABLE
    return Parser("compare", about, table, more | READING_TYPES, _EPILOG, takes_parameters=True)


def run(arguments: argparse.Namespace, argv: list[str]) -> int:
    """Compare; the exit code is 0, 1 (nothing could be written) or 130 (Ctrl-C after the runs)."""
    from jaxbandits.apps import comparison as desk
    from jaxbandits.apps._cli.folder import check_folder
    from jaxbandits.apps.comparison.comparison import put_all
    from jaxbandits.apps.comparison.plan import with_baselines
    from jaxbandits.tools import usual_progress

    policies, notes = chosen_policies(arguments)
    out, command = Path(arguments.out), shlex.join(["jaxbandits", *argv])
    check_folder("--out", arguments.out, FILES, "compare")
    asked = ("runs", "until", "growth", "decide", "start", "uncertainty", "noise", "seed", *READING)
    options = {x: getattr(arguments, x) for x in asked} | {"average_cost": arguments.constraint}
    with console.named_as_options({*vars(arguments), *arguments.parameters}):
        plan = desk.prepare(arguments.arms, arguments.budget, policies, **options)
    progress = usual_progress(arguments.progress)
    comparison = desk.run_plan(with_baselines(plan), progress=progress)
    paths = list[Path]()
    try:
        # Numbers are written first, for the runs took the longest; then comes what is to be read.
        about = {"command": command, "arguments": vars(arguments)}
        paths += put_all(out, comparison.numbers(about))
        answer = desk.answer_of(comparison, progress=progress)
        say("\n\n".join([desk.markdown(answer), *notes]))
        desk.write_report(answer, out, command, about, progress)
    except OSError as problem:
        return console.unwritten(problem)
    except KeyboardInterrupt:
        done = ", ".join(map(str, paths)) or "nothing more"
        print(f"interrupted: all runs finished; {done} written", file=sys.stderr)
        return 130
    say(f"\nwritten: {out}/ ({', '.join(FILES)})")
    return 0
