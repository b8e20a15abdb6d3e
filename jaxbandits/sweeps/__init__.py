"""Sweeps at scale: a product of policies, settings, environments and budgets, block by block, saved so that kills lose
little; curves over a parameter and the value to recommend.
"""

from jaxbandits.sweeps.executors import Processes, open_engine
from jaxbandits.sweeps.plan import Forecast, forecast, make_plan
from jaxbandits.sweeps.result import Curve, SweepResult
from jaxbandits.sweeps.run import UnfinishedError, sweep
from jaxbandits.sweeps.spec import Sweep
from jaxbandits.sweeps.store import StorageError

__all__ = [
    "Curve",
    "Forecast",
    "Processes",
    "StorageError",
    "Sweep",
    "SweepResult",
    "UnfinishedError",
    "forecast",
    "make_plan",
    "open_engine",
    "sweep",
]
