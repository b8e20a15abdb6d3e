"""Arms files of means, counts and logs: means, bounds, tolerated spelling; what cannot be used."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaxbandits.apps.comparison.arms_file import read_arms
from jaxbandits.core.checks import InputError
from tests.apps.comparison.reading import message_of, only, read

MEANS = "name,mean_reward,mean_cost\n"


def test_means_are_kept_in_file_order_with_unit_bounds(tmp_path: Path) -> None:
    table = read(tmp_path, "name,mean_reward,mean_cost\nb,0.2,0.9\na,0.75,0.5\nc,0,1\n")
    arms = only(table)
    assert (table.kind, table.reward_unit, table.cost_unit, table.notes) == (
        "means",
        "reward",
        "cost",
        (),
    )
    assert (arms.name, arms.arms, arms.log) == ("arms", ("b", "a", "c"), None)
    np.testing.assert_array_equal(arms.mean_reward, [0.2, 0.75, 0.0])
    np.testing.assert_array_equal(arms.mean_cost, [0.9, 0.5, 1.0])
    assert (arms.reward_bound, arms.cost_bound) == (1.0, 1.0)
    assert arms.mean_reward.dtype == arms.mean_cost.dtype == np.float64


def test_costs_above_one_get_the_largest_mean_over_099_for_the_whole_file(tmp_path: Path) -> None:
    text = "instance,name,mean_reward,mean_cost\nx,a,0.2,3\nx,b,0.4,0.5\ny,a,0.1,0.2\ny,b,0.1,0.3\n"
    table = read(tmp_path, text)
    assert [i.name for i in table.instances] == ["x", "y"]
    assert [i.arms for i in table.instances] == [("a", "b"), ("a", "b")]
    assert [i.cost_bound for i in table.instances] == [3 / 0.99] * 2
    np.testing.assert_allclose(table.instances[0].scaled_mean_cost, [0.99, 0.165], rtol=1e-15)
    np.testing.assert_array_equal(table.instances[1].mean_cost, [0.2, 0.3])
    bounded = read(tmp_path, text, reward_max=20, cost_max=np.float32(8)).instances[0]
    np.testing.assert_array_equal(bounded.mean_reward, [0.2, 0.4])
    np.testing.assert_array_equal(bounded.scaled_mean_cost, [3 / 8, 0.5 / 8])


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfname,mean_reward,mean_cost\r\na,0.5,0.25\r\nb,0.125,1\r\n",
        b"name,mean_reward,mean_cost\ra,0.5,0.25\rb,0.125,1\r",
        b"\n Mean_Cost , NAME ,mean_reward,,\n\n 0.25 , a , 5e-1 ,,\n,,\n1.,b,.125,,,,\n",
        b'Arm,"mean_reward", "mean_cost"\n"a",0.5, "0.25"\nb,0.125,+1',
    ],
    ids=["bom+crlf", "cr", "blanks+order+case", "quotes+alias"],
)
def test_spreadsheet_habits_are_tolerated(tmp_path: Path, content: bytes) -> None:
    arms = only(read(tmp_path, content))
    assert arms.arms == ("a", "b")
    np.testing.assert_array_equal(arms.mean_reward, [0.5, 0.125])
    np.testing.assert_array_equal(arms.mean_cost, [0.25, 1.0])


def test_columns_and_choices_without_effect_are_noted(tmp_path: Path) -> None:
    text = "name,instnace,mean_reward,mean_cost\na,x,0.5,1\nb,y,0.5,1\n"
    notes = read(tmp_path, text, instances="repaired").notes
    assert notes == (
        "columns not used: 'instnace'",
        "instances='repaired' has no effect on a file of means",
    )


@pytest.mark.parametrize(
    "titles", ["spent,conversions", "Spend,conversion", "cost,total_conversion"]
)
def test_counts_give_means_per_click(tmp_path: Path, titles: str) -> None:
    table = read(tmp_path, f"name,clicks,{titles}\na,10,15,2\nb,4,1,0\n")
    arms = only(table)
    assert (table.kind, table.reward_unit, table.cost_unit) == ("counts", "conversions", "spent")
    # No 0.01 here: that is the Facebook rule
    np.testing.assert_array_equal(arms.mean_reward, [0.2, 0.0])
    np.testing.assert_array_equal(arms.mean_cost, [1.5, 0.25])
    assert (arms.reward_bound, arms.cost_bound) == (1.0, 1.5 / 0.99)


def test_log_keeps_every_pull_jointly(tmp_path: Path) -> None:
    table = read(tmp_path, "name,reward,cost\nb,1,4\na,0,0.5\nb,0,0\na,0.5,0.25\nb,0.5,2\n")
    arms = only(table)
    assert (table.kind, arms.arms) == ("log", ("b", "a"))
    assert arms.log is not None
    assert [list(zip(*pulls, strict=True)) for pulls in arms.log] == [
        [(1.0, 4.0), (0.0, 0.0), (0.5, 2.0)],
        [(0.0, 0.5), (0.5, 0.25)],
    ]
    np.testing.assert_array_equal(arms.mean_reward, [0.5, 0.25])
    np.testing.assert_array_equal(arms.mean_cost, [2.0, 0.375])
    assert (arms.reward_bound, arms.cost_bound) == (1.0, 4.0)


def test_mean_of_equal_logged_costs_stays_within_the_bound(tmp_path: Path) -> None:
    # summing ten times 0.7 in float64 may end one ulp too high; 13 values tried to meet such a case
    for count in range(3, 16):
        arms = only(
            read(tmp_path, "name,reward,cost\nb,0,0.1\n" + "a,0.7,0.7\n" * count, cost_max=0.7)
        )
        assert arms.scaled_mean_cost.max() <= 1.0
        assert arms.mean_cost[1] == pytest.approx(0.7, rel=1e-15)


@pytest.mark.parametrize(
    ("row", "arguments", "message"),
    [("b,1.5,1", {"reward_max": 1.2}, "reward 1.5 is above its bound 1.2; raise reward_max (--reward-max)"),
     ("b,1,3", {"cost_max": 2}, "cost 3.0 is above its bound 2.0; raise cost_max (--cost-max)")],
)  # fmt: skip
def test_logged_values_above_a_bound_are_errors(
    tmp_path: Path, row: str, arguments: dict[str, Any], message: str
) -> None:
    content = f"name,reward,cost\na,1,1\nb,0,0\n{row}\n"
    assert f"line 4, arm 'b': {message}" in message_of(tmp_path, content, **arguments)


# ---- files that cannot be used


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        (MEANS, "there is a header but no rows"),
        (MEANS + "a,.5,.5\n", "instance 'arms', number of arms: 1 given; it must be 2 or more"),
        (MEANS + "a,.5,.5\na,.6,.5\n", "line 3, instance 'arms', name: 'a' given; it must be another name"),
        (MEANS + "a,.5,.5\nb,half,.5\n", "line 3, column mean_reward: 'half' given"),
        (MEANS + "a,.5,.5\n\nb,.5,\n", "line 4, column mean_cost: '' given"),
        (MEANS + "a,.5,.5\nb,.5,.5,.5\n", "line 3, number of cells: 4 given; it must be at most 3"),
        (MEANS + "a,.5,.5\nb,nan,.5\n", "line 3, column mean_reward: 'nan' given; it must be a finite number"),
        (MEANS + "a,.5,.5\nb,.5,1e999\n", "line 3, column mean_cost: '1e999' given"),
        (MEANS + "a,.5,.5\nb,.5,0\n", "line 3, arm 'b': it cost nothing; two arms must have pulls"),
        (MEANS + "a,.5,.5\nb,1.5,1\n", "line 3, arm 'b': mean reward 1.5 is above its bound 1.0; raise reward_max"),
        (MEANS + "a,.5,.5\n,.5,.5\n", "line 3, column name: '' given; it must be a name"),
        ("instance," + MEANS + "x,a,.5,.5\n,b,.5,.5\n", "line 3, column instance: '' given; it must be a name"),
        ("instance," + MEANS + "x,a,.5,.5\nx,b,.5,.5\ny,c,.5,.5\n", "instance 'y', number of arms: 1 given"),
        (MEANS + 'a,.5,.5\n"b,.5,.5\n', "line 3: not readable as CSV"),
        ("name,mean_cost\na,1\n", "no column is known to be mean_reward. The columns are 'name' (a); 'mean_cost' (1)"),
        ("name,clicks,spent\na,1,1\n", "--columns 'name=name,clicks=clicks,spent=spent,conversions=…'"),
        ("name,reward,cost\na,1,1\nb,0,0\nb,1,0\n", "line 3, arm 'b': it cost nothing; two"),
        ("a,b\n1,2\n", "clicks, spent, conversions; log: name, reward, cost; facebook: campaign_id, age"),
        ("name:mean_reward:mean_cost\na:1:1\n", "no column is known to be mean_reward or mean_cost"),
        ("name,mean_reward,mean_cost,reward,cost\na,1,1,1,1\n", "the header fits means and log"),
        ("name,clicks,spent,cost,conversions\na,1,1,1,1\n", "is 'spent' or 'cost' the spent? Say --columns spent=…"),
        (b'name,mean_reward,mean_cost\n\x81,1,1\n', "it must be text in UTF-8, UTF-16 or Latin-1"),
        (MEANS + "a,.5,1e-320\nb,.5,1e300\n", "line 2, arm 'a': its cost is too small; two"),
        ("name,clicks,spent,conversions\na,1e-300,1e300,0\nb,1,1,0\n", "line 2, arm 'a': its cost is too large; two"),
    ],
)  # fmt: skip
def test_unusable_files(tmp_path: Path, content: str | bytes, message: str) -> None:
    text = message_of(tmp_path, content)
    assert message in text
    assert "arms.csv" in text


@pytest.mark.parametrize("name", ["none.csv", "", "bad\0name"], ids=["missing", "directory", "nul"])
def test_unreadable_paths(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        InputError, match=r"^arms file: .* given; it must be a CSV file that can be read"
    ) as caught:
        read_arms(os.path.join(tmp_path, name))
    # A long path is cut in its middle
    assert str(tmp_path)[:24] in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"instances": "all"}, "instances: 'all' given; it must be 'published' or 'repaired'"),
        ({"instances": ["published"]}, "instances: ['published'] given; it must be"),
        (
            {"reward_max": 0},
            "reward_max (--reward-max): 0 given; it must be a finite number above 0",
        ),
        ({"reward_max": "2"}, "reward_max (--reward-max): '2' given"),
        ({"cost_max": float("nan")}, "cost_max (--cost-max): nan given"),
        ({"cost_max": -3}, "cost_max (--cost-max): -3 given; it must be a finite number above 0"),
    ],
)
def test_unusable_arguments(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    assert message_of(tmp_path, MEANS + "a,.5,.5\nb,.5,.5\n", **arguments).startswith(message)
