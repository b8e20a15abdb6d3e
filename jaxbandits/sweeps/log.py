"""The notes of the runs of a sweep: the only place with times in it."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jaxbandits._files.files import append_line, read_regular, reason_of
from jaxbandits.core.errors import bad

LOG = "log"
_MOST_BYTES = 1 << 28  # of one log

Note = Callable[..., None]  # note(event, **values)


class Log:
    """Notes of one run, one JSON object a line, with times. A disk that is full stops no run because of its log."""

    def __init__(self, folder: Path):
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        self._path = folder / LOG / f"{stamp}-0-{os.getpid()}.jsonl"

    def note(self, event: str, **values: Any) -> None:
        """Add a line."""
        text = json.dumps({"time": round(time.time(), 3), "event": event, **values})
        with contextlib.suppress(OSError):
            append_line(self._path, text)


def no_note(event: str, **values: Any) -> None:
    """For a run without a folder."""


def read_logs(folder: Path) -> list[list[dict[str, Any]]]:
    """The notes of every run, oldest first; what is no note (a line that was cut off) is left out."""
    runs = []
    for path in sorted((folder / LOG).glob("*.jsonl")):
        notes = []
        try:
            text = read_regular(path, _MOST_BYTES).decode(errors="replace")
        except OSError as problem:
            raise bad("DIR", str(path), f"a log that can be read ({reason_of(problem)})") from None
        for entry in text.splitlines():
            with contextlib.suppress(ValueError, RecursionError):
                note = json.loads(entry)
                if isinstance(note, dict) and isinstance(note.get("event"), str) and is_number(note.get("time")):
                    notes.append(note)
        runs.append(notes)
    return runs


def is_number(value: Any) -> bool:
    """Is it a number that can be reckoned with?"""
    return type(value) in (int, float) and abs(value) < 1e300
