"""What all experiments share: items, rows that stay, verdicts by size, runs on disk."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxbandits as jb
from experiments import __main__ as command
from experiments.common import Experiment, Options, Row, above_zero, mean_row, row, simulated, swept
from jaxbandits.core.checks import InputError
from jaxbandits.environments import FiniteArms
from jaxbandits.policies import UCB1


def item(name: str) -> Callable[[Options], list[Row]]:
    return lambda options: [row(f"{name}: what", 2, published=1, holds=False, note="a note")]


MADE = Experiment("made", {name: item(name) for name in ("one", "two_a", "two_b")})


def verdicts(folder: Path) -> dict[str, tuple[str, str]]:
    with (folder / "summary.csv").open(newline="", encoding="utf-8") as file:
        return {
            row["item"].split(":")[0]: (row["verdict"], row["note"]) for row in csv.DictReader(file)
        }


def test_rows_of_other_items_stay_when_some_are_run_alone(tmp_path: Path) -> None:
    MADE.run(Options(full=True, out=tmp_path))
    (tmp_path / "summary.csv").write_text(
        (tmp_path / "summary.csv").read_text().replace("a note", "an old note")
    )
    rows = MADE.run(Options(full=True, only="two", out=tmp_path))
    assert verdicts(tmp_path) == {
        "one": ("no", "an old note"), "two_a": ("no", "a note"), "two_b": ("no", "a note")
    }  # fmt: skip
    assert len(rows) == 3
    MADE.run(Options(full=True, out=tmp_path))
    assert verdicts(tmp_path)["one"] == ("no", "a note")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["omega_ucb", "--only", "figre1"], "--only: 'figre1' given; .*; did you mean figure1\\?"),
        (["suakk"], "NAME: 'suakk' given.*; did you mean suak\\?"),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main([*arguments, "--quick", "--out", str(tmp_path / "new")])
    assert ended.value.code == 2
    assert re.fullmatch(f"python -m experiments: {message}\n", capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


def test_every_experiment_bears_its_name() -> None:
    for name in command.NAMES:
        experiment = command.named(name)
        assert experiment.name == name and set(experiment.not_in_quick) < set(experiment.items)
        assert set(experiment.needs) <= set(experiment.items)


def test_a_quick_run_leaves_out_and_does_not_judge(tmp_path: Path) -> None:
    experiment = Experiment(
        "made", MADE.items, not_in_quick=("one",), any_size=lambda line: "two_a" in line.item
    )
    experiment.run(Options(quick=True, out=tmp_path))
    assert verdicts(tmp_path) == {
        "two_a": ("no", "a note"),
        "two_b": ("unclear", "a note; not --full"),
    }
    experiment.run(Options(quick=True, only="one", out=tmp_path))
    assert verdicts(tmp_path)["one"] == ("unclear", "a note; not --full")


def test_numbers_of_a_row_are_rounded_and_text_stands() -> None:
    assert row("x", 123456, "0.10") == Row("x", "", "123456", "0.10", "unclear")
    assert row("x", np.float32(1.23456), 0.0456, published=0.5) == Row(
        "x", "0.5", "1.235", "0.046", "unclear"
    )
    assert row("x", 1.23456, holds=np.bool_(True), note="n", digits=".1f") == Row(
        "x", "", "1.2", "", "yes", "n"
    )
    assert mean_row("x", [1, 2, 3], "> 0", holds=False) == Row("x", "> 0", "2", "0.58", "no")


@pytest.mark.parametrize(
    ("value", "expected"), [(2.1, True), (-2.1, False), (2.0, None), (-1.9, None), (0.0, None)]
)
def test_a_sign_is_clear_beyond_two_standard_errors(value: float, expected: bool | None) -> None:
    assert above_zero(value, 1.0) is expected


def test_what_was_played_is_read_the_next_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
    constraint = jb.TotalBudget(20.0, last_pull="counts")
    options = Options(full=True, out=tmp_path)
    sweep = {
        "policies": UCB1(),
        "environments": arms,
        "constraint": constraint,
        "replicates": 4,
        "seed": 3,
    }
    plain: dict[str, Any] = {"key": jax.random.key(3), "replicates": 4}
    for _ in range(2):
        data = swept(options, "some/thing", **sweep)
        result, cost = simulated(options, "a/file", UCB1(), arms, constraint, **plain)
    np.testing.assert_array_equal(
        data["regret"].values[0, 0, 0, 0], result.regret.values[0, 0, :, -1:]
    )
    assert data.attrs["rounds"] == cost["rounds"] > 0
    assert (tmp_path / "runs/full/some over thing/result.nc").is_file()
    (tmp_path / "runs/full/a over file.npz").unlink()
    with pytest.raises(InputError, match="seed"):  # another one is not taken for it
        swept(options, "some/thing", **{**sweep, "seed": 4})
    swept(Options(quick=True, out=tmp_path / "new"), "thing", **sweep)
    assert not (tmp_path / "new").exists(), "a quick run is kept nowhere"


def test_an_item_without_its_data_is_skipped_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = Experiment("made", MADE.items, needs={"one": "some.csv"})
    experiment.run(Options(full=True, out=tmp_path, data=tmp_path / "data"))
    assert (
        f"made one: skipped, {tmp_path / 'data' / 'some.csv'} is not there"
        in capsys.readouterr().out
    )
    assert list(verdicts(tmp_path)) == ["two_a", "two_b"]
