"""Is a folder fit to be written to? Known before the work begins, and nothing is left behind."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from jaxbandits.core.errors import bad, shown

_RECORD = "run.json"
_MOST_BYTES = 1 << 26
_LONGEST_NAME = 255  # bytes, on every usual file system


def check_folder(argument: str, out: str, files: Sequence[str], job: str) -> None:
    """Find out whether the files can be written, and whether they replace nothing but results of the same job.

    Args:
        argument: its name, for messages.
        out: the folder; it need not be there, nor its parents.
        files: that will be written, ``run.json`` among them.
        job: the command that writes them, such as ``compare``.

    Raises:
        InputError: the folder cannot be made or written, or holds files of these names that are somebody else's.
    """
    if not out.strip():
        raise bad(argument, out, "the name of a folder")
    nearest = Path(out)
    try:
        if any(len(os.fsencode(part)) > _LONGEST_NAME for part in nearest.parts):
            raise ValueError(f"a name of over {_LONGEST_NAME} bytes")
        while not _is_there(nearest):
            nearest = nearest.parent
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise bad(argument, out, f"a folder that can be written ({shown(str(nearest))}: {reason})") from None
    there = [name for name in files if os.path.lexists(Path(out) / name)]
    for name in there:
        if not (Path(out) / name).is_file():
            raise bad(argument, out, f"a folder that can be written ({name} in it is no file)")
    writer = _writer(Path(out) / _RECORD)
    if there and writer != job:
        of = f"`jaxbandits {writer}`" if writer else "somebody else"
        raise bad(argument, out, f"another folder: {', '.join(there)} in it would be replaced, and is of {of}")


def _is_there(path: Path) -> bool:
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    return True


def _writer(record: Path) -> str | None:
    """The job of whose results a ``run.json`` tells; None if it is none of ours."""
    try:
        if record.stat().st_size > _MOST_BYTES:
            return None
        told = json.loads(record.read_bytes())
        words = str(told["command"]).split()
        return words[1] if words[0] == "jaxbandits" else None
    except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None
