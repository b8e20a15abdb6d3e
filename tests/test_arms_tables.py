"""Tables of other shapes than one row an arm: breakdowns, totals, pivots, changes in percent, several tests."""

from __future__ import annotations

import time

import pytest

from jaxbandits.comparison.arms_file import read_arms
from jaxbandits.core.errors import InputError
from tests.reading import clicks, read


@pytest.mark.parametrize("word", ["Total", "Gesamt", "All", "Alle Geräte", ""])
@pytest.mark.parametrize(
    ("column", "cells"), [("Device", ("Mobile", "Desktop")), ("Day", ("2024-01-01", "2024-01-02"))]
)
def test_the_total_of_a_breakdown_is_not_counted_again(tmp_path, word, column, cells):
    rows = "".join(
        f"{arm},{cells[0]},100,50,5\n{arm},{cells[1]},{more},60,6\n{arm},{word},{100 + more},110,11\n"
        for arm, more in (("A", 200), ("B", 10))
    )
    table = read(tmp_path, f"Campaign,{column},Clicks,Cost,Conversions\n{rows}")
    assert clicks(table) == {"A": 300, "B": 110}
    assert any(note.startswith("lines 4, 7 skipped: a total") for note in table.notes)


def test_totals_of_totals_of_a_breakdown(tmp_path):
    rows = "A,M,y,1,2,3\nA,M,o,2,3,4\nA,M,Total,3,5,7\nA,D,y,5,6,1\nA,D,o,1,1,1\nA,D,Total,6,7,2\nA,Total,,9,12,9\n"
    table = read(tmp_path, f"Campaign,Device,Age,Clicks,Cost,Conversions\n{rows}B,M,y,1,9,1\n")
    assert clicks(table) == {"A": 9, "B": 1}


def test_a_total_of_each_day(tmp_path):
    rows = "A,2024-01-01,M,100,50,5\nA,2024-01-01,D,200,60,6\nA,2024-01-01,Total,300,110,11\nB,2024-01-01,M,9,9,1\n"
    table = read(tmp_path, f"Campaign,Day,Device,Clicks,Cost,Conversions\n{rows}A,2024-01-02,M,7,6,2\n")
    assert clicks(table) == {"A": 307, "B": 9}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("A,Mobile,100,50,5\nA,Total,120,70,6\nB,Mobile,10,9,1\n", {"A": 220, "B": 10}),  # sums nothing
        ("A,Mobile,100,50,5\nA,,100,50,6\nB,,10,9,1\n", {"A": 200, "B": 10}),  # of one row, a blank may be a device
        ("A,x,1,2,1\nA,y,1,2,1\nA,,2,4,1\nB,x,5,9,1\nB,y,6,9,1\nB,,7,1,1\n", {"A": 4, "B": 18}),  # not so in B
    ],
)
def test_what_sums_nothing_is_a_row_like_others(tmp_path, rows, expected):
    assert clicks(read(tmp_path, f"Campaign,Device,Clicks,Cost,Conversions\n{rows}")) == expected


def test_no_pull_of_a_log_is_a_total(tmp_path):
    rows = "A,all good,1,0.5\nA,x,0,0.5\nA,,1,1\nB,Total,1,0.5\nB,y,0,0.5\n"
    assert clicks(read(tmp_path, f"model,answer,reward,cost\n{rows}")) == {"A": 3, "B": 2}


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("Campaign", "A,100,50,500\nB,200,60,600\nChange,5%,3%,10%\n"),
        ("Campaign,Period", "A,x,60,30,300\nA,y,40,20,200\nA,% Change,-33 %,-33 %,-\nB,x,200,60,600\n"),
    ],
)
def test_a_row_of_changes_in_percent_is_skipped(tmp_path, header, rows):
    table = read(tmp_path, f"{header},Clicks,Cost,Revenue\n{rows}")
    assert clicks(table) == {"A": 100, "B": 200} and table.instances[0].mean_reward.tolist() == [5, 3]
    assert any("skipped: all in percent" in note for note in table.notes)


@pytest.mark.parametrize("row", ["100,50,5%", "5%,50,5", "100,5%,5"])
def test_percent_of_an_amount_is_refused(tmp_path, row):
    with pytest.raises(InputError, match=r"line 2, column .*: '5%' given; .* \(percent beside numbers"):
        read(tmp_path, f"Campaign,Clicks,Cost,Conversions\nA,{row}\nB,200,60,6\n")


def test_results_all_in_percent_are_a_rate(tmp_path):
    table = read(tmp_path, "Campaign,Clicks,Cost,Conversions\nA,100,50,5%\nB,200,60,0\nC,100,9,-\n")
    assert table.instances[0].mean_reward.tolist() == [0.05, 0, 0]
    assert "conversions worked out: 'Conversions' × clicks, rounded" in table.notes


@pytest.mark.parametrize(
    ("header", "rows", "expected"),
    [
        ("Campaign,Ad", "A,x,1\n,y,2\nB,x,3\n,y,4\n", {"A / x": 1, "A / y": 2, "B / x": 3, "B / y": 4}),
        ("Campaign,Device", "A,Mobile,1\n,Desktop,2\nB,Mobile,3\n,Desktop,4\n,Tablet,5\n", {"A": 3, "B": 12}),
        ("Campaign,Device", "A,M,1\n,D,2\n,Total,3\nB,M,3\n,D,5\n,Total,8\nGrand Total,,11\n", {"A": 3, "B": 8}),
        ("Campaign,Device", "A,M,1\n,D,2\nA Total,,3\nB,M,3\n,D,5\nB Total,,8\nTotal,,11\n", {"A": 3, "B": 8}),
        ("Campaign,Day", "A,2024-01-01,1\n,2024-01-02,2\nB,2024-01-01,3\n,2024-01-02,4\n", {"A": 3, "B": 7}),
        ("Campaign,Device", "A,M,1\n,D,2\nB,M,3\n,D,5\n,all in EUR,11\n", {"A": 3, "B": 8}),
    ],
)
def test_labels_of_a_pivot_that_are_not_repeated(tmp_path, header, rows, expected):
    lines = [f"{line},{3 * int(line.rsplit(',', 1)[1])},1" for line in rows.splitlines()]
    table = read(tmp_path, "\n".join([f"{header},Clicks,Cost,Conversions", *lines, ""]))
    assert clicks(table) == expected
    assert any(note.startswith("'Campaign' blank in lines 3, ") for note in table.notes)


def test_a_pivot_of_three_levels(tmp_path):
    rows = "A,s,x,1\n,,y,2\n,t,x,3\n,,y,4\nB,s,x,5\n,,y,6\n,t,x,7\n,,y,8\n".replace("\n", ",9,1\n")
    table = read(tmp_path, f"Campaign,Ad group,Ad,Clicks,Cost,Conversions\n{rows}")
    assert list(clicks(table).items())[1:4] == [("A / s / y", 2), ("A / t / x", 3), ("A / t / y", 4)]


def test_a_log_as_a_pivot(tmp_path):
    assert clicks(read(tmp_path, "model,task,reward,cost\nA,q,1,.5\n,r,0,.6\nB,q,1,.7\n,r,0,.6\n")) == {"A": 2, "B": 2}


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("timestamp,model", "2024-01-01,A,1,.5\n2024-01-02,,0,.6\n2024-01-03,B,1,.7\n2024-01-04,,0,.6\n"),  # left
        ("model,task", "A,q,1,.5\n,r,0,.6\nB,q,1,.7\n,r,0,.6\nA,s,0,1\n"),  # A is repeated
        ("model,task", "A,q,1,.5\n,r,0,.6\nB,q,1,.7\n,q,0,.6\n"),  # q of B twice
        ("model,task", "A,q,1,.5\nB,q,1,.7\n,q,0,.6\n"),  # below one name only
    ],
)
def test_blank_names_that_are_no_pivot_are_skipped(tmp_path, header, rows):
    table = read(tmp_path, f"{header},reward,cost\n{rows}")
    assert any(note.endswith("skipped: no name") for note in table.notes)


def test_totals_between_the_rows_they_sum(tmp_path):
    rows = "Brand,a,9,5,1\nBrand,b,20,6,2\nBrand,Total,29,11,3\nGeneric,c,1,2,1\nGeneric,d,5,6,1\nGeneric,Total,6,8,2\n"
    table = read(tmp_path, f"Ad group,Keyword,Clicks,Cost,Conversions\n{rows}Grand Total,,35,19,5\n")
    assert clicks(table) == {"a": 9, "b": 20, "c": 1, "d": 5}
    other = read(tmp_path, f"Ad group,Keyword,Clicks,Cost,Conversions\n{rows.replace('Total,29', 'Total,30')}")
    assert clicks(other) == {"a": 9, "b": 20, "Total": 30, "c": 1, "d": 5}  # sums nothing


@pytest.mark.parametrize(
    ("rows", "last"),
    [
        (
            "A,300,110,11\nMobile,100,50,5\nDesktop,200,60,6\nB,30,11,3\nMobile,10,5,1\nDesktop,20,6,2\nTotal,330,121,14\n",
            4,
        ),
        ("A,300,110,11\nx,100,50,5\ny,200,60,6\nB,30,11,3\nv,10,5,1\nw,20,6,2\nu,0,0,0\n", 4),
        ("A,30,11,1\ns,15,6,5\nx,10,5,5\ny,5,1,5\nt,15,5,6\nx,15,5,6\nB,3,2,1\ns,1,1,1\nt,2,1,0\n", 7),
    ],
)
def test_a_compact_pivot_is_refused(tmp_path, rows, last):
    with pytest.raises(InputError, match=rf"line 2, column Campaign: 'A' given; .* down to {last}: show the pivot"):
        read(tmp_path, f"Campaign,Clicks,Cost,Conversions\n{rows}")


def test_arms_of_the_same_numbers_are_no_pivot(tmp_path):
    rows = "A,100,50,5\nB,100,50,6\nC,30,20,7\nD,30,20,8\nE,0,0,0\nF,70,50,5\nG,30,5,5\nH,40,45,5\n"
    assert len(clicks(read(tmp_path, f"Campaign,Clicks,Cost,Conversions\n{rows}"))) == 7


@pytest.mark.parametrize(
    ("header", "row", "is_one"),
    [
        ("Clicks,Cost,Conversions", "Median,60,30,6", True),
        ("Clicks,Cost,Conversions", "Max,300,110,11", False),  # a model may be called so
        ("Clicks,Cost,Conversions", "All,390,151,20", True),
        ("Clicks,Cost,Conversions", "Max,301,112,11", False),
        ("Clicks,Cost,Conversions", "All,60,30,6", False),
        ("Accuracy,Avg. cost", "Overall,70,30", True),
        ("Accuracy,Avg. cost", "Overall,10,30", False),
        ("Accuracy,Avg. cost", "Min,30,30", False),
    ],
)
def test_a_median_or_maximum_at_the_end_is_no_arm(tmp_path, header, row, is_one):
    rows = "A,300,110,11\nB,30,11,3\nC,60,30,6\n"
    rows = rows if "Clicks" in header else "".join(f"{line.rpartition(',')[0]}\n" for line in rows.splitlines())
    table = read(tmp_path, f"Campaign,{header}\n{rows}{row}\n")
    assert (len(table.instances[0].arms) == 3) == is_one
    assert any("skipped: a total" in note for note in table.notes) == is_one


def test_a_long_log_is_read_in_seconds(tmp_path):
    lines = (f"2024-01-01 10:{i // 60 % 60:02}:{i % 60:02},m{i % 5},,{i % 2},0.{i % 7 + 1}" for i in range(20_000))
    start = time.process_time()
    table = read(tmp_path, "\n".join(["timestamp,model,comment,reward,cost", *lines, ""]))
    assert clicks(table)["m0"] == 4000 and time.process_time() - start < 10  # s; pairs of rows would take a minute


@pytest.mark.parametrize("titles", ["Experiment,Variant", "Test name,Variation", "test,arm"])
def test_each_test_is_a_problem_of_its_own(tmp_path, titles):
    rows = "Checkout,Control,100,50,5\nCheckout,A,120,50,7\nHero,Control,300,50,9\nHero,A,310,50,8\n"
    table = read(tmp_path, f"{titles},Visitors,Cost,Conversions\n{rows}")
    found = {one.name: (one.arms, one.evidence.clicks.tolist()) for one in table.instances}
    assert found == {"Checkout": (("Control", "A"), [100, 120]), "Hero": (("Control", "A"), [300, 310])}


@pytest.mark.parametrize(
    ("header", "rows", "instance"),
    [
        ("Experiment,Variant,Visitors,Cost,Orders", "C,Control,100,50,5\nC,A,120,50,7\n", "arms"),  # there is but one
        ("Experiment,Variant,Visitors,Cost,Orders", ",Control,100,50,5\n,A,120,50,7\n", "arms"),
        ("Test ID,Variant,Visitors,Cost,Orders", "1,Control,100,50,5\n2,A,120,50,7\n", "arms"),  # of rows
        ("Test,Campaign,Clicks,Cost,Orders", "x,a,100,50,5\ny,b,120,50,7\n", "arms"),  # campaigns are what they are
        ("test,variant,score,cost", "q,a,1,.5\nr,a,0,.4\nq,b,1,.3\nr,b,1,.2\n", "arms"),  # the tasks of a log
    ],
)
def test_what_is_no_test_of_variants(tmp_path, header, rows, instance):
    table = read(tmp_path, f"{header}\n{rows}")
    assert [one.name for one in table.instances] == [instance] and len(table.instances[0].arms) == 2


def test_a_test_that_is_asked_for_keeps_its_name(tmp_path):
    path = tmp_path / "arms.csv"
    path.write_text("Experiment,Variant,Visitors,Cost,Orders\nC,Control,100,50,5\nC,A,120,50,7\n", encoding="utf-8")
    assert [one.name for one in read_arms(path, columns={"instance": "Experiment"}).instances] == ["C"]


def test_a_total_that_sums_nothing_is_a_note(tmp_path):
    rows = "A,Mobile,100,50,5\nA,Total,120,70,6\nB,Mobile,10,9,1\n"
    notes = read(tmp_path, f"Campaign,Device,Clicks,Cost,Conversions\n{rows}").notes
    assert any(note.startswith("line 3 called a total, but not the sum") for note in notes)
    notes = read(tmp_path, f"Campaign,Device,Clicks,Cost,Conversions\n{rows.replace('120,70', '100,50')}").notes
    assert not any("called a total" in note for note in notes)


@pytest.mark.parametrize(
    ("header", "rows", "seen"),
    [
        ("Day,Campaign,Audience",
         "1,A,All visitors,3,2,1\n1,A,Lookalike,3,2,1\n2,A,All visitors,5,4,1\n2,A,Lookalike,4,3,1\n"
         "1,B,x,1,1,0\n", {"A": 15, "B": 1}),
        ("Campaign,Region", "A,North,10,5,1\nA,South,20,10,2\nA,,30,15,3\nB,North,1,1,0\n", {"A": 60, "B": 1}),
        ("Campaign,Created,Day", "A,2024-03-01,2024-01-01,1,1,0\nB,2024-03-01,2024-01-02,1,1,0\n", {"A": 1, "B": 1}),
        ("Ad group,Campaign", ",PMax 1,10,5,1\nBrand,S,20,10,2\n,PMax 2,30,15,3\nGeneric,S,5,4,1\n",
         {"Brand": 20, "Generic": 5}),
        ("Campaign", "Wine,30,15,3\nTotal Wine,30,15,3\nBeer,5,4,1\n", {"Wine": 30, "Total Wine": 30, "Beer": 5}),
        ("Campaign", "Mini,30,15,3\nPro,90,45,3\nMax,90,45,9\n", {"Mini": 30, "Pro": 90, "Max": 90}),
    ],
)  # fmt: skip
def test_what_only_looks_like_a_total_is_a_row(tmp_path, header, rows, seen):
    """An audience, a region that is not known, an ad group that a campaign has not, a shop's name."""
    assert clicks(read(tmp_path, f"{header},Clicks,Cost,Conversions\n{rows}")) == seen


@pytest.mark.parametrize(
    ("title", "other"),
    [
        ("Conversions (high-value)", "All conv."),
        ("Purchases (web/app)", "All conv."),
        ("Orders (incl. 0% finance)", "All conv."),
    ],
)
def test_brackets_that_say_which_are_left(tmp_path, title, other):
    table = read(tmp_path, f"Campaign,Clicks,Cost,{other},{title}\nA,100,50,9,5\nB,100,60,8,4\n")
    assert table.instances[0].evidence.value.tolist() == [5, 4]


def test_the_day_of_a_report_is_not_when_it_was_made(tmp_path):
    rows = "".join(f"{a},2024-01-0{d},2024-02-05,10,5,1\n" for a in "AB" for d in (1, 2))
    (first, _) = read(tmp_path, f"Campaign,Day,Created,Clicks,Cost,Conversions\n{rows}").instances[0].evidence.daily
    assert first.day.astype(str).tolist() == ["2024-01-01", "2024-01-02"]


def test_a_plain_log_with_a_date_and_a_clock_is_ordered_by_its_date(tmp_path):
    rows = "2024-01-02,08:00,A,1,.5\n2024-01-01,09:00,B,0,.5\n"
    pulls = read(tmp_path, f"date,time,name,reward,cost\n{rows}").instances[0].evidence.pulls
    assert pulls.reward.tolist() == [0, 1]
