"""One run at a time on a folder: a lock that the system frees when its holder dies, and who holds it."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jaxbandits._files.files import NotRegular, odd_kind, read_regular, write_whole
from jaxbandits.core.numbers import whole_number
from jaxbandits.core.printable import brief

_LOCK, _HOLDER = "lock", "holder"
_PATIENCE = 0.3  # seconds: someone who asks for the status holds the lock for a moment


class Held(Exception):
    """Another process holds the lock; the text says which."""


@contextlib.contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder.

    Raises:
        Held: another process does.
        OSError: something else stands where the lock should be, or it cannot be written.
    """
    guard, busy = _guard(folder)
    try:
        guard.acquire(timeout=_PATIENCE)
    except busy:
        raise Held(_who(folder)) from None
    try:
        about = {"process": os.getpid(), "host": platform.node(), "since": round(time.time())}
        write_whole(folder / _HOLDER, lambda file: file.write(json.dumps(about).encode()))
        yield
    finally:
        guard.release()


def holder(folder: Path) -> str:
    """Who holds the lock, such as ``process 123 on host``; empty if nobody does.

    Raises:
        OSError: something else stands where the lock should be, or it cannot be opened.
    """
    if not (folder / _LOCK).exists():
        return ""
    guard, busy = _guard(folder)
    try:
        guard.acquire(timeout=0)
    except busy:
        return _who(folder)
    guard.release()
    return ""


def _guard(folder: Path) -> tuple[Any, type[Exception]]:
    """The lock, and what it raises while another holds it. Nothing in the file itself is ever changed or followed."""
    with warnings.catch_warnings(action="ignore"):  # without locks of the system, a file that exists is one
        from filelock import FileLock, Timeout
    if odd := odd_kind(folder / _LOCK):
        raise NotRegular(f"its {_LOCK!r} is {odd}")
    return FileLock(folder / _LOCK, thread_local=False), Timeout


def _who(folder: Path) -> str:
    try:
        about = json.loads(read_regular(folder / _HOLDER, 1 << 16))
        return f"process {whole_number('process', about['process'], 0)} on {brief(str(about['host']), 80)}"
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return "another process"
