"""The folder of a sweep: a manifest, finished blocks with checksums, results, and logs.

    DIR/sweep.json                what the sweep is; any difference is refused by name
    DIR/blocks/00007-<sha>.npz    the exact accounts of block 7; the name holds the first half of the file's SHA-256
    DIR/result.nc, …              the results
    DIR/log/                      the only place with times in it

A file is written under another name, synced, and renamed: it is there whole, or not at all. Nothing outside ``log/``
depends on when, where or in how many goes the work was done.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from jaxbandits._files import UNFINISHED, path_of, read_arrays, reason_of, write_arrays, write_whole
from jaxbandits.core.checks import InputError, bad, quoted
from jaxbandits.sweeps.spec import SweepPlan, first_difference

MANIFEST, BLOCKS, LOG = "sweep.json", "blocks", "log"
_FORMAT = 1
_NAME = re.compile(r"([0-9]{5,})-[0-9a-f]{32}\.npz")
_AT_A_TIME = 8  # files that are synced: 100 small ones took 5 ms each one by one, and 0.8 by fours
_PATIENCE = 1.0  # seconds: `jaxbandits status` holds the lock for a moment

Note = Callable[..., None]  # note(event, **values)


class StorageError(OSError):
    """A file of the sweep could not be written; finished blocks are intact."""


def encode(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The bytes of a block: uncompressed, so that they depend on nothing but the arrays."""
    file = io.BytesIO()
    write_arrays(file, arrays)
    return file.getvalue()


def decode(content: bytes) -> dict[str, np.ndarray]:
    """The arrays of a block, from the bytes that :func:`encode` made."""
    return read_arrays(io.BytesIO(content))


def block_name(number: int, content: bytes) -> str:
    """The file name of a block, which holds its checksum."""
    return f"{number:05d}-{hashlib.sha256(content).hexdigest()[:32]}.npz"


class Folder:
    """A sweep on disk; InputError if it cannot be read, StorageError if it cannot be written."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = path_of("out", path)

    def open(self, plan: SweepPlan) -> None:
        """Begin in an empty folder, or check that the folder is this sweep's."""
        if self.has_sweep():
            self.check(plan)
        else:
            names = ("of", "lanes", "rounds", "seconds")
            parts = ((x.unit.name, int(x.lanes.size), x.rounds, x.seconds) for x in plan.blocks)
            blocks = [dict(zip(names, part, strict=True)) for part in parts]
            about = {"format": _FORMAT, "identity": plan.identity, "blocks": blocks}
            self.write(MANIFEST, f"{json.dumps(about, indent=1)}\n".encode())
        with self._writing(BLOCKS):
            (self.path / BLOCKS).mkdir(exist_ok=True)
            for entry in (*self.path.glob(".*"), *(self.path / BLOCKS).glob(".*")):
                # What a run leaves that was killed while it wrote
                if UNFINISHED.fullmatch(entry.name):
                    entry.unlink()

    def has_sweep(self) -> bool:
        """Whether the folder holds a sweep; InputError for other files or only blocks."""
        if self.path.exists() and not self.path.is_dir():
            raise bad("out", str(self.path), "a folder; it is a file")
        if (self.path / MANIFEST).exists():
            return True
        names = (path.name for path in self.path.glob("*"))
        files = [name for name in names if name not in (BLOCKS, LOG) and name[0] != "."]
        files += [f"{BLOCKS}/{path.name}" for path in (self.path / BLOCKS).glob("*.npz")]
        if files:
            must = f"a new or empty folder; there is {min(files)!r} in it"
            raise bad("out", str(self.path), must)
        return False

    def check(self, plan: SweepPlan) -> None:
        """Compare the manifest with a sweep; the error names the first difference."""
        identity = json.loads(json.dumps(plan.identity))
        if difference := first_difference(identity, self.manifest()["identity"]):
            place, now, then = difference
            origin = f"{quoted(str(self.path))} was begun with {quoted(then)}"
            must = "it must be the same, or another folder"
            raise InputError(f"{place}: {quoted(now)} given, but {origin}; {must}")

    def manifest(self) -> dict[str, Any]:
        """``identity``, what the sweep is, and ``blocks``, its division."""
        try:
            manifest = json.loads((self.path / MANIFEST).read_bytes())
            if manifest["format"] == _FORMAT:
                return manifest
            reason = f"it has no format {_FORMAT}"
        except (OSError, ValueError, KeyError, TypeError) as problem:
            reason = f"{type(problem).__name__}: {problem}"
        raise bad("DIR", str(self.path), f"the folder of a sweep ({MANIFEST}: {reason})")

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Exclude a second run while this process lives."""
        self.has_sweep()
        lock = FileLock(self.path / LOG / "lock")
        try:
            (self.path / LOG).mkdir(parents=True, exist_ok=True)
            held = lock.acquire(timeout=_PATIENCE)
        except Timeout:
            raise bad("out", str(self.path), "a folder that no other run is using") from None
        except OSError as problem:
            may_be = f"a folder that can be written ({reason_of(problem)})"
            raise bad("out", str(self.path), may_be) from None
        with held:
            yield

    def in_use(self) -> bool:
        """Whether a run is using this folder now."""
        if not (self.path / LOG).is_dir():
            return False
        try:
            with FileLock(self.path / LOG / "lock").acquire(timeout=0):
                return False
        except OSError as problem:  # else it is the folder of somebody who lets nobody write
            return isinstance(problem, Timeout)

    def put(self, blocks: Mapping[int, bytes]) -> None:
        """Save finished blocks, by number, together, since that syncs as fast as one."""
        with ThreadPoolExecutor(_AT_A_TIME) as threads:
            saving = {block[0]: threads.submit(self._put, *block) for block in blocks.items()}
        for number, done in saving.items():  # whatever fails, the others are there
            with self._writing(f"block {number}"):
                done.result()

    def _put(self, number: int, content: bytes) -> None:
        path = self.path / BLOCKS / block_name(number, content)
        write_whole(path, lambda file: file.write(content))

    def get(self, number: int, files: Mapping[int, Path] | None = None) -> bytes:
        """A finished block's bytes, if its checksum is right; ``files`` saves listing them."""
        path = (self.listed() if files is None else files).get(number)
        if path is None or path.name != block_name(number, content := path.read_bytes()):
            again = "running the same sweep again recomputes it"
            raise InputError(f"block {number}: missing or damaged; {again}")
        return content

    def sound(self) -> tuple[frozenset[int], list[Path]]:
        """(numbers of blocks whose checksum is right, files of those whose checksum is not)."""
        files = self.listed()
        named = {number: block_name(number, path.read_bytes()) for number, path in files.items()}
        good = frozenset(number for number, path in files.items() if path.name == named[number])
        return good, [path for number, path in files.items() if number not in good]

    def listed(self) -> dict[int, Path]:
        """The files of blocks, by their names alone."""
        paths = sorted((self.path / BLOCKS).glob("*.npz"))
        return {int(match[1]): x for x in paths if (match := _NAME.fullmatch(x.name))}

    def write(self, name: str, content: bytes) -> None:
        """Write a file, whole or not at all."""
        with self._writing(name):
            write_whole(self.path / name, lambda file: file.write(content))

    @contextlib.contextmanager
    def _writing(self, subject: str) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            failed = f"{subject} could not be written to {self.path}: {reason_of(problem)}"
            intact = f"{len(self.listed())} finished blocks are intact, the same command continues"
            raise StorageError(problem.errno, f"{failed}; {intact}") from problem

    def log(self) -> Note:
        """A log of a run's events, one JSON object per line, with times; ignores a full disk."""
        began = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        path = self.path / LOG / f"{began}-0-{os.getpid()}.jsonl"

        def note(event: str, **values: Any) -> None:
            text = json.dumps({"time": round(time.time(), 3), "event": event, **values})
            with contextlib.suppress(OSError), path.open("a", encoding="utf-8") as file:
                file.write(f"{text}\n")

        return note


def read_logs(folder: Path) -> list[list[dict[str, Any]]]:
    """The logs of all runs in a sweep's folder, oldest first, without incomplete lines."""
    runs = []
    for path in sorted((folder / LOG).glob("*.jsonl")):
        notes = []
        for entry in path.read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                notes.append(json.loads(entry))
        runs.append(notes)
    return runs
