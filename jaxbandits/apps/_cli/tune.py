"""``jaxbandits tune``: tune a policy's parameter over random instances, or over those of a file."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from typing import TYPE_CHECKING, Any

from jaxbandits.apps._cli.compare import READING_TABLE, READING_TYPES, reading_of
from jaxbandits.apps._cli.console import (
    Parser,
    listed,
    named_as_options,
    option_name,
    say,
    unwritten,
)
from jaxbandits.apps.comparison.names import TOTAL_BUDGET
from jaxbandits.core import InputError, bad
from jaxbandits.tools import positive_number, whole_number

if TYPE_CHECKING:
    from jaxbandits import Policy
    from jaxbandits.tuning import Problem

_EPILOG = """\
Examples:
  jaxbandits tune --policy omega_ucb --parameter rho --family beta --k 50 --grid 16
  jaxbandits tune --policy omega_ucb --parameter rho --arms ads.csv --budget 500
"""


_OPTIONS = f"""\
--policy  NAME  one of: {", ".join(TOTAL_BUDGET)}
--parameter  NAME  what to tune (default: the policy's first)
--start  X  where to start (default: the policy's default)
--temperature  X  soften the index, and tune the temperature too, from X
--family  bernoulli|beta|generalised-bernoulli  random instances (bernoulli)
--k  K  arms of a random instance (10)
--arms  FILE  instances of an arms file instead of random ones (means, Bernoulli pulls)
--budget  B  with --arms: of each instance, in the file's unit; else in pulls of the cheapest arm (1.5e5)
--steps  N  steps of the optimiser (8)
--instances  N  fresh instances in each step, two runs on each (20)
--grid  N  compare with the best of N values, start/16 to 16·start, on 100 instances (no grid)
--fresh  N  instances of the final comparison (200)
--seed  S  the same seed gives the same numbers (0)
--out  DIR  folder for numbers and pictures (jaxbandits-tune)
"""


def parser() -> Parser:
    """The parser of ``tune``."""
    counts = {"k": None, "steps": 8, "instances": 20, "grid": 0, "fresh": 200, "seed": 0}
    more: dict[str, Any] = {name: {"type": int, "default": x} for name, x in counts.items()}
    more |= {name: {"type": float} for name in ("start", "temperature", "budget")}
    more |= {"policy": {"required": True}, "out": {"default": "jaxbandits-tune"}}
    about = "Descend the expected regret over a distribution of instances; compare on fresh ones."
    return Parser("tune", about, _OPTIONS + READING_TABLE, more | READING_TYPES, _EPILOG)


def run(arguments: argparse.Namespace, argv: list[str]) -> int:
    """Tune, see :func:`jaxbandits.tune`; the exit code is 0, or 1 if nothing could be written."""
    import jax
    import numpy as np

    from jaxbandits import tune
    from jaxbandits.apps._cli.folder import check_folder
    from jaxbandits.tools import get
    from jaxbandits.tuning import FILES

    whole_number("--seed", arguments.seed, 0, 2**32 - 1)
    whole_number("--grid", arguments.grid, 0)
    policy, names = _policy(arguments)
    grid = np.zeros((0, len(names)))
    if arguments.grid:
        if len(names) > 1:
            raise InputError("--grid: given with --temperature; a grid is over one parameter")
        grid = float(get(policy, names[0])) * np.geomspace(1 / 16, 16, arguments.grid)
    check_folder("--out", arguments.out, FILES, "tune")
    options = {name: getattr(arguments, name) for name in ("steps", "instances", "fresh")}
    with named_as_options({*vars(arguments)}):
        key, problem = jax.random.key(arguments.seed), _problem(arguments)
        result = tune(policy, problem, wrt=names, key=key, grid=grid, **options)
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

    if arguments.policy not in POLICIES:
        raise bad("--policy", arguments.policy, f"one of {listed(arguments.policy, POLICIES)}")
    kind = POLICIES[arguments.policy]
    leaves = {field.name: field for field in leaf_fields(kind)}
    if not leaves:
        raise bad("--policy", arguments.policy, "one with a parameter")
    name = next(iter(leaves)) if arguments.parameter is None else arguments.parameter
    if name not in leaves:
        raise bad("--parameter", name, f"one of {listed(name, leaves)}")
    values = {} if arguments.start is None else {name: arguments.start}
    for leaf in leaves.values():
        if leaf.default is dataclasses.MISSING and leaf.name not in values:
            raise InputError(f"--start: required, for there is no default of {leaf.name}")
    policy = kind(**values)
    if arguments.temperature is None:
        return policy, (name,)
    if not isinstance(policy, IndexPolicy):
        may_be = f"left out: {arguments.policy} has no index to soften"
        raise bad("--temperature", arguments.temperature, may_be)
    return SoftIndex(policy, temperature=arguments.temperature), ("temperature", f"policy.{name}")


def _problem(arguments: argparse.Namespace) -> Problem:
    from jaxbandits import TotalBudget
    from jaxbandits.apps.comparison import finite_arms, read_arms
    from jaxbandits.tuning import fixed_problem, random_problem

    reading, relation = reading_of(arguments), "without" if arguments.arms is None else "with"
    for name in reading if arguments.arms is None else ("k", "family"):
        if (value := getattr(arguments, name)) not in (None, [], False):
            raise bad(option_name(name), value, f"left out {relation} --arms")
    if arguments.arms is None:
        k = 10 if arguments.k is None else whole_number("--k", arguments.k, 2, 2**24)
        budget = 1.5e5 if arguments.budget is None else arguments.budget
        return random_problem(arguments.family or "bernoulli", k, budget)
    if arguments.budget is None:
        raise InputError("--budget: required with --arms")
    positive_number("--budget", arguments.budget)
    table = read_arms(arguments.arms, **reading)
    instances = table.instances
    if table.cost2_unit:
        raise bad("--columns", f"cost2={table.cost2_unit}", "left out: it is tuned for one cost")
    if len({instance.cost_bound for instance in instances}) > 1:
        raise bad("--arms", arguments.arms, "a file whose instances share one bound of the cost")
    budget = TotalBudget(arguments.budget / instances[0].cost_bound, last_pull="counts")
    return fixed_problem(finite_arms(instances, "bernoulli"), budget)
