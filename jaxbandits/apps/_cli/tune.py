"""``jaxbandits tune``: tune a policy's parameter over random instances."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, Any

from jaxbandits.apps._cli.console import Parser, check_folder, listed, say
from jaxbandits.apps.comparison.names import NAMES
from jaxbandits.tools import refuse, whole_number

if TYPE_CHECKING:
    from jaxbandits import Policy

_EPILOG = """\
In Python, jaxbandits.tune tunes several parameters at once, and for instances of your own or of an arms file.

Example:
  jaxbandits tune --policy omega_ucb --parameter rho --family beta --k 50 --grid 16
"""
_OPTIONS = f"""\
--policy  NAME  one of: {", ".join(NAMES)}
--parameter  NAME  parameter to tune (default: the policy's first)
--start  X  initial value (default: the policy's default)
--family  bernoulli|beta|generalised-bernoulli  distribution of outcomes (bernoulli)
--k  K  arms of a random instance (10)
--budget  B  budget, in pulls of the cheapest arm (1.5e5)
--steps  N  steps of the optimiser (8)
--instances  N  new instances in each step, two runs on each (20)
--grid  N  compare with the best of N values, start/16 to 16·start, on 100 instances (no grid)
--fresh  N  new instances for the final comparison (200)
--seed  S  the same seed gives the same numbers (0)
--out  DIR  folder for numbers and pictures (jaxbandits-tune)
"""


def parser() -> Parser:
    """The parser of ``tune``."""
    counts = {"k": 10, "steps": 8, "instances": 20, "grid": 0, "fresh": 200, "seed": 0}
    more: dict[str, Any] = {name: {"type": int, "default": x} for name, x in counts.items()}
    more |= {"start": {"type": float}, "budget": {"type": float, "default": 1.5e5}}
    more |= {"policy": {"required": True}, "out": {"default": "jaxbandits-tune"}}
    more |= {"family": {"default": "bernoulli"}}
    about = "Tune a parameter by gradient descent on expected regret; compare on new instances."
    return Parser("tune", about, _OPTIONS, more, _EPILOG)


def run(arguments: argparse.Namespace, argv: list[str]) -> int:
    """Tune, see :func:`jaxbandits.tune`; the exit code is 0."""
    import jax
    import numpy as np

    from jaxbandits import tune
    from jaxbandits.tools import get
    from jaxbandits.tuning import FILES, random_problem

    for name, least in (("seed", 0), ("grid", 0), ("k", 2)):
        whole_number(f"--{name}", getattr(arguments, name), least, 2**32 - 1)
    policy, name = _policy(arguments)
    grid = float(get(policy, name)) * np.geomspace(1 / 16, 16, arguments.grid)
    check_folder(arguments.out, FILES, "tune")
    options = {name: getattr(arguments, name) for name in ("steps", "instances", "fresh")}
    problem = random_problem(arguments.family, arguments.k, arguments.budget)
    key = jax.random.key(arguments.seed)
    result = tune(policy, problem, wrt=name, key=key, grid=grid, **options)
    about = {"command": shlex.join(["jaxbandits", *argv]), "arguments": vars(arguments)}
    paths = result.save(arguments.out, about)
    say("\n".join([*result.lines(), f"written: {', '.join(map(str, paths))}"]))
    return 0


def _policy(arguments: argparse.Namespace) -> tuple[Policy, str]:
    """The policy, and which parameter is tuned."""
    from jaxbandits.apps.comparison.plan import POLICIES
    from jaxbandits.tools import leaf_fields

    policy, name = arguments.policy, arguments.parameter
    refuse("--policy", policy, policy not in POLICIES, f"one of {listed(policy, POLICIES)}")
    leaves = [field.name for field in leaf_fields(POLICIES[policy])]
    refuse("--policy", policy, not leaves, "one with a parameter")
    name = name or leaves[0]
    refuse("--parameter", name, name not in leaves, f"one of {listed(name, leaves)}")
    values = {} if arguments.start is None else {name: arguments.start}
    return POLICIES[policy](**values), name
