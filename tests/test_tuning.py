"""Tuning by gradient, worst instances, and the command."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxbandits as jb
from experiments import worst_instances
from jaxbandits.gradients import exact
from jaxbandits.policies import MUCB, BudgetedThompson, OmegaUCB, SoftElim
from jaxbandits.tuning import FILES, fixed_problem, random_problem, tune
from tests.apps.commands import command

KEY = jax.random.key(0)


@pytest.mark.integration
def test_tuning_improves_a_bad_start_clearly(tmp_path: Path) -> None:

    def problem(key: jax.Array, count: int) -> tuple[jb.environments.FiniteArms, jb.Horizon]:
        means = np.asarray(jax.random.uniform(key, (count, 2)), np.float64)
        return jb.environments.FiniteArms.bernoulli(means, np.ones_like(means)), jb.Horizon(100)

    tuning = tune(
        SoftElim(theta=4.0), problem, wrt="theta", key=KEY, steps=10, instances=64,
        fresh=256, grid=(0.5, 1.0, 4.0), grid_instances=64,
    )  # fmt: skip
    assert tuning.over_start.low > 0
    assert tuning.values["theta"] < 2.0
    assert repr(tuning).startswith("tuned: theta = ")
    assert tuning.best is not None and tuning.best["theta"] < 4.0
    assert tuning.path.shape == (11, 1) and tuning.path[0, 0] == 4.0
    assert tuning.rounds[0] == 10 * 64 * 2 * 100 and tuning.rounds[1] == 3 * 64 * 100
    assert [path.name for path in tuning.save(tmp_path)] == list(FILES)
    saved = json.loads((tmp_path / "run.json").read_text())
    assert saved["values"] == tuning.values and saved["path"] == tuning.path.tolist()


def test_smoothed_tuning_is_reproducible_and_takes_any_optimizer() -> None:
    import optax

    problem = random_problem("bernoulli", arms=3, budget=50.0)
    tunings = [
        tune(
            OmegaUCB(rho=1.0),
            problem,
            wrt="rho",
            key=KEY,
            steps=2,
            instances=4,
            fresh=4,
            optimizer=optax.sgd(0.1),
        )
        for _ in range(2)
    ]
    np.testing.assert_array_equal(tunings[0].path, tunings[1].path)
    assert tunings[0].estimator == "smoothed"
    assert tunings[0].regret.warnings[0].startswith("few units: 4 instances")
    for gain, words in ((2.0, 1.0, 3.0), "2 [1, 3] less"), ((-2.0, -3.0, 0.5), "2 [-0.5, 3] more"):
        altered = dataclasses.replace(tunings[0], over_start=jb.statistics.Estimate(*gain, 4, ()))
        assert words in repr(altered)  # a difference without a double negative


def test_a_value_that_is_clearly_worse_than_the_start_is_no_headline() -> None:
    """An optimiser that climbs: the result is the start, and the picture says the same."""
    import optax

    tuning = tune(
        OmegaUCB(rho=0.25), random_problem("bernoulli", arms=5, budget=200.0), wrt="rho", key=KEY,
        steps=3, instances=8, fresh=200, optimizer=optax.sgd(-6.0),
    )  # fmt: skip
    assert tuning.tuned["rho"] > 0.5 and tuning.over_start.high < 0
    assert tuning.values == tuning.start == {"rho": 0.25}
    assert float(tuning.policy.rho) == 0.25
    assert tuning.regret.value == pytest.approx(tuning.fresh_regrets[1])
    first, second, *_ = tuning.lines()
    assert first.startswith("keep the start: rho = 0.25 (tuned to ") and "clearly worse" in first
    assert f"{tuning.regret.value:.5g}" in second
    assert any("more than the start's (paired, clear)" in line for line in tuning.lines())
    assert tuning.fresh_regrets[1] - tuning.fresh_regrets[0] == pytest.approx(
        tuning.over_start.value
    )


def test_the_picture_shows_all_that_was_compared_and_cuts_nothing() -> None:
    tuning = tune(
        OmegaUCB(rho=1.0), random_problem("bernoulli", arms=3, budget=50.0), wrt="rho", key=KEY,
        steps=2, instances=4, fresh=20, grid=(0.1, 1.0, 4.0), grid_instances=20,
    )  # fmt: skip
    figure = tuning.picture()
    right = figure.axes[1]
    figure.canvas.draw()  # type: ignore[attr-defined]
    markers = {id(line): line for box in right.containers for line in [box.lines[0]]}
    markers |= {id(line): line for line in right.lines}
    points = [x.get_xydata()[0] for x in markers.values() if x.get_marker() in {"o", "s", "D"}]
    bars = [x for box in right.containers for x in box.lines[2][0].get_segments()]
    assert len(points) == len(bars) + 1 == 3
    low, high = right.get_window_extent().intervalx
    for point in points:
        x, _ = right.transData.transform(point)
        assert low + 5 < x < high - 5  # a marker is four points wide
    gains = [x for x in (tuning.over_start, tuning.over_best) if x is not None]
    for (start, end), gain in zip(bars, gains, strict=True):
        np.testing.assert_allclose([start[1], end[1]], [gain.low, gain.high])
    for title in (axes.title for axes in figure.axes):
        box = title.get_window_extent()
        assert box.x0 >= 0 and box.x1 <= figure.bbox.x1


@pytest.mark.parametrize(
    "options",
    [
        {"wrt": "alpha"},
        {"steps": 0},
        {"grid": [-1.0]},
        {"fresh": 1},
        {"grid": [[1.0, 2.0]]},
        {"policy": BudgetedThompson()},
    ],
)
def test_bad_input_is_refused(options: dict) -> None:
    arguments = {"policy": OmegaUCB(), "wrt": "rho", "key": KEY} | options
    with pytest.raises(jb.InputError):
        tune(problem=random_problem("beta", 3), **arguments)


def test_a_problem_of_fixed_instances_draws_from_them() -> None:
    arms = jb.environments.FiniteArms.bernoulli([[0.5, 0.4], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]])
    instances, _ = fixed_problem(arms, jb.Horizon(5))(jax.random.key(5), 20)
    assert set(map(tuple, instances.values()[0])) == set(map(tuple, arms.values()[0]))


@pytest.mark.integration
def test_the_worst_instance_is_about_as_bad_as_a_grid_can_find() -> None:
    policy, horizon = SoftElim(theta=1.0), jb.Horizon(15)
    axis = np.linspace(0.05, 0.95, 31)
    first, second = (x.ravel() for x in np.meshgrid(axis, axis))
    means = np.stack([first, second], axis=1)
    grid = jb.environments.FiniteArms.bernoulli(means, np.full_like(means, 0.5))
    largest = exact.estimate(policy, grid, horizon, wrt="mean_reward").value.max()
    worst = worst_instances.search(
        policy,
        horizon,
        arms=2,
        key=KEY,
        over="mean_reward",
        restarts=4,
        steps=25,
        replicates=200,
        check=2000,
    )
    assert (np.diff(worst.objective) <= 0).all()
    assert worst.objective[0] > 0.95 * largest
    assert worst.objective[0] < largest + 4 * worst.standard_error[0] + 0.02
    assert worst.objective.mean() > worst.start.mean()


@pytest.mark.integration
def test_a_gap_between_two_policies_is_zero_for_one_policy() -> None:
    budget = jb.TotalBudget(5.0, last_pull="counts")
    worst = worst_instances.search(
        MUCB(), budget, arms=2, key=KEY, against=MUCB(), restarts=2, steps=1, replicates=4, check=8
    )
    assert (worst.objective == 0).all()


@pytest.mark.integration
def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    line = "tune --policy omega_ucb --k 3 --budget 40 --steps 2 --instances 4 --fresh 4 --grid 3"
    assert command(f"{line} --out {out}") == 0
    output = capsys.readouterr().out
    assert "tuned: rho = " in output and "best of 3 grid values" in output
    assert all((out / name).stat().st_size > 0 for name in FILES)


def test_one_constraint_serves_instances_that_are_drawn() -> None:
    """A value for each instance would meet another one's."""
    arms = jb.environments.FiniteArms.bernoulli([[0.5, 0.4]] * 3, [[0.5, 0.4]] * 3)
    for constraint in (
        jb.AverageCost(c=[0.5, 0.6, 0.9], rounds=9),
        jb.TotalBudget([1.0, 2.0, 3.0], last_pull="counts"),
    ):
        with pytest.raises(jb.InputError, match=r"constraint: .* same number for all instances"):
            fixed_problem(arms, constraint)
