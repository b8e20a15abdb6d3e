"""Tables of other shapes than one row an arm: breakdowns, pivots, several tests; titles that say more than a word."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from jaxbandits.comparison.arms_file import ArmsTable, read_arms
from jaxbandits.core.errors import InputError


def read(folder: Path, content: str, name: str = "arms.csv") -> ArmsTable:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return read_arms(path)


def clicks(table: ArmsTable) -> dict[str, float]:
    (instance,) = table.instances
    return dict(zip(instance.arms, instance.evidence.clicks.tolist(), strict=True))


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
    "header",
    [
        "Clicks,Cost (per 1000),Orders",
        "Clicks,Cost: per order,Orders",
        "Clicks,Spend (M€),Orders",
        "Clicks,Cost (mean),Orders",
        "Clicks,Cost,Revenue (per click)",
        "Clicks,Cost,Revenue [€/order]",
        "Clicks,Cost,Conversions (% of total)",
        "n,score (mean),total cost",
    ],
)
def test_a_price_a_mean_or_a_share_in_brackets_is_no_total(tmp_path, header):
    with pytest.raises(InputError, match="columns missing") as caught:
        read(tmp_path, f"Campaign,{header}\nA,100,50,5\nB,200,60,6\n")
    assert "=Revenue [" not in str(caught.value) and "=Cost (" not in str(caught.value)


@pytest.mark.parametrize(
    ("header", "reward", "cost", "said"),
    [
        ("Clicks,Cost (per click),Orders", 0.05, 50, "spent worked out"),
        ("Clicks,Cost: per click,Orders", 0.05, 50, "spent worked out"),
        ("Clicks,Spend ($K),Orders", 0.05, 500, "'Spend ($K)' is in thousands"),
        ("Clicks,Kosten T€,Orders", 0.05, 500, "'Kosten T€' is in thousands"),
        ("Clicks,Spend (in thousands),Orders", 0.05, 500, "is in thousands"),
        ("Clicks,Cost (¢),Orders", 0.05, 0.005, "'Cost (¢)' is divided by 100"),
        ("Clicks,Cost,Conversions (rate)", 0.05, 0.5, "conversions worked out"),
        ("n,score (mean),cost (mean)", 50, 5, "mean_reward = 'score (mean)'"),
        ("Clicks (all),Cost,Orders: 7-day click", 0.05, 0.5, "clicks = 'Clicks (all)'"),  # as before
        ("Clicks,Cost ($),Revenue (total value)", 0.05, 0.5, "conversions = 'Revenue (total value)'"),
        ("Clicks,CPC (cost per click) (USD),Orders", 0.05, 50, "spent worked out"),
    ],
)
def test_a_unit_or_a_remark_in_brackets(tmp_path, header, reward, cost, said):
    table = read(tmp_path, f"Campaign,{header}\nA,100,50,5\nB,200,60,6\n")
    assert (table.instances[0].mean_reward[0], table.instances[0].mean_cost[0]) == (reward, cost)
    assert any(said in note for note in table.notes)


def test_the_value_of_purchases_is_no_number_of_them(tmp_path):
    table = read(tmp_path, "Campaign,Clicks,Cost,Purchase: value\nA,100,50,250\nB,200,60,300\n")
    assert table.instances[0].reward_bound > 2.5  # no error that there are more of them than clicks


@pytest.mark.parametrize(
    ("sign", "costs", "warned"),
    [
        ("\t", ("1.234 €", "12.500 €"), True),
        ("\t", ("1.234", "12.500"), True),
        (",", ("1.234 €", "12.500 €"), True),
        (",", ("1.234", "12.500"), False),  # as in the plain form
        ("\t", ("1.234 €", "12.50 €"), False),
        ("\t", ("0.234 €", "12.500 €"), False),
    ],
)
def test_dots_that_may_stand_between_thousands_are_a_note(tmp_path, sign, costs, warned):
    text = f"Kampagne,Klicks,Kosten,Konversionen\nA,950,{costs[0]},5\nB,900,{costs[1]},4\n".replace(",", sign)
    notes = read(tmp_path, text).notes
    assert any(note == f"decimal points: '{costs[0]}' is 1.234 (if not: --decimal ,)" for note in notes) == warned
    assert any("--decimal" in note for note in notes) == warned


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
        ("Clicks,Cost,Conversions", "Max,300,110,11", True),
        ("Clicks,Cost,Conversions", "All,390,151,20", True),
        ("Clicks,Cost,Conversions", "Max,301,112,11", False),
        ("Clicks,Cost,Conversions", "All,60,30,6", False),
        ("Accuracy,Avg. cost", "Overall,70,30", True),
        ("Accuracy,Avg. cost", "Overall,10,30", False),
        ("Accuracy,Avg. cost", "Min,30,11", True),
        ("Accuracy,Avg. cost", "Min,30,30", False),
    ],
)
def test_a_median_or_maximum_at_the_end_is_no_arm(tmp_path, header, row, is_one):
    rows = "A,300,110,11\nB,30,11,3\nC,60,30,6\n"
    rows = rows if "Clicks" in header else "".join(f"{line.rpartition(',')[0]}\n" for line in rows.splitlines())
    table = read(tmp_path, f"Campaign,{header}\n{rows}{row}\n")
    assert (len(table.instances[0].arms) == 3) == is_one
    assert any("skipped: a total" in note for note in table.notes) == is_one


@pytest.mark.parametrize(
    ("columns", "cells", "days"),
    [
        ("Month,Day", ("2024-01,2024-01-05", "2024-01,2024-01-06", "2024-02,2024-02-06"), ("2024-01-05", "2024-02-06")),
        ("Month,Day", ("2024-01,5", "2024-01,6", "2024-02,5"), ("2024-01-05", "2024-02-05")),
        ("Year,Month,Day", ("2024,Jan,5", "2024,Jan,6", "2024,Feb,5"), ("2024-01-05", "2024-02-05")),
        ("Month,Day", ("January,5", "January,6", "February,5"), ("1970-01-01", "1970-01-03")),  # but in order
        ("Quarter,Month", ("Q1,2024-01", "Q1,2024-02", "Q2,2024-04"), ("2024-01-01", "2024-04-01")),
        ("Year,Month", ("2023,1", "2023,2", "2024,1"), ("1970-01-01", "1970-01-03")),
        ("Year,Month", ("2023,January", "2023,February", "2024,January"), ("1970-01-01", "1970-01-03")),
        ("Year,Week", ("2023,KW 1", "2023,KW 2", "2024,KW 1"), ("1970-01-01", "1970-01-03")),
        ("Hour,Date", ("1,2024-01-04", "0,2024-01-05", "0,2024-01-06"), ("2024-01-04", "2024-01-06")),
        ("Reporting starts,Day", tuple(f"2024-01-01,2024-01-0{i}" for i in (5, 6, 7)), ("2024-01-05", "2024-01-07")),
        ("Week,Round", ("2024-01-01,7", "2024-01-08,7", "2024-01-15,7"), ("2024-01-01", "2024-01-15")),
    ],
)
def test_the_day_is_the_time_whatever_stands_first(tmp_path, columns, cells, days):
    lines = [f"{arm},{cell},{i + 1},9,1" for arm in "AB" for i, cell in enumerate(cells)]
    table = read(tmp_path, "\n".join([f"Campaign,{columns},Clicks,Cost,Conversions", *lines, ""]))
    daily = table.instances[0].evidence.daily[0]
    assert daily.day[[0, -1]].astype(str).tolist() == list(days) and daily.clicks.tolist() == [1, 2, 3]


def test_the_hours_of_a_day_are_summed(tmp_path):
    rows = "".join(f"{arm},{hour},2024-01-05,9,9,1\n" for arm in "AB" for hour in (0, 1, 2))
    daily = read(tmp_path, f"Campaign,Hour,Date,Clicks,Cost,Conversions\n{rows}").instances[0].evidence.daily
    assert daily[0].day.size == 1 and daily[0].clicks.tolist() == [27]


@pytest.mark.parametrize(("title", "clocks"), [("Time", ("09:00", "07:30", "10:15")), ("Hour", ("9", "7", "10"))])
def test_a_day_and_a_clock_order_a_log_together(tmp_path, title, clocks):
    rows = "".join(
        f"{clock},2024-01-0{day},{m},{day},.5\n" for clock, day, m in zip(clocks, (2, 3, 1), "ABA", strict=True)
    )
    pulls = read(tmp_path, f"{title},Date,model,reward,cost\n{rows}").instances[0].evidence.pulls
    assert pulls.reward.tolist() == [1, 2, 3] and (np.diff(pulls.time) > np.timedelta64(20, "h")).all()


def test_the_time_of_a_plain_log_is_its_column_time(tmp_path):
    rows = "2024-01-02,x,A,1,.5\n2024-01-01,x,B,0,.5\n"
    pulls = read(tmp_path, f"time,day,name,reward,cost\n{rows}").instances[0].evidence.pulls
    assert pulls.reward.tolist() == [0, 1]


def test_a_long_log_is_read_in_seconds(tmp_path):
    lines = (f"2024-01-01 10:{i // 60 % 60:02}:{i % 60:02},m{i % 5},,{i % 2},0.{i % 7 + 1}" for i in range(20_000))
    start = time.process_time()
    table = read(tmp_path, "\n".join(["timestamp,model,comment,reward,cost", *lines, ""]))
    assert clicks(table)["m0"] == 4000 and time.process_time() - start < 10  # s; pairs of rows would take a minute


@pytest.mark.parametrize(
    ("columns", "labels", "arms"),
    [
        ("Campaign Group Name,Campaign ID,Campaign Name", "g,1,a\ng,2,b\nh,3,c\n", ("a", "b", "c")),
        ("Insertion Order,Line Item", "o,a\no,b\n", ("a", "b")),
        ("Insertion Order,Line Item", "o,a\no,b\np,a\n", ("o / a", "o / b", "p / a")),
        ("provider,model", "x,a\nx,b\ny,c\n", ("a", "b", "c")),
        ("route,model", "x,a\nx,b\ny,b\n", ("x / a", "x / b", "y / b")),
        ("Source,Medium", "google,cpc\ngoogle,display\nbing,cpc\n", ("cpc / google", "display / google", "cpc / bing")),
        ("Source,Medium", "google,cpc\nletter,mail\n", ("google", "letter")),  # as before
        ("Campaign,Placement", "a,x\na,y\nb,x\n", ("a", "b")),
    ],
)
def test_an_arm_is_the_finer_name(tmp_path, columns, labels, arms):
    rows = "".join(f"{line},100,50,5\n" for line in labels.splitlines())
    assert read(tmp_path, f"{columns},Clicks,Cost,Conversions\n{rows}").instances[0].arms == arms


@pytest.mark.parametrize(
    ("columns", "labels", "note"),
    [
        ("Campaign,Network", "a,x\na,y\nb,x\n", "an arm is the sum over 'Network' (2 values)"),
        ("Campaign,Network", "a,x\na,x\nb,y\n", ""),
        ("Campaign,Day,Network", "a,2024-01-01,x\na,2024-01-02,y\nb,2024-01-01,x\n", ""),
    ],
)
def test_what_an_arm_sums_is_a_note(tmp_path, columns, labels, note):
    rows = "".join(f"{line},{n}00,5{n},5\n" for n, line in enumerate(labels.splitlines(), 1))
    notes = [x for x in read(tmp_path, f"{columns},Clicks,Cost,Conversions\n{rows}").notes if "the sum over" in x]
    assert notes == [note] * bool(note)


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


@pytest.mark.parametrize("title", ["total", "Questions", "tasks", "n", "num_examples"])
def test_the_table_of_an_evaluation_counts_answers(tmp_path, title):
    table = read(tmp_path, f"model,{title},correct,cost\na,100,87,1.20\nb,100,91,4.50\n")
    assert table.kind == "counts" and table.pull_unit == "pull" and clicks(table) == {"a": 100, "b": 100}
    assert table.instances[0].mean_reward.tolist() == [0.87, 0.91] and table.instances[0].reward_bound == 1


def test_models_on_several_data_sets_are_summed(tmp_path):
    rows = "x,a,100,87,1.2\nx,b,100,91,4.5\ny,a,50,3,.6\ny,b,50,40,2.5\n"
    table = read(tmp_path, f"dataset,model,n,correct,total_cost\n{rows}")
    assert clicks(table) == {"a": 150, "b": 150} and table.instances[0].mean_reward.tolist() == [0.6, 131 / 150]


@pytest.mark.parametrize(
    "text",
    [
        "model,n,rating,cost\na,8,3,1.2\na,8,5,4.5\nb,8,4,.6\nb,8,2,.9\n",  # a rating is no part of n
        "model,n,correct,cost\na,8,1,1.2\na,8,0,4.5\nb,8,1,.6\nb,8,0,.9\n",
        "model,total,score,cost\na,100,3,1.2\nb,100,5,4.5\n",
        "model,n,correct,cost\na,2,3,1.2\na,8,5,4.5\nb,8,4,.6\n",  # more than there are
    ],
)
def test_a_row_is_a_pull_where_the_reward_counts_nothing(tmp_path, text):
    assert read(tmp_path, text).kind == "log"


MIXED = "Campaign name,Link clicks,Amount spent (USD),Result type,Results,Leads\n{}"


def test_results_of_two_kinds_are_not_compared(tmp_path):
    path = tmp_path / "arms.csv"
    path.write_text(MIXED.format("A,100,50,Link clicks,90,3\nB,200,60,Website purchases,6,4\n"), encoding="utf-8")
    with pytest.raises(InputError, match=r"line 3, column Result type: 'Website purchases' given; .* as in line 2"):
        read_arms(path)
    assert read_arms(path, columns={"conversions": "Leads"}).instances[0].evidence.value.tolist() == [3, 4]
    assert read_arms(path, columns={"conversions": "Results"}).instances[0].evidence.value.tolist() == [90, 6]


@pytest.mark.parametrize(
    "rows",
    [
        "A,100,50,Purchases,9,3\nB,200,60,Purchases,6,4\n",
        "A,100,50,Purchases,9,3\nB,200,60,,0,4\n",
        "A,100,50,Purchases,9,3\nB,200,60,Reach,0,4\n",  # there are none of the other kind
    ],
)
def test_results_of_one_kind_are_compared(tmp_path, rows):
    table = read(tmp_path, MIXED.format(rows))
    assert table.instances[0].evidence.value[0] == 9 and any("conversions = 'Results'" in note for note in table.notes)


@pytest.mark.parametrize(
    ("columns", "labels", "arms"),
    [
        ("Row Labels", "a\nb\n", ("a", "b")),
        ("Zeilenbeschriftungen", "a\nb\n", ("a", "b")),
        ("Device", "a\nb\n", ("a", "b")),
        ("Nombre", "a\nb\n", ("a", "b")),
        ("Device,Campaign", "m,a\nm,b\n", ("a", "b")),
        ("Device,Traffic source", "m,a\nm,b\n", ("a", "b")),  # as before
    ],
)
def test_labels_are_names_where_there_are_no_others(tmp_path, columns, labels, arms):
    rows = "".join(f"{line},100,50,5\n" for line in labels.splitlines())
    assert read(tmp_path, f"{columns},Clicks,Cost,Conversions\n{rows}").instances[0].arms == arms


def test_a_minus_behind_is_a_minus(tmp_path):
    rows = "A;100;50;600,00\nA;10;5;100,00-\nB;100;50;1.300,-\n"
    table = read(tmp_path, f"Campaign;Clicks;Cost;Umsatz\n{rows}")
    assert table.instances[0].evidence.value.tolist() == [500, 1300]
    with pytest.raises(InputError, match="'1-2' given"):
        read(tmp_path, f"Campaign;Clicks;Cost;Umsatz\n{rows}C;1-2;1;1\n")


@pytest.mark.parametrize(
    ("header", "row"), [("Sent,Opens,Orders,Total Revenue", "100,50,5,20.5"), ("Sent,Purchases,Sales", "100,5,20.5")]
)
def test_what_was_earned_is_not_offered_as_cost(tmp_path, header, row):
    with pytest.raises(InputError, match="columns missing") as caught:
        read(tmp_path, f"Campaign,{header}\nA,{row}\nB,{row}\n")
    assert all(
        f"spent={title}" not in str(caught.value).replace("'", "") for title in ("Total Revenue", "Sales", "Purch")
    )
    assert "--columns spent=1 " in str(caught.value)
