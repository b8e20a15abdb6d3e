"""Text of CSV files and of terminals: numbers, gaps, and names of strangers."""

from __future__ import annotations

import sys
import unicodedata

import numpy as np
import pytest

from jaxbandits._tables import Table, cell, line


def test_cells_are_the_same_bytes_for_the_same_values() -> None:
    row = [np.float64(0.1) + 0.2, float("nan"), None, True, 3, "-x", "a,b", float("inf")]
    assert Table(["n"] * len(row), [row]).csv() == 'n,n,n,n,n,n,n,n\n0.3,,,yes,3,\'-x,"a,b",inf\n'


def test_text_of_our_own_stands_as_it_is_and_comes_back() -> None:
    assert (
        Table(["a"], [["-0.5"], [0.1 + 0.2]]).csv(digits=None, line_end="\r\n")
        == "a\r\n-0.5\r\n0.30000000000000004\r\n"
    )


def test_no_rows_leave_the_header() -> None:
    assert Table(("a", "b"), []).csv() == "a,b\n"


def test_nothing_that_a_terminal_obeys_is_left_of_any_character():
    for code in range(sys.maxunicode + 1):
        x = line(chr(code))
        assert x.isprintable() or x == "\u00a0", hex(code)
        assert unicodedata.category(x[0]) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
        x.encode()  # lone surrogates cannot be written


@pytest.mark.parametrize(
    "text", ["plain", "ρ = 0.25", "naïve – ‘x’", "日本語", "a\\b", "😀", " two  spaces "]
)
def test_what_can_be_seen_stays(text):
    assert line(text) == cell(text) == text


FORMULAS = [
    *("=cmd()|x", "@SUM(A1)", "+1", "-x", "  =1+1", "＝1", "'=1", "' =1", "a;=cmd()"),
    *("\u00a0=1", "=\x1b[0m"),
]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_is_a_formula(text):
    cell_text = cell(text)
    for part in cell_text.split(";"):
        assert part.strip().strip("\u00a0")[:1] not in tuple("=+-@＝＋－＠")
    assert cell_text.replace("'", "") == line(text).replace("'", "")
    assert (
        cell(cell_text) != cell_text or ";" in text
    )  # a name that is already so is told from this one


@pytest.mark.parametrize("text", ["\t=1", "\r=1", "\n=1", "\x00=1", "\u202e=1", "\u2028=1"])
def test_invisible_characters_before_a_formula_are_written_out(text):
    assert cell(text).startswith("\\")


def test_numbers_are_left_alone():
    assert cell(-0.5) == -0.5 and cell(None) is None and cell("x\ny") == "x\\ny"
