"""``python -m jaxbandits``: the command ``jaxbandits``."""

import sys

from jaxbandits._cli.console import main

if __name__ == "__main__":
    sys.exit(main())
