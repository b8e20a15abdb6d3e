"""The command ``jaxbandits``: ``compare`` (the work is done by :mod:`.compare`), ``sweep`` and ``status``
(:mod:`.sweeps.command`), ``tune`` (:mod:`.tune_command`). ``jaxbandits compare --help`` lists everything."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import math
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from jaxbandits import __version__, tune_command
from jaxbandits.compare import FILES, NOISES, POLICIES, Comparison, Interrupted, Plan, prepare
from jaxbandits.constraints import LAST_PULLS
from jaxbandits.errors import InputError, bad, shown
from jaxbandits.protocol import Policy, check_range
from jaxbandits.simulate import grid
from jaxbandits.sweeps import command

_EPILOG = """\
The arms file is a CSV file whose header is one of
  name,mean_reward,mean_cost            means per pull
  name,clicks,spent,conversions         counts; means are taken per click
  name,reward,cost                      a log, one row per pull
or that of the Facebook ads file; a column `instance` holds several problems in one file.

Example:
  jaxbandits compare --arms ads.csv --budget 500 --policies omega_ucb,bts,m_ucb --rho 0.0625,0.25,1
"""
_MOST_INSTANCES, _MOST_COLUMNS = 40, 6


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 0, 1 (nothing could be written), 2 (bad input) or 130 (Ctrl-C).

    Args:
        argv: the arguments, default those of the process.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    try:
        arguments = _parser().parse_args(_negative_values_attached(given))
        return _JOBS[arguments.job](arguments, given)
    except InputError as problem:
        print(f"jaxbandits: error: {' '.join(str(problem).split())}", file=sys.stderr)
        return 2
    except Interrupted as stop:
        print(f"interrupted: {stop.done} of {stop.runs} runs finished; nothing was written", file=sys.stderr)
        return 130
    except KeyboardInterrupt:
        print("interrupted: no run finished; nothing was written", file=sys.stderr)
        return 130


def _compare(arguments: argparse.Namespace, given: list[str]) -> int:
    policies = _policies(arguments)
    if arguments.beta_concentration is not None and arguments.noise != "beta":
        raise bad("--beta-concentration", arguments.beta_concentration, "left out unless --noise beta is given")
    _check_folder(arguments.out)
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
            instances=arguments.instances,
            reward_max=arguments.reward_max,
            cost_max=arguments.cost_max,
        )
    except InputError as problem:
        raise InputError(_with_option_name(str(problem), arguments)) from None
    print("\n".join(_what_was_read(plan)), flush=True)
    comparison = plan.run(progress=sys.stderr.isatty() if arguments.progress is None else arguments.progress)
    about = {"command": shlex.join(["jaxbandits", *given]), "arguments": vars(arguments)}
    try:
        written = comparison.save(arguments.out, about)  # first of all, for the results took the longest
    except OSError as problem:
        print(f"jaxbandits: error: --out: could not be written ({problem})", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"interrupted: all runs finished; the files in {arguments.out} are whole or not there", file=sys.stderr)
        return 130
    sections = [_ranking(comparison), _per_instance(comparison), [f"note: {note}" for note in comparison.notes]]
    sections.append([f"written: {', '.join(str(path) for path in written)}"])
    print("".join("\n" + "\n".join(lines) + "\n" for lines in sections if lines), end="", flush=True)
    return 0


_JOBS = {"compare": _compare, "sweep": command.run_sweep, "status": command.run_status, "tune": tune_command.run_tune}


# --- arguments -------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """Errors are one line; no usage is printed."""

    def error(self, message: str) -> NoReturn:
        if unknown := re.match(r"unrecognized arguments: (\S+)", message):
            near = _nearest(unknown[1].split("=")[0], self._options())
            raise InputError(f"{unknown[1]}: unknown argument{near}; see jaxbandits compare --help")
        message = re.sub(r"^argument (-\w+/)?", "", message)
        message = re.sub(r"^the following arguments are required: (.*)", r"\1: missing; it must be given", message)
        raise InputError(message)

    def _options(self) -> list[str]:
        """All arguments, those of the jobs too."""
        found = [option for action in self._actions for option in action.option_strings]
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                found += [option for job in action.choices.values() for option in job._options()]
        return found


def _parser() -> _Parser:
    parser = _Parser(prog="jaxbandits", description="Simulate bandits whose arms cost something.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"jaxbandits {__version__}")
    jobs = parser.add_subparsers(dest="job", required=True, metavar="compare|sweep|status|tune", parser_class=_Parser)
    job = jobs.add_parser(
        "compare",
        help="which policy spends a budget best",
        description="Spend a budget on the arms of a file with several policies, many times, and rank them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = job.add_argument
    add("--arms", required=True, metavar="FILE", help="the arms, a CSV file (see below)")
    add(
        "--budget", required=True, type=_number, metavar="B", help="budget of each instance, in the file's unit of cost"
    )
    add("--policies", required=True, metavar="A,B,…", help=f"names from: {', '.join(POLICIES)}")
    for name, (default, users) in _parameters().items():
        text = f"parameter of {', '.join(users)} (default: {default})"
        add(_option(name), type=_numbers, metavar="X,Y,…", help=f"{text}; each value is one setting")
    add(
        "--runs",
        type=_whole,
        default=1000,
        metavar="R",
        help="independent runs of each setting on each instance (1000)",
    )
    add("--out", default="jaxbandits-out", metavar="DIR", help=f"folder for {', '.join(FILES)} (jaxbandits-out)")
    add("--seed", type=_whole, default=0, metavar="S", help="the same seed gives the same table.csv (0)")
    add("--noise", choices=NOISES, help="what a pull looks like (bernoulli; for a log empirical, that is its own rows)")
    add(
        "--beta-concentration", type=_number, metavar="C", help="alpha + beta of --noise beta; larger is less noisy (4)"
    )
    add(
        "--last-pull",
        choices=LAST_PULLS,
        default="counts",
        help="the pull that exceeds the budget counts with its reward",
    )
    add(
        "--instances", choices=("published", "repaired"), default="published", help="Facebook file: drop or repair rows"
    )
    add("--reward-max", type=_number, metavar="X", help="bound of the reward of one pull, in the file's unit")
    add("--cost-max", type=_number, metavar="X", help="bound of the cost of one pull, in the file's unit")
    add("--marks", type=_whole, default=50, metavar="N", help="points of the curves in regret.png (50)")
    add("--progress", action=argparse.BooleanOptionalAction, help="a progress bar on stderr (default: on a terminal)")
    command.add_jobs(jobs)
    tune_command.add_job(jobs)
    return parser


def _option(parameter: str) -> str:
    return f"--{parameter.replace('_', '-')}"


def _leaves(kind: type[Policy]) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(kind) if not field.metadata.get("static")]  # type: ignore[arg-type]


def _parameters() -> dict[str, tuple[str, list[str]]]:
    """For each parameter of the policies: its default(s), and the policies that have it."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for name, kind in POLICIES.items():
        for field in _leaves(kind):
            defaults, users = found.setdefault(field.name, ([], []))
            default = "none, it must be given" if field.default is dataclasses.MISSING else f"{field.default:g}"
            defaults += [default] if default not in defaults else []
            users.append(name)
    return {field: (", ".join(defaults), users) for field, (defaults, users) in found.items()}


def _policies(arguments: argparse.Namespace) -> list[Policy]:
    names = [name.strip() for name in arguments.policies.split(",")]
    for name in names:
        if name not in POLICIES:
            raise bad("--policies", name, f"one of {', '.join(POLICIES)}{_nearest(name, POLICIES)}")
        if names.count(name) > 1:
            raise bad("--policies", name, "given once")
    for parameter, (_, users) in _parameters().items():
        values = getattr(arguments, parameter)
        if values is not None and not set(users) & set(names):
            raise bad(_option(parameter), values, f"left out: no chosen policy has it, only {', '.join(users)}")
    chosen = []
    for name in names:
        values = {}
        for field in _leaves(POLICIES[name]):
            option = _option(field.name)
            if (value := getattr(arguments, field.name)) is not None:
                check_range(option, value, field.metadata)
                if len(set(value)) < len(value):
                    raise bad(option, value, "different values")
                values[field.name] = value
            elif field.default is dataclasses.MISSING:
                raise InputError(f"{option}: not given; {name} has no default for it")
        chosen.append(grid(POLICIES[name], **values) if values else POLICIES[name]())
    return chosen


def _nearest(name: str, known: Any) -> str:
    spelt = {text.lower().replace("-", "_"): text for text in known}
    near = [spelt[n] for n in difflib.get_close_matches(name.lower().replace("-", "_"), spelt, n=1, cutoff=0.4)]
    return f"; did you mean {near[0]}?" if near else ""


def _converter(convert: Callable[[str], Any], may_be: str) -> Callable[[str], Any]:
    def converted(text: str) -> Any:
        try:
            return convert(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{shown(text)} given; it must be {may_be}") from None

    return converted


_number = _converter(float, "a finite number above 0")
_whole = _converter(int, "a whole number")
_numbers = _converter(lambda text: [float(part) for part in text.split(",")], "numbers, separated by commas")


def _negative_values_attached(given: list[str]) -> list[str]:
    """``--rho -1,2`` as ``--rho=-1,2``, so that argparse does not take the value for an argument."""
    joined: list[str] = []
    for part in given:
        if re.match(r"-(\d|\.|inf|nan)", part) and joined and re.fullmatch(r"--[a-z-]+", joined[-1]):
            joined[-1] += f"={part}"
        else:
            joined.append(part)
    return joined


def _with_option_name(message: str, arguments: argparse.Namespace) -> str:
    """``runs: 0 given; …`` as ``--runs: 0 given; …``."""
    name = message.split(":")[0]
    return f"--{name.replace('_', '-')}{message[len(name) :]}" if name in vars(arguments) else message


def _check_folder(out: str) -> None:
    """Find out whether the files can be written, and leave nothing behind."""
    if not out:
        raise bad("--out", out, "the name of a folder")
    nearest = Path(out)
    try:
        while not os.path.lexists(nearest):
            nearest = nearest.parent
        with tempfile.TemporaryFile(dir=nearest):
            pass
        for name in FILES:
            if (Path(out) / name).is_dir():
                raise IsADirectoryError(0, f"{name} in it is a folder")
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise bad("--out", out, f"a folder that can be written ({shown(str(nearest))}: {reason})") from None


# --- what is printed -------------------------------------------------------------------------------------------


def _what_was_read(plan: Plan) -> list[str]:
    table, many = plan.table, len(plan.table.instances)
    sizes = sorted(len(instance.arms) for instance in table.instances)
    pulls = sorted(plan.budget / instance.mean_cost.mean() for instance in table.instances)
    each = " (each instance its own, see run.json)"
    reward = _spread([i.reward_bound for i in table.instances], each)
    cost = _spread([i.cost_bound for i in table.instances], each)
    looks = {
        "bernoulli": "it brings its whole bound or nothing, and costs its whole bound or nothing; means as in the file",
        "beta": f"between 0 and the bound, alpha + beta = {plan.beta_concentration:g}; means as in the file",
        "empirical": "a row of the arm's log, reward and cost together",
    }
    lines = [
        f"read {plan.source}: {table.kind}, {_several(many, 'instance')}, {sum(sizes)} arms"
        + (f" ({sizes[0]} to {sizes[-1]} in an instance)" if many > 1 else ""),
        *(f"  {note}" for note in table.notes),
        f"a reward is counted in {table.reward_unit}, at most {reward}",
        f"a cost is counted in {table.cost_unit}, at most {cost}",
        f"a pull is {plan.noise}: {looks[plan.noise]}",
        f"budget {plan.budget:g} ({table.cost_unit}) for each instance, about {_range(pulls)} pulls if spread over all "
        f"arms; the last pull {plan.last_pull}",
        f"{_several(plan.runs, 'run')} × {_several(many, 'instance')} × {_several(len(plan.settings), 'setting')}"
        f" = {plan.runs * many * len(plan.settings):,} runs; seed {plan.seed}",
    ]
    return lines


def _ranking(comparison: Comparison) -> list[str]:
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
    for row in rows:
        against = _with_interval(row, "difference") + ", " + _clear(row)
        cells.append(
            [
                str(row["rank"]),
                row["setting"],
                *(_with_interval(row, name) for name in ("reward", "regret", "pulls")),
                "best" if row["rank"] == 1 else against,
            ]
        )
    count = len(plan.table.instances)
    average = f"the average of {count} instances, which all weigh the same; " if count > 1 else ""
    return [
        *_aligned(cells, left=(1, 5)),
        f"({average}± 95 % interval over {_several(plan.runs, 'run')}, each interval by itself;\n"
        " clear: Holm's test over all pairs, at 5 % for the whole table"
        + (";\n the instances are given, not sampled: the intervals say nothing about others)" if count > 1 else ")"),
    ]


def _per_instance(comparison: Comparison) -> list[str]:
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
                instance.name,
                str(len(instance.arms)),
                *(_with_interval(of[name], "reward") + marks[name] for name in ranked),
            ]
        )
    hidden = []
    if len(instances) > _MOST_INSTANCES:
        hidden.append(_several(len(instances) - _MOST_INSTANCES, "more instance"))
    if len(plan.settings) > len(ranked):
        hidden.append(_several(len(plan.settings) - len(ranked), "more setting"))
    return [
        f"{plan.table.reward_unit} in each instance, by overall rank (* best there, ~ not clearly worse than it)",
        *_aligned(cells, left=(0,)),
        *([f"… {' and '.join(hidden)} in table.csv"] if hidden else []),
    ]


def _clear(row: dict[str, Any]) -> str:
    """``clear``, or ``not clear`` and how many more runs would probably make it so."""
    if row["difference_clear"]:
        return "clear"
    more = row["more_runs"]
    return f"not clear (about {float(f'{more:.2g}'):,.0f} more runs)" if more < 1e6 else "not clear"


def _with_interval(row: dict[str, Any], name: str) -> str:
    """``12.34 ± 0.56``: as many decimals as show two digits of the interval's half width."""
    mean, half = row[name], (row[f"{name}_high"] - row[f"{name}_low"]) / 2
    if math.isnan(half):
        return f"{mean:,.5g}"
    decimals = 2 if half == 0 else min(max(1 - math.floor(math.log10(half)), 0), 9)
    return f"{mean:,.{decimals}f} ± {half:,.{decimals}f}"


def _aligned(cells: list[list[str]], left: tuple[int, ...]) -> list[str]:
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return [
        "  ".join(
            text.ljust(width) if column in left else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def _range(numbers: Sequence[float]) -> str:
    low, high = (f"{number:,.3g}" if number < 1000 else f"{number:,.0f}" for number in (min(numbers), max(numbers)))
    return low if low == high else f"{low} to {high}"


def _spread(numbers: Sequence[float], each: str) -> str:
    low, high = f"{min(numbers):.4g}", f"{max(numbers):.4g}"
    return low if low == high else f"{low} to {high}{each}"


def _several(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


if __name__ == "__main__":
    sys.exit(main())
