"""``jaxbandits read``: what it prints, and that the command it ends with runs."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from jaxbandits.apps._cli.console import main

ADS = (
    "Kampania;Dzień;Kliknięcia;Koszt;Konwersje\n"
    "W;2024-05-01;700;300,50;35\nW;2024-05-02;600;350,00;30\nL;2024-05-01;410;533,00;12\n"
)
COLUMNS = "name=Kampania,pulls=Kliknięcia,cost=Koszt,conversions=Konwersje,time=Dzień"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_arms_means_intervals_and_the_command_to_go_on_with(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "my ads.csv"
    file.write_text(f"{ADS}-;;1;2,00;0\nD;;0;0;0\n")
    out = printed(capsys, "read", str(file), "--columns", COLUMNS, "--drop", "")
    row = next(line for line in out.splitlines() if line.startswith("W  "))
    cells = [cell.strip() for cell in row.split("  ") if cell]
    rate, price = "5.00% (3.94% to 6.32%)", "10.01 (7.91 to 12.69)"
    assert cells == ["W", "1,300", "65", "650.50", rate, "0.50", price]
    for text in ("line 5 dropped", "'D' (line 6)", "4 rows summed to 3", "Wilson"):
        assert text in out
    command = shlex.split(out.splitlines()[-1])
    assert command[1:6] == ["compare", "--arms", str(file), "--columns", COLUMNS]
    options = ["--runs", "2", "--out", str(tmp_path / "out")]
    assert "Konwersje" in printed(capsys, *command[1:-1], "m_ucb", *options)


def test_many_instances_and_names_that_write_to_the_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = "".join(f"i{i},{arm},0.5,1\n" for i in range(9) for arm in "abcdefg\x1b")
    (tmp_path / "many.csv").write_text("instance,name,mean_reward,mean_cost\n" + rows)
    out = printed(capsys, "read", str(tmp_path / "many.csv"))
    assert "9 instances" in out and "and 32 more arms" in out and "(no intervals" in out
    (tmp_path / "odd.csv").write_text("a\x1b[2J;clicks\nx\x1b]0;1\n")
    assert main(["read", str(tmp_path / "odd.csv")]) == 2
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err and "\\x1b[2J" in err
    rows = "U,a,10,$5,1\nU,b,10,$6,1\nD,a,10,7 €,1\nD,b,10,8 €,2\n"
    (tmp_path / "two.csv").write_text("instance,name,clicks,spent,conversions\n" + rows)
    out = printed(capsys, "read", str(tmp_path / "two.csv"))
    assert "2   $11.00\n" in out and "3  15.00 €\n" in out and "several currencies" in out
