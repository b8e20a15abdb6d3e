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
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandits._files.files import UNFINISHED, NotRegular, odd_kind, path_of, read_regular, reason_of, write_whole
from jaxbandits._files.npz import NotArrays
from jaxbandits.core.errors import InputError, bad, shown
from jaxbandits.core.printable import brief
from jaxbandits.sweeps import lock
from jaxbandits.sweeps.blocks import Arrays, Content, block_name, decode, misfit
from jaxbandits.sweeps.identity import first_difference
from jaxbandits.sweeps.log import LOG
from jaxbandits.sweeps.manifest import manifest_of, odd_manifest
from jaxbandits.sweeps.plan import SweepPlan

MANIFEST, BLOCKS = "sweep.json", "blocks"
_NAME = re.compile(r"([0-9]{5,})-([0-9a-f]{32})\.npz")
_REPORT = re.compile(r"result\.nc|summary\.txt|sensitivity\.csv|(sensitivity|heatmap)_.*\.png|sweep\.json")
_LEFT = {BLOCKS: UNFINISHED, LOG: re.compile(rf"lock.*|holder|{UNFINISHED.pattern}")}  # by a run that was killed early
_MOST_BYTES = 1 << 33  # of a file: more is none of ours
_MOST_TEXT = 1 << 28


class StorageError(OSError):
    """A file of the sweep could not be written; what was finished before is intact."""


class Folder:
    """A sweep on disk.

    Args:
        path: the folder; made if it is missing.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = path_of("out", path)
        self._misfit: Callable[[int, Arrays], str] = lambda number, arrays: ""
        self._count: float = math.inf

    # --- the manifest ------------------------------------------------------------------------------------------

    def open(self, plan: SweepPlan) -> None:
        """Begin in an empty folder, or check that it was begun by this very sweep.

        Raises:
            InputError: another sweep's folder, naming the first difference; a folder with other things in it.
            StorageError: it cannot be written.
        """
        self._check_place()
        place = self.path / MANIFEST
        if place.exists():
            self.check(plan)
        with self._writing(MANIFEST):
            for folder in (BLOCKS, LOG):
                (self.path / folder).mkdir(parents=True, exist_ok=True)
            if not place.exists():
                text = json.dumps(manifest_of(plan), indent=1) + "\n"
                write_whole(place, lambda file: file.write(text.encode()))
        self._misfit, self._count = Content(plan).misfit, len(plan.blocks)
        for entry in (*self.path.glob(".*"), *(self.path / BLOCKS).glob(".*")):
            if UNFINISHED.fullmatch(entry.name) and not odd_kind(entry):
                entry.unlink()

    def begun(self) -> bool:
        """Is there a sweep in it, finished or not?

        Raises:
            InputError: something else is.
        """
        self._check_place()
        return (self.path / MANIFEST).exists()

    def _check_place(self, argument: str = "out") -> None:
        """No file of ours goes among files of others, and none of others is taken for one of ours.

        Raises:
            InputError: naming what stands in the way.
        """
        try:
            if os.path.lexists(self.path) and not self.path.is_dir():
                raise bad(argument, str(self.path), f"a folder; it is {odd_kind(self.path, True) or 'a file'}")
            entries = sorted(self.path.iterdir()) if self.path.is_dir() else []
            for entry in entries:
                folder = entry.name in (BLOCKS, LOG)
                if folder and (entry.is_symlink() or not entry.is_dir()):
                    raise bad(argument, str(self.path), f"the folder of a sweep; its {entry.name!r} is no folder")
                if _REPORT.fullmatch(entry.name) and (odd := odd_kind(entry)):
                    raise bad(argument, str(self.path), f"the folder of a sweep; its {brief(entry.name)!r} is {odd}")
            if MANIFEST not in {entry.name for entry in entries}:
                self._check_empty(argument, entries)
        except OSError as problem:
            reason = problem.strerror or str(problem)
            raise bad(argument, str(self.path), f"a folder that can be read ({reason})") from None

    def _check_empty(self, argument: str, entries: list[Path]) -> None:
        """Nothing is in it but what a run leaves that was killed before its manifest."""
        others = [entry.name for entry in entries if entry.name not in (BLOCKS, LOG) and entry.name[0] != "."]
        for folder in (BLOCKS, LOG):
            if (self.path / folder).is_dir():
                names = sorted(entry.name for entry in (self.path / folder).iterdir())
                others += [f"{folder}/{name}" for name in names if not _LEFT[folder].fullmatch(name)]
        if others:
            raise bad(argument, str(self.path), f"a new or empty folder; there is {brief(others[0])!r} in it")

    def check(self, plan: SweepPlan) -> None:
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
        self._misfit, self._count = Content(plan).misfit, len(plan.blocks)

    def manifest(self) -> dict[str, Any]:
        """The manifest.

        Raises:
            InputError: there is none, or it cannot be read.
        """
        self._check_place("DIR")
        try:
            found = json.loads(read_regular(self.path / MANIFEST, _MOST_TEXT))
            if odd := odd_manifest(found):
                raise ValueError(odd)
        except (OSError, ValueError, RecursionError) as problem:
            reason = (problem.strerror if isinstance(problem, OSError) else None) or str(problem)
            raise bad("DIR", str(self.path), f"the folder of a sweep ({MANIFEST}: {brief(reason)})") from None

        blocks, marks = found["blocks"], len(found["identity"]["marks"])
        self._misfit, self._count = lambda number, arrays: misfit(arrays, blocks[number]["lanes"], marks), len(blocks)
        return found

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep a second run out, as long as this one lives.

        Raises:
            InputError: another run works on the folder, or it cannot be written.
        """
        self._check_place()
        with contextlib.ExitStack() as held:
            try:
                (self.path / LOG).mkdir(parents=True, exist_ok=True)
                held.enter_context(lock.hold(self.path / LOG))
            except lock.Held as holder:
                text = f"a folder on which no other run works now ({holder} does)"
                raise bad("out", str(self.path), text) from None
            except OSError as problem:
                reason = reason_of(problem)
                raise bad("out", str(self.path), f"a folder that can be written ({reason})") from None
            yield

    def in_use(self) -> str:
        """Who works on it now, such as ``process 123 on host``; empty if nobody does."""
        try:
            return lock.holder(self.path / LOG)
        except NotRegular as problem:
            raise bad("DIR", str(self.path), f"the folder of a sweep; {problem}") from None
        except OSError:
            return ""

    # --- blocks ------------------------------------------------------------------------------------------------

    def put(self, number: int, content: bytes) -> None:
        """Save a finished block.

        Raises:
            StorageError: it could not be written.
        """
        with self._writing(f"block {number}"):
            write_whole(self.path / BLOCKS / block_name(number, content), lambda file: file.write(content))

    def content(self, number: int) -> bytes:
        """The bytes of a block that :meth:`sound` found right."""
        right = next(path for path in self._files()[number] if not self._read(number, path)[1])
        return read_regular(right, _MOST_BYTES)

    def get(self, number: int) -> dict[str, np.ndarray] | None:
        """A finished block, or None if there is none whose checksum and content are right."""
        for path in self._files().get(number, []):
            arrays, trouble = self._read(number, path)
            if not trouble:
                return arrays
        return None

    def listed(self) -> frozenset[int]:
        """Numbers of the blocks that are there, by their names alone."""
        return frozenset(self._files())

    def sound(self, remove: bool = False) -> tuple[frozenset[int], dict[Path, str]]:
        """Numbers of the blocks that are right; and the files that are not, each with what is wrong about it.

        Args:
            remove: whether to take the latter away.
        """
        good: set[int] = set()
        broken: dict[Path, str] = {}
        for number, paths in self._files().items():
            found = {path: self._read(number, path)[1] for path in paths}
            if list(found.values()).count("") > 1:  # equal numbers have equal bytes, and so one name
                found = dict.fromkeys(paths, "is one of two that differ")
            broken |= {path: trouble for path, trouble in found.items() if trouble}
            good |= {number} if "" in found.values() else set()
        if remove:
            for path in broken:
                path.unlink()
        return frozenset(good), broken

    def _read(self, number: int, path: Path) -> tuple[dict[str, np.ndarray], str]:
        """The arrays of a block, and what is wrong with it, to be read after "it"."""
        try:
            content = read_regular(path, _MOST_BYTES)
            if path.name != block_name(number, content):
                return {}, "has bytes whose checksum is not that in its name"
            arrays = decode(content)
        except NotRegular as problem:
            raise bad("out", str(path), f"a regular file ({problem})") from None
        except OSError as problem:
            raise bad("out", str(path), f"a file that can be read ({reason_of(problem)})") from None
        except NotArrays as problem:
            return {}, str(problem)
        return arrays, self._misfit(number, arrays)

    def _files(self) -> dict[int, list[Path]]:
        found: dict[int, list[Path]] = {}
        for path in sorted((self.path / BLOCKS).glob("*.npz")):
            if (match := _NAME.fullmatch(path.name)) and int(match[1]) < self._count:
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
            reason = reason_of(problem)
            count = len(self.listed())
            raise StorageError(
                problem.errno,
                f"{what} could not be written to {self.path}: {reason}; {count} finished block{'s' * (count != 1)} "
                f"{'is' if count == 1 else 'are'} intact, the same command continues",
            ) from problem
