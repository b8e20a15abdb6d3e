"""A comparison played in other ways: what the second plays are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaxbandits._cli.console import main
from jaxbandits.comparison import ComparisonPlan, prepare, run_plan, second_look
from jaxbandits.comparison.worlds import spread_of
from jaxbandits.policies import OmegaUCB, OnePhase

COUNTS = "name,clicks,spent,conversions\nA,1000,500,80\nB,2000,900,100\n"


@pytest.fixture
def counts(tmp_path: Path) -> str:
    path = tmp_path / "counts.csv"
    path.write_text(COUNTS)
    return str(path)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[ComparisonPlan]:
    """The plans that a second look runs."""
    plans: list[ComparisonPlan] = []

    def run(plan: ComparisonPlan, **more: Any) -> Any:
        plans.append(plan)
        return run_plan(plan, **more)

    monkeypatch.setattr(second_look, "run_plan", run)
    return plans


@pytest.mark.parametrize("uncertainty", ["means", "given"])
def test_costs_that_vary_have_room_to(counts: str, played: list[ComparisonPlan], uncertainty: str) -> None:
    """Costs of the check by clicks vary as much as is told: their bound is not that of coins."""
    plan = prepare(counts, 20.0, OmegaUCB(), runs=4, marks=1, noise="bernoulli", uncertainty=uncertainty)
    check = second_look.check_noise(run_plan(plan))
    (look,) = played
    assert not isinstance(check, str) and check.noise == look.noise == second_look.other_noise(plan)
    (instance,), (before,) = look.table.instances, plan.table.instances
    assert look.scaled_budgets == pytest.approx([20.0 / instance.cost_bound])
    if look.noise == "clicks":
        assert look.posterior is not None
        _, largest = look.posterior.instances[0].largest()
        assert instance.cost_bound == pytest.approx(largest * (1 + spread_of(plan.cost_cv)))
        assert instance.cost_bound > before.cost_bound
    else:
        assert instance.cost_bound == before.cost_bound


def test_a_smaller_budget_has_its_own_horizon(counts: str, played: list[ComparisonPlan]) -> None:
    plan = prepare(counts, 20.0, OnePhase(c=0.5, horizon=1), runs=4, marks=1, average_cost=0.5)
    assert plan.rounds == 40
    second_look.money_over_budgets(run_plan(plan), 0, points=4)
    horizons = [np.asarray(look.policies[0].horizon).ravel().tolist() for look in played]  # type: ignore[attr-defined]
    assert horizons == [[10], [20], [30]] == [[look.rounds] for look in played]
    assert [look.budget for look in played] == [5.0, 10.0, 15.0]
    assert all((look.policies[0].c == plan.policies[0].c).all() for look in played)  # type: ignore[attr-defined]


def test_a_bound_of_the_average_cost_is_told_by_its_option(counts: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = ["compare", "--arms", counts, "--budget", "20", "--constraint", "average-cost:5", "--policies", "suak"]
    assert main(told) == 2
    assert "--constraint: 5.0 given; it must be at most" in capsys.readouterr().err
