"""The log of a service: one line of JSON for each event, only ever added to."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jaxbandits._files.files import NotRegular, odd_kind, open_regular, path_of
from jaxbandits.core.errors import InputError, bad, shown
from jaxbandits.core.printable import brief

try:
    import fcntl
except ImportError:  # Windows: two agents are not kept from writing one log
    fcntl = None  # type: ignore[assignment]

FORMAT = 1


class Log:
    """A file that grows by whole lines. A line is in the hands of the system when :meth:`write` returns.

    A process that is killed loses nothing that was written; a machine that loses power may, unless ``sync``.
    """

    def __init__(self, path: Any, sync: bool = False):
        place = path_of("log", path)
        if odd := odd_kind(place):
            raise bad("log", str(place), f"a file, but it is {odd}")
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        try:
            self._file = os.open(place, flags, 0o666)
        except OSError as problem:
            raise bad("log", str(place), f"a file that can be written ({problem.strerror})") from None
        self._sync = sync
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # it ends with the process, however that ends
            except OSError:
                os.close(self._file)
                raise bad("log", str(place), "a log that no other agent writes") from None

    def write(self, event: dict[str, Any]) -> None:
        """Add one line.

        Raises:
            OSError: the disk is full, or broken. Nothing has happened then, but for a torn line at the end.
        """
        line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
        while line:
            line = line[os.write(self._file, line) :]
        if self._sync:
            os.fsync(self._file)

    def close(self) -> None:
        """No more lines; a second time does nothing: the number of the file may be another one's by then."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


_BEGIN = b'{"do":"begin"'


def read(path: Any) -> Iterator[dict[str, Any]]:
    """The events of a log, in order; a last line that is torn is left out.

    Raises:
        InputError: no such file, or a line that is no event, which is named.
    """
    place, number = path_of("log", path), 0
    told = shown(str(place))
    try:
        with open_regular(place) as file:
            for line in file:
                number += 1
                if not line.endswith(b"\n"):
                    return
                event = json.loads(line)
                if not isinstance(event, dict) or not isinstance(event.get("do"), str):
                    raise ValueError("no event")
                yield event
    except (NotRegular, OSError) as problem:
        raise InputError(f"log: {told} given; it must be a log ({brief(str(problem))})") from None
    except (ValueError, RecursionError):
        raise InputError(f"log: line {number} of {told} is no event; it must be as it was written") from None


def never_begun(place: Path) -> bool:
    """Is there no log yet: no file, an empty one, or the torn first line of a process that was killed at once?"""
    if not place.exists() or not (size := place.stat().st_size):
        return True
    with open(place, "rb") as file:
        line = file.readline()
    return len(line) == size and not line.endswith(b"\n") and line[: len(_BEGIN)] == _BEGIN[: len(line)]


def mend(path: Any) -> None:
    """Cut off a torn last line, so that the next event begins a line of its own."""
    place = Path(path_of("log", path))
    with open(place, "rb+") as file:
        file.seek(0, os.SEEK_END)
        end = size = file.tell()
        while end > 0:
            step = min(end, 1 << 16)
            file.seek(end - step)
            at = file.read(step).rfind(b"\n")
            if at >= 0:
                end = end - step + at + 1
                break
            end -= step
        if end < size:
            file.truncate(end)
