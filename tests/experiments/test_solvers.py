"""A table of run times is read in cut-offs, and a time beyond the cut-off is no solution."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.rcucb import read_scenario


def test_a_table_is_read_in_cutoffs(tmp_path: Path) -> None:
    (tmp_path / "aslib").mkdir()
    table = "instance,a,b\nx#1,3600,inf\nx#2,7201,72\ny,inf,inf\n"
    (tmp_path / "aslib" / "BNSL-2016.csv").write_text(table)
    scenario = read_scenario(tmp_path, "BNSL-2016")
    assert (scenario.cutoff, scenario.solvers) == (7200.0, ("a", "b"))
    # 7,201 s is too late
    np.testing.assert_array_equal(scenario.times, [[0.5, np.inf], [np.inf, 0.01], [np.inf] * 2])
    assert scenario.virtual_best == pytest.approx((3600 + 72 + 72_000) / 3)
    assert scenario.single_best == pytest.approx((72_000 + 72 + 72_000) / 3)
