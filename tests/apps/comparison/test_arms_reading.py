"""How arms files are read, rule by rule: numbers, times, text, columns, totals, what may be added,
what is asked.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from jaxbandits.apps.comparison._reading import columns
from jaxbandits.apps.comparison._reading.numbers import (
    BAD,
    NEGATIVE,
    NOTHING,
    NUMBER,
    UNKNOWN,
    read_numbers,
    read_times,
)
from jaxbandits.apps.comparison._reading.sheet import Column, decoded
from jaxbandits.apps.comparison.arms_table import (
    DAYS,
    ROWS,
    WILSON,
    estimates,
    interval_names,
    ratio_estimate,
    wilson,
)
from jaxbandits.core.checks import InputError
from tests.apps.comparison.reading import clicks, message_of, only, read

COUNTS = "name,clicks,spent,conversions\n"
ADS = "Campaign,Clicks,Cost,Conversions\n"
LOG = "name,reward,cost\n"


# ---- numbers


def column(*texts: str) -> Column:
    return Column.of(texts)


@pytest.mark.parametrize(
    ("text", "point", "value"),
    [("+1.5e3", ".", 1500), ("1,300.50", ".", 1300.5), ("1.300,50", ",", 1300.5), ("1.234.567", ",", 1234567),
     ("1’300.5", ".", 1300.5), ("1 300,5", ",", 1300.5), ("1\u202f300,5", ",", 1300.5), ("12,34,567", ".", 1234567),
     ("$1,300", ".", 1300), ("€ 1.300", ",", 1300), ("1.300,5\u00a0€", ",", 1300.5), ("R$ 2,5", ",", 2.5),
     ("CHF 2.5", ".", 2.5), ("2.5 usd", ".", 2.5), ("602 kr", ".", 602), ("2.50 %", ".", 0.025), ("2,5%", ",", 0.025)],
)  # fmt: skip
def test_numbers_in_every_dress(text: str, point: str, value: float) -> None:
    (parsed,), _, _ = read_numbers([column(text)], [False], ",", point)
    assert parsed.state.tolist() == [NUMBER]
    assert parsed.values[0] == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "state"),
    [
        *((text, NOTHING) for text in ("", "-", "--", "—", "$ -")),
        *((text, UNKNOWN) for text in ("NA", "n/a", "null", "None", "#DIV/0!", "<NA>")),
        *((text, NEGATIVE) for text in ("-1.25", "(1.25)", "-$1.25", "$-1.25", "−1.25", "1.25-")),
        *((text, BAD) for text in ("1 0", "1,3,0", "1.2.3", "1_0", "٣", "５", "12o4", "1-2", "inf", "1e999", "5 $€")),
        *((text, BAD) for text in ("1.2K", "1.300,- €", "5.–")),
        ("9" * 500, BAD),
    ],
)  # fmt: skip
def test_what_is_no_amount(text: str, state: int) -> None:
    (parsed,), _, _ = read_numbers([column(text)], [False], ",", ".")
    assert parsed.state.tolist() == [state]


@pytest.mark.parametrize(
    ("clicks", "cost", "separator", "point", "first"),
    [("1.300", "12,50", ",", ",", 1300),  # another column tells
     ("1.300", "7", ",", ",", 1300),  # clicks are whole
     ("7", "1.300", ",", ".", 1.3), ("7", "1.300", ";", ",", 1300),  # as in the plain form; between semicolons
     ("7", "1,300", ",", ".", 1300), ("7", "1,300", ";", ",", 1.3),
     ("7", "0.300", ";", ".", 0.3)],  # no group of thousands begins with 0
)  # fmt: skip
def test_the_decimal_sign_is_told_from_the_whole_file(
    clicks: str, cost: str, separator: str, point: str, first: float
) -> None:
    parsed, style, _ = read_numbers([column(clicks), column(cost)], [True, False], separator)
    assert style.decimal == point and first in (parsed[0].values[0], parsed[1].values[0])


def test_what_custom_alone_decided_is_told_with_the_option(tmp_path: Path) -> None:
    text = "Anzeige;Klicks;Kosten;Bestellungen\nA;130;1.950;6\nB;820;1.066;31\n"
    assert (
        "'1.950' is 1950" in read(tmp_path, text).notes[0]
        and "--decimal ." in read(tmp_path, text).notes[0]
    )
    assert read(tmp_path, text, decimal=".").instances[0].mean_cost[0] == 1.95 / 130


def test_flags_are_numbers_if_the_whole_column_says_so(tmp_path: Path) -> None:
    log = (
        read(tmp_path, "model,cost,correct\na,1,True\nb,1,false\na,1,\nb,1,yes\n")
        .instances[0]
        .evidence
    )
    assert log is not None and log.whole and log.value is not None and log.value.tolist() == [1, 1]
    assert "'True' given" in message_of(tmp_path, LOG + "a,.5,1\na,.5,1\nb,True,1\n")


def test_refunds_are_summed_and_percent_of_an_amount_is_refused(tmp_path: Path) -> None:
    table = read(
        tmp_path, "Campaign;Clicks;Cost;Umsatz\nA;100;50;600,00\nA;10;5;100,00-\nB;100;50;1.300,0\n"
    )
    assert table.instances[0].evidence.value.tolist() == [500, 1300]
    assert "(percent beside numbers" in message_of(tmp_path, ADS + "A,100,50,5%\nB,200,60,6\n")
    text, named = ADS + "A,100,50,5%\nB,200,60,0\nC,100,9,-\n", {"reward_rate": "Conversions"}
    assert "'5%' given" in message_of(tmp_path, text)
    assert read(tmp_path, text, columns=named).instances[0].mean_reward.tolist() == [0.05, 0, 0]


@pytest.mark.parametrize(
    "text",
    ["2024-03-13 08:30:00", "2024-03-13T08:30:00Z", "2024-03-13T10:30:00.000+02:00", "2024-03-13 08:30:00 UTC",
     "20240313 08:30", "13.03.2024 08:30", "13/03/2024 08:30:00", "3/13/2024 8:30 AM", "Mar 13, 2024, 8:30:00 AM",
     "Wed, 13 March 2024 08:30", "13-Mar-24 08:30", "1710318600", "1710318600000", "1710318600000000"],
)  # fmt: skip
def test_times_in_many_forms(text: str) -> None:
    times, _ = read_times(column(text, "NA"))
    assert times is not None
    assert times.astype("datetime64[s]").astype(str).tolist() == ["2024-03-13T08:30:00", "NaT"]


def test_days_and_months_are_told_apart_by_the_column_or_with_a_note() -> None:
    days, note = read_times(column("03/04/2024", "13/04/2024"))
    assert days is not None and days[0] == np.datetime64("2024-04-03") and note == ""
    months, note = read_times(column("03/04/2024", "04/04/2024"))
    assert months is not None and months[0] == np.datetime64("2024-03-04") and "month first" in note
    days, note = read_times(column("03/04/2024", "04/04/2024"), custom=True)
    assert days is not None and days[0] == np.datetime64("2024-04-03") and "day first" in note
    assert read_times(column("soon"))[0] is None and read_times(column("10", "9", "NA"))[0] is None


def test_months_in_other_languages_are_asked_about(tmp_path: Path) -> None:
    counts = "".join(f"{arm};{day}. März 2024;100;50;5\n" for arm in "AB" for day in (1, 2))
    log = "name;time;reward;cost\na;mars 1;1;1\na;mars 1;0;1\nb;;1;1\n"
    for text in (f"Kampagne;Tag;Klicks;Kosten;Conversions\n{counts}", log):
        message = message_of(tmp_path, text)
        assert (
            "is no date or time that is known (2024-03-31" in message
            and "--sum, which takes the rows as they" in message
        )
        assert len(read(tmp_path, text, add=True).instances[0].arms) == 2


def test_weeks_by_number_are_asked_about_and_rows_of_one_day_are_summed(tmp_path: Path) -> None:
    rows = "".join(f"{arm},{week},100,{50 + week},5\n" for arm in "AB" for week in (3, 1, 2))
    text = "Campaign,Week,Clicks,Cost,Conversions\n" + rows
    assert "'3' is no date or time that is known" in message_of(tmp_path, text)
    assert read(tmp_path, text, add=True).instances[0].evidence.daily[0].spent.tolist() == [
        53,
        51,
        52,
    ]
    rows = "".join(f"{arm},{hour},2024-01-05,9,9,1\n" for arm in "AB" for hour in (0, 1, 2))
    text = f"Campaign,Hour,Date,Clicks,Cost,Conversions\n{rows}"
    daily = read(tmp_path, text, add=True).instances[0].evidence.daily
    assert daily[0].day.size == 1 and daily[0].clicks.tolist() == [27]
    # the day of a report is not when it was made
    rows = "".join(f"{a},2024-01-0{d},2024-02-05,10,5,1\n" for a in "AB" for d in (1, 2))
    (first, _) = (
        read(tmp_path, f"Campaign,Day,Created,Clicks,Cost,Conversions\n{rows}")
        .instances[0]
        .evidence.daily
    )
    assert first.day.astype(str).tolist() == ["2024-01-01", "2024-01-02"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings_are_told_from_the_bytes(encoding: str) -> None:
    text = "name,clicks,spent,conversions\nCafé,10,5,1\nThé,20,8,2\n"
    content, notes = decoded(text.encode(encoding), "a.csv")
    assert content == text and bool(notes) == ("utf-8" not in encoding)


def test_the_encoding_may_be_said() -> None:
    assert decoded("Весна".encode("cp1251"), "a.csv", "cp1251")[0] == "Весна"
    with pytest.raises(InputError, match="or say --encoding"):
        decoded("name,clicks".encode("utf-16-le"), "a.csv")
    for name in ("cp1253", "zip", "no such"):
        with pytest.raises(InputError, match=r"^encoding: "):
            decoded(b"\xff\xff\xd2", "a.csv", name)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"PK\x03\x04rest", "a workbook"), (b'{"name": "a"}', "JSON"), (b"<html>", "HTML")],
)
def test_what_is_no_table_is_called_by_its_name(
    tmp_path: Path, content: bytes, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, content)


@pytest.mark.parametrize("packer", [gzip, bz2, lzma])
def test_a_packed_table_is_opened(tmp_path: Path, packer: ModuleType) -> None:
    text = "name,mean_reward,mean_cost\na,0.5,1\nb,0.25,0.5\n"
    for content in (text.encode(), text.encode("utf-16")):
        assert read(tmp_path, packer.compress(content)).instances[0].mean_reward.tolist() == [
            0.5,
            0.25,
        ]
    with pytest.raises(
        InputError, match=rf"^arms file: .*; it must be a {packer.__name__} file that is whole"
    ):
        read(tmp_path, packer.compress(text.encode())[:-9])


# ---- columns


def test_the_reward_can_be_chosen(tmp_path: Path) -> None:
    text = "Campaign,Clicks,Cost,Conv.,Conv. value\nA,10,5,1,30\nB,20,8,2,10\n"
    for title in ("Conv. value", "conv value"):
        table = read(tmp_path, text, reward=title)
        assert (table.reward_unit, table.instances[0].mean_reward.tolist()) == (
            "Conv. value",
            [3.0, 0.5],
        )
        assert table.instances[0].reward_bound == 3 / 0.99
    table = read(tmp_path, text)
    assert table.reward_unit == "Conv." and any(
        "--reward 'Conv. value' would take" in note for note in table.notes
    )
    assert "reward: 'Conf. value' given; it must be a title" in message_of(
        tmp_path, text, reward="Conf. value"
    )


def test_titles_given_by_the_user(tmp_path: Path) -> None:
    text = "A;B;C;D\nx;10;5,5;1\ny;20;8;2\n"
    columns = {"name": "A", "clicks": "b", "cost": "C", "conversions": "D"}
    assert read(tmp_path, text, columns=columns).instances[0].mean_cost.tolist() == [0.55, 0.4]
    assert read(tmp_path, text, columns={**columns, "cost": "2.5"}).instances[
        0
    ].mean_cost.tolist() == [2.5, 2.5]
    message = message_of(tmp_path, text, columns={**columns, "clicks": "E"})
    assert message.startswith("columns: 'clicks=E' given; it must be a title of the file")
    assert message_of(tmp_path, text, columns={"clics": "B"}).startswith(
        "columns: 'clics' given; it must be one of"
    )
    assert message_of(tmp_path, text, columns={"name": ""}).startswith(
        "columns: '' given; it must be the title"
    )


def test_a_suggestion_leaves_open_what_is_not_known(tmp_path: Path) -> None:
    message = message_of(
        tmp_path, "Campaign,Sent,Opens,Total Revenue,Price tag\nA,100,50,20.5,3\nB,90,40,10,4\n"
    )
    assert (
        "no column is known to be spent. The columns are 'Campaign' (A, B); 'Sent' (100, 90); 'Opens' (50"
        in message
    )
    assert "--columns 'name=Campaign,clicks=Sent,conversions=Total Revenue,spent=…'" in message


@pytest.mark.parametrize(
    "title",
    ["price per click", "Preis pro Klick", "CPC", "Cost per visit", "unit price", "Price/Click"],
)
def test_a_price_is_named_as_a_price(tmp_path: Path, title: str) -> None:
    text = f'ad;clicks;"{title}";orders\na;100;0,50;5\nb;300;0,20;9\n'
    message = message_of(tmp_path, text, columns={"cost": title})
    assert (
        "it must be a total; if it is one pull's, say --columns " in message
        and f"price={title}" in message
    )
    table = read(tmp_path, text, columns={"price": title})
    assert table.instances[0].evidence.spent.tolist() == [50, 60]
    assert any("spent worked out" in note for note in table.notes[: table.changes])
    table = read(tmp_path, text, columns={"price": title, "reward_rate": "orders"}, reward_max=10)
    assert table.instances[0].mean_reward.tolist() == [5, 9]


def test_a_bare_price_beside_pulls_is_asked_about(tmp_path: Path) -> None:
    text = "ad,clicks,price,orders\na,100,50,5\nb,300,20,9\n"
    message = message_of(tmp_path, text)
    assert (
        "--columns clicks=… (what counts pulls, or 1: every row is one) with cost=… (of all) or price=… (of one)"
        in message
    )
    table = read(tmp_path, text, columns={"clicks": "clicks", "price": "price"})
    assert table.instances[0].mean_cost.tolist() == [50, 20]


def test_columns_that_are_equally_likely_are_asked_about(tmp_path: Path) -> None:
    text = "Campaign,Clicks (mobile),Clicks (desktop),Cost,Orders\nA,100,50,9,5\nB,200,60,6,5\n"
    assert (
        "is 'Clicks (mobile)' or 'Clicks (desktop)' the clicks? Say --columns clicks=…"
        in message_of(tmp_path, text)
    )


@pytest.mark.parametrize("option", ["price", "cost"])
def test_a_price_of_a_thousand_is_not_that_of_one(tmp_path: Path, option: str) -> None:
    text = "Ad,Impressions,CPM,Orders\na,1000,5,2\nb,3000,2,9\n"
    assert "'CPM' given" not in (message := message_of(tmp_path, text, columns={option: "CPM"}))
    assert message.startswith(
        f"columns: '{option}=CPM' given; it must be of one pull, or a total, not of a thousand"
    )


def test_percent_in_front_of_a_title_counts(tmp_path: Path) -> None:
    text = "Model,Requests,Cost ($),% Accuracy\ngpt-4o,500,12.5,40.2\nhaiku,500,25.0,47.2\n"
    named = {"clicks": "Requests", "reward_rate": "% Accuracy"}
    np.testing.assert_allclose(
        only(read(tmp_path, text, columns=named)).mean_reward, [0.402, 0.472], rtol=1e-12
    )


def test_two_signs_between_the_same_digits_are_asked_about(tmp_path: Path) -> None:
    text = 'name,clicks,spent,conversions\na,100,"1,500",4\nb,150,1.750,6\n'
    assert "'1,500, 1.750' given; it must be of one decimal sign" in message_of(tmp_path, text)
    assert read(tmp_path, text, decimal=".").instances[0].evidence.spent.tolist() == [1500, 1.75]
    text = "name;clicks;spent;conversions\na;100;0,654;4\nb;150;0.265;6\n"
    assert "it must be of one decimal sign" in message_of(tmp_path, text)


@pytest.mark.parametrize(
    "title", ["Cost (pence)", "Spend (M€)", "Spend ($K)", "Cost (per 1000)", "Cost [€/order]"]
)
def test_a_unit_that_is_not_known_is_never_dropped(tmp_path: Path, title: str) -> None:
    message = message_of(tmp_path, f"ad,clicks,{title},orders\na,100,50,5\nb,300,60,9\n")
    assert (
        "it must be a unit that is known" in message or "no column is known to be spent" in message
    )
    assert (
        read(tmp_path, f"ad,clicks,{title.split()[0]},orders\na,100,50,5\nb,300,60,9\n").kind
        == "counts"
    )


@pytest.mark.parametrize(
    ("header", "row", "reward", "cost"),
    [
        ("Clicks,Cost (cents),Orders", "100,50,5", 0.05, 0.005),
        ("Clicks,Cost (¢),Orders", "100,50,5", 0.05, 0.005),
        ("Clicks (all),Cost,Orders: 7-day click", "100,50,5", 0.05, 0.5),
        ("Conversion rate,CPC", "2.8,0.5", 0.028, 0.5),
    ],
)
def test_units_and_rates_of_titles(
    tmp_path: Path, header: str, row: str, reward: float, cost: float
) -> None:
    table = read(tmp_path, f"Campaign,{header}\nA,{row}\nB,{row}\n")
    assert table.instances[0].mean_reward.tolist() == pytest.approx([reward] * 2)
    assert table.instances[0].mean_cost.tolist() == pytest.approx([cost] * 2)
    assert table.changes or "all" in header


@pytest.mark.parametrize(
    ("columns", "labels", "arms"),
    [("Campaign Group Name,Campaign ID,Campaign Name", "g,1,a\ng,2,b\nh,3,c\n", ("a", "b", "c")),
     ("Insertion Order,Line Item", "o,a\no,b\np,a\n", ("o / a", "o / b", "p / a")),
     ("route,model", "x,a\nx,b\ny,b\n", ("x / a", "x / b", "y / b")),
     ("Source,Medium", "google,cpc\ngoogle,display\nbing,cpc\n", ("cpc / google", "display / google", "cpc / bing")),
     ("Row Labels", "a\nb\n", ("a", "b")), ("Device,Campaign", "m,a\nm,b\n", ("a", "b"))],
)  # fmt: skip
def test_an_arm_is_the_finest_name(
    tmp_path: Path, columns: str, labels: str, arms: tuple[str, ...]
) -> None:
    rows = "".join(f"{line},{100 + 7 * n},50,5\n" for n, line in enumerate(labels.splitlines()))
    assert read(tmp_path, f"{columns},Clicks,Cost,Conversions\n{rows}").instances[0].arms == arms


@pytest.mark.parametrize("name", ["NA", "None", "(not set)", "nan", "2024", "Total Wine"])
def test_words_for_nothing_and_numbers_are_names_like_others(tmp_path: Path, name: str) -> None:
    for header in (COUNTS, "Region,Sessions,Total cost,Orders\n"):
        assert read(tmp_path, f"{header}a,10,5,1\n{name},25,8,2\n").instances[0].arms == ("a", name)


def test_results_of_two_kinds_are_not_compared(tmp_path: Path) -> None:
    header = "Campaign name,Link clicks,Amount spent (USD),Result type,Results,Leads\n"
    text = header + "A,100,50,Link clicks,90,3\nB,200,60,Website purchases,6,4\n"
    assert "column Result type: 'Link clicks' and 'Website purchases' given" in message_of(
        tmp_path, text
    )
    assert read(tmp_path, text, columns={"conversions": "Leads"}).instances[
        0
    ].evidence.value.tolist() == [3, 4]


# ---- rows that are no arms


@pytest.mark.parametrize(
    ("text", "arms", "lines"),
    [
        (COUNTS + "a,10,5,1\nb,20,9,2\nTotal,30,14,3\n", ("a", "b"), "line 4"),
        (COUNTS + "Grand total:,30,14,3\na,10,5,1\nb,20,9,2\n", ("a", "b"), "line 2"),
        (ADS + "A,10,5,1\nB,20,9,2\n,30,14,3\n", ("A", "B"), "line 4"),
        (LOG + "a,1,.5\na,0,.6\nb,1,.7\nb,1,.4\nTotal,3,2.2\n", ("a", "b"), "line 6"),
        ("Campaign,Day,Clicks,Cost,Leads\nA,2024-01-01,10,5,1\nA,2024-01-02,20,9,2\nA,Total,30,14,3\n"
         "B,2024-01-01,5,3,1\nB,2024-01-02,6,3,1\nB,Total,11,6,2\n", ("A", "B"), "lines 4, 7"),
    ],
)  # fmt: skip
def test_a_row_called_total_that_adds_up_is_skipped(
    tmp_path: Path, text: str, arms: tuple[str, ...], lines: str
) -> None:
    table = read(tmp_path, text)
    assert table.instances[0].arms == arms and table.notes[0].startswith(f"{lines} skipped: totals")
    assert table.changes == 1


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [(COUNTS + "a,10,5,1\nb,20,9,2\nTotal,7,3,1\n", "Total", "and is not the sum of other rows (3.00 of 17.00)"),
     (COUNTS + "a,10,5,1\nb,20,9,2\nbrand,30,14,3\n", "brand", "is the sum of other rows"),
     (COUNTS + "camp,30,14,3\ncamp a,10,5,1\ncamp b,20,9,2\nc,5,3,1\nd,9,1,1\n", "camp", "is the sum of other rows"),
     (LOG + "a,1,.5\na,0,.6\nb,1,.7\nb,1,.4\nTotal,3,9\n", "Total", "is called a total, and is not the sum"),
     ("name,mean_reward,mean_cost\na,.5,.5\nb,.4,.3\nAverage,.45,.4\n", "Average", "is called a total")],
)  # fmt: skip
def test_what_may_be_a_total_is_asked_about(
    tmp_path: Path, text: str, name: str, reason: str
) -> None:
    message = message_of(tmp_path, text)
    assert (
        f"'{name}' " in message
        and reason in message
        and f"; --drop {name} leaves it out; --keep {name} plays it as an arm" in message
    )
    with_arm, dropped = (
        set(read(tmp_path, text, **{option: [name]}).instances[0].arms)
        for option in ("keep", "drop")
    )
    assert with_arm - dropped == {name}


def test_what_is_dropped_is_a_name_where_there_is_one(tmp_path: Path) -> None:
    text = "Campaign,Ad,Clicks,Cost,Conversions\nA,A,30,14,3\nA,a,10,5,1\nA,b,20,9,2\nB,c,7,3,1\n"
    assert "--drop A leaves it out" in message_of(tmp_path, text)
    assert clicks(read(tmp_path, text, drop=["A"])) == {"a": 10, "b": 20, "c": 7}
    text = "Campaign,Note,Clicks,Cost,Conversions\nA,,10,5,1\nB,,20,9,2\n,,31,14,3\n"
    assert clicks(read(tmp_path, text, drop=[""])) == {"A": 10, "B": 20}


def test_a_total_of_one_arm_is_a_total_and_no_name_is_asked_about(tmp_path: Path) -> None:
    assert "number of arms: 1 given" in message_of(
        tmp_path, "ad,clicks,spend,results\na,100,50,5\nTotal,100,50,5\n"
    )
    assert "'' has no name; --drop '' leaves it out" in message_of(
        tmp_path, ADS + "A,10,5,1\nB,20,9,2\n,31,14,3\n"
    )


# ---- rows that are added, and logs


@pytest.mark.parametrize(
    ("column", "cells"),
    [("Device", ("M", "D")), ("Window", ("7", "30")), ("Metric", ("first", "last"))],
)
def test_rows_that_differ_in_another_column_are_added_only_on_demand(
    tmp_path: Path, column: str, cells: tuple[str, str]
) -> None:
    rows = "".join(
        f"{arm},{cell},{n},9,1\n"
        for arm, of in (("A", (10, 20)), ("B", (40, 5)))
        for cell, n in zip(cells, of, strict=True)
    )
    text = f"Campaign,{column},Clicks,Cost,Conversions\n{rows}"
    message = message_of(tmp_path, text)
    assert (
        f"differ in '{column}' ({', '.join(cells)}); --sum adds them; --columns instance={column} keeps"
        in message
    )
    assert clicks(read(tmp_path, text, add=True)) == {"A": 30, "B": 45}
    assert len(read(tmp_path, text, columns={"instance": column}).instances) == 2


@pytest.mark.parametrize(
    ("content", "kind", "mean"),
    [("model,requests,cost_usd,resolved\na,1000,1.5,620\nb,300,9.5,250\n", "counts", 0.62),
     ("name,clicks,reward,cost\na,10,5,2\nb,20,4,2\n", "counts", 0.5),
     ("Campaign,Impressions,Cost,Leads\na,1,2,1\nb,1,1,0\na,1,2,0\n", "log", 0.5),
     ("model,num_tasks,correct,cost\na,100,87,1.20\nb,100,91,4.50\n", "counts", 0.87)],
)  # fmt: skip
def test_counts_are_told_from_logs(tmp_path: Path, content: str, kind: str, mean: float) -> None:
    table = read(tmp_path, content)
    assert (table.kind, table.instances[0].mean_reward[0]) == (kind, mean)


def test_a_log_needs_a_name_with_two_rows(tmp_path: Path) -> None:
    message = message_of(tmp_path, "model,score,cost\na,1,.5\nb,.4,.3\n")
    assert (
        "no name has two rows, so this is no log" in message
        and "'score' (1, .4)" in message
        and "clicks=…" in message
    )
    assert (
        read(tmp_path, "model,score,cost\na,1,.5\nb,.4,.3\n", columns={"clicks": "1"}).kind == "log"
    )


def test_one_row_for_each_name_and_day_is_asked_about(tmp_path: Path) -> None:
    text = "day,model,score,cost\n" + "".join(
        f"2024-01-0{d},{m},0.{d},.5\n" for d in (1, 2) for m in "ab"
    )
    assert "one row for each day: is a row one pull" in message_of(tmp_path, text)
    assert read(tmp_path, text, columns={"clicks": "1"}).kind == "log"
    with_clock = text.replace("-01,", "-01 08:00,").replace("-02,", "-02 09:00,")
    assert "is a row one pull" in message_of(tmp_path, with_clock)
    assert read(tmp_path, with_clock.replace(":00,b", ":10,b")).kind == "log"


def test_rows_of_a_log_without_reward_are_gaps_unless_no_row_says_zero(tmp_path: Path) -> None:
    gaps = read(tmp_path, LOG + "a,1,1\na,,1\nb,0,1\nb,1,1\n")
    assert (
        gaps.instances[0].mean_reward.tolist() == [1, 0.5]
        and "1 row is a gap: without reward or cost" in gaps.notes
    )
    zeros = read(tmp_path, LOG + "a,1,1\na,,1\nb,,1\nb,,1\n")
    assert (
        zeros.instances[0].mean_reward.tolist() == [0.5, 0]
        and "3 empty rewards read as 0" in zeros.notes[0]
    )


def test_each_test_of_variants_is_a_problem_of_its_own(tmp_path: Path) -> None:
    rows = (
        "Checkout,Control,100,50,5\nCheckout,A,120,50,7\nHero,Control,300,50,9\nHero,A,310,50,8\n"
    )
    text = f"Experiment,Variant,Visitors,Cost,Conversions\n{rows}"
    assert "several tests stand in 'Experiment'" in message_of(tmp_path, text)
    table = read(tmp_path, text, columns={"instance": "Experiment"})
    arms = ("Control", "A")
    assert [(test.name, test.arms) for test in table.instances] == [
        ("Checkout", arms),
        ("Hero", arms),
    ]
    only(
        read(
            tmp_path, "Experiment,Variant,Visitors,Cost,Orders\nC,Control,100,50,5\nC,A,120,50,7\n"
        )
    )
    log = "experiment,model,reward,cost\nx,a,1,.5\nx,a,0,.4\ny,a,0,.5\nx,b,1,.5\ny,b,0,.5\n"
    assert "--columns instance=experiment keeps them apart" in message_of(tmp_path, log)


def test_arms_without_clicks_or_cost_are_kept_out_by_name_or_given_a_prior(tmp_path: Path) -> None:
    text = COUNTS + "a,100,50,5\nb,0,0,0\nc,100,0,3\nd,200,130,7\n"
    table = read(tmp_path, text)
    assert table.instances[0].arms == ("a", "d")
    assert [(arm.arm, arm.line) for arm in table.kept_out] == [("b", 3), ("c", 4)]
    with_prior = read(tmp_path, text, prior=20.0)
    assert with_prior.instances[0].arms == ("a", "b", "c", "d") and with_prior.kept_out == ()
    # pooled: 15 conversions and 180 spent in 400 clicks
    np.testing.assert_allclose(
        with_prior.instances[0].mean_reward, [(5 + 0.75) / 120, 0.0375, 3.75 / 120, 7.75 / 220]
    )
    np.testing.assert_allclose(
        with_prior.instances[0].mean_cost, [(50 + 9) / 120, 0.45, 9 / 120, 139 / 220]
    )
    # The evidence is without prior
    assert with_prior.instances[0].evidence.clicks.tolist() == [100, 0, 100, 200]


def test_an_instance_may_lose_its_arms_while_others_are_played(tmp_path: Path) -> None:
    table = read(tmp_path, "instance," + COUNTS + "x,a,10,5,1\nx,b,10,5,2\ny,c,10,5,1\ny,d,0,0,0\n")
    assert [i.name for i in table.instances] == ["x"]
    assert [(arm.arm, arm.reason) for arm in table.kept_out] == [
        ("c", "alone in its instance"),
        ("d", "no clicks"),
    ]


@pytest.mark.parametrize(
    ("header", "first", "second"), [("spent", "50", "20"), ("price", "0.5", "0.25")]
)
def test_clicks_without_a_price_are_not_free(
    tmp_path: Path, header: str, first: str, second: str
) -> None:
    rows = f"2024-01-01,a,100,{first},5\n2024-01-02,a,90,,4\n2024-01-01,b,80,{second},3\n2024-01-02,b,0,,\n"
    table = read(
        tmp_path,
        f"day,ad,clicks,{header},conversions\n{rows}",
        columns={header: header, "clicks": "clicks"},
    )
    assert table.instances[0].evidence.clicks.tolist() == [100, 80]
    assert table.instances[0].evidence.spent.tolist() == [50.0, 20.0]
    assert any("line 3 not summed" in note for note in table.notes)
    plain = read(tmp_path, COUNTS + "a,10,5,1\nb,20,9,2\nc,40,,3\n")
    assert plain.instances[0].arms == ("a", "b") and [arm.arm for arm in plain.kept_out] == ["c"]


def test_all_problems_of_a_file_are_told_together(tmp_path: Path) -> None:
    text = "Campaign,Clicks,Cost,Conversions\nA,12o4,602.00,31\nB,980,39x.50,12\nC,980,$5,twelve\nD,1,€2,3,4\n"
    first, *lines = message_of(tmp_path, text, lines=6).split("\n  ")
    assert first.endswith("5 problems") and len(lines) == 5
    assert "line 2, column clicks" in [line.split(":")[0] for line in lines]


def test_wilson_solves_its_equation_and_ratios_of_equal_days_are_certain() -> None:
    for x, n in ((0, 10), (3, 40), (40, 40), (250, 1000)):
        interval = wilson(x, n)
        for end in (interval.low, interval.high):
            z2 = (x / n - end) ** 2 * n
            assert z2 == pytest.approx(1.959963984540054**2 * end * (1 - end), abs=1e-9) or end in (
                0,
                1,
            )
    assert math.isnan(wilson(0, 0).value)
    assert ratio_estimate(np.full(5, 2.0), np.full(5, 4.0)).low == 0.5
    assert math.isnan(ratio_estimate(np.ones(2), np.ones(2)).low)
    assert ratio_estimate(np.ones(3), np.zeros(3)).value == math.inf


def test_intervals_come_from_what_the_file_has(tmp_path: Path) -> None:
    days = "".join(
        f"{a},2024-03-{d:02d},{100 + d},{50 + d * k},{d}\n"
        for k, a in ((1, "a"), (2, "b"))
        for d in (1, 2, 3, 4)
    )
    daily = read(tmp_path, "Campaign,Day,Clicks,Cost,Leads\n" + days).instances[0]
    assert interval_names(daily) == [WILSON, DAYS] and all(
        x.low < x.value for x in estimates(daily)[0]
    )
    totals = estimates(read(tmp_path, COUNTS + "a,10,5,1\nb,20,9,2\n").instances[0])
    assert [math.isnan(x.low) for x in totals[0]] == [False, True, False]
    log = read(tmp_path, LOG + "a,1,1\na,0,2\na,1,2\nb,2,1\nb,1,1\nb,2,2\n").instances[0]
    assert interval_names(log) == [ROWS] and all(x.low < x.value for x in estimates(log)[0])
    means = estimates(read(tmp_path, "name,mean_reward,mean_cost\na,0.5,1\nb,0,1\n").instances[0])
    assert [x.value for x in means[1]] == [0, 1, math.inf] and math.isnan(means[0][0].low)


def test_a_new_line_among_the_words_changes_no_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a pull is, and which name is coarser, is said beside the words, and not by a line's
    number.
    """
    header, text = (
        ["Ad name", "Campaign", "Impressions", "Cost", "Conversions"],
        columns._words_file(),
    )

    def read() -> tuple[str, tuple[int, ...]]:
        columns.role_words.cache_clear()
        columns.title.cache_clear()
        roles = columns.find_columns(header, {}, "it")
        assert roles is not None
        return roles.pull_unit, roles.levels

    before = read()
    assert before == ("impression", (1,))
    try:
        more = "".join(f"{role}: zzz\n" for role in columns.role_words())
        monkeypatch.setattr(columns, "_words_file", lambda: more + text)
        assert read() == before and columns.role_words()["clicks"]["impressions"] == (
            9,
            "impression",
        )
    finally:
        monkeypatch.undo()
        columns.role_words.cache_clear()
        columns.title.cache_clear()
