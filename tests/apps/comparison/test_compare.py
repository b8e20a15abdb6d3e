"""`compare` in Python: units, noise, grouping, the labelled result. The command is in test_cli.py."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import statistics
from jaxbandits.apps._cli.compare import parser
from jaxbandits.apps.comparison import ArmsTable, Comparison, Instance, compare, plan, read_arms
from jaxbandits.apps.comparison.comparison import run_plan
from jaxbandits.apps.comparison.plan import prepare
from jaxbandits.apps.comparison.request import READING, Request
from jaxbandits.core.checks import InputError
from jaxbandits.policies import MUCB, BudgetedThompson, OmegaUCB

UCB = OmegaUCB(rho=0.25)


def instance(
    name: str, reward: Any, cost: Any, reward_bound: float = 1.0, cost_bound: float = 1.0
) -> Instance:
    arms, means = tuple(f"arm {k}" for k in range(len(reward))), np.array([reward, cost], float)
    return Instance(name, arms, *means, reward_bound, cost_bound, None)


def table(*instances: Instance) -> ArmsTable:
    return ArmsTable("means", instances, (), "reward", "cost")


SMALL = table(instance("one", [0.2, 0.5, 0.4], [0.5, 0.9, 0.25]))


def test_results_are_in_the_units_of_the_file() -> None:
    plain = compare(SMALL, 20.0, UCB, runs=6, marks=4).data
    scaled = instance("one", [1.4, 3.5, 2.8], [1.5, 2.7, 0.75], reward_bound=7.0, cost_bound=3.0)
    data = compare(table(scaled), 60.0, UCB, runs=6, marks=4).data
    np.testing.assert_array_equal(data["pulls"], plain["pulls"])
    np.testing.assert_allclose(data["reward"], 7 * plain["reward"], rtol=1e-6)
    np.testing.assert_allclose(data["regret"], 7 * plain["regret"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(data["spent"], 3 * plain["spent"], rtol=1e-6)


def test_a_comparison_is_simulate_with_labels() -> None:
    shares = [0.25, 0.5, 0.75, 1.0]
    comparison = compare(SMALL, 20.0, [UCB, MUCB()], runs=6, marks=4, seed=3)
    arms = jb.environments.FiniteArms.bernoulli([[0.2, 0.5, 0.4]], [[0.5, 0.9, 0.25]])
    budget = jb.TotalBudget(20.0, last_pull="counts")
    more: Any = {"key": jax.random.key(3), "replicates": 6, "marks": shares}
    result = jb.simulate([UCB, MUCB()], arms, budget, **more)
    assert list(comparison.data["setting"].values) == ["omega_ucb(rho=0.25)", "m_ucb(alpha=0.0625)"]
    assert list(comparison.data["mark"].values) == shares
    np.testing.assert_array_equal(comparison.data["reward"], result.reward.isel(mark=-1))
    np.testing.assert_array_equal(comparison.data["regret"], result.regret)
    assert comparison.data["regret"].dims == ("setting", "instance", "replicate", "mark")


def test_options_are_those_of_the_request_and_the_command_has_twenty_at_most() -> None:
    assert set(READING) == set(inspect.signature(read_arms).parameters) - {"source"}
    command = parser()
    arguments = vars(command.parse(["--arms", "x", "--budget", "1", "--policies", "bts"]))
    of_request = arguments.keys() & {field.name for field in dataclasses.fields(Request)}
    for name in of_request - {"drop"}:  # a list, to append to
        assert arguments[name] == getattr(Request(), name)
    assert len(command._actions) <= 21  # --help is one
    for function in (compare, prepare):
        with pytest.raises(TypeError, match="rnus"):
            function(SMALL, 20.0, UCB, rnus=3)


def several() -> ArmsTable:
    draw = np.random.default_rng(1)
    means = ((draw.uniform(0, 1, k), draw.uniform(0.3, 1, k)) for k in (3, 7, 3))
    return table(*(instance(f"i{n}", *x) for n, x in enumerate(means)))


@pytest.fixture(scope="module")
def together() -> Comparison:
    """Three instances of two widths in one batch."""
    policies = [OmegaUCB(rho=[0.25, 1.0]), BudgetedThompson()]
    return compare(several(), 15.0, policies, runs=5, marks=3)


@pytest.mark.integration
def test_together_or_alone_gives_the_same_bits(together: Comparison) -> None:
    instance = several().instances[1]
    alone = jb.simulate(
        [OmegaUCB(rho=[0.25, 1.0]), BudgetedThompson()],
        jb.environments.FiniteArms.bernoulli(instance.mean_reward, instance.mean_cost),
        jb.TotalBudget(15.0, last_pull="counts"),
        key=jax.random.key(0),
        replicates=5,
        marks=[1 / 3, 2 / 3, 1.0],
        instance_ids=[1],
    )
    np.testing.assert_array_equal(together.data["reward"][:, 1], alone.reward.values[:, 0, :, -1])


def test_blocks_change_no_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ads.csv").write_text("name,clicks,spent,conversions\na,400,200,80\nb,300,240,15\n")
    prepared = prepare(tmp_path / "ads.csv", 8.0, UCB, runs=7, marks=2)
    whole = run_plan(prepared)
    monkeypatch.setattr(plan, "_RUNS_AT_ONCE", 3)
    again = run_plan(prepared)
    assert plan.block_size(prepared) == 3 and again.data.identical(whole.data)
    for name in ("pulls", "mean_reward", "mean_cost", "earned"):
        mine, theirs = (getattr(x.accounts, name) for x in (again, whole))
        np.testing.assert_array_equal(mine, theirs)


def test_rows_of_the_table(together: Comparison) -> None:
    rows = together.table()
    assert [row["scope"] for row in rows] == ["overall"] * 3 + ["instance"] * 9
    for at, part in ((0, slice(None)), (6, slice(1, 2))):  # all instances, and the second one
        reward = together.data["reward"].isel(instance=part)
        settings, block = list(reward["setting"].values), rows[at : at + 3]
        table = statistics.dominance(reward, over="replicate")
        means = reward.mean(("instance", "replicate"))
        best = settings.index(block[0]["setting"])
        assert [row["rank"] for row in block] == [1, 2, 3]
        assert [row["reward"] for row in block] == pytest.approx(sorted(means.values)[::-1])
        for row in block:
            pair = table.isel(setting=settings.index(row["setting"]), against=best)
            assert row["difference_low"] == pytest.approx(float(pair["low"]))
            assert row["reward_low"] <= row["reward"] <= row["reward_high"]
            assert row["difference_clear"] == bool(pair["clear"])


def test_what_a_few_runs_carry_is_said_and_what_none_can_show(together: Comparison) -> None:
    assert together.doubts() == []
    data = together.data.copy(deep=True)
    data["regret"][1, 0, 2, -1] = 1e6
    changed = dataclasses.replace(together, data=data)
    (doubt,) = changed.doubts()
    assert "omega_ucb(rho=1)" in doubt and "1 of 15 runs" in doubt
    assert changed.about()["warnings"] == [doubt] and "5 runs" in changed.about()["invisible"]
    alone = compare(SMALL, 20.0, UCB, runs=6, marks=4)
    assert "6 runs are too few" in alone.doubts()[0]


def test_a_log_is_resampled_by_rows(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = "".join(f"{arm},{x},{x}\n" for arm in "ab" for x in (0, 2, 3, 8))
    path.write_text("name,reward,cost\n" + rows)
    plan = prepare(path, 100.0, UCB, runs=4)
    assert plan.worlds.noise == "empirical" and plan.table.instances[0].cost_bound == 8
    data = run_plan(plan).data
    np.testing.assert_array_equal(data["reward"], data["spent"])  # drawn together
    assert prepare(path, 100.0, UCB, noise="bernoulli").worlds.noise == "bernoulli"


def test_a_parameter_per_instance_goes_with_its_instance(together: Comparison) -> None:
    prepared = prepare(several(), 15.0, OmegaUCB(rho=np.array([[4.0, 0.25, 1.0]])), runs=5, marks=3)
    (record,) = prepared.played.records.values()
    assert record["parameters"] == {"OmegaUCB.rho": [4.0, 0.25, 1.0]}
    rewards, others = run_plan(prepared).data["reward"], together.data["reward"]
    for row, rho in ((1, "0.25"), (2, "1")):
        same = others.sel(setting=f"omega_ucb(rho={rho})")[row]
        np.testing.assert_array_equal(rewards[0, row], same)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"runs": True}, "runs: True given"),
        ({"budget": 1e-9}, "budget: 1e-09 given; it must be from"),
        ({"policies": []}, "policies: .* given; it must be a policy"),
        ({"policies": OmegaUCB(rho=np.ones((2, 3)))}, r"OmegaUCB.rho: .* \(2, 3\) given"),
        ({"growth": "two"}, "growth: 'two' given"),
        ({"growth": 0.0}, "growth: 0.0 given"),
        ({"decide": "daily"}, "decide: 'daily' given; it must be 'per-click'"),
        ({"noise": "empirical"}, "noise: 'empirical' given; it must be 'bernoulli'"),
        ({"decimal": ","}, "decimal: given with an ArmsTable"),
        ({"cost_cv": 0.3}, "cost_cv: 0.3 given; it must be left out"),
        ({"arms": table(instance("x", [0.1, 0.5], [0.5, 1e-9]))}, "arm 'arm 1', mean cost: below"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(changes: dict[str, Any], message: str) -> None:
    """What the command passes on too is in cli/test_bad_values.py."""
    arguments: dict[str, Any] = {"arms": SMALL, "budget": 20.0, "policies": UCB} | changes
    with pytest.raises(InputError, match=message) as caught:
        prepare(**arguments)
    assert "\n" not in str(caught.value)
