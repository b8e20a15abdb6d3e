"""jaxbandits: a vectorised JAX simulator for bandits whose arms cost something.

Names are imported when they are first used: ``__init__.pyi`` lists them, for Python and for type
checkers alike.
"""

from __future__ import annotations

import os
import sys
import warnings

from ._names import attach

__version__ = "1.1.0"
__getattr__, _public_names, __all__ = attach(__name__, __file__)


def __dir__() -> list[str]:
    """The public names, for tab completion, without submodules that happen to be loaded."""
    return sorted([*__all__, "__version__"])


# Another project's distribution has this name, too. Its only version is 1.0.0, and ours is never
# that.
for _folder in sys.path:
    if os.path.isdir(os.path.join(_folder, "jaxbandits-1.0.0.dist-info")):
        warnings.warn(
            f"another project's jaxbandits 1.0.0 is installed in {_folder}; this is jaxbandits {__version__}, from "
            f"{os.path.dirname(__file__)}: pip uninstall jaxbandits, and install the one that you want again",
            stacklevel=2,
        )
