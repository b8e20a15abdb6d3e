"""What is for sale, how often one decides, what comes next; and that no unit changes an answer."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaxbandits.apps.comparison import answer_of, compare, markdown, prepare, run_plan
from jaxbandits.apps.comparison.plan import (
    BEST,
    EVEN,
    MIXTURE,
    SEEN,
    Cadence,
    baselines_of,
    file_means,
)
from jaxbandits.core.checks import InputError
from jaxbandits.policies import MRCB, MUCB, SUAK, OmegaUCB

ADS = "name,clicks,cost,conversions\nSpring,400,$410.00,40\nSummer,250,$300.00,30\nAutumn,600,$500.00,70\n"
NAMES = ("Spring", "Summer", "Autumn")
UCB = OmegaUCB(rho=0.25)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("ads.csv").write_text(ADS)
    return tmp_path


def by_days() -> str:
    draw, lines = np.random.default_rng(51), ["day,name,clicks,cost,conversions"]
    for day in range(1, 11):
        for name, clicks, price, rate in (
            ("Spring", 12, 0.9, 0.1),
            ("Summer", 8, 1.2, 0.08),
            ("Autumn", 10, 0.8, 0.12),
        ):
            lines.append(
                f"2026-03-{day:02},{name},{clicks},{clicks * price:.2f},{draw.binomial(clicks, rate)}"
            )
    return "\n".join(lines) + "\n"


def log_of(times: float = 1.0) -> str:
    """Six hundred requests of three models; scores, and costs in an unit that is so many times
    smaller.
    """
    draw, lines = np.random.default_rng(5), ["name,reward,cost"]
    for _ in range(200):
        for name, score, cost in (
            ("small", 0.4, 0.0005),
            ("middle", 0.6, 0.002),
            ("large", 0.8, 0.01),
        ):
            value, paid = min(max(draw.normal(score, 0.1), 0), 1), cost * draw.uniform(0.5, 1.5)
            lines.append(f"{name},{value:.4f},{paid * times!r}")
    return "\n".join(lines) + "\n"


# --- What is for sale


def test_an_arm_sells_what_it_sold_times_the_growth_for_the_time_that_the_money_takes(
    folder: Path,
) -> None:
    plan = prepare("ads.csv", 242.0, UCB, runs=30, marks=2)  # a fifth of the file's money
    supply = plan.spending.supply
    assert supply.growth == 2 and supply.times == pytest.approx([0.2])
    assert supply.stock[0].tolist() == [160, 100, 240]  # 2 · 0.2 times the clicks
    assert supply.part(0.25).stock[0].tolist() == [40, 25, 60]
    ((reward, cost),) = file_means(plan.table, plan.worlds)
    # The best arm, then the second best for what is left
    split = plan.spending.best_split(reward, cost, 0)
    assert (
        split[2] == 240 and split @ cost == pytest.approx(242.0) and (split[:2] > 1e-6).sum() == 1
    )
    players = baselines_of(plan.table, plan.worlds, plan.spending)
    assert list(players.labels)[:3] == [SEEN, EVEN, MIXTURE]
    comparison = run_plan(dataclasses.replace(plan, baselines=players))
    for of in (comparison, comparison.baselines):
        assert of is not None
        pulls = of.accounts.pulls[:, 0]
        assert (pulls <= supply.stock[0]).all()
    assert (comparison.accounts.pulls[0, 0, :, 2] == 240).mean() > 0.5
    assert (comparison.data["regret"].values > -1e-3).all()
    free = compare("ads.csv", 242.0, UCB, runs=30, marks=2, growth="none")
    assert free.plan.spending.supply.growth is None
    assert (free.accounts.pulls[0, 0, :, 2] > 250).any()
    # Stock that nobody reaches changes nothing
    larger = compare("ads.csv", 242.0, UCB, runs=30, marks=2, growth=1e3)
    np.testing.assert_array_equal(larger.data["reward"], free.data["reward"])


def test_what_brings_most_of_two_budgets_is_the_program_of_both(folder: Path) -> None:
    Path("log.csv").write_text(log_of())
    from jaxbandits._numerics.knapsack_lp import fluid_values
    from jaxbandits.policies import PrimalDualBwK

    spent = 0.0125 * 200
    plan = prepare("log.csv", [spent, 500.0], PrimalDualBwK(), runs=2, columns={"cost2": "1"})
    assert plan.spending.supply.growth is None and "two costs" in plan.spending.supply.reason
    ((reward, cost),) = file_means(plan.table, plan.worlds)
    split = plan.spending.best_split(reward, cost, 0)
    assert (cost.T @ split <= np.array([spent, 500.0]) + 1e-6).all()
    assert split @ reward == pytest.approx(
        fluid_values(reward[None], cost[None], np.array([[spent, 500.0]]))[0]
    )


@pytest.mark.integration
def test_a_log_has_its_own_requests_and_no_more(folder: Path) -> None:
    """Money and requests: its best mixture is that of both, and no run answers more requests than
    there are.
    """
    Path("log.csv").write_text(log_of())
    spent = float(prepare("log.csv", 1.0, UCB, runs=1).table.instances[0].evidence.spent.sum())  # type: ignore
    plan = prepare("log.csv", spent / 2, UCB, runs=20, marks=2)
    assert plan.spending.supply.requests == (300,)
    splits = baselines_of(plan.table, plan.worlds, plan.spending)
    assert list(splits.labels)[:4] == [SEEN, EVEN, BEST, MIXTURE]
    comparison = run_plan(dataclasses.replace(plan, baselines=splits))
    assert comparison.baselines is not None and comparison.notes == ()
    every = np.concatenate(
        [comparison.data["pulls"].values, comparison.baselines.data["pulls"].values]
    )
    assert every.max() == 300
    ((reward, cost),) = file_means(plan.table, plan.worlds)
    mixture = comparison.baselines.data["reward"].sel(setting=MIXTURE).values
    # All three are corners: cost per request is what the file's is
    hull = 300 * np.interp(spent / 600, cost, reward)
    assert mixture.mean() == pytest.approx(hull, rel=0.02)
    assert mixture.mean() > comparison.data["reward"].values.mean()
    # what a run leaves of the money counts against it: all on the cheap model is far below the
    # program's value
    shortfall = comparison.baselines.data["regret"].sel(setting=MIXTURE).values.mean(axis=(0, 1))
    assert (abs(shortfall) < 0.03 * hull).all()
    assert comparison.data["regret"].values[..., -1].mean() > 0.03 * hull


@pytest.mark.parametrize(("text", "more", "problem"), [
    ("name,mean_reward,mean_cost\nA,0.2,0.5\nB,0.1,0.5\n", {"growth": 2.0},
     "growth: 2.0 given; it must be left out: the file does not say how many pulls there were"),
    (ADS, {"growth": "two"}, "growth: 'two' given; it must be a finite number above 0, or 'none'"),
    (ADS, {"growth": 0.0}, "growth: 0.0 given; it must be a finite number above 0"),
    (ADS, {"decide": "daily"}, "decide: 'daily' given; it must be 'per-click' or a whole number: the file has no days"),
    (ADS, {"decide": "weekly"}, "decide: 'weekly' given; it must be a whole number from 1 to 2**30, or 'daily' or"),
    (ADS, {"known_after": 7}, "known_after: 7 given; it must be left out where one decides per click"),
])  # fmt: skip
def test_what_cannot_be_asked_is_said_in_a_line(
    folder: Path, text: str, more: dict[str, Any], problem: str
) -> None:
    Path("ads.csv").write_text(text)
    with pytest.raises(InputError) as raised:
        prepare("ads.csv", 20.0, UCB, **more)
    assert str(raised.value).startswith(problem) and "\n" not in str(raised.value)


def test_sets_of_arms_are_sold_without_limit(folder: Path) -> None:
    supply = prepare("ads.csv", 20.0, [UCB, MRCB()], runs=2).spending.supply
    assert supply.growth is None and supply.reason == "MRCB pulls several arms at once"


def test_an_average_cost_has_rounds_and_decisions_of_its_own(folder: Path) -> None:
    plan = prepare("ads.csv", 20.0, SUAK(c=0.5), runs=2, average_cost=0.5)
    assert plan.spending.supply.growth is None
    assert plan.spending.supply.reason
    assert not plan.played.cadence.size
    for more in ({"growth": 2.0}, {"decide": 10}):
        with pytest.raises(InputError, match="left out"):
            prepare("ads.csv", 20.0, SUAK(c=0.5), average_cost=0.5, **more)


# --- How often one decides


@pytest.mark.integration
def test_a_file_of_days_decides_daily(folder: Path) -> None:
    Path("days.csv").write_text(by_days())
    assert prepare("days.csv", 270.0, UCB).played.cadence == Cadence((30,), 0, "day")
    late = prepare("days.csv", 270.0, UCB, runs=20, marks=2, known_after=3)
    assert late.played.cadence == Cadence((30,), 3, "day")
    beside = run_plan(late)
    per_click = compare("days.csv", 270.0, UCB, runs=20, marks=2, decide="per-click")
    assert per_click.plan.played.cadence == Cadence()
    assert (per_click.data["reward"] != beside.data["reward"]).any()
    # After every click, by another program
    every_click = compare("days.csv", 270.0, UCB, runs=20, marks=2, decide=1)
    np.testing.assert_array_equal(
        every_click.data["reward"].values, per_click.data["reward"].values
    )


def test_days_are_played_click_by_click_where_that_would_take_long(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jaxbandits.apps.comparison import plan

    Path("days.csv").write_text(by_days())
    monkeypatch.setattr(plan, "_MOST_DAILY", 1e5)
    assert "faster to play" in prepare("days.csv", 270.0, UCB, runs=500).played.cadence.reason
    assert prepare("days.csv", 270.0, UCB, runs=500, decide="daily").played.cadence.size == (30,)


# --- What comes next


def test_the_money_until_one_decides_again(folder: Path) -> None:
    Path("days.csv").write_text(by_days())
    answer = answer_of(compare("days.csv", 270.0, UCB, runs=40, marks=2, known_after=2))
    spent = 27.2 + 0.2  # of the file's 284 in ten days a day's, which is 30 clicks
    assert 270 * answer.data.attrs["first_share"] == pytest.approx(spent, rel=0.1)
    assert float(answer.data["first"].sum()) == pytest.approx(1)
    assert "once a day, every 30 clicks, and knows what came of it 2 days later" in markdown(answer)


# --- Units


@pytest.mark.parametrize(("name", "budget", "money"), [
    ("shop", 2.0, ("cost", "reward")),
    ("log", 1.2, ("cost",)),
    ("ads", 100.0, ("cost",)),
])  # fmt: skip
@pytest.mark.quick_rows("log-1.2-money2")
def test_cents_are_dollars(folder: Path, name: str, budget: float, money: tuple[str, ...]) -> None:
    """A hundred times the money in a smaller unit: the same pulls, the same ranking, the same
    answer.
    """
    shop = "name,cost,reward\nbanner,.4,0\nvideo,.9,49.9\nbanner,.45,0\nvideo,.85,0\nbanner,.38,19.9\nvideo,.95,0\n"
    text = {"log": log_of(), "ads": ADS.replace("$", ""), "shop": shop}[name]
    rows = list(csv.reader(text.splitlines()))
    Path("dollars.csv").write_text(text)
    for at in map(rows[0].index, money):
        for row in rows[1:]:
            row[at] = repr(round(float(row[at]) * 100, 9))
    with open("cents.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    policies = [OmegaUCB(rho=[0.25, 1.0]), MUCB()]
    dollars, cents = (
        compare(f"{unit}.csv", amount, policies, runs=20, marks=2)
        for unit, amount in (("dollars", budget), ("cents", 100 * budget))
    )
    np.testing.assert_array_equal(dollars.accounts.pulls, cents.accounts.pulls)
    times = 100 if len(money) > 1 else 1
    np.testing.assert_allclose(
        times * dollars.data["reward"].values, cents.data["reward"].values, rtol=1e-6
    )
    np.testing.assert_allclose(
        100 * dollars.data["spent"].values, cents.data["spent"].values, rtol=1e-6
    )
