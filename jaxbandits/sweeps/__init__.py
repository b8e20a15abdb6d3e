"""Sweeps at scale: a product of policies, settings, environments and budgets, block by block, saved so that kills lose
little; curves over a parameter and the value to recommend.
"""

from jaxbandits.sweeps.plan import Forecast, forecast, make_plan
from jaxbandits.sweeps.run import sweep
from jaxbandits.sweeps.spec import Sweep
from jaxbandits.sweeps.store import StorageError
from jaxbandits.sweeps.surface import Curve, SweepResult

__all__ = [
    "Curve",
    "Forecast",
    "StorageError",
    "Sweep",
    "SweepResult",
    "forecast",
    "make_plan",
    "sweep",
]
