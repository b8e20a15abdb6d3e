"""The bytes of an arms file, read once: a regular file, or a pipe; never more than a bound, and never for ever."""

from __future__ import annotations

import contextlib
import os
import select
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from jaxbandits.core.errors import InputError, bad

MOST_BYTES = 1 << 26
"""Of an arms file, which has at most a million rows."""

_FIFO_SECONDS, _PIPE_SECONDS = 3.0, 30.0  # of silence: of a named FIFO, and of a pipe whose writer may be at work
_PIECE = 1 << 20
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def read_arms_bytes(path: str | os.PathLike[str]) -> bytes:
    """All bytes of the file, of a pipe such as ``/dev/stdin``, or of standard input (``-``).

    Raises:
        InputError: it cannot be read, is neither a regular file nor a pipe, is longer than :data:`MOST_BYTES`, or is a
            pipe into which nobody writes.
    """
    try:
        with _opened(path) as (handle, seconds):
            return _read(handle, seconds)
    except _Unusable as problem:
        raise _refused(path, str(problem)) from None
    except Exception as problem:  # of the system, or of a stranger's path
        raise _refused(path, str(getattr(problem, "strerror", None) or problem)) from None


class _Unusable(Exception):
    pass


def _refused(path: object, reason: str) -> InputError:
    given = str(path) if isinstance(path, Path) else path
    return bad("arms file", given, f"a CSV file that can be read ({reason})")


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[tuple[int, float | None]]:
    """(file descriptor, seconds of silence to bear: None for a file)"""
    if isinstance(path, (bool, int)) or not path:
        raise _Unusable("not a name")
    if path == "-":
        if sys.stdin is None:
            raise _Unusable("standard input is closed")
        handle = os.dup(sys.stdin.fileno())
    else:
        mode = os.stat(path).st_mode
        _check_kind(mode, handle=None)
        # a FIFO opened for reading alone would wait for a writer
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        mode = os.fstat(handle).st_mode
        _check_kind(mode, handle)
        named = path != "-" and os.path.exists(os.path.realpath(path))
        yield handle, None if stat.S_ISREG(mode) else _FIFO_SECONDS if named else _PIPE_SECONDS
    finally:
        os.close(handle)


def _check_kind(mode: int, handle: int | None) -> None:
    if handle is not None and os.isatty(handle):
        raise _Unusable("it is a terminal")
    for is_kind, name in _KINDS:
        if is_kind(mode):
            raise _Unusable(f"it is {name}")


def _read(handle: int, seconds: float | None) -> bytes:
    if seconds is None and os.fstat(handle).st_size > MOST_BYTES:
        raise _Unusable(f"it is longer than {MOST_BYTES:,} bytes")
    parts, total = [], 0
    while part := _piece(handle, seconds):
        parts.append(part)
        total += len(part)
        if total > MOST_BYTES:
            raise _Unusable(f"it is longer than {MOST_BYTES:,} bytes")
    return b"".join(parts)


def _piece(handle: int, seconds: float | None) -> bytes:
    """The next bytes; none at the end."""
    if seconds is None:
        return os.read(handle, _PIECE)
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([handle], [], [], left)[0]:
            with contextlib.suppress(BlockingIOError):
                return os.read(handle, _PIECE)
    raise _Unusable(f"it is a pipe, and nothing came out of it for {seconds:g} s")
