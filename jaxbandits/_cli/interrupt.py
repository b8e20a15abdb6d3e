"""Ctrl-C while the command's imports run. Importing this module is all there is to do.

The imports take seconds, nothing is written during them, and a KeyboardInterrupt among them would end in a traceback
of somebody else's library. So while the process is the command ``jaxbandits``, Ctrl-C ends it at once; :func:`ready`
gives Ctrl-C back to Python. In every other process, nothing is done.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType


def _quit(signum: int, frame: FrameType | None) -> None:
    os.write(2, b"interrupted: no run finished; nothing was written\n")
    os._exit(130)


def _is_command() -> bool:
    """Was Python started as ``jaxbandits`` or ``python -m jaxbandits``?"""
    program = os.path.basename(sys.argv[0]) if sys.argv else ""
    if program == "-m":  # as long as runpy looks for the module
        asked = sys.orig_argv[sys.orig_argv.index("-m") + 1 :] if "-m" in sys.orig_argv else []
        return asked[:1] in (["jaxbandits"], ["jaxbandits._cli.console"])
    return program in ("jaxbandits", "jaxbandits.exe", "jaxbandits-script.py")


def ready() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt, as usual."""
    if signal.getsignal(signal.SIGINT) is _quit:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _quit)
