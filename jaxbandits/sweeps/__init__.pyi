from .executors import open_engine as open_engine
from .result import SweepResult as SweepResult
from .run import UnfinishedError as UnfinishedError
from .run import sweep as sweep
from .spec import Sweep as Sweep
from .store import StorageError as StorageError
