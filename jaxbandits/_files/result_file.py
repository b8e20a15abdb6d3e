"""A result as a file, and what such a file must hold: whoever wrote it, it is a result or it is refused."""

from __future__ import annotations

import errno
import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandits._files import npz
from jaxbandits._files.files import open_regular, path_of, write_whole
from jaxbandits.core.errors import InputError, bad, shown
from jaxbandits.core.printable import brief
from jaxbandits.core.protocol import Status

if TYPE_CHECKING:
    from jaxbandits.result import Result

FORMAT = 1
LABELS = ("settings", "instances", "replicates", "marks")
_ACCOUNTS = ("rounds", "reward", "spent", "expected_reward", "clock", "expected_clock")
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # no fault of the name
_PER_RESOURCE = ("spent", "expected_spent", "audit:")  # these may have one more axis


class _NoResult(ValueError):
    """What is wrong with a file, to be read after "it"."""


def save(result: Result, path: Any) -> None:
    """See ``Result.save``."""
    place = path_of("path", path)
    arrays: dict[str, Any] = {f"ledger/{name}": x for name, x in result.ledger.items()}
    arrays |= {f"final/{name}": x for name, x in result.final.items()}
    arrays |= {"ended": result.ended, "best_rate": result.best_rate}
    labels = {name: list(getattr(result, name)) for name in LABELS}
    manifest = json.dumps({"format": FORMAT, "about": result.about, **labels}, default=repr)
    write_arrays(place, {"manifest": np.array(manifest)} | npz.check_plain(arrays, "result"), np.savez_compressed)


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], how: Any) -> None:
    """Write plain arrays to a file, whole or not at all; ``how`` is ``np.savez`` or ``np.savez_compressed``.

    Raises:
        InputError: there can be no file of that name.
        OSError: the disk is full, or broken.
    """
    if (target := path.parent).exists() and not target.is_dir():
        raise bad("path", str(path), f"a file in a folder ({shown(str(target))} is none)")
    try:
        write_whole(path, lambda file: how(file, **dict(arrays)))
    except OSError as problem:
        if problem.errno in _DISK:
            raise
        reason = problem.strerror or str(problem)
        raise bad("path", str(path), f"a file that can be written ({reason})") from None


def load(path: Any) -> dict[str, Any]:
    """The fields of a saved ``Result``; see ``Result.load``."""
    place = path_of("path", path)
    try:
        with open_regular(place) as file:
            return _read(file)
    except (OSError, npz.NotArrays, _NoResult) as problem:
        reason = (problem.strerror if isinstance(problem, OSError) else None) or str(problem)
        reason = reason if isinstance(problem, OSError) else f"it {reason}"
        raise InputError(f"path: {shown(str(place))} given; it must be a saved result ({brief(reason)})") from None


def _read(file: Any) -> dict[str, Any]:
    arrays = npz.read(file, first="manifest")
    manifest = _manifest(npz.text_of(next(arrays)[1], "manifest"))
    labels = {name: tuple(manifest[name]) for name in LABELS}
    sizes = {name: len(values) for name, values in labels.items()}
    _check_shapes(npz.shapes(file), tuple(sizes.values()))
    found = dict(arrays)
    part = {
        kind: {name.removeprefix(kind): x for name, x in found.items() if name.startswith(kind)}
        for kind in ("ledger/", "final/")
    }
    _check_values(part["ledger/"], found["ended"], part["final/"], found["best_rate"])
    arrays_found = {"ledger": part["ledger/"], "final": part["final/"]}
    return arrays_found | {name: found[name] for name in ("ended", "best_rate")} | {"about": manifest["about"]} | labels


def _manifest(text: str) -> dict[str, Any]:
    """What the file says of itself: its format, and labels of the right types."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise _NoResult(f"has a manifest that is no JSON: {problem}") from None
    if not isinstance(found, dict):
        raise _NoResult("has a manifest that is no JSON object")
    said = found.get("format")
    if type(said) is not int or said != FORMAT:
        raise _NoResult(f"has format {shown(said)} and not {FORMAT}")
    for name in LABELS:
        values = found.get(name)
        if not isinstance(values, list) or not values:
            raise _NoResult(f"has no list of {name}")
        if wrong := [x for x in values if not _LABEL_TESTS[name](x)]:
            raise _NoResult(f"has {shown(wrong[0])} among its {name}")
    if len(set(found["replicates"])) < len(found["replicates"]):
        raise _NoResult("has a replicate twice")
    marks = found["marks"]
    if marks[-1] != 1 or any(a >= b for a, b in itertools.pairwise(marks)):
        raise _NoResult("has marks that do not rise to 1")
    if not isinstance(found.get("about"), dict):
        raise _NoResult("does not say what was run (about)")
    return found


_LABEL_TESTS = {
    "settings": lambda x: isinstance(x, str),
    "instances": lambda x: isinstance(x, str),
    "replicates": lambda x: type(x) is int and 0 <= x < 2**32,
    "marks": lambda x: type(x) in (int, float) and 0 < x <= 1,
}


def _check_shapes(found: Mapping[str, tuple[tuple[int, ...], np.dtype]], lanes_and_marks: tuple[int, ...]) -> None:
    """Every array has the shape that the labels give it, and its type; nothing is read yet."""
    lanes = lanes_and_marks[:3]
    wanted: dict[str, tuple[tuple[int, ...], str]] = {"ended": (lanes, "iu"), "best_rate": (lanes[1:2], "f")}
    if missing := [name for name in (*wanted, *(f"ledger/{x}" for x in _ACCOUNTS)) if name not in found]:
        raise _NoResult(f"holds no {missing[0]!r}")
    for name, (shape, kind) in found.items():
        is_account, given = name.startswith("ledger/"), kind.newbyteorder("=")
        if is_account:
            more = shape[4:] if name.removeprefix("ledger/").startswith(_PER_RESOURCE) and len(shape) == 5 else ()
            right = shape == (*lanes_and_marks, *more) and given == np.int64
        elif name in wanted:
            right = shape == wanted[name][0] and given.kind in wanted[name][1]
        elif name.startswith("final/"):
            right = shape[:3] == lanes and given.kind in "biuf"
        elif name == "manifest":
            right = True
        else:
            raise _NoResult(f"holds {name!r}, which is no part of a result")
        if not right:
            raise _NoResult(f"holds {name!r} of shape {shape} and type {kind}, which does not fit its labels")


def _check_values(
    ledger: Mapping[str, np.ndarray], ended: np.ndarray, final: Mapping[str, np.ndarray], best_rate: np.ndarray
) -> None:
    """What no run can have given."""
    if not np.isin(ended, _ENDS).all():
        raise _NoResult(f"holds a lane that ended with status {ended[~np.isin(ended, _ENDS)].flat[0]}")
    for name, x in ledger.items():
        if (name == "rounds" or name.startswith("event:")) and ((x < 0).any() or (np.diff(x, axis=-1) < 0).any()):
            raise _NoResult(f"holds {name!r} below 0, or falling from one mark to the next")
    if (ledger["rounds"] >= 2**31).any():
        raise _NoResult("holds 'rounds' of 2**31 or more")
    if "pulls" in final and (
        final["pulls"].ndim != 4 or final["pulls"].dtype.kind != "i" or (final["pulls"] < 0).any()
    ):
        raise _NoResult("holds 'pulls' that are no counts per arm")
    # An instance without any costs has no rate; nothing else is without one.
    free = ~ledger["expected_clock"].any(axis=(0, 2, 3))
    if not (np.isfinite(best_rate) | np.isnan(best_rate) & free).all():
        raise _NoResult("holds a best rate that is no finite number")


_ENDS = [int(status) for status in Status if status != Status.RUNNING]
