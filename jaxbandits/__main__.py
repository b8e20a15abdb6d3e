"""``python -m jaxbandits``: the command ``jaxbandits``."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    try:
        from jaxbandits.apps._cli.console import main

        sys.exit(main())
    except KeyboardInterrupt:  # while jax is imported, before the command can catch it
        print("interrupted: no run finished; nothing was written", file=sys.stderr)
        sys.exit(130)
