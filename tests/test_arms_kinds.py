"""What titles, times and numbers of an arms file mean: brackets, days and clocks, finer names, kinds of results."""

from __future__ import annotations

import numpy as np
import pytest

from jaxbandits.comparison.arms_file import read_arms
from jaxbandits.core.errors import InputError
from tests.reading import clicks, read


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
