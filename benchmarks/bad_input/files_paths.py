"""Odd paths for results, and files that stand where the state of a live policy should be."""

# mypy: disable-error-code="func-returns-value, misc, arg-type, var-annotated, assignment"

from __future__ import annotations

import functools
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxbandits as jb
from benchmarks.bad_input.case import Case
from benchmarks.bad_input.files_results import Bomb, result, saved

STATE = {"pulls": np.arange(3, dtype=np.int32), "sum": np.float32([1, 2, 3])}


# ---- paths


def _paths() -> list[Case]:
    area = "files: paths"
    cases = [
        Case(area, f"load {path!r}", lambda _, path=path: jb.Result.load(path), says="path:")
        for path in (
            "",
            "nowhere.npz",
            "no/where.npz",
            "a\0b",
            "x" * 5000,
            ".",
            "/",
            "\udcff.npz",
            3,
            None,
            1.5,
            b"r",
            [],
        )
    ]
    cases += [
        Case(area, f"save to {path!r}", lambda _, path=path: result().save(path), says="path:")
        for path in ("", "no/where.npz", "a\0b", "x" * 5000, ".", "/dev/null", "/dev/full", 1, None, b"r", [])
    ]
    for name, device in (("/dev/zero", "/dev/zero"), ("/dev/null", "/dev/null"), ("/dev/stdin", "/dev/stdin")):
        cases.append(Case(area, f"load {name}", lambda _, device=device: jb.Result.load(device), says="path:"))
        link = lambda folder, device=device: (folder / "r.npz").symlink_to(device)  # noqa: E731
        cases.append(Case(area, f"load a link to {name}", _load_here, says="path:", before=link))
    layouts: dict[str, Callable[[Path], object]] = {
        "a FIFO": lambda folder: os.mkfifo(folder / "r.npz"),
        "a link to a FIFO": lambda folder: (os.mkfifo(folder / "f"), (folder / "r.npz").symlink_to("f")),
        "a link to itself": lambda folder: (folder / "r.npz").symlink_to("r.npz"),
        "a link to nowhere": lambda folder: (folder / "r.npz").symlink_to("nowhere"),
        "a folder": lambda folder: (folder / "r.npz").mkdir(),
        "a file of 1 TB of holes": lambda folder: os.truncate(_touched(folder / "r.npz"), 1 << 40),
    }
    cases += [Case(area, f"load {name}", _load_here, says="path:", before=make) for name, make in layouts.items()]
    for name in ("a FIFO", "a folder"):
        save = lambda folder: result().save(folder / "r.npz")  # noqa: E731
        cases.append(Case(area, f"save over {name}", save, says="path:", before=layouts[name]))
    linked = lambda folder: ((folder / "s.npz").write_bytes(saved()), (folder / "r.npz").symlink_to("s.npz"))  # noqa: E731
    cases.append(Case(area, "load a link to a result", _load_here, before=linked, works=True))
    there = lambda folder: (folder / "r.npz").write_bytes(saved())  # noqa: E731
    cases.append(Case(area, "load what was saved", _load_here, before=there, works=True))
    return cases


def _touched(path: Path) -> Path:
    path.touch()
    return path


def _load_here(folder: Path) -> object:
    return jb.Result.load(folder / "r.npz")


# ---- states of live policies


def _states() -> list[Case]:
    area = "files: states"
    bad: dict[str, Any] = {
        "an object": object(),
        "None in an array": np.array([None, 1]),
        "a function": len,
        "a date": np.datetime64("2020-01-01"),
        "a record": np.zeros(2, [("x", "i8")]),
        "raw bytes": np.zeros(2, "V3"),
        "a complex number": 1j,
        "a key of jax": jax.random.key(0),
        "a half-precision number of jax": jax.numpy.zeros(2, "bfloat16"),
        "ragged lists in an array": np.array([[1], [1, 2]], dtype=object),
        "a Decimal": __import__("decimal").Decimal(1),
        "a huge whole number": 10**30,
    }
    cases = [
        Case(
            area,
            f"save {name}",
            lambda folder, x=x: jb.live.save(folder / "s.npz", {"mine": x}, policy=None),
            says="mine",
        )
        for name, x in bad.items()
    ]
    cases += [
        Case(area, f"save to {path!r}", lambda _, path=path: jb.live.save(path, STATE, policy=None), says="path:")
        for path in ("", "no/where.npz", "a\0b", "/dev/null", 1, None)
    ]
    raw: dict[str, Callable[[], bytes]] = {
        "nothing": lambda: b"",
        "text": lambda: b"text",
        "a result": saved,
        "cut off": lambda: _state()[:300],
        "another shape": lambda: _state(pulls=np.arange(4, dtype=np.int32)),
        "another type": lambda: _state(pulls=np.arange(3, dtype=np.int64)),
        "floats for counts": lambda: _state(pulls=np.arange(3, dtype=np.float32)),
        "one leaf too few": lambda: _state(leaves=1),
        "another structure": lambda: _state(about={"format": 1, "structure": "PyTreeDef(*)"}),
        "no structure": lambda: _state(about={"format": 1}),
        **{
            f"format {x!r}": functools.partial(lambda x: _state(about=_about() | {"format": x}), x)
            for x in (2, "1", None)
        },
        "format true": lambda: _state(about=_about() | {"format": True}),
        "no JSON": lambda: _state(about="{"),
        "a bomb": lambda: _state(pulls=np.zeros(50_000_000, np.int32)),
        "objects": lambda: _state(pulls=np.array([Bomb(), None, None]), pickled=True),
    }
    for name, content in raw.items():
        before = lambda folder, content=content: (folder / "s.npz").write_bytes(content())  # noqa: E731
        cases.append(Case(area, f"load {name}", _load_state, says="path:", before=before))
    fifo = lambda folder: os.mkfifo(folder / "s.npz")  # noqa: E731
    cases.append(Case(area, "load a FIFO", _load_state, says="path:", before=fifo))
    cases.append(Case(area, "load nothing there", _load_state, says="path:"))
    right = lambda folder: (folder / "s.npz").write_bytes(_state())  # noqa: E731
    cases.append(Case(area, "load what was saved", _load_state, before=right, works=True))
    return cases


def _about() -> dict[str, Any]:
    return {"format": 1, "structure": str(jax.tree.structure(STATE))}


def _state(about: Any = None, leaves: int = 2, pickled: bool = False, **changes: np.ndarray) -> bytes:
    file = io.BytesIO()
    values = jax.tree.leaves(STATE | changes)[:leaves]
    stored = {f"leaf{i}": x for i, x in enumerate(values)}
    text = about if isinstance(about, str) else json.dumps(_about() if about is None else about)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, x in ({"about": np.array(text)} | stored).items():
            with packed.open(f"{name}.npy", "w") as into:
                np.lib.format.write_array(into, x, allow_pickle=pickled)
    return file.getvalue()


def _load_state(folder: Path) -> object:
    return jb.live.load(folder / "s.npz", like=STATE)


def cases() -> list[Case]:
    """All of them."""
    return [*_paths(), *_states()]
