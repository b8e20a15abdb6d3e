"""Smaller budgets, skips, and what costs vary by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jaxbandits.apps.comparison import ComparisonPlan, answer, prepare, run_plan
from jaxbandits.core.checks import InputError
from jaxbandits.policies import SUAK, OmegaUCB, OnePhase

COUNTS = "name,clicks,spent,conversions\nA,1000,500,80\nB,2000,900,100\n"


@pytest.fixture
def counts(tmp_path: Path) -> str:
    path = tmp_path / "counts.csv"
    path.write_text(COUNTS)
    return str(path)


@pytest.fixture
def plans_played(monkeypatch: pytest.MonkeyPatch) -> list[ComparisonPlan]:
    """The plans that checks play."""
    plans: list[ComparisonPlan] = []
    monkeypatch.setattr(
        answer, "run_plan", lambda plan, **more: plans.append(plan) or run_plan(plan, **more)
    )
    return plans


def test_a_skip_is_no_pull(counts: str) -> None:
    plan = prepare(counts, 20.0, SUAK(c=0.2), runs=4, marks=1, average_cost=0.2)
    comparison = run_plan(plan)
    assert plan.spending.rounds == 100
    assert (
        comparison.data["pulls"].values.tolist() == comparison.accounts.pulls.sum(axis=-1).tolist()
    )
    assert (comparison.data["pulls"].values < 100).all()


def test_a_smaller_budget_has_its_own_horizon(
    counts: str, plans_played: list[ComparisonPlan]
) -> None:
    plan = prepare(counts, 20.0, OnePhase(c=0.5, horizon=1), runs=4, marks=1, average_cost=0.5)
    assert plan.spending.rounds == 40
    comparison = run_plan(plan)
    for share in (0.25, 0.5, 0.75):
        answer.money_of_part(comparison.plan, 0, share)
    policies: list[Any] = [look.played.policies[0].policy for look in plans_played]
    assert (
        [policy.horizon.item() for policy in policies]
        == [10, 20, 30]
        == [look.spending.rounds for look in plans_played]
    )
    assert [look.spending.budget for look in plans_played] == [5.0, 10.0, 15.0]
    assert {policy.c.item() for policy in policies} == set(
        plan.spending.scaled_average_costs(plan.table.instances)
    )


def test_costs_vary_as_the_days_say_where_means_are_given(tmp_path: Path) -> None:
    days = "name,date,clicks,spent,conversions\n" + "".join(
        f"{arm},2024-01-{day:02},100,{40 + 20 * (day % 2)},{5 + day % 3}\n"
        for arm in "AB"
        for day in range(1, 9)
    )
    path = tmp_path / "days.csv"
    path.write_text(days)
    plans = [
        prepare(str(path), 20.0, OmegaUCB(), uncertainty=x, noise="clicks")
        for x in ("given", "means")
    ]
    assert [plan.worlds.cost_cv_from for plan in plans] == ["days", "days"]
    assert plans[0].worlds.cost_cv == plans[1].worlds.cost_cv != 0.5


def test_a_free_row_that_earns_has_no_bound(tmp_path: Path) -> None:
    """Before anything is played, for the runs would be lost."""
    path = tmp_path / "log.csv"
    path.write_text("name,reward,cost\n" + "A,1,0\nA,0,1\nB,1,1\nB,0,1\n" * 4)
    with pytest.raises(InputError, match="a row earns at no cost"):
        prepare(
            str(path),
            20.0,
            OmegaUCB(rho=[0.25, 1.0]),
            until="clear",
            claim="average",
            max_runs=100,
            marks=1,
        )
