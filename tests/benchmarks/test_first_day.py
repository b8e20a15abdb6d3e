"""The first day with a device: rehearsed on the CPU, refused without one, within its time."""

import csv
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import pytest

from benchmarks import first_day
from benchmarks.first_day import REHEARSED, cases, compared, runs


def rows(folder: Path) -> list[dict[str, str]]:
    with open(folder / "first_day.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_an_engine_with_other_bits_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scan plays for all; with another key in the place of leap (real engines: the rehearsal)."""
    simulate, seeds = first_day.jb.simulate, {"leap": 1}

    def other(*case: Any, engine: str, key: Any, **options: Any) -> Any:
        drawn = jax.random.key(seeds.get(engine, 1))
        return simulate(*case, engine="scan", key=drawn, **options)

    case = cases(4)["OmegaUCB"]
    monkeypatch.setattr(first_day.jb, "simulate", other)
    assert compared(case, 2)["value"] == "equal: scan, kernel, leap"
    seeds["leap"] = 2
    assert compared(case, 2)["value"].startswith("DIFFER: leap ")


@pytest.mark.integration
@pytest.mark.rows
def test_the_day_rehearsed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.first_day", "--rehearse", "--out", str(tmp_path)]
    command += ["--seconds", "900"]  # the kernel is interpreted
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr
    *asked, day = rows(tmp_path)
    bits = [row["value"] for row in asked if row["part"] == "bits"]
    rates = [row["value"] for row in asked if row["part"] in ("speed", "sweep")]
    assert len(bits) == REHEARSED.cases and all(x.startswith(("equal", "only scan")) for x in bits)
    assert len(rates) == len(list(runs(REHEARSED))) + 1 and all(float(x) > 0 for x in rates)
    assert day["part"] == "day"
