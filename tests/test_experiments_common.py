"""What all experiments share: items by name, rows that stay, verdicts by size, and what was played before."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from experiments.common import Options, Row, kept, run_items
from jaxbandits.policies import UCB1


def item(name: str) -> Callable[[Options], list[Row]]:
    return lambda options: [Row(f"{name}: what", "1", "2", "", "no", "a note")]


ITEMS = {name: item(name) for name in ("one", "two_a", "two_b")}


def written(folder: Path) -> dict[str, tuple[str, str]]:
    with (folder / "summary.csv").open(newline="", encoding="utf-8") as file:
        return {row["item"].split(":")[0]: (row["verdict"], row["note"]) for row in csv.DictReader(file)}


def test_rows_of_other_items_stay_when_some_are_run_alone(tmp_path: Path) -> None:
    run_items("made", ITEMS, Options(full=True, out=tmp_path))
    (tmp_path / "summary.csv").write_text((tmp_path / "summary.csv").read_text().replace("a note", "an old note"))
    rows = run_items("made", ITEMS, Options(full=True, only="two", out=tmp_path))
    assert written(tmp_path) == {
        "one": ("no", "an old note"), "two_a": ("no", "a note"), "two_b": ("no", "a note")
    }  # fmt: skip
    assert len(rows) == 3
    run_items("made", ITEMS, Options(full=True, out=tmp_path))
    assert written(tmp_path)["one"] == ("no", "a note")


def test_an_unknown_item_is_said_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="--only: three given; it must be one of one, two_a, two_b"):
        run_items("made", ITEMS, Options(only="three", out=tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_quick_run_leaves_out_and_does_not_judge(tmp_path: Path) -> None:
    run_items(
        "made",
        ITEMS,
        Options(quick=True, out=tmp_path),
        not_in_quick=("one",),
        any_size=lambda row: "two_a" in row.item,
    )
    assert written(tmp_path) == {"two_a": ("no", "a note"), "two_b": ("unclear", "a note; not --full")}
    run_items("made", ITEMS, Options(quick=True, only="one", out=tmp_path), not_in_quick=("one",))
    assert written(tmp_path)["one"] == ("unclear", "a note; not --full")


def test_the_very_same_is_not_played_twice(tmp_path: Path) -> None:
    options, calls = Options(out=tmp_path), []

    def make() -> dict[str, np.ndarray]:
        calls.append(1)
        return {"x": np.arange(3) * len(calls)}

    for depends_on in ([np.ones(2), UCB1(), "a"],) * 2:
        np.testing.assert_array_equal(kept(options, "some thing*", depends_on, make)["x"], np.arange(3))
    assert len(calls) == 1
    for count, other in enumerate(([np.zeros(2), UCB1(), "a"], [np.ones(2), UCB1(), "b"], [np.ones(2), "a"]), start=2):
        np.testing.assert_array_equal(kept(options, "some thing*", other, make)["x"], np.arange(3) * count)
        assert len(calls) == count
