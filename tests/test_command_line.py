"""The parser that the commands share, pipes as arms files, Ctrl-C and closed pipes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.__main__ import main as benchmarks_main
from benchmarks.sweeps import main as sweeps_main
from jaxbandits._cli.command_line import Parser, names_of, number, whole
from jaxbandits.comparison.arms_file import read_arms
from jaxbandits.core.errors import InputError

ROOT = str(Path(__file__).parents[1])
ARMS = "name,mean_reward,mean_cost\na,0.2,0.5\nb,0.5,0.9\n"


def parser() -> Parser:
    made = Parser(must=("file",), prog="demo")
    made.add_argument("file", nargs="?", metavar="FILE")
    made.add_argument("--budget", type=number(above=0), required=True)
    made.add_argument("--runs", type=whole(1, 5), default=3)
    made.add_argument("--names", type=names_of(["one", "two"]))
    made.add_argument("--quiet", action="store_true")
    return made


def test_what_is_right() -> None:
    found = parser().parse(["f", "--budget", "1e2", "--names", "two, one", "--quiet"])
    assert vars(found) == {"file": "f", "budget": 100.0, "runs": 3, "names": ["two", "one"], "quiet": True}
    assert parser().parse(["--budget=.5", "--", "-f"]).file == "-f"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("f", "--budget: missing"),
        ("--budget 1", "FILE: missing"),
        ("f --buget 1", "--buget: unknown option; did you mean --budget?"),
        ("f --budget", "--budget: nothing given"),
        ("f --budget --runs 2", "--budget: nothing given"),
        ("f --budget -1", "--budget: '-1' given; it must be a finite number above 0"),
        ("f --budget 1_0", "--budget: '1_0' given"),
        ("f --budget 1 --runs ٣", "--runs: '٣' given; it must be a whole number from 1 to 5"),
        ("f --budget 1 --names one,on", "--names: 'on' given; it must be one of one, two; did you mean one?"),
        ("f --budget 1 --quiet=1", "--quiet: '1' given; it must be without a value"),
        ("f g --budget 1", "'g': not expected here"),
    ],
)
def test_what_is_wrong_is_named(given: str, said: str) -> None:
    with pytest.raises(InputError, match="^" + re.escape(said)):
        parser().parse(given.split())


def test_the_benchmarks_name_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for main, words, said in (
        (benchmarks_main, ["--only", "growht"], "did you mean growth?"),
        (benchmarks_main, ["--out", "/dev/null/x"], "--out"),
        (sweeps_main, ["kil"], "did you mean kill?"),
        (sweeps_main, [], "missing"),
    ):
        monkeypatch.setattr(sys, "argv", ["benchmarks", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        err = capsys.readouterr().err
        assert stop.value.code == 2 and said in err and err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_fifo_is_read_once_it_is_written_and_not_waited_for_for_ever(tmp_path: Path) -> None:
    fifo = tmp_path / "arms"
    os.mkfifo(fifo)
    writer = subprocess.Popen([sys.executable, "-c", f"open({str(fifo)!r}, 'w').write({ARMS!r})"])
    assert read_arms(fifo).instances[0].arms == ("a", "b")
    assert writer.wait(10) == 0
    began = time.perf_counter()
    with pytest.raises(InputError, match="it is a pipe, and nothing came out of it"):
        read_arms(fifo)
    assert time.perf_counter() - began < 8


def start(words: list[str], folder: Path, *of_python: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *of_python, "-m", "jaxbandits", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": ROOT},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # a shell that runs the tests in the background makes its children ignore Ctrl-C
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def test_ctrl_c_during_the_imports_is_quiet(tmp_path: Path) -> None:
    job = start(["compare", "--arms", "-", "--budget", "5", "--policies", "bts"], tmp_path, "-X", "importtime")
    assert job.stderr is not None
    while b"jaxbandits._cli.interrupt" not in (line := job.stderr.readline()):
        assert line
    job.send_signal(signal.SIGINT)
    out, err = job.communicate(timeout=20)
    said = [line for line in err.splitlines() if not line.startswith(b"import time:")]
    assert (job.returncode, out, said) == (130, b"", [b"interrupted: no run finished; nothing was written"])


def test_a_reader_that_leaves_ends_the_printing_and_not_the_work(tmp_path: Path) -> None:
    line = [
        "compare",
        "--arms",
        "-",
        "--budget",
        "5",
        "--policies",
        "m_ucb",
        "--no-answer",
        "--runs",
        "2",
        "--marks",
        "1",
    ]
    job = start(line, tmp_path)
    assert job.stdin is not None and job.stdout is not None and job.stderr is not None
    job.stdin.write(ARMS.encode())
    job.stdin.close()
    job.stdout.close()
    assert job.wait(60) == 0 and job.stderr.read() == b""
    assert sorted(path.name for path in (tmp_path / "jaxbandits-out").iterdir()) == [
        "regret.png",
        "run.json",
        "table.csv",
    ]
