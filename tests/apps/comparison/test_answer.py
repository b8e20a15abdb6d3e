"""The answer: its numbers against the runs that they are of, its first line, its files, its page."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import xarray

from jaxbandits.apps.comparison import Answer, answer_of, compare, markdown, write_report
from jaxbandits.apps.comparison.answer import Spread
from jaxbandits.apps.comparison.plan import BEST, EVEN, MIXTURE, SEEN, histories
from jaxbandits.apps.comparison.report import place_of
from jaxbandits.policies import OmegaUCB
from jaxbandits.statistics import dominance

ADS = "name,clicks,cost,conversions\nSpring,400,$410.00,40\nSummer,250,$300.00,30\nAutumn,600,$500.00,50\n"
UCB = OmegaUCB(rho=[0.25, 1.0])


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    path = tmp_path_factory.mktemp("arms") / "ads.csv"
    path.write_text(ADS)
    return answer_of(compare(path, 60.0, UCB, runs=40, marks=5, growth="none"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("ads.csv").write_text(ADS)
    return tmp_path


def test_the_numbers_are_those_of_the_runs(answer: Answer) -> None:
    comparison, accounts, data = answer.comparison, answer.comparison.accounts, answer.data
    row = list(comparison.plan.played.labels).index(answer.setting)
    reward = comparison.data["reward"].values[row, 0]
    assert data["earned"].values[0] == pytest.approx(reward.mean())
    # of 40 runs the least and the most
    assert data["earned_low"].values[0] == reward.min()
    assert data["earned_high"].values[0] == reward.max()
    assert data.attrs["coverage"] == pytest.approx(39 / 41)
    for shares in ("money_share", "mixture", "best"):
        assert float(data[shares].sum()) == pytest.approx(1)
    pulls = comparison.data["pulls"].values[row, 0]
    assert float(data["pulls"].sum()) == pytest.approx(pulls.mean())
    # expected and drawn totals have one mean: within what 40 runs leave open
    results, money = (x[0].sum(axis=-1) for x in (accounts.results(row), accounts.money(row)))
    for apart in (results - reward, money - comparison.data["spent"].values[row, 0]):
        assert abs(apart.mean()) < 4 * apart.std() / np.sqrt(40)
    np.testing.assert_allclose(accounts.earned[..., -1], comparison.data["reward"].values[:, 0])


def test_clear_is_one_test_in_the_ranking_and_in_the_answer(answer: Answer) -> None:
    """What the answer calls more is what the ranking's test would call clear, with its interval."""
    reward = answer.comparison.data["reward"].sel(setting=[answer.setting])
    table = xarray.concat([reward, answer.baselines.data["reward"]], "setting").drop_vars("setting")
    pairs = dominance(table, over="replicate").isel(setting=0)
    for end, name in (("gain", "difference"), ("gain_low", "low"), ("gain_high", "high")):
        np.testing.assert_allclose(answer.data[end].values, pairs[name].values)
        np.testing.assert_allclose(answer.data[f"{end}_in"].values[:, 0], pairs[name].values)


def test_baselines_split_as_they_say(answer: Answer) -> None:
    accounts = answer.baselines.accounts
    assert answer.data["row"].values.tolist() == [answer.setting, SEEN, EVEN, BEST]
    best = int(np.argmax(answer.data["mixture"].values[0]))
    pulls = accounts.pulls[2, 0]  # known by the file, not draw by draw: the same arm in every run
    assert (pulls.sum(axis=-1) == pulls[:, best]).all()
    clicks = np.array([400.0, 250.0, 600.0])
    share = accounts.pulls[0, 0].sum(axis=0) / accounts.pulls[0, 0].sum()
    error = np.sqrt(share * (1 - share) / accounts.pulls[0, 0].sum())
    assert (abs(share - clicks / clicks.sum()) < 4 * error).all()
    even = accounts.money(1)[0].sum(axis=0)
    assert even / even.sum() == pytest.approx(np.full(3, 1 / 3), abs=0.05)
    np.testing.assert_array_equal(accounts.mean_reward, answer.comparison.accounts.mean_reward)


def test_a_history_is_what_the_file_has_counted_over_the_bounds(answer: Answer) -> None:
    plan = answer.comparison.plan
    (bound,) = {instance.cost_bound for instance in plan.table.instances}
    history = histories(plan.table, [0, 0], 4)
    assert history.pulls.tolist() == [[[400, 250, 600, 0]] * 2]
    assert history.reward.tolist() == [[[40, 30, 50, 0]] * 2]
    cost = np.asarray(history.cost) + np.asarray(history.cost_part) / 2**24
    np.testing.assert_allclose(cost[0, 1], np.array([410, 300, 500, 0]) / bound, atol=1e-6)


@pytest.mark.parametrize("runs", [20, 39, 100])
def test_a_further_run_lies_between_as_often_as_is_said(runs: int) -> None:
    """Of a skewed law, and at least as often where runs may be equal; the worst of four says less."""
    rng, tries = np.random.default_rng(runs), 4000
    for values, ties in ((rng.exponential(size=(tries, runs + 1)) ** 2, False),
                         (rng.poisson(3.0, size=(tries, runs + 1)).astype(float), True)):  # fmt: skip
        spread = Spread.of(values[:, :-1])
        coverage = spread.coverage
        assert 0.9 < coverage < 0.976 and (coverage >= 0.95 - 1e-12) == (runs >= 39)
        inside = (spread.low <= values[:, -1]) & (values[:, -1] <= spread.high)
        z = (inside.mean() - coverage) / np.sqrt(coverage * (1 - coverage) / tries)
        assert z > -3.5 and (ties or z < 3.5)
    assert np.isnan(Spread.of(np.ones(19))[1:]).all()


def test_in_short_comes_first_and_the_mixture_is_a_split(answer: Answer, folder: Path) -> None:
    first, split, *_ = markdown(answer).split("\n\n")
    earned = float(answer.data["earned"][0])
    assert first.startswith("In short: ") and "$60" in first and answer.setting in first
    assert f"{earned:.1f} conversions (" in first and "in 95 of 100 runs" in first
    assert BEST in split and "nan" not in markdown(answer) and "$10.25" in markdown(answer)
    few = answer_of(compare("ads.csv", 400.0, UCB, runs=5, marks=2))
    assert "no interval below 20 runs" in markdown(few) and "nan" not in markdown(few)
    row = few.data["row"].values.tolist().index(MIXTURE)
    gain = few.data["earned"].values[0] - few.data["earned"].values[row]
    assert few.data["gain"].values[row] == pytest.approx(gain)
    plan, pulls = few.comparison.plan, few.comparison.accounts.pulls
    sold = pulls[list(plan.played.labels).index(few.setting), 0] == plan.spending.supply.stock[0]
    assert few.data["sold_out"].values[0].tolist() == sold.mean(axis=0).tolist() and sold.any()
    assert f"| {sold.mean(axis=0).max():.0%} of runs |" in markdown(few)
    assert "sold out" not in markdown(answer) and "times the file's" not in first
    object.__setattr__(plan.spending.supply, "times", (326.0,))
    assert markdown(few).startswith("In short: with $400 to spend (326 times the file's money")


def test_the_most_is_said_with_those_that_are_not_clearly_worse(answer: Answer) -> None:
    assert place_of([False]) == ", the most of 2 settings (1 of 1 other not clearly worse)"
    assert place_of([True, False, True]).endswith("(1 of 3 others not clearly worse)")
    assert place_of([]) == "" and place_of([True, True]) == ", the most of 3 settings"
    (other,) = answer.comparison.ranking()[1:]
    assert f"runs){place_of([other['difference_clear']])}; that is" in markdown(answer)
    assert repr(answer.comparison).endswith(", not clearly") != other["difference_clear"]


def test_the_files_hold_the_dataset_and_the_page_its_markdown(folder: Path, answer: Answer) -> None:
    files = write_report(answer, "deep/out", "jaxbandits compare <b>")
    assert all(path.stat().st_size for path in files) and len(files) == 6
    facts = json.loads(Path("deep/out/answer.json").read_text())
    assert facts["data_vars"]["earned"]["data"] == answer.data["earned"].values.tolist()
    assert facts["attrs"]["setting"] == answer.setting
    rows = list(csv.DictReader(Path("deep/out/arms.csv").read_text().splitlines()))
    assert [row["arm"] for row in rows] == ["Spring", "Summer", "Autumn"]
    assert sum(float(row["money_share"]) for row in rows) == pytest.approx(1, abs=1e-6)
    page = Path("deep/out/report.html").read_text()
    assert "://" not in page and page.count("data:image/png;base64,") == 1 and "<b>" not in page
    for text in ("In short: ", "<td>$10.25</td>", "<h2>All settings, ranked</h2>", "&lt;b&gt;"):
        assert text in page


def test_warnings_have_numbers(folder: Path) -> None:
    small = answer_of(compare("ads.csv", 4.0, OmegaUCB(), runs=40, marks=5))
    assert "about 3.9 clicks" in small.warnings[0] and "exceeds the budget" in small.warnings[1]
    shop = "name,clicks,spent,reward\nOld,1200,1200,60.5\nNew,3,3,2\nOther,900,950,40\n"
    Path("ads.csv").write_text(shop)
    given = answer_of(compare("ads.csv", 100.0, OmegaUCB(), runs=20, growth="none"))
    assert given.warnings[0].startswith("'New' gets ") and "has 3 clicks" in given.warnings[0]
