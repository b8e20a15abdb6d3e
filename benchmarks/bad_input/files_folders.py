"""Folders of sweeps that are none, or of somebody else: ``sweep`` and ``status``."""

# mypy: disable-error-code="func-returns-value, misc, arg-type, var-annotated, assignment"

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import jaxbandits as jb
from benchmarks.bad_input.case import Case, command
from benchmarks.bad_input.files_specs import SPEC
from jaxbandits.sweeps import make_plan
from jaxbandits.sweeps.blocks import encode
from jaxbandits.sweeps.store import Folder

Lay = Callable[[Path], object]


def _sweep() -> jb.Sweep:
    found: dict[str, Any] = {}
    exec(SPEC, found)
    return found["sweep"]


def _begun(folder: Path) -> Path:
    """The folder of a sweep with its one block."""
    (folder / "spec.py").write_text(SPEC)
    out = Folder(folder / "out")
    plan = make_plan(_sweep())
    with out.alone():
        out.open(plan)
        out.put(0, encode(_block()))
    (out.path / "log" / "holder").unlink()
    return out.path


@functools.cache
def _block() -> dict[str, np.ndarray]:
    """What the sweep of SPEC gives, or might: three rounds for both lanes."""
    two = np.full((2, 1), 3 << 24, np.int64)
    names = ("reward", "spent", "expected_reward", "expected_spent", "clock", "expected_clock")
    return {"rounds": np.full((2, 1), 3, np.int64), **dict.fromkeys(names, two), "ended": np.full(2, 2, np.int8)}


def _strangers() -> list[Case]:
    """Folders that are none, or somebody else's: ``sweep`` refuses and changes nothing."""
    spec = lambda folder: (folder / "spec.py").write_text(SPEC)  # noqa: E731
    layouts: dict[str, Lay] = {
        "a file": lambda folder: (folder / "out").write_text("x"),
        "a FIFO": lambda folder: os.mkfifo(folder / "out"),
        "a link to a file": lambda folder: (folder / "out").symlink_to("spec.py"),
        "a link to nowhere": lambda folder: (folder / "out").symlink_to("nowhere/at/all"),
        "with a thesis": lambda folder: _put(folder, "out/thesis.tex"),
        "with somebody's blocks": lambda folder: _put(folder, "out/blocks/wood.txt"),
        "with blocks but no manifest": lambda folder: _put(folder, f"out/blocks/00000-{'0' * 32}.npz"),
        "with somebody's log": lambda folder: _put(folder, "out/log/captain.txt"),
        "whose blocks are a file": lambda folder: _put(folder, "out/blocks"),
        "whose log is a file": lambda folder: _put(folder, "out/log"),
        "whose log is elsewhere": lambda folder: (_put(folder, "mine/x"), _link(folder, "out/log", "../mine")),
        "whose blocks are elsewhere": lambda folder: (_put(folder, "mine/x"), _link(folder, "out/blocks", "../mine")),
        "whose lock is a link": lambda folder: (
            _put(folder, "mine.txt"),
            _link(folder, "out/log/lock", "../../mine.txt"),
        ),
        "whose lock is a FIFO": lambda folder: (
            (folder / "out/log").mkdir(parents=True),
            os.mkfifo(folder / "out/log/lock"),
        ),
        "whose lock is a folder": lambda folder: (folder / "out/log/lock").mkdir(parents=True),
        "whose manifest is a FIFO": lambda folder: ((folder / "out").mkdir(), os.mkfifo(folder / "out/sweep.json")),
        "whose manifest is a link": lambda folder: (
            _put(folder, "m.json"),
            _link(folder, "out/sweep.json", "../m.json"),
        ),
        "whose manifest is a folder": lambda folder: (folder / "out/sweep.json").mkdir(parents=True),
        "whose result is a FIFO": lambda folder: os.mkfifo(_begun(folder) / "result.nc"),
        "whose result is a folder": lambda folder: (_begun(folder) / "result.nc").mkdir(),
        "whose summary is a link": lambda folder: _link(folder, _begun(folder) / "summary.txt", "../spec.py"),
        "whose picture is a folder": lambda folder: (_begun(folder) / "sensitivity_rho.png").mkdir(),
        "below a file": lambda folder: _put(folder, "o"),
    }
    made = []
    for name, lay in layouts.items():
        before = lambda folder, lay=lay: (spec(folder), lay(folder))  # noqa: E731
        out = "o/out" if name == "below a file" else "out"
        call = command("sweep", "spec.py", "--out", out)
        made.append(Case("files: folders", f"a folder {name}", call, says="--out", before=before))
    for out in ("/proc/x", "/dev/null", "/dev/null/x", "x" * 300):
        made.append(
            Case("files: folders", f"--out {out[:20]}", command("sweep", "spec.py", "--out", out), "--out", before=spec)
        )
    return made


def _put(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("somebody's own")


def _link(folder: Path, name: str | Path, to: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).symlink_to(to)


def _status() -> list[Case]:
    """``status`` on folders that are none, and on odd manifests, logs and blocks."""
    area, call = "files: status", command("status", "out")
    made = [
        Case(area, f"status {x!r}", command("status", x), says="DIR:") for x in ("", "nowhere", "/dev/zero", "a\0b")
    ]
    texts: dict[str, str | bytes] = {
        "empty": "",
        "a list": "[]",
        "a number": "3",
        "cut off": '{"format": 1',
        "nested": "[" * 100_000,
        "no UTF-8": b"\xff\xfe",
        "no format": "{}",
        "NaN": '{"format": NaN}',
        "long digits": f'{{"format": {"9" * 9999}}}',
    }
    for name, text in texts.items():
        content = text if isinstance(text, bytes) else text.encode()
        before = lambda folder, content=content: (_begun(folder) / "sweep.json").write_bytes(content)  # noqa: E731
        made.append(Case(area, f"a manifest: {name}", call, says="sweep.json", before=before))
    block = {"of": "x", "lanes": 2, "rounds": 6.0, "seconds": 1e-6}
    changes: list[dict[str, Any]] = [{"format": x} for x in (0, 2, "1", True, None, 1.0)]
    changes += [{"identity": x} for x in (None, [], {}, {"marks": 3}, {"marks": []})]
    changes += [{"blocks": x} for x in (None, [], {}, 3, [3], [{}], [block | {"seconds": 0}])]
    changes += [{"blocks": [block | {"lanes": x}]} for x in (0, -1, 1.5, "2", True, None)]
    changes += [{"blocks": [block | {"seconds": x}]} for x in (-1, "1", None, float("nan"), float("inf"), [])]
    changes += [{"blocks": [block | {"of": x}]} for x in (3, None)]
    for change in changes:
        before = functools.partial(_change_manifest, change)
        made.append(Case(area, f"a manifest with {json.dumps(change)[:60]}", call, says="sweep.json", before=before))
    odd: dict[str, Lay] = {
        "a block is a FIFO": lambda folder: os.mkfifo(_begun(folder) / "blocks" / f"00000-{'0' * 32}.npz"),
        "a block is a folder": lambda folder: (_begun(folder) / "blocks" / f"00000-{'0' * 32}.npz").mkdir(),
        "a block is a link": lambda folder: (_begun(folder) / "blocks" / f"00000-{'0' * 32}.npz").symlink_to(
            "/dev/zero"
        ),
        "a log is a FIFO": lambda folder: os.mkfifo(_unfinished(folder) / "log" / "x.jsonl"),
        "a log is a folder": lambda folder: (_unfinished(folder) / "log" / "x.jsonl").mkdir(),
        "a log is a link": lambda folder: (_unfinished(folder) / "log" / "x.jsonl").symlink_to("/dev/zero"),
        "the lock is a FIFO": lambda folder: _replaced_lock(folder, os.mkfifo),
        "the lock is a folder": lambda folder: _replaced_lock(folder, os.mkdir),
        "the lock is a link": lambda folder: _replaced_lock(folder, lambda path: os.symlink("/dev/zero", path)),
    }
    made += [Case(area, name, call, says="out", before=before) for name, before in odd.items()]
    for name, text in _LOGS.items():
        before = lambda folder, text=text: (_unfinished(folder) / "log" / "x.jsonl").write_text(text)  # noqa: E731
        made.append(Case(area, f"a log: {name}", call, before=before, works=True))
    return made


_LOGS = {
    "numbers": "3\n4\n",
    "lists": '[]\n{}\n{"event": 3}\n',
    "no times": '{"event": "block", "seconds": 1}\n',
    "times as text": '{"event": "block", "seconds": "1", "time": "now"}\n',
    "nested": "[" * 100_000 + "\n",
    "no work": '{"event": "start", "time": 1}\n{"event": "block", "seconds": 0, "time": 2}\n',
    "work that is NaN": '{"event": "start", "time": NaN}\n{"event": "block", "seconds": NaN, "time": NaN}\n',
    "next to no work": '{"event": "start", "time": 1}\n{"event": "block", "seconds": 1e-290, "time": 9e299}\n',
    "time that runs backwards": '{"event": "start", "time": 9}\n{"event": "block", "seconds": 1, "time": 2}\n',
}


def _change_manifest(change: dict[str, Any], folder: Path) -> None:
    place = _begun(folder) / "sweep.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | change))


def _unfinished(folder: Path) -> Path:
    out = _begun(folder)
    for block in (out / "blocks").iterdir():
        block.unlink()
    return out


def _replaced_lock(folder: Path, make: Callable[[Path], object]) -> None:
    place = _unfinished(folder) / "log" / "lock"
    place.unlink()
    make(place)


def cases() -> list[Case]:
    """All of them."""
    return [*_strangers(), *_status()]
