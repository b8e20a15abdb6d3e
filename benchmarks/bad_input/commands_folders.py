"""Output folders of every kind, given to the commands."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from benchmarks.bad_input.case import Case, command
from benchmarks.bad_input.commands_files import SMALL, compare, write
from benchmarks.bad_input.commands_options import put


def cases() -> list[Case]:
    """Of compare and tune."""
    area, found = "command: output folders", []
    foreign = {
        "a table.csv of somebody else": ("table.csv", "x"),
        "a run.json of somebody else": ("run.json", "{}"),
        "a run.json that is no JSON": ("run.json", "x" * 100),
        "a run.json nested deeply": ("run.json", "[" * 100_000),
        "a run.json of tune": ("run.json", '{"command": "jaxbandits tune --policy omega_ucb"}'),
        "a run.json of another program": ("run.json", '{"command": "other compare"}'),
        "a run.json with an odd command": ("run.json", '{"command": 5}'),
        "a regret.png of somebody else": ("regret.png", ""),
    }

    def with_arms(make: Callable[[Path], object]) -> Callable[[Path], object]:
        def both(folder: Path) -> None:
            put(folder)
            (folder / "out").mkdir()
            make(folder)

        return both

    for name, (file, content) in foreign.items():
        call = compare("arms.csv", "--out", "out")
        found.append(Case(area, name, call, "--out", before=with_arms(write(content, f"out/{file}"))))
    tuned = command("tune", "--policy", "omega_ucb", "--out", "out")
    for file in ("path.png", "path.csv", "run.json"):
        found.append(
            Case(area, f"tune: a {file} of somebody else", tuned, "--out", before=with_arms(write("{}", f"out/{file}")))
        )
    odd: dict[str, Callable[[Path], object]] = {
        "table.csv is a folder": lambda folder: (folder / "out/table.csv").mkdir(),
        "table.csv is a FIFO": lambda folder: os.mkfifo(folder / "out/table.csv"),
        "run.json is a FIFO": lambda folder: os.mkfifo(folder / "out/run.json"),
        "run.json leads to /dev/zero": lambda folder: os.symlink("/dev/zero", folder / "out/run.json"),
        "table.csv leads to nothing": lambda folder: os.symlink("nothing", folder / "out/table.csv"),
    }
    for name, make in odd.items():
        found.append(Case(area, name, compare("arms.csv", "--out", "out"), "--out", before=with_arms(make)))
    for out in (
        "",
        " ",
        "arms.csv",
        "arms.csv/deep/er",
        "/proc/results",
        "/dev/null",
        "/dev/null/x",
        "a\0b",
        "x" * 300,
        "/sys/x",
    ):
        for job, words in (
            ("compare", ("compare", "--arms", "arms.csv", *SMALL)),
            ("tune", ("tune", "--policy", "omega_ucb")),
        ):
            found.append(Case(area, f"{job} --out {out[:12]!r}", command(*words, "--out", out), "--out", before=put))
    return found
