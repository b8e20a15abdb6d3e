"""Any ASlib scenario of run times can be read, with the cut-off that its description says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.rcucb import read_scenario
from jaxbandits.core.checks import InputError

DESCRIPTION = """scenario_id: MADE-UP
performance_measures:
  - {measure}
maximize:
  - false
performance_type:
  - {kind}
algorithm_cutoff_time: {cutoff}
algorithm_cutoff_memory: 4096
"""
RUNS = """@RELATION algorithm_runs_made_up

@ATTRIBUTE instance_id STRING
@ATTRIBUTE repetition NUMERIC
@ATTRIBUTE algorithm STRING
@ATTRIBUTE {measure} NUMERIC
@ATTRIBUTE runstatus {{ok, timeout, memout, not_applicable, crash, other}}

@DATA
% a comment
'inst, one',1,quick,2.5,ok
'inst, one',1,slow,7,ok
two,1,quick,100,timeout
two,1,slow,1.5,ok
two,2,quick,9,memout
two,2,slow,12,ok
"""


def folder(
    data: Path, name: str, cutoff: object = 10, kind: str = "runtime", measure: str = "runtime"
) -> None:
    place = data / "aslib" / name
    place.mkdir(parents=True)
    (place / "description.txt").write_text(
        DESCRIPTION.format(cutoff=cutoff, kind=kind, measure=measure)
    )
    (place / "algorithm_runs.arff").write_text(RUNS.format(measure=measure))


@pytest.mark.parametrize("measure", ["runtime", "PAR10"])
def test_a_scenario_as_aslib_ships_it(tmp_path: Path, measure: str) -> None:
    folder(tmp_path, "SAT18-EXP", measure=measure)
    scenario = read_scenario(tmp_path, "SAT18-EXP")
    assert (scenario.cutoff, scenario.solvers) == (10.0, ("quick", "slow"))
    # 12 s is too late
    np.testing.assert_array_equal(scenario.times, [[0.25, 0.7], [np.inf, 0.15], [np.inf, np.inf]])
    assert scenario.virtual_best == pytest.approx((2.5 + 1.5 + 100) / 3)
    assert scenario.single_best == pytest.approx((7 + 1.5 + 100) / 3)


def test_a_table_takes_its_cutoff_from_the_description_beside_it(tmp_path: Path) -> None:
    folder(tmp_path, "MIP-2016", cutoff=7200)
    (tmp_path / "aslib" / "MIP-2016.csv").write_text("instance,a,b\nx#1,3600,inf\nx#2,7201,72\n")
    scenario = read_scenario(tmp_path, "MIP-2016")
    assert (scenario.cutoff, scenario.solvers) == (7200.0, ("a", "b"))
    np.testing.assert_array_equal(scenario.times, [[0.5, np.inf], [np.inf, 0.01]])


def test_without_a_description_only_known_scenarios_have_a_cutoff(tmp_path: Path) -> None:
    (tmp_path / "aslib").mkdir()
    for name in ("QBF-2016", "MY-OWN"):
        (tmp_path / "aslib" / f"{name}.csv").write_text("instance,a,b\nx,900,inf\n")
    assert read_scenario(tmp_path, "QBF-2016").times[0, 0] == 0.5
    with pytest.raises(InputError, match=r"MY-OWN.*algorithm_cutoff_time"):
        read_scenario(tmp_path, "MY-OWN")
    with pytest.raises(InputError, match="NO-SUCH"):
        folder(tmp_path, "NO-SUCH")
        (tmp_path / "aslib" / "NO-SUCH" / "algorithm_runs.arff").unlink()
        read_scenario(tmp_path, "NO-SUCH")


@pytest.mark.parametrize(
    ("cutoff", "kind"), [("?", "runtime"), (0, "runtime"), (10, "solution_quality")]
)
def test_what_has_no_seconds_is_refused(tmp_path: Path, cutoff: object, kind: str) -> None:
    folder(tmp_path, "ODD", cutoff=cutoff, kind=kind)
    with pytest.raises(InputError, match="ODD"):
        read_scenario(tmp_path, "ODD")


def test_a_missing_run_is_said(tmp_path: Path) -> None:
    folder(tmp_path, "HOLES")
    runs = tmp_path / "aslib" / "HOLES" / "algorithm_runs.arff"
    runs.write_text(runs.read_text().replace("two,2,slow,12,ok\n", ""))
    with pytest.raises(InputError, match="two"):
        read_scenario(tmp_path, "HOLES")
