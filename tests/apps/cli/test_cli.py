"""The command: what it writes, and in which order; what it refuses is in test_bad_values.py."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shlex
import sys
from pathlib import Path

import pytest

import jaxbandits as jb
from jaxbandits import _plots, _progress
from jaxbandits.apps._cli import compare, demo
from jaxbandits.apps._cli.compare import FILES, chosen_policies
from jaxbandits.apps.comparison.plan import POLICIES
from tests.apps.commands import command
from tests.processes import python

ARMS = "name,mean_reward,mean_cost\na,0.2,0.5\nb,0.5,0.9\nc,0.4,0.25\n"
TWO = "instance,name,mean_reward,mean_cost\nx,a,0.2,0.5\nx,b,0.5,0.9\ny,a,2,3\ny,b,1,6\ny,c,1,1\n"
M_UCB = "compare --arms arms.csv --policies m_ucb --runs 6"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with arms files in it."""
    monkeypatch.chdir(tmp_path)
    Path("arms.csv").write_text(ARMS)
    Path("two.csv").write_text(TWO)
    return tmp_path


def test_every_policy_has_a_name_and_takes_its_parameters() -> None:
    line = f"--arms arms.csv --budget 20 --policies {','.join(POLICIES)} --min-cost 0.25,0.5"
    options = compare.parser().parse(f"{line} --c-rad 2 --epsilon 0.2 --factor 1".split())
    policies = chosen_policies(options)
    assert [type(policy) for policy in policies] == list(POLICIES.values())
    by_kind = {type(policy): policy for policy in policies}
    assert by_kind[jb.policies.UCBBV1].min_cost.tolist() == [0.25, 0.5]
    assert by_kind[jb.policies.PDBwK].c_rad.tolist() == [2.0]


def test_the_job(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "compare --arms two.csv --budget 20 --policies omega_ucb,m_ucb --rho 0.25,1 --runs 6"
    assert command(f"{line} --no-progress --out deep/results") == 0
    out, err = capsys.readouterr()
    assert err == "" and not re.search(r"\bnan\b", out)
    assert out.startswith("In short: with 20 to spend in each of 2 instances (40 in all), ")
    assert "two.csv: means, 2 instances, 5 arms" in out
    files = folder / "deep/results"
    assert sorted(path.name for path in files.iterdir()) == sorted(FILES)
    assert (files / "results.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader((files / "table.csv").read_text().splitlines()))
    assert [row["scope"] for row in rows] == ["overall"] * 3 + ["instance"] * 6
    about = json.loads((files / "run.json").read_text())
    assert about["arms_file"]["sha256"] == hashlib.sha256(TWO.encode()).hexdigest()
    names = {"label": "omega_ucb(rho=1)", "policy": "OmegaUCB", "parameters": {"OmegaUCB.rho": 1.0}}
    assert about["settings"][1] == names
    assert about["instances"][1]["cost_bound"] == pytest.approx(6 / 0.99)
    # run.json is enough to do it again, to the byte
    again = shlex.split(about["command"])
    assert command("", *again[1:], "--out", "again") == 0
    assert (folder / "again/table.csv").read_bytes() == (files / "table.csv").read_bytes()


def test_numbers_and_the_answer_come_before_the_first_picture(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> bytes:
        raise OSError("no space left")

    out = folder / "jaxbandits-out"
    out.mkdir()
    (out / "mine.txt").write_text("kept")
    monkeypatch.setattr(_plots, "encoded", full)
    assert command(f"{M_UCB} --budget 20 --no-progress") == 1
    printed, err = capsys.readouterr()
    assert printed.startswith("In short: ")
    assert "a file could not be read or written (no space left)" in err
    assert sorted(path.name for path in out.iterdir()) == ["mine.txt", "run.json", "table.csv"]


@pytest.mark.integration
def test_the_demo_gives_a_regret_a_value_and_a_slope_beside_its_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "_MONEY", 30.0)
    assert command(f"demo --out {tmp_path}/there") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 10 and re.match(r"1\. \S+ has .* [\d.]+ \([\d.]+ to [\d.]+\)", lines[2])
    assert re.match(r"2\. rho = [\d.]+", lines[4])
    found = re.findall(r"(\S+) \(standard error ([^;]+)", "".join(lines[5:7]))
    (first, error), (second, other) = (map(float, x) for x in found)
    assert abs(first - second) < 4 * (error + other)
    for name in demo.FILES:
        assert (tmp_path / "there" / name).read_bytes()[1:4] == b"PNG"


def test_a_bar_that_nobody_asked_for_waits_two_seconds_and_is_for_watchers_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for watched, said in ((True, "compiling"), (False, "")):
        clock = iter([0.0, 0.5, 2.5])
        monkeypatch.setattr(_progress.time, "monotonic", lambda clock=clock: next(clock))
        monkeypatch.setattr(_progress.sys.stderr, "isatty", lambda watched=watched: watched)
        monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
        with _progress.Bar(None, 40.0) as bar:
            bar.show("compiling", 0.0)
            assert capsys.readouterr().err == ""
            bar.show("compiling", 1.0)
            assert said in capsys.readouterr().err
            assert (bar._bar is not None) == watched
        capsys.readouterr()  # the bar is taken away


def test_the_help_of_the_commands_and_reading_load_no_jax(folder: Path) -> None:
    code = (
        "import sys\nfrom jaxbandits.apps._cli.console import main, _JOBS\n"
        "for job in ['', *_JOBS]:\n    try:\n        main([*job.split(), '--help'])\n"
        "    except SystemExit:\n        pass\n"
        "print(*(m for m in ('jax', 'xarray', 'scipy', 'pandas') if m in sys.modules), file=sys.stderr)\n"
        "main(['read', sys.argv[1]])\nprint('jax' in sys.modules, file=sys.stderr)"
    )
    done = python(code, str(folder / "arms.csv"))
    assert done.stdout.count("usage: jaxbandits ") == 8 and done.stderr.split() == ["False"]


def test_off_a_terminal_progress_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 3.0, 12.0])
    monkeypatch.setattr(_progress.time, "monotonic", lambda: next(clock))
    with _progress.Bar("lines", 40.0, "{n:.0f}/{total:.0f} runs, ") as bar:
        for work in (1.0, 10.0):
            bar.show("[1/2] OmegaUCB", work)
    assert capsys.readouterr().err == "[1/2] OmegaUCB: 10/40 runs, 25%, about 36 s left\n"
    assert _progress.usual_progress(None) == "lines" and _progress.usual_progress(False) is False
    monkeypatch.setattr(_progress.sys.stderr, "isatty", lambda: True)
    monkeypatch.delenv("JPY_PARENT_PID", raising=False)
    assert _progress.usual_progress(None) is True
    monkeypatch.setenv("JPY_PARENT_PID", "1")  # as ! in a notebook has it
    assert _progress.usual_progress(None) == "lines"
