"""Arms files that cannot be used, one message for each reason; and the helpers of `jaxbandits.core.errors`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jaxbandits.comparison.arms_file import read_arms
from jaxbandits.core.errors import InputError, bad, shown
from jaxbandits.core.numbers import positive_number
from tests.reading import message_of

MEANS = "name,mean_reward,mean_cost\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "the file is empty"),
        (" \n,,\n", "the file is empty"),
        (MEANS, "there is a header but no rows"),
        (MEANS + "a,.5,.5\n", "instance 'arms', number of arms: 1 given; it must be 2 or more"),
        (MEANS + "a,.5,.5\na,.6,.5\n", "line 3, instance 'arms', name: 'a' given; it must be another name"),
        (MEANS + "a,.5,.5\nb,half,.5\n", "line 3, column mean_reward: 'half' given"),
        (MEANS + "a,.5,.5\n\nb,.5,\n", "line 4, column mean_cost: '' given"),
        (MEANS + "a,.5,.5\nb,.5\n", "line 3, column mean_cost: '' given"),
        (MEANS + "a,.5,.5\nb,.5,.5,.5\n", "line 3, number of cells: 4 given; it must be at most 3"),
        (
            MEANS + "a,.5,.5\nb,nan,.5\n",
            "line 3, column mean_reward: 'nan' given; it must be a finite number",
        ),
        (MEANS + "a,.5,.5\nb,.5,inf\n", "line 3, column mean_cost: 'inf' given"),
        (MEANS + "a,.5,.5\nb,.5,1e999\n", "line 3, column mean_cost: '1e999' given"),
        (MEANS + "a,.5,.5\nb,-.5,.5\n", "line 3, column mean_reward: '-.5' given; it must be"),
        (MEANS + "a,.5,.5\nb,1_0,.5\n", "line 3, column mean_reward: '1_0' given"),
        (MEANS + "a,.5,.5\nb,.5,0\n", "line 3, arm 'b', mean cost: 0.0 given; it must be finite and above 0"),
        (
            MEANS + "a,.5,.5\nb,1.5,1\n",
            "line 3, arm 'b': mean reward 1.5 is above its bound 1.0; raise reward_max",
        ),
        (MEANS + "a,.5,.5\n,.5,.5\n", "line 3, column name: '' given; it must be a name"),
        (
            "instance," + MEANS + "x,a,.5,.5\n,b,.5,.5\n",
            "line 3, column instance: '' given; it must be a name",
        ),
        ("instance," + MEANS + "x,a,.5,.5\nx,b,.5,.5\ny,c,.5,.5\n", "instance 'y', number of arms: 1 given"),
        (MEANS + 'a,.5,.5\n"b,.5,.5\n', "line 3: not readable as CSV"),
        (
            "name,mean_cost\na,1\n",
            "columns missing for the nearest format (means): mean_reward; the header is",
        ),
        ("name,clicks,spent\na,1,1\n", "columns missing for the nearest format (counts): conversions"),
        ("name:mean_reward:mean_cost\na:1:1\n", "must have the columns separated by commas of means: name,"),
        ("name,mean_reward,mean_cost,reward,cost\na,1,1,1,1\n", "the header fits means and log"),
        ("name,clicks,spent,cost,conversions\na,1,1,1,1\n", "columns spent and cost all stand for spent"),
        ("name,mean_reward,mean_cost,name\na,1,1,1\n", "columns name and name all stand for name"),
        (b"name,mean_reward,mean_cost\n\x81,1,1\n", "it must be text in UTF-8, UTF-16 or Latin-1"),
        (b"name,mean_reward,mean_cost\n\xff\x1b[2J,1,1\n", "(or say --encoding), and has control characters"),
        (b"\xff\xfename,mean_reward,mean_cost\n\xd8", "it must be text in UTF-8, UTF-16 or Latin-1"),
        (MEANS + "a,.5,1e-320\nb,.5,1e300\n", "line 2, arm 'a', mean cost: 1e-320 given; it must be finite"),
        (
            "name,clicks,spent,conversions\na,1e-300,1e300,0\nb,1,1,0\n",
            "mean cost: inf given; it must be finite",
        ),
    ],
)
def test_unusable_files(tmp_path: Path, content: str | bytes, said: str) -> None:
    text = message_of(tmp_path, content)
    assert said in text
    assert "arms.csv" in text


def test_missing_columns_name_every_accepted_format(tmp_path: Path) -> None:
    text = message_of(tmp_path, "a,b\n1,2\n")
    for kind in ("means: name,", "counts: name, clicks", "log: name, reward", "facebook: campaign_id, age"):
        assert kind in text


@pytest.mark.parametrize("name", ["none.csv", "", "bad\0name"], ids=["missing", "directory", "nul"])
def test_unreadable_paths(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"^arms file: .* given; it must be a CSV file that can be read") as caught:
        read_arms(os.path.join(tmp_path, name))
    assert str(tmp_path)[:24] in str(caught.value) and "\n" not in str(caught.value)  # a long path is cut in its middle


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"instances": "all"}, "instances: 'all' given; it must be 'published' or 'repaired'"),
        ({"instances": ["published"]}, "instances: ['published'] given; it must be"),
        ({"reward_max": 0}, "reward_max (--reward-max): 0 given; it must be a finite number above 0"),
        ({"reward_max": "2"}, "reward_max (--reward-max): '2' given"),
        ({"cost_max": float("nan")}, "cost_max (--cost-max): nan given"),
        ({"cost_max": -3}, "cost_max (--cost-max): -3 given; it must be a finite number above 0"),
    ],
)
def test_unusable_arguments(tmp_path: Path, arguments: dict[str, Any], said: str) -> None:
    assert message_of(tmp_path, MEANS + "a,.5,.5\nb,.5,.5\n", **arguments).startswith(said)


def test_too_small_cost_bound_names_the_option(tmp_path: Path) -> None:
    text = message_of(tmp_path, MEANS + "a,.5,.5\nb,.5,.75\n", cost_max=0.5)
    assert text.endswith("line 3, arm 'b': mean cost 0.75 is above its bound 0.5; raise cost_max (--cost-max)")


# ---- jaxbandits.core.errors


def test_bad_says_argument_value_and_choice_in_one_line() -> None:
    assert str(bad("budget", -3, "a finite number above 0")) == ("budget: -3 given; it must be a finite number above 0")
    assert issubclass(InputError, ValueError)
    assert "\n" not in str(bad("means", np.zeros((9, 9)), "a vector"))


def test_shown_cuts_long_values_in_the_middle() -> None:
    text = shown("x" * 500 + "end")
    assert len(text) <= 80 and text.startswith("'xxx") and text.endswith("end'") and "..." in text


@pytest.mark.parametrize("value", [3, 3.0, np.float32(3), np.int64(3), np.array(3.0)])
def test_positive_number_accepts_scalars(value: object) -> None:
    assert positive_number("budget", value) == 3.0


@pytest.mark.parametrize(
    "value", [True, np.True_, "3", b"3", None, 0, -1.0, float("inf"), np.array([3.0]), [3], 1j, 10**400]
)
def test_positive_number_refuses_everything_else(value: object) -> None:
    with pytest.raises(InputError, match=r"^budget: .* it must be a finite number above 0$"):
        positive_number("budget", value)
