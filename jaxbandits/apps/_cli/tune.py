"""``jaxbandits tune``: tune a policy's parameter over random instances, or over those of an arms
file.
"""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from typing import TYPE_CHECKING

from jaxbandits.apps._cli.compare import add_reading, reading_of
from jaxbandits.apps._cli.console import (
    Parser,
    name_in,
    named_as_options,
    nearest,
    number_in,
    option_name,
    say,
    unwritten,
    whole_in,
)
from jaxbandits.apps.comparison.names import TOTAL_BUDGET
from jaxbandits.core import InputError, bad

if TYPE_CHECKING:
    from jaxbandits import Policy
    from jaxbandits.tuning import Problem

_FAMILIES = ("bernoulli", "beta", "generalised-bernoulli")
_EPILOG = """\
Examples:
  jaxbandits tune --policy omega_ucb --parameter rho --family beta --k 50 --grid 16
  jaxbandits tune --policy omega_ucb --parameter rho --arms ads.csv --budget 500
"""


def parser() -> Parser:
    """The parser of ``tune``."""
    command = Parser(
        prog="jaxbandits tune",
        description="Descend the expected regret over a distribution of instances; compare on fresh ones.",
        epilog=_EPILOG,
    )
    add, positive, limit = command.add_argument, number_in(above=0), 2**24
    add(
        "--policy",
        required=True,
        type=name_in(TOTAL_BUDGET),
        metavar="NAME",
        help=f"one of: {', '.join(TOTAL_BUDGET)}",
    )
    add("--parameter", metavar="NAME", help="what to tune (default: the policy's first)")
    add(
        "--start", type=positive, metavar="X", help="where to start (default: the policy's default)"
    )
    add(
        "--temperature",
        type=positive,
        metavar="X",
        help="soften the index, and tune the temperature too, from X",
    )
    command.add_choice("--family", _FAMILIES, "random instances (bernoulli)")
    add("--k", type=whole_in(2, limit), metavar="K", help="arms of a random instance (10)")
    add(
        "--arms",
        metavar="FILE",
        help="instances of an arms file instead of random ones (means, Bernoulli pulls)",
    )
    add_reading(command)
    add("--budget", type=positive, metavar="B", help="with --arms: budget of each instance, in the file's unit; "
        "else in pulls of the cheapest arm (1.5e5)")  # fmt: skip
    add(
        "--steps",
        type=whole_in(1, 10**6),
        default=8,
        metavar="N",
        help="steps of the optimiser (8)",
    )
    add("--instances", type=whole_in(1, limit), default=20, metavar="N",
        help="fresh instances in each step, two runs on each (20)")  # fmt: skip
    add("--grid", type=whole_in(2, 10**4), default=0, metavar="N",
        help="compare with the best of N values, start/16 to 16·start, on 100 instances (no grid)")  # fmt: skip
    add(
        "--fresh",
        type=whole_in(2, limit),
        default=200,
        metavar="N",
        help="instances of the final comparison (200)",
    )
    add("--seed", type=whole_in(0, 2**32 - 1), default=0, metavar="S",
        help="the same seed gives the same numbers (0)")  # fmt: skip
    add(
        "--out",
        default="jaxbandits-tune",
        metavar="DIR",
        help="folder for numbers and pictures (jaxbandits-tune)",
    )
    return command


def run(arguments: argparse.Namespace, argv: list[str]) -> int:
    """Tune, see :func:`jaxbandits.tune`; the exit code is 0, or 1 if nothing could be written."""
    import jax
    import numpy as np

    from jaxbandits import tune
    from jaxbandits.tools import check_folder, get
    from jaxbandits.tuning import FILES

    policy, names = _policy(arguments)
    grid = np.zeros((0, len(names)))
    if arguments.grid:
        if len(names) > 1:
            raise InputError("--grid: given with --temperature; a grid is over one parameter")
        grid = float(get(policy, names[0])) * np.geomspace(1 / 16, 16, arguments.grid)
    check_folder("--out", arguments.out, FILES, "tune")
    options = {name: getattr(arguments, name) for name in ("steps", "instances", "fresh")}
    with named_as_options({*vars(arguments)}):
        result = tune(
            policy,
            _problem(arguments),
            wrt=names,
            key=jax.random.key(arguments.seed),
            grid=grid,
            **options,
        )
    about = {"command": shlex.join(["jaxbandits", *argv]), "arguments": vars(arguments)}
    try:
        paths = result.save(arguments.out, about)
    except OSError as problem:
        return unwritten(problem)
    say("\n".join([*result.lines(), f"written: {', '.join(map(str, paths))}"]))
    return 0


def _policy(arguments: argparse.Namespace) -> tuple[Policy, tuple[str, ...]]:
    from jaxbandits.apps.comparison.plan import POLICIES
    from jaxbandits.policies import IndexPolicy, SoftIndex
    from jaxbandits.tools import leaf_fields

    kind = POLICIES[arguments.policy]
    leaves = {field.name: field for field in leaf_fields(kind)}
    if not leaves:
        raise bad("--policy", arguments.policy, "one with a parameter")
    name = next(iter(leaves)) if arguments.parameter is None else arguments.parameter
    if name not in leaves:
        raise bad(
            "--parameter",
            name,
            f"one of {', '.join(leaves)}, as {arguments.policy} has{nearest(name, leaves)}",
        )
    values = {} if arguments.start is None else {name: arguments.start}
    if missing := [
        x.name for x in leaves.values() if x.default is dataclasses.MISSING and x.name not in values
    ]:
        raise InputError(
            f"--start: required, for {arguments.policy} has no default for {missing[0]}"
        )
    policy = kind(**values)
    if arguments.temperature is None:
        return policy, (name,)
    if not isinstance(policy, IndexPolicy):
        raise bad(
            "--temperature",
            arguments.temperature,
            f"left out: {arguments.policy} has no index to soften",
        )
    return SoftIndex(policy, temperature=arguments.temperature), ("temperature", f"policy.{name}")


def _problem(arguments: argparse.Namespace) -> Problem:
    from jaxbandits import TotalBudget
    from jaxbandits.apps.comparison import finite_arms, read_arms
    from jaxbandits.tuning import fixed_problem, random_problem

    reading, relation = (
        reading_of(arguments),
        "without" if arguments.arms is None else "with",
    )
    for name in reading if arguments.arms is None else ("k", "family"):
        if (value := getattr(arguments, name)) not in (None, [], False):
            raise bad(option_name(name), value, f"left out {relation} --arms")
    if arguments.arms is None:
        return random_problem(
            arguments.family or "bernoulli", arguments.k or 10, arguments.budget or 1.5e5
        )
    if arguments.budget is None:
        raise InputError("--budget: required with --arms")
    table = read_arms(arguments.arms, **reading)
    instances = table.instances
    if table.cost2_unit:
        raise bad("--columns", f"cost2={table.cost2_unit}", "left out: it is tuned for one cost")
    if len({instance.cost_bound for instance in instances}) > 1:
        raise bad("--arms", arguments.arms, "a file whose instances share one bound of the cost")
    budget = TotalBudget(arguments.budget / instances[0].cost_bound, last_pull="counts")
    return fixed_problem(finite_arms(instances, "bernoulli"), budget)
