import pathlib

from ._engine.setup import mark_shares as mark_shares
from ._files import finished as finished
from ._files import of_rows as of_rows
from ._files import write_whole as write_whole
from ._names import nearest as nearest
from ._plots import empty_figure as empty_figure
from ._plots import encoded as encoded
from ._plots import label_grid as label_grid
from ._plots import line_chart as line_chart
from ._plots import nth_look as nth_look
from ._plots import set_key as set_key
from ._progress import Progress as Progress
from ._progress import usual_progress as usual_progress
from ._tables import Table as Table
from ._tables import count_of as count_of
from ._tables import line as line
from .core.checks import brief as brief
from .core.checks import door as door
from .core.checks import number as number
from .core.checks import positive_number as positive_number
from .core.checks import processor as processor
from .core.checks import quoted as quoted
from .core.checks import refuse as refuse
from .core.checks import refuse_misfit as refuse_misfit
from .core.checks import whole_number as whole_number
from .core.fingerprint import is_users as is_users
from .core.pytrees import leaf_fields as leaf_fields
from .core.settings import Settings as Settings
from .core.settings import get as get

def keep_programs_in(folder: pathlib.Path) -> None: ...
