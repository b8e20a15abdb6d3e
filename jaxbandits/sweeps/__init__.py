"""Sweeps at scale: a declarative product of policies, settings, environments and budgets, kill-safe.

spec.py       the declarative value             run.py       blocks through the pool, saved one by one
plan.py       blocks, and what they will take    processes.py several processes, through jax.distributed
identity.py   what a sweep is, as JSON           surface.py   the dataset, curves, the recommended value
store.py      the folder                         report.py, pictures.py, command.py
blocks.py     what a block holds                 lock.py, log.py      one run at a time, and its notes
spec_file.py  a spec's file, which is executed
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
