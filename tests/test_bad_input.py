"""Bad input: what the report counts as passed, and a fast part of its cases."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import pytest

from benchmarks.bad_input import trial
from benchmarks.bad_input.case import Case
from jaxbandits.core.errors import InputError, bad


def refuse(folder: Path) -> None:
    raise bad("runs", -1, "a whole number of at least 1")


def say(text: str) -> object:
    def call(folder: Path) -> None:
        raise InputError(text)

    return call


def warn(folder: Path) -> None:
    warnings.warn("overflow", RuntimeWarning, stacklevel=1)
    refuse(folder)


def leave(folder: Path) -> None:
    (folder / "made").mkdir()
    refuse(folder)


def change(folder: Path) -> None:
    (folder / "there").write_text("changed")
    refuse(folder)


def put(folder: Path) -> None:
    (folder / "there").write_text("a")


def test_what_passes() -> None:
    assert trial.failure(Case("a", "refused", refuse, says="runs")) == ""
    assert trial.failure(Case("a", "several problems", say("x.csv: 2 problems\n  line 1: p\n  line 2: q"))) == ""
    assert trial.failure(Case("a", "it works", lambda folder: None, works=True)) == ""
    assert trial.failure(Case("a", "its own files", leave, leaves=True)) == ""
    assert trial.failure(Case("a", "what it finds", refuse, before=put)) == ""


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (Case("a", "accepted", lambda folder: 3), "no error; gave '3'"),
        (Case("a", "another error", lambda folder: 1 / 0), "ZeroDivisionError"),
        (Case("a", "an exit", lambda folder: exit(2)), "SystemExit"),
        (Case("a", "another word", refuse, says="--budget"), "'--budget' is not in"),
        (Case("a", "two lines", say("runs: -1 given\nit must be more")), "2 lines"),
        (Case("a", "long", say("x" * 601)), "over 600"),
        (Case("a", "escape", say("\x1b[2J")), "unprintable"),
        (Case("a", "a warning", warn), "said before the error: RuntimeWarning: overflow"),
        (Case("a", "a folder stays", leave), "left behind"),
        (Case("a", "a file is changed", change, before=put), "left behind or changed"),
        (Case("a", "refused though right", refuse, works=True), "refused: runs"),
    ],
    ids=lambda x: x.name if isinstance(x, Case) else "",
)
def test_what_fails(case: Case, said: str) -> None:
    assert said in trial.failure(case)


def test_a_case_that_hangs_is_ended_and_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "OTHERWISE", 0.05)
    began = time.perf_counter()
    assert "hung" in trial.failure(Case("a", "a hang", lambda folder: time.sleep(30)))
    assert time.perf_counter() - began < 5
    assert "took 0.1 s" in trial.failure(Case("a", "slow", lambda folder: (time.sleep(0.09), refuse(folder))))


def test_the_table_counts_by_area() -> None:
    lines = trial.table([(Case("a", "x", refuse), ""), (Case("b", "y", refuse), "why")])
    assert [line.split("|")[1:] for line in lines[1:4]] == [
        ["     1 ", "      1"],
        ["     1 ", "      0"],
        ["     2 ", "      1"],
    ]
    assert lines[4] == "failed: b: y: why"


@pytest.mark.integration
def test_a_part_of_all_cases() -> None:
    cases = trial.all_cases()[::25]
    said = [(case.area, case.name, trial.failure(case)) for case in cases]
    assert [line for line in said if line[2]] == []
