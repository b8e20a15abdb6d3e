"""Bad values in a command: one line names the option, its value and what it may be.

What Python refuses is in the tests of what refuses it (tests/test_simulation.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxbandits._engine import pool
from tests.apps.commands import command

COMPARE = "compare --arms arms.csv --policies omega_ucb,m_ucb"
ARMS = "compare --arms arms.csv --budget 20 --policies"
TUNE = "tune --policy omega_ucb"
# (the words of the command, what its line on stderr says)
COMMANDS: list[tuple[str, str]] = [
    (f"{COMPARE} --budget 1,000", "--budget: invalid float value: '1,000'"),
    (f"{COMPARE} --budget 20 --runs 0", "runs: 0 given; it must be"),
    (f"{COMPARE} --budget 20 --rho 0.25,x", "--rho: '0.25,x' given; it must be numbers"),
    (f"{COMPARE} --budget 20 --bugdet 3", "; did you mean --budget?"),
    (f"{COMPARE} --budget 20 --rho 1,1", "policies: 'omega_ucb(rho=1)' given"),
    (f"{COMPARE} --budget 20 --noise gauss", "--noise: invalid choice: 'gauss'"),
    ("compare --arms arms.csv", "--budget, --policies"),
    ("compare --arms nofile.csv --budget 20 --policies m_ucb", "'nofile.csv' given; it must be"),
    ("compare --arms bad.csv --budget 20 --policies m_ucb", "line 3, column mean_cost: '-1' given"),
    (f"{ARMS} omega_ubc", "; did you mean omega_ucb?"),
    (f"{ARMS} bts,bts", "policies: 'bts' given"),
    (f"{ARMS} bts --rho 1", "--rho: [1.0] given; it must be an option, or a parameter"),
    (f"{ARMS} budget_ucb", "BudgetUCB: missing a required argument: 'min_cost'"),
    (f"{ARMS} bts --out arms.csv", "--out: 'arms.csv' given; it must be a folder"),
    (f"{COMPARE} --budget 1 --wide=1", "--wide: ignored explicit argument"),
    (f"{COMPARE} --budget 1 x", "x: unknown argument"),
    ("read", "FILE"),
    ("read arms.csv --drop=--", "drop: '--' given; it must be a name or a cell"),
    ("read arms.csv --columns=--", "--columns: '-- ' given; it must be pairs"),
    ("", "a command is required"),
    ("compair --arms arms.csv", "did you mean compare?"),
    (f"{TUNE} --parameter rhoo", "--parameter: 'rhoo' given; it must be"),
    (f"{TUNE} --grid -1", "--grid: -1 given; it must be"),
    ("tune --policy bts", "--policy: 'bts' given"),
    ("sweep nofile.py --out o", "SPEC.py: 'nofile.py' given"),
    ("sweep spec.py", "--out: required"),
    ("sweep spec.py --out o --workers 0", "--workers: 0 given; it must be"),
    ("sweep spec.py --out o", "sweep: None given; it must be"),
    ("sweep broken.py --out o", "line 1: ZeroDivisionError"),
    ("status nofolder", "DIR: 'nofolder' given"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arms.csv").write_text(
        "name,mean_reward,mean_cost\na,0.2,0.5\nb,0.5,0.9\nc,0.4,0.25\n"
    )
    (tmp_path / "bad.csv").write_text("name,mean_reward,mean_cost\na,.5,.5\nb,.5,-1\n")
    (tmp_path / "spec.py").write_text("sweep = None\n")
    (tmp_path / "broken.py").write_text("1 / 0\n")
    monkeypatch.setattr(pool.Workers, "submit", None)  # nothing is simulated
    return tmp_path


@pytest.mark.parametrize(("line", "message"), COMMANDS, ids=lambda x: x[-40:])
def test_commands(
    folder: Path, line: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(Path().iterdir())
    assert command(line) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and len(err) < 600
    assert message in err and sorted(Path().iterdir()) == before
