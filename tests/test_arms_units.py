"""What the numbers of an arms file are of: units of rates, prices of what a pull is, weeks, subtotals."""

from __future__ import annotations

import numpy as np
import pytest

from jaxbandits.core.errors import InputError
from tests.reading import read


@pytest.mark.parametrize(
    ("header", "row", "reward", "cost"),
    [
        ("Clicks,Cost,Conversion rate (%)", "1000,50,0.8", 0.008, 0.05),
        ("Clicks,Cost,Conversion rate", "1000,50,2.8", 0.028, 0.05),  # more than one for each click it cannot be
        ("Clicks,Cost,Conversion rate", "1000,50,0.8", 0.8, 0.05),
        ("Conversion rate,CPC", "2.8,0.5", 0.028, 0.5),
        ("Clicks,Avg. CPC (cents),Conversions", "1000,50,8", 0.008, 0.5),
        ("Clicks,average_cpc_micros,Conversions", "1000,500000,8", 0.008, 0.5),
        ("Cost,Avg. CPC (cents),Conversions", "500,50,8", 0.008, 0.5),
        ("Clicks,Cost,Cost / conv. (cents)", "1000,50,500", 0.01, 0.05),
    ],
)
def test_a_rate_has_the_unit_of_its_title(tmp_path, header, row, reward, cost):
    table = read(tmp_path, f"Campaign,{header}\nA,{row}\nB,{row}\n")
    assert table.instances[0].mean_reward.tolist() == pytest.approx([reward] * 2)
    assert table.instances[0].mean_cost.tolist() == pytest.approx([cost] * 2)


def test_the_currency_of_a_price_is_that_of_the_file(tmp_path):
    assert read(tmp_path, "Campaign,Clicks,CPC (EUR),Orders\nA,100,0.5,8\nB,90,0.6,5\n").style.symbol == "EUR"


@pytest.mark.parametrize(
    ("pulls", "price"),
    [
        ("Impressions", "CPC"),
        ("Impressions", "Cost per click"),
        ("Video views", "CPC"),
        ("Clicks", "CPV"),
        ("Impressions", "Cost per view"),
    ],
)
def test_the_price_of_one_thing_is_not_that_of_another(tmp_path, pulls, price):
    """An impression does not cost what a click does."""
    with pytest.raises(InputError, match=r"columns missing .*: spent; the header"):
        read(tmp_path, f"Campaign,{pulls},{price},Conversions\nA,1000,0.5,8\nB,1000,0.6,9\n")


def test_the_rate_of_clicks_is_not_that_of_impressions(tmp_path):
    with pytest.raises(InputError, match=r"columns missing .*: conversions; the header"):
        read(tmp_path, "Campaign,Impressions,Cost,Conversion rate\nA,1000,50,2.5%\nB,1000,60,2.6%\n")
    table = read(tmp_path, "Campaign,Impressions,CTR,CPC,Conversion rate\nA,900,1%,0.5,2.5%\nB,900,2%,0.6,2.6%\n")
    assert table.kind == "means" and table.instances[0].evidence.clicks is None


@pytest.mark.parametrize(
    ("pulls", "price"), [("Video views", "CPV"), ("Impressions", "Cost per impression"), ("n", "price per click")]
)
def test_a_price_of_what_is_pulled_makes_the_total(tmp_path, pulls, price):
    table = read(tmp_path, f"Campaign,{pulls},{price},Conversions\nA,1000,0.5,8\nB,1000,0.6,9\n")
    assert table.instances[0].evidence.spent.tolist() == [500, 600]
    assert f"spent worked out: '{price}' × '{pulls}'" in table.notes


@pytest.mark.parametrize(
    ("title", "when"),
    [("Week", (1, 2, 3, 4, 5)), ("Day", (1, 2, 29, 30, 31)), ("Year month", (202311, 202312, 202401, 202402, 202403)),
     ("Week", (1.5, 2.5, 3, 3.5, 10)), ("Round", (1, 10, 100, 10_000_000, 999_999_999))],
)  # fmt: skip
def test_weeks_by_number_are_not_one_day(tmp_path, title, when):
    """Every number is a time of its own; rows of one number are summed."""
    lines = [f"{arm},{t},100,{50 + i},{200 + 3 * i}" for arm in "AB" for i, t in enumerate(reversed(when))]
    table = read(tmp_path, "\n".join([f"Campaign,{title},Clicks,Cost,Revenue", *lines, f"B,{when[-1]},1,2,3", ""]))
    first, second = table.instances[0].evidence.daily
    assert first.spent.tolist() == [54, 53, 52, 51, 50] and second.spent.tolist() == [54, 53, 52, 51, 52]
    assert (np.diff(first.day) > np.timedelta64(0)).all()


@pytest.mark.parametrize(("subtotal", "total"), [("{} Total", "Grand Total"), ("Ergebnis {}", "Gesamtergebnis"),
                                                 ("Total of {}", "Total"), ("{} – Subtotal", "Total")])  # fmt: skip
def test_subtotals_are_no_arms(tmp_path, subtotal, total):
    rows = "A,10,5,1\nA,20,10,2\n{a},30,15,3\nB,5,2,1\nB,6,3,1\n{b},11,5,2\n{t},41,20,5\n"
    text = rows.format(a=subtotal.format("A"), b=subtotal.format("B"), t=total)
    table = read(tmp_path, f"Campaign,Clicks,Cost,Conversions\n{text}")
    assert table.instances[0].arms == ("A", "B") and table.instances[0].evidence.clicks.tolist() == [30, 11]
    assert any(note.startswith("lines 4, 7, 8 skipped: a total") for note in table.notes)


def test_what_is_called_a_subtotal_and_sums_nothing_is_an_arm(tmp_path):
    table = read(tmp_path, "Campaign,Clicks,Cost,Conversions\nA,10,5,1\nB,11,5,2\nA Total,99,50,5\n")
    assert table.instances[0].arms == ("A", "B", "A Total")


def test_subtotals_are_of_their_own_instance(tmp_path):
    rows = [f"{at},{name}{end},{n},{n / 2},{n / 10}" for at, base in (("X", 10), ("Y", 30)) for name in "AB"
            for end, n in (("", base), ("", 2 * base), (" Total", 3 * base))]  # fmt: skip
    table = read(tmp_path, "\n".join(["instance,Campaign,Clicks,Cost,Conversions", *rows, ""]))
    assert [(i.name, i.arms, i.evidence.clicks.tolist()) for i in table.instances] == [
        ("X", ("A", "B"), [30, 30]), ("Y", ("A", "B"), [90, 90])]  # fmt: skip
