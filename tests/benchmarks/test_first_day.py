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


@pytest.mark.parametrize(("speed", "word"), [(250e6, "the estimate held"), (20e6, "did not hold"), (900e6, "did not")])
def test_the_verdict_can_say_no(speed, word):
    class Device:
        device_kind = "NVIDIA H100 80GB HBM3"

    rows = [
        (Device.device_kind, name, 100, 10**4, f"{x:.4g}", "1.0", "") for name, x in (("scan", speed), ("leap", 1e9))
    ]
    line = next(line for line in verdict(Device, rows) if line.startswith("scan"))
    assert word in line


@pytest.mark.integration
def test_the_first_day_on_cpu(tmp_path):
    command = [sys.executable, "-m", "benchmarks.first_day", "--lanes", "64", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("scan and leap equal") == 3
    with open(tmp_path / "first_day.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == HEADER
    assert {"scan", "leap", "bts", "textbook"} <= {row["what"] for row in rows}
    assert all(float(row["rounds_per_s"]) > 0 for row in rows)
