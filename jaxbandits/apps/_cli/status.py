"""``jaxbandits status DIR``: the progress of a sweep."""

from __future__ import annotations

import argparse
from pathlib import Path

from jaxbandits.apps._cli.console import Parser, say
from jaxbandits.tools import line


def parser() -> Parser:
    """The parser of ``status``."""
    about = "Report what is done of a sweep, what is left, and how long that will take."
    return Parser("status", about, "folder  DIR  the folder given to sweep as --out")


def run(arguments: argparse.Namespace, argv: list[str]) -> int:
    """Print the progress of a sweep; the exit code is 0."""
    say("\n".join(status_lines(Path(arguments.folder))))
    return 0


def status_lines(path: Path) -> list[str]:
    """What is done of a sweep, what is left, and how long the rest will take."""
    from jaxbandits.sweeps.store import Folder, read_logs

    folder = Folder(path)
    blocks = folder.manifest()["blocks"]
    done, damaged = folder.sound()
    waiting = [block for number, block in enumerate(blocks) if number not in done]
    total, rest = (sum(block["seconds"] for block in part) for part in (blocks, waiting))
    share = f"{len(done)} of {len(blocks)} blocks done, {1 - rest / total:.0%} of the work"
    lines = [f"{line(str(path))}: {share}"]
    lines += [f"damaged, will be recomputed: {line(str(file))}" for file in damaged]
    if not waiting:
        if (path / "result.nc").exists():
            return [*lines, "finished: result.nc has all results, sensitivity.csv each setting"]
        return [*lines, "the results have not been written yet"]
    for name in dict.fromkeys(block["of"] for block in waiting):
        of_it = [number in done for number, block in enumerate(blocks) if block["of"] == name]
        lines.append(f"  {line(name)}: {sum(of_it)} of {len(of_it)} blocks")
    runs = [notes for notes in read_logs(path) if any(note["event"] == "block" for note in notes)]
    if runs:
        block_notes = [note for note in runs[-1] if note["event"] == "block"]
        seconds = max(block_notes[-1]["time"] - runs[-1][0]["time"], 1e-3)
        names = sorted({note["worker"] for note in block_notes})
        for name in names if len(names) > 1 else ():
            of_worker = [note for note in block_notes if note["worker"] == name]
            lanes = sum(note["lanes"] for note in of_worker)
            speed = sum(note["rounds"] for note in of_worker) / seconds
            about = f"{len(of_worker)} blocks, {lanes:,} lanes, {speed:.2g} rounds/s"
            lines.append(f"  worker {line(name)}: {about}")
        # Expected work of one core, done per second
        pace = sum(note["seconds"] for note in block_notes) / seconds
        lines.append(f"time left: about {duration(rest / pace)} at the pace of the latest run")
    else:
        lines.append("time left: unknown before the first block of a run is done")
    if folder.in_use():
        return [*lines, "a run is using it now"]
    return [*lines, "no run is using it now; the same command continues"]


def duration(seconds: float) -> str:
    """``45 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
