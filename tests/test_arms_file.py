"""Arms files of means, counts and logs: means, bounds, tolerated spelling, values above a bound."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jaxbandits.comparison.arms_file import ArmsTable, Instance
from tests.reading import message_of, read


def only(table: ArmsTable) -> Instance:
    assert len(table.instances) == 1
    return table.instances[0]


# ---- means


def test_means_are_kept_in_file_order_with_unit_bounds(tmp_path: Path) -> None:
    table = read(tmp_path, "name,mean_reward,mean_cost\nb,0.2,0.9\na,0.75,0.5\nc,0,1\n")
    arms = only(table)
    assert (table.kind, table.reward_unit, table.cost_unit, table.notes) == ("means", "reward", "cost", ())
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


def test_rows_of_an_instance_need_not_stand_together(tmp_path: Path) -> None:
    text = "instance,name,mean_reward,mean_cost\nx,a,.1,1\ny,a,.2,1\nx,b,.3,1\ny,b,.4,1\n"
    found = {i.name: list(i.mean_reward) for i in read(tmp_path, text).instances}
    assert found == {"x": [0.1, 0.3], "y": [0.2, 0.4]}


def test_given_bounds_divide_the_scaled_means_only(tmp_path: Path) -> None:
    text = "name,mean_reward,mean_cost\na,5,2\nb,10,4\n"
    arms = only(read(tmp_path, text, reward_max=20, cost_max=np.float32(8)))
    np.testing.assert_array_equal(arms.mean_reward, [5, 10])
    np.testing.assert_array_equal(arms.scaled_mean_reward, [0.25, 0.5])
    np.testing.assert_array_equal(arms.scaled_mean_cost, [0.25, 0.5])


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
    assert notes == ("columns not used: 'instnace'", "instances='repaired' has no effect on a file of means")


def test_arrays_cannot_be_changed(tmp_path: Path) -> None:
    arms = only(read(tmp_path, "name,mean_reward,mean_cost\na,0.5,1\nb,0.5,1\n"))
    with pytest.raises(ValueError, match="read-only"):
        arms.mean_cost[0] = 0


# ---- counts


@pytest.mark.parametrize("spent", ["spent", "Spend", "cost"])
@pytest.mark.parametrize("conversions", ["conversions", "conversion", "total_conversion"])
def test_counts_give_means_per_click(tmp_path: Path, spent: str, conversions: str) -> None:
    table = read(tmp_path, f"name,clicks,{spent},{conversions}\na,10,15,2\nb,4,1,0\n")
    arms = only(table)
    assert (table.kind, table.reward_unit, table.cost_unit) == ("counts", "conversions", "spent")
    np.testing.assert_array_equal(arms.mean_reward, [0.2, 0.0])  # no 0.01 here: that is the Facebook rule
    np.testing.assert_array_equal(arms.mean_cost, [1.5, 0.25])
    assert (arms.reward_bound, arms.cost_bound) == (1.0, 1.5 / 0.99)


def test_one_arm_with_clicks_is_an_error_that_names_the_others_and_the_remedy(tmp_path: Path) -> None:
    text = message_of(tmp_path, "name,clicks,spent,conversions\na,10,15,2\nb,0,0,0\n")
    said = (
        "line 3, column clicks: '0' given; it must be above 0, since means are per click (--prior 10 keeps such arms)"
    )
    assert text.endswith(said)


def test_more_conversions_than_clicks_need_a_reward_bound(tmp_path: Path) -> None:
    content = "name,clicks,spent,conversions\na,10,5,20\nb,10,5,5\n"
    assert "mean reward 2.0 is above its bound 1.0; raise reward_max (--reward-max)" in message_of(tmp_path, content)
    arms = only(read(tmp_path, content, reward_max=4))
    np.testing.assert_array_equal(arms.scaled_mean_reward, [0.5, 0.125])


# ---- log


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


def test_reward_of_a_log_above_one_sets_its_bound_and_is_told(tmp_path: Path) -> None:
    table = read(tmp_path, "name,reward,cost\na,1,1\nb,7.5,0.5\n")
    assert only(table).reward_bound == 7.5
    assert table.notes == ("rewards go above 1: their bound is 7.5 (--reward-max sets another)",)


def test_log_with_costs_up_to_one_has_unit_bound(tmp_path: Path) -> None:
    text = "instance,name,reward,cost\nx,a,1,1\nx,b,0,.5\ny,a,0,.1\ny,c,1,.3\ny,a,1,.2\n"
    table = read(tmp_path, text)
    assert [(i.name, i.arms, i.cost_bound) for i in table.instances] == [
        ("x", ("a", "b"), 1.0),
        ("y", ("a", "c"), 1.0),
    ]


def test_mean_of_equal_logged_costs_stays_within_the_bound(tmp_path: Path) -> None:
    # summing ten times 0.7 in float64 may end one ulp too high; 13 values tried to meet such a case
    for count in range(3, 16):
        arms = only(read(tmp_path, "name,reward,cost\nb,0,0.1\n" + "a,0.7,0.7\n" * count, cost_max=0.7))
        assert arms.scaled_mean_cost.max() <= 1.0
        assert arms.mean_cost[1] == pytest.approx(0.7, rel=1e-15)


@pytest.mark.parametrize(
    ("row", "arguments", "said"),
    [
        (
            "b,1.5,1",
            {"reward_max": 1.2},
            "line 4, arm 'b': reward 1.5 is above its bound 1.2; raise reward_max (--reward-max)",
        ),
        (
            "b,1,3",
            {"cost_max": 2},
            "line 4, arm 'b': cost 3.0 is above its bound 2.0; raise cost_max (--cost-max)",
        ),
    ],
)
def test_logged_values_above_a_bound_are_errors(
    tmp_path: Path, row: str, arguments: dict[str, float], said: str
) -> None:
    content = f"name,reward,cost\na,1,1\nb,0,0\n{row}\n"
    assert said in message_of(tmp_path, content, **arguments)


def test_arm_that_never_cost_anything_is_an_error(tmp_path: Path) -> None:
    text = message_of(tmp_path, "name,reward,cost\na,1,1\nb,0,0\nb,1,0\n")
    assert "line 3, arm 'b', mean cost: 0.0 given; it must be finite and above 0" in text
