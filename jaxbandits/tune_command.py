"""``jaxbandits tune``: tune a policy's parameter over random instances, or over those of an arms file."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxbandits.arms_file import read_arms
from jaxbandits.compare import POLICIES
from jaxbandits.constraints import TotalBudget
from jaxbandits.environments import FiniteArms
from jaxbandits.errors import InputError, bad, positive_number, whole_number
from jaxbandits.policies import SoftIndex
from jaxbandits.protocol import Policy
from jaxbandits.tune import FAMILIES, FILES, Problem, Tuned, default_optimizer, fixed_problem, random_problem, tune

_EPILOG = """\
Examples:
  jaxbandits tune --policy omega_ucb --parameter rho --family beta --k 50 --grid 16
  jaxbandits tune --policy omega_ucb --parameter rho --arms ads.csv --budget 500
"""


def add_job(jobs: Any) -> None:
    """Add the command to those of ``jaxbandits``."""
    job = jobs.add_parser(
        "tune",
        help="find a policy's parameter by gradient descent",
        description="Descend the expected regret over a distribution of instances; compare on fresh ones.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = job.add_argument
    add("--policy", required=True, metavar="NAME", help=f"one of: {', '.join(POLICIES)}")
    add("--parameter", metavar="NAME", help="what to tune (default: the policy's first)")
    add("--start", type=float, metavar="X", help="where to start (default: the policy's default)")
    add("--temperature", type=float, metavar="X", help="soften the index, and tune the temperature too, from X")
    add("--family", choices=sorted(FAMILIES), default="bernoulli", help="random instances (bernoulli)")
    add("--k", type=int, default=10, metavar="K", help="arms of a random instance (10)")
    add("--arms", metavar="FILE", help="instances of an arms file instead of random ones (means, Bernoulli pulls)")
    add("--budget", type=float, metavar="B", help="with --arms: budget of each instance, in the file's unit; "
        "else in pulls of the cheapest arm (1.5e5)")  # fmt: skip
    add("--steps", type=int, default=8, metavar="N", help="steps of the optimiser (8)")
    add("--instances", type=int, default=20, metavar="N", help="fresh instances in each step, two runs on each (20)")
    add("--optimizer", default="sgd", metavar="NAME", help="any optax optimiser with one learning rate (sgd)")
    add("--rate", type=float, metavar="X", help="its learning rate in ln(parameter) (sgd: 1, falling; else 0.1)")
    add("--sigma", type=float, default=0.7, metavar="X", help="width of the smoothing in ln(parameter) (0.7)")
    add("--grid", type=int, default=0, metavar="N", help="compare with the best of N values, start/16 to 16·start (0)")
    add("--grid-instances", type=int, default=100, metavar="N", help="instances that the grid is played on (100)")
    add("--fresh", type=int, default=200, metavar="N", help="instances of the final comparison (200)")
    add("--seed", type=int, default=0, metavar="S", help="the same seed gives the same numbers (0)")
    add("--out", default="jaxbandits-out", metavar="DIR", help=f"folder for {', '.join(FILES)} (jaxbandits-out)")


def run_tune(arguments: argparse.Namespace, given: list[str]) -> int:
    """Do the job; see :func:`jaxbandits.tune.tune`."""
    policy, names = _policy(arguments)
    problem = _problem(arguments)
    whole_number("--seed", arguments.seed, 0, 2**32 - 1, "2**32 - 1")
    try:
        Path(arguments.out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise bad("--out", arguments.out, f"a folder that can be written ({error.strerror})") from None
    found: Tuned = tune(
        policy,
        problem,
        wrt=names,
        key=jax.random.key(arguments.seed),
        steps=arguments.steps,
        instances=arguments.instances,
        optimizer=_optimizer(arguments),
        sigma=positive_number("--sigma", arguments.sigma),
        grid=_grid(arguments, policy, names),
        grid_instances=arguments.grid_instances,
        fresh=arguments.fresh,
    )
    written = found.save(arguments.out, {"command": shlex.join(["jaxbandits", *given]), "arguments": vars(arguments)})
    print("\n".join([*found.lines(), f"written: {', '.join(map(str, written))}"]), flush=True)
    return 0


def _policy(arguments: argparse.Namespace) -> tuple[Policy, tuple[str, ...]]:
    if arguments.policy not in POLICIES:
        raise bad("--policy", arguments.policy, f"one of {', '.join(POLICIES)}")
    kind = POLICIES[arguments.policy]
    leaves = [field for field in dataclasses.fields(kind) if not field.metadata.get("static")]  # type: ignore[arg-type]
    known = [field.name for field in leaves]
    if not known:
        raise bad("--policy", arguments.policy, "one with a parameter")
    name = arguments.parameter or known[0]
    if name not in known:
        raise bad("--parameter", name, f"one of {', '.join(known)}")
    given = [] if arguments.start is None else [name]
    if missing := [x.name for x in leaves if x.default is dataclasses.MISSING and x.name not in given]:
        raise bad(
            "--policy", arguments.policy, f"one that has a default for {missing[0]} (or that is given by --start)"
        )
    policy = kind() if arguments.start is None else kind(**{name: positive_number("--start", arguments.start)})
    if arguments.temperature is None:
        return policy, (name,)
    soft = SoftIndex(policy, temperature=positive_number("--temperature", arguments.temperature))
    return soft, ("temperature", f"policy.{name}")


def _problem(arguments: argparse.Namespace) -> Problem:
    if arguments.arms is None:
        budget = 1.5e5 if arguments.budget is None else positive_number("--budget", arguments.budget)
        return random_problem(arguments.family, arguments.k, budget)
    if arguments.budget is None:
        raise InputError("--budget: missing; with --arms it must be given")
    budget = positive_number("--budget", arguments.budget)
    instances = read_arms(arguments.arms).instances
    width = max(len(instance.arms) for instance in instances)
    reward, cost = np.zeros((2, len(instances), width))
    present = np.zeros((len(instances), width), bool)
    for i, instance in enumerate(instances):
        k = len(instance.arms)
        reward[i, :k], cost[i, :k], present[i, :k] = instance.scaled_mean_reward, instance.scaled_mean_cost, True
    if len({instance.cost_bound for instance in instances}) > 1:
        raise bad("--arms", arguments.arms, "a file whose instances share one bound of the cost")
    world = FiniteArms.bernoulli(reward, cost, present)
    return fixed_problem(world, TotalBudget(budget / instances[0].cost_bound, last_pull="counts"))


def _optimizer(arguments: argparse.Namespace) -> Any:
    import optax

    if arguments.optimizer == "sgd" and arguments.rate is None:
        return default_optimizer(arguments.steps)
    make, rate = getattr(optax, arguments.optimizer, None), 0.1 if arguments.rate is None else arguments.rate
    rate = positive_number("--rate", rate)
    try:
        made = make(rate)  # type: ignore[misc]
    except (TypeError, AttributeError, ValueError):
        made = None
    if not isinstance(made, optax.GradientTransformation):
        raise bad("--optimizer", arguments.optimizer, "an optax optimiser with one learning rate, such as adam or sgd")
    return made


def _grid(arguments: argparse.Namespace, policy: Policy, names: tuple[str, ...]) -> np.ndarray:
    from jaxbandits.gradients.face import get, path_of

    if arguments.grid == 0:
        return np.zeros((0, len(names)))
    if arguments.grid < 2:
        raise bad("--grid", arguments.grid, "0, or at least 2")
    if len(names) > 1:
        raise InputError("--grid: given with --temperature; a grid is over one parameter")
    start = float(get(policy, path_of(policy, names[0])))
    return start * np.geomspace(1 / 16, 16, arguments.grid)
