"""jaxbandits: a vectorised JAX simulator for bandits whose arms cost something."""

from jaxbandits import interrupt as interrupt  # first, so that Ctrl-C is quiet during the imports that follow

# isort: split
from jaxbandits import environments as environments
from jaxbandits import gradients as gradients
from jaxbandits import live as live
from jaxbandits import oracles as oracles
from jaxbandits import policies as policies
from jaxbandits import testing as testing
from jaxbandits.constraints import AverageCost as AverageCost
from jaxbandits.constraints import Horizon as Horizon
from jaxbandits.constraints import TotalBudget as TotalBudget
from jaxbandits.errors import InputError as InputError
from jaxbandits.protocol import Constraint as Constraint
from jaxbandits.protocol import Environment as Environment
from jaxbandits.protocol import Feedback as Feedback
from jaxbandits.protocol import Observation as Observation
from jaxbandits.protocol import Outcome as Outcome
from jaxbandits.protocol import Policy as Policy
from jaxbandits.protocol import Status as Status
from jaxbandits.protocol import View as View
from jaxbandits.protocol import leaf as leaf
from jaxbandits.protocol import pytree as pytree
from jaxbandits.protocol import static as static
from jaxbandits.rerun import rerun_larger as rerun_larger
from jaxbandits.result import Result as Result
from jaxbandits.simulate import grid as grid
from jaxbandits.simulate import simulate as simulate
from jaxbandits.sweeps import Sweep as Sweep
from jaxbandits.sweeps import sweep as sweep

__version__ = "0.1.0"
