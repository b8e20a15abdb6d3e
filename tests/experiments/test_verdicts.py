"""Every rule says no to data that contradict it; unclear where data cannot tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray

from experiments.b_zoom.tables import COLUMNS, best_column, inside, lead_grows
from experiments.common import (
    BY_CONSTRUCTION,
    OURS,
    Experiment,
    Options,
    Row,
    all_of,
    is_within,
    row,
)
from experiments.gradients import agreement, gain
from experiments.omega_ucb import figures as statements
from experiments.omega_ucb.figures import _best_rho
from experiments.omega_ucb.intervals import SIZES, TYPES, _of_type
from experiments.omega_ucb.play import MARKS, RHOS, SETTINGS, Curves, omega, omega_star
from experiments.rcb import EXPERIMENT as RCB
from experiments.rcucb import EXPERIMENT as RCUCB
from experiments.rcucb import _gap, estimate

UNITS = 80


def curves(
    powers: dict[str, tuple[float, float]], noise: float = 5.0, setting: str = "S-Br-10"
) -> Curves:
    """Regrets 100·level·share^power, by name a (level, power), with noise by instance."""
    random = np.random.default_rng(0)
    coords = {"instance": np.arange(UNITS), "replicate": [0], "mark": MARKS}
    data = {}
    for name, (level, power) in powers.items():
        values = (100 * level + random.normal(0, noise, (UNITS, 1, 1))) * MARKS**power
        data[name] = xarray.DataArray(values, dims=("instance", "replicate", "mark"), coords=coords)
    return Curves(SETTINGS[setting], data, data)


def answers(*rows: Row) -> list[str]:
    return [line.verdict for line in rows]


def test_asymptotics_can_be_refuted_up_to_the_budget() -> None:
    runs = curves({"a": (1, 0.2), "b": (1, 0.6), "c": (1, 0.2)})
    assert statements._faster("", "", runs, "b", "a", "").verdict == "yes"
    assert statements._faster("", "", runs, "a", "b", "").verdict == "no"
    assert statements._faster("", "", runs, "a", "c", "").verdict == "unclear"


@pytest.mark.parametrize(
    ("level", "noise", "verdict"),
    [(1.05, 5.0, "yes"), (2.0, 5.0, "no"), (1.0, 300.0, "unclear"), (0.5, 5.0, "no")],
)
def test_comparable_is_no_word_for_noise(level: float, noise: float, verdict: str) -> None:
    runs = curves({"m-UCB": (level, 0.5), omega(0.25): (1, 0.5)}, noise, "S-Bt-100")
    assert statements._comparable("S-Bt-100", runs, omega(0.25)).verdict == verdict


def test_what_is_equal_by_construction_is_not_a_finding() -> None:
    runs = curves({omega(0.25): (1, 0.5)})
    same = Curves(
        runs.setting, runs.regret | {omega_star(0.25): runs.regret[omega(0.25)]}, runs.share
    )
    assert statements._almost_equal("S-Br-10", same).verdict == BY_CONSTRUCTION
    for level, verdict in ((1.001, "yes"), (1.3, "no")):
        apart = curves({omega(0.25): (1, 0.5), omega_star(0.25): (level, 0.5)}, noise=0.1)
        assert statements._almost_equal("S-Br-10", apart).verdict == verdict


def test_easier_and_harder_have_intervals() -> None:
    ads, synthetic = (
        curves({"BTS": (x, 0.5), "m-UCB": (x, 0.5), omega(0.25): (1, 0.5)}) for x in (2, 4)
    )
    same = curves({"BTS": (2, 0.5), omega(0.25): (1, 0.5)}, noise=60)
    assert statements._relative("", "", ads, synthetic, "BTS").verdict == "yes"
    assert statements._relative("", "", synthetic, ads, "BTS").verdict == "no"
    assert statements._relative("", "", ads, synthetic, "m-UCB").verdict == "no"
    assert statements._relative("", "", same, same, "BTS").verdict == "unclear"


def test_regret_above_the_published_axis_is_a_no() -> None:
    level = SETTINGS["S-Br-10"].published_top / 100
    verdicts = [
        statements.magnitudes("S-Br-10", curves({omega(0.25): (x * level, 0.5)}))[0].verdict
        for x in (0.5, 1.5, 1.0)
    ]
    assert verdicts == ["yes", "no", "unclear"]


def test_the_best_rho_is_no_argmin() -> None:
    random = np.random.default_rng(1)
    valley = np.abs(np.log2(RHOS / 0.25))[:, None] * 50 + 100 + np.zeros((RHOS.size, 40))
    clear, noisy = (valley + random.normal(0, s, valley.shape) for s in (1.0, 400.0))
    best = np.flatnonzero(RHOS == 0.25)[0]
    # The least in the sample, by chance
    noisy[best] -= noisy[best].mean() - noisy.mean(axis=1).min() + 1
    assert _best_rho("", "S-Br", "ω-UCB", clear).verdict == "yes"
    assert _best_rho("", "S-Br", "ω-UCB", noisy).verdict == "unclear"
    assert _best_rho("", "S-Br", "ω-UCB", np.roll(clear, 1, axis=0)).verdict == "no"


def test_a_type_of_interval_is_judged_by_all_its_members() -> None:
    broken = {name: [0.15] * len(SIZES) for name in TYPES}
    assert _of_type("united", "u", broken, 10_000).verdict == "yes"
    assert (
        _of_type("united", "u", broken | {"UCB-SC+": [0.001] * len(SIZES)}, 10_000).verdict == "no"
    )
    assert (
        _of_type("united", "u", broken | {"UCB-SC+": [0.011] * len(SIZES)}, 10_000).verdict
        == "unclear"
    )


def test_a_gap_is_none_where_rcucb_loses() -> None:
    random = np.random.default_rng(2)
    ours = 100 + random.normal(0, 2, (3, 60))

    def of(*ratios: float, noise: float = 2.0) -> str:
        theirs = 100 * np.array(ratios)[:, None] + random.normal(0, noise, (3, 60))
        return _gap("UCB", ours, theirs).verdict

    assert of(5.6, 6.6, 4.5) == "yes"
    assert of(0.65, 1.12, 0.37) == "no"  # larger with correlation, but RCUCB loses
    assert of(2.0, 2.0, 4.0) == "no"
    assert of(1.5, 1.5, 1.5, noise=150.0) == "unclear"


def test_a_published_share_is_not_met_by_being_near() -> None:
    values = 0.7671 + np.random.default_rng(3).normal(0, 0.002, 100)
    # 0.003 apart at a standard error of 0.0002
    assert estimate("", 0.77, values, "").verdict == "no"
    assert estimate("", 0.7671, values, "").verdict == "yes"
    assert estimate("", "", values, "").verdict == "unclear"


@pytest.mark.parametrize(
    ("experiment", "published"), [(RCUCB, "0.7993"), (RCB, "≤ 0.77 (upper bound)")]
)
def test_small_runs_do_not_judge_large_claims(
    experiment: Experiment, published: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    name = "fig4" if experiment is RCUCB else "regret"
    item_rows = [
        row("table: share", 0.5, published=published, holds=False),
        row("asked by us", 0.5, published=OURS, holds=True),
    ]
    monkeypatch.setitem(experiment.items, name, lambda options: item_rows)  # type: ignore[arg-type]
    small = experiment.run(Options(quick=True, only=name, out=tmp_path))
    whole = experiment.run(Options(full=True, only=name, out=tmp_path))
    assert answers(*small)[0] == "unclear" and answers(*whole)[:2] == ["no", "yes"]


def columns(**means: float) -> dict[str, np.ndarray]:
    """Pulls ``[budget, λ, instance]``; means of BZ by budget: ``at=…``, the others' 100."""
    random = np.random.default_rng(4)
    pulls = {name: 100 + random.uniform(0, 1, (2, 3, 100)) for name in COLUMNS}
    pulls["BZ"] = pulls["BZ"] + np.array([means["first"], means["last"]])[:, None, None]
    return pulls


def test_the_lead_of_b_zoom_must_grow_clearly_and_beyond_ten_percent() -> None:
    budgets = (50_000, 500_000)
    assert answers(*lead_grows(columns(first=1, last=20), "m", budgets)) == ["yes", "yes", "yes"]
    assert answers(*lead_grows(columns(first=20, last=1), "m", budgets)) == ["no", "no", "no"]
    assert answers(*lead_grows(columns(first=5, last=5), "m", budgets)) == ["unclear", "no", "no"]
    assert answers(*lead_grows(columns(first=5, last=5.01), "m", budgets))[0] == "unclear", (
        "a larger number is not enough"
    )
    at_q1 = lead_grows(columns(first=1, last=20), "Q1", budgets)
    assert [line.published for line in at_q1] == [OURS]  # the paper says it of the minimum alone


def test_most_cells_are_counted_by_intervals() -> None:
    cells: tuple[Any, ...] = ("Q2", (1, 2), (0.1, 0.2, 0.5))
    assert best_column("", "", "BZ", columns(first=5, last=5), *cells).verdict == "yes"
    assert best_column("", "", "BZ", columns(first=-5, last=-5), *cells).verdict == "no"
    assert best_column("", "", "BZ", columns(first=0, last=0), *cells).verdict == "unclear"


def test_cells_may_miss_by_chance_only() -> None:
    z = np.random.default_rng(5).normal(size=400)
    z[np.abs(z) > 3] = 0
    assert inside("", np.append(z, 3.1), "").verdict == "yes"
    assert inside("", np.append(z, [3.5] * 20), "").verdict == "no"


def test_a_large_z_is_played_again() -> None:
    z = np.random.default_rng(6).normal(size=200).clip(-3, 3)
    large = np.append(z, 4.45)
    assert agreement("", z, np.empty(0)).verdict == "yes"
    assert agreement("", large, np.array([0.3])).verdict == "yes"
    assert agreement("", large, np.array([3.2])).verdict == "no"


def test_tuning_is_judged_over_keys() -> None:
    near = np.array([0.01, -0.02, 0.0, 0.02])
    worse = np.array([-0.5, -0.4, -0.45, -0.5])
    wild = np.array([0.4, -0.6])
    assert [gain("", x, -0.1, "").verdict for x in (near, worse, wild)] == ["yes", "no", "unclear"]
    assert gain("", np.array([0.3]), -0.1, "").verdict == "unclear"


def test_limits_and_joint_statements() -> None:
    assert [is_within(x, 0.1, 0, 1) for x in (0.5, 1.5, 1.0)] == [True, False, None]
    assert is_within(0.5, 0.4, 0, 1) is None, "noise makes no yes"
    assert (all_of([True, None]), all_of([True, None, False]), all_of([True, True])) == (
        None,
        False,
        True,
    )
