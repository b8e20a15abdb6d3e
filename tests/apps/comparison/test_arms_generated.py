"""Files made by a script, whose truths are known before they are written: daily ones without
totals, and odd ones.
"""

from __future__ import annotations

import gzip
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from jaxbandits.apps._cli.console import main
from jaxbandits.apps.comparison._reading import numbers, sheet
from jaxbandits.core.checks import InputError
from tests.apps.comparison.reading import message_of, only, read

Truth = dict[str, tuple[float, float, float]]  # clicks, spent, conversions
WORDS = {
    "quality_ranking": ("Average", "Above average", "Below average"),
    "Budget type": ("Campaign Total", "Daily"),
    "category": ("media", "overall", "sum"),
}


def daily(seed: int) -> tuple[str, Truth]:
    """1,000 to 15,000 rows of campaigns and days: small numbers, zeros and one price of a click
    make sums by chance.
    """
    rng = np.random.default_rng(seed)
    days = int(rng.choice([60, 120, 365]))
    campaigns = int(np.clip(rng.integers(1000, 15000) // days, 4, 40))
    busy, price, title = (
        rng.uniform(0.3, 12, campaigns),
        rng.choice([0.5, 0.37, 1.25]),
        list(WORDS)[seed % 3],
    )
    kind = [WORDS[title][k % len(WORDS[title])] for k in range(campaigns)]
    rows, truth = [], {}
    for day in np.datetime64("2024-01-01") + np.arange(days):
        for k in range(campaigns):
            clicks = int(rng.poisson(busy[k]))
            spent = round(clicks * price * (1 if seed % 2 else rng.uniform(0.5, 2)), 2)
            orders = int(rng.binomial(clicks, 0.2))
            name = f"Campaign {k + 1}"
            rows.append(f"{kind[k]},{day},{name},{clicks},{spent:.2f},{orders}")
            old = truth.get(name, (0, 0, 0))
            truth[name] = (old[0] + clicks, old[1] + spent, old[2] + orders)
    return f"{title},Day,Campaign,Clicks,Cost,Conversions\n" + "\n".join(rows) + "\n", truth


@pytest.mark.parametrize("seed", range(20))
def test_a_daily_file_without_totals_is_read_whole(tmp_path: Path, seed: int) -> None:
    text, truth = daily(seed)
    assert 1000 <= text.count("\n") <= 15000
    instance = only(read(tmp_path, text))
    evidence = instance.evidence
    counts = zip(evidence.clicks, evidence.spent, evidence.value, strict=True)
    got = dict(zip(instance.arms, counts, strict=True))
    assert got.keys() == truth.keys()
    assert all(got[name] == pytest.approx(of, rel=1e-9) for name, of in truth.items())


HEAD = "Campaign,Clicks,Cost,Conversions\n"
READ: dict[str, tuple[str, dict[str, float], str]] = {  # the text, the clicks of each arm, what is told
    "total below": (HEAD + "A,10,5,1\nB,20,9,2\nC,7,3,0\nTotal,37,17,3\n", {"A": 10, "B": 20, "C": 7}, "'Total'"),
    "total above in the first cell": (
        "State,Campaign,Clicks,Cost,Conversions\nTotal: all,--,30,14,3\non,A,10,5,1\noff,B,20,9,2\n",
        {"A": 10, "B": 20}, "line 2 skipped"),
    "totals of campaigns": (
        "Campaign,Ad,Clicks,Cost,Conversions\nA,a,10,5,1\nA,b,20,9,2\nA,Subtotal,30,14,3\nB,c,4,2,1\nB,d,6,3,1\n"
        "B,Subtotal,10,5,2\n", {"a": 10, "b": 20, "c": 4, "d": 6}, "lines 4, 7 skipped"),
    "a total in the column of days": (
        "Campaign,Day,Clicks,Cost,Orders\nA,2024-01-01,1,1,1\nA,2024-01-02,2,1,1\nA,Total,3,2,2\n"
        "B,2024-01-01,5,1,1\nB,2024-01-02,2,1,0\nB,Total,7,2,1\n", {"A": 3, "B": 7}, "lines 4, 7 skipped"),
    "quality first": (
        "quality_ranking,Ad,Clicks,Cost,Conversions\nAverage,a,100,50,5\nAbove average,b,90,30,9\nAverage,c,80,33,4\n",
        {"a": 100, "b": 90, "c": 80}, ""),
    "budget type": (
        "Ad,Budget type,Clicks,Cost,Conversions\na,Campaign Total,10,5,5\nb,Daily,90,30,9\n", {"a": 10, "b": 90}, ""),
    "a category called media": (
        "Ad,category,Clicks,Cost,Conversions\na,media,10,5,5\nb,moyenne,90,30,9\n", {"a": 10, "b": 90}, ""),
    "rounded ids": (
        "ad_id,clicks,spent,conversions\n2.38511E+16,420,210,25\n2.38511E+16,180,80,14\n2.38512E+16,300,100,9\n",
        {"2.38511E+16": 600, "2.38512E+16": 300}, "a spreadsheet rounded"),
    "zeros of rounded ids": (
        "ad_id,clicks,spent,conversions\n23851100000000000,4,2,2\n23851200000000000,3,1,0\n",
        {"23851100000000000": 4, "23851200000000000": 3}, "a spreadsheet rounded"),
    "polish, not wide": (
        "Campaign,Koszty,Cost,Clicks,Conversions\nA,1,5,10,1\nB,0,9,20,2\nC,1,3,7,0\n",
        {"A": 10, "B": 20, "C": 7}, "columns not used: 'Koszty'"),
    "every row twice": (HEAD + "A,10,5,1\nA,10,5,1\nB,9,5,2\nB,9,5,2\n", {"A": 20, "B": 18}, "equal in every cell"),
    "narrow spaces": (
        "Campaign;Clicks;Cost;Conversions\nA;4\u202f709;1\u202f204,50;91\nB;812;203,00;14\n", {"A": 4709, "B": 812},
        "1 204,50"),
    "a name that is empty": (
        "Ad name,Campaign,Clicks,Cost,Conversions\n,A,10,5,1\n,B,20,9,2\n", {"A": 10, "B": 20}, "'Campaign'"),
}  # fmt: skip
ASKED = {  # the text, what is asked
    "indented": ("name;clicks;spent;conversions\nX;30;14;3\n  a;10;5;1\n  b;20;9;2\nY;14;4;2\n  c;5;3;1\n  d;9;1;1\n",
                 "line 3: its name is indented, as below a sum"),
    "levels": ("Level,Name,Clicks,Cost,Conversions\nCampaign,X,30,14,3\nAd,a,10,5,1\nAd,b,20,9,2\nCampaign,Y,14,4,2\n"
               "Ad,c,5,3,1\nAd,d,9,1,1\n", "--drop Campaign leaves the rows of 'Ad'"),
    "names of parents": (HEAD + "X,30,14,3\nX - a,10,5,1\nX - b,20,9,2\nY,5,3,1\n", "'X' is the sum"),
    "a total of other days": (HEAD + "A,10,5,1\nB,20,9,2\nTotal,99,70,8\n", "(70.00 of 84.00); --drop Total leaves"),
    "a total and devices": (
        "Campaign,Device,Clicks,Cost,Conversions\nA,m,10,5,1\nA,d,20,9,2\nB,m,1,2,1\nB,d,9,1,1\nTotal,,99,70,8\n",
        "--drop Total --sum leaves it out"),
    "the sum of all others": (HEAD + "A,10,5,1\nB,20,9,2\nAll ads,30,14,3\n", "--drop 'All ads' leaves it out"),
    "impressions": ("Placement,Impressions,Spend,Orders\na,1000,5,2\nb,3000,2,9\n",
                    "--columns clicks=Impressions takes it so"),
    "tests": ("Experiment,Variant,Visitors,Cost,Orders\nC,Control,100,50,5\nC,A,120,50,7\nH,Control,300,50,9\n"
              "H,A,310,50,8\n", "--columns instance=Experiment keeps them apart"),
    "an unknown unit": ("Ad,Clicks,Cost (pence),Orders\na,1000,5,2\nb,3000,2,9\n",
                        "--columns 'spent=Cost (pence)' takes the numbers as they are"),
    "a name for several rows": (HEAD + "A,10,5,1\n,20,9,2\nB,6,4,3\n,5,5,5\n", "must stand in each"),
    "wide": ("x,y,z\n0,1,0\n1,0,0\n0,1,1\n0,0,0\n", "--wide --columns cost=1 takes it"),
    "wide with an id": ("id,x,y,z\n1,0,1,0\n2,1,0,0\n3,0,1,1\n4,0,0,0\n", "; --wide --columns cost=1"),
    "wide with costs": (
        "prompt,small score,small cost,large score,large cost\nhi,.5,.001,1,.02\nyo,1,.002,1,.03\n",
        "; --wide takes it"),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_an_odd_file_is_read(tmp_path: Path, name: str) -> None:
    text, truth, note = READ[name]
    for content in (text, gzip.compress(text.encode())):
        table = read(tmp_path, content)
        assert (
            dict(zip(only(table).arms, only(table).evidence.clicks.tolist(), strict=True)) == truth
        )
        assert note in "\n".join(table.notes)


@pytest.mark.parametrize("name", ASKED)
def test_every_command_of_a_question_reads_the_file(tmp_path: Path, name: str) -> None:
    text, question = ASKED[name]
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    message = str(caught.value)
    assert question in message
    commands = re.findall(r"; (--\S.*?) (?:leaves|plays|adds|keeps|takes)", message)
    alone = ("impressions", "an unknown unit", "wide", "wide with an id", "wide with costs")
    assert len(commands) > (name not in alone) or name in ("a name for several rows", "indented")
    for command in commands:
        assert main(["read", str(tmp_path / "arms.csv"), *shlex.split(command)]) == 0, command


def test_every_row_of_a_log_may_take_one_request(tmp_path: Path) -> None:
    text = "model,prompt,score,cost\n" + "".join(
        f"{m},{p},{p % 2},0.0{p}\n" for m in "ab" for p in (1, 2, 3)
    )
    table = read(tmp_path, text, columns={"clicks": "1", "cost2": "1"})
    assert (table.cost2_unit, only(table).mean_cost.tolist()) == (
        "rows",
        [[pytest.approx(0.02), 1]] * 2,
    )


def test_a_long_file_is_read_by_pandas_as_a_short_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, _ = daily(3)
    short = read(tmp_path, text)
    for module in (sheet, numbers):
        monkeypatch.setattr(module, "LONG", 1000)
    monkeypatch.setattr(
        sheet, "_rows", lambda *of, rows=sheet._rows: pytest.fail("csv") if of[2] else rows(*of)
    )
    long = read(tmp_path, text)
    assert long.notes == short.notes and only(long).arms == only(short).arms
    for ours, theirs in zip(only(long).evidence.daily, only(short).evidence.daily, strict=True):
        assert all(
            np.array_equal(getattr(ours, x), getattr(theirs, x))
            for x in ("day", "clicks", "value", "spent")
        )


def test_a_file_of_which_nothing_is_left_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no row is left"):
        read(tmp_path, HEAD + "A,10,5,1\nB,20,9,2\n", drop=["A", "B"])


def test_a_suggestion_holds_nothing_that_the_next_command_refuses(tmp_path: Path) -> None:
    for text, never in (
        (
            "Kampania,Clicks,Cost,Conversion_Rate\nA,10,5,0.1\nB,20,8,0.2\n",
            "conversions=Conversion_Rate",
        ),
        ("Task,Worker,Reward,Minutes\n1,w,0.05,3\n2,v,0.05,4\n", "reward=Reward"),
        ("Name,Clicks,Cost,Orders\n,10,5,1\n,20,8,2\n", "name=Name"),
    ):
        with pytest.raises(InputError) as caught:
            read(tmp_path, text)
        assert "Say which is which" in str(caught.value) and never not in str(caught.value)
    titles = ",".join(f"Column number {n}" for n in range(60))
    with pytest.raises(InputError, match="'Column number 59'"):
        read(tmp_path, f"Campaign,{titles}\nA{',1' * 60}\nB{',2' * 60}\n")


def test_a_command_that_does_not_help_is_not_printed(tmp_path: Path) -> None:
    head = "Campaign,Currency,Clicks,Cost,Conversions\n"
    message = message_of(tmp_path, head + "A,USD,10,5,1\nB,EUR,20,8,2\n")
    # One arm each
    assert "'USD' and 'EUR' given; it must be one of them" in message and "--" not in message
    message = message_of(tmp_path, head + "A,USD,10,5,1\nB,EUR,20,8,2\nC,USD,1,1,1\nD,EUR,2,1,1\n")
    assert message.endswith("; --columns instance=Currency plays each by itself")
