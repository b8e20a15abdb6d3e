"""The folder of a sweep: a manifest, finished blocks with their checksums, the results; logs apart.

    DIR/sweep.json                what the sweep is; any difference is refused by name
    DIR/blocks/00007-<sha>.npz    the exact accounts of block 7; the name holds the first half of the file's SHA-256
    DIR/result.nc, …              the results
    DIR/log/                      the only place with times in it

A file is written under another name, synced, and renamed: it is there whole, or not at all. Nothing outside ``log/``
depends on when, where or in how many goes the work was done.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import io
import json
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandits.errors import InputError, bad, shown
from jaxbandits.result import write_whole
from jaxbandits.sweeps.identity import first_difference
from jaxbandits.sweeps.plan import Plan

MANIFEST, BLOCKS, LOG = "sweep.json", "blocks", "log"
_NAME = re.compile(r"(\d{5,})-([0-9a-f]{32})\.npz")
_UNFINISHED = re.compile(r"\..+\.(json|npz|nc|txt|csv|png)\.[a-z0-9_]{8}")  # what a killed run leaves of a file
_FORMAT = 1


class StorageError(OSError):
    """A file of the sweep could not be written; what was finished before is intact."""


class Folder:
    """A sweep on disk.

    Args:
        path: the folder; made if it is missing.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self._lock = threading.Lock()  # one file at a time: workers finish blocks together

    # --- the manifest ------------------------------------------------------------------------------------------

    def open(self, plan: Plan) -> None:
        """Begin in an empty folder, or check that it was begun by this very sweep.

        Raises:
            InputError: another sweep's folder, naming the first difference; a folder with other things in it.
            StorageError: it cannot be written.
        """
        manifest = {
            "format": _FORMAT,
            "identity": plan.identity,
            "blocks": [
                {"of": b.unit.name, "lanes": int(b.lanes.size), "rounds": b.rounds, "seconds": b.seconds}
                for b in plan.blocks
            ],
        }
        place = self.path / MANIFEST
        if place.exists():
            self.check(plan)
        else:
            self._check_place()
            with self._writing(MANIFEST):
                for folder in (BLOCKS, LOG):
                    (self.path / folder).mkdir(parents=True, exist_ok=True)
                text = json.dumps(manifest, indent=1) + "\n"
                write_whole(place, lambda file: file.write(text.encode()))
        for entry in (*self.path.glob(".*"), *(self.path / BLOCKS).glob(".*")):
            if _UNFINISHED.fullmatch(entry.name):
                entry.unlink()

    def _check_place(self) -> None:
        """No file of ours goes among files of others."""
        if self.path.is_dir() and not (self.path / MANIFEST).exists():
            names = {entry.name for entry in self.path.iterdir()} - {BLOCKS, LOG}
            if others := sorted(name for name in names if not name.startswith(".")):
                raise bad("out", str(self.path), f"a new or empty folder; there is {others[0]!r} in it")

    def check(self, plan: Plan) -> None:
        """Hold the manifest against a sweep.

        Raises:
            InputError: it is missing, or another sweep's: naming the first difference.
        """
        if found := first_difference(json.loads(json.dumps(plan.identity)), self.manifest()["identity"]):
            where, now, then = found
            raise InputError(
                f"{where}: {shown(now)} given, but {shown(str(self.path))} was begun with {shown(then)}; "
                "it must be the same, or another folder"
            )

    def manifest(self) -> dict[str, Any]:
        """The manifest.

        Raises:
            InputError: there is none, or it cannot be read.
        """
        try:
            found = json.loads((self.path / MANIFEST).read_text())
            if found["format"] != _FORMAT:
                raise InputError(f"{self.path}: format {found['format']} of a sweep; it must be {_FORMAT}")
            return found
        except (OSError, ValueError, KeyError, TypeError) as problem:
            if isinstance(problem, InputError):
                raise
            raise bad("DIR", str(self.path), f"the folder of a sweep ({MANIFEST}: {problem})") from None

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep a second run out, as long as this one lives.

        Raises:
            InputError: another run works on the folder.
        """
        self._check_place()
        with self._writing(LOG):
            (self.path / LOG).mkdir(parents=True, exist_ok=True)
            file = (self.path / LOG / "lock").open("w")
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise bad("out", str(self.path), "a folder on which no other run works now") from None
            yield

    def in_use(self) -> bool:
        """Does a run work on it now?"""
        try:
            with (self.path / LOG / "lock").open("r") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as problem:
            return problem.errno in (errno.EWOULDBLOCK, errno.EACCES)
        return False

    # --- blocks ------------------------------------------------------------------------------------------------

    def put(self, number: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Save a finished block, once.

        Raises:
            StorageError: it could not be written.
        """
        content = encode(arrays)
        with self._lock, self._writing(f"block {number}"):
            write_whole(self.path / BLOCKS / block_name(number, content), lambda file: file.write(content))

    def get(self, number: int) -> dict[str, np.ndarray] | None:
        """A finished block, or None if there is none whose checksum is right."""
        for path in self._files().get(number, []):
            content = path.read_bytes()
            if path.name == block_name(number, content):
                return decode(content)
        return None

    def listed(self) -> frozenset[int]:
        """Numbers of the blocks that are there, by their names alone."""
        return frozenset(self._files())

    def sound(self, remove: bool = False) -> tuple[frozenset[int], list[Path]]:
        """Numbers of the blocks whose checksums are right, and the files whose are not (to be removed or not)."""
        good, broken = set(), []
        for number, paths in self._files().items():
            for path in paths:
                if path.name == block_name(number, path.read_bytes()):
                    good.add(number)
                else:
                    broken.append(path)
                    if remove:
                        path.unlink()
        return frozenset(good), broken

    def _files(self) -> dict[int, list[Path]]:
        found: dict[int, list[Path]] = {}
        for path in sorted((self.path / BLOCKS).glob("*.npz")):
            if match := _NAME.fullmatch(path.name):
                found.setdefault(int(match[1]), []).append(path)
        return found

    # --- results and logs --------------------------------------------------------------------------------------

    def write(self, name: str, content: bytes) -> Path:
        """Put a file of results in place.

        Raises:
            StorageError: it could not be written.
        """
        with self._writing(name):
            write_whole(self.path / name, lambda file: file.write(content))
        return self.path / name

    @contextlib.contextmanager
    def _writing(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            full = problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            reason = "no space left" if full else problem.strerror or str(problem)
            count = len(self.listed())
            raise StorageError(
                problem.errno,
                f"{what} could not be written to {self.path}: {reason}; {count} finished block{'s' * (count != 1)} "
                f"{'is' if count == 1 else 'are'} intact, the same command continues",
            ) from problem


class Log:
    """Notes of one run, one JSON object a line, with times. A disk that is full stops no run because of its log."""

    def __init__(self, folder: Folder, process: int = 0):
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        self._path = folder.path / LOG / f"{stamp}-{process}-{os.getpid()}.jsonl"

    def note(self, event: str, **values: Any) -> None:
        """Add a line."""
        line = json.dumps({"time": round(time.time(), 3), "event": event, **values})
        with contextlib.suppress(OSError), self._path.open("a") as file:
            file.write(line + "\n")


def read_logs(folder: Folder) -> list[list[dict[str, Any]]]:
    """The notes of every run, oldest first; a line that was cut off is left out."""
    runs = []
    for path in sorted((folder.path / LOG).glob("*.jsonl")):
        notes = []
        for line in path.read_text().splitlines():
            with contextlib.suppress(ValueError):
                notes.append(json.loads(line))
        runs.append(notes)
    return runs


def encode(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays as the bytes of an ``.npz`` file: uncompressed, so that they depend on nothing but the arrays."""
    file = io.BytesIO()
    np.savez(file, **dict(arrays))  # type: ignore[arg-type]
    return file.getvalue()


def decode(content: bytes) -> dict[str, np.ndarray]:
    """What :func:`encode` was given."""
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def block_name(number: int, content: bytes) -> str:
    """The file name of a block, which holds its checksum."""
    return f"{number:05d}-{hashlib.sha256(content).hexdigest()[:32]}.npz"
