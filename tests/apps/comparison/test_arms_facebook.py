"""The Facebook ads file: published and repaired instances, its defect, and the made-up sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import jaxbandits
from jaxbandits.apps.comparison.arms_file import read_arms
from tests.apps.comparison.reading import message_of, only, read

REAL = Path(__file__).resolve().parents[4] / "shared" / "data" / "facebook" / "data.csv"
SAMPLE = Path(jaxbandits.__file__).parent / "data" / "sample_ads.csv"
ADS = "ad_id,campaign_id,fb_campaign_id,age,gender,clicks,spent,total_conversion\n"
PUBLISHED_K = [2, 3, 3, 3, 4, 6, 7, 9, 21, 23, 24, 33, 34, 38, 54, 54, 57, 77, 93]
needs_real_file = pytest.mark.skipif(
    not REAL.is_file(), reason=f"the Facebook file is not at {REAL}"
)


@needs_real_file
def test_published_instances_of_the_real_file() -> None:
    table = read_arms(REAL)
    assert (table.kind, table.reward_unit, table.cost_unit) == ("facebook", "conversions", "spent")
    assert sorted(len(i.arms) for i in table.instances) == PUBLISHED_K
    assert sum(len(i.arms) for i in table.instances) == 545
    (note,) = table.notes
    assert note.startswith(
        "1143 rows read, 0 repaired, 598 dropped (13 with more conversions than clicks, "
    )
    assert note.endswith(" 203 with nothing spent, 382 shifted 2 columns left), 545 arms kept")
    first = table.instances[0]
    assert (first.name, first.arms[0], first.mean_reward[0]) == ("916/30-34/M", "708749", 1.0)
    assert first.mean_cost[0] == pytest.approx(1.820000023 / 2, rel=1e-15)
    assert all(len(set(i.arms)) == len(i.arms) for i in table.instances)
    seconds = []  # ratio of the second best arm to the best: 0.19 to 0.97 in the data README
    for instance in table.instances:
        reward, cost = instance.scaled_mean_reward, instance.scaled_mean_cost
        np.testing.assert_allclose(
            reward, instance.mean_reward / instance.mean_reward.max() * 0.99, rtol=1e-14
        )
        np.testing.assert_allclose(
            cost, instance.mean_cost / instance.mean_cost.max() * 0.99, rtol=1e-14
        )
        ratio = np.sort(reward / cost)
        seconds.append(ratio[-2] / ratio[-1])
    assert (round(min(seconds), 2), round(max(seconds), 2)) == (0.19, 0.97)


@needs_real_file
def test_repaired_instances_of_the_real_file() -> None:
    table = read_arms(REAL, instances="repaired")
    sizes = {i.name: len(i.arms) for i in table.instances}
    published = {i.name: len(i.arms) for i in read_arms(REAL).instances}
    assert (len(sizes), sum(sizes.values()), min(sizes.values()), max(sizes.values())) == (
        23,
        922,
        2,
        102,
    )
    ages = ("30-34", "35-39", "40-44", "45-49")
    assert {name for name in sizes if name not in published} == {f"1178/{age}/F" for age in ages}
    assert {name for name in published if sizes[name] != published[name]} == {
        f"1178/{age}/M" for age in ages
    }
    assert "382 repaired (moved 2 columns right), 221 dropped" in table.notes[0]


def test_sample_has_the_defect_and_four_instances() -> None:
    published, repaired = read_arms(SAMPLE), read_arms(SAMPLE, instances="repaired")
    assert [len(i.arms) for i in published.instances] == [3, 11, 12, 6]
    assert [len(i.arms) for i in repaired.instances] == [3, 11, 12, 12]
    assert "6 shifted 2 columns left" in published.notes[0]
    assert "6 repaired" in repaired.notes[0]


def test_ads_are_filtered_and_every_drop_is_counted(tmp_path: Path) -> None:
    rows = [
        "1,7,70,30-34,M,10,5,2",
        "2,7,70,30-34,M,10,20,0",  # no conversion: reward 0.01
        "3,7,70,30-34,M,0,0,0",  # nothing spent
        "4,7,70,30-34,M,1,2,3",  # more conversions than clicks
        "5,7,70,30-34,M,0,2,0",  # would cost infinitely much per click
        "6,7,70,30-34,M,x,2,0",  # unreadable
        "7,7,70,30-34,M,4,-2,0",  # unreadable: negative
        "8,7,70,30-34,M,4,2,0,9",  # unreadable: a cell too many
        "9,7,70,,M,4,2,0",  # unreadable: no age
        "10,7,70,35-39,M,4,2,0",  # alone in its group
    ]
    table = read(tmp_path, ADS + "\n".join(rows))
    arms = only(table)
    assert (arms.name, arms.arms) == ("7/30-34/M", ("1", "2"))
    np.testing.assert_array_equal(arms.mean_reward, [0.2, 0.01])
    np.testing.assert_array_equal(arms.mean_cost, [0.5, 2.0])
    assert (arms.reward_bound, arms.cost_bound) == (0.2 / 0.99, 2 / 0.99)
    note = table.notes[0]
    for reason in (
        "1 with nothing spent",
        "1 with more conversions",
        "1 with spending but no clicks",
    ):
        assert reason in note
    assert (
        "8 dropped" in note and "4 with unreadable cells" in note and "1 alone in its group" in note
    )


def test_facebook_bounds_are_per_instance_unless_given(tmp_path: Path) -> None:
    content = (
        ADS + "1,7,70,30,M,10,5,2\n2,7,70,30,M,10,20,1\n3,8,80,30,M,10,30,5\n4,8,80,30,M,10,50,4\n"
    )
    default = read(tmp_path, content)
    assert [i.cost_bound for i in default.instances] == [2 / 0.99, 5 / 0.99]
    bounded = read(tmp_path, content, reward_max=1, cost_max=5)
    assert [(i.reward_bound, i.cost_bound) for i in bounded.instances] == [(1.0, 5.0)] * 2
    assert "line 5, arm '4': mean cost 5.0 is above its bound 4.0" in message_of(
        tmp_path, content, cost_max=4
    )


def test_repaired_rows_take_the_campaign_between_which_they_stand(tmp_path: Path) -> None:
    rows = [
        "1,30-34,M,10,5,1,,",  # nothing above: unknown
        "2,7,70,30-34,M,10,5,2",
        "x,,,30-34,M,10,5,4",  # unreadable, and says nothing about the rows around it
        "3,30-34,M,10,5,3,,",  # between 7 and 7
        "4,7,70,30-34,M,10,5,4",
        "5,30-34,M,10,5,5,,",  # between 7 and 8: unknown
        "6,8,80,30-34,M,10,5,6",
        "7,30-34,M,10,5,7",  # after 8, the trailing commas cut off
        "8,45+,M,10,5,8,,",  # after 8, alone in its group
    ]
    table = read(tmp_path, ADS + "\n".join(rows), instances="repaired")
    assert {i.name: i.arms for i in table.instances} == {
        "7/30-34/M": ("2", "3", "4"),
        "8/30-34/M": ("6", "7"),
    }
    assert "3 repaired" in table.notes[0]
    assert "2 shifted 2 columns left, campaign unknown" in table.notes[0]


def test_mirror_of_the_file_with_other_titles_and_cr_line_ends(tmp_path: Path) -> None:
    content = (
        "xyz_campaign_id,age,gender,Clicks,Spent,Total_Conversion\r7,30,M,10,5,2\r7,30,M,10,20,1\r"
    )
    arms = only(read(tmp_path, content))
    assert arms.arms == ("line 2", "line 3")
    np.testing.assert_array_equal(arms.mean_cost, [0.5, 2.0])


def test_rows_of_one_ad_stay_separate_arms_and_a_group_has_two(tmp_path: Path) -> None:
    arms = only(read(tmp_path, ADS + "1,7,70,30,M,10,5,2\n1,7,70,30,M,10,20,1\n"))
    assert arms.arms == ("1 (line 2)", "1 (line 3)")
    text = message_of(tmp_path, ADS + "1,7,70,30,M,10,5,2\n2,7,70,31,M,10,20,1\n")
    assert "no (campaign_id, age, gender) has two usable ads; 2 rows read" in text
