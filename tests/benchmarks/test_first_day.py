"""The first day with a device, played on CPU; and what it reads from the profiler."""

import csv
import math
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.first_day import HEADER, idle, verdict

NAMES = [
    {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}},
    {"ph": "M", "pid": 2, "name": "process_name", "args": {"name": "/host:CPU"}},
]


def span(pid, begin, long):
    return {"ph": "X", "pid": pid, "name": "kernel", "ts": begin, "dur": long}


@pytest.mark.parametrize(
    ("spans", "share"),
    [
        ([(1, 0, 10)], 0.0),
        ([(1, 0, 10), (1, 30, 10)], 0.5),
        ([(1, 0, 10), (1, 5, 5), (1, 2, 18), (2, 0, 1000)], 0.0),  # side by side, and the host's do not count
        ([(1, 0, 10), (1, 20, 20), (1, 25, 5)], 0.25),
    ],
)
def test_the_share_of_time_in_which_the_device_did_nothing(spans, share):
    assert math.isclose(idle([*NAMES, *(span(*x) for x in spans)]), share, abs_tol=1e-12)


def test_nothing_is_known_of_a_device_that_the_profiler_does_not_see():
    assert math.isnan(idle([*NAMES, span(2, 0, 10)]))


@pytest.mark.parametrize(("rate", "word"), [(1e8, "the estimate held"), (1e7, "did NOT hold"), (1e9, "did NOT hold")])
def test_the_verdict_can_say_no_on_any_device(rate, word):
    assert word in verdict("scan", 100, rate, copied=2e12)
    assert verdict("textbook", 100, rate, copied=2e12) == ""


@pytest.mark.integration
def test_the_day_rehearsed(tmp_path):
    """All parts on the CPU under another name; one graph's child aborts, as XLA's have, and every other row is kept."""
    command = [sys.executable, "-m", "benchmarks.first_day", "--rehearse", "NVIDIA H200", "--abort", "leap"]
    command += ["--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stdout + done.stderr
    with open(tmp_path / "first_day.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == HEADER and {row["device"] for row in rows} == {"NVIDIA H200"}
    assert {row["part"] for row in rows} == {"correctness", "speed", "memory", "graphs"}
    assert not [
        row
        for row in rows
        if "DIFFER" in row["value"] or "TOO MUCH" in row["verdict"] or "NOT within" in row["verdict"]
    ]
    graphs = {row["what"]: row["value"] for row in rows if row["part"] == "graphs"}
    assert graphs.pop("leap, one graph") == "died" and all(float(x) > 0 for x in graphs.values()) and len(graphs) == 2
    assert {row["what"] for row in rows if row["part"] == "speed"} == {"copy", "scan", "leap", "bts", "textbook"}
