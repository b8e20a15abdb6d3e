"""A table of run times is read with the cut-off that ASlib's description says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.rcucb import read_scenario
from jaxbandits.core.checks import InputError

DESCRIPTION = """scenario_id: MADE-UP
performance_type:
  - {kind}
algorithm_cutoff_time: {cutoff}
algorithm_cutoff_memory: 4096
"""
TABLE = "instance,a,b\nx#1,3600,inf\nx#2,7201,72\ny,inf,inf\n"


def folder(data: Path, name: str, cutoff: object = 7200, kind: str = "runtime") -> None:
    place = data / "aslib" / name
    place.mkdir(parents=True)
    (place / "description.txt").write_text(DESCRIPTION.format(cutoff=cutoff, kind=kind))
    (data / "aslib" / f"{name}.csv").write_text(TABLE)


def test_a_table_takes_its_cutoff_from_the_description_beside_it(tmp_path: Path) -> None:
    folder(tmp_path, "MIP-2016")
    scenario = read_scenario(tmp_path, "MIP-2016")
    assert (scenario.cutoff, scenario.solvers) == (7200.0, ("a", "b"))
    # 7,201 s is too late
    np.testing.assert_array_equal(scenario.times, [[0.5, np.inf], [np.inf, 0.01], [np.inf] * 2])
    assert scenario.virtual_best == pytest.approx((3600 + 72 + 72_000) / 3)
    assert scenario.single_best == pytest.approx((72_000 + 72 + 72_000) / 3)


def test_without_a_description_only_known_scenarios_have_a_cutoff(tmp_path: Path) -> None:
    (tmp_path / "aslib").mkdir()
    for name in ("QBF-2016", "MY-OWN"):
        (tmp_path / "aslib" / f"{name}.csv").write_text("instance,a,b\nx,900,inf\n")
    assert read_scenario(tmp_path, "QBF-2016").times[0, 0] == 0.5
    with pytest.raises(InputError, match=r"MY-OWN.*algorithm_cutoff_time"):
        read_scenario(tmp_path, "MY-OWN")
    with pytest.raises(InputError, match="SAT20-MAIN"):
        read_scenario(tmp_path, "SAT20-MAIN")


@pytest.mark.parametrize(
    ("cutoff", "kind"), [("?", "runtime"), (0, "runtime"), (10, "solution_quality")]
)
def test_what_has_no_seconds_is_refused(tmp_path: Path, cutoff: object, kind: str) -> None:
    folder(tmp_path, "ODD", cutoff=cutoff, kind=kind)
    with pytest.raises(InputError, match="ODD"):
        read_scenario(tmp_path, "ODD")
