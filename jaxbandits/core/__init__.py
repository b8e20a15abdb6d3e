"""What every room stands on: exact ticks, addressed draws, arm statistics, specs, and the protocol of the three nouns.

Authors of policies, environments and constraints import from here.
"""

from jaxbandits.core import arm_statistics, streams, ticks
from jaxbandits.core.arm_statistics import Arms, ArmStatistics
from jaxbandits.core.checks import InputError, bad
from jaxbandits.core.protocol import (
    Constraint,
    Environment,
    Feedback,
    Ledger,
    Observation,
    Outcome,
    Policy,
    Status,
    View,
    post,
)
from jaxbandits.core.pytrees import leaf, pytree, select_tree, static
from jaxbandits.core.settings import grid
from jaxbandits.core.specs import CensoredFeedback, CensoredSpec, ContinuumSpec, FiniteSpec, PairAction, RevealedSpec
from jaxbandits.core.streams import Domain, Role
from jaxbandits.core.ticks import Total

__all__ = [
    "ArmStatistics",
    "Arms",
    "CensoredFeedback",
    "CensoredSpec",
    "Constraint",
    "ContinuumSpec",
    "Domain",
    "Environment",
    "Feedback",
    "FiniteSpec",
    "InputError",
    "Ledger",
    "Observation",
    "Outcome",
    "PairAction",
    "Policy",
    "RevealedSpec",
    "Role",
    "Status",
    "Total",
    "View",
    "arm_statistics",
    "bad",
    "grid",
    "leaf",
    "post",
    "pytree",
    "select_tree",
    "static",
    "streams",
    "ticks",
]
