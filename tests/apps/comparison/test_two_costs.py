"""A file of two costs, money and tokens, say: each has a budget in its own unit."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

import jaxbandits as jb
from jaxbandits.apps.comparison import Comparison, answer_of, compare, prepare, read_arms
from jaxbandits.policies import FixedSplit, OmegaUCB, PrimalDualBwK, ThompsonLP, UCBBwK

QUALITY, USD, TOKENS = (0.5, 0.7, 0.9), (0.002, 0.01, 0.04), (900, 700, 1500)
COLUMNS, BUDGETS = {"name": "model", "cost": "usd", "cost2": "tokens"}, [1.5, 90_000.0]


def log(path: Path, of_tokens: int = 1) -> Path:
    rng, rows = np.random.default_rng(1), ["model,reward,usd,tokens"]
    for arm in rng.integers(3, size=300):
        usd, tokens = USD[arm] * rng.gamma(4) / 4, int(TOKENS[arm] * rng.gamma(3) / 3) + 1
        rows.append(f"m{arm},{int(rng.random() < QUALITY[arm])},{usd:.6f},{tokens * of_tokens}")
    path.write_text("\n".join(rows) + "\n")
    return path


def means(path: Path) -> Path:
    rows = [
        f"m{k},{q},{u},{t}" for k, (q, u, t) in enumerate(zip(QUALITY, USD, TOKENS, strict=True))
    ]
    path.write_text("\n".join(["name,mean_reward,mean_cost,tokens", *rows]) + "\n")
    return path


def compared(path: Path, budgets: list[float] = BUDGETS, **options: object) -> Comparison:
    policies = [ThompsonLP(), UCBBwK(), PrimalDualBwK(), FixedSplit([1.0, 1.0, 1.0])]
    return compare(path, budgets, policies, runs=8, last_pull="forfeits", **options)


def test_money_and_tokens_are_read_beside_each_other(tmp_path: Path) -> None:
    table = read_arms(log(tmp_path / "log.csv"), columns=COLUMNS)
    (instance,) = table.instances
    with (tmp_path / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    for arm, name in enumerate(instance.arms):
        costs = np.array(
            [(float(x["usd"]), float(x["tokens"])) for x in rows if x["model"] == name]
        )
        np.testing.assert_allclose(instance.mean_cost[arm], costs.mean(0), rtol=1e-12)
        assert np.array_equal(instance.log[arm][1], costs)  # type: ignore[index]
    assert instance.cost_bound[1] == max(float(x["tokens"]) for x in rows)  # type: ignore[index]
    assert table.spent_units == {"spent": "cost", "spent2": "tokens"}
    (tmp_path / "gap.csv").write_text(
        "model,reward,usd,tokens\na,1,0.1,5\na,0,0.1,\nb,1,0.2,7\nb,1,0.2,9\n"
    )
    gap = read_arms(tmp_path / "gap.csv", columns=COLUMNS)
    assert any("gaps: line 3" in note for note in gap.notes)
    assert gap.instances[0].mean_cost[0].tolist() == [0.1, 5]
    (tmp_path / "counts.csv").write_text(
        "Campaign,Clicks,Cost,Conversions,Minutes\na,10,50,3,40\nb,8,90,6,20\n"
    )
    counts = read_arms(tmp_path / "counts.csv", columns={"name": "Campaign", "cost2": "Minutes"})
    assert counts.instances[0].mean_cost.tolist() == [[5.0, 4.0], [11.25, 2.5]]


@pytest.mark.parametrize("kind", ["log", "means"])
@pytest.mark.quick_rows("means")
def test_no_budget_is_overspent_and_regret_is_against_the_fluid_program(
    tmp_path: Path, kind: str
) -> None:
    path, columns = (
        (log(tmp_path / "a.csv"), COLUMNS)
        if kind == "log"
        else (means(tmp_path / "a.csv"), {"cost2": "tokens"})
    )
    comparison = compared(path, columns=columns, uncertainty="given")
    spent = np.stack([comparison.data[x].values for x in ("spent", "spent2")], axis=-1)
    assert (spent <= np.array(BUDGETS) * (1 + 1e-6)).all()
    assert (spent >= 0.9 * np.array(BUDGETS)).any(axis=-1).all()
    (instance,) = comparison.plan.table.instances
    fluid = -linprog(-instance.mean_reward, A_ub=instance.mean_cost.T, b_ub=BUDGETS).fun
    regret = comparison.data["regret"].values[..., -1]
    expected = comparison.accounts.pulls @ instance.mean_reward
    assert (
        np.abs(fluid - expected - regret) <= 1 + 1e-4 * fluid
    ).all()  # but for the last pull, which earns nothing
    assert regret.mean() > 0 and comparison.data["spent2"].attrs["units"] == "tokens"


@pytest.mark.integration
def test_a_unit_of_tokens_changes_nothing_but_itself(tmp_path: Path) -> None:
    """1,024 tokens each: the same runs, to the bit, and 1,024 times as many spent."""
    plain = compared(log(tmp_path / "a.csv"), columns=COLUMNS)
    fine = compared(log(tmp_path / "b.csv", 1024), [BUDGETS[0], 1024 * BUDGETS[1]], columns=COLUMNS)
    for name in ("reward", "regret", "pulls", "spent"):
        assert np.array_equal(plain.data[name], fine.data[name]), name
    assert np.array_equal(1024 * plain.data["spent2"], fine.data["spent2"])
    assert plain.plan.worlds.posterior is not None
    assert len(np.unique(plain.accounts.mean_cost[0, :, 0, 1])) == 8


def test_the_mixture_of_the_file_is_one_arm_here(tmp_path: Path) -> None:
    answer = answer_of(compared(means(tmp_path / "a.csv"), columns={"cost2": "tokens"}))
    rows = zip(answer.data["row"].values.tolist(), answer.data["earned"].values, strict=True)
    earned = dict(rows)
    del earned[answer.setting]
    assert list(earned) == ["an even split", "all on the file's best"]
    assert earned["all on the file's best"] == max(earned.values())
    single = [
        q / max(u / BUDGETS[0], t / BUDGETS[1])
        for q, u, t in zip(QUALITY, USD, TOKENS, strict=True)
    ]
    assert int(np.argmax(answer.data["mixture"].values[0])) == int(np.argmax(single))


def test_what_does_not_fit_is_said(tmp_path: Path) -> None:
    path, columns = means(tmp_path / "a.csv"), {"cost2": "tokens"}
    with pytest.raises(
        jb.InputError, match=r"budget: \[1.5\] given; it must be 2 of them: .* \(cost and tokens\)"
    ):
        prepare(path, 1.5, ThompsonLP(), columns=columns)
    with pytest.raises(jb.InputError, match=r"budget: \[1.5, 2.0\] given; it must be 1 of them"):
        prepare(path, [1.5, 2.0], OmegaUCB())
    with pytest.raises(jb.InputError, match="one with one cost for OmegaUCB"):
        prepare(path, BUDGETS, OmegaUCB(), columns=columns)
    with pytest.raises(
        jb.InputError,
        match="noise: 'beta' given; it must be 'bernoulli' or 'empirical' with two costs",
    ):
        prepare(path, BUDGETS, ThompsonLP(), columns=columns, noise="beta")
    with pytest.raises(
        jb.InputError, match=r"average_cost: 0\.5 given; it must be left out: with two costs"
    ):
        prepare(path, BUDGETS, ThompsonLP(), columns=columns, average_cost=0.5)
