"""``python -m jaxbandits``: the command ``jaxbandits``."""

import sys

from jaxbandits.cli import main

if __name__ == "__main__":
    sys.exit(main())
