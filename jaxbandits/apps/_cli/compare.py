"""``jaxbandits compare``: its options, those of every command that reads an arms file, and the job."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import re
import shlex
import sys
import threading
import types
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from jaxbandits._files import check_folder
from jaxbandits._progress import usual_progress
from jaxbandits.apps._cli import console
from jaxbandits.apps._cli.console import (
    Parser,
    name_in,
    nearest,
    number_in,
    number_list,
    option_name,
    refused,
    say,
    whole_in,
)
from jaxbandits.apps.comparison import plan as plans
from jaxbandits.apps.comparison.answer import answer_of, check_noise, next_split, setting_called
from jaxbandits.apps.comparison.arms_file import ROLES
from jaxbandits.apps.comparison.comparison import ANSWER_FILES, FILES, put_all, run_plan
from jaxbandits.apps.comparison.options import READING, Options, ReadingOptions
from jaxbandits.apps.comparison.plan import (
    AVERAGE_COST_POLICIES,
    OF_THE_CONSTRAINT,
    POLICIES,
    TWO_COST_POLICIES,
)
from jaxbandits.apps.drawing import DrawingProcess
from jaxbandits.core.checks import InputError, bad, cores
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import leaf_fields
from jaxbandits.core.settings import grid

FORMATS = """\
The arms file is a CSV file; with one of these headers nothing more need be said, else --columns says what is what:
  name,clicks,spent,conversions         counts; means are taken per click
  name,reward,cost                      a log, one row per pull
  name,mean_reward,mean_cost            means per pull
  gpt4,gpt4_cost,small,small_cost       with --wide: a row is a request that all arms were tried on
A column `instance` holds several problems in one file. If columns are not known, the message has all of them, and a
command with a guess in each place: --columns 'name=Campaign,pulls=Clicks,reward=Conv.,cost=Amount'.
"""


def reading_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The arguments of :func:`~jaxbandits.apps.comparison.read_arms`."""
    return {name: getattr(arguments, name) for name in READING}


def add_options(command: Parser, owner: type, without: Collection[str] = ()) -> None:
    """The fields of :class:`ReadingOptions` or of :class:`Options` as options of a command."""
    for field in dataclasses.fields(owner):
        if field.name in without or not (about := field.metadata["about"]):
            continue
        kind, name = field.metadata["kind"], option_name(field.metadata["spelt"] or field.name)
        settings: dict[str, Any] = {"dest": field.name, "help": about, "default": field.default}
        if isinstance(kind, tuple):
            words = [word.replace(" ", "-") for word in kind]
            settings |= {"type": name_in(words), "metavar": "|".join(words)}
        elif kind == "flag":
            settings |= {"action": "store_true"}
        else:
            words, convert = field.metadata["words"], _CONVERTERS[kind]
            settings |= {
                "metavar": field.metadata["metavar"],
                "type": _either(words, convert) if words else convert,
            }
            settings |= {"action": "append", "default": []} if kind == "texts" else {}
        command.add_argument(name, **settings)


def _either(words: Collection[str], convert: Callable[[str], Any]) -> Callable[[str], Any]:
    """A converter that takes these words, too."""

    def converted(text: str) -> Any:
        if text in words:
            return text
        try:
            return convert(text)
        except argparse.ArgumentTypeError as problem:
            raise argparse.ArgumentTypeError(f"{problem}, or {' or '.join(words)}") from None

    return converted


def columns_of(text: str) -> dict[str, str]:
    """A converter of ``name=Campaign,cost=Cost, EUR``: a comma stands in a title unless ``key=``
    follows it.
    """
    titles: dict[str, str] = {}
    parts = re.split(r"(?:^|,)\s*([A-Za-z_-]+2?)\s*=", text)
    if parts[0].strip() or len(parts) < 3:
        raise refused(
            text, f"pairs such as name=Campaign,cost=Kosten with the keys {', '.join(ROLES)}"
        )
    for role, title in zip(parts[1::2], parts[2::2], strict=True):
        role = name_in(ROLES)(role.replace("-", "_").lower())
        if role in titles or not title.strip():
            raise refused(text, f"given one title for each key, and {role} is not")
        titles[role] = title.strip()
    return titles


_CONVERTERS: Mapping[str, Callable[[str], Any]] = {
    "number": number_in(),
    "whole": whole_in(),
    "text": str,
    "texts": str,
    "columns": columns_of,
    "marks": whole_in(1, 10_000),
}


# --- The option ``--policies``: names, ``all``, or a class of the user's own file; and their parameters as options


_KINDS: Mapping[str, Mapping[str, type[Policy]]] = {
    "--constraint budget, with one cost": POLICIES,
    "--constraint average-cost:C": AVERAGE_COST_POLICIES,
    "two costs": TWO_COST_POLICIES,
}
_NAMES = list(dict.fromkeys(name for kinds in _KINDS.values() for name in kinds))
_WIDER = "the larger, the more is tried out"
MEANINGS: Mapping[str, str] = {
    "rho": f"how wide the confidence interval is: {_WIDER}",
    **dict.fromkeys(("alpha", "factor", "c_rad"), f"how wide the confidence bounds are: {_WIDER}"),
    "a": "how much is tried out at random in the beginning",
    "min_cost": "a lower bound of the arms' mean costs, as a share of the cost of one pull at most",
    "epsilon": "the share of the budget that is spent on trying out, before the best arm gets the rest",
}


def policy_names(text: str) -> list[str]:
    """A converter that takes names of policies, ``all``, or ``mine.py:MyPolicy``, separated by
    commas, each once.
    """
    names = [part.strip(" ") for part in text.split(",")]
    for name in names:
        if name != "all" and name not in _NAMES and ".py:" not in name:
            choices = ", ".join([*_NAMES, "all", "mine.py:MyPolicy"])
            raise refused(name, f"one of {choices}{nearest(name, _NAMES)}")
        if names.count(name) > 1:
            raise refused(name, "given once")
    return names


def parameters() -> dict[str, tuple[str, list[str]]]:
    """For each parameter of the named policies: its default(s), and the policies that have it."""
    uses: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for name, kind in (pair for kinds in _KINDS.values() for pair in kinds.items()):
        for field in leaf_fields(kind):
            if (
                name in AVERAGE_COST_POLICIES and field.name in OF_THE_CONSTRAINT
            ) or field.name == "bounds":
                continue
            defaults, users = uses.setdefault(field.name, ({}, {}))
            missing = field.default is dataclasses.MISSING
            defaults["none, it must be given" if missing else f"{field.default:g}"] = None
            users[name] = None
    return {field: (", ".join(defaults), list(users)) for field, (defaults, users) in uses.items()}


def chosen_policies(arguments: argparse.Namespace) -> tuple[list[Policy], list[str]]:
    """The policies with their settings, and a note on what ``all`` does not stand for: what needs a
    missing parameter.

    Raises:
        InputError: a parameter that no chosen policy has, or that is needed and missing; a policy
            for another constraint; a file or class that cannot be used.
    """
    if isinstance(arguments.budget, list) and "cost2" not in (arguments.columns or {}):
        amounts = " and ".join(f"{amount:g}" for amount in arguments.budget)
        may_be = (
            "one number, with no comma between thousands: two are for two costs (--columns cost2=…)"
        )
        raise bad("--budget", amounts, may_be)
    choices: Mapping[str, type[Policy]] = (
        TWO_COST_POLICIES if isinstance(arguments.budget, list) else POLICIES
    )
    choices = choices if arguments.constraint is None else AVERAGE_COST_POLICIES
    stated = {name for name, value in vars(arguments).items() if value is not None}
    needs = {name: _missing(kind, stated) for name, kind in choices.items()}
    kinds, notes = dict[str, type[Policy]](), list[str]()
    for name in arguments.policies:
        if name == "all":
            kinds |= {complete: kind for complete, kind in choices.items() if not needs[complete]}
        elif name in _NAMES and name not in choices:
            constraint_name = next(label for label, kinds in _KINDS.items() if name in kinds)
            raise bad(
                "--policies", name, f"one of {', '.join(choices)}: it is for {constraint_name}"
            )
        else:
            kinds[name] = choices[name] if name in choices else loaded(name)
    incomplete = [
        f"{x} ({option_name(of[0])})"
        for x, of in needs.items()
        if of and x not in arguments.policies
    ]
    if "all" in arguments.policies and incomplete:
        notes.append(
            f"note: --policies all is without those that need a parameter: {', '.join(incomplete)}"
        )
    fields = {field.name for kind in kinds.values() for field in leaf_fields(kind)}
    for parameter, (_, users) in parameters().items():
        if (values := getattr(arguments, parameter)) is not None and parameter not in fields:
            raise bad(
                option_name(parameter),
                values,
                f"left out: no chosen policy has it, only {', '.join(users)}",
            )
    return [_settings(name, kind, arguments) for name, kind in kinds.items()], notes


def _missing(kind: type[Policy], stated: Collection[str]) -> list[str]:
    """Parameters without default that are not stated."""
    needed = (field.name for field in leaf_fields(kind) if field.default is dataclasses.MISSING)
    return [name for name in needed if name not in (*stated, *OF_THE_CONSTRAINT)]


def _settings(name: str, kind: type[Policy], arguments: argparse.Namespace) -> Policy:
    options = vars(arguments)
    stated = {name for name, value in options.items() if value is not None}
    if missing := _missing(kind, stated):
        is_option = missing[0] in options
        subject = (
            f"{option_name(missing[0])}: not given" if is_option else f"--policies: {name} given"
        )
        raise InputError(
            f"{subject}; {name} has no default for {'it' if is_option else missing[0]}"
        )
    names = [field.name for field in leaf_fields(kind)]
    values = {x: options[x] for x in names if isinstance(options.get(x), list)}
    if arguments.constraint is not None:  # the plan puts in the constraint's own
        values |= dict.fromkeys(set(names) & set(OF_THE_CONSTRAINT), 1)
    return grid(kind, **values) if values else kind()


def loaded(name: str) -> type[Policy]:
    """The class of ``mine.py:MyPolicy``; the file is run. InputError if that fails, or the class is
    no policy.
    """
    file, _, class_name = name.rpartition(":")
    module = types.ModuleType(f"_jaxbandits_policies_{Path(file).stem}")
    module.__file__ = file
    sys.modules[module.__name__] = module  # dataclasses look their module up
    reason = (
        f"{class_name} is no policy: a class with @jaxbandits.pytree that derives from a Policy"
    )
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
Example:
  jaxbandits compare --arms ads.csv --budget 500 --policies omega_ucb,bts,m_ucb --rho 0.0625,0.25,1
"""


def parser() -> Parser:
    """The parser of ``compare``."""
    command = Parser(
        prog="jaxbandits compare",
        description="Spend a budget on the arms of a file with several policies, many times, and rank them.",
        epilog=_EPILOG,
    )
    add, yes = command.add_argument, argparse.BooleanOptionalAction
    add(
        "--arms",
        required=True,
        metavar="FILE",
        help="the arms, a CSV file (see below); - for standard input",
    )
    add("--budget", required=True, type=budgets, metavar="B",
        help="budget of each instance, in the file's unit of cost; B,B2 where --columns names a cost2")  # fmt: skip
    add("--policies", required=True, type=policy_names, metavar="A,B,…",
        help=f"from: {', '.join(POLICIES)}; with --constraint average-cost: {', '.join(AVERAGE_COST_POLICIES)}; "
        f"with two costs: {', '.join(TWO_COST_POLICIES)}; all; "
        "or your own, mine.py:MyPolicy (see docs/add-a-policy.md)")  # fmt: skip
    add("--constraint", type=constraint, default="budget", metavar="budget|average-cost:C",
        help="spend the budget (budget), or spend it at no more than C a round on average, in every round")  # fmt: skip
    for name, (default, users) in parameters().items():
        text = f"{MEANINGS.get(name, 'a parameter')}, of {', '.join(users)} (default: {default})"
        add(
            option_name(name),
            type=number_list,
            metavar="X,Y,…",
            help=f"{text}; each value is one setting",
        )
    add_options(command, Options, without=READING)
    files = ", ".join((*FILES, *ANSWER_FILES))
    add(
        "--out",
        default="jaxbandits-out",
        metavar="DIR",
        help=f"folder for {files} (jaxbandits-out)",
    )
    add("--policy", metavar="NAME", help="answer for this policy or setting too, beside the best")
    add("--answer", action=yes, default=True,
        help="the answer in words, pictures and report.html (yes); without it the ranking only")  # fmt: skip
    add("--check", action=yes, default=True,
        help="play a second noise too, and tell if the ranking depends on it (yes)")  # fmt: skip
    add("--explain", action="store_true", help="explain the words of the tables")
    add_options(command, ReadingOptions)
    add("--progress", action=yes,
        help="a progress bar on stderr (default: on a terminal; elsewhere a line every ten seconds)")  # fmt: skip
    return command


def run(arguments: argparse.Namespace, argv: list[str]) -> int:
    """Compare; the exit code is 0, 1 (something could not be written) or 130 (Ctrl-C after the
    runs).
    """
    (policies, notes), extra_policies = (
        chosen_policies(arguments),
        [arguments.policy] if arguments.policy else [],
    )
    if extra_policies and not arguments.answer:
        raise bad(
            "--policy", arguments.policy, "left out with --no-answer: only the answer is for it"
        )
    files, out = (*FILES, *(ANSWER_FILES if arguments.answer else ())), Path(arguments.out)
    check_folder("--out", arguments.out, files, "compare")
    options = {x.name: getattr(arguments, x.name, None) for x in dataclasses.fields(Options)}
    options |= {"claim": arguments.claim.replace("-", " "), "average_cost": arguments.constraint}
    with DrawingProcess(apart=cores() > 1) as pictures:
        with console.named_as_options({*vars(arguments)}):
            plan = plans.prepare(arguments.arms, arguments.budget, policies, **options)
            for name in extra_policies:
                setting_called(name, plan.played.labels)
        if arguments.answer:
            splits = plans.baselines_of(plan.table, plan.worlds, plan.spending)
            plan = dataclasses.replace(plan, baselines=splits)
        progress = usual_progress(arguments.progress)
        threading.Thread(target=_import_xarray, daemon=True).start()
        comparison = run_plan(plan, progress=progress)
        from jaxbandits.apps.comparison.report import (
            answer_files,
            check_of,
            closing,
            drawings,
            next_sections,
            text_of,
        )

        command, answer, paths = shlex.join(["jaxbandits", *argv]), None, list[Path]()
        try:
            # Numbers are written first, for the runs took the longest; then comes what is to be
            # read; pictures last.
            paths += put_all(
                out, comparison.numbers({"command": command, "arguments": vars(arguments)})
            )
            if arguments.answer:
                answer = answer_of(comparison, extra_policies, check=False, progress=progress)
            say(text_of(comparison, answer, arguments.explain))
            regret, pages = pictures.submit(comparison.drawing()), dict[str, bytes]()
            if answer is not None:
                # When the answer stands there: what to do next, and another noise while pictures
                # are drawn.
                answer = dataclasses.replace(answer, next=next_split(answer, progress))
                say(
                    "".join(f"\n{section.text()}\n" for section in next_sections(answer)).rstrip(
                        "\n"
                    )
                )
                charts = {
                    name: pictures.submit(drawing) for name, drawing in drawings(answer, progress)
                }
                if arguments.check:
                    answer = dataclasses.replace(
                        answer, check=check_noise(comparison, progress=progress)
                    )
                    say("\n" + "\n".join(check_of(answer)))
                pages = answer_files(
                    answer, {name: picture.result() for name, picture in charts.items()}, command
                )
            put_all(out, {"regret.png": regret.result(), **pages})
        except OSError as problem:
            return console.unwritten(problem)
        except KeyboardInterrupt:
            done = ", ".join(map(str, paths)) or "nothing more"
            print(f"interrupted: all runs finished; {done} written", file=sys.stderr)
            return 130
    last = [*notes, closing(answer)] if answer else notes
    say("\n" + "\n\n".join([*last, f"written: {', '.join(str(out / name) for name in files)}"]))
    return 0


def _import_xarray() -> None:
    """Half a second of imports that are needed after the runs, while these compile; its first use
    makes some more.
    """
    with contextlib.suppress(Exception):  # the process may end meanwhile
        import xarray

        xarray.DataArray([0.0]).mean()


def budgets(text: str) -> float | list[float]:
    """A converter: a budget, or one for each cost, separated by commas."""
    return number_list(text) if "," in text else number_in()(text)


def constraint(text: str) -> float | None:
    """A converter: None for ``budget``, C for ``average-cost:C``."""
    kind, _, bound = text.partition(":")
    may_be = "budget, or average-cost:C with C above 0, as average-cost:0.5"
    if kind != "average-cost" and text != "budget":
        raise refused(text, may_be)
    return None if text == "budget" else number_in(above=0, may_be=may_be)(bound)
