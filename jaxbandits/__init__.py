"""jaxbandits: a vectorised JAX simulator for bandits whose arms cost something."""

from jaxbandits._cli import interrupt as interrupt

# isort: split
from jaxbandits import (
    comparison,
    constraints,
    core,
    environments,
    gradients,
    interfaces,
    live,
    oracles,
    policies,
    statistics,
    sweeps,
    testing,
    tuning,
)
from jaxbandits.citing import cite
from jaxbandits.comparison.running import compare
from jaxbandits.constraints import AverageCost, Horizon, TotalBudget
from jaxbandits.core import streams, ticks
from jaxbandits.core.errors import InputError
from jaxbandits.core.ledger import Outcome, post
from jaxbandits.core.protocol import Constraint, Environment, Feedback, Observation, Policy, Status, View
from jaxbandits.core.pytrees import leaf, pytree, static
from jaxbandits.core.settings import grid
from jaxbandits.renewing import Renewing
from jaxbandits.result import Result
from jaxbandits.simulation import rerun_larger, simulate
from jaxbandits.sweeps.run import sweep
from jaxbandits.sweeps.spec import Sweep
from jaxbandits.trajectory import Trajectory, rollout
from jaxbandits.tuning.search import tune

__all__ = [
    "AverageCost",
    "Constraint",
    "Environment",
    "Feedback",
    "Horizon",
    "InputError",
    "Observation",
    "Outcome",
    "Policy",
    "Renewing",
    "Result",
    "Status",
    "Sweep",
    "TotalBudget",
    "Trajectory",
    "View",
    "cite",
    "compare",
    "comparison",
    "constraints",
    "core",
    "environments",
    "gradients",
    "grid",
    "interfaces",
    "leaf",
    "live",
    "oracles",
    "policies",
    "post",
    "pytree",
    "rerun_larger",
    "rollout",
    "simulate",
    "static",
    "statistics",
    "streams",
    "sweep",
    "sweeps",
    "testing",
    "ticks",
    "tune",
    "tuning",
]

__version__ = "0.2.0"


def __dir__() -> list[str]:
    """What is meant for users, for completion; submodules that happen to be loaded are not."""
    return sorted([*__all__, "__version__"])
