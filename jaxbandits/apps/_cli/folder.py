"""The folder of a command's results."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from jaxbandits.core import bad
from jaxbandits.tools import quoted


def check_folder(argument: str, out: str, files: Sequence[str], job: str) -> None:
    """Find out before the work whether the files can be written, and replace nothing but results of
    the same job.

    ``files`` are those that the command ``job`` will write, ``run.json`` among them; the folder
    need not be there yet.
    """
    if not out.strip():
        raise bad(argument, out, "the name of a folder")
    nearest = Path(out)
    try:
        while not nearest.exists():
            nearest = nearest.parent
        tempfile.TemporaryFile(dir=nearest).close()
    except OSError as problem:
        reason = f"{quoted(str(nearest))}: {problem.strerror or problem}"
        raise bad(argument, out, f"a folder that can be written ({reason})") from None
    existing = [name for name in files if (Path(out) / name).exists()]
    try:
        writer = str(json.loads((Path(out) / "run.json").read_bytes())["command"]).split()[1]
    except (OSError, ValueError, LookupError, TypeError):  # none of ours
        writer = ""
    if existing and writer != job:
        names = ", ".join(existing)
        must = f"another folder: {names} in it would be replaced, not written by this job"
        raise bad(argument, out, must)
