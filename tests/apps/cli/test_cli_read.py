"""``jaxbandits read``: what it prints, and that the command it ends with runs."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from jaxbandits.apps._cli.console import main

FOLDER = Path(__file__).parents[1] / "comparison" / "arms_files"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_arms_means_intervals_and_what_was_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "read", str(FOLDER / "google_ads_per_day.csv"))
    table = [line.split("  ") for line in out.splitlines() if line.startswith("Brand")]
    assert [cell.strip() for cell in table[0] if cell] == [
        "Brand",
        "3,750",
        "182",
        "$1,890.20",
        "4.85 % (4.21 to 5.59)",
        "$0.50 ($0.49 to $0.52)",
        "$10.39 ($9.27 to $11.50)",
    ]
    for text in (
        "line 11 skipped: totals",
        "kept out, no clicks: 'Display' (line 10)",
        "Wilson's score interval",
    ):
        assert text in out


def test_the_command_to_go_on_with_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "my ads.csv"
    file.write_bytes((FOLDER / "polish_needs_columns.csv").read_bytes())
    columns = "name=Kampania,clicks=Kliknięcia,spent=Koszt,conversions=Konwersje"
    out = printed(capsys, "read", str(file), "--columns", columns, "--prior", "10")
    command = shlex.split(out.splitlines()[-1])
    assert command[:4] == ["jaxbandits", "compare", "--arms", str(file)]
    assert command[4:9] == ["--columns", columns, "--prior", "10", "--budget"]
    options = ["--runs", "2", "--marks", "2", "--out", str(tmp_path / "out")]
    assert "Konwersje" in printed(capsys, *command[1:-1], "m_ucb", *options)


def test_values_means_and_many_instances(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert "--reward 'Conv.-Wert'" not in printed(capsys, "read", str(FOLDER / "german_excel.csv"))
    out = printed(capsys, "read", str(FOLDER / "german_excel.csv"), "--reward", "Conv.-Wert")
    assert "1,50" in out and " --reward Conv.-Wert --budget 2400" in out
    assert "(no intervals" in printed(capsys, "read", str(FOLDER / "eval_means.csv"))
    rows = "".join(f"i{i},{arm},0.5,1\n" for i in range(9) for arm in "abcdefgh")
    (tmp_path / "many.csv").write_text("instance,name,mean_reward,mean_cost\n" + rows)
    out = printed(capsys, "read", str(tmp_path / "many.csv"))
    assert "and 3 more instances" in out and "and 2 more arms" in out and len(out.splitlines()) < 80


def test_names_cannot_write_to_the_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    name = "a\x1b[2J"
    (tmp_path / "odd.csv").write_text(f"{name} Campaign,Clicks,Cost,Conversions\nx,1,1,1\n")
    (tmp_path / "arms.csv").write_text(
        f"Campaign,Clicks,Cost,{name},Leads\n{name},9,5,1,1\n\x1b]0;b,8,4,1,1\nTotal\x1b:,0,0,0,0\n"
    )
    assert main(["read", str(tmp_path / "arms.csv")]) == 0
    assert main(["read", str(tmp_path / "odd.csv")]) == 2
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err and "\\x1b[2J" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "FILE: missing"),
        (["no.csv"], "no.csv"),
        (["zeros.csv", "--columns", "nmae=a"], "--columns: 'nmae' given; it must be one of"),
        (
            ["zeros.csv", "--reward", "spnet"],
            "--reward: 'spnet' given; it must be a title of the file: name, clicks",
        ),
        (["zeros.csv", "--prior", "0"], "--prior: 0.0 given"),
        (
            ["polish_needs_columns.csv"],
            "Say which is which: --columns 'name=…,clicks=…,spent=…,conversions=…'",
        ),
    ],
)
def test_refusals_name_the_option(
    capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    file = [str(FOLDER / options[0])] if options else []
    assert main(["read", *file, *options[1:]]) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err and err.count("\n") == 1


def test_rows_are_dropped_kept_and_added(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "ads.csv"
    file.write_text(
        "Campaign,Device,Clicks,Cost,Leads\nA,M,10,5,1\nA,D,20,9,2\nB,M,5,3,1\nTotal,,70,34,4\n"
    )
    assert main(["read", str(file)]) == 2
    assert (
        "--drop Total --sum leaves it out; --keep Total --sum plays it as an arm"
        in capsys.readouterr().err
    )
    assert "2 arms" in printed(capsys, "read", str(file), "--drop", "Total", "--sum")
    out = printed(capsys, "read", str(file), "--keep", "Total", "--sum")
    assert "3 arms" in out and " --keep Total --sum --budget " in out


def test_tune_reads_with_the_same_options(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    tune = ["tune", "--policy", "omega_ucb", "--budget", "20", "--out", str(tmp_path / "out")]
    assert main([*tune, "--columns", "name=a"]) == 2
    assert "--columns: {'name': 'a'} given; it must be left out" in capsys.readouterr().err
    assert main([*tune, "--arms", str(FOLDER / "zeros.csv"), "--columns", "name=Nmae"]) == 2
    assert "--columns: 'name=Nmae' given; it must be a title of the file" in capsys.readouterr().err
