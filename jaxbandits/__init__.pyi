from . import (
    comparison as comparison,
)
from . import (
    constraints as constraints,
)
from . import (
    core as core,
)
from . import (
    environments as environments,
)
from . import (
    gradients as gradients,
)
from . import (
    interfaces as interfaces,
)
from . import (
    live as live,
)
from . import (
    oracles as oracles,
)
from . import (
    policies as policies,
)
from . import (
    statistics as statistics,
)
from . import (
    sweeps as sweeps,
)
from . import (
    testing as testing,
)
from . import (
    tuning as tuning,
)
from .citing import cite as cite
from .comparison.running import compare as compare
from .constraints import (
    AverageCost as AverageCost,
)
from .constraints import (
    Horizon as Horizon,
)
from .constraints import (
    Renewing as Renewing,
)
from .constraints import (
    TotalBudget as TotalBudget,
)
from .core import streams as streams
from .core import ticks as ticks
from .core.checks import InputError as InputError
from .core.protocol import Constraint as Constraint
from .core.protocol import Environment as Environment
from .core.protocol import Feedback as Feedback
from .core.protocol import Ledger as Ledger
from .core.protocol import Observation as Observation
from .core.protocol import Outcome as Outcome
from .core.protocol import Policy as Policy
from .core.protocol import Status as Status
from .core.protocol import View as View
from .core.protocol import post as post
from .core.pytrees import leaf as leaf
from .core.pytrees import pytree as pytree
from .core.pytrees import static as static
from .core.settings import grid as grid
from .result import Result as Result
from .simulation import rerun_larger as rerun_larger
from .simulation import simulate as simulate
from .sweeps.run import sweep as sweep
from .sweeps.spec import Sweep as Sweep
from .trajectory import Trajectory as Trajectory
from .trajectory import rollout as rollout
from .tuning import tune as tune

__version__: str
