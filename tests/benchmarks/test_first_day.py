"""The first day with a device, played on CPU; and what it reads from the profiler."""

import csv
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import psutil
import pytest

from benchmarks import first_day
from benchmarks.first_day import HEADER, Plan, announcement, idle, memory_of, verdict

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
        # Side by side, and the host's do not count
        (
            [(1, 0, 10), (1, 5, 5), (1, 2, 18), (2, 0, 1000)],
            0.0,
        ),
        ([(1, 0, 10), (1, 20, 20), (1, 25, 5)], 0.25),
    ],
)
def test_the_share_of_time_in_which_the_device_did_nothing(spans, share):
    assert math.isclose(idle([*NAMES, *(span(*x) for x in spans)]), share, abs_tol=1e-12)


def test_nothing_is_known_of_a_device_that_the_profiler_does_not_see():
    assert math.isnan(idle([*NAMES, span(2, 0, 10)]))


@pytest.mark.parametrize(
    ("rate", "word"), [(1e8, "the estimate held"), (1e7, "did NOT hold"), (1e9, "did NOT hold")]
)
def test_the_verdict_can_say_no_on_any_device(rate, word):
    assert word in verdict("scan", 100, rate, copied=2e12)
    assert verdict("textbook", 100, rate, copied=2e12) == ""


@pytest.mark.parametrize("words", [[], ["--part", "speed"]])
def test_without_an_accelerator_one_line_names_the_rehearsal(words, tmp_path, monkeypatch, capsys):
    cpu = SimpleNamespace(platform="cpu", device_kind="cpu")
    monkeypatch.setattr(jax, "devices", lambda: [cpu])
    monkeypatch.setattr(first_day, "play", lambda *_: pytest.fail("it plays"))
    monkeypatch.setattr(first_day, "child_process", lambda *_: pytest.fail("it plays"))
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")  # what the command sets is undone
    monkeypatch.setattr(sys, "argv", ["first_day", "--out", str(tmp_path / "out"), *words])
    with pytest.raises(SystemExit) as refused:
        first_day.main()
    output = capsys.readouterr()
    assert refused.value.code == 2 and "--rehearse" in output.err
    assert output.err.count("\n") == 1 and output.out == "" and not (tmp_path / "out").exists()


def test_memory_is_said_before_it_is_taken(tmp_path, monkeypatch):
    device = SimpleNamespace(memory_stats=lambda: {"bytes_limit": 60e9})
    monkeypatch.setattr(jax, "devices", lambda: [device])
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    plan = Plan("NVIDIA H100", False, tmp_path, None)
    speed, graphs = (memory_of(plan, part) for part in ("speed", "graphs"))
    # a copy of a GiB is more than 2¹⁷ slots of 4.8 kB, thrice
    assert speed.device == 2**31 and graphs.device < 3 * 5e3 * 2**14
    text = announcement(plan, "speed", speed)
    assert f"{speed.host / 1e9:.1f} GB of the host's memory and {speed.device / 1e9:.1f} GB" in text
    assert "jax holds 60 GB" in text
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    assert "jax holds" not in announcement(plan, "speed", speed)


@pytest.mark.integration
def test_parts_end_with_their_parent(tmp_path):
    command = [sys.executable, "-m", "benchmarks.first_day", "--rehearse", "NVIDIA H200"]
    command += ["--out", str(tmp_path)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as day:
        assert day.stdout is not None
        while not day.stdout.readline().startswith("correctness: about"):
            assert day.poll() is None
        parts = psutil.Process(day.pid).children(recursive=True)
        day.kill()
        alive = psutil.wait_procs(parts, timeout=10)[1]
        for part in alive:
            part.kill()
        assert parts and not alive


@pytest.mark.integration
def test_the_day_rehearsed(tmp_path):
    """All parts on the CPU under another name; one graph's child aborts, as XLA's have, and every
    other row is kept.
    """
    command = [
        sys.executable,
        "-m",
        "benchmarks.first_day",
        "--rehearse",
        "NVIDIA H200",
        "--abort",
        "leap",
    ]
    command += ["--out", str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=900, cwd=Path(__file__).parents[2]
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with open(tmp_path / "first_day.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == HEADER and {row["device"] for row in rows} == {"NVIDIA H200"}
    assert {row["part"] for row in rows} == {"correctness", "speed", "memory", "graphs"}
    assert not [
        row
        for row in rows
        if "DIFFER" in row["value"]
        or "TOO MUCH" in row["verdict"]
        or "NOT within" in row["verdict"]
    ]
    host_rows = [row for row in rows if row["what"] == "host"]
    assert len(host_rows) == 4 and all(float(row["verdict"].split()[0]) < 1 for row in host_rows), (
        host_rows
    )
    graphs = {row["what"]: row["value"] for row in rows if row["part"] == "graphs"}
    del graphs["host"]
    assert (
        graphs.pop("leap, one graph") == graphs.pop("leap, loops from the host") == "died"
        and all(float(x) > 0 for x in graphs.values())
        and len(graphs) == 4
    )
    assert {row["what"] for row in rows if row["part"] == "speed"} == {
        "copy",
        "scan",
        "leap",
        "bts",
        "textbook",
        "host",
    }
