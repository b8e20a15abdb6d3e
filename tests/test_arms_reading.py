"""How arms files are read: numbers, times, encodings, rows that are no arms, options, and what is told."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from jaxbandits._cli.arms_options import columns_of
from jaxbandits.comparison._reading.decoding import decoded
from jaxbandits.comparison._reading.numbers import BAD, NEGATIVE, NOTHING, NUMBER, UNKNOWN, read_numbers
from jaxbandits.comparison._reading.times import read_times
from jaxbandits.comparison.estimates import DAYS, ROWS, WILSON, estimates, ratio, wilson
from jaxbandits.core.errors import InputError
from tests.reading import message_of, read

COUNTS = "name,clicks,spent,conversions\n"


# ---- numbers


@pytest.mark.parametrize(
    ("text", "point", "value"),
    [
        ("1300", ".", 1300),
        ("+1.5e3", ".", 1500),
        ("1,300.50", ".", 1300.5),
        ("1.300,50", ",", 1300.5),
        ("1.234.567", ",", 1234567),
        ("1’300.5", ".", 1300.5),
        ("1 300,5", ",", 1300.5),
        ("1\u202f300,5", ",", 1300.5),
        ("12,34,567", ".", 1234567),
        ("$1,300", ".", 1300),
        ("€ 1.300", ",", 1300),
        ("1.300,5\u00a0€", ",", 1300.5),
        ("R$ 2,5", ",", 2.5),
        ("CHF 2.5", ".", 2.5),
        ("2.5 usd", ".", 2.5),
        ("US$2.5", ".", 2.5),
        ("602 kr", ".", 602),
        ("1.2K", ".", 1200),
        ("1.300,- €", ",", 1300),
        ("5.–", ".", 5),
        ("2.50 %", ".", 0.025),
        ("2,5%", ",", 0.025),
    ],
)
def test_numbers_in_every_dress(text: str, point: str, value: float) -> None:
    (found,), _, _ = read_numbers([[text]], [False], ",", point)
    assert found.state.tolist() == [NUMBER]
    assert found.values[0] == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "state"),
    [
        *((text, NOTHING) for text in ("", "-", "--", "—", "$ -")),
        *((text, UNKNOWN) for text in ("NA", "n/a", "null", "None", "#DIV/0!", "<NA>")),
        *((text, NEGATIVE) for text in ("-1.25", "(1.25)", "-$1.25", "$-1.25", "−1.25")),
        *((text, BAD) for text in ("1 0", "1,3,0", "1.2.3", "1_0", "٣", "５", "12o4", "#REF!", "inf", "1e999", "5 $€")),
        ("9" * 500, BAD),
    ],
)  # fmt: skip
def test_what_is_no_amount(text: str, state: int) -> None:
    (found,), _, _ = read_numbers([[text]], [False], ",", ".")
    assert found.state.tolist() == [state]


@pytest.mark.parametrize(
    ("columns", "separator", "point", "first"),
    [
        ([["1.300"], ["12,50"]], ",", ",", 1300),  # another column tells
        ([["1.300"], ["7"]], ",", ",", 1300),  # clicks are whole
        ([["7"], ["1.300"]], ",", ".", 1.3),  # as in the plain form
        ([["7"], ["1.300"]], ";", ",", 1300),  # between semicolons
        ([["7"], ["1,300"]], ",", ".", 1300),
        ([["7"], ["1,300"]], ";", ",", 1.3),
        ([["7"], ["0.300"]], ";", ".", 0.3),  # no group of thousands begins with 0
    ],
)
def test_the_decimal_sign_is_told_from_the_whole_file(
    columns: list[list[str]], separator: str, point: str, first: float
) -> None:
    found, style, _ = read_numbers(columns, [True, False], separator)
    assert style.decimal == point
    assert first in (found[0].values[0], found[1].values[0])


def test_what_custom_alone_decided_is_told_with_the_option(tmp_path: Path) -> None:
    text = "Anzeige;Klicks;Kosten;Bestellungen\nA;130;1.950;6\nB;820;1.066;31\n"
    table = read(tmp_path, text)
    assert any("'1.950' is 1950 (if not: --decimal .)" in note for note in table.notes)
    assert read(tmp_path, text, decimal=".").instances[0].mean_cost[0] == 1.95 / 130


def test_flags_are_numbers_if_the_whole_column_says_so(tmp_path: Path) -> None:
    log = read(tmp_path, "model,cost,correct\na,1,True\nb,1,false\na,1,\nb,1,yes\n").instances[0].evidence
    assert log is not None and log.whole and log.value is not None and log.value.tolist() == [1, 1]
    assert "'True' given" in message_of(tmp_path, "name,reward,cost\na,.5,1\nb,True,1\n")


# ---- times


@pytest.mark.parametrize(
    "text",
    [
        "2024-03-13 08:30:00",
        "2024-03-13T08:30:00Z",
        "2024-03-13T10:30:00.000+02:00",
        "2024-03-13 08:30:00 UTC",
        "20240313 08:30",
        "13.03.2024 08:30",
        "13/03/2024 08:30:00",
        "3/13/2024 8:30 AM",
        "Mar 13, 2024, 8:30:00 AM",
        "13 March 2024 08:30",
        "13-Mar-24 08:30",
        "13. März 2024 08:30",
        "mercredi 13 mars 2024 08:30",
        "13 de março de 2024 08:30",
        "1710318600",
        "1710318600000",
        "1710318600000000",
        "45364.354166666664",
    ],
)
def test_times_in_many_forms(text: str) -> None:
    found, _ = read_times([text, "NA"])
    assert found is not None
    assert found.astype("datetime64[s]").astype(str).tolist() == ["2024-03-13T08:30:00", "NaT"]


def test_days_and_months_are_told_apart_by_the_column_or_with_a_note() -> None:
    days, note = read_times(["03/04/2024", "13/04/2024"])
    assert days is not None and days[0] == np.datetime64("2024-04-03") and note == ""
    months, note = read_times(["03/04/2024", "04/04/2024"])
    assert months is not None and months[0] == np.datetime64("2024-03-04") and "month first" in note
    days, note = read_times(["03/04/2024", "04/04/2024"], custom=True)
    assert days is not None and days[0] == np.datetime64("2024-04-03") and "day first" in note
    assert read_times(["soon"])[0] is None
    rounds, note = read_times(["10", "9", "NA"])
    assert rounds is not None and rounds[0] > rounds[1] and np.isnat(rounds[2]) and "orders the rows" in note


# ---- text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
def test_encodings_are_told_from_the_bytes(encoding: str) -> None:
    text = "name,clicks,spent,conversions\nCafé,10,5,1\nThé,20,8,2\n"
    found, notes = decoded(text.encode(encoding), "a.csv")
    assert found == text and bool(notes) == ("utf-8" not in encoding)


def test_the_encoding_may_be_said() -> None:
    assert decoded("Весна".encode("cp1251"), "a.csv", "cp1251")[0] == "Весна"
    for name in ("cp1253", "zip", "no such"):
        with pytest.raises(InputError, match=r"^encoding: "):
            decoded(b"\xff\xff\xd2", "a.csv", name)


@pytest.mark.parametrize(
    ("content", "said"), [(b"PK\x03\x04rest", "a workbook"), (b'{"name": "a"}', "JSON"), (b"<html>", "HTML")]
)
def test_what_is_no_table_is_called_by_its_name(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read(tmp_path, content)


# ---- rows and arms


def test_an_arm_called_total_stays_unless_it_adds_up(tmp_path: Path) -> None:
    assert read(tmp_path, COUNTS + "a,10,5,1\nb,20,9,2\nTotal,7,3,1\n").instances[0].arms == ("a", "b", "Total")
    table = read(tmp_path, COUNTS + "a,10,5,1\nb,20,9,2\nTotal,30,14,3\n")
    assert table.instances[0].arms == ("a", "b") and "line 4 skipped: a total" in table.notes[0]


def test_arms_without_clicks_or_cost_are_kept_out_by_name_or_given_a_prior(tmp_path: Path) -> None:
    text = COUNTS + "a,100,50,5\nb,0,0,0\nc,100,0,3\nd,200,130,7\n"
    table = read(tmp_path, text)
    assert table.instances[0].arms == ("a", "d")
    assert [(arm.arm, arm.line) for arm in table.kept_out] == [("b", 3), ("c", 4)]
    given = read(tmp_path, text, prior=20.0)
    assert given.instances[0].arms == ("a", "b", "c", "d") and given.kept_out == ()
    # pooled: 15 conversions and 180 spent in 400 clicks
    np.testing.assert_allclose(given.instances[0].mean_reward, [(5 + 0.75) / 120, 0.0375, 3.75 / 120, 7.75 / 220])
    np.testing.assert_allclose(given.instances[0].mean_cost, [(50 + 9) / 120, 0.45, 9 / 120, 139 / 220])
    assert given.instances[0].evidence is not None and given.instances[0].evidence.clicks is not None
    assert given.instances[0].evidence.clicks.tolist() == [100, 0, 100, 200]  # the evidence is without prior


def test_an_instance_may_lose_its_arms_while_others_are_played(tmp_path: Path) -> None:
    table = read(tmp_path, "instance," + COUNTS + "x,a,10,5,1\nx,b,10,5,2\ny,c,10,5,1\ny,d,0,0,0\n")
    assert [i.name for i in table.instances] == ["x"]
    assert [(arm.arm, arm.reason) for arm in table.kept_out] == [("c", "alone in its instance"), ("d", "no clicks")]


def test_rows_of_a_log_without_reward_are_gaps_unless_no_row_says_zero(tmp_path: Path) -> None:
    gaps = read(tmp_path, "name,reward,cost\na,1,1\na,,1\nb,0,1\nb,1,1\n")
    assert gaps.instances[0].mean_reward.tolist() == [1, 0.5] and "1 row is a gap: without reward or cost" in gaps.notes
    zeros = read(tmp_path, "name,reward,cost\na,1,1\na,,1\nb,,1\nb,,1\n")
    assert zeros.instances[0].mean_reward.tolist() == [0.5, 0] and "3 empty rewards read as 0" in zeros.notes[0]


def test_the_value_column_can_be_chosen(tmp_path: Path) -> None:
    text = "Campaign,Clicks,Cost,Conv.,Conv. value\nA,10,5,1,30\nB,20,8,2,10\n"
    for chosen in ("revenue", "Conv. value", "conv value"):
        table = read(tmp_path, text, reward=chosen)
        assert (table.reward_unit, table.instances[0].mean_reward.tolist()) == ("Conv. value", [3.0, 0.5])
        assert table.instances[0].reward_bound == 3 / 0.99
    assert read(tmp_path, text).reward_unit == "Conv."
    assert "did you mean 'Conv. value'?" in message_of(tmp_path, text, reward="Conf. value")


def test_titles_given_by_the_user(tmp_path: Path) -> None:
    text = "A;B;C;D\nx;10;5,5;1\ny;20;8;2\n"
    columns = {"name": "A", "clicks": "b", "cost": "C", "conversions": "D"}
    assert read(tmp_path, text, columns=columns).instances[0].mean_cost.tolist() == [0.55, 0.4]
    assert read(tmp_path, text, columns={**columns, "cost": "2.5"}).instances[0].mean_cost.tolist() == [2.5, 2.5]
    assert message_of(tmp_path, text, columns={**columns, "clicks": "E"}).startswith(
        "columns: 'clicks=E' given; it must be"
    )
    assert message_of(tmp_path, text, columns={"clics": "B"}).startswith(
        "columns: 'clics' given; it must be one of inst"
    )
    assert message_of(tmp_path, text, columns={"name": ""}).startswith("columns: '' given; it must be the title")


def test_columns_as_typed() -> None:
    assert columns_of("name=Ad, mean-cost=Cost, per click,clicks=C=D") == {
        "name": "Ad",
        "mean_cost": "Cost, per click",
        "clicks": "C=D",
    }
    for text in ("", "name", "=x", "name=a,name=b", "name=", "nam=a"):
        with pytest.raises(Exception, match=r"given; it must be"):
            columns_of(text)


def test_one_name_only_points_to_the_column_with_several(tmp_path: Path) -> None:
    said = message_of(tmp_path, "Campaign,Team,Clicks,Cost,Leads\nA,x,10,5,1\nA,y,20,8,2\n")
    assert said.endswith("number of arms: 1 given; it must be 2 or more (--columns name=Team has 2)")


def test_all_problems_of_a_file_are_told_together(tmp_path: Path) -> None:
    text = "Campaign,Clicks,Cost,Conversions\nA,12o4,602.00,31\nB,980,39x.50,12\nC,980,$5,twelve\nD,1,€2,3,4\n"
    first, *lines = message_of(tmp_path, text, lines=6).split("\n  ")
    assert first.endswith("5 problems") and len(lines) == 5
    assert [line.split(":")[0] for line in lines] == [
        "line 5, column Cost",
        "line 2, column clicks",
        "line 3, column Cost",
        "line 4, column conversions",
        "line 5, number of cells",
    ]


def test_an_unordinary_file_is_no_plain_one_with_small_costs(tmp_path: Path) -> None:
    assert read(tmp_path, "name,clicks,spent,conversions\na,100,1,5\nb,100,2,3\n").instances[0].cost_bound == 1
    table = read(tmp_path, "Placement,Impressions,Spend,Leads\na,1000,1,5\nb,1000,2,3\n")
    assert (table.pull_unit, table.instances[0].cost_bound) == ("impression", 0.002 / 0.99)


# ---- estimates


def test_wilson_solves_its_equation() -> None:
    for x, n in ((0, 10), (3, 40), (40, 40), (250, 1000)):
        found = wilson(x, n)
        for end in (found.low, found.high):
            z2 = (x / n - end) ** 2 * n
            assert z2 == pytest.approx(1.959963984540054**2 * end * (1 - end), abs=1e-9) or end in (0, 1)
    assert math.isnan(wilson(0, 0).mean)


def test_a_ratio_of_equal_days_is_certain_and_of_two_says_nothing() -> None:
    assert ratio(np.full(5, 2.0), np.full(5, 4.0), DAYS).low == 0.5
    assert math.isnan(ratio(np.ones(2), np.ones(2), ROWS).low)
    assert ratio(np.ones(3), np.zeros(3), ROWS).mean == math.inf


def test_intervals_come_from_what_the_file_has(tmp_path: Path) -> None:
    days = "".join(
        f"{a},2024-03-{d:02d},{100 + d},{50 + d * k},{d}\n" for k, a in ((1, "a"), (2, "b")) for d in (1, 2, 3, 4)
    )
    daily = estimates(read(tmp_path, "Campaign,Day,Clicks,Cost,Leads\n" + days).instances[0])
    assert [x.how for x in daily[0]] == [WILSON, DAYS, DAYS]
    totals = estimates(read(tmp_path, COUNTS + "a,10,5,1\nb,20,9,2\n").instances[0])
    assert [x.how for x in totals[0]] == [WILSON, "", WILSON]
    log = estimates(read(tmp_path, "name,reward,cost\n" + "a,1,1\na,0,2\na,1,2\nb,2,1\nb,1,1\nb,2,2\n").instances[0])
    assert [x.how for x in log[0]] == [ROWS, ROWS, ROWS]
    means = estimates(read(tmp_path, "name,mean_reward,mean_cost\na,0.5,1\nb,0,1\n").instances[0])
    assert [x.mean for x in means[1]] == [0, 1, math.inf] and math.isnan(means[0][0].low)


@pytest.mark.parametrize(
    ("content", "kind", "mean"),
    [
        ("model,requests,cost_usd,resolved\na,1000,1.5,620\nb,300,9.5,250\n", "counts", 0.62),
        ("model,requests,cost_usd,resolved\na,3,1.5,1\nb,2,9.5,0\na,4,1.5,0\n", "log", 0.5),
        ("name,clicks,reward,cost\na,10,5,2\nb,20,4,2\n", "counts", 0.5),
        ("name,clicks,reward,cost\na,10,0.5,2\nb,20,0.4,2\n", "log", 0.5),
        ("Campaign,Impressions,Cost,Leads\na,1,2,1\nb,1,1,0\na,1,2,0\n", "log", 0.5),
    ],
)
def test_counts_are_told_from_logs(tmp_path: Path, content: str, kind: str, mean: float) -> None:
    table = read(tmp_path, content)
    assert (table.kind, table.instances[0].mean_reward[0]) == (kind, mean)


def test_no_option_names_a_column_without_a_title(tmp_path: Path) -> None:
    said = message_of(tmp_path, "Variant,Visitors,,Orders\na,10,5.5,1\nb,20,8.5,2\n")
    assert said.endswith("say --columns spent=1 (a number as cost: every pull costs that)")


def test_words_for_nothing_are_names_like_others(tmp_path: Path) -> None:
    rows = "NA,10,5,1\nnone,20,8,2\n(not set),30,9,1\n"
    for header in (COUNTS, "Region,Sessions,Total cost,Orders\n"):
        assert read(tmp_path, header + rows).instances[0].arms == ("NA", "none", "(not set)")
    assert read(tmp_path, COUNTS + rows + "-,5,4,1\n").instances[0].arms[-1] == "-"
    table = read(tmp_path, "Region,Sessions,Total cost,Orders\n" + rows + "--,5,4,1\n")
    assert len(table.instances[0].arms) == 3 and "line 5 skipped: no name" in table.notes


@pytest.mark.parametrize(
    "title",
    [
        "price per click",
        "Preis pro Klick",
        "prix par clic",
        "Cost per visit",
        "avg. price per link click",
        "Price/Click",
    ],
)
def test_a_price_of_one_pull_is_no_total(tmp_path, title):
    table = read(tmp_path, f'ad;clicks;"{title}";orders\na;100;0,50;5\nb;300;0,20;9\n')
    assert table.instances[0].evidence.spent.ravel().tolist() == pytest.approx([50.0, 60.0])


@pytest.mark.parametrize("title", ["unit price", "price each", "cost per install", "Preis je Stück"])
def test_a_price_of_one_thing_is_never_advised_as_a_total(tmp_path, title):
    message = message_of(tmp_path, f"ad,clicks,{title},orders\na,100,0.5,5\nb,300,0.2,9\n")
    assert f"spent={title}" not in message and "call it 'price per click'" in message


def test_a_bare_price_is_said_to_be_read_as_a_total(tmp_path):
    table = read(tmp_path, "ad,clicks,price,orders\na,100,50,5\nb,300,20,9\n")
    assert any("if it is the price of one" in note for note in table.notes)


@pytest.mark.parametrize(
    ("header", "first", "second"),
    [
        ("day,ad,clicks,spent,conversions", "50", "20"),
        ("day,ad,clicks,cpc,conversions", "0.5", "0.25"),  # a rate that is multiplied out
        ("day,arm,clicks,cost,reward", "50", "20"),  # in the words of a log
    ],
)
def test_clicks_without_a_price_are_not_free(tmp_path, header, first, second):
    table = read(tmp_path, f"{header}\n1,a,100,{first},5\n2,a,90,,4\n1,b,80,{second},3\n2,b,0,,\n")
    assert table.instances[0].evidence.clicks.ravel().tolist() == [100, 80]
    assert table.instances[0].evidence.spent.ravel().tolist() == [50.0, 20.0]
    assert any("line 3 not summed" in note for note in table.notes)


def test_a_total_of_one_arm_is_a_total(tmp_path):
    assert "number of arms: 1 given" in message_of(tmp_path, "ad,clicks,spend,results\na,100,50,5\nTotal,100,50,5\n")
