"""Sweeps at scale: a declarative product of policies, settings, environments and budgets, kill-safe.

spec.py       the declarative value             run.py       blocks through the pool, saved one by one
plan.py       blocks, and what they will take    processes.py several processes, through jax.distributed
identity.py   what a sweep is, as JSON           surface.py   the dataset, curves, the recommended value
store.py      the folder                         report.py, pictures.py, command.py
blocks.py     what a block holds                 lock.py, log.py      one run at a time, and its notes
spec_file.py  a spec's file, which is executed
"""

from jaxbandits.sweeps.plan import Forecast as Forecast
from jaxbandits.sweeps.plan import forecast as forecast
from jaxbandits.sweeps.plan import make_plan as make_plan
from jaxbandits.sweeps.run import sweep as sweep
from jaxbandits.sweeps.spec import Sweep as Sweep
from jaxbandits.sweeps.store import StorageError as StorageError
from jaxbandits.sweeps.surface import Curve as Curve
from jaxbandits.sweeps.surface import SweepResult as SweepResult
