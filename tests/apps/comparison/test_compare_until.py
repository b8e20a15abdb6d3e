"""`compare` until it is clear: the bits of one run of that length, the bound of what a run can
earn, words, options.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.apps.comparison import (
    ArmsTable,
    Comparison,
    Instance,
    StoppingRule,
    answer_of,
    markdown,
    stopping,
)
from jaxbandits.apps.comparison.plan import prepare
from jaxbandits.apps.comparison.stopping import most_earned
from jaxbandits.policies import OmegaUCB

ADS = Instance("ads", ("a", "b"), np.array([0.4, 0.1]), np.array([0.5, 0.9]), 1.0, 1.0, None)
TABLE = ArmsTable("means", (ADS,), (), "reward", "cost")
POLICIES = OmegaUCB(rho=[0.25, 1e4])
COUNTS = "name,clicks,spent,conversions\na,400,200,80\nb,300,240,15\n"


@pytest.fixture(scope="module")
def clear() -> Comparison:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stopping, "_SMALLEST_BATCH", 10)
        return jb.compare(TABLE, 20.0, POLICIES, until="clear", max_runs=200, marks=2)


def test_it_stops_early_with_the_bits_of_one_run_of_that_length(clear: Comparison) -> None:
    clearance = clear.clear
    assert (
        clearance is not None
        and clearance.is_reached
        and clearance.rule == StoppingRule("clear", "any", 200)
    )
    assert clear.plan.runs == clearance.runs == 10 * clearance.looks < 200
    assert (
        clearance.runs - 10 < clearance.pairs.most[0, 1] <= clearance.runs
        and clearance.pairs.most[1, 0] == 0
    )
    whole = jb.compare(TABLE, 20.0, POLICIES, runs=clearance.runs, marks=2)
    assert whole.data.identical(clear.data) and whole.clear is None
    assert whole.table() == clear.table() and whole.csv() == clear.csv()
    assert whole.accounts is not None and clear.accounts is not None
    np.testing.assert_array_equal(whole.accounts.pulls, clear.accounts.pulls)


def test_where_means_are_drawn_batches_have_the_same_bits_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ads.csv").write_text(COUNTS)
    monkeypatch.setattr(stopping, "_SMALLEST_BATCH", 6)
    comparison = jb.compare(
        tmp_path / "ads.csv", 8.0, POLICIES, until="clear", claim="average", max_runs=15, marks=2
    )
    # 6, 6, and 6 that overlap
    assert (
        comparison.clear is not None
        and not comparison.clear.is_reached
        and comparison.clear.looks == 3
    )
    whole = jb.compare(tmp_path / "ads.csv", 8.0, POLICIES, runs=15, marks=2)
    assert comparison.plan.worlds.posterior is not None and whole.data.identical(comparison.data)


def test_what_is_told(clear: Comparison) -> None:
    assert clear.clear is not None
    runs, after = clear.clear.runs, int(clear.clear.pairs.most[0, 1])
    text = markdown(answer_of(clear))
    assert f"Until clear: every pair is clear after {runs} of at most 200 runs" in text
    assert f"less in most runs (clear after {after})" in text
    about = json.loads(json.dumps(clear.about()))["until"]
    assert about["clear_after"]["most_runs"] == [[0, after], [0, 0]]
    assert about["reached"] and about["runs"] == runs


def pairs(majority: Any, average: Any) -> Any:
    import xarray

    arrays = (
        xarray.DataArray(np.array(part), dims=("setting", "against"))
        for part in (majority, average)
    )
    return jb.statistics.ClearPairs(*arrays)


def test_what_counts_as_clear() -> None:
    ahead = pairs([[0, 5, 9], [0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0], [0, 7, 0]])
    assert StoppingRule("clear").is_reached(ahead)
    assert StoppingRule("best").is_reached(ahead)
    assert StoppingRule("best", "most runs").is_reached(ahead)
    assert not StoppingRule("clear", "most runs").is_reached(ahead)
    assert not StoppingRule("best", "average").is_reached(ahead)
    # In a circle
    mixed = pairs([[0, 5, 0], [0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 4], [3, 0, 0]])
    assert StoppingRule("clear").is_reached(mixed) and not StoppingRule("best").is_reached(mixed)


def test_batches_are_few_and_of_one_size() -> None:
    assert [StoppingRule("clear").batch(runs) for runs in (20, 1000, 4000, 10**6)] == [
        20,
        25,
        100,
        250,
    ]


def test_no_run_earns_more_than_the_bound() -> None:
    plan = prepare(TABLE, 20.0, OmegaUCB(rho=0.25), runs=300, marks=1)
    comparison = jb.comparison.run_plan(plan)
    bound, reward = most_earned(plan), comparison.data["reward"].values
    # the best arm earns 16 of 20 on average; its sum over the run has a standard deviation of about
    # 5.3 with coins
    assert reward.max() < bound < 16 + 6 * 5.3 + 4
    assert most_earned(prepare(TABLE, 2000.0, OmegaUCB(rho=0.25), runs=3)) < 1.25 * 1600
    assert (reward > 18).any()  # so no bound of the mean's size would do


def test_the_bound_counts_what_may_be_drawn_and_rounds(tmp_path: Path) -> None:
    (tmp_path / "ads.csv").write_text(COUNTS)
    uncertain, certain = (
        most_earned(prepare(tmp_path / "ads.csv", 50.0, OmegaUCB(), uncertainty=u))
        for u in ("means", "given")
    )
    assert certain < uncertain < 4 * certain
    rounds = prepare(TABLE, 20.0, OmegaUCB(rho=1.0), average_cost=0.1)
    assert rounds.spending.rounds == 200 and 80 < most_earned(rounds) < 130
    (tmp_path / "log.csv").write_text(
        "name,reward,cost\n" + "".join(f"{arm},{x},{x + 1}\n" for arm in "ab" for x in (0, 3))
    )
    log = prepare(tmp_path / "log.csv", 100.0, OmegaUCB())
    assert log.worlds.posterior is not None and most_earned(log) == pytest.approx(0.75 * 104)
    (tmp_path / "free.csv").write_text(
        "name,reward,cost\n" + "".join(f"{arm},{x},{x}\n" for arm in "ab" for x in (0, 3))
    )
    assert most_earned(prepare(tmp_path / "free.csv", 100.0, OmegaUCB())) == pytest.approx(103)
