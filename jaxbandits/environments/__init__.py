"""Worlds: what a pull brings and costs."""

from jaxbandits.core.specs import CensoredSpec, ContinuumSpec, DelayedSpec, FiniteSpec, RevealedSpec, Spec
from jaxbandits.environments import drift, noise
from jaxbandits.environments.censored import (
    CensoredArms,
    Constant,
    FastTrack,
    Linear,
    RevealConsumption,
    copula_arms,
    g1,
    row_arms,
)
from jaxbandits.environments.continuum import Continuum, LoggedAuctions, cost_valley, reward_hill
from jaxbandits.environments.delayed import Batched, Delayed, DelayLaw, FixedDelay, TableDelay
from jaxbandits.environments.drift import Piecewise
from jaxbandits.environments.finite import (
    AddressedArms,
    FiniteArms,
    WithNullArm,
    random_bernoulli,
    random_beta,
    random_generalised_bernoulli,
)
from jaxbandits.environments.reservoir import Reservoir, bernoulli_outcome, uniform_outcome
from jaxbandits.environments.table import DrawnRows, RequestTable, RowOrder, RowsInOrder, ShuffledRows

__all__ = [
    "AddressedArms",
    "Batched",
    "CensoredArms",
    "CensoredSpec",
    "Constant",
    "Continuum",
    "ContinuumSpec",
    "DelayLaw",
    "Delayed",
    "DelayedSpec",
    "DrawnRows",
    "FastTrack",
    "FiniteArms",
    "FiniteSpec",
    "FixedDelay",
    "Linear",
    "LoggedAuctions",
    "Piecewise",
    "RequestTable",
    "Reservoir",
    "RevealConsumption",
    "RevealedSpec",
    "RowOrder",
    "RowsInOrder",
    "ShuffledRows",
    "Spec",
    "TableDelay",
    "WithNullArm",
    "bernoulli_outcome",
    "copula_arms",
    "cost_valley",
    "drift",
    "g1",
    "noise",
    "random_bernoulli",
    "random_beta",
    "random_generalised_bernoulli",
    "reward_hill",
    "row_arms",
    "uniform_outcome",
]
