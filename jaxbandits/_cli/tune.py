"""``jaxbandits tune``: tune a policy's parameter over random instances, or over those of an arms file."""

from __future__ import annotations

import argparse
import dataclasses
import math
import shlex
import warnings
from typing import Any

import jax
import numpy as np

from jaxbandits._cli.arms_options import add_arms_options, arms_options
from jaxbandits._cli.command_line import (
    Parser,
    as_option,
    complain,
    nearest,
    number,
    one_of,
    option,
    refused,
    say,
    whole,
)
from jaxbandits._engine.resources import memory_left
from jaxbandits._files.output_folder import check_folder
from jaxbandits.comparison.arms_file import read_arms
from jaxbandits.comparison.plan import POLICIES
from jaxbandits.comparison.scaled_arms import finite_arms
from jaxbandits.constraints import TotalBudget
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import check_range
from jaxbandits.policies import IndexPolicy, SoftIndex
from jaxbandits.tuning.problems import FAMILIES, Problem, fixed_problem, random_problem
from jaxbandits.tuning.search import default_optimizer, tune
from jaxbandits.tuning.tuned import FILES, Tuned

_FLOAT32 = (1e-37, 1e38)
# Of instances that are being drawn (measured: Bernoulli 292, generalised Bernoulli 663, Beta 13,711).
_BYTES_PER_ARM = {"bernoulli": 300, "generalised-bernoulli": 700, "beta": 14_000}
_KNOWN = ("adabelief", "adagrad", "adam", "adamax", "adamw", "lion", "nadam", "radam", "rmsprop", "sgd", "yogi")
_EPILOG = """\
Examples:
  jaxbandits tune --policy omega_ucb --parameter rho --family beta --k 50 --grid 16
  jaxbandits tune --policy omega_ucb --parameter rho --arms ads.csv --budget 500
"""


def parser() -> Parser:
    """Of the command's options."""
    made = Parser(
        prog="jaxbandits tune",
        description="Descend the expected regret over a distribution of instances; compare on fresh ones.",
        epilog=_EPILOG,
    )
    add, positive, many = made.add_argument, number(above=0), 2**24
    add("--policy", required=True, type=one_of(POLICIES), metavar="NAME", help=f"one of: {', '.join(POLICIES)}")
    add("--parameter", metavar="NAME", help="what to tune (default: the policy's first)")
    add("--start", type=positive, metavar="X", help="where to start (default: the policy's default)")
    add("--temperature", type=positive, metavar="X", help="soften the index, and tune the temperature too, from X")
    add("--family", type=one_of(sorted(FAMILIES)), metavar="|".join(sorted(FAMILIES)), help="random instances "
        "(bernoulli)")  # fmt: skip
    add("--k", type=whole(2, many), metavar="K", help="arms of a random instance (10)")
    add("--arms", metavar="FILE", help="instances of an arms file instead of random ones (means, Bernoulli pulls)")
    add_arms_options(made, facebook=False)
    add("--budget", type=positive, metavar="B", help="with --arms: budget of each instance, in the file's unit; "
        "else in pulls of the cheapest arm (1.5e5)")  # fmt: skip
    add("--steps", type=whole(1, 10**6), default=8, metavar="N", help="steps of the optimiser (8)")
    add("--instances", type=whole(1, many), default=20, metavar="N",
        help="fresh instances in each step, two runs on each (20)")  # fmt: skip
    add("--optimizer", default="sgd", metavar="NAME", help="any optax optimiser with one learning rate (sgd)")
    add("--rate", type=number(above=0, most=10), metavar="X",
        help="its learning rate in ln(parameter) (sgd: 1, falling; else 0.1)")  # fmt: skip
    add("--sigma", type=number(above=0, most=5), default=0.7, metavar="X",
        help="width of the smoothing in ln(parameter) (0.7)")  # fmt: skip
    add("--grid", type=_grid_size, default=0, metavar="N",
        help="compare with the best of N values, start/16 to 16·start (0)")  # fmt: skip
    add("--grid-instances", type=whole(2, many), metavar="N",
        help="with --grid: instances that it is played on (100)")  # fmt: skip
    add("--fresh", type=whole(2, many), default=200, metavar="N", help="instances of the final comparison (200)")
    add("--seed", type=whole(0, 2**32 - 1, "2**32 - 1"), default=0, metavar="S",
        help="the same seed gives the same numbers (0)")  # fmt: skip
    add("--out", default="jaxbandits-tune", metavar="DIR", help=f"folder for {', '.join(FILES)} (jaxbandits-tune)")
    return made


def run(arguments: argparse.Namespace, given: list[str]) -> int:
    """Do the job; see :func:`jaxbandits.tune`. The exit code is 0, or 1 if nothing could be written."""
    policy, names = _policy(arguments)
    grid = _grid(arguments, policy, names)
    if arguments.grid_instances is not None and not arguments.grid:
        raise bad("--grid-instances", arguments.grid_instances, "left out unless --grid is given")
    optimizer = _optimizer(arguments)
    check_folder("--out", arguments.out, FILES, "tune")
    problem = _problem(arguments)
    try:
        found: Tuned = tune(
            policy,
            problem,
            wrt=names,
            key=jax.random.key(arguments.seed),
            steps=arguments.steps,
            instances=arguments.instances,
            optimizer=optimizer,
            sigma=arguments.sigma,
            grid=grid,
            grid_instances=arguments.grid_instances or 100,
            fresh=arguments.fresh,
        )
    except InputError as problem_found:
        raise as_option(problem_found, arguments) from None
    about = {"command": shlex.join(["jaxbandits", *given]), "arguments": vars(arguments)}
    try:
        written = found.save(arguments.out, about)
    except OSError as problem_found:
        complain(f"--out: could not be written ({problem_found})")
        return 1
    say("\n".join([*found.lines(), f"written: {', '.join(map(str, written))}"]))
    return 0


def _policy(arguments: argparse.Namespace) -> tuple[Policy, tuple[str, ...]]:
    kind = POLICIES[arguments.policy]
    leaves = {f.name: f for f in dataclasses.fields(kind) if not f.metadata.get("static")}  # type: ignore[arg-type]
    if not leaves:
        raise bad("--policy", arguments.policy, "one with a parameter")
    name = next(iter(leaves)) if arguments.parameter is None else arguments.parameter
    if name not in leaves:
        raise bad("--parameter", name, f"one of {', '.join(leaves)}, as {arguments.policy} has{nearest(name, leaves)}")
    given = [] if arguments.start is None else [name]
    if missing := [x.name for x in leaves.values() if x.default is dataclasses.MISSING and x.name not in given]:
        raise InputError(
            f"--start: missing; {arguments.policy} has no default for {missing[0]}, so that it must be given"
            + ("" if missing[0] == name else f", as --parameter {missing[0]}")
        )
    start: Any = leaves[name].default if arguments.start is None else arguments.start
    # six standard deviations of the smoothing, in float32
    ends = [start * math.exp(sign * 6 * arguments.sigma) for sign in (-1, 1)]
    check_range("--start", start, leaves[name].metadata)
    if leaves[name].metadata.get("integer"):
        raise bad("--parameter", name, "one that is no whole number")
    if not start > 0:
        raise bad("--start", start, "above 0, as its logarithm is moved")
    if ends[0] < _FLOAT32[0] or ends[1] > _FLOAT32[1]:
        raise bad("--start", start, f"from {_FLOAT32[0]:g} to {_FLOAT32[1]:g}, with 6 widths --sigma to either side")
    policy = kind(**{name: start})
    if arguments.temperature is None:
        return policy, (name,)
    if not isinstance(policy, IndexPolicy):
        raise bad("--temperature", arguments.temperature, f"left out: {arguments.policy} has no index to soften")
    soft = SoftIndex(policy, temperature=arguments.temperature)
    return soft, ("temperature", f"policy.{name}")


def _problem(arguments: argparse.Namespace) -> Problem:
    if arguments.arms is None:
        return _random_problem(arguments)
    for name in ("k", "family"):
        if getattr(arguments, name) is not None:
            raise bad(f"--{name}", getattr(arguments, name), "left out, as --arms says which instances there are")
    if arguments.budget is None:
        raise InputError("--budget: missing; with --arms it must be given")
    try:
        instances = read_arms(arguments.arms, **arms_options(arguments, facebook=False)).instances
    except InputError as problem:
        raise as_option(problem, arguments) from None
    if len({instance.cost_bound for instance in instances}) > 1:
        raise bad("--arms", arguments.arms, "a file whose instances share one bound of the cost")
    width = max(len(instance.arms) for instance in instances)
    most = max(arguments.instances, arguments.fresh, arguments.grid_instances)
    _check_memory("--instances", most, "bernoulli", most * width)
    bound = instances[0].cost_bound
    _check_budget(arguments.budget, bound)
    return fixed_problem(finite_arms(instances, "bernoulli"), TotalBudget(arguments.budget / bound, last_pull="counts"))


def _random_problem(arguments: argparse.Namespace) -> Problem:
    for name, value in arms_options(arguments, facebook=False).items():
        if value is not None:
            raise bad(option(name), value, "left out, as it says how to read --arms, which is not given")
    k = 10 if arguments.k is None else arguments.k
    budget = 1.5e5 if arguments.budget is None else arguments.budget
    family = arguments.family or "bernoulli"
    for name in ("instances", "fresh", "grid_instances"):
        _check_memory("--k", k, family, k * getattr(arguments, name))
    _check_budget(budget, 1.0)
    return random_problem(family, k, budget)


def _check_budget(budget: float, bound: float) -> None:
    if not 2.0**-24 <= budget / bound <= 2.0**30:
        least, most = 2.0**-24 * bound, 2.0**30 * bound
        raise bad("--budget", budget, f"from {least:.3g} to {most:.3g}")


def _check_memory(name: str, value: int, family: str, arms: int) -> None:
    """Whether so many random arms fit into half of the memory that is free."""
    wanted, free = _BYTES_PER_ARM[family] * arms, memory_left(jax.local_devices()[0])
    if wanted > free / 2:
        raise bad(name, value, f"less: {arms:,} arms at once would take {wanted / 2**30:,.1f} GiB of memory, and "
                  f"{free / 2**30:,.1f} GiB are free")  # fmt: skip


def _optimizer(arguments: argparse.Namespace) -> Any:
    import optax

    if arguments.optimizer == "sgd" and arguments.rate is None:
        return default_optimizer(arguments.steps)
    make, rate = getattr(optax, arguments.optimizer, None), 0.1 if arguments.rate is None else arguments.rate
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = make(rate)  # type: ignore[misc]
            one = np.ones(1, np.float32)
            step, _ = made.update(one, made.init(one), one)
            works = isinstance(made, optax.GradientTransformation) and np.shape(step) == (1,)
    except Exception:  # whatever a function of optax says that is no such optimiser
        works = False
    if not works:
        raise bad(
            "--optimizer",
            arguments.optimizer,
            "an optax optimiser with one learning rate, such as adam or sgd" + nearest(arguments.optimizer, _KNOWN),
        )
    return made


def _grid_size(text: str) -> int:
    size = whole(0, 10**4)(text)
    if size == 1:
        raise refused(text, "0, or at least 2")
    return size


def _grid(arguments: argparse.Namespace, policy: Policy, names: tuple[str, ...]) -> np.ndarray:
    from jaxbandits.core.parameters import get, leaves_of, path_of

    if arguments.grid == 0:
        return np.zeros((0, len(names)))
    if len(names) > 1:
        raise InputError("--grid: given with --temperature; a grid is over one parameter")
    path = path_of(policy, names[0])
    values = float(get(policy, path)) * np.geomspace(1 / 16, 16, arguments.grid)
    check_range("--grid: a value", values, leaves_of(policy)[path])
    return values
