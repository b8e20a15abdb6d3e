"""Every class that a page shows keeps the contract: people copy them."""

from __future__ import annotations

import doctest
import re
import sys
import types
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import ticks
from jaxbandits.testing import check_constraint, check_environment, check_policy

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ["add-a-policy.md", "add-an-environment.md", "contexts.md"]
ARMS = jb.environments.FiniteArms.bernoulli(
    [[0.5, 0.4, 0.3], [0.3, 0.6, 0.5]],
    [[0.9, 0.3, 0.5], [0.4, 0.5, 0.7]],
    [[True, True, True], [True, True, False]],
)


def definitions(page: str) -> dict[str, Any]:
    """The imports and classes of a page, without what it plays."""
    sys.modules[page] = types.ModuleType(page)  # dataclasses look into the module of a class
    names: dict[str, Any] = vars(sys.modules[page])
    for example in doctest.DocTestParser().get_examples((DOCS / page).read_text(encoding="utf-8")):
        if re.match(r"(import|from|@|class)\b|@", example.source):
            exec(compile(example.source, page, "single"), names)
    return names


SHOWN = {page: definitions(page) for page in PAGES}
THETA = [[[0.5, 0.3, 0.0], [0.5, 0.0, 0.2]], [[0.4, 0.1, 0.0], [0.6, -0.2, 0.0]]]
REQUESTS = jb.environments.ContextualArms.linear(THETA, THETA, jb.environments.UnitSphere(2))
CHECKED = {
    "Nearest": lambda cls, names: check_policy(cls(), REQUESTS, jb.Horizon(40)),
    "BonusRatio": lambda cls, names: check_policy(cls(), ARMS),
    "EpsilonGreedy": lambda cls, names: check_policy(cls(), ARMS),
    "Uniform": lambda cls, names: check_policy(cls(), ARMS),
    "AlwaysFirst": lambda cls, names: check_policy(cls(), betting(names), jb.Horizon(40)),
    "Betting": lambda cls, names: check_environment(
        betting(names),
        [names["Stake"](jnp.int32(arm), jnp.int32(ticks.ONE >> arm)) for arm in (0, 1)],
    ),
    "Bar": lambda cls, names: check_environment(
        cls(chance=ticks.from_units([[0.5, 0.25]]).astype(np.int32))
    ),
    "Refill": lambda cls, names: check_constraint(cls(rounds=60, per_round=0.25), ARMS),
    "MoneyAndPulls": lambda cls, names: check_constraint(cls(rounds=60, budget=[4.0, 8.0]), ARMS),
}


def betting(names: dict[str, Any]) -> jb.Environment:
    return names["Betting"](chance=ticks.from_units([[0.5, 0.25], [0.75, 0.5]]).astype(np.int32))


def nouns(page: str) -> list[str]:
    kinds = jb.Policy, jb.Environment, jb.Constraint
    return [
        name
        for name, x in SHOWN[page].items()
        if isinstance(x, type) and issubclass(x, kinds) and x.__module__ == page
    ]


@pytest.mark.integration
@pytest.mark.sample_rows(
    "add-a-policy.md-BonusRatio", "add-an-environment.md-B", "add-an-environment.md-R"
)
@pytest.mark.parametrize(("page", "name"), [(page, name) for page in PAGES for name in nouns(page)])
def test_a_class_that_a_page_shows_keeps_the_contract(page: str, name: str) -> None:
    CHECKED[name](SHOWN[page][name], SHOWN[page])


def test_no_page_shows_a_class_that_is_not_checked_here() -> None:
    classes = {
        name
        for page in DOCS.rglob("*.md")
        for name in re.findall(r"^\.\.\. class (\w+)\(jb\.", page.read_text(), re.M)
    }
    assert classes == set(CHECKED) and classes == {name for page in PAGES for name in nouns(page)}
