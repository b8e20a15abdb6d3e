"""The page "What a result contains" against the class: every public name, its axes and its unit."""

from __future__ import annotations

import dataclasses
import re
from functools import cache
from pathlib import Path

import numpy as np

import jaxbandits as jb
from jaxbandits.result import About
from tests.contract.worlds import KEY

PAGE = (Path(__file__).resolve().parents[2] / "docs/result.md").read_text(encoding="utf-8")
AXES = {"s": "setting", "i": "instance", "r": "replicate", "m": "mark", "arm": "arm"}


def rows(title: str) -> list[list[str]]:
    """Cells of the tables below a heading."""
    section = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    (text,) = (part for part in section if part.startswith(title))
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]


def names(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)(?:`|\()", text))


@cache
def sample_result() -> jb.Result:
    arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
    world = jb.environments.WithNullArm(arms)
    policy = jb.policies.Guarded(jb.policies.OnePhase(c=0.5, horizon=8))
    limit = jb.AverageCost(c=0.5, rounds=8)
    return jb.simulate(
        policy, world, limit, key=KEY, replicates=2, marks=3, record=("pulls",), engine="scan"
    )


def test_every_public_name_is_on_the_page() -> None:
    public = {name for name in dir(jb.Result) if not name.startswith("_")}
    public |= {field.name for field in dataclasses.fields(jb.Result)}
    assert public - names(PAGE) - {"load"} == set() and "`Result.load(path)`" in PAGE
    listed = set().union(
        *(names(row[0]) for title in ("Views", "Stored fields") for row in rows(title))
    )
    assert listed - public == set()


def test_axes_and_units_are_those_of_the_class() -> None:
    arguments = {
        "count(event)": ("skips",),
        "recorded(name)": ("pulls",),
        "linear(values)": (np.ones(2),),
    }
    arguments |= {"budget_regret(budget)": (4.0,)}
    checked = set()
    for first, letters, unit, _ in rows("Views"):
        for name, view_unit in zip(
            re.findall(r"`(.+?)`", first), (unit.split(", ") * 2), strict=False
        ):
            if name == "fixed_regret":  # of other worlds
                continue
            view = getattr(sample_result(), name.split("(")[0])
            view = view(*arguments[name]) if name in arguments else view
            assert view.dims == tuple(
                AXES[letter] for letter in letters.replace("(resource)", "").split()
            ), name
            if "units" in view.attrs and unit not in ("text", "that of `values`"):
                assert view.attrs["units"] == view_unit, name
            checked.add(name)
    assert len(checked) >= 11


def test_words_and_fields() -> None:
    (row,) = (row for row in rows("Views") if row[0] == "`status`")
    assert names(row[3]) == {status.name.lower() for status in jb.Status} - {"running"}
    (row,) = (row for row in rows("Stored fields") if row[0] == "`about`")
    assert names(row[1]) <= {field.name for field in dataclasses.fields(About)}
    assert len(names(row[1])) >= 7
    (row,) = (row for row in rows("Stored fields") if row[0] == "`ledger`")
    plain = {name for name in sample_result().ledger if ":" not in name}
    assert names(row[1]) == plain
    assert {f"{name.split(':')[0]}:" for name in sample_result().ledger if ":" in name} <= set(
        re.findall(r"`(\w+:)`", row[1])
    )
