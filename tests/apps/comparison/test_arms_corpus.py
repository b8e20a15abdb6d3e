"""Everyday arms files, invented but shaped like real exports: each is read as it is, or as its
message says.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from jaxbandits.apps._cli.compare import columns_of
from jaxbandits.apps.comparison.arms_file import read_arms
from jaxbandits.apps.comparison.arms_table import ArmsTable
from jaxbandits.core.checks import InputError

FOLDER = Path(__file__).parent / "arms_files"

# file: (kind, what a pull is, {arm: (pulls, total reward, total cost)}, what the notes say)
Arms = dict[str, tuple[float, float, float]]
AS_THEY_ARE: dict[str, tuple[str, str, Arms, tuple[str, ...]]] = {
    "google_ads_per_day.csv": ("counts", "click", {"Brand": (3750, 182, 1890.2), "Generic": (810, 22, 1060)},
     ("lines 1, 2 above the header", "line 11 skipped: totals", "7 rows summed to 3",
      "kept out, no clicks: 'Display'")),
    "google_ads_utf16_three_totals.csv": ("counts", "click", {"Brand - UK": (1234, 50, 555.3),
     "Generic, shoes": (2345, 50, 1993.25)},
     ("read as UTF-16", "tabs separate", "lines 7, 8, 9 skipped: totals ('--')")),
    "german_excel.csv": ("counts", "click", {"Frühjahr": (1300, 65, 650), "Händler": (410, 12, 533),
     "Größe XL": (2020, 90, 1212.5)},
     ("read as Latin-1", "semicolons", "line 5 skipped: totals ('Summe')", "decimal commas", "--reward Conv.-Wert")),
    "meta_ads.csv": ("counts", "click", {"Women 25-34 / Video A": (720, 31, 285.02),
     "Women 25-34 / Video B": (640, 20, 238.05), "Men 25-34 / Video A": (530, 0, 199)},
     ("line 2 skipped: totals", "conversions empty in line 5: read as 0", "repeats over")),
    "linkedin_utf16.csv": ("counts", "click", {"Decision makers": (310, 14, 1250.5), "Engineers": (275, 5, 980),
     "Students": (190, 0, 120.75)},
     ("read as UTF-16", "read with the month first")),
    "microsoft_ads.csv": ("counts", "click", {"buy shoes": (120, 6, 50.4), "red shoes": (150, 4, 52.5),
     "shoe shop": (88, 5, 44.88)},
     ("line 10 below the table skipped", "line 9 skipped: totals ('-')")),
    "tiktok.csv": ("counts", "click", {"Spark A": (501, 13, 238.5), "Spark B": (259, 5, 159.2)},
     ("Total of 4 results",)),
    "ga4_two_tables.csv": ("counts", "click", {"Brand": (1234, 50, 555.3), "Generic": (2345, 50, 1993.25)},
     ("lines 14 to 17 skipped: another table", "line 12 skipped: totals")),
    "amazon_ads.csv": ("counts", "click", {"Auto": (120, 9, 50.4), "Manual": (210, 13, 107.1)}, ("7 Day Total Sales",)),
    "french_semicolons.csv": ("counts", "click", {"Été": (2194, 21, 561.4), "Hiver": (1340, 28, 716)},
     ("4 rows summed to 2", "time = 'Jour'")),
    "french_latin1.csv": ("counts", "click", {"Noël": (1204, 31, 602), "Rentrée": (980, 12, 392.5)},
     ("Total général",)),
    "brazil.csv": ("counts", "click", {"Verão": (1300, 65, 650), "Inverno": (410, 12, 533)}, ("'Outono' (line 4)",)),
    "india.csv": ("counts", "click", {"Diwali": (123456, 3210, 432096.5), "Holi": (45300, 870, 181200)}, ()),
    "swiss.csv": ("counts", "click", {"Zürich": (1300, 65, 1950.5), "Genève": (820, 31, 1066)}, ()),
    "bigquery_micros.csv": ("counts", "click", {"Search": (250, 13, 126.8), "Shopping": (600, 20, 181.45)},
     ("divided by 1,000,000",)),
    "email.csv": ("counts", "pull", {"Hello": (10000, 31, 50), "Last chance": (9800, 44, 49)}, ("--reward Revenue",)),
    "pull_table.csv": ("counts", "pull", {"0": (120, 31.5, 60.25), "1": (98, 12.25, 41), "2": (150, 61, 120.75)}, ()),
    "ab_test_revenue.csv": ("counts", "session", {"Original": (5021, 212, 2510.5), "Variation #1": (5102, 259, 2551)},
     ("--reward 'Total Revenue'",)),
    "refund.csv": ("counts", "click", {"A": (100, 5, 48.75), "B": (100, 4, 40)}, ("below 0 in line 3",)),
    "zeros.csv": ("counts", "click", {"search": (1000, 50, 500), "social": (800, 0, 360)},
     ("no clicks: 'display'", "no clicks but 25.50 spent: 'video'", "cost nothing and brought 12: 'newsletter'")),
    "router_log.csv": ("log", "row", {"small": (2, 1.3, 0.00076), "large": (2, 1.85, 0.0183),
     "medium": (1, 0.8, 0.0019)},
     ("1 row is a gap", "reward = 'quality_score'")),
    "shop_log.csv": ("log", "row", {"banner": (3, 19.9, 1.23), "video": (3, 49.9, 2.7)}, ("their bound is 49.9",)),
    "router_semicolons.csv": ("log", "row", {"haiku": (1, 4, 0.00041), "opus": (2, 10, 0.0337),
     "sonnet": (2, 7, 0.0084)},
     ("name = 'selected_model'", "1 row is a gap", "their bound is 5")),
    "german_log.csv": ("log", "row", {"A": (2, 1, 0.82), "B": (2, 1, 1.02)}, ("reward = 'Erfolg'", "cost = 'Preis'")),
}  # fmt: skip
MEANS = {
    "rates.csv": {"Brand": (0.051, 0.42), "Generic": (0.024, 1.31)},
    "eval_means.csv": {"small": (0.62, 0.0004), "medium": (0.74, 0.0021), "large": (0.81, 0.0102)},
}
WITH_ONE_OPTION: dict[str, Arms] = {
    "impressions_only.csv": {"Feed": (120400, 31, 602), "Stories": (98000, 12, 392.5), "Reels": (150250, 26, 450.75)},
    "polish_needs_columns.csv": {"Wiosna": (1300, 65, 650.5), "Lato": (410, 12, 533)},
    "ab_test_needs_cost.csv": {"Control": (10204, 312, 10204), "Variant B": (10188, 371, 10188),
                               "Variant C": (10311, 325, 10311)},
    "two_currencies_needs_instance.csv": {"A": (1204, 31, 602), "D": (500, 11, 200), "B": (980, 12, 392.5),
                                          "C": (980, 12, 392.5)},
    "more_conversions_than_clicks.csv": {"708746": (1, 2, 1.43), "708749": (2, 2, 1.82)},
}  # fmt: skip
FILLED_IN = {  # what the user writes for "…"
    "polish_needs_columns.csv": ("Kampania", "Kliknięcia", "Koszt", "Konwersje"),
    "ab_test_needs_cost.csv": ("Variation", "Visitors", "1"),
}
REFUSED = {  # what must be mended in the file
    "looker.csv": "no column is known to be name or clicks",
    "roas.tsv": "no column is known to be conversions",
    "whole_lines_quoted.csv": "no column is known to be name or clicks",
}


def totals(table: ArmsTable) -> dict[str, tuple[float, ...]]:
    sums = {}
    for instance in table.instances:
        evidence = instance.evidence
        assert evidence is not None and evidence.clicks is not None
        assert evidence.value is not None and evidence.spent is not None
        for arm, *of_arm in zip(
            instance.arms, evidence.clicks, evidence.value, evidence.spent, strict=True
        ):
            sums[arm] = tuple(round(float(x), 6) for x in of_arm)
        np.testing.assert_allclose(
            instance.mean_reward, evidence.value / evidence.clicks, rtol=1e-12
        )
        np.testing.assert_allclose(instance.mean_cost, evidence.spent / evidence.clicks, rtol=1e-12)
    return sums


@pytest.mark.parametrize("name", AS_THEY_ARE)
def test_is_read_as_it_is(name: str) -> None:
    kind, pull, arms, sentences = AS_THEY_ARE[name]
    table = read_arms(FOLDER / name)
    assert (table.kind, table.pull_unit) == (kind, pull)
    assert totals(table) == {arm: tuple(float(x) for x in of_arm) for arm, of_arm in arms.items()}
    notes = "\n".join(table.notes)
    assert [text for text in sentences if text not in notes] == []


@pytest.mark.parametrize("name", MEANS)
def test_rates_are_means(name: str) -> None:
    table = read_arms(FOLDER / name)
    (instance,) = table.instances
    means = zip(instance.mean_reward.tolist(), instance.mean_cost.tolist(), strict=True)
    assert (table.kind, dict(zip(instance.arms, means, strict=True))) == ("means", MEANS[name])


@pytest.mark.parametrize("name", WITH_ONE_OPTION)
def test_is_read_with_the_one_option_that_the_message_names(name: str) -> None:
    with pytest.raises(InputError) as caught:
        read_arms(FOLDER / name)
    text = str(caught.value)
    if match := re.search(r"raise reward_max \(--reward-max\) to (\S+) or more", text):
        table = read_arms(FOLDER / name, reward_max=float(match[1]))
    else:
        option = re.search(r"--columns ('[^']*'|\S+?)(?: \(a number| plays| takes|$)", text)
        assert option, text
        titles = dict(
            zip(("name", "clicks", "spent", "conversions"), FILLED_IN.get(name, ()), strict=False)
        )
        columns = columns_of(shlex.split(option[1])[0])
        table = read_arms(
            FOLDER / name,
            columns={x: titles[x] if title == "…" else title for x, title in columns.items()},
        )
    assert totals(table) == {
        arm: tuple(float(x) for x in of_arm) for arm, of_arm in WITH_ONE_OPTION[name].items()
    }


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused_with_what_is_missing(name: str) -> None:
    with pytest.raises(InputError, match=REFUSED[name]):
        read_arms(FOLDER / name)


def test_every_file_of_the_folder_is_tried() -> None:
    files = {path.name for path in FOLDER.iterdir() if path.suffix in (".csv", ".tsv")}
    assert files == {*AS_THEY_ARE, *MEANS, *WITH_ONE_OPTION, *REFUSED} and len(files) > 30


def test_the_currency_is_written_as_in_the_file() -> None:
    money = {
        name: read_arms(FOLDER / name).style.money(1234.5)
        for name in ("german_excel.csv", "swiss.csv", "brazil.csv")
    }
    assert money == {
        "german_excel.csv": "1.234,50 €",
        "swiss.csv": "1’234.50 CHF",
        "brazil.csv": "R$ 1.234,50",
    }


def test_days_and_pulls_are_in_time_order() -> None:
    french = read_arms(FOLDER / "french_semicolons.csv").instances[0].evidence
    assert french is not None and french.daily is not None
    assert french.daily[0].day.astype(str).tolist() == ["2024-06-01", "2024-06-13"]
    assert french.daily[0].spent.tolist() == [301.0, 260.4]
    shop = read_arms(FOLDER / "shop_log.csv").instances[0].evidence
    assert shop is not None and shop.pulls is not None and shop.pulls.time is not None
    # The row without a time stays behind the one above
    assert shop.pulls.arm.tolist() == [0, 1, 0, 1, 1, 0]
    assert shop.pulls.reward.tolist() == [0, 49.9, 0, 0, 0, 19.9]
    router = read_arms(FOLDER / "router_log.csv").instances[0].evidence
    assert router is not None and router.pulls is not None
    assert np.isnan(router.pulls.reward).tolist() == [False, False, True, False, False, False]
