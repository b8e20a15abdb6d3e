"""Sweeps at scale: a product of policies, settings, environments and budgets, block by block, saved so that kills lose
little; curves over a parameter and the value to recommend.
"""

from jaxbandits.sweeps.curve import Curve
from jaxbandits.sweeps.dispatch import UnfinishedError
from jaxbandits.sweeps.engines import open_engine
from jaxbandits.sweeps.plan import Forecast, forecast, make_plan
from jaxbandits.sweeps.processes import Processes
from jaxbandits.sweeps.run import finish, play_shard, sweep
from jaxbandits.sweeps.spec import Sweep
from jaxbandits.sweeps.store import StorageError
from jaxbandits.sweeps.surface import SweepResult

__all__ = [
    "Curve",
    "Forecast",
    "Processes",
    "StorageError",
    "Sweep",
    "SweepResult",
    "UnfinishedError",
    "finish",
    "forecast",
    "make_plan",
    "open_engine",
    "play_shard",
    "sweep",
]
