"""Ctrl-C, and readers that leave; what the parser refuses is in test_bad_values.py."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jaxbandits.apps._cli.compare import FILES
from tests.processes import ROOT

ARMS = "name,mean_reward,mean_cost\na,0.2,0.5\nb,0.5,0.9\n"


def start(words: list[str], folder: Path, *of_python: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *of_python, "-m", "jaxbandits", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # a shell that runs the tests in the background makes its children ignore Ctrl-C
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def test_ctrl_c_during_the_imports_is_quiet(tmp_path: Path) -> None:
    words = "compare --arms - --budget 5 --policies bts"
    job = start(words.split(), tmp_path, "-X", "importtime")
    assert job.stderr is not None
    while b"jaxbandits.apps._cli.console" not in (line := job.stderr.readline()):
        assert line
    job.send_signal(signal.SIGINT)
    out, err = job.communicate(timeout=20)
    errors = [line for line in err.splitlines() if not line.startswith(b"import time:")]
    assert (job.returncode, out) == (130, b"")
    assert errors == [b"interrupted: no run finished; nothing was written"]


@pytest.mark.integration
def test_interrupted(tmp_path: Path) -> None:
    (tmp_path / "arms.csv").write_text(ARMS)
    words = "compare --arms arms.csv --budget 1e4 --policies omega_ucb,bts --runs 5000 --progress"
    job = start(words.split(), tmp_path)
    assert job.stderr is not None
    calls, moment = b"", rb"omega_ucb and 1 more:\s+\d+%.*\b[1-9][0-9]*/10000 runs"
    while not re.search(moment, calls):
        part = job.stderr.read1(4096)  # type: ignore[attr-defined]
        assert part, f"the job ended by itself: {calls!r}"
        calls += part
    job.send_signal(signal.SIGINT)
    _, rest = job.communicate(timeout=60)
    last = re.split(rb"[\r\n]", rest.strip())[-1].decode()
    assert job.returncode == 130
    message = re.search(r"interrupted: (\d+) of 10000 runs finished; nothing was written$", last)
    assert message and 0 <= int(message[1]) < 10000
    assert b"Traceback" not in calls + rest
    assert [path.name for path in tmp_path.iterdir()] == ["arms.csv"]


@pytest.mark.integration
def test_a_reader_that_leaves_ends_the_printing_and_not_the_work(tmp_path: Path) -> None:
    words = "compare --arms - --budget 5 --policies m_ucb --no-progress --runs 2"
    job = start(words.split(), tmp_path)
    assert job.stdin is not None and job.stdout is not None and job.stderr is not None
    job.stdin.write(ARMS.encode())
    job.stdin.close()
    job.stdout.close()
    assert job.wait(60) == 0 and job.stderr.read() == b""
    output = sorted(path.name for path in (tmp_path / "jaxbandits-out").iterdir())
    assert output == sorted(FILES)
