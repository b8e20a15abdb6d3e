"""The answer: its numbers against the runs that they are of, its words, its files, its page."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
import xarray

from jaxbandits._tables import NumberStyle
from jaxbandits.apps._cli.compare import chosen_policies, parser
from jaxbandits.apps.comparison import Answer, answer_of, compare, report, write_report
from jaxbandits.apps.comparison.answer import Gain, NoiseCheck, Spread, money_over_budgets
from jaxbandits.apps.comparison.comparison import ANSWER_FILES, FILES
from jaxbandits.apps.comparison.plan import (
    AVERAGE_COST_POLICIES,
    BEST,
    EVEN,
    FROM_NOTHING,
    POLICIES,
    SEEN,
    best_by_file,
    histories,
)
from jaxbandits.core.checks import InputError
from jaxbandits.policies import OmegaUCB
from jaxbandits.statistics import dominance
from tests.apps.commands import command

ADS = "name,clicks,cost,conversions\nSpring,400,$410.00,40\nSummer,250,$300.00,30\nAutumn,600,$500.00,50\n"


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    path = tmp_path_factory.mktemp("arms") / "ads.csv"
    path.write_text(ADS)
    comparison = compare(path, 60.0, OmegaUCB(rho=[0.25, 1.0]), runs=40, marks=5, growth="none")
    return answer_of(comparison, ["omega_ucb(rho=0.25)"])


def test_the_numbers_are_those_of_the_runs(answer: Answer) -> None:
    comparison, accounts = answer.comparison, answer.comparison.accounts
    assert len(answer.settings) == 2
    for part in answer.settings:
        row = list(comparison.plan.played.labels).index(part.setting)
        reward = comparison.data["reward"].values[row, 0]
        assert part.earned.mean == pytest.approx(reward.mean())
        ends = part.earned.low, part.earned.high  # of 40 runs the least and the most
        assert ends == (reward.min(), reward.max())
        assert part.earned.coverage == pytest.approx(39 / 41)
        assert sum(arm.share.mean for arm in part.arms[0]) == pytest.approx(1)
        assert sum(arm.pulls.mean for arm in part.arms[0]) == pytest.approx(
            comparison.data["pulls"].values[row, 0].mean()
        )
        # expected and drawn totals have one mean: within what 40 runs leave open
        results, money = (x[0].sum(axis=-1) for x in (accounts.results(row), accounts.money(row)))
        apart = results - reward
        assert abs(apart.mean()) < 4 * apart.std() / np.sqrt(40)
        apart = money - comparison.data["spent"].values[row, 0]
        assert abs(apart.mean()) < 4 * apart.std() / np.sqrt(40)
        splits = answer.baselines.data["reward"][:, 0]
        for split in part.baselines:
            of = splits.sel(setting=split.name).values
            assert split.gain.mean == pytest.approx(reward.mean() - of.mean())
            assert split.by_instance[0] == split.gain
    np.testing.assert_allclose(accounts.earned[..., -1], comparison.data["reward"].values[:, 0])
    assert sum(arm.best for arm in answer.settings[0].arms[0]) == pytest.approx(1)


def test_baselines_split_as_they_say(answer: Answer) -> None:
    plan, accounts = answer.comparison.plan, answer.baselines.accounts
    bare = [f"{part.setting} {FROM_NOTHING}" for part in answer.settings]
    assert len(bare) == 2 and list(answer.baselines.plan.played.labels) == [SEEN, EVEN, BEST, *bare]
    for part in answer.settings:
        assert [x.name for x in part.baselines] == [
            SEEN,
            EVEN,
            BEST,
            f"{part.setting} {FROM_NOTHING}",
        ]
    best = best_by_file(plan.table, plan.worlds, plan.spending)
    pulls = accounts.pulls[2, 0]  # known by the file, not draw by draw: the same arm in every run
    assert (pulls.sum(axis=-1) == pulls[:, best[0]]).all() and answer.best_arms == tuple(best)
    clicks = np.array([400.0, 250.0, 600.0])
    share = accounts.pulls[0, 0].sum(axis=0) / accounts.pulls[0, 0].sum()
    error = np.sqrt(share * (1 - share) / accounts.pulls[0, 0].sum())
    assert (abs(share - clicks / clicks.sum()) < 4 * error).all()
    even = accounts.money(1)[0].sum(axis=0)
    assert even / even.sum() == pytest.approx(np.full(3, 1 / 3), abs=0.05)
    np.testing.assert_array_equal(accounts.mean_reward, answer.comparison.accounts.mean_reward)


def test_a_history_is_what_the_file_has_counted_over_the_bounds_of_the_table(
    answer: Answer,
) -> None:
    plan = answer.comparison.plan
    (bound,) = {instance.cost_bound for instance in plan.table.instances}
    history = histories(plan.table, [0, 0], 4)
    assert history.pulls.tolist() == [[[400, 250, 600, 0]] * 2]
    assert history.reward.tolist() == [[[40, 30, 50, 0]] * 2]
    cost = np.asarray(history.cost) + np.asarray(history.cost_part) / 2**24
    np.testing.assert_allclose(cost[0, 1], np.array([410, 300, 500, 0]) / bound, atol=1e-6)


def test_without_the_file_a_policy_plays_as_the_row_from_nothing_says(
    answer: Answer, folder: Path
) -> None:
    """And with it otherwise; cents are dollars."""
    bare = compare(
        "ads.csv", 60.0, OmegaUCB(rho=[0.25, 1.0]), runs=40, marks=5, start="nothing", growth="none"
    )
    names = [f"{name} {FROM_NOTHING}" for name in answer.comparison.plan.played.labels]
    rows = answer.baselines.data["reward"].sel(setting=names)
    np.testing.assert_array_equal(bare.data["reward"].values, rows.values)
    assert (answer.comparison.data["reward"].values != rows.values).any()
    cents = ADS.replace("$410.00", "41000").replace("$300.00", "30000").replace("$500.00", "50000")
    Path("cents.csv").write_text(cents)
    scaled = compare(
        "cents.csv", 6000.0, OmegaUCB(rho=[0.25, 1.0]), runs=40, marks=5, growth="none"
    )
    np.testing.assert_array_equal(
        scaled.data["reward"].values, answer.comparison.data["reward"].values
    )


def test_a_second_noise_and_smaller_budgets(answer: Answer) -> None:
    assert isinstance(answer.check, NoiseCheck)
    assert answer.check.noise == "bernoulli"
    assert answer.check.runs == 40
    assert {name for name, _ in answer.check.ranking} == set(answer.comparison.plan.played.labels)
    assert answer.check.same_best == (answer.check.ranking[0][0] == answer.settings[0].setting)
    best = answer.settings[0]
    number = list(answer.comparison.plan.played.labels).index(best.setting)
    budgets, money = money_over_budgets(answer.comparison, number)
    np.testing.assert_allclose(budgets, 60 * np.arange(1, 5) / 4)
    # The last click, and 40 runs' noise
    assert money.sum(axis=(1, 2)) == pytest.approx(budgets, abs=3.0)
    assert money[-1, 0] == pytest.approx([arm.money.mean for arm in best.arms[0]])


def test_the_words(answer: Answer) -> None:
    text = report.text_of(answer.comparison, answer)
    lines = text.split("\n")
    assert lines[0] == "If you had run this again with $60 to spend:"
    best = answer.settings[0]
    assert lines[1].startswith(
        f"  {best.setting} would have brought {best.earned.mean:.1f} conversions ("
    )
    for name in (
        "Spring",
        "Summer",
        "Autumn",
        SEEN,
        EVEN,
        BEST,
        "% sure of that",
        "number 2 of 2 settings",
    ):
        assert name in text
    assert "$10.25" in text  # what a conversion of Spring costs in the file
    assert "means are estimates" in text
    assert "varies by 50% (stated" in text
    assert "Check: a click" in text
    assert "nan" not in text and text.count("warning") == 0
    assert report.closing(answer).startswith(f"In short: {best.setting} would have brought")
    assert len(report.GLOSSARY) == 6
    with pytest.raises(InputError, match=r"policy: 'bts' given; it must be one of omega_ucb"):
        answer_of(answer.comparison, ["bts"], check=False)


@pytest.mark.parametrize("runs", [20, 25, 39, 78, 100, 200])
def test_a_further_run_lies_between_as_often_as_is_said(runs: int) -> None:
    """Of a skewed law, and at least as often where runs may be equal; the worst of four says less."""
    rng, tries = np.random.default_rng(runs), 4000
    for values, ties in ((rng.exponential(size=(tries, runs + 1)) ** 2, False),
                         (rng.poisson(3.0, size=(tries, runs + 1)), True)):  # fmt: skip
        spreads = [Spread.of(row[:-1].astype(float)) for row in values]
        (coverage,) = {spread.coverage for spread in spreads}
        assert 0.9 < coverage < 0.976 and (coverage >= 0.95 - 1e-12) == (runs >= 39)
        inside = [x.low <= row[-1] <= x.high for x, row in zip(spreads, values, strict=True)]
        z = (np.mean(inside) - coverage) / np.sqrt(coverage * (1 - coverage) / tries)
        assert z > -3.5 and (ties or z < 3.5)


@pytest.mark.parametrize(("runs", "sentence", "note"), [
    (19, "(no interval for a further run: it takes 20 runs, 19 were played).",
     "No interval for a further run stands beside the means: it takes 20 runs, 19 were played."),
    (20, " in 90 of 100 runs).", "90 of 100 further runs would lie between the numbers in brackets."),
])  # fmt: skip
def test_below_twenty_runs_no_interval_is_printed_and_the_page_says_why(
    folder: Path, runs: int, sentence: str, note: str
) -> None:
    result = answer_of(
        compare("ads.csv", 20.0, OmegaUCB(rho=0.25), runs=runs, marks=2), check=False
    )
    first, *lines = report.text_of(result.comparison, result).split("\n")[1:]
    assert first.endswith(sentence)
    spring = next(line for line in lines if line.strip().startswith("Spring"))
    assert bool(re.search(r"\d \([\d.]+–[\d.]+\)", spring)) == (runs >= 20)
    page = report.page_of(result, dict.fromkeys(("money", "results"), b""))
    assert note in page and "nan" not in page


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ads.csv").write_text(ADS)
    return tmp_path


def test_warnings_have_numbers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "compare --arms ads.csv --budget 4 --policies omega_ucb --runs 40 --marks 5"
    assert command(f"{line} --no-check --explain --out out") == 0
    out, err = capsys.readouterr()
    assert err == "" and out.startswith("If you had run this again with $4 to spend:\n")
    assert "warning: the budget of 4 is about 3.9 clicks in 'ads': too few to learn anything" in out
    assert "warning: the last click exceeds the budget: " in out
    assert "% more than 4 is spent on average" in out
    assert "regret: what the best arm" in out and "Holm" not in out and "paired" not in out
    facts = json.loads(Path("out/answer.json").read_text())
    assert facts["uncertainty"] == "means"
    assert facts["second_noise"] is None
    assert len(facts["warnings"]) == 2
    rows = Path("out/arms.csv").read_text().splitlines()
    assert len(rows) == 4 and rows[0].startswith("setting,instance,arm,reward_per_pull,")
    page = Path("out/report.html").read_text()
    assert "://" not in page and page.count("data:image/png;base64,") == 2
    assert "If you had run this again with $4 to spend" in page
    assert "jaxbandits compare --arms ads.csv" in page


@pytest.mark.integration
def test_other_policies_and_constraints(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text(
        "import jaxbandits as jb\n@jb.pytree\nclass Mine(jb.policies.MUCB):\n    pass\n"
    )
    every = parser().parse(["--arms", "ads.csv", "--budget", "20", "--policies", "all"])
    needing = {"budget_ucb": "--min-cost", "ucb_bv1": "--min-cost", "pd_bwk": "--c-rad"}
    built, (note,) = chosen_policies(every)
    assert [type(x) for x in built] == [x for name, x in POLICIES.items() if name not in needing]
    assert note.endswith(": " + ", ".join(f"{name} ({needed})" for name, needed in needing.items()))
    every.constraint = 0.5
    assert [type(x) for x in chosen_policies(every)[0]] == list(AVERAGE_COST_POLICIES.values())
    line = "compare --arms ads.csv --budget 20 --runs 6 --marks 2 --no-answer --out out --policies"
    assert command(f"{line} mine.py:Mine --alpha 0.1") == 0
    assert "Mine(alpha=0.1)" in capsys.readouterr().out
    assert command(f"{line} pacer --constraint average-cost:0.5") == 0
    out = capsys.readouterr().out
    assert "pacer(a=1) broke the bound of 0.5 a round on average in 6 of 6 runs" in out


def test_a_notebook_writes_the_same_report(answer: Answer, tmp_path: Path) -> None:
    files = write_report(dataclasses.replace(answer, check=None), tmp_path / "deep")
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == sorted(
        (*FILES, *ANSWER_FILES)
    )
    assert all(path.stat().st_size for path in files)
    facts = json.loads((tmp_path / "deep/answer.json").read_text())
    assert [part["setting"] for part in facts["settings"]] == [
        part.setting for part in answer.settings
    ]
    page = (tmp_path / "deep/report.html").read_text()
    assert "To do it again" not in page and "In short" not in page and "Spring" in page


@pytest.mark.integration
def test_what_few_clicks_cannot_bear_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An arm of three clicks wins where means are the truth; and arms are taken never to run out."""
    Path("ads.csv").write_text(
        "name,clicks,spent,conversions\nOld,1200,1200,60\nNew,3,3,2\nOther,900,950,40\n"
    )
    line = "compare --arms ads.csv --budget 100 --policies omega_ucb --runs 20 --growth none"
    outputs = {}
    for uncertainty in ("given", "means"):
        assert command(f"{line} --uncertainty {uncertainty} --no-check --out {uncertainty}") == 0
        outputs[uncertainty] = capsys.readouterr().out
    share = re.search(
        r"warning: 'New' gets (\d+)% of the money and has 3 clicks in the file: its mean",
        outputs["given"],
    )
    assert share and int(share[1]) > 50
    assert "hardly known" not in outputs["means"]
    assert (
        "as many clicks to sell as are bought, at its mean cost (--growth none)."
        in outputs["given"]
    )


def test_differences_and_intervals_are_written_as_the_file_writes_its_numbers(
    answer: Answer,
) -> None:
    row = {"reward": 1234.5, "reward_low": 1233.9, "reward_high": 1235.1}
    plain = answer.comparison
    table = dataclasses.replace(plain.plan.table, style=NumberStyle(decimal=",", thousands="."))
    german = dataclasses.replace(plain, plan=dataclasses.replace(plain.plan, table=table))
    assert [report.with_interval(of, row, "reward") for of in (plain, german)] == [
        "1,234.50 ± 0.60",
        "1.234,50 ± 0,60",
    ]
    style = NumberStyle(decimal=",", thousands=".")
    assert style.interval(1234.5, -0.5, 1235.1) == "+1.234 (−0 to +1.235)"
    assert style.interval(1234.5, 1233.9, 1235.1) == "+1.234,50 (+1.233,90 to +1.235,10)"
    assert style.interval(-0.18675, np.nan, np.nan) == "−0,187"


def test_clear_is_one_test_in_the_ranking_and_in_the_answer(answer: Answer) -> None:
    """What the answer calls more is what the ranking's test would call clear, and its interval is
    what is said.
    """
    reward, splits = answer.comparison.data["reward"], answer.baselines.data["reward"]
    for part in answer.settings:
        at = list(answer.comparison.plan.played.labels).index(part.setting)
        beside = splits.sel(setting=[split.name for split in part.baselines])
        table = xarray.concat([reward[[at]], beside], "setting").drop_vars("setting")
        pairs = dominance(table, over="replicate").isel(setting=0)
        for i, split in enumerate(part.baselines, start=1):
            pair = pairs.isel(against=i)
            assert split.gain.clear == bool(pair["clear"])
            count = reward.sizes["instance"]
            ends = [count * float(pair[x]) for x in ("difference", "low", "high")]
            assert list(split.gain[:3]) == pytest.approx(ends)


def test_a_difference_that_is_not_clear_is_said_with_its_interval(answer: Answer) -> None:
    """Not "about as much", however large it is."""
    for gain, words in (
        (Gain(-50.0, -120.0, 3.0, -0.5, 0.4), "−50 (−120 to +3) against {}, which is not clear"),
        (Gain(-50.0, -90.0, -3.0, -0.5, 0.1), "50% less than {}"),
    ):
        split = answer.settings[0].baselines[0]._replace(gain=gain)
        part = dataclasses.replace(answer.settings[0], baselines=(split,))
        altered = dataclasses.replace(answer, settings=(part,))
        assert f" conversions, {words.format(split.name)}" in report.closing(altered)
        table = report.text_of(answer.comparison, altered)
        assert ("(−50%, not clear)" in table) == (not gain.clear)


def test_the_row_that_brings_clearly_most_is_the_headline(answer: Answer) -> None:
    part = answer.settings[0]
    best = part.baselines[2]
    top = best._replace(
        earned=best.earned._replace(mean=9.0, low=3.0), gain=Gain(-3.0, -3.5, -2.5, -0.33, 0.2)
    )
    sentence = "all on the file's best, Autumn brings most if the file is right, 9.0 conversions, more than "
    sentence += f"{part.setting} in 80% of runs; {part.setting} brings 33% less and no more if it is wrong: "
    sentence += f"{part.earned.low:.1f} against 3.0 in a bad run (1 in 41)."
    for clear in (True, False):
        gain = top.gain if clear else top.gain._replace(high=0.5)
        rows = (*part.baselines[:2], top._replace(gain=gain))
        altered = dataclasses.replace(answer, settings=(dataclasses.replace(part, baselines=rows),))
        assert (
            report.text_of(answer.comparison, altered).split("\n")[1] == f"  {sentence}"
        ) == clear
        assert report.closing(altered).startswith(f"In short: {sentence[:-1]}") == clear


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    """A log in which the dear arm is the better one and the cheap one has by far the best ratio; the
    money would buy more requests than there are.
    """
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("log") / "log.csv"
    rows = [
        f"{arm},{int(rng.random() < right)},{price * rng.uniform(0.9, 1.1):.5f}"
        for arm, right, price in (("gemini", 0.93, 0.015), ("deepseek", 0.88, 0.0005))
        for _ in range(60)
    ]
    path.write_text("\n".join(["name,reward,cost", *rows]) + "\n")
    return answer_of(compare(str(path), 3.0, OmegaUCB(), runs=30, marks=2), check=False)


def test_the_best_ratio_is_one_of_reward_to_cost_however_few_the_requests(log: Answer) -> None:
    (arms,) = log.settings[0].arms
    ratios = {arm.name: arm.file_reward / arm.file_cost for arm in arms}
    best = max(ratios, key=lambda name: ratios[name])
    assert best == "deepseek" and {arm.name: arm.best for arm in arms}[best] == 1.0
    text = report.text_of(log.comparison, log)
    assert "deepseek has the best ratio of reward to cost: the file is 100% sure of that" in text
    assert log.comparison.plan.spending.supply.requests
    alone = arms[log.best_arms[0]].name
    assert (f"All on {alone} would bring more, for the requests are fewer" in text) == (
        alone != best
    )


def test_an_even_split_of_a_log_is_even_in_money(log: Answer) -> None:
    labels = list(log.baselines.plan.played.labels)
    money = log.baselines.accounts.money(labels.index("an even split"))[0].mean(axis=0)
    share = money / money.sum()
    # the dear arm is pulled once in thirty rounds: a pull more or less is a part of its money
    np.testing.assert_allclose(share, 0.5, atol=0.15)
