"""What is for sale, and how often one decides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jaxbandits.apps.comparison import compare, plan, prepare, run_plan
from jaxbandits.apps.comparison.plan import BEST, EVEN, MIXTURE, SEEN, file_means, with_splits
from jaxbandits.policies import MRCB, OmegaUCB

ADS = "name,clicks,cost,conversions\nSpring,400,410.00,40\nSummer,250,300.00,30\nAutumn,600,500.00,70\n"
MODELS = (("small", 0.4, 5e-4), ("middle", 0.6, 2e-3), ("large", 0.8, 0.01))
UCB = OmegaUCB(rho=0.25)


def days() -> str:
    draw, lines = np.random.default_rng(51), ["day,name,clicks,cost,conversions"]
    arms = (("Spring", 12, 0.9, 0.1), ("Summer", 8, 1.2, 0.08), ("Autumn", 10, 0.8, 0.12))
    for day in range(1, 11):
        for name, clicks, price, rate in arms:
            row = f"2026-03-{day:02},{name},{clicks},{clicks * price:.2f}"
            lines.append(f"{row},{draw.binomial(clicks, rate)}")
    return "\n".join(lines) + "\n"


def log() -> str:
    """Six hundred requests of three models; scores and costs."""
    draw, lines = np.random.default_rng(5), ["name,reward,cost"]
    for _ in range(200):
        for name, score, cost in MODELS:
            value, paid = min(max(draw.normal(score, 0.1), 0), 1), cost * draw.uniform(0.5, 1.5)
            lines.append(f"{name},{value:.4f},{paid!r}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {"ads": ADS, "days": days(), "log": log()}.items():
        Path(f"{name}.csv").write_text(text)
    return tmp_path


def test_an_arm_sells_what_it_sold_times_the_growth_for_the_time_that_the_money_takes(
    folder: Path,
) -> None:
    played = prepare("ads.csv", 242.0, UCB, runs=30, marks=2)  # a fifth of the file's money
    supply = played.spending.supply
    assert supply.growth == 2 and supply.times == pytest.approx([0.2])
    assert supply.stock[0].tolist() == [160, 100, 240]  # 2 · 0.2 times the clicks
    ((reward, cost),) = file_means(played.table, played.worlds)
    # The best arm, then the second best for what is left
    split = played.spending.best_split(reward, cost, 0)
    assert split[2] == 240 and split @ cost == pytest.approx(242.0) and (split[:2] > 0).sum() == 1
    splits = with_splits(played)
    assert splits.played.labels == (SEEN, EVEN, MIXTURE)
    comparison = run_plan(played)
    for of in (comparison, run_plan(splits)):
        assert (of.accounts.pulls[:, 0] <= supply.stock[0]).all()
    assert (comparison.accounts.pulls[0, 0, :, 2] == 240).mean() > 0.5
    assert (comparison.data["regret"].values > -1e-3).all()
    free = compare("ads.csv", 242.0, UCB, runs=30, marks=2, growth="none")
    assert (free.accounts.pulls[0, 0, :, 2] > 250).any()
    # Stock that nobody reaches changes nothing
    larger = compare("ads.csv", 242.0, UCB, runs=30, marks=2, growth=1e3)
    np.testing.assert_array_equal(larger.data["reward"], free.data["reward"])


@pytest.mark.integration
def test_a_log_has_its_own_requests_and_no_more(folder: Path) -> None:
    """Money and requests: the best mixture is that of both, and no run answers more than there are."""
    spent = float(prepare("log.csv", 1.0, UCB, runs=1).table.instances[0].evidence.spent.sum())  # type: ignore
    played = prepare("log.csv", spent / 2, UCB, runs=20, marks=2)
    assert played.spending.supply.requests == (300,)
    assert with_splits(played).played.labels == (SEEN, EVEN, BEST, MIXTURE)
    comparison, splits = run_plan(played), run_plan(with_splits(played))
    assert comparison.notes == ()
    assert max(x.data["pulls"].values.max() for x in (comparison, splits)) == 300
    ((reward, cost),) = file_means(played.table, played.worlds)
    mixture = splits.data["reward"].sel(setting=MIXTURE).values
    # All three are corners: cost per request is what the file's is
    hull = 300 * np.interp(spent / 600, cost, reward)
    assert mixture.mean() == pytest.approx(hull, rel=0.02)
    assert mixture.mean() > comparison.data["reward"].values.mean()
    # What a run leaves of the money counts against it
    shortfall = splits.data["regret"].sel(setting=MIXTURE).values.mean(axis=(0, 1))
    assert (abs(shortfall) < 0.03 * hull).all()
    assert comparison.data["regret"].values[..., -1].mean() > 0.03 * hull


def test_sets_of_arms_are_sold_without_limit(folder: Path) -> None:
    supply = prepare("ads.csv", 20.0, [UCB, MRCB()], runs=2).spending.supply
    assert supply.growth is None and supply.reason.startswith("MRCB")


@pytest.mark.integration
def test_a_file_of_days_decides_daily(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    daily = prepare("days.csv", 270.0, UCB, runs=20, marks=2)
    assert daily.played.day == (30,)
    per_click = compare("days.csv", 270.0, UCB, runs=20, marks=2, decide="per-click")
    assert per_click.plan.played.day == ()
    assert (per_click.data["reward"] != run_plan(daily).data["reward"]).any()
    # Click by click where days would take long
    monkeypatch.setattr(plan, "_MOST_DAILY", 1e5)
    assert prepare("days.csv", 270.0, UCB, runs=500).played.reason
    assert prepare("days.csv", 270.0, UCB, runs=500, decide="daily").played.day == (30,)
