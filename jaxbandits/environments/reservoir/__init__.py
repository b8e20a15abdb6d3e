"""As many arms as one asks for, drawn from a reservoir."""

from jaxbandits.environments.reservoir.arms import Reservoir
from jaxbandits.environments.reservoir.laws import bernoulli_outcome, uniform_outcome

__all__ = [
    "Reservoir",
    "bernoulli_outcome",
    "uniform_outcome",
]
