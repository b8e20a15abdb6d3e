"""Arms files: everyday exports with their columns named, and files that must be refused."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import jaxbandits
from jaxbandits.apps._cli.compare import columns_of
from jaxbandits.apps._cli.console import main
from jaxbandits.apps.comparison import ArmsTable, read_arms
from jaxbandits.core.checks import InputError
from tests.apps.comparison.exports import EXPORTS, GUESSES, HEAD, TRAPS

SAMPLE = Path(jaxbandits.__file__).parent / "data" / "sample_ads.csv"
MEANS = "name,mean_reward,mean_cost\n"


def read(folder: Path, content: str | bytes, **options: Any) -> ArmsTable:
    path = folder / "arms.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_arms(path, **options)


def totals(table: ArmsTable) -> dict[str, tuple[float, ...]]:
    (instance,) = table.instances
    of = instance.evidence
    assert of is not None and of.clicks is not None
    np.testing.assert_allclose(instance.mean_reward, of.value / of.clicks, rtol=1e-12)
    np.testing.assert_allclose(np.ravel(instance.mean_cost), of.spent / of.clicks, rtol=1e-12)
    rows = zip(of.clicks.tolist(), of.value.tolist(), of.spent.tolist(), strict=True)
    return dict(zip(instance.arms, rows, strict=True))


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_is_read_in_one_command(tmp_path: Path, name: str) -> None:
    content, options, truth = EXPORTS[name]
    found = totals(read(tmp_path, content, **options))
    assert {arm: pytest.approx(x, rel=1e-12) for arm, x in truth.items()} == found


@pytest.mark.parametrize("name", TRAPS)
def test_what_may_be_another_number_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    content, options, words = TRAPS[name]
    with pytest.raises(InputError) as caught:
        read(tmp_path, content, **options)
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert ("--decimal" in str(caught.value)) == ("--decimal" in words)  # it helps no minus
    assert re.search(r"arms\.csv|^(columns|drop|decimal):", str(caught.value))


def test_the_question_has_all_columns_and_a_command_that_may_be_corrected(tmp_path: Path) -> None:
    text = "Kampagne;Klicks;Kosten;Conv.\nA;1.300;650,00 €;12\nB;10;2,50 €;1\nC;70;9,50 €;3\nD;7;1,00 €;0\n"
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    message = str(caught.value)
    assert "'Klicks' (1.300, 10, 70); 'Kosten' (650,00 €, 2,50 €, 9,50 €)" in message
    guess = columns_of(shlex.split(message.split("--columns ")[1])[0])
    assert totals(read(tmp_path, text, columns=guess))["A"] == (1300, 12, 650)
    with pytest.raises(InputError, match=r"columns: 'cost=Kostn' given; .* 'Kosten' .*cost=Kosten"):
        read(tmp_path, text, columns=guess | {"cost": "Kostn"})


@pytest.mark.parametrize(("text", "columns"), GUESSES)
def test_a_guess_is_read_or_left_open(tmp_path: Path, text: str, columns: str) -> None:
    with pytest.raises(InputError, match="this is a guess") as caught:
        read(tmp_path, text, encoding="utf-8")
    found = re.search(r"jaxbandits (read .*) \(without pulls", str(caught.value))
    assert found and shlex.split(found[1])[2:] == ["--encoding", "utf-8", "--columns", columns]
    assert (main(shlex.split(found[1])) == 0) == ("…" not in columns)


def test_a_frame_is_read_as_its_file(tmp_path: Path) -> None:
    columns = {"clicks": [100, 200, 9], "spent": [50, 80.125, np.nan], "conversions": [5, 4.0, 1]}
    frame = pd.DataFrame({"name": [11, 12, 13], **columns})
    assert totals(read_arms(frame, drop=["13"])) == {"11": (100, 5, 50), "12": (200, 4, 80.125)}
    with pytest.raises(InputError, match="data frame, line 3: pulls, and no cost"):
        read_arms(frame)
    log = pd.DataFrame(
        {"reward": [True, False, True, True], "cost": [1.5, 2, 1, 1]},
        index=pd.Index(list("abab"), name="name"),
    )
    assert totals(read_arms(log)) == {"a": (2, 2, 2.5), "b": (2, 1, 3)}
    scores = pd.DataFrame({"a": [1, 0], "a_cost": [1.234, 2], "b": [0.5, 1], "b_cost": [3.0, 4]})
    assert totals(read_arms(scores, wide=True))["a"] == (2, 1, 3.234)
    with pytest.raises(InputError, match="data frame: the columns are not known"):
        read_arms(log.rename(columns={"cost": "paid"}))


def test_means_bounds_and_units(tmp_path: Path) -> None:
    table = read(tmp_path, MEANS + "b,0.2,3\na,0.75,0.5\nc,0,1\n")
    (instance,) = table.instances
    assert (table.kind, instance.name, table.notes) == ("means", "arms", ())
    assert instance.arms == ("b", "a", "c")
    assert (instance.reward_bound, instance.cost_bound) == (1.0, 3 / 0.99)
    columns = {"name": "model", "mean_reward": "acc (%)", "mean_cost": "usd"}
    text = "model,acc (%),usd\na,62.5,.0004\nb,74,.0021\n"
    (instance,) = read(tmp_path, text, columns=columns).instances
    assert instance.mean_reward.tolist() == [0.625, 0.74] and instance.cost_bound == 0.0021 / 0.99
    text = "name,reward,cost\na,1,.7\na,0,.7\nb,0,.7\nb,0,.7\n"
    (instance,) = read(tmp_path, text).instances
    assert instance.log is not None and instance.mean_cost.tolist() == [0.7, 0.7]
    assert instance.cost_bound == 0.7
    table = read(tmp_path, HEAD + "A,10,5 €,1\nB,20,8 €,2\n")
    assert (table.pull_unit, table.reward_unit, table.cost_unit) == ("click", "conversions", "€")
    table = read(tmp_path, HEAD + "A,10,5,1\nB,20,8,2\n", columns={"reward": "1"})
    assert table.notes[0] == "every pull has a reward of 1, as --columns says"


def test_rows_of_a_day_are_summed_for_each_arm(tmp_path: Path) -> None:
    rows = (
        "E;13/06/2024;9;2,5;1\nE;01/06/2024;1;3,0;2\nE;13/06/2024;2;1,5;0\nH;01/06/2024;6;3,5;1\n"
    )
    text = "name;Jour;clicks;spent;conversions\n" + rows
    evidence = read(tmp_path, text, columns={"time": "Jour"}).instances[0].evidence
    assert evidence.days == 2
    assert sorted(evidence.daily[0].spent.tolist()) == [3.0, 4.0]
    assert evidence.daily[1].clicks.tolist() == [6]


def test_arms_that_cannot_be_played_are_kept_out_or_refused(tmp_path: Path) -> None:
    table = read(tmp_path, HEAD + "a,10,5,1\nb,0,3,0\nc,9,0,2\nd,10,4,0\ne,5,1,1\n", drop=["e"])
    assert table.instances[0].arms == ("a", "d")
    assert [note for note in table.notes if "out" in note] == [
        "left out, no clicks: 'b' (line 3)",
        "left out, it cost nothing: 'c' (line 4)",
    ]
    for text, message in (
        ("", "no line has several cells"),
        (MEANS, "a header but no rows"),
        (MEANS + "a,.5,.5\n", "alone in its instance: 'a' (line 2); two arms must have"),
        (MEANS + "a,.5,.5\nb,.5,0\n", "it cost nothing: 'b' (line 3); two arms must have"),
        ("instance," + MEANS + "x,a,.5,.5\nx,b,.5,.5\n,c,.5,.5\n", "no instance"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            read(tmp_path, text)
    with pytest.raises(InputError, match=r"^arms file: .* a CSV file that can be read"):
        read_arms(tmp_path)


def test_the_sample_has_four_instances_and_a_plain_file_is_a_short_walk(tmp_path: Path) -> None:
    assert [len(i.arms) for i in read_arms(SAMPLE).instances] == [3, 11, 12, 6]
    (tmp_path / "a.csv").write_text(HEAD + "a,10,5,1\nb,20,8,2\n")
    called = set[tuple[str, int]]()

    def note(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and "jaxbandits" in code.co_filename and code.co_name[0] != "<":
            called.add((code.co_filename, code.co_firstlineno))

    sys.setprofile(note)
    read_arms(tmp_path / "a.csv")
    sys.setprofile(None)
    assert len(called) <= 25
