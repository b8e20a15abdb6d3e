"""Text of CSV files: numbers, gaps and names of others."""

from __future__ import annotations

import numpy as np

from jaxbandits._tables import Table


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
